/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes: they run, stand still, die. What reaches one that stands still waits, in order, as it would in
 * sockets, rings and timers; what is for one that has died goes nowhere.
 */
#include "sim.h"

#include <stdlib.h>

struct sim_proc *sim_proc_of(struct sim_world *w, uint32_t index, uint32_t serial)
{
    struct sim_proc *p = &w->proc[index];

    return p->alive && p->serial == serial ? p : NULL;
}

void sim_wake(struct sim_world *w, struct sim_proc *p, base_time wake_at)
{
    base_time at;

    if (wake_at == BASE_TIME_NEVER) {
        p->wake_real = BASE_TIME_NEVER;
        return;
    }
    at = base_time_max(sim_real(&w->node[p->node].clock, wake_at), w->now);
    if (at == p->wake_real)
        return;
    p->wake_real = at;
    sim_post(w, at, SIM_EV_TICK, p);
    p->wake_seq = w->seq;
}

/* One event for its core and no more: lists, for example, are many. */
static bool is_single(const struct sim_event *ev)
{
    switch ((int)ev->kind) {
    case SIM_EV_ANSWER:
    case SIM_EV_TIMEOUT:
        return ev->req->what == SIM_FOR_CORE;
    case SIM_EV_BOOKMARK:
    case SIM_EV_STREAM:
    case SIM_EV_PROOF:
        return false;
    default:
        return true;
    }
}

static void deliver(struct sim_world *w, struct sim_proc *p, struct sim_event *ev)
{
    p->half_may = is_single(ev);
    if (p->type == SIM_AGENT)
        sim_agent_event(w, p, ev);
    else
        sim_found_event(w, p, ev);
}

static void drop(struct sim_world *w, struct sim_event *ev)
{
    sim_req_drop(w, ev->req);
    sim_object_free(w, ev->object);
}

static void keep(struct sim_proc *p, const struct sim_event *ev)
{
    if (p->n_inbox == p->cap_inbox) {
        unsigned cap = p->cap_inbox ? p->cap_inbox * 2 : 64;
        void *q = base_realloc(p->inbox, cap * sizeof *p->inbox);

        if (!q)
            abort();
        p->inbox = q;
        p->cap_inbox = cap;
    }
    p->inbox[p->n_inbox++] = *ev;
}

void sim_proc_event(struct sim_world *w, struct sim_event *ev)
{
    struct sim_proc *p = sim_proc_of(w, ev->proc, ev->serial);

    if (!p) {
        drop(w, ev);
        return;
    }
    if (ev->kind == SIM_EV_TICK && ev->seq != p->wake_seq)
        return; /* it is wanted at another time by now */
    if (w->now < p->stopped || p->half) {
        if (ev->kind == SIM_EV_TICK)
            p->tick_due = true;
        else
            keep(p, ev);
        return;
    }
    if (ev->kind == SIM_EV_TICK)
        p->wake_real = BASE_TIME_NEVER;
    deliver(w, p, ev);
    drop(w, ev);
}

/* Control, or the one thread of a foundation. `until` is absolute; the resuming is an event of the plan. */
void sim_proc_stop(struct sim_world *w, struct sim_proc *p, base_time until)
{
    if (!p->alive)
        return;
    p->stopped = base_time_max(p->stopped, until);
    (void)w;
}

/* It may stand still again while it works off what waited (SIM_F_*_MIDSTEP): the rest then waits on, before
 * what comes later. */
void sim_proc_resume(struct sim_world *w, struct sim_proc *p)
{
    uint32_t serial = p->serial;
    unsigned n = p->n_inbox, i;
    struct sim_event *inbox = p->inbox;

    if (!p->alive || w->now < p->stopped || !p->stopped)
        return;
    p->stopped = 0;
    p->inbox = NULL;
    p->n_inbox = p->cap_inbox = 0;
    if (p->half) {
        if (p->type == SIM_AGENT)
            sim_agent_event(w, p, NULL);
        else
            sim_found_event(w, p, NULL);
    }
    if (p->tick_due && p->alive && p->serial == serial && !p->half) {
        struct sim_event tick = {.at = w->now, .kind = SIM_EV_TICK, .proc = p->index, .serial = serial};

        p->tick_due = false;
        p->wake_real = BASE_TIME_NEVER;
        deliver(w, p, &tick);
    }
    for (i = 0; i < n && !p->half; i++) {
        if (p->alive && p->serial == serial)
            deliver(w, p, &inbox[i]);
        drop(w, &inbox[i]);
    }
    for (; i < n; i++)
        keep(p, &inbox[i]);
    base_free(inbox);
}

/* The slot is free again. */
void sim_proc_free(struct sim_world *w, struct sim_proc *p)
{
    for (unsigned i = 0; i < p->n_inbox; i++)
        drop(w, &p->inbox[i]);
    base_free(p->inbox);
    free(p->half);
    p->inbox = NULL;
    p->half = NULL;
    p->n_inbox = p->cap_inbox = 0;
    for (unsigned i = 0; p->core && i < SESSION_CELL_WORDS; i++)
        w->res.cells[i] |= session_core_cells(p->core)[i];
    p->core = session_core_free(p->core);
    p->fnd = fnd_core_free(p->fnd);
    p->alive = false;
    p->stopped = 0;
    for (unsigned i = 0; i < SIM_COLLS; i++)
        p->coll[i] = (struct sim_coll){.open = false};
}
