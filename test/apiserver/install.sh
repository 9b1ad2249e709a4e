#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh DIR: puts the namespace, CRDs, roles and admission policies of manifests/ on the API server that up.sh started in
# DIR, and returns once they really act: the kinds are served and every policy has refused a request that it must refuse.
set -euo pipefail
# shellcheck source=test/apiserver/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# = 1 ] || { echo "usage: ${0##*/} DIR" >&2; exit 2; }
lab_open "$1"
k() { "${IN[@]}" "$KUBECTL" --kubeconfig "$LAB/admin.kubeconfig" "$@"; }
M=$API_ROOT/manifests

k apply -f "$M/namespace.yaml" -f "$M/crds" >/dev/null
k wait --for=condition=Established --timeout=60s -f "$M/crds" >/dev/null
k apply -f "$M/rbac" -f "$M/admission" >/dev/null

# ---- a new policy acts about 0.7 s after it was applied: ask until each of them refuses ----
EDGE=/apis/edge.galactic.datumapis.com/v1alpha1/namespaces/$API_NAMESPACE
MASQ=/apis/masque.galactic.datumapis.com/v1alpha1/namespaces/$API_NAMESPACE
U=00000000-0000-4000-8000-000000000000
H='"metadata":{"name":"probe.probe","namespace":"holdfast-system"}'
SERVICE='{"apiVersion":"edge.galactic.datumapis.com/v1alpha1","kind":"ProviderService",'$H',"spec":{"provider":"probe","tenant":"probe","vpc":"probe","allowedPrefix":"fd00::/64","validUntil":"2999-01-01T00:00:00Z"}}'
INSTANCE='{"apiVersion":"edge.galactic.datumapis.com/v1alpha1","kind":"ProviderInstance",'$H',"spec":{"provider":"probe","nodeName":"probe","nodeUID":"'$U'","processID":"'$U'","epoch":1,"leaseDurationSeconds":10,"renew":{"bootID":"'$U'","bootTimeMicros":1,"time":"2026-01-01T00:00:00Z"}}}'
BINDING='{"apiVersion":"masque.galactic.datumapis.com/v1alpha1","kind":"ConnectorBinding",'$H',"spec":{"tenant":"probe","connector":"probe","vpc":"probe","serviceName":"probe","identities":[{"user":"probe"}]}}'
CLAIM='{"apiVersion":"edge.galactic.datumapis.com/v1alpha1","kind":"RouteClaim","metadata":{"name":"rc-fd0000000000000000000001"},"spec":{"provider":"probe","prefix":"fd00::1:0:0/96","tenant":"probe","vpc":"probe","connector":"probe","serviceRef":{"name":"probe","uid":"'$U'"},"leaseUUID":"'$U'","epoch":1,"holder":{"instance":"probe.probe","instanceUID":"'$U'","instanceEpoch":1,"processID":"'$U'","node":"probe","bootID":"'$U'"},"attachmentRef":{"name":"probe","uid":"'$U'"},"acquireTime":"2026-01-01T00:00:00Z","leaseDurationSeconds":10,"maxLeaseDurationSeconds":10,"correlationID":"00000000000000000000000000000000"}}'
POOL=${SERVICE//probe.probe/holdfast-install-probe}
POOL=${POOL//2999-/2000-}
CLAIM=${CLAIM//\"name\":\"probe\",\"uid\"/\"name\":\"holdfast-install-probe\",\"uid\"}
# refused NAME USER PATH BODY: USER is a service account, or - for the administrator; acts with all RBAC rights, so that only
# a policy can refuse. Nothing is written (dryRun).
refused() {
    local as=() code
    [ "$2" = - ] || as=(-H "Impersonate-User: system:serviceaccount:$API_NAMESPACE:$2" -H "Impersonate-Group: system:masters")
    code=$("${IN[@]}" curl -s -m 10 --cacert "$LAB/pki/ca.crt" --cert "$LAB/pki/admin.crt" --key "$LAB/pki/admin.key" "${as[@]}" \
        -H 'Content-Type: application/json' --data-binary "$4" -o "$LAB/probe.last" -w '%{http_code}' \
        "$APISERVER_URL$3?dryRun=All&fieldValidation=Strict" || true)
    [ "$code" -ge 400 ] && grep -q "ValidatingAdmissionPolicy '$1'" "$LAB/probe.last"
}
# The pool policy looks at existing services only: a short-lived one that nobody may use.
k apply -f - <<<"$POOL" >/dev/null
k_probe() { k -n "$API_NAMESPACE" delete providerservices.edge.galactic.datumapis.com holdfast-install-probe --ignore-not-found >/dev/null; }
trap k_probe EXIT
for ((i = 0; ; i++)); do
    late=
    refused holdfast-agent-writes holdfast-agent "$EDGE/providerinstances" "$INSTANCE" || late+=" holdfast-agent-writes"
    refused holdfast-agent-bindings holdfast-agent "$MASQ/connectorbindings" "$BINDING" || late+=" holdfast-agent-bindings"
    refused holdfast-foundation-writes holdfast-foundation "$EDGE/providerinstances" "$INSTANCE" || late+=" holdfast-foundation-writes"
    refused holdfast-service-valid-until - "$EDGE/providerservices" "$SERVICE" || late+=" holdfast-service-valid-until"
    refused holdfast-claim-pool - "$EDGE/routeclaims" "$CLAIM" || late+=" holdfast-claim-pool"
    # The policies without a probe (rows being deleted, operators) were applied before the last one of these and come with it.
    [ -n "$late" ] || break
    [ "$i" -lt 300 ] || { cat "$LAB/probe.last" >&2; die "these policies refuse nothing after 30 s:$late"; }
    sleep 0.1
done
rm -f "$LAB/probe.last"
say "CRDs, roles and admission policies act"
