#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# status_bench.sh: `kubectl holdfast status` on a real API server with NODES (100) nodes and CLAIMS (10,000) claims: the median of
# RUNS (7) runs takes at most 1 s, and none more than 64 MiB of memory. Prints the figures; exits 1 when one does not hold.
set -euo pipefail
# shellcheck source=test/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
NODES=${NODES:-100} CLAIMS=${CLAIMS:-10000} RUNS=${RUNS:-7}
cli_up
service 290
# Rows as agents and foundations write them; over one connection for each of 16 at a time.
python3 - "$NODES" "$CLAIMS" "$DIR" "$(uid_of ps svc-a)" <<'P'
import datetime, json, os, sys
nodes, claims, d, service = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
url = [l.split("=", 1)[1].strip().strip("'") for l in open(d + "/env") if l.startswith("APISERVER_URL=")][0]
base = url + "/apis/edge.galactic.datumapis.com/v1alpha1/namespaces/holdfast-system/"
now = datetime.datetime.now(datetime.timezone.utc)
stamp = lambda s: (now + datetime.timedelta(seconds=s)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
uuid = lambda n: "%08x-0000-4000-8000-%012x" % (n % 2**32, n)
cond = lambda t: {"type": t, "status": "True", "reason": t, "message": "", "lastTransitionTime": stamp(-60), "observedGeneration": 1}
def write(f, method, path, kind, body):
    o = {"apiVersion": "edge.galactic.datumapis.com/v1alpha1", "kind": kind, **body}
    f.write('url = "%s%s"\nrequest = %s\nheader = "Content-Type: application/%sjson"\ndata-binary = %s\noutput = /dev/null\nwrite-out = "%%{http_code}\\n"\nnext\n'
            % (base, path, method, "" if method == "POST" else "merge-patch+", json.dumps(json.dumps(o))))
with open(d + "/rows.create", "w") as c, open(d + "/rows.status", "w") as s:
    for n in range(nodes):
        name = "masque.node%03d" % n
        write(c, "POST", "providerinstances", "ProviderInstance", {"metadata": {"name": name}, "spec": {"provider": "masque", "nodeName": "node%03d" % n, "nodeUID": uuid(n + 1),
            "processID": uuid(n + 1), "epoch": 1, "leaseDurationSeconds": 300, "renew": {"bootID": uuid(n + 1), "bootTimeMicros": 1, "time": stamp(0)}, "draining": False}})
        write(s, "PATCH", "providerinstances/%s/status" % name, "ProviderInstance", {"status": {"acceptedEpoch": 1, "acceptedProcessID": uuid(n + 1), "conditions": [cond("Ready"), cond("Accepted")]}})
        write(c, "POST", "hostattachments", "HostAttachment", {"metadata": {"name": name + ".vpc-a"}, "spec": {"instanceRef": {"name": name, "uid": uuid(n + 1), "epoch": 1}, "vpc": "vpc-a"}})
        write(s, "PATCH", "hostattachments/%s.vpc-a/status" % name, "HostAttachment", {"status": {"acceptedInstanceEpoch": 1, "device": "hf%08x" % n, "mtu": 1400, "conditions": [cond("Ready"), cond("Accepted")]}})
    for i in range(1, claims + 1):
        n, name = i % nodes, "rc-fd120000000000010000%04x" % i
        write(c, "POST", "routeclaims", "RouteClaim", {"metadata": {"name": name}, "spec": {"provider": "masque", "prefix": "fd12::1:0:%x:0:0/96" % i, "tenant": "acme",
            "vpc": "vpc-a", "connector": "site-%d" % i, "serviceRef": {"name": "svc-a", "uid": service}, "leaseUUID": uuid(i + 1), "epoch": 1,
            "holder": {"instance": "masque.node%03d" % n, "instanceUID": uuid(n + 1), "instanceEpoch": 1, "processID": uuid(n + 1), "node": "node%03d" % n, "bootID": uuid(n + 1)},
            "attachmentRef": {"name": "masque.node%03d.vpc-a" % n, "uid": uuid(n + 1)}, "acquireTime": stamp(-60), "leaseDurationSeconds": 30, "maxLeaseDurationSeconds": 30, "correlationID": "%032x" % (i + 1)}})
        write(s, "PATCH", "routeclaims/%s/status" % name, "RouteClaim", {"status": {"acceptedEpoch": 1, "acceptedLeaseUUID": uuid(i + 1), "gate": {"epoch": 1, "state": "Open", "reason": "Opened", "since": stamp(-60)},
            "publishedEpoch": 1, "publishedTime": stamp(-60), "conditions": [cond("Accepted"), cond("GateOpen"), cond("Published")]}})
P
load() { # FILE: its requests, all with a good answer
    # the last `next` begins an empty one
    sed -i '$d' "$1"
    awk -v c="cacert = $DIR/ca.crt\ncert = $DIR/pki/admin.crt\nkey = $DIR/pki/admin.key" '{print} /^url = /{print c}' "$1" >"$1.curl"
    "${IN[@]}" curl -sS --no-progress-meter -Z --parallel-max 16 -K "$1.curl" >"$1.out"
    [ "$(grep -c '^20[01]$' "$1.out")" = "$((CLAIMS + 2 * NODES))" ] || { echo "not every row was written:"; sort "$1.out" | uniq -c; exit 1; }
}
load "$DIR/rows.create"
load "$DIR/rows.status"
# measure FORMAT: "MILLISECONDS KIB LINES" of RUNS runs
measure() {
    "${IN[@]}" python3 - "$BIN/kubectl-holdfast" "$DIR" "$RUNS" "$@" <<'P'
import os, sys, time
tool, d, runs, args = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
for _ in range(runs):
    t = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(d + "/status.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.execv(tool, [tool, "status", "--kubeconfig", d + "/operator.kubeconfig"] + args)
    _, status, use = os.wait4(pid, 0)
    print(int((time.monotonic() - t) * 1000), use.ru_maxrss, sum(1 for _ in open(d + "/status.out")), os.waitstatus_to_exitcode(status))
P
}
met=0 missed=0
figure() { # NAME VALUE BOUND UNIT
    local word=met
    [ "$2" -le "$3" ] || word=MISSED
    printf 'figure  %-58s %8s %-4s (<= %s) %s\n' "$1" "$2" "$4" "$3" "$word"
    if [ $word = met ]; then met=$((met + 1)); else missed=$((missed + 1)); fi
}
for format in table json; do
    args=()
    [ $format = table ] || args=(-o json)
    measure "${args[@]}" >"$DIR/runs.$format"
    cat "$DIR/runs.$format"
    ! grep -qv ' 0$' "$DIR/runs.$format" || { echo "status failed, or not every node is Ready"; exit 1; }
    lines=$(awk '{print $3}' "$DIR/runs.$format" | sort -n | head -n 1)
    [ "$lines" -ge $((CLAIMS + NODES)) ] || { echo "only $lines lines"; exit 1; }
    figure "status ($format), $NODES nodes, $CLAIMS claims: median of $RUNS" "$(awk '{print $1}' "$DIR/runs.$format" | sort -n | sed -n "$(((RUNS + 1) / 2))p")" 1000 ms
    figure "status ($format): most memory" "$(($(awk '{print $2}' "$DIR/runs.$format" | sort -n | tail -n 1) / 1024))" 64 MiB
done
printf 'bench-status: %d passed, %d failed\n' "$met" "$missed"
[ "$missed" = 0 ]
