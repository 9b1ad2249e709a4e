/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "tun/netns_test.h"

#define MAGIC 0x68666470u
#define SETTLE_FLOW (UINT64_C(1) << 60) /* no real flow */
struct mark {
    uint32_t magic, size;
    base_time sent;
};

/* ---- the helper that stays root */
/* The data threads by their numbers ("hf-data", "hf-data1", ...); returns how many there are. */
static unsigned data_tids(pid_t pid, pid_t tid[RIG_THREADS])
{
    char path[300], comm[32], name[32];
    struct dirent *e;
    unsigned n = 0;
    DIR *dir;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir && (e = readdir(dir))) {
        (void)snprintf(path, sizeof path, "/proc/%d/task/%s/comm", (int)pid, e->d_name);
        FILE *f = fopen(path, "re");
        bool known = f && fgets(comm, sizeof comm, f);
        for (unsigned i = 0; known && i < RIG_THREADS; i++) {
            (void)snprintf(name, sizeof name, i ? "hf-data%u\n" : "hf-data\n", i);
            if (strcmp(comm, name) == 0) {
                tid[i] = (pid_t)strtol(e->d_name, NULL, 10);
                n++;
            }
        }
        if (f)
            (void)fclose(f);
    }
    if (dir)
        (void)closedir(dir);
    return n;
}

static const char *pause_thread(pid_t tid)
{
    int st;

    if (tid == 0 || ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 ||
        ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &st, __WALL) != tid)
        return strerror(errno);
    return "ok";
}

static void helper_loop(int fd, pid_t agent)
{
    char cmd[64];
    ssize_t n;
    pid_t tid[RIG_THREADS] = {0};
    bool paused[RIG_THREADS] = {false};

    while ((n = recv(fd, cmd, sizeof cmd - 1, 0)) > 0) {
        const char *answer = "ok";

        cmd[n] = '\0';
        if (strncmp(cmd, "pause", 5) == 0) {
            unsigned have = data_tids(agent, tid);
            unsigned first = cmd[5] ? (unsigned)strtoul(cmd + 5, NULL, 10) : 0;

            for (unsigned i = first; i < (cmd[5] ? first + 1 : have); i++) {
                answer = pause_thread(tid[i % RIG_THREADS]);
                paused[i % RIG_THREADS] = true;
            }
        } else if (strcmp(cmd, "resume") == 0) {
            for (unsigned i = 0; i < RIG_THREADS; i++)
                if (paused[i] && ptrace(PTRACE_DETACH, tid[i], NULL, NULL) < 0)
                    answer = strerror(errno);
            memset(paused, 0, sizeof paused);
        } else if (strncmp(cmd, "delete ", 7) == 0) {
            netns_run("ip", "link", "del", cmd + 7, NULL);
        } else if (strncmp(cmd, "make ", 5) == 0) {
            (void)close(netns_make_tun(cmd + 5, NETNS_FOUNDATION, NETNS_AGENT_UID, RIG_TUN_MTU, true));
            netns_run("ip", "-6", "route", "replace", "fd12:0:0:1::/64", "dev", cmd + 5, NULL);
        } else {
            answer = "what?";
        }
        (void)send(fd, answer, strlen(answer), 0);
    }
    _exit(0);
}

void rig_helper(struct rig *r, const char *command)
{
    char answer[64] = "";
    ssize_t n = -1;

    if (send(r->helper, command, strlen(command), 0) > 0)
        n = recv(r->helper, answer, sizeof answer - 1, 0);
    if (n != 2 || memcmp(answer, "ok", 2) != 0) {
        (void)fprintf(stderr, "test helper: %s: %s\n", command, answer);
        abort();
    }
}

static void start_helper(struct rig *r)
{
    int sp[2];
    pid_t agent = getpid(), p = -1;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sp) < 0 || (p = fork()) < 0)
        netns_fail("helper");
    if (p == 0) {
        (void)close(sp[0]);
        helper_loop(sp[1], agent);
    }
    (void)close(sp[1]);
    r->helper = sp[0];
}

/* ---- set-up */
static void on_report(void *arg, const struct agent_report *rep)
{
    struct rig *r = arg;

    if (rep->kind == AGENT_REPORT_GAP && r->on_gap)
        r->on_gap(r, rep);
    if (rep->kind == AGENT_REPORT_STOPPED && rep->flow > SETTLE_FLOW) {
        r->settled = (rep->flow - SETTLE_FLOW) & ((UINT64_C(1) << MASQUE_FLOW_THREAD_SHIFT) - 1);
        return;
    }
    if (rep->kind == AGENT_REPORT_STOPPED) {
        r->n_stopped++;
        r->last_stopped = rep->flow;
    }
    if (r->n_seen < RIG_SEEN)
        r->seen[r->n_seen++] = *rep;
}

