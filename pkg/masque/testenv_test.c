/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/testenv_test.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

base_time testenv_skew;

base_time testenv_clock(void)
{
    return loop_clock() + testenv_skew;
}

/* ---- events ---- */

static void on_request(void *arg, const struct masque_request *rq)
{
    struct testenv *e = arg;
    if (e->quiet)
        return;
    cr_assert(e->n_rq < TESTENV_MAX);
    e->rq[e->n_rq++] = *rq;
    if (e->on_request)
        e->on_request(e, rq);
    if (e->answer == TESTENV_ACCEPT)
        cr_assert_eq(testenv_accept(e, rq->flow), BASE_OK);
    else if (e->answer == TESTENV_REFUSE)
        cr_assert_eq(rq->flow & MASQUE_FLOW_H2
                         ? masque_h2_refuse(e->h2, rq->flow, 403, "no binding for this identity", 7)
                         : masque_h3_refuse(e->h, rq->flow, 403, "no binding for this identity", 7),
                     BASE_OK);
}

static void on_packet(void *arg, uint64_t flow, uint8_t *pkt, size_t len)
{
    struct testenv *e = arg;
    memset(pkt - MASQUE_PACKET_ROOM, 0xaa, MASQUE_PACKET_ROOM); /* the promise: writable */
    if (e->n_packets < TESTENV_MAX) {
        e->packets[e->n_packets].flow = flow;
        e->packets[e->n_packets].len = len;
        memcpy(e->packets[e->n_packets].data, pkt, len < 1500 ? len : 1500);
        e->n_packets++;
    }
    if (e->on_packet)
        e->on_packet(e, flow);
}

static void on_ended(void *arg, uint64_t flow, enum masque_end why, const char *detail)
{
    struct testenv *e = arg;
    if (e->quiet) {
        e->n_ended += e->n_ended < TESTENV_MAX;
        return;
    }
    cr_assert(e->n_ended < TESTENV_MAX);
    for (unsigned i = 0; i < e->n_ended; i++)
        cr_assert_neq(e->ended[i].flow, flow, "flow %d ended twice", (int)flow);
    e->ended[e->n_ended].flow = flow;
    e->ended[e->n_ended].why = why;
    (void)snprintf(e->ended[e->n_ended].detail, sizeof e->ended[0].detail, "%s", detail);
    e->n_ended++;
}

/* ---- set-up ---- */

static struct base_prefix prefix(const char *z)
{
    struct base_prefix p;
    cr_assert_eq(base_prefix_parse(&p, base_str_of(z)), BASE_OK, "%s", z);
    return p;
}

static void file(char dst[96], const struct testenv *e, const char *name)
{
    (void)snprintf(dst, 96, "%s/%s", e->dir, name);
}

static void make_pki(struct testenv *e)
{
    (void)snprintf(e->dir, sizeof e->dir, "/tmp/masque-h3-XXXXXX");
    cr_assert(mkdtemp(e->dir));
    file(e->server_cert, e, "server.crt");
    file(e->server_key, e, "server.key");
    file(e->client_ca, e, "ca.crt");
    file(e->cert, e, "client.crt");
    file(e->key, e, "client.key");
    e->root = testpki_new(&(struct testpki_spec){.cn = "client root", .ca = true});
    testpki_write(e->root, NULL, e->client_ca, NULL);
    struct testpki_cert *server =
        testpki_new(&(struct testpki_spec){.cn = "edge", .eku = "serverAuth", .san = "DNS:masque.test"});
    struct testpki_cert *client = testpki_new(&(struct testpki_spec){
        .cn = "site-1", .issuer = e->root, .eku = "clientAuth", .san = "URI:spiffe://acme/site-1"});
    testpki_write(server, NULL, e->server_cert, e->server_key);
    testpki_write(client, NULL, e->cert, e->key);
    testpki_free(server);
    testpki_free(client);
}

