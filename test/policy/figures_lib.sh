# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the figures of the policy; sourced after lib.sh. A figure prints what was measured and what it must be.
# shellcheck disable=SC2154 # root, D, LAB come from the scenarios' library

FLEET=$root/build/peers/holdfast-fleet
FLEET_SOCK=/run/holdfast-lab/fleet-$$.sock

fleet_bindings() { # COUNT [FROM]
    local i
    {
        printf '{"apiVersion":"v1","kind":"List","items":['
        for ((i = ${2:-0}; i < $1; i++)); do
            [ "$i" = "${2:-0}" ] || printf ,
            printf '{"apiVersion":"masque.galactic.datumapis.com/v1alpha1","kind":"ConnectorBinding","metadata":{"name":"acme.fleet-%d"},"spec":{"tenant":"acme","connector":"fleet-%d","vpc":"vpc-a","serviceName":"svc-a","identities":[{"uri":"spiffe://acme/fleet-%d"}]}}' $i $i $i
        done
        printf ']}\n'
    } >"$D/bindings.json"
    k operator create -f "$D/bindings.json" >/dev/null
}
fleet_start() { # COUNT [ARG...]
    local n=$1
    shift
    : >"$D/log/client.fleet.log"
    "$LAB" run "$D" client fleet "$FLEET" -edge '[fd00:c::1]:4433' -ca "$D/pki/edge-ca.crt" -client-ca "$D/pki/client-ca.crt" \
        -client-ca-key "$D/pki/client-ca.key" -count "$n" -control "$FLEET_SOCK" "$@"
}
fleet_stats() { curl -sS --unix-socket "$FLEET_SOCK" http://fleet/stats; }
fleet_is_up() { [ "$(fleet_stats 2>/dev/null | jq .connected)" = "$1" ]; }
# many_config NODE SED: room for a fleet from one address.
many_config() {
    sed -E -e '$a limits:\n  connectionsPerSource: 4000\n  connections: 8192\n  handshakes: 1024' -e "${2:-}" "$D/nodes/$1/agent.yaml.lab" >"$D/nodes/$1/etc/agent.yaml"
}
# figure NAME VALUE OPERATOR BOUND UNIT: prints it and counts whether it meets its bound; what is no number (nothing, null) does not. figures_done: the closing line.
FIGURES_MET=0 FIGURES_MISSED=0
figure() {
    local ok=met
    awk -v a="$2" -v b="$4" -v op="$3" 'BEGIN {exit !(a ~ /^-?[0-9]+([.][0-9]+)?$/ && b ~ /^-?[0-9]+([.][0-9]+)?$/ && (op == "<=" ? a + 0 <= b + 0 : op == ">" ? a + 0 > b + 0 : a + 0 == b + 0))}' || ok=MISSED
    printf 'figure  %-64s %10s %s   (%s %s) %s\n' "$1" "$2" "$5" "$3" "$4" "$ok"
    if [ "$ok" = met ]; then FIGURES_MET=$((FIGURES_MET + 1)); else FIGURES_MISSED=$((FIGURES_MISSED + 1)); fi
}
figures_done() { # [LIMITS]: rows of KNOWN_LIMITS.md that concern these figures
    rm -f "$HOOK_SOCK" "$FLEET_SOCK"
    printf 'figures: %d passed, %d failed%s\n' "$FIGURES_MET" "$FIGURES_MISSED" "${1:+; $1 known limit(s), see KNOWN_LIMITS.md}"
    [ "$FIGURES_MISSED" = 0 ] && [ "$FIGURES_MET" -gt 0 ]
}
quantile() { sort -n | awk -v q="$1" '{v[NR] = $1} END {i = int(q * NR); if (i < q * NR) i++; if (i < 1) i = 1; print v[i]}'; } # Q: of the numbers on stdin
