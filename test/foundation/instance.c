/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

struct fnd_instance *fnd_instance_find(const struct fnd_core *c, const char *name)
{
    for (unsigned i = 0; i < c->cfg.max_instances; i++)
        if (c->instances[i].row.used && strcmp(c->instances[i].row.name, name) == 0)
            return &c->instances[i];
    return NULL;
}

struct fnd_instance *fnd_instance_get(struct fnd_core *c, const char *name)
{
    struct fnd_instance *in = fnd_instance_find(c, name), *unused = NULL;
    struct fnd_fx *fx;

    if (in)
        return in;
    for (unsigned i = 0; i < c->cfg.max_instances && !unused; i++)
        if (!c->instances[i].row.used)
            unused = &c->instances[i];
    for (unsigned i = 0; i < c->cfg.max_instances && !unused; i++)
        if (!c->instances[i].row.present && c->instances[i].row.ask == FND_ASK_NONE)
            unused = &c->instances[i];
    if (!unused) {
        fx = fnd_fx(c, FND_FX_LOG);
        if (fx) {
            fx->log = FND_LOG_FULL;
            fx->reason = "Instances";
            base_copy(fx->name, sizeof fx->name, name);
        }
        return NULL;
    }
    memset(unused, 0, sizeof *unused);
    unused->row.used = true;
    base_copy(unused->row.name, sizeof unused->row.name, name);
    return unused;
}

static void log_instance(struct fnd_core *c, const struct fnd_instance *i, enum fnd_log log,
                         enum fnd_reason reason)
{
    struct fnd_fx *fx = fnd_fx(c, FND_FX_LOG);

    if (!fx)
        return;
    fx->log = log;
    fx->obj_kind = CONTRACT_INSTANCE;
    base_copy(fx->name, sizeof fx->name, i->row.name);
    fx->gate.epoch = i->obj.spec.epoch;
    fx->gate.uid = i->obj.meta.uid;
    fx->lease = i->obj.spec.process_id;
    fx->reason = fnd_reason_text(reason);
}

/* A renewal counts when it was made on this kernel and not in its future. */
static void renewal(struct fnd_core *c, struct fnd_instance *i)
{
    const struct contract_renew *n = &i->obj.spec.renew;
    enum fnd_reason refused = FND_R_NONE;

    if (!base_uuid_eq(&i->renew_uid, &i->obj.meta.uid) || i->renew_epoch != i->obj.spec.epoch) {
        i->renew = 0;
        i->renew_uid = i->obj.meta.uid;
        i->renew_epoch = i->obj.spec.epoch;
    }
    if (!base_uuid_eq(&n->boot_id, &c->cfg.boot_id))
        refused = FND_R_BOOT_MISMATCH;
    else if (n->boot_time_us > c->now / BASE_US)
        refused = FND_R_RENEWAL_AHEAD;
    else if (n->boot_time_us > 0 && n->boot_time_us * BASE_US > i->renew)
        i->renew = n->boot_time_us * BASE_US;
    if (refused != FND_R_NONE && refused != i->renew_refused)
        log_instance(c, i, FND_LOG_RENEWAL, refused);
    i->renew_refused = refused;
}

/* Epochs never go back, and an epoch has one process: the API server did. */
static bool went_back(int64_t epoch, const struct base_uuid *process, const struct contract_instance *o)
{
    return o->spec.epoch < epoch || (o->spec.epoch == epoch && !base_uuid_eq(&o->spec.process_id, process));
}

static void apply(struct fnd_core *c, struct fnd_instance *i, const struct contract_instance *o)
{
    bool same = base_uuid_eq(&i->obj.meta.uid, &o->meta.uid) && i->obj.spec.epoch == o->spec.epoch;
    bool was = i->obj.status.accepted_epoch == i->obj.spec.epoch;
    bool known = base_uuid_eq(&i->obj.meta.uid, &o->meta.uid);
    const struct fnd_record *r = fnd_record_find(c, &o->meta.uid);

    if ((known && i->row.content_rv[0] && went_back(i->obj.spec.epoch, &i->obj.spec.process_id, o)) ||
        (r && !c->regressed_at && went_back(r->accepted, &r->nonce, o)))
        c->regress_due = true;
    i->obj = *o;
    fnd_row_applied(c, &i->row, o->meta.rv, same);
    renewal(c, i);
    if (known && (!was || !same) && o->status.accepted_epoch == o->spec.epoch)
        log_instance(c, i, FND_LOG_INSTANCE, FND_R_READY);
    fnd_touch_all(c);
}

