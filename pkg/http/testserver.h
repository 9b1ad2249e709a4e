/* SPDX-License-Identifier: Apache-2.0
 *
 * http/testserver.h - for unit tests only: a throw-away PKI and a TLS server on loopback that does what a
 * script says, also what no sane server would do. One thread accepts, one serves each connection.
 */
#ifndef HTTP_TESTSERVER_H
#define HTTP_TESTSERVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TS_UNUSED __attribute__((unused))

/* ---- PKI */
struct ts_id {
    EVP_PKEY *key;
    X509 *cert;
    char *key_pem, *cert_pem; /* malloc */
};

static char *ts_bio_text(BIO *b)
{
    char *p = NULL, *z;
    long n = BIO_get_mem_data(b, &p);

    z = calloc(1, (size_t)n + 1);
    memcpy(z, p, (size_t)n);
    BIO_free(b);
    return z;
}

/* `issuer` NULL: a root. `san` like "IP:127.0.0.1,DNS:localhost" or NULL. */
TS_UNUSED static struct ts_id ts_issue(const char *cn, const char *san, const struct ts_id *issuer)
{
    struct ts_id id = {EVP_EC_gen("P-256"), X509_new(), NULL, NULL};
    unsigned char serial[8];
    X509V3_CTX ctx;
    X509_EXTENSION *ext;
    BIO *b;

    RAND_bytes(serial, sizeof serial);
    serial[0] &= 0x7f;
    {
        BIGNUM *bn = BN_bin2bn(serial, sizeof serial, NULL);

        BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(id.cert));
        BN_free(bn);
    }
    X509_set_version(id.cert, 2);
    X509_gmtime_adj(X509_getm_notBefore(id.cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(id.cert), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(id.cert), "CN", MBSTRING_UTF8, (const unsigned char *)cn,
                               -1, -1, 0);
    X509_set_issuer_name(id.cert, X509_get_subject_name(issuer ? issuer->cert : id.cert));
    X509_set_pubkey(id.cert, id.key);
    X509V3_set_ctx(&ctx, issuer ? issuer->cert : id.cert, id.cert, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
    X509_add_ext(id.cert, ext, -1);
    X509_EXTENSION_free(ext);
    if (san) {
        ext = X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name, san);
        X509_add_ext(id.cert, ext, -1);
        X509_EXTENSION_free(ext);
    }
    X509_sign(id.cert, issuer ? issuer->key : id.key, EVP_sha256());
    b = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(b, id.cert);
    id.cert_pem = ts_bio_text(b);
    b = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(b, id.key, NULL, NULL, 0, NULL, NULL);
    id.key_pem = ts_bio_text(b);
    return id;
}

TS_UNUSED static void ts_id_free(struct ts_id *id)
{
    EVP_PKEY_free(id->key);
    X509_free(id->cert);
    free(id->key_pem);
    free(id->cert_pem);
    memset(id, 0, sizeof *id);
}

/* ---- server */
#define TS_MAX_CONNS 64
struct ts;
struct ts_conn {
    struct ts *srv;
    int fd, index; /* index: the how manieth connection, from 0 */
    SSL *ssl;
    pthread_t thread;
    bool threaded;
    int n_req;        /* requests read so far on this connection */
    char req[131072]; /* the last one, with its body, NUL-terminated */
    size_t len;
    char peer_cn[64];
};
struct ts {
    int fd, port, v6, stop_pipe[2];
    SSL_CTX *ctx;
    pthread_t thread;
    const char *alpn; /* "h2", "http/1.1", NULL: none */
    void (*script)(struct ts_conn *c);
    bool (*before_tls)(struct ts_conn *c); /* false: close */
    void *arg;
    atomic_int n_conns, n_reqs;
    struct ts_conn *conns[TS_MAX_CONNS];
    pthread_mutex_t lock;
};

/* Waits for the end of the test or for something to read; false at the end. */
TS_UNUSED static bool ts_wait(struct ts_conn *c, int ms)
{
    struct pollfd p[2] = {{c->srv->stop_pipe[0], POLLIN, 0}, {c->fd, POLLIN, 0}};

    if (c->ssl && SSL_pending(c->ssl) > 0)
        return true;
    (void)poll(p, 2, ms);
    return !(p[0].revents & POLLIN);
}

/* Stays silent for so long, or until the test ends. */
TS_UNUSED static void ts_stall(struct ts_conn *c, int ms)
{
    struct pollfd p = {c->srv->stop_pipe[0], POLLIN, 0};

    (void)poll(&p, 1, ms);
}

TS_UNUSED static int ts_read(struct ts_conn *c, void *dst, int n)
{
    if (!ts_wait(c, 60000))
        return -1;
    return SSL_read(c->ssl, dst, n);
}

