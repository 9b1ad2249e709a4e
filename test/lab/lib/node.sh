# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What lies on a lab node and what runs there; sourced. A node's files are in nodes/NODE; processes of the agent see them
# under NODE_VIEW, in a private mount (node-run), so that uid 65532 needs no way through the folders above.

NODE_VIEW=$LAB_RUN/node
AGENT_UID=65532
BIN=${HOLDFAST_BIN:-$LAB_ROOT/build/bin}
CONNECTOR=${HOLDFAST_CONNECTOR:-$LAB_ROOT/build/peers/holdfast-connector}
PROBE=$BIN/holdfast-probe
PROXY=$LAB_ROOT/build/peers/holdfast-apiproxy

node_dirs() {
    local n
    for n in edge1 edge2; do
        mkdir -p "$LAB_DIR/nodes/$n"/{etc/tls,audit,bpf}
        chown -R "$AGENT_UID:$AGENT_UID" "$LAB_DIR/nodes/$n/audit"
        chmod 700 "$LAB_DIR/nodes/$n/audit"
        # The foundation's pinned maps outlive its process, so the file system is not part of the private mount.
        mount -t bpf "hf$LAB_ID" "$LAB_DIR/nodes/$n/bpf"
        cat /proc/sys/kernel/random/uuid >"$LAB_DIR/nodes/$n/boot_id"
    done
}

node_unmount() {
    local n
    for n in edge1 edge2; do
        ! mountpoint -q "$LAB_DIR/nodes/$n/bpf" || umount "$LAB_DIR/nodes/$n/bpf"
    done
}

# BIRD: the edges announce what the foundation puts into kernel table 200, the VPC's router installs it; its own packets to
# connectors have the VPC host's address.
node_bird_configs() {
    local i bird=$LAB_ROOT/test/foundation/bird.sh
    for i in 1 2; do
        mkdir -p "$LAB_DIR/nodes/edge$i"
        { printf 'log "%s" all;\n' "$LAB_DIR/log/edge$i.bird-messages.log"
          "$bird" edge "10.0.0.$i" "fd00:b:$i::1" "6500$i" "fd00:b:$i::2" 65000; } >"$LAB_DIR/nodes/edge$i/bird.conf"
    done
    mkdir -p "$LAB_DIR/nodes/vpc"
    { printf 'log "%s" all;\n' "$LAB_DIR/log/vpc.bird-messages.log"
      "$bird" peer 10.0.0.9 65000 fd00:b:1::1/65001 fd00:b:2::1/65002 |
          sed "s|^protocol kernel .*|protocol kernel { scan time 10; ipv6 { import none; export filter { krt_prefsrc = $VPC_HOST; accept; }; }; }|"; } \
        >"$LAB_DIR/nodes/vpc/bird.conf"
}

# node_api NODE [foundation]: the URL by which a node reaches the API server.
node_api() {
    if [ "${2:-}" = foundation ] && [ -n "${LAB_TWO_APIS:-}" ]; then
        printf 'https://[%s]:6443' "$API2_ADDR"
    elif [ -n "${LAB_PROXY:-}" ]; then printf 'https://[fd00:a::1%s]:6443' "${1#edge}"; else printf 'https://[%s]:6443' "$API_ADDR"; fi
}

node_kubeconfig() { # FILE NODE CA-FILE TOKEN-FILE [foundation]
    cat >"$1" <<X
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "$(node_api "$2" "${5:-}")", certificate-authority: "$3"}}]
users: [{name: node, user: {tokenFile: "$4"}}]
contexts: [{name: lab, context: {cluster: lab, user: node, namespace: $LAB_NAMESPACE}}]
current-context: lab
X
}

# Configuration, keys and credentials of both edges.
node_files() {
    local n e
    for n in edge1 edge2; do
        e=$LAB_DIR/nodes/$n/etc
        cp "$LAB_DIR/api/ca.crt" "$e/api-ca.crt"
        cp "$LAB_DIR/api/tokens/agent-$n" "$e/token"
        node_kubeconfig "$e/kubeconfig" "$n" "$NODE_VIEW/etc/api-ca.crt" "$NODE_VIEW/etc/token"
        node_kubeconfig "$LAB_DIR/nodes/$n/foundation.kubeconfig" "$n" "$LAB_DIR/api/ca.crt" "$LAB_DIR/api/tokens/foundation-$n" foundation
        cp "$LAB_DIR/pki/$n.crt" "$e/tls/tls.crt"
        cp "$LAB_DIR/pki/$n.key" "$e/tls/tls.key"
        cp "$LAB_DIR/pki/client-ca.crt" "$e/tls/client-ca.crt"
        node_agent_config "$n"
        chown -R "root:$AGENT_UID" "$e"
        chmod -R u=rwX,g=rX,o= "$e"
    done
}

