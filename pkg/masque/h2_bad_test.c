/* SPDX-License-Identifier: Apache-2.0
 *
 * Malformed and hostile HTTP/2 clients, and the two dialects.
 */
#include "masque/h2client_test.h"

#include <stdio.h>
#include <unistd.h>

#include "masque/varint.h"

static struct testenv *e;

static void setup(void)
{
    e = testenv_new(NULL);
    testenv_h2(e, NULL);
}

static void teardown(void)
{
    h2client_free_all(e);
    testenv_free(e);
    testenv_skew = 0;
}

TestSuite(masque_h2_bad, .init = setup, .fini = teardown, .timeout = 60);
TestSuite(masque_h2_dialect, .fini = teardown, .timeout = 60);
TestSuite(masque_h2_resets, .fini = teardown, .timeout = 60);

static struct masque_h2_stats stats(void)
{
    struct masque_h2_stats s;
    masque_h2_stats(e->h2, &s);
    return s;
}

#define PATH "/.well-known/masque/ip/*/*/"

Test(masque_h2_bad, requests_are_answered_with_the_reason)
{
    static const struct {
        const char *name, *method, *protocol, *path;
        struct testclient_field extra;
        bool fin;
        int status;
        const char *text;
    } rows[] = {
        {"GET", "GET", NULL, "/", {NULL, NULL}, true, 405, "CONNECT"},
        {"connect-udp", "CONNECT", "connect-udp", "/", {NULL, NULL}, false, 501, "connect-ip"},
        {"cf-connect-ip is off", "CONNECT", "cf-connect-ip", "/", {NULL, NULL}, false, 501, "connect-ip"},
        {"path", "CONNECT", "connect-ip", "/x", {NULL, NULL}, false, 400, "/.well-known/masque/ip/"},
        {"content-length",
         "CONNECT",
         "connect-ip",
         PATH,
         {"content-length", "0"},
         false,
         400,
         "content-length"},
        {"content-type", "CONNECT", "connect-ip", PATH, {"content-type", "a/b"}, false, 400, "content-type"},
        {"tenant", "CONNECT", "connect-ip", PATH, {"x-tenant", "a"}, false, 400, "tenant"},
        {"end", "CONNECT", "connect-ip", PATH, {NULL, NULL}, true, 400, "ended with the headers"},
    };
    struct h2client *c = h2client_connected(e);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct testclient_field f[8];
        size_t n = 0;
        f[n++] = (struct testclient_field){":method", rows[i].method};
        if (rows[i].protocol)
            f[n++] = (struct testclient_field){":protocol", rows[i].protocol};
        f[n++] = (struct testclient_field){":scheme", "https"};
        f[n++] = (struct testclient_field){":authority", "masque.test"};
        f[n++] = (struct testclient_field){":path", rows[i].path};
        if (rows[i].extra.name)
            f[n++] = rows[i].extra;
        size_t s = h2client_request(c, f, n, rows[i].fin);
        WAIT(e, c->streams[s]->closed);
        cr_assert_eq(c->streams[s]->status, rows[i].status, "%s: %d", rows[i].name, c->streams[s]->status);
        cr_assert(strstr((char *)c->streams[s]->body, rows[i].text), "%s: %s", rows[i].name,
                  (char *)c->streams[s]->body);
        cr_assert_eq(c->streams[s]->code, NGHTTP2_NO_ERROR, "%s", rows[i].name);
    }
    cr_assert_eq(e->n_rq, 0);
    e->answer = TESTENV_ACCEPT;
    size_t s = h2client_connect_ip(c);
    WAIT(e, c->streams[s]->status == 200); /* the connection is none the worse for it */
}

/* A header block without Huffman and table. The server has set the table's size to 0, which a block has to
 * acknowledge first. */
static size_t begin(uint8_t *dst)
{
    dst[0] = 0x20;
    return 1;
}

