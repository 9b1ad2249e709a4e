/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include "client_h2.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include "loop/loop.h"

enum { RUN = 44, UDP_PAYLOAD = 1444 };

struct bench_client {
    struct bench_h2 *h2; /* over TCP: everything is there, and nothing of the rest is used */
    int fd;
    enum bench_protocol protocol;
    struct sockaddr_in6 local, remote;
    ngtcp2_conn *quic;
    nghttp3_conn *http;
    gnutls_session_t tls;
    ngtcp2_crypto_conn_ref ref;
    int64_t sid;
    int status;
    bool ended, asked;
    ngtcp2_tstamp now; /* never goes back, also when a packet's receiver sends: ngtcp2 insists */
    bool pumping;
    bench_packet_fn fn;
    void *arg;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench client: %s: %s\n", what, why);
    exit(1);
}

static ngtcp2_tstamp tick(struct bench_client *c)
{
    if (!c->pumping)
        c->now = (ngtcp2_tstamp)loop_clock();
    return c->now;
}

/* ---- HTTP/3 ---- */
static int on_header(nghttp3_conn *http, int64_t sid, int32_t token, nghttp3_rcbuf *name,
                     nghttp3_rcbuf *value, uint8_t flags, void *user, void *su)
{
    struct bench_client *c = user;
    nghttp3_vec v = nghttp3_rcbuf_get_buf(value);
    if (token == NGHTTP3_QPACK_TOKEN__STATUS && v.len == 3)
        c->status = (v.base[0] - '0') * 100 + (v.base[1] - '0') * 10 + (v.base[2] - '0');
    return 0;
}

static int credit(struct bench_client *c, int64_t sid, size_t n)
{
    (void)ngtcp2_conn_extend_max_stream_offset(c->quic, sid, n);
    ngtcp2_conn_extend_max_offset(c->quic, n);
    return 0;
}

static int on_body(nghttp3_conn *http, int64_t sid, const uint8_t *data, size_t n, void *user, void *su)
{
    return credit(user, sid, n);
}

