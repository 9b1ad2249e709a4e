#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# schema.sh: the schema only adds. The CRDs as they first landed (test/history/v0.1.0) with stored objects of every kind; the
# current ones over them (objects too that the current ones would refuse if they were new); back again; and an uninstall of everything but the CRDs. No row and no field is lost on the way.
set -euo pipefail
# shellcheck source=test/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cli_up NOINSTALL
OLD=$root/test/history/v0.1.0/crds NEW=$root/manifests/crds
KINDS=(providerinstances.edge.galactic.datumapis.com hostattachments.edge.galactic.datumapis.com providerservices.edge.galactic.datumapis.com
    routeclaims.edge.galactic.datumapis.com connectorbindings.masque.galactic.datumapis.com)
apply() { # DIR: applies the CRDs and waits until they are served
    admin apply -f "$1" >/dev/null
    admin wait --for condition=Established --timeout 30s "${KINDS[@]/#/crd/}" >/dev/null
}
# everything but what each write changes
rows() { for k in "${KINDS[@]}"; do admin get "$k" -o json; done | jq -S '[.items[] | del(.metadata.managedFields, .metadata.resourceVersion, .metadata.annotations)]'; }
uids() { for k in "${KINDS[@]}"; do admin get "$k" -o json; done | jq -r '.items[] | "\(.kind) \(.metadata.name) \(.metadata.uid)"' | sort; }
# fields KIND-FILE: every path of a CRD's schema with its type, one a line
fields() { admin create --dry-run=client -f "$1" -o json | jq -r '.spec.versions[] | .name as $v | .schema.openAPIV3Schema | paths(type == "object" and (.type? | type) == "string") as $p | "\($v) \($p | map(tostring) | join("/")) \(getpath($p).type)"' | sort; }
only_adds() { local lost; lost=$(comm -23 <(fields "$OLD/$1") <(fields "$NEW/$1")); [ -z "$lost" ] || { echo "$lost"; return 1; }; }
enums() { admin create --dry-run=client -f "$1" -o json | jq -r '.spec.versions[] | .schema.openAPIV3Schema | paths(type == "object" and has("enum")) as $p | getpath($p).enum[] as $e | "\($p | map(tostring) | join("/")) \($e)"' | sort; }
enum_only_adds() { local lost; lost=$(comm -23 <(enums "$OLD/$1") <(enums "$NEW/$1")); [ -z "$lost" ] || { echo "$lost"; return 1; }; }
required() { admin create --dry-run=client -f "$1" -o json | jq -r '.spec.versions[] | .schema.openAPIV3Schema | paths(type == "object" and has("required")) as $p | getpath($p).required[] as $r | "\($p | map(tostring) | join("/")) \($r)"' | sort; }
none_more_required() { # within objects that were there before
    local more
    more=$(comm -13 <(required "$OLD/$1") <(required "$NEW/$1") | while read -r path field; do grep -qF -- " ${path:-}" <(fields "$OLD/$1") && echo "$path $field"; done || true)
    [ -z "$more" ] || { echo "$more"; return 1; }
}
# demands FILE: every bound, pattern and rule of a CRD's schema, one a line
demands() { admin create --dry-run=client -f "$1" -o json | jq -r '.spec.versions[].schema.openAPIV3Schema | ([], paths(type == "object")) as $p
    | getpath($p) | to_entries[] | ("." + ($p | map(tostring) | join("."))) as $at
    | if .key == "x-kubernetes-validations" then .value[].rule | "\($at) rule \(gsub("\\s"; ""))"
      elif (.key | IN("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
          "minProperties", "maxProperties", "pattern", "format", "x-kubernetes-list-type")) and (.value | type) != "object" then "\($at) \(.key) \(.value)" else empty end' | sort -u; }
objects() { admin create --dry-run=client -f "$1" -o json | jq -r '.spec.versions[].schema.openAPIV3Schema | ([], paths(type == "object")) | "." + (map(tostring) | join("."))'; }
# Of a field that was there before nothing more is demanded than what TIGHTER lists.
TIGHTER=$root/test/history/tighter.txt
demands_no_more() {
    local more
    more=$(comm -13 <(demands "$OLD/$1") <(demands "$NEW/$1") | awk 'NR == FNR {was[$1] = 1; next} $1 in was' <(objects "$OLD/$1") - |
        sed "s/^/${1%.yaml} /" | grep -vxFf "$TIGHTER" || true)
    [ -z "$more" ] || { echo "$more"; return 1; }
}
served() { # DIR: versions that are served and stored go on being so
    admin create --dry-run=client -f "$1" -o json | jq -r '.spec.versions[] | "\(.name) \(.served) \(.storage)"'
}

admin apply -f "$root/manifests/namespace.yaml" >/dev/null
apply "$OLD"
service 290
instance edge1 1 1
instance edge2 1 1
attachment edge1 1
attachment edge2 1
binding site-1 1 600
binding site-2 2
claim 1 site-1 edge1 2 100
claim 2 site-2 edge2 1 50
release 2 10
# what the first ones took and the current ones would not
long=$(printf 'R%0127d' 0)
jq -n --arg t "$(ago -290)" '{apiVersion: "edge.galactic.datumapis.com/v1alpha1", kind: "ProviderService", metadata: {name: "svc-96"},
    spec: {provider: "masque", tenant: "acme", vpc: "vpc-a", allowedPrefix: "fd12:0:0:9::/96", validUntil: $t, revoked: false}}' | put
