#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# policy.sh: the policy on real parts: bearer tokens reviewed by a real API server, and an operator's webhook that refuses, is
# slow, is away, or lies in every member of its answer; caps with the other layers bypassed; bindings that change mid-session.
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/scenarios/lib.sh"
# shellcheck source=test/policy/lib.sh
. "$root/test/policy/lib.sh"

scenario_up
policy_save
hook_keys
k admin create namespace acme >/dev/null
k admin create clusterrolebinding holdfast-agent-reviews --clusterrole=holdfast-agent-reviews --serviceaccount=holdfast-system:holdfast-agent >/dev/null
for n in site-1 site-2 other; do account $n; token $n "$D/$n.token"; done
binding site-1 '{"uri":"spiffe://acme/site-1"}' '{"user":"system:serviceaccount:acme:site-1"}'
binding site-2
SA='{"user":"system:serviceaccount:acme:site-2"}'

echo "-- deny, and certificates alone"
policy_config edge1 deny off
restart_agent edge1 >/dev/null
check "deny: admits nobody and says why" gets '^403 PolicyDeny: .*authority.policy' $(cert site-1)
policy_config edge1 kubernetes off
restart_agent edge1 >/dev/null
check "bearer tokens off: no certificate, no handshake" gets '^failed: .*certificate' -token-file "$D/site-1.token"
check "bearer tokens off: the header means nothing" gets '^connected' $(cert site-1) -token-file "$D/site-1.token"
check "a tenant in a header is an error" gets '^400 .*names a tenant' $(cert site-1) -header 'x-tenant: acme'
check "a tenant in the path's query is an error" gets '^400 .*query' $(cert site-1) -path '/.well-known/masque/ip/*/*/?tenant=acme'

echo "-- bearer tokens by TokenReview"
policy_config edge1 kubernetes on
restart_agent edge1 >/dev/null
check "a token for our audience" gets '^connected' -token-file "$D/site-1.token"
check "a certificate as before" gets '^connected' $(cert site-1)
check "a bad certificate is not as good as none" gets '^failed: .*(unknown|authority|certificate)' $(cert bad-unknown-ca)
check "two credentials: 400" gets '^400 .*one credential' $(cert site-1) -token-file "$D/site-1.token"
check "no credential: 401" gets '^401 NoCredentials'
check "no credential: WWW-Authenticate" grep -F '"www-authenticate":"Bearer realm=\"holdfast\""' "$D/outcome.log"
check "Basic: 401" gets '^401 BadToken' -header 'authorization: Basic dXNlcjpwYXNz'
check "no JWT at all: 401" gets '^401 Unauthenticated' -header 'authorization: Bearer nonsense'
check "bad token: WWW-Authenticate with an error" grep -F 'invalid_token' "$D/outcome.log"
token site-1 "$D/wrong.token" --audience https://kubernetes.default.svc.cluster.local
check "the API server's own audience: 401" gets '^401 Unauthenticated.*audience' -token-file "$D/wrong.token"
token site-1 "$D/wrong.token" --audience somebody.else
check "another audience: 401" gets '^401 Unauthenticated' -token-file "$D/wrong.token"
awk '{print substr($0, 1, length($0) - 4) "AAAA"}' "$D/site-1.token" >"$D/wrong.token"
check "a forged signature: 401" gets '^401 Unauthenticated' -token-file "$D/wrong.token"
check "a user that no binding names: 403" gets '^403 NoBinding' -token-file "$D/other.token"
printf 'Bearer %08000d' 0 | sed 's/^Bearer //' >"$D/wrong.token"
check "a token of 8000 bytes: 401 or 431, nothing crashes" gets '^(401|431|failed)' -token-file "$D/wrong.token"
binding site-2 "$SA" '{"uri":"spiffe://acme/site-2"}'
check "the binding names the user: admitted within the proof interval" eventually 10 gets '^connected' -token-file "$D/site-2.token"
binding other "$SA"
check "two bindings for one user admit nobody" eventually 10 gets '^403 AmbiguousIdentity' -token-file "$D/site-2.token"
k operator delete connectorbinding acme.other >/dev/null
check "the audit trail has the credential's digest, and refusals" audit_says '"reason":"Unauthenticated"'
check "… of the admitted" bash -c 'cat "$1"/nodes/edge1/audit/*.jsonl | grep -E "\"event\":\"(acquire|takeover)\".*\"credentialID\":\"[0-9a-f]{64}\""' _ "$D"

