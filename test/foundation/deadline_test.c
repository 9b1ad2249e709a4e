/* SPDX-License-Identifier: Apache-2.0
 * Deadlines: contract sections 2 (renewals, validUntil), 5 (proofs), 6 (gate deadline) and 8 ("Extend"). */
#include "rig.h"

static const base_time L = RIG_L * BASE_SEC;

Test(foundation_deadline, is_the_least_of_renewal_proof_and_service)
{
    static const struct {
        const char *name;
        base_time renew_ago, proof_ago;
        int64_t service_left; /* seconds */
        base_time want;       /* from now */
    } rows[] = {
        {"renewal", 20 * BASE_SEC, 0, 300, 10 * BASE_SEC},
        {"proof of services", 1 * BASE_SEC, 9 * BASE_SEC, 300, 21 * BASE_SEC},
        {"service", 1 * BASE_SEC, 0, 7, 7 * BASE_SEC},
    };

    for (unsigned i = 0; i < BASE_LEN(rows); i++) {
        struct rig r;
        int g;

        rig_init(&r);
        r.inst.spec.renew.boot_time_us = (r.now + rows[i].proof_ago - rows[i].renew_ago) / BASE_US;
        rig_list(&r); /* proofs of now */
        r.no_proofs = true;
        r.now += rows[i].proof_ago;
        r.wall += rows[i].proof_ago / BASE_US;
        r.svc.valid_until = r.wall + rows[i].service_left * 1000000;
        rig_svc_changed(&r);
        rig_inst_changed(&r);
        rig_settle(&r);
        rig_claim_created(&r, 1);
        rig_claim_changed(&r);
        rig_settle(&r);
        g = rig_find(&r, FND_FX_GATE, 0);
        cr_assert_geq(g, 0, "%s: not opened", rows[i].name);
        cr_assert_eq(r.trace[g].fx.gate.deadline - r.now, rows[i].want, "%s: %lld", rows[i].name,
                     (long long)(r.trace[g].fx.gate.deadline - r.now));
        rig_fini(&r);
    }
}

Test(foundation_deadline, the_smaller_lease_counts)
{
    static const int32_t rows[][3] = {{10, 30, 10}, {30, 12, 12}};

    for (unsigned i = 0; i < BASE_LEN(rows); i++) {
        struct rig r;

        rig_init(&r);
        r.inst.spec.lease_seconds = rows[i][0];
        rig_list(&r);
        rig_claim_created(&r, 1);
        r.claim.spec.lease_seconds = rows[i][1];
        rig_claim_changed(&r);
        rig_settle(&r);
        cr_assert_eq(r.gate - r.now, rows[i][2] * BASE_SEC);
        rig_fini(&r);
    }
}

Test(foundation_deadline, a_proof_extends_and_a_renewal_alone_does_not)
{
    struct rig r;
    base_time was;

    rig_open(&r);
    was = r.gate;
    cr_assert_eq(was, r.now + L);
    r.no_proofs = true;
    rig_run(&r, 15 * BASE_SEC, true); /* renewals and service updates come, proofs do not */
    cr_assert_eq(r.gate, was, "moved without a proof");
    r.no_proofs = false;
    rig_proof(&r, FND_HELD);
    rig_proof(&r, FND_SERVICES);
    rig_run(&r, BASE_MS, false);
    cr_assert_gt(r.gate, was, "a proof does not extend");
    cr_assert_leq(r.gate, r.now + L);
    rig_fini(&r);
}

