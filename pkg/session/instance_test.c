/* SPDX-License-Identifier: Apache-2.0
 *
 * The instance row in odd states, beyond corner_test.c: changed between a write and the reading back, without
 * a process, of another object; times that come early; a release that meets a successor.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

/* Our write landed, and before it is read back an operator deletes or releases the row: what is read is not
 * held, though it names this very identity. */
Test(session_instance, own_row_that_ended_before_it_was_read_back)
{
    for (int released = 0; released < 2; released++) {
        struct world *w = world_new();
        world_service(w, "svc-a", "fd12:0:0:1::/64");
        struct w_node *n = world_node(w, 0);
        n->write_fault[CONTRACT_INSTANCE] = W_LANDED;
        world_agent_start(w, 0);
        world_until_inst(w, "Retry", 60 * W_SEC);
        struct contract_object *o = world_get(w, "masque.edge1");
        struct base_uuid process = o->u.instance.spec.process_id;
        cr_assert(base_uuid_eq(&process, &n->core->inst.me.process_id));
        if (released)
            o->u.instance.spec.release_time = 1;
        else
            o->u.meta.deleting = 1;
        world_touch(w, o);
        if (released) {
            cr_assert_geq(world_until(w, 5 * W_SEC, world_is_ready, NULL), 0, "%s", n->ready_reason);
            cr_assert_eq(o->u.instance.spec.epoch, 2, "the next epoch, not that one");
        } else {
            world_run(w, 3 * W_SEC);
            cr_assert_not(n->ready);
            cr_assert_str_eq(n->ready_reason, "InstanceDeleting");
            world_delete(w, "masque.edge1");
            cr_assert_geq(world_until(w, 5 * W_SEC, world_is_ready, NULL), 0, "%s", n->ready_reason);
        }
        o = world_get(w, "masque.edge1");
        cr_assert_not(base_uuid_eq(&o->u.instance.spec.process_id, &process), "of another identity");
        world_free(w);
    }
}

/* It was lost to a row that names no process: no identity of before had that name either. */
Test(session_instance, a_row_without_a_process_is_somebody_else_s)
{
    struct world *w = world_usual(1);
    struct contract_object *o = world_get(w, "masque.edge1");
    o->u.instance.spec.epoch++;
    o->u.instance.spec.process_id = (struct base_uuid){{0}};
    w->node[0].foundation_down = true; /* it does not accept that either */
    world_touch(w, o);
    world_run(w, 20 * W_SEC);
    cr_assert_str_eq(w->node[0].ready_reason, "InstanceTaken");
    cr_assert_eq(o->u.instance.spec.epoch, 2, "its lease is waited for");
    w->node[0].foundation_down = false;
    o->u.instance.status.accepted_epoch = 2; /* so that nothing is left to accept before the next one */
    world_run(w, 15 * W_SEC);
    cr_assert(w->node[0].ready, "%s", w->node[0].ready_reason);
    cr_assert_eq(o->u.instance.spec.epoch, 3);
    world_free(w);
}

/* Not taken before it has been silent for its lease: another epoch is a sign of life, too. */
Test(session_instance, whoever_has_it_at_another_epoch_is_waited_for_anew)
{
    struct world *w = world_usual(1);
    struct contract_object *o = world_get(w, "masque.edge1");
    world_take_instance(w);
    world_run(w, 25 * W_SEC);
    cr_assert_str_eq(world_inst_state(w), "Taken");
    o->u.instance.spec.epoch++;
    world_touch(w, o);
    world_run(w, 25 * W_SEC);
    cr_assert_str_eq(world_inst_state(w), "Taken", "50 s after the first sight, 25 s after the second");
    cr_assert_eq(o->u.instance.spec.epoch, 3);
    world_run(w, 10 * W_SEC);
    cr_assert_str_eq(world_inst_state(w), "Held");
    cr_assert_eq(o->u.instance.spec.epoch, 4);
    world_free(w);
}

