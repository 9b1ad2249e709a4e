#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deps.sh - installs what Holdfast is built and tested with (`make deps`).
#
# Idempotent: looks first, installs only what is missing, says what it does. Needs root only when something has to be
# installed. Three things in order: Go from PATH (only checked), Debian packages (ngtcp2 and GnuTLS from the backports suite
# of the machine's own mirror), and the API server's binaries (built once by test/apiserver/build.sh).
#
#   hack/deps.sh                everything
#   hack/deps.sh --packages     Debian packages only
#   hack/deps.sh --cluster      what `make image` and `make cluster-test` need besides (they call it)
#   hack/deps.sh --peers        what `make accept-peers` needs besides (it calls it)
#   hack/deps.sh --image        on Debian 13: what the image is built and unit-tested with
#   hack/deps.sh --list         print the packages and stop; --list-image, --list-image-backports the image's
#
# HOLDFAST_APT_DIR (default /etc/apt) and HOLDFAST_OS_RELEASE (default /etc/os-release) and
# HOLDFAST_POLICY_RC (default /usr/sbin/policy-rc.d) are for the test of this script.
set -euo pipefail

readonly need_go_minor=26
need_debian=12 need_codename=bookworm # --image: 13, trixie
readonly apt_dir=${HOLDFAST_APT_DIR:-/etc/apt} os_release=${HOLDFAST_OS_RELEASE:-/etc/os-release}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

packages=(
    build-essential pkg-config libcurl4-openssl-dev libcjson-dev libyaml-dev libssl-dev libuv1-dev libnghttp2-dev libmicrohttpd-dev
    libcriterion-dev spin mmdebstrap libbpf-dev libelf-dev bpftool clang llvm libclang-rt-14-dev clang-format valgrind
    nftables bird2 iproute2 iputils-ping procps tcpdump curl jq openssl ca-certificates git make util-linux unzip
)
# Debian 12 itself has ngtcp2 0.12, which is another API; its backports suite has the one we use.
backports=(libngtcp2-dev libngtcp2-crypto-gnutls-dev libnghttp3-dev libgnutls28-dev)
readonly need_ngtcp2=1.11
# The image is made without a container engine, and a cluster's nodes are namespaces of this machine.
cluster_packages=(buildah containernetworking-plugins dnsmasq-base)
# Only where their programs are missing: Debian's containerd would take the place of Docker's.
cluster_programs=(containerd runc)
# Other movers of addresses, measured beside ours.
peer_packages=(keepalived)
# What the image's build stage has, on Debian 13; its backports suite has the OpenSSL helper.
image_packages=(
    gcc make pkg-config libc6-dev binutils bash gawk libcurl4-openssl-dev libcjson-dev libyaml-dev libssl-dev libuv1-dev
    libnghttp2-dev libmicrohttpd-dev libcriterion-dev libbpf-dev libelf-dev openssl ca-certificates bpftool clang llvm iproute2 nftables
)
image_backports=(libngtcp2-dev libngtcp2-crypto-ossl-dev libnghttp3-dev)

say() { printf 'deps: %s\n' "$*"; }
die() { printf 'deps: error: %s\n' "$*" >&2; exit 1; }

# ---- the machine ------------------------------------------------------------------------------------------------
check_debian() {
    local id='' version='' name=''
    if [ -r "$os_release" ]; then
        # shellcheck disable=SC1090
        id=$(. "$os_release" && echo "${ID:-}")
        # shellcheck disable=SC1090
        version=$(. "$os_release" && echo "${VERSION_ID:-}")
        # shellcheck disable=SC1090
        name=$(. "$os_release" && echo "${PRETTY_NAME:-}")
    fi
    [ "$id" = debian ] && [ "$version" = "$need_debian" ] && return
    die "this is '${name:-an unknown system}'; Holdfast is built and tested on Debian $need_debian ($need_codename)." \
        "Use a machine, VM or container of debian:$need_debian. On another system install these yourself and run" \
        "'make' without 'make deps': ${packages[*]} ${backports[*]} (ngtcp2 >= $need_ngtcp2)"
}

