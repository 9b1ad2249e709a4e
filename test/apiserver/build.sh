#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh [cluster]: prints on stdout the folder that holds kube-apiserver, etcd and kubectl for the tests; progress goes to
# stderr. With `cluster` kubelet, kube-scheduler and kube-controller-manager of the server's version are there, too.
#
# Looks in KUBEBUILDER_ASSETS, then in PATH, then in the cache
#   ${HOLDFAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast}/bin
# and builds into the cache what is found nowhere (once; about 6 minutes on two cores; Go >= 1.26 from PATH).
# A kube-apiserver below 1.35 and a kubectl more than one minor version away from the server are passed over: resource
# versions are comparable only since 1.35, and kubectl supports a skew of one.
set -euo pipefail
# shellcheck source=test/apiserver/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

CACHE=${HOLDFAST_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set: set HOLDFAST_CACHE to a folder for the binaries}/.cache}/holdfast}
OLDEST_MINOR=35
VERSION=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ {print $2; exit}' "$API_HERE/go.mod")
[ -n "$VERSION" ] || die "$API_HERE/go.mod does not require k8s.io/kubernetes"

# minor PROGRAM: the minor version that kube-apiserver or kubectl reports, e.g. 37; nothing if it does not run.
minor() {
    case ${1##*/} in
        kubectl) "$1" version --client 2>/dev/null ;;
        *) "$1" --version 2>/dev/null ;;
    esac | sed -n 's/^\(Client Version: \|Kubernetes \)v1\.\([0-9][0-9]*\).*/\2/p' | head -n 1
}

# candidates NAME: every file of that name, best first.
candidates() {
    local d
    { printf '%s\n' "${KUBEBUILDER_ASSETS:-}"; tr ':' '\n' <<<"$PATH"; printf '%s\n' "$CACHE/bin"; } |
        while read -r d; do
            if [ -n "$d" ] && [ -f "$d/$1" ] && [ -x "$d/$1" ]; then printf '%s\n' "$d/$1"; fi
        done
}

find_server() {
    local f m
    for f in $(candidates kube-apiserver); do
        m=$(minor "$f")
        if [ -n "$m" ] && [ "$m" -ge "$OLDEST_MINOR" ]; then printf '%s\n' "$f"; return; fi
        say "passed over $f (1.${m:-?}): 1.$OLDEST_MINOR or newer is needed"
    done
}
find_etcd() {
    local f
    for f in $(candidates etcd); do
        if "$f" --version >/dev/null 2>&1; then printf '%s\n' "$f"; return; fi
    done
}
# find_kubectl SERVER-MINOR
find_kubectl() {
    local f m
    for f in $(candidates kubectl); do
        m=$(minor "$f")
        if [ -n "$m" ] && [ $((m - $1)) -ge -1 ] && [ $((m - $1)) -le 1 ]; then printf '%s\n' "$f"; return; fi
    done
}

