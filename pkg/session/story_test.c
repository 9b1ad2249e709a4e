/* SPDX-License-Identifier: Apache-2.0 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *claim_name(struct world *w)
{
    static char name[CONTRACT_NAME_SIZE];
    struct contract_object *b = world_get(w, "acme.site1");
    cr_assert(b && b->u.binding.status.has_prefix);
    contract_claim_name(name, &b->u.binding.status.prefix);
    return name;
}

Test(session_story, first_connect_to_release)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert(world_passes(w, f));
    struct contract_claim *k = world_claim(w, claim_name(w));
    cr_assert_not_null(k);
    cr_assert_eq(k->spec.epoch, 1);
    cr_assert_eq(k->spec.release_time, 0);
    cr_assert_lt(f->answered - f->asked, 100 * W_MS);
    world_run(w, 120 * W_SEC);
    cr_assert(world_passes(w, f), "renewals and proofs keep it going");
    world_end(w, f->flow);
    world_run(w, 1 * W_SEC);
    k = world_claim(w, claim_name(w));
    cr_assert_neq(k->spec.release_time, 0);
    cr_assert_eq(k->status.closed_epoch, 1);
    cr_assert_str_eq(world_state(w, 0), "Idle");
    world_free(w);
}

static bool drained(struct world *w, void *arg)
{
    (void)arg;
    return w->node[0].drained;
}

Test(session_story, drain_releases_everything_then_the_instance)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    cr_assert(!world_passes(w, f));
    uint64_t late = world_connect(w, 0, W_URI);
    cr_assert_eq(world_flow(w, late)->status, 503);
    cr_assert_geq(world_until(w, 2 * W_SEC, drained, NULL), 0);
    cr_assert_neq(world_claim(w, claim_name(w))->spec.release_time, 0);
    struct contract_object *i = world_get(w, "masque.edge1");
    cr_assert_neq(i->u.instance.spec.release_time, 0);
    cr_assert(i->u.instance.spec.draining);
    cr_assert_eq(w->node[0].tun_closes, 1);
    cr_assert(f->closed);
    world_free(w);
}
