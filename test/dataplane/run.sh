#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BINARY [SCENARIO]: runs the data plane's scenarios with a PKI of their own. Root.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: run.sh BINARY [SCENARIO]" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "run.sh: these tests make network namespaces and TUN devices: run them as root" >&2; exit 1; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-dataplane.XXXXXX")
trap 'rm -rf "$dir"' EXIT
"$here/../peers/pki/mk.sh" "$dir/pki"
# The agent's user reads the keys.
chmod 711 "$dir"
chmod -R a+rX "$dir/pki"
binary=$1; shift
"$binary" "$dir/pki" "$@"
