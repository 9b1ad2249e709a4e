#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plugin.sh: kubectl-holdfast as a plug-in of kubectl: kubeconfigs, exec plug-ins, colours; check, version and dump against a real
# API server and a real agent; man page and krew manifest; Events are tied to the node that writes them.
set -euo pipefail
# shellcheck source=test/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cli_up
K=$BIN/kubectl-holdfast
in_ns() { "${IN[@]}" env -u KUBECONFIG HOME="$DIR" "$@"; }

echo "-- kubeconfig, as kubectl"
mkdir -p "$DIR/a/b" "$DIR/.kube"
# the context in one file, cluster and user in another; a file that is not there; relative paths
cp "$DIR/ca.crt" "$DIR/a/b/ca.crt"
admin create serviceaccount viewer >/dev/null
admin create rolebinding viewer --role holdfast-operator --serviceaccount holdfast-system:viewer >/dev/null
token=$(admin create token viewer --duration 3600s)
server=$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' "$DIR/operator.kubeconfig")
printf '%s' "$token" >"$DIR/a/b/token"
printf 'kind: Config\ncurrent-context: two\ncontexts:\n- {name: two, context: {cluster: c, user: u, namespace: holdfast-system}}\n- {name: other, context: {cluster: c, user: u, namespace: default}}\n' >"$DIR/a/contexts"
printf 'kind: Config\ncurrent-context: nope\nclusters: [{name: c, cluster: {server: "%s", certificate-authority: b/ca.crt}}]\nusers: [{name: u, user: {tokenFile: b/token}}]\n' "$server" >"$DIR/a/rest"
check "KUBECONFIG is a list; relative paths; a file that is not there" says 'no agent has started|^NODE' 1 in_ns "KUBECONFIG=$DIR/a/nope:$DIR/a/contexts:$DIR/a/rest" "$K" status
check "kubectl agrees" in_ns "KUBECONFIG=$DIR/a/nope:$DIR/a/contexts:$DIR/a/rest" "$KUBECTL" get pi
check "--context, with its namespace" says 'namespaces/default/providerinstances: not allowed' 3 in_ns "KUBECONFIG=$DIR/a/contexts:$DIR/a/rest" "$K" status --context other
check "-n wins over the context's namespace" says 'in namespace holdfast-system' 1 in_ns "KUBECONFIG=$DIR/a/contexts:$DIR/a/rest" "$K" status --context other -n holdfast-system
cp "$DIR/operator.kubeconfig" "$DIR/.kube/config"
check "~/.kube/config" says 'no agent has started' 1 in_ns "$K" status
check "--kubeconfig wins over KUBECONFIG" says 'no agent has started' 1 in_ns "KUBECONFIG=/nonexistent" "$K" status --kubeconfig "$DIR/operator.kubeconfig"
odd() { # NAME REGEX TEXT: a kubeconfig that makes no sense: what is said, exit 3, no crash
    printf '%b' "$3" >"$DIR/a/odd"
    check "odd kubeconfig: $1" says "$2" 3 in_ns "$K" status --kubeconfig "$DIR/a/odd"
}
odd "empty" 'current-context is missing' ''
odd "no YAML" 'line [0-9]+: ' 'clusters: [\n'
odd "binary" 'NUL character' 'a\0b'
odd "another kind" 'kind must be Config' 'kind: Pod\n'
odd "a list" 'must be a map' '- a\n'
odd "an alias" 'aliases are not supported' 'a: &x 1\nb: *x\n'
odd "two documents" 'second document' 'a: 1\n---\nb: 1\n'
odd "no such user" 'no user named "u"' "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
odd "http" 'https' "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
odd "TLS unverified" 'insecure-skip-tls-verify' "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]\n"
odd "a password" 'password is not supported|username is not supported' "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {username: x, password: hush-password}}]\n"

