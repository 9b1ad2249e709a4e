#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check-guards.sh: the tables of README.md against the models, runs.txt and the C code. Every NO_x of a model has a row
# and a mutant run; every `file:function` of a row is defined there; every check of a row exists: a mutant of
# test/foundation/mutants.sh, a base_mutant("name") in pkg/, or a Criterion test `suite/name`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
ok=0 bad=0
good() { ok=$((ok + 1)); }
fail() { bad=$((bad + 1)); echo "model-guards: $*"; }

defined() { # FILE FUNCTION
    grep -qE "^([a-z_].*[ *])?$2\(" "$root/$1"
}
known_check() { # NAME
    grep -qE "^run $1 " "$root/test/foundation/mutants.sh" && return
    grep -rqF "base_mutant(\"$1\")" "$root/pkg" && return
    [[ $1 == */* ]] && grep -rqE "^Test\(${1%/*}, ${1#*/}[,)]" "$root/pkg" "$root/test"
}

rows=$(sed -n 's/^| `\([a-z]*\.pml\)` | `\(NO_[A-Z_]*\)` | \(.*\) |$/\1|\2|\3/p' "$here/README.md")
[ -n "$rows" ] || fail "README.md has no table of guards"
while IFS='|' read -r model guard what functions checks; do
    [ -n "$model" ] || continue
    grep -q "ifn*def $guard\b" "$here/$model" && good || fail "$model: no guard $guard, but README.md has a row for it"
    grep -qE "^mutant +[a-z-]+ +$model .*-D$guard( |\$)" "$here/runs.txt" && good || fail "runs.txt: no mutant run of $model with $guard"
    read -ra list < <(tr -d '`,' <<<"$functions")
    [ ${#list[@]} -gt 0 ] || fail "$model $guard: names no C function"
    for f in "${list[@]}"; do
        file=${f%%:*} fn=${f##*:}
        if [ ! -f "$root/$file" ]; then fail "$model $guard: no file $file"
        elif defined "$file" "$fn"; then good
        else fail "$model $guard: $file defines no function $fn"; fi
    done
    read -ra list < <(tr -d '`,' <<<"$checks")
    [ ${#list[@]} -gt 0 ] || fail "$model $guard: names no check of the C code"
    for c in "${list[@]}"; do
        if known_check "$c"; then good; else fail "$model $guard: there is no check $c"; fi
    done
done <<<"$rows"
for m in "$here"/*.pml; do
    model=$(basename "$m")
    for guard in $(grep -oE '\bNO_[A-Z_]+' "$m" | sort -u); do
        grep -q "^$model|$guard|" <<<"$rows" && good || fail "$model: $guard has no row in README.md"
    done
done
echo "model-guards: $ok passed, $bad failed"
[ "$bad" = 0 ]
