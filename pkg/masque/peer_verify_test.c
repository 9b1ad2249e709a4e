/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of certificate cases, judged without TLS; h3_test.c has them again over QUIC.
 */
#include "masque/peer_verify.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/x509_vfy.h>

#include "masque/testpki_test.h"

#define URI_A "URI:spiffe://acme/site-1"

struct pki {
    char dir[64], roots_file[96];
    struct testpki_cert *root, *other, *middle;
    struct masque_roots *roots;
};
static struct pki pki;

static void setup(void)
{
    (void)snprintf(pki.dir, sizeof pki.dir, "/tmp/masque-pki-XXXXXX");
    cr_assert(mkdtemp(pki.dir));
    (void)snprintf(pki.roots_file, sizeof pki.roots_file, "%s/roots.pem", pki.dir);
    pki.root = testpki_new(&(struct testpki_spec){.cn = "root", .ca = true});
    pki.other = testpki_new(&(struct testpki_spec){.cn = "other", .ca = true});
    pki.middle = testpki_new(&(struct testpki_spec){.cn = "middle", .ca = true, .issuer = pki.root});
    testpki_write(pki.root, NULL, pki.roots_file, NULL);
    struct base_err err = {0};
    cr_assert_eq(masque_roots_load(&pki.roots, pki.roots_file, &err), BASE_OK, "%s", err.msg);
}

static void teardown(void)
{
    masque_roots_free(pki.roots);
    testpki_free(pki.root);
    testpki_free(pki.other);
    testpki_free(pki.middle);
    (void)unlink(pki.roots_file);
    (void)rmdir(pki.dir);
}

TestSuite(masque_peer_verify, .init = setup, .fini = teardown);

static int verify1(const struct testpki_spec *spec)
{
    struct testpki_cert *c = testpki_new(spec);
    struct masque_der d = testpki_der(c);
    int rv = masque_peer_verify(pki.roots, &d, 1);
    testpki_free(c);
    return rv;
}

Test(masque_peer_verify, chain_cases)
{
    const struct {
        const char *name;
        struct testpki_spec spec;
        int alert; /* 0 = good */
    } rows[] = {
        {"good", {.cn = "a", .issuer = pki.root, .eku = "clientAuth", .san = URI_A}, 0},
        {"no EKU", {.cn = "a", .issuer = pki.root, .san = URI_A}, 0},
        {"RSA", {.cn = "a", .issuer = pki.root, .eku = "clientAuth", .san = URI_A, .key = TESTPKI_RSA}, 0},
        {"Ed25519",
         {.cn = "a", .issuer = pki.root, .eku = "clientAuth", .san = URI_A, .key = TESTPKI_ED25519},
         0},
        {"both uses", {.cn = "a", .issuer = pki.root, .eku = "serverAuth,clientAuth", .san = URI_A}, 0},
        {"server use only", {.cn = "a", .issuer = pki.root, .eku = "serverAuth", .san = URI_A}, 43},
        {"expired", {.cn = "a", .issuer = pki.root, .eku = "clientAuth", .from = -7200, .to = -60}, 45},
        {"not yet", {.cn = "a", .issuer = pki.root, .eku = "clientAuth", .from = 3600, .to = 7200}, 45},
        {"unknown CA", {.cn = "a", .issuer = pki.other, .eku = "clientAuth"}, 48},
        {"self-signed", {.cn = "a", .eku = "clientAuth"}, 48},
        {"without its intermediate", {.cn = "a", .issuer = pki.middle, .eku = "clientAuth"}, 48},
        {"RSA 1024", {.cn = "a", .issuer = pki.root, .eku = "clientAuth", .key = TESTPKI_RSA1024}, 42},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rv = verify1(&rows[i].spec);
        if (rows[i].alert == 0) {
            cr_assert_eq(rv, X509_V_OK, "%s: %s", rows[i].name, masque_peer_error(rv));
            continue;
        }
        cr_assert_neq(rv, X509_V_OK, "%s was accepted", rows[i].name);
        cr_assert_eq(masque_peer_alert(rv), rows[i].alert, "%s: %s", rows[i].name, masque_peer_error(rv));
        cr_assert(strlen(masque_peer_error(rv)) > 0);
    }
}

Test(masque_peer_verify, an_intermediate_must_be_sent_and_may_not_be_a_leaf)
{
    struct testpki_cert *leaf = testpki_new(
        &(struct testpki_spec){.cn = "a", .issuer = pki.middle, .eku = "clientAuth", .san = URI_A});
    struct testpki_cert *forged =
        testpki_new(&(struct testpki_spec){.cn = "b", .issuer = leaf, .eku = "clientAuth", .san = URI_A});
    struct masque_der good[] = {testpki_der(leaf), testpki_der(pki.middle)};
    struct masque_der bad[] = {testpki_der(forged), testpki_der(leaf), testpki_der(pki.middle)};
    cr_assert_eq(masque_peer_verify(pki.roots, good, 2), X509_V_OK);
    cr_assert_neq(masque_peer_verify(pki.roots, bad, 3), X509_V_OK, "a leaf signed a certificate");
    testpki_free(leaf);
    testpki_free(forged);
}

