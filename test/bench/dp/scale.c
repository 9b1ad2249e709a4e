/* SPDX-License-Identifier: Apache-2.0
 *
 * scale.c - what a session costs: memory while it is idle, CPU time while it is set up.
 */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>

enum { FEW = 10, MANY = 1000 };

static void ignore(void *arg, const uint8_t *pkt, size_t len)
{
}

static void set_up(const struct bench_server *s, const struct bench_dirs *d, struct bench_client **c)
{
    int64_t until = bench_now() + 30000 * BENCH_TIME_MS;
    bench_watch(s->name, "one more session");
    *c = bench_client_new(s->port, d->pki, "site-1", BENCH_H3, ignore, NULL);
    while (!bench_client_open(*c) && !bench_client_ended(*c) && bench_now() < until) {
        (void)usleep(50);
        bench_client_pump(*c);
    }
    if (!bench_client_open(*c)) {
        (void)fprintf(stderr, "bench: %s: a session was not set up\n", s->name);
        exit(1);
    }
}

/* Those that are idle, and the one that will be busy: nobody is so long silent that the server ends it. */
static void pump_all(const struct bench_server *s, struct bench_client **c, unsigned n)
{
    bench_client_pump(s->client);
    for (unsigned k = 0; k < n; k++)
        bench_client_pump(c[k]);
}

/* What idle sessions cost, ns of CPU time a second: keep-alives, mostly. */
static double idle_cost(const struct bench_server *s)
{
    int64_t cpu = bench_server_cpu(s), from = bench_now();
    (void)usleep(400000);
    return (double)(bench_server_cpu(s) - cpu) / (double)(bench_now() - from) * 1e9;
}

/* Traffic of one session: is a packet dearer where many others are? What those cost by themselves is no
 * packet's and is told apart: on a busy machine few packets pass beside it. */
static void among_many(struct bench_figures *f, const struct bench_dirs *d, struct bench_server *many,
                       struct bench_client **c, unsigned sessions, unsigned pairs)
{
    struct bench_server one = {.kind = BENCH_OURS, .name = "ours, one session", .pool = 0x23};
    double a[BENCH_PAIRS_MAX], b[BENCH_PAIRS_MAX], idle[BENCH_PAIRS_MAX];
    char name[100];
    bench_server_start(&one, d, sessions + 100);
    bench_server_connect(&one, d);
    for (unsigned i = 0; i < pairs; i++) {
        pump_all(many, c, sessions);
        idle[i] = idle_cost(many);
        struct bench_sample x = bench_traffic_run(many, BENCH_DOWN_SINGLE, 400 * BENCH_TIME_MS);
        a[i] = x.cpu_ns - idle[i] / (x.kpps * 1e3);
        b[i] = bench_traffic_run(&one, BENCH_DOWN_SINGLE, 400 * BENCH_TIME_MS).cpu_ns;
    }
    bench_server_stop(&one);
    bench_note(f, "%u idle sessions: %.1f ms of CPU time a second", sessions,
               bench_median(idle, pairs) / 1e6);
    bench_note(f, "down, single datagrams, one session busy: %.0f ns a packet among %u sessions, %.0f alone",
               bench_median(a, pairs), sessions, bench_median(b, pairs));
    (void)snprintf(name, sizeof name, "  %u sessions / one", sessions);
    bench_ratio(f, name, a, b, pairs, BENCH_AT_MOST, 1.1, 0);
}

/* Of each session since there was one. */
static void idle_memory(struct bench_figures *f, const struct bench_server *s, struct bench_memory one,
                        unsigned sessions)
{
    char name[100];
    (void)snprintf(name, sizeof name, "memory of an idle HTTP/3 session, of %u", sessions);
    bench_value(f, name, (bench_server_memory(s).resident - one.resident) / (sessions - 1), "KiB",
                BENCH_AT_MOST, 100, 0);
}

void bench_scale(struct bench_figures *f, const struct bench_dirs *d, unsigned sessions, unsigned pairs)
{
    struct bench_client **c = calloc(sessions, sizeof(struct bench_client *));
    struct bench_server ours = {.kind = BENCH_OURS, .name = "ours", .pool = 0x21};
    struct rlimit files = {sessions + 1000, sessions + 1000};
    if (!c || setrlimit(RLIMIT_NOFILE, &files) != 0)
        bench_die("descriptors");
    bench_server_start(&ours, d, sessions + 100);
    bench_server_connect(&ours, d); /* the one that will be busy, and one more that is not */
    set_up(&ours, d, &c[0]);
    (void)usleep(200000);
    struct bench_memory one = bench_server_memory(&ours);
    int64_t cpu = bench_server_cpu(&ours), began = bench_now();
    for (unsigned i = 1; i < sessions; i++) {
        set_up(&ours, d, &c[i]);
        if (i % 256 == 0)
            pump_all(&ours, c, i);
        if (i == FEW || (i + 1 == MANY && sessions > MANY)) {
            int64_t spent = bench_server_cpu(&ours);
            pump_all(&ours, c, i + 1);
            (void)usleep(200000);
            idle_memory(f, &ours, one, i + 1);
            cpu += bench_server_cpu(&ours) - spent; /* not of a set-up */
        }
    }
    cpu = bench_server_cpu(&ours) - cpu;
    double each = (double)cpu / 1e9 / (sessions - 1);
    pump_all(&ours, c, sessions);
    (void)usleep(200000);
    idle_memory(f, &ours, one, sessions);
    double alone = bench_tls_alone(d->pki);
    bench_note(
        f,
        "set-up: %.0f us of the server's CPU time each; a handshake in GnuTLS alone: %.0f us; %.1f s in all",
        each * 1e6, alone * 1e6, (double)(bench_now() - began) / 1e9);
    bench_value(f, "session set-ups a second and core, mutual TLS", 1 / each, "", BENCH_AT_LEAST,
                300 < 1 / (1.2 * alone) ? 300 : 1 / (1.2 * alone), 0);
    among_many(f, d, &ours, c, sessions, pairs);
    for (unsigned i = 0; i < sessions; i++)
        bench_client_free(c[i]);
    free(c);
    bench_server_stop(&ours);
}

