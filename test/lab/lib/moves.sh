# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# How a connector's address moved from one edge to the other, by the packets: the same figures for every mover. Sourced after
# scenarios/lib.sh; the edges are told apart by the last digit of a captured link's name (e1, u1: edge1).
# shellcheck disable=SC2154 # D comes from the scenarios' library

# gap FILE STREAM SINCE UNTIL: the longest time between two packets that came, in ms.
gap() { awk -F, -v m="$2" -v s="$3" -v u="$4" '$1 == m && $4 >= s && $4 <= u {if (l && $4 - l > g) g = $4 - l; l = $4} END {if (!l) exit 1; if (u - l > g) g = u - l; printf "%.1f", g / 1e6}' "$1"; }

# old_after_new OLD NEW SINCE UNTIL CAPTURE...: UDP packets that came out of the old edge after the first one that came out of the new
# edge, and how long after it the last of them was, in ms: "0 0.0" when the one ended before the other began.
old_after_new() {
    awk -F, -v o="$1" -v n="$2" -v s="$3" -v u="$4" '
        $3 != "in" || $6 != 17 || $1 < s || $1 > u { next }
        { e = substr($2, length($2)) }
        e == n && (!f || $1 < f) { f = $1 }
        e == o { c++; t[c] = $1 }
        END {
            if (!f) { print "- -"; exit }
            for (i = 1; i <= c; i++) if (t[i] > f) { k++; if (t[i] > l) l = t[i] }
            printf "%d %.1f\n", k, l ? (l - f) / 1e6 : 0
        }' "${@:5}"
}

# both_hold SINCE UNTIL: from lines "NS EDGE WORD ..." (foundation_open and hold: the edge holds the address from then on; any other
# word: no more), how long both edges held it in that time, in ms, and whether they still do at its end (still) or not (over).
both_hold() {
    sort -n | awk -v s="$1" -v u="$2" '
        function upto(t,  a, b) { if (h["edge1"] && h["edge2"]) { a = at > s ? at : s; b = t < u ? t : u; if (b > a) sum += b - a } at = t }
        $1 > u { next }
        { upto($1); h[$2] = $3 == "foundation_open" || $3 == "hold" }
        END { upto(u); printf "%.1f %s\n", sum / 1e6, h["edge1"] && h["edge2"] ? "still" : "over" }'
}

# not_held SINCE UNTIL HOLDS CAPTURE...: UDP packets that came out of an edge that did not hold the address then; HOLDS: a file of lines as
# for both_hold. What is said of holding may be as late as for outside_gates (5 ms; 100 ms before an opening).
not_held() {
    awk -v s="$1" -v u="$2" '
        FNR == NR {
            e = substr($2, 5)
            if ($3 == "foundation_open" || $3 == "hold") { if (!open[e]) { n[e]++; from[e, n[e]] = $1 - 100e6; to[e, n[e]] = 1e18; open[e] = 1 } }
            else if (open[e]) { to[e, n[e]] = $1 + 5e6; open[e] = 0 }
            next
        }
        {
            split($0, f, ",")
            if (f[3] != "in" || f[6] != 17 || f[1] < s || f[1] > u) next
            seen++
            e = substr(f[2], length(f[2]))
            for (i = n[e]; i > 0; i--) if (f[1] >= from[e, i] && f[1] <= to[e, i]) break
            if (!i) bad++
        }
        END { print seen ? bad + 0 : "-" }' "${@:3}"
}

# remote_withdrawal EDGE SINCE: from the moment in which that edge's kernel lost the published route (table 200) to the one in which the
# VPC's router had no route through it any more, in ms; the longest, if it happened more than once since then. By both kernels' own
# notices (20 ms earlier is the same moment: two processes write the times down). Status 1: never withdrawn, or never noticed.
remote_withdrawal() {
    awk -v e="${1#edge}" -v s="$2" '
        { gone = $2 == "Deleted"; prefix = ""; for (i = 2; i <= NF; i++) if ($i ~ /^fd12:.*\/96$/) { prefix = $i; break } }
        prefix == "" || $1 < s - 20e6 { next }
        FNR == NR { if (gone && / table 200 /) { n++; t[n] = $1; p[n] = prefix }; next }
        { through = index($0, " via fd00:b:" e "::1 ") > 0
          for (i = 1; i <= n; i++) if (p[i] == prefix && !(i in far) && $1 >= t[i] - 20e6 && gone == through) far[i] = $1 > t[i] ? $1 - t[i] : 0 }
        END { for (i = 1; i <= n; i++) { if (!(i in far)) exit 1; if (far[i] > m) m = far[i] } if (!n) exit 1; printf "%.1f", m / 1e6 }' \
        "$D/log/$1.routes.log" "$D/log/vpc.routes.log"
}

# move MOVER EVENT GAP-UP GAP-DOWN "PACKETS MS" "MS still|over" NOT-HELD: one line for the table of movers (test/lab/accept/peers); - where
# there is nothing to say.
move() {
    jq -nc --arg m "$1" --arg e "$2" --arg up "$3" --arg down "$4" --arg two "$5" --arg both "$6" --arg held "$7" 'def num: tonumber? // null;
        {mover: $m, event: $e, gap_up: ($up | num), gap_down: ($down | num), packets: ($two | split(" ")[0] | num), overlap: ($two | split(" ")[1] | num),
         both: ($both | split(" ")[0] | num), still: ($both | endswith("still")), not_held: ($held | num)}' >>"$D/figures.jsonl"
    printf '      %s, %s: gap up %s ms, down %s ms; of the old edge after the first of the new one: %s packets (the last after %s ms); both hold: %s ms; out of an edge that does not: %s packets\n' \
        "$1" "$2" "$3" "$4" "${5% *}" "${5#* }" "$6" "$7"
}

# move_of_edges WHAT EVENT GAP-UP GAP-DOWN OLD NEW SINCE UNTIL: the same of Holdfast, from edge OLD to edge NEW, by the lab's capture and the
# foundations' gates.
move_of_edges() {
    gate_times >"$D/gates.txt"
    move "Holdfast, $1" "$2" "$3" "$4" "$(old_after_new "${5#edge}" "${6#edge}" "$7" "$8" "$D/log/cap.csv")" "$(both_hold "$7" "$8" <"$D/gates.txt")" \
        "$(not_held "$7" "$8" "$D/gates.txt" "$D/log/cap.csv")"
}
