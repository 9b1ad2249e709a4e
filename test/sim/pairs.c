/* SPDX-License-Identifier: Apache-2.0
 *
 * S10, isolation, by paired runs: two worlds that differ in one thing only, that connector 1 is revoked (its
 * binding is suspended, or deleted) in the second. Whatever the others on the same instances experience must
 * be the same: their admissions, ends, epochs and gates, in the same order. Times may differ by a jitter that
 * the first one's absence shifts in a core's generator; gaps in forwarding may not.
 */
#include "sim.h"

#include <stdio.h>

static void quiet(struct sim_plan *p, uint64_t seed)
{
    struct base_prng g = {sim_mix(seed, 31337)};

    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->nodes = 2;
    p->clients = 2 + (int)base_prng_below(&g, 3);
    for (int i = 0; i < SIM_NODES; i++)
        p->lease_s[i] = 10 + 5 * (int32_t)base_prng_below(&g, 3);
    p->grant_s = 30;
    p->valid_s = 120;
    for (int i = 1; i < p->clients; i++)
        p->first[i] = (int)base_prng_below(&g, 2);
    /* the others move now and then: their handovers must go as if nothing had happened to the first */
    for (unsigned i = 0; i < 3; i++) {
        struct sim_act *a = &p->act[p->n_acts++];

        *a = (struct sim_act){.at = (6 + 8 * (base_time)i) * BASE_SEC, .what = SIM_F_MOVE_QUIET, .node = -1};
        a->client = 1 + (int)base_prng_below(&g, (uint64_t)p->clients - 1);
        a->node = (int)base_prng_below(&g, 2);
    }
    p->faults_end = 40 * BASE_SEC;
    p->end = 45 * BASE_SEC;
}

static void revoke(struct sim_plan *p, uint64_t seed)
{
    struct base_prng g = {sim_mix(seed, 271828)};
    struct sim_act a = {
        .at = (base_time)base_prng_below(&g, 24) * BASE_SEC + 2 * BASE_SEC, .node = -1, .client = 0};
    unsigned k = p->n_acts++;

    a.what = base_prng_below(&g, 2) ? SIM_F_BINDING_SUSPEND : SIM_F_BINDING_DELETE;
    a.span = 60 * BASE_SEC; /* for the rest of the run */
    for (; k > 0 && p->act[k - 1].at > a.at; k--)
        p->act[k] = p->act[k - 1];
    p->act[k] = a;
}

/* Paired runs from `from`; returns the number of differences. Each world is given by the caller. */
unsigned sim_pairs(struct sim_world *a, struct sim_world *b, uint64_t count, uint64_t from)
{
    struct sim_plan p, q;
    struct sim_result r, s;
    unsigned bad = 0;

    for (uint64_t seed = from; seed < from + count && bad < 20; seed++) {
        quiet(&p, seed);
        q = p;
        revoke(&q, seed);
        sim_run(a, &p, false, &r);
        sim_run(b, &q, false, &s);
        for (int c = 1; c < p.clients; c++)
            if (memcmp(r.others[c].hash, s.others[c].hash, sizeof r.others[c].hash) != 0 ||
                s.others[c].lost > r.others[c].lost) {
                printf("S10: seed %llu: connector %d notices what happens to connector 1: %u events, then "
                       "%u; %u losses, then %u\n",
                       (unsigned long long)seed, c + 1, r.others[c].events, s.others[c].events,
                       r.others[c].lost, s.others[c].lost);
                bad++;
            }
        if (r.violation || s.violation) {
            printf("S10: seed %llu: %s\n", (unsigned long long)seed, r.violation ? r.violation : s.violation);
            bad++;
        }
        if (s.others[0].ended == r.others[0].ended) {
            printf("S10: seed %llu: connector 1 was revoked and did not notice\n", (unsigned long long)seed);
            bad++; /* a pair that shows nothing proves nothing */
        }
    }
    return bad;
}
