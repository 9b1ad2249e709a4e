/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the table: each step on the twin and on the server, then compares the answer and what is stored
 * afterwards.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "contract/test_samples.h"
#include "twin.h"

bool side_get(struct rig *r, struct side *s, enum contract_kind kind, const char *name,
              struct contract_object *ret);

void report(struct rig *r, bool ok, const char *name, const char *fmt, ...)
{
    va_list ap;

    if (ok) {
        r->passed++;
        if (getenv("TWIN_VERBOSE"))
            (void)printf("PASS %s\n", name);
        return;
    }
    r->failed++;
    (void)printf("FAIL %s: ", name);
    va_start(ap, fmt);
    (void)vprintf(fmt, ap);
    va_end(ap);
    (void)printf("\n");
    (void)fflush(stdout);
}

static void twin_do(struct rig *r, enum who who, const struct store_req *req, struct answer *ret)
{
    struct store_resp resp;

    *ret = (struct answer){0};
    if (store_twin_do(r->twin, &r->identity[who], r->now, req, &resp))
        abort();
    ret->code = resp.code;
    ret->http = resp.http_status;
    (void)base_copy(ret->reason, sizeof ret->reason, resp.reason);
    (void)base_copy(ret->text, sizeof ret->text, resp.err.msg);
    ret->n = resp.n_objects;
    if (ret->n) {
        ret->objects = calloc(ret->n, sizeof *ret->objects);
        if (!ret->objects)
            abort();
        memcpy(ret->objects, resp.objects, ret->n * sizeof *ret->objects);
    }
}

static void side_do(struct rig *r, struct side *s, enum who who, const struct store_req *req,
                    struct answer *ret)
{
    if (s == &r->mem)
        twin_do(r, who, req, ret);
    else
        real_do(r, who, req, ret);
}

bool side_get(struct rig *r, struct side *s, enum contract_kind kind, const char *name,
              struct contract_object *ret)
{
    struct store_req req = {.op = STORE_GET, .kind = kind};
    struct answer a;
    bool found;

    (void)base_copy(req.name, sizeof req.name, name);
    side_do(r, s, ADMIN, &req, &a);
    found = a.code == BASE_OK && a.n == 1;
    if (found)
        *ret = a.objects[0];
    else
        *ret = (struct contract_object){.kind = kind};
    answer_clear(&a);
    return found;
}

/* ---- normal form ---- */
static struct base_uuid normal_uid(struct side *s, struct base_uuid u, bool learn)
{
    for (size_t i = 0; i < s->n_uids; i++)
        if (base_uuid_eq(&s->uid[i], &u))
            return sample_uuid(0x1000 + (unsigned)i);
    if (!learn || base_uuid_is_zero(&u) || s->n_uids == UIDS_MAX)
        return u;
    s->uid[s->n_uids++] = u;
    return sample_uuid(0x1000 + (unsigned)s->n_uids - 1);
}

void normalize(struct side *s, struct contract_object *o)
{
    o->u.meta.uid = normal_uid(s, o->u.meta.uid, true);
    o->u.meta.rv[0] = '\0';
    o->u.meta.created = o->u.meta.created != 0;
    o->u.meta.deleting = o->u.meta.deleting != 0;
    if (o->kind == CONTRACT_CLAIM)
        o->u.claim.spec.service.uid = normal_uid(s, o->u.claim.spec.service.uid, false);
    if (o->kind == CONTRACT_ATTACHMENT)
        o->u.attachment.spec.instance.uid = normal_uid(s, o->u.attachment.spec.instance.uid, false);
}

const char *differs(const struct contract_object *a, const struct contract_object *b)
{
    const struct contract_meta *x = &a->u.meta, *y = &b->u.meta;

    if (a->kind != b->kind || strcmp(x->name, y->name) != 0)
        return "name";
    if (!base_uuid_eq(&x->uid, &y->uid))
        return "metadata.uid";
    if (x->generation != y->generation)
        return "metadata.generation";
    if (x->created != y->created)
        return "metadata.creationTimestamp";
    if (x->deleting != y->deleting)
        return "metadata.deletionTimestamp";
    if (x->drain != y->drain)
        return "the drain annotation";
    if (x->n_finalizers != y->n_finalizers || memcmp(x->finalizers, y->finalizers, sizeof x->finalizers) != 0)
        return "metadata.finalizers";
    if (!contract_spec_equal(a, b))
        return contract_status_equal(a, b) ? "spec" : "spec or status";
    return contract_status_equal(a, b) ? NULL : "status";
}

/* ---- one step ---- */
struct outcome {
    struct contract_object object; /* as it was sent */
    struct answer answer;
    struct contract_object before, after;
    bool was, is; /* stored before, after */
};

static void build(struct rig *r, struct side *s, const struct step *st, struct outcome *out,
                  struct store_req *req)
{
    const char *key = st->key;

