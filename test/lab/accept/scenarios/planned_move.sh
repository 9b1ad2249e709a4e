#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# planned_move.sh: a node is drained under traffic.
# given: a connector that knows both edges, with traffic both ways, over HTTP/3, then over HTTP/2
# fault: SIGTERM to the agent of its edge, at an arbitrary moment
# expect: the agent tells it to go, releases its claim and ends with status 0; the other edge takes it over
# bound: 300 ms without packets, either way; 1 s from the route's withdrawal on the node to that at the VPC's router
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/lib/moves.sh
. "$root/test/lab/lib/moves.sh"
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1
from=edge1 to=edge2
for t in h3 h2; do
    mark=$(now_ns)
    "$LAB" start "$D" connector client site-1 -transport $t -edges "$from=[fd00:c::${from#edge}]:4433,$to=[fd00:c::${to#edge}]:4433"
    check "$t: the connector has a session on $from" session_up client $from "$mark"
    traffic_on
    check "$t: packets flow" flows client "$(now_ns)"
    pause_random 500 3000
    mark=$(now_ns)
    moment "$from drains" "$mark"
    check "$t: SIGTERM drains $from to status 0" test "$("$LAB" stop "$D" agent $from)" = 0
    moment "$from's agent has ended"
    check "$t: the connector is on $to" session_up client $to "$mark"
    check "$t: packets flow through $to" flows client "$(jq .t <<<"$(session_up client $to "$mark")")"
    sleep 0.5
    until=$(($(now_ns) - 100000000))
    up=$(gap "$D/log/to-vpc.csv" 1 "$mark" "$until") down=$(gap "$D/log/to-client.csv" 9 "$mark" "$until") || true
    figure "gap_up_$t" "$up" 300 "$t: longest time without packets to the VPC" "$mark" "$until"
    figure "gap_down_$t" "$down" 300 "$t: longest time without packets to the connector" "$mark" "$until"
    [ -z "${ACCEPT:-}" ] || figure "withdrawn_$t" "$(remote_withdrawal $from "$mark")" 1000 "$t: no route through $from at the VPC's router, after $from has withdrawn it" "$mark" "$until"
    move_of_edges "$t" "planned: SIGTERM of the agent" "$up" "$down" $from $to "$mark" "$until"
    check "$t: the old epoch was released" test "$(field .status.closedReason)" = Confirmed
    "$LAB" stop "$D" connector client >/dev/null || true
    "$LAB" start "$D" agent $from
    check "$t: $from is ready again" await 20 "ready" agent_ready $from
    from=edge2 to=edge1
done
safe
checks_done
