/* SPDX-License-Identifier: Apache-2.0
 *
 * One QUIC connection: its start, its callbacks, its end.
 *
 * Order of the end: nghttp3, ngtcp2, TLS. Identity is taken only once the handshake has completed, since the
 * certificate is checked before the signature that proves its key.
 */
#include "loop/loop.h"
#include "masque/h3_int.h"
#include "masque/peer_verify.h"

static const uint16_t pmtud_probes[] = {1314, 1331, 1406, 1444};

/* ---- callbacks ---- */

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref)
{
    return ((struct masque_conn *)ref->user_data)->quic;
}

static void on_rand(uint8_t *dst, size_t n, const ngtcp2_rand_ctx *ctx)
{
    loop_random(dst, n);
}

static int on_new_cid(ngtcp2_conn *q, ngtcp2_cid *cid, uint8_t *token, size_t n, void *user)
{
    struct masque_conn *c = user;
    loop_random(cid->data, n);
    masque_thread_mark(cid->data, &c->h->threads);
    cid->datalen = n;
    if (ngtcp2_crypto_generate_stateless_reset_token(token, c->h->secret, sizeof c->h->secret, cid) != 0 ||
        masque_index_add_cid(&c->h->index, c, cid) != BASE_OK)
        return NGTCP2_ERR_CALLBACK_FAILURE;
    return 0;
}

static int on_remove_cid(ngtcp2_conn *q, const ngtcp2_cid *cid, void *user)
{
    struct masque_conn *c = user;
    masque_index_del_cid(&c->h->index, cid);
    return 0;
}

static int on_handshake_completed(ngtcp2_conn *q, void *user)
{
    struct masque_conn *c = user;
    const uint8_t *der;
    size_t n;
    uint8_t digest[BASE_SHA256_SIZE];
    int rv = masque_qtls_peer_der(c->tls, &der, &n);
    if (rv == BASE_ENOTFOUND && c->h->bearer) {
        c->identity = MASQUE_IDENTITY_ABSENT; /* so far: its requests may carry tokens */
    } else {
        if (rv != BASE_OK || base_sha256(digest, der, n, NULL, 0) != BASE_OK)
            return NGTCP2_ERR_CALLBACK_FAILURE;
        base_hex(c->credential_id, digest, sizeof digest);
        c->identity = masque_peer_uri(der, n, c->uri, sizeof c->uri);
    }
    c->handshaken = true;
    masque_count_shaken(c->h->all);
    c->lonely_since = c->h->now;
    if (c->h->draining)
        c->close_at = c->h->now + BASE_SEC;
    return 0;
}

static int on_tx_key(ngtcp2_conn *q, ngtcp2_encryption_level level, void *user)
{
    return level == NGTCP2_ENCRYPTION_LEVEL_1RTT ? masque_http_open(user) : 0;
}

static int http_error(struct masque_conn *c, int rv)
{
    if (c->err.type != NGTCP2_CCERR_TYPE_APPLICATION) /* else a callback of ours has said why */
        ngtcp2_ccerr_set_application_error(&c->err, nghttp3_err_infer_quic_app_error_code(rv),
                                           (const uint8_t *)nghttp3_strerror(rv),
                                           strlen(nghttp3_strerror(rv)));
    return NGTCP2_ERR_CALLBACK_FAILURE;
}

