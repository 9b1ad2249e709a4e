/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes, what does not, and what the tunnel says about it.
 */
#include <arpa/inet.h>
#include <string.h>

#include "masque/packet.h"
#include "rig.h"
#include "scenarios.h"

static struct agent_data_stats stats(struct rig *r)
{
    struct agent_data_stats s;

    rig_settle(r);
    agent_data_stats(r->d, &s);
    return s;
}

static bool is(const uint8_t addr[16], const char *text)
{
    uint8_t a[16];

    return inet_pton(AF_INET6, text, a) == 1 && memcmp(a, addr, 16) == 0;
}

/* Every size, both ways, unchanged but for the hop limit. */
static void both_ways(struct rig *r)
{
    static const size_t sizes[] = {64, 65, 127, 128, 500, 1232, 1279, 1280};
    struct rig_flow *f = &r->flows[0];

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "nothing passes");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t up = r->rx.n, down = f->rx.n;

        CHECK(r, rig_up(r, 0, rig_addr(7), RIG_HOST, 99, sizes[i]), "send up");
        CHECK(r, rig_down(r, rig_addr(7), sizes[i]), "send down");
        rig_settle(r);
        CHECK(r, r->rx.n == up + 1 && r->rx.len == sizes[i], "up %zu: %zu", sizes[i], r->rx.len);
        CHECK(r, f->rx.n == down + 1 && f->rx.len == sizes[i], "down %zu: %zu", sizes[i], f->rx.len);
    }
    /* RFC 9484 section 7.2: counted down on encapsulation, not on decapsulation. */
    CHECK(r, r->rx.hop_limit == 99, "hop limit at the VPC host: %d", r->rx.hop_limit);
    CHECK(r, f->rx.hop_limit == 63, "hop limit at the client: %d", f->rx.hop_limit);
    CHECK(r, r->rx.bad == 0 && f->rx.bad == 0, "changed on the way: %d, %d", (int)r->rx.bad, (int)f->rx.bad);
    struct agent_data_stats s = stats(r);
    CHECK(r, s.tun_out == r->rx.n && s.tun_in >= f->rx.n && s.tun_bytes_out > 0,
          "counters: out %d of %d, in %d of %d", (int)s.tun_out, (int)r->rx.n, (int)s.tun_in, (int)f->rx.n);
}

static void bulk(struct rig *r)
{
    struct rig_flow *f = &r->flows[0];
    uint64_t up = 0, down = 0;
    base_time until;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "nothing passes");
    up = r->rx.n;
    down = f->rx.n;
    until = loop_clock() + BASE_SEC;
    uint64_t sent_up = 0, sent_down = 0;
    while (loop_clock() < until) {
        for (int i = 0; i < 8; i++) {
            sent_up += rig_up(r, 0, rig_addr(7), RIG_HOST, 64, 1200);
            sent_down += rig_down(r, rig_addr(7), 1200);
        }
        rig_run(r, BASE_MS / 4);
    }
    rig_settle(r);
    up = r->rx.n - up;
    down = f->rx.n - down;
    (void)printf("  up %d of %d, down %d of %d packets\n", (int)up, (int)sent_up, (int)down, (int)sent_down);
    CHECK(r, up >= sent_up * 9 / 10 && up > 100, "lost on the way up");
    CHECK(r, down >= sent_down * 9 / 10 && down > 100, "lost on the way down");
    CHECK(r, r->rx.bad == 0 && f->rx.bad == 0, "changed on the way");
}

/* A packet that must not pass, and the ICMPv6 answer that the client gets (type 0: none). */
static void refused(struct rig *r, const char *src, const char *dst, uint8_t hop, int type, int code)
{
    struct rig_rx *rx = &r->flows[0].rx;
    uint64_t vpc = r->rx.n, answers = rx->icmp_n;

    CHECK(r, rig_up(r, 0, src, dst, hop, 300), "send");
    rig_settle(r);
    CHECK(r, r->rx.n == vpc, "%s -> %s passed", src, dst);
    if (type == 0) {
        CHECK(r, rx->icmp_n == answers, "%s -> %s was answered with %d/%d", src, dst, rx->icmp_type,
              rx->icmp_code);
        return;
    }
    CHECK(r, rx->icmp_n == answers + 1 && rx->icmp_type == type && rx->icmp_code == code,
          "%s -> %s: answer %d/%d (%d new)", src, dst, rx->icmp_type, rx->icmp_code,
          (int)(rx->icmp_n - answers));
    CHECK(r, is(rx->icmp_from, RIG_TUNNEL), "%s -> %s: answer from another address", src, dst);
    CHECK(r, rx->icmp_len == 48 + 300 && is(rx->icmp + 24, src) && is(rx->icmp + 48 + 24, dst),
          "it quotes the packet");
    CHECK(r, rx->bad == 0, "checksum of the answer");
}