/* ---- GnuTLS alone ---- */
enum { WIRE = 1 << 16, HANDSHAKES = 200 };
struct wire {
    uint8_t data[WIRE];
    size_t n;
};
struct end {
    struct wire *in, *out;
};

static ssize_t push(gnutls_transport_ptr_t p, const void *data, size_t n)
{
    struct wire *w = ((struct end *)p)->out;
    if (n > sizeof w->data - w->n)
        return -1;
    memcpy(w->data + w->n, data, n);
    w->n += n;
    return (ssize_t)n;
}

static ssize_t pull(gnutls_transport_ptr_t p, void *data, size_t n)
{
    struct wire *w = ((struct end *)p)->in;
    if (w->n == 0) {
        errno = EAGAIN;
        return -1;
    }
    n = n < w->n ? n : w->n;
    memcpy(data, w->data, n);
    w->n -= n;
    memmove(w->data, w->data + n, w->n);
    return (ssize_t)n;
}

static int ready(gnutls_transport_ptr_t p, unsigned ms)
{
    return ((struct end *)p)->in->n > 0;
}

static gnutls_certificate_credentials_t load(const char *pki, const char *name, const char *ca)
{
    gnutls_certificate_credentials_t cred;
    char cert[300], key[300], roots[300];
    (void)snprintf(cert, sizeof cert, "%s/%s.crt", pki, name);
    (void)snprintf(key, sizeof key, "%s/%s.key", pki, name);
    (void)snprintf(roots, sizeof roots, "%s/%s.crt", pki, ca);
    if (gnutls_certificate_allocate_credentials(&cred) != 0 ||
        gnutls_certificate_set_x509_key_file(cred, cert, key, GNUTLS_X509_FMT_PEM) != 0 ||
        gnutls_certificate_set_x509_trust_file(cred, roots, GNUTLS_X509_FMT_PEM) < 1)
        bench_die(cert);
    return cred;
}

static gnutls_session_t session(unsigned flags, gnutls_certificate_credentials_t cred, struct end *e)
{
    gnutls_session_t s;
    if (gnutls_init(&s, flags | GNUTLS_NO_AUTO_SEND_TICKET | GNUTLS_NONBLOCK) != 0 ||
        gnutls_priority_set_direct(s, "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM", NULL) != 0 ||
        gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, cred) != 0)
        bench_die("GnuTLS");
    gnutls_transport_set_ptr(s, e);
    gnutls_transport_set_push_function(s, push);
    gnutls_transport_set_pull_function(s, pull);
    gnutls_transport_set_pull_timeout_function(s, ready);
    return s;
}

static int64_t thread_cpu(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

double bench_tls_alone(const char *pki)
{
    static struct wire up, down;
    gnutls_certificate_credentials_t server = load(pki, "edge1", "client-ca"),
                                     client = load(pki, "site-1", "edge-ca");
    struct end s = {&up, &down}, c = {&down, &up};
    int64_t spent = 0;
    bench_watch("GnuTLS alone", "its handshakes");
    for (unsigned i = 0; i < HANDSHAKES; i++) {
        int a = GNUTLS_E_AGAIN, b = GNUTLS_E_AGAIN;
        unsigned status = 0;
        up.n = down.n = 0;
        gnutls_session_t y = session(GNUTLS_CLIENT, client, &c);
        int64_t t = thread_cpu();
        gnutls_session_t x = session(GNUTLS_SERVER, server, &s);
        gnutls_certificate_server_set_request(x, GNUTLS_CERT_REQUIRE);
        spent += thread_cpu() - t;
        for (unsigned k = 0; k < 20 && (a != 0 || b != 0); k++) {
            if (b == GNUTLS_E_AGAIN)
                b = gnutls_handshake(y);
            t = thread_cpu();
            if (a == GNUTLS_E_AGAIN)
                a = gnutls_handshake(x);
            spent += thread_cpu() - t;
        }
        t = thread_cpu();
        int v = gnutls_certificate_verify_peers2(x, &status);
        gnutls_deinit(x);
        spent += thread_cpu() - t;
        gnutls_deinit(y);
        if (a != 0 || b != 0 || v != 0 || status != 0) {
            (void)fprintf(stderr, "bench: GnuTLS alone: %s, %s\n", gnutls_strerror(a), gnutls_strerror(b));
            exit(1);
        }
    }
    gnutls_certificate_free_credentials(server);
    gnutls_certificate_free_credentials(client);
    return (double)spent / 1e9 / HANDSHAKES;
}
