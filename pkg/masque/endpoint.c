/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/endpoint.h"

#include "base/mem.h"
#include "masque/listen.h"

enum {
    UDP_BURST = 512,    /* datagrams at a time */
    UDP_ALL = 1 << 16,  /* more than any socket buffer holds */
    TCP_READS = 16,     /* of 16 KiB, per connection */
    TCP_ALL = 1 << 12,  /* likewise more than a socket holds */
    CANCELLED = 0x10c,  /* H3_REQUEST_CANCELLED */
    PORT_ATTEMPTS = 16, /* to find a port that is free in both protocols */
};

struct masque_endpoint {
    struct masque_h3 *h3;
    struct masque_h2 *h2; /* NULL = off */
};

static bool over_tcp(const struct masque_endpoint *e, uint64_t flow)
{
    return (flow & MASQUE_FLOW_H2) && e->h2;
}

/* The same address with the port that HTTP/3 has. */
static int tcp_address(char *dst, size_t size, const char *listen, uint16_t port, struct base_err *err)
{
    const char *colon = strrchr(listen, ':');
    return base_fmt(dst, size, "%.*s:%u", (int)(colon - listen), listen, port)
               ? BASE_OK
               : base_err_set(err, BASE_EINVAL, "listen \"%s\": too long", listen);
}

static int open_h2(struct masque_endpoint *e, const struct masque_endpoint_config *cfg, struct base_err *err)
{
    const struct masque_h3_limits *l = &cfg->h3.limits;
    char listen[160];
    struct masque_h2_config c = {.listen = listen,
                                 .cert_file = cfg->h3.cert_file,
                                 .key_file = cfg->h3.key_file,
                                 .client_ca_file = cfg->h3.client_ca_file,
                                 .bearer = cfg->h3.bearer,
                                 .no_rfc = cfg->h3.no_rfc,
                                 .cloudflare = cfg->h3.cloudflare,
                                 .limits = cfg->h2,
                                 .events = cfg->h3.events,
                                 .arg = cfg->h3.arg,
                                 .threads = cfg->h3.threads,
                                 .log = cfg->h3.log};
    c.limits.connections = l->connections;
    c.limits.per_source = l->per_source;
    c.limits.handshakes = l->handshakes;
    c.limits.queue_packets = l->queue_packets;
    c.limits.queue_bytes = l->queue_bytes;
    c.limits.queue_age = l->queue_age;
    c.limits.stall = l->stall;
    c.limits.idle = l->idle;
    c.limits.handshake = l->handshake;
    c.limits.answer = l->answer;
    c.limits.header_bytes = l->header_bytes;
    int rv = tcp_address(listen, sizeof listen, cfg->h3.listen, masque_h3_port(e->h3), err);
    return rv == BASE_OK ? masque_h2_new(&e->h2, &c, err) : rv;
}

int masque_endpoint_new(struct masque_endpoint **ret, const struct masque_endpoint_config *cfg,
                        struct base_err *err)
{
    struct sockaddr_in6 addr;
    struct masque_endpoint *e = base_calloc(1, sizeof *e);
    if (!e)
        return base_err_set(err, BASE_ENOMEM, "endpoint: no memory");
    int rv = masque_listen_parse(&addr, cfg->h3.listen, err);
    /* Another process may have the TCP port that belongs to the UDP port which the kernel chose. */
    unsigned attempts =
        rv == BASE_OK && addr.sin6_port == 0 && cfg->h3.threads.index == 0 ? PORT_ATTEMPTS : 1;
    for (unsigned i = 0; rv == BASE_OK && i < attempts; i++) {
        rv = masque_h3_new(&e->h3, &cfg->h3, err);
        if (rv != BASE_OK || !cfg->http2)
            break;
        rv = open_h2(e, cfg, err);
        if (rv == BASE_OK || rv != BASE_EIO || i + 1 == attempts)
            break;
        e->h3 = masque_h3_free(e->h3);
        rv = BASE_OK;
    }
    if (rv != BASE_OK) {
        masque_endpoint_free(e);
        return rv;
    }
    *ret = e;
    return BASE_OK;
}

struct masque_endpoint *masque_endpoint_free(struct masque_endpoint *e)
{
    if (!e)
        return NULL;
    masque_h2_free(e->h2);
    masque_h3_free(e->h3);
    return base_free(e);
}

int masque_endpoint_fd(const struct masque_endpoint *e, unsigned i)
{
    if (i == 0)
        return masque_h3_fd(e->h3);
    return e->h2 ? masque_h2_fd(e->h2) : -1;
}

uint16_t masque_endpoint_port(const struct masque_endpoint *e)
{
    return masque_h3_port(e->h3);
}

int masque_endpoint_reload(struct masque_endpoint *e, struct base_err *err)
{
    struct masque_h2_tls *fresh = NULL;
    int rv = e->h2 ? masque_h2_reload_prepare(e->h2, &fresh, err) : BASE_OK;
    if (rv != BASE_OK)
        return rv;
    rv = masque_h3_reload(e->h3, err);
    if (e->h2)
        masque_h2_reload_commit(e->h2, fresh, rv == BASE_OK);
    return rv;
}

