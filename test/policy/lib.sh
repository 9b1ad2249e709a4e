# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of the policy; sourced after test/lab/scenarios/lib.sh. A lab with agents that ask: bearer tokens by
# TokenReview, and a webhook (test/peers/webhook) in the API server's namespace, on [fd00:a::10]:8443.
# shellcheck disable=SC2154 # root, D, LAB come from the scenarios' library

WEBHOOK=$root/build/peers/holdfast-webhook
HOOK_SOCK='' # set by hook_start; its name is the lab's, so that `lab down` removes it, whatever happened
AGENT_LOG=$D/log/edge1.agent.log
ETC=$D/nodes/edge1/etc

# hook_keys: a CA, the service's certificate, one for each agent, and one of a CA that nobody trusts.
hook_keys() {
    local p=$D/hook n
    mkdir -p "$p"
    (
        cd "$p"
        umask 077
        ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.crt" -days 2 -subj "/CN=$1" -addext basicConstraints=critical,CA:TRUE; }
        leaf() { # NAME CA USAGE [SAN]
            openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1"
            printf 'extendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}" >"$1.ext"
            openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -set_serial "0x$(openssl rand -hex 8)" -days 2 -extfile "$1.ext" -out "$1.crt"
        }
        ca hook-ca && ca other-ca && leaf server hook-ca serverAuth IP:fd00:a::10 && leaf stranger other-ca clientAuth
        leaf foreign-server other-ca serverAuth IP:fd00:a::10
        for n in edge1 edge2; do leaf $n hook-ca clientAuth; done
    ) >"$D/hook.log" 2>&1 || { cat "$D/hook.log"; return 1; }
    for n in edge1 edge2; do
        mkdir -p "$D/nodes/$n/etc/webhook"
        install -m 640 -g 65532 "$p/hook-ca.crt" "$D/nodes/$n/etc/webhook/ca.crt"
        hook_client_key "$n" "$n"
    done
}
hook_client_key() { # NODE NAME: the certificate of that name becomes the node's, as Kubernetes replaces a secret's files
    local d=$D/nodes/$1/etc/webhook f
    for f in crt key; do
        install -m 640 -g 65532 "$D/hook/$2.$f" "$d/.new"
        mv "$d/.new" "$d/tls.$f"
    done
    chgrp -R 65532 "$d"
    chmod 750 "$d"
}
hook_start() { # [ARG...]
    HOOK_SOCK=/run/holdfast-lab/$(sed -n 's/^LAB_ID=//p' "$D/lab.env")-hook.sock
    rm -f "$HOOK_SOCK" # of one that was killed: it is there, and nobody answers
    "$LAB" run "$D" api webhook "$WEBHOOK" -listen '[fd00:a::10]:8443' -control "$HOOK_SOCK" -client-ca "$D/hook/hook-ca.crt" \
        -cert "$D/hook/server.crt" -key "$D/hook/server.key" "$@"
    eventually 5 hook log >/dev/null
}
hook() { # rules LINE... | down | up | log
    local what=$1
    shift
    case $what in
    rules) printf '%s\n' "$@" | curl -sS --fail-with-body --unix-socket "$HOOK_SOCK" http://hook/rules --data-binary @- ;;
    log) curl -sS --fail-with-body --unix-socket "$HOOK_SOCK" http://hook/log ;;
    *) curl -sS --fail-with-body --unix-socket "$HOOK_SOCK" -X POST "http://hook/$what" ;;
    esac
}

# policy_config NODE POLICY BEARER [SED]: the node's agent asks so; grants of 6 s, so that what has to end ends soon.
policy_config() {
    local n=$1 etc=/run/holdfast-lab/node/etc hook=''
    [ "$2" != webhook ] || hook="\\n  webhookURL: https://[fd00:a::10]:8443/holdfast\\n  webhookCAFile: $etc/webhook/ca.crt\\n  webhookCertFile: $etc/webhook/tls.crt\\n  webhookKeyFile: $etc/webhook/tls.key\\n  timeoutMilliseconds: 1000"
    sed -e "s|^  policy: .*|  policy: $2\\n  bearerTokens: $3\\n  grantSeconds: 6$hook|" "$D/nodes/$n/agent.yaml.lab" |
        sed -E -e "${4:-}" >"$D/nodes/$n/etc/agent.yaml"
}
policy_save() { local n; for n in edge1 edge2; do cp -p "$D/nodes/$n/etc/agent.yaml" "$D/nodes/$n/agent.yaml.lab"; done; }
restart_agent() { # NODE
    "$LAB" stop "$D" agent "$1" >/dev/null 2>&1 || true # it may not run
    "$LAB" start "$D" agent "$1"
    await 30 ready agent_ready "$1"
}

