#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# images.sh DIR: puts into DIR the OCI archives that a node of the cluster starts with: agent and foundation as `make image`
# has built them, under a second tag, too (an update needs one), and pause.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
[ $# = 1 ] || { echo "usage: ${0##*/} DIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
for n in agent foundation; do [ -s "$root/build/image/$n.tar" ] || { echo "images.sh: error: build/image/$n.tar is missing: run 'make image'" >&2; exit 1; }; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -std=c11 -D_GNU_SOURCE -Os -static -s -Wall -Wextra -Werror -o "$work/pause" "$here/pause.c"
b() { BUILDAH_ISOLATION=chroot buildah --root "$work/root" --runroot "$work/run" --storage-driver vfs "$@"; }
c=$(b from scratch)
b add -q "$c" "$work/pause" /pause >/dev/null
b config --entrypoint '["/pause"]' "$c"
b commit -q "$c" localhost/pause:1 >/dev/null
rm -f "$out"/*.tar
b push -q localhost/pause:1 "oci-archive:$out/pause.tar:localhost/pause:1"
ln -f "$root/build/image/agent.tar" "$out/agent.tar" 2>/dev/null || cp "$root/build/image/agent.tar" "$out/agent.tar"
ln -f "$root/build/image/foundation.tar" "$out/foundation.tar" 2>/dev/null || cp "$root/build/image/foundation.tar" "$out/foundation.tar"
