/* SPDX-License-Identifier: Apache-2.0
 *
 * A flow over HTTP/2: one CONNECT-IP request, from its headers to its end. Packets are DATAGRAM capsules in
 * both directions.
 *
 *   ASKED ──masque_h2_accept──▶ OPEN ──▶ ENDED
 *      └──refuse, time-out, stream or connection ends──┘
 *
 * What holds: the connection's `flow` is never ENDED; only OPEN flows have a slot; every flow is reported,
 * and reported as ended, once.
 */
#include "masque/h2_int.h"

#include <stdarg.h>

#include "fence/fence.h"
#include "masque/varint.h"

bool masque_h2_flow_fence_open(const struct masque_h2_flow *f, base_time now)
{
    return f && f->slot && fence_check(f->slot, now) != NULL;
}

struct masque_h2_flow *masque_h2_flow_find(const struct masque_h2 *h, uint64_t id)
{
    struct masque_h2_flow *f = h->flows[id % MASQUE_H2_BUCKETS];
    while (f && f->id != id)
        f = f->next;
    return f;
}

/* ---- begin and end ---- */

static void ask(struct masque_h2_flow *f)
{
    struct masque_h2_conn *c = f->conn;
    struct masque_request rq = {.flow = f->id,
                                .transport = MASQUE_H2,
                                .identity = f->identity,
                                .token = BASE_TAKE(f->token), /* the callee's now */
                                .target = f->tunnel.path.target,
                                .prefix = f->tunnel.path.prefix,
                                .ipproto = f->tunnel.path.ipproto,
                                .correlation = f->correlation};
    memcpy(rq.uri, c->uri, sizeof rq.uri);
    memcpy(rq.credential_id, c->credential_id, sizeof rq.credential_id);
    memcpy(rq.peer, c->peer, sizeof rq.peer);
    c->h->events.request(c->h->arg, &rq);
}

static int refuse(struct masque_h2_stream *s, int status, const char *why)
{
    loop_log(s->conn->h->log, LOOP_INFO, "masque_request_refused", why, LOG_STR("peer", s->conn->peer),
             LOG_INT("status", status));
    return masque_h2_stream_refuse(s, status, why, status == 503 ? 1 : 0);
}

int masque_h2_flow_begin(struct masque_h2_stream *s, const struct masque_path *path,
                         const struct base_correlation *corr)
{
    struct masque_h2_conn *c = s->conn;
    struct masque_h2 *h = c->h;
    if (h->draining)
        return refuse(s, 503, "this node is draining; go to another one");
    if (c->flow)
        return refuse(s, 409, "this connection has a CONNECT-IP tunnel already; one connection carries one");
    if (s->headers.has_authorization && c->identity != MASQUE_IDENTITY_ABSENT)
        return refuse(s, 400,
                      "header authorization: the client has a certificate already; send one credential");
    struct masque_h2_flow *f = base_calloc(1, sizeof *f);
    if (!f)
        return BASE_ENOMEM;
    f->identity = c->identity;
    if (s->headers.has_authorization)
        f->identity = s->headers.token ? MASQUE_IDENTITY_TOKEN : MASQUE_IDENTITY_BAD_TOKEN;
    f->token = BASE_TAKE(s->headers.token);
    f->bare = masque_headers_bare(&s->headers);
    f->id = ++h->last_flow;
    f->state = MASQUE_H2_ASKED;
    f->conn = c;
    f->stream = s;
    f->since = h->now;
    f->correlation = *corr;
    masque_queue_init(&f->queue);
    masque_tunnel_init(&f->tunnel, path, h->now);
    f->next = h->flows[f->id % MASQUE_H2_BUCKETS];
    h->flows[f->id % MASQUE_H2_BUCKETS] = f;
    h->n_flows++;
    s->flow = f;
    c->flow = f;
    c->lonely_since = 0;
    ask(f);
    return BASE_OK;
}

static void drop_early(struct masque_h2_flow *f, uint64_t *counter)
{
    *counter += f->n_early;
    for (unsigned i = 0; i < f->n_early; i++)
        base_free(f->early[i].data);
    f->n_early = 0;
    f->early_bytes = 0;
    f->early_ready = false;
}

