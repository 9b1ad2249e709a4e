/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server goes back (contract section 5): everything is shut for W, in this process and in the next,
 * and then the rows as stored are the start.
 */
#include "rig.h"

#define W_SHORT (32500 * BASE_MS) /* W of a 30 s lease is a little above 32.56 s */

static void shut(const struct rig *r)
{
    cr_assert_eq(r->gate, 0);
    cr_assert_eq(r->route_epoch, 0);
    cr_assert_eq(r->n_devices, 0u, "what an old process holds must fail");
}

static void nothing_written(const struct rig *r, unsigned from)
{
    cr_assert_eq(rig_count(r, FND_FX_STATUS, from), 0u, "something was written");
    cr_assert_eq(rig_count(r, FND_FX_FINALIZERS, from), 0u);
    cr_assert_eq(rig_count(r, FND_FX_FORGET, from), 0u, "a record was dropped");
    cr_assert_eq(rig_count(r, FND_FX_DEVICE_MAKE, from), 0u);
    cr_assert_eq(rig_count(r, FND_FX_PUBLISH, from), 0u);
}

static int forgot(const struct rig *r, const struct base_uuid *uid, unsigned from)
{
    for (unsigned i = from; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == FND_FX_FORGET && base_uuid_eq(&r->trace[i].fx.record.uid, uid))
            return (int)i;
    return -1;
}

/* The agent's way on: a new process, and a takeover. */
static void comes_back(struct rig *r)
{
    rig_new_process(r);
    rig_settle(r);
    cr_assert_eq(r->inst.status.accepted_epoch, r->inst.spec.epoch);
    r->att.spec.instance_epoch = r->inst.spec.epoch;
    rig_att_changed(r);
    rig_settle(r);
    cr_assert_eq(r->att.status.ready.status, CONTRACT_COND_TRUE, "%s", r->att.status.ready.reason);
    rig_taken_over(r, "edge1");
    rig_settle(r);
    rig_run(r, 2 * BASE_SEC, true);
    cr_assert(rig_is_open(r));
}

Test(foundation_regress, everything_is_shut_for_w_and_then_starts_over)
{
    struct rig r;
    unsigned from;

    rig_open(&r);
    rig_run(&r, 15 * BASE_SEC, true);
    from = r.n_trace;
    rig_regress(&r);
    shut(&r);
    cr_assert_geq(rig_log(&r, FND_LOG_REGRESSED, from), 0);
    rig_run(&r, W_SHORT, true);
    shut(&r);
    nothing_written(&r, from);
    rig_run(&r, BASE_SEC, true);
    cr_assert_geq(forgot(&r, &r.inst.meta.uid, from), 0);
    cr_assert_geq(forgot(&r, &r.att.meta.uid, from), 0);
    cr_assert_geq(forgot(&r, &r.claim.meta.uid, from), 0);
    cr_assert_eq(forgot(&r, &r.svc.meta.uid, from), -1, "no accept, no tombstone: the conversion stays");
    comes_back(&r);
    cr_assert_eq(r.relists, 0u, "the driver had noticed by itself");
    rig_fini(&r);
}

/* What was closed in the lost history counts no more: zero and tombstone come again before anything is
 * confirmed. */
Test(foundation_regress, closes_again_before_it_confirms)
{
    struct rig r;
    unsigned from;
    int tomb = -1, said;

    rig_open(&r);
    rig_regress(&r);
    rig_run(&r, W_SHORT, false);
    r.claim.spec.release_time = r.wall; /* by hand */
    rig_claim_changed(&r);
    from = r.n_trace;
    rig_run(&r, 2 * BASE_SEC, false);
    for (unsigned i = from; i < r.n_trace && tomb < 0; i++)
        if (r.trace[i].fx.kind == FND_FX_RECORD && r.trace[i].fx.record.tomb == 1)
            tomb = (int)i;
    said = rig_status(&r, from);
    cr_assert(tomb >= 0 && said > tomb, "tombstone at %d, confirmed at %d", tomb, said);
    cr_assert_eq(r.claim.status.closed_epoch, 1);
    rig_fini(&r);
}

