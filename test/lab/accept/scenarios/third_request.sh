#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# third_request.sh: a connector asks a third time while its second session is taking the first one's place.
# given: a connector with traffic both ways through edge1
# fault: its second and third requests reach the agent together (its control thread stands still until both are there)
# expect: the second takes the first one's place; the third is told 503 and when to come again, and is admitted when it does
# bound: 0 packets of an earlier session after the first of a later one
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1
third() { jq -c 'select(.event == "'"$1"'")' "$D/log/client.third.log" 2>/dev/null | first_line; } # EVENT
for t in ${TRANSPORTS:-h3 h2}; do
    mark=$(now_ns)
    session client edge1 -transport $t -once
    check "$t: the connector has a session" session_up client edge1 "$mark" 15
    traffic_on
    check "$t: packets flow" flows client "$(now_ns)"
    pause_random 200 1200
    rm -f "$D/log/client.third.log"
    mark=$(now_ns)
    "$LAB" freeze "$D" agent edge1 main
    before=$(eventfds edge1 agent)
    session client2 edge1 -transport $t -once
    check "$t: the second request is in the agent" await 5 "request" asked "$before"
    "$LAB" run "$D" client third "$CONNECTOR" -once -tun '' -dial-timeout 10s -transport $t -edges 'edge1=[fd00:c::1]:4433' \
        -ca "$D/pki/edge-ca.crt" -cert "$D/pki/site-1.crt" -key "$D/pki/site-1.key"
    sleep 1 # the agent does not tell of a second one while the first is not taken; a third that is late fails below
    moment "$t: three"
    "$LAB" thaw "$D" agent edge1 main
    check "$t: the second takes the first one's place" session_up client2 edge1 "$mark"
    check "$t: the third is refused with 503" test "$(await 5 "refusal" third refused | jq .status)" = 503
    check "$t: and told when to come again" test "$(third refused | jq -r '.headers["retry-after"] | tonumber')" -ge 1
    check "$t: because of the second" test -n "$(recorded edge1 reject HandoffInProgress "$mark")"
    check "$t: packets flow" flows client2 "$(now_ns)"
    check "$t: the first has ended" await 5 "closed" event "$mark" '.event == "closed"'
    check "$t: no overlap" hand_over client client2 "$mark"
    again=$(now_ns)
    session client edge1 -transport $t -once
    check "$t: a request after that is admitted" session_up client edge1 "$again"
    check "$t: packets flow" flows client "$(now_ns)"
    check "$t: no overlap" hand_over client2 client "$again"
    for c in client client2; do "$LAB" stop "$D" connector $c >/dev/null 2>&1 || true; done
done
safe
checks_done
