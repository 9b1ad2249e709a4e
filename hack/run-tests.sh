#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run-tests.sh NAME COMMAND...: runs one suite, shows its output, and records "passed failed" in build/results/NAME.
# Understands Criterion's synthesis line and the plain closing line "[word:] N passed, N failed".
# A suite that exits 0 without having run a test counts as one failure.
set -uo pipefail
name=$1; shift
mkdir -p "build/results/$(dirname "$name")"
log=$(mktemp); trap 'rm -f "$log"' EXIT
start=$(date +%s%N)
# A suite that hangs is a failure, not a wait.
timeout --kill-after=10 "${HOLDFAST_SUITE_TIMEOUT:-1500}" "$@" 2>&1 | tee "$log"; rc=${PIPESTATUS[0]}
ms=$(( ($(date +%s%N) - start) / 1000000 ))
clean=$(sed 's/\x1b\[[0-9;]*m//g' "$log")
read -r p f < <(printf '%s\n' "$clean" | awk '
  /Synthesis: Tested:/ { gsub(/[^0-9 ]/, " "); t += $1; p += $2; f += $3 + $4; next }
  match($0, /^([A-Za-z0-9_.\/-]+: )?[0-9]+ passed, [0-9]+ failed/) { s = $0; sub(/^[^ ]*: /, "", s); split(s, a, " "); p = a[1]; f = a[3] }
  END { print p + 0, f + 0 }')
[ "$rc" -ne 0 ] && [ "$f" -eq 0 ] && f=1
[ "$rc" -eq 0 ] && [ "$p" -eq 0 ] && [ "$f" -eq 0 ] && { echo "$name: ran no test"; f=1; }
echo "$p $f $ms" > "build/results/$name"
[ "$f" -eq 0 ]
