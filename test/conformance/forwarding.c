/* SPDX-License-Identifier: Apache-2.0
 *
 * Checklist 1d: packets and routing.
 */
#include <string.h>

#include "conf.h"

/* A packet goes up, does not reach the VPC, and its sender hears `type`/`code` (type 0: nothing). */
static void refused(struct conf_client *c, const struct conf_pkt *p, int type, int code, const char *to)
{
    struct conf *t = c->t;
    size_t vpc = conf_vpc_n(), got = conf_got_n(c);
    conf_push(BASE_SEC); /* the limit of answers is another case's */
    conf_up(c, 0, p);
    if (type == 0) {
        conf_settle(t, 10);
        CHECK(conf_got_n(c) == got, "it was answered");
    } else {
        WAIT(t, conf_got_n(c) == got + 1);
        struct conf_pkt a = conf_got(c, got);
        conf_check_icmp(&a, type, code, CONF_TUNNEL, to, p);
    }
    CHECK(conf_vpc_n() == vpc, "it passed");
}

static void ingress_filter(struct conf *t)
{
    static const char *const src[] = {
        "fd12::1:0:0:ffff:ffff", "fd12::1:0:2:0:0", /* the neighbours of the /96, to the bit */
        "fd12::1:0:0:0:1",                          /* the tunnel's own */
        "fd12::1:8000:1:0:5",    "fd12::1:1:1:0:5", CONF_HOST, "2001:db8::1", "ff0e::1:2"};
    struct conf_client *c = conf_tunnel(t);
    for (size_t i = 0; i < sizeof src / sizeof src[0]; i++) {
        struct conf_pkt p = conf_udp(src[i], CONF_HOST, 100, 1);
        bool silent = src[i][0] == 'f' && src[i][1] == 'f';
        refused(c, &p, silent ? 0 : 1, 5, src[i]);
    }
    conf_alive(c, 0);
}

static void bad_packets_end_nothing(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt p[10] = {{.n = 0}};
    unsigned n = 0;
    p[n++] = (struct conf_pkt){.b = {0x60}, .n = 1};
    p[n++] = (struct conf_pkt){.b = {0x45, 0}, .n = 60};
    p[n] = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    p[n++].n = 99; /* shorter than it says */
    p[n] = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    p[n++].n = 101; /* longer */
    p[n] = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    p[n++].b[0] = 0x50;
    p[n] = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    p[n].b[4] = p[n].b[5] = 0; /* a jumbogram, or nothing at all */
    n++;
    p[n++] = conf_raw(conf_addr(1), CONF_HOST, 0, "\x11\xff\0\0\0\0\0", 8);  /* options beyond the end */
    p[n++] = conf_raw(conf_addr(1), CONF_HOST, 60, "\x00\x00\0\0\0\0\0", 8); /* hop-by-hop after another */
    for (unsigned i = 0; i < n; i++)
        refused(c, &p[i], 0, 0, NULL);
    CHECK(t->n_ended == 0, "%s", t->n_ended ? t->ended[0].detail : "");
    conf_alive(c, 0);
}

static void no_route(struct conf *t)
{
    static const char *const dst[] = {CONF_OUTSIDE, "fd20:0:0:1::1",
                                      "fd1f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::1"};
    struct conf_client *c = conf_tunnel(t);
    for (size_t i = 0; i < 4; i++) {
        struct conf_pkt p = conf_udp(conf_addr(1), dst[i], 100, 1);
        refused(c, &p, 1, 0, conf_addr(1));
    }
    struct conf_pkt edge = conf_udp(conf_addr(1), "fd20::ffff:ffff:ffff:ffff", 100, 1);
    conf_up(c, 0, &edge);
    WAIT(t, conf_vpc_n() == 1);
}

