/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include "client_h2.h"
#include "h3.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/loop.h"

struct dp_client {
    struct dp_h2 *h2; /* over HTTP/2: everything is there, and nothing of the rest is used */
    struct h3_client h3;
    gnutls_certificate_credentials_t cred;
    char path[128];
    char body[512];
    size_t n_body;
};

bool dp_over_h2(void)
{
    const char *t = getenv("DATAPLANE_TRANSPORT");

    return t && strcmp(t, "h2") == 0;
}

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "test client: %s: %s\n", what, why);
    abort();
}

static ngtcp2_tstamp now_ts(void)
{
    return (ngtcp2_tstamp)loop_clock();
}

static void on_body(struct h3_client *h3, const uint8_t *data, size_t n)
{
    struct dp_client *c = (struct dp_client *)((char *)h3 - offsetof(struct dp_client, h3));
    size_t k = n < sizeof c->body - 1 - c->n_body ? n : sizeof c->body - 1 - c->n_body;

    memcpy(c->body + c->n_body, data, k);
    c->n_body += k;
}

struct dp_client *dp_client_new(uint16_t port, const char *dir, const char *name, const char *path,
                                dp_packet_fn fn, void *arg)
{
    struct dp_client *c = calloc(1, sizeof *c);
    socklen_t n = sizeof c->h3.local;
    const int size = 1 << 21;

    if (!c)
        die("memory", "none");
    if (dp_over_h2()) {
        c->h2 = dp_h2_new(port, dir, name, path, fn, arg);
        return c;
    }
    (void)snprintf(c->path, sizeof c->path, "%s", path);
    c->h3 = (struct h3_client){
        .fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
        .remote = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT},
        .path = c->path,
        .on_packet = fn,
        .arg = arg,
        .on_body = on_body,
    };
    (void)setsockopt(c->h3.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (connect(c->h3.fd, (const struct sockaddr *)&c->h3.remote, sizeof c->h3.remote) < 0 ||
        getsockname(c->h3.fd, (struct sockaddr *)&c->h3.local, &n) < 0)
        die("connect", strerror(errno));
    c->cred = h3_credentials(dir, name);
    h3_tls(&c->h3, c->cred, "h3", 0, "NORMAL:-VERS-ALL:+VERS-TLS1.3:%DISABLE_TLS13_COMPAT_MODE");
    h3_open(&c->h3, now_ts(), 3, 60 * NGTCP2_SECONDS);
    dp_client_pump(c);
    return c;
}

struct dp_client *dp_client_free(struct dp_client *c)
{
    if (!c)
        return NULL;
    if (c->h2) {
        dp_h2_free(c->h2);
    } else {
        h3_close(&c->h3, now_ts());
        gnutls_certificate_free_credentials(c->cred);
        (void)close(c->h3.fd);
    }
    free(c);
    return NULL;
}

void dp_client_pump(struct dp_client *c)
{
    uint8_t buf[2048];
    ngtcp2_path path;
    ngtcp2_pkt_info pi = {0};
    ssize_t n;

    if (c->h2) {
        dp_h2_pump(c->h2);
        return;
    }
    path = h3_path(&c->h3);
    for (int i = 0; i < 512 && (n = recv(c->h3.fd, buf, sizeof buf, 0)) > 0; i++)
        if (ngtcp2_conn_read_pkt(c->h3.quic, &path, &pi, buf, (size_t)n, now_ts()) != 0)
            c->h3.ended = true;
    h3_write(&c->h3, now_ts());
    if (!c->h3.ended)
        ngtcp2_conn_update_pkt_tx_time(c->h3.quic, now_ts());
}

bool dp_client_send(struct dp_client *c, const uint8_t *pkt, size_t len)
{
    static const uint8_t head[2] = {0, 0};
    uint8_t buf[1500];
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    union {
        const uint8_t *c;
        uint8_t *m;
    } h = {head}, p = {pkt};
    ngtcp2_vec v[2] = {{h.m, sizeof head}, {p.m, len}};

    if (c->h2)
        return dp_h2_send(c->h2, pkt, len);
    ngtcp2_path_storage_zero(&ps);
    for (int i = 0; i < 20; i++) {
        int accepted = 0;
        ngtcp2_ssize n = ngtcp2_conn_writev_datagram(c->h3.quic, &ps.path, &pi, buf, sizeof buf, &accepted,
                                                     NGTCP2_WRITE_DATAGRAM_FLAG_NONE, 0, v, 2, now_ts());
        if (n <= 0)
            return false;
        (void)send(c->h3.fd, buf, (size_t)n, 0);
        if (accepted)
            return true;
    }
    return false;
}

int dp_client_fd(const struct dp_client *c)
{
    return c->h2 ? dp_h2_fd(c->h2) : c->h3.fd;
}
int dp_client_status(const struct dp_client *c)
{
    return c->h2 ? dp_h2_status(c->h2) : c->h3.status;
}
bool dp_client_ended(const struct dp_client *c)
{
    return c->h2 ? dp_h2_ended(c->h2) : c->h3.ended;
}
const char *dp_client_body(const struct dp_client *c)
{
    return c->h2 ? dp_h2_body(c->h2) : c->body;
}