echo "-- exec plug-ins, as kubectl"
cat >"$DIR/a/b/login" <<P
#!/bin/sh
echo run >>$DIR/a/b/runs
echo "to the person: hello" >&2
printf '%s' "\$KUBERNETES_EXEC_INFO" >$DIR/a/b/info
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"%s}}' "\$(cat $DIR/a/b/token)" "\${EXTRA:-}"
P
chmod 700 "$DIR/a/b/login"
exec_config() { # MORE
    cat >"$DIR/a/exec" <<Y
kind: Config
current-context: e
contexts: [{name: e, context: {cluster: c, user: e, namespace: holdfast-system}}]
clusters: [{name: c, cluster: {server: "$server", certificate-authority: b/ca.crt}}]
users:
- name: e
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: b/login, interactiveMode: IfAvailable, provideClusterInfo: true${1:-}}
Y
}
exec_config
check "kubectl runs it" in_ns "$KUBECTL" --kubeconfig "$DIR/a/exec" get pi
cp "$DIR/a/b/info" "$DIR/a/b/info.kubectl"
check "the tool runs it; what it says to the person is seen" says 'to the person: hello' 1 in_ns "$K" status --kubeconfig "$DIR/a/exec"
check "KUBERNETES_EXEC_INFO is kubectl's" diff <(jq -S . "$DIR/a/b/info.kubectl") <(jq -S . "$DIR/a/b/info")
: >"$DIR/a/b/runs"
check "once for many requests" bash -c '"$@" >/dev/null 2>&1; [ "$(wc -l <"'"$DIR"'/a/b/runs")" = 1 ]' _ "${IN[@]}" "$K" check --kubeconfig "$DIR/a/exec"
: >"$DIR/a/b/runs"
check "again when its credentials are over" bash -c 'EXTRA=",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"" "$@" >/dev/null 2>&1; [ "$(wc -l <"'"$DIR"'/a/b/runs")" -gt 3 ]' _ "${IN[@]}" "$K" status --kubeconfig "$DIR/a/exec"
printf '%s' nonsense >"$DIR/a/b/token"
: >"$DIR/a/b/runs"
check "a token that is refused: asked once more, then 401" says '\(401\)' 3 in_ns "$K" status --kubeconfig "$DIR/a/exec"
check "asked twice" test "$(wc -l <"$DIR/a/b/runs")" = 2
printf '%s' "$token" >"$DIR/a/b/token"
exec_config ', installHint: get it from the shop'
sed -i 's|b/login|hf-not-there|' "$DIR/a/exec"
check "a plug-in that is not there: its installHint" says 'hf-not-there.*get it from the shop' 3 in_ns "$K" status --kubeconfig "$DIR/a/exec"
exec_config
check "the agent refuses it" says 'exec is not supported' 1 in_ns env NODE_NAME=edge1 "$BIN/holdfast-agent" check --config <(printf 'kubeconfig: %s\nnamespace: holdfast-system\naudit: {directory: %s}\n' "$DIR/a/exec" "$DIR/a")

echo "-- colours"
instance edge1 1 3
tty() { in_ns script -qec "$1" /dev/null </dev/null; } # COMMAND: on a terminal
check "on a terminal" bash -c 'grep -q $'"'\\033'"' <<<"$1"' _ "$(TERM=xterm tty "$K status")"
check "not with NO_COLOR" bash -c '! grep -q $'"'\\033\\['"' <<<"$1"' _ "$(TERM=xterm NO_COLOR=1 tty "$K status")"
check "not on a dumb one" bash -c '! grep -q $'"'\\033\\['"' <<<"$1"' _ "$(TERM=dumb tty "$K status")"
check "not in a pipe" bash -c '! grep -q $'"'\\033'"' <<<"$1"' _ "$(TERM=xterm in_ns "$K" status)"
check "not in JSON" bash -c '! grep -q $'"'\\033'"' <<<"$1"' _ "$(TERM=xterm tty "$K status -o json")"
admin delete pi masque.edge1 >/dev/null

echo "-- an agent"
"$root/test/peers/pki/mk.sh" "$DIR/tls" >/dev/null 2>&1
mkdir -p "$DIR/audit"
cat >"$DIR/agent.yaml" <<Y
nodeName: edge1
namespace: holdfast-system
kubeconfig: $DIR/agent-edge1.kubeconfig
listen: {h3: "[::]:4433"}
tls: {certFile: $DIR/tls/edge1.crt, keyFile: $DIR/tls/edge1.key, clientCAFile: $DIR/tls/client-ca.crt}
audit: {directory: $DIR/audit, events: "on"}
health: {listen: "[::]:9780"}
metrics: {listen: "[::]:9781"}
Y
"${IN[@]}" "$BIN/holdfast-agent" --config "$DIR/agent.yaml" 2>"$DIR/agent.log" &
PIDS+=("$!")
version_is() { [ "$(admin get pi masque.edge1 -o jsonpath='{.metadata.annotations.masque\.galactic\.datumapis\.com/agent-version}')" = "$1" ]; }
V=$("$K" version --client -o json | jq -r .client.version)
check "the agent writes its version into its instance" eventually 20 version_is "$V"
patch_status pi masque.edge1 "$(admin get pi masque.edge1 -o json | jq -c --arg t "$(ago 1)" '{status: {acceptedEpoch: .spec.epoch, acceptedProcessID: .spec.processID, conditions: [
    {type: "Ready", status: "True", reason: "Ready", message: "", lastTransitionTime: $t}, {type: "Accepted", status: "True", reason: "Accepted", message: "", lastTransitionTime: $t}]}}')"

