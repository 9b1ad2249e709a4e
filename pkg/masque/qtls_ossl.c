/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL 3.5 or later through ngtcp2's "ossl" helper; whom to let in is decided by masque/peer_verify.h,
 * which runs in OpenSSL's own place for it.
 */
#include "masque/qtls.h"

#include <stdbool.h>

#include "base/mem.h"
#include "masque/peer_verify.h"

#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_ossl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

struct masque_qtls_ctx {
    SSL_CTX *ssl_ctx;
    struct masque_roots *roots;
    unsigned refs;
    bool optional;
};
struct masque_qtls {
    SSL *ssl;
    ngtcp2_crypto_ossl_ctx *octx;
    struct masque_qtls_ctx *ctx;
    uint8_t *der; /* of the leaf, made on demand by OpenSSL */
    int derlen;
    bool verified, refused;
    int x509_err;
};

int masque_qtls_init(struct base_err *err)
{
    return ngtcp2_crypto_ossl_init() == 0 ? BASE_OK
                                          : base_err_set(err, BASE_EIO, "OpenSSL: cannot be initialised");
}

const char *masque_qtls_backend(void)
{
    return "OpenSSL";
}

/* SSL_set_app_data belongs to ngtcp2 and leads to its ref; our session stands in an ex_data slot of its own.
 */
static int self_index(void)
{
    static int idx = -1; /* one registration per process; masque_qtls_ctx_new runs before any session */
    if (idx < 0)
        idx = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    return idx;
}

/* Converts the peer's chain to bytes and asks the shared check. */
static int verify_cb(X509_STORE_CTX *x, void *arg)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(x, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct masque_qtls *s = ssl ? SSL_get_ex_data(ssl, self_index()) : NULL;
    if (!s)
        return 0;
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
    s->x509_err = masque_peer_verify(s->ctx->roots, chain, ok ? n : 0);
    for (size_t i = 0; i < MASQUE_CHAIN_MAX; i++)
        OPENSSL_free(der[i]);
    s->verified = s->x509_err == X509_V_OK;
    s->refused = !s->verified;
    X509_STORE_CTX_set_error(x, s->x509_err);
    return s->verified ? 1 : 0;
}

