/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/testclient_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/loop.h"

#define MUST(x)                                                                                              \
    do {                                                                                                     \
        if (!(x)) {                                                                                          \
            fprintf(stderr, "testclient: %s failed\n", #x);                                                  \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* ---- HTTP/3 ---- */

static nghttp3_ssize h_read(nghttp3_conn *http, int64_t sid, nghttp3_vec *vec, size_t n_vec, uint32_t *flags,
                            void *user, void *su)
{
    struct testclient_stream *s = su;
    size_t n = s->n_out - s->n_sent;
    if (s->fin)
        *flags |= NGHTTP3_DATA_FLAG_EOF;
    if (n == 0)
        return s->fin ? 0 : NGHTTP3_ERR_WOULDBLOCK;
    vec[0] = (nghttp3_vec){s->out + s->n_sent, n};
    s->n_sent = s->n_out;
    return 1;
}

static int h_header(nghttp3_conn *http, int64_t sid, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value,
                    uint8_t flags, void *user, void *su)
{
    struct testclient_stream *s = su;
    nghttp3_vec n = nghttp3_rcbuf_get_buf(name), v = nghttp3_rcbuf_get_buf(value);
    if (token == NGHTTP3_QPACK_TOKEN__STATUS) {
        char text[8] = "";
        memcpy(text, v.base, v.len < 7 ? v.len : 7);
        s->status = (int)strtol(text, NULL, 10);
    }
    size_t at = strlen(s->fields);
    (void)snprintf(s->fields + at, sizeof s->fields - at, "%.*s: %.*s\n", (int)n.len, (const char *)n.base,
                   (int)v.len, (const char *)v.base);
    if (n.len == 16 && memcmp(n.base, "www-authenticate", 16) == 0 && v.len < sizeof s->www_authenticate)
        memcpy(s->www_authenticate, v.base, v.len);
    if (n.len == 11 && memcmp(n.base, "retry-after", 11) == 0 && v.len < sizeof s->retry_after)
        memcpy(s->retry_after, v.base, v.len);
    return 0;
}

static int h_data(nghttp3_conn *http, int64_t sid, const uint8_t *p, size_t n, void *user, void *su)
{
    struct testclient *c = user;
    struct testclient_stream *s = su;
    MUST(s->n_body + n <= sizeof s->body);
    memcpy(s->body + s->n_body, p, n);
    s->n_body += n;
    ngtcp2_conn_extend_max_stream_offset(c->quic, sid, n);
    ngtcp2_conn_extend_max_offset(c->quic, n);
    return 0;
}

static int h_consume(nghttp3_conn *http, int64_t sid, size_t n, void *user, void *su)
{
    struct testclient *c = user;
    ngtcp2_conn_extend_max_stream_offset(c->quic, sid, n);
    ngtcp2_conn_extend_max_offset(c->quic, n);
    return 0;
}

static int h_end(nghttp3_conn *http, int64_t sid, void *user, void *su)
{
    struct testclient_stream *s = su;
    if (s)
        s->ended = true;
    return 0;
}

static int h_settings(nghttp3_conn *http, const nghttp3_settings *settings, void *user)
{
    ((struct testclient *)user)->got_settings = settings->h3_datagram;
    ((struct testclient *)user)->max_field_section_size = settings->max_field_section_size;
    return 0;
}

static int h_shutdown(nghttp3_conn *http, int64_t id, void *user)
{
    ((struct testclient *)user)->goaway = true;
    return 0;
}

#if NGHTTP3_VERSION_NUM >= 0x010b00
static void h_rand(uint8_t *p, size_t n)
{
    loop_random(p, n);
}
#endif

static int http_open(struct testclient *c)
{
    static const nghttp3_callbacks cb = {
        .recv_header = h_header,
        .recv_data = h_data,
        .deferred_consume = h_consume,
        .end_stream = h_end,
        .recv_settings = h_settings,
        .shutdown = h_shutdown,
#if NGHTTP3_VERSION_NUM >= 0x010b00
        .rand = h_rand,
#endif
    };
    nghttp3_settings s;
    int64_t a, b, d;
    nghttp3_settings_default(&s);
    s.h3_datagram = !c->cfg.no_h3_datagram;
    MUST(nghttp3_conn_client_new(&c->http, &cb, &s, nghttp3_mem_default(), c) == 0);
    MUST(ngtcp2_conn_open_uni_stream(c->quic, &a, NULL) == 0 &&
         ngtcp2_conn_open_uni_stream(c->quic, &b, NULL) == 0 &&
         ngtcp2_conn_open_uni_stream(c->quic, &d, NULL) == 0);
    MUST(nghttp3_conn_bind_control_stream(c->http, a) == 0 &&
         nghttp3_conn_bind_qpack_streams(c->http, b, d) == 0);
    return 0;
}

/* ---- QUIC ---- */

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref)
{
    return ((struct testclient *)ref->user_data)->quic;
}

static void q_rand(uint8_t *p, size_t n, const ngtcp2_rand_ctx *ctx)
{
    loop_random(p, n);
}

static int q_new_cid(ngtcp2_conn *q, ngtcp2_cid *cid, uint8_t *token, size_t n, void *user)
{
    loop_random(cid->data, n);
    cid->datalen = n;
    loop_random(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}

static int q_handshake(ngtcp2_conn *q, void *user)
{
    ((struct testclient *)user)->handshaken = true;
    return 0;
}

static int q_rx_key(ngtcp2_conn *q, ngtcp2_encryption_level level, void *user)
{
    struct testclient *c = user;
    return level == NGTCP2_ENCRYPTION_LEVEL_1RTT && !c->cfg.no_http ? http_open(c) : 0;
}

static void keep_raw(struct testclient *c, int64_t sid, const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < c->n_raw && c->raw[i].id != sid)
        i++;
    if (i == sizeof c->raw / sizeof c->raw[0])
        return;
    if (i == c->n_raw)
        c->raw[c->n_raw++].id = sid;
    if (n > sizeof c->raw[i].data - c->raw[i].n)
        n = sizeof c->raw[i].data - c->raw[i].n;
    memcpy(c->raw[i].data + c->raw[i].n, p, n);
    c->raw[i].n += n;
}

static int q_crypto(ngtcp2_conn *q, ngtcp2_encryption_level level, uint64_t off, const uint8_t *p, size_t n,
                    void *user)
{
    if (level == NGTCP2_ENCRYPTION_LEVEL_1RTT)
        ((struct testclient *)user)->post_handshake += n;
    return ngtcp2_crypto_recv_crypto_data_cb(q, level, off, p, n, user);
}

static int q_stream_data(ngtcp2_conn *q, uint32_t flags, int64_t sid, uint64_t off, const uint8_t *p,
                         size_t n, void *user, void *su)
{
    struct testclient *c = user;
    if (!c->http) {
        keep_raw(c, sid, p, n);
        return 0;
    }
    nghttp3_ssize k = nghttp3_conn_read_stream(c->http, sid, p, n, flags & NGTCP2_STREAM_DATA_FLAG_FIN);
    if (k < 0)
        return NGTCP2_ERR_CALLBACK_FAILURE;
    ngtcp2_conn_extend_max_stream_offset(q, sid, (uint64_t)k);
    ngtcp2_conn_extend_max_offset(q, (uint64_t)k);
    return 0;
}

static int q_acked(ngtcp2_conn *q, int64_t sid, uint64_t off, uint64_t n, void *user, void *su)
{
    struct testclient *c = user;
    return c->http && nghttp3_conn_add_ack_offset(c->http, sid, n) != 0 ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static struct testclient_stream *find(struct testclient *c, int64_t sid)
{
    for (size_t i = 0; i < c->n_streams; i++)
        if (c->streams[i].id == sid)
            return &c->streams[i];
    return NULL;
}

static int q_close(ngtcp2_conn *q, uint32_t flags, int64_t sid, uint64_t code, void *user, void *su)
{
    struct testclient *c = user;
    struct testclient_stream *s = find(c, sid);
    if (s)
        s->closed = true;
    if (c->http)
        (void)nghttp3_conn_close_stream(
            c->http, sid, flags & NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET ? code : NGHTTP3_H3_NO_ERROR);
    return 0;
}

static int q_reset(ngtcp2_conn *q, int64_t sid, uint64_t size, uint64_t code, void *user, void *su)
{
    struct testclient *c = user;
    struct testclient_stream *s = find(c, sid);
    if (s) {
        s->was_reset = true;
        s->code = code;
    }
    return c->http && nghttp3_conn_shutdown_stream_read(c->http, sid) != 0 ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static int q_max_stream_data(ngtcp2_conn *q, int64_t sid, uint64_t max, void *user, void *su)
{
    struct testclient *c = user;
    return c->http && nghttp3_conn_unblock_stream(c->http, sid) != 0 ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static int q_datagram(ngtcp2_conn *q, uint32_t flags, const uint8_t *p, size_t n, void *user)
{
    struct testclient *c = user;
    if (c->n_datagrams == TESTCLIENT_DATAGRAMS)
        return 0;
    uint8_t *copy = malloc(n ? n : 1);
    MUST(copy);
    memcpy(copy, p, n);
    c->datagrams[c->n_datagrams] = copy;
    c->datagram_len[c->n_datagrams++] = n;
    return 0;
}

struct testclient *testclient_new(const struct testclient_config *cfg, base_time now)
{
    static const uint16_t probes[] = {1331, 1444};
    static const ngtcp2_callbacks cb = {
        .client_initial = ngtcp2_crypto_client_initial_cb,
        .recv_crypto_data = q_crypto,
        .encrypt = ngtcp2_crypto_encrypt_cb,
        .decrypt = ngtcp2_crypto_decrypt_cb,
        .hp_mask = ngtcp2_crypto_hp_mask_cb,
        .recv_retry = ngtcp2_crypto_recv_retry_cb,
        .update_key = ngtcp2_crypto_update_key_cb,
        .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
        .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
        .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
        .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
        .rand = q_rand,
        .get_new_connection_id = q_new_cid,
        .handshake_completed = q_handshake,
        .recv_rx_key = q_rx_key,
        .recv_stream_data = q_stream_data,
        .acked_stream_data_offset = q_acked,
        .stream_close = q_close,
        .stream_reset = q_reset,
        .extend_max_stream_data = q_max_stream_data,
        .recv_datagram = q_datagram,
    };
    struct testclient *c = calloc(1, sizeof *c);
    MUST(c);
    c->cfg = *cfg;
    c->now = now;
    c->remote = (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_port = htons(cfg->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    c->local = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t len = sizeof c->local;
    c->fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    MUST(c->fd >= 0 && bind(c->fd, (struct sockaddr *)&c->local, len) == 0 &&
         getsockname(c->fd, (struct sockaddr *)&c->local, &len) == 0);
    const int on = 1;
    (void)setsockopt(c->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on);

    ngtcp2_settings s;
    ngtcp2_transport_params p;
    ngtcp2_cid scid = {.datalen = 8}, dcid = {.datalen = 12};
    loop_random(scid.data, 8);
    loop_random(dcid.data, 12);
    ngtcp2_settings_default(&s);
    s.initial_ts = (ngtcp2_tstamp)now;
    s.max_tx_udp_payload_size = 1444;
    s.pmtud_probes = probes;
    s.pmtud_probeslen = 2;
    s.token = cfg->token;
    s.tokenlen = cfg->n_token;
    ngtcp2_transport_params_default(&p);
    p.initial_max_data = 1 << 20;
    p.initial_max_stream_data_bidi_local = 1 << 18;
    p.initial_max_stream_data_uni = 1 << 18;
    p.initial_max_streams_uni = 8;
    p.max_idle_timeout = 30 * NGTCP2_SECONDS;
    p.max_datagram_frame_size = cfg->max_datagram_frame_size == 0   ? 65535
                                : cfg->max_datagram_frame_size == 1 ? 0
                                                                    : cfg->max_datagram_frame_size;
    ngtcp2_path path = {.local = {(ngtcp2_sockaddr *)&c->local, sizeof c->local},
                        .remote = {(ngtcp2_sockaddr *)&c->remote, sizeof c->remote}};
    c->ref = (ngtcp2_crypto_conn_ref){.get_conn = get_conn, .user_data = c};
    MUST(ngtcp2_conn_client_new(&c->quic, &dcid, &scid, &path,
                                cfg->version ? cfg->version : NGTCP2_PROTO_VER_V1, &cb, &s, &p, NULL,
                                c) == 0);
    c->tls = testtls_new(cfg->cert_file, cfg->key_file, cfg->alpn, cfg->big_hello, &c->ref);
    ngtcp2_conn_set_tls_native_handle(c->quic, testtls_native_handle(c->tls));
    return c;
}

void testclient_free(struct testclient *c)
{
    if (!c)
        return;
    nghttp3_conn_del(c->http);
    ngtcp2_conn_del(c->quic);
    testtls_free(c->tls);
    for (size_t i = 0; i < c->n_datagrams; i++)
        free(c->datagrams[i]);
    for (size_t i = 0; i < c->n_out; i++)
        free(c->out[i]);
    for (size_t i = 0; i < c->n_streams; i++)
        free(c->streams[i].out);
    (void)close(c->fd);
    free(c);
}

/* ---- life ---- */

static void fail(struct testclient *c, int rv)
{
    if (c->closed)
        return;
    c->closed = true;
    c->error = rv;
    const ngtcp2_ccerr *e = ngtcp2_conn_get_ccerr(c->quic);
    if (rv == NGTCP2_ERR_DRAINING) {
        c->close_is_app = e->type == NGTCP2_CCERR_TYPE_APPLICATION;
        c->close_code = e->error_code;
    }
}

static ssize_t receive(struct testclient *c, uint8_t *buf, size_t size)
{
    _Alignas(struct cmsghdr) uint8_t control[64];
    struct iovec iov = {buf, size};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(c->fd, &m, 0);
    for (struct cmsghdr *h = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL; h; h = CMSG_NXTHDR(&m, h)) {
        int v = 0;
        if (h->cmsg_level != IPPROTO_IPV6 || h->cmsg_type != IPV6_TCLASS)
            continue;
        memcpy(&v, CMSG_DATA(h), sizeof v);
        c->dscp_in |= (uint8_t)(v >> 2);
    }
    return n;
}

static void read_all(struct testclient *c)
{
    uint8_t buf[4096];
    ngtcp2_path path = {.local = {(ngtcp2_sockaddr *)&c->local, sizeof c->local},
                        .remote = {(ngtcp2_sockaddr *)&c->remote, sizeof c->remote}};
    for (ssize_t n; !c->closed && (n = receive(c, buf, sizeof buf)) >= 0;) {
        ngtcp2_pkt_info pi = {0};
        if (c->cfg.max_tx != 0 && (size_t)n > c->cfg.max_tx)
            continue;
        if (c->lose > 0) {
            c->lose--;
            continue;
        }
        c->udp_in++;
        if ((size_t)n > c->largest_in)
            c->largest_in = (size_t)n;
        int rv = ngtcp2_conn_read_pkt(c->quic, &path, &pi, buf, (size_t)n, (ngtcp2_tstamp)c->now);
        if (rv != 0)
            fail(c, rv);
    }
}

static void emit(struct testclient *c, const uint8_t *p, ngtcp2_ssize n)
{
    ssize_t sent = sendto(c->fd, p, (size_t)n, 0, (struct sockaddr *)&c->remote, sizeof c->remote);
    MUST(sent == n || errno == EAGAIN || errno == ECONNREFUSED);
}

static bool write_datagram(struct testclient *c, uint8_t *buf, size_t size)
{
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    int accepted = 0;
    ngtcp2_path_storage_zero(&ps);
    ngtcp2_vec v = {c->out[0], c->out_len[0]};
    ngtcp2_ssize n = ngtcp2_conn_writev_datagram(c->quic, &ps.path, &pi, buf, size, &accepted, 0, 0, &v,
                                                 c->out_len[0] ? 1 : 0, (ngtcp2_tstamp)c->now);
    if (n < 0) {
        fail(c, (int)n);
        return false;
    }
    if (accepted) {
        free(c->out[0]);
        memmove(c->out, c->out + 1, (c->n_out - 1) * sizeof c->out[0]);
        memmove(c->out_len, c->out_len + 1, (c->n_out - 1) * sizeof c->out_len[0]);
        c->n_out--;
    }
    if (n > 0)
        emit(c, buf, n);
    return n > 0;
}

static bool write_stream(struct testclient *c, uint8_t *buf, size_t size)
{
    nghttp3_vec v[8];
    nghttp3_ssize k = 0;
    int64_t sid = -1;
    int fin = 0;
    ngtcp2_ssize taken = -1;
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    ngtcp2_path_storage_zero(&ps);
    if (c->http)
        k = nghttp3_conn_writev_stream(c->http, &sid, &fin, v, 8);
    MUST(k >= 0);
    if (sid < 0 && c->n_out > 0 && c->handshaken)
        return write_datagram(c, buf, size);
    ngtcp2_vec data[8];
    for (nghttp3_ssize i = 0; i < k; i++)
        data[i] = (ngtcp2_vec){v[i].base, v[i].len};
    ngtcp2_ssize n = ngtcp2_conn_writev_stream(c->quic, &ps.path, &pi, buf, size, &taken,
                                               fin ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0, sid, data, (size_t)k,
                                               (ngtcp2_tstamp)c->now);
    if (n == NGTCP2_ERR_STREAM_DATA_BLOCKED) {
        nghttp3_conn_block_stream(c->http, sid);
        return true;
    }
    if (n == NGTCP2_ERR_STREAM_SHUT_WR || n == NGTCP2_ERR_STREAM_NOT_FOUND) {
        nghttp3_conn_shutdown_stream_write(c->http, sid);
        return true;
    }
    if (n < 0) {
        fail(c, (int)n);
        return false;
    }
    if (taken >= 0 && sid >= 0)
        MUST(nghttp3_conn_add_write_offset(c->http, sid, (size_t)taken) == 0);
    if (n > 0)
        emit(c, buf, n);
    return n > 0;
}

void testclient_step(struct testclient *c, base_time now)
{
    uint8_t buf[2048];
    c->now = base_time_max(c->now, now);
    read_all(c);
    if (!c->closed && ngtcp2_conn_get_expiry(c->quic) <= (ngtcp2_tstamp)c->now) {
        int rv = ngtcp2_conn_handle_expiry(c->quic, (ngtcp2_tstamp)c->now);
        if (rv != 0)
            fail(c, rv);
    }
    while (!c->closed && write_stream(c, buf, sizeof buf))
        ;
    if (!c->closed)
        ngtcp2_conn_update_pkt_tx_time(c->quic, (ngtcp2_tstamp)c->now);
}

base_time testclient_expiry(const struct testclient *c)
{
    ngtcp2_tstamp t = c->closed ? UINT64_MAX : ngtcp2_conn_get_expiry(c->quic);
    return t > INT64_MAX ? BASE_TIME_NEVER : (base_time)t;
}

size_t testclient_request(struct testclient *c, const struct testclient_field *fields, size_t n, bool fin)
{
    static const nghttp3_data_reader reader = {h_read};
    nghttp3_nv nv[64];
    MUST(c->http && c->n_streams < TESTCLIENT_STREAMS && n <= 64);
    struct testclient_stream *s = &c->streams[c->n_streams];
    s->client = c;
    for (size_t i = 0; i < n; i++)
        nv[i] = (nghttp3_nv){.name = (uint8_t *)(uintptr_t)fields[i].name,
                             .value = (uint8_t *)(uintptr_t)fields[i].value,
                             .namelen = strlen(fields[i].name),
                             .valuelen = strlen(fields[i].value)};
    MUST(ngtcp2_conn_open_bidi_stream(c->quic, &s->id, NULL) == 0);
    MUST(nghttp3_conn_submit_request(c->http, s->id, nv, n, fin ? NULL : &reader, s) == 0);
    return c->n_streams++;
}

void testclient_write(struct testclient *c, size_t stream, const void *p, size_t n, bool fin)
{
    struct testclient_stream *s = &c->streams[stream];
    /* What was handed out stays where it is: nghttp3 keeps pointers to it. */
    if (!s->out)
        MUST(s->out = malloc(1 << 21));
    MUST(s->n_out + n <= 1 << 21);
    if (n > 0)
        memcpy(s->out + s->n_out, p, n);
    s->n_out += n;
    s->fin = fin;
    (void)nghttp3_conn_resume_stream(c->http, s->id);
}

void testclient_reset(struct testclient *c, size_t stream, uint64_t code)
{
    nghttp3_conn_shutdown_stream_write(c->http, c->streams[stream].id);
    MUST(ngtcp2_conn_shutdown_stream(c->quic, 0, c->streams[stream].id, code) == 0);
}

void testclient_datagram(struct testclient *c, const void *p, size_t n)
{
    MUST(c->n_out < TESTCLIENT_DATAGRAMS);
    uint8_t *copy = malloc(n ? n : 1);
    MUST(copy);
    memcpy(copy, p, n);
    c->out[c->n_out] = copy;
    c->out_len[c->n_out++] = n;
}

void testclient_close(struct testclient *c, uint64_t h3_error)
{
    uint8_t buf[1500];
    ngtcp2_ccerr e;
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    ngtcp2_ccerr_default(&e);
    ngtcp2_ccerr_set_application_error(&e, h3_error, NULL, 0);
    ngtcp2_path_storage_zero(&ps);
    ngtcp2_ssize n = ngtcp2_conn_write_connection_close(c->quic, &ps.path, &pi, buf, sizeof buf, &e,
                                                        (ngtcp2_tstamp)c->now);
    if (n > 0)
        emit(c, buf, n);
    c->closed = true;
}

int64_t testclient_raw_open(struct testclient *c, bool bidi)
{
    int64_t sid;
    MUST((bidi ? ngtcp2_conn_open_bidi_stream(c->quic, &sid, NULL)
               : ngtcp2_conn_open_uni_stream(c->quic, &sid, NULL)) == 0);
    return sid;
}

void testclient_raw_write(struct testclient *c, int64_t sid, const void *p, size_t n)
{
    uint8_t buf[2048], copy[4096];
    MUST(n > 0 && n <= sizeof copy);
    memcpy(copy, p, n);
    unsigned idle = 0;
    for (size_t at = 0; at < n;) {
        ngtcp2_path_storage ps;
        ngtcp2_pkt_info pi;
        ngtcp2_ssize taken = -1;
        ngtcp2_path_storage_zero(&ps);
        ngtcp2_vec v = {copy + at, n - at};
        ngtcp2_ssize w = ngtcp2_conn_writev_stream(c->quic, &ps.path, &pi, buf, sizeof buf, &taken, 0, sid,
                                                   &v, 1, (ngtcp2_tstamp)c->now);
        MUST(w >= 0);
        if (w == 0) { /* paced: what is a millisecond between friends */
            MUST(++idle < 100);
            c->now += BASE_MS;
            continue;
        }
        emit(c, buf, w);
        if (taken > 0)
            at += (size_t)taken;
    }
}

void testclient_rebind(struct testclient *c)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    MUST(fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0);
    (void)close(c->fd); /* its end of the path is, for the client itself, what it was */
    c->fd = fd;
}
