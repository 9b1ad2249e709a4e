#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# table_test.sh: what tells how an address moved, and the table of movers, on files made here: no lab is started.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/lab/lib/offline.sh
. "$here/../../lib/offline.sh"
# shellcheck source=test/lab/lib/moves.sh
. "$root/test/lab/lib/moves.sh"

# ---- gap: a packet of stream 1 at each of these times, in ms -----------------------------------------------------------
came() { local t; for t in "$@"; do printf '1,0,0,%s000000,e1,x\n9,0,0,%s000001,e1,x\n' "$t" "$t"; done >"$tmp/came.csv"; }
came 10 11 12 50 51
check "the longest time between two" test "$(gap "$tmp/came.csv" 1 10000000 52000000)" = 38.0
check "the time after the last one counts" test "$(gap "$tmp/came.csv" 1 10000000 151000000)" = 100.0
check "another stream's packets do not" fails_with '' gap "$tmp/came.csv" 2 10000000 52000000

# ---- two edges: MS LINK DIRECTION -----------------------------------------------------------------------------------
capture() { while [ $# -gt 0 ]; do printf '%s000000,%s,%s,fd12::1,fd20::10,%s,72\n' "$1" "$2" "$3" "${PROTO:-17}"; shift 3; done; }
two() { old_after_new 1 2 0 1000000000 "$@"; }
capture 10 e1 in 11 e1 in 50 e2 in 51 e2 in >"$tmp/up"
capture 10 u1 in 12 u1 in 49 u2 in >"$tmp/down"
check "one after the other: none" test "$(two "$tmp/up" "$tmp/down")" = "0 0.0"
capture 10 e1 in 50 e2 in 51 e1 in 53 e1 in >"$tmp/up"
check "packets of the old edge, and how long" test "$(two "$tmp/up")" = "2 3.0"
capture 10 u1 in 30 u2 in >"$tmp/down"
check "the first of either way counts" test "$(two "$tmp/up" "$tmp/down")" = "2 23.0"
capture 10 e1 in 50 e2 in 51 e1 out >"$tmp/up"
check "a packet towards the old edge has not come out of it" test "$(two "$tmp/up")" = "0 0.0"
{ capture 10 e1 in 50 e2 in; PROTO=58 capture 51 e1 in; } >"$tmp/up"
check "a neighbour's question is no traffic" test "$(two "$tmp/up")" = "0 0.0"
capture 10 e1 in >"$tmp/up"
check "nothing of the new edge: not measured" test "$(two "$tmp/up")" = "- -"

# ---- who held it ----------------------------------------------------------------------------------------------------
held() { printf '%s\n' "$@" | both_hold 10000000 90000000; }
check "dropped before the other has it" test "$(held '1000000 edge1 hold' '20000000 edge1 drop' '30000000 edge2 hold')" = "0.0 over"
check "both for a while" test "$(held '1000000 edge1 hold' '20000000 edge2 hold' '35000000 edge1 drop')" = "15.0 over"
check "both to the end and on" test "$(held '1000000 edge1 hold' '20000000 edge2 hold')" = "70.0 still"
check "only what lies within counts" test "$(held '1000000 edge1 hold' '2000000 edge2 hold' '15000000 edge1 drop' '95000000 edge1 hold')" = "5.0 over"
check "gates are said so" test "$(held '1000000 edge1 foundation_open p' '20000000 edge2 foundation_open p' '21000000 edge1 foundation_shut p')" = "1.0 over"
check "held twice is held once" test "$(held '1000000 edge1 hold' '1500000 edge1 hold' '20000000 edge2 hold' '30000000 edge2 drop')" = "10.0 over"

capture 10 e1 in 25 e1 in 45 e1 in 60 e2 in >"$tmp/up"
outside() { printf '%s\n' "$@" >"$tmp/holds"; not_held 1000000 100000000 "$tmp/holds" "$tmp/up"; }
check "packets of edges that hold" test "$(outside '1000000 edge1 hold' '50000000 edge1 drop' '50000000 edge2 hold')" = 0
check "of one that has dropped it" test "$(outside '1000000 edge1 hold' '20000000 edge1 drop' '20000000 edge2 hold')" = 1
check "of one that never held it" test "$(outside '1000000 edge1 hold')" = 1
check "one edge's gate is not the other's" test "$(outside '1000000 edge2 foundation_open p')" = 3
: >"$tmp/up"
check "no packet is no proof" test "$(outside '1000000 edge1 hold')" = -

# ---- a route's way from the node to the router: MS NODE WORDS -----------------------------------------------------------
P=fd12::1:b704:a3f6:0:0/96
routes() {
    : >"$D/log/edge1.routes.log"
    : >"$D/log/vpc.routes.log"
    while [ $# -gt 0 ]; do printf '%s000000 %s\n' "$1" "$3" >>"$D/log/$2.routes.log"; shift 3; done
}
local_gone="Deleted blackhole $P dev lo table 200 proto 199 metric 4294967294 pref medium" far="$P via fd00:b:1::1 dev e1 proto bird src fd20::10 metric 32 pref medium"
routes 100 edge1 "$local_gone" 107 vpc "Deleted $far"
check "withdrawn here, then there" test "$(remote_withdrawal edge1 50000000)" = 7.0
routes 100 edge1 "$local_gone" 130 vpc "${far/b:1::1 dev e1/b:2::1 dev e2}"
check "replaced by another edge's" test "$(remote_withdrawal edge1 50000000)" = 30.0
routes 100 edge1 "$local_gone" 99 vpc "Deleted $far"
check "written down in the other order" test "$(remote_withdrawal edge1 50000000)" = 0.0
routes 40 edge1 "$local_gone" 41 vpc "Deleted $far" 100 edge1 "$local_gone"
check "an earlier one does not count" fails_with '' remote_withdrawal edge1 50000000
routes 100 edge1 "$local_gone" 107 vpc "$far"
check "a route through that edge is none" fails_with '' remote_withdrawal edge1 50000000
routes 100 edge1 "$local_gone" 107 vpc "Deleted ${far/b704/b705}"
check "nor another prefix's" fails_with '' remote_withdrawal edge1 50000000
routes 100 edge1 "${local_gone/table 200 /}" 107 vpc "Deleted $far"
check "nor another table's here" fails_with '' remote_withdrawal edge1 50000000
routes 100 edge1 "$local_gone" 107 vpc "Deleted $far" 200 vpc "$far" 300 edge1 "$local_gone" 340 vpc "Deleted $far"
check "the longest of two" test "$(remote_withdrawal edge1 50000000)" = 40.0

# ---- the table ------------------------------------------------------------------------------------------------------
line() { move "$@" >/dev/null; }
run_done() { printf '{"scenario":"vrrp","order":1,"run":1,"seed":2,"rc":%s,"seconds":3,"load":1.5,"log":"x","given":"g","fault":"f","expect":"e","words_bound":"b"}\n' "$1"; }
table() { "$root/test/lab/accept/peers/run.sh" --report --out "$tmp/out" --summary "$tmp/out/P.md" vrrp; }
says() { table >"$tmp/text" 2>&1 || true; grep -E -- "$1" "$tmp/text" || { cat "$tmp/text"; return 1; }; }
begin() { rm -f "$D/figures.jsonl"; }
finish() { { run_done "${1:-0}"; cat "$D/figures.jsonl"; } >"$tmp/out/runs/vrrp.jsonl"; }
begin
line "keepalived 1" "planned" 600.1 600.2 "0 0.0" "0.0 over" 0
line "keepalived 1" "planned" 700.5 400.2 "7 12.5" "3000.0 still" 600
line "Holdfast, h3" "planned" 100 90 "0 0.0" "0.0 over" 0
line "BIRD 2" "killed" 5 6 "9 8.0" - -
finish
check "measured: status 0" table
check "p50, p99 and max, packets, who holds" says 'keepalived 1 +planned +2 +600.1 / 700.5 / 700.5 +400.2 / 600.2 / 600.2 +0 / 7 +0 / 12.5 +0 / 3000, and on +0 / 600'
check "who has no holder" says 'BIRD 2 .* - +-$'
check "counted" says '^accept-peers: 4 passed, 0 failed'
check "the summary has it" grep -q '^| keepalived 1 | planned | 2 | 600.1 / 700.5 / 700.5 |' "$tmp/out/P.md"
check "and what others publish, with the source" grep -qE '^\| kube-vip, ARP \| .* \| <https://kube-vip.io/' "$tmp/out/P.md"
check "and the report's section" grep -q '<td>keepalived 1<td>planned<td>2' "$tmp/peers.html"
finish 1
check "a check that failed: status 1" fails_with '1 failed' table
begin
line "keepalived 1" "planned" '?' 600.2 "0 0.0" "0.0 over" 0
finish
check "a gap that was not measured fails" says 'FAIL  keepalived 1, planned'
check "and counts" fails_with '1 failed' table
for broken in '1 0.1|0.0 over|0' '0 0.0|0.1 over|0' '0 0.0|0.0 still|0' '0 0.0|-|0' '0 0.0|0.0 over|1' '0 0.0|0.0 over|-'; do
    begin
    IFS='|' read -r -a words <<<"$broken"
    line "Holdfast, h2" "planned" 1 1 "${words[@]}"
    finish
    check "Holdfast with $broken: fails" says 'FAIL  Holdfast, h2, planned'
done
: >"$tmp/out/runs/vrrp.jsonl"
run_done 0 >"$tmp/out/runs/vrrp.jsonl"
check "no line at all: fails" fails_with 'accept-peers: 1 passed' table
checks_done
