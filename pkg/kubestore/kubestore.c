/* SPDX-License-Identifier: Apache-2.0 */
#include "kubestore/watch_int.h"

#define OUTAGE 3 /* failures in a row that make one */
#define OPS_MAX 1024
#define ROWS_MAX 8192 /* of a LIST request; collections are watched instead */

struct kubestore_op {
    struct kubestore *s;
    struct kubestore_op *prev, *next;
    kubestore_done done;
    void *arg;
    uint64_t id;
    enum store_op op;
    enum contract_kind kind;
    int lane;
    base_time deadline;
    char audit_id[BASE_CORRELATION_SIZE];
    char path[KUBESTORE_PATH_SIZE]; /* of the request itself */
    struct kube_call *call;
    struct base_buf body;
    struct contract_object *object; /* what a PUT shall write; what an answer holds */
    char rv[CONTRACT_RV_SIZE];      /* of the object that it was decided on */
    char floor[CONTRACT_RV_SIZE];   /* highest version of the kind that was seen when it was submitted */
    unsigned history;               /* of the store then */
    /* LIST */
    struct kubestore_pager *pager;
    struct contract_object *rows;
    size_t n_rows, cap_rows;
    char list_rv[CONTRACT_RV_SIZE];
    base_time list_sent;
    struct base_err row_err;
};

static bool is_write(enum store_op op)
{
    return op == STORE_CREATE || op == STORE_UPDATE || op == STORE_UPDATE_STATUS || op == STORE_DELETE;
}

/* ---- versions ---- */
int kubestore_rv_cmp(const char *a, const char *b)
{
    int c;

    if (!a[0] || !b[0])
        return (a[0] != '\0') - (b[0] != '\0');
    if (base_rv_cmp(a, b, &c))
        return 2;
    return c < 0 ? -1 : c > 0;
}

void kubestore_saw(struct kubestore *s, enum contract_kind kind, const char *rv)
{
    if (kubestore_rv_cmp(rv, s->seen[kind]) == 1)
        (void)base_copy(s->seen[kind], sizeof s->seen[kind], rv);
}

void kubestore_went_back(struct kubestore *s, enum contract_kind kind, const char *rv, const char *floor)
{
    struct base_err err = {0};

    (void)base_err_set(&err, BASE_EPROTO,
                       "%s: the server's version %s is below %s, which was seen before: was etcd restored?",
                       contract_kind_plural(kind), rv, floor);
    kubestore_start_over(s, err.msg);
}

/* A write that changed something has a version of its own, above every one that was seen before it was sent;
 * a list has at least the highest of those. What was sent in another history says nothing of this one. */
static void look_at_version(struct kubestore_op *op, const char *rv)
{
    int order = kubestore_rv_cmp(rv, op->floor);

    if (op->history != op->s->history)
        return;
    if (op->op == STORE_LIST && order == -1)
        kubestore_went_back(op->s, op->kind, rv, op->floor);
    else if (op->op != STORE_LIST && op->op != STORE_DELETE && op->op != STORE_GET &&
             strcmp(rv, op->rv) != 0 && (order == -1 || order == 0) && op->floor[0])
        kubestore_went_back(op->s, op->kind, rv, op->floor);
    else
        kubestore_saw(op->s, op->kind, rv);
}

/* ---- life ---- */
int kubestore_new(struct kubestore **ret, struct loop *l, struct kube_client *client, const char *ns,
                  struct loop_log *log, struct base_err *err)
{
    struct kubestore *s;

    if (!base_is_label(base_str_of(ns), 63))
        return base_err_set(err, BASE_EINVAL,
                            "namespace \"%.80s\" is no DNS label; name the agents' namespace", ns);
    s = base_calloc(1, sizeof *s);
    if (s)
        s->raw = kubestore_raw_new();
    if (!s || !s->raw) {
        base_free(s);
        return base_err_set(err, BASE_ENOMEM, "store: no memory");
    }
    s->loop = l;
    s->client = client;
    s->log = log;
    (void)base_copy(s->ns, sizeof s->ns, ns);
    *ret = s;
    return BASE_OK;
}

