/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/schema_int.h"

#define PATH_SIZE 160
#define SHOWN 48 /* bytes of a value in an error text */

/* The value as it may be shown: cut, without control characters. */
static const char *shown(char dst[SHOWN + 4], const struct contract_json *v)
{
    size_t n = v->raw.len < SHOWN ? v->raw.len : SHOWN;

    for (size_t i = 0; i < n; i++)
        dst[i] = v->raw.ptr[i] >= 0x20 && v->raw.ptr[i] < 0x7f ? v->raw.ptr[i] : '?';
    memcpy(dst + n, v->raw.len > SHOWN ? "..." : "", v->raw.len > SHOWN ? 4 : 1);
    return dst;
}

static int refuse(struct base_err *err, const char *path, const struct contract_json *v, const char *expected)
{
    char text[SHOWN + 4];

    return base_err_set(err, BASE_EINVAL, "%s: %s is not accepted; %s is expected", path, shown(text, v),
                        expected);
}

static bool is_null(const struct contract_json *v)
{
    return !v || v->type == CONTRACT_JSON_NULL;
}

static int text(char *dst, size_t size, const struct contract_json *v, const char *path, struct base_err *err)
{
    char want[64];

    if (v->type == CONTRACT_JSON_STRING && base_copy_str(dst, size, v->str) == BASE_OK)
        return BASE_OK;
    (void)base_fmt(want, sizeof want, "a string of at most %zu bytes without NUL", size - 1);
    return refuse(err, path, v, want);
}

static int integer(int64_t *ret, int64_t lo, int64_t hi, const struct contract_json *v, const char *path,
                   struct base_err *err)
{
    int64_t n;

    if (contract_json_int(v, &n) || n < lo || n > hi)
        return refuse(err, path, v, hi == INT64_MAX ? "a 64-bit integer" : "a 32-bit integer");
    *ret = n;
    return BASE_OK;
}

static int uuid(struct base_uuid *ret, const struct contract_json *v, const char *path, struct base_err *err)
{
    struct base_uuid u;

    if (v->type != CONTRACT_JSON_STRING || base_uuid_parse(&u, v->str) || base_uuid_is_zero(&u))
        return refuse(err, path, v, "a lower-case UUID other than all zeros");
    *ret = u;
    return BASE_OK;
}

static int wall(base_wall *ret, const struct contract_json *v, const char *path, struct base_err *err)
{
    base_wall t;

    if (v->type != CONTRACT_JSON_STRING || base_rfc3339_parse(v->str, &t))
        return refuse(err, path, v, "an RFC 3339 time of the years 1970 to 9999");
    *ret = t ? t : 1; /* 0 means absent: a release at the start of 1970 is still a release */
    return BASE_OK;
}

static int prefix(struct base_prefix *ret, const struct contract_json *v, const char *path,
                  struct base_err *err)
{
    struct base_prefix p;

    if (v->type != CONTRACT_JSON_STRING || base_prefix_parse(&p, v->str))
        return refuse(err, path, v, "a canonical IPv6 prefix without host bits");
    *ret = p;
    return BASE_OK;
}

static int correlation(struct base_correlation *ret, const struct contract_json *v, const char *path,
                       struct base_err *err)
{
    if (v->type != CONTRACT_JSON_STRING || base_unhex(ret->b, 16, v->str))
        return refuse(err, path, v, "32 hex digits");
    return BASE_OK;
}

static int one_of(unsigned *ret, const struct contract_field *f, const struct contract_json *v,
                  const char *path, struct base_err *err)
{
    char want[64] = "one of";
    size_t n;

    for (unsigned i = 0; i < f->n_names; i++) {
        if (!f->names[i])
            continue;
        if (v->type == CONTRACT_JSON_STRING && base_str_eqz(v->str, f->names[i])) {
            *ret = i;
            return BASE_OK;
        }
        n = strlen(want);
        (void)base_fmt(want + n, sizeof want - n, " %s", f->names[i]);
    }
    return refuse(err, path, v, want);
}

static int list(const struct contract_json *v, size_t max, size_t *ret_n, const char *path,
                struct base_err *err)
{
    char want[48];
    size_t n = 0;

    if (v->type == CONTRACT_JSON_ARRAY) {
        for (const struct contract_json *e = v->child; e; e = e->next)
            n++;
        *ret_n = n;
        if (n <= max)
            return BASE_OK;
    }
    (void)base_fmt(want, sizeof want, "a list of at most %zu", max);
    return refuse(err, path, v, want);
}

