/* SPDX-License-Identifier: Apache-2.0
 *
 * Checklist 1b: capsules.
 */
#include <string.h>

#include "conf.h"
#include "masque/varint.h"

#define ANY16 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

static void unknown_capsules_are_skipped(struct conf *t)
{
    static const uint8_t in[] = {0x17, 0x01, 0xaa,                /* GREASE: 0x29 * 0 + 0x17 */
                                 0x41, 0x88, 0x03, 1,    2,    3, /* two-byte type */
                                 0xc0, 0,    0,    0x12, 0x34, 0x56,
                                 0x78, 0x9a, 0x00,              /* eight-byte type, empty */
                                 0x40, 0x04, 0x40, 0x01, 0xff}; /* not minimal */
    struct conf_client *c = conf_tunnel(t);
    conf_write(c, 0, in, sizeof in);
    conf_settle(t, 10);
    for (size_t i = 0; i < sizeof in; i++) { /* and in pieces of one byte */
        conf_write(c, 0, in + i, 1);
        conf_turn(t);
    }
    conf_settle(t, 10);
    conf_alive(c, 0);
    CHECK(t->n_ended == 0, "%s", t->n_ended ? t->ended[0].detail : "");
}

static void known_capsule_with_a_long_varint(struct conf *t)
{
    static const uint8_t in[] = {0x80, 0, 0, 0x02, 0x40, 0x13, 5, 6, ANY16, 0x60};
    struct conf_client *c = conf_tunnel(t);
    struct conf_capsules k;
    conf_write(c, 0, in, sizeof in);
    WAIT(t, (conf_read_capsules(c, 0, &k), k.assigns == 2));
    CHECK(k.addr[0].request_id == 5, "Request ID %llu", (unsigned long long)k.addr[0].request_id);
}

/* A capsule larger than any window passes by: nobody waits for its end. */
static void long_capsules_are_not_collected(struct conf *t)
{
    static uint8_t buf[600000];
    struct conf_client *c = conf_tunnel(t);
    size_t n = masque_varint_put(buf, 8, 0x1234567);
    n += masque_varint_put(buf + n, 8, 599000);
    conf_write(c, 0, buf, n + 300000);
    conf_settle(t, 30);
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 100, 1); /* in the middle of it */
    conf_down(t, &p);
    WAIT(t, conf_got_n(c) == 1);
    conf_write(c, 0, buf + 100, 299000);
    conf_settle(t, 30);
    conf_alive(c, 0);
    CHECK(t->n_ended == 0, "%s", t->n_ended ? t->ended[0].detail : "");
}

struct bad {
    const char *name;
    uint8_t in[64];
    size_t n;
    bool fin;
};

static void each_ends_the_stream(struct conf *t, const struct bad *rows, size_t n, enum conf_code code)
{
    struct conf_client *c = NULL;
    for (size_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            c = conf_client(t);
        size_t s = conf_request(c, NULL, NULL, NULL);
        WAIT(t, conf_status(c, s) == 200);
        t->tr->write(c->impl, s, rows[i].in, rows[i].n, rows[i].fin);
        uint64_t got;
        WAIT(t, t->tr->end(c->impl, s, &got) != CONF_OPEN && t->n_ended == i + 1);
        CHECK(conf_reset_with(c, s, code), "%s: %s", rows[i].name,
              t->tr->end(c->impl, s, &got) == CONF_RESET ? "another error code" : "not reset");
        CHECK(t->ended[i].why == MASQUE_END_PROTOCOL, "%s", rows[i].name);
        CHECK(!conf_closed(c), "%s: the whole connection ended", rows[i].name);
    }
}

static void capsules_that_are_not_their_fields(struct conf *t)
{
    static const struct bad rows[] = {
        {"trailing byte", {0x02, 0x14, 1, 6, ANY16, 0x60, 0xff}, 22, false},
        {"short field", {0x02, 0x05, 1, 6, 0, 0, 0}, 7, false},
        {"version 5", {0x02, 0x07, 1, 5, 0, 0, 0, 0, 8}, 9, false},
        {"prefix length 129", {0x02, 0x13, 1, 6, ANY16, 0x81}, 21, false},
        {"prefix length 33", {0x02, 0x07, 1, 4, 0, 0, 0, 0, 33}, 9, false},
        {"bits after the prefix", {0x02, 0x07, 1, 4, 10, 0, 0, 1, 8}, 9, false},
        {"ADDRESS_ASSIGN version 5", {0x01, 0x07, 0, 5, 0, 0, 0, 0, 8}, 9, false},
        {"ADDRESS_ASSIGN cut", {0x01, 0x02, 0, 6}, 4, false},
        {"end inside a value", {0x02, 0x13, 1, 6}, 4, true},
        {"end inside a length", {0x02, 0x40}, 2, true},
        {"end inside a type", {0x41}, 1, true},
        {"end inside an unknown one", {0x17, 0x05, 1}, 3, true},
    };
    each_ends_the_stream(t, rows, sizeof rows / sizeof rows[0], CONF_CODE_MESSAGE);
}

