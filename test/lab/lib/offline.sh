# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The scenarios' library without a lab, for tests of what judges: $tmp/lab is the lab's folder, $tmp/out the runner's, $KNOWN_LIMITS empty.
# $tmp goes at the end.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export SCENARIO_DIR=$tmp/lab KNOWN_LIMITS=$tmp/limits.md
mkdir -p "$tmp"/{lab/log,out/runs}
: >"$KNOWN_LIMITS"
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scenarios/lib.sh"
