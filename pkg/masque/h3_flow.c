/* SPDX-License-Identifier: Apache-2.0
 *
 * A flow: one CONNECT-IP request, from its headers to its end. Capsules, datagrams, the queue towards the
 * client.
 *
 *   SETTINGS ──the client's SETTINGS──▶ ASKED ──masque_h3_accept──▶ OPEN ──▶ ENDED
 *        └────────────────────────────────┴──refuse, time-out, stream or connection ends──┘
 *
 * What holds: the connection's `flow` is never ENDED; only OPEN flows have a slot; only flows that were
 * reported are reported as ended, once each.
 */
#include <stdarg.h>

#include "masque/h3_int.h"
#include "masque/varint.h"

enum {
    SHORT_HEADER = 1 + 4, /* flags and the longest packet number */
    AEAD_TAG = 16,
    DATAGRAM_FRAME = 1 + 2, /* type and length */
};

/* ---- sizes ---- */

size_t masque_flow_prefix(const struct masque_flow *f, uint8_t dst[9])
{
    size_t n = masque_varint_put(dst, 8, (uint64_t)f->sid / 4);
    dst[n] = 0; /* context 0: a whole IP packet */
    return n + 1;
}

size_t masque_flow_overhead(const struct masque_flow *f)
{
    uint8_t prefix[9];
    return SHORT_HEADER + ngtcp2_conn_get_dcid(f->conn->quic)->datalen + AEAD_TAG + DATAGRAM_FRAME +
           masque_flow_prefix(f, prefix);
}

size_t masque_flow_live_mtu(const struct masque_flow *f)
{
    size_t path = ngtcp2_conn_get_path_max_tx_udp_payload_size(f->conn->quic), over = masque_flow_overhead(f);
    size_t mtu = path > over ? path - over : 0;
    const ngtcp2_transport_params *p = ngtcp2_conn_get_remote_transport_params(f->conn->quic);
    size_t frame = DATAGRAM_FRAME + 9;
    if (p && p->max_datagram_frame_size < mtu + frame)
        mtu = p->max_datagram_frame_size > frame ? (size_t)p->max_datagram_frame_size - frame : 0;
    return mtu < MASQUE_PKT_MAX ? mtu : MASQUE_PKT_MAX;
}

void masque_flow_drop_queue(struct masque_flow *f, uint64_t *counter)
{
    masque_queue_drop(&f->queue, &f->conn->h->pool, counter);
}

/* ---- begin and end ---- */

/* Tells the caller of the endpoint about it. */
static void ask(struct masque_flow *f)
{
    struct masque_conn *c = f->conn;
    struct masque_request rq = {.flow = f->id,
                                .transport = MASQUE_H3,
                                .identity = f->identity,
                                .token = f->token,
                                .target = f->tunnel.path.target,
                                .prefix = f->tunnel.path.prefix,
                                .ipproto = f->tunnel.path.ipproto,
                                .correlation = f->correlation};
    memcpy(rq.uri, c->uri, sizeof rq.uri);
    memcpy(rq.credential_id, c->credential_id, sizeof rq.credential_id);
    memcpy(rq.peer, c->peer, sizeof rq.peer);
    f->state = MASQUE_FLOW_ASKED;
    f->since = c->h->now;
    f->reported = true;
    f->token = NULL; /* the callee's now */
    c->h->events.request(c->h->arg, &rq);
}

static int refuse(struct masque_stream *s, int status, const char *why)
{
    loop_log(s->conn->h->log, LOOP_INFO, "masque_request_refused", why, LOG_STR("peer", s->conn->peer),
             LOG_INT("status", status));
    return masque_stream_refuse(s, status, why, status == 503 ? 1 : 0);
}

