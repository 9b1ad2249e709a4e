/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/sum.h"

#include <criterion/criterion.h>

static struct audit_record rec(enum audit_event e, const char *reason, const char *object, base_wall ts)
{
    struct audit_record r = {.ts = ts, .event = e, .outcome = AUDIT_REFUSED, .effect = AUDIT_EFFECT_NONE};

    (void)base_copy(r.reason, sizeof r.reason, reason);
    (void)base_copy(r.node, sizeof r.node, "edge1");
    (void)base_copy(r.instance, sizeof r.instance, "masque.edge1");
    (void)base_copy(r.object, sizeof r.object, object);
    return r;
}

static struct audit_sum *make(uint32_t max)
{
    return audit_sum_new(
        &(struct audit_sum_config){.renew = 600 * BASE_SEC, .reject = 10 * BASE_SEC, .max = max});
}

static int64_t stands_for(const struct audit_record *r)
{
    return r->count ? r->count : 1;
}

Test(audit_sum, renewals_are_one_record_per_ten_minutes_and_one_at_a_change)
{
    struct audit_sum *s = make(0);
    struct audit_record r, more;
    int64_t written = 0, said = 0, n = 0;

    for (base_time t = 0; t < 3600; t += 10, n++) { /* an hour */
        r = rec(AUDIT_RENEW, "Renew", "masque.edge1", 1 + t);
        r.effect = AUDIT_EFFECT_INTENDED;
        cr_assert_not(audit_sum_next(s, t * BASE_SEC, false, &more));
        if (audit_sum_offer(s, t * BASE_SEC, &r, false) == AUDIT_SUM_WRITE) {
            written++;
            said += stands_for(&r);
            cr_assert_eq(r.ts, 1 + t);
            if (r.count)
                cr_assert_eq(r.last - r.first, (r.count - 1) * 10);
        }
    }
    cr_assert_eq(written, 6);
    r = rec(AUDIT_RELEASE, "Release", "rc-fd12", 5000); /* of something else */
    cr_assert_eq(audit_sum_offer(s, 3600 * BASE_SEC, &r, false), AUDIT_SUM_WRITE);
    cr_assert_not(audit_sum_next(s, 3600 * BASE_SEC, false, &more));
    r = rec(AUDIT_RELEASE, "InstanceRelease", "masque.edge1", 5000);
    cr_assert_eq(audit_sum_offer(s, 3600 * BASE_SEC, &r, false), AUDIT_SUM_WRITE);
    cr_assert(audit_sum_next(s, 3600 * BASE_SEC, false, &more));
    cr_assert_eq((int)more.event, (int)AUDIT_RENEW);
    said += stands_for(&more);
    cr_assert_eq(said, n);
    cr_assert_not(audit_sum_next(s, 3600 * BASE_SEC, true, &more));
    cr_assert_eq(audit_sum_wake(s), BASE_TIME_NEVER);
    audit_sum_free(s);
}

Test(audit_sum, a_renewal_is_written_when_the_disk_is_in_doubt)
{
    struct audit_sum *s = make(0);
    struct audit_record r = rec(AUDIT_RENEW, "Renew", "masque.edge1", 1);

    cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
    r.ts = 2;
    cr_assert_eq(audit_sum_offer(s, BASE_SEC, &r, false), AUDIT_SUM_COUNTED);
    r = rec(AUDIT_RENEW, "Renew", "masque.edge1", 3);
    cr_assert_eq(audit_sum_offer(s, 2 * BASE_SEC, &r, true), AUDIT_SUM_WRITE);
    cr_assert_eq(r.count, 2);
    cr_assert_eq(r.first, 2);
    cr_assert_eq(r.last, 3);
    audit_sum_failed(s);
    r = rec(AUDIT_RENEW, "Renew", "masque.edge1", 4);
    cr_assert_eq(audit_sum_offer(s, 3 * BASE_SEC, &r, false), AUDIT_SUM_WRITE);
    r = rec(AUDIT_RENEW, "Renew", "masque.edge1", 5);
    cr_assert_eq(audit_sum_offer(s, 4 * BASE_SEC, &r, false), AUDIT_SUM_COUNTED);
    audit_sum_free(s);
}