echo "-- version"
check "--client asks nobody" says '^kubectl-holdfast 0' 0 in_ns "$K" version --client --kubeconfig /nonexistent
check "without a cluster: its own, and exit 3" says '^not seen: .*nonexistent' 3 in_ns "$K" version --kubeconfig /nonexistent
check "all of the same version" says 'these versions work together' 0 hf version
check "json" json '.supported and .client.version == "'"$V"'" and (.server | startswith("v1.")) and .agents == [{"node": "edge1", "version": "'"$V"'", "skewToClient": "None", "running": true}]' 0 hf version
instance edge2 1 1
stamp() { admin annotate pi masque.edge2 --overwrite "masque.galactic.datumapis.com/agent-version=$1" >/dev/null; }
minor=${V#*.} minor=${minor%%.*}
check "an agent that did not say: exit 1" says 'problem: node edge2: its agent did not write its version' 1 hf version
stamp "${V%%.*}.$((minor + 1)).7"
check "one minor version apart: allowed" json '.supported and (.agents[1].skewToClient == "Allowed")' 0 hf version
stamp "${V%%.*}.$((minor + 2)).0"
check "two: exit 1, with what to do" says 'problem: node edge2: agent .*more than one minor version apart: install the tool' 1 hf version
check "two between agents" says 'problem: agents of .* run side by side, more than one minor version apart' 1 hf version
stamp "$(printf '\033[31mred')"
check "a version that is none is not shown" bash -c '! grep -q red <<<"$1"' _ "$(hf version 2>&1 || true)"
instance edge2 1 900
check "an instance that is over does not count" json '.supported and (.agents[1].running | not)' 0 hf version

echo "-- check"
admin patch pi masque.edge2 --type merge -p '{"spec":{"nodeName":"edge2"}}' >/dev/null
lines() { says "$2" "$1" in_ns "$K" check --kubeconfig "$DIR/$3.kubeconfig"; } # STATUS REGEX WHO
check "an operator: what he may not read is skipped" lines 1 '^skipped +policies ' operator
check "instances that are not Ready are named" lines 1 '^FAILED +instances +masque.edge2 is Expired \(NotRenewed\)' operator
admin delete pi masque.edge2 >/dev/null
check "an administrator: all is well" lines 0 '^ok +policies +8 policies are bound and deny' admin
check "an operator has an operator's rights" lines 0 '^ok +rbac +you have the [0-9]+ permissions of an operator' operator
check "json" json '.summary.FAILED == 0 and ([.checks[].check] | index("apiserver") and index("crds") and index("namespace") and index("versions"))' 0 hf check
sed 's#server: "[^"]*"#server: "https://127.0.0.1:1"#' "$DIR/operator.kubeconfig" >"$DIR/nowhere.kubeconfig"
check "no API server: exit 3" lines 3 '^FAILED +apiserver .*127.0.0.1:1' nowhere
# the role's verbs, each taken away, are named
admin get role holdfast-operator -o json | jq 'del(.metadata.managedFields, .metadata.resourceVersion, .metadata.uid)' >"$DIR/role.json"
one_by_one() {
    local i n want bad=0
    n=$(jq '.rules | length' "$DIR/role.json")
    for ((i = 0; i < n; i++)); do
        jq "del(.rules[$i])" "$DIR/role.json" | admin replace -f - >/dev/null
        want=$(jq -r ".rules[$i] | .verbs[] as \$v | .resources[] as \$r | .apiGroups[] as \$g | \"you may not \(\$v) \(\$r).\(\$g):\"" "$DIR/role.json" | sort)
        for _ in $(seq 50); do [ "$(hf check | grep -oE 'you may not [^:]*:' | sort)" != "$want" ] || continue 2; sleep 0.1; done
        echo "rule $i: wanted $want"; bad=1
    done
    admin replace -f "$DIR/role.json" >/dev/null
    return $bad
}
check "each missing permission is named" one_by_one
eventually 5 hf check >/dev/null || true
lacks() { # NAME REGEX UNDO-FILE COMMAND...: after the command check fails so; the object is put back
    local name=$1 re=$2 file=$3
    shift 3
    "$@" >/dev/null
    check "$name" eventually 20 lines 1 "$re" admin
    admin apply -f "$file" >/dev/null
}
A=$root/manifests/admission
lacks "a policy that is missing" '^FAILED +policies +holdfast-claim-pool is missing' "$A/claim-pool.yaml" admin delete validatingadmissionpolicy holdfast-claim-pool
lacks "a policy that is not bound" '^FAILED +policies +holdfast-agent-writes is not bound' "$A/agent.yaml" admin delete validatingadmissionpolicybinding holdfast-agent-writes
lacks "a policy that only warns" '^FAILED +policies +holdfast-agent-writes its binding does not Deny' "$A/agent.yaml" admin patch validatingadmissionpolicybinding holdfast-agent-writes --type merge -p '{"spec":{"validationActions":["Warn"]}}'
lacks "a policy that lets errors pass" '^FAILED +policies +holdfast-deleting-rows has another failurePolicy' "$A/deleting-rows.yaml" admin patch validatingadmissionpolicy holdfast-deleting-rows --type merge -p '{"spec":{"failurePolicy":"Ignore"}}'
lacks "a policy for another namespace" '^FAILED +policies +holdfast-operator-drain acts in namespace elsewhere' "$A/operator.yaml" admin patch validatingadmissionpolicybinding holdfast-operator-drain --type merge -p '{"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"elsewhere"}}}}}'
lacks "a namespace without the label" '^FAILED +namespace .*pod-security.kubernetes.io/enforce=privileged' "$root/manifests/namespace.yaml" admin label namespace holdfast-system pod-security.kubernetes.io/enforce=baseline --overwrite
instance gone9 1 900
check "the row of a node that was removed: what to do" lines 1 'there is no node gone9 any more: `kubectl -n holdfast-system delete pi masque.gone9`' admin
admin delete pi masque.gone9 >/dev/null
admin get crd routeclaims.edge.galactic.datumapis.com -o json | jq 'del(.metadata.managedFields, .metadata.resourceVersion, .metadata.uid, .status)' >"$DIR/crd.json"
jq 'walk(if type == "object" then del(.["x-kubernetes-validations"]) else . end) | del(.spec.versions[0].schema.openAPIV3Schema.properties.status.properties.closedReason)' "$DIR/crd.json" | admin replace -f - >/dev/null
check "an older CRD" eventually 30 lines 1 '^FAILED +crds .*without the field status.closedReason' admin
admin replace -f "$DIR/crd.json" >/dev/null
check "and all is well again" eventually 30 lines 0 '^[0-9]+ ok, 0 failed, 0 skipped' admin

echo "-- dump"
S() { printf 'hush-%s-5e1f00d' "$1"; } # one secret per place that somebody may put one
admin apply -f "$root/manifests/options/audit-reader.yaml" >/dev/null
admin patch pod holdfast-agent-edge1 --subresource status --type merge -p "{\"status\":{\"phase\":\"Running\",\"message\":\"$(S podmessage)\",\"podIP\":\"$NODE_ADDR\",\"podIPs\":[{\"ip\":\"$NODE_ADDR\"}],
    \"containerStatuses\":[{\"name\":\"agent\",\"ready\":true,\"restartCount\":3,\"image\":\"holdfast-agent:$V\",\"imageID\":\"x\",\"lastState\":{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\",\"message\":\"$(S termination)\"}}}]}}" >/dev/null
admin delete pod holdfast-agent-edge2 --grace-period 0 --force >/dev/null 2>&1
service 290
binding site-1 1
admin annotate cb acme.site-1 "example.com/password=$(S annotation)" >/dev/null
admin annotate pi masque.edge1 "kubectl.kubernetes.io/last-applied-configuration={\"token\":\"$(S applied)\"}" >/dev/null
admin label cb acme.site-1 "secret=$(S label)" >/dev/null
admin annotate pod holdfast-agent-edge1 "example.com/token=$(S pod)" >/dev/null
admin create secret generic holdfast-tls --from-literal "tls.key=$(S secret)" >/dev/null
admin create configmap holdfast-more --from-literal "password=$(S configmap)" >/dev/null
event() { # NAME CONTROLLER INSTANCE NOTE
    jq -n --arg n "$1" --arg c "$2" --arg i "$3" --arg t "$4" --arg at "$(ago 1)" '{apiVersion: "events.k8s.io/v1", kind: "Event", metadata: {name: $n, namespace: "holdfast-system"}, eventTime: $at,
        type: "Normal", reason: "Test", action: "Test", note: $t, reportingController: $c, reportingInstance: $i, regarding: {apiVersion: "v1", kind: "Pod", name: "x", namespace: "holdfast-system"}}'
}
OURS=masque.galactic.datumapis.com/holdfast
event foreign example.com/other x "$(S note)" | admin create -f - >/dev/null
event ours "$OURS" edge1 'a takeover' | admin create -f - >/dev/null
(cd "$DIR" && hf dump -f "$DIR/dump.tar" >"$DIR/dump.out" 2>&1) || { cat "$DIR/dump.out"; }
check "everything was seen" grep -qE 'dump.tar: 1[0-9] files, 0 not seen' "$DIR/dump.out"
mkdir -p "$DIR/x"
check "tar reads it" tar -xf "$DIR/dump.tar" -C "$DIR/x"
check "it is for its owner only" test "$(stat -c %a "$DIR/dump.tar")" = 600
D=$DIR/x/holdfast-dump
check "objects" bash -c 'jq -es "map(.metadata.name) == [\"acme.site-1\"] and .[0].spec.identities[0].uri == \"spiffe://acme/site-1\"" "$1/objects/connectorbindings.jsonl" && jq -es "length == 1 and .[0].spec.nodeName == \"edge1\"" "$1/objects/providerinstances.jsonl"' _ "$D"
check "what check and version say" bash -c 'jq -e ".checks | length > 5" "$1/check.json" && jq -e ".agents | length == 1" "$1/version.json"' _ "$D"
check "Events of Holdfast" jq -e 'length >= 1 and all(.reportingController | startswith("masque.galactic"))' "$D/events.json"
check "the pods' state" jq -e '.[] | select(."spec.nodeName" == "edge1") | .containers[0].restartCount == 3 and .containers[0]."lastState.terminated.reason" == "Error"' "$D/pods.json"
check "metrics, through the API server" grep -q '^holdfast_build_info' "$D/agents/edge1/metrics.txt"
check "readyz, with what fails" grep -qE '^\[[-+]\]' "$D/agents/edge1/readyz.txt"
check "README names each" bash -c 'cd "$1" && find . -type f ! -name README.txt | sed "s|^\./||" | while read -r f; do grep -qF -- " $f" README.txt || { echo "$f"; exit 1; }; done' _ "$D"
all=$(cat "$DIR/dump.tar" "$DIR/dump.out" | tr '\0' '\n')
for s in annotation applied label pod podmessage termination secret configmap note; do
    check "no secret: $s" bash -c '! grep -qF -- "$1" <<<"$2"' _ "$(S $s)" "$all"
