#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BIN PEERS RESULTS [PAIRS [SESSIONS [ONLY]]]: the data path's benchmark with a PKI of its own. Root.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: run.sh BIN PEERS RESULTS [PAIRS [SESSIONS [ONLY]]]" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "run.sh: this makes network namespaces and TUN devices: run it as root" >&2; exit 1; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
"$here/../../peers/pki/mk.sh" "$dir/pki"
mkdir -p "$(dirname "$3")"
"$1/bench-dataplane" "$1" "$2" "$dir/pki" "$3" "${@:4}"