echo "-- tokens are reviewed again; credentials and bindings are revoked one by one"
session client -token-file "$D/site-1.token"
session client2 -token-file "$D/site-2.token"
n0=$(metric 'holdfast_authority_asks_total{authority="tokenreview",result="allowed"}')
sleep 6
n1=$(metric 'holdfast_authority_asks_total{authority="tokenreview",result="allowed"}')
check "two sessions in 6 s, interval 2 s: $((n1 - n0)) reviews" test "$((n1 - n0))" -ge 6 -a "$((n1 - n0))" -le 18
check "… and both go on" session_lives client
k admin -n acme delete serviceaccount site-2 >/dev/null
check "an account is deleted: its session ends (interval and the API server's cache)" await 20 end session_ended client2
check "… with the reason" audit_says '"reason":"Unauthenticated".*"effect":"possible"'
check "… the other one goes on" session_lives client
binding site-1
check "the identity is taken from the binding: its session ends" await 5 end session_ended client
check "… with the reason" audit_says '"reason":"IdentityRemoved"'
end_session client
end_session client2
binding site-1 '{"uri":"spiffe://acme/site-1"}' '{"user":"system:serviceaccount:acme:site-1"}'

echo "-- TokenReview refused and away"
session client -token-file "$D/site-1.token"
k admin delete clusterrolebinding holdfast-agent-reviews >/dev/null
check "without the role: 503" eventually 10 gets '^503 AuthorizationUnavailable' -token-file "$D/site-1.token"
check "… the log says which role to bind" log_says 'holdfast-agent-reviews'
check "… an existing session ends with its grant of 6 s" await 10 end session_ended client
check "… as an expiry" audit_says '"event":"expiry".*"reason":"GrantExpired"'
check "… certificates do not care" gets '^connected' $(cert site-2)
end_session client
k admin create clusterrolebinding holdfast-agent-reviews --clusterrole=holdfast-agent-reviews --serviceaccount=holdfast-system:holdfast-agent >/dev/null
check "with the role again" eventually 10 gets '^connected' -token-file "$D/site-1.token"

