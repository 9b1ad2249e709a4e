/* SPDX-License-Identifier: Apache-2.0 */
#include "fence/fence.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/mutant.h"

#define CACHE_LINE 64

/* The one body of the type: whoever holds a pointer to it got it from fence_check or fence_recheck. */
struct fence_pass {
    const struct fence_slot *slot;
};

/* A cache line of its own: a store into one slot must not slow the readers of another. */
struct fence_slot {
    alignas(CACHE_LINE) _Atomic base_time deadline;
    struct fence_pass pass;
    uint64_t gen; /* 0 = free */
    struct fence_slot *next_free;
};

struct fence_table {
    void *memory;
    struct fence_slot *slots;
    struct fence_slot *free_slots;
    uint32_t n;
};

struct fence_table *fence_table_new(uint32_t n_slots)
{
    struct fence_table *t = base_calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->memory = base_calloc((size_t)n_slots + 1, sizeof *t->slots);
    if (!t->memory)
        return base_free(t);
    t->slots = (struct fence_slot *)(((uintptr_t)t->memory + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    t->n = n_slots;
    for (uint32_t i = n_slots; i > 0; i--) {
        struct fence_slot *s = &t->slots[i - 1];

        atomic_init(&s->deadline, FENCE_DEAD);
        s->pass.slot = s;
        s->next_free = t->free_slots;
        t->free_slots = s;
    }
    return t;
}

struct fence_table *fence_table_free(struct fence_table *t)
{
    if (!t)
        return NULL;
    base_free(t->memory);
    return base_free(t);
}

struct fence_slot *fence_slot_take(struct fence_table *t, uint64_t gen)
{
    struct fence_slot *s = t->free_slots;

    if (!s || gen == 0)
        return NULL;
    t->free_slots = s->next_free;
    s->next_free = NULL;
    s->gen = gen;
    atomic_store_explicit(&s->deadline, FENCE_CLOSED, memory_order_release);
    return s;
}

void fence_slot_give(struct fence_table *t, struct fence_slot *s)
{
    /* A slot that could still open, is not ours or is free already stays where it is: losing one is harmless,
     * handing a live one to a second session is not. */
    if (!s || s < t->slots || s >= t->slots + t->n || s->gen == 0 || !fence_is_dead(s))
        return;
    s->gen = 0;
    s->next_free = t->free_slots;
    t->free_slots = s;
}

uint64_t fence_slot_gen(const struct fence_slot *s)
{
    return s->gen;
}

bool fence_set(struct fence_slot *s, base_time deadline)
{
    if (fence_is_dead(s))
        return false;
    /* No other negative value may look like FENCE_DEAD's neighbour: "before the clock began" is closed. */
    atomic_store_explicit(&s->deadline, deadline > 0 ? deadline : FENCE_CLOSED, memory_order_release);
    return true;
}

void fence_kill(struct fence_slot *s)
{
    atomic_store_explicit(&s->deadline, FENCE_DEAD, memory_order_release);
}

bool fence_is_dead(const struct fence_slot *s)
{
    return fence_deadline(s) == FENCE_DEAD;
}

base_time fence_deadline(const struct fence_slot *s)
{
    return atomic_load_explicit(&s->deadline, memory_order_acquire);
}

const struct fence_pass *fence_check(const struct fence_slot *s, base_time now)
{
    if (base_mutant("fence.expiry") && fence_deadline(s) > 0)
        return &s->pass;
    return now >= 0 && now < fence_deadline(s) ? &s->pass : NULL;
}

const struct fence_pass *fence_recheck(const struct fence_pass *p, base_time now)
{
    return p ? fence_check(p->slot, now) : NULL;
}
