#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# claim_deleted.sh: the operator deletes a RouteClaim under its session, and the connector comes back with another object of the
# same name, at epoch 1: its prefix is reserved in the binding. Then the same with silent watches on the node: what a watch
# does not show, the next proof does. Waits and tombstones are keyed by the object's UID. Contract sections 1, 4, 5 and 8.
# given: a connector with traffic both ways through edge1, L 10 s
# fault: its RouteClaim is deleted, also behind silent watches
# expect: the gate closes, the connector is back with a new row
# bound: gate closed within L
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
scenario_up --lease 10 --proxy
with_session keeps_asking
name=$(field .metadata.name)
prefix=$(field .spec.prefix)
gone() { seen "$D/log/api.watch-routeclaims.log" "$1" '.type == "DELETED"'; } # SINCE

for round in 1 2 silent; do
    uid=$(field .metadata.uid)
    if [ $round = silent ]; then
        "$LAB" proxy "$D" edge1 'silence GET /apis/edge\.galactic\.datumapis\.com/v1alpha1/.*routeclaims.*watch='
        sleep 1
    fi
    mark=$(now_ns)
    k operator delete rclaim "$name" --wait=false >/dev/null
    deleted=$(await 5 "the deletion" api_received "$mark" delete routeclaims "$name")
    check "$round: the gate closes" await 12 "close" logged edge1.foundation "$mark" '.event == "foundation_close" and .reason == "Deleted"'
    closed=$(logged edge1.foundation "$mark" '.event == "foundation_close"')
    figure "gate_$round" "$(ms_between "$deleted" "$closed")" 10000 "$round: within the lease"
moment "deleted" "$deleted"
    check "$round: the object goes" await 15 "DELETED" gone "$mark"
    [ $round != silent ] || "$LAB" proxy "$D" edge1
    check "$round: a new one comes, at epoch 1" await 15 "new row" claim "$(gone "$mark")" '.object.metadata.name == "'"$name"'" and .object.metadata.uid != "'"$uid"'" and .object.spec.epoch == 1'
    check "$round: the connector is told, and comes back" session_up client edge1 "$closed"
    back=$(jq .t <<<"$(session_up client edge1 "$closed")")
    check "$round: packets flow again" flows client "$back"
    check "$round: with the same prefix" test "$(field .spec.prefix)" = "$prefix"
    last=$(awk -F, -v s="$deleted" -v u="$back" '$2 == "e1" && $3 == "in" && $1 < u {t = $1} END {print t + 0}' "$D/log/cap.csv")
    note "$round: deleted at 0 ms; last packet $(ms_between "$deleted" "$last") ms, gate closed $(ms_between "$deleted" "$closed") ms, back $(ms_between "$deleted" "$back") ms"
done
check "watches were silenced" test "$(grep -c 'silenced' <<<"$(curl -sS --unix-socket "/run/holdfast-lab/$(sed -n 's/^LAB_ID=//p' "$D/lab.env")-edge1.sock" http://proxy/log)")" -ge 2
safe
checks_done
