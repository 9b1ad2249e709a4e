/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver of a foundation's core, as test/foundation/driver.c: effects in order, groups of one `op` end
 * with the first that fails, results come back after the step.
 */
#include "sim.h"

#include <stdlib.h>

#define ASK_TIMEOUT (5 * BASE_SEC)
#define SCAN_TIMEOUT (20 * BASE_SEC)
#define DONE_MAX 64

struct sim_half {
    unsigned next;
    uint64_t op;
    bool ok;
    struct fnd_out out;
};
struct done {
    uint64_t id;
    bool ok;
};
struct results {
    unsigned n;
    struct done d[DONE_MAX];
};

static void ask(struct sim_world *w, struct sim_proc *p, const struct fnd_out *out, const struct fnd_fx *fx)
{
    struct sim_req *r = sim_req_new(w);

    r->id = fx->id;
    r->op = fx->kind == FND_FX_GET      ? STORE_GET
            : fx->kind == FND_FX_STATUS ? STORE_UPDATE_STATUS
                                        : STORE_UPDATE;
    r->kind = fx->obj_kind;
    (void)base_copy(r->name, sizeof r->name, fx->name);
    if (fx->kind != FND_FX_GET)
        r->object = sim_object(w, &out->objects[fx->object]);
    sim_api_send(w, p, r, ASK_TIMEOUT);
}

static void scan(struct sim_world *w, struct sim_proc *p)
{
    struct sim_req *r = sim_req_new(w);

    r->op = STORE_LIST;
    r->kind = CONTRACT_CLAIM;
    r->what = SIM_FOR_SCAN;
    sim_api_send(w, p, r, SCAN_TIMEOUT);
}

static bool execute(struct sim_world *w, struct sim_proc *p, const struct fnd_out *out,
                    const struct fnd_fx *fx)
{
    switch (fx->kind) {
    case FND_FX_GET:
    case FND_FX_STATUS:
    case FND_FX_FINALIZERS:
        ask(w, p, out, fx);
        return true;
    case FND_FX_PROVE:
        sim_coll_prove(w, p, fx->coll, fx->id, fx->timeout);
        return true;
    case FND_FX_SCAN:
        scan(w, p);
        return true;
    case FND_FX_RELIST:
        SIM_SAY(w, "%s foundation%u starts over: a row went back", w->node[p->node].name, p->serial);
        sim_coll_start_over(w, p);
        return true;
    case FND_FX_LOG:
        SIM_SAY(w, "%s foundation%u %s %s epoch %lld: log %d %s", w->node[p->node].name, p->serial, fx->name,
                fx->connector, (long long)fx->gate.epoch, (int)fx->log, fx->reason ? fx->reason : "");
        return true;
    case FND_FX_GATE:
    case FND_FX_RECORD:
    case FND_FX_FORGET:
    case FND_FX_PUBLISH:
    case FND_FX_WITHDRAW:
    case FND_FX_DEVICE_MAKE:
    case FND_FX_DEVICE_DELETE:
        return sim_kernel_effect(w, p, fx);
    }
    return true;
}

/* True when all of it was carried out; false: the thread stands still in its middle. */
static bool execute_all(struct sim_world *w, struct sim_proc *p, struct fnd_out *out, unsigned from,
                        uint64_t op, bool ok, struct results *res)
{
    for (unsigned i = from; i <= out->n_fx; i++) {
        const struct fnd_fx *fx = i < out->n_fx ? &out->fx[i] : NULL;

        if (op && (!fx || fx->op != op)) {
            if (res->n < DONE_MAX)
                res->d[res->n++] = (struct done){op, ok};
            op = 0;
        }
        if (!fx)
            break;
        if (p->half_wanted && p->half_may && i > 0 && !p->half) {
            struct sim_half *h = malloc(sizeof *h);

            if (!h)
                abort();
            h->out = *out;
            h->next = i;
            h->op = op;
            h->ok = ok;
            p->half = h;
            p->half_wanted = false;
            sim_proc_stop(w, p, p->half_until);
            SIM_SAY(w, "%s foundation%u stops in the middle of a step", w->node[p->node].name, p->serial);
            return false;
        }
        if (fx->op && fx->op != op) {
            op = fx->op;
            ok = true;
        }
        if (fx->op && !ok)
            continue;
        if (!execute(w, p, out, fx))
            ok = false;
    }
    return true;
}

static bool one(struct sim_world *w, struct sim_proc *p, struct fnd_in *in, struct results *res)
{
    struct fnd_out *out = &w->fout;
    unsigned quiet = 0;

    do {
        in->now = sim_node_now(w, p->node);
        in->wall = sim_node_wall(w, p->node);
        fnd_core_step(p->fnd, in, out);
        if (!execute_all(w, p, out, 0, 0, true, res))
            return false;
        quiet = out->n_fx ? 0 : quiet + 1;
        if (quiet > 20) {
            sim_fail(w, "foundation: it never comes to rest", "event %d", (int)in->ev);
            return true;
        }
        in->ev = FND_EV_MORE;
    } while (out->more && p->alive && !w->stop);
    return true;
}

