/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/api.c - the API server, one request after the other; and an agent's page on plain HTTP.
 */
#include "cli/cli_int.h"

#include <stdlib.h>

#include "contract/json.h"
#include "http/pool.h"
#include "kube/client.h"
#include "loop/loop.h"

#define PAGE 500
#define TIMEOUT (15 * BASE_SEC)
#define LIST_ARENA ((size_t)1 << 30)

struct cli_api {
    struct loop *loop;
    struct kube_config *config;
    struct kube_client *client;
    struct http_pool *plain;
    char ns[CONTRACT_LABEL_SIZE];
};

int cli_api_open(struct cli *c, struct base_err *err)
{
    struct cli_api *api;
    const char *ns;
    int rc;

    if (c->api)
        return BASE_OK;
    api = base_calloc(1, sizeof *api);
    if (!api)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    c->api = api;
    rc = kube_config_load_person(&api->config, c->a.kubeconfig, c->a.context, err);
    if (rc) {
        cli_api_close(c);
        if (rc == BASE_ENOTFOUND && !c->a.kubeconfig)
            return base_err_set(err, rc,
                                "no kubeconfig: name one with --kubeconfig FILE or $KUBECONFIG (looked at "
                                "$KUBECONFIG, the pod's service account and ~/.kube/config)");
        return base_err_wrap(err, c->a.kubeconfig ? "--kubeconfig %s" : "kubeconfig%s",
                             c->a.kubeconfig ? c->a.kubeconfig : "");
    }
    ns = c->a.ns ? c->a.ns : kube_config_namespace(api->config);
    (void)base_copy(api->ns, sizeof api->ns, ns[0] ? ns : CLI_NAMESPACE);
    rc = loop_new(&api->loop, err);
    if (!rc)
        rc = kube_client_new(&api->client, api->loop, api->config, "kubectl-holdfast/" HOLDFAST_VERSION, NULL,
                             err);
    if (rc)
        cli_api_close(c);
    return rc;
}

void cli_api_close(struct cli *c)
{
    struct cli_api *api = c->api;

    if (!api)
        return;
    kube_client_free(api->client);
    kube_config_free(api->config);
    http_pool_free(api->plain);
    loop_free(api->loop);
    c->api = base_free(api);
}

const char *cli_api_namespace(const struct cli *c)
{
    return c->api ? c->api->ns : c->a.ns ? c->a.ns : CLI_NAMESPACE;
}

const char *cli_api_server(const struct cli *c)
{
    return c->api ? kube_config_server(c->api->config) : "";
}

/* ---- one request */

struct wait {
    bool done;
    int code, status;
    char reason[64];
    struct base_buf *body;
    struct base_err err;
};

static void on_answer(void *arg, const struct kube_resp *r)
{
    struct wait *w = arg;

    w->done = true;
    w->code = r->code;
    w->status = r->http_status;
    w->err = r->err;
    (void)base_copy(w->reason, sizeof w->reason, r->reason);
    if (w->body && base_buf_add(w->body, r->body.ptr, r->body.len) && !w->code)
        w->code = base_err_set(&w->err, BASE_EFULL, "the answer is too large");
}

static int outcome(const struct cli *c, const struct wait *w, const char *what, struct base_err *err)
{
    if (w->code)
        return base_err_set(err, w->code, "%s at %s: %s", what, cli_api_server(c), w->err.msg);
    if (w->status == 401)
        return base_err_set(err, BASE_EDENIED,
                            "%s: the API server does not know these credentials (401): renew them, or name "
                            "another --context",
                            what);
    if (w->status == 403)
        return base_err_set(err, BASE_EDENIED,
                            "%s: not allowed (403): %s; operators are the group holdfast:operators "
                            "(manifests/rbac/operator.yaml)",
                            what, w->err.msg);
    if (w->status == 404)
        return base_err_set(err, BASE_ENOTFOUND, "%s: there is none (404)", what);
    if (w->status == 409)
        return base_err_set(err, BASE_ECONFLICT, "%s: changed meanwhile (409)", what);
    if (w->status >= 300)
        return base_err_set(err, w->err.code ? w->err.code : BASE_EPROTO, "%s: %d %s: %s", what, w->status,
                            w->reason, w->err.msg);
    return BASE_OK;
}

int cli_api_call(struct cli *c, const char *method, const char *path, const char *json, const char *header,
                 struct base_buf *body, int *ret_status, struct base_err *err)
{
    struct wait w = {.body = body};
    struct kube_req req = {.method = method,
                           .path = path,
                           .body = json ? base_str_of(json) : BASE_STR(""),
                           .content_type =
                               strcmp(method, "PATCH") == 0 ? "application/merge-patch+json" : NULL,
                           .header = header,
                           .timeout = TIMEOUT};
    char what[200];
    int rc = cli_api_open(c, err);

