#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check-docs.sh [--quick]: are the documents true?
#   1. every shell block (```sh) of README.md and CONTRIBUTING.md runs, in order, each in a shell of its own at the root of
#      the repository, and ends with status 0. Blocks tagged `sh long` take minutes (whole demo, whole test suite): each
#      text of them runs once, and not at all with --quick, which is what `make test` uses (it would call itself).
#   2. every flag that the documents name is in the program's --help, and the other way round
#   3. the layers of pkg/README.md are those of the Makefile
#   4. every link to a file or heading of this repository resolves
#   5. every `make TARGET` that the documents name exists
set -uo pipefail
unset HOLDFAST_SUITE_TIMEOUT # its own time; the suites that the blocks run keep theirs
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
quick=''
case ${1:-} in --quick) quick=1 ;; '') ;; *) echo "check-docs: unknown argument '$1' (known: --quick)" >&2; exit 2 ;; esac
docs=()
for f in README.md ARCHITECTURE.md CONTRIBUTING.md OPERATIONS.md EXPECTATIONS.md SECURITY.md CHANGELOG.md; do [ ! -f "$f" ] || docs+=("$f"); done
pass=0 fail=0
ok() { pass=$((pass + 1)); }
bad() { fail=$((fail + 1)); echo "check-docs: $*"; }

# ---- 1. shell blocks ---------------------------------------------------------------------------------------------
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
declare -A done_long=()
blocks() { # FILE: writes each block to $tmp/FILE.N.TAG
    awk -v out="$tmp/$1" '
        /^```sh( .*)?$/ { inside = 1; n++; tag = NF > 1 ? $2 : "plain"; name = out "." n "." tag; printf "" > name; next }
        /^```/          { inside = 0; next }
        inside          { print > name }' "$1"
}
for f in README.md CONTRIBUTING.md; do
    blocks "$f"
    for b in $(find "$tmp" -name "$f.*" | sort -V); do
        tag=${b##*.}
        case $tag in
        plain) ;;
        long)
            text=$(<"$b")
            if [ -n "$quick" ] || [ -n "${done_long[$text]:-}" ]; then continue; fi
            done_long[$text]=1
            ;;
        *) bad "$f: unknown tag '$tag' of a shell block (known: long)"; continue ;;
        esac
        echo "check-docs: running a block of $f: $(head -n 1 "$b") ..."
        if bash -euo pipefail "$b" </dev/null >"$tmp/output" 2>&1; then
            ok
        else
            bad "a block of $f failed with status $?:"
            sed 's/^/    /' "$b"
            echo "  its last output:"
            tail -n 25 "$tmp/output" | sed 's/^/  | /'
        fi
    done
done

# ---- 2. flags ----------------------------------------------------------------------------------------------------
# flags_of TEXT-COMMAND...: the long options that a text names, one a line
flags_of() { grep -oE -- '(^|[^-[:alnum:]])--[a-z][-a-z]*' | grep -oE -- '--[a-z][-a-z]*' | sort -u; }
compare_flags() { # PROGRAM DOCUMENT SECTION-REGEX: the rows of the flag table after that heading
    local program=build/bin/$1 have want
    if [ ! -x "$program" ]; then bad "$program is missing, so its flags cannot be compared"; return; fi
    want=$("$program" --help 2>&1 | flags_of)
    have=$(awk -v re="$3" '/^#/ {on = $0 ~ re} on && /^\|/ {split($0, c, /[^\\]\|/); print c[1] " " $0}' "$2" | grep -oE '^[^|]*\| `[^|]*(\\\|[^|]*)*\|' | flags_of)
    if [ -n "$want" ] && [ "$want" = "$have" ]; then ok; else
        bad "flags of $1 --help (<) and of $2 (>) differ:"
        diff <(echo "$want") <(echo "$have") | grep '^[<>]' | sed 's/^/    /'
    fi
}
compare_flags holdfast-agent README.md '^## The agent'
[ ! -f test/foundation/README.md ] || compare_flags holdfast-foundation test/foundation/README.md '^## Start'

# ---- 3. layers ---------------------------------------------------------------------------------------------------
if out=$(hack/check-layer-table.sh); then ok; else bad "$out"; fi

# ---- 4. links ----------------------------------------------------------------------------------------------------
anchors() { sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'; }
while IFS= read -r f; do
    broken=0
    while IFS= read -r link; do
        case $link in http://* | https://* | mailto:*) continue ;; esac
        path=${link%%#*} anchor=''
        [[ $link != *#* ]] || anchor=${link#*#}
        target=$f
        [ -z "$path" ] || target=$(dirname "$f")/$path
        if [ ! -e "$target" ]; then bad "$f: link to '$link' leads nowhere"; broken=1; continue; fi
        if [ -n "$anchor" ] && ! anchors "$target" | grep -xF -- "$anchor" >/dev/null; then
            bad "$f: '$target' has no heading '#$anchor'"
            broken=1
        fi
    done < <(awk '/^```/ {code = !code} !code' "$f" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//')
    [ $broken = 1 ] || ok
done < <(git ls-files --cached --others --exclude-standard '*.md')

# ---- 5. make targets ---------------------------------------------------------------------------------------------
# The parsed Makefile knows its targets without running one.
known=$(make -pRrq : 2>/dev/null | awk -F: '/^[A-Za-z0-9][^$#\/\t=% ]*:([^=]|$)/ {print $1}' | sort -u)
missing=''
for t in $(grep -ohE '(`|^)make( -j[0-9]+)? [a-z][-_a-z0-9]*' "${docs[@]}" | awk '{print $NF}' | sort -u); do
    grep -qxF -- "$t" <<<"$known" || missing+=" $t"
done
if [ -z "$missing" ]; then ok; else bad "make targets that the documents name but the Makefile lacks:$missing"; fi

echo "check-docs: $pass passed, $fail failed"
[ "$fail" -eq 0 ]
