/* SPDX-License-Identifier: Apache-2.0
 *
 * One TCP connection: accept, TLS, what comes in, deadlines, the end.
 *
 *   accept ──TLS──▶ HTTP/2 ──client's SETTINGS──▶ requests ──GOAWAY──▶ farewell ──▶ closed
 *      └────────────┴── abort (RST) from anywhere: fence, flood, time-out ──────────▶ closed
 *
 * The descriptor is closed where the end is decided; the memory goes at the end of the public call.
 */
#include "masque/h2_int.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fence/fence.h"

#include <openssl/err.h>

enum { ACCEPTS_PER_TURN = 64 };
#define ACCEPT_PAUSE (100 * BASE_MS) /* after running out of descriptors */

bool masque_h2_take(struct masque_h2_bucket *b, base_time now, double n, double max, double rate)
{
    b->left += (double)(now - b->at) / (double)BASE_SEC * rate;
    if (b->left > max)
        b->left = max;
    b->at = now;
    b->left -= n;
    return b->left >= 0;
}

void masque_h2_conn_dirty(struct masque_h2_conn *c)
{
    if (c->dirty || c->dead)
        return;
    c->dirty = true;
    c->dirty_next = NULL;
    *c->h->dirty_tail = c;
    c->h->dirty_tail = &c->dirty_next;
}

/* ---- the end ---- */

static void die(struct masque_h2_conn *c, bool reset)
{
    struct masque_h2 *h = c->h;
    if (c->dead)
        return;
    if (reset) { /* what the kernel still holds is thrown away, not sent */
        struct linger l = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    }
    (void)close(c->fd);
    c->fd = -1;
    c->dead = true;
    masque_heap_remove(&h->heap, &c->wake);
    c->dying_next = h->dying;
    h->dying = c;
}

void masque_h2_conn_abort(struct masque_h2_conn *c, enum masque_end why, const char *detail)
{
    if (c->dead)
        return;
    if (c->shaken && why != MASQUE_END_CLIENT)
        loop_log(c->h->log, LOOP_INFO, "masque_connection_reset", detail, LOG_STR("peer", c->peer));
    die(c, true); /* first: ending the flow looks at what the socket holds */
    masque_h2_flow_end(c->flow, why, "%s", detail);
}

void masque_h2_conn_close(struct masque_h2_conn *c, uint32_t code, enum masque_end why, const char *detail)
{
    if (c->dead || c->saying_goodbye)
        return;
    masque_h2_flow_end(c->flow, why, "%s", detail);
    if (c->dead)
        return;
    c->saying_goodbye = true;
    c->close_at = c->h->now + MASQUE_H2_FAREWELL;
    if (nghttp2_session_terminate_session(c->http, code) != 0)
        masque_h2_conn_abort(c, why, detail);
    masque_h2_conn_dirty(c);
}

void masque_h2_conn_reap(struct masque_h2 *h)
{
    while (h->dying) {
        struct masque_h2_conn *c = h->dying;
        h->dying = c->dying_next;
        if (c->dirty) {
            struct masque_h2_conn **p = &h->dirty;
            while (*p != c)
                p = &(*p)->dirty_next;
            *p = c->dirty_next;
            if (h->dirty_tail == &c->dirty_next)
                h->dirty_tail = p;
        }
        if (c->prev)
            c->prev->next = c->next;
        else
            h->conns = c->next;
        if (c->next)
            c->next->prev = c->prev;
        h->n_conns--;
        masque_count_leave(h->all, &c->source, c->shaken);
        nghttp2_session_del(c->http);
        masque_h2_stream_free_all(c);
        SSL_free(c->ssl);
        masque_h2_tls_unref(c->tls);
        base_free(c);
    }
}

/* ---- the beginning ---- */

