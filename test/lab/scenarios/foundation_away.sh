#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# foundation_away.sh: edge1's foundation is killed, and edge2 takes the connector over while it is away. edge1's agent stops at
# once, but nobody confirms that its gate is closed: edge2 waits. The foundation is started again before W is over: it closes
# what its pinned map still holds and confirms, and edge2 opens at once. Then the same with its pinned map lost. Contract
# section 8: "Restart", (b), and "At start it also looks at the rows whose previous.node is its own".
# given: a connector with traffic both ways, L 10 s
# fault: its foundation killed, the other edge takes over, the foundation comes back, with and without its map
# expect: it confirms what it finds closed, the other edge opens at once
# bound: before W
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
W=$(AUTH_W 10)
scenario_up --lease 10
with_session

old=client new=client2 from=edge1 to=edge2
for map in kept lost; do
    echo "-- the pinned map is $map"
    epoch=$(field .spec.epoch)
    "$LAB" kill -KILL "$D" foundation $from
    sleep 1
    check "traffic goes on without it" flows $old "$(now_ns)"
    mark=$(now_ns)
    session $new $to
    check "$to takes the claim over" await 10 "takeover" claim "$mark" '.object.spec.epoch == '$((epoch + 1))' and .object.spec.holder.node == "'$to'"'
    taken=$(claim "$mark" '.object.spec.epoch == '$((epoch + 1)))
    check "$from's agent ends the session at once" await 2 "closed" event "$mark" '.event == "closed"' $old
    sleep 4
    check "nobody opened meanwhile" fails_with '' logged $to.foundation "$taken" '.event == "foundation_open"'
    check "and nobody confirmed" fails_with '' claim "$taken" '.object.status.closedEpoch == '"$epoch"
    if [ $map = lost ]; then # as after the loss of a node's bpf file system
        umount -l "$D/nodes/$from/bpf"
        mount -t bpf lost "$D/nodes/$from/bpf"
    fi
    again=$(now_ns)
    "$LAB" start "$D" foundation $from
    check "$from's foundation is back and confirms" await 5 "confirmed" claim "$again" '.object.status.closedEpoch == '"$epoch"' and .object.status.closedReason == "Confirmed"'
    check "$to opens" session_up $new $to "$mark" 5
    check "packets flow through $to" flows $new "$(now_ns)"
    check "no overlap" hand_over $old $new "$mark"
    up=$(first_up $new "$mark")
    note "taken over at 0 ms; last packet through $from at $(ms_between "$taken" "$(last_up $old)") ms; foundation back at $(ms_between "$taken" "$again") ms; first packet through $to at $(ms_between "$taken" "$up") ms; W is $W ms"
    figure "back_$map" "$(ms_between "$taken" "$up")" "$W" "that was before W was over, by the confirmation alone"
moment "taken over" "$taken"
moment "foundation back" "$again"
    old=client2 new=client from=edge2 to=edge1
done
check "edge2's agent has its device back, and is ready" await 20 "ready" agent_ready edge2
safe
checks_done
