/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/testpki_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

struct testpki_cert {
    EVP_PKEY *key;
    X509 *x;
    unsigned char *der;
    int derlen;
};

#define MUST(x)                                                                                              \
    do {                                                                                                     \
        if (!(x)) {                                                                                          \
            fprintf(stderr, "testpki: %s failed\n", #x);                                                     \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

static EVP_PKEY *new_key(enum testpki_key kind)
{
    switch (kind) {
    case TESTPKI_EC:
        return EVP_EC_gen("P-256");
    case TESTPKI_RSA:
        return EVP_RSA_gen(2048);
    case TESTPKI_RSA1024:
        return EVP_RSA_gen(1024);
    case TESTPKI_ED25519:
        return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    }
    return NULL;
}

static void extension(X509 *x, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    MUST(e && X509_add_ext(x, e, -1));
    X509_EXTENSION_free(e);
}

static void raw_uri(X509 *x, const char *uri, size_t n)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    GENERAL_NAME *g = GENERAL_NAME_new();
    ASN1_IA5STRING *s = ASN1_IA5STRING_new();
    MUST(names && g && s && ASN1_STRING_set(s, uri, (int)n));
    GENERAL_NAME_set0_value(g, GEN_URI, s);
    MUST(sk_GENERAL_NAME_push(names, g) && X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0));
    GENERAL_NAMES_free(names);
}

struct testpki_cert *testpki_new(const struct testpki_spec *spec)
{
    static long serial = 1000;
    struct testpki_cert *c = calloc(1, sizeof *c);
    MUST(c && (c->key = new_key(spec->key)) && (c->x = X509_new()));
    const struct testpki_cert *by = spec->issuer ? spec->issuer : c;
    long from = spec->from || spec->to ? spec->from : -60, to = spec->from || spec->to ? spec->to : 86400;
    MUST(X509_set_version(c->x, 2) && ASN1_INTEGER_set(X509_get_serialNumber(c->x), ++serial));
    MUST(X509_gmtime_adj(X509_getm_notBefore(c->x), from) && X509_gmtime_adj(X509_getm_notAfter(c->x), to));
    X509_NAME *name = X509_get_subject_name(c->x);
    MUST(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)spec->cn, -1, -1, 0));
    MUST(X509_set_issuer_name(c->x, X509_get_subject_name(by->x)) && X509_set_pubkey(c->x, c->key));
    extension(c->x, NID_basic_constraints, spec->ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    extension(c->x, NID_key_usage, spec->ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
    if (spec->eku)
        extension(c->x, NID_ext_key_usage, spec->eku);
    if (spec->san)
        extension(c->x, NID_subject_alt_name, spec->san);
    if (spec->has_uri)
        raw_uri(c->x, spec->uri, spec->n_uri);
    const EVP_MD *md = EVP_PKEY_get_base_id(by->key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
    MUST(X509_sign(c->x, by->key, md) > 0);
    MUST((c->derlen = i2d_X509(c->x, &c->der)) > 0);
    return c;
}

void testpki_free(struct testpki_cert *c)
{
    if (!c)
        return;
    EVP_PKEY_free(c->key);
    X509_free(c->x);
    OPENSSL_free(c->der);
    free(c);
}

void testpki_write(const struct testpki_cert *c, const struct testpki_cert *also, const char *cert_file,
                   const char *key_file)
{
    FILE *f;
    if (cert_file) {
        MUST((f = fopen(cert_file, "w")) && PEM_write_X509(f, c->x) && (!also || PEM_write_X509(f, also->x)));
        (void)fclose(f);
    }
    if (key_file) {
        MUST((f = fopen(key_file, "w")) && PEM_write_PrivateKey(f, c->key, NULL, NULL, 0, NULL, NULL));
        (void)fclose(f);
    }
}

struct masque_der testpki_der(const struct testpki_cert *c)
{
    return (struct masque_der){c->der, (size_t)c->derlen};
}
