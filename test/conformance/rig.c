/* SPDX-License-Identifier: Apache-2.0 */
#include "conf.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static base_time skew;

base_time conf_clock(void)
{
    return loop_clock() + skew;
}

void conf_push(base_time d)
{
    skew += d;
}

void conf_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)fprintf(stderr, "  %s:%d: ", file, line);
    (void)vfprintf(stderr, fmt, ap);
    (void)fprintf(stderr, "\n");
    va_end(ap);
    exit(1);
}

/* ---- certificates ---- */
static void file(char dst[128], const char *dir, const char *name)
{
    (void)snprintf(dst, 128, "%s/%s", dir, name);
}

static void write_pair(const char *dir, const char *name, const struct testpki_spec *spec)
{
    char cert[160], key[160];
    struct testpki_cert *c = testpki_new(spec);
    (void)snprintf(cert, sizeof cert, "%s/%s.crt", dir, name);
    (void)snprintf(key, sizeof key, "%s/%s.key", dir, name);
    testpki_write(c, NULL, cert, key);
    testpki_free(c);
}

void conf_pki(const char *dir)
{
    char ca[128];
    struct testpki_cert *root = testpki_new(&(struct testpki_spec){.cn = "client root", .ca = true});
    struct testpki_cert *other = testpki_new(&(struct testpki_spec){.cn = "another root", .ca = true});
    file(ca, dir, "ca.crt");
    testpki_write(root, NULL, ca, NULL);
    write_pair(dir, "server",
               &(struct testpki_spec){.cn = "edge", .eku = "serverAuth", .san = "DNS:masque.test"});
    write_pair(dir, "client",
               &(struct testpki_spec){
                   .cn = "site-1", .issuer = root, .eku = "clientAuth", .san = "URI:spiffe://acme/site-1"});
    write_pair(dir, "stranger",
               &(struct testpki_spec){
                   .cn = "site-1", .issuer = other, .eku = "clientAuth", .san = "URI:spiffe://acme/site-1"});
    testpki_free(root);
    testpki_free(other);
}

/* ---- the endpoint and the path behind it ---- */
static struct base_prefix prefix(const char *z)
{
    struct base_prefix p;
    if (base_prefix_parse(&p, base_str_of(z)) != BASE_OK)
        abort();
    return p;
}

static void accept_flow(struct conf *t, uint64_t flow)
{
    struct agent_flow *f = agent_flows_find(t->d->flows, flow);
    struct agent_admit a = {.flow = flow,
                            .prefix = prefix(t->second_prefix ? "fd12::1:0:2:0:0/96" : "fd12::1:0:1:0:0/96"),
                            .pool = prefix("fd12:0:0:1::/64"),
                            .n_destinations = 2,
                            .slot = t->slot};
    a.destinations[0] = prefix("fd21::/64");
    a.destinations[1] = prefix("fd20::/64");
    if (base_ip6_parse(&a.tunnel_ip, base_str_of(CONF_TUNNEL)) != BASE_OK || !f)
        abort();
    if (agent_flows_open(t->d->flows, f, &a, 0) != BASE_OK ||
        masque_endpoint_accept(t->d->ends, flow, &a.prefix, f->destinations, f->rules.n_destinations,
                               t->slot) != BASE_OK)
        conf_fail(__FILE__, __LINE__, "flow %llu could not be accepted", (unsigned long long)flow);
}

void conf_decide(struct conf *t, uint64_t flow, enum conf_answer a)
{
    if (a == CONF_ACCEPT)
        accept_flow(t, flow);
    else if (masque_endpoint_refuse(t->d->ends, flow, 403, "NoBinding: nobody knows you", 7) != BASE_OK)
        abort();
}

static void on_request(void *arg, const struct masque_request *rq)
{
    struct conf *t = arg;
    struct agent_flow *f = agent_flows_add(t->d->flows, rq->flow);
    if (!f || t->n_flow == CONF_FLOWS)
        abort();
    if (rq->target == MASQUE_TARGET_PREFIX)
        f->target = rq->prefix;
    f->ipproto = rq->ipproto;
    CHECK((rq->transport == MASQUE_H3) == (t->tr->id == CONF_H3), "a request of another transport");
    t->rq[t->n_flow] = *rq;
    t->flow[t->n_flow++] = rq->flow;
    if (t->answer != CONF_HOLD)
        conf_decide(t, rq->flow, t->answer);
}

static void on_packet(void *arg, uint64_t flow, uint8_t *pkt, size_t len)
{
    struct conf *t = arg;
    t->n_taken++;
    agent_data_on_packet(t->d, flow, pkt, len);
}