Test(foundation_deadline, a_full_list_is_a_proof_of_its_own)
{
    struct rig r;
    struct contract_object o = {.kind = CONTRACT_CLAIM};
    base_time was;

    rig_open(&r);
    was = r.gate;
    r.no_proofs = true;
    rig_run(&r, 15 * BASE_SEC, true);
    o.u.claim = r.claim;
    rig_feed(&r, &(struct fnd_in){.ev = FND_EV_RELIST, .coll = FND_HELD});
    rig_feed(&r, &(struct fnd_in){.ev = FND_EV_ROW, .coll = FND_HELD, .object = &o});
    rig_feed(&r, &(struct fnd_in){.ev = FND_EV_LISTED, .coll = FND_HELD, .t0 = r.now});
    rig_run(&r, BASE_MS, false);
    cr_assert_eq(r.gate, was, "the services are not proved yet");
    o.kind = CONTRACT_SERVICE;
    o.u.service = r.svc;
    rig_feed(&r, &(struct fnd_in){.ev = FND_EV_RELIST, .coll = FND_SERVICES});
    rig_feed(&r, &(struct fnd_in){.ev = FND_EV_ROW, .coll = FND_SERVICES, .object = &o});
    rig_feed(&r, &(struct fnd_in){.ev = FND_EV_LISTED, .coll = FND_SERVICES, .t0 = r.now});
    rig_run(&r, BASE_MS, false);
    cr_assert(r.gate > was && r.gate <= r.now + L, "%lld", (long long)(r.gate - r.now));
    rig_fini(&r);
}

Test(foundation_deadline, a_proof_that_failed_is_tried_again_within_half_a_second)
{
    struct rig r;
    unsigned from, n;

    rig_open(&r);
    r.bad_proofs = true;
    rig_run(&r, 11 * BASE_SEC, true); /* the first one has failed by then */
    from = r.n_trace;
    rig_run(&r, 5 * BASE_SEC, true);
    n = rig_count(&r, FND_FX_PROVE, from);
    cr_expect(n >= 2 * 9 && n <= 2 * 12, "%u proofs of two collections in 5 s", n);
    rig_fini(&r);
}

Test(foundation_deadline, a_renewal_that_comes_after_the_proof_does_not_move_it)
{
    struct rig r;
    base_time was;

    rig_init(&r);
    r.inst.spec.renew.boot_time_us = (r.now - 8 * BASE_SEC) / BASE_US; /* the renewal is the least */
    rig_list(&r);
    rig_claim_created(&r, 1);
    rig_claim_changed(&r);
    rig_settle(&r);
    was = r.gate;
    cr_assert_eq(was, r.now + 22 * BASE_SEC);
    r.no_proofs = true;
    r.now += BASE_SEC;
    rig_renew(&r);
    rig_settle(&r);
    cr_assert_eq(r.gate, was, "moved by a watch event");
    rig_fini(&r);
}

Test(foundation_deadline, is_shortened_at_once)
{
    struct rig r;

    rig_open(&r);
    r.no_proofs = true;
    r.now += BASE_SEC;
    r.svc.valid_until = r.wall + 3 * 1000000;
    rig_svc_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.gate, r.now + 3 * BASE_SEC);
    rig_fini(&r);
}

Test(foundation_deadline, a_row_that_the_proved_collection_does_not_show_is_not_extended)
{
    struct rig r;
    base_time end;

    rig_init(&r);
    rig_list(&r);
    /* A takeover on this node, that only the other watch shows. */
    rig_claim_created(&r, 2);
    base_copy(r.claim.spec.previous.node, CONTRACT_NODE_SIZE, "edge1");
    r.silent_held = true;
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert(rig_is_open(&r), "its own accept is its first proof");
    end = r.gate;
    rig_run(&r, 25 * BASE_SEC, true);
    cr_assert_leq(r.gate, end, "extended by a proof that it was not in");
    rig_fini(&r);
}

Test(foundation_deadline, runs_on_while_proofs_fail_and_ends_on_time)
{
    struct rig r;
    base_time end;
    int shut;

    rig_open(&r);
    end = r.gate;
    r.bad_proofs = true;
    rig_run(&r, end - r.now - BASE_MS, true);
    cr_assert_eq(r.gate, end);
    cr_assert_eq(r.route_epoch, 1);
    rig_run(&r, 5 * BASE_MS, true);
    shut = rig_log(&r, FND_LOG_SHUT, 0);
    cr_assert_geq(shut, 0);
    cr_assert_eq(r.route_epoch, 0, "withdrawn when the gate has run out");
    cr_assert_eq(r.record.tomb, 0, "a lapse is not final");
    cr_assert_eq(r.claim.status.closed_epoch, 0, "a lapse confirms nothing");
    cr_assert_eq(r.claim.status.gate.state, CONTRACT_GATE_CLOSED);
    r.bad_proofs = false;
    rig_run(&r, 12 * BASE_SEC, true);
    cr_assert(rig_is_open(&r), "a later proof brings it back");
    rig_fini(&r);
}

