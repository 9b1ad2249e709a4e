/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

bool fnd_is_me(const struct fnd_core *c, const struct contract_holder *h)
{
    return strcmp(h->node, c->cfg.node) == 0 && base_uuid_eq(&h->boot_id, &c->cfg.boot_id);
}

base_time fnd_wait_until(const struct fnd_core *c, const struct fnd_claim *cl)
{
    return base_time_add(cl->first_seen, contract_wait(&c->cfg.timing, cl->obj.spec.max_lease_seconds));
}

bool fnd_waited(const struct fnd_core *c, const struct fnd_claim *cl)
{
    return c->now >= fnd_wait_until(c, cl);
}

struct fnd_claim *fnd_claim_find(struct fnd_core *c, const char *name)
{
    for (unsigned i = 0; i < c->cfg.max_claims; i++)
        if (c->claims[i].row.used && strcmp(c->claims[i].row.name, name) == 0)
            return &c->claims[i];
    return NULL;
}

struct fnd_claim *fnd_claim_get(struct fnd_core *c, const char *name)
{
    struct fnd_claim *cl = fnd_claim_find(c, name);
    struct fnd_fx *fx;

    if (cl)
        return cl;
    for (unsigned i = 0; i < c->cfg.max_claims; i++) {
        if (c->claims[i].row.used)
            continue;
        cl = &c->claims[i];
        memset(cl, 0, sizeof *cl);
        cl->row.used = true;
        base_copy(cl->row.name, sizeof cl->row.name, name);
        c->claim_wake[i] = BASE_TIME_NEVER;
        fnd_claim_touch(c, i);
        return cl;
    }
    if (!c->full_logged && c->out && (fx = fnd_fx(c, FND_FX_LOG))) {
        fx->log = FND_LOG_FULL;
        fx->reason = "Claims";
        base_copy(fx->name, sizeof fx->name, name);
        c->full_logged = true;
    }
    return NULL;
}

static bool key_is(const struct contract_claim *a, const struct contract_claim *b)
{
    return base_uuid_eq(&a->meta.uid, &b->meta.uid) && a->spec.epoch == b->spec.epoch &&
           base_uuid_eq(&a->spec.lease_uuid, &b->spec.lease_uuid);
}

/* Who may say what was said tells whose news it is: accept and closure are logged when their landing is seen. */
static void log_news(struct fnd_core *c, const struct fnd_claim *cl, const struct contract_claim *was,
                     bool same_uid)
{
    const struct contract_claim_status *n = &cl->obj.status, *o = &was->status;

    if (same_uid && n->accepted_epoch == cl->obj.spec.epoch && fnd_is_me(c, &cl->obj.spec.holder) &&
        o->accepted_epoch != n->accepted_epoch)
        fnd_gate_log(c, cl, FND_LOG_ACCEPT, n->accepted_epoch, FND_R_NONE);
    if (same_uid && n->closed_epoch > o->closed_epoch)
        fnd_gate_log(c, cl, FND_LOG_CLOSED_EPOCH, n->closed_epoch,
                     n->closed_reason == CONTRACT_CLOSED_WAITED ? FND_R_WAITED : FND_R_CONFIRMED);
}

/* Epochs never go back, and an epoch has one leaseUUID: the API server did. */
static bool went_back(const struct contract_claim_spec *was, const struct contract_claim_spec *is)
{
    return is->epoch < was->epoch ||
           (is->epoch == was->epoch && !base_uuid_eq(&is->lease_uuid, &was->lease_uuid));
}

/* The pinned map remembers epochs, too, of an earlier life of this process. While the wait runs, it is what
 * the wait is for. */
static bool below_record(struct fnd_core *c, const struct contract_claim *o)
{
    const struct fnd_record *r = fnd_record_find(c, &o->meta.uid);

    if (!r || c->regressed_at)
        return false;
    /* a tombstone for an epoch that was not looked at here came from a row with a later one */
    return r->accepted > o->spec.epoch || r->tomb > o->spec.epoch ||
           (r->accepted == o->spec.epoch && !base_uuid_eq(&r->nonce, &o->spec.lease_uuid)) ||
           (r->tomb == o->spec.epoch && r->accepted < r->tomb && fnd_is_me(c, &o->spec.holder) &&
            !o->meta.deleting);
}

