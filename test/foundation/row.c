/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

enum fnd_news fnd_row_news(const struct fnd_row *r, const char *rv)
{
    int cmp;

    if (!r->rv[0])
        return FND_NEWS_CONTENT;
    if (base_rv_cmp(rv, r->rv, &cmp))
        return FND_NEWS_OLD; /* no number: never newer than one */
    if (cmp > 0)
        return FND_NEWS_CONTENT;
    if (cmp < 0)
        return FND_NEWS_OLD;
    /* The version of a departure from one selector is the version of the content that another selector shows. */
    if (r->present && strcmp(r->content_rv, rv) == 0)
        return FND_NEWS_SAME;
    return FND_NEWS_CONTENT;
}

void fnd_row_applied(struct fnd_core *c, struct fnd_row *r, const char *rv, bool key_same)
{
    base_copy(r->rv, sizeof r->rv, rv);
    r->rv_at = c->now;
    base_copy(r->content_rv, sizeof r->content_rv, rv);
    r->present = true;
    r->left = false;
    /* The version has moved: whatever was written on an older one has landed before, or never will. */
    r->read = false;
    r->applied++;
    r->seen_id = c->next_id;
    r->failures = 0;
    r->retry_at = 0;
    if (!key_same)
        r->proof = 0;
}

bool fnd_row_left(struct fnd_core *c, struct fnd_row *r, enum fnd_coll coll, const char *rv)
{
    int cmp = 1;

    r->in &= (uint8_t)~FND_BIT(coll);
    r->unlisted &= (uint8_t)~FND_BIT(coll);
    if (rv[0] && r->rv[0] && base_rv_cmp(rv, r->rv, &cmp))
        cmp = 1;
    if (rv[0] && cmp <= 0)
        return false; /* something as new as that is known already */
    if (rv[0]) {
        base_copy(r->rv, sizeof r->rv, rv);
        r->rv_at = c->now;
    }
    r->applied++;
    r->left = true;
    r->read = true;
    r->retry_at = 0;
    return true;
}

void fnd_row_get(struct fnd_core *c, struct fnd_row *r, enum contract_kind kind)
{
    struct fnd_fx *fx = fnd_fx(c, FND_FX_GET);

    if (!fx)
        return;
    fx->id = fnd_id(c);
    fx->obj_kind = kind;
    base_copy(fx->name, sizeof fx->name, r->name);
    r->ask = FND_ASK_GET;
    r->ask_id = fx->id;
    r->ask_applied = r->applied;
}

struct contract_object *fnd_row_put(struct fnd_core *c, struct fnd_row *r, enum fnd_ask ask,
                                    enum contract_kind kind, const void *obj, size_t size)
{
    struct contract_object *o;
    struct fnd_fx *fx;

    if (c->out->n_objects >= FND_OBJ_MAX || size > sizeof o->u)
        return NULL;
    fx = fnd_fx(c, ask == FND_ASK_STATUS ? FND_FX_STATUS : FND_FX_FINALIZERS);
    if (!fx)
        return NULL;
    fx->id = fnd_id(c);
    fx->obj_kind = kind;
    base_copy(fx->name, sizeof fx->name, r->name);
    fx->object = c->out->n_objects++;
    o = &c->out->objects[fx->object];
    memset(o, 0, sizeof *o);
    o->kind = kind;
    memcpy(&o->u, obj, size);
    r->ask = ask;
    r->ask_id = fx->id;
    r->ask_applied = r->applied;
    return o;
}

bool fnd_row_matches(const struct fnd_row *r, const struct fnd_in *in)
{
    return r->used && r->ask != FND_ASK_NONE && r->ask_id == in->id;
}

static void later(struct fnd_core *c, struct fnd_row *r, base_time first, base_time most)
{
    base_time t = first;

    for (unsigned i = 0; i < r->failures && t < most; i++)
        t *= 2;
    r->failures++;
    r->retry_at = base_time_add(c->now, fnd_jitter(c, base_time_min(t, most)));
}

bool fnd_row_answer(struct fnd_core *c, struct fnd_row *r, const struct fnd_in *in)
{
    enum fnd_ask ask = r->ask;
    uint64_t id = r->ask_id;

    r->ask = FND_ASK_NONE;
    r->ask_id = 0;
    if (in->code == BASE_OK) {
        r->failures = 0;
        r->retry_at = 0;
        if (ask == FND_ASK_GET)
            r->fresh_id = id;
        return in->object != NULL;
    }
    if (ask == FND_ASK_GET) {
        if (in->code != BASE_ENOTFOUND) {
            later(c, r, 200 * BASE_MS, 5 * BASE_SEC);
            return false;
        }
        if (r->applied != r->ask_applied)
            return false; /* an event overtook it: `read` still says what to do */
        r->fresh_id = id;
        r->gone_at = c->now;
        r->present = false;
        r->left = false;
        r->read = false;
        r->failures = 0;
        r->proof = 0;
        return false;
    }
    switch (in->code) {
    case BASE_ECONFLICT:
    case BASE_ENOTFOUND:
        /* The watch may have brought the newer content already. */
        if (r->applied == r->ask_applied)
            r->read = true;
        break;
    case BASE_EDENIED:
    case BASE_EINVAL:
        later(c, r, 2 * BASE_SEC, 30 * BASE_SEC);
        break;
    case BASE_EAGAIN:
    case BASE_EFULL:
    case BASE_ENOMEM:
        later(c, r, 200 * BASE_MS, 5 * BASE_SEC);
        break;
    default: /* it may have landed: reading back decides */
        r->read = true;
        later(c, r, 50 * BASE_MS, 5 * BASE_SEC);
        break;
    }
    return false;
}

bool fnd_row_take(struct fnd_core *c, struct fnd_row *r, enum fnd_ask ask, const char *rv, base_time sent)
{
    switch (fnd_row_news(r, rv)) {
    case FND_NEWS_CONTENT:
        return true;
    case FND_NEWS_SAME:
        r->read = false;
        return false;
    case FND_NEWS_OLD:
        if (ask == FND_ASK_GET)
            r->retry_at = base_time_add(c->now, 50 * BASE_MS);
        fnd_regress_answer(c, r, rv, sent);
        return false;
    }
    return false;
}

void fnd_row_proof(struct fnd_row *r, base_time t0)
{
    if (t0 > r->proof)
        r->proof = t0;
}
