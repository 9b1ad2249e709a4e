#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# foundation.sh: edge1's foundation is restarted, killed and stopped under traffic. A restart loses no packet: gates, routes and
# device stay. While it is stopped nobody closes the gate and nobody has to: traffic ends with the absolute deadline, within
# the lease, and its watchdog withdraws the route. Contract section 8: "Restart", "Publish".
# given: a connector with traffic both ways through edge1, L 30 s
# fault: its foundation restarted, killed, and stopped for longer than L
# expect: a restart loses nothing; stopped, traffic ends by the deadline, the watchdog withdraws
# bound: last packet within L
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
L_MS=30000
WATCHDOG_MS=32000 # L + 2 s after the last refresh
scenario_up
scenario_agents
"$LAB" binding "$D" acme site-1
mark=$(now_ns)
"$LAB" start "$D" connector client site-1 -edges 'edge1=[fd00:c::1]:4433'
check "the connector has a session on edge1" await 10 "connected" event "$mark" '.event == "connected"'
addr=$(address_of client)
"$LAB" run "$D" client send "$PROBE" send --bind "$addr" --to fd20::10 --port 7000 --interval 4000 --stream 1
"$LAB" run "$D" vpc send "$PROBE" send --bind fd20::10 --to "$addr" --port 7000 --interval 4000 --stream 9
mark=$(now_ns)
check "packets flow to the VPC host" await 5 "packets" packet_first "$D/log/to-vpc.csv" "$mark"
check "packets flow to the connector" await 5 "packets" packet_first "$D/log/to-client.csv" "$mark"

works() { logged edge1.foundation "$1" '.event == "foundation_started"'; }
published() {
    local n
    n=$("$LAB" exec "$D" edge1 ip -6 route show table 200 | grep -c "proto 199")
    [ "$n" = 1 ]
}

for how in TERM KILL; do
    sleep 2
    mark=$(now_ns)
    if [ $how = TERM ]; then
        check "SIGTERM ends the foundation with status 0" "$LAB" stop "$D" foundation edge1
    else
        "$LAB" kill -KILL "$D" foundation edge1
    fi
    sleep 2
    check "the route stays while it is away" published
    again=$(now_ns)
    "$LAB" start "$D" foundation edge1
    check "the foundation works again after SIG$how" await 10 "started" works "$again"
    sleep 15 # more than one proof interval: the gate lives on by the new process' proofs
    end=$(($(now_ns) - 200000000))
    check "no packet was lost to the VPC" test "$(lost "$D/log/to-vpc.csv" 1 "$mark" "$end")" = 0
    check "no packet was lost to the connector" test "$(lost "$D/log/to-client.csv" 9 "$mark" "$end")" = 0
done

stopped=$(now_ns)
"$LAB" kill -STOP "$D" foundation edge1
deadline=$((stopped + (L_MS + 1000) * 1000000))
while [ "$(now_ns)" -lt $deadline ]; do sleep 0.5; done
last_up=$(awk -F, '{t = $4} END {print t}' "$D/log/to-vpc.csv")
last_down=$(awk -F, '{t = $4} END {print t}' "$D/log/to-client.csv")
note "the foundation stopped at 0 ms; last packet up $(ms_between "$stopped" "$last_up") ms, down $(ms_between "$stopped" "$last_down") ms"
check "traffic went on while the deadline allowed it" test $(((last_up - stopped) / 1000000)) -gt 5000
figure ends_up "$(ms_between "$stopped" "$last_up")" $L_MS "traffic from the connector ended within the lease"
figure ends_down "$(ms_between "$stopped" "$last_down")" $L_MS "traffic to the connector ended within the lease"
moment "foundation stopped" "$stopped"
withdrawn() { ! "$LAB" exec "$D" vpc ip -6 route show | grep 'fd12.*/96' >/dev/null; }
check "the watchdog withdraws the route, $WATCHDOG_MS ms after the last refresh at the latest" eventually 4 withdrawn
note "route gone at the VPC host at most $(ms_between "$stopped" "$(now_ns)") ms after the stop"
resumed=$(now_ns)
"$LAB" kill -CONT "$D" foundation edge1
check "it says that the gate had run out" await 5 "shut" logged edge1.foundation "$resumed" '.event == "foundation_shut"'
check "and opens it again by a later proof" await 25 "open" logged edge1.foundation "$resumed" '.event == "foundation_open"'
check "packets flow again" await 25 "packets" packet_first "$D/log/to-vpc.csv" "$resumed"
safe
checks_done
