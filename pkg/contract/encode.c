/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing an object, member by member. Whatever did not change since the object was read is copied as it was
 * read (the text of a time, a member that this program does not know), so that a write of an unchanged object
 * changes nothing.
 */
#include "contract/schema_int.h"

struct writer {
    struct base_buf *out;
    bool first; /* no comma before the next member */
};

static void member(struct writer *w, struct base_str name)
{
    if (!w->first)
        (void)base_buf_addz(w->out, ",");
    w->first = false;
    contract_json_quote(w->out, name);
    (void)base_buf_addz(w->out, ":");
}

static void raw_member(struct writer *w, const struct contract_json *m)
{
    member(w, m->key);
    (void)base_buf_add(w->out, m->raw.ptr, m->raw.len);
}

static void put_time(struct base_buf *out, base_wall t)
{
    char text[BASE_RFC3339_SIZE];

    base_rfc3339(text, t);
    contract_json_quote(out, base_str_of(text));
}

static void put_prefix(struct base_buf *out, const struct base_prefix *p)
{
    char text[BASE_PREFIX_SIZE];

    base_prefix_text(text, p);
    contract_json_quote(out, base_str_of(text));
}

static void put_uuid(struct base_buf *out, const struct base_uuid *u)
{
    char text[BASE_UUID_SIZE];

    base_uuid_text(text, u);
    contract_json_quote(out, base_str_of(text));
}

static void put_prefixes(struct base_buf *out, const struct contract_field *f, const void *base)
{
    const struct base_prefix *p = CONTRACT_CAT2(base, f, struct base_prefix);
    unsigned n = *CONTRACT_CAT(base, f, uint8_t);

    for (unsigned i = 0; i < n && i < CONTRACT_DESTINATIONS_MAX; i++) {
        (void)base_buf_addz(out, i ? "," : "[");
        put_prefix(out, p + i);
    }
    (void)base_buf_addz(out, "]");
}

static void put_identities(struct base_buf *out, const struct contract_field *f, const void *base)
{
    const struct contract_identity *id = CONTRACT_CAT2(base, f, struct contract_identity);
    unsigned n = *CONTRACT_CAT(base, f, uint8_t);

    for (unsigned i = 0; i < n && i < CONTRACT_IDENTITIES_MAX; i++) {
        (void)base_buf_addz(out, i ? ",{" : "[{");
        (void)base_buf_addz(out, id[i].kind == CONTRACT_IDENTITY_URI ? "\"uri\":" : "\"user\":");
        contract_json_quote(out, base_str_of(id[i].value));
        (void)base_buf_addz(out, "}");
    }
    (void)base_buf_addz(out, "]");
}

static void put_condition(struct base_buf *out, const char *type, const struct contract_cond *c)
{
    static const char *const statuses[] = {"", "False", "True", "Unknown"};

    (void)base_buf_addf(out, "{\"type\":\"%s\",\"status\":\"%s\",\"reason\":", type, statuses[c->status & 3]);
    contract_json_quote(out, base_str_of(c->reason));
    (void)base_buf_addz(out, ",\"message\":");
    contract_json_quote(out, base_str_of(c->message));
    if (c->observed_generation)
        (void)base_buf_addf(out, ",\"observedGeneration\":%lld", (long long)c->observed_generation);
    if (c->transition) {
        (void)base_buf_addz(out, ",\"lastTransitionTime\":");
        put_time(out, c->transition);
    }
    (void)base_buf_addz(out, "}");
}

static const struct contract_cond_slot *slot_of(const struct contract_field *f, struct base_str type)
{
    for (const struct contract_cond_slot *c = f->conds; c->type; c++)
        if (base_str_eqz(type, c->type))
            return c;
    return NULL;
}

