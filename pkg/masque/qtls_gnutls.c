/* SPDX-License-Identifier: Apache-2.0
 *
 * GnuTLS carries the handshake and the certificates' bytes; whom to let in is decided by
 * masque/peer_verify.h.
 */
#include "masque/qtls.h"

#include <stdbool.h>

#include "base/mem.h"
#include "masque/peer_verify.h"

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

struct masque_qtls_ctx {
    gnutls_certificate_credentials_t cred; /* GnuTLS does not count references on these: hence ours */
    gnutls_priority_t prio;
    struct masque_roots *roots;
    unsigned refs;
    bool optional;
};
struct masque_qtls {
    gnutls_session_t session;
    struct masque_qtls_ctx *ctx;
    bool verified, refused, absent;
    int x509_err; /* why refused */
};

static const char priorities[] =
    "NONE:+VERS-TLS1.3:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:+AEAD:+GROUP-X25519:+GROUP-SECP256R1:"
    "+GROUP-SECP384R1:+SIGN-ECDSA-SECP256R1-SHA256:+SIGN-ECDSA-SECP384R1-SHA384:+SIGN-EDDSA-ED25519:"
    "+SIGN-RSA-PSS-RSAE-SHA256:+SIGN-RSA-PSS-RSAE-SHA384:+SIGN-RSA-SHA256:+SIGN-ECDSA-SHA256:+SIGN-ECDSA-"
    "SHA384:"
    "+CTYPE-X509:%SERVER_PRECEDENCE:%DISABLE_TLS13_COMPAT_MODE";

int masque_qtls_init(struct base_err *err)
{
    int rv = gnutls_global_init();
    return rv == 0 ? BASE_OK : base_err_set(err, BASE_EIO, "GnuTLS: %s", gnutls_strerror(rv));
}

const char *masque_qtls_backend(void)
{
    return "GnuTLS";
}

/* gnutls_session_set_ptr belongs to ngtcp2; the database pointer is free, since there is no session database. */
static struct masque_qtls *self(gnutls_session_t g)
{
    return gnutls_db_get_ptr(g);
}

static int verify_cb(gnutls_session_t g)
{
    struct masque_qtls *s = self(g);
    struct masque_der chain[MASQUE_CHAIN_MAX];
    unsigned n = 0;
    const gnutls_datum_t *list = gnutls_certificate_get_peers(g, &n);
    if ((!list || n == 0) && s->ctx->optional) {
        s->absent = true;
        return 0;
    }
    if (!list || n == 0 || n > MASQUE_CHAIN_MAX) {
        s->refused = true;
        s->x509_err = masque_peer_verify(s->ctx->roots, NULL, 0);
        return GNUTLS_E_CERTIFICATE_ERROR;
    }
    for (unsigned i = 0; i < n; i++)
        chain[i] = (struct masque_der){list[i].data, list[i].size};
    s->x509_err = masque_peer_verify(s->ctx->roots, chain, n);
    s->verified = s->x509_err == 0;
    s->refused = !s->verified;
    return s->verified ? 0 : GNUTLS_E_CERTIFICATE_ERROR;
}

/* GNUTLS_ALPN_MANDATORY does not cover a client that sends no ALPN extension at all. */
static int hello_cb(gnutls_session_t g, unsigned htype, unsigned when, unsigned incoming,
                    const gnutls_datum_t *msg)
{
    gnutls_datum_t a;
    return gnutls_alpn_get_selected_protocol(g, &a) == 0 ? 0 : GNUTLS_E_NO_APPLICATION_PROTOCOL;
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
    if (ctx->cred)
        gnutls_certificate_free_credentials(ctx->cred);
    if (ctx->prio)
        gnutls_priority_deinit(ctx->prio);
    masque_roots_free(ctx->roots);
    return base_free(ctx);
}

