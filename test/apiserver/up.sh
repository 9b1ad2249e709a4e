#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# up.sh DIR: starts one etcd and one kube-apiserver for tests, with TLS, Node and RBAC authorization, the default admission
# plug-ins and an audit log, and waits until the server is ready (3 to 6 s). All state is in DIR. Prints progress on stderr only.
# Nothing here is safe for production (etcd does not fsync). down.sh DIR ends both.
#
# Environment, all optional:
#   APISERVER_BIND         address to listen on (127.0.0.1); IPv6 without brackets; 0.0.0.0 or :: for all
#   APISERVER_HOST         address that the kubeconfigs name (APISERVER_BIND; the loopback address when that is a wildcard)
#   APISERVER_PORT         port (a free one)
#   APISERVER_SAN          more names for the certificate, in openssl's form: IP:fd00:c::1,DNS:api.lab
#   APISERVER_NETNS        network namespace (a name of `ip netns`, or a path) for both processes; its lo must be up
#   APISERVER_JOIN         the DIR of a running lab: use its etcd, keys and certificate authority (a second server of one cluster)
#   APISERVER_ETCD_PREFIX  etcd key prefix (/registry); another one with APISERVER_JOIN is a cluster of its own on that etcd
#   APISERVER_FLAGS        more flags for kube-apiserver, separated by blanks
#
# Leaves in DIR: admin.kubeconfig, ca.crt, env (shell variables, to be sourced), audit.log, apiserver.log, etcd.log, pki/,
# apiserver.pid, etcd.pid. The audit log has one JSON line per finished request, level Metadata.
set -euo pipefail
# shellcheck source=test/apiserver/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# = 1 ] && [ -n "$1" ] && [[ $1 != -* ]] || { sed -n '3,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
BIND=${APISERVER_BIND:-127.0.0.1}
case $BIND in 0.0.0.0) HOST=127.0.0.1 ;; ::) HOST=::1 ;; *) HOST=$BIND ;; esac
HOST=${APISERVER_HOST:-$HOST}
PREFIX=${APISERVER_ETCD_PREFIX:-/registry}
JOIN=${APISERVER_JOIN:-}
[[ -z "${APISERVER_PORT:-}" || $APISERVER_PORT =~ ^[0-9]+$ ]] || die "APISERVER_PORT is '$APISERVER_PORT': a port number is needed"

enter_netns "${APISERVER_NETNS:-}"
BIN=$("$API_HERE/build.sh")
mkdir -p "$1"
LAB=$(cd "$1" && pwd)
[ -z "$JOIN" ] || JOIN=$(lab_dir "$JOIN")
[ "$JOIN" != "$LAB" ] || die "APISERVER_JOIN names the lab itself"

