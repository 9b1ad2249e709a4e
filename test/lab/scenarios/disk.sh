#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# disk.sh: the audit trail's disk is full, read-only, broken or does not answer (real file systems, not the agent's own doing):
# an operation whose record cannot be made durable is refused in time, which shows in /readyz, in metrics, on the objects; the
# session that forwards already ends on its deadline; when the disk is well again, so is the node, and the trail verifies.
# given: the audit trail's disk is a file system of its own
# fault: full, read-only, giving errors, frozen
# expect: what needs a record is refused in time; the session ends on its deadline
# bound: 3 s to a refusal
set -euo pipefail
# shellcheck source=test/lab/scenarios/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=test/policy/lib.sh
. "$root/test/policy/lib.sh"

AUDIT=$D/nodes/edge1/audit
L=10
readyz_says() { http "http://[fd00:c::1]:9780/readyz" >"$D/readyz.txt"; grep -E -- "$1" "$D/readyz.txt" || { cat "$D/readyz.txt"; return 1; }; }
more_than() { [ "$(metric "$1")" -gt "$2" ]; } # METRIC N
binding_says() { # JQ: of the condition Ready of site-2
    k operator get cb acme.site-2 -o json | jq -e '.status.conditions[]? | select(.type == "Ready") | select('"$1"')' ||
        { k operator get cb acme.site-2 -o json | jq -c .status; return 1; }
}
# what needs a record is answered within the deadline of 2 s, and a little
refused_in_time() {
    gets '^503 AuditUnavailable' $(cert site-2) &&
        jq -se 'map(select(.event == "refused")) | .[-1].ms < 3000' "$D/outcome.log" || { cat "$D/outcome.log"; return 1; }
}
admitted() { gets '^connected' $(cert site-2); }
umount_audit() { # innermost first
    local m
    fsfreeze -u "$AUDIT" 2>/dev/null || true
    for m in "$AUDIT" "$D/outer" "$D/backing"; do
        while mountpoint -q "$m"; do umount "$m" 2>/dev/null || umount -l "$m"; done
    done
}
disk_end() {
    local rc=$?
    set +e
    "$LAB" kill -KILL "$D" agent edge1 2>/dev/null # it holds the file system
    umount_audit
    (exit "$rc")
    scenario_end
}
# ext4 FILE MOUNTPOINT MEGABYTES [OPTION]
ext4() {
    truncate -s "$3m" "$1"
    mkfs.ext4 -q -m 0 -O ^has_journal -E lazy_itable_init=0 "$1"
    mkdir -p "$2"
    mount -o "loop,${4:-errors=continue}" "$1" "$2"
}
# disk KIND: edge1's trail is on a fresh file system. tmpfs: of 1 MiB. ext4: a disk in memory. broken: the same on a disk that
# outer will take the writes of, and give nothing but errors back.
disk() {
    umount_audit
    mkdir -p "$D/backing" "$D/outer"
    if [ "$1" = tmpfs ]; then
        mount -t tmpfs -o size=1m,mode=700 audit "$AUDIT"
    else
        mount -t tmpfs -o size=60m backing "$D/backing"
        case $1 in
        ext4) ext4 "$D/backing/disk" "$AUDIT" 32 ;;
        broken)
            ext4 "$D/backing/outer" "$D/outer" 48
            ext4 "$D/outer/disk" "$AUDIT" 32
            ;;
        esac
    fi
    chown 65532:65532 "$AUDIT"
    chmod 700 "$AUDIT"
}
start() { "$LAB" start "$D" agent edge1; check "$1: ready" await 40 ready agent_ready edge1; }
stop() { "$LAB" stop "$D" agent edge1 >/dev/null 2>&1 || true; }
well() { # NAME: after the disk is well again
    check "$1: well again: ready without a restart" eventually 15 readyz_says '^\[\+\]audit ok'
    check "$1: … and admits" eventually 15 admitted
    check "$1: … the trail verifies" bash -c '"$1/kubectl-holdfast" audit verify "$2" | grep -E "^good"' _ "${HOLDFAST_BIN:-$root/build/bin}" "$AUDIT"
}

