#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sum-results.sh: one line per suite that ran, then the sum of all as "N passed, N failed". Exit 1 when one failed.
set -euo pipefail
p=0 f=0
while read -r file; do
  read -r a b ms < "$file"
  printf '%-48s %6d passed %4d failed %8d ms\n' "${file#build/results/}" "$a" "$b" "$ms"
  p=$((p + a)) f=$((f + b))
done < <(find build/results -type f | sort)
echo "$p passed, $f failed"
[ "$f" -eq 0 ] && [ "$p" -gt 0 ]
