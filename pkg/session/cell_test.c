/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells of the state x event tables that no story and no random schedule comes to (`make cells`): a row that
 * is deleted before the start or while it is being written, a device that is lost while the instance is given
 * back, a second request while the first one's row or permission is asked for.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static void deleted(struct world *w)
{
    struct contract_object o = {.kind = CONTRACT_INSTANCE};
    base_copy(o.u.meta.name, sizeof o.u.meta.name, "masque.edge1");
    o.u.meta.uid = world_uuid(w);
    base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "90000");
    world_shown(w, &o, true);
}

Test(session_cell, before_the_start_nothing_begins_and_a_drain_is_the_end)
{
    struct world *w = world_new();
    struct w_node *n = world_node(w, 0);
    cr_assert_eq(session_core_new(&n->core, &n->cfg, NULL), BASE_OK);
    deleted(w);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_REGRESSED});
    cr_assert_str_eq(world_inst_state(w), "Init");
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    cr_assert(n->drained);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_START}); /* a signal came before the loop ran */
    cr_assert_str_eq(world_inst_state(w), "Released");
    cr_assert_eq(n->reads[CONTRACT_INSTANCE] + n->writes[CONTRACT_INSTANCE], 0);
    world_free(w);
}

Test(session_cell, a_row_that_is_deleted_while_it_is_taken_changes_nothing)
{
    static char state[2][12] = {"Auditing", "Writing"};
    for (int i = 0; i < 2; i++) {
        struct world *w = world_new();
        world_service(w, "svc-a", "fd12:0:0:1::/64");
        struct w_node *n = world_node(w, 0);
        n->audit_silent = i == 0;
        n->write_fault[CONTRACT_INSTANCE] = i == 1 ? W_NO_ANSWER : W_NO_FAULT;
        world_agent_start(w, 0);
        cr_assert_geq(world_until(w, W_SEC, world_inst_is, state[i]), 0);
        unsigned writes = n->writes[CONTRACT_INSTANCE];
        deleted(w);
        cr_assert_str_eq(world_inst_state(w), state[i], "what was asked is seen through");
        cr_assert_eq(n->writes[CONTRACT_INSTANCE], writes);
        n->audit_silent = false;
        cr_assert_geq(world_until(w, 20 * W_SEC, world_is_ready, NULL), 0, "%s: %s", state[i],
                      n->ready_reason);
        world_free(w);
    }
}

Test(session_cell, while_the_instance_is_given_back)
{
    for (int lost = 0; lost < 2; lost++) {
        struct world *w = world_usual(1);
        struct w_node *n = &w->node[0];
        unsigned expiries = n->audits[SESSION_AUDIT_EXPIRY];
        world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
        cr_assert_str_eq(world_inst_state(w), "Releasing");
        if (lost) {
            struct session_in in = {.ev = SESSION_EV_TUN_LOST};
            in.u.tun.tun_id = n->core->att[0].tun_id;
            in.u.tun.code = BASE_EIO;
            cr_assert_neq(in.u.tun.tun_id, 0);
            world_event(w, 0, &in);
            cr_assert_str_eq(world_inst_state(w), "Releasing", "it ends anyway");
            world_run(w, W_SEC);
            cr_assert_neq(world_get(w, "masque.edge1")->u.instance.spec.release_time, 0);
        } else {
            world_delete(w, "masque.edge1");
            world_run(w, 3 * W_MS); /* before any answer */
            cr_assert_str_eq(world_inst_state(w), "Released");
        }
        cr_assert(n->drained);
        cr_assert_eq(n->audits[SESSION_AUDIT_EXPIRY], expiries);
        world_free(w);
    }
}

/* No descriptor has the number 0: an attachment without a device is no device that was lost. */
Test(session_cell, a_device_that_was_never_opened_is_not_lost)
{
    struct world *w = world_usual(1);
    struct w_node *n = &w->node[0];
    world_service(w, "svc-b", "fd12:0:0:2::/64");
    struct contract_object *s = world_get(w, "svc-b");
    base_copy(s->u.service.vpc, sizeof s->u.service.vpc, "vpc-b");
    n->attachments_wait = true;
    world_touch(w, s);
    world_run(w, 100 * W_MS);
    cr_assert_eq(n->core->att[1].tun_id, 0);
    cr_assert(n->core->att[1].used);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_TUN_LOST});
    cr_assert_str_eq(world_inst_state(w), "Held");
    world_free(w);
}

