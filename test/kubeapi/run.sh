#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM: starts a real API server in a folder of its own, runs the program on it, ends everything.
set -euo pipefail
[ $# = 1 ] && [ -x "$1" ] || { echo "usage: ${0##*/} PROGRAM" >&2; exit 2; }
program=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-kube.XXXXXX")
finish() {
    "$here/../apiserver/down.sh" "$dir" || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$here/../apiserver/up.sh" "$dir"
# a token of an account without any right: known (403), while a token that is none is unknown (401)
kubectl=$("$here/../apiserver/build.sh")/kubectl
"$kubectl" --kubeconfig "$dir/admin.kubeconfig" -n default create serviceaccount nobody >/dev/null
"$kubectl" --kubeconfig "$dir/admin.kubeconfig" -n default create token nobody >"$dir/good-token"
"$program" "$dir"