void testenv_start(struct testenv *e, uint16_t port)
{
    char listen[32];
    struct base_err err = {0};
    (void)snprintf(listen, sizeof listen, "[::1]:%u", port);
    e->cfg.listen = listen;
    cr_assert_eq(masque_h3_new(&e->h, &e->cfg, &err), BASE_OK, "%s", err.msg);
    e->cfg.listen = NULL;
}

void testenv_h2(struct testenv *e, const struct masque_h2_limits *limits)
{
    struct base_err err = {0};
    struct masque_h2_config cfg = {.listen = "[::1]:0",
                                   .cert_file = e->server_cert,
                                   .key_file = e->server_key,
                                   .client_ca_file = e->client_ca,
                                   .bearer = e->cfg.bearer,
                                   .no_rfc = e->cfg.no_rfc,
                                   .cloudflare = e->cfg.cloudflare,
                                   .events = e->cfg.events,
                                   .arg = e};
    if (limits)
        cfg.limits = *limits;
    cr_assert_eq(masque_h2_new(&e->h2, &cfg, &err), BASE_OK, "%s", err.msg);
}

struct testenv *testenv_new(const struct masque_h3_limits *limits)
{
    struct testenv *e = calloc(1, sizeof *e);
    cr_assert(e);
    (void)signal(SIGPIPE, SIG_IGN);
    make_pki(e);
    e->fences = fence_table_new(8);
    e->slot = fence_slot_take(e->fences, 1);
    cr_assert(fence_set(e->slot, BASE_TIME_NEVER));
    e->prefix = prefix("fd12::1:0:7:0:0/96");
    e->routes[0] = prefix("fd20::/64");
    e->routes[1] = prefix("fd12:0:0:1::/64");
    e->cfg = (struct masque_h3_config){.cert_file = e->server_cert,
                                       .key_file = e->server_key,
                                       .client_ca_file = e->client_ca,
                                       .events = {on_request, on_packet, on_ended},
                                       .arg = e};
    if (limits)
        e->cfg.limits = *limits;
    testenv_start(e, 0);
    return e;
}

void testenv_free(struct testenv *e)
{
    for (unsigned i = 0; i < e->n_clients; i++)
        testclient_free(e->clients[i]);
    masque_h3_free(e->h);
    masque_h2_free(e->h2);
    fence_kill(e->slot);
    fence_slot_give(e->fences, e->slot);
    fence_table_free(e->fences);
    testpki_free(e->root);
    (void)unlink(e->server_cert);
    (void)unlink(e->server_key);
    (void)unlink(e->client_ca);
    (void)unlink(e->cert);
    (void)unlink(e->key);
    cr_assert_eq(rmdir(e->dir), 0, "files are left in %s", e->dir);
    free(e);
}

/* ---- turns ---- */

void testenv_endpoint(struct testenv *e)
{
    base_time now = testenv_clock();
    masque_h3_read(e->h, now, 64);
    masque_h3_expire(e->h, now);
    masque_h3_flush(e->h, testenv_clock(), testenv_clock);
    if (e->h2) {
        masque_h2_read(e->h2, now, 16);
        masque_h2_expire(e->h2, now);
        masque_h2_flush(e->h2, testenv_clock(), testenv_clock);
    }
}

void testenv_turn(struct testenv *e)
{
    struct pollfd p[TESTENV_CLIENTS + 1];
    base_time now = testenv_clock(), at = masque_h3_expiry(e->h);
    if (e->h2 && e->turn) { /* its clients are in this thread, too: nothing to wait for */
        testenv_endpoint(e);
        e->turn(e);
        return;
    }
    p[0] = (struct pollfd){masque_h3_fd(e->h), POLLIN, 0};
    for (unsigned i = 0; i < e->n_clients; i++) {
        p[i + 1] = (struct pollfd){e->clients[i]->fd, POLLIN, 0};
        at = base_time_min(at, testclient_expiry(e->clients[i]));
    }
    (void)poll(p, e->n_clients + 1, at <= now ? 0 : 1);
    testenv_endpoint(e);
    for (unsigned i = 0; i < e->n_clients; i++)
        testclient_step(e->clients[i], testenv_clock());
}

