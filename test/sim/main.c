/* SPDX-License-Identifier: Apache-2.0
 *
 * sim: the simulator's command line.
 *
 *   sim run COUNT [FROM] [JOBS]    random schedules; exit 1 on a violation or when they cover too little
 *   sim seed N                     one of them again, with its story
 *   sim first COUNT [FROM]         until the first violation: who caught it, after how many schedules
 *   sim scenario FILE...           scenario files
 *   sim story FILE                 one of them with its story
 *   sim hash COUNT [FROM]          hash of the traces, to compare compilers
 *   sim pairs COUNT [FROM]        S10: what is revoked for one connector, the others do not notice
 *   sim handover                   CPU time of a minute that holds a handover
 *   sim cells FILE                 state x event cells that runs with HOLDFAST_CELLS=FILE have reached (make
 * cells)
 */
#include "sim.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 8
#define FULL 100000 /* schedules that the bounds on coverage are meant for */
#define MINUTES 4   /* that so many may take on two idle cores */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define TIMED 0 /* what a sanitizer costs says nothing */
#else
#define TIMED 1
#endif

struct sum { /* of one job, in shared memory */
    uint64_t runs, events, takeovers, doubles, admits, handoffs, fired[SIM_FAULT_N];
    base_time span, recovery_max;
    double recovery, cpu;
    uint64_t bad_seed, bad, cells[SESSION_CELL_WORDS];
    char violation[100];
};

static double cpu_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double wall_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- one failing run, small, with its story ---- */
static void tell(struct sim_world *w, struct sim_plan *p, const char *violation, bool shrink)
{
    struct sim_result r;
    struct base_buf text;
    unsigned tries = 0;

    if (shrink)
        tries = sim_shrink(w, p, violation);
    base_buf_init(&text, (size_t)1 << 16);
    (void)sim_plan_write(&text, p);
    sim_run(w, p, true, &r);
    printf("---- story%s ----\n%s", shrink ? ", shrunk" : "", w->story.data ? w->story.data : "");
    printf("---- plan (a scenario file; %u tries to make it small) ----\n%s", tries,
           text.data ? text.data : "");
    if (r.violation)
        printf("---- %s: %s\n", r.violation, r.detail);
    base_buf_fini(&text);
}

/* ---- random schedules ---- */
static void job(struct sum *s, uint64_t from, uint64_t count, unsigned index, unsigned jobs)
{
    struct sim_world *w = sim_world_new();
    struct sim_plan p;
    struct sim_result r;

    for (uint64_t i = index; i < count; i += jobs) {
        sim_plan_swarm(&p, from + i);
        sim_run(w, &p, false, &r);
        s->runs++;
        s->events += r.events;
        s->span += r.span;
        s->takeovers += r.takeovers > 0;
        s->doubles += r.doubles > 0;
        s->admits += r.admits;
        s->handoffs += r.handoffs;
        for (unsigned k = 0; k < SESSION_CELL_WORDS; k++)
            s->cells[k] |= r.cells[k];
        s->recovery += (double)r.recovery / 1e9;
        s->recovery_max = base_time_max(s->recovery_max, r.recovery);
        for (unsigned f = 0; f < SIM_FAULT_N; f++)
            s->fired[f] += r.fired[f];
        if (r.violation) {
            if (s->bad++ == 0) {
                s->bad_seed = from + i;
                (void)base_fmt(s->violation, sizeof s->violation, "%s", r.violation);
            }
            printf("seed %llu at %.6f s: %s: %s\n", (unsigned long long)(from + i), (double)r.at / 1e9,
                   r.violation, r.detail);
            (void)fflush(stdout);
            if (s->bad >= 20)
                break;
        }
    }
    s->cpu = cpu_now();
    sim_world_free(w);
}

