/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes whose answer is lost, refused or late; arbitration of prefixes and rows; the instance row.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

/* ---- claims */
Test(session_write, claim_write_with_a_lost_answer)
{
    static const struct {
        const char *what;
        enum w_fault fault;
        bool takeover, silent; /* silent: the watch does not help */
        int status;
        int64_t epoch; /* at the end */
    } rows[] = {
        {"create lost", W_LOST, false, false, 200, 1},
        {"create landed", W_LANDED, false, false, 200, 1},
        {"create landed, watch silent", W_LANDED, false, true, 200, 1},
        {"create never answered", W_NO_ANSWER, false, false, 200, 1},
        {"create refused", W_DENIED, false, false, 503, 0},
        {"create invalid", W_INVALID, false, false, 503, 0},
        {"create to be tried later", W_TRY_LATER, false, false, 200, 1},
        {"takeover lost", W_LOST, true, false, 200, 2},
        {"takeover landed", W_LANDED, true, false, 200, 2},
        {"takeover landed, watch silent", W_LANDED, true, true, 200, 2},
        {"takeover never answered", W_NO_ANSWER, true, false, 200, 2},
        {"takeover refused", W_DENIED, true, false, 503, 1},
        {"takeover in conflict", W_CONFLICT, true, false, 200, 2},
        {"takeover to be tried later", W_TRY_LATER, true, false, 200, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = world_usual(1);
        if (rows[i].takeover) {
            struct w_flow *f = world_session(w, 0);
            world_end(w, f->flow);
            world_run(w, 3 * W_SEC);
        }
        w->node[0].write_fault[CONTRACT_CLAIM] = rows[i].fault;
        uint64_t flow = world_connect(w, 0, W_URI);
        w->node[0].watch_silent[CONTRACT_CLAIM] = rows[i].silent;
        world_run(w, W_SEC);
        w->node[0].watch_silent[CONTRACT_CLAIM] = false;
        if (rows[i].silent) { /* the watch comes back with what it missed */
            struct contract_object *k = world_get(w, world_claim_name(w));
            world_touch(w, k);
        }
        cr_assert_geq(world_until(w, 15 * W_SEC, world_answered, &flow), 0, "%s", rows[i].what);
        struct w_flow *f = world_flow(w, flow);
        cr_assert_eq(f->status, rows[i].status, "%s: %d %s", rows[i].what, f->status, f->reason);
        world_run(w, 15 * W_SEC);
        struct contract_claim *k = world_claim(w, world_claim_name(w));
        cr_assert_eq(k ? k->spec.epoch : 0, rows[i].epoch, "%s: epoch %lld", rows[i].what,
                     (long long)(k ? k->spec.epoch : 0));
        if (rows[i].fault == W_LOST) { /* evidence, not a claim of exactly-once */
            const struct session_audit *a = &w->node[0].last_audit[SESSION_AUDIT_REJECT];
            cr_assert_str_eq(a->reason, "OutcomeUnknown", "%s", rows[i].what);
            cr_assert(a->effect_possible, "%s", rows[i].what);
        }
        cr_assert_eq(world_passes(w, f), rows[i].status == 200, "%s", rows[i].what);
        world_free(w);
    }
}

Test(session_write, deadline_of_a_read_back_claim_is_that_of_its_send)
{
    struct world *w = world_usual(1);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LANDED;
    w->node[0].watch_silent[CONTRACT_CLAIM] = true;
    w->node[0].foundation_down = true;
    base_time before = w->now;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_run(w, 2 * W_SEC); /* written, lost, read back */
    cr_assert_str_eq(world_state(w, 0), "Waiting");
    w->node[0].foundation_down = false;
    world_run(w, 100 * W_MS);
    w->node[0].watch_silent[CONTRACT_CLAIM] = false;
    world_touch(w, world_get(w, world_claim_name(w)));
    w->node[0].watch_silent[CONTRACT_CLAIM] = true;
    cr_assert_geq(world_until(w, 2 * W_SEC, world_answered, &flow), 0);
    struct w_flow *f = world_flow(w, flow);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_leq(f->deadline, before + 40 * W_MS + 28 * W_SEC, "anchored at the read, not at the send");
    world_free(w);
}

Test(session_write, a_write_that_lands_late_changes_nothing_but_is_given_back)
{
    /* create: lost, settled by a second POST; the first arrives when the row is there: AlreadyExists */
    struct world *w = world_usual(1);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    struct base_uuid lease = world_claim(w, world_claim_name(w))->spec.lease_uuid;
    world_land(w);
    world_run(w, W_SEC);
    cr_assert(base_uuid_eq(&world_claim(w, world_claim_name(w))->spec.lease_uuid, &lease));
    cr_assert(world_passes(w, f));
    world_free(w);

    /* takeover: lost, decided again on the same version; the first arrives after it: 409 */
    w = world_usual(1);
    f = world_session(w, 0);
    world_end(w, f->flow);
    world_run(w, 3 * W_SEC);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, 2);
    world_land(w);
    world_run(w, W_SEC);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, 2);
    cr_assert(world_passes(w, f));
    world_free(w);

    /* nobody waits any more when it lands: released at once */
    w = world_usual(1);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
    uint64_t flow = world_connect(w, 0, W_URI);
    while (!w->late)
        world_run(w, 2 * W_MS);
    world_end(w, flow);
    world_run(w, W_SEC);
    cr_assert_str_eq(world_state(w, 0), "Idle");
    world_land(w);
    world_run(w, W_SEC);
    struct contract_claim *k = world_claim(w, world_claim_name(w));
    cr_assert_neq(k->spec.release_time, 0);
    cr_assert(world_said(&w->node[0], "LateLanding"));
    world_free(w);
}

