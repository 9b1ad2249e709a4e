/* SPDX-License-Identifier: Apache-2.0
 *
 * Connectors: each wants one session on the node of its plan, asks again after a refusal, moves when the plan
 * says so, and may leave its old session behind without a word.
 */
#include "sim.h"

#define HOP (1 * BASE_MS)
#define QUIET_IDLE (30 * BASE_SEC) /* the agent's idle time-out for a session that was left behind */

static uint64_t draw(struct sim_client *c, uint64_t n)
{
    struct base_prng g = {c->prng};
    uint64_t v = base_prng_below(&g, n);

    c->prng = g.state;
    return v;
}

static void again(struct sim_world *w, int i, base_time after)
{
    struct sim_event *e = sim_post(w, w->now + after, SIM_EV_CLIENT, NULL);

    e->a = (uint64_t)i;
    e->b = ++w->client[i].try_seq;
}

void sim_client_start(struct sim_world *w, int i)
{
    struct sim_client *c = &w->client[i];

    c->wants = true;
    again(w, i, 10 * BASE_MS + (base_time)draw(c, 100 * BASE_MS));
}

static struct sim_flow *new_flow(struct sim_world *w)
{
    for (unsigned i = 0; i < SIM_FLOWS; i++) {
        struct sim_flow *f = &w->flow[i];

        if (f->flow)
            continue;
        *f = (struct sim_flow){.flow = ++w->flows};
        if (i >= w->high_flow)
            w->high_flow = i + 1;
        return f;
    }
    return NULL;
}

void sim_client_try(struct sim_world *w, struct sim_event *ev)
{
    int i = (int)ev->a;
    struct sim_client *c = &w->client[i];
    struct sim_proc *p = sim_agent_of(w, c->node);
    struct sim_flow *f;
    struct sim_event *e;

    if (ev->b != c->try_seq || !c->wants || c->state != SIM_CLIENT_IDLE)
        return;
    if (w->node[c->node].off || !p || w->now < p->data_stopped) {
        if (c->roams)
            c->node = (c->node + 1) % w->plan->nodes;
        again(w, i, 300 * BASE_MS + (base_time)draw(c, 200 * BASE_MS));
        return;
    }
    f = new_flow(w);
    if (!f) {
        again(w, i, BASE_SEC);
        return;
    }
    f->proc = p->index;
    f->serial = p->serial;
    f->client = i;
    f->transport = c->transport;
    c->state = SIM_CLIENT_ASKING;
    c->flow = f->flow;
    e = sim_post(w, w->now + HOP, SIM_EV_REQUEST, p);
    e->a = f->flow;
    e->b = (uint64_t)i;
    e = sim_post(w, w->now + 20 * BASE_SEC, SIM_EV_LOST, NULL); /* it does not wait for ever */
    e->a = f->flow;
    e->b = 1;
}

/* The agent's answer is on its way. */
void sim_refuse(struct sim_world *w, struct sim_proc *p, uint64_t flow, int status, unsigned retry_after,
                const char *why)
{
    struct sim_event *e = sim_post(w, base_time_max(w->now, p->data_stopped) + HOP, SIM_EV_REPLY, NULL);

    (void)why;
    e->a = flow;
    e->b = (uint64_t)status | (uint64_t)retry_after << 16;
}

static void end_flow(struct sim_world *w, struct sim_flow *f, base_time after)
{
    struct sim_proc *p = sim_proc_of(w, f->proc, f->serial);

    if (f->ended)
        return;
    f->ended = true;
    if (p)
        sim_post(w, base_time_max(w->now + after, p->data_stopped), SIM_EV_ENDED, p)->a = f->flow;
}

void sim_client_reply(struct sim_world *w, struct sim_event *ev)
{
    struct sim_flow *f = sim_flow_find(w, ev->a);
    struct sim_client *c;
    int status = (int)(ev->b & 0xffff);
    unsigned retry = (unsigned)(ev->b >> 16);

    if (!f)
        return;
    c = &w->client[f->client];
    if (status == 0) {
        if (c->flow == f->flow)
            c->state = SIM_CLIENT_OPEN;
        else
            end_flow(w, f, HOP); /* it does not want this one any more */
        return;
    }
    c->refusals++;
    if (c->flow == f->flow) {
        c->flow = 0;
        c->state = SIM_CLIENT_IDLE;
        if (c->roams && status == 503)
            c->node = (c->node + 1) % w->plan->nodes;
        again(w, f->client,
              status == 503 ? base_time_min((base_time)retry * BASE_SEC, BASE_SEC) + 200 * BASE_MS +
                                  (base_time)draw(c, 200 * BASE_MS)
                            : BASE_SEC);
    }
    f->flow = 0; /* nothing was ever admitted for it */
}

/* Its flow is gone: the agent closed it, or died. */
void sim_client_lost(struct sim_world *w, uint64_t flow)
{
    struct sim_event *e = sim_post(w, w->now + HOP, SIM_EV_LOST, NULL);

    e->a = flow;
    for (int i = 0; i < w->plan->clients; i++)
        if (w->client[i].flow == flow)
            e->b = (uint64_t)(i + 1) << 8;
}

void sim_client_gone(struct sim_world *w, struct sim_event *ev)
{

    struct sim_flow *f = sim_flow_find(w, ev->a);
    int i = f ? f->client : (int)(ev->b >> 8) - 1;
    struct sim_client *c;

    if (i < 0)
        return;
    c = &w->client[i];
    if ((ev->b & 0xff) == 1 && (c->flow != ev->a || c->state != SIM_CLIENT_ASKING))
        return;
    if (f)
        end_flow(w, f, HOP);
    if (c->flow != ev->a)
        return;
    c->flow = 0;
    c->state = SIM_CLIENT_IDLE;
    if (c->wants)
        again(w, i, 50 * BASE_MS + (base_time)draw(c, 100 * BASE_MS));
}

/* Goes to another node (or stays, when node < 0). Quietly: the old session hears nothing. */
void sim_client_move(struct sim_world *w, int i, int node, bool quietly, enum session_transport t)
{
    struct sim_client *c = &w->client[i];
    struct sim_flow *f = sim_flow_find(w, c->flow);

    if (node >= 0)
        c->node = node;
    if (t)
        c->transport = t;
    if (f)
        end_flow(w, f, quietly ? QUIET_IDLE : HOP);
    c->flow = 0;
    c->state = SIM_CLIENT_IDLE;
    if (c->wants)
        again(w, i, HOP);
}

void sim_client_again(struct sim_world *w, int i)
{
    struct sim_client *c = &w->client[i];

    /* the first one stays open: the agent has to end it */
    c->flow = 0;
    c->state = SIM_CLIENT_IDLE;
    if (c->wants)
        again(w, i, HOP);
}
