/* SPDX-License-Identifier: Apache-2.0 */
#include "fence/fence.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "base/mem.h"

static const base_time times[] = {INT64_MIN, -BASE_SEC,     -2,       -1, 0, 1, 2, 99, 100, 101,
                                  BASE_SEC,  INT64_MAX - 1, INT64_MAX};

Test(fence_fence, new_slot_is_closed_at_every_time)
{
    struct fence_table *t = fence_table_new(1);
    struct fence_slot *s = fence_slot_take(t, 7);

    cr_assert(s);
    cr_assert_eq(fence_slot_gen(s), 7);
    cr_assert_eq(fence_deadline(s), FENCE_CLOSED);
    for (size_t i = 0; i < BASE_LEN(times); i++)
        cr_assert_null(fence_check(s, times[i]), "open at %lld", (long long)times[i]);
    fence_table_free(t);
}

/* Every pair of a deadline and a time: open exactly when 0 <= now < deadline. */
Test(fence_fence, open_exactly_before_the_deadline)
{
    struct fence_table *t = fence_table_new(1);

    for (size_t d = 0; d < BASE_LEN(times); d++) {
        struct fence_slot *s = fence_slot_take(t, d + 1);

        cr_assert(fence_set(s, times[d]), "set %lld", (long long)times[d]);
        cr_assert_not(fence_is_dead(s), "a deadline of %lld killed the slot", (long long)times[d]);
        for (size_t i = 0; i < BASE_LEN(times); i++) {
            bool want = times[d] > 0 && times[i] >= 0 && times[i] < times[d];

            cr_assert_eq(fence_check(s, times[i]) != NULL, want, "deadline %lld now %lld",
                         (long long)times[d], (long long)times[i]);
            cr_assert_eq(fence_recheck(fence_check(s, times[i]), times[i]) != NULL, want);
        }
        fence_kill(s);
        fence_slot_give(t, s);
    }
    fence_table_free(t);
}

Test(fence_fence, dead_for_ever)
{
    struct fence_table *t = fence_table_new(1);
    struct fence_slot *s = fence_slot_take(t, 1);

    fence_set(s, BASE_TIME_NEVER);
    const struct fence_pass *p = fence_check(s, 1);
    cr_assert(p);
    fence_kill(s);
    cr_assert(fence_is_dead(s));
    for (size_t i = 0; i < BASE_LEN(times); i++) {
        cr_assert_not(fence_set(s, times[i]), "opened again by %lld", (long long)times[i]);
        cr_assert_eq(fence_deadline(s), FENCE_DEAD);
        cr_assert_null(fence_check(s, times[i]));
        cr_assert_null(fence_recheck(p, times[i]), "an older pass still held");
    }
    fence_kill(s);
    cr_assert(fence_is_dead(s));
    fence_table_free(t);
}

Test(fence_fence, shut_and_opened_again)
{
    struct fence_table *t = fence_table_new(1);
    struct fence_slot *s = fence_slot_take(t, 1);

    cr_assert(fence_set(s, 100));
    const struct fence_pass *p = fence_check(s, 99);
    cr_assert(p);
    cr_assert(fence_set(s, FENCE_CLOSED));
    cr_assert_null(fence_recheck(p, 1));
    cr_assert(fence_set(s, 200));
    cr_assert(fence_check(s, 199));
    cr_assert_null(fence_check(s, 200));
    cr_assert_null(fence_recheck(NULL, 1));
    fence_table_free(t);
}

Test(fence_fence, slots_are_bounded_and_reused_only_when_dead)
{
    struct fence_table *t = fence_table_new(3);
    struct fence_slot *s[3];

    cr_assert_null(fence_slot_take(t, 0), "generation 0 means free");
    for (unsigned i = 0; i < 3; i++) {
        s[i] = fence_slot_take(t, i + 1);
        cr_assert(s[i]);
        cr_assert_eq((uintptr_t)s[i] % 64, 0, "two slots share a cache line");
    }
    cr_assert_null(fence_slot_take(t, 9));

    fence_set(s[1], BASE_TIME_NEVER);
    fence_slot_give(t, s[1]);
    cr_assert_null(fence_slot_take(t, 9), "a slot that can still open was handed out again");
    cr_assert(fence_check(s[1], 1));

    fence_kill(s[1]);
    fence_slot_give(t, s[1]);
    fence_slot_give(t, s[1]);
    fence_slot_give(t, NULL);
    struct fence_slot *again = fence_slot_take(t, 9);
    cr_assert_eq(again, s[1]);
    cr_assert_eq(fence_slot_gen(again), 9);
    cr_assert_eq(fence_deadline(again), FENCE_CLOSED, "the next generation inherits nothing");
    cr_assert_null(fence_slot_take(t, 10), "given back twice, taken twice");
    fence_table_free(t);
}

Test(fence_fence, foreign_slot_is_not_taken_in)
{
    struct fence_table *a = fence_table_new(1), *b = fence_table_new(1);
    struct fence_slot *s = fence_slot_take(a, 1), *o = fence_slot_take(b, 1);

    fence_kill(s);
    fence_slot_give(b, s);
    cr_assert_null(fence_slot_take(b, 2));
    fence_kill(o);
    fence_slot_give(b, o);
    cr_assert_eq(fence_slot_take(b, 2), o);
    fence_table_free(a);
    fence_table_free(b);
}

Test(fence_fence, no_memory)
{
    for (unsigned long i = 1; i <= 2; i++) {
        base_mem_fail_after(i);
        cr_assert_null(fence_table_new(4));
        base_mem_fail_after(0);
    }
    cr_assert_null(fence_table_free(NULL));
    fence_table_free(fence_table_new(0));
}

/* Two threads: what the writer wrote before it moved the deadline is visible to whoever passed the check;
 * once the slot was killed, no check after that passes. (Criterion does not start under the thread sanitizer:
 * the same is done there by test/dataplane, "fence-between-threads".) */
enum { ROUNDS = 20000 };
struct shared {
    struct fence_slot *slot;
    _Atomic uint64_t killed; /* set after fence_kill */
    uint64_t payload;        /* plain on purpose: ordered by the slot alone */
};
static void *reader(void *arg)
{
    struct shared *sh = arg;
    uintptr_t bad = 0;

    while (!atomic_load_explicit(&sh->killed, memory_order_acquire))
        if (fence_check(sh->slot, 1) && sh->payload != 42)
            bad++;
    for (int i = 0; i < 1000; i++)
        if (fence_check(sh->slot, 1))
            bad++;
    return (void *)bad;
}

Test(fence_fence, two_threads)
{
    struct fence_table *t = fence_table_new(1);
    struct shared sh = {.slot = fence_slot_take(t, 1)};
    pthread_t th;
    void *bad = NULL;

    cr_assert_eq(pthread_create(&th, NULL, reader, &sh), 0);
    sh.payload = 42;
    for (int i = 0; i < ROUNDS; i++) {
        fence_set(sh.slot, i % 3 ? BASE_SEC + i : FENCE_CLOSED);
        (void)fence_deadline(sh.slot);
    }
    fence_kill(sh.slot);
    atomic_store_explicit(&sh.killed, 1, memory_order_release);
    fence_set(sh.slot, BASE_TIME_NEVER);
    pthread_join(th, &bad);
    cr_assert_eq((uintptr_t)bad, 0, "%lu checks passed that must not", (unsigned long)(uintptr_t)bad);
    fence_table_free(t);
}