    *req = (struct store_req){.op = st->op, .kind = st->kind, .selector = st->sel, .object = &out->object};
    out->object = (struct contract_object){.kind = st->kind};
    (void)base_copy(out->object.u.meta.name, sizeof out->object.u.meta.name, key);
    if (*key && side_get(r, s, st->kind, key, &out->before))
        out->object = out->before;
    else
        (void)base_copy(out->object.u.meta.name, sizeof out->object.u.meta.name, key);
    st->edit(r, s, &out->object);
    key = out->object.u.meta.name;
    if (st->op == STORE_LIST)
        return;
    out->was = side_get(r, s, st->kind, key, &out->before);
    (void)base_copy(req->name, sizeof req->name, key);
    req->uid = out->object.u.meta.uid;
    (void)base_copy(req->rv, sizeof req->rv, out->object.u.meta.rv);
    req->correlation = (struct base_correlation){{0x42, 1}};
}

/* Asks the server with dryRun until it answers as the table says: its policies read other objects from
 * caches. */
static bool settle(struct rig *r, const struct step *st, const struct outcome *out)
{
    struct base_buf body;
    struct kube_req req = {.method = st->op == STORE_CREATE ? "POST" : "PUT"};
    char path[512];
    base_time end = loop_clock() + 15 * BASE_SEC;
    int http = 0;

    base_buf_init(&body, 1u << 20);
    if (contract_encode(&body, &out->object, (struct base_str){"", 0}, NULL))
        abort();
    (void)base_fmt(path, sizeof path, "/apis/%s/%s/namespaces/%s/%s%s%s?dryRun=All",
                   contract_kind_group(st->kind), CONTRACT_VERSION, NAMESPACE, contract_kind_plural(st->kind),
                   st->op == STORE_CREATE ? "" : "/", st->op == STORE_CREATE ? "" : out->object.u.meta.name);
    while (http != st->http && loop_clock() < end) {
        http = real_raw(r, st->who, req.method, path, body.data);
        if (http != st->http)
            rig_sleep(r, 50);
    }
    base_buf_fini(&body);
    return http == st->http;
}

static void side_run(struct rig *r, struct side *s, const struct step *st, struct outcome *out)
{
    struct store_req req;

    memset(out, 0, sizeof *out);
    build(r, s, st, out, &req);
    if (s == &r->real && (st->flags & SETTLE) && !settle(r, st, out))
        (void)printf("note: %s: the server did not come to %d within 15 s\n", st->name, st->http);
    side_do(r, s, st->who, &req, &out->answer);
    if (st->op != STORE_LIST)
        out->is = side_get(r, s, st->kind, out->object.u.meta.name, &out->after);
}

static bool moved(const struct outcome *o)
{
    return o->was != o->is || (o->is && strcmp(o->before.u.meta.rv, o->after.u.meta.rv) != 0);
}

static void compare(struct rig *r, const struct step *st, struct outcome *mem, struct outcome *real)
{
    struct answer *a = &mem->answer, *b = &real->answer;
    const char *what = NULL;
    bool moves = moved(mem), real_moves = moved(real);

    if (a->http != st->http || strcmp(a->reason, st->reason) != 0 || b->http != st->http ||
        strcmp(b->reason, st->reason) != 0 || a->code != b->code) {
        report(r, false, st->name, "wanted %d '%s'; twin: %d '%s' %s (%s); server: %d '%s' %s (%s)", st->http,
               st->reason, a->http, a->reason, base_code_name(a->code), a->text, b->http, b->reason,
               base_code_name(b->code), b->text);
        return;
    }
    if (a->n != b->n) {
        report(r, false, st->name, "the twin answers with %zu objects, the server with %zu", a->n, b->n);
        return;
    }
    for (size_t i = 0; i < a->n && !what; i++) {
        normalize(&r->mem, &a->objects[i]);
        normalize(&r->real, &b->objects[i]);
        what = differs(&a->objects[i], &b->objects[i]);
        if (what)
            report(r, false, st->name, "object %zu of the answers (%s): %s differs", i,
                   a->objects[i].u.meta.name, what);
    }
    if (what)
        return;
    if (mem->is != real->is || moves != real_moves) {
        report(r, false, st->name, "stored: twin %d, server %d; version moved: twin %d, server %d", mem->is,
               real->is, moves, real_moves);
        return;
    }
    if (mem->is) {
        normalize(&r->mem, &mem->after);
        normalize(&r->real, &real->after);
        what = differs(&mem->after, &real->after);
    }
    report(r, !what, st->name, "%s of the stored object differs", what ? what : "");
}

void table_run(struct rig *r)
{
    struct outcome *mem = calloc(1, sizeof *mem), *real = calloc(1, sizeof *real);
    struct history *history = history_open(r);

    if (!mem || !real)
        abort();
    for (size_t i = 0; i < n_steps; i++) {
        r->now = loop_wall();
        side_run(r, &r->mem, &steps[i], mem);
        side_run(r, &r->real, &steps[i], real);
        compare(r, &steps[i], mem, real);
        answer_clear(&mem->answer);
        answer_clear(&real->answer);
    }
    history_close(r, history);
    free(mem);
    free(real);
}