static void add(struct sum *to, const struct sum *s)
{
    to->runs += s->runs;
    to->events += s->events;
    to->span += s->span;
    to->takeovers += s->takeovers;
    to->doubles += s->doubles;
    to->admits += s->admits;
    to->handoffs += s->handoffs;
    to->recovery += s->recovery;
    to->recovery_max = base_time_max(to->recovery_max, s->recovery_max);
    to->cpu += s->cpu;
    for (unsigned k = 0; k < SESSION_CELL_WORDS; k++)
        to->cells[k] |= s->cells[k];
    for (unsigned f = 0; f < SIM_FAULT_N; f++)
        to->fired[f] += s->fired[f];
    if (s->bad && (!to->bad || s->bad_seed < to->bad_seed)) {
        to->bad_seed = s->bad_seed;
        memcpy(to->violation, s->violation, sizeof to->violation);
    }
    to->bad += s->bad;
}

/* Did the faults come often enough for "no violation" to mean something? */
static unsigned covers(const struct sum *s, uint64_t count)
{
    uint64_t least = count >= FULL ? 1000 : count * 1000 / FULL;
    unsigned missing = 0;

    for (unsigned f = 1; f < SIM_FAULT_N; f++) {
        bool off = sim_fault_off((enum sim_fault)f);

        if (!sim_fault_name((enum sim_fault)f))
            continue;
        if (!off && s->fired[f] < least) {
            printf("fault %s came %llu times, at least %llu are wanted\n", sim_fault_name((enum sim_fault)f),
                   (unsigned long long)s->fired[f], (unsigned long long)least);
            missing++;
        }
    }
    if (s->takeovers * 100 < count * 30) {
        printf("takeovers in %.1f %% of the runs, at least 30 %% are wanted\n",
               100.0 * (double)s->takeovers / (double)count);
        missing++;
    }
    if (s->doubles * 100 < count * 5) {
        printf("double takeovers in %.1f %% of the runs, at least 5 %% are wanted\n",
               100.0 * (double)s->doubles / (double)count);
        missing++;
    }
    return missing;
}

/* By CPU time: a busy machine is no slow simulator. */
static bool too_slow(const struct sum *s)
{
    double minutes = s->cpu / (double)s->runs * FULL / 2 / 60;

    printf("%d schedules cost %.1f minutes on two cores, at most %d are wanted\n", FULL, minutes, MINUTES);
    return TIMED && minutes > MINUTES;
}

