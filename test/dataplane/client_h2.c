/* SPDX-License-Identifier: Apache-2.0
 *
 * The client over HTTP/2: OpenSSL and nghttp2, DATAGRAM capsules with context 0.
 */
#include "client_h2.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { QUEUE = 1 << 16, CAPSULE = 4096 };
struct dp_h2 {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
    nghttp2_session *http;
    char path[128];
    char body[512];
    size_t n_body;
    int32_t sid;
    int status;
    bool ended, asked, deferred;
    uint8_t out[QUEUE]; /* capsules for the server */
    size_t n_out;
    uint8_t wire[QUEUE]; /* frames that TLS has not taken */
    size_t n_wire;
    uint8_t in[CAPSULE + 16]; /* a capsule as it comes in */
    size_t n_in;
    dp_packet_fn fn;
    void *arg;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "test client: %s\n", what);
    abort();
}

/* ---- capsules ---- */

/* A varint of n bytes at p; 0 = not whole. */
static size_t varint(const uint8_t *p, size_t n, uint64_t *ret)
{
    size_t len = n > 0 ? (size_t)1 << (p[0] >> 6) : 1;

    if (n < len)
        return 0;
    *ret = p[0] & 0x3f;
    for (size_t i = 1; i < len; i++)
        *ret = *ret << 8 | p[i];
    return len;
}

static void take_capsules(struct dp_h2 *c)
{
    uint64_t type, len;
    size_t a, b;

    while ((a = varint(c->in, c->n_in, &type)) > 0 && (b = varint(c->in + a, c->n_in - a, &len)) > 0) {
        if (len > CAPSULE)
            die("a capsule is too long");
        if (c->n_in < a + b + len)
            return;
        if (type == 0 && len > 1 && c->in[a + b] == 0)
            c->fn(c->arg, c->in + a + b + 1, (size_t)len - 1);
        c->n_in -= a + b + (size_t)len;
        memmove(c->in, c->in + a + b + len, c->n_in);
    }
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
    struct dp_h2 *c = user;

    if (c->status != 200) {
        size_t k = n < sizeof c->body - 1 - c->n_body ? n : sizeof c->body - 1 - c->n_body;

        memcpy(c->body + c->n_body, p, k);
        c->n_body += k;
        return 0;
    }
    while (n > 0) {
        size_t k = n < sizeof c->in - c->n_in ? n : sizeof c->in - c->n_in;

        memcpy(c->in + c->n_in, p, k);
        c->n_in += k;
        p += k;
        n -= k;
        take_capsules(c);
    }
    return 0;
}

/* ---- HTTP/2 ---- */

static int on_header(nghttp2_session *http, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct dp_h2 *c = user;

    if (n_name == 7 && memcmp(name, ":status", 7) == 0)
        c->status = (int)strtol((const char *)value, NULL, 10);
    return 0;
}

static int on_close(nghttp2_session *http, int32_t id, uint32_t code, void *user)
{
    struct dp_h2 *c = user;

    c->ended = true;
    return 0;
}

