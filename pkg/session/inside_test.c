/* SPDX-License-Identifier: Apache-2.0
 *
 * From the inside: each condition alone, each part of "mine" alone, what a proof and a read-back are anchored
 * at. Stories reach these guards only together with others; here one thing is wrong at a time.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

/* Delivers nothing, only time: so that dirty things are looked at. */
static void tick(struct world *w)
{
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_TICK});
}

Test(session_inside, each_condition_alone)
{
    enum {
        ALL_HOLD,
        GENERATION,
        PREFIX,
        NO_PREFIX,
        REREAD,
        HOLDER,
        RELEASED,
        DELETING,
        ACCEPTED_EPOCH,
        ACCEPTED_LEASE,
        GATE_EPOCH,
        GATE_STATE,
        EARLIER,
        IDENTITY,
        INST_EPOCH,
        INST_PROCESS,
        ATT_UID,
        ATT_EPOCH,
        ATT_ACCEPTED,
        ATT_UNREADY,
        ATT_DELETING,
        ATT_DEVICE,
        TUN,
        NOW,
        N
    };
    static const char *const want[N] = {
        [ALL_HOLD] = NULL,
        [GENERATION] = "Superseded",
        [PREFIX] = "PrefixChanged",
        [NO_PREFIX] = "PrefixChanged",
        [REREAD] = "BindingUnconfirmed",
        [HOLDER] = "ClaimLost",
        [RELEASED] = "ClaimLost",
        [DELETING] = "ClaimDeleted",
        [ACCEPTED_EPOCH] = "ClaimNotAccepted",
        [ACCEPTED_LEASE] = "ClaimNotAccepted",
        [GATE_EPOCH] = "GateNotOpen",
        [GATE_STATE] = "GateNotOpen",
        [EARLIER] = "TakeoverWait",
        [IDENTITY] = "InstanceLost",
        [INST_EPOCH] = "InstanceNotAccepted",
        [INST_PROCESS] = "InstanceNotAccepted",
        [ATT_UID] = "AttachmentNotReady",
        [ATT_EPOCH] = "AttachmentNotReady",
        [ATT_ACCEPTED] = "AttachmentNotReady",
        [ATT_UNREADY] = "AttachmentNotReady",
        [ATT_DELETING] = "AttachmentNotReady",
        [ATT_DEVICE] = "AttachmentNotReady",
        [TUN] = "AttachmentNotReady",
        [NOW] = "LeaseExpired",
    };
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0); /* epoch 1 */
        world_end(w, f->flow);
        world_run(w, 2 * W_SEC);
        f = world_session(w, 0); /* epoch 2, confirmed */
        cr_assert_eq(f->status, 200);
        struct session_core *c = w->node[0].core;
        struct session_conn *n = world_conn(w, "acme.site1");
        struct session_attachment *a = session_att_of(c, n);
        struct session_claim *k = &n->claim;
        switch (i) {
        case GENERATION:
            n->ses.current = false;
            break;
        case PREFIX: /* the pin and the claim agree, the binding does not */
            n->b.prefix.addr.b[11] ^= 1;
            n->pin.prefix = n->b.prefix;
            break;
        case NO_PREFIX:
            n->b.has_prefix = false;
            break;
        case REREAD:
            n->reread = false;
            break;
        case HOLDER:
            k->mine = false;
            break;
        case RELEASED:
            k->released = true;
            break;
        case DELETING:
            k->deleting = true;
            break;
        case ACCEPTED_EPOCH:
            k->accepted_epoch--;
            break;
        case ACCEPTED_LEASE:
            k->accepted_lease = world_uuid(w);
            break;
        case GATE_EPOCH:
            k->gate_epoch--;
            break;
        case GATE_STATE:
            k->gate_open = false;
            break;
        case EARLIER:
            k->closed_epoch = 0;
            break;
        case IDENTITY:
            k->identity--;
            break;
        case INST_EPOCH:
            c->inst.row.status.accepted_epoch--;
            break;
        case INST_PROCESS:
            c->inst.row.status.accepted_process_id = world_uuid(w);
            break;
        case ATT_UID:
            k->attachment_uid = world_uuid(w);
            break;
        case ATT_EPOCH:
            a->row.spec.instance_epoch--;
            break;
        case ATT_ACCEPTED:
            a->row.status.accepted_instance_epoch--;
            break;
        case ATT_UNREADY:
            a->row.status.ready.status = CONTRACT_COND_FALSE;
            break;
        case ATT_DELETING:
            a->row.meta.deleting = 1;
            break;
        case ATT_DEVICE:
            base_copy(a->row.status.device, sizeof a->row.status.device, "hf99999999");
            break;
        case TUN:
            a->tun_open = false;
            break;
        case NOW:
            c->now = session_deadline(c, n, NULL);
            break;
        }
        struct session_reason why = session_conditions(c, n, false);
        if (want[i])
            cr_assert(why.name && strcmp(why.name, want[i]) == 0, "%d: %s instead of %s", i,
                      why.name ? why.name : "OK", want[i]);
        else
            cr_assert_null(why.name, "%s", why.name);
        world_free(w);
    }
}

