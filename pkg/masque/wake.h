/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/wake.h - who has to be woken when: a heap of times, and connections counted per source address.
 *
 * Pure. The entries are members of their owners' objects (masque_wake), which must take them out before they
 * go.
 */
#ifndef MASQUE_WAKE_H
#define MASQUE_WAKE_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

struct masque_wake {
    void *owner;
    base_time at;
    size_t pos; /* SIZE_MAX = not in the heap */
};
struct masque_heap {
    struct masque_wake **v;
    size_t n, cap;
};
void masque_wake_init(struct masque_wake *w, void *owner);
/* Room for one more. BASE_OK or BASE_ENOMEM. */
int masque_heap_reserve(struct masque_heap *h);
/* Puts it in, or moves it. */
void masque_heap_set(struct masque_heap *h, struct masque_wake *w, base_time at);
void masque_heap_remove(struct masque_heap *h, struct masque_wake *w);
void masque_heap_fini(struct masque_heap *h);

enum { MASQUE_SOURCE_BUCKETS = 4096 };
struct masque_source { /* connections from one address */
    struct masque_source *next;
    struct in6_addr addr;
    uint32_t conns;
};
struct masque_sources { /* zero-initialised = ready; seed: any secret number */
    uint64_t seed;
    struct masque_source *bucket[MASQUE_SOURCE_BUCKETS];
};
/* The count for `addr`, made when it is not there; NULL = no memory. */
struct masque_source *masque_source_get(struct masque_sources *t, const struct in6_addr *addr);
/* Forgets it when its count is 0. NULL ok. */
void masque_source_drop(struct masque_sources *t, struct masque_source *s);

#endif
