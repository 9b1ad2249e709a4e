/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of public bug reports of other implementations. A row without a function is shown by the case that
 * it names.
 */
#include <string.h>

#include "conf.h"
#include "masque/varint.h"

#define ANY16 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

static void grease_then_request(struct conf *t)
{
    static const uint8_t in[] = {0x41, 0x88, 0x03, 1, 2, 3, 0x02, 0x13, 7, 6, ANY16, 0x60};
    struct conf_client *c = conf_tunnel(t);
    struct conf_capsules k;
    conf_write(c, 0, in, sizeof in);
    WAIT(t, (conf_read_capsules(c, 0, &k), k.assigns == 2));
    CHECK(k.addr[0].request_id == 7, "%llu", (unsigned long long)k.addr[0].request_id);
    conf_alive(c, 0);
}

static void capsules_with_the_request(struct conf *t)
{
    static const uint8_t in[] = {0x41, 0x88, 0x03, 1, 2,     3, /* GREASE, then two real ones in one piece */
                                 0x02, 0x13, 7,    6, ANY16, 0x60, 0x02, 0x07, 8, 4, 0, 0, 0, 0, 0x20};
    t->answer = CONF_HOLD;
    struct conf_client *c = conf_client(t);
    struct conf_capsules k;
    size_t s = conf_request(c, NULL, NULL, NULL);
    conf_write(c, s, in, sizeof in); /* leaves together with the headers */
    WAIT(t, t->n_flow == 1);
    conf_settle(t, 10);
    conf_decide(t, t->flow[0], CONF_ACCEPT);
    WAIT(t, (conf_read_capsules(c, s, &k), k.assigns > 0 && k.routes > 0));
    CHECK(k.n_addr == 2 && k.addr[0].request_id == 7 && k.addr[1].request_id == 8, "%zu answers", k.n_addr);
    conf_alive(c, s);
}

static void oversize_flood_while_connecting(struct conf *t)
{
    struct conf_client *a = conf_tunnel(t);
    WAIT(t, masque_endpoint_mtu(t->d->ends, t->flow[0]) > 1400);
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 1490, 1);
    size_t n = conf_vpc_n();
    for (int i = 0; i < 200; i++)
        conf_tun_put(p.b, p.n);
    t->tr->reset(a->impl, 0); /* reconnects in the middle of the flood */
    WAIT(t, t->n_ended == 1);
    struct conf_client *b = conf_tunnel(t);
    for (int i = 0; i < 200; i++)
        conf_tun_put(p.b, p.n);
    conf_settle(t, 30);
    CHECK(conf_vpc_n() - n <= 2 * 22, "%zu answers: as many as packets", conf_vpc_n() - n);
    conf_push(10 * BASE_SEC);
    conf_alive(b, 0);
}

static void the_end_comes_inside_a_capsule(struct conf *t)
{
    static const uint8_t half[] = {0x02, 0x13, 7, 6, 0, 0};
    struct conf_client *c = conf_tunnel(t);
    conf_write(c, 0, half, sizeof half);
    conf_settle(t, 20);
    t->tr->hang_up(c->impl);
    c->mute = true;
    WAIT(t, t->n_ended == 1);
    conf_settle(t, 20);
    unsigned busy = 0;
    for (int i = 0; i < 100; i++) {
        busy += masque_endpoint_expiry(t->d->ends) <= conf_clock();
        conf_turn(t);
    }
    CHECK(busy < 5, "the endpoint has something to do in %u of 100 turns", busy);
}

static void reset_after_a_long_idle(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    for (int i = 0; i < 60; i++) {
        conf_push(5 * BASE_SEC);
        conf_settle(t, 3);
    }
    if (t->tr->id == CONF_H3)
        testclient_reset(conf_h3(c), 0, 0x100); /* H3_NO_ERROR */
    else
        t->tr->reset(c->impl, 0);
    WAIT(t, t->n_ended == 1);
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 100, 1);
    conf_down(t, &p);
    conf_settle(t, 20);
    size_t s = conf_request(c, NULL, NULL, NULL); /* the connection is as good as before */
    WAIT(t, conf_status(c, s) == 200);
    conf_alive(c, s);
}