static void datagram_too_large_to_use(struct conf *t)
{
    static uint8_t buf[20000];
    struct conf_client *c = conf_tunnel(t);
    size_t n = masque_varint_put(buf, 8, 0);
    n += masque_varint_put(buf + n, 8, 19000);
    uint64_t taken = t->n_taken;
    conf_write(c, 0, buf, n + 19000);
    conf_settle(t, 20);
    CHECK(t->n_taken == taken, "it was taken");
    conf_alive(c, 0);
}

static void datagram_capsules_carry_packets(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 1280, 7);
    uint8_t buf[1400];
    size_t n = masque_varint_put(buf, 8, 0);
    n += masque_varint_put(buf + n, 8, p.n + 1);
    buf[n++] = 0; /* context */
    memcpy(buf + n, p.b, p.n);
    n += p.n;
    for (size_t at = 0; at < n; at += 100) {
        conf_write(c, 0, buf + at, n - at < 100 ? n - at : 100);
        conf_turn(t);
    }
    WAIT(t, conf_vpc_n() == 1);
    CHECK(conf_vpc(0)->n == p.n && memcmp(conf_vpc(0)->b, p.b, p.n) == 0, "it came out changed");
}

static void assignment_is_whole(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_capsules k;
    struct base_prefix want;
    (void)base_prefix_parse(&want, base_str_of("fd12::1:0:1:0:0/96"));
    conf_read_capsules(c, 0, &k);
    CHECK(k.assigns == 1 && k.n_addr == 1, "%zu capsules, %zu addresses", k.assigns, k.n_addr);
    CHECK(k.addr[0].request_id == 0, "unprompted: Request ID 0");
    CHECK(k.addr[0].version == 6 && k.addr[0].len == 96 && memcmp(k.addr[0].addr, want.addr.b, 16) == 0,
          "the /96, low bits zero");
}

static void client_assignments_are_checked(struct conf *t)
{
    static const uint8_t empty[] = {0x01, 0x00}, good[] = {0x01, 0x13, 0, 6, ANY16, 0x80};
    struct conf_client *c = conf_tunnel(t);
    conf_write(c, 0, empty, sizeof empty);
    conf_write(c, 0, good, sizeof good);
    conf_settle(t, 10);
    conf_alive(c, 0);
}

static void every_source_in_the_prefix(struct conf *t)
{
    static const char *const src[] = {"fd12::1:0:1:0:0", "fd12::1:0:1:0:1", "fd12::1:0:1:1234:5678",
                                      "fd12::1:0:1:ffff:ffff"};
    struct conf_client *c = conf_tunnel(t);
    for (size_t i = 0; i < 4; i++) {
        struct conf_pkt p = conf_udp(src[i], CONF_HOST, 80, 1);
        conf_up(c, 0, &p);
        WAIT(t, conf_vpc_n() == i + 1);
    }
}

static void requests_that_must_abort(struct conf *t)
{
    static const struct bad rows[] = {
        {"no entry", {0x02, 0x00}, 2, false},
        {"Request ID 0", {0x02, 0x13, 0, 6, ANY16, 0x60}, 21, false},
        {"one ID twice", {0x02, 0x26, 1, 6, ANY16, 0x60, 1, 6, ANY16, 0x60}, 40, false},
    };
    each_ends_the_stream(t, rows, sizeof rows / sizeof rows[0], CONF_CODE_MESSAGE);
}