# An interrupted start leaves nothing running and can be repeated at once.
"$API_HERE/down.sh" "$LAB"
cd "$LAB"
umask 077
READY=
STARTED=()
finish() {
    local rc=$?
    trap - EXIT INT TERM
    if [ -z "$READY" ]; then
        [ ${#STARTED[@]} = 0 ] || kill -KILL "${STARTED[@]}" 2>/dev/null || true # also what has not yet reached its exec
        "$API_HERE/down.sh" "$LAB" || true
    fi
    exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- keys and certificates (P-256: milliseconds instead of seconds) ----
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1" 2>/dev/null; }
leaf() { # NAME SUBJECT EXTENSIONS
    key "pki/$1.key"
    openssl req -new -key "pki/$1.key" -subj "$2" -out "pki/$1.csr" 2>/dev/null
    openssl x509 -req -in "pki/$1.csr" -CA pki/ca.crt -CAkey pki/ca.key -set_serial "0x$(openssl rand -hex 8)" -days 30 -sha256 \
        -extfile <(printf '%s\n' "$3") -out "pki/$1.crt" 2>/dev/null
    rm -f "pki/$1.csr"
}
mkdir -p pki
if [ -n "$JOIN" ]; then
    cp "$JOIN"/pki/{ca.crt,ca.key,sa.key,sa.pub,admin.crt,admin.key} pki/
elif [ ! -s pki/done ]; then
    key pki/ca.key
    openssl req -x509 -new -key pki/ca.key -sha256 -days 30 -subj /CN=holdfast-test-ca -out pki/ca.crt \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign 2>/dev/null
    leaf admin /O=system:masters/CN=lab-admin extendedKeyUsage=clientAuth
    key pki/sa.key
    openssl ec -in pki/sa.key -pubout -out pki/sa.pub 2>/dev/null
    touch pki/done
fi
san=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:::1,IP:10.96.0.1
for a in "$BIND" "$HOST"; do
    if [[ $a == *:* || $a =~ ^[0-9.]+$ ]]; then san+=,IP:$a; else san+=,DNS:$a; fi
done
leaf server /CN=kube-apiserver "subjectAltName=$san${APISERVER_SAN:+,$APISERVER_SAN}
extendedKeyUsage=serverAuth"
install -m 0644 pki/ca.crt ca.crt

cat >audit.yaml <<'Y'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ["/readyz*", "/livez*", "/healthz*", "/metrics"]}
- {level: None, users: ["system:apiserver"]}
- {level: Metadata}
Y

# ---- starting a process on a free port: chosen at random, another one when somebody was faster ----
free_port() {
    local p
    while :; do
        p=$((20000 + (RANDOM << 15 | RANDOM) % 12000)) # below the ephemeral range
        if ! "${IN[@]}" ss -Hltn "sport = :$p" | grep . >/dev/null; then printf '%s\n' "$p"; return; fi
    done
}
# taken LOG: did the process end since its port was in use?
taken() { grep -qsiE 'address already in use' "$1"; }
start_ms() { T0=$(date +%s%3N); }
ms() { printf '%s' $(($(date +%s%3N) - T0)); }

start_etcd() {
    local client peer i try
    for try in 1 2 3 4 5; do
        client=$(free_port); peer=$(free_port)
        ETCD_URL=http://127.0.0.1:$client
        rm -rf etcd-data
        GOMAXPROCS=2 setsid "${IN[@]}" "$BIN/etcd" --name lab --data-dir "$LAB/etcd-data" --unsafe-no-fsync \
            --listen-client-urls "$ETCD_URL" --advertise-client-urls "$ETCD_URL" \
            --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
            --initial-cluster "lab=http://127.0.0.1:$peer" --heartbeat-interval 50 --election-timeout 300 \
            --log-level warn </dev/null >etcd.log 2>&1 &
        STARTED+=($!)
        echo $! >etcd.pid
        disown
        for ((i = 0; i < 1000; i++)); do
            if "${IN[@]}" curl -fs -m 1 "$ETCD_URL/health" >/dev/null 2>&1; then return; fi
            kill -0 "$(<etcd.pid)" 2>/dev/null || break
            sleep 0.02
        done
        taken etcd.log || { tail -n 5 etcd.log >&2; die "etcd did not become healthy, see $LAB/etcd.log"; }
        say "port taken by somebody else, trying others (attempt $try)"
    done
    die "no free port for etcd"
}

url_of() { if [[ $1 == *:* ]]; then printf 'https://[%s]:%s' "$1" "$2"; else printf 'https://%s:%s' "$1" "$2"; fi; }

start_apiserver() {
    local i try code flags
    for try in 1 2 3 4 5; do
        PORT=${APISERVER_PORT:-$(free_port)}
        URL=$(url_of "$HOST" "$PORT")
        flags=(--etcd-servers="$ETCD_URL" --etcd-prefix="$PREFIX" --bind-address="$BIND" --secure-port="$PORT" --advertise-address=127.0.0.1
            --tls-cert-file="$LAB/pki/server.crt" --tls-private-key-file="$LAB/pki/server.key" --client-ca-file="$LAB/pki/ca.crt"
            --authorization-mode=Node,RBAC --service-cluster-ip-range=10.96.0.0/16 --endpoint-reconciler-type=none
            --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$LAB/pki/sa.pub"
            --service-account-signing-key-file="$LAB/pki/sa.key" --api-audiences=https://kubernetes.default.svc
            --audit-policy-file="$LAB/audit.yaml" --audit-log-path="$LAB/audit.log" --audit-log-mode=blocking
            --etcd-compaction-interval=0 --etcd-count-metric-poll-period=0 --etcd-db-metric-poll-interval=0 --profiling=false)
        # shellcheck disable=SC2086 # flags separated by blanks
        setsid "${IN[@]}" "$BIN/kube-apiserver" "${flags[@]}" ${APISERVER_FLAGS:-} </dev/null >apiserver.log 2>&1 &
        STARTED+=($!)
        echo $! >apiserver.pid
        disown
        for ((i = 0; i < 1500; i++)); do # 90 s on a very busy machine
            kill -0 "$(<apiserver.pid)" 2>/dev/null || break
            code=$("${IN[@]}" curl -s -m 2 --cacert pki/ca.crt --cert pki/admin.crt --key pki/admin.key -o readyz.last \
                -w '%{http_code}' "$URL/readyz?verbose" || true)
            if [ "$code" = 200 ]; then return; fi
            sleep 0.06
        done
        if kill -0 "$(<apiserver.pid)" 2>/dev/null; then
            grep -F '[-]' readyz.last >&2 || true
            die "kube-apiserver is not ready after 90 s (last answer ${code:-none}), see $LAB/apiserver.log"
        fi
        taken apiserver.log && [ -z "${APISERVER_PORT:-}" ] || { tail -n 5 apiserver.log >&2; die "kube-apiserver ended, see $LAB/apiserver.log"; }
        say "port $PORT taken by somebody else, trying another one (attempt $try)"
    done
    die "no free port for kube-apiserver"
}

kubeconfig() { # FILE USER CERTIFICATE KEY
    cat >"$1" <<Y
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "$URL", certificate-authority: "$LAB/ca.crt"}}]
users: [{name: $2, user: {client-certificate: "$3", client-key: "$4"}}]
contexts: [{name: lab, context: {cluster: lab, user: $2, namespace: $API_NAMESPACE}}]
current-context: lab
Y
}

start_ms
rm -f etcd.log apiserver.log audit.log readyz.last
if [ -n "$JOIN" ]; then
    # shellcheck disable=SC1091 # written by up.sh there
    ETCD_URL=$(. "$JOIN/env" && printf '%s' "$ETCD_URL")
else
    start_etcd
    say "etcd is healthy after $(ms) ms"
fi
start_apiserver
kubeconfig admin.kubeconfig admin "$LAB/pki/admin.crt" "$LAB/pki/admin.key"
{
    printf '%s=%q\n' APISERVER_DIR "$LAB" APISERVER_URL "$URL" APISERVER_CA "$LAB/ca.crt" APISERVER_PID "$(<apiserver.pid)" \
        APISERVER_PORT "$PORT" APISERVER_NETNS "${APISERVER_NETNS:-}" APISERVER_BIN "$BIN" APISERVER_AUDIT_LOG "$LAB/audit.log" \
        ETCD_URL "$ETCD_URL" ETCD_PID "$(cat etcd.pid 2>/dev/null || true)" KUBECTL "$BIN/kubectl" KUBECONFIG "$LAB/admin.kubeconfig"
} >env.new
mv env.new env
READY=1
say "$URL is ready after $(ms) ms"
