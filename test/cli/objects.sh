# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Objects for the tool's tests, written by the administrator; sourced. Times are relative to now, in seconds.

uuid() { printf '%08x-0000-4000-8000-%012x' "$1" "$1"; } # NUMBER
ago() { date -u -d "@$(($(date +%s) - $1))" +%Y-%m-%dT%H:%M:%S.000000Z; } # SECONDS; negative: to come
admin() { "${IN[@]}" "$KUBECTL" --kubeconfig "$DIR/admin.kubeconfig" -n "${NS:-holdfast-system}" "$@"; }
uid_of() { admin get "$1" "$2" -o 'jsonpath={.metadata.uid}'; } # RESOURCE NAME
put() { admin apply -f - >/dev/null; }
# patch_status RESOURCE NAME JSON; patch_spec RESOURCE NAME JSON
patch_status() { local j=$3; [[ $j == *\"status\":{* && $j == {\"status* ]] || j="{\"status\":$j}"; admin patch "$1" "$2" --subresource status --type merge -p "$j" >/dev/null; }
patch_spec() { admin patch "$1" "$2" --type merge -p "$3" >/dev/null; }
cond() { printf '{"type":"%s","status":"%s","reason":"%s","message":"","lastTransitionTime":"%s"}' "$1" "$2" "$3" "$(ago 60)"; }

# instance NODE EPOCH RENEWED-AGO [PROCESS]: a Ready instance.
instance() {
    local p
    p=$(uuid "${4:-$2}")
    jq -n --arg n "$1" --argjson e "$2" --arg t "$(ago "$3")" --arg p "$p" --arg b "$(uuid 99)" --arg u "$(uuid 98)" '
      {apiVersion: "edge.galactic.datumapis.com/v1alpha1", kind: "ProviderInstance", metadata: {name: "masque.\($n)"},
       spec: {provider: "masque", nodeName: $n, nodeUID: $u, processID: $p, epoch: $e, leaseDurationSeconds: 30,
              renew: {bootID: $b, bootTimeMicros: 1, time: $t}, draining: false}}' | put
    patch_status pi "masque.$1" "{\"acceptedEpoch\":$2,\"acceptedProcessID\":\"$p\",\"conditions\":[$(cond Ready True Ready),$(cond Accepted True Accepted)]}"
}
attachment() { # NODE EPOCH
    jq -n --arg n "$1" --argjson e "$2" --arg u "$(uid_of pi "masque.$1")" '
      {apiVersion: "edge.galactic.datumapis.com/v1alpha1", kind: "HostAttachment", metadata: {name: "masque.\($n).vpc-a"},
       spec: {instanceRef: {name: "masque.\($n)", uid: $u, epoch: $e}, vpc: "vpc-a"}}' | put
    patch_status ha "masque.$1.vpc-a" "{\"acceptedInstanceEpoch\":$2,\"device\":\"hf0000000${1: -1}\",\"mtu\":1400,\"conditions\":[$(cond Ready True Ready),$(cond Accepted True Accepted)]}"
}
service() { # VALID-FOR
    jq -n --arg t "$(ago "-$1")" '
      {apiVersion: "edge.galactic.datumapis.com/v1alpha1", kind: "ProviderService", metadata: {name: "svc-a"},
       spec: {provider: "masque", tenant: "acme", vpc: "vpc-a", allowedPrefix: "fd12:0:0:1::/64", destinations: ["fd20::/64"], validUntil: $t, revoked: false}}' | put
}
binding() { # CONNECTOR [INDEX-OF-RESERVATION] [RETENTION] [TENANT]
    local tenant=${4:-acme}
    jq -n --arg c "$1" --arg t "$tenant" --arg r "${3:-}" '
      {apiVersion: "masque.galactic.datumapis.com/v1alpha1", kind: "ConnectorBinding", metadata: {name: "\($t).\($c)"},
       spec: ({tenant: $t, connector: $c, vpc: "vpc-a", serviceName: "svc-a", identities: [{uri: "spiffe://\($t)/\($c)"}]}
              + (if $r == "" then {} else {retentionSeconds: ($r | tonumber)} end))}' | put
    [ -z "${2:-}" ] || patch_status cb "$tenant.$1" "{\"prefix\":\"fd12::1:0:$2:0:0/96\"}"
}
claim_name() { printf 'rc-fd120000000000010000%04x' "0x$1"; } # INDEX (hex digits)
# claim INDEX CONNECTOR NODE EPOCH ACQUIRED-AGO [INSTANCE-EPOCH] [CORRELATION]: held, accepted, gate open. The lease UUID is that of
# the epoch; the epochs before 4 are made one after the other, as the rules want it.
claim() {
    local name e prev='null'
    name=$(claim_name "$1")
    for ((e = 1; e <= $4; e++)); do
        jq -n --arg name "$name" --arg i "$1" --arg c "$2" --arg n "$3" --argjson e "$e" --arg t "$(ago "$5")" --argjson ie "${6:-1}" \
            --arg iu "$(uid_of pi "masque.$3")" --arg au "$(uid_of ha "masque.$3.vpc-a")" --arg su "$(uid_of ps svc-a)" \
            --arg p "$(uuid "${6:-1}")" --arg l "$(uuid $((16#$1 * 100 + e)))" --arg b "$(uuid 99)" --arg id "${7:-0123456789abcdef0123456789abcdef}" --argjson prev "$prev" '
          {apiVersion: "edge.galactic.datumapis.com/v1alpha1", kind: "RouteClaim", metadata: {name: $name},
           spec: ({provider: "masque", prefix: "fd12::1:0:\($i):0:0/96", tenant: "acme", vpc: "vpc-a", connector: $c,
                  serviceRef: {name: "svc-a", uid: $su}, leaseUUID: $l, epoch: $e,
                  holder: {instance: "masque.\($n)", instanceUID: $iu, instanceEpoch: $ie, processID: $p, node: $n, bootID: $b},
                  attachmentRef: {name: "masque.\($n).vpc-a", uid: $au}, acquireTime: $t, leaseDurationSeconds: 30,
                  maxLeaseDurationSeconds: 30, correlationID: $id} + (if $prev == null then {} else {previous: $prev} end))}' | put
        patch_status rclaim "$name" "{\"acceptedEpoch\":$e,\"acceptedLeaseUUID\":\"$(uuid $((16#$1 * 100 + e)))\",
            \"gate\":{\"epoch\":$e,\"state\":\"Open\",\"reason\":\"Opened\",\"since\":\"$(ago "$5")\"},\"publishedEpoch\":$e,\"publishedTime\":\"$(ago "$5")\"}"
        if ((e > 1)); then patch_status rclaim "$name" "{\"closedEpoch\":$((e - 1)),\"closedReason\":\"Confirmed\",\"closedTime\":\"$(ago "$5")\"}"; fi
        prev="{\"node\":\"$3\",\"bootID\":\"$(uuid 99)\",\"epoch\":$e}"
    done
}
# release INDEX AGO: released and closed.
release() {
    local name e
    name=$(claim_name "$1")
    e=$(admin get rclaim "$name" -o 'jsonpath={.spec.epoch}')
    patch_spec rclaim "$name" "{\"spec\":{\"releaseTime\":\"$(ago "$2")\"}}"
    patch_status rclaim "$name" "{\"status\":{\"gate\":{\"epoch\":$e,\"state\":\"Closed\",\"reason\":\"Released\",\"since\":\"$(ago "$2")\"},\"closedEpoch\":$e,\"closedReason\":\"Confirmed\",\"closedTime\":\"$(ago "$2")\"}}"
}
