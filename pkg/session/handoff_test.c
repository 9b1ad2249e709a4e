/* SPDX-License-Identifier: Apache-2.0
 *
 * Same-pod handoff, refusals, limits, gap, events that no driver may send, and the state x event matrix.
 */
#include "session/fake_test.h"

#include "base/mem.h"

#include <criterion/criterion.h>
#include <string.h>

Test(session_matrix, every_cell_is_written)
{
    struct session_cell cell;
    unsigned n = 0;
    while (session_core_cell(n, &cell)) /* and asserts that it is written */
        n++;
    cr_assert_eq(n, INST_STATE_N * INST_EV_N + CONN_STATE_N * CONN_EV_N);
}

Test(session_handoff, new_request_replaces_the_open_session)
{
    struct world *w = world_usual(1);
    struct w_flow *a = world_session(w, 0);
    world_run(w, 5 * W_SEC);
    unsigned writes = w->node[0].writes[CONTRACT_CLAIM];
    uint64_t nb = world_connect(w, 0, W_URI);
    struct w_flow *b = world_flow(w, nb);
    a = world_flow(w, a->flow);
    cr_assert(a->stopped && a->closed && a->deadline == -1,
              "the old one is stopped before the new one is answered");
    cr_assert_eq(b->status, 0);
    world_run(w, 10 * W_MS);
    cr_assert_eq(b->status, 200, "%s", b->reason);
    cr_assert_eq(b->admit.u.admit.generation, a->admit.u.admit.generation + 1);
    cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], writes, "claim and attachment stay held");
    cr_assert_eq(world_the_claim(w)->u.claim.spec.epoch, 1);
    world_end(w, a->flow); /* its late end is inert */
    world_run(w, 2 * W_SEC);
    cr_assert(world_passes(w, b));
    cr_assert_eq(world_the_claim(w)->u.claim.spec.release_time, 0);
    world_free(w);
}

Test(session_handoff, third_request_is_told_to_come_again)
{
    struct world *w = world_usual(1);
    w->node[0].stuck = true;
    (void)world_session(w, 0);
    uint64_t second = world_connect(w, 0, W_URI);
    uint64_t third = world_connect(w, 0, W_URI);
    cr_assert(world_refused(world_flow(w, third), 503, "HandoffInProgress"));
    cr_assert_geq(world_flow(w, third)->retry_after, 1);
    cr_assert_eq(world_flow(w, second)->status, 0);
    world_free(w);
}

Test(session_handoff, old_session_that_does_not_stop_is_retired)
{
    struct world *w = world_usual(1);
    struct w_flow *a = world_session(w, 0);
    w->node[0].stuck = true;
    uint64_t nb = world_connect(w, 0, W_URI);
    base_time from = w->now;
    world_run(w, 990 * W_MS);
    cr_assert_eq(world_flow(w, nb)->status, 0);
    cr_assert_eq(world_the_claim(w)->u.claim.spec.release_time, 0);
    world_run(w, 30 * W_MS);
    cr_assert(world_refused(world_flow(w, nb), 503, "OldSessionNotStopped"));
    cr_assert_leq(world_flow(w, nb)->answered - from, W_SEC + W_MS);
    cr_assert_str_eq(world_state(w, 0), "Retired");
    world_run(w, 200 * W_MS);
    cr_assert_neq(world_the_claim(w)->u.claim.spec.release_time, 0, "the route is given back all the same");
    struct w_flow *c = world_session(w, 0);
    cr_assert(world_refused(c, 503, "Retired"));
    cr_assert_eq(a->deadline, -1);
    /* the data thread comes back */
    struct session_in in = {.ev = SESSION_EV_STOPPED};
    in.u.flow = a->flow;
    w->node[0].stuck = false;
    world_event(w, 0, &in);
    c = world_session(w, 0);
    cr_assert_eq(c->status, 200, "%s", c->reason);
    cr_assert_eq(world_the_claim(w)->u.claim.spec.epoch, 2);
    world_free(w);
}

Test(session_handoff, release_after_one_second_when_the_barrier_does_not_come)
{
    struct world *w = world_usual(1);
    struct w_flow *a = world_session(w, 0);
    w->node[0].stuck = true;
    world_end(w, a->flow);
    world_run(w, 980 * W_MS);
    cr_assert_eq(world_the_claim(w)->u.claim.spec.release_time, 0);
    world_run(w, 100 * W_MS);
    cr_assert_neq(world_the_claim(w)->u.claim.spec.release_time, 0);
    world_free(w);
}