static void open_vpc(struct rig *r)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(RIG_PORT)};
    const int one = 1, size = 1 << 21, none = IPV6_PMTUDISC_DO;

    netns_run("ip", "-6", "addr", "add", RIG_HOST "/128", "dev", "lo", "nodad", NULL);
    netns_run("ip", "-6", "addr", "add", RIG_OUTSIDE "/128", "dev", "lo", "nodad", NULL);
    netns_run("ip", "-6", "route", "add", "fd12:0:0:1::/64", "dev", RIG_DEV, NULL);
    r->vpc = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)inet_pton(AF_INET6, RIG_HOST, &a.sin6_addr);
    if (r->vpc < 0 || bind(r->vpc, (const struct sockaddr *)&a, sizeof a) < 0)
        netns_fail("VPC host");
    (void)setsockopt(r->vpc, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    (void)setsockopt(r->vpc, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &one, sizeof one);
    (void)setsockopt(r->vpc, IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof one);
    (void)setsockopt(r->vpc, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &none, sizeof none);
}

void rig_forget(struct rig_rx *rx)
{
    *rx = (struct rig_rx){.icmp_type = -1, .ban_from = INT64_MAX, .ban_to = INT64_MAX};
}

void rig_open(struct rig *r, const char *dir, unsigned threads, const struct agent_tenant_limits *tenant)
{
    char cert[300], key[300], ca[300];
    struct agent_data_config cfg = {.tenant = *tenant};
    struct base_err err = {0};

    memset(r, 0, sizeof *r);
    r->dir = dir;
    r->threads = threads;
    rig_forget(&r->rx);
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        rig_forget(&r->flows[i].rx);
    netns_enter(0666);
    (void)close(netns_make_tun(RIG_DEV, NETNS_FOUNDATION, NETNS_AGENT_UID, RIG_TUN_MTU, true));
    (void)close(netns_make_tun(RIG_DEV2, NETNS_FOUNDATION, NETNS_AGENT_UID, RIG_TUN_MTU, true));
    open_vpc(r);
    start_helper(r);
    netns_drop();
    (void)snprintf(cert, sizeof cert, "%s/edge1.crt", dir);
    (void)snprintf(key, sizeof key, "%s/edge1.key", dir);
    (void)snprintf(ca, sizeof ca, "%s/client-ca.crt", dir);
    cfg.h3.listen = "[::1]:0";
    cfg.h3.cert_file = cert;
    cfg.h3.key_file = key;
    cfg.h3.client_ca_file = ca;
    cfg.http2 = true;
    cfg.threads = r->threads;
    r->slots = fence_table_new(64);
    if (agent_data_new(&r->d, &cfg, on_report, r, &err) < 0) {
        (void)fprintf(stderr, "test set-up: agent_data_new: %s\n", err.msg);
        abort();
    }
}

void rig_close(struct rig *r)
{
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        dp_client_free(r->flows[i].client);
    agent_data_free(r->d);
    fence_table_free(r->slots);
    (void)close(r->vpc);
    (void)close(r->helper);
}

/* ---- packets */
const char *rig_addr(unsigned n)
{
    static char text[RIG_FLOWS][32];

    (void)snprintf(text[n % RIG_FLOWS], sizeof text[0], "fd12::1:0:%x:0:5", n);
    return text[n % RIG_FLOWS];
}

static void count(struct rig_rx *rx, const uint8_t *p, size_t n)
{
    struct mark m;

    if (n < sizeof m) {
        rx->bad++;
        return;
    }
    memcpy(&m, p, sizeof m);
    if (m.magic != MAGIC || m.size != n) {
        rx->bad++;
        return;
    }
    for (size_t i = sizeof m; i < n; i++)
        if (p[i] != (uint8_t)i) {
            rx->bad++;
            return;
        }
    rx->n++;
    rx->len = n + 48;
    rx->last = m.sent > rx->last ? m.sent : rx->last;
    rx->banned += m.sent >= rx->ban_from && m.sent < rx->ban_to;
}

static void fill(uint8_t *p, size_t n)
{
    struct mark m = {.magic = MAGIC, .size = (uint32_t)n, .sent = loop_clock()};

    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)i;
    memcpy(p, &m, sizeof m);
}

static uint16_t checksum(const uint8_t *pkt, size_t len, uint8_t proto)
{
    uint32_t s = (uint32_t)(len - 40) + proto;

    for (size_t i = 8; i < len; i++)
        s += i & 1 ? pkt[i] : (uint32_t)pkt[i] << 8;
    while (s >> 16)
        s = (s & 0xffff) + (s >> 16);
    return (uint16_t)~s;
}

