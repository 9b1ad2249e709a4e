/* SPDX-License-Identifier: Apache-2.0
 *
 * Checklist 1c: datagrams. QUIC's are HTTP/3's alone; what is said of HTTP datagrams holds on every
 * transport.
 */
#include <string.h>

#include "conf.h"

static void h3_bad_quarter_stream_id(struct conf *t)
{
    static const struct {
        const char *name;
        uint8_t in[16];
        size_t n;
    } rows[] = {{"empty", {0}, 0},
                {"half of one", {0xc0, 0, 0}, 3},
                {"2^60", {0xd0, 0, 0, 0, 0, 0, 0, 0, 0, 0x60}, 10},
                {"2^62-1", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x60}, 10}};
    for (size_t i = 0; i < 4; i++) {
        struct conf_client *c = conf_tunnel(t);
        uint64_t code;
        testclient_datagram(conf_h3(c), rows[i].in, rows[i].n);
        WAIT(t, conf_closed(c));
        (void)t->tr->closed(c->impl, &code);
        CHECK(code == 0x33 && conf_h3(c)->close_is_app, "%s: error 0x%llx", rows[i].name,
              (unsigned long long)code);
        WAIT(t, t->n_ended == i + 1);
    }
}

static void h3_datagram_of_a_later_stream(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    uint64_t before = conf_stats(t).drop_early;
    for (int i = 0; i < 50; i++)
        testclient_datagram(conf_h3(c), (uint8_t[]){3, 0, 0x60, 0}, 4); /* stream 12, not there yet */
    WAIT(t, conf_stats(t).drop_early >= before + 42);
    conf_alive(c, 0);
    CHECK(conf_stats(t).drop_early - before <= 50, "more were dropped than sent");
    CHECK(!conf_closed(c), "the connection ended");
}

static void h3_datagram_of_an_ended_stream(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    t->tr->write(c->impl, 0, NULL, 0, true);
    WAIT(t, conf_ended(c, 0));
    size_t n = conf_vpc_n();
    for (int i = 0; i < 5; i++)
        t->tr->packet(c->impl, 0, 0, p.b, p.n);
    conf_settle(t, 30);
    CHECK(conf_vpc_n() == n, "a packet passed");
    CHECK(!conf_closed(c), "the connection ended");
    t->second_prefix = true;
    size_t s = conf_request(c, NULL, NULL, NULL);
    WAIT(t, conf_status(c, s) == 200);
}

static void h3_datagram_beyond_the_stream_limit(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    uint64_t code;
    testclient_datagram(conf_h3(c), (uint8_t[]){0x3f, 0, 0x60}, 3);
    WAIT(t, conf_closed(c));
    (void)t->tr->closed(c->impl, &code);
    CHECK(code == 0x108, "error 0x%llx, not H3_ID_ERROR", (unsigned long long)code);
}

/* GET has no semantics for datagrams: its stream ends, whatever comes. */
static void datagram_of_another_request(struct conf *t)
{
    static const struct testclient_field get[] = {
        {":method", "GET"}, {":scheme", "https"}, {":authority", "masque.test"}, {":path", "/"}};
    struct conf_client *c = conf_client(t);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    size_t s = t->tr->request(c->impl, get, 4, false);
    uint64_t code;
    t->tr->packet(c->impl, s, 0, p.b, p.n);
    WAIT(t, t->tr->end(c->impl, s, &code) != CONF_OPEN);
    t->tr->packet(c->impl, s, 0, p.b, p.n);
    conf_settle(t, 20);
    CHECK(t->n_taken == 0 && conf_vpc_n() == 0, "it was taken for a packet");
    CHECK(!conf_closed(c), "the connection ended");
}

static void datagram_without_context(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    testclient_datagram(conf_h3(c), (uint8_t[]){0}, 1);
    WAIT(t, conf_reset_with(c, 0, CONF_CODE_DATAGRAM));
    CHECK(!conf_closed(c), "the connection ended");
}