/* NULL, or why this client cannot have a tunnel. */
static const char *datagram_support(const struct masque_conn *c)
{
    const ngtcp2_transport_params *p = ngtcp2_conn_get_remote_transport_params(c->quic);
    if (!c->peer_h3_datagram)
        return "the client's SETTINGS have no SETTINGS_H3_DATAGRAM = 1; packets are carried in QUIC DATAGRAM "
               "frames only";
    if (!p || p->max_datagram_frame_size < MASQUE_MIN_MTU + DATAGRAM_FRAME + 9)
        return "the client's max_datagram_frame_size is too small for packets of 1280 bytes";
    return NULL;
}

/* SETTINGS are there: reports the flow, or refuses it. */
static int proceed(struct masque_flow *f)
{
    struct masque_stream *s = f->stream;
    const char *why = datagram_support(f->conn);
    if (why) {
        masque_flow_end(f, MASQUE_END_PROTOCOL, "%s", why);
        return refuse(s, 400, why);
    }
    ask(f);
    return BASE_OK;
}

int masque_flow_begin(struct masque_stream *s, const struct masque_path *path,
                      const struct base_correlation *corr)
{
    struct masque_conn *c = s->conn;
    struct masque_h3 *h = c->h;
    if (h->draining)
        return refuse(s, 503, "this node is draining; go to another one");
    if (c->flow)
        return refuse(s, 409, "this connection has a CONNECT-IP tunnel already; one connection carries one");
    if (s->headers.has_authorization && c->identity != MASQUE_IDENTITY_ABSENT)
        return refuse(s, 400,
                      "header authorization: the client has a certificate already; send one credential");
    struct masque_flow *f = base_calloc(1, sizeof *f);
    if (!f)
        return BASE_ENOMEM;
    f->identity = c->identity;
    if (s->headers.has_authorization)
        f->identity = s->headers.token ? MASQUE_IDENTITY_TOKEN : MASQUE_IDENTITY_BAD_TOKEN;
    f->token = BASE_TAKE(s->headers.token);
    f->id = ++h->last_flow;
    f->state = MASQUE_FLOW_SETTINGS;
    f->conn = c;
    f->stream = s;
    f->sid = s->id;
    f->since = h->now;
    f->correlation = *corr;
    masque_queue_init(&f->queue);
    masque_tunnel_init(&f->tunnel, path, h->now);
    masque_index_add_flow(&h->index, f);
    h->n_flows++;
    s->flow = f;
    c->flow = f;
    c->lonely_since = 0;
    return c->settings_seen ? proceed(f) : BASE_OK;
}

void masque_flow_settings(struct masque_conn *c)
{
    if (c->flow && c->flow->state == MASQUE_FLOW_SETTINGS)
        (void)proceed(c->flow);
}

void masque_flow_end(struct masque_flow *f, enum masque_end why, const char *fmt, ...)
{
    if (!f || f->state == MASQUE_FLOW_ENDED)
        return;
    struct masque_conn *c = f->conn;
    struct masque_h3 *h = c->h;
    va_list ap;
    va_start(ap, fmt);
    base_vfmt(f->detail, sizeof f->detail, fmt, ap);
    va_end(ap);
    masque_flow_drop_queue(f, NULL);
    masque_flow_drop_early(c);
    f->token = base_secret_free(f->token);
    masque_index_del_flow(&h->index, f);
    h->n_flows--;
    f->end = why;
    f->state = MASQUE_FLOW_ENDED;
    f->slot = NULL;
    f->stream->flow = NULL;
    f->stream = NULL;
    f->conn = NULL;
    c->flow = NULL;
    c->lonely_since = h->now;
    if (h->draining)
        c->close_at = h->now + BASE_SEC;
    if (!f->reported) {
        base_free(f);
        return;
    }
    f->next = NULL;
    *h->ended_tail = f;
    h->ended_tail = &f->next;
}

void masque_flow_report(struct masque_h3 *h)
{
    while (h->ended) {
        struct masque_flow *f = h->ended;
        h->ended = f->next;
        if (!h->ended)
            h->ended_tail = &h->ended;
        h->events.ended(h->arg, f->id, f->end, f->detail);
        base_free(f);
    }
}

