/* SPDX-License-Identifier: Apache-2.0 */
#include "h3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include "loop/loop.h"

enum { UDP_PAYLOAD = 1444 };

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "HTTP/3 client: %s: %s\n", what, why);
    abort();
}

/* ---- HTTP/3 ---- */
static int on_header(nghttp3_conn *http, int64_t sid, int32_t token, nghttp3_rcbuf *name,
                     nghttp3_rcbuf *value, uint8_t flags, void *user, void *su)
{
    struct h3_client *c = user;
    nghttp3_vec v = nghttp3_rcbuf_get_buf(value);

    if (token == NGHTTP3_QPACK_TOKEN__STATUS && v.len == 3)
        c->status = (v.base[0] - '0') * 100 + (v.base[1] - '0') * 10 + (v.base[2] - '0');
    return 0;
}

static int credit(struct h3_client *c, int64_t sid, size_t n)
{
    (void)ngtcp2_conn_extend_max_stream_offset(c->quic, sid, n);
    ngtcp2_conn_extend_max_offset(c->quic, n);
    return 0;
}

static int on_body(nghttp3_conn *http, int64_t sid, const uint8_t *data, size_t n, void *user, void *su)
{
    struct h3_client *c = user;

    if (c->on_body)
        c->on_body(c, data, n);
    return credit(c, sid, n);
}

static int on_consume(nghttp3_conn *http, int64_t sid, size_t n, void *user, void *su)
{
    return credit(user, sid, n);
}

static int on_end_stream(nghttp3_conn *http, int64_t sid, void *user, void *su)
{
    ((struct h3_client *)user)->ended = true;
    return 0;
}

static nghttp3_ssize no_data(nghttp3_conn *http, int64_t sid, nghttp3_vec *vec, size_t n, uint32_t *flags,
                             void *user, void *su)
{
    return NGHTTP3_ERR_WOULDBLOCK; /* the request stream stays open, we have no capsules */
}

static nghttp3_nv field(const char *n, const char *v)
{
    return (nghttp3_nv){(uint8_t *)(uintptr_t)n, (uint8_t *)(uintptr_t)v, strlen(n), strlen(v), 0};
}

static int open_http(struct h3_client *c)
{
    static const nghttp3_callbacks cb = {.recv_header = on_header,
                                         .recv_data = on_body,
                                         .deferred_consume = on_consume,
                                         .end_stream = on_end_stream};
    nghttp3_settings s;
    int64_t control, enc, dec;

    nghttp3_settings_default(&s);
    s.h3_datagram = 1;
    if (nghttp3_conn_client_new(&c->http, &cb, &s, nghttp3_mem_default(), c) != 0 ||
        ngtcp2_conn_open_uni_stream(c->quic, &control, NULL) != 0 ||
        ngtcp2_conn_open_uni_stream(c->quic, &enc, NULL) != 0 ||
        ngtcp2_conn_open_uni_stream(c->quic, &dec, NULL) != 0 ||
        nghttp3_conn_bind_control_stream(c->http, control) != 0 ||
        nghttp3_conn_bind_qpack_streams(c->http, enc, dec) != 0)
        return NGTCP2_ERR_CALLBACK_FAILURE;
    return 0;
}

static void ask(struct h3_client *c)
{
    static const nghttp3_data_reader reader = {no_data};
    const nghttp3_nv nv[] = {field(":method", "CONNECT"), field(":protocol", "connect-ip"),
                             field(":scheme", "https"),   field(":authority", "masque.test"),
                             field(":path", c->path),     field("capsule-protocol", "?1")};

    if (c->asked || !c->http || ngtcp2_conn_open_bidi_stream(c->quic, &c->sid, NULL) != 0)
        return;
    c->asked = true;
    if (nghttp3_conn_submit_request(c->http, c->sid, nv, sizeof nv / sizeof nv[0], &reader, NULL) != 0)
        die("request", "nghttp3");
}

/* ---- QUIC ---- */
static int on_rx_key(ngtcp2_conn *q, ngtcp2_encryption_level level, void *user)
{
    struct h3_client *c = user;

    return level == NGTCP2_ENCRYPTION_LEVEL_1RTT && c->path ? open_http(c) : 0;
}