Test(session_inside, deadline_is_exact)
{
    struct world *w = world_usual(1);
    (void)world_session(w, 0);
    struct session_core *c = w->node[0].core;
    struct session_conn *n = world_conn(w, "acme.site1");
    base_time until = session_deadline(c, n, NULL);
    c->now = until - 1;
    cr_assert_null(session_conditions(c, n, false).name);
    c->now = until;
    cr_assert_not_null(session_conditions(c, n, false).name, "at the deadline it is over");
    world_free(w);
}

Test(session_inside, each_part_of_mine_alone)
{
    for (int i = 0; i < 4; i++) {
        struct world *w = world_usual(1);
        (void)world_session(w, 0);
        struct session_core *c = w->node[0].core;
        struct session_conn *n = world_conn(w, "acme.site1");
        struct contract_claim row;
        for (size_t k = 0; k < w->n_obj; k++)
            if (w->obj[k].kind == CONTRACT_CLAIM)
                row = w->obj[k].u.claim;
        base_copy(row.meta.rv, sizeof row.meta.rv, "999999");
        if (i == 1)
            row.spec.holder.process_id = world_uuid(w);
        if (i == 2)
            row.spec.epoch++;
        if (i == 3)
            row.spec.lease_uuid = world_uuid(w);
        cr_assert(session_claim_apply(c, n, &row));
        cr_assert_eq(n->claim.mine, i == 0, "%d", i);
        /* and what was lost does not come back */
        row.spec.holder.process_id = c->inst.me.process_id;
        row.spec.epoch = n->claim.epoch;
        row.spec.lease_uuid = n->claim.lease_uuid;
        base_copy(row.meta.rv, sizeof row.meta.rv, "1000000");
        cr_assert(session_claim_apply(c, n, &row));
        cr_assert_eq(n->claim.mine, i == 0, "%d", i);
        world_free(w);
    }
}

static uint64_t proof_ask(struct world *w, unsigned i)
{
    struct session_proof *p = &w->node[0].core->proof[i];
    p->next_at = w->now;
    session_dirty(w->node[0].core, ENTITY_PROOF + i);
    tick(w);
    return p->ask[(p->asked - 1) % SESSION_PROOFS];
}

Test(session_inside, a_proof_counts_from_its_t0_and_for_rows_that_are_in_it)
{
    enum { GOOD, LOST, RELEASED, DELETING, NOT_IN_CACHE_YET, NOT_IN_CACHE, N };
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(1);
        (void)world_session(w, 0);
        world_run(w, 3 * W_SEC);
        struct session_conn *n = world_conn(w, "acme.site1");
        for (unsigned p = 0; p < PROOF_N; p++) {
            struct session_in in = {.ev = SESSION_EV_PROOF};
            in.u.proof.ask = proof_ask(w, p);
            in.u.proof.proved = true;
            in.u.proof.t0 = w->now - 500 * W_MS;
            if (p == PROOF_CLAIMS) {
                n->claim.mine = n->claim.mine && i != LOST;
                n->claim.released = i == RELEASED;
                n->claim.deleting = i == DELETING;
                n->claim.in_cache = i != NOT_IN_CACHE && i != NOT_IN_CACHE_YET;
                if (i == NOT_IN_CACHE_YET)
                    n->claim.first_seen = in.u.proof.t0 + 1; /* written after t0: not in it, and no loss */
            }
            base_time before = n->claim.t0, at = in.u.proof.t0;
            world_event(w, 0, &in);
            cr_assert_eq(w->node[0].core->proof[p].t0, at, "the proof counts from t0");
            if (p == PROOF_CLAIMS && (i == GOOD || i == NOT_IN_CACHE_YET)) {
                cr_assert_eq(n->claim.t0, i == GOOD ? at : before, "%d", i);
                cr_assert(n->claim.mine);
            } else if (p == PROOF_CLAIMS) {
                cr_assert_leq(n->claim.t0, before, "%d: a row that is not in it is extended", i);
                cr_assert_str_eq(world_state(w, 0), "Stopping");
            }
        }
        world_free(w);
    }
}