/* A deletion of an object before this one, told late. */
Test(session_instance, the_end_of_an_object_before_this_one)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct contract_object o = *world_get(w, "masque.edge1");
    o.u.meta.uid = world_uuid(w);
    base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++w->rv);
    world_shown(w, &o, true);
    cr_assert_str_eq(world_inst_state(w), "Held");
    cr_assert(w->node[0].core->inst.have_watched, "what the watch has shown of this one stays");
    cr_assert(world_passes(w, f));
    world_free(w);
}

/* Whatever looks at the instance before its time: nothing is asked twice, no wait is shortened. */
Test(session_instance, looked_at_before_its_time)
{
    enum { RETRY, TAKEN, RENEWING, RELEASING, PAUSED, READING, N };
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(1);
        struct w_node *n = &w->node[0];
        struct session_core *c = n->core;
        switch (i) {
        case RETRY:
            n->read_fault[CONTRACT_INSTANCE] = W_DOWN;
            world_delete(w, "masque.edge1");
            world_until_inst(w, "Retry", 60 * W_SEC);
            break;
        case TAKEN:
            world_take_instance(w);
            world_until_inst(w, "Taken", 60 * W_SEC);
            break;
        case RENEWING:
            for (int k = 0; k < 30000 && c->inst.renew != RENEW_SENT; k++)
                world_run(w, W_MS);
            cr_assert_eq(c->inst.renew, RENEW_SENT);
            break;
        case RELEASING:
            world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
            cr_assert_neq(c->inst.ask, 0);
            break;
        case READING:
            n->read_fault[CONTRACT_INSTANCE] = W_SLOW;
            world_delete(w, "masque.edge1");
            world_until_inst(w, "Reading", 60 * W_SEC);
            break;
        case PAUSED:
            n->write_fault[CONTRACT_INSTANCE] = W_TRY_LATER;
            world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
            for (int k = 0; k < 1000 && c->inst.ask != 0; k++)
                world_run(w, W_MS);
            cr_assert_eq(c->inst.ask, 0);
            cr_assert_str_eq(world_inst_state(w), "Releasing");
            break;
        }
        char state[24];
        base_copy(state, sizeof state, world_inst_state(w));
        uint64_t asks = c->asks;
        session_dirty(c, ENTITY_INSTANCE);
        world_event(w, 0, &(struct session_in){.ev = SESSION_EV_TICK});
        cr_assert_str_eq(world_inst_state(w), state, "%d", i);
        cr_assert_eq(c->asks, asks, "%d: %s asks before its time", i, state);
        world_free(w);
    }
}

/* A process that starts and finds a row without one: nobody's, taken at once. */
Test(session_instance, a_row_without_a_process_at_the_start)
{
    struct world *w = world_usual(1);
    world_agent_kill(w, 0);
    struct contract_object *o = world_get(w, "masque.edge1");
    o->u.instance.spec.process_id = (struct base_uuid){{0}};
    world_agent_start(w, 0);
    world_run(w, 2 * W_SEC);
    cr_assert(w->node[0].ready, "%s", w->node[0].ready_reason);
    cr_assert_eq(o->u.instance.spec.epoch, 2);
    world_free(w);
}

/* Lost, released by whoever had it, and then our takeover lands late, under an identity that was given up:
 * that was this process, and is not waited for. */
Test(session_instance, own_late_takeover_after_a_loss_is_not_waited_for)
{
    struct world *w = world_usual(1);
    struct w_node *n = &w->node[0];
    struct contract_object *o = world_get(w, "masque.edge1");
    world_take_instance(w);
    world_until_inst(w, "Taken", 60 * W_SEC);
    world_run(w, 50 * W_MS); /* the foundation has seen it */
    n->write_fault[CONTRACT_INSTANCE] = W_LATE;
    o->u.instance.spec.release_time = 1;
    world_touch(w, o);
    world_until_inst(w, "Writing", 60 * W_SEC);
    world_until_inst(w, "Retry", 60 * W_SEC);
    n->audit_fails = true;
    world_until_inst(w, "Auditing", 60 * W_SEC);
    world_until_inst(w, "Retry", 60 * W_SEC); /* the next identity has sent nothing */
    n->audit_fails = false;
    world_land(w);
    cr_assert_eq(o->u.instance.spec.epoch, 3);
    world_run(w, 3 * W_SEC);
    cr_assert_str_eq(world_inst_state(w), "Held");
    cr_assert_eq(o->u.instance.spec.epoch, 4);
    world_free(w);
}