static size_t literal(uint8_t *dst, const char *name, const char *value)
{
    size_t a = strlen(name), b = strlen(value), n = 0;
    dst[n++] = 0; /* not indexed */
    dst[n++] = (uint8_t)a;
    memcpy(dst + n, name, a);
    n += a;
    dst[n++] = (uint8_t)b;
    memcpy(dst + n, value, b);
    return n + b;
}

/* A client whose own HTTP/2 library does not look at what comes: it would end the connection for streams that
 * it knows nothing of. */
static struct h2client *raw_client(void)
{
    struct h2client *c = h2client_new(
        e,
        (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2", .no_http = true});
    WAIT(e, c->shaken);
    cr_assert(h2client_write(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24));
    cr_assert(h2client_frame(c, NGHTTP2_SETTINGS, 0, 0, NULL, 0));
    cr_assert(h2client_frame(c, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0));
    WAIT(e, c->n_raw > 9);
    return c;
}

/* How many frames of this type a raw client has got (on `stream`, 0 = any); *code: the last one's last 4
 * bytes of the first 8. */
static unsigned raw_frames(const struct h2client *c, uint8_t type, int32_t stream, uint32_t *code)
{
    unsigned found = 0;
    for (size_t at = 0; at + 9 <= c->n_raw;) {
        const uint8_t *f = c->raw + at;
        size_t n = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
        int32_t id = (int32_t)((uint32_t)f[5] << 24 | (uint32_t)f[6] << 16 | (uint32_t)f[7] << 8 | f[8]);
        if (at + 9 + n > c->n_raw)
            break;
        if (f[3] == type && (stream == 0 || id == stream)) {
            const uint8_t *p = f + 9 + (type == NGHTTP2_GOAWAY ? 4 : 0);
            found++;
            *code = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        }
        at += 9 + n;
    }
    return found;
}

/* Messages that HTTP/2 itself calls malformed: the stream ends, nobody is asked, the connection lives. */
Test(masque_h2_bad, malformed_messages_end_the_stream)
{
    static const struct {
        const char *name;
        struct testclient_field f[8];
    } rows[] = {
        {":protocol with GET",
         {{":method", "GET"},
          {":protocol", "connect-ip"},
          {":scheme", "https"},
          {":authority", "a"},
          {":path", PATH}}},
        {"no :scheme",
         {{":method", "CONNECT"}, {":protocol", "connect-ip"}, {":authority", "a"}, {":path", PATH}}},
        {"no :path",
         {{":method", "CONNECT"}, {":protocol", "connect-ip"}, {":scheme", "https"}, {":authority", "a"}}},
        {"no :authority",
         {{":method", "CONNECT"}, {":protocol", "connect-ip"}, {":scheme", "https"}, {":path", PATH}}},
        {"empty :path",
         {{":method", "CONNECT"},
          {":protocol", "connect-ip"},
          {":scheme", "https"},
          {":authority", "a"},
          {":path", ""}}},
        {"two :protocol",
         {{":method", "CONNECT"},
          {":protocol", "connect-ip"},
          {":protocol", "connect-ip"},
          {":scheme", "https"},
          {":authority", "a"},
          {":path", PATH}}},
        {"pseudo-header after a field",
         {{":method", "CONNECT"},
          {"a", "b"},
          {":protocol", "connect-ip"},
          {":scheme", "https"},
          {":authority", "a"},
          {":path", PATH}}},
        {"upper case",
         {{":method", "CONNECT"},
          {":protocol", "connect-ip"},
          {":scheme", "https"},
          {":authority", "a"},
          {":path", PATH},
          {"Foo", "b"}}},
        {"transfer-encoding",
         {{":method", "CONNECT"},
          {":protocol", "connect-ip"},
          {":scheme", "https"},
          {":authority", "a"},
          {":path", PATH},
          {"transfer-encoding", "chunked"}}},
        {"connection",
         {{":method", "CONNECT"},
          {":protocol", "connect-ip"},
          {":scheme", "https"},
          {":authority", "a"},
          {":path", PATH},
          {"connection", "close"}}},
    };
    struct h2client *c = raw_client();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t block[512];
        uint32_t code = 0;
        size_t n = begin(block);
        int32_t id = (int32_t)(1 + 2 * i);
        for (size_t k = 0; rows[i].f[k].name; k++)
            n += literal(block + n, rows[i].f[k].name, rows[i].f[k].value);
        cr_assert(h2client_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, block, n));
        cr_assert(TESTENV_UNTIL(e, raw_frames(c, NGHTTP2_RST_STREAM, id, &code) == 1), "%s", rows[i].name);
        cr_assert_eq(code, NGHTTP2_PROTOCOL_ERROR, "%s: code %u", rows[i].name, code);
        cr_assert_eq(e->n_rq, 0, "%s", rows[i].name);
        cr_assert_eq(raw_frames(c, NGHTTP2_GOAWAY, 0, &code), 0, "%s: the connection died", rows[i].name);
    }
}

