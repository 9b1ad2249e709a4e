/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/contract.h"
#include "base/cleanup.h"

#include <criterion/criterion.h>

/* The formula in long double, for comparison. */
static long double formula(const struct contract_timing *t, int32_t max)
{
    long double r = (long double)t->rate_ppm / 1e6L;

    return (1 + r) * ((long double)max * 1e9L / (1 - r) + (long double)t->gate_lag) + 2e9L;
}

Test(contract_timing, wait_is_the_contract_formula_rounded_up)
{
    static const int64_t ppm[] = {0, 1, 50, 1000, 1001, 20000, 99999, 100000};
    static const base_time lag[] = {0, 1, 500 * BASE_MS, 10 * BASE_SEC};
    static const int32_t max[] = {0, 1, 10, 30, 77, 299, 300};

    for (size_t i = 0; i < BASE_LEN(ppm); i++)
        for (size_t j = 0; j < BASE_LEN(lag); j++)
            for (size_t k = 0; k < BASE_LEN(max); k++) {
                struct contract_timing t = contract_timing_default();
                long double want;
                base_time w;

                t.rate_ppm = ppm[i];
                t.gate_lag = lag[j];
                want = formula(&t, max[k]);
                w = contract_wait(&t, max[k]);
                cr_expect((long double)w >= want - 1e-6L && (long double)w < want + 1.000001L,
                          "ppm %lld lag %lld max %d: %lld, not %Lf", (long long)ppm[i], (long long)lag[j],
                          max[k], (long long)w, want);
            }
}

Test(contract_timing, default_wait_is_32_6_seconds)
{
    struct contract_timing t = contract_timing_default();

    cr_expect_eq(contract_wait(&t, 30), 32560560061, "1.001 * (30 s / 0.999 + 0.5 s) + 2 s = %lld",
                 (long long)contract_wait(&t, 30));
    cr_expect_eq(contract_wait(&t, 0), 2 * BASE_SEC + 500500000);
}

Test(contract_timing, nonsense_never_ends)
{
    struct contract_timing t = contract_timing_default();

    cr_expect_eq(contract_wait(&t, -1), BASE_TIME_NEVER);
    cr_expect_eq(contract_wait(&t, 301), BASE_TIME_NEVER);
    cr_expect_eq(contract_wait(&t, INT32_MAX), BASE_TIME_NEVER);
    t.rate_ppm = 1000000;
    cr_expect_eq(contract_wait(&t, 30), BASE_TIME_NEVER);
}

Test(contract_timing, check_names_parameter_value_and_range)
{
    static const struct {
        size_t at;
        base_time value;
        const char *says; /* NULL = accepted */
    } rows[] = {
        {offsetof(struct contract_timing, lease), 9 * BASE_SEC, "lease duration: 9000 ms"},
        {offsetof(struct contract_timing, lease), 301 * BASE_SEC, "10000 to 300000"},
        {offsetof(struct contract_timing, lease), 300 * BASE_SEC, NULL},
        {offsetof(struct contract_timing, interval), 10 * BASE_SEC + 1, "interval"},
        {offsetof(struct contract_timing, interval), 5 * BASE_SEC, NULL},
        {offsetof(struct contract_timing, guard), 20 * BASE_SEC, "guard"},
        {offsetof(struct contract_timing, guard), 0, "guard"},
        {offsetof(struct contract_timing, gate_lag), -1, "gate lag"},
        {offsetof(struct contract_timing, grant), 31 * BASE_SEC, "grant: 31000 ms"},
        {offsetof(struct contract_timing, quiesce), 2 * BASE_SEC, "quiesce"},
        {offsetof(struct contract_timing, gap), 501 * BASE_MS, "gap"},
        {offsetof(struct contract_timing, wall_skew), -1, "skew"},
        {offsetof(struct contract_timing, rate_ppm), 100001, "clock rate bound: 100001 ppm"},
    };
    struct contract_timing t = contract_timing_default();
    struct base_err err = {0};

    cr_expect_eq(contract_timing_check(&t, &err), BASE_OK, "%s", err.msg);
    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        int rc;

        t = contract_timing_default();
        memcpy((char *)&t + rows[i].at, &rows[i].value, sizeof rows[i].value);
        rc = contract_timing_check(&t, &err);
        cr_expect_eq(rc, rows[i].says ? BASE_EINVAL : BASE_OK, "row %zu: %s", i, err.msg);
        if (rows[i].says)
            cr_expect(strstr(err.msg, rows[i].says), "row %zu: '%s' does not say '%s'", i, err.msg,
                      rows[i].says);
    }
}
