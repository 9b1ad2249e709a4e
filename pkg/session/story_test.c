/* SPDX-License-Identifier: Apache-2.0 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

Test(session_story, first_connect_to_release)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert(world_passes(w, f));
    struct contract_claim *k = world_claim(w, world_claim_name(w));
    cr_assert_not_null(k);
    cr_assert_eq(k->spec.epoch, 1);
    cr_assert_eq(k->spec.release_time, 0);
    cr_assert_lt(f->answered - f->asked, 100 * W_MS);
    world_run(w, 120 * W_SEC);
    cr_assert(world_passes(w, f), "renewals and proofs keep it going");
    world_end(w, f->flow);
    world_run(w, 1 * W_SEC);
    k = world_claim(w, world_claim_name(w));
    cr_assert_neq(k->spec.release_time, 0);
    cr_assert_eq(k->status.closed_epoch, 1);
    cr_assert_str_eq(world_state(w, 0), "Idle");
    world_free(w);
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
    cr_assert_geq(world_until(w, 2 * W_SEC, world_drained, NULL), 0);
    cr_assert_neq(world_claim(w, world_claim_name(w))->spec.release_time, 0);
    struct contract_object *i = world_get(w, "masque.edge1");
    cr_assert_neq(i->u.instance.spec.release_time, 0);
    cr_assert(i->u.instance.spec.draining);
    cr_assert_eq(w->node[0].tun_closes, 1);
    cr_assert(f->closed);
    unsigned said = 0;
    for (unsigned r = 0; r < w->node[0].by_reason_n; r++) {
        said += strcmp(w->node[0].by_reason[r], "Draining") == 0;
        cr_assert_str_neq(w->node[0].by_reason[r], "AuthorityEnded");
    }
    cr_assert_eq(said, 2, "the late request's refusal, and the release");
    world_free(w);
}

/* ---- coming and going */
Test(session_story, reconnect_on_the_same_node_is_a_takeover)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct base_prefix first = f->admit.u.admit.prefix;
    world_end(w, f->flow);
    world_run(w, 3 * W_SEC);
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert(base_prefix_eq(&first, &f->admit.u.admit.prefix));
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, 2);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.previous.epoch, 1);
    cr_assert_eq(f->admit.u.admit.generation, 2);
    world_free(w);
}

Test(session_story, a_connector_that_is_back_within_the_barrier_keeps_its_claim)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    uint64_t old = f->flow;
    world_end(w, old);
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, 1);
    cr_assert_eq(f->admit.u.admit.generation, 2);
    world_run(w, W_SEC);
    cr_assert(world_passes(w, f));
    world_free(w);
}

Test(session_story, takeover_confirmed_by_a_living_foundation)
{
    struct world *w = world_usual(2);
    struct w_flow *a = world_session(w, 0);
    cr_assert_eq(a->status, 200);
    struct w_flow *b = world_session(w, 1);
    cr_assert_eq(b->status, 200, "%s", b->reason);
    cr_assert_lt(b->answered - b->asked, W_SEC);
    struct contract_claim *k = world_claim(w, world_claim_name(w));
    cr_assert_eq(k->spec.epoch, 2);
    cr_assert_eq(k->status.closed_reason, CONTRACT_CLOSED_CONFIRMED);
    cr_assert(a->closed && !world_passes(w, a));
    world_run(w, 5 * W_SEC);
    /* the old holder's release is inert, and recorded */
    k = world_claim(w, world_claim_name(w));
    cr_assert_eq(k->spec.epoch, 2);
    cr_assert_eq(k->spec.release_time, 0);
    cr_assert(world_passes(w, b));
    cr_assert_geq(w->node[0].audits[SESSION_AUDIT_REJECT], 1);
    world_free(w);
}

/* The lab's client: again after 100 ms on a 503, until it is admitted. */
static struct w_flow *insist(struct world *w, int node, base_time span)
{
    base_time end = w->now + span;
    for (;;) {
        uint64_t flow = world_connect(w, node, W_URI);
        cr_assert_geq(world_until(w, 20 * W_SEC, world_answered, &flow), 0);
        struct w_flow *f = world_flow(w, flow);
        if (f->status == 200 || w->now >= end)
            return f;
        world_run(w, 100 * W_MS);
    }
}

