/* SPDX-License-Identifier: Apache-2.0
 * Closing: contract section 8, "Close", "closedEpoch", "Finalizer", and the rows of other nodes. */
#include "rig.h"

static int gate_zero(const struct rig *r, unsigned from)
{
    for (unsigned i = from; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == FND_FX_GATE && r->trace[i].fx.gate.deadline == 0)
            return (int)i;
    return -1;
}

static int tombstone(const struct rig *r, unsigned from, int64_t epoch)
{
    for (unsigned i = from; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == FND_FX_RECORD && r->trace[i].fx.record.tomb >= epoch)
            return (int)i;
    return -1;
}

static int closed_write(const struct rig *r, unsigned from, int64_t epoch)
{
    for (unsigned i = from; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == FND_FX_STATUS && r->trace[i].fx.obj_kind == CONTRACT_CLAIM &&
            r->trace[i].object.u.claim.status.closed_epoch == epoch)
            return (int)i;
    return -1;
}

static void release(struct rig *r)
{
    r->claim.spec.release_time = r->wall;
    rig_claim_changed(r);
    rig_settle(r);
}

Test(foundation_close, release_is_zero_tombstone_withdrawal_and_then_the_write)
{
    struct rig r;
    int zero, tomb, withdraw, said;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    release(&r);
    zero = gate_zero(&r, from);
    tomb = tombstone(&r, from, 1);
    withdraw = rig_find(&r, FND_FX_WITHDRAW, from);
    said = rig_status(&r, from);
    cr_assert(zero >= 0 && tomb > zero && withdraw > tomb && said > withdraw, "%d %d %d %d", zero, tomb,
              withdraw, said);
    cr_assert_eq(r.claim.status.closed_epoch, 1);
    cr_assert_eq(r.claim.status.closed_reason, CONTRACT_CLOSED_CONFIRMED);
    cr_assert_eq(r.claim.status.withdrawn_epoch, 1);
    cr_assert_eq(r.claim.status.gate.state, CONTRACT_GATE_CLOSED);
    cr_assert_str_eq(r.claim.status.gate.reason, "Released");
    cr_assert_eq(rig_count(&r, FND_FX_STATUS, from), 1u, "one write says all");
    rig_fini(&r);
}

Test(foundation_close, nothing_is_confirmed_before_the_kernel_has_done_it)
{
    struct rig r;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    r.kernel_slow = true;
    release(&r);
    cr_assert_geq(gate_zero(&r, from), 0);
    cr_assert_eq(closed_write(&r, from, 1), -1, "confirmed before it was done");
    rig_kernel_done(&r);
    cr_assert_geq(closed_write(&r, from, 1), 0);
    rig_fini(&r);
}

Test(foundation_close, a_failing_kernel_is_tried_again_and_confirms_nothing)
{
    struct rig r;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    r.kernel_fails = true;
    release(&r);
    rig_run(&r, 5 * BASE_SEC, true);
    cr_assert_eq(closed_write(&r, from, 1), -1);
    cr_assert_gt(rig_count(&r, FND_FX_GATE, from), 3u, "not tried again");
    r.kernel_fails = false;
    rig_run(&r, 2 * BASE_SEC, true);
    cr_assert_eq(r.gate, 0);
    cr_assert_eq(r.claim.status.closed_epoch, 1);
    rig_fini(&r);
}

Test(foundation_close, an_epoch_that_was_never_open_is_confirmed_only_with_its_tombstone)
{
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        struct rig r;

        rig_init(&r);
        rig_list(&r);
        rig_claim_created(&r, 1);
        r.kernel_fails = true;
        if (elsewhere) {
            r.silent_all = true;
            rig_claim_changed(&r);
            r.silent_all = false;
            rig_taken_over(&r, "edge2");
        } else {
            r.claim.spec.release_time = r.wall;
            rig_claim_changed(&r);
        }
        rig_run(&r, 5 * BASE_SEC, true);
        cr_assert_eq(r.claim.status.closed_epoch, 0, "case %d", elsewhere);
        r.kernel_fails = false;
        rig_run(&r, 2 * BASE_SEC, true);
        cr_assert_eq(r.claim.status.closed_epoch, 1, "case %d", elsewhere);
        cr_assert_eq(r.record.tomb, 1);
        rig_fini(&r);
    }
}