static void apply(struct fnd_core *c, struct fnd_claim *cl, const struct contract_claim *o)
{
    struct contract_claim was = cl->obj;
    bool known = cl->row.content_rv[0] != '\0';
    bool same_uid = known && base_uuid_eq(&was.meta.uid, &o->meta.uid);
    bool same = known && key_is(&was, o);

    fnd_regress_lease(c, o->spec.max_lease_seconds);
    if ((same_uid && went_back(&was.spec, &o->spec)) || below_record(c, o))
        c->regress_due = true;
    if (known && !same_uid)
        cl->deleting_read = 0;
    cl->obj = *o;
    fnd_row_applied(c, &cl->row, o->meta.rv, same);
    if (!base_uuid_eq(&cl->first_uid, &o->meta.uid) || cl->first_epoch != o->spec.epoch ||
        !base_uuid_eq(&cl->first_lease, &o->spec.lease_uuid)) {
        cl->first_uid = o->meta.uid;
        cl->first_epoch = o->spec.epoch;
        cl->first_lease = o->spec.lease_uuid;
        cl->first_seen = c->now;
        cl->refuse = FND_R_NONE;
    }
    log_news(c, cl, &was, same_uid);
    fnd_claim_touch(c, (unsigned)(cl - c->claims));
}

void fnd_claim_row(struct fnd_core *c, const struct fnd_in *in)
{
    const struct contract_claim *o = &in->object->u.claim;
    struct fnd_claim *cl = in->left ? fnd_claim_find(c, o->meta.name) : fnd_claim_get(c, o->meta.name);

    if (!cl)
        return;
    fnd_claim_touch(c, (unsigned)(cl - c->claims));
    if (in->left) {
        (void)fnd_row_left(c, &cl->row, in->coll, o->meta.rv);
        return;
    }
    cl->row.in |= FND_BIT(in->coll);
    cl->row.unlisted &= (uint8_t)~FND_BIT(in->coll);
    fnd_regress_listed(c, in->coll, &cl->row, o->meta.rv);
    if (fnd_row_news(&cl->row, o->meta.rv) == FND_NEWS_CONTENT)
        apply(c, cl, o);
}

/* What the pinned map still holds but the list does not name: somebody else's by now, or gone. */
void fnd_claim_listed(struct fnd_core *c, enum fnd_coll coll)
{
    for (unsigned i = 0; coll == FND_HELD && i < c->cfg.max_claims; i++) {
        struct fnd_claim *cl = &c->claims[i];

        if (cl->row.used && cl->kern.active && !cl->row.present)
            cl->row.read = true;
    }
}

void fnd_claim_proved(struct fnd_core *c, enum fnd_coll coll, base_time t0)
{
    for (unsigned i = 0; i < c->cfg.max_claims; i++) {
        struct fnd_claim *cl = &c->claims[i];
        const struct contract_claim *o = &cl->obj;

        if (!cl->row.used || !cl->row.present || cl->row.left)
            continue;
        if (coll == FND_HELD) {
            /* Only a row that is *in* the proof, and held here, is proved by it. */
            if (!(cl->row.in & FND_BIT(FND_HELD)) || !fnd_is_me(c, &o->spec.holder) || o->spec.release_time ||
                o->meta.deleting)
                continue;
            fnd_row_proof(&cl->row, t0);
        }
        cl->proved = true;
        fnd_claim_touch(c, i);
    }
}

bool fnd_claim_answer(struct fnd_core *c, const struct fnd_in *in)
{
    for (unsigned i = 0; i < c->cfg.max_claims; i++) {
        struct fnd_claim *cl = &c->claims[i];
        enum fnd_ask ask = cl->row.ask;
        const struct contract_claim *o;
        enum fnd_news news;

        if (!fnd_row_matches(&cl->row, in))
            continue;
        fnd_claim_touch(c, i);
        if (!fnd_row_answer(c, &cl->row, in)) {
            if (in->code == BASE_EDENIED || in->code == BASE_EINVAL)
                fnd_gate_log(c, cl, FND_LOG_FAILED, cl->obj.spec.epoch, FND_R_WRITE_REFUSED);
            return true;
        }
        o = &in->object->u.claim;
        news = fnd_row_news(&cl->row, o->meta.rv);
        if (news == FND_NEWS_CONTENT) {
            apply(c, cl, o);
        } else if (news == FND_NEWS_SAME) {
            cl->row.read = cl->row.left = false;
        } else {
            /* Older than what has been applied: it proves nothing and changes nothing. */
            fnd_regress_answer(c, &cl->row, o->meta.rv, in->sent);
            if (ask == FND_ASK_GET && cl->row.read)
                cl->row.retry_at = base_time_add(c->now, 50 * BASE_MS);
            return true;
        }
        fnd_row_proof(&cl->row, in->sent);
        if (ask == FND_ASK_FINALIZERS && o->meta.deleting)
            cl->row.read = true; /* that may have been the last one, and no watch may show this row */
        if (ask == FND_ASK_GET && o->meta.deleting && !cl->deleting_read)
            cl->deleting_read = c->now;
        return true;
    }
    return false;
}

