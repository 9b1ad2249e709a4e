#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# down.sh DIR: ends the kube-apiserver and the etcd that up.sh started in DIR, by process id, and removes the etcd data.
# Logs, keys and kubeconfigs stay. Doing it twice, or after an interrupted start, is fine.
set -euo pipefail
# shellcheck source=test/apiserver/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# = 1 ] && [ -n "$1" ] || { echo "usage: ${0##*/} DIR" >&2; exit 2; }
[ -d "$1" ] || exit 0
LAB=$(cd "$1" && pwd)
stop_pid "$LAB/apiserver.pid" "$LAB/" KILL # SIGTERM would keep open watches for their whole time-out
stop_pid "$LAB/etcd.pid" "$LAB/" KILL
rm -rf "$LAB/etcd-data" "$LAB/env"
