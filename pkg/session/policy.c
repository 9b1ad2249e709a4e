/* SPDX-License-Identifier: Apache-2.0
 *
 * session/policy.c - what the policy's outside is asked for a connector: before a claim is written, and again
 * for as long as a session lasts. What the answers are worth is authority/standing.h's business.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

static enum authority_policy policy(const struct session_core *c)
{
    return (enum authority_policy)c->cfg.policy;
}

uint64_t session_policy_ask(struct session_core *c, uint32_t entity, const struct authority_ask *q)
{
    struct session_fx *fx = session_fx(c, SESSION_FX_AUTHORIZE);
    fx->u.authorize.ask = q->question == AUTHORITY_ASK_RETIRE ? 0 : session_ask(c, entity);
    fx->u.authorize.q = *q;
    return fx->u.authorize.ask;
}

static void fill_connector(const struct session_core *c, struct authority_ask *q,
                           const struct session_conn *n)
{
    (void)base_copy(q->provider, sizeof q->provider, c->cfg.provider);
    (void)base_copy(q->node, sizeof q->node, c->cfg.node);
    if (!n)
        return;
    (void)base_copy(q->tenant, sizeof q->tenant, n->b.tenant);
    (void)base_copy(q->connector, sizeof q->connector, n->b.connector);
    (void)base_copy(q->vpc, sizeof q->vpc, n->b.vpc);
    (void)base_copy(q->service, sizeof q->service, n->b.service);
    q->has_prefix = n->b.has_prefix;
    q->prefix = n->b.prefix;
}

void session_policy_fill(struct session_core *c, struct authority_ask *q, enum authority_question question,
                         const struct session_wait *w, const struct session_conn *n)
{
    memset(q, 0, sizeof *q);
    q->question = question;
    q->uid = session_uuid(c);
    q->token = w->flow;
    q->identity_kind = w->identity_kind;
    memcpy(q->identity, w->identity, sizeof q->identity);
    (void)base_copy(q->credential_id, sizeof q->credential_id, w->credential_id);
    q->correlation = w->correlation;
    fill_connector(c, q, n);
}

/* ---- before a claim is written */
/* The epoch on which the write is decided; 0 when there is no row. */
static int64_t observed(const struct session_core *c, const struct session_conn *n)
{
    return n->desk >= 0 ? c->desk[n->desk].spec.epoch : 0;
}

bool session_policy_claim(struct session_core *c, struct session_conn *n)
{
    int64_t epoch = observed(c, n);
    enum authority_question q = authority_claim(policy(c), &n->req.standing, &n->want, epoch);
    if (q == AUTHORITY_ASK_NONE)
        return false;
    struct authority_ask a;
    session_policy_fill(c, &a, q, &n->req, n);
    a.has_prefix = true;
    a.prefix = n->want;
    a.epoch = epoch;
    n->policy.ask = session_policy_ask(c, session_entity_conn(c, n), &a);
    n->policy.by = base_time_add(c->now, SESSION_POLICY_WAIT);
    n->policy.question = q;
    n->policy.flow = n->req.flow;
    return true;
}

enum conn_state session_on_told(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    if (n->policy.flow != n->req.flow) /* a newer request took its place: it needs its own permission */
        return session_decide(c, n, n->op);
    if (in->told->verdict != AUTHORITY_ALLOWED && in->told->verdict != AUTHORITY_DENIED)
        return session_give_up(c, n, session_reason_of(WHY_POLICY_UNAVAILABLE));
    struct authority_ask a = {
        .question = n->policy.question, .prefix = n->want, .has_prefix = true, .epoch = observed(c, n)};
    enum authority_reason r = authority_told(&n->req.standing, &a, in->told, in->t0);
    if (r != AUTHORITY_OK) {
        n->seen_epoch = a.epoch;
        return session_give_up(c, n, session_reason_auth(r));
    }
    return session_decide(c, n, n->op);
}