Test(session_write, release_with_a_lost_answer)
{
    static const enum w_fault faults[] = {W_LOST,      W_LANDED, W_LATE,    W_NO_ANSWER,
                                          W_TRY_LATER, W_DENIED, W_CONFLICT};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        w->node[0].write_fault[CONTRACT_CLAIM] = faults[i];
        world_end(w, f->flow);
        world_run(w, 15 * W_SEC);
        struct contract_claim *k = world_claim(w, world_claim_name(w));
        cr_assert_neq(k->spec.release_time, 0, "fault %d", faults[i]);
        if (faults[i] == W_LATE)
            world_land(w);
        f = world_session(w, 0);
        cr_assert_eq(f->status, 200, "fault %d: %s", faults[i], f->reason);
        world_run(w, W_SEC);
        cr_assert(world_passes(w, f), "a late release changes nothing (fault %d)", faults[i]);
        world_free(w);
    }
}

Test(session_write, a_late_release_never_follows_a_successor)
{
    struct world *w = world_usual(2);
    struct w_flow *a = world_session(w, 0);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
    world_end(w, a->flow);
    while (!w->late)
        world_run(w, 2 * W_MS);
    w->node[0].read_fault[CONTRACT_CLAIM] = W_DOWN; /* its read-back is slow, too */
    struct w_flow *b = world_session(w, 1);
    cr_assert_eq(b->status, 200, "%s", b->reason);
    world_land(w);
    world_run(w, 5 * W_SEC);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.release_time, 0);
    cr_assert(world_passes(w, b));
    cr_assert(world_said(&w->node[0], "OtherHolder"));
    world_free(w);
}

Test(session_write, order_of_record_and_write)
{
    /* not durable: refused, nothing is written */
    struct world *w = world_usual(1);
    w->node[0].audit_fails = true;
    uint64_t flow = world_connect(w, 0, W_URI);
    cr_assert_geq(world_until(w, 5 * W_SEC, world_answered, &flow), 0);
    struct w_flow *f = world_flow(w, flow);
    cr_assert_eq(f->status, 503);
    cr_assert(strncmp(f->reason, "AuditUnavailable", 16) == 0, "%s", f->reason);
    cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], 0);
    /* never answered: the same, after the core's own wait */
    w->node[0].audit_fails = false;
    w->node[0].audit_silent = true;
    flow = world_connect(w, 0, W_URI);
    cr_assert_geq(world_until(w, 9 * W_SEC, world_answered, &flow), 0);
    f = world_flow(w, flow);
    cr_assert_eq(f->status, 503);
    cr_assert(strncmp(f->reason, "AuditUnavailable", 16) == 0, "%s", f->reason);
    cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], 0);
    w->node[0].audit_silent = false;
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    /* renewals are refused as well: the lease ends on time, and comes back with the disk */
    w->node[0].audit_fails = true;
    base_time from = w->now;
    while (!f->stopped && w->now - from < 60 * W_SEC)
        world_run(w, 100 * W_MS);
    cr_assert(f->stopped && w->now - from <= 28 * W_SEC + 200 * W_MS);
    unsigned writes = w->node[0].writes[CONTRACT_INSTANCE];
    world_run(w, 10 * W_SEC);
    cr_assert_eq(w->node[0].writes[CONTRACT_INSTANCE], writes, "no instance write without its record");
    w->node[0].audit_fails = false;
    world_run(w, 5 * W_SEC);
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    world_free(w);
}

