/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of the policy: bearer tokens, the operator's webhook, what is asked when, and what becomes of
 * outages and refusals; and the row rules of an ordinary acquire and of an expiry.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static struct w_flow *until_answered(struct world *w, uint64_t flow)
{
    cr_assert_geq(world_until(w, 15 * W_SEC, world_answered, &flow), 0, "no answer");
    return world_flow(w, flow);
}

static struct w_flow *token_session(struct world *w, int node)
{
    return until_answered(w, world_connect_token(w, node, W_USER));
}

static bool closed(struct world *w, void *arg)
{
    return world_flow(w, *(uint64_t *)arg)->closed;
}

static unsigned recorded(const struct w_node *n, const char *reason)
{
    unsigned k = 0;
    for (unsigned i = 0; i < n->by_reason_n; i++)
        k += strcmp(n->by_reason[i], reason) == 0;
    return k;
}

static struct world *token_world(int nodes)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    struct contract_binding *b = &world_binding(w, "acme", "site1", "svc-a", W_URI)->u.binding;
    b->spec.n_identities = 2;
    b->spec.identities[1].kind = CONTRACT_IDENTITY_USER;
    base_copy(b->spec.identities[1].value, sizeof b->spec.identities[1].value, W_USER);
    for (int i = 0; i < nodes; i++) {
        world_node(w, i);
        world_agent_start(w, i);
    }
    world_run(w, W_SEC);
    cr_assert(w->node[0].ready);
    return w;
}

/* ---- who is asked what */
Test(session_policy, certificates_under_kubernetes_ask_nobody)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_run(w, 120 * W_SEC);
    cr_assert(world_passes(w, f));
    for (unsigned q = 0; q < 8; q++)
        cr_assert_eq(w->node[0].authority.asked[q], 0);
    world_free(w);
}

Test(session_policy, a_token_is_reviewed_at_the_door_and_again)
{
    struct world *w = token_world(1);
    struct w_node *n = &w->node[0];
    struct w_flow *f = token_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_eq(n->authority.asked[AUTHORITY_ASK_IDENTITY], 1);
    cr_assert_eq(n->authority.last[AUTHORITY_ASK_IDENTITY].token, f->flow, "the handle, nothing else");
    cr_assert_str_eq(n->last_audit[SESSION_AUDIT_ACQUIRE].credential_id, "70ce");
    world_run(w, 60 * W_SEC);
    cr_assert(world_passes(w, f));
    unsigned reviews = n->authority.asked[AUTHORITY_ASK_IDENTITY] - 1;
    cr_assert(reviews >= 6 && reviews <= 15, "%u reviews in 60 s", reviews);
    cr_assert_str_eq(n->authority.last[AUTHORITY_ASK_IDENTITY].identity, W_USER);
    cr_assert_eq(n->authority.asked[AUTHORITY_ASK_CONNECT], 0);
    world_free(w);
}

Test(session_policy, many_tokens_spread_over_the_interval)
{
    /* from one moment on, the times of the next review fill the interval, not its end */
    struct authority_standing s = {.token = true, .identity_t0 = 1000 * BASE_SEC};
    enum authority_question q;
    unsigned third[3] = {0};
    uint64_t draw = 1;
    for (unsigned i = 0; i < 3000; i++) {
        draw = draw * UINT64_C(6364136223846793005) + 1442695040888963407u;
        base_time at =
            authority_refresh(AUTHORITY_POLICY_KUBERNETES, &s, 10 * BASE_SEC, 30 * BASE_SEC, draw >> 11, &q);
        cr_assert(at >= 1004 * BASE_SEC && at <= 1010 * BASE_SEC);
        third[(at - 1004 * BASE_SEC) * 3 / (6 * BASE_SEC + 1)]++;
    }
    for (unsigned i = 0; i < 3; i++)
        cr_assert(third[i] > 800 && third[i] < 1200, "%u of 3000 in third %u", third[i], i);
}

