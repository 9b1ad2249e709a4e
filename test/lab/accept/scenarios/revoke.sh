#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# revoke.sh: a suspended connector's packets end at once.
# given: a connector with traffic both ways through edge1, over HTTP/3, then over HTTP/2
# fault: the operator suspends its binding, at an arbitrary moment
# expect: the last packet, either way, as soon as the agent has been told
# bound: 50 ms from the first sign that the suspension had landed (a watch's event, the API server's answer) to the last packet
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1
suspended() { k operator patch cb acme.site-1 --type merge -p '{"spec":{"suspended":'"$1"'}}' >/dev/null && now_ns >"$D/answered"; }
for t in h3 h2; do
    mark=$(now_ns)
    keeps_asking client edge1 -transport $t
    for round in 1 2 3; do
        check "$t, $round: the connector has a session" session_up client edge1 "$mark"
        traffic_on
        check "$t, $round: packets flow" flows client "$(now_ns)"
        pause_random 0 700
        mark=$(now_ns)
        suspended true
        received=$(await 5 "the suspension" api_received "$mark" patch connectorbindings acme.site-1)
        told=$(await 5 "its event" seen "$D/log/api.watch-connectorbindings.log" "$mark" '.object.spec.suspended == true')
        answered=$(<"$D/answered")
        told=$((told < answered ? told : answered))
        moment "suspended" "$told"
        check "$t, $round: the session ends" await 5 "closed" event "$mark" '.event == "closed"'
        sleep 0.5 # ten times the bound: a late packet would come now
        up=$(last_up client) down=$(last_down client)
        last=$((up > down ? up : down))
        figure "last_packet_$t" "$(ms_between "$told" $last)" 50 "$t: last packet after the suspension had landed" "$told" $((last > told ? last : told))
        measured "received_$t" "$(ms_between "$received" $last)" "$t: the same from the API server's receipt of it"
        check "$t, $round: packets went on up to the suspension" test $((told - up)) -lt 100000000
        mark=$(now_ns)
        suspended false
        moment "allowed again"
    done
    "$LAB" stop "$D" connector client >/dev/null 2>&1 || true
done
safe
checks_done
