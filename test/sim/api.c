/* SPDX-License-Identifier: Apache-2.0
 *
 * The API servers: requests with everything that can happen to them on their way, and what the watch caches
 * show when. The twin is etcd and the rules; a front end is a cache in front of it that may stand still.
 */
#include "sim.h"

#include <stdlib.h>

#define ONE_WAY (700 * BASE_US)
#define JITTER (1600 * BASE_US)

/* ---- randomness of one process: what happens to it does not depend on what the others do ---- */
uint64_t sim_draw(struct sim_proc *p, uint64_t n)
{
    struct base_prng g = {p->prng};
    uint64_t v = base_prng_below(&g, n);

    p->prng = g.state;
    return v;
}

bool sim_chance(struct sim_proc *p, uint32_t per_million)
{
    return per_million > 0 && sim_draw(p, 1000000) < per_million;
}

base_time sim_delay(struct sim_world *w, struct sim_proc *p)
{
    base_time d = ONE_WAY + (base_time)sim_draw(p, JITTER);

    if (w->now < p->link.slow_until)
        d += (base_time)sim_draw(p, (uint64_t)p->link.slow_by);
    return d;
}

bool sim_link_up(const struct sim_world *w, const struct sim_proc *p)
{
    return w->now >= p->link.up_until && w->now >= p->link.down_until && w->now >= w->front_down[p->front];
}

/* ---- what happens to a request ---- */
static uint32_t rate(const struct sim_world *w, enum sim_fault f)
{
    return w->healed ? 0 : w->plan->rate[f];
}

static bool falls(struct sim_world *w, struct sim_proc *p, enum sim_fault f)
{
    if (!sim_chance(p, rate(w, f)))
        return false;
    sim_fired(w, f);
    return true;
}

static void post_req(struct sim_world *w, base_time at, enum sim_ev kind, const struct sim_proc *p,
                     struct sim_req *r)
{
    r->refs++;
    sim_post(w, at, kind, p)->req = r;
}

/* Takes over the caller's reference. The answer is the driver's: within `timeout`, or never. */
void sim_api_send(struct sim_world *w, struct sim_proc *p, struct sim_req *r, base_time timeout)
{
    bool writes = r->op != STORE_GET && r->op != STORE_LIST;
    base_time there = sim_delay(w, p);

    r->proc = p->index;
    r->serial = p->serial;
    r->node = p->node;
    r->type = p->type;
    r->sent = sim_node_now(w, p->node);
    r->order = ++w->orders;
    r->floor = p->seen[r->kind];
    r->history = p->history;
    if (r->object)
        (void)base_parse_u64(base_str_of(r->object->u.meta.rv), UINT64_MAX, &r->based_on);
    sim_saw_request(w, p, r);
    if (p->type == SIM_AGENT && r->what == SIM_FOR_CORE && falls(w, p, SIM_F_NEVER)) {
        /* neither answer nor time-out; it may be applied all the same */
        r->answered = true;
        if (sim_draw(p, 2))
            post_req(w, w->now + there, SIM_EV_ARRIVE, p, r);
        sim_req_drop(w, r);
        return;
    }
    post_req(w, w->now + timeout, SIM_EV_TIMEOUT, p, r);
    if (falls(w, p, SIM_F_REQ_LOST)) {
        sim_req_drop(w, r);
        return;
    }
    if (writes && falls(w, p, SIM_F_LATE_APPLY)) {
        r->lost_answer = true;
        there = timeout + (base_time)sim_draw(p, 40 * BASE_SEC);
    } else if (falls(w, p, SIM_F_SLOW)) {
        there += (base_time)sim_draw(p, (uint64_t)timeout);
    }
    if (falls(w, p, SIM_F_ANS_LOST))
        r->lost_answer = true;
    if (w->now < p->link.up_until || w->now < w->front_down[p->front]) {
        sim_req_drop(w, r); /* into the void; the connection is closed at the time-out */
        return;
    }
    post_req(w, w->now + there, SIM_EV_ARRIVE, p, r);
    if (falls(w, p, SIM_F_DUP_REQ))
        post_req(w, w->now + there + sim_delay(w, p), SIM_EV_ARRIVE, p, r);
    sim_req_drop(w, r);
}

static void answer(struct sim_world *w, struct sim_proc *p, struct sim_req *r, const struct store_resp *resp)
{
    base_time back = sim_delay(w, p);

    if (r->answered || r->lost_answer || w->now < p->link.down_until)
        return;
    if (falls(w, p, SIM_F_SLOW))
        back += (base_time)sim_draw(p, 5 * BASE_SEC);
    if (r->objects || r->code) /* a duplicate: the first answer is on its way */
        return;
    r->code = resp->code;
    if (resp->list_rv[0])
        (void)base_parse_u64(base_str_of(resp->list_rv), UINT64_MAX, &r->list_rv);
    r->n_objects = resp->n_objects;
    if (r->n_objects == 1 && r->op != STORE_LIST) {
        r->objects = sim_object(w, &resp->objects[0]);
    } else if (r->n_objects) {
        r->objects = malloc(r->n_objects * sizeof *r->objects);
        if (!r->objects)
            abort();
        for (size_t i = 0; i < r->n_objects; i++)
            contract_object_copy(&r->objects[i], &resp->objects[i]);
    }
    post_req(w, w->now + back, SIM_EV_ANSWER, p, r);
}