/* What control does when a connector comes back before its first session has ended: barrier, then admission. */
static struct conf_client *take_over(struct conf *t)
{
    unsigned n = t->n_flow;
    t->answer = CONF_HOLD;
    struct conf_client *b = conf_client(t);
    size_t s = conf_request(b, NULL, NULL, NULL);
    WAIT(t, t->n_flow == n + 1);
    masque_endpoint_stop(t->d->ends, t->flow[n - 1]);
    agent_flows_stop(t->d->flows, agent_flows_find(t->d->flows, t->flow[n - 1]));
    conf_decide(t, t->flow[n], CONF_ACCEPT);
    WAIT(t, conf_status(b, s) == 200);
    return b;
}

static void two_sessions_of_one_connector(struct conf *t)
{
    struct conf_client *a = conf_tunnel(t), *b = take_over(t);
    size_t na = conf_got_n(a), nb = conf_got_n(b), vpc = conf_vpc_n();
    struct conf_pkt down = conf_udp(CONF_HOST, conf_addr(1), 100, 1),
                    up = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    for (int i = 0; i < 20; i++) {
        conf_down(t, &down);
        t->tr->packet(a->impl, 0, 0, up.b, up.n);
        conf_turn(t);
    }
    WAIT(t, conf_got_n(b) == nb + 20);
    conf_settle(t, 20);
    CHECK(conf_got_n(a) == na, "%zu packets went to the old session", conf_got_n(a) - na);
    CHECK(conf_vpc_n() == vpc, "%zu packets of the old session passed", conf_vpc_n() - vpc);
}

static void a_late_close_of_the_old_session(struct conf *t)
{
    struct conf_client *a = conf_tunnel(t), *b = take_over(t);
    conf_alive(b, 0);
    t->tr->reset(a->impl, 0);
    WAIT(t, t->n_ended == 1);
    conf_alive(b, 0);
}

static void keep_alive_at_the_idle_time(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    ngtcp2_conn_set_keep_alive_timeout(conf_h3(c)->quic, 30 * NGTCP2_SECONDS); /* its own idle time-out */
    for (int i = 0; i < 180; i++) {
        conf_push(BASE_SEC);
        conf_settle(t, 1);
    }
    CHECK(t->n_ended == 0 && !conf_closed(c), "%s", t->n_ended ? t->ended[0].detail : "");
    conf_alive(c, 0);
}

static void too_long_for_the_path_blocks_nothing(struct conf *t)
{
    struct conf_client *c = conf_client_with(t, &(struct conf_options){.path_mtu = 1250});
    WAIT(t, t->tr->ready(c->impl));
    size_t s = conf_request(c, NULL, NULL, NULL);
    WAIT(t, conf_status(c, s) == 200);
    struct conf_pkt large = conf_udp(CONF_HOST, conf_addr(1), 1280, 1),
                    small = conf_udp(CONF_HOST, conf_addr(1), 60, 2);
    conf_tun_put(large.b, large.n);
    conf_tun_put(small.b, small.n);
    WAIT(t, conf_got_n(c) == 1);
    CHECK(conf_got(c, 0).n == 60, "%zu", conf_got(c, 0).n);
}

static void too_long_for_any_path_blocks_nothing(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt large = conf_udp(CONF_HOST, conf_addr(1), 2000, 1),
                    small = conf_udp(CONF_HOST, conf_addr(1), 100, 2);
    size_t got = conf_got_n(c), vpc = conf_vpc_n();
    conf_tun_put(large.b, large.n);
    conf_tun_put(small.b, small.n);
    WAIT(t, conf_got_n(c) == got + 1 && conf_vpc_n() == vpc + 1);
    CHECK(conf_got(c, got).n == 100, "%zu", conf_got(c, got).n);
    conf_check_icmp(conf_vpc(vpc), 2, 0, "fd12::1:0:1:0:0", CONF_HOST, &large);
}

