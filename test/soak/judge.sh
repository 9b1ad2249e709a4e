#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# judge.sh - what the soak's records say. Each prints "ok ..." or "FAIL ..." lines and the last one "N passed, N failed".
#
#   judge.sh series FILE SESSIONS   lines "second process rss-KiB fds threads http2 claims open connected", http2: connections that
#                                   hold one fd each; claims: RouteClaims, open: not released; "-": the API server gave no answer
#   judge.sh forwarders FILE        the receiver's log: stream,seq,sent,received,link,source; every session has a stream of its own
#
# Growth is the median of the last third against that of the second one; the first is warm-up. RSS may be 3 % larger, fds 5 %
# and 4 (connections come and go), fds beyond the connections 2; threads not more than in the first two thirds.
set -euo pipefail
usage() { sed -n '5,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] && [ -r "$2" ] || usage
case $1 in
series)
    [[ ${3:-} =~ ^[1-9][0-9]*$ ]] || usage
    awk -v sessions="$3" '
        function verdict(ok, text) { if (ok) { pass++; print "ok    " text } else { fail++; print "FAIL  " text } }
        function median(who, col, from, to,  i, j, t, n, v) {
            for (i = from; i <= to; i++) v[++n] = x[who, i, col]
            for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
            return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        function largest(who, col, from, to,  i, m) { for (i = from; i <= to; i++) if (x[who, i, col] + 0 > m) m = x[who, i, col]; return m }
        NF != 9 { bad++; next }
        { for (i = 1; i <= 9; i++) if (i != 2 && $i !~ /^[0-9]+$/ && !((i == 7 || i == 8) && $i == "-")) bad++
          all++; counted += $7 ~ /^[0-9]+$/
          if (!($2 in n)) who[++whos] = $2
          n[$2]++; for (i = 1; i <= 9; i++) x[$2, n[$2], i] = $i; x[$2, n[$2], 10] = $4 - $6 }
        END {
            verdict(!bad && whos > 0, "every sample is whole (" bad + 0 " are not)")
            for (w = 1; w <= whos; w++) {
                p = who[w]; k = n[p]
                verdict(k >= 9, p ": at least 9 samples (" k ")")
                if (k < 9) continue
                a = int(k / 3); b = int(2 * k / 3)
                r2 = median(p, 3, a + 1, b); r3 = median(p, 3, b + 1, k)
                verdict(r3 <= r2 * 1.03, sprintf("%s: RSS %d KiB, then %d: %+.1f %% (at most +3)", p, r2, r3, (r3 / r2 - 1) * 100))
                f2 = median(p, 4, a + 1, b); f3 = median(p, 4, b + 1, k)
                verdict(f3 <= f2 * 1.05 + 4, sprintf("%s: fds %d, then %d (at most +5 %% and 4)", p, f2, f3))
                o2 = median(p, 10, a + 1, b); o3 = median(p, 10, b + 1, k)
                verdict(o3 <= o2 + 2, sprintf("%s: fds beyond HTTP/2 connections %d, then %d (at most +2)", p, o2, o3))
                t2 = largest(p, 5, 1, b); t3 = largest(p, 5, b + 1, k)
                verdict(t3 <= t2, sprintf("%s: threads %d, then %d (not more)", p, t2, t3))
                c = largest(p, 7, 1, k)
                if (c > claims) claims = c
                up = median(p, 9, a + 1, k)
            }
            if (whos) {
                verdict(counted >= all * 0.8, "claims: counted in " counted " of " all " samples (at least 80 %)")
                verdict(claims <= sessions, sprintf("claims: %d at most, for %d connectors (one each)", claims, sessions))
                verdict(up >= sessions * 0.75, sprintf("sessions: %d in the median (at least 75 %% of %d)", up, sessions))
            }
            printf "%d passed, %d failed\n", pass, fail
            exit fail > 0
        }' "$2"
    ;;
forwarders)
    # A connector keeps its address; its sessions have rising streams. Once a packet of a later session has come, one of an earlier
    # session means that both forwarded.
    sort -t, -s -n -k4,4 "$2" | awk -F, '
        NF == 6 { n++
            if (!($6 in at)) { connectors++; at[$6] = $1 }
            if ($1 < at[$6]) { if (two++ < 5) print "      after stream " at[$6] " of " $6 ": " $0 }
            else { changes += $1 > at[$6]; at[$6] = $1 } }
        END {
            if (two) print "FAIL  " two " packets of a session after a later one of the same connector had forwarded"
            else print "ok    no packet of a session after the first of a later one: " n + 0 " packets, " connectors + 0 " connectors, " changes + 0 " changes"
            seen = n > 0 && changes > 0
            print (seen ? "ok    " : "FAIL  ") "there were packets, and connectors that changed their session"
            printf "%d passed, %d failed\n", !two + seen, (two > 0) + !seen
            exit two > 0 || !seen
        }'
    ;;
*) usage ;;
esac
