/* SPDX-License-Identifier: Apache-2.0
 *
 * bench-ideal-h2 DEVICE PKI: what HTTP/2 could cost at best, for one client: TLS by OpenSSL, DATA frames of
 * DATAGRAM capsules in full records, super-packets on the TUN; no HTTP, no checks, no fence, no queue, no
 * counters. Prints "ready PORT".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tun/offload.h"
#include "wire.h"

enum { FRAME = 16384, FRAME_HEAD = 9, CAPSULE_HEAD = 4, BURST = 128, PACKET = 2048 };

static struct {
    int listener, fd, tun;
    SSL_CTX *ctx;
    SSL *ssl;
    uint8_t frame[FRAME]; /* towards the client */
    size_t n_frame;
    bool blocked;
    uint8_t in[FRAME + PACKET];
    size_t n_in, left; /* left: of the DATA frame */
    uint8_t buf[TUN_OFFLOAD_HEADER + 65575], out[TUN_OFFLOAD_HEADER + TUN_RUN_BYTES];
    struct tun_run run;
} s;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench-ideal-h2: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- towards the VPC ---- */
static void flush_tun(void)
{
    if (s.run.n == 0)
        return;
    tun_run_finish(&s.run);
    (void)!write(s.tun, s.out, s.run.len + TUN_OFFLOAD_HEADER);
    s.run.n = 0;
}

static void packet(const uint8_t *p, size_t n)
{
    if (!tun_run_add(&s.run, p, n)) {
        flush_tun();
        (void)tun_run_add(&s.run, p, n);
    }
}

/* Whole frames and whole capsules: the client writes them so, and a record holds one. */
static void take_in(void)
{
    size_t at = 0;
    while (at < s.n_in) {
        uint8_t *p = s.in + at;
        size_t left = s.n_in - at;
        if (s.left == 0) {
            if (left < FRAME_HEAD)
                break;
            s.left = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
            at += FRAME_HEAD;
            continue;
        }
        size_t len = left >= CAPSULE_HEAD ? ((size_t)(p[1] & 0x3f) << 8 | p[2]) : FRAME;
        if (left < 3 + len)
            break;
        packet(p + CAPSULE_HEAD, len - 1);
        at += 3 + len;
        s.left -= 3 + len;
    }
    s.n_in -= at;
    memmove(s.in, s.in + at, s.n_in);
}

static void from_client(void)
{
    for (unsigned i = 0; i < 32; i++) {
        ERR_clear_error();
        int n = SSL_read(s.ssl, s.in + s.n_in, (int)(sizeof s.in - s.n_in));
        if (n <= 0) {
            if (SSL_get_error(s.ssl, n) != SSL_ERROR_WANT_READ)
                exit(0); /* the client has gone */
            break;
        }
        s.n_in += (size_t)n;
        take_in();
    }
    flush_tun();
}