/* Its descriptor is about to be closed: what becomes of it says nothing about the instance of now. */
Test(session_cell, a_device_of_an_identity_that_has_ended_is_not_lost)
{
    struct world *w = world_usual(1);
    struct session_in in = {.ev = SESSION_EV_TUN_LOST};
    struct session_attachment *a = &w->node[0].core->att[0];
    in.u.tun.tun_id = a->tun_id;
    a->identity--;
    world_event(w, 0, &in);
    cr_assert_str_eq(world_inst_state(w), "Held");
    a->identity++;
    world_event(w, 0, &in);
    cr_assert_str_eq(world_inst_state(w), "Reading");
    world_free(w);
}

/* The answer to the release comes with the drain's last moment: everything was given back. */
Test(session_cell, a_release_that_lands_when_time_is_up_has_landed)
{
    struct world *w = world_usual(1);
    struct session_core *c = w->node[0].core;
    struct session_in in = {.ev = SESSION_EV_ANSWER, .wall = 1};
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    struct contract_object row = {.kind = CONTRACT_INSTANCE};
    row.u.instance = c->inst.row;
    row.u.instance.spec.release_time = 1;
    base_copy(row.u.meta.rv, sizeof row.u.meta.rv, "90000");
    in.now = c->drain_by; /* before the tick of that moment */
    in.u.answer.ask = c->inst.ask;
    in.u.answer.n_objects = 1;
    in.u.answer.objects = &row;
    cr_assert_eq(session_core_step(c, &in, &w->out), BASE_OK);
    bool found = false;
    for (unsigned i = 0; i < w->out.n_fx; i++)
        if (w->out.fx[i].kind == SESSION_FX_DRAINED) {
            found = true;
            cr_assert(w->out.fx[i].u.drained.all);
        }
    cr_assert(found);
    world_free(w);
}

Test(session_cell, a_second_request_while_the_row_is_read)
{
    static char checking[] = "Checking";
    struct world *w = world_usual(1);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_CONFLICT; /* what does the row say? */
    uint64_t a = world_connect(w, 0, W_URI);
    cr_assert_geq(world_until(w, W_SEC, world_conn_is, checking), 0);
    uint64_t b = world_connect(w, 0, W_URI);
    cr_assert_eq(world_flow(w, a)->status, 503);
    cr_assert_eq(strncmp(world_flow(w, a)->reason, "Superseded:", 11), 0);
    cr_assert_str_eq(world_state(w, 0), "Checking");
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, b)->status, 200, "%s", world_flow(w, b)->reason);
    world_free(w);
}

Test(session_cell, a_second_request_and_none_while_permission_is_asked_for)
{
    static char listing[] = "Listing", asking[] = "Asking";
    for (int gone = 0; gone < 2; gone++) {
        struct world *w = world_webhook(1);
        struct w_node *n = &w->node[0];
        uint64_t a = world_connect(w, 0, W_URI);
        cr_assert_geq(world_until(w, W_SEC, world_conn_is, listing), 0);
        n->authority.silent = true;
        cr_assert_geq(world_until(w, W_SEC, world_conn_is, asking), 0);
        n->authority.silent = false;
        if (gone) {
            world_end(w, a);
            cr_assert_str_eq(world_state(w, 0), "Idle");
            world_run(w, 6 * W_SEC); /* nobody waits for the answer */
            cr_assert_eq(n->writes[CONTRACT_CLAIM], 0);
        } else {
            unsigned asked = n->authority.asked[AUTHORITY_ASK_ACQUIRE];
            uint64_t b = world_connect(w, 0, W_URI);
            world_run(w, 20 * W_MS);
            cr_assert_str_eq(world_state(w, 0), "Asking");
            cr_assert_eq(world_flow(w, a)->status, 503);
            world_run(w, 6 * W_SEC);
            cr_assert_eq(world_flow(w, b)->status, 200, "%s", world_flow(w, b)->reason);
            cr_assert_eq(n->authority.asked[AUTHORITY_ASK_ACQUIRE], asked + 1, "it needs its own permission");
        }
        world_free(w);
    }
}
