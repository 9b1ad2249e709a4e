/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/record.h"

enum field_kind {
    F_TIME,
    F_EVENT,
    F_OUTCOME,
    F_EFFECT,
    F_REASON,
    F_CORRELATION,
    F_UUID,
    F_NAME,
    F_HEX,
    F_EPOCH
};

struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;
    bool required;
};

#define AT(member) offsetof(struct audit_record, member)
/* The allow-list. What is not here cannot be encoded. */
static const struct field table[] = {
    {"ts", F_TIME, AT(ts), true},
    {"event", F_EVENT, AT(event), true},
    {"outcome", F_OUTCOME, AT(outcome), true},
    {"reason", F_REASON, AT(reason), true},
    {"correlationID", F_CORRELATION, AT(correlation), false},
    {"traceID", F_CORRELATION, AT(trace), false},
    {"node", F_NAME, AT(node), true},
    {"instance", F_NAME, AT(instance), true},
    {"podUID", F_UUID, AT(pod_uid), false},
    {"object", F_NAME, AT(object), false},
    {"objectUID", F_UUID, AT(object_uid), false},
    {"oldHolder", F_NAME, AT(old_holder), false},
    {"newHolder", F_NAME, AT(new_holder), false},
    {"epoch", F_EPOCH, AT(epoch), false},
    {"leaseUUID", F_UUID, AT(lease_uuid), false},
    {"credentialID", F_HEX, AT(credential_id), false},
    {"count", F_EPOCH, AT(count), false},
    {"first", F_TIME, AT(first), false},
    {"last", F_TIME, AT(last), false},
    {"effect", F_EFFECT, AT(effect), true},
};

static const char *const event_names[AUDIT_EVENT_N] = {NULL,      "acquire", "renew", "takeover",
                                                       "release", "expiry",  "reject"};
static const char *const outcome_names[] = {NULL, "allowed", "refused", "observed"};
static const char *const effect_names[] = {NULL, "none", "intended", "possible"};

const char *audit_event_name(enum audit_event e)
{
    return (unsigned)e < AUDIT_EVENT_N && event_names[e] ? event_names[e] : "?";
}

enum audit_event audit_event_of(struct base_str name)
{
    for (unsigned i = 1; i < AUDIT_EVENT_N; i++)
        if (base_str_eqz(name, event_names[i]))
            return (enum audit_event)i;
    return (enum audit_event)0;
}

const char *const *audit_keys(void)
{
    static const char *const keys[] = {
        "ts",        "event",        "outcome", "reason",    "correlationID", "traceID",   "node",
        "instance",  "podUID",       "object",  "objectUID", "oldHolder",     "newHolder", "epoch",
        "leaseUUID", "credentialID", "count",   "first",     "last",          "effect",    NULL};
    return keys;
}

/* CamelCase: a constant of ours, never a sentence. */
static bool is_reason(const char *z)
{
    if (z[0] < 'A' || z[0] > 'Z')
        return false;
    for (; *z; z++)
        if (!((*z >= 'A' && *z <= 'Z') || (*z >= 'a' && *z <= 'z') || (*z >= '0' && *z <= '9')))
            return false;
    return true;
}

/* Hex of a digest: whole, or nothing. */
static bool is_digest(const char *z)
{
    uint8_t bytes[32];

    return base_unhex(bytes, sizeof bytes, base_str_of(z)) == BASE_OK;
}

static const char *pick(const char *const *names, size_t n, int value)
{
    return value > 0 && (size_t)value < n ? names[value] : NULL;
}

/* 1: text holds the value; 0: absent; BASE_EINVAL. */
static int field_text(const struct field *f, const struct audit_record *r, char *text, size_t size)
{
    const char *at = (const char *)r + f->offset;
    const char *name = NULL;

    switch (f->kind) {
    case F_TIME: {
        base_wall t = *(const base_wall *)(const void *)at;

        if (t <= 0)
            return 0;
        base_rfc3339(text, t);
        return 1;
    }
    case F_EVENT:
        name = pick(event_names, BASE_LEN(event_names), (int)r->event);
        return name && base_fmt(text, size, "%s", name) ? 1 : BASE_EINVAL;
    case F_OUTCOME:
        name = pick(outcome_names, BASE_LEN(outcome_names), (int)r->outcome);
        return name && base_fmt(text, size, "%s", name) ? 1 : BASE_EINVAL;
    case F_EFFECT:
        name = pick(effect_names, BASE_LEN(effect_names), (int)r->effect);
        return name && base_fmt(text, size, "%s", name) ? 1 : BASE_EINVAL;
    case F_REASON:
        return is_reason(at) && base_fmt(text, size, "%s", at) ? 1 : BASE_EINVAL;
    case F_CORRELATION: {
        const struct base_correlation *c = (const void *)at;

        if (base_correlation_is_zero(c))
            return 0;
        base_correlation_text(text, c);
        return 1;
    }
    case F_UUID: {
        const struct base_uuid *u = (const void *)at;

        if (base_uuid_is_zero(u))
            return 0;
        base_uuid_text(text, u);
        return 1;
    }
    case F_NAME:
        if (!at[0])
            return 0;
        return base_is_subdomain(base_str_of(at), 253) && base_fmt(text, size, "%s", at) ? 1 : BASE_EINVAL;
    case F_HEX:
        if (!at[0])
            return 0;
        return is_digest(at) && base_fmt(text, size, "%s", at) ? 1 : BASE_EINVAL;
    case F_EPOCH: {
        int64_t n = *(const int64_t *)(const void *)at;

        if (n == 0)
            return 0;
        return n > 0 && base_fmt(text, size, "%lld", (long long)n) ? 1 : BASE_EINVAL;
    }
    }
    return BASE_EINVAL;
}

