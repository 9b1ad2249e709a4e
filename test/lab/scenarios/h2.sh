#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# h2.sh: HTTP/2 with a client that we did not write (golang.org/x/net/http2): session, ping, TCP with checksum; a suspension under
# full load; a node that HTTP/3 cannot reach; and the same connector from HTTP/3 to HTTP/2 and back on one node, where one session
# replaces the other and no two forward.
# given: a client of golang.org/x/net/http2
# fault: suspended under full load; HTTP/3 blocked; HTTP/3 to HTTP/2 and back on one node; drained
# expect: one session replaces the other, no two forward
# bound: no packet after the connector was told; gap at most 1 s
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1
transport() { k admin get cb acme.site-1 -o 'jsonpath={.status.lastSession.transport}'; }
used() { [ "$(transport)" = "$1" ] && now_ns; }
over_h2() { [ "$(jq -r '.transport // "h3"' <<<"$1")" = h2 ]; }
metric() { "$LAB" exec "$D" edge1 curl -gsf 'http://[fd00:c::1]:9781/metrics' | awk -v m="$1" '$1 == m {print $2}'; }

check "a stranger is refused over HTTP/2, too" test "$(try stranger -transport h2 | jq -r 'select(.event == "refused") | .status')" = 403
check "no certificate: no HTTP at all" test "$(try none -transport h2 | jq -r 'select(.event == "failed") | .transport')" = h2
check "another ALPN is refused" test "$(try site-1 -transport h2 -alpn http/1.1 | jq -r 'select(.event == "failed") | .event')" = failed

mark=$(now_ns)
session client edge1 -transport h2 -once
check "the connector has a session over HTTP/2" session_up client edge1 "$mark"
e=$(session_up client edge1 "$mark")
check "indeed over HTTP/2" over_h2 "$e"
note "admitted $(jq .ms <<<"$e") ms after its request"
check "its binding says so" await 10 "HTTP/2" used HTTP/2
addr=$(address_of client)
check "ping, small" "$LAB" exec "$D" client ping -I "$addr" -c 3 -i 0.05 -W 2 fd20::10
check "ping with 1232 bytes" "$LAB" exec "$D" client ping -I "$addr" -c 3 -i 0.05 -W 2 -s 1232 -M do fd20::10
check "ping back" "$LAB" exec "$D" vpc ping -c 3 -i 0.05 -W 2 "$addr"
check "TCP up and down, SHA-256 agrees" "$LAB" exec "$D" client "$PROBE" tcp-xfer --to fd20::10 --port 7001 --count 20000000
check "TCP from the VPC host, SHA-256 agrees" "$LAB" exec "$D" vpc "$PROBE" tcp-xfer --to "$addr" --port 7001 --count 20000000
check "counted by transport" test "$(metric 'holdfast_flows{transport="http2"}')" = 1
check "no flow over HTTP/3" test "$(metric 'holdfast_flows{transport="http3"}')" = 0

# Full load downwards, then suspended: what TCP holds must not come late.
traffic "$addr"
check "packets flow" flows client "$(now_ns)"
"$LAB" run "$D" vpc flood "$PROBE" send --bind fd20::10 --to "$addr" --port 7000 --interval 50 --size 1200 --stream 10
sleep 1
mark=$(now_ns)
k operator patch cb acme.site-1 --type merge -p '{"spec":{"suspended":true}}' >/dev/null
mark=$(await 5 "the suspension" api_received "$mark" patch connectorbindings acme.site-1)
check "the session ends" await 5 "closed" event "$mark" '.event == "closed"'
closed=$(jq .t <<<"$(event "$mark" '.event == "closed"')")
gate=$(await 5 "the gate closes" logged edge1.foundation "$mark" '.event == "foundation_close"')
check "the kernel gate closes" test -n "$gate"
sleep 1
last=$(packet_last "$D/log/to-client.csv" 0 "$(now_ns)")
note "suspended at 0 ms; last packet at the connector $(ms_between "$mark" "$last") ms, told $(ms_between "$mark" "$closed") ms, gate closed $(ms_between "$mark" "$gate") ms; resets for the fence: $(metric holdfast_http2_fence_resets_total)"
check "no packet at the connector after it was told" test "$last" -le "$closed"
figure suspended_under_load "$(ms_between "$mark" "$last")" 1000 "last packet after a suspension under full load"
check "no packet out of the VPC's gate after it closed" test "$(cap_count e1 in $((gate + 5000000)) "$(now_ns)")" = 0
"$LAB" stop "$D" flood vpc >/dev/null || true
"$LAB" stop "$D" connector client >/dev/null 2>&1 || true
k operator patch cb acme.site-1 --type merge -p '{"spec":{"suspended":false}}' >/dev/null

