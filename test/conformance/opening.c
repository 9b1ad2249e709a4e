/* SPDX-License-Identifier: Apache-2.0
 *
 * Checklist 1a: opening the tunnel.
 */
#include <stdio.h>
#include <string.h>

#include "conf.h"
#include "masque/varint.h"

/* ---- TLS and who gets in ---- */

static void refused_alpn(struct conf *t, const char *alpn)
{
    struct conf_client *c = conf_client_with(t, &(struct conf_options){.alpn = alpn});
    uint64_t code;
    WAIT(t, conf_closed(c));
    (void)t->tr->closed(c->impl, &code);
    CHECK(code == 0x178, "ALPN %s: error 0x%llx, not no_application_protocol", alpn,
          (unsigned long long)code);
    CHECK(t->n_flow == 0, "it got through");
}

static void alpn_is_enforced(struct conf *t)
{
    refused_alpn(t, "http/1.1");
    refused_alpn(t, t->tr->id == CONF_H3 ? "h2" : "h3");
    (void)conf_tunnel(t);
}

static void only_with_a_credential(struct conf *t)
{
    char cert[128], key[128];
    struct conf_client *none = conf_client_with(t, &(struct conf_options){.no_cert = true});
    WAIT(t, conf_closed(none));
    (void)snprintf(cert, sizeof cert, "%s/stranger.crt", t->dir);
    (void)snprintf(key, sizeof key, "%s/stranger.key", t->dir);
    struct conf_client *other = conf_client_with(t, &(struct conf_options){.cert = cert, .key = key});
    WAIT(t, conf_closed(other));
    CHECK(t->n_flow == 0, "a request of somebody unknown was reported");
    conf_alive(conf_tunnel(t), 0);
}

static void default_template(struct conf *t)
{
    struct conf_client *c = conf_tunnel_for(t, "/.well-known/masque/ip/*/*/");
    CHECK(t->rq[0].target == MASQUE_TARGET_ANY && t->rq[0].ipproto == -1, "* means everything");
    conf_alive(c, 0);
}

/* ---- SETTINGS, read off the wire ---- */

static const uint8_t settings_datagram[] = {0x00, 0x04, 0x02, 0x33, 0x01};

/* The server's SETTINGS: identifiers and values of the first frame on its control stream. */
static size_t server_settings(struct conf *t, struct conf_client *c, uint64_t id[32], uint64_t value[32])
{
    struct testclient *q = conf_h3(c);
    size_t i = 0, n = 0, at;
    uint64_t type, len;
    WAIT(t, q->n_raw >= 3);
    while (i < q->n_raw && q->raw[i].data[0] != 0x00)
        i++;
    CHECK(i < q->n_raw, "no control stream");
    const uint8_t *p = q->raw[i].data + 1, *end = q->raw[i].data + q->raw[i].n;
    at = masque_varint_get(p, (size_t)(end - p), &type);
    p += at;
    at = masque_varint_get(p, (size_t)(end - p), &len);
    p += at;
    CHECK(at > 0 && type == 4 && len <= (uint64_t)(end - p), "the first frame is no SETTINGS");
    for (end = p + len; p < end; n++) {
        CHECK(n < 32, "too many settings");
        at = masque_varint_get(p, (size_t)(end - p), &id[n]);
        p += at;
        size_t b = masque_varint_get(p, (size_t)(end - p), &value[n]);
        p += b;
        CHECK(at > 0 && b > 0, "cut short");
    }
    return n;
}

static void setting_is_one(struct conf *t, uint64_t which)
{
    uint64_t id[32], value[32];
    struct conf_client *c = conf_client_with(t, &(struct conf_options){.raw = true});
    WAIT(t, t->tr->ready(c->impl));
    size_t n = server_settings(t, c, id, value), seen = 0;
    for (size_t i = 0; i < n; i++)
        if (id[i] == which) {
            seen++;
            CHECK(value[i] == 1, "0x%llx is %llu", (unsigned long long)which, (unsigned long long)value[i]);
        }
    CHECK(seen == 1, "0x%llx is there %zu times", (unsigned long long)which, seen);
}

static void enable_connect_protocol(struct conf *t)
{
    if (t->tr->id == CONF_H3) {
        setting_is_one(t, 0x08);
        return;
    }
    struct conf_client *c = conf_client(t);
    CHECK(conf_h2_setting(c, 0x08) == 1, "%u", conf_h2_setting(c, 0x08));
}