/* ---- towards the client ---- */
static bool flush_frame(void)
{
    size_t len = s.n_frame - FRAME_HEAD;
    const uint8_t h[FRAME_HEAD] = {(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len, 0, 0, 0, 0, 0, 1};
    if (s.n_frame <= FRAME_HEAD)
        return true;
    memcpy(s.frame, h, sizeof h);
    ERR_clear_error();
    int n = SSL_write(s.ssl, s.frame, (int)s.n_frame);
    if (n <= 0) {
        s.blocked = SSL_get_error(s.ssl, n) == SSL_ERROR_WANT_WRITE;
        if (!s.blocked)
            die("the client has gone");
        return false;
    }
    s.blocked = false;
    s.n_frame = FRAME_HEAD;
    return true;
}

static void to_client(void *arg, uint8_t *pkt, size_t len)
{
    uint8_t *p = s.frame + s.n_frame;
    if (s.blocked || pkt[24] == 0xff || len > PACKET) /* a record that waits must not be changed */
        return;
    if (s.n_frame + CAPSULE_HEAD + len > sizeof s.frame) {
        if (s.blocked || !flush_frame())
            return;
        p = s.frame + s.n_frame;
    }
    p[0] = 0;
    p[1] = (uint8_t)(0x40 | (len + 1) >> 8);
    p[2] = (uint8_t)(len + 1);
    p[3] = 0;
    memcpy(p + CAPSULE_HEAD, pkt, len);
    s.n_frame += CAPSULE_HEAD + len;
}

static void from_tun(void)
{
    for (unsigned i = 0; i < BURST && !s.blocked; i++) {
        ssize_t n = read(s.tun, s.buf, sizeof s.buf);
        if (n <= TUN_OFFLOAD_HEADER)
            break;
        if (!s.ssl)
            continue;
        if (tun_offload_is_super(s.buf))
            (void)tun_offload_cut(s.buf, (size_t)n - TUN_OFFLOAD_HEADER, to_client, NULL);
        else if (tun_offload_finish(s.buf, (size_t)n - TUN_OFFLOAD_HEADER))
            to_client(NULL, s.buf + TUN_OFFLOAD_HEADER, (size_t)n - TUN_OFFLOAD_HEADER);
    }
    if (s.ssl && !s.blocked)
        (void)flush_frame();
}

/* ---- set-up ---- */
static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *len, const unsigned char *in,
                     unsigned n, void *arg)
{
    *out = (const unsigned char *)"h2";
    *len = 2;
    return SSL_TLSEXT_ERR_OK;
}

static void accept_client(void)
{
    const int one = 1, unsent = 16384;
    s.fd = accept(s.listener, NULL, NULL);
    s.ssl = SSL_new(s.ctx);
    if (s.fd < 0 || !s.ssl || SSL_set_fd(s.ssl, s.fd) != 1 || SSL_accept(s.ssl) != 1)
        die("accept");
    (void)setsockopt(s.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(s.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent); /* as ours has to */
    (void)fcntl(s.fd, F_SETFL, O_NONBLOCK);
}

static uint16_t open_sockets(const char *device)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t n = sizeof a;
    s.listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s.listener, (struct sockaddr *)&a, n) != 0 || listen(s.listener, 4) != 0 ||
        getsockname(s.listener, (struct sockaddr *)&a, &n) != 0)
        die("listen");
    s.tun = bench_tun_open(device);
    if (s.tun < 0)
        die(device);
    if (ioctl(s.tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO6 | 0x20 | 0x40) < 0)
        (void)ioctl(s.tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO6);
    return ntohs(a.sin6_port);
}

int main(int argc, char **argv)
{
    char cert[300], key[300], ca[300];
    if (argc < 3)
        return 2;
    (void)snprintf(cert, sizeof cert, "%s/edge1.crt", argv[2]);
    (void)snprintf(key, sizeof key, "%s/edge1.key", argv[2]);
    (void)snprintf(ca, sizeof ca, "%s/client-ca.crt", argv[2]);
    s.ctx = SSL_CTX_new(TLS_server_method());
    if (!s.ctx || SSL_CTX_use_certificate_chain_file(s.ctx, cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(s.ctx, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_load_verify_locations(s.ctx, ca, NULL) != 1)
        die("certificates");
    SSL_CTX_set_verify(s.ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_alpn_select_cb(s.ctx, choose_h2, NULL);
    SSL_CTX_set_mode(s.ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_num_tickets(s.ctx, 0);
    s.n_frame = FRAME_HEAD;
    s.run.pkt = s.out + TUN_OFFLOAD_HEADER;
    (void)printf("ready %u\n", (unsigned)open_sockets(argv[1]));
    (void)fflush(stdout);
    accept_client();
    for (;;) {
        struct pollfd p[2] = {{s.fd, (short)(POLLIN | (s.blocked ? POLLOUT : 0)), 0},
                              {s.blocked ? -1 : s.tun, POLLIN, 0}};
        (void)poll(p, 2, -1);
        if (p[0].revents & POLLOUT)
            (void)flush_frame();
        if (p[1].revents & POLLIN)
            from_tun();
        if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
            from_client();
    }
}
