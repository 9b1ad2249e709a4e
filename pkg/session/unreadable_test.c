/* SPDX-License-Identifier: Apache-2.0
 *
 * An object that the agent cannot read counts as absent (the driver knows its name and version, not its uid):
 * what rested on it ends at once, and comes back when it can be read again.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static void unreadable(struct world *w, enum contract_kind kind, const char *name, uint64_t rv)
{
    struct contract_object o = {.kind = kind};
    struct session_in in = {.ev = SESSION_EV_ROW};
    base_copy(o.u.meta.name, sizeof o.u.meta.name, name);
    (void)base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)rv);
    in.u.row.kind = kind;
    in.u.row.deleted = true;
    in.u.row.object = &o;
    world_event(w, 0, &in);
}

static const char *name_of(struct world *w, enum contract_kind kind)
{
    static char claim[CONTRACT_NAME_SIZE];
    struct contract_object *b = world_get(w, "acme.site1");
    contract_claim_name(claim, &b->u.binding.status.prefix);
    return kind == CONTRACT_INSTANCE     ? "masque.edge1"
           : kind == CONTRACT_ATTACHMENT ? "masque.edge1.vpc-a"
           : kind == CONTRACT_SERVICE    ? "svc-a"
           : kind == CONTRACT_CLAIM      ? claim
                                         : "acme.site1";
}

Test(session_unreadable, each_kind_ends_the_session_at_once)
{
    for (enum contract_kind k = CONTRACT_INSTANCE; k <= CONTRACT_BINDING; k++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        cr_assert_eq(f->status, 200);
        const char *name = name_of(w, k);
        cr_assert_not_null(world_get(w, name), "%s", name);

        unreadable(w, k, "another.name", ++w->rv);
        unreadable(w, k, name, 1); /* older than what is known */
        cr_assert(world_passes(w, f), "kind %d: not this object, or not any more", k);
        unreadable(w, k, name, ++w->rv);
        cr_assert(!world_passes(w, f), "kind %d: the last content that could be read still counts", k);
        world_run(w, W_SEC);
        cr_assert(f->closed, "kind %d", k);
        world_free(w);
    }
}

Test(session_unreadable, a_binding_that_can_be_read_again_admits_again)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    unreadable(w, CONTRACT_BINDING, "acme.site1", ++w->rv);
    world_run(w, W_SEC);
    f = world_session(w, 0);
    cr_assert_eq(f->status, 403, "%s", f->reason);
    cr_assert_not_null(strstr(f->reason, "NoBinding"), "%s", f->reason);
    world_touch(w, world_get(w, "acme.site1"));
    world_run(w, W_SEC);
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    world_free(w);
}

/* A long lease and an API server that refuses connections: far more renewals fail than ever before. None of
 * them may make the row, which still shows the last one that landed, look like another machine's. */
Test(session_unreadable, many_failed_renewals_do_not_look_like_a_twin)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    struct w_node *n = world_node(w, 0);
    n->cfg.timing.lease = 120 * W_SEC;
    world_agent_start(w, 0);
    world_run(w, 2 * W_SEC);
    cr_assert(n->ready, "%s", n->ready_reason);
    n->cut = true;
    for (int i = 0; i < 100; i++) { /* whatever wakes the instance looks at its row */
        world_run(w, W_SEC);
        if (i % 10 == 9) {
            struct session_in in = {.ev = SESSION_EV_ROW};
            in.u.row.kind = CONTRACT_INSTANCE;
            in.u.row.object = world_get(w, "masque.edge1");
            world_event(w, 0, &in);
        }
        struct session_summary s;
        session_core_summary(n->core, &s);
        cr_assert_str_eq(s.instance_state, "Held", "after %d s: %s", i + 1, s.reason);
    }
    n->cut = false;
    world_run(w, 2 * W_SEC);
    cr_assert(n->ready, "%s", n->ready_reason);
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 1);
    world_free(w);
}