static void h3_datagram_setting(struct conf *t)
{
    setting_is_one(t, 0x33);
}

static void h3_datagram_parameter(struct conf *t)
{
    struct conf_client *c = conf_client(t);
    const ngtcp2_transport_params *p = ngtcp2_conn_get_remote_transport_params(conf_h3(c)->quic);
    CHECK(p->max_datagram_frame_size == 65535, "%llu", (unsigned long long)p->max_datagram_frame_size);
}

/* A client's control stream with these bytes after the stream type. */
static struct conf_client *raw_client(struct conf *t, const void *control, size_t n)
{
    struct conf_client *c = conf_client_with(t, &(struct conf_options){.raw = true});
    WAIT(t, t->tr->ready(c->impl));
    if (n > 0)
        testclient_raw_write(conf_h3(c), testclient_raw_open(conf_h3(c), false), control, n);
    return c;
}

static void h3_datagram_value_of_2(struct conf *t)
{
    static const uint8_t two[] = {0x00, 0x04, 0x02, 0x33, 0x02};
    uint64_t code;
    struct conf_client *c = raw_client(t, two, sizeof two);
    WAIT(t, conf_closed(c));
    (void)t->tr->closed(c->impl, &code);
    CHECK(code == 0x109, "error 0x%llx, not H3_SETTINGS_ERROR", (unsigned long long)code);
}

/* HEADERS of a good request: literal names and values, nothing compressed. */
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
        block[n++] = (uint8_t)(0x20 | (name < 7 ? name : 7));
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

static void h3_client_setting_has_no_effect(struct conf *t)
{
    static const uint8_t with[] = {0x00, 0x04, 0x04, 0x08, 0x01, 0x33, 0x01};
    uint8_t rq[300];
    struct conf_client *c = raw_client(t, with, sizeof with);
    testclient_raw_write(conf_h3(c), testclient_raw_open(conf_h3(c), true), rq, raw_request(rq));
    WAIT(t, t->n_flow == 1);
    t->second_prefix = true;
    c = raw_client(t, settings_datagram, sizeof settings_datagram);
    testclient_raw_write(conf_h3(c), testclient_raw_open(conf_h3(c), true), rq, raw_request(rq));
    WAIT(t, conf_closed(c) || t->n_flow == 2 || t->n_ended == 1);
    CHECK(t->n_flow == 2, "without it the request is another one");
}

static void h2_client_setting_has_no_effect(struct conf *t)
{
    enum { ENABLE_CONNECT_PROTOCOL = 8 };
    struct conf_client *c = conf_client(t);
    conf_h2_send_setting(c, ENABLE_CONNECT_PROTOCOL, 0);
    size_t s = conf_request(c, NULL, NULL, NULL);
    WAIT(t, conf_status(c, s) == 200);
    conf_h2_send_setting(c, ENABLE_CONNECT_PROTOCOL, 1);
    conf_settle(t, 20);
    conf_alive(c, s);
    CHECK(conf_h2_setting(c, ENABLE_CONNECT_PROTOCOL) == 1, "the server took its own back");
}

static void no_datagram_before_settings(struct conf *t)
{
    uint8_t rq[300];
    struct conf_client *c = raw_client(t, NULL, 0);
    struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 200, 1);
    testclient_raw_write(conf_h3(c), testclient_raw_open(conf_h3(c), true), rq, raw_request(rq));
    for (int i = 0; i < 5; i++) {
        conf_down(t, &p);
        conf_settle(t, 10);
    }
    CHECK(conf_h3(c)->n_datagrams == 0, "%zu came", conf_h3(c)->n_datagrams);
    CHECK(t->n_flow == 0, "the request was taken before SETTINGS were there");
    testclient_raw_write(conf_h3(c), testclient_raw_open(conf_h3(c), false), settings_datagram,
                         sizeof settings_datagram);
    WAIT(t, t->n_flow == 1);
    conf_down(t, &p);
    WAIT(t, conf_h3(c)->n_datagrams > 0);
}

static void no_datagrams_to_who_takes_none(struct conf *t)
{
    static const struct conf_options rows[] = {
        {.no_datagram = true}, {.frame_size = 1}, {.frame_size = 1200}};
    for (size_t i = 0; i < 3; i++) {
        struct conf_client *c = conf_client_with(t, &rows[i]);
        WAIT(t, t->tr->ready(c->impl));
        size_t s = conf_request(c, NULL, NULL, NULL);
        WAIT(t, conf_ended(c, s));
        CHECK(conf_status(c, s) == 400, "row %zu: %d", i, conf_status(c, s));
        struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), 100, 1);
        conf_down(t, &p);
        conf_settle(t, 10);
        CHECK(conf_h3(c)->n_datagrams == 0, "row %zu: a datagram came", i);
    }
}

