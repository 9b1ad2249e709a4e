/* SPDX-License-Identifier: Apache-2.0 */
#include "client_h2.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

enum {
    FRAME = 16384,
    FRAME_HEAD = 9,
    CAPSULE_HEAD = 4, /* type 0, length in two bytes, context 0 */
    IN = 1 << 17,
    OUT = 1 << 16,
    DATA = 0,
    HEADERS = 1,
    SETTINGS = 4,
    PING = 6,
    GOAWAY = 7,
    WINDOW_UPDATE = 8,
    ACK = 1,
    CREDIT = 1 << 28,
};

struct bench_h2 {
    int fd;
    SSL *ssl;
    bool ideal, shaken, asked, open, ended;
    int64_t window, stream_window; /* what we may send */
    int64_t taken;                 /* what came since the last WINDOW_UPDATE */
    uint8_t in[IN], out[OUT];
    size_t n_in, at_out, n_out;
    size_t skip, capsule; /* bytes of the DATA frame, and of the capsule in it, that are still to come */
    uint8_t head[8];      /* a capsule's beginning that was cut off */
    size_t n_head;
    uint8_t pkt[2048];
    size_t n_pkt;
    bench_packet_fn fn;
    void *arg;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench client: %s: %s\n", what, strerror(errno));
    exit(1);
}

struct bench_h2 *bench_h2_new(uint16_t port, const char *dir, const char *name, bool ideal,
                              bench_packet_fn fn, void *arg)
{
    struct sockaddr_in6 to = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct bench_h2 *c = calloc(1, sizeof *c);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    char cert[300], key[300];
    const int one = 1;
    if (!c || !ctx)
        die("memory");
    c->fn = fn;
    c->arg = arg;
    c->ideal = ideal;
    c->window = c->stream_window = ideal ? INT64_MAX / 2 : 65535;
    (void)snprintf(cert, sizeof cert, "%s/%s.crt", dir, name);
    (void)snprintf(key, sizeof key, "%s/%s.key", dir, name);
    c->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&to, sizeof to) < 0)
        die("connect");
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)fcntl(c->fd, F_SETFL, O_NONBLOCK);
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") != 1)
        die(cert);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(ctx, 1);
    c->ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    if (!c->ssl || SSL_set_alpn_protos(c->ssl, (const unsigned char *)"\2h2", 3) != 0 ||
        SSL_set_fd(c->ssl, c->fd) != 1)
        die("TLS");
    SSL_set_connect_state(c->ssl);
    return c;
}

struct bench_h2 *bench_h2_free(struct bench_h2 *c)
{
    if (!c)
        return NULL;
    SSL_free(c->ssl);
    ERR_clear_error();
    (void)close(c->fd);
    free(c);
    return NULL;
}

int bench_h2_fd(const struct bench_h2 *c)
{
    return c->fd;
}
bool bench_h2_open(const struct bench_h2 *c)
{
    return c->open;
}
bool bench_h2_ended(const struct bench_h2 *c)
{
    return c->ended;
}

/* ---- out ---- */
static bool soft(struct bench_h2 *c, int rv)
{
    int e = SSL_get_error(c->ssl, rv);
    c->ended |= e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE;
    return false;
}

static bool push(struct bench_h2 *c)
{
    while (c->n_out > c->at_out) {
        size_t left = c->n_out - c->at_out;
        ERR_clear_error();
        int n = SSL_write(c->ssl, c->out + c->at_out, left < FRAME ? (int)left : FRAME);
        if (n <= 0)
            return soft(c, n);
        c->at_out += (size_t)n;
    }
    c->at_out = c->n_out = 0;
    return true;
}

static void frame_head(uint8_t *p, size_t len, uint8_t type, uint8_t flags, uint8_t stream)
{
    const uint8_t h[FRAME_HEAD] = {
        (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len, type, flags, 0, 0, 0, stream};
    memcpy(p, h, sizeof h);
}

static void frame(struct bench_h2 *c, uint8_t type, uint8_t flags, uint8_t stream, const void *p, size_t len)
{
    if (c->n_out + FRAME_HEAD + len > sizeof c->out)
        die("too much to send");
    frame_head(c->out + c->n_out, len, type, flags, stream);
    memcpy(c->out + c->n_out + FRAME_HEAD, p, len);
    c->n_out += FRAME_HEAD + len;
}

static void word(struct bench_h2 *c, uint8_t type, uint8_t stream, uint32_t v)
{
    const uint8_t p[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    frame(c, type, 0, stream, p, sizeof p);
}

static void greet(struct bench_h2 *c)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const uint8_t settings[] = {0, 1, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff};
    memcpy(c->out, preface, sizeof preface - 1);
    c->n_out = sizeof preface - 1;
    frame(c, SETTINGS, 0, 0, settings, sizeof settings);
    word(c, WINDOW_UPDATE, 0, 0x7fff0000 - 65535);
}

static void ask(struct bench_h2 *c)
{
    static const char *const fields[][2] = {
        {":method", "CONNECT"},        {":protocol", "connect-ip"}, {":scheme", "https"},
        {":authority", "masque.test"}, {"capsule-protocol", "?1"},  {":path", "/.well-known/masque/ip/*/*/"},
    };
    static const unsigned order[] = {0, 1, 2, 3, 5, 4};
    uint8_t p[512];
    size_t n = 0;
    p[n++] = 0x20; /* a table of size 0, as the server wants it (RFC 7541 section 4.2) */
    for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++) {
        p[n++] = 0; /* literal, not indexed, no Huffman code */
        for (unsigned k = 0; k < 2; k++) {
            size_t len = strlen(fields[order[i]][k]);
            p[n++] = (uint8_t)len;
            memcpy(p + n, fields[order[i]][k], len);
            n += len;
        }
    }
    c->asked = true;
    frame(c, HEADERS, 4, 1, p, n);
}