# HTTP/3 is blocked: the connector falls back, timed.
block() { "$LAB" exec "$D" "$1" nft -f - <<<'table inet noudp { chain in { type filter hook input priority -300; udp sport 4433 drop; }; }'; }
unblock() { "$LAB" exec "$D" "$1" nft delete table inet noudp; }
block client
mark=$(now_ns)
"$LAB" start "$D" connector client site-1 -edges 'edge1=[fd00:c::1]:4433' -transport auto -dial-timeout 1s
check "UDP blocked: the connector comes over HTTP/2" session_up client edge1 "$mark"
e=$(session_up client edge1 "$mark")
check "by fallback" over_h2 "$e"
note "session over HTTP/2 $(ms_between "$mark" "$(jq .t <<<"$e")") ms after the first try over HTTP/3 (dial time-out 1 s)"
check "packets flow" flows client "$(now_ns)"
"$LAB" stop "$D" connector client >/dev/null || true
unblock client

# From HTTP/3 to HTTP/2 and back on one node, while the other is open: one session replaces the other.
mark=$(now_ns)
session client edge1 -once
check "a session over HTTP/3" session_up client edge1 "$mark"
check "packets flow over it" flows client "$(now_ns)"
epoch=$(field .spec.epoch)
mark=$(now_ns)
session client2 edge1 -transport h2 -once
check "a request over HTTP/2 takes its place" session_up client2 edge1 "$mark"
e=$(session_up client2 edge1 "$mark")
check "over HTTP/2" over_h2 "$e"
check "packets flow over HTTP/2" flows client2 "$(jq .t <<<"$e")"
check "the old session was told" await 5 "closed" event "$mark" '.event == "closed"'
check "HTTP/3 to HTTP/2: no two forwarded" hand_over client client2 "$mark"
figure gap_h3_to_h2 "$(ms_between "$(last_up client)" "$(first_up client2 "$mark")")" 1000 "HTTP/3 to HTTP/2: gap on one node"
moment "HTTP/2 replaces HTTP/3" "$mark"
check "same claim, same epoch" test "$(field .spec.epoch)" = "$epoch"
mark=$(now_ns)
session client edge1 -once
check "a request over HTTP/3 takes the place of the one over HTTP/2" session_up client edge1 "$mark"
e=$(session_up client edge1 "$mark")
check "packets flow over HTTP/3" flows client "$(jq .t <<<"$e")"
check "the session over HTTP/2 was told" await 5 "closed" event "$mark" '.event == "closed"' client2
check "HTTP/2 to HTTP/3: no two forwarded" hand_over client2 client "$mark"
figure gap_h2_to_h3 "$(ms_between "$(last_up client2)" "$(first_up client "$mark")")" 1000 "HTTP/2 to HTTP/3: gap on one node"
moment "HTTP/3 replaces HTTP/2" "$mark"
check "same claim, same epoch" test "$(field .spec.epoch)" = "$epoch"

# A planned move: edge1 drains, a session over HTTP/2 is told and goes to edge2.
"$LAB" stop "$D" connector client >/dev/null || true
mark=$(now_ns)
"$LAB" start "$D" connector client site-1 -transport h2
check "a session over HTTP/2 on edge1" session_up client edge1 "$mark"
check "packets flow" flows client "$(now_ns)"
mark=$(now_ns)
check "SIGTERM drains edge1 to status 0" test "$("$LAB" stop "$D" agent edge1)" = 0
check "the connector is on edge2, over HTTP/2" session_up client edge2 "$mark"
check "packets flow through edge2" flows client "$(jq .t <<<"$(session_up client edge2 "$mark")")"
safe
checks_done
