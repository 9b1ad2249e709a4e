/* SPDX-License-Identifier: Apache-2.0
 *
 * From a connection to its socket: HTTP/2 frames in pieces of at most 32 KiB, sealed by TLS and handed to the
 * kernel, each only after a look at the fence with a fresh clock when there are packets in it. What the
 * kernel does not take waits, sealed, for the next turn and the next look. TLS and HTTP/2 know no way back: a
 * piece that may not be sent any more ends the connection, by RST, with all that the kernel holds.
 */
#include "masque/h2_int.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <openssl/err.h>

enum result { SENT, BLOCKED, DEAD };

/* Asks to be told when the socket takes more, or no longer. */
static void want_write(struct masque_h2_conn *c, bool on)
{
    uint32_t events = EPOLLIN | (on ? EPOLLOUT : 0u);
    struct epoll_event ev = {.events = events, .data.ptr = c};
    if (events != c->events && epoll_ctl(c->h->poll, EPOLL_CTL_MOD, c->fd, &ev) == 0)
        c->events = events;
}

static bool may_send(struct masque_h2_conn *c, base_time now)
{
    struct masque_h2 *h = c->h;
    if (!c->wire_inner)
        return true;
    /* Far behind the beginning of this flush means that the thread was stopped in between (contract section
     * 9, "gap"). */
    return now - h->flush_began <= h->limits.stall && masque_h2_flow_fence_open(c->flow, now);
}

/* Hands the sealed bytes to the kernel. */
static enum result push(struct masque_h2_conn *c, base_time (*clock)(void))
{
    struct masque_h2 *h = c->h;
    char *p;
    for (;;) {
        long n = BIO_get_mem_data(c->wire, &p);
        if (n <= 0) {
            c->wire_inner = false;
            c->blocked_since = 0;
            want_write(c, false);
            return SENT;
        }
        if (!may_send(c, clock())) {
            h->stats.drop_fence++;
            h->stats.resets_fence++;
            masque_h2_conn_abort(c, MASQUE_END_LOCAL,
                                 "the session's fence closed before its packets were sent");
            return DEAD;
        }
        ssize_t k = send(c->fd, p, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
            if (c->blocked_since == 0)
                c->blocked_since = h->now;
            want_write(c, true);
            return BLOCKED;
        }
        if (k <= 0) {
            masque_h2_conn_abort(c, MASQUE_END_CLIENT, "the client's connection broke");
            return DEAD;
        }
        c->written += (uint64_t)k;
        if (c->wire_inner) {
            if (c->inner_end == 0) /* from now on somebody has to look, however much else goes on */
                c->look_at = h->now + MASQUE_H2_LOOK;
            c->inner_end = c->written;
        }
        c->blocked_since = 0;
        for (ssize_t left = k; left > 0;) { /* takes them out of the memory BIO */
            int part = BIO_read(c->wire, h->piece,
                                left < (ssize_t)sizeof h->piece ? (int)left : (int)sizeof h->piece);
            if (part <= 0)
                break;
            left -= part;
        }
    }
}

/* Frames up to a piece into h->piece. Bytes, or < 0. */
static ssize_t frame(struct masque_h2_conn *c)
{
    struct masque_h2 *h = c->h;
    size_t n = 0;
    h->framed_inner = false;
    while (n < MASQUE_H2_PIECE) {
        const uint8_t *p;
        ssize_t k = nghttp2_session_mem_send(c->http, &p);
        if (k < 0)
            return k;
        if (k == 0)
            break;
        if ((size_t)k > sizeof h->piece - n) /* no frame is that large */
            return NGHTTP2_ERR_INTERNAL;
        memcpy(h->piece + n, p, (size_t)k);
        n += (size_t)k;
    }
    return (ssize_t)n;
}

static bool seal(struct masque_h2_conn *c, size_t n)
{
    ERR_clear_error();
    int k = SSL_write(c->ssl, c->h->piece, (int)n); /* into memory: takes all or fails */
    c->wire_inner |= c->h->framed_inner;
    return k == (int)n;
}

/* All is said: the client hears close_notify and FIN, then we wait for its FIN. */
static void finish(struct masque_h2_conn *c, base_time (*clock)(void))
{
    if (c->shut)
        return;
    masque_h2_flow_end(c->flow, MASQUE_END_PROTOCOL, "the HTTP/2 session has ended");
    if (c->dead)
        return;
    c->shut = true;
    c->saying_goodbye = true;
    if (!c->close_at)
        c->close_at = c->h->now + MASQUE_H2_FAREWELL;
    (void)SSL_shutdown(c->ssl);
    ERR_clear_error();
    if (push(c, clock) == SENT)
        (void)shutdown(c->fd, SHUT_WR);
}

static void pump(struct masque_h2_conn *c, base_time (*clock)(void))
{
    for (size_t total = 0; push(c, clock) == SENT;) {
        if (!c->http || c->shut)
            return;
        ssize_t n = total < MASQUE_H2_TURN ? frame(c) : 0;
        if (total >= MASQUE_H2_TURN) {
            masque_h2_conn_dirty(c); /* the others' turn first */
            return;
        }
        if (n < 0 || (n > 0 && !seal(c, (size_t)n))) {
            masque_h2_conn_abort(c, MASQUE_END_LOCAL, n < 0 ? nghttp2_strerror((int)n) : "TLS write failed");
            return;
        }
        if (c->flood && !c->saying_goodbye) {
            c->h->stats.floods++;
            masque_h2_conn_close(c, NGHTTP2_ENHANCE_YOUR_CALM, MASQUE_END_PROTOCOL, c->flood);
        }
        if (n == 0) {
            if (!nghttp2_session_want_read(c->http) && !nghttp2_session_want_write(c->http))
                finish(c, clock);
            return;
        }
        total += (size_t)n;
    }
}

void masque_h2_write(struct masque_h2_conn *c, base_time (*clock)(void))
{
    struct masque_h2 *h = c->h;
    if (c->dead)
        return;
    if (c->flow)
        masque_h2_flow_deliver_early(c->flow);
    if (c->dead)
        return;
    if (c->close_asked && c->http) {
        masque_h2_http_goaway(c); /* behind the stream's RST_STREAM; it is the only one */
        c->close_at = c->close_at ? c->close_at : h->now + MASQUE_H2_FAREWELL;
    }
    base_time now = h->now = base_time_max(clock(), h->now);
    struct masque_h2_flow *f = c->flow;
    if (f && f->queue.head) {
        masque_queue_stamp(&f->queue, now);
        if (!masque_h2_flow_fence_open(f, now))
            masque_queue_drop(&f->queue, &h->pool, &h->stats.drop_fence);
    }
    if (!c->dead)
        pump(c, clock);
    if (!c->dead)
        masque_h2_conn_reschedule(c);
}