/* It takes packets one by one and refuses them put together: none is lost, and it is not asked again. */
static void kernel_without_super_packets(struct rig *r)
{
    enum { N = 40 };

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "nothing passes");
    rig_old_kernel(true);
    for (int round = 0; round < 2; round++) {
        rig_settle(r);
        struct agent_data_stats before = stats(r);
        uint64_t up = r->rx.n;
        rig_helper(r, "pause"); /* so that they come together */
        for (int i = 0; i < N; i++)
            CHECK(r, rig_up(r, 0, rig_addr(7), RIG_HOST, 64, 300), "send");
        rig_run(r, 10 * BASE_MS);
        rig_helper(r, "resume");
        struct agent_data_stats s = stats(r);
        CHECK(r, r->rx.n == up + N, "round %d: %d of %d came", round, (int)(r->rx.n - up), N);
        CHECK(r, s.tun_out == before.tun_out + N, "counted %d", (int)(s.tun_out - before.tun_out));
        CHECK(r, rig_kernel_refused() == (rig_tun_collects() ? 1 : 0), "it refused %u", rig_kernel_refused());
        /* What it gives us is cut all the same. */
        uint64_t down = r->flows[0].rx.n;
        CHECK(r, rig_down_together(r, rig_addr(7), 300, N), "send");
        rig_settle(r);
        CHECK(r, r->flows[0].rx.n == down + N, "round %d: %d of %d came down", round,
              (int)(r->flows[0].rx.n - down), N);
    }
    rig_old_kernel(false);
}

static void spoofed_and_unreachable(struct rig *r)
{
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "nothing passes");
    refused(r, "fd12::1:0:8:0:5", RIG_HOST, 64, 1, 5); /* another connector's source */
    refused(r, RIG_HOST, RIG_HOST, 64, 1, 5);          /* the host's own */
    refused(r, "fe80::1", RIG_HOST, 64, 0, 0);
    refused(r, "ff02::1", RIG_HOST, 64, 0, 0);
    refused(r, "::", RIG_HOST, 64, 0, 0);
    refused(r, rig_addr(7), RIG_OUTSIDE, 64, 1, 0);       /* not among the destinations */
    refused(r, rig_addr(7), "fd12::1:0:8:0:5", 64, 1, 1); /* another connector */
    refused(r, rig_addr(7), "ff0e::1", 64, 0, 0);
    refused(r, rig_addr(7), RIG_HOST, 0, 3, 0);
    struct agent_data_stats s = stats(r);
    CHECK(r, s.drop_source == 5 && s.drop_destination == 3 && s.drop_hop_limit == 1,
          "counted: source %d destination %d hop %d", (int)s.drop_source, (int)s.drop_destination,
          (int)s.drop_hop_limit);
    CHECK(r, s.icmp_sent == 5, "answers counted: %d", (int)s.icmp_sent);
    CHECK(r, rig_flows(r, 0), "bad packets ended the session");
}

static void malformed(struct rig *r)
{
    static const uint8_t junk[][60] = {
        {0}, {0x45}, {0x60, 0, 0, 0, 0xff, 0xff}, {0x60, 0, 0, 0, 0, 20, 43}, {0xff}};
    struct agent_data_stats before, after;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "nothing passes");
    before = stats(r);
    for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++) {
        CHECK(r, dp_client_send(r->flows[0].client, junk[i], sizeof junk[i]), "send");
        CHECK(r, dp_client_send(r->flows[0].client, junk[i], 1), "send");
    }
    after = stats(r);
    CHECK(r, after.drop_malformed + after.drop_source - before.drop_malformed - before.drop_source == 10,
          "dropped: %d", (int)(after.drop_malformed - before.drop_malformed));
    CHECK(r, r->flows[0].rx.icmp_n == 0, "nonsense was answered");
    CHECK(r, rig_flows(r, 0), "nonsense ended the session");
}

