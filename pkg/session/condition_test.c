/* SPDX-License-Identifier: Apache-2.0
 *
 * The conditions from the inside, beyond inside_test.c: those of a request that waits, what a deadline is
 * when a part of it is missing; and claims that wait while what they rest on ends.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static bool is(struct session_reason why, const char *name)
{
    return why.name && strcmp(why.name, name) == 0;
}

static struct contract_object *claim_of(struct world *w)
{
    char name[CONTRACT_NAME_SIZE];
    contract_claim_name(name, &world_conn(w, "acme.site1")->claim.prefix);
    return world_get(w, name);
}

/* A claim that waits for its foundation, with a request. */
static struct world *waiting(uint64_t *ret_flow)
{
    struct world *w = world_usual(1);
    w->node[0].foundation_down = true;
    *ret_flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Waiting", 30 * W_SEC);
    world_run(w, 100 * W_MS);
    return w;
}

Test(session_condition, of_a_request_that_waits)
{
    uint64_t flow;
    struct world *w = waiting(&flow);
    struct session_core *c = w->node[0].core;
    struct session_conn *n = world_conn(w, "acme.site1");
    struct session_conn was = *n;
    cr_assert(is(session_conditions(c, n, true), "ClaimNotAccepted"));
    n->b.has_prefix = false;
    cr_assert(is(session_conditions(c, n, true), "PrefixChanged"));
    *n = was;
    n->b.prefix.addr.b[11] ^= 1;
    cr_assert(is(session_conditions(c, n, true), "PrefixChanged"));
    *n = was;
    n->claim.uid = (struct base_uuid){{0}};
    cr_assert(is(session_conditions(c, n, true), "ClaimLost"), "no claim at all");
    *n = was;
    struct session_service *s = session_service_of(c, n);
    base_copy(s->s.vpc, sizeof s->s.vpc, "vpc-z"); /* one that has no attachment here */
    base_copy(n->b.vpc, sizeof n->b.vpc, "vpc-z");
    cr_assert(is(session_conditions(c, n, true), "AttachmentNotReady"));
    cr_assert_null(session_claim_worth(c, n).name, "it is worth waiting for");
    base_copy(s->s.vpc, sizeof s->s.vpc, "vpc-a");
    *n = was;
    world_free(w);
}

Test(session_condition, without_a_service_there_is_no_time)
{
    struct world *w = world_usual(1);
    (void)world_session(w, 0);
    struct session_core *c = w->node[0].core;
    struct session_conn *n = world_conn(w, "acme.site1");
    enum lease_part part = LEASE_PART_N;
    cr_assert_gt(session_deadline(c, n, &part), w->now);
    c->svc[n->svc].used = false;
    cr_assert_eq(session_deadline(c, n, &part), 0);
    cr_assert_eq(part, LEASE_PART_SERVICE);
    c->proof[PROOF_SERVICES].t0 = 0; /* the row of a service that is known counts, and there is none */
    cr_assert_eq(session_authority_t0(c, n), 0);
    world_free(w);
}

/* ---- claims that wait */
Test(session_condition, a_binding_that_ends_while_nobody_waits)
{
    for (int deleting = 0; deleting < 2; deleting++) {
        uint64_t flow;
        struct world *w = waiting(&flow);
        world_end(w, flow);
        cr_assert_str_eq(world_state(w, 0), "Waiting", "the claim waits for the next one");
        struct contract_object *b = world_get(w, "acme.site1");
        if (deleting)
            b->u.meta.deleting = 1;
        else
            b->u.binding.spec.suspended = true;
        world_touch(w, b);
        struct contract_object *k = claim_of(w);
        world_run(w, W_SEC);
        cr_assert_str_eq(world_state(w, 0), "Idle");
        cr_assert_neq(k->u.claim.spec.release_time, 0);
        cr_assert_str_eq(w->node[0].last_audit[SESSION_AUDIT_RELEASE].reason,
                         deleting ? "BindingDeleting" : "Suspended");
        world_free(w);
    }
}

Test(session_condition, a_service_that_expires_while_a_claim_waits_is_an_expiry)
{
    uint64_t flow;
    struct world *w = waiting(&flow);
    struct contract_object *k = claim_of(w), *s = world_get(w, "svc-a");
    s->u.service.valid_until = w->wall0 + w->now / BASE_US + 2000000;
    world_touch(w, s);
    world_run(w, 1900 * W_MS);
    cr_assert_eq(world_flow(w, flow)->status, 0);
    world_run(w, 200 * W_MS);
    cr_assert(world_refused(world_flow(w, flow), 503, "ServiceExpired"), "%s", world_flow(w, flow)->reason);
    cr_assert_str_eq(w->node[0].last_audit[SESSION_AUDIT_EXPIRY].reason, "ServiceExpired");
    cr_assert_eq(w->node[0].last_audit[SESSION_AUDIT_EXPIRY].epoch, 1);
    cr_assert_neq(k->u.claim.spec.release_time, 0, "and the claim is given back");
    world_free(w);
}