Test(session_handoff, newer_request_leaves_before_the_barrier)
{
    struct world *w = world_usual(1);
    struct w_flow *a = world_session(w, 0);
    w->node[0].stuck = true;
    uint64_t nb = world_connect(w, 0, W_URI);
    world_end(w, nb);
    cr_assert_str_eq(world_state(w, 0), "Stopping");
    uint64_t nc = world_connect(w, 0, W_URI);
    cr_assert_str_eq(world_state(w, 0), "Handoff");
    struct session_in in = {.ev = SESSION_EV_STOPPED};
    in.u.flow = a->flow;
    world_event(w, 0, &in);
    world_run(w, 20 * W_MS);
    cr_assert_eq(world_flow(w, nc)->status, 200);
    world_free(w);
}

Test(session_handoff, authority_lost_during_the_handoff)
{
    struct world *w = world_usual(1);
    struct w_flow *a = world_session(w, 0);
    w->node[0].stuck = true;
    uint64_t nb = world_connect(w, 0, W_URI);
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.spec.suspended = true;
    world_touch(w, b);
    world_run(w, 10 * W_MS);
    struct session_in in = {.ev = SESSION_EV_STOPPED};
    in.u.flow = a->flow;
    world_event(w, 0, &in);
    world_run(w, 100 * W_MS);
    cr_assert(world_refused(world_flow(w, nb), 403, "Suspended"), "%s", world_flow(w, nb)->reason);
    cr_assert_neq(world_the_claim(w)->u.claim.spec.release_time, 0);
    world_free(w);
}

Test(session_handoff, a_request_that_is_not_allowed_does_not_touch_the_open_session)
{
    struct world *w = world_usual(1);
    struct w_flow *a = world_session(w, 0);
    uint64_t bad = world_connect_to(w, 0, W_URI, "2001:db8::/32");
    cr_assert(world_refused(world_flow(w, bad), 400, "TargetNotAllowed"));
    uint64_t stranger = world_connect(w, 0, "spiffe://acme/other");
    cr_assert(world_refused(world_flow(w, stranger), 403, "NoBinding"));
    world_run(w, W_SEC);
    cr_assert(world_passes(w, a));
    world_free(w);
}

Test(session_handoff, newest_waiting_request_counts)
{
    struct world *w = world_usual(1);
    w->node[0].foundation_down = true;
    uint64_t a = world_connect(w, 0, W_URI);
    world_run(w, W_SEC);
    uint64_t b = world_connect(w, 0, W_URI);
    cr_assert(world_refused(world_flow(w, a), 503, "Superseded"));
    w->node[0].foundation_down = false;
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, b)->status, 200, "%s", world_flow(w, b)->reason);
    world_free(w);
}

/* ---- waiting for the foundation */
Test(session_wait, foundation_that_does_not_answer)
{
    static const struct {
        const char *reason;
        bool instance, attachment; /* what it has done before it went */
    } rows[] = {{"InstanceNotAccepted", false, false}, {"ClaimNotAccepted", true, true}};
    for (size_t i = 0; i < 2; i++) {
        struct world *w = world_new();
        world_service(w, "svc-a", "fd12:0:0:1::/64");
        world_binding(w, "acme", "site1", "svc-a", W_URI);
        world_node(w, 0);
        w->node[0].foundation_down = !rows[i].instance;
        world_agent_start(w, 0);
        world_run(w, W_SEC);
        cr_assert_eq(w->node[0].ready, rows[i].instance);
        w->node[0].foundation_down = true;
        uint64_t f = world_connect(w, 0, W_URI);
        base_time from = w->now;
        world_run(w, 9900 * W_MS);
        cr_assert_eq(world_flow(w, f)->status, 0);
        world_run(w, 200 * W_MS);
        cr_assert(world_refused(world_flow(w, f), 503, rows[i].reason), "%s", world_flow(w, f)->reason);
        cr_assert_leq(world_flow(w, f)->answered - from, SESSION_REQUEST_WAIT + W_MS);
        cr_assert_geq(world_flow(w, f)->retry_after, 1);
        w->node[0].foundation_down = false;
        f = world_connect(w, 0, W_URI);
        world_run(w, W_SEC);
        cr_assert_eq(world_flow(w, f)->status, 200, "%s", world_flow(w, f)->reason);
        world_free(w);
    }
}

