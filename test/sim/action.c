/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan's actions: each begins at its time and, where it has a span, ends with it. When the faults stop
 * (sim_heal) everything that is still going on is ended at once, and what was lost is made again.
 */
#include "sim.h"

#include <stdlib.h>

typedef void (*act_fn)(struct sim_world *w, const struct sim_act *a, unsigned index);

/* The newest agent of a node; NULL: it has none now. */
struct sim_proc *sim_agent_of(struct sim_world *w, int node)
{
    struct sim_proc *p = &w->proc[w->node[node].agent];

    return p->alive && p->type == SIM_AGENT && p->node == node ? p : NULL;
}

static struct sim_proc *found_of(struct sim_world *w, int node)
{
    return &w->proc[SIM_AGENTS + node];
}

static bool on_node(const struct sim_proc *p, int node)
{
    return p->alive && (node < 0 || p->node == node);
}

/* target: 1 agents, 2 foundation, 3 both */
static bool hit(const struct sim_proc *p, const struct sim_act *a)
{
    return on_node(p, a->node) && (a->target & (p->type == SIM_AGENT ? 1 : 2));
}

/* ---- links and API servers ---- */
static void cut(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < SIM_PROCS; i++) {
        struct sim_proc *p = &w->proc[i];

        if (!hit(p, a))
            continue;
        if (a->what != SIM_F_CUT_DOWN)
            p->link.up_until = base_time_max(p->link.up_until, w->now + a->span);
        if (a->what != SIM_F_CUT_UP)
            p->link.down_until = base_time_max(p->link.down_until, w->now + a->span);
    }
}

static void slow(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < SIM_PROCS; i++) {
        struct sim_proc *p = &w->proc[i];

        if (!hit(p, a))
            continue;
        p->link.slow_until = w->now + a->span;
        p->link.slow_by = a->arg * BASE_MS + 1;
    }
}

static void lag(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    for (int f = 0; f < SIM_FRONTS; f++)
        if (a->arg < 0 || a->arg == f)
            w->lag_until[f][a->target] = base_time_max(w->lag_until[f][a->target], w->now + a->span);
}

static void silent(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < SIM_PROCS; i++)
        for (unsigned c = 0; c < SIM_COLLS && on_node(&w->proc[i], a->node); c++)
            if (w->proc[i].coll[c].kind == (enum contract_kind)a->target)
                w->proc[i].coll[c].silent = w->now + a->span;
}

static void break_streams(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < SIM_PROCS; i++)
        for (unsigned c = 0; c < SIM_COLLS && on_node(&w->proc[i], a->node); c++)
            if (w->proc[i].coll[c].kind)
                sim_coll_break(w, &w->proc[i], c, a->what == SIM_F_BREAK && a->arg == 1);
}

static void gone(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    store_twin_compact(w->twin);
    break_streams(w, a, index);
}

static void front_down(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    for (int f = 0; f < SIM_FRONTS; f++)
        if (a->what == SIM_F_API_DOWN || a->arg == f)
            w->front_down[f] = base_time_max(w->front_down[f], w->now + a->span);
    for (unsigned i = 0; i < SIM_PROCS; i++) {
        struct sim_proc *p = &w->proc[i];

        if (!p->alive || w->now >= w->front_down[p->front])
            continue;
        for (unsigned c = 0; c < SIM_COLLS; c++)
            if (p->coll[c].kind)
                sim_coll_break(w, p, c, false);
        p->front = (p->front + 1) % SIM_FRONTS;
    }
}

/* As contract section 10 asks for: a backup; later every API server down for at least W; the backup put back,
 * with versions that go on. */
static void backup(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_event *e;

    w->backup = store_twin_free(w->backup);
    w->backup = store_twin_snapshot(w->twin);
    if (!w->backup)
        abort();
    e = sim_post(w, w->now + base_time_min(a->arg * BASE_MS, a->span), SIM_EV_ACTION, NULL);
    e->a = index;
    e->b = 2;
}

