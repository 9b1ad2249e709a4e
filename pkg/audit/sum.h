/* SPDX-License-Identifier: Apache-2.0
 *
 * audit/sum.h - which records are written as they come, and which are added up.
 *
 * Pure; time is an argument. Two kinds are summed, the others never:
 *   renew   per holder (object, epoch, leaseUUID): the first one is written, then one for all within `renew`
 *           (10 min), and one at each other event of the same object.
 *   reject  equal ones (reason, object, epoch, leaseUUID, credentialID): the first one is written at once,
 * the others within `reject` (10 s) as one. A reject whose effect is possible is always written. A sum
 * carries count, first and last; it is the record of the last one otherwise. So the number of events is the
 * sum over the records of count (1 where there is none). Bounded: beyond `max` different rejects at a time
 * they are summed per reason, without object and credential.
 */
#ifndef AUDIT_SUM_H
#define AUDIT_SUM_H

#include "audit/record.h"

struct audit_sum;
struct audit_sum_config {
    base_time renew, reject; /* 0: this kind is not summed */
    uint32_t max;            /* different sums at a time; 0 = 256 */
};
/* NULL when there is no memory. */
struct audit_sum *audit_sum_new(const struct audit_sum_config *cfg);
struct audit_sum *audit_sum_free(struct audit_sum *s);

enum audit_sum_verdict {
    AUDIT_SUM_WRITE = 1, /* write *r (it may have become a sum) */
    AUDIT_SUM_COUNTED,   /* nothing to write now: audit_sum_next has it later */
};
/* `must` writes a renew in any case (nothing is known of the disk). Before *r is written, what
 * audit_sum_next gives is. */
enum audit_sum_verdict audit_sum_offer(struct audit_sum *s, base_time now, struct audit_record *r, bool must);
/* The record of a renew that was asked to be written could not be made durable: the next one is written, too. */
void audit_sum_failed(struct audit_sum *s);
/* The next sum that is due (`all`: that has counted something). False: none. */
bool audit_sum_next(struct audit_sum *s, base_time now, bool all, struct audit_record *ret);
/* When one is due; BASE_TIME_NEVER. */
base_time audit_sum_wake(const struct audit_sum *s);
/* Events that were counted instead of written, so far. */
uint64_t audit_sum_counted(const struct audit_sum *s);

#endif
