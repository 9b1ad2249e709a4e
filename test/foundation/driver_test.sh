#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# driver_test.sh PROGRAM: the binary's start and end as root in a namespace of its own, without an API server: what it
# refuses and how it says so, that it waits for the API server, that SIGTERM leaves the kernel as it is.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "driver_test.sh: needs root" >&2; exit 1; }
if [ "${1:-}" != --inside ]; then
    program=$(realpath "$1")
    ns=hfdrv-$$
    dir=$(mktemp -d)
    trap 'ip netns del "$ns" 2>/dev/null; rm -rf "$dir"' EXIT
    trap 'exit 130' INT TERM
    ip netns add "$ns"
    ip netns exec "$ns" "$(realpath "$0")" --inside "$program" "$dir"
    exit
fi
program=$2 dir=$3
mkdir "$dir/bpf"
mount -t bpf bpf "$dir/bpf"
ip link set lo up
cat >"$dir/kubeconfig" <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: not-a-real-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
Y
passed=0 failed=0
check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$dir/out" 2>&1; then
        passed=$((passed + 1)) && echo "  ok   $name"
    else
        failed=$((failed + 1)) && echo "  FAIL $name" && sed 's/^/       /' "$dir/out"
    fi
}
start() { exec "$program" --node edge1 --kubeconfig "$dir/kubeconfig" --bpffs "$dir/bpf/m" --lock "$dir/lock" "$@"; }
refuses() { # CODE TEXT ARG...
    local rc=0 code=$1 text=$2
    shift 2
    (start "$@") >"$dir/said" 2>&1 || rc=$?
    cat "$dir/said"
    [ "$rc" = "$code" ] && grep -q -- "$text" "$dir/said" && ! grep -q not-a-real-token "$dir/said"
}
says() { # TEXT: within 5 s
    for _ in $(seq 50); do
        grep -q "$1" "$dir/log" && return
        sleep 0.1
    done
    cat "$dir/log"
    return 1
}
beside() { # it takes its lock a moment after it was started
    for _ in $(seq 50); do
        [ -s "$dir/lock.watchdog" ] && [ "$(cat "$dir/lock")" = "$pid" ] && kill -0 "$(cat "$dir/lock.watchdog")" && return
        sleep 0.1
    done
    return 1
}
nft_is_up() { [[ $(nft list table inet holdfast_gate) == *"oifgroup != 18502"* ]]; }
ended() { # PID CODE
    local rc=0
    wait "$1" || rc=$?
    [ "$rc" = "$2" ]
}
gone() {
    for _ in $(seq 50); do
        # One that nobody has waited for yet is gone too.
        grep -q '^State:.[^Z]' "/proc/$1/status" 2>/dev/null || return 0
        sleep 0.1
    done
    cat "/proc/$1/status"
    return 1
}

check "an unknown flag" refuses 2 "unknown argument '--nodes'" --nodes x
check "no bpf file system" refuses 1 "mount -t bpf" --bpffs "$dir/plain"
check "no such kubeconfig" refuses 1 "$dir/none" --kubeconfig "$dir/none"
check "a time namespace of its own" bash -c 'out=$(unshare --time --boottime 1000 --fork "$1" --node edge1 --bpffs "$2/bpf/m" --lock "$2/lock" 2>&1); rc=$?; echo "$out"; [ $rc = 1 ] && grep -q "time namespace" <<<"$out"' _ "$program" "$dir"
(start) 2>"$dir/log" &
pid=$!
check "waits for the API server and says so" says foundation_waiting
check "the default drop is up already" nft_is_up
check "the watchdog is beside it" beside
watchdog=$(cat "$dir/lock.watchdog")
check "a second one is refused" refuses 1 "process $pid holds"
kill -TERM "$pid"
check "SIGTERM ends it with status 0" ended "$pid" 0
check "the watchdog ends when no route is left" gone "$watchdog"
check "the default drop stays" nft_is_up
check "the maps stay" test -e "$dir/bpf/m/gate"
check "no token in any line" bash -c '! grep -q not-a-real-token "$1"' _ "$dir/log"
echo "foundation-driver: $passed passed, $failed failed"
[ "$failed" = 0 ]
