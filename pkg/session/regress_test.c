/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server goes back (contract section 5, "Regression"): everything closes, nothing is taken for W,
 * then the rows as stored are the start, without anybody's help.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define W_REGRESS (32600 * W_MS) /* W of the default timing is a little above 32.56 s */

static unsigned rows_written(const struct w_node *n)
{
    return n->writes[CONTRACT_INSTANCE] + n->writes[CONTRACT_CLAIM] + n->writes[CONTRACT_ATTACHMENT];
}

/* From a restore until the wait is over: closed, not ready, nothing written; then back by itself. */
static void closes_and_comes_back(struct world *w, base_time wait)
{
    struct w_node *n = &w->node[0];
    world_run(w, 100 * W_MS);
    unsigned before = rows_written(n);
    cr_assert(!n->ready);
    cr_assert_str_eq(n->ready_reason, "EpochRegressed");
    world_run(w, wait - 200 * W_MS);
    cr_assert(!n->ready);
    cr_assert_eq(rows_written(n), before, "a row was taken before the wait was over");
    cr_assert_geq(world_until(w, 3 * W_SEC, world_is_ready, NULL), 0, "not back: %s", n->ready_reason);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert(world_passes(w, f));
}

Test(session_regress, everything_closes_and_comes_back_after_the_wait)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200);
    struct w_snapshot *s = world_snapshot(w);
    world_run(w, 25 * W_SEC);
    world_restore(w, s, false);
    world_run(w, 20 * W_MS);
    cr_assert_eq(f->deadline, -1, "the session goes on");
    cr_assert(f->closed);
    cr_assert(world_said(&w->node[0], "EpochRegressed"));
    cr_assert_eq(w->node[0].tun_closes, 1u);
    closes_and_comes_back(w, W_REGRESS);
    free(s);
    world_free(w);
}

/* With --bump-revision the version goes up; the objects' own go back. */
Test(session_regress, is_seen_in_a_list_whose_rows_are_older_than_what_it_covers)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct w_snapshot *s = world_snapshot(w);
    world_run(w, 25 * W_SEC);
    world_restore(w, s, true);
    world_run(w, 20 * W_MS);
    cr_assert_eq(f->deadline, -1);
    closes_and_comes_back(w, W_REGRESS);
    free(s);
    world_free(w);
}

/* Each kind of row shows it. */
Test(session_regress, is_seen_in_a_list_of_any_collection)
{
    for (enum contract_kind k = CONTRACT_INSTANCE; k <= CONTRACT_BINDING; k++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        struct session_in in = {.ev = SESSION_EV_RELIST}, row = {.ev = SESSION_EV_ROW};
        struct contract_object *o = NULL;
        world_run(w, 2 * W_SEC);
        for (size_t i = 0; i < w->n_obj; i++)
            if (w->obj[i].kind == k)
                o = &w->obj[i];
        cr_assert_not_null(o);
        struct contract_object old = *o;
        world_touch(w, o);
        world_run(w, W_SEC);
        in.u.collection = k;
        row.u.row.kind = k;
        row.u.row.object = &old;
        /* below the version that is known: it was listed before that came */
        base_copy(in.version, sizeof in.version, old.u.meta.rv);
        world_event(w, 0, &in);
        world_event(w, 0, &row);
        cr_assert_gt(f->deadline, 0, "%s: a list that began earlier was taken for a restore",
                     contract_kind_plural(k));
        base_copy(in.version, sizeof in.version, o->u.meta.rv);
        world_event(w, 0, &in);
        world_event(w, 0, &row);
        cr_assert_eq(f->deadline, -1, "%s", contract_kind_plural(k));
        world_free(w);
    }
}

