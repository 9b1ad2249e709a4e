#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# selftest.sh SIM: the simulator fails when it should: bad files, expectations that do not hold, violations, too few faults.
set -uo pipefail
sim=$1 dir=$(mktemp -d) passed=0 failed=0
trap 'rm -rf "$dir"' EXIT
here=$(dirname "$0")

# refuses NAME PATTERN COMMAND...: exit 1, and the text says why
refuses() {
  local name=$1 pattern=$2 out rc
  shift 2
  out=$("$@" 2>&1); rc=$?
  if [ $rc -eq 1 ] && grep -q -- "$pattern" <<<"$out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1)); echo "FAIL $name: exit $rc, no '$pattern' in:"; tail -3 <<<"$out"
  fi
}
file() { printf '%s\n' "${@:2}" > "$dir/$1.sim"; }

file no-source 'lease 10' 'heal 5s'
file no-action 'source test' 'at 1s no-such-fault node 1'
file no-node 'source test' 'nodes 2' 'at 1s agent-crash node 3'
file wrong 'source test' 'lease 10' 'at 5s expect stopped client 1' 'heal 8s'
file late 'source test' 'lease 10' 'at 5s expect epoch-is client 1 arg 2' 'heal 8s'
refuses no-source 'no source' "$sim" scenario "$dir/no-source.sim"
refuses no-action ':2: no such action' "$sim" scenario "$dir/no-action.sim"
refuses no-node 'does not exist' "$sim" scenario "$dir/no-node.sim"
refuses expectation 'an expectation does not hold: line 3' "$sim" scenario "$dir/wrong.sim"
refuses expectation-number 'an expectation does not hold: line 3' "$sim" scenario "$dir/late.sim"
refuses missing-file 'cannot be read' "$sim" scenario "$dir/none.sim"
# What the contract does not cover violates it, and a violation that was expected and does not come is a failure.
for f in "$here"/scenarios/outside-*.sim; do
  grep -v '^violation' "$f" > "$dir/unexpected.sim"
  refuses "unexpected-$(basename "$f")" 'S1: two' "$sim" scenario "$dir/unexpected.sim"
done
file quiet 'source test' 'violation S1: two' 'lease 10' 'heal 5s'
refuses no-violation 'FAIL' "$sim" scenario "$dir/quiet.sim"
# One schedule alone cannot hold every fault.
refuses too-little 'are wanted' "$sim" run 1 3 1
# One line of each kind that reached one cell: the others are holes. And an impossible cell that was reached is one.
printf 'sim 1 0 0 0\ntest 1 0 0 0\n' > "$dir/cells"
refuses cells-missing 'of neither kind' "$sim" cells "$dir/cells"
printf 'sim ffffffffffffffff ffffffffffffffff ffffffffffffffff 1ffffffff\ntest 1 0 0 0\n' > "$dir/cells"
refuses cells-impossible ' !' "$sim" cells "$dir/cells"
printf 'sim 1 0 0 0\n' > "$dir/cells"
refuses cells-one-side 'nothing of the unit tests' "$sim" cells "$dir/cells"
echo "sim-selftest: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