void masque_h2_flow_end(struct masque_h2_flow *f, enum masque_end why, const char *fmt, ...)
{
    if (!f || f->state == MASQUE_H2_ENDED)
        return;
    struct masque_h2_conn *c = f->conn;
    struct masque_h2 *h = c->h;
    va_list ap;
    va_start(ap, fmt);
    base_vfmt(f->detail, sizeof f->detail, fmt, ap);
    va_end(ap);
    masque_queue_drop(&f->queue, &h->pool, NULL);
    drop_early(f, &h->stats.drop_early);
    f->token = base_secret_free(f->token);
    struct masque_h2_flow **p = &h->flows[f->id % MASQUE_H2_BUCKETS];
    while (*p && *p != f)
        p = &(*p)->next;
    if (*p)
        *p = f->next;
    h->n_flows--;
    f->end = why;
    f->state = MASQUE_H2_ENDED;
    f->slot = NULL;
    f->stream->flow = NULL;
    f->stream = NULL;
    f->conn = NULL;
    c->flow = NULL;
    c->lonely_since = h->now;
    if (h->draining && !c->close_at)
        c->close_at = h->now + MASQUE_H2_FAREWELL;
    f->next = NULL;
    *h->ended_tail = f;
    h->ended_tail = &f->next;
    /* Nobody watches over what the socket holds any more; nor can a capsule that was begun be finished. */
    if (f->cur_len > 0 || masque_h2_conn_holds_packets(c))
        masque_h2_conn_abort(c, why, f->detail);
}

void masque_h2_flow_report(struct masque_h2 *h)
{
    while (h->ended) {
        struct masque_h2_flow *f = h->ended;
        h->ended = f->next;
        if (!h->ended)
            h->ended_tail = &h->ended;
        h->events.ended(h->arg, f->id, f->end, f->detail);
        base_free(f);
    }
}

static void abort_flow(struct masque_h2_flow *f, uint32_t code, const char *detail)
{
    struct masque_h2_stream *s = f->stream;
    struct masque_h2_conn *c = f->conn;
    loop_log(c->h->log, LOOP_INFO, "masque_stream_aborted", detail, LOG_STR("peer", c->peer),
             LOG_INT("flow", (int64_t)f->id));
    masque_h2_flow_end(f, MASQUE_END_PROTOCOL, "%s", detail);
    if (!c->dead)
        masque_h2_stream_abort(s, code);
}

/* ---- packets from the client ---- */

/* Copies it to where the caller may change it, with room before it. */
static void deliver(struct masque_h2_flow *f, const uint8_t *p, size_t n)
{
    struct masque_h2 *h = f->conn->h;
    if (n == 0 || n > 65535) {
        h->stats.drop_malformed++;
        return;
    }
    memcpy(h->packet + MASQUE_PACKET_ROOM, p, n);
    h->stats.packets_in++;
    h->stats.bytes_in += n;
    h->events.packet(h->arg, f->id, h->packet + MASQUE_PACKET_ROOM, n);
}

static void keep_early(struct masque_h2_flow *f, const uint8_t *p, size_t n)
{
    uint8_t *copy =
        f->n_early < MASQUE_H2_EARLY_PACKETS && n > 0 && n <= MASQUE_H2_EARLY_BYTES - f->early_bytes
            ? base_calloc(1, n)
            : NULL;
    if (!copy) {
        f->conn->h->stats.drop_early++;
        return;
    }
    memcpy(copy, p, n);
    f->early[f->n_early].data = copy;
    f->early[f->n_early++].len = n;
    f->early_bytes += n;
}

void masque_h2_flow_deliver_early(struct masque_h2_flow *f)
{
    struct masque_h2 *h = f->conn->h;
    uint64_t id = f->id;
    if (!f->early_ready)
        return;
    unsigned n = f->n_early;
    uint8_t *data[MASQUE_H2_EARLY_PACKETS];
    size_t len[MASQUE_H2_EARLY_PACKETS];
    for (unsigned i = 0; i < n; i++) {
        data[i] = f->early[i].data;
        len[i] = f->early[i].len;
    }
    f->n_early = 0;
    f->early_bytes = 0;
    f->early_ready = false;
    for (unsigned i = 0; i < n; i++) {
        f = masque_h2_flow_find(h, id); /* each time: an event may have ended or stopped it */
        if (f && f->state == MASQUE_H2_OPEN && !f->stopped)
            deliver(f, data[i], len[i]);
        else
            h->stats.drop_early++;
        base_free(data[i]);
    }
}