/* The newer one has another UID (simulator seed 6128): the list shows what was there before it. */
Test(session_regress, is_seen_in_a_list_that_shows_an_object_before_it_was_made_again)
{
    struct world *w = world_usual(1);
    struct session_in in = {.ev = SESSION_EV_RELIST}, row = {.ev = SESSION_EV_ROW};
    world_run(w, 2 * W_SEC);
    struct contract_object *o = world_get(w, "acme.site1"), old = *o;
    o->u.meta.uid = world_uuid(w);
    world_touch(w, o);
    world_run(w, W_SEC);
    cr_assert(w->node[0].ready);
    in.u.collection = row.u.row.kind = CONTRACT_BINDING;
    row.u.row.object = &old;
    base_copy(in.version, sizeof in.version, o->u.meta.rv);
    world_event(w, 0, &in);
    world_event(w, 0, &row);
    cr_assert(!w->node[0].ready);
    cr_assert_str_eq(w->node[0].ready_reason, "EpochRegressed");
    world_free(w);
}

Test(session_regress, waits_for_the_longest_lease_that_was_seen)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200);
    struct contract_object *o = world_the_claim(w);
    o->u.claim.spec.max_lease_seconds = 60;
    world_touch(w, o);
    world_run(w, W_SEC);
    struct w_snapshot *s = world_snapshot(w);
    world_run(w, 5 * W_SEC);
    world_restore(w, s, false);
    closes_and_comes_back(w, contract_wait(&w->node[0].cfg.timing, 60));
    free(s);
    world_free(w);
}

/* The wait is over and the instance held again; then a longer lease is seen: the wait was too short, and goes
 * on. What ends the instance now finds it waiting, not reading. */
Test(session_regress, a_longer_lease_that_is_seen_late)
{
    for (int i = 0; i < 3; i++) {
        struct world *w = world_usual(1);
        (void)world_session(w, 0);
        struct w_snapshot *s = world_snapshot(w);
        world_run(w, 5 * W_SEC);
        world_restore(w, s, false);
        world_run(w, contract_wait(&w->node[0].cfg.timing, LEASE_SECONDS_MAX / 4));
        cr_assert(w->node[0].ready, "%s", w->node[0].ready_reason);
        struct contract_object *o = world_the_claim(w);
        o->u.claim.spec.max_lease_seconds = LEASE_SECONDS_MAX;
        world_touch(w, o);
        world_run(w, 100 * W_MS);
        struct session_in lost = {.ev = SESSION_EV_TUN_LOST};
        lost.u.tun.tun_id = w->node[0].core->att[0].tun_id;
        if (i == 0)
            world_event(w, 0, &lost);
        else if (i == 1)
            world_delete(w, "masque.edge1");
        else
            w->node[0].cut = true;
        world_run(w, i == 2 ? 60 * W_SEC : W_SEC);
        struct session_summary sum;
        session_core_summary(w->node[0].core, &sum);
        cr_assert_str_eq(sum.instance_state, "Retry", "%d: %s", i, sum.reason);
        cr_assert(!w->node[0].ready);
        w->node[0].cut = false;
        world_run(w, contract_wait(&w->node[0].cfg.timing, LEASE_SECONDS_MAX));
        cr_assert(w->node[0].ready, "%d: %s", i, w->node[0].ready_reason);
        free(s);
        world_free(w);
    }
}

/* ---- rows ---- */

enum row { INSTANCE_EPOCH, INSTANCE_OWNER, CLAIM_EPOCH, CLAIM_LEASE, ROWS };
static void goes_back(struct world *w, enum row r)
{
    struct contract_object *i = world_get(w, "masque.edge1"), *k = world_the_claim(w);
    switch (r) {
    case INSTANCE_EPOCH:
        i->u.instance.spec.epoch--;
        i->u.instance.spec.process_id = world_uuid(w);
        break;
    case INSTANCE_OWNER:
        i->u.instance.spec.process_id = world_uuid(w);
        break;
    case CLAIM_EPOCH:
        k->u.claim.spec.epoch--;
        k->u.claim.spec.lease_uuid = world_uuid(w);
        break;
    case CLAIM_LEASE:
        k->u.claim.spec.lease_uuid = world_uuid(w);
        break;
    case ROWS:
        break;
    }
    world_touch(w, r == INSTANCE_EPOCH || r == INSTANCE_OWNER ? i : k);
}