void kubestore_unguarded(struct kubestore *s)
{
    s->unguarded = true;
}

static void op_release(struct kubestore_op *op)
{
    base_buf_fini(&op->body);
    base_free(op->object);
    base_free(op->rows);
    base_free(op);
}

static void op_unlink(struct kubestore_op *op)
{
    if (op->prev)
        op->prev->next = op->next;
    else
        op->s->ops = op->next;
    if (op->next)
        op->next->prev = op->prev;
    op->s->n_ops--;
}

struct kubestore *kubestore_free(struct kubestore *s)
{
    if (!s)
        return NULL;
    while (s->ops) {
        struct kubestore_op *op = s->ops;

        op_unlink(op);
        if (op->call)
            kube_cancel(op->call);
        kubestore_pager_free(op->pager);
        op_release(op);
    }
    kubestore_raw_free(s->raw);
    return base_free(s);
}

void kubestore_heard(struct kubestore *s, const struct kube_resp *resp)
{
    if (resp && resp->code == BASE_OK && resp->http_status == 429)
        return; /* it lives, and asks for patience: neither an outage nor its end */
    if (resp && (resp->code != BASE_OK || resp->http_status >= 500)) {
        s->failed_in_row++;
        return;
    }
    if (s->failed_in_row >= OUTAGE) {
        kube_lanes_again(s->client);
        for (struct kubestore_watch *w = s->watches; w; w = w->next)
            kubestore_watch_hurry(w);
    }
    if (resp) /* a watch opens from the server's cache: the server lives, its store may not */
        s->failed_in_row = 0;
}

/* The end of an operation. It is out of the list before its owner hears of it, so that the owner may free the
 * store. */
static void op_done(struct kubestore_op *op, struct store_resp *resp)
{
    resp->id = op->id;
    op_unlink(op);
    kubestore_pager_free(op->pager);
    op->done(op->arg, resp);
    op_release(op);
}

static void op_fail(struct kubestore_op *op, int code, int http, const char *reason,
                    const struct base_err *err)
{
    struct store_resp r = {.code = code, .http_status = http, .err = *err};

    r.err.code = code;
    r.err.http_status = http;
    (void)base_copy(r.reason, sizeof r.reason, reason);
    op_done(op, &r);
}

/* ---- single objects ---- */
static void on_answer(void *arg, const struct kube_resp *resp);

static int op_send(struct kubestore_op *op, const char *method, const char *path, kube_done done,
                   struct base_err *err)
{
    struct kube_req req = {.method = method,
                           .path = path,
                           .body = {op->body.data, op->body.len},
                           .audit_id = op->audit_id[0] ? op->audit_id : NULL,
                           .timeout = op->deadline - loop_clock(),
                           .lane = op->lane};

    if (req.timeout <= 0)
        return base_err_set(err, BASE_ETIMEDOUT, "no time is left for the request");
    return kube_request(op->s->client, &req, done, op, &op->call, err);
}

/* Decodes an object and remembers its text. */
static int take_object(struct kubestore_op *op, struct base_str body, struct base_err *err)
{
    int rc = contract_decode(op->object, op->kind, body, err);

    if (!rc && op->history == op->s->history)
        kubestore_raw_put(op->s->raw, op->object, body);
    return rc;
}

/* A DELETE answers with the object when finalizers keep it, else with a Status. */
static bool is_object(struct base_str body, enum contract_kind kind)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new((size_t)1 << 16);
    const struct contract_json *root = NULL;

    return arena && contract_json_parse(&root, arena, body, 1, NULL) == BASE_OK &&
           base_str_eqz(contract_json_str(root, "kind"), contract_kind_name(kind));
}

static void on_answer(void *arg, const struct kube_resp *resp)
{
    struct kubestore_op *op = arg;
    struct store_resp r = {0};
    bool write = is_write(op->op);
    int rc;

    op->call = NULL;
    kubestore_heard(op->s, resp);
    kubestore_classify(&r, write, resp);
    if (r.code == BASE_OK && (op->op != STORE_DELETE || is_object(resp->body, op->kind))) {
        rc = take_object(op, resp->body, &r.err);
        if (rc) {
            r.code = write ? BASE_EUNKNOWN : BASE_EIO;
            r.err.code = r.code;
        } else {
            r.objects = op->object;
            r.n_objects = 1;
            look_at_version(op, op->object->u.meta.rv);
        }
    }
    op_done(op, &r);
}