static void every_entry_is_answered(struct conf *t)
{
    static const struct masque_address ask[] = {{.request_id = 5, .version = 4, .len = 32},
                                                {.request_id = 6, .version = 6, .len = 128},
                                                {.request_id = 300, .version = 6, .len = 64}};
    static const struct masque_address one[] = {{.request_id = 9, .version = 4, .len = 32}};
    uint8_t buf[256], zero[16] = {0};
    struct conf_client *c = conf_tunnel(t);
    struct conf_capsules k;
    conf_write(c, 0, buf, masque_address_encode(buf, sizeof buf, MASQUE_CAPSULE_ADDRESS_REQUEST, ask, 3));
    WAIT(t, (conf_read_capsules(c, 0, &k), k.assigns == 2));
    CHECK(k.n_addr == 3, "%zu answers to 3 entries", k.n_addr);
    for (size_t i = 0; i < 3; i++)
        CHECK(k.addr[i].request_id == ask[i].request_id, "answer %zu is to another entry", i);
    CHECK(k.addr[0].version == 4 && k.addr[0].len == 32 && memcmp(k.addr[0].addr, zero, 4) == 0,
          "IPv4 is refused with 0.0.0.0/32");
    CHECK(k.addr[1].len == 96, "the /96 is given");
    CHECK(k.addr[2].version == 6 && k.addr[2].len == 128 && memcmp(k.addr[2].addr, zero, 16) == 0,
          "what cannot be given is refused with ::/128");
    conf_write(c, 0, buf, masque_address_encode(buf, sizeof buf, MASQUE_CAPSULE_ADDRESS_REQUEST, one, 1));
    WAIT(t, (conf_read_capsules(c, 0, &k), k.assigns == 3));
    CHECK(k.n_addr == 2 && k.addr[0].request_id == 9 && k.addr[1].len == 96,
          "the full list again, without the earlier refusals: %zu entries", k.n_addr);
}

static void routes_are_in_order(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    struct conf_capsules k;
    conf_read_capsules(c, 0, &k); /* masque_route_decode refuses what is out of order or overlaps */
    CHECK(k.routes == 1 && k.n_route == 2, "%zu capsules, %zu ranges", k.routes, k.n_route);
    CHECK(k.route[0].start[1] == 0x20 && k.route[1].start[1] == 0x21, "sorted");
    CHECK(k.route[0].ipproto == 0 && k.route[1].ipproto == 0, "protocol 0 is not mixed with others");
    c = (t->tr->reset(c->impl, 0), conf_tunnel_for(t, "/.well-known/masque/ip/fd20%3A%3A%2F65/17/"));
    conf_read_capsules(c, 0, &k);
    CHECK(k.n_route == 1 && k.route[0].ipproto == 17, "only what was asked for");
    CHECK(k.route[0].end[8] == 0x7f, "the narrower prefix");
}

static void client_routes_are_checked(struct conf *t)
{
    static const struct bad rows[] = {
        {"backwards", {0x03, 0x0a, 4, 10, 0, 0, 2, 10, 0, 0, 1, 0}, 12, false},
        {"overlap", {0x03, 0x14, 4, 10, 0, 0, 1, 10, 0, 0, 9, 0, 4, 10, 0, 0, 9, 10, 0, 0, 10, 0}, 22, false},
        {"protocols out of order",
         {0x03, 0x14, 4, 10, 0, 0, 1, 10, 0, 0, 2, 6, 4, 10, 0, 0, 3, 10, 0, 0, 4, 0},
         22,
         false},
        {"version 0", {0x03, 0x0a, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0}, 12, false},
        {"cut", {0x03, 0x09, 4, 10, 0, 0, 1, 10, 0, 0, 2}, 11, false},
    };
    each_ends_the_stream(t, rows, sizeof rows / sizeof rows[0], CONF_CODE_MESSAGE);
    static const uint8_t good[] = {0x03, 0x14, 4,  10, 0, 0, 1,  10, 0, 0, 2,
                                   0,    4,    10, 0,  0, 3, 10, 0,  0, 4, 0};
    struct conf_client *c = conf_tunnel(t);
    conf_write(c, 0, good, sizeof good);
    conf_settle(t, 10);
    conf_alive(c, 0);
}

static void a_quiet_tunnel_stays(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    for (int i = 0; i < 60; i++) { /* 5 minutes */
        conf_push(5 * BASE_SEC);
        conf_settle(t, 3);
    }
    CHECK(t->n_ended == 0 && !conf_closed(c), "%s", t->n_ended ? t->ended[0].detail : "");
    conf_alive(c, 0);
}

