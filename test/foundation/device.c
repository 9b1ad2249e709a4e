/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

void fnd_device_name(char dst[CONTRACT_DEVICE_SIZE], const struct base_uuid *attachment_uid,
                     int64_t instance_epoch)
{
    uint8_t sum[BASE_SHA256_SIZE], e[8];
    char hex[9];

    for (int i = 0; i < 8; i++)
        e[i] = (uint8_t)((uint64_t)instance_epoch >> (56 - 8 * i));
    if (base_sha256(sum, attachment_uid->b, sizeof attachment_uid->b, e, sizeof e))
        memcpy(sum, attachment_uid->b, 4); /* no memory for a digest: still a name, unique enough to go on */
    base_hex(hex, sum, 4);
    base_cat(dst, CONTRACT_DEVICE_SIZE, "hf", hex, NULL);
}

const char *fnd_device_of(struct fnd_attachment *a, int64_t instance_epoch)
{
    if (a->device_epoch != instance_epoch || !base_uuid_eq(&a->device_uid, &a->obj.meta.uid)) {
        fnd_device_name(a->device, &a->obj.meta.uid, instance_epoch);
        a->device_uid = a->obj.meta.uid;
        a->device_epoch = instance_epoch;
    }
    return a->device;
}

struct fnd_device *fnd_device_find(const struct fnd_core *c, const char *name)
{
    for (unsigned i = 0; i < c->n_devices && name[0]; i++)
        if (strcmp(c->devices[i].name, name) == 0)
            return &c->devices[i];
    return NULL;
}

static struct fnd_device *get(struct fnd_core *c, const char *name)
{
    struct fnd_device *d = fnd_device_find(c, name);

    for (unsigned i = 0; i < c->n_devices && !d; i++) {
        if (c->devices[i].name[0])
            continue;
        d = &c->devices[i];
        memset(d, 0, sizeof *d);
        base_copy(d->name, sizeof d->name, name);
    }
    return d;
}

static void log_device(struct fnd_core *c, const char *name, enum fnd_log log, enum fnd_reason reason)
{
    struct fnd_fx *fx = fnd_fx(c, FND_FX_LOG);

    if (!fx)
        return;
    fx->log = log;
    base_copy(fx->name, sizeof fx->name, name);
    base_copy(fx->gate.device, sizeof fx->gate.device, name);
    fx->reason = fnd_reason_text(reason);
}

void fnd_device_found(struct fnd_core *c, const char *name, bool present)
{
    struct fnd_device *d = present ? get(c, name) : fnd_device_find(c, name);

    if (!d)
        return;
    if (d->present && !present && !d->op_id)
        log_device(c, name, FND_LOG_DEVICE, FND_R_DEVICE_LOST);
    d->present = present;
    if (!present && !d->op_id)
        d->name[0] = '\0';
    fnd_touch_all(c);
}

/* A device is wanted by the attachment that was accepted for it, while the instance's row still is of that
 * epoch. */
bool fnd_device_wanted(struct fnd_core *c, const char *name)
{
    for (unsigned i = 0; i < c->cfg.max_attachments && !c->regressed_at; i++) {
        struct fnd_attachment *a = &c->attachments[i];
        const struct contract_attachment *o = &a->obj;
        const struct fnd_instance *in;

        if (!a->row.used || !a->row.present || o->meta.deleting || !o->status.accepted_instance_epoch)
            continue;
        if (strcmp(fnd_device_of(a, o->status.accepted_instance_epoch), name) != 0)
            continue;
        in = fnd_instance_find(c, o->spec.instance.name);
        return in && in->row.present && !in->obj.meta.deleting &&
               base_uuid_eq(&in->obj.meta.uid, &o->spec.instance.uid) &&
               in->obj.spec.epoch == o->status.accepted_instance_epoch;
    }
    return false;
}

static bool gates_on(const struct fnd_core *c, const char *name)
{
    for (unsigned i = 0; i < c->cfg.max_claims; i++) {
        const struct fnd_claim *cl = &c->claims[i];

        if (cl->row.used && (cl->kern.active || cl->kern.op != FND_OP_NONE) &&
            strcmp(cl->kern.device, name) == 0)
            return true;
    }
    return false;
}

bool fnd_device_old_gone(struct fnd_core *c)
{
    for (unsigned i = 0; i < c->n_devices; i++)
        if (c->devices[i].name[0] && !fnd_device_wanted(c, c->devices[i].name))
            return false;
    for (unsigned i = 0; i < c->cfg.max_claims; i++) {
        const struct fnd_claim *cl = &c->claims[i];

        if (cl->row.used && (cl->kern.active || cl->kern.op != FND_OP_NONE) &&
            !fnd_device_wanted(c, cl->kern.device))
            return false;
    }
    return true;
}

void fnd_device_make(struct fnd_core *c, const struct fnd_attachment *a, const char *name)
{
    struct fnd_device *d = get(c, name);
    struct fnd_fx *fx;

    if (!d || d->op_id)
        return;
    if (c->now < d->retry_at) {
        fnd_wake(&c->wake, d->retry_at);
        return;
    }
    fx = fnd_fx(c, FND_FX_DEVICE_MAKE);
    if (!fx)
        return;
    fx->op = d->op_id = fnd_id(c);
    d->op_make = true;
    d->made_for = a->obj.meta.uid;
    d->made_epoch = a->obj.spec.instance_epoch;
    base_copy(fx->gate.device, sizeof fx->gate.device, name);
    fx->mtu = c->cfg.mtu;
}

bool fnd_device_done(struct fnd_core *c, uint64_t op, bool ok)
{
    for (unsigned i = 0; i < c->n_devices; i++) {
        struct fnd_device *d = &c->devices[i];

        if (!d->name[0] || !d->op_id || d->op_id != op)
            continue;
        d->op_id = 0;
        fnd_touch_all(c);
        if (!ok) {
            d->retry_at = base_time_add(c->now, BASE_SEC);
            log_device(c, d->name, FND_LOG_FAILED, FND_R_KERNEL);
            return true;
        }
        log_device(c, d->name, FND_LOG_DEVICE, d->op_make ? FND_R_MADE : FND_R_DELETED);
        d->present = d->op_make;
        if (!d->op_make)
            d->name[0] = '\0';
        return true;
    }
    return false;
}

/* Deletes what nobody wants: devices of older epochs, of attachments that are gone, and strangers called hf*. */
void fnd_device_eval(struct fnd_core *c)
{
    if (!c->regressed_at &&
        (!c->coll[FND_INSTANCES].listed || !c->coll[FND_ATTACHMENTS].listed || !c->coll[FND_HELD].listed))
        return;
    for (unsigned i = 0; i < c->n_devices; i++) {
        struct fnd_device *d = &c->devices[i];
        struct fnd_fx *fx;

        if (!d->name[0] || d->op_id || fnd_device_wanted(c, d->name))
            continue;
        if (!d->present && !d->retry_at) { /* never made */
            d->name[0] = '\0';
            continue;
        }
        if (gates_on(c, d->name))
            continue; /* shut first: the claims' turn */
        if (c->now < d->retry_at) {
            fnd_wake(&c->wake, d->retry_at);
            continue;
        }
        if (c->out->n_fx + FND_FX_ROOM > FND_FX_MAX) {
            c->dirty = true;
            return;
        }
        fx = fnd_fx(c, FND_FX_DEVICE_DELETE);
        if (!fx)
            return;
        fx->op = d->op_id = fnd_id(c);
        d->op_make = false;
        base_copy(fx->gate.device, sizeof fx->gate.device, d->name);
    }
}
