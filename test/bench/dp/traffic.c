/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT_VPC = 7001, PORT_CLIENT = 7000, HEADERS = 48, FLOW = 44, SINGLES = 32, ROUND_TRIPS = 1 << 15 };
#define WARM_UP (150 * BENCH_TIME_MS)

static struct sockaddr_in6 at(const char *text, uint16_t port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (inet_pton(AF_INET6, text, &a.sin6_addr) != 1)
        bench_die(text);
    return a;
}

static struct sockaddr_in6 client_address(const struct bench_server *s)
{
    char text[64];
    (void)snprintf(text, sizeof text, "fd12:0:0:%x:0:1:0:5", s->pool);
    return at(text, PORT_CLIENT);
}

static void checksum(uint8_t *p, size_t len)
{
    uint32_t sum = (uint32_t)(len - 40) + IPPROTO_UDP;
    p[46] = p[47] = 0;
    for (size_t i = 8; i < len; i++)
        sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    p[46] = (uint8_t)(~sum >> 8);
    p[47] = (uint8_t)~sum;
}

/* A whole UDP packet of the client's. */
static void make_packet(const struct bench_server *s, const char *to, uint8_t *p)
{
    struct sockaddr_in6 src = client_address(s), dst = at(to, PORT_VPC);
    memset(p, 0x5a, BENCH_PACKET);
    memset(p, 0, HEADERS);
    p[0] = 0x60;
    p[4] = p[44] = (uint8_t)((BENCH_PACKET - 40) >> 8);
    p[5] = p[45] = (uint8_t)(BENCH_PACKET - 40);
    p[6] = IPPROTO_UDP;
    p[7] = 64;
    memcpy(p + 8, &src.sin6_addr, 16);
    memcpy(p + 24, &dst.sin6_addr, 16);
    memcpy(p + 40, &src.sin6_port, 2);
    memcpy(p + 42, &dst.sin6_port, 2);
    checksum(p, BENCH_PACKET);
}

static int vpc_socket(const struct bench_server *s)
{
    struct sockaddr_in6 from = at("fd20::10", PORT_VPC), to = client_address(s);
    const int size = 4 << 20;
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof from) < 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        bench_die("VPC host");
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    return fd;
}

static void push(struct bench_server *s, enum bench_traffic t, int vpc, const uint8_t *pkt)
{
    static uint8_t data[FLOW * (BENCH_PACKET - HEADERS)];
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    struct iovec iov = {data, sizeof data};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr h = {
        .cmsg_len = CMSG_LEN(sizeof(uint16_t)), .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT};
    const uint16_t seg = BENCH_PACKET - HEADERS;
    switch (t) {
    case BENCH_DOWN_SINGLE:
    case BENCH_DOWN_BURST:
        if (bench_client_send(s->client, pkt, BENCH_PACKET, FLOW, t == BENCH_DOWN_BURST) == 0)
            (void)usleep(20);
        return;
    case BENCH_UP_SINGLE:
        for (unsigned i = 0; i < SINGLES; i++)
            (void)send(vpc, data, BENCH_PACKET - HEADERS, 0);
        return;
    case BENCH_UP_FLOW:
        memcpy(control, &h, sizeof h);
        memcpy(control + CMSG_LEN(0), &seg, sizeof seg);
        (void)sendmsg(vpc, &m, 0);
        return;
    }
}

static uint64_t delivered(const struct bench_server *s, enum bench_traffic t)
{
    return t == BENCH_DOWN_SINGLE || t == BENCH_DOWN_BURST ? bench_server_to_vpc(s) : s->got;
}

/* Towards the client only so much is on its way that no server has to throw away what it has worked on: a
 * packet that is lost for lack of room would be paid for by those that come. */
struct window {
    uint64_t sent, got; /* since it was last empty */
    int64_t moved;
};

static bool may_push(struct window *w, const struct bench_server *s, enum bench_traffic t, int64_t now)
{
    uint64_t room = t == BENCH_UP_FLOW ? 8 * FLOW : 3 * SINGLES;
    if (t != BENCH_UP_FLOW && t != BENCH_UP_SINGLE)
        return true;
    if (s->got != w->got)
        w->moved = now;
    if (now - w->moved > BENCH_TIME_MS) { /* what is missing is lost */
        w->sent = 0;
        w->moved = now;
    } else {
        w->sent -= s->got - w->got < w->sent ? s->got - w->got : w->sent;
    }
    w->got = s->got;
    if (w->sent >= room)
        return false;
    w->sent += t == BENCH_UP_FLOW ? FLOW : SINGLES;
    return true;
}

static void run_until(struct bench_server *s, enum bench_traffic t, int vpc, const uint8_t *pkt,
                      int64_t until)
{
    struct window w = {.got = s->got};
    for (int64_t now = bench_now(); now < until; now = bench_now()) {
        if (may_push(&w, s, t, now))
            push(s, t, vpc, pkt);
        bench_client_pump(s->client);
        if (bench_client_ended(s->client)) {
            (void)fprintf(stderr, "bench: %s: the session has ended\n", s->name);
            exit(1);
        }
    }
}

/* Until `duration` is over and ENOUGH packets have come: where others want the machine, a server may have had
 * no turn in half a second, and a figure from a handful of packets is none. */
enum { ENOUGH = 2000 };
#define TOO_LONG (30000 * BENCH_TIME_MS)

