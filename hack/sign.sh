#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sign.sh: signatures of images in the form that `cosign verify --key` and admission controllers read (a "simple signing" payload
# that names the image's manifest by its digest, and an ECDSA P-256 signature of that payload).
#
#   sign.sh sign ARCHIVE REFERENCE KEY      writes ARCHIVE with .payload.json and .sig in place of .tar
#   sign.sh verify ARCHIVE REFERENCE PUBLIC exit 1 unless both are there, by that key, of that archive and for that name
#
# ARCHIVE: an OCI archive with one image (build/image/agent.tar). REFERENCE: the name it is published under, without tag or digest
# (registry.example/holdfast-agent). KEY, PUBLIC: PEM files; `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`
# makes a key. A key with a passphrase asks for it at the terminal. Nothing of a key is printed or stored.
set -euo pipefail
die() { printf 'sign: error: %s\n' "$*" >&2; exit 1; }
usage() { sed -n '6,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[ $# -eq 4 ] || usage
archive=$2 reference=$3 key=$4
case $1 in sign | verify) ;; *) usage ;; esac
[[ $archive == *.tar ]] || die "archive '$archive': the name has to end with .tar"
[ -r "$archive" ] || die "archive '$archive' cannot be read: build it first (make image)"
[[ $reference =~ ^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)+$ ]] ||
    die "reference '$reference' is not a repository's name (registry.example/holdfast-agent, without tag and digest)"
[ -r "$key" ] || die "key '$key' cannot be read"
member() { tar -xOf "$archive" "$1" 2>/dev/null || tar -xOf "$archive" "./$1" 2>/dev/null; }
index=$(member index.json) || die "archive '$archive' is no OCI archive: it has no index.json"
digest=$(jq -er 'if (.manifests | length) == 1 then .manifests[0].digest else empty end' <<<"$index") || die "archive '$archive' has not exactly one image"
[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || die "archive '$archive': digest '$digest' is not sha256:HEX"
real=$(member "blobs/sha256/${digest#sha256:}" | sha256sum | cut -d' ' -f1) || true # none: another sum
[ "sha256:$real" = "$digest" ] || die "archive '$archive': its manifest is not what its index names ($digest)"
payload=${archive%.tar}.payload.json signature=${archive%.tar}.sig
wanted() {
    jq -njc --arg r "$reference" --arg d "$digest" '{critical: {identity: {"docker-reference": $r}, image: {"docker-manifest-digest": $d},
        type: "cosign container image signature"}, optional: null}'
}
is_p256() { openssl pkey "$@" -noout -text 2>/dev/null | grep -q 'ASN1 OID: prime256v1'; }
if [ "$1" = sign ]; then
    is_p256 -in "$key" || die "key '$key' is no P-256 private key in PEM"
    wanted >"$payload.new"
    openssl dgst -sha256 -sign "$key" "$payload.new" | base64 -w0 >"$signature.new"
    mv "$payload.new" "$payload"
    mv "$signature.new" "$signature"
    printf 'sign: %s of %s: %s, %s\n' "$reference" "$digest" "$payload" "$signature"
else
    is_p256 -pubin -in "$key" || die "key '$key' is no P-256 public key in PEM"
    if [ ! -r "$payload" ] || [ ! -r "$signature" ]; then die "archive '$archive' has no signature: $payload and $signature are wanted"; fi
    wanted | cmp -s - "$payload" || die "payload '$payload' is of another image or name than $reference@$digest"
    openssl dgst -sha256 -verify "$key" -signature <(base64 -d "$signature") "$payload" >/dev/null 2>&1 || die "signature '$signature' is not by '$key'"
    printf 'sign: %s@%s is signed by %s\n' "$reference" "$digest" "$key"
fi
