#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# provider_kill.sh: an agent dies, its foundation lives.
# given: a connector with traffic both ways through one edge, over HTTP/3, then over HTTP/2 on the other edge
# fault: SIGKILL of that edge's agent, at an arbitrary moment; the connector asks the other edge
# expect: the living foundation confirms that the old gate is closed, the other edge forwards, nothing overlaps
# bound: 1 s from the connector's new request to the first packet that passed, both ways; the same for the withdrawal to reach the router
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/lib/moves.sh
. "$root/test/lab/lib/moves.sh"
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1
old=client new=client2 from=edge1 to=edge2
for t in h3 h2; do
    mark=$(now_ns)
    session $old $from -transport $t -once
    check "$t: the connector has a session on $from" session_up $old $from "$mark"
    [ $t != h3 ] || traffic "$(address_of $old)"
    check "$t: packets flow through $from" flows $old "$(now_ns)"
    pause_random 0 3000
    killed=$(now_ns)
    "$LAB" kill -KILL "$D" agent $from
    moment "$from's agent killed" "$killed"
    session $new $to -transport $t -once
    check "$t: the connector has a session on $to" session_up $new $to "$killed"
    e=$(session_up $new $to "$killed")
    check "$t: packets flow through $to" flows $new "$killed"
    asked=$(jq '.t - .ms * 1000000 | floor' <<<"$e")
    moment "asks $to" "$asked"
    figure "takeover_$t" "$(ms_between "$asked" "$(flows $new "$killed")")" 1000 "$t: from the new request to packets both ways" "$asked" "$(flows $new "$killed")"
    check "$t: no overlap" hand_over $old $new "$killed"
    until=$(now_ns)
    [ -z "${ACCEPT:-}" ] || figure "withdrawn_$t" "$(remote_withdrawal $from "$killed")" 1000 "$t: no route through $from at the VPC's router, after $from has withdrawn it" "$killed" "$until"
    move_of_edges "$t" "SIGKILL of the agent; the connector asks the other edge at once" "$(ms_between "$(last_up $old)" "$(first_up $new "$killed")")" \
        "$(ms_between "$(last_down $old)" "$(first_down $new "$killed")")" $from $to "$killed" "$until"
    check "$t: the old epoch was confirmed closed, not waited for" test "$(field .status.closedReason)" = Confirmed
    "$LAB" kill -KILL "$D" connector $old 2>/dev/null || true # it may have noticed and ended
    "$LAB" stop "$D" connector $new >/dev/null || true
    "$LAB" start "$D" agent $from
    check "$t: $from's agent is ready again" await 20 "ready" agent_ready $from
    old=client2 new=client from=edge2 to=edge1
done
safe
checks_done