void fnd_instance_row(struct fnd_core *c, const struct fnd_in *in)
{
    const struct contract_instance *o = &in->object->u.instance;
    struct fnd_instance *i =
        in->left ? fnd_instance_find(c, o->meta.name) : fnd_instance_get(c, o->meta.name);

    if (!i)
        return;
    if (in->left) {
        /* nodeName is immutable: it left because it was deleted */
        if (fnd_row_left(c, &i->row, FND_INSTANCES, o->meta.rv)) {
            i->row.present = i->row.left = i->row.read = false;
            fnd_touch_all(c);
        }
        return;
    }
    i->row.in |= FND_BIT(FND_INSTANCES);
    i->row.unlisted &= (uint8_t)~FND_BIT(FND_INSTANCES);
    fnd_regress_listed(c, FND_INSTANCES, &i->row, o->meta.rv);
    if (fnd_row_news(&i->row, o->meta.rv) == FND_NEWS_CONTENT)
        apply(c, i, o);
}

bool fnd_instance_answer(struct fnd_core *c, const struct fnd_in *in)
{
    for (unsigned n = 0; n < c->cfg.max_instances; n++) {
        struct fnd_instance *i = &c->instances[n];
        enum fnd_ask ask = i->row.ask;

        if (!fnd_row_matches(&i->row, in))
            continue;
        if (fnd_row_answer(c, &i->row, in)) {
            if (fnd_row_take(c, &i->row, ask, in->object->u.meta.rv, in->sent))
                apply(c, i, &in->object->u.instance);
        } else if (ask == FND_ASK_STATUS && (in->code == BASE_EDENIED || in->code == BASE_EINVAL)) {
            log_instance(c, i, FND_LOG_FAILED, FND_R_WRITE_REFUSED);
        }
        fnd_touch_all(c);
        return true;
    }
    return false;
}

bool fnd_instance_live(struct fnd_core *c, const struct fnd_instance *i)
{
    const struct contract_instance *o = &i->obj;
    const struct fnd_record *r;

    if (!i->row.present || o->status.accepted_epoch != o->spec.epoch ||
        !base_uuid_eq(&o->status.accepted_process_id, &o->spec.process_id))
        return false;
    r = fnd_record_find(c, &o->meta.uid);
    return r && r->accepted == o->spec.epoch && base_uuid_eq(&r->nonce, &o->spec.process_id);
}

bool fnd_instance_over(struct fnd_core *c, const struct contract_holder *h, uint64_t claim_seen,
                       bool *ret_gone)
{
    struct fnd_instance *i = fnd_instance_find(c, h->instance);

    *ret_gone = false;
    if (i && i->row.present && base_uuid_eq(&i->obj.meta.uid, &h->instance_uid))
        return i->obj.spec.epoch >
               h->instance_epoch; /* epochs never go back: any sight of a later one will do */
    *ret_gone = true;
    if (!c->coll[FND_INSTANCES].listed)
        return false;
    i = fnd_instance_get(c, h->instance);
    if (!i)
        return false;
    /* Missing, or another object: the watch may be behind. Only a read that began after the claim was seen
     * counts. */
    if (i->row.fresh_id > claim_seen)
        return true;
    if (!i->row.read) {
        i->row.read = true;
        c->dirty = true;
    }
    return false;
}

static enum fnd_reason refusal(const struct fnd_core *c, const struct fnd_instance *i)
{
    const struct contract_instance_spec *s = &i->obj.spec;

    if (strcmp(s->node, c->cfg.node) != 0 || !base_uuid_eq(&s->node_uid, &c->cfg.node_uid))
        return FND_R_NODE_MISMATCH;
    if (!base_uuid_eq(&s->renew.boot_id, &c->cfg.boot_id))
        return FND_R_BOOT_MISMATCH;
    if (!i->renew)
        return FND_R_RENEWAL_AHEAD;
    if (s->release_time)
        return FND_R_RELEASED;
    return FND_R_NONE;
}

