#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# old_process.sh: edge1's agent is stopped, a new process is started on the same node and takes instance and connector over, and
# then the old one goes on. Its instance has ended: the foundation deleted its device before it accepted the new process, so
# its descriptors are dead; it closes them, ends its sessions, and waits as InstanceTaken until the new one is released.
# Contract sections 1, 2 and 4.
# given: a connector with traffic both ways through edge1, L 10 s
# fault: its agent stopped, another process started on the node, the old one goes on
# expect: the old process has dead descriptors only and waits as InstanceTaken
# bound: 0 packets of the old session after the new one
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
scenario_up --lease 10
with_session
device=$(k admin get ha masque.edge1.vpc-a -o 'jsonpath={.status.device}')
old_pid=$(awk '{print $1}' "$D/run/edge1.agent.pid")
tuns() { find "/proc/$old_pid/fd" -lname '*net/tun' | wc -l; }
check "the old process has a TUN queue open" test "$(tuns)" -ge 1

"$LAB" kill -STOP "$D" agent edge1
stopped=$(now_ns)
LAB_AGENT_NAME=second "$LAB" start "$D" agent edge1
check "the foundation accepts the new process" await 20 "accepted" seen "$D/log/api.watch-providerinstances.log" "$stopped" \
    '.object.spec.nodeName == "edge1" and .object.spec.epoch == 2 and .object.status.acceptedEpoch == 2 and .object.status.acceptedProcessID == .object.spec.processID'
second_ready() { "$LAB" exec "$D" edge1 curl -gsf -m 1 "http://[fd00:c::1]:9880/readyz" -o /dev/null && now_ns; }
check "the new process is ready" await 20 "ready" second_ready
check "the old device is gone" fails_with '' "$LAB" exec "$D" edge1 ip link show "$device"
mark=$(now_ns)
"$LAB" start "$D" connector client2 site-1 -edges 'edge1=[fd00:c::1]:4533' -once -dial-timeout 60s
check "the connector has a session with the new process" session_up client2 edge1 "$mark"
check "packets flow through it" flows client2 "$(now_ns)"
check "no overlap" hand_over client client2 "$stopped"
settled=$(now_ns)
check "the old process still has its descriptors" test "$(tuns)" -ge 1

continued=$(now_ns)
"$LAB" kill -CONT "$D" agent edge1
moment "old process goes on" "$continued"
no_tuns() { [ "$(tuns)" = 0 ] && now_ns; }
check "the old process closes its descriptors" await 5 "closed" no_tuns
check "it says that its device was taken away, or its row" await 5 "lost" logged edge1.agent "$continued" '.event == "session_state" and .what == "instance" and .from == "Held"'
taken() { "$LAB" exec "$D" edge1 curl -gs -m 1 "http://[fd00:c::1]:9780/readyz" | grep -o 'instance failed: InstanceTaken'; }
check "it is not ready: InstanceTaken" await 10 "InstanceTaken" taken
check "its session has ended" await 10 "closed" event "$continued" '.event == "closed"'
sleep 2
until=$(($(now_ns) - 300000000))
check "nothing of the old session passed after it went on, to the VPC" test "$(awk -F, -v t="$stopped" '$1 == 1 && $4 > t {n++} END {print n + 0}' "$D/log/to-vpc.csv")" = 0
check "nor to the connector" test "$(awk -F, -v t="$continued" '$4 > t {n++} END {print n + 0}' "$D/log/to-client.csv")" = 0
check "the new session lost no packet over it, to the VPC" test "$(lost "$D/log/to-vpc.csv" 2 "$settled" "$until")" = 0
check "nor to the connector" test "$(lost "$D/log/to-client2.csv" 9 "$settled" "$until")" = 0
check "the row is the new process's" test "$(k admin get pi masque.edge1 -o 'jsonpath={.spec.epoch} {.spec.releaseTime}')" = "2 "

# It is a candidate again: the new process is released, the old one takes its turn.
mark=$(now_ns)
check "the new process drains" "$LAB" stop "$D" second edge1
check "the old one is ready again, with another identity" await 10 "ready" agent_ready edge1
check "at the next instance epoch" test "$(k admin get pi masque.edge1 -o 'jsonpath={.spec.epoch}')" = 3
session client edge1
check "and has sessions again" session_up client edge1 "$mark"
check "packets flow" flows client "$(now_ns)"
safe
checks_done
