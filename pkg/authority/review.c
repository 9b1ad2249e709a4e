/* SPDX-License-Identifier: Apache-2.0
 *
 * authority/review.c - TokenReview (authentication.k8s.io/v1): whose bearer token is this?
 *
 * The answer repeats the request, token included: nothing of it but the user's name and the credential's id
 * is looked at, and no text of it is kept.
 */
#include "authority/ask.h"

#include "base/mutant.h"
#include "contract/json.h"

#define API "authentication.k8s.io/v1"
#define CREDENTIAL "authentication.kubernetes.io/credential-id"

int authority_review_request(struct base_buf *out, struct base_str token)
{
    if (token.len == 0)
        return BASE_EINVAL;
    for (size_t i = 0; i < token.len; i++)
        if (token.ptr[i] < '!' || token.ptr[i] > '~')
            return BASE_EINVAL;
    (void)base_buf_addz(out, "{\"apiVersion\":\"" API
                             "\",\"kind\":\"TokenReview\",\"spec\":{\"audiences\":[\"" AUTHORITY_AUDIENCE
                             "\"],\"token\":");
    contract_json_quote(out, token);
    (void)base_buf_addz(out, "}}");
    return out->failed;
}

static int wrong(struct base_err *err, const char *field, const char *what)
{
    return base_err_set(err, BASE_EPROTO, "TokenReview answer: %s: %s", field, what);
}

/* A server that knows audiences names the ones that matched; one that does not would take any token for ours. */
static bool for_us(const struct contract_json *status)
{
    const struct contract_json *list = contract_json_get(status, "audiences");

    if (base_mutant("review.audience"))
        return true;
    if (!list || list->type != CONTRACT_JSON_ARRAY)
        return false;
    for (const struct contract_json *a = list->child; a; a = a->next)
        if (a->type == CONTRACT_JSON_STRING && base_str_eqz(a->str, AUTHORITY_AUDIENCE))
            return true;
    return false;
}

/* SHA-256 of what names this one credential: its id (a token's "JTI=…") where the server tells it, else the
 * user. */
static int credential(char dst[65], const struct contract_json *user, struct base_str name)
{
    const struct contract_json *ids = contract_json_get(contract_json_get(user, "extra"), CREDENTIAL);
    struct base_str id = name;
    uint8_t digest[BASE_SHA256_SIZE];

    if (ids && ids->type == CONTRACT_JSON_ARRAY && ids->child && ids->child->type == CONTRACT_JSON_STRING &&
        ids->child->str.len > 0)
        id = ids->child->str;
    if (base_sha256(digest, id.ptr, id.len, NULL, 0) != BASE_OK)
        return BASE_ENOMEM;
    base_hex(dst, digest, sizeof digest);
    return BASE_OK;
}

static int read_status(const struct contract_json *doc, struct authority_answer *ret, struct base_err *err)
{
    const struct contract_json *status, *yes, *user, *name;
    struct base_err why = {0};

    if (doc->type != CONTRACT_JSON_OBJECT || !base_str_eqz(contract_json_str(doc, "apiVersion"), API) ||
        !base_str_eqz(contract_json_str(doc, "kind"), "TokenReview"))
        return wrong(err, "body", "must be a TokenReview of " API);
    status = contract_json_get(doc, "status");
    if (!status || status->type != CONTRACT_JSON_OBJECT)
        return wrong(err, "status", "must be an object");
    yes = contract_json_get(status, "authenticated");
    if (yes && yes->type != CONTRACT_JSON_BOOL)
        return wrong(err, "status.authenticated", "must be true or false");
    ret->verdict = AUTHORITY_DENIED;
    if (!(yes && yes->boolean) && !base_mutant("review.authenticated"))
        return BASE_OK; /* absent is how the API server says no */
    if (!for_us(status))
        return BASE_OK;
    user = contract_json_get(status, "user");
    name = contract_json_get(user, "username");
    if (!name || name->type != CONTRACT_JSON_STRING)
        return wrong(err, "status.user.username", "must be a string");
    if (authority_identity_check(CONTRACT_IDENTITY_USER, name->str, &why) != BASE_OK)
        return wrong(err, "status.user.username", why.msg);
    if (base_copy_str(ret->user, sizeof ret->user, name->str) != BASE_OK)
        return wrong(err, "status.user.username", "is too long");
    if (credential(ret->credential_id, user, name->str) != BASE_OK)
        return base_err_set(err, BASE_ENOMEM, "TokenReview answer: no memory");
    ret->verdict = AUTHORITY_ALLOWED;
    return BASE_OK;
}

int authority_review_answer(struct authority_answer *ret, struct base_str json, struct base_err *err)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new((size_t)1 << 20);
    const struct contract_json *doc = NULL;
    struct authority_answer a = {0};
    int rc;

    if (!arena)
        return base_err_set(err, BASE_ENOMEM, "TokenReview answer: no memory");
    if (json.len > AUTHORITY_ANSWER_MAX)
        return wrong(err, "body", "is longer than 64 KiB");
    rc = contract_json_parse(&doc, arena, json, 0, err);
    if (rc == BASE_EINVAL) /* the parser's text could quote what it stumbled over */
        return wrong(err, "body", "is no JSON");
    if (rc != BASE_OK)
        return rc;
    rc = read_status(doc, &a, err);
    if (rc == BASE_OK)
        *ret = a;
    return rc;
}
