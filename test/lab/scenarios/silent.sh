#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# silent.sh: edge1's claim watches, the agent's and the foundation's, are silent for 60 s while its instance keeps renewing,
# and edge2 takes the connector over. There must be no overlap: no packet through edge1 after the first one through edge2,
# in either direction. Contract section 5: nothing is extended by a cache.
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
scenario_up --proxy
scenario_agents
"$LAB" binding "$D" acme site-1
mark=$(now_ns)
"$LAB" start "$D" connector client site-1 -edges 'edge1=[fd00:c::1]:4433' -once
check "the connector has a session on edge1" await 10 "connected" event "$mark" '.event == "connected"'
addr=$(address_of client)
send() { # CLIENT STREAM
    "$LAB" run "$D" "$1" send "$PROBE" send --bind "$addr" --to fd20::10 --port 7000 --interval 4000 --stream "$2"
}
send client 1
"$LAB" run "$D" vpc send "$PROBE" send --bind fd20::10 --to "$addr" --port 7000 --interval 4000 --stream 9
mark=$(now_ns)
check "packets flow to the VPC host" await 5 "packets" packet_first "$D/log/to-vpc.csv" "$mark"
check "packets flow to the connector" await 5 "packets" packet_first "$D/log/to-client.csv" "$mark"

# Both processes of edge1 go through this proxy; every stream of claims falls silent, LIST and everything else pass.
"$LAB" proxy "$D" edge1 'silence GET /apis/edge\.galactic\.datumapis\.com/v1alpha1/.*routeclaims.*watch='
silent=$(now_ns)
sleep 1
taking=$(now_ns)
"$LAB" start "$D" connector client2 site-1 -edges 'edge2=[fd00:c::2]:4433' -dial-timeout 50s
check "edge2 takes the claim over" await 15 "takeover" claim "$taking" '.object.spec.holder.node == "edge2"'
takeover=$(claim "$taking" '.object.spec.holder.node == "edge2"')
check "the connector has a session on edge2" await 50 "connected" event "$taking" '.event == "connected"' client2
send client2 2
check "packets flow through edge2" await 5 "packets" awk -F, '$5 == "e2" {print $4; exit}' "$D/log/to-vpc.csv"
while [ $(($(now_ns) - silent)) -lt 60000000000 ]; do sleep 0.5; done
hits=$(curl -sS --unix-socket "/run/holdfast-lab/$(sed -n 's/^LAB_ID=//p' "$D/lab.env")-edge1.sock" http://proxy/rules | awk '{print $1}')
"$LAB" proxy "$D" edge1

renewals=$(jq -Rnr --argjson s "$silent" '[inputs | split(" ") as $w | select(($w[0] | tonumber) > $s)
    | (.[($w[0] | length) + 1:] | fromjson? // empty) | select(.object.spec.nodeName == "edge1") | .object.spec.renew.bootTimeMicros]
    | unique | length' "$D/log/api.watch-providerinstances.log")
last_up=$(awk -F, '$5 == "e1" {t = $4} END {print t}' "$D/log/to-vpc.csv")
first_up=$(awk -F, '$5 == "e2" {print $4; exit}' "$D/log/to-vpc.csv")
last_down=$(awk -F, '{t = $4} END {print t}' "$D/log/to-client.csv")
first_down=$(awk -F, '{print $4; exit}' "$D/log/to-client2.csv")
note "watch streams silenced: $hits; renewals of edge1's instance meanwhile: $renewals"
note "takeover by edge2 at 0 ms; last packet through edge1: up $(ms_between "$takeover" "$last_up") ms, down $(ms_between "$takeover" "$last_down") ms"
note "first packet through edge2: up $(ms_between "$takeover" "$first_up") ms, down $(ms_between "$takeover" "$first_down") ms"
check "watches of agent and foundation were silenced" test "$hits" -ge 2
check "edge1's instance kept renewing" test "$renewals" -ge 4
check "no overlap from the connector" test "$last_up" -lt "$first_up"
check "no overlap to the connector" test "$last_down" -lt "$first_down"
check "the way changed exactly once, from the connector" test "$(switches <(awk -F, '{print $4, $5}' "$D/log/to-vpc.csv"))" = 1
check "the way changed exactly once, to the connector" test \
    "$(switches <(awk -F, '{print $4, "edge1"}' "$D/log/to-client.csv") <(awk -F, '{print $4, "edge2"}' "$D/log/to-client2.csv"))" = 1
check "on the wire no packet came from edge1 after the first one from edge2" test "$(cap_count e1 in "$first_up" "$(now_ns)")" = 0
check "edge1 stopped within the lease of 30 s after the takeover" test "$(((last_up > last_down ? last_up : last_down) - takeover))" -le 30000000000
safe
checks_done
