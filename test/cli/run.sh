#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: kubectl-holdfast against a real API server: status, explain, prune, show; as an operator, with an operator's rights.
set -euo pipefail
# shellcheck source=test/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cli_up

echo "-- command line"
K=$BIN/kubectl-holdfast
check "no argument: help" says 'usage: kubectl holdfast COMMAND' 0 "$K"
check "unknown command" says "'stauts'.*known: status" 2 "$K" stauts
check "unknown flag" says "'--frob'.*--help" 2 "$K" status --frob
check "flag of another command" says "--dry-run is no flag of 'status'" 2 "$K" status --dry-run
check "a value that is missing" says '--since needs a value: --since T' 2 "$K" audit show --since
check "a time that is none" says "--since 'yesterday'.*10m" 2 "$K" audit show --since yesterday x
check "a format that is none" says "--output 'xml'.*json, yaml or wide" 2 "$K" status -o xml
check "a correlation ID that is none" says "--correlation-id 'xyz'.*32 hex" 2 "$K" audit show --correlation-id xyz x
check "a namespace that is none" says "--namespace 'A_B'" 2 "$K" status -n A_B
check "an agent that is none" says "--agent 'edge1'.*NODE=ADDRESS:PORT" 2 "$K" explain x --agent edge1
check "show: which records" says '--correlation-id ID, --connector NAME or --since' 2 "$K" audit show x
check "show: which trail" says 'FILEs or DIRs, or --from-agents' 2 "$K" audit show --since 1h
check "explain: a name that is none" says "explain 'Ä'.*correlation ID" 2 "$K" explain Ä
for c in status 'audit verify' 'audit show' explain 'claims prune' 'claims list' instances sessions drain undrain events completion version; do
    # shellcheck disable=SC2086 # two words
    check "help of $c" says "usage: kubectl holdfast $c" 0 "$K" $c --help
done
check "no kubeconfig: says what to do" says 'kubeconfig.*nonexistent' 3 "$K" status --kubeconfig /nonexistent
check "no context of that name" says 'context.*nope' 3 "${IN[@]}" "$K" status --kubeconfig "$DIR/operator.kubeconfig" --context nope
install -d "$DIR/path"
ln -s "$K" "$DIR/path/kubectl-holdfast"
check "as a kubectl plugin" says '^kubectl-holdfast 0' 0 env "PATH=$DIR/path:$PATH" "$KUBECTL" holdfast version --client
check "kubectl finds the plugin" says 'kubectl-holdfast' 0 env "PATH=$DIR/path:/nonexistent" "$KUBECTL" plugin list
check "no colour when the output is no terminal" bash -c '! "$1" status --kubeconfig "$2" 2>&1 | grep -q $'"'\\033'" _ "$K" /nonexistent

