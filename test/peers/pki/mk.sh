#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mk.sh DIR: makes the test PKI for connectors and edges (EC P-256), right and wrong on purpose. Nothing is made twice.
#
#   edge-ca, client-ca, other-ca     certificate authorities: of the edges, of the connectors, of nobody here
#   edge1, edge2                     server certificates for DNS:masque.test and DNS:edgeN.masque.test
#   site-1 … site-4                  good connectors: exactly one URI SAN, spiffe://acme/site-N
#   stranger                         good certificate, identity that no binding names: spiffe://acme/stranger
#   other-tenant                     good certificate of another tenant: spiffe://evil/site-1
#   bad-no-uri, bad-two-uris         no URI SAN (a DNS name only), two of them
#   bad-expired, bad-future          not valid any more, not yet
#   bad-unknown-ca                   site-1's identity, signed by other-ca
#   bad-eku                          site-1's identity, for servers only
#   client-ca.crt                    is what the agents trust for clients, edge-ca.crt what connectors trust
set -euo pipefail
[ $# = 1 ] || { sed -n '3,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
[ ! -e done ] || exit 0
umask 077

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

new_ca() { # NAME
    new_key "$1"
    openssl req -x509 -new -key "$1.key" -sha256 -days 30 -subj "/CN=holdfast-test-$1" -out "$1.crt" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
}

leaf() { # NAME CA EXTENDED-KEY-USAGE SUBJECT-ALT-NAMES [FROM TO]
    new_key "$1"
    openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
    printf 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=%s\nsubjectAltName=%s\n' \
        "$3" "$4" >"$1.ext"
    if [ $# = 4 ]; then
        openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -set_serial "0x$(openssl rand -hex 8)" -sha256 -days 30 \
            -extfile "$1.ext" -out "$1.crt"
    else # `x509 -req` of OpenSSL 3.0 takes no dates, `ca` does
        : >"$1.index"
        printf '[ca]\ndefault_ca=d\n[d]\ndatabase=%s.index\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n' \
            "$1" >"$1.cnf"
        openssl ca -batch -notext -config "$1.cnf" -cert "$2.crt" -keyfile "$2.key" -in "$1.csr" -extfile "$1.ext" \
            -startdate "$5" -enddate "$6" -out "$1.crt"
    fi
    rm -f "$1".{csr,ext,cnf,index,index.old,index.attr} [0-9A-F]*.pem
}

at() { date -u -d "$1" +%Y%m%d%H%M%SZ; }

{
    for ca in edge-ca client-ca other-ca; do new_ca $ca; done
    for i in 1 2; do leaf edge$i edge-ca serverAuth "DNS:masque.test,DNS:edge$i.masque.test"; done
    for i in 1 2 3 4; do leaf site-$i client-ca clientAuth "URI:spiffe://acme/site-$i"; done
    leaf stranger client-ca clientAuth URI:spiffe://acme/stranger
    leaf other-tenant client-ca clientAuth URI:spiffe://evil/site-1
    leaf bad-no-uri client-ca clientAuth DNS:site-1.acme.test
    leaf bad-two-uris client-ca clientAuth URI:spiffe://acme/site-1,URI:spiffe://acme/site-2
    leaf bad-expired client-ca clientAuth URI:spiffe://acme/site-1 "$(at '-2 days')" "$(at '-1 hour')"
    leaf bad-future client-ca clientAuth URI:spiffe://acme/site-1 "$(at '+1 day')" "$(at '+2 days')"
    leaf bad-unknown-ca other-ca clientAuth URI:spiffe://acme/site-1
    leaf bad-eku client-ca serverAuth URI:spiffe://acme/site-1
} >log 2>&1 || { tail -n 5 log >&2; echo "mk.sh: openssl failed, see $PWD/log" >&2; exit 1; }
touch done
