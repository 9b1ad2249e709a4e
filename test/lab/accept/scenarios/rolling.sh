#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rolling.sh: an update of all nodes under traffic: one agent after the other is drained and started again, twice.
# given: two connectors that know both edges, with traffic both ways: site-1 over HTTP/3, site-2 over HTTP/2
# fault: SIGTERM of an agent, its next process until it is ready, then the other one's
# expect: each connector is moved away before its node goes, and nowhere twice
# bound: 300 ms without packets, either way, in each step; every agent ends with status 0
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
# shellcheck source=test/lab/lib/moves.sh
. "$root/test/lab/lib/moves.sh"
scenario_up --lease 10
KNOWS_BOTH=1 # for outage.sh
two_connectors
for round in 1 2; do
    for e in edge1 edge2; do
        pause_random 500 2000
        mark=$(now_ns)
        moment "$e is updated" "$mark"
        check "$round, $e: SIGTERM drains it to status 0" test "$("$LAB" stop "$D" agent $e)" = 0
        "$LAB" start "$D" agent $e
        check "$round, $e: ready again" await 20 "ready" agent_ready $e
        sleep 1
        until=$(($(now_ns) - 100000000))
        for n in 1 2; do
            c=$(client_of $n)
            check "$round, $e: packets of site-$n flow" flows "$c" "$until"
            figure "gap_up_$n" "$(gap "$D/log/to-vpc.csv" $n "$mark" "$until")" 300 "$round, $e: longest time without packets of site-$n to the VPC" "$mark" "$until"
            figure "gap_down_$n" "$(gap "$D/log/to-$c.csv" $((n + 8)) "$mark" "$until")" 300 "$round, $e: the same to the connector" "$mark" "$until"
        done
    done
done
safe
checks_done
