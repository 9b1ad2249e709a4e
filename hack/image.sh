#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# image.sh [TARGET...]: builds the Dockerfile's images without a container engine (buildah; root), from a Debian 13 root of
# hack/trixie-root.sh, into build/image:
#
#   agent.tar, plugin.tar, foundation.tar   OCI archives localhost/holdfast-{agent,plugin,foundation}:VERSION
#   NAME.spdx.json                          SBOM of agent and plugin
#   agent.sums                              every file of the agent's image with its SHA-256
#
# Prints the sizes; exit 1 when the agent's image is larger than 40 MB unpacked, or has something that it must not have: a
# shell, a file with more rights than its owner needs, another user than 65532.
# TARGETs: agent plugin foundation (default: all three); test (the unit tests in the build stage);
#   again (builds the agent's image once more, in another folder: all its files have to be the same)
# Environment: VERSION (0.1.0), SOURCE_DATE_EPOCH (time of the last commit), IMAGE_STORE (buildah's folder, in the cache).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
say() { printf 'image: %s\n' "$*"; }
die() { printf 'image: error: %s\n' "$*" >&2; exit 1; }
readonly max_bytes=$((40 * 1000 * 1000))
[ "$(id -u)" = 0 ] || die "needs root, for buildah and a Debian 13 root"
command -v buildah >/dev/null || die "buildah is missing: run 'hack/deps.sh --cluster' as root once"
version=${VERSION:-0.1.0}
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)}
cache=${HOLDFAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast}
store=${IMAGE_STORE:-$cache/image-store}
out=$root/build/image
mkdir -p "$store" "$out"
exec 9>"$store.lock"
flock 9
export BUILDAH_ISOLATION=chroot
b() { buildah --root "$store/root" --runroot "$store/run" --storage-driver overlay "$@" 9>&-; }

