/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct sim_world *w = sim_world_new();
    struct sim_plan p = {.seed = 1,
                         .nodes = 2,
                         .clients = 1,
                         .lease_s = {30, 30},
                         .grant_s = 30,
                         .valid_s = 300,
                         .faults_end = 50 * BASE_SEC,
                         .end = 60 * BASE_SEC};
    struct sim_result r;
    struct timespec a, b;

    p.act[0] = (struct sim_act){.at = 20 * BASE_SEC, .what = SIM_F_MOVE_QUIET, .client = 0, .node = 1};
    p.n_acts = 1;
    clock_gettime(CLOCK_MONOTONIC, &a);
    sim_run(w, &p, argc > 1, &r);
    for (int i = 0; i < 1000 && argc < 2; i++)
        sim_run(w, &p, false, &r);
    clock_gettime(CLOCK_MONOTONIC, &b);
    if (argc > 1)
        fputs(w->story.data ? w->story.data : "", stdout);
    printf("%s events %llu span %.1f hash %016llx admits %u: %.3f ms per run\n",
           r.violation ? r.violation : "ok", (unsigned long long)r.events, (double)r.span / 1e9,
           (unsigned long long)r.hash, r.admits,
           ((b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6) / 1001);
    sim_world_free(w);
    return r.violation != NULL;
}
