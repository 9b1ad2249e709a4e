/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

struct fnd_attachment *fnd_attachment_find(const struct fnd_core *c, const char *name)
{
    for (unsigned i = 0; i < c->cfg.max_attachments; i++)
        if (c->attachments[i].row.used && strcmp(c->attachments[i].row.name, name) == 0)
            return &c->attachments[i];
    return NULL;
}

bool fnd_attachment_node_is(const char *instance_name, const char *node)
{
    const char *dot = strchr(instance_name, '.'); /* a provider's name is a label: the first dot ends it */

    return dot && strcmp(dot + 1, node) == 0;
}

static struct fnd_attachment *get(struct fnd_core *c, const char *name)
{
    struct fnd_attachment *a = fnd_attachment_find(c, name), *unused = NULL;
    struct fnd_fx *fx;

    if (a)
        return a;
    for (unsigned i = 0; i < c->cfg.max_attachments && !unused; i++)
        if (!c->attachments[i].row.used)
            unused = &c->attachments[i];
    for (unsigned i = 0; i < c->cfg.max_attachments && !unused; i++)
        if (!c->attachments[i].row.present && c->attachments[i].row.ask == FND_ASK_NONE)
            unused = &c->attachments[i];
    if (!unused) {
        fx = fnd_fx(c, FND_FX_LOG);
        if (fx) {
            fx->log = FND_LOG_FULL;
            fx->reason = "Attachments";
            base_copy(fx->name, sizeof fx->name, name);
        }
        return NULL;
    }
    if (unused->row.used)
        fnd_record_drop(c, &unused->obj.meta.uid);
    memset(unused, 0, sizeof *unused);
    unused->row.used = true;
    base_copy(unused->row.name, sizeof unused->row.name, name);
    return unused;
}

static void log_attachment(struct fnd_core *c, const struct fnd_attachment *a, enum fnd_log log,
                           enum fnd_reason reason)
{
    struct fnd_fx *fx = fnd_fx(c, FND_FX_LOG);

    if (!fx)
        return;
    fx->log = log;
    fx->obj_kind = CONTRACT_ATTACHMENT;
    base_copy(fx->name, sizeof fx->name, a->row.name);
    base_copy(fx->gate.device, sizeof fx->gate.device, a->obj.status.device);
    fx->gate.epoch = a->obj.spec.instance_epoch;
    fx->gate.uid = a->obj.meta.uid;
    fx->reason = fnd_reason_text(reason);
}

static void apply(struct fnd_core *c, struct fnd_attachment *a, const struct contract_attachment *o)
{
    bool same =
        base_uuid_eq(&a->obj.meta.uid, &o->meta.uid) && a->obj.spec.instance_epoch == o->spec.instance_epoch;
    bool was = same && a->obj.status.accepted_instance_epoch == a->obj.spec.instance_epoch &&
               a->obj.status.ready.status == CONTRACT_COND_TRUE;

    if (!base_uuid_is_zero(&a->obj.meta.uid) && !base_uuid_eq(&a->obj.meta.uid, &o->meta.uid))
        fnd_record_drop(c, &a->obj.meta.uid);
    a->obj = *o;
    fnd_row_applied(c, &a->row, o->meta.rv, same);
    if (!was && o->status.ready.status == CONTRACT_COND_TRUE &&
        o->status.accepted_instance_epoch == o->spec.instance_epoch)
        log_attachment(c, a, FND_LOG_ATTACHMENT, FND_R_READY);
    fnd_touch_all(c);
}

void fnd_attachment_row(struct fnd_core *c, const struct fnd_in *in)
{
    const struct contract_attachment *o = &in->object->u.attachment;
    struct fnd_attachment *a;

    if (in->left) {
        a = fnd_attachment_find(c, o->meta.name);
        if (a && fnd_row_left(c, &a->row, FND_ATTACHMENTS, o->meta.rv)) {
            a->row.present = a->row.left = a->row.read = false;
            fnd_touch_all(c);
        }
        return;
    }
    if (!fnd_attachment_node_is(o->spec.instance.name, c->cfg.node))
        return;
    a = get(c, o->meta.name);
    if (!a)
        return;
    a->row.in |= FND_BIT(FND_ATTACHMENTS);
    a->row.unlisted &= (uint8_t)~FND_BIT(FND_ATTACHMENTS);
    fnd_regress_listed(c, FND_ATTACHMENTS, &a->row, o->meta.rv);
    if (fnd_row_news(&a->row, o->meta.rv) == FND_NEWS_CONTENT)
        apply(c, a, o);
}

bool fnd_attachment_answer(struct fnd_core *c, const struct fnd_in *in)
{
    for (unsigned n = 0; n < c->cfg.max_attachments; n++) {
        struct fnd_attachment *a = &c->attachments[n];
        enum fnd_ask ask = a->row.ask;

        if (!fnd_row_matches(&a->row, in))
            continue;
        if (fnd_row_answer(c, &a->row, in)) {
            if (fnd_row_take(c, &a->row, ask, in->object->u.meta.rv, in->sent))
                apply(c, a, &in->object->u.attachment);
        } else if (ask == FND_ASK_STATUS && (in->code == BASE_EDENIED || in->code == BASE_EINVAL)) {
            log_attachment(c, a, FND_LOG_FAILED, FND_R_WRITE_REFUSED);
        }
        fnd_touch_all(c);
        return true;
    }
    return false;
}

