/* SPDX-License-Identifier: Apache-2.0
 *
 * Several endpoints behind one port: which of them a packet belongs to, and that a connection stays there.
 */
#include "masque/threads.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "masque/testenv_test.h"

/* ---- the rule ---- */

Test(masque_threads, ids_name_their_thread)
{
    for (unsigned count = 1; count <= MASQUE_THREADS_MAX; count++)
        for (unsigned index = 0; index < count; index++)
            for (unsigned byte = 0; byte < 256; byte++) {
                struct masque_threads t = {.index = index, .count = count};
                uint8_t small[9] = {0x40}, large[20] = {0xc0, 0, 0, 0, 1, 8};
                small[1] = (uint8_t)byte;
                masque_thread_mark(small + 1, &t);
                large[6] = small[1];
                cr_assert_eq(masque_thread_of(small, sizeof small, count), index);
                cr_assert_eq(masque_thread_of(large, sizeof large, count), index);
            }
    cr_expect_eq(masque_thread_of((uint8_t[]){0x40}, 1, 3), 0, "too short for an ID");
    cr_expect_eq(masque_thread_of((uint8_t[]){0xc0, 0, 0, 0, 1, 8}, 6, 3), 0);
    cr_expect_eq(masque_thread_of(NULL, 0, 3), 0);
}

Test(masque_threads, ids_stay_as_different_as_they_can_be)
{
    bool seen[256] = {false};
    unsigned different = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t cid = (uint8_t)byte;
        masque_thread_mark(&cid, &(struct masque_threads){.index = 2, .count = 3});
        different += !seen[cid];
        seen[cid] = true;
    }
    cr_expect_eq(different, 85);
}

static int member(struct sockaddr_in6 *a)
{
    const int one = 1;
    socklen_t len = sizeof *a;
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    cr_assert(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0 &&
              bind(fd, (struct sockaddr *)a, len) == 0 && getsockname(fd, (struct sockaddr *)a, &len) == 0);
    return fd;
}

/* The program in the kernel and masque_thread_of are the same rule, for every first byte of an ID. */
Test(masque_threads, the_kernel_picks_the_same_socket)
{
    enum { N = 3 };
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct base_err err = {0};
    int fd[N], from = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (unsigned i = 0; i < N; i++)
        fd[i] = member(&a);
    cr_assert_eq(masque_thread_steer(fd[N - 1], N, &err), BASE_OK, "%s", err.msg);
    for (unsigned byte = 0; byte < 256; byte++)
        for (size_t len = 1; len < 12; len++)
            for (unsigned large = 0; large < 2; large++) {
                uint8_t p[12], got[12];
                memset(p, (int)byte, sizeof p);
                p[0] = large ? 0xc0 : 0x40;
                cr_assert_eq(sendto(from, p, len, 0, (const struct sockaddr *)&a, sizeof a), (ssize_t)len);
                for (unsigned i = 0; i < N; i++)
                    cr_assert_eq(recv(fd[i], got, sizeof got, 0) == (ssize_t)len,
                                 i == masque_thread_of(p, len, N), "byte %u, %zu bytes, socket %u", byte, len,
                                 i);
            }
    for (unsigned i = 0; i < N; i++)
        (void)close(fd[i]);
    (void)close(from);
}

/* ---- endpoints ---- */

enum { N = 3, CLIENTS = 12 };
static struct testenv *e;
static struct masque_h3 *h[N];
static struct masque_shared shared;
static struct at {
    unsigned index;
    uint64_t last_flow;
    unsigned packets, handed;
} at[N];

static void on_request(void *arg, const struct masque_request *rq)
{
    struct at *a = arg;
    a->last_flow = rq->flow;
    cr_assert_eq(masque_flow_thread(rq->flow), a->index);
    cr_assert_eq(masque_h3_accept(h[a->index], rq->flow, &e->prefix, e->routes, 2, e->slot), BASE_OK);
}

static void on_packet(void *arg, uint64_t flow, uint8_t *pkt, size_t len)
{
    struct at *a = arg;
    cr_assert_eq(masque_flow_thread(flow), a->index);
    a->packets++;
}

static void on_ended(void *arg, uint64_t flow, enum masque_end why, const char *detail)
{
}

static void on_stray(void *arg, unsigned thread, const struct masque_udp_in *in)
{
    cr_assert(thread < N && thread != ((struct at *)arg)->index);
    at[thread].handed++;
    masque_h3_take(h[thread], testenv_clock(), in);
}