static void set_options(int fd, const struct masque_h2_limits *l)
{
    int one = 1, unsent = (int)l->unsent;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

/* The caller has counted it. */
static struct masque_h2_conn *new_conn(struct masque_h2 *h, int fd, const struct sockaddr_in6 *peer)
{
    if (masque_heap_reserve(&h->heap) != BASE_OK)
        return NULL;
    struct masque_h2_conn *c = base_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->ssl = masque_h2_tls_session(h->tls, fd, &c->wire);
    if (!c->ssl)
        return base_free(c);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(h->poll, EPOLL_CTL_ADD, fd, &ev) != 0) {
        SSL_free(c->ssl);
        return base_free(c);
    }
    c->h = h;
    c->fd = fd;
    c->events = EPOLLIN;
    c->tls = masque_h2_tls_ref(h->tls);
    c->source = peer->sin6_addr;
    c->since = c->heard = h->now;
    masque_wake_init(&c->wake, c);
    masque_address_text(c->peer, sizeof c->peer, peer);
    c->next = h->conns;
    if (h->conns)
        h->conns->prev = c;
    h->conns = c;
    h->n_conns++;
    h->stats.connections++;
    masque_heap_set(&h->heap, &c->wake, h->now);
    return c;
}

/* Closed without a word: that is what costs least under load, and a client tries the next node. */
static void turn_away(struct masque_h2 *h, int fd)
{
    struct linger l = {.l_onoff = 1, .l_linger = 0};
    h->stats.refused++;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    (void)close(fd);
}

static void listen_on(struct masque_h2 *h, bool on)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
    if (h->listening == on || h->listener < 0)
        return;
    if (epoll_ctl(h->poll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, h->listener, &ev) == 0)
        h->listening = on;
}

void masque_h2_conn_accept(struct masque_h2 *h)
{
    const struct masque_room room = {h->limits.connections, h->limits.handshakes, h->limits.per_source};
    listen_on(h, true);
    for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_in6 peer;
        socklen_t len = sizeof peer;
        int fd = accept4(h->listener, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
            loop_log(
                h->log, LOOP_WARN, "masque_accept_failed",
                "a connection could not be taken: descriptors or memory are used up, trying again in 100 ms",
                LOG_INT("errno", errno));
            listen_on(h, false);
            h->listen_again = h->now + ACCEPT_PAUSE;
            return;
        }
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return;
        if (h->draining || masque_count_enter(h->all, &peer.sin6_addr, &room) != MASQUE_ROOM) {
            turn_away(h, fd);
            continue;
        }
        set_options(fd, &h->limits);
        if (!new_conn(h, fd, &peer)) {
            masque_count_leave(h->all, &peer.sin6_addr, false);
            turn_away(h, fd);
        }
    }
}

static void shaken(struct masque_h2_conn *c)
{
    struct masque_h2 *h = c->h;
    if (masque_h2_tls_identity(c->tls, c->ssl, &c->identity, c->uri, c->credential_id) != BASE_OK ||
        masque_h2_http_open(c) != BASE_OK) {
        h->stats.handshakes_failed++;
        masque_h2_conn_abort(c, MASQUE_END_PROTOCOL, "the session could not be set up");
        return;
    }
    c->shaken = true;
    masque_count_shaken(h->all);
    c->since = c->lonely_since = h->now;
    c->resets = (struct masque_h2_bucket){h->limits.resets, h->now};
    c->control = (struct masque_h2_bucket){h->limits.control, h->now};
    c->small = (struct masque_h2_bucket){h->limits.small, h->now};
    if (h->draining)
        masque_h2_http_goaway(c);
}

