#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh run  BUILD SECONDS NAME...  replays each corpus, then fuzzes for SECONDS; what is found stays in BUILD/work/NAME
# run.sh keep BUILD NAME...          replaces the corpus in the tree by the smallest set that covers as much (at most 50 files)
# FUZZ_JOBS (1) of them run at a time; FUZZ_IDLE=1: with time that nobody else wants (SCHED_IDLE).
# A finding is an input in BUILD/found; give it to the fuzzer as its argument to see it again.
set -euo pipefail
here=$(dirname "$0")
what=$1 build=$2; shift 2
jobs=${FUZZ_JOBS:-1} idle=() slow=30 # s for one input, by the clock on the wall
[ -z "${FUZZ_IDLE:-}" ] || { idle=(chrt -i 0); slow=600; }
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1

run() { # SECONDS NAME
    local seconds=$1 name=$2 bin=$build/bin/fuzz_$2 corpus=$here/corpus/$2 log=$build/log/$2 dict=() seeds
    mkdir -p "$build/work/$name" "$build/found" "$build/log"
    [ -f "$here/dict/$name" ] && dict=(-dict="$here/dict/$name")
    seeds=$(find "$corpus" -type f 2>/dev/null | wc -l)
    [ "$seeds" -gt 0 ] || { echo "fuzz $name: no corpus in $corpus"; return 1; }
    # Every file once: -runs=0 does not mutate.
    "${idle[@]}" "$bin" -runs=0 -timeout="$slow" -rss_limit_mb=1024 -artifact_prefix="$build/found/$name-" "$corpus" >"$log" 2>&1 ||
        { tail -60 "$log"; echo "fuzz $name: an input of the corpus fails"; return 1; }
    "${idle[@]}" "$bin" -max_total_time="$seconds" -timeout="$slow" -rss_limit_mb=1024 -max_len=16384 -print_final_stats=1 -verbosity=1 "${dict[@]}" \
        -artifact_prefix="$build/found/$name-" "$build/work/$name" "$corpus" >"$log" 2>&1 ||
        { grep -v '^#' "$log" | tail -60; echo "fuzz $name: found something; see $build/found"; return 1; }
    printf 'fuzz %s: %d seeds, %s s, %s runs, %s\n' "$name" "$seeds" "$seconds" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(sed -n 's/.* \(cov: [0-9]* ft: [0-9]*\).*/\1/p' "$log" | tail -1)"
}

keep() { # NAME
    local name=$1 bin=$build/bin/fuzz_$1 corpus=$here/corpus/$1 small=$build/keep/$1
    rm -rf "$small"; mkdir -p "$small" "$build/work/$name"
    # Edges alone, not how often each was taken: that would keep thousands.
    "$bin" -merge=1 -use_counters=0 -timeout=10 "$small" "$corpus" "$build/work/$name" >"$build/log/$name.keep" 2>&1
    # Named by content; seeds written by hand (not 40 hex digits) stay. Of the others the larger ones, up to 2 KiB: they go deep.
    find "$corpus" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
    find "$small" -type f -size -2049c -printf '%s %p\n' | sort -rn | sed "${FUZZ_KEEP:-40}q" | while read -r _ f; do cp "$f" "$corpus/$(sha1sum <"$f" | cut -c1-40)"; done
    # What a seed says already need not be said twice.
    find "$corpus" -type f -regextype posix-extended ! -regex '.*/[0-9a-f]{40}' -printf '%f\n' | while read -r f; do
        twin=$corpus/$(sha1sum <"$corpus/$f" | cut -c1-40); rm -f "$twin"; done
    echo "fuzz $name: $(find "$corpus" -type f | wc -l) files"
}

pass=0 fail=0
if [ "$what" = run ]; then
    seconds=$1; shift
    running=0
    for name in "$@"; do
        if [ "$running" -ge "$jobs" ]; then
            if wait -n; then pass=$((pass + 1)); else fail=$((fail + 1)); fi
            running=$((running - 1))
        fi
        run "$seconds" "$name" &
        running=$((running + 1))
    done
    for ((; running > 0; running--)); do if wait -n; then pass=$((pass + 1)); else fail=$((fail + 1)); fi; done
    echo "fuzz: $pass passed, $fail failed"
    [ "$fail" -eq 0 ]
else
    for name in "$@"; do keep "$name"; done
fi
