/* SPDX-License-Identifier: Apache-2.0
 *
 * The data thread of an agent. A fence slot is memory: control's store is seen at once, whatever the thread
 * does. A thread that stands still forwards nothing; when it goes on, one burst that it had checked before
 * leaves at once (the kernel gate is what stops it), and after a gap it holds everything until control has
 * heard of it.
 */
#include "sim.h"

#define GAP (500 * BASE_MS)

struct sim_flow *sim_flow_find(struct sim_world *w, uint64_t flow)
{
    for (unsigned i = 0; flow && i < w->high_flow; i++)
        if (w->flow[i].flow == flow)
            return &w->flow[i];
    return NULL;
}

static struct sim_flow *own(struct sim_world *w, const struct sim_proc *p, uint64_t flow)
{
    struct sim_flow *f = sim_flow_find(w, flow);

    return f && f->proc == p->index && f->serial == p->serial ? f : NULL;
}

static struct sim_tun *tun_of(struct sim_world *w, const struct sim_proc *p, uint32_t id)
{
    for (unsigned i = 0; id && i < BASE_LEN(w->tun); i++)
        if (w->tun[i].tun_id == id && w->tun[i].proc == p->index && w->tun[i].serial == p->serial)
            return &w->tun[i];
    return NULL;
}

static base_time running(const struct sim_world *w, const struct sim_proc *p)
{
    return base_time_max(w->now, p->data_stopped);
}

static bool device_alive(const struct sim_node *n, uint32_t serial)
{
    for (unsigned i = 0; i < SIM_DEVICES; i++)
        if (n->device[i].serial == serial)
            return serial != 0;
    return false;
}

/* Would a packet of it get into the VPC now? */
bool sim_passes(const struct sim_world *w, const struct sim_flow *f)
{
    const struct sim_proc *p = &w->proc[f->proc];
    const struct sim_node *n = &w->node[p->node];
    base_time now;

    if (!f->flow || !f->admitted || f->deadline <= 0 || !p->alive || p->serial != f->serial ||
        w->now < p->data_stopped || p->data_held || !f->tun_id)
        return false;
    now = sim_boot(&n->clock, w->now);
    return f->deadline > now && device_alive(n, f->device) &&
           sim_gate_of(n, f->device, &f->prefix, NULL) > now;
}

void sim_data_admit(struct sim_world *w, struct sim_proc *p, const struct session_fx *fx)
{
    struct sim_flow *f = own(w, p, fx->u.admit.flow);
    struct sim_tun *t = tun_of(w, p, fx->u.admit.tun_id);
    base_time was;

    if (!f || f->ended)
        return; /* it has ended meanwhile: reported */
    f->admitted = true;
    f->generation = fx->u.admit.generation;
    f->prefix = fx->u.admit.prefix;
    f->tun_id = t ? fx->u.admit.tun_id : 0;
    f->device = t ? t->device : 0;
    was = f->deadline;
    if (f->deadline != -1)
        f->deadline = fx->u.admit.deadline;
    w->look = true;
    w->res.admits++;
    SIM_SAY(w, "%s agent%u admits flow %llu of %s, fence %.3f s", w->node[p->node].name, p->serial,
            (unsigned long long)f->flow, w->client[f->client].connector,
            (double)(f->deadline - sim_node_now(w, p->node)) / 1e9);
    sim_saw_admit(w, p, f);
    sim_saw_fence(w, p, f, was);
    sim_post(w, running(w, p) + 2 * BASE_MS, SIM_EV_REPLY, NULL)->a = f->flow;
}

void sim_data_fence(struct sim_world *w, struct sim_proc *p, uint64_t flow, base_time deadline)
{
    struct sim_flow *f = own(w, p, flow);
    base_time was;

    if (!f)
        return;
    was = f->deadline;
    if (deadline == -1 || f->deadline != -1)
        f->deadline = deadline;
    if (deadline > 0)
        w->look = true;
    if (f->deadline > was)
        sim_saw_fence(w, p, f, was);
}