Test(foundation_close, a_failed_opening_is_shut_again)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    r.writes = RIG_HOLD;
    rig_claim_created(&r, 1);
    rig_claim_changed(&r);
    rig_settle(&r);
    rig_release(&r, RIG_OK);
    r.kernel_fails = true;
    rig_release(&r, RIG_OK); /* finalizer: now it opens, and that fails */
    cr_assert_geq(gate_zero(&r, 0), 0, "what may be half open is shut");
    cr_assert_neq(r.claim.status.gate.state, CONTRACT_GATE_OPEN);
    rig_fini(&r);
}

Test(foundation_close, what_may_come_back_shuts_without_confirming)
{
    struct rig r;

    rig_open(&r);
    rig_svc_gone(&r);
    rig_run(&r, 5 * BASE_SEC, true);
    cr_assert_eq(r.gate, 0);
    cr_assert_eq(r.record.tomb, 0);
    cr_assert_eq(r.claim.status.closed_epoch, 0);
    cr_assert_str_eq(r.claim.status.gate.reason, "ServiceGone");
    rig_fini(&r);
}

Test(foundation_close, a_closed_epoch_never_opens_again)
{
    struct rig r;
    unsigned from;

    rig_open(&r);
    release(&r);
    /* An older content turns up once more under a newer version: what an operator's edit would look like. */
    r.claim.spec.release_time = 0;
    r.claim.status.closed_epoch = 0;
    r.claim.status.closed_reason = CONTRACT_CLOSED_ABSENT;
    from = r.n_trace;
    rig_claim_changed(&r);
    rig_run(&r, 40 * BASE_SEC, true);
    for (unsigned i = from; i < r.n_trace; i++)
        cr_assert(r.trace[i].fx.kind != FND_FX_GATE || r.trace[i].fx.gate.deadline == 0,
                  "opened below its tombstone");
    rig_fini(&r);
}

Test(foundation_close, a_takeover_elsewhere_is_confirmed_by_the_previous_node)
{
    struct rig r;
    int said;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    rig_taken_over(&r, "edge2");
    rig_settle(&r);
    cr_assert_eq(r.gate, 0);
    cr_assert_eq(r.route_epoch, 0);
    cr_assert_eq(r.record.tomb, 1);
    said = closed_write(&r, from, 1);
    cr_assert_geq(said, 0);
    cr_assert_eq(r.claim.status.closed_reason, CONTRACT_CLOSED_CONFIRMED);
    cr_assert_eq(r.claim.status.withdrawn_epoch, 1);
    cr_assert_eq(r.claim.status.gate.state, CONTRACT_GATE_OPEN, "gate belongs to the holder's foundation");
    cr_assert_eq(r.claim.meta.n_finalizers, 1, "the new holder's foundation writes on the row right now");
    rig_run(&r, 6 * BASE_SEC, true);
    cr_assert_eq(r.claim.meta.n_finalizers, 0, "our finalizer comes off when the row names another");
    cr_assert_gt(rig_find(&r, FND_FX_FINALIZERS, (unsigned)said), said, "after the closure");
    rig_fini(&r);
}

Test(foundation_close, our_finalizer_comes_off_once_the_new_holder_has_opened_or_ended)
{
    for (int how = 0; how < 3; how++) {
        struct rig r;
        rig_open(&r);
        rig_taken_over(&r, "edge2");
        rig_settle(&r);
        cr_assert_eq(r.claim.meta.n_finalizers, 1);
        if (how == 0) { /* an older epoch's gate says nothing */
            r.claim.status.gate.epoch = 1;
            rig_claim_changed(&r);
            rig_settle(&r);
            cr_assert_eq(r.claim.meta.n_finalizers, 1);
            r.claim.status.gate.epoch = 2;
            r.claim.status.gate.state = CONTRACT_GATE_OPEN;
        } else if (how == 1) {
            r.claim.status.closed_epoch = 2;
        } else { /* a deletion waits for nothing but the closure */
            r.claim.meta.deleting = r.wall;
        }
        rig_claim_changed(&r);
        rig_settle(&r);
        if (how == 2)
            cr_assert_not(r.has_claim, "the last finalizer is off: it is gone");
        else
            cr_assert_eq(r.claim.meta.n_finalizers, 0, "%d", how);
        rig_fini(&r);
    }
}

