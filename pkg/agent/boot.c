/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/boot.h"

#include <cjson/cJSON.h>

#include "base/mem.h"
#include "contract/served.h"
#include "kube/client.h"
#include "loop/log.h"
#include "loop/loop.h"

#define RETRY_MIN (500 * BASE_MS)
#define RETRY_MAX (10 * BASE_SEC)
#define NODE_NAME_EXTRA "authentication.kubernetes.io/node-name"
#define NODE_UID_EXTRA "authentication.kubernetes.io/node-uid"

struct agent_boot {
    struct loop *loop;
    struct kube_client *client;
    struct loop_log *log;
    struct loop_timer *timer;
    struct kube_call *call;
    agent_boot_fn fn;
    void *arg;
    char node[CONTRACT_NODE_SIZE];
    enum { STEP_IDENTITY, STEP_EDGE, STEP_MASQUE, STEP_END } step;
    base_time backoff;
    struct base_prng jitter;
    struct agent_boot_result result;
};

/* ---- pure */

static const char *extra(const cJSON *info, const char *key)
{
    const cJSON *list =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(info, "extra"), key);

    return cJSON_GetStringValue(cJSON_GetArrayItem(list, 0));
}

int agent_boot_identity(struct base_str json, const char *node, char ret_node[CONTRACT_NODE_SIZE],
                        struct base_uuid *ret_uid, struct base_err *err)
{
    cJSON *doc = cJSON_ParseWithLength(json.ptr, json.len);
    const cJSON *info =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(doc, "status"), "userInfo");
    const char *user = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(info, "username"));
    const char *name = extra(info, NODE_NAME_EXTRA), *uid = extra(info, NODE_UID_EXTRA);
    int rc = BASE_OK;

    if (!info)
        rc = base_err_set(err, BASE_EPROTO, "the API server's SelfSubjectReview has no status.userInfo");
    else if (!name || !uid)
        rc = base_err_set(
            err, BASE_EINVAL,
            "credentials of '%.100s' carry no node claim (%s): use a token that is bound to this agent's pod "
            "(a projected service-account token)",
            user ? user : "?", NODE_NAME_EXTRA);
    else if (node[0] && strcmp(node, name) != 0)
        rc = base_err_set(
            err, BASE_EDENIED,
            "nodeName is '%s', but the token belongs to node '%.125s': set nodeName (NODE_NAME) from "
            "spec.nodeName, or use this pod's own token",
            node, name);
    else if (base_copy(ret_node, CONTRACT_NODE_SIZE, name))
        rc = base_err_set(err, BASE_EDENIED,
                          "node name '%.60s…' is longer than 125 characters: objects cannot be named", name);
    else if (base_uuid_parse(ret_uid, base_str_of(uid)))
        rc = base_err_set(err, BASE_EDENIED, "the token's node UID '%.60s' is no UUID", uid);
    cJSON_Delete(doc);
    return rc;
}

/* ---- driving */

static void ask(struct agent_boot *b);

static void report(struct agent_boot *b, const char *api, const char *crds)
{
    bool changed = strcmp(b->result.api, api) != 0 || strcmp(b->result.crds, crds) != 0 ||
                   b->result.state != AGENT_BOOT_WAITING;

    (void)base_fmt(b->result.api, sizeof b->result.api, "%s", api);
    (void)base_fmt(b->result.crds, sizeof b->result.crds, "%s", crds);
    if (changed && b->result.state == AGENT_BOOT_WAITING)
        loop_log(b->log, LOOP_WARN, "start_waiting", "not started yet, trying again",
                 LOG_STR("reason", api[0] ? api : crds), LOG_INT("retryMs", b->backoff / BASE_MS));
    if (changed)
        b->fn(b->arg, &b->result);
}

static void again(struct agent_boot *b)
{
    base_time wait = b->backoff / 2 + (base_time)base_prng_below(&b->jitter, (uint64_t)b->backoff / 2 + 1);

    loop_timer_set(b->timer, base_time_add(loop_clock(), wait));
    b->backoff = base_time_min(b->backoff * 2, RETRY_MAX);
}

