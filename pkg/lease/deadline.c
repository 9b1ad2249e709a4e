/* SPDX-License-Identifier: Apache-2.0 */
#include "lease/deadline.h"

#include "base/mutant.h"

#include <string.h>

const char *lease_part_name(enum lease_part p)
{
    switch (p) {
    case LEASE_PART_AUTHORITY:
        return "GrantExpired";
    case LEASE_PART_RENEWAL:
        return "LeaseExpired";
    case LEASE_PART_CLAIM:
        return "ClaimProofExpired";
    case LEASE_PART_SERVICE:
        return "ServiceExpired";
    case LEASE_PART_N:
        break;
    }
    return "Unknown";
}

base_time lease_until(base_time t0, int32_t lease_s, base_time guard)
{
    if (t0 <= 0 || lease_s <= 0)
        return 0;
    if (lease_s > LEASE_SECONDS_MAX && !base_mutant("deadline.lease-cap"))
        lease_s = LEASE_SECONDS_MAX;
    base_time until = base_time_add(t0, (base_time)lease_s * BASE_SEC);
    return base_mutant("deadline.guard") ? until : base_time_add(until, -guard);
}

base_time lease_session_deadline(const struct lease_facts *f, enum lease_part *ret_part)
{
    int32_t lease_s = f->instance_lease_s < f->row_lease_s ? f->instance_lease_s : f->row_lease_s;
    if (base_mutant("deadline.smaller-lease"))
        lease_s = f->instance_lease_s;
    base_time part[LEASE_PART_N] = {
        [LEASE_PART_AUTHORITY] = f->authority_t0 > 0 ? base_time_add(f->authority_t0, f->grant) : 0,
        [LEASE_PART_RENEWAL] = lease_until(f->renewed, lease_s, f->guard),
        [LEASE_PART_CLAIM] = lease_until(f->claim_t0, lease_s, f->guard),
        [LEASE_PART_SERVICE] = f->service_until,
    };
    if (f->permit && !base_mutant("deadline.permit"))
        part[LEASE_PART_AUTHORITY] = base_time_min(part[LEASE_PART_AUTHORITY], f->permit_until);
    if (base_mutant("deadline.authority"))
        part[LEASE_PART_AUTHORITY] = BASE_TIME_NEVER;
    if (base_mutant("deadline.renewal"))
        part[LEASE_PART_RENEWAL] = BASE_TIME_NEVER;
    if (base_mutant("deadline.claim"))
        part[LEASE_PART_CLAIM] = BASE_TIME_NEVER;
    if (base_mutant("deadline.service"))
        part[LEASE_PART_SERVICE] = BASE_TIME_NEVER;
    enum lease_part least = LEASE_PART_AUTHORITY;
    for (enum lease_part p = LEASE_PART_RENEWAL; p < LEASE_PART_N; p++)
        if (part[p] < part[least])
            least = p;
    if (ret_part)
        *ret_part = least;
    return part[least] > 0 ? part[least] : 0;
}

base_time lease_wait_end(int32_t max_lease_s, base_time first_seen, const struct contract_timing *t)
{
    if (first_seen <= 0)
        return BASE_TIME_NEVER;
    return base_time_add(first_seen, contract_wait(t, max_lease_s));
}

bool lease_earlier_over(int64_t epoch, int64_t closed_epoch, int32_t max_lease_s, base_time first_seen,
                        base_time now, const struct contract_timing *t)
{
    if (closed_epoch >= epoch - 1 || base_mutant("wait.none"))
        return true;
    return now >= lease_wait_end(max_lease_s, first_seen, t);
}

int lease_generation_cmp(const struct lease_generation *a, const struct lease_generation *b)
{
    if (a->created != b->created)
        return a->created < b->created ? -1 : 1;
    int uid = memcmp(a->uid.b, b->uid.b, sizeof a->uid.b);
    if (uid != 0)
        return uid < 0 ? -1 : 1;
    if (a->epoch != b->epoch)
        return a->epoch < b->epoch ? -1 : 1;
    if (a->counter != b->counter)
        return a->counter < b->counter ? -1 : 1;
    return 0;
}
