# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Many connectors in one process (test/peers/connectip/fleet), for scenarios and figures; sourced after scenarios/lib.sh. With
# FLEET_SOCK set, a file name, the process answers there (fleet_stats).
# shellcheck disable=SC2154 # root, D, LAB, PROBE, k come from the scenarios' library

# fleet_room NODE [LIMIT...]: so many sessions from one address; LIMIT: a line of limits besides.
fleet_room() {
    local n=$1
    shift
    { printf 'limits:\n'; printf '  %s\n' 'connectionsPerSource: 4000' 'connections: 8192' 'handshakes: 1024' "$@"; } >>"$D/nodes/$n/etc/agent.yaml"
}
fleet_bindings() { # COUNT
    jq -nc --argjson n "$1" '{apiVersion: "v1", kind: "List", items: [range($n) | {apiVersion: "masque.galactic.datumapis.com/v1alpha1",
        kind: "ConnectorBinding", metadata: {name: "acme.fleet-\(.)"}, spec: {tenant: "acme", connector: "fleet-\(.)", vpc: "vpc-a",
        serviceName: "svc-a", identities: [{uri: "spiffe://acme/fleet-\(.)"}]}}]}' | k operator create -f - >/dev/null
}
fleet_start() { # COUNT [ARG...]
    local n=$1
    shift
    : >"$D/log/client.fleet.log"
    "$LAB" run "$D" client fleet "$root/build/peers/holdfast-fleet" -edge '[fd00:c::1]:4433' -ca "$D/pki/edge-ca.crt" \
        -client-ca "$D/pki/client-ca.crt" -client-ca-key "$D/pki/client-ca.key" -count "$n" ${FLEET_SOCK:+-control "$FLEET_SOCK"} "$@"
}
# fleet_packets COUNT [ARG...]: the same, and packets to an echo at the VPC host, which writes them down in log/fleet-echo.csv:
# stream 1000000+I is connector I's.
fleet_packets() {
    "$LAB" run "$D" vpc fleet-echo "$PROBE" recv --port 7100 --echo --log "$D/log/fleet-echo.csv"
    fleet_start "$@" -port 7100
}
# fleet_suspends COUNT ROUNDS: one connector after the other is suspended and resumed while all send; round I's stream is I.
fleet_suspends() {
    fleet_packets "$1" -interval 100ms -victim-interval 2ms -suspend "$2" -api 'https://[fd00:a::10]:6443' \
        -api-netns "/run/netns/hf$(sed -n 's/^LAB_ID=//p' "$D/lab.env")-api" \
        -api-ca "$D/api/ca.crt" -api-cert "$D/api/pki/admin.crt" -api-key "$D/api/pki/admin.key"
}
fleet_stats() { curl -sS --unix-socket "$FLEET_SOCK" http://fleet/stats; }
fleet_is_up() { [ "$(fleet_stats 2>/dev/null | jq .connected)" = "$1" ]; }
