/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_webhook.c - what the authorization webhook and the API server's TokenReview answer.
 *
 * Input: one byte (1: the question has prefix and epoch; 2: a TokenReview), then the body. Whatever it is:
 * the same verdict again; no verdict changes nothing; an allowance is at most 30 s and says, read by another
 * JSON library, exactly what was asked; no error text repeats anything of the body.
 */
#include "fuzz.h"

#include <cjson/cJSON.h>

#include "authority/ask.h"

#define NOW INT64_C(1764450000000000) /* 2025-11-29T21:00:00Z */
#define MARK "S3CRET"                 /* seeds carry it where a value may be quoted */

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

    CHECK(!base_uuid_parse(&a.uid, BASE_STR("11111111-2222-4333-8444-555555555555")), "own uuid");
    a.correlation.b[15] = 7;
    memset(a.credential_id, 'c', 64);
    if (full) {
        a.has_prefix = true;
        CHECK(!base_prefix_parse(&a.prefix, BASE_STR("fd12::1:0:5:0:0/96")), "own prefix");
        a.epoch = 7;
    }
    return a;
}

static bool is_reason(const char *z)
{
    return z[strspn(z, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")] == '\0';
}

static void same_string(const cJSON *o, const char *name, const char *want)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(o, name);

    CHECK(cJSON_IsString(m) && strcmp(m->valuestring, want) == 0, "an allowance whose %s is not '%s'", name,
          want);
}

/* Another reader of the same text. One that cannot read it says nothing. */
static void second_opinion(const struct authority_ask *a, const struct authority_answer *got,
                           struct base_str body)
{
    cJSON *doc = cJSON_ParseWithLength(body.ptr, body.len);
    const cJSON *r = cJSON_GetObjectItemCaseSensitive(doc, "response"), *m;
    char text[BASE_PREFIX_SIZE];

    if (doc) {
        same_string(doc, "apiVersion", AUTHORITY_API);
        same_string(doc, "kind", AUTHORITY_KIND);
        m = cJSON_GetObjectItemCaseSensitive(r, "allowed");
        CHECK(got->verdict == AUTHORITY_ALLOWED ? cJSON_IsTrue(m) : cJSON_IsFalse(m), "another verdict");
        same_string(r, "uid", "11111111-2222-4333-8444-555555555555");
    }
    if (doc && got->verdict == AUTHORITY_ALLOWED) {
        same_string(r, "tenant", a->tenant);
        same_string(r, "connector", a->connector);
        same_string(r, "vpc", a->vpc);
        same_string(r, "service", a->service);
        m = cJSON_GetObjectItemCaseSensitive(r, "epoch");
        CHECK(a->epoch ? cJSON_IsNumber(m) && m->valuedouble == (double)a->epoch : !m, "another epoch");
        base_prefix_text(text, &a->prefix);
        if (a->has_prefix)
            same_string(r, "prefix", text);
        m = cJSON_GetObjectItemCaseSensitive(r, "grantSeconds");
        CHECK(cJSON_IsNumber(m) && m->valuedouble >= 1 && m->valuedouble <= 30 &&
                  got->grant <= (base_time)m->valuedouble * BASE_SEC,
              "a grant longer than was given, or than 30 s");
    }
    cJSON_Delete(doc);
}

static void answer(bool full, struct base_str body)
{
    struct authority_ask a = question(full);
    struct authority_answer got, again, before;
    struct base_err err = {0};
    int rc;

    memset(&before, 0xa5, sizeof before);
    got = again = before;
    rc = authority_webhook_answer(&got, &a, body, NOW, &err);
    CHECK(rc == authority_webhook_answer(&again, &a, body, NOW, NULL), "another code the second time");
    if (rc) {
        CHECK(rc == BASE_EPROTO || rc == BASE_ENOMEM, "code %d", rc);
        CHECK(memcmp(&got, &before, sizeof got) == 0, "no verdict, but something was written");
        CHECK(err.msg[0] && err.code == rc, "an error without a text");
        CHECK(!fuzz_has(base_str_of(err.msg), MARK), "the error repeats a value: %s", err.msg);
        return;
    }
    CHECK(got.verdict == again.verdict && got.grant == again.grant && !strcmp(got.reason, again.reason),
          "another verdict the second time");
    CHECK(got.verdict == AUTHORITY_ALLOWED || got.verdict == AUTHORITY_DENIED, "verdict %d", got.verdict);
    if (got.verdict == AUTHORITY_ALLOWED)
        CHECK(got.grant > 0 && got.grant <= AUTHORITY_GRANT_MAX && !got.reason[0], "grant of %lld ns",
              (long long)got.grant);
    else
        CHECK(got.grant == 0 && is_reason(got.reason), "a refusal with a grant, or with '%s'", got.reason);
    CHECK(!got.user[0] && !got.credential_id[0], "the webhook says who somebody is");
    second_opinion(&a, &got, body);
}

static void review(struct base_str body)
{
    struct authority_answer got, before;
    struct base_err err = {0};
    int rc;

    memset(&before, 0xa5, sizeof before);
    got = before;
    rc = authority_review_answer(&got, body, &err);
    if (rc) {
        CHECK(rc == BASE_EPROTO || rc == BASE_ENOMEM, "code %d", rc);
        CHECK(memcmp(&got, &before, sizeof got) == 0, "no verdict, but something was written");
        CHECK(err.msg[0] && !fuzz_has(base_str_of(err.msg), MARK), "the error repeats a value: %s", err.msg);
        return;
    }
    CHECK(got.grant == 0 && !got.reason[0], "a TokenReview gives no grant");
    if (got.verdict == AUTHORITY_DENIED) {
        CHECK(!got.user[0] && !got.credential_id[0], "nobody has a name");
        return;
    }
    CHECK(got.verdict == AUTHORITY_ALLOWED, "verdict %d", got.verdict);
    CHECK(!authority_identity_check(CONTRACT_IDENTITY_USER, base_str_of(got.user), &err), "user: %s",
          err.msg);
    CHECK(strlen(got.credential_id) == 64 && strspn(got.credential_id, "0123456789abcdef") == 64,
          "credential id '%s'", got.credential_id);
    CHECK(fuzz_has(body, "authenticated") || memchr(body.ptr, '\\', body.len), "who says so?");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] & 2)
        review(fuzz_text(data + 1, size - 1));
    else
        answer(data[0] & 1, fuzz_text(data + 1, size - 1));
    return 0;
}
