#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mutants.sh DIR [PROTECTION...]: takes one protection away, in the agent or the foundation of DIR/bin (a build with
# -DHOLDFAST_MUTANTS), and runs the scenario that mutants.list names: it has to fail, in a check that matches. With another's
# protection away from the start ("beside"), it first has to pass with that alone. Exits 1 unless every one is noticed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
[ $# -ge 1 ] && [ -x "$1/bin/holdfast-agent" ] || { echo "mutants.sh: error: needs the folder of a mutants' build (make accept-mutants)" >&2; exit 2; }
export HOLDFAST_BIN
HOLDFAST_BIN=$(readlink -f "$1/bin")
shift
out=$root/build/accept/mutants
mkdir -p "$out"
noticed=0 missed=0
renice -n -15 -p $$ >/dev/null 2>&1 || true # as the runner

# one NAME SCENARIO LABEL FOUNDATION AGENT: its exit status; the output is in $out/NAME.LABEL.log
one() {
    local f
    f=$(ls "$here/scenarios/$2.sh" "$here/../scenarios/$2.sh" 2>/dev/null | head -n 1)
    MUTANT_FOUNDATION=$4 MUTANT_AGENT=$5 SEED=1 TRANSPORTS=h3 SCENARIO_DIR=$out/work timeout --kill-after=20 600 "$f" >"$out/$1.$3.log" 2>&1
}
verdict() { # NAME SCENARIO WHO GUARD TEXT WORDS
    printf '%-13s %-14s %-10s %-20s %-9s %s\n' "$1" "$2" "$3" "$4" "$5" "$6"
    case $5 in noticed) noticed=$((noticed + 1)) ;; *) missed=$((missed + 1)) ;; esac
}

printf '%-13s %-14s %-10s %-20s %-9s %s\n' protection scenario of 'guard taken away' verdict 'noticed by'
while IFS='|' read -r name scenario who guard beside match; do
    [[ $name == [a-z]* ]] || continue
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    agent='' foundation=$beside
    if [ -n "$beside" ] && ! one "$name" "$scenario" beside "$foundation" ''; then
        verdict "$name" "$scenario" "$who" "$guard" unclear "fails already without $beside: $(grep -m 1 '^FAIL' "$out/$name.beside.log" || echo 'no check')"
        continue
    fi
    if [ "$who" = agent ]; then agent=$guard; else foundation=$guard; fi
    if one "$name" "$scenario" without "$foundation" "$agent"; then
        verdict "$name" "$scenario" "$who" "$guard" MISSED "it passes"
    elif by=$(grep '^FAIL' "$out/$name.without.log" | grep -m 1 -E -- "$match"); then
        verdict "$name" "$scenario" "$who" "$guard" noticed "${by#FAIL  }"
    else
        verdict "$name" "$scenario" "$who" "$guard" unclear "fails for another reason: $(grep -m 1 '^FAIL' "$out/$name.without.log" || echo 'no check')"
    fi
done <"$here/mutants.list"
echo "accept-mutants: $noticed passed, $missed failed"
[ "$missed" = 0 ] && [ "$noticed" -gt 0 ]