Test(session_story, takeover_waits_when_nobody_can_confirm)
{
    struct world *w = world_usual(2);
    struct w_flow *a = world_session(w, 0);
    cr_assert_eq(a->status, 200);
    /* node 0 is cut off: agent and foundation see nothing, its gate stays open until its deadline */
    w->node[0].cut = true;
    w->node[0].foundation_down = true;
    base_time from = w->now;
    uint64_t first = world_connect(w, 1, W_URI);
    world_run(w, 11 * W_SEC);
    struct w_flow *f = world_flow(w, first);
    cr_assert_eq(f->status, 503);
    cr_assert(strncmp(f->reason, "TakeoverWait", 12) == 0, "%s", f->reason);
    cr_assert(f->retry_after > 15 && f->retry_after < 25, "%u", f->retry_after);
    cr_assert_str_eq(world_state(w, 1), "Waiting"); /* the claim survives its request */
    struct w_flow *b = insist(w, 1, 60 * W_SEC);
    cr_assert_eq(b->status, 200, "%s", b->reason);
    base_time took = b->answered - from;
    base_time wait = contract_wait(&w->node[0].cfg.timing, 30);
    cr_assert(took >= wait && took <= wait + W_SEC, "%lld ms", (long long)(took / W_MS));
    struct contract_claim *k = world_claim(w, world_claim_name(w));
    cr_assert_eq(k->spec.epoch, 2, "the next request joined the waiting claim");
    cr_assert_eq(k->status.closed_reason, CONTRACT_CLOSED_WAITED);
    cr_assert(world_passes(w, b) && !world_passes(w, a));
    world_free(w);
}

Test(session_story, a_waiting_claim_that_nobody_joins_is_given_back)
{
    struct world *w = world_usual(2);
    (void)world_session(w, 0);
    w->node[0].cut = true;
    w->node[0].foundation_down = true;
    uint64_t flow = world_connect(w, 1, W_URI);
    world_run(w, 200 * W_MS);
    world_end(w, flow);
    world_run(w, 34 * W_SEC);
    cr_assert_str_eq(world_state(w, 1), "Waiting");
    world_run(w, 12 * W_SEC);
    cr_assert_str_eq(world_state(w, 1), "Idle");
    cr_assert_neq(world_claim(w, world_claim_name(w))->spec.release_time, 0);
    world_free(w);
}

Test(session_story, silent_claim_watches_do_not_overlap)
{
    /* node 0's claim watches (agent's and foundation's) are silent while its instance keeps renewing */
    struct world *w = world_usual(2);
    struct w_flow *a = world_session(w, 0);
    w->node[0].watch_silent[CONTRACT_CLAIM] = true;
    w->node[0].foundation_watch_silent = true;
    base_time from = w->now;
    struct w_flow *b = insist(w, 1, 60 * W_SEC);
    cr_assert_eq(b->status, 200);
    cr_assert_geq(w->now - from, contract_wait(&w->node[0].cfg.timing, 30));
    cr_assert(!world_passes(w, a));
    cr_assert(a->closed, "the claim's proof ended the session");
    struct contract_object *i = world_get(w, "masque.edge1");
    cr_assert_gt(i->u.instance.spec.renew.boot_time_us * BASE_US, w->now - 12 * W_SEC, "the instance lives");
    world_free(w);
}

Test(session_story, suspended_ends_at_once_and_resumes_within_a_second)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.spec.suspended = true;
    world_touch(w, b);
    world_run(w, 10 * W_MS);
    cr_assert(!world_passes(w, f) && f->closed);
    world_run(w, W_SEC);
    cr_assert_neq(world_claim(w, world_claim_name(w))->spec.release_time, 0);
    struct w_flow *no = world_session(w, 0);
    cr_assert_eq(no->status, 403);
    cr_assert(strncmp(no->reason, "Suspended", 9) == 0, "%s", no->reason);
    cr_assert_eq(no->retry_after, 1);
    b = world_get(w, "acme.site1");
    b->u.binding.spec.suspended = false;
    world_touch(w, b);
    world_run(w, 10 * W_MS);
    base_time from = w->now;
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_lt(w->now - from, W_SEC);
    cr_assert_eq(world_claim(w, world_claim_name(w))->spec.epoch, 2);
    world_free(w);
}

