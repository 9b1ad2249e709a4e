/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/h2.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/loop.h"
#include "masque/h2_int.h"

enum { EVENTS = 64, BACKLOG = 512, RESERVED_FDS = 128, THREAD_FDS = 16 };

static uint32_t or32(uint32_t v, uint32_t preset)
{
    return v ? v : preset;
}

static base_time or_time(base_time v, base_time preset)
{
    return v > 0 ? v : preset;
}

static void set_limits(struct masque_h2_limits *l)
{
    l->connections = or32(l->connections, 4096);
    l->per_source = or32(l->per_source, 64);
    l->handshakes = or32(l->handshakes, 256);
    l->queue_packets = or32(l->queue_packets, 512);
    l->queue_bytes = or32(l->queue_bytes, 512 * 1024);
    l->queue_age = or_time(l->queue_age, 50 * BASE_MS);
    l->stall = or_time(l->stall, 500 * BASE_MS);
    l->idle = or_time(l->idle, 60 * BASE_SEC);
    l->handshake = or_time(l->handshake, 10 * BASE_SEC);
    l->preface = or_time(l->preface, 5 * BASE_SEC);
    l->headers = or_time(l->headers, 10 * BASE_SEC);
    l->answer = or_time(l->answer, 60 * BASE_SEC);
    l->ping = or_time(l->ping, 15 * BASE_SEC);
    l->dead = or_time(l->dead, 45 * BASE_SEC);
    l->blocked = or_time(l->blocked, 30 * BASE_SEC);
    l->capsule = or_time(l->capsule, 30 * BASE_SEC);
    l->header_bytes = or32(l->header_bytes, 8192);
    l->window = or32(l->window, 1 << 20);
    l->connection_window = or32(l->connection_window, 4 << 20);
    l->unsent = or32(l->unsent, 16 * 1024);
    l->resets = or32(l->resets, 100);
    l->control = or32(l->control, 1000);
    l->small = or32(l->small, 4096);
}

/* Connections must not use up the descriptors that the rest of the process needs. */
static void fit_descriptors(struct masque_h2 *h)
{
    struct rlimit rl;
    if (getrlimit(RLIMIT_NOFILE, &rl) != 0 || rl.rlim_cur == RLIM_INFINITY)
        return;
    rlim_t kept = RESERVED_FDS + (h->threads.count > 1 ? h->threads.count * THREAD_FDS : 0);
    rlim_t most = rl.rlim_cur > 2 * kept ? rl.rlim_cur - kept : rl.rlim_cur / 2;
    if (h->limits.connections <= most)
        return;
    loop_log(
        h->log, LOOP_WARN, "masque_descriptors",
        "fewer HTTP/2 connections than configured are taken: this process may not have as many open files",
        LOG_INT("connections", (int64_t)most), LOG_INT("configured", h->limits.connections),
        LOG_STR("remedy", "raise the limit of open files (ulimit -n, LimitNOFILE)"));
    h->limits.connections = (uint32_t)most;
}

static int load_tls(const struct masque_h2 *h, struct masque_h2_tls **ret, struct base_err *err)
{
    struct masque_h2_tls_config cfg = {h->cert_file, h->key_file, h->client_ca_file, h->bearer};
    return masque_h2_tls_new(ret, &cfg, err);
}

