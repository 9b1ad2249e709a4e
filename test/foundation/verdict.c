/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

#include "base/mutant.h"

static const char *const reasons[] = {
    [FND_R_NONE] = "None",
    [FND_R_OPENED] = "Opened",
    [FND_R_GONE] = "Gone",
    [FND_R_NOT_READ] = "NotRead",
    [FND_R_DELETED] = "Deleted",
    [FND_R_TAKEN_OVER] = "TakenOver",
    [FND_R_OTHER_BOOT] = "OtherBoot",
    [FND_R_RELEASED] = "Released",
    [FND_R_REGRESSED] = "EpochRegressed",
    [FND_R_CLOSED] = "Closed",
    [FND_R_SERVICE_REVOKED] = "ServiceRevoked",
    [FND_R_SERVICE_GONE] = "ServiceGone",
    [FND_R_SERVICE_MISMATCH] = "ServiceMismatch",
    [FND_R_OUTSIDE_POOL] = "OutsidePool",
    [FND_R_SERVICE_EXPIRED] = "ServiceExpired",
    [FND_R_INSTANCE_GONE] = "InstanceGone",
    [FND_R_INSTANCE_REPLACED] = "InstanceReplaced",
    [FND_R_INSTANCE_MISMATCH] = "InstanceMismatch",
    [FND_R_INSTANCE_RELEASED] = "InstanceReleased",
    [FND_R_INSTANCE_NOT_ACCEPTED] = "InstanceNotAccepted",
    [FND_R_NO_RENEWAL] = "NoRenewal",
    [FND_R_LEASE_EXPIRED] = "LeaseExpired",
    [FND_R_ATTACHMENT_GONE] = "AttachmentGone",
    [FND_R_ATTACHMENT_NOT_READY] = "AttachmentNotReady",
    [FND_R_NOT_ACCEPTED] = "NotAccepted",
    [FND_R_WAITING] = "Waiting",
    [FND_R_NO_FINALIZER] = "NoFinalizer",
    [FND_R_ACCEPTED_NOW] = "Accepted",
    [FND_R_EXPIRED] = "Expired",
    [FND_R_KERNEL] = "KernelFailed",
    [FND_R_RENEWAL_AHEAD] = "RenewalAhead",
    [FND_R_BOOT_MISMATCH] = "BootIDMismatch",
    [FND_R_NODE_MISMATCH] = "NodeMismatch",
    [FND_R_OLD_DEVICE] = "OldDevice",
    [FND_R_DEVICE_LOST] = "DeviceLost",
    [FND_R_MAKING_DEVICE] = "MakingDevice",
    [FND_R_READY] = "Ready",
    [FND_R_ADDED] = "Added",
    [FND_R_REMOVED] = "Removed",
    [FND_R_MADE] = "Made",
    [FND_R_CONFIRMED] = "Confirmed",
    [FND_R_WAITED] = "Waited",
    [FND_R_WRITE_REFUSED] = "WriteRefused",
};

const char *fnd_reason_text(enum fnd_reason r)
{
    return reasons[r];
}

static struct fnd_verdict no(struct fnd_verdict v, enum fnd_reason reason)
{
    v.may = FND_MAY_NO;
    v.reason = reason;
    return v;
}

static struct fnd_verdict over(struct fnd_verdict v, enum fnd_reason reason)
{
    v.cause = true;
    return no(v, reason);
}

/* Service: NONE, or why it does not carry this claim. */
static enum fnd_reason service_says(const struct fnd_core *c, const struct contract_claim_spec *s,
                                    const struct fnd_service **ret)
{
    const struct fnd_service *sv = fnd_service_find(c, s->service.name);

    *ret = NULL;
    if (!sv || !sv->row.present || sv->obj.meta.deleting || !base_uuid_eq(&sv->obj.meta.uid, &s->service.uid))
        return FND_R_SERVICE_GONE;
    *ret = sv;
    if (sv->obj.revoked)
        return FND_R_SERVICE_REVOKED;
    if (strcmp(sv->obj.provider, s->provider) != 0 || strcmp(sv->obj.tenant, s->tenant) != 0 ||
        strcmp(sv->obj.vpc, s->vpc) != 0)
        return FND_R_SERVICE_MISMATCH;
    if (s->prefix.len != 96 || sv->obj.pool.len >= 96 || !base_prefix_covers(&sv->obj.pool, &s->prefix) ||
        base_ip6_eq(&sv->obj.pool.addr, &s->prefix.addr)) /* index 0 is the tunnel's own */
        return FND_R_OUTSIDE_POOL;
    if (sv->deadline <= c->now)
        return FND_R_SERVICE_EXPIRED;
    return FND_R_NONE;
}

static enum fnd_reason instance_says(struct fnd_core *c, const struct contract_claim_spec *s,
                                     const struct fnd_instance **ret)
{
    const struct contract_holder *h = &s->holder;
    const struct fnd_instance *i = fnd_instance_find(c, h->instance);

    *ret = NULL;
    if (!i || !i->row.present || i->obj.meta.deleting || !base_uuid_eq(&i->obj.meta.uid, &h->instance_uid))
        return FND_R_INSTANCE_GONE;
    if (i->obj.spec.epoch != h->instance_epoch || !base_uuid_eq(&i->obj.spec.process_id, &h->process_id) ||
        strcmp(i->obj.spec.node, h->node) != 0)
        return FND_R_INSTANCE_MISMATCH;
    if (i->obj.spec.release_time)
        return FND_R_INSTANCE_RELEASED;
    if (!fnd_instance_live(c, i))
        return FND_R_INSTANCE_NOT_ACCEPTED;
    *ret = i;
    return FND_R_NONE;
}

