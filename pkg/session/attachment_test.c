/* SPDX-License-Identifier: Apache-2.0
 *
 * Attachments in odd states: names that cannot be, more of them than there is room for, one without a device,
 * one that is being deleted, and a binding that is made again in another VPC.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static struct contract_object *service_in(struct world *w, const char *name, const char *vpc,
                                          const char *pool)
{
    struct contract_object *s = world_service(w, name, pool);
    base_copy(s->u.service.vpc, sizeof s->u.service.vpc, vpc);
    world_touch(w, s);
    return s;
}

Test(session_attachment, a_service_in_a_vpc_that_cannot_be_named_gets_none)
{
    struct world *w = world_usual(1);
    unsigned writes = w->node[0].writes[CONTRACT_ATTACHMENT];
    service_in(w, "svc-b", "Not_a_label", "fd12:0:0:2::/64");
    world_run(w, W_SEC);
    cr_assert_str_eq(w->node[0].warned, "BadName");
    cr_assert_eq(w->node[0].writes[CONTRACT_ATTACHMENT], writes);
    cr_assert_eq(world_session(w, 0)->status, 200, "the others work");
    world_free(w);
}

Test(session_attachment, rows_of_other_names_and_rows_beyond_the_limit_are_not_kept)
{
    struct world *w = world_usual(1);
    world_agent_kill(w, 0);
    struct contract_object *a = world_get(w, "masque.edge1.vpc-a"), odd = *a;
    w->node[0].cfg.max_attachments = 2;
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    struct session_core *c = w->node[0].core;
    cr_assert(c->att[0].used && !c->att[1].used);
    base_copy(odd.u.meta.name, sizeof odd.u.meta.name, "masque.edge1.vpc-z");
    base_copy(odd.u.attachment.spec.vpc, sizeof odd.u.attachment.spec.vpc, "Not_a_label");
    world_shown(w, &odd, false);
    base_copy(odd.u.attachment.spec.vpc, sizeof odd.u.attachment.spec.vpc, "vpc-y"); /* the name says vpc-z */
    world_shown(w, &odd, false);
    base_copy(odd.u.attachment.spec.vpc, sizeof odd.u.attachment.spec.vpc, "vpc-z");
    world_shown(w, &odd, true); /* gone, and never seen before */
    cr_assert_not(c->att[1].used);
    world_shown(w, &odd, false);
    cr_assert(c->att[1].used, "a row that was listed before its service");
    cr_assert_str_eq(c->att[1].vpc, "vpc-z");
    base_copy(odd.u.meta.name, sizeof odd.u.meta.name, "masque.edge1.vpc-y");
    base_copy(odd.u.attachment.spec.vpc, sizeof odd.u.attachment.spec.vpc, "vpc-y");
    world_shown(w, &odd, false); /* no room */
    cr_assert_str_eq(c->att[0].vpc, "vpc-a");
    cr_assert_str_eq(c->att[1].vpc, "vpc-z");
    cr_assert_eq(world_session(w, 0)->status, 200);
    world_free(w);
}

Test(session_attachment, ready_without_a_device_is_not_ready)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    struct w_node *n = world_node(w, 0);
    n->attachments_wait = true;
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
    a->u.attachment.status.accepted_instance_epoch = 1;
    a->u.attachment.status.ready.status = CONTRACT_COND_TRUE;
    world_touch(w, a);
    world_run(w, W_SEC);
    cr_assert_eq(n->tun_opens, 0);
    cr_assert_eq(n->core->att[0].state, ATT_ACCEPTING);
    cr_assert_not(n->ready);
    base_copy(a->u.attachment.status.device, sizeof a->u.attachment.status.device, "hf00000001");
    world_touch(w, a);
    while (n->tun_opens == 0)
        world_run(w, 100 * BASE_US);
    world_shown(w, a, false); /* looked at again before the device is open */
    cr_assert_eq(n->core->att[0].state, ATT_OPENING);
    world_run(w, W_SEC);
    cr_assert_eq(n->tun_opens, 1);
    cr_assert(n->ready, "%s", n->ready_reason);
    world_free(w);
}

