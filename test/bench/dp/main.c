/* SPDX-License-Identifier: Apache-2.0
 *
 * bench-dataplane BIN PEERS PKI RESULTS [PAIRS [SESSIONS [ONLY]]]: the figures of the data path, each beside
 * another server on the same machine in the same minute. Exit 1 when one is outside its band. ONLY: traffic,
 * latency or scale.
 */
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { OURS, NOFENCE, GO, BARE, IDEAL, SERVERS };
#define WINDOW (500 * BENCH_TIME_MS)
#define LATENCY_WINDOW (1500 * BENCH_TIME_MS)

struct line {
    enum bench_traffic t;
    const char *what;
    double go;              /* at least, against connect-ip-go */
    double fence_exception; /* at most, 0 = none */
};
static const struct line lines[] = {
    {BENCH_DOWN_SINGLE, "down, single datagrams", 2.0, 0},
    {BENCH_DOWN_BURST, "down, bursts", 3.5, 1.2},
    {BENCH_UP_SINGLE, "up, single packets", 2.5, 0},
    {BENCH_UP_FLOW, "up, offloaded flows", 4.0, 0},
};

static void traffic(struct bench_figures *f, struct bench_server *s, unsigned pairs)
{
    char name[100];
    for (size_t l = 0; l < sizeof lines / sizeof lines[0]; l++) {
        double cpu[SERVERS][BENCH_PAIRS_MAX], kpps[SERVERS][BENCH_PAIRS_MAX];
        for (unsigned i = 0; i < pairs; i++)
            for (unsigned k = 0; k < SERVERS; k++) {
                struct bench_sample one = bench_traffic_run(&s[k], lines[l].t, WINDOW);
                cpu[k][i] = one.cpu_ns;
                kpps[k][i] = one.kpps;
            }
        bench_note(f, "%s: CPU time a packet", lines[l].what);
        for (unsigned k = 0; k < SERVERS; k++)
            bench_note(f, "  %-16s %6.0f ns, %4.0f thousand packets a second", s[k].name,
                       bench_median(cpu[k], pairs), bench_median(kpps[k], pairs));
        (void)snprintf(name, sizeof name, "  %s: connect-ip-go / ours", lines[l].what);
        bench_ratio(f, name, cpu[GO], cpu[OURS], pairs, BENCH_AT_LEAST, lines[l].go, 0);
        (void)snprintf(name, sizeof name, "  %s: ours / bare loop", lines[l].what);
        bench_ratio(f, name, cpu[OURS], cpu[BARE], pairs, BENCH_AT_MOST, 1.25, 0);
        (void)snprintf(name, sizeof name, "  %s: ours / ideal loop", lines[l].what);
        bench_ratio(f, name, cpu[OURS], cpu[IDEAL], pairs, BENCH_AT_MOST, 0, 0);
        (void)snprintf(name, sizeof name, "  %s: fence / no fence", lines[l].what);
        bench_ratio(f, name, cpu[OURS], cpu[NOFENCE], pairs, BENCH_AT_MOST, 1.08, lines[l].fence_exception);
    }
}

static void latency(struct bench_figures *f, struct bench_server *s, unsigned pairs)
{
    double p50[SERVERS][BENCH_PAIRS_MAX], p99[SERVERS][BENCH_PAIRS_MAX];
    static const unsigned who[] = {OURS, GO};
    for (unsigned i = 0; i < pairs; i++)
        for (unsigned k = 0; k < 2; k++) {
            struct bench_latency one = bench_latency_run(&s[who[k]], LATENCY_WINDOW);
            p50[who[k]][i] = one.p50_us;
            p99[who[k]][i] = one.p99_us;
        }
    bench_note(f, "round trip VPC host - client - VPC host, 1000 a second");
    for (unsigned k = 0; k < 2; k++)
        bench_note(f, "  %-16s p50 %.0f us, p99 %.0f us", s[who[k]].name, bench_median(p50[who[k]], pairs),
                   bench_median(p99[who[k]], pairs));
    bench_ratio(f, "  p50: ours / connect-ip-go", p50[OURS], p50[GO], pairs, BENCH_AT_MOST, 0, 0);
    bench_ratio(f, "  p99: ours / connect-ip-go", p99[OURS], p99[GO], pairs, BENCH_AT_MOST, 0.7, 1.5);
}

