#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_test.sh CONSTANTS: run.sh fails when it should: a wait that is too short, a guard that is not missed, no run at all.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
constants=$(realpath "$1")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
fails_with() { # WHAT TEXT COMMAND...
    local what=$1 text=$2 rc=0
    shift 2
    "$@" >"$tmp/log" 2>&1 || rc=$?
    if [ $rc != 0 ] && grep -q "$text" "$tmp/log"; then passed=$((passed + 1)); else
        failed=$((failed + 1)); echo "$what: exit $rc, output:"; cat "$tmp/log"; fi
}
cat >"$tmp/short" <<SHORT
#!/bin/sh
"$constants" "\$1" | sed 's/TAKEOVER_WAIT .*/TAKEOVER_WAIT 62/'
SHORT
cat >"$tmp/long" <<LONG
#!/bin/sh
"$constants" "\$1" | sed 's/WAIT_OWN .*/WAIT_OWN 64/'
LONG
chmod +x "$tmp/short" "$tmp/long"
fails_with "a wait of 31 s" 'FAILED: assertion violated' "$here/run.sh" "$tmp/short" clock-error
fails_with "a guard that nothing misses" 'FAILED: no counterexample' "$here/run.sh" "$tmp/long" clock-error
fails_with "no run of that name" '0 passed, 0 failed' "$here/run.sh" "$constants" no-such-run
echo "model-runner: $passed passed, $failed failed"
[ "$failed" = 0 ]
