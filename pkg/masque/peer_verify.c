/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/peer_verify.h"

#include <limits.h>

#include "base/mem.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

enum { AUTH_LEVEL = 2 }; /* at least 112 bits: RSA 2048, P-224, SHA-2 */

struct masque_roots {
    X509_STORE *store;
};

int masque_roots_load(struct masque_roots **ret, const char *file, struct base_err *err)
{
    struct masque_roots *r = base_calloc(1, sizeof *r);
    if (!r || !(r->store = X509_STORE_new())) {
        base_free(r);
        return base_err_set(err, BASE_ENOMEM, "client CA file %s: no memory", file);
    }
    ERR_clear_error();
    if (X509_STORE_load_file(r->store, file) != 1) {
        unsigned long e = ERR_peek_last_error();
        const char *why = e ? ERR_reason_error_string(e) : NULL;
        int rv = base_err_set(err, BASE_EINVAL,
                              "client CA file %s: %s; it must be readable and hold PEM certificates", file,
                              why ? why : "no certificate in it");
        ERR_clear_error();
        masque_roots_free(r);
        return rv;
    }
    *ret = r;
    return BASE_OK;
}

struct masque_roots *masque_roots_free(struct masque_roots *r)
{
    if (r)
        X509_STORE_free(r->store);
    return base_free(r);
}

static X509 *decode(const struct masque_der *d)
{
    const unsigned char *p = d->p;
    if (d->len > LONG_MAX)
        return NULL;
    X509 *x = d2i_X509(NULL, &p, (long)d->len);
    if (x && p != d->p + d->len) {
        X509_free(x);
        return NULL;
    }
    return x;
}

int masque_peer_verify(const struct masque_roots *roots, const struct masque_der *chain, size_t n)
{
    int rv = X509_V_ERR_UNSPECIFIED;
    X509 *leaf = NULL;
    STACK_OF(X509) *extra = sk_X509_new_null();
    X509_STORE_CTX *x = X509_STORE_CTX_new();
    if (!x || !extra || n < 1 || n > MASQUE_CHAIN_MAX)
        goto out;
    for (size_t i = 0; i < n; i++) {
        X509 *c = decode(&chain[i]);
        if (!c)
            goto out;
        if (i == 0) {
            leaf = c;
        } else if (!sk_X509_push(extra, c)) {
            X509_free(c);
            goto out;
        }
    }
    if (!X509_STORE_CTX_init(x, roots->store, leaf, extra) || !X509_STORE_CTX_set_default(x, "ssl_client"))
        goto out;
    X509_STORE_CTX_set_depth(x, MASQUE_CHAIN_DEPTH);
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(x), AUTH_LEVEL);
    if (X509_verify_cert(x) == 1) {
        rv = X509_V_OK;
    } else {
        rv = X509_STORE_CTX_get_error(x);
        if (rv == X509_V_OK)
            rv = X509_V_ERR_UNSPECIFIED;
    }
out:
    X509_STORE_CTX_free(x);
    sk_X509_pop_free(extra, X509_free);
    X509_free(leaf);
    ERR_clear_error();
    return rv;
}

uint8_t masque_peer_alert(int x509_err)
{
    switch (x509_err) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return 45; /* certificate_expired */
    case X509_V_ERR_INVALID_PURPOSE:
        return 43; /* unsupported_certificate */
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        return 48; /* unknown_ca */
    default:
        return 42; /* bad_certificate */
    }
}

const char *masque_peer_error(int x509_err)
{
    return X509_verify_cert_error_string(x509_err);
}

enum masque_identity masque_peer_uri(const uint8_t *der, size_t derlen, char *buf, size_t size)
{
    struct masque_der d = {der, derlen};
    X509 *x = decode(&d);
    int uris = 0, crit = -1;
    bool bad = x == NULL;
    buf[0] = 0;
    GENERAL_NAMES *names = x ? X509_get_ext_d2i(x, NID_subject_alt_name, &crit, NULL) : NULL;
    if (!names && crit != -1)
        bad = true; /* there is such an extension, but it cannot be read or stands there twice */
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
        if (g->type != GEN_URI)
            continue;
        const unsigned char *u = ASN1_STRING_get0_data(g->d.uniformResourceIdentifier);
        int len = ASN1_STRING_length(g->d.uniformResourceIdentifier);
        if (++uris > 1)
            continue;
        if (len <= 0 || (size_t)len >= size || memchr(u, 0, (size_t)len)) {
            bad = true;
            continue;
        }
        memcpy(buf, u, (size_t)len);
        buf[len] = 0;
    }
    GENERAL_NAMES_free(names);
    X509_free(x);
    ERR_clear_error();
    enum masque_identity id = uris > 1 ? MASQUE_IDENTITY_MANY
                              : bad    ? MASQUE_IDENTITY_BAD
                              : uris   ? MASQUE_IDENTITY_URI
                                       : MASQUE_IDENTITY_NONE;
    if (id != MASQUE_IDENTITY_URI)
        buf[0] = 0;
    return id;
}