done
check "no secret: a key" bash -c '! grep -qE "PRIVATE KEY|BEGIN CERTIFICATE" <<<"$1"' _ "$all"
check "no secret: the caller's token" bash -c '! grep -qF -- "$1" <<<"$2"' _ "$(cut -c1-40 <"$DIR/tokens/agent-edge1")" "$all"
hf dump -f - 2>/dev/null | tar -tf - >"$DIR/names" || true
check "to standard output" grep -q '^holdfast-dump/README.txt$' "$DIR/names"
check "a file that is there stays" says 'dump.tar: File exists; name another' 2 hf dump -f "$DIR/dump.tar"
check "a folder that is not there" says 'No such file' 2 hf dump -f "$DIR/nope/x.tar"
check "a disk that is full: says so, leaves nothing" bash -c '"$@" dump -f - >/dev/full 2>"'"$DIR"'/err"; [ $? = 3 ] && grep -q "could not be written" "'"$DIR"'/err"' _ "${IN[@]}" "$K" --kubeconfig "$DIR/operator.kubeconfig"
sleep 0.1
check "without the right to pods: exit 3, says which" bash -c '"$@" 2>&1 | grep -q "not seen: pods.json.*audit-reader.yaml"' _ "${IN[@]}" "$K" dump -f "$DIR/less.tar" --kubeconfig "$DIR/a/exec"