static void on_client_packet(void *arg, const uint8_t *pkt, size_t len)
{
    struct rig_rx *rx = arg;

    if (len >= 48 && pkt[6] == 17) {
        rx->hop_limit = pkt[7];
        if (checksum(pkt, len, 17) != 0)
            rx->bad++;
        count(rx, pkt + 48, len - 48);
    } else if (len >= 48 && pkt[6] == 58) {
        rx->icmp_n++;
        rx->icmp_type = pkt[40];
        rx->icmp_code = pkt[41];
        rx->icmp_word = (uint32_t)pkt[44] << 24 | (uint32_t)pkt[45] << 16 | (uint32_t)pkt[46] << 8 | pkt[47];
        rx->icmp_len = len;
        memcpy(rx->icmp_from, pkt + 8, 16);
        memcpy(rx->icmp, pkt, len < sizeof rx->icmp ? len : sizeof rx->icmp);
        if (checksum(pkt, len, 58) != 0)
            rx->bad++;
    } else {
        rx->bad++;
    }
}

bool rig_up(struct rig *r, unsigned i, const char *src, const char *dst, uint8_t hop, size_t size)
{
    uint8_t p[2048];
    uint16_t sum;

    memset(p, 0, 48);
    p[0] = 0x60;
    p[4] = p[44] = (uint8_t)((size - 40) >> 8);
    p[5] = p[45] = (uint8_t)(size - 40);
    p[6] = 17;
    p[7] = hop;
    if (inet_pton(AF_INET6, src, p + 8) != 1 || inet_pton(AF_INET6, dst, p + 24) != 1)
        netns_fail("address");
    p[40] = RIG_CLIENT_PORT >> 8;
    p[41] = RIG_CLIENT_PORT & 0xff;
    p[42] = RIG_PORT >> 8;
    p[43] = RIG_PORT & 0xff;
    fill(p + 48, size - 48);
    sum = checksum(p, size, 17);
    p[46] = (uint8_t)(sum >> 8);
    p[47] = (uint8_t)sum;
    return dp_client_send(r->flows[i].client, p, size);
}

bool rig_down(struct rig *r, const char *dst, size_t size)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(RIG_CLIENT_PORT)};
    uint8_t p[2048];

    if (inet_pton(AF_INET6, dst, &a.sin6_addr) != 1)
        netns_fail("address");
    fill(p, size - 48);
    return sendto(r->vpc, p, size - 48, 0, (const struct sockaddr *)&a, sizeof a) == (ssize_t)(size - 48);
}

bool rig_down_from(struct rig *r, const char *dst, size_t size, uint16_t port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int vpc = r->vpc;
    bool sent;

    (void)inet_pton(AF_INET6, RIG_HOST, &a.sin6_addr);
    r->vpc = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (r->vpc < 0 || bind(r->vpc, (const struct sockaddr *)&a, sizeof a) < 0)
        netns_fail("VPC host");
    sent = rig_down(r, dst, size);
    (void)close(r->vpc);
    r->vpc = vpc;
    return sent;
}

bool rig_down_together(struct rig *r, const char *dst, size_t size, unsigned n)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(RIG_CLIENT_PORT)};
    int seg = (int)size - 48, whole = 0;
    uint8_t p[32768];
    bool sent;

    if (inet_pton(AF_INET6, dst, &a.sin6_addr) != 1 || n * (size_t)seg > sizeof p)
        netns_fail("address or size");
    for (unsigned i = 0; i < n; i++)
        fill(p + i * (size_t)seg, (size_t)seg);
    sent = setsockopt(r->vpc, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof seg) == 0 &&
           sendto(r->vpc, p, n * (size_t)seg, 0, (const struct sockaddr *)&a, sizeof a) ==
               (ssize_t)(n * (size_t)seg);
    (void)setsockopt(r->vpc, IPPROTO_UDP, UDP_SEGMENT, &whole, sizeof whole);
    return sent;
}