static void outage(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_act down = {.what = SIM_F_API_DOWN, .node = -1, .client = -1};

    down.span = base_time_max(a->span - a->arg * BASE_MS, 0);
    front_down(w, &down, index);
}

static void restore(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    uint64_t floor = w->rv;

    (void)a, (void)index;
    if (!w->backup || store_twin_restore(w->twin, w->backup))
        return;
    store_twin_bump(w->twin, floor);
    w->rv = floor + 1;
    SIM_SAY(w, "etcd is restored");
    sim_fired(w, SIM_F_RESTORE);
    sim_saw_restore(w);
}

/* ---- agents ---- */
static void crash(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    if (sim_agent_of(w, a->node))
        sim_agent_die(w, sim_agent_of(w, a->node));
}

static void start(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    if (!sim_agent_of(w, a->node))
        sim_agent_start(w, a->node, NULL);
}

static void drain(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_proc *p = sim_agent_of(w, a->node);
    struct session_in in = {.ev = SESSION_EV_DRAIN};

    (void)index;
    if (!p || w->now < p->stopped)
        return;
    p->draining = true;
    sim_agent_feed(w, p, &in);
}

static void drained(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    crash(w, a, index);
    start(w, a, index);
}

/* The process that an action stopped is the one that it lets go on. */
static void stop(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_proc *p = a->what == SIM_F_FND_STOP ? found_of(w, a->node) : sim_agent_of(w, a->node);

    (void)index;
    if (!p || !p->alive)
        return;
    if (a->what != SIM_F_STOP_DATA)
        sim_proc_stop(w, p, w->now + a->span);
    if (a->what == SIM_F_STOP_DATA || a->what == SIM_F_STOP_AGENT)
        sim_data_pause(w, p, w->now + a->span);
}

static void go_on(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    for (unsigned i = 0; i < SIM_PROCS && !w->stop; i++) {
        if (!on_node(&w->proc[i], a->node))
            continue;
        sim_data_resume(w, &w->proc[i]);
        sim_proc_resume(w, &w->proc[i]);
    }
}

static void midstep(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_proc *p = a->what == SIM_F_FND_MIDSTEP ? found_of(w, a->node) : sim_agent_of(w, a->node);

    (void)index;
    if (!p || !p->alive)
        return;
    p->half_wanted = true;
    p->half_until = w->now + a->span;
}

static void midstep_over(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_proc *p = a->what == SIM_F_FND_MIDSTEP ? found_of(w, a->node) : sim_agent_of(w, a->node);

    if (p)
        p->half_wanted = false;
    go_on(w, a, index);
}

/* Stopped whole, a new one started beside it, continued. */
static void beside(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_proc *p = sim_agent_of(w, a->node);
    struct sim_event *e;

    if (!p || !p->alive)
        return;
    sim_proc_stop(w, p, w->now + a->span);
    sim_data_pause(w, p, w->now + a->span);
    e = sim_post(w, w->now + base_time_min(a->arg * BASE_MS, a->span), SIM_EV_ACTION, NULL);
    e->a = index;
    e->b = 2;
}

static void beside_start(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    sim_agent_start(w, a->node, NULL);
}

/* ---- foundations ---- */
static void fnd_crash(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_node *n = &w->node[a->node];

    (void)index;
    sim_found_die(w, found_of(w, a->node));
    if (a->what != SIM_F_FND_EMPTY)
        return;
    /* the maps' pins are gone; what is attached to the devices goes on as it was */
    memset(n->record, 0, sizeof n->record);
    for (unsigned i = 0; i < SIM_GATES; i++)
        n->gate[i].lost = n->gate[i].used;
}

static void fnd_start(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    sim_found_start(w, a->node);
}

