#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# judge_test.sh: the soak fails when it should: series and logs made for it, each with one thing wrong.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/lab/lib/check.sh
. "$here/../lab/lib/check.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
judge() { "$here/judge.sh" "$@"; }

# series [EXPRESSION [MINUTES]]: 30 minutes of a process that is well, but for what the awk expression does to minute i.
series() {
    awk -v m="${2:-30}" 'BEGIN { srand(1); for (i = 1; i <= m; i++) {
        rss = (i < 6 ? 30000 + i * 6000 : 64000) + int(rand() * 900); http2 = 230 + int(rand() * 40); fds = 40 + http2
        threads = 4; claims = i < 4 ? i * 120 : 500; open = 480; up = i < 4 ? i * 120 : 470
        '"${1:-}"'
        print i * 60, "edge1.agent", rss, fds, threads, http2, claims, open, up } }' >"$tmp/s"
}
bad() { # TEXT: the series must be refused, in one line with this text, and in no other
    local out
    ! out=$(judge series "$tmp/s" 500) || { echo "$out"; return 1; }
    [ "$(grep -c ^FAIL <<<"$out")" = 1 ] && grep -q "^FAIL .*$1" <<<"$out" || { echo "$out"; return 1; }
}

series; check "a flat series passes" judge series "$tmp/s" 500
series 'rss += i * 250'; check "RSS that grows by 250 KiB a minute" bad RSS
series 'if (i > 5 && i < 18) rss += 9000'; check "RSS that falls passes" judge series "$tmp/s" 500
series 'rss += i * 60'; check "60 KiB a minute are within the band" judge series "$tmp/s" 500
series 'fds += int(i / 3)'; check "fds that leak slowly: one in three minutes" bad 'fds beyond'
series 'fds += i * 4; http2 += i * 4'; check "connections that are never closed" bad 'fds [0-9]*, then'
series 'if (i > 25) threads = 5'; check "one thread more" bad threads
series 'if (i == 20) claims = 501'; check "a claim more than connectors" bad claims
series 'up = 300'; check "sessions that do not come back" bad sessions
series 'if (i == 9 || i == 10) claims = open = "-"'; check "an API server that gave no answer twice passes" judge series "$tmp/s" 500
series 'if (i > 9 && i < 18) claims = open = "-"'; check "one that was silent for long" bad 'claims: counted'
series '' 8; check "too few samples" fails_with 'at least 9 samples' judge series "$tmp/s" 500
series 'if (i == 9) up = ""'; check "a sample that is not whole" bad 'every sample'
series 'if (i == 9) rss = "-"'; check "a sample that is no number" bad 'every sample'
: >"$tmp/s"; check "no samples" fails_with FAIL judge series "$tmp/s" 500
check "no number of sessions" fails_with judge.sh judge series "$tmp/s" many
check "no file" fails_with judge.sh judge series "$tmp/none" 500

# log LINE...: packets of two connectors, the first of which changes its session at 300.
log() {
    {
        printf '7,1,100,101,e1,fd12::1\n8,1,150,151,e1,fd12::2\n7,2,200,201,e1,fd12::1\n9,1,300,301,e2,fd12::1\n8,2,350,351,e1,fd12::2\n9,2,400,401,e2,fd12::1\n'
        [ $# = 0 ] || printf '%s\n' "$@"
    } >"$tmp/l"
}
log; check "sessions one after the other pass" judge forwarders "$tmp/l"
log 7,3,299,302,e1,fd12::1; check "one packet of the earlier session after the later one" fails_with '1 packets of a session' judge forwarders "$tmp/l"
log 7,3,200,299,e1,fd12::1; check "by the time of its arrival, not its place in the file" judge forwarders "$tmp/l"
log 10,1,500,501,e1,fd12::2 8,3,505,506,e1,fd12::2; check "of the other connector, too" fails_with '1 packets of a session' judge forwarders "$tmp/l"
: >"$tmp/l"; check "no packets are no proof" fails_with 'there were packets' judge forwarders "$tmp/l"
printf '7,1,100,101,e1,fd12::1\n' >"$tmp/l"; check "nor is one that never changed its session" fails_with 'there were packets' judge forwarders "$tmp/l"
checks_done
