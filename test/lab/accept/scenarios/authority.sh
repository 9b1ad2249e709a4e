#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# authority.sh: the operator's webhook is away, hangs, or answers for something else than it was asked about.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2; grants of 6 s
# fault: the webhook refuses connections; hangs; names another tenant, connector, VPC, service, /96 in its answers (FAULTS: some)
# expect: what is no answer extends nothing: traffic ends by the last grant; with good answers it comes back by itself
# bound: last packet within the grant; 1 s from the first good answer to packets both ways
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
# shellcheck source=test/policy/lib.sh
. "$root/test/policy/lib.sh"
GRANT=6 # s, of test/policy/lib.sh's configuration
scenario_up --lease 10
policy_save
hook_keys
hook_start
hook rules "grant $GRANT"
for n in edge1 edge2; do policy_config $n webhook off; done
two_connectors

# applied PATH [CURL-ARG...]: does it; prints when it began to be so, by the webhook's own clock
applied() { curl -sS --fail-with-body -o /dev/null -D - --unix-socket "$HOOK_SOCK" "http://hook/$1" "${@:2}" | sed -n 's/^[Aa]pplied-[Aa]t: \([0-9]*\).*/\1/p'; }
rules() { applied rules --data-binary "$(printf '%s\n' "grant $GRANT" "$@")"; }
for fault in ${FAULTS:-down hang tenant connector vpc service prefix}; do
    sleep 2.5 # an answer that is good
    pause_random 0 2000
    case $fault in
    down) since=$(applied down -X POST) ;;
    hang) since=$(rules hang) ;;
    prefix) since=$(rules 'set prefix "fd12:0:0:1:0:99::/96"') ;;
    *) since=$(rules "set $fault \"another\"") ;;
    esac
    moment "webhook: $fault" "$since"
    while [ "$(now_ns)" -lt $((since + GRANT * 1000000000 + 1000000000)) ]; do sleep 0.1; done
    if [ $fault = down ]; then back=$(applied up -X POST); else back=$(rules); fi
    moment "webhook: well" "$back"
    for n in 1 2; do ended_and_back $fault $n "$since" "$back" $((GRANT * 1000)); done
done
safe
checks_done
