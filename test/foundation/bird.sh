#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bird.sh - prints the BIRD 2 configuration of an edge node (routes that the foundation publishes) or of their receiver.
#
#   bird.sh edge ROUTER_ID LOCAL LOCAL_AS PEER PEER_AS     reads kernel table 200 (ROUTE_TABLE), announces its /96s
#   bird.sh peer ROUTER_ID AS NEIGHBOR/AS...               installs what the edges announce; compares MED across ASes
#
# BGP_HOLD and BGP_KEEPALIVE (seconds, 3 and 1) set the timers.
set -euo pipefail
usage() { sed -n '4,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
table=${ROUTE_TABLE:-200} hold=${BGP_HOLD:-3} keep=${BGP_KEEPALIVE:-1}
timers="connect delay time 0; error wait time 1,2; connect retry time 1; hold time $hold; keepalive time $keep;"

case ${1:-} in
edge)
    [ $# -eq 6 ] || usage
    cat <<X
router id $2;
protocol device { scan time 1; }
ipv6 table published;
# learn: the routes are the foundation's, not BIRD's. The kernel tells of each change at once; scan is the safety net.
protocol kernel foundation { ipv6 { table published; import all; export none; }; kernel table $table; learn; scan time 10; }
protocol pipe { table published; peer table master6; import none; export all; }
filter announce { if net.len != 96 then reject; bgp_med = 4294967295 - krt_metric; accept; }
protocol bgp up {
    local $3 as $4; neighbor $5 as $6; $timers
    ipv6 { import none; export filter announce; next hop self; };
}
X
    ;;
peer)
    [ $# -ge 4 ] || usage
    id=$2 as=$3
    shift 3
    cat <<X
router id $id;
protocol device { scan time 1; }
protocol kernel { ipv6 { import none; export all; }; scan time 10; }
template bgp edge { local as $as; $timers med metric on; ipv6 { import all; export none; }; }
X
    i=0
    for n in "$@"; do
        i=$((i + 1))
        echo "protocol bgp edge$i from edge { neighbor ${n%/*} as ${n##*/}; }"
    done
    ;;
*) usage ;;
esac