int masque_qtls_ctx_new(struct masque_qtls_ctx **ret, const struct masque_qtls_config *cfg,
                        struct base_err *err)
{
    struct masque_qtls_ctx *c = base_calloc(1, sizeof *c);
    if (!c)
        return base_err_set(err, BASE_ENOMEM, "TLS: no memory");
    c->refs = 1;
    c->optional = cfg->optional;
    int rv = gnutls_certificate_allocate_credentials(&c->cred), code = BASE_OK;
    if (rv == 0)
        rv = gnutls_priority_init2(&c->prio, priorities, NULL, 0);
    if (rv != 0) {
        code = base_err_set(err, BASE_ENOMEM, "TLS: %s", gnutls_strerror(rv));
        goto fail;
    }
    rv = gnutls_certificate_set_x509_key_file2(c->cred, cfg->cert_file, cfg->key_file, GNUTLS_X509_FMT_PEM,
                                               NULL, 0);
    if (rv < 0) {
        code = base_err_set(
            err, BASE_EINVAL,
            "TLS certificate %s, key %s: %s; both must be readable PEM files that belong together",
            cfg->cert_file, cfg->key_file, gnutls_strerror(rv));
        goto fail;
    }
    code = masque_roots_load(&c->roots, cfg->client_ca_file, err);
    if (code != BASE_OK)
        goto fail;
    rv = gnutls_certificate_set_x509_trust_file(c->cred, cfg->client_ca_file,
                                                GNUTLS_X509_FMT_PEM); /* names only */
    if (rv <= 0) {
        code = base_err_set(err, BASE_EINVAL, "client CA file %s: %s; it must hold PEM certificates",
                            cfg->client_ca_file, rv < 0 ? gnutls_strerror(rv) : "no certificate in it");
        goto fail;
    }
    gnutls_certificate_set_verify_function(c->cred, verify_cb);
    *ret = c;
    return BASE_OK;
fail:
    masque_qtls_ctx_unref(c);
    return code;
}

int masque_qtls_new(struct masque_qtls **ret, struct masque_qtls_ctx *ctx, struct ngtcp2_crypto_conn_ref *ref)
{
    struct masque_qtls *s = base_calloc(1, sizeof *s);
    if (!s)
        return BASE_ENOMEM;
    s->ctx = masque_qtls_ctx_ref(ctx);
    unsigned char h3[] = {'h', '3'};
    gnutls_datum_t alpn = {h3, sizeof h3};
    if (gnutls_init(&s->session, GNUTLS_SERVER | GNUTLS_NO_AUTO_SEND_TICKET | GNUTLS_NO_TICKETS |
                                     GNUTLS_NO_END_OF_EARLY_DATA) != 0 ||
        gnutls_priority_set(s->session, ctx->prio) != 0 ||
        ngtcp2_crypto_gnutls_configure_server_session(s->session) != 0 ||
        gnutls_credentials_set(s->session, GNUTLS_CRD_CERTIFICATE, ctx->cred) != 0 ||
        gnutls_alpn_set_protocols(s->session, &alpn, 1,
                                  GNUTLS_ALPN_MANDATORY | GNUTLS_ALPN_SERVER_PRECEDENCE) != 0) {
        masque_qtls_free(s);
        return BASE_ENOMEM;
    }
    gnutls_handshake_set_hook_function(s->session, GNUTLS_HANDSHAKE_CLIENT_HELLO, GNUTLS_HOOK_POST, hello_cb);
    gnutls_session_set_keylog_function(s->session, NULL); /* else $SSLKEYLOGFILE gets every secret */
    gnutls_session_set_ptr(s->session, ref);
    gnutls_db_set_ptr(s->session, s);
    gnutls_certificate_server_set_request(s->session,
                                          ctx->optional ? GNUTLS_CERT_REQUEST : GNUTLS_CERT_REQUIRE);
    *ret = s;
    return BASE_OK;
}

void *masque_qtls_native_handle(struct masque_qtls *s)
{
    return s->session;
}

struct masque_qtls *masque_qtls_free(struct masque_qtls *s)
{
    if (!s)
        return NULL;
    if (s->session)
        gnutls_deinit(s->session);
    masque_qtls_ctx_unref(s->ctx);
    return base_free(s);
}

int masque_qtls_peer_der(struct masque_qtls *s, const uint8_t **ret, size_t *ret_len)
{
    unsigned n = 0;
    const gnutls_datum_t *list = s->verified ? gnutls_certificate_get_peers(s->session, &n) : NULL;
    if (s->ctx->optional && !s->verified && !s->refused && !gnutls_certificate_get_peers(s->session, &n))
        return BASE_ENOTFOUND;
    if (!list || n == 0)
        return BASE_EDENIED;
    *ret = list[0].data;
    *ret_len = list[0].size;
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
    gnutls_datum_t a = {0};
    char *desc = gnutls_session_get_desc(s->session);
    if (gnutls_alpn_get_selected_protocol(s->session, &a) != 0)
        a.size = 0;
    base_fmt(buf, size, "%s ALPN %.*s", desc ? desc : "no TLS session yet", a.size ? (int)a.size : 4,
             a.size ? (const char *)a.data : "none");
    gnutls_free(desc);
}