static int on_stream_data(ngtcp2_conn *q, uint32_t flags, int64_t sid, uint64_t offset, const uint8_t *data,
                          size_t n, void *user, void *stream_user)
{
    struct masque_conn *c = user;
    if (!c->http || !c->handshaken)
        return NGTCP2_ERR_CALLBACK_FAILURE;
    int fin = (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0;
#if NGHTTP3_VERSION_NUM >= 0x010c00
    nghttp3_ssize used = nghttp3_conn_read_stream2(c->http, sid, data, n, fin, (nghttp3_tstamp)c->h->now);
#else
    nghttp3_ssize used = nghttp3_conn_read_stream(c->http, sid, data, n, fin);
#endif
    if (used < 0)
        return http_error(c, (int)used);
    ngtcp2_conn_extend_max_stream_offset(q, sid, (uint64_t)used);
    ngtcp2_conn_extend_max_offset(q, (uint64_t)used);
    return 0;
}

static int on_acked(ngtcp2_conn *q, int64_t sid, uint64_t offset, uint64_t n, void *user, void *stream_user)
{
    struct masque_conn *c = user;
    int rv = c->http ? nghttp3_conn_add_ack_offset(c->http, sid, n) : 0;
    return rv == 0 ? 0 : http_error(c, rv);
}

static int on_stream_close(ngtcp2_conn *q, uint32_t flags, int64_t sid, uint64_t code, void *user,
                           void *stream_user)
{
    struct masque_conn *c = user;
    if (!(flags & NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET))
        code = NGHTTP3_H3_NO_ERROR;
    if (c->http) {
        int rv = nghttp3_conn_close_stream(c->http, sid, code);
        if (rv != 0 && rv != NGHTTP3_ERR_STREAM_NOT_FOUND)
            return http_error(c, rv);
    }
    if (ngtcp2_is_bidi_stream(sid)) {
        ngtcp2_conn_extend_max_streams_bidi(q, 1);
        c->streams_granted++;
    }
    return 0;
}

void masque_conn_count_reset(struct masque_conn *c, struct masque_stream *s)
{
    static const char why[] = "too many streams were reset";
    if (s && s->counted)
        return; /* one side's reset, and the other's answer to it */
    if (s)
        s->counted = true;
    if (c->h->now - c->resets_since > 60 * BASE_SEC) {
        c->resets_since = c->h->now;
        c->n_resets = 0;
    }
    if (++c->n_resets <= c->h->limits.resets || c->close_asked || c->dead)
        return;
    c->h->stats.floods++;
    masque_flow_end(c->flow, MASQUE_END_PROTOCOL, "%s", why);
    ngtcp2_ccerr_set_application_error(&c->err, NGHTTP3_H3_EXCESSIVE_LOAD, (const uint8_t *)why,
                                       sizeof why - 1);
    c->close_asked = true; /* written by the next flush: we are inside a callback of the library */
    masque_conn_dirty(c);
}

static void end_by_client(struct masque_conn *c, int64_t sid, const char *how, uint64_t code)
{
    struct masque_stream *s = masque_stream_find(c, sid);
    if (s && s->flow) {
        masque_flow_end(s->flow, MASQUE_END_CLIENT, "the client %s its stream, code 0x%llx", how,
                        (unsigned long long)code);
        masque_stream_abort(s, NGHTTP3_H3_NO_ERROR);
    }
}

static int on_stream_reset(ngtcp2_conn *q, int64_t sid, uint64_t final_size, uint64_t code, void *user,
                           void *stream_user)
{
    struct masque_conn *c = user;
    end_by_client(c, sid, "reset", code);
    masque_conn_count_reset(c, masque_stream_find(c, sid));
    int rv = c->http ? nghttp3_conn_shutdown_stream_read(c->http, sid) : 0;
    return rv == 0 ? 0 : http_error(c, rv);
}

static int on_stop_sending(ngtcp2_conn *q, int64_t sid, uint64_t code, void *user, void *stream_user)
{
    struct masque_conn *c = user;
    end_by_client(c, sid, "stopped", code);
    int rv = c->http ? nghttp3_conn_shutdown_stream_read(c->http, sid) : 0;
    return rv == 0 ? 0 : http_error(c, rv);
}

static int on_max_stream_data(ngtcp2_conn *q, int64_t sid, uint64_t max, void *user, void *stream_user)
{
    struct masque_conn *c = user;
    int rv = c->http ? nghttp3_conn_unblock_stream(c->http, sid) : 0;
    return rv == 0 ? 0 : http_error(c, rv);
}

static int on_datagram(ngtcp2_conn *q, uint32_t flags, const uint8_t *data, size_t n, void *user)
{
    return masque_flow_datagram(user, data, n);
}

static const ngtcp2_callbacks callbacks = {
    .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
    .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
    .encrypt = ngtcp2_crypto_encrypt_cb,
    .decrypt = ngtcp2_crypto_decrypt_cb,
    .hp_mask = ngtcp2_crypto_hp_mask_cb,
    .update_key = ngtcp2_crypto_update_key_cb,
    .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
    .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
    .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
    .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
    .rand = on_rand,
    .get_new_connection_id = on_new_cid,
    .remove_connection_id = on_remove_cid,
    .handshake_completed = on_handshake_completed,
    .recv_tx_key = on_tx_key,
    .recv_stream_data = on_stream_data,
    .acked_stream_data_offset = on_acked,
    .stream_close = on_stream_close,
    .stream_reset = on_stream_reset,
    .stream_stop_sending = on_stop_sending,
    .extend_max_stream_data = on_max_stream_data,
    .recv_datagram = on_datagram,
};

/* ---- start ---- */

static void fill_settings(const struct masque_h3 *h, const ngtcp2_pkt_hd *hd, const ngtcp2_cid *odcid,
                          ngtcp2_settings *ret)
{
    ngtcp2_settings_default(ret);
    ret->initial_ts = (ngtcp2_tstamp)h->now;
    ret->handshake_timeout = (ngtcp2_duration)h->limits.handshake;
    ret->cc_algo = NGTCP2_CC_ALGO_CUBIC;
    ret->max_tx_udp_payload_size = MASQUE_UDP_MAX;
    ret->pmtud_probes = pmtud_probes;
    ret->pmtud_probeslen = sizeof pmtud_probes / sizeof pmtud_probes[0];
    if (odcid) {
        ret->token = hd->token;
        ret->tokenlen = hd->tokenlen;
        ret->token_type = NGTCP2_TOKEN_TYPE_RETRY;
    }
}

static int fill_params(const struct masque_h3 *h, const ngtcp2_pkt_hd *hd, const ngtcp2_cid *odcid,
                       const ngtcp2_cid *scid, ngtcp2_transport_params *ret)
{
    ngtcp2_transport_params_default(ret);
    ret->original_dcid = odcid ? *odcid : hd->dcid;
    ret->original_dcid_present = 1;
    if (odcid) {
        ret->retry_scid = hd->dcid;
        ret->retry_scid_present = 1;
    }
    ret->initial_max_data = 256 * 1024;
    ret->initial_max_stream_data_bidi_remote = 64 * 1024;
    ret->initial_max_stream_data_uni = 64 * 1024;
    ret->initial_max_streams_bidi = MASQUE_STREAMS_MAX;
    ret->initial_max_streams_uni = MASQUE_STREAMS_MAX;
    ret->max_idle_timeout = (ngtcp2_duration)h->limits.idle;
    ret->max_datagram_frame_size = 65535;
    ret->active_connection_id_limit = 4;
    ret->stateless_reset_token_present = 1;
    return ngtcp2_crypto_generate_stateless_reset_token(ret->stateless_reset_token, h->secret,
                                                        sizeof h->secret, scid);
}

static void free_conn(struct masque_conn *c)
{
    masque_flow_drop_early(c);
    masque_index_del_conn_cids(&c->h->index, c);
    nghttp3_conn_del(c->http);
    masque_stream_free_all(c);
    ngtcp2_conn_del(c->quic);
    c->quic = NULL;
    masque_qtls_free(c->tls);
    base_free(c);
}

static void link_conn(struct masque_h3 *h, struct masque_conn *c, const struct masque_udp_in *in)
{
    c->source = in->remote.sin6_addr; /* the caller has counted it */
    c->next = h->conns;
    if (h->conns)
        h->conns->prev = c;
    h->conns = c;
    h->n_conns++;
    h->stats.connections++;
    masque_heap_set(&h->heap, &c->wake, h->now);
}

struct masque_conn *masque_conn_new(struct masque_h3 *h, const struct masque_new_conn *n)
{
    if (masque_heap_reserve(&h->heap) != BASE_OK)
        return NULL;
    struct masque_conn *c = base_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->h = h;
    masque_wake_init(&c->wake, c);
    c->highest_sid = -4;
    c->streams_granted = MASQUE_STREAMS_MAX;
    c->ref = (ngtcp2_crypto_conn_ref){.get_conn = get_conn, .user_data = c};
    ngtcp2_ccerr_default(&c->err);
    masque_address_text(c->peer, sizeof c->peer, &n->in->remote);

    ngtcp2_settings settings;
    ngtcp2_transport_params params;
    ngtcp2_cid scid = {.datalen = MASQUE_CID_LEN};
    struct sockaddr_in6 local = n->in->local, remote = n->in->remote;
    ngtcp2_path path = {.local = {(ngtcp2_sockaddr *)&local, sizeof local},
                        .remote = {(ngtcp2_sockaddr *)&remote, sizeof remote}};
    loop_random(scid.data, scid.datalen);
    masque_thread_mark(scid.data, &h->threads);
    fill_settings(h, n->hd, n->odcid, &settings);
    if (fill_params(h, n->hd, n->odcid, &scid, &params) != 0 ||
        ngtcp2_conn_server_new(&c->quic, &n->hd->scid, &scid, &path, n->hd->version, &callbacks, &settings,
                               &params, NULL, c) != 0 ||
        masque_qtls_new(&c->tls, h->tls, &c->ref) != BASE_OK ||
        masque_index_add_cid(&h->index, c, &scid) != BASE_OK ||
        masque_index_add_cid(&h->index, c, &n->hd->dcid) != BASE_OK) {
        free_conn(c);
        return NULL;
    }
    ngtcp2_conn_set_tls_native_handle(c->quic, masque_qtls_native_handle(c->tls));
    link_conn(h, c, n->in);
    return c;
}

/* ---- life ---- */

void masque_conn_dirty(struct masque_conn *c)
{
    if (c->dirty || c->dead)
        return;
    c->dirty = true;
    c->dirty_next = NULL;
    *c->h->dirty_tail = c;
    c->h->dirty_tail = &c->dirty_next;
}

void masque_conn_input(struct masque_conn *c, const struct masque_udp_in *in)
{
    if (c->dead)
        return;
    struct sockaddr_in6 local = in->local, remote = in->remote;
    ngtcp2_path path = {.local = {(ngtcp2_sockaddr *)&local, sizeof local},
                        .remote = {(ngtcp2_sockaddr *)&remote, sizeof remote}};
    ngtcp2_pkt_info pi = {.ecn = in->ecn};
    int rv = ngtcp2_conn_read_pkt(c->quic, &path, &pi, in->data, in->len, (ngtcp2_tstamp)c->h->now);
    if (rv != 0)
        masque_conn_fail(c, rv);
    else
        masque_conn_dirty(c);
}

static base_time capsule_deadline(const struct masque_flow *f)
{
    return f->capsule_since ? base_time_add(f->capsule_since, f->conn->h->limits.capsule) : BASE_TIME_NEVER;
}

static base_time flow_deadline(const struct masque_conn *c)
{
    const struct masque_flow *f = c->flow;
    switch (f->state) {
    case MASQUE_FLOW_SETTINGS:
        return base_time_add(f->since, c->h->limits.handshake);
    case MASQUE_FLOW_ASKED:
        return base_time_add(f->since, c->h->limits.answer);
    case MASQUE_FLOW_OPEN:
        return base_time_min(capsule_deadline(f), f->mtu_low_since
                                                      ? base_time_add(f->mtu_low_since, MASQUE_MTU_PATIENCE)
                                                      : BASE_TIME_NEVER);
    case MASQUE_FLOW_ENDED:
        break;
    }
    return BASE_TIME_NEVER;
}

/* Our own deadlines; QUIC's are ngtcp2's. */
static base_time own_deadline(const struct masque_conn *c)
{
    base_time t = c->close_at ? c->close_at : BASE_TIME_NEVER;
    if (c->headers_since)
        t = base_time_min(t, base_time_add(c->headers_since, c->h->limits.headers));
    if (c->flow)
        return base_time_min(t, flow_deadline(c));
    return c->lonely_since ? base_time_min(t, base_time_add(c->lonely_since, c->h->limits.idle)) : t;
}

void masque_conn_reschedule(struct masque_conn *c)
{
    if (c->dead)
        return;
    ngtcp2_tstamp q = ngtcp2_conn_get_expiry(c->quic);
    base_time t = q > (ngtcp2_tstamp)BASE_TIME_NEVER ? BASE_TIME_NEVER : (base_time)q;
    /* The library names the end of pacing also when nothing waits for it: a few microseconds after every
     * send. Its other timers have a granularity of a millisecond (RFC 9002 section 6.1.2). */
    if (!c->flow || !c->flow->queue.head)
        t = base_time_max(t, c->h->now + BASE_MS);
    masque_heap_set(&c->h->heap, &c->wake, base_time_min(t, own_deadline(c)));
}

static void flow_expired(struct masque_conn *c)
{
    struct masque_flow *f = c->flow;
    struct masque_stream *s = f->stream;
    switch (f->state) {
    case MASQUE_FLOW_SETTINGS:
        masque_flow_end(f, MASQUE_END_PROTOCOL, "no SETTINGS from the client");
        (void)masque_stream_refuse(s, 400, "no SETTINGS from the client; SETTINGS_H3_DATAGRAM = 1 is needed",
                                   0);
        break;
    case MASQUE_FLOW_ASKED:
        masque_flow_end(f, MASQUE_END_LOCAL, "no answer in time");
        (void)masque_stream_refuse(s, 503, "not admitted in time; try again", 5);
        break;
    case MASQUE_FLOW_OPEN:
        if (capsule_deadline(f) <= c->h->now) {
            masque_flow_end(f, MASQUE_END_IDLE, "a capsule was begun and not finished in time");
            masque_stream_abort(s, NGHTTP3_H3_MESSAGE_ERROR);
            break;
        }
        masque_flow_end(f, MASQUE_END_MTU, "the path to %s carries %zu bytes; a tunnel needs %d", c->peer,
                        ngtcp2_conn_get_path_max_tx_udp_payload_size(c->quic), MASQUE_MIN_MTU);
        masque_stream_abort(s, NGHTTP3_H3_CONNECT_ERROR);
        break;
    case MASQUE_FLOW_ENDED:
        break;
    }
}

void masque_conn_expire(struct masque_conn *c)
{
    base_time now = c->h->now;
    int rv = 0;
    if (ngtcp2_conn_get_expiry(c->quic) <= (ngtcp2_tstamp)now)
        rv = ngtcp2_conn_handle_expiry(c->quic, (ngtcp2_tstamp)now);
    if (rv != 0) {
        masque_conn_fail(c, rv);
        return;
    }
    if (own_deadline(c) <= now) {
        if (c->headers_since && base_time_add(c->headers_since, c->h->limits.headers) <= now)
            masque_stream_late(c);
        if (c->flow && flow_deadline(c) <= now) {
            flow_expired(c);
        } else if (own_deadline(c) <= now) {
            masque_conn_close(c, NGHTTP3_H3_NO_ERROR, MASQUE_END_LOCAL, "no tunnel on this connection");
            return;
        }
    }
    masque_conn_dirty(c);
}

void masque_conn_goaway(struct masque_conn *c)
{
    if (c->goaway || !c->http)
        return;
    c->goaway = true;
    if (nghttp3_conn_submit_shutdown_notice(c->http) != 0 || nghttp3_conn_shutdown(c->http) != 0)
        c->goaway = false;
    masque_conn_dirty(c);
}

/* ---- end ---- */

static void die(struct masque_conn *c)
{
    if (c->dead)
        return;
    c->dead = true;
    masque_heap_remove(&c->h->heap, &c->wake);
    c->dying_next = c->h->dying;
    c->h->dying = c;
}

static void write_close(struct masque_conn *c)
{
    uint8_t out[NGTCP2_MAX_UDP_PAYLOAD_SIZE];
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    ngtcp2_path_storage_zero(&ps);
    ngtcp2_ssize n = ngtcp2_conn_write_connection_close(c->quic, &ps.path, &pi, out, sizeof out, &c->err,
                                                        (ngtcp2_tstamp)c->h->now);
    if (n > 0)
        masque_write_control(c, out, (size_t)n, &ps.path);
    masque_accept_goodbye(c->h, c);
}

static void log_failure(struct masque_conn *c, int rv)
{
    char tls[200];
    if (c->handshaken) {
        loop_log(c->h->log, LOOP_DEBUG, "masque_connection_failed", "connection ended with an error",
                 LOG_STR("peer", c->peer), LOG_STR("reason", ngtcp2_strerror(rv)),
                 LOG_INT("code", c->err.error_code));
        return;
    }
    c->h->stats.handshakes_failed++;
    masque_qtls_describe(c->tls, tls, sizeof tls);
    loop_log(c->h->log, LOOP_INFO, "masque_handshake_failed", "client was not let in: TLS handshake failed",
             LOG_STR("peer", c->peer), LOG_STR("reason", ngtcp2_strerror(rv)), LOG_STR("tls", tls),
             LOG_INT("code", c->err.error_code));
}

static void fail_quietly(struct masque_conn *c, int rv)
{
    const ngtcp2_ccerr *e = ngtcp2_conn_get_ccerr(c->quic);
    bool idle = rv == NGTCP2_ERR_IDLE_CLOSE || rv == NGTCP2_ERR_HANDSHAKE_TIMEOUT;
    if (!c->handshaken)
        c->h->stats.handshakes_failed++;
    if (idle)
        masque_flow_end(c->flow, MASQUE_END_IDLE, "nothing was heard from the client");
    else
        masque_flow_end(c->flow, MASQUE_END_CLIENT, "the client closed the connection, code 0x%llx",
                        (unsigned long long)e->error_code);
    loop_log(c->h->log, LOOP_DEBUG, "masque_connection_ended", "connection ended", LOG_STR("peer", c->peer),
             LOG_STR("reason", ngtcp2_strerror(rv)), LOG_INT("code", e->error_code));
}

void masque_conn_fail(struct masque_conn *c, int rv)
{
    if (c->dead)
        return;
    if (rv == NGTCP2_ERR_IDLE_CLOSE || rv == NGTCP2_ERR_HANDSHAKE_TIMEOUT || rv == NGTCP2_ERR_DRAINING ||
        rv == NGTCP2_ERR_DROP_CONN || rv == NGTCP2_ERR_RETRY) {
        fail_quietly(c, rv);
        die(c);
        return;
    }
    if (rv == NGTCP2_ERR_CRYPTO) {
        uint8_t alert = masque_qtls_alert(c->tls, ngtcp2_conn_get_tls_alert(c->quic));
        ngtcp2_ccerr_set_tls_alert(&c->err, alert, NULL, 0);
    } else if (c->err.type == NGTCP2_CCERR_TYPE_TRANSPORT && c->err.error_code == NGTCP2_NO_ERROR) {
        ngtcp2_ccerr_set_liberr(&c->err, rv, NULL, 0);
    }
    log_failure(c, rv);
    masque_flow_end(c->flow, MASQUE_END_PROTOCOL, "connection error 0x%llx (%s)",
                    (unsigned long long)c->err.error_code,
                    c->err.reasonlen ? "see code" : ngtcp2_strerror(rv));
    write_close(c);
    die(c);
}

void masque_conn_close(struct masque_conn *c, uint64_t h3_error, enum masque_end why, const char *detail)
{
    if (c->dead)
        return;
    masque_flow_end(c->flow, why, "%s", detail);
    ngtcp2_ccerr_set_application_error(&c->err, h3_error, NULL, 0);
    write_close(c);
    die(c);
}

void masque_conn_reap(struct masque_h3 *h)
{
    while (h->dying) {
        struct masque_conn *c = h->dying;
        h->dying = c->dying_next;
        if (c->dirty) {
            struct masque_conn **p = &h->dirty;
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
        masque_count_leave(h->all, &c->source, c->handshaken);
        free_conn(c);
    }
}
