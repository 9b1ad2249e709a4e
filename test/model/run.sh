#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh CONSTANTS [NAME...]: the runs of runs.txt, or those with that name; FULL=1 adds the long ones. CONSTANTS is the
# program that prints the model's constants. Exit 1 unless every "hold" visits all its states without a violation, and
# every "goal" and "mutant" finds a counterexample. JOBS (2) runs at once; TRAIL=1 prints the counterexamples.
#
# Exact state storage only: no bit state hashing, no hash compaction, breadth first, so that a counterexample is a
# shortest one and "depth" is the longest distance from the start.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

one() { # DIR INDEX CONSTANTS KIND NAME MODEL UNIT DEFINITION...
    local dir=$1 index=$2 constants=$3 kind=$4 name=$5 model=$6 unit=$7 d flags=(-DSAFETY -DNOREDUCE -DBFS -DMEMLIM=14000 -w) log verdict states depth time why start
    shift 7
    d=$dir/$index
    mkdir "$d"
    cd "$d"
    cp "$here"/*.pml .
    "$constants" "$unit" >constants.h
    start=$(date +%s%N)
    spin -a "$@" "$model" >log 2>&1 || { printf '%-7s %-21s %s: spin refused it: %s\n' "$kind" "$name" "$*" "$(head -1 log)"; return; } >"$d.line"
    case $kind in hold | full) flags+=(-O2) ;; *) flags+=(-O0) ;; esac
    gcc "${flags[@]}" -o pan pan.c
    ./pan "-w$(case $kind in full) echo 26 ;; hold) echo 24 ;; *) echo 20 ;; esac)" >log 2>&1 || true
    log=$(cat log)
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' <<<"$log" | head -1)
    depth=$(sed -n 's/.*depth reached \([0-9]*\).*/\1/p' <<<"$log")
    time=$(awk -v a="$start" -v b="$(date +%s%N)" 'BEGIN { printf "%.1f", (b - a) / 1e9 }')
    why=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' <<<"$log" | head -1)
    case $kind in
    hold | full)
        verdict="holds"
        if ! grep -q 'errors: 0' <<<"$log" || grep -qE 'Search not completed|out of memory|truncated|search depth' <<<"$log"; then
            verdict="FAILED: ${why:-not exhaustive}"
        fi
        ;;
    *)
        if [[ $why == assertion\ violated* ]]; then
            verdict=$([ "$kind" = goal ] && echo "reached after $depth steps" || echo "killed after $depth steps")
        else
            verdict="FAILED: ${why:-no counterexample}"
        fi
        ;;
    esac
    printf '%-6s %-21s %-52s %10s %6s %7s  %s\n' "$kind" "$name" "${*#-D}" "${states:--}" "${depth:--}" "${time}" "$verdict" >"$d.line"
    if [ -n "${TRAIL:-}" ] && ls ./*.trail >/dev/null 2>&1; then
        spin -t -p "$@" "$model" >>"$d.line" 2>&1 || true
    fi
    cd "$dir"
    rm -rf "$d"
}
export -f one
export here

constants=$(realpath "$1")
shift
command -v spin >/dev/null || { echo "model: error: spin is not installed; run 'make deps'" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
begin=$(date +%s)
index=100
while read -r kind name rest; do
    case $kind in '' | '#'*) continue ;; full) [ "${FULL:-0}" = 1 ] || continue ;; esac
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
    index=$((index + 1))
    printf '%s\0' "one $tmp $index $constants $kind $name $rest"
done <"$here/runs.txt" | xargs -0 -r -n1 -P"${JOBS:-2}" bash -euo pipefail -c
compgen -G "$tmp/*.line" >/dev/null || { echo "no run of that name in runs.txt"; echo "model: 0 passed, 0 failed"; exit 1; }
printf '%-6s %-21s %-52s %10s %6s %7s  %s\n' what configuration definitions states depth seconds result
cat "$tmp"/*.line
failed=$(cat "$tmp"/*.line | grep -cE 'FAILED|spin refused' || true)
ran=$(cat "$tmp"/*.line | grep -cE '^(hold|full|goal|mutant)' || true)
echo "$ran runs in $(($(date +%s) - begin)) s; constants from contract/timing.c"
echo "model: $((ran - failed)) passed, $failed failed"
[ "$failed" = 0 ] && [ "$ran" -gt 0 ]
