# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the lab's scenarios; sourced. A scenario is a test with real packets: `scenario_up`, checks, `checks_done`. The
# lab's folder is build/scenarios/NAME (SCENARIO_DIR: another one); its logs stay there. SEED repeats what a scenario draws.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
LAB=$root/test/lab/lab
PROBE=${HOLDFAST_BIN:-$root/build/bin}/holdfast-probe
CONNECTOR=$root/build/peers/holdfast-connector
# shellcheck source=test/lab/lib/check.sh
. "$root/test/lab/lib/check.sh"
# shellcheck source=test/lab/lib/facts.sh
. "$root/test/lab/lib/facts.sh"
[ "$(id -u)" = 0 ] || { echo "${0##*/}: error: needs root, for network namespaces" >&2; exit 1; }

NAME=$(basename "$0" .sh)
D=${SCENARIO_DIR:-$root/build/scenarios/$NAME}
RANDOM=${SEED:-$$}
k() { local u=$1; shift; "$LAB" kubectl "$D" "$u" "$@"; }
note() { printf '      %s\n' "$*"; }

# ---- what test/lab/accept collects: $D/figures.jsonl, $D/moments.txt -------------------------------------------------------
# figure NAME VALUE BOUND WORDS [SINCE UNTIL]: a time in ms that the contract bounds. It is written down, and checked like anything
# else; only where KNOWN_LIMITS.md has the words `accept SCENARIO/NAME` it is written down alone. SINCE and UNTIL say when it was
# measured: how late the machine let a process run then stands beside it. With ACCEPT_AGAIN=1 a time that is over its bound is SLOW,
# not FAIL, and the scenario ends with 75 if nothing else failed: the runner measures again.
figure() {
    local late=0 says
    [ $# -lt 6 ] || late=$(late_between "$5" "$6")
    says="$4: $2 ms (at most $3 ms; the machine was up to $late ms late)"
    jq -nc --arg f "$1" --arg v "$2" --argjson b "$3" --arg w "$4" --argjson l "$late" '{figure: $f, value: ($v | tonumber? // null), bound: $b, words: $w, late: $l}' >>"$D/figures.jsonl"
    if grep -qF "\`accept $NAME/$1\`" "${KNOWN_LIMITS:-$root/KNOWN_LIMITS.md}"; then
        note "known limit: $says"
        return
    fi
    if [ -n "${ACCEPT_AGAIN:-}" ] && awk -v v="$2" -v b="$3" 'BEGIN {exit !(v ~ /^-?[0-9.]+$/ && v + 0 > b + 0)}'; then
        printf 'SLOW  %s\n' "$says"
        SLOW=$((SLOW + 1))
        return
    fi
    check "$says" awk -v v="$2" -v b="$3" 'BEGIN {exit !(v ~ /^-?[0-9.]+$/ && v + 0 <= b + 0)}'
}
SLOW=0
# late_between SINCE UNTIL: the longest that a process with nothing else to do (probe late) was kept from running then, in ms.
late_between() {
    awk -F, -v a="$1" -v b="$2" '$2 >= a && $1 <= b {s = $1 > a ? $1 : a; e = $2 < b ? $2 : b; if (e - s > m) m = e - s} END {printf "%.1f", m / 1e6}' "$D/log/late.csv" 2>/dev/null || echo 0
}
# measured NAME VALUE WORDS: a time in ms without a bound of its own.
measured() {
    jq -nc --arg f "$1" --arg v "$2" --arg w "$3" '{measured: $f, value: ($v | tonumber? // null), words: $w}' >>"$D/figures.jsonl"
    note "$3: $2 ms"
}
# truth NAME COUNT WORDS: packets that must not be.
truth() {
    jq -nc --arg f "$1" --arg v "$2" --arg w "$3" '{truth: $f, value: ($v | tonumber? // null), words: $w}' >>"$D/figures.jsonl"
    check "$3" test "$2" = 0
}
# moment WORDS [TIME]: something that happened, for the timeline.
moment() { printf '%s %s\n' "${2:-$(now_ns)}" "$1" >>"$D/moments.txt"; }
# pause_random MIN MAX: so many ms, drawn: the fault hits at another point of everything periodic.
pause_random() {
    local ms=$(($1 + RANDOM % ($2 - $1 + 1)))
    sleep "$(awk -v m=$ms 'BEGIN {print m / 1000}')"
}

scenario_end() {
    local rc=$?
    trap - EXIT INT TERM
    if [ "$rc" != 0 ]; then
        for f in "$D"/log/edge*.{agent,foundation}.log "$D"/log/client*.connector.log; do
            [ -s "$f" ] || continue
            printf -- '--- last lines of %s\n' "$f"
            tail -n 8 "$f" | cut -c1-300
        done
    fi
    [ -n "${SCENARIO_LAB:-}" ] || "$LAB" down "$D" 2>/dev/null || rc=1
    [ "$rc" != 0 ] || [ "$SLOW" = 0 ] || rc=75
    exit "$rc"
}
# scenario_up OPTION...: a lab (options of `lab up`), observers, foundations. scenario_agents: both agents, ready. With SCENARIO_LAB
# somebody keeps a lab with L = 10 s in $D: it is only set back.
scenario_up() {
    local lab=(up "$D" --owner $$ "$@")
    mkdir -p "$D"
    if [ -n "${SCENARIO_LAB:-}" ]; then
        lab=(reset "$D")
        [[ " $* " != *" --proxy "* ]] || lab+=(--proxy)
    else
        alone
    fi
    rm -f "$D"/{figures.jsonl,moments.txt,gates.txt}
    trap scenario_end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    "$LAB" "${lab[@]}" 2>"$D/up.log" || { cat "$D/up.log"; exit 1; }
    observers
    local n
    if [ -n "${ACCEPT:-}" ]; then
        "$LAB" run "$D" vpc late "$PROBE" late --log "$D/log/late.csv"
        for n in edge1 edge2; do route_notices $n; done
    fi
    for n in edge1 edge2; do "$LAB" start "$D" foundation "$n"; done
}
scenario_agents() {
    local n
    for n in edge1 edge2; do "$LAB" start "$D" agent "$n"; done
    for n in edge1 edge2; do check "$n's agent is ready" await 30 "ready" agent_ready "$n"; done
}
# try CERTIFICATE [ARG...]: one attempt at edge1 without device; prints the connector's events. CERTIFICATE none: no certificate.
try() {
    local cert=()
    [ "$1" = none ] || cert=(-cert "$D/pki/$1.crt" -key "$D/pki/$1.key")
    shift
    timeout 15 "$LAB" exec "$D" client "$CONNECTOR" -once -explain -tun '' -dial-timeout 5s -edges 'edge1=[fd00:c::1]:4433' \
        -ca "$D/pki/edge-ca.crt" "${cert[@]}" "$@" || true
}
address_of() { "$LAB" exec "$D" "$1" ip -6 -j addr show dev hfc0 | jq -r '.[0].addr_info[0].local'; } # CLIENT

# ---- one connector with traffic, and what must be true of it whatever happens -------------------------------------------
# One process at a time is `site-1`'s connector: on client or client2, each pinned to one edge and without coming back by
# itself, so that every packet tells which session carried it.
AUTH_W() { awk -v l="${1:-10}" 'BEGIN {printf "%d", (1.001 * (l / 0.999 + 0.5) + 2) * 1000}'; } # W in ms for a lease of L s
# cut_off EDGE: nothing passes between it and the API server any more, and nobody is told; heal EDGE.
cut_off() { "$LAB" exec "$D" "$1" nft -f - <<<'table inet cut { chain in { type filter hook input priority -300; iifname "mgmt0" drop; }
    chain out { type filter hook output priority -300; oifname "mgmt0" drop; }; }'; }
heal() { "$LAB" exec "$D" "$1" nft delete table inet cut; }
# session CLIENT EDGE [ARG...]: starts it, for one attempt; keeps_asking: comes back by itself; session_up CLIENT EDGE SINCE [SECONDS]: the event of its admission.
session() {
    local client=$1 edge=$2
    shift 2
    "$LAB" start "$D" connector "$client" site-1 -edges "$edge=[fd00:c::${edge#edge}]:4433" -dial-timeout 60s -idle 30s "${@:--once}"
}
keeps_asking() { session "$@" -once=false; }
session_up() { await "${4:-10}" "a session" event "$3" '.event == "connected" and .edge == "'"$2"'"' "$1"; }
# with_session [keeps_asking]: agents on both edges, a binding, a session of client on edge1, numbered packets that flow.
with_session() {
    scenario_agents
    "$LAB" binding "$D" acme site-1
    mark=$(now_ns)
    "${1:-session}" client edge1
    check "the connector has a session on edge1" session_up client edge1 "$mark"
    traffic "$(address_of client)"
    check "packets flow" flows client "$(now_ns)"
}
stream_of() { if [ "$1" = client ]; then echo 1; else echo 2; fi; }
# traffic ADDRESS: numbered packets from both clients, whoever has the address, and from the VPC host, all the time, one each
# TRAFFIC_US (4000) microseconds.
traffic() {
    local c
    for c in client client2; do
        "$LAB" run "$D" "$c" send "$PROBE" send --bind "$1" --freebind --to fd20::10 --port 7000 --interval "${TRAFFIC_US:-4000}" --stream "$(stream_of $c)"
    done
    "$LAB" run "$D" vpc send "$PROBE" send --bind fd20::10 --to "$1" --port 7000 --interval "${TRAFFIC_US:-4000}" --stream 9
}
# traffic_on: traffic to client's address, unless it runs already: later sessions have the same address.
traffic_on() {
    [ -n "${traffic_is_on:-}" ] || traffic "$(address_of client)"
    traffic_is_on=1
}
# flows CLIENT SINCE [SECONDS]: packets sent since then pass in both directions; prints the later of the two first arrivals.
flows() {
    local up down
    up=$(await "${3:-5}" "packets to the VPC host" stream_first "$D/log/to-vpc.csv" "$(stream_of "$1")" "$2") || { cat "$D/missing"; return 1; }
    down=$(await "${3:-5}" "packets to $1" packet_first "$D/log/to-$1.csv" "$2") || { cat "$D/missing"; return 1; }
    echo $((up > down ? up : down))
}
last_up() { stream_last "$D/log/to-vpc.csv" "$(stream_of "$1")"; }  # CLIENT
last_down() { packet_last "$D/log/to-$1.csv" 0 "$(now_ns)"; }         # CLIENT
first_up() { stream_first "$D/log/to-vpc.csv" "$(stream_of "$1")" "$2"; }   # CLIENT SINCE
first_down() { packet_first "$D/log/to-$1.csv" "$2"; }                  # CLIENT SINCE
# hand_over OLD NEW SINCE: no packet of the old session arrived after the first of the new one, in either direction.
hand_over() {
    local lu fu ld fd
    lu=$(last_up "$1") && fu=$(first_up "$2" "$3") && ld=$(last_down "$1") && fd=$(first_down "$2" "$3") || { echo "no packets to compare"; return 1; }
    echo "from the connector: last of $1 $(ms_between "$fu" "$lu") ms after the first of $2; to it: $(ms_between "$fd" "$ld") ms"
    [ "$lu" -lt "$fu" ] && [ "$ld" -lt "$fd" ]
}
# lost FILE STREAM FROM TO: numbered packets that were sent in that time and never came.
lost() {
    awk -F, -v s="$2" -v a="$3" -v b="$4" '$1 == s && $3 >= a && $3 <= b {n++; if (!lo || $2 < lo) lo = $2; if ($2 > hi) hi = $2}
        END {if (!n) print "none came"; else print hi - lo + 1 - n}' "$1"
}
# hits EDGE: requests that the proxy's first rule has caught. put_codes EDGE SINCE: answers of that edge's agent's writes of claims.
hits() { curl -sS --unix-socket "/run/holdfast-lab/$(sed -n 's/^LAB_ID=//p' "$D/lab.env")-$1.sock" http://proxy/rules | awk 'NR == 1 {print $1}'; }
caught() { [ "$(hits "$1")" -ge "$2" ] && now_ns; } # EDGE N
grep_code() { put_codes "$1" "$2" | grep -w "$3"; } # EDGE SINCE CODE
put_codes() {
    local boot wall
    read -r boot wall < <("$PROBE" clock)
    grep -F '"resource":"routeclaims"' "$D/api/audit.log" | jq -nr --argjson since "$2" --argjson d $((boot - wall)) --arg n "$1" '
        inputs | select(.verb == "update" and .objectRef.subresource == null and (.user.username // "" | endswith(":holdfast-agent"))
            and .user.extra["authentication.kubernetes.io/node-name"][0] == $n)
        | (.requestReceivedTimestamp | (.[:19] + "Z" | fromdate) * 1e9 + (.[20:26] | tonumber) * 1000 + $d) as $t
        | select($t >= $since) | .responseStatus.code' | tr '\n' ' '
}
# recorded EDGE EVENT REASON SINCE: an audit record of that agent; prints its time.
recorded() {
    local boot wall
    read -r boot wall < <("$PROBE" clock)
    cat "$D/nodes/$1"/audit/*.jsonl | jq -nr --argjson since "$4" --argjson d $((boot - wall)) --arg e "$2" --arg r "$3" '
        inputs | select(.event == $e and .reason == $r)
        | (.ts | (.[:19] + "Z" | fromdate) * 1e9 + (.[20:26] | tonumber) * 1000 + $d) as $t | select($t >= $since) | $t' | first_line
}
field() { k admin get rclaim -o "jsonpath={.items[0]$1}"; } # of the only claim
# HEX96: awk's function hex96(a), the first 96 bits of an address as 24 hex digits.
HEX96='
    function hex96(a,  p, h, l, r, i, nl, nr, s) {
        split("", h); p = index(a, "::")
        if (p) { nl = split(substr(a, 1, p - 1), l, ":"); nr = split(substr(a, p + 2), r, ":") } else { nl = split(a, l, ":"); nr = 0 }
        for (i = 1; i <= nl; i++) h[i] = l[i]
        for (i = 1; i <= nr; i++) h[8 - nr + i] = r[i]
        for (i = 1; i <= 6; i++) s = s substr("0000" h[i], length(h[i]) + 1)
        return s
    }'
# gate_times: lines "NS EDGE EVENT PREFIX", by the foundations' own logs.
gate_times() {
    local boot wall
    read -r boot wall < <("$PROBE" clock)
    jq -Rnr --argjson d $((boot - wall)) 'inputs | fromjson? // empty | select(.event | IN("foundation_open", "foundation_shut", "foundation_close"))
        | "\((.ts * 1000 | floor) * 1000 + $d) \(.node) \(.event) \(.prefix)"' "$D"/log/edge*.foundation.log | sort -n
}
# outside_gates: packets that an edge sent into the VPC while its gate for their prefix was closed, by its foundation's own log. A
# closing is logged after it happened (5 ms for the way to the capture); so is an opening: a packet may be a little earlier.
# With `none` no opening counts, to see that the check can fail.
outside_gates() {
    gate_times >"$D/gates.txt"
    awk -v none="${1:-}" "$HEX96"'
        FNR == NR {
            if (none) next
            sub(/\/.*/, "", $4); g = $2 " " hex96($4)
            if ($3 == "foundation_open" && !open[g]) { n[g]++; from[g, n[g]] = $1 - 100e6; to[g, n[g]] = 1e18; open[g] = 1 }
            else if ($3 != "foundation_open" && open[g]) { to[g, n[g]] = $1 + 5e6; open[g] = 0 }
            next
        }
        {
            split($0, f, ",")
            if (f[3] != "in") next
            if (!(f[4] in hex)) hex[f[4]] = hex96(f[4])
            g = (f[2] == "e1" ? "edge1 " : "edge2 ") hex[f[4]]
            seen++
            for (i = n[g]; i > 0; i--) if (f[1] >= from[g, i] && f[1] <= to[g, i]) break
            if (!i) { bad++; print "outside: " $0 > "/dev/stderr" }
        }
        END { print seen ? bad + 0 : "no packet at all" }' "$D/gates.txt" "$D/log/cap.csv"
}
# past_deadline: packets that an edge sent into the VPC later than L after the boot time of every renewal of its instance that
# landed: later than any gate deadline that the contract allows (section 6). From capture and API objects alone. 5 ms for the way.
# With `none` no renewal counts.
past_deadline() {
    jq -Rr 'split(" ") as $w | (.[($w[0] | length) + 1:] | fromjson? // empty) | .object.spec | select(.renew)
        | "\(.renew.bootTimeMicros)000 \(.nodeName) \(.leaseDurationSeconds)"' "$D/log/api.watch-providerinstances.log" | sort -nu >"$D/renewals.txt"
    awk -v none="${1:-}" '
        FNR == NR { if (!none) { n[$2]++; at[$2, n[$2]] = $1; l = $3 * 1e9 } next }
        {
            split($0, f, ",")
            if (f[3] != "in") next
            e = f[2] == "e1" ? "edge1" : "edge2"
            seen++
            while (i[e] < n[e] && at[e, i[e] + 1] <= f[1]) i[e]++
            if (!i[e] || f[1] > at[e, i[e]] + l + 5e6) { bad++; print "past: " $0 > "/dev/stderr" }
        }
        END { print seen ? bad + 0 : "no packet at all" }' "$D/renewals.txt" "$D/log/cap.csv"
}
# two_forwarders: packets of a prefix that came through an edge after another edge had begun to forward by a later holder of the row:
# the row's history is the API server's, the packets are the capture's. What a watch that had ended brings when it is begun again
# (after a line of type BEGIN) happened at some moment since then. With `none` the row never changed hands.
two_forwarders() {
    jq -Rr 'split(" ") as $w | (.[($w[0] | length) + 1:] | fromjson? // empty) as $e | if $e.type == "BEGIN" then "\($w[0]) BEGIN" else select($e.object.spec.holder)
        | "\($w[0]) \($e.object.metadata.name[3:]) \($e.object.spec.holder.node) \($e.object.metadata.uid)/\($e.object.spec.epoch)/\($e.object.spec.leaseUUID) \($e.type)" end' \
        "$D/log/api.watch-routeclaims.log" | sort -n | awk '$2 == "BEGIN" {if (!again) b = $1; again = 1; next} {again = 0} $4 != last[$2] {print ($5 == "ADDED" && b ? b : $1), $2, $3; last[$2] = $4}' >"$D/holders.txt"
    awk -v none="${1:-}" "$HEX96"'
        FNR == NR { if (!none || !n[$2]) { n[$2]++; at[$2, n[$2]] = $1; by[$2, n[$2]] = $3 } next }
        {
            split($0, f, ",")
            if (f[3] != "in") next
            if (!(f[4] in hex)) hex[f[4]] = hex96(f[4])
            p = hex[f[4]]; e = f[2] == "e1" ? "edge1" : "edge2"
            seen++
            if (!c[p]) c[p] = 1
            if (by[p, c[p]] == e) next
            for (j = c[p] + 1; j <= n[p]; j++) if (by[p, j] == e && at[p, j] <= f[1] + 1e9) break
            if (j <= n[p]) c[p] = j
            else { bad++; print "two: " $0 > "/dev/stderr" }
        }
        END { print seen ? bad + 0 : "no packet at all" }' "$D/holders.txt" "$D/log/cap.csv"
}
# packets_safe: what must be true of every packet, at the end of every scenario; safe: and of the gates. objects_safe: of every
# packet by capture and API objects alone, for so many connectors that their foundation's log leaves lines out.
packets_safe() {
    truth outside_gates "$(outside_gates 2>"$D/outside.txt")" "no packet came out of an edge whose gate was closed"
    check "which would have been seen" test "$(outside_gates none 2>/dev/null)" -gt 0
    objects_safe
}
objects_safe() {
    truth past_deadline "$(past_deadline 2>>"$D/outside.txt")" "no packet passed later than a lease after its node's last renewal"
    check "which would have been seen, too" test "$(past_deadline none 2>/dev/null)" -gt 0
    truth two_forwarders "$(two_forwarders 2>>"$D/outside.txt")" "no packet of an earlier holder's edge after the first of a later one's"
}
safe() {
    packets_safe
    check "no two gates were ever open for one prefix" test "$(gates_open_at_once)" = 1
}
