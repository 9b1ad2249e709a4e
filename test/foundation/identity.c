/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include "base/mem.h"
#include "kube/client.h"

#include <cjson/cJSON.h>

static const char *extra(const cJSON *user, const char *key)
{
    const cJSON *list =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(user, "extra"), key);
    const cJSON *first = cJSON_IsArray(list) ? cJSON_GetArrayItem(list, 0) : NULL;

    return cJSON_IsString(first) ? first->valuestring : "";
}

int identity_parse(struct identity *ret, struct base_str body, struct base_err *err)
{
    cJSON *root = cJSON_ParseWithLength(body.ptr, body.len);
    const cJSON *user =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, "status"), "userInfo");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(user, "username");
    struct identity id = {0};
    int r = BASE_OK;

    if (!cJSON_IsString(name) || base_copy(id.username, sizeof id.username, name->valuestring) ||
        base_copy(id.node, sizeof id.node, extra(user, "authentication.kubernetes.io/node-name")))
        r = base_err_set(err, BASE_EPROTO, "the API server's answer to a SelfSubjectReview names no user");
    else
        (void)base_uuid_parse(&id.node_uid,
                              base_str_of(extra(user, "authentication.kubernetes.io/node-uid")));
    cJSON_Delete(root);
    if (!r)
        *ret = id;
    return r;
}

struct question {
    identity_fn fn;
    void *arg;
};

static void answered(void *arg, const struct kube_resp *resp)
{
    struct question q = *(struct question *)arg;
    struct identity who;
    struct base_err err = resp->err;
    int r = resp->code;

    base_free(arg);
    if (!r && resp->http_status != 201)
        r = base_err_set(&err, BASE_EDENIED, "the API server does not say who we are: HTTP %d %s",
                         resp->http_status, resp->reason);
    if (!r)
        r = identity_parse(&who, resp->body, &err);
    q.fn(q.arg, r, r ? NULL : &who, &err);
}

int identity_ask(struct kube_client *client, identity_fn fn, void *arg, struct base_err *err)
{
    struct kube_req req = {
        .method = "POST",
        .path = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        .body = BASE_STR("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}"),
        .timeout = 5 * BASE_SEC,
    };
    struct question *q = base_calloc(1, sizeof *q);
    int r;

    if (!q)
        return base_err_set(err, BASE_ENOMEM, "no memory for a question");
    q->fn = fn;
    q->arg = arg;
    r = kube_request(client, &req, answered, q, NULL, err);
    if (r)
        base_free(q);
    return r;
}
