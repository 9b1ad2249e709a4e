#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# late_any.sh: any write of a move, of the old node or the new one, of agent or foundation, comes late, twice, or without its answer.
# given: a connector with traffic both ways that moves from edge to edge, MOVES (8) times, over HTTP/3 or HTTP/2, each drawn
# fault: drawn for each move: which write (renewal, acquisition, takeover, release, finalizer, gate's or instance's or binding's
#   status, attachment), on which side, the first or the first two; held, answer lost, sent twice, or its copy kept back; let go later
# expect: the connector has a session on the other edge in the end; what comes late changes nothing of the successor's
# bound: 0 packets of the old session after the first of the new one; a session within W + 8 s of the moment when all passes again
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
W=$(AUTH_W 10)
scenario_up --lease 10 --proxy
scenario_agents
"$LAB" binding "$D" acme site-1
EDGE='/apis/edge\.galactic\.datumapis\.com/v1alpha1/.*'
ACTIONS=(hold lose-answer duplicate late-copy)
declare -A WRITES=([claim]="(PUT|POST) ${EDGE}/routeclaims(/rc-[0-9a-f]+)?\?" [gate]="PUT ${EDGE}/routeclaims/rc-[0-9a-f]+/status"
    [renewal]="PUT ${EDGE}/providerinstances/[^/]+\?" [instance]="PUT ${EDGE}/providerinstances/[^/]+/status"
    [binding]='PUT /apis/masque\..*/connectorbindings/[^/]+/status' [attachment]="(PUT|POST) ${EDGE}/hostattachments")
NAMES=(claim gate renewal binding claim gate instance attachment)
draw() { local -n list=$1; DRAWN=${list[$((RANDOM % ${#list[@]}))]}; } # LIST: not in a subshell, which would draw the same again
SIDES=(old new both) TRANSPORTS_=(h3 h2) HOWS=(replaced stopped) LIMITS=(1 2)
mark=$(now_ns)
session client edge1 -once
check "the connector has a session on edge1" session_up client edge1 "$mark"
traffic "$(address_of client)"
check "packets flow" flows client "$(now_ns)"
old=client new=client2 from=edge1 to=edge2 worst=0
for ((move = 1; move <= ${MOVES:-8}; move++)); do
    draw ACTIONS; action=$DRAWN
    draw NAMES; what=$DRAWN
    draw SIDES; side=$DRAWN
    draw LIMITS; limit=$DRAWN
    draw TRANSPORTS_; t=$DRAWN
    draw HOWS; how=$DRAWN
    name="$move: $action=$limit $what of $side, $how, $t"
    note "$name"
    for e in $from $to; do
        [ "$side" = both ] || { [ "$side" = old ] && [ $e = $from ]; } || { [ "$side" = new ] && [ $e = $to ]; } || continue
        "$LAB" proxy "$D" $e "$action=$limit ${WRITES[$what]}"
    done
    pause_random 0 3000
    mark=$(now_ns)
    moment "$name" "$mark"
    [ $how = replaced ] || "$LAB" stop "$D" connector $old >/dev/null 2>&1 || true
    keeps_asking $new $to -transport "$t"
    session_up $new $to "$mark" 4 >/dev/null || true
    pause_random 0 2000
    for e in edge1 edge2; do "$LAB" proxy "$D" $e; done
    passes=$(now_ns)
    moment "all passes" "$passes"
    up=$(session_up $new $to "$mark" $((W / 1000 + 8))) || up=''
    check "$name: the connector has a session on $to in the end" test -n "$up"
    [ -n "$up" ] || break
    took=$(ms_between "$passes" "$(jq .t <<<"$up")")
    worst=$(awk -v a="$took" -v b="$worst" 'BEGIN {print (a > b ? a : b)}')
    check "$name: packets flow through $to" flows $new "$(now_ns)" 10
    sleep 0.5 # what was let go has arrived
    check "$name: packets still flow" flows $new "$(now_ns)" 10
    check "$name: no overlap" hand_over $old $new "$mark"
    "$LAB" kill -KILL "$D" connector $old 2>/dev/null || true # it may have ended
    # the next move's old session must not come back by itself
    mark=$(now_ns)
    "$LAB" kill -KILL "$D" connector $new
    session $new $to -transport "$t" -once
    check "$name: once more, for the next move" session_up $new $to "$mark" 15
    check "$name: packets flow" flows $new "$(now_ns)"
    swap=$old old=$new new=$swap swap=$from from=$to to=$swap
done
figure session "$worst" $((W + 8000)) "the longest from the moment when all passes to a session"
safe
checks_done
