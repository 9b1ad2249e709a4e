/* SPDX-License-Identifier: Apache-2.0
 * Instances, attachments, devices and restarts: contract sections 2 and 8 ("Accept an instance", "Restart",
 * "Reboot"). */
#include "rig.h"

static int device_fx(const struct rig *r, enum fnd_fx_kind kind, unsigned from)
{
    return rig_find(r, kind, from);
}

static int instance_write(const struct rig *r, unsigned from)
{
    for (unsigned i = from; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == FND_FX_STATUS && r->trace[i].fx.obj_kind == CONTRACT_INSTANCE)
            return (int)i;
    return -1;
}

/* The agent of the new process moves its attachment on. */
static void attachment_follows(struct rig *r)
{
    r->att.spec.instance_epoch = r->inst.spec.epoch;
    rig_att_changed(r);
    rig_settle(r);
}

Test(foundation_instance, is_accepted_and_gets_one_device)
{
    struct rig r;
    int accept, make;

    rig_init(&r);
    rig_list(&r);
    cr_assert_eq(r.inst.status.accepted_epoch, 1);
    cr_assert(base_uuid_eq(&r.inst.status.accepted_process_id, &r.process));
    cr_assert_eq(r.inst.status.ready.status, CONTRACT_COND_TRUE);
    cr_assert_eq(r.att.status.accepted_instance_epoch, 1);
    cr_assert_eq(r.att.status.ready.status, CONTRACT_COND_TRUE);
    cr_assert_eq(r.att.status.mtu, 1400);
    cr_assert_eq(r.made, 1u);
    cr_assert_str_eq(r.devices[0], r.att.status.device);
    accept = instance_write(&r, 0);
    make = device_fx(&r, FND_FX_DEVICE_MAKE, 0);
    cr_assert(accept >= 0 && make > accept, "%d %d", accept, make);
    rig_fini(&r);
}

Test(foundation_instance, no_device_before_the_accept_of_the_attachment_has_landed)
{
    struct rig r;

    rig_init(&r);
    r.writes = RIG_HOLD;
    rig_list(&r);
    rig_release(&r, RIG_OK); /* instance */
    cr_assert_eq(r.n_held, 1u, "attachment");
    cr_assert_eq(r.made, 0u);
    rig_release(&r, RIG_OK);
    cr_assert_eq(r.made, 1u);
    rig_fini(&r);
}

Test(foundation_instance, of_another_node_or_boot_is_refused)
{
    static const char *const reasons[] = {"NodeMismatch", "BootIDMismatch"};

    for (unsigned i = 0; i < BASE_LEN(reasons); i++) {
        struct rig r;

        rig_init(&r);
        if (i == 0)
            r.inst.spec.node_uid = rig_uuid(9);
        if (i == 1)
            r.inst.spec.renew.boot_id = r.other_boot;
        rig_list(&r);
        cr_assert_eq(r.inst.status.accepted_epoch, 0, "%s", reasons[i]);
        cr_assert_str_eq(r.inst.status.accepted.reason, reasons[i]);
        cr_assert_eq(r.made, 0u, "%s", reasons[i]);
        rig_run(&r, 30 * BASE_SEC, true);
        cr_assert_eq(rig_count(&r, FND_FX_STATUS, 0), 1u, "%s: said once, not per renewal", reasons[i]);
        rig_fini(&r);
    }
}