/* ---- losing it */
Test(session_story, what_ends_a_session)
{
    enum cause {
        REVOKED,
        SERVICE_GONE,
        SERVICE_PAST,
        BINDING_GONE,
        BINDING_AGAIN,
        PREFIX_CLEARED,
        IDENTITY,
        AMBIGUOUS,
        CLAIM_DELETING,
        CLAIM_RELEASED,
        CLAIM_GONE,
        GATE_SHUT,
        INSTANCE_GONE,
        INSTANCE_TAKEN,
        ATT_UNREADY,
        TUN_LOST,
        DESTINATIONS,
        TWIN,
        CAUSES
    };
    static const struct {
        const char *what, *reason; /* of the audit record or the last refusal */
        base_time within;
    } rows[CAUSES] = {
        [REVOKED] = {"service revoked", "ServiceRevoked", 20 * BASE_MS},
        [SERVICE_GONE] = {"service deleted", "NoService", 20 * BASE_MS},
        [SERVICE_PAST] = {"service expired", "ServiceExpired", 300 * BASE_SEC},
        [BINDING_GONE] = {"binding deleted", "NoBinding", 20 * BASE_MS},
        [BINDING_AGAIN] = {"binding made again", "NoBinding", 20 * BASE_MS},
        [PREFIX_CLEARED] = {"reservation cleared", "PrefixChanged", 20 * BASE_MS},
        [IDENTITY] = {"identity removed", "IdentityRemoved", 20 * BASE_MS},
        [AMBIGUOUS] = {"second binding with this identity", "AmbiguousIdentity", 20 * BASE_MS},
        [CLAIM_DELETING] = {"claim being deleted", "ClaimDeleted", 20 * BASE_MS},
        [CLAIM_RELEASED] = {"claim released by hand", "ClaimLost", 20 * BASE_MS},
        [CLAIM_GONE] = {"claim gone", "ClaimLost", 20 * BASE_MS},
        [GATE_SHUT] = {"gate shut", "GateNotOpen", 20 * BASE_MS},
        [INSTANCE_GONE] = {"instance deleted", "InstanceLost", 20 * BASE_MS},
        [INSTANCE_TAKEN] = {"instance taken over", "InstanceTaken", 20 * BASE_MS},
        [ATT_UNREADY] = {"attachment not ready", "AttachmentNotReady", 20 * BASE_MS},
        [TUN_LOST] = {"device gone", "TunLost", 20 * BASE_MS},
        [DESTINATIONS] = {"destinations changed", "ServiceChanged", 20 * BASE_MS},
        [TWIN] = {"a renewal that was never sent", "InstanceTaken", 20 * BASE_MS},
    };
    for (int i = 0; i < CAUSES; i++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        cr_assert_eq(f->status, 200, "%s", rows[i].what);
        struct contract_object *svc = world_get(w, "svc-a"), *b = world_get(w, "acme.site1");
        struct contract_object *k = world_get(w, world_claim_name(w)), *in = world_get(w, "masque.edge1");
        struct contract_object *at = world_get(w, "masque.edge1.vpc-a");
        switch ((enum cause)i) {
        case REVOKED:
            svc->u.service.revoked = true;
            world_touch(w, svc);
            break;
        case SERVICE_GONE:
            world_delete(w, "svc-a");
            break;
        case SERVICE_PAST:
            break; /* nobody moves validUntil on */
        case BINDING_GONE:
            world_delete(w, "acme.site1");
            break;
        case BINDING_AGAIN:
            world_delete(w, "acme.site1");
            world_binding(w, "acme", "site1", "svc-a", W_URI);
            break;
        case PREFIX_CLEARED:
            b->u.binding.status.has_prefix = false;
            world_touch(w, b);
            break;
        case IDENTITY:
            base_copy(b->u.binding.spec.identities[0].value, 513, "spiffe://acme/other");
            world_touch(w, b);
            break;
        case AMBIGUOUS:
            world_binding(w, "acme", "site2", "svc-a", W_URI);
            break;
        case CLAIM_DELETING:
            k->u.meta.deleting = 1;
            world_touch(w, k);
            break;
        case CLAIM_RELEASED:
            k->u.claim.spec.release_time = 1;
            world_touch(w, k);
            break;
        case CLAIM_GONE:
            world_delete(w, world_claim_name(w));
            break;
        case GATE_SHUT:
            k->u.claim.status.gate.state = CONTRACT_GATE_CLOSED;
            world_touch(w, k);
            break;
        case INSTANCE_GONE:
            world_delete(w, "masque.edge1");
            break;
        case INSTANCE_TAKEN:
            world_take_instance(w);
            break;
        case ATT_UNREADY:
            at->u.attachment.status.ready.status = CONTRACT_COND_FALSE;
            world_touch(w, at);
            break;
        case TUN_LOST: {
            struct session_in ev = {.ev = SESSION_EV_TUN_LOST};
            ev.u.tun.tun_id = f->admit.u.admit.tun_id;
            world_event(w, 0, &ev);
            break;
        }
        case DESTINATIONS:
            svc->u.service.n_destinations = 0;
            world_touch(w, svc);
            break;
        case TWIN:
            in->u.instance.spec.renew.boot_time_us++;
            world_touch(w, in);
            break;
        case CAUSES:
            break;
        }
        base_time from = w->now;
        while (!f->stopped && w->now - from <= rows[i].within)
            world_run(w, rows[i].within > W_SEC ? W_SEC : 2 * W_MS);
        cr_assert(f->stopped, "%s: still forwarding", rows[i].what);
        cr_assert(f->closed, "%s", rows[i].what);
        cr_assert_eq(f->deadline, -1, "%s", rows[i].what);
        cr_assert_gt(w->node[0].by_reason_n, 0, "%s", rows[i].what);
        bool found = false;
        for (unsigned r = 0; r < w->node[0].by_reason_n; r++)
            found = found || strcmp(w->node[0].by_reason[r], rows[i].reason) == 0;
        cr_assert(found, "%s: no record says %s", rows[i].what, rows[i].reason);
        if (i == SERVICE_PAST)
            cr_assert_geq(w->now - from, 285 * W_SEC, "not before its time");
        world_run(w, W_SEC);
        world_free(w);
    }
}