/* The rows go back with it: accept records and tombstones of the lost history are no obstacle. */
Test(foundation_regress, rows_below_the_records_are_the_start)
{
    struct rig r;
    struct contract_claim claim;
    struct contract_instance inst;
    struct contract_attachment att;

    rig_open(&r);
    claim = r.claim;
    inst = r.inst;
    att = r.att;
    rig_new_process(&r);
    rig_settle(&r);
    r.att.spec.instance_epoch = r.inst.spec.epoch;
    rig_att_changed(&r);
    rig_settle(&r);
    rig_taken_over(&r, "edge1");
    rig_settle(&r);
    rig_taken_over(&r, "edge2"); /* a tombstone for epoch 2 */
    rig_run(&r, 6 * BASE_SEC, true);
    r.claim = claim;
    r.inst = inst;
    r.att = att;
    r.rv = 50; /* versions start again below what was seen */
    rig_regress(&r);
    shut(&r);
    rig_run(&r, W_SHORT + BASE_SEC, false);
    cr_assert_eq(r.relists, 0u, "a record is what the wait is for, not a reason to start it again");
    comes_back(&r);
    cr_assert_eq(r.claim.spec.epoch, 2);
    rig_fini(&r);
}

Test(foundation_regress, the_wait_outlives_the_process)
{
    struct rig r;
    unsigned from;

    rig_open(&r);
    rig_regress(&r);
    from = r.n_trace;
    rig_run(&r, 20 * BASE_SEC, true);
    rig_restart(&r);
    rig_list(&r);
    rig_run(&r, W_SHORT - 20 * BASE_SEC, true);
    shut(&r);
    nothing_written(&r, from);
    rig_run(&r, BASE_SEC, true);
    comes_back(&r);
    rig_restart(&r); /* … and is over once */
    rig_list(&r);
    rig_run(&r, 2 * BASE_SEC, true);
    cr_assert(rig_is_open(&r));
    rig_fini(&r);
}

Test(foundation_regress, a_longer_lease_is_waited_for)
{
    struct rig r;
    unsigned from;

    rig_open(&r);
    r.claim.spec.max_lease_seconds = 60;
    rig_claim_changed(&r);
    rig_settle(&r);
    from = r.n_trace;
    r.has_claim = false; /* the rows as stored know nothing of it */
    rig_regress(&r);
    rig_run(&r, W_SHORT + 5 * BASE_SEC, true);
    rig_restart(&r); /* the next process knows of it, too */
    rig_list(&r);
    rig_run(&r, 24 * BASE_SEC, true);
    shut(&r);
    nothing_written(&r, from);
    rig_run(&r, 3 * BASE_SEC, true);
    cr_assert_geq(rig_find(&r, FND_FX_FORGET, from), 0);
    rig_fini(&r);
}

/* A gate that the kernel does not shut keeps everything back. */
Test(foundation_regress, does_not_end_before_the_kernel_has_reported)
{
    struct rig r;
    struct fnd_in gone;
    unsigned from;

    rig_open(&r);
    r.kernel_slow = true;
    from = r.n_trace;
    rig_regress(&r);
    gone = (struct fnd_in){.ev = FND_EV_DEVICE, .device = r.devices[0]}; /* deleted by somebody else */
    rig_feed(&r, &gone);
    rig_settle(&r);
    rig_run(&r, W_SHORT + 10 * BASE_SEC, true);
    nothing_written(&r, from);
    r.kernel_slow = false;
    rig_kernel_done(&r);
    rig_run(&r, BASE_SEC, true);
    cr_assert_geq(rig_find(&r, FND_FX_FORGET, from), 0);
    rig_fini(&r);
}

Test(foundation_regress, does_not_end_before_the_rows_are_known)
{
    struct rig r;
    struct fnd_in in = {.ev = FND_EV_REGRESSED};

    rig_open(&r);
    rig_feed(&r, &in);
    rig_settle(&r);
    shut(&r);
    rig_run(&r, W_SHORT + 10 * BASE_SEC, false);
    cr_assert_eq(rig_find(&r, FND_FX_FORGET, 0), -1);
    rig_list(&r);
    rig_run(&r, BASE_SEC, false);
    cr_assert_geq(rig_find(&r, FND_FX_FORGET, 0), 0);
    rig_fini(&r);
}

/* Its answer belongs to the lost history. */
Test(foundation_regress, an_answer_of_before_is_not_taken)
{
    struct rig r;
    struct fnd_in in = {.ev = FND_EV_ANSWER, .code = BASE_OK};
    struct contract_object o = {.kind = CONTRACT_INSTANCE};

    rig_open(&r);
    r.writes = RIG_HOLD;
    rig_new_process(&r);
    rig_settle(&r);
    cr_assert_gt(r.n_held, 0u);
    in.id = r.held[r.n_held - 1].fx.id;
    in.sent = r.now;
    o.u.instance = r.inst;
    base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "99999");
    in.object = &o;
    r.n_held = 0;
    r.rv = 50;
    rig_regress(&r);
    r.writes = RIG_OK;
    rig_feed(&r, &in);
    rig_settle(&r);
    rig_run(&r, W_SHORT + BASE_SEC, false);
    comes_back(&r);
    rig_fini(&r);
}

