#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# figure_agent.sh: what an agent costs with the default configuration: API requests from its start until it is Ready (at most 10, by
# the API server's audit log), writes a second afterwards (0.15), resident memory idle (16 MiB) and with 1,000 connectors without
# sessions (24 MiB).
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/scenarios/lib.sh"
# shellcheck source=test/policy/lib.sh
. "$root/test/policy/lib.sh"
# shellcheck source=test/policy/figures_lib.sh
. "$root/test/policy/figures_lib.sh"
WINDOW=${WINDOW:-60} CONNECTORS=${CONNECTORS:-1000}

# of edge1's agent, received in that time; a watch counts when it begins
requests() { # FROM TO
    jq -r --arg a "$1" --arg b "$2" 'select(.user.username == "system:serviceaccount:holdfast-system:holdfast-agent"
        and .user.extra["authentication.kubernetes.io/node-name"] == ["edge1"] and .requestReceivedTimestamp >= $a and .requestReceivedTimestamp < $b)
        | [.auditID, .verb, (.objectRef.resource // .requestURI // "-") + (if .objectRef.subresource then "/" + .objectRef.subresource else "" end)] | @tsv' "$D/api/audit.log" |
        sort -u -k1,1
}
# A figure that misses its bound is a known limit when KNOWN_LIMITS.md has `figure-agent NAME`, and only up to LIMIT.
LIMITS=0
figure_or_limit() { # NAME VALUE BOUND UNIT LIMIT KEY
    if awk -v a="$2" -v b="$3" 'BEGIN {exit !(a + 0 > b + 0)}' && grep -qF "\`figure-agent $6\`" "$root/KNOWN_LIMITS.md"; then
        LIMITS=$((LIMITS + 1))
        figure "$1 (wanted: $3; known limit)" "$2" '<=' "$5" "$4"
    else
        figure "$1" "$2" '<=' "$3" "$4"
    fi
}
stamp() { date -u -d "${1:-now}" +%Y-%m-%dT%H:%M:%S.%6NZ; }
rss() { awk '/^VmRSS:/ {printf "%.1f", $2 / 1024}' "/proc/$(cut -d' ' -f1 "$D/run/edge1.agent.pid")/status"; }
metric() { http "http://[fd00:c::1]:9781/metrics" | awk -v m="$1" '$1 == m {print $2}'; }

scenario_up
from=$(stamp)
"$LAB" start "$D" agent edge1
await 30 ready agent_ready edge1 >/dev/null
to=$(stamp)
sleep 8 # watches that were open are in the log when they have ended
requests "$from" "$to" >"$D/start.tsv"
cut -f2,3 "$D/start.tsv" | sort | uniq -c
figure_or_limit "API requests until Ready" "$(wc -l <"$D/start.tsv")" 10 '' 20 requests
figure "of them, seen at all" "$(wc -l <"$D/start.tsv")" '>' 0 ''
sleep 15
figure_or_limit "resident memory, idle" "$(rss)" 16 MiB 18.5 memory
fleet_bindings "$CONNECTORS"
known() { [ "$(metric holdfast_bindings)" -ge "$CONNECTORS" ] && echo known; }
await 60 bindings known >/dev/null || { echo "the agent does not know the bindings"; exit 1; }
sleep 15
from=$(stamp)
sleep "$WINDOW"
to=$(stamp)
figure "bindings that the agent knows" "$(metric holdfast_bindings)" '>' $((CONNECTORS - 1)) ''
figure "resident memory, $CONNECTORS connectors without sessions" "$(rss)" '<=' 24 MiB
requests "$from" "$to" >"$D/after.tsv"
cut -f2,3 "$D/after.tsv" | sort | uniq -c
figure "writes" "$(awk -F'\t' -v w="$WINDOW" '$2 ~ /^(create|update|patch|delete)$/ && $3 !~ /selfsubject/ {n++} END {printf "%.3f", n / w}' "$D/after.tsv")" '<=' 0.15 /s
if [ "$LIMITS" = 0 ]; then figures_done; else figures_done "$LIMITS"; fi