echo "-- Events are tied to their node"
as() { in_ns "$KUBECTL" --kubeconfig "$DIR/agent-$1.kubeconfig" -n holdfast-system "${@:2}"; }
create_event() { event "$2" "$3" "$4" note >"$DIR/event.json"; as "$1" create --validate=false -f "$DIR/event.json"; } # NODE NAME CONTROLLER INSTANCE
check "an agent writes in its node's name" create_event edge1 e1 "$OURS" edge1
check "not in another node's" fails_with "in its own node's name" create_event edge1 e9 "$OURS" edge2
check "not as another controller" fails_with 'as masque.galactic' create_event edge1 e3 example.com/x edge1
# an agent may not read Events, which kubectl would do first
patch_event() { # NODE NAME JSON: its status on standard output
    "${IN[@]}" curl -s -m 10 --cacert "$DIR/ca.crt" -H "Authorization: Bearer $(<"$DIR/tokens/agent-$1")" -X PATCH -H 'Content-Type: application/merge-patch+json' \
        --data "$3" -o "$DIR/patched" -w '%{http_code}' "$server/apis/events.k8s.io/v1/namespaces/holdfast-system/events/$2"
}
patched() { # STATUS REGEX NODE NAME JSON
    local got
    got=$(patch_event "${@:3}")
    [ "$got" = "$1" ] && grep -qE "$2" "$DIR/patched" || { echo "status $got:"; cat "$DIR/patched"; return 1; }
}
series='{"series":{"count":2,"lastObservedTime":"2026-11-29T12:00:00.000000Z"}}'
check "its own may be counted on" patched 200 '"count": *2' edge1 e1 "$series"
event e2 "$OURS" edge2 'of the other node' | admin create -f - >/dev/null
check "another node's may not" patched 403 "in its own node's name" edge1 e2 "$series"
check "nor be taken over" patched 422 'reportingInstance.*field is immutable' edge1 e2 '{"reportingInstance":"edge1"}'
check "others' Events are not its" patched 403 'own node' edge1 foreign "$series"