# The base: the Debian 13 root as an image, named after the packages in it.
base_image() {
    local dir name c
    dir=$("$root/hack/trixie-root.sh" base)
    name=localhost/${dir##*/}:1
    if ! b inspect --type image "$name" >/dev/null 2>&1; then
        say "making the base image" >&2
        c=$(b from scratch)
        tar -C "$dir" --one-file-system --exclude=./.complete -cf "$store/base.tar" .
        b add -q "$c" "$store/base.tar" / >/dev/null
        rm -f "$store/base.tar"
        b config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$c"
        b commit -q "$c" "$name" >/dev/null
        b rm "$c" >/dev/null
    fi
    printf '%s' "$name"
}
build() { # TARGET TAG BUD-ARG...
    local target=$1 tag=$2
    shift 2
    say "building $target"
    b bud --layers --timestamp "$epoch" --target "$target" --build-arg "BASE=$base" --build-arg "VERSION=$version" \
        --build-arg "SOURCE_DATE_EPOCH=$epoch" "$@" -t "$tag" -f "$root/Dockerfile" "$root" >"$out/$target.log" 2>&1 ||
        { tail -n 30 "$out/$target.log" >&2; die "building $target failed, see $out/$target.log"; }
}
# with_files IMAGE COMMAND...: the command gets the folder of the image's files as its last argument.
with_files() {
    local image=$1 c dir rc=0
    shift
    c=$(b from --pull-never "$image")
    dir=$(b mount "$c")
    "$@" "$dir" || rc=$?
    b umount "$c" >/dev/null
    b rm "$c" >/dev/null
    return $rc
}
sums() { (cd "$1" && find . -printf '%M %U:%G %p %l\n' | LC_ALL=C sort -k3 && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum); }
bytes() { find "$1" -type f -printf '%s\n' | awk '{s += $1} END {print s + 0}'; }
mb() { awk -v n="$1" 'BEGIN {printf "%.1f MB", n / 1e6}'; }

look_at_agent() { # DIR
    local bad n
    sums "$1" >"$out/agent.sums"
    cp "$1/usr/share/sbom/holdfast-agent.spdx.json" "$out/"
    bad=$(find "$1" \( -name sh -o -name bash -o -name dash -o -name busybox -o -perm /6000 -o -type b -o -type c \) -printf '%P ')
    [ -z "$bad" ] || { say "the agent's image must not have: $bad"; return 1; }
    bad=$(find "$1" ! -type l -perm /022 ! -path "$1/tmp" -printf '%P ')
    [ -z "$bad" ] || { say "the agent's image has files that others may write: $bad"; return 1; }
    chroot --userspec=65532:65532 "$1" /usr/local/bin/holdfast-agent --version >"$out/version" || { say "the agent does not start in its image"; return 1; }
    grep -qF "$version" "$out/version" || { say "the agent in the image calls itself '$(<"$out/version")', not $version"; return 1; }
    chroot --userspec=65532:65532 "$1" /usr/local/bin/kubectl-holdfast --help >/dev/null || { say "kubectl-holdfast does not start in the agent's image"; return 1; }
    # Each library is of a package that the SBOM names.
    bad=$(comm -23 <(cd "$1" && find . -name '*.so*' -type f | sort) <(jq -r '(.packages | map(.SPDXID)) as $p
        | (.relationships[] | select(.relationshipType == "CONTAINS" and (.spdxElementId | startswith("SPDXRef-deb-")) and (.spdxElementId | IN($p[]))) | .relatedSpdxElement) as $f
        | .files[] | select(.SPDXID == $f).fileName' "$out/holdfast-agent.spdx.json" | sort))
    [ -z "$bad" ] || { say "the SBOM does not say whose these are: $bad"; return 1; }
    n=$(bytes "$1")
    say "agent: $(mb "$n") unpacked (at most $(mb $max_bytes)), $(find "$1" -type f | wc -l) files of $(jq '[.packages[] | select(.SPDXID | startswith("SPDXRef-deb-"))] | length' "$out/holdfast-agent.spdx.json") Debian packages; SBOM build/image/holdfast-agent.spdx.json"
    [ "$n" -le $max_bytes ] || { say "the agent's image is larger than $(mb $max_bytes)"; return 1; }
}
look_at_plugin() { cp "$1/usr/share/sbom/kubectl-holdfast.spdx.json" "$out/"; say "plugin: $(mb "$(bytes "$1")") unpacked"; }
look_at_foundation() { say "foundation: $(mb "$(bytes "$1")") unpacked (for labs and staging)"; }
same_sums() {
    sums "$1" >"$out/again.sums"
    diff "$out/agent.sums" "$out/again.sums" || { say "a second build in another folder gave other files"; return 1; }
    say "a second build in another folder gave the same $(grep -c '^[0-9a-f]\{64\} ' "$out/again.sums") files, the SBOM among them"
}

# The unit tests make namespaces and TUN devices, which a RUN may not.
run_tests() { # DIR
    grep -qs localhost "$1/etc/hosts" || printf '127.0.0.1 localhost\n::1 localhost\n' >"$1/etc/hosts"
    # shellcheck disable=SC2016
    IMAGE_DIR=$1 unshare --mount --net --pid --fork --kill-child bash -euo pipefail -c '
        mount --make-rprivate /
        mount -t proc proc "$IMAGE_DIR/proc"
        mount --rbind /dev "$IMAGE_DIR/dev"
        mount -t tmpfs tmpfs "$IMAGE_DIR/tmp"
        ip link set lo up
        exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 chroot "$IMAGE_DIR" \
            /bin/bash -c "cd /src && make -s -k BUILD=build/image VARIANT=image unit; hack/sum-results.sh"' 2>&1 | tee "$out/unit.log" | grep -E 'FAIL|CRASH|passed, ' || true
    tail -n 1 "$out/unit.log" | grep -qE '^[1-9][0-9]* passed, 0 failed$' || { say "unit tests fail in the build stage, see $out/unit.log"; return 1; }
}

[ $# -gt 0 ] || set -- agent plugin foundation
base=$(base_image)
for target in "$@"; do
    case $target in
    agent | plugin | foundation)
        image=localhost/holdfast-$target:$version
        build "$target" "$image"
        [ "$target" != agent ] || [ "$(b inspect --type image --format '{{.OCIv1.Config.User}}' "$image")" = 65532:65532 ] || die "the agent's image does not run as 65532"
        with_files "$image" "look_at_$target"
        rm -f "$out/$target.tar"
        b push -q "$image" "oci-archive:$out/$target.tar:$image"
        say "$target: $(mb "$(stat -c %s "$out/$target.tar")") packed, build/image/$target.tar, $(b inspect --type image --format '{{.FromImageDigest}}' "$image")"
        ;;
    test)
        build test "localhost/holdfast-test:$version"
        with_files "localhost/holdfast-test:$version" run_tests
        ;;
    again)
        [ -s "$out/agent.sums" ] || die "'again' compares with an agent's image: build that first"
        # Nothing of the first build's layers but the packages: buildah takes a layer of another SRC for the same.
        build deps localhost/holdfast-deps:1
        build agent localhost/holdfast-agent-again:1 --no-cache --build-arg BASE=localhost/holdfast-deps:1 --build-arg SRC=/another/folder/of/the/sources
        with_files localhost/holdfast-agent-again:1 same_sums
        ;;
    *) die "unknown target '$target' (known: agent plugin foundation test again)" ;;
    esac
done
