/* SPDX-License-Identifier: Apache-2.0 */
#include "authority/identity.h"

#include <criterion/criterion.h>
#include <string.h>

static int check(enum contract_identity_kind kind, const char *z, struct base_err *err)
{
    return authority_identity_check(kind, base_str_of(z), err);
}

Test(authority_identity, good_ones)
{
    static const char *const uris[] = {"spiffe://acme/site-1",
                                       "spiffe://acme.example:8443/a/b_c~d",
                                       "https://example.com/",
                                       "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66",
                                       "urn:acme:Site(1);x=1,2",
                                       "spiffe://acme",
                                       "a:b",
                                       "spiffe://[fd00::1]/x"};
    static const char *const users[] = {"system:serviceaccount:acme:site-1", "system:node:edge1",
                                        "https://issuer.example#4711", "Jane@Example.com", "x"};
    struct base_err err = {0};
    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++)
        cr_assert_eq(check(CONTRACT_IDENTITY_URI, uris[i], &err), BASE_OK, "%s: %s", uris[i], err.msg);
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++)
        cr_assert_eq(check(CONTRACT_IDENTITY_USER, users[i], &err), BASE_OK, "%s: %s", users[i], err.msg);
}

Test(authority_identity, bad_ones_get_a_clear_error)
{
    static const struct {
        enum contract_identity_kind kind;
        const char *value, *says;
    } rows[] = {
        {CONTRACT_IDENTITY_URI, "", "is empty"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/site 1", "without spaces"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/site\n1", "printable ASCII"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/s\xc3\xadte", "printable ASCII"},
        {CONTRACT_IDENTITY_URI,
         "spiffe://\xd0\xb0"
         "cme/site",
         "printable ASCII"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/site\x7f", "printable ASCII"},
        {CONTRACT_IDENTITY_URI, "acme/site-1", "scheme"},
        {CONTRACT_IDENTITY_URI, "Spiffe://acme/site-1", "scheme"},
        {CONTRACT_IDENTITY_URI, "1a:b", "scheme"},
        {CONTRACT_IDENTITY_URI, "spiffe", "scheme"},
        {CONTRACT_IDENTITY_URI, "spiffe:", "nothing after"},
        {CONTRACT_IDENTITY_URI, ":x", "scheme"},
        {CONTRACT_IDENTITY_URI, "spiffe://", "no host"},
        {CONTRACT_IDENTITY_URI, "spiffe:///site-1", "no host"},
        {CONTRACT_IDENTITY_URI, "spiffe://Acme/site-1", "lower case"},
        {CONTRACT_IDENTITY_URI, "spiffe://a@acme/site-1", "no user"},
        {CONTRACT_IDENTITY_URI, "spiffe://ac,me/site-1", "host may hold"},
        /* found by test/fuzz/fuzz_identity.c: other spellings of one that is good */
        {CONTRACT_IDENTITY_URI, "spiffe://acme./site-1", "end with '.'"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme..example/site-1", "empty label"},
        {CONTRACT_IDENTITY_URI, "spiffe://.acme/site-1", "empty label"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme:/site-1", "port"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme:0443/site-1", "port"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme:0/site-1", "port"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme:65536/site-1", "port"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme:1:2/site-1", "port"},
        {CONTRACT_IDENTITY_URI, "spiffe://:443/site-1", "no host"},
        {CONTRACT_IDENTITY_URI, "spiffe://[fd00:0::1]/site-1", "RFC 5952"},
        {CONTRACT_IDENTITY_URI, "spiffe://[FD00::1]/site-1", "RFC 5952"},
        {CONTRACT_IDENTITY_URI, "spiffe://[fd00::1]:/site-1", "port"},
        {CONTRACT_IDENTITY_URI, "spiffe://[fd00::1/site-1", "RFC 5952"},
        {CONTRACT_IDENTITY_URI, "spiffe://[]/site-1", "RFC 5952"},
        {CONTRACT_IDENTITY_URI, "spiffe://a[b]/site-1", "host may hold"},
        {CONTRACT_IDENTITY_URI, "urn:ACME:x", "namespace"},
        {CONTRACT_IDENTITY_URI, "spiffe://xn--acm-9la/site-1", "punycode"},
        {CONTRACT_IDENTITY_URI, "spiffe://a.xn--b/site-1", "punycode"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/site%2d1", "percent-encoding"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme%2fsite", "percent-encoding"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/a?tenant=evil", "query"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/a#b", "fragment"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/a//b", "empty segment"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/./b", "'.'"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/b/..", "'..'"},
        {CONTRACT_IDENTITY_URI, "urn:../b", "'..'"},
        {CONTRACT_IDENTITY_URI, "spiffe://acme/<b>", "no URI may hold"},
        {CONTRACT_IDENTITY_USER, "", "is empty"},
        {CONTRACT_IDENTITY_USER, "system:anonymous", "nobody"},
        {CONTRACT_IDENTITY_USER, "system:unauthenticated", "nobody"},
        {CONTRACT_IDENTITY_USER, "jane doe", "without spaces"},
        {CONTRACT_IDENTITY_USER, "j\xd0\xb0ne", "printable ASCII"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_err err = {0};
        cr_assert_eq(check(rows[i].kind, rows[i].value, &err), BASE_EINVAL, "'%s'", rows[i].value);
        cr_assert_not_null(strstr(err.msg, rows[i].says), "'%s': %s", rows[i].value, err.msg);
    }
}

Test(authority_identity, length)
{
    char z[600];
    memset(z, 'a', sizeof z);
    memcpy(z, "spiffe://a/", 11);
    struct base_err err = {0};
    cr_assert_eq(authority_identity_check(CONTRACT_IDENTITY_URI, (struct base_str){z, 512}, &err), BASE_OK,
                 "%s", err.msg);
    cr_assert_eq(authority_identity_check(CONTRACT_IDENTITY_URI, (struct base_str){z, 513}, &err),
                 BASE_EINVAL);
    cr_assert_not_null(strstr(err.msg, "longer than 512"));
    z[20] = '\0';
    cr_assert_eq(authority_identity_check(CONTRACT_IDENTITY_USER, (struct base_str){z, 40}, &err),
                 BASE_EINVAL);
}
