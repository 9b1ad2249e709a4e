/* SPDX-License-Identifier: Apache-2.0
 *
 * Arbitration where it is crowded or odd: every desk taken, pools that are nearly full, rows of others that a
 * list shows, rows that change while they are looked at, and an end to all trying.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static void reserve(struct world *w, const char *binding, const struct base_prefix *p)
{
    struct contract_object *b = world_get(w, binding);
    b->u.binding.status.has_prefix = true;
    b->u.binding.status.prefix = *p;
    world_touch(w, b);
}

static struct world *small_pool(const char *pool)
{
    struct world *w = world_new();
    world_service(w, "svc-a", pool);
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_node(w, 0);
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    return w;
}

/* Once the candidates were all taken and the VPC's claims were to decide, they decided with whatever list
 * came next, also with the next request's list of the connector's own rows, which is empty: the first
 * candidate looked free, was not, and so on without end. */
Test(session_arbitrate, a_list_of_the_vpc_that_failed_is_not_taken_from_the_next_list)
{
    for (int lost = 0; lost < 2; lost++) { /* no list; or a prefix that somebody else is faster with */
        struct world *w = small_pool("fd12:0:0:1::/89"); /* 127 usable */
        for (uint64_t i = 0; i < 66; i++) {
            char name[16];
            struct base_prefix p = world_candidate(w, i);
            base_fmt(name, sizeof name, "other%u", (unsigned)i);
            (void)world_foreign(w, "acme", name, "vpc-a", p);
        }
        struct session_conn *n = world_conn(w, "acme.site1");
        uint64_t flow = world_connect(w, 0, W_URI);
        for (int i = 0; i < 8000 && (n->state != CONN_LISTING || n->candidate != UINT32_MAX); i++)
            world_run(w, W_MS);
        cr_assert_eq(n->state, CONN_LISTING);
        if (lost) {
            world_until_conn(w, "Reserving", 30 * W_SEC);
            struct base_prefix p = world_candidate(w, 66);
            (void)world_foreign(w, "acme", "faster", "vpc-a", p);
        } else {
            struct session_in in = {.ev = SESSION_EV_ANSWER};
            in.u.answer.ask = n->ask;
            in.u.answer.code = BASE_EIO;
            world_event(w, 0, &in);
            cr_assert(world_refused(world_flow(w, flow), 503, "APIUnavailable"));
            flow = world_connect(w, 0, W_URI);
        }
        world_run(w, 3 * W_SEC);
        struct w_flow *f = world_flow(w, flow);
        cr_assert_eq(f->status, 200, "%d: %s %s", lost, world_state(w, 0), f->reason);
        struct base_prefix want = world_candidate(w, lost ? 67 : 66);
        cr_assert(base_prefix_eq(&f->admit.u.admit.prefix, &want), "%d", lost);
        world_free(w);
    }
}

/* ---- tables that are full */
Test(session_arbitrate, every_desk_taken)
{
    enum { LAST = SESSION_DESKS, OUTSIDE, N };
    struct world *w = world_new();
    uint64_t flow[N];
    char uri[N][32];
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    for (unsigned i = 0; i < N; i++) {
        char name[16], text[64], object[32];
        base_fmt(name, sizeof name, "s%u", i);
        base_fmt(object, sizeof object, "acme.s%u", i);
        base_fmt(uri[i], sizeof uri[i], "spiffe://acme/s%u", i);
        base_fmt(text, sizeof text, i == OUTSIDE ? "fd99::/96" : "fd12:0:0:1:%x::/96", i + 1);
        struct base_prefix p = world_prefix(text);
        world_binding(w, "acme", name, "svc-a", uri[i]);
        if (i != OUTSIDE)
            reserve(w, object, &p);
        struct contract_object *k = world_foreign(w, "acme", name, "vpc-a", p);
        if (i != OUTSIDE)
            world_over(k);
    }
    world_node(w, 0)->cfg.max_connectors = N;
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    struct session_core *c = w->node[0].core;
    w->node[0].audit_silent = true;
    for (unsigned i = 0; i < SESSION_DESKS; i++)
        flow[i] = world_connect(w, 0, uri[i]);
    world_run(w, 100 * W_MS);
    cr_assert_eq(c->n_desk_free, 0);
    flow[LAST] = world_connect(w, 0, uri[LAST]);
    flow[OUTSIDE] = world_connect(w, 0, uri[OUTSIDE]);
    world_run(w, 100 * W_MS);
    cr_assert_eq(session_conn_find(c, "acme.s64")->state, CONN_RETRYING,
                 "it is read again when there is room");
    cr_assert(world_refused(world_flow(w, flow[OUTSIDE]), 503, "Overloaded"), "%s",
              world_flow(w, flow[OUTSIDE])->reason);
    w->node[0].audit_silent = false;
    world_run(w, 7 * W_SEC); /* the records are given up, and their desks */
    cr_assert(world_refused(world_flow(w, flow[0]), 503, "AuditUnavailable"));
    cr_assert_eq(world_flow(w, flow[LAST])->status, 200, "%s", world_flow(w, flow[LAST])->reason);
    world_free(w);
}

