#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# restart_1000.sh: a node's agent is restarted, and a thousand connectors want their sessions back at once.
# given: 1,000 connectors over HTTP/3 on edge1 (CONNECTORS), each with packets to the VPC host
# fault: SIGKILL of edge1's agent, which is started again at once
# expect: nobody waits W: the living foundation confirms what was; each connector asks again by itself
# bound: 30 s from the start of the next process to packets of the last of them
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/lib/fleet.sh
. "$root/test/lab/lib/fleet.sh"
N=${CONNECTORS:-1000}
scenario_up --lease 10
FLEET_SOCK=/run/holdfast-lab/$(sed -n 's/^LAB_ID=//p' "$D/lab.env")-fleet.sock # `lab down` removes it
fleet_room edge1
# The API server ends a watch that is slow to read a thousand rows: it is begun again, which the log says.
"$LAB" kill -KILL "$D" watch-routeclaims api
# shellcheck disable=SC2016
"$LAB" run "$D" api watch-routeclaims bash -c 'while :; do printf "{\"type\":\"BEGIN\"}\n"; curl -gsN --cacert "$1/ca.crt" --cert "$1/admin.crt" --key "$1/admin.key" "$2"; sleep 0.2; done | "$3" stamp' \
    _ "$D/api/pki" 'https://[fd00:a::10]:6443/apis/edge.galactic.datumapis.com/v1alpha1/namespaces/holdfast-system/routeclaims?watch=1&timeoutSeconds=900' "$PROBE"
scenario_agents
fleet_bindings "$N"
fleet_packets "$N" -interval 500ms -parallel 64 -retry 500ms -idle 5s
up() { fleet_is_up "$N" && now_ns; }
check "all connectors have sessions" await 400 "sessions" up
pause_random 3000 6000
killed=$(now_ns)
"$LAB" kill -KILL "$D" agent edge1
moment "agent killed" "$killed"
# cpu PID: its processor time so far, in ms. Whose it is tells who sets the pace.
cpu() { awk -v hz="$(getconf CLK_TCK)" '{sub(/.*\) /, ""); printf "%d", ($12 + $13) * 1000 / hz}' "/proc/$1/stat"; }
starting=$(now_ns)
"$LAB" start "$D" agent edge1
moment "and started" "$starting"
who=(apiserver:"$(<"$D/api/apiserver.pid")" etcd:"$(<"$D/api/etcd.pid")" agent:"$(cut -d' ' -f1 "$D/run/edge1.agent.pid")"
    foundation:"$(cut -d' ' -f1 "$D/run/edge1.foundation.pid")" connectors:"$(cut -d' ' -f1 "$D/run/client.fleet.pid")")
declare -A used
for w in "${who[@]}"; do used[$w]=$(cpu "${w#*:}"); done
# back SINCE: so many connectors' packets have come to the VPC host, sent since then
back() { awk -F, -v b="$1" '$1 >= 1000000 && NF == 6 && $3 >= b && !($1 in t) {t[$1] = 1; n++} END {print n + 0}' "$D/log/fleet-echo.csv"; }
all_back() { [ "$(back "$starting")" = "$N" ] && now_ns; }
check "packets of each came to the VPC host" await 240 "packets" all_back
took=$(ms_between "$starting" "$(now_ns)")
for w in "${who[@]}"; do measured "cpu_${w%:*}" $(($(cpu "${w#*:}") - used[$w])) "processor time of ${w%:*} in these $took ms, on $(nproc) cores,"; done
awk -F, -v b="$starting" '$1 >= 1000000 && NF == 6 && $3 >= b && !($1 in t) {t[$1] = $4; printf "%.1f\n", ($4 - b) / 1e6}' "$D/log/fleet-echo.csv" | sort -n >"$D/recovery.txt"
figure back_all "$(tail -n 1 "$D/recovery.txt")" 30000 "packets of all $N connectors after the agent's start" "$starting" "$(now_ns)"
measured back_half "$(awk -v n="$N" '{v[NR] = $1} END {print v[int(n / 2)]}' "$D/recovery.txt")" "of half of them"
check "no session was waited for: the foundation confirmed each" test "$(k admin get rclaim -o json | jq '[.items[] | select(.status.closedReason == "Waited")] | length')" = 0
objects_safe
checks_done