/* What is left of the results comes after what the half step still has to do. */
static void later(struct sim_world *w, struct sim_proc *p, const struct results *res, unsigned from)
{
    for (unsigned k = from; k < res->n; k++) {
        struct sim_event *e = sim_post(w, w->now, SIM_EV_LATER, p);

        e->a = res->d[k].id;
        e->b = res->d[k].ok;
    }
}

static void settle(struct sim_world *w, struct sim_proc *p, struct results *res)
{
    const char *wrong;

    for (unsigned i = 0; i < res->n && p->alive && !w->stop; i++) {
        struct fnd_in in = {.ev = FND_EV_DONE, .id = res->d[i].id, .ok = res->d[i].ok};

        if (p->half) {
            later(w, p, res, i);
            return;
        }
        (void)one(w, p, &in, res);
    }
    if (!p->alive || w->stop || p->half)
        return;
    wrong = fnd_core_check(p->fnd, sim_node_now(w, p->node));
    if (wrong)
        sim_fail(w, "foundation: an invariant does not hold", "%s", wrong);
    sim_wake(w, p, w->fout.wake_at);
}

void sim_found_feed(struct sim_world *w, struct sim_proc *p, struct fnd_in *in)
{
    struct results res = {.n = 0};

    if (!p->alive || !p->fnd || w->stop)
        return;
    if (p->half) {
        sim_fail(w, "sim: a process that stands still was given an event", "event %d", (int)in->ev);
        return;
    }
    (void)one(w, p, in, &res);
    settle(w, p, &res);
}

void sim_found_note(struct sim_world *w, struct sim_proc *p, unsigned coll, enum fnd_ev ev, bool left,
                    struct contract_object *o, uint64_t id, base_time t0)
{
    char version[CONTRACT_RV_SIZE];
    struct fnd_in in = {.ev = ev, .coll = (enum fnd_coll)coll, .left = left, .object = o, .id = id, .t0 = t0};

    if (ev == FND_EV_RELIST) {
        base_u64_text(version, id);
        in.version = version;
    }
    if (ev == FND_EV_PROVED)
        p->proof_t0[p->coll[coll].kind] = base_time_max(p->proof_t0[p->coll[coll].kind], t0);
    sim_found_feed(w, p, &in);
}

static void answered(struct sim_world *w, struct sim_proc *p, struct sim_req *r, bool timeout)
{
    bool writes = r->op != STORE_GET && r->op != STORE_LIST;
    struct fnd_in in = {.ev = FND_EV_ANSWER, .id = r->id};

    if (r->answered)
        return;
    r->answered = true;
    if (timeout)
        r->code = writes ? BASE_EUNKNOWN : BASE_ETIMEDOUT;
    if (!timeout && (r->what == SIM_FOR_SCAN || r->what == SIM_FOR_CORE))
        sim_coll_look(w, p, r);
    if (r->what == SIM_FOR_SCAN) {
        for (size_t i = 0; r->code == BASE_OK && i < r->n_objects; i++) {
            struct fnd_in o = {.ev = FND_EV_SCANNED, .object = &r->objects[i]};

            sim_found_feed(w, p, &o);
        }
        in = (struct fnd_in){.ev = FND_EV_SCAN_END, .ok = r->code == BASE_OK};
        sim_found_feed(w, p, &in);
        return;
    }
    if (r->what != SIM_FOR_CORE) {
        sim_coll_answer(w, p, r);
        return;
    }
    in.code = r->code;
    in.sent = r->sent;
    in.object = r->code == BASE_OK && r->n_objects ? &r->objects[0] : NULL;
    if (in.object && in.object->kind == CONTRACT_CLAIM)
        p->proof_t0[CONTRACT_CLAIM] = base_time_max(p->proof_t0[CONTRACT_CLAIM], r->sent);
    sim_found_feed(w, p, &in);
    if (!w->healed && !p->half && sim_chance(p, w->plan->rate[SIM_F_DUP_EVENT])) {
        sim_fired(w, SIM_F_DUP_EVENT);
        in.ev = FND_EV_ANSWER;
        sim_found_feed(w, p, &in);
    }
}

void sim_found_event(struct sim_world *w, struct sim_proc *p, struct sim_event *ev)
{
    struct fnd_in in = {.ev = FND_EV_TICK};

    if (!ev) { /* it goes on in the middle of a step: what it had decided is carried out now, late */
        struct sim_half *h = p->half;
        struct results res = {.n = 0};

        p->half = NULL;
        p->late = true;
        (void)execute_all(w, p, &h->out, h->next, h->op, h->ok, &res);
        p->late = false;
        settle(w, p, &res);
        if (h->out.more) {
            in.ev = FND_EV_MORE;
            sim_found_feed(w, p, &in);
        }
        free(h);
        sim_coll_recheck(w, p);
        return;
    }
    switch ((int)ev->kind) {
    case SIM_EV_TICK:
        break;
    case SIM_EV_ANSWER:
    case SIM_EV_TIMEOUT:
        answered(w, p, ev->req, ev->kind == SIM_EV_TIMEOUT);
        return;
    case SIM_EV_ROW:
        sim_coll_row(w, p, ev);
        return;
    case SIM_EV_BOOKMARK:
        sim_coll_bookmark(w, p, ev);
        return;
    case SIM_EV_STREAM:
        sim_coll_stream(w, p, ev);
        return;
    case SIM_EV_PROOF:
        sim_coll_timer(w, p, (unsigned)ev->a);
        return;
    case SIM_EV_LATER:
        in.ev = FND_EV_DONE;
        in.id = ev->a;
        in.ok = ev->b != 0;
        break;
    default:
        return;
    }
    sim_found_feed(w, p, &in);
}