static void no_datagram_beyond_the_peers_size(struct conf *t)
{
    struct conf_client *c = conf_client_with(t, &(struct conf_options){.frame_size = 1330});
    WAIT(t, t->tr->ready(c->impl));
    size_t s = conf_request(c, NULL, NULL, NULL);
    WAIT(t, conf_status(c, s) == 200);
    for (size_t n = 1280; n <= 1400; n += 6) {
        struct conf_pkt p = conf_udp(CONF_HOST, conf_addr(1), n, 1);
        conf_down(t, &p);
    }
    conf_settle(t, 30);
    size_t largest = 0;
    for (size_t i = 0; i < conf_h3(c)->n_datagrams; i++)
        if (conf_h3(c)->datagram_len[i] > largest)
            largest = conf_h3(c)->datagram_len[i];
    CHECK(largest >= 1282, "nothing passed");
    /* And the sender of what did not pass hears so, with the size that does. */
    CHECK(conf_vpc_n() > 0, "no Packet Too Big");
    const uint8_t *m = conf_vpc(0)->b + 44;
    size_t mtu = (size_t)m[0] << 24 | (size_t)m[1] << 16 | (size_t)m[2] << 8 | m[3];
    CHECK(conf_vpc(0)->b[40] == 2 && mtu >= 1280 && mtu < 1330, "MTU %zu", mtu);
    CHECK(largest + 1 + masque_varint_len(largest) <= 1330, "a frame of %zu bytes of payload", largest);
}

/* ---- the request ---- */

static void malformed(struct conf *t, struct conf_client *c, const char *name,
                      const struct testclient_field *f, size_t n)
{
    size_t s = t->tr->request(c->impl, f, n, false);
    uint64_t code;
    WAIT(t, t->tr->end(c->impl, s, &code) != CONF_OPEN);
    CHECK(t->tr->end(c->impl, s, &code) == CONF_RESET ? t->tr->code(code) == CONF_CODE_MESSAGE
                                                      : conf_status(c, s) == 400,
          "%s: status %d, code 0x%llx", name, conf_status(c, s), (unsigned long long)code);
    CHECK(t->n_flow == 0, "%s was reported", name);
}

static void malformed_requests(struct conf *t)
{
    struct conf_client *c = conf_client(t);
    static const struct testclient_field all[] = {{":method", "CONNECT"},
                                                  {":protocol", "connect-ip"},
                                                  {":scheme", "https"},
                                                  {":authority", "masque.test"},
                                                  {":path", "/.well-known/masque/ip/*/*/"}};
    struct testclient_field f[5];
    static const size_t left_out[] = {2, 3, 4};
    for (size_t i = 0; i < 3; i++) {
        size_t n = 0;
        for (size_t k = 0; k < 5; k++)
            if (k != left_out[i])
                f[n++] = all[k];
        malformed(t, c, all[left_out[i]].name, f, n);
    }
    for (size_t k = 2; k < 5; k++) {
        memcpy(f, all, sizeof f);
        f[k].value = "";
        malformed(t, c, f[k].name, f, 5);
    }
    conf_alive(conf_tunnel(t), 0);
}

static void other_methods(struct conf *t)
{
    struct conf_client *c = conf_client(t);
    static const struct testclient_field get[] = {
        {":method", "GET"}, {":scheme", "https"}, {":authority", "masque.test"}, {":path", "/"}};
    size_t s = t->tr->request(c->impl, get, 4, true);
    WAIT(t, conf_ended(c, s));
    CHECK(conf_status(c, s) == 405, "%d", conf_status(c, s));
    CHECK(t->n_flow == 0, "reported");
}

static void unknown_protocol(struct conf *t)
{
    struct conf_client *c = conf_client(t);
    static const char *const names[] = {"connect-udp", "websocket", "connect-ipv6", "CONNECT-IP"};
    for (size_t i = 0; i < 4; i++) {
        const struct testclient_field f[] = {{":method", "CONNECT"},
                                             {":protocol", names[i]},
                                             {":scheme", "https"},
                                             {":authority", "masque.test"},
                                             {":path", "/.well-known/masque/ip/*/*/"}};
        size_t s = t->tr->request(c->impl, f, 5, false);
        WAIT(t, conf_ended(c, s));
        CHECK(conf_status(c, s) == 501, "%s: %d", names[i], conf_status(c, s));
    }
    CHECK(t->n_flow == 0, "reported");
}