Test(session_condition, a_reservation_that_moves_while_a_claim_waits)
{
    uint64_t flow;
    struct world *w = waiting(&flow);
    struct contract_object *k = claim_of(w), *b = world_get(w, "acme.site1");
    b->u.binding.status.prefix.addr.b[11] ^= 1;
    world_touch(w, b);
    world_run(w, W_SEC);
    cr_assert(world_refused(world_flow(w, flow), 503, "PrefixChanged"), "%s", world_flow(w, flow)->reason);
    cr_assert_neq(k->u.claim.spec.release_time, 0);
    world_free(w);
}

/* The second reading says that there is no binding, and the watch has not. */
Test(session_condition, a_binding_that_is_gone_at_the_second_reading)
{
    struct world *w = world_usual(1);
    w->node[0].watch_silent[CONTRACT_BINDING] = true;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Claiming", 30 * W_SEC);
    world_delete(w, "acme.site1");
    world_run(w, W_SEC);
    cr_assert(world_refused(world_flow(w, flow), 403, "NoBinding"), "%s", world_flow(w, flow)->reason);
    cr_assert_str_eq(world_state(w, 0), "Idle");
    for (size_t i = 0; i < w->n_obj; i++)
        if (w->obj[i].kind == CONTRACT_CLAIM)
            cr_assert_neq(w->obj[i].u.claim.spec.release_time, 0);
    world_free(w);
}

/* One thing wrong at a time: the step that sees the binding go ends the wait for the record; the record's
 * answer does not rest on that. */
Test(session_condition, a_binding_that_is_gone_when_the_record_is_durable)
{
    struct world *w = world_usual(1);
    w->node[0].audit_delay = W_SEC;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Auditing", 30 * W_SEC);
    struct session_conn *n = world_conn(w, "acme.site1");
    n->bound = false;
    struct session_in in = {.ev = SESSION_EV_AUDIT};
    in.u.audit.ask = n->ask;
    in.u.audit.durable = true;
    world_event(w, 0, &in);
    cr_assert(world_refused(world_flow(w, flow), 403, "NoBinding"), "%s", world_flow(w, flow)->reason);
    cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], 0);
    world_free(w);
}

/* In one late step: the second reading is given up, and the binding goes. */
Test(session_condition, a_binding_that_goes_when_its_second_reading_is_given_up)
{
    struct world *w = world_usual(1);
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Claiming", 30 * W_SEC);
    w->node[0].read_fault[CONTRACT_BINDING] = W_NO_ANSWER;
    world_until_conn(w, "Waiting", 30 * W_SEC);
    struct session_conn *n = world_conn(w, "acme.site1");
    struct session_core *c = w->node[0].core;
    cr_assert_neq(n->ask_binding, 0);
    struct contract_object gone = *world_get(w, "acme.site1");
    world_run(w, n->ask_by - w->now - 1);
    w->node[0].wake_at = BASE_TIME_NEVER;
    w->now = n->ask_by + W_MS;
    w->node[0].watch_silent[CONTRACT_BINDING] = true;
    world_delete(w, "acme.site1");
    base_fmt(gone.u.meta.rv, sizeof gone.u.meta.rv, "%llu", (unsigned long long)w->rv);
    world_shown(w, &gone, true);
    cr_assert(world_refused(world_flow(w, flow), 403, "NoBinding"), "%s", world_flow(w, flow)->reason);
    cr_assert_null(session_conn_find(c, "acme.site1"), "its place is free");
    world_run(w, W_SEC);
    cr_assert_eq(c->jobs_active, 0);
    world_free(w);
}