echo "-- status"
check "no instance at all" says 'no agent has started' 1 hf status
service 290
instance edge1 1 3
instance edge2 1 4
attachment edge1 1
attachment edge2 1
check "two nodes, Ready" says '^edge1 +1 +True +[0-9]+s +no +0' 0 hf status
binding site-1 1
claim 1 site-1 edge1 2 100
check "a claim below its node" says '^  fd12::1:0:1:0:0/96 +acme.site-1 +2 +Open +1 +Held' 0 hf status
check "wide: lease UUID" says "$(uuid 102)" 0 hf status -o wide
check "json" json '.ready and (.nodes | length == 2) and (.nodes[0].claims[0] | .epoch == 2 and .gate == "Open")' 0 hf status
check "yaml" says '^nodes:$' 0 hf status -o yaml
# an older CRD without the columns that status reads: the objects are listed instead, and say the same
hf status -o json | jq -S . >"$DIR/by-table"
objects_listed() { jq -r 'select(.userAgent | startswith("kubectl-holdfast")) | .requestURI' "$DIR/audit.log" | grep -q 'routeclaims?limit='; }
by_table() { ! objects_listed; }
check "claims come as a table" by_table
admin get crd routeclaims.edge.galactic.datumapis.com -o json | jq '{spec: {versions: (.spec.versions | map(del(.additionalPrinterColumns)))}}' >"$DIR/columns.json"
admin patch crd routeclaims.edge.galactic.datumapis.com --type merge --patch-file "$DIR/columns.json" >/dev/null
by_objects() { hf status -o json | jq -S . >"$DIR/by-objects" && objects_listed && diff "$DIR/by-table" "$DIR/by-objects"; }
check "a CRD without the columns: by the objects, the same" eventually 30 by_objects
admin apply -f "$root/manifests/crds/routeclaims.yaml" >/dev/null
check "one node only" json '[.nodes[].node] == ["edge2"]' 0 hf status edge2
check "a node that is not there" says 'no instance of these nodes' 1 hf status edge9
instance edge2 1 300
check "not renewed: Expired, exit 1" says '^edge2 +1 +Expired +[45]m.*NotRenewed' 1 hf status
instance edge2 1 4
patch_status pi masque.edge2 "{\"conditions\":[$(cond Ready False DeviceLost)]}"
check "not Ready: exit 1, with the reason" says '^edge2 +1 +False.*DeviceLost' 1 hf status
instance edge2 1 4
patch_spec pi masque.edge2 '{"spec":{"draining":true}}'
check "draining" says '^edge2 +1 +True +[0-9]+s +yes' 0 hf status
patch_spec pi masque.edge2 "{\"spec\":{\"releaseTime\":\"$(ago 1)\",\"draining\":false}}"
check "given back: exit 1" says '^edge2 +1 +Released' 1 hf status
check "another namespace" says 'namespace default' 1 "${IN[@]}" "$K" status -n default --kubeconfig "$DIR/admin.kubeconfig"
check "without rights: says which" says 'not allowed \(403\).*holdfast:operators' 3 "${IN[@]}" "$K" status --kubeconfig "$DIR/authority.kubeconfig"

echo "-- instances, claims, sessions, drain"
instance edge1 1 3
instance edge2 2 3
check "instances: nodes only" bash -c 'out=$("$@") || true; grep -q "^edge1 " <<<"$out" && ! grep -q fd12 <<<"$out"' _ "${IN[@]}" "$BIN/kubectl-holdfast" instances --kubeconfig "$DIR/operator.kubeconfig"
check "claims list: claims only" bash -c 'out=$("$@") || true; grep -q "fd12::1:0:1:0:0/96" <<<"$out" && ! grep -q "^edge1 " <<<"$out"' _ "${IN[@]}" "$BIN/kubectl-holdfast" claims list --kubeconfig "$DIR/operator.kubeconfig"
check "sessions" says '^acme.site-1 +Forwarding' 0 hf sessions
check "sessions of one connector" json '.sessions | length == 1 and .[0].connector == "site-1" and .[0].epoch == 2' 0 hf sessions acme.site-1
check "sessions: no such connector" says 'no ConnectorBinding of that name' 1 hf sessions nope
check "events: none yet" says 'no event of Holdfast' 0 hf events
check "drain: a node that is not there" says 'no instance of node edge9' 1 hf drain edge9
check "drain: which node" says 'drain: name one node' 2 "$K" drain
check "drain: gives up waiting, goes on" says 'edge1: told to drain, 1 claim still held' 1 hf drain edge1 --timeout 1s
check "it is the annotation, and nothing else" jq -e '.metadata.annotations["masque.galactic.datumapis.com/drain"] == "true" and .spec.draining != true' <(admin get pi masque.edge1 -o json)
agent_drains() { # what an agent does then
    patch_spec pi masque.edge1 '{"spec":{"draining":true}}'
    sleep 1.5
    release 1 0
}
agent_drains &
check "drain: waits, says how far it is" says 'edge1 is drained: no claim is held there' 0 hf drain edge1 --timeout 60s
wait $!
check "drained already: at once" says 'is drained' 0 hf drain edge1
patch_spec pi masque.edge1 '{"spec":{"draining":false}}'
instance edge1 1 1
check "undrain" says 'edge1 is back in service' 0 hf undrain edge1 --timeout 20s
check "undrain takes the annotation away" jq -e '.metadata.annotations | has("masque.galactic.datumapis.com/drain") | not' <(admin get pi masque.edge1 -o json)
check "completion: bash takes it, and completes" bash -c 'source <("$1" completion bash) && COMP_WORDS=(kubectl-holdfast sta) COMP_CWORD=1 && _kubectl_holdfast && [ "${COMPREPLY[*]}" = status ] && COMP_WORDS=(kubectl-holdfast drain --t) COMP_CWORD=2 && _kubectl_holdfast && [ "${COMPREPLY[*]}" = --timeout ]' _ "$K"
check "completion: another shell" says "only 'completion bash'" 2 "$K" completion fish
admin delete rclaim --all --wait=false >/dev/null
claim 1 site-1 edge1 2 100

