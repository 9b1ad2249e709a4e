/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/data_shared.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "agent/data.h"
#include "agent/data_flows.h"
#include "base/err.h"
#include "fence/fence.h"

static struct base_prefix prefix(uint32_t n)
{
    struct base_prefix p = {.addr = {{0xfd, 0x12}}, .len = 96};

    p.addr.b[8] = (uint8_t)(n >> 24);
    p.addr.b[9] = (uint8_t)(n >> 16);
    p.addr.b[10] = (uint8_t)(n >> 8);
    p.addr.b[11] = (uint8_t)n;
    p.addr.b[15] = 5; /* an address inside; a prefix's own has no bits there, and they do not matter */
    return p;
}

Test(agent_data_shared, a_prefix_has_one_thread)
{
    base_cleanup(agent_shared_freep) struct agent_shared *s = agent_shared_new(16, 1);
    struct base_prefix p = prefix(7), q = prefix(8), wide = {.addr = {{0xfd}}, .len = 64};

    cr_expect_eq(agent_shared_owner(s, p.addr.b), AGENT_NOBODY);
    cr_expect_eq(agent_shared_claim(s, &p, 3), BASE_OK);
    cr_expect_eq(agent_shared_owner(s, p.addr.b), 3);
    p.addr.b[12] = 0xee;
    cr_expect_eq(agent_shared_owner(s, p.addr.b), 3, "another address in it");
    cr_expect_eq(agent_shared_owner(s, q.addr.b), AGENT_NOBODY);
    cr_expect_eq(agent_shared_claim(s, &p, 3), BASE_EEXIST);
    cr_expect_eq(agent_shared_claim(s, &p, 0), BASE_EEXIST);
    cr_expect_eq(agent_shared_claim(s, &wide, 0), BASE_EINVAL);
    cr_expect_eq(agent_shared_claim(s, &q, 64), BASE_EINVAL);
    agent_shared_release(s, &p, 2);
    cr_expect_eq(agent_shared_owner(s, p.addr.b), 3, "that was not its own");
    agent_shared_release(s, &p, 3);
    cr_expect_eq(agent_shared_owner(s, p.addr.b), AGENT_NOBODY);
    agent_shared_release(s, &p, 3);
    cr_expect_eq(agent_shared_claim(s, &p, 63), BASE_OK);
    cr_expect_eq(agent_shared_owner(s, p.addr.b), 63);
}

Test(agent_data_shared, all_prefixes_that_may_be_there_fit)
{
    for (uint64_t seed = 1; seed < 6; seed++) {
        enum { MAX = 20000 };
        base_cleanup(agent_shared_freep) struct agent_shared *s = agent_shared_new(MAX, seed);

        for (uint32_t i = 0; i < MAX; i++) {
            struct base_prefix p = prefix(i * 3);
            cr_assert_eq(agent_shared_claim(s, &p, i % 5), BASE_OK, "%u", i);
        }
        for (uint32_t i = 0; i < 3 * MAX; i++) {
            struct base_prefix p = prefix(i);
            cr_assert_eq(agent_shared_owner(s, p.addr.b), i % 3 ? AGENT_NOBODY : i / 3 % 5, "%u", i);
        }
    }
}

/* A table that is far too small refuses; what it has stays. */
Test(agent_data_shared, a_full_bucket_refuses)
{
    base_cleanup(agent_shared_freep) struct agent_shared *s = agent_shared_new(1, 1);
    unsigned in = 0;

    for (uint32_t i = 0; i < 40; i++) {
        struct base_prefix p = prefix(i);
        int rc = agent_shared_claim(s, &p, 1);

        cr_assert(rc == BASE_OK || rc == BASE_EFULL);
        in += rc == BASE_OK;
    }
    cr_expect_eq(in, 16);
    for (uint32_t i = 0; i < 16; i++) {
        struct base_prefix p = prefix(i);
        cr_expect_eq(agent_shared_owner(s, p.addr.b), 1);
    }
    cr_expect_null(agent_shared_new((1 << 21) + 1, 1));
}

/* Without room for prefixes there is none: one thread needs no such table. */
Test(agent_data_shared, alone)
{
    base_cleanup(agent_shared_freep) struct agent_shared *s = agent_shared_new(0, 1);
    struct base_prefix p = prefix(7);

    cr_expect_eq(agent_shared_claim(s, &p, 0), BASE_EINVAL);
    cr_expect_eq(agent_shared_owner(s, p.addr.b), AGENT_NOBODY);
    agent_shared_release(s, &p, 0);
}