Test(foundation_instance, a_new_epoch_comes_after_old_gates_and_old_devices)
{
    struct rig r;
    int zero = -1, gone, accept, said;
    unsigned from;
    char old[CONTRACT_DEVICE_SIZE];

    rig_open(&r);
    base_copy(old, sizeof old, r.devices[0]);
    from = r.n_trace;
    rig_new_process(&r);
    rig_settle(&r);
    for (unsigned i = from; i < r.n_trace && zero < 0; i++)
        if (r.trace[i].fx.kind == FND_FX_GATE && r.trace[i].fx.gate.deadline == 0)
            zero = (int)i;
    gone = device_fx(&r, FND_FX_DEVICE_DELETE, from);
    accept = instance_write(&r, from);
    said = rig_status(&r, from);
    cr_assert(zero >= 0 && gone > zero && accept > gone, "zero %d, delete %d, accept %d", zero, gone, accept);
    cr_assert_gt(said, gone, "closedEpoch of the old process before its device was gone");
    cr_assert_eq(r.claim.status.closed_epoch, 1, "(a): the instance row names a later epoch");
    cr_assert_str_eq(r.claim.status.gate.reason, "InstanceReplaced");
    attachment_follows(&r);
    cr_assert_eq(r.n_devices, 1u);
    cr_assert_str_neq(r.devices[0], old, "a new device for each instance epoch");
    rig_taken_over(&r, "edge1");
    rig_settle(&r);
    cr_assert(rig_is_open(&r));
    rig_fini(&r);
}

Test(foundation_instance, a_slow_deletion_holds_the_accept_and_the_confirmation_back)
{
    struct rig r;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    r.kernel_slow = true;
    rig_new_process(&r);
    rig_settle(&r);
    cr_assert_eq(device_fx(&r, FND_FX_DEVICE_DELETE, from), -1, "the gate is not reported shut yet");
    cr_assert_eq(instance_write(&r, from), -1);
    rig_kernel_done(&r); /* the close group */
    cr_assert_geq(device_fx(&r, FND_FX_DEVICE_DELETE, from), 0);
    cr_assert_eq(instance_write(&r, from), -1, "accepted before the old device was gone");
    cr_assert_eq(r.claim.status.closed_epoch, 0);
    rig_kernel_done(&r);
    cr_assert_geq(instance_write(&r, from), 0);
    cr_assert_eq(r.claim.status.closed_epoch, 1);
    rig_fini(&r);
}

Test(foundation_instance, gone_counts_only_after_a_fresh_read)
{
    struct rig r;
    int get;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    r.reads = RIG_HOLD;
    rig_inst_gone(&r);
    rig_settle(&r);
    cr_assert_eq(r.gate, 0, "shut at once");
    cr_assert_eq(r.record.tomb, 0);
    cr_assert_eq(r.claim.status.closed_epoch, 0, "confirmed on a watch event alone");
    get = rig_find(&r, FND_FX_GET, from);
    cr_assert_geq(get, 0);
    cr_assert_eq(r.trace[get].fx.obj_kind, CONTRACT_INSTANCE);
    r.reads = RIG_OK;
    while (r.n_held)
        rig_release(&r, RIG_OK);
    cr_assert_eq(r.claim.status.closed_epoch, 1);
    cr_assert_eq(r.n_devices, 0u, "its device goes too");
    rig_fini(&r);
}

Test(foundation_instance, a_late_watch_does_not_make_an_instance_gone)
{
    struct rig r;

    rig_init(&r);
    r.has_inst = r.has_att = false;
    rig_list(&r); /* no instance yet */
    r.has_inst = r.has_att = true;
    r.silent_all = true; /* it is created, accepted elsewhere, and its watch is behind the claim's */
    rig_inst_changed(&r);
    rig_att_changed(&r);
    r.silent_all = false;
    rig_claim_created(&r, 1);
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.record.tomb, 0, "closed for good because of a late watch");
    cr_assert_eq(r.claim.status.closed_epoch, 0);
    rig_att_changed(&r);
    rig_settle(&r);
    rig_run(&r, 15 * BASE_SEC, true);
    cr_assert(rig_is_open(&r));
    rig_fini(&r);
}