echo "-- explain: what is authoritative"
instance edge1 1 2
why() { json ".reason == \"$1\" and .authoritative == ${2:-false} and (.next | length > 0) and (.because | length > 0)" 0 hf explain "${3:-site-1}"; }
check "all conditions hold" why Forwarding true
check "in words" says '^acme.site-1: node edge1 is authoritative, epoch 2' 0 hf explain site-1
check "by TENANT.NAME" why Forwarding true acme.site-1
check "by the row's correlation ID" why Forwarding true 0123456789abcdef0123456789abcdef
check "says what it could not see" json '.notSeen | any(contains("audit trail of node edge1 was not read"))' 0 hf explain site-1
check "unknown connector" says "no ConnectorBinding and no RouteClaim of a connector 'nope'" 1 hf explain nope
check "unknown request" says 'nothing is known of request f{32}' 1 hf explain ffffffffffffffffffffffffffffffff
patch_status rclaim "$(claim_name 1)" '{"gate":{"epoch":2,"state":"Closed","reason":"LeaseLapsed"}}'
check "gate closed" why GateClosed
patch_status rclaim "$(claim_name 1)" '{"gate":{"epoch":2,"state":"Open","reason":"Opened"}}'
instance edge1 1 45
check "holder silent" why HolderSilent
instance edge1 2 1
check "holder gone: another process has its row" why HolderGone
check "the way on is a takeover with the observed epoch" json '.next | any(contains("observed epoch 2"))' 0 hf explain site-1
admin delete pi masque.edge1 --wait=false >/dev/null
check "holder gone: no instance" why HolderGone
instance edge1 1 1
admin delete ha masque.edge1.vpc-a >/dev/null # instanceRef.uid is immutable
attachment edge1 1
binding site-2 2
claim 2 site-2 edge1 1 10
check "another one forwards" why Forwarding true site-2
patch_status ha masque.edge1.vpc-a "{\"conditions\":[$(cond Ready False DeviceLost)]}"
check "attachment not ready" why AttachmentNotReady false site-2
attachment edge1 1
patch_spec cb acme.site-2 '{"spec":{"suspended":true}}'
check "suspended, not released yet" why Suspended false site-2
check "suspended: what is open ends on its deadline" json '.statement | contains("own deadline")' 0 hf explain site-2
release 2 5
check "suspended and released" json '.reason == "Suspended" and (.because | contains("which has happened"))' 0 hf explain site-2
patch_spec cb acme.site-2 '{"spec":{"suspended":false}}'
check "released" why Released false site-2
binding site-3
check "no claim" why NoClaim false site-3
claim 3 site-3 edge1 1 10
check "claim that nobody reserves" why NotReserved false site-3
patch_status cb acme.site-3 '{"prefix":"fd12::1:0:3:0:0/96"}'
service 1
sleep 1.2
check "service expired" why ServiceExpired false site-3
service 290
check "and back" why Forwarding true site-3
patch_spec ps svc-a '{"spec":{"revoked":true}}'
check "service revoked" why ServiceRevoked false site-3
admin delete ps svc-a >/dev/null
service 290
check "service made anew: the claim names the old one" why ServiceGone false site-3
binding site-1 '' '' evil
check "one name, two tenants: asks which" says 'several tenants.*acme.site-1.*evil.site-1|several tenants.*evil.site-1.*acme.site-1' 2 hf explain site-1
admin delete cb evil.site-1 >/dev/null

