/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tables beside this do not single out: every name, one member of an answer wrong at a time, one
 * character of an identity, no memory.
 */
#include "authority/ask.h"
#include "authority/identity.h"
#include "authority/standing.h"

#include "base/mem.h"

#include <criterion/criterion.h>
#include <string.h>

Test(authority_names, each_has_one_of_its_own)
{
    static const char *const questions[] = {"none",     "identity", "connect", "acquire",
                                            "takeover", "refresh",  "retire",  "none"};
    static const char *const policies[] = {"deny", "kubernetes", "webhook", "deny"};
    for (unsigned i = 0; i < sizeof questions / sizeof questions[0]; i++)
        cr_assert_str_eq(authority_question_name((enum authority_question)i), questions[i], "%u", i);
    for (unsigned i = 0; i < sizeof policies / sizeof policies[0]; i++)
        cr_assert_str_eq(authority_policy_name((enum authority_policy)i), policies[i], "%u", i);
    cr_assert_eq(authority_reason_status(AUTHORITY_SUSPENDED, NULL), 403);
}

static int uri(const char *z)
{
    return authority_identity_check(CONTRACT_IDENTITY_URI, base_str_of(z), NULL);
}

Test(authority_identity, one_character_decides)
{
    static const char *const good[] = {
        "a1+.-z:b", "spiffe://a-b_c.9/x",  "spiffe://a/..x", "spiffe://a/x./y", "spiffe://a/.x", "x:/a",
        "x:/",      "spiffe://[::1]:8443/"};
    static const char *const bad[] = {"spiffe://[::1",
                                      "spiffe://[]/",
                                      "spiffe://[::1]x/",
                                      "spiffe://[fd00::1:zz]/",
                                      "spiffe://[0:0:0:0:0:0:0:1]/",
                                      "spiffe://a:/x",
                                      "spiffe://a:0/x",
                                      "spiffe://a:65536/x",
                                      "spiffe://:80/x",
                                      "spiffe://a!b/",
                                      "spiffe://a~b/",
                                      "~:b",
                                      "spiffe://a/../b",
                                      "spiffe://a/./b",
                                      "spiffe://a/..",
                                      "spiffe://a//b",
                                      "a_b:c",
                                      "A:b",
                                      "{:b",
                                      "spiffe://xn--a/",
                                      "spiffe://a.xn--b/",
                                      "spiffe://a[b/"};
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++)
        cr_assert_eq(uri(good[i]), BASE_OK, "%s", good[i]);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_eq(uri(bad[i]), BASE_EINVAL, "%s", bad[i]);
}

/* ---- TokenReview */
#define REVIEW(status)                                                                                       \
    "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"status\":" status "}"
#define YES(more) REVIEW("{\"authenticated\":true,\"audiences\":[" more "}")
#define OURS "7,\"other\",\"" AUTHORITY_AUDIENCE "\"]"

static int review(const char *json, struct authority_answer *ret)
{
    memset(ret, 0, sizeof *ret);
    return authority_review_answer(ret, base_str_of(json), NULL);
}

Test(authority_review, one_member_at_a_time)
{
    struct authority_answer a, plain;
    struct base_buf b;
    base_buf_init(&b, 4096);
    cr_assert_eq(authority_review_request(&b, BASE_STR("")), BASE_EINVAL);
    cr_assert_eq(authority_review_request(&b, BASE_STR("a b")), BASE_EINVAL);
    cr_assert_eq(authority_review_request(&b, BASE_STR("a\x7f")), BASE_EINVAL);
    cr_assert_eq(authority_review_request(&b, BASE_STR("a~!")), BASE_OK);
    base_buf_fini(&b);
    cr_assert_eq(review("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"Other\",\"status\":{}}", &a),
                 BASE_EPROTO);
    cr_assert_eq(review("[]", &a), BASE_EPROTO);
    cr_assert_eq(review(REVIEW("7"), &a), BASE_EPROTO);
    cr_assert_eq(review(YES("7,\"x\"],\"user\":{\"username\":\"jane\"}"), &a), BASE_OK);
    cr_assert_eq(a.verdict, AUTHORITY_DENIED, "for somebody else");
    cr_assert_eq(review(YES(OURS ",\"user\":{\"username\":\"jane\"}"), &plain), BASE_OK);
    cr_assert_eq(plain.verdict, AUTHORITY_ALLOWED);
    static const char *const ids[] = {"7", "[]", "[7]", "[\"\"]"}; /* as if there were none */
    for (unsigned i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char text[1024];
        (void)base_fmt(text, sizeof text,
                       YES(OURS ",\"user\":{\"username\":\"jane\",\"extra\":{\"authentication.kubernetes.io/"
                                "credential-id\":%s}}"),
                       ids[i]);
        cr_assert_eq(review(text, &a), BASE_OK, "%s", ids[i]);
        cr_assert_str_eq(a.credential_id, plain.credential_id, "%s", ids[i]);
    }
    cr_assert_eq(review(YES(OURS ",\"user\":{\"username\":\"jane\",\"extra\":{\"authentication.kubernetes.io/"
                                 "credential-id\":[\"JTI=1\"]}}"),
                        &a),
                 BASE_OK);
    cr_assert_str_neq(a.credential_id, plain.credential_id);
    char large[2048]; /* a user that is as long as a text may be */
    memset(large, 'u', 1000);
    large[1000] = '\0';
    char text[4096];
    (void)base_fmt(text, sizeof text, YES(OURS ",\"user\":{\"username\":\"%s\"}"), large);
    cr_assert_eq(review(text, &a), BASE_EPROTO);
}