#define ANY16 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

Test(masque_h2_bad, malformed_capsules_end_the_stream_not_the_connection)
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
        {"trailing byte", {0x02, 0x14, 1, 6, ANY16, 0x60, 0xff}, 22, false, "cut short"},
        {"ADDRESS_ASSIGN version 5", {0x01, 0x07, 0, 5, 0, 0, 0, 0, 8}, 9, false, "neither 4 nor 6"},
        {"too long", {0x02, 0x80, 0x00, 0x10, 0x01}, 5, false, "4097"},
        {"end inside a capsule", {0x02, 0x13, 1, 6}, 4, true, "inside a capsule"},
        {"end inside a type", {0x41}, 1, true, "inside a capsule"},
        {"datagram without a context", {0x00, 0x00}, 2, false, "context"},
    };
    e->answer = TESTENV_ACCEPT;
    struct h2client *c = h2client_connected(e);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned ended = e->n_ended;
        size_t s = h2client_connect_ip(c);
        WAIT(e, c->streams[s]->status == 200);
        h2client_send(c, s, rows[i].in, rows[i].n);
        if (rows[i].fin)
            h2client_end(c, s);
        WAIT(e, c->streams[s]->closed && e->n_ended == ended + 1);
        cr_assert_eq(c->streams[s]->code, NGHTTP2_PROTOCOL_ERROR, "%s: code %u", rows[i].name,
                     c->streams[s]->code);
        cr_assert_eq(e->ended[ended].why, MASQUE_END_PROTOCOL, "%s", rows[i].name);
        cr_assert(strstr(e->ended[ended].detail, rows[i].detail), "%s: %s", rows[i].name,
                  e->ended[ended].detail);
        cr_assert_not(c->eof, "%s: the connection died", rows[i].name);
    }
}

Test(masque_h2_bad, unknown_contexts_are_dropped_and_long_datagrams_skipped)
{
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    static uint8_t in[6000];
    static const uint8_t other[] = {0x00, 0x05, 0x40, 0x02, 1, 2, 3};
    h2client_send(c, 0, other, sizeof other);
    size_t n = 0;
    in[n++] = 0;
    n += masque_varint_put(in + n, 8, 5000);
    h2client_send(c, 0, in, n + 5000);
    h2client_send(c, 0, in, h2client_capsule(in, (const uint8_t *)"\x60", 1));
    WAIT(e, e->n_packets == 1);
    cr_assert_eq(e->n_ended, 0);
    cr_assert_eq(e->packets[0].len, 1);
}

Test(masque_h2_bad, a_capsule_that_does_not_end_ends_the_flow)
{
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    static const uint8_t half[] = {0x00, 0x40, 0x64, 0x00, 0x60};
    h2client_send(c, 0, half, sizeof half);
    testenv_settle(e, 20);
    for (unsigned i = 0; i < 3 && e->n_ended == 0; i++) {
        testenv_skew += 11 * BASE_SEC;
        testenv_settle(e, 20);
    }
    WAIT(e, e->n_ended == 1 && c->streams[0]->closed);
    cr_assert_eq(e->ended[0].why, MASQUE_END_IDLE);
}

