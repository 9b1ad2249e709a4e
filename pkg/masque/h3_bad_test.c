/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients get wrong, over the wire: requests, capsules, datagrams, floods. Inputs of public bug reports
 * are marked.
 */
#include "masque/testenv_test.h"

#include <string.h>

#include "masque/varint.h"

static struct testenv *e;

static void setup(void)
{
    e = testenv_new(NULL);
}

static void teardown(void)
{
    testenv_free(e);
}

TestSuite(masque_h3_bad, .init = setup, .fini = teardown, .timeout = 60);

#define ANY16 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

/* ---- requests ---- */

Test(masque_h3_bad, requests_are_answered_with_the_reason)
{
    static const struct {
        const char *name;
        const char *method, *protocol, *scheme, *path;
        struct testclient_field extra;
        bool fin;
        int status;
        const char *text;
    } rows[] = {
        {"GET", "GET", NULL, "https", "/", {NULL, NULL}, true, 405, "CONNECT"},
        {"connect-udp", "CONNECT", "connect-udp", "https", "/", {NULL, NULL}, false, 501, "connect-ip"},
        {"path", "CONNECT", "connect-ip", "https", "/x", {NULL, NULL}, false, 400, "/.well-known/masque/ip/"},
        {"zone",
         "CONNECT",
         "connect-ip",
         "https",
         "/.well-known/masque/ip/fe80%3A%3A1%25eth0/*/",
         {NULL, NULL},
         false,
         400,
         "zone"},
        {"host bits",
         "CONNECT",
         "connect-ip",
         "https",
         "/.well-known/masque/ip/fd20%3A%3A1%2F64/*/",
         {NULL, NULL},
         false,
         400,
         "bits after"},
        {"content-length",
         "CONNECT",
         "connect-ip",
         "https",
         "/.well-known/masque/ip/*/*/",
         {"content-length", "0"},
         false,
         400,
         "content-length"},
        {"content-type",
         "CONNECT",
         "connect-ip",
         "https",
         "/.well-known/masque/ip/*/*/",
         {"content-type", "a/b"},
         false,
         400,
         "content-type"},
        {"fin",
         "CONNECT",
         "connect-ip",
         "https",
         "/.well-known/masque/ip/*/*/",
         {NULL, NULL},
         true,
         400,
         "ended with the headers"},
    };
    struct testclient *c = testenv_connected(e);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct testclient_field f[8];
        size_t n = 0;
        f[n++] = (struct testclient_field){":method", rows[i].method};
        if (rows[i].protocol)
            f[n++] = (struct testclient_field){":protocol", rows[i].protocol};
        f[n++] = (struct testclient_field){":scheme", rows[i].scheme};
        f[n++] = (struct testclient_field){":authority", "masque.test"};
        f[n++] = (struct testclient_field){":path", rows[i].path};
        if (rows[i].extra.name)
            f[n++] = rows[i].extra;
        size_t s = testclient_request(c, f, n, rows[i].fin);
        WAIT(e, c->streams[s].ended);
        cr_assert_eq(c->streams[s].status, rows[i].status, "%s: %d", rows[i].name, c->streams[s].status);
        cr_assert(strstr((char *)c->streams[s].body, rows[i].text), "%s: %s", rows[i].name,
                  c->streams[s].body);
        cr_assert(strncmp((char *)c->streams[s].body, "reason: ", 8) == 0);
    }
    cr_assert_eq(e->n_rq, 0);
    e->answer = TESTENV_ACCEPT;
    size_t s = testenv_request(c, NULL);
    WAIT(e, c->streams[s].status == 200); /* the connection is none the worse for it */
}