/* Two threads that claim the same prefixes again and again: never both. For so long, since where both have
 * one processor it is the scheduler that has to come at the wrong moment. */
enum { RIVALS = 2, ROUNDS = 20000, CONTESTED = 2, RIVALRY_MS = 1500 };
static struct agent_shared *contested;
static _Atomic int holders[CONTESTED];
static _Atomic unsigned clashes, wins;

static int64_t rivalry_ends;

static int64_t ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void *rival(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    struct base_prefix all[CONTESTED];

    for (uint32_t i = 0; i < CONTESTED; i++)
        all[i] = prefix(i);
    for (uint32_t i = 0; i % 256 != 0 || ms() < rivalry_ends; i++) {
        struct base_prefix p = all[i % CONTESTED];

        if (agent_shared_claim(contested, &p, me) != BASE_OK)
            continue;
        wins++;
        clashes += atomic_fetch_add(&holders[i % CONTESTED], 1) != 0;
        clashes += agent_shared_owner(contested, p.addr.b) != me;
        atomic_fetch_sub(&holders[i % CONTESTED], 1);
        agent_shared_release(contested, &p, me);
    }
    return NULL;
}

Test(agent_data_shared, of_two_at_most_one)
{
    pthread_t t[RIVALS];

    contested = agent_shared_new(16, 1);
    rivalry_ends = ms() + RIVALRY_MS;
    for (uintptr_t i = 0; i < RIVALS; i++)
        cr_assert_eq(pthread_create(&t[i], NULL, rival, (void *)i), 0);
    for (unsigned i = 0; i < RIVALS; i++)
        cr_assert_eq(pthread_join(t[i], NULL), 0);
    cr_expect_eq(clashes, 0);
    cr_expect_gt(wins, ROUNDS / 2, "nothing was tested");
    agent_shared_free(contested);
}

/* The same at the same moment, once a round: not even for a moment both. */
static atomic_uint arrived;
static atomic_uint claimed;

static void meet(unsigned round)
{
    atomic_fetch_add(&arrived, 1);
    for (unsigned i = 0; atomic_load(&arrived) < RIVALS * round; i++)
        if (i > 1000)
            (void)sched_yield();
}

static void *at_once(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg, round = 0;
    struct base_prefix p = prefix(7);

    for (unsigned i = 0; i < ROUNDS; i++) {
        meet(++round);
        bool mine = agent_shared_claim(contested, &p, me) == BASE_OK;
        atomic_fetch_add(&claimed, mine);
        meet(++round);
        if (me == 0) {
            clashes += atomic_load(&claimed) > 1;
            wins += atomic_exchange(&claimed, 0) == 1;
        }
        if (mine)
            agent_shared_release(contested, &p, me);
        meet(++round);
    }
    return NULL;
}

Test(agent_data_shared, of_two_at_the_same_moment_at_most_one)
{
    pthread_t t[RIVALS];

    contested = agent_shared_new(16, 1);
    for (uintptr_t i = 0; i < RIVALS; i++)
        cr_assert_eq(pthread_create(&t[i], NULL, at_once, (void *)i), 0);
    for (unsigned i = 0; i < RIVALS; i++)
        cr_assert_eq(pthread_join(t[i], NULL), 0);
    cr_expect_eq(clashes, 0);
    cr_expect_gt(wins, 0, "of two that come at once both may be turned away, but not always");
    agent_shared_free(contested);
}