/* ---- floods ---- */

/* Calls `send` until the connection ends; returns how often. */
static unsigned flood(struct h2client *c, bool (*send)(struct h2client *c, unsigned i), unsigned max)
{
    unsigned i = 0;
    uint64_t before = stats().floods;
    while (i < max && stats().floods == before && !c->eof && send(c, i)) {
        i++;
        testenv_endpoint(e);
        if (i % 16 == 0)
            h2client_step(c);
    }
    (void)TESTENV_UNTIL(e, c->eof);
    return i;
}

static bool send_settings(struct h2client *c, unsigned i)
{
    return h2client_frame(c, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

static bool send_ping(struct h2client *c, unsigned i)
{
    return h2client_frame(c, NGHTTP2_PING, 0, 0, "12345678", 8);
}

static bool send_window(struct h2client *c, unsigned i)
{
    return h2client_frame(c, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
}

static bool send_priority(struct h2client *c, unsigned i)
{
    return h2client_frame(c, NGHTTP2_PRIORITY, 0, (int32_t)(2001 + 2 * (i % 100)), "\0\0\0\0\1", 5);
}

static bool send_empty_data(struct h2client *c, unsigned i)
{
    return h2client_frame(c, NGHTTP2_DATA, 0, c->streams[0]->id, NULL, 0);
}

static bool send_bytes_of_nothing(struct h2client *c, unsigned i)
{
    /* one byte a frame of an unknown capsule that is 1 MiB long */
    static const uint8_t head[] = {0x29, 0x80, 0x0f, 0xff, 0x00};
    return i < sizeof head ? h2client_frame(c, NGHTTP2_DATA, 0, c->streams[0]->id, head + i, 1)
                           : h2client_frame(c, NGHTTP2_DATA, 0, c->streams[0]->id, "x", 1);
}

static size_t good_block(uint8_t *dst)
{
    size_t n = begin(dst);
    n += literal(dst + n, ":method", "CONNECT");
    n += literal(dst + n, ":protocol", "connect-ip");
    n += literal(dst + n, ":scheme", "https");
    n += literal(dst + n, ":authority", "masque.test");
    return n + literal(dst + n, ":path", PATH);
}

static bool send_rapid_reset(struct h2client *c, unsigned i)
{
    uint8_t block[256];
    int32_t id = (int32_t)(1001 + 2 * i);
    return h2client_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, block, good_block(block)) &&
           h2client_frame(c, NGHTTP2_RST_STREAM, 0, id, "\0\0\0\x8", 4);
}

/* Streams that the server has to reset (MadeYouReset): a window that overflows. */
static bool send_made_you_reset(struct h2client *c, unsigned i)
{
    uint8_t block[256];
    int32_t id = (int32_t)(1001 + 2 * i);
    return h2client_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, block, good_block(block)) &&
           h2client_frame(c, NGHTTP2_WINDOW_UPDATE, 0, id, "\x7f\xff\xff\xff", 4);
}

static bool send_refused(struct h2client *c, unsigned i)
{
    uint8_t block[256];
    size_t n = begin(block);
    n += literal(block + n, ":method", "GET");
    n += literal(block + n, ":scheme", "https");
    n += literal(block + n, ":authority", "a");
    n += literal(block + n, ":path", "/");
    return h2client_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                          (int32_t)(1001 + 2 * i), block, n);
}

