# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The demo's tools: a timeline, waiting for facts in the observers' files, the summary. Sourced by demo.sh.
#
# Observers write lines "NS ..." (CLOCK_BOOTTIME) all the time; a step looks up when a thing was seen. Files in $D/log:
#   api.watch-KIND.log  "NS {watch event}" of an API collection
#   vpc.routes.log      "NS ip-monitor line" at the VPC host
#   cap.csv             NS,link,in|out,source,destination,protocol,length at the VPC host, per link
#   to-vpc.csv          stream,seq,sent,received,link,source of the connector's numbered packets at the VPC host
#   echo.csv            the same of their echoes, back at the connector
#   to-client.csv       the same of the VPC host's numbered packets at the connector
#   client.connector.log   the connector's JSON events

now_ns() { "$PROBE" clock | cut -d' ' -f1; }
ms_between() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.1f", (b - a) / 1e6}'; }

# ---- timeline ----------------------------------------------------------------------------------------------------
T0=0 STEP=0 STEP_T0=0 STEP_TITLE=''
tl() { # WHO WHAT [NS]
    local t=${3:-$(now_ns)}
    printf '%9s ms  %-12s %s\n' "$(ms_between "$T0" "$t")" "$1" "$2"
    jq -nc --argjson ms "$(ms_between "$T0" "$t")" --argjson step "$STEP" --arg who "$1" --arg what "$2" \
        '{ms: $ms, step: $step, who: $who, what: $what}' >>"$D/timeline.jsonl"
}
step() { # TITLE
    step_end true
    STEP=$((STEP + 1)) STEP_TITLE=$1 STEP_T0=$(now_ns)
    printf '\n== %d. %s\n' "$STEP" "$1"
}
step_end() { # OK
    [ "$STEP" -gt 0 ] || return 0
    jq -nc --argjson n "$STEP" --arg title "$STEP_TITLE" --argjson ok "$1" --argjson ms "$(ms_between "$STEP_T0" "$(now_ns)")" \
        '{step: $n, title: $title, ok: $ok, ms: $ms}' >>"$D/steps.jsonl"
}
fail() {
    printf '\n%9s ms  %-12s FAILED: %s\n' "$(ms_between "$T0" "$(now_ns)")" demo "$*" >&2
    FAILURE=$*
    exit 1
}
# timing NAME MS: a measured figure. bound PATH MS FITS: one of contract section 12's paths.
timing() { jq -nc --arg n "$1" --argjson v "$2" '{($n): $v}' >>"$D/timings.jsonl"; }
bound() {
    jq -nc --arg p "$1" --argjson ms "$2" --argjson fit "$3" '{path: $p, ms: $ms, mustFitMs: $fit, ok: ($ms <= $fit)}' >>"$D/bounds.jsonl"
}

# ---- facts -------------------------------------------------------------------------------------------------------
# seen FILE SINCE JQ: time of the first line at or after SINCE whose JSON satisfies the jq condition.
seen() {
    [ -s "$1" ] || return 1
    jq -Rnr --argjson since "$2" 'first(inputs | split(" ") as $w | ($w[0] | tonumber? // -1) as $t | select($t >= $since)
        | (.[($w[0] | length) + 1:] | fromjson? // empty) as $e | $e | select('"$3"') | $t)' "$1" 2>/dev/null | grep .
}
# event SINCE JQ: the connector's first event at or after SINCE that satisfies the condition, whole.
event() {
    jq -Rnc --argjson since "$1" 'first(inputs | fromjson? // empty | select(.t >= $since) | select('"$2"'))' \
        "$D/log/client.connector.log" 2>/dev/null | grep .
}
# text_seen FILE SINCE REGEX: as seen, for plain lines.
text_seen() { awk -v s="$2" -v re="$3" '$1 >= s && $0 ~ re {print $1; f = 1; exit} END {exit !f}' "$1"; }
# packet first|last FILE SINCE UNTIL: receive time of a numbered packet, by when it was *sent* for first, received for last.
packet_first() { awk -F, -v s="$2" '$3 >= s && NF == 6 {print $4; f = 1; exit} END {exit !f}' "$1"; }
packet_last() { awk -F, -v s="$2" -v u="$3" '$4 >= s && $4 <= u && NF == 6 {t = $4} END {if (t) print t; else exit 1}' "$1"; }
# cap_count LINK DIRECTION SINCE UNTIL: packets on a link of the VPC host.
cap_count() { awk -F, -v l="$1" -v d="$2" -v s="$3" -v u="$4" '$2 == l && $3 == d && $1 >= s && $1 <= u {n++} END {print n + 0}' "$D/log/cap.csv"; }

# await SECONDS WHAT COMMAND...: repeats until the command prints something; prints it. WHAT is for the message.
await() {
    local end=$(($(date +%s%3N) + $1 * 1000)) what=$2 out
    shift 2
    until out=$("$@"); do
        (($(date +%s%3N) < end)) || { printf '%s' "$what" >"$D/missing"; return 1; }
        sleep 0.04
    done
    printf '%s' "$out"
}
must() { # VARIABLE SECONDS WHAT COMMAND...
    local -n ret_must=$1
    shift
    ret_must=$(await "$@") || fail "not seen within $1 s: $2"
}