Test(masque_h3_bad, too_many_header_bytes_are_431)
{
    struct testclient *c = testenv_connected(e);
    static char value[4000];
    memset(value, 'x', sizeof value - 1);
    const struct testclient_field f[] = {{":method", "CONNECT"},
                                         {":protocol", "connect-ip"},
                                         {":scheme", "https"},
                                         {":authority", "masque.test"},
                                         {":path", "/.well-known/masque/ip/*/*/"},
                                         {"a", value},
                                         {"b", value},
                                         {"c", value}};
    size_t s = testclient_request(c, f, sizeof f / sizeof f[0], false);
    WAIT(e, c->streams[s].ended || c->closed);
    cr_assert_eq(c->streams[s].status, 431);
    cr_assert_eq(c->max_field_section_size, 8192, "it was told so");
    cr_assert_eq(e->n_rq, 0);
}

/* ---- a request in pieces, and before SETTINGS ---- */

/* A HEADERS frame with a good request, literal names and values, no Huffman, no dynamic table. */
static size_t raw_request(uint8_t *dst)
{
    static const char *const f[][2] = {{":method", "CONNECT"},
                                       {":protocol", "connect-ip"},
                                       {":scheme", "https"},
                                       {":authority", "masque.test"},
                                       {":path", "/.well-known/masque/ip/*/*/"}};
    uint8_t block[256] = {0, 0};
    size_t n = 2;
    for (size_t i = 0; i < sizeof f / sizeof f[0]; i++) {
        size_t name = strlen(f[i][0]), value = strlen(f[i][1]);
        block[n++] =
            (uint8_t)(0x20 | (name < 7 ? name : 7)); /* literal with literal name, 3-bit length prefix */
        if (name >= 7)
            block[n++] = (uint8_t)(name - 7);
        memcpy(block + n, f[i][0], name);
        n += name;
        block[n++] = (uint8_t)value;
        memcpy(block + n, f[i][1], value);
        n += value;
    }
    dst[0] = 0x01;
    size_t k = 1 + masque_varint_put(dst + 1, 8, n);
    memcpy(dst + k, block, n);
    return k + n;
}

static const uint8_t raw_settings[] = {0x00, 0x04, 0x02, 0x33,
                                       0x01}; /* control stream: SETTINGS_H3_DATAGRAM = 1 */