Test(foundation_deadline, after_a_lapse_an_older_proof_is_not_enough)
{
    struct rig r;

    rig_open(&r);
    r.now += BASE_SEC;
    r.no_proofs = true;
    r.svc.valid_until = r.wall - 1;
    rig_svc_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.gate, 0);
    r.now += BASE_SEC;
    r.svc.valid_until = r.wall + 300 * 1000000LL; /* an event alone */
    rig_svc_changed(&r);
    rig_settle(&r);
    cr_assert_eq(r.gate, 0, "opened by a watch event");
    r.no_proofs = false;
    rig_run(&r, 10 * BASE_SEC, true);
    rig_proof(&r, FND_HELD);
    rig_proof(&r, FND_SERVICES);
    rig_run(&r, 12 * BASE_SEC, true);
    cr_assert(rig_is_open(&r));
    rig_fini(&r);
}

Test(foundation_deadline, only_a_row_that_is_in_the_proof_is_extended)
{
    struct rig r;
    base_time was;

    rig_open(&r);
    was = r.gate;
    /* A takeover that no watch shows: the proof's own cache does not have it either, but a proof after the
     * row left the selector must not extend. */
    r.silent_held = true;
    rig_taken_over(&r, "edge2");
    r.silent_held = false;
    r.now += 5 * BASE_SEC;
    {
        struct contract_object o = {.kind = CONTRACT_CLAIM, .u.claim = r.claim};
        struct fnd_in in = {.ev = FND_EV_ROW, .coll = FND_HELD, .left = true, .object = &o};

        rig_settle(&r);
        cr_assert_eq(r.gate, 0, "zero at once when the other selector shows the takeover");
        rig_feed(&r, &in);
        rig_settle(&r);
        cr_assert_eq(rig_count(&r, FND_FX_GET, 0), 0u, "the other watch told already");
    }
    rig_run(&r, 11 * BASE_SEC, true);
    cr_assert_eq(r.gate, 0);
    cr_assert_lt(was, r.now + L);
    rig_fini(&r);
}

Test(foundation_deadline, a_silent_claim_watch_ends_the_gate_within_the_lease)
{
    struct rig r;
    base_time end;

    rig_open(&r);
    end = r.gate;
    /* The instance renews and the service is moved on; the claim's proofs fail since no bookmark reaches R. */
    r.silent_held = true;
    r.bad_proofs = true;
    rig_run(&r, 60 * BASE_SEC, true);
    cr_assert_eq(r.gate, 0);
    for (unsigned i = 0; i < r.n_trace; i++)
        if (r.trace[i].fx.kind == FND_FX_GATE)
            cr_assert_leq(r.trace[i].fx.gate.deadline, end, "moved without a proof");
    rig_fini(&r);
}

Test(foundation_deadline, a_proof_that_nobody_asked_for_is_ignored)
{
    struct fnd_in in = {.ev = FND_EV_PROVED, .coll = FND_HELD, .id = 424242};
    struct rig r;
    base_time was;

    rig_open(&r);
    was = r.gate;
    r.now += 2 * BASE_SEC;
    rig_renew(&r);
    rig_settle(&r);
    in.t0 = r.now;
    rig_feed(&r, &in);
    in.ev = FND_EV_PROVED;
    in.coll = FND_SERVICES;
    rig_feed(&r, &in);
    rig_settle(&r);
    cr_assert_eq(r.gate, was);
    rig_fini(&r);
}

Test(foundation_deadline, renewals_of_the_future_or_of_another_boot_are_refused)
{
    for (int boot = 0; boot < 2; boot++) {
        struct rig r;

        rig_open(&r);
        r.inst.spec.renew.boot_time_us = boot ? r.now / BASE_US : r.now / BASE_US + 3600LL * 1000000;
        if (boot)
            r.inst.spec.renew.boot_id = r.other_boot;
        rig_inst_changed(&r);
        rig_settle(&r);
        cr_assert_geq(rig_log(&r, FND_LOG_RENEWAL, 0), 0, "not refused");
        rig_run(&r, 40 * BASE_SEC, false); /* proofs go on: only the renewal is missing */
        cr_assert_eq(r.gate, 0, "a refused renewal kept the gate open");
        for (unsigned i = 0; i < r.n_trace; i++)
            cr_assert_leq(r.trace[i].fx.gate.deadline, 1000 * BASE_SEC + L);
        rig_fini(&r);
    }
}

