#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bad_input.sh: what a network, a client, an operator or a broken node can get wrong, tried on a running agent. Each case has
# an error that names field, value and remedy; nothing crashes; nothing is forwarded that should not be.
# given: a running agent
# fault: what network, client, operator or a broken node can get wrong
# expect: an error that names field, value and remedy
# bound: 0 packets that should not be
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

AGENT_LOG=$D/log/edge1.agent.log
ETC=$D/nodes/edge1/etc
http() { "$LAB" exec "$D" edge1 curl -gs -m 2 "$@"; } # ARG... URL
readyz() { http "http://[fd00:c::1]:9780/readyz"; }
readyz_says() { readyz | grep -E -- "$1" || { readyz; return 1; }; }
alive() { [ "$(http -o /dev/null -w '%{http_code}' "http://[fd00:c::1]:9780/livez")" = 200 ]; }
metric() { http "http://[fd00:c::1]:9781/metrics" | awk -v m="$1" 'index($1, m) == 1 {s += $2} END {print s + 0}'; }
log_says() { grep -E -- "$1" "$AGENT_LOG" || { tail -n 5 "$AGENT_LOG"; return 1; }; }
# refused STATUS REASON CERTIFICATE [ARG...]: the attempt gets this status, and a reason that matches.
refused() {
    local status=$1 reason=$2 out
    shift 2
    out=$(try "$@")
    jq --argjson s "$status" --arg r "$reason" 'select(.event == "refused" and .status == $s and ((.reason // "") | test($r)))' <<<"$out" | grep -q . ||
        { echo "$out"; return 1; }
}
# no_session TEXT CERTIFICATE [ARG...]: no HTTP answer at all, the handshake fails, and the client is told why.
no_session() {
    local text=$1 out
    shift
    out=$(try "$@")
    jq --arg t "$text" 'select(.event == "failed" and (.error | test($t)))' <<<"$out" | grep -q . || { echo "$out"; return 1; }
}
# start_fails REGEX [COMMAND...]: the agent ends by itself with an error that matches; COMMAND wraps it.
start_fails() {
    local re=$1 rc
    shift
    : >"$AGENT_LOG"
    LAB_AGENT_WRAP="$*" "$LAB" start "$D" agent edge1
    rc=$(await 10 end cat "$D/run/edge1.agent.rc") || { "$LAB" kill -KILL "$D" agent edge1; echo "it runs"; cat "$AGENT_LOG"; return 1; }
    [ "$rc" != 0 ] && [ "$rc" -lt 128 ] || { echo "exit status $rc"; cat "$AGENT_LOG"; return 1; }
    log_says "$re"
}
with_config() { # SED-SCRIPT COMMAND...: runs the command while the node's configuration is changed
    local sed=$1 rc=0
    shift
    cp "$ETC/agent.yaml" "$D/agent.yaml.good"
    sed -i -E "$sed" "$ETC/agent.yaml"
    "$@" || rc=$?
    cp "$D/agent.yaml.good" "$ETC/agent.yaml"
    return $rc
}
start_agent() { "$LAB" start "$D" agent edge1; }
kill_agent() { "$LAB" kill -KILL "$D" agent edge1; }

scenario_up --proxy
echo "-- at start"
check "configuration: unknown key, with line and remedy" with_config 's/^provider:.*/&\nfrobnicate: 7/' start_fails 'frobnicate'
check "configuration: a number out of range" with_config 's/durationSeconds: .*/durationSeconds: 5/' start_fails 'durationSeconds.*10'
check "configuration: not YAML" with_config '1i {' start_fails 'agent.yaml'
check "kubeconfig: missing file" with_config 's|^kubeconfig:.*|kubeconfig: /nonexistent/kubeconfig|' start_fails '/nonexistent/kubeconfig'
check "TLS: missing certificate" with_config 's|certFile:.*|certFile: /nonexistent/tls.crt|' start_fails '/nonexistent/tls.crt'
install -m 640 -g 65532 "$D/pki/edge2.key" "$ETC/tls/other.key"
check "TLS: the key of another certificate" with_config 's|keyFile:.*|keyFile: /run/holdfast-lab/node/etc/tls/other.key|' start_fails 'tls/(other.key|tls.crt)'
check "audit: a folder that is not there" with_config 's|directory:.*|directory: /nonexistent/audit|' start_fails '/nonexistent/audit'
"$LAB" run "$D" edge1 squatter "$PROBE" recv --port 4433
check "port in use: names the address" start_fails '4433'
"$LAB" kill -KILL "$D" squatter edge1
check "time namespace: refused" start_fails '[Tt]ime namespace|CLOCK_BOOTTIME' unshare --time --boottime 86400 --

echo "-- API server away, CRDs missing or without a field, wrong node"
"$LAB" kill -KILL "$D" proxy-edge1 api
start_agent
check "API server down: the agent lives" eventually 10 alive
check "API server down: readyz names it" eventually 10 readyz_says '^\[-\]apiserver failed: .+'
check "API server down: the log says that it goes on trying" eventually 10 log_says 'retry'
check "API server down: a connector is told to come again" refused 503 'NotReady.*API server' site-1
"$LAB" start "$D" proxy edge1
check "API server back: ready" await 30 ready agent_ready edge1
kill_agent

k admin delete crd routeclaims.edge.galactic.datumapis.com >/dev/null 2>&1
start_agent
check "CRD missing: readyz names it" eventually 15 readyz_says 'RouteClaim'
check "CRD missing: the agent lives" alive
k admin create -f "$root/manifests/crds/routeclaims.yaml" >/dev/null
check "CRD added: ready" await 40 ready agent_ready edge1
kill_agent
k admin get crd routeclaims.edge.galactic.datumapis.com -o json |
    jq 'del(.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.maxLeaseDurationSeconds)
        | del(.spec.versions[0].schema.openAPIV3Schema.properties.spec.required[] | select(. == "maxLeaseDurationSeconds"))
        | del(.. | .["x-kubernetes-validations"]?)' | k admin replace -f - >/dev/null
start_agent
check "CRD without a field: readyz names the field" eventually 15 readyz_says 'maxLeaseDurationSeconds'
k admin replace -f "$root/manifests/crds/routeclaims.yaml" >/dev/null
check "the field is back: ready" await 40 ready agent_ready edge1
kill_agent

start_and_say() { start_agent && eventually 15 log_says "$1"; }
check "node name: not the token's" with_config 's/^nodeName:.*/nodeName: edge2/' start_and_say "nodeName is 'edge2', but the token belongs to node 'edge1'"
kill_agent 2>/dev/null || true

LAB_AGENT_WRAP=$root/test/lab/lib/no-tun start_agent
check "no /dev/net/tun: the log names it and what to do" eventually 15 log_says '/dev/net/tun'
check "no /dev/net/tun: readyz says that the device is missing" eventually 5 readyz_says '^\[-\]instance failed: AttachmentNotReady'
check "no /dev/net/tun: the agent lives" alive
kill_agent
"$LAB" stop "$D" foundation edge1 >/dev/null
"$LAB" start "$D" foundation edge1 --tun-owner 65533
start_agent
check "a device of another owner: the log names it and what to do" eventually 15 log_says 'hf[0-9a-f]{8}.*owner'
check "a device of another owner: the agent lives" alive
kill_agent
"$LAB" stop "$D" foundation edge1 >/dev/null
"$LAB" start "$D" foundation edge1

echo "-- connectors"
start_agent
check "ready" await 30 ready agent_ready edge1
check "nobody is bound: a good certificate is refused, with the reason" refused 403 'NoBinding' site-1
"$LAB" binding "$D" acme site-1
check "no certificate" no_session 'certificate required' none
check "certificate of an unknown CA" no_session 'unknown certificate authority' bad-unknown-ca
check "expired certificate" no_session 'expired certificate' bad-expired
check "certificate that is not valid yet" no_session 'expired certificate' bad-future
check "server certificate as a client's" no_session 'unsupported certificate' bad-eku
check "certificate without a URI SAN" refused 403 'no URI SAN; exactly one is needed' bad-no-uri
check "certificate with two URI SANs" refused 403 'more than one URI SAN' bad-two-uris
check "no common application protocol" no_session 'no application protocol' site-1 -alpn h2
check "stranger" refused 403 'NoBinding' stranger
check "path: no prefix" refused 400 'target "frob"' site-1 -path '/.well-known/masque/ip/frob/*/'
check "path: a protocol above 255" refused 400 'ipproto "256"' site-1 -path '/.well-known/masque/ip/*/256/'
check "path: host bits" refused 400 'bits after the prefix length' site-1 -path '/.well-known/masque/ip/fd20::1%2F64/*/'
check "path: outside the service's destinations" refused 400 'TargetNotAllowed' site-1 -path '/.well-known/masque/ip/fd99::%2F64/*/'
k operator apply -f - >/dev/null <<'Y'
apiVersion: masque.galactic.datumapis.com/v1alpha1
kind: ConnectorBinding
metadata: {name: evil.site-1}
spec: {tenant: evil, connector: site-1, vpc: vpc-a, serviceName: svc-a, identities: [{uri: "spiffe://evil/site-1"}]}
Y
check "binding of another tenant than the service's" eventually 5 refused 403 'ServiceMismatch' other-tenant
k operator apply -f - >/dev/null <<'Y'
apiVersion: masque.galactic.datumapis.com/v1alpha1
kind: ConnectorBinding
metadata: {name: acme.twin}
spec: {tenant: acme, connector: twin, vpc: vpc-a, serviceName: svc-a, identities: [{uri: "spiffe://acme/site-1"}]}
Y
check "two bindings for one identity" eventually 5 refused 403 'AmbiguousIdentity' site-1
check "and it is in the audit trail" bash -c 'cat "$1"/* | jq -e "select(.event == \"reject\" and .reason == \"AmbiguousIdentity\" and .effect == \"none\")" | grep -q .' _ "$D/nodes/edge1/audit"
ready_says() { [ "$(k admin get cb "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}/{.status.conditions[?(@.type=="Ready")].reason}')" = "$2" ]; }
for cb in acme.site-1 acme.twin; do check "$cb says so" eventually 15 ready_says $cb False/AmbiguousIdentity; done
k operator delete cb acme.twin evil.site-1 >/dev/null
check "acme.site-1 takes it back" eventually 15 ready_says acme.site-1 True/IdentityUnique

echo "-- a thousand errors, no two the same"
series() { http "http://[fd00:c::1]:9781/metrics" | sed '/^#/d; s/ [^ ]*$//' | sort; } # names and labels, without values
wrong_requests() { # each with a method, path, authority and header of its own
    local i
    for i in $(seq 1000); do
        printf 'url = "https://masque.test:4433/.well-known/masque/ip/frob-%d/*/?q=%d"\nrequest = "WRONG%d"\nheader = "Host: tenant-%d.test"\nheader = "X-Error-%d: %d"\n' $i $i $i $i $i $i
        printf 'resolve = "masque.test:4433:[fd00:c::1]"\noutput = /dev/null\nhttp2\ncacert = %s\ncert = %s\nkey = %s\nnext\n' "$D"/pki/{edge-ca.crt,site-1.crt,site-1.key}
    done | sed '$d' >"$D/wrong.curl"
    "$LAB" exec "$D" client curl -s -m 60 -K "$D/wrong.curl" || true
}
series >"$D/series.before"
refused_before=$(metric holdfast_requests_refused_total)
wrong_requests
series >"$D/series.after"
check "they were refused and counted ($(($(metric holdfast_requests_refused_total) - refused_before)))" test $(($(metric holdfast_requests_refused_total) - refused_before)) -ge 900
check "/metrics has the series that it had ($(wc -l <"$D/series.before"))" diff "$D/series.before" "$D/series.after"

echo "-- packets and objects"
mark=$(now_ns)
"$LAB" start "$D" connector client site-1 -edges 'edge1=[fd00:c::1]:4433' -unchecked
check "the connector is admitted" await 15 connected event "$mark" '.event == "connected"'
addr=$(address_of client)
check "ping" "$LAB" exec "$D" client ping -I "$addr" -c 2 -i 0.1 -W 2 fd20::10
spoof=fd12:0:0:1:0:77::1
"$LAB" exec "$D" client ip addr add "$spoof/128" dev hfc0 nodad
"$LAB" exec "$D" client ip addr add fd77::1/128 dev hfc0 nodad
mark=$(now_ns)
for a in $spoof fd77::1; do "$LAB" exec "$D" client "$PROBE" send --bind "$a" --to fd20::10 --port 7000 --interval 1000 --count 50 --stream 66 2>/dev/null; done
"$LAB" exec "$D" client ip route add fd21::/64 dev hfc0
"$LAB" exec "$D" client "$PROBE" send --bind "$addr" --to fd21::1 --port 7000 --interval 1000 --count 50 --stream 67 2>/dev/null
check "ping still works" "$LAB" exec "$D" client ping -I "$addr" -c 2 -i 0.1 -W 2 fd20::10
check "no packet with a spoofed source reaches the VPC" fails_with '' grep -E ",in,($spoof|fd12::1:0:77:0:1|fd77::1)," "$D/log/cap.csv"
check "no packet to another destination reaches the VPC" fails_with '' grep -E ',fd21::1,' "$D/log/cap.csv"
check "they are counted: destination" test "$(metric 'holdfast_dropped_total{reason="destination"}')" -ge 50
check "they are counted: source" test "$(metric 'holdfast_dropped_total{reason="source"}')" -ge 100
check "the session goes on" fails_with '' event "$mark" '.event == "closed"'

# the schema takes the year 1, the agent's times begin in 1970: an object that is stored and cannot be read
mark=$(now_ns)
k admin patch cb acme.site-1 --subresource=status --type merge -p '{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Odd","message":"","lastTransitionTime":"0001-01-01T00:00:00Z"}]}}' >/dev/null
check "a binding that cannot be read counts as absent: the session ends" await 5 closed event "$mark" '.event == "closed"'
check "a binding that cannot be read: the log names the field and what is expected" eventually 5 log_says 'status.conditions.*of the years 1970 to 9999'
check "a user outside ASCII is refused by the schema" fails_with 'spec.identities' k operator patch cb acme.site-1 --type merge -p '{"spec":{"identities":[{"user":"gr\u00fcn"}]}}'
mark=$(now_ns)
k admin patch cb acme.site-1 --subresource=status --type merge -p '{"status":{"conditions":null}}' >/dev/null
check "it can be read again: the connector is back" await 5 connected event "$mark" '.event == "connected"'

mark=$(now_ns)
k admin patch cb acme.site-1 --subresource=status --type merge -p '{"status":{"prefix":null}}' >/dev/null
check "reservation removed by hand: the agent does not crash" alive
k admin patch ps svc-a --type merge -p '{"spec":{"destinations":["fd21::/64"]}}' >/dev/null
check "destinations changed by hand: the agent does not crash" alive
check "a nonsense edit is refused by the schema" fails_with 'Invalid' k admin patch rclaim "$(k admin get rclaim -o 'jsonpath={.items[0].metadata.name}')" --type merge -p '{"spec":{"epoch":99}}'
epoch=$(k admin get rclaim -o 'jsonpath={.items[0].spec.epoch}')
k admin patch rclaim "$(k admin get rclaim -o 'jsonpath={.items[0].metadata.name}')" --subresource=status --type merge \
    -p '{"status":{"gate":{"epoch":'"$epoch"',"state":"Closed"}}}' >/dev/null
check "the foundation's answer changed by hand (gate Closed): no crash" alive
k operator delete cb acme.site-1 >/dev/null
check "binding deleted: the session ends" await 10 closed event "$mark" '.event == "closed"'
sleep 1
mark=$(now_ns)
"$LAB" exec "$D" client "$PROBE" send --bind "$addr" --to fd20::10 --port 7000 --interval 1000 --count 100 --stream 68 2>/dev/null || true
check "binding deleted: nothing is forwarded" test "$(cap_count e1 in "$mark" "$(now_ns)")" = 0
check "the agent lives" alive
check "SIGTERM still drains to status 0" test "$("$LAB" stop "$D" agent edge1)" = 0
start_agent
check "ready again" await 30 ready agent_ready edge1
"$LAB" kill -STOP "$D" proxy-edge1 api
"$LAB" kill -TERM "$D" agent edge1
check "SIGTERM: it drains" eventually 5 log_says '"msg":"draining"'
check "SIGTERM twice while the API server does not answer: ends in time, with status 0" test "$(LAB_STOP_SECONDS=25 "$LAB" stop "$D" agent edge1)" = 0
check "and does not claim that everything is released" log_says '"drained".*ends with its lease'
"$LAB" kill -CONT "$D" proxy-edge1 api
check "no secret in any log" fails_with '' grep -rFl -f <(cat "$D"/api/tokens/* | cut -c1-60; grep -hv -e ---- "$D"/pki/*.key | cut -c1-40) "$D/log" "$D/nodes/edge1/audit" "$D/nodes/edge2/audit"
checks_done
