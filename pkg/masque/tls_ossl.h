/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/tls_ossl.h - a TLS server on OpenSSL as we want it, for HTTP/2 and for QUIC where ngtcp2 has its
 * OpenSSL helper: TLS 1.3 only, one ALPN name and no connection without it, no tickets, no resumption, no
 * 0-RTT, no key log.
 *
 * Whom to let in is decided by masque/peer_verify.h. Private to this folder.
 */
#ifndef MASQUE_TLS_OSSL_H
#define MASQUE_TLS_OSSL_H

#include <stdbool.h>

#include "base/err.h"
#include "masque/peer_verify.h"

#include <openssl/ssl.h>

struct masque_tls_ossl_config {
    const char *cert_file, *key_file, *client_ca_file; /* PEM */
    const char *alpn; /* two bytes: "h2", "h3"; a literal, kept by the context */
    bool optional;    /* a client may come without a certificate; one that it sends is verified */
    int (*verify)(X509_STORE_CTX *x, void *arg); /* calls masque_tls_ossl_verify */
    void *arg;                                   /* of `verify` */
};
/* A context, and the CAs that may sign client certificates; both the caller's. BASE_OK, BASE_EINVAL (which
 * file, why, remedy) or BASE_ENOMEM; on failure nothing is returned. */
int masque_tls_ossl_new(SSL_CTX **ret, struct masque_roots **ret_roots,
                        const struct masque_tls_ossl_config *cfg, struct base_err *err);
/* Asks masque_peer_verify about the chain that the peer sent. Its code, which stands in `x`, too: OpenSSL
 * makes the alert from it. */
int masque_tls_ossl_verify(const struct masque_roots *roots, X509_STORE_CTX *x);

#endif
