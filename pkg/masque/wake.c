/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/wake.h"

#include "base/err.h"
#include "base/mem.h"

/* ---- the heap ---- */

void masque_wake_init(struct masque_wake *w, void *owner)
{
    *w = (struct masque_wake){.owner = owner, .pos = SIZE_MAX};
}

int masque_heap_reserve(struct masque_heap *h)
{
    if (h->n < h->cap)
        return BASE_OK;
    size_t cap = h->cap ? 2 * h->cap : 64;
    struct masque_wake **v = base_realloc(h->v, cap * sizeof(struct masque_wake *));
    if (!v)
        return BASE_ENOMEM;
    h->v = v;
    h->cap = cap;
    return BASE_OK;
}

static void place(struct masque_heap *h, size_t i, struct masque_wake *w)
{
    h->v[i] = w;
    w->pos = i;
}

static void sift(struct masque_heap *h, size_t i, struct masque_wake *w)
{
    while (i > 0 && h->v[(i - 1) / 2]->at > w->at) {
        place(h, i, h->v[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= h->n)
            break;
        if (k + 1 < h->n && h->v[k + 1]->at < h->v[k]->at)
            k++;
        if (h->v[k]->at >= w->at)
            break;
        place(h, i, h->v[k]);
        i = k;
    }
    place(h, i, w);
}

void masque_heap_set(struct masque_heap *h, struct masque_wake *w, base_time at)
{
    w->at = at;
    if (w->pos == SIZE_MAX) {
        h->n++;
        h->v[h->n - 1] = w;
        sift(h, h->n - 1, w);
    } else {
        sift(h, w->pos, w);
    }
}

void masque_heap_remove(struct masque_heap *h, struct masque_wake *w)
{
    size_t i = w->pos;
    if (i == SIZE_MAX)
        return;
    w->pos = SIZE_MAX;
    struct masque_wake *last = h->v[--h->n];
    if (last != w)
        sift(h, i, last);
}

void masque_heap_fini(struct masque_heap *h)
{
    h->v = base_free(h->v);
    h->n = h->cap = 0;
}