static int on_stream_data(ngtcp2_conn *q, uint32_t flags, int64_t sid, uint64_t off, const uint8_t *data,
                          size_t n, void *user, void *su)
{
    struct h3_client *c = user;
    nghttp3_ssize k =
        c->http ? nghttp3_conn_read_stream(c->http, sid, data, n, (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0)
                : -1;

    return k < 0 ? NGTCP2_ERR_CALLBACK_FAILURE : credit(c, sid, (size_t)k);
}

static int on_acked(ngtcp2_conn *q, int64_t sid, uint64_t off, uint64_t n, void *user, void *su)
{
    struct h3_client *c = user;

    return !c->http || nghttp3_conn_add_ack_offset(c->http, sid, n) == 0 ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

static int on_stream_close(ngtcp2_conn *q, uint32_t flags, int64_t sid, uint64_t code, void *user, void *su)
{
    struct h3_client *c = user;

    c->ended |= c->asked && sid == c->sid;
    if (c->http)
        (void)nghttp3_conn_close_stream(c->http, sid, code);
    return 0;
}

static int on_stream_reset(ngtcp2_conn *q, int64_t sid, uint64_t size, uint64_t code, void *user, void *su)
{
    struct h3_client *c = user;

    c->ended |= c->asked && sid == c->sid;
    if (c->http)
        (void)nghttp3_conn_shutdown_stream_read(c->http, sid);
    return 0;
}

static int on_datagram(ngtcp2_conn *q, uint32_t flags, const uint8_t *p, size_t n, void *user)
{
    struct h3_client *c = user;

    if (n > 2 && p[0] == 0 && p[1] == 0) /* quarter stream id of our one stream (0), context 0 */
        c->on_packet(c->arg, p + 2, n - 2);
    return 0;
}

void h3_rand(uint8_t *dst, size_t n, const ngtcp2_rand_ctx *ctx)
{
    loop_random(dst, n);
}

int h3_new_cid(ngtcp2_conn *q, ngtcp2_cid *cid, uint8_t *token, size_t n, void *user)
{
    loop_random(cid->data, n);
    cid->datalen = n;
    loop_random(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref)
{
    return ((struct h3_client *)ref->user_data)->quic;
}

gnutls_certificate_credentials_t h3_credentials(const char *dir, const char *name)
{
    gnutls_certificate_credentials_t cred;
    char cert[300], key[300];

    (void)snprintf(cert, sizeof cert, "%s/%s.crt", dir, name);
    (void)snprintf(key, sizeof key, "%s/%s.key", dir, name);
    if (gnutls_certificate_allocate_credentials(&cred) != 0 ||
        gnutls_certificate_set_x509_key_file(cred, cert, key, GNUTLS_X509_FMT_PEM) != 0)
        die(cert, "certificate or key");
    return cred;
}

void h3_tls(struct h3_client *c, gnutls_certificate_credentials_t cred, const char *alpn, unsigned flags,
            const char *priority)
{
    const gnutls_datum_t name = {(unsigned char *)(uintptr_t)alpn, (unsigned)strlen(alpn)};

    if (gnutls_init(&c->tls, GNUTLS_CLIENT | flags) != 0 ||
        gnutls_priority_set_direct(c->tls, priority, NULL) != 0 ||
        gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, cred) != 0 ||
        gnutls_alpn_set_protocols(c->tls, &name, 1, 0) != 0 ||
        ngtcp2_crypto_gnutls_configure_client_session(c->tls) != 0)
        die("TLS", "set-up");
    c->ref = (ngtcp2_crypto_conn_ref){get_conn, c};
    gnutls_session_set_ptr(c->tls, &c->ref);
}

ngtcp2_path h3_path(struct h3_client *c)
{
    return (ngtcp2_path){{(ngtcp2_sockaddr *)&c->local, sizeof c->local},
                         {(ngtcp2_sockaddr *)&c->remote, sizeof c->remote},
                         NULL};
}

void h3_open(struct h3_client *c, ngtcp2_tstamp now, unsigned streams, ngtcp2_duration idle)
{
    static const ngtcp2_callbacks cb = {
        .client_initial = ngtcp2_crypto_client_initial_cb,
        .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
        .encrypt = ngtcp2_crypto_encrypt_cb,
        .decrypt = ngtcp2_crypto_decrypt_cb,
        .hp_mask = ngtcp2_crypto_hp_mask_cb,
        .recv_retry = ngtcp2_crypto_recv_retry_cb,
        .update_key = ngtcp2_crypto_update_key_cb,
        .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
        .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
        .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
        .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
        .rand = h3_rand,
        .get_new_connection_id = h3_new_cid,
        .recv_rx_key = on_rx_key,
        .recv_stream_data = on_stream_data,
        .acked_stream_data_offset = on_acked,
        .stream_close = on_stream_close,
        .stream_reset = on_stream_reset,
        .recv_datagram = on_datagram,
    };
    ngtcp2_cid dcid = {.datalen = 18}, scid = {.datalen = 8};
    ngtcp2_settings s;
    ngtcp2_transport_params p;
    ngtcp2_path path = h3_path(c);

    loop_random(dcid.data, dcid.datalen);
    loop_random(scid.data, scid.datalen);
    ngtcp2_settings_default(&s);
    s.initial_ts = now;
    s.max_tx_udp_payload_size = UDP_PAYLOAD;
    s.no_tx_udp_payload_size_shaping = 1;
    ngtcp2_transport_params_default(&p);
    p.initial_max_streams_uni = streams;
    p.initial_max_data = p.initial_max_stream_data_bidi_local = p.initial_max_stream_data_uni = 1 << 20;
    p.max_datagram_frame_size = 65535;
    p.max_idle_timeout = idle;
    if (ngtcp2_conn_client_new(&c->quic, &dcid, &scid, &path, NGTCP2_PROTO_VER_V1, &cb, &s, &p, NULL, c) != 0)
        die("QUIC", "set-up");
    ngtcp2_conn_set_tls_native_handle(c->quic, c->tls);
}

static void write_streams(struct h3_client *c, ngtcp2_tstamp now)
{
    uint8_t buf[1500];
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;

    ngtcp2_path_storage_zero(&ps);
    for (int i = 0; i < 100; i++) {
        nghttp3_vec vec[8];
        nghttp3_ssize n_vec = 0;
        int64_t sid = -1;
        int fin = 0;
        ngtcp2_ssize taken = -1;

        if (c->http)
            n_vec = nghttp3_conn_writev_stream(c->http, &sid, &fin, vec, 8);
        if (n_vec < 0)
            n_vec = 0;
        ngtcp2_ssize n =
            ngtcp2_conn_writev_stream(c->quic, &ps.path, &pi, buf, sizeof buf, &taken,
                                      fin ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE, sid,
                                      (const ngtcp2_vec *)(const void *)vec, (size_t)n_vec, now);
        if (taken >= 0 && sid >= 0)
            (void)nghttp3_conn_add_write_offset(c->http, sid, (size_t)taken);
        if (n == NGTCP2_ERR_STREAM_DATA_BLOCKED || n == NGTCP2_ERR_STREAM_SHUT_WR ||
            n == NGTCP2_ERR_STREAM_NOT_FOUND) {
            nghttp3_conn_block_stream(c->http, sid);
            continue;
        }
        if (n <= 0) {
            c->ended |= n < 0;
            return;
        }
        (void)send(c->fd, buf, (size_t)n, 0);
    }
}

void h3_write(struct h3_client *c, ngtcp2_tstamp now)
{
    if (ngtcp2_conn_in_closing_period(c->quic) || ngtcp2_conn_in_draining_period(c->quic)) {
        c->ended = true;
        return;
    }
    if (ngtcp2_conn_get_expiry(c->quic) <= now && ngtcp2_conn_handle_expiry(c->quic, now) != 0)
        c->ended = true;
    if (c->path && ngtcp2_conn_get_handshake_completed(c->quic))
        ask(c);
    write_streams(c, now);
}

void h3_close(struct h3_client *c, ngtcp2_tstamp now)
{
    uint8_t buf[1500];
    ngtcp2_ccerr e;
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;

    ngtcp2_path_storage_zero(&ps);
    ngtcp2_ccerr_default(&e);
    ngtcp2_ccerr_set_application_error(&e, NGHTTP3_H3_NO_ERROR, NULL, 0);
    ngtcp2_ssize n = ngtcp2_conn_write_connection_close(c->quic, &ps.path, &pi, buf, sizeof buf, &e, now);
    if (n > 0)
        (void)send(c->fd, buf, (size_t)n, 0);
    nghttp3_conn_del(c->http);
    ngtcp2_conn_del(c->quic);
    gnutls_deinit(c->tls);
}