Test(session_regress, a_row_of_an_epoch_that_was_seen_closes_everything)
{
    for (enum row r = 0; r < ROWS; r++) {
        struct world *w = world_usual(1);
        world_agent_kill(w, 0);
        world_agent_start(w, 0); /* instance epoch 2 */
        cr_assert_geq(world_until(w, 5 * W_SEC, world_is_ready, NULL), 0);
        uint64_t first = world_session(w, 0)->flow;
        world_end(w, first);
        world_run(w, 2 * W_SEC);
        struct w_flow *f = world_session(w, 0); /* claim epoch 2 */
        cr_assert_eq(f->status, 200);
        cr_assert_eq(world_the_claim(w)->u.claim.spec.epoch, 2);
        world_run(w, W_SEC);
        goes_back(w, r);
        world_run(w, 50 * W_MS);
        cr_assert_eq(f->deadline, -1, "row %d", r);
        cr_assert(!w->node[0].ready, "row %d", r);
        cr_assert_str_eq(w->node[0].ready_reason, "EpochRegressed", "row %d", r);
        world_run(w, 31 * W_SEC);
        cr_assert(!w->node[0].ready, "row %d", r);
        world_free(w);
    }
}

/* The watch is silent; the renewal meets 409 and reads a version below the one that is known. */
Test(session_regress, an_answer_below_what_was_seen_before_it_was_asked_for)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_run(w, 15 * W_SEC);
    for (int k = 0; k < CONTRACT_KIND_N; k++)
        w->node[0].watch_silent[k] = true;
    struct contract_object *i = world_get(w, "masque.edge1");
    base_copy(i->u.meta.rv, sizeof i->u.meta.rv, "7"); /* an older row with the same content */
    world_run(w, 11 * W_SEC);
    cr_assert_eq(f->deadline, -1);
    cr_assert(world_said(&w->node[0], "EpochRegressed"));
    world_free(w);
}

/* ---- reads ----
 * The watch is silent, etcd was restored without anybody's word, and a request reads what is stored. */
static struct contract_object *kind_of(struct world *w, enum contract_kind k)
{
    for (size_t i = 0; i < w->n_obj; i++)
        if (w->obj[i].kind == k)
            return &w->obj[i];
    cr_assert_fail("no %s", contract_kind_plural(k));
    return NULL;
}

static bool begun(struct world *w, void *arg)
{
    return w->node[0].reads[*(enum contract_kind *)arg] > 0;
}

Test(session_regress, a_read_below_what_was_seen_before_it_was_sent)
{
    enum { BACK, SAME, OVERTAKEN, N };
    for (enum contract_kind k = CONTRACT_SERVICE; k <= CONTRACT_BINDING; k++) {
        for (int i = 0; i < N; i++) {
            struct world *w = world_usual(1);
            struct w_node *n = &w->node[0];
            struct w_flow *f = world_session(w, 0);
            world_end(w, f->flow);
            world_run(w, 3 * W_SEC);
            struct contract_object *o = kind_of(w, k), old = *o;
            if (k == CONTRACT_SERVICE) /* read only when what is known of it is stale */
                n->core->proof[PROOF_SERVICES].t0 = n->core->svc[0].t0 = 0;
            if (i == BACK) { /* shown by the watch, and then gone with its history */
                world_touch(w, o);
                if (k == CONTRACT_CLAIM) /* nobody holds it: what was read last is what was seen */
                    base_copy(n->core->conn[0].known.rv, CONTRACT_RV_SIZE, o->u.meta.rv);
                world_run(w, 20 * W_MS);
                *kind_of(w, k) = old;
            }
            memset(n->reads, 0, sizeof n->reads);
            if (i == OVERTAKEN)
                n->read_fault[k] = W_SLOW;
            (void)world_connect(w, 0, W_URI);
            cr_assert_geq(world_until(w, W_SEC, begun, &k), 0, "%s is not read", contract_kind_plural(k));
            if (i == OVERTAKEN) {
                o = kind_of(w, k);
                world_touch(w, o);
                if (k == CONTRACT_CLAIM) {
                    base_copy(n->core->conn[0].known.rv, CONTRACT_RV_SIZE, o->u.meta.rv);
                    n->core->conn[0].known.at = w->now;
                }
            }
            world_run(w, W_SEC);
            cr_assert_eq(world_said(n, "EpochRegressed") || !n->ready, i == BACK, "%s %d: %s",
                         contract_kind_plural(k), i, n->ready_reason);
            world_free(w);
        }
    }
}

