#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lease.sh NAMED-BUILD BUILD: the connector lease record and its trail, row by row (B1 to B11 of the mission): what breaks each row, and
# the test that must notice. A mutant is a guard of core.list that the mutants' build leaves out by name, or an edit in a copy of
# the tree. Prints the table; exits 1 unless every mutant is killed and every row has one. ROW=B7 does one row; root, for the
# schema's test on an API server (B1).
set -uo pipefail
export LC_ALL=C
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
named=$(cd "$1" && pwd) build=$2
copy=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-lease-mutants.XXXXXX")
trap 'rm -rf "$copy"' EXIT
# with what is built already, so that an edit compiles one file
cp -a "$root"/{Makefile,hack,pkg,cmd,test,manifests} "$copy"/
mkdir -p "$copy/$build"
cp -a "$root/build/inc" "$copy/build/"
cp -a "$root/$build"/{lib,pkg,test} "$copy/$build/"
cd "$copy" || exit 1

killed=0 survived=0 rows=' '
say() { printf '%-4s %-66s %s\n' "$1" "$2" "$3"; }
wanted() { [ -z "${ROW:-}" ] || [ "$ROW" = "$1" ]; }
dead() { killed=$((killed + 1)) rows+="$1 "; say "$1" "$2" "$3"; }
alive() { survived=$((survived + 1)); say "$1" "$2" "-- $3 --"; }
first_failure() { sed 's/\x1b\[[0-9;]*m//g' "$copy/log" | sed -n 's/^\[FAIL\] \([A-Za-z0-9_:]*\).*/\1/p' | head -n 1 | sed 's/:*$//'; }

# guard ROW WHAT NAME SUITE [TEST]: leaves a guard of core.list out; TEST is tried first (others may run for ever without it).
guard() {
    wanted "$1" || return 0
    grep -q "^$3	" "$root/test/mutants/core.list" || { alive "$1" "$2" "no guard '$3' in core.list"; return; }
    local part by
    for part in ${5:+"$5"} '!(session_disturb)/*' 'session_disturb/*'; do # the slow tests last: most guards are noticed before
        if ! HOLDFAST_MUTANT=$3 timeout 120 "$named/test/$4" -j2 --fail-fast --filter "$part" >"$copy/log" 2>&1; then
            by=$(first_failure)
            dead "$1" "$2" "${by:-$4: crash or time-out}"
            return
        fi
    done
    alive "$1" "$2" SURVIVED
}
# edit ROW WHAT KILLER FILE OLD NEW: KILLER is unit:PACKAGE or the path of a test.
edit() {
    wanted "$1" || return 0
    local row=$1 what=$2 killer=$3 file=$4 old=$5 new=$6 text rc=0 built=yes
    text=$(<"$root/$file")
    [[ $text == *"$old"* ]] || { alive "$row" "$what" "not found in $file"; return; }
    printf '%s\n' "${text/"$old"/"$new"}" >"$file"
    case $killer in
    unit:*)
        nice make -s "$build/test/${killer#unit:}" >"$copy/log" 2>&1 || built=no
        [ "$built" = no ] || timeout 300 "$build/test/${killer#unit:}" -j2 --fail-fast >"$copy/log" 2>&1 || rc=$?
        ;;
    *) HOLDFAST_BIN=$root/build/bin timeout 600 "$killer" >"$copy/log" 2>&1 || rc=$? ;;
    esac
    cp -p "$root/$file" "$file"
    touch "$file"
    if [ "$built" = no ]; then
        alive "$row" "$what" 'does not build'
        grep -m2 'error' "$copy/log"
    elif [ "$rc" = 0 ]; then
        alive "$row" "$what" SURVIVED
    else
        case $killer in
        unit:*) dead "$row" "$what" "$(first_failure)" ;;
        *) dead "$row" "$what" "$killer: $(grep -m1 '^FAIL' "$copy/log" | cut -c7-70)" ;;
        esac
    fi
}

printf '%-4s %-66s %s\n' row 'what is taken away' 'killed by'
# -- B1: one durable row per binding: lease UUID, epoch, holder, release time; the schema only adds
edit B1 'a release leaves the release time out' unit:lease pkg/lease/row.c '    row->spec.release_time = wall;
    row->spec.correlation' '    row->spec.correlation'
