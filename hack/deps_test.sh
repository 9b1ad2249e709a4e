#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Test of deps.sh without touching the machine: apt folders and systems of its own making.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lab/lib/check.sh
. test/lab/lib/check.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fresh() { rm -rf "$tmp/apt"; mkdir -p "$tmp/apt/sources.list.d"; }
backports() { HOLDFAST_APT_DIR=$tmp/apt hack/deps.sh --backports-source; }
added=$tmp/apt/sources.list.d/holdfast-backports.sources
says() { grep -qxF -- "$1" "$added" || { cat "$added"; return 1; }; }
not_added() { [ ! -e "$added" ]; }

fresh
cat >"$tmp/apt/sources.list.d/debian.sources" <<'X'
Types: deb
# a comment inside
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main
X
check "deb822 source" backports
check "deb822: the machine's own mirror" says "URIs: http://mirror.example/debian"
check "deb822: the suite" says "Suites: bookworm-backports"
check "deb822: the key is kept" says "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg"
before=$(cat "$added")
check "twice" backports
check "twice changes nothing" test "$before" = "$(cat "$added")"

fresh
echo 'deb [arch=amd64 signed-by=/etc/keys/k.gpg] https://one.example/debian/ bookworm main contrib # comment' >"$tmp/apt/sources.list"
check "one-line source" backports
check "one-line: mirror" says "URIs: https://one.example/debian/"
check "one-line: key" says "Signed-By: /etc/keys/k.gpg"

fresh
printf 'deb cdrom:[Debian]/ bookworm main\ndeb-src http://src.example/debian bookworm main\ndeb http://plain.example/debian bookworm main\n' >"$tmp/apt/sources.list"
check "cdrom and source entries are passed over" backports
check "the next one is taken" says "URIs: http://plain.example/debian"
check "no key is invented" bash -c '! grep -q Signed-By "$1"' _ "$added"

fresh
printf 'deb http://a.example/debian bookworm main\ndeb http://b.example/debian bookworm-backports main\n' >"$tmp/apt/sources.list"
check "an existing one-line backports entry" backports
check "is left alone" not_added
fresh
printf 'Types: deb\nURIs: http://a.example/debian\nSuites: bookworm bookworm-backports\nComponents: main\n' >"$tmp/apt/sources.list.d/x.sources"
check "an existing deb822 backports entry" backports
check "is left alone too" not_added
fresh
printf 'deb http://a.example/debian bookworm main\n' >"$tmp/apt/sources.list"
printf 'Enabled: no\nTypes: deb\nURIs: http://b.example/debian\nSuites: bookworm-backports\nComponents: main\n' >"$tmp/apt/sources.list.d/off.sources"
check "a disabled backports entry does not count" backports
check "so one is added" says "URIs: http://a.example/debian"
fresh
check "no mirror for bookworm: says what to do" fails_with "Add an entry for bookworm-backports yourself" backports

printf 'ID=fedora\nVERSION_ID=43\nPRETTY_NAME="Fedora Linux 43"\n' >"$tmp/os"
check "another system: says which, and what to do" fails_with "this is 'Fedora Linux 43'; Holdfast is built and tested on Debian 12" \
    env HOLDFAST_OS_RELEASE="$tmp/os" hack/deps.sh
printf 'ID=debian\nVERSION_ID="11"\nPRETTY_NAME="Debian GNU/Linux 11 (bullseye)"\n' >"$tmp/os"
check "an older Debian" fails_with "Debian GNU/Linux 11 (bullseye)" env HOLDFAST_OS_RELEASE="$tmp/os" hack/deps.sh
check "no os-release at all" fails_with "an unknown system" env HOLDFAST_OS_RELEASE="$tmp/none" hack/deps.sh

