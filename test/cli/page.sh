#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# page.sh: the agent's audit page with a real API server: who may read, what comes, through the pod proxy and directly; what
# no output of the agent may hold (secrets fed into every input); no core dump.
set -euo pipefail
# shellcheck source=test/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cli_up
"$root/test/peers/pki/mk.sh" "$DIR/tls" >/dev/null 2>&1
mkdir -p "$DIR/audit" "$DIR/empty"
openssl genpkey -algorithm ed25519 -out "$DIR/checkpoint.key" 2>/dev/null
openssl pkey -in "$DIR/checkpoint.key" -pubout -out "$DIR/checkpoint.pub"
AUDIENCE=audit.holdfast.masque.galactic.datumapis.com
URL=http://$NODE_ADDR:9781
# one secret per input; what the agent says is searched for each of them at the end
S() { printf 'hush-%s-5e1f00d' "$1"; }
config() {
    cat >"$DIR/agent.yaml" <<Y
nodeName: edge1
namespace: holdfast-system
kubeconfig: $DIR/agent-edge1.kubeconfig
listen: {h3: "[::]:4433"}
tls: {certFile: $DIR/tls/edge1.crt, keyFile: $DIR/tls/edge1.key, clientCAFile: $DIR/tls/client-ca.crt}
authority: {policy: kubernetes}
audit: {directory: $DIR/audit, page: "on", checkpointKeyFile: $DIR/checkpoint.key, checkpointMinutes: 1, copy: stdout, events: "on"}
health: {listen: "[::]:9780"}
metrics: {listen: "[::]:9781"}
log: {level: debug}
Y
}
start_agent() {
    "${IN[@]}" env -i PATH=/usr/bin:/bin "SECRET_ENV=$(S env)" "ASAN_OPTIONS=${ASAN_OPTIONS:-}" POD_UID=00000000-0000-4000-8000-000000000042 \
        bash -c 'ulimit -c unlimited; exec "$@"' _ "$BIN/holdfast-agent" --config "$DIR/agent.yaml" >>"$DIR/agent.out" 2>>"$DIR/agent.log" &
    AGENT=$!
    PIDS+=("$AGENT")
}
get() { "${IN[@]}" curl -gs -m 10 "$@"; } # ARG... URL
status_of() { get -o "$DIR/body" -w '%{http_code}' "$@"; }
answers() { # STATUS REGEX CURL-ARG...
    local want=$1 re=$2 got
    shift 2
    got=$(status_of "$@") || true
    [ "$got" = "$want" ] && grep -qE -- "$re" "$DIR/body" || { echo "status $got:"; cat "$DIR/body"; return 1; }
}
token() { admin create token "$1" --audience "${2:-$AUDIENCE}" --duration 600s; }
auth() { printf 'Authorization: Bearer %s' "$1"; }

config
start_agent
eventually 20 grep -q '"event":"acquire"' "$DIR/audit/audit.jsonl" >/dev/null || { tail -n 20 "$DIR/agent.log"; exit 1; }
check "the agent serves its metrics" answers 200 '^holdfast_audit_durable_total [1-9]' "$URL/metrics"