static void *huge(size_t *ret_len)
{
    char *p = base_calloc(1, AUTHORITY_ANSWER_MAX + 2);
    cr_assert_not_null(p);
    memset(p, ' ', AUTHORITY_ANSWER_MAX + 1);
    *ret_len = AUTHORITY_ANSWER_MAX + 1;
    return p;
}

/* Too long, and no memory at each point, for both kinds of answer: an error, and nothing of an answer. */
Test(authority_answers, too_long_and_no_memory)
{
    struct authority_ask q = {.question = AUTHORITY_ASK_CONNECT};
    struct authority_answer a;
    size_t n;
    char *long_one = huge(&n);
    const char *good = YES(OURS ",\"user\":{\"username\":\"jane\"}");
    cr_assert_eq(authority_review_answer(&a, (struct base_str){long_one, n}, NULL), BASE_EPROTO);
    cr_assert_eq(authority_webhook_answer(&a, &q, (struct base_str){long_one, n}, 1, NULL), BASE_EPROTO);
    base_free(long_one);
    cr_assert_eq(authority_webhook_answer(&a, &q, BASE_STR("{"), 1, NULL), BASE_EPROTO);
    cr_assert_eq(authority_webhook_answer(&a, &q,
                                          BASE_STR("{\"apiVersion\":\"" AUTHORITY_API
                                                   "\",\"kind\":\"" AUTHORITY_KIND "\",\"response\":7}"),
                                          1, NULL),
                 BASE_EPROTO);
    cr_assert_eq(authority_webhook_answer(
                     &a, &q,
                     BASE_STR("{\"apiVersion\":\"" AUTHORITY_API "\",\"kind\":\"" AUTHORITY_KIND "\"}"), 1,
                     NULL),
                 BASE_EPROTO);
    for (unsigned long k = 1; k <= 2; k++) {
        struct base_err err = {0};
        base_mem_fail_after(k);
        int rc = authority_review_answer(&a, base_str_of(good), &err);
        base_mem_fail_after(0);
        cr_assert_neq(rc, BASE_EPROTO, "%lu: %s", k, err.msg);
        base_mem_fail_after(k);
        rc = authority_webhook_answer(&a, &q, BASE_STR("{}"), 1, &err);
        base_mem_fail_after(0);
        cr_assert(rc == BASE_ENOMEM || rc == BASE_EPROTO, "%lu", k);
    }
}

/* A reason is one CamelCase word, or nothing. */
Test(authority_answers, a_reason_is_a_word)
{
    static const struct {
        const char *said, *taken;
    } rows[] = {{"Aa9", "Aa9"}, {"A{", ""},  {"A:", ""}, {"a", ""},
                {"9", ""},      {"A b", ""}, {"A~", ""}, {"A/", ""}};
    struct authority_ask q = {
        .question = AUTHORITY_ASK_CONNECT, .identity_kind = CONTRACT_IDENTITY_USER, .identity = "jane"};
    struct authority_answer a;
    struct base_buf b;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        (void)base_fmt(text, sizeof text,
                       "{\"apiVersion\":\"" AUTHORITY_API "\",\"kind\":\"" AUTHORITY_KIND
                       "\",\"response\":{\"uid\":\"00000000-0000-0000-0000-000000000000\",\"allowed\":false,"
                       "\"reason\":\"%s\"}}",
                       rows[i].said);
        memset(&a, 0, sizeof a);
        cr_assert_eq(authority_webhook_answer(&a, &q, base_str_of(text), 1, NULL), BASE_OK, "%s", text);
        cr_assert_eq(a.verdict, AUTHORITY_DENIED);
        cr_assert_str_eq(a.reason, rows[i].taken, "%s", rows[i].said);
    }
    base_buf_init(&b, 8192);
    cr_assert_eq(authority_webhook_request(&b, &q), BASE_OK);
    cr_assert_null(strstr(b.data, "credentialID"), "none is none, not an empty one");
    base_buf_fini(&b);
}

/* Digests are taken over for the same UID and generation only. */
Test(authority_policy, digests_of_the_same_generation_are_taken_over)
{
    struct contract_binding b = {.meta = {.generation = 3}};
    struct authority_binding old, next;
    b.meta.uid.b[0] = 1;
    b.spec.n_identities = 1;
    b.spec.identities[0].kind = CONTRACT_IDENTITY_URI;
    (void)base_copy(b.spec.identities[0].value, sizeof b.spec.identities[0].value, "spiffe://acme/a");
    cr_assert_eq(authority_binding_of(&old, &b, NULL), BASE_OK);
    (void)base_copy(b.spec.identities[0].value, sizeof b.spec.identities[0].value, "spiffe://acme/b");
    cr_assert_eq(authority_binding_of(&next, &b, &old), BASE_OK);
    cr_assert_eq(memcmp(next.identities, old.identities, sizeof old.identities), 0);
    for (int i = 0; i < 3; i++) {
        struct contract_binding c = b;
        c.meta.generation = i == 0 ? 4 : i == 1 ? 0 : 3;
        c.meta.uid.b[0] = i == 2 ? 2 : 1;
        cr_assert_eq(authority_binding_of(&next, &c, &old), BASE_OK);
        cr_assert_neq(memcmp(next.identities, old.identities, sizeof old.identities), 0, "%d", i);
    }
}
