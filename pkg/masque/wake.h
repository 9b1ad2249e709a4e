/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/wake.h - who has to be woken when: a heap of times.
 *
 * Pure. The entries are members of their owners' objects (masque_wake), which must take them out before they
 * go.
 */
#ifndef MASQUE_WAKE_H
#define MASQUE_WAKE_H

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

#endif
