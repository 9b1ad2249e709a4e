/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions and answers of the policy's outside: every member missing, of another type, too large, twice, in
 * another case; grants too long, past, or for something else; TokenReviews that say no in every way there is.
 */
#include "authority/ask.h"

#include "contract/json.h"

#include <criterion/criterion.h>
#include <string.h>

#define UID "11111111-2222-4333-8444-555555555555"
#define HEAD                                                                                                 \
    "{\"apiVersion\":\"holdfast.masque.galactic.datumapis.com/"                                              \
    "v1\",\"kind\":\"AuthorizationReview\",\"response\":"
#define NOW INT64_C(1764450000000000) /* 2025-11-29T21:00:00Z */

static struct authority_ask question(bool full)
{
    struct authority_ask a = {.question = full ? AUTHORITY_ASK_REFRESH : AUTHORITY_ASK_CONNECT,
                              .identity_kind = CONTRACT_IDENTITY_URI,
                              .identity = "spiffe://acme/site-1",
                              .provider = "masque",
                              .node = "edge1",
                              .tenant = "acme",
                              .connector = "site-1",
                              .vpc = "vpc-a",
                              .service = "svc-a"};
    cr_assert_eq(base_uuid_parse(&a.uid, BASE_STR(UID)), BASE_OK);
    a.correlation.b[15] = 7;
    memset(a.credential_id, 'c', 64);
    if (full) {
        a.has_prefix = true;
        cr_assert_eq(base_prefix_parse(&a.prefix, BASE_STR("fd12::1:0:5:0:0/96")), BASE_OK);
        a.epoch = 7;
    }
    return a;
}

struct parts { /* members of the response, as text; NULL = left out */
    const char *uid, *allowed, *tenant, *connector, *vpc, *service, *prefix, *epoch, *grant, *rest;
};
static const struct parts good = {
    "\"" UID "\"", "true", "\"acme\"", "\"site-1\"", "\"vpc-a\"", "\"svc-a\"", "\"fd12::1:0:5:0:0/96\"",
    "7",           "20",   NULL};

static void add(struct base_buf *b, const char *name, const char *value)
{
    if (value)
        cr_assert_eq(base_buf_addf(b, "%s\"%s\":%s", b->data[b->len - 1] == '{' ? "" : ",", name, value),
                     BASE_OK);
}

static const char *text(struct base_buf *b, const struct parts *p)
{
    base_buf_reset(b);
    cr_assert_eq(base_buf_addz(b, HEAD "{"), BASE_OK);
    add(b, "uid", p->uid);
    add(b, "allowed", p->allowed);
    add(b, "tenant", p->tenant);
    add(b, "connector", p->connector);
    add(b, "vpc", p->vpc);
    add(b, "service", p->service);
    add(b, "prefix", p->prefix);
    add(b, "epoch", p->epoch);
    add(b, "grantSeconds", p->grant);
    if (p->rest)
        (void)base_buf_addz(b, p->rest);
    (void)base_buf_addz(b, "}}");
    return b->data;
}

static int judge(const char *json, bool full, struct authority_answer *ret, struct base_err *err)
{
    struct authority_ask a = question(full);
    memset(ret, 0, sizeof *ret);
    return authority_webhook_answer(ret, &a, base_str_of(json), NOW, err);
}

static const char *prefix_text(void)
{
    static char z[BASE_PREFIX_SIZE + 2];
    struct authority_ask a = question(true);
    char p[BASE_PREFIX_SIZE];
    base_prefix_text(p, &a.prefix);
    base_fmt(z, sizeof z, "\"%s\"", p);
    return z;
}

static struct parts whole(void)
{
    struct parts p = good;
    p.prefix = prefix_text();
    return p;
}