static int open_one(unsigned i, uint16_t port, struct base_err *err)
{
    char listen[32];
    struct masque_h3_config cfg = e->cfg;
    (void)snprintf(listen, sizeof listen, "[::1]:%u", i == 0 ? port : 0);
    at[i] = (struct at){.index = i};
    cfg.listen = listen;
    cfg.events = (struct masque_events){on_request, on_packet, on_ended};
    cfg.stray = on_stray;
    cfg.arg = &at[i];
    cfg.threads = (struct masque_threads){
        .index = i, .count = N, .port = i == 0 ? 0 : masque_h3_port(h[0]), .shared = &shared};
    return masque_h3_new(&h[i], &cfg, err);
}

static void open_all(const struct masque_h3_limits *limits)
{
    struct base_err err = {0};
    e = testenv_new(limits);
    cr_assert_eq(masque_count_init(&shared.h3, 4096, 1), BASE_OK);
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(open_one(i, 0, &err), BASE_OK, "%s", err.msg);
}

static void close_all(void)
{
    for (unsigned i = 0; i < N; i++)
        h[i] = masque_h3_free(h[i]);
    cr_assert_eq(shared.h3.conns, 0);
    cr_assert_eq(shared.h3.handshakes, 0);
    masque_count_fini(&shared.h3);
    testenv_free(e);
}

static void turn(void)
{
    for (unsigned i = 0; i < N; i++) {
        masque_h3_read(h[i], testenv_clock(), 64);
        masque_h3_expire(h[i], testenv_clock());
        masque_h3_flush(h[i], testenv_clock(), testenv_clock);
    }
    for (unsigned i = 0; i < e->n_clients; i++)
        testclient_step(e->clients[i], testenv_clock());
}
#define UNTIL(expr)                                                                                          \
    do {                                                                                                     \
        base_time until_ = loop_clock() + 10 * BASE_SEC;                                                     \
        while (!(expr) && loop_clock() < until_)                                                             \
            turn();                                                                                          \
        cr_assert(expr, "not seen in time: %s", #expr);                                                      \
    } while (0)

static struct testclient *client(void)
{
    struct testclient_config cfg = {
        .port = masque_h3_port(h[0]), .cert_file = e->cert, .key_file = e->key, .alpn = "h3"};
    return e->clients[e->n_clients++] = testclient_new(&cfg, testenv_clock());
}

/* Connects, opens a tunnel and returns its thread. */
static unsigned tunnel(struct testclient **ret)
{
    struct testclient *c = *ret = client();
    uint64_t before[N];
    UNTIL(c->handshaken && c->got_settings);
    for (unsigned i = 0; i < N; i++)
        before[i] = at[i].last_flow;
    size_t s = testenv_request(c, NULL);
    UNTIL(c->streams[s].status == 200);
    for (unsigned i = 0; i < N; i++)
        if (at[i].last_flow != before[i])
            return i;
    cr_assert_fail("no endpoint had the request");
    return 0;
}

static void passes(struct testclient *c, unsigned thread)
{
    unsigned n = at[thread].packets;
    testclient_datagram(c, (uint8_t[]){0, 0, 0x60, 1}, 4);
    UNTIL(at[thread].packets == n + 1);
}

static uint64_t strays(void)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < N; i++) {
        struct masque_h3_stats s;
        masque_h3_stats(h[i], &s);
        n += s.strays;
    }
    return n;
}

TestSuite(masque_h3_threads, .timeout = 60);

/* Also when the client's address changes, again and again: RFC 9000 section 9. */
Test(masque_h3_threads, a_connection_stays_where_it_began)
{
    unsigned of[CLIENTS], used[N] = {0};
    open_all(NULL);
    for (unsigned i = 0; i < CLIENTS; i++) {
        of[i] = tunnel(&e->clients[i]);
        used[of[i]] = 1;
    }
    cr_assert(used[0] + used[1] + used[2] > 1, "all in one thread");
    for (unsigned k = 0; k < 4; k++)
        for (unsigned i = 0; i < CLIENTS; i++) {
            testclient_rebind(e->clients[i]);
            passes(e->clients[i], of[i]);
        }
    cr_assert_eq(strays(), 0, "the kernel picked the right socket each time");
    close_all();
}