Test(foundation_instance, an_accepted_epoch_never_gets_a_second_device)
{
    struct fnd_in in = {.ev = FND_EV_DEVICE, .ok = false};
    struct rig r;

    rig_open(&r);
    in.device = r.devices[0];
    r.n_devices = 0;
    rig_feed(&r, &in);
    rig_settle(&r);
    cr_assert_eq(r.gate, 0, "its gates are shut");
    cr_assert_eq(r.att.status.ready.status, CONTRACT_COND_FALSE);
    cr_assert_str_eq(r.att.status.ready.reason, "DeviceLost");
    rig_run(&r, 30 * BASE_SEC, true);
    cr_assert_eq(r.made, 1u, "a second device for the same epoch");
    rig_new_process(&r);
    rig_settle(&r);
    attachment_follows(&r);
    cr_assert_eq(r.made, 2u, "the next epoch gets one");
    cr_assert_eq(r.att.status.ready.status, CONTRACT_COND_TRUE);
    rig_fini(&r);
}

Test(foundation_instance, a_device_of_an_earlier_life_is_not_made_again)
{
    struct rig r;

    /* The object was accepted, but neither record nor device is left: a reboot, or an empty pinned map. */
    rig_init(&r);
    r.inst.status.accepted_epoch = 1;
    r.inst.status.accepted_process_id = r.process;
    r.att.status.accepted_instance_epoch = 1;
    fnd_device_name(r.att.status.device, &r.att.meta.uid, 1);
    r.att.status.mtu = 1400;
    rig_list(&r);
    cr_assert_eq(r.made, 0u);
    cr_assert_str_eq(r.att.status.ready.reason, "DeviceLost");
    rig_fini(&r);
}

Test(foundation_instance, strangers_called_hf_are_deleted_before_the_accept)
{
    struct fnd_in in = {.ev = FND_EV_DEVICE, .device = "hfdeadbeef", .ok = true};
    struct rig r;
    int gone;

    rig_init(&r);
    base_copy(r.devices[r.n_devices++], CONTRACT_DEVICE_SIZE, "hfdeadbeef");
    rig_feed(&r, &in);
    cr_assert_eq(r.deleted, 0u, "before anything is listed nobody knows whose it is");
    rig_list(&r);
    gone = device_fx(&r, FND_FX_DEVICE_DELETE, 0);
    cr_assert_geq(gone, 0);
    cr_assert_gt(instance_write(&r, 0), gone);
    rig_fini(&r);
}

Test(foundation_instance, an_attachment_of_another_node_or_epoch_is_left_alone)
{
    struct rig r;

    rig_init(&r);
    base_copy(r.att.meta.name, sizeof r.att.meta.name, "masque.edge2.vpc-a");
    base_copy(r.att.spec.instance.name, sizeof r.att.spec.instance.name, "masque.edge2");
    rig_list(&r);
    cr_assert_eq(r.made, 0u);
    cr_assert_eq(r.att.status.accepted_instance_epoch, 0);
    rig_fini(&r);

    rig_init(&r);
    r.att.spec.instance_epoch = 2; /* ahead of its instance */
    rig_list(&r);
    cr_assert_eq(r.made, 0u);
    rig_fini(&r);

    rig_init(&r);
    r.att.spec.instance.uid = rig_uuid(999);
    rig_list(&r);
    cr_assert_eq(r.made, 0u);
    rig_fini(&r);
}

Test(foundation_instance, a_deleted_attachment_takes_gate_and_device_with_it)
{
    struct fnd_in in = {.ev = FND_EV_ROW, .coll = FND_ATTACHMENTS, .left = true};
    struct contract_object o = {.kind = CONTRACT_ATTACHMENT};
    struct rig r;

    rig_open(&r);
    r.has_att = false;
    o.u.attachment = r.att;
    base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++r.rv);
    in.object = &o;
    rig_feed(&r, &in);
    rig_settle(&r);
    cr_assert_eq(r.gate, 0);
    cr_assert_eq(r.n_devices, 0u);
    cr_assert_eq(r.claim.status.closed_epoch, 0, "may come back: nothing is confirmed");
    rig_fini(&r);
}

/* Two processes of one node, or an instance that is deleted again and again: each time another attachment.
 * What is remembered of the old ones must not fill the table. */