Test(session_write, authority_unavailable)
{
    static const enum contract_kind kinds[] = {CONTRACT_BINDING, CONTRACT_CLAIM};
    for (size_t i = 0; i < 2; i++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        world_end(w, f->flow);
        world_run(w, 3 * W_SEC);
        w->node[0].read_fault[kinds[i]] = W_DOWN;
        f = world_session(w, 0);
        cr_assert_eq(f->status, 503);
        cr_assert(strncmp(f->reason, kinds[i] == CONTRACT_BINDING ? "AuthorityUnavailable" : "APIUnavailable",
                          14) == 0,
                  "%s", f->reason);
        cr_assert_geq(f->retry_after, 1);
        f = world_session(w, 0);
        cr_assert_eq(f->status, 200, "%s", f->reason);
        world_free(w);
    }
}

Test(session_write, second_reading_of_the_binding)
{
    /* its answer is lost: asked again; the binding was made again meanwhile: no packet, released */
    struct world *w = world_usual(1);
    w->node[0].fault_skip = 1;
    w->node[0].read_fault[CONTRACT_BINDING] = W_DOWN;
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    world_free(w);

    w = world_usual(1);
    w->node[0].watch_silent[CONTRACT_BINDING] = true;
    w->node[0].fault_skip = 1;
    w->node[0].read_fault[CONTRACT_BINDING] = W_DOWN;
    uint64_t flow = world_connect(w, 0, W_URI);
    for (int i = 0; i < 100 && strcmp(world_state(w, 0), "Waiting") != 0; i++)
        world_run(w, W_MS);
    char name[CONTRACT_NAME_SIZE];
    base_copy(name, sizeof name, world_claim_name(w));
    world_delete(w, "acme.site1");
    struct contract_object *b = world_binding(w, "acme", "site1", "svc-a", W_URI);
    b->u.binding.status.has_prefix = false;
    world_run(w, 5 * W_SEC);
    f = world_flow(w, flow);
    cr_assert_eq(f->status, 503, "%s", f->reason);
    cr_assert_neq(world_claim(w, name)->spec.release_time, 0);
    world_free(w);
}

/* ---- arbitration */
static unsigned open_rows(struct world *w)
{
    unsigned n = 0;
    for (size_t i = 0; i < w->n_obj; i++)
        n += w->obj[i].kind == CONTRACT_CLAIM && !lease_row_over(&w->obj[i].u.claim);
    return n;
}

Test(session_write, two_agents_meet_one_new_connector)
{
    struct world *w = world_usual(2);
    uint64_t a = world_connect(w, 0, W_URI);
    uint64_t b = world_connect(w, 1, W_URI);
    world_run(w, 5 * W_SEC);
    cr_assert_eq(open_rows(w), 1, "one prefix");
    cr_assert_eq(world_passes(w, world_flow(w, a)) + world_passes(w, world_flow(w, b)), 1,
                 "one forwarder: %s / %s", world_flow(w, a)->reason, world_flow(w, b)->reason);
    world_free(w);
}

Test(session_write, prefix_of_another_connector_is_left_alone)
{
    struct world *w = world_usual(1);
    struct base_prefix p = world_candidate(w, 0), q = world_candidate(w, 1);
    struct base_uuid lease = world_foreign(w, "acme", "site9", "vpc-a", p)->u.claim.spec.lease_uuid;
    (void)world_foreign(w, "acme", "site8", "vpc-a", q);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    struct base_prefix want = world_candidate(w, 2);
    cr_assert(base_prefix_eq(&f->admit.u.admit.prefix, &want));
    char name[CONTRACT_NAME_SIZE];
    contract_claim_name(name, &p);
    cr_assert(base_uuid_eq(&world_claim(w, name)->spec.lease_uuid, &lease));
    world_free(w);
}

