#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Test of the lab's tool itself: what it builds, and that it leaves nothing behind, also when it is killed half-way.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/lab/lib/check.sh
. "$here/lib/check.sh"
lab=$here/lab
tmp=$(mktemp -d)
probe=${HOLDFAST_BIN:-$here/../../build/bin}/holdfast-probe
trap '"$lab" down "$tmp/a" 2>/dev/null; "$lab" down "$tmp/b" 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

id_of() { sed -n 's/^LAB_ID=//p' "$1/lab.env"; }
no_process() { ! pgrep -af "$1"; }
nothing_left() { # ID DIR
    ! ip netns list | grep "hf$1-" && ! mount | grep "hf$1" && [ ! -e "/run/holdfast-lab/$1" ] && eventually 1 no_process "$2/"
}
ping6() { "$lab" exec "$tmp/a" "$1" ping -c 1 -W 2 "$2"; }
bgp_up() { [ "$(birdc -s "$tmp/a/nodes/vpc/bird.ctl" show protocols | grep -c Established)" = 2 ]; }
route_at_vpc() { "$lab" exec "$tmp/a" vpc ip -6 route show fd12::1:0:5:0:0/96 | grep "via $1 "; }
no_route_at_vpc() { ! route_at_vpc ''; }
announce() { "$lab" exec "$tmp/a" "$1" ip -6 route "$2" blackhole fd12:0:0:1:0:5::/96 table 200 proto 199 metric "$3"; }

check "up" "$lab" up "$tmp/a" --net-only
id=$(id_of "$tmp/a")
check "client reaches edge1" ping6 client fd00:c::1
check "client reaches edge2" ping6 client fd00:c::2
check "edge1 reaches the API server's address" ping6 edge1 fd00:a::10
check "edge2 reaches the VPC host" ping6 edge2 fd20::10
check "client does not reach the VPC host by itself" fails_with unreachable ping6 client fd20::10
check "both BGP sessions are up" eventually 10 bgp_up
announce edge1 add 7
check "a claim's route arrives at the VPC" eventually 5 route_at_vpc fd00:b:1::1
announce edge2 add 8
check "a later epoch wins while the old route lingers" eventually 5 route_at_vpc fd00:b:2::1
announce edge2 del 8
check "without it the older route is back" eventually 5 route_at_vpc fd00:b:1::1
announce edge1 del 7
check "a withdrawn route leaves the VPC" eventually 5 no_route_at_vpc
"$lab" exec "$tmp/a" edge1 ip -6 route add blackhole fd12:0:0:1::/80 table 200 proto 199 metric 7
sleep 0.3 # longer than any announcement above takes
check "only a /96 is announced" fails_with '' "$lab" exec "$tmp/a" vpc bash -c 'ip -6 route | grep /80'

node() { "$lab" exec "$tmp/a" edge1 "$here/node-run" "$tmp/a/nodes/edge1" "$tmp" /run/holdfast-lab/node setpriv --reuid 65532 --regid 65532 \
    --clear-groups --no-new-privs --inh-caps=-all --ambient-caps=-all --bounding-set=-all bash -c "$1"; }
check "the agent's view: /dev/net/tun opens without capability" node 'grep -q "CapBnd:.0000000000000000" /proc/self/status && exec 3<>/dev/net/tun'
check "the agent's view: its audit folder is writable" node 'echo x >/run/holdfast-lab/node/audit/x'
check "the agent's view: its configuration is not" fails_with "Read-only file system" node 'echo x >/run/holdfast-lab/node/etc/x'
check "the agent's view: another node's keys are out of reach" fails_with "Permission denied" node "cat $tmp/a/pki/site-1.key"

"$lab" run "$tmp/a" vpc sleeper sleep 1000
check "a process that runs is not started twice" fails_with "running already" "$lab" run "$tmp/a" vpc sleeper sleep 1000
check "stop tells the exit status" fails_with 143 "$lab" stop "$tmp/a" sleeper vpc
"$lab" run "$tmp/a" vpc ends sh -c 'exit 7'
check "a process ends by itself" eventually 5 test -s "$tmp/a/run/vpc.ends.rc"
check "stop of an ended process says so" fails_with "ended with status 7" "$lab" stop "$tmp/a" ends vpc
printf '%s \n' "$(cut -d' ' -f1 "$tmp/a/run/vpc.ends.pid")" >"$tmp/a/run/vpc.ends.pid" # it ended before its start time was read
check "also of one that ended at once" fails_with "ended with status 7" "$lab" stop "$tmp/a" ends vpc
"$lab" run "$tmp/a" vpc echo "$probe" tcp-serve --bind fd20::10 --port 7001
check "a checksummed transfer to the VPC host" eventually 5 "$lab" exec "$tmp/a" edge1 "$probe" tcp-xfer --to fd20::10 --port 7001 --count 3000000
check "kill -KILL waits for the end" "$lab" kill -KILL "$tmp/a" echo vpc