/* Answers are limited per session; a flood of bad packets does not become a flood of answers. */
static void answers_are_limited(struct rig *r)
{
    base_time from;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "nothing passes");
    from = loop_clock();
    for (int i = 0; i < 200; i++) {
        (void)rig_up(r, 0, RIG_HOST, RIG_HOST, 64, 100);
        rig_run(r, BASE_MS);
    }
    rig_settle(r);
    uint64_t most = 21 + (uint64_t)((loop_clock() - from) / (100 * BASE_MS));
    CHECK(r, r->flows[0].rx.icmp_n >= 15 && r->flows[0].rx.icmp_n <= most, "answers: %d, at most %d",
          (int)r->flows[0].rx.icmp_n, (int)most);
}

static void echo_one(struct rig *r, const char *src, const char *dst, size_t data, bool want)
{
    uint8_t p[1400];
    size_t len = 48 + data;
    struct rig_rx *rx = &r->flows[0].rx;
    uint64_t n = rx->icmp_n;

    memset(p, 0, 48);
    p[0] = 0x60;
    p[4] = (uint8_t)((len - 40) >> 8);
    p[5] = (uint8_t)(len - 40);
    p[6] = 58;
    p[7] = 64;
    (void)inet_pton(AF_INET6, src, p + 8);
    (void)inet_pton(AF_INET6, dst, p + 24);
    p[40] = 128;
    p[45] = 9;
    for (size_t i = 48; i < len; i++)
        p[i] = (uint8_t)i;
    uint16_t sum = masque_checksum_end(
        masque_checksum_add(masque_checksum_pseudo(p, (uint32_t)len - 40, 58), p + 40, len - 40));
    p[42] = (uint8_t)(sum >> 8);
    p[43] = (uint8_t)sum;
    CHECK(r, dp_client_send(r->flows[0].client, p, len), "send");
    rig_settle(r);
    CHECK(r, (rx->icmp_n > n) == want, "%s -> %s: %s", src, dst, want ? "no answer" : "answered");
    if (!want || rx->icmp_n == n)
        return;
    CHECK(r, rx->icmp_type == 129 && rx->icmp_len == len && memcmp(rx->icmp + 44, p + 44, len - 44) == 0,
          "answer is the echo");
    CHECK(r, is(rx->icmp_from, RIG_TUNNEL) && is(rx->icmp + 24, src), "from the tunnel to who asked");
}

/* Peers measure the MTU with an echo of 1232 bytes to ff02::1 (RFC 9484 section 7.2). */
static void echo(struct rig *r)
{
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "nothing passes");
    echo_one(r, rig_addr(7), "ff02::1", 1232, true);
    echo_one(r, rig_addr(7), RIG_TUNNEL, 56, true);
    echo_one(r, "fe80::7", "ff02::1", 56, true);
    echo_one(r, "fd12::1:0:8:0:5", "ff02::1", 56, false);
    echo_one(r, rig_addr(7), "ff02::2", 56, false);
}