static int alpn_cb(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in,
                   unsigned int inlen, void *arg)
{
    for (unsigned i = 0; i + 1 <= inlen && i + 1 + in[i] <= inlen; i += 1u + in[i])
        if (in[i] == 2 && in[i + 1] == 'h' && in[i + 2] == '3') {
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

struct masque_qtls_ctx *masque_qtls_ctx_ref(struct masque_qtls_ctx *ctx)
{
    ctx->refs++;
    return ctx;
}

struct masque_qtls_ctx *masque_qtls_ctx_unref(struct masque_qtls_ctx *ctx)
{
    if (!ctx || --ctx->refs > 0)
        return NULL;
    SSL_CTX_free(ctx->ssl_ctx);
    masque_roots_free(ctx->roots);
    return base_free(ctx);
}

static const char *reason(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *why = e ? ERR_reason_error_string(e) : NULL;
    return why ? why : "failed";
}

static int policy(SSL_CTX *s)
{
    char groups[] = "X25519:P-256:P-384"; /* the macro wants no const */
    SSL_CTX_set_options(s, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(s, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(s, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(s, alpn_cb, NULL);
    SSL_CTX_set_client_hello_cb(s, hello_cb, NULL);
    return SSL_CTX_set_min_proto_version(s, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(s, 0) == 1 &&
           SSL_CTX_set_max_early_data(s, 0) == 1 &&
           SSL_CTX_set_ciphersuites(
               s, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
           SSL_CTX_set1_groups_list(s, groups) == 1;
}

int masque_qtls_ctx_new(struct masque_qtls_ctx **ret, const struct masque_qtls_config *cfg,
                        struct base_err *err)
{
    struct masque_qtls_ctx *c = base_calloc(1, sizeof *c);
    if (!c)
        return base_err_set(err, BASE_ENOMEM, "TLS: no memory");
    int code = BASE_OK;
    c->refs = 1;
    ERR_clear_error();
    c->ssl_ctx = SSL_CTX_new(TLS_server_method());
    if (!c->ssl_ctx || self_index() < 0 || !policy(c->ssl_ctx)) {
        code = base_err_set(err, BASE_ENOMEM, "TLS: %s", reason());
        goto fail;
    }
    if (SSL_CTX_use_certificate_chain_file(c->ssl_ctx, cfg->cert_file) != 1 ||
        SSL_CTX_use_PrivateKey_file(c->ssl_ctx, cfg->key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(c->ssl_ctx) != 1) {
        code = base_err_set(
            err, BASE_EINVAL,
            "TLS certificate %s, key %s: %s; both must be readable PEM files that belong together",
            cfg->cert_file, cfg->key_file, reason());
        goto fail;
    }
    code = masque_roots_load(&c->roots, cfg->client_ca_file, err);
    if (code != BASE_OK)
        goto fail;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(cfg->client_ca_file);
    if (!names) {
        code = base_err_set(err, BASE_EINVAL, "client CA file %s: %s; it must hold PEM certificates",
                            cfg->client_ca_file, reason());
        goto fail;
    }
    SSL_CTX_set_client_CA_list(c->ssl_ctx, names); /* takes them */
    c->optional = cfg->optional;
    SSL_CTX_set_verify(c->ssl_ctx, SSL_VERIFY_PEER | (cfg->optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT),
                       NULL);
    SSL_CTX_set_cert_verify_callback(c->ssl_ctx, verify_cb, NULL);
    ERR_clear_error();
    *ret = c;
    return BASE_OK;
fail:
    ERR_clear_error();
    masque_qtls_ctx_unref(c);
    return code;
}

int masque_qtls_new(struct masque_qtls **ret, struct masque_qtls_ctx *ctx, struct ngtcp2_crypto_conn_ref *ref)
{
    struct masque_qtls *s = base_calloc(1, sizeof *s);
    if (!s)
        return BASE_ENOMEM;
    s->ctx = masque_qtls_ctx_ref(ctx);
    ERR_clear_error();
    s->ssl = SSL_new(ctx->ssl_ctx);
    if (!s->ssl || ngtcp2_crypto_ossl_ctx_new(&s->octx, s->ssl) != 0 ||
        ngtcp2_crypto_ossl_configure_server_session(s->ssl) != 0 ||
        SSL_set_ex_data(s->ssl, self_index(), s) != 1) {
        masque_qtls_free(s);
        return BASE_ENOMEM;
    }
    SSL_set_app_data(s->ssl, ref);
    SSL_set_accept_state(s->ssl);
    *ret = s;
    return BASE_OK;
}

void *masque_qtls_native_handle(struct masque_qtls *s)
{
    return s->octx; /* not the SSL: that compiles and crashes */
}

struct masque_qtls *masque_qtls_free(struct masque_qtls *s)
{
    if (!s)
        return NULL;
    if (s->ssl) {
        SSL_set_app_data(s->ssl, NULL); /* else SSL_free calls into a connection that is gone */
        SSL_free(s->ssl);
    }
    if (s->octx)
        ngtcp2_crypto_ossl_ctx_del(s->octx); /* after SSL_free, which reads from its buffers */
    masque_qtls_ctx_unref(s->ctx);
    OPENSSL_free(s->der);
    ERR_clear_error();
    return base_free(s);
}

int masque_qtls_peer_der(struct masque_qtls *s, const uint8_t **ret, size_t *ret_len)
{
    X509 *x = s->verified ? SSL_get0_peer_certificate(s->ssl) : NULL;
    if (s->ctx->optional && !s->verified && !s->refused && !SSL_get0_peer_certificate(s->ssl))
        return BASE_ENOTFOUND;
    if (!x)
        return BASE_EDENIED;
    if (!s->der)
        s->derlen = i2d_X509(x, &s->der);
    if (s->derlen <= 0)
        return BASE_EDENIED;
    *ret = s->der;
    *ret_len = (size_t)s->derlen;
    return BASE_OK;
}

uint8_t masque_qtls_alert(const struct masque_qtls *s, uint8_t lib_alert)
{
    return s->refused ? masque_peer_alert(s->x509_err) : lib_alert;
}

void masque_qtls_describe(struct masque_qtls *s, char *buf, size_t size)
{
    if (s->refused) {
        base_fmt(buf, size, "client certificate refused: %s", masque_peer_error(s->x509_err));
        return;
    }
    const unsigned char *alpn = NULL;
    unsigned n = 0;
    SSL_get0_alpn_selected(s->ssl, &alpn, &n);
    unsigned long e = ERR_peek_last_error();
    base_fmt(buf, size, "%s %s ALPN %.*s%s%s", SSL_get_version(s->ssl), SSL_get_cipher_name(s->ssl),
             n ? (int)n : 4, n ? (const char *)alpn : "none", e ? ": " : "",
             e ? ERR_reason_error_string(e) : "");
    ERR_clear_error();
}