echo "-- who may read"
check "no token: 401, says which" answers 401 "bearer token.*$AUDIENCE" "$URL/audit"
check "a token that is none: 401 or 503 without the role" answers 503 'holdfast-agent-reviews' -H "$(auth nonsense)" "$URL/audit"
admin apply -f "$root/manifests/options/audit-reader.yaml" >/dev/null
check "with the role: 401" eventually 10 answers 401 'not known' -H "$(auth nonsense)" "$URL/audit"
GOOD=$(token holdfast-auditor)
check "the auditor's token: 200" eventually 10 answers 200 '"event":"acquire"' -H "$(auth "$GOOD")" "$URL/audit"
check "its last line says that this was all" bash -c 'tail -n 1 "$1" | jq -e ".chain == \"page\" and .node == \"edge1\" and .next == null" >/dev/null' _ "$DIR/body"
check "the lines are the file's own" bash -c 'head -n -1 "$1" | while IFS= read -r l; do grep -qxF -- "$l" "$2" || exit 1; done' _ "$DIR/body" "$DIR/audit/audit.jsonl"
check "a token for the API server: 401" answers 401 'not known|audience' -H "$(auth "$(token holdfast-auditor https://kubernetes.default.svc)")" "$URL/audit"
check "a token for connectors: 401" answers 401 'not known|audience' -H "$(auth "$(token holdfast-auditor holdfast.masque.galactic.datumapis.com)")" "$URL/audit"
check "another account's token: 403" answers 403 'holdfast-audit-reader' -H "$(auth "$(token holdfast-foundation)")" "$URL/audit"
check "the token in the proxy's header" answers 200 acquire -H "Holdfast-Authorization: Bearer $GOOD" "$URL/audit"
check "an odd token: 401" answers 401 'bearer token' -H "Authorization: Bearer a b" "$URL/audit"
check "a token of 9000 characters: 401" answers 401 'bearer token' -H "$(auth "$(printf 'a%.0s' {1..9000})")" "$URL/audit"
check "POST: 405" answers 405 GET -X POST -H "$(auth "$GOOD")" "$URL/audit"
check "POST with a body: 405, too" answers 405 GET -X POST --data "x=$(printf 'a%.0s' {1..5000})" -H "$(auth "$GOOD")" "$URL/audit"
check "GET with a body: as without" answers 200 '^holdfast_' -X GET --data "x=$(printf 'a%.0s' {1..5000})" "$URL/metrics"
check "GET with a body: the audit page, too" answers 200 acquire -X GET --data 'x=1' -H "$(auth "$GOOD")" "$URL/audit"

echo "-- what comes"
for q in 'correlationID=xyz' 'limit=0' 'limit=1001' 'limit=-1' 'since=yesterday' 'after=x' 'object=A_B' 'connector=%2e%2e%2f' 'frob=1' 'since='; do
    check "bad parameter $q: 400, names it" answers 400 "${q%%=*}" -H "$(auth "$GOOD")" "$URL/audit?$q"
    sleep 0.1
done
check "by object" answers 200 '"object":"masque.edge1"' -H "$(auth "$GOOD")" "$URL/audit?object=masque.edge1"
check "by an object that is not there" bash -c '! grep -q event "$1"' _ <(status_of -H "$(auth "$GOOD")" "$URL/audit?object=nope" >/dev/null; cat "$DIR/body")
check "until a time before" bash -c '! grep -q event "$1"' _ <(status_of -H "$(auth "$GOOD")" "$URL/audit?until=2020-01-01T00:00:00Z" >/dev/null; cat "$DIR/body")
# 5,000 records in a file that looks rotated: pages follow each other without gap or repetition
python3 - "$DIR/audit" <<'P'
import sys
with open(sys.argv[1] + "/audit-00000000000000005000.jsonl", "w") as f:
    for i in range(1, 5001):
        f.write('{"ts":"2026-01-01T00:00:00.%06dZ","event":"release","outcome":"allowed","reason":"Test","node":"edge1","instance":"masque.edge1",'
                '"object":"rc-many","effect":"none","seq":%d,"hash":"%064x"}\n' % (i, i, i))
P
chmod 600 "$DIR/audit/audit-00000000000000005000.jsonl"
check "a page says where to go on" bash -c 'jq -se "length == 1001 and .[999].seq == 1999 and .[1000].next == 1999" "$1" >/dev/null' _ <(status_of -H "$(auth "$GOOD")" "$URL/audit?object=rc-many&after=999" >/dev/null; cat "$DIR/body")
check "limit" bash -c 'jq -se "length == 8 and .[7].next == 4007" "$1" >/dev/null' _ <(status_of -H "$(auth "$GOOD")" "$URL/audit?object=rc-many&after=4000&limit=7" >/dev/null; cat "$DIR/body")
check "the tool reads all pages, each record once" json '[.records[] | select(.object == "rc-many") | .seq] == [range(1; 5001)]' 0 hf audit show --since 2025-12-31T00:00:00Z --limit 100000 --agent "edge1=$NODE_ADDR:9781"
rm "$DIR/audit/audit-00000000000000005000.jsonl"

echo "-- through the tool"
admin patch pod holdfast-agent-edge1 --subresource status --type merge -p "{\"status\":{\"phase\":\"Running\",\"podIP\":\"$NODE_ADDR\",\"podIPs\":[{\"ip\":\"$NODE_ADDR\"}]}}" >/dev/null
admin delete pod holdfast-agent-edge2 --grace-period 0 --force >/dev/null 2>&1
check "audit show --from-agents: by the pod proxy, as an operator" eventually 5 says 'edge1 +acquire' 0 hf audit show --since 1h --from-agents
check "audit show --agent: directly" says 'edge1 +acquire' 0 hf audit show --since 1h --agent "edge1=$NODE_ADDR:9781"
printf '%s\n' "$GOOD" >"$DIR/auditor.token"
check "with a token from a file" says 'edge1 +acquire' 0 hf audit show --since 1h --agent "edge1=$NODE_ADDR:9781" --agent-token "$DIR/auditor.token"
check "an agent that is not there: says so" says 'not seen: audit of edge9' 3 hf audit show --since 1h --agent "edge9=$NODE_ADDR:9"
check "without the right: says which" says 'holdfast-auditor.*audit-reader.yaml' 3 "${IN[@]}" "$BIN/kubectl-holdfast" audit show --since 1h --agent "edge1=$NODE_ADDR:9781" --kubeconfig "$DIR/authority.kubeconfig"
check "the operator's token went to no agent" bash -c '! grep -q "$1" "$2"' _ "$(awk '{print substr($0, 1, 40)}' "$DIR/tokens/agent-edge1")" "$DIR/agent.log"
check "reading is logged with who did" grep -q '"event":"audit_read".*holdfast-auditor\|audit_read.*system:serviceaccount:holdfast-system:holdfast-auditor' "$DIR/agent.log"
check "beyond four at once: 429, and livez answers" bash -c '
    for i in $(seq 40); do "${@:2}" curl -gs -m 10 -o /dev/null -w "%{http_code}\n" -H "Authorization: Bearer nonsense" "$1/audit" & done >"'"$DIR"'/codes"
    "${@:2}" curl -gs -m 2 -o /dev/null "${1/9781/9780}/livez" || exit 1
    wait; grep -q 429 "'"$DIR"'/codes" && ! grep -qv "^4" "'"$DIR"'/codes"' _ "$URL" "${IN[@]}"

echo "-- secrets"
"${IN[@]}" curl -gs -m 5 -H "$(auth "$(S bearer)")" -H "X-Other: $(S header)" -H "traceparent: 00-$(S traceparent)-00f067aa0ba902b7-01" -H "Cookie: c=$(S cookie)" \
    "$URL/$(S path)?q=$(S query)" -o "$DIR/body.404" || true
"${IN[@]}" curl -gs -m 5 -X POST -H "$(auth "$(S bearer)")" --data "x=$(S posted)" "http://$NODE_ADDR:9780/readyz?q=$(S query)" -o "$DIR/body.405" || true
sleep 1 # reviews are limited to ten a second
"${IN[@]}" curl -gs -m 5 -H "$(auth "$(S audit-bearer)")" "$URL/audit?since=2020-01-01T00:00:00Z" -o "$DIR/body.secret" || true
admin annotate pi masque.edge1 "example.com/note=$(S annotation)" >/dev/null
admin label pi masque.edge1 "note=$(S label)" >/dev/null
service 290
jq -n --arg s "$(S object)" '{apiVersion: "masque.galactic.datumapis.com/v1alpha1", kind: "ConnectorBinding", metadata: {name: "acme.site-1", annotations: {"x/y": $s}},
    spec: {tenant: "acme", connector: "site-1", vpc: "vpc-a", serviceName: "svc-a", identities: [{uri: ("spiffe://acme/" + $s)}, {user: $s}]}}' | put
