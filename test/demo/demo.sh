#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh [DIR]: Holdfast's main job on real parts, as a story with a timeline: API server, two edge nodes with foundation and
# agent, a connector that we did not write, a VPC host. Everything happens in network namespaces of this machine. Exit 0 only
# when every step was seen. The summary is in DIR/summary.json (default build/demo). Needs root; `make demo` builds first.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
D=${1:-$root/build/demo}
PROBE=${HOLDFAST_BIN:-$root/build/bin}/holdfast-probe
LAB=$root/test/lab/lab
# shellcheck source=test/lab/lib/facts.sh
. "$root/test/lab/lib/facts.sh"
# shellcheck source=test/demo/lib.sh
. "$here/lib.sh"
lab() { "$LAB" "$@"; }
k() { local u=$1; shift; lab kubectl "$D" "$u" "$@"; }

[ "$(id -u)" = 0 ] || { echo "demo: error: needs root, for network namespaces (try: sudo make demo)" >&2; exit 1; }
mkdir -p "$D"
D=$(cd "$D" && pwd)
alone
rm -f "$D"/{timeline,steps,timings,bounds}.jsonl "$D"/{summary.json,missing}
: >"$D/timings.jsonl"
: >"$D/bounds.jsonl"
FAILURE=''
finish() {
    local rc=$? left=''
    trap - EXIT INT TERM
    if [ "$rc" != 0 ]; then
        [ -n "$FAILURE" ] || FAILURE="interrupted or ended early (status $rc)"
        step_end false
        show_logs >&2 || true
    fi
    lab down "$D" || { rc=1; left='lab could not be taken down'; FAILURE=${FAILURE:-$left}; }
    summary "$rc"
    exit "$rc"
}
show_logs() {
    local f
    printf '\nLast lines of the logs (whole in %s/log):\n' "$D"
    for f in edge1.agent edge2.agent edge1.foundation edge2.foundation client.connector; do
        [ -s "$D/log/$f.log" ] || continue
        printf -- '--- %s\n' "$f"
        tail -n 6 "$D/log/$f.log" | cut -c1-400
    done
}
summary() {
    [ -s "$D/steps.jsonl" ] || : >"$D/steps.jsonl"
    [ -s "$D/timeline.jsonl" ] || : >"$D/timeline.jsonl"
    jq -n --argjson ok "$([ "$1" = 0 ] && echo true || echo false)" --arg failure "$FAILURE" --argjson ms "$(ms_between "$T0" "$(now_ns)")" \
        --slurpfile steps "$D/steps.jsonl" --slurpfile timeline "$D/timeline.jsonl" \
        --slurpfile timings "$D/timings.jsonl" --slurpfile bounds "$D/bounds.jsonl" \
        '{ok: $ok, failure: (if $failure == "" then null else $failure end), ms: $ms, steps: $steps, timings: ($timings | add // {}),
          bounds: $bounds, timeline: $timeline}' >"$D/summary.json"
    local passed failed
    passed=$(jq '[.steps[], .bounds[] | select(.ok)] | length' "$D/summary.json")
    failed=$(jq '[.steps[], .bounds[] | select(.ok | not)] | length' "$D/summary.json")
    if [ "$1" = 0 ]; then
        printf '\nThe demo passed in %.1f s. Summary: %s\n' "$(ms_between "$T0" "$(now_ns)" | awk '{print $1 / 1000}')" "$D/summary.json"
    else
        printf '\nThe demo FAILED in step %s: %s\nSummary: %s\n' "$STEP" "$FAILURE" "$D/summary.json" >&2
        [ "$failed" -gt 0 ] || failed=1
    fi
    # Steps, and paths that have a bound.
    printf 'demo: %d passed, %d failed\n' "$passed" "$failed"
}
T0=$(now_ns)
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

claim_field() { k admin get rclaim "$CLAIM" -o "jsonpath={$1}"; }
other() { if [ "$1" = edge1 ]; then echo edge2; else echo edge1; fi; }
link_of() { echo "e${1#edge}"; }
stream_of() { if [ "$1" = client ]; then echo 1; else echo 3; fi; } # number of a client's packets