# One thread of a process stands still and goes on.
counted() { stat -c %s "$tmp/count"; }
more_than() { [ "$(counted)" -gt "$1" ]; }
# shellcheck disable=SC2016
"$lab" run "$tmp/a" vpc counter sh -c 'while :; do printf x >>"$0"; sleep 0.01; done' "$tmp/count"
check "a process counts" eventually 5 more_than 3
check "freeze" "$lab" freeze "$tmp/a" counter vpc main
n=$(counted)
sleep 0.2 # twenty times what it needs for one
check "a frozen thread stands still" test "$(counted)" = "$n"
check "thaw" "$lab" thaw "$tmp/a" counter vpc main
check "a thawed one goes on" eventually 5 more_than "$n"
check "a thread that is not there" fails_with "0 threads named 'nobody'" "$lab" freeze "$tmp/a" counter vpc nobody
"$lab" freeze "$tmp/a" counter vpc main # and is taken down like that

# Power failure of a node.
boot_id() { node 'cat /proc/sys/kernel/random/boot_id'; }
first=$(boot_id)
check "a node has a boot id of its own" test "$first" != "$(cat /proc/sys/kernel/random/boot_id)"
"$lab" run "$tmp/a" edge1 victim sleep 1000
check "reboot" "$lab" reboot "$tmp/a" edge1
check "a reboot ends what ran there" eventually 5 test -s "$tmp/a/run/edge1.victim.rc"
check "the boot id is another one" test "$(boot_id)" != "$first"
check "both BGP sessions are up again" eventually 15 bgp_up

check "a lab beside it" "$lab" up "$tmp/b" --net-only
id_b=$(id_of "$tmp/b")
check "down" "$lab" down "$tmp/a"
check "nothing is left" nothing_left "$id" "$tmp/a"
check "the other lab is untouched" "$lab" exec "$tmp/b" client ping -c 1 -W 2 fd00:c::1
check "down twice" "$lab" down "$tmp/a"
check "up over a lab that was not taken down" "$lab" up "$tmp/b" --net-only
check "the earlier one is gone" nothing_left "$id_b" /nonexistent
id_b=$(id_of "$tmp/b")
check "down of the other" "$lab" down "$tmp/b"
check "nothing is left of it" nothing_left "$id_b" "$tmp/b"

# Killed half-way, at several points; what is there then must go by `down` (or by `reap` when its owner is dead too).
for ms in 000 100 250 450; do
    rm -rf "$tmp/a"
    "$lab" up "$tmp/a" --net-only 2>/dev/null & pid=$!
    eventually 5 test -s "$tmp/a/lab.env"
    sleep "0.$ms" # not to wait for something: to be killed at different moments
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    id=$(id_of "$tmp/a")
    check "killed after $ms ms: down works" "$lab" down "$tmp/a"
    check "killed after $ms ms: nothing is left" nothing_left "$id" "$tmp/a"
done
"$lab" up "$tmp/a" --net-only 2>/dev/null & pid=$!
eventually 5 test -s "$tmp/a/lab.env"
id=$(id_of "$tmp/a")
kill -TERM "$pid"
wait "$pid" && rc=0 || rc=$?
check "SIGTERM ends the start with its own status" test "$rc" = 143
check "SIGTERM leaves nothing" nothing_left "$id" "$tmp/a"
sleep 1000 & owner=$!
check "a lab with an owner" "$lab" up "$tmp/a" --net-only --owner "$owner"
id=$(id_of "$tmp/a")
check "reap leaves it alone while the owner lives" "$lab" reap
check "it still works" "$lab" exec "$tmp/a" client ping -c 1 -W 2 fd00:c::1
kill -KILL "$owner"
wait "$owner" 2>/dev/null || true
check "reap takes it down when the owner is dead" "$lab" reap
check "reap leaves nothing" nothing_left "$id" "$tmp/a"

no_root() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all make -s -C "$here/../.." demo; }
check "make demo without root: says so" fails_with "needs root" no_root
check "… before minutes of set-up" bash -c '[[ $1 != *deps:* ]]' _ "$(no_root 2>&1 || true)"
mkdir -p "$tmp/d"
flock "$tmp/d/.lock" sleep 1000 & holder=$!
eventually 5 fails_with '' flock -n "$tmp/d/.lock" true >/dev/null
check "two demos in one folder: the second leaves the first alone" fails_with "another run uses $tmp/d" "$here/../demo/demo.sh" "$tmp/d"
end_children() { local c; for c in $(cat "/proc/$1/task/$1/children"); do kill "$c"; done; }
end_children "$holder"
wait "$holder" 2>/dev/null || true