Test(session_arbitrate, rows_that_change_all_the_time_are_given_up)
{
    for (int claim = 0; claim < 2; claim++) {
        struct world *w = world_usual(1);
        uint64_t flow = world_connect(w, 0, W_URI);
        struct w_flow *f = world_flow(w, flow);
        for (int i = 0; i < 9000 && f->status == 0; i++) {
            if (claim)
                w->node[0].write_fault[CONTRACT_CLAIM] = W_CONFLICT;
            else
                world_touch(w, world_get(w, "acme.site1"));
            world_run(w, W_MS);
        }
        cr_assert(world_refused(f, 503, "ArbitrationBusy"), "%d: %s", claim, f->reason);
        cr_assert_lt(f->answered - f->asked, SESSION_REQUEST_WAIT, "before its time is up");
        cr_assert_str_eq(world_state(w, 0), "Idle");
        w->node[0].write_fault[CONTRACT_CLAIM] = W_NO_FAULT;
        cr_assert_eq(world_session(w, 0)->status, 200);
        world_free(w);
    }
}

Test(session_arbitrate, a_pool_that_has_no_room_for_a_prefix)
{
    struct world *w = small_pool("fd12:0:0:1::/96"); /* as CRDs once allowed */
    struct w_flow *f = world_session(w, 0);
    cr_assert(world_refused(f, 503, "PoolExhausted"), "%s", f->reason);
    cr_assert_eq(w->node[0].writes[CONTRACT_BINDING] + w->node[0].writes[CONTRACT_CLAIM], 0);
    world_free(w);
}

/* ---- rows of others */
Test(session_arbitrate, a_list_that_shows_rows_of_others)
{
    enum { TENANT, CONNECTOR, PROVIDER, OVER, N };
    struct world *w = world_usual(1);
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Listing", 30 * W_SEC);
    struct contract_object rows[N];
    for (int i = 0; i < N; i++) {
        char text[64];
        base_fmt(text, sizeof text, "fd12:0:0:1:%x::/96", i + 1);
        struct base_prefix p = world_prefix(text);
        struct contract_object *o =
            world_foreign(w, i == TENANT ? "umbra" : "acme", i == CONNECTOR ? "site2" : "site1", "vpc-a", p);
        if (i == PROVIDER)
            base_copy(o->u.claim.spec.provider, sizeof o->u.claim.spec.provider, "other");
        if (i == OVER)
            world_over(o);
        rows[i] = *o;
    }
    struct session_in in = {.ev = SESSION_EV_ANSWER};
    in.u.answer.ask = world_conn(w, "acme.site1")->ask;
    in.u.answer.sent = w->now;
    in.u.answer.n_objects = N;
    in.u.answer.objects = rows;
    world_event(w, 0, &in);
    world_run(w, W_SEC);
    struct base_prefix want = world_candidate(w, 0);
    cr_assert_eq(world_flow(w, flow)->status, 200, "%s", world_flow(w, flow)->reason);
    cr_assert(base_prefix_eq(&world_flow(w, flow)->admit.u.admit.prefix, &want));
    for (int i = 0; i < N; i++)
        cr_assert_str_eq(world_get(w, rows[i].u.meta.name)->u.meta.rv, rows[i].u.meta.rv, "%d", i);
    world_free(w);
}