/* ---- the tables of flows of two threads ---- */
Test(agent_data_shared, one_open_flow_per_prefix_over_all_threads)
{
    base_cleanup(agent_shared_freep) struct agent_shared *s = agent_shared_new(16, 1);
    base_cleanup(agent_flows_freep) struct agent_flows *a = agent_flows_new(4, 1), *b = agent_flows_new(4, 1);
    struct fence_table *slots = fence_table_new(2);
    struct agent_admit order = {.flow = 1, .slot = fence_slot_take(slots, 1)};
    struct agent_flow *f, *g;

    order.prefix = prefix(7);
    agent_flows_join(a, s, 0);
    agent_flows_join(b, s, 1);
    f = agent_flows_add(a, 1);
    g = agent_flows_add(b, 2);
    cr_assert_eq(agent_flows_open(a, f, &order, 0), BASE_OK);
    cr_expect_eq(agent_shared_owner(s, order.prefix.addr.b), 0);
    cr_expect_eq(agent_flows_open(b, g, &order, 0), BASE_EEXIST);
    cr_expect_eq(g->state, AGENT_FLOW_ASKED);
    cr_expect_null(agent_flows_by_address(b, order.prefix.addr.b));
    agent_flows_stop(b, g);
    cr_expect_eq(agent_shared_owner(s, order.prefix.addr.b), 0, "the refused one took it away");
    agent_flows_stop(a, f);
    cr_expect_eq(agent_shared_owner(s, order.prefix.addr.b), AGENT_NOBODY);
    agent_flows_remove(b, g);
    g = agent_flows_add(b, 3);
    cr_expect_eq(agent_flows_open(b, g, &order, 0), BASE_OK);
    agent_flows_remove(a, f);
    cr_expect_eq(agent_shared_owner(s, order.prefix.addr.b), 1, "the late end of the first one");
    agent_flows_remove(b, g);
    cr_expect_eq(agent_shared_owner(s, order.prefix.addr.b), AGENT_NOBODY);
    fence_table_free(slots);
}

Test(agent_data_shared, a_tenant_is_the_same_in_all_threads)
{
    base_cleanup(agent_shared_freep) struct agent_shared *s = agent_shared_new(16, 1);
    base_cleanup(agent_flows_freep) struct agent_flows *a = agent_flows_new(4, 1), *b = agent_flows_new(4, 1);
    struct agent_tenant_limits l = {.sessions = 2};
    struct agent_tenant *x;

    agent_flows_join(a, s, 0);
    agent_flows_join(b, s, 1);
    x = agent_flows_tenant(a, "spiffe://acme/site-1");
    cr_assert_eq(agent_flows_tenant(b, "spiffe://acme/site-2"), x);
    cr_assert(agent_flow_belongs(agent_flows_add(a, 1), x, 2));
    cr_expect_eq(agent_tenant_request(x, &l, BASE_SEC), AGENT_TENANT_PASS);
    cr_assert(agent_flow_belongs(agent_flows_add(b, 2), x, 2));
    cr_expect_eq(agent_tenant_request(x, &l, BASE_SEC), AGENT_TENANT_SESSIONS);
    cr_assert_not(agent_flow_belongs(agent_flows_add(b, 3), x, 2), "asked before, and came too late");
    agent_flows_remove(b, agent_flows_find(b, 3));
    cr_expect_eq(agent_tenant_request(x, &l, BASE_SEC), AGENT_TENANT_SESSIONS, "who had none gave one back");
    agent_flows_remove(a, agent_flows_find(a, 1));
    cr_expect_eq(agent_tenant_request(x, &l, BASE_SEC), AGENT_TENANT_PASS);
}

/* Two threads that ask for sessions of one tenant at once: together never more than its limit. */
static struct agent_tenant *crowded;
static _Atomic unsigned sessions, too_many;

static void *visitor(void *arg)
{
    for (uint32_t won = 0; won < ROUNDS / 2;) {
        if (!agent_tenant_add(crowded, 1)) {
            (void)sched_yield(); /* the other one may stand still with it */
            continue;
        }
        won++;
        too_many += atomic_fetch_add(&sessions, 1) != 0;
        atomic_fetch_sub(&sessions, 1);
        agent_tenant_sub(crowded);
    }
    return arg;
}

Test(agent_data_shared, a_tenants_limit_is_for_all_threads_together)
{
    base_cleanup(agent_shared_freep) struct agent_shared *s = agent_shared_new(16, 1);
    pthread_t t[RIVALS];

    crowded = agent_shared_tenant(s, "spiffe://acme/site-1");
    for (unsigned i = 0; i < RIVALS; i++)
        cr_assert_eq(pthread_create(&t[i], NULL, visitor, NULL), 0);
    for (unsigned i = 0; i < RIVALS; i++)
        cr_assert_eq(pthread_join(t[i], NULL), 0);
    cr_expect_eq(too_many, 0);
    cr_expect(agent_tenant_add(crowded, 1) && !agent_tenant_add(crowded, 1));
}
