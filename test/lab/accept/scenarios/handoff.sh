#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# handoff.sh: a connector's new session takes the old one's place on the same node, under traffic.
# given: a connector with traffic both ways through edge1
# fault: it asks edge1 again, from another place: HTTP/3 to HTTP/2, HTTP/2 to HTTP/3, HTTP/3 to HTTP/3
# expect: the old session's packets end before the first of the new one's
# bound: 100 ms between the last packet of the old session and the first of the new one, either way
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1
mark=$(now_ns)
session client edge1 -transport h3 -once
check "the connector has a session" session_up client edge1 "$mark"
traffic "$(address_of client)"
check "packets flow" flows client "$(now_ns)"
old=client new=client2
for t in h3_h2:h2 h2_h3:h3 h3_h3:h3; do
    name=${t%:*}
    pause_random 200 1200
    mark=$(now_ns)
    session $new edge1 -transport "${t#*:}" -once
    check "$name: the new request is admitted" session_up $new edge1 "$mark"
    moment "$name"
    check "$name: packets flow" flows $new "$mark"
    check "$name: the old session has ended" await 5 "closed" event "$mark" '.event == "closed"' $old
    sleep 0.3 # whatever is late
    check "$name: no overlap" hand_over $old $new "$mark"
    for way in up down; do
        last=$(last_$way $old) first=$(first_$way $new "$mark")
        figure "gap_${way}_$name" "$(ms_between "$last" "$first")" 100 "$name: gap, $way" "$last" "$first"
    done
    "$LAB" kill -KILL "$D" connector $old 2>/dev/null || true # it has noticed and ended
    swap=$old old=$new new=$swap
done
safe
checks_done