# ---- 1 -----------------------------------------------------------------------------------------------------------
step "API server, CRDs, RBAC, admission; foundation and agent on edge1 and edge2; two instance leases live"
lab up "$D" --owner $$ 2>&1 | sed 's/^/              /'
tl lab "network, API server, CRDs, roles and admission policies are up"
observers
for n in edge1 edge2; do lab start "$D" foundation "$n"; done
tl foundation "started on edge1 and edge2"
mark=$(now_ns)
for n in edge1 edge2; do lab start "$D" agent "$n"; done
for n in edge1 edge2; do
    must t 20 "the foundation of $n accepts the agent's instance lease" instance_ready "$n" 0
    tl foundation "$n: instance lease accepted" "$t"
done
for n in edge1 edge2; do
    must t 20 "$n's agent is ready (/readyz)" agent_ready "$n"
    tl "agent $n" "ready" "$t"
done
k operator get pi 2>&1 | sed 's/^/              /'

# ---- 2 -----------------------------------------------------------------------------------------------------------
step "A stranger is refused; a bound connector gets its /96; ping, TCP with checksum, both ways"
lab exec "$D" client "$root/build/peers/holdfast-connector" -once -explain -tun '' -dial-timeout 3s -edges 'edge1=[fd00:c::1]:4433' \
    -ca "$D/pki/edge-ca.crt" -cert "$D/pki/stranger.crt" -key "$D/pki/stranger.key" >"$D/log/stranger.log" && fail "a stranger was admitted" || true
reason=$(jq -r 'select(.event == "refused") | "\(.status): \(.reason)"' "$D/log/stranger.log")
[[ $reason == 403* ]] || fail "a stranger should get 403 with a reason, got: ${reason:-$(tail -n 1 "$D/log/stranger.log")}"
tl stranger "refused, $reason"
lab binding "$D" acme site-1
tl operator "ConnectorBinding acme.site-1 added"
mark=$(now_ns)
lab start "$D" connector client site-1
must e 10 "the connector is admitted by edge1" event "$mark" '.event == "connected" and .edge == "edge1"'
PREFIX=$(jq -r '.prefix[0]' <<<"$e")
[[ $PREFIX == *:*/96 ]] || fail "the connector got '$PREFIX' instead of a /96"
ADDR=$(lab exec "$D" client ip -6 -j addr show dev hfc0 | jq -r '.[0].addr_info[0].local')
first_try=$(event "$mark" '.event == "connecting"' | jq .t)
tl connector "session on edge1, prefix $PREFIX, address $ADDR, $(jq .ms <<<"$e") ms after its request" "$(jq .t <<<"$e")"
bound "first connect" "$(jq .ms <<<"$e")" 1000
timing firstConnectFromFirstTryMs "$(ms_between "$first_try" "$(jq .t <<<"$e")")"
CLAIM=$(k admin get rclaim -o 'jsonpath={.items[0].metadata.name}')
lab exec "$D" client ping -c 3 -i 0.05 -W 2 fd20::10 >"$D/log/ping-up.log" || fail "no ping from the connector to the VPC host: $(tail -n 3 "$D/log/ping-up.log")"
tl connector "pings the VPC host: $(tail -n 1 "$D/log/ping-up.log")"
lab exec "$D" vpc ping -c 3 -i 0.05 -W 2 "$ADDR" >"$D/log/ping-down.log" || fail "no ping from the VPC host to the connector: $(tail -n 3 "$D/log/ping-down.log")"
tl "VPC host" "pings the connector: $(tail -n 1 "$D/log/ping-down.log")"
x=$(lab exec "$D" client "$PROBE" tcp-xfer --to fd20::10 --port 7001 --count 4000000) || fail "TCP transfer from the connector: $x"
tl connector "4 MB up and down by TCP, SHA-256 agrees, $(jq .ms <<<"$x") ms"
x=$(lab exec "$D" vpc "$PROBE" tcp-xfer --to "$ADDR" --port 7001 --count 4000000) || fail "TCP transfer from the VPC host: $x"
tl "VPC host" "4 MB down and up by TCP, SHA-256 agrees, $(jq .ms <<<"$x") ms"
k operator get pi,ha,ps,rclaim,cb 2>&1 | sed 's/^/              /'
# From here on numbered packets flow all the time, with echo one way, plain the other.
lab run "$D" client send "$PROBE" send --bind "$ADDR" --to fd20::10 --port 7000 --interval 4000 --stream 1 --log "$D/log/echo.csv"
lab run "$D" vpc send "$PROBE" send --bind fd20::10 --to "$ADDR" --port 7000 --interval 4000 --stream 2
mark=$(now_ns)
must t 5 "numbered packets come back as echoes" packet_first "$D/log/echo.csv" "$mark"
must t 5 "numbered packets from the VPC host arrive" packet_first "$D/log/to-client.csv" "$mark"
# Reconnect on the same node: the connector leaves and comes back.
lab stop "$D" connector client >/dev/null || true
must t 5 "the claim is released after the connector left" claim "$mark" '.object.metadata.name == "'"$CLAIM"'" and .object.spec.releaseTime != null'
tl "agent edge1" "connector left: claim released" "$t"
mark=$(now_ns)
lab start "$D" connector client site-1 -once
must e 10 "the connector is admitted again by edge1" event "$mark" '.event == "connected" and .edge == "edge1"'
[ "$(jq -r '.prefix[0]' <<<"$e")" = "$PREFIX" ] || fail "after the reconnect the prefix is $(jq -c .prefix <<<"$e"), it was $PREFIX"
must t 5 "echoes after the reconnect" packet_first "$D/log/echo.csv" "$(jq .t <<<"$e")"
tl connector "back on edge1 with the same prefix, $(jq .ms <<<"$e") ms after its request" "$(jq .t <<<"$e")"
bound "reconnect on the same node" "$(jq .ms <<<"$e")" 300

