#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# holdfast.sh: what other movers are tried with, for a connector that has to notice by itself (planned_move has the planned move).
# given: a connector that knows both edges, with traffic both ways through edge1, over HTTP/3, then over HTTP/2; L is 10 s
# fault: SIGKILL of the agent; then the node goes silent, agent and foundation with it
# expect: a killed agent is noticed at once (port unreachable, reset) and the other edge forwards when the foundation has confirmed;
#   of a silent node nobody can confirm anything: the other edge waits W
# bound: none in the contract (the connector's share is its own): what is measured is printed
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/lib/moves.sh
. "$root/test/lab/lib/moves.sh"
# shellcheck source=test/lab/accept/peers/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1

kill_agent() { "$LAB" kill -KILL "$D" agent edge1; }
again() { "$LAB" start "$D" agent edge1; }
dark() { silence edge1; }
light() { unsilence edge1; }
# moved TRANSPORT WORDS FAULT HEAL SECONDS
moved() {
    local t=$1 words="$2" mark until up down
    mark=$(now_ns)
    "$LAB" start "$D" connector client site-1 -transport "$t" -idle 1s -dial-timeout 300ms -edges "edge1=[fd00:c::1]:4433,edge2=[fd00:c::2]:4433"
    check "$t, $words: the connector has a session on edge1" session_up client edge1 "$mark"
    traffic_on
    check "$t, $words: packets flow" flows client "$(now_ns)"
    pause_random 500 3000
    mark=$(now_ns)
    moment "$words" "$mark"
    $3
    check "$t, $words: the connector is on edge2" session_up client edge2 "$mark" "$5"
    check "$t, $words: packets flow through edge2" flows client "$(jq .t <<<"$(session_up client edge2 "$mark")")"
    sleep 2
    until=$(($(now_ns) - 100000000))
    $4
    up=$(gap "$D/log/to-vpc.csv" 1 "$mark" "$until") || up='?'
    down=$(gap "$D/log/to-client.csv" 9 "$mark" "$until") || down='?'
    move_of_edges "$t" "$words" "$up" "$down" edge1 edge2 "$mark" "$until"
    "$LAB" stop "$D" connector client >/dev/null || true
    check "$t, $words: edge1 is ready again" await 40 "ready" agent_ready edge1
}
for t in ${TRANSPORTS:-h3 h2}; do
    moved $t "SIGKILL of the agent; the connector notices by itself" kill_agent again 10
    moved $t "the edge's node goes silent (L = 10 s)" dark light 30
done
safe
checks_done
