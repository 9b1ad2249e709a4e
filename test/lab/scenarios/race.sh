#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# race.sh: two agents meet a new connector at the same moment. One prefix, one forwarder (contract section 3). Three rounds,
# each with a connector that was never seen before.
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
scenario_up
scenario_agents

connected() { event "$mark" '.event == "connected"' "$1"; }                                     # CLIENT
ended() { event "$mark" '.event | IN("refused", "failed", "closed")' "$1"; }                    # CLIENT
both_answered() { { connected client || ended client; } >/dev/null && { connected client2 || ended client2; }; }
open_now() { # how many of the two have a session right now
    local c n=0
    for c in client client2; do
        if connected "$c" >/dev/null && ! ended "$c" >/dev/null; then n=$((n + 1)); fi
    done
    echo "$n"
}
one_open() { [ "$(open_now)" = 1 ] && echo yes; }
rows_of() { k admin get rclaim -o json | jq --arg c "$1" '[.items[] | select(.spec.connector == $c)] | length'; }

for round in 2 3 4; do
    site=site-$round
    "$LAB" binding "$D" acme "$site"
    sleep 1 # both agents know the binding; the race is about the connector
    rm -f "$D"/log/client*.connector.log
    mark=$(now_ns)
    "$LAB" start "$D" connector client "$site" -edges 'edge1=[fd00:c::1]:4433' -once -dial-timeout 45s &
    "$LAB" start "$D" connector client2 "$site" -edges 'edge2=[fd00:c::2]:4433' -once -dial-timeout 45s &
    wait
    check "$site: both got an answer" await 45 "answers" both_answered
    check "$site: exactly one session stays" await 20 "one session" one_open
    prefixes=$(cat "$D"/log/client*.connector.log | jq -rs '[.[] | select(.event == "connected") | .prefix[]] | unique | join(" ")')
    reserved=$(k admin get cb "acme.$site" -o 'jsonpath={.status.prefix}')
    note "$site: prefixes seen by the connectors: $prefixes; reservation: $reserved"
    check "$site: one prefix, the reservation" test "$prefixes" = "$reserved"
    check "$site: one row" test "$(rows_of "$site")" = 1
    # Both send on; only one way may carry packets at any moment.
    addr=$(printf '%s' "$prefixes" | sed 's|/96$||; s|0:0$|0:1|; s|::$|::1|')
    for c in client client2; do
        a=$(address_of "$c" 2>/dev/null || true)
        [ -z "$a" ] || [ "$a" = null ] || { addr=$a; "$LAB" run "$D" "$c" "send" "$PROBE" send --bind "$a" --to fd20::10 --port 7000 --interval 3000 --stream "$round" || true; }
    done
    "$LAB" run "$D" vpc send "$PROBE" send --bind fd20::10 --to "$addr" --port 7000 --interval 3000 --stream "$round"
    sleep 2
    links=$(awk -F, -v r="$round" '$1 == r {print $5}' "$D/log/to-vpc.csv" | sort -u | tr '\n' ' ')
    note "$site: packets came through: $links"
    check "$site: one forwarder, with packets" test "$(wc -w <<<"$links")" = 1
    ways=$(cat <(awk -F, -v r="$round" '$1 == r {print "client"}' "$D/log/to-client.csv" | sort -u) <(awk -F, -v r="$round" '$1 == r {print "client2"}' "$D/log/to-client2.csv" | sort -u) | wc -l)
    check "$site: one way back, with packets" test "$ways" = 1
    for c in client client2; do
        "$LAB" stop "$D" send "$c" >/dev/null 2>&1 || true
        "$LAB" stop "$D" connector "$c" >/dev/null 2>&1 || true
    done
    "$LAB" stop "$D" send vpc >/dev/null 2>&1 || true
done
safe
checks_done