# ---- 3 -----------------------------------------------------------------------------------------------------------
step "A second connection of the same connector while the first is open, there and back: same claim, same epoch"
lab run "$D" client2 send "$PROBE" send --bind "$ADDR" --freebind --to fd20::10 --port 7000 --interval 4000 --stream 3 --log "$D/log/echo2.csv"
held=$(k admin get rclaim "$CLAIM" -o 'jsonpath={.metadata.uid} {.spec.epoch} {.spec.leaseUUID} {.spec.acquireTime}')
attachment=$(k admin get ha masque.edge1.vpc-a -o 'jsonpath={.metadata.uid} {.status.acceptedInstanceEpoch} {.status.device}')
began=$(now_ns)
gaps=()
for way in "client client2" "client2 client"; do
    old=${way% *} new=${way#* }
    mark=$(now_ns)
    opt=-once # the one that is replaced must not come back by itself; the last one stays, also over a long silence
    [ "$new" = client2 ] || opt=-idle=20s
    lab start "$D" connector "$new" site-1 "$opt"
    must e 10 "the second connection is admitted by edge1" event "$mark" '.event == "connected" and .edge == "edge1"' "$new"
    [ "$(jq -r '.prefix[0]' <<<"$e")" = "$PREFIX" ] || fail "the second connection got $(jq -c .prefix <<<"$e") instead of $PREFIX"
    at=$(jq .t <<<"$e")
    must up 5 "packets of the second session reach the VPC host" stream_first "$D/log/to-vpc.csv" "$(stream_of "$new")" "$at"
    must down 5 "packets from the VPC host reach the second session" packet_first "$D/log/to-$new.csv" "$at"
    must c 5 "the first connection is told" event "$mark" '.event == "closed"' "$old"
    last_up=$(stream_last "$D/log/to-vpc.csv" "$(stream_of "$old")") || fail "no packet of the first session was seen"
    last_down=$(packet_last "$D/log/to-$old.csv" 0 "$(now_ns)") || fail "no packet reached the first session"
    [ "$last_up" -lt "$up" ] || fail "packets of both sessions passed: the first's last $(ms_between "$up" "$last_up") ms after the second's first"
    [ "$last_down" -lt "$down" ] || fail "both sessions received: the first's last $(ms_between "$down" "$last_down") ms after the second's first"
    gap=$(awk -v u="$(ms_between "$last_up" "$up")" -v d="$(ms_between "$last_down" "$down")" 'BEGIN {print (u > d ? u : d)}')
    gaps+=("$gap")
    tl connector "second connection ($new) admitted $(jq .ms <<<"$e") ms after its request; gap up $(ms_between "$last_up" "$up") ms, down $(ms_between "$last_down" "$down") ms" "$up"
done
lab stop "$D" send client2 >/dev/null 2>&1 || true
bound "handoff on the same node (Q)" "$(printf '%s\n' "${gaps[@]}" | sort -n | tail -n 1)" 1000
now=$(k admin get rclaim "$CLAIM" -o 'jsonpath={.metadata.uid} {.spec.epoch} {.spec.leaseUUID} {.spec.acquireTime}')
[ "$held" = "$now" ] || fail "the claim was not held throughout: '$held' became '$now'"
now=$(k admin get ha masque.edge1.vpc-a -o 'jsonpath={.metadata.uid} {.status.acceptedInstanceEpoch} {.status.device}')
[ "$attachment" = "$now" ] || fail "the attachment was not held throughout: '$attachment' became '$now'"
claim "$began" '.object.spec.releaseTime != null' >/dev/null && fail "the claim was released during a handoff"
text_seen "$D/log/vpc.routes.log" "$began" "${PREFIX%/96}" >/dev/null && fail "the route changed during a handoff"
tl "agent edge1" "claim epoch $(awk '{print $2}' <<<"$held"), attachment and route held throughout"

# ---- 4 -----------------------------------------------------------------------------------------------------------
step "The old session is stuck: edge1's data thread frozen; the new request gets 503, the authorization is retired"
# The request has to be with the control thread, and the data thread stopped, before control looks at it.
old=$(claim_field .spec.epoch)
mark=$(now_ns)
lab freeze "$D" agent edge1 main
sleep 0.1 # what was on its way between the threads has arrived
idle=$(eventfds edge1 agent)
lab start "$D" connector client2 site-1 -once -dial-timeout 60s -idle 60s # it waits as long as the edge stands still
reported() { [ "$(eventfds edge1 agent)" -gt "$idle" ] && echo yes; }
must t 10 "the data thread reports the second request to control" reported
lab freeze "$D" agent edge1 hf-data
frozen=$(awk '$2 == "frozen" {print $1}' "$D/log/edge1.freeze-agent-hf-data.log")
lab thaw "$D" agent edge1 main
tl "agent edge1" "data thread frozen, with a second request of the connector on its way" "$frozen"
must retired 5 "the connector's authorization is retired" logged edge1.agent "$frozen" '.event == "session_state" and .name == "acme.site-1" and .to == "Retired"'
must released 5 "the claim is released" claim "$frozen" '.object.spec.releaseTime != null and .object.spec.epoch == '"$old"
must closed 5 "its epoch is closed" claim "$frozen" '.object.status.closedEpoch == '"$old"
tl "agent edge1" "retired $(ms_between "$frozen" "$retired") ms after the freeze: the old session did not stop within Q = 1 s" "$retired"
tl foundation "claim released and epoch $old closed, while the data thread stands still" "$closed"
# longer than Q and the gap, so that both rules meet
lab thaw "$D" agent edge1 hf-data
thawed=$(awk '$2 == "thawed" {print $1}' "$D/log/edge1.freeze-agent-hf-data.log")
must e 10 "the second request is refused" event "$mark" '.event == "refused"' client2
[ "$(jq .status <<<"$e")" = 503 ] || fail "the second request got $(jq .status <<<"$e"), 503 is expected"
tl connector "second request refused with 503, data thread thawed after $(ms_between "$frozen" "$thawed") ms" "$(jq .t <<<"$e")"
n=$(cat "$D"/nodes/edge1/audit/*.jsonl | jq -c 'select(.event == "reject" and .reason == "OldSessionNotStopped" and .object == "acme.site-1")' | wc -l)
[ "$n" = 1 ] || fail "the audit trail has $n rejections with OldSessionNotStopped, one is expected"
must e 10 "a later session is admitted by edge1" event "$thawed" '.event == "connected" and .edge == "edge1"'
must again 5 "echoes of the later session" packet_first "$D/log/echo.csv" "$(jq .t <<<"$e")"
asked=$(event "$thawed" '.event == "connecting"' | jq .t)
for f in to-vpc to-client to-client2 echo; do
    n=$(awk -F, -v thawed="$thawed" -v asked="$asked" 'NF == 6 && $3 < asked && $4 > thawed {n++} END {print n + 0}' "$D/log/$f.csv")
    [ "$n" = 0 ] || fail "$n packets of the old session passed after the thaw ($f.csv)"
done
[ "$(claim_field .spec.epoch)" = $((old + 1)) ] || fail "the later session has claim epoch $(claim_field .spec.epoch), $((old + 1)) is expected"
tl connector "nothing of the old session passed after the thaw; later session with epoch $((old + 1)), first echo $(ms_between "$thawed" "$again") ms after the thaw" "$again"
timing stuckToRetiredMs "$(ms_between "$frozen" "$retired")"

# ---- 5 -----------------------------------------------------------------------------------------------------------
step "The binding is suspended: last packet, gate closed, route gone; resumed: first echo within 1 s"
mark=$(now_ns)
k operator patch cb acme.site-1 --type merge -p '{"spec":{"suspended":true}}' >/dev/null
must susp 5 "the suspension is in the API server" api_received "$mark" patch connectorbindings acme.site-1
tl operator "binding suspended" "$susp"
must gate 5 "the foundation closes the gate" logged edge1.foundation "$mark" '.event == "foundation_close"'
must confirmed 5 "the foundation confirms it" claim "$mark" '.object.status.closedEpoch == .object.spec.epoch'
must route 5 "the route is gone at the VPC host" text_seen "$D/log/vpc.routes.log" "$mark" "^[0-9]+ Deleted ${PREFIX%/96}"
must e 5 "the connector is told" event "$mark" '.event == "closed"'
sleep 1 # a second in which nothing may pass
until=$(now_ns)
last_up=$(packet_last "$D/log/to-vpc.csv" 0 "$until") || fail "no packet at the VPC host at all"
last_down=$(packet_last "$D/log/to-client.csv" 0 "$until") || fail "no packet at the connector at all"
last=$((last_up > last_down ? last_up : last_down))
tl connector "last packet in either direction, $(ms_between "$susp" "$last") ms after the suspension" "$last"
tl foundation "kernel gate closed, $(ms_between "$susp" "$gate") ms after" "$gate"
tl "VPC host" "route gone, $(ms_between "$susp" "$route") ms after" "$route"
tl foundation "closure confirmed in the claim's status, $(ms_between "$susp" "$confirmed") ms after" "$confirmed"
timing suspendToLastPacketMs "$(ms_between "$susp" "$last")"
timing suspendToGateClosedMs "$(ms_between "$susp" "$gate")"
timing suspendToConfirmedMs "$(ms_between "$susp" "$confirmed")"
timing suspendToRouteGoneMs "$(ms_between "$susp" "$route")"
[ "$last" -lt $((susp + 1000000000)) ] || fail "packets passed $(ms_between "$susp" "$last") ms after the suspension"
n=$(cap_count e1 in $((gate + 1000000)) "$until") # 1 ms: the way from the gate to the capture
[ "$n" = 0 ] || fail "$n packets came through edge1 after its gate was closed"
e=$(event "$susp" '.event == "refused"') || fail "the suspended connector is not refused"
tl connector "refused meanwhile with $(jq .status <<<"$e")"
tl operator "kubectl holdfast explain site-1"
explains '^acme.site-1: nobody has authority to forward' 'an operator has suspended the binding .*which has happened' \
    'Next: set spec.suspended to false' 'what takeover allowed released Closed Ready=True' 'Ended by: reject at [^ ]+ on edge1 \(Suspended\)' \
    'effect: possible' 'no 2\. the object names this holder' 'no 3\. the foundation accepted this epoch' 'closed up to epoch [0-9]+' \
    'reject refused Suspended rc-[0-9a-f]{24}' || fail "kubectl holdfast explain does not say: $missing"
mark=$(now_ns)
k operator patch cb acme.site-1 --type merge -p '{"spec":{"suspended":false}}' >/dev/null
must resumed 5 "the resume is in the API server" api_received "$mark" patch connectorbindings acme.site-1
tl operator "binding resumed" "$resumed"
must echo_t 5 "an echo reply after the resume" packet_first "$D/log/echo.csv" "$resumed"
tl connector "first echo reply, $(ms_between "$resumed" "$echo_t") ms after the resume" "$echo_t"
timing resumeToFirstEchoMs "$(ms_between "$resumed" "$echo_t")"
[ "$echo_t" -lt $((resumed + 1000000000)) ] || fail "the first echo came $(ms_between "$resumed" "$echo_t") ms after the resume, more than 1 s"
e=$(event "$resumed" '.event == "connected"')
at=$(jq -r .edge <<<"$e")
[ "$at" = edge1 ] || fail "after the resume the connector is on $at, not on edge1"

# ---- 6 -----------------------------------------------------------------------------------------------------------
step "edge1's agent gets SIGKILL; the connector goes to edge2; no packet through edge1 after its gate closed"
old=$(claim_field .spec.epoch)
mark=$(now_ns)
lab kill -KILL "$D" agent edge1
tl "agent edge1" "SIGKILL" "$mark"
must e 20 "the connector notices" event "$mark" '.event == "closed"'
tl connector "notices: $(jq -r .error <<<"$e")" "$(jq .t <<<"$e")"
lost=$(jq .t <<<"$e")
must taken 20 "edge2's agent takes the claim over" claim "$mark" '.object.spec.epoch == '"$((old + 1))"' and .object.spec.holder.node == "edge2"'
tl "agent edge2" "claim taken over, epoch $old -> $((old + 1))" "$taken"
must closed 20 "edge1's foundation confirms the closure" claim "$mark" '.object.status.closedEpoch == '"$old"
must gate 5 "edge1's foundation closes the gate" logged edge1.foundation "$mark" '.event == "foundation_close"'
reason=$(claim_field .status.closedReason)
[ "$reason" = Confirmed ] || fail "closedReason is '$reason', it should be Confirmed: edge1's foundation lives"
tl foundation "edge1: kernel gate of epoch $old closed" "$gate"
tl foundation "edge1: epoch $old closed on every node, $reason" "$closed"
must open 20 "edge2's foundation opens its gate" claim "$mark" '.object.status.gate.epoch == '"$((old + 1))"' and .object.status.gate.state == "Open"'
tl "foundation" "edge2: gate open for epoch $((old + 1))" "$open"
must e 20 "the connector is admitted by edge2" event "$mark" '.event == "connected" and .edge == "edge2"'
[ "$(jq -r '.prefix[0]' <<<"$e")" = "$PREFIX" ] || fail "on edge2 the prefix is $(jq -c .prefix <<<"$e"), it was $PREFIX"
tl connector "session on edge2, same prefix, $(jq .ms <<<"$e") ms after its request" "$(jq .t <<<"$e")"
must up 10 "an echo through edge2" packet_first "$D/log/echo.csv" "$(jq .t <<<"$e")"
must down 10 "a packet from the VPC host through edge2" packet_first "$D/log/to-client.csv" "$(jq .t <<<"$e")"
tl connector "packets flow both ways again, $(ms_between "$mark" $((up > down ? up : down))) ms after the kill" $((up > down ? up : down))
bound "takeover from a live node" "$(jq .ms <<<"$e")" 1000
timing killToNoticedMs "$(ms_between "$mark" "$lost")"
timing killToPacketsMs "$(ms_between "$mark" $((up > down ? up : down)))"
sleep 0.5
n=$(cap_count e1 in $((gate + 1000000)) "$(now_ns)")
[ "$n" = 0 ] || fail "$n packets came through edge1 after its gate was closed"
n2=$(cap_count e2 in "$closed" "$(now_ns)")
[ "$n2" -gt 0 ] || fail "the capture saw no packet from edge2, so it proves nothing about edge1"
tl "VPC host" "packets through edge1 after its gate closed: 0; through edge2: $n2"

# ---- 7 -----------------------------------------------------------------------------------------------------------
step "edge1's agent starts again with a new identity; edge2's agent gets SIGTERM; the connector is back on edge1"
before=$(k admin get pi masque.edge1 -o 'jsonpath={.spec.processID} {.spec.epoch}')
mark=$(now_ns)
lab start "$D" agent edge1
must t 20 "edge1's new instance is accepted" seen "$D/log/api.watch-providerinstances.log" "$mark" \
    '.object.spec.nodeName == "edge1" and .object.spec.epoch == '"$((${before#* } + 1))"' and .object.status.acceptedProcessID == .object.spec.processID'
after=$(k admin get pi masque.edge1 -o 'jsonpath={.spec.processID} {.spec.epoch}')
[ "${before% *}" != "${after% *}" ] || fail "edge1's new process has the old processID ${after% *}"
tl "agent edge1" "started again: instance epoch ${before#* } -> ${after#* }, new process identity, accepted" "$t"
must t 20 "edge1's agent is ready" agent_ready edge1
timing agentRestartToReadyMs "$(ms_between "$mark" "$t")"
old=$(claim_field .spec.epoch)
mark=$(now_ns)
tl "agent edge2" "SIGTERM" "$mark"
rc=$(lab stop "$D" agent edge2) || true
tend=$(now_ns)
[ "$rc" = 0 ] || fail "edge2's agent ended with status $rc after SIGTERM, 0 is expected"
# The connector may be at edge1 before edge2's release has landed: the takeover then does what the release would have.
must released 10 "edge2's agent releases the claim, or edge1 takes it over first" claim "$mark" \
    '(.object.spec.epoch == '"$old"' and .object.spec.releaseTime != null) or .object.spec.epoch == '"$((old + 1))"
must route 10 "edge2's route is withdrawn at the VPC host" text_seen "$D/log/vpc.routes.log" "$mark" "^[0-9]+ (Deleted )?${PREFIX%/96}"
tl "agent edge2" "claim released (or taken over by edge1 before that)" "$released"
tl "VPC host" "route of edge2 gone or replaced" "$route"
tl "agent edge2" "drained, exit status 0, $(ms_between "$mark" "$tend") ms after SIGTERM" "$tend"
must e 20 "the connector is back on edge1" event "$mark" '.event == "connected" and .edge == "edge1"'
[ "$(jq -r '.prefix[0]' <<<"$e")" = "$PREFIX" ] || fail "back on edge1 the prefix is $(jq -c .prefix <<<"$e"), it was $PREFIX"
must up 10 "an echo through edge1" packet_first "$D/log/echo.csv" "$(jq .t <<<"$e")"
lastbefore=$(packet_last "$D/log/echo.csv" 0 $((up - 1))) || true
tl connector "back on edge1, same prefix, first echo after a gap of $(ms_between "$lastbefore" "$up") ms" "$up"
moves=("$(ms_between "$lastbefore" "$up")")
# The same move twice more, there and back: the figure is the median of three.
for way in "edge1 edge2" "edge2 edge1"; do
    from=${way% *} to=${way#* }
    lab start "$D" agent "$to"
    must t 20 "$to's agent is ready" agent_ready "$to"
    mark=$(now_ns)
    rc=$(lab stop "$D" agent "$from") || true
    [ "$rc" = 0 ] || fail "$from's agent ended with status $rc after SIGTERM, 0 is expected"
    must e 20 "the connector is on $to" event "$mark" '.event == "connected" and .edge == "'"$to"'"'
    must up 10 "an echo through $to" packet_first "$D/log/echo.csv" "$(jq .t <<<"$e")"
    lastbefore=$(packet_last "$D/log/echo.csv" 0 $((up - 1))) || true
    tl connector "moved from $from to $to: a gap of $(ms_between "$lastbefore" "$up") ms" "$up"
    moves+=("$(ms_between "$lastbefore" "$up")")
done
bound "planned move between live nodes" "$(printf '%s\n' "${moves[@]}" | sort -n | sed -n 2p)" 300
# Restart of an agent under its connector.
mark=$(now_ns)
lab kill -KILL "$D" agent edge1
lab start "$D" agent edge1
must e 20 "the connector is admitted by the restarted agent" event "$mark" '.event == "connected" and .edge == "edge1"'
must up 10 "an echo after the restart" packet_first "$D/log/echo.csv" "$(jq .t <<<"$e")"
again=$(started edge1 agent)
tl "agent edge1" "killed and started again under its connector: first echo $(ms_between "$again" "$up") ms after the new process began" "$up"
timing killToEchoThroughRestartedAgentMs "$(ms_between "$mark" "$up")"
bound "agent restart" "$(ms_between "$again" "$up")" 1000

# ---- 8 -----------------------------------------------------------------------------------------------------------
step "UDP is blocked in the connector's network: it falls back from HTTP/3 to HTTP/2, and no two sessions forward"
lab stop "$D" connector client >/dev/null || true
mark=$(now_ns)
lab start "$D" connector client site-1 -transport auto
must e 20 "the connector is admitted over HTTP/3" event "$mark" '.event == "connected" and .transport == null'
at=$(jq -r .edge <<<"$e")
must up 10 "an echo over HTTP/3" packet_first "$D/log/echo.csv" "$(jq .t <<<"$e")"
old=$(claim_field .spec.epoch)
# Nothing that an edge sends over UDP arrives any more; the edge does not know it, so the old session is open when the new one comes.
lab exec "$D" client nft -f - <<<'table inet noudp { chain in { type filter hook input priority -300; udp sport 4433 counter drop; }; }'
blocked=$(now_ns)
udp_dropped() { lab exec "$D" client nft -j list chain inet noudp in | jq '[.nftables[].rule? // empty | .expr[] | .counter? // empty | .packets] | add'; }
tl connector "UDP blocked" "$blocked"
must e 20 "the connector notices" event "$blocked" '.event == "closed"'
noticed=$(jq .t <<<"$e")
tl connector "notices: $(jq -r .error <<<"$e")" "$noticed"
must e 20 "the connector is admitted over HTTP/2" event "$noticed" '.event == "connected" and .transport == "h2" and .edge == "'"$at"'"'
admitted=$(jq .t <<<"$e")
[ "$(jq -r '.prefix[0]' <<<"$e")" = "$PREFIX" ] || fail "over HTTP/2 the prefix is $(jq -c .prefix <<<"$e"), it was $PREFIX"
before=$(udp_dropped)
[ "$before" -gt 0 ] || fail "no UDP packet was seen at the block, so it proves nothing"
must up 10 "an echo over HTTP/2" packet_first "$D/log/echo.csv" "$admitted"
must down 10 "a packet from the VPC host over HTTP/2" packet_first "$D/log/to-client.csv" "$admitted"
tl connector "session over HTTP/2 on $at, $(ms_between "$noticed" "$admitted") ms after it noticed, $(ms_between "$blocked" "$admitted") ms after the block (of which 3 s are its idle time-out, 1 s its dial time-out)" "$admitted"
tl connector "packets flow both ways again, $(ms_between "$admitted" $((up > down ? up : down))) ms after the admission" $((up > down ? up : down))
sleep 1 # 250 packets to the connector; how many of them come over the old session?
n=$(($(udp_dropped) - before))
[ "$n" -le 3 ] || fail "$n UDP packets came from the edge after the session over HTTP/2 was there: the old one still forwards"
[ "$(claim_field .spec.epoch)" = "$old" ] || fail "the claim's epoch is $(claim_field .spec.epoch), it was $old: a change of transport is no takeover"
tl "agent $at" "same claim, epoch $old; UDP packets to the connector in the next second: $n (before: $before), packets over HTTP/2: $(awk -F, -v a="$admitted" '$3 >= a && NF == 6 {n++} END {print n + 0}' "$D/log/to-client.csv")"
timing fallbackBlockToSessionMs "$(ms_between "$blocked" "$admitted")"
timing fallbackNoticedToSessionMs "$(ms_between "$noticed" "$admitted")"
lab exec "$D" client nft delete table inet noudp

# ---- 9 -----------------------------------------------------------------------------------------------------------
step "Audit lines agree with the API server's own audit log by correlation ID; everything is cleaned up"
lab stop "$D" connector client >/dev/null || true
must t 5 "the claim is released at the end" claim "$(now_ns | awk '{print $1 - 2e9}')" '.object.spec.releaseTime != null'
rc=$(lab stop "$D" agent edge1) || true
[ "$rc" = 0 ] || fail "edge1's agent ended with status $rc after SIGTERM, 0 is expected"
"$here/audit-check.sh" "$D" >"$D/audit-check.txt" || { cat "$D/audit-check.txt" >&2; fail "the two audit logs disagree"; }
tl audit "$(tail -n 1 "$D/audit-check.txt")"
for n in edge1 edge2; do
    rc=$(lab stop "$D" foundation "$n") || true
    [ "$rc" = 0 ] || fail "the foundation of $n ended with status $rc after SIGTERM, 0 is expected"
done
lab down "$D"
ip netns list | grep "hf$(sed -n 's/^LAB_ID=//p' "$D/lab.env")-" && fail "namespaces are left over"
tl lab "everything is taken down"
step_end true
STEP=0

printf '\n== Paths of the contract (section 12), measured here\n'
jq -r '[.path, "\(.ms) ms", "must fit \(.mustFitMs) ms", if .fits then "ok" elif .ok then "too slow, but a slow build: only reported" else "TOO SLOW" end] | @tsv' "$D/bounds.jsonl" |
    awk -F'\t' '{printf "   %-34s %12s   %-20s %s\n", $1, $2, $3, $4}'
[ -z "$(jq 'select(.ok | not)' "$D/bounds.jsonl")" ] || fail "a path did not fit its bound: $(jq -rs '[.[] | select(.ok | not) | .path] | join(", ")' "$D/bounds.jsonl")"