static struct testclient *raw_client(void)
{
    struct testclient *c = testenv_client(
        e,
        (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3", .no_http = true});
    WAIT(e, c->handshaken);
    return c;
}

Test(masque_h3_bad, endless_headers_end_the_connection)
{
    uint8_t frame[4096] = {0x01};
    struct testclient *c = raw_client();
    size_t n = 1 + masque_varint_put(frame + 1, 8, 100000);
    frame[n++] = 0;
    frame[n++] = 0;
    while (n + 3 < sizeof frame)
        memcpy(frame + n, (uint8_t[]){0x21, 'a', 0}, 3), n += 3; /* more than 1000 fields "a: " */
    testclient_raw_write(c, testclient_raw_open(c, true), frame, n);
    WAIT(e, c->closed);
    cr_assert(c->close_is_app);
    cr_assert_eq(c->close_code, 0x107, "0x%x", (int)c->close_code);
}

Test(masque_h3_bad, a_request_before_settings_waits_for_them)
{
    uint8_t buf[300];
    struct testclient *c = raw_client();
    size_t n = raw_request(buf);
    testclient_raw_write(c, testclient_raw_open(c, true), buf, n);
    testenv_settle(e, 50);
    cr_assert_eq(e->n_rq, 0, "reported though nobody knows whether the client speaks datagrams");
    cr_assert_eq(testenv_stats(e).requests, 1);
    testclient_raw_write(c, testclient_raw_open(c, false), raw_settings, sizeof raw_settings);
    WAIT(e, e->n_rq == 1);
    c = raw_client();
    testclient_raw_write(c, testclient_raw_open(c, true), buf, n);
    testenv_settle(e, 20);
    testenv_skew += 11 * BASE_SEC;
    WAIT(e, testenv_stats(e).refused == 1);
    cr_assert_eq(e->n_rq, 1);
    cr_assert_eq(e->n_ended, 0);
}

Test(masque_h3_bad, a_request_that_completes_after_drain_is_503)
{
    uint8_t buf[300];
    struct testclient *c = raw_client();
    size_t n = raw_request(buf);
    testclient_raw_write(c, testclient_raw_open(c, false), raw_settings, sizeof raw_settings);
    int64_t sid = testclient_raw_open(c, true);
    testclient_raw_write(c, sid, buf, n / 2);
    testenv_settle(e, 20);
    masque_h3_drain(e->h);
    testclient_raw_write(c, sid, buf + n / 2, n - n / 2);
    WAIT(e, testenv_stats(e).refused == 1);
    cr_assert_eq(e->n_rq, 0);
}

Test(masque_h3_bad, half_a_request_does_not_hold_a_connection_for_ever)
{
    uint8_t buf[300];
    struct testclient *c = raw_client();
    (void)raw_request(buf);
    testclient_raw_write(c, testclient_raw_open(c, true), buf, 20);
    for (int i = 0; i < 13 && !c->closed; i++) {
        ngtcp2_conn_set_keep_alive_timeout(c->quic, NGTCP2_SECONDS);
        testenv_skew += 5 * BASE_SEC;
        testenv_settle(e, 20);
    }
    cr_assert(c->closed);
    cr_assert_eq(testenv_stats(e).open_connections, 0);
}

/* ---- capsules ---- */

/* Bugs 1, 2 and 5: unknown capsules and requests glued to the headers, before anybody has said yes. */
Test(masque_h3_bad, capsules_before_the_answer_are_kept)
{
    static const uint8_t in[] = {0x41, 0x88, 0x03, 1, 2,     3,           /* unknown */
                                 0x02, 0x1a, 0x07, 6, ANY16, 0x60,        /* ADDRESS_REQUEST 7: ::/96 */
                                 0x08, 4,    0,    0, 0,     0,    0x20}; /* 8: 0.0.0.0/32 */
    struct testclient *c = testenv_connected(e);
    size_t s = testenv_request(c, NULL);
    testclient_write(c, s, in, sizeof in, false);
    WAIT(e, e->n_rq == 1);
    testenv_settle(e, 20);
    cr_assert_eq(testenv_accept(e, 1), BASE_OK);
    WAIT(e, c->streams[s].status == 200 && c->streams[s].n_body > 80);
    uint64_t types[8];
    struct masque_address a[16];
    struct masque_route r[16];
    size_t n_a = 0, n_r = 0;
    cr_assert_eq(testenv_capsules(&c->streams[s], types, a, &n_a, r, &n_r, 8), 2);
    cr_assert_eq(n_a, 2, "one answer for each entry");
    cr_assert_eq(a[0].request_id, 7);
    cr_assert_eq(a[0].len, 96);
    cr_assert_eq(memcmp(a[0].addr, e->prefix.addr.b, 16), 0);
    cr_assert_eq(a[1].request_id, 8);
    cr_assert_eq(a[1].version, 4);
    cr_assert_eq(a[1].len, 32, "IPv4 is refused");
    cr_assert_eq(e->n_ended, 0);
}

Test(masque_h3_bad, requests_before_the_answer_are_bounded_and_checked_together)
{
    static const struct {
        const char *name;
        uint64_t second_from;
        size_t n;
        const char *detail;
    } rows[] = {{"an ID of an earlier capsule", 40, 1, "used before"},
                {"too many in all", 41, 25, "too many entries"}};
    for (size_t i = 0; i < 2; i++) {
        struct testclient *c = testenv_connected(e);
        size_t s = testenv_request(c, NULL);
        struct masque_address ask[64];
        uint8_t buf[2048];
        for (uint64_t k = 0; k < 40; k++)
            ask[k] = (struct masque_address){.request_id = k + 1, .version = 6, .len = 128};
        size_t n = masque_address_encode(buf, sizeof buf, MASQUE_CAPSULE_ADDRESS_REQUEST, ask, 40);
        testclient_write(c, s, buf, n, false);
        WAIT(e, e->n_rq == i + 1);
        for (uint64_t k = 0; k < rows[i].n; k++)
            ask[k].request_id = rows[i].second_from + k;
        n = masque_address_encode(buf, sizeof buf, MASQUE_CAPSULE_ADDRESS_REQUEST, ask, rows[i].n);
        testclient_write(c, s, buf, n, false);
        WAIT(e, e->n_ended == i + 1);
        cr_assert_eq(e->ended[i].why, MASQUE_END_PROTOCOL, "%s", rows[i].name);
        cr_assert(strstr(e->ended[i].detail, rows[i].detail), "%s: %s", rows[i].name, e->ended[i].detail);
    }
}

/* The answers' buffer is bounded, but used again once the client has acknowledged what was in it. */
Test(masque_h3_bad, a_patient_client_may_ask_for_ever)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    struct masque_address ask[60];
    uint8_t buf[2048];
    for (int round = 0; round < 25; round++) {
        for (uint64_t k = 0; k < 60; k++)
            ask[k] = (struct masque_address){.request_id = k + 1, .version = 6, .len = 128};
        size_t n = masque_address_encode(buf, sizeof buf, MASQUE_CAPSULE_ADDRESS_REQUEST, ask, 60);
        size_t before = c->streams[0].n_body;
        testclient_write(c, 0, buf, n, false);
        WAIT(e, c->streams[0].n_body >= before + 60 * 19);
        testenv_skew += BASE_SEC;
        testenv_settle(e, 5);
    }
    cr_assert_eq(e->n_ended, 0, "%s", e->n_ended ? e->ended[0].detail : "");
    cr_assert_gt(c->streams[0].n_body, 25000);
}

Test(masque_h3_bad, address_requests_are_answered_entry_by_entry)
{
    uint64_t flow, types[16];
    struct testclient *c = testenv_tunnel(e, &flow);
    struct masque_address ask[3] = {{.request_id = 5, .version = 4, .len = 32},
                                    {.request_id = 6, .version = 6, .len = 128},
                                    {.request_id = 300, .version = 6, .len = 64}},
                          a[16];
    struct masque_route r[16];
    uint8_t buf[256];
    size_t n_a = 0, n_r = 0;
    WAIT(e, c->streams[0].n_body > 60);
    size_t before = c->streams[0].n_body;
    testclient_write(c, 0, buf,
                     masque_address_encode(buf, sizeof buf, MASQUE_CAPSULE_ADDRESS_REQUEST, ask, 3), false);
    WAIT(e, c->streams[0].n_body > before);
    cr_assert_eq(testenv_capsules(&c->streams[0], types, a, &n_a, r, &n_r, 16), 3);
    cr_assert_eq(n_a, 3);
    cr_assert_eq(a[0].len, 32);
    cr_assert_eq(a[1].request_id, 6);
    cr_assert_eq(a[1].len, 96, "our prefix, whatever was asked for");
    cr_assert_eq(a[2].request_id, 300);
    cr_assert_eq(a[2].len, 128);
    before = c->streams[0].n_body;
    ask[0].request_id = 9; /* IPv4 only: the full list still has the prefix */
    testclient_write(c, 0, buf,
                     masque_address_encode(buf, sizeof buf, MASQUE_CAPSULE_ADDRESS_REQUEST, ask, 1), false);
    WAIT(e, c->streams[0].n_body > before);
    cr_assert_eq(testenv_capsules(&c->streams[0], types, a, &n_a, r, &n_r, 16), 4);
    cr_assert_eq(n_a, 2);
    cr_assert_eq(a[1].request_id, 0);
    cr_assert_eq(a[1].len, 96);
}

Test(masque_h3_bad, malformed_capsules_end_the_stream_not_the_connection)
{
    static const struct {
        const char *name;
        uint8_t in[64];
        size_t n;
        bool fin;
        const char *detail;
    } rows[] = {
        {"empty ADDRESS_REQUEST", {0x02, 0x00}, 2, false, "no entry"},
        {"request id 0", {0x02, 0x13, 0x00, 6, ANY16, 0x60}, 21, false, "Request ID is 0"},
        {"same id twice", {0x02, 0x26, 1, 6, ANY16, 0x60, 1, 6, ANY16, 0x60}, 40, false, "used before"},
        {"trailing byte", {0x02, 0x14, 1, 6, ANY16, 0x60, 0xff}, 22, false, "cut short"},
        {"host bits", {0x02, 0x07, 1, 4, 10, 0, 0, 1, 8}, 9, false, "not zero"},
        {"ADDRESS_ASSIGN version 5", {0x01, 0x07, 0, 5, 0, 0, 0, 0, 8}, 9, false, "neither 4 nor 6"},
        {"ROUTE_ADVERTISEMENT backwards",
         {0x03, 0x0a, 4, 10, 0, 0, 2, 10, 0, 0, 1, 0},
         12,
         false,
         "start is after"},
        {"too long", {0x02, 0x80, 0x00, 0x10, 0x01}, 5, false, "4097"},
        {"end inside a capsule", {0x02, 0x13, 1, 6}, 4, true, "inside a capsule"},
        {"end inside a type", {0x41}, 1, true, "inside a capsule"},
        {"datagram without a context", {0x00, 0x00}, 2, false, "context"},
    };
    e->answer = TESTENV_ACCEPT;
    struct testclient *c = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (i % 4 == 0)
            c = testenv_connected(e); /* a client has a limited number of streams at a time */
        unsigned ended = e->n_ended;
        size_t s = testenv_request(c, NULL);
        WAIT(e, c->streams[s].status == 200);
        testclient_write(c, s, rows[i].in, rows[i].n, rows[i].fin);
        WAIT(e, c->streams[s].was_reset && e->n_ended == ended + 1);
        cr_assert_eq(c->streams[s].code, strstr(rows[i].detail, "context") ? 0x33u : 0x10eu, "%s: code 0x%x",
                     rows[i].name, (int)c->streams[s].code);
        cr_assert_eq(e->ended[ended].why, MASQUE_END_PROTOCOL, "%s", rows[i].name);
        cr_assert(strstr(e->ended[ended].detail, rows[i].detail), "%s: %s", rows[i].name,
                  e->ended[ended].detail);
        cr_assert_not(c->closed, "%s: the connection died", rows[i].name);
    }
}

