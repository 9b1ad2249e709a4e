/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

void fnd_gate_log(struct fnd_core *c, const struct fnd_claim *cl, enum fnd_log log, int64_t epoch,
                  enum fnd_reason reason)
{
    struct fnd_fx *fx = fnd_fx(c, FND_FX_LOG);

    if (!fx)
        return;
    fx->log = log;
    fx->obj_kind = CONTRACT_CLAIM;
    base_copy(fx->name, sizeof fx->name, cl->row.name);
    fx->gate.prefix = cl->obj.spec.prefix;
    fx->gate.epoch = epoch;
    fx->gate.uid = cl->obj.meta.uid;
    fx->gate.deadline = cl->kern.deadline;
    base_copy(fx->gate.device, sizeof fx->gate.device, cl->kern.device);
    base_copy(fx->connector, sizeof fx->connector, cl->obj.spec.connector);
    fx->lease = cl->obj.spec.lease_uuid;
    fx->correlation = cl->obj.spec.correlation;
    fx->reason = fnd_reason_text(reason);
}

static void emit(struct fnd_core *c, const struct fnd_claim *cl, enum fnd_fx_kind kind, base_time deadline)
{
    struct fnd_fx *fx = fnd_fx(c, kind);

    if (!fx)
        return;
    fx->op = cl->kern.op_id;
    fx->gate.prefix = cl->obj.spec.prefix;
    fx->gate.deadline = deadline;
    fx->gate.uid = cl->kern.uid;
    fx->gate.epoch = cl->kern.epoch;
    base_copy(fx->gate.device, sizeof fx->gate.device, cl->kern.device);
    fx->until = base_time_add(c->now, base_time_add(c->cfg.timing.lease, 2 * BASE_SEC));
}

static void begin(struct fnd_core *c, struct fnd_claim *cl, enum fnd_op op)
{
    cl->kern.op = op;
    cl->kern.op_id = fnd_id(c);
}

bool fnd_gate_closed_here(const struct fnd_claim *cl, int64_t epoch)
{
    return cl->closed_here >= epoch && base_uuid_eq(&cl->closed_uid, &cl->obj.meta.uid);
}

/* (a): the row's own epoch, over for good. (b): the epoch before, held here. And, for the finalizer, every
 * epoch that could have been ours once the row names another. */
int64_t fnd_gate_due(const struct fnd_core *c, const struct fnd_claim *cl, const struct fnd_verdict *v)
{
    const struct contract_claim *o = &cl->obj;
    bool ours = contract_has_finalizer(&o->meta, c->finalizer);
    int64_t due = 0;

    if (!cl->row.present || cl->row.left || v->may == FND_MAY_UNKNOWN || c->regressed_at)
        return 0;
    if (fnd_is_me(c, &o->spec.holder)) {
        if (v->cause && (o->status.closed_epoch < o->spec.epoch || ours))
            due = o->spec.epoch;
    } else if (ours) {
        due = o->meta.deleting ? o->spec.epoch : o->spec.epoch - 1;
    }
    if (due == 0 && o->spec.previous.epoch > o->status.closed_epoch &&
        strcmp(o->spec.previous.node, c->cfg.node) == 0 &&
        base_uuid_eq(&o->spec.previous.boot_id, &c->cfg.boot_id))
        due = o->spec.previous.epoch;
    return due;
}

/* Gate zero, tombstone, withdrawal, in this order: the report of the group is what closedEpoch rests on. */
static void close_group(struct fnd_core *c, struct fnd_claim *cl, const struct base_uuid *uid, int64_t epoch,
                        enum fnd_reason why)
{
    struct fnd_kern *k = &cl->kern;
    struct fnd_record *r = fnd_record_get(c, uid, CONTRACT_CLAIM);
    /* A gate that is open for a later epoch of the same object stays; only the tombstone is due then. */
    bool shut = !(k->active && base_uuid_eq(&k->uid, uid) && k->epoch > epoch);

