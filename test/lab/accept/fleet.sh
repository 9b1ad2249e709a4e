# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Many connectors in one process (test/peers/connectip/fleet), for the acceptance lab; sourced after lib.sh. Their packets go to an
# echo at the VPC host, port 7100, and are written down in log/fleet-echo.csv: stream 1000000+I is connector I's.
# shellcheck disable=SC2154 # root, D, LAB come from the scenarios' library

# fleet_room NODE: so many sessions from one address.
fleet_room() { printf 'limits:\n  connectionsPerSource: 4000\n  connections: 8192\n  handshakes: 1024\n' >>"$D/nodes/$1/etc/agent.yaml"; }
fleet_bindings() { # COUNT
    jq -nc --argjson n "$1" '{apiVersion: "v1", kind: "List", items: [range($n) | {apiVersion: "masque.galactic.datumapis.com/v1alpha1",
        kind: "ConnectorBinding", metadata: {name: "acme.fleet-\(.)"}, spec: {tenant: "acme", connector: "fleet-\(.)", vpc: "vpc-a",
        serviceName: "svc-a", identities: [{uri: "spiffe://acme/fleet-\(.)"}]}}]}' | k operator create -f - >/dev/null
}
fleet() { # COUNT [ARG...]
    local n=$1
    shift
    "$LAB" run "$D" vpc fleet-echo "$PROBE" recv --port 7100 --echo --log "$D/log/fleet-echo.csv"
    "$LAB" run "$D" client fleet "$root/build/peers/holdfast-fleet" -edge '[fd00:c::1]:4433' -ca "$D/pki/edge-ca.crt" -client-ca "$D/pki/client-ca.crt" \
        -client-ca-key "$D/pki/client-ca.key" -count "$n" -port 7100 "$@"
}
