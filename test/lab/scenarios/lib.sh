# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the lab's scenarios; sourced. A scenario is a test with real packets: `scenario_up`, checks, `checks_done`. The
# lab's folder is build/scenarios/NAME; its logs stay there.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
LAB=$root/test/lab/lab
PROBE=${HOLDFAST_BIN:-$root/build/bin}/holdfast-probe
CONNECTOR=$root/build/peers/holdfast-connector
# shellcheck source=test/lab/lib/check.sh
. "$root/test/lab/lib/check.sh"
# shellcheck source=test/lab/lib/facts.sh
. "$root/test/lab/lib/facts.sh"
[ "$(id -u)" = 0 ] || { echo "${0##*/}: error: needs root, for network namespaces" >&2; exit 1; }

NAME=$(basename "$0" .sh)
D=$root/build/scenarios/$NAME
k() { local u=$1; shift; "$LAB" kubectl "$D" "$u" "$@"; }
note() { printf '      %s\n' "$*"; }

scenario_end() {
    local rc=$?
    trap - EXIT INT TERM
    if [ "$rc" != 0 ]; then
        for f in "$D"/log/edge*.{agent,foundation}.log "$D"/log/client*.connector.log; do
            [ -s "$f" ] || continue
            printf -- '--- last lines of %s\n' "$f"
            tail -n 8 "$f" | cut -c1-300
        done
    fi
    "$LAB" down "$D" 2>/dev/null || rc=1
    exit "$rc"
}
# scenario_up OPTION...: a lab (options of `lab up`), observers, foundations. scenario_agents: both agents, ready.
scenario_up() {
    mkdir -p "$D"
    "$LAB" reap
    trap scenario_end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    "$LAB" up "$D" --owner $$ "$@" 2>"$D/up.log" || { cat "$D/up.log"; exit 1; }
    observers
    local n
    for n in edge1 edge2; do "$LAB" start "$D" foundation "$n"; done
}
scenario_agents() {
    local n
    for n in edge1 edge2; do "$LAB" start "$D" agent "$n"; done
    for n in edge1 edge2; do check "$n's agent is ready" await 30 "ready" agent_ready "$n"; done
}
# try CERTIFICATE [ARG...]: one attempt at edge1 without device; prints the connector's events. CERTIFICATE none: no certificate.
try() {
    local cert=()
    [ "$1" = none ] || cert=(-cert "$D/pki/$1.crt" -key "$D/pki/$1.key")
    shift
    timeout 15 "$LAB" exec "$D" client "$CONNECTOR" -once -explain -tun '' -dial-timeout 5s -edges 'edge1=[fd00:c::1]:4433' \
        -ca "$D/pki/edge-ca.crt" "${cert[@]}" "$@" || true
}
address_of() { "$LAB" exec "$D" "$1" ip -6 -j addr show dev hfc0 | jq -r '.[0].addr_info[0].local'; } # CLIENT