Test(session_arbitrate, a_reservation_where_somebody_else_s_row_is)
{
    for (int outside = 0; outside < 2; outside++) {
        for (int i = 0; i < 3; i++) {
            struct world *w = world_usual(1);
            struct base_prefix p = world_prefix(outside ? "fd99::/96" : "fd12:0:0:1:5::/96");
            struct contract_object *o =
                world_foreign(w, i == 0 ? "umbra" : "acme", i == 1 ? "site2" : "site1", "vpc-a", p);
            if (i == 2)
                base_copy(o->u.claim.spec.provider, sizeof o->u.claim.spec.provider, "other");
            struct contract_object was = *o;
            reserve(w, "acme.site1", &p);
            world_run(w, 20 * W_MS);
            struct w_flow *f = world_session(w, 0);
            cr_assert_eq(f->status, 200, "%d: %s", i, f->reason);
            cr_assert_not(base_prefix_eq(&f->admit.u.admit.prefix, &p));
            cr_assert_str_eq(world_get(w, was.u.meta.name)->u.meta.rv, was.u.meta.rv, "%d: it is left alone",
                             i);
            world_free(w);
        }
    }
}

/* ---- what changes meanwhile */
Test(session_arbitrate, a_reservation_that_is_refused_or_has_no_binding_any_more)
{
    struct world *w = world_usual(1);
    w->node[0].write_fault[CONTRACT_BINDING] = W_INVALID;
    struct w_flow *f = world_session(w, 0);
    cr_assert(world_refused(f, 503, "ReservationRefused"), "%s", f->reason);
    w->node[0].watch_silent[CONTRACT_BINDING] = true;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Listing", 30 * W_SEC);
    world_delete(w, "acme.site1");
    world_run(w, W_SEC);
    cr_assert(world_refused(world_flow(w, flow), 403, "NoBinding"), "%s", world_flow(w, flow)->reason);
    cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], 0);
    world_free(w);
}

Test(session_arbitrate, a_reservation_that_moves_while_its_row_is_read)
{
    struct world *w = world_usual(1);
    struct base_prefix p = world_prefix("fd12:0:0:1:5::/96"), q = world_prefix("fd12:0:0:1:6::/96");
    (void)world_foreign(w, "acme", "site2", "vpc-a", p); /* of no use: the reservation would be cleared */
    reserve(w, "acme.site1", &p);
    world_run(w, 20 * W_MS);
    w->node[0].read_fault[CONTRACT_CLAIM] = W_SLOW;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_run(w, 50 * W_MS);
    reserve(w, "acme.site1", &q);
    world_run(w, 2 * W_SEC);
    struct w_flow *f = world_flow(w, flow);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert(base_prefix_eq(&f->admit.u.admit.prefix, &q), "the new reservation is not cleared");
    world_free(w);
}

Test(session_arbitrate, a_service_that_goes_while_the_row_is_read)
{
    struct world *w = world_usual(1);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_CONFLICT;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Claiming", 30 * W_SEC);
    w->node[0].read_fault[CONTRACT_CLAIM] = W_SLOW;
    world_until_conn(w, "Checking", 30 * W_SEC);
    unsigned writes = w->node[0].writes[CONTRACT_CLAIM];
    world_delete(w, "svc-a");
    world_run(w, W_SEC);
    cr_assert(world_refused(world_flow(w, flow), 503, "NoService"), "%s", world_flow(w, flow)->reason);
    cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], writes);
    world_free(w);
}

/* The wait for another agent's closing takeover counts from when this one was seen: by its object and its
 * lease, of which a third agent may make new ones. */
Test(session_arbitrate, another_closing_takeover_begins_the_wait_anew)
{
    for (int again = 0; again < 2; again++) {
        struct world *w = world_usual(1);
        struct base_prefix p = world_prefix("fd99::/96");
        struct contract_object *k = world_foreign(w, "acme", "site1", "vpc-a", p);
        char old[CONTRACT_NAME_SIZE];
        base_copy(old, sizeof old, k->u.meta.name);
        k->u.claim.spec.release_time = k->u.claim.spec.acquire_time;
        reserve(w, "acme.site1", &p);
        for (int i = 0; i < 5; i++) { /* W is 33 s, and a few seconds for a foundation's writes */
            (void)world_connect(w, 0, W_URI);
            world_run(w, 6 * W_SEC);
        }
        struct contract_object next = *world_get(w, old);
        cr_assert_eq(next.u.claim.spec.epoch, 1);
        if (again) { /* deleted and made again, by somebody who restores a backup */
            next.u.meta.uid = (struct base_uuid){{0}};
            world_delete(w, old);
            (void)world_put(w, &next);
        } else {
            world_get(w, old)->u.claim.spec.lease_uuid = world_uuid(w);
            world_touch(w, world_get(w, old));
        }
        for (int i = 0; i < 5; i++) {
            (void)world_connect(w, 0, W_URI);
            world_run(w, 6 * W_SEC);
            cr_assert_eq(world_claim(w, old)->spec.epoch, 1, "%d: after %d s", again, 6 * (i + 1));
        }
        for (int i = 0; i < 3; i++) {
            (void)world_connect(w, 0, W_URI);
            world_run(w, 6 * W_SEC);
        }
        cr_assert_eq(world_claim(w, old)->spec.epoch, 2, "in the end it is closed all the same");
        world_free(w);
    }
}

