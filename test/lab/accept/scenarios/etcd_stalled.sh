#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# etcd_stalled.sh: the API server answers from its caches, and its store stands still.
# given: two connectors with traffic both ways: site-1 through edge1 over HTTP/3, site-2 through edge2 over HTTP/2; L is 10 s
# fault: SIGSTOP of etcd for 13 s
# expect: no cache extends anything: traffic ends by the deadline; afterwards it comes back by itself
# bound: last packet within L; 1 s from etcd's return to packets both ways
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scenarios/lib.sh"
# shellcheck source=test/lab/accept/outage.sh
. "$root/test/lab/accept/outage.sh"
scenario_up --lease 10
two_connectors
pause_random 0 3000
stopped=$(now_ns)
kill -STOP "$(<"$D/api/etcd.pid")"
moment "etcd stopped" "$stopped"
sleep 13
back=$(now_ns)
kill -CONT "$(<"$D/api/etcd.pid")"
moment "etcd goes on" "$back"
for n in 1 2; do ended_and_back "etcd" $n "$stopped" "$back"; done
safe
checks_done