static void none_after_our_side_has_ended(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 100, 1);
    t->tr->reset(c->impl, 0);
    WAIT(t, t->n_ended == 1);
    size_t n = conf_got_n(c);
    for (int i = 0; i < 5; i++)
        conf_down(t, &p);
    conf_settle(t, 20);
    CHECK(conf_got_n(c) == n, "%zu datagrams came", conf_got_n(c) - n);
}

static void unknown_contexts(struct conf *t)
{
    static const uint64_t contexts[] = {1, 2, 3, 64, 16384, 0x6000, (UINT64_C(1) << 62) - 1};
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++)
        t->tr->packet(c->impl, 0, contexts[i], p.b, p.n);
    conf_settle(t, 20);
    CHECK(t->n_taken == 0, "one was taken");
    conf_alive(c, 0);
    CHECK(t->n_ended == 0, "%s", t->n_ended ? t->ended[0].detail : "");
}

/* Two requests of one client, one after the other: context 0 of each is its own. */
static void contexts_belong_to_their_request(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    t->tr->reset(c->impl, 0);
    WAIT(t, t->n_ended == 1);
    size_t s = conf_request(c, NULL, NULL, NULL);
    WAIT(t, conf_status(c, s) == 200);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    t->tr->packet(c->impl, 0, 0, p.b, p.n);
    conf_settle(t, 20);
    CHECK(conf_vpc_n() == 0, "a packet of the old request passed");
    conf_alive(c, s);
}

/* Losses are the inner connection's business: nothing comes twice, nothing waits for what was lost. */
static void lost_datagrams_stay_lost(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    uint8_t seen[256] = {0};
    conf_settle(t, 50);
    size_t from = conf_got_n(c);
    for (unsigned i = 0; i < 60; i++) {
        struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 300, (uint8_t)i);
        if (i == 20)
            conf_h3(c)->lose = 10;
        conf_down(t, &p);
        conf_turn(t);
    }
    conf_push(BASE_SEC); /* any retransmission would be due by now */
    conf_settle(t, 100);
    size_t n = conf_got_n(c), lost = 0;
    for (size_t i = from; i < n; i++) {
        struct conf_pkt p = conf_got(c, i);
        CHECK(p.n == 300 && ++seen[p.b[48]] == 1, "packet %d came twice", p.b[48]);
    }
    for (unsigned i = 0; i < 60; i++)
        lost += seen[i] == 0;
    CHECK(lost > 0 && lost <= 10, "%zu of 60 are missing", lost);
    CHECK(seen[59] == 1, "the last one did not come");
}

/* A client that stands still does not make the queue grow, and gets nothing old afterwards. */
static void a_full_window_drops(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    conf_settle(t, 50);
    uint64_t dropped = conf_drop_queue(t);
    c->mute = true;
    for (unsigned i = 0; i < 3000; i++) {
        struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 1200, 1);
        conf_tun_put(p.b, p.n);
        if (i % 64 == 63)
            conf_turn(t);
    }
    conf_turn(t);
    conf_push(100 * BASE_MS);
    conf_turn(t);
    CHECK(conf_drop_queue(t) > dropped, "nothing was dropped");
    conf_push(BASE_SEC);
    c->mute = false;
    conf_settle(t, 50);
    size_t n = conf_got_n(c);
    CHECK(n < 1000, "%zu packets were kept for a client that stood still", n);
    t->tr->reset(c->impl, 0);
}

static void too_big_is_no_capsule(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_capsules k;
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 1480, 1);
    size_t n = conf_vpc_n(), got = conf_got_n(c);
    conf_down(t, &p);
    WAIT(t, conf_vpc_n() == n + 1);
    conf_check_icmp(conf_vpc(n), 2, 0, "fd12::1:0:1:0:0", CONF_HOST, &p);
    conf_settle(t, 20);
    conf_read_capsules(c, 0, &k);
    CHECK(k.datagrams == 0 && conf_got_n(c) == got, "it was sent all the same");
}

