#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reboot.sh: edge1 has a power failure and boots again, with another boot id. Its new instance is accepted at once; but nobody can
# confirm what another kernel did, not even a foundation of the same node (they cannot be told apart from another machine of
# that name): the connector's new epoch waits W. Contract section 8: "Reboot", and Confirmed needs this kernel's bootID.
# given: a connector with traffic both ways through edge1, L 10 s
# fault: power failure of edge1, and another boot id
# expect: the instance is accepted at once; the old epoch is waited for, not confirmed
# bound: W + 1 s from the takeover to the first packet, and not before W
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
W=$(AUTH_W 10)
scenario_up --lease 10
with_session keeps_asking
before=$(field .spec.holder.bootID)

down=$(now_ns)
"$LAB" reboot "$D" edge1
dark=$(now_ns)
check "the route is withdrawn: its BGP session broke off" await 5 "withdrawn" text_seen "$D/log/vpc.routes.log" "$down" '^[0-9]+ Deleted fd12'
"$LAB" start "$D" foundation edge1
"$LAB" start "$D" agent edge1
started=$(now_ns)
check "the new instance is accepted at once" await 10 "accepted" seen "$D/log/api.watch-providerinstances.log" "$down" \
    '.object.spec.nodeName == "edge1" and .object.spec.epoch == 2 and .object.status.acceptedEpoch == 2'
check "edge1 takes the claim over, with its new boot id" await 10 "takeover" claim "$down" '.object.spec.epoch == 2 and .object.spec.holder.node == "edge1" and .object.spec.holder.bootID != "'"$before"'" and .object.spec.previous.bootID == "'"$before"'"'
taken=$(claim "$down" '.object.spec.epoch == 2')
check "the connector has a session again" session_up client edge1 "$taken" 30
check "packets flow" flows client "$(now_ns)"
up=$(first_up client "$taken")
note "power failure at 0 ms; last packet at $(ms_between "$down" "$(awk -F, -v t="$taken" '$1 == 1 && $4 < t {l = $4} END {print l}' "$D/log/to-vpc.csv")") ms; new processes at $(ms_between "$down" "$started") ms; takeover at $(ms_between "$down" "$taken") ms; first packet $(ms_between "$taken" "$up") ms after it; W is $W ms"
check "not before W" test $(((up - taken) / 1000000)) -ge "$W"
figure back "$(ms_between "$taken" "$up")" $((W + 1000)) "and within W + 1 s"
moment "power failure" "$down"
moment "takeover" "$taken"
check "the epoch of the other boot was waited for, not confirmed" test "$(field .status.closedEpoch)/$(field .status.closedReason)" = 1/Waited
check "no packet passed in between" test "$(cap_count e1 in $((dark + 100000000)) "$taken")" = 0
check "the finalizer of the other boot stays, as any other node's would" test "$(field '.metadata.finalizers' | jq length)" = 2
name=$(field .metadata.name)
mark=$(now_ns)
k operator delete rclaim "$name" --wait=false >/dev/null
check "a deletion waits for it W long, then the object goes" await 35 "DELETED" seen "$D/log/api.watch-routeclaims.log" "$mark" '.type == "DELETED"'
gone=$(seen "$D/log/api.watch-routeclaims.log" "$mark" '.type == "DELETED"')
note "deleted at 0 ms, gone at $(ms_between "$mark" "$gone") ms"
check "not before W" test $(((gone - mark) / 1000000)) -ge "$W"
check "the connector comes back with a new row" session_up client edge1 "$gone"
check "packets flow" flows client "$(now_ns)"
safe
checks_done
