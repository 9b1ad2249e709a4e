#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# node_cut.sh: a node loses the API server, not its client and not the VPC; its connector is taken over meanwhile.
# given: a connector with traffic both ways through edge1, over HTTP/3, then over HTTP/2; L is 10 s (as node_cut_30: 30 s, the default)
# fault: edge1 is cut off from the API server; 1 s later the connector asks edge2, too
# expect: nobody can confirm that edge1 has closed: edge2 waits W, edge1 ends by its lease, nothing overlaps
# bound: last packet through edge1 within L; nothing through edge2 before W after the takeover, and packets within W + 1 s
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
L=10
[[ ! $NAME =~ _([0-9]+)$ ]] || L=${BASH_REMATCH[1]} # the same file by another name
W=$(AUTH_W "$L")
scenario_up --lease "$L"
scenario_agents
"$LAB" binding "$D" acme site-1
for t in ${TRANSPORTS:-h3 h2}; do
    mark=$(now_ns)
    session client edge1 -transport $t -once
    check "$t: the connector has a session on edge1" session_up client edge1 "$mark"
    traffic_on
    check "$t: packets flow" flows client "$(now_ns)"
    pause_random 0 3000
    epoch=$(field .spec.epoch)
    cut=$(now_ns)
    cut_off edge1
    moment "edge1 cut off" "$cut"
    sleep 1
    keeps_asking client2 edge2 -transport $t # it is told to come again while W runs
    check "$t: edge2 takes the claim over" await 15 "takeover" claim "$cut" '.object.spec.epoch == '$((epoch + 1))' and .object.spec.holder.node == "edge2"'
    taken=$(claim "$cut" '.object.spec.epoch == '$((epoch + 1)))
    moment "edge2 takes over" "$taken"
    moment "W is over" $((taken + W * 1000000))
    check "$t: the connector has a session on edge2 in the end" session_up client2 edge2 "$cut" $((W / 1000 + 28))
    check "$t: packets flow through edge2" flows client2 "$(jq .t <<<"$(session_up client2 edge2 "$cut")")"
    up=$(first_up client2 "$cut")
    check "$t: nothing passes before W" test $(((up - taken) / 1000000)) -ge "$W"
    figure "back_$t" "$(ms_between "$taken" "$up")" $((W + 1000)) "$t: packets through edge2 after the takeover" "$taken" "$up"
    figure "ends_$t" "$(ms_between "$cut" "$(last_up client)")" $((L * 1000)) "$t: last packet through edge1 after the cut"
    check "$t: edge1 went on while its proofs allowed it" test $((($(last_up client) - cut) / 1000000)) -gt 2000
    check "$t: no overlap" hand_over client client2 "$cut"
    heal edge1
    moment "edge1 healed"
    "$LAB" stop "$D" connector client2 >/dev/null || true
    "$LAB" kill -KILL "$D" connector client 2>/dev/null || true # it may have noticed and ended
    check "$t: edge1 is ready again" await $((30 + L)) "ready" agent_ready edge1
done
packets_safe # of the gates alone it says nothing: the agent's wait is tried beside a foundation that does not wait
checks_done