static void datagram(struct masque_h2_flow *f, const uint8_t *p, size_t n)
{
    struct masque_h2 *h = f->conn->h;
    if (!f->bare) {
        uint64_t context;
        size_t k = masque_varint_get(p, n, &context);
        if (k == 0) {
            h->stats.drop_malformed++;
            abort_flow(f, NGHTTP2_PROTOCOL_ERROR, "datagram without a whole context ID");
            return;
        }
        if (context != 0) {
            h->stats.drop_malformed++; /* unknown context: not an error (RFC 9484 section 6) */
            return;
        }
        p += k;
        n -= k;
    }
    if (f->state == MASQUE_H2_ASKED || f->early_ready)
        keep_early(f, p, n);
    else if (!f->stopped)
        deliver(f, p, n);
    else
        h->stats.drop_early++;
}

void masque_h2_flow_data(struct masque_h2_flow *f, const uint8_t *p, size_t n)
{
    struct masque_h2_conn *c = f->conn;
    struct masque_h2 *h = c->h;
    struct masque_h2_stream *s = f->stream;
    struct base_err err = {0};
    for (;;) {
        int rv = masque_tunnel_feed(&f->tunnel, h->now, &p, &n, &h->out, &err);
        if (rv == MASQUE_TUNNEL_MORE)
            break;
        c->small.left += 2; /* what completes something is no flood */
        if (rv == MASQUE_TUNNEL_DATAGRAM)
            datagram(f, h->out.p, h->out.len);
        else if (rv == MASQUE_TUNNEL_REPLY && masque_h2_stream_write(s, h->out.p, h->out.len) != BASE_OK)
            rv = base_err_set(&err, BASE_EFULL, "ADDRESS_REQUEST: the client does not read the answers");
        if (c->dead || s->flow != f)
            return; /* an event, or a bad datagram, has ended it */
        f->capsule_since = 0;
        if (rv < 0) {
            abort_flow(f, NGHTTP2_PROTOCOL_ERROR, err.msg);
            return;
        }
    }
    if (masque_tunnel_at_boundary(&f->tunnel))
        f->capsule_since = 0;
    else if (f->capsule_since == 0)
        f->capsule_since = h->now;
}

void masque_h2_flow_fin(struct masque_h2_flow *f)
{
    struct masque_h2_stream *s = f->stream;
    struct masque_h2_conn *c = f->conn;
    if (!masque_tunnel_at_boundary(&f->tunnel)) {
        abort_flow(f, NGHTTP2_PROTOCOL_ERROR, "the stream ended inside a capsule");
        return;
    }
    masque_h2_flow_end(f, MASQUE_END_CLIENT, "the client ended its stream");
    if (c->dead)
        return;
    if (s->answered)
        masque_h2_stream_finish(s);
    else
        masque_h2_stream_abort(s, NGHTTP2_CANCEL);
}

/* ---- packets to the client ---- */

enum { CAPSULE_HEAD_MAX = 1 + 8 + 1 }; /* type, length, context */

/* True when a packet waits that is young enough. */
static bool next_packet(struct masque_h2_flow *f)
{
    struct masque_h2 *h = f->conn->h;
    while (f->queue.head && h->now - f->queue.head->at > h->limits.queue_age) {
        masque_queue_pop(&f->queue, &h->pool);
        h->stats.drop_queue++;
    }
    return f->queue.head != NULL;
}

/* Writes the packet at the front as a capsule, and takes it out. Bytes. */
static size_t put_capsule(struct masque_h2_flow *f, uint8_t *dst)
{
    struct masque_h2 *h = f->conn->h;
    const struct masque_pkt *p = f->queue.head;
    size_t n = 0;
    dst[n++] = MASQUE_CAPSULE_DATAGRAM;
    n += masque_varint_put(dst + n, 8, p->len + (f->bare ? 0u : 1u));
    if (!f->bare)
        dst[n++] = 0; /* context 0: a whole IP packet */
    memcpy(dst + n, p->data, p->len);
    n += p->len;
    h->stats.packets_out++;
    h->stats.bytes_out += p->len;
    masque_queue_pop(&f->queue, &h->pool);
    return n;
}

size_t masque_h2_flow_fill(struct masque_h2_flow *f, uint8_t *dst, size_t size)
{
    size_t n = 0;
    while (n < size && (f->cur_len > 0 || next_packet(f))) {
        if (f->cur_len == 0) {
            if (size - n >= CAPSULE_HEAD_MAX + f->queue.head->len) {
                n += put_capsule(f, dst + n);
                continue;
            }
            f->cur_len = put_capsule(f, f->cur); /* it goes out in two frames */
        }
        size_t k = f->cur_len - f->cur_at < size - n ? f->cur_len - f->cur_at : size - n;
        memcpy(dst + n, f->cur + f->cur_at, k);
        n += k;
        f->cur_at += k;
        if (f->cur_at == f->cur_len)
            f->cur_at = f->cur_len = 0;
    }
    if (n > 0)
        f->conn->h->framed_inner = true;
    return n;
}

