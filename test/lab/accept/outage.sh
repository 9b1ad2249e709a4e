# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the scenarios in which the API server or its store is away; sourced after lib.sh. Two connectors: site-1 on client,
# through edge1 over HTTP/3 (streams 1 and 9), site-2 on client2, through edge2 over HTTP/2 (streams 2 and 10).
client_of() { [ "$1" = 1 ] && echo client || echo client2; }

# keeps N: starts connector N, which comes back by itself; with KNOWS_BOTH it knows the other edge, too, and likes its own better.
keeps() {
    local t=h3 edges="edge$1=[fd00:c::$1]:4433"
    [ "$1" = 1 ] || t=h2
    [ -z "${KNOWS_BOTH:-}" ] || edges+=",edge$((3 - $1))=[fd00:c::$((3 - $1))]:4433"
    "$LAB" start "$D" connector "$(client_of "$1")" "site-$1" -edges "$edges" -dial-timeout 2s -idle 30s -transport $t
}

two_connectors() {
    local n mark a
    scenario_agents
    for n in 1 2; do
        "$LAB" binding "$D" acme "site-$n"
        mark=$(now_ns)
        keeps $n
        check "site-$n has a session on edge$n" session_up "$(client_of $n)" "edge$n" "$mark"
        a=$(address_of "$(client_of $n)")
        "$LAB" run "$D" "$(client_of $n)" send "$PROBE" send --bind "$a" --freebind --to fd20::10 --port 7000 --interval 4000 --stream $n
        "$LAB" run "$D" vpc "send-$n" "$PROBE" send --bind fd20::10 --to "$a" --port 7000 --interval 4000 --stream $((n + 8))
        check "site-$n: packets flow" flows "$(client_of $n)" "$(now_ns)"
    done
}

# The API server stands still, and goes on; sets stopped, back.
api_stop() {
    stopped=$(now_ns)
    kill -STOP "$(<"$D/api/apiserver.pid")"
    moment "API server stopped" "$stopped"
}
api_go_on() {
    back=$(now_ns)
    kill -CONT "$(<"$D/api/apiserver.pid")"
    moment "API server goes on" "$back"
}

# ended_and_back NAME N SINCE BACK [MS [MS]]: connector N's traffic ended by the lease, or within MS, and is back soon after BACK.
ended_and_back() {
    local c last both
    c=$(client_of "$2")
    both=$(await 20 "packets" flows "$c" "$4") || { check "$1: site-$2's packets flow again" false; return; }
    last=$(awk -F, -v l="e$2" -v u="$4" '$2 == l && $3 == "in" && $1 < u {t = $1} END {print t ? t : 0}' "$D/log/cap.csv")
    figure "$1_ends_$2" "$(ms_between "$3" "$last")" "${5:-10000}" "$1: last packet of site-$2 after the fault"
    check "$1: site-$2's traffic went on while its deadline allowed it" test $((last - $3)) -gt 2000000000
    moment "site-$2 flows" "$both"
    figure "$1_recovery_$2" "$(ms_between "$4" "$both")" "${6:-1000}" "$1: site-$2's packets both ways after the return" "$4" "$both"
}