Test(session_wait, device_that_cannot_be_opened)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_node(w, 0);
    w->node[0].tun_fails = true;
    world_agent_start(w, 0);
    world_run(w, 3 * W_SEC);
    cr_assert_not(w->node[0].ready);
    cr_assert_str_eq(w->node[0].ready_reason, "AttachmentNotReady");
    uint64_t f = world_connect(w, 0, W_URI);
    world_run(w, W_SEC);
    cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], 0, "no claim before the attachment is ready");
    w->node[0].tun_fails = false;
    world_run(w, 2 * W_SEC);
    cr_assert_eq(world_flow(w, f)->status, 200);
    world_free(w);
}

Test(session_wait, gate_that_opens_late_and_wrong_epochs)
{
    /* each of these in the row is not enough */
    for (int i = 0; i < 5; i++) {
        struct world *w = world_usual(1);
        w->node[0].foundation_down = true;
        uint64_t f = world_connect(w, 0, W_URI);
        world_run(w, 100 * W_MS);
        cr_assert_str_eq(world_state(w, 0), "Waiting");
        struct contract_claim *k = &world_the_claim(w)->u.claim;
        k->status.accepted_epoch = i == 0 ? 0 : 1;
        k->status.accepted_lease_uuid = i == 1 ? world_uuid(w) : k->spec.lease_uuid;
        k->status.gate.epoch = i == 2 ? 0 : 1;
        k->status.gate.state = i == 3   ? CONTRACT_GATE_CLOSED
                               : i == 4 ? CONTRACT_GATE_ABSENT
                                        : CONTRACT_GATE_OPEN;
        world_touch(w, world_get(w, k->meta.name));
        world_run(w, W_SEC);
        cr_assert_eq(world_flow(w, f)->status, 0, "case %d", i);
        k = &world_the_claim(w)->u.claim;
        k->status.accepted_epoch = k->status.gate.epoch = 1;
        k->status.accepted_lease_uuid = k->spec.lease_uuid;
        k->status.gate.state = CONTRACT_GATE_OPEN;
        world_touch(w, world_get(w, k->meta.name));
        world_run(w, 100 * W_MS);
        cr_assert_eq(world_flow(w, f)->status, 200, "case %d", i);
        world_free(w);
    }
}

Test(session_wait, closed_epoch_of_an_older_one_is_not_enough)
{
    struct world *w = world_usual(1);
    struct w_flow *a = world_session(w, 0);
    world_end(w, a->flow);
    world_run(w, 2 * W_SEC);
    w->node[0].foundation_down = true;
    uint64_t f = world_connect(w, 0, W_URI);
    world_run(w, 100 * W_MS);
    struct contract_claim *k = &world_the_claim(w)->u.claim;
    cr_assert_eq(k->spec.epoch, 2);
    k->status.closed_epoch = 0; /* as if nobody had closed epoch 1 */
    k->status.accepted_epoch = k->status.gate.epoch = 2;
    k->status.accepted_lease_uuid = k->spec.lease_uuid;
    k->status.gate.state = CONTRACT_GATE_OPEN;
    world_touch(w, world_get(w, k->meta.name));
    world_run(w, 5 * W_SEC);
    cr_assert_eq(world_flow(w, f)->status, 0, "earlier epochs are not over");
    world_free(w);
}

/* ---- refusals */
static struct w_flow *request(struct world *w, enum session_identity id, const char *uri)
{
    struct w_flow *f = &w->flow[w->n_flow++];
    *f = (struct w_flow){.flow = w->n_flow};
    struct session_in in = {.ev = SESSION_EV_REQUEST};
    in.u.request.flow = f->flow;
    in.u.request.identity = id;
    base_copy(in.u.request.uri, sizeof in.u.request.uri, uri);
    in.u.request.any_target = true;
    in.u.request.correlation.b[0] = 1;
    world_event(w, 0, &in);
    return f;
}