check_go() {
    local v
    command -v go >/dev/null ||
        die "no 'go' in PATH; the tests need Go >= 1.$need_go_minor (Debian $need_debian has 1.19, too old)." \
            "Install it from your usual source and put its bin folder first in PATH"
    v=$(GOTOOLCHAIN=local go env GOVERSION)
    if ! [[ $v =~ ^go1\.([0-9]+) ]] || ((BASH_REMATCH[1] < need_go_minor)); then
        die "'$(command -v go)' is $v; the tests need Go >= 1.$need_go_minor. Put a newer one first in PATH"
    fi
    say "Go: $v ($(command -v go))"
}

# ---- Debian packages --------------------------------------------------------------------------------------------
# Prints the packages of "$@" that are not installed.
missing_of() {
    local p have
    have=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^ii  *//p') || true # it fails when it does not know one
    for p in "$@"; do grep -qxF -- "$p" <<<"$have" || echo "$p"; done
}

# Prints "TYPES|URIS|SUITES|COMPONENTS|SIGNED-BY or options" for each enabled entry, of .sources and of .list files.
apt_entries() {
    local f
    for f in "$apt_dir"/sources.list.d/*.sources; do
        [ -r "$f" ] || continue
        awk '
            function flush() { if (uris != "" && enabled != "no") print types "|" uris "|" suites "|" comps "|" signed
                               types = uris = suites = comps = signed = enabled = ""; field = "" }
            /^[ \t]*#/ { next }
            /^[ \t]*$/ { flush(); next }
            /^[ \t]/   { v = $0; sub(/^[ \t]+/, "", v)
                         if (field == "uris") uris = uris " " v
                         if (field == "suites") suites = suites " " v
                         if (field == "signed-by") signed = "inline"          # an armoured key in the file
                         next }
            { i = index($0, ":"); field = tolower(substr($0, 1, i - 1)); v = substr($0, i + 1)
              gsub(/^[ \t]+|[ \t]+$/, "", v)
              if (field == "types") types = v
              if (field == "uris") uris = v
              if (field == "suites") suites = v
              if (field == "components") comps = v
              if (field == "signed-by") signed = v
              if (field == "enabled") enabled = tolower(v) }
            END { flush() }' "$f"
    done
    for f in "$apt_dir"/sources.list "$apt_dir"/sources.list.d/*.list; do
        [ -r "$f" ] || continue
        awk '
            $1 == "deb" { i = 2; opt = ""
                          if (substr($2, 1, 1) == "[") { for (; i <= NF; i++) { opt = opt " " $i; if ($i ~ /\]$/) { i++; break } } }
                          comps = ""; for (j = i + 2; j <= NF; j++) if ($j ~ /^#/) break; else comps = comps " " $j
                          signed = ""; if (match(opt, /signed-by=[^] ]+/)) signed = substr(opt, RSTART + 10, RLENGTH - 10)
                          print "deb|" $i "|" $(i + 1) "|" comps "|" signed }' "$f"
    done
}

# Adds the backports suite of the mirror that the machine already uses, unless some entry has it.
add_backports() {
    local entries suite=$need_codename-backports types uris suites comps signed uri file=$apt_dir/sources.list.d/holdfast-backports.sources
    entries=$(apt_entries)
    while IFS='|' read -r types uris suites comps signed; do
        [[ " $suites " == *" $suite "* && " $types " == *" deb "* ]] && return 0
    done <<<"$entries"
    while IFS='|' read -r types uris suites comps signed; do
        [[ " $suites " == *" $need_codename "* && " $types " == *" deb "* && " $comps " == *" main "* ]] || continue
        uri=${uris%% *}
        [[ $uri == cdrom:* || $uri == file:* ]] && continue
        [ "$signed" != inline ] || signed=/usr/share/keyrings/debian-archive-keyring.gpg
        say "adding the suite $suite ($file), from the mirror that this machine uses for $need_codename"
        {
            echo "# Added by Holdfast's hack/deps.sh: ngtcp2 for $need_codename. Remove the file to undo."
            echo "Types: deb"
            echo "URIs: $uri"
            echo "Suites: $suite"
            echo "Components: main"
            [ -z "$signed" ] || echo "Signed-By: $signed"
        } >"$file"
        return 0
    done <<<"$entries"
    die "no apt source under $apt_dir names the suite '$need_codename' with component 'main', so the mirror for" \
        "'$suite' is not known. Add an entry for $suite yourself and run 'make deps' again"
}

ngtcp2_ok() { dpkg --compare-versions "$(pkg-config --modversion libngtcp2 2>/dev/null || echo 0)" ge "$need_ngtcp2"; }

# apt-get install starts services; none may (bird2 would take over the machine's routes).
policy=''
restore_policy() { [ -z "$policy" ] || rm -f "$policy"; policy=''; }
forbid_services() {
    local file=${HOLDFAST_POLICY_RC:-/usr/sbin/policy-rc.d}
    [ ! -e "$file" ] || return 0
    policy=$file
    trap restore_policy EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
}

install_packages() {
    local missing=() missing_bp=() had_bird=yes started=() wanted=() p
    mapfile -t missing < <(missing_of "${packages[@]}")
    mapfile -t missing_bp < <(missing_of "${backports[@]}")
    if [ ${#missing[@]} = 0 ] && [ ${#missing_bp[@]} = 0 ] && ngtcp2_ok; then
        say "Debian packages: all $((${#packages[@]} + ${#backports[@]})) are there"
        return
    fi
    [ "$(id -u)" = 0 ] || die "missing Debian packages need root to install: ${missing[*]} ${missing_bp[*]}." \
        "Run 'make deps' as root once"
    if [ ${#missing_bp[@]} != 0 ] || ! ngtcp2_ok; then add_backports; missing_bp=("${backports[@]}"); fi
    [[ " ${missing[*]} " != *" bird2 "* ]] || had_bird=no
    wanted=("${missing[@]}")
    say "installing ${#missing[@]} packages of $need_codename and ${#missing_bp[@]} of its backports: ${missing[*]} ${missing_bp[*]}"
    export DEBIAN_FRONTEND=noninteractive
    local apt=(apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    forbid_services
    if [ -n "$(dpkg --audit)" ]; then
        say "an earlier installation was interrupted: finishing it first (dpkg --configure -a)"
        dpkg --configure -a
    fi
    "${apt[@]}" update
    # Together: libgnutls28-dev of the one suite and libcurl's dependencies of the other are resolved at once.
    "${apt[@]}" install --no-install-recommends -t "$need_codename-backports" "${missing_bp[@]}"
    [ ${#missing[@]} = 0 ] || "${apt[@]}" install --no-install-recommends "${missing[@]}"
    restore_policy
    # The tests start BIRD, containerd and keepalived themselves, each in namespaces of its own.
    [ $had_bird != no ] || started+=(bird)
    for p in containerd keepalived; do [[ " ${wanted[*]} " != *" $p "* ]] || started+=("$p"); done
    for p in "${started[@]}"; do
        if command -v systemctl >/dev/null; then systemctl disable --now "$p.service" >/dev/null 2>&1 || true; fi
        update-rc.d "$p" disable >/dev/null 2>&1 || true
    done
    mapfile -t missing < <(missing_of "${packages[@]}" "${backports[@]}")
    [ ${#missing[@]} = 0 ] || die "apt-get ended well but these are still missing: ${missing[*]}"
    ngtcp2_ok || die "ngtcp2 is $(pkg-config --modversion libngtcp2); >= $need_ngtcp2 is needed." \
        "Check the pins in $apt_dir/preferences.d, then run 'make deps' again"
    say "Debian packages: installed"
}

main() {
    local p
    case ${1:-} in
    --list) printf '%s\n' "${packages[@]}" "${backports[@]}"; return ;;
    --list-image) printf '%s\n' "${image_packages[@]}"; return ;;
    --list-image-backports) printf '%s\n' "${image_backports[@]}"; return ;;
    --backports-source) add_backports; return ;;
    --packages) check_debian; install_packages; return ;;
    --cluster)
        check_debian
        packages+=("${cluster_packages[@]}")
        for p in "${cluster_programs[@]}"; do command -v "$p" >/dev/null || packages+=("$p"); done
        install_packages
        return
        ;;
    --peers)
        check_debian
        packages+=("${peer_packages[@]}")
        install_packages
        return
        ;;
    --image)
        need_debian=13 need_codename=trixie
        packages=("${image_packages[@]}") backports=("${image_backports[@]}")
        check_debian
        install_packages
        return
        ;;
    '') ;;
    *) die "unknown argument '$1' (known: --packages, --cluster, --peers, --image, --list, --list-image, --list-image-backports)" ;;
    esac
    local bin
    check_debian
    check_go # before minutes of installing
    install_packages
    bin=$("$root/test/apiserver/build.sh") # on a line of its own: inside another command its failure would be lost
    say "API server: $bin"
    say "done"
}
main "$@"
