/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/reviewer.h"

#include "agent/review.h"
#include "kube/client.h"
#include "loop/loop.h"

#define TIMEOUT (5 * BASE_SEC)
#define PER_S 10

bool agent_reviewer_take(struct agent_reviewer *by)
{
    base_time now = loop_clock();

    by->reviews_at = base_time_max(by->reviews_at, now - BASE_SEC); /* a burst of PER_S */
    if (by->reviews_at > now)
        return false;
    by->reviews_at += BASE_SEC / PER_S;
    return true;
}

static int post(struct agent_review *r, const char *path, const struct base_buf *json, kube_done done,
                struct base_err *err)
{
    struct kube_req req = {.method = "POST",
                           .path = path,
                           .body = {json->data, json->len},
                           .timeout = TIMEOUT,
                           .lane = KUBE_LANE_DEFAULT,
                           .secret = true};

    return kube_request(r->by->client, &req, done, r, &r->call, err);
}

/* True when the answer can be used; else the caller of the review has been told. */
static bool usable(struct agent_review *r, const struct kube_resp *resp, const char *what)
{
    char text[400];

    r->call = NULL;
    if (resp->code == BASE_OK && (resp->http_status == 200 || resp->http_status == 201))
        return true;
    if (resp->code == BASE_OK && resp->http_status == 403)
        (void)base_fmt(text, sizeof text,
                       "this agent may not make a %s: bind the ClusterRole holdfast-agent-reviews to it",
                       what);
    else if (resp->code == BASE_OK)
        (void)base_fmt(text, sizeof text, "the API server answered a %s with %d %s", what, resp->http_status,
                       resp->reason);
    else
        (void)base_fmt(text, sizeof text, "the API server cannot be asked: %s", resp->err.msg);
    r->fn(r->arg, 503, text);
    return false;
}

static void on_access(void *arg, const struct kube_resp *resp)
{
    struct agent_review *r = arg;
    struct base_err err = {0};
    int rc;

    if (!usable(r, resp, "SubjectAccessReview"))
        return;
    rc = agent_review_allowed(resp->body, r->by->remedy, &err);
    r->fn(r->arg, !rc ? 0 : rc == BASE_EDENIED ? 403 : 503, rc ? err.msg : "");
}

static void on_review(void *arg, const struct kube_resp *resp)
{
    struct agent_review *r = arg;
    struct base_err err = {0};
    struct base_buf json;
    bool denied;
    int rc;

    if (!usable(r, resp, "TokenReview"))
        return;
    base_buf_init(&json, 256 * 1024);
    rc = agent_review_access(&json, resp->body, r->by->audience, r->by->path, r->user, sizeof r->user, &err);
    denied = rc == BASE_EDENIED;
    if (!rc)
        rc = post(r, "/apis/authorization.k8s.io/v1/subjectaccessreviews", &json, on_access, &err);
    base_buf_fini(&json);
    if (rc)
        r->fn(r->arg, denied ? 401 : 503, err.msg);
}

void agent_review_begin(struct agent_review *r, struct agent_reviewer *by, struct base_str token,
                        agent_reviewed_fn fn, void *arg)
{
    struct base_err err = {0};
    struct base_buf json;
    int rc;

    *r = (struct agent_review){.by = by, .fn = fn, .arg = arg};
    base_buf_init(&json, 4 * AGENT_REVIEW_TOKEN_MAX);
    rc = agent_review_token(&json, token, by->audience);
    if (!rc)
        rc = post(r, "/apis/authentication.k8s.io/v1/tokenreviews", &json, on_review, &err);
    if (json.data)
        explicit_bzero(json.data, json.len);
    base_buf_fini(&json);
    if (rc)
        fn(arg, 503, err.msg[0] ? err.msg : "no memory");
}

void agent_review_cancel(struct agent_review *r)
{
    if (r->call)
        kube_cancel(r->call);
    r->call = NULL;
}