Test(session_regress, an_attachment_below_what_was_seen_before_it_was_read)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    struct w_node *n = world_node(w, 0);
    n->attachments_wait = true;
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    struct contract_object *o = kind_of(w, CONTRACT_ATTACHMENT), old = *o;
    world_touch(w, o);
    world_run(w, W_SEC);
    *o = old;
    world_run(w, 8 * W_SEC); /* it waits for the foundation, and reads now and then */
    cr_assert_str_eq(n->ready_reason, "EpochRegressed");
    world_free(w);
}

/* ---- what is on its way ---- */
static bool reads_binding(struct world *w, void *arg)
{
    (void)arg;
    return w->node[0].reads[CONTRACT_BINDING] > 0;
}

/* A request's reads were answered before the restore, and the answers arrive after it: their versions belong
 * to the lost history and would hide everything that comes. */
Test(session_regress, answers_of_before_change_nothing)
{
    struct world *w = world_usual(1);
    struct w_snapshot *s = world_snapshot(w);
    w->rv = 100000;
    world_touch(w, world_get(w, "acme.site1"));
    world_run(w, W_SEC);
    w->node[0].read_fault[CONTRACT_BINDING] = W_SLOW; /* half a second */
    uint64_t flow = world_connect(w, 0, W_URI);
    cr_assert_geq(world_until(w, W_SEC, reads_binding, NULL), 0);
    world_restore(w, s, false);
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, flow)->status, 0, "it waits");
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.spec.suspended = true; /* at a version far below the late answer's */
    world_touch(w, b);
    world_run(w, 100 * W_MS);
    cr_assert_eq(world_flow(w, flow)->status, 403, "%s", world_flow(w, flow)->reason);
    free(s);
    world_free(w);
}

Test(session_regress, who_waits_is_told_why)
{
    struct world *w = world_usual(1);
    struct w_snapshot *s = world_snapshot(w);
    world_run(w, 5 * W_SEC);
    world_restore(w, s, false);
    world_run(w, W_SEC);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 503);
    cr_assert_eq(strncmp(f->reason, "EpochRegressed:", 15), 0, "%s", f->reason);
    cr_assert_gt(f->retry_after, 0u);
    free(s);
    world_free(w);
}

Test(session_regress, a_drain_does_not_wait_for_it)
{
    struct world *w = world_usual(1);
    struct w_snapshot *s = world_snapshot(w);
    world_run(w, 5 * W_SEC);
    world_restore(w, s, false);
    world_run(w, W_SEC);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    world_run(w, 100 * W_MS);
    cr_assert(w->node[0].drained);
    free(s);
    world_free(w);
}

/* What people shall see of a session waits for the row as stored: a write without its version hits anything. */
Test(session_regress, a_report_waits_for_the_list)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200);
    world_run(w, 3 * W_SEC);
    unsigned before = w->node[0].writes[CONTRACT_BINDING];
    world_end(w, f->flow);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_REGRESSED});
    world_run(w, 5 * W_SEC);
    cr_assert_eq(w->node[0].writes[CONTRACT_BINDING], before);
    world_relist(w, 0);
    world_run(w, 2 * W_SEC);
    cr_assert_gt(w->node[0].writes[CONTRACT_BINDING], before);
    cr_assert_neq(world_get(w, "acme.site1")->u.binding.status.last.until, 0);
    world_free(w);
}