Test(foundation_close, also_an_epoch_that_was_never_accepted_is_confirmed)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 1);
    r.silent_all = true;
    rig_claim_changed(&r);
    r.silent_all = false;
    rig_taken_over(&r, "edge2");
    rig_settle(&r);
    cr_assert_eq(r.claim.status.closed_epoch, 1);
    cr_assert_eq(r.record.tomb, 1, "the tombstone stands for it");
    rig_fini(&r);
}

Test(foundation_close, a_gap_is_not_jumped_by_the_previous_node)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 2); /* epoch 1 was edge2's and is not closed */
    rig_claim_changed(&r);
    rig_settle(&r);
    rig_taken_over(&r, "edge3");
    rig_run(&r, 60 * BASE_SEC, true);
    cr_assert_eq(r.claim.status.closed_epoch, 0, "2 would state that 1 is closed too");
    rig_fini(&r);
}

Test(foundation_close, an_epoch_of_another_boot_is_not_confirmed)
{
    struct rig r;

    rig_open(&r);
    rig_taken_over(&r, "edge2");
    r.claim.spec.previous.boot_id = r.other_boot;
    rig_claim_changed(&r);
    r.q_len -= 2; /* only the second change is seen */
    r.q_head += 2;
    rig_settle(&r);
    cr_assert_eq(r.gate, 0, "shut all the same");
    cr_assert_eq(r.claim.status.closed_epoch, 0);
    rig_fini(&r);
}

Test(foundation_close, a_row_of_an_earlier_boot_ends_only_by_the_wait)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 2);
    r.claim.spec.holder.boot_id = r.other_boot;
    r.claim.spec.release_time = r.wall;
    rig_claim_changed(&r);
    rig_run(&r, 20 * BASE_SEC, true);
    cr_assert_eq(r.claim.status.closed_epoch, 0);
    rig_run(&r, 20 * BASE_SEC, true);
    cr_assert_eq(r.claim.status.closed_epoch, 1, "(c)");
    cr_assert_eq(r.claim.status.closed_reason, CONTRACT_CLOSED_WAITED);
    rig_run(&r, 60 * BASE_SEC, true);
    cr_assert_eq(r.claim.status.closed_epoch, 1, "its own epoch cannot be confirmed");
    rig_fini(&r);
}

/* Two machines of one name: each says on the row that the other's gate is shut, the session stops, the
 * connector comes back with the next epoch, and so on without end (simulator seeds 32233, 31868, 80445,
 * 81662). */
Test(foundation_close, the_gate_of_another_machine_of_this_name_is_not_spoken_for)
{
    struct rig r;
    unsigned from;

    rig_init(&r);
    r.inst.spec.renew.boot_id = r.other_boot;
    rig_list(&r);
    rig_claim_created(&r, 1);
    r.claim.spec.holder.boot_id = r.other_boot;
    r.claim.status.accepted_epoch = r.claim.status.gate.epoch = 1;
    r.claim.status.accepted_lease_uuid = r.claim.spec.lease_uuid;
    r.claim.status.gate.state = CONTRACT_GATE_OPEN;
    from = r.n_trace;
    rig_claim_changed(&r);
    rig_run(&r, 60 * BASE_SEC, false);
    cr_assert_eq(r.claim.status.gate.state, CONTRACT_GATE_OPEN);
    cr_assert_eq(rig_status(&r, from), -1, "not a word on this row");

    rig_new_process(&r); /* its instance was taken over: by then it has to be shut there, too */
    rig_settle(&r);
    cr_assert_eq(r.claim.status.gate.state, CONTRACT_GATE_CLOSED, "nothing open is left standing there");
    rig_fini(&r);
}

