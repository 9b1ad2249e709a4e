#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# handoff_stuck.sh: a session takes another's place on the same node, and the old one's packet I/O does not stop.
# given: a connector with traffic both ways through edge1; it asks edge1 again
# fault: the agent's data thread (with LAB_THREADS: every one) is frozen for 5 s when it has handed the new request on, before it can stop the old session
# expect: within the quiesce bound (1 s) nobody says that the old I/O has stopped: the new request is refused, the claim given back
# bound: 0 packets of either session after the freeze, until a later request is admitted
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
scenario_up --lease 10
scenario_agents
"$LAB" binding "$D" acme site-1
data_threads=(hf-data)
for ((i = 1; i < $(sed -n 's/^LAB_THREADS=//p' "$D/lab.env"); i++)); do data_threads+=("hf-data$i"); done
for t in ${TRANSPORTS:-h3 h2}; do
    mark=$(now_ns)
    session client edge1 -transport $t -once
    check "$t: the connector has a session" session_up client edge1 "$mark"
    traffic_on
    check "$t: packets flow" flows client "$(now_ns)"
    epoch=$(field .spec.epoch)
    "$LAB" freeze "$D" agent edge1 main # so that the request is there before the data thread stands still
    mark=$(now_ns)
    before=$(eventfds edge1 agent)
    session client2 edge1 -transport $t -once
    check "$t: the new request is in the agent" await 5 "request" asked "$before"
    for thread in "${data_threads[@]}"; do "$LAB" freeze "$D" agent edge1 "$thread"; done
    frozen=$(now_ns)
    moment "data thread frozen" "$frozen"
    "$LAB" thaw "$D" agent edge1 main
    sleep 5
    for thread in "${data_threads[@]}"; do "$LAB" thaw "$D" agent edge1 "$thread"; done
    thawed=$(now_ns)
    moment "goes on" "$thawed"
    check "$t: the claim was given back while the thread stood still" await 2 "release" claim "$frozen" '.object.spec.epoch == '"$epoch"' and .object.spec.releaseTime != null'
    check "$t: the new request is refused" await 5 "refusal" event "$mark" '.event == "refused" and .status == 503' client2
    check "$t: the old session has ended" await 5 "closed" event "$mark" '.event == "closed"'
    sleep 0.5
    truth "stuck_$t" "$(cap_count e1 in $((frozen + 20000000)) "$(now_ns)")" "$t: no packet of either session came to the VPC after the freeze"
    "$LAB" stop "$D" connector client >/dev/null 2>&1 || true
    "$LAB" stop "$D" connector client2 >/dev/null 2>&1 || true
    mark=$(now_ns)
    session client edge1 -transport $t -once
    check "$t: a later request is admitted" session_up client edge1 "$mark" 15
    check "$t: packets flow again" flows client "$(now_ns)"
    "$LAB" stop "$D" connector client >/dev/null 2>&1 || true
done
safe
checks_done