    if (rc)
        return rc;
    (void)base_fmt(what, sizeof what, "%s %.*s", method, (int)strcspn(path, "?"), path);
    rc = kube_request(c->api->client, &req, on_answer, &w, NULL, err);
    if (rc)
        return rc;
    while (!w.done)
        loop_step(c->api->loop, true);
    if (ret_status)
        *ret_status = w.status;
    return outcome(c, &w, what, err);
}

cJSON *cli_api_json(struct cli *c, const char *path, size_t max, struct base_err *err)
{
    struct base_buf body;
    cJSON *doc = NULL;

    base_buf_init(&body, max);
    if (!cli_api_call(c, "GET", path, NULL, NULL, &body, NULL, err)) {
        doc = cJSON_ParseWithLength(body.data ? body.data : "", body.len);
        if (!doc)
            (void)base_err_set(err, BASE_EPROTO, "GET %s: the answer is no JSON", path);
    }
    base_buf_fini(&body);
    return doc;
}

/* ---- objects */

static void add_path(struct base_buf *b, const struct cli *c, enum contract_kind kind)
{
    (void)base_buf_addf(b, "/apis/%s/%s/namespaces/%s/%s", contract_kind_group(kind), CONTRACT_VERSION,
                        c->api->ns, contract_kind_plural(kind));
}

/* One listing: each object that makes sense goes to `fn`. */
struct walk {
    struct cli *c;
    enum contract_kind kind;
    cli_object_fn fn;
    void *arg;
    struct contract_object o; /* the one at hand */
};

static int one_object(struct walk *w, struct base_str raw, struct base_err *err)
{
    struct base_err bad = {0};

    if (!contract_decode(&w->o, w->kind, raw, &bad))
        return w->fn(w->arg, &w->o, err);
    cli_warn(w->c, "one of the %s makes no sense and is left out: %s", contract_kind_plural(w->kind),
             bad.msg);
    return BASE_OK;
}

int cli_page_next(struct base_buf *next, const struct contract_json *list)
{
    struct base_str more = contract_json_str(contract_json_get(list, "metadata"), "continue");

    base_buf_reset(next);
    return more.len ? base_buf_add(next, more.ptr, more.len) : BASE_OK;
}

static int one_page(void *arg, struct base_str text, struct base_buf *next, struct base_err *err)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new(LIST_ARENA);
    struct walk *w = arg;
    const struct contract_json *root, *items;
    int rc;

    if (!arena)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    rc = contract_json_parse(&root, arena, text, 2, err);
    if (rc)
        return base_err_wrap(err, "the list of %s", contract_kind_plural(w->kind));
    items = contract_json_get(root, "items");
    for (const struct contract_json *i = items ? items->child : NULL; i && !rc; i = i->next)
        rc = one_object(w, i->raw, err);
    return rc ? rc : cli_page_next(next, root);
}

int cli_api_pages(struct cli *c, enum contract_kind kind, const char *query, const char *header,
                  cli_page_fn fn, void *arg, struct base_err *err)
{
    struct base_buf path, body, next;
    int rc = cli_api_open(c, err);

    if (rc)
        return rc;
    base_buf_init(&path, 65536);
    base_buf_init(&body, (size_t)64 << 20);
    base_buf_init(&next, 16384);
    for (bool more = true; !rc && more; more = next.len > 0) {
        base_buf_reset(&path);
        base_buf_reset(&body);
        add_path(&path, c, kind);
        (void)base_buf_addf(&path, "?%s", query);
        if (next.len) {
            (void)base_buf_addz(&path, "&continue=");
            (void)kube_escape(&path, (struct base_str){next.data, next.len});
        }
        rc = path.failed ? base_err_set(err, path.failed, "no memory")
                         : cli_api_call(c, "GET", path.data, NULL, header, &body, NULL, err);
        if (!rc)
            rc = fn(arg, (struct base_str){body.data ? body.data : "", body.len}, &next, err);
    }
    base_buf_fini(&path);
    base_buf_fini(&body);
    base_buf_fini(&next);
    return rc;
}

int cli_api_each(struct cli *c, enum contract_kind kind, const char *fields, cli_object_fn fn,
                 void (*restart)(void *arg), void *arg, struct base_err *err)
{
    struct walk *w = base_calloc(1, sizeof *w);
    struct base_buf query;
    int rc = w ? cli_api_open(c, err) : base_err_set(err, BASE_ENOMEM, "no memory");

    if (rc) {
        base_free(w);
        return rc;
    }
    rc = BASE_EGONE;
    *w = (struct walk){.c = c, .kind = kind, .fn = fn, .arg = arg};
    base_buf_init(&query, 16384);
    (void)base_buf_addf(&query, "limit=%d", PAGE);
    if (fields) {
        (void)base_buf_addz(&query, "&fieldSelector=");
        (void)kube_escape(&query, base_str_of(fields));
    }
    if (query.failed)
        rc = base_err_set(err, query.failed, "no memory");
    for (int tries = 0; rc == BASE_EGONE && tries < 4; tries++) { /* it took too long: from the beginning */
        restart(arg);
        rc = cli_api_pages(c, kind, query.data, NULL, one_page, w, err);
    }
    if (rc == BASE_ENOTFOUND)
        (void)base_err_set(err, rc, "%s/%s has no %s: apply manifests/crds", contract_kind_group(kind),
                           CONTRACT_VERSION, contract_kind_plural(kind));
    base_buf_fini(&query);
    base_free(w);
    return rc;
}

