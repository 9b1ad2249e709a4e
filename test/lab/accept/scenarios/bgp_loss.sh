#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bgp_loss.sh: BGP between an edge and the VPC's router breaks off, and a router that does not listen keeps an old route.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2
# fault: edge1's BGP packets are dropped for 6 s (hold time 3 s); then edge1's BIRD stands still while site-1 moves to edge2
# expect: reachability is lost, ownership is not: no takeover, packets into the VPC go on; a later epoch wins over an old route
# bound: 5 s from the end of the loss to packets to the connector; 1 s from the new session to packets both ways beside an old route
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
scenario_up --lease 10
two_connectors
row() { k admin get rclaim -o json | jq -r --arg c site-1 '.items[] | select(.spec.connector == $c) | '"$1"; } # JQ
via() { "$LAB" exec "$D" vpc ip -6 -j route show "$prefix" | jq -r '.[0].gateway // empty'; } # the VPC's next hop to site-1
prefix=$(row .spec.prefix)
check "the VPC's router reaches site-1 through edge1" test "$(via)" = fd00:b:1::1

echo "-- packets of BGP are dropped"
before=$(row '"\(.spec.epoch)/\(.spec.leaseUUID)"')
pause_random 0 2000
lost=$(now_ns)
"$LAB" exec "$D" edge1 nft -f - <<'N'
table inet nobgp { chain in { type filter hook input priority -300; iifname "bgp0" tcp sport 179 drop; iifname "bgp0" tcp dport 179 drop; };
    chain out { type filter hook output priority -300; oifname "bgp0" tcp sport 179 drop; oifname "bgp0" tcp dport 179 drop; }; }
N
moment "BGP is cut" "$lost"
gone() { [ -z "$(via)" ] && now_ns; }
check "the route goes with the session" await 6 "no route" gone
without=$(now_ns)
while [ $(($(now_ns) - lost)) -lt 6000000000 ]; do sleep 0.1; done
until=$(($(now_ns) - 300000000))
truth up_without_bgp "$(lost "$D/log/to-vpc.csv" 1 "$lost" "$until")" "no packet of site-1 to the VPC was lost: its gate is open"
check "none came to it without a route" test "$(awk -F, -v a=$((without + 200000000)) -v b="$until" '$1 == 9 && $4 > a && $4 < b {n++} END {print n + 0}' "$D/log/to-client.csv")" = 0
healed=$(now_ns)
"$LAB" exec "$D" edge1 nft delete table inet nobgp
moment "BGP passes" "$healed"
first=$(await 15 "packets" packet_first "$D/log/to-client.csv" "$healed") || first=''
figure reachable "$(ms_between "$healed" "${first:-x}")" 5000 "from the end of the loss to packets to site-1"
check "the claim never moved" test "$(row '"\(.spec.epoch)/\(.spec.leaseUUID)"')" = "$before"
truth other "$(lost "$D/log/to-vpc.csv" 2 "$lost" "$until")" "site-2 lost no packet meanwhile, to the VPC"
truth other_down "$(lost "$D/log/to-client2.csv" 10 "$lost" "$until")" "nor to the connector"

echo "-- edge1's BIRD stands still while site-1 moves to edge2"
a=$(address_of client)
for c in client client2; do "$LAB" stop "$D" connector $c >/dev/null || true; done
"$LAB" stop "$D" send client2 >/dev/null || true
"$LAB" run "$D" client2 send "$PROBE" send --bind "$a" --freebind --to fd20::10 --port 7000 --interval 4000 --stream 2
for t in ${TRANSPORTS:-h3 h2}; do
    mark=$(now_ns)
    session client edge1 -transport $t -once
    check "$t: the connector has a session on edge1" session_up client edge1 "$mark" 15
    check "$t: packets flow through edge1" flows client "$(now_ns)" 15
    check "$t: the VPC's router reaches it through edge1" test "$(via)" = fd00:b:1::1
    pause_random 0 1000
    "$LAB" kill -STOP "$D" bird edge1
    stopped=$(now_ns)
    moment "$t: edge1's BIRD stands still" "$stopped"
    session client2 edge2 -transport $t -once
    check "$t: the connector has a session on edge2" session_up client2 edge2 "$stopped"
    e=$(session_up client2 edge2 "$stopped")
    both=$(await 10 "packets" flows client2 "$stopped") || both=''
    check "$t: the router still has edge1's route when packets flow" bash -c 'birdc -s "$1" show route for "$2" all | grep -q "via fd00:b:1::1"' _ "$D/nodes/vpc/bird.ctl" "${prefix%/96}"
    check "$t: and goes through edge2" test "$(via)" = fd00:b:2::1
    figure "beside_$t" "$(ms_between "$(jq .t <<<"$e")" "${both:-x}")" 1000 "$t: from the session on edge2 to packets both ways"
    check "$t: no overlap" hand_over client client2 "$stopped"
    "$LAB" kill -CONT "$D" bird edge1
    sleep 0.5 # what it has to say is said
    check "$t: packets still flow through edge2" flows client2 "$(now_ns)"
    for c in client client2; do "$LAB" stop "$D" connector $c >/dev/null 2>&1 || true; done
    sleep 4 # BGP is up again, whatever the timers did
done
safe
checks_done
