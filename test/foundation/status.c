/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

/* A refusal is written when it has stood this long: instance, attachment and service may only be late. */
#define REFUSE_AFTER BASE_SEC
/* How long the status of a shut gate waits for the old device's deletion, to be one write with closedEpoch. */
#define DEVICE_PATIENCE (500 * BASE_MS)

static void gate(struct fnd_core *c, struct contract_claim *n, enum contract_gate_state state,
                 enum fnd_reason why, bool *change)
{
    const char *text = fnd_reason_text(why);

    if (n->status.gate.epoch == n->spec.epoch && n->status.gate.state == state &&
        (state == CONTRACT_GATE_OPEN || strcmp(n->status.gate.reason, text) == 0))
        return;
    n->status.gate.epoch = n->spec.epoch;
    n->status.gate.state = state;
    base_copy(n->status.gate.reason, sizeof n->status.gate.reason, text);
    n->status.gate.since = c->wall;
    *change = true;
}

static void closed(struct fnd_core *c, struct contract_claim *n, int64_t epoch,
                   enum contract_closed_reason why, bool *change)
{
    n->status.closed_epoch = epoch;
    n->status.closed_reason = why;
    n->status.closed_time = c->wall;
    if (why == CONTRACT_CLOSED_CONFIRMED && n->status.withdrawn_epoch < epoch) {
        n->status.withdrawn_epoch = epoch;
        n->status.withdrawn_time = c->wall;
    }
    *change = true;
}

/* The old process' device must be gone before its epoch is confirmed. */
static bool device_pending(struct fnd_core *c, const struct fnd_claim *cl, const struct fnd_verdict *v)
{
    return (v->reason == FND_R_INSTANCE_REPLACED || v->reason == FND_R_INSTANCE_GONE) && v->cause &&
           fnd_gate_closed_here(cl, cl->obj.spec.epoch) && !fnd_device_old_gone(c);
}

/* The three writes of closedEpoch, at most one of them at a time. */
static void closures(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v,
                     struct contract_claim *n, base_time *wake, bool *change)
{
    const struct contract_claim_spec *s = &cl->obj.spec;
    int64_t at = cl->obj.status.closed_epoch;
    bool holder = strcmp(s->holder.node, c->cfg.node) == 0;

    /* (b) the epoch before was held here, on this kernel */
    if (s->previous.epoch && strcmp(s->previous.node, c->cfg.node) == 0 &&
        base_uuid_eq(&s->previous.boot_id, &c->cfg.boot_id) && s->previous.epoch == s->epoch - 1 &&
        at == s->previous.epoch - 1 && fnd_gate_closed_here(cl, s->previous.epoch)) {
        closed(c, n, s->previous.epoch, CONTRACT_CLOSED_CONFIRMED, change);
        return;
    }
    /* (a) the row's own epoch is over, held here, on this kernel */
    if (v->cause && fnd_is_me(c, &s->holder) && at == s->epoch - 1 && fnd_gate_closed_here(cl, s->epoch) &&
        !cl->kern.active && !device_pending(c, cl, v)) {
        closed(c, n, s->epoch, CONTRACT_CLOSED_CONFIRMED, change);
        return;
    }
    /* (c) nobody confirmed: time did */
    if (holder && s->epoch > 1 && at < s->epoch - 1) {
        if (fnd_waited(c, cl))
            closed(c, n, s->epoch - 1, CONTRACT_CLOSED_WAITED, change);
        else
            fnd_wake(wake, fnd_wait_until(c, cl));
    }
}

static const char *refusal_text(enum fnd_reason r)
{
    if (r == FND_R_SERVICE_GONE)
        return "serviceRef names no ProviderService with that UID";
    if (r == FND_R_SERVICE_MISMATCH)
        return "provider, tenant or vpc are not those of the ProviderService";
    if (r == FND_R_OUTSIDE_POOL)
        return "the prefix is not in the service's allowedPrefix, or is its index 0";
    if (r == FND_R_SERVICE_EXPIRED)
        return "the service's validUntil is past";
    if (r == FND_R_OTHER_BOOT)
        return "holder.bootID is not that of this kernel";
    return "";
}

/* What nothing but a change of the objects will mend is said on the row. */
static void refuse(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v,
                   struct contract_claim *n, base_time *wake, bool *change)
{
    bool said = cl->obj.status.accepted.status == CONTRACT_COND_FALSE &&
                strcmp(cl->obj.status.accepted.reason, fnd_reason_text(v->reason)) == 0;

