/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL 3.5 or later through ngtcp2's "ossl" helper; whom to let in is decided by masque/peer_verify.h,
 * which runs in OpenSSL's own place for it.
 */
#include "masque/qtls.h"

#include <stdbool.h>

#include "base/mem.h"
#include "masque/tls_ossl.h"

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

/* SSL_set_app_data belongs to ngtcp2 and leads to its ref; our session stands in an ex_data slot of its own. */
static int self_index(void)
{
    static int idx = -1; /* one registration per process; masque_qtls_ctx_new runs before any session */
    if (idx < 0)
        idx = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    return idx;
}

static int verify_cb(X509_STORE_CTX *x, void *arg)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(x, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct masque_qtls *s = ssl ? SSL_get_ex_data(ssl, self_index()) : NULL;
    if (!s)
        return 0;
    s->x509_err = masque_tls_ossl_verify(s->ctx->roots, x);
    s->verified = s->x509_err == X509_V_OK;
    s->refused = !s->verified;
    return s->verified ? 1 : 0;
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

int masque_qtls_ctx_new(struct masque_qtls_ctx **ret, const struct masque_qtls_config *cfg,
                        struct base_err *err)
{
    struct masque_tls_ossl_config t = {.cert_file = cfg->cert_file,
                                       .key_file = cfg->key_file,
                                       .client_ca_file = cfg->client_ca_file,
                                       .alpn = "h3",
                                       .optional = cfg->optional,
                                       .verify = verify_cb};
    struct masque_qtls_ctx *c = base_calloc(1, sizeof *c);
    if (!c)
        return base_err_set(err, BASE_ENOMEM, "TLS: no memory");
    c->refs = 1;
    c->optional = cfg->optional;
    int rv = self_index() < 0 ? base_err_set(err, BASE_ENOMEM, "TLS: no memory")
                              : masque_tls_ossl_new(&c->ssl_ctx, &c->roots, &t, err);
    if (rv != BASE_OK) {
        masque_qtls_ctx_unref(c);
        return rv;
    }
    *ret = c;
    return BASE_OK;
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
