# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the lab's tool; sourced, never run. State of a lab: its folder LAB_DIR, its short id LAB_ID (in the names of the
# namespaces), and one file per lab in LAB_RUN, by which `lab reap` finds labs that nobody owns any more.

LAB_RUN=/run/holdfast-lab
NODES="client client2 edge1 edge2 vpc api"
LAB_NAMESPACE=holdfast-system
LAB_THREADS=${LAB_THREADS:-1} # data threads of each agent; lab.env keeps what `lab up` was told
LAB_BIRD=$(PATH=$PATH:/usr/sbin command -v bird || true)

say() { printf 'lab: %s\n' "$*" >&2; }
die() { printf 'lab: error: %s\n' "$*" >&2; exit 1; }

need_root_and_tools() {
    local t missing=''
    [ "$(id -u)" = 0 ] || die "the lab makes network namespaces and mounts: run it as root"
    for t in ip nsenter unshare setpriv nft openssl curl jq; do command -v "$t" >/dev/null || missing+=" $t"; done
    [ -n "$LAB_BIRD" ] || missing+=" bird"
    [ -z "$missing" ] || die "missing programs:$missing (run 'make deps')"
}

need_node() { # NODE ALLOWED...
    local n=$1 a
    shift
    for a in "$@"; do [ "$n" != "$a" ] || return 0; done
    die "'$n' is no node for this (use one of: $*)"
}

# Name of a node's network namespace.
ns() { printf 'hf%s-%s' "$LAB_ID" "$1"; }
in_ns() { # NODE COMMAND...
    local n=$1
    shift
    nsenter "--net=/run/netns/$(ns "$n")" "$@"
}

# starttime PID: when the process began, in clock ticks since boot; with the pid it names one process for ever.
starttime() {
    local s
    s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    s=${s##*) }
    # shellcheck disable=SC2086
    set -- $s
    printf '%s' "${20}"
}

# state_new DIR OWNER: an id that no other lab has, written down before anything is made under it.
state_new() {
    mkdir -p "$1" "$LAB_RUN/node"
    chmod 755 "$LAB_RUN" "$LAB_RUN/node"
    LAB_DIR=$(cd "$1" && pwd)
    if [ -s "$LAB_DIR/lab.env" ]; then
        # A lab of that folder that was not taken down: that first.
        ( state_load "$LAB_DIR" && lab_down )
    fi
    local owner=''
    if [ -n "$2" ]; then owner="$2 $(starttime "$2")" || die "--owner $2: no such process"; fi
    # noclobber: the file is made by exactly one lab.
    until LAB_ID=$(od -An -N3 -tx1 /dev/urandom | tr -d ' \n') && (set -C && printf '%s\n%s\n' "$LAB_DIR" "$owner" >"$LAB_RUN/$LAB_ID") 2>/dev/null; do :; done
    rm -rf "$LAB_DIR"/{run,log,nodes,api,api2,pki,lab.env}
    mkdir -p "$LAB_DIR"/{run,log,nodes}
    printf 'LAB_ID=%q\n' "$LAB_ID" >"$LAB_DIR/lab.env.new"
    mv "$LAB_DIR/lab.env.new" "$LAB_DIR/lab.env"
}

state_load() {
    [ -s "$1/lab.env" ] || die "$1 holds no lab (start one with 'lab up $1')"
    LAB_DIR=$(cd "$1" && pwd)
    # shellcheck disable=SC1091
    . "$LAB_DIR/lab.env"
    LAB_LEASE=${LAB_LEASE:-30}
    [[ ${LAB_ID:-} =~ ^[0-9a-f]{6}$ ]] || die "$1/lab.env is damaged: LAB_ID is '${LAB_ID:-}', expected six hex digits"
}

state_reap() {
    local f dir owner pid start
    mkdir -p "$LAB_RUN"
    exec 8>"$LAB_RUN/reap.lock"
    flock 8 # two reapers at once would take down the same lab
    for f in "$LAB_RUN"/??????; do
        [ -f "$f" ] || continue
        { read -r dir; read -r owner || true; } <"$f"
        [ -n "$owner" ] || continue # started by hand: kept until its `lab down`
        read -r pid start <<<"$owner"
        [ "$(starttime "$pid" || true)" != "$start" ] || continue
        say "reaping $dir, its owner $pid is gone"
        if [ -s "$dir/lab.env" ] && grep -q "^LAB_ID=${f##*/}$" "$dir/lab.env"; then
            ( exec 8>&-; state_load "$dir" && lab_down )
        else # the folder is gone or is another lab's: the namespaces carry the id
            ( exec 8>&-; LAB_DIR=$(mktemp -d) LAB_ID=${f##*/} && lab_down && rm -rf "$LAB_DIR" )
        fi
    done
    exec 8>&-
}

lab_kubectl() { # USER ARG...
    local user=$1 bin
    shift
    [ -s "$LAB_DIR/api/$user.kubeconfig" ] || die "no user '$user' in this lab (see $LAB_DIR/api/*.kubeconfig)"
    # shellcheck disable=SC1091
    bin=$(. "$LAB_DIR/api/env" && printf '%s' "$KUBECTL")
    in_ns api "$bin" --kubeconfig "$LAB_DIR/api/$user.kubeconfig" -n "$LAB_NAMESPACE" "$@"
}