TS_UNUSED static bool ts_read_full(struct ts_conn *c, void *dst, int n)
{
    for (int done = 0, r; done < n; done += r) {
        r = ts_read(c, (char *)dst + done, n - done);
        if (r <= 0)
            return false;
    }
    return true;
}

/* Reads one HTTP/1.1 request with its body; false at the end of the connection. */
TS_UNUSED static bool ts_request(struct ts_conn *c)
{
    char *end, *cl;
    size_t want = 0;

    c->len = 0;
    c->req[0] = '\0';
    for (;;) {
        int r = ts_read(c, c->req + c->len, (int)(sizeof c->req - 1 - c->len));

        if (r <= 0)
            return false;
        c->len += (size_t)r;
        c->req[c->len] = '\0';
        end = strstr(c->req, "\r\n\r\n");
        if (!end)
            continue;
        cl = strcasestr(c->req, "\r\ncontent-length:");
        if (cl && cl < end)
            want = strtoul(cl + 17, NULL, 10);
        if (c->len >= (size_t)(end + 4 - c->req) + want)
            break;
    }
    c->n_req++;
    atomic_fetch_add(&c->srv->n_reqs, 1);
    return true;
}

TS_UNUSED static void ts_write(struct ts_conn *c, const void *p, size_t n)
{
    size_t done = 0;

    while (n && SSL_write_ex(c->ssl, (const char *)p + done, n - done, &done) != 1)
        return;
}

TS_UNUSED static void ts_send(struct ts_conn *c, const char *z)
{
    ts_write(c, z, strlen(z));
}

/* An answer with Content-Length. `headers` are whole lines or "". */
TS_UNUSED static void ts_answer(struct ts_conn *c, const char *status, const char *headers, const char *body)
{
    char head[1024];

    snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n", status, strlen(body),
             headers);
    ts_send(c, head);
    ts_send(c, body);
}

/* One chunk of a chunked body ("" ends it). */
TS_UNUSED static void ts_chunk(struct ts_conn *c, const char *z)
{
    char size[32];

    snprintf(size, sizeof size, "%zx\r\n", strlen(z));
    ts_send(c, size);
    ts_send(c, z);
    ts_send(c, "\r\n");
}

/* Ends the connection by RST, without a close notification. */
TS_UNUSED static void ts_reset(struct ts_conn *c)
{
    struct linger l = {1, 0};

    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    SSL_set_quiet_shutdown(c->ssl, 1);
}

/* ---- HTTP/2, by hand: frames are read, header blocks are not looked into */
struct ts_frame {
    uint32_t len, stream;
    uint8_t type, flags;
    unsigned char body[16384 + 9];
};
enum { TS_DATA = 0, TS_HEADERS = 1, TS_RST = 3, TS_SETTINGS = 4, TS_PING = 6, TS_GOAWAY = 7 };

TS_UNUSED static void ts_h2_send(struct ts_conn *c, uint8_t type, uint8_t flags, uint32_t stream,
                                 const void *p, uint32_t n)
{
    unsigned char f[9 + 16384] = {(unsigned char)(n >> 16),
                                  (unsigned char)(n >> 8),
                                  (unsigned char)n,
                                  type,
                                  flags,
                                  (unsigned char)(stream >> 24),
                                  (unsigned char)(stream >> 16),
                                  (unsigned char)(stream >> 8),
                                  (unsigned char)stream};

    if (n)
        memcpy(f + 9, p, n);
    ts_write(c, f, 9 + n);
}

/* Preface and settings. */
TS_UNUSED static bool ts_h2_open(struct ts_conn *c)
{
    char preface[24];

    if (!ts_read_full(c, preface, 24) || memcmp(preface, "PRI * HTTP/2.0", 14) != 0)
        return false;
    ts_h2_send(c, TS_SETTINGS, 0, 0, NULL, 0);
    return true;
}

/* The next HEADERS frame (a request); other frames are answered as they must be. */
TS_UNUSED static bool ts_h2_request(struct ts_conn *c, struct ts_frame *f)
{
    unsigned char h[9];

    while (ts_read_full(c, h, 9)) {
        f->len = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 8 | h[2];
        f->type = h[3];
        f->flags = h[4];
        f->stream = ((uint32_t)h[5] << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8]) & 0x7fffffff;
        if (f->len > sizeof f->body || (f->len && !ts_read_full(c, f->body, (int)f->len)))
            return false;
        if (f->type == TS_SETTINGS && !(f->flags & 1))
            ts_h2_send(c, TS_SETTINGS, 1, 0, NULL, 0);
        if (f->type == TS_PING && !(f->flags & 1))
            ts_h2_send(c, TS_PING, 1, 0, f->body, 8);
        if (f->type == TS_HEADERS) {
            c->n_req++;
            atomic_fetch_add(&c->srv->n_reqs, 1);
            return true;
        }
    }
    return false;
}