Test(masque_h3_bad, unknown_capsules_are_skipped_up_to_a_limit)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    static uint8_t buf[70000];
    size_t n = masque_varint_put(buf, 8, 0x1234567);
    n += masque_varint_put(buf + n, 8, 65536);
    testclient_write(c, 0, buf, n + 65536, false); /* more than the stream's window: credit is given back */
    static const uint8_t datagram[] = {0x00, 0x03, 0x00, 0x60, 0x01};
    testclient_write(c, 0, datagram, sizeof datagram, false);
    WAIT(e, e->n_packets == 1);
    cr_assert_eq(e->packets[0].len, 2, "the DATAGRAM capsule behind it");
    for (int i = 0; i < 15; i++)
        testclient_write(c, 0, buf, n + 65536, false);
    testenv_settle(e, 100);
    cr_assert_eq(e->n_ended, 0);
    testclient_write(c, 0, buf, n, false);
    WAIT(e, e->n_ended == 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_PROTOCOL);
}

Test(masque_h3_bad, floods_of_address_requests_end_the_stream)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    uint8_t in[21 * 64];
    for (size_t i = 0; i < 64; i++)
        memcpy(in + 21 * i, (uint8_t[]){0x02, 0x13, (uint8_t)(1 + i % 60), 6, ANY16, 0x60}, 21);
    testclient_write(c, 0, in, 21 * 10, false);
    testenv_settle(e, 30);
    cr_assert_eq(e->n_ended, 0, "ten are fine");
    testclient_write(c, 0, in, sizeof in, false);
    WAIT(e, e->n_ended == 1);
    cr_assert_eq(e->ended[0].why, MASQUE_END_PROTOCOL);
    cr_assert(strstr(e->ended[0].detail, "too many"), "%s", e->ended[0].detail);
}

