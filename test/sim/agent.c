/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver of an agent's core: carries out its effects in order and brings back what came of them, as
 * pkg/agent does. Cutoffs of a step come first; what an order answers by itself comes after the step.
 */
#include "sim.h"

#include <stdlib.h>

#define STORE_TIMEOUT (5 * BASE_SEC)

struct sim_half { /* the rest of a step that was stopped in its middle */
    unsigned next;
    struct session_out out;
};

/* ---- store ---- */
static void ask(struct sim_world *w, struct sim_proc *p, const struct session_fx *fx)
{
    static const enum store_op ops[] = {[SESSION_FX_GET] = STORE_GET,
                                        [SESSION_FX_LIST] = STORE_LIST,
                                        [SESSION_FX_CREATE] = STORE_CREATE,
                                        [SESSION_FX_UPDATE] = STORE_UPDATE,
                                        [SESSION_FX_STATUS] = STORE_UPDATE_STATUS,
                                        [SESSION_FX_DELETE] = STORE_DELETE};
    struct sim_req *r = sim_req_new(w);

    r->id = fx->u.store.ask;
    r->op = ops[fx->kind];
    r->kind = fx->u.store.kind;
    (void)base_copy(r->name, sizeof r->name, fx->u.store.name);
    (void)base_copy(r->sel.tenant, sizeof r->sel.tenant, fx->u.store.tenant);
    (void)base_copy(r->sel.connector, sizeof r->sel.connector, fx->u.store.connector);
    (void)base_copy(r->sel.vpc, sizeof r->sel.vpc, fx->u.store.vpc);
    if (fx->u.store.object) {
        r->object = sim_object(w, fx->u.store.object);
        (void)base_copy(r->name, sizeof r->name, r->object->u.meta.name);
        if (r->op == STORE_DELETE) {
            r->uid = r->object->u.meta.uid;
            (void)base_copy(r->rv, sizeof r->rv, r->object->u.meta.rv);
        }
    }
    sim_api_send(w, p, r, STORE_TIMEOUT);
}

/* The observer's note on whose record it is. One that was lost would look like a claim without a record. */
static void remember(struct sim_world *w, struct sim_proc *p, const struct session_audit *a)
{
    for (unsigned i = 0; i < BASE_LEN(p->audit_wait); i++)
        if (!p->audit_wait[i].ask) {
            p->audit_wait[i] = (struct sim_wait){a->ask, a->lease_uuid};
            return;
        }
    sim_fail(w, "sim: too many records are on their way to the disk", "more than %zu",
             BASE_LEN(p->audit_wait));
}

static void durable_or_not(struct sim_proc *p, uint64_t ask, bool durable)
{
    for (unsigned i = 0; i < BASE_LEN(p->audit_wait); i++) {
        struct sim_wait *k = &p->audit_wait[i];

        if (k->ask != ask)
            continue;
        if (durable)
            p->audited[p->n_audited++ % BASE_LEN(p->audited)] = k->id;
        k->ask = 0;
        return;
    }
}

static void audit(struct sim_world *w, struct sim_proc *p, const struct session_audit *a)
{
    base_time at = w->now + 300 * BASE_US + (base_time)sim_draw(p, 3 * BASE_MS);
    bool durable = w->now >= p->audit_fails;
    struct sim_event *e;

    if (!a->ask)
        return;
    if (!w->healed && sim_chance(p, w->plan->rate[SIM_F_AUDIT_FAIL])) {
        sim_fired(w, SIM_F_AUDIT_FAIL);
        durable = false;
    }
    if (!w->healed && sim_chance(p, w->plan->rate[SIM_F_AUDIT_SLOW])) {
        sim_fired(w, SIM_F_AUDIT_SLOW);
        at += (base_time)sim_draw(p, 8 * BASE_SEC);
    }
    remember(w, p, a);
    e = sim_post(w, at, SIM_EV_AUDIT, p);
    e->a = a->ask;
    e->b = durable;
}

