#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# recovery_100.sh: the API server comes back after an outage that ended every session of a node.
# given: 100 connectors over HTTP/3 on edge1, each with packets to the VPC host; L is 10 s
# fault: SIGSTOP of the API server for 13 s
# expect: every session ends by its deadline; each connector asks again by itself, and has its session back soon after the return
# bound: 1 s from the API server's return to a connector's packets at the VPC host, 99 of 100 connectors
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/lib/fleet.sh
. "$root/test/lab/lib/fleet.sh"
N=${CONNECTORS:-100}
scenario_up --lease 10
fleet_room edge1
scenario_agents
fleet_bindings "$N"
begun=$(now_ns)
fleet_packets "$N" -interval 50ms -parallel "$N"
connected() { # SINCE: so many connectors have a session since then
    [ "$(jq -Rnr --argjson s "$1" 'inputs | fromjson? // empty | select(.event == "connected" and .t >= $s) | .index' <"$D/log/client.fleet.log" | sort -u | wc -l)" = "$N" ] && now_ns
}
check "all connectors have sessions" await 60 "sessions" connected "$begun"
pause_random 1000 4000
stopped=$(now_ns)
kill -STOP "$(<"$D/api/apiserver.pid")"
moment "API server stopped" "$stopped"
sleep 13
# cpu PID: its processor time so far, in ms. Whose it is tells who sets the pace.
cpu() { awk -v hz="$(getconf CLK_TCK)" '{sub(/.*\) /, ""); printf "%d", ($12 + $13) * 1000 / hz}' "/proc/$1/stat"; }
who=(apiserver:"$(<"$D/api/apiserver.pid")" etcd:"$(<"$D/api/etcd.pid")" agent:"$(cut -d' ' -f1 "$D/run/edge1.agent.pid")"
    foundation:"$(cut -d' ' -f1 "$D/run/edge1.foundation.pid")" connectors:"$(cut -d' ' -f1 "$D/run/client.fleet.pid")")
declare -A used
for w in "${who[@]}"; do used[$w]=$(cpu "${w#*:}"); done
back=$(now_ns)
kill -CONT "$(<"$D/api/apiserver.pid")"
moment "API server goes on" "$back"
check "all connectors have sessions again" await 20 "sessions" connected "$back"
took=$(ms_between "$back" "$(now_ns)")
for w in "${who[@]}"; do measured "cpu_${w%:*}" $(($(cpu "${w#*:}") - used[$w])) "processor time of ${w%:*} in these $took ms, on $(nproc) cores,"; done
sleep 1
# stream,seq,sent,received,...: each connector's first packet after the return, in ms
awk -F, -v b="$back" '$1 >= 1000000 && NF == 6 && $3 >= b && !($1 in t) {t[$1] = $4; printf "%.1f\n", ($4 - b) / 1e6}' "$D/log/fleet-echo.csv" | sort -n >"$D/recovery.txt"
check "packets of each came to the VPC host" test "$(wc -l <"$D/recovery.txt")" = "$N"
check "and of none when its deadline was past" test "$(awk -F, -v a=$((stopped + 10000000000)) -v b="$back" '$1 >= 1000000 && $4 > a && $4 < b {n++} END {print n + 0}' "$D/log/fleet-echo.csv")" = 0
p99=$(awk -v n="$N" '{v[NR] = $1} END {i = int(0.99 * n); print v[i]}' "$D/recovery.txt")
figure recovery_p99 "$p99" 1000 "packets of 99 of 100 connectors after the return" "$back" "$(now_ns)"
measured recovery_p50 "$(awk -v n="$N" '{v[NR] = $1} END {print v[int(n / 2)]}' "$D/recovery.txt")" "of half of them"
measured recovery_max "$(tail -n 1 "$D/recovery.txt")" "of all of them"
objects_safe
checks_done
