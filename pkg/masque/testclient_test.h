/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/testclient_test.h - a CONNECT-IP client for tests that can do everything wrong: any header, any
 * bytes on a stream, any DATAGRAM payload, any TLS identity. One connection over loopback; the caller passes
 * the time and polls.
 */
#ifndef MASQUE_TESTCLIENT_TEST_H
#define MASQUE_TESTCLIENT_TEST_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

/* testtls_test.c: the client's TLS, with whichever library ngtcp2 has here. The server is not verified. */
struct testtls;
/* `big_hello`: offers a post-quantum key share, so that the ClientHello needs two datagrams. */
struct testtls *testtls_new(const char *cert_file, const char *key_file, const char *alpn, bool big_hello,
                            ngtcp2_crypto_conn_ref *ref);
void *testtls_native_handle(struct testtls *t);
void testtls_free(struct testtls *t);
/* Whether the library lets a client use a certificate with a key that does not belong to it. */
bool testtls_takes_mismatch(void);
bool testtls_has_big_hello(void);

enum { TESTCLIENT_STREAMS = 10, TESTCLIENT_DATAGRAMS = 128, TESTCLIENT_BODY = 65536 };

struct testclient_config {
    uint16_t port;
    const char *cert_file, *key_file; /* NULL = no certificate */
    const char *alpn;                 /* NULL = no ALPN extension */
    bool big_hello;                   /* see testtls_new */
    bool no_h3_datagram;              /* SETTINGS_H3_DATAGRAM is left out */
    bool no_http;                     /* sends nothing after the handshake, no SETTINGS either */
    uint64_t max_datagram_frame_size; /* 0 = 65535; 1 = the parameter is left out */
    uint32_t version;                 /* 0 = QUIC 1 */
    const uint8_t *token;             /* sent in the first Initial */
    size_t n_token;
    size_t max_tx; /* 0 = 1444: largest UDP payload taken in, larger ones are lost (a small path) */
};
struct testclient_stream {
    struct testclient *client;
    int64_t id;
    int status;
    char retry_after[16], www_authenticate[96];
    char fields[1024]; /* of the answer: "name: value\n" each */
    uint8_t body[TESTCLIENT_BODY];
    size_t n_body;
    bool ended, closed, was_reset;
    uint64_t code;
    uint8_t *out;
    size_t n_out, n_sent;
    bool fin;
};
struct testclient {
    struct testclient_config cfg;
    int fd;
    struct sockaddr_in6 local, remote;
    ngtcp2_conn *quic;
    nghttp3_conn *http;
    struct testtls *tls;
    ngtcp2_crypto_conn_ref ref;
    base_time now;
    bool handshaken, closed, goaway;
    int error;         /* ngtcp2's, when closed */
    bool close_is_app; /* what the server's CONNECTION_CLOSE said */
    uint64_t close_code;
    bool got_settings;
    uint64_t max_field_section_size; /* the server's */
    struct testclient_stream streams[TESTCLIENT_STREAMS];
    size_t n_streams;
    uint8_t *datagrams[TESTCLIENT_DATAGRAMS];
    size_t datagram_len[TESTCLIENT_DATAGRAMS], n_datagrams;
    uint8_t *out[TESTCLIENT_DATAGRAMS]; /* DATAGRAM payloads to send */
    size_t out_len[TESTCLIENT_DATAGRAMS], n_out;
    uint64_t udp_in; /* UDP datagrams received */
    size_t largest_in;
    unsigned lose;           /* so many UDP datagrams that come next are lost */
    uint8_t dscp_in;         /* every DSCP bit that was set in one of them */
    uint64_t post_handshake; /* bytes of TLS messages after the handshake: tickets, say */
    struct {                 /* streams that the server opened, of a client with no_http */
        int64_t id;
        uint8_t data[512];
        size_t n;
    } raw[4];
    size_t n_raw;
};
struct testclient_field {
    const char *name, *value;
};

struct testclient *testclient_new(const struct testclient_config *cfg, base_time now);
/* Closes the socket without a word. */
void testclient_free(struct testclient *c);
/* Reads, handles timers, writes. */
void testclient_step(struct testclient *c, base_time now);
base_time testclient_expiry(const struct testclient *c);
/* Needs a completed handshake. Returns the index in `streams`. */
size_t testclient_request(struct testclient *c, const struct testclient_field *fields, size_t n, bool fin);
void testclient_write(struct testclient *c, size_t stream, const void *p, size_t n, bool fin);
void testclient_reset(struct testclient *c, size_t stream, uint64_t code);
void testclient_datagram(struct testclient *c, const void *p, size_t n);
void testclient_close(struct testclient *c, uint64_t h3_error);
/* Goes on from another source port, as behind a NAT that forgot it. */
void testclient_rebind(struct testclient *c);
/* Bytes on a stream past HTTP/3, at once; for clients with no_http. */
int64_t testclient_raw_open(struct testclient *c, bool bidi);
void testclient_raw_write(struct testclient *c, int64_t sid, const void *p, size_t n);

#endif
