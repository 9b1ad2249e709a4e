/* SPDX-License-Identifier: Apache-2.0
 *
 * The one event queue, ordered by (time, sequence), and the world's memory: objects and requests come from
 * lists by kind, so that a run takes nothing from the heap once it is warm.
 */
#include "sim.h"

#include <stdlib.h>

#define BLOCK ((size_t)256 * 1024)

/* ---- queue ---- */
static void *grown(void *p, size_t n, size_t size)
{
    p = base_realloc(p, n * size);
    if (!p)
        abort(); /* a test program without memory has nothing to say */
    return p;
}

static void grow(struct sim_world *w)
{
    size_t cap = w->cap_heap ? w->cap_heap * 2 : 1024;

    w->heap = grown(w->heap, cap, sizeof *w->heap);
    w->events = grown(w->events, cap, sizeof *w->events);
    w->free_slots = grown(w->free_slots, cap, sizeof *w->free_slots);
    for (size_t i = w->cap_heap; i < cap; i++)
        w->free_slots[i] = (uint32_t)i;
    w->cap_heap = cap;
}

/* Borrowed until the next one is posted. */
struct sim_event *sim_post(struct sim_world *w, base_time at, enum sim_ev kind, const struct sim_proc *to)
{
    struct sim_event *ev;
    struct sim_slot e;
    size_t i = w->n_heap;

    at = at < w->now ? w->now : at;
    e.key = (unsigned __int128)(uint64_t)at << 64 | ++w->seq;

    if (w->n_heap == w->cap_heap)
        grow(w);
    e.slot = w->free_slots[w->n_heap++];
    while (i > 0 && e.key < w->heap[(i - 1) / 4].key) {
        w->heap[i] = w->heap[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    w->heap[i] = e;
    ev = &w->events[e.slot];
    *ev = (struct sim_event){.at = at, .seq = w->seq, .kind = kind};
    if (to) {
        ev->proc = to->index;
        ev->serial = to->serial;
    }
    return ev;
}

bool sim_next(struct sim_world *w, struct sim_event *ret)
{
    struct sim_slot last;
    size_t i = 0;

    if (w->n_heap == 0)
        return false;
    *ret = w->events[w->heap[0].slot];
    last = w->heap[--w->n_heap];
    w->free_slots[w->n_heap] = w->heap[0].slot;
    for (;;) {
        size_t first = 4 * i + 1, c = first;

        if (first >= w->n_heap)
            break;
        for (size_t k = first + 1; k < first + 4 && k < w->n_heap; k++)
            if (w->heap[k].key < w->heap[c].key)
                c = k;
        if (w->heap[c].key >= last.key)
            break;
        w->heap[i] = w->heap[c];
        i = c;
    }
    if (w->n_heap)
        w->heap[i] = last;
    return true;
}

/* ---- memory ---- */
struct sim_block {
    struct sim_block *next;
    size_t used;
    _Alignas(16) char data[BLOCK];
};

static void *take(struct sim_world *w, size_t size)
{
    struct sim_block *b = w->blocks;

    size = (size + 15) & ~(size_t)15;
    if (!b || b->used + size > BLOCK) {
        b = malloc(sizeof *b);
        if (!b)
            abort();
        b->next = w->blocks;
        b->used = 0;
        w->blocks = b;
    }
    b->used += size;
    return b->data + b->used - size;
}

struct contract_object *sim_object(struct sim_world *w, const struct contract_object *src)
{
    void **list = &w->unused[src->kind];
    void *o = *list;

    if (o)
        memcpy(list, o, sizeof *list);
    else
        o = take(w, contract_object_size(src->kind));
    memcpy(o, src, contract_object_size(src->kind));
    return o;
}

void sim_object_free(struct sim_world *w, struct contract_object *o)
{
    void **list;

    if (!o)
        return;
    list = &w->unused[o->kind];
    memcpy(o, list, sizeof *list);
    *list = o;
}

struct sim_req *sim_req_new(struct sim_world *w)
{
    void **list = &w->unused[CONTRACT_KIND_N];
    struct sim_req *r = *list;

    if (r)
        memcpy(list, r, sizeof *list);
    else
        r = take(w, sizeof *r);
    memset(r, 0, sizeof *r);
    r->refs = 1;
    return r;
}

void sim_req_drop(struct sim_world *w, struct sim_req *r)
{
    if (!r || --r->refs > 0)
        return;
    sim_object_free(w, r->object);
    if (r->n_objects == 1 && r->op != STORE_LIST)
        sim_object_free(w, r->objects);
    else
        free(r->objects);
    memcpy(r, &w->unused[CONTRACT_KIND_N], sizeof(void *));
    w->unused[CONTRACT_KIND_N] = r;
}

void sim_clear(struct sim_world *w)
{
    for (size_t i = 0; i < w->n_heap; i++) {
        struct sim_event *e = &w->events[w->heap[i].slot];

        sim_req_drop(w, e->req);
        sim_object_free(w, e->object);
        w->free_slots[i] = w->heap[i].slot;
    }
    w->n_heap = 0;
}

void sim_memory_fini(struct sim_world *w)
{
    while (w->blocks) {
        struct sim_block *b = w->blocks;

        w->blocks = b->next;
        free(b);
    }
    base_free(w->heap);
    base_free(w->events);
    base_free(w->free_slots);
    w->heap = NULL;
    w->events = NULL;
    w->free_slots = NULL;
}