/* ---- what a request is told after ten seconds */
Test(session_condition, time_is_up_while_the_policy_is_asked_or_a_record_is_made)
{
    for (int record = 0; record < 2; record++) {
        struct world *w = record ? world_usual(1) : world_webhook(1);
        w->node[0].foundation_down = true;
        struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
        a->u.attachment.status.ready.status = CONTRACT_COND_FALSE; /* the device, for eight seconds */
        world_touch(w, a);
        world_run(w, W_SEC);
        uint64_t flow = world_connect(w, 0, W_URI);
        world_run(w, 8 * W_SEC);
        cr_assert_str_eq(world_state(w, 0), "Pending");
        a->u.attachment.status.ready.status = CONTRACT_COND_TRUE;
        world_touch(w, a);
        w->node[0].authority.silent = w->node[0].audit_silent = true;
        world_until_conn(w, record ? "Auditing" : "Asking", 30 * W_SEC);
        world_run(w, 2 * W_SEC);
        struct w_flow *f = world_flow(w, flow);
        cr_assert(world_refused(f, 503, record ? "AuditUnavailable" : "AuthorizationUnavailable"), "%s",
                  f->reason);
        cr_assert_geq(f->answered - f->asked, SESSION_REQUEST_WAIT);
        cr_assert_lt(f->answered - f->asked, SESSION_REQUEST_WAIT + 100 * W_MS,
                     "not when the answer is given up");
        world_free(w);
    }
}

/* The API server asks for patience with every write, for as long as the request waits. */
Test(session_condition, time_is_up_in_a_pause)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_flow(w, world_connect(w, 0, W_URI));
    for (int i = 0; i < 11000 && f->status == 0; i++) {
        w->node[0].write_fault[CONTRACT_CLAIM] = W_TRY_LATER;
        world_run(w, W_MS);
    }
    cr_assert(world_refused(f, 503, "APIUnavailable"), "%s", f->reason);
    cr_assert_geq(f->answered - f->asked, SESSION_REQUEST_WAIT);
    world_free(w);
}

/* The drain comes between the old session's end and its barrier: the claim is not kept for the request that
 * waits. */
Test(session_condition, a_drain_in_the_middle_of_a_handoff)
{
    struct world *w = world_usual(1);
    w->node[0].stuck = true;
    struct w_flow *f = world_session(w, 0);
    uint64_t next = world_connect(w, 0, W_URI);
    cr_assert_str_eq(world_state(w, 0), "Handoff");
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    cr_assert_eq(world_flow(w, next)->status, 0);
    struct contract_object *k = claim_of(w);
    struct session_in in = {.ev = SESSION_EV_STOPPED};
    in.u.flow = f->flow;
    world_event(w, 0, &in);
    cr_assert(world_refused(world_flow(w, next), 503, "Draining"), "%s", world_flow(w, next)->reason);
    world_run(w, W_SEC);
    cr_assert_neq(k->u.claim.spec.release_time, 0);
    cr_assert(w->node[0].drained);
    world_free(w);
}

/* A place that is free, and a connector whose old session never stops: neither holds up a drain. */
Test(session_condition, a_drain_beside_a_session_that_does_not_stop)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "gone", "svc-a", "spiffe://acme/gone");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_node(w, 0)->stuck = true;
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    world_delete(w, "acme.gone");
    cr_assert_eq(world_session(w, 0)->status, 200);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    world_run(w, 500 * W_MS);
    cr_assert_not(w->node[0].drained);
    world_run(w, 1500 * W_MS);
    cr_assert_str_eq(world_state(w, 0), "Retired");
    cr_assert(w->node[0].drained);
    world_free(w);
}

/* The gate opens in the very step in which the request's time is up, because that step came late. */
Test(session_condition, time_is_up_when_everything_holds_at_last)
{
    uint64_t flow;
    struct world *w = waiting(&flow);
    struct session_core *c = w->node[0].core;
    world_run(w, world_conn(w, "acme.site1")->req.since + SESSION_REQUEST_WAIT - w->now - 1);
    cr_assert_eq(world_flow(w, flow)->status, 0);
    struct contract_object k = *claim_of(w);
    k.u.claim.status.accepted_epoch = k.u.claim.status.gate.epoch = 1;
    k.u.claim.status.accepted_lease_uuid = k.u.claim.spec.lease_uuid;
    k.u.claim.status.gate.state = CONTRACT_GATE_OPEN;
    base_fmt(k.u.meta.rv, sizeof k.u.meta.rv, "%llu", (unsigned long long)++w->rv);
    w->now += W_MS;
    world_shown(w, &k, false);
    struct w_flow *f = world_flow(w, flow);
    cr_assert_eq(f->status, 503, "it is answered, and only once");
    cr_assert_eq(f->retry_after, 1);
    cr_assert_str_eq(world_state(w, 0), "Waiting", "the claim stays");
    f = world_flow(w, world_connect(w, 0, W_URI));
    cr_assert_eq(f->status, 200, "the next request has it at once: %s", f->reason);
    cr_assert_eq(c->busy, 1);
    world_free(w);
}
