/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/parse.h"

#include <criterion/criterion.h>

#include "audit/chain.h"

static struct audit_record full(void)
{
    struct audit_record r = {.ts = 1764450502000000,
                             .event = AUDIT_TAKEOVER,
                             .outcome = AUDIT_ALLOWED,
                             .effect = AUDIT_EFFECT_POSSIBLE,
                             .epoch = 7,
                             .count = 3,
                             .first = 1764450500000000,
                             .last = 1764450502000001};

    (void)base_copy(r.reason, sizeof r.reason, "ObservedEpoch");
    (void)base_copy(r.node, sizeof r.node, "edge1");
    (void)base_copy(r.instance, sizeof r.instance, "masque.edge1");
    (void)base_copy(r.object, sizeof r.object, "acme.site-1");
    (void)base_copy(r.old_holder, sizeof r.old_holder, "edge2");
    (void)base_copy(r.new_holder, sizeof r.new_holder, "edge1");
    memset(r.correlation.b, 0xab, 16);
    memset(r.trace.b, 0xcd, 16);
    memset(r.pod_uid.b, 0x22, 16);
    memset(r.object_uid.b, 0x33, 16);
    memset(r.lease_uuid.b, 0x11, 16);
    memset(r.credential_id, 'c', 64);
    return r;
}

static struct base_str encode(struct base_buf *b, const struct audit_record *r)
{
    base_buf_init(b, 8192);
    cr_assert_eq(audit_encode(b, r, NULL), BASE_OK);
    return (struct base_str){b->data, b->len - 1};
}

Test(audit_parse, what_was_encoded_comes_back)
{
    struct audit_record r = full();
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    struct audit_chain c = {.seq = 0};
    struct audit_line l;
    struct base_buf b, sealed;
    struct base_str line = encode(&b, &r);

    cr_assert_eq(audit_parse(line, &l), BASE_OK);
    cr_assert_eq((int)l.kind, (int)AUDIT_LINE_RECORD);
    cr_assert_eq(l.seq, 0);
    cr_assert_eq(memcmp(&l.record, &r, sizeof r), 0);
    base_buf_init(&sealed, 8192);
    cr_assert_eq(audit_chain_seal(&c, h, &sealed, (struct base_str){b.data, b.len}), BASE_OK);
    cr_assert_eq(audit_parse((struct base_str){sealed.data, sealed.len - 1}, &l), BASE_OK);
    cr_assert_eq(l.seq, 1);
    cr_assert_eq(memcmp(&l.record, &r, sizeof r), 0);
    base_buf_fini(&b);
    base_buf_fini(&sealed);
}

Test(audit_parse, the_chains_own_lines)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    struct audit_chain c = {.seq = 0};
    struct audit_line l;
    struct base_buf b;

    base_buf_init(&b, 8192);
    cr_assert_eq(audit_chain_start(&c, h, &b, 5, "edge1"), BASE_OK);
    cr_assert_eq(audit_parse((struct base_str){b.data, b.len - 1}, &l), BASE_OK);
    cr_assert_eq((int)l.kind, (int)AUDIT_LINE_START);
    cr_assert_str_eq(l.node, "edge1");
    cr_assert_eq(l.ts, 5);
    base_buf_reset(&b);
    cr_assert_eq(audit_chain_torn(&c, h, &b, 6, 123), BASE_OK);
    cr_assert_eq(audit_parse((struct base_str){b.data, b.len - 1}, &l), BASE_OK);
    cr_assert_eq((int)l.kind, (int)AUDIT_LINE_TORN);
    cr_assert_eq(l.bytes, 123);
    cr_assert_eq(l.seq, 2);
    base_buf_fini(&b);
}

/* Whatever is taken is what the encoder writes: every byte of a good line replaced by every other. */
Test(audit_parse, nothing_is_taken_that_the_encoder_would_not_write)
{
    struct audit_record r = full();
    struct audit_line l;
    struct base_buf b, again;
    struct base_str line = encode(&b, &r);
    unsigned taken = 0;

    base_buf_init(&again, 8192);
    for (size_t i = 0; i < line.len; i++) {
        char was = b.data[i];

        for (int c = 0; c < 256; c++) {
            b.data[i] = (char)c;
            if (audit_parse(line, &l))
                continue;
            taken++;
            base_buf_reset(&again);
            cr_assert_eq(audit_encode(&again, &l.record, NULL), BASE_OK);
            cr_assert_eq(again.len, line.len + 1, "at %zu: %d", i, c);
            cr_assert_eq(memcmp(again.data, line.ptr, line.len), 0, "at %zu: %d", i, c);
        }
        b.data[i] = was;
    }
    cr_assert_gt(taken, line.len);
    for (size_t n = 0; n < line.len; n++)
        cr_assert_eq(audit_parse((struct base_str){line.ptr, n}, &l), BASE_EINVAL, "%zu", n);
    base_buf_fini(&b);
    base_buf_fini(&again);
}

