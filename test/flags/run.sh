#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: holdfast-agent's flags and configuration file as a person gets them wrong. Each has status 2 and a message that names
# what is wrong and what to do; none starts an agent.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=test/lab/lib/check.sh
. "$root/test/lab/lib/check.sh"
A=${HOLDFAST_BIN:-$root/build/bin}/holdfast-agent
tmp=$(mktemp -d)
chmod 755 "$tmp"
trap 'rm -rf "$tmp"' EXIT
unset NODE_NAME POD_NAMESPACE

agent() { timeout 10 "$A" "$@" </dev/null; }
# refused TEXT ARG...: status 2, and TEXT (a literal) on stderr.
refused() {
    local text=$1 out rc=0
    shift
    out=$(agent "$@" 2>&1 >/dev/null) || rc=$?
    [ "$rc" = 2 ] && [[ $out == *"$text"* ]] || { printf 'status %s, without "%s":\n%s\n' "$rc" "$text" "$out"; return 1; }
}
# file TEXT: the configuration that `given` and `good` use; \0 and \n as in printf.
file() { printf -- "$1" >"$tmp/c.yaml"; }
given() { file "$1"; refused "$2" --config "$tmp/c.yaml" --check-config; } # TEXT MESSAGE
good() { file "$1"; agent --config "$tmp/c.yaml" --check-config; }

check "version" bash -c '[[ $("$1" --version) == "holdfast-agent "[0-9]* ]]' _ "$A"
check "unknown flag" refused "usage:" --frob
check "a flag without its value" refused "requires an argument" --config
check "a value for a flag that has none" refused "doesn't allow an argument" --check-config=yes
check "unknown command" refused "'frob': no such command (known: check)" frob
check "an empty word" refused "'': no such command" ''
check "log format" refused "--log-format: 'xml': must be json or text" --log-format xml
check "--running without check" refused "--running goes with check only" --running

check "no file" refused "$tmp/none; name another file or mount this one: ENOENT" --config "$tmp/none"
check "an empty name is no wish for the defaults" refused "--config: is empty; name a file" --config '' --check-config
check "a folder" refused "cannot read $tmp: EISDIR" --config "$tmp"
ln -s loop "$tmp/loop"
check "a link to itself" refused "cannot read $tmp/loop" --config "$tmp/loop"
check "a file without end" refused "/dev/zero is larger than 262144 bytes" --config /dev/zero
file 'provider: a\n'
chmod 600 "$tmp/c.yaml"
if [ "$(id -u)" = 0 ]; then
    cp "$A" "$tmp/agent"
    check "a file that may not be read" bash -c '! setpriv --reuid 65534 --regid 65534 --clear-groups "$1/agent" --config "$1/c.yaml" --check-config 2>&1 >/dev/null |
        awk "/cannot read .*EACCES/ {f = 1} END {exit f}"' _ "$tmp"
fi
ln -s c.yaml "$tmp/link"
check "a link to a file, as Kubernetes mounts it" agent --config "$tmp/link" --check-config

check "an empty file is the defaults" good ''
check "only a comment" good '# nothing\n'
check "NUL characters" given '\0\0\0' "not YAML"
check "half a UTF-16 file" given '\377\376\n' "not YAML"
check "an unknown key" given 'frob: 1\n' "c.yaml:1: frob: the value (not shown): no such option"
check "a key with a NUL inside" given '"provider\\0x": a\n' "no such option"
check "a path as a key" given 'log.level: info\n' "no such option"
check "a key twice" given 'provider: a\nprovider: b\n' "c.yaml:2: provider: the value (not shown): is given twice"
check "a section twice" given 'log: {level: info}\nlog: {format: json}\n' "c.yaml:2: log: the value (not shown): is given twice"
check "a number with too many digits" given 'lease: {durationSeconds: 99999999999999999999}\n' "must be a whole number from 10 to 300"
check "a word for a number" given 'lease: {durationSeconds: long}\n' "must be a whole number from 10 to 300"
check "true for on" given 'listen: {http2: true}\n' "must be one of off|on"
check "a list" given 'provider: [a]\n' "must be a single value"
check "two documents" given '---\nprovider: a\n---\nnodeName: b\n' "one mapping"
check "an alias" given 'provider: &x a\nnodeName: *x\n' "must be a single value"
check "no address" given 'health: {listen: "1.2.3.4.5:1"}\n' "must be <address>:<port>"
check "an empty address" given 'health: {listen: ""}\n' "must not be empty"
check "10,000 brackets" given "a: $(printf '[%.0s' {1..10000})\n" "c.yaml:1:"

# What only fits together or not: found by --check-config, too.
check "a guard as long as the lease" given 'lease: {durationSeconds: 10, guardMilliseconds: 10000}\n' "lease"
check "policy webhook without URL" given 'authority: {policy: webhook}\n' "authority.webhookURL: must be an https:// URL"
check "a URL without policy webhook" given 'authority: {webhookURL: "https://a.example/"}\n' "authority.policy is not 'webhook'"
checks_done
