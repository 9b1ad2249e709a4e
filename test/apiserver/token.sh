#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# token.sh DIR NAME...: writes a fresh token to DIR/tokens/NAME (atomically, mode 0600). NAME is
#   agent-NODE, foundation-NODE   bound to that node's pod (made by nodes.sh), carries the node's name and UID
#   authority                     bound to nothing
#   nopod, nopod-foundation       the agent's and the foundation's account without a pod: admission refuses their writes
# Environment: TOKEN_SECONDS, lifetime (3600; the server allows no less than 600).
set -euo pipefail
# shellcheck source=test/apiserver/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -ge 2 ] || { echo "usage: ${0##*/} DIR NAME..." >&2; exit 2; }
lab_open "$1"
shift
umask 077
mkdir -p "$LAB/tokens"
one() {
    local sa bound=()
    case $1 in
        agent-?*) sa=holdfast-agent bound=(--bound-object-kind Pod --bound-object-name "holdfast-$1") ;;
        foundation-?*) sa=holdfast-foundation bound=(--bound-object-kind Pod --bound-object-name "holdfast-$1") ;;
        authority) sa=holdfast-authority ;;
        nopod) sa=holdfast-agent ;;
        nopod-foundation) sa=holdfast-foundation ;;
        *) die "no such token: '$1' (agent-NODE, foundation-NODE, authority, nopod, nopod-foundation)" ;;
    esac
    "${IN[@]}" "$KUBECTL" --kubeconfig "$LAB/admin.kubeconfig" -n "$API_NAMESPACE" create token "$sa" "${bound[@]}" \
        --duration "${TOKEN_SECONDS:-3600}s" >"$LAB/tokens/.$1.$$"
    mv -f "$LAB/tokens/.$1.$$" "$LAB/tokens/$1"
}
pids=()
for name in "$@"; do one "$name" & pids+=($!); done
for pid in "${pids[@]}"; do wait "$pid" || die "not every token was made"; done
