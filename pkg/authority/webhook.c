/* SPDX-License-Identifier: Apache-2.0
 *
 * authority/webhook.c - the operator's service: question and answer, version 1 of the schema.
 */
#include "authority/ask.h"

#include "base/mutant.h"
#include "contract/json.h"

#define SECONDS_MAX (AUTHORITY_GRANT_MAX / BASE_SEC)
#define SKEW_US INT64_C(2000000) /* of the two wall clocks, validUntil only */

const char *authority_question_name(enum authority_question q)
{
    switch (q) {
    case AUTHORITY_ASK_NONE:
        break;
    case AUTHORITY_ASK_IDENTITY:
        return "identity";
    case AUTHORITY_ASK_CONNECT:
        return "connect";
    case AUTHORITY_ASK_ACQUIRE:
        return "acquire";
    case AUTHORITY_ASK_TAKEOVER:
        return "takeover";
    case AUTHORITY_ASK_REFRESH:
        return "refresh";
    case AUTHORITY_ASK_RETIRE:
        return "retire";
    }
    return "none";
}

static void member(struct base_buf *out, const char *name, const char *value)
{
    (void)base_buf_addf(out, ",\"%s\":", name);
    contract_json_quote(out, base_str_of(value));
}

int authority_webhook_request(struct base_buf *out, const struct authority_ask *a)
{
    char uid[BASE_UUID_SIZE], prefix[BASE_PREFIX_SIZE], correlation[BASE_CORRELATION_SIZE];

    base_uuid_text(uid, &a->uid);
    base_correlation_text(correlation, &a->correlation);
    (void)base_buf_addf(out,
                        "{\"apiVersion\":\"" AUTHORITY_API "\",\"kind\":\"" AUTHORITY_KIND
                        "\",\"request\":{\"uid\":\"%s\",\"operation\":\"%s\",\"correlationID\":\"%s\"",
                        uid, authority_question_name(a->question), correlation);
    member(out, "provider", a->provider);
    member(out, "node", a->node);
    (void)base_buf_addf(out,
                        ",\"identity\":{\"%s\":", a->identity_kind == CONTRACT_IDENTITY_URI ? "uri" : "user");
    contract_json_quote(out, base_str_of(a->identity));
    (void)base_buf_addz(out, "}");
    if (a->credential_id[0])
        member(out, "credentialID", a->credential_id);
    member(out, "tenant", a->tenant);
    member(out, "connector", a->connector);
    member(out, "vpc", a->vpc);
    member(out, "service", a->service);
    if (a->has_prefix) {
        base_prefix_text(prefix, &a->prefix);
        member(out, "prefix", prefix);
    }
    if (a->epoch > 0)
        (void)base_buf_addf(out, ",\"epoch\":%lld", (long long)a->epoch);
    (void)base_buf_addf(out, ",\"maxGrantSeconds\":%lld}}", (long long)SECONDS_MAX);
    return out->failed;
}

/* ---- the answer */
struct reader {
    const struct authority_ask *ask;
    struct base_err *err;
};

static int wrong(const struct reader *r, const char *field, const char *what)
{
    return base_err_set(r->err, BASE_EPROTO, "webhook answer: %s: %s", field, what);
}

/* Nothing but these members, each spelled exactly so. */
static int only(const struct reader *r, const struct contract_json *o, const char *const *names,
                const char *in)
{
    for (const struct contract_json *m = o->child; m; m = m->next) {
        size_t i = 0;

        while (names[i] && !base_str_eqz(m->key, names[i]))
            i++;
        if (!names[i] && !base_mutant("webhook.unknown"))
            return wrong(r, in, "holds a member that version 1 does not know (upper and lower case matter)");
    }
    return BASE_OK;
}

/* The member must be there, a string, and exactly `want`. */
static int equal(const struct reader *r, const struct contract_json *o, const char *name, const char *want)
{
    const struct contract_json *m = contract_json_get(o, name);
    char field[64];

    (void)base_fmt(field, sizeof field, "response.%s", name);
    if (!m)
        return wrong(r, field, "is missing");
    if (m->type != CONTRACT_JSON_STRING)
        return wrong(r, field, "must be a string");
    if (!base_str_eqz(m->str, want) && !base_mutant("webhook.echo"))
        return wrong(r, field, "is not the one that was asked about");
    return BASE_OK;
}

static int number(const struct reader *r, const struct contract_json *o, const char *name, int64_t min,
                  int64_t max, int64_t *ret)
{
    const struct contract_json *m = contract_json_get(o, name);
    char field[64], what[96];

    (void)base_fmt(field, sizeof field, "response.%s", name);
    (void)base_fmt(what, sizeof what, "must be a whole number from %lld to %lld", (long long)min,
                   (long long)max);
    if (!m)
        return wrong(r, field, "is missing");
    if (contract_json_int(m, ret) != BASE_OK)
        return wrong(r, field, what);
    if (*ret < min || (*ret > max && !base_mutant("webhook.grant-max")))
        return wrong(r, field, what);
    return BASE_OK;
}

/* Optional: an end on the wall clock. Shortens the grant; one that is past or beyond the cap is a lie. */
static int until(const struct reader *r, const struct contract_json *o, base_wall wall, base_time *grant)
{
    const struct contract_json *m = contract_json_get(o, "validUntil");
    base_wall t;

    if (!m)
        return BASE_OK;
    if (m->type != CONTRACT_JSON_STRING || base_rfc3339_parse(m->str, &t) != BASE_OK)
        return wrong(r, "response.validUntil", "must be a time as in 2026-01-02T03:04:05Z");
    if (t <= wall && !base_mutant("webhook.past"))
        return wrong(r, "response.validUntil", "is in the past");
    if (t - wall > AUTHORITY_GRANT_MAX / BASE_US + SKEW_US && !base_mutant("webhook.far"))
        return wrong(r, "response.validUntil", "is more than 30 s ahead, the longest grant there is");
    if (!base_mutant("webhook.until"))
        *grant = base_time_min(*grant, (t - wall) * BASE_US);
    return BASE_OK;
}

