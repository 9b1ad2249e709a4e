/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server in memory. The order of the checks is the server's: RBAC 403, not found 404, uid 409,
 * resourceVersion 422 or 409, schema and CEL 422, admission policy 403, and for a creation the name 409 last.
 */
#include "store/store.h"

#include <stddef.h>

#include "base/mem.h"
#include "store/twin_int.h"

#define HISTORY_MAX 2048
#define ROWS_MAX 100000
#define FIRST_RV 1000

struct change {
    uint64_t rv;
    enum contract_kind kind;
    struct store_version *now; /* NULL: deleted */
    struct store_version *was; /* NULL: created */
};
struct store_twin {
    struct store_rows rows[CONTRACT_KIND_N];
    struct change *history; /* ascending rv */
    size_t n_history, cap_history;
    uint64_t rv, compacted; /* watches from before `compacted` get 410 */
    struct base_prng prng;
    struct contract_object *out; /* what the last answer borrows */
    size_t cap_out;
};

/* ---- versions ---- */
static struct store_version *version_ref(struct store_version *v)
{
    if (v)
        v->refs++;
    return v;
}

static void version_unref(struct store_version *v)
{
    if (v && --v->refs == 0)
        base_free(v);
}

static struct store_version *version_new(const struct contract_object *o)
{
    /* the copy fills it */
    struct store_version *v =
        base_realloc(NULL, offsetof(struct store_version, o) + contract_object_size(o->kind));

    if (v) {
        v->refs = 1;
        contract_object_copy(&v->o, o);
    }
    return v;
}

static int grow(void *array, size_t *cap, size_t need, size_t max, size_t size)
{
    void **p = array;
    size_t n = *cap ? *cap : 16;
    void *q;

    if (need <= *cap)
        return BASE_OK;
    if (need > max)
        return BASE_ENOMEM;
    while (n < need)
        n *= 2;
    q = base_realloc(*p, n * size);
    if (!q)
        return BASE_ENOMEM;
    *p = q;
    *cap = n;
    return BASE_OK;
}

static void rv_text(char ret[CONTRACT_RV_SIZE], uint64_t rv)
{
    _Static_assert(CONTRACT_RV_SIZE >= BASE_U64_SIZE, "a resourceVersion of the twin fits");
    base_u64_text(ret, rv);
}

/* ---- the twin itself ---- */
struct store_twin *store_twin_new(uint64_t seed)
{
    struct store_twin *t = base_calloc(1, sizeof *t);

    if (t) {
        t->prng.state = seed;
        t->rv = t->compacted = FIRST_RV;
    }
    return t;
}

static void drop_history(struct store_twin *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        version_unref(t->history[i].now);
        version_unref(t->history[i].was);
    }
    if (n)
        t->compacted = t->history[n - 1].rv;
    t->n_history -= n;
    if (t->n_history)
        memmove(t->history, t->history + n, t->n_history * sizeof *t->history);
}

static void drop_content(struct store_twin *t)
{
    drop_history(t, t->n_history);
    base_free(t->history);
    t->history = NULL;
    t->cap_history = 0;
    for (size_t k = 0; k < CONTRACT_KIND_N; k++) {
        for (size_t i = 0; i < t->rows[k].n; i++)
            version_unref(t->rows[k].v[i]);
        base_free(t->rows[k].v);
        t->rows[k] = (struct store_rows){0};
    }
}

struct store_twin *store_twin_free(struct store_twin *t)
{
    if (!t)
        return NULL;
    drop_content(t);
    base_free(t->out);
    return base_free(t);
}