/* Bulk over HTTP/2, beside the ideal loop. */
static void http2(struct bench_figures *f, const struct bench_dirs *d, unsigned pairs)
{
    static const struct {
        enum bench_traffic t;
        const char *what;
    } rows[] = {{BENCH_DOWN_BURST, "HTTP/2 down"}, {BENCH_UP_FLOW, "HTTP/2 up, offloaded flows"}};
    struct bench_server ours = {.kind = BENCH_OURS, .name = "ours", .pool = 0x41, .h2 = true};
    struct bench_server ideal = {.kind = BENCH_IDEAL_LOOP, .name = "ideal loop", .pool = 0x42};
    double a[BENCH_PAIRS_MAX], b[BENCH_PAIRS_MAX];
    char name[100];
    bench_server_start(&ours, d, 64);
    bench_server_start(&ideal, d, 64);
    bench_server_connect(&ours, d);
    bench_server_connect(&ideal, d);
    for (unsigned l = 0; l < 2; l++) {
        for (unsigned i = 0; i < pairs; i++) {
            a[i] = bench_traffic_run(&ours, rows[l].t, WINDOW).cpu_ns;
            b[i] = bench_traffic_run(&ideal, rows[l].t, WINDOW).cpu_ns;
        }
        bench_note(f, "%s: CPU time a packet: ours %.0f ns, ideal loop %.0f ns", rows[l].what,
                   bench_median(a, pairs), bench_median(b, pairs));
        (void)snprintf(name, sizeof name, "  %s: ours / ideal loop", rows[l].what);
        bench_ratio(f, name, a, b, pairs, BENCH_AT_MOST, 1.3, rows[l].t == BENCH_UP_FLOW ? 1.5 : 0);
    }
    bench_server_stop(&ours);
    bench_server_stop(&ideal);
}

/* Packets that come one by one, with all offloads and without any. */
static void sparse(struct bench_figures *f, struct bench_server *on, struct bench_server *off, unsigned pairs)
{
    double a[BENCH_PAIRS_MAX], b[BENCH_PAIRS_MAX];
    for (unsigned i = 0; i < pairs; i++) {
        a[i] = bench_latency_run(on, LATENCY_WINDOW).cpu_ns;
        b[i] = bench_latency_run(off, LATENCY_WINDOW).cpu_ns;
    }
    bench_note(
        f, "sparse traffic, 1000 round trips a second: %.0f ns of CPU time each with offload, %.0f without",
        bench_median(a, pairs), bench_median(b, pairs));
    bench_ratio(f, "  sparse traffic: offload / none", a, b, pairs, BENCH_AT_MOST, 1.05, 0);
}

/* One tenant sends without end; what does another one see? */
static void tenants(struct bench_figures *f, const struct bench_dirs *d, unsigned pairs)
{
    struct bench_server with = {.kind = BENCH_OURS_TENANT, .name = "with a budget", .pool = 0x31};
    struct bench_server without = {.kind = BENCH_OURS, .name = "without", .pool = 0x32};
    struct bench_server *s[] = {&with, &without};
    double quiet[2][BENCH_PAIRS_MAX], flood[2][BENCH_PAIRS_MAX], q99[2][BENCH_PAIRS_MAX],
        f99[2][BENCH_PAIRS_MAX];
    pid_t p[2];
    unsigned lost[2] = {0, 0};
    for (unsigned k = 0; k < 2; k++) {
        bench_server_start(s[k], d, 64);
        bench_server_connect(s[k], d);
        p[k] = bench_flood_start(s[k], d, 2);
        (void)kill(p[k], SIGSTOP);
    }
    for (unsigned i = 0; i < pairs; i++)
        for (unsigned k = 0; k < 2; k++) {
            struct bench_latency one = bench_latency_run(s[k], LATENCY_WINDOW);
            quiet[k][i] = one.p50_us;
            q99[k][i] = one.p99_us;
            (void)kill(p[k], SIGCONT);
            (void)usleep(50000);
            one = bench_latency_run(s[k], LATENCY_WINDOW);
            (void)kill(p[k], SIGSTOP);
            flood[k][i] = one.p50_us;
            f99[k][i] = one.p99_us;
            lost[k] += one.lost;
            (void)usleep(100000);
        }
    bench_note(f, "another tenant floods: 1000 round trips a second of the first one");
    for (unsigned k = 0; k < 2; k++)
        bench_note(f, "  %-16s p50 %.0f us, p99 %.0f us; flooded %.0f us, %.0f us; %u lost of %u", s[k]->name,
                   bench_median(quiet[k], pairs), bench_median(q99[k], pairs), bench_median(flood[k], pairs),
                   bench_median(f99[k], pairs), lost[k], pairs * 1500);
    bench_ratio(f, "  with a budget, p50: flooded / quiet", flood[0], quiet[0], pairs, BENCH_AT_MOST, 1.5, 0);
    bench_ratio(f, "  with a budget, p99: flooded / quiet", f99[0], q99[0], pairs, BENCH_AT_MOST, 2, 0);
    bench_ratio(f, "  without, p50: flooded / quiet", flood[1], quiet[1], pairs, BENCH_AT_MOST, 0, 0);
    for (unsigned k = 0; k < 2; k++) {
        (void)kill(p[k], SIGKILL);
        (void)waitpid(p[k], NULL, 0);
        bench_server_stop(s[k]);
    }
}

