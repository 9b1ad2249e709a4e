#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# soak.sh DURATION [SESSIONS]: a real API server, two edges with foundation and agent, a VPC host that echoes, and SESSIONS (500)
# connectors of other stacks (test/peers/connectip/fleet -churn) that connect over HTTP/3 and HTTP/2 to either edge, move data,
# switch the transport, and vanish without a word, for DURATION (30m). Every minute it prints resident memory, descriptors and
# threads of agents and foundations, and the claims. At the end all vanish at once. It fails (1) when an agent's memory or
# descriptors grow (judge.sh says how that is told), when a claim is left open, when two sessions forwarded for one connector,
# when an agent ended. Root. SEED repeats what the connectors draw, LIFE (150s) is a session's mean length.
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/scenarios/lib.sh"
# shellcheck source=test/lab/lib/fleet.sh
. "$root/test/lab/lib/fleet.sh"
FLEET_SOCK=/run/holdfast-lab/fleet-$$.sock
die() { printf 'soak: error: %s\n' "$*" >&2; exit 2; }
[[ ${1:-} =~ ^([1-9][0-9]*)([smh]?)$ ]] || die "the duration is '${1:-}': a number with s, m or h is needed (DURATION=30m)"
case ${BASH_REMATCH[2]} in m) unit=60 ;; h) unit=3600 ;; *) unit=1 ;; esac
seconds=$((BASH_REMATCH[1] * unit)) sessions=${2:-500}
[[ $sessions =~ ^[1-9][0-9]{0,3}$ ]] || die "the number of sessions is '$sessions': 1 to 9999 is needed (SESSIONS=500)"
[ "$seconds" -ge 90 ] || die "the duration is '$1': less than 90s shows nothing"
every=$((seconds / 12 < 60 ? seconds / 12 : 60))
# A session whose client is silent ends after 15 s (HTTP/3: idle; HTTP/2: three PINGs of 5 s); then its row is released, and closed.
END=60

SERIES=$D/series.txt
observers() { "$LAB" run "$D" vpc echo "$PROBE" recv --port 7000 --bind fd20::10 --echo --log "$D/log/echo.csv"; } # instead of the scenarios'
metric() { "$LAB" exec "$D" "$1" curl -gsf -m 5 "http://[fd00:c::${1#edge}]:9781/metrics"; }
pid_of() { cut -d' ' -f1 "$D/run/$1.$2.pid"; }
http2() { metric "$1" | awk '$1 == "holdfast_connections{transport=\"http2\"}" {print $2}'; }
again() { # COMMAND...: three times at most; prints what it says when it succeeds
    local out i
    for ((i = 0; i < 3; i++)); do
        if out=$("$@" 2>/dev/null); then printf '%s' "$out"; return; fi
    done
    return 1
}
claims() { k admin --request-timeout 10s get rclaim -o json | jq -r '[.items | length, (map(select(.spec.releaseTime | not)) | length)] | @tsv'; }
proc() { # NODE WHAT: rss fds threads
    local p
    p=/proc/$(pid_of "$1" "$2")
    printf '%s %s %s' "$(awk '/^VmRSS:/ {print $2}' "$p/status")" "$(ls "$p/fd" | wc -l)" "$(awk '/^Threads:/ {print $2}' "$p/status")"
}
# sample SECOND: one line per process to the file, one for people.
sample() {
    local node now all open up h2 line=''
    now=$(again claims) || now='- -' # a busy API server is not what is judged here
    read -r all open <<<"$now"
    up=$(fleet_stats | jq .connected)
    for node in edge1 edge2; do
        h2=$(again http2 $node) || h2=-
        now=$(proc $node agent)
        printf '%s %s.agent %s %s %s %s %s\n' "$1" "$node" "$now" "$h2" "$all" "$open" "$up" >>"$SERIES"
        line+=$(awk -v n=$node -v a="$now" -v h="$h2" -v f="$(proc $node foundation)" 'BEGIN {split(a, x, " "); split(f, y, " ")
            printf "  %s: %.1f MiB, %d fds (%d HTTP/2), %d threads (foundation %.1f MiB, %d fds, %d)", n, x[1] / 1024, x[2], h, x[3], y[1] / 1024, y[2], y[3]}')
    done
    printf '%5d s  claims %s, %s open; sessions %d%s\n' "$1" "$all" "$open" "$up" "$line"
}
same_process() { [ ! -s "$D/run/$1.agent.rc" ] && [ "$(cat "$D/run/$1.agent.pid")" = "$2" ]; } # NODE, its pid file as it was

