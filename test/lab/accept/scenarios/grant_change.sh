#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# grant_change.sh: what a session's grant rests on becomes something else under it.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2
# fault: its identity becomes another connector's; another tenant's; its binding another VPC's; its reservation is cleared; its service
#   becomes another object with another pool; is revoked (another /96 in a grant: authority.sh)
# expect: the session ends at once; where the new objects allow it, the connector comes back with what they say
# bound: 50 ms from the first sign that the change had landed to the last packet, either way
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
scenario_up --lease 10
two_connectors
observe_kind providerservices edge.galactic.datumapis.com
# binding_of TENANT CONNECTOR SITE [VPC [SERVICE]]: a binding whose identity is that site's certificate; no site: of nobody here.
binding_of() {
    jq -nc --arg t "$1" --arg c "$2" --arg u "spiffe://acme/${3:-nobody-$2}" --arg v "${4:-vpc-a}" --arg s "${5:-svc-a}" '{apiVersion: "masque.galactic.datumapis.com/v1alpha1", kind: "ConnectorBinding",
        metadata: {name: "\($t).\($c)"}, spec: {tenant: $t, connector: $c, vpc: $v, serviceName: $s, identities: [{uri: $u}]}}' | k operator apply -f - >/dev/null
}
prefix_of() { jq -r '.prefix[0]' <<<"$(event "$2" '.event == "connected"' "$(client_of "$1")")"; } # N SINCE: of its first session since then
# ended NAME N SINCE TOLD: connector N's session has ended; its last packet before it had another one came with TOLD.
ended() {
    local up down last until
    check "$1: site-$2's session ends" await 5 "closed" event "$3" '.event == "closed"' "$(client_of "$2")"
    sleep 0.5 # ten times the bound: a late packet would come now
    until=$(event "$3" '.event == "connected"' "$(client_of "$2")" | jq .t) || until=$(now_ns)
    up=$(awk -F, -v m="$2" -v p="${at[$2]}" -v u="$until" '$1 == m && $6 == p && $4 < u {t = $4} END {print t ? t : 0}' "$D/log/to-vpc.csv")
    down=$(awk -F, -v m=$(($2 + 8)) -v u="$until" '$1 == m && $4 < u {t = $4} END {print t ? t : 0}' "$D/log/to-$(client_of "$2").csv")
    last=$((up > down ? up : down))
    figure "$1_$2" "$(ms_between "$4" $last)" 50 "$1: last packet of site-$2 after the change had landed" "$4" $((last > $4 ? last : $4))
    check "$1: site-$2's packets went on up to it" test $(($4 - up)) -lt 100000000
}
inside() { python3 -c 'import ipaddress as i, sys; sys.exit(not i.ip_network(sys.argv[1]).subnet_of(i.ip_network(sys.argv[2])))' "$@"; } # PREFIX POOL
declare -A at
for n in 1 2; do at[$n]=$(address_of "$(client_of $n)"); done
# as_before NAME SINCE: both connectors have sessions, with packets, with the addresses that they had first.
as_before() {
    local n
    for n in 1 2; do
        check "$1: site-$n is back" session_up "$(client_of $n)" "edge$n" "$2" 20
        check "$1: site-$n's packets flow again" flows "$(client_of $n)" "$(now_ns)" 20
        check "$1: site-$n has the address that it had" test "$(address_of "$(client_of $n)")" = "${at[$n]}"
    done
    pause_random 200 1200
}
told() { seen "$D/log/api.watch-$1.log" "$2" "$3"; } # KIND SINCE JQ
# landed KIND SINCE JQ: the earlier of the watch's event and now, when the API server has answered.
landed() { local now t; now=$(now_ns); t=$(await 5 "its event" told "$@") || t=$now; echo $((t < now ? t : now)); }

for n in 1 2; do
    for what in connector tenant; do
        tenant=acme
        [ $what = connector ] || tenant=other
        mark=$(now_ns)
        moment "site-$n: another $what"
        binding_of acme "site-$n" '' # the identity leaves it
        t=$(landed connectorbindings "$mark" '.object.spec.identities[0].uri == "spiffe://acme/nobody-site-'$n'"')
        ended $what $n "$mark" "$t"
        binding_of $tenant "moved-$n" "site-$n"
        if [ $what = connector ]; then
            check "connector: the identity has a session of the other connector's" session_up "$(client_of $n)" "edge$n" "$mark" 20
            p=$(prefix_of $n "$mark")
            check "connector: with another /96" test "$p" != "$(k admin get cb "acme.site-$n" -o 'jsonpath={.status.prefix}')"
            check "connector: the one that is reserved for it" test "$p" = "$(k admin get cb "acme.moved-$n" -o 'jsonpath={.status.prefix}')"
        else
            check "tenant: nobody is admitted to a service of another tenant's" await 5 "403" event "$mark" '.event == "refused" and .status == 403' "$(client_of $n)"
        fi
        mark=$(now_ns)
        k operator delete cb "$tenant.moved-$n" >/dev/null
        binding_of acme "site-$n" "site-$n"
        check "$what: site-$n is back" session_up "$(client_of $n)" "edge$n" "$mark" 20
        check "$what: site-$n's packets flow again" flows "$(client_of $n)" "$(now_ns)" 20
        check "$what: with the address that it had" test "$(address_of "$(client_of $n)")" = "${at[$n]}"
    done
