/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/qtls.h - TLS 1.3 for a QUIC server, with client certificates. Exactly one of qtls_gnutls.c and
 * qtls_ossl.c is linked (the Makefile asks pkg-config); no TLS header leaks out of it.
 *
 * Driving only in that it reads the files it is given. ALPN h3 is enforced also on a client that offers none;
 * no tickets, no resumption, no 0-RTT, no key log. A context belongs to one thread.
 */
#ifndef MASQUE_QTLS_H
#define MASQUE_QTLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ngtcp2_crypto_conn_ref;
struct masque_qtls_ctx; /* credentials and policy; immutable, reference counted; a reload makes a new one */
struct masque_qtls;     /* one session = one QUIC connection */

struct masque_qtls_config {
    const char *cert_file;      /* PEM, leaf first, then intermediates */
    const char *key_file;       /* PEM */
    const char *client_ca_file; /* PEM roots */
    bool optional;              /* a client may come without a certificate; one that it sends is verified */
};

/* Loads the TLS library's global state; may be called more than once, before the first thread uses it. */
int masque_qtls_init(struct base_err *err);
const char *masque_qtls_backend(void);

/* BASE_OK, BASE_EINVAL (which file, why, remedy) or BASE_ENOMEM. *ret is the caller's first reference. */
int masque_qtls_ctx_new(struct masque_qtls_ctx **ret, const struct masque_qtls_config *cfg,
                        struct base_err *err);
struct masque_qtls_ctx *masque_qtls_ctx_ref(struct masque_qtls_ctx *ctx);
struct masque_qtls_ctx *masque_qtls_ctx_unref(struct masque_qtls_ctx *ctx); /* NULL ok, returns NULL */

/* Keeps `ref` until masque_qtls_free and takes a reference on `ctx`. BASE_OK or BASE_ENOMEM. */
int masque_qtls_new(struct masque_qtls **ret, struct masque_qtls_ctx *ctx,
                    struct ngtcp2_crypto_conn_ref *ref);
void *masque_qtls_native_handle(struct masque_qtls *s);      /* for ngtcp2_conn_set_tls_native_handle */
struct masque_qtls *masque_qtls_free(struct masque_qtls *s); /* after ngtcp2_conn_del; NULL ok */

/* DER of the verified leaf, borrowed until masque_qtls_free; to be asked only once the handshake has
 * completed, because the certificate is checked before the signature that proves its key. BASE_OK,
 * BASE_ENOTFOUND (optional, and the client sent none) or BASE_EDENIED. */
int masque_qtls_peer_der(struct masque_qtls *s, const uint8_t **ret, size_t *ret_len);
/* The alert to close with after a failed handshake: better than the library's own, which knows no X.509
 * reasons. */
uint8_t masque_qtls_alert(const struct masque_qtls *s, uint8_t lib_alert);
/* One line for the log: version, cipher and ALPN, or why the client certificate was refused. */
void masque_qtls_describe(struct masque_qtls *s, char *buf, size_t size);

#endif