echo "-- tokens appear nowhere"
secrets=("$(cat "$D/site-1.token")" "$(cut -d. -f3 "$D/site-1.token")" "$(cut -d. -f2 "$D/site-1.token")" dXNlcjpwYXNz)
where() {
    { cat "$D"/log/edge*.agent.log "$D"/nodes/edge*/audit/*; http "http://[fd00:c::1]:9781/metrics"; http "http://[fd00:c::1]:9780/readyz"
      k admin get rclaim,pi,ha,ps,cb,events -A -o json; cat "$D"/outcome.log "$D"/log/client*.log "$D"/api/audit.log; } 2>/dev/null
}
# By a file: in a pipe grep -q would end `where` early, and a find would look like none (pipefail).
nowhere() { local s; where >"$D/where.txt"; for s in "${secrets[@]}"; do ! grep -F -m 1 -- "$s" "$D/where.txt" | cut -c1-300 | grep . || { echo "found $s"; return 1; }; done; }
found() { where >"$D/where.txt"; grep -qE -- "$1" "$D/where.txt"; }
check "in no log, audit record, metric, page, object, answer" nowhere
check "no token is kept without a session" eventually 10 test "$(metric holdfast_bearer_tokens)" = 0

echo "-- webhook"
hook_start
policy_config edge1 webhook on 's|^  directory: .*|&\n  events: "on"|'
restart_agent edge1 >/dev/null
hook rules 'grant 6'
check "what it permits is admitted, by certificate" gets '^connected' $(cert site-1)
check "… by token" gets '^connected' -token-file "$D/site-1.token"
asked() { hook log | jq -c '.question.request | [.operation, .tenant, .connector, .prefix, .epoch]' | grep -E -- "$1" || { hook log | tail -n 5; return 1; }; }
check "it was asked at the door" asked '\["connect","acme","site-1"'
check "… for the takeover of the observed epoch" asked '\["takeover","acme","site-1","fd12:[0-9a-f:]+/96",[0-9]+\]'
check "… and told at the end" eventually 5 asked '\["retire","acme","site-1"'
check "it never saw a token" bash -c '! curl -sS --unix-socket "$1" http://hook/log | grep -qF -- "$2"' _ "$HOOK_SOCK" "$(cut -d. -f3 "$D/site-1.token")"
hook rules 'grant 6' 'deny NotToday if "connect"'
check "no at the door: 403" gets '^403 NotPermitted' $(cert site-1)
check "… its reason is in the log" log_says 'NotToday'
hook rules 'grant 6' 'deny if "takeover"'
check "no to the takeover: 403 with the observed epoch" gets '^403 TakeoverNotPermitted.*observed epoch [0-9]+' $(cert site-1)
check "… recorded with that epoch" audit_says '"event":"reject".*"reason":"TakeoverNotPermitted".*"epoch":[0-9]+'
hook rules 'grant 6'

session client $(cert site-1)
session client2 $(cert site-2)
hook rules 'grant 6' 'deny if site-2'
check "no to a refresh ends that session" await 5 end session_ended client2
check "… the other one goes on" session_lives client
hook rules 'grant 6'
end_session client2
session client2 $(cert site-2)

echo "-- its lies: no verdict, nobody is let in, nobody is thrown out"
# Each lie is told of site-2 only. Before it a good answer, so that the log, which tells the same trouble once in 10 s, speaks.
lie() { # NAME RULE... -- REGEX: what the log must name
    local name=$1 rules=() from
    shift
    while [ "$1" != -- ]; do rules+=("$1 if site-2"); shift; done
    hook rules 'grant 6'
    gets '^connected' $(cert site-1) >/dev/null || true
    from=$(wc -l <"$AGENT_LOG")
    hook rules 'grant 6' "${rules[@]}"
    check "$name: 503" gets '^503 AuthorizationUnavailable' $(cert site-2)
    # shellcheck disable=SC2016
    check "$name: the log names it" eventually 3 bash -c 'tail -n "+$(($3 + 1))" "$1" | grep -E -- "$2"' _ "$AGENT_LOG" "$2" "$from"
}
member() { # MEMBER WRONG-VALUE
    lie "$1 is $2" "set $1 $2" -- "response\\.$1"
}
end_session client
end_session client2
for m in uid allowed tenant connector vpc service grantSeconds; do
    lie "$m missing" "drop $m" -- "$m"
    lie "$m twice" "twice $m" -- 'webhook answer|twice|duplicate'
    lie "$m in another case" "upper $m" -- 'does not know|missing'
done
member uid '"00000000-0000-4000-8000-000000000000"'
member allowed '"true"'
member tenant '"evil"'
member connector '"site-1"'
member vpc '"vpc-b"'
member service '"svc-b"'
member prefix '"fd12:0:0:1:0:99::/96"'
member epoch 99
member grantSeconds 31
member grantSeconds 3600
member grantSeconds 0
member grantSeconds -5
member grantSeconds '"6"'
lie "validUntil in the past" 'until -5' -- 'validUntil.*past'
lie "validUntil an hour ahead" 'until 3600' -- 'validUntil.*30 s'
lie "another version" 'top apiVersion "holdfast.masque.galactic.datumapis.com/v2"' -- 'apiVersion'
lie "no JSON" 'body <html>' -- 'webhook answer'
lie "empty body" 'body ' -- 'webhook answer'
lie "200 KiB" 'large 200000' -- 'larger than'
for s in 201 204 302 400 401 403 404 500 503; do
    lie "status $s" "status $s" -- "status $s"
done
lie "redirect" redirect -- 'status 302'
lie "hangs" hang -- '1000 ms'
lie "too slow" 'delay 1500' -- '1000 ms'
lie "trickles" 'trickle 50' -- '1000 ms'
lie "closes the connection" close -- 'no answer'
hook rules 'grant 6' 'delay 300'
check "an answer after 300 ms is in time" gets '^connected' $(cert site-1)
hook rules 'grant 6'

echo "-- nothing of its answers is repeated, anywhere"
# Values and names of its answers, its refusals, bodies that are none; and what belongs to the agent alone.
mute() { # RULE OUTCOME-REGEX
    hook rules 'grant 6' "$1 if site-2"
    check "silent about: ${1%%hush*}…" gets "$2" $(cert site-2)
}
for m in tenant grantSeconds uid validUntil epoch prefix; do mute "set $m \"hush-$m\"" '^503'; done
mute 'set hush-member 1' '^503'
mute 'set approval {"ref":"hush-approval","token":"hush-token"}' '^503'
mute 'top kind "hush-kind"' '^503'
mute 'top hush-top {}' '^503'
mute 'body {"hush-body' '^503'
mute 'body hush-text' '^503'
mute 'deny hush_reason' '^403 NotPermitted'
secrets=(hush- hush_)
for f in "$ETC/webhook/tls.key" "$D/hook/server.key" "$ETC/tls/tls.key"; do secrets+=("$(sed -n 2p "$f" | cut -c1-40)"); done
check "in no log, audit record, metric, page, object, Event, answer" nowhere
check "the search finds what is there: a log line" found 'webhook answer'
check "… and an Event" found '"reason": *"NotPermitted"'
hook rules 'grant 6'

echo "-- one connector's trouble is not another's"
session client $(cert site-1)
session client2 $(cert site-2)
hook rules 'grant 6' 'hang if site-2'
check "questions about site-2 hang: its session ends with its grant" await 12 end session_ended client2
check "… site-1's never notices" session_lives client
hook rules 'grant 6' 'set tenant "evil" if site-1'
check "lies about site-1 keep its last deadline and no longer" await 10 end session_ended client
check "… as an expiry" audit_says '"event":"expiry".*"reason":"GrantExpired"'
hook rules 'grant 6'
end_session client
end_session client2

echo "-- outage, and who may speak to whom"
session client $(cert site-1)
hook down
sleep 2
check "down for 2 s: the session goes on" session_lives client
check "… nobody new comes in" gets '^503 AuthorizationUnavailable' $(cert site-2)
hook up
check "up again: at once" eventually 2 gets '^connected' $(cert site-2)
check "… the session never noticed" session_lives client
end_session client
hook_client_key edge1 stranger
check "a client certificate that the service does not know: 503" eventually 5 gets '^503 AuthorizationUnavailable' $(cert site-1)
hook_client_key edge1 edge1
check "the right one again, without a restart" eventually 5 gets '^connected' $(cert site-1)
"$LAB" kill -KILL "$D" webhook api
"$LAB" run "$D" api webhook "$WEBHOOK" -listen '[fd00:a::10]:8443' -control "$HOOK_SOCK" -client-ca "$D/hook/hook-ca.crt" \
    -cert "$D/hook/foreign-server.crt" -key "$D/hook/foreign-server.key"
check "a service with another CA's certificate: 503" eventually 5 gets '^503 AuthorizationUnavailable' $(cert site-1)
"$LAB" kill -KILL "$D" webhook api
hook_start -http1
hook rules 'grant 6'
check "a service that speaks HTTP/1.1 only" eventually 5 gets '^connected' $(cert site-1)
hook rules 'grant 6' 'hang if site-2'
check "… its hanging questions do not stop the others" gets '^503' $(cert site-2)
check "… at all" gets '^connected' $(cert site-1)
hook rules 'grant 6'

echo "-- bindings that change mid-session; caps with other layers bypassed"
session client $(cert site-1)
k operator patch connectorbinding acme.site-1 --type merge -p '{"spec":{"suspended":true}}' >/dev/null
check "suspended: ends" await 3 end session_ended client
k operator patch connectorbinding acme.site-1 --type merge -p '{"spec":{"suspended":false}}' >/dev/null
end_session client
session client $(cert site-1)
k operator delete connectorbinding acme.site-1 >/dev/null
check "deleted: ends" await 3 end session_ended client
end_session client
binding site-1
check "made again: comes back" eventually 10 gets '^connected' $(cert site-1)
check "a grant beyond 30 s: refused by the CRD" fails_with 'less than or equal to 30' k operator patch connectorbinding acme.site-1 --type merge -p '{"spec":{"grantSeconds":3600}}'
k admin get crd connectorbindings.masque.galactic.datumapis.com -o json | jq 'del(.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.grantSeconds.maximum, .metadata.managedFields, .metadata.resourceVersion)' >"$D/crd.json"
k admin apply --server-side --force-conflicts -f "$D/crd.json" >/dev/null
check "… with the CRD's rule gone it is stored" eventually 20 k operator patch connectorbinding acme.site-1 --type merge -p '{"spec":{"grantSeconds":3600}}'
hook rules 'grant 30'
session client $(cert site-1)
hook down
check "… and the agent's own cap holds: nobody answers, and it ends within 7 s" await 7 end session_ended client
hook up
end_session client
hook rules 'grant 6'
k operator patch connectorbinding acme.site-1 --type merge -p '{"spec":{"grantSeconds":6}}' >/dev/null
k admin apply --server-side --force-conflicts -f "$root/manifests/crds/connectorbindings.yaml" >/dev/null

echo "-- configuration"
bad_config() { # REGEX SED
    local rc
    policy_config edge1 webhook on "$2"
    "$LAB" stop "$D" agent edge1 >/dev/null 2>&1 || true
    : >"$AGENT_LOG"
    "$LAB" start "$D" agent edge1
    rc=$(await 10 end cat "$D/run/edge1.agent.rc") || { "$LAB" kill -KILL "$D" agent edge1; echo "it runs"; return 1; }
    [ "$rc" = 1 ] || [ "$rc" = 2 ] || { echo "status $rc"; return 1; }
    log_says "$1"
}
check "a policy that does not exist" bad_config 'authority.policy.*deny\|kubernetes\|webhook' 's/policy: webhook/policy: allow/'
check "webhook without its URL" bad_config 'authority.webhookURL.*https' '/webhookURL/d'
check "a URL without TLS" bad_config 'authority.webhookURL.*https' 's|https://|http://|'
check "a key that is not there" bad_config 'authority.webhookKeyFile.*/nowhere' 's|webhookKeyFile: .*|webhookKeyFile: /nowhere/tls.key|'
check "a time-out beyond the range" bad_config 'timeoutMilliseconds.*3500' 's/timeoutMilliseconds: .*/timeoutMilliseconds: 60000/'
checks_done
