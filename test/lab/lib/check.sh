# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Counts checks of a shell test and prints the closing line; sourced.

CHECKS_PASSED=0 CHECKS_FAILED=0

# check NAME COMMAND...: passes when the command succeeds; its output is shown only when it fails.
check() {
    local name=$1 out
    shift
    if out=$("$@" 2>&1); then
        CHECKS_PASSED=$((CHECKS_PASSED + 1))
        printf 'ok    %s\n' "$name"
    else
        CHECKS_FAILED=$((CHECKS_FAILED + 1))
        printf 'FAIL  %s\n' "$name"
        sed 's/^/      | /' <<<"$out" | tail -n 30
        return 0
    fi
}

# fails_with TEXT COMMAND...: the command must fail and say TEXT.
fails_with() {
    local text=$1 out
    shift
    if out=$("$@" 2>&1); then
        printf 'succeeded, but should have failed with "%s":\n%s\n' "$text" "$out"
        return 1
    fi
    [[ $out == *"$text"* ]] || { printf 'failed without saying "%s":\n%s\n' "$text" "$out"; return 1; }
}

# eventually SECONDS COMMAND...: tries until it succeeds.
eventually() {
    local end=$((SECONDS + $1)) out
    shift
    until out=$("$@" 2>&1); do
        if ((SECONDS >= end)); then
            printf 'still failing: %s\n%s\n' "$*" "$out"
            return 1
        fi
        sleep 0.05
    done
    printf '%s' "$out"
}

checks_done() {
    printf '%d passed, %d failed\n' "$CHECKS_PASSED" "$CHECKS_FAILED"
    [ "$CHECKS_FAILED" = 0 ] && [ "$CHECKS_PASSED" -gt 0 ]
}
