#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nodes.sh DIR NODE...: makes Node objects and, on each, one agent pod and one foundation pod (assigned directly: there is no
# scheduler and no kubelet), so that their tokens carry the node's name and UID as on a real cluster. Writes
#   DIR/tokens/{agent-NODE,foundation-NODE,authority,nopod,nopod-foundation}   bearer tokens (token.sh renews one)
#   DIR/operator.kubeconfig    client certificate of a user in the group holdfast:operators
#   DIR/agent-NODE.kubeconfig, DIR/foundation-NODE.kubeconfig, DIR/authority.kubeconfig   with tokenFile
# Needs up.sh and install.sh first; may be repeated, also with more nodes.
set -euo pipefail
# shellcheck source=test/apiserver/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -ge 2 ] || { echo "usage: ${0##*/} DIR NODE..." >&2; exit 2; }
lab_open "$1"
shift
umask 077

names=(authority nopod nopod-foundation)
objects=
for node in "$@"; do
    [[ $node =~ ^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$ ]] || die "'$node' is no node name"
    names+=("agent-$node" "foundation-$node")
    objects+="---
apiVersion: v1
kind: Node
metadata: {name: $node}
"
    for role in agent foundation; do
        objects+="---
apiVersion: v1
kind: Pod
metadata: {name: holdfast-$role-$node, namespace: $API_NAMESPACE}
spec: {nodeName: $node, serviceAccountName: holdfast-$role, automountServiceAccountToken: false, containers: [{name: main, image: none}]}
"
    done
done
"${IN[@]}" "$KUBECTL" --kubeconfig "$LAB/admin.kubeconfig" apply -f - <<<"$objects" >/dev/null
"$API_HERE/token.sh" "$LAB" "${names[@]}"

kubeconfig() { # NAME CREDENTIAL
    cat >"$LAB/$1.kubeconfig" <<Y
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "$APISERVER_URL", certificate-authority: "$LAB/ca.crt"}}]
users: [{name: $1, user: {$2}}]
contexts: [{name: lab, context: {cluster: lab, user: $1, namespace: $API_NAMESPACE}}]
current-context: lab
Y
}
for name in "${names[@]}"; do
    [[ $name == nopod* ]] || kubeconfig "$name" "tokenFile: \"$LAB/tokens/$name\""
done
cd "$LAB"
openssl ecparam -name prime256v1 -genkey -noout -out pki/operator.key 2>/dev/null
openssl req -new -key pki/operator.key -subj /O=holdfast:operators/CN=olga -out pki/operator.csr 2>/dev/null
openssl x509 -req -in pki/operator.csr -CA pki/ca.crt -CAkey pki/ca.key -set_serial "0x$(openssl rand -hex 8)" -days 30 -sha256 \
    -extfile <(echo extendedKeyUsage=clientAuth) -out pki/operator.crt 2>/dev/null
rm -f pki/operator.csr
kubeconfig operator "client-certificate: \"$LAB/pki/operator.crt\", client-key: \"$LAB/pki/operator.key\""
say "nodes $*: pods, tokens and kubeconfigs are in $LAB"