scenario_up --lease "$L"
trap disk_end EXIT
binding site-1
binding site-2

echo "-- full (tmpfs of 1 MiB)"
disk tmpfs
start "full"
mark=$(now_ns)
"$LAB" start "$D" connector client site-1 -edges 'edge1=[fd00:c::1]:4433' -once
check "full: a session" session_up client edge1 "$mark"
traffic "$(address_of client)"
check "full: packets pass" flows client "$mark"
n=$(metric holdfast_audit_lost_total)
dd if=/dev/zero of="$AUDIT/fill" bs=4k 2>/dev/null || true
broken=$(now_ns)
check "full: another connector, which needs a record: refused in time" eventually 5 refused_in_time
check "full: /readyz names file and errno" readyz_says '^\[-\]audit failed: .*audit.jsonl: ENOSPC'
check "full: counted as lost" more_than holdfast_audit_lost_total "$n"
check "full: holdfast_audit_healthy is 0" test "$(metric holdfast_audit_healthy)" = 0
check "full: a condition of the binding" eventually 5 binding_says '.status == "False" and .reason == "AuditUnavailable" and (.message | test("edge1"))'
check "full: the log says it" grep -q 'AuditUnavailable' "$D/log/edge1.agent.log"
check "full: the session that forwards ends on its deadline" await $((L + 5)) "end" event "$broken" '.event == "closed"'
ended=$(now_ns)
sleep 1
check "full: no packet after that" test "$(cap_count e1 in "$ended" "$(now_ns)")" = 0
check "full: … and the last one came within its lease" awk -v m="$(ms_between "$broken" "$(last_up client)")" 'BEGIN {exit !(m < '"$L"'000)}'
rm "$AUDIT/fill"
well "full"
stop

echo "-- read-only (the kernel's own doing, as after an error)"
disk ext4
start "read-only"
check "read-only: admits" eventually 10 admitted
mount -o remount,abort "$AUDIT"
check "read-only: refused in time" eventually 5 refused_in_time
check "read-only: /readyz names file and errno" readyz_says '^\[-\]audit failed: .*audit.jsonl: (EROFS|EIO)'
check "read-only: a condition of the binding" eventually 5 binding_says '.status == "False" and .reason == "AuditUnavailable"'
stop
umount_audit
mount -t tmpfs -o size=1m,mode=700,uid=65532,gid=65532,ro audit "$AUDIT"
"$LAB" start "$D" agent edge1
check "read-only at start: ends" await 10 end cat "$D/run/edge1.agent.rc"
check "… and says which file, why, and what to do" grep -E "$(printf '%s' 'audit.*: EROFS')" "$D/log/edge1.agent.log"

echo "-- EIO: writes succeed, fdatasync does not"
disk broken
start "EIO"
check "EIO: admits" eventually 10 admitted
n=$(metric holdfast_audit_lost_total)
mount -o remount,abort "$D/outer"
check "EIO: refused in time" eventually 5 refused_in_time
check "EIO: /readyz names file and errno" readyz_says '^\[-\]audit failed: .*audit.jsonl: EIO'
check "EIO: counted as lost" more_than holdfast_audit_lost_total "$n"
stop

echo "-- a disk that does not answer (frozen)"
disk ext4
start "slow"
check "slow: admits" eventually 10 admitted
n=$(metric holdfast_audit_late_total)
fsfreeze -f "$AUDIT"
check "slow: refused in time" eventually 5 refused_in_time
check "slow: /readyz says how long" readyz_says '^\[-\]audit failed: .*not durable within 2000 ms'
check "slow: counted as late" more_than holdfast_audit_late_total "$n"
check "slow: the agent lives, its pages answer" test "$(http -o /dev/null -w '%{http_code}' "http://[fd00:c::1]:9780/livez")" = 200
fsfreeze -u "$AUDIT"
well "slow"
stop
safe
checks_done