Test(session_refuse, identities_and_policy)
{
    struct world *w = world_usual(1);
    cr_assert(world_refused(request(w, SESSION_ID_NONE, ""), 403, "NoIdentity"));
    cr_assert(world_refused(request(w, SESSION_ID_MANY, W_URI), 403, "ManyIdentities"));
    cr_assert(world_refused(request(w, SESSION_ID_BAD, W_URI), 403, "BadIdentity"));
    cr_assert(world_refused(request(w, SESSION_ID_URI, "spiffe://acme/site"), 403, "NoBinding"));
    cr_assert(world_refused(request(w, SESSION_ID_URI, "spiffe://acme/site11"), 403, "NoBinding"));
    world_binding(w, "acme", "site2", "svc-a", W_URI);
    world_run(w, 10 * W_MS);
    cr_assert(world_refused(request(w, SESSION_ID_URI, W_URI), 403, "AmbiguousIdentity"));
    world_delete(w, "acme.site2");
    world_run(w, 10 * W_MS);
    cr_assert_eq(world_session(w, 0)->status, 200);
    cr_assert_geq(w->node[0].audits[SESSION_AUDIT_REJECT], 5);
    world_free(w);

    w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_node(w, 0)->cfg.policy = SESSION_POLICY_DENY;
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    cr_assert(w->node[0].ready, "it works, and admits nobody");
    cr_assert_str_eq(w->node[0].ready_reason, "PolicyDeny");
    struct w_flow *f = request(w, SESSION_ID_URI, W_URI);
    cr_assert(world_refused(f, 403, "PolicyDeny"));
    cr_assert_not_null(strstr(f->reason, "authority.policy"), "it says what to do: %s", f->reason);
    world_free(w);
}

Test(session_refuse, services)
{
    enum { GONE, REVOKED, EXPIRED, TENANT, PROVIDER, VPC, N };
    static const struct {
        int status;
        const char *reason;
    } rows[N] = {{503, "NoService"},       {403, "ServiceRevoked"},  {503, "ServiceExpired"},
                 {403, "ServiceMismatch"}, {403, "ServiceMismatch"}, {403, "ServiceMismatch"}};
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(1);
        struct contract_object *s = world_get(w, "svc-a");
        switch (i) {
        case GONE:
            world_delete(w, "svc-a");
            break;
        case REVOKED:
            s->u.service.revoked = true;
            break;
        case EXPIRED:
            s->u.service.valid_until = w->wall0 + w->now / BASE_US - 1;
            break;
        case TENANT:
            base_copy(s->u.service.tenant, 64, "other");
            break;
        case PROVIDER:
            base_copy(s->u.service.provider, 64, "other");
            break;
        case VPC:
            base_copy(s->u.service.vpc, 64, "vpc-b");
            break;
        }
        if (i != GONE)
            world_touch(w, s);
        world_run(w, 20 * W_MS);
        struct w_flow *f = world_session(w, 0);
        cr_assert(world_refused(f, rows[i].status, rows[i].reason), "%d: %d %s", i, f->status, f->reason);
        cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM] + w->node[0].writes[CONTRACT_BINDING], 0);
        world_free(w);
    }
}

Test(session_refuse, service_moved_on_while_the_watch_is_silent_is_read_afresh)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    w->node[0].watch_silent[CONTRACT_SERVICE] = true;
    struct contract_object *s = world_get(w, "svc-a");
    s->u.service.valid_until += INT64_C(200000000);
    world_touch(w, s);
    while (!f->stopped)
        world_run(w, W_SEC);
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    world_free(w);
}

Test(session_refuse, binding_suspended_while_the_watch_is_silent_is_read_afresh)
{
    struct world *w = world_usual(1);
    w->node[0].watch_silent[CONTRACT_BINDING] = true;
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.spec.suspended = true;
    world_touch(w, b);
    cr_assert(world_refused(world_session(w, 0), 403, "Suspended"));
    cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], 0);
    world_free(w);
}

Test(session_refuse, targets)
{
    static const struct {
        const char *target;
        int status;
    } rows[] = {{NULL, 200},        {"fd20::10/128", 200}, {"fd20:1::/32", 200},
                {"fd20::/15", 400}, {"::/0", 400},         {"fd21::/16", 400}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = world_usual(1);
        uint64_t flow = world_connect_to(w, 0, W_URI, rows[i].target);
        world_run(w, W_SEC);
        struct w_flow *f = world_flow(w, flow);
        cr_assert_eq(f->status, rows[i].status, "%s: %s", rows[i].target, f->reason);
        if (f->status == 200) {
            char text[BASE_PREFIX_SIZE];
            cr_assert_eq(f->admit.u.admit.n_destinations, 1);
            base_prefix_text(text, &f->admit.u.admit.destinations[0]);
            cr_assert_str_eq(text, rows[i].target ? rows[i].target : "fd20::/16");
        }
        world_free(w);
    }
}

