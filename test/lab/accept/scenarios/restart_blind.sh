#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# restart_blind.sh: a process that starts while the API server is away knows only what it kept, and that extends nothing.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2; L is 10 s
# fault: SIGSTOP of the API server for 13 s; edge1's agent and edge2's foundation are killed and started again meanwhile
# expect: the new agent forwards nothing; edge2's gate lives on from its pinned map, and no longer than its last deadline
# bound: 0 packets through edge1 after the kill; last packet through edge2 within L; 1 s from the return to packets both ways
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
scenario_up --lease 10
two_connectors
alive() { "$LAB" exec "$D" edge1 curl -gsf -m 1 'http://[fd00:c::1]:9780/livez' -o /dev/null && now_ns; }
pause_random 0 3000
api_stop
sleep 0.5
"$LAB" kill -KILL "$D" agent edge1
killed=$(now_ns)
moment "edge1's agent killed" "$killed"
"$LAB" start "$D" agent edge1
check "edge1's new agent runs" await 5 "livez" alive
check "and is not ready" fails_with '' agent_ready edge1
"$LAB" kill -KILL "$D" foundation edge2
gone=$(now_ns)
moment "edge2's foundation killed" "$gone"
"$LAB" start "$D" foundation edge2
while [ $(($(now_ns) - stopped)) -lt 13000000000 ]; do sleep 0.1; done
api_go_on
ended_and_back edge2 2 "$stopped" "$back"
both=$(await 20 "packets" flows client "$back") || both=''
check "packets of site-1 flow again" test -n "$both"
measured recovery_1 "$(ms_between "$back" "${both:-0}")" "from the return to packets of site-1, through an agent that had yet to start"
# 5 ms: what was on its way when the process died
truth blind "$(cap_count e1 in $((killed + 5000000)) "$back")" "no packet came through edge1 between its kill and the API server's return"
last=$(awk -F, -v u="$back" '$2 == "e2" && $3 == "in" && $1 < u {t = $1} END {print t}' "$D/log/cap.csv")
check "edge2 forwarded without its foundation" test "$last" -gt $((gone + 500000000))
safe
checks_done