static void bad_target(struct conf *t)
{
    static const char *const paths[] = {
        "/.well-known/masque/ip/fd20::%2F64/256/", /* a protocol is one byte */
        "/.well-known/masque/ip/fd20%3A%3A%2F64/-1/",
        "/.well-known/masque/ip/fd20%3A%3A%2F64//",
        "/.well-known/masque/ip//*/",
        "/.well-known/masque/ip/fd20%3A%3A1%2F64/*/", /* bits after the prefix length */
        "/.well-known/masque/ip/fd20%3A%3A%2F129/*/",
        "/.well-known/masque/ip/fd20%3A%3A%2F/*/",
        "/.well-known/masque/ip/fd20%3A%3A/64/*/",      /* the slash of a prefix is %2F */
        "/.well-known/masque/ip/fe80%3A%3A1%25eth0/*/", /* zones mean nothing to a proxy */
        "/.well-known/masque/ip/%zz/*/",
        "/.well-known/masque/ip/*/tcp/",
        "/.well-known/masque/ip/*/",
        "/.well-known/masque/udp/192.0.2.1/53/",
        "/",
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct conf_client *c = i % 7 == 0 ? conf_client(t) : &t->clients[t->n_clients - 1];
        size_t s = conf_request(c, paths[i], NULL, NULL);
        WAIT(t, conf_ended(c, s));
        CHECK(conf_status(c, s) == 400, "%s: %d", paths[i], conf_status(c, s));
    }
    CHECK(t->n_flow == 0, "one was reported");
}

static void good_target(struct conf *t)
{
    static const struct {
        const char *path;
        enum masque_target target;
        unsigned len;
        int proto;
    } rows[] = {{"/.well-known/masque/ip/fd20%3A%3A%2F64/17/", MASQUE_TARGET_PREFIX, 64, 17},
                {"/.well-known/masque/ip/fd20%3a%3a10/6/", MASQUE_TARGET_PREFIX, 128, 6},
                {"/.well-known/masque/ip/%2A/%2A/", MASQUE_TARGET_ANY, 0, -1},
                {"/.well-known/masque/ip/fd20::%2F64/0/", MASQUE_TARGET_PREFIX, 64, 0},
                {"/.well-known/masque/ip/*/255/", MASQUE_TARGET_ANY, 0, 255}};
    for (unsigned i = 0; i < 5; i++) {
        struct conf_client *c = conf_tunnel_for(t, rows[i].path);
        CHECK(t->rq[i].target == rows[i].target && t->rq[i].ipproto == rows[i].proto &&
                  (rows[i].len == 0 || t->rq[i].prefix.len == rows[i].len),
              "%s", rows[i].path);
        c->t->tr->reset(c->impl, 0);
        WAIT(t, t->n_ended == i + 1);
    }
}

/* A host name would have to be resolved before the answer; we do not resolve, so the answer is no. */
static void names_are_refused(struct conf *t)
{
    static const char *const paths[] = {"/.well-known/masque/ip/example.com/*/",
                                        "/.well-known/masque/ip/192.0.2.0%2F24/*/"};
    struct conf_client *c = conf_client(t);
    for (size_t i = 0; i < 2; i++) {
        size_t s = conf_request(c, paths[i], NULL, NULL);
        WAIT(t, conf_ended(c, s));
        CHECK(conf_status(c, s) == 400 && conf_body_says(c, s, "not IPv6"), "%s: %d", paths[i],
              conf_status(c, s));
    }
}

static void content_fields(struct conf *t)
{
    static const char *const f[][2] = {{"content-length", "0"},
                                       {"content-length", "5"},
                                       {"content-type", "text/plain"},
                                       {"transfer-encoding", "chunked"}};
    struct conf_client *c = conf_client(t);
    for (size_t i = 0; i < 4; i++) {
        size_t s = conf_request(c, NULL, f[i][0], f[i][1]);
        uint64_t code;
        WAIT(t, t->tr->end(c->impl, s, &code) != CONF_OPEN);
        CHECK(t->tr->end(c->impl, s, &code) == CONF_RESET ? t->tr->code(code) == CONF_CODE_MESSAGE
                                                          : conf_status(c, s) == 400,
              "%s: status %d, code 0x%llx", f[i][0], conf_status(c, s), (unsigned long long)code);
    }
    CHECK(t->n_flow == 0, "reported");
}