Test(session_refuse, more_bindings_than_the_limit)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    for (int i = 0; i < 3; i++) {
        char name[16], uri[32];
        base_fmt(name, sizeof name, "site%d", i + 1);
        base_fmt(uri, sizeof uri, "spiffe://acme/site%d", i + 1);
        world_binding(w, "acme", name, "svc-a", uri);
    }
    world_node(w, 0)->cfg.max_connectors = 2;
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    cr_assert_eq(world_session(w, 0)->status, 200);
    cr_assert(world_refused(request(w, SESSION_ID_URI, "spiffe://acme/site3"), 503, "TooManyBindings"));
    world_free(w);
}

/* The driver adds equal ones up (audit/sum.h); the core leaves none out, whoever comes in between. */
Test(session_refuse, every_one_is_an_event_of_the_trail)
{
    struct world *w = world_usual(1);
    w->node[0].by_reason_n = 0;
    for (int i = 0; i < 25; i++) {
        (void)request(w, SESSION_ID_URI, "spiffe://acme/nobody");
        if (i % 2)
            (void)request(w, SESSION_ID_NONE, "");
        world_run(w, 100 * W_MS);
    }
    unsigned n = 0, other = 0;
    for (unsigned i = 0; i < w->node[0].by_reason_n; i++) {
        n += strcmp(w->node[0].by_reason[i], "NoBinding") == 0;
        other += strcmp(w->node[0].by_reason[i], "NoIdentity") == 0;
    }
    cr_assert_eq(n, 25, "%u", n);
    cr_assert_eq(other, 12, "%u", other);
    cr_assert_eq(w->node[0].audits[SESSION_AUDIT_REJECT], 37);
    world_free(w);
}

/* ---- the rest */
Test(session_rest, gap_shuts_until_a_proof_after_it)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_run(w, 5 * W_SEC);
    struct session_in in = {.ev = SESSION_EV_GAP};
    in.u.gap = w->now;
    w->node[0].watch_silent[CONTRACT_CLAIM] = true;
    world_event(w, 0, &in);
    cr_assert_eq(f->deadline, 0, "shut, not ended");
    cr_assert_not(f->stopped);
    world_run(w, 3 * W_SEC);
    cr_assert_eq(f->deadline, 0);
    w->node[0].watch_silent[CONTRACT_CLAIM] = false;
    world_run(w, 3 * W_SEC);
    cr_assert(world_passes(w, f));
    world_free(w);
}

Test(session_rest, proof_counts_only_for_a_row_that_is_in_it)
{
    struct world *w = world_usual(2);
    struct w_flow *a = world_session(w, 0);
    /* the row leaves node 0's collection, the DELETED event is lost, and the next proof holds: the row is not
     * in it */
    w->node[0].watch_silent[CONTRACT_CLAIM] = true;
    w->node[0].foundation_watch_silent = true;
    (void)world_connect(w, 1, W_URI);
    world_run(w, 200 * W_MS);
    struct session_in in = {.ev = SESSION_EV_RELIST};
    in.u.collection = CONTRACT_CLAIM;
    world_event(w, 0, &in);
    in.ev = SESSION_EV_LISTED;
    world_event(w, 0, &in);
    cr_assert(a->stopped && a->closed);
    world_free(w);
}

Test(session_rest, older_rows_change_nothing)
{
    struct world *w = world_usual(1);
    struct contract_object old = *world_get(w, "acme.site1");
    struct w_flow *f = world_session(w, 0);
    struct contract_object row = *world_get(w, "rc-fd120000000000012d5e853a");
    struct session_in in = {.ev = SESSION_EV_ROW};
    in.u.row.kind = CONTRACT_BINDING;
    in.u.row.object = &old;
    world_event(w, 0, &in);
    in.u.row.deleted = true;
    world_event(w, 0, &in);
    base_copy(row.u.meta.rv, sizeof row.u.meta.rv, "101");
    row.u.claim.status.gate.state = CONTRACT_GATE_CLOSED;
    in.u.row.kind = CONTRACT_CLAIM;
    in.u.row.object = &row;
    in.u.row.deleted = false;
    world_event(w, 0, &in);
    in.u.row.deleted = true;
    world_event(w, 0, &in);
    world_run(w, W_SEC);
    cr_assert(world_passes(w, f));
    world_free(w);
}

