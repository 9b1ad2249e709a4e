# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Other movers of addresses in the lab's network; sourced by their scenarios after scenarios/lib.sh and lib/moves.sh. No API
# server, no agent: both edges forward between client and VPC host, the mover decides who. edge1 is preferred.
#
#   client (fd12:0:0:1::c)  ---  edge1, edge2  ---  vpc (fd20::10)
#
# The connector's packets are numbered, 1,000 a second each way (TRAFFIC_US=1000); what comes out of which edge is captured where it
# arrives, at the VPC host (e1, e2) and at the client (u1, u2).
# shellcheck disable=SC2154 # root, D, LAB, PROBE come from the scenarios' library
CONNECTOR_ADDR=fd12:0:0:1::c
TRAFFIC_US=${TRAFFIC_US:-1000}

# peers_need PROGRAM PACKAGE
peers_need() {
    PATH=$PATH:/usr/sbin command -v "$1" >/dev/null && return
    echo "${0##*/}: error: no '$1' here, of Debian's package $2: run 'hack/deps.sh --peers' as root once" >&2
    exit 1
}

peers_up() {
    mkdir -p "$D"
    alone
    rm -f "$D"/{figures.jsonl,moments.txt,gates.txt,holds.txt}
    trap scenario_end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    "$LAB" up "$D" --net-only --owner $$ 2>"$D/up.log" || { cat "$D/up.log"; exit 1; }
    local n
    for n in vpc edge1 edge2; do "$LAB" stop "$D" bird $n >/dev/null || true; done # ours has other configurations
    : >"$D/log/to-client2.csv" # which the timeline reads, too
    on client ip addr add $CONNECTOR_ADDR/128 dev lo nodad
}
on() { "$LAB" exec "$D" "$@"; } # NODE COMMAND...

peers_traffic() {
    "$LAB" run "$D" vpc cap "$PROBE" cap --if e1 --if e2 --prefix fd12:0:0:1::/64 --log "$D/log/cap.csv"
    "$LAB" run "$D" client cap "$PROBE" cap --if u1 --if u2 --prefix fd12:0:0:1::/64 --log "$D/log/cap-client.csv"
    "$LAB" run "$D" vpc recv "$PROBE" recv --port 7000 --bind fd20::10 --log "$D/log/to-vpc.csv"
    "$LAB" run "$D" client recv "$PROBE" recv --port 7000 --bind $CONNECTOR_ADDR --log "$D/log/to-client.csv"
    "$LAB" run "$D" client send "$PROBE" send --bind $CONNECTOR_ADDR --to fd20::10 --port 7000 --interval "$TRAFFIC_US" --stream 1
    "$LAB" run "$D" vpc send "$PROBE" send --bind fd20::10 --to $CONNECTOR_ADDR --port 7000 --interval "$TRAFFIC_US" --stream 9
}

# out_of EDGE SINCE: packets that came out of that edge since then (some 2 s ago at most), "UP DOWN".
out_of() {
    tail -qc 400000 "$D/log/cap.csv" "$D/log/cap-client.csv" | awk -F, -v e="${1#edge}" -v s="$2" '
        $3 == "in" && $6 == 17 && $1 >= s && substr($2, 2) == e {n[substr($2, 1, 1)]++} END {print n["e"] + 0, n["u"] + 0}'
}
# only EDGE: in the last half second packets came out of that edge, both ways, and none out of the other.
only() {
    local since=$(($(now_ns) - 500000000)) other=edge1 up down others
    [ "$1" != edge1 ] || other=edge2
    read -r up down < <(out_of "$1" "$since")
    others=$(out_of $other "$since")
    echo "out of $1: $up up, $down down; out of $other: $others"
    [ "$up" -gt 100 ] && [ "$down" -gt 100 ] && [ "$others" = "0 0" ]
}
# through EDGE SINCE: packets both ways came out of it since then.
through() {
    local up down
    read -r up down < <(out_of "$1" "$2")
    [ "$up" -gt 0 ] && [ "$down" -gt 0 ] && now_ns
}

# silence NODE: nothing passes its links any more, in or out, carrier stays, and nobody is told; unsilence NODE.
silence() {
    local chain='priority 0; policy drop;' d='{ bgp0, und0, und1, mgmt0 }'
    on "$1" nft -f - <<<"table netdev dark { chain in { type filter hook ingress devices = $d $chain }; chain out { type filter hook egress devices = $d $chain }; }"
}
unsilence() { on "$1" nft delete table netdev dark; }

# strike MOVER WORDS FAULT HEAL SETTLE [healed]: edge1 forwards; FAULT (a function) strikes; edge2 takes over; 1 s later the neighbours' caches are
# emptied once (a router that restarts, an entry that is collected), 2 s after that HEAL. After SETTLE s both are as before. What the
# caller's `holds` prints, lines for both_hold, says who held the address until HEAL, or, when HEAL itself starts nothing anew (healed),
# until the end. `besides` SINCE UNTIL BOTH, if there is one, writes down more.
strike() {
    local mover=$1 words=$2 fault=$3 heal=$4 settle=$5 mark until healed up down both=- not=- n
    check "$words: only edge1 forwards before" eventually 20 only edge1
    pause_random 0 1500
    mark=$(now_ns)
    moment "$words" "$mark"
    $fault
    check "$words: edge2 takes over" await 20 "packets through edge2" through edge2 "$mark"
    sleep 1
    for n in vpc client; do on $n ip -6 neigh flush all; done
    sleep 2
    healed=$(now_ns) until=$(($(now_ns) - 100000000))
    moment "healed" "$healed"
    $heal
    sleep "$settle"
    up=$(gap "$D/log/to-vpc.csv" 1 "$mark" "$until") || up='?'
    down=$(gap "$D/log/to-client.csv" 9 "$mark" "$until") || down='?'
    if declare -F holds >/dev/null; then
        holds | sort -n >"$D/gates.txt"
        both=$(both_hold "$mark" "$([ "${6:-}" = healed ] && now_ns || echo "$until")" <"$D/gates.txt")
        not=$(not_held "$mark" "$until" "$D/gates.txt" "$D/log/cap.csv" "$D/log/cap-client.csv")
    fi
    move "$mover" "$words" "$up" "$down" "$(old_after_new 1 2 "$mark" "$until" "$D/log/cap.csv" "$D/log/cap-client.csv")" "$both" "$not"
    ! declare -F besides >/dev/null || besides "$mark" "$until" "$both"
}
# lanes: the receiver of a bridge's packets does not know their edge; the capture does. For the timeline.
lanes() {
    sort -t, -k1,1n <(awk -F, '$3 == "in" && $6 == 17 && $2 ~ /^e/ {print $1 "," $2}' "$D/log/cap.csv") <(awk -F, 'NF == 6 {print $4 ",," $0}' "$D/log/to-vpc.csv") |
        awk -F, -v OFS=, 'NF == 2 {e = $2; next} {print $3, $4, $5, $6, e, $8}' >"$D/log/to-vpc.new"
    mv "$D/log/to-vpc.new" "$D/log/to-vpc.csv"
}
