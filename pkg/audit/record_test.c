/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/record.h"

#include <criterion/criterion.h>

static struct audit_record good(void)
{
    struct audit_record r = {.ts = 1764450502000000,
                             .event = AUDIT_TAKEOVER,
                             .outcome = AUDIT_ALLOWED,
                             .effect = AUDIT_EFFECT_INTENDED,
                             .epoch = 7};

    (void)base_copy(r.reason, sizeof r.reason, "ObservedEpoch");
    (void)base_copy(r.node, sizeof r.node, "edge1");
    (void)base_copy(r.instance, sizeof r.instance, "masque.edge1");
    (void)base_copy(r.object, sizeof r.object, "rc-fd1200000000000100000001");
    (void)base_copy(r.old_holder, sizeof r.old_holder, "edge2");
    (void)base_copy(r.new_holder, sizeof r.new_holder, "edge1");
    memset(r.correlation.b, 0xab, 16);
    memset(r.lease_uuid.b, 0x11, 16);
    memset(r.credential_id, 'c', 64);
    return r;
}

Test(audit_record, encodes_one_line_in_the_order_of_the_table)
{
    struct audit_record r = good();
    struct base_buf b;

    base_buf_init(&b, 4096);
    cr_assert_eq(audit_encode(&b, &r, NULL), BASE_OK);
    cr_assert_str_eq(
        b.data, "{\"ts\":\"2025-11-29T21:08:22.000000Z\",\"event\":\"takeover\",\"outcome\":\"allowed\","
                "\"reason\":\"ObservedEpoch\",\"correlationID\":\"abababababababababababababababab\","
                "\"node\":\"edge1\",\"instance\":\"masque.edge1\",\"object\":\"rc-fd1200000000000100000001\","
                "\"oldHolder\":\"edge2\",\"newHolder\":\"edge1\",\"epoch\":7,"
                "\"leaseUUID\":\"11111111-1111-1111-1111-111111111111\","
                "\"credentialID\":\"cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc\","
                "\"effect\":\"intended\"}\n");
    base_buf_fini(&b);
}

/* A secret under the name of an allowed field is refused, and the refusal does not repeat it. */
Test(audit_record, a_value_outside_its_alphabet_is_refused_and_not_repeated)
{
    static const char secret[] = "Bearer eyJhbGciOi.secret";
    size_t offsets[][2] = {
        {offsetof(struct audit_record, reason), 48},       {offsetof(struct audit_record, node), 126},
        {offsetof(struct audit_record, instance), 190},    {offsetof(struct audit_record, object), 254},
        {offsetof(struct audit_record, old_holder), 126},  {offsetof(struct audit_record, new_holder), 126},
        {offsetof(struct audit_record, credential_id), 65}};

    for (size_t i = 0; i < BASE_LEN(offsets); i++) {
        struct audit_record r = good();
        struct base_err err = {0};
        struct base_buf b;

        base_buf_init(&b, 4096);
        (void)base_copy((char *)&r + offsets[i][0], offsets[i][1], secret);
        cr_assert_eq(audit_encode(&b, &r, &err), BASE_EINVAL, "row %zu", i);
        cr_assert_eq(b.len, 0);
        cr_assert_null(strstr(err.msg, "eyJ"), "row %zu: %s", i, err.msg);
        base_buf_fini(&b);
    }
}

Test(audit_record, required_fields)
{
    struct {
        const char *what;
        size_t offset, size;
    } rows[] = {{"ts", offsetof(struct audit_record, ts), sizeof(base_wall)},
                {"event", offsetof(struct audit_record, event), sizeof(enum audit_event)},
                {"outcome", offsetof(struct audit_record, outcome), sizeof(enum audit_outcome)},
                {"reason", offsetof(struct audit_record, reason), 48},
                {"node", offsetof(struct audit_record, node), 126},
                {"instance", offsetof(struct audit_record, instance), 190},
                {"effect", offsetof(struct audit_record, effect), sizeof(enum audit_effect)}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct audit_record r = good();
        struct base_err err = {0};
        struct base_buf b;

        base_buf_init(&b, 4096);
        memset((char *)&r + rows[i].offset, 0, rows[i].size);
        cr_assert_eq(audit_encode(&b, &r, &err), BASE_EINVAL, "%s", rows[i].what);
        cr_assert_not_null(strstr(err.msg, rows[i].what));
        base_buf_fini(&b);
    }
}

Test(audit_record, keys_and_table_agree)
{
    struct audit_record r = good();
    struct base_buf b;
    const char *at;

    memset(r.trace.b, 1, 16);
    memset(r.pod_uid.b, 2, 16);
    memset(r.object_uid.b, 3, 16);
    r.count = 2;
    r.first = r.last = r.ts;
    base_buf_init(&b, 4096);
    cr_assert_eq(audit_encode(&b, &r, NULL), BASE_OK);
    at = b.data;
    for (const char *const *k = audit_keys(); *k; k++) {
        char quoted[40];

        (void)base_fmt(quoted, sizeof quoted, "\"%s\":", *k);
        at = strstr(at, quoted);
        cr_assert_not_null(at, "%s", *k);
    }
    cr_assert(b.len <= AUDIT_LINE_MAX);
    base_buf_fini(&b);
}

Test(audit_record, event_names_round_trip)
{
    for (int e = AUDIT_ACQUIRE; e <= AUDIT_REJECT; e++)
        cr_assert_eq((int)audit_event_of(base_str_of(audit_event_name((enum audit_event)e))), e);
    cr_assert_eq((int)audit_event_of(BASE_STR("login")), 0);
}

Test(audit_record, a_full_buffer_takes_nothing)
{
    struct audit_record r = good();
    struct base_buf b;

    base_buf_init(&b, 100);
    cr_assert_eq(audit_encode(&b, &r, NULL), BASE_EFULL);
    cr_assert_eq(b.len, 0);
    base_buf_fini(&b);
}
