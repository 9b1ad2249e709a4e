#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - the acceptance lab: runs scenarios N times each, collects their figures and what the packets say, and reports.
#
#   run.sh [--short] [--runs N] [--seed S] [--out DIR] [--summary FILE] [SCENARIO[*N]...]
#     --short        the load-bearing scenarios, once each, --one-lab --again
#     --runs N       so often (20); SCENARIO*N: this one N times
#     --seed S       run i of each has seed S+i (1)             --out DIR    build/accept
#     --again        a time over its bound is measured a second time; packets are not
#     --one-lab      one API server for all (what needs another lease or two API servers cannot be among them)
#     --summary F    writes the committed summary there         --report     only reports what --out has
#
# A scenario is a file of test/lab/scenarios or test/lab/accept/scenarios that collects figures. DIR gets report.html, report.json,
# one SVG a scenario, and runs/ with each run's figures (and log and the lab's logs where it failed). Exits 1 unless everything holds.
#
# The lab runs at a high priority (nice -15, where that is allowed): the bounds are those of a node that has its CPU. On two cores
# at a load average of 13 a planned move takes 580 ms at the neighbours' priority and 110 ms so.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
die() { printf 'accept: error: %s\n' "$*" >&2; exit 2; }
# name, and what of it: the rest are variables of the scenario
SHORT=(provider_kill provider_stop 'api_stalled PARTS=short,long' 'node_cut TRANSPORTS=h3' planned_move handoff 'handoff_stuck TRANSPORTS=h3'
    revoke_100 duplicate_writes)
PRIORITY=-15

one_lab='' again='' short='' runs=20 seed=1 out=$root/build/accept summary='' only_report='' names=() args="$*"
need_number() { [[ $2 =~ ^[0-9]{1,6}$ ]] || die "$1 is '$2': a number from 0 to 999999 is needed"; }
while [ $# -gt 0 ]; do
    case $1 in
    --short) names=("${SHORT[@]%% *}") runs=1 one_lab=1 again=1 short=1 ;;
    --again) again=1 ;;
    --one-lab) one_lab=1 ;;
    --runs) runs=${2:?--runs needs a number}; need_number --runs "$runs"; shift ;;
    --seed) seed=${2:?--seed needs a number}; need_number --seed "$seed"; shift ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --summary) summary=${2:?--summary needs a file}; shift ;;
    --report) only_report=1 ;;
    --help) sed -n '3,11s/^# \{0,1\}//p' "$0"; exit ;;
    -*) die "unknown option '$1' (see --help)" ;;
    *) names+=("$1") ;;
    esac
    shift
