/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/h3_int.h"

#include "base/hash.h"

/* Keyed, since a client chooses its first connection ID (FNV-1a with a secret start; the handshake limit
 * bounds how many such IDs there can be). */
static size_t bucket(const struct masque_index *x, const uint8_t *p, size_t n)
{
    uint64_t v = base_fnv1a(x->seed, p, n);
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
