#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# figure_outage.sh [webhook|apiserver|network]: a connector after an outage of its authority. RUNS (50) times the authority goes away for
# long enough that the session has ended on its deadline; from right before it answers again to the connector's next session: at
# most 1 s, each time. webhook: the operator's service refuses connections (odd runs) or hangs (even runs). apiserver: requests are held
# (odd) or answered with 503 (even); half of the runs with a client certificate, half with a bearer token, which the API server
# reviews. network (without a bound, see KNOWN_LIMITS.md): packets between the edge and the API server are lost. The connector asks
# every 100 ms, whatever Retry-After says, and gives an attempt up after DIAL (5s); nothing rests on that: with DIAL=1s it holds, too.
set -euo pipefail
WHICH=${1:-webhook}
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/scenarios/lib.sh"
D=$root/build/scenarios/figure_outage_$WHICH
# shellcheck source=test/policy/lib.sh
. "$root/test/policy/lib.sh"
# shellcheck source=test/policy/figures_lib.sh
. "$root/test/policy/figures_lib.sh"
RUNS=${RUNS:-50} DIAL=${DIAL:-5s}

case $WHICH in
webhook) scenario_up ;;
apiserver) scenario_up --proxy --lease 10 ;;
network) scenario_up --lease 10 ;;
*) echo "figure_outage.sh: '$WHICH' is none of webhook, apiserver, network" >&2; exit 2 ;;
esac
policy_save
binding site-1 '{"uri":"spiffe://acme/site-1"}' '{"user":"system:serviceaccount:acme:site-1"}'
if [ "$WHICH" = webhook ]; then
    hook_keys
    hook_start
    hook rules 'grant 6'
    policy_config edge1 webhook off
else
    policy_config edge1 kubernetes on
    k admin create namespace acme >/dev/null
    k admin create clusterrolebinding holdfast-agent-reviews --clusterrole=holdfast-agent-reviews --serviceaccount=holdfast-system:holdfast-agent >/dev/null
    account site-1
    token site-1 "$D/site-1.token"
    [ "$WHICH" = network ] || PROXY_SOCK=/run/holdfast-lab/$(. "$D/lab.env" && printf %s "$LAB_ID")-edge1.sock
fi
"$LAB" start "$D" agent edge1
await 30 ready agent_ready edge1 >/dev/null
away() { # RUN
    case $WHICH$(($1 % 2)) in
    webhook1) hook down ;;
    webhook0) hook rules 'grant 6' hang ;;
    apiserver1) "$LAB" proxy "$D" edge1 'hold .*' ;;
    network*) cut_off edge1 ;;
    apiserver0) "$LAB" proxy "$D" edge1 'status=503 .*' ;;
    esac
}
# applied SOCKET PATH [CURL-ARG...]: does it; prints when it began to be so, by the peer's own clock.
applied() {
    curl -sS --fail-with-body -o /dev/null -D - --unix-socket "$1" "http://peer/$2" "${@:3}" | sed -n 's/^[Aa]pplied-[Aa]t: \([0-9]*\).*/\1/p'
}
back() { # RUN
    case $WHICH$(($1 % 2)) in
    webhook1) applied "$HOOK_SOCK" up -X POST ;;
    webhook0) applied "$HOOK_SOCK" rules --data-binary 'grant 6' ;;
    network*) now_ns && heal edge1 ;;
    apiserver*) applied "$PROXY_SOCK" rules --data-binary '' ;;
    esac
}
LOG=$D/log/client.connector.log
session client $(cert site-1) -dial-timeout "$DIAL"
by=certificate
last() { grep -E '"event":"(connected|closed|refused|failed)"' "$LOG" | tail -n 1; }
ended() { grep -c '"event":"closed"' "$LOG"; }
: >"$D/outage-ms.csv"
for ((run = 1; run <= RUNS; run++)); do
    if [ "$WHICH" != webhook ] && [ $by = certificate ] && [ $((2 * run)) -gt "$RUNS" ]; then
        by=token
        end_session client
        session client -token-file "$D/site-1.token" -dial-timeout "$DIAL"
    fi
    calm() { last | jq -e 'select(.event == "connected") | .t' | awk -v n="$(now_ns)" '{if (n - $1 > 5e8) print "calm"}'; }
    await 20 "a session that lasts" calm >/dev/null || { echo "run $run: no session that lasts"; last; exit 1; }
    before=$(ended || true)
    away "$run"
    gone() { [ "$(ended || true)" -gt "$before" ] && echo gone; }
    await 20 "the session's end" gone >/dev/null || { echo "run $run: the session does not end"; exit 1; }
    sleep "1.$((RANDOM % 1000))" # the connector is somewhere between two attempts
    t0=$(back "$run")
    up() { jq -r --argjson t "$t0" 'select(.event == "connected" and .t > $t) | .t' "$LOG" | head -n 1; }
    t2=$(await 40 "a session" up) || { echo "run $run: not back after 40 s"; last; exit 1; }
    awk -v a="$t0" -v b="$t2" -v by=$by 'BEGIN {printf "%.1f,%s\n", (b - a) / 1e6, by}' >>"$D/outage-ms.csv"
done
figure "$WHICH: runs" "$(wc -l <"$D/outage-ms.csv")" = "$RUNS" ''
for q in 0.5 0.99; do printf 'figure  %-64s %10s ms\n' "$WHICH: authority back to session, quantile $q" "$(cut -d, -f1 "$D/outage-ms.csv" | quantile $q)"; done
for by in $(cut -d, -f2 "$D/outage-ms.csv" | sort -u); do
    longest=$(awk -F, -v by="$by" '$2 == by {print $1}' "$D/outage-ms.csv" | quantile 1)
    if [ "$WHICH" = network ]; then
        printf 'figure  %-64s %10s ms\n' "$WHICH: authority back to session, by $by, longest" "$longest"
    else
        figure "$WHICH: authority back to session, by $by, longest" "$longest" '<=' 1000 ms
    fi
done
figures_done 1
