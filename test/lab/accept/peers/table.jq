# SPDX-License-Identifier: Apache-2.0
# table.jq: the lines of `move` (--slurp) to one row for each mover and event. $published: lines of published.tsv; $meta: what made it.
# A gap that could not be measured (null) fails; so do, for Holdfast alone, packets of two edges, a moment in which both hold, and packets
# out of an edge that does not hold the address.
def rank($p): sort | .[(((length * $p) | ceil) - 1) | if . < 0 then 0 else . end];
def stats: map(select(. != null)) as $n | {n: length, unmeasured: (length - ($n | length)), p50: ($n | rank(0.5)), p99: ($n | rank(0.99)), max: ($n | max)};
def place: .mover | if startswith("Holdfast") then 0 elif startswith("keepalived") then 1 else 2 end;
{meta: $meta,
 published: ($published | split("\n") | map(select(length > 0 and (startswith("#") | not)) | split("\t") | {what: .[0], figure: .[1], source: .[2]})),
 moves: ([.[] | select(.mover)] | to_entries | map(.value + {at: .key}) | group_by([.mover, .event])
    | map({mover: .[0].mover, event: .[0].event, order: .[0].order, at: (map(.at) | min), n: length, up: (map(.gap_up) | stats), down: (map(.gap_down) | stats),
           packets: (map(.packets) | stats), overlap: (map(.overlap) | stats), both: (map(.both) | stats), not_held: (map(.not_held) | stats), still: (map(select(.still)) | length)}
        | .verdict = (if .up.unmeasured > 0 or .down.unmeasured > 0 or .packets.unmeasured > 0 then "FAILS"
            elif (.mover | startswith("Holdfast")) and (.packets.max > 0 or .both.unmeasured > 0 or .both.max > 0 or .still > 0 or .not_held.unmeasured > 0 or .not_held.max > 0) then "FAILS" else "measured" end))
    | sort_by([place, .mover, .order, .at]))}
