/* SPDX-License-Identifier: Apache-2.0
 *
 * Bearer tokens: who may come without a certificate, what becomes of the token, and what a 401 looks like.
 */
#include "base/mem.h"
#include "masque/testenv_test.h"

#include <string.h>

static struct testenv *start(bool bearer)
{
    struct testenv *e = testenv_new(NULL);
    if (bearer) {
        masque_h3_free(e->h);
        e->cfg.bearer = true;
        testenv_start(e, 0);
    }
    return e;
}

static void finish(struct testenv *e)
{
    for (unsigned i = 0; i < e->n_rq; i++)
        base_secret_free(e->rq[i].token);
    testenv_free(e);
}

static size_t ask(struct testclient *c, const char *name, const char *value, const char *value2)
{
    struct testclient_field f[] = {{":method", "CONNECT"},
                                   {":protocol", "connect-ip"},
                                   {":scheme", "https"},
                                   {":authority", "masque.test:4433"},
                                   {":path", "/.well-known/masque/ip/*/*/"},
                                   {"capsule-protocol", "?1"},
                                   {name, value},
                                   {name, value2}};
    return testclient_request(c, f, value2 ? 8 : value ? 7 : 6, false);
}

static struct testclient *anonymous(struct testenv *e)
{
    struct testclient *c = testenv_client(e, (struct testclient_config){.alpn = "h3"});
    WAIT(e, c->handshaken && c->got_settings);
    return c;
}

TestSuite(masque_bearer_h3, .timeout = 60);

Test(masque_bearer_h3, a_token_comes_with_the_request_as_a_handle)
{
    struct testenv *e = start(true);
    struct testclient *c = anonymous(e);
    (void)ask(c, "authorization", "Bearer aaa.bbb.ccc", NULL);
    WAIT(e, e->n_rq == 1);
    cr_assert_eq(e->rq[0].identity, MASQUE_IDENTITY_TOKEN);
    cr_assert_not_null(e->rq[0].token);
    cr_assert(base_str_eqz(base_secret_text(e->rq[0].token), "aaa.bbb.ccc"));
    cr_assert_str_eq(e->rq[0].uri, "");
    cr_assert_str_eq(e->rq[0].credential_id, "");
    cr_assert_eq(testenv_accept(e, e->rq[0].flow), BASE_OK);
    WAIT(e, c->streams[0].status == 200);
    finish(e);
}

Test(masque_bearer_h3, a_certificate_still_counts_and_is_still_checked)
{
    struct testenv *e = start(true);
    struct testclient *c = testenv_connected(e);
    (void)testenv_request(c, NULL);
    WAIT(e, e->n_rq == 1);
    cr_assert_eq(e->rq[0].identity, MASQUE_IDENTITY_URI);
    cr_assert_null(e->rq[0].token);
    cr_assert_eq(strlen(e->rq[0].credential_id), 64);
    finish(e);

    e = start(true);
    struct testpki_cert *other = testpki_new(&(struct testpki_spec){.cn = "other root", .ca = true});
    struct testpki_cert *bad = testpki_new(&(struct testpki_spec){
        .cn = "a", .issuer = other, .eku = "clientAuth", .san = "URI:spiffe://acme/site-1"});
    testpki_write(bad, NULL, e->cert, e->key);
    c = testenv_client(e, (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
    WAIT(e, c->closed);
    cr_assert_eq(e->n_rq, 0, "a bad certificate is not as good as none");
    testpki_free(bad);
    testpki_free(other);
    finish(e);
}

Test(masque_bearer_h3, without_the_option_everybody_needs_a_certificate)
{
    struct testenv *e = start(false);
    struct testclient *c = testenv_client(e, (struct testclient_config){.alpn = "h3"});
    WAIT(e, c->closed);
    cr_assert_eq(e->n_rq, 0);
    c = testenv_connected(e);
    (void)ask(c, "authorization", "Bearer aaa.bbb.ccc", NULL);
    WAIT(e, e->n_rq == 1);
    cr_assert_eq(e->rq[0].identity, MASQUE_IDENTITY_URI, "the header means nothing");
    cr_assert_null(e->rq[0].token);
    finish(e);
}

Test(masque_bearer_h3, missing_and_malformed_tokens_are_reported_as_such)
{
    static const struct {
        const char *value;
        enum masque_identity identity;
    } rows[] = {{NULL, MASQUE_IDENTITY_ABSENT},
                {"", MASQUE_IDENTITY_BAD_TOKEN},
                {"Bearer", MASQUE_IDENTITY_BAD_TOKEN},
                {"Basic dXNlcjpwYXNz", MASQUE_IDENTITY_BAD_TOKEN},
                {"Bearer a b", MASQUE_IDENTITY_BAD_TOKEN},
                {"bearer a", MASQUE_IDENTITY_TOKEN}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct testenv *e = start(true);
        struct testclient *c = anonymous(e);
        (void)ask(c, "authorization", rows[i].value, NULL);
        WAIT(e, e->n_rq == 1);
        cr_assert_eq(e->rq[0].identity, rows[i].identity, "'%s'", rows[i].value ? rows[i].value : "none");
        cr_assert_eq(e->rq[0].token != NULL, rows[i].identity == MASQUE_IDENTITY_TOKEN);
        cr_assert_eq(masque_h3_refuse(e->h, e->rq[0].flow, 401, "NoCredentials: x", 0), BASE_OK);
        WAIT(e, c->streams[0].status == 401);
        cr_assert_str_eq(c->streams[0].www_authenticate,
                         rows[i].value ? "Bearer realm=\"holdfast\", error=\"invalid_token\""
                                       : "Bearer realm=\"holdfast\"");
        finish(e);
    }
}

Test(masque_bearer_h3, two_credentials_are_one_too_many)
{
    struct testenv *e = start(true);
    struct testclient *c = testenv_connected(e);
    size_t s = ask(c, "authorization", "Bearer aaa", NULL);
    WAIT(e, c->streams[s].status == 400 && c->streams[s].ended);
    cr_assert_not_null(strstr((char *)c->streams[s].body, "one credential"));
    c = anonymous(e);
    s = ask(c, "authorization", "Bearer aaa", "Bearer bbb");
    WAIT(e, c->streams[s].status == 400 && c->streams[s].ended);
    cr_assert_not_null(strstr((char *)c->streams[s].body, "twice"));
    cr_assert_null(strstr((char *)c->streams[s].body, "aaa"));
    cr_assert_eq(e->n_rq, 0);
    finish(e);
}

Test(masque_bearer_h3, a_tenant_in_the_request_is_an_error)
{
    struct testenv *e = start(true);
    struct testclient *c = anonymous(e);
    size_t s = ask(c, "x-tenant-id", "acme", NULL);
    WAIT(e, c->streams[s].status == 400 && c->streams[s].ended);
    cr_assert_not_null(strstr((char *)c->streams[s].body, "names a tenant"));
    cr_assert_eq(e->n_rq, 0);
    finish(e);
}

Test(masque_bearer_h3, requests_that_end_early_lose_their_tokens)
{
    struct testenv *e = start(true);
    /* no SETTINGS yet: the flow waits with its token, and the client goes away */
    for (unsigned i = 0; i < 4; i++) {
        struct testclient *c = anonymous(e);
        size_t s = ask(c, "authorization", "Bearer aaa", NULL);
        if (i & 1)
            testclient_reset(c, s, 0x10c);
        testclient_close(c, 0x100);
        testenv_settle(e, 20);
    }
    finish(e); /* AddressSanitizer finds what is left */
}