/* Where the kernel picks wrongly, all the same; here: always the first socket. */
Test(masque_h3_threads, what_lands_elsewhere_is_handed_over)
{
    struct sock_filter first[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sock_fprog program = {1, first};
    struct testclient *c;
    open_all(NULL);
    cr_assert_eq(
        setsockopt(masque_h3_fd(h[0]), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program), 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        unsigned of = tunnel(&c);
        passes(c, of);
        testclient_rebind(c);
        passes(c, of);
    }
    cr_assert(at[1].handed + at[2].handed > 0 && at[0].handed == 0);
    cr_assert_eq(strays(), at[1].handed + at[2].handed);
    close_all();
}

/* A client that comes back after a Retry is met by the thread that sent it, whose secret made the token. */
Test(masque_h3_threads, a_retry_comes_back_to_its_thread)
{
    struct masque_h3_stats s[N], now;
    open_all(&(struct masque_h3_limits){.handshakes = 8});
    atomic_fetch_add(&shared.h3.handshakes, 2); /* under load: everybody is sent a Retry */
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (unsigned k = 0; k < N; k++)
            masque_h3_stats(h[k], &s[k]);
        (void)client();
        UNTIL(e->clients[i]->handshaken && e->clients[i]->got_settings);
        cr_assert(ngtcp2_conn_after_retry(e->clients[i]->quic));
        for (unsigned k = 0; k < N; k++) {
            masque_h3_stats(h[k], &now);
            cr_assert_eq(now.retries - s[k].retries, now.connections - s[k].connections, "client %u", i);
        }
    }
    cr_assert_eq(strays(), 0);
    atomic_fetch_sub(&shared.h3.handshakes, 2);
    close_all();
}

/* As many as are let in of `CLIENTS`, and by which limit the others are turned away. */
static unsigned let_in(struct masque_h3_stats *ret)
{
    unsigned in = 0;
    *ret = (struct masque_h3_stats){0};
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct testclient *c = client();
        UNTIL((c->handshaken && c->got_settings) || c->closed);
        in += !c->closed;
    }
    for (unsigned i = 0; i < N; i++) {
        struct masque_h3_stats s;
        masque_h3_stats(h[i], &s);
        ret->full_connections += s.full_connections;
        ret->full_source += s.full_source;
        ret->full_rate += s.full_rate;
        ret->connections += s.connections > 0; /* threads that had one */
    }
    return in;
}

Test(masque_h3_threads, the_limit_of_connections_is_for_all_together)
{
    struct masque_h3_stats s;
    open_all(&(struct masque_h3_limits){.connections = 4});
    cr_assert_eq(let_in(&s), 4);
    cr_assert_eq(s.full_connections, CLIENTS - 4);
    close_all();
}

Test(masque_h3_threads, the_limit_of_a_source_is_for_all_together)
{
    struct masque_h3_stats s;
    open_all(&(struct masque_h3_limits){.per_source = 5});
    cr_assert_eq(let_in(&s), 5);
    cr_assert_eq(s.full_source, CLIENTS - 5);
    cr_assert(s.connections > 1, "all in one thread");
    close_all();
}

/* A second's worth of new connections, and MASQUE_RATE_EXTRA more, are taken: by all together. */
Test(masque_h3_threads, new_connections_a_second_are_for_all_together)
{
    struct masque_h3_stats s;
    base_time now = testenv_clock();
    open_all(&(struct masque_h3_limits){.rate = 4});
    for (unsigned i = 0; i < 4 + MASQUE_RATE_EXTRA - 6; i++) {
        struct in6_addr other = {.s6_addr = {0x20, 1, (uint8_t)i}};
        cr_assert(masque_rate_take(&shared.h3.rates, &other, now, 4, 64));
    }
    unsigned in = let_in(&s), earned = (unsigned)((testenv_clock() - now) * 4 / BASE_SEC) + 1;
    cr_assert(in >= 6 && in <= 6 + earned, "%u", in);
    cr_assert_eq(s.full_rate, CLIENTS - in);
    close_all();
}

/* SO_REUSEPORT must not let a second agent in: half of the clients would be its. */
Test(masque_h3_threads, nobody_else_gets_the_port)
{
    struct base_err err = {0};
    struct masque_h3 *mine;
    open_all(NULL);
    mine = h[0];
    cr_assert_eq(open_one(0, masque_h3_port(mine), &err), BASE_EIO);
    cr_assert(strstr(err.msg, "another process has this port"), "%s", err.msg);
    h[0] = mine;
    close_all();
}
