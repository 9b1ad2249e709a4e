#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# foundation_stop.sh: both foundations stand still for longer than the lease, and then are restarted.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2; L is 10 s
# fault: SIGSTOP of both foundations for 14 s; SIGCONT; then SIGKILL and a new start of each
# expect: the gates end by their deadline, the routes by the watchdog; a restart costs nothing
# bound: last packet within L; routes gone within L + 2 s; 0 packets lost by a restart
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
scenario_up --lease 10
two_connectors
both() { "$LAB" kill "$1" "$D" foundation edge1; "$LAB" kill "$1" "$D" foundation edge2; } # -SIGNAL
no_route() { ! "$LAB" exec "$D" vpc ip -6 route show | grep 'fd12.*/96' >/dev/null && now_ns; }
pause_random 0 3000
stopped=$(now_ns)
both -STOP
moment "foundations stopped" "$stopped"
gone=$(await 16 "no route" no_route) || gone=''
check "both routes are gone at the VPC's router" test -n "$gone"
# the last refresh came before the stop
figure withdrawn "$(ms_between "$stopped" "${gone:-x}")" 12500 "the routes are gone, by the watchdog"
while [ $(($(now_ns) - stopped)) -lt 14000000000 ]; do sleep 0.1; done
going=$(now_ns)
for n in 1 2; do
    last=$(awk -F, -v l="e$n" -v u="$going" '$2 == l && $3 == "in" && $1 < u {t = $1} END {print t ? t : 0}' "$D/log/cap.csv")
    figure "ends_$n" "$(ms_between "$stopped" "$last")" 10000 "last packet of site-$n after the stop"
    check "site-$n's traffic went on while its deadline allowed it" test $((last - stopped)) -gt 2000000000
done
both -CONT
moment "foundations go on" "$going"
for n in 1 2; do check "packets of site-$n flow again" flows "$(client_of $n)" "$going" 20; done
# What its watches missed while it stood still may shut a gate once more, within a lease.
while [ $(($(now_ns) - going)) -lt 10000000000 ]; do sleep 0.2; done
for n in 1 2; do check "packets of site-$n flow" flows "$(client_of $n)" "$(now_ns)" 10; done
sleep 1

pause_random 0 2000
killed=$(now_ns)
both -KILL
moment "foundations killed" "$killed"
sleep 1
again=$(now_ns)
for n in edge1 edge2; do "$LAB" start "$D" foundation $n; done
for n in edge1 edge2; do check "$n's foundation works again" await 10 "started" logged $n.foundation "$again" '.event == "foundation_started"'; done
while [ $(($(now_ns) - killed)) -lt 11000000000 ]; do sleep 0.2; done # longer than a deadline of before
until=$(($(now_ns) - 300000000))
for n in 1 2; do
    truth "restart_up_$n" "$(lost "$D/log/to-vpc.csv" $n "$killed" "$until")" "site-$n lost no packet over the restart, to the VPC"
    truth "restart_down_$n" "$(lost "$D/log/to-$(client_of $n).csv" $((n + 8)) "$killed" "$until")" "nor to the connector"
done
safe
checks_done
