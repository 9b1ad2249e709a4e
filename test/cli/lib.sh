# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the tool's tests; sourced. cli_up: a network namespace with a real API server in it, $DIR its folder.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
BIN=${HOLDFAST_BIN:-$root/build/bin}
# shellcheck source=test/lab/lib/check.sh
. "$root/test/lab/lib/check.sh"
# shellcheck source=test/cli/objects.sh
. "$here/objects.sh"
NODE_ADDR=10.231.0.1
PIDS=()

cli_end() {
    local rc=$? p
    trap - EXIT INT TERM
    for p in "${PIDS[@]}"; do kill -KILL "$p" 2>/dev/null || true; done
    "$root/test/apiserver/down.sh" "$DIR" || rc=1
    ip netns del "$NETNS" 2>/dev/null || true
    if [ "$rc" = 0 ] && [ -z "${KEEP:-}" ]; then rm -rf "$DIR"; else echo "logs: $DIR"; fi
    exit "$rc"
}
# cli_up [NOINSTALL]
cli_up() {
    [ "$(id -u)" = 0 ] || { echo "${0##*/}: error: needs root, for a network namespace" >&2; exit 1; }
    DIR=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-cli.XXXXXX")
    NETNS=hfcli-$$
    trap cli_end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    ip netns add "$NETNS"
    ip -n "$NETNS" link set lo up
    ip -n "$NETNS" link add node0 type veth peer name node1
    ip -n "$NETNS" addr add "$NODE_ADDR/24" dev node0
    ip -n "$NETNS" link set node0 up
    ip -n "$NETNS" link set node1 up
    IN=(nsenter "--net=/run/netns/$NETNS")
    APISERVER_NETNS=$NETNS APISERVER_BIND=0.0.0.0 APISERVER_HOST=$NODE_ADDR "$root/test/apiserver/up.sh" "$DIR"
    KUBECTL=$("$root/test/apiserver/build.sh")/kubectl
    if [ "${1:-}" != NOINSTALL ]; then
        "$root/test/apiserver/install.sh" "$DIR"
        "$root/test/apiserver/nodes.sh" "$DIR" edge1 edge2
    fi
}
# hf ARG...: the tool, as an operator, in the namespace.
hf() { "${IN[@]}" "$BIN/kubectl-holdfast" "$@" --kubeconfig "$DIR/operator.kubeconfig"; }
# exits STATUS COMMAND...
exits() {
    local want=$1 rc=0
    shift
    "$@" || rc=$?
    [ "$rc" = "$want" ] || { echo "exit status $rc instead of $want"; return 1; }
}
# says REGEX STATUS COMMAND...: the command's output matches, and it ends with that status.
says() {
    local re=$1 want=$2 rc=0 out
    shift 2
    out=$("$@" 2>&1) || rc=$?
    [ "$rc" = "$want" ] || { printf 'exit status %s instead of %s:\n%s\n' "$rc" "$want" "$out"; return 1; }
    grep -qE -- "$re" <<<"$out" || { printf 'no "%s" in:\n%s\n' "$re" "$out"; return 1; }
}
# json FILTER STATUS COMMAND...: jq -e FILTER holds for its -o json output.
json() {
    local filter=$1 want=$2 rc=0 out
    shift 2
    out=$("$@" -o json 2>"$DIR/stderr") || rc=$?
    [ "$rc" = "$want" ] || { printf 'exit status %s instead of %s:\n%s\n%s\n' "$rc" "$want" "$out" "$(cat "$DIR/stderr")"; return 1; }
    jq -e "$filter" <<<"$out" >/dev/null || { printf 'not %s:\n%s\n' "$filter" "$(jq -c 'if .conditions then {reason, because, conditions: [.conditions[] | select(.status != "True")]} else . end' <<<"$out")"; return 1; }
}
