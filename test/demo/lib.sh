# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The demo's tools: a timeline and the summary; facts come from test/lab/lib/facts.sh. Sourced by demo.sh.

# ---- timeline ----------------------------------------------------------------------------------------------------
T0=0 STEP=0 STEP_T0=0 STEP_TITLE=''
tl() { # WHO WHAT [NS]
    local t=${3:-$(now_ns)}
    printf '%9s ms  %-12s %s\n' "$(ms_between "$T0" "$t")" "$1" "$2"
    jq -nc --argjson ms "$(ms_between "$T0" "$t")" --argjson step "$STEP" --arg who "$1" --arg what "$2" \
        '{ms: $ms, step: $step, who: $who, what: $what}' >>"$D/timeline.jsonl"
}
step() { # TITLE
    step_end true
    STEP=$((STEP + 1)) STEP_TITLE=$1 STEP_T0=$(now_ns)
    printf '\n== %d. %s\n' "$STEP" "$1"
}
step_end() { # OK
    [ "$STEP" -gt 0 ] || return 0
    jq -nc --argjson n "$STEP" --arg title "$STEP_TITLE" --argjson ok "$1" --argjson ms "$(ms_between "$STEP_T0" "$(now_ns)")" \
        '{step: $n, title: $title, ok: $ok, ms: $ms}' >>"$D/steps.jsonl"
}
fail() {
    printf '\n%9s ms  %-12s FAILED: %s\n' "$(ms_between "$T0" "$(now_ns)")" demo "$*" >&2
    FAILURE=$*
    exit 1
}
# timing NAME MS: a measured figure. bound PATH MS FITS: one of contract section 12's paths; with HOLDFAST_BOUNDS=report (slow
# builds: sanitizers) it is measured and shown, but not held against the build.
timing() { jq -nc --arg n "$1" --argjson v "$2" '{($n): $v}' >>"$D/timings.jsonl"; }
bound() {
    jq -nc --arg p "$1" --argjson ms "$2" --argjson fit "$3" --argjson only_report "$([ "${HOLDFAST_BOUNDS:-}" = report ] && echo true || echo false)" \
        '{path: $p, ms: $ms, mustFitMs: $fit, fits: ($ms <= $fit), ok: ($ms <= $fit or $only_report)}' >>"$D/bounds.jsonl"
}

must() { # VARIABLE SECONDS WHAT COMMAND...
    local -n ret_must=$1
    shift
    ret_must=$(await "$@") || fail "not seen within $1 s: $2"
}

# explains: what `kubectl holdfast explain` says of the suspended connector, from the objects and both nodes' trails; shown whole.
# Without one of these words the demo fails, and $missing names it.
missing=''
explains() {
    local words text
    lab exec "$D" api "${PROBE%/*}/kubectl-holdfast" explain site-1 "$D"/nodes/edge1/audit "$D"/nodes/edge2/audit --kubeconfig "$D/api/operator.kubeconfig" \
        >"$D/explain.txt" 2>"$D/explain.err" || { missing="anything: $(cat "$D/explain.err")"; return 1; }
    sed 's/^/              | /' "$D/explain.txt"
    text=$(tr -s ' \n' ' ' <"$D/explain.txt")
    for words in "$@"; do
        grep -qE -- "$words" <<<"$text" || { missing=$words; return 1; }
    done
}