static bool read_vpc(struct rig *r, int flags)
{
    uint8_t p[2048];
    union {
        char b[512];
        struct cmsghdr align;
    } c;
    struct iovec iov = {p, sizeof p};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.b, .msg_controllen = sizeof c.b};
    ssize_t n = recvmsg(r->vpc, &m, flags);

    if (n < 0)
        return false;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        if (h->cmsg_level != IPPROTO_IPV6)
            continue;
        if (h->cmsg_type == IPV6_HOPLIMIT) {
            int hop;

            memcpy(&hop, CMSG_DATA(h), sizeof hop);
            r->rx.hop_limit = (uint8_t)hop;
        } else if (h->cmsg_type == IPV6_RECVERR) {
            struct sock_extended_err e;
            struct sockaddr_in6 from;

            memcpy(&e, CMSG_DATA(h), sizeof e);
            if (e.ee_origin != SO_EE_ORIGIN_ICMP6)
                continue;
            memcpy(&from, CMSG_DATA(h) + sizeof e, sizeof from);
            r->rx.icmp_n++;
            r->rx.icmp_type = e.ee_type;
            r->rx.icmp_code = e.ee_code;
            r->rx.icmp_word = e.ee_info;
            memcpy(r->rx.icmp_from, &from.sin6_addr, 16);
        }
    }
    if (!(flags & MSG_ERRQUEUE))
        count(&r->rx, p, (size_t)n);
    return true;
}

static void pump(struct rig *r)
{
    while (read_vpc(r, MSG_ERRQUEUE))
        ;
    for (int i = 0; i < 1000 && read_vpc(r, 0); i++)
        ;
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        if (r->flows[i].client)
            dp_client_pump(r->flows[i].client);
    if (!r->deaf)
        agent_data_drain_reports(r->d);
}

void rig_run(struct rig *r, base_time d)
{
    base_time until = loop_clock() + d;

    do {
        struct pollfd p[2 + RIG_FLOWS] = {{r->vpc, POLLIN, 0},
                                          {agent_data_fd(r->d), r->deaf ? 0 : POLLIN, 0}};
        nfds_t n = 2;

        for (unsigned i = 0; i < RIG_FLOWS; i++)
            if (r->flows[i].client)
                p[n++] = (struct pollfd){dp_client_fd(r->flows[i].client), POLLIN, 0};
        pump(r);
        if (loop_clock() < until)
            (void)poll(p, n, d < BASE_MS ? 0 : 1);
    } while (loop_clock() < until);
    pump(r);
}

bool rig_wait(struct rig *r, enum agent_report_kind k, uint64_t id, struct agent_report *ret)
{
    base_time until = loop_clock() + 5 * BASE_SEC;

    do {
        for (unsigned i = 0; i < r->n_seen; i++) {
            if (r->seen[i].kind != k || (id != 0 && r->seen[i].flow != id && r->seen[i].tun_id != id))
                continue;
            if (ret)
                *ret = r->seen[i];
            memmove(r->seen + i, r->seen + i + 1, (r->n_seen - i - 1) * sizeof r->seen[0]);
            r->n_seen--;
            return true;
        }
        rig_run(r, BASE_MS);
    } while (loop_clock() < until);
    return false;
}

/* An order's answer comes out of an iteration that began after it was given; each iteration takes in a
 * bounded burst. */
static void settle_by_orders(struct rig *r)
{
    base_time until = loop_clock() + 5 * BASE_SEC;

    for (unsigned i = 0; i < 10 * r->threads; i++) {
        uint64_t ask = (SETTLE_FLOW + ++r->n_settle) | (uint64_t)(i % r->threads) << MASQUE_FLOW_THREAD_SHIFT;

        while (agent_data_stop(r->d, ask) != BASE_OK && loop_clock() < until)
            rig_run(r, BASE_MS);
        while (r->settled < r->n_settle && loop_clock() < until)
            rig_run(r, BASE_MS / 10);
    }
}

static void settle_by_heartbeat(struct rig *r)
{
    base_time until = loop_clock() + 5 * BASE_SEC;

    for (int i = 0; i < 3; i++) {
        base_time beat = agent_data_heartbeat(r->d);

        while (agent_data_heartbeat(r->d) == beat && loop_clock() < until)
            rig_run(r, BASE_MS);
    }
}

unsigned rig_fill_orders(struct rig *r, unsigned thread)
{
    uint64_t flow = SETTLE_FLOW | (uint64_t)thread << MASQUE_FLOW_THREAD_SHIFT;
    unsigned n = 0;

    while (n < 100000 && agent_data_stop(r->d, flow + r->n_settle) == BASE_OK) /* told apart: not counted */
        n++;
    return n;
}

void rig_settle(struct rig *r)
{
    if (r->deaf)
        settle_by_heartbeat(r);
    else
        settle_by_orders(r);
    rig_run(r, 2 * BASE_MS);
}

/* ---- sessions */
bool rig_open_tun(struct rig *r, uint32_t id, const char *device)
{
    struct agent_report rep = {0};

    if (agent_data_tun_open(r->d, id, device, RIG_TUN_MTU) != BASE_OK ||
        !rig_wait(r, AGENT_REPORT_TUN, id, &rep))
        return false;
    if (rep.code != BASE_OK)
        (void)printf("  tun %s: %s\n", device, rep.detail);
    return rep.code == BASE_OK;
}

