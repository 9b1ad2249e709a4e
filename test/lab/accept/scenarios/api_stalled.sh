#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# api_stalled.sh: the API server stands still, and then is out of reach of one node.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2; L is 10 s
# fault: SIGSTOP of the API server for 3.5 s; then for 13 s; then edge1 cut off from it for 13 s (PARTS: some of them)
# expect: a short outage costs no packet; a long one ends traffic by the deadline; afterwards it comes back by itself
# bound: 0 packets lost in 3.5 s; last packet within L; 1 s from the API server's return to packets both ways
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
scenario_up --lease 10
two_connectors
part() { [[ ,${PARTS:-short,long,cut}, == *,$1,* ]]; }

if part short; then
    pause_random 0 3000
    api_stop
    sleep 3.5
    api_go_on
    sleep 2
    until=$(($(now_ns) - 300000000))
    for n in 1 2; do
        truth "short_up_$n" "$(lost "$D/log/to-vpc.csv" $n "$stopped" "$until")" "site-$n lost no packet in a short outage, to the VPC"
        truth "short_down_$n" "$(lost "$D/log/to-$(client_of $n).csv" $((n + 8)) "$stopped" "$until")" "nor to the connector"
    done
fi
if part long; then
    api_stop
    sleep 13
    api_go_on
    for n in 1 2; do ended_and_back "stall" $n "$stopped" "$back"; done
fi
if part cut; then
    sleep 4 # every deadline is far away again
    pause_random 0 3000
    stopped=$(now_ns)
    cut_off edge1
    moment "edge1 cut off" "$stopped"
    sleep 13
    back=$(now_ns)
    heal edge1
    moment "edge1 healed" "$back"
    ended_and_back "cut_off" 1 "$stopped" "$back"
    truth "other_node" "$(lost "$D/log/to-vpc.csv" 2 "$stopped" "$(($(now_ns) - 300000000))")" "edge2's connector lost no packet meanwhile"
fi
safe
checks_done