/* ---- the caller's side ---- */

int masque_h2_accept(struct masque_h2 *h, uint64_t flow, const struct base_prefix *prefix,
                     const struct base_prefix *routes, size_t n_routes, const struct fence_slot *slot)
{
    struct masque_h2_flow *f = masque_h2_flow_find(h, flow);
    uint8_t out[MASQUE_TUNNEL_SETUP_MAX];
    if (!f || f->state != MASQUE_H2_ASKED)
        return BASE_ENOTFOUND;
    if (n_routes > MASQUE_ROUTES_MAX)
        return BASE_EFULL;
    int rv = masque_h2_stream_accept(f->stream);
    size_t n = masque_tunnel_open(&f->tunnel, prefix, routes, n_routes, out, sizeof out);
    if (rv == BASE_OK)
        rv = n > 0 ? masque_h2_stream_write(f->stream, out, n) : BASE_EFULL;
    if (rv != BASE_OK) {
        abort_flow(f, NGHTTP2_INTERNAL_ERROR, "the answer could not be queued");
        return BASE_EFULL;
    }
    f->state = MASQUE_H2_OPEN;
    f->since = h->now;
    f->slot = slot;
    f->early_ready = f->n_early > 0;
    masque_h2_conn_dirty(f->conn);
    return BASE_OK;
}

int masque_h2_refuse(struct masque_h2 *h, uint64_t flow, int status, const char *reason, unsigned retry_after)
{
    struct masque_h2_flow *f = masque_h2_flow_find(h, flow);
    if (!f || f->state != MASQUE_H2_ASKED)
        return BASE_ENOTFOUND;
    struct masque_h2_stream *s = f->stream;
    if (status < 400 || status > 599)
        status = 500;
    masque_h2_flow_end(f, MASQUE_END_LOCAL, "refused with %d: %s", status, reason);
    if (masque_h2_stream_refuse(s, status, reason, retry_after) != BASE_OK)
        masque_h2_stream_abort(s, NGHTTP2_INTERNAL_ERROR);
    return BASE_OK;
}

int masque_h2_send(struct masque_h2 *h, uint64_t flow, const struct fence_pass *pass, const uint8_t *pkt,
                   size_t len)
{
    struct masque_h2_flow *f = masque_h2_flow_find(h, flow);
    const struct masque_queue_limits l = {h->limits.queue_packets, h->limits.queue_bytes,
                                          h->limits.queue_age};
    if (!f || f->state != MASQUE_H2_OPEN || f->stopped)
        return BASE_ENOTFOUND;
    if (!pass || !f->slot) {
        h->stats.drop_fence++;
        return BASE_EDENIED;
    }
    if (len > MASQUE_H2_MTU || len == 0)
        return BASE_ERANGE;
    if (masque_queue_add(&f->queue, &h->pool, &l, h->now, pkt, len, &h->stats.drop_queue) != BASE_OK)
        return BASE_EFULL;
    masque_h2_stream_wake(f->stream);
    return BASE_OK;
}

size_t masque_h2_mtu(const struct masque_h2 *h, uint64_t flow)
{
    return masque_h2_flow_find(h, flow) ? MASQUE_H2_MTU : 0;
}

void masque_h2_stop(struct masque_h2 *h, uint64_t flow)
{
    struct masque_h2_flow *f = masque_h2_flow_find(h, flow);
    if (!f)
        return;
    f->stopped = true;
    f->slot = NULL;
    masque_queue_drop(&f->queue, &h->pool, &h->stats.drop_fence);
    drop_early(f, &h->stats.drop_early);
    if (f->cur_len > 0 || masque_h2_conn_holds_packets(f->conn)) {
        h->stats.resets_fence++;
        masque_h2_conn_abort(f->conn, MASQUE_END_LOCAL, "stopped while its socket held packets");
    }
}

void masque_h2_close(struct masque_h2 *h, uint64_t flow)
{
    struct masque_h2_flow *f = masque_h2_flow_find(h, flow);
    if (!f)
        return;
    struct masque_h2_conn *c = f->conn;
    struct masque_h2_stream *s = f->stream;
    masque_h2_flow_end(f, MASQUE_END_LOCAL, "closed");
    if (c->dead)
        return;
    masque_h2_stream_abort(s, NGHTTP2_CANCEL);
    c->close_asked = true; /* by the next flush: we may be inside a callback of the library */
    masque_h2_conn_dirty(c);
}