Test(session_write, pool_exhausted_and_the_last_free_one)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/92"); /* 15 usable */
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_node(w, 0);
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    for (uint64_t i = 0; i < 14; i++) {
        struct base_prefix p = world_candidate(w, i);
        char name[32];
        base_fmt(name, sizeof name, "other%u", (unsigned)i);
        (void)world_foreign(w, "acme", name, "vpc-a", p);
    }
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    struct base_prefix last = world_candidate(w, 14), index0;
    cr_assert(base_prefix_eq(&f->admit.u.admit.prefix, &last));
    cr_assert_eq(base_prefix_parse(&index0, BASE_STR("fd12:0:0:1::/96")), BASE_OK);
    cr_assert_not(base_prefix_eq(&index0, &last), "index 0 is never given out");
    cr_assert_eq(f->admit.u.admit.tunnel_ip.b[15], 1);
    world_free(w);

    w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/95"); /* one usable */
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_node(w, 0);
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    struct base_prefix only = world_candidate(w, 0);
    (void)world_foreign(w, "acme", "other", "vpc-a", only);
    f = world_session(w, 0);
    cr_assert_eq(f->status, 503);
    cr_assert(strncmp(f->reason, "PoolExhausted", 13) == 0, "%s", f->reason);
    cr_assert_gt(f->retry_after, 0);
    world_free(w);
}

/* A row of this connector held by a node that lives. */
static struct contract_object *own_row(struct world *w, const char *prefix)
{
    struct base_prefix p;
    cr_assert_eq(base_prefix_parse(&p, base_str_of(prefix)), BASE_OK);
    return world_foreign(w, "acme", "site1", "vpc-a", p);
}

Test(session_write, reservation_outside_the_pool_is_ended_and_cleared)
{
    for (int held = 0; held < 3; held++) { /* no row; a row that is over; a row that is held */
        struct world *w = world_usual(1);
        struct contract_object *b = world_get(w, "acme.site1");
        b->u.binding.status.has_prefix = true;
        cr_assert_eq(base_prefix_parse(&b->u.binding.status.prefix, BASE_STR("fd99::/96")), BASE_OK);
        base_copy(b->u.binding.status.last.node, 64, "edge7");
        base_copy(b->u.binding.status.last.generation, 64, "1");
        b->u.binding.status.last.since = 1;
        world_touch(w, b);
        char old[CONTRACT_NAME_SIZE] = "";
        if (held) {
            struct contract_object *k = own_row(w, "fd99::/96");
            base_copy(old, sizeof old, k->u.meta.name);
            if (held == 1) {
                k->u.claim.spec.release_time = 1;
                k->u.claim.status.closed_epoch = 1;
                k->u.claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
            }
        }
        uint64_t flow = world_connect(w, 0, W_URI);
        if (held == 2) { /* its holder is dead: closed after W, whoever asks meanwhile gets a 503 */
            world_run(w, 11 * W_SEC);
            cr_assert_eq(world_flow(w, flow)->status, 503);
            cr_assert(strncmp(world_flow(w, flow)->reason, "ClosingOldRow", 13) == 0, "%s",
                      world_flow(w, flow)->reason);
            struct contract_claim *k = world_claim(w, old);
            cr_assert_eq(k->spec.epoch, 2);
            cr_assert_neq(k->spec.release_time, 0);
            for (int i = 0; i < 3; i++) {
                flow = world_connect(w, 0, W_URI);
                world_run(w, 9 * W_SEC);
            }
            cr_assert_eq(world_claim(w, old)->spec.epoch, 2,
                         "one closing takeover, not one for each request");
            cr_assert_eq(world_claim(w, old)->status.closed_epoch, 2);
            world_run(w, 2 * W_SEC);
        } else {
            world_run(w, W_SEC);
        }
        struct w_flow *f = world_flow(w, flow);
        cr_assert_eq(f->status, 200, "%d: %s", held, f->reason);
        struct contract_object *s = world_get(w, "svc-a");
        cr_assert(authority_in_pool(&s->u.service.pool, &f->admit.u.admit.prefix));
        world_free(w);
    }
}

/* Two agents that want an old row closed took it from each other at once, and every epoch began the wait
 * anew: the epochs climbed for as long as somebody asked (simulator seed 94648). */