/* One session each, connected a moment ago or just after the traffic. */
static void memory(struct bench_figures *f, const struct bench_server *s, const char *when, double exception)
{
    struct bench_memory ours = bench_server_memory(&s[OURS]), go = bench_server_memory(&s[GO]);
    char name[100];
    bench_note(f,
               "memory of a server with one session, %s: ours %.0f KiB, %.0f of them its own; connect-ip-go "
               "%.0f, %.0f",
               when, ours.resident, ours.own, go.resident, go.own);
    (void)snprintf(name, sizeof name, "  resident, %s: ours / connect-ip-go", when);
    bench_ratio(f, name, &ours.resident, &go.resident, 1, BENCH_AT_MOST, 0.4, exception);
    (void)snprintf(name, sizeof name, "  its own pages, %s: ours / connect-ip-go", when);
    bench_ratio(f, name, &ours.own, &go.own, 1, BENCH_AT_MOST, 0, 0);
}

int main(int argc, char **argv)
{
    struct bench_server s[SERVERS] = {
        [OURS] = {.kind = BENCH_OURS, .name = "ours", .pool = 0x11},
        [NOFENCE] = {.kind = BENCH_OURS_NOFENCE, .name = "ours, no fence", .pool = 0x12},
        [GO] = {.kind = BENCH_GO, .name = "connect-ip-go", .pool = 0x13},
        [BARE] = {.kind = BENCH_BARE_LOOP, .name = "bare loop", .pool = 0x14},
        [IDEAL] = {.kind = BENCH_IDEAL_UDP, .name = "ideal loop", .pool = 0x16},
    };
    struct bench_server plain = {.kind = BENCH_OURS_PLAIN, .name = "ours, no offload", .pool = 0x15};
    if (argc < 5) {
        (void)fprintf(stderr, "usage: bench-dataplane BIN PEERS PKI RESULTS [PAIRS [SESSIONS [ONLY]]]\n");
        return 2;
    }
    struct bench_dirs d = {argv[1], argv[2], argv[3]};
    unsigned pairs = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 7;
    unsigned sessions = argc > 6 ? (unsigned)strtoul(argv[6], NULL, 10) : 1000;
    const char *only = argc > 7 ? argv[7] : "";
    if (pairs == 0 || pairs > BENCH_PAIRS_MAX || sessions < 2)
        return 2;
    struct bench_figures *f = bench_figures_new(argv[4]);
    bench_net_open();
    if (!*only || strcmp(only, "scale") == 0)
        bench_scale(f, &d, sessions, pairs);
    if (!*only || strcmp(only, "http2") == 0)
        http2(f, &d, pairs);
    if (!*only || strcmp(only, "tenants") == 0)
        tenants(f, &d, pairs);
    if (!*only || strcmp(only, "threads") == 0)
        bench_threads(f, &d, pairs);
    if (!*only || strcmp(only, "traffic") == 0 || strcmp(only, "latency") == 0) {
        for (unsigned k = 0; k < SERVERS; k++) {
            bench_server_start(&s[k], &d, 64);
            bench_server_connect(&s[k], &d);
        }
        memory(f, s, "idle", 1.6);
        if (!*only || strcmp(only, "traffic") == 0) {
            traffic(f, s, pairs);
            memory(f, s, "after traffic", 1.2);
        }
        if (!*only || strcmp(only, "latency") == 0) {
            latency(f, s, pairs);
            bench_server_start(&plain, &d, 64);
            bench_server_connect(&plain, &d);
            sparse(f, &s[OURS], &plain, pairs);
            bench_server_stop(&plain);
        }
        for (unsigned k = 0; k < SERVERS; k++)
            bench_server_stop(&s[k]);
    }
    return bench_figures_end(f);
}
