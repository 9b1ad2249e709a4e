#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compilers.sh SIM SIM...: the same seeds give the same traces, whoever compiled the simulator.
set -uo pipefail
want='' passed=0 failed=0
for sim in "$@"; do
  got=$("$sim" hash 300) || got="$sim does not run"
  [ -n "$want" ] || want=$got
  echo "$sim: $got"
  if [ "$got" = "$want" ] && [ "${#got}" -eq 16 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "sim-compilers: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 1 ]