static void a_datagram_behind_stream_bytes(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct masque_address ask[60];
    uint8_t buf[2048];
    conf_settle(t, 50);
    for (int round = 0; round < 8; round++) {
        for (uint64_t k = 0; k < 60; k++)
            ask[k] = (struct masque_address){.request_id = k + 1, .version = 6, .len = 128};
        size_t got = conf_got_n(c), n, before;
        (void)t->tr->body(c->impl, 0, &before);
        conf_write(c, 0, buf,
                   masque_address_encode(buf, sizeof buf, MASQUE_CAPSULE_ADDRESS_REQUEST, ask, 60));
        struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 1100, 1);
        for (int i = 0; i < 5; i++)
            conf_down(t, &p); /* one of these turns has about 1,200 bytes of answers to write as well */
        WAIT(t, conf_got_n(c) == got + 5 && (t->tr->body(c->impl, 0, &n), n > before));
        conf_push(BASE_SEC);
        conf_settle(t, 3);
    }
    CHECK(conf_stats(t).drop_queue == 0, "%llu were dropped", (unsigned long long)conf_stats(t).drop_queue);
}

/* A client that gives no window for answers is still listened to. */
static void a_blocked_answer_stops_no_packet(struct conf *t)
{
    struct conf_client *c = conf_client_with(t, &(struct conf_options){.no_window = true});
    WAIT(t, t->tr->ready(c->impl));
    size_t s = conf_request(c, NULL, NULL, NULL), n;
    WAIT(t, conf_status(c, s) == 200);
    for (unsigned i = 0; i < 800; i++) { /* more than 64 KiB */
        struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 80, (uint8_t)i),
                        down = conf_udp(CONF_HOST, conf_addr(1), 80, 1);
        t->tr->packet(c->impl, s, 0, p.b, p.n);
        if (i % 50 == 0) {
            conf_down(t, &down);
            conf_turn(t);
        }
    }
    WAIT(t, conf_vpc_n() == 800);
    (void)t->tr->body(c->impl, s, &n);
    CHECK(n == 0 && t->n_ended == 0, "%zu bytes came through a closed window, %u ended", n, t->n_ended);
}

static void long_packets_are_not_cut(struct conf *t)
{
    enum { N = 4 };
    struct conf_client *c = conf_tunnel(t);
    static const size_t sizes[N] = {1500, 1501, 1999, 2048};
    struct conf_pkt p[N];
    for (size_t i = 0; i < N; i++) {
        uint8_t buf[2100] = {0};
        p[i] = conf_udp(conf_addr(1), CONF_HOST, sizes[i], 1);
        size_t n = 1 + masque_varint_put(buf + 1, 8, p[i].n + 1);
        buf[n++] = 0;
        memcpy(buf + n, p[i].b, p[i].n);
        conf_write(c, 0, buf, n + p[i].n);
        conf_settle(t, 20);
    }
    conf_alive(c, 0);                           /* what was before has come */
    for (size_t k = 0; k < conf_vpc_n(); k++) { /* whole, or one of conf_alive's */
        const struct conf_pkt *got = conf_vpc(k);
        bool whole = got->n < sizes[0];
        for (size_t i = 0; i < N; i++)
            whole |= got->n == p[i].n && memcmp(got->b, p[i].b, got->n) == 0;
        CHECK(whole, "packet %zu has %zu bytes", k, got->n);
    }
}

static void the_client_moves(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    conf_settle(t, 50);
    for (int i = 0; i < 3; i++) {
        testclient_rebind(conf_h3(c));
        conf_alive(c, 0);
        conf_settle(t, 50);
        conf_alive(c, 0);
    }
    CHECK(t->n_ended == 0 && t->n_flow == 1, "another tunnel was made of it");
}

