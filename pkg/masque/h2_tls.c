/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS for HTTP/2, as masque/tls_ossl.h wants it, over a socket: what is read comes from it, what is to be
 * written goes into memory.
 */
#include "masque/h2_int.h"
#include "masque/tls_ossl.h"

#include <openssl/err.h>
#include <openssl/x509.h>

struct masque_h2_tls {
    SSL_CTX *ctx;
    struct masque_roots *roots;
    unsigned refs;
    bool optional;
};

static int verify_cb(X509_STORE_CTX *x, void *arg)
{
    const struct masque_h2_tls *t = arg;
    return masque_tls_ossl_verify(t->roots, x) == X509_V_OK ? 1 : 0; /* SSL_get_verify_result tells */
}

struct masque_h2_tls *masque_h2_tls_ref(struct masque_h2_tls *t)
{
    t->refs++;
    return t;
}

struct masque_h2_tls *masque_h2_tls_unref(struct masque_h2_tls *t)
{
    if (!t || --t->refs > 0)
        return NULL;
    SSL_CTX_free(t->ctx);
    masque_roots_free(t->roots);
    return base_free(t);
}

int masque_h2_tls_new(struct masque_h2_tls **ret, const struct masque_h2_tls_config *cfg,
                      struct base_err *err)
{
    struct masque_h2_tls *t = base_calloc(1, sizeof *t);
    if (!t)
        return base_err_set(err, BASE_ENOMEM, "TLS: no memory");
    struct masque_tls_ossl_config c = {.cert_file = cfg->cert_file,
                                       .key_file = cfg->key_file,
                                       .client_ca_file = cfg->client_ca_file,
                                       .alpn = "h2",
                                       .optional = cfg->optional,
                                       .verify = verify_cb,
                                       .arg = t};
    t->refs = 1;
    t->optional = cfg->optional;
    int rv = masque_tls_ossl_new(&t->ctx, &t->roots, &c, err);
    if (rv != BASE_OK) {
        masque_h2_tls_unref(t);
        return rv;
    }
    SSL_CTX_set_read_ahead(t->ctx, 1);
    *ret = t;
    return BASE_OK;
}

SSL *masque_h2_tls_session(struct masque_h2_tls *t, int fd, BIO **ret_wire)
{
    SSL *ssl = SSL_new(t->ctx);
    BIO *in = BIO_new_socket(fd, BIO_NOCLOSE), *wire = BIO_new(BIO_s_mem());
    if (!ssl || !in || !wire) {
        SSL_free(ssl);
        BIO_free(in);
        BIO_free(wire);
        ERR_clear_error();
        return NULL;
    }
    (void)BIO_set_mem_eof_return(wire, -1);
    SSL_set_bio(ssl, in, wire);
    SSL_set_accept_state(ssl);
    *ret_wire = wire;
    return ssl;
}

int masque_h2_tls_identity(const struct masque_h2_tls *t, SSL *ssl, enum masque_identity *ret, char uri[513],
                           char credential_id[65])
{
    const unsigned char *alpn = NULL;
    unsigned n_alpn = 0;
    uint8_t digest[BASE_SHA256_SIZE], *der = NULL;
    X509 *x = SSL_get0_peer_certificate(ssl);
    SSL_get0_alpn_selected(ssl, &alpn, &n_alpn);
    if (n_alpn != 2 || memcmp(alpn, "h2", 2) != 0)
        return BASE_EDENIED;
    if (!x) {
        *ret = MASQUE_IDENTITY_ABSENT; /* so far: its requests may carry tokens */
        return t->optional ? BASE_OK : BASE_EDENIED;
    }
    int len = SSL_get_verify_result(ssl) == X509_V_OK ? i2d_X509(x, &der) : -1;
    int rv = BASE_EDENIED;
    if (len > 0 && base_sha256(digest, der, (size_t)len, NULL, 0) == BASE_OK) {
        base_hex(credential_id, digest, sizeof digest);
        *ret = masque_peer_uri(der, (size_t)len, uri, 513);
        rv = BASE_OK;
    }
    OPENSSL_free(der);
    ERR_clear_error();
    return rv;
}

void masque_h2_tls_describe(SSL *ssl, char *buf, size_t size)
{
    unsigned long e = ERR_peek_last_error();
    const char *why = e ? ERR_reason_error_string(e) : NULL;
    long v = SSL_get_verify_result(ssl);
    if (v != X509_V_OK)
        base_fmt(buf, size, "client certificate refused: %s", masque_peer_error((int)v));
    else
        base_fmt(buf, size, "%s", why ? why : "the client went away");
    ERR_clear_error();
}
