#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slow_api.sh: every call to the API server takes long.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2; L is 10 s
# fault: the proxies hold every request of both nodes for 1 s; then for 5 s, longer than a proof may take
# expect: 1 s costs no packet; 5 s is an outage: what is too old extends nothing, traffic ends by the deadline, and comes back
# bound: 0 packets lost at 1 s; at 5 s last packet within L; 1 s from the end of the last slow call to packets both ways
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
scenario_up --lease 10 --proxy
two_connectors
slow() { local e; for e in edge1 edge2; do "$LAB" proxy "$D" $e ${1:+"delay=$1 .*"}; done; } # [MS]
pause_random 0 3000
since=$(now_ns)
slow 1000
moment "1 s a call" "$since"
sleep 13 # longer than a deadline of before
until=$(($(now_ns) - 300000000))
for n in 1 2; do
    truth "slow_up_$n" "$(lost "$D/log/to-vpc.csv" $n "$since" "$until")" "1 s a call: site-$n lost no packet, to the VPC"
    truth "slow_down_$n" "$(lost "$D/log/to-$(client_of $n).csv" $((n + 8)) "$since" "$until")" "nor to the connector"
done
check "requests were held" test "$(hits edge1)" -ge 5
slow
sleep 4 # every deadline is far away again
pause_random 0 3000
since=$(now_ns)
slow 5000
moment "5 s a call" "$since"
sleep 14
back=$(now_ns)
slow
moment "new calls are as fast as ever" "$back"
for n in 1 2; do ended_and_back slow $n "$since" "$back" 10000 6000; done # a call of just before takes 5 s still
safe
checks_done