/* ---- life ---- */
static void restore(struct sim_world *w, struct sim_proc *p)
{
    struct sim_node *n = &w->node[p->node];
    struct fnd_in in;

    for (unsigned i = 0; i < SIM_RECORDS; i++) {
        if (!n->record[i].kind)
            continue;
        in = (struct fnd_in){.ev = FND_EV_RECORD, .record = &n->record[i]};
        sim_found_feed(w, p, &in);
    }
    for (unsigned i = 0; i < SIM_DEVICES; i++) {
        if (!n->device[i].serial)
            continue;
        in = (struct fnd_in){.ev = FND_EV_DEVICE, .device = n->device[i].name, .ok = true};
        sim_found_feed(w, p, &in);
    }
    for (unsigned i = 0; i < SIM_GATES; i++) {
        struct fnd_gate g;

        if (!n->gate[i].used || n->gate[i].lost)
            continue;
        g = (struct fnd_gate){.prefix = n->gate[i].prefix,
                              .deadline = n->gate[i].deadline,
                              .uid = n->gate[i].uid,
                              .epoch = n->gate[i].epoch};
        (void)base_copy(g.device, sizeof g.device, n->gate[i].name);
        in = (struct fnd_in){.ev = FND_EV_GATE, .gate = &g};
        sim_found_feed(w, p, &in);
    }
}

struct sim_proc *sim_found_start(struct sim_world *w, int node)
{
    static const enum contract_kind kinds[FND_COLL_N] = {[FND_HELD] = CONTRACT_CLAIM,
                                                         [FND_PREVIOUS] = CONTRACT_CLAIM,
                                                         [FND_INSTANCES] = CONTRACT_INSTANCE,
                                                         [FND_ATTACHMENTS] = CONTRACT_ATTACHMENT,
                                                         [FND_SERVICES] = CONTRACT_SERVICE};
    struct sim_node *n = &w->node[node];
    struct sim_proc *p = &w->proc[SIM_AGENTS + node];
    struct fnd_config cfg = {.node_uid = n->node_uid,
                             .boot_id = n->boot_id,
                             .timing = contract_timing_default(),
                             .seed = w->plan->seed + w->serials,
                             .mtu = 1400,
                             .max_claims = 16,
                             .max_instances = 4,
                             .max_attachments = 6,
                             .max_services = 6};
    struct base_err err = {0};

    if (n->off || p->alive) /* one per kernel: the lock */
        return NULL;
    memset(p, 0, sizeof *p);
    p->type = SIM_FOUNDATION;
    p->index = (uint32_t)(p - w->proc);
    p->serial = (uint32_t)++w->serials;
    p->node = node;
    p->alive = true;
    p->started = w->now;
    p->wake_real = BASE_TIME_NEVER;
    p->prng = sim_mix(w->plan->seed, p->serial);
    p->front = (int)sim_draw(p, SIM_FRONTS);
    cfg.timing.lease = n->lease_s * BASE_SEC;
    cfg.timing.interval = base_time_min(cfg.timing.lease / 3, 10 * BASE_SEC);
    p->timing = cfg.timing;
    (void)base_copy(cfg.node, sizeof cfg.node, n->name);
    if (fnd_core_new(&p->fnd, &cfg, &err)) {
        sim_fail(w, "foundation: it cannot be made", "%s", err.msg);
        p->alive = false;
        return NULL;
    }
    for (unsigned i = 0; i < FND_COLL_N; i++) {
        p->coll[i].kind = kinds[i];
        if (i == FND_HELD || i == FND_INSTANCES)
            (void)base_copy(p->coll[i].sel.node, sizeof p->coll[i].sel.node, n->name);
        if (i == FND_PREVIOUS)
            (void)base_copy(p->coll[i].sel.previous_node, sizeof p->coll[i].sel.previous_node, n->name);
    }
    n->fnd = p->index;
    SIM_SAY(w, "%s foundation%u starts", n->name, p->serial);
    sim_kernel_start_over(w, node);
    restore(w, p);
    sim_coll_start(w, p);
    return p;
}

/* The kernel's side stays as it is. */
void sim_found_die(struct sim_world *w, struct sim_proc *p)
{
    if (!p->alive)
        return;
    SIM_SAY(w, "%s foundation%u dies", w->node[p->node].name, p->serial);
    sim_proc_free(w, p);
}
