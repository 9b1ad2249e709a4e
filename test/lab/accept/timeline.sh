#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeline.sh LAB-FOLDER TITLE: one run as a picture (SVG on stdout): packets by their way over time, when each edge's gate was
# open, and the moments that the scenario named. From the receivers' logs, gates.txt and moments.txt.
set -euo pipefail
d=$1
touch "$d/gates.txt" "$d/moments.txt"
awk -F, -v title="$2" -v gates="$d/gates.txt" -v moments="$d/moments.txt" '
    function lane(key) { if (!(key in lane_of)) { lane_of[key] = ++lanes; name[lanes] = key } return lane_of[key] }
    function take(key, at) { n++; l[n] = lane(key); t[n] = at; if (!lo || at < lo) lo = at; if (at > hi) hi = at }
    function esc(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
    function x(at) { return 190 + (at - from) * 900 / (to - from) }
    NF != 6 || $4 !~ /^[0-9]+$/ { next }
    FILENAME ~ /to-vpc.csv$/ { take(($1 % 2 ? "client" : "client2") " to VPC via " ($5 == "e1" ? "edge1" : "edge2"), $4); next }
    { take("VPC to " (FILENAME ~ /client2.csv$/ ? "client2" : "client"), $4) }
    END {
        while ((getline line <moments) > 0) { m++; split(line, f, " "); at[m] = f[1]; what[m] = substr(line, length(f[1]) + 2) }
        if (!n) { lo = m ? at[1] : 0; hi = lo + 1e9 }
        from = m && at[1] - 2e9 > lo ? at[1] - 2e9 : lo; to = hi > from ? hi : from + 1e9
        top = 34; row = 34; marks = top + (lanes + 2) * row
        h = marks + 16 + 13 * m + 24
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1110 %d\" font-family=\"sans-serif\" font-size=\"11\">\n", h
        printf "<rect width=\"1110\" height=\"%d\" fill=\"#fff\"/><text x=\"6\" y=\"18\" font-size=\"14\" font-weight=\"bold\">%s</text>\n", h, esc(title)
        step = (to - from) / 10; unit = 1e8
        while (unit < step) unit *= (k++ % 3 == 1 ? 2.5 : 2)
        for (s = 0; from + s <= to; s += unit) {
            printf "<path d=\"M%.1f %dV%d\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%d\" fill=\"#666\" text-anchor=\"middle\">%g s</text>\n", x(from + s), top, marks, x(from + s), h - 6, s / 1e9
        }
        for (i = 1; i <= n; i++) if (t[i] >= from && t[i] <= to) {
            b = int((t[i] - from) * 900 / (to - from)); c = ++count[l[i], b]; if (c > most[l[i]]) most[l[i]] = c; if (b > bins) bins = b
        }
        for (i = 1; i <= lanes; i++) {
            y = top + i * row - 4
            printf "<text x=\"6\" y=\"%d\">%s</text><path d=\"M190 %dH1090\" stroke=\"#ccc\"/><path stroke=\"#2468a8\" d=\"", y - 6, esc(name[i]), y
            for (b = 0; b <= bins; b++) if (count[i, b]) printf "M%d %dv-%.1f", 190 + b, y, 4 + 22 * count[i, b] / most[i]
            print "\"/>"
        }
        y0 = top + lanes * row
        FS = " "
        while ((getline line <gates) > 0) {
            split(line, f, " "); e = f[2] == "edge2" ? 2 : 1
            if (f[3] == "foundation_open" && !open[e]) open[e] = f[1]
            else if (f[3] != "foundation_open" && open[e]) { bar(e, open[e], f[1]); open[e] = 0 }
        }
        for (e = 1; e <= 2; e++) {
            if (open[e]) bar(e, open[e], to)
            printf "<text x=\"6\" y=\"%d\">gate of edge%d open</text>\n", y0 + e * 24 + 4, e
        }
        for (i = 1; i <= m; i++) if (at[i] >= from && at[i] <= to) {
            y = marks + 13 * i
            printf "<path d=\"M%.1f %dV%d\" stroke=\"#c22\" stroke-dasharray=\"3 2\"/>", x(at[i]), top, y - 4
            anchor = x(at[i]) > 800 ? "end" : "start"
            printf "<text x=\"%.1f\" y=\"%d\" fill=\"#c22\" text-anchor=\"%s\">%s (%.3f s)</text>\n", x(at[i]) + (anchor == "end" ? -3 : 3), y, anchor, esc(what[i]), (at[i] - from) / 1e9
        }
        print "</svg>"
    }
    function bar(e, a, b) {
        if (b < from || a > to) return
        if (a < from) a = from
        if (b > to) b = to
        printf "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"8\" fill=\"#3a3\"/>\n", x(a), y0 + e * 24 - 4, x(b) - x(a)
    }' "$d/log/to-vpc.csv" "$d/log/to-client.csv" "$d/log/to-client2.csv"
