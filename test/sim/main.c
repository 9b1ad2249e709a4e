/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct sim_world *w = sim_world_new();
    struct sim_plan p;
    struct sim_result r;
    struct timespec a, b;
    uint64_t from = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
             n = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    bool trace = argc > 3;
    uint64_t events = 0, take = 0, dbl = 0, bad = 0;
    double span = 0, cpu, rec = 0, maxrec = 0;
    uint64_t fired[SIM_FAULT_N] = {0};

    mallopt(M_MMAP_THRESHOLD, 1 << 28);
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (uint64_t s = from; s < from + n; s++) {
        sim_plan_swarm(&p, s);
        sim_run(w, &p, trace, &r);
        events += r.events;
        span += (double)r.span / 1e9;
        take += r.takeovers > 0;
        dbl += r.doubles > 0;
        for (int i = 0; i < SIM_FAULT_N; i++)
            fired[i] += r.fired[i];
        rec += (double)r.recovery / 1e9;
        if ((double)r.recovery / 1e9 > maxrec)
            maxrec = (double)r.recovery / 1e9;
        if (r.violation) {
            bad++;
            printf("seed %llu at %.6f: %s: %s\n", (unsigned long long)s, (double)r.at / 1e9, r.violation,
                   r.detail);
        }
        if (trace)
            fputs(w->story.data ? w->story.data : "", stdout);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    cpu = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
    printf("%llu runs, %llu bad; %.0f events, %.1f s each; %.3f ms CPU per run, %.3f ms per 60 s; takeover "
           "%.1f %%, double %.1f %%, recovery %.1f s, at most %.1f s\n",
           (unsigned long long)n, (unsigned long long)bad, (double)events / (double)n, span / (double)n,
           cpu / (double)n, cpu / span * 60, 100.0 * (double)take / (double)n,
           100.0 * (double)dbl / (double)n, rec / (double)n, maxrec);
    if (n >= 100)
        for (int i = 1; i < SIM_FAULT_N; i++)
            printf("%s %llu; ", sim_fault_name((enum sim_fault)i), (unsigned long long)fired[i]);
    printf("\n");
    sim_world_free(w);
    return bad != 0;
}