static void execute(struct sim_world *w, struct sim_proc *p, const struct session_fx *fx)
{
    const char *node = w->node[p->node].name;

    switch (fx->kind) {
    case SESSION_FX_GET:
    case SESSION_FX_LIST:
    case SESSION_FX_CREATE:
    case SESSION_FX_UPDATE:
    case SESSION_FX_STATUS:
    case SESSION_FX_DELETE:
        ask(w, p, fx);
        return;
    case SESSION_FX_PROVE:
        for (unsigned i = 0; i < SIM_COLLS; i++)
            if (p->coll[i].kind == fx->u.prove.collection)
                sim_coll_prove(w, p, i, fx->u.prove.ask, fx->u.prove.timeout);
        return;
    case SESSION_FX_AUDIT:
        audit(w, p, &fx->u.audit);
        return;
    case SESSION_FX_AUTHORIZE:
        return;
    case SESSION_FX_TUN_OPEN:
        sim_data_tun_open(w, p, fx);
        return;
    case SESSION_FX_TUN_CLOSE:
        sim_data_tun_close(w, p, fx->u.tun.tun_id);
        return;
    case SESSION_FX_REFUSE:
        SIM_SAY(w, "%s agent%u refuses flow %llu: %d %s", node, p->serial,
                (unsigned long long)fx->u.refuse.flow, fx->u.refuse.status, fx->u.refuse.reason);
        sim_refuse(w, p, fx->u.refuse.flow, fx->u.refuse.status, fx->u.refuse.retry_after,
                   fx->u.refuse.reason);
        return;
    case SESSION_FX_ADMIT:
        sim_data_admit(w, p, fx);
        return;
    case SESSION_FX_FENCE:
        sim_data_fence(w, p, fx->u.fence.flow, fx->u.fence.deadline);
        return;
    case SESSION_FX_STOP:
        sim_data_stop(w, p, fx->u.flow);
        return;
    case SESSION_FX_CLOSE:
        sim_data_close(w, p, fx->u.flow);
        return;
    case SESSION_FX_TRACE:
        SIM_SAY(w, "%s agent%u %s %s: %s -> %s by %s %s epoch %lld", node, p->serial, fx->u.trace.what,
                fx->u.trace.name, fx->u.trace.from, fx->u.trace.to, fx->u.trace.by, fx->u.trace.reason,
                (long long)fx->u.trace.epoch);
        return;
    case SESSION_FX_CONDITION:
        p->ready = fx->u.condition.ready;
        (void)base_copy(p->reason, sizeof p->reason, fx->u.condition.reason);
        SIM_SAY(w, "%s agent%u %s: %s", node, p->serial, p->ready ? "ready" : "not ready",
                fx->u.condition.reason);
        return;
    case SESSION_FX_RELIST:
        SIM_SAY(w, "%s agent%u starts over: a row went back", node, p->serial);
        sim_coll_start_over(w, p);
        return;
    case SESSION_FX_DRAINED:
        SIM_SAY(w, "%s agent%u drained", node, p->serial);
        p->drained = true;
        return;
    case SESSION_FX_UNSET:
        return;
    }
}

/* Cutoffs first: nothing that an earlier effect of the same step does may delay a fence. */
static void cut(struct sim_world *w, struct sim_proc *p, const struct session_out *out)
{
    for (unsigned i = 0; i < out->n_fx; i++) {
        const struct session_fx *fx = &out->fx[i];

        if (fx->kind == SESSION_FX_STOP)
            sim_data_fence(w, p, fx->u.flow, -1);
        else if (fx->kind == SESSION_FX_FENCE && fx->u.fence.deadline == 0)
            sim_data_fence(w, p, fx->u.fence.flow, 0);
    }
}