Test(masque_h2_bad, floods_end_the_connection)
{
    static const struct {
        const char *name;
        bool (*send)(struct h2client *c, unsigned i);
        unsigned most;
        bool raw;
    } rows[] = {
        {"SETTINGS", send_settings, 1300, true},
        {"PING", send_ping, 1300, true},
        {"WINDOW_UPDATE", send_window, 1300, true},
        {"PRIORITY", send_priority, 1300, true},
        {"empty DATA", send_empty_data, 4600, false},
        {"DATA of one byte that completes nothing", send_bytes_of_nothing, 4600, false},
        {"rapid reset", send_rapid_reset, 130, true},
        {"resets that the server has to make", send_made_you_reset, 130, true},
        {"requests that are refused", send_refused, 130, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t flow;
        uint32_t code = 0;
        e->n_rq = e->n_ended = 0;
        struct h2client *c = rows[i].raw ? raw_client() : h2client_tunnel(e, &flow);
        e->quiet = true;
        unsigned n = flood(c, rows[i].send, 10000);
        cr_assert(c->eof, "%s: still there after %u", rows[i].name, n);
        cr_assert(n > 50 && n <= rows[i].most, "%s: ended after %u", rows[i].name, n);
        cr_assert_eq(stats().floods, i + 1, "%s", rows[i].name);
        if (rows[i].raw)
            cr_assert_eq(raw_frames(c, NGHTTP2_GOAWAY, 0, &code), 1, "%s", rows[i].name);
        else
            code = c->goaway_code;
        cr_assert_eq(code, NGHTTP2_ENHANCE_YOUR_CALM, "%s: code %u", rows[i].name, code);
        h2client_free(c);
        WAIT(e, stats().open_connections == 0);
        e->quiet = false;
    }
}

/* Requests count as control frames, too: with much room for those, resets still have their own limit. */
Test(masque_h2_resets, have_a_limit_of_their_own)
{
    bool (*const sends[])(struct h2client *, unsigned) = {send_rapid_reset, send_made_you_reset};
    e = testenv_new(NULL);
    testenv_h2(e, &(struct masque_h2_limits){.control = 100000});
    e->quiet = true;
    for (size_t i = 0; i < 2; i++) {
        struct h2client *c = raw_client();
        unsigned n = flood(c, sends[i], 10000);
        cr_assert(c->eof && n > 50 && n <= 130, "%zu: ended after %u", i, n);
        h2client_free(c);
    }
}

Test(masque_h2_bad, a_busy_client_is_no_flood)
{
    uint64_t flow;
    struct h2client *c = h2client_tunnel(e, &flow);
    uint8_t up[64], pkt[41] = {0x60};
    size_t n = h2client_capsule(up, pkt, sizeof pkt);
    e->quiet = true;
    for (unsigned i = 0; i < 6000; i++) { /* smallest packets, head and packet in frames of their own */
        cr_assert(h2client_frame(c, NGHTTP2_DATA, 0, c->streams[0]->id, up, 3), "at %u", i);
        cr_assert(h2client_frame(c, NGHTTP2_DATA, 0, c->streams[0]->id, up + 3, n - 3), "at %u", i);
        (void)testenv_send(e, flow, 100, 1);
        testenv_endpoint(e);
        h2client_step(c); /* with its WINDOW_UPDATEs */
    }
    cr_assert_eq(e->n_ended, 0, "%s", e->ended[0].detail);
    cr_assert_not(c->goaway);
    WAIT(e, stats().packets_in == 6000);
}

Test(masque_h2_bad, endless_continuations_end_the_connection)
{
    struct h2client *c = raw_client();
    uint8_t block[256];
    size_t n = begin(block);
    n += literal(block + n, "a", "b");
    cr_assert(h2client_frame(c, NGHTTP2_HEADERS, 0, 1001, block, n));
    for (unsigned i = 0; i < 100 && !c->eof && !c->goaway; i++) {
        (void)h2client_frame(c, NGHTTP2_CONTINUATION, 0, 1001, block, n);
        testenv_endpoint(e);
        h2client_step(c);
    }
    WAIT(e, c->eof);
    cr_assert_eq(e->n_rq, 0);
}

Test(masque_h2_bad, a_header_block_that_does_not_end_ends_the_connection)
{
    struct h2client *c = raw_client();
    uint8_t block[256];
    size_t n = begin(block);
    n += literal(block + n, "a", "b");
    cr_assert(h2client_frame(c, NGHTTP2_HEADERS, 0, 1001, block, n));
    testenv_settle(e, 20);
    testenv_skew += 11 * BASE_SEC;
    WAIT(e, c->eof);
}

Test(masque_h2_bad, too_many_header_bytes_are_431_endless_ones_the_end)
{
    struct h2client *c = h2client_connected(e);
    static char value[4000];
    memset(value, 'x', sizeof value - 1);
    struct testclient_field f[8] = {{":method", "CONNECT"}, {":protocol", "connect-ip"},
                                    {":scheme", "https"},   {":authority", "a"},
                                    {":path", PATH},        {"a", value},
                                    {"b", value},           {"c", value}};
    size_t s = h2client_request(c, f, 8, false);
    WAIT(e, c->streams[s]->closed);
    cr_assert_eq(c->streams[s]->status, 431);
    /* many fields in one block */
    static uint8_t block[16000];
    size_t n = good_block(block);
    while (n + 4 < sizeof block)
        n += literal(block + n, "a", "");
    cr_assert(h2client_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1001, block, n));
    WAIT(e, c->goaway || c->eof);
    cr_assert_eq(e->n_rq, 0);
}