/* ---- machines ---- */
static void die_all(struct sim_world *w, int node)
{
    for (unsigned i = 0; i < SIM_PROCS; i++) {
        struct sim_proc *p = &w->proc[i];

        if (!on_node(p, node))
            continue;
        if (p->type == SIM_AGENT)
            sim_agent_die(w, p);
        else
            sim_found_die(w, p);
    }
}

static void power_off(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_node *n = &w->node[a->node];

    (void)index;
    SIM_SAY(w, "%s goes down", n->name);
    die_all(w, a->node);
    n->off = true;
    memset(n->gate, 0, sizeof n->gate);
    memset(n->route, 0, sizeof n->route);
    memset(n->device, 0, sizeof n->device);
}

static void power_on(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_node *n = &w->node[a->node];

    (void)index;
    if (!n->off || n->is_twin)
        return;
    n->off = false;
    sim_kernel_boot(w, a->node);
    SIM_SAY(w, "%s comes up", n->name);
    sim_found_start(w, a->node);
    sim_agent_start(w, a->node, NULL);
}

static void pause_node(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_clock *c = &w->node[a->node].clock;

    (void)index;
    for (unsigned i = 0; i < SIM_PROCS; i++) {
        if (!on_node(&w->proc[i], a->node))
            continue;
        sim_proc_stop(w, &w->proc[i], w->now + a->span);
        sim_data_pause(w, &w->proc[i], w->now + a->span);
    }
    if (a->what == SIM_F_NODE_FREEZE) {
        c->b0 = sim_boot(c, w->now);
        c->t0 = w->now;
        c->frozen = true;
    }
}

static void thaw(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_clock *c = &w->node[a->node].clock;

    if (c->frozen) {
        c->t0 = w->now;
        c->frozen = false;
        w->look = true;
        sim_observe(w);
    }
    go_on(w, a, index);
}

static void wall_step(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    w->node[a->node].clock.wall_off = a->arg;
}

static void clock_rate(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_clock *c = &w->node[a->node].clock;

    (void)index;
    if (c->frozen)
        return;
    c->b0 = sim_boot(c, w->now);
    c->t0 = w->now;
    c->ppm = a->arg;
}

/* Another machine with the name and UID of this one; arg 1: its agent has the same identity, too. */
static void twin(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_node *n = &w->node[a->node], *t;
    struct sim_proc *p = sim_agent_of(w, a->node);
    uint8_t seed[32];
    bool same = a->arg == 1 && p;

    (void)index;
    if (w->nodes == SIM_NODES || n->is_twin)
        return;
    t = &w->node[w->nodes];
    *t = (struct sim_node){.node_uid = n->node_uid, .lease_s = n->lease_s, .is_twin = true};
    (void)base_copy(t->name, sizeof t->name, n->name);
    t->clock = n->clock;
    sim_kernel_boot(w, w->nodes);
    w->nodes++;
    SIM_SAY(w, "a second machine is called %s", t->name);
    w->same_identity |= same;
    if (same)
        memcpy(seed, p->seed, sizeof seed);
    sim_found_start(w, w->nodes - 1);
    sim_agent_start(w, w->nodes - 1, same ? seed : NULL);
}

static void twin_off(struct sim_world *w, int node)
{
    struct sim_act off = {.node = node};

    if (!w->node[node].off)
        power_off(w, &off, 0);
}

/* ---- objects ---- */
/* The claim of a connector's reservation; false: it has none. */
bool sim_claim_name(struct sim_world *w, int client, char name[CONTRACT_NAME_SIZE])
{
    const struct contract_object *o = sim_api_get(w, CONTRACT_BINDING, w->client[client].binding);

    if (!o || !o->u.binding.status.has_prefix)
        return false;
    contract_claim_name(name, &o->u.binding.status.prefix);
    return true;
}

/* A write of somebody who is no process. One that the API server refuses would be a fault that does nothing. */
static void write_as_admin(struct sim_world *w, enum store_op op, const struct contract_object *o)
{
    int rc = sim_api_admin(w, op, o, NULL);

    if (rc)
        sim_fail(w, "sim: an operator's write was refused", "%s %s: %d", contract_kind_name(o->kind),
                 o->u.meta.name, rc);
}

