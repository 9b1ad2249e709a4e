#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [PACKAGE...]: builds every package, or those, in a Debian 13 root and runs its unit tests there: the compiler, the
# libraries and the TLS library that the image ships. Says which TLS library was used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
in_root() { hack/trixie-run.sh "$@"; }
mapfile -t packages < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else make -s print-layers | cut -d: -f1; fi)
targets=()
for p in "${packages[@]}"; do
    [ -z "$(compgen -G "pkg/$p/*_test.c")" ] || targets+=("build/trixie/test/$p")
done
in_root make -s -j2 BUILD=build/trixie "${targets[@]}" build/trixie/bin/holdfast-agent build/trixie/bin/kubectl-holdfast
# What is linked is what was meant: the OpenSSL helper, and no GnuTLS in the transport.
in_root bash -c 'ldd build/trixie/bin/holdfast-agent | grep -q libngtcp2_crypto_ossl && ! ldd build/trixie/bin/holdfast-agent | grep -q libngtcp2_crypto_gnutls'
echo "ossl: ngtcp2, its helper, nghttp3, OpenSSL, libcurl: $(in_root pkg-config --modversion libngtcp2 libngtcp2_crypto_ossl libnghttp3 libssl libcurl | tr '\n' ' ')"
rc=0
for t in "${targets[@]}"; do
    in_root "$t" -j2 --timeout 120 || rc=1
done
exit $rc