static void on_ended(void *arg, uint64_t flow, enum masque_end why, const char *detail)
{
    struct conf *t = arg;
    struct agent_flow *f = agent_flows_find(t->d->flows, flow);
    if (!f || t->n_ended == CONF_FLOWS)
        conf_fail(__FILE__, __LINE__, "flow %llu ended twice", (unsigned long long)flow);
    agent_flows_remove(t->d->flows, f);
    t->ended[t->n_ended].flow = flow;
    t->ended[t->n_ended].why = why;
    (void)snprintf(t->ended[t->n_ended++].detail, sizeof t->ended[0].detail, "%s", detail);
}

void conf_limits(struct conf *t, const struct masque_h3_limits *limits)
{
    char cert[128], key[128], ca[128];
    struct base_err err = {0};
    struct masque_endpoint_config cfg = {.h3 = {.listen = "[::1]:0",
                                                .cert_file = cert,
                                                .key_file = key,
                                                .client_ca_file = ca,
                                                .events = {on_request, on_packet, on_ended},
                                                .arg = t},
                                         .http2 = true};
    file(cert, t->dir, "server.crt");
    file(key, t->dir, "server.key");
    file(ca, t->dir, "ca.crt");
    if (limits)
        cfg.h3.limits = *limits;
    masque_endpoint_free(t->d->ends);
    t->d->ends = NULL;
    if (masque_endpoint_new(&t->d->ends, &cfg, &err) != BASE_OK)
        conf_fail(__FILE__, __LINE__, "%s", err.msg);
}

void conf_open(struct conf *t, const struct conf_transport *tr, const char *dir,
               const struct masque_h3_limits *limits)
{
    memset(t, 0, sizeof *t);
    (void)signal(SIGPIPE, SIG_IGN);
    t->tr = tr;
    t->dir = dir;
    file(t->cert, dir, "client.crt");
    file(t->key, dir, "client.key");
    t->d = calloc(1, sizeof *t->d);
    if (!t->d || !(t->d->flows = agent_flows_new(64, 1)))
        abort();
    t->d->gap = BASE_TIME_NEVER / 2;
    conf_tun_reset();
    t->d->tuns[0] = (struct agent_tun){.id = 1, .t = conf_tun()};
    t->fences = fence_table_new(4);
    t->slot = fence_slot_take(t->fences, 1);
    if (!fence_set(t->slot, BASE_TIME_NEVER))
        abort();
    conf_limits(t, limits);
}

void conf_close(struct conf *t)
{
    for (unsigned i = 0; i < t->n_clients; i++)
        t->tr->free(t->clients[i].impl);
    masque_endpoint_free(t->d->ends);
    agent_flows_free(t->d->flows);
    free(t->d);
    fence_table_free(t->fences);
}

struct masque_h3_stats conf_stats(const struct conf *t)
{
    struct masque_h3_stats h3;
    struct masque_h2_stats h2;
    masque_endpoint_stats(t->d->ends, &h3, &h2);
    return h3;
}

uint64_t conf_drop_queue(const struct conf *t)
{
    struct masque_h3_stats h3;
    struct masque_h2_stats h2;
    masque_endpoint_stats(t->d->ends, &h3, &h2);
    return t->tr->id == CONF_H3 ? h3.drop_queue : h2.drop_queue;
}

/* ---- turns ---- */
void conf_turn(struct conf *t)
{
    struct pollfd p[CONF_CLIENTS + MASQUE_ENDPOINT_FDS];
    base_time now = conf_clock(), at = masque_endpoint_expiry(t->d->ends);
    nfds_t n = MASQUE_ENDPOINT_FDS;
    for (unsigned i = 0; i < MASQUE_ENDPOINT_FDS; i++)
        p[i] = (struct pollfd){masque_endpoint_fd(t->d->ends, i), POLLIN, 0};
    for (unsigned i = 0; i < t->n_clients; i++) {
        if (t->clients[i].mute)
            continue;
        p[n++] = (struct pollfd){t->tr->fd(t->clients[i].impl), POLLIN, 0};
        at = base_time_min(at, t->tr->expiry(t->clients[i].impl));
    }
    (void)poll(p, n, at <= now ? 0 : 1);
    now = conf_clock();
    t->d->beat = now;
    agent_data_tun_burst(t->d, 0, 64);
    for (unsigned i = 0; i < MASQUE_ENDPOINT_FDS; i++)
        masque_endpoint_read(t->d->ends, i, now);
    masque_endpoint_expire(t->d->ends, now);
    masque_endpoint_flush(t->d->ends, conf_clock(), conf_clock);
    for (unsigned i = 0; i < t->n_clients; i++)
        if (!t->clients[i].mute)
            t->tr->step(t->clients[i].impl, conf_clock());
}

void conf_settle(struct conf *t, unsigned ms)
{
    for (base_time until = loop_clock() + ms * BASE_MS; loop_clock() < until;)
        conf_turn(t);
}