static void rebase(struct session_out *to, const struct session_out *from)
{
    for (unsigned i = 0; i < to->n_fx; i++) {
        struct session_fx *fx = &to->fx[i];

        if (fx->kind == SESSION_FX_CREATE || fx->kind == SESSION_FX_UPDATE || fx->kind == SESSION_FX_STATUS ||
            fx->kind == SESSION_FX_DELETE)
            fx->u.store.object = &to->objects[fx->u.store.object - from->objects];
    }
}

static void execute_all(struct sim_world *w, struct sim_proc *p, struct session_out *out, unsigned from)
{
    for (unsigned i = from; i < out->n_fx && p->alive; i++) {
        if (p->half_wanted && p->half_may && i > 0 &&
            !p->half) { /* the thread stands still here, until its plan lets it go on */
            struct sim_half *h = malloc(sizeof *h);

            if (!h)
                abort();
            h->out = *out;
            rebase(&h->out, out);
            h->next = i;
            p->half = h;
            p->half_wanted = false;
            sim_proc_stop(w, p, p->half_until);
            SIM_SAY(w, "%s agent%u stops in the middle of a step", w->node[p->node].name, p->serial);
            return;
        }
        execute(w, p, &out->fx[i]);
    }
}

static void step(struct sim_world *w, struct sim_proc *p, struct session_in *in)
{
    struct session_out *out = &w->out;

    do {
        in->now = sim_node_now(w, p->node);
        in->wall = sim_node_wall(w, p->node);
        if (session_core_step(p->core, in, out)) {
            sim_fail(w, "core: an event was refused", "event %d at %lld", (int)in->ev, (long long)in->now);
            return;
        }
        session_core_check(p->core);
        cut(w, p, out);
        execute_all(w, p, out, 0);
        if (out->more && out->n_fx == 0 && in->ev == SESSION_EV_CONTINUE) {
            sim_fail(w, "core: it never comes to rest", "event %d", (int)in->ev);
            return;
        }
        in->ev = SESSION_EV_CONTINUE;
    } while (out->more && p->alive && !w->stop && !p->half);
    if (p->alive)
        sim_wake(w, p, out->wake_at);
}

void sim_agent_feed(struct sim_world *w, struct sim_proc *p, struct session_in *in)
{
    if (!p->alive || !p->core || w->stop)
        return;
    if (p->half)
        sim_fail(w, "sim: a process that stands still was given an event", "event %d", (int)in->ev);
    else
        step(w, p, in);
}

void sim_agent_note(struct sim_world *w, struct sim_proc *p, unsigned coll, enum session_ev ev, bool deleted,
                    struct contract_object *o, uint64_t id, bool proved, base_time t0)
{
    struct session_in in = {.ev = ev};

    switch ((int)ev) {
    case SESSION_EV_ROW:
        in.u.row.kind = p->coll[coll].kind;
        in.u.row.deleted = deleted;
        in.u.row.object = o;
        break;
    case SESSION_EV_RELIST:
    case SESSION_EV_LISTED:
        in.u.collection = p->coll[coll].kind;
        if (ev == SESSION_EV_RELIST)
            base_u64_text(in.version, id);
        break;
    default:
        in.u.proof.ask = id;
        in.u.proof.collection = p->coll[coll].kind;
        in.u.proof.proved = proved;
        in.u.proof.t0 = t0;
        if (proved)
            p->proof_t0[p->coll[coll].kind] = base_time_max(p->proof_t0[p->coll[coll].kind], t0);
        break;
    }
    sim_agent_feed(w, p, &in);
}