/* ---- datagrams ---- */

/* Bug 24: datagrams in the flight of the request; and a bound on them. */
Test(masque_h3_bad, early_datagrams_are_kept_up_to_a_limit)
{
    struct testclient *c = testenv_connected(e);
    for (uint8_t i = 0; i < 20; i++)
        testclient_datagram(c, (uint8_t[]){0, 0, 0x60, i}, 4);
    (void)testenv_request(c, NULL);
    WAIT(e, e->n_rq == 1);
    WAIT(e, testenv_stats(e).drop_early >= 12);
    cr_assert_eq(e->n_packets, 0, "delivered before anybody said yes");
    cr_assert_eq(testenv_accept(e, 1), BASE_OK);
    WAIT(e, e->n_packets == 8);
    for (uint8_t i = 0; i < 8; i++)
        cr_assert_eq(e->packets[i].data[1], i, "in order");
    testclient_datagram(c, (uint8_t[]){0, 0, 0x60, 99}, 4);
    WAIT(e, e->n_packets == 9);
    cr_assert_eq(testenv_stats(e).drop_early, 12);
}

Test(masque_h3_bad, early_datagrams_of_a_refused_request_are_dropped)
{
    struct testclient *c = testenv_connected(e);
    (void)testenv_request(c, NULL);
    WAIT(e, e->n_rq == 1);
    uint64_t in = testenv_stats(e).datagrams_in;
    testclient_datagram(c, (uint8_t[]){0, 0, 0x60, 1}, 4);
    WAIT(e, testenv_stats(e).datagrams_in > in && c->n_out == 0);
    cr_assert_eq(masque_h3_refuse(e->h, 1, 403, "no", 0), BASE_OK);
    WAIT(e, testenv_stats(e).drop_early == 1);
    e->answer = TESTENV_ACCEPT;
    size_t s = testenv_request(c, NULL);
    WAIT(e, c->streams[s].status == 200);
    testenv_settle(e, 20);
    cr_assert_eq(e->n_packets, 0, "packets of one session came out of another");
}