Test(session_rest, late_and_foreign_answers_are_inert)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    for (uint64_t ask = 0; ask < 40; ask++) {
        for (uint64_t serial = 0; serial < 60; serial += 7) {
            struct session_in in = {.ev = SESSION_EV_ANSWER};
            in.u.answer.ask = serial << 24 | ask;
            in.u.answer.code = BASE_ENOTFOUND;
            world_event(w, 0, &in);
            in = (struct session_in){.ev = SESSION_EV_AUDIT};
            in.u.audit.ask = serial << 24 | ask;
            world_event(w, 0, &in);
            in = (struct session_in){.ev = SESSION_EV_PROOF};
            in.u.proof.ask = serial << 24 | ask;
            in.u.proof.proved = true;
            in.u.proof.t0 = w->now;
            world_event(w, 0, &in);
        }
    }
    struct session_in in = {.ev = SESSION_EV_AUTHORITY};
    world_event(w, 0, &in);
    in = (struct session_in){.ev = SESSION_EV_STOPPED};
    in.u.flow = f->flow; /* a barrier that nobody asked for */
    world_event(w, 0, &in);
    in.u.flow = 999;
    world_event(w, 0, &in);
    in.ev = SESSION_EV_ENDED;
    world_event(w, 0, &in);
    in = (struct session_in){.ev = SESSION_EV_TUN_LOST};
    in.u.tun.tun_id = 77;
    world_event(w, 0, &in);
    in.ev = SESSION_EV_TUN;
    world_event(w, 0, &in);
    world_run(w, W_SEC);
    cr_assert(world_passes(w, f));
    world_free(w);
}

Test(session_rest, events_that_no_driver_may_send)
{
    struct world *w = world_usual(1);
    struct session_in bad[8] = {
        {.ev = SESSION_EV_UNSET},   {.ev = SESSION_EV_START},   {.ev = (enum session_ev)99},
        {.ev = SESSION_EV_REQUEST}, {.ev = SESSION_EV_RELIST},  {.ev = SESSION_EV_LISTED},
        {.ev = SESSION_EV_ROW},     {.ev = SESSION_EV_REQUEST},
    };
    bad[3].u.request.flow = 0;
    bad[3].u.request.correlation.b[0] = 1;
    bad[4].u.collection = (enum contract_kind)0;
    bad[5].u.collection = (enum contract_kind)6;
    bad[6].u.row.kind = CONTRACT_CLAIM;
    bad[7].u.request.flow = 50; /* no correlation */
    for (size_t i = 0; i < 8; i++) {
        bad[i].now = w->now;
        cr_assert_eq(session_core_step(w->node[0].core, &bad[i], &w->out), BASE_EINVAL, "%zu", i);
        session_core_check(w->node[0].core);
    }
    struct session_in back = {.ev = SESSION_EV_TICK, .now = w->now - 1};
    cr_assert_eq(session_core_step(w->node[0].core, &back, &w->out), BASE_EINVAL, "time goes back");
    world_free(w);
}

Test(session_rest, bad_configuration)
{
    struct world *w = world_new();
    struct session_config good = world_node(w, 0)->cfg;
    struct session_core *c = NULL;
    struct base_err err;
    struct session_config bad = good;
    bad.max_connectors = 0;
    cr_assert_eq(session_core_new(&c, &bad, &err), BASE_EINVAL);
    cr_assert_not_null(strstr(err.msg, "limits.connectors"));
    bad = good;
    bad.max_services = 0;
    cr_assert_eq(session_core_new(&c, &bad, &err), BASE_EINVAL);
    bad = good;
    bad.timing.lease = BASE_SEC;
    cr_assert_eq(session_core_new(&c, &bad, &err), BASE_EINVAL);
    cr_assert_not_null(strstr(err.msg, "lease"));
    bad = good;
    bad.boot_id = (struct base_uuid){{0}};
    cr_assert_eq(session_core_new(&c, &bad, &err), BASE_EINVAL);
    bad = good;
    memset(bad.node, 'a', 125);
    bad.node[0] = '-';
    cr_assert_eq(session_core_new(&c, &bad, &err), BASE_EINVAL);
    cr_assert_null(c);
    for (unsigned long i = 1; i < 16; i++) { /* memory runs out at each place */
        base_mem_fail_after(i);
        int rc = session_core_new(&c, &good, &err);
        base_mem_fail_after(0);
        if (rc == BASE_OK)
            c = session_core_free(c);
        else
            cr_assert_eq(rc, BASE_ENOMEM);
    }
    world_free(w);
}