need_go() {
    command -v go >/dev/null || die "Go is not in PATH: install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl"
    local v
    v=$(GOTOOLCHAIN=local go env GOVERSION)
    [[ $v =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 26 ] ||
        die "Go 1.26 or newer is needed to build the API server, PATH has ${v:-none} ($(command -v go))"
}

# build NAME PACKAGE: into the cache, under a temporary name first, with a line every 15 s.
build() {
    local start=$SECONDS tmp="$CACHE/bin/.$1.$$" pid out="$CACHE/build-$1.log"
    local x=k8s.io/component-base/version
    say "building $1 ($2), log in $out"
    # shellcheck disable=SC2016 # for the message only
    (cd "$API_HERE" && exec env CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -mod=readonly" go build -p 2 -trimpath -buildvcs=false \
        -ldflags "-s -w -X $x.gitVersion=$VERSION -X $x.gitMajor=1 -X $x.gitMinor=$(cut -d. -f2 <<<"$VERSION") -X k8s.io/client-go/pkg/version.gitVersion=$VERSION" \
        -o "$tmp" "$2") >"$out" 2>&1 &
    pid=$!
    trap 'kill "$pid" 2>/dev/null; rm -f "$tmp"; exit 130' INT TERM
    local last=$SECONDS
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.5
        if ((SECONDS - last >= 15)); then last=$SECONDS; say "building $1: $((SECONDS - start)) s"; fi
    done
    wait "$pid" || { rm -f "$tmp"; tail -n 20 "$out" >&2; die "building $1 failed: see $out"; }
    trap - INT TERM
    mv -f "$tmp" "$CACHE/bin/$1"
    say "built $1 in $((SECONDS - start)) s"
}

# find_rest NAME SERVER-MINOR: of the same minor version as the server.
find_rest() {
    local f
    for f in $(candidates "$1"); do
        if [ "$(minor "$f")" = "$2" ]; then printf '%s\n' "$f"; return; fi
    done
}

case ${1:-} in '') rest=() ;; cluster) rest=(kubelet kube-scheduler kube-controller-manager) ;; *) die "unknown argument '$1' (known: cluster)" ;; esac
server=$(find_server)
etcd=$(find_etcd)
kubectl=
[ -z "$server" ] || kubectl=$(find_kubectl "$(minor "$server")")
if [ -z "$server" ] || [ -z "$etcd" ] || [ -z "$kubectl" ]; then
    { mkdir -p "$CACHE/bin" && : >>"$CACHE/build.lock"; } 2>/dev/null ||
        die "cannot write to $CACHE, where the API server's programs are kept: set HOLDFAST_CACHE to a folder that can be written"
    exec 9>"$CACHE/build.lock"
    flock -n 9 || { say "another build is running, waiting for it"; flock 9; }
    server=$(find_server); etcd=$(find_etcd)
    if [ -z "$etcd" ]; then need_go; build etcd go.etcd.io/etcd/server/v3; etcd=$CACHE/bin/etcd; fi
    if [ -z "$server" ]; then need_go; build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver; server=$CACHE/bin/kube-apiserver; fi
    kubectl=$(find_kubectl "$(minor "$server")")
    if [ -z "$kubectl" ]; then need_go; build kubectl k8s.io/kubernetes/cmd/kubectl; kubectl=$CACHE/bin/kubectl; fi
    exec 9>&-
fi
programs=("$server" "$etcd" "$kubectl")
for name in "${rest[@]}"; do
    f=$(find_rest "$name" "$(minor "$server")")
    if [ -z "$f" ]; then
        mkdir -p "$CACHE/bin"
        exec 9>"$CACHE/build.lock"
        flock -n 9 || { say "another build is running, waiting for it"; flock 9; }
        f=$(find_rest "$name" "$(minor "$server")")
        if [ -z "$f" ]; then
            [ "$(minor "$server")" = "$(cut -d. -f2 <<<"$VERSION")" ] || die "$server is 1.$(minor "$server"), but only $name ${VERSION#v} can be built here: put a $name of the server's version into PATH"
            need_go
            build "$name" "k8s.io/kubernetes/cmd/$name"
            f=$CACHE/bin/$name
        fi
        exec 9>&-
    fi
    programs+=("$f")
done

dir=$(dirname "$server") apart=''
for f in "${programs[@]}"; do [ "$(dirname "$f")" = "$dir" ] || apart=1; done
if [ -n "$apart" ]; then
    # Programs of different folders: one folder of links, named after what it points at.
    dir=$CACHE/links-$(printf '%s\n' "${programs[@]}" | cksum | cut -d' ' -f1)
    mkdir -p "$dir"
    for f in "${programs[@]}"; do
        [ "$(readlink "$dir/${f##*/}" 2>/dev/null)" = "$f" ] || ln -sfn "$f" "$dir/${f##*/}"
    done
fi
printf '%s\n' "$dir"
