# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Processes of a lab; sourced. Each has run/NODE.NAME.{pid,rc} and log/NODE.NAME.log. A small supervisor (a shell) waits for
# it and writes down its exit status, so that a later `lab stop` can tell it. The pid file holds "PID STARTTIME".

proc_file() { printf '%s/run/%s.%s' "$LAB_DIR" "$1" "$2"; }

# proc_pid NODE NAME: the process id if that very process is alive.
proc_pid() {
    local f pid start
    f=$(proc_file "$1" "$2").pid
    [ -s "$f" ] || return 1
    read -r pid start <"$f"
    # Without a start time it had ended before that could be read: the supervisor's shell reaps at once.
    [ -n "$start" ] && [ "$(starttime "$pid")" = "$start" ] || return 1
    # A zombie has ended; its supervisor is about to say so.
    [[ $(cat "/proc/$pid/stat" 2>/dev/null) != *') Z '* ]] || return 1
    printf '%s' "$pid"
}

# proc_start NODE NAME COMMAND...: in the node's network namespace, own session, no input, output to the log.
proc_start() {
    local node=$1 name=$2 f i
    shift 2
    f=$(proc_file "$node" "$name")
    ! proc_pid "$node" "$name" >/dev/null || die "$name on $node is running already (pid $(proc_pid "$node" "$name"))"
    rm -f "$f.pid" "$f.rc"
    PROC_FILE=$f PROC_LOG=$LAB_DIR/log/$node.$name.log setsid bash -c '
        "$@" </dev/null >>"$PROC_LOG" 2>&1 &
        s=$(cat /proc/$!/stat); s=${s##*) }
        a=($s)
        printf "%s %s\n" $! "${a[19]}" >"$PROC_FILE.pid.new"
        mv "$PROC_FILE.pid.new" "$PROC_FILE.pid"
        wait $!
        printf "%s\n" $? >"$PROC_FILE.rc.new"
        mv "$PROC_FILE.rc.new" "$PROC_FILE.rc"
    ' supervisor nsenter "--net=/run/netns/$(ns "$node")" "$@" </dev/null >/dev/null 2>&1 9>&- &
    disown
    for ((i = 0; i < 500; i++)); do
        [ ! -s "$f.pid" ] || return 0
        sleep 0.01
    done
    die "$name on $node did not start within 5 s"
}

# proc_wait_end NODE NAME SECONDS: waits for the exit status and prints it.
proc_wait_end() {
    local f i
    f=$(proc_file "$1" "$2")
    for ((i = 0; i < $3 * 50; i++)); do
        if [ -s "$f.rc" ]; then
            cat "$f.rc"
            return 0
        fi
        sleep 0.02
    done
    return 1
}

proc_stop() {
    local pid rc
    if ! pid=$(proc_pid "$1" "$2"); then
        rc=$(cat "$(proc_file "$1" "$2").rc" 2>/dev/null) || die "$2 on $1 was never started"
        die "$2 on $1 does not run (it ended with status $rc, see $LAB_DIR/log/$1.$2.log)"
    fi
    { kill -CONT "$pid" && kill -TERM "$pid"; } 2>/dev/null || true # it may have ended just now
    rc=$(proc_wait_end "$1" "$2" "${LAB_STOP_SECONDS:-20}") || die "$2 on $1 (pid $pid) did not end within ${LAB_STOP_SECONDS:-20} s of SIGTERM"
    printf '%s\n' "$rc"
    return "$rc"
}

proc_signal() { # SIGNAL NODE NAME
    local pid
    pid=$(proc_pid "$2" "$3") || die "$3 on $2 does not run"
    kill "-$1" "$pid"
    case $1 in KILL | SIGKILL | 9) proc_wait_end "$2" "$3" 10 >/dev/null || die "$3 on $2 (pid $pid) survives SIGKILL" ;; esac
}

# proc_tid NODE NAME THREAD: the id of the one thread of that name; `main` is the process's first thread.
proc_tid() {
    local pid t tids=()
    pid=$(proc_pid "$1" "$2") || die "$2 on $1 does not run"
    if [ "$3" = main ]; then
        printf '%s' "$pid"
        return
    fi
    for t in "/proc/$pid/task"/*; do
        [ "$(cat "$t/comm" 2>/dev/null)" != "$3" ] || tids+=("${t##*/}")
    done
    [ ${#tids[@]} = 1 ] || die "$2 on $1 has ${#tids[@]} threads named '$3', one is needed ($(cat "/proc/$pid/task"/*/comm | sort -u | tr '\n' ' '))"
    printf '%s' "${tids[0]}"
}

# proc_freeze NODE NAME THREAD: stops that thread alone, until proc_thaw; returns when it stands still.
proc_freeze() {
    local tid log i
    tid=$(proc_tid "$@") || exit 1
    log=$LAB_DIR/log/$1.freeze-$2-$3.log
    rm -f "$log"
    proc_start "$1" "freeze-$2-$3" "$PROBE" freeze --tid "$tid"
    for ((i = 0; i < 500; i++)); do
        ! grep -q frozen "$log" 2>/dev/null || return 0
        [ ! -s "$(proc_file "$1" "freeze-$2-$3").rc" ] || break
        sleep 0.005
    done
    die "thread '$3' of $2 on $1 could not be frozen: $(cat "$log")"
}
proc_thaw() { proc_stop "$1" "freeze-$2-$3" >/dev/null; }

proc_kill_all() { # [NAME]: all but those of that name
    local f node name pid
    for f in "$LAB_DIR"/run/*.pid; do
        [ -e "$f" ] || continue
        f=${f##*/} f=${f%.pid} node=${f%%.*} name=${f#*.}
        [ "$name" != "${1:-}" ] || continue
        if pid=$(proc_pid "$node" "$name"); then
            kill -KILL "$pid" 2>/dev/null || true
            kill -CONT "$pid" 2>/dev/null || true
            proc_wait_end "$node" "$name" 10 >/dev/null || say "$name on $node (pid $pid) does not end"
        fi
    done
}

proc_status() {
    local f node name pid
    for f in "$LAB_DIR"/run/*.pid; do
        [ -e "$f" ] || continue
        f=${f##*/} f=${f%.pid} node=${f%%.*} name=${f#*.}
        if pid=$(proc_pid "$node" "$name"); then
            printf '%-8s %-14s running, pid %s\n' "$node" "$name" "$pid"
        else
            printf '%-8s %-14s ended, status %s\n' "$node" "$name" "$(cat "$(proc_file "$node" "$name").rc" 2>/dev/null || echo unknown)"
        fi
    done
}