Test(audit_parse, bad_lines)
{
    static const char *const bad[] = {
        "", "{}", "null", "[]", "{\"ts\":\"2025-11-29T21:08:22.000000Z\"}",
        /* a member twice, out of its place, unknown, escaped, of the wrong type */
        "{\"ts\":\"2025-11-29T21:08:22.000000Z\",\"ts\":\"2025-11-29T21:08:22.000000Z\",\"event\":\"renew\","
        "\"outcome\":\"allowed\",\"reason\":\"Renew\",\"node\":\"e\",\"instance\":\"m.e\",\"effect\":"
        "\"none\"}",
        "{\"event\":\"renew\",\"ts\":\"2025-11-29T21:08:22.000000Z\",\"outcome\":\"allowed\",\"reason\":"
        "\"Renew\","
        "\"node\":\"e\",\"instance\":\"m.e\",\"effect\":\"none\"}",
        "{\"ts\":\"2025-11-29T21:08:22.000000Z\",\"event\":\"renew\",\"outcome\":\"allowed\",\"reason\":"
        "\"Renew\","
        "\"token\":\"x\",\"node\":\"e\",\"instance\":\"m.e\",\"effect\":\"none\"}",
        "{\"ts\":\"2025-11-29T21:08:22.000000Z\",\"event\":\"renew\",\"outcome\":\"allowed\",\"reason\":"
        "\"Ren\\u0065w\","
        "\"node\":\"e\",\"instance\":\"m.e\",\"effect\":\"none\"}",
        "{\"ts\":\"2025-11-29T21:08:22.000000Z\",\"event\":\"renew\",\"outcome\":\"allowed\",\"reason\":"
        "\"Renew\","
        "\"node\":\"e\",\"instance\":\"m.e\",\"epoch\":\"7\",\"effect\":\"none\"}",
        "{\"ts\":\"2025-11-29T21:08:22.000000Z\",\"event\":\"renew\",\"outcome\":\"allowed\",\"reason\":"
        "\"Renew\","
        "\"node\":\"e\",\"instance\":\"m.e\",\"effect\":\"none\",}",
        "{\"ts\":\"2025-11-29T23:08:22.000000+02:00\",\"event\":\"renew\",\"outcome\":\"allowed\",\"reason\":"
        "\"Renew\","
        "\"node\":\"e\",\"instance\":\"m.e\",\"effect\":\"none\"}",
        "{\"ts\":\"2025-11-29T21:08:22.000000Z\",\"chain\":\"finish\",\"node\":\"e\",\"seq\":1,\"hash\":"
        "\"\"}",
        "{\"ts\":\"2025-11-29T21:08:22.000000Z\",\"chain\":\"start\",\"node\":\"e\"}"};
    struct audit_line l = {.seq = 77};

    for (size_t i = 0; i < BASE_LEN(bad); i++) {
        cr_assert_eq(audit_parse(base_str_of(bad[i]), &l), BASE_EINVAL, "row %zu", i);
        cr_assert_eq(l.seq, 77);
    }
}

Test(audit_parse, questions)
{
    struct audit_line l = {.kind = AUDIT_LINE_RECORD, .seq = 5, .record = full()};
    struct audit_query q = {.after = 0};
    struct base_buf b;
    struct base_str text = encode(&b, &l.record);

    cr_assert(audit_matches(&q, &l));
    q.after = 5;
    cr_assert_not(audit_matches(&q, &l));
    q.after = 4;
    cr_assert(audit_matches(&q, &l));
    memset(q.correlation.b, 0xab, 16);
    cr_assert(audit_matches(&q, &l) && audit_may_match(&q, text));
    memset(q.correlation.b, 0xcd, 16);
    cr_assert(audit_matches(&q, &l) && audit_may_match(&q, text)); /* by trace */
    memset(q.correlation.b, 0xce, 16);
    cr_assert_not(audit_matches(&q, &l) || audit_may_match(&q, text));
    q = (struct audit_query){.since = l.record.last};
    cr_assert(audit_matches(&q, &l));
    q.since++;
    cr_assert_not(audit_matches(&q, &l));
    q = (struct audit_query){.until = l.record.ts + 1};
    cr_assert(audit_matches(&q, &l));
    q.until--;
    cr_assert_not(audit_matches(&q, &l));
    q = (struct audit_query){.n_objects = 1};
    (void)base_copy(q.objects[0], sizeof q.objects[0], "acme.site-1");
    cr_assert(audit_matches(&q, &l) && audit_may_match(&q, text));
    (void)base_copy(q.objects[0], sizeof q.objects[0], "acme.site-12");
    cr_assert_not(audit_matches(&q, &l) || audit_may_match(&q, text));
    (void)base_copy(q.suffix, sizeof q.suffix, "site-1");
    cr_assert(audit_matches(&q, &l) && audit_may_match(&q, text));
    (void)base_copy(q.suffix, sizeof q.suffix, "ite-1");
    cr_assert_not(audit_matches(&q, &l));
    l.kind = AUDIT_LINE_TORN;
    cr_assert_not(audit_matches(&(struct audit_query){.after = 0}, &l));
    base_buf_fini(&b);
}