/* Our nonce in the row means that our write landed, unless what it gave has ended since. */
Test(session_arbitrate, a_nonce_of_ours_that_is_worth_nothing_any_more)
{
    enum { IDENTITY_ENDED, MADE_AGAIN, RELEASED_BY_HAND, N };
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(1);
        struct w_node *n = &w->node[0];
        int64_t landed = 1;
        if (i == MADE_AGAIN) {
            world_end(w, world_session(w, 0)->flow);
            world_run(w, 3 * W_SEC);
            landed = 2;
        }
        n->watch_silent[CONTRACT_CLAIM] = true;
        n->write_fault[CONTRACT_CLAIM] = W_LANDED;
        uint64_t flow = world_connect(w, 0, W_URI);
        world_until_conn(w, "Retrying", 30 * W_SEC);
        char name[CONTRACT_NAME_SIZE];
        contract_claim_name(name, &world_conn(w, "acme.site1")->want);
        struct contract_object *o = world_get(w, name), copy;
        struct base_uuid lease = o->u.claim.spec.lease_uuid;
        cr_assert_eq(o->u.claim.spec.epoch, landed);
        struct session_in lost = {.ev = SESSION_EV_TUN_LOST};
        switch (i) {
        case IDENTITY_ENDED:
            lost.u.tun.tun_id = n->core->att[0].tun_id;
            world_event(w, 0, &lost);
            break;
        case MADE_AGAIN:
            copy = *o;
            copy.u.meta.uid = (struct base_uuid){{0}};
            world_delete(w, name);
            (void)world_put(w, &copy);
            break;
        case RELEASED_BY_HAND:
            o->u.claim.spec.release_time = 1;
            world_touch(w, o);
            break;
        }
        n->watch_silent[CONTRACT_CLAIM] = false;
        world_run(w, 4 * W_SEC);
        cr_assert_eq(world_flow(w, flow)->status, 200, "%d: %s", i, world_flow(w, flow)->reason);
        cr_assert_eq(world_claim(w, name)->spec.epoch, landed + 1, "%d", i);
        cr_assert_not(base_uuid_eq(&world_claim(w, name)->spec.lease_uuid, &lease), "%d", i);
        world_free(w);
    }
}

/* A row turns up where an acquire is to be, and while it is read the reservation goes or moves: it is not
 * this one's to clear any more. */
Test(session_arbitrate, a_reservation_that_is_not_the_one_to_clear)
{
    for (int moved = 0; moved < 2; moved++) {
        struct world *w = world_usual(1);
        struct base_prefix p = world_prefix("fd12:0:0:1:5::/96"), q = world_prefix("fd12:0:0:1:6::/96");
        reserve(w, "acme.site1", &p);
        world_run(w, 20 * W_MS);
        w->node[0].audit_delay = 50 * W_MS;
        uint64_t flow = world_connect(w, 0, W_URI);
        world_until_conn(w, "Auditing", 30 * W_SEC);
        (void)world_foreign(w, "acme", "site2", "vpc-a", p);
        w->node[0].read_fault[CONTRACT_CLAIM] = W_SLOW;
        world_until_conn(w, "Checking", 30 * W_SEC);
        if (moved) {
            reserve(w, "acme.site1", &q);
        } else {
            world_get(w, "acme.site1")->u.binding.status.has_prefix = false;
            world_touch(w, world_get(w, "acme.site1"));
        }
        unsigned writes = w->node[0].writes[CONTRACT_BINDING];
        world_run(w, 600 * W_MS);
        cr_assert_eq(w->node[0].writes[CONTRACT_BINDING], writes + !moved, "nothing is cleared");
        world_run(w, W_SEC);
        struct w_flow *f = world_flow(w, flow);
        cr_assert_eq(f->status, 200, "%s", f->reason);
        struct base_prefix want = world_candidate(w, 1); /* one prefix was taken */
        cr_assert(base_prefix_eq(&f->admit.u.admit.prefix, moved ? &q : &want));
        world_free(w);
    }
}

