/* SPDX-License-Identifier: Apache-2.0 */
#include "lease/deadline.h"
#include "lease/row.h"

#include <criterion/criterion.h>
#include <string.h>

#define S BASE_SEC

static struct lease_facts facts(void)
{
    return (struct lease_facts){.authority_t0 = 1000 * S,
                                .grant = 30 * S,
                                .renewed = 1000 * S,
                                .claim_t0 = 1000 * S,
                                .service_until = 5000 * S,
                                .instance_lease_s = 30,
                                .row_lease_s = 30,
                                .guard = 2 * S};
}

Test(lease_deadline, is_the_least_of_its_parts)
{
    enum lease_part part;
    struct lease_facts f = facts();
    cr_assert_eq(lease_session_deadline(&f, &part), 1028 * S);
    cr_assert_eq(part, LEASE_PART_RENEWAL);

    f = facts();
    f.authority_t0 = 990 * S;
    cr_assert_eq(lease_session_deadline(&f, &part), 1020 * S);
    cr_assert_eq(part, LEASE_PART_AUTHORITY);

    f = facts();
    f.grant = 6 * S;
    cr_assert_eq(lease_session_deadline(&f, &part), 1006 * S);
    cr_assert_eq(part, LEASE_PART_AUTHORITY);

    f = facts();
    f.renewed = 985 * S;
    cr_assert_eq(lease_session_deadline(&f, &part), 1013 * S);
    cr_assert_eq(part, LEASE_PART_RENEWAL);

    f = facts();
    f.claim_t0 = 985 * S;
    cr_assert_eq(lease_session_deadline(&f, &part), 1013 * S);
    cr_assert_eq(part, LEASE_PART_CLAIM);

    f = facts();
    f.service_until = 1001 * S;
    cr_assert_eq(lease_session_deadline(&f, &part), 1001 * S);
    cr_assert_eq(part, LEASE_PART_SERVICE);
}

Test(lease_deadline, takes_the_smaller_lease)
{
    struct lease_facts f = facts();
    f.instance_lease_s = 300;
    f.grant = 300 * S;
    cr_assert_eq(lease_session_deadline(&f, NULL), 1028 * S);
    f.row_lease_s = 10;
    cr_assert_eq(lease_session_deadline(&f, NULL), 1008 * S);
    f.instance_lease_s = 10;
    f.row_lease_s = 300;
    cr_assert_eq(lease_session_deadline(&f, NULL), 1008 * S);
}

Test(lease_deadline, what_was_never_proved_is_past)
{
    for (int i = 0; i < 4; i++) {
        struct lease_facts f = facts();
        if (i == 0)
            f.authority_t0 = 0;
        if (i == 1)
            f.renewed = 0;
        if (i == 2)
            f.claim_t0 = 0;
        if (i == 3)
            f.service_until = 0;
        cr_assert_eq(lease_session_deadline(&f, NULL), 0, "%d", i);
    }
}

Test(lease_deadline, sticks_instead_of_wrapping)
{
    struct lease_facts f = facts();
    f.authority_t0 = f.renewed = f.claim_t0 = f.service_until = BASE_TIME_NEVER - 1;
    cr_assert_gt(lease_session_deadline(&f, NULL), BASE_TIME_NEVER - 10 * S);
    cr_assert_eq(lease_until(5 * S, 0, 0), 0);
    cr_assert_eq(lease_until(-5, 30, 0), 0);
    f = facts();
    f.renewed = 1;
    f.instance_lease_s = f.row_lease_s = 1;
    cr_assert_eq(lease_session_deadline(&f, NULL), 0, "a negative part is past");
    for (enum lease_part p = LEASE_PART_AUTHORITY; p < LEASE_PART_N; p++)
        cr_assert_neq(lease_part_name(p)[0], 'U');
}

Test(lease_deadline, earlier_epochs)
{
    struct contract_timing t = contract_timing_default();
    base_time w = contract_wait(&t, 30);
    cr_assert(lease_earlier_over(1, 0, 30, 0, 0, &t), "nothing is before epoch 1");
    cr_assert(lease_earlier_over(5, 4, 30, 100 * S, 100 * S, &t), "confirmed");
    cr_assert(lease_earlier_over(5, 5, 30, 100 * S, 100 * S, &t));
    cr_assert_not(lease_earlier_over(5, 3, 30, 100 * S, 100 * S, &t), "a gap is no confirmation");
    cr_assert_not(lease_earlier_over(5, 3, 30, 100 * S, 100 * S + w - 1, &t));
    cr_assert(lease_earlier_over(5, 3, 30, 100 * S, 100 * S + w, &t), "exactly W");
    cr_assert_not(lease_earlier_over(5, 3, 60, 100 * S, 100 * S + w, &t), "W of the row's longest lease");
    cr_assert_not(lease_earlier_over(5, 3, 30, 0, 1000000 * S, &t), "not seen yet");
    cr_assert_eq(lease_wait_end(30, 0, &t), BASE_TIME_NEVER);
}

Test(lease_deadline, order_of_generations)
{
    struct lease_generation a = {.created = 5, .epoch = 3, .counter = 2}, b = a;
    cr_assert_eq(lease_generation_cmp(&a, &b), 0);
    b.counter = 3;
    cr_assert_lt(lease_generation_cmp(&a, &b), 0);
    cr_assert_gt(lease_generation_cmp(&b, &a), 0);
    a.epoch = 4;
    cr_assert_gt(lease_generation_cmp(&a, &b), 0, "the epoch is before the counter");
    b.uid.b[0] = 1;
    cr_assert_lt(lease_generation_cmp(&a, &b), 0, "the object is before the epoch");
    a.created = 6;
    cr_assert_gt(lease_generation_cmp(&a, &b), 0, "its creation is before all");
}

Test(lease_deadline, every_name_is_a_name)
{
    for (int r = LEASE_OK; r <= LEASE_EPOCH_FULL; r++)
        cr_assert_str_neq(lease_reason_name((enum lease_reason)r), "Unknown");
    for (int o = LEASE_ACQUIRE; o <= LEASE_RELEASE; o++)
        cr_assert_str_neq(lease_op_name((enum lease_op)o), "none");
}