Test(masque_peer_verify, nonsense_is_refused)
{
    static const uint8_t junk[] = {0x30, 0x03, 0x02, 0x01, 0x00};
    struct testpki_cert *c =
        testpki_new(&(struct testpki_spec){.cn = "a", .issuer = pki.root, .eku = "clientAuth"});
    struct masque_der d = testpki_der(c), chain[MASQUE_CHAIN_MAX + 1];
    struct masque_der bad = {junk, sizeof junk};
    uint8_t *longer = malloc(d.len + 1);
    memcpy(longer, d.p, d.len);
    longer[d.len] = 0;
    struct masque_der trailing = {longer, d.len + 1};
    for (size_t i = 0; i < MASQUE_CHAIN_MAX + 1; i++)
        chain[i] = d;
    cr_assert_neq(masque_peer_verify(pki.roots, &d, 0), X509_V_OK, "an empty chain");
    cr_assert_neq(masque_peer_verify(pki.roots, &bad, 1), X509_V_OK);
    cr_assert_neq(masque_peer_verify(pki.roots, &trailing, 1), X509_V_OK, "a byte behind the certificate");
    cr_assert_neq(masque_peer_verify(pki.roots, chain, MASQUE_CHAIN_MAX + 1), X509_V_OK,
                  "too many certificates");
    cr_assert_eq(masque_peer_verify(pki.roots, chain, MASQUE_CHAIN_MAX), X509_V_OK);
    free(longer);
    testpki_free(c);
}

Test(masque_peer_verify, identities)
{
    static const char nul[] = "spiffe://acme/a\0b", tail[] = "spiffe://acme/a\0";
    char longest[513], beyond[514];
    memset(longest, 'x', sizeof longest);
    memset(beyond, 'x', sizeof beyond);
    const struct {
        const char *name;
        struct testpki_spec spec;
        enum masque_identity id;
        const char *uri;
    } rows[] = {
        {"one", {.cn = "a", .san = URI_A}, MASQUE_IDENTITY_URI, "spiffe://acme/site-1"},
        {"one beside a name",
         {.cn = "a", .san = "DNS:a.b," URI_A},
         MASQUE_IDENTITY_URI,
         "spiffe://acme/site-1"},
        {"none", {.cn = "a"}, MASQUE_IDENTITY_NONE, ""},
        {"a name only", {.cn = "spiffe://acme/site-1", .san = "DNS:a.b"}, MASQUE_IDENTITY_NONE, ""},
        {"two", {.cn = "a", .san = URI_A "," URI_A}, MASQUE_IDENTITY_MANY, ""},
        {"NUL inside",
         {.cn = "a", .uri = nul, .n_uri = sizeof nul - 1, .has_uri = true},
         MASQUE_IDENTITY_BAD,
         ""},
        {"NUL at the end",
         {.cn = "a", .uri = tail, .n_uri = sizeof tail - 1, .has_uri = true},
         MASQUE_IDENTITY_BAD,
         ""},
        {"empty", {.cn = "a", .uri = "", .n_uri = 0, .has_uri = true}, MASQUE_IDENTITY_BAD, ""},
        {"512 bytes", {.cn = "a", .uri = longest, .n_uri = 512, .has_uri = true}, MASQUE_IDENTITY_URI, NULL},
        {"513 bytes", {.cn = "a", .uri = beyond, .n_uri = 513, .has_uri = true}, MASQUE_IDENTITY_BAD, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct testpki_cert *c = testpki_new(&rows[i].spec);
        struct masque_der d = testpki_der(c);
        char uri[513] = "untouched";
        cr_assert_eq(masque_peer_uri(d.p, d.len, uri, sizeof uri), rows[i].id, "%s", rows[i].name);
        if (rows[i].uri)
            cr_assert_str_eq(uri, rows[i].uri, "%s", rows[i].name);
        else
            cr_assert_eq(strlen(uri), 512, "%s", rows[i].name);
        testpki_free(c);
    }
    char uri[16] = "untouched";
    cr_assert_eq(masque_peer_uri((const uint8_t *)"junk", 4, uri, sizeof uri), MASQUE_IDENTITY_BAD);
    cr_assert_str_eq(uri, "");
}

Test(masque_peer_verify, roots_that_cannot_be_used_are_named)
{
    struct masque_roots *r = NULL;
    struct base_err err = {0};
    cr_assert_eq(masque_roots_load(&r, "/nonexistent/roots.pem", &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "/nonexistent/roots.pem"), "%s", err.msg);
    FILE *f = fopen(pki.roots_file, "w");
    (void)fputs("not PEM\n", f);
    (void)fclose(f);
    cr_assert_eq(masque_roots_load(&r, pki.roots_file, &err), BASE_EINVAL);
    cr_assert_null(r);
}
