/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS 1.3 for HTTP/2 with OpenSSL: ALPN h2 enforced, no tickets, no resumption, no 0-RTT, no key log. Whom to
 * let in is decided by masque/peer_verify.h, as for HTTP/3.
 */
#include "masque/h2_int.h"
#include "masque/peer_verify.h"

#include <openssl/err.h>
#include <openssl/x509.h>

struct masque_h2_tls {
    SSL_CTX *ctx;
    struct masque_roots *roots;
    unsigned refs;
    bool optional;
};

static const char *reason(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *why = e ? ERR_reason_error_string(e) : NULL;
    return why ? why : "failed";
}

/* Converts the peer's chain to bytes and asks the shared check. */
static int verify_cb(X509_STORE_CTX *x, void *arg)
{
    const struct masque_h2_tls *t = arg;
    STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(x); /* what the client sent, leaf included */
    X509 *leaf = X509_STORE_CTX_get0_cert(x);
    struct masque_der chain[MASQUE_CHAIN_MAX] = {{NULL, 0}};
    uint8_t *der[MASQUE_CHAIN_MAX] = {NULL};
    size_t n = 0;
    bool ok = leaf != NULL;
    for (int i = -1; ok && i < sk_X509_num(sent); i++) {
        X509 *c = i < 0 ? leaf : sk_X509_value(sent, i);
        if (i >= 0 && X509_cmp(c, leaf) == 0)
            continue;
        int len = n < MASQUE_CHAIN_MAX ? i2d_X509(c, &der[n]) : -1;
        ok = len > 0;
        if (ok) {
            chain[n] = (struct masque_der){der[n], (size_t)len};
            n++;
        }
    }
    int rv = masque_peer_verify(t->roots, chain, ok ? n : 0);
    for (size_t i = 0; i < MASQUE_CHAIN_MAX; i++)
        OPENSSL_free(der[i]);
    X509_STORE_CTX_set_error(x, rv); /* OpenSSL makes the alert from it, and SSL_get_verify_result tells */
    return rv == X509_V_OK ? 1 : 0;
}

static int alpn_cb(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in,
                   unsigned int inlen, void *arg)
{
    for (unsigned i = 0; i + 1 <= inlen && i + 1 + in[i] <= inlen; i += 1u + in[i])
        if (in[i] == 2 && in[i + 1] == 'h' && in[i + 2] == '2') {
            *out = in + i + 1;
            *outlen = 2;
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_ALERT_FATAL; /* no_application_protocol */
}

/* The ALPN callback is not called for a client that sends no ALPN extension at all. */
static int hello_cb(SSL *ssl, int *alert, void *arg)
{
    const unsigned char *p;
    size_t n;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p, &n))
        return SSL_CLIENT_HELLO_SUCCESS;
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
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

static bool policy(SSL_CTX *s)
{
    char groups[] = "X25519:P-256:P-384"; /* the macro wants no const */
    SSL_CTX_set_options(s, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(s, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(s, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(s, 1);
    SSL_CTX_set_alpn_select_cb(s, alpn_cb, NULL);
    SSL_CTX_set_client_hello_cb(s, hello_cb, NULL);
    SSL_CTX_set_keylog_callback(s, NULL);
    return SSL_CTX_set_min_proto_version(s, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(s, 0) == 1 &&
           SSL_CTX_set_max_early_data(s, 0) == 1 &&
           SSL_CTX_set_ciphersuites(
               s, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
           SSL_CTX_set1_groups_list(s, groups) == 1;
}

static int load(struct masque_h2_tls *t, const struct masque_h2_tls_config *cfg, struct base_err *err)
{
    t->ctx = SSL_CTX_new(TLS_server_method());
    if (!t->ctx || !policy(t->ctx))
        return base_err_set(err, BASE_ENOMEM, "TLS: %s", reason());
    if (SSL_CTX_use_certificate_chain_file(t->ctx, cfg->cert_file) != 1 ||
        SSL_CTX_use_PrivateKey_file(t->ctx, cfg->key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(t->ctx) != 1)
        return base_err_set(
            err, BASE_EINVAL,
            "TLS certificate %s, key %s: %s; both must be readable PEM files that belong together",
            cfg->cert_file, cfg->key_file, reason());
    int rv = masque_roots_load(&t->roots, cfg->client_ca_file, err);
    if (rv != BASE_OK)
        return rv;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(cfg->client_ca_file);
    if (!names)
        return base_err_set(err, BASE_EINVAL, "client CA file %s: %s; it must hold PEM certificates",
                            cfg->client_ca_file, reason());
    SSL_CTX_set_client_CA_list(t->ctx, names); /* takes them */
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER | (cfg->optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT), NULL);
    SSL_CTX_set_cert_verify_callback(t->ctx, verify_cb, t);
    return BASE_OK;
}

int masque_h2_tls_new(struct masque_h2_tls **ret, const struct masque_h2_tls_config *cfg,
                      struct base_err *err)
{
    struct masque_h2_tls *t = base_calloc(1, sizeof *t);
    if (!t)
        return base_err_set(err, BASE_ENOMEM, "TLS: no memory");
    t->refs = 1;
    t->optional = cfg->optional;
    ERR_clear_error();
    int rv = load(t, cfg, err);
    ERR_clear_error();
    if (rv != BASE_OK) {
        masque_h2_tls_unref(t);
        return rv;
    }
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
