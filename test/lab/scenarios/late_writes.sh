#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# late_writes.sh: takeovers whose answer is lost, that arrive late after a second attempt, and that land when nobody waits for
# them any more; and a release that arrives after the successor. Held back and let go by a proxy in front of the real API server.
# Contract section 4: a write whose outcome is unknown; "a claim that landed late and has no session is released at once".
# given: a connector with traffic both ways, a proxy before the API server
# fault: takeovers unanswered, late, abandoned; a release after its successor
# expect: own writes are recognized, late ones refused or given back
# bound: 0 packets lost by a late write
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
WRITE='PUT /apis/edge\.galactic\.datumapis\.com/v1alpha1/.*/routeclaims/rc-[0-9a-f]+\?'
scenario_up --lease 10 --proxy
with_session

echo "-- a takeover whose answer is lost"
"$LAB" proxy "$D" edge2 "lose-answer=1 $WRITE"
mark=$(now_ns)
session client2 edge2
check "the answer is lost" await 5 "hit" caught edge2 1
check "edge2 has the claim" await 5 "takeover" claim "$mark" '.object.spec.epoch == 2 and .object.spec.holder.node == "edge2"'
check "it recognizes its own write, and the connector has a session there" session_up client2 edge2 "$mark" 8
check "packets flow through edge2" flows client2 "$(now_ns)"
check "no overlap" hand_over client client2 "$mark"
check "one takeover was enough" test "$(field .spec.epoch)" = 2
"$LAB" proxy "$D" edge2

echo "-- a takeover that arrives after its second attempt"
"$LAB" proxy "$D" edge1 "hold=1 $WRITE"
mark=$(now_ns)
session client edge1
check "it is held back" await 5 "hit" caught edge1 1
check "edge2's session goes on meanwhile" flows client2 "$(now_ns)"
check "the second attempt lands" await 12 "takeover" claim "$mark" '.object.spec.epoch == 3 and .object.spec.holder.node == "edge1"'
check "the connector has a session on edge1" session_up client edge1 "$mark" 12
check "packets flow through edge1" flows client "$(now_ns)"
check "no overlap" hand_over client2 client "$mark"
settled=$(now_ns)
"$LAB" proxy "$D" edge1
two() { [ "$(put_codes edge1 "$mark" | wc -w)" = 2 ] && now_ns; }
check "the first one arrives" await 5 "second PUT" two
check "and is refused: one of the two gets 409" test "$(put_codes edge1 "$mark")" = "200 409 "
sleep 1
check "nothing has changed" test "$(field .spec.epoch)/$(field .spec.holder.node)" = 3/edge1
check "no packet was lost over it" test "$(lost "$D/log/to-vpc.csv" 1 "$settled" "$(($(now_ns) - 200000000))")" = 0

echo "-- a takeover that lands when nobody waits for it any more"
"$LAB" proxy "$D" edge2 "hold $WRITE"
mark=$(now_ns)
session client2 edge2
check "it is held back" await 5 "hit" caught edge2 1
check "its request is refused in the end" await 15 "refusal" event "$mark" '.event == "refused" and .status == 503' client2
unknown() { [ "$(cat "$D"/nodes/edge2/audit/*.jsonl | jq -c 'select(.reason == "OutcomeUnknown")' | wc -l)" -ge 2 ] && now_ns; }
check "and the outcome of both attempts is unknown" await 5 "records" unknown
check "edge1's session was not touched" test "$(lost "$D/log/to-vpc.csv" 1 "$settled" "$(($(now_ns) - 200000000))")" = 0
freed=$(now_ns)
"$LAB" proxy "$D" edge2
check "it lands" await 5 "takeover" claim "$mark" '.object.spec.epoch == 4 and .object.spec.holder.node == "edge2"'
landed=$(claim "$mark" '.object.spec.epoch == 4')
check "it is given back at once, by somebody who says so" await 3 "record" recorded edge2 release LateLanding "$freed"
check "the row is released" await 3 "release" claim "$landed" '.object.spec.epoch == 4 and .object.spec.releaseTime != null'
released=$(claim "$landed" '.object.spec.epoch == 4 and .object.spec.releaseTime != null')
note "landed at 0 ms, released at $(ms_between "$landed" "$released") ms"
check "edge1's session has ended" await 3 "closed" event "$freed" '.event == "closed"'
check "no packet came through edge2" test "$(cap_count e2 in "$settled" "$(now_ns)")" = 0
session client edge1
check "the connector is back on edge1" session_up client edge1 "$released" 5
check "packets flow through edge1 again" flows client "$(now_ns)"

echo "-- a release that arrives after the successor"
"$LAB" proxy "$D" edge1 "hold $WRITE"
mark=$(now_ns)
"$LAB" stop "$D" connector client >/dev/null || true
check "the release is held back" await 5 "hit" caught edge1 1
session client2 edge2
check "edge2 takes the claim over" session_up client2 edge2 "$mark"
check "packets flow through edge2" flows client2 "$(now_ns)"
epoch=$(field .spec.epoch)
settled=$(now_ns)
"$LAB" proxy "$D" edge1
check "the late release is refused" await 5 "409" grep_code edge1 "$mark" 409
check "it never follows the successor: recorded as a rejection" await 8 "record" recorded edge1 reject OtherHolder "$settled"
sleep 1
check "nothing has changed" test "$(field .spec.epoch)/$(field .spec.releaseTime)/$(field .spec.holder.node)" = "$epoch//edge2"
check "no packet was lost over it" test "$(lost "$D/log/to-vpc.csv" 2 "$settled" "$(($(now_ns) - 200000000))")" = 0
safe
checks_done
