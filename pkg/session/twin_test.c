/* SPDX-License-Identifier: Apache-2.0
 *
 * A twin: another machine with this one's memory. Its row is waited for as any other's (contract section 4):
 * while it renews, this process is not ready.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

/* The twin renews in this process's name. */
static void twin_renews(struct world *w)
{
    struct contract_object *o = world_get(w, "masque.edge1");
    o->u.instance.spec.renew.boot_time_us = w->now / BASE_US + 1;
    world_touch(w, o);
}

static void instance_state(struct world *w, struct session_summary *ret)
{
    session_core_summary(w->node[0].core, ret);
}

Test(session_twin, is_waited_for_until_it_is_silent_for_its_lease)
{
    struct world *w = world_usual(1);
    struct session_summary s;
    twin_renews(w);
    for (int i = 0; i < 6; i++) {
        world_run(w, 10 * W_SEC);
        instance_state(w, &s);
        cr_assert_str_eq(s.instance_state, "Taken", "after %d s", 10 * (i + 1));
        cr_assert(!w->node[0].ready);
        cr_assert_str_eq(w->node[0].ready_reason, "InstanceTaken");
        cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 1);
        twin_renews(w);
    }
    world_run(w, 29 * W_SEC);
    cr_assert(!w->node[0].ready);
    world_run(w, 2 * W_SEC);
    cr_assert(w->node[0].ready, "%s", w->node[0].ready_reason);
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 2);
    world_free(w);
}

Test(session_twin, met_while_reading_back_is_waited_for_too)
{
    struct world *w = world_usual(1);
    struct session_summary s;
    w->node[0].watch_silent[CONTRACT_INSTANCE] = true;
    twin_renews(w); /* the next renewal gets 409 and reads */
    world_run(w, 20 * W_SEC);
    instance_state(w, &s);
    cr_assert_str_eq(s.instance_state, "Taken");
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 1);
    world_free(w);
}

/* A create that landed, whose answer was lost, and that the twin has renewed since. */
Test(session_twin, met_before_the_instance_was_held)
{
    struct world *w = world_new();
    struct session_summary s;
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_node(w, 0);
    w->node[0].write_fault[CONTRACT_INSTANCE] = W_LANDED;
    world_agent_start(w, 0);
    for (int i = 0; i < 1000 && !world_get(w, "masque.edge1"); i++)
        world_run(w, W_MS);
    cr_assert_not_null(world_get(w, "masque.edge1"));
    twin_renews(w);
    world_run(w, 10 * W_SEC);
    instance_state(w, &s);
    cr_assert_str_eq(s.instance_state, "Taken");
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 1);
    world_free(w);
}

/* Stopped past its lease, a new process started beside it, continued: it is no fresh process any more. */
Test(session_twin, a_process_that_expired_unseen_waits_for_who_has_the_row)
{
    struct world *w = world_usual(1);
    struct session_summary s;
    struct contract_object *o = world_get(w, "masque.edge1");
    w->node[0].watch_silent[CONTRACT_INSTANCE] = true;
    w->node[0].cut = true;
    world_run(w, 40 * W_SEC); /* its own lease has ended */
    o->u.instance.spec.epoch++;
    o->u.instance.spec.process_id = world_uuid(w);
    o->u.instance.spec.renew.boot_time_us = w->now / BASE_US;
    world_touch(w, o);
    w->node[0].cut = false;
    world_run(w, 10 * W_SEC);
    instance_state(w, &s);
    cr_assert_str_eq(s.instance_state, "Taken");
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 2);
    world_run(w, 32 * W_SEC); /* silent for its L */
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 3);
    world_free(w);
}