/* Too large for the tunnel, or at the end of its hops: the VPC host hears of it. */
static void errors_into_the_vpc(struct rig *r)
{
    const int one = 1, many = 64;
    uint64_t n;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 7, 1), "session");
    NEED(r, rig_flows(r, 0), "nothing passes");
    n = r->flows[0].rx.n;
    CHECK(r, rig_down(r, rig_addr(7), 1500), "send");
    rig_settle(r);
    CHECK(r, r->flows[0].rx.n == n, "1500 bytes passed");
    CHECK(r, r->rx.icmp_n == 1 && r->rx.icmp_type == 2, "too big: %d of type %d", (int)r->rx.icmp_n,
          r->rx.icmp_type);
    CHECK(r, r->rx.icmp_word >= 1280 && r->rx.icmp_word < 1500, "MTU %u", r->rx.icmp_word);
    CHECK(r, is(r->rx.icmp_from, "fd12::1:0:7:0:0"),
          "from outside the connector's /96: the gate would drop it");
    /* What it says is true. */
    CHECK(r, rig_down(r, rig_addr(7), r->rx.icmp_word), "send");
    rig_settle(r);
    CHECK(r, r->flows[0].rx.n == n + 1 && r->flows[0].rx.len == r->rx.icmp_word,
          "a packet of that MTU does not pass");

    (void)setsockopt(r->vpc, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &one, sizeof one);
    CHECK(r, rig_down(r, rig_addr(7), 300), "send");
    rig_settle(r);
    CHECK(r, r->rx.icmp_n == 2 && r->rx.icmp_type == 3 && r->rx.icmp_code == 0,
          "time exceeded: %d of type %d", (int)r->rx.icmp_n, r->rx.icmp_type);
    CHECK(r, r->flows[0].rx.n == n + 1, "hop limit 1 passed");
    (void)setsockopt(r->vpc, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &many, sizeof many);
}

/* Two connectors on one device and one on another VPC's: nobody sees anybody else's packets. */
static void tenants_are_apart(struct rig *r)
{
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_open_tun(r, 2, RIG_DEV2), "device");
    NEED(r, rig_session(r, 0, 2, 1) && rig_session(r, 1, 3, 1) && rig_session(r, 2, 4, 2), "sessions");
    NEED(r, rig_flows(r, 0) && rig_flows(r, 1), "nothing passes");
    uint64_t a = r->flows[0].rx.n, b = r->flows[1].rx.n, c = r->flows[2].rx.n;
    for (int i = 0; i < 20; i++) {
        CHECK(r, rig_down(r, rig_addr(3), 200), "send");
        CHECK(r, rig_down(r, rig_addr(4), 200),
              "send"); /* routed into RIG_DEV, whose VPC has no such connector */
        CHECK(r, rig_down(r, rig_addr(5), 200), "send"); /* nobody's */
    }
    struct agent_data_stats s = stats(r);
    CHECK(r, r->flows[0].rx.n == a, "a packet of another connector");
    CHECK(r, r->flows[1].rx.n == b + 20, "%d of 20 came", (int)(r->flows[1].rx.n - b));
    CHECK(r, r->flows[2].rx.n == c, "a packet of another VPC");
    CHECK(r, s.drop_no_session == 40, "counted %d", (int)s.drop_no_session);
}

/* A request for one host and UDP only gets just that. */
static void scope_of_the_request(struct rig *r)
{
    struct agent_admit a;
    uint64_t flow;
    union {
        const struct fence_slot *c;
        struct fence_slot *m;
    } slot;

    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    flow = rig_request(r, 0, "/.well-known/masque/ip/fd20%3A%3A%2F120/6/");
    NEED(r, flow, "request");
    a = rig_order(r, flow, 7, 1);
    slot.c = a.slot;
    fence_set(slot.m, loop_clock() + 60 * BASE_SEC);
    NEED(r, agent_data_admit(r->d, &a) == BASE_OK, "admit");
    for (int i = 0; i < 100 && dp_client_status(r->flows[0].client) == 0; i++)
        rig_run(r, 5 * BASE_MS);
    NEED(r, dp_client_status(r->flows[0].client) == 200, "status %d", dp_client_status(r->flows[0].client));
    refused(r, rig_addr(7), RIG_HOST, 64, 1, 1);     /* UDP in a session for TCP */
    refused(r, rig_addr(7), "fd20::1:10", 64, 1, 0); /* a destination, but not of the request */
}