static void policy(struct conf *t)
{
    struct conf_client *c = conf_tunnel_for(t, "/.well-known/masque/ip/*/6/");
    struct conf_pkt udp = conf_udp(conf_addr(1), CONF_HOST, 100, 1),
                    tcp =
                        conf_raw(conf_addr(1), CONF_HOST, 6, "\0\1\0\2\0\0\0\0\0\0\0\0\x50\2\0\0\0\0\0", 20);
    refused(c, &udp, 1, 1, conf_addr(1));
    conf_up(c, 0, &tcp);
    WAIT(t, conf_vpc_n() == 1);
}

static void connectors_are_apart(struct conf *t)
{
    struct conf_client *a = conf_tunnel(t);
    t->second_prefix = true;
    struct conf_client *b = conf_tunnel(t);
    static const char *const dst[] = {"fd12::1:0:2:0:5", "fd12::1:0:3:0:5", "fd12::1:0:1:0:6"};
    size_t got = conf_got_n(b);
    for (size_t i = 0; i < 3; i++) {
        struct conf_pkt p = conf_udp(conf_addr(1), dst[i], 100, 1);
        refused(a, &p, 1, 1, conf_addr(1));
    }
    CHECK(conf_got_n(b) == got, "a packet, or an answer to another's, came to the second connector");
    /* And what comes from the VPC with a connector's source does not get through either, nor is answered. */
    struct conf_pkt p = conf_udp(conf_addr(1), conf_addr(2), 100, 1);
    size_t vpc = conf_vpc_n();
    conf_down(t, &p);
    conf_settle(t, 10);
    CHECK(conf_got_n(b) == got && conf_vpc_n() == vpc, "it passed, or was answered");
    struct conf_pkt ok = conf_udp(CONF_HOST, conf_addr(2), 100, 1);
    conf_down(t, &ok);
    WAIT(t, conf_got_n(b) == got + 1);
}

static void each_packet_to_its_prefix(struct conf *t)
{
    struct conf_client *a = conf_tunnel(t);
    t->second_prefix = true;
    struct conf_client *b = conf_tunnel(t);
    size_t na = conf_got_n(a), nb = conf_got_n(b);
    static const char *const to_b[] = {"fd12::1:0:2:0:0", "fd12::1:0:2:ffff:ffff"},
                             *const nobody[] = {"fd12::1:0:3:0:0", "fd12::1:0:0:ffff:ffff",
                                                "fd12::1:8000:2:0:0", "fd20::77"};
    for (size_t i = 0; i < 2; i++) {
        struct conf_pkt p = conf_udp(CONF_HOST, to_b[i], 100, 1);
        conf_down(t, &p);
    }
    for (size_t i = 0; i < 4; i++) {
        struct conf_pkt p = conf_udp(CONF_HOST, nobody[i], 100, 1);
        conf_down(t, &p);
    }
    WAIT(t, conf_got_n(b) == nb + 2);
    conf_settle(t, 10);
    CHECK(conf_got_n(b) == nb + 2 && conf_got_n(a) == na, "a packet went astray");
}

static void too_big_says_the_truth(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    WAIT(t, masque_endpoint_mtu(t->d->ends, t->flow[0]) > 1400);
    conf_settle(t, 50);
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 1490, 1);
    size_t n = conf_vpc_n();
    conf_down(t, &p);
    WAIT(t, conf_vpc_n() == n + 1);
    conf_check_icmp(conf_vpc(n), 2, 0, "fd12::1:0:1:0:0", CONF_HOST, &p);
    const uint8_t *m = conf_vpc(n)->b + 44;
    size_t mtu = (size_t)m[0] << 24 | (size_t)m[1] << 16 | (size_t)m[2] << 8 | m[3], got = conf_got_n(c);
    CHECK(mtu >= 1280 && mtu < 1490, "MTU %zu", mtu);
    struct conf_pkt fits = conf_udp(CONF_HOST, conf_addr(1), mtu, 1),
                    more = conf_udp(CONF_HOST, conf_addr(1), mtu + 1, 1);
    conf_down(t, &fits);
    WAIT(t, conf_got_n(c) == got + 1);
    CHECK(conf_got(c, got).n == mtu, "%zu", conf_got(c, got).n);
    conf_down(t, &more);
    WAIT(t, conf_vpc_n() == n + 2);
    CHECK(conf_got_n(c) == got + 1, "a larger one passed as well");
}

