/* SPDX-License-Identifier: Apache-2.0
 *
 * What watches show, in odd order: versions that cannot be compared, names in one chain, rows that name
 * nobody, rows that cannot be read while several connectors are there, identities that come and go.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

Test(session_catalog, versions)
{
    static const struct {
        const char *a, *b;
        bool older;
    } rows[] = {{"9", "10", true},    {"10", "9", false},  {"10", "10", false}, {"10", "11", true},
                {"", "10", false},    {"10", "", false},   {"", "", false},     {"abc", "10", false},
                {"10", "abc", false}, {"09", "10", false}, {"10", "10x", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_assert_eq(session_older(rows[i].a, rows[i].b), rows[i].older, "%s before %s", rows[i].a,
                     rows[i].b);
}

/* 16 names in 16 chains: some share one. Each is found, and each can be taken out of it. */
Test(session_catalog, names_that_share_a_chain)
{
    enum { N = 16 };
    for (int backwards = 0; backwards < 2; backwards++) {
        struct world *w = world_new();
        char name[N][32], uri[N][40];
        world_service(w, "svc-a", "fd12:0:0:1::/64");
        for (unsigned i = 0; i < N; i++) {
            base_fmt(name[i], sizeof name[i], "acme.c%u", i);
            base_fmt(uri[i], sizeof uri[i], "spiffe://acme/c%u", i);
            world_binding(w, "acme", name[i] + 5, "svc-a", uri[i]);
        }
        world_node(w, 0);
        world_agent_start(w, 0);
        world_run(w, W_SEC);
        struct session_core *c = w->node[0].core;
        unsigned chained = 0;
        for (unsigned i = 0; i < N; i++) {
            cr_assert_str_eq(world_conn(w, name[i])->b.name, name[i]);
            chained += world_conn(w, name[i])->next != 0;
        }
        cr_assert_gt(chained, 0);
        for (unsigned k = 0; k < N; k++) {
            unsigned i = backwards ? N - 1 - k : k;
            world_delete(w, name[i]);
            world_run(w, 20 * W_MS);
            cr_assert_null(session_conn_find(c, name[i]));
            struct session_summary s;
            session_core_summary(c, &s);
            cr_assert_eq(s.bindings, N - 1 - k, "places that are free again do not count");
            for (unsigned j = k + 1; j < N; j++)
                cr_assert_not_null(session_conn_find(c, name[backwards ? N - 1 - j : j]));
        }
        world_free(w);
    }
}

Test(session_catalog, identities_come_and_go)
{
    struct world *w = world_usual(1);
    struct contract_object *b = world_get(w, "acme.site1");
    world_second_identity(w, "spiffe://acme/second");
    world_run(w, 20 * W_MS);
    uint64_t flow = world_connect(w, 0, "spiffe://acme/second");
    world_run(w, W_SEC);
    struct w_flow *f = world_flow(w, flow);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    b = world_get(w, "acme.site1");
    b->u.binding.spec.n_identities = 1;
    world_touch(w, b);
    world_run(w, 20 * W_MS);
    cr_assert(f->stopped, "it is not one of the binding's any more");
    world_run(w, W_SEC);
    flow = world_connect(w, 0, "spiffe://acme/second");
    cr_assert_eq(world_flow(w, flow)->status, 403);
    cr_assert_eq(world_session(w, 0)->status, 200, "the other one is");
    world_free(w);
}

Test(session_catalog, a_claim_that_cannot_be_read_beside_other_connectors)
{
    struct world *w = world_new();
    static const char *const names[] = {"gone", "idle", "open", "coming"};
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    for (int i = 0; i < 4; i++) {
        char uri[40];
        base_fmt(uri, sizeof uri, "spiffe://acme/%s", names[i]);
        world_binding(w, "acme", names[i], "svc-a", uri);
    }
    world_node(w, 0);
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    world_delete(w, "acme.gone"); /* its place is free */
    uint64_t open = world_connect(w, 0, "spiffe://acme/open");
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, open)->status, 200);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
    uint64_t coming = world_connect(w, 0, "spiffe://acme/coming");
    struct session_conn *n = world_conn(w, "acme.coming");
    for (int i = 0; i < 1000 && n->state != CONN_CLAIMING; i++)
        world_run(w, W_MS);
    world_run(w, W_MS);
    cr_assert_eq(n->state, CONN_CLAIMING);

    struct contract_object o = {.kind = CONTRACT_CLAIM};
    contract_claim_name(o.u.meta.name, &n->want);
    base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++w->rv);
    n->cached_uid = world_uuid(w); /* the watch had shown it before */
    world_shown(w, &o, true);
    cr_assert(base_uuid_is_zero(&n->cached_uid), "what it had shown is void");
    cr_assert_eq(n->state, CONN_CLAIMING, "and what was sent is seen through");
    cr_assert(world_passes(w, world_flow(w, open)), "the other one is not meant");
    contract_claim_name(o.u.meta.name, &world_conn(w, "acme.open")->claim.prefix);
    world_shown(w, &o, true);
    cr_assert_not(world_passes(w, world_flow(w, open)));
    base_copy(o.u.meta.name, sizeof o.u.meta.name, "rc-of-nobody");
    world_shown(w, &o, true);
    world_run(w, 3 * W_SEC);
    cr_assert_eq(world_flow(w, coming)->status, 200, "%s", world_flow(w, coming)->reason);
    world_free(w);
}

Test(session_catalog, a_claim_that_names_nobody)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct session_conn *n = world_conn(w, "acme.site1");
    struct contract_object o = {.kind = CONTRACT_CLAIM};
    for (size_t i = 0; i < w->n_obj; i++)
        if (w->obj[i].kind == CONTRACT_CLAIM)
            o = w->obj[i];
    base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++w->rv);
    struct session_claim before = n->claim;
    o.u.meta.uid = world_uuid(w); /* of another object: not this claim's */
    o.u.claim.spec.release_time = 1;
    cr_assert_not(session_claim_apply(w->node[0].core, n, &o.u.claim));
    cr_assert_eq(memcmp(&before, &n->claim, sizeof before), 0);
    base_copy(o.u.claim.spec.tenant, sizeof o.u.claim.spec.tenant, "Not_a_label");
    o.u.claim.spec.release_time = 0;
    o.u.claim.spec.holder.process_id = world_uuid(w);
    world_shown(w, &o, false);
    world_shown(w, &o, true);
    cr_assert_eq(w->node[0].core->jobs_active, 0);
    cr_assert(world_passes(w, f));
    world_free(w);
}
