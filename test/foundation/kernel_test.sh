#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kernel_test.sh PROGRAM [ARG...]: runs the kernel's tests in a network namespace, with a bpf file system, of their own.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "kernel_test.sh: needs root (network namespace, TUN, eBPF)" >&2; exit 1; }
program=$(realpath "$1")
shift
ns=hffnd-$$
dir=$(mktemp -d)
trap 'ip netns del "$ns" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
ip netns add "$ns"
mkdir "$dir/bpf"
export FOUNDATION_TEST_DIR=$dir
# The mounts of `ip netns exec` end with it.
ip netns exec "$ns" bash -euc '
    mount -t bpf bpf "$FOUNDATION_TEST_DIR/bpf"
    mknod -m 666 "$FOUNDATION_TEST_DIR/tun" c 10 200
    ip link set lo up
    sysctl -qw net.ipv6.conf.default.accept_dad=0
    ip -6 addr add fd20::10/128 dev lo nodad
    "$@"
' bash "$program" -j1 "$@"
