#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# etcd_restore.sh: etcd is backed up while edge1 holds the claim, edge2 takes it over, and the backup is restored within a few
# seconds, not after the outage of W that OPERATIONS.md asks for. Both edges notice; the session on edge2 ends by its deadline at
# the latest, nothing opens for W, and then everything comes back by itself: same processes, nobody's help. With LONG=1
# then the same with a revision bump, where versions go up and only the rows go back. Contract section 5, "Regression".
# given: a connector moved from edge1 to edge2, L 10 s
# fault: etcd goes back to before the move
# expect: everything closes, W, and back without help
# bound: last packet within L
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
W=$(AUTH_W 10)
pids() { cut -d' ' -f1 "$D"/run/edge?.{agent,foundation}.pid | tr '\n' ' '; }
# none_opened SINCE UNTIL: no foundation opened a gate in that time.
none_opened() {
    local n t
    for n in edge1 edge2; do
        t=$(logged $n.foundation "$1" '.event == "foundation_open"') || continue
        [ "$t" -ge "$2" ] || { echo "$n opened $(ms_between "$1" "$t") ms after"; return 1; }
    done
}
# ended_on EDGE SINCE: by the regression, with its device when the foundation notices first, or by its deadline when the API server was
# away for longer than that.
ended_on() {
    local r
    for r in EpochRegressed TunLost LeaseExpired GrantExpired ClaimProofExpired; do ! recorded "$1" expiry "$r" "$2" || return 0; done
    return 1
}
scenario_up --lease 10
with_session
first=$(pids)

old=client new=client2 from=edge1 to=edge2 option=''
rounds=(restored)
[ -z "${LONG:-}" ] || rounds+=(bumped)
for round in "${rounds[@]}"; do
    echo "-- $round"
    epoch=$(field .spec.epoch)
    "$root/test/apiserver/backup.sh" "$D/api" "$D/backup"
    mark=$(now_ns)
    keeps_asking $new $to
    check "$to takes the claim over" session_up $new $to "$mark"
    check "no overlap" hand_over $old $new "$mark"
    sleep 4 # both have proved, and so have seen, what will be lost
    check "packets flow through $to" flows $new "$(now_ns)"
    t0=$(now_ns)
    # shellcheck disable=SC2086
    away=$("$root/test/apiserver/restore.sh" "$D/api" "$D/backup" $option 2>>"$D/log/restore.log")
    back=$(now_ns)
    observe_again
    check "the row is what it was in the backup" test "$(field .spec.epoch)/$(field .spec.holder.node)" = "$epoch/$from"
    for n in edge1 edge2; do
        check "$n's agent notices" await 15 "notice" logged $n.agent "$t0" '.event == "store_regressed"'
        check "$n's foundation notices" await 15 "notice" logged $n.foundation "$t0" '.event == "foundation_regressed"'
        check "$n closes" await 15 "not ready" logged $n.agent "$t0" '.event == "ready_condition" and .reason == "EpochRegressed"'
    done
    noticed=$(logged $to.foundation "$t0" '.event == "foundation_regressed"')
    check "the session on $to has ended, and it is on record" await 15 "record" ended_on $to "$t0"
    check "the connector is admitted again, without anybody's help" session_up $new $to "$back" 40
    check "packets flow" flows $new "$(now_ns)" 10
    up=$(first_up $new "$noticed")
    last=$(awk -F, -v m="$(stream_of $new)" -v u="$up" '$1 == m && $4 < u {t = $4} END {print t}' "$D/log/to-vpc.csv")
    note "the API server was away for $away ms; noticed at $(ms_between "$t0" "$noticed") ms; last packet at $(ms_between "$t0" "$last") ms, first one again at $(ms_between "$t0" "$up") ms; W is $W ms"
    figure "ends_$round" "$(ms_between "$t0" "$last")" 10000 "packets had stopped by the deadline at the latest"
moment "restored" "$t0"
moment "noticed" "$noticed"
    check "nothing opened before W was over" none_opened "$t0" $((noticed + W * 1000000))
    check "but soon after" test $(((up - noticed) / 1000000)) -lt $((W + 15000))
    check "the claim was taken over from the row as stored" test "$(field .spec.epoch)" -gt "$epoch"
    for n in edge1 edge2; do check "$n is ready" await 20 "ready" agent_ready $n; done
    check "by the same processes" test "$(pids)" = "$first"
    "$LAB" stop "$D" connector $new >/dev/null || true
    mark=$(now_ns)
    session $old $from # for the next round: back on the other one, released before
    check "and over to $from" session_up $old $from "$mark" 15
    option=bump
done
safe
checks_done