    begin(c, cl, FND_OP_CLOSE);
    k->op_uid = *uid;
    k->op_tomb = epoch;
    if (shut)
        emit(c, cl, FND_FX_GATE, 0);
    if (r) {
        if (r->tomb < epoch)
            r->tomb = epoch;
        /* whose epoch that was: with another leaseUUID it would be of another history */
        if (r->accepted < epoch && base_uuid_eq(uid, &cl->obj.meta.uid) && epoch == cl->obj.spec.epoch) {
            r->accepted = epoch;
            r->nonce = cl->obj.spec.lease_uuid;
        }
        fnd_record_emit(c, r, k->op_id);
    }
    if (shut) {
        emit(c, cl, FND_FX_WITHDRAW, 0);
        k->deadline = 0;
        k->shut_at = c->now;
    }
    cl->last = why;
    if (!r) { /* no room for a tombstone: nothing may be confirmed; the gate is zero all the same */
        k->op = FND_OP_SHUT;
        k->retry_at = base_time_add(c->now, BASE_SEC);
    }
}

static void shut_group(struct fnd_core *c, struct fnd_claim *cl, enum fnd_reason why)
{
    begin(c, cl, FND_OP_SHUT);
    emit(c, cl, FND_FX_GATE, 0);
    emit(c, cl, FND_FX_WITHDRAW, 0);
    cl->kern.deadline = 0;
    cl->kern.shut_at = c->now;
    cl->last = why;
}

static void open_group(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v)
{
    struct fnd_kern *k = &cl->kern;
    struct fnd_record *r = fnd_record_get(c, &cl->obj.meta.uid, CONTRACT_CLAIM);

    if (!r)
        return;
    begin(c, cl, FND_OP_OPEN);
    k->active = true;
    k->open = false;
    k->uid = cl->obj.meta.uid;
    k->epoch = cl->obj.spec.epoch;
    k->deadline = v->full;
    base_copy(k->device, sizeof k->device, v->device);
    r->accepted = cl->obj.spec.epoch;
    r->nonce = cl->obj.spec.lease_uuid;
    fnd_record_emit(c, r, k->op_id);
    emit(c, cl, FND_FX_GATE, v->full);
    emit(c, cl, FND_FX_PUBLISH, v->full);
    cl->proved = false;
}

static void move_group(struct fnd_core *c, struct fnd_claim *cl, base_time deadline)
{
    begin(c, cl, FND_OP_MOVE);
    cl->kern.deadline = deadline;
    emit(c, cl, FND_FX_GATE, deadline);
    emit(c, cl, FND_FX_PUBLISH, deadline);
}

static bool same_epoch(const struct fnd_claim *cl)
{
    return cl->row.present && base_uuid_eq(&cl->kern.uid, &cl->obj.meta.uid) &&
           cl->kern.epoch == cl->obj.spec.epoch;
}

/* True when the gate as it is has to go; *ret_tomb is the epoch that ends for good with it (0 = it may come
 * back). */
static bool must_shut(const struct fnd_core *c, const struct fnd_claim *cl, const struct fnd_verdict *v,
                      int64_t *ret_tomb)
{
    *ret_tomb = 0;
    if (!cl->kern.active || v->may == FND_MAY_UNKNOWN)
        return false;
    if (c->regressed_at)
        return true; /* nothing is confirmed, and its record goes with all the others */
    if (!same_epoch(cl)) {
        *ret_tomb = cl->kern.epoch;
        return true;
    }
    if (v->may == FND_MAY_NO) {
        if (v->cause || v->reason == FND_R_TAKEN_OVER || v->reason == FND_R_CLOSED)
            *ret_tomb = cl->kern.epoch;
        return true;
    }
    return cl->kern.deadline <= c->now;
}

static bool shutting(const struct fnd_kern *k)
{
    return k->op == FND_OP_SHUT || k->op == FND_OP_CLOSE;
}

