#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run-tests.sh NAME COMMAND...: runs one suite, shows its output, and records "passed failed" in build/results/NAME.
# Understands Criterion's synthesis line and the plain closing line "[word:] N passed, N failed".
# A suite that exits 0 without having run a test counts as one failure; so does one that leaves a process behind which holds
# its output. Interrupted (Ctrl-C, SIGTERM, SIGHUP), it ends the suite with SIGTERM and waits while that cleans up; a second
# time, or after HOLDFAST_SUITE_GRACE seconds (30), it kills it.
set -uo pipefail
name=$1; shift
mkdir -p "build/results/$(dirname "$name")"
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
suite='' why='' grace=${HOLDFAST_SUITE_GRACE:-30}
stop() { # STATUS
  [ -z "$why" ] || kill -KILL -- "-$suite" 2>/dev/null
  why=$1
  [ -z "$suite" ] || kill -TERM "$suite" 2>/dev/null # timeout passes it on to its group
}
trap 'stop 130' INT
trap 'stop 143' TERM
trap 'stop 129' HUP
start=$(date +%s%N)
mkfifo "$tmp/out"
tee "$tmp/log" <"$tmp/out" & tee=$!
# A suite that hangs is a failure, not a wait. timeout puts it into a process group of its own, which a terminal's Ctrl-C does
# not reach, and a shell ignores SIGINT in what it starts in the background: hence our traps, and env.
env --default-signal=INT,QUIT timeout --kill-after="$grace" "${HOLDFAST_SUITE_TIMEOUT:-1500}" "$@" >"$tmp/out" 2>&1 & suite=$!
[ -z "$why" ] || kill -TERM "$suite" 2>/dev/null
while :; do
  wait "$suite"; rc=$?
  kill -0 "$suite" 2>/dev/null || break # else a signal came
done
held=''
timeout "$grace" tail --pid="$tee" -s 0.1 -f /dev/null || { held=1; kill "$tee" 2>/dev/null; }
ms=$(( ($(date +%s%N) - start) / 1000000 ))
clean=$(sed 's/\x1b\[[0-9;]*m//g' "$tmp/log")
read -r p f < <(printf '%s\n' "$clean" | awk '
  /Synthesis: Tested:/ { gsub(/[^0-9 ]/, " "); t += $1; p += $2; f += $3 + $4; next }
  match($0, /^([A-Za-z0-9_.\/-]+: )?[0-9]+ passed, [0-9]+ failed/) { s = $0; sub(/^[^ ]*: /, "", s); split(s, a, " "); p = a[1]; f = a[3] }
  END { print p + 0, f + 0 }')
[ "$rc" -ne 0 ] && [ "$f" -eq 0 ] && f=1
[ "$rc" -eq 0 ] && [ "$p" -eq 0 ] && [ "$f" -eq 0 ] && { echo "$name: ran no test"; f=1; }
[ -n "$held" ] && { echo "$name: has ended, but a process that it started holds its output"; f=$((f + 1)); }
[ -n "$why" ] && { echo "$name: interrupted"; [ "$f" -gt 0 ] || f=1; }
echo "$p $f $ms" > "build/results/$name"
[ -z "$why" ] || exit "$why"
[ "$f" -eq 0 ]
