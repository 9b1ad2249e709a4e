/* SPDX-License-Identifier: Apache-2.0
 *
 * From connections to the socket. A burst is a run of QUIC packets of one connection, all of one size but the
 * last. No burst outlives the call that builds it, so a stopped flow has nothing in flight; a burst that
 * carries inner packets is handed to the kernel only if the flow's fence is open at that moment, else it is
 * dropped whole. QUIC takes the loss as the network's: control frames are sent again, DATAGRAM frames never.
 */
#include "fence/fence.h"
#include "masque/h3_int.h"

struct burst {
    struct masque_conn *c;
    base_time (*clock)(void);
    size_t len, seg;
    unsigned packets, inner; /* QUIC packets, inner packets */
    size_t inner_bytes;
    uint8_t ecn;
    struct sockaddr_in6 remote, local;
};
enum result { AGAIN, BLOCKED, FAILED };

static bool fence_open(const struct masque_flow *f, base_time now)
{
    return f && f->slot && fence_check(f->slot, now) != NULL;
}

static void burst_send(struct burst *b)
{
    struct masque_h3 *h = b->c->h;
    if (b->len == 0)
        return;
    base_time now = b->clock();
    /* Far behind the beginning of this flush means that the thread was stopped in between, and that what it
     * holds is from before (contract section 9, "gap"). */
    if (b->inner > 0 && (now - h->flush_began > h->limits.stall || !fence_open(b->c->flow, now))) {
        h->stats.drop_fence += b->inner;
        if (b->c->flow)
            masque_flow_drop_queue(b->c->flow, &h->stats.drop_fence);
    } else {
        unsigned lost = masque_udp_send(h->udp, &b->remote, &b->local, b->ecn, h->burst, b->len, b->seg);
        h->stats.datagrams_out += b->packets - lost;
        h->stats.packets_out += b->inner;
        h->stats.bytes_out += b->inner_bytes;
    }
    b->len = b->seg = b->inner_bytes = 0;
    b->packets = b->inner = 0;
}

static void set_path(struct burst *b, const ngtcp2_path *path, uint8_t ecn)
{
    memcpy(&b->remote, path->remote.addr, sizeof b->remote);
    memcpy(&b->local, path->local.addr, sizeof b->local);
    b->ecn = ecn;
}

static bool same_path(const struct burst *b, const ngtcp2_path *path, uint8_t ecn)
{
    struct sockaddr_in6 r, l;
    memcpy(&r, path->remote.addr, sizeof r);
    memcpy(&l, path->local.addr, sizeof l);
    return ecn == b->ecn && r.sin6_port == b->remote.sin6_port && l.sin6_port == b->local.sin6_port &&
           memcmp(&r.sin6_addr, &b->remote.sin6_addr, sizeof r.sin6_addr) == 0 &&
           memcmp(&l.sin6_addr, &b->local.sin6_addr, sizeof l.sin6_addr) == 0;
}

/* The packet of `n` bytes at h->burst + b->len becomes part of the burst; what does not go together is sent
 * before. */
static void burst_add(struct burst *b, size_t n, const ngtcp2_path *path, uint8_t ecn, size_t inner)
{
    uint8_t *buf = b->c->h->burst;
    if (b->len > 0 && (n > b->seg || !same_path(b, path, ecn))) {
        size_t at = b->len;
        burst_send(b);
        memmove(buf, buf + at, n);
    }
    if (b->len == 0) {
        b->seg = n;
        set_path(b, path, ecn);
    }
    b->len += n;
    b->packets++;
    b->inner += inner > 0;
    b->inner_bytes += inner;
    if (n < b->seg || b->packets >= MASQUE_BURST_PACKETS ||
        b->len + NGTCP2_MAX_UDP_PAYLOAD_SIZE > MASQUE_BURST_BYTES)
        burst_send(b);
}

/* What one attempt to fill a packet came to. */
struct attempt {
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    ngtcp2_ssize n;
    size_t inner; /* bytes of the inner packet in it */
};

/* HTTP/3 bytes of a stream, or (sid -1) whatever QUIC itself has to say. */
static enum result try_stream(struct burst *b, struct attempt *a, size_t room, ngtcp2_tstamp ts)
{
    struct masque_conn *c = b->c;
    nghttp3_vec vec[8];
    nghttp3_ssize n_vec = 0;
    int64_t sid = -1;
    int fin = 0;
    if (c->http && ngtcp2_conn_get_max_data_left(c->quic) > 0) {
        n_vec = nghttp3_conn_writev_stream(c->http, &sid, &fin, vec, sizeof vec / sizeof vec[0]);
        if (n_vec < 0) {
            ngtcp2_ccerr_set_application_error(&c->err, nghttp3_err_infer_quic_app_error_code((int)n_vec),
                                               NULL, 0);
            a->n = NGTCP2_ERR_CALLBACK_FAILURE;
            return FAILED;
        }
    }
    if (sid < 0 && c->flow && c->flow->queue.head) {
        a->n = 0;
        return AGAIN; /* nothing on streams: the caller takes a datagram */
    }
    ngtcp2_ssize taken = -1;
    ngtcp2_vec data[8];
    for (nghttp3_ssize i = 0; i < n_vec; i++)
        data[i] = (ngtcp2_vec){vec[i].base, vec[i].len};
    a->n = ngtcp2_conn_writev_stream(c->quic, &a->ps.path, &a->pi, c->h->burst + b->len, room, &taken,
                                     fin ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE, sid,
                                     data, (size_t)n_vec, ts);
    if (a->n == NGTCP2_ERR_STREAM_DATA_BLOCKED) {
        nghttp3_conn_block_stream(c->http, sid);
        a->n = 0;
        return AGAIN;
    }
    if (a->n == NGTCP2_ERR_STREAM_SHUT_WR || a->n == NGTCP2_ERR_STREAM_NOT_FOUND) {
        nghttp3_conn_shutdown_stream_write(c->http, sid);
        a->n = 0;
        return AGAIN;
    }
    if (a->n < 0)
        return FAILED;
    if (taken >= 0 && sid >= 0) {
        int rv = nghttp3_conn_add_write_offset(c->http, sid, (size_t)taken);
        if (rv != 0) {
            ngtcp2_ccerr_set_application_error(&c->err, nghttp3_err_infer_quic_app_error_code(rv), NULL, 0);
            a->n = NGTCP2_ERR_CALLBACK_FAILURE;
            return FAILED;
        }
    }
    return a->n == 0 ? BLOCKED : AGAIN;
}