static const char *refusal_text(enum fnd_reason r)
{
    if (r == FND_R_NODE_MISMATCH)
        return "nodeUID is not that of this node; give the agent a token bound to a pod of this node";
    if (r == FND_R_BOOT_MISMATCH)
        return "renew.bootID is not that of this kernel; the agent must run on this node and read its own "
               "boot id";
    if (r == FND_R_RENEWAL_AHEAD)
        return "renew.bootTimeMicros is ahead of this kernel's CLOCK_BOOTTIME; run the agent in the initial "
               "time namespace";
    return "";
}

static void eval(struct fnd_core *c, struct fnd_instance *i)
{
    struct contract_object *o;
    struct fnd_record *r;
    enum fnd_reason no;
    bool change = false;

    if (i->row.ask != FND_ASK_NONE)
        return;
    if (c->now < i->row.retry_at) {
        fnd_wake(&c->wake, i->row.retry_at);
        return;
    }
    if (i->row.read) {
        fnd_row_get(c, &i->row, CONTRACT_INSTANCE);
        return;
    }
    if (!i->row.present || !c->coll[FND_INSTANCES].listed || i->obj.meta.deleting)
        return;
    no = refusal(c, i);
    if (no == FND_R_NONE && i->obj.status.accepted_epoch == i->obj.spec.epoch) {
        r = fnd_record_get(c, &i->obj.meta.uid, CONTRACT_INSTANCE);
        if (r && r->accepted < i->obj.spec.epoch) {
            r->accepted = i->obj.spec.epoch;
            r->nonce = i->obj.spec.process_id;
            fnd_record_emit(c, r, 0);
            fnd_touch_all(c);
        }
        return;
    }
    /* Old gates closed, old devices gone, and only then the new epoch. */
    if (no == FND_R_NONE && (!c->coll[FND_ATTACHMENTS].listed || !c->coll[FND_HELD].listed))
        return;
    if (no == FND_R_NONE && !fnd_device_old_gone(c))
        return;
    if (no == FND_R_RELEASED)
        return; /* nothing to say: it ended by itself */
    if (no != FND_R_NONE && i->obj.status.accepted_epoch == i->obj.spec.epoch)
        return; /* accepted before; a refused renewal alone takes nothing back */
    if (no != FND_R_NONE && strcmp(i->obj.status.accepted.reason, fnd_reason_text(no)) == 0)
        return; /* said already: status is written at transitions, never per renewal */
    o = fnd_row_put(c, &i->row, FND_ASK_STATUS, CONTRACT_INSTANCE, &i->obj, sizeof i->obj);
    if (!o)
        return;
    if (no == FND_R_NONE) {
        o->u.instance.status.accepted_epoch = i->obj.spec.epoch;
        o->u.instance.status.accepted_process_id = i->obj.spec.process_id;
        fnd_cond_set(c, &o->u.instance.status.accepted, true, "Accepted", "", i->obj.meta.generation,
                     &change);
        fnd_cond_set(c, &o->u.instance.status.ready, true, "Ready", "", i->obj.meta.generation, &change);
        return;
    }
    log_instance(c, i, FND_LOG_REFUSE, no);
    fnd_cond_set(c, &o->u.instance.status.accepted, false, fnd_reason_text(no), refusal_text(no),
                 i->obj.meta.generation, &change);
    fnd_cond_set(c, &o->u.instance.status.ready, false, fnd_reason_text(no), refusal_text(no),
                 i->obj.meta.generation, &change);
}

void fnd_instance_eval(struct fnd_core *c)
{
    for (unsigned n = 0; n < c->cfg.max_instances && !c->regressed_at; n++) {
        if (!c->instances[n].row.used)
            continue;
        if (c->out->n_fx + FND_FX_ROOM > FND_FX_MAX || c->out->n_objects + 2 > FND_OBJ_MAX) {
            c->dirty = true;
            return;
        }
        eval(c, &c->instances[n]);
    }
}