/* ---- who notices ---- */
static void noticed(struct rig *r)
{
    r->no_rules = true; /* what the rows say of epochs that are gone is none of this test */
    rig_settle(r);
    shut(r);
    cr_assert_eq(r->relists, 1u, "the driver was not asked to list again");
    rig_run(r, W_SHORT, false);
    shut(r);
    cr_assert_eq(rig_find(r, FND_FX_FORGET, 0), -1);
    rig_run(r, BASE_SEC, false);
    cr_assert_geq(rig_find(r, FND_FX_FORGET, 0), 0);
    cr_assert_eq(r->relists, 1u);
    rig_fini(r);
}

static void open_at_2(struct rig *r)
{
    rig_open(r);
    rig_taken_over(r, "edge1");
    rig_run(r, BASE_SEC, true);
    cr_assert(rig_is_open(r));
}

Test(foundation_regress, a_claim_of_an_epoch_below)
{
    struct rig r;

    open_at_2(&r);
    rig_claim_created(&r, 1);
    rig_claim_changed(&r);
    noticed(&r);
}

Test(foundation_regress, a_claim_of_the_same_epoch_with_another_nonce)
{
    struct rig r;

    open_at_2(&r);
    r.claim.spec.lease_uuid = rig_uuid(77);
    rig_claim_changed(&r);
    noticed(&r);
}

/* Before anything of them was accepted, no record knows them. */
Test(foundation_regress, rows_that_were_not_accepted_yet)
{
    for (unsigned i = 0; i < 3; i++) {
        struct rig r;

        rig_init(&r);
        rig_list(&r);
        r.writes = RIG_HOLD;
        if (i < 2) {
            rig_claim_created(&r, 2);
            rig_claim_changed(&r);
            rig_settle(&r);
            r.claim.spec.epoch -= i == 0;
            r.claim.spec.lease_uuid = rig_uuid(77);
            rig_claim_changed(&r);
        } else {
            rig_new_process(&r);
            rig_settle(&r);
            r.inst.spec.epoch = 1;
            r.inst.spec.process_id = r.process;
            rig_inst_changed(&r);
        }
        rig_settle(&r);
        cr_assert_eq(r.relists, 1u, "row %u", i);
        shut(&r);
        rig_fini(&r);
    }
}

Test(foundation_regress, an_instance_of_an_epoch_below)
{
    struct rig r;

    rig_open(&r);
    rig_new_process(&r);
    rig_settle(&r);
    r.inst.spec.epoch = 1;
    rig_inst_changed(&r);
    noticed(&r);
}

Test(foundation_regress, an_instance_of_the_same_epoch_with_another_process)
{
    struct rig r;

    rig_open(&r);
    r.inst.spec.process_id = r.other_process;
    rig_inst_changed(&r);
    noticed(&r);
}

/* The next process knows the epochs from the pinned map. */
Test(foundation_regress, a_claim_below_the_accept_record)
{
    struct rig r;

    open_at_2(&r);
    rig_claim_created(&r, 1);
    rig_restart(&r);
    rig_list(&r);
    noticed(&r);
}

Test(foundation_regress, a_claim_with_another_nonce_than_the_accept_record)
{
    struct rig r;

    open_at_2(&r);
    r.claim.spec.lease_uuid = rig_uuid(77);
    rig_restart(&r);
    rig_list(&r);
    noticed(&r);
}

Test(foundation_regress, a_claim_below_the_tombstone)
{
    struct rig r;

    rig_open(&r);
    rig_taken_over(&r, "edge2");
    rig_run(&r, BASE_SEC, true);
    cr_assert_eq(r.record.tomb, 1);
    r.record.accepted = 0;
    r.record.tomb = 2;
    rig_claim_created(&r, 1);
    rig_restart(&r);
    rig_list(&r);
    noticed(&r);
}

/* Closed without ever having been accepted: the row that comes after a restore has the same epoch and would
 * stand at the tombstone for ever (simulator seed 11034). */