const struct conf_case conf_bugs[] = {
    {"bug 1", "connect-ip-go 23eb188", "", "an unknown capsule kills the tunnel", "grease_then_request",
     CONF_BOTH, grease_then_request},
    {"bug 2", "picoquic PR 1966", "", "capsules glued to the request are lost", "capsules_with_the_request",
     CONF_BOTH, capsules_with_the_request},
    {"bug 5", "connect-ip-go PR 89", "", "ADDRESS_REQUEST: empty, ID 0, one ID twice",
     "requests_that_must_abort", CONF_BOTH, NULL},
    {"bug 7", "connect-ip-go issue 13", "", "protocol scope looks at the fixed header only",
     "extension_headers", CONF_BOTH, NULL},
    {"bug 8", "connect-ip-go issue 15", "", "drops without a word", "time_exceeded", CONF_BOTH, NULL},
    {"bug 8b", "connect-ip-go issue 15", "", "nor about a source that is not the client's", "ingress_filter",
     CONF_BOTH, NULL},
    {"bug 9", "connect-ip-go PR 22, 25", "", "ping and Packet Too Big are filtered",
     "icmp_is_always_in_scope", CONF_BOTH, NULL},
    {"bug 10", "usque issue 123", "", "a path too small for 1280: silence", "path_below_1280", CONF_H3, NULL},
    {"bug 11", "usque PR 103", "", "a flood of oversize packets while connecting hangs the tunnel",
     "oversize_flood_while_connecting", CONF_H3, oversize_flood_while_connecting},
    {"bug 12", "usque issue 80", "", "an end inside a capsule: busy loop", "the_end_comes_inside_a_capsule",
     CONF_BOTH, the_end_comes_inside_a_capsule},
    {"bug 13", "usque issue 49", "", "hangs after a reset with H3_NO_ERROR", "reset_after_a_long_idle",
     CONF_BOTH, reset_after_a_long_idle},
    {"bug 14", "usque 29b7a8d", "", "an old session takes the new one's packets",
     "two_sessions_of_one_connector", CONF_BOTH, two_sessions_of_one_connector},
    {"bug 15", "tmasqued BENCHMARKS.md", "", "a late end of the old session takes the new one's route",
     "a_late_close_of_the_old_session", CONF_BOTH, a_late_close_of_the_old_session},
    {"bug 17", "masque-server 0.2.0", "", "keep-alive at exactly the idle time-out",
     "keep_alive_at_the_idle_time", CONF_H3, keep_alive_at_the_idle_time},
    {"bug 17b", "masque-server 0.2.0", "", "a quiet tunnel ends: PINGs of its own keep it",
     "a_quiet_tunnel_stays", CONF_H2, NULL},
    {"bug 18", "ngtcp2 issues 1473, 811", "", "one datagram too long for the path stops all later ones",
     "too_long_for_the_path_blocks_nothing", CONF_H3, too_long_for_the_path_blocks_nothing},
    {"bug 19", "quic-go issue 4003", "", "one packet too long for any path blocks for ever",
     "too_long_for_any_path_blocks_nothing", CONF_H3, too_long_for_any_path_blocks_nothing},
    {"bug 20", "picoquic PR 1907", "", "too long datagrams clog the queue",
     "too_long_for_the_path_blocks_nothing", CONF_H3, NULL},
    {"bug 21", "s2n-quic PR 2214", "", "datagrams that do not fit the current packet are dropped",
     "a_datagram_behind_stream_bytes", CONF_H3, a_datagram_behind_stream_bytes},
    {"bug 23", "msquic PR 4320", "", "datagrams wait for seconds in a queue without bounds",
     "a_full_window_drops", CONF_BOTH, NULL},
    {"bug 24", "masque-server PR 36", "", "the first packets are lost", "early_packets_are_bounded",
     CONF_BOTH, NULL},
    {"bug 26", "masque-server 0.7.0", "", "reading stops while the window for answers is closed",
     "a_blocked_answer_stops_no_packet", CONF_H2, a_blocked_answer_stops_no_packet},
    {"bug 28", "masque-go PR 107", "", "packets above 1500 bytes are cut", "long_packets_are_not_cut",
     CONF_BOTH, long_packets_are_not_cut},
    {"bug 29", "google/quiche issue 73", "", "IPv6 does not work", "default_template", CONF_BOTH, NULL},
    {"bug 30", "google/quiche masque_server", "", "no check of the source", "ingress_filter", CONF_BOTH,
     NULL},
    {"bug 32", "draft-connect-ip PR 177", "", "request smuggling by an HTTP/1.1 upgrade: not offered",
     "alpn_is_enforced", CONF_BOTH, NULL},
    {"bug 33", "masque-server 0.8.0", "", "a client that moves is lost", "the_client_moves", CONF_H3,
     the_client_moves},
    {0},
};