Test(masque_h2_bad, broken_frames_end_the_connection)
{
    static const struct {
        const char *name;
        uint8_t type, flags;
        int32_t stream;
        const char *p;
        size_t n;
    } rows[] = {
        {"SETTINGS of 5 bytes", NGHTTP2_SETTINGS, 0, 0, "12345", 5},
        {"ENABLE_CONNECT_PROTOCOL of 2", NGHTTP2_SETTINGS, 0, 0, "\0\x8\0\0\0\2", 6},
        {"PING of 7 bytes", NGHTTP2_PING, 0, 0, "1234567", 7},
        {"DATA on stream 0", NGHTTP2_DATA, 0, 0, "x", 1},
        {"DATA on an idle stream", NGHTTP2_DATA, 0, 2001, "x", 1},
        {"HEADERS on an even stream", NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1000, "\x82", 1},
        {"PUSH_PROMISE", NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1001, "\0\0\0\2\x82", 5},
        {"broken HPACK", NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1001, "\xff\xff\xff\xff\xff\xff", 6},
        {"CONTINUATION out of the blue", NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1001, "\x82", 1},
        {"window overflow", NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t flow;
        e->n_rq = e->n_ended = 0;
        struct h2client *c = h2client_tunnel(e, &flow);
        cr_assert(h2client_frame(c, rows[i].type, rows[i].flags, rows[i].stream, rows[i].p, rows[i].n));
        WAIT(e, c->goaway || c->eof);
        WAIT(e, e->n_ended == 1);
        cr_assert(!c->goaway || c->goaway_code != NGHTTP2_NO_ERROR, "%s", rows[i].name);
        h2client_free(c);
        WAIT(e, stats().open_connections == 0);
    }
}

Test(masque_h2_bad, any_bytes_behind_the_preface_are_survived)
{
    unsigned seed = 7;
    for (unsigned i = 0; i < 40; i++) {
        struct h2client *c = h2client_connected(e);
        uint8_t junk[600];
        for (size_t k = 0; k < sizeof junk; k++) {
            seed = seed * 1103515245u + 12345u;
            junk[k] = (uint8_t)(seed >> 16);
        }
        if (i % 2) /* frames that can at least be read */
            junk[0] = 0, junk[1] = 0, junk[3] = (uint8_t)(i % 10);
        (void)h2client_write(c, junk, sizeof junk);
        testenv_settle(e, 3);
        h2client_free(c);
    }
    WAIT(e, stats().open_connections == 0);
    cr_assert_eq(e->n_rq, 0);
}

/* ---- dialects ---- */

static void dialects(bool no_rfc, bool cloudflare)
{
    e = testenv_new(NULL);
    e->cfg.no_rfc = no_rfc;
    e->cfg.cloudflare = cloudflare;
    testenv_h2(e, NULL);
    e->answer = TESTENV_ACCEPT;
}

static size_t plain_connect(struct h2client *c)
{
    const struct testclient_field f[] = {{":method", "CONNECT"},
                                         {":authority", "cloudflareaccess.com:443"},
                                         {"cf-connect-proto", "cf-connect-ip"},
                                         {"pq-enabled", "false"}};
    return h2client_request(c, f, 4, false);
}

Test(masque_h2_dialect, plain_connect_carries_bare_packets)
{
    dialects(false, true);
    struct h2client *c = h2client_connected(e);
    size_t s = plain_connect(c), last = 0;
    WAIT(e, c->streams[s]->status == 200);
    cr_assert_eq(e->rq[0].target, MASQUE_TARGET_ANY);
    cr_assert_eq(e->rq[0].ipproto, -1);
    static const uint8_t up[] = {0x00, 0x04, 0x60, 1, 2, 3}; /* no context ID */
    h2client_send(c, s, up, sizeof up);
    WAIT(e, e->n_packets == 1);
    cr_assert_eq(e->packets[0].len, 4);
    cr_assert_eq(e->packets[0].data[0], 0x60);
    cr_assert_eq(testenv_send(e, e->rq[0].flow, 700, 9), BASE_OK);
    WAIT(e, h2client_packets(c->streams[s], &last, true) == 1);
    cr_assert_eq(last, 700);
    /* the standard form beside it */
    struct h2client *d = h2client_connected(e);
    s = h2client_connect_ip(d);
    WAIT(e, d->streams[s]->status == 200);
}

Test(masque_h2_dialect, extended_connect_with_the_other_name_has_contexts)
{
    dialects(false, true);
    struct h2client *c = h2client_connected(e);
    const struct testclient_field f[] = {{":method", "CONNECT"},
                                         {":protocol", "cf-connect-ip"},
                                         {":scheme", "https"},
                                         {":authority", "cloudflareaccess.com"},
                                         {":path", "/"}};
    size_t s = h2client_request(c, f, 5, false), last = 0;
    WAIT(e, c->streams[s]->status == 200);
    cr_assert_eq(testenv_send(e, e->rq[0].flow, 700, 9), BASE_OK);
    WAIT(e, h2client_packets(c->streams[s], &last, false) == 1);
    cr_assert_eq(last, 700);
}

Test(masque_h2_dialect, each_can_be_switched)
{
    for (int i = 0; i < 4; i++) {
        bool no_rfc = i & 1, cloudflare = i & 2;
        dialects(no_rfc, cloudflare);
        struct h2client *c = h2client_connected(e), *d = h2client_connected(e);
        size_t a = h2client_connect_ip(c), b = plain_connect(d);
        WAIT(e, c->streams[a]->status && d->streams[b]->status);
        cr_assert_eq(c->streams[a]->status, no_rfc ? 501 : 200, "%d", i);
        cr_assert_eq(d->streams[b]->status, cloudflare ? 200 : 501, "%d", i);
        if (i < 3)
            teardown();
    }
}

Test(masque_h2_dialect, http3_answers_the_other_name_when_it_is_on)
{
    for (int i = 0; i < 2; i++) {
        e = testenv_new(NULL);
        masque_h3_free(e->h);
        e->cfg.cloudflare = i == 1;
        testenv_start(e, 0);
        e->answer = TESTENV_ACCEPT;
        struct testclient *c = testenv_connected(e);
        const struct testclient_field f[] = {{":method", "CONNECT"},
                                             {":protocol", "cf-connect-ip"},
                                             {":scheme", "https"},
                                             {":authority", "cloudflareaccess.com"},
                                             {":path", "/"}};
        size_t s = testclient_request(c, f, 5, false);
        WAIT(e, c->streams[s].status);
        cr_assert_eq(c->streams[s].status, i ? 200 : 501);
        if (i == 0)
            teardown();
    }
}
