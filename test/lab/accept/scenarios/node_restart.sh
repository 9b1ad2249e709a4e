#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# node_restart.sh: every container of a node dies at once and is started again; its kernel goes on.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2
# fault: SIGKILL of agent, foundation and BIRD of one node, all started again at once; then of the other
# expect: gate, device and claim of before are closed and confirmed, nobody waits W; the other node notices nothing
# bound: from the start of the agent, the last of the three, 1 s to packets into the VPC, 5 s to packets to the connector (BGP's timers, once more);
#   0 packets lost by the other node's connector
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
scenario_up --lease 10
two_connectors
row() { k admin get rclaim -o json | jq -r --arg c "site-$1" '.items[] | select(.spec.connector == $c) | '"$2"; } # N JQ
for n in 1 2; do
    other=$((3 - n))
    epoch=$(row $n .spec.epoch)
    pause_random 0 3000
    killed=$(now_ns)
    for what in agent foundation bird; do "$LAB" kill -KILL "$D" $what "edge$n"; done
    moment "all of edge$n killed" "$killed"
    sleep 0.5 # what a container's restart takes at least
    starting=$(now_ns)
    for what in bird foundation agent; do "$LAB" start "$D" $what "edge$n"; done
    moment "all of edge$n started" "$starting"
    last=$(started "edge$n" agent) # the last of them: the lab starts one after the other
    ready=$(await 20 "ready" agent_ready "edge$n") || ready=''
    check "edge$n is ready again" test -n "$ready"
    both=$(await 20 "packets" flows "$(client_of $n)" "$starting") || both=''
    check "packets of site-$n flow again" test -n "$both"
    up=$(stream_first "$D/log/to-vpc.csv" $n "$starting") || up=''
    measured "ready_$n" "$(ms_between "$last" "${ready:-0}")" "from the start of edge$n's agent to ready"
    figure "back_$n" "$(ms_between "$last" "${up:-x}")" 1000 "from the start of edge$n's agent to packets of site-$n to the VPC" "$starting" "${up:-$starting}"
    figure "reachable_$n" "$(ms_between "$last" "${both:-x}")" 5000 "and to the connector" "$starting" "${both:-$starting}"
    check "a new epoch" test "$(row $n .spec.epoch)" -gt "$epoch"
    check "the old one was confirmed closed, not waited for" test "$(row $n .status.closedReason)" = Confirmed
    until=$(($(now_ns) - 300000000))
    truth "other_up_$n" "$(lost "$D/log/to-vpc.csv" $other "$killed" "$until")" "site-$other lost no packet meanwhile, to the VPC"
    truth "other_down_$n" "$(lost "$D/log/to-$(client_of $other).csv" $((other + 8)) "$killed" "$until")" "nor to the connector"
done
safe
checks_done