static void list_restart(void *arg)
{
    struct cli_list *l = arg;

    l->n = 0;
}

static int list_add(void *arg, const struct contract_object *o, struct base_err *err)
{
    struct cli_list *l = arg;

    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        void *more = base_realloc(l->o, room * sizeof *l->o);

        if (!more)
            return base_err_set(err, BASE_ENOMEM, "no memory for the %s", contract_kind_plural(o->kind));
        l->o = more;
        l->room = room;
    }
    contract_object_copy(&l->o[l->n++], o);
    return BASE_OK;
}

int cli_api_list(struct cli *c, enum contract_kind kind, const char *fields, struct cli_list *ret,
                 struct base_err *err)
{
    int rc;

    *ret = (struct cli_list){.n = 0};
    rc = cli_api_each(c, kind, fields, list_add, list_restart, ret, err);
    if (rc)
        cli_list_fini(ret);
    ret->seen = rc == BASE_OK;
    return rc;
}

void cli_list_fini(struct cli_list *l)
{
    base_free(l->o);
    *l = (struct cli_list){.n = 0};
}

int cli_api_get(struct cli *c, enum contract_kind kind, const char *name, struct contract_object *ret,
                struct base_err *err)
{
    struct base_buf path, body;
    int rc = cli_api_open(c, err);

    if (rc)
        return rc;
    base_buf_init(&path, 4096);
    base_buf_init(&body, 4 << 20);
    add_path(&path, c, kind);
    (void)base_buf_addz(&path, "/");
    (void)kube_escape(&path, base_str_of(name));
    rc = path.failed ? base_err_set(err, path.failed, "no memory")
                     : cli_api_call(c, "GET", path.data, NULL, NULL, &body, NULL, err);
    if (!rc)
        rc = contract_decode(ret, kind, (struct base_str){body.data, body.len}, err);
    base_buf_fini(&path);
    base_buf_fini(&body);
    return rc;
}

int cli_api_delete(struct cli *c, const struct contract_object *o, struct base_err *err)
{
    char json[512], uid[BASE_UUID_SIZE];
    struct base_buf path;
    int rc = cli_api_open(c, err);

    if (rc)
        return rc;
    base_uuid_text(uid, &o->u.meta.uid);
    (void)base_fmt(json, sizeof json,
                   "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"%s\","
                   "\"resourceVersion\":\"%s\"},\"propagationPolicy\":\"Background\"}",
                   uid, o->u.meta.rv);
    base_buf_init(&path, 4096);
    add_path(&path, c, o->kind);
    (void)base_buf_addz(&path, "/");
    (void)kube_escape(&path, base_str_of(o->u.meta.name));
    rc = path.failed ? base_err_set(err, path.failed, "no memory")
                     : cli_api_call(c, "DELETE", path.data, json, NULL, NULL, NULL, err);
    base_buf_fini(&path);
    return rc;
}

/* ---- an agent's own page */

static void on_plain(void *arg, const struct http_resp *r)
{
    struct wait *w = arg;

    w->done = true;
    w->code = r->code;
    w->status = r->status;
    w->err = r->err;
    if (base_buf_add(w->body, r->body.ptr, r->body.len) && !w->code)
        w->code = base_err_set(&w->err, BASE_EFULL, "the answer is too large");
}

int cli_api_plain(struct cli *c, const char *address, const char *path, const char *header,
                  struct base_buf *body, int *ret_status, struct base_err *err)
{
    struct wait w = {.body = body};
    struct http_handler h = {.done = on_plain, .arg = &w};
    struct base_buf url;
    const char *headers[] = {header};
    int rc = cli_api_open(c, err);

    if (!rc && !c->api->plain)
        rc = http_pool_new(&c->api->plain, c->api->loop, &(struct http_pool_opts){.max_conns = 4}, err);
    if (rc)
        return rc;
    base_buf_init(&url, 65536);
    (void)base_buf_addf(&url, "http://%s%s", address, path);
    rc = url.failed ? base_err_set(err, url.failed, "no memory")
                    : http_start(c->api->plain,
                                 &(struct http_req){.method = "GET",
                                                    .url = url.data,
                                                    .plain = true,
                                                    .headers = headers,
                                                    .n_headers = header ? 1 : 0,
                                                    .timeout = TIMEOUT,
                                                    .max_body = (size_t)16 << 20,
                                                    .repeatable = true},
                                 &h, NULL, err);
    base_buf_fini(&url);
    if (rc)
        return rc;
    while (!w.done)
        loop_step(c->api->loop, true);
    *ret_status = w.status;
    if (w.code)
        return base_err_set(err, w.code, "%s", w.err.msg);
    return BASE_OK;
}