/* The instance that this attachment is for, when it is accepted in just the epoch that the attachment names. */
static bool instance_agrees(struct fnd_core *c, const struct contract_attachment *o)
{
    const struct fnd_instance *i = fnd_instance_find(c, o->spec.instance.name);
    char name[CONTRACT_NAME_SIZE];

    return i && base_uuid_eq(&i->obj.meta.uid, &o->spec.instance.uid) && !i->obj.meta.deleting &&
           i->obj.spec.epoch == o->spec.instance_epoch && fnd_instance_live(c, i) &&
           base_cat(name, sizeof name, o->spec.instance.name, ".", o->spec.vpc) &&
           strcmp(name, o->meta.name) == 0;
}

/* The record of the accepted epoch. An accept that this process did not ask for may be of an earlier life:
 * then the device has existed already, and an accepted epoch never gets a second one. */
static struct fnd_record *record(struct fnd_core *c, struct fnd_attachment *a)
{
    struct fnd_record *r = fnd_record_get(c, &a->obj.meta.uid, CONTRACT_ATTACHMENT);
    int64_t e = a->obj.status.accepted_instance_epoch;

    if (!r || r->accepted >= e)
        return r;
    r->accepted = e;
    r->made = !(base_uuid_eq(&a->tried_uid, &a->obj.meta.uid) && a->tried_epoch == e);
    fnd_record_emit(c, r, 0);
    return r;
}

static void ready(struct fnd_core *c, struct fnd_attachment *a, bool yes, enum fnd_reason why,
                  const char *message)
{
    struct contract_attachment n = a->obj;
    struct contract_object *o;
    bool change = false;

    fnd_cond_set(c, &n.status.ready, yes, fnd_reason_text(why), message, n.meta.generation, &change);
    if (!change)
        return;
    o = fnd_row_put(c, &a->row, FND_ASK_STATUS, CONTRACT_ATTACHMENT, &n, sizeof n);
    if (o && !yes && why == FND_R_DEVICE_LOST)
        log_attachment(c, a, FND_LOG_ATTACHMENT, why);
}

static void accept(struct fnd_core *c, struct fnd_attachment *a)
{
    const struct fnd_record *r = fnd_record_find(c, &a->obj.meta.uid);
    struct contract_attachment_status *s;
    struct contract_object *o;
    bool change = false;

    if (r && r->accepted > a->obj.spec.instance_epoch)
        return; /* never backwards */
    if (!fnd_device_old_gone(c))
        return;
    o = fnd_row_put(c, &a->row, FND_ASK_STATUS, CONTRACT_ATTACHMENT, &a->obj, sizeof a->obj);
    if (!o)
        return;
    s = &o->u.attachment.status;
    s->accepted_instance_epoch = a->obj.spec.instance_epoch;
    (void)base_copy(s->device, sizeof s->device, fnd_device_of(a, a->obj.spec.instance_epoch));
    s->mtu = c->cfg.mtu;
    fnd_cond_set(c, &s->accepted, true, "Accepted", "", a->obj.meta.generation, &change);
    fnd_cond_set(c, &s->ready, false, fnd_reason_text(FND_R_MAKING_DEVICE), "", a->obj.meta.generation,
                 &change);
    a->tried_uid = a->obj.meta.uid;
    a->tried_epoch = a->obj.spec.instance_epoch;
}

static void eval(struct fnd_core *c, struct fnd_attachment *a)
{
    const struct contract_attachment *o = &a->obj;
    const struct fnd_device *d;
    const char *name;
    struct fnd_record *r;

    if (!a->row.present || a->row.ask != FND_ASK_NONE || !c->coll[FND_ATTACHMENTS].listed)
        return;
    if (c->now < a->row.retry_at) {
        fnd_wake(&c->wake, a->row.retry_at);
        return;
    }
    if (a->row.read) {
        fnd_row_get(c, &a->row, CONTRACT_ATTACHMENT);
        return;
    }
    if (o->meta.deleting || !instance_agrees(c, o))
        return;
    if (o->status.accepted_instance_epoch != o->spec.instance_epoch) {
        accept(c, a);
        return;
    }
    r = record(c, a);
    if (!r)
        return;
    name = fnd_device_of(a, o->spec.instance_epoch);
    d = fnd_device_find(c, name);
    if (d && d->present) {
        if (!r->made) {
            r->made = 1;
            fnd_record_emit(c, r, 0);
            fnd_touch_all(c);
        }
        ready(c, a, true, FND_R_READY, "");
    } else if (r->made) {
        ready(c, a, false, FND_R_DEVICE_LOST,
              "the device of this epoch is gone; start the agent again to get another");
    } else {
        fnd_device_make(c, a, name);
    }
}

void fnd_attachment_eval(struct fnd_core *c)
{
    for (unsigned n = 0; n < c->cfg.max_attachments && !c->regressed_at; n++) {
        if (!c->attachments[n].row.used)
            continue;
        if (c->out->n_fx + FND_FX_ROOM > FND_FX_MAX || c->out->n_objects + 2 > FND_OBJ_MAX) {
            c->dirty = true;
            return;
        }
        eval(c, &c->attachments[n]);
    }
}