static ssize_t read_out(nghttp2_session *http, int32_t id, uint8_t *buf, size_t size, uint32_t *flags,
                        nghttp2_data_source *source, void *user)
{
    struct dp_h2 *c = user;
    size_t n = c->n_out < size ? c->n_out : size;

    if (n == 0) {
        c->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    memcpy(buf, c->out, n);
    c->n_out -= n;
    memmove(c->out, c->out + n, c->n_out);
    return (ssize_t)n;
}

static void ask(struct dp_h2 *c)
{
#define NV(k, v)                                                                                             \
    {                                                                                                        \
        (uint8_t *)(uintptr_t)(k), (uint8_t *)(uintptr_t)(v), strlen(k), strlen(v), 0                        \
    }
    const nghttp2_nv nv[] = {NV(":method", "CONNECT"),
                             NV(":protocol", "connect-ip"),
                             NV(":scheme", "https"),
                             NV(":authority", "masque.test:4433"),
                             NV(":path", (const char *)c->path),
                             NV("capsule-protocol", "?1")};
    nghttp2_data_provider source = {.read_callback = read_out};

    c->asked = true;
    c->sid = nghttp2_submit_request(c->http, NULL, nv, sizeof nv / sizeof nv[0], &source, c);
    if (c->sid < 0)
        die(nghttp2_strerror(c->sid));
}

static void start_http(struct dp_h2 *c)
{
    nghttp2_session_callbacks *k;
    const nghttp2_settings_entry iv = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};

    if (nghttp2_session_callbacks_new(&k) != 0)
        die("no memory");
    nghttp2_session_callbacks_set_on_header_callback(k, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(k, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(k, on_close);
    if (nghttp2_session_client_new(&c->http, k, c) != 0 || nghttp2_submit_settings(c->http, 0, &iv, 1) != 0 ||
        nghttp2_session_set_local_window_size(c->http, 0, 0, 1 << 22) != 0)
        die("HTTP/2 session");
    nghttp2_session_callbacks_del(k);
}

/* ---- the socket ---- */

struct dp_h2 *dp_h2_new(uint16_t port, const char *dir, const char *name, const char *path, dp_packet_fn fn,
                        void *arg)
{
    struct sockaddr_in6 to = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct dp_h2 *c = calloc(1, sizeof *c);
    char cert[300], key[300];
    const int one = 1;

    if (!c)
        die("no memory");
    c->fn = fn;
    c->arg = arg;
    (void)snprintf(c->path, sizeof c->path, "%s", path);
    (void)snprintf(cert, sizeof cert, "%s/%s.crt", dir, name);
    (void)snprintf(key, sizeof key, "%s/%s.key", dir, name);
    c->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&to, sizeof to) < 0)
        die(strerror(errno));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->ctx = SSL_CTX_new(TLS_client_method());
    if (!c->ctx || SSL_CTX_use_certificate_chain_file(c->ctx, cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(c->ctx, key, SSL_FILETYPE_PEM) != 1)
        die("certificate");
    SSL_CTX_set_mode(c->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    c->ssl = SSL_new(c->ctx);
    if (!c->ssl || SSL_set_alpn_protos(c->ssl, (const unsigned char *)"\2h2", 3) != 0 ||
        SSL_set_fd(c->ssl, c->fd) != 1)
        die("TLS session");
    SSL_set_connect_state(c->ssl);
    start_http(c);
    dp_h2_pump(c);
    return c;
}

struct dp_h2 *dp_h2_free(struct dp_h2 *c)
{
    if (!c)
        return NULL;
    if (!c->ended && c->sid > 0)
        (void)nghttp2_submit_rst_stream(c->http, 0, c->sid, NGHTTP2_CANCEL);
    dp_h2_pump(c);
    nghttp2_session_del(c->http);
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    ERR_clear_error();
    (void)close(c->fd);
    free(c);
    return NULL;
}

int dp_h2_fd(const struct dp_h2 *c)
{
    return c->fd;
}

/* False when there is no more to be had from it for now. */
static bool soft(struct dp_h2 *c, int rv)
{
    int e = SSL_get_error(c->ssl, rv);

    if (e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE)
        c->ended = true;
    return false;
}

static bool push(struct dp_h2 *c)
{
    while (c->n_wire > 0) {
        int n;

        ERR_clear_error();
        n = SSL_write(c->ssl, c->wire, (int)c->n_wire);
        if (n <= 0)
            return soft(c, n);
        c->n_wire -= (size_t)n;
        memmove(c->wire, c->wire + n, c->n_wire);
    }
    return true;
}

static void write_all(struct dp_h2 *c)
{
    const uint8_t *p;
    ssize_t n;

    while (push(c) && !c->ended && (n = nghttp2_session_mem_send(c->http, &p)) > 0) {
        if ((size_t)n > sizeof c->wire)
            die("a frame is too long");
        memcpy(c->wire, p, (size_t)n);
        c->n_wire = (size_t)n;
    }
}

void dp_h2_pump(struct dp_h2 *c)
{
    uint8_t buf[16384];
    int n;

    if (c->ended && c->n_wire == 0 && c->asked)
        return;
    if (!SSL_is_init_finished(c->ssl)) {
        ERR_clear_error();
        n = SSL_do_handshake(c->ssl);
        if (n != 1) {
            (void)soft(c, n);
            return;
        }
    }
    for (unsigned i = 0; i < 64; i++) {
        ERR_clear_error();
        n = SSL_read(c->ssl, buf, sizeof buf);
        if (n <= 0) {
            (void)soft(c, n);
            break;
        }
        if (nghttp2_session_mem_recv(c->http, buf, (size_t)n) < 0)
            c->ended = true;
    }
    if (!c->asked &&
        nghttp2_session_get_remote_settings(c->http, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1)
        ask(c);
    write_all(c);
}

int dp_h2_status(const struct dp_h2 *c)
{
    return c->status;
}

bool dp_h2_ended(const struct dp_h2 *c)
{
    return c->ended;
}

const char *dp_h2_body(const struct dp_h2 *c)
{
    return c->body;
}

bool dp_h2_send(struct dp_h2 *c, const uint8_t *pkt, size_t len)
{
    size_t n = len + 1;

    if (c->status != 200 || c->ended || c->n_wire > 0 || n + 4 > sizeof c->out - c->n_out || n >= 16384)
        return false;
    c->out[c->n_out++] = 0;
    c->out[c->n_out++] = (uint8_t)(0x40 | n >> 8);
    c->out[c->n_out++] = (uint8_t)n;
    c->out[c->n_out++] = 0;
    memcpy(c->out + c->n_out, pkt, len);
    c->n_out += len;
    if (c->deferred) {
        c->deferred = false;
        (void)nghttp2_session_resume_data(c->http, c->sid);
    }
    write_all(c);
    return true;
}