mkdir -p "$tmp/bin"
printf '#!/bin/sh\necho go1.19.8\n' >"$tmp/bin/go"
chmod +x "$tmp/bin/go"
check "an old Go: says which and what is needed" fails_with "is go1.19.8; the tests need Go >= 1.26" env PATH="$tmp/bin:$PATH" hack/deps.sh
for p in bash env dpkg-query dpkg pkg-config sed grep awk dirname id; do ln -s "$(command -v $p)" "$tmp/bin/" 2>/dev/null || true; done
rm "$tmp/bin/go"
check "no Go" fails_with "no 'go' in PATH" env PATH="$tmp/bin" bash hack/deps.sh
# A failed build of the API server fails the whole; this one cannot begin, since nothing can be written to its cache.
mkdir -p "$tmp/none"
printf '#!/bin/sh\necho go1.99.0\n' >"$tmp/none/go"
chmod +x "$tmp/none/go"
for p in bash env dpkg-query dpkg pkg-config sed grep awk dirname id head cut tr mkdir; do ln -s "$(command -v $p)" "$tmp/none/" 2>/dev/null || true; done
check "a cache that cannot be written: says which, and what to do" fails_with \
    "cannot write to /dev/null/cache, where the API server's programs are kept: set HOLDFAST_CACHE" \
    env PATH="$tmp/none" KUBEBUILDER_ASSETS= HOLDFAST_CACHE=/dev/null/cache hack/deps.sh
rm -rf "$tmp/bin"
mkdir -p "$tmp/bin"
printf '#!/bin/sh\nprintf "ii  git\\nii  curl\\n"\necho "dpkg-query: no packages found matching bird2" >&2\nexit 1\n' >"$tmp/bin/dpkg-query"
printf '#!/bin/sh\necho 1000\n' >"$tmp/bin/id"
chmod +x "$tmp"/bin/*
check "missing packages and no root: names them" fails_with "missing Debian packages need root to install: build-essential" env PATH="$tmp/bin:$PATH" hack/deps.sh --packages
check "installed ones are not named" bash -c '! PATH="$1:$PATH" hack/deps.sh --packages 2>&1 | grep -E " (git|curl)( |$)"' _ "$tmp/bin"
ln -s /bin/true "$tmp/bin/containerd"
check "--cluster: buildah is wanted, too" fails_with " buildah " env PATH="$tmp/bin:$PATH" hack/deps.sh --cluster
check "--peers: keepalived is wanted, too" fails_with " keepalived" env PATH="$tmp/bin:$PATH" hack/deps.sh --peers
check "which nothing else wants" bash -c '! PATH="$1:$PATH" hack/deps.sh --cluster 2>&1 | grep -E " keepalived( |$|\.)"' _ "$tmp/bin"
check "a containerd that is there already stays what it is" bash -c '! PATH="$1:$PATH" hack/deps.sh --cluster 2>&1 | grep -E " containerd( |$|\.)"' _ "$tmp/bin"
printf '#!/bin/sh\necho 0\n' >"$tmp/bin/id"
printf '#!/bin/sh\necho apt-get must not run here; exit 9\n' >"$tmp/bin/apt-get" # whatever deps.sh does, nothing is installed
printf '#!/bin/sh\n[ "$1" != --audit ] || echo git\n[ "$1 $2" != "--configure -a" ] || { echo finishing what was begun; exit 1; }\n[ "$1" != --compare-versions ]\n' >"$tmp/bin/dpkg"
chmod +x "$tmp"/bin/*
fresh
printf 'deb http://a.example/debian bookworm-backports main\n' >"$tmp/apt/sources.list"
check "an interrupted installation is finished first" fails_with "finishing what was begun" \
    env PATH="$tmp/bin:$PATH" HOLDFAST_APT_DIR="$tmp/apt" HOLDFAST_POLICY_RC="$tmp/policy-rc.d" hack/deps.sh --packages
check "unknown argument" fails_with "unknown argument '--frob'" hack/deps.sh --frob
check "the real machine: packages are there" hack/deps.sh --packages
checks_done
