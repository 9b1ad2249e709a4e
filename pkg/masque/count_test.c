/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections counted for several threads: no limit is passed, whoever comes when, and nothing is left
 * behind.
 */
#include "masque/count.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "loop/loop.h"

static const struct masque_room wide = {1000, 1000, 1000};

static struct in6_addr ip(unsigned n)
{
    struct in6_addr a;
    char text[40];
    (void)snprintf(text, sizeof text, "2001:db8::%x", n);
    cr_assert_eq(inet_pton(AF_INET6, text, &a), 1);
    return a;
}

static unsigned enter_all(struct masque_count *c, const struct in6_addr *a, const struct masque_room *room,
                          enum masque_full *ret)
{
    unsigned n = 0;
    while ((*ret = masque_count_enter(c, a, room)) == MASQUE_ROOM)
        n++;
    return n;
}

static void nothing_left(struct masque_count *c)
{
    cr_assert_eq(atomic_load(&c->conns), 0);
    cr_assert_eq(atomic_load(&c->handshakes), 0);
    masque_count_fini(c);
}

Test(masque_count, each_limit_is_reached_and_no_more)
{
    struct masque_count c = {0};
    struct in6_addr a = ip(1), b = ip(2);
    enum masque_full full;
    cr_assert_eq(masque_count_init(&c, 1000, 7), BASE_OK);
    cr_assert_eq(enter_all(&c, &a, &(struct masque_room){1000, 1000, 5}, &full), 5);
    cr_assert_eq(full, MASQUE_FULL_SOURCE);
    cr_assert_eq(enter_all(&c, &b, &(struct masque_room){1000, 8, 100}, &full), 3,
                 "another address: its own");
    cr_assert_eq(full, MASQUE_FULL_HANDSHAKES);
    for (unsigned i = 0; i < 8; i++)
        masque_count_shaken(&c);
    cr_assert_eq(enter_all(&c, &b, &(struct masque_room){10, 8, 100}, &full), 2);
    cr_assert_eq(full, MASQUE_FULL_CONNECTIONS);
    for (unsigned i = 0; i < 5; i++)
        masque_count_leave(&c, &a, true);
    for (unsigned i = 0; i < 5; i++)
        masque_count_leave(&c, &b, i < 3);
    cr_assert_eq(enter_all(&c, &a, &(struct masque_room){1000, 1000, 5}, &full), 5, "given back");
    for (unsigned i = 0; i < 5; i++)
        masque_count_leave(&c, &a, false);
    nothing_left(&c);
}

/* Every address has its count, also when the table is as full as the limit of connections lets it be. */
Test(masque_count, a_table_that_is_full)
{
    enum { MAX = 4096 };
    struct masque_count c = {0};
    enum masque_full full;
    cr_assert_eq(masque_count_init(&c, MAX, 42), BASE_OK);
    for (unsigned i = 0; i < MAX; i++) {
        struct in6_addr a = ip(i);
        cr_assert_eq(enter_all(&c, &a, &(struct masque_room){MAX, MAX, 1}, &full), 1, "%u", i);
    }
    for (unsigned i = 0; i < MAX; i++) {
        struct in6_addr a = ip(i);
        masque_count_leave(&c, &a, false);
    }
    for (unsigned i = 0; i < 50; i++) { /* no place was lost */
        struct in6_addr a = ip(i + MAX);
        cr_assert_eq(enter_all(&c, &a, &(struct masque_room){MAX, MAX, 64}, &full), 64);
    }
    masque_count_fini(&c);
}

/* A bucket holds 16 sources; the 17th is turned away, and nothing is written beyond it. */
Test(masque_count, a_bucket_that_is_full)
{
    struct masque_count c = {0};
    unsigned in = 0;
    cr_assert_eq(masque_count_init(&c, 1, 3), BASE_OK);
    for (unsigned i = 0; i < 40; i++) {
        struct in6_addr a = ip(i);
        in += masque_count_enter(&c, &a, &wide) == MASQUE_ROOM;
    }
    cr_assert_eq(in, 16);
    cr_assert_eq(atomic_load(&c.conns), 16, "who was turned away is not counted");
    for (unsigned i = 0; i < 16; i++) {
        struct in6_addr a = ip(i);
        masque_count_leave(&c, &a, false);
    }
    nothing_left(&c);
}

Test(masque_count, bad_sizes_and_no_memory)
{
    struct masque_count c = {0};
    cr_assert_eq(masque_count_init(&c, 0, 1), BASE_EINVAL);
    cr_assert_eq(masque_count_init(&c, (1 << 20) + 1, 1), BASE_EINVAL);
    for (unsigned long i = 1; i <= 2; i++) {
        base_mem_fail_after(i);
        cr_assert_eq(masque_count_init(&c, 10, 1), BASE_ENOMEM);
        base_mem_fail_after(0);
        cr_assert_null(c.sources);
    }
    masque_count_fini(&c);
    masque_count_fini(&c);
}

enum { THREADS = 4, ADDRESSES = 3, LIMIT = 3, ALL = 7, TURNS = 40000 };
#define FOR_SO_LONG                                                                                          \
    (1500 * BASE_MS) /* where there is one processor the scheduler has to come at the wrong moment */