static enum fnd_reason attachment_says(struct fnd_core *c, const struct contract_claim_spec *s,
                                       const char **ret_device)
{
    struct fnd_attachment *a = fnd_attachment_find(c, s->attachment.name);
    const struct fnd_device *d;
    const char *name;

    if (!a || !a->row.present || a->obj.meta.deleting ||
        !base_uuid_eq(&a->obj.meta.uid, &s->attachment.uid) ||
        strcmp(a->obj.spec.instance.name, s->holder.instance) != 0 ||
        !base_uuid_eq(&a->obj.spec.instance.uid, &s->holder.instance_uid) ||
        strcmp(a->obj.spec.vpc, s->vpc) != 0)
        return FND_R_ATTACHMENT_GONE;
    if (a->obj.spec.instance_epoch != s->holder.instance_epoch ||
        a->obj.status.accepted_instance_epoch != s->holder.instance_epoch)
        return FND_R_ATTACHMENT_NOT_READY;
    name = fnd_device_of(a, a->obj.spec.instance_epoch);
    d = fnd_device_find(c, name);
    if (!d || !d->present || d->op_id || !fnd_device_wanted(c, name))
        return FND_R_ATTACHMENT_NOT_READY;
    *ret_device = d->name;
    return FND_R_NONE;
}

/* The CRD refuses a longer one; a receiver does not believe it either. */
#define LEASE_MAX 300

static base_time lease(const struct fnd_instance *i, const struct contract_claim_spec *s)
{
    int32_t l = i->obj.spec.lease_seconds < s->lease_seconds ? i->obj.spec.lease_seconds : s->lease_seconds;

    return (l < LEASE_MAX ? l : LEASE_MAX) * BASE_SEC;
}

/* Contract section 8, in the order in which the reasons matter to a reader: what ended for good first. */
struct fnd_verdict fnd_verdict(struct fnd_core *c, struct fnd_claim *cl)
{
    const struct contract_claim *o = &cl->obj;
    const struct contract_claim_spec *s = &o->spec;
    const struct fnd_instance *in;
    const struct fnd_service *sv;
    const struct fnd_record *r;
    struct fnd_verdict v = {0};
    enum fnd_reason why, why_service;
    base_time l;
    bool gone;

    if (c->regressed_at)
        return no(v, FND_R_REGRESSED);
    if (!c->coll[FND_HELD].listed)
        return v;
    if (cl->row.left)
        return no(v, FND_R_NOT_READ);
    if (!cl->row.present)
        return no(v, FND_R_GONE);
    if (!fnd_is_me(c, &s->holder))
        return no(v, strcmp(s->holder.node, c->cfg.node) == 0 ? FND_R_OTHER_BOOT : FND_R_TAKEN_OVER);
    if (o->meta.deleting)
        return over(v, FND_R_DELETED);
    if (s->release_time)
        return over(v, FND_R_RELEASED);
    if (!c->coll[FND_INSTANCES].listed || !c->coll[FND_ATTACHMENTS].listed || !c->coll[FND_SERVICES].listed)
        return v;

    why_service = service_says(c, s, &sv);
    if (why_service == FND_R_SERVICE_REVOKED)
        return over(v, why_service);
    if (fnd_instance_over(c, &s->holder, cl->row.seen_id, &gone))
        return over(v, gone ? FND_R_INSTANCE_GONE : FND_R_INSTANCE_REPLACED);

    r = fnd_record_find(c, &o->meta.uid);
    if (o->status.closed_epoch >= s->epoch)
        return no(v, FND_R_CLOSED);
    /* Closed here, and whatever it was for: closing is final, and without the confirmation its holder would
     * wait for ever. */
    if (r && r->tomb >= s->epoch)
        return over(v, FND_R_CLOSED);
    if (why_service != FND_R_NONE)
        return no(v, why_service);
    why = instance_says(c, s, &in);
    if (why != FND_R_NONE)
        return no(v, why);
    why = attachment_says(c, s, &v.device);
    if (why != FND_R_NONE)
        return no(v, why);
    v.acceptable = true;
    if (sv->row.proof < cl->kern.shut_at || !sv->row.proof) /* do not wait for the next interval */
        c->coll[FND_SERVICES].soon = true;

    if (o->status.accepted_epoch != s->epoch || !base_uuid_eq(&o->status.accepted_lease_uuid, &s->lease_uuid))
        return no(v, FND_R_NOT_ACCEPTED);
    if (!base_mutant("gate.wait")) {
        if (o->status.closed_epoch < s->epoch - 1 && !fnd_waited(c, cl))
            return no(v, FND_R_WAITING);
    }
    if (!contract_has_finalizer(&o->meta, c->finalizer))
        return no(v, FND_R_NO_FINALIZER);
    if (!in->renew)
        return no(v, FND_R_NO_RENEWAL);
    l = lease(in, s);
    v.hard = base_time_min(base_time_add(in->renew, l), sv->deadline);
    if (v.hard <= c->now)
        return no(v, FND_R_LEASE_EXPIRED);
    v.proof = base_time_min(cl->row.proof, sv->row.proof);
    if (v.proof)
        v.full = base_time_min(v.hard, base_time_add(v.proof, l));
    v.may = FND_MAY_YES;
    v.reason = FND_R_OPENED;
    return v;
}
