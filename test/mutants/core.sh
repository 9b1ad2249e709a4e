#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# core.sh DIR: removes each guard of core.list, one by one, in a build made with -DHOLDFAST_MUTANTS, and runs the unit tests
# of lease, authority and session in DIR/test until one fails. Prints the table; exits 1 unless every one was killed.
# ONLY=name tests one.
set -uo pipefail
dir=$1 here=$(dirname "$0")
export LC_ALL=C
in_sources() {
  perl -0ne 'while (/base_mutant\(([^)]*)\)/gs) { my $a = $1; while ($a =~ /"([^"]+)"/g) { print "$1\n" } }' \
    $(git ls-files 'pkg/lease/*.c' 'pkg/authority/*.c' 'pkg/session/*.c') | sort -u
}
in_list() { sed -n 's/^\([a-z0-9][^\t#]*\)\t.*/\1/p' "$here/core.list" | sort; }
if ! diff <(in_sources) <(in_list) > /tmp/mutants-core.$$; then
  echo "mutants-core: the sources (<) and core.list (>) name different guards:"; cat /tmp/mutants-core.$$; rm -f /tmp/mutants-core.$$
  echo "mutants-core: 0 passed, 1 failed"; exit 1
fi
rm -f /tmp/mutants-core.$$

# run SUITE FILTER: 0 = all passed; the first failing test on stdout. A time-out is tried again with more time: on a busy machine
# it is no sign that a test noticed.
run() {
  local out rc
  out=$(run_for 120 "$@"); rc=$?
  if [ "$rc" = 124 ]; then out=$(run_for 600 "$@"); rc=$?; fi
  printf '%s' "$out"
  return "$rc"
}
run_for() { # SECONDS SUITE FILTER
  local s=$1; shift
  timeout -k 5 "$s" "$dir/test/$1" -j2 --fail-fast --filter "$2" 2>&1 | sed 's/\x1b\[[0-9;]*m//g' | sed -n 's/^\[FAIL\] \([A-Za-z0-9_:]*\).*/\1/p' | head -1
  return "${PIPESTATUS[0]}"
}
for s in lease authority session; do
  if ! first=$(HOLDFAST_MUTANT='' run $s '*/*'); then
    echo "mutants-core: $s fails without any mutant: $first"; echo "mutants-core: 0 passed, 1 failed"; exit 1
  fi
done

killed=0 alive=0
printf '%-32s %-58s %s\n' mutant 'guard that is removed' 'killed by'
while IFS=$'\t' read -r name what; do
  case $name in ''|'#'*) continue ;; esac
  [ -n "${ONLY:-}" ] && [ "$ONLY" != "$name" ] && continue
  by=
  # the slow tests last: most guards are noticed before
  for s in 'lease */*' 'authority */*' 'session !(session_disturb)/*' 'session session_disturb/*'; do
    if ! first=$(HOLDFAST_MUTANT=$name run ${s% *} "${s#* }"); then by=${first:-${s% *} (crash or time-out)}; break; fi
  done
  if [ -n "$by" ]; then killed=$((killed + 1)); else alive=$((alive + 1)); by='-- SURVIVED --'; fi
  printf '%-32s %-58s %s\n' "$name" "$what" "$by"
done < "$here/core.list"
echo "mutants-core: $killed passed, $alive failed"
[ "$alive" -eq 0 ] && [ "$killed" -gt 0 ]