Test(session_inside, proofs_from_the_future_or_without_time_prove_nothing)
{
    struct world *w = world_usual(1);
    (void)world_session(w, 0);
    base_time before = w->node[0].core->proof[0].t0;
    for (int i = 0; i < 3; i++) {
        struct session_in in = {.ev = SESSION_EV_PROOF};
        in.u.proof.ask = proof_ask(w, 0);
        in.u.proof.proved = i != 2;
        in.u.proof.t0 = i == 0 ? w->now + 1 : i == 1 ? 0 : w->now;
        world_event(w, 0, &in);
        cr_assert_eq(w->node[0].core->proof[0].t0, before, "%d", i);
    }
    world_free(w);
}

Test(session_inside, a_read_back_claim_counts_from_its_send)
{
    static const enum w_fault faults[] = {W_NO_FAULT, W_LANDED, W_NO_ANSWER};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct world *w = world_usual(1);
        w->node[0].write_fault[CONTRACT_CLAIM] = faults[i];
        w->node[0].watch_silent[CONTRACT_CLAIM] = true;
        (void)world_connect(w, 0, W_URI);
        base_time sent = 0;
        while (sent == 0) {
            world_run(w, W_MS);
            if (strcmp(world_state(w, 0), "Claiming") == 0)
                sent = w->now;
        }
        world_run(w, 8 * W_SEC);
        struct session_conn *n = world_conn(w, "acme.site1");
        cr_assert(n->state == CONN_WAITING || n->state == CONN_FORWARDING, "%s", world_state(w, 0));
        cr_assert_leq(n->claim.t0, sent, "fault %d: it counts from %lld ms after its send", faults[i],
                      (long long)((n->claim.t0 - sent) / W_MS));
        cr_assert_geq(n->claim.first_seen, sent, "the wait counts from after the commit");
        world_free(w);
    }
}

Test(session_inside, release_means_one_object)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_end(w, f->flow);
    struct contract_object *k = NULL;
    for (size_t i = 0; i < w->n_obj; i++)
        if (w->obj[i].kind == CONTRACT_CLAIM)
            k = &w->obj[i];
    cr_assert_not_null(k);
    k->u.meta.uid = world_uuid(w); /* another object of that name, whatever it says */
    unsigned writes = w->node[0].writes[CONTRACT_CLAIM];
    world_run(w, 2 * W_SEC);
    cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], writes);
    world_free(w);
}

Test(session_inside, an_identity_holds_one_epoch_at_most)
{
    /* the create is lost and will land late; the next one is made in the name of another identity */
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_node(w, 0);
    w->node[0].write_fault[CONTRACT_INSTANCE] = W_LATE;
    world_agent_start(w, 0);
    world_run(w, 2 * W_SEC);
    cr_assert(w->node[0].ready);
    cr_assert_not(base_uuid_eq(&w->late_object.u.instance.spec.process_id,
                               &world_get(w, "masque.edge1")->u.instance.spec.process_id));
    world_free(w);
}

Test(session_inside, a_claim_of_an_attachment_before_this_one_is_given_back)
{
    struct world *w = world_usual(1);
    w->node[0].foundation_down = true;
    uint64_t flow = world_connect(w, 0, W_URI);
    world_run(w, 200 * W_MS);
    cr_assert_str_eq(world_state(w, 0), "Waiting");
    world_delete(w, "masque.edge1.vpc-a");
    world_run(w, 200 * W_MS); /* it is made again */
    cr_assert_not_null(world_get(w, "masque.edge1.vpc-a"));
    cr_assert_eq(world_flow(w, flow)->status, 503);
    w->node[0].foundation_down = false;
    world_run(w, 500 * W_MS);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    world_free(w);
}

/* session_core_check is an oracle of every other test: it has to notice. */
#define NOTICES(name, change)                                                                                \
    Test(session_check, name, .signal = SIGABRT)                                                             \
    {                                                                                                        \
        struct world *w = world_usual(1);                                                                    \
        (void)world_session(w, 0);                                                                           \
        struct session_core *c = w->node[0].core;                                                            \
        struct session_conn *n = world_conn(w, "acme.site1");                                                \
        session_core_check(c);                                                                               \
        (void)n;                                                                                             \
        change;                                                                                              \
        session_core_check(c);                                                                               \
    }
