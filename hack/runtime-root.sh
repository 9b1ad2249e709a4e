#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# runtime-root.sh ROOT BINARY...: copies what the binaries need at run time into ROOT: the dynamic loader, every shared
# library they load, the certificate bundle, and a passwd entry for uid 65532. Used by the Dockerfile.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '3,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
root=$1
shift
for bin in "$@"; do
    # "lib => /path (0x…)" and "/lib64/ld-linux… (0x…)"; the vdso has no path
    ldd "$bin" | awk '$2 == "=>" && $3 == "not" {print "missing: " $1 > "/dev/stderr"; bad = 1}
                      $2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// {print $1} END {exit bad}' | sort -u
done | sort -u | while read -r lib; do
    install -D -m 0755 "$lib" "$root$lib"
done
mkdir -p "$root"/{etc/ssl/certs,etc/holdfast,tmp,var/lib/holdfast/audit}
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >"$root/etc/passwd"
echo 'nonroot:x:65532:' >"$root/etc/group"
chown 65532:65532 "$root/var/lib/holdfast/audit"
chmod 700 "$root/var/lib/holdfast/audit"