Test(session_rest, a_step_allocates_nothing)
{
    struct world *w = world_usual(1);
    struct session_in in = {.ev = SESSION_EV_TICK, .now = w->now, .wall = 1};
    base_mem_fail_after(0);
    for (int i = 0; i < 100; i++) {
        in.now += BASE_SEC;
        do
            cr_assert_eq(session_core_step(w->node[0].core, &in, &w->out), BASE_OK);
        while (w->out.more);
    }
    cr_assert_eq(base_mem_count(), 0);
    world_free(w);
}

Test(session_rest, operators_drain_and_back)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct contract_object *i = world_get(w, "masque.edge1");
    i->u.meta.drain = true;
    world_touch(w, i);
    world_run(w, 500 * W_MS);
    cr_assert(f->closed && !w->node[0].ready && !w->node[0].drained);
    cr_assert_str_eq(w->node[0].ready_reason, "Draining");
    cr_assert_neq(world_the_claim(w)->u.claim.spec.release_time, 0);
    cr_assert(world_get(w, "masque.edge1")->u.instance.spec.draining);
    cr_assert(world_refused(world_session(w, 0), 503, "Draining"));
    i = world_get(w, "masque.edge1");
    i->u.meta.drain = false;
    world_touch(w, i);
    world_run(w, 500 * W_MS);
    cr_assert(w->node[0].ready);
    cr_assert_not(world_get(w, "masque.edge1")->u.instance.spec.draining);
    cr_assert_eq(world_session(w, 0)->status, 200);
    world_free(w);
}

Test(session_rest, drain_at_every_moment)
{
    for (int ms = 0; ms < 60; ms += 2) {
        struct world *w = world_usual(1);
        uint64_t f = world_connect(w, 0, W_URI);
        world_run(w, ms * W_MS);
        world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
        world_run(w, 3 * W_SEC);
        cr_assert(w->node[0].drained, "drained at %d ms", ms);
        cr_assert_neq(world_get(w, "masque.edge1")->u.instance.spec.release_time, 0);
        if (world_has_claim(w))
            cr_assert_neq(world_the_claim(w)->u.claim.spec.release_time, 0, "%d ms", ms);
        cr_assert_neq(world_flow(w, f)->status, 0);
        world_free(w);
    }
}

Test(session_rest, drain_ends_when_the_api_is_gone_or_was_never_there)
{
    struct world *w = world_usual(1);
    (void)world_session(w, 0);
    w->node[0].cut = true;
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    world_run(w, SESSION_DRAIN_WAIT + W_SEC);
    cr_assert(w->node[0].drained);
    world_free(w);

    w = world_new();
    world_node(w, 0)->cut = true;
    world_agent_start(w, 0);
    world_run(w, 2 * W_SEC);
    cr_assert_str_eq(w->node[0].ready_reason, "APIUnavailable");
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    world_run(w, W_SEC);
    cr_assert(w->node[0].drained);
    world_free(w);
}

Test(session_rest, two_connectors_do_not_touch_each_other)
{
    struct world *w = world_usual(1);
    world_binding(w, "acme", "site2", "svc-a", "spiffe://acme/site2");
    world_run(w, 100 * W_MS);
    struct w_flow *a = world_session(w, 0);
    uint64_t other = world_connect(w, 0, "spiffe://acme/site2");
    world_run(w, W_SEC);
    struct w_flow *b = world_flow(w, other);
    cr_assert_eq(b->status, 200, "%s", b->reason);
    cr_assert_not(base_prefix_eq(&a->admit.u.admit.prefix, &b->admit.u.admit.prefix));
    struct contract_object *o = world_get(w, "acme.site1");
    o->u.binding.spec.suspended = true;
    world_touch(w, o);
    world_run(w, 60 * W_SEC);
    cr_assert(!world_passes(w, a) && world_passes(w, b));
    cr_assert_not(b->stopped);
    world_free(w);
}

Test(session_rest, views)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct session_summary s;
    struct session_view v;
    session_core_summary(w->node[0].core, &s);
    cr_assert(s.ready && s.forwarding == 1 && s.bindings == 1 && s.services == 1 && s.connectors_active == 1);
    cr_assert_str_eq(s.instance_state, "Held");
    cr_assert_eq(s.instance_epoch, 1);
    cr_assert(session_core_view(w->node[0].core, 0, &v));
    cr_assert_str_eq(v.connector, "site1");
    cr_assert_eq(v.flow, f->flow);
    cr_assert_eq(v.epoch, 1);
    cr_assert_eq(v.deadline, f->deadline);
    cr_assert_not(session_core_view(w->node[0].core, 1, &v));
    world_free(w);
}