static void on_answer(void *arg, const struct kube_resp *resp)
{
    static const char *const groups[] = {NULL, CONTRACT_GROUP, CONTRACT_MASQUE_GROUP};
    struct agent_boot *b = arg;
    struct base_err err = {0};
    int rc;

    b->call = NULL;
    if (resp->code) {
        report(b, resp->err.msg, "");
        again(b);
        return;
    }
    if (b->step == STEP_IDENTITY) {
        if (resp->http_status != 201) {
            (void)base_err_set(&err, BASE_EDENIED,
                               "SelfSubjectReview was answered with %d %s: check the credentials",
                               resp->http_status, resp->reason);
            report(b, err.msg, "");
            again(b);
            return;
        }
        rc = agent_boot_identity(resp->body, b->node, b->result.node, &b->result.node_uid, &err);
        if (rc == BASE_EDENIED)
            b->result.state = AGENT_BOOT_FATAL;
        if (rc) {
            report(b, err.msg, "");
            if (rc != BASE_EDENIED)
                again(b);
            return;
        }
    } else {
        if (resp->http_status == 200)
            rc = contract_served(resp->body, groups[b->step], &err);
        else if (resp->http_status == 404)
            rc = base_err_set(&err, BASE_EINVAL, "API group %s/%s is not served: apply manifests/crds",
                              groups[b->step], CONTRACT_VERSION);
        else
            rc = base_err_set(&err, BASE_EINVAL, "the OpenAPI document of %s was answered with %d %s",
                              groups[b->step], resp->http_status, resp->reason);
        if (rc) {
            report(b, "", err.msg);
            again(b);
            return;
        }
    }
    b->step++;
    b->backoff = RETRY_MIN;
    if (b->step == STEP_END) {
        b->result.state = AGENT_BOOT_DONE;
        report(b, "", "");
        return;
    }
    ask(b);
}

static void ask(struct agent_boot *b)
{
    static const char review[] =
        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}";
    struct kube_req req = {.timeout = 5 * BASE_SEC};
    struct base_err err = {0};

    switch (b->step) {
    case STEP_IDENTITY:
        req.method = "POST";
        req.path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        req.body = BASE_STR(review);
        break;
    case STEP_EDGE:
        req.method = "GET";
        req.path = "/openapi/v3/apis/" CONTRACT_GROUP "/" CONTRACT_VERSION;
        break;
    case STEP_MASQUE:
        req.method = "GET";
        req.path = "/openapi/v3/apis/" CONTRACT_MASQUE_GROUP "/" CONTRACT_VERSION;
        break;
    case STEP_END:
        return;
    }
    if (kube_request(b->client, &req, on_answer, b, &b->call, &err)) {
        report(b, err.msg, "");
        again(b);
    }
}

static void on_timer(void *arg)
{
    ask(arg);
}

int agent_boot_new(struct agent_boot **ret, struct loop *l, struct kube_client *client, const char *node,
                   struct loop_log *log, agent_boot_fn fn, void *arg, struct base_err *err)
{
    struct agent_boot *b = base_calloc(1, sizeof *b);
    int rc;

    if (!b)
        return base_err_set(err, BASE_ENOMEM, "start: no memory");
    b->loop = l;
    b->client = client;
    b->log = log;
    b->fn = fn;
    b->arg = arg;
    b->backoff = RETRY_MIN;
    b->result.state = AGENT_BOOT_WAITING;
    loop_random(&b->jitter.state, sizeof b->jitter.state);
    (void)base_copy(b->node, sizeof b->node, node);
    rc = loop_timer_new(&b->timer, l, on_timer, b, err);
    if (rc) {
        agent_boot_free(b);
        return rc;
    }
    loop_timer_set(b->timer, 0);
    *ret = b;
    return BASE_OK;
}

struct agent_boot *agent_boot_free(struct agent_boot *b)
{
    if (!b)
        return NULL;
    if (b->call)
        kube_cancel(b->call);
    loop_timer_free(b->timer);
    return base_free(b);
}