static int open_listener(struct masque_h2 *h, const char *listen_text, struct base_err *err)
{
    struct sockaddr_in6 addr;
    socklen_t len = sizeof addr;
    int one = 1, zero = 0;
    int rv = masque_listen_parse(&addr, listen_text, err);
    if (rv != BASE_OK)
        return rv;
    h->listener = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    h->poll = epoll_create1(EPOLL_CLOEXEC);
    if (h->listener < 0 || h->poll < 0)
        return base_err_sys(err, BASE_EIO, errno, "TCP socket");
    (void)setsockopt(h->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    /* Another process has no way in: it would need the UDP port first (see masque_udp_open). */
    if (h->threads.count > 1 && setsockopt(h->listener, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0)
        return base_err_sys(err, BASE_EIO, errno, "TCP listeners of several data threads");
    if (setsockopt(h->listener, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero) != 0)
        return base_err_sys(err, BASE_EIO, errno, "TCP socket options");
    if (bind(h->listener, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(h->listener, BACKLOG) != 0) {
        int e = errno;
        return base_err_sys(err, BASE_EIO, e, "listen \"%s\" (TCP)%s", listen_text, masque_listen_remedy(e));
    }
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
    if (getsockname(h->listener, (struct sockaddr *)&addr, &len) != 0 ||
        epoll_ctl(h->poll, EPOLL_CTL_ADD, h->listener, &ev) != 0)
        return base_err_sys(err, BASE_EIO, errno, "listen \"%s\" (TCP)", listen_text);
    h->listening = true;
    h->port = ntohs(addr.sin6_port);
    return BASE_OK;
}

static int check_config(const struct masque_h2_config *cfg, struct base_err *err)
{
    if (!cfg->cert_file || !cfg->key_file || !cfg->client_ca_file)
        return base_err_set(
            err, BASE_EINVAL,
            "tls: certificate, key and client CA file are all needed (there is no mode without client "
            "certificates)");
    if (!cfg->events.request || !cfg->events.packet || !cfg->events.ended)
        return base_err_set(err, BASE_EINVAL, "masque_h2_new: an event function is missing");
    return BASE_OK;
}

int masque_h2_new(struct masque_h2 **ret, const struct masque_h2_config *cfg, struct base_err *err)
{
    int rv = check_config(cfg, err);
    if (rv != BASE_OK)
        return rv;
    uint64_t seed;
    struct masque_h2 *h = base_calloc(1, sizeof *h);
    if (!h)
        return base_err_set(err, BASE_ENOMEM, "HTTP/2 endpoint: no memory");
    h->listener = h->poll = -1;
    h->limits = cfg->limits;
    set_limits(&h->limits);
    h->events = cfg->events;
    h->arg = cfg->arg;
    h->log = cfg->log;
    h->threads = cfg->threads;
    fit_descriptors(h);
    h->bearer = cfg->bearer;
    h->no_rfc = cfg->no_rfc;
    h->cloudflare = cfg->cloudflare;
    h->all = cfg->threads.shared ? &cfg->threads.shared->h2 : &h->alone;
    h->last_flow = MASQUE_FLOW_H2 | (uint64_t)h->threads.index << MASQUE_FLOW_THREAD_SHIFT;
    h->dirty_tail = &h->dirty;
    h->ended_tail = &h->ended;
    h->cert_file = base_strdup(cfg->cert_file);
    h->key_file = base_strdup(cfg->key_file);
    h->client_ca_file = base_strdup(cfg->client_ca_file);
    loop_random(&seed, sizeof seed);
    rv = h->cert_file && h->key_file && h->client_ca_file &&
                 (h->all != &h->alone || masque_count_init(&h->alone, h->limits.connections, seed) == BASE_OK)
             ? masque_h2_http_setup(h, err)
             : base_err_set(err, BASE_ENOMEM, "HTTP/2 endpoint: no memory for %u connections",
                            (unsigned)h->limits.connections);
    if (rv == BASE_OK)
        rv = load_tls(h, &h->tls, err);
    if (rv == BASE_OK)
        rv = open_listener(h, cfg->listen, err);
    if (rv != BASE_OK) {
        masque_h2_free(h);
        return rv;
    }
    *ret = h;
    return BASE_OK;
}

struct masque_h2 *masque_h2_free(struct masque_h2 *h)
{
    if (!h)
        return NULL;
    for (struct masque_h2_conn *c = h->conns; c; c = c->next)
        masque_h2_conn_abort(c, MASQUE_END_LOCAL, "the endpoint is being freed");
    masque_h2_conn_reap(h);
    while (h->ended) {
        struct masque_h2_flow *f = h->ended;
        h->ended = f->next;
        base_free(f);
    }
    masque_pool_fini(&h->pool);
    masque_heap_fini(&h->heap);
    masque_count_fini(&h->alone);
    if (h->listener >= 0)
        (void)close(h->listener);
    if (h->poll >= 0)
        (void)close(h->poll);
    masque_h2_tls_unref(h->tls);
    nghttp2_session_callbacks_del(h->callbacks);
    nghttp2_option_del(h->option);
    base_free(h->cert_file);
    base_free(h->key_file);
    base_free(h->client_ca_file);
    return base_free(h);
}

int masque_h2_fd(const struct masque_h2 *h)
{
    return h->poll;
}

uint16_t masque_h2_port(const struct masque_h2 *h)
{
    return h->port;
}

int masque_h2_reload_prepare(struct masque_h2 *h, struct masque_h2_tls **ret, struct base_err *err)
{
    return load_tls(h, ret, err);
}

void masque_h2_reload_commit(struct masque_h2 *h, struct masque_h2_tls *fresh, bool use)
{
    if (!use) {
        masque_h2_tls_unref(fresh);
        return;
    }
    masque_h2_tls_unref(h->tls); /* connections that use it hold references of their own */
    h->tls = fresh;
}

void masque_h2_set_limits(struct masque_h2 *h, const struct masque_h2_limits *limits)
{
    h->limits.connections = limits->connections;
    h->limits.per_source = limits->per_source;
    h->limits.handshakes = limits->handshakes;
    h->limits.queue_packets = limits->queue_packets;
    h->limits.queue_bytes = limits->queue_bytes;
    fit_descriptors(h);
}

/* ---- the thread's turn ---- */

static void tidy(struct masque_h2 *h)
{
    masque_h2_conn_reap(h);
    masque_h2_flow_report(h);
}

/* Connections whose TLS has read ahead more than their turn. */
static void read_more(struct masque_h2 *h, unsigned max)
{
    if (!h->more)
        return;
    h->more = false;
    for (struct masque_h2_conn *c = h->conns; c; c = c->next)
        if (c->more)
            masque_h2_conn_input(c, max);
}

void masque_h2_read(struct masque_h2 *h, base_time now, unsigned max)
{
    struct epoll_event ev[EVENTS];
    int n;
    h->now = base_time_max(h->now, now);
    read_more(h, max);
    for (unsigned rounds = 0; rounds < 16; rounds++) {
        n = epoll_wait(h->poll, ev, EVENTS, 0);
        for (int i = 0; i < n; i++) {
            struct masque_h2_conn *c = ev[i].data.ptr;
            if (!c) {
                masque_h2_conn_accept(h);
                continue;
            }
            if (c->dead)
                continue;
            if (ev[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))
                masque_h2_conn_input(c, max);
            if (!c->dead && (ev[i].events & EPOLLOUT))
                masque_h2_conn_dirty(c);
        }
        if (n < EVENTS)
            break;
    }
    tidy(h);
}

base_time masque_h2_expiry(const struct masque_h2 *h)
{
    if (h->dirty || h->ended || h->more)
        return h->now;
    base_time t = h->heap.n > 0 ? h->heap.v[0]->at : BASE_TIME_NEVER;
    return h->listen_again ? base_time_min(t, h->listen_again) : t;
}

void masque_h2_expire(struct masque_h2 *h, base_time now)
{
    h->now = base_time_max(h->now, now);
    if (h->listen_again && h->listen_again <= h->now) {
        h->listen_again = 0;
        if (!h->draining)
            masque_h2_conn_accept(h);
    }
    read_more(h, 16);
    while (h->heap.n > 0 && h->heap.v[0]->at <= h->now) {
        struct masque_h2_conn *c = h->heap.v[0]->owner;
        masque_heap_set(&h->heap, &c->wake, BASE_TIME_NEVER); /* set again by the flush that follows */
        masque_h2_conn_expire(c);
    }
    tidy(h);
}

void masque_h2_flush(struct masque_h2 *h, base_time now, base_time (*clock)(void))
{
    h->now = base_time_max(h->now, now);
    h->flush_began = now;
    struct masque_h2_conn *c = h->dirty;
    h->dirty = NULL;
    h->dirty_tail = &h->dirty;
    while (c) {
        struct masque_h2_conn *next = c->dirty_next;
        c->dirty = false;
        masque_h2_write(c, clock);
        c = next;
    }
    tidy(h);
}

void masque_h2_discard(struct masque_h2 *h)
{
    for (struct masque_h2_conn *c = h->conns; c; c = c->next) {
        struct masque_h2_flow *f = c->flow;
        if (c->dead || !f)
            continue;
        masque_queue_drop(&f->queue, &h->pool, &h->stats.drop_queue);
        if (f->cur_len > 0 || c->wire_inner) {
            h->stats.resets_fence++;
            masque_h2_conn_abort(c, MASQUE_END_LOCAL, "the data thread was stopped while it wrote packets");
        }
    }
}

void masque_h2_drain(struct masque_h2 *h)
{
    h->draining = true;
    if (h->listener >= 0) {
        (void)close(h->listener); /* clients go to another node at once */
        h->listener = -1;
        h->listening = false;
    }
    for (struct masque_h2_conn *c = h->conns; c; c = c->next) {
        if (c->dead)
            continue;
        masque_h2_http_goaway(c);
        if (!c->flow && !c->close_at)
            c->close_at = h->now + MASQUE_H2_FAREWELL;
        masque_h2_conn_dirty(c);
    }
}

void masque_h2_stats(const struct masque_h2 *h, struct masque_h2_stats *ret)
{
    *ret = h->stats;
    ret->open_connections = h->n_conns;
    ret->open_flows = h->n_flows;
}