Test(session_story, proof_silence_ends_the_session_at_its_deadline)
{
    static const struct {
        enum contract_kind kind;
        const char *reason;
        base_time at_least, at_most;
    } rows[] = {
        {CONTRACT_CLAIM, "ClaimProofExpired", 17 * BASE_SEC, 28 * BASE_SEC},
        {CONTRACT_BINDING, "GrantExpired", 19 * BASE_SEC, 30 * BASE_SEC},
        {CONTRACT_SERVICE, "GrantExpired", 19 * BASE_SEC, 30 * BASE_SEC},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        world_run(w, 25 * W_SEC);
        cr_assert(world_passes(w, f));
        w->node[0].watch_silent[rows[i].kind] = true;
        base_time from = w->now, last = 0;
        while (!f->stopped && w->now - from < 60 * W_SEC) {
            last = f->deadline;
            world_run(w, 50 * W_MS);
        }
        cr_assert(f->stopped && w->now - from >= rows[i].at_least &&
                      w->now - from <= rows[i].at_most + 100 * W_MS,
                  "%s after %lld ms", rows[i].reason, (long long)((w->now - from) / W_MS));
        cr_assert_leq(last, w->now);
        bool found = false;
        for (unsigned r = 0; r < w->node[0].by_reason_n; r++)
            found = found || strcmp(w->node[0].by_reason[r], rows[i].reason) == 0;
        cr_assert(found, "%s", rows[i].reason);
        cr_assert_geq(w->node[0].audits[SESSION_AUDIT_EXPIRY], 1);
        world_free(w);
    }
}

