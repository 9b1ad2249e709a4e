#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# report_test.sh: the runner's verdicts, and what tells packets that must not be, on files made here: no lab is started.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/lab/lib/offline.sh
. "$here/../lib/offline.sh"

# ---- packets: edge1 renewed at 1 and 4 s (L 10 s) and holds epoch 1; edge2 at 5 s, and holds epoch 2 from 20 s on -------------
renewal() { printf '%s000000000 {"type":"MODIFIED","object":{"spec":{"nodeName":"%s","leaseDurationSeconds":10,"renew":{"bootTimeMicros":%s000000}}}}\n' "$1" "$2" "$1"; }
holder() { printf '%s {"type":"MODIFIED","object":{"metadata":{"name":"rc-fd12000000000001b704a3f6","uid":"u"},"spec":{"epoch":%s,"leaseUUID":"l%s","holder":{"node":"%s"}}}}\n' "$1" "$2" "$2" "$3"; }
packets() { # SECOND LINK...
    : >"$D/log/cap.csv"
    while [ $# -gt 0 ]; do
        printf '%s,%s,in,fd12::1:b704:a3f6:0:1,fd20::10,17,72\n' "$(awk -v s="$1" 'BEGIN {printf "%.0f", s * 1e9}')" "$2" >>"$D/log/cap.csv"
        shift 2
    done
}
{ renewal 1 edge1; renewal 4 edge1; renewal 5 edge2; renewal 19 edge2; } >"$D/log/api.watch-providerinstances.log"
{ holder 1000000000 1 edge1; holder 2000000000 1 edge1; holder 20000000000 2 edge2; holder 40000000000 3 edge1; } >"$D/log/api.watch-routeclaims.log"
count() { "$1" 2>/dev/null; }
packets 2 e1 13.9 e1 14.004 e1
check "packets up to a lease after the last renewal" test "$(count past_deadline)" = 0
packets 2 e1 14.1 e1 14.2 e1
check "packets after it are counted" test "$(count past_deadline)" = 2
packets 0.5 e1
check "so are those before the first" test "$(count past_deadline)" = 1
packets 2 e1 4 e2
check "one node's renewal is not another's" test "$(count past_deadline)" = 1
packets 2 e1 19 e1 20.5 e2 21 e2
check "a handover" test "$(count two_forwarders)" = 0
packets 2 e1 20.5 e2 20.6 e1 20.7 e2 20.8 e1
check "packets of the old holder after the first of the new one" test "$(count two_forwarders)" = 2
packets 2 e1 20.5 e2 40.5 e1
check "it may hold the row again" test "$(count two_forwarders)" = 0
packets 2 e1 5 e2
check "nobody forwards before it holds the row" test "$(count two_forwarders)" = 1
: >"$D/log/cap.csv"
check "no packet at all is no proof" test "$(count past_deadline)/$(count two_forwarders)" = "no packet at all/no packet at all"

# Two prefixes on one edge, each with a gate of its own. A foundation's log is in wall clock time, the packets are not.
read -r boot wall < <("$PROBE" clock)
opens() { awk -v d=$((wall - boot)) -v s="$1" 'BEGIN {printf "{\"ts\":%.3f,", s * 1000 + d / 1e6}'; printf '"event":"foundation_%s","node":"edge1","prefix":"%s"}\n' "$2" "$3"; }
{ opens 1 open fd12::1:b704:a3f6:0:0/96; opens 1 open fd12::1:9eac:9a32:0:0/96; opens 5 close fd12::1:9eac:9a32:0:0/96; } >"$D/log/edge1.foundation.log"
packets 2 e1 6 e1
check "another prefix's gate closes: this one's packets go on" test "$(count outside_gates)" = 0
sed -i 's/b704:a3f6/9eac:9a32/' "$D/log/cap.csv"
check "but not that one's" test "$(count outside_gates)" = 1

# ---- how late the machine was: 4 ms at 10.000 s, 30 ms at 20.000 s -------------------------------------------------
printf '10000000000,10004000000\n20000000000,20030000000\n' >"$D/log/late.csv"
check "the longest delay within" test "$(late_between 9000000000 11000000000)" = 4.0
check "only the part of it that is within" test "$(late_between 20020000000 21000000000)" = 10.0
check "none" test "$(late_between 11000000000 12000000000)" = 0.0

# ---- a time that does not hold is measured again, once; anything else is not --------------------------------------
export ACCEPT_SCENARIOS=$tmp/scenarios
mkdir -p "$tmp/scenarios"
fake() { # STATUS OF THE FIRST RUN, OF THE SECOND
    rm -f "$tmp/ran" "$tmp/again"
    printf '#!/bin/sh\necho "SLOW  x"\nmkdir -p "$SCENARIO_DIR"\n[ -e %s/ran ] && { touch %s/again; exit %s; }\ntouch %s/ran\nexit %s\n' "$tmp" "$tmp" "$2" "$tmp" "$1" >"$tmp/scenarios/fake.sh"
    chmod +x "$tmp/scenarios/fake.sh"
}
run_fake() { "$root/test/lab/accept/run.sh" --runs 1 --out "$tmp/out-fake" "$@" fake; }
fake 75 0
check "a slow run that holds the second time" run_fake --again
check "was run again" test -e "$tmp/again"
fake 75 75
check "a slow run that is slow again" fails_with '1 failed' run_fake --again
fake 1 0
check "a run that fails" fails_with '1 failed' run_fake --again
check "is not run again" test ! -e "$tmp/again"
fake 75 0
check "without --again a slow run fails" fails_with '1 failed' run_fake
fake 0 0
check "a scenario with a number of its own" test "$("$root/test/lab/accept/run.sh" --runs 1 --out "$tmp/out-fake" 'fake*3' 2>/dev/null | grep -c '^fake  *[123]/3 ok')" = 3
check "a number that is none" fails_with "'x'" "$root/test/lab/accept/run.sh" 'fake*x'
unset ACCEPT_SCENARIOS

# ---- verdicts ----------------------------------------------------------------------------------------------------
f=$tmp/out/runs/revoke.jsonl
lines() { # RC VALUE TRUTH
    printf '{"scenario":"revoke","order":1,"run":1,"seed":2,"rc":%s,"seconds":3,"load":1.5,"log":"x","given":"a <b>","fault":"f","expect":"e","words_bound":"b"}\n' "$1"
    printf '{"scenario":"revoke","order":1,"figure":"last","value":%s,"bound":50,"words":"w"}\n' 3 "$2"
    printf '{"scenario":"revoke","order":1,"truth":"past_deadline","value":%s,"words":"w"}\n' "$3"
}
report() { "$root/test/lab/accept/run.sh" --report --out "$tmp/out" --summary "$tmp/out/S.md" revoke; }
says() { report >"$tmp/text" 2>&1 || true; grep -E -- "$1" "$tmp/text" || { cat "$tmp/text"; return 1; }; }
lines 0 49.9 0 >"$f"
check "everything holds: status 0" report
check "p50, p99 and max" says 'last +2 +3 +49.9 +49.9 +50 ms +holds'
check "counted" says '^accept: 3 passed, 0 failed, 0 known limits'
check "the summary has the same" grep -q '^| revoke | last | 2 | 3 | 49.9 | 49.9 | 50 ms | holds |' "$tmp/out/S.md"
check "words are escaped in HTML" grep -q 'a &lt;b&gt;' "$tmp/out/report.html"
check "nothing is loaded from elsewhere" fails_with '' grep -E '(src|href)=' "$tmp/out/report.html"
lines 0 50.1 0 >"$f"
check "one value over the bound: status 1" fails_with 'FAILS' report
check "counted as failed" says '^accept: 2 passed, 1 failed'
printf '| x | `accept revoke/last` |\n' >"$KNOWN_LIMITS"
check "a known limit: status 0" report
check "counted in the last line" says '^accept: 2 passed, 0 failed, 1 known limits'
: >"$KNOWN_LIMITS"
lines 0 null 0 >"$f"
check "a value that could not be measured does not hold" says 'last +2 .* FAILS'
lines 0 3 1 >"$f"
check "a packet past a deadline does not hold" says '^accept: 2 passed, 1 failed.* past a deadline: 1'
lines 1 3 0 >"$f"
check "a run whose other checks fail does not hold" says '1 failed +none +FAILS'
check "an unknown scenario is named" fails_with "there is no scenario 'nobody'" "$root/test/lab/accept/run.sh" nobody
check "a number that is none" fails_with "--runs is 'x'" "$root/test/lab/accept/run.sh" --runs x

# ---- the summary says of which tree it is, by itself ----------------------------------------------------------------
repo=$tmp/repo
mkdir -p "$repo"/test/lab/{accept,scenarios} "$tmp/scenarios"
cp "$root"/test/lab/accept/{run.sh,report.jq,timeline.sh} "$repo/test/lab/accept/"
printf '#!/bin/sh\nmkdir -p "$SCENARIO_DIR"\n' >"$repo/test/lab/scenarios/fake.sh"
chmod +x "$repo/test/lab/scenarios/fake.sh"
printf '# truth\n' >"$repo/ACCEPTANCE.md"
in_repo() { git -C "$repo" -c user.name=t -c user.email=t@example.invalid "$@"; }
{ in_repo init -q && in_repo add . && in_repo commit -qm first; } >/dev/null
rev=$(in_repo rev-parse --short HEAD)
summary_of() { ACCEPT_SCENARIOS=$repo/test/lab/scenarios "$repo/test/lab/accept/run.sh" --runs 1 --out "$tmp/out-repo" --summary "$repo/ACCEPTANCE.md" "$@" fake >/dev/null 2>&1; sed -n 's/.* after revision \([^,]*\),.*/\1/p' "$repo/ACCEPTANCE.md"; }
check "a clean tree's revision" test "$(summary_of)" = "$rev"
check "the summary itself does not make it dirty" test "$(summary_of)" = "$rev"
echo '# more' >>"$repo/test/lab/scenarios/fake.sh"
check "a changed tree says so" test "$(summary_of)" = "$rev-dirty"
in_repo commit -qam second
check "--report names the tree that was run, not the one that there is now" test "$(summary_of --report)" = "$rev-dirty"
echo new >"$repo/new.c"
check "so does a new file" test "$(summary_of)" = "$(in_repo rev-parse --short HEAD)-dirty"
rm -rf "$repo/.git"
check "no git: unknown" test "$(summary_of)" = unknown

# ---- timeline ----------------------------------------------------------------------------------------------------
awk 'BEGIN {for (i = 0; i < 100; i++) printf "1,%d,%.0f,%.0f,e1,fd12::1\n", i, 5e9 + i * 1e7, 5e9 + i * 1e7 + 1000}' >"$D/log/to-vpc.csv"
: >"$D/log/to-client.csv"
: >"$D/log/to-client2.csv"
printf '5000000000 edge1 foundation_open\n5500000000 edge1 foundation_close\n' >"$D/gates.txt"
printf '5300000000 the <fault>\n' >"$D/moments.txt"
"$root/test/lab/accept/timeline.sh" "$D" "a & b" >"$tmp/t.svg"
well_formed() { python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1"; }
check "the timeline is well-formed" well_formed "$tmp/t.svg"
check "it has the way, the gate and the moment" test "$(grep -cE 'client to VPC via edge1|fill="#3a3"|the &lt;fault&gt;' "$tmp/t.svg")" = 3
checks_done
