# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Facts about a running lab, looked up in its observers' files; sourced. D is the lab's folder, PROBE the probe, LAB the tool.
#
# Observers write lines "NS ..." (CLOCK_BOOTTIME) all the time; a test looks up when a thing was seen. Files in $D/log:
#   api.watch-KIND.log     "NS {watch event}" of an API collection
#   vpc.routes.log         "NS line" of `ip monitor route` at the VPC host (in the acceptance lab of the edges, too)
#   cap.csv                NS,link,in|out,source,destination,protocol,length at the VPC host, per link
#   to-vpc.csv             stream,seq,sent,received,link,source of connectors' numbered packets at the VPC host
#   to-client.csv, to-client2.csv   the same of the VPC host's numbered packets at the connectors
#   echo.csv               the same of echoes, back at the connector
#   CLIENT.connector.log   the connector's JSON events

# alone: one run at a time in $D: a second one would take the first one's lab down. What a run that was killed has left is
# taken down first (its processes hold the lock).
alone() {
    "$LAB" reap
    exec 7>"$D/.lock"
    flock -n 7 || { echo "${0##*/}: error: another run uses $D; wait for it, or end it" >&2; exit 1; }
}

now_ns() { "$PROBE" clock | cut -d' ' -f1; }
ms_between() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.1f", (b - a) / 1e6}'; }

# ---- observers ---------------------------------------------------------------------------------------------------
observe_kind() { # KIND GROUP
    local url="https://[fd00:a::10]:6443/apis/$2/v1alpha1/namespaces/holdfast-system/$1?watch=1&timeoutSeconds=900"
    # shellcheck disable=SC2016
    "$LAB" run "$D" api "watch-$1" bash -c 'curl -gsN --cacert "$1/ca.crt" --cert "$1/admin.crt" --key "$1/admin.key" "$2" | "$3" stamp' \
        _ "$D/api/pki" "$url" "$PROBE"
}
# observe_again: the API server was gone, and its watches with it.
observe_again() {
    local kind
    for kind in routeclaims providerinstances hostattachments; do observe_kind $kind edge.galactic.datumapis.com; done
    observe_kind connectorbindings masque.galactic.datumapis.com
}
# shellcheck disable=SC2016
route_notices() { "$LAB" run "$D" "$1" routes bash -c 'stdbuf -oL ip -6 monitor route | "$1" stamp' _ "$PROBE"; } # NODE
observers() {
    observe_again
    route_notices vpc
    "$LAB" run "$D" vpc cap "$PROBE" cap --if e1 --if e2 --prefix fd12:0:0:1::/64 --log "$D/log/cap.csv"
    "$LAB" run "$D" vpc recv "$PROBE" recv --port 7000 --bind fd20::10 --echo --log "$D/log/to-vpc.csv"
    "$LAB" run "$D" vpc tcp "$PROBE" tcp-serve --port 7001 --bind fd20::10
    "$LAB" run "$D" client recv "$PROBE" recv --port 7000 --log "$D/log/to-client.csv"
    "$LAB" run "$D" client2 recv "$PROBE" recv --port 7000 --log "$D/log/to-client2.csv"
    "$LAB" run "$D" client tcp "$PROBE" tcp-serve --port 7001
}