done

moment "another VPC"
mark=$(now_ns)
for n in 1 2; do k operator delete cb "acme.site-$n" >/dev/null; landed connectorbindings "$mark" '.type == "DELETED" and .object.metadata.name == "acme.site-'$n'"' >"$D/told.$n"; done
for n in 1 2; do ended vpc $n "$mark" "$(<"$D/told.$n")"; done
sed -e 's|@NAME@|svc-b|; s|@TENANT@|acme|; s|vpc-a|vpc-b|; s|@POOL@|fd12:0:0:2::/64|; s|@DESTINATIONS@|fd20::/64|' -e "s|@VALID_UNTIL@|$(date -u -d '+290 seconds' +%Y-%m-%dT%H:%M:%SZ)|" \
    "$root/test/lab/objects/service.yaml.in" | k authority apply -f - >/dev/null
other=$(now_ns)
for n in 1 2; do binding_of acme "site-$n" "site-$n" vpc-b svc-b; done
for n in 1 2; do
    check "vpc: site-$n has a session in the other VPC" session_up "$(client_of $n)" "edge$n" "$other" 20
    check "vpc: out of its pool" inside "$(prefix_of $n "$other")" fd12:0:0:2::/64
done
truth vpc_a "$(awk -F, -v s="$other" '$3 == "in" && $1 >= s {n++} END {print n + 0}' "$D/log/cap.csv")" "vpc: no packet with an address of the first VPC's pool meanwhile"
for n in 1 2; do k operator delete cb "acme.site-$n" >/dev/null; done
mark=$(now_ns)
for n in 1 2; do "$LAB" binding "$D" acme "site-$n"; done
as_before vpc "$mark"

moment "reservation cleared"
mark=$(now_ns)
for n in 1 2; do
    k admin patch cb "acme.site-$n" --subresource=status --type merge -p '{"status":{"prefix":null}}' >/dev/null
    landed connectorbindings "$mark" '.object.metadata.name == "acme.site-'$n'" and .object.status.prefix == null' >"$D/told.$n"
done
for n in 1 2; do ended prefix $n "$mark" "$(<"$D/told.$n")"; done
as_before prefix "$mark"

moment "another service"
mark=$(now_ns)
k admin delete ps svc-a >/dev/null
t=$(landed providerservices "$mark" '.type == "DELETED"')
for n in 1 2; do ended service $n "$mark" "$t"; done
other=$(now_ns)
sed -e 's|@NAME@|svc-a|; s|@TENANT@|acme|; s|@POOL@|fd12:0:0:1::/65|; s|@DESTINATIONS@|fd20::/64|' -e "s|@VALID_UNTIL@|$(date -u -d '+290 seconds' +%Y-%m-%dT%H:%M:%SZ)|" \
    "$root/test/lab/objects/service.yaml.in" | k authority apply -f - >/dev/null
for n in 1 2; do
    check "service: site-$n has a session by the new one" session_up "$(client_of $n)" "edge$n" "$other" 30
    check "service: with a /96 out of its pool" inside "$(prefix_of $n "$other")" fd12:0:0:1::/65
done
truth old_pool "$(awk -F, -v s="$other" -v a="${at[1]}" -v b="${at[2]}" '$3 == "in" && $1 >= s && ($4 == a || $4 == b) {n++} END {print n + 0}' "$D/log/cap.csv")" "service: no packet with an address of before"
for n in 1 2; do
    at[$n]=$(address_of "$(client_of $n)")
    "$LAB" run "$D" "$(client_of $n)" send-again "$PROBE" send --bind "${at[$n]}" --freebind --to fd20::10 --port 7000 --interval 4000 --stream $n
    "$LAB" run "$D" vpc "send-again-$n" "$PROBE" send --bind fd20::10 --to "${at[$n]}" --port 7000 --interval 4000 --stream $((n + 8))
    check "service: site-$n's packets flow" flows "$(client_of $n)" "$(now_ns)"
done
pause_random 200 1200

moment "revoked"
mark=$(now_ns)
k authority patch ps svc-a --type merge -p '{"spec":{"revoked":true}}' >/dev/null
t=$(landed providerservices "$mark" '.object.spec.revoked == true')
for n in 1 2; do ended revoked $n "$mark" "$t"; done
sleep 1
truth revoked_late "$(awk -F, -v s=$((t + 200000000)) '$3 == "in" && $1 >= s {n++} END {print n + 0}' "$D/log/cap.csv")" "revoked: no packet afterwards"
safe
checks_done
