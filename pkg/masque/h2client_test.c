/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/h2client_test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "masque/varint.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

/* ---- nghttp2 ---- */

static struct h2client_stream *find(struct h2client *c, int32_t id)
{
    for (size_t i = 0; i < c->n_streams; i++)
        if (c->streams[i]->id == id)
            return c->streams[i];
    return NULL;
}

static void copy(char *dst, size_t size, const uint8_t *p, size_t n)
{
    (void)snprintf(dst, size, "%.*s", (int)n, (const char *)p);
}

static int on_header(nghttp2_session *http, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct h2client_stream *s = find(user, f->hd.stream_id);
    char k[32];
    copy(k, sizeof k, name, n_name);
    if (!s)
        return 0;
    if (strcmp(k, ":status") == 0)
        s->status = (int)strtol((const char *)value, NULL, 10);
    else if (strcmp(k, "content-type") == 0)
        copy(s->content_type, sizeof s->content_type, value, n_value);
    else if (strcmp(k, "retry-after") == 0)
        copy(s->retry_after, sizeof s->retry_after, value, n_value);
    else if (strcmp(k, "capsule-protocol") == 0)
        copy(s->capsule_protocol, sizeof s->capsule_protocol, value, n_value);
    else if (strcmp(k, "www-authenticate") == 0)
        copy(s->authenticate, sizeof s->authenticate, value, n_value);
    return 0;
}

static int on_frame(nghttp2_session *http, const nghttp2_frame *f, void *user)
{
    struct h2client *c = user;
    struct h2client_stream *s = find(c, f->hd.stream_id);
    c->frames++;
    if (f->hd.type == NGHTTP2_SETTINGS && !(f->hd.flags & NGHTTP2_FLAG_ACK)) {
        c->settings_seen = true;
        for (size_t i = 0; i < f->settings.niv; i++)
            if (f->settings.iv[i].settings_id == NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL)
                c->connect_protocol = f->settings.iv[i].value == 1;
    }
    if (f->hd.type == NGHTTP2_GOAWAY) {
        c->goaway = true;
        c->goaway_code = f->goaway.error_code;
    }
    if (f->hd.type == NGHTTP2_PING && !(f->hd.flags & NGHTTP2_FLAG_ACK))
        c->pings++;
    if (f->hd.type == NGHTTP2_DATA && f->hd.length > c->max_data)
        c->max_data = f->hd.length;
    if (s && (f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) &&
        (f->hd.flags & NGHTTP2_FLAG_END_STREAM))
        s->ended = true;
    return 0;
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
    struct h2client_stream *s = find(user, id);
    if (!s)
        return 0;
    if (n > sizeof s->body - s->n_body) /* a long test: keeps the newest */
        s->n_body = 0;
    memcpy(s->body + s->n_body, p, n);
    s->n_body += n;
    return 0;
}

static int on_close(nghttp2_session *http, int32_t id, uint32_t code, void *user)
{
    struct h2client_stream *s = find(user, id);
    if (s) {
        s->closed = true;
        s->code = code;
    }
    return 0;
}

static ssize_t read_out(nghttp2_session *http, int32_t id, uint8_t *buf, size_t size, uint32_t *flags,
                        nghttp2_data_source *source, void *user)
{
    struct h2client_stream *s = source->ptr;
    size_t n = s->n_out < size ? s->n_out : size;
    if (n == 0 && s->fin) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return 0;
    }
    if (n == 0) {
        s->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    memcpy(buf, s->out, n);
    memmove(s->out, s->out + n, s->n_out - n);
    s->n_out -= n;
    return (ssize_t)n;
}

