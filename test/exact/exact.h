/* SPDX-License-Identifier: Apache-2.0
 *
 * exact.h - exact checks of the small pure functions on which ownership rests.
 *
 * Each check compares one function with an oracle of another make (128-bit arithmetic, a plain table) over a
 * whole small domain and over the product of all boundary values. A check gets the functions by pointer, so
 * that the same check also runs against wrong variants: each of those has to be found.
 */
#ifndef EXACT_H
#define EXACT_H

#include "lease/deadline.h"
#include "lease/row.h"

struct exact_fns {
    base_time (*add)(base_time a, base_time b);
    base_time (*until)(base_time t0, int32_t lease_s, base_time guard);
    base_time (*session_deadline)(const struct lease_facts *f, enum lease_part *ret_part);
    base_time (*wait)(const struct contract_timing *t, int32_t max_lease_seconds);
    base_time (*wait_end)(int32_t max_lease_s, base_time first_seen, const struct contract_timing *t);
    bool (*earlier_over)(int64_t epoch, int64_t closed_epoch, int32_t max_lease_s, base_time first_seen,
                         base_time now, const struct contract_timing *t);
    int (*generation_cmp)(const struct lease_generation *a, const struct lease_generation *b);
    int (*rv_cmp)(const char *a, const char *b, int *ret);
    enum lease_reason (*decide)(const struct lease_ask *ask, const struct contract_claim *row);
    enum lease_outcome (*outcome)(const struct lease_attempt *a, const struct contract_claim *row);
    enum lease_outcome (*instance_outcome)(const struct lease_instance_attempt *a,
                                           const struct contract_instance *row);
};

/* NULL, or a text (static storage of the check) that names the first case that is wrong. *n is raised by the
 * number of cases looked at. */
typedef const char *exact_check(const struct exact_fns *f, uint64_t *n);

exact_check exact_add, exact_until, exact_session_deadline, exact_wait, exact_wait_end, exact_earlier_over,
    exact_generation, exact_rv, exact_decide, exact_outcome, exact_instance_outcome;

struct exact_wrong {
    const char *name;
    exact_check *check;
    void (*set)(struct exact_fns *f);
};
extern const struct exact_wrong exact_wrongs[];
extern const unsigned exact_wrongs_n;

#endif