Test(audit_sum, another_epoch_is_another_holder)
{
    struct audit_sum *s = make(0);
    struct audit_record r = rec(AUDIT_RENEW, "Renew", "masque.edge1", 1);

    r.epoch = 1;
    cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
    r.epoch = 2;
    cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
    r.lease_uuid.b[0] = 1;
    cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
    cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_COUNTED);
    audit_sum_free(s);
}

Test(audit_sum, the_first_reject_is_written_at_once_and_equal_ones_are_added_up)
{
    struct audit_sum *s = make(0);
    struct audit_record r, more;
    int64_t said = 0, records = 0;

    for (int i = 0; i < 100000; i++) { /* 10,000 a second for 10 s */
        base_time now = i * (BASE_SEC / 10000);

        r = rec(AUDIT_REJECT, "NoBinding", "", 1 + i);
        if (audit_sum_offer(s, now, &r, false) == AUDIT_SUM_WRITE) {
            cr_assert_eq(i, 0);
            said += stands_for(&r);
            records++;
        }
        cr_assert_not(audit_sum_next(s, now, false, &more));
    }
    cr_assert_eq(audit_sum_wake(s), 10 * BASE_SEC);
    cr_assert(audit_sum_next(s, 10 * BASE_SEC, false, &more));
    cr_assert_eq(more.first, 2);
    cr_assert_eq(more.last, 100000);
    cr_assert_eq(said + stands_for(&more), 100000);
    cr_assert_eq(audit_sum_counted(s), 99999);
    cr_assert_not(audit_sum_next(s, 10 * BASE_SEC, false, &more));
    /* quiet: the next one is a first one again */
    cr_assert_not(audit_sum_next(s, 20 * BASE_SEC, false, &more));
    r = rec(AUDIT_REJECT, "NoBinding", "", 7);
    cr_assert_eq(audit_sum_offer(s, 20 * BASE_SEC, &r, false), AUDIT_SUM_WRITE);
    audit_sum_free(s);
}

Test(audit_sum, rejects_that_differ_are_written_and_evidence_is_never_summed)
{
    struct audit_sum *s = make(0);
    struct audit_record base = rec(AUDIT_REJECT, "Suspended", "acme.site-1", 1), r;

    r = base;
    cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
    r = base;
    memset(r.credential_id, 'a', 64);
    cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
    r = base;
    (void)base_copy(r.reason, sizeof r.reason, "NoBinding");
    cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
    r = base;
    (void)base_copy(r.object, sizeof r.object, "acme.site-2");
    cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
    r = base;
    r.effect = AUDIT_EFFECT_POSSIBLE;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
    for (int e = AUDIT_ACQUIRE; e <= AUDIT_EXPIRY; e++)
        for (int i = 0; i < 2 && e != AUDIT_RENEW; i++) {
            r = rec((enum audit_event)e, "Any", "rc-1", 1);
            cr_assert_eq(audit_sum_offer(s, 0, &r, false), AUDIT_SUM_WRITE);
        }
    audit_sum_free(s);
}

/* Somebody sends rejects that all differ: memory and records stay bounded, and the count is still right. */
Test(audit_sum, a_flood_of_different_rejects_is_bounded_and_counted)
{
    struct audit_sum *s = make(16);
    struct audit_record r, more;
    int64_t said = 0, records = 0, pooled = 0;
    base_time now = 0;

    for (int i = 0; i < 20000; i++, now += BASE_SEC / 10000) {
        char name[32];

        (void)base_fmt(name, sizeof name, "acme.site-%d", i);
        r = rec(AUDIT_REJECT, i % 2 ? "Suspended" : "NoBinding", name, 1 + i);
        if (audit_sum_offer(s, now, &r, false) == AUDIT_SUM_WRITE) {
            records++;
            said += stands_for(&r);
        }
    }
    cr_assert_eq(records, 16);
    r = rec(AUDIT_RENEW, "Renew", "masque.edge1", 1); /* renewals find room */
    cr_assert_eq(audit_sum_offer(s, now, &r, false), AUDIT_SUM_WRITE);
    cr_assert_eq(audit_sum_offer(s, now, &r, false), AUDIT_SUM_COUNTED);
    while (audit_sum_next(s, now, true, &more))
        if (more.event == AUDIT_REJECT) {
            said += stands_for(&more);
            pooled++;
            cr_assert_str_empty(more.object);
        }
    cr_assert_eq(pooled, 2);
    cr_assert_eq(said, 20000);
    audit_sum_free(s);
}
