#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check-fmt.sh [FILE...]: names each C file, or each of those, that `make fmt` would change. Layout differs between versions of
# clang-format: Debian 12's (14) is the one that counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$(clang-format --version 2>/dev/null | grep -oE 'version [0-9]+' | cut -d' ' -f2) || true
[ "$version" = 14 ] || { echo "check-fmt: clang-format 14 is wanted, found '${version:-none}': run 'make deps' on Debian 12"; echo "check-fmt: 0 passed, 1 failed"; exit 1; }
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.c' '*.h'); fi
[ ${#files[@]} -gt 0 ] || { echo "check-fmt: no C files here"; exit 1; }
wrong=$({ printf '%s\0' "${files[@]}" | xargs -0 -n 50 clang-format --dry-run 2>&1 || true; } | grep -oE '^[^:]+:[0-9]+:[0-9]+: warning' | cut -d: -f1 | sort | uniq -c) || true
n=0
while read -r count file; do
    [ -n "$count" ] || continue
    n=$((n + 1))
    echo "check-fmt: $file: $count places that 'make fmt' would change"
done <<<"$wrong"
[ $n = 0 ] || { echo "check-fmt: 0 passed, 1 failed"; exit 1; }
echo "check-fmt: 1 passed, 0 failed"