/* ---- while a session lasts */
static void plan(struct session_core *c, struct session_conn *n)
{
    n->policy.tries = 0;
    n->policy.at = BASE_TIME_NEVER;
    n->policy.question = AUTHORITY_ASK_NONE;
    if (n->ses.standing.token || policy(c) == AUTHORITY_POLICY_WEBHOOK)
        n->policy.at = authority_refresh(policy(c), &n->ses.standing, c->cfg.timing.interval,
                                         authority_grant(&n->b, &c->cfg.timing), base_prng_next(&c->prng),
                                         &n->policy.question);
}

void session_policy_begin(struct session_core *c, struct session_conn *n)
{
    n->policy.ask = 0;
    plan(c, n);
}

void session_policy_refresh(struct session_core *c, struct session_conn *n)
{
    if (n->policy.ask != 0 || c->now < n->policy.at) /* never, when there is nothing to ask (plan) */
        return;
    struct authority_ask a = {.question = n->policy.question,
                              .uid = session_uuid(c),
                              .token = n->ses.flow,
                              .identity_kind = n->req.identity_kind,
                              .correlation = n->ses.correlation};
    memcpy(a.identity, n->req.identity, sizeof a.identity);
    (void)base_copy(a.credential_id, sizeof a.credential_id, n->ses.credential_id);
    fill_connector(c, &a, n);
    a.has_prefix = true;
    a.prefix = n->claim.prefix;
    a.epoch = n->claim.epoch;
    n->policy.ask = session_policy_ask(c, session_entity_conn(c, n), &a);
    n->policy.by = base_time_add(c->now, SESSION_POLICY_WAIT);
    n->policy.flow = n->ses.flow;
}

/* Later and later while nobody answers, so that an outage is not met with a storm. */
static base_time later(struct session_core *c, unsigned tries)
{
    base_time t = SESSION_RETRY_MAX / 2;
    while (tries-- > 0 && t < SESSION_POLICY_RETRY_MAX)
        t *= 2;
    return session_jitter(c, base_time_min(t, SESSION_POLICY_RETRY_MAX));
}

static void refreshed(struct session_core *c, struct session_conn *n, const struct authority_answer *answer,
                      base_time t0)
{
    struct authority_ask a = {
        .question = n->policy.question, .epoch = n->claim.epoch, .prefix = n->claim.prefix};
    memcpy(a.identity, n->req.identity, sizeof a.identity);
    n->ses.refused = authority_told(&n->ses.standing, &a, answer, t0);
    if (answer->verdict == AUTHORITY_ALLOWED || answer->verdict == AUTHORITY_DENIED)
        plan(c, n);
    else /* keeps its last deadline and expires on it */
        n->policy.at = base_time_add(c->now, later(c, n->policy.tries++));
    session_dirty(c, session_entity_conn(c, n));
}

void session_policy_told(struct session_core *c, struct session_conn *n, uint64_t ask,
                         const struct authority_answer *a, base_time t0)
{
    if (!n->used || ask != n->policy.ask)
        return; /* late */
    n->policy.ask = 0;
    if (n->state == CONN_ASKING)
        session_conn_event(c, n, &(struct conn_in){.ev = CONN_EV_TOLD, .told = a, .t0 = t0});
    else /* FORWARDING, and about its session: session_conn_check */
        refreshed(c, n, a, t0);
}

void session_policy_retire(struct session_core *c, struct session_conn *n)
{
    enum authority_question q = authority_retire(policy(c), &n->ses.standing);
    n->policy.ask = 0;
    n->policy.at = BASE_TIME_NEVER;
    if (q == AUTHORITY_ASK_NONE)
        return;
    struct authority_ask a = {.question = q,
                              .uid = session_uuid(c),
                              .identity_kind = n->req.identity_kind,
                              .correlation = n->ses.correlation};
    memcpy(a.identity, n->req.identity, sizeof a.identity);
    (void)base_copy(a.credential_id, sizeof a.credential_id, n->ses.credential_id);
    fill_connector(c, &a, n);
    a.has_prefix = true;
    a.prefix = n->claim.prefix;
    a.epoch = n->claim.epoch;
    (void)session_policy_ask(c, session_entity_conn(c, n), &a);
}