static void erase(struct sim_world *w, enum contract_kind kind, const char *name)
{
    struct contract_object o = {.kind = kind};

    SIM_SAY(w, "operator deletes %s", name);
    (void)sim_api_admin(w, STORE_DELETE, &o, name);
}

static void claim_delete(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    char name[CONTRACT_NAME_SIZE];

    (void)index;
    if (sim_claim_name(w, a->client, name))
        erase(w, CONTRACT_CLAIM, name);
}

static void instance_delete(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    char name[CONTRACT_NAME_SIZE];

    (void)index;
    (void)contract_instance_name(name, "masque", w->node[a->node].name, NULL);
    erase(w, CONTRACT_INSTANCE, name);
}

static void attachment_delete(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    char name[CONTRACT_NAME_SIZE];

    (void)index;
    (void)contract_attachment_name(name, "masque", w->node[a->node].name, "vpc-a", NULL);
    erase(w, CONTRACT_ATTACHMENT, name);
}

static void binding_delete(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    erase(w, CONTRACT_BINDING, w->client[a->client].binding);
}

static void binding_make(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    if (!sim_api_get(w, CONTRACT_BINDING, w->client[a->client].binding))
        sim_make_binding(w, a->client);
}

static void binding_edit(struct sim_world *w, int client, int suspended, int denied)
{
    const struct contract_object *o = sim_api_get(w, CONTRACT_BINDING, w->client[client].binding);

    if (!o)
        return;
    w->tmp = *o;
    if (suspended >= 0)
        w->tmp.u.binding.spec.suspended = suspended;
    if (denied >= 0)
        w->tmp.u.binding.spec.takeover = denied ? CONTRACT_TAKEOVER_DENIED : CONTRACT_TAKEOVER_ALLOWED;
    SIM_SAY(w, "operator edits %s: suspended %d, denied %d", w->client[client].binding,
            w->tmp.u.binding.spec.suspended, (int)w->tmp.u.binding.spec.takeover);
    write_as_admin(w, STORE_UPDATE, &w->tmp);
}

static void suspend(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    binding_edit(w, a->client, 1, -1);
}

static void resume(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    binding_edit(w, a->client, 0, -1);
}

static void deny(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    binding_edit(w, a->client, -1, 1);
}

static void allow(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    binding_edit(w, a->client, -1, 0);
}

static void revoke(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    const struct contract_object *o = sim_api_get(w, CONTRACT_SERVICE, "svc-a");

    (void)a, (void)index;
    if (!o)
        return;
    w->tmp = *o;
    w->tmp.u.service.revoked = true;
    SIM_SAY(w, "authority revokes svc-a");
    write_as_admin(w, STORE_UPDATE, &w->tmp);
}

static void renew_service(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    const struct contract_object *o = sim_api_get(w, CONTRACT_SERVICE, "svc-a");

    (void)a, (void)index;
    if (o && !o->u.service.revoked && !o->u.meta.deleting)
        return;
    if (o)
        erase(w, CONTRACT_SERVICE, "svc-a");
    sim_make_service(w);
}

/* A pool never changes: the service is made again. */
static void pool(struct sim_world *w, bool other)
{
    const struct contract_object *o = sim_api_get(w, CONTRACT_SERVICE, "svc-a");

    if (!o || o->u.service.revoked || o->u.meta.deleting)
        return;
    SIM_SAY(w, "authority gives svc-a %s pool", other ? "another" : "its first");
    w->other_pool = other;
    erase(w, CONTRACT_SERVICE, "svc-a");
    sim_make_service(w);
}

static void pool_move(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)a, (void)index;
    pool(w, true);
}

static void pool_back(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)a, (void)index;
    pool(w, false);
}