static void idle_teardown_closes(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    c->mute = true;
    for (int i = 0; i < 30 && t->n_ended == 0; i++) {
        conf_push(5 * BASE_SEC);
        conf_settle(t, 3);
    }
    CHECK(t->n_ended == 1 && t->ended[0].why == MASQUE_END_IDLE, "%u ended", t->n_ended);
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    size_t n = conf_vpc_n();
    c->mute = false;
    t->tr->packet(c->impl, 0, 0, p.b, p.n);
    conf_settle(t, 30);
    CHECK(conf_vpc_n() == n, "a packet of the dead tunnel passed");
    WAIT(t, conf_closed(c));
}

static void the_client_ends_it(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    t->tr->write(c->impl, 0, NULL, 0, true);
    WAIT(t, t->n_ended == 1 && conf_ended(c, 0));
    CHECK(t->ended[0].why == MASQUE_END_CLIENT, "%s", t->ended[0].detail);
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 100, 1);
    size_t n = conf_got_n(c);
    conf_down(t, &p);
    conf_settle(t, 20);
    CHECK(conf_got_n(c) == n, "a packet came after the end");
}

const struct conf_case conf_capsules[] = {
    {"1b.1", "RFC 9297 3.2", "MUST", "unknown capsules are skipped in silence",
     "unknown_capsules_are_skipped", CONF_BOTH, unknown_capsules_are_skipped},
    {"1b.2", "RFC 9484 2", "MUST", "types and lengths that are longer than need be are read",
     "known_capsule_with_a_long_varint", CONF_BOTH, known_capsule_with_a_long_varint},
    {"1b.3", "RFC 9297 3.2", "SHOULD", "a long capsule is not collected before it is handled",
     "long_capsules_are_not_collected", CONF_BOTH, long_capsules_are_not_collected},
    {"1b.4", "RFC 9297 3.3", "MUST", "trailing bytes, short fields and an end inside a capsule: malformed",
     "capsules_that_are_not_their_fields", CONF_BOTH, capsules_that_are_not_their_fields},
    {"1b.5", "RFC 9297 3.5", "SHOULD", "a DATAGRAM capsule too large to use is discarded",
     "datagram_too_large_to_use", CONF_BOTH, datagram_too_large_to_use},
    {"1b.6", "RFC 9297 3.5", "MUST", "DATAGRAM capsules carry packets, on HTTP/3 as well",
     "datagram_capsules_carry_packets", CONF_BOTH, datagram_capsules_carry_packets},
    {"1b.7", "RFC 9484 4.7.1", "MUST",
     "ADDRESS_ASSIGN is the full list, low bits zero, Request ID 0 when unprompted", "assignment_is_whole",
     CONF_BOTH, assignment_is_whole},
    {"1b.8", "RFC 9484 4.7.1", "MUST", "a client's ADDRESS_ASSIGN may be empty, and gives it nothing",
     "client_assignments_are_checked", CONF_BOTH, client_assignments_are_checked},
    {"1b.9", "RFC 9484 4.7.1", "MUST", "every source inside the assigned prefix passes",
     "every_source_in_the_prefix", CONF_BOTH, every_source_in_the_prefix},
    {"1b.10", "RFC 9484 4.7.2", "MUST",
     "ADDRESS_REQUEST without entries, with Request ID 0 or an ID twice aborts the stream",
     "requests_that_must_abort", CONF_BOTH, requests_that_must_abort},
    {"1b.11", "RFC 9484 4.7.2", "MUST",
     "each entry gets one answer with its Request ID; a refusal is not repeated", "every_entry_is_answered",
     CONF_BOTH, every_entry_is_answered},
    {"1b.12", "RFC 9484 4.7.3", "MUST",
     "ROUTE_ADVERTISEMENT: full, sorted, no overlap, protocol 0 not mixed with others", "routes_are_in_order",
     CONF_BOTH, routes_are_in_order},
    {"1b.13", "RFC 9484 4.7.3", "MUST",
     "a client's ROUTE_ADVERTISEMENT that breaks the order aborts the stream", "client_routes_are_checked",
     CONF_BOTH, client_routes_are_checked},
    {"1b.14", "RFC 9298 3.1", "SHOULD", "a quiet tunnel with a live client stays, for more than two minutes",
     "a_quiet_tunnel_stays", CONF_BOTH, a_quiet_tunnel_stays},
    {"1b.15", "RFC 9484 4.1", "MUST", "giving up an idle tunnel closes its stream", "idle_teardown_closes",
     CONF_BOTH, idle_teardown_closes},
    {"1b.16", "RFC 9484 4.1", "MUST", "the end of the stream is the end of the tunnel", "the_client_ends_it",
     CONF_BOTH, the_client_ends_it},
    {0},
};
