#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# service_end.sh: the authority is away: nobody moves the service's validUntil on, and it passes.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2
# fault: validUntil passes; then the same while both agents' control threads and both foundations stand still
# expect: data path and gate end with the service, whoever stands still; with a later validUntil it comes back by itself
# bound: 50 ms from validUntil to the last packet, in the VPC and through the gate; 1 s from the next validUntil to packets
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
scenario_up --lease 10
two_connectors
for n in 1 2; do
    device=$(k admin get ha "masque.edge$n.vpc-a" -o 'jsonpath={.status.device}')
    "$LAB" run "$D" "edge$n" cap-tun "$PROBE" cap --if "$device" --prefix fd12:0:0:1::/64 --log "$D/log/tun-$n.csv"
done
valid_until() { k authority patch ps svc-a --type merge -p '{"spec":{"validUntil":"'"$1"'"}}' >/dev/null; } # TIME
# no_round: edge1's foundation is also the lab's authority and moves services on once a minute: not within the next 15 s.
no_round() {
    local phase
    phase=$((($(now_ns) - $(started edge1 foundation)) / 1000000000 % 60))
    if [ $phase -gt 42 ] || [ $phase -lt 2 ]; then sleep $(((63 - phase) % 60)); fi
}
# ends_soon: the service ends 3 to 4 s from now; sets ends (CLOCK_BOOTTIME) and text. That is before any other deadline.
ends_soon() {
    local boot wall at
    no_round
    at=$(($(date +%s) + 4))
    text=$(date -u -d "@$at" +%Y-%m-%dT%H:%M:%SZ)
    valid_until "$text"
    read -r boot wall < <("$PROBE" clock)
    ends=$((at * 1000000000 + boot - wall))
    moment "the service ends" $ends
}
# last_at EDGE-NUMBER: the last packet in the VPC from that edge, in either direction; last_gate: the last that passed its gate.
last_at() { awk -F, -v l="e$1" -v u="$2" '$2 == l && $3 == "in" && $1 < u {t = $1} END {print t ? t : 0}' "$D/log/cap.csv"; }
last_gate() { awk -F, -v u="$2" '$3 == "out" && $1 < u {t = $1} END {print t ? t : 0}' "$D/log/tun-$1.csv"; }
ended() { # PART UNTIL
    local n last
    for n in 1 2; do
        last=$(last_at $n "$2")
        figure "$1_data_$n" "$(ms_between "$ends" "$last")" 50 "$1: last packet of site-$n in the VPC after the service's end"
        check "$1: site-$n's packets went on up to it" test $((ends - last)) -lt 200000000
        last=$(last_gate $n "$2")
        figure "$1_gate_$n" "$(ms_between "$ends" "$last")" 50 "$1: last packet through edge$n's gate after the service's end"
        check "$1: the gate went on up to it" test $((ends - last)) -lt 200000000
    done
}
back() { # PART SINCE
    local n both
    for n in 1 2; do
        both=$(await 30 "packets" flows "$(client_of $n)" "$2") || { check "$1: site-$n's packets flow again" false; continue; }
        [ "$1" = stalled ] || figure "$1_recovery_$n" "$(ms_between "$2" "$both")" 1000 "$1: site-$n's packets both ways after a later validUntil" "$2" "$both"
    done
}

echo "-- everybody works"
pause_random 0 2000
ends_soon
while [ "$(now_ns)" -lt $((ends + 1500000000)) ]; do sleep 0.1; done
check "nobody moved it on" test "$(k admin get ps svc-a -o 'jsonpath={.spec.validUntil}')" = "$text"
ended works "$(now_ns)"
later=$(now_ns)
valid_until "$(date -u -d '+290 seconds' +%Y-%m-%dT%H:%M:%SZ)"
moment "a later validUntil" "$later"
back works "$later"

echo "-- agents and foundations stand still"
sleep 3 # every other deadline is far away again
pause_random 0 2000
ends_soon
sleep 0.5 # their watches have told them
for n in 1 2; do
    "$LAB" freeze "$D" agent "edge$n" main
    "$LAB" kill -STOP "$D" foundation "edge$n"
done
stopped=$(now_ns)
moment "all stand still" "$stopped"
check "they stood still before the service's end" test "$stopped" -lt "$ends"
while [ "$(now_ns)" -lt $((ends + 2000000000)) ]; do sleep 0.1; done
check "nobody moved it on" test "$(k admin get ps svc-a -o 'jsonpath={.spec.validUntil}')" = "$text"
ended stalled "$(now_ns)"
going=$(now_ns)
for n in 1 2; do
    "$LAB" kill -CONT "$D" foundation "edge$n"
    "$LAB" thaw "$D" agent "edge$n" main
done
sleep 1
truth late "$(awk -F, -v s="$going" -v u="$(now_ns)" '$3 == "in" && $1 >= s && $1 <= u {n++} END {print n + 0}' "$D/log/cap.csv")" "no packet when they go on and the service is past"
later=$(now_ns)
valid_until "$(date -u -d '+290 seconds' +%Y-%m-%dT%H:%M:%SZ)"
back stalled "$later"
safe
checks_done