Test(foundation_instance, attachments_that_are_made_again_and_again_leave_nothing_behind)
{
    struct fnd_in in = {.ev = FND_EV_ROW, .coll = FND_ATTACHMENTS, .left = true};
    struct contract_object o = {.kind = CONTRACT_ATTACHMENT};
    struct rig r;

    rig_open(&r);
    for (unsigned i = 0; i < 200; i++) {
        o.u.attachment = r.att;
        base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++r.rv);
        in.ev = FND_EV_ROW;
        in.object = &o;
        rig_feed(&r, &in);
        rig_settle(&r);
        cr_assert_eq(r.n_devices, 0u);
        r.n_trace = 0;
        r.att.meta.uid = rig_uuid(5000 + i);
        r.att.status = (struct contract_attachment_status){0};
        rig_att_changed(&r);
        rig_settle(&r);
        cr_assert_eq(r.att.status.ready.status, CONTRACT_COND_TRUE, "%u: %s", i, r.att.status.ready.reason);
        cr_assert_eq(r.n_devices, 1u);
    }
    rig_fini(&r);
}

/* Objects that went away while no foundation ran: their records are found in the pinned map at the start. */
Test(foundation_restart, records_of_objects_that_are_gone_are_dropped)
{
    static const int kinds[] = {CONTRACT_CLAIM, CONTRACT_INSTANCE, CONTRACT_ATTACHMENT, CONTRACT_SERVICE};
    struct rig r;

    rig_open(&r);
    for (unsigned i = 0; i < BASE_LEN(kinds); i++) {
        struct fnd_record rec = {.uid = rig_uuid(700 + i), .kind = kinds[i], .accepted = 1};
        struct fnd_in in = {.ev = FND_EV_RECORD, .record = &rec};

        rig_feed(&r, &in);
    }
    rig_settle(&r);
    cr_assert_eq(rig_count(&r, FND_FX_FORGET, 0), 0u, "before a scan nobody knows");
    rig_run(&r, 80 * BASE_SEC, true);
    cr_assert_eq(rig_count(&r, FND_FX_FORGET, 0), 4u);
    cr_assert(rig_is_open(&r), "what is in use stays");
    rig_fini(&r);
}

/* ---- restart ---- */
Test(foundation_restart, leaves_what_is_pinned_and_extends_only_by_its_own_proof)
{
    struct rig r;
    base_time was;
    unsigned from;

    rig_open(&r);
    was = r.gate;
    r.no_proofs = true;
    r.now += 5 * BASE_SEC;
    rig_renew(&r);
    rig_restart(&r);
    cr_assert_eq(r.gate, was, "before the lists nothing is touched");
    from = r.n_trace;
    rig_list(&r);
    cr_assert_eq(r.gate, was, "a list is not its own proof");
    cr_assert_eq(r.route_epoch, 1);
    cr_assert_eq(rig_count(&r, FND_FX_GATE, from), 0u);
    r.no_proofs = false;
    rig_proof(&r, FND_HELD);
    rig_settle(&r);
    cr_assert_eq(r.gate, was, "services are not proved yet");
    rig_proof(&r, FND_SERVICES);
    rig_settle(&r);
    cr_assert_gt(r.gate, was);
    cr_assert_eq(r.made, 1u);
    cr_assert_eq(r.deleted, 0u);
    rig_fini(&r);
}

Test(foundation_restart, shuts_what_is_not_its_own_any_more)
{
    for (int how = 0; how < 3; how++) {
        struct rig r;

        rig_open(&r);
        r.silent_all = true;
        if (how == 0)
            rig_taken_over(&r, "edge2");
        else if (how == 1)
            r.has_claim = false;
        else
            rig_taken_over(&r, "edge1");
        r.silent_all = false;
        r.q_len = 0;
        rig_restart(&r);
        rig_list(&r);
        cr_assert_eq(r.record.tomb, how == 1 && base_uuid_is_zero(&r.record.uid) ? 0 : 1, "case %d", how);
        if (how == 2)
            cr_assert(rig_is_open(&r), "and opens the new epoch, which is its own");
        else
            cr_assert_eq(r.gate, 0, "case %d", how);
        cr_assert_eq(r.claim.status.closed_epoch, how == 1 ? 0 : 1, "case %d", how);
        rig_fini(&r);
    }
}