static void no_error_about(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    static const uint8_t unreachable[16] = {1, 0}, too_big[16] = {2, 0}, redirect[40] = {137, 0};
    struct conf_pkt p[8];
    unsigned n = 0;
    p[n++] = conf_raw(conf_addr(1), CONF_OUTSIDE, 58, unreachable, 16); /* an ICMPv6 error */
    p[n++] = conf_raw(conf_addr(1), CONF_OUTSIDE, 58, too_big, 16);
    p[n++] = conf_raw(conf_addr(2), CONF_HOST, 58, unreachable, 16);
    p[n++] = conf_raw(conf_addr(1), CONF_OUTSIDE, 58, redirect, 40);
    p[n++] = conf_udp(conf_addr(1), "ff0e::1", 100, 1); /* to many */
    p[n++] = conf_udp("::", CONF_OUTSIDE, 100, 1);      /* from nobody */
    p[n++] = conf_udp("::1", CONF_OUTSIDE, 100, 1);
    /* A later fragment of ICMPv6: nobody knows what it is a part of. */
    p[n++] = conf_raw(conf_addr(1), CONF_OUTSIDE, 44, "\x3a\0\0\x08\0\0\0\1\1\0\0\0\0\0\0", 16);
    for (unsigned i = 0; i < n; i++)
        refused(c, &p[i], 0, 0, NULL);
}

static void errors_are_limited(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    size_t from = conf_got_n(c);
    for (int i = 0; i < 100; i++) {
        struct conf_pkt p = conf_udp(conf_addr(1), CONF_OUTSIDE, 100, (uint8_t)i);
        t->tr->packet(c->impl, 0, 0, p.b, p.n);
        if (i % 25 == 24)
            WAIT(t, t->n_taken >= (uint64_t)i);
    }
    WAIT(t, t->n_taken == 100);
    conf_settle(t, 20);
    size_t n = conf_got_n(c) - from;
    CHECK(n >= 10 && n <= 26, "%zu answers to 100 packets at once", n);
    conf_push(10 * BASE_SEC);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_OUTSIDE, 100, 1);
    conf_up(c, 0, &p);
    WAIT(t, conf_got_n(c) == from + n + 1);
}

static void errors_quote_what_fits(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    WAIT(t, masque_endpoint_mtu(t->d->ends, t->flow[0]) > 1400);
    static const size_t sizes[] = {48, 100, 1231, 1232, 1233, 1280, 1400};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct conf_pkt p = conf_udp(conf_addr(1), CONF_OUTSIDE, sizes[i], 1);
        refused(c, &p, 1, 0, conf_addr(1)); /* conf_check_icmp looks at the quote */
    }
}

static void hop_limit(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    static const uint8_t hops[] = {1, 2, 64, 255};
    for (size_t i = 0; i < 4; i++) {
        conf_hop(&p, hops[i]);
        conf_up(c, 0, &p);
        WAIT(t, conf_vpc_n() == i + 1);
        CHECK(conf_vpc(i)->b[7] == hops[i], "decapsulation made %d of %d", conf_vpc(i)->b[7], hops[i]);
    }
    p = conf_udp(CONF_HOST, conf_addr(1), 100, 1);
    size_t got = conf_got_n(c);
    for (size_t i = 1; i < 4; i++) {
        conf_hop(&p, hops[i]);
        conf_down(t, &p);
        WAIT(t, conf_got_n(c) == got + i);
        CHECK(conf_got(c, got + i - 1).b[7] == hops[i] - 1, "encapsulation made %d of %d",
              conf_got(c, got + i - 1).b[7], hops[i]);
    }
}

