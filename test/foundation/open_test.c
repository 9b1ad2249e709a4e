/* SPDX-License-Identifier: Apache-2.0
 * Accept and open: contract section 8, "Accept", "Open", "Finalizer" (first half), and section 7. */
#include "rig.h"

Test(foundation_open, steps_come_in_the_order_of_the_contract)
{
    struct rig r;
    int accept, fin, record, gate, publish, said;

    rig_open(&r);
    accept = rig_status(&r, 0);
    fin = rig_find(&r, FND_FX_FINALIZERS, 0);
    gate = rig_find(&r, FND_FX_GATE, 0);
    cr_assert(accept >= 0 && fin > accept && gate > fin, "accept %d, finalizer %d, gate %d", accept, fin,
              gate);
    record = rig_find(&r, FND_FX_RECORD, (unsigned)fin);
    publish = rig_find(&r, FND_FX_PUBLISH, 0);
    said = rig_status(&r, (unsigned)gate);
    cr_assert(record > 0 && record < gate, "the accept record is pinned before the gate opens");
    cr_assert(publish > gate && said > publish, "gate %d, publish %d, status %d", gate, publish, said);
    cr_assert_eq(rig_count(&r, FND_FX_STATUS, (unsigned)accept), 2u, "two writes on the way up");
    cr_assert_eq(r.trace[accept].object.u.claim.status.accepted_epoch, 1);
    cr_assert_eq(r.trace[accept].object.u.claim.status.gate.state, CONTRACT_GATE_CLOSED);
    cr_assert_eq(r.claim.status.gate.state, CONTRACT_GATE_OPEN);
    cr_assert_eq(r.claim.status.gate.epoch, 1);
    cr_assert_eq(r.claim.status.published_epoch, 1);
    cr_assert_eq(r.record.accepted, 1);
    rig_fini(&r);
}

Test(foundation_open, nothing_in_the_kernel_before_the_accept_has_landed)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    r.writes = RIG_HOLD;
    rig_claim_created(&r, 1);
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.n_held, 1u);
    cr_assert_eq(rig_find(&r, FND_FX_GATE, 0), -1);
    rig_release(&r, RIG_OK); /* accept */
    cr_assert_eq(rig_find(&r, FND_FX_GATE, 0), -1, "opened without its finalizer");
    rig_release(&r, RIG_OK); /* finalizer */
    cr_assert_geq(rig_find(&r, FND_FX_GATE, 0), 0);
    rig_fini(&r);
}

Test(foundation_open, nor_when_the_finalizer_is_there_already)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    r.writes = RIG_HOLD;
    rig_claim_created(&r, 1);
    contract_finalizer(r.claim.meta.finalizers[0], &r.me_uid, &r.boot);
    r.claim.meta.n_finalizers = 1;
    rig_claim_changed(&r);
    rig_run(&r, BASE_SEC, true);
    cr_assert_eq(rig_find(&r, FND_FX_GATE, 0), -1, "opened before its accept had landed");
    rig_release(&r, RIG_OK);
    cr_assert_geq(rig_find(&r, FND_FX_GATE, 0), 0);
    rig_fini(&r);
}