static struct store_identity identity(const struct sim_world *w, const struct sim_req *r)
{
    struct store_identity id = {.role = r->type == SIM_AGENT ? STORE_AGENT : STORE_FOUNDATION,
                                .node_uid = w->node[r->node].node_uid};

    (void)base_copy(id.node, sizeof id.node, w->node[r->node].name);
    return id;
}

/* Is the object gone with this write: deleted, or its last finalizer taken off while it was being deleted? */
static bool gone(const struct store_req *req, const struct store_resp *resp)
{
    if (req->op == STORE_DELETE)
        return resp->n_objects == 0;
    return req->op == STORE_UPDATE && resp->n_objects && resp->objects[0].u.meta.deleting &&
           resp->objects[0].u.meta.n_finalizers == 0;
}

void sim_api_arrive(struct sim_world *w, struct sim_event *ev)
{
    struct sim_req *r = ev->req;
    struct sim_proc *p = sim_proc_of(w, r->proc, r->serial); /* it may be gone: the request is not */
    struct store_identity who = identity(w, r);
    bool writes = r->op != STORE_GET && r->op != STORE_LIST, applied = true;
    struct store_req req = {
        .id = r->id, .op = r->op, .kind = r->kind, .selector = r->sel, .object = r->object, .uid = r->uid};
    struct store_resp resp;

    if (w->now < w->front_down[0] && w->now < w->front_down[1])
        return;
    (void)base_copy(req.name, sizeof req.name, r->name);
    (void)base_copy(req.rv, sizeof req.rv, r->rv);
    if (r->order < w->applied_order && w->applied_order - r->order < 1000)
        sim_fired(w, SIM_F_REORDER);
    if (r->order > w->applied_order)
        w->applied_order = r->order;
    memset(&resp, 0, sizeof resp);
    if (p && falls(w, p, SIM_F_ERR429)) {
        resp.code = BASE_EAGAIN;
        applied = false;
    } else if (p && falls(w, p, SIM_F_ERR5)) {
        resp.code = writes ? BASE_EUNKNOWN : BASE_EIO;
        applied = false;
    } else if (r->what == SIM_FOR_STEP1) { /* a LIST with limit=1: only its version is wanted */
        store_twin_rv(w->twin, resp.list_rv);
    } else if (store_twin_do(w->twin, &who, w->wall0 + w->now / BASE_US, &req, &resp) != BASE_OK) {
        abort();
    }
    if (applied && writes && resp.code == BASE_OK) {
        sim_saw_write(w, r, r->op, r->kind, resp.n_objects ? &resp.objects[0] : NULL, gone(&req, &resp),
                      r->object ? r->object->u.meta.name : r->name);
    }
    if (p) {
        if (applied && writes && falls(w, p, SIM_F_ERR5_APPLIED)) {
            resp.code = BASE_EUNKNOWN;
            resp.n_objects = 0;
        }
        answer(w, p, r, &resp);
    }
    if (applied && writes && resp.http_status)
        sim_api_changed(w, r->kind);
}

int sim_api_admin(struct sim_world *w, enum store_op op, const struct contract_object *o, const char *name)
{
    struct store_req req = {.op = op, .kind = o->kind, .object = o};
    struct store_resp resp;

    (void)base_copy(req.name, sizeof req.name, name ? name : o->u.meta.name);
    if (store_twin_do(w->twin, NULL, w->wall0 + w->now / BASE_US, &req, &resp) != BASE_OK)
        abort();
    if (resp.code != BASE_OK)
        return resp.code;
    sim_saw_write(w, NULL, op, o->kind, resp.n_objects ? &resp.objects[0] : NULL, gone(&req, &resp),
                  req.name);
    sim_api_changed(w, o->kind);
    return BASE_OK;
}

/* Borrowed until the next request. */
const struct contract_object *sim_api_get(struct sim_world *w, enum contract_kind kind, const char *name)
{
    struct store_req req = {.op = STORE_GET, .kind = kind};
    struct store_resp resp;

    (void)base_copy(req.name, sizeof req.name, name);
    if (store_twin_do(w->twin, NULL, w->wall0 + w->now / BASE_US, &req, &resp) != BASE_OK)
        abort();
    return resp.code == BASE_OK ? &resp.objects[0] : NULL;
}

void sim_api_changed(struct sim_world *w, enum contract_kind kind)
{
    char rv[CONTRACT_RV_SIZE];

    store_twin_rv(w->twin, rv);
    (void)base_parse_u64(base_str_of(rv), UINT64_MAX, &w->rv);
    for (unsigned i = 0; i < SIM_PROCS; i++) {
        struct sim_proc *p = &w->proc[i];

        if (!p->alive)
            continue;
        for (unsigned c = 0; c < SIM_COLLS; c++)
            if (p->coll[c].kind == kind && p->coll[c].open)
                sim_coll_pump(w, p, c);
    }
}
