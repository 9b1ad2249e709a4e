/* SPDX-License-Identifier: Apache-2.0
 *
 * constants UNIT_MS: prints the model's constants, in units of UNIT_MS, from the product's own timing
 * parameters and its own formula for W (contract/contract.h, contract/timing.c). What the model may not
 * overrate is rounded down, what it may not underrate is rounded up.
 */
#include <stdio.h>
#include <stdlib.h>

#include "contract/contract.h"

static long long down(base_time t, base_time unit)
{
    return (long long)(t / unit);
}

static long long up(base_time t, base_time unit)
{
    return (long long)((t + unit - 1) / unit);
}

int main(int argc, char **argv)
{
    struct contract_timing t = contract_timing_default();
    struct base_err err = {0};
    char *end = NULL;
    long ms = argc == 2 ? strtol(argv[1], &end, 10) : 0;
    base_time unit = ms * BASE_MS, wait;

    if (ms <= 0 || ms > 300000 || *end != '\0') {
        fprintf(
            stderr,
            "usage: constants UNIT_MS: how many milliseconds one unit of the model's time is (1-300000)\n");
        return 2;
    }
    if (contract_timing_check(&t, &err)) {
        fprintf(stderr, "constants: the default timing is refused: %s\n", err.msg);
        return 1;
    }
    wait = contract_wait(&t, (int32_t)(t.lease / BASE_SEC));
    if (t.lease % unit || t.grant % unit || up(wait, unit) > 250) {
        fprintf(
            stderr,
            "constants: %ld ms is no unit: lease %lld ms and grant %lld ms must be multiples of it, and W at "
            "most 250 units\n",
            ms, (long long)(t.lease / BASE_MS), (long long)(t.grant / BASE_MS));
        return 1;
    }
    printf("/* made by test/model/constants.c: units of %ld ms */\n", ms);
    printf("#define LEASE %lld\n", down(t.lease, unit));
    printf("#define GRANT %lld\n", down(t.grant, unit));
    printf("#define GUARD %lld\n", down(t.guard, unit));
    printf("#define GATE_LAG %lld\n", up(t.gate_lag, unit));
    printf("#define TAKEOVER_WAIT %lld\n", down(wait, unit));
    /* what a taker with the shortest lease of all would wait, if it asked itself instead of the row */
    printf("#define WAIT_OWN %lld\n", down(contract_wait(&t, 10), unit));
    /* by how much a clock may be wrong over W */
    printf("#define K %lld\n", up(wait / 1000000 * t.rate_ppm, unit));
    /* five minutes in the product; here only long enough to outlast a lease */
    printf("#define SERVICE %lld\n", up(t.lease, unit));
    return 0;
}