struct bad {
    const char *name;
    void (*spoil)(struct rig *r);
};
static void released(struct rig *r)
{
    r->claim.spec.release_time = r->wall;
}
static void deleting(struct rig *r)
{
    r->claim.meta.deleting = r->wall;
    r->claim.meta.n_finalizers = 1;
    base_copy(r->claim.meta.finalizers[0], 128, "example.com/other");
}
static void other_boot(struct rig *r)
{
    r->claim.spec.holder.boot_id = r->other_boot;
}
static void other_process(struct rig *r)
{
    r->claim.spec.holder.process_id = r->other_process;
}
static void other_instance(struct rig *r)
{
    r->claim.spec.holder.instance_uid = rig_uuid(999);
}
static void instance_epoch(struct rig *r)
{
    r->claim.spec.holder.instance_epoch = 2;
}
static void attachment_uid(struct rig *r)
{
    r->claim.spec.attachment.uid = rig_uuid(999);
}
static void service_uid(struct rig *r)
{
    r->claim.spec.service.uid = rig_uuid(999);
}
static void revoked(struct rig *r)
{
    r->svc.revoked = true;
    rig_svc_changed(r);
}
static void expired(struct rig *r)
{
    r->svc.valid_until = r->wall - 1;
    rig_svc_changed(r);
}
static void outside_pool(struct rig *r)
{
    base_prefix_parse(&r->claim.spec.prefix, BASE_STR("fd12::2:0:5:0:0/96"));
    contract_claim_name(r->claim.meta.name, &r->claim.spec.prefix);
}
static void index_zero(struct rig *r)
{
    base_prefix_parse(&r->claim.spec.prefix, BASE_STR("fd12:0:0:1::/96"));
    contract_claim_name(r->claim.meta.name, &r->claim.spec.prefix);
}
static void other_tenant(struct rig *r)
{
    base_copy(r->claim.spec.tenant, sizeof r->claim.spec.tenant, "umbrella");
}
static void other_vpc(struct rig *r)
{
    base_copy(r->claim.spec.vpc, sizeof r->claim.spec.vpc, "vpc-b");
}
static void instance_released(struct rig *r)
{
    r->inst.spec.release_time = r->wall;
    rig_inst_changed(r);
}
static void closed(struct rig *r)
{
    r->claim.status.closed_epoch = 1;
    r->claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
}
static const struct bad bads[] = {
    {"released", released},
    {"deleting", deleting},
    {"holder.bootID", other_boot},
    {"holder.processID", other_process},
    {"holder.instanceUID", other_instance},
    {"holder.instanceEpoch", instance_epoch},
    {"attachmentRef.uid", attachment_uid},
    {"serviceRef.uid", service_uid},
    {"service revoked", revoked},
    {"service expired", expired},
    {"outside the pool", outside_pool},
    {"index 0", index_zero},
    {"tenant", other_tenant},
    {"vpc", other_vpc},
    {"instance released", instance_released},
    {"closed", closed},
};

Test(foundation_open, a_claim_that_lacks_anything_is_never_accepted)
{
    for (unsigned i = 0; i < BASE_LEN(bads); i++) {
        struct rig r;

        rig_init(&r);
        rig_list(&r);
        rig_claim_created(&r, 1);
        bads[i].spoil(&r);
        rig_claim_changed(&r);
        rig_run(&r, 5 * BASE_SEC, true);
        cr_assert_eq(r.claim.status.accepted_epoch, 0, "accepted in spite of: %s", bads[i].name);
        cr_assert_eq(r.gate, 0, "gate open in spite of: %s", bads[i].name);
        rig_fini(&r);
    }
}

Test(foundation_open, the_same_faults_shut_an_open_gate_at_once)
{
    /* What can still change on an open row, and whether it ends it for good. */
    static const struct {
        struct bad bad;
        int64_t tomb;
    } rows[] = {
        {{"released", released}, 1},
        {{"service revoked", revoked}, 1},
        {{"service expired", expired}, 0},
        {{"instance released", instance_released}, 0},
    };

    for (unsigned i = 0; i < BASE_LEN(rows); i++) {
        struct rig r;

        rig_open(&r);
        rows[i].bad.spoil(&r);
        if (rows[i].bad.spoil == released)
            rig_claim_changed(&r);
        rig_settle(&r);
        cr_assert_eq(r.gate, 0, "still open: %s", rows[i].bad.name);
        cr_assert_eq(r.route_epoch, 0, "still published: %s", rows[i].bad.name);
        cr_assert_eq(r.record.tomb, rows[i].tomb, "tombstone: %s", rows[i].bad.name);
        cr_assert_eq(r.claim.status.closed_epoch, rows[i].tomb, "closedEpoch: %s", rows[i].bad.name);
        cr_assert_eq(r.claim.status.gate.state, CONTRACT_GATE_CLOSED, "status: %s", rows[i].bad.name);
        rig_fini(&r);
    }
}

