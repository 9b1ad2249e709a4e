/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports that are not written, or say less: to a binding that is gone or about to go, beside one that is on
 * its way, before the bindings are listed, of an ambiguous identity; and a condition that has no time.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct contract_cond *ready(struct world *w, const char *name)
{
    return &world_get(w, name)->u.binding.status.ready;
}

Test(session_report, a_condition_without_a_time_gets_one)
{
    struct world *w = world_usual(1);
    (void)world_session(w, 0);
    world_conn(w, "acme.site1")->b.ready = true;
    world_conn(w, "acme.site1")->b.ready_since = 0;
    base_wall opened = w->wall0 + w->now / BASE_US;
    world_run(w, 3 * W_SEC);
    cr_assert_str_eq(ready(w, "acme.site1")->reason, "SessionOpen");
    cr_assert_geq(ready(w, "acme.site1")->transition, opened);
    world_free(w);
}

Test(session_report, nothing_is_written_to_a_binding_that_is_gone_or_goes)
{
    for (int deleting = 0; deleting < 2; deleting++) {
        struct world *w = world_usual(1);
        w->node[0].stuck = true; /* its connector stays until the barrier */
        (void)world_session(w, 0);
        unsigned writes = w->node[0].writes[CONTRACT_BINDING];
        if (deleting) {
            struct contract_object *b = world_get(w, "acme.site1");
            b->u.meta.deleting = 1;
            world_touch(w, b);
        } else {
            world_delete(w, "acme.site1");
        }
        cr_assert(world_conn(w, "acme.site1")->report.due, "it was about to be written");
        world_run(w, 5 * W_SEC);
        cr_assert_str_eq(world_state(w, 0), "Retired");
        cr_assert_not(world_conn(w, "acme.site1")->report.due);
        cr_assert_eq(w->node[0].writes[CONTRACT_BINDING], writes);
        world_free(w);
    }
}

/* Both identities of a binding are named by others, too: one is enough, and the second adds nothing. */
Test(session_report, two_ambiguous_identities_are_said_once)
{
    struct world *w = world_usual(1);
    world_second_identity(w, "spiffe://acme/second");
    (void)world_binding(w, "acme", "one", "svc-a", W_URI);
    (void)world_binding(w, "acme", "two", "svc-a", "spiffe://acme/second");
    world_run(w, 10 * W_SEC);
    cr_assert_str_eq(ready(w, "acme.site1")->reason, "AmbiguousIdentity");
    cr_assert_str_eq(ready(w, "acme.one")->reason, "AmbiguousIdentity");
    cr_assert_str_eq(ready(w, "acme.two")->reason, "AmbiguousIdentity");
    world_delete(w, "acme.one");
    world_run(w, 10 * W_SEC);
    cr_assert_str_eq(ready(w, "acme.site1")->reason, "AmbiguousIdentity", "the other one still is");
    world_delete(w, "acme.two");
    world_run(w, 10 * W_SEC);
    cr_assert_str_eq(ready(w, "acme.site1")->reason, "IdentityUnique");
    cr_assert_eq(w->node[0].writes[CONTRACT_BINDING], 4);
    world_free(w);
}

/* While a report is on its way, and while the bindings are not listed, an ambiguous identity is said later. */
Test(session_report, an_ambiguous_identity_waits_for_its_turn)
{
    for (int unlisted = 0; unlisted < 2; unlisted++) {
        struct world *w = world_usual(1);
        if (!unlisted) {
            w->node[0].write_fault[CONTRACT_BINDING] = W_NO_ANSWER;
            w->node[0].fault_skip = 1; /* the reservation */
            (void)world_session(w, 0);
            for (int i = 0; i < 3000 && world_conn(w, "acme.site1")->report.ask == 0; i++)
                world_run(w, W_MS);
            cr_assert_neq(world_conn(w, "acme.site1")->report.ask, 0);
        } else {
            w->node[0].core->listed[CONTRACT_BINDING] = false;
        }
        (void)world_binding(w, "acme", "twin", "svc-a", W_URI);
        world_run(w, 20 * W_MS);
        unsigned writes = w->node[0].writes[CONTRACT_BINDING];
        if (unlisted) {
            world_run(w, 5 * W_SEC);
            cr_assert_eq(w->node[0].writes[CONTRACT_BINDING], writes);
            w->node[0].core->listed[CONTRACT_BINDING] = true;
        } else {
            uint64_t ask = world_conn(w, "acme.site1")->report.ask;
            for (int i = 0; i < 10; i++) { /* looked at again and again */
                world_touch(w, world_get(w, "acme.site1"));
                world_run(w, 500 * W_MS);
                cr_assert_eq(world_conn(w, "acme.site1")->report.ask, ask,
                             "one write of a binding at a time");
            }
        }
        world_run(w, 10 * W_SEC);
        cr_assert_str_eq(ready(w, "acme.site1")->reason, "AmbiguousIdentity", "%d", unlisted);
        world_free(w);
    }
}

/* Refused for want of a durable record, and before that is written the identity has become ambiguous: that is
 * what the condition says, and goes on saying. */
Test(session_report, a_refusal_of_an_ambiguous_identity_leaves_the_condition)
{
    struct world *w = world_usual(1);
    w->node[0].audit_fails = true;
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 503);
    cr_assert(world_conn(w, "acme.site1")->report.sick);
    w->node[0].audit_fails = false;
    (void)world_binding(w, "acme", "twin", "svc-a", W_URI);
    world_run(w, 1200 * W_MS);
    cr_assert_not(world_conn(w, "acme.site1")->report.due);
    cr_assert_str_neq(ready(w, "acme.site1")->reason, "AuditUnavailable");
    world_run(w, 10 * W_SEC);
    cr_assert_str_eq(ready(w, "acme.site1")->reason, "AmbiguousIdentity");
    world_free(w);
}

Test(session_report, a_second_refusal_is_not_reported_again)
{
    struct world *w = world_usual(1);
    w->node[0].audit_fails = true;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(world_session(w, 0)->status, 503);
    base_time at = world_conn(w, "acme.site1")->report.at;
    cr_assert(world_conn(w, "acme.site1")->report.due);
    cr_assert_eq(world_session(w, 0)->status, 503);
    cr_assert_eq(world_conn(w, "acme.site1")->report.at, at, "nor put off");
    unsigned writes = w->node[0].writes[CONTRACT_BINDING];
    world_run(w, 3 * W_SEC);
    cr_assert_eq(w->node[0].writes[CONTRACT_BINDING], writes + 1);
    cr_assert_str_eq(ready(w, "acme.site1")->reason, "AuditUnavailable");
    world_free(w);
}

/* The session ends while its beginning is being reported, and that meets a conflict: the end is what counts. */
Test(session_report, a_conflict_when_there_is_newer_news)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    w->node[0].write_fault[CONTRACT_BINDING] = W_CONFLICT;
    for (int i = 0; i < 3000 && world_conn(w, "acme.site1")->report.ask == 0; i++)
        world_run(w, W_MS);
    cr_assert_neq(world_conn(w, "acme.site1")->report.ask, 0);
    world_end(w, f->flow);
    world_run(w, 2 * W_MS);
    cr_assert(world_conn(w, "acme.site1")->report.due && world_conn(w, "acme.site1")->report.closed);
    unsigned writes = w->node[0].writes[CONTRACT_BINDING];
    world_run(w, 5 * W_SEC);
    cr_assert_eq(w->node[0].writes[CONTRACT_BINDING], writes + 1, "once, not also for the conflict");
    cr_assert_str_eq(ready(w, "acme.site1")->reason, "SessionClosed");
    world_free(w);
}
