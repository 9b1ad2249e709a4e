#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lost_answers.sh: writes land, and their answers do not come back.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2; L is 10 s
# fault: the answer of one renewal is lost; of an acquisition, a takeover, a release, a gate's status, a binding's status, one each
# expect: whoever wrote reads back, recognizes its own write or lets it be; nothing is written twice
# bound: 0 packets lost by a renewal; 8 s to a session beside any other (a request is given up after 5 s)
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
EDGE='/apis/edge\.galactic\.datumapis\.com/v1alpha1/.*'
scenario_up --lease 10 --proxy
two_connectors
pass() { local e; for e in edge1 edge2; do "$LAB" proxy "$D" $e; done; }
row() { k admin get rclaim -o json | jq -r --arg c "site-$1" '.items[] | select(.spec.connector == $c) | "\(.spec.epoch)/\(.spec.leaseUUID)"'; }

echo "-- a renewal"
before=$(row 1)$(row 2)
mark=$(now_ns)
for n in 1 2; do "$LAB" proxy "$D" edge$n "lose-answer=1 PUT ${EDGE}/providerinstances/masque\.edge$n\?"; done
for n in 1 2; do check "a renewal's answer is lost on edge$n" await 6 "hit" caught edge$n 1; done
moment "renewals' answers are lost"
sleep 9 # longer than a deadline of before
pass
until=$(($(now_ns) - 300000000))
for n in 1 2; do
    truth "renewal_up_$n" "$(lost "$D/log/to-vpc.csv" $n "$mark" "$until")" "site-$n lost no packet over a renewal's answer, to the VPC"
    truth "renewal_down_$n" "$(lost "$D/log/to-$(client_of $n).csv" $((n + 8)) "$mark" "$until")" "nor to the connector"
done
check "the claims were left alone" test "$(row 1)$(row 2)" = "$before"
for n in 1 2; do "$LAB" stop "$D" connector "$(client_of $n)" >/dev/null || true; "$LAB" stop "$D" send "$(client_of $n)" >/dev/null || true; done
"$LAB" stop "$D" send-1 vpc >/dev/null || true
field() { k admin get rclaim -o json | jq -r '.items[] | select(.spec.connector == "site-1") | '"$1"' // empty'; } # of site-1's claim

for t in ${TRANSPORTS:-h3 h2}; do
    echo "-- $t: an acquisition or takeover, the gate's status, the binding's status"
    for name in claim gate binding; do
        case $name in
        claim) re="(PUT|POST) ${EDGE}/routeclaims(/rc-[0-9a-f]+)?\?" ;;
        gate) re="PUT ${EDGE}/routeclaims/rc-[0-9a-f]+/status" ;;
        binding) re='PUT /apis/masque\..*/connectorbindings/[^/]+/status' ;;
        esac
        "$LAB" proxy "$D" edge1 "lose-answer=1 $re"
        mark=$(now_ns)
        keeps_asking client edge1 -transport $t
        check "$t, $name: the answer is lost" await 15 "hit" caught edge1 1
        check "$t, $name: the connector has a session" session_up client edge1 "$mark" 15
        figure "session_$name" "$(ms_between "$mark" "$(jq .t <<<"$(session_up client edge1 "$mark")")")" 8000 "$t, $name: from the first request to a session"
        traffic_on
        check "$t, $name: packets flow" flows client "$(now_ns)"
        pass
        [ $name = binding ] || { "$LAB" stop "$D" connector client >/dev/null || true; }
    done

    epoch=$(field .spec.epoch)
    echo "-- $t: a takeover by the other node, and a release"
    "$LAB" proxy "$D" edge2 "lose-answer=1 PUT ${EDGE}/routeclaims/rc-[0-9a-f]+\?"
    mark=$(now_ns)
    "$LAB" kill -KILL "$D" connector client
    keeps_asking client2 edge2 -transport $t
    check "$t: the takeover's answer is lost" await 10 "hit" caught edge2 1
    check "$t: the connector has a session on edge2" session_up client2 edge2 "$mark" 12
    figure session_takeover "$(ms_between "$mark" "$(jq .t <<<"$(session_up client2 edge2 "$mark")")")" 8000 "$t, takeover: from the first request to a session"
    check "$t: packets flow through edge2" flows client2 "$(now_ns)"
    check "$t: no overlap" hand_over client client2 "$mark"
    check "$t: one takeover was enough" test "$(field .spec.epoch)" = $((epoch + 1))
    "$LAB" proxy "$D" edge2 "lose-answer=1 PUT ${EDGE}/routeclaims/rc-[0-9a-f]+\?"
    mark=$(now_ns)
    "$LAB" stop "$D" connector client2 >/dev/null || true
    check "$t: the release's answer is lost" await 5 "hit" caught edge2 1
    check "$t: the row is released" await 3 "release" claim "$mark" '.object.spec.releaseTime != null'
    session client edge1 -transport $t -once
    check "$t: edge1 takes over" session_up client edge1 "$mark"
    check "$t: packets flow through edge1" flows client "$(now_ns)"
    settled=$(now_ns) now=$(field '.spec.epoch')/$(field .spec.leaseUUID)
    sleep 7 # edge2 has given its attempt up and read back
    pass
    truth "release_$t" "$(lost "$D/log/to-vpc.csv" 1 "$settled" "$(($(now_ns) - 300000000))")" "$t: the successor lost no packet over it"
    check "$t: nothing has changed" test "$(field '.spec.epoch')/$(field .spec.leaseUUID)/$(field .spec.releaseTime)" = "$now/"
    "$LAB" stop "$D" connector client >/dev/null 2>&1 || true
done
safe
checks_done