Test(foundation_open, never_backwards_from_the_pinned_record)
{
    static const struct {
        const char *name;
        int64_t accepted, tomb;
        unsigned lease;
        bool opens;
    } rows[] = {
        {"a later epoch was accepted", 3, 0, 1003, false},
        {"the same epoch with another leaseUUID", 2, 0, 999, false},
        {"a tombstone of this epoch", 1, 2, 1001, false},
        {"a tombstone of a later epoch", 1, 5, 1001, false},
        {"a tombstone of the epoch before", 1, 1, 1001, true},
        {"the same accept", 2, 0, 1002, true},
    };

    for (unsigned i = 0; i < BASE_LEN(rows); i++) {
        struct fnd_record rec = {.kind = CONTRACT_CLAIM, .accepted = rows[i].accepted, .tomb = rows[i].tomb};
        struct fnd_in in = {.ev = FND_EV_RECORD, .record = &rec};
        struct rig r;

        rig_init(&r);
        rec.uid = rig_uuid(400);
        rec.nonce = rig_uuid(rows[i].lease);
        rig_feed(&r, &in);
        rig_list(&r);
        rig_claim_created(&r, 2);
        r.claim.status.closed_epoch = 1;
        r.claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
        rig_claim_changed(&r);
        rig_settle(&r);
        cr_assert_eq(rig_is_open(&r), rows[i].opens, "%s", rows[i].name);
        rig_fini(&r);
    }
}

Test(foundation_open, earlier_epochs_must_be_closed_or_waited_out)
{
    struct rig r;
    base_time w;
    int said;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 2); /* edge2 held epoch 1 */
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.claim.status.accepted_epoch, 2, "accepted at once");
    cr_assert_eq(r.gate, 0, "opened without waiting");
    cr_assert_eq(r.claim.meta.n_finalizers, 0, "written between the accept and the closure");
    w = contract_wait(&(struct contract_timing){.gate_lag = 500 * BASE_MS, .rate_ppm = 1000}, RIG_L);
    rig_run(&r, w - 10 * BASE_MS, true);
    cr_assert_eq(r.gate, 0, "opened before W was over");
    cr_assert_eq(r.claim.status.closed_epoch, 0);
    rig_run(&r, 20 * BASE_MS, true);
    cr_assert(rig_is_open(&r), "not opened after W");
    cr_assert_eq(r.claim.status.closed_epoch, 1);
    cr_assert_eq(r.claim.status.closed_reason, CONTRACT_CLOSED_WAITED);
    said = rig_log(&r, FND_LOG_CLOSED_EPOCH, 0);
    cr_assert_geq(said, 0);
    rig_fini(&r);
}

Test(foundation_open, the_wait_counts_from_the_first_sight_of_this_epoch_by_this_process)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 2);
    rig_claim_changed(&r);
    rig_run(&r, 30 * BASE_SEC, true);
    rig_restart(&r); /* from zero */
    rig_list(&r);
    rig_run(&r, 30 * BASE_SEC, true);
    cr_assert_eq(r.gate, 0, "a restart does not shorten the wait");
    rig_run(&r, 5 * BASE_SEC, true);
    cr_assert(rig_is_open(&r));
    rig_fini(&r);
}

Test(foundation_open, a_confirmation_of_the_epoch_before_opens_at_once)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 2);
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.gate, 0);
    r.claim.status.closed_epoch = 1; /* edge2's foundation */
    r.claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert(rig_is_open(&r));
    rig_fini(&r);
}

Test(foundation_open, an_older_gap_is_not_enough)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 3);
    r.claim.status.closed_epoch = 1; /* epoch 2 is not closed */
    r.claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
    rig_claim_changed(&r);
    rig_run(&r, 20 * BASE_SEC, true);
    cr_assert_eq(r.gate, 0);
    rig_fini(&r);
}

