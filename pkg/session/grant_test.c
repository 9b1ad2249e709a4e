/* SPDX-License-Identifier: Apache-2.0
 *
 * Bindings with a shorter grant than the provider's (contract sections 2 and 9): proofs come often enough
 * that a session does not notice, and silence ends it after its own grant.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static void set_grant(struct world *w, int32_t seconds)
{
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.spec.grant_seconds = seconds;
    world_touch(w, b);
    world_run(w, 20 * W_MS);
}

Test(session_grant, the_shortest_grant_does_not_interrupt_a_session)
{
    static const int32_t grants[] = {6, 10, 20, 30};
    for (size_t i = 0; i < sizeof grants / sizeof grants[0]; i++) {
        struct world *w = world_usual(1);
        set_grant(w, grants[i]);
        world_run(w, 9 * W_SEC); /* the last proofs are old by now */
        struct w_flow *f = world_session(w, 0);
        cr_assert_eq(f->status, 200, "%d s: %s", (int)grants[i], f->reason);
        cr_assert_lt(f->answered - f->asked, W_SEC, "%d s: admitted after %lld ms", (int)grants[i],
                     (long long)((f->answered - f->asked) / W_MS));
        for (int k = 0; k < 600; k++) {
            world_run(w, 100 * W_MS);
            cr_assert(world_passes(w, f), "%d s: interrupted after %d ms", (int)grants[i], k * 100);
        }
        world_free(w);
    }
}

Test(session_grant, silence_ends_it_after_its_own_grant)
{
    struct world *w = world_usual(1);
    set_grant(w, 6);
    struct w_flow *f = world_session(w, 0);
    world_run(w, 20 * W_SEC);
    w->node[0].watch_silent[CONTRACT_BINDING] = true;
    world_run(w, 3 * W_SEC);
    cr_assert(world_passes(w, f));
    world_run(w, 4 * W_SEC);
    cr_assert(f->closed && !world_passes(w, f));
    world_free(w);
}

static unsigned proofs_of(const struct world *w)
{
    unsigned n = 0;
    for (unsigned i = 0; i < PROOF_N; i++)
        n += w->node[0].core->proof[i].asked;
    return n;
}

/* What the short grant costs is paid while it is in use, not by everybody else for ever. */
Test(session_grant, proofs_are_as_rare_as_before_without_a_short_grant)
{
    unsigned often, rare;
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_run(w, 20 * W_SEC);
    rare = proofs_of(w);
    world_run(w, 60 * W_SEC);
    rare = proofs_of(w) - rare;
    set_grant(w, 6);
    world_run(w, W_SEC);
    if (f->closed)
        f = world_session(w, 0);
    often = proofs_of(w);
    world_run(w, 60 * W_SEC);
    often = proofs_of(w) - often;
    world_end(w, f->flow);
    world_run(w, 20 * W_SEC);
    cr_assert_leq(rare, 3 * 8, "%u proofs of three collections in a minute", rare);
    cr_assert_geq(often, rare + 2 * 20);
    rare = proofs_of(w);
    world_run(w, 60 * W_SEC);
    rare = proofs_of(w) - rare;
    cr_assert_leq(rare, 3 * 8, "%u proofs of three collections in a minute", rare);
    world_free(w);
}