static void own_packets_keep_their_hop_limit(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt ping = conf_echo(conf_addr(1), CONF_TUNNEL, 56),
                    bad = conf_udp(CONF_HOST, CONF_HOST, 100, 1);
    conf_up(c, 0, &ping);
    conf_up(c, 0, &bad);
    WAIT(t, conf_got_n(c) == 2);
    for (size_t i = 0; i < 2; i++)
        CHECK(conf_got(c, i).b[7] == 64, "packet %zu: %d", i, conf_got(c, i).b[7]);
}

static void time_exceeded(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    conf_hop(&p, 0);
    refused(c, &p, 3, 0, conf_addr(1));
    size_t n = conf_vpc_n(), got = conf_got_n(c);
    for (uint8_t hop = 0; hop < 2; hop++) {
        p = conf_udp(CONF_HOST, conf_addr(1), 100, 1);
        conf_hop(&p, hop);
        conf_down(t, &p);
        WAIT(t, conf_vpc_n() == n + hop + 1u);
        conf_check_icmp(conf_vpc(n + hop), 3, 0, "fd12::1:0:1:0:0", CONF_HOST, &p);
    }
    CHECK(conf_got_n(c) == got, "it passed");
}

static void link_local_stays(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt p[3] = {conf_udp("fe80::1", CONF_HOST, 100, 1), conf_udp(conf_addr(1), "fe80::1", 100, 1),
                            conf_udp(conf_addr(1), "ff02::fb", 100, 1)};
    for (unsigned i = 0; i < 3; i++)
        refused(c, &p[i], 0, 0, NULL);
    struct conf_pkt in = conf_udp("fe80::1", conf_addr(1), 100, 1);
    size_t got = conf_got_n(c);
    conf_down(t, &in);
    conf_settle(t, 10);
    CHECK(conf_got_n(c) == got, "a link-local source of the VPC passed");
}

static void echo_one(struct conf_client *c, const char *src, const char *dst, size_t data)
{
    struct conf_pkt p = conf_echo(src, dst, data);
    size_t got = conf_got_n(c), vpc = conf_vpc_n();
    conf_up(c, 0, &p);
    WAIT(c->t, conf_got_n(c) == got + 1);
    struct conf_pkt a = conf_got(c, got);
    conf_check_icmp(&a, 129, 0, CONF_TUNNEL, src, NULL);
    CHECK(a.n == p.n && memcmp(a.b + 44, p.b + 44, p.n - 44) == 0, "another identifier, number or data");
    CHECK(conf_vpc_n() == vpc, "it went on into the VPC");
}

static void echo(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    echo_one(c, conf_addr(1), "ff02::1", 0);
    echo_one(c, conf_addr(1), "ff02::1", 1232);
    echo_one(c, "fe80::7", "ff02::1", 56);
    echo_one(c, conf_addr(1), CONF_TUNNEL, 56);
    struct conf_pkt spoofed = conf_echo(conf_addr(2), "ff02::1", 56),
                    wrong = conf_echo(conf_addr(1), "ff02::1", 56);
    wrong.b[60] ^= 1; /* checksum */
    refused(c, &spoofed, 0, 0, NULL);
    refused(c, &wrong, 0, 0, NULL);
}

static void no_neighbours(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    conf_push(10 * BASE_SEC);
    conf_settle(t, 50);
    CHECK(conf_got_n(c) == 0, "%zu packets that nobody asked for", conf_got_n(c));
    for (int type = 130; type <= 137; type++) {
        uint8_t m[24] = {(uint8_t)type};
        struct conf_pkt p = conf_raw(type == 133 ? "fe80::1" : conf_addr(1), "ff02::2", 58, m, sizeof m);
        refused(c, &p, 0, 0, NULL);
        p = conf_raw("fe80::99", conf_addr(1), 58, m, sizeof m); /* and none from the VPC's side */
        conf_down(t, &p);
    }
    conf_settle(t, 10);
    CHECK(conf_got_n(c) == 0, "router or neighbour messages came through");
}

