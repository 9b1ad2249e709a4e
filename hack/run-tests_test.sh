#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Test of run-tests.sh and sum-results.sh: what counts as a failure, and that an interrupted suite is ended and not left running.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lab/lib/check.sh
. test/lab/lib/check.sh
run=$PWD/hack/run-tests.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" # build/results of its own

# suite TEXT: runs it as a suite's script; the checks below look at the status, the output and the result.
suite() { local rc=0; "$run" s bash -c "$1" >out 2>&1 || rc=$?; echo "$rc" >rc; }
result() { [[ "$(cat build/results/s)" == "$1 "* ]] || { cat build/results/s out; return 1; }; }
status() { [ "$(<rc)" = "$1" ] || { cat rc out; return 1; }; }
says() { grep -qF -- "$1" out || { cat out; return 1; }; }

suite 'echo 3 passed, 0 failed'
check "a good suite" status 0
check "is counted" result "3 0"
suite 'echo 3 passed, 1 failed; exit 1'
check "a failure" status 1
check "is counted with what passed" result "3 1"
suite 'echo "[====] Synthesis: Tested: 4 | Passing: 2 | Failing: 1 | Crashing: 1"; exit 1'
check "Criterion's line" result "2 2"
suite 'echo 3 passed, 0 failed; exit 7'
check "a status that its closing line does not tell" result "3 1"
suite 'echo 3 passed, 1 failed'
check "a failure that its status does not tell" status 1
suite ':'
check "no test at all" status 1
check "says so" says "ran no test"
HOLDFAST_SUITE_TIMEOUT=1 suite 'echo 3 passed, 0 failed; exec sleep 100'
check "one that hangs" status 1
HOLDFAST_SUITE_GRACE=1 suite 'echo 3 passed, 0 failed; setsid sleep 60 & echo $! >left'
check "one that leaves a process with its output" status 1
check "says so too" says "a process that it started holds its output"
kill "$(<left)"

# interrupted SIGNAL TEXT [AGAIN]: sends it to run-tests.sh alone, as make's or a terminal's group would, once the suite is ready.
interrupted() {
    local pid rc=0
    rm -f ready cleaned
    env --default-signal=INT "$run" s bash -c "$2" >out 2>&1 & pid=$!
    eventually 10 test -e ready >/dev/null
    kill "-$1" "$pid"
    [ -z "${3:-}" ] || { sleep 0.2; kill "-$1" "$pid"; }
    wait "$pid" || rc=$?
    echo "$rc" >rc
}
dead() { [ ! -e "/proc/$(<pid)" ] || [[ $(<"/proc/$(<pid)/stat") == *') Z '* ]]; }
work='trap "sleep 0.3; touch cleaned; exit 143" TERM; echo 3 passed, 0 failed; touch ready; while :; do sleep 0.1; done'
for s in INT:130 TERM:143 HUP:129; do
    interrupted "${s%:*}" "$work"
    check "${s%:*} ends the suite" status "${s#*:}"
    check "${s%:*}: and waits until it has cleaned up" test -e cleaned
    check "${s%:*}: and is no success" result "3 1"
done
HOLDFAST_SUITE_GRACE=1 interrupted TERM 'echo $$ >pid; trap "" TERM; touch ready; while :; do sleep 0.1; done'
check "one that does not end is killed" status 143
check "and gone" eventually 5 dead
interrupted INT 'echo $$ >pid; trap "" TERM; touch ready; while :; do sleep 0.1; done' again
check "the second Ctrl-C kills it" eventually 5 dead
suite 'trap "echo 1 passed, 0 failed; exit 0" INT; kill -INT $$; sleep 5; echo 0 passed, 1 failed; exit 1'
check "SIGINT is not ignored in a suite" status 0

# ---- sum-results.sh
sum() { "${run%/*}/sum-results.sh"; }
results() { # FILE "PASSED FAILED"...
    rm -rf build/results
    while [ $# -gt 0 ]; do mkdir -p "build/results/${1%/*}"; echo "$2 1" >"build/results/$1"; shift 2; done
}
results gcc/a '3 0' gcc/b '4 0' gcc-address-undefined/a '3 0' gcc-thread/c '2 0'
check "sum: all good" sum
check "sum: the last line" test "$(sum | tail -n 1)" = "12 passed, 0 failed"
results gcc/a '3 0' gcc/b '4 1'
check "sum: a failure" fails_with "7 passed, 1 failed" sum
results gcc/a '3 0' gcc-address-undefined/a '2 0'
check "sum: a test less with sanitizers" fails_with "gcc-address-undefined/a: 2 tests, but 3 without sanitizers" sum
results gcc/a '0 0'
check "sum: nothing passed" fails_with "0 passed, 0 failed" sum
rm -rf build/results
check "sum: nothing ran" fails_with "0 passed, 0 failed" sum
checks_done