/* What the watch has shown of the row that was lost says nothing of the one that is made after it. */
Test(session_instance, made_again_after_it_was_lost)
{
    struct world *w = world_usual(1);
    world_take_instance(w);
    world_until_inst(w, "Taken", 60 * W_SEC);
    w->node[0].watch_silent[CONTRACT_INSTANCE] = true;
    world_delete(w, "masque.edge1");
    world_until_inst(w, "Held", 60 * W_SEC);
    struct session_instance *i = &w->node[0].core->inst;
    cr_assert(base_uuid_eq(&i->row.meta.uid, &world_get(w, "masque.edge1")->u.meta.uid));
    cr_assert_eq(i->row.spec.epoch, 1);
    world_free(w);
}

Test(session_instance, writes_that_are_refused_or_meet_nothing)
{
    enum { INVALID, DENIED, GONE, N };
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(1);
        struct w_node *n = &w->node[0];
        world_agent_kill(w, 0);
        n->audit_delay = 20 * W_MS;
        n->write_fault[CONTRACT_INSTANCE] = i == INVALID ? W_INVALID : i == DENIED ? W_DENIED : W_NO_FAULT;
        world_agent_start(w, 0);
        world_until_inst(w, "Auditing", 60 * W_SEC);
        if (i == GONE)
            world_delete(w, "masque.edge1");
        world_until_inst(w, "Retry", 60 * W_SEC);
        world_run(w, 10 * W_MS);
        cr_assert_str_eq(n->ready_reason, i == GONE ? "InstanceNotAccepted" : "InstanceRefused");
        cr_assert_geq(world_until(w, 5 * W_SEC, world_is_ready, NULL), 0, "%s", n->ready_reason);
        cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, i == GONE ? 1 : 2);
        world_free(w);
    }
}

/* The watch does not tell, the renewal does. */
Test(session_instance, a_renewal_that_meets_nothing)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    w->node[0].watch_silent[CONTRACT_INSTANCE] = true;
    world_delete(w, "masque.edge1");
    world_run(w, 12 * W_SEC);
    cr_assert(f->stopped);
    cr_assert_str_eq(w->node[0].last_audit[SESSION_AUDIT_EXPIRY].reason, "InstanceLost");
    cr_assert_str_eq(world_inst_state(w), "Held");
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 1, "a new object");
    world_free(w);
}

/* ---- giving it back */
Test(session_instance, a_release_that_meets_a_successor_or_nothing)
{
    for (int gone = 0; gone < 2; gone++) {
        struct world *w = world_usual(1);
        struct w_node *n = &w->node[0];
        struct contract_object *o = world_get(w, "masque.edge1");
        n->watch_silent[CONTRACT_INSTANCE] = true;
        if (gone) {
            world_delete(w, "masque.edge1");
        } else {
            world_take_instance(w);
        }
        world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
        cr_assert_str_eq(world_inst_state(w), "Releasing");
        world_run(w, W_SEC);
        cr_assert_str_eq(world_inst_state(w), "Released");
        cr_assert(n->drained);
        if (gone)
            cr_assert_null(world_get(w, "masque.edge1"));
        else
            cr_assert_eq(o->u.instance.spec.release_time, 0, "the successor's row is left alone");
        world_free(w);
    }
}

/* The lease is over before the release has an answer: nothing is left to give back. */
Test(session_instance, a_release_that_outlives_its_lease)
{
    struct world *w = world_usual(1);
    w->node[0].cut = true;
    world_run(w, 24 * W_SEC);
    cr_assert_str_eq(world_inst_state(w), "Held");
    base_time from = w->now;
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    cr_assert_str_eq(world_inst_state(w), "Releasing");
    world_until_inst(w, "Released", 60 * W_SEC);
    cr_assert_lt(w->now - from, SESSION_DRAIN_WAIT);
    cr_assert(w->node[0].drained);
    world_free(w);
}
