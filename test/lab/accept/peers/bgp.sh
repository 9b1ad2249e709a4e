#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bgp.sh: BIRD announces a connector's prefix from two edges, with BFD; the routers on either side prefer edge1.
# given: both edges announce the /96 to the VPC's router and the VPC's network to the client's, edge2 with the worse MED; BFD 100 ms x 3
# fault: its BGP sessions disabled on edge1; SIGKILL of BIRD; SIGSTOP, then SIGCONT; the node goes silent
# expect: both routers go over to edge2
# bound: none of ours: what is measured is printed
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/lib/moves.sh
. "$root/test/lab/lib/moves.sh"
# shellcheck source=test/lab/accept/peers/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
peers_need bird bird2
BIRD=$(PATH=$PATH:/usr/sbin command -v bird) BIRDC=$(PATH=$PATH:/usr/sbin command -v birdc)
VERSION=$("$BIRD" --version 2>&1 | awk '{print $NF}')

COMMON='protocol device { scan time 1; }
protocol bfd { interface "*" { min rx interval 100 ms; min tx interval 100 ms; idle tx interval 300 ms; multiplier 3; }; }'
TIMERS='connect delay time 0; error wait time 1,2; connect retry time 1; hold time 3; keepalive time 1; bfd on;'
# edge I, router NODE: their configurations. Forwarding is the kernel's own static routes on the edges.
edge() {
    cat <<Y
router id 10.0.0.$1;
$COMMON
protocol static { ipv6; route fd12:0:0:1::/96 unreachable; route fd20::/64 unreachable; }
protocol bgp to_vpc { local fd00:b:$1::1 as 6500$1; neighbor fd00:b:$1::2 as 65000; $TIMERS
    ipv6 { import none; export filter { if net != fd12:0:0:1::/96 then reject; bgp_med = ${1}00; accept; }; next hop self; }; }
protocol bgp to_client { local fd00:d:$1::1 as 6500$1; neighbor fd00:d:$1::2 as 65009; $TIMERS
    ipv6 { import none; export filter { if net != fd20::/64 then reject; bgp_med = ${1}00; accept; }; next hop self; }; }
Y
}
router() { # ID AS NET SOURCE
    cat <<Y
router id 10.0.0.$1;
$COMMON
protocol kernel { scan time 10; ipv6 { import none; export filter { krt_prefsrc = $4; accept; }; }; }
template bgp edge { local as $2; $TIMERS med metric on; ipv6 { import all; export none; }; }
protocol bgp edge1 from edge { neighbor fd00:$3:1::1 as 65001; }
protocol bgp edge2 from edge { neighbor fd00:$3:2::1 as 65002; }
Y
}
start() { "$LAB" run "$D" "$1" bird "$BIRD" -f -c "$D/nodes/$1/peer.conf" -s "$D/nodes/$1/bird.ctl" -P "$D/nodes/$1/bird.pid"; } # NODE

peers_up
mkdir -p "$D/nodes/client"
for i in 1 2; do
    on client ip addr add fd00:d:$i::2/64 dev u$i nodad
    on edge$i ip addr add fd00:d:$i::1/64 dev und0 nodad
    on edge$i ip route add fd12:0:0:1::/96 via fd00:d:$i::2 dev und0
    edge $i >"$D/nodes/edge$i/peer.conf"
done
router 9 65000 b fd20::10 >"$D/nodes/vpc/peer.conf"
router 8 65009 d $CONNECTOR_ADDR >"$D/nodes/client/peer.conf"
for n in edge1 edge2 vpc client; do start $n; done
peers_traffic

bfd_up() { on edge1 "$BIRDC" -s "$D/nodes/edge1/bird.ctl" show bfd sessions | awk '$3 == "Up" {n++} END {exit n != 2}'; }
pid() { cut -d' ' -f1 "$D/run/edge1.bird.pid"; }
disable() { on edge1 "$BIRDC" -s "$D/nodes/edge1/bird.ctl" disable '"to_*"' >/dev/null; }
enable() { on edge1 "$BIRDC" -s "$D/nodes/edge1/bird.ctl" enable '"to_*"' >/dev/null; }
kill_bird() { "$LAB" kill -KILL "$D" bird edge1; }
again() { start edge1; }
stop_bird() { kill -STOP "$(pid)"; }
cont_bird() { kill -CONT "$(pid)"; }
dark() { silence edge1; }
light() { unsilence edge1; }

mover="BIRD $VERSION, BGP with BFD 100 ms x 3"
step() { # as strike, with BFD up before
    check "$2: BFD is up before" eventually 20 bfd_up
    strike "$mover" "$2" "$1" "$3" 2
}
step disable "planned: the sessions of edge1 disabled" enable
step kill_bird "SIGKILL of the daemon" again
step stop_bird "SIGSTOP of the daemon, SIGCONT 3 s after the takeover" cont_bird
step dark "the edge's node goes silent" light
checks_done