/* Conditions in the order of `raw`: other types and unchanged ones as they were, then the new ones. */
static void put_conditions(struct base_buf *out, const struct contract_field *f, const void *base,
                           const void *old, const struct contract_json *raw)
{
    const struct contract_json *e = raw && raw->type == CONTRACT_JSON_ARRAY ? raw->child : NULL;
    unsigned seen = 0, bit = 1;
    bool first = true;

    (void)base_buf_addz(out, "[");
    for (; e; e = e->next) {
        const struct contract_cond_slot *c = slot_of(f, contract_json_str(e, "type"));
        const struct contract_cond *now = c ? (const void *)((const char *)base + c->at) : NULL,
                                   *was = c ? (const void *)((const char *)old + c->at) : NULL;

        if (c)
            seen |= 1u << (c - f->conds);
        if (now && now->status == CONTRACT_COND_ABSENT)
            continue;
        (void)base_buf_addz(out, first ? "" : ",");
        first = false;
        if (!now || contract_cond_equal(now, was))
            (void)base_buf_add(out, e->raw.ptr, e->raw.len);
        else
            put_condition(out, c->type, now);
    }
    for (const struct contract_cond_slot *c = f->conds; c->type; c++, bit <<= 1) {
        const struct contract_cond *now = (const void *)((const char *)base + c->at);

        if ((seen & bit) || now->status == CONTRACT_COND_ABSENT)
            continue;
        (void)base_buf_addz(out, first ? "" : ",");
        first = false;
        put_condition(out, c->type, now);
    }
    (void)base_buf_addz(out, "]");
}

static void put_object(struct base_buf *out, const struct contract_field *f, const void *base,
                       const void *old, const struct contract_json *raw);

static void put_value(struct base_buf *out, const struct contract_field *f, const void *base, const void *old,
                      const struct contract_json *raw)
{
    char corr[BASE_CORRELATION_SIZE];

    switch (f->type) {
    case FT_STR:
        contract_json_quote(out, base_str_of(CONTRACT_CAT(base, f, char)));
        break;
    case FT_UUID:
        put_uuid(out, CONTRACT_CAT(base, f, struct base_uuid));
        break;
    case FT_CORR:
        base_correlation_text(corr, CONTRACT_CAT(base, f, struct base_correlation));
        contract_json_quote(out, base_str_of(corr));
        break;
    case FT_I64:
        (void)base_buf_addf(out, "%lld", (long long)*CONTRACT_CAT(base, f, int64_t));
        break;
    case FT_I32:
        (void)base_buf_addf(out, "%ld", (long)*CONTRACT_CAT(base, f, int32_t));
        break;
    case FT_TIME:
        put_time(out, *CONTRACT_CAT(base, f, base_wall));
        break;
    case FT_BOOL:
        (void)base_buf_addz(out, *CONTRACT_CAT(base, f, bool) ? "true" : "false");
        break;
    case FT_ENUM: {
        unsigned v = *CONTRACT_CAT(base, f, unsigned);

        contract_json_quote(out, base_str_of(v < f->n_names && f->names[v] ? f->names[v] : "?"));
        break;
    }
    case FT_PREFIX:
        put_prefix(out, CONTRACT_CAT(base, f, struct base_prefix));
        break;
    case FT_OPT_PREFIX:
        put_prefix(out, CONTRACT_CAT2(base, f, struct base_prefix));
        break;
    case FT_PREFIXES:
        put_prefixes(out, f, base);
        break;
    case FT_IDENTITIES:
        put_identities(out, f, base);
        break;
    case FT_CONDITIONS:
        put_conditions(out, f, base, old, raw);
        break;
    case FT_OBJECT:
        put_object(out, f, base, old, raw);
        break;
    }
}

void contract_print_field(struct base_buf *out, const struct contract_field *f, const void *base)
{
    put_value(out, f, base, base, NULL);
}

/* True when a list of other people's conditions is left even if all of ours are absent. */
static bool foreign_conditions(const struct contract_field *f, const struct contract_json *raw)
{
    if (f->type != FT_CONDITIONS || !raw || raw->type != CONTRACT_JSON_ARRAY)
        return false;
    for (const struct contract_json *e = raw->child; e; e = e->next)
        if (!slot_of(f, contract_json_str(e, "type")))
            return true;
    return false;
}

static void put_field(struct writer *w, const struct contract_field *f, const void *base, const void *old,
                      const struct contract_json *raw)
{
    bool present = contract_field_present(f, base) || foreign_conditions(f, raw);

    if (raw && contract_field_equal(f, base, old)) {
        raw_member(w, raw);
    } else if (present || (f->type == FT_OBJECT && f->required)) {
        member(w, base_str_of(f->name));
        put_value(w->out, f, base, old, raw);
    }
}

static bool known(const struct contract_field *table, struct base_str name)
{
    for (; table->name; table++)
        if (base_str_eqz(name, table->name))
            return true;
    return false;
}

