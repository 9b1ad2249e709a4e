/* SPDX-License-Identifier: Apache-2.0
 *
 * dataplane/h3.h - what the small CONNECT-IP clients over HTTP/3 have in common: one QUIC connection on a
 * connected socket, one request, datagrams of one flow. Used by client.c here and by the benchmarks' client.
 *
 * The socket, the reading of packets, the clock and TLS's settings are the owner's: they are what differs.
 * Set-up errors end the program. One thread; nothing blocks.
 */
#ifndef DATAPLANE_H3_H
#define DATAPLANE_H3_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gnutls/gnutls.h>
#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

struct h3_client { /* zeroed by the owner, who fills the first part and does not move it afterwards */
    int fd;
    struct sockaddr_in6 local, remote;
    gnutls_session_t tls; /* of h3_tls; the owner's */
    const char *path;     /* of the request; NULL: datagrams without HTTP */
    void (*on_packet)(void *arg, const uint8_t *pkt, size_t len);
    void *arg;
    void (*on_body)(struct h3_client *c, const uint8_t *data, size_t n); /* NULL: nobody reads it */

    ngtcp2_conn *quic;
    nghttp3_conn *http;
    ngtcp2_crypto_conn_ref ref;
    int64_t sid;
    int status; /* of the answer, 0 = none yet */
    bool asked, ended;
};

/* Client certificate from DIR/NAME.crt and .key. */
gnutls_certificate_credentials_t h3_credentials(const char *dir, const char *name);
void h3_tls(struct h3_client *c, gnutls_certificate_credentials_t cred, const char *alpn, unsigned flags,
            const char *priority);
/* After h3_tls; idle: ns. */
void h3_open(struct h3_client *c, ngtcp2_tstamp now, unsigned streams, ngtcp2_duration idle);
ngtcp2_path h3_path(struct h3_client *c);
/* Timers, the request, and whatever QUIC and the streams have to say; after reading. */
void h3_write(struct h3_client *c, ngtcp2_tstamp now);
/* Says goodbye and frees what h3_open made. */
void h3_close(struct h3_client *c, ngtcp2_tstamp now);

/* For ngtcp2, here and elsewhere. */
void h3_rand(uint8_t *dst, size_t n, const ngtcp2_rand_ctx *ctx);
int h3_new_cid(ngtcp2_conn *q, ngtcp2_cid *cid, uint8_t *token, size_t n, void *user);

#endif
