#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reconnect_storm.sh: one connector asks again and again, from many places at once.
# given: a connector with traffic both ways: client over HTTP/3 and client2 over HTTP/2 both are it, and each comes back at once
# fault: for 8 s four more copies of it on each ask every 10 ms, all at edge1; then the same, half of them at edge2
# expect: sessions follow one another, no two of them forward; the agents live; when it is over the connector has its session. Takeovers in a row
#   leave a gap that nobody may confirm (contract section 8): the last one then waits W
# bound: 0 packets of an earlier session after the first of a later one; from the end of the storm to packets both ways 1 s, W + 1 s with two edges
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
W=$(AUTH_W 10)
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1
pids() { cut -d' ' -f1 "$D"/run/edge?.{agent,foundation}.pid | tr '\n' ' '; }
# copies EDGE-FOR-CLIENT2: four on each client, without device, half of them over HTTP/2
copies() {
    local i c e t
    for i in 1 2 3 4; do
        t=h3
        [ $((i % 2)) = 0 ] || t=h2
        for c in client client2; do
            e=edge1
            [ $c = client ] || e=$1
            "$LAB" run "$D" $c "copy$i" "$CONNECTOR" -tun '' -transport $t -retry 10ms -dial-timeout 3s -edges "$e=[fd00:c::${e#edge}]:4433" \
                -ca "$D/pki/edge-ca.crt" -cert "$D/pki/site-1.crt" -key "$D/pki/site-1.key"
        done
    done
}
copies_end() { local i c; for i in 1 2 3 4; do for c in client client2; do "$LAB" kill -KILL "$D" "copy$i" $c; done; done; }
# late_packets SINCE: packets at the VPC host that belong to an earlier session than one before them. A packet is its client's latest
# session's: a client says that it has one before it sends anything by it.
late_packets() {
    local c
    for c in client client2; do
        jq -Rr --argjson s "$1" --arg m "$(stream_of $c)" 'fromjson? // empty | select(.event == "connected" and .t >= $s) | "\(.t) s \($m)"' "$D/log/$c.connector.log"
    done >"$D/sessions.txt"
    { sort -n "$D/sessions.txt" | awk '{print $0, NR}'
        awk -F, -v s="$1" '($1 == 1 || $1 == 2) && $4 >= s && NF == 6 {print $4, "p", $1}' "$D/log/to-vpc.csv"; } | sort -n |
        awk '$2 == "s" { if ($4 > at[$3]) at[$3] = $4; next }
            !at[$3] { next }
            { seen++; if (at[$3] < top) { bad++; print "late: " $0 > "/dev/stderr" } else top = at[$3] }
            END { print seen ? bad + 0 : "no packet at all" }'
}
first=''
declare -A bound=([edge1]=1000 [edge2]=$((W + 1000)))
for part in edge1 edge2; do
    echo "-- copies at edge1 and $part"
    begun=$(now_ns)
    keeps_asking client edge1 -retry 10ms
    check "$part: the connector has a session" session_up client edge1 "$begun" 20
    [ -n "$first" ] || { traffic "$(address_of client)"; first=$(pids); }
    check "$part: packets flow" flows client "$(now_ns)"
    keeps_asking client2 "$part" -transport h2 -retry 10ms
    pause_random 200 1000
    epoch=$(field .spec.epoch)
    copies "$part"
    stormed=$(now_ns)
    moment "storm at edge1 and $part" "$stormed"
    sleep 8
    copies_end
    "$LAB" kill -KILL "$D" connector client2
    over=$(now_ns)
    moment "the storm is over" "$over"
    both=$(await 30 "packets" flows client "$over") || both=''
    figure "after_$part" "$(ms_between "$over" "${both:-x}")" "${bound[$part]}" "$part: from the end of the storm to packets both ways" "$over" "${both:-$over}"
    sessions=$(cat "$D"/log/client*.copy?.log "$D"/log/client*.connector.log | jq -Rr --argjson a "$stormed" --argjson b "$over" 'fromjson? // empty | select(.t >= $a and .t <= $b) | .event' | sort | uniq -c | awk '{printf "%s %s, ", $1, $2}')
    note "$part: in 8 s: $sessions"
    count=$(cat "$D"/log/client*.copy?.log "$D"/log/client*.connector.log | jq -Rr --argjson a "$stormed" --argjson b "$over" 'fromjson? // empty | select(.t >= $a and .t <= $b and .event == "connected") | .t' | wc -l)
    if [ $part = edge1 ]; then
        check "$part: sessions came and went" test "$count" -ge 20
        check "$part: without a write of the claim" test "$(field .spec.epoch)" = "$epoch"
    else
        check "$part: takeovers came and went" test $(($(field .spec.epoch) - epoch)) -ge 3
    fi
    truth "late_$part" "$(late_packets "$begun" 2>>"$D/outside.txt")" "$part: no packet of an earlier session after the first of a later one"
    measured "sessions_$part" "$count" "$part: sessions in 8 s (number, not a time)"
    check "$part: the same processes all the time" test "$(pids)" = "$first"
    check "$part: one row" test "$(k admin get rclaim -o name | wc -l)" = 1
    "$LAB" stop "$D" connector client >/dev/null 2>&1 || true
    rm -f "$D"/log/client*.copy?.log
done
safe
checks_done
