/* SPDX-License-Identifier: Apache-2.0
 *
 * Five minutes is the longest lease, with the CRD and the configuration bypassed.
 */
#include "lease/deadline.h"

#include <criterion/criterion.h>

Test(lease_cap, no_row_makes_a_lease_longer_than_five_minutes)
{
    const base_time t = 1000 * BASE_SEC;
    struct lease_facts f = {.authority_t0 = t,
                            .grant = 3600 * BASE_SEC,
                            .renewed = t,
                            .claim_t0 = t,
                            .service_until = t + 3600 * BASE_SEC,
                            .instance_lease_s = 3600,
                            .row_lease_s = 3600,
                            .guard = 2 * BASE_SEC};
    enum lease_part part;
    cr_assert_eq(lease_session_deadline(&f, &part), t + 298 * BASE_SEC);
    cr_assert(part == LEASE_PART_RENEWAL || part == LEASE_PART_CLAIM);
    cr_assert_eq(lease_until(t, 300, 0), t + 300 * BASE_SEC);
    cr_assert_eq(lease_until(t, 301, 0), t + 300 * BASE_SEC);
    cr_assert_eq(lease_until(t, 10, 0), t + 10 * BASE_SEC);
}

Test(lease_cap, a_permit_ends_earlier_never_later)
{
    const base_time t = 1000 * BASE_SEC;
    struct lease_facts f = {.authority_t0 = t,
                            .grant = 30 * BASE_SEC,
                            .renewed = t,
                            .claim_t0 = t,
                            .service_until = t + 100 * BASE_SEC,
                            .instance_lease_s = 60,
                            .row_lease_s = 60,
                            .permit = true,
                            .permit_until = t + 5 * BASE_SEC};
    enum lease_part part;
    cr_assert_eq(lease_session_deadline(&f, &part), t + 5 * BASE_SEC);
    cr_assert_eq(part, LEASE_PART_AUTHORITY);
    f.permit_until = BASE_TIME_NEVER;
    cr_assert_eq(lease_session_deadline(&f, &part), t + 30 * BASE_SEC);
    f.permit_until = 0;
    cr_assert_eq(lease_session_deadline(&f, &part), 0);
}
