/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/review.h"

#include <cjson/cJSON.h>
#include <strings.h>

#include "agent/web.h"
#include "base/mem.h"
#include "contract/json.h"

bool agent_review_bearer(struct agent_web_ask *web, struct base_str *ret)
{
    const char *h = agent_web_header(web, "Holdfast-Authorization");

    if (!h)
        h = agent_web_header(web, "Authorization");
    if (!h || strlen(h) < 8 || strncasecmp(h, "Bearer ", 7) != 0)
        return false;
    h += 7;
    h += strspn(h, " ");
    *ret = base_str_of(h);
    return ret->len > 0 && ret->len < AGENT_REVIEW_TOKEN_MAX &&
           strspn(h, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") == ret->len;
}

static int add_json(struct base_buf *out, cJSON *doc)
{
    char *text = doc ? cJSON_PrintUnformatted(doc) : NULL;
    int rc = text ? base_buf_addz(out, text) : BASE_ENOMEM;

    cJSON_free(text);
    cJSON_Delete(doc);
    return rc;
}

/* Written into memory that is there already, which the caller wipes: no copy stays behind. */
int agent_review_token(struct base_buf *out, struct base_str token, const char *audience)
{
    int rc;

    if (token.len == 0 || token.len >= AGENT_REVIEW_TOKEN_MAX)
        return BASE_EINVAL;
    rc = base_buf_reserve(out, 2 * token.len + 512 + (audience ? strlen(audience) : 0));
    if (rc)
        return rc;
    (void)base_buf_addz(
        out, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{\"token\":");
    contract_json_quote(out, token);
    if (audience) {
        (void)base_buf_addz(out, ",\"audiences\":[");
        contract_json_quote(out, base_str_of(audience));
        (void)base_buf_addz(out, "]");
    }
    (void)base_buf_addz(out, "}}");
    return out->failed;
}

/* The answer repeats the request, token included. */
static void wipe_token(const cJSON *doc)
{
    cJSON *item = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(doc, "spec"), "token");

    if (cJSON_IsString(item) && item->valuestring)
        explicit_bzero(item->valuestring, strlen(item->valuestring));
}

static bool is_for(const cJSON *status, const char *audience)
{
    const cJSON *a;

    cJSON_ArrayForEach(a, cJSON_GetObjectItemCaseSensitive(status, "audiences"))
    {
        const char *z = cJSON_GetStringValue(a);

        if (z && strcmp(z, audience) == 0)
            return true;
    }
    return false;
}

static cJSON *access_request(const char *name, cJSON *info, const char *path)
{
    static const char *const keep[] = {"groups", "uid", "extra"};
    cJSON *ask = cJSON_CreateObject(), *spec, *attributes;

    (void)cJSON_AddStringToObject(ask, "apiVersion", "authorization.k8s.io/v1");
    (void)cJSON_AddStringToObject(ask, "kind", "SubjectAccessReview");
    spec = cJSON_AddObjectToObject(ask, "spec");
    (void)cJSON_AddStringToObject(spec, "user", name);
    for (size_t i = 0; i < BASE_LEN(keep); i++) {
        cJSON *m = cJSON_DetachItemFromObjectCaseSensitive(info, keep[i]);

        if (m)
            (void)cJSON_AddItemToObject(spec, keep[i], m);
    }
    attributes = cJSON_AddObjectToObject(spec, "nonResourceAttributes");
    (void)cJSON_AddStringToObject(attributes, "path", path);
    (void)cJSON_AddStringToObject(attributes, "verb", "get");
    return ask;
}

int agent_review_access(struct base_buf *out, struct base_str review, const char *audience, const char *path,
                        char *user, size_t size, struct base_err *err)
{
    cJSON *doc = cJSON_ParseWithLength(review.ptr, review.len);
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(doc, "status");
    cJSON *info = cJSON_GetObjectItemCaseSensitive(status, "user");
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(info, "username"));
    int rc = BASE_OK;

    if (!status)
        rc = base_err_set(err, BASE_EPROTO, "the API server's TokenReview has no status");
    else if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(status, "authenticated")) || !name || !name[0])
        rc = base_err_set(err, BASE_EDENIED, "the token is not known");
    else if (audience && !is_for(status, audience)) /* a server that does not look at audiences names none */
        rc = base_err_set(err, BASE_EDENIED, "the token is not for the audience %s", audience);
    if (!rc) {
        (void)base_fmt(user, size, "%s", name);
        rc = add_json(out, access_request(name, info, path));
        if (rc)
            (void)base_err_set(err, rc, "no memory");
    }
    wipe_token(doc);
    cJSON_Delete(doc);
    return rc;
}

int agent_review_allowed(struct base_str access, const char *remedy, struct base_err *err)
{
    cJSON *doc = cJSON_ParseWithLength(access.ptr, access.len);
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(doc, "status");
    bool allowed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(status, "allowed")),
         denied = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(status, "denied"));
    int rc = BASE_OK;

    if (!status)
        rc = base_err_set(err, BASE_EPROTO, "the API server's SubjectAccessReview has no status");
    else if (!allowed || denied)
        rc = base_err_set(err, BASE_EDENIED, "%s", remedy);
    cJSON_Delete(doc);
    return rc;
}
