#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# image-root.sh ROOT NAME VERSION PROGRAM...: makes in ROOT the file system of an image: the programs, stripped, in
# /usr/local/bin; the dynamic loader and every shared library that they load; the certificate bundle; a passwd entry for uid
# 65532; and /usr/share/sbom/NAME.spdx.json, the Debian packages that those files come from (SPDX 2.3). Times in it are
# SOURCE_DATE_EPOCH (0), so that the same packages and sources give the same bytes. Runs in the Dockerfile.
set -euo pipefail
[ $# -ge 4 ] || { sed -n '3,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
root=$1 name=$2 version=$3
shift 3
die() { printf 'image-root: error: %s\n' "$*" >&2; exit 1; }
[[ $name =~ ^[a-z][a-z-]*$ && $version =~ ^[A-Za-z0-9.+~-]+$ ]] || die "'$name' '$version' are no name and version"
[ ! -e "$root" ] || die "$root exists already"
mkdir -p "$root"/{etc/ssl/certs,etc/holdfast,tmp,usr/share/sbom,var/lib/holdfast/audit}
install -D -s -m 0755 -t "$root/usr/local/bin" "$@"

# "lib => /path (0x…)" and "/lib64/ld-linux… (0x…)"; the vdso has no path
for bin in "$@"; do
    ldd "$bin" | awk '$2 == "=>" && $3 == "not" {print "image-root: error: missing library " $1 > "/dev/stderr"; bad = 1}
                      $2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// {print $1} END {exit bad}'
done | sort -u >"$root.libs"
while read -r lib; do install -D -m 0755 "$lib" "$root$lib"; done <"$root.libs"
install -m 0644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >"$root/etc/passwd"
echo 'nonroot:x:65532:' >"$root/etc/group"
chmod 1777 "$root/tmp"
chown 65532:65532 "$root/var/lib/holdfast/audit"
chmod 700 "$root/var/lib/holdfast/audit"

# ---- SBOM: which package each file is of ----
# A library may be known to dpkg by its path before or after /lib became a link to /usr/lib.
package_of() {
    local real p
    real=$(readlink -f "$1")
    for p in "$1" "$real" "${real#/usr}" "/usr$1"; do
        dpkg-query -S "$p" 2>/dev/null | awk -F': ' '/diversion by/ {next} !f {sub(/[:,].*/, "", $1); print $1; f = 1} END {exit !f}' && return
    done
    die "no package has $1"
}
{ while read -r lib; do package_of "$lib"; done <"$root.libs"; echo ca-certificates; } | sort -u >"$root.packages"
rm -f "$root.libs"
id() { printf 'SPDXRef-%s' "${1//[^A-Za-z0-9.-]/-}"; }
sum() { "$1" "$2" | cut -d' ' -f1; }
license_of() { # what the package's copyright file says in a machine's words, where it is there and does
    local f=/usr/share/doc/$1/copyright
    { [ -r "$f" ] && sed -n 's/^License: *\([^ ].*\)/\1/p' "$f" | sort -u | paste -sd'|' | sed 's/["\\]//g; s/|/, /g'; } || true
}
mapfile -t files < <(cd "$root" && find . -type f | LC_ALL=C sort)
content=$(cd "$root" && printf '%s\0' "${files[@]}" | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
sbom=$root/usr/share/sbom/$name.spdx.json
{
    printf '{\n  "spdxVersion": "SPDX-2.3",\n  "dataLicense": "CC0-1.0",\n  "SPDXID": "SPDXRef-DOCUMENT",\n  "name": "%s-%s",\n' "$name" "$version"
    printf '  "documentNamespace": "https://spdx.org/spdxdocs/%s-%s-%s",\n' "$name" "$version" "$content"
    printf '  "creationInfo": {"created": "%s", "creators": ["Tool: holdfast-image-root"]},\n' "$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)"
    printf '  "documentDescribes": ["%s"],\n  "packages": [\n' "$(id "$name")"
    printf '    {"SPDXID": "%s", "name": "%s", "versionInfo": "%s", "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION"}' \
        "$(id "$name")" "$name" "$version"
    while read -r p; do
        # shellcheck disable=SC2016 # dpkg's own variables
        IFS='|' read -r v arch src srcv < <(dpkg-query -W -f '${Version}|${Architecture}|${source:Package}|${source:Version}\n' "$p")
        said=$(license_of "$p")
        printf ',\n    {"SPDXID": "%s", "name": "%s", "versionInfo": "%s", "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "sourceInfo": "built from %s %s", "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",%s "copyrightText": "NOASSERTION", "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:deb/debian/%s@%s?arch=%s"}]}' \
            "$(id "deb-$p")" "$p" "$v" "$src" "$srcv" "${said:+ \"licenseComments\": \"$said\",}" "$p" "${v//+/%2B}" "$arch"
    done <"$root.packages"
    printf '\n  ],\n  "files": [\n'
    sep=''
    for f in "${files[@]}"; do
        printf '%s    {"SPDXID": "%s", "fileName": "%s", "checksums": [{"algorithm": "SHA1", "checksumValue": "%s"}, {"algorithm": "SHA256", "checksumValue": "%s"}], "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"}' \
            "$sep" "$(id "file${f#.}")" "$f" "$(sum sha1sum "$root/$f")" "$(sum sha256sum "$root/$f")"
        sep=$',\n'
    done
    printf '\n  ],\n  "relationships": [\n    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "%s"}' "$(id "$name")"
    while read -r p; do
        printf ',\n    {"spdxElementId": "%s", "relationshipType": "CONTAINS", "relatedSpdxElement": "%s"}' "$(id "$name")" "$(id "deb-$p")"
    done <"$root.packages"
    for f in "${files[@]}"; do
        owner=$name
        case $f in
        ./lib/* | ./lib64/* | ./usr/lib/*) owner=deb-$(package_of "${f#.}") ;;
        ./etc/ssl/*) owner=deb-ca-certificates ;;
        esac
        printf ',\n    {"spdxElementId": "%s", "relationshipType": "CONTAINS", "relatedSpdxElement": "%s"}' "$(id "$owner")" "$(id "file${f#.}")"
    done
    printf '\n  ]\n}\n'
} >"$sbom"
rm -f "$root.packages"
chmod 0644 "$sbom"
find "$root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
