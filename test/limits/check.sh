#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh [TABLE]: compares each option, default, fixed value, metric and test of the table with the sources, and both ways for the
# options limits.*. A metric has to be one that the agent's page writes; a case of the conformance table has to pass there.
# LIMITS_ROOT: another tree.
set -euo pipefail
root=${LIMITS_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
table=${1:-$root/test/limits/TABLE.md}
cd "$root"
pass=0 fail=0
bad() { printf 'FAIL  %s\n' "$*"; fail=$((fail + 1)); }
known() { # ROW KIND NAME COMMAND...
    local row=$1 kind=$2 name=$3
    shift 3
    if "$@" >/dev/null 2>&1; then pass=$((pass + 1)); else bad "$row: $kind '$name' is not in the sources"; fi
}
options=$(tr '\n' ' ' <pkg/agent/config_table.c | grep -oE '\{"[a-zA-Z0-9.]+", AGENT_OPT_[A-Z]+, [A-Z]+\([^)]*\), "[^"]*"' |
    sed -E 's/^\{"([^"]+)".*"([^"]*)"$/\1=\2/')
has_option() { [[ $'\n'$options$'\n' == *$'\n'"$1"$'\n'* ]]; }
has_value() { grep -qE "(^|[^A-Z_0-9])$1 = ${2//\*/\\*}([^0-9 ]|$| )" "$3"; }
# Names, each between two spaces: looked up hundreds of times.
metrics_there=" $(grep -oE '"[a-z0-9_]+"' pkg/agent/status.c | tr -d '"' | tr '\n' ' ')"
units=" $(grep -rhoE '^Test\([a-z0-9_]+, [a-z0-9_]+' pkg --include='*_test.c' | sed 's/^Test(//; s/, /\//' | tr '\n' ' ')"
cases=" $(awk -F'|' '$7 $8 ~ /pass/ && $7 $8 !~ /fail/ {gsub(/[ `]/, "", $6); print $6}' test/conformance/TABLE.md | tr '\n' ' ')"
scenarios=" $(grep -ohE '^    \{"[a-z0-9-]+", [a-z0-9_]+, (true|false)' test/dataplane/*.c | cut -d'"' -f2 | tr '\n' ' ')"
has_metric() { [[ $metrics_there == *" $1 "* ]]; }
has_unit() { [[ $units == *" $1/$2 "* ]]; }
has_conformance() { [[ $cases == *" $1 "* ]]; }
has_dataplane() { [[ $scenarios == *" $1 "* ]]; }
list() { # "a, b" in lines; nothing for "-"
    local x IFS=,
    for x in $1; do
        x=${x#"${x%%[! ]*}"} x=${x%"${x##*[! ]}"}
        [ -z "$x" ] || [ "$x" = - ] || printf '%s\n' "$x"
    done
}

rows=0
while IFS='|' read -r _ row values metrics tests _; do
    row=$(sed 's/^ *//; s/ *$//' <<<"$row")
    [[ -n $row && $row != threat && $row != ---* ]] || continue
    rows=$((rows + 1))
    while read -r v; do
        [ -n "$v" ] || continue
        if [[ $v =~ ^([A-Z0-9_]+)=(.*)\ (pkg/[a-z0-9_/]+\.h)$ ]]; then
            known "$row" value "$v" has_value "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
        else known "$row" option "$v" has_option "$v"; fi
    done < <(list "$values")
    while read -r m; do [ -z "$m" ] || known "$row" metric "$m" has_metric "$m"; done < <(list "$metrics")
    n=0
    while read -r t; do
        n=$((n + 1))
        case $t in
        conformance:*) known "$row" test "$t" has_conformance "${t#*:}" ;;
        dataplane:*) known "$row" test "$t" has_dataplane "${t#*:}" ;;
        */*) known "$row" test "$t" has_unit "${t%%/*}" "${t#*/}" ;;
        *) bad "$row: test '$t': suite/name, conformance:case or dataplane:case is needed" ;;
        esac
    done < <(list "$tests")
    [ "$n" -gt 0 ] || bad "$row: no test"
    # What can be set can be seen.
    if [ -n "$(list "$values")" ] && [ -z "$(list "$metrics")" ]; then bad "$row: a limit without a metric"; fi
done <"$table"
[ "$rows" -ge 28 ] || bad "$rows rows in $table: 28 at least are needed"
while read -r o; do
    if grep -qF " $o" "$table"; then pass=$((pass + 1)); else bad "option '$o' has no row in $table"; fi
done < <(grep '^limits\.' <<<"$options")
printf 'limits: %d passed, %d failed\n' "$pass" "$fail"
[ "$fail" = 0 ]
