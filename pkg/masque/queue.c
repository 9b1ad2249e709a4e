/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/queue.h"

#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

enum { SPARE_MAX = 1024 };

void masque_pool_fini(struct masque_pool *p)
{
    while (p->spare) {
        struct masque_pkt *k = p->spare;
        p->spare = k->next;
        base_free(k);
    }
    p->n = 0;
}

void masque_queue_init(struct masque_queue *q)
{
    memset(q, 0, sizeof *q);
    q->tail = &q->head;
}

void masque_queue_pop(struct masque_queue *q, struct masque_pool *pool)
{
    struct masque_pkt *p = q->head;
    q->head = p->next;
    if (!q->head)
        q->tail = &q->head;
    if (q->fresh == p)
        q->fresh = p->next;
    q->packets--;
    q->bytes -= p->len;
    if (pool->n < SPARE_MAX) {
        p->next = pool->spare;
        pool->spare = p;
        pool->n++;
    } else {
        base_free(p);
    }
}

void masque_queue_drop(struct masque_queue *q, struct masque_pool *pool, uint64_t *counter)
{
    while (q->head) {
        masque_queue_pop(q, pool);
        if (counter)
            (*counter)++;
    }
}

void masque_queue_stamp(struct masque_queue *q, base_time now)
{
    for (struct masque_pkt *p = q->fresh; p; p = p->next)
        p->at = now;
    q->fresh = NULL;
}

int masque_queue_add(struct masque_queue *q, struct masque_pool *pool, const struct masque_queue_limits *l,
                     base_time now, const uint8_t *pkt, size_t len, uint64_t *dropped)
{
    struct masque_pkt *p = NULL;
    while (q->head && q->head != q->fresh && now - q->head->at > l->age) {
        masque_queue_pop(q, pool);
        (*dropped)++;
    }
    /* bytes may be above a limit that was lowered since */
    if (q->packets < l->packets && len <= MASQUE_PKT_MAX && q->bytes < l->bytes &&
        len <= l->bytes - q->bytes) {
        if (pool->spare) {
            p = pool->spare;
            pool->spare = p->next;
            pool->n--;
        } else {
            p = base_realloc(NULL, sizeof *p);
        }
    }
    if (!p) {
        (*dropped)++;
        return BASE_EFULL;
    }
    p->next = NULL;
    p->at = 0; /* the next flush knows the time */
    p->len = (uint32_t)len;
    memcpy(p->data, pkt, len);
    *q->tail = p;
    q->tail = &p->next;
    if (!q->fresh)
        q->fresh = p;
    q->packets++;
    q->bytes += p->len;
    return BASE_OK;
}