# binding CONNECTOR [IDENTITY-JSON...] : acme.CONNECTOR with those identities (default: its certificate's URI).
binding() {
    local name=$1 ids
    shift
    [ $# -gt 0 ] || set -- "{\"uri\":\"spiffe://acme/$name\"}"
    ids=$(IFS=,; echo "$*")
    k operator apply -f - >/dev/null <<<"{\"apiVersion\":\"masque.galactic.datumapis.com/v1alpha1\",\"kind\":\"ConnectorBinding\",
        \"metadata\":{\"name\":\"acme.$name\"},\"spec\":{\"tenant\":\"acme\",\"connector\":\"$name\",\"vpc\":\"vpc-a\",\"serviceName\":\"svc-a\",\"identities\":[$ids]}}"
}
account() { # NAME: a ServiceAccount of the tenant's namespace
    k admin -n acme create serviceaccount "$1" >/dev/null
}
token() { # NAME FILE [ARG...]: a fresh token of it for our audience
    local name=$1 file=$2
    shift 2
    [ $# -gt 0 ] || set -- --audience holdfast.masque.galactic.datumapis.com
    (umask 077 && k admin -n acme create token "$name" --duration 3600s "$@" >"$file")
}

# outcome ARG...: one attempt at edge1; prints "connected", "STATUS REASON", or "failed: TEXT".
outcome() {
    local node=client
    [ "${1:-}" != -from ] || { node=$2; shift 2; }
    : >"$D/outcome.log"
    timeout 15 "$LAB" exec "$D" "$node" "$CONNECTOR" -once -explain -tun '' -dial-timeout 6s -edges "${EDGE:-edge1=[fd00:c::1]:4433}" \
        -ca "$D/pki/edge-ca.crt" "$@" >"$D/outcome.log" 2>&1 &
    local pid=$! i last=''
    for ((i = 0; i < 200; i++)); do
        last=$(grep -E '"event":"(connected|refused|failed)"' "$D/outcome.log" | tail -n 1) || true
        [ -z "$last" ] || break
        sleep 0.05
    done
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    jq -r 'if .event == "connected" then "connected" elif .event == "refused" then "\(.status) \(.reason | ltrimstr("reason: "))" else "failed: \(.error)" end' <<<"$last"
}
# gets REGEX ARG...: the attempt's outcome matches.
gets() {
    local re=$1 out
    shift
    out=$(outcome "$@")
    grep -qE -- "$re" <<<"$out" || { printf 'got: %s\nwanted: %s\n' "$out" "$re"; tail -n 3 "$AGENT_LOG" | cut -c1-300; return 1; }
}
cert() { printf -- '-cert %s -key %s' "$D/pki/$1.crt" "$D/pki/$1.key"; }

http() { "$LAB" exec "$D" edge1 curl -gs -m 2 "$@"; }
metric() { http "http://[fd00:c::1]:9781/metrics" | awk -v m="$1" 'index($1, m) == 1 {s += $2} END {print s + 0}'; }
log_says() { grep -E -- "$1" "$AGENT_LOG" || { tail -n 5 "$AGENT_LOG" | cut -c1-300; return 1; }; }
audit_says() { # REGEX: a record of edge1's trail
    cat "$D"/nodes/edge1/audit/*.jsonl | grep -E -- "$1" || { tail -qn 3 "$D"/nodes/edge1/audit/*.jsonl; return 1; }
}
# session CLIENT ARG...: starts the connector with a device there and waits until it has a session.
session() {
    local c=$1
    shift
    : >"$D/log/$c.connector.log"
    "$LAB" run "$D" "$c" connector "$CONNECTOR" -edges "${EDGE:-edge1=[fd00:c::1]:4433}" -ca "$D/pki/edge-ca.crt" "$@"
    "$LAB" wait "$D" connector "$c" 20 >/dev/null
}
session_lives() { "$LAB" wait "$D" connector "$1" 1 >/dev/null && ! grep -q '"event":"closed"' "$D/log/$1.connector.log"; }
session_ended() { grep '"event":"closed"' "$D/log/$1.connector.log"; }
end_session() { "$LAB" stop "$D" connector "$1" >/dev/null || true; }