Test(masque_h3_bad, early_datagrams_of_another_stream_are_not_mixed_in)
{
    struct testclient *c = testenv_connected(e);
    (void)testenv_request(c, NULL);
    WAIT(e, e->n_rq == 1);
    uint64_t in = testenv_stats(e).datagrams_in;
    testclient_datagram(c, (uint8_t[]){1, 0, 0x60, 1}, 4); /* stream 4 */
    testclient_datagram(c, (uint8_t[]){0, 0, 0x60, 2}, 4); /* stream 0 */
    WAIT(e, testenv_stats(e).datagrams_in >= in + 2 && c->n_out == 0);
    cr_assert_eq(testenv_accept(e, 1), BASE_OK);
    WAIT(e, e->n_packets == 1);
    testenv_settle(e, 20);
    cr_assert_eq(e->n_packets, 1);
    cr_assert_eq(e->packets[0].data[1], 2);
    cr_assert_eq(testenv_stats(e).drop_early, 1);
}

Test(masque_h3_bad, datagrams_of_a_client_that_says_it_has_none_are_dropped)
{
    struct testclient *c = testenv_client(
        e, (struct testclient_config){
               .cert_file = e->cert, .key_file = e->key, .alpn = "h3", .no_h3_datagram = true});
    WAIT(e, c->handshaken && c->got_settings);
    size_t s = testenv_request(c, NULL);
    WAIT(e, c->streams[s].ended);
    testclient_datagram(c, (uint8_t[]){1, 0, 0x60, 1}, 4);
    WAIT(e, testenv_stats(e).drop_malformed == 1);
    cr_assert_eq(testenv_stats(e).drop_early, 0);
}

