#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# trixie-run.sh COMMAND...: runs it in the Debian 13 root of trixie-root.sh, in this tree (mounted at /src), in mount and
# network namespaces of its own with only a loopback. Nothing in the root is changed but /tmp, which is a new tmpfs, and
# /etc/hosts, which is made when it is missing: without it "localhost" is a question to a name server that is not there.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '3,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=$("$repo/hack/trixie-root.sh" build)
export TRIXIE_ROOT=$root TRIXIE_REPO=$repo
exec unshare --mount --net --pid --fork --kill-child bash -euo pipefail -c '
    mount --make-rprivate /
    mount --bind "$TRIXIE_ROOT" "$TRIXIE_ROOT"
    mkdir -p "$TRIXIE_ROOT/src"
    mount --bind "$TRIXIE_REPO" "$TRIXIE_ROOT/src"
    [ -e "$TRIXIE_ROOT/etc/hosts" ] || printf "127.0.0.1 localhost\n::1 localhost\n" >"$TRIXIE_ROOT/etc/hosts"
    mount -t proc proc "$TRIXIE_ROOT/proc"
    mount --rbind /dev "$TRIXIE_ROOT/dev"
    mount -t tmpfs tmpfs "$TRIXIE_ROOT/tmp"
    ip link set lo up
    exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        chroot "$TRIXIE_ROOT" /bin/bash -euo pipefail -c "cd /src && exec \"\$@\"" _ "$@"' _ "$@"
