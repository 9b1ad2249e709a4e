#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# provider_stop.sh: an agent stands still for longer than every lease, and then goes on in the middle of its work.
# given: a connector with traffic both ways through one edge, over HTTP/3, then over HTTP/2 on the other edge
# fault: SIGSTOP of that edge's agent under traffic, for 13 s at a lease of 10 s; the connector moves to the other edge; SIGCONT
# expect: what was queued in the stopped process, its sockets and its device dies there; the new session loses nothing over it
# bound: 0 packets of the old session after SIGCONT, either way; 1 s from the new request to the first packet
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1
old=client new=client2 from=edge1 to=edge2
for t in ${TRANSPORTS:-h3 h2}; do
    mark=$(now_ns)
    session $old $from -transport $t -once
    check "$t: the connector has a session on $from" session_up $old $from "$mark"
    [ $from != edge1 ] || traffic "$(address_of $old)"
    check "$t: packets flow through $from" flows $old "$(now_ns)"
    pause_random 0 3000
    stopped=$(now_ns)
    "$LAB" kill -STOP "$D" agent $from
    moment "$from's agent stopped" "$stopped"
    sleep 1
    session $new $to -transport $t -once
    check "$t: the connector has a session on $to" session_up $new $to "$stopped"
    e=$(session_up $new $to "$stopped")
    check "$t: packets flow through $to" flows $new "$stopped"
    asked=$(jq '.t - .ms * 1000000 | floor' <<<"$e")
    figure "takeover_$t" "$(ms_between "$asked" "$(flows $new "$stopped")")" 1000 "$t: from the new request to packets both ways" "$asked" "$(flows $new "$stopped")"
    while [ $(($(now_ns) - stopped)) -lt 13000000000 ]; do sleep 0.2; done
    going=$(now_ns)
    "$LAB" kill -CONT "$D" agent $from
    moment "$from's agent goes on" "$going"
    sleep 2
    until=$(($(now_ns) - 300000000))
    truth "late_burst_up_$t" "$(awk -F, -v m="$(stream_of $old)" -v s="$going" '$1 == m && $4 >= s {n++} END {print n + 0}' "$D/log/to-vpc.csv")" "$t: no packet of the old session came to the VPC after it went on"
    truth "late_burst_down_$t" "$(awk -F, -v s="$going" '$4 >= s {n++} END {print n + 0}' "$D/log/to-$old.csv")" "$t: nor to the connector"
    truth "lost_up_$t" "$(lost "$D/log/to-vpc.csv" "$(stream_of $new)" "$going" "$until")" "$t: the new session lost no packet over it, to the VPC"
    truth "lost_down_$t" "$(lost "$D/log/to-$new.csv" 9 "$going" "$until")" "$t: nor to the connector"
    check "$t: no overlap" hand_over $old $new "$stopped"
    "$LAB" kill -KILL "$D" connector $old 2>/dev/null || true
    "$LAB" stop "$D" connector $new >/dev/null || true
    check "$t: $from's agent is ready again" await 20 "ready" agent_ready $from
    old=client2 new=client from=edge2 to=edge1
done
safe
checks_done