Test(foundation_close, on_one_node_closing_and_accepting_are_one_write)
{
    struct rig r;
    int first;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    rig_taken_over(&r, "edge1");
    rig_settle(&r);
    first = rig_status(&r, from);
    cr_assert_geq(first, 0);
    cr_assert_eq(r.trace[first].object.u.claim.status.closed_epoch, 1);
    cr_assert_eq(r.trace[first].object.u.claim.status.accepted_epoch, 2);
    cr_assert_lt(gate_zero(&r, from), first);
    cr_assert(rig_is_open(&r), "epoch 2 opens at once");
    cr_assert_eq(rig_count(&r, FND_FX_STATUS, from), 2u);
    cr_assert_eq(rig_count(&r, FND_FX_FINALIZERS, from), 0u,
                 "the finalizer stays while the row names this node");
    rig_fini(&r);
}

Test(foundation_close, two_epochs_never_close_in_one_write)
{
    struct rig r;
    int one, two;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    r.writes = RIG_HOLD;
    rig_taken_over(&r, "edge1");
    rig_settle(&r);
    r.n_held = 0;
    r.writes = RIG_OK;
    rig_restart(&r);
    r.claim.spec.release_time = r.wall;
    rig_claim_changed(&r);
    r.q_len = 0;
    rig_list(&r);
    one = closed_write(&r, from, 1);
    two = closed_write(&r, from, 2);
    cr_assert(one >= 0 && two > one, "%d %d", one, two);
    cr_assert_eq(r.claim.status.closed_epoch, 2);
    rig_fini(&r);
}

Test(foundation_close, a_closing_takeover_is_never_accepted_and_ends)
{
    struct rig r;

    rig_open(&r);
    rig_taken_over(&r, "edge1");
    r.claim.spec.release_time = r.wall;
    rig_claim_changed(&r);
    r.q_head += 2;
    r.q_len -= 2;
    rig_settle(&r);
    cr_assert_eq(r.claim.status.accepted_epoch, 1);
    cr_assert_eq(r.claim.status.closed_epoch, 2);
    cr_assert_eq(r.gate, 0);
    rig_fini(&r);
}

Test(foundation_close, a_row_that_left_the_selector_is_shut_first_and_read_then)
{
    struct contract_object o = {.kind = CONTRACT_CLAIM};
    struct fnd_in in = {.ev = FND_EV_ROW, .coll = FND_HELD, .left = true, .object = &o};
    struct rig r;
    int zero, get;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    o.u.claim = r.claim;
    rig_fini(&r);
    rig_open(&r);
    from = r.n_trace;
    o.u.claim = r.claim;
    base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++r.rv);
    base_copy(r.claim.meta.rv, sizeof r.claim.meta.rv, o.u.meta.rv); /* it is back under that version */
    rig_feed(&r, &in);
    zero = gate_zero(&r, from);
    get = rig_find(&r, FND_FX_GET, from);
    cr_assert(zero >= 0 && get > zero, "zero %d, read %d", zero, get);
    cr_assert_eq(r.record.tomb, 0, "not final before it is read");
    rig_settle(&r);
    cr_assert_eq(r.claim.status.closed_epoch, 0);
    rig_run(&r, BASE_SEC, true);
    cr_assert(rig_is_open(&r), "it was only out of sight: the read proves it, and it opens again");
    rig_fini(&r);
}

Test(foundation_close, a_row_that_is_gone_is_tombstoned_and_forgotten)
{
    struct rig r;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    rig_claim_gone(&r);
    cr_assert_eq(r.gate, 0);
    cr_assert_geq(tombstone(&r, from, 1), 0);
    cr_assert_geq(rig_find(&r, FND_FX_FORGET, from), 0,
                  "an object's uid never comes back: its record may go");
    rig_fini(&r);
}

