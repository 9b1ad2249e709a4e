/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/testclient_test.h"

#include <stdlib.h>
#include <string.h>

#if __has_include(<ngtcp2/ngtcp2_crypto_ossl.h>)

#include <ngtcp2/ngtcp2_crypto_ossl.h>
#include <openssl/ssl.h>

struct testtls {
    SSL_CTX *ctx;
    SSL *ssl;
    ngtcp2_crypto_ossl_ctx *octx;
};

struct testtls *testtls_new(const char *cert_file, const char *key_file, const char *alpn, bool big_hello,
                            ngtcp2_crypto_conn_ref *ref)
{
    struct testtls *t = calloc(1, sizeof *t);
    if (!t || !(t->ctx = SSL_CTX_new(TLS_client_method())))
        abort();
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_3_VERSION);
    if (SSL_CTX_set1_groups_list(t->ctx, big_hello ? "X25519MLKEM768:X25519" : "X25519:P-256") != 1)
        abort();
    if (cert_file && (SSL_CTX_use_certificate_chain_file(t->ctx, cert_file) != 1 ||
                      SSL_CTX_use_PrivateKey_file(t->ctx, key_file, SSL_FILETYPE_PEM) != 1))
        abort();
    if (!(t->ssl = SSL_new(t->ctx)) || ngtcp2_crypto_ossl_ctx_new(&t->octx, t->ssl) != 0 ||
        ngtcp2_crypto_ossl_configure_client_session(t->ssl) != 0)
        abort();
    SSL_set_app_data(t->ssl, ref);
    SSL_set_connect_state(t->ssl);
    if (alpn) {
        uint8_t wire[32];
        size_t n = strlen(alpn);
        wire[0] = (uint8_t)n;
        memcpy(wire + 1, alpn, n);
        if (SSL_set_alpn_protos(t->ssl, wire, (unsigned)(n + 1)) != 0)
            abort();
    }
    return t;
}

void *testtls_native_handle(struct testtls *t)
{
    return t->octx;
}

void testtls_free(struct testtls *t)
{
    if (!t)
        return;
    SSL_set_app_data(t->ssl, NULL);
    SSL_free(t->ssl);
    ngtcp2_crypto_ossl_ctx_del(t->octx);
    SSL_CTX_free(t->ctx);
    free(t);
}

bool testtls_takes_mismatch(void)
{
    return false;
}

bool testtls_has_big_hello(void)
{
    return true;
}

#else

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

struct testtls {
    gnutls_session_t session;
    gnutls_certificate_credentials_t cred;
};

struct testtls *testtls_new(const char *cert_file, const char *key_file, const char *alpn, bool big_hello,
                            ngtcp2_crypto_conn_ref *ref)
{
    struct testtls *t = calloc(1, sizeof *t);
    if (!t || gnutls_certificate_allocate_credentials(&t->cred) != 0 ||
        gnutls_init(&t->session, GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT | GNUTLS_NO_TICKETS) != 0 ||
        gnutls_priority_set_direct(t->session, "NORMAL:-VERS-ALL:+VERS-TLS1.3:%DISABLE_TLS13_COMPAT_MODE",
                                   NULL) != 0 ||
        ngtcp2_crypto_gnutls_configure_client_session(t->session) != 0)
        abort();
    gnutls_certificate_set_flags(t->cred,
                                 GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH); /* tests try a stolen one */
    gnutls_session_set_keylog_function(t->session, NULL);
    if (cert_file &&
        gnutls_certificate_set_x509_key_file(t->cred, cert_file, key_file, GNUTLS_X509_FMT_PEM) < 0)
        abort();
    if (gnutls_credentials_set(t->session, GNUTLS_CRD_CERTIFICATE, t->cred) != 0)
        abort();
    if (alpn) {
        unsigned char name[32];
        gnutls_datum_t a = {name, (unsigned)strlen(alpn)};
        memcpy(name, alpn, a.size);
        if (gnutls_alpn_set_protocols(t->session, &a, 1, 0) != 0)
            abort();
    }
    gnutls_session_set_ptr(t->session, ref);
    return t;
}

void *testtls_native_handle(struct testtls *t)
{
    return t->session;
}

void testtls_free(struct testtls *t)
{
    if (!t)
        return;
    gnutls_deinit(t->session);
    gnutls_certificate_free_credentials(t->cred);
    free(t);
}

bool testtls_takes_mismatch(void)
{
    return true;
}

bool testtls_has_big_hello(void)
{
    return false;
}

#endif