Test(foundation_restart, a_tombstone_outlives_the_process)
{
    struct rig r;
    unsigned from;

    rig_open(&r);
    r.claim.spec.release_time = r.wall;
    r.writes = RIG_LOST;
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.record.tomb, 1);
    r.writes = RIG_OK;
    rig_restart(&r);
    /* A store that still shows the row as it was: nothing opens. */
    r.claim.spec.release_time = 0;
    from = r.n_trace;
    r.q_len = 0;
    rig_list(&r);
    rig_run(&r, 15 * BASE_SEC, true);
    for (unsigned i = from; i < r.n_trace; i++)
        cr_assert(r.trace[i].fx.kind != FND_FX_GATE || r.trace[i].fx.gate.deadline == 0);
    rig_fini(&r);
}

Test(foundation_restart, rows_whose_previous_node_is_this_one_are_looked_at)
{
    struct rig r;

    rig_open(&r);
    r.silent_all = true;
    rig_taken_over(&r, "edge2");
    r.silent_all = false;
    r.q_len = 0;
    r.gate = 0; /* it ran out meanwhile */
    rig_restart(&r);
    rig_list(&r);
    cr_assert_eq(r.claim.status.closed_epoch, 1);
    rig_run(&r, 6 * BASE_SEC, true);
    cr_assert_eq(r.claim.meta.n_finalizers, 0);
    rig_fini(&r);
}

Test(foundation_restart, a_finalizer_of_ours_two_takeovers_back_comes_off)
{
    struct rig r;

    rig_open(&r);
    r.silent_all = true;
    rig_taken_over(&r, "edge2");
    rig_taken_over(&r, "edge3");
    r.silent_all = false;
    r.q_len = 0;
    cr_assert_eq(r.claim.meta.n_finalizers, 1);
    rig_restart(&r);
    rig_list(&r); /* no selector shows the row: the scan does */
    rig_run(&r, 5 * BASE_SEC, true);
    cr_assert_eq(r.gate, 0);
    cr_assert_eq(r.claim.meta.n_finalizers, 0);
    cr_assert_eq(r.claim.status.closed_epoch, 0, "epoch 2 is not ours to confirm");
    rig_fini(&r);
}

Test(foundation_restart, a_relist_that_does_not_name_a_row_shuts_it)
{
    struct fnd_in in = {.ev = FND_EV_RELIST, .coll = FND_HELD};
    struct rig r;

    rig_open(&r);
    r.silent_all = true;
    rig_taken_over(&r, "edge2");
    r.silent_all = false;
    r.q_len = 0;
    rig_feed(&r, &in);
    cr_assert_gt(r.gate, 0, "a list that has only begun says nothing");
    in.ev = FND_EV_LISTED;
    rig_feed(&r, &in);
    cr_assert_eq(r.gate, 0);
    rig_settle(&r);
    cr_assert_eq(r.claim.status.closed_epoch, 1, "read, and confirmed as the previous node");
    rig_fini(&r);
}

Test(foundation_restart, more_claims_than_the_table_holds_are_refused_and_said)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    for (unsigned i = 1; i <= 6; i++) {
        struct contract_object o = {.kind = CONTRACT_CLAIM};
        struct fnd_in in = {.ev = FND_EV_ROW, .coll = FND_HELD, .object = &o};

        rig_claim_created(&r, 1);
        r.claim.spec.prefix.addr.b[9] = (uint8_t)i;
        contract_claim_name(r.claim.meta.name, &r.claim.spec.prefix);
        r.claim.meta.uid = rig_uuid(400 + i);
        base_fmt(r.claim.meta.rv, CONTRACT_RV_SIZE, "%llu", (unsigned long long)++r.rv);
        o.u.claim = r.claim;
        rig_feed(&r, &in);
        rig_settle(&r);
    }
    cr_assert_geq(rig_log(&r, FND_LOG_FULL, 0), 0);
    rig_fini(&r);
}