static void answer_has_no_content_fields(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    CHECK(conf_status(c, 0) == 200, "%d: 204, 205 and 206 have no content", conf_status(c, 0));
    const char *f = t->tr->fields(c->impl, 0);
    CHECK(!strstr(f, "content-length") && !strstr(f, "content-type") && !strstr(f, "transfer-encoding"), "%s",
          f);
}

static void fin_with_the_headers(struct conf *t)
{
    const struct testclient_field f[] = {{":method", "CONNECT"},
                                         {":protocol", "connect-ip"},
                                         {":scheme", "https"},
                                         {":authority", "masque.test"},
                                         {":path", "/.well-known/masque/ip/*/*/"}};
    struct conf_client *c = conf_client(t);
    size_t s = t->tr->request(c->impl, f, 5, true);
    WAIT(t, conf_ended(c, s));
    CHECK(conf_status(c, s) == 400 && t->n_flow == 0, "%d", conf_status(c, s));
}

static void capsule_protocol_of_the_request(struct conf *t)
{
    static const char *const values[] = {NULL, "?1", "?0", "1", "\"?1\"", "?1;foo=bar", "", "?1, ?1"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct conf_client *c = i % 4 == 0 ? conf_client(t) : &t->clients[t->n_clients - 1];
        size_t s = conf_request(c, NULL, values[i] ? "capsule-protocol" : NULL, values[i]);
        WAIT(t, conf_status(c, s) != 0);
        CHECK(conf_status(c, s) == 200, "%s: %d", values[i] ? values[i] : "none", conf_status(c, s));
        t->tr->reset(c->impl, s);
        WAIT(t, t->n_ended == i + 1);
    }
}

static void capsule_protocol_of_the_answer(struct conf *t)
{
    struct conf_client *c = conf_tunnel(t);
    CHECK(conf_has_field(c, 0, "capsule-protocol: ?1"), "%s", t->tr->fields(c->impl, 0));
    t->answer = CONF_REFUSE;
    c = conf_client(t);
    size_t s = conf_request(c, NULL, "capsule-protocol", "?1");
    WAIT(t, conf_ended(c, s));
    CHECK(conf_status(c, s) == 403, "%d", conf_status(c, s));
    CHECK(!strstr(t->tr->fields(c->impl, s), "capsule-protocol"), "it is on a refusal");
}

static void answer_waits_for_the_tunnel(struct conf *t)
{
    t->answer = CONF_HOLD;
    struct conf_client *c = conf_client(t);
    size_t s = conf_request(c, NULL, NULL, NULL), n;
    WAIT(t, t->n_flow == 1);
    conf_settle(t, 50);
    CHECK(conf_status(c, s) == 0, "%d before anybody has decided", conf_status(c, s));
    conf_decide(t, t->flow[0], CONF_ACCEPT);
    WAIT(t, conf_status(c, s) == 200 && (t->tr->body(c->impl, s, &n), n > 60));
    conf_alive(c, s);
}

static void refusal_is_no_tunnel(struct conf *t)
{
    t->answer = CONF_REFUSE;
    struct conf_client *c = conf_client(t);
    size_t s = conf_request(c, NULL, NULL, NULL);
    WAIT(t, conf_ended(c, s));
    CHECK(conf_status(c, s) == 403, "%d", conf_status(c, s));
    CHECK(conf_body_says(c, s, "reason: NoBinding"), "no reason is given");
    CHECK(conf_has_field(c, s, "retry-after: 7"), "%s", t->tr->fields(c->impl, s));
    struct conf_pkt p = conf_udp(conf_addr(1), CONF_HOST, 100, 1);
    t->tr->packet(c->impl, s, 0, p.b, p.n);
    conf_settle(t, 20);
    CHECK(conf_vpc_n() == 0 && t->n_taken == 0, "a packet passed");
}