Test(session_write, a_row_that_another_agent_is_closing_is_left_to_it_for_the_wait)
{
    struct world *w = world_usual(1);
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.status.has_prefix = true;
    cr_assert_eq(base_prefix_parse(&b->u.binding.status.prefix, BASE_STR("fd99::/96")), BASE_OK);
    world_touch(w, b);
    struct contract_object *k = own_row(w, "fd99::/96");
    k->u.claim.spec.release_time = k->u.claim.spec.acquire_time;
    char old[CONTRACT_NAME_SIZE];
    base_copy(old, sizeof old, k->u.meta.name);
    for (int i = 0; i < 4; i++) {
        uint64_t flow = world_connect(w, 0, W_URI);
        world_run(w, 9 * W_SEC);
        cr_assert_eq(world_claim(w, old)->spec.epoch, 1, "after %d s", 9 * (i + 1));
        world_run(w, 100 * W_MS);
        (void)flow;
    }
    (void)world_connect(w, 0, W_URI);
    world_run(w, 2 * W_SEC);
    cr_assert_eq(world_claim(w, old)->spec.epoch, 2, "nobody closed it in W");
    world_free(w);
}

/* One's own is waited for, however long the foundation needs. */
Test(session_write, an_own_closing_takeover_is_not_done_again)
{
    struct world *w = world_usual(1);
    world_run(w, W_SEC);
    w->node[0].foundation_down = true;
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.status.has_prefix = true;
    cr_assert_eq(base_prefix_parse(&b->u.binding.status.prefix, BASE_STR("fd99::/96")), BASE_OK);
    world_touch(w, b);
    char old[CONTRACT_NAME_SIZE];
    base_copy(old, sizeof old, own_row(w, "fd99::/96")->u.meta.name);
    for (int i = 0; i < 8; i++) {
        (void)world_connect(w, 0, W_URI);
        world_run(w, 9 * W_SEC);
        cr_assert_eq(world_claim(w, old)->spec.epoch, 2, "after %d s", 9 * (i + 1));
    }
    world_free(w);
}

Test(session_write, one_row_without_a_reservation_is_the_reservation)
{
    struct world *w = world_usual(2);
    struct w_flow *f = world_session(w, 0);
    struct base_prefix p = f->admit.u.admit.prefix;
    world_end(w, f->flow);
    world_run(w, 3 * W_SEC);
    struct contract_object *k = own_row(w, "fd12:0:0:1:7::/96"); /* of a node that is gone, not over */
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.status.has_prefix = false;
    world_touch(w, b);
    char name[CONTRACT_NAME_SIZE];
    base_copy(name, sizeof name, k->u.meta.name);
    world_run(w, 100 * W_MS);
    uint64_t flow = world_connect(w, 1, W_URI);
    world_run(w, 200 * W_MS);
    (void)p;
    cr_assert_eq(world_claim(w, name)->spec.epoch, 2, "taken over");
    cr_assert_str_eq(world_claim_name(w), name);
    cr_assert_eq(world_flow(w, flow)->status, 0, "it waits for W");
    world_free(w);
}

Test(session_write, of_several_rows_all_but_the_first_are_closed_first)
{
    struct world *w = world_usual(1);
    char first[CONTRACT_NAME_SIZE], second[CONTRACT_NAME_SIZE];
    struct contract_object *x = own_row(w, "fd12:0:0:1:9::/96");
    base_copy(second, sizeof second, x->u.meta.name);
    x = own_row(w, "fd12:0:0:1:8::/96");
    base_copy(first, sizeof first, x->u.meta.name);
    for (int i = 0; i < 9; i++) {
        (void)world_connect(w, 0, W_URI);
        world_run(w, 9 * W_SEC);
    }
    cr_assert_neq(world_claim(w, second)->spec.release_time, 0);
    cr_assert(lease_row_over(world_claim(w, second)));
    cr_assert_eq(world_claim(w, first)->spec.release_time, 0);
    cr_assert_str_eq(world_claim_name(w), first);
    cr_assert_str_eq(world_state(w, 0), "Forwarding");
    world_free(w);
}

