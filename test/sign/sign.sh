#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sign.sh: hack/sign.sh on small OCI archives made here. A signature counts for one image, one name and one key; what is refused
# leaves no file behind.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=test/lab/lib/check.sh
. "$root/test/lab/lib/check.sh"
sign=$root/hack/sign.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
name=registry.example/holdfast-agent

# archive FILE TEXT: an OCI archive whose one manifest is TEXT.
archive() {
    local d=$1.d hash
    mkdir -p "$d/blobs/sha256"
    hash=$(printf '%s' "$2" | sha256sum | cut -d' ' -f1)
    printf '%s' "$2" >"$d/blobs/sha256/$hash"
    printf '{"imageLayoutVersion":"1.0.0"}' >"$d/oci-layout"
    printf '{"schemaVersion":2,"manifests":[{"digest":"sha256:%s","size":%d}]}' "$hash" "${#2}" >"$d/index.json"
    tar -C "$d" -cf "$1" .
}
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:"$2" -out "$1" 2>/dev/null && openssl pkey -in "$1" -pubout -out "$1.pub"; }
refused() { # TEXT ARG...
    local text=$1 out
    shift
    if out=$("$sign" "$@" 2>&1); then echo "accepted: $out"; return 1; fi
    [[ $out == *"$text"* ]] || { printf 'without "%s":\n%s\n' "$text" "$out"; return 1; }
}
archive a.tar '{"schemaVersion":2,"a":1}'
archive b.tar '{"schemaVersion":2,"b":1}'
key k P-256
key other P-256
key large P-384

check "no word" refused "sign.sh sign ARCHIVE" ''
check "a reference with a tag" refused "'$name:1' is not a repository's name" sign a.tar "$name:1" k
check "a reference without a registry" refused "'agent' is not a repository's name" sign a.tar agent k
check "no archive" refused "'none.tar' cannot be read: build it first" sign none.tar $name k
: >empty.tar
check "an archive that is none" refused "'empty.tar' is no OCI archive" sign empty.tar $name k
check "no key" refused "key 'none' cannot be read" sign a.tar $name none
check "a key of another curve" refused "'large' is no P-256 private key" sign a.tar $name large
check "a public key does not sign" refused "'k.pub' is no P-256 private key" sign a.tar $name k.pub
check "nothing was left behind" test -z "$(ls a.payload.json* a.sig* 2>/dev/null)"
check "no signature" refused "a.tar' has no signature" verify a.tar $name k.pub
check "signed" "$sign" sign a.tar $name k
check "verified" "$sign" verify a.tar $name k.pub
check "the payload names the manifest's digest" test "$(jq -r '.critical.image."docker-manifest-digest"' a.payload.json)" = "sha256:$(printf '{"schemaVersion":2,"a":1}' | sha256sum | cut -d' ' -f1)"
check "the payload is of cosign's type" test "$(jq -r .critical.type a.payload.json)" = 'cosign container image signature'
check "another key" refused "is not by 'other.pub'" verify a.tar $name other.pub
check "another name" refused "is of another image or name" verify a.tar registry.example/other k.pub
cp a.payload.json b.payload.json
cp a.sig b.sig
check "another image's signature" refused "is of another image or name" verify b.tar $name k.pub
head -c 20 a.sig >a.sig.cut && cp a.sig a.sig.whole && cp a.sig.cut a.sig
check "a damaged signature" refused "is not by 'k.pub'" verify a.tar $name k.pub
cp a.sig.whole a.sig
blob=$(find a.tar.d/blobs -type f)
printf '{"schemaVersion":2,"a":2}' >"$blob"
tar -C a.tar.d -cf a.tar .
check "an archive whose manifest was changed under its digest" refused "is not what its index names" verify a.tar $name k.pub
rm "$blob"
tar -C a.tar.d -cf a.tar .
check "an archive without the manifest that its index names" refused "is not what its index names" verify a.tar $name k.pub
printf '{"manifests":[]}' >b.tar.d/index.json
tar -C b.tar.d -cf b.tar .
check "an archive without an image" refused "has not exactly one image" sign b.tar $name k
checks_done