CONNECTOR=$root/build/peers/holdfast-connector
# TLS client certificate, request, path: refused, and the trail says so
timeout 10 "${IN[@]}" "$CONNECTOR" -once -explain -tun '' -dial-timeout 3s -edges "edge1=$NODE_ADDR:4433" -ca "$DIR/tls/edge-ca.crt" -cert "$DIR/tls/stranger.crt" -key "$DIR/tls/stranger.key" >/dev/null 2>&1 || true
EVENTS='.items[] | select(.reportingController == "masque.galactic.datumapis.com/holdfast")'
events() { admin get events.events.k8s.io -o json | jq -e "$1" >/dev/null || { admin get events.events.k8s.io -o json | jq -c ".items[] | {action, reason, type, regarding, note, series}"; return 1; }; }
check "a refused connector is an Event, of whom and why" eventually 10 events "[$EVENTS | select(.action == \"Reject\" and .type == \"Warning\" and .regarding.name != \"\" and .reason != \"\" and .reportingInstance == \"edge1\")] | length >= 1"
check "a renewal never is, nor an acquire" events "[$EVENTS | select(.action | IN(\"Reject\", \"Takeover\", \"Expiry\") | not)] | length == 0"
get "$URL/metrics" >"$DIR/metrics.txt"
check "Events are counted" grep -qE '^holdfast_events_total\{result="created"\} [1-9]' "$DIR/metrics.txt"
get "http://$NODE_ADDR:9780/readyz" >"$DIR/readyz.txt"
admin get events -A -o json >"$DIR/events.json"
admin get pi,ha,rclaim,cb -o json | jq '[.items[] | .status, .spec.holder?, .metadata.managedFields?]' >"$DIR/statuses.json"
# error texts of a configuration that holds secrets where they do not belong
for c in "provider: $(S conf-value)" "$(S conf-key): x" "kubeconfig: /nonexistent/x" "tls: {keyFile: $DIR/checkpoint.key}" "token: $(S conf-unknown)" "tls: {keyFile: \"-----BEGIN PRIVATE KEY-----\\n$(S conf-pem)\"}" \
    "authority: {policy: webhook, webhookURL: \"https://u:$(S conf-url)@auth.example/\"}" "audit: {checkpointKeyFile: $DIR/tls/edge1.key}"; do
    config
    sed -i "/^${c%%:*}:/d" "$DIR/agent.yaml"
    printf '%s\n' "$c" >>"$DIR/agent.yaml"
    "${IN[@]}" timeout 10 "$BIN/holdfast-agent" --config "$DIR/agent.yaml" >>"$DIR/errors.txt" 2>&1 || true