NOTICES(a_deadline_above_the_least_part, n->ses.deadline = BASE_TIME_NEVER)
NOTICES(a_waiting_request_beside_a_session, n->req.flow = 77)
NOTICES(a_wrong_count, c->busy = 0)
NOTICES(a_session_without_a_claim, n->claim.uid = (struct base_uuid){{0}})
NOTICES(an_instance_without_an_epoch, c->inst.me.epoch = 0)
NOTICES(a_timer_out_of_order, c->timers.at[c->timers.heap[c->timers.n_heap - 1]] = 1)
NOTICES(a_desk_that_is_lost, c->n_desk_free--)
NOTICES(a_release_that_is_lost, c->jobs_active++)

Test(session_inside, an_attachment_that_was_deleted_unseen_is_made_again)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_node(w, 0);
    world_agent_start(w, 0);
    world_run(w, 6 * W_MS);
    w->node[0].watch_silent[CONTRACT_ATTACHMENT] = true;
    w->node[0].attachments_wait = true;
    world_run(w, 100 * W_MS);
    cr_assert_not_null(world_get(w, "masque.edge1.vpc-a"));
    world_delete(w, "masque.edge1.vpc-a");
    world_run(w, 8 * W_SEC);
    cr_assert_not_null(world_get(w, "masque.edge1.vpc-a"));
    world_free(w);
}

/* An answer that came after the watch had shown the deletion made the agent believe in a row, and a device,
 * that are gone; nothing else would ever tell. */
Test(session_inside, a_device_that_cannot_be_opened_is_looked_up_again)
{
    struct world *w = world_usual(1);
    w->node[0].watch_silent[CONTRACT_ATTACHMENT] = true;
    world_delete(w, "masque.edge1.vpc-a");
    struct session_in lost = {.ev = SESSION_EV_TUN};
    struct session_attachment *a = &w->node[0].core->att[0];
    lost.u.tun.tun_id = a->tun_id;
    lost.u.tun.code = BASE_EDENIED;
    w->node[0].tun_fails = true;
    world_event(w, 0, &lost);
    world_run(w, W_SEC);
    cr_assert_not_null(world_get(w, "masque.edge1.vpc-a"), "it is made again");
    w->node[0].tun_fails = false;
    world_run(w, 5 * W_SEC);
    cr_assert_eq(world_session(w, 0)->status, 200);
    world_free(w);
}

/* Two processes that each believe to be this node's take each other's attachment away: as fast as the API
 * server answers, were it not for the pause. */
Test(session_inside, an_attachment_that_is_taken_away_again_and_again_is_fought_for_slowly)
{
    struct world *w = world_usual(1);
    w->node[0].writes[CONTRACT_ATTACHMENT] = 0;
    for (int i = 0; i < 2000; i++) {
        struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
        if (a && !base_uuid_eq(&a->u.attachment.spec.instance.uid, &w->node[0].core->inst.me.instance_uid)) {
            world_run(w, 5 * W_MS);
            continue;
        }
        struct contract_object other = {.kind = CONTRACT_ATTACHMENT};
        if (a) {
            other = *a;
            world_delete(w, "masque.edge1.vpc-a");
            other.u.attachment.spec.instance.uid = world_uuid(w);
            other.u.attachment.status = (struct contract_attachment_status){0};
            world_put(w, &other);
        }
        world_run(w, 5 * W_MS);
    }
    cr_assert_gt(w->node[0].writes[CONTRACT_ATTACHMENT], 2u, "it does not give in");
    cr_assert_lt(w->node[0].writes[CONTRACT_ATTACHMENT], 80u, "in ten seconds");
    world_free(w);
}

Test(session_inside, an_expiry_is_recorded_once_for_an_epoch)
{
    for (int before = 0; before < 2; before++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        struct session_conn *n = world_conn(w, "acme.site1");
        if (before) { /* somebody waited it out and said so */
            n->expired.uid = n->claim.uid;
            n->expired.epoch = n->claim.epoch;
        }
        w->node[0].watch_silent[CONTRACT_CLAIM] = true;
        while (!f->stopped)
            world_run(w, W_SEC);
        cr_assert_eq(w->node[0].audits[SESSION_AUDIT_EXPIRY], before ? 0 : 1);
        world_free(w);
    }
}