rm -f "$SERIES"
scenario_up
"$LAB" binding "$D" acme site-1 # nobody has it
for n in edge1 edge2; do fleet_room $n 'idleSeconds: 15' 'http2PingSeconds: 5'; done
scenario_agents
fleet_bindings "$sessions"
for n in edge1 edge2; do
    known() { [ "$(metric $n | awk '$1 == "holdfast_bindings" {print $2}')" -gt "$sessions" ] && echo known; }
    await 60 bindings known >/dev/null || die "$n does not know the bindings"
    declare "pid_$n=$(cat "$D/run/$n.agent.pid")" "fds_$n=$(proc $n agent | cut -d' ' -f2)"
done
fleet_start "$sessions" -edge '[fd00:c::1]:4433,[fd00:c::2]:4433' -churn -life "${LIFE:-150s}" -interval 1s -retry 1s -parallel 8 -seed "${SEED:-1}"
started() { fleet_stats 2>/dev/null | jq -e '.opened > 0'; }
await 30 "a first session" started >/dev/null || { tail -n 3 "$D/log/client.fleet.log"; die "nobody gets a session"; }
begin=$SECONDS
for ((at = every; at <= seconds; at += every)); do
    ((begin + at <= SECONDS)) || sleep $((begin + at - SECONDS))
    for n in edge1 edge2; do [ ! -s "$D/run/$n.agent.rc" ] || { echo "$n: the agent has ended with status $(cat "$D/run/$n.agent.rc")"; break 2; }; done
    sample $((SECONDS - begin))
done
stats=$(fleet_stats)
curl -sS -X POST --unix-socket "$FLEET_SOCK" http://fleet/vanish
gone=$SECONDS
printf 'all have vanished; what they did: %s\n' "$(jq -c 'del(.sessions, .connected, .closed)' <<<"$stats")"

echo
verdicts() { # COMMAND...: lines of judge.sh, counted here
    local line
    while IFS= read -r line; do
        case $line in
        'ok '*) CHECKS_PASSED=$((CHECKS_PASSED + 1)) ;;
        FAIL*) CHECKS_FAILED=$((CHECKS_FAILED + 1)) ;;
        *' passed, '*) continue ;;
        esac
        printf '%s\n' "$line"
    done < <("$@" || true)
}
none_open() { [ "$(claims | cut -f2)" = 0 ]; }
check "no claim is open ${END} s after the last session" eventually $((gone + END - SECONDS)) none_open
note "after $((SECONDS - gone)) s"
gates() { k admin get rclaim -o json | jq -e '[.items[] | select(.status.closedEpoch != .spec.epoch)] | length == 0'; }
check "every claim's last epoch is closed" eventually 30 gates
for n in edge1 edge2; do
    pid=pid_$n fds=fds_$n
    check "$n: the agent is the process that was started" same_process $n "${!pid}"
    left() { metric $n | awk '$1 ~ /^holdfast_(connections|flows)[{]/ {s += $2} END {exit s > 0}'; }
    check "$n: no connection and no request is left" eventually 30 left
    back() { [ "$(proc $n agent | cut -d' ' -f2)" -le $((${!fds} + 4)) ]; }
    check "$n: its descriptors are those of before (${!fds}, and 4)" eventually 10 back
    note "$n at the end: $(proc $n agent | awk '{printf "%.1f MiB, %d fds, %d threads", $1 / 1024, $2, $3}'); refused $(metric $n | awk '/^holdfast_refused_total/ && $2 > 0 {printf "%s ", $0}')"
done
say_if() { jq -e "$2" <<<"$stats"; }
check "data moved: nine echoes of ten packets" say_if x '.sent > 0 and .echoed >= .sent * 0.9'
check "sessions vanished, switched, and came over both transports" say_if x '.vanished > 0 and .switched > 0 and .h3 > 0 and .h2 > 0'
check "no packet of a later session came back through an earlier one" say_if x '.strays == 0'
check "a session that was replaced was ended" say_if x '.overstayed == 0'
verdicts "$root/test/soak/judge.sh" forwarders "$D/log/echo.csv"
verdicts "$root/test/soak/judge.sh" series "$SERIES" "$sessions"
rm -f "$FLEET_SOCK"
checks_done