done
# ACCEPT_SCENARIOS: a folder that is looked at first (the runner's own test).
file_of() { ls ${ACCEPT_SCENARIOS:+"$ACCEPT_SCENARIOS/$1.sh"} "$here/scenarios/$1.sh" "$here/../scenarios/$1.sh" 2>/dev/null | head -n 1; }
has_figures() { grep -qE '^ *(figure|safe|packets_safe|truth)\b' "$1" && [ "$(basename "$1")" != lib.sh ]; }
if [ ${#names[@]} = 0 ]; then
    for f in "$here"/scenarios/*.sh "$here"/../scenarios/*.sh; do ! has_figures "$f" || names+=("$(basename "$f" .sh)"); done
fi
declare -A times=()
for i in "${!names[@]}"; do
    n=${names[i]%%\**}
    times[$n]=$runs
    [ "$n" = "${names[i]}" ] || { need_number "the number behind '$n*'" "${names[i]#*\*}"; times[$n]=${names[i]#*\*}; }
    names[i]=$n
done
for n in "${names[@]}"; do [ -n "$(file_of "$n")" ] || die "there is no scenario '$n' (see test/lab/accept/README.md)"; done
words() { sed -n "s/^# $2: //p" "$(file_of "$1")" | head -n 1; } # SCENARIO given|fault|expect|bound

# what_of SCENARIO: the variables that the short form sets for it
what_of() {
    local w
    [ -n "$short" ] || return 0
    for w in "${SHORT[@]}"; do [ "${w%% *}" != "$1" ] || [ "${w#* }" = "$w" ] || printf '%s\n' ${w#* }; done
}
# one SCENARIO SEED LOG: its exit status
one() {
    local rc=0
    # shellcheck disable=SC2046
    env $(what_of "$1") SEED="$2" ACCEPT=1 ACCEPT_AGAIN="$again" SCENARIO_LAB="$one_lab" SCENARIO_DIR="$(dir_of "$1")" \
        timeout --kill-after=20 900 "$(file_of "$1")" >"$3" 2>&1 || rc=$?
    # A shell that stumbles over an expression leaves the function, with checks undone, and goes on.
    ! grep -qE '\.sh: line [0-9]+: ' "$3" || rc=70
    return $rc
}
dir_of() { if [ -n "$one_lab" ]; then echo "$out/work/lab"; else echo "$out/work/$1"; fi; }

# revision: of the tree that is tried, "-dirty" when there is more in it (the summary is not part of what is tried).
revision() {
    local rev
    rev=$(git -C "$root" rev-parse --short HEAD 2>/dev/null) || { echo unknown; return; }
    [ -z "$(git -C "$root" status --porcelain -- . ':!ACCEPTANCE.md' 2>/dev/null)" ] || rev+=-dirty
    echo "$rev"
}
mkdir -p "$out/runs" "$out/work"
if [ -z "$only_report" ]; then
    exec 8>"$out/.lock"
    flock -n 8 || die "another run uses $out; wait for it, end it, or name another folder (--out)"
    rm -rf "$out"/runs/* "$out"/*.svg
    revision >"$out/revision" # now: the tree may go on while this runs
    renice -n $PRIORITY -p $$ >/dev/null 2>&1 || printf 'accept: no higher priority is to be had here: times may be the neighbours'"'"'\n'
    if [ -n "$one_lab" ]; then
        # shellcheck disable=SC2329
        lab_end() { "$root/test/lab/lab" down "$out/work/lab" >/dev/null 2>&1 || true; }
        trap lab_end EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM
        "$root/test/lab/lab" reap
        "$root/test/lab/lab" up "$out/work/lab" --owner $$ --lease 10 >"$out/work/up.log" 2>&1 8>&- || { cat "$out/work/up.log"; exit 1; }
    fi
fi
order=0
for name in "${names[@]}"; do
    order=$((order + 1))
    f=$out/runs/$name.jsonl work=$(dir_of "$name")
    [ -z "$only_report" ] || continue
    for ((i = 1; i <= times[$name]; i++)); do
        log=$out/runs/$name.$i.log
        t=$(date +%s) rc=0 tries=1
        printf '%-22s %3d/%d ' "$name" "$i" "${times[$name]}"
        one "$name" $((seed + i)) "$log" 8>&- || rc=$?
        if [ -n "$again" ] && [ $rc = 75 ]; then # only times, and once: what does not hold twice in a row does not hold
            grep '^SLOW' "$log" >"$out/runs/$name.$i.slow"
            rc=0 tries=2
            one "$name" $((seed + i + 1000)) "$log" 8>&- || rc=$?
        fi
        jq -nc --arg s "$name" --argjson o $order --argjson i $i --argjson seed $((seed + i)) --argjson rc $rc --argjson sec $(($(date +%s) - t)) --argjson tries $tries \
            --argjson load "$(cut -d' ' -f1 /proc/loadavg)" --arg log "runs/$name.$i.log" --arg given "$(words "$name" given)" --arg fault "$(words "$name" fault)" \
            --arg expect "$(words "$name" expect)" --arg bound "$(words "$name" bound)" \
            '{scenario: $s, order: $o, run: $i, seed: $seed, rc: $rc, seconds: $sec, tries: $tries, load: $load, log: $log, given: $given, fault: $fault, expect: $expect, words_bound: $bound}' >>"$f"
        [ ! -s "$work/figures.jsonl" ] || jq -c --arg s "$name" --argjson o $order --argjson i $i '. + {scenario: $s, order: $o, in_run: $i}' "$work/figures.jsonl" >>"$f"
        "$here/timeline.sh" "$work" "$name, run $i" >"$out/$name.svg" || rm -f "$out/$name.svg"
        printf '%s, %d s; %s\n' "$([ $rc = 0 ] && echo ok || echo "FAILED ($rc)")" $(($(date +%s) - t)) \
            "$(jq -r 'select(.figure) | "\(.figure) \(.value)"' "$work/figures.jsonl" 2>/dev/null | tail -n 6 | paste -sd, | sed 's/,/, /g')"
        [ $tries = 1 ] || sed 's/^/    measured again after: /' "$out/runs/$name.$i.slow"
        if [ $rc = 0 ]; then
            rm -f "$log"
        else
            grep -E '^(FAIL|SLOW)' "$log" | sed 's/^/    /' || tail -n 3 "$log"
            mkdir -p "$out/runs/$name.$i.lab"
            cp -r "$work/log" "$work"/*.txt "$work/api/audit.log" "$out/runs/$name.$i.lab/" 2>/dev/null || true
        fi
    done
done

known=$({ grep -o '`accept [^`]*`' "${KNOWN_LIMITS:-$root/KNOWN_LIMITS.md}" || true; } | tr -d '`' | jq -Rnc '[inputs]')
meta=$(jq -nc --arg c "test/lab/accept/run.sh $args" --arg rev "$(cat "$out/revision" 2>/dev/null || echo unknown)" --arg at "$(date -u +%Y-%m-%dT%H:%MZ)" \
    --arg m "$(nproc) cores, Linux $(uname -r)" '{command: $c, revision: $rev, at: $at, machine: $m}')
cat "$out"/runs/*.jsonl | jq -s --argjson known "$known" --argjson meta "$meta" -f "$here/report.jq" >"$out/report.json"
if [ -s "$out/peers/moves.json" ]; then # what `make accept-peers` has measured
    jq --slurpfile m "$out/peers/moves.json" '.movers = $m[0]' "$out/report.json" >"$out/report.new"
    mv "$out/report.new" "$out/report.json"
fi

# ---- the table ----
rows() { # SEPARATOR: scenario, figure, n, p50, p99, max, bound, verdict
    jq -r --arg s "$1" 'def num: if . == null then "-" else . end;
        .scenarios[] as $c | ($c.figures[] | [$c.scenario, .name, .n, (.p50 | num), (.p99 | num), (.max | num), "\(.bound) ms", .verdict]),
        ($c.truths[] | [$c.scenario, .name, .n, (.p50 | num), (.p99 | num), (.max | num), "0 packets", .verdict]),
        [$c.scenario, "(all checks)", $c.runs.n, "-", "-", "\($c.runs.failed) failed", "none", (if $c.runs.failed == 0 then "holds" else "FAILS" end)]
        | map(tostring) | join($s)' "$out/report.json"
}
last_line() { jq -r '"accept: \(.passed) passed, \(.failed) failed, \(.known) known limits (KNOWN_LIMITS.md); \(.runs) runs, packets past a deadline: \(.past_deadline), with two forwarders: \(.two_forwarders)"' "$out/report.json"; }
echo
{ printf 'scenario\tfigure\tn\tp50\tp99\tmax\tbound\tverdict\n'; rows $'\t'; } | column -t -s $'\t'

# ---- report.html: one file, nothing from elsewhere ----
{
    cat <<'X'
<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Holdfast acceptance</title><style>
body{font:15px/1.5 sans-serif;max-width:1120px;margin:2em auto;padding:0 1em;color:#222}table{border-collapse:collapse;margin:1em 0}
td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}.holds{color:#161}.FAILS{color:#b00;font-weight:bold}.known{color:#a60}
dt{font-weight:bold;float:left;width:5em}dd{margin-left:5.5em}svg{width:100%;border:1px solid #ddd}</style></head><body><h1>Holdfast acceptance</h1>
X
    jq -r 'def num: if . == null then "-" else tostring end;
        "<p>\(.meta.at), revision \(.meta.revision), \(.meta.machine). Made by <code>\(.meta.command | @html)</code>. Times in ms; every value has to hold, not only the p99.</p>",
        "<p><b>\(.passed) passed, \(.failed) failed, \(.known) known limits; \(.runs) runs. Packets past a deadline: \(.past_deadline). Packets with two forwarders: \(.two_forwarders).</b></p>",
        (.scenarios[] | "<h2>\(.scenario)</h2><dl><dt>given</dt><dd>\(.given // "" | @html)</dd><dt>fault</dt><dd>\(.fault // "" | @html)</dd><dt>expect</dt><dd>\(.expect // "" | @html)</dd><dt>bound</dt><dd>\(.bound // "" | @html)</dd></dl>",
            "<p>\(.runs.n) runs, \(.runs.failed) failed, load average up to \(.runs.load)</p><table><tr><th>figure<th><th>n<th>p50<th>p99<th>max<th>bound<th>verdict</tr>",
            (.figures[] | "<tr><td>\(.name | @html)<td>\(.words | @html)<td>\(.n)<td>\(.p50 | num)<td>\(.p99 | num)<td>\(.max | num)<td>\(.bound)<td class=\"\(.verdict)\">\(.verdict)</tr>"),
            (.truths[] | "<tr><td>\(.name | @html)<td>\(.words | @html)<td>\(.n)<td>\(.p50 | num)<td>\(.p99 | num)<td>\(.max | num)<td>0 packets<td class=\"\(.verdict)\">\(.verdict)</tr>"),
            "</table>", "@SVG \(.scenario)")' "$out/report.json" |
        while IFS= read -r line; do
            if [[ $line == '@SVG '* ]]; then cat "$out/${line#@SVG }.svg" 2>/dev/null || echo '<p>no timeline</p>'; else printf '%s\n' "$line"; fi
        done
    cat "$out/peers.html" 2>/dev/null || true
    echo '</body></html>'
} >"$out/report.html"

if [ -n "$summary" ]; then
    {
        printf '<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Acceptance\n\nWritten by `make accept` or `make accept-short` (`test/lab/accept`), not by hand. Figures of one machine; times in ms.\n\n'
        jq -r '"`\(.meta.command)` at \(.meta.at), after revision \(.meta.revision), \(.meta.machine), load average up to \([.scenarios[].runs.load] | max).\n"' "$out/report.json"
        printf '| scenario | figure | n | p50 | p99 | max | bound | verdict |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n'
        rows ' | ' | sed 's/^/| /; s/$/ |/'
        printf '\n'
        last_line
    } >"$summary"
fi
echo "report: ${out#"$root"/}/report.html"
last_line
jq -e '.failed == 0 and .runs > 0' "$out/report.json" >/dev/null
