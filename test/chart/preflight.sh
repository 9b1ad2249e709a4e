#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# preflight.sh DIR BIN: `holdfast-agent check` on the API server of DIR/api, where the chart is installed and metrics.sh has made
# node, credentials and TLS files: each failing case, one by one, with what it says. Prints a line per case that is wrong.
set -euo pipefail
dir=$1 BIN=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
KUBECTL=$("$root/test/apiserver/build.sh")/kubectl
k() { "$KUBECTL" --kubeconfig "$dir/api/admin.kubeconfig" "$@"; }
work=$dir/preflight
mkdir -p "$work/audit"
chmod 700 "$work/audit"
bad=0 n=0
port() { local p; while p=$((20000 + RANDOM % 12000)); do ss -Hlntu "sport = :$p" | grep -q . || { echo "$p"; return; }; done; }
h3=$(port) health=$(port) metrics=$(port)
config() { # SED-EXPRESSION...: the configuration with changes
    cat >"$work/agent.yaml" <<Y
kubeconfig: $dir/api/agent-edge1.kubeconfig
namespace: holdfast-system
listen: {h3: "127.0.0.1:$h3"}
tls: {certFile: $dir/tls/tls.crt, keyFile: $dir/tls/tls.key, clientCAFile: $dir/tls/client-ca.crt}
audit: {directory: $work/audit, events: on}
health: {listen: "127.0.0.1:$health"}
metrics: {listen: "127.0.0.1:$metrics", authentication: kubernetes}
Y
    [ $# = 0 ] || sed -i "$@" "$work/agent.yaml"
}
run() { NODE_NAME=${NODE:-edge1} "${PREFIX[@]}" "$BIN/holdfast-agent" check --config "$work/agent.yaml" "$@" >"$work/out" 2>&1; }
PREFIX=()
# wants NAME REGEX: the check fails and has such a FAILED line
wants() {
    n=$((n + 1))
    if run; then echo "preflight: $1: did not fail"; bad=1; return; fi
    grep -qE "$2" "$work/out" || { echo "preflight: $1: no /$2/ in:"; cat "$work/out"; bad=1; }
}
config
for _ in $(seq 40); do run && break; sleep 0.2; done # policies and bindings act after a moment
run || { echo "preflight: all is well, but:"; cat "$work/out"; bad=1; }
grep -qE '^ok +rbac +[0-9]+ permissions' "$work/out"
grep -qE '^ok +policies' "$work/out"
grep -qE '^ok +clock' "$work/out"

config 's/^lease:.*//; $a lease: {durationSeconds: 10, guardMilliseconds: 9000}'; wants "timing" '^FAILED +configuration .*lease'
config 's/^tls:.*/tls: {certFile: \/nonexistent, keyFile: \/n, clientCAFile: \/n}/'; wants "no certificate" '^FAILED +tls .*tls.certFile: cannot read /nonexistent'
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$work/other.key" -out "$work/other.crt" -days 2 -subj /CN=x 2>/dev/null
config "s#$dir/tls/tls.key#$work/other.key#"; wants "another key" '^FAILED +tls .*does not belong to the certificate'
config "s#$dir/tls/tls.key#$dir/tls/tls.crt#"; wants "no key" '^FAILED +tls .*holds no PEM private key'
openssl x509 -req -in <(openssl req -new -key "$work/other.key" -subj /CN=old 2>/dev/null) -signkey "$work/other.key" -not_before 20200101000000Z -not_after 20200102000000Z -out "$work/old.crt" 2>/dev/null ||
    { # OpenSSL before 3.4 cannot say that: a certificate of -1 days
        openssl x509 -req -in <(openssl req -new -key "$work/other.key" -subj /CN=old 2>/dev/null) -signkey "$work/other.key" -days -1 -out "$work/old.crt" 2>/dev/null; }
config "s#$dir/tls/tls.crt#$work/old.crt#; s#$dir/tls/tls.key#$work/other.key#"; wants "expired" '^FAILED +tls .*has expired; renew it'
config "s#$dir/tls/client-ca.crt#/dev/null#"; wants "no client CA" '^FAILED +tls .*tls.clientCAFile: /dev/null holds no PEM certificate'
config "s#directory: [^,]*#directory: $work/nope#"; wants "no audit folder" '^FAILED +audit .*make it, owned by uid'
mkdir -p "$work/open"; chmod 777 "$work/open"
config "s#directory: [^,]*#directory: $work/open#"; wants "audit folder open to others" '^FAILED +audit .*open to others'
config
PREFIX=(unshare --mount bash -c 'mount -t tmpfs none /dev/net && exec "$@"' _); wants "no TUN" '^FAILED +tun .*is not here'
PREFIX=(unshare --time --boottime 100 --fork); wants "time namespace" '^FAILED +clock .*time namespace'
PREFIX=()
# the API server has this one
config "s/127.0.0.1:$health/127.0.0.1:$(sed -n 's/.*:\([0-9]*\)$/\1/p' <<<"$(sed -n 's/^APISERVER_URL=//p' "$dir/api/env")")/"; wants "port in use" '^FAILED +port .*health.listen.*is in use'
config
run --running || { echo "preflight: --running fails:"; cat "$work/out"; bad=1; }
NODE=edge9 wants "another node" "^FAILED +credentials .*nodeName is 'edge9'"
config "s#^kubeconfig:.*#kubeconfig: /nonexistent#"; wants "no kubeconfig" '^FAILED +credentials .*nonexistent'
sed 's#^users:.*#users: [{name: agent-edge1, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x}}}]#' "$dir/api/agent-edge1.kubeconfig" >"$work/exec.kubeconfig"
config "s#^kubeconfig:.*#kubeconfig: $work/exec.kubeconfig#"; wants "an exec plug-in" '^FAILED +credentials .*exec'
echo nonsense >"$work/token"
sed "s#tokenFile: [^}]*#tokenFile: \"$work/token\"#" "$dir/api/agent-edge1.kubeconfig" >"$work/bad.kubeconfig"
config "s#^kubeconfig:.*#kubeconfig: $work/bad.kubeconfig#"; wants "a token that is not known" '^FAILED +credentials .*(401)'
k -n holdfast-system create token holdfast-agent >"$work/token"
wants "a token without a node" '^FAILED +credentials .*no node claim'
sed 's#server: "[^"]*"#server: "https://127.0.0.1:1"#' "$dir/api/agent-edge1.kubeconfig" >"$work/away.kubeconfig"
config "s#^kubeconfig:.*#kubeconfig: $work/away.kubeconfig#"; wants "no API server" '^FAILED +apiserver .*127.0.0.1:1'

# Permissions: each rule of the role taken away, its verbs and resources are named; then the reviews.
config
k -n holdfast-system get role holdfast-agent -o json | jq 'del(.metadata.managedFields, .metadata.resourceVersion, .metadata.uid)' >"$work/role.json"
rules=$(jq '.rules | length' "$work/role.json")
for ((i = 0; i < rules; i++)); do
    jq "del(.rules[$i])" "$work/role.json" | k replace -f - >/dev/null
    want=$(jq -r ".rules[$i] | .verbs[] as \$v | .resources[] as \$r | .apiGroups[] as \$g | \"may not \(\$v) \(\$r).\(\$g):\"" "$work/role.json")
    for _ in $(seq 50); do run || true; [ "$(grep -cE '^FAILED +rbac' "$work/out" || true)" != "$(wc -l <<<"$want")" ] || break; sleep 0.1; done
    n=$((n + 1))
    diff <(sort <<<"$want") <(grep -oE 'may not [^:]*:' "$work/out" | sort) >"$work/diff" || { echo "preflight: rule $i of the role:"; cat "$work/diff"; bad=1; }
done
k replace -f "$work/role.json" >/dev/null
k get clusterrolebinding holdfast-agent-reviews -o json | jq 'del(.metadata.managedFields, .metadata.resourceVersion, .metadata.uid)' >"$work/reviews.json"
k delete clusterrolebinding holdfast-agent-reviews >/dev/null
for _ in $(seq 50); do run || true; [ "$(grep -c 'bind the ClusterRole holdfast-agent-reviews' "$work/out" || true)" != 2 ] || break; sleep 0.1; done
wants "no reviews" '^FAILED +rbac .*may not create tokenreviews.authentication.k8s.io: bind'
k create -f "$work/reviews.json" >/dev/null

# Admission policies, CRDs, namespace.
k get validatingadmissionpolicybinding holdfast-agent-writes -o json | jq 'del(.metadata.managedFields, .metadata.resourceVersion, .metadata.uid)' >"$work/binding.json"
k delete validatingadmissionpolicybinding holdfast-agent-writes >/dev/null
for _ in $(seq 100); do run || true; ! grep -q '^FAILED *policies' "$work/out" || break; sleep 0.1; done
wants "no policy" '^FAILED +policies .*would be taken: the admission policies do not act'
k create -f "$work/binding.json" >/dev/null
k create clusterrole ns-reader --verb=get --resource=namespaces >/dev/null
k create clusterrolebinding ns-reader --clusterrole=ns-reader --serviceaccount=holdfast-system:holdfast-agent >/dev/null
k label namespace holdfast-system pod-security.kubernetes.io/enforce=baseline --overwrite >/dev/null
for _ in $(seq 50); do run || true; grep -q '^skipped *namespace' "$work/out" || break; sleep 0.1; done
wants "namespace without the label" '^FAILED +namespace .*pod-security.kubernetes.io/enforce=privileged'
k label namespace holdfast-system pod-security.kubernetes.io/enforce=privileged --overwrite >/dev/null
k get crd routeclaims.edge.galactic.datumapis.com -o json | jq 'del(.metadata.managedFields, .metadata.resourceVersion, .metadata.uid, .status)' >"$work/crd.json"
# an older CRD: without a field that this agent needs
jq 'walk(if type == "object" then del(.["x-kubernetes-validations"]) else . end) | del(.spec.versions[0].schema.openAPIV3Schema.properties.status.properties.closedReason)' "$work/crd.json" | k replace -f - >/dev/null
for _ in $(seq 30); do run || true; ! grep -q "^FAILED *crds" "$work/out" || break; sleep 1; done
wants "an older CRD" '^FAILED +crds .*without the field status.closedReason: its CustomResourceDefinition is older than this program'
k replace -f "$work/crd.json" >/dev/null
for _ in $(seq 100); do ! run || break; sleep 0.1; done
run || { echo "preflight: all is well again, but:"; cat "$work/out"; bad=1; }
! grep -rF "$(cat "$dir/api/tokens/agent-edge1")" "$work/out"
echo "preflight: $n failing cases"
exit $bad