Test(session_attachment, rows_of_another_object_and_devices_of_nobody)
{
    struct world *w = world_usual(1);
    struct session_attachment *a = &w->node[0].core->att[0];
    struct contract_object o = *world_get(w, "masque.edge1.vpc-a");
    struct session_in in = {
        .ev = SESSION_EV_TUN}; /* a device that was given up meanwhile, or never asked for */
    service_in(w, "svc-b", "vpc-b", "fd12:0:0:2::/64");
    w->node[0].attachments_wait = true;
    world_run(w, 100 * W_MS);
    in.u.tun.tun_id = 77;
    in.u.tun.code = BASE_OK;
    world_event(w, 0, &in);
    in.u.tun.tun_id = 0;
    world_event(w, 0, &in);
    cr_assert_not(w->node[0].core->att[1].tun_open);
    struct base_uuid uid = o.u.meta.uid;
    o.u.meta.uid = world_uuid(w);
    base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++w->rv);
    world_shown(w, &o, true); /* the end of an object that is not known */
    cr_assert(a->have_row && base_uuid_eq(&a->row.meta.uid, &uid));
    world_shown(w, &o, false); /* it was made again, and no event told of the deletion */
    cr_assert(base_uuid_eq(&a->row.meta.uid, &o.u.meta.uid));
    world_free(w);
}

/* Nothing of a row says "ready" to an instance that holds nothing: epoch 0 of no instance is no epoch. */
Test(session_attachment, is_not_ready_while_nothing_is_held)
{
    struct world *w = world_usual(1);
    struct session_core *c = w->node[0].core;
    struct session_attachment *a = &c->att[0];
    cr_assert(session_att_ready(c, a));
    struct lease_self was = c->inst.me;
    c->inst.me.instance_uid = (struct base_uuid){{0}};
    c->inst.me.epoch = 0;
    a->row.spec.instance.uid = c->inst.me.instance_uid;
    a->row.spec.instance_epoch = a->row.status.accepted_instance_epoch = 0;
    cr_assert_not(session_att_ready(c, a));
    c->inst.me = was;
    world_free(w);
}

Test(session_attachment, one_of_another_epoch_that_is_being_deleted_is_waited_for)
{
    struct world *w = world_usual(1);
    world_agent_kill(w, 0);
    struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
    a->u.meta.deleting = 1; /* a finalizer keeps it */
    world_touch(w, a);
    unsigned writes = w->node[0].writes[CONTRACT_ATTACHMENT];
    world_agent_start(w, 0);
    world_run(w, 3 * W_SEC);
    cr_assert_eq(w->node[0].core->att[0].state, ATT_ACCEPTING);
    cr_assert_eq(w->node[0].writes[CONTRACT_ATTACHMENT], writes);
    cr_assert(world_refused(world_session(w, 0), 503, "AttachmentNotReady"));
    world_delete(w, "masque.edge1.vpc-a");
    world_run(w, W_SEC);
    cr_assert_eq(w->node[0].writes[CONTRACT_ATTACHMENT], writes + 1);
    cr_assert_eq(world_session(w, 0)->status, 200);
    world_free(w);
}

/* The connector's place is still taken by a session that does not stop: what it remembered of service and VPC
 * is of the binding before. */
Test(session_attachment, a_binding_that_is_made_again_in_another_vpc)
{
    struct world *w = world_usual(1);
    service_in(w, "svc-b", "vpc-b", "fd12:0:0:2::/64");
    world_run(w, W_SEC);
    w->node[0].stuck = true;
    struct w_flow *f = world_session(w, 0);
    uint32_t tun = f->admit.u.admit.tun_id;
    world_delete(w, "acme.site1");
    world_run(w, 2 * W_SEC);
    cr_assert_str_eq(world_state(w, 0), "Retired");
    struct contract_object gone = {.kind = CONTRACT_BINDING}; /* the watch says so twice */
    base_copy(gone.u.meta.name, sizeof gone.u.meta.name, "acme.site1");
    base_fmt(gone.u.meta.rv, sizeof gone.u.meta.rv, "%llu", (unsigned long long)++w->rv);
    world_shown(w, &gone, true);
    world_relist(w, 0); /* and a list does not have it */
    world_run(w, 100 * W_MS);
    cr_assert_str_eq(world_state(w, 0), "Retired");
    struct contract_object *b = world_binding(w, "acme", "site1", "svc-b", W_URI);
    base_copy(b->u.binding.spec.vpc, sizeof b->u.binding.spec.vpc, "vpc-b");
    world_touch(w, b);
    world_run(w, W_SEC);
    struct session_in in = {.ev = SESSION_EV_STOPPED};
    in.u.flow = f->flow;
    world_event(w, 0, &in);
    cr_assert_str_eq(world_state(w, 0), "Idle");
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_neq(f->admit.u.admit.tun_id, tun);
    cr_assert(base_prefix_eq(&f->admit.u.admit.pool, &world_get(w, "svc-b")->u.service.pool));
    world_free(w);
}