static int on_consume(nghttp3_conn *http, int64_t sid, size_t n, void *user, void *su)
{
    return credit(user, sid, n);
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

static int open_http(struct bench_client *c)
{
    static const nghttp3_callbacks cb = {
        .recv_header = on_header, .recv_data = on_body, .deferred_consume = on_consume};
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

static void ask(struct bench_client *c)
{
    static const nghttp3_data_reader reader = {no_data};
    const nghttp3_nv nv[] = {field(":method", "CONNECT"),
                             field(":protocol", "connect-ip"),
                             field(":scheme", "https"),
                             field(":authority", "masque.test"),
                             field(":path", "/.well-known/masque/ip/*/*/"),
                             field("capsule-protocol", "?1")};
    if (c->asked || !c->http || ngtcp2_conn_open_bidi_stream(c->quic, &c->sid, NULL) != 0)
        return;
    c->asked = true;
    if (nghttp3_conn_submit_request(c->http, c->sid, nv, sizeof nv / sizeof nv[0], &reader, NULL) != 0)
        die("request", "nghttp3");
}

/* ---- QUIC ---- */
static int on_rx_key(ngtcp2_conn *q, ngtcp2_encryption_level level, void *user)
{
    struct bench_client *c = user;
    return level == NGTCP2_ENCRYPTION_LEVEL_1RTT && c->protocol == BENCH_H3 ? open_http(user) : 0;
}

static int on_stream_data(ngtcp2_conn *q, uint32_t flags, int64_t sid, uint64_t off, const uint8_t *data,
                          size_t n, void *user, void *su)
{
    struct bench_client *c = user;
    nghttp3_ssize k =
        c->http ? nghttp3_conn_read_stream(c->http, sid, data, n, (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0)
                : -1;
    return k < 0 ? NGTCP2_ERR_CALLBACK_FAILURE : credit(c, sid, (size_t)k);
}

static int on_acked(ngtcp2_conn *q, int64_t sid, uint64_t off, uint64_t n, void *user, void *su)
{
    struct bench_client *c = user;
    return !c->http || nghttp3_conn_add_ack_offset(c->http, sid, n) == 0 ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

static int on_stream_close(ngtcp2_conn *q, uint32_t flags, int64_t sid, uint64_t code, void *user, void *su)
{
    struct bench_client *c = user;
    c->ended |= c->asked && sid == c->sid;
    if (c->http)
        (void)nghttp3_conn_close_stream(c->http, sid, code);
    return 0;
}

static int on_datagram(ngtcp2_conn *q, uint32_t flags, const uint8_t *p, size_t n, void *user)
{
    struct bench_client *c = user;
    if (n > 2 && p[0] == 0 && p[1] == 0) /* quarter stream ID 0, context 0 */
        c->fn(c->arg, p + 2, n - 2);
    return 0;
}

static void on_rand(uint8_t *dst, size_t n, const ngtcp2_rand_ctx *ctx)
{
    loop_random(dst, n);
}

static int on_new_cid(ngtcp2_conn *q, ngtcp2_cid *cid, uint8_t *token, size_t n, void *user)
{
    loop_random(cid->data, n);
    cid->datalen = n;
    loop_random(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref)
{
    return ((struct bench_client *)ref->user_data)->quic;
}

static gnutls_certificate_credentials_t credentials(const char *dir, const char *name)
{
    /* One for all clients of a name: 10,000 of them fit into memory. */
    static gnutls_certificate_credentials_t cred;
    static char whose[64];
    char cert[300], key[300];
    if (cred && strcmp(whose, name) == 0)
        return cred;
    (void)snprintf(whose, sizeof whose, "%s", name);
    (void)snprintf(cert, sizeof cert, "%s/%s.crt", dir, name);
    (void)snprintf(key, sizeof key, "%s/%s.key", dir, name);
    if (gnutls_certificate_allocate_credentials(&cred) != 0 ||
        gnutls_certificate_set_x509_key_file(cred, cert, key, GNUTLS_X509_FMT_PEM) != 0)
        die(cert, "certificate or key");
    return cred;
}

static void open_tls(struct bench_client *c, const char *dir, const char *name)
{
    static unsigned char h3[] = {'h', '3'}, bare[] = {'b', 'a', 'r', 'e'};
    const gnutls_datum_t alpn[] = {{h3, sizeof h3}, {bare, sizeof bare}};
    if (gnutls_init(&c->tls, GNUTLS_CLIENT | GNUTLS_NO_AUTO_SEND_TICKET) != 0 ||
        gnutls_priority_set_direct(
            c->tls, "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:%DISABLE_TLS13_COMPAT_MODE",
            NULL) != 0 ||
        gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, credentials(dir, name)) != 0 ||
        gnutls_alpn_set_protocols(c->tls, &alpn[c->protocol == BENCH_BARE], 1, 0) != 0 ||
        ngtcp2_crypto_gnutls_configure_client_session(c->tls) != 0)
        die("TLS", "set-up");
    gnutls_session_set_ptr(c->tls, &c->ref);
}

static void open_quic(struct bench_client *c)
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
        .rand = on_rand,
        .get_new_connection_id = on_new_cid,
        .recv_rx_key = on_rx_key,
        .recv_stream_data = on_stream_data,
        .acked_stream_data_offset = on_acked,
        .stream_close = on_stream_close,
        .recv_datagram = on_datagram,
    };
    ngtcp2_cid dcid = {.datalen = 18}, scid = {.datalen = 8};
    ngtcp2_settings s;
    ngtcp2_transport_params p;
    ngtcp2_path path = {{(ngtcp2_sockaddr *)&c->local, sizeof c->local},
                        {(ngtcp2_sockaddr *)&c->remote, sizeof c->remote},
                        NULL};
    loop_random(dcid.data, dcid.datalen);
    loop_random(scid.data, scid.datalen);
    ngtcp2_settings_default(&s);
    s.initial_ts = tick(c);
    s.max_tx_udp_payload_size = UDP_PAYLOAD;
    s.no_tx_udp_payload_size_shaping = 1;
    ngtcp2_transport_params_default(&p);
    p.initial_max_streams_uni = 8;
    p.initial_max_data = p.initial_max_stream_data_bidi_local = p.initial_max_stream_data_uni = 1 << 20;
    p.max_datagram_frame_size = 65535;
    p.max_idle_timeout = 300 * NGTCP2_SECONDS;
    if (ngtcp2_conn_client_new(&c->quic, &dcid, &scid, &path, NGTCP2_PROTO_VER_V1, &cb, &s, &p, NULL, c) != 0)
        die("QUIC", "set-up");
    ngtcp2_conn_set_tls_native_handle(c->quic, c->tls);
}

struct bench_client *bench_client_new(uint16_t port, const char *dir, const char *name,
                                      enum bench_protocol protocol, bench_packet_fn fn, void *arg)
{
    struct bench_client *c = calloc(1, sizeof *c);
    socklen_t n = sizeof c->local;
    const int size = 1 << 23, one = 1;
    if (!c)
        die("memory", "none");
    c->protocol = protocol;
    if (protocol == BENCH_H2 || protocol == BENCH_IDEAL_H2) {
        c->h2 = bench_h2_new(port, dir, name, protocol == BENCH_IDEAL_H2, fn, arg);
        return c;
    }
    c->fn = fn;
    c->arg = arg;
    c->ref = (ngtcp2_crypto_conn_ref){get_conn, c};
    c->fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    c->remote = (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    (void)setsockopt(c->fd, SOL_UDP, UDP_GRO, &one, sizeof one);
    if (connect(c->fd, (const struct sockaddr *)&c->remote, sizeof c->remote) < 0 ||
        getsockname(c->fd, (struct sockaddr *)&c->local, &n) < 0)
        die("connect", strerror(errno));
    open_tls(c, dir, name);
    open_quic(c);
    bench_client_pump(c);
    return c;
}

struct bench_client *bench_client_free(struct bench_client *c)
{
    uint8_t buf[1500];
    ngtcp2_ccerr e;
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    if (!c)
        return NULL;
    if (c->h2) {
        bench_h2_free(c->h2);
        free(c);
        return NULL;
    }
    ngtcp2_path_storage_zero(&ps);
    ngtcp2_ccerr_default(&e);
    ngtcp2_ccerr_set_application_error(&e, NGHTTP3_H3_NO_ERROR, NULL, 0);
    ngtcp2_ssize n = ngtcp2_conn_write_connection_close(c->quic, &ps.path, &pi, buf, sizeof buf, &e, tick(c));
    if (n > 0)
        (void)send(c->fd, buf, (size_t)n, 0);
    nghttp3_conn_del(c->http);
    ngtcp2_conn_del(c->quic);
    gnutls_deinit(c->tls);
    (void)close(c->fd);
    free(c);
    return NULL;
}

/* Stream data and whatever QUIC has to say. */
static void write_all(struct bench_client *c, ngtcp2_tstamp now)
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
        n_vec = n_vec < 0 ? 0 : n_vec;
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
            break;
        }
        (void)send(c->fd, buf, (size_t)n, 0);
    }
}