static void authority_out(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    w->authority_out = base_time_max(w->authority_out, w->now + a->span);
}

static void drain_note(struct sim_world *w, int node, bool on)
{
    char name[CONTRACT_NAME_SIZE];
    const struct contract_object *o;

    (void)contract_instance_name(name, "masque", w->node[node].name, NULL);
    o = sim_api_get(w, CONTRACT_INSTANCE, name);
    if (!o)
        return;
    w->tmp = *o;
    w->tmp.u.meta.drain = on;
    SIM_SAY(w, "operator %s %s", on ? "drains" : "takes back the drain of", name);
    write_as_admin(w, STORE_UPDATE, &w->tmp);
}

static void operator_drain(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    drain_note(w, a->node, true);
}

static void operator_undrain(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    drain_note(w, a->node, false);
}

/* A row of somebody else at the prefix that this connector would pick. */
static void foreign(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct contract_object *o = &w->tmp;
    struct contract_claim_spec *s = &o->u.claim.spec;
    const struct contract_object *svc = sim_api_get(w, CONTRACT_SERVICE, "svc-a");
    struct base_prefix pool;

    (void)index;
    if (!svc)
        return;
    pool = svc->u.service.pool;
    memset(o, 0, sizeof *o);
    o->kind = CONTRACT_CLAIM;
    s->service.uid = svc->u.meta.uid;
    if (authority_candidate(&s->prefix, "acme", w->client[a->client].connector, "vpc-a", &pool,
                            (uint64_t)a->arg))
        return;
    contract_claim_name(o->u.meta.name, &s->prefix);
    (void)base_copy(s->provider, sizeof s->provider, "masque");
    (void)base_copy(s->tenant, sizeof s->tenant, "acme");
    (void)base_copy(s->vpc, sizeof s->vpc, "vpc-a");
    (void)base_copy(s->connector, sizeof s->connector, "stranger");
    (void)base_copy(s->service.name, sizeof s->service.name, "svc-a");
    s->lease_uuid = sim_uuid(w);
    s->epoch = 1;
    (void)base_copy(s->holder.instance, sizeof s->holder.instance, "masque.far");
    (void)base_copy(s->holder.node, sizeof s->holder.node, "far");
    s->holder.instance_uid = sim_uuid(w);
    s->holder.instance_epoch = 1;
    s->holder.process_id = sim_uuid(w);
    s->holder.boot_id = sim_uuid(w);
    (void)base_copy(s->attachment.name, sizeof s->attachment.name, "masque.far.vpc-a");
    s->attachment.uid = sim_uuid(w);
    s->acquire_time = w->wall0 + w->now / BASE_US;
    s->lease_seconds = s->max_lease_seconds = 30;
    s->correlation.b[0] = 1;
    SIM_SAY(w, "somebody else makes %s", o->u.meta.name);
    (void)sim_api_admin(w, STORE_CREATE, o, NULL);
}

static void lease_change(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    w->node[a->node].lease_s = (int32_t)a->arg;
    crash(w, a, index);
    sim_found_die(w, found_of(w, a->node));
    sim_found_start(w, a->node);
}

/* ---- connectors ---- */
static void move(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    SIM_SAY(w, "%s goes to %s%s", w->client[a->client].connector,
            w->node[a->node < 0 ? w->client[a->client].node : a->node].name,
            a->what == SIM_F_MOVE_QUIET ? " without a word" : "");
    sim_client_move(w, a->client, a->what == SIM_F_RECONNECT ? -1 : a->node, a->what == SIM_F_MOVE_QUIET, 0);
}

static void second(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    struct sim_client *c = &w->client[a->client];

    (void)index;
    if (a->what == SIM_F_TRANSPORT)
        c->transport = c->transport == SESSION_H3 ? SESSION_H2 : SESSION_H3;
    SIM_SAY(w, "%s opens a second connection", c->connector);
    sim_client_again(w, a->client);
}

