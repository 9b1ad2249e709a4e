/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/h3_int.h"

/* Keyed, since a client chooses its first connection ID (FNV-1a with a secret start; the handshake limit
 * bounds how many such IDs there can be). */
static size_t bucket(const struct masque_index *x, const uint8_t *p, size_t n)
{
    uint64_t v = x->seed;
    for (size_t i = 0; i < n; i++)
        v = (v ^ p[i]) * UINT64_C(0x100000001b3);
    v ^= v >> 29;
    return (size_t)(v % MASQUE_BUCKETS);
}

/* ---- connection IDs ---- */

int masque_index_add_cid(struct masque_index *x, struct masque_conn *c, const ngtcp2_cid *cid)
{
    struct masque_cid *m = base_calloc(1, sizeof *m);
    if (!m)
        return BASE_ENOMEM;
    size_t b = bucket(x, cid->data, cid->datalen);
    m->cid = *cid;
    m->conn = c;
    m->conn_next = c->cids;
    c->cids = m;
    m->next = x->cids[b];
    x->cids[b] = m;
    return BASE_OK;
}

static void unchain(struct masque_index *x, struct masque_cid *m)
{
    struct masque_cid **p = &x->cids[bucket(x, m->cid.data, m->cid.datalen)];
    while (*p && *p != m)
        p = &(*p)->next;
    if (*p)
        *p = m->next;
}

void masque_index_del_cid(struct masque_index *x, const ngtcp2_cid *cid)
{
    struct masque_cid *m = x->cids[bucket(x, cid->data, cid->datalen)];
    while (m && !ngtcp2_cid_eq(&m->cid, cid))
        m = m->next;
    if (!m)
        return;
    struct masque_cid **p = &m->conn->cids;
    while (*p && *p != m)
        p = &(*p)->conn_next;
    if (*p)
        *p = m->conn_next;
    unchain(x, m);
    base_free(m);
}

void masque_index_del_conn_cids(struct masque_index *x, struct masque_conn *c)
{
    while (c->cids) {
        struct masque_cid *m = c->cids;
        c->cids = m->conn_next;
        unchain(x, m);
        base_free(m);
    }
}

struct masque_conn *masque_index_conn(const struct masque_index *x, const uint8_t *cid, size_t len)
{
    for (struct masque_cid *m = x->cids[bucket(x, cid, len)]; m; m = m->next)
        if (m->cid.datalen == len && memcmp(m->cid.data, cid, len) == 0)
            return m->conn;
    return NULL;
}

/* ---- connections per source address ---- */

struct masque_source *masque_index_source(struct masque_index *x, const struct in6_addr *addr)
{
    struct masque_source **b = &x->sources[bucket(x, addr->s6_addr, sizeof addr->s6_addr)];
    for (struct masque_source *s = *b; s; s = s->next)
        if (memcmp(&s->addr, addr, sizeof *addr) == 0)
            return s;
    struct masque_source *s = base_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->addr = *addr;
    s->next = *b;
    *b = s;
    return s;
}

void masque_index_source_drop(struct masque_index *x, struct masque_source *s)
{
    if (!s || s->conns > 0)
        return;
    struct masque_source **p = &x->sources[bucket(x, s->addr.s6_addr, sizeof s->addr.s6_addr)];
    while (*p && *p != s)
        p = &(*p)->next;
    if (*p)
        *p = s->next;
    base_free(s);
}

/* ---- flows ---- */

void masque_index_add_flow(struct masque_index *x, struct masque_flow *f)
{
    struct masque_flow **b = &x->flows[f->id % MASQUE_BUCKETS];
    f->next = *b;
    *b = f;
}

void masque_index_del_flow(struct masque_index *x, struct masque_flow *f)
{
    struct masque_flow **p = &x->flows[f->id % MASQUE_BUCKETS];
    while (*p && *p != f)
        p = &(*p)->next;
    if (*p)
        *p = f->next;
    f->next = NULL;
}

struct masque_flow *masque_index_flow(const struct masque_index *x, uint64_t id)
{
    struct masque_flow *f = x->flows[id % MASQUE_BUCKETS];
    while (f && f->id != id)
        f = f->next;
    return f;
}

/* ---- the heap of wake-ups ---- */

int masque_index_reserve(struct masque_index *x)
{
    if (x->n_heap < x->cap_heap)
        return BASE_OK;
    size_t cap = x->cap_heap ? 2 * x->cap_heap : 64;
    struct masque_conn **heap = base_realloc(x->heap, cap * sizeof(struct masque_conn *));
    if (!heap)
        return BASE_ENOMEM;
    x->heap = heap;
    x->cap_heap = cap;
    return BASE_OK;
}

static void place(struct masque_index *x, size_t i, struct masque_conn *c)
{
    x->heap[i] = c;
    c->heap_pos = i;
}

static void sift(struct masque_index *x, size_t i, struct masque_conn *c)
{
    while (i > 0 && x->heap[(i - 1) / 2]->wake_at > c->wake_at) {
        place(x, i, x->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= x->n_heap)
            break;
        if (k + 1 < x->n_heap && x->heap[k + 1]->wake_at < x->heap[k]->wake_at)
            k++;
        if (x->heap[k]->wake_at >= c->wake_at)
            break;
        place(x, i, x->heap[k]);
        i = k;
    }
    place(x, i, c);
}

void masque_index_wake(struct masque_index *x, struct masque_conn *c, base_time at)
{
    c->wake_at = at;
    if (c->heap_pos == SIZE_MAX) {
        x->n_heap++;
        x->heap[x->n_heap - 1] = c;
        sift(x, x->n_heap - 1, c);
    } else {
        sift(x, c->heap_pos, c);
    }
}

void masque_index_unwake(struct masque_index *x, struct masque_conn *c)
{
    size_t i = c->heap_pos;
    if (i == SIZE_MAX)
        return;
    c->heap_pos = SIZE_MAX;
    struct masque_conn *last = x->heap[--x->n_heap];
    if (last != c)
        sift(x, i, last);
}

void masque_index_fini(struct masque_index *x)
{
    x->heap = base_free(x->heap);
}