Test(foundation_open, a_lost_answer_is_read_back)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    r.writes = RIG_LANDED_LOST;
    rig_claim_created(&r, 1);
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(rig_find(&r, FND_FX_GATE, 0), -1, "an unknown outcome counts as not landed");
    rig_run(&r, 5 * BASE_SEC, true); /* every write's answer is lost, every one is read back */
    cr_assert(rig_is_open(&r));
    {
        int first = rig_status(&r, 0), get = rig_find(&r, FND_FX_GET, (unsigned)first);

        cr_assert_gt(get, first);
        cr_assert(rig_status(&r, (unsigned)first + 1) > get, "written again before it was read back");
    }
    rig_fini(&r);
}

Test(foundation_open, a_write_that_was_lost_is_made_again_on_what_was_read)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    r.writes = RIG_LOST;
    rig_claim_created(&r, 1);
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.claim.status.accepted_epoch, 0);
    r.writes = RIG_OK;
    rig_run(&r, BASE_SEC, true);
    cr_assert(rig_is_open(&r));
    rig_fini(&r);
}

Test(foundation_open, a_conflict_is_read_and_decided_again)
{
    struct rig r;
    int get;

    rig_init(&r);
    rig_list(&r);
    r.writes = RIG_CONFLICT;
    rig_claim_created(&r, 1);
    rig_claim_changed(&r);
    rig_feed(&r, &r.queue[r.q_head]);
    r.q_head++;
    r.q_len--;
    r.writes = RIG_OK;
    rig_settle(&r);
    get = rig_find(&r, FND_FX_GET, 0);
    cr_assert_geq(get, 0, "read before the next write");
    cr_assert(rig_is_open(&r));
    rig_fini(&r);
}

Test(foundation_open, an_overtaken_accept_answer_is_made_good_by_a_read)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 2);
    contract_finalizer(r.claim.meta.finalizers[0], &r.me_uid, &r.boot);
    r.claim.meta.n_finalizers = 1;
    r.writes = RIG_HOLD;
    rig_claim_changed(&r);
    rig_settle(&r);
    r.no_proofs = true;
    /* The accept lands; before its answer comes, the watch shows it and edge2's confirmation on top. */
    r.claim.status = r.held[0].object.u.claim.status;
    rig_claim_changed(&r);
    r.claim.status.closed_epoch = 1;
    r.claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.gate, 0, "nothing proves the row yet");
    r.writes = RIG_OK;
    {
        struct contract_object old = {.kind = CONTRACT_CLAIM};
        struct fnd_in in = {.ev = FND_EV_ANSWER, .id = r.held[0].fx.id, .sent = r.now, .object = &old};

        old.u.claim = r.claim;
        base_copy(old.u.claim.meta.rv, CONTRACT_RV_SIZE, r.held[0].object.u.meta.rv);
        rig_feed(&r, &in);
    }
    rig_settle(&r);
    cr_assert(rig_is_open(&r));
    cr_assert_geq(rig_find(&r, FND_FX_GET, 0), 0);
    rig_fini(&r);
}

Test(foundation_open, refusals_are_said_on_the_row_once_they_stand)
{
    struct rig r;

    rig_init(&r);
    rig_list(&r);
    rig_claim_created(&r, 1);
    service_uid(&r);
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.claim.status.accepted.status, CONTRACT_COND_ABSENT, "the cache may only be late");
    rig_run(&r, 5 * BASE_SEC, true);
    cr_assert_eq(r.claim.status.accepted.status, CONTRACT_COND_FALSE);
    cr_assert_str_eq(r.claim.status.accepted.reason, "ServiceGone");
    cr_assert_eq(rig_count(&r, FND_FX_STATUS, 0), 4u, "said once: instance 1, attachment 2, claim 1");
    rig_fini(&r);
}
