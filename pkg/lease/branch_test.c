/* SPDX-License-Identifier: Apache-2.0
 *
 * Every name, every order of two generations, and the corners of a decision that the tables of row_test.c do
 * not single out: one field different at a time.
 */
#include "lease/deadline.h"
#include "lease/row.h"

#include <criterion/criterion.h>
#include <string.h>

Test(lease_names, each_has_one_of_its_own)
{
    static const char *const ops[] = {"none", "acquire", "takeover", "closing takeover", "release", "none"};
    static const char *const reasons[] = {
        "OK",       "ClaimHeld",   "ClaimReleased", "ClaimAbsent", "ClaimDeleting",  "PrefixTaken",
        "OtherVPC", "OtherHolder", "OtherEpoch",    "OtherLease",  "TakeoverDenied", "EpochExhausted",
        "Unknown"};
    static const char *const parts[] = {"GrantExpired",   "LeaseExpired", "ClaimProofExpired",
                                        "ServiceExpired", "Unknown",      "Unknown"};
    for (unsigned i = 0; i < sizeof ops / sizeof ops[0]; i++)
        cr_assert_str_eq(lease_op_name((enum lease_op)i), ops[i]);
    for (unsigned i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        bool found = false; /* in whatever order */
        for (unsigned k = 0; k < sizeof reasons / sizeof reasons[0]; k++)
            found = found || strcmp(lease_reason_name((enum lease_reason)k), reasons[i]) == 0;
        cr_assert(found, "%s", reasons[i]);
    }
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_assert_str_eq(lease_part_name((enum lease_part)i), parts[i]);
    cr_assert_str_eq(lease_outcome_name(LEASE_LANDED), "landed");
    cr_assert_str_eq(lease_outcome_name(LEASE_OVER), "over");
    cr_assert_str_eq(lease_outcome_name(LEASE_MAY_LAND), "may land");
    cr_assert_str_eq(lease_outcome_name((enum lease_outcome)99), "unknown");
}

Test(lease_deadline, generations_compare_field_by_field)
{
    const struct lease_generation a = {.created = 5, .uid = {{5}}, .epoch = 5, .counter = 5};
    for (int field = 0; field < 4; field++) {
        for (int less = 0; less < 2; less++) {
            struct lease_generation b = a;
            int d = less ? -1 : 1;
            if (field == 0)
                b.created += d;
            else if (field == 1)
                b.uid.b[0] = (uint8_t)(b.uid.b[0] + d);
            else if (field == 2)
                b.epoch += d;
            else
                b.counter += (uint64_t)(int64_t)d;
            cr_assert_eq(lease_generation_cmp(&a, &b), -d, "field %d", field);
            cr_assert_eq(lease_generation_cmp(&b, &a), d, "field %d", field);
        }
    }
    cr_assert_eq(lease_generation_cmp(&a, &a), 0);
}

static struct contract_claim row(void)
{
    struct contract_claim r = {.meta = {.name = "rc-1", .rv = "100"}};
    r.meta.uid.b[0] = 1;
    (void)base_copy(r.spec.provider, sizeof r.spec.provider, "masque");
    (void)base_copy(r.spec.tenant, sizeof r.spec.tenant, "acme");
    (void)base_copy(r.spec.connector, sizeof r.spec.connector, "site1");
    (void)base_copy(r.spec.vpc, sizeof r.spec.vpc, "vpc-a");
    (void)base_prefix_parse(&r.spec.prefix, BASE_STR("fd12:0:0:1:1::/96"));
    r.spec.epoch = 3;
    r.spec.lease_uuid.b[0] = 9;
    return r;
}

Test(lease_row, one_field_of_the_target_is_another)
{
    struct lease_self me = {.provider = "masque"};
    struct lease_target t = {.tenant = "acme", .connector = "site1", .vpc = "vpc-a"};
    (void)base_prefix_parse(&t.prefix, BASE_STR("fd12:0:0:1:1::/96"));
    struct lease_ask ask = {.op = LEASE_TAKEOVER, .me = &me, .target = &t, .epoch = 3};
    struct contract_claim r = row();
    cr_assert_eq(lease_decide(&ask, &r), LEASE_OK);
    (void)base_copy(r.spec.provider, sizeof r.spec.provider, "other");
    cr_assert_eq(lease_decide(&ask, &r), LEASE_OTHER_CONNECTOR);
    r = row();
    (void)base_copy(r.spec.tenant, sizeof r.spec.tenant, "other");
    cr_assert_eq(lease_decide(&ask, &r), LEASE_OTHER_CONNECTOR);
    r = row();
    (void)base_copy(r.spec.connector, sizeof r.spec.connector, "other");
    cr_assert_eq(lease_decide(&ask, &r), LEASE_OTHER_CONNECTOR);
    r = row();
    (void)base_copy(r.spec.vpc, sizeof r.spec.vpc, "other");
    cr_assert_eq(lease_decide(&ask, &r), LEASE_OTHER_VPC);
    r = row();
    r.spec.prefix.addr.b[11] ^= 1;
    cr_assert_eq(lease_decide(&ask, &r), LEASE_OTHER_VPC);
    ask.op = LEASE_CLOSING; /* any row of the connector */
    cr_assert_eq(lease_decide(&ask, &r), LEASE_OK);
    ask.target = NULL;
    cr_assert_eq(lease_decide(&ask, &r), LEASE_OK);
    r.spec.epoch = ask.epoch = LEASE_EPOCH_MAX;
    cr_assert_eq(lease_decide(&ask, &r), LEASE_EPOCH_FULL);
}

Test(lease_row, a_release_has_landed_when_all_of_it_is_there)
{
    struct contract_claim r = row();
    struct lease_attempt a = {
        .op = LEASE_RELEASE, .uid = r.meta.uid, .rv = "100", .lease_uuid = r.spec.lease_uuid, .epoch = 3};
    cr_assert_eq(lease_outcome_of(&a, &r), LEASE_MAY_LAND, "not released, and the version has not moved");
    r.spec.release_time = 1;
    cr_assert_eq(lease_outcome_of(&a, &r), LEASE_LANDED);
    a.epoch = 2;
    cr_assert_eq(lease_outcome_of(&a, &r), LEASE_MAY_LAND, "of another epoch");
    a.epoch = 3;
    a.lease_uuid.b[0] = 8;
    cr_assert_eq(lease_outcome_of(&a, &r), LEASE_MAY_LAND, "of another lease");
    (void)base_copy(r.meta.rv, sizeof r.meta.rv, "101");
    cr_assert_eq(lease_outcome_of(&a, &r), LEASE_OVER);
    cr_assert_eq(lease_outcome_of(&a, NULL), LEASE_OVER);
}