void testenv_settle(struct testenv *e, unsigned ms)
{
    for (base_time until = loop_clock() + ms * BASE_MS; loop_clock() < until;)
        testenv_turn(e);
}

/* ---- clients ---- */

struct testclient *testenv_client(struct testenv *e, struct testclient_config cfg)
{
    cr_assert(e->n_clients < TESTENV_CLIENTS);
    cfg.port = masque_h3_port(e->h);
    struct testclient *c = testclient_new(&cfg, testenv_clock());
    e->clients[e->n_clients++] = c;
    testclient_step(c, testenv_clock());
    return c;
}

struct testclient *testenv_connected(struct testenv *e)
{
    struct testclient *c =
        testenv_client(e, (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
    WAIT(e, c->handshaken && c->got_settings);
    return c;
}

size_t testenv_request(struct testclient *c, const char *path)
{
    const struct testclient_field f[] = {{":method", "CONNECT"},
                                         {":protocol", "connect-ip"},
                                         {":scheme", "https"},
                                         {":authority", "masque.test:4433"},
                                         {":path", path ? path : "/.well-known/masque/ip/*/*/"},
                                         {"capsule-protocol", "?1"}};
    return testclient_request(c, f, sizeof f / sizeof f[0], false);
}

int testenv_accept(struct testenv *e, uint64_t flow)
{
    return flow & MASQUE_FLOW_H2 ? masque_h2_accept(e->h2, flow, &e->prefix, e->routes, 2, e->slot)
                                 : masque_h3_accept(e->h, flow, &e->prefix, e->routes, 2, e->slot);
}

struct testclient *testenv_tunnel(struct testenv *e, uint64_t *ret_flow)
{
    enum testenv_answer before = e->answer;
    struct testclient *c = testenv_connected(e);
    unsigned n = e->n_rq;
    e->answer = TESTENV_ACCEPT;
    size_t s = testenv_request(c, NULL);
    WAIT(e, c->streams[s].status == 200 && e->n_rq == n + 1);
    *ret_flow = e->rq[n].flow;
    e->answer = before;
    return c;
}

int testenv_send(struct testenv *e, uint64_t flow, size_t len, uint8_t mark)
{
    uint8_t pkt[2000];
    cr_assert(len <= sizeof pkt);
    memset(pkt, mark, sizeof pkt);
    pkt[0] = 0x60;
    const struct fence_pass *pass = fence_check(e->slot, testenv_clock());
    return flow & MASQUE_FLOW_H2 ? masque_h2_send(e->h2, flow, pass, pkt, len)
                                 : masque_h3_send(e->h, flow, pass, pkt, len);
}

struct masque_h3_stats testenv_stats(const struct testenv *e)
{
    struct masque_h3_stats s;
    masque_h3_stats(e->h, &s);
    return s;
}

size_t testenv_capsules(const struct testclient_stream *s, uint64_t *types,
                        struct masque_address *last_assigned, size_t *n_assigned, struct masque_route *routes,
                        size_t *n_routes, size_t max)
{
    static struct masque_capsule_parser p;
    memset(&p, 0, sizeof p);
    const uint8_t *d = s->body;
    size_t left = s->n_body, n = 0;
    struct masque_capsule c;
    struct base_err err = {0};
    int rv;
    while ((rv = masque_capsule_feed(&p, &d, &left, &c, &err)) == 1) {
        cr_assert(n < max);
        types[n++] = c.type;
        if (c.type == MASQUE_CAPSULE_ADDRESS_ASSIGN)
            cr_assert_eq(masque_address_decode(c.value, c.len, false, last_assigned, 16, n_assigned, &err),
                         BASE_OK, "%s", err.msg);
        if (c.type == MASQUE_CAPSULE_ROUTE_ADVERTISEMENT)
            cr_assert_eq(masque_route_decode(c.value, c.len, routes, 16, n_routes, &err), BASE_OK, "%s",
                         err.msg);
    }
    cr_assert_eq(rv, 0, "%s", err.msg);
    cr_assert(masque_capsule_at_boundary(&p));
    return n;
}
