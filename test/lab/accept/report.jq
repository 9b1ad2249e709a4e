# SPDX-License-Identifier: Apache-2.0
# report.jq: the lines that the runner and the scenarios wrote (--slurp) to one report. $known: names in KNOWN_LIMITS.md; $meta: what
# made it. Every value has to hold, not only the p99; a value that could not be measured does not hold.
def rank($p): sort | .[(((length * $p) | ceil) - 1) | if . < 0 then 0 else . end];
def stats: map(.value) as $v | ($v | map(select(. != null))) as $n
    | {n: ($v | length), unmeasured: ($v | map(select(. == null)) | length),
       p50: ($n | rank(0.5)), p99: ($n | rank(0.99)), max: ($n | max)};
. as $all
| [$all[] | select(.scenario)] | group_by(.scenario) | sort_by(.[0].order)
| map(.[0].scenario as $s
    | {scenario: $s, order: .[0].order, given: (map(.given // empty) | first), fault: (map(.fault // empty) | first), expect: (map(.expect // empty) | first), bound: (map(.words_bound // empty) | first),
       runs: (map(select(.run)) | {n: length, failed: (map(select(.rc != 0)) | length), seconds: (map(.seconds) | add),
            load: (map(.load) | max), failures: ([.[] | select(.rc != 0) | {run, seed, log}])}),
       figures: ([.[] | select(.figure)] | group_by(.figure)
            | map(stats + {name: .[0].figure, bound: .[0].bound, words: .[0].words}
                | "accept \($s)/\(.name)" as $key
                | .verdict = (if .unmeasured == 0 and .max <= .bound then "holds"
                    elif ($known | index($key)) then "known limit" else "FAILS" end))),
       truths: ([.[] | select(.truth)] | group_by(.truth)
            | map(stats + {name: .[0].truth, words: .[0].words, sum: (map(.value // 0) | add)}
                | .verdict = (if .unmeasured == 0 and .max == 0 then "holds" else "FAILS" end)))})
| {meta: $meta, scenarios: .,
   runs: (map(.runs.n) | add // 0),
   past_deadline: ([.[].truths[] | select(.name | IN("past_deadline", "outside_gates")) | .sum] | add // 0),
   two_forwarders: ([.[].truths[] | select(.name == "two_forwarders") | .sum] | add // 0)}
| .passed = ([.scenarios[] | (.figures[], .truths[]) | select(.verdict == "holds")] | length) + ([.scenarios[].runs | .n - .failed] | add // 0)
| .known = ([.scenarios[].figures[] | select(.verdict == "known limit")] | length)
| .failed = ([.scenarios[] | (.figures[], .truths[]) | select(.verdict == "FAILS")] | length) + ([.scenarios[].runs.failed] | add // 0)
