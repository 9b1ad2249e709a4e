/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/h2client_test.h - an HTTP/2 client (OpenSSL, nghttp2) for tests of the endpoint, that can also write
 * any bytes into its TLS session, read nothing, and come without ALPN or certificate.
 */
#ifndef MASQUE_H2CLIENT_TEST_H
#define MASQUE_H2CLIENT_TEST_H

#include "masque/testenv_test.h"

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

enum { H2CLIENT_STREAMS = 16, H2CLIENT_BODY = 1 << 17, H2CLIENT_OUT = 1 << 17 };
struct h2client_config {
    const char *cert_file, *key_file; /* NULL: no certificate */
    const char *alpn;                 /* wire format, e.g. "\2h2"; NULL: none */
    bool no_http;                     /* speaks TLS only; the test writes everything */
    bool tls12;
    bool stolen;    /* signs with a key that is not the certificate's */
    int32_t window; /* initial stream window, 0 = 64 KiB */
    int rcvbuf;     /* 0 = the system's */
};
struct h2client_stream {
    int32_t id;
    int status;
    char content_type[64], retry_after[16], capsule_protocol[8], authenticate[64];
    uint8_t body[H2CLIENT_BODY];
    size_t n_body;
    bool ended, closed; /* the server's END_STREAM; the stream is gone */
    uint32_t code;
    uint8_t out[H2CLIENT_OUT]; /* what is still to be sent */
    size_t n_out;
    bool deferred, fin;
};
struct h2client {
    struct testenv *e;
    int fd;
    SSL *ssl;
    SSL_CTX *ctx;
    nghttp2_session *http;
    bool shaken, failed, eof, reset, mute, held; /* mute: reads nothing from its socket; held: does nothing */
    unsigned long tls_error;
    bool connect_protocol, goaway, settings_seen;
    uint32_t goaway_code;
    unsigned pings, frames;
    size_t max_data; /* payload of the largest DATA frame */
    struct h2client_stream *streams[H2CLIENT_STREAMS];
    size_t n_streams;
    uint8_t raw[1 << 16]; /* read by a client without HTTP */
    size_t n_raw;
    struct h2client *next;
};

struct h2client *h2client_new(struct testenv *e, struct h2client_config cfg);
/* A good one: certificate, ALPN h2, SETTINGS seen. */
struct h2client *h2client_connected(struct testenv *e);
struct h2client *h2client_free(struct h2client *c);
void h2client_free_all(struct testenv *e);
void h2client_step(struct h2client *c);
size_t h2client_request(struct h2client *c, const struct testclient_field *f, size_t n, bool fin);
/* A good CONNECT-IP request. Returns the stream's index. */
size_t h2client_connect_ip(struct h2client *c);
void h2client_send(struct h2client *c, size_t stream, const void *p, size_t n);
void h2client_end(struct h2client *c, size_t stream);
/* Bytes past nghttp2, at once. False: the connection is gone. */
bool h2client_write(struct h2client *c, const void *p, size_t n);
/* One frame, as raw bytes. */
bool h2client_frame(struct h2client *c, uint8_t type, uint8_t flags, int32_t stream, const void *p, size_t n);
/* DATAGRAM capsule with context 0; returns its length. */
size_t h2client_capsule(uint8_t *dst, const uint8_t *pkt, size_t len);
/* An accepted tunnel on an own connection; its stream is index 0. */
struct h2client *h2client_tunnel(struct testenv *e, uint64_t *ret_flow);
/* Packets among the capsules that the client has read: their number; the last one's length and first byte
 * after the context. */
size_t h2client_packets(const struct h2client_stream *s, size_t *last_len, bool bare);

#endif
