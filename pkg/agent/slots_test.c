/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/slots.h"

#include <criterion/criterion.h>

#include "base/id.h"

Test(agent_slots, a_flow_has_one_slot_until_its_barrier)
{
    struct agent_slots *s = agent_slots_new(2);
    struct agent_slot *a = agent_slots_add(s, 7, 1);

    cr_assert_not_null(a);
    cr_assert_null(agent_slots_add(s, 7, 2), "the same flow twice");
    cr_assert_null(agent_slots_add(s, 0, 2), "flow 0 is no flow");
    cr_assert_not_null(agent_slots_add(s, 8, 2));
    cr_assert_null(agent_slots_add(s, 9, 3), "more than there are");
    fence_kill(a->slot);
    agent_slots_remove(s, a);
    cr_assert_null(agent_slots_find(s, 7));
    cr_assert_not_null(agent_slots_find(s, 8));
    cr_assert_not_null(agent_slots_add(s, 9, 3));
    for (uint32_t i = 0; agent_slots_at(s, i); i++)
        fence_kill(agent_slots_at(s, i)->slot);
    agent_slots_free(s);
}

/* Against a plain array: 20,000 random additions and removals. */
Test(agent_slots, agrees_with_a_plain_array)
{
    enum { MAX = 64, FLOWS = 200 };
    struct agent_slots *s = agent_slots_new(MAX);
    bool there[FLOWS] = {false};
    struct base_prng prng = {42};
    uint32_t n = 0;

    for (int step = 0; step < 20000; step++) {
        uint64_t flow = 1 + base_prng_below(&prng, FLOWS - 1);
        struct agent_slot *e = agent_slots_find(s, flow);

        cr_assert_eq(e != NULL, there[flow], "step %d flow %lu", step, (unsigned long)flow);
        if (e) {
            cr_assert_eq(e->flow, flow);
            cr_assert_eq(fence_slot_gen(e->slot), flow + 1000);
            fence_kill(e->slot);
            agent_slots_remove(s, e);
            there[flow] = false;
            n--;
        } else if (n < MAX) {
            cr_assert_not_null(agent_slots_add(s, flow, flow + 1000));
            there[flow] = true;
            n++;
        }
        cr_assert_eq(agent_slots_used(s), n);
    }
    while (agent_slots_at(s, 0)) {
        fence_kill(agent_slots_at(s, 0)->slot);
        agent_slots_remove(s, agent_slots_at(s, 0));
    }
    agent_slots_free(s);
}