Test(foundation_regress, a_claim_at_the_tombstone_of_another_nonce)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 1);
    r.claim.spec.release_time = r.wall;
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.claim.status.closed_epoch, 1);
    cr_assert_eq(r.record.tomb, 1);
    rig_claim_created(&r, 1);
    r.claim.spec.lease_uuid = rig_uuid(77);
    rig_restart(&r);
    rig_list(&r);
    noticed(&r);
}

Test(foundation_regress, a_claim_at_the_tombstone_of_an_epoch_that_was_never_seen)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 2);
    r.claim.status.closed_epoch = 1;
    r.claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
    rig_taken_over(&r, "edge2");
    rig_settle(&r);
    cr_assert_eq(r.record.tomb, 2, "(b), though it never accepted");
    cr_assert_eq(r.record.accepted, 0);
    rig_claim_created(&r, 2);
    rig_restart(&r);
    rig_list(&r);
    noticed(&r);
}

Test(foundation_regress, an_instance_below_the_accept_record)
{
    struct rig r;

    rig_open(&r);
    rig_new_process(&r);
    rig_settle(&r);
    r.inst.spec.epoch = 1;
    r.inst.spec.process_id = r.process;
    rig_restart(&r);
    rig_list(&r);
    noticed(&r);
}

/* With --bump-revision the list's version is high, and the rows' are low. */
Test(foundation_regress, a_list_made_after_what_it_does_not_show)
{
    for (enum fnd_coll coll = FND_HELD; coll <= FND_SERVICES; coll++) {
        struct rig r;
        struct fnd_in in = {.ev = FND_EV_RELIST, .coll = coll, .version = "2"};
        struct fnd_in row = {.ev = FND_EV_ROW, .coll = coll};
        struct contract_object o = {0};

        if (coll == FND_PREVIOUS)
            continue;
        rig_open(&r);
        if (coll == FND_HELD)
            o.kind = CONTRACT_CLAIM, o.u.claim = r.claim;
        else if (coll == FND_INSTANCES)
            o.kind = CONTRACT_INSTANCE, o.u.instance = r.inst;
        else if (coll == FND_ATTACHMENTS)
            o.kind = CONTRACT_ATTACHMENT, o.u.attachment = r.att;
        else
            o.kind = CONTRACT_SERVICE, o.u.service = r.svc;
        base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "2");
        row.object = &o;
        rig_feed(&r, &in); /* a list that began before what is known now came */
        rig_feed(&r, &row);
        rig_settle(&r);
        cr_assert(rig_is_open(&r), "collection %d", (int)coll);
        in = (struct fnd_in){.ev = FND_EV_RELIST, .coll = coll, .version = "5000"};
        row.ev = FND_EV_ROW;
        rig_feed(&r, &in);
        rig_feed(&r, &row);
        rig_settle(&r);
        cr_assert_eq(r.relists, 1u, "collection %d", (int)coll);
        shut(&r);
        rig_fini(&r);
    }
}

/* A read that was sent after a newer version was seen. */
Test(foundation_regress, an_answer_below_what_was_seen_before_it_was_asked_for)
{
    struct rig r;

    rig_open(&r);
    rig_run(&r, BASE_SEC, true);
    r.reads = RIG_HOLD;
    r.writes = RIG_CONFLICT;
    r.silent_all = true;
    r.claim.spec.release_time = r.wall; /* a write is due, meets 409, and reads */
    r.silent_all = false;
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_gt(r.n_held, 0u);
    base_copy(r.claim.meta.rv, sizeof r.claim.meta.rv, "2");
    r.now += BASE_MS;
    rig_release(&r, RIG_OK);
    rig_settle(&r);
    cr_assert_eq(r.relists, 1u);
    rig_fini(&r);
}

/* The same of an attachment: its accept meets 409, and the read that follows shows a version of long ago. */
Test(foundation_regress, an_attachment_below_what_was_seen_before_it_was_asked_for)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    cr_assert_eq(r.att.status.ready.status, CONTRACT_COND_TRUE);
    r.writes = RIG_CONFLICT;
    r.reads = RIG_HOLD;
    r.att.status.ready.status = CONTRACT_COND_FALSE; /* what the device does not say: a write is due */
    rig_att_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.n_held, 1u);
    cr_assert_eq(r.held[0].fx.obj_kind, CONTRACT_ATTACHMENT);
    cr_assert_eq(r.relists, 0u);
    base_copy(r.att.meta.rv, sizeof r.att.meta.rv, "2");
    r.now += BASE_MS;
    rig_release(&r, RIG_OK);
    rig_settle(&r);
    cr_assert_eq(r.relists, 1u);
    rig_fini(&r);
}
