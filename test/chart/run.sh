#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: the charts without a cluster: lint, golden renderings, what must be refused, the agent's own opinion on the
# configuration, strict validation by a real API server, rules of our own, install/upgrade/uninstall there, alerts, dashboard.
# UPDATE=1 writes the golden files anew.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
BIN=${HOLDFAST_BIN:-$root/build/bin}
# shellcheck source=test/lab/lib/check.sh
. "$root/test/lab/lib/check.sh"
mapfile -t tools < <("$here/tools.sh" helm promtool)
[ ${#tools[@]} = 2 ] || exit 1
HELM=${tools[0]} PROMTOOL=${tools[1]}
KUBECTL=$("$root/test/apiserver/build.sh")/kubectl
DIR=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-chart.XXXXXX")
export HELM_CACHE_HOME=$DIR/helm HELM_CONFIG_HOME=$DIR/helm HELM_DATA_HOME=$DIR/helm
AGENT=
finish() {
    local rc=$?
    trap - EXIT INT TERM
    [ -z "$AGENT" ] || kill -KILL "$AGENT" 2>/dev/null || true
    "$root/test/apiserver/down.sh" "$DIR/api" || rc=1
    if [ "$rc" = 0 ] && [ -z "${KEEP:-}" ]; then rm -rf "$DIR"; else echo "files: $DIR"; fi
    exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
chart=$root/charts/holdfast
foundation=$root/charts/holdfast-reference-foundation
# quiet COMMAND...: without helm's remarks about links
quiet() { local rc=0; "$@" 2>"$DIR/stderr" || rc=$?; grep -v 'found symbolic link' "$DIR/stderr" >&2 || true; return $rc; }
render() { quiet "$HELM" template holdfast "$chart" -n holdfast-system "$@"; }
# The rendering without what comes from manifests/ as it is, which has a check of its own.
own_part() { echo '# SPDX-License-Identifier: Apache-2.0'; awk '/^---$/ {buf = $0; next} /^# Source: / {on = $0 !~ /templates\/(crds|access)\.yaml$/; if (on) print buf} on'; }

echo "-- documents, lint"
for c in "$chart" "$foundation"; do
    check "README of ${c##*/} says what values.yaml says" "$root/hack/chart-readme.sh" "$c" --check
done
check "lint" quiet "$HELM" lint --strict "$chart" --set tlsSecret=a
check "lint of the foundation's" quiet "$HELM" lint --strict "$foundation"

echo "-- golden renderings"
for v in "$here"/values/*.yaml; do
    n=$(basename "$v" .yaml)
    render -f "$v" >"$DIR/$n.yaml" || { check "$n renders" false; continue; }
    own_part <"$DIR/$n.yaml" >"$DIR/$n.own"
    [ -z "${UPDATE:-}" ] || cp "$DIR/$n.own" "$here/golden/$n.yaml"
    check "$n is as it was" diff -u "$here/golden/$n.yaml" "$DIR/$n.own"
    awk '/^  agent.yaml: \|$/ {on = 1; next} on && !/^    / {on = 0} on {print substr($0, 5)}' "$DIR/$n.yaml" >"$DIR/$n.agent.yaml"
    check "$n: the agent takes this configuration" env NODE_NAME=n1 "$BIN/holdfast-agent" --check-config --config "$DIR/$n.agent.yaml"
    check "$n: no number in floating point" bash -c '! grep -nE "[0-9]e\+[0-9]" "$1"' _ "$DIR/$n.own"
done
{ echo '# SPDX-License-Identifier: Apache-2.0'; quiet "$HELM" template f "$foundation" -n holdfast-system; } >"$DIR/foundation.yaml"
[ -z "${UPDATE:-}" ] || cp "$DIR/foundation.yaml" "$here/golden/foundation.yaml"
check "foundation is as it was" diff -u "$here/golden/foundation.yaml" "$DIR/foundation.yaml"
check "a chart of another version has the same selector" bash -c '
    cp -rL "$1" "$2/next" && sed -i "s/^version: .*/version: 9.9.9/; s/^appVersion: .*/appVersion: \"9.9.9\"/" "$2/next/Chart.yaml"
    "$3" template holdfast "$2/next" -n holdfast-system --set tlsSecret=holdfast-tls >"$2/next.yaml" 2>/dev/null
    grep -q "holdfast-agent:9.9.9" "$2/next.yaml"
    sel() { awk "/^  selector:/ {on = 1} /minReadySeconds/ {on = 0} on" "$1"; }
    [ -n "$(sel "$2/next.yaml")" ] && diff <(sel "$2/next.yaml") <(sel "$2/default.yaml")
    diff <(grep checksum/config "$2/next.yaml") <(grep checksum/config "$2/default.yaml")' _ "$chart" "$DIR" "$HELM"
# Every option of the agent can be set by the chart, but for those that the pod itself decides.
options() { "$BIN/holdfast-agent" --help | awk '/^Options of the configuration/ {on = 1; next} on && /^  [a-z]/ {print $1}'; }
pod_decides='^(nodeName|namespace|kubeconfig|tls\.|authority\.webhook(CA|Cert|Key)File)'
check "every option of the agent has a value of the chart" bash -c '
    while read -r o; do
        section=${o%%.*} key=${o##*.}
        awk -v s="$section" -v k="$key" "\$0 ~ \"^\" s \":\" {on = 1; if (s == k) found = 1; next} /^[a-z]/ {on = 0} on && \$0 ~ \"^  \" k \":\" {found = 1} END {exit !found}" "$2" || { echo "$o"; bad=1; }
    done <<<"$1"; [ -z "${bad:-}" ]' _ "$(options | grep -vE "$pod_decides")" "$DIR/full.agent.yaml"

echo "-- from manifests/, word for word"
words() { grep -vE '^(---|# Source|#.*|\s*)$' "$@" | grep -vE '^\s*#'; }
check "CRDs" bash -c 'diff <(cat "$1"/manifests/crds/*.yaml | grep -vE "^(---|#.*| *)$") <(awk "/^# Source/ {on = /crds.yaml/} on" "$2" | grep -vE "^(---|#.*| *)$")' _ "$root" "$DIR/crds-go.yaml"
check "CRDs are kept" bash -c '[ "$(grep -c "helm.sh/resource-policy: keep" "$1")" = "$(grep -c "^kind: CustomResourceDefinition" "$1")" ]' _ "$DIR/default.yaml"
check "roles and policies" bash -c 'diff <(cat "$1"/manifests/rbac/*.yaml "$1"/manifests/admission/*.yaml | grep -vE "^(---|#.*| *)$" | sort) <("$3" template holdfast "$1/charts/holdfast" -n holdfast-system --set tlsSecret=a,rbac.aggregateToView=false -s templates/access.yaml 2>/dev/null | grep -vE "^(---|#.*| *)$" | sort)' _ "$root" "$DIR" "$HELM"
check "another namespace is everywhere" bash -c '! "$2" template holdfast "$1" -n other-ns --set tlsSecret=a 2>/dev/null | grep -v "^ *#" | grep -n holdfast-system' _ "$chart" "$HELM"
check "the kustomization has all of it" bash -c 'diff <(cd "$1/manifests" && ls namespace.yaml crds/*.yaml rbac/*.yaml admission/*.yaml | sort) <(sed -n "s/^- //p" "$1/manifests/kustomization.yaml" | sort)' _ "$root"

echo "-- refused"
while IFS=$'\t' read -r args want; do
    [[ $args != \#* ]] || continue
    read -ra list <<<"$args"
    check "$args" fails_with "$want" render "${list[@]}"
done <"$here/cases.tsv"

echo "-- a real API server, strict"
APISERVER_FLAGS=--allow-privileged=true "$root/test/apiserver/up.sh" "$DIR/api"
k() { "$KUBECTL" --kubeconfig "$DIR/api/admin.kubeconfig" "$@"; }
h() { quiet "$HELM" --kubeconfig "$DIR/api/admin.kubeconfig" "$@"; }
k create namespace holdfast-system >/dev/null
k -n holdfast-system create serviceaccount holdfast-test >/dev/null # a pod is checked against its account also when nothing is written
k apply -f "$here/monitoring-crds.yaml" >/dev/null
k wait --for=condition=Established --timeout=30s -f "$here/monitoring-crds.yaml" >/dev/null
eventually 20 k get podmonitors,prometheusrules -A >/dev/null # served, too
strict() { k apply --server-side --dry-run=server --validate=strict -o json -f "$1" >"$DIR/list.json"; }
for v in "$here"/values/*.yaml; do
    n=$(basename "$v" .yaml)
    check "$n: every field is known and of its type" strict "$DIR/$n.yaml"
    check "$n: our rules" bash -c 'out=$(jq -r -f "$1" "$2") && [ -z "$out" ] || { echo "$out"; exit 1; }' _ "$here/rules.jq" "$DIR/list.json"
done
check "foundation: every field is known and of its type" strict "$DIR/foundation.yaml"
check "a field that is not known is refused" bash -c 'sed "s/^  minReadySeconds:/  minReadySecs: 3\n  minReadySeconds:/" "$1/default.yaml" >"$1/bad.yaml"' _ "$DIR"
check "... by name" fails_with minReadySecs strict "$DIR/bad.yaml"
# Each rule has a case that breaks it: a list of edits of the rendering and what the rule says then.
strict "$DIR/full.yaml"
cp "$DIR/list.json" "$DIR/full.json"
while IFS=$'\t' read -r edit want; do
    check "rule: $want" bash -c 'jq "$1" "$2" >"$3" && jq -r -f "$4" "$3" | grep -F -- "$5"' _ "$edit" "$DIR/full.json" "$DIR/broken.json" "$here/rules.jq" "$want"
done < <(grep -v '^#' "$here/rules.tsv")

echo "-- install, upgrade, uninstall"
k -n holdfast-system delete serviceaccount holdfast-test >/dev/null
check "install" h install holdfast "$chart" -n holdfast-system -f "$here/values/default.yaml"
notes() { h get notes holdfast -n holdfast-system; }
check "notes warn of the namespace's label" bash -c 'grep -q "WARNING: the namespace is not labelled"' < <(notes)
check "notes say that nobody is admitted" bash -c 'grep -q "nobody is admitted yet"' < <(notes)
k label namespace holdfast-system pod-security.kubernetes.io/enforce=privileged >/dev/null
check "an upgrade to everything" h upgrade holdfast "$chart" -n holdfast-system -f "$here/values/full.yaml"
check "notes do not warn then" bash -c '! grep -q WARNING' < <(notes)
check "the policies are the cluster's" bash -c '[ "$(wc -l)" = "$(cat "$1"/manifests/admission/*.yaml | grep -cx "kind: ValidatingAdmissionPolicy")" ]' _ "$root" < <(k get validatingadmissionpolicies -o name)
check "CRDs are upgraded" bash -c '"$@" get crd routeclaims.edge.galactic.datumapis.com -o json | jq -e ".metadata.annotations[\"helm.sh/resource-policy\"] == \"keep\""' _ "$KUBECTL" --kubeconfig "$DIR/api/admin.kubeconfig"
until k -n holdfast-system get connectorbindings >/dev/null 2>&1; do sleep 0.1; done
k apply -n holdfast-system -f - >/dev/null <<'Y'
apiVersion: masque.galactic.datumapis.com/v1alpha1
kind: ConnectorBinding
metadata: {name: acme.site-1}
spec: {tenant: acme, connector: site-1, vpc: vpc-a, serviceName: svc-a, identities: [{uri: "spiffe://acme/site-1"}]}
Y
check "rollback" h rollback holdfast 1 -n holdfast-system
check "a second installation is refused" fails_with "exists and cannot be imported" h install again "$chart" -n holdfast-system -f "$here/values/default.yaml"
check "uninstall" h uninstall holdfast -n holdfast-system
check "rows and CRDs are still there" k -n holdfast-system get connectorbinding acme.site-1
check "nothing else is" bash -c '! grep .' < <(k get daemonsets,configmaps,roles,serviceaccounts -n holdfast-system -o name | grep holdfast)
check "install again, over the rows" h install holdfast "$chart" -n holdfast-system -f "$here/values/default.yaml"
check "the row is the same" k -n holdfast-system get connectorbinding acme.site-1

echo "-- metrics, alerts, dashboard"
"$here/metrics.sh" "$DIR" "$BIN" "$PROMTOOL" &
AGENT=$!
wait "$AGENT" && rc=0 || rc=$?
AGENT=
check "an agent's metrics could be read" test "$rc" = 0
"$here/preflight.sh" "$DIR" "$BIN" >"$DIR/preflight.log" 2>&1 &
AGENT=$!
wait "$AGENT" && rc=0 || rc=$?
AGENT=
check "holdfast-agent check: every failing case is named" bash -c 'cat "$1"; [ "$2" = 0 ]' _ "$DIR/preflight.log" "$rc"
check "Prometheus text: promtool finds nothing" bash -c 'out=$("$1" check metrics <"$2" 2>&1) && [ -z "$out" ] || { echo "$out"; exit 1; }' _ "$PROMTOOL" "$DIR/metrics.txt"
check "OpenMetrics: ends with EOF, families without _total, the same samples" bash -c '
    [ "$(tail -n 1 "$1/metrics.om")" = "# EOF" ] && ! grep -E "^# (HELP|TYPE) [a-z_]*_total " "$1/metrics.om"
    diff <(grep -v "^#" "$1/metrics.om" | sed "s/ [^ ]*$//") <(grep -v "^#" "$1/metrics.txt" | sed "s/ [^ ]*$//")' _ "$DIR"
check "no identities in labels" bash -c '! grep -E "(connector|tenant|peer|node|uri|prefix)=" "$1"' _ "$DIR/metrics.txt"
exported=$(grep -v '^#' "$DIR/metrics.txt" | sed 's/[{ ].*//' | sort -u)
used() { grep -oE '\b(holdfast|process)_[a-z_]+' | sort -u; }
check "every metric of the alerts is exported" bash -c '[ -z "$(comm -13 <(echo "$1") <(echo "$2") | tee /dev/stderr)" ]' _ "$exported" "$(jq -r '.items[] | select(.kind == "PrometheusRule").spec.groups[].rules[].expr' "$DIR/full.json" | used)"
check "every query of the dashboard is exported, with its labels" "$here/dashboard.sh" "$root/manifests/monitoring/dashboard.json" "$DIR/metrics.txt" "$PROMTOOL"
check "rules: promtool finds nothing" bash -c 'out=$("$1" check rules --lint=all --lint-fatal "$2" 2>&1) || { echo "$out"; exit 1; }' _ "$PROMTOOL" "$root/manifests/monitoring/alerts.yaml"
jq '.items[] | select(.kind == "PrometheusRule").spec' "$DIR/full.json" >"$DIR/rule.json"
check "the chart's rules: promtool finds nothing" "$PROMTOOL" check rules "$DIR/rule.json"
check "switched off and changed, as asked" jq -e '[.groups[].rules[]] | (any(.alert == "HoldfastVersionSkew") | not) and (.[] | select(.alert == "HoldfastAgentNotReady") | .for == "10m" and .labels.severity == "page") and all(.annotations.runbook_url | startswith("https://runbooks.example/holdfast/OPERATIONS.md#"))' "$DIR/rule.json"
check "alerts fire and stay silent as they should" bash -c 'cd "$1" && "$2" test rules alerts_test.yaml' _ "$here" "$PROMTOOL"
check "every alert is tested, both ways" bash -c 'for a in $(sed -n "s/^  - alert: //p" "$1/manifests/monitoring/alerts.yaml"); do
    awk -v a="$a" "\$0 ~ \"alertname: \" a \"\$\" {on = 1; next} on && /exp_alerts: *\\[\\]/ {none = 1} on && /exp_labels|exp_alerts: *\\[\\{/ {some = 1} on && /alertname:|eval_time/ && !/exp/ {} /alertname:/ && \$0 !~ a \"\$\" {on = 0} END {exit !(none && some)}" "$2" || { echo "$a"; bad=1; }
done; [ -z "${bad:-}" ]' _ "$root" "$here/alerts_test.yaml"
check "every alert has its section in OPERATIONS.md" bash -c 'for a in $(sed -n "s/^  - alert: //p" "$1/manifests/monitoring/alerts.yaml"); do
    s=$(awk -v a="### $a" "\$0 == a {on = 1; next} /^#/ {on = 0} on" "$1/OPERATIONS.md")
    for w in Means See Do "Do not"; do grep -q "^\*\*$w\*\*" <<<"$s" || { echo "$a lacks $w"; bad=1; }; done
    grep -q "runbook_url: OPERATIONS.md#${a,,}$" "$1/manifests/monitoring/alerts.yaml" || { echo "$a: runbook_url"; bad=1; }
done; [ -z "${bad:-}" ]' _ "$root"
# what the documents call a log event, the code writes
check "every log event of the runbook is in the code" bash -c 'for e in $(grep -oE "log events? (\`[a-z_]+\`(, )?)+" "$1/OPERATIONS.md" | grep -oE "\`[a-z_]+\`" | tr -d "\`" | sort -u); do
    grep -rqF "\"$e\"" "$1"/pkg "$1"/test/foundation --include=*.c || { echo "$e"; bad=1; }
done; [ -z "${bad:-}" ]' _ "$root"
checks_done
