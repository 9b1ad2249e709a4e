# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The lab's network; sourced.
#
#   client  --- u1 ...... und0 edge1 bgp0 ...... e1 --- vpc (lo: fd20::10, AS 65000)
#          \--- u2 ...... und0 edge2 bgp0 ...... e2 --/
#   client2 --- u1 ...... und1 edge1 mgmt0 ..... m1 --- api (lo: fd00:a::10, ::11 and ::12 for a proxy per edge,
#          \--- u2 ...... und1 edge2 mgmt0 ..... m2 --/      ::20 for a second API server)
#
#   underlay    fd00:c::1 (edge1), fd00:c::2 (edge2); client is fd00:c::c11 towards edge1 and ::c12 towards edge2,
#               client2 ::c21 and ::c22
#   BGP         fd00:b:<i>::1 (edge i, AS 6500<i>), fd00:b:<i>::2 (vpc)
#   management  fd00:a:<i>::1 (edge i), fd00:a:<i>::10 (api)

API_ADDR=fd00:a::10
API2_ADDR=fd00:a::20
VPC_HOST=fd20::10
VPC_NET=fd20::/64
POOL=fd12:0:0:1::/64
export API_ADDR API2_ADDR VPC_HOST VPC_NET POOL

underlay_addr() { printf 'fd00:c::%s' "${1#edge}"; } # of an edge

net_up() {
    local n i
    for n in $NODES; do
        ip netns add "$(ns "$n")"
        # Before any link: no duplicate address detection, no router solicitations; routers where packets pass through.
        in_ns "$n" sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0 \
            net.ipv6.conf.default.router_solicitations=0 net.ipv6.conf.default.accept_ra=0
    done
    for n in edge1 edge2 vpc; do in_ns "$n" sysctl -qw net.ipv6.conf.all.forwarding=1; done
    for i in 1 2; do
        ip -batch - <<X
link add u$i netns $(ns client) type veth peer name und0 netns $(ns edge$i)
link add u$i netns $(ns client2) type veth peer name und1 netns $(ns edge$i)
link add bgp0 netns $(ns edge$i) type veth peer name e$i netns $(ns vpc)
link add mgmt0 netns $(ns edge$i) type veth peer name m$i netns $(ns api)
X
    done
    for i in 1 2; do
        n=client${i#1}
        ip -n "$(ns "$n")" -batch - <<X
link set lo up
addr add fd00:c::c${i}1/128 dev u1 nodad
addr add fd00:c::c${i}2/128 dev u2 nodad
link set u1 up
link set u2 up
route add fd00:c::1/128 dev u1 src fd00:c::c${i}1
route add fd00:c::2/128 dev u2 src fd00:c::c${i}2
X
        ip -n "$(ns edge$i)" -batch - <<X
link set lo up
addr add fd00:c::$i/128 dev und0 nodad
addr add fd00:c::$i/128 dev und1 nodad
addr add fd00:b:$i::1/64 dev bgp0 nodad
addr add fd00:a:$i::1/64 dev mgmt0 nodad
link set und0 up
link set und1 up
link set bgp0 up
link set mgmt0 up
route add fd00:c::c1$i/128 dev und0
route add fd00:c::c2$i/128 dev und1
route add fd00:a::/64 via fd00:a:$i::10
route add $VPC_NET via fd00:b:$i::2
X
    done
    ip -n "$(ns vpc)" -batch - <<X
link set lo up
addr add $VPC_HOST/128 dev lo nodad
addr add fd00:b:1::2/64 dev e1 nodad
addr add fd00:b:2::2/64 dev e2 nodad
link set e1 up
link set e2 up
X
    ip -n "$(ns api)" -batch - <<X
link set lo up
addr add $API_ADDR/128 dev lo nodad
addr add $API2_ADDR/128 dev lo nodad
addr add fd00:a::11/128 dev lo nodad
addr add fd00:a::12/128 dev lo nodad
addr add fd00:a:1::10/64 dev m1 nodad
addr add fd00:a:2::10/64 dev m2 nodad
link set m1 up
link set m2 up
X
}

# Ends what still runs in the lab's namespaces (they are its own, so whatever is in them is its own too), or in some of them.
net_kill_rest() { # [NODE...]
    local n pids i
    for n in ${*:-$NODES}; do
        [ -e "/run/netns/$(ns "$n")" ] || continue
        for ((i = 0; i < 100; i++)); do
            pids=$(ip netns pids "$(ns "$n")")
            [ -n "$pids" ] || break
            # shellcheck disable=SC2086
            kill -KILL $pids 2>/dev/null || true
            sleep 0.02
        done
        [ -z "$pids" ] || say "processes that do not end in $(ns "$n"): $pids"
    done
}

net_down() {
    local n
    for n in $NODES; do
        [ ! -e "/run/netns/$(ns "$n")" ] || ip netns del "$(ns "$n")"
    done
}