static void abort_flow(struct masque_flow *f, uint64_t code, const char *detail)
{
    struct masque_stream *s = f->stream;
    loop_log(s->conn->h->log, LOOP_INFO, "masque_stream_aborted", detail, LOG_STR("peer", s->conn->peer),
             LOG_INT("flow", f->id));
    masque_flow_end(f, MASQUE_END_PROTOCOL, "%s", detail);
    masque_stream_abort(s, code);
}

/* ---- packets from the client ---- */

/* Copies it to where the caller may change it, with room before it. */
static void deliver(struct masque_flow *f, const uint8_t *p, size_t n)
{
    struct masque_h3 *h = f->conn->h;
    if (n == 0 || n > 65535) {
        h->stats.drop_malformed++;
        return;
    }
    memcpy(h->packet + MASQUE_PACKET_ROOM, p, n);
    h->stats.packets_in++;
    h->stats.bytes_in += n;
    h->events.packet(h->arg, f->id, h->packet + MASQUE_PACKET_ROOM, n);
}

void masque_flow_drop_early(struct masque_conn *c)
{
    c->h->stats.drop_early += c->n_early;
    for (unsigned i = 0; i < c->n_early; i++)
        base_free(c->early[i].data);
    c->n_early = 0;
    c->early_bytes = 0;
    c->early_ready = false;
}

static void keep_early(struct masque_conn *c, int64_t sid, const uint8_t *p, size_t n)
{
    uint8_t *copy = c->n_early < MASQUE_EARLY_PACKETS && n > 0 && n <= MASQUE_EARLY_BYTES - c->early_bytes
                        ? base_calloc(1, n)
                        : NULL;
    if (!copy) {
        c->h->stats.drop_early++;
        return;
    }
    memcpy(copy, p, n);
    c->early[c->n_early++] = (struct masque_early){.data = copy, .len = n, .sid = sid, .at = c->h->now};
    c->early_bytes += n;
}

void masque_flow_deliver_early(struct masque_conn *c)
{
    if (!c->early_ready)
        return;
    struct masque_early list[MASQUE_EARLY_PACKETS];
    unsigned n = c->n_early;
    memcpy(list, c->early, n * sizeof list[0]);
    c->n_early = 0;
    c->early_bytes = 0;
    c->early_ready = false;
    for (unsigned i = 0; i < n; i++) {
        struct masque_flow *f = c->flow; /* looked at each time: an event may have ended or stopped it */
        if (f && f->state == MASQUE_FLOW_OPEN && !f->stopped && f->sid == list[i].sid &&
            c->h->now - list[i].at <= MASQUE_EARLY_AGE)
            deliver(f, list[i].data, list[i].len);
        else
            c->h->stats.drop_early++;
        base_free(list[i].data);
    }
}

/* An HTTP datagram's payload for stream `sid`: context, packet. */
static void payload(struct masque_conn *c, int64_t sid, const uint8_t *p, size_t n)
{
    struct masque_flow *f = c->flow && c->flow->sid == sid ? c->flow : NULL;
    uint64_t context;
    size_t k = masque_varint_get(p, n, &context);
    if (k == 0) {
        c->h->stats.drop_malformed++;
        if (f)
            abort_flow(f, MASQUE_DGRAM_ERROR, "datagram without a whole context ID");
        return;
    }
    if (context != 0) {
        c->h->stats.drop_malformed++; /* unknown context: not an error (RFC 9484 section 6) */
        return;
    }
    if (f ? f->state != MASQUE_FLOW_OPEN || c->early_ready : sid > c->highest_sid) {
        keep_early(c, sid, p + k, n - k);
    } else if (f && !f->stopped) {
        deliver(f, p + k, n - k);
    } else {
        c->h->stats.drop_early++; /* its stream has ended, never was a tunnel, or was stopped */
    }
}

