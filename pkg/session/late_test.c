/* SPDX-License-Identifier: Apache-2.0
 *
 * A claim that landed late and has no session is released at once (contract section 4), also when the watch
 * showed it while its connector was still being looked at, and nobody came back to it.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

Test(session_late, seen_by_the_watch_and_then_nobody_waits)
{
    for (int takeover = 0; takeover < 2; takeover++) {
        struct world *w = world_usual(1);
        if (takeover) {
            world_end(w, world_session(w, 0)->flow);
            world_run(w, 3 * W_SEC);
        }
        w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
        uint64_t flow = world_connect(w, 0, W_URI);
        world_until_conn(w, "Retrying", 2 * W_SEC);
        world_land(w);
        world_run(w, 60 * W_MS); /* the watch shows it */
        cr_assert_str_eq(world_state(w, 0), "Retrying");
        world_end(w, flow);
        world_run(w, W_SEC);
        cr_assert_str_eq(world_state(w, 0), "Idle");
        struct contract_claim *k = world_claim(w, world_claim_name(w));
        cr_assert_not_null(k);
        cr_assert_eq(k->spec.epoch, takeover ? 2 : 1);
        cr_assert_neq(k->spec.release_time, 0, "held by this process, with no session");
        world_free(w);
    }
}

Test(session_late, seen_by_the_watch_and_then_the_api_goes_away)
{
    struct world *w = world_usual(1);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Retrying", 2 * W_SEC);
    world_land(w);
    world_run(w, 60 * W_MS);
    w->node[0].read_fault[CONTRACT_CLAIM] = W_DOWN;
    world_run(w, 2 * W_SEC);
    cr_assert_eq(world_flow(w, flow)->status, 503, "%s", world_flow(w, flow)->reason);
    cr_assert_str_eq(world_state(w, 0), "Idle");
    cr_assert_neq(world_claim(w, world_claim_name(w))->spec.release_time, 0,
                  "held by this process, with no session");
    world_free(w);
}

/* The answer to a read is older than what the watch has shown of that row meanwhile: it changes nothing
 * (contract section 5, row proof), and the row is read again. Nothing else would ever tell that the gate is
 * open. */
Test(session_late, an_answer_that_the_watch_has_overtaken_is_read_again)
{
    struct world *w = world_usual(1);
    world_end(w, world_session(w, 0)->flow);
    world_run(w, 3 * W_SEC);
    w->node[0].foundation_down = true;
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Retrying", 2 * W_SEC);
    world_land(w);
    w->node[0].read_fault[CONTRACT_CLAIM] = W_SLOW;
    world_until_conn(w, "Checking", 2 * W_SEC);
    w->node[0].foundation_down = false;
    world_run(w, 3 * W_SEC);
    cr_assert_eq(world_claim(w, world_claim_name(w))->status.gate.state, CONTRACT_GATE_OPEN);
    cr_assert_eq(world_flow(w, flow)->status, 200, "%s, %d %s", world_state(w, 0),
                 world_flow(w, flow)->status, world_flow(w, flow)->reason);
    world_free(w);
}

/* A takeover landed; before its answer came, another process took the row over, and a list of this node's
 * claims no longer had it. The watch will not speak of the row again: what it showed of an older epoch is no
 * reason to wait for this one's accept (simulator seed 19580222: for ever). */
Test(session_late, a_takeover_that_the_watch_shows_neither_now_nor_later_is_not_waited_for)
{
    struct world *w = world_usual(1);
    world_end(w, world_session(w, 0)->flow);
    world_run(w, 3 * W_SEC);
    struct session_conn *n = session_conn_find(w->node[0].core, "acme.site1");
    n->cached_uid =
        world_claim(w, world_claim_name(w))->meta.uid; /* epoch 1 was shown before its write was answered */
    base_copy(n->cached_rv, sizeof n->cached_rv, world_claim(w, world_claim_name(w))->meta.rv);

    w->node[0].watch_silent[CONTRACT_CLAIM] = true;
    w->node[0].write_fault[CONTRACT_CLAIM] = W_LATE;
    (void)world_connect(w, 0, W_URI);
    world_until_conn(w, "Retrying", 2 * W_SEC);
    world_land(w);
    w->node[0].read_fault[CONTRACT_CLAIM] = W_SLOW;
    world_until_conn(w, "Checking", 2 * W_SEC);
    world_run(w, 100 * W_MS);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, 2);
    world_claim(w, world_claim_name(w))->spec.epoch = 3;
    world_claim(w, world_claim_name(w))->spec.lease_uuid = world_uuid(w);
    world_claim(w, world_claim_name(w))->spec.holder.process_id = world_uuid(w);
    (void)base_copy(world_claim(w, world_claim_name(w))->spec.holder.node, CONTRACT_NAME_SIZE, "edge9");
    world_touch(w, world_get(w, world_claim(w, world_claim_name(w))->meta.name));
    world_relist(w, 0);
    world_run(w, 100 * W_MS);
    w->node[0].watch_silent[CONTRACT_CLAIM] = false;
    world_until_conn(w, "Waiting", 2 * W_SEC);
    cr_assert_eq(n->claim.epoch, 2);
    for (int k = 0; k < 5; k++) { /* somebody always waits */
        world_run(w, 3 * W_SEC);
        (void)world_connect(w, 0, W_URI);
    }
    cr_assert_neq(n->claim.epoch, 2, "%s", world_state(w, 0));
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, 4, "taken over, in its turn");
    world_free(w);
}