void sim_data_stop(struct sim_world *w, struct sim_proc *p, uint64_t flow)
{
    struct sim_flow *f = own(w, p, flow);
    base_time at = running(w, p) + 100 * BASE_US;

    if (!f) { /* nothing was ever admitted: the barrier holds */
        sim_post(w, w->now, SIM_EV_STOPPED, p)->a = flow;
        return;
    }
    f->deadline = -1;
    if (f->stopping)
        return;
    f->stopping = true;
    sim_lived(w, f->client, SIM_LIVED_STOP, f->epoch);
    w->res.others[f->client].ended++;
    if (!f->ended) /* not its own wish */
        w->res.others[f->client].lost++;
    SIM_SAY(w, "%s agent%u stops flow %llu", w->node[p->node].name, p->serial, (unsigned long long)flow);
    if (!w->healed && sim_chance(p, w->plan->rate[SIM_F_BARRIER_LATE])) {
        sim_fired(w, SIM_F_BARRIER_LATE);
        at += (base_time)sim_draw(p, 3 * BASE_SEC);
    }
    sim_post(w, at, SIM_EV_STOPPED, p)->a = flow;
}

void sim_data_close(struct sim_world *w, struct sim_proc *p, uint64_t flow)
{
    struct sim_flow *f = own(w, p, flow);

    if (!f || f->closed)
        return;
    f->closed = true;
    sim_client_lost(w, flow);
}

void sim_data_tun_open(struct sim_world *w, struct sim_proc *p, const struct session_fx *fx)
{
    struct sim_node *n = &w->node[p->node];
    struct sim_event *e;
    int code = BASE_EDENIED; /* there is no such device */

    for (unsigned i = 0; i < SIM_DEVICES && code; i++) {
        if (!n->device[i].serial || strcmp(n->device[i].name, fx->u.tun.device) != 0)
            continue;
        for (unsigned k = 0; k < BASE_LEN(w->tun); k++) {
            if (w->tun[k].tun_id)
                continue;
            w->tun[k] = (struct sim_tun){p->index, p->serial, fx->u.tun.tun_id, n->device[i].serial, ""};
            (void)base_copy(w->tun[k].name, sizeof w->tun[k].name, fx->u.tun.device);
            code = BASE_OK;
            break;
        }
    }
    if (!w->healed && sim_chance(p, w->plan->rate[SIM_F_TUN_FAIL])) {
        sim_fired(w, SIM_F_TUN_FAIL);
        sim_data_tun_close(w, p, fx->u.tun.tun_id);
        code = BASE_EIO;
    }
    e = sim_post(w, running(w, p) + 300 * BASE_US, SIM_EV_TUN, p);
    e->a = fx->u.tun.tun_id;
    e->b = (uint64_t)-code;
}

void sim_data_tun_close(struct sim_world *w, struct sim_proc *p, uint32_t tun_id)
{
    struct sim_tun *t = tun_of(w, p, tun_id);

    for (unsigned i = 0; t && i < SIM_FLOWS; i++)
        if (w->flow[i].flow && w->flow[i].proc == p->index && w->flow[i].serial == p->serial &&
            w->flow[i].tun_id == tun_id)
            w->flow[i].tun_id = 0;
    if (t)
        t->tun_id = 0;
}

void sim_data_pause(struct sim_world *w, struct sim_proc *p, base_time until)
{
    base_time now = sim_node_now(w, p->node);

    if (!p->alive)
        return;
    if (w->now >= p->data_stopped)
        p->data_since = w->now;
    p->data_stopped = base_time_max(p->data_stopped, until);
    for (unsigned i = 0; i < SIM_FLOWS; i++) {
        struct sim_flow *f = &w->flow[i];

        if (f->flow && f->proc == p->index && f->serial == p->serial && f->admitted && f->deadline > now)
            f->burst = true; /* checked, not yet written */
    }
}

static void burst(struct sim_world *w, struct sim_proc *p, struct sim_flow *f)
{
    base_time fence = f->deadline, now = sim_node_now(w, p->node);
    bool held = p->data_held;

    f->burst = false;
    if (!f->tun_id)
        return;
    f->deadline = now + 1; /* its fence was looked at before the stop */
    p->data_held = false;
    w->look = true;
    sim_observe(w);
    f->deadline = fence;
    p->data_held = held;
}

void sim_data_resume(struct sim_world *w, struct sim_proc *p)
{
    base_time gap = w->now - p->data_since;

    if (!p->alive || w->now < p->data_stopped || !p->data_stopped)
        return;
    p->data_stopped = 0;
    for (unsigned i = 0; i < SIM_FLOWS && !w->stop; i++) {
        struct sim_flow *f = &w->flow[i];

        if (f->flow && f->burst && f->proc == p->index && f->serial == p->serial)
            burst(w, p, f);
    }
    if (gap > GAP) {
        p->data_held = true;
        sim_post(w, w->now, SIM_EV_GAP, p)->a = (uint64_t)sim_node_now(w, p->node);
    }
    w->look = true;
}