/* ---- what reaches it ---- */
static void answered(struct sim_world *w, struct sim_proc *p, struct sim_req *r, bool timeout)
{
    bool writes = r->op != STORE_GET && r->op != STORE_LIST;
    struct session_in in = {.ev = SESSION_EV_ANSWER};

    if (r->answered)
        return;
    r->answered = true;
    if (timeout) {
        r->n_objects = r->n_objects && r->op != STORE_LIST ? r->n_objects : 0;
        r->code = writes ? BASE_EUNKNOWN : BASE_ETIMEDOUT;
    }
    if (r->what != SIM_FOR_CORE) {
        sim_coll_answer(w, p, r);
        return;
    }
    if (!timeout)
        sim_coll_look(w, p, r);
    in.u.answer.ask = r->id;
    in.u.answer.code = r->code;
    in.u.answer.sent = r->sent;
    if (r->code == BASE_OK) {
        in.u.answer.n_objects = r->n_objects;
        in.u.answer.objects = r->objects;
    }
    sim_agent_feed(w, p, &in);
    if (!w->healed && !p->half && sim_chance(p, w->plan->rate[SIM_F_DUP_EVENT])) {
        sim_fired(w, SIM_F_DUP_EVENT);
        in.ev = SESSION_EV_ANSWER;
        sim_agent_feed(w, p, &in);
    }
}