/* The binding goes while a claim is being written. */
static uint64_t binding_goes(struct world *w)
{
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Claiming", 2 * W_SEC);
    struct contract_object o = *world_get(w, "acme.site1");
    base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++w->rv);
    world_shown(w, &o, true);
    cr_assert_str_eq(world_state(w, 0), "Claiming", "what was sent is seen through");
    return flow;
}

/* ... and the write fails: nobody asks for that row again (simulator seed 19528). */
Test(session_late, a_claim_that_fails_for_a_binding_that_is_gone)
{
    struct world *w = world_usual(1);
    world_end(w, world_session(w, 0)->flow);
    world_run(w, 3 * W_SEC);
    w->node[0].write_fault[CONTRACT_CLAIM] = W_CONFLICT;
    uint64_t flow = binding_goes(w);
    unsigned reads = w->node[0].reads[CONTRACT_CLAIM];
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, flow)->status, 403, "%s", world_flow(w, flow)->reason);
    cr_assert_eq(w->node[0].reads[CONTRACT_CLAIM], reads);
    world_free(w);
}

/* ... and its answer is older than what the watch has shown: it landed, and is given back. */
Test(session_late, a_claim_that_is_overtaken_for_a_binding_that_is_gone)
{
    struct world *w = world_usual(1);
    world_end(w, world_session(w, 0)->flow);
    world_run(w, 3 * W_SEC);
    struct session_conn *n = session_conn_find(w->node[0].core, "acme.site1");
    w->node[0].watch_silent[CONTRACT_CLAIM] = true;
    uint64_t flow = binding_goes(w);
    n->cached_uid = world_claim(w, world_claim_name(w))->meta.uid;
    base_fmt(n->cached_rv, sizeof n->cached_rv, "%llu", (unsigned long long)w->rv + 1000);
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, flow)->status, 403, "%s", world_flow(w, flow)->reason);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, 2);
    cr_assert_neq(world_claim(w, world_claim_name(w))->spec.release_time, 0,
                  "held by this process, with no session");
    world_free(w);
}

/* The binding was absent when it was read; before that answer comes, the watch shows a new one. The answer
 * has no version to compare, and the watch would not bring the row a second time: nobody would be admitted
 * until somebody edits the binding. */
Test(session_late, an_absence_that_the_watch_has_overtaken_is_read_again)
{
    struct world *w = world_usual(1);
    struct contract_object was = *world_get(w, "acme.site1");
    world_end(w, world_session(w, 0)->flow);
    world_run(w, 3 * W_SEC);

    w->node[0].watch_silent[CONTRACT_BINDING] = true; /* its deletion is not seen */
    world_delete(w, "acme.site1");
    w->node[0].read_fault[CONTRACT_BINDING] = W_SLOW;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Reading", 2 * W_SEC);
    world_run(w, 100 * W_MS);
    w->node[0].watch_silent[CONTRACT_BINDING] = false;
    world_put(w, &was);
    world_run(w, 3 * W_SEC);
    cr_assert_eq(world_flow(w, flow)->status, 200, "%s, %d %s", world_state(w, 0),
                 world_flow(w, flow)->status, world_flow(w, flow)->reason);
    world_free(w);
}

/* ... but an absence that nothing has overtaken is believed, and ends what is open. */
Test(session_late, an_absence_that_nothing_has_overtaken_counts)
{
    struct world *w = world_usual(1);
    world_end(w, world_session(w, 0)->flow);
    world_run(w, 3 * W_SEC);
    w->node[0].watch_silent[CONTRACT_BINDING] = true;
    world_delete(w, "acme.site1");
    w->node[0].read_fault[CONTRACT_BINDING] = W_SLOW;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, flow)->status, 403, "%s", world_flow(w, flow)->reason);
    world_free(w);
}

/* A foundation that saw the service revoked, for a moment that this agent did not see, closed the epoch:
 * closing is final (contract section 8), and waiting for that epoch to open would never end. */
Test(session_late, an_epoch_that_was_closed_before_it_opened_is_given_back)
{
    struct world *w = world_usual(1);
    world_end(w, world_session(w, 0)->flow);
    world_run(w, 3 * W_SEC);
    w->node[0].foundation_down = true;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_until_conn(w, "Waiting", 2 * W_SEC);
    int64_t epoch = world_claim(w, world_claim_name(w))->spec.epoch;
    world_claim(w, world_claim_name(w))->status.closed_epoch = epoch;
    for (size_t i = 0; i < w->n_obj; i++)
        if (w->obj[i].kind == CONTRACT_CLAIM)
            world_touch(w, &w->obj[i]);
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, flow)->status, 503, "%s", world_state(w, 0));
    cr_assert_not_null(strstr(world_flow(w, flow)->reason, "ClaimClosed"), "%s", world_flow(w, flow)->reason);
    cr_assert_neq(world_claim(w, world_claim_name(w))->spec.release_time, 0);
    w->node[0].foundation_down = false;
    world_run(w, W_SEC);
    cr_assert_eq(world_session(w, 0)->status, 200);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, epoch + 1);
    world_free(w);
}
