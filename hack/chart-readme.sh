#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# chart-readme.sh CHART [--check]: writes the table of values of CHART/README.md from the comments of CHART/values.yaml. With
# --check nothing is written: fails when the table is not what it would write, or when a value has no comment.
set -euo pipefail
[ $# -ge 1 ] && [ -f "$1/values.yaml" ] || { sed -n '3,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
chart=$1
table=$(awk '
    function flush() { comment = "" }
    function leaf(path, value) {
        if (comment == "") { print "chart-readme: " path " has no comment in values.yaml" > "/dev/stderr"; bad = 1 }
        if (path in seen) { print "chart-readme: " path " stands twice in values.yaml" > "/dev/stderr"; bad = 1 }
        seen[path] = 1
        gsub(/\|/, "\\|", comment)
        rows[++n] = "| `" path "` | " (value == "" ? "" : "`" value "`") " | " comment " |"
        flush()
    }
    function done_group() { if (open != "") { leaf(open, list); open = ""; list = "" } }
    /^#/ && !started { if ($0 !~ /SPDX|Every value|made from/) comment = substr($0, 3); next }
    /^[ ]*#/ { done_group(); sub(/^ *# ?/, ""); comment = $0; next }
    /^[ ]*$/ { next }
    /^[ ]*-/ { sub(/^ *- /, "- "); list = list (list == "" ? "" : ", ") $0; next }
    {
        match($0, /^ */); depth = RLENGTH / 2
        if (open != "" && depth > opendepth) { # a map of its own, as a value
            sub(/^ */, ""); list = list (list == "" ? "" : ", ") $0; next }
        done_group()
        started = 1
        line = $0; sub(/^ */, "", line)
        key = line; sub(/:.*/, "", key)
        value = line; sub(/^[^:]*: ?/, "", value)
        path[depth] = key
        full = path[0]; for (i = 1; i <= depth; i++) full = full "." path[i]
        if (value == "" && comment == "") next          # only groups
        if (value == "") { open = full; opendepth = depth; next }
        leaf(full, value)
    }
    END { done_group(); print "| value | default | meaning |"; print "| --- | --- | --- |"; for (i = 1; i <= n; i++) print rows[i]; exit bad }' "$chart/values.yaml")
begin='<!-- values: made by hack/chart-readme.sh -->' end='<!-- end of values -->'
grep -qxF "$begin" "$chart/README.md" && grep -qxF "$end" "$chart/README.md" || { echo "chart-readme: $chart/README.md lacks its two marks" >&2; exit 1; }
new=$(awk -v begin="$begin" -v end="$end" 'FNR == NR {t = t $0 "\n"; next} $0 == begin {print; printf "%s", t; skip = 1} $0 == end {skip = 0} !skip && $0 != begin {print}' <(printf '%s\n' "$table") "$chart/README.md")
if [ "${2:-}" = --check ]; then
    diff <(printf '%s\n' "$new") "$chart/README.md" || { echo "chart-readme: $chart/README.md is not what values.yaml says; run \`make chart-readme\`" >&2; exit 1; }
else
    printf '%s\n' "$new" >"$chart/README.md"
fi