/* Takes away packets that are too old, or too long for the path as it is now: the library would answer "not
 * now" to one that never fits, and everything behind it would wait for ever. */
static void clean_head(struct masque_flow *f)
{
    struct masque_h3 *h = f->conn->h;
    size_t live = masque_flow_live_mtu(f);
    while (f->queue.head && (h->now - f->queue.head->at > h->limits.queue_age || f->queue.head->len > live)) {
        masque_queue_pop(&f->queue, &f->conn->h->pool);
        h->stats.drop_queue++;
    }
}

static enum result try_datagram(struct burst *b, struct attempt *a, size_t room, ngtcp2_tstamp ts)
{
    struct masque_conn *c = b->c;
    struct masque_flow *f = c->flow;
    uint8_t prefix[9];
    clean_head(f);
    if (!f->queue.head) {
        a->n = 0;
        return AGAIN;
    }
    int accepted = 0;
    ngtcp2_vec v[2] = {{prefix, masque_flow_prefix(f, prefix)}, {f->queue.head->data, f->queue.head->len}};
    a->n = ngtcp2_conn_writev_datagram(c->quic, &a->ps.path, &a->pi, c->h->burst + b->len, room, &accepted,
                                       NGTCP2_WRITE_DATAGRAM_FLAG_NONE, 0, v, 2, ts);
    if (a->n == NGTCP2_ERR_INVALID_ARGUMENT || a->n == NGTCP2_ERR_INVALID_STATE) {
        masque_queue_pop(&f->queue, &f->conn->h->pool); /* the client cannot take it */
        c->h->stats.drop_queue++;
        a->n = 0;
        return AGAIN;
    }
    if (a->n < 0)
        return FAILED;
    if (accepted) {
        a->inner = f->queue.head->len;
        masque_queue_pop(&f->queue, &f->conn->h->pool);
    }
    return a->n == 0 ? BLOCKED : AGAIN; /* n > 0 without `accepted` is a control packet: send it, try again */
}

static void watch_mtu(struct masque_conn *c)
{
    struct masque_flow *f = c->flow;
    if (!f || f->state != MASQUE_FLOW_OPEN)
        return;
    if (masque_flow_live_mtu(f) >= MASQUE_MIN_MTU)
        f->mtu_low_since = 0;
    else if (f->mtu_low_since == 0)
        f->mtu_low_since = c->h->now;
}

/* One packet after the other until there is nothing to send or no leave to send it. 0 or the library's error. */
static int fill(struct burst *b, size_t quantum, ngtcp2_tstamp ts)
{
    struct masque_conn *c = b->c;
    for (size_t total = 0; total < quantum;) {
        size_t room = ngtcp2_conn_get_max_tx_udp_payload_size(c->quic);
        struct attempt a = {.n = 0};
        ngtcp2_path_storage_zero(&a.ps);
        enum result r = try_stream(b, &a, room, ts);
        if (r == AGAIN && a.n == 0 && c->flow && c->flow->queue.head)
            r = try_datagram(b, &a, room, ts);
        if (r == FAILED)
            return (int)a.n;
        if (r == BLOCKED)
            break;
        if (a.n > 0) {
            total += (size_t)a.n;
            burst_add(b, (size_t)a.n, &a.ps.path, a.pi.ecn, a.inner);
        }
    }
    return 0;
}

void masque_write_conn(struct masque_conn *c, base_time (*clock)(void))
{
    if (c->dead)
        return;
    if (c->close_asked) {
        masque_conn_close(c, c->err.error_code, MASQUE_END_LOCAL, "closed");
        return;
    }
    masque_flow_deliver_early(c);
    struct burst b = {.c = c, .clock = clock};
    base_time now = c->h->now = base_time_max(clock(), c->h->now); /* ngtcp2 wants times that never go back */
    if (c->flow && c->flow->queue.head) {
        masque_queue_stamp(&c->flow->queue, now);
        if (!fence_open(c->flow, now))
            masque_flow_drop_queue(c->flow, &c->h->stats.drop_fence);
    }
    ngtcp2_tstamp ts = (ngtcp2_tstamp)now;
    int rv = fill(&b, ngtcp2_conn_get_send_quantum(c->quic), ts);
    burst_send(&b);
    if (rv != 0) {
        masque_conn_fail(c, rv);
        return;
    }
    ngtcp2_conn_update_pkt_tx_time(c->quic, ts);
    watch_mtu(c);
    masque_conn_reschedule(c);
}

void masque_write_control(struct masque_conn *c, const uint8_t *p, size_t n, const ngtcp2_path *path)
{
    struct sockaddr_in6 remote, local;
    memcpy(&remote, path->remote.addr, sizeof remote);
    memcpy(&local, path->local.addr, sizeof local);
    if (masque_udp_send(c->h->udp, &remote, &local, 0, p, n, n) == 0)
        c->h->stats.datagrams_out++;
}