Test(authority_webhook, good_answers)
{
    struct base_buf b;
    struct authority_answer got;
    struct base_err err = {0};
    base_buf_init(&b, 8192);
    struct parts p = whole();
    cr_assert_eq(judge(text(&b, &p), true, &got, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(got.verdict, AUTHORITY_ALLOWED);
    cr_assert_eq(got.grant, 20 * BASE_SEC);
    p.grant = "30";
    cr_assert_eq(judge(text(&b, &p), true, &got, &err), BASE_OK);
    cr_assert_eq(got.grant, 30 * BASE_SEC);
    p.rest = ",\"validUntil\":\"2025-11-29T21:00:09.5Z\"";
    cr_assert_eq(judge(text(&b, &p), true, &got, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(got.grant, 9500 * BASE_MS, "the earlier of the two");
    p.rest = ",\"validUntil\":\"2025-11-29T21:00:31Z\"";
    cr_assert_eq(judge(text(&b, &p), true, &got, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(got.grant, 30 * BASE_SEC);
    struct parts q = good;
    q.prefix = q.epoch = NULL;
    cr_assert_eq(judge(text(&b, &q), false, &got, &err), BASE_OK, "%s", err.msg);
    /* spaces and escapes mean the same */
    cr_assert_eq(judge("  " HEAD "{ \"uid\" : \"" UID
                       "\" ,\n\t\"allowed\":true,\"tenant\":\"\\u0061cme\",\"connector\":"
                       "\"site-1\",\"vpc\":\"vpc-a\",\"service\":\"svc-a\",\"grantSeconds\":1}}\n",
                       false, &got, &err),
                 BASE_OK, "%s", err.msg);
    cr_assert_eq(got.grant, BASE_SEC);
    base_buf_fini(&b);
}

Test(authority_webhook, refusals)
{
    struct authority_answer got;
    struct base_err err = {0};
    cr_assert_eq(judge(HEAD "{\"uid\":\"" UID "\",\"allowed\":false}}", true, &got, &err), BASE_OK, "%s",
                 err.msg);
    cr_assert_eq(got.verdict, AUTHORITY_DENIED);
    cr_assert_str_eq(got.reason, "");
    cr_assert_eq(
        judge(HEAD "{\"uid\":\"" UID "\",\"allowed\":false,\"reason\":\"NotOnShift\"}}", true, &got, &err),
        BASE_OK);
    cr_assert_str_eq(got.reason, "NotOnShift");
    static const char *const odd[] = {"\"not a word\"",
                                      "\"lower\"",
                                      "\"\"",
                                      "17",
                                      "\"Bearer eyJhbGciOi\"",
                                      "\"AVeryLongReasonThatNobodyNeedsAndThatWouldNotFitInto48Bytes\""};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        char json[512];
        base_fmt(json, sizeof json, HEAD "{\"uid\":\"" UID "\",\"allowed\":false,\"reason\":%s}}", odd[i]);
        cr_assert_eq(judge(json, true, &got, &err), BASE_OK);
        cr_assert_eq(got.verdict, AUTHORITY_DENIED);
        cr_assert_str_eq(got.reason, "", "%s is not repeated", odd[i]);
    }
    cr_assert_eq(judge(HEAD "{\"uid\":\"" UID "\",\"allowed\":false,\"grantSeconds\":3}}", true, &got, &err),
                 BASE_EPROTO);
}

/* Every member of the answer in every way that is wrong: no verdict, and the text names the member. */
Test(authority_webhook, every_member_missing_mistyped_wrong_and_twice)
{
    static const struct {
        const char *name;
        size_t offset;
        const char *wrong[10];
    } rows[] = {
        {"uid",
         offsetof(struct parts, uid),
         {"null", "1", "\"\"", "\"11111111-2222-4333-8444-555555555556\"", "[\"" UID "\"]",
          "\"11111111-2222-4333-8444-555555555555 \""}},
        {"allowed", offsetof(struct parts, allowed), {"null", "1", "\"true\"", "\"\"", "[true]", "{}"}},
        {"tenant",
         offsetof(struct parts, tenant),
         {"null", "0", "\"\"", "\"evil\"", "\"Acme\"", "\"acme\\u0000\"", "[]"}},
        {"connector",
         offsetof(struct parts, connector),
         {"null", "0", "\"site-2\"", "\"SITE-1\"", "\"site-1.\"", "true"}},
        {"vpc", offsetof(struct parts, vpc), {"null", "0", "\"vpc-b\"", "\"\"", "{}"}},
        {"service", offsetof(struct parts, service), {"null", "0", "\"svc-b\"", "\"svc-a \"", "false"}},
        {"prefix",
         offsetof(struct parts, prefix),
         {"null", "0", "\"fd12::1:0:6:0:0/96\"", "\"fd12:0:0:1::/64\"", "\"fd12:0:0:1:0:5::/96\"", "\"\""}},
        {"epoch",
         offsetof(struct parts, epoch),
         {"null", "8", "6", "0", "-7", "7.0", "7e0", "\"7\"", "9007199254740992"}},
        {"grantSeconds",
         offsetof(struct parts, grant),
         {"null", "0", "-1", "31", "3600", "20.5", "\"20\"", "1e1", "99999999999999999999", "true"}},
    };
    struct base_buf b;
    base_buf_init(&b, 8192);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int k = -3; k < 10 && (k < 0 || rows[i].wrong[k]); k++) {
            struct parts p = whole();
            const char **at = (const char **)(void *)((char *)&p + rows[i].offset);
            char extra[256];
            const char *value = *at;
            struct authority_answer got;
            struct base_err err = {0};
            if (k >= 0) {
                *at = rows[i].wrong[k];
            } else if (k == -1) {
                *at = NULL;
            } else if (k == -2) { /* twice, and the second one is right, too */
                base_fmt(extra, sizeof extra, ",\"%s\":%s", rows[i].name, value);
                p.rest = extra;
            } else { /* another case only: not the same member */
                base_fmt(extra, sizeof extra, ",\"%c%s\":%s", rows[i].name[0] - 'a' + 'A', rows[i].name + 1,
                         value);
                *at = NULL;
                p.rest = extra;
            }
            int rc = judge(text(&b, &p), true, &got, &err);
            cr_assert_eq(rc, BASE_EPROTO, "%s, case %d: %d in %s", rows[i].name, k, rc, b.data);
            cr_assert_eq(got.verdict, 0, "untouched");
            cr_assert(strstr(err.msg, "webhook answer") != NULL, "%s", err.msg);
            if (k >= -1)
                cr_assert_not_null(strstr(err.msg, rows[i].name), "%s: %s", rows[i].name, err.msg);
        }
    }
    base_buf_fini(&b);
}

Test(authority_webhook, what_was_not_asked_about_must_not_be_answered)
{
    struct base_buf b;
    struct authority_answer got;
    struct base_err err = {0};
    base_buf_init(&b, 8192);
    struct parts p = whole();
    p.epoch = NULL;
    cr_assert_eq(judge(text(&b, &p), false, &got, &err), BASE_EPROTO);
    cr_assert_not_null(strstr(err.msg, "prefix"));
    p = whole();
    p.prefix = NULL;
    cr_assert_eq(judge(text(&b, &p), false, &got, &err), BASE_EPROTO);
    cr_assert_not_null(strstr(err.msg, "epoch"));
    p = whole();
    p.rest = ",\"takeover\":true";
    cr_assert_eq(judge(text(&b, &p), true, &got, &err), BASE_EPROTO);
    cr_assert_not_null(strstr(err.msg, "does not know"));
    base_buf_fini(&b);
}

Test(authority_webhook, valid_until)
{
    static const struct {
        const char *value, *says;
    } rows[] = {
        {"\"2025-11-29T21:00:00Z\"", "past"},  {"\"2025-11-29T20:59:59Z\"", "past"},
        {"\"1970-01-01T00:00:00Z\"", "past"},  {"\"2025-11-29T21:00:33Z\"", "30 s ahead"},
        {"\"9999-12-31T23:59:59Z\"", "30 s"},  {"\"tomorrow\"", "must be a time"},
        {"1764450010", "must be a time"},      {"null", "must be a time"},
        {"\"2025-11-29 21:00:10\"", "a time"}, {"\"\"", "must be a time"},
    };
    struct base_buf b;
    base_buf_init(&b, 8192);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct authority_answer got;
        struct base_err err = {0};
        char rest[128];
        base_fmt(rest, sizeof rest, ",\"validUntil\":%s", rows[i].value);
        struct parts p = whole();
        p.rest = rest;
        cr_assert_eq(judge(text(&b, &p), true, &got, &err), BASE_EPROTO, "%s", rows[i].value);
        cr_assert_not_null(strstr(err.msg, rows[i].says), "%s: %s", rows[i].value, err.msg);
    }
    base_buf_fini(&b);
}

Test(authority_webhook, whole_bodies_that_are_wrong)
{
    static const char *const rows[] = {
        "",
        "null",
        "[]",
        "true",
        "\"yes\"",
        "{}",
        "{\"response\":{}}",
        "{\"apiVersion\":\"holdfast.masque.galactic.datumapis.com/"
        "v2\",\"kind\":\"AuthorizationReview\",\"response\":{}}",
        "{\"apiVersion\":\"holdfast.masque.galactic.datumapis.com/"
        "v1\",\"kind\":\"TokenReview\",\"response\":{}}",
        HEAD "null}",
        HEAD "[]}",
        HEAD "{}}",
        HEAD "{\"uid\":\"" UID "\"}}",
        HEAD "{\"uid\":\"" UID "\",\"allowed\":true}}",
        HEAD "{\"uid\":\"" UID "\",\"allowed\":true}",
        HEAD "{\"uid\":\"" UID "\",\"allowed\":false}},\"x\":1}",
        HEAD "{\"uid\":\"" UID "\",\"allowed\":false},\"status\":200}",
        HEAD "{\"uid\":\"" UID "\",\"allowed\":false}}{}",
        "<html>503</html>",
        "{\"apiVersion\":\"\xff\"}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct authority_answer got;
        struct base_err err = {0};
        cr_assert_eq(judge(rows[i], true, &got, &err), BASE_EPROTO, "%s", rows[i]);
        cr_assert(err.code == BASE_EPROTO && err.msg[0], "%s", rows[i]);
        cr_assert_eq(got.verdict, 0);
    }
    /* too large, and deeper than anybody needs */
    static char big[70000];
    struct authority_answer got;
    struct base_err err = {0};
    memset(big, ' ', sizeof big - 1);
    cr_assert_eq(judge(big, true, &got, &err), BASE_EPROTO);
    cr_assert_not_null(strstr(err.msg, "64 KiB"));
    memset(big, '[', 60000);
    big[60000] = '\0';
    cr_assert_eq(judge(big, true, &got, &err), BASE_EPROTO);
}

Test(authority_webhook, question)
{
    struct base_buf b;
    struct authority_ask a = question(true);
    base_buf_init(&b, 8192);
    a.question = AUTHORITY_ASK_TAKEOVER;
    cr_assert_eq(authority_webhook_request(&b, &a), BASE_OK);
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new(1 << 16);
    const struct contract_json *doc, *r;
    cr_assert_eq(contract_json_parse(&doc, arena, (struct base_str){b.data, b.len}, 0, NULL), BASE_OK);
    cr_assert(base_str_eqz(contract_json_str(doc, "apiVersion"), AUTHORITY_API));
    r = contract_json_get(doc, "request");
    cr_assert(base_str_eqz(contract_json_str(r, "operation"), "takeover"));
    cr_assert(base_str_eqz(contract_json_str(r, "uid"), UID));
    cr_assert(
        base_str_eqz(contract_json_str(contract_json_get(r, "identity"), "uri"), "spiffe://acme/site-1"));
    cr_assert(base_str_eqz(contract_json_str(r, "prefix"), "fd12::1:0:5:0:0/96") ||
              contract_json_str(r, "prefix").len > 0);
    int64_t epoch;
    cr_assert_eq(contract_json_int(contract_json_get(r, "epoch"), &epoch), BASE_OK);
    cr_assert_eq(epoch, 7);
    base_buf_reset(&b);
    a = question(false);
    a.identity_kind = CONTRACT_IDENTITY_USER;
    cr_assert_eq(authority_webhook_request(&b, &a), BASE_OK);
    cr_assert_null(strstr(b.data, "prefix"));
    cr_assert_null(strstr(b.data, "epoch"));
    cr_assert_not_null(strstr(b.data, "\"user\":\"spiffe://acme/site-1\""));
    base_buf_fini(&b);
    base_buf_init(&b, 100);
    cr_assert_eq(authority_webhook_request(&b, &a), BASE_EFULL);
    base_buf_fini(&b);
}

/* ---- TokenReview */
#define REVIEW                                                                                               \
    "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/"                                      \
    "v1\",\"metadata\":{},\"spec\":{\"token\":\"t\"},\"status\":"
#define OURS "\"audiences\":[\"" AUTHORITY_AUDIENCE "\"]"

Test(authority_review, question)
{
    struct base_buf b;
    base_buf_init(&b, 8192);
    cr_assert_eq(authority_review_request(&b, BASE_STR("aaa.bbb-_~+/.ccc==")), BASE_OK);
    cr_assert_str_eq(
        b.data,
        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{\"audiences\":["
        "\"holdfast.masque.galactic.datumapis.com\"],\"token\":\"aaa.bbb-_~+/.ccc==\"}}");
    base_buf_fini(&b);
    static const char *const bad[] = {"", "a b", "a\n", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        base_buf_init(&b, 8192);
        cr_assert_eq(authority_review_request(&b, base_str_of(bad[i])), BASE_EINVAL);
        cr_assert_eq(b.len, 0);
    }
}

Test(authority_review, allowed)
{
    struct authority_answer got;
    struct base_err err = {0};
    cr_assert_eq(
        authority_review_answer(
            &got,
            base_str_of(REVIEW
                        "{\"authenticated\":true," OURS
                        ",\"user\":{\"username\":\"system:serviceaccount:acme:site-1\",\"uid\":\"u\","
                        "\"groups\":[\"a\"],\"extra\":{\"authentication.kubernetes.io/credential-id\":["
                        "\"JTI=7ee52be0-9045-4653-aa5e-0da57b8dccdc\"]}}}}"),
            &err),
        BASE_OK, "%s", err.msg);
    cr_assert_eq(got.verdict, AUTHORITY_ALLOWED);
    cr_assert_str_eq(got.user, "system:serviceaccount:acme:site-1");
    uint8_t digest[BASE_SHA256_SIZE];
    char hex[65];
    static const char id[] = "JTI=7ee52be0-9045-4653-aa5e-0da57b8dccdc";
    cr_assert_eq(base_sha256(digest, id, sizeof id - 1, NULL, 0), BASE_OK);
    base_hex(hex, digest, sizeof digest);
    cr_assert_str_eq(got.credential_id, hex);
    /* without an id of its own the user's name stands for it */
    cr_assert_eq(authority_review_answer(
                     &got,
                     base_str_of(REVIEW "{\"authenticated\":true," OURS ",\"user\":{\"username\":\"u\"}}}"),
                     &err),
                 BASE_OK);
    cr_assert_eq(strlen(got.credential_id), 64);
}

Test(authority_review, denied)
{
    static const char *const rows[] = {
        REVIEW "{}}", /* how the API server says no */
        REVIEW "{\"error\":\"[invalid bearer token, token audiences [\\\"x\\\"] is invalid]\"}}",
        REVIEW "{\"authenticated\":false," OURS ",\"user\":{\"username\":\"u\"}}}",
        REVIEW "{" OURS ",\"user\":{\"username\":\"u\"}}}", /* authenticated absent */
        REVIEW "{\"authenticated\":true,\"user\":{\"username\":\"u\"}}}",
        REVIEW "{\"authenticated\":true,\"audiences\":[],\"user\":{\"username\":\"u\"}}}",
        REVIEW "{\"authenticated\":true,\"audiences\":[\"https://"
               "kubernetes.default.svc\"],\"user\":{\"username\":\"u\"}}}",
        REVIEW "{\"authenticated\":true,\"audiences\":\"" AUTHORITY_AUDIENCE
               "\",\"user\":{\"username\":\"u\"}}}",
        REVIEW "{\"authenticated\":true,\"audiences\":[\"Holdfast.masque.galactic.datumapis.com\"],\"user\":{"
               "\"username\":\"u\"}}}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct authority_answer got = {0};
        struct base_err err = {0};
        cr_assert_eq(authority_review_answer(&got, base_str_of(rows[i]), &err), BASE_OK, "%s: %s", rows[i],
                     err.msg);
        cr_assert_eq(got.verdict, AUTHORITY_DENIED, "%s", rows[i]);
    }
}

Test(authority_review, no_verdict)
{
    static const char *const rows[] = {
        "",
        "{}",
        "[]",
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\"}",
        "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1beta1\",\"status\":{}}",
        "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\"}",
        REVIEW "[]}",
        REVIEW "null}",
        REVIEW "{\"authenticated\":\"true\"," OURS "}}",
        REVIEW "{\"authenticated\":1," OURS "}}",
        REVIEW "{\"authenticated\":null}}",
        REVIEW "{\"authenticated\":false,\"authenticated\":true," OURS ",\"user\":{\"username\":\"u\"}}}",
        REVIEW "{\"authenticated\":true," OURS "}}",
        REVIEW "{\"authenticated\":true," OURS ",\"user\":{}}}",
        REVIEW "{\"authenticated\":true," OURS ",\"user\":{\"username\":\"\"}}}",
        REVIEW "{\"authenticated\":true," OURS ",\"user\":{\"username\":7}}}",
        REVIEW "{\"authenticated\":true," OURS ",\"user\":{\"username\":\"system:anonymous\"}}}",
        REVIEW "{\"authenticated\":true," OURS ",\"user\":{\"username\":\"a\\u0000b\"}}}",
        REVIEW "{\"authenticated\":true," OURS ",\"user\":{\"username\":\"j\\u0430ne\"}}}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct authority_answer got = {0};
        struct base_err err = {0};
        cr_assert_eq(authority_review_answer(&got, base_str_of(rows[i]), &err), BASE_EPROTO, "%s", rows[i]);
        cr_assert_eq(got.verdict, 0);
        cr_assert_null(strstr(err.msg, "\"t\""), "nothing of the body is repeated: %s", err.msg);
    }
}