Test(foundation_close, an_answer_older_than_what_was_applied_changes_nothing)
{
    struct contract_object old = {.kind = CONTRACT_CLAIM};
    struct fnd_in in = {.ev = FND_EV_ANSWER, .object = &old};
    struct rig r;
    unsigned from;

    rig_open(&r);
    old.u.claim = r.claim; /* epoch 1, open */
    /* A read is under way ... */
    r.reads = RIG_HOLD;
    {
        struct contract_object o = {.kind = CONTRACT_CLAIM, .u.claim = r.claim};
        struct fnd_in left = {.ev = FND_EV_ROW, .coll = FND_HELD, .left = true, .object = &o};

        base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++r.rv);
        rig_feed(&r, &left);
        rig_settle(&r);
    }
    cr_assert_eq(r.n_held, 1u);
    in.id = r.held[0].fx.id;
    from = r.n_trace;
    rig_taken_over(&r, "edge2"); /* ... the watch shows a takeover ... */
    rig_settle(&r);
    in.sent = r.now;
    rig_feed(&r, &in); /* ... and then the answer of before comes in. */
    rig_settle(&r);
    rig_run(&r, 5 * BASE_SEC, true);
    for (unsigned i = from; i < r.n_trace; i++)
        cr_assert(r.trace[i].fx.kind != FND_FX_GATE || r.trace[i].fx.gate.deadline == 0,
                  "reopened by a late answer");
    cr_assert_eq(rig_log(&r, FND_LOG_REGRESSED, 0), -1, "a late answer was taken for the store going back");
    rig_fini(&r);
}

Test(foundation_close, deletion_closes_and_the_finalizer_comes_off_last)
{
    struct rig r;
    int said, fin;
    unsigned from;

    rig_open(&r);
    from = r.n_trace;
    r.claim.meta.deleting = r.wall;
    rig_claim_changed(&r);
    rig_settle(&r);
    said = closed_write(&r, from, 1);
    fin = rig_find(&r, FND_FX_FINALIZERS, from);
    cr_assert(said >= 0 && fin > said, "%d %d", said, fin);
    cr_assert_eq(r.gate, 0);
    cr_assert_not(r.has_claim, "the last finalizer is off: it is gone");
    rig_fini(&r);
}

/* A watch that lags shows the claim as it was, held and accepted, after answers have told that it was closed
 * and is gone; a proof that began before that comes, too, and would be worth L. */
Test(foundation_close, a_claim_that_is_gone_is_remembered_until_the_watch_has_caught_up)
{
    struct fnd_in in = {.ev = FND_EV_ROW, .coll = FND_HELD};
    struct contract_object old = {.kind = CONTRACT_CLAIM};
    struct rig r;
    unsigned from;

    rig_open(&r);
    old.u.claim = r.claim;
    r.no_proofs = true;
    rig_run(&r, 12 * BASE_SEC, true); /* a proof has been asked for */
    cr_assert_gt(r.proof_t0[FND_HELD], 0);
    from = r.n_trace;
    r.claim.meta.deleting = r.wall;
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_not(r.has_claim);
    cr_assert_eq(r.gate, 0);
    cr_assert_eq(rig_count(&r, FND_FX_FORGET, from), 0u, "the tombstone goes while the watch may still lag");
    in.object = &old;
    rig_feed(&r, &in);
    rig_proof(&r, FND_HELD);
    rig_settle(&r);
    for (unsigned i = from; i < r.n_trace; i++)
        cr_assert(r.trace[i].fx.kind != FND_FX_GATE || r.trace[i].fx.gate.deadline == 0, "opened again");
    r.no_proofs = false;
    in.ev = FND_EV_ROW;
    in.left = true; /* and at last the watch shows that it is gone */
    base_fmt(old.u.meta.rv, sizeof old.u.meta.rv, "%llu", (unsigned long long)++r.rv);
    rig_feed(&r, &in);
    rig_run(&r, 25 * BASE_SEC, true);
    cr_assert_eq(rig_count(&r, FND_FX_FORGET, from), 1u, "and then it goes");
    rig_fini(&r);
}

