/* SPDX-License-Identifier: Apache-2.0
 *
 * The one event queue, ordered by (time, sequence), and the world's memory: objects and requests come from
 * lists by kind, so that a run takes nothing from the heap once it is warm.
 */
#include "sim.h"

#include <stddef.h>
#include <stdlib.h>

#define BLOCK ((size_t)256 * 1024)

/* ---- queue ---- */
static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

struct sim_event *sim_post(struct sim_world *w, base_time at, enum sim_ev kind, const struct sim_proc *to)
{
    struct sim_event e = {.at = at < w->now ? w->now : at, .seq = ++w->seq, .kind = kind};
    size_t i = w->n_heap;

    if (to) {
        e.proc = to->index;
        e.serial = to->serial;
    }
    if (w->n_heap == w->cap_heap) {
        size_t cap = w->cap_heap ? w->cap_heap * 2 : 1024;
        void *p = base_realloc(w->heap, cap * sizeof *w->heap);

        if (!p)
            abort(); /* a test program without memory has nothing to say */
        w->heap = p;
        w->cap_heap = cap;
    }
    w->n_heap++;
    while (i > 0 && before(&e, &w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = e;
    return &w->heap[i];
}

bool sim_next(struct sim_world *w, struct sim_event *ret)
{
    struct sim_event last;
    size_t i = 0;

    if (w->n_heap == 0)
        return false;
    *ret = w->heap[0];
    last = w->heap[--w->n_heap];
    for (;;) {
        size_t c = 2 * i + 1;

        if (c >= w->n_heap)
            break;
        if (c + 1 < w->n_heap && before(&w->heap[c + 1], &w->heap[c]))
            c++;
        if (!before(&w->heap[c], &last))
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

size_t sim_object_size(enum contract_kind kind)
{
    static const size_t sizes[CONTRACT_KIND_N] = {
        [CONTRACT_INSTANCE] = sizeof(struct contract_instance),
        [CONTRACT_ATTACHMENT] = sizeof(struct contract_attachment),
        [CONTRACT_SERVICE] = sizeof(struct contract_service),
        [CONTRACT_CLAIM] = sizeof(struct contract_claim),
        [CONTRACT_BINDING] = sizeof(struct contract_binding),
    };

    return offsetof(struct contract_object, u) + sizes[kind];
}

struct contract_object *sim_object(struct sim_world *w, const struct contract_object *src)
{
    void **list = &w->unused[src->kind];
    void *o = *list;

    if (o)
        memcpy(list, o, sizeof *list);
    else
        o = take(w, sim_object_size(src->kind));
    memcpy(o, src, sim_object_size(src->kind));
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
    struct sim_event e;

    while (sim_next(w, &e)) {
        sim_req_drop(w, e.req);
        sim_object_free(w, e.object);
    }
}

void sim_memory_fini(struct sim_world *w)
{
    while (w->blocks) {
        struct sim_block *b = w->blocks;

        w->blocks = b->next;
        free(b);
    }
    base_free(w->heap);
    w->heap = NULL;
}
