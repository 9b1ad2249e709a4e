#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# node_loss.sh: edge1 is lost at once, agent, foundation and links. Nobody can confirm that its gates are closed, so edge2 has
# to wait W (contract section 9), and the connector is back within W + 1 s of the takeover. The last path of section 12.
# given: a connector with traffic through edge1, L 30 s
# fault: edge1 is lost at once: links, agent, foundation
# expect: nobody can confirm; edge2 waits W and then forwards
# bound: W + 1 s from the takeover to the first packet, and not before W
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
scenario_up
scenario_agents
"$LAB" binding "$D" acme site-1
mark=$(now_ns)
"$LAB" start "$D" connector client site-1 -dial-timeout 300ms # a dead edge costs it so much in each round
check "the connector has a session on edge1" await 10 "connected" event "$mark" '.event == "connected" and .edge == "edge1"'
addr=$(address_of client)
"$LAB" run "$D" client send "$PROBE" send --bind "$addr" --to fd20::10 --port 7000 --interval 4000 --stream 1 --log "$D/log/echo.csv"
mark=$(now_ns)
check "packets flow" await 5 "packets" packet_first "$D/log/echo.csv" "$mark"

lost=$(now_ns)
for l in und0 und1 bgp0 mgmt0; do "$LAB" exec "$D" edge1 ip link set "$l" down; done
for what in agent foundation; do "$LAB" kill -KILL "$D" "$what" edge1; done
check "edge2 takes the claim over" await 20 "takeover" claim "$lost" '.object.spec.holder.node == "edge2"'
taken=$(claim "$lost" '.object.spec.holder.node == "edge2"')
w=$(claim "$lost" '.object.spec.holder.node == "edge2"' >/dev/null && k admin get rclaim -o json | jq '.items[0].spec.maxLeaseDurationSeconds | 1.001 * (. / 0.999 + 0.5) + 2')
check "packets flow through edge2" await 60 "packets" awk -F, -v t="$taken" '$5 == "e2" && $4 > t {print $4; exit}' "$D/log/to-vpc.csv"
first=$(awk -F, -v t="$taken" '$5 == "e2" && $4 > t {print $4; exit}' "$D/log/to-vpc.csv")
took=$(ms_between "$taken" "$first")
note "lost at 0 ms, taken over at $(ms_between "$lost" "$taken") ms, first packet through edge2 $took ms after that; W is $w s"
note "path of section 12: node reboot or loss, $took ms, must fit W + 1 s = $(awk -v w="$w" 'BEGIN {print (w + 1) * 1000}') ms"
check "edge2 did not open before W" awk -v t="$took" -v w="$w" 'BEGIN {exit !(t >= w * 1000)}'
figure back "$took" "$(awk -v w="$w" 'BEGIN {print (w + 1) * 1000}')" "the connector is back within W + 1 s of the takeover"
moment "edge1 lost" "$lost"
moment "edge2 takes over" "$taken"
# from the history: the connector may have another epoch by now
waited() { grep -q '"closedEpoch":1,"closedReason":"Waited"' "$D/log/api.watch-routeclaims.log"; }
check "the old epoch was waited for, not confirmed" eventually 10 waited
check "no packet came from edge1 after the first one from edge2" test "$(cap_count e1 in "$first" "$(now_ns)")" = 0
packets_safe # a foundation that is killed has no word for the end of its gates
checks_done