static void packets_of_1280(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt up = conf_udp(conf_addr(1), CONF_HOST, 1280, 1),
                    down = conf_udp(CONF_HOST, conf_addr(1), 1280, 1);
    conf_down(t, &down); /* at once, before any path MTU discovery has ended */
    WAIT(t, conf_got_n(c) == 1);
    conf_up(c, 0, &up);
    WAIT(t, conf_vpc_n() == 1);
    CHECK(conf_got(c, 0).n == 1280 && conf_vpc(0)->n == 1280, "cut");
}

static void path_below_1280(struct conf *t)
{
    struct conf_client *c = conf_client_with(t, &(struct conf_options){.path_mtu = 1250});
    WAIT(t, t->tr->ready(c->impl));
    size_t s = conf_request(c, NULL, NULL, NULL);
    WAIT(t, conf_status(c, s) == 200);
    for (int i = 0; i < 80 && t->n_ended == 0; i++) {
        conf_push(100 * BASE_MS);
        conf_turn(t);
    }
    CHECK(t->n_ended == 1 && t->ended[0].why == MASQUE_END_MTU, "the tunnel lives without room for 1280");
    WAIT(t, t->tr->end(c->impl, s, &(uint64_t){0}) == CONF_RESET);
}

/* Hop-by-hop, destination options, fragment, then the protocol that counts. */
static void extension_headers(struct conf *t)
{
    struct conf_client *c = conf_tunnel_for(t, "/.well-known/masque/ip/*/17/");
    static const uint8_t hop_udp[] = {17, 0, 1, 4, 0, 0, 0, 0, 0x1b, 0x58, 0x1b, 0x59, 0, 8, 0, 0},
                         hop_tcp[] = {6, 0, 1, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0},
                         dst_frag_udp[] = {44, 0, 1, 4, 0,    0,    0,    0,    17, 0, 0, 1,
                                           0,  0, 0, 9, 0x1b, 0x58, 0x1b, 0x59, 0,  8, 0, 0},
                         dst_frag_tcp[] = {44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 1,
                                           0,  0, 0, 9, 0, 1, 0, 2, 0, 0, 0, 0},
                         later_frag_tcp[] = {6, 0, 0, 0x10, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8};
    struct conf_pkt good[2] = {conf_raw(conf_addr(1), CONF_HOST, 0, hop_udp, sizeof hop_udp),
                               conf_raw(conf_addr(1), CONF_HOST, 60, dst_frag_udp, sizeof dst_frag_udp)},
                    bad[3] = {conf_raw(conf_addr(1), CONF_HOST, 0, hop_tcp, sizeof hop_tcp),
                              conf_raw(conf_addr(1), CONF_HOST, 60, dst_frag_tcp, sizeof dst_frag_tcp),
                              conf_raw(conf_addr(1), CONF_HOST, 44, later_frag_tcp, sizeof later_frag_tcp)};
    for (unsigned i = 0; i < 2; i++) {
        conf_up(c, 0, &good[i]);
        WAIT(t, conf_vpc_n() == i + 1);
    }
    for (unsigned i = 0; i < 3; i++)
        refused(c, &bad[i], 1, 1, conf_addr(1));
}

static void icmp_is_always_in_scope(struct conf *t)
{
    struct conf_client *c = conf_tunnel_for(t, "/.well-known/masque/ip/*/6/");
    struct conf_pkt ping = conf_echo(conf_addr(1), CONF_HOST, 56);
    conf_up(c, 0, &ping);
    WAIT(t, conf_vpc_n() == 1);
    uint8_t ptb[88] = {2, 0, 0, 0, 0, 0, 5, 0};
    struct conf_pkt p = conf_raw("fd20::1", conf_addr(1), 58, ptb, sizeof ptb);
    conf_down(t, &p);
    WAIT(t, conf_got_n(c) == 1);
    struct conf_pkt udp =
        conf_udp(CONF_HOST, conf_addr(1), 100, 1); /* and the other direction is scoped, too */
    size_t got = conf_got_n(c);
    conf_down(t, &udp);
    conf_settle(t, 10);
    CHECK(conf_got_n(c) == got, "UDP passed down a tunnel for TCP");
}