# ---- facts -------------------------------------------------------------------------------------------------------
# first_line: the first of the lines, status 1 if there is none. (jq 1.6's first() does not stop where a `?` is inside.)
first_line() { awk 'NR == 1 {print} END {exit NR == 0}'; }
# seen FILE SINCE JQ: time of the first line at or after SINCE whose JSON satisfies the jq condition.
seen() {
    [ -s "$1" ] || return 1
    jq -Rnr --argjson since "$2" 'inputs | split(" ") as $w | ($w[0] | tonumber? // -1) as $t | select($t >= $since)
        | (.[($w[0] | length) + 1:] | fromjson? // empty) | select('"$3"') | $t' "$1" 2>/dev/null | first_line
}
# event SINCE JQ [CLIENT]: the connector's first event at or after SINCE that satisfies the condition, whole.
event() {
    jq -Rnc --argjson since "$1" 'inputs | fromjson? // empty | select(.t >= $since) | select('"$2"')' \
        "$D/log/${3:-client}.connector.log" 2>/dev/null | first_line
}
# logged NODE.PROCESS SINCE JQ: time of a process's own log line (its ts is wall clock in ms, turned into CLOCK_BOOTTIME).
logged() {
    local boot wall
    read -r boot wall < <("$PROBE" clock)
    jq -Rnr --argjson since "$2" --argjson d $((boot - wall)) 'inputs | (fromjson? // empty) as $e
        | (($e.ts * 1000 | floor) * 1000 + $d) as $t | $e | select($t >= $since) | select('"$3"') | $t' "$D/log/$1.log" 2>/dev/null | first_line
}
# gates_open_at_once: over the whole run, the largest number of nodes whose gate for the same /96 was open at one moment, by the
# foundations' own logs (an opening is logged after it happened, a closing too, so an overlap cannot hide).
gates_open_at_once() {
    jq -Rnc '[inputs | fromjson? // empty | select(.prefix and (.event | IN("foundation_open", "foundation_shut", "foundation_close")))] | sort_by(.ts)
        | reduce .[] as $e ({open: {}, max: 0};
            .open[$e.prefix][$e.node] = ($e.event == "foundation_open")
            | .max = ([.max, ([.open[] | [.[] | select(.)] | length] | max)] | max)) | .max' "$D"/log/edge*.foundation.log
}
# text_seen FILE SINCE REGEX: as seen, for plain lines.
text_seen() { awk -v s="$2" -v re="$3" '$1 >= s && $0 ~ re {print $1; f = 1; exit} END {exit !f}' "$1"; }
# packet first|last FILE SINCE UNTIL: receive time of a numbered packet, by when it was *sent* for first, received for last.
packet_first() { awk -F, -v s="$2" '$3 >= s && NF == 6 {print $4; f = 1; exit} END {exit !f}' "$1"; }
packet_last() { awk -F, -v s="$2" -v u="$3" '$4 >= s && $4 <= u && NF == 6 {t = $4} END {if (t) print t; else exit 1}' "$1"; }
# stream_first FILE STREAM SINCE: the same of one stream; stream_last FILE STREAM: receive time of its last packet so far.
stream_first() { awk -F, -v m="$2" -v s="$3" '$1 == m && $3 >= s && NF == 6 {print $4; f = 1; exit} END {exit !f}' "$1"; }
stream_last() { awk -F, -v m="$2" '$1 == m && NF == 6 {t = $4} END {if (t) print t; else exit 1}' "$1"; }
# cap_count LINK DIRECTION SINCE UNTIL: packets on a link of the VPC host.
cap_count() { awk -F, -v l="$1" -v d="$2" -v s="$3" -v u="$4" '$2 == l && $3 == d && $1 >= s && $1 <= u {n++} END {print n + 0}' "$D/log/cap.csv"; }

# instance_ready NODE SINCE: the node's foundation has accepted the instance that the row names.
instance_ready() {
    seen "$D/log/api.watch-providerinstances.log" "$2" \
        '.object.spec.nodeName == "'"$1"'" and .object.status.acceptedProcessID == .object.spec.processID and .object.status.acceptedEpoch == .object.spec.epoch'
}
agent_ready() { # NODE
    "$LAB" exec "$D" "$1" curl -gsf -m 1 "http://[fd00:c::${1#edge}]:9780/readyz" -o /dev/null && now_ns
}
# started NODE NAME: when that process was made (kernel's clock ticks since boot, 10 ms).
started() { awk -v hz="$(getconf CLK_TCK)" '{printf "%.0f", $2 * 1e9 / hz}' "$D/run/$1.$2.pid"; }
claim() { seen "$D/log/api.watch-routeclaims.log" "$@"; } # SINCE JQ
# api_received SINCE VERB RESOURCE NAME [USER-REGEX]: when the API server received the first such request at or after SINCE that it
# then answered with 2xx (its audit log, wall clock turned into CLOCK_BOOTTIME).
api_received() {
    local boot wall
    read -r boot wall < <("$PROBE" clock)
    grep -F "\"resource\":\"$3\"" "$D/api/audit.log" | jq -nr --argjson since "$1" --argjson d $((boot - wall)) --arg v "$2" --arg n "$4" --arg u "${5:-.}" '
        inputs | select(.verb == $v and .objectRef.name == $n and .responseStatus.code < 300 and (.user.username // "" | test($u)))
            | (.requestReceivedTimestamp | (.[:19] + "Z" | fromdate) * 1e9 + (.[20:26] | tonumber) * 1000 + $d) as $t
            | select($t >= $since) | $t' | first_line
}
# eventfds NODE NAME: what its threads have told each other and nobody has taken yet (the sum of its eventfds' counts).
eventfds() {
    local sum=0 x
    while read -r x; do sum=$((sum + 16#$x)); done < <(awk '$1 == "eventfd-count:" {print $2}' "/proc/$(cut -d' ' -f1 "$D/run/$1.$2.pid")/fdinfo"/*)
    printf '%d' "$sum"
}
# asked BEFORE: edge1's data threads have told its control thread something since their eventfds had that sum; for await.
asked() { [ "$(eventfds edge1 agent)" -gt "$1" ] && now_ns; }
# switches FILE...: from lines "time key", in any order: how often does the key change from one moment to the next?
switches() { sort -n "$@" | awk 'k != "" && $2 != k {n++} {k = $2} END {print n + 0}'; }

# await SECONDS WHAT COMMAND...: repeats until the command succeeds and prints something; prints it. WHAT is for the message.
await() {
    local end=$(($(date +%s%3N) + $1 * 1000)) what=$2 out
    shift 2
    until out=$("$@") && [ -n "$out" ]; do
        (($(date +%s%3N) < end)) || { printf '%s' "$what" >"$D/missing"; return 1; }
        sleep 0.04
    done
    printf '%s' "$out"
}