Test(session_policy, refusals_at_the_door_touch_nothing)
{
    static const struct {
        const char *what;
        bool token;
        enum authority_question question;
        enum authority_verdict verdict;
        const char *user; /* whom the token names */
        int status;
        const char *reason;
        unsigned retry_after;
    } rows[] = {
        {"token refused", true, AUTHORITY_ASK_IDENTITY, AUTHORITY_DENIED, "", 401, "Unauthenticated", 0},
        {"nobody reviews", true, AUTHORITY_ASK_IDENTITY, AUTHORITY_UNAVAILABLE, "", 503,
         "AuthorizationUnavailable", 1},
        {"user without binding", true, AUTHORITY_ASK_NONE, 0, "system:serviceaccount:acme:other", 403,
         "NoBinding", 0},
        {"connect refused", false, AUTHORITY_ASK_CONNECT, AUTHORITY_DENIED, "", 403, "NotPermitted", 0},
        {"connect unanswered", false, AUTHORITY_ASK_CONNECT, AUTHORITY_UNAVAILABLE, "", 503,
         "AuthorizationUnavailable", 1},
        {"connect of a token refused", true, AUTHORITY_ASK_CONNECT, AUTHORITY_DENIED, "", 403, "NotPermitted",
         0},
        {"acquire refused", false, AUTHORITY_ASK_ACQUIRE, AUTHORITY_DENIED, "", 403, "NotPermitted", 0},
        {"acquire unanswered", false, AUTHORITY_ASK_ACQUIRE, AUTHORITY_UNAVAILABLE, "", 503,
         "AuthorizationUnavailable", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = world_webhook(1);
        struct w_node *n = &w->node[0];
        if (rows[i].question)
            n->authority.verdict[rows[i].question] = rows[i].verdict;
        base_copy(n->authority.user, sizeof n->authority.user, rows[i].user);
        unsigned before = n->writes[CONTRACT_CLAIM] + n->writes[CONTRACT_BINDING];
        uint64_t flow = rows[i].token ? world_connect_token(w, 0, W_USER) : world_connect(w, 0, W_URI);
        struct w_flow *f = until_answered(w, flow);
        cr_assert(world_refused(f, rows[i].status, rows[i].reason), "%s: %d %s", rows[i].what, f->status,
                  f->reason);
        cr_assert_eq(f->retry_after, rows[i].retry_after, "%s", rows[i].what);
        cr_assert_eq(recorded(n, rows[i].reason), 1, "%s: recorded once", rows[i].what);
        world_run(w, W_SEC);
        cr_assert(!world_has_claim(w), "%s", rows[i].what);
        if (rows[i].question != AUTHORITY_ASK_ACQUIRE) /* before that the reservation is made */
            cr_assert_eq(n->writes[CONTRACT_CLAIM] + n->writes[CONTRACT_BINDING], before, "%s", rows[i].what);
        /* and the way is free as soon as the authority says so */
        memset(n->authority.verdict, 0, sizeof n->authority.verdict);
        n->authority.user[0] = '\0';
        f = until_answered(w, rows[i].token ? world_connect_token(w, 0, W_USER) : world_connect(w, 0, W_URI));
        cr_assert_eq(f->status, 200, "%s: %s", rows[i].what, f->reason);
        world_free(w);
    }
}

Test(session_policy, credentials_that_are_none)
{
    static const struct {
        enum session_identity identity;
        const char *uri;
        int status;
        const char *reason;
    } rows[] = {
        {SESSION_ID_ABSENT, "", 401, "NoCredentials"},
        {SESSION_ID_BAD_TOKEN, "", 401, "BadToken"},
        {SESSION_ID_NONE, "", 403, "NoIdentity"},
        {SESSION_ID_MANY, "", 403, "ManyIdentities"},
        {SESSION_ID_BAD, "", 403, "BadIdentity"},
        {SESSION_ID_URI, "SPIFFE://acme/site1", 403, "BadIdentity"},
        {SESSION_ID_URI, "spiffe://ACME/site1", 403, "BadIdentity"},
        {SESSION_ID_URI, "spiffe://acme/%73ite1", 403, "BadIdentity"},
        {SESSION_ID_URI, "spiffe://acme/a/../site1", 403, "BadIdentity"},
        {SESSION_ID_URI, "spiffe://acme/s\xd1\x96te1", 403, "BadIdentity"}, /* a Cyrillic letter */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = world_webhook(1);
        struct session_out *out = calloc(1, sizeof *out);
        struct session_in in = {.ev = SESSION_EV_REQUEST, .now = w->now, .wall = w->wall0 + w->now / BASE_US};
        in.u.request = (struct session_request){.flow = 500,
                                                .transport = SESSION_H3,
                                                .identity = rows[i].identity,
                                                .any_target = true,
                                                .ipproto = -1,
                                                .correlation.b = {1}};
        base_copy(in.u.request.uri, sizeof in.u.request.uri, rows[i].uri);
        cr_assert_eq(session_core_step(w->node[0].core, &in, out), BASE_OK);
        /* recorded before it is world_answered, and nothing else happens */
        unsigned audit = 99, refuse = 99;
        for (unsigned k = 0; k < out->n_fx; k++) {
            const struct session_fx *fx = &out->fx[k];
            cr_assert(fx->kind == SESSION_FX_AUDIT || fx->kind == SESSION_FX_REFUSE ||
                          fx->kind == SESSION_FX_TRACE,
                      "row %zu: effect %d", i, fx->kind);
            if (fx->kind == SESSION_FX_AUDIT && fx->u.audit.event == SESSION_AUDIT_REJECT)
                audit = k;
            if (fx->kind == SESSION_FX_REFUSE) {
                refuse = k;
                cr_assert_eq(fx->u.refuse.status, rows[i].status, "row %zu: %s", i, fx->u.refuse.reason);
                cr_assert(strncmp(fx->u.refuse.reason, rows[i].reason, strlen(rows[i].reason)) == 0, "%s",
                          fx->u.refuse.reason);
            }
        }
        cr_assert(audit < refuse && refuse != 99, "row %zu", i);
        free(out);
        world_free(w);
    }
}

Test(session_policy, webhook_is_asked_for_each_step)
{
    struct world *w = world_webhook(2);
    struct w_node *n = &w->node[0];
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    const struct authority_ask *q = &n->authority.last[AUTHORITY_ASK_CONNECT];
    cr_assert_str_eq(q->identity, W_URI);
    cr_assert_str_eq(q->tenant, "acme");
    cr_assert_str_eq(q->connector, "site1");
    cr_assert_str_eq(q->vpc, "vpc-a");
    cr_assert_str_eq(q->service, "svc-a");
    cr_assert_str_eq(q->credential_id, "c0ffee");
    cr_assert_str_eq(q->node, "edge1");
    cr_assert(!q->has_prefix && q->epoch == 0);
    q = &n->authority.last[AUTHORITY_ASK_ACQUIRE];
    cr_assert(q->has_prefix && base_prefix_eq(&q->prefix, &f->admit.u.admit.prefix) && q->epoch == 0);
    cr_assert_eq(n->authority.asked[AUTHORITY_ASK_TAKEOVER], 0);
    world_run(w, 60 * W_SEC);
    cr_assert(world_passes(w, f));
    q = &n->authority.last[AUTHORITY_ASK_REFRESH];
    cr_assert(q->has_prefix && base_prefix_eq(&q->prefix, &f->admit.u.admit.prefix) && q->epoch == 1);
    unsigned refreshes = n->authority.asked[AUTHORITY_ASK_REFRESH];
    cr_assert(refreshes >= 6 && refreshes <= 15, "%u", refreshes);
    /* a handoff on the node needs no new claim: the door is enough */
    struct w_flow *g = world_session(w, 0);
    cr_assert_eq(g->status, 200);
    cr_assert_eq(n->authority.asked[AUTHORITY_ASK_CONNECT], 2, "a valid lease bypasses nothing");
    cr_assert(n->authority.last[AUTHORITY_ASK_CONNECT].has_prefix);
    cr_assert_eq(n->authority.asked[AUTHORITY_ASK_RETIRE], 1, "the old session has ended");
    /* another node: takeover of epoch 1 */
    struct w_flow *h = world_session(w, 1);
    cr_assert_eq(h->status, 200, "%s", h->reason);
    q = &w->node[1].authority.last[AUTHORITY_ASK_TAKEOVER];
    cr_assert_eq(w->node[1].authority.asked[AUTHORITY_ASK_TAKEOVER], 1);
    cr_assert_eq(q->epoch, 1, "the observed epoch");
    world_run(w, W_SEC);
    cr_assert_eq(n->authority.asked[AUTHORITY_ASK_RETIRE], 2);
    cr_assert_eq(n->authority.last[AUTHORITY_ASK_RETIRE].epoch, 1);
    world_end(w, h->flow);
    world_run(w, 30 * W_SEC);
    cr_assert_eq(w->node[1].authority.asked[AUTHORITY_ASK_RETIRE], 1, "told once");
    world_free(w);
}

/* ---- takeover */
Test(session_policy, takeover_needs_permission_for_the_observed_epoch)
{
    static const enum authority_verdict no[] = {AUTHORITY_DENIED, AUTHORITY_UNAVAILABLE};
    for (unsigned i = 0; i < 2; i++) {
        struct world *w = world_webhook(2);
        struct w_flow *a = world_session(w, 0);
        w->node[1].authority.verdict[AUTHORITY_ASK_TAKEOVER] = no[i];
        struct w_flow *b = world_session(w, 1);
        a = world_flow(w, a->flow);
        if (no[i] == AUTHORITY_DENIED) {
            cr_assert(world_refused(b, 403, "TakeoverNotPermitted"), "%d %s", b->status, b->reason);
            cr_assert_not_null(strstr(b->reason, "(observed epoch 1)"), "%s", b->reason);
            cr_assert_eq(w->node[1].last_audit[SESSION_AUDIT_REJECT].epoch, 1);
        } else {
            cr_assert(world_refused(b, 503, "AuthorizationUnavailable"), "%d %s", b->status, b->reason);
        }
        world_run(w, 5 * W_SEC);
        cr_assert_eq(world_the_claim(w)->u.claim.spec.epoch, 1);
        cr_assert(world_passes(w, a), "the holder never noticed");
        cr_assert_eq(w->node[1].audits[SESSION_AUDIT_TAKEOVER], 0, "no takeover was decided");
        world_free(w);
    }
}

static void move_on(struct world *w)
{
    struct contract_object *o = world_get(w, world_the_claim(w)->u.claim.meta.name);
    struct contract_claim_spec *s = &o->u.claim.spec;
    s->previous.epoch = s->epoch;
    s->previous.boot_id = s->holder.boot_id;
    base_copy(s->previous.node, sizeof s->previous.node, s->holder.node);
    s->epoch++;
    s->lease_uuid = world_uuid(w);
    o->u.claim.status.closed_epoch = s->epoch - 1;
    o->u.claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
    world_touch(w, o);
}

Test(session_policy, permission_for_one_epoch_is_none_for_the_next)
{
    struct world *w = world_webhook(2);
    (void)world_session(w, 0);
    w->node[1].authority.silent = false;
    uint64_t flow = world_connect(w, 1, W_URI);
    while (w->node[1].authority.asked[AUTHORITY_ASK_TAKEOVER] == 0)
        world_run(w, W_MS);
    move_on(w); /* while the permission is on its way */
    struct w_flow *f = until_answered(w, flow);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_eq(w->node[1].authority.asked[AUTHORITY_ASK_TAKEOVER], 2, "asked again");
    cr_assert_eq(w->node[1].authority.last[AUTHORITY_ASK_TAKEOVER].epoch, 2);
    cr_assert_eq(world_the_claim(w)->u.claim.spec.epoch, 3);
    world_free(w);
}

Test(session_policy, a_newer_request_needs_its_own_permission)
{
    struct world *w = world_webhook(1);
    struct w_node *n = &w->node[0];
    uint64_t a = world_connect(w, 0, W_URI);
    while (n->authority.asked[AUTHORITY_ASK_ACQUIRE] == 0)
        world_run(w, W_MS);
    uint64_t b = world_connect_token(w, 0, W_USER);
    while (n->authority.asked[AUTHORITY_ASK_CONNECT] < 2) /* it is known by now, but not let in */
        world_run(w, W_MS);
    world_run(w, 5 * W_MS);
    struct w_flow *f = until_answered(w, b);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert(world_flow(w, a)->status == 503 || world_flow(w, a)->closed);
    world_free(w);
}

/* The record of a permitted write is not durable yet when a newer request takes the place of the one that was
 * permitted: the write needs that one's permission, too. */
Test(session_policy, a_newer_request_beside_the_record_needs_its_own_permission)
{
    for (unsigned denied = 0; denied < 2; denied++) {
        struct world *w = world_webhook(1);
        struct w_node *n = &w->node[0];
        unsigned before = n->audits[SESSION_AUDIT_ACQUIRE]; /* the instance's */
        n->audit_delay = 500 * W_MS;
        uint64_t a = world_connect(w, 0, W_URI);
        while (n->audits[SESSION_AUDIT_ACQUIRE] == before)
            world_run(w, W_MS);
        if (denied)
            n->authority.verdict[AUTHORITY_ASK_ACQUIRE] = AUTHORITY_DENIED;
        struct w_flow *f = until_answered(w, world_connect_token(w, 0, W_USER));
        cr_assert_eq(world_flow(w, a)->status, 503, "the newest counts");
        cr_assert_eq(n->authority.asked[AUTHORITY_ASK_ACQUIRE], 2, "it was asked about");
        cr_assert_str_eq(n->authority.last[AUTHORITY_ASK_ACQUIRE].identity, W_USER);
        if (denied) {
            cr_assert(world_refused(f, 403, "NotPermitted"), "%d %s", f->status, f->reason);
            world_run(w, 5 * W_SEC);
            cr_assert_not(world_has_claim(w));
        } else {
            cr_assert_eq(f->status, 200, "%s", f->reason);
        }
        world_free(w);
    }
}

/* ---- an open session */
Test(session_policy, a_refused_request_does_not_touch_the_open_session)
{
    struct world *w = world_webhook(1);
    struct w_flow *a = world_session(w, 0);
    w->node[0].authority.verdict[AUTHORITY_ASK_CONNECT] = AUTHORITY_DENIED;
    struct w_flow *b = world_session(w, 0);
    cr_assert(world_refused(b, 403, "NotPermitted"), "%s", b->reason);
    w->node[0].authority.verdict[AUTHORITY_ASK_CONNECT] = 0;
    w->node[0].authority.verdict[AUTHORITY_ASK_IDENTITY] = AUTHORITY_DENIED;
    b = token_session(w, 0);
    cr_assert(world_refused(b, 401, "Unauthenticated"), "%s", b->reason);
    w->node[0].authority.silent = true;
    b = world_session(w, 0);
    cr_assert(world_refused(b, 503, "AuthorizationUnavailable"), "%s", b->reason);
    cr_assert_leq(b->answered - b->asked, 5 * W_SEC);
    a = world_flow(w, a->flow);
    cr_assert(world_passes(w, a) && !a->stopped);
    world_free(w);
}

Test(session_policy, an_answer_of_no_ends_that_session_only)
{
    static const struct {
        bool token;
        enum authority_question question;
        const char *user, *reason;
        int status;
        const char *door; /* the next request is refused with */
    } rows[] = {
        {true, AUTHORITY_ASK_IDENTITY, "", "Unauthenticated", 401, "Unauthenticated"},
        {true, AUTHORITY_ASK_NONE, "somebody@else", "IdentityChanged", 403, "NoBinding"},
        {false, AUTHORITY_ASK_REFRESH, "", "NotPermitted", 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = world_webhook(1);
        world_binding(w, "acme", "site2", "svc-a", "spiffe://acme/site2");
        world_run(w, W_SEC);
        struct w_flow *other = until_answered(w, world_connect(w, 0, "spiffe://acme/site2"));
        struct w_flow *f = rows[i].token ? token_session(w, 0) : world_session(w, 0);
        cr_assert_eq(f->status, 200, "%s", f->reason);
        world_run(w, 12 * W_SEC);
        cr_assert(world_passes(w, f));
        if (rows[i].question == AUTHORITY_ASK_REFRESH) /* the operator's service says no to everybody's … */
            w->node[0].authority.verdict[AUTHORITY_ASK_REFRESH] = AUTHORITY_DENIED;
        else if (rows[i].question)
            w->node[0].authority.verdict[rows[i].question] = AUTHORITY_DENIED;
        base_copy(w->node[0].authority.user, sizeof w->node[0].authority.user, rows[i].user);
        uint64_t flow = f->flow;
        base_time took = world_until(w, 12 * W_SEC, closed, &flow);
        cr_assert(took >= 0, "row %zu: within one interval and its answer", i);
        f = world_flow(w, flow);
        cr_assert_eq(f->deadline, -1);
        cr_assert_geq(recorded(&w->node[0], rows[i].reason), 1, "row %zu", i);
        cr_assert(w->node[0].last_audit[SESSION_AUDIT_REJECT].effect_possible, "row %zu", i);
        if (rows[i].token) {
            cr_assert(world_passes(w, world_flow(w, other->flow)), "row %zu: the other goes on", i);
            f = token_session(w, 0);
            cr_assert(world_refused(f, rows[i].status, rows[i].door), "row %zu: %d %s", i, f->status,
                      f->reason);
        }
        world_free(w);
    }
}

Test(session_policy, unavailable_keeps_the_last_deadline_and_expires_on_it)
{
    for (unsigned i = 0; i < 4; i++) {
        bool token = i & 1, silent = i & 2;
        struct world *w = world_webhook(1);
        struct w_node *n = &w->node[0];
        struct w_flow *f = token ? token_session(w, 0) : world_session(w, 0);
        cr_assert_eq(f->status, 200);
        world_run(w, 20 * W_SEC);
        base_time from = w->now;
        if (silent)
            n->authority.silent = true;
        else
            for (unsigned q = 0; q < 8; q++)
                n->authority.verdict[q] = AUTHORITY_UNAVAILABLE;
        world_run(w, 19 * W_SEC);
        cr_assert(world_passes(w, f), "row %u: an outage of 19 s is not noticed", i);
        uint64_t flow = f->flow;
        cr_assert_geq(world_until(w, 12 * W_SEC, closed, &flow), 0);
        base_time took = w->now - from;
        cr_assert(took <= 30 * W_SEC + 10 * W_MS, "row %u: %lld ms", i, (long long)(took / W_MS));
        cr_assert_eq(recorded(n, "GrantExpired"), 1, "row %u", i);
        cr_assert_eq(n->last_audit[SESSION_AUDIT_EXPIRY].epoch, 1);
        /* it is asked again and again, but not in a storm */
        unsigned asked =
            n->authority.asked[AUTHORITY_ASK_IDENTITY] + n->authority.asked[AUTHORITY_ASK_REFRESH];
        cr_assert_leq(asked, 45, "row %u: %u questions", i, asked);
        /* back at once when it answers again */
        n->authority.silent = false;
        memset(n->authority.verdict, 0, sizeof n->authority.verdict);
        f = token ? token_session(w, 0) : world_session(w, 0);
        cr_assert_eq(f->status, 200, "%s", f->reason);
        cr_assert_leq(f->answered - f->asked, 300 * W_MS);
        world_free(w);
    }
}

Test(session_policy, a_short_outage_is_not_noticed)
{
    struct world *w = world_webhook(1);
    struct w_node *n = &w->node[0];
    struct w_flow *f = token_session(w, 0);
    for (unsigned i = 0; i < 5; i++) {
        n->authority.silent = true;
        world_run(w, 15 * W_SEC);
        n->authority.silent = false;
        world_run(w, 15 * W_SEC);
        cr_assert(world_passes(w, f), "round %u", i);
    }
    world_free(w);
}

Test(session_policy, grants_are_capped_and_short_ones_kept)
{
    static const base_time grants[] = {3600 * W_SEC, 31 * W_SEC, 6 * W_SEC, 1 * W_SEC};
    for (unsigned i = 0; i < 4; i++) {
        struct world *w = world_webhook(1);
        struct w_node *n = &w->node[0];
        n->authority.grant = grants[i];
        struct w_flow *f = world_session(w, 0);
        cr_assert_eq(f->status, 200, "%s", f->reason);
        base_time cap = grants[i] < 30 * W_SEC ? grants[i] : 30 * W_SEC;
        cr_assert_leq(f->deadline, w->now + cap, "grant %u", i);
        for (unsigned k = 0; k < 300; k++) { /* it goes on, and never beyond its grant */
            world_run(w, 100 * W_MS);
            cr_assert(world_passes(w, f), "grant %u after %u ms", i, k * 100);
            cr_assert_leq(f->deadline, w->now + cap);
        }
        n->authority.silent = true;
        world_run(w, cap + 10 * W_MS);
        cr_assert(!world_passes(w, f), "grant %u", i);
        world_free(w);
    }
}

/* ---- at the door */
Test(session_policy, what_changes_while_it_is_asked_about_is_asked_again)
{
    struct world *w = world_webhook(1);
    struct w_node *n = &w->node[0];
    uint64_t flow = world_connect(w, 0, W_URI);
    cr_assert_eq(n->authority.asked[AUTHORITY_ASK_CONNECT], 1);
    world_delete(w, "acme.site1");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    struct w_flow *f = until_answered(w, flow);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_eq(n->authority.asked[AUTHORITY_ASK_CONNECT], 2, "the permission was for another binding");
    world_free(w);

    w = world_webhook(1);
    flow = world_connect(w, 0, W_URI);
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.spec.suspended = true;
    world_touch(w, b);
    f = until_answered(w, flow);
    cr_assert(world_refused(f, 403, "Suspended"), "%d %s", f->status, f->reason);
    world_free(w);
}

Test(session_policy, clients_that_leave_while_they_are_asked_about)
{
    struct world *w = world_webhook(1);
    struct w_node *n = &w->node[0];
    for (unsigned i = 0; i < 40; i++) {
        uint64_t flow = i & 1 ? world_connect_token(w, 0, W_USER) : world_connect(w, 0, W_URI);
        world_run(w, (base_time)(i % 9) * W_MS);
        world_end(w, flow);
    }
    world_run(w, 20 * W_SEC);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert_eq(n->core->guest_free != UINT32_MAX || n->core->guest_fresh == 0, true);
    for (unsigned i = 0; i < n->core->guest_fresh; i++)
        cr_assert(!n->core->guest[i].used);
    world_free(w);
}

Test(session_policy, the_door_has_a_limit)
{
    struct world *w = world_webhook(1);
    struct w_node *n = &w->node[0];
    n->authority.silent = true;
    for (unsigned i = 0; i < SESSION_GUESTS; i++)
        cr_assert_eq(world_flow(w, world_connect_token(w, 0, W_USER))->status, 0);
    struct w_flow *f = world_flow(w, world_connect_token(w, 0, W_USER));
    cr_assert(world_refused(f, 503, "Overloaded") && f->retry_after > 0, "%d %s", f->status, f->reason);
    world_run(w, 5 * W_SEC);
    for (unsigned i = 0; i < SESSION_GUESTS; i++)
        cr_assert(world_refused(&w->flow[i], 503, "AuthorizationUnavailable"), "%s", w->flow[i].reason);
    n->authority.silent = false;
    cr_assert_eq(token_session(w, 0)->status, 200);
    world_free(w);
}

Test(session_policy, a_drain_empties_the_door)
{
    struct world *w = world_webhook(1);
    w->node[0].authority.silent = true;
    uint64_t a = world_connect_token(w, 0, W_USER), b = world_connect(w, 0, W_URI);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    cr_assert(world_refused(world_flow(w, a), 503, "Draining"));
    cr_assert(world_refused(world_flow(w, b), 503, "Draining"));
    uint64_t c = world_connect_token(w, 0, W_USER);
    cr_assert(world_refused(world_flow(w, c), 503, "Draining"));
    world_run(w, 5 * W_SEC);
    cr_assert(w->node[0].drained);
    world_free(w);
}

Test(session_policy, late_answers_are_inert)
{
    struct world *w = world_webhook(1);
    struct w_flow *f = token_session(w, 0);
    for (uint64_t serial = 0; serial < 80; serial++)
        for (uint32_t e = 0; e < 40; e++) {
            struct session_in in = {.ev = SESSION_EV_AUTHORITY};
            uint32_t guest = ENTITY_FIXED + 8 + 16 + 16 + 64;
            in.u.authority.ask = serial << SESSION_ASK_BITS | (e < 20 ? e + 10 : guest + e - 20);
            in.u.authority.t0 = w->now;
            in.u.authority.answer.verdict = AUTHORITY_DENIED;
            if (in.u.authority.ask != w->node[0].core->conn[0].policy.ask)
                world_event(w, 0, &in);
        }
    world_run(w, 5 * W_SEC);
    cr_assert(world_passes(w, f));
    world_free(w);
}

/* ---- row rules */
Test(session_rows, ordinary_acquire_is_refused_with_the_observed_epoch)
{
    static const char *const reasons[] = {"ClaimHeld", "ClaimReleased"};
    for (unsigned released = 0; released < 2; released++) {
        struct world *w = world_usual(1);
        struct base_prefix pool, p;
        cr_assert_eq(base_prefix_parse(&pool, BASE_STR("fd12:0:0:1::/64")), BASE_OK);
        cr_assert_eq(authority_candidate(&p, "acme", "site1", "vpc-a", &pool, 0), BASE_OK);
        /* another connector's row stands where this one's first candidate is */
        struct contract_object o = {.kind = CONTRACT_CLAIM};
        struct contract_claim *k = &o.u.claim;
        contract_claim_name(k->meta.name, &p);
        base_copy(k->spec.provider, sizeof k->spec.provider, "masque");
        base_copy(k->spec.tenant, sizeof k->spec.tenant, "acme");
        base_copy(k->spec.connector, sizeof k->spec.connector, "other");
        base_copy(k->spec.vpc, sizeof k->spec.vpc, "vpc-a");
        base_copy(k->spec.holder.node, sizeof k->spec.holder.node, "edge9");
        base_copy(k->spec.holder.instance, sizeof k->spec.holder.instance, "masque.edge9");
        base_copy(k->spec.service.name, sizeof k->spec.service.name, "svc-a");
        base_copy(k->spec.attachment.name, sizeof k->spec.attachment.name, "masque.edge9.vpc-a");
        base_copy(k->spec.previous.node, sizeof k->spec.previous.node, "edge8");
        k->spec.previous.epoch = 6;
        k->spec.prefix = p;
        k->spec.epoch = 7;
        k->spec.lease_seconds = k->spec.max_lease_seconds = 30;
        k->spec.acquire_time = w->wall0;
        k->spec.release_time = released ? w->wall0 + 1 : 0;
        world_put(w, &o);
        struct w_flow *f = world_session(w, 0);
        cr_assert_eq(f->status, 200, "%s", f->reason);
        cr_assert(!base_prefix_eq(&f->admit.u.admit.prefix, &p));
        const struct session_audit *a = &w->node[0].last_audit[SESSION_AUDIT_REJECT];
        cr_assert_str_eq(a->reason, reasons[released]);
        cr_assert_eq(a->epoch, 7);
        cr_assert_str_eq(a->old_holder, "edge9");
        cr_assert_eq(world_claim(w, o.u.meta.name)->spec.epoch, 7, "it was not touched");
        world_free(w);
    }
}

Test(session_rows, own_released_row_comes_back_by_takeover_with_its_epoch)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    world_end(w, f->flow);
    world_run(w, 5 * W_SEC);
    cr_assert_neq(world_the_claim(w)->u.claim.spec.release_time, 0);
    unsigned acquires = w->node[0].audits[SESSION_AUDIT_ACQUIRE],
             takeovers = w->node[0].audits[SESSION_AUDIT_TAKEOVER];
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200);
    cr_assert_eq(world_the_claim(w)->u.claim.spec.epoch, 2);
    cr_assert_eq(w->node[0].audits[SESSION_AUDIT_ACQUIRE], acquires, "never an ordinary acquire");
    cr_assert_eq(w->node[0].audits[SESSION_AUDIT_TAKEOVER], takeovers + 1);
    cr_assert_eq(w->node[0].last_audit[SESSION_AUDIT_TAKEOVER].epoch, 2);
    world_free(w);
}