struct bench_sample bench_traffic_run(struct bench_server *s, enum bench_traffic t, int64_t duration)
{
    uint8_t pkt[BENCH_PACKET];
    int vpc = vpc_socket(s);
    bench_watch(s->name, "traffic through it");
    make_packet(s, "fd20::20", pkt);
    run_until(s, t, vpc, pkt, bench_now() + WARM_UP);
    int64_t from = bench_now(), cpu = bench_server_cpu(s);
    uint64_t n = delivered(s, t);
    for (int64_t until = from + duration; until < from + TOO_LONG; until += duration) {
        run_until(s, t, vpc, pkt, until);
        if (delivered(s, t) - n >= ENOUGH)
            break;
    }
    cpu = bench_server_cpu(s) - cpu;
    n = delivered(s, t) - n;
    double took = (double)(bench_now() - from);
    (void)close(vpc);
    for (int64_t end = bench_now() + 30 * BENCH_TIME_MS; bench_now() < end;) {
        bench_client_pump(s->client); /* what is on its way belongs to nobody's next window */
        (void)usleep(500);
    }
    if (n < ENOUGH) {
        (void)fprintf(stderr, "bench: %s: only %u packets came through in %.1f s\n", s->name, (unsigned)n,
                      took / 1e9);
        exit(1);
    }
    return (struct bench_sample){.cpu_ns = (double)cpu / (double)n, .kpps = (double)n / took * 1e6};
}

/* ---- latency ---- */
static void echo(struct bench_server *s, const uint8_t *pkt, size_t len)
{
    uint8_t p[BENCH_PACKET];
    if (len != sizeof p)
        return;
    memcpy(p, pkt, len);
    memcpy(p + 8, pkt + 24, 16);
    memcpy(p + 24, pkt + 8, 16);
    memcpy(p + 40, pkt + 42, 2);
    memcpy(p + 42, pkt + 40, 2); /* a swap changes no sum */
    (void)bench_client_send(s->client, p, len, 1, false);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bench_latency bench_latency_run(struct bench_server *s, int64_t duration)
{
    static double rtt[ROUND_TRIPS];
    uint8_t data[BENCH_PACKET - HEADERS] = {0}, in[2048];
    struct bench_latency ret = {0};
    int64_t cpu = bench_server_cpu(s);
    int vpc = vpc_socket(s);
    int64_t from = bench_now(), next = from;
    unsigned sent = 0;
    bench_watch(s->name, "round trips through it");
    s->on_packet = echo;
    bench_server_priority(s, true);
    while (bench_now() < from + duration + 50 * BENCH_TIME_MS) {
        int64_t now = bench_now();
        if (now >= next && now < from + duration) {
            memcpy(data, &now, sizeof now);
            sent += send(vpc, data, sizeof data, 0) > 0;
            next = now - next > 10 * BENCH_TIME_MS ? now + BENCH_TIME_MS : next + BENCH_TIME_MS;
        }
        struct pollfd p[2] = {{vpc, POLLIN, 0}, {bench_client_fd(s->client), POLLIN, 0}};
        int64_t left = next > now ? next - now : 0;
        (void)ppoll(p, 2, &(struct timespec){.tv_nsec = (long)(left < BENCH_TIME_MS ? left : BENCH_TIME_MS)},
                    NULL);
        bench_client_pump(s->client);
        while (recv(vpc, in, sizeof in, 0) == (ssize_t)sizeof data && ret.n < ROUND_TRIPS) {
            int64_t then;
            memcpy(&then, in, sizeof then);
            rtt[ret.n++] = (double)(bench_now() - then) / 1000;
        }
    }
    s->on_packet = NULL;
    bench_server_priority(s, false);
    (void)close(vpc);
    ret.lost = sent - ret.n;
    ret.cpu_ns = ret.n > 0 ? (double)(bench_server_cpu(s) - cpu) / ret.n : 0;
    if (ret.n < 100) {
        (void)fprintf(stderr, "bench: %s: hardly any packet came back (%u of %u)\n", s->name, ret.n, sent);
        exit(1);
    }
    qsort(rtt, ret.n, sizeof rtt[0], by_size);
    ret.p50_us = rtt[ret.n / 2];
    ret.p99_us = rtt[ret.n * 99 / 100];
    return ret;
}

/* ---- a flood ---- */
static void ignore(void *arg, const uint8_t *pkt, size_t len)
{
}

static struct bench_client *flood_client(const struct bench_server *s, const struct bench_dirs *d)
{
    int64_t until = bench_now() + 30000 * BENCH_TIME_MS;
    for (;;) {
        struct bench_client *b = bench_client_new(s->port, d->pki, "other-tenant", BENCH_H3, ignore, NULL);
        while (!bench_client_open(b) && !bench_client_ended(b) && bench_now() < until) {
            (void)usleep(200);
            bench_client_pump(b);
        }
        if (bench_client_open(b))
            return b;
        (void)bench_client_free(b);
        if (bench_now() >= until)
            _exit(1);
    }
}

pid_t bench_flood_start(const struct bench_server *s, const struct bench_dirs *d, unsigned n)
{
    uint8_t pkt[BENCH_PACKET];
    int up[2];
    char c = 0;
    pid_t parent = getpid(), p;
    bench_watch(s->name, "another tenant's connection to it");
    if (pipe(up) < 0 || (p = fork()) < 0)
        bench_die("fork");
    if (p > 0) {
        (void)close(up[1]);
        if (read(up[0], &c, 1) != 1)
            bench_die("the flood does not begin");
        (void)close(up[0]);
        return p;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    struct bench_client *b = flood_client(s, d);
    make_packet(s, "fd20::20", pkt);
    pkt[11 + 8] = (uint8_t)n; /* the session's address */
    checksum(pkt, sizeof pkt);
    if (write(up[1], &c, 1) != 1)
        _exit(1);
    while (!bench_client_ended(b)) {
        if (bench_client_send(b, pkt, sizeof pkt, FLOW, true) == 0)
            (void)usleep(50);
        bench_client_pump(b);
    }
    _exit(1);
}