int audit_encode(struct base_buf *out, const struct audit_record *r, struct base_err *err)
{
    char line[AUDIT_LINE_MAX], text[256];
    size_t n = 0;

    for (size_t i = 0; i < BASE_LEN(table); i++) {
        const struct field *f = &table[i];
        int rc = field_text(f, r, text, sizeof text);

        if (rc < 0 || (rc == 0 && f->required))
            return base_err_set(err, BASE_EINVAL,
                                "audit record: field '%s' is missing or outside its alphabet", f->key);
        if (rc == 0)
            continue;
        const char *quote = f->kind == F_EPOCH ? "" : "\"";

        if (!base_fmt(line + n, sizeof line - n, "%s\"%s\":%s%s%s", n ? "," : "{", f->key, quote, text,
                      quote))
            return base_err_set(err, BASE_EFULL, "audit record: longer than %d bytes", AUDIT_LINE_MAX);
        n += strlen(line + n);
    }
    if (!base_fmt(line + n, sizeof line - n, "}\n"))
        return base_err_set(err, BASE_EFULL, "audit record: longer than %d bytes", AUDIT_LINE_MAX);
    if (base_buf_addz(out, line))
        return base_err_set(err, out->failed, "audit record: no room in the buffer");
    return BASE_OK;
}

/* ---- reading */

static int value_of(const char *const *names, size_t n, struct base_str text)
{
    for (size_t i = 1; i < n; i++)
        if (base_str_eqz(text, names[i]))
            return (int)i;
    return 0;
}

static size_t room_of(const struct field *f)
{
    return f->offset == AT(reason)          ? sizeof((struct audit_record *)0)->reason
           : f->offset == AT(node)          ? sizeof((struct audit_record *)0)->node
           : f->offset == AT(instance)      ? sizeof((struct audit_record *)0)->instance
           : f->offset == AT(object)        ? sizeof((struct audit_record *)0)->object
           : f->offset == AT(credential_id) ? sizeof((struct audit_record *)0)->credential_id
                                            : sizeof((struct audit_record *)0)->old_holder;
}

int audit_field(struct audit_record *r, struct base_str key, struct base_str value, bool quoted,
                size_t *ret_index)
{
    const struct field *f = NULL;
    char *at;
    uint64_t n;
    int v = 0;

    for (size_t i = 0; i < BASE_LEN(table) && !f; i++)
        if (base_str_eqz(key, table[i].key)) {
            f = &table[i];
            *ret_index = i;
        }
    if (!f)
        return BASE_ENOTFOUND;
    if (quoted == (f->kind == F_EPOCH))
        return BASE_EINVAL;
    at = (char *)r + f->offset;
    switch (f->kind) {
    case F_TIME: {
        char text[BASE_RFC3339_SIZE];
        base_wall t;

        if (base_rfc3339_parse(value, &t) || t <= 0)
            return BASE_EINVAL;
        base_rfc3339(text, t);
        if (!base_str_eqz(value, text)) /* another spelling than ours */
            return BASE_EINVAL;
        *(base_wall *)(void *)at = t;
        return BASE_OK;
    }
    case F_EVENT:
        v = value_of(event_names, BASE_LEN(event_names), value);
        r->event = (enum audit_event)v;
        return v ? BASE_OK : BASE_EINVAL;
    case F_OUTCOME:
        v = value_of(outcome_names, BASE_LEN(outcome_names), value);
        r->outcome = (enum audit_outcome)v;
        return v ? BASE_OK : BASE_EINVAL;
    case F_EFFECT:
        v = value_of(effect_names, BASE_LEN(effect_names), value);
        r->effect = (enum audit_effect)v;
        return v ? BASE_OK : BASE_EINVAL;
    case F_REASON:
        return !base_copy_str(at, room_of(f), value) && is_reason(at) ? BASE_OK : BASE_EINVAL;
    case F_CORRELATION:
        return base_correlation_parse((struct base_correlation *)(void *)at, value);
    case F_UUID:
        return base_uuid_parse((struct base_uuid *)(void *)at, value);
    case F_NAME:
        return base_is_subdomain(value, 253) && !base_copy_str(at, room_of(f), value) ? BASE_OK : BASE_EINVAL;
    case F_HEX:
        return !base_copy_str(at, room_of(f), value) && is_digest(at) ? BASE_OK : BASE_EINVAL;
    case F_EPOCH:
        if (base_parse_u64(value, INT64_MAX, &n) || n == 0)
            return BASE_EINVAL;
        *(int64_t *)(void *)at = (int64_t)n;
        return BASE_OK;
    }
    return BASE_EINVAL;
}

bool audit_complete(const struct audit_record *r)
{
    char text[256];

    for (size_t i = 0; i < BASE_LEN(table); i++)
        if (table[i].required && field_text(&table[i], r, text, sizeof text) != 1)
            return false;
    return true;
}
