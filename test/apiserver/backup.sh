#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# backup.sh DIR TO: copies the data of the etcd that up.sh started in DIR into the folder TO, as it is at one instant (the
# process stands still meanwhile, some milliseconds). restore.sh DIR TO goes back to it.
set -euo pipefail
# shellcheck source=test/apiserver/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ $# = 2 ] || { echo "usage: ${0##*/} DIR TO" >&2; exit 2; }
lab_open "$1"
pid_is "$LAB/etcd.pid" "$LAB/" || die "no etcd runs in $LAB"
pid=$(<"$LAB/etcd.pid")
trap 'kill -CONT "$pid" 2>/dev/null || true' EXIT
kill -STOP "$pid"
until [[ $(sed 's/.*) //' "/proc/$pid/stat") == T* ]]; do :; done
rm -rf "$2"
cp -a "$LAB/etcd-data" "$2"
