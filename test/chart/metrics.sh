#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# metrics.sh DIR BIN PROMTOOL: runs an agent on the API server of DIR/api (where the chart is installed), and reads its metrics
# in both formats (DIR/metrics.txt, DIR/metrics.om) and with its authentication (401, 403, 200).
set -euo pipefail
dir=$1 BIN=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
"$root/test/apiserver/nodes.sh" "$dir/api" edge1 >/dev/null
KUBECTL=$("$root/test/apiserver/build.sh")/kubectl
k() { "$KUBECTL" --kubeconfig "$dir/api/admin.kubeconfig" "$@"; }
tls=$dir/tls
mkdir -p "$tls" "$dir/audit"
chmod 700 "$dir/audit"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$tls/tls.key" -out "$tls/tls.crt" -days 3 -subj /CN=edge1 2>/dev/null
cp "$tls/tls.crt" "$tls/client-ca.crt"
port() { # a free one, below the ephemeral range
    local p
    while p=$((20000 + RANDOM % 12000)); do ss -Hlntu "sport = :$p" | grep -q . || { echo "$p"; return; }; done
}
h3=$(port) health=$(port) metrics=$(port)
cat >"$dir/agent.yaml" <<Y
kubeconfig: $dir/api/agent-edge1.kubeconfig
namespace: holdfast-system
listen: {h3: "127.0.0.1:$h3"}
tls: {certFile: $tls/tls.crt, keyFile: $tls/tls.key, clientCAFile: $tls/client-ca.crt}
audit: {directory: $dir/audit}
health: {listen: "127.0.0.1:$health"}
metrics: {listen: "127.0.0.1:$metrics", authentication: kubernetes}
Y
NODE_NAME=edge1 "$BIN/holdfast-agent" --config "$dir/agent.yaml" 2>"$dir/agent.log" &
agent=$!
trap 'kill -KILL "$agent" 2>/dev/null || true' EXIT
url=http://127.0.0.1:$metrics/metrics
status() { curl -s -m 10 -o "$dir/last" -w '%{http_code}' "$@"; }
is() { local got; got=$(status "${@:2}"); [ "$got" = "$1" ] || { echo "status $got instead of $1: $(cat "$dir/last")"; tail -n 5 "$dir/agent.log"; exit 1; }; }
for _ in $(seq 200); do [ "$(status "http://127.0.0.1:$health/livez" || true)" != 200 ] || break; sleep 0.05; done
is 401 "$url"
is 401 -H 'Authorization: Basic eDp5' "$url"
k -n holdfast-system create serviceaccount scraper >/dev/null
token=$(k -n holdfast-system create token scraper)
# Before the agent may ask: it says so, and lets nobody in.
k delete clusterrolebinding holdfast-agent-reviews --ignore-not-found >/dev/null
for _ in $(seq 50); do [ "$(status -H "Authorization: Bearer $token" "$url")" != 503 ] || break; sleep 0.1; done
is 503 -H "Authorization: Bearer $token" "$url"
grep -q 'bind the ClusterRole holdfast-agent-reviews' "$dir/last"
k create clusterrolebinding holdfast-agent-reviews --clusterrole=holdfast-agent-reviews --serviceaccount=holdfast-system:holdfast-agent >/dev/null
for _ in $(seq 50); do [ "$(status -H "Authorization: Bearer $token" "$url")" != 403 ] || break; sleep 0.1; done
is 403 -H "Authorization: Bearer $token" "$url"
is 401 -H 'Authorization: Bearer nonsense' "$url"
k apply -f "$root/manifests/monitoring/metrics-reader.yaml" >/dev/null
k create clusterrolebinding scraper --clusterrole=holdfast-metrics-reader --serviceaccount=holdfast-system:scraper >/dev/null
for _ in $(seq 50); do [ "$(status -H "Authorization: Bearer $token" "$url")" != 200 ] || break; sleep 0.1; done
is 200 -H "Authorization: Bearer $token" -D "$dir/head.txt" "$url"
cp "$dir/last" "$dir/metrics.txt"
grep -qi '^content-type: text/plain; version=0.0.4' "$dir/head.txt"
# What is known for a minute costs no request: the binding is gone, the scraper still reads.
k delete clusterrolebinding scraper >/dev/null
is 200 -H "Authorization: Bearer $token" -H 'Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5' -D "$dir/head.om" "$url"
cp "$dir/last" "$dir/metrics.om"
grep -qi '^content-type: application/openmetrics-text; version=1.0.0' "$dir/head.om"
# Configuration on SIGHUP: level and limits at once, the rest named.
sed -i 's/^audit:.*/audit: {directory: '"${dir//\//\\/}"'\/audit, queue: 999}\nlog: {level: debug}\nlimits: {queuePackets: 64, connections: 5000}/' "$dir/agent.yaml"
said() { for _ in $(seq 100); do grep -q "$1" "$dir/agent.log" && return; sleep 0.05; done; echo "the log does not say $1"; tail -n 5 "$dir/agent.log"; exit 1; }
kill -HUP "$agent"
said '"event":"config_changed".*"option":"log.level","from":"info","to":"debug","effect":"applied"'
said '"event":"config_changed".*"option":"limits.queuePackets","from":"512","to":"64","effect":"applied"'
said '"event":"config_changed".*"option":"limits.connections","from":"4096","to":"5000","effect":"needs a restart.*memory'
said '"event":"config_changed".*"option":"audit.queue".*"effect":"needs a restart'
said '"event":"config_reloaded".*"applied":2,"needRestart":2'
echo 'nonsense: 1' >>"$dir/agent.yaml"
kill -HUP "$agent"
said '"event":"config_refused".*nonsense'
# Certificates that are replaced are read without a signal.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$tls/new.key" -out "$tls/new.crt" -days 30 -subj /CN=edge1 2>/dev/null
mv "$tls/new.key" "$tls/tls.key"
mv "$tls/new.crt" "$tls/tls.crt"
for _ in $(seq 300); do grep -q tls_files_changed "$dir/agent.log" && break; sleep 0.05; done
said '"event":"tls_reloaded"'
want=$(date -d "$(openssl x509 -noout -enddate -in "$tls/tls.crt" | cut -d= -f2)" +%s)
is 200 -H "Authorization: Bearer $token" "$url"
grep -x "holdfast_tls_certificate_expiry_timestamp_seconds $want" "$dir/last"
grep -x 'holdfast_reloads_total{result="refused"} 1' "$dir/last"
kill -TERM "$agent"
wait "$agent" || true
! grep -F "$token" "$dir/agent.log"
