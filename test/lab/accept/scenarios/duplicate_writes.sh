#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# duplicate_writes.sh: the network delivers writes twice: at once, and the copy only when another holder has the row.
# given: a connector with traffic both ways, a proxy before the API server
# fault: every write of agent and foundation arrives twice; then the copy of a takeover, a release, a renewal and a gate's status is
#   held back until a successor forwards
# expect: a copy names a version that is past: it is refused and changes nothing; a takeover that lands when nobody waits is given back
# bound: 0 packets lost by a copy, 0 packets of two sessions at once
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
ROW='/apis/edge\.galactic\.datumapis\.com/v1alpha1/.*/routeclaims/rc-[0-9a-f]+'
scenario_up --lease 10 --proxy

# answers SINCE USER-REGEX RESOURCE SUBRESOURCE: how often which status came to writes of that resource, "CODE CODE ..."
answers() {
    local boot wall
    read -r boot wall < <("$PROBE" clock)
    grep -F "\"resource\":\"$3\"" "$D/api/audit.log" | jq -nr --argjson since "$1" --argjson d $((boot - wall)) --arg u "$2" --arg s "$4" '
        inputs | select((.verb | IN("update", "create")) and (.objectRef.subresource // "") == $s and (.user.username // "" | test($u)))
        | (.requestReceivedTimestamp | (.[:19] + "Z" | fromdate) * 1e9 + (.[20:26] | tonumber) * 1000 + $d) as $t
        | select($t >= $since) | .responseStatus.code' | tr '\n' ' '
}
has() { [[ " $1" == *" $2 "* ]] || { echo "$1"; return 1; }; }
n_of() { tr ' ' '\n' <<<"$1" | grep -cx "$2" || true; }

echo "-- every write arrives twice"
for e in edge1 edge2; do "$LAB" proxy "$D" $e 'duplicate ^(PUT|POST) /apis/(edge|masque)\.galactic'; done
begun=$(now_ns)
with_session
sleep 4 # a renewal, too
for w in routeclaims: providerinstances: routeclaims:status providerinstances:status hostattachments:status; do
    codes=$(answers "$begun" 'holdfast-(agent|foundation)' "${w%:*}" "${w#*:}")
    check "copies of writes of $w were refused" has "$codes" 409
    check "none of them landed: no more successes than refusals" test "$(n_of "$codes" 200)" -le "$(n_of "$codes" 409)"
done
check "one acquisition was enough" test "$(field .spec.epoch)" = 1
check "and the session is there: packets flow" flows client "$(now_ns)"

# late EDGE RULE SINCE: lets the copy go, and waits until it was refused.
copies() { [ "$(n_of "$(answers "$1" "$2" "$3" "$4")" 409)" -gt "$5" ] && now_ns; }
late() { # EDGE SINCE USER RESOURCE SUBRESOURCE WORDS STREAM
    local settled before now
    settled=$(now_ns) before=$(n_of "$(answers "$2" "$3" "$4" "$5")" 409)
    now="$(field .spec.epoch)/$(field .spec.leaseUUID)/$(field .spec.holder.node)/$(field .spec.releaseTime)"
    "$LAB" proxy "$D" "$1"
    check "$6: the copy arrives and is refused" await 5 "409" copies "$2" "$3" "$4" "$5" "$before"
    sleep 1
    check "$6: nothing has changed" test "$(field .spec.epoch)/$(field .spec.leaseUUID)/$(field .spec.holder.node)/$(field .spec.releaseTime)" = "$now"
    truth "lost_${6// /_}" "$(lost "$D/log/to-vpc.csv" "$7" "$settled" "$(($(now_ns) - 200000000))")" "$6: no packet was lost over it"
}

echo "-- the copy of a takeover, when the row was taken back"
for e in edge1 edge2; do "$LAB" proxy "$D" $e; done
"$LAB" proxy "$D" edge2 "late-copy=1 PUT $ROW\?"
mark=$(now_ns)
session client2 edge2
check "edge2 takes over" session_up client2 edge2 "$mark"
check "packets flow through edge2" flows client2 "$(now_ns)"
check "no overlap" hand_over client client2 "$mark"
back=$(now_ns)
session client edge1
check "edge1 takes it back" session_up client edge1 "$back"
check "packets flow through edge1" flows client "$(now_ns)"
check "no overlap" hand_over client2 client "$back"
late edge2 "$mark" holdfast-agent routeclaims '' takeover 1

echo "-- the copy of a release, when the row has a successor"
"$LAB" proxy "$D" edge1 "late-copy=1 PUT $ROW\?"
mark=$(now_ns)
"$LAB" stop "$D" connector client >/dev/null || true
check "the row is released" await 5 "release" claim "$mark" '.object.spec.releaseTime != null'
session client2 edge2
check "edge2 takes over" session_up client2 edge2 "$mark"
check "packets flow through edge2" flows client2 "$(now_ns)"
late edge1 "$mark" holdfast-agent routeclaims '' release 2

echo "-- the copy of a gate's status, when another node's gate is open"
"$LAB" proxy "$D" edge1 "late-copy PUT $ROW/status"
mark=$(now_ns)
session client edge1
check "edge1 takes over" session_up client edge1 "$mark"
back=$(now_ns)
session client2 edge2
check "edge2 takes it back" session_up client2 edge2 "$back"
check "packets flow through edge2" flows client2 "$(now_ns)"
late edge1 "$mark" holdfast-foundation routeclaims status "gate status" 2
safe
checks_done