static int connection_error(struct masque_conn *c, uint64_t code, const char *why)
{
    c->h->stats.drop_malformed++;
    ngtcp2_ccerr_set_application_error(&c->err, code, (const uint8_t *)why, strlen(why));
    return NGTCP2_ERR_CALLBACK_FAILURE;
}

int masque_flow_datagram(struct masque_conn *c, const uint8_t *p, size_t n)
{
    static const char bad[] = "datagram without a valid Quarter Stream ID";
    static const char beyond[] = "datagram for a stream beyond the limit";
    uint64_t quarter;
    size_t k = masque_varint_get(p, n, &quarter);
    if (k == 0 || quarter > (UINT64_C(1) << 60) - 1)
        return connection_error(c, MASQUE_DGRAM_ERROR, bad);
    if (quarter >= c->streams_granted)
        return connection_error(c, NGHTTP3_H3_ID_ERROR, beyond);
    if (c->settings_seen && !c->peer_h3_datagram) {
        c->h->stats.drop_malformed++; /* it says that it does not speak them */
        return 0;
    }
    payload(c, (int64_t)(quarter * 4), p + k, n - k);
    return 0;
}

/* ---- capsules ---- */

void masque_flow_data(struct masque_flow *f, const uint8_t *p, size_t n)
{
    struct base_err err = {0};
    struct masque_tunnel_out out;
    struct masque_stream *s = f->stream;
    for (;;) {
        int rv = masque_tunnel_feed(&f->tunnel, f->conn->h->now, &p, &n, &out, &err);
        if (rv == MASQUE_TUNNEL_MORE)
            break;
        if (rv == MASQUE_TUNNEL_DATAGRAM)
            payload(f->conn, f->sid, out.p, out.len);
        else if (rv == MASQUE_TUNNEL_REPLY && masque_stream_write(s, out.p, out.len) != BASE_OK)
            rv = base_err_set(&err, BASE_EFULL, "ADDRESS_REQUEST: the client does not read the answers");
        if (s->flow != f)
            return; /* an event, or a bad datagram, has ended it */
        f->capsule_since = 0;
        if (rv < 0) {
            abort_flow(f, NGHTTP3_H3_MESSAGE_ERROR, err.msg);
            return;
        }
    }
    if (masque_tunnel_at_boundary(&f->tunnel))
        f->capsule_since = 0;
    else if (f->capsule_since == 0)
        f->capsule_since = f->conn->h->now;
}

void masque_flow_fin(struct masque_flow *f)
{
    struct masque_stream *s = f->stream;
    if (!masque_tunnel_at_boundary(&f->tunnel)) {
        abort_flow(f, NGHTTP3_H3_MESSAGE_ERROR, "the stream ended inside a capsule");
        return;
    }
    masque_flow_end(f, MASQUE_END_CLIENT, "the client ended its stream");
    if (s->answered)
        masque_stream_finish(s);
    else
        masque_stream_abort(s, NGHTTP3_H3_REQUEST_CANCELLED);
}

/* ---- the caller's side ---- */

static struct masque_flow *find(const struct masque_h3 *h, uint64_t id)
{
    return masque_index_flow(&h->index, id);
}

static int send_setup(struct masque_flow *f, const struct base_prefix *prefix,
                      const struct base_prefix *routes, size_t n_routes)
{
    uint8_t out[MASQUE_TUNNEL_SETUP_MAX];
    size_t n = masque_tunnel_open(&f->tunnel, prefix, routes, n_routes, out, sizeof out);
    return n > 0 ? masque_stream_write(f->stream, out, n) : BASE_EFULL;
}