Test(session_write, reservation_with_a_lost_answer)
{
    static const struct {
        enum w_fault fault;
        int status;
        const char *reason;
    } rows[] = {{W_LOST, 200, ""},
                {W_LANDED, 200, ""},
                {W_CONFLICT, 200, ""},
                {W_DENIED, 503, "ReservationRefused"},
                {W_TRY_LATER, 503, "APIUnavailable"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = world_usual(1);
        w->node[0].write_fault[CONTRACT_BINDING] = rows[i].fault;
        struct w_flow *f = world_session(w, 0);
        cr_assert_eq(f->status, rows[i].status, "%zu: %s", i, f->reason);
        cr_assert(strncmp(f->reason, rows[i].reason, strlen(rows[i].reason)) == 0, "%s", f->reason);
        cr_assert_leq(open_rows(w), 1);
        world_free(w);
    }
}

Test(session_write, takeover_denied_while_the_holder_lives)
{
    struct world *w = world_usual(2);
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.spec.takeover = CONTRACT_TAKEOVER_DENIED;
    world_touch(w, b);
    world_run(w, 100 * W_MS);
    struct w_flow *a = world_session(w, 0);
    cr_assert_eq(a->status, 200);
    for (int i = 0; i < 12; i++) { /* it renews: denied, for as long as that */
        struct w_flow *f = world_session(w, 1);
        cr_assert_eq(f->status, 503);
        cr_assert(strncmp(f->reason, "TakeoverDenied", 14) == 0, "%s", f->reason);
        world_run(w, 5 * W_SEC);
    }
    cr_assert(world_passes(w, a));
    world_agent_kill(w, 0); /* its row says nothing new from now on */
    base_time from = w->now;
    struct w_flow *f = world_session(w, 1);
    while (f->status != 200 && w->now - from < 90 * W_SEC) {
        world_run(w, W_SEC);
        f = world_session(w, 1);
    }
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_geq(w->now - from, 22 * W_SEC);
    world_end(w, f->flow);
    world_run(w, 3 * W_SEC);
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "a released row may be taken over: %s", f->reason);
    world_free(w);
}

/* ---- the instance row */
Test(session_write, instance_write_with_a_lost_answer)
{
    static const enum w_fault faults[] = {W_LOST,      W_LANDED, W_LATE,    W_NO_ANSWER,
                                          W_TRY_LATER, W_DENIED, W_CONFLICT};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        for (int takeover = 0; takeover < 2; takeover++) {
            struct world *w = world_new();
            world_service(w, "svc-a", "fd12:0:0:1::/64");
            world_binding(w, "acme", "site1", "svc-a", W_URI);
            world_node(w, 0);
            if (takeover) {
                world_agent_start(w, 0);
                world_run(w, W_SEC);
                world_agent_kill(w, 0);
            }
            w->node[0].write_fault[CONTRACT_INSTANCE] = faults[i];
            world_agent_start(w, 0);
            world_run(w, 12 * W_SEC);
            cr_assert(w->node[0].ready, "fault %d takeover %d: %s", faults[i], takeover,
                      w->node[0].ready_reason);
            struct contract_object *o = world_get(w, "masque.edge1");
            cr_assert_eq(o->u.instance.spec.epoch, takeover ? 2 : 1, "fault %d: epoch %lld", faults[i],
                         (long long)o->u.instance.spec.epoch);
            if (faults[i] == W_LATE)
                world_land(w);
            struct w_flow *f = world_session(w, 0);
            cr_assert_eq(f->status, 200, "%s", f->reason);
            world_run(w, 40 * W_SEC);
            cr_assert(world_passes(w, f), "fault %d", faults[i]);
            cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, takeover ? 2 : 1);
            world_free(w);
        }
    }
}

Test(session_write, renewal_with_a_lost_answer)
{
    static const enum w_fault faults[] = {W_LOST,      W_LANDED, W_LATE,    W_NO_ANSWER,
                                          W_TRY_LATER, W_DENIED, W_CONFLICT};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        world_run(w, 5 * W_SEC);
        w->node[0].write_fault[CONTRACT_INSTANCE] = faults[i];
        world_run(w, 20 * W_SEC);
        if (faults[i] == W_LATE)
            world_land(w);
        world_run(w, 60 * W_SEC);
        cr_assert(world_passes(w, f), "fault %d", faults[i]);
        cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 1, "fault %d", faults[i]);
        world_free(w);
    }
}

Test(session_write, a_renewal_counts_from_its_send)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_run(w, 30 * W_SEC);
    struct session_summary s;
    session_core_summary(w->node[0].core, &s);
    struct contract_object *o = world_get(w, "masque.edge1");
    cr_assert_eq(s.instance_deadline, o->u.instance.spec.renew.boot_time_us * BASE_US + 28 * W_SEC);
    cr_assert_leq(f->deadline, s.instance_deadline);
    world_free(w);
}

