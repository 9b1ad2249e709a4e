/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that say nothing: without the object that they should bring, of another kind than what was asked,
 * for nobody; and a digest that cannot be made.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static void answer(struct world *w, uint64_t ask, int code)
{
    struct session_in in = {.ev = SESSION_EV_ANSWER};
    in.u.answer.ask = ask;
    in.u.answer.code = code;
    in.u.answer.sent = w->now;
    world_event(w, 0, &in);
}

static void audited(struct world *w, uint64_t ask)
{
    struct session_in in = {.ev = SESSION_EV_AUDIT};
    in.u.audit.ask = ask;
    in.u.audit.durable = true;
    world_event(w, 0, &in);
}

/* BASE_OK and no object: whoever waits goes on waiting, and takes what comes then. */
Test(session_answer, of_an_instance_without_the_object)
{
    static const char *const states[] = {"Reading", "Writing", "Held", "Releasing"};
    for (size_t i = 0; i < 4; i++) {
        struct world *w = world_new();
        world_service(w, "svc-a", "fd12:0:0:1::/64");
        world_node(w, 0);
        world_agent_start(w, 0);
        struct session_instance *inst = &w->node[0].core->inst;
        world_until_inst(w, i < 2 ? states[i] : "Held", 30 * W_SEC);
        if (i == 2)
            for (int k = 0; k < 30000 && inst->renew != RENEW_SENT; k++)
                world_run(w, W_MS);
        if (i == 3) {
            world_run(w, W_SEC);
            world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
        }
        uint64_t ask = i == 2 ? inst->renew_ask : inst->ask;
        cr_assert_neq(ask, 0);
        answer(w, ask, BASE_OK);
        cr_assert_str_eq(world_inst_state(w), states[i]);
        cr_assert_eq(i == 2 ? inst->renew_ask : inst->ask, ask, "it still waits");
        world_run(w, W_SEC);
        cr_assert_str_eq(world_inst_state(w), i == 3 ? "Released" : "Held");
        world_free(w);
    }
}

Test(session_answer, of_a_connector_without_the_object)
{
    static const char *const states[] = {"Reading", "Reserving", "Checking", "Claiming"};
    for (size_t i = 0; i < 4; i++) {
        struct world *w = world_usual(1);
        if (i == 2)
            w->node[0].write_fault[CONTRACT_CLAIM] = W_CONFLICT;
        uint64_t flow = world_connect(w, 0, W_URI);
        world_until_conn(w, states[i], 30 * W_SEC);
        struct session_conn *n = world_conn(w, "acme.site1");
        uint64_t ask = i == 0 ? n->ask_binding : n->ask;
        cr_assert_neq(ask, 0);
        answer(w, ask, BASE_OK);
        cr_assert_str_eq(world_state(w, 0), states[i]);
        cr_assert_eq(i == 0 ? n->ask_binding : n->ask, ask, "it still waits");
        world_run(w, 500 * W_MS);
        cr_assert_eq(world_flow(w, flow)->status, 200, "%s", world_flow(w, flow)->reason);
        /* and so do a report and a release */
        for (int k = 0; k < 2000 && n->report.ask == 0; k++)
            world_run(w, W_MS);
        answer(w, n->report.ask, BASE_OK);
        cr_assert_neq(n->report.ask, 0);
        world_end(w, flow);
        struct session_core *c = w->node[0].core;
        for (int k = 0; k < 100 && c->jobs_active == 0; k++)
            world_run(w, W_MS);
        cr_assert_eq(c->jobs_active, 1);
        answer(w, c->job[0].ask, BASE_OK);
        cr_assert_eq(c->jobs_active, 1, "nothing says that it is gone");
        world_run(w, W_SEC);
        cr_assert_eq(c->jobs_active, 0);
        world_free(w);
    }
}

/* A list may be empty: but the answer to another question that comes meanwhile brings its object. */
Test(session_answer, of_a_report_while_a_list_is_on_its_way)
{
    struct world *w = world_usual(1);
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Listing", 30 * W_SEC);
    struct session_conn *n = world_conn(w, "acme.site1");
    n->report.ask = n->ask + (UINT64_C(1000) << SESSION_ASK_BITS);
    n->report.ask_by = w->now + W_SEC;
    answer(w, n->report.ask, BASE_OK);
    cr_assert_neq(n->report.ask, 0);
    answer(w, n->ask, BASE_OK);
    cr_assert_str_eq(world_state(w, 0), "Reserving");
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, flow)->status, 200, "%s %s", world_state(w, 0), world_flow(w, flow)->reason);
    world_free(w);
}