/* The service is revoked and comes back while the confirmation is on its way, and that does not land: the
 * epoch is closed for good all the same, and its holder must hear of it. */
Test(foundation_close, a_cause_that_goes_again_is_confirmed_all_the_same)
{
    for (int restart = 0; restart < 2; restart++) {
        struct rig r;

        rig_open(&r);
        r.writes = RIG_HOLD;
        r.svc.revoked = true;
        rig_svc_changed(&r);
        rig_settle(&r);
        cr_assert_eq(r.gate, 0);
        cr_assert_gt(r.n_held, 0u);
        r.svc.revoked = false;
        rig_svc_changed(&r);
        rig_settle(&r);
        while (r.n_held)
            rig_release(&r, RIG_LOST);
        r.writes = RIG_OK;
        if (restart) {
            rig_restart(&r);
            rig_list(&r);
        }
        rig_run(&r, 10 * BASE_SEC, true);
        cr_assert_eq(r.claim.status.closed_epoch, 1, "%d", restart);
        cr_assert_not(rig_is_open(&r));
        rig_fini(&r);
    }
}

Test(foundation_close, a_foreign_finalizer_stays_for_w_after_a_fresh_read)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 1);
    base_copy(r.claim.spec.holder.node, CONTRACT_NODE_SIZE, "edge2");
    base_copy(r.claim.spec.holder.instance, CONTRACT_CONNECTOR_SIZE, "masque.edge2");
    base_copy(r.claim.meta.finalizers[0], 128, "gate.edge.galactic.datumapis.com/dead.0123456789abcdef");
    base_copy(r.claim.meta.finalizers[1], 128, "example.com/keep");
    r.claim.meta.n_finalizers = 2;
    r.claim.meta.deleting = r.wall;
    rig_claim_changed(&r);
    rig_run(&r, 30 * BASE_SEC, true); /* the scan finds it within L */
    cr_assert_geq(rig_find(&r, FND_FX_GET, 0), 0, "read fresh");
    rig_run(&r, r.trace[rig_find(&r, FND_FX_GET, 0)].at + 32 * BASE_SEC - r.now, true);
    cr_assert_eq(rig_count(&r, FND_FX_FINALIZERS, 0), 0u, "taken off before W was over");
    rig_run(&r, BASE_SEC, true);
    cr_assert_eq(r.claim.meta.n_finalizers, 1);
    cr_assert_str_eq(r.claim.meta.finalizers[0], "example.com/keep", "only gate finalizers come off");
    cr_assert_eq(rig_status(&r, 0), -1, "nothing else is written on another node's row");
    rig_fini(&r);
}

Test(foundation_close, a_finalizer_of_an_earlier_boot_is_like_any_other_nodes)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 1);
    contract_finalizer(r.claim.meta.finalizers[0], &r.me_uid, &r.other_boot);
    r.claim.meta.n_finalizers = 1;
    r.claim.spec.holder.boot_id = r.other_boot;
    r.claim.meta.deleting = r.wall;
    rig_claim_changed(&r);
    rig_run(&r, 30 * BASE_SEC, true);
    cr_assert_eq(r.claim.meta.n_finalizers, 1, "this kernel cannot know that the other one has closed");
    rig_run(&r, 40 * BASE_SEC, true);
    cr_assert_eq(r.claim.meta.n_finalizers, 0);
    rig_fini(&r);
}

Test(foundation_close, an_object_that_goes_back_is_shut)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 2);
    r.claim.status.closed_epoch = 1;
    r.claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert(rig_is_open(&r));
    r.claim.spec.lease_uuid = rig_uuid(77); /* the same epoch with another nonce: a restored store */
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.gate, 0);
    cr_assert_geq(rig_log(&r, FND_LOG_REGRESSED, 0), 0);
    rig_run(&r, 20 * BASE_SEC, true);
    cr_assert_eq(r.gate, 0);
    rig_fini(&r);
}