void sim_agent_event(struct sim_world *w, struct sim_proc *p, struct sim_event *ev)
{
    struct session_in in = {.ev = SESSION_EV_TICK};

    if (!ev) { /* it goes on in the middle of a step */
        struct sim_half *h = p->half;

        p->half = NULL;
        execute_all(w, p, &h->out, h->next);
        if (h->out.more) {
            in.ev = SESSION_EV_CONTINUE;
            sim_agent_feed(w, p, &in);
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
    case SIM_EV_AUDIT:
        in.ev = SESSION_EV_AUDIT;
        in.u.audit.ask = ev->a;
        in.u.audit.durable = ev->b != 0;
        durable_or_not(p, ev->a, ev->b != 0);
        break;
    case SIM_EV_TUN:
        in.ev = SESSION_EV_TUN;
        in.u.tun.tun_id = (uint32_t)ev->a;
        in.u.tun.code = -(int)ev->b;
        break;
    case SIM_EV_TUN_LOST:
        in.ev = SESSION_EV_TUN_LOST;
        in.u.tun.tun_id = (uint32_t)ev->a;
        in.u.tun.code = BASE_ECLOSED;
        break;
    case SIM_EV_STOPPED:
    case SIM_EV_ENDED: {
        struct sim_flow *f = sim_flow_find(w, ev->a);

        in.ev = ev->kind == SIM_EV_STOPPED ? SESSION_EV_STOPPED : SESSION_EV_ENDED;
        in.u.flow = ev->a;
        if (f && ev->kind == SIM_EV_STOPPED)
            f->stopped = true;
        if (f && ev->kind == SIM_EV_ENDED)
            f->told = true;
        sim_agent_feed(w, p, &in);
        if (f && f->flow == ev->a && f->told && (f->stopped || !f->admitted))
            f->flow = 0;
        return;
    }
    case SIM_EV_GAP:
        in.ev = SESSION_EV_GAP;
        in.u.gap = (base_time)ev->a;
        p->gap_at = in.u.gap;
        sim_agent_feed(w, p, &in);
        p->data_held = false;
        w->look = true;
        return;
    case SIM_EV_REQUEST: {
        struct sim_client *c = &w->client[ev->b];
        struct sim_flow *f = sim_flow_find(w, ev->a);

        if (!f || f->ended)
            return;
        in.ev = SESSION_EV_REQUEST;
        in.u.request.flow = ev->a;
        in.u.request.transport = f->transport;
        in.u.request.identity = SESSION_ID_URI;
        (void)base_copy(in.u.request.uri, sizeof in.u.request.uri, c->uri);
        (void)base_copy(in.u.request.credential_id, sizeof in.u.request.credential_id, "c0ffee");
        in.u.request.any_target = true;
        in.u.request.ipproto = -1;
        in.u.request.correlation.b[0] = 1;
        memcpy(in.u.request.correlation.b + 8, &ev->a, 8);
        break;
    }
    default:
        return;
    }
    sim_agent_feed(w, p, &in);
}

/* ---- life ---- */
static struct sim_proc *slot(struct sim_world *w)
{
    for (unsigned i = 0; i < SIM_AGENTS; i++)
        if (!w->proc[i].alive)
            return &w->proc[i];
    return NULL;
}

/* A new process on this node; NULL when there are too many. `seed` NULL: a fresh identity. */
struct sim_proc *sim_agent_start(struct sim_world *w, int node, const uint8_t seed[32])
{
    struct sim_proc *p = slot(w);
    struct sim_node *n = &w->node[node];
    struct session_config cfg = {.node_uid = n->node_uid,
                                 .boot_id = n->boot_id,
                                 .timing = contract_timing_default(),
                                 .policy = SESSION_POLICY_KUBERNETES,
                                 .max_connectors = SIM_CLIENTS + 2,
                                 .max_services = 4,
                                 .max_attachments = 2,
                                 .max_guests = 16};
    struct base_err err = {0};

    if (!p || n->off)
        return NULL;
    memset(p, 0, sizeof *p);
    p->type = SIM_AGENT;
    p->index = (uint32_t)(p - w->proc);
    p->serial = (uint32_t)++w->serials;
    p->node = node;
    p->alive = true;
    p->started = w->now;
    p->wake_real = BASE_TIME_NEVER;
    p->prng = sim_mix(w->plan->seed, p->serial);
    p->front = (int)sim_draw(p, SIM_FRONTS);
    cfg.timing.lease = n->lease_s * BASE_SEC;
    cfg.timing.grant = w->plan->grant_s * BASE_SEC;
    cfg.timing.interval = base_time_min(base_time_min(cfg.timing.lease, cfg.timing.grant) / 3, 10 * BASE_SEC);
    p->timing = cfg.timing;
    (void)base_copy(cfg.provider, sizeof cfg.provider, "masque");
    (void)base_copy(cfg.node, sizeof cfg.node, n->name);
    if (seed)
        memcpy(cfg.seed, seed, sizeof cfg.seed);
    else
        sim_seed(w, cfg.seed);
    memcpy(p->seed, cfg.seed, sizeof p->seed);
    if (session_core_new(&p->core, &cfg, &err)) {
        sim_fail(w, "core: it cannot be made", "%s", err.msg);
        p->alive = false;
        return NULL;
    }
    for (enum contract_kind k = CONTRACT_INSTANCE; k <= CONTRACT_BINDING; k++) {
        struct sim_coll *c = &p->coll[k - CONTRACT_INSTANCE];

        c->kind = k;
        if (k == CONTRACT_INSTANCE || k == CONTRACT_CLAIM)
            (void)base_copy(c->sel.node, sizeof c->sel.node, n->name);
        if (k == CONTRACT_SERVICE)
            (void)base_copy(c->sel.provider, sizeof c->sel.provider, "masque");
    }
    n->agent = p->index;
    SIM_SAY(w, "%s agent%u starts, L %d s", n->name, p->serial, n->lease_s);
    sim_coll_start(w, p);
    sim_agent_feed(w, p, &(struct session_in){.ev = SESSION_EV_START});
    return p;
}

/* SIGKILL: its descriptors are closed, its clients notice. */
void sim_agent_die(struct sim_world *w, struct sim_proc *p)
{
    if (!p->alive)
        return;
    SIM_SAY(w, "%s agent%u dies", w->node[p->node].name, p->serial);
    for (unsigned i = 0; i < SIM_FLOWS; i++) {
        struct sim_flow *f = &w->flow[i];

        if (!f->flow || f->proc != p->index || f->serial != p->serial)
            continue;
        f->deadline = -1;
        if (!f->ended)
            sim_client_lost(w, f->flow);
        f->flow = 0;
    }
    for (unsigned i = 0; i < BASE_LEN(w->tun); i++)
        if (w->tun[i].tun_id && w->tun[i].proc == p->index && w->tun[i].serial == p->serial)
            w->tun[i].tun_id = 0;
    sim_proc_free(w, p);
}