Test(session_report, last_session_is_written_and_never_over_a_newer_one)
{
    struct world *w = world_usual(2);
    world_get(w, "acme.site1")->u.meta.generation = 7;
    world_touch(w, world_get(w, "acme.site1"));
    world_run(w, W_SEC);
    struct w_flow *a = world_session(w, 0);
    world_run(w, 3 * W_SEC);
    struct contract_binding_status *s = &world_get(w, "acme.site1")->u.binding.status;
    cr_assert_str_eq(s->last.node, "edge1");
    cr_assert_str_eq(s->last.transport, "HTTP/3");
    cr_assert_eq(s->last.until, 0);
    cr_assert_eq(s->ready.status, CONTRACT_COND_TRUE);
    cr_assert_eq(s->prefix_assigned.status, CONTRACT_COND_TRUE);
    cr_assert_eq(s->ready.observed_generation, 7, "each condition says which spec it speaks of");
    cr_assert_eq(s->prefix_assigned.observed_generation, 7);
    cr_assert(s->has_prefix && world_passes(w, a));
    (void)world_session(w, 1);
    world_run(w, 5 * W_SEC);
    s = &world_get(w, "acme.site1")->u.binding.status;
    cr_assert_str_eq(s->last.node, "edge2", "the end on edge1 does not cover the beginning on edge2");
    cr_assert_eq(s->last.until, 0);
    uint64_t flow = w->flow[1].flow;
    world_end(w, flow);
    world_run(w, 3 * W_SEC);
    s = &world_get(w, "acme.site1")->u.binding.status;
    cr_assert_str_eq(s->last.node, "edge2");
    cr_assert_gt(s->last.until, s->last.since);
    world_free(w);
}

Test(session_report, a_report_that_cannot_be_written_disturbs_nobody)
{
    static const enum w_fault faults[] = {W_CONFLICT, W_LOST, W_DENIED, W_NO_ANSWER};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        w->node[0].write_fault[CONTRACT_BINDING] = faults[i];
        world_run(w, 30 * W_SEC);
        cr_assert(world_passes(w, f));
        cr_assert(world_get(w, "acme.site1")->u.binding.status.has_prefix);
        if (faults[i] == W_CONFLICT)
            cr_assert_str_eq(world_get(w, "acme.site1")->u.binding.status.last.node, "edge1", "tried again");
        world_free(w);
    }
}

/* A node whose disk does not take records refuses its connectors, and the binding says so, once. */
Test(session_report, a_refusal_for_want_of_a_durable_record_is_a_condition)
{
    struct world *w = world_usual(2);
    (void)world_session(w, 1);
    world_run(w, 3 * W_SEC);
    struct contract_binding_status before = world_get(w, "acme.site1")->u.binding.status;
    cr_assert_eq(before.ready.status, CONTRACT_COND_TRUE);
    w->node[0].audit_fails = true;
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 503);
    cr_assert_not_null(strstr(f->reason, "AuditUnavailable"), "%s", f->reason);
    world_run(w, 2 * W_SEC);
    struct contract_binding_status *s = &world_get(w, "acme.site1")->u.binding.status;
    cr_assert_eq(s->ready.status, CONTRACT_COND_FALSE);
    cr_assert_str_eq(s->ready.reason, "AuditUnavailable");
    cr_assert_not_null(strstr(s->ready.message, "edge1"), "%s", s->ready.message);
    cr_assert_gt(s->ready.transition, before.ready.transition);
    cr_assert_eq(memcmp(&s->last, &before.last, sizeof s->last), 0, "no session was there to report");
    unsigned writes = w->node[0].writes[CONTRACT_BINDING];
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(world_session(w, 0)->status, 503);
        world_run(w, 2 * W_SEC);
    }
    cr_assert_eq(w->node[0].writes[CONTRACT_BINDING], writes, "said once");
    w->node[0].audit_fails = false;
    world_run(w, 10 * W_SEC);
    cr_assert_eq(world_session(w, 0)->status, 200);
    world_run(w, 3 * W_SEC);
    s = &world_get(w, "acme.site1")->u.binding.status;
    cr_assert_eq(s->ready.status, CONTRACT_COND_TRUE);
    cr_assert_str_eq(s->ready.reason, "SessionOpen");
    cr_assert_str_eq(s->last.node, "edge1");
    world_free(w);
}