void fnd_gate_drive(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v, base_time *wake)
{
    struct fnd_kern *k = &cl->kern;
    int64_t tomb, due;
    base_time want;

    if (c->now < k->retry_at) {
        fnd_wake(wake, k->retry_at);
        return;
    }
    if (must_shut(c, cl, v, &tomb)) {
        enum fnd_reason why = v->may == FND_MAY_YES ? FND_R_EXPIRED : v->reason;

        /* Never waits for another group: the kernel executes in order. */
        if (tomb && k->op != FND_OP_CLOSE)
            close_group(c, cl, &k->uid, tomb, why);
        else if (!tomb && !shutting(k))
            shut_group(c, cl, why);
        return;
    }
    due = fnd_gate_due(c, cl, v);
    if (due && !fnd_gate_closed_here(cl, due) && k->op == FND_OP_NONE) {
        close_group(c, cl, &cl->obj.meta.uid, due, v->reason);
        return;
    }
    if (v->may != FND_MAY_YES || k->op != FND_OP_NONE)
        return;
    if (!k->active) {
        /* After a lapse only a proof that began later brings it back. */
        if (v->full > c->now && v->proof >= k->shut_at)
            open_group(c, cl, v);
        return;
    }
    want = base_time_min(k->deadline, v->hard);
    if (cl->proved) {
        cl->proved = false;
        want = base_time_max(want, v->full);
    }
    if (want != k->deadline)
        move_group(c, cl, want);
    fnd_wake(wake, k->deadline);
}

static void failed(struct fnd_core *c, struct fnd_claim *cl)
{
    struct fnd_kern *k = &cl->kern;

    /* Unknown what the kernel holds now: treat it as open, and shut it. */
    fnd_gate_log(c, cl, FND_LOG_FAILED, k->epoch, FND_R_KERNEL);
    k->retry_at = base_time_add(c->now, k->op == FND_OP_OPEN || k->op == FND_OP_MOVE ? 0 : BASE_SEC);
    if (k->op == FND_OP_OPEN || k->op == FND_OP_MOVE) {
        k->op = FND_OP_NONE;
        shut_group(c, cl, FND_R_KERNEL);
        return;
    }
    k->op = FND_OP_NONE;
}

bool fnd_gate_done(struct fnd_core *c, uint64_t op, bool ok)
{
    for (unsigned i = 0; i < c->cfg.max_claims; i++) {
        struct fnd_claim *cl = &c->claims[i];
        struct fnd_kern *k = &cl->kern;
        bool was = k->active;

        if (!cl->row.used || k->op == FND_OP_NONE || k->op_id != op)
            continue;
        fnd_claim_touch(c, i);
        c->dirty = true;
        if (!ok) {
            failed(c, cl);
            return true;
        }
        switch (k->op) {
        case FND_OP_OPEN:
            k->open = true;
            fnd_gate_log(c, cl, FND_LOG_OPEN, k->epoch, FND_R_OPENED);
            break;
        case FND_OP_SHUT:
            fnd_gate_log(c, cl, FND_LOG_SHUT, k->epoch, cl->last);
            if (was)
                fnd_gate_log(c, cl, FND_LOG_WITHDRAW, k->epoch, cl->last);
            k->active = k->open = false;
            break;
        case FND_OP_CLOSE:
            fnd_gate_log(c, cl, FND_LOG_CLOSE, k->op_tomb, cl->last);
            if (was && k->deadline == 0)
                fnd_gate_log(c, cl, FND_LOG_WITHDRAW, k->epoch, cl->last);
            if (k->deadline == 0)
                k->active = k->open = false;
            cl->closed_uid = k->op_uid;
            cl->closed_here = k->op_tomb;
            cl->closed_at = c->now;
            k->shut_at = 0; /* a new epoch starts with its own accept as proof */
            break;
        case FND_OP_MOVE:
        case FND_OP_NONE:
            break;
        }
        k->op = FND_OP_NONE;
        return true;
    }
    return false;
}