/* takeover: Denied is about holders that live: not one whose instance is gone, or whose process has another
 * successor on its node; and without an answer nothing is taken. */
Test(session_arbitrate, denied_takeover_of_a_holder_that_is_gone)
{
    enum { GONE, RESTARTED, NO_ANSWER, N };
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(2);
        struct contract_object *b = world_get(w, "acme.site1");
        b->u.binding.spec.takeover = CONTRACT_TAKEOVER_DENIED;
        world_touch(w, b);
        world_run(w, 100 * W_MS);
        cr_assert_eq(world_session(w, 0)->status, 200);
        world_agent_kill(w, 0);
        if (i == GONE)
            world_delete(w, "masque.edge1");
        if (i == RESTARTED) {
            w->node[0].foundation_down = true; /* it does not close the claim */
            world_agent_start(w, 0);
            world_run(w, W_SEC);
        }
        if (i == NO_ANSWER)
            w->node[1].read_fault[CONTRACT_INSTANCE] = W_DOWN;
        unsigned writes = w->node[1].writes[CONTRACT_CLAIM];
        uint64_t flow = world_connect(w, 1, W_URI);
        world_run(w, W_SEC);
        struct w_flow *f = world_flow(w, flow);
        if (i == NO_ANSWER)
            cr_assert(world_refused(f, 503, "APIUnavailable"), "%s", f->reason);
        else
            cr_assert_neq(strncmp(f->reason, "TakeoverDenied", 14), 0);
        cr_assert_eq(w->node[1].writes[CONTRACT_CLAIM] - writes, i == NO_ANSWER ? 0 : 1, "%d: %s", i,
                     f->reason);
        world_free(w);
    }
}

/* ---- closing takeovers */
static struct world *old_row(char old[CONTRACT_NAME_SIZE])
{
    struct world *w = world_usual(1);
    struct base_prefix p = world_prefix("fd99::/96");
    base_copy(old, CONTRACT_NAME_SIZE, world_foreign(w, "acme", "site1", "vpc-a", p)->u.meta.name);
    reserve(w, "acme.site1", &p);
    world_run(w, 20 * W_MS);
    return w;
}

Test(session_arbitrate, a_closing_takeover_with_a_lost_answer)
{
    for (int lands = 0; lands < 2; lands++) {
        char old[CONTRACT_NAME_SIZE];
        struct world *w = old_row(old);
        w->node[0].watch_silent[CONTRACT_CLAIM] = true;
        w->node[0].write_fault[CONTRACT_CLAIM] = lands ? W_LANDED : W_LOST;
        uint64_t flow = world_connect(w, 0, W_URI);
        world_until_conn(w, "Retrying", 30 * W_SEC);
        if (lands) {
            world_until_conn(w, "Closing", 30 * W_SEC);
            cr_assert_eq(world_claim(w, old)->spec.epoch, 2, "it is found, not done again");
        } else {
            world_end(w, flow); /* nobody waits: what is not known to have landed gives nothing to release */
            cr_assert_str_eq(world_state(w, 0), "Idle");
            world_run(w, 2 * W_SEC);
            cr_assert_eq(w->node[0].core->jobs_active, 0);
            cr_assert_eq(world_claim(w, old)->spec.epoch, 1);
            cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], 1);
        }
        world_free(w);
    }
}

Test(session_arbitrate, a_drain_while_an_old_row_is_closed)
{
    char old[CONTRACT_NAME_SIZE];
    struct world *w = old_row(old);
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Closing", 30 * W_SEC);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    cr_assert(world_refused(world_flow(w, flow), 503, "Draining"), "%s", world_flow(w, flow)->reason);
    world_run(w, W_SEC);
    cr_assert(w->node[0].drained);
    cr_assert_neq(world_claim(w, old)->spec.release_time, 0);
    world_free(w);
}

