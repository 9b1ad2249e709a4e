/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/parse.h"

#include "audit/chain.h"

/* One member `"key":"value"` or `"key":123` at *at; moves *at behind it. */
static int member(struct base_str line, size_t *at, struct base_str *ret_key, struct base_str *ret_value,
                  bool *ret_quoted)
{
    const char *p = line.ptr + *at, *end = line.ptr + line.len, *q;

    if (p == end || *p != '"')
        return BASE_EINVAL;
    p++;
    q = memchr(p, '"', (size_t)(end - p));
    if (!q || q + 1 == end || q[1] != ':')
        return BASE_EINVAL;
    *ret_key = (struct base_str){p, (size_t)(q - p)};
    p = q + 2;
    *ret_quoted = p < end && *p == '"';
    if (*ret_quoted) {
        p++;
        q = memchr(p, '"', (size_t)(end - p));
        if (!q)
            return BASE_EINVAL;
        *ret_value = (struct base_str){p, (size_t)(q - p)};
        q++;
    } else {
        for (q = p; q < end && *q >= '0' && *q <= '9'; q++)
            ;
        *ret_value = (struct base_str){p, (size_t)(q - p)};
    }
    for (size_t i = 0; i < ret_value->len; i++)
        if (ret_value->ptr[i] == '\\' || (unsigned char)ret_value->ptr[i] < 0x20)
            return BASE_EINVAL;
    *at = (size_t)(q - line.ptr);
    return BASE_OK;
}

/* The chain's own members, which come in this order behind "ts". */
static int chain_member(struct audit_line *l, struct base_str key, struct base_str v, bool quoted)
{
    static const char *const kinds[] = {
        [AUDIT_LINE_START] = "start", [AUDIT_LINE_TORN] = "torn", [AUDIT_LINE_CHECKPOINT] = "checkpoint"};
    uint8_t skip[64];

    if (base_str_eqz(key, "chain") && quoted && l->kind == AUDIT_LINE_RECORD) {
        for (int k = AUDIT_LINE_START; k <= AUDIT_LINE_CHECKPOINT; k++)
            if (base_str_eqz(v, kinds[k])) {
                l->kind = (enum audit_line_kind)k;
                return BASE_OK;
            }
        return BASE_EINVAL;
    }
    switch (l->kind) {
    case AUDIT_LINE_RECORD:
        return BASE_EINVAL;
    case AUDIT_LINE_TORN:
        return base_str_eqz(key, "bytes") && !quoted ? base_parse_u64(v, UINT64_MAX, &l->bytes) : BASE_EINVAL;
    case AUDIT_LINE_START:
    case AUDIT_LINE_CHECKPOINT:
        if (!quoted)
            return BASE_EINVAL;
        if (base_str_eqz(key, "node"))
            return base_is_subdomain(v, 125) ? base_copy_str(l->node, sizeof l->node, v) : BASE_EINVAL;
        if (base_str_eqz(key, "prev") && l->kind == AUDIT_LINE_START)
            return base_unhex(skip, BASE_SHA256_SIZE, v);
        if (base_str_eqz(key, "key") && l->kind == AUDIT_LINE_CHECKPOINT)
            return !base_unhex(skip, 8, v) ? base_copy_str(l->key, sizeof l->key, v) : BASE_EINVAL;
        if (base_str_eqz(key, "sig") && l->kind == AUDIT_LINE_CHECKPOINT)
            return base_unhex(skip, 64, v);
        return BASE_EINVAL;
    }
    return BASE_EINVAL;
}

static int seal_member(struct audit_line *l, struct base_str key, struct base_str v, bool quoted,
                       unsigned *seal)
{
    uint8_t skip[BASE_SHA256_SIZE];

    if (base_str_eqz(key, "seq") && !quoted && *seal == 0 && !base_parse_u64(v, UINT64_MAX, &l->seq) &&
        l->seq) {
        *seal = 1;
        return BASE_OK;
    }
    if (base_str_eqz(key, "hash") && quoted && *seal == 1 && !base_unhex(skip, sizeof skip, v)) {
        *seal = 2;
        return BASE_OK;
    }
    return BASE_EINVAL;
}

int audit_parse(struct base_str line, struct audit_line *ret)
{
    struct audit_line l = {.kind = AUDIT_LINE_RECORD};
    size_t at = 1, next = 0, index = 0;
    unsigned seal = 0;

    if (line.len < 2 || line.len > 2 * AUDIT_LINE_MAX || line.ptr[0] != '{' || line.ptr[line.len - 1] != '}')
        return BASE_EINVAL;
    line.len--;
    while (at < line.len) {
        struct base_str key, value;
        bool quoted;
        int rc = member(line, &at, &key, &value, &quoted);

        if (!rc && seal == 0 && !base_str_eqz(key, "seq")) {
            rc = l.kind == AUDIT_LINE_RECORD ? audit_field(&l.record, key, value, quoted, &index)
                                             : BASE_ENOTFOUND;
            if (rc == BASE_OK && index < next)
                return BASE_EINVAL; /* twice, or not in its place */
            if (rc == BASE_OK)
                next = index + 1;
            else if (rc == BASE_ENOTFOUND && (next == 1 || l.kind != AUDIT_LINE_RECORD))
                rc = chain_member(&l, key, value, quoted);
        } else if (!rc) {
            rc = seal_member(&l, key, value, quoted, &seal);
        }
        if (rc || (at < line.len && line.ptr[at++] != ',') || (at == line.len && line.ptr[at - 1] == ','))
            return BASE_EINVAL;
    }
    if (seal == 1 || (l.kind == AUDIT_LINE_RECORD ? !audit_complete(&l.record) : seal == 0))
        return BASE_EINVAL;
    l.ts = l.record.ts;
    *ret = l;
    return BASE_OK;
}

/* ---- questions */

static bool object_matches(const struct audit_query *q, const char *object)
{
    size_t n = strlen(object), k = strlen(q->suffix);

    if (!q->n_objects && !k)
        return true;
    for (uint32_t i = 0; i < q->n_objects; i++)
        if (strcmp(q->objects[i], object) == 0)
            return true;
    return k && n > k && object[n - k - 1] == '.' && strcmp(object + n - k, q->suffix) == 0;
}

bool audit_matches(const struct audit_query *q, const struct audit_line *l)
{
    const struct audit_record *r = &l->record;
    base_wall end = r->last > r->ts ? r->last : r->ts;

    if (l->kind != AUDIT_LINE_RECORD || l->seq <= q->after)
        return false;
    if (!base_correlation_is_zero(&q->correlation) &&
        memcmp(q->correlation.b, r->correlation.b, sizeof r->correlation.b) != 0 &&
        memcmp(q->correlation.b, r->trace.b, sizeof r->trace.b) != 0)
        return false;
    if ((q->since && end < q->since) || (q->until && r->ts >= q->until))
        return false;
    return object_matches(q, r->object);
}

bool audit_may_match(const struct audit_query *q, struct base_str line)
{
    char id[BASE_CORRELATION_SIZE];

    if (!base_correlation_is_zero(&q->correlation)) {
        base_correlation_text(id, &q->correlation);
        return line.len && memmem(line.ptr, line.len, id, sizeof id - 1) != NULL;
    }
    if (q->n_objects == 1 && !q->suffix[0] && q->objects[0][0])
        return line.len && memmem(line.ptr, line.len, q->objects[0], strlen(q->objects[0])) != NULL;
    return true;
}
