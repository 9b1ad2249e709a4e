#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# audit-check.sh LAB-DIR: lays the agents' audit trail beside the API server's own audit log. Claims, both ways:
#   1. every acquire, takeover and release that an agent audited as allowed has a write of that RouteClaim or ProviderInstance
#      with its correlation ID as Audit-ID, made by the agent of that node;
#   2. every such write that landed, renewals included, has such a record, durable before the write was received; of a holder's
#      renewals the first has one, the later ones may be in a sum;
#   3. every record of an operation has a correlation ID.
# Prints a table of operations, then one line with the counts; exit 1 when they disagree or when there is nothing to compare.
set -euo pipefail
[ $# = 1 ] && [ -s "$1/api/audit.log" ] || { echo "usage: ${0##*/} LAB-DIR (of a lab with an API server)" >&2; exit 2; }
trail=() f=''
for f in "$1"/nodes/edge*/audit/*; do [ ! -f "$f" ] || trail+=("$f"); done
[ ${#trail[@]} -gt 0 ] || { echo "no audit file under $1/nodes/edge*/audit" >&2; exit 1; }

jq -rn --slurpfile trail <(cat "${trail[@]}") --slurpfile api <(grep -E '"resource":"(routeclaims|providerinstances)"' "$1/api/audit.log") '
  ($trail | map(select(.event))) as $records
  | ($records | map(select(.correlationID | not))) as $nameless
  | ($records | map(select((.event | IN("acquire", "takeover", "release", "renew")) and .outcome == "allowed" and .correlationID))) as $all
  | ($all | map(select(.event != "renew"))) as $ops
  | ($api | map(select(.objectRef.subresource == null and (.verb | IN("create", "update", "patch"))
       and (.objectRef.name | test("^(rc-|masque[.])")) and (.user.username | endswith(":holdfast-agent"))))) as $writes
  | ($writes | group_by(.auditID) | map({key: .[0].auditID, value: .}) | from_entries) as $by_id
  | ($all | group_by(.correlationID) | map({key: .[0].correlationID, value: .}) | from_entries) as $ops_by_id
  | ($ops | map(. as $o | ($by_id[$o.correlationID] // []) | map(select(.objectRef.name == $o.object
        and .user.extra["authentication.kubernetes.io/node-name"][0] == $o.node)) | {op: $o, writes: .})) as $joined
  | ($joined | map(select(.writes | length == 0))) as $unmatched_ops
  | ($writes | map(select(.responseStatus.code < 300))) as $landed
  | ($landed | map(. as $w | select(($ops_by_id[$w.auditID] // []) | any(.object == $w.objectRef.name and .ts <= $w.requestReceivedTimestamp) | not))) as $without
  | ($without | map(. as $w | select(.verb == "update" and (.objectRef.name | startswith("masque."))
        and any($all[]; .event == "renew" and .object == $w.objectRef.name and .ts <= $w.requestReceivedTimestamp)))) as $summed
  | ($without - $summed) as $unmatched_writes
  | ($joined[] | [.op.ts, .op.node, .op.event, (.op.reason // "-"), "epoch \(.op.epoch // "-")", .op.correlationID,
       (.writes | map("\(.verb) \(.responseStatus.code)") | join(" ") | if . == "" then "NO WRITE" else . end)] | @tsv),
    ($unmatched_ops[] | "audited, but no write on the API server: \(.op.event) of \(.op.object) by \(.op.node), correlation \(.op.correlationID)"),
    ($unmatched_writes[] | "written, but not audited before: \(.verb) of \(.objectRef.name) at \(.requestReceivedTimestamp), Audit-ID \(.auditID)"),
    ($nameless[] | "recorded without a correlation ID: \(.event) \(.reason // "-") of \(.object // "-") by \(.node) at \(.ts)"),
    "\($ops | length) audited operations and \(($all | length) - ($ops | length)) renewals (\($summed | length) more in sums), \($landed | length) landed writes, " +
    (($unmatched_ops | length) + ($unmatched_writes | length) + ($nameless | length)) as $wrong
    | (if $wrong > 0 then "they DISAGREE in \($wrong)"
     elif ($ops | length) == 0 or ($landed | length) == 0 then "NOTHING to compare"
     else "all agree by correlation ID" end)
' | awk '{print} {last = $0} END {exit last ~ /all agree/ ? 0 : 1}'