static bool take_in(struct bench_client *c, ngtcp2_tstamp now)
{
    static uint8_t buf[65536];
    _Alignas(struct cmsghdr) uint8_t control[128];
    struct iovec iov = {buf, sizeof buf};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ngtcp2_path path = {{(ngtcp2_sockaddr *)&c->local, sizeof c->local},
                        {(ngtcp2_sockaddr *)&c->remote, sizeof c->remote},
                        NULL};
    ngtcp2_pkt_info pi = {0};
    ssize_t n = recvmsg(c->fd, &m, 0);
    if (n <= 0)
        return false;
    size_t len = (size_t)n, seg = len;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
        if (h->cmsg_level == SOL_UDP && h->cmsg_type == UDP_GRO) {
            int v;
            memcpy(&v, CMSG_DATA(h), sizeof v);
            seg = v > 0 ? (size_t)v : len;
        }
    for (size_t at = 0; at < len; at += seg)
        if (ngtcp2_conn_read_pkt(c->quic, &path, &pi, buf + at, len - at < seg ? len - at : seg, now) != 0) {
            c->ended = true;
            return false;
        }
    return true;
}

void bench_client_pump(struct bench_client *c)
{
    if (c->h2) {
        bench_h2_pump(c->h2);
        return;
    }
    ngtcp2_tstamp now = tick(c);
    c->pumping = true;
    for (int i = 0; i < 64 && take_in(c, now); i++)
        ;
    c->pumping = false;
    if (c->ended || ngtcp2_conn_in_closing_period(c->quic) || ngtcp2_conn_in_draining_period(c->quic)) {
        c->ended = true;
        return;
    }
    if (ngtcp2_conn_get_expiry(c->quic) <= now && ngtcp2_conn_handle_expiry(c->quic, now) != 0)
        c->ended = true;
    if (c->protocol == BENCH_H3 && ngtcp2_conn_get_handshake_completed(c->quic))
        ask(c);
    write_all(c, now);
}