int masque_h3_accept(struct masque_h3 *h, uint64_t flow, const struct base_prefix *prefix,
                     const struct base_prefix *routes, size_t n_routes, const struct fence_slot *slot)
{
    struct masque_flow *f = find(h, flow);
    if (!f || f->state != MASQUE_FLOW_ASKED)
        return BASE_ENOTFOUND;
    if (n_routes > MASQUE_ROUTES_MAX)
        return BASE_EFULL;
    int rv = masque_stream_accept(f->stream);
    if (rv == BASE_OK)
        rv = send_setup(f, prefix, routes, n_routes);
    if (rv != BASE_OK) {
        abort_flow(f, NGHTTP3_H3_INTERNAL_ERROR, "the answer could not be queued");
        return BASE_EFULL;
    }
    f->state = MASQUE_FLOW_OPEN;
    f->since = h->now;
    f->slot = slot;
    f->conn->early_ready = f->conn->n_early > 0;
    ngtcp2_conn_set_keep_alive_timeout(f->conn->quic,
                                       (ngtcp2_duration)base_time_min(MASQUE_KEEP_ALIVE, h->limits.idle / 3));
    masque_conn_dirty(f->conn);
    return BASE_OK;
}

int masque_h3_refuse(struct masque_h3 *h, uint64_t flow, int status, const char *reason, unsigned retry_after)
{
    struct masque_flow *f = find(h, flow);
    if (!f || f->state != MASQUE_FLOW_ASKED)
        return BASE_ENOTFOUND;
    struct masque_stream *s = f->stream;
    if (status < 400 || status > 599)
        status = 500;
    masque_flow_end(f, MASQUE_END_LOCAL, "refused with %d: %s", status, reason);
    if (masque_stream_refuse(s, status, reason, retry_after) != BASE_OK)
        masque_stream_abort(s, NGHTTP3_H3_INTERNAL_ERROR);
    return BASE_OK;
}

int masque_h3_send(struct masque_h3 *h, uint64_t flow, const struct fence_pass *pass, const uint8_t *pkt,
                   size_t len)
{
    struct masque_flow *f = find(h, flow);
    if (!f || f->state != MASQUE_FLOW_OPEN || f->stopped)
        return BASE_ENOTFOUND;
    if (!pass || !f->slot) {
        h->stats.drop_fence++;
        return BASE_EDENIED;
    }
    if (len > masque_h3_mtu(h, flow) || len == 0)
        return BASE_ERANGE;
    const struct masque_queue_limits l = {h->limits.queue_packets, h->limits.queue_bytes,
                                          h->limits.queue_age};
    if (masque_queue_add(&f->queue, &h->pool, &l, h->now, pkt, len, &h->stats.drop_queue) != BASE_OK)
        return BASE_EFULL;
    masque_conn_dirty(f->conn);
    return BASE_OK;
}

size_t masque_h3_mtu(const struct masque_h3 *h, uint64_t flow)
{
    const struct masque_flow *f = find(h, flow);
    if (!f)
        return 0;
    size_t live = masque_flow_live_mtu(f);
    return live > MASQUE_MIN_MTU
               ? live
               : MASQUE_MIN_MTU; /* less than that ends the flow, it is never told to a sender */
}

void masque_h3_stop(struct masque_h3 *h, uint64_t flow)
{
    struct masque_flow *f = find(h, flow);
    if (!f)
        return;
    f->stopped = true;
    f->slot = NULL;
    masque_flow_drop_queue(f, &h->stats.drop_fence);
    masque_flow_drop_early(f->conn);
}

void masque_h3_hold(struct masque_h3 *h, uint64_t flow, base_time until)
{
    struct masque_flow *f = find(h, flow);
    if (f)
        f->conn->held_until = until;
}

void masque_h3_close(struct masque_h3 *h, uint64_t flow, uint64_t h3_error)
{
    struct masque_flow *f = find(h, flow);
    if (!f)
        return;
    struct masque_conn *c = f->conn;
    masque_flow_end(f, MASQUE_END_LOCAL, "closed with 0x%llx", (unsigned long long)h3_error);
    ngtcp2_ccerr_set_application_error(&c->err, h3_error, NULL, 0);
    c->close_asked = true; /* written by the next flush: we may be inside a callback of the library */
    masque_conn_dirty(c);
}
