#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dashboard.sh DASHBOARD.json METRICS.txt PROMTOOL: every query parses, names metrics that are exported, and groups by and
# shows only labels that those metrics have.
set -euo pipefail
bad=0
jq -e '.panels | length > 0 and all(.targets | length > 0)' "$1" >/dev/null
[ "$(jq '[.panels[].id] | length == (unique | length)' "$1")" = true ]
{
    echo 'groups: [{name: dashboard, rules: ['
    jq -r '.panels[].targets[].expr | sub("\\$instance"; ".*") | "{record: \"a:b\", expr: \(tojson)},"' "$1"
    echo ']}]'
} >"$2.rules"
"$3" check rules "$2.rules" || bad=1
labels_of() { grep -E "^$1(\{| )" "$2" | grep -oE '[a-z]+="' | sed 's/="//'; echo instance; echo job; }
while IFS=$'\t' read -r expr legend; do
    names=$(grep -oE '\b(holdfast|process)_[a-z_]+' <<<"$expr" | sort -u)
    [ -n "$names" ] || { echo "no metric in: $expr"; bad=1; }
    have=
    for m in $names; do
        grep -qE "^$m(\{| )" "$2" || { echo "$m is not exported: $expr"; bad=1; }
        have+=" $(labels_of "$m" "$2" | tr '\n' ' ')"
    done
    for l in $(grep -oE 'by \([^)]*\)' <<<"$expr" | sed 's/by (//; s/)//; s/,/ /g') $(grep -oE '\{\{[a-z]+\}\}' <<<"$legend" | tr -d '{}'); do
        [[ " $have " == *" $l "* ]] || { echo "label $l is not there: $expr ($legend)"; bad=1; }
    done
done < <(jq -r '.panels[].targets[] | [.expr, .legendFormat] | @tsv' "$1")
exit $bad