edit B1 'the row is stored without its release time' unit:contract pkg/contract/schema.c 'TIME(struct contract_claim_spec, release_time, "releaseTime", false)' 'TIME(struct contract_claim_spec, release_time, "releasedAt", false)'
guard B1 'an acquire without a lease UUID' claim-create.nonce session
[ "$(id -u)" != 0 ] || edit B1 'a CRD drops a field' test/cli/schema.sh manifests/crds/routeclaims.yaml '              correlationID:' '              correlation:'
# -- B2: deny until a policy is supplied; takeover needs permission and the expected epoch
guard B2 'policy deny admits' policy.deny session
guard B2 'takeover: Denied is not looked at' takeover.denied lease
guard B2 'the webhook is not asked before a takeover' policy.claim session 'session_policy/takeover_needs*'
guard B2 'a permission for another epoch counts' policy.claim-epoch session
guard B2 'a permission for another request counts' policy.claim-joined session 'session_policy/a_newer_request*'
# -- B3: leases of 5 min, grants of 30 s, whoever says otherwise
guard B3 'a lease longer than five minutes is believed' deadline.lease-cap lease
guard B3 'a service longer than five minutes is believed' service.clamp authority
guard B3 'the answer with a grant beyond 30 s is taken (receiver)' webhook.grant-max authority
guard B3 'a grant beyond 30 s is used (agent)' policy.grant-cap authority
edit B3 'a lease beyond five minutes is allowed (schema in C)' unit:contract pkg/contract/schema.c '"leaseDurationSeconds", true, 10, 300),
    I32(struct contract_claim_spec' '"leaseDurationSeconds", true, 10, 3600),
    I32(struct contract_claim_spec'
# -- B4: six events, metadata only: nothing else can be encoded
edit B4 'a credential that is no digest is recorded' unit:audit pkg/audit/record.c 'return is_digest(at) && base_fmt' 'return base_fmt'
edit B4 'a sentence is recorded as a reason' unit:audit pkg/audit/record.c 'return is_reason(at) && base_fmt' 'return base_fmt'
edit B4 'any text is recorded as a name' unit:audit pkg/audit/record.c 'return base_is_subdomain(base_str_of(at), 253) && base_fmt' 'return base_fmt'
# -- B5: recorded before any side effect; not durable = refused
guard B5 'a claim is written although its record is not durable' audit.claim session
guard B5 'an instance is written although its record is not durable' audit.instance session
guard B5 'a refusal is answered and not recorded' audit.refusal session
edit B5 'a write to the trail that failed counts as durable' unit:journal pkg/journal/file.c '        (void)!ftruncate(fd, (off_t)at);
    return e;' '        (void)!ftruncate(fd, (off_t)at);
    return 0;'
# -- B6: no ordinary acquire of a released or expired row
guard B6 'an ordinary acquire of a row that is there' acquire.absent lease
guard B6 'a takeover with another epoch than the observed one' takeover.epoch lease
guard B6 'an expiry that was waited out is not recorded' expiry.observed session
# -- B7: old epoch, old lease UUID, released lease: not authoritative, never retried
guard B7 'a row of another epoch is mine' claim.epoch session
guard B7 'a row of another lease UUID is mine' claim.lease session
guard B7 'a release of a successor, by epoch' release.epoch lease
guard B7 'a release of a successor, by lease UUID' release.lease lease
# -- B8: the tenant comes from the credential; identifiers in their one form
edit B8 'a tenant in a header passes' unit:masque pkg/masque/request.c 'if (h->has_tenant && ' 'if (false && '
guard B8 'an identity in another case passes' identity.case authority
guard B8 'an identity with percent-encoding passes' identity.percent authority
guard B8 'a certificate is not held to the normal form' identity.normal session
guard B8 'an answer for another tenant, connector, VPC, service or /96' webhook.echo authority
# -- B9: a valid lease bypasses nothing
guard B9 'a request is let in without asking the webhook' policy.connect session
guard B9 'what changed while it was asked about is not asked again' policy.same-connector session
guard B9 'a suspended binding with a valid lease goes on' binding.suspended session
guard B9 'a token is not reviewed again' policy.review-again session
# -- B10: the incident's one command tells the truth
edit B10 'the gate of another epoch is shown as this one'\''s' unit:cli pkg/cli/verdict.c '    if (r->status.gate.epoch != r->spec.epoch)
        return "-";' ''
edit B10 'a released row is shown as held' unit:cli pkg/cli/verdict.c '} else if (f->claim->spec.release_time) {' '} else if (false) {'
# -- B11: no claim of exactly-once; the evidence survives and shows changes
guard B11 'the end of a session says that nothing can have happened' audit.effect-possible session
guard B11 'a write of unknown outcome says that nothing can have happened' audit.outcome-unknown session
edit B11 'files that do not follow one another verify' unit:audit pkg/audit/chain.c 'memcmp(hash, v->chain.hash, sizeof hash) != 0 || strcmp(name' 'strcmp(name'
edit B11 'a line that was edited verifies' unit:audit pkg/audit/chain.c 'memcmp(hash, said.hash, sizeof hash) != 0' 'false'

for b in B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11; do
    wanted $b || continue
    [[ $rows == *" $b "* ]] || { survived=$((survived + 1)); echo "$b has no mutant that was killed"; }
done
echo "mutants-lease: $killed passed, $survived failed"
[ "$survived" = 0 ] && [ "$killed" -gt 0 ]
