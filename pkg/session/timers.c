/* SPDX-License-Identifier: Apache-2.0
 *
 * session/timers.c - when to look at what: a heap of wake times, a ring of entities with work to do, and the
 * map from flows to connectors. All sizes are fixed at the start.
 */
#include "session/int.h"

#include "base/mem.h"

#define NOWHERE 0 /* places are counted from 1: memory as it was taken says that nothing is waited for */

int session_timers_init(struct session_timers *t, uint32_t n)
{
    t->n = n;
    t->heap = base_calloc(n, sizeof *t->heap);
    t->pos = base_calloc(n, sizeof *t->pos);
    t->at = base_calloc(n, sizeof *t->at);
    t->queue = base_calloc(n, sizeof *t->queue);
    t->queued = base_calloc(n, sizeof *t->queued);
    if (!t->heap || !t->pos || !t->at || !t->queue || !t->queued)
        return BASE_ENOMEM;
    return BASE_OK;
}

void session_timers_fini(struct session_timers *t)
{
    base_free(t->heap);
    base_free(t->pos);
    base_free(t->at);
    base_free(t->queue);
    base_free(t->queued);
}

static void place(struct session_timers *t, uint32_t i, uint32_t entity)
{
    t->heap[i] = entity;
    t->pos[entity] = i + 1;
}

static void up(struct session_timers *t, uint32_t i)
{
    uint32_t e = t->heap[i];
    while (i > 0) {
        uint32_t parent = (i - 1) / 2;
        if (t->at[t->heap[parent]] <= t->at[e])
            break;
        place(t, i, t->heap[parent]);
        i = parent;
    }
    place(t, i, e);
}

static void down(struct session_timers *t, uint32_t i)
{
    uint32_t e = t->heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= t->n_heap)
            break;
        if (child + 1 < t->n_heap && t->at[t->heap[child + 1]] < t->at[t->heap[child]])
            child++;
        if (t->at[e] <= t->at[t->heap[child]])
            break;
        place(t, i, t->heap[child]);
        i = child;
    }
    place(t, i, e);
}

void session_timer_set(struct session_timers *t, uint32_t entity, base_time at)
{
    if (t->pos[entity] == NOWHERE ? at == BASE_TIME_NEVER : t->at[entity] == at)
        return;
    base_time before = t->at[entity];
    t->at[entity] = at;
    bool in = t->pos[entity] != NOWHERE;
    uint32_t i = t->pos[entity] - 1;
    if (at == BASE_TIME_NEVER) {
        uint32_t last = t->heap[--t->n_heap];
        t->pos[entity] = NOWHERE;
        if (last != entity) {
            place(t, i, last);
            up(t, i);
            down(t, t->pos[last] - 1);
        }
        return;
    }
    if (!in) {
        place(t, t->n_heap++, entity);
        up(t, t->n_heap - 1);
    } else if (at < before) {
        up(t, i);
    } else {
        down(t, i);
    }
}

base_time session_timer_first(const struct session_timers *t, uint32_t *ret_entity)
{
    if (t->n_heap == 0)
        return BASE_TIME_NEVER;
    if (ret_entity)
        *ret_entity = t->heap[0];
    return t->at[t->heap[0]];
}

bool session_timers_ok(const struct session_timers *t)
{
    for (uint32_t i = 0; i < t->n_heap; i++) {
        if (t->pos[t->heap[i]] != i + 1)
            return false;
        if (i > 0 && t->at[t->heap[(i - 1) / 2]] > t->at[t->heap[i]])
            return false;
    }
    return t->q_n <= t->n;
}

void session_dirty(struct session_core *c, uint32_t entity)
{
    struct session_timers *t = &c->timers;
    if (t->queued[entity])
        return;
    t->queued[entity] = 1;
    t->queue[(t->q_head + t->q_n++) % t->n] = entity;
}

uint32_t session_undirty(struct session_core *c)
{
    struct session_timers *t = &c->timers;
    if (t->q_n == 0)
        return UINT32_MAX;
    uint32_t entity = t->queue[t->q_head];
    t->q_head = (t->q_head + 1) % t->n;
    t->q_n--;
    t->queued[entity] = 0;
    return entity;
}

/* ---- flows */
static uint32_t home(const struct session_flows *f, uint64_t flow)
{
    return (uint32_t)((flow * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & f->mask;
}

int session_flows_init(struct session_flows *f, uint32_t n)
{
    uint32_t size = 64;
    while (size < n * 2 + n / 2) /* at most two flows for each connector, and seldom more than one */
        size *= 2;
    f->mask = size - 1;
    f->slot = base_calloc(size, sizeof *f->slot);
    return f->slot ? BASE_OK : BASE_ENOMEM;
}

void session_flows_fini(struct session_flows *f)
{
    base_free(f->slot);
}

void session_flow_put(struct session_flows *f, uint64_t flow, uint32_t conn)
{
    uint32_t i = home(f, flow);
    while (f->slot[i].flow != 0) /* nobody puts one twice (legal, core.c) */
        i = (i + 1) & f->mask;
    f->slot[i] = (struct session_flow){.flow = flow, .conn = conn};
}

uint32_t session_flow_find(const struct session_flows *f, uint64_t flow)
{
    for (uint32_t i = home(f, flow); f->slot[i].flow != 0; i = (i + 1) & f->mask)
        if (f->slot[i].flow == flow)
            return f->slot[i].conn;
    return UINT32_MAX;
}

void session_flow_drop(struct session_flows *f, uint64_t flow)
{
    uint32_t i = home(f, flow);
    while (f->slot[i].flow != flow) {
        if (f->slot[i].flow == 0)
            return;
        i = (i + 1) & f->mask;
    }
    f->slot[i].flow = 0;
    for (uint32_t k = (i + 1) & f->mask; f->slot[k].flow != 0; k = (k + 1) & f->mask) {
        uint32_t h = home(f, f->slot[k].flow);
        if (((k - h) & f->mask) >= ((k - i) & f->mask)) { /* its search would pass the hole */
            f->slot[i] = f->slot[k];
            f->slot[k].flow = 0;
            i = k;
        }
    }
}
