/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/contract.h"
#include "base/cleanup.h"

#include <stddef.h>

#define MILLION 1000000

struct contract_timing contract_timing_default(void)
{
    return (struct contract_timing){
        .lease = 30 * BASE_SEC,
        .interval = 10 * BASE_SEC,
        .guard = 2 * BASE_SEC,
        .gate_lag = 500 * BASE_MS,
        .grant = 30 * BASE_SEC,
        .quiesce = 1 * BASE_SEC,
        .gap = 500 * BASE_MS,
        .wall_skew = 2 * BASE_SEC,
        .rate_ppm = 1000,
    };
}

int contract_timing_check(const struct contract_timing *t, struct base_err *err)
{
    static const struct {
        const char *name;
        size_t at;
        base_time lo, hi, unit;
        const char *unit_name;
    } rows[] = {
        {"lease duration", offsetof(struct contract_timing, lease), 10 * BASE_SEC, 300 * BASE_SEC, BASE_MS,
         "ms"},
        {"renew and proof interval", offsetof(struct contract_timing, interval), 100 * BASE_MS,
         100 * BASE_SEC, BASE_MS, "ms"},
        {"provider guard", offsetof(struct contract_timing, guard), 500 * BASE_MS, 60 * BASE_SEC, BASE_MS,
         "ms"},
        {"gate lag", offsetof(struct contract_timing, gate_lag), 0, 10 * BASE_SEC, BASE_MS, "ms"},
        {"grant", offsetof(struct contract_timing, grant), 6 * BASE_SEC, 30 * BASE_SEC, BASE_MS, "ms"},
        {"quiesce bound", offsetof(struct contract_timing, quiesce), 10 * BASE_MS, 1 * BASE_SEC, BASE_MS,
         "ms"},
        {"heartbeat gap", offsetof(struct contract_timing, gap), 200 * BASE_MS, 500 * BASE_MS, BASE_MS, "ms"},
        {"wall clock skew bound", offsetof(struct contract_timing, wall_skew), 0, 60 * BASE_SEC, BASE_MS,
         "ms"},
        {"clock rate bound", offsetof(struct contract_timing, rate_ppm), 0, 100000, 1, "ppm"},
    };
    base_time third;

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        base_time v;

        memcpy(&v, (const char *)t + rows[i].at, sizeof v);
        if (v < rows[i].lo || v > rows[i].hi)
            return base_err_set(err, BASE_EINVAL, "%s: %lld %s is out of range; %lld to %lld %s are allowed",
                                rows[i].name, (long long)(v / rows[i].unit), rows[i].unit_name,
                                (long long)(rows[i].lo / rows[i].unit),
                                (long long)(rows[i].hi / rows[i].unit), rows[i].unit_name);
    }
    third = base_time_min(t->lease, t->grant) / 3;
    if (t->interval > third)
        return base_err_set(
            err, BASE_EINVAL,
            "renew and proof interval: %lld ms is too long; a third of the lease and of the smallest "
            "grant, %lld ms, is the most",
            (long long)(t->interval / BASE_MS), (long long)(third / BASE_MS));
    if (t->lease - t->guard <= t->interval)
        return base_err_set(
            err, BASE_EINVAL,
            "provider guard: %lld ms leaves nothing of the lease; less than %lld ms is needed",
            (long long)(t->guard / BASE_MS), (long long)((t->lease - t->interval) / BASE_MS));
    return BASE_OK;
}

/* Exact: (1e6+r)(maxL*1e6 + G(1e6-r)) / (1e6(1e6-r)) in two divisions, each remainder carried, rounded up
 * once. With maxL <= 300 s, G <= 10 s and r <= 100000 every product stays below 2^63. */
base_time contract_wait(const struct contract_timing *t, int32_t max_lease_seconds)
{
    uint64_t r = (uint64_t)t->rate_ppm, d = MILLION - r, n, q, rem, part, sum;

    if (max_lease_seconds < 0 || max_lease_seconds > 300 || t->rate_ppm < 0 || t->rate_ppm > 100000 ||
        t->gate_lag < 0 || t->gate_lag > 10 * BASE_SEC)
        return BASE_TIME_NEVER; /* nothing that the contract allows: never over, instead of over too early */
    n = (uint64_t)max_lease_seconds * (uint64_t)BASE_SEC * MILLION + (uint64_t)t->gate_lag * d;
    q = n / d;
    rem = n % d;
    part = (MILLION + r) * rem;
    sum = (MILLION + r) * q + part / d;
    return (base_time)(sum / MILLION + (sum % MILLION || part % d ? 1 : 0)) + 2 * BASE_SEC;
}
