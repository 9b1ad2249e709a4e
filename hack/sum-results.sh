#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sum-results.sh: one line per suite that ran, then the sum of all as "N passed, N failed". Exit 1 when one failed. A suite that
# also ran on programs with sanitizers must have had as many tests there: one that is silently left out counts as a failure.
set -euo pipefail
p=0 f=0
while read -r file; do
  read -r a b ms < "$file"
  printf '%-48s %6d passed %4d failed %8d ms\n' "${file#build/results/}" "$a" "$b" "$ms"
  p=$((p + a)) f=$((f + b))
  [[ $file =~ ^build/results/([a-z]+)-(address|undefined|thread)[^/]*/(.*)$ ]] || continue
  plain=build/results/${BASH_REMATCH[1]}/${BASH_REMATCH[3]}
  [ -f "$plain" ] || continue
  read -r c d ms < "$plain"
  [ $((a + b)) -eq $((c + d)) ] || { echo "${file#build/results/}: $((a + b)) tests, but $((c + d)) without sanitizers"; f=$((f + 1)); }
done < <(find build/results -type f | sort)
echo "$p passed, $f failed"
[ "$f" -eq 0 ] && [ "$p" -gt 0 ]
