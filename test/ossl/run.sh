#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: builds the transports in a Debian 13 root and runs their unit tests there; says which TLS library was used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
packages=(base fence loop masque)
targets=("${packages[@]/#/build/trixie/test/}")
hack/trixie-run.sh make -s -j2 BUILD=build/trixie "${targets[@]}" build/trixie/bin/holdfast-agent
# What is linked is what was meant: the OpenSSL helper, and no GnuTLS in the transport.
hack/trixie-run.sh bash -c 'ldd build/trixie/bin/holdfast-agent | grep -q libngtcp2_crypto_ossl && ! ldd build/trixie/bin/holdfast-agent | grep -q libngtcp2_crypto_gnutls'
echo "ossl: ngtcp2, its helper, nghttp3, OpenSSL: $(hack/trixie-run.sh pkg-config --modversion libngtcp2 libngtcp2_crypto_ossl libnghttp3 libssl | tr '\n' ' ')"
rc=0
for t in "${targets[@]}"; do
    hack/trixie-run.sh "$t" -j2 --timeout 60 || rc=1
done
exit $rc