Test(masque_h3_bad, early_datagrams_grow_old)
{
    struct testclient *c = testenv_connected(e);
    (void)testenv_request(c, NULL);
    WAIT(e, e->n_rq == 1);
    uint64_t in = testenv_stats(e).datagrams_in;
    testclient_datagram(c, (uint8_t[]){0, 0, 0x60, 1}, 4);
    WAIT(e, testenv_stats(e).datagrams_in > in && c->n_out == 0);
    testenv_turn(e);
    testenv_skew += 1100 * BASE_MS;
    testenv_turn(e);
    cr_assert_eq(testenv_accept(e, 1), BASE_OK);
    testenv_settle(e, 20);
    cr_assert_eq(e->n_packets, 0);
    cr_assert_eq(testenv_stats(e).drop_early, 1);
}

Test(masque_h3_bad, unknown_contexts_and_streams_are_dropped)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    testclient_datagram(c, (uint8_t[]){0, 2, 0x60, 1}, 4);          /* context 2 */
    testclient_datagram(c, (uint8_t[]){0, 0x40, 0x00, 0x60, 2}, 5); /* context 0 in two bytes: fine */
    testclient_datagram(c, (uint8_t[]){3, 0, 0x60, 3}, 4);          /* a stream that is not there yet */
    testclient_datagram(c, (uint8_t[]){0, 0}, 2);                   /* an empty packet */
    WAIT(e, e->n_packets == 1);
    testenv_settle(e, 20);
    cr_assert_eq(e->n_packets, 1);
    cr_assert_eq(e->packets[0].data[1], 2);
    cr_assert_eq(testenv_stats(e).drop_malformed, 2);
    cr_assert_eq(e->n_ended, 0);
}

Test(masque_h3_bad, datagrams_that_break_the_connection)
{
    static const struct {
        const char *name;
        uint8_t in[16];
        size_t n;
        uint64_t code;
    } rows[] = {
        {"empty", {0}, 0, 0x33},
        {"half a Quarter Stream ID", {0xc0, 0, 0}, 3, 0x33},
        {"beyond 2^60-1", {0xd0, 0, 0, 0, 0, 0, 0, 0, 0, 0x60}, 10, 0x33},
        {"beyond the stream limit", {0x08, 0, 0x60}, 3, 0x108},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t flow;
        struct testclient *c = testenv_tunnel(e, &flow);
        testclient_datagram(c, rows[i].in, rows[i].n);
        WAIT(e, c->closed);
        cr_assert(c->close_is_app, "%s", rows[i].name);
        cr_assert_eq(c->close_code, rows[i].code, "%s: 0x%x", rows[i].name, (int)c->close_code);
        cr_assert_eq(e->n_ended, i + 1);
        cr_assert_eq(e->ended[i].why, MASQUE_END_PROTOCOL, "%s", rows[i].name);
    }
}

Test(masque_h3_bad, a_datagram_without_context_ends_its_stream)
{
    uint64_t flow;
    struct testclient *c = testenv_tunnel(e, &flow);
    testclient_datagram(c, (uint8_t[]){0}, 1);
    WAIT(e, c->streams[0].was_reset);
    cr_assert_eq(c->streams[0].code, 0x33);
    cr_assert_eq(e->n_ended, 1);
    cr_assert_not(c->closed);
}

/* Many clients come and go in every phase; nothing may be left behind (the sanitizers look on). */
Test(masque_h3_bad, clients_that_vanish_leave_nothing)
{
    e->answer = TESTENV_ACCEPT;
    for (unsigned i = 0; i < 12; i++) {
        struct testclient *c = testenv_client(
            e, (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
        for (unsigned turn = 0; turn < i; turn++)
            testenv_turn(e);
        if (c->http && c->handshaken)
            (void)testenv_request(c, NULL);
        testenv_turn(e);
        c->closed = true;
    }
    testenv_skew += 11 * BASE_SEC;
    testenv_settle(e, 20);
    for (int i = 0; i < 16; i++) {
        testenv_skew += 10 * BASE_SEC;
        testenv_settle(e, 5);
    }
    struct masque_h3_stats s = testenv_stats(e);
    cr_assert_eq(s.open_connections, 0);
    cr_assert_eq(s.open_flows, 0);
    cr_assert_eq(e->n_ended, e->n_rq, "every reported flow ends exactly once");
}
