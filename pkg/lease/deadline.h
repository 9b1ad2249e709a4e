/* SPDX-License-Identifier: Apache-2.0
 *
 * lease/deadline.h - until when: the session deadline's four parts, the wait after a takeover, order of
 * generations.
 *
 * Pure arithmetic on CLOCK_BOOTTIME (ns) that sticks at its ends instead of wrapping. A part that was never
 * proved is 0, which is always in the past. Source: contract sections 1, 6, 7 and 9.
 */
#ifndef LEASE_DEADLINE_H
#define LEASE_DEADLINE_H

#include "contract/contract.h"

enum lease_part {
    LEASE_PART_AUTHORITY = 0,
    LEASE_PART_RENEWAL,
    LEASE_PART_CLAIM,
    LEASE_PART_SERVICE,
    LEASE_PART_N
};
const char *lease_part_name(
    enum lease_part p); /* "GrantExpired", "LeaseExpired", "ClaimProofExpired", "ServiceExpired" */

struct lease_facts {          /* 0 = never */
    base_time authority_t0;   /* older one of the bindings' and the services' proof */
    base_time grant;          /* how long one authority proof is good */
    base_time renewed;        /* boot time of the last confirmed renewal */
    base_time claim_t0;       /* last claim proof */
    base_time service_until;  /* validUntil on this clock */
    int32_t instance_lease_s; /* L is the smaller of the two */
    int32_t row_lease_s;
    base_time guard;
    bool permit;            /* the policy gives an end of its own (authority_until): … */
    base_time permit_until; /* … part of the authority's */
};
/* The earliest part; *ret_part (may be NULL) tells which. 0 when one was never proved. */
base_time lease_session_deadline(const struct lease_facts *f, enum lease_part *ret_part);
/* No lease is longer, whatever a row says: the CRD and the configuration refuse it, and a receiver does not
 * believe it. */
#define LEASE_SECONDS_MAX 300
/* t0 + lease - guard; 0 when t0 is 0. */
base_time lease_until(base_time t0, int32_t lease_s, base_time guard);

/* Are all epochs before this one over (contract section 7, condition 4)? `first_seen` is when this process
 * first saw this (uid, epoch, leaseUUID); 0 = not yet. */
bool lease_earlier_over(int64_t epoch, int64_t closed_epoch, int32_t max_lease_s, base_time first_seen,
                        base_time now, const struct contract_timing *t);
/* When the wait ends: first_seen + W; BASE_TIME_NEVER when it was not seen yet. */
base_time lease_wait_end(int32_t max_lease_s, base_time first_seen, const struct contract_timing *t);

struct lease_generation { /* contract section 1 */
    base_wall created;    /* of the claim */
    struct base_uuid uid;
    int64_t epoch;
    uint64_t counter;
};
/* <0, 0, >0 */
int lease_generation_cmp(const struct lease_generation *a, const struct lease_generation *b);

#endif
