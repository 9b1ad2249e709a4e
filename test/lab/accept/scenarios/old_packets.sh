#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# old_packets.sh: what is buffered of an old session, and its cleanup, come after its successor has begun.
# given: a connector with traffic both ways through edge1, and 2,000 large packets a second towards it; its process stands still
# fault: its next session begins, on edge1, then on edge2 while edge1's reports about the old one are held; then the old process
#   goes on with what its device, its sockets and the agent's hold, and the held writes are let go
# expect: packets of the old session die at the agent; its late release and reports change nothing of the successor's
# bound: 0 packets of the old session in the VPC after the first of the new one; 0 packets lost by the new one
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
scenario_up --lease 10 --proxy
scenario_agents
"$LAB" binding "$D" acme site-1
sending=''
for t in ${TRANSPORTS:-h3 h2}; do
    for to in edge1 edge2; do
        name=${t}_$to
        mark=$(now_ns)
        session client edge1 -transport $t -once
        check "$name: the connector has a session" session_up client edge1 "$mark" 20
        if [ -z "$sending" ]; then
            traffic "$(address_of client)"
            "$LAB" run "$D" vpc flood "$PROBE" send --bind fd20::10 --to "$(address_of client)" --port 7000 --interval 500 --size 1200 --stream 10
            sending=1
        fi
        check "$name: packets flow" flows client "$(now_ns)"
        [ $to = edge1 ] || "$LAB" proxy "$D" edge1 'hold PUT /apis/(edge\..*/routeclaims/rc-[0-9a-f]+\?|masque\..*/connectorbindings/)'
        pause_random 200 1200
        "$LAB" kill -STOP "$D" connector client
        stopped=$(now_ns)
        moment "$name: the old connector stands still" "$stopped"
        sleep 0.5 # what is sent to it fills every buffer on the way
        session client2 $to -transport $t -once
        check "$name: the next session begins" session_up client2 $to "$stopped" 10
        check "$name: packets flow" flows client2 "$stopped"
        going=$(now_ns)
        "$LAB" kill -CONT "$D" connector client
        moment "$name: it goes on" "$going"
        check "$name: it learns that it has ended" await 10 "closed" event "$going" '.event == "closed"'
        sleep 0.5
        now=$(field .spec.epoch)/$(field .spec.leaseUUID)/$(field .spec.releaseTime)
        if [ $to = edge2 ]; then
            check "$name: writes were held" test "$(hits edge1)" -ge 1
            "$LAB" proxy "$D" edge1
            sleep 2
        fi
        until=$(($(now_ns) - 300000000))
        truth "buffered_$name" "$(awk -F, -v s="$(first_up client2 "$stopped")" '$1 == 1 && $4 >= s {n++} END {print n + 0}' "$D/log/to-vpc.csv")" "$name: no packet of the old session in the VPC after the first of the new one"
        truth "lost_up_$name" "$(lost "$D/log/to-vpc.csv" 2 "$going" "$until")" "$name: the new session lost no packet over it, to the VPC"
        truth "lost_down_$name" "$(lost "$D/log/to-client2.csv" 9 "$going" "$until")" "$name: nor to the connector"
        check "$name: the row is the successor's" test "$(field .spec.epoch)/$(field .spec.leaseUUID)/$(field .spec.releaseTime)" = "$now"
        for c in client client2; do "$LAB" stop "$D" connector $c >/dev/null 2>&1 || true; done
    done
done
safe
checks_done