echo "-- man page, krew"
check "the man page says what --help says" "$root/hack/man.sh" "$K" --check
check "groff takes it without a warning" bash -c '! command -v groff >/dev/null || { out=$(groff -Kutf8 -man -ww -Tutf8 -z "$1" 2>&1); [ -z "$out" ] || { echo "$out"; exit 1; }; }' _ "$root/cmd/kubectl-holdfast/kubectl-holdfast.1"
check "krew: archive and manifest" "$root/hack/krew.sh" "$BIN" "$DIR/krew"
check "the manifest is krew's kind, and names this archive by its digest" bash -c '
    f=$(echo "$1"/kubectl-holdfast_v*.tar.gz) sum=$(sha256sum "$f" | cut -d" " -f1)
    grep -qx "apiVersion: krew.googlecontainertools.github.com/v1alpha2" "$1/holdfast.yaml" && grep -qx "kind: Plugin" "$1/holdfast.yaml" &&
    grep -qx "  name: holdfast" "$1/holdfast.yaml" && grep -qx "  version: v'"$V"'" "$1/holdfast.yaml" && grep -qx "    sha256: $sum" "$1/holdfast.yaml" &&
    grep -qE "^    uri: https://.*/${f##*/}$" "$1/holdfast.yaml"' _ "$DIR/krew"
check "what the manifest takes from it runs, and the licence is there" bash -c 'mkdir -p "$1/in" && tar -xzf "$1"/*.tar.gz -C "$1/in" && "$1/in/$(sed -n "s/^    bin: //p" "$1/holdfast.yaml")" version --client && [ -s "$1/in/LICENSE" ]' _ "$DIR/krew"
check "a second archive is the same" bash -c '"$2" "$3" "$1/again" && cmp "$1"/*.tar.gz "$1"/again/*.tar.gz' _ "$DIR/krew" "$root/hack/krew.sh" "$BIN"
checks_done
