#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mutants.sh BUILD [NAME...]: removes the core's rules one by one and runs its tests: each removal must make one fail.
# A mutant is a file, a text that stands there exactly once, and what takes its place. BUILD is build/<variant>, with the
# libraries and test/foundation-core built.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$1
shift
only=("$@")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
core=(core row claim verdict gate status finalizer instance attachment device service regress)
tests=("$root"/test/foundation/{open,close,deadline,instance,regress}_test.c "$root/test/foundation/rig.c")
flags=(-std=c11 -D_GNU_SOURCE -O0 -w "-I$root/pkg" "-I$root/build/inc/kubestore" "-I$root/test/foundation")
read -ra libs < <(pkg-config --libs criterion libcjson libcrypto)
passed=0 failed=0

for t in "${tests[@]}"; do gcc "${flags[@]}" -c -o "$tmp/$(basename "$t").o" "$t"; done
for f in "${core[@]}"; do gcc "${flags[@]}" -c -o "$tmp/$f.o" "$root/test/foundation/$f.c"; done
run() { # NAME FILE OLD NEW
    local name=$1 file=$2 old=$3 new=$4 objs=() f verdict
    if [ ${#only[@]} -gt 0 ] && [[ " ${only[*]} " != *" $name "* ]]; then return; fi
    if ! OLD=$old NEW=$new perl -0777 -ne '
            my $p = join "\\s+", map { quotemeta } split /\s+/, $ENV{OLD};
            my $n = () = /$p/g;
            exit 3 if $n != 1;
            s/$p/$ENV{NEW}/; print' "$root/test/foundation/$file.c" >"$tmp/$file.c"; then
        echo "  $name: its text does not stand in $file.c exactly once"
        failed=$((failed + 1))
        return
    fi
    gcc "${flags[@]}" -c -o "$tmp/mutant.o" "$tmp/$file.c"
    for f in "${core[@]}"; do [ "$f" = "$file" ] && objs+=("$tmp/mutant.o") || objs+=("$tmp/$f.o"); done
    gcc -o "$tmp/run" "${objs[@]}" "$tmp"/*_test.c.o "$tmp/rig.c.o" "$build"/lib/libhf_{contract,base}.a "${libs[@]}"
    if timeout -k 5 120 "$tmp/run" -j2 --timeout 20 >"$tmp/log" 2>&1; then
        verdict=SURVIVED
        failed=$((failed + 1))
    else
        verdict=$(sed -n 's/.*\[FAIL\] \([a-z_:0-9]*\).*/\1/p' "$tmp/log" | sort | head -1)
        passed=$((passed + 1))
    fi
    printf '  %-34s %s\n' "$name" "${verdict:-killed by a crash}"
}

# accept
run accept-other-boot claim 'strcmp(h->node, c->cfg.node) == 0 && base_uuid_eq(&h->boot_id, &c->cfg.boot_id)' 'strcmp(h->node, c->cfg.node) == 0'
run accept-process verdict '|| !base_uuid_eq(&i->obj.spec.process_id, &h->process_id)' ''
run accept-instance-released verdict 'if (i->obj.spec.release_time)' 'if (0)'
run accept-attachment-uid verdict '!base_uuid_eq(&a->obj.meta.uid, &s->attachment.uid) ||' ''
run accept-service-uid verdict '|| !base_uuid_eq(&sv->obj.meta.uid, &s->service.uid)' ''
run accept-service-revoked verdict 'if (sv->obj.revoked)' 'if (0)'
run accept-service-expired verdict 'if (sv->deadline <= c->now)' 'if (0)'
run accept-tenant verdict '|| strcmp(sv->obj.tenant, s->tenant) != 0' ''
run accept-pool verdict '!base_prefix_covers(&sv->obj.pool, &s->prefix) ||' ''
run accept-index-0 verdict '|| base_ip6_eq(&sv->obj.pool.addr, &s->prefix.addr)' ''
run accept-deleting verdict 'if (o->meta.deleting)' 'if (0)'
run accept-released verdict 'if (s->release_time)' 'if (0)'
run accept-backwards claim 'return r->accepted > o->spec.epoch || r->tomb' 'return r->tomb'
run accept-other-lease claim '|| (r->accepted == o->spec.epoch && !base_uuid_eq(&r->nonce, &o->spec.lease_uuid))' ''
run accept-before-kernel verdict 'return no(v, FND_R_NOT_ACCEPTED)' ';'
# open
run open-wait verdict 'if (o->status.closed_epoch < s->epoch - 1 && !fnd_waited(c, cl))' 'if (0)'
run open-wait-length claim 'return c->now >= fnd_wait_until(c, cl)' 'return c->now >= cl->first_seen + 10 * BASE_SEC'
run open-gap verdict 'o->status.closed_epoch < s->epoch - 1 &&' 'o->status.closed_epoch < s->epoch - 2 &&'
run open-finalizer verdict 'return no(v, FND_R_NO_FINALIZER)' ';'
run open-tombstone verdict '|| (r && r->tomb >= s->epoch)' ''
run open-closed verdict 'o->status.closed_epoch >= s->epoch ||' ''
run open-record gate 'fnd_record_emit(c, r, k->op_id); emit(c, cl, FND_FX_GATE, v->full);' 'emit(c, cl, FND_FX_GATE, v->full);'
run open-after-lapse gate '&& v->proof >= k->shut_at' ''
# deadline
run deadline-renewal verdict 'base_time_min(base_time_add(in->renew, l), sv->deadline)' 'sv->deadline'
run deadline-service verdict 'base_time_min(base_time_add(in->renew, l), sv->deadline)' 'base_time_add(in->renew, l)'
run deadline-proof verdict 'v.full = base_time_min(v.hard, base_time_add(v.proof, l))' 'v.full = v.hard'
run deadline-proof-of-claims verdict 'base_time_min(cl->row.proof, sv->row.proof)' 'sv->row.proof'
run deadline-proof-of-services verdict 'base_time_min(cl->row.proof, sv->row.proof)' 'cl->row.proof'
run deadline-smaller-lease verdict 'i->obj.spec.lease_seconds < s->lease_seconds ?' 'i->obj.spec.lease_seconds > s->lease_seconds ?'
run deadline-extend-by-event gate 'if (cl->proved) {' 'if (1) {'
run deadline-shorten gate 'want = base_time_min(k->deadline, v->hard)' 'want = k->deadline'
run deadline-in-the-proof claim 'if (!(cl->row.in & FND_BIT(FND_HELD)) || !fnd_is_me' 'if (!fnd_is_me'
run renewal-ahead instance 'else if (n->boot_time_us > c->now / BASE_US)' 'else if (0)'
run renewal-other-boot instance 'if (!base_uuid_eq(&n->boot_id, &c->cfg.boot_id))' 'if (0)'
run valid-until-clamp service 'left > VALID_MAX / BASE_US ? VALID_MAX :' ''
run valid-until-once service 'if (r->valid_until == s->obj.valid_until && r->deadline) {' 'if (0) {'
run proof-id core 'if (!s->running || s->proof_id != in->id)' 'if (0)'
# close
run close-tombstone gate 'if (r->tomb < epoch)
            r->tomb = epoch;' ''
run close-withdraw gate 'emit(c, cl, FND_FX_WITHDRAW, 0);
        k->deadline = 0;' 'k->deadline = 0;'
run close-before-done status 'at == s->epoch - 1 && fnd_gate_closed_here(cl, s->epoch) &&' 'at == s->epoch - 1 &&'
run close-lapse-is-final gate 'if (v->cause || v->reason == FND_R_TAKEN_OVER' 'if (1 || v->reason == FND_R_TAKEN_OVER'
run close-b-boot status 'base_uuid_eq(&s->previous.boot_id, &c->cfg.boot_id) && s->previous.epoch' 's->previous.epoch'
run close-b-gap status 'at == s->previous.epoch - 1 && fnd_gate_closed_here(cl, s->previous.epoch)' 'at < s->previous.epoch && fnd_gate_closed_here(cl, s->previous.epoch)'
run close-b-before-done status 'at == s->previous.epoch - 1 && fnd_gate_closed_here(cl, s->previous.epoch)' 'at == s->previous.epoch - 1'
run close-a-device status '!cl->kern.active && !device_pending(c, cl, v)' '!cl->kern.active'
run close-c-wait status 'if (fnd_waited(c, cl))
            closed' 'if (1) closed'
run gate-of-other-boot status 's->gate.state == CONTRACT_GATE_OPEN && speaks(c, cl)' 's->gate.state == CONTRACT_GATE_OPEN'
run close-left-read row 'r->left = true; r->read = true;' 'r->left = true;'
run instance-gone-fresh instance 'if (i->row.fresh_id > claim_seen)
        return true;' 'return true;'
run answer-older row 'if (cmp < 0)
        return FND_NEWS_OLD;' ''
# the API server goes back
run regress-claim-epoch claim 'return is->epoch < was->epoch ||' 'return'
run regress-claim-lease claim '|| (is->epoch == was->epoch && !base_uuid_eq(&is->lease_uuid, &was->lease_uuid))' ''
run regress-tombstone claim 'r->tomb > o->spec.epoch ||' ''
run regress-tombstone-nonce gate 'r->accepted = epoch; r->nonce = cl->obj.spec.lease_uuid;' ''
run regress-tombstone-unseen claim '|| (r->tomb == o->spec.epoch && r->accepted < r->tomb && fnd_is_me(c, &o->spec.holder) && !o->meta.deleting)' ''
run regress-instance-row instance '(known && i->row.content_rv[0] && went_back(i->obj.spec.epoch, &i->obj.spec.process_id, o)) ||' ''
run regress-instance-record instance '|| (r && !c->regressed_at && went_back(r->accepted, &r->nonce, o))' ''
run regress-listed regress 'base_rv_cmp(r->rv, list, &covered) == BASE_OK && covered <= 0' '0'
run regress-listed-earlier regress 'base_rv_cmp(r->rv, list, &covered) == BASE_OK && covered <= 0' '1'
run regress-answer regress 'older < 0 && sent > r->rv_at' '0'
run regress-answer-of-before regress '&& sent > r->rv_at' ''
run regress-relist core 'fnd_regress(c); relist(c);' 'fnd_regress(c);'
run regress-wait regress 'if (c->now < until(c)) {' 'if (0) {'
run regress-wait-length regress 'contract_wait(&c->cfg.timing, c->max_lease_s)' '10 * BASE_SEC'
run regress-longest-lease claim 'fnd_regress_lease(c, o->spec.max_lease_seconds);' ''
run regress-kept regress 'fnd_record_emit(c, r, 0);' ''
run regress-kept-lease regress 'fnd_regress_lease(c, (int32_t)r->accepted);' ''
run regress-restored regress 'c->regressed_at = r->deadline;' ''
run regress-shut verdict 'if (c->regressed_at) return no(v, FND_R_REGRESSED);' ''
run regress-no-tombstone gate 'if (c->regressed_at) return true;' ''
run regress-devices device 'i < c->cfg.max_attachments && !c->regressed_at' 'i < c->cfg.max_attachments'
run regress-devices-unlisted device 'if (!c->regressed_at && (!c->coll' 'if ((!c->coll'
run regress-instance instance 'n < c->cfg.max_instances && !c->regressed_at' 'n < c->cfg.max_instances'
run regress-attachment attachment 'n < c->cfg.max_attachments && !c->regressed_at' 'n < c->cfg.max_attachments'
run regress-claim-silent claim 'if (c->regressed_at) {' 'if (0) {'
run regress-kernel regress 'if (c->claims[i].row.used && (c->claims[i].kern.active' 'if (0 && (c->claims[i].kern.active'
run regress-rows-known regress 'if (!c->coll[i].listed) return false;' ''
run regress-late-answer regress 'r->ask = FND_ASK_NONE;' ''
run regress-versions regress "r->rv[0] = r->content_rv[0] = '\\0';" ''
run regress-records regress 'fnd_record_drop(c, &uid);' ''
run regress-over regress 'fnd_record_drop(c, &hold_uid); c->regressed_at = 0;' 'c->regressed_at = 0;'
# instances and devices
run instance-node instance 'if (strcmp(s->node, c->cfg.node) != 0 || !base_uuid_eq(&s->node_uid, &c->cfg.node_uid))' 'if (0)'
run instance-boot instance 'if (!base_uuid_eq(&s->renew.boot_id, &c->cfg.boot_id))
        return' 'if (0) return'
run instance-backwards instance 'return o->spec.epoch < epoch ||' 'return'
run instance-other-process instance '|| (o->spec.epoch == epoch && !base_uuid_eq(&o->spec.process_id, process))' ''
run instance-after-devices instance 'if (no == FND_R_NONE && !fnd_device_old_gone(c))
        return;' ''
run device-after-gates device 'if (gates_on(c, d->name))
            continue;' ''
run device-per-epoch device 'e[i] = (uint8_t)((uint64_t)instance_epoch >> (56 - 8 * i))' 'e[i] = 0'
run device-second attachment '} else if (r->made) {' '} else if (0) {'
run device-earlier-life attachment 'r->made = !(base_uuid_eq(&a->tried_uid, &a->obj.meta.uid) && a->tried_epoch == e)' 'r->made = 0'
run device-before-accept attachment 'if (o->status.accepted_instance_epoch != o->spec.instance_epoch) {
        accept(c, a);
        return;' 'if (o->status.accepted_instance_epoch != o->spec.instance_epoch) {
        accept(c, a);'
run attachment-instance attachment 'base_uuid_eq(&i->obj.meta.uid, &o->spec.instance.uid) &&' ''
# finalizers
run finalizer-before-closing finalizer 'if (!fnd_gate_closed_here(cl, o->meta.deleting ? o->spec.epoch : o->spec.epoch - 1) || cl->kern.active)
        return false;' ''
run finalizer-too-early finalizer 'v->reason != FND_R_NO_FINALIZER' '!v->acceptable'
run finalizer-off-at-once finalizer '!o->meta.deleting && !settled(o) &&' '0 &&'
run finalizer-off-late-when-open finalizer '(o->status.gate.epoch == o->spec.epoch && o->status.gate.state == CONTRACT_GATE_OPEN) ||' ''
run finalizer-off-for-an-older-gate finalizer 'o->status.gate.epoch == o->spec.epoch && o' 'o'
run finalizer-off-late-when-over finalizer '|| o->status.closed_epoch >= o->spec.epoch' ''
run finalizer-off-late-when-deleting finalizer 'if (!o->meta.deleting && !settled(o)' 'if (!settled(o)'
run finalizer-off-never finalizer '&& c->now < base_time_add(cl->first_seen, PATIENCE)' ''
run finalizer-other-boot finalizer 'any |= is_gate(n.meta.finalizers[i]) && strcmp(n.meta.finalizers[i], c->finalizer) != 0' 'any |= false'
run finalizer-foreign-wait finalizer 'if (c->now < at) {' 'if (0) {'
run finalizer-foreign-fresh finalizer 'if (!cl->deleting_read) {' 'if (0) {'
run finalizer-only-gates finalizer 'if (is_gate(n.meta.finalizers[i]) && strcmp' 'if (strcmp'
# writes
run write-unknown-read-back row 'default: /* it may have landed: reading back decides */
        r->read = true;' 'default:'
run restart-conversion service 's->deadline = r->deadline; return;' 'r->deadline = 0; convert(c, s); return;'
run restart-leaves-gates gate 'if (!cl->kern.active || v->may == FND_MAY_UNKNOWN)
        return false;' 'if (!cl->kern.active) return false;'
run restart-scan claim 'if (!(o->meta.deleting && gates) &&' 'if (1 || !(o->meta.deleting && gates) &&'
# what is remembered of objects that are gone
run close-confirm-later verdict 'return over(v, FND_R_CLOSED)' 'return no(v, FND_R_CLOSED)'
run regress-object-answer row 'fnd_regress_answer(c, r, rv, sent);' ''
run forget-claim-early claim 'return c->coll[FND_HELD].t0 >= r->gone_at;' 'return true;'
run forget-no-attachment attachment 'if (!base_uuid_is_zero(&a->obj.meta.uid) && !base_uuid_eq' 'if (a->row.present && !base_uuid_eq'
run forget-record-in-use core 'if (!room(c) || record_used(c, &c->records[i]))' 'if (!room(c))'
run forget-no-scan core 'for (unsigned i = 0; ok && i < c->n_records; i++) { struct base_uuid uid' 'for (unsigned i = 0; 0 && i < c->n_records; i++) { struct base_uuid uid'
if [ ${#only[@]} -gt 0 ] && [ $((passed + failed)) != ${#only[@]} ]; then
    echo "  of ${#only[@]} names only $((passed + failed)) are known: ${only[*]}"
    failed=$((failed + 1))
fi
echo "foundation-mutants: $passed passed, $failed failed"
[ "$failed" = 0 ]
