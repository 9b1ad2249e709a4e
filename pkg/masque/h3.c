/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/h3.h"

#include <stdio.h>
#include <unistd.h>

#include "loop/loop.h"
#include "masque/h3_int.h"

static void set_limits(struct masque_h3_limits *l)
{
    static const struct masque_h3_limits d = {
        .connections = 4096,
        .per_source = 64,
        .handshakes = 256,
        .queue_packets = 512,
        .queue_bytes = 512 * 1024,
        .queue_age = 50 * BASE_MS,
        .stall = 500 * BASE_MS,
        .idle = 60 * BASE_SEC,
        .handshake = 10 * BASE_SEC,
        .answer = 60 * BASE_SEC,
        .header_bytes = 8192,
        .rate = 1000,
        .resets = 100,
        .headers = 10 * BASE_SEC,
        .capsule = 30 * BASE_SEC,
    };
    l->connections = l->connections ? l->connections : d.connections;
    l->per_source = l->per_source ? l->per_source : d.per_source;
    l->handshakes = l->handshakes ? l->handshakes : d.handshakes;
    l->queue_packets = l->queue_packets ? l->queue_packets : d.queue_packets;
    l->queue_bytes = l->queue_bytes ? l->queue_bytes : d.queue_bytes;
    l->queue_age = l->queue_age > 0 ? l->queue_age : d.queue_age;
    l->stall = l->stall > 0 ? l->stall : d.stall;
    l->idle = l->idle > 0 ? l->idle : d.idle;
    l->handshake = l->handshake > 0 ? l->handshake : d.handshake;
    l->answer = l->answer > 0 ? l->answer : d.answer;
    l->header_bytes = l->header_bytes ? l->header_bytes : d.header_bytes;
    l->rate = l->rate ? l->rate : d.rate;
    l->resets = l->resets ? l->resets : d.resets;
    l->headers = l->headers > 0 ? l->headers : d.headers;
    l->capsule = l->capsule > 0 ? l->capsule : d.capsule;
}

/* Bytes of a small file, for hashing only. */
static size_t slurp(const char *file, uint8_t *dst, size_t size)
{
    FILE *f = fopen(file, "re");
    size_t n = f ? fread(dst, 1, size, f) : 0;
    if (f)
        (void)fclose(f);
    return n;
}

/* The secret behind stateless reset tokens: the same for every process with this key on this boot of this
 * host, so that a restarted agent can tell clients at once that their connections are gone; different on
 * every other host, so that no other host can be made to end a connection that is not its own (RFC 9000
 * section 21.11). */
static int make_secret(struct masque_h3 *h)
{
    struct {
        struct base_uuid boot;
        uint8_t key[16384];
    } in = {0};
    static const char label[] = "holdfast stateless reset 1";
    size_t n = slurp(h->key_file, in.key, sizeof in.key);
    if (n == 0 || loop_boot_id(&in.boot, NULL) != BASE_OK) {
        loop_random(h->secret, sizeof h->secret);
        return BASE_OK;
    }
    int rv = base_sha256(h->secret, label, sizeof label, &in, sizeof in.boot + n);
    explicit_bzero(&in, sizeof in);
    return rv;
}

static int load_tls(const struct masque_h3 *h, struct masque_qtls_ctx **ret, struct base_err *err)
{
    struct masque_qtls_config cfg = {h->cert_file, h->key_file, h->client_ca_file, h->bearer};
    return masque_qtls_ctx_new(ret, &cfg, err);
}

static int check_config(const struct masque_h3_config *cfg, struct base_err *err)
{
    if (!cfg->cert_file || !cfg->key_file || !cfg->client_ca_file)
        return base_err_set(
            err, BASE_EINVAL,
            "tls: certificate, key and client CA file are all needed (there is no mode without client "
            "certificates)");
    if (cfg->threads.count > 1 &&
        (!cfg->stray || !cfg->threads.shared || cfg->threads.count > MASQUE_THREADS_MAX ||
         cfg->threads.index >= cfg->threads.count))
        return base_err_set(err, BASE_EINVAL, "masque_h3_new: thread %u of %u (at most %d)",
                            cfg->threads.index, cfg->threads.count, MASQUE_THREADS_MAX);
    if (!cfg->events.request || !cfg->events.packet || !cfg->events.ended)
        return base_err_set(err, BASE_EINVAL, "masque_h3_new: an event function is missing");
    return BASE_OK;
}

int masque_h3_new(struct masque_h3 **ret, const struct masque_h3_config *cfg, struct base_err *err)
{
    int rv = check_config(cfg, err);
    if (rv != BASE_OK)
        return rv;
    uint64_t seed;
    struct masque_h3 *h = base_calloc(1, sizeof *h);
    if (!h)
        return base_err_set(err, BASE_ENOMEM, "HTTP/3 endpoint: no memory");
    h->limits = cfg->limits;
    set_limits(&h->limits);
    h->events = cfg->events;
    h->stray = cfg->stray;
    h->arg = cfg->arg;
    h->threads = cfg->threads;
    h->all = cfg->threads.shared ? &cfg->threads.shared->h3 : &h->alone;
    h->last_flow = (uint64_t)h->threads.index << MASQUE_FLOW_THREAD_SHIFT;
    h->log = cfg->log;
    h->dirty_tail = &h->dirty;
    h->ended_tail = &h->ended;
    loop_random(&h->index.seed, sizeof h->index.seed);
    h->cert_file = base_strdup(cfg->cert_file);
    h->key_file = base_strdup(cfg->key_file);
    h->client_ca_file = base_strdup(cfg->client_ca_file);
    h->bearer = cfg->bearer;
    h->no_rfc = cfg->no_rfc;
    h->cloudflare = cfg->cloudflare;
    loop_random(&seed, sizeof seed);
    if (!h->cert_file || !h->key_file || !h->client_ca_file ||
        (h->all == &h->alone && masque_count_init(&h->alone, h->limits.connections, seed) != BASE_OK)) {
        rv = base_err_set(err, BASE_ENOMEM, "HTTP/3 endpoint: no memory for %u connections",
                          (unsigned)h->limits.connections);
        goto fail;
    }
    rv = masque_qtls_init(err);
    if (rv == BASE_OK)
        rv = load_tls(h, &h->tls, err);
    if (rv == BASE_OK)
        rv = make_secret(h);
    if (rv == BASE_OK)
        rv = masque_udp_open(&h->udp, cfg->listen, &h->threads, !cfg->no_offload, err);
    if (rv != BASE_OK)
        goto fail;
    *ret = h;
    return BASE_OK;
fail:
    masque_h3_free(h);
    return rv;
}