/* ---- packets ---- */
struct run {
    size_t len, seg;
    uint8_t data[65536];
};

static void flush(struct bench_client *c, struct run *r, size_t len)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    struct iovec iov = {r->data, len};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    uint16_t seg = (uint16_t)r->seg;
    if (len > r->seg) {
        struct cmsghdr h = {
            .cmsg_len = CMSG_LEN(sizeof seg), .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT};
        memcpy(control, &h, sizeof h);
        memcpy(control + CMSG_LEN(0), &seg, sizeof seg);
        m.msg_control = control;
        m.msg_controllen = sizeof control;
    }
    if (len > 0)
        (void)sendmsg(c->fd, &m, 0);
}

unsigned bench_client_send(struct bench_client *c, const uint8_t *pkt, size_t len, unsigned n, bool gso)
{
    if (c->h2)
        return bench_h2_send(c->h2, pkt, len, n);
    static struct run r;
    static uint8_t head[2];
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    ngtcp2_tstamp now = tick(c);
    ngtcp2_vec v[2] = {{head, sizeof head}, {(uint8_t *)(uintptr_t)pkt, len}};
    unsigned sent = 0, in_run = 0;
    ngtcp2_path_storage_zero(&ps);
    r.len = 0;
    for (unsigned tries = 0; sent < n && tries < 2 * n + 2; tries++) {
        int accepted = 0;
        ngtcp2_ssize k =
            ngtcp2_conn_writev_datagram(c->quic, &ps.path, &pi, r.data + r.len, UDP_PAYLOAD, &accepted,
                                        NGTCP2_WRITE_DATAGRAM_FLAG_NONE, 0, v, 2, now);
        if (k <= 0) {
            c->ended |= k < 0;
            break;
        }
        sent += accepted != 0;
        if (r.len > 0 && (size_t)k > r.seg) {
            flush(c, &r, r.len);
            memmove(r.data, r.data + r.len, (size_t)k);
            r.len = in_run = 0;
        }
        if (r.len == 0)
            r.seg = (size_t)k;
        r.len += (size_t)k;
        if (!gso || ++in_run == RUN || (size_t)k < r.seg) {
            flush(c, &r, r.len);
            r.len = in_run = 0;
        }
    }
    flush(c, &r, r.len);
    return sent;
}

int bench_client_fd(const struct bench_client *c)
{
    return c->h2 ? bench_h2_fd(c->h2) : c->fd;
}
bool bench_client_open(const struct bench_client *c)
{
    if (c->h2)
        return bench_h2_open(c->h2);
    return c->protocol == BENCH_BARE ? ngtcp2_conn_get_handshake_completed(c->quic) != 0 : c->status == 200;
}
bool bench_client_ended(const struct bench_client *c)
{
    return c->h2 ? bench_h2_ended(c->h2) : c->ended;
}
