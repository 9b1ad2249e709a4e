#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM [OPTION...]: every allowed and refused case on a real API server. Starts one of its own and ends it, or uses
# the one whose folder ADMISSION_DIR names (up.sh, install.sh and nodes.sh DIR edge1 edge2 done). Options go to the program:
#   --only TEXT    only the scenarios whose name has TEXT
#   --jobs N       threads (3)
# Prints failing cases in full, then "admission: N passed, M failed"; exit 1 when one failed.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
API=$HERE/../apiserver
[ $# -ge 1 ] && [ -x "$1" ] || { echo "usage: ${0##*/} PROGRAM [--only TEXT] [--jobs N]" >&2; exit 2; }
program=$1
shift
dir=${ADMISSION_DIR:-}
if [ -z "$dir" ]; then
    dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-admission.XXXXXX")
    trap '"$API/down.sh" "$dir"; rm -rf "$dir"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    "$API/up.sh" "$dir"
    "$API/install.sh" "$dir"
    "$API/nodes.sh" "$dir" edge1 edge2
fi
# shellcheck disable=SC1091 # written by up.sh
. "$dir/env"
"$program" "$@" --url "$APISERVER_URL" --dir "$dir" "$HERE"/cases/*.case