/* ---- clients ---- */
struct conf_client *conf_client_with(struct conf *t, const struct conf_options *o)
{
    if (t->n_clients == CONF_CLIENTS)
        abort();
    struct conf_client *c = &t->clients[t->n_clients];
    *c = (struct conf_client){.t = t, .impl = t->tr->open(t, o)};
    t->n_clients++;
    return c;
}

struct conf_client *conf_client(struct conf *t)
{
    struct conf_client *c = conf_client_with(t, &(struct conf_options){0});
    WAIT(t, t->tr->ready(c->impl));
    return c;
}

struct testclient *conf_h3(struct conf_client *c)
{
    return c->impl;
}

size_t conf_request(struct conf_client *c, const char *path, const char *name, const char *value)
{
    const struct testclient_field f[] = {{":method", "CONNECT"},
                                         {":protocol", "connect-ip"},
                                         {":scheme", "https"},
                                         {":authority", "masque.test:4433"},
                                         {":path", path ? path : "/.well-known/masque/ip/*/*/"},
                                         {name, value}};
    return c->t->tr->request(c->impl, f, name ? 6 : 5, false);
}

struct conf_client *conf_tunnel_for(struct conf *t, const char *path)
{
    struct conf_client *c = conf_client(t);
    size_t s = conf_request(c, path, "capsule-protocol", "?1");
    struct conf_capsules k;
    WAIT(t, conf_status(c, s) == 200 && (conf_read_capsules(c, s, &k), k.assigns == 1 && k.routes == 1));
    return c;
}

struct conf_client *conf_tunnel(struct conf *t)
{
    return conf_tunnel_for(t, NULL);
}

void conf_write(struct conf_client *c, size_t stream, const void *p, size_t n)
{
    c->t->tr->write(c->impl, stream, p, n, false);
}

int conf_status(const struct conf_client *c, size_t stream)
{
    return c->t->tr->status(c->impl, stream);
}

bool conf_has_field(const struct conf_client *c, size_t stream, const char *line)
{
    const char *all = c->t->tr->fields(c->impl, stream), *at = strstr(all, line);
    return at && (at == all || at[-1] == '\n');
}

bool conf_body_says(const struct conf_client *c, size_t stream, const char *text)
{
    size_t n;
    const uint8_t *p = c->t->tr->body(c->impl, stream, &n);
    return n >= strlen(text) && memmem(p, n, text, strlen(text)) != NULL;
}

bool conf_ended(const struct conf_client *c, size_t stream)
{
    return c->t->tr->end(c->impl, stream, &(uint64_t){0}) == CONF_ENDED;
}

bool conf_reset_with(const struct conf_client *c, size_t stream, enum conf_code code)
{
    uint64_t v = 0;
    return c->t->tr->end(c->impl, stream, &v) == CONF_RESET && c->t->tr->code(v) == code;
}

bool conf_closed(const struct conf_client *c)
{
    return c->t->tr->closed(c->impl, &(uint64_t){0});
}

void conf_read_capsules(const struct conf_client *c, size_t stream, struct conf_capsules *ret)
{
    static struct masque_capsule_parser p;
    struct masque_capsule cap;
    struct base_err err = {0};
    size_t left;
    const uint8_t *at = c->t->tr->body(c->impl, stream, &left);
    int rv;
    memset(&p, 0, sizeof p);
    memset(ret, 0, sizeof *ret);
    while ((rv = masque_capsule_feed(&p, &at, &left, &cap, &err)) == 1) {
        ret->n++;
        switch (cap.type) {
        case MASQUE_CAPSULE_ADDRESS_ASSIGN:
            ret->assigns++;
            CHECK(masque_address_decode(cap.value, cap.len, false, ret->addr, 64, &ret->n_addr, &err) ==
                      BASE_OK,
                  "%s", err.msg);
            break;
        case MASQUE_CAPSULE_ROUTE_ADVERTISEMENT:
            ret->routes++;
            CHECK(masque_route_decode(cap.value, cap.len, ret->route, 64, &ret->n_route, &err) == BASE_OK,
                  "%s", err.msg);
            break;
        default:
            ret->datagrams += cap.type == MASQUE_CAPSULE_DATAGRAM;
        }
    }
    CHECK(rv == 0, "%s", err.msg);
}

void conf_alive(struct conf_client *c, size_t stream)
{
    size_t up = conf_vpc_n(), down = conf_got_n(c);
    struct conf_pkt a = conf_udp(conf_addr(1), CONF_HOST, 100, 1),
                    b = conf_udp(CONF_HOST, conf_addr(1), 100, 2);
    c->t->tr->packet(c->impl, stream, 0, a.b, a.n);
    WAIT(c->t, conf_vpc_n() > up);
    conf_down(c->t, &b);
    WAIT(c->t, conf_got_n(c) > down);
}
