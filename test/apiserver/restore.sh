#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# restore.sh DIR FROM [bump]: kills kube-apiserver and etcd of DIR and starts both again on the data that backup.sh put into
# FROM. With `bump` the revision goes far above the lost one and everything before is compacted, objects keep their versions:
# what `etcdutl snapshot restore --bump-revision --mark-compacted` does. Prints how long nothing answered, in ms.
set -euo pipefail
# shellcheck source=test/apiserver/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ $# = 2 ] || [ "$#/${3:-}" = 3/bump ] || { echo "usage: ${0##*/} DIR FROM [bump]" >&2; exit 2; }
lab_open "$1"
for what in etcd apiserver; do pid_is "$LAB/$what.pid" "$LAB/" || die "no $what runs in $LAB"; done
[ -d "$2" ] || die "$2 is no backup"
mapfile -d '' etcd <"/proc/$(<"$LAB/etcd.pid")/cmdline"
mapfile -d '' apiserver <"/proc/$(<"$LAB/apiserver.pid")/cmdline"
call() { "${IN[@]}" curl -fsS -m 5 "$ETCD_URL/v3/kv/$1" -d "$2"; }
revision() { call range '{"key":"AA=="}' | sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p'; }
lost=$(revision)

t0=$(date +%s%3N)
stop_pid "$LAB/apiserver.pid" "$LAB/" KILL
stop_pid "$LAB/etcd.pid" "$LAB/" KILL
rm -rf "$LAB/etcd-data"
cp -a "$2" "$LAB/etcd-data"
cd "$LAB"
GOMAXPROCS=2 setsid "${IN[@]}" "${etcd[@]}" </dev/null >>etcd.log 2>&1 &
echo $! >etcd.pid
disown
for ((i = 0; i < 1000; i++)); do
    ! "${IN[@]}" curl -fs -m 1 "$ETCD_URL/health" >/dev/null 2>&1 || break
    pid_is etcd.pid "$LAB/" || [ "$i" -lt 10 ] || die "etcd ended, see $LAB/etcd.log"
    sleep 0.02
done
back=$(revision)
[ "$back" -lt "$lost" ] || die "the backup is at revision $back, which is not before $lost"
if [ "${3:-}" = bump ]; then
    # one transaction is one revision: as many as it takes
    for ((i = back; i < lost + 1000; i++)); do printf 'url = "%s/v3/kv/put"\ndata = "{\\"key\\":\\"YnVtcA==\\",\\"value\\":\\"AA==\\"}"\noutput = /dev/null\n' "$ETCD_URL"; done |
        "${IN[@]}" curl -fsS -K -
    now=$(revision)
    [ "$now" -gt "$lost" ] || die "the revision is $now, it was to go above $lost"
    call compaction "{\"revision\":\"$now\"}" >/dev/null
fi
setsid "${IN[@]}" "${apiserver[@]}" </dev/null >>apiserver.log 2>&1 &
echo $! >apiserver.pid
disown
for ((i = 0; i < 1500; i++)); do
    code=$("${IN[@]}" curl -s -m 2 --cacert pki/ca.crt --cert pki/admin.crt --key pki/admin.key -o /dev/null -w '%{http_code}' "$APISERVER_URL/readyz" || true)
    [ "$code" != 200 ] || break
    pid_is apiserver.pid "$LAB/" || [ "$i" -lt 10 ] || die "kube-apiserver ended, see $LAB/apiserver.log"
    sleep 0.06
done
[ "$code" = 200 ] || die "kube-apiserver is not ready, see $LAB/apiserver.log"
sed -i "s/^APISERVER_PID=.*/APISERVER_PID=$(<apiserver.pid)/; s/^ETCD_PID=.*/ETCD_PID=$(<etcd.pid)/" env
say "revision $lost lost, back at $back${now:+, bumped to $now}"
echo $(($(date +%s%3N) - t0))