done
config
sed -E 's/tokenFile: .*/token: "'"$(S kubeconfig-token)"'"}}]/' "$DIR/agent-edge1.kubeconfig" >"$DIR/bad.kubeconfig"
sed -i "s|^kubeconfig:.*|kubeconfig: $DIR/bad.kubeconfig|; s/4433/4434/; s/9780/9790/; s/9781/9791/; s|$DIR/audit,|$DIR/empty,|" "$DIR/agent.yaml"
"${IN[@]}" timeout 4 "$BIN/holdfast-agent" --config "$DIR/agent.yaml" >>"$DIR/errors.txt" 2>&1 || true
OUTPUTS=("$DIR"/agent.log "$DIR"/agent.out "$DIR"/audit "$DIR"/empty "$DIR"/metrics.txt "$DIR"/readyz.txt "$DIR"/events.json "$DIR"/errors.txt "$DIR"/body.secret "$DIR"/body.404 "$DIR"/body.405 "$DIR"/statuses.json)
nowhere() { ! grep -ralF -- "$1" "${OUTPUTS[@]}"; } # no pipe: with pipefail its end would count
for s in env bearer posted audit-bearer header traceparent cookie path query annotation label object kubeconfig-token conf-unknown conf-pem conf-url; do
    check "secret '$s' is nowhere" nowhere "$(S $s)"
done
for f in tls/edge1.key checkpoint.key; do
    check "nothing of $f" nowhere "$(sed -n 2p "$DIR/$f" | cut -c1-40)"
done
for t in agent-edge1 operator; do
    [ ! -s "$DIR/tokens/$t" ] || check "nothing of the token $t" nowhere "$(cut -d. -f3 "$DIR/tokens/$t" | cut -c1-40)"
done
check "nothing of the auditor's token" nowhere "$(cut -d. -f3 <<<"$GOOD" | cut -c1-40)"
check "the searched outputs are not empty" bash -c 'for f in "$@"; do [ -e "$f" ] || exit 1; done; [ -s "$1" ] && [ -s "$2" ] && [ -s "$5" ]' _ "${OUTPUTS[@]}"
check "the search finds what is there" bash -c 'grep -raqF -- "masque.edge1" "$@"' _ "${OUTPUTS[@]}"

config
check "a second agent on the same trail is refused" says "another process writes its audit trail to $DIR/audit" 1 "${IN[@]}" timeout 10 "$BIN/holdfast-agent" --config "$DIR/agent.yaml"

echo "-- core dump, checkpoints"
check "no core: RLIMIT_CORE is 0" bash -c 'awk "/Max core file size/ {exit !(\$5 == 0 && \$6 == 0)}" "/proc/$1/limits"' _ "$AGENT"
check "not dumpable: its memory belongs to root, not to its user" bash -c '
    setpriv --reuid 65532 --regid 65532 --clear-groups bash -c "exec 3<>/proc/$1/mem" 2>/dev/null && exit 1
    [ "$(stat -c %u "/proc/$1/mem")" = 0 ]' _ "$AGENT"