/* Beside the record of a claim, what it was decided on may go. */
Test(session_attachment, what_goes_while_the_record_is_on_its_way)
{
    enum { NOT_ACCEPTED, OTHER_VPC, N };
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(1);
        w->node[0].audit_delay = 200 * W_MS;
        uint64_t flow = world_connect(w, 0, W_URI);
        world_run(w, 50 * W_MS);
        cr_assert_str_eq(world_state(w, 0), "Auditing");
        if (i == NOT_ACCEPTED) {
            w->node[0].foundation_down = true;
            struct contract_object *o = world_get(w, "masque.edge1");
            o->u.instance.status.accepted_process_id = world_uuid(w);
            world_touch(w, o);
        } else { /* the binding is made again, and no watch event says that it was gone */
            struct contract_object *b = world_get(w, "acme.site1");
            b->u.meta.uid = world_uuid(w);
            base_copy(b->u.binding.spec.vpc, sizeof b->u.binding.spec.vpc, "vpc-z");
            world_touch(w, b);
        }
        world_run(w, 300 * W_MS);
        cr_assert_str_eq(world_state(w, 0), "Pending", "%d", i);
        cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], 0);
        if (i == NOT_ACCEPTED) {
            struct contract_object *o = world_get(w, "masque.edge1");
            o->u.instance.status.accepted_process_id = o->u.instance.spec.process_id;
            world_touch(w, o);
            w->node[0].foundation_down = false;
        }
        world_run(w, 11 * W_SEC);
        struct w_flow *f = world_flow(w, flow);
        if (i == NOT_ACCEPTED)
            cr_assert_eq(f->status, 200, "%s", f->reason);
        else
            cr_assert(world_refused(f, 503, "AttachmentNotReady"), "%s", f->reason);
        world_free(w);
    }
}

static struct contract_object *for_epoch(struct world *w, int64_t epoch)
{
    struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
    a->u.attachment.spec.instance_epoch = epoch;
    world_touch(w, a);
    return a;
}

/* The simulator's seed 23347047: etcd was restored to a state before this instance's epochs 2 and 3, and then a
 * write of epoch 3 arrived a second time and landed on the restored row. Epochs never go back in it. */
Test(session_attachment, one_of_an_epoch_that_no_process_has_is_made_again)
{
    struct world *w = world_usual(1);
    struct w_node *n = &w->node[0];
    struct base_uuid uid = for_epoch(w, 7)->u.meta.uid;
    base_time renewed = n->core->inst.renewed;
    while (n->core->inst.renewed == renewed) {
        world_run(w, 10 * W_MS);
        cr_assert(base_uuid_eq(&world_get(w, "masque.edge1.vpc-a")->u.meta.uid, &uid) ||
                      n->core->inst.renewed != renewed,
                  "not before a renewal has landed");
    }
    cr_assert(n->core->inst.state == INST_HELD);
    world_run(w, 2 * W_SEC);
    struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
    cr_assert_not(base_uuid_eq(&a->u.meta.uid, &uid));
    cr_assert_eq(a->u.attachment.spec.instance_epoch, 1);
    cr_assert(n->ready, "%s", n->ready_reason);
    cr_assert_eq(world_session(w, 0)->status, 200);
    world_free(w);
}

/* A successor's: its instance has landed, and this process, which does not know yet, leaves it alone. */
Test(session_attachment, one_of_a_successor_is_left_alone)
{
    struct world *w = world_usual(1);
    struct w_node *n = &w->node[0];
    n->watch_silent[CONTRACT_INSTANCE] = true;
    world_take_instance(w);
    struct base_uuid uid = for_epoch(w, 2)->u.meta.uid;
    unsigned writes = n->writes[CONTRACT_ATTACHMENT];
    cr_assert_eq(n->core->inst.state, INST_HELD);
    while (n->core->inst.state == INST_HELD)
        world_run(w, 10 * W_MS);
    cr_assert_eq(n->writes[CONTRACT_ATTACHMENT], writes);
    struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
    cr_assert(base_uuid_eq(&a->u.meta.uid, &uid));
    cr_assert_eq(a->u.attachment.spec.instance_epoch, 2);
    world_free(w);
}