check "unknown command" fails_with "unknown command 'frob'" "$lab" frob
check "a lease that no agent takes" fails_with "10 to 300 seconds" "$lab" up "$tmp/a" --net-only --lease 5
check "unknown node" fails_with "no lab" "$lab" exec "$tmp/a/none" edge1 true
check "damaged state is refused" bash -c 'mkdir -p "$1" && echo LAB_ID=../../etc >"$1/lab.env" && ! "$2" status "$1"' _ "$tmp/c" "$lab"

# The same with the API server on its way up.
for signal in KILL TERM; do
    rm -rf "$tmp/a"
    "$lab" up "$tmp/a" 2>/dev/null & pid=$!
    check "API server starting" eventually 20 test -s "$tmp/a/api/etcd.pid"
    id=$(id_of "$tmp/a")
    kill "-$signal" "$pid"
    wait "$pid" 2>/dev/null || true
    check "$signal while the API server starts: down works" "$lab" down "$tmp/a"
    check "$signal while the API server starts: nothing is left" nothing_left "$id" "$tmp/a"
done

# reset: as `up` left it, with the same API server and BGP sessions, whatever a scenario has left.
L() { "$lab" "$1" "$tmp/a" "${@:2}"; }
k() { L kubectl admin "$@"; }
rm -rf "$tmp/a"
check "up with an API server" "$lab" up "$tmp/a" --lease 10
api=$(cat "$tmp/a/api/apiserver.pid") bird=$(cat "$tmp/a/run/vpc.bird.pid") service=$(k get ps svc-a -o 'jsonpath={.metadata.uid}')
up_again() { eventually 10 bgp_up; }
check "both BGP sessions are up" up_again
mess() {
    L binding acme site-1
    k patch cb acme.site-1 --type merge -p '{"metadata":{"finalizers":["test.invalid/held"]}}' # nobody takes it off
    k patch ps svc-a --type merge -p '{"spec":{"revoked":true}}'
    L run edge1 left sleep 1000
    L run vpc left sleep 1000
    "$lab" kill -STOP "$tmp/a" left vpc # does not end by itself
    echo x >"$tmp/a/log/to-vpc.csv"
    echo x >"$tmp/a/nodes/edge1/audit/audit.jsonl"
    echo 'threads: broken' >>"$tmp/a/nodes/edge1/etc/agent.yaml"
    L exec edge1 ip tuntap add hf01234567 mode tun
    announce edge1 add 7
    eventually 5 route_at_vpc fd00:b:1::1
    L exec edge1 nft -f - <<<'table inet cut { chain in { type filter hook input priority -300; iifname "mgmt0" drop; }; }'
    L exec edge1 nft 'add table inet holdfast_gate'
    mkdir "$tmp/a/nodes/edge1/bpf/pinned"
}
mess >/dev/null # a lab that was used
pids=$(cut -d' ' -f1 "$tmp"/a/run/*.left.pid)
check "reset" "$lab" reset "$tmp/a"
ended() { local p; for p in $pids; do [ ! -e "/proc/$p" ] || return 1; done; }
gone() { ! L exec edge1 "$@" 2>/dev/null | grep .; } # prints nothing
check "what ran has ended, also what was stopped" ended
check "BIRD and the API server are the ones that there were" test "$(cat "$tmp/a/api/apiserver.pid")/$(cat "$tmp/a/run/vpc.bird.pid")" = "$api/$bird"
check "the BGP sessions, too" bgp_up
check "no binding, with a finalizer or without" test -z "$(k get cb -o name)"
check "a new service, which is not revoked" test "$(k get ps -o 'jsonpath={.items[*].metadata.uid}/{.items[*].spec.revoked}')" != "$service/" -a -z "$(k get ps svc-a -o 'jsonpath={.spec.revoked}')"
check "nothing of the packets' logs" test ! -e "$tmp/a/log/to-vpc.csv"
check "nothing of the audit trail" test -z "$(ls -A "$tmp/a/nodes/edge1/audit")"
check "the audit folder is the agent's" node 'echo x >/run/holdfast-lab/node/audit/x'
check "the configuration of the start" fails_with '' grep broken "$tmp/a/nodes/edge1/etc/agent.yaml"
check "no device" fails_with 'does not exist' L exec edge1 ip link show hf01234567
check "no route, here" gone ip -6 route show table 200
check "nor at the VPC" eventually 5 no_route_at_vpc
check "nothing is cut off: the node reaches the API server" ping6 edge1 fd00:a::10
check "no gate" gone nft list tables
check "nothing is pinned" test ! -e "$tmp/a/nodes/edge1/bpf/pinned"
check "reset twice" "$lab" reset "$tmp/a"
check "an option that it does not have" fails_with "unknown option '--frob'" "$lab" reset "$tmp/a" --frob
check "reset of no lab" fails_with "no lab" "$lab" reset "$tmp/none"
id=$(id_of "$tmp/a")
check "down after a reset" "$lab" down "$tmp/a"
check "nothing is left after it" nothing_left "$id" "$tmp/a"
checks_done