echo "-- claims prune"
admin delete rclaim,cb --all >/dev/null
admin delete pi,ha --all >/dev/null
for n in edge1 edge2; do
    instance $n 1 900
    attachment $n 1
done
binding a 11 60
binding b 12 3600
binding c 13
for i in 11:a 12:b 13:c 14:d 15:e 17:g; do claim "${i%:*}" "${i#*:}" edge1 1 200000; done
claim 16 f edge2 1 200000
release 11 100  # retention 60: goes
release 12 100  # retention 3600: stays
#       13      held and reserved: stays
release 14 90000 # no binding, default retention 24h: goes
release 15 100  # no binding, default retention 24h: stays
#       16      no binding, holder silent for 900 s: stays with 24h
#       17      no binding, living holder: stays
prune() { "${IN[@]}" "$BIN/kubectl-holdfast" claims prune --kubeconfig "$DIR/operator.kubeconfig" "$@"; }
names() { admin get rclaim -o name | sed 's|.*/||' | sort | tr '\n' ' '; }
before=$(names)
instance edge1 1 0
check "dry run says why for each" json '.dryRun and .wouldDelete == 2 and (.rows | length == 7) and (.rows | all(.why | length > 10))' 0 prune --dry-run
verdict() { json ".rows[] | select(.name == \"$(claim_name "$1")\") | .action == \"$2\" and (.why | test(\"$3\"))" 0 prune --dry-run "${@:4}"; }
check "released past its binding's retention" verdict 11 'would delete' 'released 10[0-9]s ago, past its retention of 60s'
check "released, within its binding's retention" verdict 12 keep 'its retention is 60m'
check "held and reserved" verdict 13 keep 'held by edge1 and reserved'
check "no binding, past the default" verdict 14 'would delete' 'no binding reserves it'
check "no binding, within the default" verdict 15 keep 'its retention is 24h'
check "--retention is for rows without one" verdict 15 'would delete' 'retention of 60s' --retention 60s
check "--retention does not shorten a binding's" verdict 12 keep 'its retention is 60m' --retention 60s
binding other 16
check "holder gone, but another binding reserves its prefix" verdict 16 keep 'acme.other reserves its /96' --retention 5m
admin delete cb acme.other >/dev/null
check "holder gone, within the default" verdict 16 keep 'no binding reserves it, last used'
check "holder gone, past it" verdict 16 'would delete' 'holder on edge2 is gone' --retention 5m
instance edge1 1 0
check "no binding, but a living holder" verdict 17 keep 'living process on edge1' --retention 1s
check "the dry run deletes nothing" test "$(names)" = "$before"
admin patch rclaim "$(claim_name 14)" --type json -p '[{"op":"add","path":"/metadata/finalizers","value":["gate.edge.galactic.datumapis.com/x.y"]}]' >/dev/null
check "prune" says '2 deleted, 5 kept' 0 prune
check "what it should is gone, all else is there" test "$(names)" = "$(for i in 12 13 14 15 16 17; do claim_name $i; echo; done | sort | tr '\n' ' ')"
check "a finalizer keeps its row" test -n "$(admin get rclaim "$(claim_name 14)" -o 'jsonpath={.metadata.deletionTimestamp}')"
check "which prune says" verdict 14 keep 'being deleted already; 1 finalizer'
# each deletion carried uid and resourceVersion
check "every deletion had its preconditions" bash -c 'n=$(jq -r "select(.verb == \"delete\" and .objectRef.resource == \"routeclaims\" and .userAgent == \"kubectl-holdfast/0.1.0\") | .responseStatus.code // 200" "$1/audit.log" | wc -l); [ "$n" = 2 ]' _ "$DIR"
checks_done
