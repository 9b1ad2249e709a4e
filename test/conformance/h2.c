/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/2 for the cases: a small client on nghttp2 and OpenSSL, without a thread and without waiting.
 */
#include "conf.h"

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

#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

enum { STREAMS = 10, OUT = 1 << 20, BODY = 1 << 20, PACKETS = 4096 };
struct stream {
    int32_t id;
    int status;
    char fields[1024];
    uint8_t *out; /* grows at its end only */
    size_t n_out, n_sent;
    bool fin, deferred, ended, closed;
    uint32_t code;
    uint8_t body[BODY];
    size_t n_body, parsed; /* parsed: bytes of `body` that are whole capsules */
};
struct packet {
    size_t stream, at, n; /* in that stream's body */
};
struct h2 {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
    nghttp2_session *http;
    bool shaken, settings, closed;
    uint64_t code;
    struct stream *streams[STREAMS];
    size_t n_streams;
    struct packet packets[PACKETS];
    size_t n_packets;
    uint8_t *send; /* what the socket has not taken yet */
    size_t n_send;
};

/* ---- nghttp2 ---- */
static struct stream *find(struct h2 *c, int32_t id)
{
    for (size_t i = 0; i < c->n_streams; i++)
        if (c->streams[i]->id == id)
            return c->streams[i];
    return NULL;
}

static int on_header(nghttp2_session *http, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct stream *s = find(user, f->hd.stream_id);
    if (!s)
        return 0;
    size_t at = strlen(s->fields);
    (void)snprintf(s->fields + at, sizeof s->fields - at, "%.*s: %.*s\n", (int)n_name, (const char *)name,
                   (int)n_value, (const char *)value);
    if (n_name == 7 && memcmp(name, ":status", 7) == 0)
        s->status = (int)strtol((const char *)value, NULL, 10);
    return 0;
}

static int on_frame(nghttp2_session *http, const nghttp2_frame *f, void *user)
{
    struct h2 *c = user;
    struct stream *s = find(c, f->hd.stream_id);
    c->settings = c->settings || (f->hd.type == NGHTTP2_SETTINGS && !(f->hd.flags & NGHTTP2_FLAG_ACK));
    if (f->hd.type == NGHTTP2_GOAWAY)
        c->code = f->goaway.error_code;
    if (s && (f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) &&
        (f->hd.flags & NGHTTP2_FLAG_END_STREAM))
        s->ended = true;
    return 0;
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
    struct stream *s = find(user, id);
    if (!s)
        return 0;
    if (n > sizeof s->body - s->n_body)
        conf_fail(__FILE__, __LINE__, "more than %d bytes of body", BODY);
    memcpy(s->body + s->n_body, p, n);
    s->n_body += n;
    return 0;
}

static int on_close(nghttp2_session *http, int32_t id, uint32_t code, void *user)
{
    struct stream *s = find(user, id);
    if (s) {
        s->closed = true;
        s->code = code;
    }
    return 0;
}