void masque_endpoint_set_limits(struct masque_endpoint *e, const struct masque_h3_limits *limits)
{
    masque_h3_set_limits(e->h3, limits);
    if (e->h2)
        masque_h2_set_limits(e->h2, &(struct masque_h2_limits){.connections = limits->connections,
                                                               .per_source = limits->per_source,
                                                               .handshakes = limits->handshakes,
                                                               .queue_packets = limits->queue_packets,
                                                               .queue_bytes = limits->queue_bytes});
}

/* ---- the thread's turn ---- */

void masque_endpoint_read(struct masque_endpoint *e, unsigned i, base_time now)
{
    if (i == 0)
        masque_h3_read(e->h3, now, UDP_BURST);
    else if (e->h2)
        masque_h2_read(e->h2, now, TCP_READS);
}

void masque_endpoint_take(struct masque_endpoint *e, base_time now, const struct masque_udp_in *in)
{
    masque_h3_take(e->h3, now, in);
}

void masque_endpoint_read_all(struct masque_endpoint *e, base_time now)
{
    masque_h3_read(e->h3, now, UDP_ALL);
    if (e->h2)
        masque_h2_read(e->h2, now, TCP_ALL);
}

base_time masque_endpoint_expiry(const struct masque_endpoint *e)
{
    base_time t = masque_h3_expiry(e->h3);
    return e->h2 ? base_time_min(t, masque_h2_expiry(e->h2)) : t;
}

void masque_endpoint_expire(struct masque_endpoint *e, base_time now)
{
    if (masque_h3_expiry(e->h3) <= now)
        masque_h3_expire(e->h3, now);
    if (e->h2 && masque_h2_expiry(e->h2) <= now)
        masque_h2_expire(e->h2, now);
}

void masque_endpoint_flush(struct masque_endpoint *e, base_time now, base_time (*clock)(void))
{
    masque_h3_flush(e->h3, now, clock);
    if (e->h2)
        masque_h2_flush(e->h2, now, clock);
}

/* ---- flows ---- */

int masque_endpoint_accept(struct masque_endpoint *e, uint64_t flow, const struct base_prefix *prefix,
                           const struct base_prefix *routes, size_t n_routes, const struct fence_slot *slot)
{
    return over_tcp(e, flow) ? masque_h2_accept(e->h2, flow, prefix, routes, n_routes, slot)
                             : masque_h3_accept(e->h3, flow, prefix, routes, n_routes, slot);
}

int masque_endpoint_refuse(struct masque_endpoint *e, uint64_t flow, int status, const char *reason,
                           unsigned retry_after)
{
    return over_tcp(e, flow) ? masque_h2_refuse(e->h2, flow, status, reason, retry_after)
                             : masque_h3_refuse(e->h3, flow, status, reason, retry_after);
}

int masque_endpoint_send(struct masque_endpoint *e, uint64_t flow, const struct fence_pass *pass,
                         const uint8_t *pkt, size_t len)
{
    return over_tcp(e, flow) ? masque_h2_send(e->h2, flow, pass, pkt, len)
                             : masque_h3_send(e->h3, flow, pass, pkt, len);
}

size_t masque_endpoint_mtu(const struct masque_endpoint *e, uint64_t flow)
{
    return over_tcp(e, flow) ? masque_h2_mtu(e->h2, flow) : masque_h3_mtu(e->h3, flow);
}

void masque_endpoint_hold(struct masque_endpoint *e, uint64_t flow, base_time until)
{
    if (!over_tcp(e, flow))
        masque_h3_hold(e->h3, flow, until);
}

void masque_endpoint_stop(struct masque_endpoint *e, uint64_t flow)
{
    if (over_tcp(e, flow))
        masque_h2_stop(e->h2, flow);
    else
        masque_h3_stop(e->h3, flow);
}

void masque_endpoint_close(struct masque_endpoint *e, uint64_t flow)
{
    if (over_tcp(e, flow))
        masque_h2_close(e->h2, flow);
    else
        masque_h3_close(e->h3, flow, CANCELLED);
}

void masque_endpoint_discard(struct masque_endpoint *e)
{
    masque_h3_discard(e->h3);
    if (e->h2)
        masque_h2_discard(e->h2);
}

void masque_endpoint_drain(struct masque_endpoint *e)
{
    masque_h3_drain(e->h3);
    if (e->h2)
        masque_h2_drain(e->h2);
}

void masque_endpoint_stats(const struct masque_endpoint *e, struct masque_h3_stats *h3,
                           struct masque_h2_stats *h2)
{
    masque_h3_stats(e->h3, h3);
    *h2 = (struct masque_h2_stats){0};
    if (e->h2)
        masque_h2_stats(e->h2, h2);
}