/* The PUT proper, on top of `raw`. On failure the operation has ended. */
static void put(struct kubestore_op *op, struct base_str raw)
{
    struct base_err err = {0};
    int rc;

    base_buf_reset(&op->body);
    rc = contract_encode(&op->body, op->object, raw, &err);
    if (!rc)
        rc = op_send(op, "PUT", op->path, on_answer, &err);
    if (rc) /* nothing was sent */
        op_fail(op, rc == BASE_EINVAL ? BASE_EINVAL : BASE_EAGAIN, 0, "", &err);
}

/* The raw object that a PUT needs was read first. */
static void on_base(void *arg, const struct kube_resp *resp)
{
    struct kubestore_op *op = arg;
    struct kubestore *s = op->s;
    struct contract_object *got;
    struct store_resp r = {0};
    struct base_err err = {0};

    op->call = NULL;
    kubestore_heard(op->s, resp);
    kubestore_classify(&r, false, resp);
    if (r.code != BASE_OK) {
        if (s->unguarded && r.code == BASE_ENOTFOUND) {
            put(op, (struct base_str){"", 0}); /* the server's own answer is wanted */
            return;
        }
        /* the PUT was never sent: it did not land */
        if (r.code != BASE_ENOTFOUND && r.code != BASE_EDENIED && r.code != BASE_EINVAL)
            r.code = BASE_EAGAIN;
        (void)base_err_wrap(&r.err, "reading %s before writing it", op->object->u.meta.name);
        r.sent = 0;
        r.err.code = r.code;
        op_done(op, &r);
        return;
    }
    got = base_calloc(1, sizeof *got);
    if (!got || contract_decode(got, op->kind, resp->body, &err)) {
        if (!got)
            (void)base_err_set(&err, BASE_ENOMEM, "no memory");
        base_free(got);
        op_fail(op, BASE_EAGAIN, resp->http_status, "", &err);
        return;
    }
    if (s->unguarded || (base_uuid_eq(&got->u.meta.uid, &op->object->u.meta.uid) &&
                         strcmp(got->u.meta.rv, op->object->u.meta.rv) == 0)) {
        base_free(got);
        put(op, resp->body);
        return;
    }
    (void)base_err_set(
        &err, BASE_ECONFLICT,
        "%s %.200s: resourceVersion is %s, not %s; read it again (found before the write was sent)",
        contract_kind_name(op->kind), got->u.meta.name, got->u.meta.rv, op->object->u.meta.rv);
    kubestore_raw_put(s->raw, got, resp->body);
    base_free(got);
    op_fail(op, BASE_ECONFLICT, 409, "Conflict", &err);
}

static int start_update(struct kubestore_op *op, struct base_err *err)
{
    const struct contract_meta *m = &op->object->u.meta;
    struct base_str raw = kubestore_raw_get(op->s->raw, op->kind, m->name, &m->uid, m->rv);
    char path[KUBESTORE_PATH_SIZE];
    int rc;

    if (raw.len) {
        rc = contract_encode(&op->body, op->object, raw, err);
        return rc ? rc : op_send(op, "PUT", op->path, on_answer, err);
    }
    if (!kubestore_path(path, sizeof path, op->s->ns, op->kind, m->name, false))
        return base_err_set(err, BASE_EINVAL, "the name is too long");
    return op_send(op, "GET", path, on_base, err);
}