static void no_early_data(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    conf_settle(t, 100);
    CHECK(conf_h3(c)->post_handshake == 0, "%llu bytes of TLS after the handshake: a ticket",
          (unsigned long long)conf_h3(c)->post_handshake);
}

static void early_packets_are_bounded(struct conf *t)
{
    t->answer = CONF_HOLD;
    struct conf_client *c = conf_client(t);
    size_t s = conf_request(c, NULL, NULL, NULL);
    for (unsigned i = 0; i < 30; i++) {
        struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, (uint8_t)i);
        t->tr->packet(c->impl, s, 0, p.b, p.n);
    }
    WAIT(t, t->n_flow == 1);
    conf_settle(t, 30);
    CHECK(conf_vpc_n() == 0, "passed before the tunnel was there");
    conf_decide(t, t->flow[0], CONF_ACCEPT);
    WAIT(t, conf_vpc_n() == 8);
    for (size_t i = 0; i < 8; i++)
        CHECK(conf_vpc(i)->b[48] == i, "out of order");
    conf_alive(c, s);
}

const struct conf_case conf_datagrams[] = {
    {"1c.1", "RFC 9297 2.1", "MUST", "a Quarter Stream ID that is missing or too large is H3_DATAGRAM_ERROR",
     "h3_bad_quarter_stream_id", CONF_H3, h3_bad_quarter_stream_id},
    {"1c.2", "RFC 9297 2.1", "MUST",
     "datagrams of a stream that is not there yet: dropped or kept within bounds",
     "h3_datagram_of_a_later_stream", CONF_H3, h3_datagram_of_a_later_stream},
    {"1c.3", "RFC 9297 2.1", "MUST",
     "datagrams of a stream whose receive side has ended are dropped in silence",
     "h3_datagram_of_an_ended_stream", CONF_H3, h3_datagram_of_an_ended_stream},
    {"1c.4", "RFC 9297 2.1", "SHOULD", "datagrams of a stream beyond the limit: H3_ID_ERROR",
     "h3_datagram_beyond_the_stream_limit", CONF_H3, h3_datagram_beyond_the_stream_limit},
    {"1c.5", "RFC 9297 2", "MUST", "a datagram of a request that has no use for it ends that request only",
     "datagram_of_another_request", CONF_H3, datagram_of_another_request},
    {"1c.6", "RFC 9484 6", "MUST", "a datagram without a whole context ID ends its stream",
     "datagram_without_context", CONF_H3, datagram_without_context},
    {"1c.7", "RFC 9297 2.1", "MUST", "none is sent once our side of the stream has ended",
     "none_after_our_side_has_ended", CONF_BOTH, none_after_our_side_has_ended},
    {"1c.8", "RFC 9484 6", "MUST", "an unknown context ID is dropped and is no error", "unknown_contexts",
     CONF_BOTH, unknown_contexts},
    {"1c.9", "RFC 9484 5", "MUST", "context IDs belong to their request", "contexts_belong_to_their_request",
     CONF_BOTH, contexts_belong_to_their_request},
    {"1c.10", "RFC 9221 5.2", "MUST", "a lost datagram is not sent again and holds up nothing",
     "lost_datagrams_stay_lost", CONF_H3, lost_datagrams_stay_lost},
    {"1c.11", "RFC 9221 5.4", "MUST", "a full congestion window delays or drops; the queue is bounded",
     "a_full_window_drops", CONF_BOTH, a_full_window_drops},
    {"1c.12", "RFC 9484 10.1", "SHOULD",
     "a packet too large for a datagram becomes Packet Too Big, not a capsule", "too_big_is_no_capsule",
     CONF_H3, too_big_is_no_capsule},
    {"1c.13", "RFC 9297 2.1.1", "MUST", "0-RTT is not offered (no ticket), so old limits bind nobody",
     "no_early_data", CONF_H3, no_early_data},
    {"1c.14", "RFC 9298 5", "MAY", "packets before the answer are kept, in order, within bounds",
     "early_packets_are_bounded", CONF_BOTH, early_packets_are_bounded},
    {0},
};
