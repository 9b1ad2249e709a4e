/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.h - what the files of the data plane's benchmark share: servers under test, traffic, figures.
 *
 *   main.c     the list of figures
 *   server.c   starts, measures and ends servers; the network namespace
 *   traffic.c  one measured window of one kind of traffic through one server
 *   figure.c   pairs, medians, bands, the results file
 *   threads.c  two data threads beside one
 *   scale.c    memory and set-up rate with many sessions
 *
 * One network namespace holds it all: the client on ::1, each server with a TUN device of its own, the VPC
 * host fd20::10 (a local address), and fd20::20 behind a second device without a reader, which stands for a
 * network card that takes packets as they come. CPU time is the server process's own, all threads, as the
 * scheduler counts it: a busy machine makes a run longer, and hardly dearer.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "client.h"

#define BENCH_TIME_MS INT64_C(1000000)
enum { BENCH_PACKET = 1200, BENCH_PAIRS_MAX = 64 };

enum bench_server_kind {
    BENCH_OURS = 1,
    BENCH_OURS_PLAIN,
    BENCH_OURS_NOFENCE,
    BENCH_OURS_TENANT,
    BENCH_OURS_TWO, /* data threads */
    BENCH_GO,
    BENCH_BARE_LOOP,
    BENCH_IDEAL_LOOP, /* HTTP/2 */
    BENCH_IDEAL_UDP,
};
struct bench_server {
    enum bench_server_kind kind;
    const char *name;
    unsigned pool; /* number of its TUN device, and third group of its sessions' addresses */
    char device[16];
    pid_t pid;
    clockid_t clock;
    uint16_t port;
    bool h2; /* ours: over HTTP/2 */
    struct bench_client *client;
    uint64_t got; /* packets at the client */
    void (*on_packet)(struct bench_server *s, const uint8_t *pkt, size_t len);
};

/* ---- server.c ---- */
struct bench_dirs {
    const char *bin, *peers, *pki;
};
void bench_net_open(void);
/* Where this process, and its children from now on, run: on all cores, or (as at first) on the client's. */
void bench_anywhere(bool on);
void bench_server_start(struct bench_server *s, const struct bench_dirs *d, unsigned sessions);
/* Connects its one client, and waits until the path's MTU is known. */
void bench_server_connect(struct bench_server *s, const struct bench_dirs *d);
void bench_server_stop(struct bench_server *s);
int64_t bench_server_cpu(const struct bench_server *s); /* ns */
struct bench_memory {
    double resident, own; /* KiB; own: without the pages of files, which processes share */
};
struct bench_memory bench_server_memory(const struct bench_server *s);
/* Puts its threads, and the caller's, at real-time priority (or back), for what is measured in microseconds
 * on a machine with other work. */
void bench_server_priority(const struct bench_server *s, bool high);
/* Packets of BENCH_PACKET bytes that its device has given to the kernel. */
uint64_t bench_server_to_vpc(const struct bench_server *s);
void bench_die(const char *what);
/* From now on `what` of `who` has BENCH_PATIENCE seconds (environment; 120): then the run ends and says so,
 * wherever it waits. Another call, or NULL, begins anew. */
void bench_watch(const char *who, const char *what);
int64_t bench_now(void); /* CLOCK_MONOTONIC, ns */

/* ---- traffic.c ---- */
enum bench_traffic { BENCH_DOWN_SINGLE, BENCH_DOWN_BURST, BENCH_UP_SINGLE, BENCH_UP_FLOW };
struct bench_sample {
    double cpu_ns; /* of the server, per packet that came out of it */
    double kpps;
};
struct bench_sample bench_traffic_run(struct bench_server *s, enum bench_traffic t, int64_t duration);
struct bench_latency {
    double p50_us, p99_us, cpu_ns; /* the last: of the server, a round trip */
    unsigned n, lost;
};
/* A round trip from the VPC host to the client and back, a thousand times a second. */
struct bench_latency bench_latency_run(struct bench_server *s, int64_t duration);

/* Another process with a session of another tenant, the server's `n`th: sends into the VPC without end. It asks
 * again when it is refused. Returns its pid. */
pid_t bench_flood_start(const struct bench_server *s, const struct bench_dirs *d, unsigned n);

/* ---- figure.c ---- */
struct bench_figures; /* the report */
struct bench_figures *bench_figures_new(const char *file);
/* The last line; returns the exit status. */
int bench_figures_end(struct bench_figures *f);
void bench_note(struct bench_figures *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
enum bench_side { BENCH_AT_LEAST = 1, BENCH_AT_MOST };
/* One figure from its pairs: prints ratio a/b as median, minimum and maximum. `limit` 0 = printed only.
 * `exception` is the limit that KNOWN_LIMITS.md gives it instead, 0 = none. */
void bench_ratio(struct bench_figures *f, const char *name, const double *a, const double *b, unsigned n,
                 enum bench_side side, double limit, double exception);
void bench_value(struct bench_figures *f, const char *name, double v, const char *unit, enum bench_side side,
                 double limit, double exception);
double bench_median(const double *v, unsigned n);

/* ---- threads.c ---- */
void bench_threads(struct bench_figures *f, const struct bench_dirs *d, unsigned pairs);

/* ---- scale.c ---- */
void bench_scale(struct bench_figures *f, const struct bench_dirs *d, unsigned sessions, unsigned pairs);
/* CPU time of the server's side of one handshake with mutual TLS in GnuTLS alone, in s. */
double bench_tls_alone(const char *pki);

#endif