static void routing_headers(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    for (uint8_t type = 0; type < 6; type++) {
        uint8_t h[32] = {17, 2, type, 1};
        h[24] = 0x1b;
        struct conf_pkt p = conf_raw(conf_addr(1), CONF_HOST, 43, h, sizeof h);
        refused(c, &p, 0, 0, NULL);
        uint8_t chain[40] = {43, 0, 1, 4}; /* behind another header */
        memcpy(chain + 8, h, sizeof h);
        p = conf_raw(conf_addr(1), CONF_HOST, 60, chain, sizeof chain);
        refused(c, &p, 0, 0, NULL);
        p = conf_raw(CONF_HOST, conf_addr(1), 43, h, sizeof h);
        size_t got = conf_got_n(c);
        conf_down(t, &p);
        conf_settle(t, 5);
        CHECK(conf_got_n(c) == got, "routing header %d passed to the client", type);
    }
}

static void dscp_stays_inside(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    conf_h3(c)->dscp_in = 0;
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 100, 1);
    p.b[0] = 0x6b; /* DSCP 46 */
    p.b[1] = 0x80;
    for (int i = 0; i < 5; i++)
        conf_down(t, &p);
    WAIT(t, conf_got_n(c) == 5);
    CHECK(conf_got(c, 0).b[0] == 0x6b, "the inner one was changed");
    CHECK(conf_h3(c)->dscp_in == 0, "outer DSCP 0x%x", conf_h3(c)->dscp_in);
}

static void no_waiting_for_company(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    conf_settle(t, 100);
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 100, 1);
    for (int i = 0; i < 10; i++) {
        size_t got = conf_got_n(c);
        conf_tun_put(p.b, p.n);
        conf_turn(t); /* one turn of the endpoint, then one of the client */
        for (int k = 0; k < 3 && conf_got_n(c) == got; k++)
            c->t->tr->step(c->impl, conf_clock());
        CHECK(conf_got_n(c) == got + 1, "packet %d waits for more", i);
        conf_settle(t, 5);
    }
}

/* One connector's flood is cut before the TUN; the next one's packets pass. */
static void rate_of_a_session(struct conf *t)
{
    struct conf_client *a = conf_tunnel(t);
    t->second_prefix = true;
    struct conf_client *b = conf_tunnel(t);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, 1),
                    q = conf_udp(conf_addr(2), CONF_HOST, 100, 2);
    base_time from = conf_clock();
    t->d->rate = (struct agent_rate){.packets = 50};
    for (unsigned i = 0; i < 300; i++) {
        t->tr->packet(a->impl, 0, 0, p.b, p.n);
        if (i % 50 == 49)
            WAIT(t, t->n_taken == i + 1);
    }
    size_t n = conf_vpc_n(), most = 65 + (size_t)((conf_clock() - from) / (20 * BASE_MS));
    CHECK(n >= 64 && n <= most, "%zu of 300 passed, at most %zu", n, most);
    CHECK(t->d->n.drop_rate == 300 - n, "%llu counted", (unsigned long long)t->d->n.drop_rate);
    for (unsigned i = 0; i < 20; i++)
        conf_up(b, 0, &q);
    WAIT(t, conf_vpc_n() >= n + 20);
    CHECK(t->d->n.drop_rate == 300 - n, "the other session pays for it");
}

