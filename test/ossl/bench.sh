#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench.sh BIN PEERS RESULTS [PAIRS [SESSIONS [ONLY]]]: the data path's figures (test/bench/dp) of the server that the image ships: built
# and run in the Debian 13 root, with OpenSSL; clients and the servers beside it are those of `make bench`. Root.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: bench.sh BIN PEERS RESULTS [PAIRS [SESSIONS [ONLY]]]" >&2; exit 2; }
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$repo"
root=$(hack/trixie-root.sh build)
ours=(bench-ours bench-nofence)
hack/trixie-run.sh make -s -j2 BUILD=build/trixie "${ours[@]/#/build/trixie/test/bench/}"
linked=$(hack/trixie-run.sh ldd build/trixie/test/bench/bench-ours)
case $linked in
*libngtcp2_crypto_gnutls*) echo "bench.sh: the server is linked with the GnuTLS helper" >&2; exit 1 ;;
*libngtcp2_crypto_ossl*) ;;
*) echo "bench.sh: the server is not linked with the OpenSSL helper" >&2; exit 1 ;;
esac
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-ossl.XXXXXX")
trap 'rm -rf "$dir"' EXIT
for f in "$1"/bench-*; do
    [ ! -x "$f" ] || ln -s "$(realpath "$f")" "$dir/"
done
# Each step replaces the process: the bench knows its server by its pid. The network namespace stays the bench's own.
for b in "${ours[@]}"; do
    rm -f "$dir/$b"
    cat >"$dir/$b" <<WRAPPER
#!/bin/bash
set -euo pipefail
exec unshare --mount --propagation private bash -euo pipefail -c '
    mount --bind "$root" "$root"
    mkdir -p "$root/src" "$root\$0"
    mount --bind "$repo" "$root/src"
    mount --bind "\$0" "$root\$0"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /src/build/trixie/test/bench/$b "\$@"' "$(dirname "$dir")" "\$@"
WRAPPER
    chmod +x "$dir/$b"
done
echo "ossl: ngtcp2, its helper, nghttp3, OpenSSL: $(hack/trixie-run.sh pkg-config --modversion libngtcp2 libngtcp2_crypto_ossl libnghttp3 libssl | tr '\n' ' ')"
test/bench/dp/run.sh "$dir" "${@:2}"