    if (v->may != FND_MAY_NO || v->acceptable || v->cause || said ||
        cl->obj.status.accepted_epoch == cl->obj.spec.epoch || v->reason == FND_R_CLOSED) {
        cl->refuse = FND_R_NONE;
        return;
    }
    if (cl->refuse != v->reason) {
        cl->refuse = v->reason;
        cl->refuse_since = c->now;
    }
    if (c->now < cl->refuse_since + REFUSE_AFTER) {
        fnd_wake(wake, cl->refuse_since + REFUSE_AFTER);
        return;
    }
    fnd_cond_set(c, &n->status.accepted, false, fnd_reason_text(v->reason), refusal_text(v->reason),
                 n->meta.generation, change);
    fnd_gate_log(c, cl, FND_LOG_REFUSE, cl->obj.spec.epoch, v->reason);
}

/* Whose word on the gate is it: that of the kernel that holds the row. A row of another boot of this node's
 * name may be held by another machine that is alive and says the opposite (two machines of one name cannot be
 * told from a reboot); it is spoken for only once its instance has a later epoch: then whoever held it has to
 * be shut. */
static bool speaks(const struct fnd_core *c, const struct fnd_claim *cl)
{
    const struct contract_holder *h = &cl->obj.spec.holder;
    const struct fnd_instance *i;

    if (fnd_is_me(c, h))
        return true;
    i = fnd_instance_find(c, h->instance);
    return i && i->row.present && base_uuid_eq(&i->obj.meta.uid, &h->instance_uid) &&
           i->obj.spec.epoch > h->instance_epoch;
}

static void holder_fields(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v,
                          struct contract_claim *n, base_time *wake, bool *change)
{
    const struct fnd_kern *k = &cl->kern;
    struct contract_claim_status *s = &n->status;
    int64_t e = n->spec.epoch, gen = n->meta.generation;
    bool open = k->active && k->open && k->epoch == e && base_uuid_eq(&k->uid, &n->meta.uid) &&
                k->deadline > c->now && v->may == FND_MAY_YES;

    if (v->acceptable &&
        (s->accepted_epoch != e || !base_uuid_eq(&s->accepted_lease_uuid, &n->spec.lease_uuid))) {
        s->accepted_epoch = e;
        s->accepted_lease_uuid = n->spec.lease_uuid;
        *change = true;
        fnd_cond_set(c, &s->accepted, true, "Accepted", "", gen, change);
        gate(c, n, CONTRACT_GATE_CLOSED, s->closed_epoch >= e - 1 ? FND_R_ACCEPTED_NOW : FND_R_WAITING,
             change);
        fnd_cond_set(c, &s->gate_open, false, s->gate.reason, "", gen, change);
        fnd_cond_set(c, &s->published, false, s->gate.reason, "", gen, change);
        return;
    }
    refuse(c, cl, v, n, wake, change);
    /* (a) waits for the old device: a moment, and one write says both. */
    if (device_pending(c, cl, v) && !*change && s->closed_epoch == e - 1 &&
        c->now < cl->closed_at + DEVICE_PATIENCE) {
        fnd_wake(wake, cl->closed_at + DEVICE_PATIENCE);
        return;
    }
    if (open) {
        gate(c, n, CONTRACT_GATE_OPEN, FND_R_OPENED, change);
        if (s->published_epoch != e) {
            s->published_epoch = e;
            s->published_time = c->wall;
            *change = true;
        }
        fnd_cond_set(c, &s->gate_open, true, fnd_reason_text(FND_R_OPENED), "", gen, change);
        fnd_cond_set(c, &s->published, true, fnd_reason_text(FND_R_OPENED), "", gen, change);
        return;
    }
    /* Said to be open, or closed for good: tell why it is shut. */
    if (!k->active && ((s->gate.epoch == e && s->gate.state == CONTRACT_GATE_OPEN && speaks(c, cl)) ||
                       s->closed_epoch >= e)) {
        enum fnd_reason why = v->may == FND_MAY_YES ? FND_R_EXPIRED : v->reason;

        if (s->gate.epoch == e && s->gate.state == CONTRACT_GATE_CLOSED &&
            s->gate_open.status != CONTRACT_COND_TRUE)
            return;
        gate(c, n, CONTRACT_GATE_CLOSED, why, change);
        fnd_cond_set(c, &s->gate_open, false, fnd_reason_text(why), "", gen, change);
        fnd_cond_set(c, &s->published, false, fnd_reason_text(why), "", gen, change);
    }
}

/* One write says all that is due: on one node (b) and the accept of the next epoch, (c) and the opening. */
bool fnd_status_drive(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v, base_time *wake)
{
    struct contract_claim n = cl->obj;
    bool change = false;

    if (cl->kern.op == FND_OP_SHUT || cl->kern.op == FND_OP_CLOSE)
        return false; /* what is being shut is said when it is: closing and the next accept are one write */
    closures(c, cl, v, &n, wake, &change);
    if (strcmp(n.spec.holder.node, c->cfg.node) == 0)
        holder_fields(c, cl, v, &n, wake, &change);
    if (!change)
        return false;
    return fnd_row_put(c, &cl->row, FND_ASK_STATUS, CONTRACT_CLAIM, &n, sizeof n) != NULL;
}