static struct masque_count shared;
static atomic_uint is_in, of[ADDRESSES], beyond, came;

static base_time until;

static void *come_and_go(void *arg)
{
    unsigned v = (unsigned)(uintptr_t)arg * 7919;
    for (unsigned i = 0; i % 256 != 0 || loop_clock() < until; i++) {
        v = v * 1103515245 + 12345;
        unsigned n = v >> 16, which = n % ADDRESSES;
        struct in6_addr a = {.s6_addr = {0x20, (uint8_t)which}};
        if (masque_count_enter(&shared, &a, &(struct masque_room){ALL, ALL, LIMIT}) != MASQUE_ROOM)
            continue;
        atomic_fetch_add(&came, 1);
        /* What this thread may have and does not count yet is not here: what is counted is really there. */
        if (atomic_fetch_add(&of[which], 1) >= LIMIT || atomic_fetch_add(&is_in, 1) >= ALL)
            atomic_fetch_add(&beyond, 1);
        for (volatile unsigned k = 0; k < n % 64; k++)
            ;
        if (n & 64)
            masque_count_shaken(&shared);
        atomic_fetch_sub(&is_in, 1);
        atomic_fetch_sub(&of[which], 1);
        masque_count_leave(&shared, &a, n & 64);
    }
    return NULL;
}

Test(masque_count, several_threads_at_once)
{
    pthread_t th[THREADS];
    enum masque_full full;
    memset(&shared, 0, sizeof shared);
    cr_assert_eq(masque_count_init(&shared, ALL, 9), BASE_OK);
    until = loop_clock() + FOR_SO_LONG;
    for (unsigned i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&th[i], NULL, come_and_go, (void *)(uintptr_t)(i + 1)), 0);
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_join(th[i], NULL);
    cr_assert_eq(atomic_load(&beyond), 0, "%u times beyond a limit", atomic_load(&beyond));
    cr_assert(atomic_load(&came) > TURNS, "%u came in", atomic_load(&came));
    for (unsigned i = 0; i < ADDRESSES; i++) { /* nothing is left behind: each has its whole limit again */
        struct in6_addr a = {.s6_addr = {0x20, (uint8_t)i}};
        cr_assert_eq(enter_all(&shared, &a, &(struct masque_room){100, 100, LIMIT}, &full), LIMIT);
        for (unsigned k = 0; k < LIMIT; k++)
            masque_count_leave(&shared, &a, false);
    }
    nothing_left(&shared);
}

/* The same for the last place of a source, at the same moment, once a round. */
enum { RIVALS = 2, ROUNDS = 20000 };
static atomic_uint arrived, won, twice, never;

static void meet(unsigned round)
{
    atomic_fetch_add(&arrived, 1);
    for (unsigned i = 0; atomic_load(&arrived) < RIVALS * round; i++)
        if (i > 1000)
            (void)sched_yield();
}

static void *rival(void *arg)
{
    struct in6_addr a = {.s6_addr = {0x20, 1}};
    unsigned round = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        meet(++round);
        bool mine = masque_count_enter(&shared, &a, &(struct masque_room){9, 9, 1}) == MASQUE_ROOM;
        atomic_fetch_add(&won, mine);
        meet(++round);
        if (!arg) {
            unsigned n = atomic_exchange(&won, 0);
            atomic_fetch_add(&twice, n > 1);
            atomic_fetch_add(&never, n == 0);
        }
        if (mine)
            masque_count_leave(&shared, &a, false);
        meet(++round);
    }
    return NULL;
}

Test(masque_count, the_last_place_is_given_once)
{
    pthread_t th[RIVALS];
    memset(&shared, 0, sizeof shared);
    cr_assert_eq(masque_count_init(&shared, 9, 9), BASE_OK);
    for (uintptr_t i = 0; i < RIVALS; i++)
        cr_assert_eq(pthread_create(&th[i], NULL, rival, (void *)i), 0);
    for (unsigned i = 0; i < RIVALS; i++)
        (void)pthread_join(th[i], NULL);
    cr_assert_eq(atomic_load(&twice), 0, "%u of %d times", atomic_load(&twice), ROUNDS);
    cr_assert(atomic_load(&never) < ROUNDS * 9 / 10, "%u of %d times", atomic_load(&never), ROUNDS);
    nothing_left(&shared);
}

/* The rate of several threads, each a little behind the other: together no more than that of one. */
static atomic_uint got;
static struct masque_rates rates;
static void *ask(void *arg)
{
    struct in6_addr a = {.s6_addr = {0x20, 1}};
    base_time now = 1000 * BASE_SEC + (base_time)(uintptr_t)arg * BASE_US;
    for (unsigned i = 0; i < 20000; i++)
        if (masque_rate_take(&rates, &a, now, 1000, 300))
            atomic_fetch_add(&got, 1);
    return NULL;
}

Test(masque_count, a_rate_is_for_all_threads_together)
{
    pthread_t th[THREADS];
    memset(&rates, 0, sizeof rates);
    for (unsigned i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&th[i], NULL, ask, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_join(th[i], NULL);
    cr_assert_eq(atomic_load(&got), 300 + MASQUE_RATE_EXTRA);
}