static void start_http(struct h2client *c, int32_t window)
{
    nghttp2_session_callbacks *k;
    nghttp2_settings_entry iv[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                   {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window ? (uint32_t)window : 65535}};
    cr_assert_eq(nghttp2_session_callbacks_new(&k), 0);
    nghttp2_session_callbacks_set_on_header_callback(k, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(k, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(k, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(k, on_close);
    cr_assert_eq(nghttp2_session_client_new(&c->http, k, c), 0);
    nghttp2_session_callbacks_del(k);
    cr_assert_eq(nghttp2_submit_settings(c->http, 0, iv, 2), 0);
}

/* ---- TLS and TCP ---- */

static void gone(struct h2client *c)
{
    c->eof = true;
    if (errno == ECONNRESET || errno == EPIPE)
        c->reset = true;
}

bool h2client_write(struct h2client *c, const void *p, size_t n)
{
    base_time until = loop_clock() + 5 * BASE_SEC;
    while (!c->eof && loop_clock() < until) {
        errno = 0;
        ERR_clear_error();
        int k = SSL_write(c->ssl, p, (int)n);
        if (k > 0)
            return true;
        int e = SSL_get_error(c->ssl, k);
        if (e != SSL_ERROR_WANT_WRITE && e != SSL_ERROR_WANT_READ) {
            gone(c);
            return false;
        }
        testenv_endpoint(c->e);
    }
    return false;
}

bool h2client_frame(struct h2client *c, uint8_t type, uint8_t flags, int32_t stream, const void *p, size_t n)
{
    uint8_t f[9 + 16384];
    cr_assert(n <= 16384);
    f[0] = (uint8_t)(n >> 16);
    f[1] = (uint8_t)(n >> 8);
    f[2] = (uint8_t)n;
    f[3] = type;
    f[4] = flags;
    f[5] = (uint8_t)(stream >> 24);
    f[6] = (uint8_t)(stream >> 16);
    f[7] = (uint8_t)(stream >> 8);
    f[8] = (uint8_t)stream;
    if (n > 0)
        memcpy(f + 9, p, n);
    return h2client_write(c, f, 9 + n);
}

static void shake(struct h2client *c)
{
    errno = 0;
    ERR_clear_error();
    int rv = SSL_do_handshake(c->ssl);
    if (rv == 1) {
        c->shaken = true;
        return;
    }
    int e = SSL_get_error(c->ssl, rv);
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
        return;
    c->tls_error = ERR_peek_last_error();
    c->failed = true;
    gone(c);
}

static void take_in(struct h2client *c)
{
    uint8_t buf[16384];
    for (unsigned i = 0; i < 64 && !c->eof && !c->mute; i++) {
        errno = 0;
        ERR_clear_error();
        int n = SSL_read(c->ssl, buf, sizeof buf);
        if (n <= 0) {
            int e = SSL_get_error(c->ssl, n);
            if (e == SSL_ERROR_WANT_READ)
                return;
            c->tls_error = ERR_peek_last_error();
            gone(c);
            return;
        }
        if (c->http) {
            if (nghttp2_session_mem_recv(c->http, buf, (size_t)n) < 0)
                c->failed = true;
        } else if ((size_t)n <= sizeof c->raw - c->n_raw) {
            memcpy(c->raw + c->n_raw, buf, (size_t)n);
            c->n_raw += (size_t)n;
        }
    }
}

void h2client_step(struct h2client *c)
{
    if (c->eof || c->held)
        return;
    if (!c->shaken)
        shake(c);
    if (!c->shaken || c->eof)
        return;
    take_in(c);
    for (const uint8_t *p; c->http && !c->eof;) {
        ssize_t n = nghttp2_session_mem_send(c->http, &p);
        if (n <= 0)
            break;
        (void)h2client_write(c, p, (size_t)n);
    }
}

static void turn(struct testenv *e)
{
    for (struct h2client *c = e->h2clients; c; c = c->next)
        h2client_step(c);
}

/* A key that claims the certificate's public half, which is all that the library compares, with another
 * private half. */
static void use_wrong_key(SSL_CTX *ctx)
{
    EVP_PKEY *mine = X509_get0_pubkey(SSL_CTX_get0_certificate(ctx)), *other = NULL;
    EVP_PKEY_CTX *make = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    BIGNUM *priv = BN_new();
    uint8_t pub[133];
    size_t n = 0;
    cr_assert(mine && make && b && priv && BN_set_word(priv, 12345));
    cr_assert_eq(EVP_PKEY_get_octet_string_param(mine, OSSL_PKEY_PARAM_PUB_KEY, pub, sizeof pub, &n), 1);
    cr_assert(OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) &&
              OSSL_PARAM_BLD_push_octet_string(b, OSSL_PKEY_PARAM_PUB_KEY, pub, n) &&
              OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_PRIV_KEY, priv));
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(b);
    cr_assert(EVP_PKEY_fromdata_init(make) == 1 &&
              EVP_PKEY_fromdata(make, &other, EVP_PKEY_KEYPAIR, params) == 1);
    cr_assert_eq(SSL_CTX_use_PrivateKey(ctx, other), 1);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(b);
    BN_free(priv);
    EVP_PKEY_free(other);
    EVP_PKEY_CTX_free(make);
}

struct h2client *h2client_new(struct testenv *e, struct h2client_config cfg)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                              .sin6_port = htons(masque_h2_port(e->h2)),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct h2client *c = calloc(1, sizeof *c);
    cr_assert(c);
    c->e = e;
    c->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(c->fd >= 0);
    if (cfg.rcvbuf)
        cr_assert_eq(setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &cfg.rcvbuf, sizeof cfg.rcvbuf), 0);
    c->eof = connect(c->fd, (const struct sockaddr *)&to, sizeof to) != 0;
    int one = 1;
    cr_assert_eq(setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
    cr_assert_eq(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
    c->ctx = SSL_CTX_new(TLS_client_method());
    if (cfg.tls12)
        (void)SSL_CTX_set_max_proto_version(c->ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(c->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (cfg.cert_file)
        cr_assert(SSL_CTX_use_certificate_chain_file(c->ctx, cfg.cert_file) == 1 &&
                  SSL_CTX_use_PrivateKey_file(c->ctx, cfg.key_file, SSL_FILETYPE_PEM) == 1);
    if (cfg.stolen)
        use_wrong_key(c->ctx);
    c->ssl = SSL_new(c->ctx);
    if (cfg.alpn)
        cr_assert_eq(SSL_set_alpn_protos(c->ssl, (const unsigned char *)cfg.alpn, (unsigned)strlen(cfg.alpn)),
                     0);
    cr_assert_eq(SSL_set_fd(c->ssl, c->fd), 1);
    SSL_set_connect_state(c->ssl);
    if (!cfg.no_http)
        start_http(c, cfg.window);
    c->next = e->h2clients;
    e->h2clients = c;
    e->turn = turn;
    return c;
}

struct h2client *h2client_connected(struct testenv *e)
{
    struct h2client *c =
        h2client_new(e, (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2"});
    WAIT(e, c->settings_seen);
    return c;
}

struct h2client *h2client_free(struct h2client *c)
{
    struct h2client **p = &c->e->h2clients;
    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
    nghttp2_session_del(c->http);
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    ERR_clear_error();
    (void)close(c->fd);
    for (size_t i = 0; i < c->n_streams; i++)
        free(c->streams[i]);
    free(c);
    return NULL;
}

void h2client_free_all(struct testenv *e)
{
    while (e->h2clients)
        h2client_free(e->h2clients);
}

/* ---- requests ---- */

size_t h2client_request(struct h2client *c, const struct testclient_field *f, size_t n, bool fin)
{
    nghttp2_nv nv[32];
    cr_assert(n <= 32 && c->n_streams < H2CLIENT_STREAMS);
    for (size_t i = 0; i < n; i++)
        nv[i] = (nghttp2_nv){(uint8_t *)(uintptr_t)f[i].name, (uint8_t *)(uintptr_t)f[i].value,
                             strlen(f[i].name), strlen(f[i].value), NGHTTP2_NV_FLAG_NONE};
    struct h2client_stream *s = calloc(1, sizeof *s);
    cr_assert(s);
    nghttp2_data_provider source = {.source.ptr = s, .read_callback = read_out};
    s->id = nghttp2_submit_request(c->http, NULL, nv, n, fin ? NULL : &source, NULL);
    cr_assert(s->id > 0, "%s", nghttp2_strerror(s->id));
    c->streams[c->n_streams] = s;
    return c->n_streams++;
}

size_t h2client_connect_ip(struct h2client *c)
{
    const struct testclient_field f[] = {{":method", "CONNECT"},
                                         {":protocol", "connect-ip"},
                                         {":scheme", "https"},
                                         {":authority", "masque.test:4433"},
                                         {":path", "/.well-known/masque/ip/*/*/"},
                                         {"capsule-protocol", "?1"}};
    return h2client_request(c, f, sizeof f / sizeof f[0], false);
}

static void wake(struct h2client *c, struct h2client_stream *s)
{
    if (s->deferred) {
        s->deferred = false;
        (void)nghttp2_session_resume_data(c->http, s->id);
    }
}

void h2client_send(struct h2client *c, size_t stream, const void *p, size_t n)
{
    struct h2client_stream *s = c->streams[stream];
    cr_assert(n <= sizeof s->out - s->n_out);
    memcpy(s->out + s->n_out, p, n);
    s->n_out += n;
    wake(c, s);
}

void h2client_end(struct h2client *c, size_t stream)
{
    c->streams[stream]->fin = true;
    wake(c, c->streams[stream]);
}

size_t h2client_capsule(uint8_t *dst, const uint8_t *pkt, size_t len)
{
    size_t n = 0;
    dst[n++] = 0;
    n += masque_varint_put(dst + n, 8, len + 1);
    dst[n++] = 0;
    memcpy(dst + n, pkt, len);
    return n + len;
}

struct h2client *h2client_tunnel(struct testenv *e, uint64_t *ret_flow)
{
    enum testenv_answer before = e->answer;
    struct h2client *c = h2client_connected(e);
    unsigned n = e->n_rq;
    e->answer = TESTENV_ACCEPT;
    size_t s = h2client_connect_ip(c);
    WAIT(e, c->streams[s]->status == 200 && e->n_rq == n + 1 && c->streams[s]->n_body > 0);
    *ret_flow = e->rq[n].flow;
    e->answer = before;
    return c;
}

size_t h2client_packets(const struct h2client_stream *s, size_t *last_len, bool bare)
{
    static struct masque_capsule_parser p;
    struct masque_capsule cap;
    struct base_err err = {0};
    const uint8_t *d = s->body;
    size_t left = s->n_body, n = 0;
    memset(&p, 0, sizeof p);
    while (masque_capsule_feed(&p, &d, &left, &cap, &err) == 1) {
        if (cap.type != MASQUE_CAPSULE_DATAGRAM)
            continue;
        n++;
        if (!bare)
            cr_assert_eq(cap.value[0], 0, "context");
        *last_len = cap.len - (bare ? 0 : 1);
    }
    return n;
}
