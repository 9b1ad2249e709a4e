#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check-layer-table.sh: does the table of pkg/README.md show the layers of the Makefile? Prints the difference, exit 1.
set -euo pipefail
want=$(make -s --no-print-directory print-layers | awk -F: '{print $1 "|" $2 "|" $3}')
have=$(awk -F'|' '/^\| `/ {gsub(/[ `]/, "", $2); gsub(/ /, "", $3); d = $5; gsub(/,/, "", d); gsub(/^ +| +$/, "", d); print $2 "|" $3 "|" d}' pkg/README.md)
[ "$want" = "$have" ] || { echo "pkg/README.md and the Makefile name different layers (< Makefile, > README):"; diff <(echo "$want") <(echo "$have"); }