const struct conf_case conf_opening[] = {
    {"1a.1", "RFC 9484 4", "MUST", "TLS or QUIC, and nothing but the protocol that is served (ALPN)",
     "alpn_is_enforced", CONF_BOTH, alpn_is_enforced},
    {"1a.2", "RFC 9484 3", "SHOULD", "the default template is offered", "default_template", CONF_BOTH,
     default_template},
    {"1a.3", "RFC 8441 3, 9220 3", "MUST", "SETTINGS_ENABLE_CONNECT_PROTOCOL = 1 is sent, once",
     "enable_connect_protocol", CONF_BOTH, enable_connect_protocol},
    {"1a.4", "RFC 8441 3", "MUST", "that setting from a client has no effect",
     "h3_client_setting_has_no_effect", CONF_H3, h3_client_setting_has_no_effect},
    {"1a.25", "RFC 8441 3", "MUST", "the same over HTTP/2", "h2_client_setting_has_no_effect", CONF_H2,
     h2_client_setting_has_no_effect},
    {"1a.5", "RFC 9297 2.1.1", "MUST", "SETTINGS_H3_DATAGRAM = 1 is sent", "h3_datagram_setting", CONF_H3,
     h3_datagram_setting},
    {"1a.6", "RFC 9221 3", "SHOULD", "max_datagram_frame_size is 65535", "h3_datagram_parameter", CONF_H3,
     h3_datagram_parameter},
    {"1a.7", "RFC 9297 2.1.1", "MUST",
     "a value of SETTINGS_H3_DATAGRAM that is neither 0 nor 1 is H3_SETTINGS_ERROR", "h3_datagram_value_of_2",
     CONF_H3, h3_datagram_value_of_2},
    {"1a.8", "RFC 9297 2.1.1", "MUST", "no datagram before the setting was sent and received",
     "no_datagram_before_settings", CONF_H3, no_datagram_before_settings},
    {"1a.9", "RFC 9221 3", "MUST", "no datagram to a peer that takes none", "no_datagrams_to_who_takes_none",
     CONF_H3, no_datagrams_to_who_takes_none},
    {"1a.10", "RFC 9221 3", "MUST", "no DATAGRAM frame larger than the peer's limit",
     "no_datagram_beyond_the_peers_size", CONF_H3, no_datagram_beyond_the_peers_size},
    {"1a.11", "RFC 9484 4.4", "MUST",
     "a request without :authority, :scheme or :path, or with an empty one, is malformed",
     "malformed_requests", CONF_BOTH, malformed_requests},
    {"1a.12", "RFC 9484 4.4", "MUST", "only CONNECT opens a tunnel", "other_methods", CONF_BOTH,
     other_methods},
    {"1a.13", "RFC 9220 3", "SHOULD", "an unknown :protocol is answered with 501", "unknown_protocol",
     CONF_BOTH, unknown_protocol},
    {"1a.14", "RFC 9484 4.6", "MUST", "a bad target or ipproto is refused", "bad_target", CONF_BOTH,
     bad_target},
    {"1a.15", "RFC 9484 4.6", "MUST", "targets and protocols in every allowed form are understood",
     "good_target", CONF_BOTH, good_target},
    {"1a.16", "RFC 9484 4.1", "MUST", "a name that was not resolved gets no 2xx", "names_are_refused",
     CONF_BOTH, names_are_refused},
    {"1a.17", "RFC 9297 3.2", "MUST",
     "Content-Length, Content-Type or Transfer-Encoding in the request: malformed", "content_fields",
     CONF_BOTH, content_fields},
    {"1a.18", "RFC 9297 3.2", "MUST", "none of them in the answer, which is not 204, 205 or 206",
     "answer_has_no_content_fields", CONF_BOTH, answer_has_no_content_fields},
    {"1a.19", "RFC 9484 4.4", "MUST", "a request whose stream has ended is no tunnel", "fin_with_the_headers",
     CONF_BOTH, fin_with_the_headers},
    {"1a.20", "RFC 9297 3.4", "MUST",
     "Capsule-Protocol of the request may be absent, false, no Boolean, repeated, with parameters",
     "capsule_protocol_of_the_request", CONF_BOTH, capsule_protocol_of_the_request},
    {"1a.21", "RFC 9297 3.4", "MUST", "Capsule-Protocol: ?1 on the 2xx, and never on a refusal",
     "capsule_protocol_of_the_answer", CONF_BOTH, capsule_protocol_of_the_answer},
    {"1a.22", "RFC 9484 4.5", "MUST", "2xx only when the tunnel exists", "answer_waits_for_the_tunnel",
     CONF_BOTH, answer_waits_for_the_tunnel},
    {"1a.23", "RFC 9484 4.5", "MUST", "any other status opens nothing; it says why and when to come back",
     "refusal_is_no_tunnel", CONF_BOTH, refusal_is_no_tunnel},
    {"1a.24", "RFC 9484 11", "SHOULD", "only authenticated clients get in", "only_with_a_credential",
     CONF_BOTH, only_with_a_credential},
    {0},
};