/* :status 200 (static table entry 8), body, end of stream when `last`. */
TS_UNUSED static void ts_h2_answer(struct ts_conn *c, uint32_t stream, const char *body, bool last)
{
    ts_h2_send(c, TS_HEADERS, 4, stream, "\x88", 1);
    ts_h2_send(c, TS_DATA, last ? 1 : 0, stream, body, (uint32_t)strlen(body));
}

/* ---- threads */
static int ts_alpn_cb(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in,
                      unsigned inlen, void *arg)
{
    struct ts *s = arg;
    unsigned char want[16];

    if (!s->alpn)
        return SSL_TLSEXT_ERR_NOACK;
    want[0] = (unsigned char)strlen(s->alpn);
    memcpy(want + 1, s->alpn, want[0]);
    for (unsigned i = 0; i + 1 + in[i] <= inlen; i += 1u + in[i])
        if (in[i] == want[0] && memcmp(in + i + 1, want + 1, want[0]) == 0) {
            *out = in + i + 1;
            *outlen = in[i];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_NOACK;
}

static void *ts_serve(void *arg)
{
    struct ts_conn *c = arg;

    if (!c->srv->before_tls || c->srv->before_tls(c)) {
        c->ssl = SSL_new(c->srv->ctx);
        SSL_set_fd(c->ssl, c->fd);
        if (ts_wait(c, 60000) && SSL_accept(c->ssl) == 1) {
            X509 *peer = SSL_get1_peer_certificate(c->ssl);

            if (peer)
                X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, c->peer_cn,
                                          sizeof c->peer_cn);
            X509_free(peer);
            c->srv->script(c);
            SSL_shutdown(c->ssl);
        }
    }
    close(c->fd);
    SSL_free(c->ssl);
    return NULL;
}

static void *ts_accept(void *arg)
{
    struct ts *s = arg;

    for (;;) {
        struct pollfd p[2] = {{s->stop_pipe[0], POLLIN, 0}, {s->fd, POLLIN, 0}};
        struct ts_conn *c;
        int fd, n;

        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (p[0].revents)
            return NULL;
        fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
        n = atomic_load(&s->n_conns);
        if (fd < 0)
            continue;
        if (n == TS_MAX_CONNS) {
            close(fd);
            continue;
        }
        c = calloc(1, sizeof *c);
        c->srv = s;
        c->fd = fd;
        c->index = n;
        s->conns[n] = c;
        atomic_store(&s->n_conns, n + 1);
        c->threaded = pthread_create(&c->thread, NULL, ts_serve, c) == 0;
    }
}

static int ts_any_client(int ok, X509_STORE_CTX *x)
{
    return 1;
}

/* `host` "127.0.0.1" or "::1". Never fails softly: aborts. */
TS_UNUSED static void ts_start(struct ts *s, const struct ts_id *id, const char *host)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t n;

    signal(SIGPIPE, SIG_IGN);
    s->v6 = strchr(host, ':') != NULL;
    s->fd = socket(s->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    n = s->v6 ? sizeof a6 : sizeof a4;
    if (bind(s->fd, s->v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4, n) != 0 ||
        listen(s->fd, 16) != 0 ||
        getsockname(s->fd, s->v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4, &n) != 0 ||
        pipe(s->stop_pipe) != 0)
        abort();
    s->port = ntohs(s->v6 ? a6.sin6_port : a4.sin_port);
    s->ctx = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(s->ctx, id->cert);
    SSL_CTX_use_PrivateKey(s->ctx, id->key);
    SSL_CTX_set_verify(s->ctx, SSL_VERIFY_PEER, ts_any_client);
    SSL_CTX_set_alpn_select_cb(s->ctx, ts_alpn_cb, s);
    if (pthread_create(&s->thread, NULL, ts_accept, s) != 0)
        abort();
}

TS_UNUSED static void ts_stop(struct ts *s)
{
    (void)!write(s->stop_pipe[1], "x", 1);
    pthread_join(s->thread, NULL);
    for (int i = 0; i < atomic_load(&s->n_conns); i++) {
        struct ts_conn *c = s->conns[i];

        if (c->threaded)
            pthread_join(c->thread, NULL);
        free(c);
    }
    close(s->fd);
    close(s->stop_pipe[0]);
    close(s->stop_pipe[1]);
    SSL_CTX_free(s->ctx);
    memset(s, 0, sizeof *s);
}

#endif