static int prefixes(const struct contract_field *f, void *base, const struct contract_json *v,
                    const char *path, struct base_err *err)
{
    struct base_prefix *p = CONTRACT_AT2(base, f, struct base_prefix);
    size_t n = 0;
    int rc = list(v, CONTRACT_DESTINATIONS_MAX, &n, path, err);

    for (const struct contract_json *e = v->child; !rc && e; e = e->next)
        rc = prefix(p++, e, path, err);
    *CONTRACT_AT(base, f, uint8_t) = (uint8_t)n;
    return rc;
}

static int identities(const struct contract_field *f, void *base, const struct contract_json *v,
                      const char *path, struct base_err *err)
{
    struct contract_identity *id = CONTRACT_AT2(base, f, struct contract_identity);
    size_t n = 0;
    int rc = list(v, CONTRACT_IDENTITIES_MAX, &n, path, err);

    for (const struct contract_json *e = v->child; !rc && e; e = e->next, id++) {
        const struct contract_json *uri = contract_json_get(e, "uri"), *user = contract_json_get(e, "user");

        if (is_null(uri) == is_null(user))
            return refuse(err, path, e, "an identity with exactly one of uri and user");
        id->kind = is_null(uri) ? CONTRACT_IDENTITY_USER : CONTRACT_IDENTITY_URI;
        rc = text(id->value, sizeof id->value, is_null(uri) ? user : uri, path, err);
    }
    *CONTRACT_AT(base, f, uint8_t) = (uint8_t)n;
    return rc;
}

