#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - other movers of addresses beside Holdfast, in the same network, with the same traffic, capture and arithmetic.
#
#   run.sh [--runs N] [--seed S] [--out DIR] [--summary FILE] [--report] [SCENARIO...]
#     --runs N       so often (10)                  --out DIR      build/accept/peers
#     --summary F    writes the committed table     --report       only the table, of what --out has
#
# SCENARIO: planned_move, provider_kill (test/lab/accept/scenarios), holdfast, vrrp, bgp (this folder). The acceptance lab's runner runs
# them (its logs, report.html and timelines are in DIR); then one table. Exits 1 when a check failed (the other edge did not take
# over, nothing flowed before), a gap could not be measured, or two edges forwarded for Holdfast. What others do is not judged.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../../.." && pwd)
die() { printf 'accept-peers: error: %s\n' "$*" >&2; exit 2; }
runs=10 seed=1 out=$root/build/accept/peers summary='' report=() names=() args="$*"
while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=${2:?--runs needs a number}; shift ;;
    --seed) seed=${2:?--seed needs a number}; shift ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --summary) summary=${2:?--summary needs a file}; shift ;;
    --report) report=(--report) ;;
    --help) sed -n '3,11s/^# \{0,1\}//p' "$0"; exit ;;
    -*) die "unknown option '$1' (see --help)" ;;
    *) names+=("$1") ;;
    esac
    shift
done
[ ${#names[@]} -gt 0 ] || names=(planned_move provider_kill holdfast vrrp bgp)
rc=0
ACCEPT_SCENARIOS=$here TRAFFIC_US=${TRAFFIC_US:-1000} "$here/../run.sh" --runs "$runs" --seed "$seed" --out "$out" "${report[@]}" "${names[@]}" || rc=$?
[ -s "$out/report.json" ] || exit "$rc"

# What made the figures: a later --report does not change it.
if [ ${#report[@]} = 0 ] || [ ! -s "$out/meta.json" ]; then
    jq -c --arg c "test/lab/accept/peers/run.sh${args:+ $args}" --argjson us "${TRAFFIC_US:-1000}" '.meta + {command: $c, load: ([.scenarios[].runs.load] | max), packets: (1e6 / $us | floor)}' \
        "$out/report.json" >"$out/meta.json"
fi
meta=$(<"$out/meta.json")
cat "$out"/runs/*.jsonl | jq -s --argjson meta "$meta" --rawfile published "$here/published.tsv" -f "$here/table.jq" >"$out/moves.json"

# rows SEPARATOR: mover, event, n, gap to the VPC, to the connector (p50/p99/max), packets of two edges, for how long, both hold, packets
# of an edge that does not (p50/max)
rows() {
    jq -r --arg s "$1" 'def three: "\(.p50 // "?") / \(.p99 // "?") / \(.max // "?")"; def two: "\(.p50 // "?") / \(.max // "?")";
        .moves[] | [.mover, .event, .n, (.up | three), (.down | three), (.packets | two), (.overlap | two),
            (if .both.max == null then "-" else (.both | two) + (if .still > 0 then ", and on" else "" end) end), (if .not_held.max == null then "-" else .not_held | two end)]
        | map(tostring) | join($s)' "$out/moves.json"
}
HEAD=(mover event n 'gap to the VPC, ms: p50 / p99 / max' 'gap to the connector, ms' 'packets of the old edge after the first of the new: p50 / max'
    'for so long, ms: p50 / max' 'both hold the address, ms: p50 / max' 'packets of an edge that does not hold it')
echo
{ printf 'mover\tevent\tn\tgap up\tgap down\ttwo\tfor ms\tboth hold ms\tnot held\n'; rows $'\t'; } | column -t -s $'\t'

html() { jq -r 'def td: "<td>\(tostring | @html)";
    (.published[] | "<tr>" + (.what | td) + (.figure | td) + "<td><a href=\"\(.source | @html)\">\(.source | @html)</a></tr>")' "$out/moves.json"; }
{
    echo '<h2>Other movers of addresses, in the same lab</h2>'
    jq -r '"<p>\(.meta.at), revision \(.meta.revision), \(.meta.machine). Made by <code>\(.meta.command | @html)</code>, \(.meta.packets) packets a second each way.</p>"' "$out/moves.json"
    printf '<table><tr>'
    printf '<th>%s' "${HEAD[@]}"
    rows $'\t' | jq -Rr '"<tr>" + (split("\t") | map("<td>" + @html) | join("")) + "</tr>"'
    echo '</table><p>What others publish:</p><table><tr><th>what<th>figure<th>source</tr>'
    html
    echo '</table>'
} >"$out/../peers.html"

failed=$(jq '[.moves[] | select(.verdict == "FAILS")] | length' "$out/moves.json")
verdicts() { # what does not hold, one a line; the last line: how many do
    jq -r '.moves[] | select(.verdict == "FAILS") | "FAIL  \(.mover), \(.event): not measured in every run, or two edges at once"' "$out/moves.json"
    jq -r '.scenarios[] as $c | $c.figures[], $c.truths[] | select(.verdict == "FAILS") | "FAIL  \($c.scenario)/\(.name): up to \(.max), bound \(.bound // 0)"' "$out/report.json"
    jq -r '.scenarios[] | select(.runs.failed > 0) | "FAIL  \(.scenario): \(.runs.failed) of \(.runs.n) runs"' "$out/report.json"
    jq -r --slurpfile r "$out/report.json" '"accept-peers: \(([.moves[] | select(.verdict != "FAILS")] | length) + $r[0].passed) passed, \(([.moves[] | select(.verdict == "FAILS")] | length) + $r[0].failed) failed"' "$out/moves.json"
}
if [ -n "$summary" ]; then
    {
        printf '<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Other movers of addresses beside Holdfast\n\nWritten by `make accept-peers SUMMARY=...` (`test/lab/accept/peers`), not by hand. Figures of one machine; times in ms.\n\n'
        jq -r '"`\(.meta.command)` at \(.meta.at), after revision \(.meta.revision), \(.meta.machine), load average up to \(.meta.load); \(.meta.packets) packets a second each way.\n"' "$out/moves.json"
        sed 's/^/| /; s/$/ |/' < <({ printf '%s | ' "${HEAD[@]}" | sed 's/ | $//'; echo; printf -- '--- | %.0s' "${HEAD[@]}" | sed 's/ | $//'; echo; rows ' | '; })
        printf '\n```\n'
        verdicts
        printf '```\n\n'
        sed 1d "$here/notes.md"
        printf '\n## What others publish\n\n| what | figure | source |\n| --- | --- | --- |\n'
        jq -r '.published[] | "| \(.what) | \(.figure) | <\(.source)> |"' "$out/moves.json"
    } >"$summary"
fi
verdicts
[ "$rc" = 0 ] && [ "$failed" = 0 ] && [ "$(jq '.moves | length' "$out/moves.json")" -gt 0 ]