binding site-3 3 99999999
patch_spec cb acme.site-3 '{"spec":{"identities":[{"user":"jané"}]}}'
patch_status cb acme.site-3 "{\"conditions\":[$(cond Ready False "$long")]}"
patch_status pi masque.edge2 "{\"conditions\":[$(cond Ready True "$long")]}"
patch_status rclaim "$(claim_name 2)" "{\"gate\":{\"reason\":\"$long\"}}"
rows >"$DIR/before.json"
uids >"$DIR/before.uids"
check "objects of every kind are stored" test "$(wc -l <"$DIR/before.uids")" = 11

echo "-- the files"
for f in "$OLD"/*.yaml; do
    f=${f##*/}
    check "$f: no field is gone or has another type" only_adds "$f"
    check "$f: no value of an enum is gone" enum_only_adds "$f"
    check "$f: nothing more is required" none_more_required "$f"
    check "$f: no bound is tighter, no rule more, but what is listed" demands_no_more "$f"
    check "$f: the same versions are served and stored" test "$(served "$OLD/$f")" = "$(served "$NEW/$f")"
done

# the comparisons can fail: a field gone, a value of an enum gone, a field more required
real=$NEW NEW=$DIR/mutants
mkdir "$NEW"
not() { ! "$@" >/dev/null; }
mutant() { # NAME JQ-FILTER CHECK
    admin create --dry-run=client -f "$real/routeclaims.yaml" -o json | jq ".spec.versions[0].schema.openAPIV3Schema.properties |= ($2)" >"$NEW/routeclaims.yaml"
    check "noticed: $1" not "$3" routeclaims.yaml
}
mutant "a field that is gone" 'del(.spec.properties.correlationID)' only_adds
mutant "a field of another type" '.spec.properties.epoch.type = "string"' only_adds
mutant "a value that is gone" '.status.properties.gate.properties.state.enum = ["Open"]' enum_only_adds
mutant "a field more that is required" '.spec.required += ["releaseTime"]' none_more_required
mutant "a bound that is tighter" '.spec.properties.leaseDurationSeconds.maximum = 200' demands_no_more
mutant "a pattern that was not there" '.spec.properties.vpc.pattern = "^vpc-"' demands_no_more
mutant "a rule more" '.spec["x-kubernetes-validations"] += [{rule: "self.epoch < 10"}]' demands_no_more
NEW=$real

echo "-- upgrade"
apply "$NEW"
rows >"$DIR/after.json"
check "every row is there, field by field" diff "$DIR/before.json" "$DIR/after.json"
check "the tool reads them" says '^edge1 ' 0 "${IN[@]}" "$BIN/kubectl-holdfast" status --kubeconfig "$DIR/admin.kubeconfig"
for k in "${KINDS[@]}"; do # a write under the new schema takes what the old one stored
    check "${k%%.*}: rows can be written" bash -c '"${@:2}" -n holdfast-system annotate "$1" --all --overwrite test=new >/dev/null' _ "$k" "${IN[@]}" "$KUBECTL" --kubeconfig "$DIR/admin.kubeconfig"
done
rows >"$DIR/written.json"
check "and nothing was pruned" diff "$DIR/before.json" "$DIR/written.json"

echo "-- rollback"
apply "$OLD"
rows >"$DIR/back.json"
check "every row is there" diff "$DIR/before.json" "$DIR/back.json"
for k in "${KINDS[@]}"; do
    check "${k%%.*}: rows can be written" bash -c '"${@:2}" -n holdfast-system annotate "$1" --all --overwrite test=old >/dev/null' _ "$k" "${IN[@]}" "$KUBECTL" --kubeconfig "$DIR/admin.kubeconfig"
done
check "with the same UIDs" diff "$DIR/before.uids" <(uids)

echo "-- uninstall"
apply "$NEW"
admin apply -k "$root/manifests" >/dev/null
admin delete -f "$root/manifests/rbac" -f "$root/manifests/admission" >/dev/null
check "roles and policies are gone" bash -c '! "$@" get clusterrole,validatingadmissionpolicy -o name | grep -q holdfast' _ "${IN[@]}" "$KUBECTL" --kubeconfig "$DIR/admin.kubeconfig"
rows >"$DIR/gone.json"
check "rows stay" diff "$DIR/before.json" "$DIR/gone.json"
checks_done
