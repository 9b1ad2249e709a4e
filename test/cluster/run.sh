#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: charts and images on a real cluster of two nodes, with connector traffic the whole time that it is wanted. Checks and
# figures with their bounds; logs stay in build/cluster. OUTAGE: seconds without API server (120; 600 by hand).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
BIN=${HOLDFAST_BIN:-$root/build/bin}
PROBE=$BIN/holdfast-probe
export PROBE
CONNECTOR=$root/build/peers/holdfast-connector
D=${CLUSTER_DIR:-$root/build/cluster}
OUTAGE=${OUTAGE:-120}
DRAINS=${DRAINS:-22} # with the updates a hundred moves, so that a 99th percentile is one
NS=holdfast-system
mkdir -p "$D"
D=$(cd "$D" && pwd)
# The scenarios' way to look at packets; what is different in a cluster stands in lib.sh.
SCENARIO_DIR=$D
# shellcheck source=test/lab/scenarios/lib.sh
. "$root/test/lab/scenarios/lib.sh"
here=$root/test/cluster
# shellcheck source=test/cluster/lib.sh
. "$here/lib.sh"
[ "$(id -u)" = 0 ] || { echo "run.sh: error: needs root, for a cluster of namespaces" >&2; exit 1; }
finish() {
    local rc=$?
    trap - EXIT INT TERM
    [ "$rc" = 0 ] || tell_about_pods || true
    c down || rc=1
    exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "-- a cluster"
"$here/images.sh" "$D/images"
"$root/test/peers/pki/mk.sh" "$D/pki"
t=$(ms)
"$here/cluster" up "$D" 2
note "etcd, API server, controller manager, scheduler and two nodes with kubelet and containerd: Ready after $(($(ms) - t)) ms"
k create namespace $NS >/dev/null
k label namespace $NS pod-security.kubernetes.io/enforce=privileged >/dev/null
kn create secret generic holdfast-tls "--from-file=tls.crt=$D/pki/edge1.crt" "--from-file=tls.key=$D/pki/edge1.key" "--from-file=client-ca.crt=$D/pki/client-ca.crt" >/dev/null

echo "-- install"
t=$(ms)
check "helm install" helm_agent install "$root/charts/holdfast"
check "helm install of the reference foundation" helm_foundation
check "both agents are Ready" eventually 60 rolled_out 0
figure "from helm install to Ready, image present" $(($(ms) - t)) 20000
check "both instances are accepted" eventually 20 instances_accepted
check "the pods are what the chart says: uid 65532, no capability" pods_are_confined
check "each agent's token is bound to its node" tokens_are_bound
resident

echo "-- traffic"
objects
observe
connectors start
check "four connectors have sessions" eventually 20 have_sessions
traffic
check "packets flow in both directions" flow_now
check "helm test" c helm test holdfast -n $NS
check "check in a running pod finds nothing" kn exec "$(pod_on edge1)" -- /usr/local/bin/holdfast-agent check --running --config /etc/holdfast/config/agent.yaml

echo "-- a rolling update under traffic"
measured "a rolling update" update_pods
measured "another one" update_pods

echo "-- drains"
measured "kubectl holdfast drain and undrain of the sessions' node, $DRAINS times" drain_often "$DRAINS"
before=$(where_is)
check "kubectl holdfast drain of the sessions' node" tool drain "$before"
check "the sessions are on the other node" eventually 20 moved_from "$before"
check "kubectl holdfast undrain" tool undrain "$before"
check "kubectl drain leaves the agents where they are" k drain "$(where_is)" --ignore-daemonsets --delete-emptydir-data --timeout=30s
check "... and packets flow" flow_now
check "kubectl uncordon" k uncordon "$(where_is)"

echo "-- the kubelets start anew, which replaces each pod's token"
restarts=$(restart_counts)
old_ids=$(token_ids)
for n in 1 2; do c kubelet $n; done
check "the kubelets have written other tokens" eventually 60 tokens_are_new "$old_ids"
check "... which are bound to their nodes" tokens_are_bound
check "packets flow" flow_now

echo "-- $OUTAGE s without API server"
c cut
t=$(ms)
sleep "$OUTAGE" # what is waited for is that nothing happens
check "nothing passes so long after the lease" silent_now
c heal
healed=$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)
check "packets flow again" flow_now 60
figure "back after $OUTAGE s without API server" $(($(ms) - t - OUTAGE * 1000)) 30000
check "both agents are Ready again" eventually 60 rolled_out 0
check "no pod was restarted" test "$restarts" = "$(restart_counts)"
check "since then the agents have used the replaced tokens only" eventually 60 only_with "$(token_ids)" "$healed"
check "which is another thing than before" fails_with 'wanted' only_with "$old_ids" "$healed"

echo "-- uninstall"
rows >"$D/rows.before"
trails >"$D/trails.before"
connectors stop
foundation_logs keep
# The foundation's account is of the chart holdfast: it goes first, and comes after.
check "helm uninstall of the reference foundation" c helm uninstall foundation -n $NS --wait --timeout 90s
check "helm uninstall" c helm uninstall holdfast -n $NS --wait --timeout 90s
check "the pods are gone" eventually 90 no_agents
check "all CRDs are there" test "$(k get crd -o name | grep -c galactic.datumapis.com)" = 5
rows >"$D/rows.after"
check "every row is there, with its UID ($(wc -l <"$D/rows.before"))" diff "$D/rows.before" "$D/rows.after"
check "the audit trails are there" trails_kept
for n in 1 2; do check "edge$n's trail is whole" "$BIN/kubectl-holdfast" audit verify "$D/n$n/var/lib/holdfast/audit"; done

echo "-- upgrade from v0.1.0 and rollback, under traffic"
check "install of v0.1.0's chart, on the rows that were kept" helm_agent install "$root/test/history/v0.1.0/chart"
check "and of the reference foundation" helm_foundation
check "both agents are Ready" eventually 60 rolled_out 0
connectors start
check "the connectors have sessions" eventually 30 have_sessions
check "packets flow" flow_now
check "their prefixes are those that they had" same_prefixes
measured "helm upgrade to this chart" upgrade
measured "helm rollback" rollback
check "every row is there" kept_rows

echo "-- how long a move takes"
moved

echo "-- what the packets say about the whole run"
foundation_logs
note "gates open at once for one prefix: $(gates_open_at_once); packets outside an open gate: $(outside_gates 2>"$D/outside.txt"); of a node after another holder's first: $(two_forwarders 2>>"$D/outside.txt")"
check "no two gates were ever open for one prefix" test "$(gates_open_at_once)" = 1
check "no packet came out of a node whose gate was closed" test "$(outside_gates 2>/dev/null)" = 0
check "which would have been seen" test "$(outside_gates none 2>/dev/null)" -gt 0
check "the claims' whole history was seen" eventually 5 history_whole
check "no packet of an earlier holder's node after the first of a later one's" test "$(two_forwarders 2>/dev/null)" = 0
check "which would have been seen, too" test "$(two_forwarders none 2>/dev/null)" -gt 0
note "figures that do not hold, as KNOWN_LIMITS.md says: $LIMITS"
checks_done
