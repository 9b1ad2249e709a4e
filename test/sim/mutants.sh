#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mutants.sh BUILD MUTANTS COUNT [NAME...]: removes each guard of the agent's core (test/mutants/core.list, by name at run
# time) and of the foundation's core (the table in test/foundation/mutants.sh, by text), one at a time, and looks who
# notices: the simulator within COUNT random schedules or a scenario, else a unit test. Fails when nobody does.
# BUILD and MUTANTS are build/<variant> folders with sim built, MUTANTS with -DHOLDFAST_MUTANTS. SIM_ONLY=1: no unit tests,
# and survivors are no failure; the list tells what the simulator alone sees. PART=agent or PART=foundation: one half.
set -uo pipefail
export LC_ALL=C
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$1 mutants=$2 count=$3 part=${PART:-all}
shift 3
only=("$@")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
killed=0 alive=0 by_sim=0
scenarios=("$root"/test/sim/scenarios/*.sim)

wanted() { [ ${#only[@]} -eq 0 ] || [[ " ${only[*]} " == *" $1 "* ]]; }

# sim BINARY: who noticed, or nothing
sim() {
  local out rc
  out=$(timeout -k 5 300 "$1" first "$count" 2>/dev/null); rc=$?
  if [ $rc -eq 1 ] && [ -n "$out" ]; then
    IFS=$'\t' read -r what n _ <<<"$out"
    echo "$what after $n"
  elif [ $rc -eq 124 ]; then
    echo "it does not end"
  elif [ $rc -ne 0 ]; then
    echo "crash ($rc)"
  elif out=$(timeout -k 5 120 "$1" scenario "${scenarios[@]}" 2>/dev/null | sed -n 's/^FAIL .*\/\([a-z0-9-]*\)\.sim.*/\1/p' | head -1) && [ -n "$out" ]; then
    echo "scenario $out"
  fi
}

result() { # NAME WHO
  if [ -n "$2" ]; then killed=$((killed + 1)); else alive=$((alive + 1)); fi
  printf '%-34s %s\n' "$1" "${2:--- nobody --}"
}

# ---- the agent's core
export HOLDFAST_MUTANT
limit=120 # seconds; more on a machine where the tests need long without a mutant: being slow is no kill
agent_tests() {
  local s first
  for s in lease authority session; do
    if ! first=$(timeout -k 5 "$limit" "$mutants/test/$s" -j2 --fail-fast 2>&1 | sed 's/\x1b\[[0-9;]*m//g' |
                 sed -n 's/^\[FAIL\] \([A-Za-z0-9_:]*\).*/\1/p' | head -1; exit "${PIPESTATUS[0]}"); then
      echo "test ${first:-$s}"; return
    fi
  done
}
agent() {
  local name who begin
  HOLDFAST_MUTANT=
  begin=$SECONDS limit=600
  if [ -z "${SIM_ONLY:-}" ] && who=$(agent_tests) && [ -n "$who" ]; then
    echo "mutants-sim: the unit tests fail without a mutant: $who"; echo "mutants-sim: 0 passed, 1 failed"; exit 1
  fi
  limit=$((120 + 10 * (SECONDS - begin)))
  if who=$(sim "$mutants/test/sim/sim") && [ -n "$who" ]; then
    echo "mutants-sim: the simulator fails without a mutant: $who"; echo "mutants-sim: 0 passed, 1 failed"; exit 1
  fi
  while IFS=$'\t' read -r name _; do
    case $name in ''|'#'*) continue ;; esac
    wanted "$name" || continue
    HOLDFAST_MUTANT=$name
    who=$(sim "$mutants/test/sim/sim")
    [ -n "$who" ] && by_sim=$((by_sim + 1))
    [ -n "$who" ] || [ -n "${SIM_ONLY:-}" ] || who=$(agent_tests)
    result "$name" "$who"
  done < "$root/test/mutants/core.list"
  HOLDFAST_MUTANT=
}

# ---- the foundation's core
flags=(-std=c11 -D_GNU_SOURCE -O2 -w "-I$root/build/inc/sim" "-I$root/test/foundation" "-I$root/pkg")
read -ra libs < <(pkg-config --libs libcjson libcrypto)
objects=("$root/$build"/test/sim/*.o)
read -ra names < <(sed -n 's/^core=(\(.*\))$/\1/p' "$root/test/foundation/mutants.sh")
core=() archives=() unseen=()
for f in "${names[@]}"; do core+=("$root/$build/test/foundation/$f.o"); done
for l in session store authority lease contract base; do archives+=("$root/$build/lib/libhf_$l.a"); done
run() { # NAME FILE OLD NEW: a line of test/foundation/mutants.sh
  local name=$1 file=$2 old=$3 new=$4 who f linked=()
  wanted "fnd.$name" || return 0
  if ! OLD=$old NEW=$new perl -0777 -ne '
      my $p = join "\\s+", map { quotemeta } split /\s+/, $ENV{OLD};
      my $n = () = /$p/g;
      exit 3 if $n != 1;
      s/$p/$ENV{NEW}/; print' "$root/test/foundation/$file.c" >"$tmp/$file.c"; then
    result "fnd.$name" ''; return 0
  fi
  gcc "${flags[@]}" -c -o "$tmp/mutant.o" "$tmp/$file.c"
  for f in "${core[@]}"; do [[ $f == */"$file.o" ]] && linked+=("$tmp/mutant.o") || linked+=("$f"); done
  gcc -o "$tmp/sim" "${objects[@]}" "${linked[@]}" "${archives[@]}" "${libs[@]}"
  who=$(sim "$tmp/sim")
  if [ -z "$who" ] && [ -z "${SIM_ONLY:-}" ]; then
    unseen+=("$name"); return 0
  fi
  [ -n "$who" ] && by_sim=$((by_sim + 1))
  result "fnd.$name" "$who"
}
foundation() {
  local who name table n=0
  # Linked by this script without any change, the simulator must find nothing: else a mixed build would count as a kill.
  gcc -o "$tmp/sim" "${objects[@]}" "${core[@]}" "${archives[@]}" "${libs[@]}"
  if who=$(sim "$tmp/sim") && [ -n "$who" ]; then
    echo "mutants-sim: the simulator fails without a mutant of the foundation: $who"; echo "mutants-sim: 0 passed, 1 failed"; exit 1
  fi
  # the table, and nothing else of that script
  table=$(awk '/^run \(\)|^run\(\)/ { next } /^run / { on = 1 } on { print; n += gsub(/\047/, "&"); if (n % 2 == 0) { on = 0; n = 0 } }' \
          "$root/test/foundation/mutants.sh")
  eval "$table"
  [ ${#unseen[@]} -gt 0 ] || return 0
  # what the simulator does not see is for the unit tests, all in one go: they are compiled once
  "$root/test/foundation/mutants.sh" "$root/$build" "${unseen[@]}" > "$tmp/unit" 2>&1
  for name in "${unseen[@]}"; do
    who=$(sed -n "s/^  $name  *\(.*\)/\1/p" "$tmp/unit")
    [ "$who" = SURVIVED ] && who=''
    result "fnd.$name" "${who:+test $who}"
  done
}

[ "$part" = foundation ] || agent
[ "$part" = agent ] || foundation
echo "$by_sim of $((killed + alive)) guards are noticed by the simulator"
echo "mutants-sim: $killed passed, $alive failed"
[ -n "${SIM_ONLY:-}" ] && exit 0
[ "$alive" -eq 0 ] && { [ "$killed" -ge 60 ] || [ ${#only[@]} -gt 0 ]; }