unsigned bench_h2_send(struct bench_h2 *c, const uint8_t *pkt, size_t len, unsigned n)
{
    size_t one = len + CAPSULE_HEAD;
    unsigned done = 0;
    if (!c->open || !push(c))
        return 0;
    while (done < n) {
        size_t k = (FRAME - FRAME_HEAD) / one, room = sizeof c->out - c->n_out;
        k = k < n - done ? k : n - done;
        if (room < FRAME_HEAD + k * one || (int64_t)(k * one) > c->window ||
            (int64_t)(k * one) > c->stream_window)
            break;
        frame_head(c->out + c->n_out, k * one, DATA, 0, 1);
        c->n_out += FRAME_HEAD;
        for (size_t i = 0; i < k; i++) {
            uint8_t *p = c->out + c->n_out;
            p[0] = 0;
            p[1] = (uint8_t)(0x40 | (len + 1) >> 8);
            p[2] = (uint8_t)(len + 1);
            p[3] = 0;
            memcpy(p + CAPSULE_HEAD, pkt, len);
            c->n_out += one;
        }
        c->window -= (int64_t)(k * one);
        c->stream_window -= (int64_t)(k * one);
        done += (unsigned)k;
    }
    (void)push(c);
    return done;
}

/* ---- in ---- */

/* Bytes of DATA: capsules, of which packets are counted. */
static void capsules(struct bench_h2 *c, const uint8_t *p, size_t n)
{
    while (n > 0) {
        if (c->capsule == 0) {
            c->head[c->n_head++] = *p++;
            n--;
            size_t want = c->n_head < 2 ? 2 : 1 + ((size_t)1 << (c->head[1] >> 6));
            if (c->n_head < want)
                continue;
            c->capsule = c->head[1] & 0x3f;
            for (size_t i = 2; i < want; i++)
                c->capsule = c->capsule << 8 | c->head[i];
            c->n_head = c->n_pkt = 0;
            continue;
        }
        size_t k = n < c->capsule ? n : c->capsule;
        size_t keep = k < sizeof c->pkt - c->n_pkt ? k : sizeof c->pkt - c->n_pkt;
        memcpy(c->pkt + c->n_pkt, p, keep);
        c->n_pkt += keep;
        c->capsule -= k;
        p += k;
        n -= k;
        if (c->capsule == 0 && c->head[0] == 0 && c->n_pkt > 1)
            c->fn(c->arg, c->pkt + 1, c->n_pkt - 1);
    }
}

static void control(struct bench_h2 *c, uint8_t type, uint8_t flags, uint32_t stream, const uint8_t *p,
                    size_t n)
{
    if (type == SETTINGS && !(flags & ACK)) {
        for (size_t i = 0; i + 6 <= n; i += 6)
            if (p[i] == 0 && p[i + 1] == 4)
                c->stream_window += (int64_t)((uint32_t)p[i + 2] << 24 | (uint32_t)p[i + 3] << 16 |
                                              (uint32_t)p[i + 4] << 8 | p[i + 5]) -
                                    65535;
        frame(c, SETTINGS, ACK, 0, "", 0);
        if (!c->asked)
            ask(c);
    } else if (type == HEADERS) {
        c->open |= n > 1 && p[p[0] == 0x20] == 0x88; /* :status 200, perhaps behind a table size */
    } else if (type == WINDOW_UPDATE && n == 4) {
        int64_t v =
            (uint32_t)(p[0] & 0x7f) << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
        *(stream == 0 ? &c->window : &c->stream_window) += v;
    } else if (type == PING && !(flags & ACK)) {
        frame(c, PING, ACK, 0, p, n);
    } else if (type == GOAWAY || type == 3) {
        c->ended = true;
    }
}

static void take_in(struct bench_h2 *c)
{
    size_t at = 0;
    while (at < c->n_in && !c->ended) {
        uint8_t *p = c->in + at;
        size_t left = c->n_in - at;
        if (c->skip > 0) {
            size_t k = left < c->skip ? left : c->skip;
            capsules(c, p, k);
            c->skip -= k;
            at += k;
            continue;
        }
        if (left < FRAME_HEAD)
            break;
        size_t len = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        if (p[3] == DATA) {
            c->skip = len;
            c->taken += (int64_t)len;
            at += FRAME_HEAD;
            continue;
        }
        if (left < FRAME_HEAD + len)
            break;
        control(c, p[3], p[4], (uint32_t)p[7] << 8 | p[8], p + FRAME_HEAD, len);
        at += FRAME_HEAD + len;
    }
    c->n_in -= at;
    memmove(c->in, c->in + at, c->n_in);
}

void bench_h2_pump(struct bench_h2 *c)
{
    if (c->ended)
        return;
    if (!c->shaken) {
        ERR_clear_error();
        int n = SSL_do_handshake(c->ssl);
        if (n != 1) {
            (void)soft(c, n);
            return;
        }
        c->shaken = true;
        if (c->ideal)
            c->open = true;
        else
            greet(c);
    }
    for (unsigned i = 0; i < 32 && !c->ended; i++) {
        ERR_clear_error();
        int n = SSL_read(c->ssl, c->in + c->n_in, (int)(sizeof c->in - c->n_in));
        if (n <= 0) {
            (void)soft(c, n);
            break;
        }
        c->n_in += (size_t)n;
        take_in(c);
    }
    if (!c->ideal && c->taken > CREDIT && c->n_out == 0) {
        word(c, WINDOW_UPDATE, 0, (uint32_t)c->taken);
        word(c, WINDOW_UPDATE, 1, (uint32_t)c->taken);
        c->taken = 0;
    }
    (void)push(c);
}