/* `old` is the value that `raw` says; both are absent (zero, NULL) when there is no raw. */
static void put_object(struct base_buf *out, const struct contract_field *f, const void *base,
                       const void *old, const struct contract_json *raw)
{
    const void *inner = CONTRACT_CAT(base, f, char), *was = CONTRACT_CAT(old, f, char);
    struct writer w = {out, true};

    (void)base_buf_addz(out, "{");
    for (const struct contract_field *s = f->sub; s->name; s++)
        put_field(&w, s, inner, was, contract_json_get(raw, s->name));
    if (raw && raw->type == CONTRACT_JSON_OBJECT)
        for (const struct contract_json *m = raw->child; m; m = m->next)
            if (!known(f->sub, m->key))
                raw_member(&w, m);
    (void)base_buf_addz(out, "}");
}

/* ---- metadata ---- */
static bool in_table(const struct contract_meta *m, struct base_str s)
{
    unsigned n = m->n_finalizers < CONTRACT_FINALIZERS_MAX ? m->n_finalizers : CONTRACT_FINALIZERS_MAX;

    for (unsigned i = 0; i < n; i++)
        if (m->finalizers[i][0] && base_str_eqz(s, m->finalizers[i]))
            return true;
    return false;
}

/* Those of the value; of the raw ones also those that the value cannot show (beyond its table, too long for
 * it). */
static void put_finalizers(struct writer *w, const struct contract_meta *m, const struct contract_json *raw)
{
    const struct contract_json *e = raw && raw->type == CONTRACT_JSON_ARRAY ? raw->child : NULL;
    struct contract_meta done = {.n_finalizers = 0};
    bool first = true;
    size_t at = 0;

    for (; e; e = e->next, at++) {
        bool hidden = at >= CONTRACT_FINALIZERS_MAX || e->str.len >= sizeof m->finalizers[0];

        if (!hidden && !in_table(m, e->str))
            continue;
        if (first)
            member(w, BASE_STR("finalizers"));
        (void)base_buf_addz(w->out, first ? "[" : ",");
        first = false;
        (void)base_buf_add(w->out, e->raw.ptr, e->raw.len);
        if (!hidden && !in_table(&done, e->str) && done.n_finalizers < CONTRACT_FINALIZERS_MAX)
            (void)base_copy_str(done.finalizers[done.n_finalizers++], sizeof done.finalizers[0], e->str);
    }
    for (unsigned i = 0; i < m->n_finalizers && i < CONTRACT_FINALIZERS_MAX; i++) {
        if (!m->finalizers[i][0] || contract_has_finalizer(&done, m->finalizers[i]))
            continue;
        if (first)
            member(w, BASE_STR("finalizers"));
        (void)base_buf_addz(w->out, first ? "[" : ",");
        first = false;
        contract_json_quote(w->out, base_str_of(m->finalizers[i]));
    }
    if (!first)
        (void)base_buf_addz(w->out, "]");
}

static const char *agent_version(const struct contract_object *o)
{
    return o->kind == CONTRACT_INSTANCE ? o->u.instance.agent_version : "";
}

static void put_annotations(struct writer *w, const struct contract_object *o,
                            const struct contract_object *old, const struct contract_json *raw)
{
    const char *version = agent_version(o);
    bool drain = o->u.meta.drain, restamp = version[0] && strcmp(version, agent_version(old)) != 0;
    struct writer in = {w->out, true};

    if (raw && drain == old->u.meta.drain && !restamp) {
        raw_member(w, raw);
        return;
    }
    if (!raw && !drain && !restamp)
        return;
    member(w, BASE_STR("annotations"));
    (void)base_buf_addz(w->out, "{");
    if (raw && raw->type == CONTRACT_JSON_OBJECT)
        for (const struct contract_json *e = raw->child; e; e = e->next)
            if (!base_str_eqz(e->key, CONTRACT_DRAIN_ANNOTATION) &&
                !(restamp && base_str_eqz(e->key, CONTRACT_AGENT_ANNOTATION)))
                raw_member(&in, e);
    if (restamp) {
        member(&in, BASE_STR(CONTRACT_AGENT_ANNOTATION));
        contract_json_quote(w->out, base_str_of(version));
    }
    if (drain) {
        member(&in, BASE_STR(CONTRACT_DRAIN_ANNOTATION));
        (void)base_buf_addz(w->out, "\"true\"");
    }
    (void)base_buf_addz(w->out, "}");
}