Test(session_write, instance_taken_over_by_another_process_waits)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200);
    struct base_uuid other = world_uuid(w);
    struct contract_object *o = world_get(w, "masque.edge1");
    o->u.instance.spec.epoch++;
    o->u.instance.spec.process_id = other;
    world_touch(w, o);
    world_run(w, 10 * W_MS);
    cr_assert(f->closed && !world_passes(w, f));
    cr_assert_eq(w->node[0].tun_closes, 1);
    cr_assert_str_eq(w->node[0].ready_reason, "InstanceTaken");
    for (int i = 0; i < 4; i++) { /* as long as it renews, it is its */
        world_run(w, 20 * W_SEC);
        o = world_get(w, "masque.edge1");
        o->u.instance.spec.renew.boot_time_us += 20000000;
        world_touch(w, o);
        cr_assert(base_uuid_eq(&o->u.instance.spec.process_id, &other));
    }
    world_run(w, 29 * W_SEC);
    cr_assert(base_uuid_eq(&world_get(w, "masque.edge1")->u.instance.spec.process_id, &other));
    cr_assert_not(w->node[0].ready);
    world_run(w, 3 * W_SEC);
    cr_assert(w->node[0].ready, "%s", w->node[0].ready_reason);
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 3);
    world_free(w);

    /* released: at once */
    w = world_usual(1);
    o = world_get(w, "masque.edge1");
    o->u.instance.spec.epoch++;
    o->u.instance.spec.process_id = other;
    world_touch(w, o);
    world_run(w, 5 * W_SEC);
    cr_assert_not(w->node[0].ready);
    o = world_get(w, "masque.edge1");
    o->u.instance.spec.release_time = 1;
    world_touch(w, o);
    world_run(w, W_SEC);
    cr_assert(w->node[0].ready, "%s", w->node[0].ready_reason);
    world_free(w);
}

Test(session_write, a_fresh_process_takes_over_at_once)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_agent_kill(w, 0);
    base_time from = w->now;
    world_agent_start(w, 0);
    (void)f;
    do {
        uint64_t flow = world_connect(w, 0, W_URI);
        (void)world_until(w, 15 * W_SEC, world_answered, &flow);
        f = world_flow(w, flow);
        if (f->status != 200)
            world_run(w, 20 * W_MS);
    } while (f->status != 200 && w->now - from < 5 * W_SEC);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_leq(w->now - from, W_SEC, "%lld ms", (long long)((w->now - from) / W_MS));
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 2);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, 2);
    struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
    cr_assert_eq(a->u.attachment.spec.instance_epoch, 2);
    world_free(w);
}

Test(session_write, attachment_of_another_instance_object_is_made_again)
{
    struct world *w = world_usual(1);
    struct base_uuid before = world_get(w, "masque.edge1.vpc-a")->u.meta.uid;
    world_delete(w, "masque.edge1");
    world_run(w, 2 * W_SEC);
    struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
    cr_assert_not_null(a);
    cr_assert_not(base_uuid_eq(&before, &a->u.meta.uid));
    cr_assert(base_uuid_eq(&a->u.attachment.spec.instance.uid, &world_get(w, "masque.edge1")->u.meta.uid));
    cr_assert(w->node[0].ready, "%s", w->node[0].ready_reason);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    world_free(w);
}

Test(session_write, attachment_write_with_a_lost_answer)
{
    static const enum w_fault faults[] = {W_LOST,      W_LANDED, W_LATE,    W_NO_ANSWER,
                                          W_TRY_LATER, W_DENIED, W_CONFLICT};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        for (int again = 0; again < 2; again++) {
            struct world *w = again ? world_usual(1) : world_new();
            if (again) {
                world_agent_kill(w, 0);
            } else {
                world_service(w, "svc-a", "fd12:0:0:1::/64");
                world_binding(w, "acme", "site1", "svc-a", W_URI);
                world_node(w, 0);
            }
            w->node[0].write_fault[CONTRACT_ATTACHMENT] = faults[i];
            world_agent_start(w, 0);
            world_run(w, 25 * W_SEC);
            cr_assert(w->node[0].ready, "fault %d: %s", faults[i], w->node[0].ready_reason);
            if (faults[i] == W_LATE)
                world_land(w);
            struct w_flow *f = world_session(w, 0);
            cr_assert_eq(f->status, 200, "%s", f->reason);
            world_free(w);
        }
    }
}
