/* SPDX-License-Identifier: Apache-2.0
 *
 * session/guest.c - requests at the door: the policy is asked who they are and whether they may come in,
 * before anything of their connector is touched (EXPECTATIONS.md A4, B9). A valid claim or an open
 * session makes no difference: every request is asked about.
 *
 *   request --token--> IDENTITY --user--> binding, service, target --webhook--> CONNECT --allowed--> connector
 *           --certificate-----------------^                      --no webhook----------------------^
 *
 * Every guest is answered: admitted to its connector's state machine, or refused; unavailable is 503.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

#define NONE UINT32_MAX

static struct session_guest *take(struct session_core *c)
{
    struct session_guest *g;
    if (c->guest_free != NONE) {
        g = &c->guest[c->guest_free];
        c->guest_free = g->next_free;
    } else if (c->guest_fresh < c->cfg.max_guests) {
        g = &c->guest[c->guest_fresh++];
    } else {
        return NULL;
    }
    memset(g, 0, sizeof *g);
    g->used = true;
    return g;
}

static void leave(struct session_core *c, struct session_guest *g)
{
    session_flow_drop(&c->flows, g->w.flow);
    memset(g, 0, sizeof *g);
    session_guest_wake(c, g);
    g->next_free = c->guest_free;
    c->guest_free = (uint32_t)(g - c->guest);
}

static void refuse(struct session_core *c, const struct session_wait *w, struct session_conn *n,
                   struct session_reason why)
{
    session_refuse(c, n, w->flow, why, 0, &w->correlation, w->credential_id);
}

/* Was CONNECT asked about what is true now? */
static bool same(const struct session_guest *g, const struct session_conn *n)
{
    return base_uuid_eq(&g->binding_uid, &n->b.uid) && g->has_prefix == n->b.has_prefix &&
           (!g->has_prefix || base_prefix_eq(&g->prefix, &n->b.prefix));
}

static void ask(struct session_core *c, struct session_guest *g, enum authority_question question,
                const struct session_conn *n)
{
    struct authority_ask q;
    session_policy_fill(c, &q, question, &g->w, n);
    if (n) {
        g->binding_uid = n->b.uid;
        g->has_prefix = n->b.has_prefix;
        g->prefix = n->b.prefix;
    }
    g->question = question;
    g->ask = session_policy_ask(c, session_entity_guest(c, g), &q);
    g->ask_by = base_time_min(base_time_add(c->now, SESSION_POLICY_WAIT),
                              base_time_add(g->w.since, SESSION_REQUEST_WAIT));
    session_guest_wake(c, g);
}

/* Looks at what is known and takes the next step; `g` NULL: it has just come. */
static void go_on(struct session_core *c, struct session_wait *w, struct session_guest *g)
{
    struct session_conn *n = NULL;
    struct session_reason why = session_reason_of(WHY_NONE);
    enum authority_question q = AUTHORITY_ASK_IDENTITY;

    if (!(w->standing.token && w->standing.identity_t0 == 0)) {
        why = session_authenticate(c, w, &n);
        if (!why.name && g && g->question == AUTHORITY_ASK_CONNECT && !same(g, n) &&
            !base_mutant("policy.same-connector"))
            w->standing.permit_t0 = 0; /* permission was given for something else */
        q = authority_authorize((enum authority_policy)c->cfg.policy, &w->standing);
    } else if (!session_admitting(c)) {
        why = session_reason_of(WHY_DRAINING);
    }
    if (!why.name && q != AUTHORITY_ASK_NONE) {
        if (!g && (g = take(c))) {
            g->w = *w;
            session_flow_put(&c->flows, w->flow, SESSION_FLOW_GUEST | (uint32_t)(g - c->guest));
        }
        if (g && ++g->asks <= SESSION_GUEST_ASKS) {
            ask(c, g, q, n);
            return;
        }
        why = session_reason_of(WHY_BUSY);
    }
    struct session_wait in = *w; /* the guest's place is given back first */
    if (g)
        leave(c, g);
    if (why.name)
        refuse(c, &in, n, why);
    else
        session_conn_event(c, n, &(struct conn_in){.ev = CONN_EV_REQUEST, .request = &in});
}

void session_door(struct session_core *c, const struct session_wait *request)
{
    struct session_wait w = *request;
    go_on(c, &w, NULL);
}

void session_guest_told(struct session_core *c, struct session_guest *g, uint64_t ask_number,
                        const struct authority_answer *a, base_time t0)
{
    if (!g->used || ask_number != g->ask)
        return; /* late */
    g->ask = 0;
    struct session_reason why = session_reason_of(WHY_NONE);
    if (a->verdict != AUTHORITY_ALLOWED && a->verdict != AUTHORITY_DENIED) {
        why = session_reason_of(WHY_POLICY_UNAVAILABLE);
    } else {
        struct authority_ask q = {.question = g->question};
        why = session_reason_auth(authority_told(&g->w.standing, &q, a, t0));
        if (!why.name && g->question == AUTHORITY_ASK_IDENTITY) {
            (void)base_copy(g->w.identity, sizeof g->w.identity, a->user);
            (void)base_copy(g->w.credential_id, sizeof g->w.credential_id, a->credential_id);
            if (authority_digest(g->w.digest, CONTRACT_IDENTITY_USER, a->user) != BASE_OK)
                why = session_reason_of(WHY_BUSY);
        }
    }
    if (!why.name) {
        go_on(c, &g->w, g);
        return;
    }
    struct session_wait w = g->w;
    struct session_conn *n = NULL;
    if (g->question == AUTHORITY_ASK_CONNECT)
        (void)session_authenticate(c, &w, &n);
    leave(c, g);
    refuse(c, &w, n, why);
}

void session_guest_gone(struct session_core *c, struct session_guest *g)
{
    leave(c, g); /* an answer on its way is a late one */
}

void session_guest_settle(struct session_core *c, struct session_guest *g)
{
    assert(g->used);
    if (!session_admitting(c)) {
        struct session_wait w = g->w;
        leave(c, g);
        refuse(c, &w, NULL, session_reason_of(WHY_DRAINING));
    } else { /* only a drain and time lead here */
        session_guest_told(c, g, g->ask, &(struct authority_answer){.verdict = AUTHORITY_UNAVAILABLE},
                           c->now);
    }
}

void session_guest_wake(struct session_core *c, struct session_guest *g)
{
    session_timer_set(&c->timers, session_entity_guest(c, g), g->used ? g->ask_by : BASE_TIME_NEVER);
}

void session_guest_check(const struct session_core *c, const struct session_guest *g)
{
    if (!g->used)
        return;
    assert(g->w.flow != 0 && g->ask != 0 && g->asks > 0 && g->asks <= SESSION_GUEST_ASKS);
    assert(session_flow_find(&c->flows, g->w.flow) == (SESSION_FLOW_GUEST | (uint32_t)(g - c->guest)));
    assert(g->question == AUTHORITY_ASK_IDENTITY || g->question == AUTHORITY_ASK_CONNECT);
}