static int start_delete(struct kubestore_op *op, const struct store_req *req, struct base_err *err)
{
    char uid[BASE_UUID_SIZE];

    base_uuid_text(uid, &req->uid);
    (void)base_buf_addz(&op->body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{");
    if (!base_uuid_is_zero(&req->uid))
        (void)base_buf_addf(&op->body, "\"uid\":\"%s\"%s", uid, req->rv[0] ? "," : "");
    if (req->rv[0]) {
        (void)base_buf_addz(&op->body, "\"resourceVersion\":");
        contract_json_quote(&op->body, base_str_of(req->rv));
    }
    (void)base_buf_addz(&op->body, "}}");
    if (op->body.failed)
        return base_err_set(err, op->body.failed, "no memory");
    return op_send(op, "DELETE", op->path, on_answer, err);
}

/* ---- LIST ---- */
static bool list_begin(void *arg, const char *rv, base_time sent)
{
    struct kubestore_op *op = arg;

    op->n_rows = 0;
    op->list_sent = sent;
    (void)base_copy(op->list_rv, sizeof op->list_rv, rv);
    return true;
}

static void on_list(void *arg, int code, const struct kube_resp *resp, const struct base_err *err);

static bool list_row(void *arg, struct base_str text)
{
    struct kubestore_op *op = arg;
    int rc = BASE_OK;

    if (op->n_rows == ROWS_MAX)
        rc = base_err_set(&op->row_err, BASE_EFULL, "%s: more than %d rows; select some",
                          contract_kind_plural(op->kind), ROWS_MAX);
    if (!rc && op->n_rows == op->cap_rows) {
        size_t cap = op->cap_rows ? 2 * op->cap_rows : 16;
        void *p = base_realloc(op->rows, cap * sizeof *op->rows);

        if (!p) {
            rc = base_err_set(&op->row_err, BASE_ENOMEM, "%s: no memory for %zu rows",
                              contract_kind_plural(op->kind), cap);
        } else {
            op->rows = p;
            op->cap_rows = cap;
        }
    }
    if (!rc)
        rc = contract_decode(&op->rows[op->n_rows], op->kind, text, &op->row_err);
    if (!rc) {
        op->n_rows++;
        return true;
    }
    on_list(op, BASE_EIO, NULL, &op->row_err);
    return false;
}

static void on_list(void *arg, int code, const struct kube_resp *resp, const struct base_err *err)
{
    struct kubestore_op *op = arg;
    struct store_resp r = {.code = code, .sent = op->list_sent};

    if (code == BASE_OK) {
        r.http_status = 200;
        r.objects = op->rows;
        r.n_objects = op->n_rows;
        memcpy(r.list_rv, op->list_rv, sizeof r.list_rv);
        look_at_version(op, op->list_rv);
    } else {
        r.err = *err;
        if (resp) {
            r.http_status = resp->http_status;
            (void)base_copy(r.reason, sizeof r.reason, resp->reason);
        }
        if (code == BASE_ENOMEM || code == BASE_EPROTO || code == BASE_EFULL)
            r.code = BASE_EIO;
        r.err.code = r.code;
    }
    op_done(op, &r);
}

static int start_list(struct kubestore_op *op, const struct store_req *req, struct base_err *err)
{
    static const struct kubestore_pager_fns fns = {list_begin, list_row, on_list};
    char selector[512];
    int rc = store_selector_query(selector, sizeof selector, op->kind, &req->selector, err);

    return rc ? rc
              : kubestore_pager_new(&op->pager, op->s->client, op->s->ns, op->kind, selector, op->lane,
                                    op->deadline, op->audit_id, &fns, op, err);
}

/* ---- submit ---- */
static int check(const struct kubestore *s, const struct store_req *req, struct base_err *err)
{
    bool object = req->op == STORE_CREATE || req->op == STORE_UPDATE || req->op == STORE_UPDATE_STATUS;
    const struct contract_meta *m = object && req->object ? &req->object->u.meta : NULL;
    const char *name = m ? m->name : req->name;

    if (!contract_kind_name(req->kind)[0])
        return base_err_set(err, BASE_EINVAL, "kind %d is no kind of the contract", (int)req->kind);
    if (object && (!req->object || req->object->kind != req->kind))
        return base_err_set(err, BASE_EINVAL, "a write of a %s needs such an object",
                            contract_kind_name(req->kind));
    if (req->op != STORE_LIST && !s->unguarded &&
        !base_is_subdomain(base_str_of(name), CONTRACT_NAME_SIZE - 1))
        return base_err_set(err, BASE_EINVAL, "name \"%.80s\" is no DNS subdomain", name);
    if (s->unguarded)
        return BASE_OK;
    if ((req->op == STORE_UPDATE || req->op == STORE_UPDATE_STATUS) &&
        (base_uuid_is_zero(&m->uid) || !m->rv[0]))
        return base_err_set(
            err, BASE_EINVAL,
            "%s %.200s: a write needs the uid and resourceVersion of the object it was decided on",
            contract_kind_name(req->kind), name);
    if (req->op == STORE_DELETE && (base_uuid_is_zero(&req->uid) || !req->rv[0]))
        return base_err_set(err, BASE_EINVAL,
                            "%s %.200s: a deletion needs the preconditions uid and resourceVersion",
                            contract_kind_name(req->kind), name);
    return BASE_OK;
}

static int start(struct kubestore_op *op, const struct store_req *req, struct base_err *err)
{
    bool put = req->op == STORE_UPDATE || req->op == STORE_UPDATE_STATUS;
    const char *name = put                                               ? req->object->u.meta.name
                       : req->op == STORE_GET || req->op == STORE_DELETE ? req->name
                                                                         : NULL;
    size_t n;
    int rc;

    if (!kubestore_path(op->path, sizeof op->path, op->s->ns, op->kind, name, req->op == STORE_UPDATE_STATUS))
        return base_err_set(err, BASE_EINVAL, "the name is too long");
    n = strlen(op->path);
    if ((put || req->op == STORE_CREATE) &&
        !base_fmt(op->path + n, sizeof op->path - n, "?fieldValidation=Strict"))
        return base_err_set(err, BASE_EINVAL, "the name is too long");
    switch (req->op) {
    case STORE_GET:
        return op_send(op, "GET", op->path, on_answer, err);
    case STORE_LIST:
        return start_list(op, req, err);
    case STORE_CREATE:
        rc = contract_encode(&op->body, op->object, (struct base_str){"", 0}, err);
        return rc ? rc : op_send(op, "POST", op->path, on_answer, err);
    case STORE_UPDATE:
    case STORE_UPDATE_STATUS:
        return start_update(op, err);
    case STORE_DELETE:
        return start_delete(op, req, err);
    }
    return base_err_set(err, BASE_EINVAL, "operation %d is unknown", (int)req->op);
}

int kubestore_submit(struct kubestore *s, const struct store_req *req, kubestore_done done, void *arg,
                     struct base_err *err)
{
    struct kubestore_op *op;
    int rc = check(s, req, err);

    if (rc)
        return rc;
    if (s->n_ops >= OPS_MAX)
        return base_err_set(err, BASE_EFULL, "more than %d requests are in flight; wait for answers",
                            OPS_MAX);
    op = base_calloc(1, sizeof *op);
    if (!op)
        return base_err_set(err, BASE_ENOMEM, "no memory for a request");
    base_buf_init(&op->body, KUBESTORE_BODY_MAX);
    op->s = s;
    op->done = done;
    op->arg = arg;
    op->id = req->id;
    op->history = s->history;
    memcpy(op->floor, s->seen[req->kind], sizeof op->floor);
    if (req->object)
        (void)base_copy(op->rv, sizeof op->rv, req->object->u.meta.rv);
    op->op = req->op;
    op->kind = req->kind;
    op->lane = req->renewal ? KUBE_LANE_RENEW : KUBE_LANE_DEFAULT;
    op->deadline = base_time_add(loop_clock(), req->timeout > 0 ? req->timeout : KUBESTORE_TIMEOUT);
    if (!base_correlation_is_zero(&req->correlation))
        base_correlation_text(op->audit_id, &req->correlation);
    op->object = base_calloc(1, sizeof *op->object);
    rc = op->object ? BASE_OK : base_err_set(err, BASE_ENOMEM, "no memory for a request");
    if (!rc && req->object)
        *op->object = *req->object;
    if (!rc)
        rc = start(op, req, err);
    if (rc) {
        op_release(op);
        return rc == BASE_ETIMEDOUT ? BASE_EINVAL : rc;
    }
    op->next = s->ops;
    if (s->ops)
        s->ops->prev = op;
    s->ops = op;
    s->n_ops++;
    return BASE_OK;
}
