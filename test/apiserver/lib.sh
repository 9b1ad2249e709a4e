# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts of this folder; sourced, never run. Progress goes to stderr, results to stdout.

API_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
API_ROOT=$(cd "$API_HERE/../.." && pwd)
API_NAMESPACE=holdfast-system
export API_HERE API_ROOT API_NAMESPACE

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "error: $*"; exit 1; }

# lab_dir DIR: the absolute path of a lab folder that up.sh has filled.
lab_dir() {
    [ -n "${1:-}" ] || die "no lab folder given: name the folder that up.sh was started with"
    [ -s "$1/env" ] || die "$1/env is missing: start the API server there first (up.sh $1)"
    (cd "$1" && pwd)
}

# lab_open DIR: sets LAB (absolute), the variables of its env file, and IN, the command prefix that reaches its server.
lab_open() {
    LAB=$(lab_dir "$1")
    # shellcheck disable=SC1091 # written by up.sh
    . "$LAB/env"
    enter_netns "${APISERVER_NETNS:-}"
}

# enter_netns NAME-OR-PATH: sets IN to the command prefix that enters that network namespace, to nothing without a name.
enter_netns() {
    IN=()
    [ -n "$1" ] || return 0
    local ns=$1
    [[ $ns == /* ]] || ns=/run/netns/$ns
    [ -e "$ns" ] || die "network namespace $ns does not exist (APISERVER_NETNS)"
    IN=(nsenter "--net=$ns") # not `ip netns exec`, which hides /sys/fs/cgroup
}

# pid_is PIDFILE MARK: is the process of that file alive and is MARK (a path of its lab folder) on its command line?
pid_is() {
    local pid
    [ -s "$1" ] && pid=$(<"$1") && [[ $pid =~ ^[0-9]+$ ]] || return 1
    { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF -- "$2"
}

# stop_pid PIDFILE MARK SIGNAL: ends that process and waits until it is gone; a foreign process of the same number is left alone.
stop_pid() {
    local pid i
    if pid_is "$1" "$2"; then
        pid=$(<"$1")
        kill -CONT "$pid" 2>/dev/null || true # it may have been stopped by a test
        kill "-$3" "$pid" 2>/dev/null || true
        for ((i = 0; i < 250; i++)); do
            pid_is "$1" "$2" || break
            [ "$i" != 150 ] || kill -KILL "$pid" 2>/dev/null || true
            sleep 0.02
        done
        ! pid_is "$1" "$2" || { say "process $pid ($1) does not end"; return 1; }
    fi
    rm -f "$1"
}