static int run(uint64_t count, uint64_t from, unsigned jobs)
{
    struct sum *sums =
        mmap(NULL, JOBS_MAX * sizeof *sums, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sum all = {0};
    double began = wall_now();
    unsigned failed = 0, missing;

    if (sums == MAP_FAILED)
        return 2;
    (void)fflush(stdout);
    for (unsigned i = 0; i < jobs; i++) {
        pid_t pid = fork();

        if (pid < 0)
            return 2;
        if (pid == 0) {
            job(&sums[i], from, count, i, jobs);
            (void)fflush(stdout);
            exit(0); /* not _exit: a --coverage build writes its counts now */
        }
    }
    for (unsigned i = 0; i < jobs; i++) {
        int status = 0;

        (void)wait(&status);
        failed += status != 0;
    }
    for (unsigned i = 0; i < jobs; i++)
        add(&all, &sums[i]);
    printf("schedules %llu to %llu: %.0f events and %.1f s each; %llu sessions, %llu handoffs on one pod\n",
           (unsigned long long)from, (unsigned long long)(from + count - 1),
           (double)all.events / (double)all.runs, (double)all.span / 1e9 / (double)all.runs,
           (unsigned long long)all.admits, (unsigned long long)all.handoffs);
    printf("%.0f s on %u cores, %.3f ms of CPU for each schedule, %.3f ms for a simulated minute\n",
           wall_now() - began, jobs, all.cpu * 1e3 / (double)all.runs,
           all.cpu * 1e3 / ((double)all.span / 60e9));
    printf("takeover in %.1f %%, double takeover in %.1f %% of the runs; back after the faults in %.1f s, at "
           "most %.1f s\n",
           100.0 * (double)all.takeovers / (double)all.runs, 100.0 * (double)all.doubles / (double)all.runs,
           all.recovery / (double)all.runs, (double)all.recovery_max / 1e9);
    for (unsigned f = 1, col = 0; f < SIM_FAULT_N; f++)
        if (sim_fault_name((enum sim_fault)f))
            printf("%s%s %llu",
                   col++ % 8  ? ", "
                   : col == 1 ? ""
                              : "\n",
                   sim_fault_name((enum sim_fault)f), (unsigned long long)all.fired[f]);
    printf("\n");
    missing = all.runs == count && !all.bad ? covers(&all, count) : 0;
    missing += too_slow(&all);
    failed += sim_cells_note(all.cells) != 0;
    if (all.bad) {
        struct sim_world *w = sim_world_new();
        struct sim_plan p;

        sim_plan_swarm(&p, all.bad_seed);
        tell(w, &p, all.violation, true);
        printf("seed %llu: %s; replay with SEED=%llu make sim\n", (unsigned long long)all.bad_seed,
               all.violation, (unsigned long long)all.bad_seed);
        sim_world_free(w);
    }
    printf("sim: %llu passed, %llu failed\n", (unsigned long long)(all.runs - all.bad),
           (unsigned long long)(all.bad + failed + missing));
    (void)munmap(sums, JOBS_MAX * sizeof *sums);
    return all.bad || failed || missing ? 1 : 0;
}

static int seed(uint64_t n)
{
    struct sim_world *w = sim_world_new();
    struct sim_plan p;
    struct sim_result r;

    sim_plan_swarm(&p, n);
    sim_run(w, &p, false, &r);
    tell(w, &p, r.violation, false);
    printf("seed %llu: hash %016llx, %llu events, %s\n", (unsigned long long)n, (unsigned long long)r.hash,
           (unsigned long long)r.events, r.violation ? r.violation : "no violation");
    sim_world_free(w);
    return r.violation ? 1 : 0;
}

/* For mutants: exit 1 and "check <tab> schedules" as soon as one is caught. */
static int first(uint64_t count, uint64_t from)
{
    struct sim_world *w = sim_world_new();
    struct sim_plan p;
    struct sim_result r;

    for (uint64_t i = 0; i < count; i++) {
        sim_plan_swarm(&p, from + i);
        sim_run(w, &p, false, &r);
        if (r.violation) {
            printf("%s\t%llu\t%llu\n", r.violation, (unsigned long long)(i + 1),
                   (unsigned long long)(from + i));
            return 1;
        }
    }
    sim_world_free(w);
    return 0;
}

static int hash(uint64_t count, uint64_t from)
{
    struct sim_world *w = sim_world_new();
    uint64_t h = 0;
    struct sim_plan p;
    struct sim_result r;

    for (uint64_t i = 0; i < count; i++) {
        sim_plan_swarm(&p, from + i);
        sim_run(w, &p, false, &r);
        h = (h ^ r.hash) * UINT64_C(0x100000001b3);
    }
    printf("%016llx\n", (unsigned long long)h);
    sim_world_free(w);
    return 0;
}

/* ---- scenarios ---- */
static char *slurp(const char *path, size_t *ret_n)
{
    FILE *f = fopen(path, "r");
    char *b = malloc((size_t)1 << 16);

    if (!f || !b) {
        if (f)
            (void)fclose(f);
        free(b);
        return NULL;
    }
    *ret_n = fread(b, 1, (size_t)1 << 16, f);
    (void)fclose(f);
    return b;
}

static bool scenario(struct sim_world *w, const char *path, bool story)
{
    struct base_err err = {0};
    struct sim_plan p;
    struct sim_result r;
    size_t n = 0;
    char *text = slurp(path, &n);
    bool ok;

    if (!text || sim_plan_read(&p, (struct base_str){text, n}, path, &err)) {
        printf("FAIL %s: %s\n", path, text ? err.msg : "cannot be read");
        free(text);
        return false;
    }
    free(text);
    sim_run(w, &p, story, &r);
    if (sim_cells_note(r.cells))
        return false;
    ok = p.violation[0] ? r.violation && strncmp(r.violation, p.violation, strlen(p.violation)) == 0
                        : !r.violation;
    if (story)
        printf("%s", w->story.data ? w->story.data : "");
    if (ok && p.source[0] == '\0') {
        printf("FAIL %s: no source\n", path);
        return false;
    }
    printf("%s %s%s%s%s%s\n", ok ? "ok  " : "FAIL", path, r.violation ? ": " : "",
           r.violation ? r.violation : "", r.violation ? ": " : "", r.violation ? r.detail : "");
    return ok;
}

static int scenarios(int n, char **path, bool story)
{
    struct sim_world *w = sim_world_new();
    unsigned passed = 0, failed = 0;

    for (int i = 0; i < n; i++) {
        if (scenario(w, path[i], story))
            passed++;
        else
            failed++;
    }
    sim_world_free(w);
    printf("scenarios: %u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}

/* ---- figures ---- */
static int handover(void)
{
    static const char text[] = "seed 1\nat 20s move-quiet client 1 node 2\nheal 55s\nend 60s\n";
    struct sim_world *w = sim_world_new();
    struct sim_plan p;
    struct sim_result r;
    struct base_err err;
    double began;
    unsigned n = 500, bad = 0;

    if (sim_plan_read(&p, BASE_STR(text), "handover", &err))
        return 2;
    sim_run(w, &p, false, &r);
    began = cpu_now();
    for (unsigned i = 0; i < n; i++) {
        p.seed = i;
        sim_run(w, &p, false, &r);
        bad += r.violation || r.takeovers != 1;
    }
    began = (cpu_now() - began) * 1e3 / n;
    printf("a minute with a handover between two nodes costs %.3f ms of CPU, %llu events\n", began,
           (unsigned long long)r.events);
    sim_world_free(w);
    bad += TIMED && began >= 1.0;
    printf("handover: %u passed, %u failed\n", bad ? 0U : 1U, bad ? 1U : 0U);
    return bad ? 1 : 0;
}

static int pairs(uint64_t count, uint64_t from)
{
    struct sim_world *x = sim_world_new(), *y = sim_world_new();
    unsigned bad = sim_pairs(x, y, count, from);

    sim_world_free(x);
    sim_world_free(y);
    printf("pairs: %llu passed, %u failed\n", (unsigned long long)(bad > count ? 0 : count - bad), bad);
    return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    uint64_t a = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, b = argc > 3 ? strtoull(argv[3], NULL, 10) : 1,
             c = argc > 4 ? strtoull(argv[4], NULL, 10) : 2;

    (void)mallopt(M_MMAP_THRESHOLD, 1 << 28);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 28);
    if (strcmp(what, "run") == 0 && a)
        return run(a, b, c < 1 ? 1 : c > JOBS_MAX ? JOBS_MAX : (unsigned)c);
    if (strcmp(what, "seed") == 0 && argc == 3)
        return seed(a);
    if (strcmp(what, "first") == 0 && a)
        return first(a, b);
    if (strcmp(what, "hash") == 0 && a)
        return hash(a, b);
    if (strcmp(what, "pairs") == 0 && a)
        return pairs(a, b);
    if (strcmp(what, "scenario") == 0 && argc > 2)
        return scenarios(argc - 2, argv + 2, false);
    if (strcmp(what, "story") == 0 && argc == 3)
        return scenarios(1, argv + 2, true);
    if (strcmp(what, "handover") == 0)
        return handover();
    if (strcmp(what, "cells") == 0 && argc == 3)
        return sim_cells_report(argv[2]);
    (void)fprintf(stderr, "usage: sim run COUNT [FROM] [JOBS] | seed N | first COUNT [FROM] | hash COUNT "
                          "[FROM] | pairs COUNT [FROM] | "
                          "scenario FILE... | story FILE | handover | cells FILE\n");
    return 2;
}