static void put_meta(struct base_buf *out, const struct contract_object *o, const struct contract_object *old,
                     const struct contract_json *raw)
{
    const struct contract_meta *m = &o->u.meta;
    static const char *const own[] = {"name", "uid", "resourceVersion", "finalizers", "annotations"};
    struct writer w = {out, true};

    (void)base_buf_addz(out, "{");
    member(&w, BASE_STR("name"));
    contract_json_quote(out, base_str_of(m->name));
    if (!base_uuid_is_zero(&m->uid)) {
        member(&w, BASE_STR("uid"));
        put_uuid(out, &m->uid);
    }
    if (m->rv[0]) {
        member(&w, BASE_STR("resourceVersion"));
        contract_json_quote(out, base_str_of(m->rv));
    }
    put_finalizers(&w, m, contract_json_get(raw, "finalizers"));
    put_annotations(&w, o, old, contract_json_get(raw, "annotations"));
    for (const struct contract_json *e = raw ? raw->child : NULL; e; e = e->next) {
        bool mine = false;

        for (size_t i = 0; i < BASE_LEN(own); i++)
            mine |= base_str_eqz(e->key, own[i]);
        if (!mine)
            raw_member(&w, e);
    }
    (void)base_buf_addz(out, "}");
}

static void put_root(struct base_buf *out, const struct contract_object *o, const struct contract_object *old,
                     const struct contract_json *raw)
{
    static const char *const own[] = {"apiVersion", "kind", "metadata"};
    const struct contract_field *top = contract_schema(o->kind);
    struct writer w = {out, true};

    (void)base_buf_addz(out, "{");
    member(&w, BASE_STR("apiVersion"));
    (void)base_buf_addf(out, "\"%s/%s\"", contract_kind_group(o->kind), CONTRACT_VERSION);
    member(&w, BASE_STR("kind"));
    (void)base_buf_addf(out, "\"%s\"", contract_kind_name(o->kind));
    member(&w, BASE_STR("metadata"));
    put_meta(out, o, old, contract_json_get(raw, "metadata"));
    for (const struct contract_field *f = top; f->name; f++) {
        const struct contract_json *r = contract_json_get(raw, f->name);

        if (!r || r->type != CONTRACT_JSON_OBJECT || contract_field_equal(f, &o->u, &old->u)) {
            put_field(&w, f, &o->u, &old->u, r);
        } else { /* spec and status stay, even if only members of others are left in them */
            member(&w, base_str_of(f->name));
            put_object(out, f, &o->u, &old->u, r);
        }
    }
    for (const struct contract_json *e = raw ? raw->child : NULL; e; e = e->next) {
        bool mine = known(top, e->key);

        for (size_t i = 0; i < BASE_LEN(own); i++)
            mine |= base_str_eqz(e->key, own[i]);
        if (!mine)
            raw_member(&w, e);
    }
    (void)base_buf_addz(out, "}");
}

#define ARENA_MAX ((size_t)64 << 20)

int contract_encode(struct base_buf *out, const struct contract_object *o, struct base_str raw,
                    struct base_err *err)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new(ARENA_MAX);
    struct contract_object *old = base_calloc(1, sizeof *old), *filled = NULL;
    const struct contract_json *root = NULL;
    size_t start = out->len;
    int rc = BASE_OK;

    if (!arena || !old) {
        rc = base_err_set(err, BASE_ENOMEM, "%s: no memory", contract_kind_name(o->kind));
    } else if (!contract_schema(o->kind)) {
        rc = base_err_set(err, BASE_EINVAL, "kind %d is no kind of the contract", (int)o->kind);
    } else if (raw.len) {
        rc = contract_json_parse(&root, arena, raw, 0, err);
        if (!rc)
            rc = contract_decode_node(old, o->kind, root, err);
    }
    if (!rc && o->kind == CONTRACT_BINDING && !root)
        old->u.binding.spec.retention_seconds = -1;
    if (!rc && o->kind == CONTRACT_BINDING) {
        filled = base_calloc(1, sizeof *filled);
        if (!filled)
            rc = base_err_set(err, BASE_ENOMEM, "%s: no memory", contract_kind_name(o->kind));
        else
            *filled = *o;
    }
    if (filled)
        contract_fill_kept(filled, old);
    if (!rc) {
        out->failed = BASE_OK;
        put_root(out, filled ? filled : o, old, root);
        rc = out->failed;
        if (rc)
            (void)base_err_set(err, rc, "%s %.200s: its JSON does not fit into %zu bytes",
                               contract_kind_name(o->kind), o->u.meta.name, out->max);
    }
    if (rc && out->data) {
        out->len = start;
        out->data[start] = '\0';
    }
    base_free(old);
    base_free(filled);
    return rc;
}
