#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# revoke_100.sh: one of 100 connectors on a shared instance is suspended; the others notice nothing.
# given: 100 connectors over HTTP/3 on edge1, each with packets to the VPC host and back
# fault: the operator suspends one of them, REVOKES (5) times
# expect: its last packet, either way, as soon as the agent has been told; 0 packets lost by the others, no session of theirs ended
# bound: 50 ms from the API server's answer, when the suspension has landed, to the last packet
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/lib/fleet.sh
. "$root/test/lab/lib/fleet.sh"
N=${CONNECTORS:-100} ROUNDS=${REVOKES:-5}
scenario_up --lease 10
fleet_room edge1
scenario_agents
fleet_bindings "$N"
fleet_suspends "$N" "$ROUNDS"
check "the fleet has done its rounds" await $((60 + ROUNDS * 5)) "its end" cat "$D/run/client.fleet.rc"
check "without an error" test "$(cat "$D/run/client.fleet.rc")" = 0
round=0
while read -r run asked done last; do
    up=$(stream_last "$D/log/fleet-echo.csv" "$run") || up=0
    last=$((up > last ? up : last))
    check "round $run: packets went on up to the suspension" test $((asked - last)) -lt 100000000
    figure last_packet "$(ms_between "$done" $last)" 50 "round $run: last packet after the suspension had landed" "$done" $((last > done ? last : done))
    measured sent "$(ms_between "$asked" $last)" "round $run: the same from before the operator's request"
    round=$((round + 1))
done < <(jq -r 'select(.event == "suspend") | "\(.run) \(.asked) \(.done) \(.last)"' "$D/log/client.fleet.log")
check "every round was measured" test $round = "$ROUNDS"
sums=$(jq -c 'select(.event == "stopped")' "$D/log/client.fleet.log")
check "the others sent packets" test "$(jq .sent <<<"$sums")" -gt "$N"
truth others_lost $(($(jq .sent <<<"$sums") - $(jq .echoed <<<"$sums"))) "no packet of the others was lost"
truth others_ended "$(jq .closed <<<"$sums")" "none of their sessions ended"
objects_safe
checks_done
