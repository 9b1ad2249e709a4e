#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# interop.sh [ROW...]: clients that we did not write, or wrote on libraries that the agent does not use, against a real agent
# in the lab. Prints the matrix; exit 1 when a cell is red. A client that is not built is a red row.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/lab/scenarios/lib.sh
. "$here/../lab/scenarios/lib.sh"
PEERS=$root/test/peers # lib.sh has its own idea of `here`
PY=${HOLDFAST_PEERS_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/peers-venv}/bin/python
COLS=(connect ping56 ping1000 ping1232 tcp-up tcp-down reconnect idle restart)
PING_WAIT=2

cert=(-ca "$D/pki/edge-ca.crt" -cert "$D/pki/site-1.crt" -key "$D/pki/site-1.key")
long=(--ca "$D/pki/edge-ca.crt" --cert "$D/pki/site-1.crt" --key "$D/pki/site-1.key" --edge '[fd00:c::1]:4433')
ROWS=(connect-ip-go quic-go aioquic xnet-h2 rust-h2 cf-quic-go cf-rust-h2 python-h2)
describe() {
    case $1 in
    connect-ip-go) echo "connect-ip-go, HTTP/3" ;;
    quic-go) echo "quic-go http3, HTTP/3" ;;
    aioquic) echo "aioquic, HTTP/3" ;;
    xnet-h2) echo "Go x/net/http2, HTTP/2" ;;
    rust-h2) echo "Rust h2, HTTP/2" ;;
    cf-quic-go) echo "Cloudflare form, HTTP/3 (quic-go)" ;;
    cf-rust-h2) echo "Cloudflare form, HTTP/2 (Rust h2)" ;;
    python-h2) echo "python h2, malformed frames" ;;
    esac
}
command_of() { # sets CMD
    case $1 in
    connect-ip-go) CMD=("$CONNECTOR" -edges 'edge1=[fd00:c::1]:4433' "${cert[@]}" -idle 6s -dial-timeout 5s) ;;
    quic-go) CMD=("$root/build/peers/holdfast-quicgo" -edge '[fd00:c::1]:4433' "${cert[@]}") ;;
    cf-quic-go) CMD=("$root/build/peers/holdfast-quicgo" -edge '[fd00:c::1]:4433' -protocol cf-connect-ip "${cert[@]}") ;;
    aioquic) CMD=("$PY" "$PEERS/python/h3.py" "${long[@]}") ;;
    rust-h2) CMD=("$root/build/peers/holdfast-rust-h2" "${long[@]}") ;;
    cf-rust-h2) CMD=("$root/build/peers/holdfast-rust-h2" "${long[@]}" --protocol cf-connect-ip) ;;
    xnet-h2) CMD=("$root/build/peers/holdfast-xnet-h2" -edge '[fd00:c::1]:4433' "${cert[@]}") ;;
    esac
}

declare -A CELL
bad=0
cell() { # ROW COLUMN COMMAND...: runs it, records the verdict
    local key=$1/$2 from
    shift 2
    from=$SECONDS
    if "$@" >"$D/cell.log" 2>&1; then CELL[$key]=ok; else
        CELL[$key]=RED bad=$((bad + 1))
        echo "      $key: $(tail -n 3 "$D/cell.log" | tr '\n' ' ' | cut -c1-300)"
    fi
    printf '%s %s (%d s)\n' "${CELL[$key]}" "$key" $((SECONDS - from))
}
LOG=$D/log/client.peer.log
connects() { grep -c '"event": *"connected"' "$LOG" 2>/dev/null || true; }
more_connects() { [ "$(connects)" -gt "$1" ]; }
start_peer() { # waits until it is connected
    local n
    n=$(connects)
    "$LAB" run "$D" client peer "${CMD[@]}" && eventually 20 more_connects "${n:-0}"
}
stop_peer() { "$LAB" kill -TERM "$D" peer client && eventually 10 peer_gone; }
peer_gone() { [ -s "$D/run/client.peer.rc" ]; }
ping_of() { "$LAB" exec "$D" client ping -6 -c 3 -i 0.2 -W "$PING_WAIT" -M "do" -s "$1" fd20::10; } # BYTES of data
reachable() { "$LAB" exec "$D" client ping -6 -c 1 -W 1 fd20::10; }
xfer() { timeout 60 "$LAB" exec "$D" "$1" "$PROBE" tcp-xfer --to "$2" --port 7001 --count 1000000 --timeout 50000; } # FROM TO
reconnect() { stop_peer && start_peer && eventually 10 reachable; }
idle() { sleep 8 && ping_of 56; } # every client here sends a keep-alive each 2 s, and its idle time-out is 6 s
restart() {
    local n
    n=$(connects)
    "$LAB" stop "$D" agent edge1 && "$LAB" start "$D" agent edge1 && await 40 "ready" agent_ready edge1 &&
        eventually 40 more_connects "${n:-0}" && eventually 20 reachable
}