Test(session_story, api_outage_ends_on_time_and_is_back_within_a_second)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_run(w, 25 * W_SEC);
    w->node[0].cut = true;
    base_time from = w->now;
    while (!f->stopped && w->now - from < 60 * W_SEC)
        world_run(w, 50 * W_MS);
    cr_assert(w->now - from >= 17 * W_SEC && w->now - from <= 28 * W_SEC + 100 * W_MS);
    world_run(w, 30 * W_SEC);
    cr_assert(!w->node[0].ready);
    w->node[0].cut = false;
    from = w->now;
    f = insist(w, 0, 10 * W_SEC);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_leq(w->now - from, W_SEC, "%lld ms", (long long)((w->now - from) / W_MS));
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 2, "a new process identity");
    world_free(w);
}

Test(session_story, short_outage_is_not_noticed)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_run(w, 25 * W_SEC);
    w->node[0].cut = true;
    world_run(w, 17 * W_SEC);
    cr_assert(world_passes(w, f));
    w->node[0].cut = false;
    world_run(w, 60 * W_SEC);
    cr_assert(world_passes(w, f));
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 1);
    world_free(w);
}

/* ---- what each path costs (contract section 12): no round trip more than this */
Test(session_story, requests_of_each_path)
{
    struct world *w = world_usual(2);
    struct w_node *a = &w->node[0], *b = &w->node[1];
    world_run(w, 100 * W_MS); /* the first proofs */
    memset(a->reads, 0, sizeof a->reads);
    memset(a->writes, 0, sizeof a->writes);
    struct w_flow *f = world_session(w, 0);
    /* first connect: binding; claims of the connector; reservation; claim; beside the accept the binding
     * again */
    cr_assert(a->reads[CONTRACT_BINDING] == 2 && a->reads[CONTRACT_CLAIM] == 1 &&
              a->reads[CONTRACT_SERVICE] == 0);
    cr_assert(a->writes[CONTRACT_BINDING] == 1 && a->writes[CONTRACT_CLAIM] == 1);
    world_end(w, f->flow);
    world_run(w, 5 * W_SEC);

    memset(a->reads, 0, sizeof a->reads);
    memset(a->writes, 0, sizeof a->writes);
    base_time from = w->now;
    f = world_session(w, 0);
    /* reconnect: binding and claim side by side; takeover; beside the accept the binding again */
    cr_assert(a->reads[CONTRACT_BINDING] == 2 && a->reads[CONTRACT_CLAIM] == 1 &&
              a->reads[CONTRACT_SERVICE] == 0);
    cr_assert(a->writes[CONTRACT_BINDING] == 0 && a->writes[CONTRACT_CLAIM] == 1);
    cr_assert_lt(w->now - from, 50 * W_MS, "%lld ms", (long long)((w->now - from) / W_MS));
    world_run(w, 5 * W_SEC);

    memset(b->reads, 0, sizeof b->reads);
    memset(b->writes, 0, sizeof b->writes);
    from = w->now;
    f = world_session(w, 1);
    /* takeover from a living node: the same; a conflict with the old node's foundation may cost one more
     * round */
    cr_assert_eq(f->status, 200);
    cr_assert(b->reads[CONTRACT_BINDING] == 2 && b->reads[CONTRACT_CLAIM] <= 2 &&
              b->writes[CONTRACT_CLAIM] <= 2);
    cr_assert_eq(b->writes[CONTRACT_BINDING], 0);

    /* steady state: one write and three proofs in an interval, no read */
    memset(b->reads, 0, sizeof b->reads);
    memset(b->writes, 0, sizeof b->writes);
    world_run(w, 5 * W_SEC);
    memset(b->writes, 0, sizeof b->writes);
    world_run(w, 100 * W_SEC);
    unsigned writes = 0, reads = 0;
    for (int k = CONTRACT_INSTANCE; k <= CONTRACT_BINDING; k++) {
        writes += b->writes[k];
        reads += b->reads[k];
    }
    cr_assert(writes >= 9 && writes <= 13, "%u", writes);
    cr_assert_eq(reads, 0, "%u", reads);
    world_free(w);
}
