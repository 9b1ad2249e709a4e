/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/schema_int.h"

static bool prefix_is_zero(const struct base_prefix *p)
{
    static const struct base_ip6 none;

    return p->len == 0 && base_ip6_eq(&p->addr, &none);
}

bool contract_field_present(const struct contract_field *f, const void *base)
{
    switch (f->type) {
    case FT_STR:
        return CONTRACT_CAT(base, f, char)[0] != '\0';
    case FT_UUID:
        return !base_uuid_is_zero(CONTRACT_CAT(base, f, struct base_uuid));
    case FT_CORR:
        return !base_correlation_is_zero(CONTRACT_CAT(base, f, struct base_correlation));
    case FT_I64:
        return f->always || *CONTRACT_CAT(base, f, int64_t) != f->absent;
    case FT_I32:
        return f->always || *CONTRACT_CAT(base, f, int32_t) != f->absent;
    case FT_TIME:
        return *CONTRACT_CAT(base, f, base_wall) != 0;
    case FT_BOOL:
    case FT_OPT_PREFIX:
        return *CONTRACT_CAT(base, f, bool);
    case FT_ENUM:
        return *CONTRACT_CAT(base, f, unsigned) != 0;
    case FT_PREFIX:
        return !prefix_is_zero(CONTRACT_CAT(base, f, struct base_prefix));
    case FT_PREFIXES:
    case FT_IDENTITIES:
        return *CONTRACT_CAT(base, f, uint8_t) != 0;
    case FT_CONDITIONS:
        for (const struct contract_cond_slot *c = f->conds; c->type; c++) {
            const struct contract_cond *cond = (const void *)((const char *)base + c->at);

            if (cond->status != CONTRACT_COND_ABSENT)
                return true;
        }
        return false;
    case FT_OBJECT:
        for (const struct contract_field *s = f->sub; s->name; s++)
            if (!s->always && contract_field_present(s, CONTRACT_CAT(base, f, char)))
                return true;
        return false;
    }
    return false;
}

bool contract_cond_equal(const struct contract_cond *a, const struct contract_cond *b)
{
    if (a->status != b->status)
        return false;
    return a->status == CONTRACT_COND_ABSENT ||
           (strcmp(a->reason, b->reason) == 0 && strcmp(a->message, b->message) == 0 &&
            a->observed_generation == b->observed_generation && a->transition == b->transition);
}

static bool prefixes_equal(const struct contract_field *f, const void *a, const void *b)
{
    const struct base_prefix *pa = CONTRACT_CAT2(a, f, struct base_prefix),
                             *pb = CONTRACT_CAT2(b, f, struct base_prefix);
    uint8_t n = *CONTRACT_CAT(a, f, uint8_t);

    if (n != *CONTRACT_CAT(b, f, uint8_t))
        return false;
    for (unsigned i = 0; i < n && i < CONTRACT_DESTINATIONS_MAX; i++)
        if (!base_prefix_eq(pa + i, pb + i))
            return false;
    return true;
}

static bool identities_equal(const struct contract_field *f, const void *a, const void *b)
{
    const struct contract_identity *ia = CONTRACT_CAT2(a, f, struct contract_identity),
                                   *ib = CONTRACT_CAT2(b, f, struct contract_identity);
    uint8_t n = *CONTRACT_CAT(a, f, uint8_t);

    if (n != *CONTRACT_CAT(b, f, uint8_t))
        return false;
    for (unsigned i = 0; i < n && i < CONTRACT_IDENTITIES_MAX; i++)
        if (ia[i].kind != ib[i].kind || strcmp(ia[i].value, ib[i].value) != 0)
            return false;
    return true;
}