node_start_proxy() {
    [ -x "$PROXY" ] || die "$PROXY is missing (run 'make peers')"
    local other=()
    [ ! -d "$LAB_DIR/api2" ] || other=(-other "https://[$API2_ADDR]:6443")
    proc_start api "proxy-$1" "$PROXY" "${other[@]}" -listen "[fd00:a::1${1#edge}]:6443" -to "https://[$API_ADDR]:6443" -ca "$LAB_DIR/api/ca.crt" \
        -cert "$LAB_DIR/api/pki/server.crt" -key "$LAB_DIR/api/pki/server.key" -control "$(node_proxy_socket "$1")"
}

# A unix socket's path is short: it lies beside the labs' list, not in a folder of any depth.
node_proxy_socket() { printf '%s/%s-%s.sock' "$LAB_RUN" "$LAB_ID" "$1"; }

node_proxy_rules() { # NODE RULE...
    local sock
    sock=$(node_proxy_socket "$1")
    shift
    [ -S "$sock" ] || die "this lab has no proxies (start it with 'lab up --proxy')"
    printf '%s\n' "$@" | curl -sS --fail-with-body --unix-socket "$sock" http://proxy/rules --data-binary @- ||
        die "the proxy refused the rules"
}

# The one place where the lab's agent configuration is written: agent.yaml.in with the node's values.
node_agent_config() {
    sed -e "s|@NODE@|$1|g" -e "s|@ETC@|$NODE_VIEW/etc|g" -e "s|@AUDIT@|$NODE_VIEW/audit|g" \
        -e "s|@UNDERLAY@|$(underlay_addr "$1")|g" -e "s|@NAMESPACE@|$LAB_NAMESPACE|g" \
        -e "s|@LEASE@|$LAB_LEASE|g" -e "s|@THREADS@|$LAB_THREADS|g" "$LAB_HERE/agent.yaml.in" >"$LAB_DIR/nodes/$1/etc/agent.yaml"
}

# node_service NAME [TENANT]: the operator's ProviderService; the lab authority moves its validUntil on.
node_service() {
    sed -e "s|@NAME@|$1|g" -e "s|@TENANT@|${2:-acme}|g" -e "s|@POOL@|$POOL|g" -e "s|@DESTINATIONS@|$VPC_NET|g" \
        -e "s|@VALID_UNTIL@|$(date -u -d '+290 seconds' +%Y-%m-%dT%H:%M:%SZ)|g" "$LAB_HERE/objects/service.yaml.in" |
        lab_kubectl authority apply -f - >/dev/null
}

# node_binding TENANT CONNECTOR [SERVICE]: the operator's ConnectorBinding for the certificate identity spiffe://TENANT/CONNECTOR.
node_binding() {
    sed -e "s|@TENANT@|$1|g" -e "s|@CONNECTOR@|$2|g" -e "s|@SERVICE@|${3:-svc-a}|g" "$LAB_HERE/objects/binding.yaml.in" |
        lab_kubectl operator apply -f - >/dev/null
}

# node_start_agent NODE [ARG...]: LAB_AGENT_NAME starts a second one, under that name and with the configuration NAME.yaml (see
# node_second_agent); LAB_AGENT_WRAP is a command that gets the rest as its arguments (a time namespace, a tracer).
node_start_agent() {
    local n=$1 name=${LAB_AGENT_NAME:-agent}
    shift
    [ -x "$BIN/holdfast-agent" ] || die "$BIN/holdfast-agent is missing (run 'make')"
    [ "$name" = agent ] || node_second_agent "$n" "$name"
    # shellcheck disable=SC2086 # see above
    proc_start "$n" "$name" "$LAB_HERE/node-run" "$LAB_DIR/nodes/$n" "$BIN" "$NODE_VIEW" ${LAB_AGENT_WRAP:-} \
        setpriv --reuid "$AGENT_UID" --regid "$AGENT_UID" --clear-groups --no-new-privs --inh-caps=-all --ambient-caps=-all --bounding-set=-all \
        env -i PATH=/usr/bin:/bin "ASAN_OPTIONS=${ASAN_OPTIONS:-}" "UBSAN_OPTIONS=${UBSAN_OPTIONS:-}" "TSAN_OPTIONS=${TSAN_OPTIONS:-}" \
        "HOLDFAST_MUTANT=${MUTANT_AGENT:-}" \
        "NODE_NAME=$n" "POD_NAMESPACE=$LAB_NAMESPACE" \
        "$NODE_VIEW/bin/holdfast-agent" --config "$NODE_VIEW/etc/$name.yaml" "$@"
}

# Configuration of another process of the same instance on the same node: only ports and audit folder are its own, a hundred up.
node_second_agent() { # NODE NAME
    local e=$LAB_DIR/nodes/$1/etc
    mkdir -p "$LAB_DIR/nodes/$1/audit/$2"
    chown "$AGENT_UID:$AGENT_UID" "$LAB_DIR/nodes/$1/audit/$2"
    chmod 700 "$LAB_DIR/nodes/$1/audit/$2"
    sed -e 's/\]:4433/]:4533/; s/\]:9780/]:9880/; s/\]:9781/]:9881/' -e "s|directory: .*|&/$2|" "$e/agent.yaml" >"$e/$2.yaml"
    chown "root:$AGENT_UID" "$e/$2.yaml"
    chmod 640 "$e/$2.yaml"
}