/* A message is for people: what does not fit is cut at a character, the store keeps the whole text. */
static void cut_message(char dst[], size_t size, struct base_str s)
{
    size_t n = s.len < size - 1 ? s.len : size - 1;

    while (n < s.len && n > 0 && ((unsigned char)s.ptr[n] & 0xc0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++)
        dst[i] = s.ptr[i] ? s.ptr[i] : ' ';
    dst[n] = '\0';
}

static int condition(struct contract_cond *c, const struct contract_json *v, const char *path,
                     struct base_err *err)
{
    static const char *const statuses[] = {NULL, "False", "True", "Unknown"};
    static const struct contract_field status = {
        .name = "status", .type = FT_ENUM, .names = statuses, .n_names = BASE_LEN(statuses)};
    const struct contract_json *m = contract_json_get(v, "status");
    unsigned s = 0;
    int rc;

    if (!m)
        return refuse(err, path, v, "a condition with a status");
    rc = one_of(&s, &status, m, path, err);
    c->status = (enum contract_cond_status)s;
    m = contract_json_get(v, "reason");
    if (!rc && !is_null(m))
        rc = text(c->reason, sizeof c->reason, m, path, err);
    cut_message(c->message, sizeof c->message, contract_json_str(v, "message"));
    m = contract_json_get(v, "observedGeneration");
    if (!rc && !is_null(m))
        rc = integer(&c->observed_generation, INT64_MIN, INT64_MAX, m, path, err);
    m = contract_json_get(v, "lastTransitionTime");
    if (!rc && !is_null(m))
        rc = wall(&c->transition, m, path, err);
    return rc;
}

static int conditions(const struct contract_field *f, void *base, const struct contract_json *v,
                      const char *path, struct base_err *err)
{
    size_t n;
    int rc = list(v, 64, &n, path, err);

    for (const struct contract_json *e = v->child; !rc && e; e = e->next) {
        struct base_str type = contract_json_str(e, "type");

        for (const struct contract_cond_slot *c = f->conds; !rc && c->type; c++)
            if (base_str_eqz(type, c->type))
                rc = condition((void *)((char *)base + c->at), e, path, err);
    }
    return rc;
}

static int object(const struct contract_field *f, void *base, const struct contract_json *v, const char *path,
                  struct base_err *err)
{
    void *inner = CONTRACT_AT(base, f, char);
    int rc;

    if (v->type != CONTRACT_JSON_OBJECT)
        return refuse(err, path, v, "an object");
    for (const struct contract_field *s = f->sub; s->name; s++) {
        const struct contract_json *m = contract_json_get(v, s->name);
        char at[PATH_SIZE];

        (void)base_fmt(at, sizeof at, "%s.%s", path, s->name);
        if (is_null(m)) {
            if (s->required)
                return base_err_set(
                    err, BASE_EINVAL,
                    "%s: is missing; set it, or update the CRD if the server does not store it", at);
            continue;
        }
        rc = contract_decode_field(s, inner, m, at, err);
        if (rc)
            return rc;
    }
    return BASE_OK;
}

int contract_decode_field(const struct contract_field *f, void *base, const struct contract_json *v,
                          const char *path, struct base_err *err)
{
    int64_t n = 0;
    int rc;

    switch (f->type) {
    case FT_STR:
        return text(CONTRACT_AT(base, f, char), f->size, v, path, err);
    case FT_UUID:
        return uuid(CONTRACT_AT(base, f, struct base_uuid), v, path, err);
    case FT_CORR:
        return correlation(CONTRACT_AT(base, f, struct base_correlation), v, path, err);
    case FT_I64:
        return integer(CONTRACT_AT(base, f, int64_t), INT64_MIN, INT64_MAX, v, path, err);
    case FT_I32:
        rc = integer(&n, INT32_MIN, INT32_MAX, v, path, err);
        if (!rc)
            *CONTRACT_AT(base, f, int32_t) = (int32_t)n;
        return rc;
    case FT_TIME:
        return wall(CONTRACT_AT(base, f, base_wall), v, path, err);
    case FT_BOOL:
        if (v->type != CONTRACT_JSON_BOOL)
            return refuse(err, path, v, "true or false");
        *CONTRACT_AT(base, f, bool) = v->boolean;
        return BASE_OK;
    case FT_ENUM:
        return one_of(CONTRACT_AT(base, f, unsigned), f, v, path, err);
    case FT_PREFIX:
        return prefix(CONTRACT_AT(base, f, struct base_prefix), v, path, err);
    case FT_OPT_PREFIX:
        *CONTRACT_AT(base, f, bool) = true;
        return prefix(CONTRACT_AT2(base, f, struct base_prefix), v, path, err);
    case FT_PREFIXES:
        return prefixes(f, base, v, path, err);
    case FT_IDENTITIES:
        return identities(f, base, v, path, err);
    case FT_CONDITIONS:
        return conditions(f, base, v, path, err);
    case FT_OBJECT:
        return object(f, base, v, path, err);
    }
    return BASE_EINVAL;
}

static int finalizers(struct contract_meta *m, const struct contract_json *v, struct base_err *err)
{
    size_t n = 0;
    int rc = list(v, 255, &n, "metadata.finalizers", err);

    if (rc)
        return rc;
    m->n_finalizers = (uint8_t)n;
    n = 0;
    for (const struct contract_json *e = v->child; e && n < CONTRACT_FINALIZERS_MAX; e = e->next, n++) {
        if (e->type != CONTRACT_JSON_STRING)
            return refuse(err, "metadata.finalizers", e, "a string");
        /* one that is too long for the table is shown as "" and kept by the store */
        (void)base_copy_str(m->finalizers[n], sizeof m->finalizers[n], e->str);
    }
    return BASE_OK;
}

int contract_decode_meta(struct contract_meta *m, const struct contract_json *meta, struct base_err *err)
{
    const struct contract_json *v;
    int rc = BASE_OK;

    if (!meta || meta->type != CONTRACT_JSON_OBJECT)
        return base_err_set(err, BASE_EINVAL, "metadata: is missing or no object");
    v = contract_json_get(meta, "name");
    if (!is_null(v))
        rc = text(m->name, sizeof m->name, v, "metadata.name", err);
    v = contract_json_get(meta, "uid");
    if (!rc && !is_null(v))
        rc = uuid(&m->uid, v, "metadata.uid", err);
    v = contract_json_get(meta, "resourceVersion");
    if (!rc && !is_null(v))
        rc = text(m->rv, sizeof m->rv, v, "metadata.resourceVersion", err);
    v = contract_json_get(meta, "generation");
    if (!rc && !is_null(v))
        rc = integer(&m->generation, INT64_MIN, INT64_MAX, v, "metadata.generation", err);
    v = contract_json_get(meta, "creationTimestamp");
    if (!rc && !is_null(v))
        rc = wall(&m->created, v, "metadata.creationTimestamp", err);
    v = contract_json_get(meta, "deletionTimestamp");
    if (!rc && !is_null(v))
        rc = wall(&m->deleting, v, "metadata.deletionTimestamp", err);
    v = contract_json_get(meta, "finalizers");
    if (!rc && !is_null(v))
        rc = finalizers(m, v, err);
    m->drain = base_str_eqz(
        contract_json_str(contract_json_get(meta, "annotations"), CONTRACT_DRAIN_ANNOTATION), "true");
    return rc;
}

/* apiVersion and kind: may be absent in an item of a list, never of somebody else. */
static int type_meta(enum contract_kind kind, const struct contract_json *root, struct base_err *err)
{
    const struct contract_json *k = contract_json_get(root, "kind"),
                               *v = contract_json_get(root, "apiVersion");
    char want[96];

    if (k && !base_str_eqz(contract_json_str(root, "kind"), contract_kind_name(kind)))
        return refuse(err, "kind", k, contract_kind_name(kind));
    (void)base_fmt(want, sizeof want, "%s/%s", contract_kind_group(kind), CONTRACT_VERSION);
    if (v && !base_str_eqz(contract_json_str(root, "apiVersion"), want))
        return refuse(err, "apiVersion", v, want);
    return BASE_OK;
}

/* Anybody may write an annotation: what is no version counts as none. */
static void agent_version(char dst[CONTRACT_SOFTWARE_SIZE], const struct contract_json *meta)
{
    static const char chars[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-+";

    if (base_copy_str(dst, CONTRACT_SOFTWARE_SIZE,
                      contract_json_str(contract_json_get(meta, "annotations"), CONTRACT_AGENT_ANNOTATION)) ||
        dst[strspn(dst, chars)])
        dst[0] = '\0';
}

int contract_decode_node(struct contract_object *ret, enum contract_kind kind,
                         const struct contract_json *root, struct base_err *err)
{
    const struct contract_field *top = contract_schema(kind);
    struct contract_object *o;
    int rc;

    if (!top)
        return base_err_set(err, BASE_EINVAL, "kind %d is no kind of the contract", (int)kind);
    if (root->type != CONTRACT_JSON_OBJECT)
        return base_err_set(err, BASE_EINVAL, "%s: %s where an object is expected", contract_kind_name(kind),
                            contract_json_type_name(root->type));
    o = base_calloc(1, sizeof *o);
    if (!o)
        return base_err_set(err, BASE_ENOMEM, "%s: no memory", contract_kind_name(kind));
    o->kind = kind;
    if (kind == CONTRACT_BINDING)
        o->u.binding.spec.retention_seconds = -1;
    rc = type_meta(kind, root, err);
    if (!rc)
        rc = contract_decode_meta(&o->u.meta, contract_json_get(root, "metadata"), err);
    if (!rc && kind == CONTRACT_INSTANCE)
        agent_version(o->u.instance.agent_version, contract_json_get(root, "metadata"));
    for (const struct contract_field *f = top; !rc && f->name; f++) {
        const struct contract_json *v = contract_json_get(root, f->name);

        if (!is_null(v))
            rc = contract_decode_field(f, &o->u, v, f->name, err);
        else if (f->required)
            rc = base_err_set(err, BASE_EINVAL, "%s: is missing", f->name);
    }
    if (rc)
        (void)base_err_wrap(err, "%s %.253s", contract_kind_name(kind), o->u.meta.name);
    else
        *ret = *o;
    base_free(o);
    return rc;
}

/* Nodes take about 6 times the text; the bound is for nonsense. */
#define ARENA_MAX ((size_t)64 << 20)

int contract_decode(struct contract_object *ret, enum contract_kind kind, struct base_str json,
                    struct base_err *err)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new(ARENA_MAX);
    const struct contract_json *root;
    int rc;

    if (!arena)
        return base_err_set(err, BASE_ENOMEM, "%s: no memory", contract_kind_name(kind));
    rc = contract_json_parse(&root, arena, json, 0, err);
    if (rc) {
        (void)base_err_wrap(err, "%s", contract_kind_name(kind));
        return rc;
    }
    return contract_decode_node(ret, kind, root, err);
}

int contract_decode_any(struct contract_object *ret, struct base_str json, struct base_err *err)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new(ARENA_MAX);
    const struct contract_json *root, *kind;
    enum contract_kind k;
    int rc;

    if (!arena)
        return base_err_set(err, BASE_ENOMEM, "object: no memory");
    rc = contract_json_parse(&root, arena, json, 0, err);
    if (rc)
        return rc;
    kind = contract_json_get(root, "kind");
    k = contract_kind_of(contract_json_str(root, "kind"));
    if (!k || !contract_json_get(root, "apiVersion"))
        return kind ? refuse(err, "kind", kind, "a kind of the contract, with its apiVersion")
                    : base_err_set(err, BASE_EINVAL, "kind: is missing; a kind of the contract is expected");
    return contract_decode_node(ret, k, root, err);
}
