#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# krew.sh BIN OUT: the plug-in as krew (the plug-in manager of kubectl) installs it: OUT/kubectl-holdfast_vVERSION_linux_ARCH.tar.gz,
# the same bytes from the same program, and OUT/holdfast.yaml with its digest. `kubectl krew install --manifest=OUT/holdfast.yaml
# --archive=OUT/….tar.gz` tries it before a release. RELEASE_URL: where the release's
# files are; without it the manifest names a place that cannot be.
set -euo pipefail
[ $# = 2 ] || { sed -n '3,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$1/kubectl-holdfast out=$2
version=v$("$bin" version --client | sed -n 's/^kubectl-holdfast \([^ ]*\) .*/\1/p')
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || { echo "krew.sh: error: $bin does not say its version" >&2; exit 1; }
case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) echo "krew.sh: error: krew has no name for $(uname -m)" >&2; exit 1 ;; esac
name=kubectl-holdfast_${version}_linux_$arch.tar.gz
url=${RELEASE_URL:-https://example.invalid/holdfast/releases/download/$version}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
install -m 755 "$bin" "$work/kubectl-holdfast"
strip "$work/kubectl-holdfast"
install -m 644 "$root/LICENSE" "$root/cmd/kubectl-holdfast/kubectl-holdfast.1" "$work"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar -C "$work" -cf - LICENSE kubectl-holdfast kubectl-holdfast.1 | gzip -9n >"$out/$name"
cat >"$out/holdfast.yaml" <<Y
# SPDX-License-Identifier: Apache-2.0
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: holdfast
spec:
  version: $version
  homepage: ${url%%/releases/*}
  shortDescription: Show who owns which connector in Holdfast
  description: |
    Shows nodes, route claims and sessions of Holdfast, explains what is
    authoritative for a connector and why, drains nodes, checks a cluster
    before and after an installation, verifies and reads the audit trail,
    and writes a redacted dump for whoever helps.
  caveats: |
    Needs libcurl, libcjson, libyaml, libuv and OpenSSL of the machine
    (Debian: libcurl4, libcjson1, libyaml-0-2, libuv1, libssl3).
  platforms:
  - selector:
      matchLabels:
        os: linux
        arch: $arch
    uri: $url/$name
    sha256: $(sha256sum "$out/$name" | cut -d' ' -f1)
    bin: kubectl-holdfast
    files:
    - from: kubectl-holdfast
      to: .
    - from: LICENSE
      to: .
Y
echo "$out/$name $out/holdfast.yaml"
