#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# coverage.sh BUILD: runs the unit tests of lease, authority and session and a short simulation in a build made with --coverage,
# and prints the branch coverage of each of the three packages. Exits 1 when one is below 98 %, or when a test fails. An
# assertion's failing side is no branch (session/inside_test.c and the mutants see to assertions). The branches that nothing
# takes are listed in BUILD/uncovered.txt; explained.txt says of some why ("FILE TEXT-OF-THE-LINE <TAB> reason").
set -euo pipefail
build=$1 here=$(dirname "$0") want=98
command -v gcovr >/dev/null || { echo "coverage: gcovr is missing (apt-get install gcovr)"; exit 1; }
find "$build" -name '*.gcda' -delete
for t in lease authority session; do
    "$build/test/$t" -j2 --timeout 300 >"$build/$t.log" 2>&1 || { tail -5 "$build/$t.log"; echo "coverage: the tests of $t fail"; exit 1; }
done
"$build/test/sim/sim" scenario test/sim/scenarios/*.sim >"$build/sim.log" || { tail -3 "$build/sim.log"; exit 1; }
"$build/test/sim/sim" run "${SCHEDULES:-300}" 1 1 >>"$build/sim.log" || { tail -3 "$build/sim.log"; exit 1; }
gcovr --root . --object-directory "$build" --filter 'pkg/(session|lease|authority)/' --exclude '.*_test\.c' \
    --exclude-branches-by-pattern '.*assert\(.*' --json "$build/coverage.json" "$build" >/dev/null
jq -r '.files[] | .file as $f | .lines[] | select(.branches | length > 0) | .line_number as $l
    | [$f, $l, (.branches | length), ([.branches[] | select(.count > 0)] | length)] | @tsv' "$build/coverage.json" >"$build/branches.tsv"
awk -F'\t' '$4 < $3 {print $1 ":" $2 ": " $3 - $4 " of " $3}' "$build/branches.tsv" | while IFS=: read -r f l rest; do
    printf '%s:%s:%s: %s\n' "$f" "$l" "$rest" "$(sed -n "${l}s/^ *//p" "$f")"
done >"$build/uncovered.txt"
explained=0
while IFS=$'\t' read -r key _; do
    case $key in ''|'#'*) continue ;; esac
    if awk -v f="${key%% *}" -v t="${key#* }" 'index($0, f ":") == 1 && index($0, t) {found = 1} END {exit !found}' "$build/uncovered.txt"; then
        explained=$((explained + 1))
    else
        echo "coverage: explained.txt names a branch that is taken, or is not there: $key"
        exit 1
    fi
done <"$here/explained.txt"
awk -F'\t' -v least=$want -v explained=$explained -v left="$(wc -l <"$build/uncovered.txt")" '
    {split($1, p, "/"); all[p[2]] += $3; got[p[2]] += $4}
    END {
        n = split("session lease authority", ps, " ")
        for (i = 1; i <= n; i++) {
            c = 100 * got[ps[i]] / all[ps[i]]
            printf "%s  pkg/%s: %.2f %% of %d branches (at least %d)\n", (c >= least) ? "holds" : "FAILS", ps[i], c, all[ps[i]], least
            if (c >= least) ok++
        }
        printf "coverage: %d of %d figures hold; lines with a branch that nothing takes: %d, of them explained: %d; exceptions in KNOWN_LIMITS.md: 1\n", ok, n, left, explained
        exit ok == n ? 0 : 1
    }' "$build/branches.tsv"