Test(session_rows, expiry_of_a_lost_node_is_observed_once)
{
    struct world *w = world_usual(2);
    struct w_flow *f = world_session(w, 0);
    world_agent_kill(w, 0);
    w->node[0].foundation_down = true;
    (void)f;
    uint64_t flow = 0;
    for (unsigned i = 0; i < 60; i++) {
        flow = world_connect(w, 1, W_URI);
        struct w_flow *g = until_answered(w, flow);
        if (g->status == 200)
            break;
        world_run(w, 500 * W_MS);
    }
    cr_assert_eq(world_flow(w, flow)->status, 200);
    cr_assert_eq(recorded(&w->node[1], "TakeoverWaitOver"), 1);
    const struct session_audit *a = &w->node[1].last_audit[SESSION_AUDIT_EXPIRY];
    cr_assert_eq(a->epoch, 1);
    cr_assert_str_eq(a->old_holder, "edge1");
    cr_assert_str_eq(a->new_holder, "edge2");
    world_run(w, 20 * W_SEC);
    cr_assert_eq(recorded(&w->node[1], "TakeoverWaitOver"), 1);
    /* a planned move has none: the old node confirms */
    world_free(w);
    w = world_usual(2);
    (void)world_session(w, 0);
    cr_assert_eq(world_session(w, 1)->status, 200);
    world_run(w, 60 * W_SEC);
    cr_assert_eq(recorded(&w->node[1], "TakeoverWaitOver"), 0);
    world_free(w);
}

Test(session_rows, denied_takeover_names_the_observed_epoch)
{
    struct world *w = world_usual(2);
    struct w_flow *a = world_session(w, 0);
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.spec.takeover = CONTRACT_TAKEOVER_DENIED;
    world_touch(w, b);
    world_run(w, 100 * W_MS);
    struct w_flow *f = world_session(w, 1);
    cr_assert(world_refused(f, 503, "TakeoverDenied"), "%d %s", f->status, f->reason);
    cr_assert_not_null(strstr(f->reason, "(observed epoch 1)"), "%s", f->reason);
    cr_assert_eq(w->node[1].last_audit[SESSION_AUDIT_REJECT].epoch, 1);
    cr_assert(world_passes(w, world_flow(w, a->flow)));
    world_free(w);
}
