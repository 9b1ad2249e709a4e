#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# man.sh KUBECTL-HOLDFAST [--check|--write]: the man page of kubectl-holdfast, made of what each command's --help says; on standard
# output, or compared with (--check) or written to (--write) cmd/kubectl-holdfast/kubectl-holdfast.1.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '3,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
tool=$1 page=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/cmd/kubectl-holdfast/kubectl-holdfast.1
version=$("$tool" version --client | sed -n 's/^kubectl-holdfast \([^ ]*\) .*/\1/p')
[ -n "$version" ] || { echo "man.sh: error: $tool does not say its version" >&2; exit 1; }
# troff: a backslash, a line that begins with a dot or a quote, and hyphens that are to be copied
escape() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"; }
body() { # COMMAND WORDS...: usage, text and flags of one command
    local out
    out=$("$tool" "$@" --help)
    printf '.SS "%s"\n' "$(sed -n 's/^usage: kubectl holdfast \(.*\) \[FLAGS\]$/\1/p' <<<"$out" | escape)"
    sed -n 1p <<<"$out" | escape
    awk '/^usage: / {on = 1; next} /^flags:$/ {exit} on && NF' <<<"$out" | { escape || true; } | sed '1s/^/.PP\n/'
    awk '/^flags:$/ {on = 1; next} on && NF' <<<"$out" | while IFS= read -r line; do
        printf '.TP\n.B %s\n%s\n' "$(sed -E 's/^ *//; s/  +.*//' <<<"$line" | escape)" "$(sed -E 's/^ *[^ ].*[^ ]  +([^ ].*)$/\1/' <<<"$line" | escape)"
    done
}
make_page() {
    printf '.\\" SPDX-License-Identifier: Apache-2.0\n.\\" Made by hack/man.sh from --help; `make man` writes it anew.\n'
    printf '.TH KUBECTL\\-HOLDFAST 1 "" "Holdfast %s" "Holdfast"\n.SH NAME\nkubectl\\-holdfast \\- who owns what in Holdfast, and why\n' "$version"
    printf '.SH SYNOPSIS\n.B kubectl holdfast\n.I COMMAND\n.RI [ FLAGS ]\n.SH DESCRIPTION\n'
    "$tool" help | sed -n 1p | escape
    printf '.SH COMMANDS\n'
    "$tool" help | sed -nE '/^commands:$/,/^$/s/^  (audit verify|audit show|claims prune|claims list|[a-z]+)\b.*/\1/p' | while IFS= read -r words; do
        [ "$words" != help ] || continue
        # shellcheck disable=SC2086 # two words
        body $words
    done
    printf '.SH EXIT STATUS\n'
    "$tool" help | sed -n 's/^exit status: //p' | tr ';' '\n' | sed 's/^ *//' | while read -r n text; do printf '.TP\n.B %s\n%s\n' "$n" "$(escape <<<"$text")"; done
    printf '.SH ENVIRONMENT\n.TP\n.B KUBECONFIG\nA list of kubeconfig files, as for kubectl.\n.TP\n.B NO_COLOR\nNot empty: no colours. There are none without a terminal, either.\n'
    printf '.SH SEE ALSO\n.BR kubectl (1)\n'
}
case ${2:-} in
'') make_page ;;
--write) make_page >"$page" ;;
--check) diff -u "$page" <(make_page) || { echo "man.sh: the man page is not what --help says: make man" >&2; exit 1; } ;;
*) echo "man.sh: error: unknown argument '$2' (known: --check, --write)" >&2; exit 2 ;;
esac
