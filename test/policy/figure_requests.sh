#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# figure_requests.sh: what refreshing costs, with the default timing (lease 30 s, grant 30 s: an interval is 10 s). Requests of
# edge1's agent at the API server, from the server's audit log, while 1, 100 and 1,000 sessions (client certificates) last
# undisturbed for WINDOW (150) seconds: the same within 10 %. Beside it the writes of that agent and of its foundation, each at
# most 0.15 a second.
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/scenarios/lib.sh"
# shellcheck source=test/policy/lib.sh
. "$root/test/policy/lib.sh"
# shellcheck source=test/policy/figures_lib.sh
. "$root/test/policy/figures_lib.sh"
WINDOW=${WINDOW:-150} SIZES=${SIZES:-1 100 1000}

# between ACCOUNT FROM TO: edge1's requests in that account's name that were received in that time (RFC 3339), one compact line
# each; a watch counts when it begins.
between() {
    jq -c --arg who "system:serviceaccount:holdfast-system:$1" --arg a "$2" --arg b "$3" 'select(.user.username == $who
        and .user.extra["authentication.kubernetes.io/node-name"] == ["edge1"]
        and .requestReceivedTimestamp >= $a and .requestReceivedTimestamp < $b and .stage != "ResponseStarted")
        | [.auditID, .verb, (.objectRef.resource // "-") + (if .objectRef.subresource then "/" + .objectRef.subresource else "" end)]' "$D/api/audit.log"
}
stamp() { date -u -d "${1:-now}" +%Y-%m-%dT%H:%M:%S.%6NZ; }
writes() { jq -r '.[1]' | grep -cE '^(create|update|patch|delete)$' || true; }
quiet() { # in the last 10 s neither of the two has written more than a renewal
    local from n=0 who
    from=$(stamp '-10 seconds')
    for who in holdfast-agent holdfast-foundation; do n=$((n + $(between $who "$from" 9 | writes))); done
    [ "$n" -gt 2 ] || echo quiet
}

scenario_up
fleet_room edge1
"$LAB" start "$D" agent edge1
await 30 ready agent_ready edge1 >/dev/null
largest=$(tr ' ' '\n' <<<"$SIZES" | sort -n | tail -n 1)
fleet_bindings "$largest"
counts=()
for n in $SIZES; do
    fleet_start "$n" -parallel 8
    up() { fleet_is_up "$n" && echo up; }
    await 600 sessions up >/dev/null || { fleet_stats; exit 1; }
    await 120 quiet quiet >/dev/null || { echo "the agent or the foundation writes on"; exit 1; }
    from=$(stamp)
    sleep "$WINDOW"
    to=$(stamp)
    figure "sessions of $n that ended in between" "$(fleet_stats | jq .closed)" = 0 ''
    sleep 8 # watches that were open are in the log when they have ended
    between holdfast-agent "$from" "$to" >"$D/requests-$n.jsonl"
    between holdfast-foundation "$from" "$to" >"$D/foundation-$n.jsonl"
    total=$(wc -l <"$D/requests-$n.jsonl")
    counts+=("$total")
    printf 'figure  %-64s %10s   ' "requests in $WINDOW s with $n sessions" "$total"
    jq -r '.[1:] | join(" ")' "$D/requests-$n.jsonl" | sort | uniq -c | awk '{printf "%s%s %s %s", (NR > 1 ? ", " : "("), $1, $2, $3} END {print ")"}'
    for who in agent foundation; do
        file=$D/requests-$n.jsonl
        [ $who = agent ] || file=$D/foundation-$n.jsonl
        figure "writes of the $who with $n sessions" "$(writes <"$file" | awk -v w="$WINDOW" '{printf "%.3f", $1 / w}')" '<=' 0.15 /s
    done
    "$LAB" stop "$D" fleet client >/dev/null || true
    idle() { [ "$(http "http://[fd00:c::1]:9781/metrics" | awk '$1 == "holdfast_sessions_forwarding" {print $2}')" = 0 ] && echo idle; }
    await 120 idle idle >/dev/null || { echo "sessions stay"; exit 1; }
done
figure "fewest requests" "$(printf '%s\n' "${counts[@]}" | sort -n | head -n 1)" '>' 0 ''
spread=$(printf '%s\n' "${counts[@]}" | awk 'NR == 1 {min = max = $1} {if ($1 < min) min = $1; if ($1 > max) max = $1} END {printf "%.1f", max ? (max - min) * 100 / max : 100}')
figure "requests: difference between the most and the fewest" "$spread" '<=' 10 %
figures_done
