/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/tls_ossl.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/x509.h>

static const char *reason(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *why = e ? ERR_reason_error_string(e) : NULL;
    return why ? why : "failed";
}

/* Converts the peer's chain to bytes and asks the shared check. */
int masque_tls_ossl_verify(const struct masque_roots *roots, X509_STORE_CTX *x)
{
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
    int rv = masque_peer_verify(roots, chain, ok ? n : 0);
    for (size_t i = 0; i < MASQUE_CHAIN_MAX; i++)
        OPENSSL_free(der[i]);
    X509_STORE_CTX_set_error(x, rv);
    return rv;
}

static int alpn_cb(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in,
                   unsigned int inlen, void *arg)
{
    const char *want = arg;
    for (unsigned i = 0; i + 1 <= inlen && i + 1 + in[i] <= inlen; i += 1u + in[i])
        if (in[i] == 2 && memcmp(in + i + 1, want, 2) == 0) {
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

static bool policy(SSL_CTX *s, const char *alpn)
{
    char groups[] = "X25519:P-256:P-384"; /* the macro wants no const */
    SSL_CTX_set_options(s, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(s, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(s, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(s, alpn_cb, (void *)(uintptr_t)alpn);
    SSL_CTX_set_client_hello_cb(s, hello_cb, NULL);
    SSL_CTX_set_keylog_callback(s, NULL);
    return SSL_CTX_set_min_proto_version(s, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(s, 0) == 1 &&
           SSL_CTX_set_max_early_data(s, 0) == 1 &&
           SSL_CTX_set_ciphersuites(
               s, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
           SSL_CTX_set1_groups_list(s, groups) == 1;
}

static int load(SSL_CTX *s, struct masque_roots **ret_roots, const struct masque_tls_ossl_config *cfg,
                struct base_err *err)
{
    if (SSL_CTX_use_certificate_chain_file(s, cfg->cert_file) != 1 ||
        SSL_CTX_use_PrivateKey_file(s, cfg->key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(s) != 1)
        return base_err_set(
            err, BASE_EINVAL,
            "TLS certificate %s, key %s: %s; both must be readable PEM files that belong together",
            cfg->cert_file, cfg->key_file, reason());
    int rv = masque_roots_load(ret_roots, cfg->client_ca_file, err);
    if (rv != BASE_OK)
        return rv;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(cfg->client_ca_file);
    if (!names) {
        *ret_roots = masque_roots_free(*ret_roots);
        return base_err_set(err, BASE_EINVAL, "client CA file %s: %s; it must hold PEM certificates",
                            cfg->client_ca_file, reason());
    }
    SSL_CTX_set_client_CA_list(s, names); /* takes them */
    SSL_CTX_set_verify(s, SSL_VERIFY_PEER | (cfg->optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT), NULL);
    SSL_CTX_set_cert_verify_callback(s, cfg->verify, cfg->arg);
    return BASE_OK;
}

int masque_tls_ossl_new(SSL_CTX **ret, struct masque_roots **ret_roots,
                        const struct masque_tls_ossl_config *cfg, struct base_err *err)
{
    ERR_clear_error();
    SSL_CTX *s = SSL_CTX_new(TLS_server_method());
    int rv = s && policy(s, cfg->alpn) ? load(s, ret_roots, cfg, err)
                                       : base_err_set(err, BASE_ENOMEM, "TLS: %s", reason());
    ERR_clear_error();
    if (rv != BASE_OK) {
        SSL_CTX_free(s);
        return rv;
    }
    *ret = s;
    return BASE_OK;
}
