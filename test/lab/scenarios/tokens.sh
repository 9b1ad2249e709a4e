#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tokens.sh: the agent's token is replaced while it runs, as a kubelet does: by a fresh one (nothing happens), by another node's, by
# another account's, by one that nobody gave out. What is not its own the API server refuses, the agent says so, what it held
# ends with its lease and not later, and the other node takes over; with the right token it goes on by itself.
# given: a connector with traffic both ways through edge1, L 10 s
# fault: edge1's agent gets other tokens
# expect: loud refusals, an end with the lease, a way back without a restart
# bound: 0 packets outside a gate, 1 gate open at most
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
TOKEN=$D/nodes/edge1/etc/token
AUDIT=$D/api/audit.log
# give FILE: its content is edge1's token now, and the agent is told to look.
give() {
    install -m 0640 -g 65532 "$1" "$TOKEN.new"
    mv -f "$TOKEN.new" "$TOKEN"
    "$LAB" kill -HUP "$D" agent edge1
}
id_of() { cut -d. -f2 "$1" | tr '_-' '/+' | { read -r p; while [ $((${#p} % 4)) != 0 ]; do p=$p=; done; base64 -d <<<"$p"; } | jq -r .jti; }
asked_with() { grep -F "JTI=$1" "$AUDIT" | grep -F '"resource":"providerinstances"'; } # ID: the agent's renewals come with that token
# refused ID: some write of that token's was refused
refused() { grep -F "JTI=$1" "$AUDIT" | jq -c 'select(.verb == "update" and .responseStatus.code == 403) | .responseStatus.message' | grep .; }
says() { logged edge1.agent "$1" "$2"; } # SINCE JQ
readyz() { "$LAB" exec "$D" edge1 curl -gs -m 2 "http://[fd00:c::1]:9780/readyz"; }
not_ready() { readyz | grep -F '[-]'; }
pid() { cut -d' ' -f1 "$D/run/edge1.agent.pid"; }
scenario_up --lease 10
with_session keeps_asking
process=$(pid)

echo "-- a fresh token of its own"
mark=$(now_ns)
"$root/test/apiserver/token.sh" "$D/api" agent-edge1 2>/dev/null
own=$D/api/tokens/agent-edge1
give "$own"
check "the log says so" await 5 "replaced" says "$mark" '.event == "kube_credentials" and (.msg | test("token was replaced"))'
check "its requests come with it" eventually 10 asked_with "$(id_of "$own")"
check "the session did not notice" fails_with '' event "$mark" '.event == "closed"'
check "packets flow" flows client "$(now_ns)"

# lost WORDS FILE: with that token nothing of edge1's can be renewed: it ends within the lease, edge2 takes over, and the way back is the
# right token.
lost() {
    local words=$1 mark
    echo "-- $words"
    mark=$(now_ns)
    give "$2"
    check "$words: the log says what was refused" await 15 "refusal" says "$mark" "$3"
    check "$words: the session ends with the lease" await 15 "closed" event "$mark" '.event == "closed"'
    check "$words: readyz names it" eventually 10 not_ready
    "$LAB" start "$D" connector client2 site-1 -edges 'edge2=[fd00:c::2]:4433' -dial-timeout 60s
    check "$words: the other node takes over" session_up client2 edge2 "$mark" 30
    check "$words: packets flow there" flows client2 "$(now_ns)" 20
    "$LAB" stop "$D" connector client2 >/dev/null || true
    mark=$(now_ns)
    give "$own"
    check "$words: with its own token edge1 is ready again" await 30 "ready" agent_ready edge1
    check "$words: and has the session again" session_up client edge1 "$mark" 30
    check "$words: packets flow" flows client "$(now_ns)" 20
}
lost "another node's token" "$D/api/tokens/agent-edge2" '(.level == "warn" or .level == "error" or .err) and (tostring | test("Forbidden|forbidden"))'
check "it was the API server that refused" refused "$(id_of "$D/api/tokens/agent-edge2")"
lost "another account's token" "$D/api/tokens/authority" '(.level == "warn" or .level == "error" or .err) and (tostring | test("Forbidden|forbidden"))'
printf 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJub2JvZHkifQ.bm90LWEtc2lnbmF0dXJl' >"$D/forged"
lost "a forged token" "$D/forged" '(.level == "warn" or .level == "error" or .err) and (tostring | test("Unauthorized"))'
check "it is the same process all the time" test "$(pid)" = "$process"
check "no token in any log" fails_with '' grep -rFl -f <(cat "$D"/api/tokens/* "$D/forged" | cut -c1-60) "$D/log" "$D/nodes/edge1/audit"
safe
checks_done