uint64_t rig_request(struct rig *r, unsigned i, const char *path)
{
    struct rig_flow *f = &r->flows[i];
    struct agent_report rep;
    char name[32];

    (void)snprintf(name, sizeof name, "site-%u", i % 4 + 1);
    if (r->names[i])
        (void)snprintf(name, sizeof name, "%s", r->names[i]);
    rig_forget(&f->rx);
    f->client = dp_client_new(agent_data_port(r->d), r->dir, name, path, on_client_packet, &f->rx);
    return rig_wait(r, AGENT_REPORT_REQUEST, 0, &rep) ? rep.flow : 0;
}

static struct base_prefix prefix(const char *text)
{
    struct base_prefix p;

    if (base_prefix_parse(&p, base_str_of(text)) != BASE_OK)
        netns_fail(text);
    return p;
}

struct agent_admit rig_order(struct rig *r, uint64_t flow, unsigned n, uint32_t tun_id)
{
    static uint64_t gen;
    struct agent_admit a = {.flow = flow,
                            .tun_id = tun_id,
                            .prefix = prefix("fd12:0:0:1::/96"),
                            .pool = prefix("fd12:0:0:1::/64"),
                            .n_destinations = 1,
                            .slot = fence_slot_take(r->slots, ++gen)};

    a.prefix.addr.b[11] = (uint8_t)n;
    a.destinations[0] = prefix("fd20::/16");
    (void)inet_pton(AF_INET6, RIG_TUNNEL, a.tunnel_ip.b);
    return a;
}

struct agent_admit rig_prepare(struct rig *r, unsigned i, uint64_t flow, unsigned n, uint32_t tun_id)
{
    struct rig_flow *f = &r->flows[i];
    struct agent_admit a = rig_order(r, flow, n, tun_id);
    union {
        const struct fence_slot *c;
        struct fence_slot *m;
    } slot = {a.slot};

    f->n = n;
    f->slot = slot.m;
    fence_set(f->slot, loop_clock() + 600 * BASE_SEC);
    return a;
}

uint64_t rig_admit(struct rig *r, unsigned i, uint64_t flow, unsigned n, uint32_t tun_id)
{
    struct rig_flow *f = &r->flows[i];
    struct agent_admit a = rig_prepare(r, i, flow, n, tun_id);
    base_time until = loop_clock() + 5 * BASE_SEC;

    if (flow == 0 || agent_data_admit(r->d, &a) != BASE_OK)
        return 0;
    while (dp_client_status(f->client) == 0 && loop_clock() < until)
        rig_run(r, BASE_MS);
    return dp_client_status(f->client) == 200 ? flow : 0;
}

uint64_t rig_session(struct rig *r, unsigned i, unsigned n, uint32_t tun_id)
{
    return rig_admit(r, i, rig_request(r, i, "/.well-known/masque/ip/*/*/"), n, tun_id);
}

uint64_t rig_request_on(struct rig *r, unsigned thread, unsigned i)
{
    for (int k = 0; k < 40; k++) {
        uint64_t flow = rig_request(r, i, "/.well-known/masque/ip/*/*/");

        if (flow == 0 || masque_flow_thread(flow) == thread)
            return flow;
        if (agent_data_close(r->d, flow) != BASE_OK || !rig_wait(r, AGENT_REPORT_ENDED, flow, NULL))
            return 0;
        r->flows[i].client = dp_client_free(r->flows[i].client);
    }
    return 0;
}

uint64_t rig_session_on(struct rig *r, unsigned thread, unsigned i, unsigned n, uint32_t tun_id)
{
    uint64_t flow = rig_request_on(r, thread, i);

    return flow ? rig_admit(r, i, flow, n, tun_id) : 0;
}

bool rig_flows(struct rig *r, unsigned i)
{
    struct rig_flow *f = &r->flows[i];
    uint64_t up = r->rx.n, down = f->rx.n;
    base_time until = loop_clock() + 5 * BASE_SEC, again = 0;

    while ((r->rx.n == up || f->rx.n == down) && loop_clock() < until) {
        if (loop_clock() >= again) {
            (void)rig_up(r, i, rig_addr(f->n), RIG_HOST, 64, 200);
            (void)rig_down(r, rig_addr(f->n), 200);
            again = loop_clock() + 20 * BASE_MS;
        }
        rig_run(r, BASE_MS);
    }
    return r->rx.n > up && f->rx.n > down;
}