/* ---- outcomes */
/* The first write lands while the second one is on its way: it counts, from its own send. */
Test(session_arbitrate, an_earlier_write_that_lands_beside_a_later_one)
{
    struct world *w = world_usual(1);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Claiming", 30 * W_SEC);
    base_time sent = w->now;
    struct base_uuid first = w->late_object.u.claim.spec.lease_uuid;
    world_until_conn(w, "Retrying", 30 * W_SEC);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LOST;
    world_until_conn(w, "Claiming", 30 * W_SEC);
    world_land(w);
    world_run(w, 3 * W_MS);
    cr_assert_str_eq(world_state(w, 0), "Claiming", "its answer is seen through");
    world_run(w, 2 * W_SEC);
    struct session_claim *k = &world_conn(w, "acme.site1")->claim;
    cr_assert_eq(world_flow(w, flow)->status, 200, "%s", world_flow(w, flow)->reason);
    cr_assert(base_uuid_eq(&k->lease_uuid, &first));
    cr_assert_eq(k->epoch, 1);
    cr_assert_leq(k->t0, sent);
    world_free(w);
}

/* An acquire that met a row is recorded: with its epoch when it is read, as a conflict when it is not, or
 * when nobody waits any more. */
Test(session_arbitrate, an_acquire_that_met_a_row_that_is_not_read)
{
    for (int left = 0; left < 2; left++) {
        struct world *w = world_usual(1);
        struct base_prefix p = world_candidate(w, 0);
        uint64_t flow = world_connect(w, 0, W_URI);
        world_until_conn(w, "Reserving", 30 * W_SEC);
        (void)world_foreign(w, "acme", "site2", "vpc-a", p);
        world_until_conn(w, "Claiming", 30 * W_SEC);
        w->node[0].read_fault[CONTRACT_CLAIM] = W_DOWN;
        if (left)
            world_end(w, flow);
        world_run(w, W_SEC);
        cr_assert_str_eq(world_state(w, 0), "Idle");
        if (!left)
            cr_assert(world_refused(world_flow(w, flow), 503, "APIUnavailable"));
        bool recorded = false;
        for (unsigned i = 0; i < w->node[0].by_reason_n; i++)
            recorded = recorded || strcmp(w->node[0].by_reason[i], "Conflict") == 0;
        cr_assert(recorded, "%d", left);
        world_free(w);
    }
}

/* What was sent in the name of an identity that has ended is not waited for; nobody is there to begin anew. */
Test(session_arbitrate, an_identity_that_ends_under_a_write_nobody_waits_for)
{
    struct world *w = world_usual(1);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_NO_ANSWER;
    w->node[0].watch_silent[CONTRACT_CLAIM] = true;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Claiming", 30 * W_SEC);
    world_end(w, flow);
    cr_assert_str_eq(world_state(w, 0), "Claiming");
    struct session_in lost = {.ev = SESSION_EV_TUN_LOST};
    lost.u.tun.tun_id = w->node[0].core->att[0].tun_id;
    world_event(w, 0, &lost);
    cr_assert_str_eq(world_state(w, 0), "Idle");
    cr_assert_eq(w->node[0].core->jobs_active, 0, "the foundation closes it with its instance epoch");
    world_run(w, 3 * W_SEC);
    w->node[0].watch_silent[CONTRACT_CLAIM] = false;
    cr_assert_eq(world_session(w, 0)->status, 200);
    world_free(w);
}

/* The service that was read is not the binding's any more when the answer comes. */
Test(session_arbitrate, a_service_that_is_read_for_a_binding_that_names_another_by_then)
{
    struct world *w = world_new();
    world_service(w, "svc-b", "fd12:0:0:2::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_node(w, 0);
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    w->node[0].watch_silent[CONTRACT_SERVICE] = true;
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    w->node[0].read_fault[CONTRACT_SERVICE] = W_SLOW;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Reading", 30 * W_SEC);
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.meta.uid = world_uuid(w);
    base_copy(b->u.binding.spec.service, sizeof b->u.binding.spec.service, "svc-z");
    world_touch(w, b);
    world_run(w, W_SEC);
    cr_assert(world_refused(world_flow(w, flow), 503, "NoService"), "%s", world_flow(w, flow)->reason);
    world_free(w);
}
