/* SPDX-License-Identifier: Apache-2.0 */
#include "kubestore/kubestore_int.h"

#define RESTARTS_MAX 5
#define ARENA_MAX ((size_t)32 << 20)
#define PAGE_TIMEOUT (10 * BASE_SEC)

struct kubestore_pager {
    struct kube_client *client;
    struct kube_call *call;
    const struct kubestore_pager_fns *fns;
    void *arg;
    char ns[64];
    enum contract_kind kind;
    char selector[512];
    int lane;
    base_time deadline;
    char audit_id[BASE_CORRELATION_SIZE];
    char *token; /* of the next page; NULL = the first */
    unsigned restarts;
    bool busy, dead; /* freed by its own callback: released on the way out */
};

static void on_page(void *arg, const struct kube_resp *resp);

static int ask(struct kubestore_pager *p, struct base_err *err)
{
    char path[KUBESTORE_PATH_SIZE + 4096];
    struct kube_req req = {.method = "GET", .path = path, .lane = p->lane};
    base_time left = p->deadline - loop_clock();
    size_t n;

    if (left <= 0)
        return base_err_set(err, BASE_ETIMEDOUT, "%s: the list was not whole in time",
                            contract_kind_plural(p->kind));
    if (!kubestore_path(path, sizeof path, p->ns, p->kind, NULL, false))
        return base_err_set(err, BASE_EINVAL, "%s: the path is too long", contract_kind_plural(p->kind));
    n = strlen(path);
    (void)base_fmt(path + n, sizeof path - n, "?limit=%d", KUBESTORE_PAGE);
    n = strlen(path);
    if (p->selector[0])
        (void)base_fmt(path + n, sizeof path - n, "&fieldSelector=");
    if (p->selector[0] && !kubestore_escape(path, sizeof path, base_str_of(p->selector)))
        return base_err_set(err, BASE_EINVAL, "%s: the selector is too long", contract_kind_plural(p->kind));
    n = strlen(path);
    if (p->token)
        (void)base_fmt(path + n, sizeof path - n, "&continue=");
    if (p->token && !kubestore_escape(path, sizeof path, base_str_of(p->token)))
        return base_err_set(err, BASE_EPROTO, "%s: the server's continue token is too long",
                            contract_kind_plural(p->kind));
    req.timeout = base_time_min(left, PAGE_TIMEOUT);
    req.audit_id = p->audit_id[0] ? p->audit_id : NULL;
    return kube_request(p->client, &req, on_page, p, &p->call, err);
}

static void release(struct kubestore_pager *p)
{
    base_free(p->token);
    base_free(p);
}

/* Ends with an answer; nothing may follow in the caller. */
static void finish(struct kubestore_pager *p, int code, const struct kube_resp *resp,
                   const struct base_err *err)
{
    p->fns->done(p->arg, code, resp, err);
}

/* The rows of a page; false: the receiver ended the list. */
static bool rows(struct kubestore_pager *p, const struct contract_json *items)
{
    if (!items || items->type != CONTRACT_JSON_ARRAY)
        return true;
    for (const struct contract_json *row = items->child; row; row = row->next)
        if (!p->fns->row(p->arg, row->raw) || p->dead)
            return false;
    return true;
}

static void page(struct kubestore_pager *p, const struct kube_resp *resp)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new(ARENA_MAX);
    const struct contract_json *root = NULL, *meta;
    char rv[CONTRACT_RV_SIZE];
    struct base_err err = {0};
    struct base_str token;
    int rc;

    if (!arena) {
        (void)base_err_set(&err, BASE_ENOMEM, "%s: no memory for a page", contract_kind_plural(p->kind));
        finish(p, BASE_ENOMEM, resp, &err);
        return;
    }
    rc = contract_json_parse(&root, arena, resp->body, 2, &err);
    meta = contract_json_get(root, "metadata");
    if (!rc && (base_copy_str(rv, sizeof rv, contract_json_str(meta, "resourceVersion")) || !rv[0]))
        rc = base_err_set(&err, BASE_EPROTO, "metadata.resourceVersion of the list is missing");
    if (rc) {
        (void)base_err_wrap(&err, "%s: the answer is no list", contract_kind_plural(p->kind));
        finish(p, rc == BASE_ENOMEM ? rc : BASE_EIO, resp, &err);
        return;
    }
    if (!p->token && (!p->fns->begin(p->arg, rv, resp->sent_at) || p->dead))
        return;
    if (!rows(p, contract_json_get(root, "items")))
        return;
    token = contract_json_str(meta, "continue");
    p->token = base_free(p->token);
    if (token.len == 0) {
        finish(p, BASE_OK, resp, NULL);
        return;
    }
    p->token = base_calloc(1, token.len + 1);
    if (p->token)
        memcpy(p->token, token.ptr, token.len);
    rc = p->token ? ask(p, &err)
                  : base_err_set(&err, BASE_ENOMEM, "%s: no memory", contract_kind_plural(p->kind));
    if (rc)
        finish(p, rc, NULL, &err);
}

static void on_page(void *arg, const struct kube_resp *resp)
{
    struct kubestore_pager *p = arg;
    struct store_resp r = {0};
    struct base_err err;

    p->call = NULL;
    p->busy = true;
    kubestore_classify(&r, false, resp);
    if (r.code == BASE_OK) {
        page(p, resp);
    } else if (r.code == BASE_EGONE && p->token && p->restarts++ < RESTARTS_MAX) {
        p->token = base_free(p->token); /* the token has expired: the list starts again */
        if (ask(p, &err))
            finish(p, err.code, resp, &err);
    } else {
        finish(p, r.code, resp, &r.err);
    }
    p->busy = false;
    if (p->dead)
        release(p);
}

int kubestore_pager_new(struct kubestore_pager **ret, struct kube_client *client, const char *ns,
                        enum contract_kind kind, const char *selector, int lane, base_time deadline,
                        const char *audit_id, const struct kubestore_pager_fns *fns, void *arg,
                        struct base_err *err)
{
    struct kubestore_pager *p = base_calloc(1, sizeof *p);
    int rc;

    if (!p)
        return base_err_set(err, BASE_ENOMEM, "%s: no memory for a list", contract_kind_plural(kind));
    p->client = client;
    p->kind = kind;
    p->lane = lane;
    p->deadline = deadline;
    p->fns = fns;
    p->arg = arg;
    rc = base_copy(p->ns, sizeof p->ns, ns) || base_copy(p->selector, sizeof p->selector, selector) ||
                 base_copy(p->audit_id, sizeof p->audit_id, audit_id ? audit_id : "")
             ? base_err_set(err, BASE_EINVAL, "%s: namespace or selector is too long",
                            contract_kind_plural(kind))
             : ask(p, err);
    if (rc) {
        release(p);
        return rc;
    }
    *ret = p;
    return BASE_OK;
}

struct kubestore_pager *kubestore_pager_free(struct kubestore_pager *p)
{
    if (!p)
        return NULL;
    if (p->call)
        kube_cancel(p->call);
    p->call = NULL;
    p->dead = true;
    if (!p->busy)
        release(p);
    return NULL;
}