static bool find(const struct store_rows *rows, const char *name, size_t *ret_at)
{
    size_t lo = 0, hi = rows->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(rows->v[mid]->o.u.meta.name, name);

        if (c == 0) {
            *ret_at = mid;
            return true;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_at = lo;
    return false;
}

void store_twin_rv(const struct store_twin *t, char ret[CONTRACT_RV_SIZE])
{
    rv_text(ret, t->rv);
}

void store_twin_compact(struct store_twin *t)
{
    drop_history(t, t->n_history);
    t->compacted = t->rv;
}

struct store_twin *store_twin_snapshot(const struct store_twin *t)
{
    struct store_twin *s = store_twin_new(0);

    if (!s)
        return NULL;
    s->rv = s->compacted = t->rv;
    for (size_t k = 0; k < CONTRACT_KIND_N; k++) {
        struct store_rows *to = &s->rows[k];

        if (grow(&to->v, &to->cap, t->rows[k].n, ROWS_MAX, sizeof *to->v))
            return store_twin_free(s);
        for (size_t i = 0; i < t->rows[k].n; i++)
            to->v[to->n++] = version_ref(t->rows[k].v[i]);
    }
    return s;
}

void store_twin_bump(struct store_twin *t, uint64_t floor)
{
    drop_history(t, t->n_history);
    t->rv = (t->rv > floor ? t->rv : floor) + 1;
    t->compacted = t->rv;
}

int store_twin_restore(struct store_twin *t, const struct store_twin *snapshot)
{
    struct store_twin *copy = store_twin_snapshot(snapshot);

    if (!copy)
        return BASE_ENOMEM;
    drop_content(t);
    memcpy(t->rows, copy->rows, sizeof t->rows);
    memset(copy->rows, 0, sizeof copy->rows);
    t->rv = t->compacted = copy->rv;
    store_twin_free(copy);
    return BASE_OK;
}

/* ---- answers ---- */
static int refuse(struct store_resp *r, int code, int http, const char *reason, const char *kind,
                  const char *name, const char *text)
{
    r->code = code;
    r->http_status = http;
    (void)base_copy(r->reason, sizeof r->reason, reason);
    (void)base_err_set(&r->err, code, "%s %.200s: %s", kind, name, text);
    r->err.http_status = http;
    return BASE_OK;
}

/* The object of an answer; room was made before. */
static void give(struct store_twin *t, struct store_resp *r, int http, const struct contract_object *o)
{
    r->code = BASE_OK;
    r->http_status = http;
    contract_object_copy(&t->out[0], o);
    r->objects = t->out;
    r->n_objects = 1;
}

/* ---- one write ---- */
/* Puts `next` (NULL: deletion) in the place of row `at` (`exists`: of the row there). Nothing is changed on
 * BASE_ENOMEM. */
static int commit(struct store_twin *t, enum contract_kind kind, size_t at, bool exists,
                  const struct contract_object *next)
{
    struct store_rows *rows = &t->rows[kind];
    struct store_version *v = NULL, *was = exists ? rows->v[at] : NULL;

    if ((t->n_history < HISTORY_MAX &&
         grow(&t->history, &t->cap_history, t->n_history + 1, HISTORY_MAX, sizeof *t->history)) ||
        grow(&rows->v, &rows->cap, rows->n + 1, ROWS_MAX, sizeof *rows->v))
        return BASE_ENOMEM;
    if (next) {
        v = version_new(next);
        if (!v)
            return BASE_ENOMEM;
    }
    if (t->n_history == HISTORY_MAX)
        drop_history(t, HISTORY_MAX / 2);
    t->rv++;
    if (v)
        store_twin_rv(t, v->o.u.meta.rv);
    t->history[t->n_history++] =
        (struct change){t->rv, kind, version_ref(v), was}; /* takes the row's reference */
    if (!exists) {
        memmove(rows->v + at + 1, rows->v + at, (rows->n - at) * sizeof *rows->v);
        rows->n++;
        rows->v[at] = v;
    } else if (v) {
        rows->v[at] = v;
    } else {
        rows->n--;
        memmove(rows->v + at, rows->v + at + 1, (rows->n - at) * sizeof *rows->v);
    }
    return BASE_OK;
}

static base_wall whole_second(base_wall wall)
{
    wall -= wall % 1000000;
    return wall ? wall : 1;
}

static bool finalizers_equal(const struct contract_meta *a, const struct contract_meta *b)
{
    return a->n_finalizers == b->n_finalizers &&
           memcmp(a->finalizers, b->finalizers, sizeof a->finalizers) == 0;
}

/* What of a request's metadata is stored: name, finalizers and the drain annotation. */
static void take_meta(struct contract_meta *to, const struct contract_meta *from)
{
    to->n_finalizers = from->n_finalizers;
    for (unsigned i = 0; i < CONTRACT_FINALIZERS_MAX; i++) {
        memset(to->finalizers[i], 0, sizeof to->finalizers[i]);
        if (i < from->n_finalizers)
            (void)base_copy(to->finalizers[i], sizeof to->finalizers[i], from->finalizers[i]);
    }
    to->drain = from->drain;
}

static int create(struct store_twin *t, const struct store_write *w, const struct store_req *req,
                  struct store_resp *r)
{
    enum contract_kind kind = req->kind;
    const char *name = req->object->u.meta.name, *policy;
    struct contract_object *next = &t->out[1];
    struct store_write write = *w;
    struct base_err err;
    uint8_t random[16];
    size_t at;
    int rc;

    contract_object_copy(next, req->object);
    next->u.meta = (struct contract_meta){.generation = 1, .created = whole_second(w->wall)};
    (void)base_copy(next->u.meta.name, sizeof next->u.meta.name, name);
    take_meta(&next->u.meta, &req->object->u.meta);
    contract_copy_status(next, NULL);
    if (!base_is_subdomain(base_str_of(name), CONTRACT_NAME_SIZE - 1))
        return refuse(r, BASE_EINVAL, 422, "Invalid", contract_kind_name(kind), name,
                      "metadata.name: is no DNS subdomain");
    if (contract_validate(next, NULL, &err))
        return refuse(r, BASE_EINVAL, 422, "Invalid", contract_kind_name(kind), name, err.msg);
    write.next = next;
    policy = store_policy(&write);
    if (policy)
        return refuse(r, BASE_EDENIED, 403, "Forbidden", contract_kind_name(kind), name, policy);
    if (req->object->u.meta.rv[0])
        return refuse(r, BASE_EUNKNOWN, 500, "", contract_kind_name(kind), name,
                      "resourceVersion should not be set on objects to be created");
    if (find(&t->rows[kind], name, &at))
        return refuse(r, BASE_EEXIST, 409, "AlreadyExists", contract_kind_name(kind), name, "exists already");
    for (size_t i = 0; i < sizeof random; i += 8) {
        uint64_t x = base_prng_next(&t->prng);

        memcpy(random + i, &x, 8);
    }
    next->u.meta.uid = base_uuid_v4(random);
    rc = commit(t, kind, at, false, next);
    if (rc)
        return rc;
    give(t, r, 201, &t->rows[kind].v[at]->o);
    return BASE_OK;
}

/* 0, or the HTTP status of a resourceVersion that does not fit. */
static int check_rv(const char *rv, const char *stored)
{
    int cmp;

    if (!rv[0] || strcmp(rv, "0") == 0)
        return 422;
    if (base_rv_cmp(rv, stored, &cmp))
        return 500;
    return cmp ? 409 : 0;
}

static bool adds_finalizers(const struct contract_meta *next, const struct contract_meta *old)
{
    for (unsigned i = 0; i < next->n_finalizers && i < CONTRACT_FINALIZERS_MAX; i++)
        if (!contract_has_finalizer(old, next->finalizers[i]))
            return true;
    return false;
}

static void merge(struct contract_object *next, const struct store_req *req,
                  const struct contract_object *old)
{
    if (req->op == STORE_UPDATE_STATUS) {
        contract_object_copy(next, old);
        contract_copy_status(next, req->object);
        contract_fill_kept(next, old);
        return;
    }
    contract_object_copy(next, req->object);
    next->u.meta = old->u.meta;
    take_meta(&next->u.meta, &req->object->u.meta);
    contract_copy_status(next, old);
    if (!contract_spec_equal(next, old))
        next->u.meta.generation++;
}

static int update(struct store_twin *t, const struct store_write *w, const struct store_req *req,
                  struct store_resp *r)
{
    enum contract_kind kind = req->kind;
    const struct contract_meta *asked = &req->object->u.meta;
    const char *k = contract_kind_name(kind), *name = asked->name, *policy;
    struct store_write write = *w;
    struct contract_object *next = &t->out[1];
    const struct contract_object *old;
    struct base_err err;
    size_t at;
    int rc;

    if (!find(&t->rows[kind], name, &at))
        return refuse(r, BASE_ENOTFOUND, 404, "NotFound", k, name, "does not exist");
    old = &t->rows[kind].v[at]->o;
    if (!base_uuid_is_zero(&asked->uid) && !base_uuid_eq(&asked->uid, &old->u.meta.uid))
        return refuse(r, BASE_ECONFLICT, 409, "Conflict", k, name,
                      "Precondition failed: UID in precondition differs");
    switch (check_rv(asked->rv, old->u.meta.rv)) {
    case 422:
        return refuse(r, BASE_EINVAL, 422, "Invalid", k, name,
                      "metadata.resourceVersion: must be specified for an update");
    case 500:
        return refuse(r, BASE_EUNKNOWN, 500, "", k, name, "metadata.resourceVersion is no number");
    case 409:
        return refuse(r, BASE_ECONFLICT, 409, "Conflict", k, name,
                      "the object has been modified; read it again");
    default:
        break;
    }
    merge(next, req, old);
    if (old->u.meta.deleting && adds_finalizers(&next->u.meta, &old->u.meta))
        return refuse(r, BASE_EINVAL, 422, "Invalid", k, name,
                      "metadata.finalizers: no new finalizers can be added if the object is being deleted");
    if (contract_validate(next, old, &err))
        return refuse(r, BASE_EINVAL, 422, "Invalid", k, name, err.msg);
    write.next = next;
    write.old = old;
    policy = store_policy(&write);
    if (policy)
        return refuse(r, BASE_EDENIED, 403, "Forbidden", k, name, policy);
    if (contract_spec_equal(next, old) && contract_status_equal(next, old) &&
        next->u.meta.drain == old->u.meta.drain && finalizers_equal(&next->u.meta, &old->u.meta)) {
        give(t, r, 200, old); /* a write that changes nothing keeps the resourceVersion */
        return BASE_OK;
    }
    if (old->u.meta.deleting && next->u.meta.n_finalizers == 0) {
        rc = commit(t, kind, at, true, NULL);
        if (!rc)
            give(t, r, 200, next); /* the object of the request, as the server answers */
        return rc;
    }
    rc = commit(t, kind, at, true, next);
    if (rc)
        return rc;
    give(t, r, 200, &t->rows[kind].v[at]->o);
    return BASE_OK;
}

static int erase(struct store_twin *t, const struct store_write *w, const struct store_req *req,
                 struct store_resp *r)
{
    const char *k = contract_kind_name(req->kind), *policy;
    struct store_write write = *w;
    const struct contract_object *old;
    struct contract_object *next = &t->out[1];
    size_t at;
    int rc;

    if (!find(&t->rows[req->kind], req->name, &at))
        return refuse(r, BASE_ENOTFOUND, 404, "NotFound", k, req->name, "does not exist");
    old = &t->rows[req->kind].v[at]->o;
    if (!base_uuid_is_zero(&req->uid) && !base_uuid_eq(&req->uid, &old->u.meta.uid))
        return refuse(r, BASE_ECONFLICT, 409, "Conflict", k, req->name,
                      "the UID in the precondition differs");
    if (req->rv[0] && strcmp(req->rv, old->u.meta.rv) != 0)
        return refuse(r, BASE_ECONFLICT, 409, "Conflict", k, req->name,
                      "the resourceVersion in the precondition differs");
    write.old = old;
    policy = store_policy(&write);
    if (policy)
        return refuse(r, BASE_EDENIED, 403, "Forbidden", k, req->name, policy);
    if (old->u.meta.n_finalizers == 0) {
        rc = commit(t, req->kind, at, true, NULL);
        r->code = BASE_OK;
        r->http_status = 200;
        return rc;
    }
    if (!old->u.meta.deleting) {
        contract_object_copy(next, old);
        next->u.meta.deleting = whole_second(w->wall);
        next->u.meta.generation++;
        rc = commit(t, req->kind, at, true, next);
        if (rc)
            return rc;
    }
    give(t, r, 200, &t->rows[req->kind].v[at]->o);
    return BASE_OK;
}

/* ---- reads ---- */
static int get(struct store_twin *t, const struct store_req *req, struct store_resp *r)
{
    size_t at;

    if (!find(&t->rows[req->kind], req->name, &at))
        return refuse(r, BASE_ENOTFOUND, 404, "NotFound", contract_kind_name(req->kind), req->name,
                      "does not exist");
    give(t, r, 200, &t->rows[req->kind].v[at]->o);
    return BASE_OK;
}

static int list(struct store_twin *t, const struct store_req *req, struct store_resp *r)
{
    const struct store_rows *rows = &t->rows[req->kind];
    char query[2048];
    struct base_err err;

    if (store_selector_query(query, sizeof query, req->kind, &req->selector, &err))
        return refuse(r, BASE_EINVAL, 400, "BadRequest", contract_kind_name(req->kind), "list", err.msg);
    if (grow(&t->out, &t->cap_out, rows->n + 2, ROWS_MAX, sizeof *t->out))
        return BASE_ENOMEM;
    for (size_t i = 0; i < rows->n; i++)
        if (store_selector_match(&req->selector, &rows->v[i]->o))
            contract_object_copy(&t->out[r->n_objects++], &rows->v[i]->o);
    r->code = BASE_OK;
    r->http_status = 200;
    r->objects = t->out;
    store_twin_rv(t, r->list_rv);
    return BASE_OK;
}

int store_twin_do(struct store_twin *t, const struct store_identity *who, base_wall wall,
                  const struct store_req *req, struct store_resp *r)
{
    bool writes = req->op == STORE_CREATE || req->op == STORE_UPDATE || req->op == STORE_UPDATE_STATUS;
    struct store_write w = {.who = who, .op = req->op, .wall = wall, .services = &t->rows[CONTRACT_SERVICE]};
    const char *name = writes && req->object ? req->object->u.meta.name : req->name;

    *r = (struct store_resp){.id = req->id};
    if (!contract_kind_name(req->kind)[0] || (writes && (!req->object || req->object->kind != req->kind)))
        return refuse(r, BASE_EINVAL, 400, "BadRequest", "request", name,
                      "kind and object do not fit together");
    if (!store_rbac_allows(who, req->op, req->kind))
        return refuse(r, BASE_EDENIED, 403, "Forbidden", contract_kind_name(req->kind), name,
                      "the role does not allow this");
    if (grow(&t->out, &t->cap_out, 2, ROWS_MAX, sizeof *t->out))
        return BASE_ENOMEM;
    switch (req->op) {
    case STORE_GET:
        return get(t, req, r);
    case STORE_LIST:
        return list(t, req, r);
    case STORE_CREATE:
        return create(t, &w, req, r);
    case STORE_UPDATE:
    case STORE_UPDATE_STATUS:
        return update(t, &w, req, r);
    case STORE_DELETE:
        return erase(t, &w, req, r);
    }
    return refuse(r, BASE_EINVAL, 400, "BadRequest", "request", name, "unknown operation");
}

/* ---- watch ---- */
/* One change as a watcher with `sel` sees it; NULL: not at all. */
static const struct contract_object *seen(const struct change *c, const struct store_selector *sel,
                                          enum store_event_type *ret_type)
{
    bool now = c->now && store_selector_match(sel, &c->now->o),
         was = c->was && store_selector_match(sel, &c->was->o);

    if (!now && !was)
        return NULL;
    *ret_type = now ? (was ? STORE_MODIFIED : STORE_ADDED) : STORE_DELETED;
    return now ? &c->now->o : &c->was->o;
}

int store_twin_change(struct store_twin *t, enum contract_kind kind, const struct store_selector *sel,
                      uint64_t *version, enum store_event_type *ret_type,
                      const struct contract_object **ret_object)
{
    size_t lo = 0, hi = t->n_history;

    if (*version < t->compacted)
        return BASE_EGONE;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (t->history[mid].rv <= *version)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < t->n_history; lo++) {
        if (t->history[lo].kind != kind)
            continue;
        *ret_object = seen(&t->history[lo], sel, ret_type);
        if (!*ret_object)
            continue;
        *version = t->history[lo].rv;
        return BASE_OK;
    }
    if (*version < t->rv) /* a version of the future stays where it is: 200 and silence */
        *version = t->rv;
    return BASE_EAGAIN;
}

int store_twin_watch(struct store_twin *t, enum contract_kind kind, const struct store_selector *sel,
                     const char *rv, struct store_event *ret_event, char ret_rv[CONTRACT_RV_SIZE])
{
    const struct contract_object *o;
    uint64_t version;
    int rc;

    if (base_parse_u64(base_str_of(rv), UINT64_MAX, &version))
        return BASE_EGONE;
    rc = store_twin_change(t, kind, sel, &version, &ret_event->type, &o);
    if (rc == BASE_EGONE)
        return rc;
    rv_text(ret_rv, version);
    if (rc == BASE_OK) {
        contract_object_copy(&ret_event->object, o);
        if (ret_event->type == STORE_DELETED)
            rv_text(ret_event->object.u.meta.rv, version);
    }
    return rc;
}