bool contract_field_equal(const struct contract_field *f, const void *a, const void *b)
{
    switch (f->type) {
    case FT_STR:
        return strcmp(CONTRACT_CAT(a, f, char), CONTRACT_CAT(b, f, char)) == 0;
    case FT_UUID:
        return base_uuid_eq(CONTRACT_CAT(a, f, struct base_uuid), CONTRACT_CAT(b, f, struct base_uuid));
    case FT_CORR:
        return memcmp(CONTRACT_CAT(a, f, char), CONTRACT_CAT(b, f, char), sizeof(struct base_correlation)) ==
               0;
    case FT_I64:
    case FT_TIME:
        return *CONTRACT_CAT(a, f, int64_t) == *CONTRACT_CAT(b, f, int64_t);
    case FT_I32:
        return *CONTRACT_CAT(a, f, int32_t) == *CONTRACT_CAT(b, f, int32_t);
    case FT_BOOL:
        return *CONTRACT_CAT(a, f, bool) == *CONTRACT_CAT(b, f, bool);
    case FT_ENUM:
        return *CONTRACT_CAT(a, f, unsigned) == *CONTRACT_CAT(b, f, unsigned);
    case FT_PREFIX:
        return base_prefix_eq(CONTRACT_CAT(a, f, struct base_prefix), CONTRACT_CAT(b, f, struct base_prefix));
    case FT_OPT_PREFIX:
        return *CONTRACT_CAT(a, f, bool) == *CONTRACT_CAT(b, f, bool) &&
               (!*CONTRACT_CAT(a, f, bool) || base_prefix_eq(CONTRACT_CAT2(a, f, struct base_prefix),
                                                             CONTRACT_CAT2(b, f, struct base_prefix)));
    case FT_PREFIXES:
        return prefixes_equal(f, a, b);
    case FT_IDENTITIES:
        return identities_equal(f, a, b);
    case FT_CONDITIONS:
        for (const struct contract_cond_slot *c = f->conds; c->type; c++)
            if (!contract_cond_equal((const void *)((const char *)a + c->at),
                                     (const void *)((const char *)b + c->at)))
                return false;
        return true;
    case FT_OBJECT:
        for (const struct contract_field *s = f->sub; s->name; s++)
            if (!contract_field_equal(s, CONTRACT_CAT(a, f, char), CONTRACT_CAT(b, f, char)))
                return false;
        return true;
    }
    return false;
}

bool contract_spec_equal(const struct contract_object *a, const struct contract_object *b)
{
    return a->kind == b->kind && contract_schema(a->kind) &&
           contract_field_equal(contract_schema(a->kind), &a->u, &b->u);
}

bool contract_status_equal(const struct contract_object *a, const struct contract_object *b)
{
    const struct contract_field *status = contract_schema_status(a->kind);

    return a->kind == b->kind && (!status || contract_field_equal(status, &a->u, &b->u));
}

size_t contract_object_size(enum contract_kind kind)
{
    return offsetof(struct contract_object, u) + contract_kind_size(kind);
}

void contract_object_copy(struct contract_object *dst, const struct contract_object *src)
{
    memcpy(dst, src, contract_object_size(src->kind));
}

void contract_fill_kept(struct contract_object *o, const struct contract_object *old)
{
    struct contract_binding_status *s = &o->u.binding.status;
    const struct contract_binding_status *was = &old->u.binding.status;

    if (o->kind != CONTRACT_BINDING)
        return;
    if (s->keep_last)
        s->last = was->last;
    if (s->keep_ready)
        s->ready = was->ready;
    if (s->keep_assigned)
        s->prefix_assigned = was->prefix_assigned;
    s->keep_last = s->keep_ready = s->keep_assigned = false;
}

void contract_copy_status(struct contract_object *dst, const struct contract_object *src)
{
    const struct contract_field *status = contract_schema_status(dst->kind);
    size_t whole = contract_kind_size(dst->kind);

    if (!status)
        return;
    /* status is the last member of every kind */
    if (src)
        memcpy((char *)&dst->u + status->at, (const char *)&src->u + status->at, whole - status->at);
    else
        memset((char *)&dst->u + status->at, 0, whole - status->at);
}
