#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vrrp.sh: keepalived (VRRPv3) moves an address: connectors' packets go through it, and a service of the node answers at it.
# given: two routers of one VRRP group, priorities 150 and 100, preemption as by default; adverts every second, then every 100 ms
# fault: SIGTERM of the master; its priority lowered below the other's; SIGKILL of its main process; SIGKILL of all of it; SIGSTOP, then SIGCONT; the node goes silent
# expect: the other router takes the address over
# bound: none of ours: what is measured is printed
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/lib/moves.sh
. "$root/test/lab/lib/moves.sh"
# shellcheck source=test/lab/accept/peers/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
peers_need keepalived keepalived
KEEPALIVED=$(PATH=$PATH:/usr/sbin command -v keepalived)
VERSION=$("$KEEPALIVED" --version 2>&1 | awk 'NR == 1 {sub(/^v/, "", $2); print $2}')
VIP=fd00:b:9::9 # on the VPC's side; fd00:d:9::9 on the connectors'

peers_up
# A LAN on either side: the VPC's and the client's links are ports of a bridge.
for n in vpc:e client:u; do
    node=${n%:*} l=${n#*:}
    on $node ip link add br0 type bridge forward_delay 0 mcast_snooping 0
    for i in 1 2; do on $node ip link set "$l$i" master br0; done
    on $node ip link set br0 up
done
on vpc ip addr add fd00:b:9::c/64 dev br0 nodad
on vpc ip route add fd12:0:0:1::/96 via $VIP dev br0 src fd20::10
on client ip addr add fd00:d:9::c/64 dev br0 nodad
on client ip route add fd20::/64 via fd00:d:9::9 dev br0 src $CONNECTOR_ADDR
for i in 1 2; do
    on edge$i ip addr add fd00:b:9::$i/64 dev bgp0 nodad
    on edge$i ip addr add fd00:d:9::$i/64 dev und0 nodad
    on edge$i ip route replace fd20::/64 via fd00:b:9::c dev bgp0
    on edge$i ip route add fd12:0:0:1::/96 via fd00:d:9::c dev und0
    # shellcheck disable=SC2016
    "$LAB" run "$D" edge$i addresses bash -c 'stdbuf -oL ip -6 -o monitor address | "$1" stamp' _ "$PROBE"
done
peers_traffic

# conf EDGE ADVERT: its configuration; the first address of an IPv6 group is link-local.
conf() {
    local state=MASTER priority=150
    [ "$1" = 1 ] || state=BACKUP priority=100
    cat <<Y
global_defs { router_id edge$1 }
track_file lower {
    file "$D/nodes/edge$1/lower"
    weight 1
    init_file 0
}
vrrp_instance connector {
    interface bgp0
    state $state
    virtual_router_id 51
    priority $priority
    version 3
    advert_int $2
    track_file {
        lower
    }
    virtual_ipaddress {
        fe80::51/64 dev bgp0
        $VIP/64 dev bgp0
    }
    virtual_ipaddress_excluded {
        fd00:d:9::9/64 dev und0
    }
}
Y
}
start() { # EDGE
    local d=$D/nodes/edge$1
    "$LAB" run "$D" "edge$1" keepalived "$KEEPALIVED" --dont-fork --log-console --no-syslog --vrrp --use-file="$d/keepalived.conf" --pid="$d/keepalived.pid" --vrrp_pid="$d/vrrp.pid"
}
vrrp_pid() { cat "$D/nodes/edge1/vrrp.pid"; }
main_pid() { cut -d' ' -f1 "$D/run/edge1.keepalived.pid"; }
none_left() {
    local p
    for p in $(ip netns pids "hf$(sed -n 's/^LAB_ID=//p' "$D/lab.env")-edge1"); do ! grep -x keepalived "/proc/$p/comm" 2>/dev/null || return 1; done
}
# holds: who has the address, from the kernel's own notices.
holds() {
    awk -v a=" $VIP/64 " 'index($0, a) {n = split(FILENAME, p, "/"); print $1, substr(p[n], 1, 5), /Deleted/ ? "drop" : "hold"}' "$D"/log/edge[12].addresses.log
}

# What is sent to the address itself and answered from it, where it is: a service of the node, not what the node passes on.
for i in 1 2; do "$LAB" run "$D" edge$i service "$PROBE" recv --bind $VIP --freebind --port 7005 --echo --log "$D/log/service-$i.csv"; done
"$LAB" run "$D" vpc asks "$PROBE" send --bind fd00:b:9::c --to $VIP --port 7005 --interval "$TRAFFIC_US" --stream 5 --log "$D/log/answers.csv"
besides() {
    local up down
    up=$(gap "$D/log/answers.csv" 5 "$1" "$2") || up='?'
    sort -t, -k4,4n "$D"/log/service-[12].csv >"$D/log/service.csv"
    down=$(gap "$D/log/service.csv" 5 "$1" "$2") || down='?'
    awk -F, -v OFS=, 'NF == 6 {print $4, "e" substr(FILENAME, length(FILENAME) - 4, 1), "in", $6, "", 17, 0}' "$D"/log/service-[12].csv >"$D/log/service-cap.csv"
    move "$mover (a service at the address)" "$words" "$up" "$down" "$(old_after_new 1 2 "$1" "$2" "$D/log/service-cap.csv")" "$3" -
}

term() { check "$words: SIGTERM ends it with status 0" test "$("$LAB" stop "$D" keepalived edge1)" = 0; }
kill_main() { "$LAB" kill -KILL "$D" keepalived edge1; }
# A main process that sees the other's end starts it again; the other, when the main process ends, gives the address up.
kill_all() { kill -STOP "$(main_pid)"; kill -KILL "$(vrrp_pid)"; kill -KILL "$(main_pid)"; check "$words: nothing of it is left" eventually 5 none_left; }
stop_all() { kill -STOP "$(main_pid)" "$(vrrp_pid)"; }
cont_all() { kill -CONT "$(main_pid)" "$(vrrp_pid)"; }
again() { start 1; }
# After SIGKILL the address is still there; the new process takes it for its own.
lower() { echo -60 >"$D/nodes/edge1/lower"; }
raise() { echo 0 >"$D/nodes/edge1/lower"; }
dark() { silence edge1; }
light() { unsilence edge1; }

for adv in ${ADVERTS:-1 0.1}; do
    for i in 1 2; do conf $i "$adv" >"$D/nodes/edge$i/keepalived.conf"; done
    start 1
    start 2
    settle=$(awk -v a="$adv" 'BEGIN {print 1 + 2 * a}')
    mover="keepalived $VERSION, adverts every $(awk -v a="$adv" 'BEGIN {print a * 1000}') ms"
    strike "$mover" "planned: SIGTERM of the master" term again "$settle"
    strike "$mover" "planned: the master's priority lowered below the other's" lower raise "$settle"
    strike "$mover" "SIGKILL of its main process" kill_main again "$settle"
    strike "$mover" "SIGKILL of all its processes" kill_all again "$settle"
    strike "$mover" "SIGSTOP of the master, SIGCONT 3 s after the takeover" stop_all cont_all "$settle" healed
    strike "$mover" "the master's node goes silent" dark light "$settle" healed
    for i in 1 2; do check "keepalived of edge$i ends" "$LAB" stop "$D" keepalived edge$i; done
done
lanes
checks_done