static ssize_t read_out(nghttp2_session *http, int32_t id, uint8_t *buf, size_t size, uint32_t *flags,
                        nghttp2_data_source *source, void *user)
{
    struct stream *s = source->ptr;
    size_t n = s->n_out - s->n_sent < size ? s->n_out - s->n_sent : size;
    s->deferred = n == 0 && !s->fin;
    if (s->deferred)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(buf, s->out + s->n_sent, n);
    s->n_sent += n;
    if (s->fin && s->n_sent == s->n_out)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static void start_http(struct h2 *c, uint32_t window)
{
    nghttp2_session_callbacks *k;
    nghttp2_option *o;
    const nghttp2_settings_entry iv[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
    if (nghttp2_session_callbacks_new(&k) != 0 || nghttp2_option_new(&o) != 0)
        abort();
    nghttp2_option_set_no_http_messaging(o, 1); /* it sends what is wrong, too */
    nghttp2_session_callbacks_set_on_header_callback(k, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(k, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(k, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(k, on_close);
    if (nghttp2_session_client_new2(&c->http, k, c, o) != 0 ||
        nghttp2_submit_settings(c->http, 0, iv, 2) != 0 ||
        nghttp2_session_set_local_window_size(c->http, 0, 0, 1 << 22) != 0)
        abort();
    nghttp2_session_callbacks_del(k);
    nghttp2_option_del(o);
}

/* ---- TLS and TCP ---- */
static void *h2_open(struct conf *t, const struct conf_options *o)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6,
                              .sin6_port = htons(masque_endpoint_port(t->d->ends)),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const char *alpn = o->alpn ? o->alpn : "h2";
    uint8_t wire[32] = {(uint8_t)strlen(alpn)};
    struct h2 *c = calloc(1, sizeof *c);
    if (!c || strlen(alpn) > 30)
        abort();
    memcpy(wire + 1, alpn, strlen(alpn));
    c->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&to, sizeof to) != 0 ||
        fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0 ||
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) != 0)
        conf_fail(__FILE__, __LINE__, "no connection: %s", strerror(errno));
    c->ctx = SSL_CTX_new(TLS_client_method());
    if (!o->no_cert && (SSL_CTX_use_certificate_chain_file(c->ctx, o->cert ? o->cert : t->cert) != 1 ||
                        SSL_CTX_use_PrivateKey_file(c->ctx, o->key ? o->key : t->key, SSL_FILETYPE_PEM) != 1))
        abort();
    SSL_CTX_set_mode(c->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    c->ssl = SSL_new(c->ctx);
    if (!c->ssl || SSL_set_alpn_protos(c->ssl, wire, 1 + wire[0]) != 0 || SSL_set_fd(c->ssl, c->fd) != 1)
        abort();
    SSL_set_connect_state(c->ssl);
    start_http(c, o->no_window ? 0 : 1 << 20);
    return c;
}

static void h2_free(void *v)
{
    struct h2 *c = v;
    nghttp2_session_del(c->http);
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    (void)close(c->fd);
    for (size_t i = 0; i < c->n_streams; i++) {
        free(c->streams[i]->out);
        free(c->streams[i]);
    }
    free(c->send);
    free(c);
}

/* The TLS alert that ended it, as QUIC would say it. */
static void ended(struct h2 *c)
{
    unsigned long e = ERR_peek_last_error();
    c->closed = true;
    if (ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) > SSL_AD_REASON_OFFSET)
        c->code = 0x100 + (uint64_t)(ERR_GET_REASON(e) - SSL_AD_REASON_OFFSET);
}

static bool again(struct h2 *c, int rv)
{
    int e = SSL_get_error(c->ssl, rv);
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
        return true;
    ended(c);
    return false;
}

static void take_in(struct h2 *c)
{
    uint8_t buf[16384];
    while (!c->closed) {
        ERR_clear_error();
        int n = SSL_read(c->ssl, buf, sizeof buf);
        if (n <= 0) {
            (void)again(c, n);
            return;
        }
        if (nghttp2_session_mem_recv(c->http, buf, (size_t)n) < 0)
            conf_fail(__FILE__, __LINE__, "what the server sends is no HTTP/2");
    }
}

static void send_out(struct h2 *c)
{
    while (!c->closed) {
        if (c->n_send == 0) {
            const uint8_t *p;
            ssize_t n = nghttp2_session_mem_send(c->http, &p);
            if (n <= 0)
                return;
            uint8_t *copy = realloc(c->send, (size_t)n);
            if (!copy)
                abort();
            memcpy(copy, p, (size_t)n);
            c->send = copy;
            c->n_send = (size_t)n;
        }
        ERR_clear_error();
        int n = SSL_write(c->ssl, c->send, (int)c->n_send);
        if (n <= 0) {
            (void)again(c, n);
            return;
        }
        memmove(c->send, c->send + n, c->n_send - (size_t)n);
        c->n_send -= (size_t)n;
    }
}

static void h2_step(void *v, base_time now)
{
    struct h2 *c = v;
    if (c->closed)
        return;
    if (!c->shaken) {
        ERR_clear_error();
        int rv = SSL_do_handshake(c->ssl);
        if (rv != 1) {
            (void)again(c, rv);
            return;
        }
        c->shaken = true;
    }
    take_in(c);
    send_out(c);
}

static base_time h2_expiry(const void *v)
{
    return BASE_TIME_NEVER;
}

static int h2_fd(const void *v)
{
    return ((const struct h2 *)v)->fd;
}

static bool h2_ready(const void *v)
{
    return ((const struct h2 *)v)->settings;
}

static bool h2_closed(const void *v, uint64_t *ret_code)
{
    const struct h2 *c = v;
    *ret_code = c->code;
    return c->closed;
}

/* ---- requests ---- */
static size_t h2_request(void *v, const struct testclient_field *f, size_t n, bool fin)
{
    struct h2 *c = v;
    nghttp2_nv nv[32];
    struct stream *s = calloc(1, sizeof *s);
    if (!s || n > 32 || c->n_streams == STREAMS || !(s->out = malloc(OUT)))
        abort();
    for (size_t i = 0; i < n; i++)
        nv[i] = (nghttp2_nv){(uint8_t *)(uintptr_t)f[i].name, (uint8_t *)(uintptr_t)f[i].value,
                             strlen(f[i].name), strlen(f[i].value), NGHTTP2_NV_FLAG_NONE};
    nghttp2_data_provider source = {.source.ptr = s, .read_callback = read_out};
    s->id = nghttp2_submit_request(c->http, NULL, nv, n, fin ? NULL : &source, NULL);
    if (s->id < 0)
        conf_fail(__FILE__, __LINE__, "%s", nghttp2_strerror(s->id));
    c->streams[c->n_streams] = s;
    return c->n_streams++;
}

static void h2_write(void *v, size_t stream, const void *p, size_t n, bool fin)
{
    struct h2 *c = v;
    struct stream *s = c->streams[stream];
    if (n > OUT - s->n_out)
        abort();
    if (n > 0)
        memcpy(s->out + s->n_out, p, n);
    s->n_out += n;
    s->fin = fin;
    if (s->deferred)
        (void)nghttp2_session_resume_data(c->http, s->id);
}

static void h2_reset(void *v, size_t stream)
{
    struct h2 *c = v;
    if (nghttp2_submit_rst_stream(c->http, 0, c->streams[stream]->id, NGHTTP2_CANCEL) != 0)
        abort();
}

static void h2_hang_up(void *v)
{
    struct h2 *c = v;
    (void)shutdown(c->fd, SHUT_RDWR);
    c->closed = true;
}

static void h2_packet(void *v, size_t stream, uint64_t context, const void *p, size_t n)
{
    struct h2 *c = v;
    uint8_t buf[2100] = {0};
    size_t at = 1 + masque_varint_put(buf + 1, 8, masque_varint_len(context) + n);
    at += masque_varint_put(buf + at, 8, context);
    memcpy(buf + at, p, n);
    if (!c->streams[stream]->closed && !c->streams[stream]->fin)
        h2_write(v, stream, buf, at + n, false);
}

static int h2_status(const void *v, size_t stream)
{
    return ((const struct h2 *)v)->streams[stream]->status;
}

static const char *h2_fields(const void *v, size_t stream)
{
    return ((const struct h2 *)v)->streams[stream]->fields;
}

static const uint8_t *h2_body(const void *v, size_t stream, size_t *n)
{
    const struct stream *s = ((const struct h2 *)v)->streams[stream];
    *n = s->n_body;
    return s->body;
}

static enum conf_end h2_end(const void *v, size_t stream, uint64_t *ret_code)
{
    const struct stream *s = ((const struct h2 *)v)->streams[stream];
    *ret_code = s->code;
    return s->ended ? CONF_ENDED : s->closed ? CONF_RESET : CONF_OPEN;
}

static enum conf_code h2_code(uint64_t code)
{
    /* One code for both: HTTP/2 has no other (RFC 9297 sections 2 and 3.3). */
    return code == NGHTTP2_PROTOCOL_ERROR ? CONF_CODE_MESSAGE : CONF_CODE_OTHER;
}

/* ---- packets among the capsules ---- */
static void parse(struct h2 *c, size_t stream)
{
    struct stream *s = c->streams[stream];
    while (s->status == 200) {
        const uint8_t *p = s->body + s->parsed;
        uint64_t type, len, context;
        size_t left = s->n_body - s->parsed, a = masque_varint_get(p, left, &type);
        size_t b = a ? masque_varint_get(p + a, left - a, &len) : 0;
        if (b == 0 || len > left - a - b)
            return;
        if (type == MASQUE_CAPSULE_DATAGRAM) {
            size_t k = masque_varint_get(p + a + b, (size_t)len, &context);
            if (k == 0 || context != 0 || c->n_packets == PACKETS)
                conf_fail(__FILE__, __LINE__, "a DATAGRAM capsule without context 0, or too many");
            c->packets[c->n_packets++] = (struct packet){stream, s->parsed + a + b + k, (size_t)len - k};
        }
        s->parsed += a + b + (size_t)len;
    }
}

static const uint8_t *h2_received(void *v, size_t i, size_t *n)
{
    struct h2 *c = v;
    for (size_t k = 0; k < c->n_streams; k++)
        parse(c, k);
    if (i >= c->n_packets)
        return NULL;
    *n = c->packets[i].n;
    return c->streams[c->packets[i].stream]->body + c->packets[i].at;
}

uint32_t conf_h2_setting(struct conf_client *c, int id)
{
    return nghttp2_session_get_remote_settings(((struct h2 *)c->impl)->http, (nghttp2_settings_id)id);
}

void conf_h2_send_setting(struct conf_client *c, int id, uint32_t value)
{
    const nghttp2_settings_entry iv = {id, value};
    CHECK(nghttp2_submit_settings(((struct h2 *)c->impl)->http, 0, &iv, 1) == 0, "setting %d", id);
}

const struct conf_transport conf_h2_transport = {.name = "HTTP/2",
                                                 .id = CONF_H2,
                                                 .open = h2_open,
                                                 .free = h2_free,
                                                 .step = h2_step,
                                                 .expiry = h2_expiry,
                                                 .fd = h2_fd,
                                                 .ready = h2_ready,
                                                 .closed = h2_closed,
                                                 .request = h2_request,
                                                 .write = h2_write,
                                                 .reset = h2_reset,
                                                 .hang_up = h2_hang_up,
                                                 .packet = h2_packet,
                                                 .status = h2_status,
                                                 .fields = h2_fields,
                                                 .body = h2_body,
                                                 .end = h2_end,
                                                 .code = h2_code,
                                                 .received = h2_received};