const struct conf_case conf_packets[] = {
    {"1d.1", "RFC 9484 11", "MUST", "ingress filter: sources of the assigned /96 only, to the bit",
     "ingress_filter", CONF_BOTH, ingress_filter},
    {"1d.25", "RFC 9484 7.2.1", "SHOULD", "bad source: unreachable, code 5", "ingress_filter", CONF_BOTH,
     NULL},
    {"1d.2", "RFC 9484 7.2", "MUST", "a bad packet is dropped and ends nothing", "bad_packets_end_nothing",
     CONF_BOTH, bad_packets_end_nothing},
    {"1d.3", "RFC 9484 7.2.1", "SHOULD", "no route: unreachable, code 0", "no_route", CONF_BOTH, no_route},
    {"1d.4", "RFC 9484 7.2.1", "SHOULD", "policy: unreachable, code 1", "policy", CONF_BOTH, policy},
    {"1d.5", "RFC 9484 7.2.1", "SHOULD", "too big: Packet Too Big with the true MTU, never below 1280",
     "too_big_says_the_truth", CONF_H3, too_big_says_the_truth},
    {"1d.6", "RFC 4443 2.4 (e)", "MUST",
     "no error about an error, a redirect, a multicast packet, a source that is not one node",
     "no_error_about", CONF_BOTH, no_error_about},
    {"1d.7", "RFC 4443 2.4 (f)", "MUST", "errors are limited in rate, for each sender", "errors_are_limited",
     CONF_BOTH, errors_are_limited},
    {"1d.8", "RFC 4443 2.4 (c)", "MUST", "errors quote as much as fits into 1280 bytes",
     "errors_quote_what_fits", CONF_BOTH, errors_quote_what_fits},
    {"1d.9", "RFC 9484 7.2", "MUST", "hop limit: counted down once, on encapsulation only", "hop_limit",
     CONF_BOTH, hop_limit},
    {"1d.24", "RFC 9484 7.2", "MUST", "packets of the proxy's own keep their hop limit",
     "own_packets_keep_their_hop_limit", CONF_BOTH, own_packets_keep_their_hop_limit},
    {"1d.10", "RFC 4443 3.3", "MUST", "hop limit used up: Time Exceeded, not forwarded", "time_exceeded",
     CONF_BOTH, time_exceeded},
    {"1d.11", "RFC 9484 7.2", "MUST", "link-local is not forwarded beyond the tunnel", "link_local_stays",
     CONF_BOTH, link_local_stays},
    {"1d.12", "RFC 9484 7.2", "MUST",
     "an ICMPv6 echo to ff02::1 and to the tunnel's address is answered, with 1232 bytes of data, too",
     "echo", CONF_BOTH, echo},
    {"1d.13", "RFC 9484 7.1", "MUST", "no router advertisement, no neighbour discovery on the tunnel",
     "no_neighbours", CONF_BOTH, no_neighbours},
    {"1d.14", "RFC 9484 7.2", "MUST", "packets of 1280 bytes pass, from the first one on", "packets_of_1280",
     CONF_BOTH, packets_of_1280},
    {"1d.15", "RFC 9484 7.2", "MUST", "a path that drops below 1280 aborts the stream", "path_below_1280",
     CONF_H3, path_below_1280},
    {"1d.16", "RFC 9484 4.8", "MUST", "protocol scope: the first header that is no extension header counts",
     "extension_headers", CONF_BOTH, extension_headers},
    {"1d.17", "RFC 9484 4.6", "MUST", "ICMP is in every scope, in both directions", "icmp_is_always_in_scope",
     CONF_BOTH, icmp_is_always_in_scope},
    {"1d.18", "RFC 5095", "MUST", "routing header 0 is refused, and every other", "routing_headers",
     CONF_BOTH, routing_headers},
    {"1d.19", "RFC 9484 11", "SHOULD",
     "connector to connector is off; nobody sees an answer to another's packet", "connectors_are_apart",
     CONF_BOTH, connectors_are_apart},
    {"1d.20", "RFC 9484 4.7.1", "MUST",
     "a packet goes to the tunnel whose /96 holds its destination, or to nobody", "each_packet_to_its_prefix",
     CONF_BOTH, each_packet_to_its_prefix},
    {"1d.21", "RFC 9484 10.3", "SHOULD", "DSCP is not copied to the outer packet", "dscp_stays_inside",
     CONF_H3, dscp_stays_inside},
    {"1d.22", "RFC 9484 10", "SHOULD", "no packet waits for others to fill a batch", "no_waiting_for_company",
     CONF_H3, no_waiting_for_company},
    {"1d.23", "RFC 9484 11", "MAY", "what one session sends is limited in rate; others do not notice",
     "rate_of_a_session", CONF_BOTH, rate_of_a_session},
    {0},
};
