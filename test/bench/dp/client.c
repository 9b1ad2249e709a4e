/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include "client_h2.h"
#include "dataplane/h3.h"
#include "sealed.h"
#include "wire.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/loop.h"

enum { RUN = 44, UDP_PAYLOAD = 1444 };

struct bench_client {
    struct bench_h2 *h2; /* over TCP: everything is there, and nothing of the rest is used */
    bool ideal;          /* of the rest the socket, and where packets go */
    struct bench_sealed sealed;
    struct h3_client h3;
    ngtcp2_tstamp now; /* never goes back, also when a packet's receiver sends: ngtcp2 insists */
    bool pumping;
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

/* One for all clients of a name: 10,000 of them fit into memory. */
static gnutls_certificate_credentials_t credentials(const char *dir, const char *name)
{
    static gnutls_certificate_credentials_t cred;
    static char whose[64];

    if (!cred || strcmp(whose, name) != 0) {
        (void)snprintf(whose, sizeof whose, "%s", name);
        cred = h3_credentials(dir, name);
    }
    return cred;
}

struct bench_client *bench_client_new(uint16_t port, const char *dir, const char *name,
                                      enum bench_protocol protocol, bench_packet_fn fn, void *arg)
{
    struct bench_client *c = calloc(1, sizeof *c);
    socklen_t n = sizeof c->h3.local;
    const int size = 1 << 23, one = 1;
    if (!c)
        die("memory", "none");
    if (protocol == BENCH_H2 || protocol == BENCH_IDEAL_H2) {
        c->h2 = bench_h2_new(port, dir, name, protocol == BENCH_IDEAL_H2, fn, arg);
        return c;
    }
    c->h3 = (struct h3_client){
        .fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
        .remote = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT},
        .path = protocol == BENCH_BARE ? NULL : "/.well-known/masque/ip/*/*/",
        .on_packet = fn,
        .arg = arg,
    };
    (void)setsockopt(c->h3.fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    (void)setsockopt(c->h3.fd, SOL_UDP, UDP_GRO, &one, sizeof one);
    if (connect(c->h3.fd, (const struct sockaddr *)&c->h3.remote, sizeof c->h3.remote) < 0 ||
        getsockname(c->h3.fd, (struct sockaddr *)&c->h3.local, &n) < 0)
        die("connect", strerror(errno));
    if (protocol == BENCH_IDEAL_H3) {
        c->ideal = true;
        if (bench_sealed_init(&c->sealed, 0) != 0)
            die("AES-128-GCM", "GnuTLS has none");
        (void)send(c->h3.fd, "", 1, 0); /* says where it is */
        return c;
    }
    h3_tls(&c->h3, credentials(dir, name), protocol == BENCH_BARE ? "bare" : "h3", GNUTLS_NO_AUTO_SEND_TICKET,
           BENCH_TLS);
    h3_open(&c->h3, tick(c), 8, 300 * NGTCP2_SECONDS);
    bench_client_pump(c);
    return c;
}

struct bench_client *bench_client_free(struct bench_client *c)
{
    if (!c)
        return NULL;
    if (c->h2) {
        bench_h2_free(c->h2);
    } else {
        if (c->ideal)
            gnutls_aead_cipher_deinit(c->sealed.key);
        else
            h3_close(&c->h3, tick(c));
        (void)close(c->h3.fd);
    }
    free(c);
    return NULL;
}

static bool take_in(struct bench_client *c, ngtcp2_tstamp now)
{
    static uint8_t buf[65536];
    ngtcp2_path path = h3_path(&c->h3);
    ngtcp2_pkt_info pi = {0};
    size_t len, seg;
    if (!bench_take_run(c->h3.fd, buf, sizeof buf, NULL, &len, &seg))
        return false;
    for (size_t at = 0; at < len; at += seg)
        if (ngtcp2_conn_read_pkt(c->h3.quic, &path, &pi, buf + at, len - at < seg ? len - at : seg, now) !=
            0) {
            c->h3.ended = true;
            return false;
        }
    return true;
}

static bool take_in_ideal(struct bench_client *c)
{
    static uint8_t buf[65536], pkt[2048];
    size_t len, seg;
    if (!bench_take_run(c->h3.fd, buf, sizeof buf, NULL, &len, &seg))
        return false;
    for (size_t at = 0; at < len; at += seg) {
        size_t n = bench_unseal(&c->sealed, pkt, sizeof pkt, buf + at, len - at < seg ? len - at : seg);
        if (n > 0)
            c->h3.on_packet(c->h3.arg, pkt, n);
    }
    return true;
}

static unsigned send_ideal(struct bench_client *c, const uint8_t *pkt, size_t len, unsigned n, bool gso)
{
    static struct bench_run r;
    for (unsigned i = 0; i < n; i++)
        bench_run_add(&r, c->h3.fd, NULL, bench_seal(&c->sealed, r.data + r.len, pkt, len), gso ? RUN : 1);
    bench_run_flush(&r, c->h3.fd, NULL);
    return n;
}

void bench_client_pump(struct bench_client *c)
{
    if (c->h2) {
        bench_h2_pump(c->h2);
        return;
    }
    if (c->ideal) {
        for (int i = 0; i < 64 && take_in_ideal(c); i++)
            ;
        return;
    }
    ngtcp2_tstamp now = tick(c);
    c->pumping = true;
    for (int i = 0; i < 64 && take_in(c, now); i++)
        ;
    c->pumping = false;
    if (!c->h3.ended)
        h3_write(&c->h3, now);
}

unsigned bench_client_send(struct bench_client *c, const uint8_t *pkt, size_t len, unsigned n, bool gso)
{
    if (c->h2)
        return bench_h2_send(c->h2, pkt, len, n);
    if (c->ideal)
        return send_ideal(c, pkt, len, n, gso);
    static struct bench_run r;
    static uint8_t head[2];
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    ngtcp2_tstamp now = tick(c);
    ngtcp2_vec v[2] = {{head, sizeof head}, {(uint8_t *)(uintptr_t)pkt, len}};
    unsigned sent = 0;
    ngtcp2_path_storage_zero(&ps);
    for (unsigned tries = 0; sent < n && tries < 2 * n + 2; tries++) {
        int accepted = 0;
        ngtcp2_ssize k =
            ngtcp2_conn_writev_datagram(c->h3.quic, &ps.path, &pi, r.data + r.len, UDP_PAYLOAD, &accepted,
                                        NGTCP2_WRITE_DATAGRAM_FLAG_NONE, 0, v, 2, now);
        if (k <= 0) {
            c->h3.ended |= k < 0;
            break;
        }
        sent += accepted != 0;
        bench_run_add(&r, c->h3.fd, NULL, (size_t)k, gso ? RUN : 1);
    }
    bench_run_flush(&r, c->h3.fd, NULL);
    return sent;
}

int bench_client_fd(const struct bench_client *c)
{
    return c->h2 ? bench_h2_fd(c->h2) : c->h3.fd;
}
bool bench_client_open(const struct bench_client *c)
{
    if (c->h2)
        return bench_h2_open(c->h2);
    if (c->ideal)
        return true;
    return c->h3.path ? c->h3.status == 200 : ngtcp2_conn_get_handshake_completed(c->h3.quic) != 0;
}
bool bench_client_ended(const struct bench_client *c)
{
    return c->h2 ? bench_h2_ended(c->h2) : c->h3.ended;
}
