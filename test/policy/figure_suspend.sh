#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# figure_suspend.sh: from the operator's suspend to the suspended connector's last packet, in either direction, over RUNS (200)
# runs, while OTHERS (100) connectors on the same instance send and receive: p99 at most 50 ms, and the others lose no packet.
# Measured at both ends, in numbered packets: into the VPC by the VPC host's own log, towards the connector by the fleet; the
# later one counts. Time runs from before the operator's request is sent; since the API server's answer it is printed, too.
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/scenarios/lib.sh"
# shellcheck source=test/policy/lib.sh
. "$root/test/policy/lib.sh"
# shellcheck source=test/policy/figures_lib.sh
. "$root/test/policy/figures_lib.sh"
RUNS=${RUNS:-200} OTHERS=${OTHERS:-100}

scenario_up
fleet_room edge1
"$LAB" start "$D" agent edge1
await 30 ready agent_ready edge1 >/dev/null
fleet_bindings $((OTHERS + 1))
fleet_suspends $((OTHERS + 1)) "$RUNS"
await $((RUNS * 5 + 120)) end cat "$D/run/client.fleet.rc" >/dev/null 2>&1 || { tail -n 5 "$D/log/client.fleet.log"; exit 1; }
[ "$(cat "$D/run/client.fleet.rc")" = 0 ] || { tail -n 5 "$D/log/client.fleet.log"; exit 1; }
http "http://[fd00:c::1]:9781/metrics" >"$D/metrics.txt" || true # where packets were dropped, if any
"$LAB" exec "$D" edge1 ip -s -j link >"$D/links.json" || true

# run,asked,done,last echo -> the later of it and the VPC host's last packet of that run's stream
jq -r 'select(.event == "suspend") | [.run, .asked, .done, .last] | @csv' "$D/log/client.fleet.log" >"$D/suspend.csv"
awk -F, 'NR == FNR {if ($1 < 1000000 && $4 > last[$1]) last[$1] = $4; next}
    {l = $4 > last[$1] ? $4 : last[$1]; printf "%d,%.3f,%.3f\n", $1, (l - $2) / 1e6, (l - $3) / 1e6}' "$D/log/fleet-echo.csv" "$D/suspend.csv" >"$D/suspend-ms.csv"
n=$(wc -l <"$D/suspend-ms.csv")
figure "runs" "$n" = "$RUNS" ''
figure "runs with a last packet at the VPC host" "$(awk -F, '$1 >= 1 && $1 < 1000000 {s[$1] = 1} END {for (i in s) n++; print n + 0}' "$D/log/fleet-echo.csv")" = "$RUNS" ''
for q in 0.5 0.99 1; do
    printf 'figure  %-64s %10s ms\n' "suspend stored (the API server's answer) to last packet, quantile $q" "$(cut -d, -f3 "$D/suspend-ms.csv" | quantile $q)"
done
for q in 0.5 1; do printf 'figure  %-64s %10s ms\n' "suspend sent to last packet, quantile $q" "$(cut -d, -f2 "$D/suspend-ms.csv" | quantile $q)"; done
figure "suspend sent to last packet, quantile 0.99" "$(cut -d, -f2 "$D/suspend-ms.csv" | quantile 0.99)" '<=' 50 ms
sums=$(jq -c 'select(.event == "stopped")' "$D/log/client.fleet.log")
figure "others: sessions" "$(jq .sessions <<<"$sums")" = $((OTHERS + 1)) ''
figure "others: packets sent" "$(jq .sent <<<"$sums")" '>' "$OTHERS" ''
figure "others: packets lost" $(($(jq .sent <<<"$sums") - $(jq .echoed <<<"$sums"))) = 0 ''
figure "others: sessions that ended" "$(jq .closed <<<"$sums")" = 0 ''
figures_done
