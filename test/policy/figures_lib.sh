# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the figures of the policy; sourced after lib.sh. A figure prints what was measured and what it must be.
# shellcheck disable=SC2154 # root, D, LAB come from the scenarios' library

# shellcheck source=test/lab/lib/fleet.sh
. "$root/test/lab/lib/fleet.sh"
FLEET_SOCK=/run/holdfast-lab/fleet-$$.sock

# figure NAME VALUE OPERATOR BOUND UNIT: prints it and counts whether it meets its bound; what is no number (nothing, null) does not. figures_done: the closing line.
FIGURES_MET=0 FIGURES_MISSED=0
figure() {
    local ok=met
    awk -v a="$2" -v b="$4" -v op="$3" 'BEGIN {exit !(a ~ /^-?[0-9]+([.][0-9]+)?$/ && b ~ /^-?[0-9]+([.][0-9]+)?$/ && (op == "<=" ? a + 0 <= b + 0 : op == ">" ? a + 0 > b + 0 : a + 0 == b + 0))}' || ok=MISSED
    printf 'figure  %-64s %10s %s   (%s %s) %s\n' "$1" "$2" "$5" "$3" "$4" "$ok"
    if [ "$ok" = met ]; then FIGURES_MET=$((FIGURES_MET + 1)); else FIGURES_MISSED=$((FIGURES_MISSED + 1)); fi
}
figures_done() { # [LIMITS]: rows of KNOWN_LIMITS.md that concern these figures
    rm -f "$HOOK_SOCK" "$FLEET_SOCK"
    printf 'figures: %d passed, %d failed%s\n' "$FIGURES_MET" "$FIGURES_MISSED" "${1:+; $1 known limit(s), see KNOWN_LIMITS.md}"
    [ "$FIGURES_MISSED" = 0 ] && [ "$FIGURES_MET" -gt 0 ]
}
quantile() { sort -n | awk -v q="$1" '{v[NR] = $1} END {i = int(q * NR); if (i < q * NR) i++; if (i < 1) i = 1; print v[i]}'; } # Q: of the numbers on stdin