struct masque_h3 *masque_h3_free(struct masque_h3 *h)
{
    if (!h)
        return NULL;
    for (struct masque_conn *c = h->conns; c; c = c->next)
        masque_conn_close(c, NGHTTP3_H3_NO_ERROR, MASQUE_END_LOCAL, "the endpoint is being freed");
    masque_conn_reap(h);
    while (h->ended) {
        struct masque_flow *f = h->ended;
        h->ended = f->next;
        base_free(f);
    }
    masque_pool_fini(&h->pool);
    masque_heap_fini(&h->heap);
    masque_count_fini(&h->alone);
    masque_udp_close(h->udp);
    masque_qtls_ctx_unref(h->tls);
    explicit_bzero(h->secret, sizeof h->secret);
    base_free(h->cert_file);
    base_free(h->key_file);
    base_free(h->client_ca_file);
    return base_free(h);
}

int masque_h3_fd(const struct masque_h3 *h)
{
    return masque_udp_fd(h->udp);
}

uint16_t masque_h3_port(const struct masque_h3 *h)
{
    return masque_udp_port(h->udp);
}

int masque_h3_reload(struct masque_h3 *h, struct base_err *err)
{
    struct masque_qtls_ctx *fresh = NULL;
    int rv = load_tls(h, &fresh, err);
    if (rv != BASE_OK)
        return rv;
    masque_qtls_ctx_unref(h->tls); /* connections that use it hold references of their own */
    h->tls = fresh;
    return BASE_OK;
}

void masque_h3_set_limits(struct masque_h3 *h, const struct masque_h3_limits *limits)
{
    h->limits.connections = limits->connections;
    h->limits.per_source = limits->per_source;
    h->limits.handshakes = limits->handshakes;
    h->limits.queue_packets = limits->queue_packets;
    h->limits.queue_bytes = limits->queue_bytes;
}

/* ---- the thread's turn ---- */

static void tidy(struct masque_h3 *h)
{
    masque_conn_reap(h);
    masque_flow_report(h);
}

static void on_udp(void *arg, const struct masque_udp_in *in)
{
    struct masque_h3 *h = arg;
    unsigned thread = masque_thread_of(in->data, in->len, h->threads.count);
    if (thread != h->threads.index) {
        h->stats.strays++;
        h->stray(h->arg, thread, in);
        return;
    }
    masque_accept_input(h, in);
}

void masque_h3_read(struct masque_h3 *h, base_time now, unsigned max_datagrams)
{
    h->now = base_time_max(h->now, now);
    masque_udp_read(h->udp, max_datagrams, on_udp, h);
    tidy(h);
}

void masque_h3_take(struct masque_h3 *h, base_time now, const struct masque_udp_in *in)
{
    h->now = base_time_max(h->now, now);
    masque_accept_input(h, in);
    tidy(h);
}

base_time masque_h3_expiry(const struct masque_h3 *h)
{
    if (h->dirty || h->ended)
        return h->now;
    return h->heap.n > 0 ? h->heap.v[0]->at : BASE_TIME_NEVER;
}

void masque_h3_expire(struct masque_h3 *h, base_time now)
{
    h->now = base_time_max(h->now, now);
    while (h->heap.n > 0 && h->heap.v[0]->at <= h->now) {
        struct masque_conn *c = h->heap.v[0]->owner;
        masque_heap_set(&h->heap, &c->wake, BASE_TIME_NEVER); /* set again by the flush that follows */
        masque_conn_expire(c);
    }
    tidy(h);
}

void masque_h3_flush(struct masque_h3 *h, base_time now, base_time (*clock)(void))
{
    h->now = base_time_max(h->now, now);
    h->flush_began = now;
    struct masque_conn *c = h->dirty;
    h->dirty = NULL;
    h->dirty_tail = &h->dirty;
    while (c) {
        struct masque_conn *next = c->dirty_next;
        c->dirty = false;
        masque_write_conn(c, clock);
        c = next;
    }
    tidy(h);
}

void masque_h3_discard(struct masque_h3 *h)
{
    for (struct masque_conn *c = h->conns; c; c = c->next) {
        if (c->flow)
            masque_flow_drop_queue(c->flow, &h->stats.drop_queue);
        masque_flow_drop_early(c);
    }
}

void masque_h3_drain(struct masque_h3 *h)
{
    h->draining = true;
    for (struct masque_conn *c = h->conns; c; c = c->next) {
        masque_conn_goaway(c);
        if (!c->flow && c->handshaken)
            c->close_at = h->now + BASE_SEC;
        masque_conn_dirty(c);
    }
}

void masque_h3_stats(const struct masque_h3 *h, struct masque_h3_stats *ret)
{
    *ret = h->stats;
    ret->open_connections = h->n_conns;
    ret->open_flows = h->n_flows;
    ret->gso = masque_udp_gso(h->udp);
}
