#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mutants.sh PROGRAM [--only TEXT]: removes each rule of the CRDs, policies and roles once from a server of its own and looks for
# a case that notices. Runs all cases unchanged first. Prints the table, then "mutants-admission: N passed, M failed"; exit 1
# unless every mutant was killed. --only: rules whose object or message has TEXT.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] && [ -x "$1" ] || { echo "usage: ${0##*/} PROGRAM [--only TEXT]" >&2; exit 2; }
program=$1
shift
exec "$HERE/run.sh" "$program" --mutants "$@"
