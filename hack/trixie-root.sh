#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# trixie-root.sh [NAME]: a Debian 13 root in the cache folder (${HOLDFAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast}); prints its path. Made once by mmdebstrap from
# the mirror of the machine's own Debian source; needs root. Names and what is in them:
#   build (default)   what Holdfast is built and unit-tested with, ngtcp2 with its OpenSSL helper from trixie-backports
#   base              nothing but apt: the base of images
#   cbmc              CBMC
set -euo pipefail
die() { printf 'trixie-root: error: %s\n' "$*" >&2; exit 1; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=${1:-build}
backports=()
case $name in
build)
    mapfile -t packages < <("$here/deps.sh" --list-image)
    mapfile -t backports < <("$here/deps.sh" --list-image-backports)
    ;;
base) packages=(ca-certificates) ;;
cbmc) packages=(cbmc) ;;
*) die "unknown name '$name' (known: build, base, cbmc)" ;;
esac
[ "$(id -u)" = 0 ] || die "needs root; run it as root once"
command -v mmdebstrap >/dev/null || die "mmdebstrap is missing; run 'make deps'"
cache=${HOLDFAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast}
root=$cache/trixie-$name-$(printf '%s\n' "${packages[@]}" "${backports[@]}" | sha256sum | cut -c1-12)
mkdir -p "$cache"
exec 9>"$root.lock"
flock 9
[ -e "$root/.complete" ] && { echo "$root"; exit 0; }
# shellcheck disable=SC2016 # apt's own variables
mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' | awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
[ -n "$mirror" ] || die "no apt source names bookworm main, so the mirror is not known; add one"
echo "trixie-root: making $root (about two minutes)" >&2
rm -rf "$root.new" "$root"
signed='signed-by=/usr/share/keyrings/debian-archive-keyring.gpg'
lines="deb [$signed] $mirror trixie main"
hook=()
if [ ${#backports[@]} -gt 0 ]; then
    lines+=$'\n'"deb [$signed] $mirror trixie-backports main"
    # shellcheck disable=SC2016 # mmdebstrap's own variable
    hook=(--customize-hook='chroot "$1" apt-get -q -y install --no-install-recommends -t trixie-backports '"${backports[*]}")
fi
mmdebstrap --quiet --variant=apt --include="$(IFS=,; echo "${packages[*]}")" "${hook[@]}" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    trixie "$root.new" - <<<"$lines" >&2
touch "$root.new/.complete"
mv "$root.new" "$root"
echo "$root"