/* False: nothing more for now. */
static bool shake(struct masque_h2_conn *c)
{
    struct masque_h2 *h = c->h;
    char why[200];
    ERR_clear_error();
    int rv = SSL_do_handshake(c->ssl);
    masque_h2_conn_dirty(c);
    if (rv == 1) {
        shaken(c);
        return !c->dead;
    }
    if (SSL_get_error(c->ssl, rv) == SSL_ERROR_WANT_READ)
        return false;
    h->stats.handshakes_failed++;
    masque_h2_tls_describe(c->ssl, why, sizeof why);
    loop_log(h->log, LOOP_INFO, "masque_handshake_failed", "client was not let in: TLS handshake failed",
             LOG_STR("peer", c->peer), LOG_STR("tls", why));
    char *alert;
    long n = BIO_get_mem_data(c->wire, &alert);
    if (n > 0) /* the alert; then FIN, so that it arrives */
        (void)send(c->fd, alert, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    die(c, false);
    return false;
}

/* ---- input ---- */

static void lost(struct masque_h2_conn *c, const char *how)
{
    if (!c->shaken)
        c->h->stats.handshakes_failed++;
    masque_h2_conn_abort(c, MASQUE_END_CLIENT, how);
}

static void take_in(struct masque_h2_conn *c, const uint8_t *p, size_t n)
{
    if (c->saying_goodbye)
        return;
    ssize_t rv = nghttp2_session_mem_recv(c->http, p, n);
    if (c->dead)
        return;
    masque_h2_conn_dirty(c);
    if (c->flood) {
        c->h->stats.floods++;
        loop_log(c->h->log, LOOP_INFO, "masque_flood", c->flood, LOG_STR("peer", c->peer));
        masque_h2_conn_close(c, NGHTTP2_ENHANCE_YOUR_CALM, MASQUE_END_PROTOCOL, c->flood);
    } else if (rv == NGHTTP2_ERR_FLOODED) {
        c->h->stats.floods++;
        masque_h2_conn_abort(c, MASQUE_END_PROTOCOL, "more control frames than their answers were read");
    } else if (rv < 0) {
        masque_h2_conn_abort(c, MASQUE_END_PROTOCOL, nghttp2_strerror((int)rv));
    }
}

void masque_h2_conn_input(struct masque_h2_conn *c, unsigned max)
{
    struct masque_h2 *h = c->h;
    for (unsigned i = 0; i < max && !c->dead; i++) {
        if (!c->shaken && !shake(c))
            return;
        ERR_clear_error();
        int n = SSL_read(c->ssl, h->in, sizeof h->in);
        if (n > 0) {
            c->heard = h->now;
            c->pinged = 0;
            take_in(c, h->in, (size_t)n);
            continue;
        }
        int e = SSL_get_error(c->ssl, n);
        if (e == SSL_ERROR_WANT_READ)
            break;
        ERR_clear_error();
        lost(c, e == SSL_ERROR_ZERO_RETURN ? "the client closed the connection"
                                           : "the client's connection broke");
        return;
    }
    c->more =
        !c->dead && SSL_has_pending(c->ssl) != 0; /* the descriptor does not tell of what was read ahead */
    h->more |= c->more;
}

/* ---- deadlines ---- */

bool masque_h2_conn_holds_packets(const struct masque_h2_conn *c)
{
    int left = 0;
    if (c->fd < 0)
        return false;
    if (c->wire_inner)
        return true;
    if (c->inner_end == 0)
        return false;
    if (ioctl(c->fd, SIOCOUTQ, &left) != 0)
        return true;
    return c->inner_end > c->written - (uint64_t)left;
}

/* The socket holds packets: may it? */
static bool look(struct masque_h2_conn *c)
{
    c->look_at = c->h->now + MASQUE_H2_LOOK;
    if (!masque_h2_conn_holds_packets(c)) {
        c->inner_end = 0;
        return true;
    }
    if (masque_h2_flow_fence_open(c->flow, c->h->now))
        return true;
    c->h->stats.resets_fence++;
    masque_h2_conn_abort(c, MASQUE_END_LOCAL, "the session's fence closed while its socket held packets");
    return false;
}

static base_time after(base_time since, base_time d)
{
    return since ? base_time_add(since, d) : BASE_TIME_NEVER;
}

static base_time flow_deadline(const struct masque_h2_conn *c)
{
    const struct masque_h2_flow *f = c->flow;
    const struct masque_h2_limits *l = &c->h->limits;
    if (!f)
        return BASE_TIME_NEVER;
    if (f->state == MASQUE_H2_ASKED)
        return base_time_add(f->since, l->answer);
    return after(f->capsule_since, l->capsule);
}

static base_time own_deadline(const struct masque_h2_conn *c)
{
    const struct masque_h2_limits *l = &c->h->limits;
    base_time t = c->close_at ? c->close_at : BASE_TIME_NEVER;
    if (!c->shaken)
        return base_time_min(t, base_time_add(c->since, l->handshake));
    if (!c->settings_seen)
        t = base_time_min(t, base_time_add(c->since, l->preface));
    t = base_time_min(t, after(c->headers_since, l->headers));
    t = base_time_min(t, after(c->blocked_since, l->blocked));
    t = base_time_min(t, base_time_add(c->heard, c->pinged ? l->dead : l->ping));
    if (!c->flow)
        return base_time_min(t, after(c->lonely_since, l->idle));
    return base_time_min(t, flow_deadline(c));
}

void masque_h2_conn_reschedule(struct masque_h2_conn *c)
{
    if (c->dead)
        return;
    base_time t = own_deadline(c);
    if (c->inner_end || c->wire_inner) {
        base_time end = c->flow && c->flow->slot ? fence_deadline(c->flow->slot) : 0;
        t = base_time_min(t, end > c->h->now ? base_time_min(end, c->look_at) : c->look_at);
    }
    masque_heap_set(&c->h->heap, &c->wake, t);
}

static void flow_expired(struct masque_h2_conn *c)
{
    struct masque_h2_flow *f = c->flow;
    struct masque_h2_stream *s = f->stream;
    if (f->state == MASQUE_H2_ASKED) {
        masque_h2_flow_end(f, MASQUE_END_LOCAL, "no answer in time");
        (void)masque_h2_stream_refuse(s, 503, "not admitted in time; try again", 5);
        return;
    }
    masque_h2_flow_end(f, MASQUE_END_IDLE, "a capsule was begun and not finished in time");
    if (!c->dead)
        masque_h2_stream_abort(s, NGHTTP2_PROTOCOL_ERROR);
}

/* What is due in an HTTP/2 session. */
static void session_expired(struct masque_h2_conn *c)
{
    const struct masque_h2_limits *l = &c->h->limits;
    base_time now = c->h->now;
    if (!c->settings_seen && base_time_add(c->since, l->preface) <= now)
        masque_h2_conn_abort(c, MASQUE_END_IDLE, "no HTTP/2 preface and SETTINGS in time");
    else if (after(c->headers_since, l->headers) <= now)
        masque_h2_conn_abort(c, MASQUE_END_IDLE, "a header block was begun and not finished in time");
    else if (after(c->blocked_since, l->blocked) <= now)
        masque_h2_conn_abort(c, MASQUE_END_IDLE, "the client has read nothing for too long");
    else if (c->pinged && base_time_add(c->heard, l->dead) <= now)
        masque_h2_conn_abort(c, MASQUE_END_IDLE, "nothing was heard from the client");
    else if (flow_deadline(c) <= now)
        flow_expired(c);
    else if (!c->flow && after(c->lonely_since, l->idle) <= now)
        masque_h2_conn_close(c, NGHTTP2_NO_ERROR, MASQUE_END_LOCAL, "no tunnel on this connection");
    else if (!c->pinged && base_time_add(c->heard, l->ping) <= now) {
        c->pinged = now;
        if (nghttp2_submit_ping(c->http, NGHTTP2_FLAG_NONE, NULL) != 0)
            masque_h2_conn_abort(c, MASQUE_END_LOCAL, "no memory");
    }
}

void masque_h2_conn_expire(struct masque_h2_conn *c)
{
    base_time now = c->h->now;
    if ((c->inner_end || c->wire_inner) && !look(c))
        return;
    if (c->close_at && c->close_at <= now) {
        masque_h2_conn_abort(c, MASQUE_END_LOCAL, "closed");
        return;
    }
    if (!c->shaken) {
        if (base_time_add(c->since, c->h->limits.handshake) <= now) {
            c->h->stats.handshakes_failed++;
            masque_h2_conn_abort(c, MASQUE_END_IDLE, "no TLS handshake in time");
            return;
        }
    } else if (own_deadline(c) <= now) {
        session_expired(c);
    }
    masque_h2_conn_dirty(c);
}
