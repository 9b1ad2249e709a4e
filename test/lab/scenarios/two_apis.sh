#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# two_apis.sh: two API servers on one etcd. The agents talk to one, the foundations to the other: proofs and handovers work as
# ever, also in the first half minute of a server's life, when it does not find the services that the pool policy asks for.
# Then edge1's watches come from the other server than its LISTs, as through a careless load balancer: a bookmark of the
# other server does not reach R, so the proof is a full LIST (contract section 5, step 4), and the session lives on. Then the
# foundations' server stands still: their gates close by themselves, and the agents' takeovers wait.
# given: two API servers on one etcd, agents at one, foundations at the other
# fault: watches from another server than LISTs; the foundations' server stands still
# expect: proofs by full LIST; gates end by their deadline
# bound: last packet within L
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
W=$(AUTH_W 10)
scenario_up --lease 10 --proxy --two-apis
scenario_agents
"$LAB" binding "$D" acme site-1
mark=$(now_ns)
session client edge1
check "the connector has a session on edge1, right after the second server's start" session_up client edge1 "$mark"
traffic "$(address_of client)"
check "packets flow" flows client "$(now_ns)"
by() { # SERVICE-ACCOUNT SERVER: its requests for claims there
    jq -c --arg u "system:serviceaccount:holdfast-system:holdfast-$1" 'select(.user.username == $u and .objectRef.resource == "routeclaims"
        and (.user.extra["authentication.kubernetes.io/node-name"][0] // "" | startswith("edge")))' "$D/$2/audit.log" | wc -l
}
check "the agents talk to the first server" test "$(by agent api)" -gt 0
check "and not to the second" test "$(by agent api2)" = 0
check "the foundations talk to the second" test "$(by foundation api2)" -gt 0
check "and not to the first" test "$(by foundation api)" = 0
mark=$(now_ns)
session client2 edge2
check "a takeover" session_up client2 edge2 "$mark"
check "packets flow through edge2" flows client2 "$(now_ns)"
check "no overlap" hand_over client client2 "$mark"
mark=$(now_ns)
session client edge1
check "and back" session_up client edge1 "$mark"
check "packets flow through edge1" flows client "$(now_ns)"
check "no overlap" hand_over client2 client "$mark"

echo "-- watches of edge1's agent come from the other server"
listed() { jq -c 'select(.event == "watch_relist" and .reason == "no bookmark in time")' "$D/log/edge1.agent.log" | wc -l; }
before=$(listed)
"$LAB" proxy "$D" edge1 'other GET .*[?&]watch='
split=$(now_ns)
sleep 22 # more than two leases: nothing but a proof keeps the session
until=$(($(now_ns) - 300000000))
check "watches went to the other server" test "$(hits edge1)" -ge 3
check "the session lives on: no packet was lost, to the VPC" test "$(lost "$D/log/to-vpc.csv" 1 "$split" "$until")" = 0
check "nor to the connector" test "$(lost "$D/log/to-client.csv" 9 "$split" "$until")" = 0
note "full LISTs because no bookmark came in time: $(($(listed) - before))"
check "proofs were full LISTs" test "$(listed)" -gt "$before"
mark=$(now_ns)
keeps_asking client2 edge2 # a gate that was shut may end its session
check "edge2 takes over, edge1 sees it" session_up client2 edge2 "$mark"
check "packets flow through edge2" flows client2 "$(now_ns)"
check "no overlap" hand_over client client2 "$mark"
"$LAB" proxy "$D" edge1

echo "-- the foundations' server stands still"
pid=$(<"$D/api2/apiserver.pid")
kill -STOP "$pid"
stopped=$(now_ns)
sleep 11
last=$(last_up client2)
note "stopped at 0 ms, last packet at $(ms_between "$stopped" "$last") ms"
check "the gate went on while its proofs allowed it" test $(((last - stopped) / 1000000)) -gt 2000
check "and ended within the lease" test $(((last - stopped) / 1000000)) -le 10000
kill -CONT "$pid"
continued=$(now_ns)
check "packets flow again" flows client2 "$continued" 15
safe
checks_done
