/* SPDX-License-Identifier: Apache-2.0
 *
 * nofence.c - takes the place of pkg/fence and of the clock in one benchmark binary, and nowhere else: every
 * check passes without a look, and the clock is read for one call in 64. The difference to the real thing is
 * what the fence costs.
 */
#include "base/mem.h"
#include "fence/fence.h"

base_time __real_loop_clock(void);
base_time __wrap_loop_clock(void);

base_time __wrap_loop_clock(void)
{
    static _Thread_local base_time last;
    static _Thread_local unsigned n;
    if (n++ % 64 == 0)
        last = __real_loop_clock();
    return last;
}

struct fence_pass {
    int unused;
};
struct fence_slot {
    struct fence_pass pass;
    base_time deadline;
};
struct fence_table {
    uint32_t n, used;
    struct fence_slot slots[];
};

struct fence_table *fence_table_new(uint32_t n_slots)
{
    struct fence_table *t = base_calloc(1, sizeof *t + n_slots * sizeof t->slots[0]);
    if (t)
        t->n = n_slots;
    return t;
}
struct fence_table *fence_table_free(struct fence_table *t)
{
    return base_free(t);
}
struct fence_slot *fence_slot_take(struct fence_table *t, uint64_t gen)
{
    return gen && t->used < t->n ? &t->slots[t->used++] : NULL;
}
void fence_slot_give(struct fence_table *t, struct fence_slot *s)
{
}
uint64_t fence_slot_gen(const struct fence_slot *s)
{
    return 1;
}
bool fence_set(struct fence_slot *s, base_time deadline)
{
    s->deadline = deadline;
    return true;
}
void fence_kill(struct fence_slot *s)
{
}
bool fence_is_dead(const struct fence_slot *s)
{
    return false;
}
base_time fence_deadline(const struct fence_slot *s)
{
    return s->deadline;
}
const struct fence_pass *fence_check(const struct fence_slot *s, base_time now)
{
    return &s->pass;
}
const struct fence_pass *fence_recheck(const struct fence_pass *p, base_time now)
{
    return p;
}
