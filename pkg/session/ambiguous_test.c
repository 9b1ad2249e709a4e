/* SPDX-License-Identifier: Apache-2.0
 *
 * An identity that two bindings name: both say so in their condition Ready, and take it back when it is over.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct contract_binding *binding(struct world *w, const char *name)
{
    return &world_get(w, name)->u.binding;
}

static bool says(struct world *w, const char *name, enum contract_cond_status status, const char *reason)
{
    const struct contract_cond *c = &binding(w, name)->status.ready;
    return c->status == status && strcmp(c->reason, reason) == 0 && c->transition != 0;
}

static unsigned written(const struct world *w)
{
    return w->node[0].writes[CONTRACT_BINDING] + w->node[1].writes[CONTRACT_BINDING];
}

static void twin(struct world *w)
{
    (void)world_binding(w, "acme", "twin", "svc-a", W_URI);
}

Test(session_ambiguous, both_say_so_and_take_it_back)
{
    struct world *w = world_usual(2);
    twin(w);
    world_run(w, 400 * W_MS);
    cr_assert_eq(written(w), 0u, "it may be over in a moment");
    world_run(w, 10 * W_SEC);
    cr_assert(says(w, "acme.site1", CONTRACT_COND_FALSE, "AmbiguousIdentity"));
    cr_assert(says(w, "acme.twin", CONTRACT_COND_FALSE, "AmbiguousIdentity"));
    cr_assert_leq(written(w), 3u, "every agent says what one has said");
    base_wall since = binding(w, "acme.site1")->status.ready.transition;
    unsigned before = written(w);
    world_run(w, 30 * W_SEC);
    cr_assert_eq(written(w), before, "said again");
    world_delete(w, "acme.twin");
    world_run(w, 10 * W_SEC);
    cr_assert(says(w, "acme.site1", CONTRACT_COND_TRUE, "IdentityUnique"));
    cr_assert_gt(binding(w, "acme.site1")->status.ready.transition, since);
    cr_assert_leq(written(w), before + 2);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200);
    world_run(w, 3 * W_SEC);
    cr_assert(says(w, "acme.site1", CONTRACT_COND_TRUE, "SessionOpen"));
    world_free(w);
}

/* It ends as soon as the second binding is seen; its report does not say that all is well. */
Test(session_ambiguous, an_open_session_ends_and_its_report_leaves_the_condition)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_run(w, 3 * W_SEC);
    cr_assert(says(w, "acme.site1", CONTRACT_COND_TRUE, "SessionOpen"));
    twin(w);
    world_run(w, 2 * W_SEC);
    cr_assert_eq(f->deadline, -1);
    cr_assert_neq(binding(w, "acme.site1")->status.last.until, 0, "the end of the session is reported");
    cr_assert(says(w, "acme.site1", CONTRACT_COND_TRUE, "SessionOpen"), "and Ready is left as it was");
    world_run(w, 8 * W_SEC);
    cr_assert(says(w, "acme.site1", CONTRACT_COND_FALSE, "AmbiguousIdentity"));
    cr_assert(binding(w, "acme.site1")->status.has_prefix, "the reservation stays");
    struct contract_object *o = world_get(w, "acme.twin"); /* the operator takes the identity away */
    base_copy(o->u.binding.spec.identities[0].value, 64, "spiffe://acme/twin");
    world_touch(w, o);
    world_run(w, 10 * W_SEC);
    cr_assert(says(w, "acme.site1", CONTRACT_COND_TRUE, "IdentityUnique"));
    cr_assert(says(w, "acme.twin", CONTRACT_COND_TRUE, "IdentityUnique"));
    cr_assert_str_eq(binding(w, "acme.site1")->status.last.node, "edge1", "the report stays");
    world_free(w);
}

/* Who is not ready, or is about to delete it, says nothing; after a conflict it is said again. */
Test(session_ambiguous, who_does_not_say_it)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    twin(w);
    world_node(w, 0)->foundation_down = true;
    world_agent_start(w, 0);
    world_run(w, 30 * W_SEC);
    cr_assert_eq(written(w), 0u);
    world_get(w, "acme.twin")->u.binding.meta.deleting = 1;
    world_touch(w, world_get(w, "acme.twin"));
    w->node[0].foundation_down = false;
    w->node[0].write_fault[CONTRACT_BINDING] = W_CONFLICT;
    world_run(w, 30 * W_SEC);
    cr_assert(says(w, "acme.site1", CONTRACT_COND_FALSE, "AmbiguousIdentity"));
    cr_assert_eq(binding(w, "acme.twin")->status.ready.status, CONTRACT_COND_ABSENT);
    cr_assert_eq(written(w), 2u);
    world_free(w);
}
