#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# all_stalled.sh: nobody is left who could close anything: two absolute deadlines do, the data path's and the kernel gate's.
# given: a connector with traffic both ways through edge1, over HTTP/3, then over HTTP/2; packets seen at the VPC host and at the TUN
# fault: the agent's control thread is frozen (its data thread goes on), and 4 s later its foundation stopped
# expect: the data path ends with the session deadline, L - g after the last renewal; the gate with L after it
# bound: 50 ms from either deadline to the last packet
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
L=10 G=2 # lease and provider guard, s
scenario_up --lease $L
scenario_agents
"$LAB" binding "$D" acme site-1
# last_at_tun TRANSPORT: packets into the device have passed the gate, whether anybody reads them or not; the last one's time.
last_at_tun() { awk -F, '$3 == "out" {t = $1} END {print t ? t : 0}' "$D/log/tun-$1.csv"; }
renewed() { k admin get pi masque.edge1 -o 'jsonpath={.spec.renew.bootTimeMicros}'; }
for t in ${TRANSPORTS:-h3 h2}; do
    mark=$(now_ns)
    session client edge1 -transport $t -once
    check "$t: the connector has a session" session_up client edge1 "$mark"
    traffic_on
    check "$t: packets flow" flows client "$(now_ns)"
    device=$(k admin get ha masque.edge1.vpc-a -o 'jsonpath={.status.device}') # each instance epoch has its own
    "$LAB" run "$D" edge1 "cap-$t" "$PROBE" cap --if "$device" --prefix fd12:0:0:1::/64 --log "$D/log/tun-$t.csv"
    pause_random 3000 6000
    frozen=$(now_ns)
    "$LAB" freeze "$D" agent edge1 main
    moment "agent's control thread frozen" "$frozen"
    sleep 4 # longer than an interval: the gate's own proof is then later than the last renewal, and that is what counts
    stopped=$(now_ns)
    "$LAB" kill -STOP "$D" foundation edge1
    moment "foundation stopped" "$stopped"
    last=$(($(renewed) * 1000))
    fence=$((last + (L - G) * 1000000000)) gate=$((last + L * 1000000000))
    moment "session deadline" $fence
    moment "gate deadline" $gate
    while [ "$(now_ns)" -lt $((gate + 1000000000)) ]; do sleep 0.2; done
    up=$(last_up client) down=$(last_down client) tun=$(last_at_tun $t)
    note "$t: from the last renewal: data path up $(ms_between "$last" "$up") ms, down $(ms_between "$last" "$down") ms, gate $(ms_between "$last" "$tun") ms"
    figure "data_path_$t" "$(ms_between $fence $((up > down ? up : down)))" 50 "$t: last packet of the data path after the session deadline"
    check "$t: the data path went on without its control thread" test $((up - frozen)) -gt 1000000000
    figure "gate_$t" "$(ms_between $gate "$tun")" 50 "$t: last packet through the gate after its deadline"
    check "$t: the gate went on up to it" test $((gate - tun)) -lt 100000000
    going=$(now_ns)
    "$LAB" kill -CONT "$D" foundation edge1
    "$LAB" thaw "$D" agent edge1 main
    moment "both go on" "$going"
    # The data thread needs no control thread to reset an HTTP/2 connection at the session's deadline, which also counts from
    # the last proof of the claims: up to an interval before the one that the renewal alone gives (0.6 s in one run).
    check "$t: the session ends" await 10 "closed" event "$frozen" '.event == "closed"'
    truth "late_$t" "$(awk -F, -v s="$going" -v u="$(now_ns)" '$2 == "e1" && $3 == "in" && $1 >= s && $1 <= u {n++} END {print n + 0}' "$D/log/cap.csv")" "$t: no packet of the old session after that"
    check "$t: the agent is ready again" await 20 "ready" agent_ready edge1
    # The foundation's watches went stale with it: a gate that opens on a proof of before may shut once more. A lease later none counts.
    while [ "$(now_ns)" -lt $((going + L * 1000000000)) ]; do sleep 0.2; done
done
safe
checks_done