static void leave(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    w->client[a->client].wants = false;
    sim_client_move(w, a->client, -1, a->arg == 1, 0);
}

static void come_back(struct sim_world *w, const struct sim_act *a, unsigned index)
{
    (void)index;
    if (!w->client[a->client].wants)
        sim_client_start(w, a->client);
}

static const struct {
    act_fn begin, over, middle;
} table[SIM_FAULT_N] = {
    [SIM_F_CUT] = {cut, NULL, NULL},
    [SIM_F_CUT_UP] = {cut, NULL, NULL},
    [SIM_F_CUT_DOWN] = {cut, NULL, NULL},
    [SIM_F_LINK_SLOW] = {slow, NULL, NULL},
    [SIM_F_LAG] = {lag, NULL, NULL},
    [SIM_F_SILENT] = {silent, NULL, NULL},
    [SIM_F_BREAK] = {break_streams, NULL, NULL},
    [SIM_F_GONE] = {gone, NULL, NULL},
    [SIM_F_FRONT_DOWN] = {front_down, NULL, NULL},
    [SIM_F_API_DOWN] = {front_down, NULL, NULL},
    [SIM_F_RESTORE] = {backup, restore, outage},
    [SIM_F_AGENT_CRASH] = {crash, start, NULL},
    [SIM_F_AGENT_DRAIN] = {drain, drained, NULL},
    [SIM_F_STOP_CONTROL] = {stop, go_on, NULL},
    [SIM_F_STOP_DATA] = {stop, go_on, NULL},
    [SIM_F_STOP_AGENT] = {stop, go_on, NULL},
    [SIM_F_STOP_MIDSTEP] = {midstep, midstep_over, NULL},
    [SIM_F_OLD_BESIDE] = {beside, go_on, beside_start},
    [SIM_F_FND_CRASH] = {fnd_crash, fnd_start, NULL},
    [SIM_F_FND_STOP] = {stop, go_on, NULL},
    [SIM_F_FND_MIDSTEP] = {midstep, midstep_over, NULL},
    [SIM_F_FND_EMPTY] = {fnd_crash, fnd_start, NULL},
    [SIM_F_NODE_PAUSE] = {pause_node, go_on, NULL},
    [SIM_F_NODE_FREEZE] = {pause_node, thaw, NULL},
    [SIM_F_REBOOT] = {power_off, power_on, NULL},
    [SIM_F_POWER_OFF] = {power_off, NULL, NULL},
    [SIM_F_WALL_STEP] = {wall_step, NULL, NULL},
    [SIM_F_CLOCK_RATE] = {clock_rate, NULL, NULL},
    [SIM_F_TWIN] = {twin, NULL, NULL},
    [SIM_F_CLAIM_DELETE] = {claim_delete, NULL, NULL},
    [SIM_F_INSTANCE_DELETE] = {instance_delete, NULL, NULL},
    [SIM_F_ATTACHMENT_DELETE] = {attachment_delete, NULL, NULL},
    [SIM_F_BINDING_DELETE] = {binding_delete, binding_make, NULL},
    [SIM_F_BINDING_SUSPEND] = {suspend, resume, NULL},
    [SIM_F_SERVICE_REVOKE] = {revoke, renew_service, NULL},
    [SIM_F_AUTHORITY_OUT] = {authority_out, NULL, NULL},
    [SIM_F_POOL_MOVE] = {pool_move, pool_back, NULL},
    [SIM_F_OPERATOR_DRAIN] = {operator_drain, operator_undrain, NULL},
    [SIM_F_FOREIGN_ROW] = {foreign, NULL, NULL},
    [SIM_F_LEASE_CHANGE] = {lease_change, start, NULL},
    [SIM_F_TAKEOVER_DENIED] = {deny, allow, NULL},
    [SIM_F_MOVE] = {move, NULL, NULL},
    [SIM_F_MOVE_QUIET] = {move, NULL, NULL},
    [SIM_F_RECONNECT] = {move, NULL, NULL},
    [SIM_F_SECOND] = {second, NULL, NULL},
    [SIM_F_TRANSPORT] = {second, NULL, NULL},
    [SIM_F_LEAVE] = {leave, come_back, NULL},
};

