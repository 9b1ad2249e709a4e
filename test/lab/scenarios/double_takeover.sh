#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# double_takeover.sh: edge1 loses the API server, not its client and not the VPC. edge2 takes the connector over and has to wait
# W; before W is over, edge2's process dies and another one takes it over once more. Closing epoch 2 says nothing about epoch 1:
# the new epoch waits its own W from the second takeover on, and nothing overlaps. Contract section 8, closedEpoch.
# given: a connector with traffic both ways through edge1, L 10 s
# fault: edge1 cut off from the API server; edge2 takes over and dies before W; its next process takes over
# expect: the last epoch waits its own W; edge1 ends by its lease
# bound: W + 1 s from the last takeover; last packet through edge1 within L
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
W=$(AUTH_W 10)
scenario_up --lease 10
with_session

cut=$(now_ns)
cut_off edge1
sleep 1
session client2 edge2
check "edge2 takes the claim over" await 15 "takeover" claim "$cut" '.object.spec.epoch == 2 and .object.spec.holder.node == "edge2"'
sleep 2
"$LAB" kill -KILL "$D" agent edge2
"$LAB" kill -KILL "$D" connector client2
"$LAB" start "$D" agent edge2
check "edge2's new process is ready" await 20 "ready" agent_ready edge2
again=$(now_ns)
keeps_asking client2 edge2
check "edge2's new process takes it over before W is over" await 5 "takeover" claim "$again" '.object.spec.epoch == 3'
second=$(claim "$again" '.object.spec.epoch == 3')
first=$(claim "$cut" '.object.spec.epoch == 2')
check "the second takeover came before W after the first" test "$(((second - first) / 1000000))" -lt "$W"
closed_in_between() { claim "$first" '(.object.status.closedEpoch // 0) > 0 and .object.spec.epoch < 3'; }
check "nothing was confirmed in between" fails_with '' closed_in_between
check "the connector has a session on edge2 in the end" session_up client2 edge2 "$again" 40
check "packets flow through edge2" flows client2 "$(now_ns)"
up=$(first_up client2 "$second")
note "edge1 cut off at 0 ms; takeovers at $(ms_between "$cut" "$first") and $(ms_between "$cut" "$second") ms; last packet through edge1 at $(ms_between "$cut" "$(last_up client)") ms; first through edge2 at $(ms_between "$cut" "$up") ms; W is $W ms"
check "edge2 did not open before W after the second takeover" test "$(((up - second) / 1000000))" -ge "$W"
figure back "$(ms_between "$second" "$up")" $((W + 1000)) "and within W + 1 s"
moment "edge1 cut off" "$cut"
moment "edge2 takes over" "$first"
moment "edge2's next process takes over" "$second"
check "edge1 went on while its proofs allowed it" test "$((($(last_up client) - cut) / 1000000))" -gt 2000
figure ends "$(ms_between "$cut" "$(last_up client)")" 10000 "edge1 stopped within its lease"
check "no overlap" hand_over client client2 "$second"
check "both older epochs were waited for, in one step" test "$(k admin get rclaim -o 'jsonpath={.items[0].status.closedEpoch} {.items[0].status.closedReason}')" = "2 Waited"
heal edge1
healed=$(now_ns)
check "edge1 is back, and shuts the old gate for good" await 40 "close" logged edge1.foundation "$healed" '.event == "foundation_close"'
sleep 1
check "nothing passes through edge1 any more" test "$(cap_count e1 in "$healed" "$(now_ns)")" = 0
check "edge2 goes on" flows client2 "$(now_ns)"
safe
checks_done