/* A process that had lost its row to another one is no fresh process because of a restore. */
Test(session_regress, a_row_that_was_lost_stays_lost)
{
    struct world *w = world_usual(1);
    struct contract_object *o = world_get(w, "masque.edge1");
    o->u.instance.spec.epoch++;
    o->u.instance.spec.process_id = world_uuid(w);
    o->u.instance.spec.renew.boot_time_us = w->now / BASE_US;
    world_touch(w, o);
    world_run(w, W_SEC);
    cr_assert_str_eq(w->node[0].ready_reason, "InstanceTaken");
    struct w_snapshot *s = world_snapshot(w);
    world_run(w, 5 * W_SEC);
    world_restore(w, s, false);
    world_run(w, W_REGRESS + W_SEC);
    cr_assert_str_eq(w->node[0].ready_reason, "InstanceTaken", "%s", w->node[0].ready_reason);
    world_run(w, 31 * W_SEC);
    cr_assert(w->node[0].ready, "%s", w->node[0].ready_reason);
    free(s);
    world_free(w);
}

/* Two nodes; a takeover that the restore undoes. Nobody overlaps, and the connector comes back. */
Test(session_regress, a_takeover_that_is_undone)
{
    struct world *w = world_usual(2);
    struct w_flow *a = world_session(w, 0);
    world_run(w, W_SEC);
    struct w_snapshot *s = world_snapshot(w);
    struct w_flow *b = world_session(w, 1);
    cr_assert_eq(b->status, 200, "%s", b->reason);
    world_run(w, 3 * W_SEC);
    cr_assert(!world_passes(w, a));
    cr_assert(world_passes(w, b));
    world_restore(w, s, false);
    world_run(w, 50 * W_MS);
    cr_assert(!world_passes(w, b));
    world_run(w, W_REGRESS + 2 * W_SEC);
    struct w_flow *again = world_session(w, 1);
    cr_assert_eq(again->status, 200, "%s", again->reason);
    cr_assert_eq(w->overlaps, 0u);
    free(s);
    world_free(w);
}

/* In every state of the instance: before the start, while a row is read, recorded, written, while it is given
 * back, and after. */
Test(session_regress, in_every_state_of_the_instance)
{
    static const struct session_in regressed = {.ev = SESSION_EV_REGRESSED};
    struct world *w = world_new();
    struct session_summary s;
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    struct w_node *n = world_node(w, 0);
    for (base_time ms = 0; ms < 12; ms++) { /* READING, AUDITING, WRITING, HELD */
        world_agent_start(w, 0);
        world_run(w, ms * W_MS);
        world_event(w, 0, &regressed);
        session_core_summary(n->core, &s);
        cr_assert_str_eq(s.instance_state, "Retry", "%lld ms", (long long)ms);
        cr_assert_str_eq(n->ready_reason, "EpochRegressed");
        world_event(w, 0, &regressed);
        world_relist(w, 0);
        world_run(w, W_REGRESS + 5 * W_SEC);
        cr_assert(n->ready, "%lld ms: %s", (long long)ms, n->ready_reason);
        world_agent_kill(w, 0);
    }
    for (base_time ms = 0; ms < 12; ms++) { /* RELEASING, RELEASED */
        world_agent_start(w, 0);
        cr_assert_geq(world_until(w, 5 * W_SEC, world_is_ready, NULL), 0);
        world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
        world_run(w, ms * W_MS);
        world_event(w, 0, &regressed);
        world_run(w, 20 * W_SEC);
        cr_assert(n->drained, "%lld ms", (long long)ms);
        world_agent_kill(w, 0);
    }
    world_free(w);
}

Test(session_regress, before_the_start)
{
    struct session_core *c = NULL;
    struct world *w = world_new();
    struct w_node *n = world_node(w, 0);
    struct session_in in = {.now = 1000 * W_SEC, .wall = 1, .ev = SESSION_EV_REGRESSED};
    struct session_summary s;
    cr_assert_eq(session_core_new(&c, &n->cfg, NULL), BASE_OK);
    cr_assert_eq(session_core_step(c, &in, &w->out), BASE_OK);
    session_core_check(c);
    in.ev = SESSION_EV_START;
    cr_assert_eq(session_core_step(c, &in, &w->out), BASE_OK);
    session_core_summary(c, &s);
    cr_assert_str_eq(s.instance_state, "Retry");
    session_core_free(c);
    world_free(w);
}