node_start_foundation() {
    local n=$1
    shift
    [ -x "$BIN/holdfast-foundation" ] || die "$BIN/holdfast-foundation is missing (run 'make')"
    # The foundation of edge1 also plays the authority that keeps the services valid.
    [ "$n" != edge1 ] || set -- --authority-kubeconfig "$LAB_DIR/api/authority.kubeconfig" "$@"
    # The node's boot id lies over the kernel's, as in node-run.
    # shellcheck disable=SC2016
    proc_start "$n" foundation unshare --mount -- sh -c 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"' "$LAB_DIR/nodes/$n/boot_id" \
        env "HOLDFAST_MUTANT=${MUTANT_FOUNDATION:-}" "$BIN/holdfast-foundation" --kubeconfig "$LAB_DIR/nodes/$n/foundation.kubeconfig" --node "$n" \
        --bpffs "$LAB_DIR/nodes/$n/bpf" --lock "$LAB_DIR/run/foundation-$n.lock" --lease-seconds "$LAB_LEASE" "$@"
}

# node_wipe NODE: what a kernel forgets, of agent and foundation.
node_wipe() {
    local d
    for d in $(in_ns "$1" ip -o link show | awk -F': ' '$2 ~ /^hf........$/ {print $2}'); do in_ns "$1" ip link del "$d"; done
    in_ns "$1" ip -6 route flush table 200 2>/dev/null || true
    in_ns "$1" nft delete table inet holdfast_gate 2>/dev/null || true
    umount "$LAB_DIR/nodes/$1/bpf"
    mount -t bpf "hf$LAB_ID" "$LAB_DIR/nodes/$1/bpf"
}

# node_objects_gone: no object of the contract is left; their foundations must not run.
node_objects_gone() {
    local kinds=routeclaims,providerinstances,hostattachments,providerservices,connectorbindings left
    left=$(lab_kubectl admin get $kinds -o json)
    jq -e '[.items[] | select(.metadata.finalizers)] == []' >/dev/null <<<"$left" ||
        jq '.items |= map(select(.metadata.finalizers) | del(.metadata.finalizers))' <<<"$left" | lab_kubectl admin replace -f - >/dev/null
    lab_kubectl admin delete $kinds --all --wait=false >/dev/null
    [ "$(lab_kubectl admin get $kinds -o name)" = '' ] || die "objects are left: $(lab_kubectl admin get $kinds -o name | tr '\n' ' ')"
}

# Power failure and the next boot: everything that runs on the node ends at once, what a kernel forgets is gone, the boot id is
# another one; its files are still there. BIRD is up again, foundation and agent are not.
node_reboot() { # NODE
    local n=$1 d
    net_kill_rest "$n"
    node_wipe "$n"
    cat /proc/sys/kernel/random/uuid >"$LAB_DIR/nodes/$n/boot_id"
    for ((d = 0; d < 500; d++)); do # its supervisor has to see the end first
        proc_pid "$n" bird >/dev/null || [ ! -s "$(proc_file "$n" bird).rc" ] || break
        sleep 0.01
    done
    proc_start "$n" bird "$LAB_BIRD" -f -c "$LAB_DIR/nodes/$n/bird.conf" -s "$LAB_DIR/nodes/$n/bird.ctl"
}

# node_start_connector NODE SITE [ARG...]: the connector with the certificate of that name; its TUN is hfc0.
node_start_connector() {
    local node=$1 site=${2:?lab start DIR connector client SITE: the name of a certificate in pki/} p=$LAB_DIR/pki
    shift 2
    [ -s "$p/$site.crt" ] || die "no certificate '$site' in $p"
    [ -x "$CONNECTOR" ] || die "$CONNECTOR is missing (run 'make peers')"
    proc_start "$node" connector "$CONNECTOR" -edges "edge1=[$(underlay_addr edge1)]:4433,edge2=[$(underlay_addr edge2)]:4433" \
        -ca "$p/edge-ca.crt" -cert "$p/$site.crt" -key "$p/$site.key" "$@"
}

# node_wait_connector CLIENT SECONDS: the connector's last word is that it is connected.
node_wait_connector() {
    local log=$LAB_DIR/log/$1.connector.log last='' i
    for ((i = 0; i < $2 * 20; i++)); do
        last=$(grep -E '"event":"(connected|closed|refused|failed|stopped)"' "$log" 2>/dev/null | tail -n 1) || true
        if [[ $last == *'"event":"connected"'* ]]; then
            printf '%s\n' "$last"
            return
        fi
        sleep 0.05
    done
    die "the connector on $1 has no session after $2 s; its last word: ${last:-none}"
}