row() {
    local name=$1 c
    if [ "$name" = python-h2 ]; then
        cell "$name" malformed "$LAB" exec "$D" client "$PY" "$PEERS/python/h2raw.py" "${long[@]}"
        cp "$D/cell.log" "$D/log/python-h2.log"
        return
    fi
    command_of "$name"
    for c in "${COLS[@]}"; do CELL[$name/$c]=-; done
    if [ ! -x "${CMD[0]}" ]; then
        CELL[$name/connect]=RED bad=$((bad + 1))
        echo "      $name: ${CMD[0]} is not built"
        return
    fi
    rm -f "$LOG"
    cell "$name" connect start_peer
    if [ "${CELL[$name/connect]}" = ok ]; then
        for c in 56 1000 1232; do cell "$name" "ping$c" ping_of "$c"; done
        cell "$name" tcp-up xfer client fd20::10
        cell "$name" tcp-down xfer vpc "$(address_of client)"
        cell "$name" reconnect reconnect
        cell "$name" idle idle
        cell "$name" restart restart
    else
        for c in "${COLS[@]:1}"; do CELL[$name/$c]=RED bad=$((bad + 1)); done
    fi
    cp "$LOG" "$D/log/$name.log" 2>/dev/null || true
    stop_peer || "$LAB" kill -KILL "$D" peer client || true
    "$LAB" exec "$D" client ip link del hfc0 2>/dev/null || true
}

matrix() {
    local r c
    printf '\n%-36s' client
    printf '%-11s' "${COLS[@]}"
    printf '\n'
    for r in "${rows[@]}"; do
        printf '%-36s' "$(describe "$r")"
        if [ "$r" = python-h2 ]; then
            printf '%s, %s\n' "${CELL[$r/malformed]}" "$(grep '^h2raw:' "$D/log/python-h2.log" || echo 'did not end')"
            continue
        fi
        for c in "${COLS[@]}"; do printf '%-11s' "${CELL[$r/$c]}"; done
        printf '\n'
    done
}

rows=("$@")
[ ${#rows[@]} -gt 0 ] || rows=("${ROWS[@]}")
for r in "${rows[@]}"; do [ -n "$(describe "$r")" ] || { echo "interop.sh: no row '$r' (there are: ${ROWS[*]})" >&2; exit 2; }; done
scenario_up
sed -i -E '0,/^listen:/s//listen:\n  cloudflare: "on"/' "$D/nodes/edge1/etc/agent.yaml"
"$LAB" start "$D" agent edge1
"$LAB" binding "$D" acme site-1
check "the agent is ready" await 40 "ready" agent_ready edge1
for r in "${rows[@]}"; do row "$r"; done
matrix
good=0
for k in "${!CELL[@]}"; do [ "${CELL[$k]}" != ok ] || good=$((good + 1)); done
echo "interop: $good passed, $bad failed"
[ "$bad" = 0 ]
