#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_test.sh: the table of the limits agrees with the sources; and what does not agree is seen: each kind of entry, once wrong.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/lab/lib/check.sh
. "$here/../lab/lib/check.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
wrong() { # TEXT SED: with that change the check says TEXT, once
    local out
    sed -E "$2" "$here/TABLE.md" >"$tmp/t.md"
    ! cmp -s "$tmp/t.md" "$here/TABLE.md" || { echo "the change changes nothing"; return 1; }
    ! out=$("$here/check.sh" "$tmp/t.md") || { echo "not noticed"; return 1; }
    grep '^FAIL' <<<"$out" | grep -qF "$1" || { echo "$out"; return 1; }
}
check "the table agrees with the sources" "$here/check.sh"
check "another default" wrong "option 'limits.queuePackets=511'" 's/queuePackets=512/queuePackets=511/'
check "an option that is not there" wrong "option 'limits.naps=1'" 's/limits.queuePackets=512/&, limits.naps=1/'
check "an option without a row" wrong "option 'limits.http2Window=1048576' has no row" 's/limits.http2Window=1048576/-/'
check "another fixed value" wrong "value 'MASQUE_ICMP6_RATE=11" 's/ICMP6_RATE=10/ICMP6_RATE=11/'
check "a metric that is not there" wrong "metric 'naps_total'" 's/icmp_sent_total/naps_total/'
check "a unit test that is not there" wrong "test 'masque_icmp6/naps'" 's#masque_icmp6/bucket#masque_icmp6/naps#'
check "a case that is not there" wrong "test 'conformance:naps'" 's/conformance:routing_headers/conformance:naps/'
check "a scenario that is not there" wrong "test 'dataplane:naps'" 's/dataplane:tenants-are-apart/dataplane:naps/'
check "a row without a test" wrong "loops: no test" 's/conformance:time_exceeded/-/'
check "a limit without a metric" wrong "queue towards a client: a limit without a metric" '/^\| queue towards/s/dropped_total/-/'
check "a row that is gone" wrong "rows in" '/^\| loops/d; /^\| a client that moves/d'
checks_done
