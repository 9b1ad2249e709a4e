/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

/* The longest that one reading of validUntil may be good for: 5 minutes and the bound on wall clock skew. */
#define VALID_MAX (302 * BASE_SEC)

struct fnd_service *fnd_service_find(const struct fnd_core *c, const char *name)
{
    for (unsigned i = 0; i < c->cfg.max_services; i++)
        if (c->services[i].row.used && strcmp(c->services[i].row.name, name) == 0)
            return &c->services[i];
    return NULL;
}

static struct fnd_service *get(struct fnd_core *c, const char *name)
{
    struct fnd_service *s = fnd_service_find(c, name), *unused = NULL;
    struct fnd_fx *fx;

    for (unsigned i = 0; i < c->cfg.max_services && !s; i++)
        if (!c->services[i].row.used || (!c->services[i].row.present && !unused))
            unused = &c->services[i];
    if (s)
        return s;
    if (!unused) {
        fx = fnd_fx(c, FND_FX_LOG);
        if (fx) {
            fx->log = FND_LOG_FULL;
            fx->reason = "Services";
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

/* Once per value: a second reading of the same value must not stretch it, whatever the wall clock does
 * meanwhile. */
static void convert(struct fnd_core *c, struct fnd_service *s)
{
    struct fnd_record *r = fnd_record_get(c, &s->obj.meta.uid, CONTRACT_SERVICE);
    base_time left;

    if (!r) { /* nowhere to keep it: it is worth nothing */
        s->deadline = 0;
        return;
    }
    if (r->valid_until == s->obj.valid_until && r->deadline) {
        s->deadline = r->deadline;
        return;
    }
    left = (base_time)(s->obj.valid_until - c->wall);
    left = left > VALID_MAX / BASE_US ? VALID_MAX : left < 0 ? 0 : left * BASE_US;
    s->deadline = base_time_add(c->now, left);
    r->valid_until = s->obj.valid_until;
    r->deadline = s->deadline;
    fnd_record_emit(c, r, 0);
}

void fnd_service_row(struct fnd_core *c, const struct fnd_in *in)
{
    const struct contract_service *o = &in->object->u.service;
    struct fnd_service *s = in->left ? fnd_service_find(c, o->meta.name) : get(c, o->meta.name);
    bool same;

    if (!s)
        return;
    /* The authority moves every service on once a minute: only the claims that rest on this one look up. */
    for (unsigned i = 0; i < c->cfg.max_claims; i++)
        if (c->claims[i].row.used && strcmp(c->claims[i].obj.spec.service.name, s->row.name) == 0)
            fnd_claim_touch(c, i);
    if (in->left) {
        if (fnd_row_left(c, &s->row, FND_SERVICES, o->meta.rv)) {
            s->row.present = s->row.left = s->row.read = false;
            s->row.proof = 0;
        }
        return;
    }
    s->row.in |= FND_BIT(FND_SERVICES);
    s->row.unlisted &= (uint8_t)~FND_BIT(FND_SERVICES);
    fnd_regress_listed(c, FND_SERVICES, &s->row, o->meta.rv);
    if (fnd_row_news(&s->row, o->meta.rv) != FND_NEWS_CONTENT)
        return;
    same = base_uuid_eq(&s->obj.meta.uid, &o->meta.uid);
    s->obj = *o;
    fnd_row_applied(c, &s->row, o->meta.rv, same);
    convert(c, s);
}

void fnd_service_proved(struct fnd_core *c, base_time t0)
{
    for (unsigned i = 0; i < c->cfg.max_services; i++) {
        struct fnd_row *r = &c->services[i].row;

        if (r->used && r->present && (r->in & FND_BIT(FND_SERVICES)))
            fnd_row_proof(r, t0);
    }
    fnd_claim_proved(c, FND_SERVICES, t0);
}