/* A CamelCase word; anything else is not repeated anywhere. */
static void take_reason(char *dst, size_t size, const struct contract_json *o)
{
    struct base_str s = contract_json_str(o, "reason");

    dst[0] = '\0';
    for (size_t i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= 'A' && s.ptr[i] <= 'Z') || (i > 0 && s.ptr[i] >= 'a' && s.ptr[i] <= 'z') ||
              (i > 0 && s.ptr[i] >= '0' && s.ptr[i] <= '9')))
            return;
    (void)base_copy_str(dst, size, s);
}

static int allowed(const struct reader *r, const struct contract_json *o, base_wall wall,
                   struct authority_answer *ret)
{
    const struct authority_ask *a = r->ask;
    char prefix[BASE_PREFIX_SIZE];
    int64_t n = 0;
    int rc;

    if ((rc = equal(r, o, "tenant", a->tenant)) || (rc = equal(r, o, "connector", a->connector)) ||
        (rc = equal(r, o, "vpc", a->vpc)) || (rc = equal(r, o, "service", a->service)))
        return rc;
    base_prefix_text(prefix, &a->prefix);
    if (a->has_prefix && (rc = equal(r, o, "prefix", prefix)))
        return rc;
    if (!a->has_prefix && contract_json_get(o, "prefix"))
        return wrong(r, "response.prefix", "must not be there: no prefix was asked about");
    if (a->epoch > 0) {
        if ((rc = number(r, o, "epoch", 1, INT64_C(9007199254740991), &n)))
            return rc;
        if (n != a->epoch && !base_mutant("webhook.epoch"))
            return wrong(r, "response.epoch", "is not the epoch that was asked about");
    } else if (contract_json_get(o, "epoch")) {
        return wrong(r, "response.epoch", "must not be there: no epoch was asked about");
    }
    if ((rc = number(r, o, "grantSeconds", 1, SECONDS_MAX, &n)))
        return rc;
    ret->grant = n * BASE_SEC;
    return until(r, o, wall, &ret->grant);
}

static int read_response(const struct reader *r, const struct contract_json *doc, base_wall wall,
                         struct authority_answer *ret)
{
    static const char *const top[] = {"apiVersion", "kind", "response", NULL};
    static const char *const grant[] = {"uid",    "allowed", "tenant",       "connector",  "vpc", "service",
                                        "prefix", "epoch",   "grantSeconds", "validUntil", NULL};
    static const char *const refusal[] = {"uid", "allowed", "reason", NULL};
    const struct contract_json *o, *yes;
    char uid[BASE_UUID_SIZE];
    int rc;

    if (doc->type != CONTRACT_JSON_OBJECT)
        return wrong(r, "body", "must be a JSON object");
    if ((rc = only(r, doc, top, "body")))
        return rc;
    if (!base_str_eqz(contract_json_str(doc, "apiVersion"), AUTHORITY_API))
        return wrong(r, "apiVersion", "must be " AUTHORITY_API);
    if (!base_str_eqz(contract_json_str(doc, "kind"), AUTHORITY_KIND))
        return wrong(r, "kind", "must be " AUTHORITY_KIND);
    o = contract_json_get(doc, "response");
    if (!o || o->type != CONTRACT_JSON_OBJECT)
        return wrong(r, "response", o ? "must be an object" : "is missing");
    base_uuid_text(uid, &r->ask->uid);
    if ((rc = equal(r, o, "uid", uid)))
        return rc;
    yes = contract_json_get(o, "allowed");
    if (!yes || yes->type != CONTRACT_JSON_BOOL)
        return wrong(r, "response.allowed", yes ? "must be true or false" : "is missing");
    if (!yes->boolean) {
        if ((rc = only(r, o, refusal, "response (of a refusal)")))
            return rc;
        ret->verdict = AUTHORITY_DENIED;
        take_reason(ret->reason, sizeof ret->reason, o);
        return BASE_OK;
    }
    if ((rc = only(r, o, grant, "response")) || (rc = allowed(r, o, wall, ret)))
        return rc;
    ret->verdict = AUTHORITY_ALLOWED;
    return BASE_OK;
}

int authority_webhook_answer(struct authority_answer *ret, const struct authority_ask *ask,
                             struct base_str json, base_wall wall, struct base_err *err)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new((size_t)1 << 20);
    const struct contract_json *doc = NULL;
    struct authority_answer a = {0};
    struct reader r = {ask, err};
    int rc;

    if (!arena)
        return base_err_set(err, BASE_ENOMEM, "webhook answer: no memory");
    if (json.len > AUTHORITY_ANSWER_MAX)
        return wrong(&r, "body", "is longer than 64 KiB");
    rc = contract_json_parse(&doc, arena, json, 0, err);
    if (rc != BASE_OK) {
        if (err && rc == BASE_EINVAL)
            err->code = BASE_EPROTO;
        (void)base_err_wrap(err, "webhook answer");
        return rc == BASE_EINVAL ? BASE_EPROTO : rc;
    }
    rc = read_response(&r, doc, wall, &a);
    if (rc == BASE_OK)
        *ret = a;
    return rc;
}
