#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM: runs the twin's comparison against a real API server. Starts one of its own and ends it, or uses the one
# whose folder TWIN_DIR names (up.sh, install.sh and nodes.sh DIR edge1 edge2 done; the table wants it without objects).
# TWIN_ONLY=table|collections runs one part, TWIN_VERBOSE=1 names passed cases, TWIN_TRACE=1 logs.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
API=$HERE/../apiserver
[ $# = 1 ] && [ -x "$1" ] || { echo "usage: ${0##*/} PROGRAM" >&2; exit 2; }
dir=${TWIN_DIR:-}
if [ -z "$dir" ]; then
    dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-twin.XXXXXX")
    trap '"$API/down.sh" "$dir"; rm -rf "$dir"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    "$API/up.sh" "$dir"
    "$API/install.sh" "$dir"
    "$API/nodes.sh" "$dir" edge1 edge2
fi
# shellcheck disable=SC1091 # written by up.sh
. "$dir/env"
sed "s/authority/nopod/g; s/certificate-nopod/certificate-authority/g" "$dir/authority.kubeconfig" >"$dir/nopod.kubeconfig"
uid() { "$KUBECTL" --kubeconfig "$dir/admin.kubeconfig" get node "$1" -o 'jsonpath={.metadata.uid}'; }
TWIN_EDGE1_UID=$(uid edge1)
TWIN_EDGE2_UID=$(uid edge2)
export TWIN_EDGE1_UID TWIN_EDGE2_UID
"$1" "$dir"