void sim_action(struct sim_world *w, unsigned index, unsigned phase)
{
    const struct sim_act *a = &w->plan->act[index];

    if (w->healed || !table[a->what].begin)
        return;
    if (phase == 2) {
        table[a->what].middle(w, a, index);
        return;
    }
    if (phase == 1) {
        SIM_SAY(w, "over: %s", sim_fault_name(a->what));
        table[a->what].over(w, a, index);
        return;
    }
    SIM_SAY(w, "fault: %s node %d client %d for %.3f s", sim_fault_name(a->what), a->node + 1, a->client + 1,
            (double)a->span / 1e9);
    if (a->what != SIM_F_RESTORE) /* that one counts when it is done */
        sim_fired(w, a->what);
    table[a->what].begin(w, a, index);
    if (table[a->what].over) {
        struct sim_event *e = sim_post(w, w->now + a->span, SIM_EV_ACTION, NULL);

        e->a = index;
        e->b = 1;
    }
}

/* ---- the end of all faults ---- */
static void heal_processes(struct sim_world *w)
{
    for (unsigned i = 0; i < SIM_PROCS; i++) {
        struct sim_proc *p = &w->proc[i];

        p->link = (struct sim_link){.up_until = 0};
        p->half_wanted = false;
        p->audit_fails = 0;
        if (p->stopped)
            p->stopped = w->now;
        if (p->data_stopped)
            p->data_stopped = w->now;
        for (unsigned c = 0; c < SIM_COLLS && p->alive; c++) {
            if (p->coll[c].silent > w->now) {
                p->coll[c].silent = 0;
                sim_coll_break(w, p, c, false);
            }
        }
    }
    for (int n = 0; n < w->nodes; n++) {
        struct sim_act a = {.node = n};

        if (w->node[n].is_twin) {
            twin_off(w, n);
            continue;
        }
        for (unsigned i = 0; i < SIM_AGENTS; i++)
            if (on_node(&w->proc[i], n) && (i != w->node[n].agent || w->proc[i].draining))
                sim_agent_die(w, &w->proc[i]);
        thaw(w, &a, 0);
        power_on(w, &a, 0);
        sim_found_start(w, n);
        start(w, &a, 0);
        drain_note(w, n, false);
    }
}

void sim_heal(struct sim_world *w)
{
    struct sim_act none = {.node = -1};

    SIM_SAY(w, "---- the faults stop ----");
    memset(w->lag_until, 0, sizeof w->lag_until);
    memset(w->lag_by, 0, sizeof w->lag_by);
    memset(w->front_down, 0, sizeof w->front_down);
    w->authority_out = 0;
    heal_processes(w);
    w->healed = w->now;
    renew_service(w, &none, 0);
    sim_authority(w);
    for (int i = 0; i < w->plan->clients; i++) {
        struct sim_act a = {.client = i};

        binding_make(w, &a, 0);
        binding_edit(w, i, 0, 0);
        w->client[i].roams = false;
        come_back(w, &a, 0);
    }
    sim_post(w, w->now + BASE_SEC, SIM_EV_CHECK, NULL);
}

void sim_authority(struct sim_world *w)
{
    const struct contract_object *o = sim_api_get(w, CONTRACT_SERVICE, "svc-a");

    if (o && !o->u.service.revoked && !o->u.meta.deleting && w->now >= w->authority_out) {
        w->tmp = *o;
        w->tmp.u.service.valid_until = w->wall0 + w->now / BASE_US + w->plan->valid_s * INT64_C(1000000);
        write_as_admin(w, STORE_UPDATE, &w->tmp);
    }
}
