/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "base/mem.h"

#define ASK_TIMEOUT (5 * BASE_SEC)
#define SCAN_TIMEOUT (20 * BASE_SEC)

static const enum contract_kind kinds[FND_COLL_N] = {
    [FND_HELD] = CONTRACT_CLAIM,         [FND_PREVIOUS] = CONTRACT_CLAIM,
    [FND_INSTANCES] = CONTRACT_INSTANCE, [FND_ATTACHMENTS] = CONTRACT_ATTACHMENT,
    [FND_SERVICES] = CONTRACT_SERVICE,
};

/* ---- requests ---- */
static void answered(void *arg, const struct store_resp *resp)
{
    struct driver *d = arg;
    struct fnd_in in = {
        .ev = FND_EV_ANSWER,
        .id = resp->id,
        .code = resp->code,
        .sent = resp->sent,
        .object = resp->code == BASE_OK && resp->n_objects ? &resp->objects[0] : NULL,
    };

    if (resp->code != BASE_OK)
        loop_log(d->log, resp->code == BASE_EDENIED || resp->code == BASE_EINVAL ? LOOP_ERROR : LOOP_DEBUG,
                 "foundation_answer", resp->err.msg, LOG_INT("id", resp->id),
                 LOG_STR("code", base_code_name(resp->code)), LOG_INT("status", resp->http_status),
                 LOG_STR("reason", resp->reason));
    driver_step(d, &in);
}

void driver_store_ask(struct driver *d, const struct fnd_fx *fx)
{
    struct store_req req = {
        .id = fx->id,
        .op = fx->kind == FND_FX_GET      ? STORE_GET
              : fx->kind == FND_FX_STATUS ? STORE_UPDATE_STATUS
                                          : STORE_UPDATE,
        .kind = fx->obj_kind,
        .timeout = ASK_TIMEOUT,
    };
    struct base_err err;
    int r;

    base_copy(req.name, sizeof req.name, fx->name);
    if (fx->kind != FND_FX_GET) {
        req.object = &d->out->objects[fx->object];
        if (fx->obj_kind == CONTRACT_CLAIM)
            req.correlation = req.object->u.claim.spec.correlation;
    }
    r = kubestore_submit(d->store, &req, answered, d, &err);
    if (r) /* not sent: as if the server had said "later" */
        driver_queue(d, &(struct driver_queued){
                            .ev = FND_EV_ANSWER, .id = fx->id, .code = r == BASE_EINVAL ? r : BASE_EAGAIN});
}

static void scanned(void *arg, const struct store_resp *resp)
{
    struct driver *d = arg;
    struct fnd_in in = {.ev = FND_EV_SCAN_END, .ok = resp->code == BASE_OK};

    for (size_t i = 0; resp->code == BASE_OK && i < resp->n_objects; i++) {
        struct fnd_in o = {.ev = FND_EV_SCANNED, .object = &resp->objects[i]};

        driver_step(d, &o);
    }
    driver_step(d, &in);
}

void driver_store_scan(struct driver *d)
{
    struct store_req req = {.op = STORE_LIST, .kind = CONTRACT_CLAIM, .timeout = SCAN_TIMEOUT};
    struct base_err err;

    if (kubestore_submit(d->store, &req, scanned, d, &err)) {
        loop_log(d->log, LOOP_WARN, "foundation_scan", err.msg, LOG_END);
        driver_queue(d, &(struct driver_queued){.ev = FND_EV_SCAN_END, .ok = false});
    }
}

/* ---- watches ---- */
static void note(void *arg, const struct kubestore_note *n)
{
    struct driver_watch *w = arg;
    struct fnd_in in = {.coll = w->coll, .id = n->proof_id, .t0 = n->t0};
    struct contract_object gone;

    switch (n->what) {
    case KUBESTORE_EVENT:
        in.ev = FND_EV_ROW;
        in.left = n->ev->type == STORE_DELETED;
        in.object = &n->ev->object;
        break;
    case KUBESTORE_RELIST:
        in.ev = FND_EV_RELIST;
        in.version = n->version;
        break;
    case KUBESTORE_REGRESSED:
        in.ev = FND_EV_REGRESSED;
        break;
    case KUBESTORE_LISTED:
        in.ev = FND_EV_LISTED;
        loop_log(w->d->log, LOOP_DEBUG, "foundation_listed", "collection listed",
                 LOG_INT("collection", w->coll), LOG_STR("version", n->version));
        break;
    case KUBESTORE_PROVED:
        in.ev = FND_EV_PROVED;
        break;
    case KUBESTORE_NOT_PROVED:
        in.ev = FND_EV_NOT_PROVED;
        loop_log(w->d->log, LOOP_WARN, "foundation_proof", "a collection proof failed, deadlines run on",
                 LOG_INT("collection", w->coll), LOG_STR("err", n->err ? n->err->msg : ""));
        break;
    case KUBESTORE_BAD_OBJECT:
        /* It counts as absent: whatever rests on it shuts. */
        loop_log(w->d->log, LOOP_ERROR, "foundation_bad_object",
                 n->err ? n->err->msg : "an object cannot be read", LOG_STR("name", n->name ? n->name : ""));
        memset(&gone, 0, sizeof gone);
        gone.kind = kinds[w->coll];
        if (!n->name || base_copy(gone.u.meta.name, sizeof gone.u.meta.name, n->name))
            return;
        if (n->version)
            base_copy(gone.u.meta.rv, sizeof gone.u.meta.rv, n->version);
        in.ev = FND_EV_ROW;
        in.left = true;
        in.object = &gone;
        break;
    }
    driver_step(w->d, &in);
}

void driver_store_prove(struct driver *d, const struct fnd_fx *fx)
{
    kubestore_watch_prove(d->watches[fx->coll].w, fx->id, fx->timeout);
}

int driver_store_start(struct driver *d, struct base_err *err)
{
    for (unsigned i = 0; i < FND_COLL_N; i++) {
        struct driver_watch *w = &d->watches[i];
        struct store_selector sel = {0};
        int r;

        w->d = d;
        w->coll = (enum fnd_coll)i;
        if (w->coll == FND_HELD || w->coll == FND_INSTANCES)
            base_copy(sel.node, sizeof sel.node, d->opt->node);
        if (w->coll == FND_PREVIOUS)
            base_copy(sel.previous_node, sizeof sel.previous_node, d->opt->node);
        r = kubestore_watch_new(&w->w, d->store, kinds[i], &sel, note, w, err);
        if (r)
            return r;
    }
    return BASE_OK;
}

void driver_store_stop(struct driver *d)
{
    for (unsigned i = 0; i < FND_COLL_N; i++)
        d->watches[i].w = kubestore_watch_free(d->watches[i].w);
}