Test(foundation_deadline, an_instance_whose_renewal_is_ahead_is_not_accepted)
{
    struct rig r;

    rig_init(&r);
    r.inst.spec.renew.boot_time_us = r.now / BASE_US + 1000000;
    rig_list(&r);
    cr_assert_eq(r.inst.status.accepted_epoch, 0);
    cr_assert_str_eq(r.inst.status.accepted.reason, "RenewalAhead");
    rig_fini(&r);
}

Test(foundation_deadline, valid_until_is_clamped_and_converted_once)
{
    struct rig r;
    base_time first;

    rig_init(&r);
    r.svc.valid_until = r.wall + 3600LL * 1000000; /* an authority whose clock is wrong */
    r.inst.spec.lease_seconds = 300;
    r.no_proofs = false;
    rig_list(&r);
    rig_claim_created(&r, 1);
    r.claim.spec.lease_seconds = r.claim.spec.max_lease_seconds = 300;
    rig_claim_changed(&r);
    rig_settle(&r);
    first = r.now + 302 * BASE_SEC;
    /* The wall clock steps back an hour; the object changes without changing the value. */
    r.wall -= 3600LL * 1000000;
    for (int i = 0; i < 40; i++) {
        r.now += 10 * BASE_SEC;
        rig_renew(&r);
        rig_svc_changed(&r);
        rig_run(&r, BASE_MS, false);
    }
    for (unsigned i = 0; i < r.n_trace; i++)
        cr_assert_leq(r.trace[i].fx.gate.deadline, first, "stretched beyond the first conversion");
    cr_assert_eq(r.gate, 0);
    rig_fini(&r);
}

Test(foundation_deadline, no_lease_is_longer_than_five_minutes)
{
    struct rig r;

    rig_init(&r);
    r.svc.valid_until = r.wall + 302LL * 1000000;
    r.no_rules = true;
    r.inst.spec.lease_seconds = 3600;
    rig_list(&r);
    rig_claim_created(&r, 1);
    r.claim.spec.lease_seconds = r.claim.spec.max_lease_seconds = 3600;
    rig_claim_changed(&r);
    rig_settle(&r);
    cr_assert_gt(r.gate, r.now + 200 * BASE_SEC, "it is open");
    cr_assert_leq(r.gate, r.now + 300 * BASE_SEC);
    rig_fini(&r);
}

Test(foundation_deadline, the_conversion_survives_a_restart)
{
    struct rig r;
    int64_t end;

    rig_open(&r);
    end = r.now + 300 * BASE_SEC;
    rig_run(&r, 20 * BASE_SEC, false);
    r.wall -=
        1000LL * 1000000; /* stepped back: a new conversion would be 1000 s longer, and clamped to 302 s */
    rig_restart(&r);
    rig_list(&r);
    for (int i = 0; i < 40; i++) {
        r.now += 10 * BASE_SEC;
        rig_renew(&r);
        rig_run(&r, BASE_MS, false);
    }
    for (unsigned i = 0; i < r.n_trace; i++)
        cr_assert_leq(r.trace[i].fx.gate.deadline, end);
    cr_assert_eq(r.gate, 0);
    rig_fini(&r);
}

Test(foundation_deadline, proofs_come_once_per_interval_and_need_no_event)
{
    struct rig r;
    unsigned from, n;

    rig_open(&r);
    from = r.n_trace;
    rig_run(&r, 100 * BASE_SEC, true);
    n = rig_count(&r, FND_FX_PROVE, from);
    cr_assert(n >= 2 * 9 && n <= 2 * 12, "%u proofs of two collections in 100 s", n);
    cr_assert(rig_is_open(&r));
    cr_assert_eq(rig_status(&r, from), -1, "no status write while nothing changes");
    rig_fini(&r);
}
