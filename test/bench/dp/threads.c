/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.c - two data threads beside one: what a packet costs, and how many there are in a second.
 */
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FLOODS = 2, CORES = 2 * FLOODS };
#define WINDOW (1000 * BENCH_TIME_MS)

struct flooded {
    struct bench_server s;
    pid_t p[FLOODS];
    double cost[BENCH_PAIRS_MAX], rate[BENCH_PAIRS_MAX];
};

static void floods(const struct flooded *x, int signal)
{
    for (unsigned i = 0; i < FLOODS; i++)
        (void)kill(x->p[i], signal);
}

static void start(struct flooded *x, const struct bench_dirs *d)
{
    bench_server_start(&x->s, d, 64);
    for (unsigned i = 0; i < FLOODS; i++) {
        x->p[i] = bench_flood_start(&x->s, d, i + 1);
        (void)kill(x->p[i], SIGSTOP);
    }
}

static void measure(struct flooded *x, unsigned i)
{
    bench_watch(x->s.name, "traffic through it");
    floods(x, SIGCONT);
    (void)usleep(200000);
    uint64_t packets = bench_server_to_vpc(&x->s);
    int64_t cpu = bench_server_cpu(&x->s), from = bench_now();
    (void)usleep(WINDOW / 1000);
    packets = bench_server_to_vpc(&x->s) - packets;
    cpu = bench_server_cpu(&x->s) - cpu;
    double took = (double)(bench_now() - from) / 1e9;
    floods(x, SIGSTOP);
    (void)usleep(50000);
    if (packets < 100) {
        (void)fprintf(stderr, "bench: %s: hardly any packet came out of it\n", x->s.name);
        _exit(1);
    }
    x->cost[i] = (double)cpu / (double)packets;
    x->rate[i] = (double)packets / took;
}

static void stop(struct flooded *x)
{
    for (unsigned i = 0; i < FLOODS; i++) {
        (void)kill(x->p[i], SIGKILL);
        (void)waitpid(x->p[i], NULL, 0);
    }
    bench_server_stop(&x->s);
}

void bench_threads(struct bench_figures *f, const struct bench_dirs *d, unsigned pairs)
{
    static struct flooded one = {.s = {.kind = BENCH_OURS, .name = "one data thread", .pool = 0x51}},
                          two = {.s = {.kind = BENCH_OURS_TWO, .name = "two data threads", .pool = 0x52}};
    double half[BENCH_PAIRS_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    bench_anywhere(true);
    start(&one, d);
    start(&two, d);
    for (unsigned i = 0; i < pairs; i++) {
        measure(&one, i);
        measure(&two, i);
        half[i] = two.cost[i] / 2;
    }
    bench_note(f, "down, bursts of two sessions: %.0f ns a packet with one data thread, %.0f with two",
               bench_median(one.cost, pairs), bench_median(two.cost, pairs));
    bench_ratio(f, "  two data threads / one, by CPU time", one.cost, half, pairs, BENCH_AT_LEAST, 1.6, 0);
    bench_note(f, "  %.0f thousand packets a second with one, %.0f with two",
               bench_median(one.rate, pairs) / 1e3, bench_median(two.rate, pairs) / 1e3);
    bench_ratio(f, "  two data threads / one, by the clock", two.rate, one.rate, pairs, BENCH_AT_LEAST,
                cores >= CORES ? 1.6 : 0, 0);
    if (cores < CORES)
        bench_note(f, "  NOT JUDGED by the clock: %ld cores here, two senders and two threads need %d", cores,
                   CORES);
    stop(&one);
    stop(&two);
    bench_anywhere(false);
}