/* A record's number in an answer, an answer's in a record; numbers that nobody has. */
Test(session_answer, of_another_kind_or_for_nobody)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    struct w_node *node = world_node(w, 0);
    world_agent_start(w, 0);
    struct session_core *c = node->core;
    world_until_inst(w, "Reading", 30 * W_SEC);
    audited(w, c->inst.ask);
    cr_assert_str_eq(world_inst_state(w), "Reading");
    world_until_inst(w, "Auditing", 30 * W_SEC);
    answer(w, c->inst.ask, BASE_ENOTFOUND);
    cr_assert_str_eq(world_inst_state(w), "Auditing");
    world_run(w, W_SEC);
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Auditing", 30 * W_SEC);
    answer(w, world_conn(w, "acme.site1")->ask, BASE_ECONFLICT);
    audited(w, world_conn(w, "acme.site1")->ask +
                   (UINT64_C(1000) << SESSION_ASK_BITS)); /* of a decision before */
    cr_assert_str_eq(world_state(w, 0), "Auditing");
    cr_assert_neq(world_conn(w, "acme.site1")->ask, 0);
    world_run(w, W_SEC);
    struct w_flow *f = world_flow(w, flow);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    for (uint32_t e = 0; e < c->timers.n; e++) { /* of everything that could ask */
        answer(w, UINT64_C(0xffffff) << SESSION_ASK_BITS | (e + 1), BASE_ENOTFOUND);
        answer(w, UINT64_C(0xffffff) << SESSION_ASK_BITS | (e + 1), BASE_OK);
        audited(w, UINT64_C(0xffffff) << SESSION_ASK_BITS | (e + 1));
        struct session_in in = {.ev = SESSION_EV_AUTHORITY};
        in.u.authority.ask = UINT64_C(0xffffff) << SESSION_ASK_BITS | (e + 1);
        world_event(w, 0, &in);
    }
    answer(w, UINT64_C(7) << SESSION_ASK_BITS | (c->timers.n + 1), BASE_ENOTFOUND); /* one too many */
    answer(w, (UINT64_C(1) << SESSION_ASK_BITS) - 1, BASE_ENOTFOUND);
    answer(w, UINT64_C(7) << SESSION_ASK_BITS, BASE_ENOTFOUND);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_ENDED}); /* flow 0 */
    world_run(w, W_SEC);
    cr_assert(world_passes(w, f));
    world_free(w);
}

/* ---- no digest */
Test(session_answer, without_a_digest_nobody_is_known)
{
    struct world *w = world_usual(1);
    world_digest_fails = true;
    struct w_flow *f = world_flow(w, world_connect(w, 0, W_URI));
    cr_assert(world_refused(f, 503, "Overloaded"), "%s", f->reason);
    world_digest_fails = false;
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200);
    world_digest_fails = true;
    (void)world_binding(w, "acme", "site2", "svc-a", "spiffe://acme/site2");
    world_run(w, 10 * W_MS);
    struct session_conn *n = session_conn_find(w->node[0].core, "acme.site2");
    cr_assert(!n || !n->bound);
    cr_assert(world_passes(w, f));
    world_digest_fails = true; /* a binding whose identities are not known names nobody */
    world_touch(w, world_get(w, "acme.site1"));
    world_run(w, 10 * W_MS);
    cr_assert(f->stopped);
    world_digest_fails = false;
    world_run(w, W_SEC);
    f = world_flow(w, world_connect(w, 0, W_URI));
    cr_assert(world_refused(f, 403, "NoBinding"), "%s", f->reason);
    world_touch(w, world_get(w, "acme.site1"));
    world_run(w, W_SEC);
    cr_assert_eq(world_session(w, 0)->status, 200);
    world_free(w);

    w = world_webhook(1);
    uint64_t flow = world_connect_token(w, 0, W_USER);
    world_digest_fails = true;
    world_run(w, 20 * W_MS);
    cr_assert(world_refused(world_flow(w, flow), 503, "Overloaded"), "%s", world_flow(w, flow)->reason);
    world_digest_fails = false;
    flow = world_connect_token(w, 0, W_USER);
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, flow)->status, 200, "%s", world_flow(w, flow)->reason);
    world_free(w);
}

Test(session_answer, without_a_digest_an_identity_is_none)
{
    struct world *w = world_usual(1);
    struct session_core *c = w->node[0].core;
    struct base_uuid a = session_uuid(c);
    cr_assert_not(base_uuid_is_zero(&a));
    world_digest_fails = true;
    struct base_uuid b = session_uuid(c);
    cr_assert(base_uuid_is_zero(&b), "the API server refuses it; one that repeats it would take");
    world_digest_fails = false;
    b = session_uuid(c);
    cr_assert_not(base_uuid_eq(&a, &b));
    cr_assert_not(base_uuid_is_zero(&b));
    world_free(w);
}
