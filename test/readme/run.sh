#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: follows the README as somebody does who has just installed Debian 12 and Go: in a fresh root that has nothing but apt and
# what README.md names before its first command, a clone of this repository as it is committed, every shell block in order.
#
# The root has mount, process, host name and IPC namespaces of its own, and this machine's network, since packages and Go modules
# come through it (with the machine's resolver, certificates, apt and Go settings). It is an overlay that is thrown away;
# what is below is made once by mmdebstrap, in the cache. Root; 25 to 40 minutes on two cores, most of it for building the API server.
# `make test` is left out: continuous integration runs it (README_ALL=1: that, too).
# Environment: README_GO_CACHE=1 lends it this machine's Go caches (then about 5 minutes).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=test/lab/lib/check.sh
. "$root/test/lab/lib/check.sh"
die() { printf 'readme: error: %s\n' "$*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "needs root, for a Debian root of its own"
for c in mmdebstrap go git unshare; do command -v $c >/dev/null || die "$c is missing: run 'make deps'"; done
cache=${HOLDFAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast}

# ---- the newcomer's machine -----------------------------------------------------------------------------------------------
# What the README says is needed before the first command, besides Go.
mapfile -t packages < <(sed -n 's/^    apt-get install //p' "$root/README.md" | tr ' ' '\n')
[ ${#packages[@]} -gt 0 ] || die "README.md does not say which packages are needed before its first command"
base=$cache/newcomer-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-12)
mkdir -p "$cache"
exec 9>"$base.lock"
flock 9
if [ ! -e "$base/.complete" ]; then
    # shellcheck disable=SC2016 # apt's own variables
    mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' | awk '$2 == "bookworm" && $3 == "main" {print $1; exit}')
    [ -n "$mirror" ] || die "no apt source names bookworm main, so the mirror is not known; add one"
    echo "readme: making $base" >&2
    rm -rf "$base" "$base.new"
    mmdebstrap --quiet --variant=minbase --include="ca-certificates,$(IFS=,; echo "${packages[*]}")" bookworm "$base.new" - \
        <<<"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >&2
    touch "$base.new/.complete"
    mv "$base.new" "$base"
fi
exec 9>&-

D=$(mktemp -d "${TMPDIR:-/var/tmp}/holdfast-readme.XXXXXX")
inside=''
finish() {
    local rc=$?
    trap - EXIT INT TERM
    [ -z "$inside" ] || kill -KILL "$inside" 2>/dev/null || true
    [ -z "$inside" ] || wait "$inside" 2>/dev/null || true
    rm -rf --one-file-system "$D"
    exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$D"/{upper,work,root}
GOROOT=$(go env GOROOT)
lend=()
[ -z "${README_GO_CACHE:-}" ] || lend=("$(go env GOMODCACHE)" "$(go env GOCACHE)")
# The machine: one process that keeps its namespaces.
# shellcheck disable=SC2016
unshare --mount --pid --uts --ipc --fork --kill-child bash -euo pipefail -c '
    base=$1 d=$2 goroot=$3; shift 3
    mount --make-rprivate /
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$d/upper,workdir=$d/work" "$d/root"
    r=$d/root
    # How this machine reaches mirror and proxy. A link in the root would be followed here: it is replaced.
    for f in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/apt/apt.conf.d/*; do
        [ ! -f "$f" ] || cp -L --remove-destination "$f" "$r$f"
    done
    mount -t proc proc "$r/proc"
    mount --rbind /sys "$r/sys"
    mount --rbind /dev "$r/dev"
    mount -t tmpfs -o mode=755 tmpfs "$r/run"
    mount -t tmpfs -o mode=1777 tmpfs "$r/tmp"
    mkdir -p "$r$goroot"
    mount --bind -o ro "$goroot" "$r$goroot"
    for c; do mkdir -p "$r/lent$c"; mount --bind "$c" "$r/lent$c"; done
    hostname newcomer
    touch "$d/up"
    exec sleep infinity' _ "$base" "$D" "$GOROOT" "${lend[@]}" &
inside=$!
for _ in $(seq 600); do [ ! -e "$D/up" ] || break; kill -0 "$inside" 2>/dev/null || die "the root does not come up"; sleep 0.05; done
first=$(awk '{print $1}' "/proc/$inside/task/$inside/children")
settings=("GOPROXY=$(go env GOPROXY)" "GOSUMDB=$(go env GOSUMDB)" "GONOSUMDB=$(go env GONOSUMDB)" "PATH=$GOROOT/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
[ ${#lend[@]} = 0 ] || settings+=("GOMODCACHE=/lent${lend[0]}" "GOCACHE=/lent${lend[1]}")
newcomer() { nsenter -t "$first" -m -p -u -i -- chroot "$D/root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 "${settings[@]}" /bin/bash -euo pipefail -c "$1" </dev/null; }

check "it is a fresh Debian 12 without a compiler" newcomer '. /etc/os-release; [ "$VERSION_ID" = 12 ] && ! command -v gcc && ! command -v curl'
git -C "$root" bundle create -q "$D/clone.bundle" HEAD
nsenter -t "$first" -m -- cp "$D/clone.bundle" "$D/root/root/clone.bundle"
check "git clone" newcomer 'cd /root && git clone -q clone.bundle holdfast'

# ---- what the README says ---------------------------------------------------------------------------------------------------
n=0 t=$SECONDS
while IFS= read -r -d '' block; do
    n=$((n + 1))
    if [ "${block%$'\n'}" = "make test" ] && [ -z "${README_ALL:-}" ]; then
        echo "      block $n (make test) is left out: continuous integration runs it"
        continue
    fi
    echo "-- block $n: ${block%%$'\n'*} ..."
    check "block $n" newcomer "cd /root/holdfast"$'\n'"$block"
    echo "      $((SECONDS - t)) s"
    t=$SECONDS
done < <(awk '/^```sh( .*)?$/ {inside = 1; next} /^```/ && inside {printf "%c", 0; inside = 0; next} inside {print}' "$root/README.md")
check "there were blocks: $n" test "$n" -ge 4
check "the demo's summary is where the README says" newcomer 'cd /root/holdfast && [ -s build/demo/summary.json ]'
checks_done
