/* SPDX-License-Identifier: Apache-2.0
 *
 * exact: the real functions pass their exact checks, and each wrong variant fails its own.
 */
#include <stdio.h>
#include <time.h>

#include "exact.h"

static const struct {
    const char *name;
    exact_check *check;
} checks[] = {
    {"base_time_add", exact_add},
    {"lease_until", exact_until},
    {"lease_session_deadline", exact_session_deadline},
    {"contract_wait", exact_wait},
    {"lease_wait_end", exact_wait_end},
    {"lease_earlier_over", exact_earlier_over},
    {"lease_generation_cmp", exact_generation},
    {"base_rv_cmp", exact_rv},
    {"lease_decide", exact_decide},
    {"lease_outcome_of", exact_outcome},
    {"lease_instance_outcome", exact_instance_outcome},
};

int main(void)
{
    const struct exact_fns real = {base_time_add,  lease_until,        lease_session_deadline, contract_wait,
                                   lease_wait_end, lease_earlier_over, lease_generation_cmp,   base_rv_cmp,
                                   lease_decide,   lease_outcome_of,   lease_instance_outcome};
    unsigned passed = 0, failed = 0;

    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        uint64_t n = 0;
        struct timespec a, b;
        const char *bad;

        clock_gettime(CLOCK_MONOTONIC, &a);
        bad = checks[i].check(&real, &n);
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("%-26s %10llu cases %6.2f s  %s\n", checks[i].name, (unsigned long long)n,
               (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9, bad ? bad : "ok");
        if (bad || n == 0)
            failed++;
        else
            passed++;
    }
    for (unsigned i = 0; i < exact_wrongs_n; i++) {
        struct exact_fns f = real;
        uint64_t n = 0;
        const char *bad;

        exact_wrongs[i].set(&f);
        bad = exact_wrongs[i].check(&f, &n);
        printf("  wrong %-32s %s%s\n", exact_wrongs[i].name, bad ? "found: " : "NOT FOUND", bad ? bad : "");
        if (bad)
            passed++;
        else
            failed++;
    }
    printf("exact: %u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}