void fnd_claim_scanned(struct fnd_core *c, const struct contract_claim *o)
{
    struct fnd_claim *cl = fnd_claim_find(c, o->meta.name);
    bool gates = false;

    for (unsigned i = 0; i < o->meta.n_finalizers && i < CONTRACT_FINALIZERS_MAX; i++)
        gates |= base_str_starts(base_str_of(o->meta.finalizers[i]), CONTRACT_GATE_FINALIZER);
    /* Of interest: rows that wait for finalizers to come off, and rows with ours that no selector shows. */
    if (!(o->meta.deleting && gates) &&
        !(contract_has_finalizer(&o->meta, c->finalizer) && strcmp(o->spec.holder.node, c->cfg.node) != 0 &&
          strcmp(o->spec.previous.node, c->cfg.node) != 0))
        return;
    if (!cl)
        cl = fnd_claim_get(c, o->meta.name);
    if (!cl || (cl->row.present && !(o->meta.deleting && !cl->deleting_read)))
        return;
    cl->row.read = true;
    fnd_claim_touch(c, (unsigned)(cl - c->claims));
}

/* A row that no selector shows, that is not wanted for its finalizers, and of which nothing is open or under
 * way. */
static bool forgettable(const struct fnd_core *c, const struct fnd_claim *cl)
{
    const struct fnd_row *r = &cl->row;

    if (r->in || r->ask != FND_ASK_NONE || r->read || r->left || cl->kern.active ||
        cl->kern.op != FND_OP_NONE)
        return false;
    if (!r->present) /* a watch that lags may still show it as it was, held and accepted: its version and its
                        tombstone are what tells that it is over */
        return c->coll[FND_HELD].t0 >= r->gone_at;
    return !cl->obj.meta.deleting && !contract_has_finalizer(&cl->obj.meta, c->finalizer);
}

void fnd_claim_eval(struct fnd_core *c, unsigned i)
{
    struct fnd_claim *cl = &c->claims[i];
    base_time wake = BASE_TIME_NEVER;
    struct fnd_verdict v;

    c->claim_wake[i] = BASE_TIME_NEVER;
    if (!cl->row.used)
        return;
    v = fnd_verdict(c, cl);
    fnd_gate_drive(c, cl, &v, &wake);
    if (c->regressed_at) { /* shut, and that is all */
        c->claim_wake[i] = wake <= c->now ? base_time_add(c->now, BASE_MS) : wake;
        return;
    }
    if (forgettable(c, cl) && c->coll[FND_HELD].listed) {
        if (!cl->row.present && cl->row.content_rv[0])
            fnd_record_drop(c, &cl->obj.meta.uid);
        cl->row.used = false;
        return;
    }
    if (cl->row.ask == FND_ASK_NONE && c->now < cl->row.retry_at) {
        fnd_wake(&wake, cl->row.retry_at);
    } else if (cl->row.ask == FND_ASK_NONE) {
        /* An answer that was overtaken proved nothing: the first opening must not wait for the next interval. */
        if (v.may == FND_MAY_YES && !cl->kern.active && !cl->row.proof)
            cl->row.read = true;
        if (cl->row.read)
            fnd_row_get(c, &cl->row, CONTRACT_CLAIM);
        else if (cl->row.present && v.may != FND_MAY_UNKNOWN && !fnd_status_drive(c, cl, &v, &wake))
            (void)fnd_finalizer_drive(c, cl, &v, &wake);
    }
    c->claim_wake[i] = wake;
    if (wake <= c->now)
        c->claim_wake[i] = base_time_add(c->now, BASE_MS);
}