/* One tenant sends, asks and connects without end: it gets its share, and the other one loses nothing. */
static void one_tenants_flood(struct rig *r)
{
    enum { RATE = 2000, STEPS = 500 };
    unsigned sent = 0;

    r->names[1] = r->names[2] = r->names[3] = "other-tenant";
    NEED(r, rig_open_tun(r, 1, RIG_DEV), "device");
    NEED(r, rig_session(r, 0, 2, 1) && rig_session(r, 1, 3, 1) && rig_session(r, 2, 4, 1), "sessions");
    NEED(r, rig_flows(r, 0) && rig_flows(r, 1) && rig_flows(r, 2), "nothing passes");
    /* Its sessions: a third one is refused, and control does not hear of it. */
    r->n_seen = 0;
    r->flows[3].client = dp_client_new(agent_data_port(r->d), r->dir, "other-tenant",
                                       "/.well-known/masque/ip/*/*/", NULL, NULL);
    for (int i = 0; i < 400 && dp_client_status(r->flows[3].client) == 0; i++)
        rig_run(r, 5 * BASE_MS);
    CHECK(r, dp_client_status(r->flows[3].client) == 503, "status %d", dp_client_status(r->flows[3].client));
    CHECK(r, strstr(dp_client_body(r->flows[3].client), "TenantSessions"), "%s",
          dp_client_body(r->flows[3].client));
    for (unsigned i = 0; i < r->n_seen; i++)
        CHECK(r, r->seen[i].kind != AGENT_REPORT_REQUEST, "control was asked");
    /* Its packets, from two connectors, and into one of them from the VPC. */
    uint64_t mine = r->flows[0].rx.n, theirs = r->rx.n + r->flows[1].rx.n;
    base_time from = loop_clock();
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < 8; k++) {
            (void)rig_up(r, 1, rig_addr(3), RIG_HOST, 64, 200);
            (void)rig_up(r, 2, rig_addr(4), RIG_HOST, 64, 200);
            (void)rig_down(r, rig_addr(3), 200);
        }
        sent += rig_down(r, rig_addr(2), 200);
        rig_run(r, BASE_MS / 2);
    }
    struct agent_data_stats s = stats(r);
    double took = (double)(loop_clock() - from) / (double)BASE_SEC;
    mine = r->flows[0].rx.n - mine;
    theirs = r->rx.n + r->flows[1].rx.n - theirs;
    CHECK(r, mine == sent && sent > STEPS * 9 / 10, "%d of %u came", (int)mine, sent);
    CHECK(r, (double)theirs < RATE * took + RATE / 10 + 10, "%d in %.2f s", (int)theirs, took);
    CHECK(r, (double)theirs > 100, "%d: it got nothing", (int)theirs);
    CHECK(r, s.drop_tenant > 1000, "%d counted", (int)s.drop_tenant);
    CHECK(r, s.full_tenant_sessions == 1, "%d counted", (int)s.full_tenant_sessions);
    /* Its requests: it comes and goes, and is refused some. */
    unsigned refused = 0;
    dp_client_free(r->flows[2].client);
    r->flows[2].client = NULL;
    for (int i = 0; i < 60; i++) { /* one is earned each second meanwhile */
        r->flows[3].client = dp_client_free(r->flows[3].client);
        r->flows[3].client = dp_client_new(agent_data_port(r->d), r->dir, "other-tenant",
                                           "/.well-known/masque/ip/*/*/", NULL, NULL);
        for (int k = 0; k < 40 && dp_client_status(r->flows[3].client) == 0; k++)
            rig_run(r, 5 * BASE_MS);
        refused += strstr(dp_client_body(r->flows[3].client), "TenantRequests") != NULL;
        if (refused)
            break;
    }
    CHECK(r, refused > 0, "nobody was refused");
    CHECK(r, rig_flows(r, 0), "the other tenant's flow");
}

const struct scenario dp_packets[] = {
    {"both-ways", both_ways, false, {0}, true},
    {"bulk", bulk, false, {0}, false},
    {"kernel-without-super-packets", kernel_without_super_packets, false, {0}, false},
    {"spoofed-and-unreachable", spoofed_and_unreachable, false, {0}, false},
    {"malformed", malformed, false, {0}, false},
    {"answers-are-limited", answers_are_limited, false, {0}, true},
    {"echo", echo, false, {0}, false},
    {"errors-into-the-vpc", errors_into_the_vpc, true, {0}, false},
    {"tenants-are-apart", tenants_are_apart, false, {0}, true},
    {"one-tenants-flood", one_tenants_flood, false, {.sessions = 2, .packets = 2000, .requests = 1}, true},
    {"scope-of-the-request", scope_of_the_request, false, {0}, false},
    {NULL, NULL, false, {0}, false},
};
