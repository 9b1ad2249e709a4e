#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# double_takeover_back.sh: edge1 is cut off, edge2 takes the connector over, and before W is over edge1's agent is back and takes
# it over itself, while its foundation stands still. When that goes on it shuts its own gate of epoch 1, but may
# confirm nothing: closedEpoch has no gaps, the row says nothing of epoch 1 any more, and epoch 2 was edge2's. So even the
# very node that held epoch 1 waits W. Contract section 8: "Older gaps (two takeovers in a row) always end by (c)".
# given: as double_takeover
# fault: and the node of the first epoch takes it back
# expect: it waits, too
# bound: W + 1 s from the last takeover
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
W=$(AUTH_W 10)
scenario_up --lease 10
with_session

cut=$(now_ns)
"$LAB" kill -STOP "$D" foundation edge1
cut_off edge1
sleep 0.5
session client2 edge2
check "edge2 takes the claim over" await 15 "takeover" claim "$cut" '.object.spec.epoch == 2 and .object.spec.holder.node == "edge2"'
"$LAB" kill -KILL "$D" connector client2
"$LAB" kill -KILL "$D" connector client
heal edge1
healed=$(now_ns)
keeps_asking client edge1
check "edge1 takes it over, before W is over" await 10 "takeover" claim "$healed" '.object.spec.epoch == 3 and .object.spec.holder.node == "edge1"'
third=$(claim "$healed" '.object.spec.epoch == 3')
second=$(claim "$cut" '.object.spec.epoch == 2')
check "indeed before W" test $(((third - second) / 1000000)) -lt "$W"
continued=$(now_ns)
"$LAB" kill -CONT "$D" foundation edge1
check "the old gate is shut" await 15 "shut" logged edge1.foundation "$continued" '.event | IN("foundation_shut", "foundation_close")'
check "the connector has a session on edge1 again" session_up client edge1 "$third" 30
check "packets flow" flows client "$(now_ns)"
up=$(first_up client "$third")
note "cut off at 0 ms, takeovers at $(ms_between "$cut" "$second") and $(ms_between "$cut" "$third") ms, first packet $(ms_between "$third" "$up") ms after the second; W is $W ms"
check "not before W after its own takeover" test $(((up - third) / 1000000)) -ge "$W"
check "and within W + 1 s" test $(((up - third) / 1000000)) -le $((W + 1000))
check "both older epochs were waited for" await 5 "Waited" claim "$third" '.object.status.closedEpoch == 2 and .object.status.closedReason == "Waited"'
check "nothing was confirmed before" fails_with '' claim "$cut" '(.object.status.closedEpoch // 0) > 0 and .object.status.closedReason == "Confirmed"'
check "nothing came through edge2" test "$(cap_count e2 in "$cut" "$(now_ns)")" = 0
safe
checks_done
