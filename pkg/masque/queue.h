/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/queue.h - packets that wait for their client: bounded in packets, bytes and age, oldest first.
 *
 * Pure; the time is an argument. A queue owns its packets; used ones go to a pool that all queues of one
 * endpoint share, so that nothing is allocated per packet once it is warm.
 */
#ifndef MASQUE_QUEUE_H
#define MASQUE_QUEUE_H

#include <stdint.h>

#include "base/time.h"

enum { MASQUE_PKT_MAX = 1536 }; /* largest queued packet */

struct masque_pkt {
    struct masque_pkt *next;
    base_time at; /* 0: queued since the last masque_queue_stamp */
    uint32_t len;
    uint8_t data[MASQUE_PKT_MAX];
};
struct masque_pool {
    struct masque_pkt *spare;
    uint32_t n;
};
struct masque_queue {
    struct masque_pkt *head, **tail;
    struct masque_pkt *fresh; /* the first one without a time */
    uint32_t packets, bytes;
};
struct masque_queue_limits {
    uint32_t packets, bytes;
    base_time age;
};

void masque_pool_fini(struct masque_pool *p);
void masque_queue_init(struct masque_queue *q);
/* Copies a packet to the end, after dropping what is too old at the front (counted in *dropped, as is the
 * packet itself when there is no room). BASE_OK or BASE_EFULL. */
int masque_queue_add(struct masque_queue *q, struct masque_pool *pool, const struct masque_queue_limits *l,
                     base_time now, const uint8_t *pkt, size_t len, uint64_t *dropped);
/* Gives the packets that came since the last call their time. */
void masque_queue_stamp(struct masque_queue *q, base_time now);
/* Removes the packet at the front (there is one). */
void masque_queue_pop(struct masque_queue *q, struct masque_pool *pool);
/* Removes all; counter (NULL ok) counts them. */
void masque_queue_drop(struct masque_queue *q, struct masque_pool *pool, uint64_t *counter);

#endif