pid=$AGENT
kill -ABRT "$pid" 2>/dev/null || true
wait "$pid" 2>/dev/null || rc=$?
check "killed by SIGABRT without a core" test "${rc:-0}" = 134
check "and left no core file" bash -c '! ls "$1"/core* /core* 2>/dev/null | grep -q .' _ "$DIR"
check "after the kill the trail verifies" says '^good' 0 "$BIN/kubectl-holdfast" audit verify "$DIR/audit"
start_agent
check "a restart takes its instance over: an Event on the row" eventually 15 events "[$EVENTS | select(.action == \"Takeover\" and .type == \"Normal\" and .regarding.kind == \"ProviderInstance\" and .regarding.name == \"masque.edge1\" and .regarding.uid == \"$(uid_of pi masque.edge1)\")] | length == 1"
check "kubectl describe shows it" bash -c '"$@" | grep -E "Normal +[A-Za-z]+ .*takeover: "' _ "${IN[@]}" "$KUBECTL" --kubeconfig "$DIR/admin.kubeconfig" -n holdfast-system describe pi masque.edge1
admin get role holdfast-agent -o json >"$DIR/role.json"
jq 'del(.rules[] | select(.apiGroups[0] == "events.k8s.io"))' "$DIR/role.json" | admin replace -f - >/dev/null
no_events() {
    timeout 10 "${IN[@]}" "$CONNECTOR" -once -explain -tun '' -dial-timeout 3s -edges "edge1=$NODE_ADDR:4433" -ca "$DIR/tls/edge-ca.crt" -cert "$DIR/tls/$1.crt" -key "$DIR/tls/$1.key" >/dev/null 2>&1 || true
    get "$URL/metrics" | grep -E '^holdfast_events_total\{result="failed"\} [1-9]' && get "$URL/metrics" | grep -E '^holdfast_audit_healthy 1'
}
check "without the role's rule: counted, and the trail goes on" eventually 10 no_events stranger
check "and said once in the log" bash -c '[ "$(grep -c "\"event\":\"event_failed\"" "$1")" = 1 ]' _ "$DIR/agent.log"
jq 'del(.metadata.resourceVersion)' "$DIR/role.json" | admin replace -f - >/dev/null
kill -TERM "$AGENT"
wait "$AGENT" || true
check "ended in order: signed up to its end" says 'signed up to line [0-9]+; 0 line' 0 "$BIN/kubectl-holdfast" audit verify --key "$DIR/checkpoint.pub" "$DIR/audit"
openssl genpkey -algorithm ed25519 -out "$DIR/other.key" 2>/dev/null
openssl pkey -in "$DIR/other.key" -pubout -out "$DIR/other.pub"
check "another key: a flaw" says 'FLAW.*audit.jsonl:[0-9]+: checkpoint' 1 "$BIN/kubectl-holdfast" audit verify --key "$DIR/other.pub" "$DIR/audit"
check "a key that is none" says 'no Ed25519 public key.*-pubout' 2 "$BIN/kubectl-holdfast" audit verify --key "$DIR/other.key" "$DIR/audit"
check "the copy on stdout holds the same lines" bash -c 'grep -vF "\"chain\":\"copy\"" "$1" | diff - "$2"/audit.jsonl' _ "$DIR/agent.out" "$DIR/audit"

echo "-- verify: what somebody may have done to the files"
V=$DIR/forged
forge() { rm -rf "$V"; cp -r "$DIR/audit" "$V"; }
flaw() { says "FLAW.*$V/audit.jsonl:$1: " 1 "$BIN/kubectl-holdfast" audit verify "$V"; }
forge; sed -i '3s/"masque.edge1"/"masque.edge2"/' "$V/audit.jsonl"
check "edited: names file and line" flaw 3
forge; sed -i '3d' "$V/audit.jsonl"
check "a line taken away" flaw 3
forge; sed -i '2{h;d};3{G}' "$V/audit.jsonl"
check "two lines swapped" flaw 2
forge; sed -i '3p' "$V/audit.jsonl"
check "a line twice" flaw 4
forge; sed -i '3s/"masque.edge1"/"masque.edge2"/' "$V/audit.jsonl"
check "edited, and read as evidence: said" says "not seen: $V/audit.jsonl:3: .*no evidence" 0 "$BIN/kubectl-holdfast" audit show --since 1h "$V"
check "not edited: not said" bash -c '! "$1" audit show --since 1h "$2" 2>&1 | grep "no evidence"' _ "$BIN/kubectl-holdfast" "$DIR/audit"
check "a flaw is not hidden by what cannot be read" says "FLAW.*$V/audit.jsonl:3: " 1 "$BIN/kubectl-holdfast" audit verify "$V/audit.jsonl" "$V/nope"
printf 'no trail' >"$V/audit.jsonl"
check "something else in its place, without an end of line" flaw 1
forge; printf '{"ts":' >>"$V/audit.jsonl"
check "torn at the end: good, and said" says 'a crash tore off' 0 "$BIN/kubectl-holdfast" audit verify "$V"
forge; : >"$V/audit.jsonl"
check "emptied" says FLAW 1 "$BIN/kubectl-holdfast" audit verify "$V"
check "not there" says 'no such file' 3 "$BIN/kubectl-holdfast" audit verify "$V/nope"
checks_done
