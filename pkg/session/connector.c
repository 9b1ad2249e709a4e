/* SPDX-License-Identifier: Apache-2.0
 *
 * session/connector.c - one connector's state machine.
 *
 *   IDLE --request--> PENDING -> READING -> LISTING -> RESERVING -> CHECKING -> [ASKING] -> AUDITING -> CLAIMING
 *                     needs instance,  \____ reservation known ____^
 *                     attachment
 *   Before the claim has landed: 409, unknown, not free: RETRYING (a pause), CLOSING (an old row ends), and
 *   again; nobody waits any more, not admitted: IDLE.
 *
 *   CLAIMING --landed--> WAITING --seven conditions--> FORWARDING --lost, ended--> STOPPING --stopped--> IDLE
 *                           ^                            | request (authenticated)    | request
 *                           |                            v                            |
 *                           +--stopped: same claim, -- HANDOFF <----------------------+
 *                              next generation
 *   HANDOFF, STOPPING --not stopped in Q: the route is given back--> RETIRED --stopped--> IDLE
 *
 * What holds in which state is asserted by session_conn_check. A request that waits is answered exactly once:
 * ADMIT, or REFUSE after at most SESSION_REQUEST_WAIT. The claim outlives its request: in WAITING it stays
 * for the next one, and is given back when nobody came. Releases are jobs of their own (release.c): they
 * never wait for a session's teardown beyond the barrier, and nothing here waits for them.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

const char *session_conn_state_name(enum conn_state s)
{
    static const char *const names[CONN_STATE_N] = {
        "Idle",     "Pending", "Reading",  "Listing", "Reserving",  "Checking", "Asking",   "Auditing",
        "Claiming", "Closing", "Retrying", "Waiting", "Forwarding", "Handoff",  "Stopping", "Retired"};
    return names[s];
}

static const char *ev_name(enum conn_ev ev)
{
    static const char *const names[CONN_EV_N] = {"request", "gone",    "ended", "stopped", "read",
                                                 "wrote",   "audited", "told",  "settle"};
    return names[ev];
}

/* ---- the waiting request */
void session_refuse(struct session_core *c, struct session_conn *n, uint64_t flow, struct session_reason why,
                    unsigned retry_after, const struct base_correlation *correlation,
                    const char *credential_id)
{
    /* each one: clients retry every 100 ms, and the driver adds equal ones up (audit/sum.h), never silently */
    if (!base_mutant("audit.refusal")) {
        struct session_audit *a = session_audit(c, SESSION_AUDIT_REJECT, false, why.name, n ? n->b.name : "");
        a->correlation = *correlation;
        (void)base_copy(a->credential_id, sizeof a->credential_id, credential_id);
        if (n) {
            a->object_uid = n->b.uid;
            a->epoch = n->claim.epoch != 0 ? n->claim.epoch : n->seen_epoch;
            a->lease_uuid = n->claim.lease_uuid;
        }
    }
    struct session_fx *fx = session_fx(c, SESSION_FX_REFUSE);
    fx->u.refuse.flow = flow;
    fx->u.refuse.status = why.status;
    fx->u.refuse.retry_after = retry_after ? retry_after : why.retry_after;
    if (n &&
        n->seen_epoch > 0) /* the answer names the epoch that was observed: a takeover has to name it, too */
        (void)base_fmt(fx->u.refuse.reason, sizeof fx->u.refuse.reason, "%s: %s (observed epoch %lld)",
                       why.name, why.text, (long long)n->seen_epoch);
    else
        (void)base_fmt(fx->u.refuse.reason, sizeof fx->u.refuse.reason, "%s: %s", why.name, why.text);
}

static void drop_wait(struct session_core *c, struct session_conn *n)
{
    session_flow_drop(&c->flows, n->req.flow);
    n->req.flow = 0;
    n->park_since = c->now;
}

void session_refuse_wait(struct session_core *c, struct session_conn *n, struct session_reason why,
                         unsigned retry_after)
{
    if (n->req.flow == 0)
        return;
    uint64_t flow = n->req.flow;
    session_refuse(c, n, flow, why, retry_after, &n->req.correlation, n->req.credential_id);
    session_report_refused(c, n, why);
    drop_wait(c, n);
}

static void set_wait(struct session_core *c, struct session_conn *n, const struct session_wait *w)
{
    n->req = *w;
    n->req.since = c->now;
    session_flow_put(&c->flows, w->flow, (uint32_t)(n - c->conn));
}

static void drop_asks(struct session_core *c, struct session_conn *n)
{
    n->ask = n->ask_binding = n->ask_service = n->policy.ask = 0;
    session_desk_free(c, n);
}

enum conn_state session_give_up(struct session_core *c, struct session_conn *n, struct session_reason why)
{
    session_refuse_wait(c, n, why, 0);
    drop_asks(c, n);
    n->loops = n->tries = 0;
    n->seen_epoch = 0;
    return CONN_IDLE;
}

/* Seconds until the takeover wait is over, at least 1; 0 when that is not what is waited for. */
static unsigned wait_left(const struct session_core *c, const struct session_conn *n)
{
    base_time end = lease_wait_end(n->claim.max_lease_s, n->claim.first_seen, &c->cfg.timing);
    if (n->state != CONN_WAITING || n->claim.closed_epoch >= n->claim.epoch - 1 || c->now >= end)
        return 0;
    return (unsigned)((end - c->now + BASE_SEC - 1) / BASE_SEC);
}

/* ---- sessions */
static void admit(struct session_core *c, struct session_conn *n)
{
    const struct session_service *s = session_service_of(c, n);
    const struct session_attachment *a = session_att_of(c, n);
    struct session_fx *fx = session_fx(c, SESSION_FX_ADMIT);
    n->ses.flow = n->req.flow;
    n->ses.generation = ++c->generations;
    n->ses.transport = n->req.transport;
    n->ses.correlation = n->req.correlation;
    memcpy(n->ses.digest, n->req.digest, sizeof n->ses.digest);
    (void)base_copy(n->ses.credential_id, sizeof n->ses.credential_id, n->req.credential_id);
    n->ses.standing = n->req.standing;
    n->ses.refused = AUTHORITY_OK;
    n->ses.keep = false;
    n->ses.current = true;
    authority_pin_of(&n->pin, &n->b, &s->s, n->ses.digest, &n->claim.prefix);
    n->ses.deadline = session_fence(c, n);
    fx->u.admit.flow = n->ses.flow;
    fx->u.admit.generation = n->ses.generation;
    fx->u.admit.tun_id = a->tun_id;
    fx->u.admit.prefix = n->claim.prefix;
    fx->u.admit.tunnel_ip = authority_tunnel_ip(&s->s.pool);
    fx->u.admit.pool = s->s.pool;
    if (n->req.any_target) {
        fx->u.admit.n_destinations = s->s.n_destinations;
        memcpy(fx->u.admit.destinations, s->s.destinations, sizeof fx->u.admit.destinations);
    } else { /* what was asked for, which lies inside one of them */
        fx->u.admit.n_destinations = 1;
        fx->u.admit.destinations[0] = n->req.target;
    }
    fx->u.admit.deadline = n->ses.deadline;
    n->req.flow = 0; /* its flow is the session's now */
    session_report_opened(c, n);
    session_policy_begin(c, n);
}

/* Shuts the fence for good and asks for the barrier. */
static void stop(struct session_core *c, struct session_conn *n, bool close)
{
    n->ses.current = false;
    n->stop_by = base_time_add(c->now, c->cfg.timing.quiesce);
    if (!base_mutant("session.stop"))
        session_fx(c, SESSION_FX_STOP)->u.flow = n->ses.flow;
    if (close)
        session_fx(c, SESSION_FX_CLOSE)->u.flow = n->ses.flow;
    session_policy_retire(c, n);
}

static bool is_expiry(const struct session_reason *why)
{
    static const enum session_why expiries[] = {WHY_GRANT_EXPIRED, WHY_LEASE_EXPIRED, WHY_CLAIM_PROOF_EXPIRED,
                                                WHY_SERVICE_EXPIRED};
    for (size_t i = 0; i < sizeof expiries / sizeof expiries[0]; i++)
        if (strcmp(why->name, session_reason_of(expiries[i]).name) == 0)
            return true;
    return false;
}

/* An expiry is recorded once per epoch. */
static bool expiry_recorded(struct session_conn *n)
{
    const struct session_claim *k = &n->claim;
    if (base_uuid_eq(&n->expired.uid, &k->uid) && n->expired.epoch == k->epoch && !base_mutant("expiry.once"))
        return true;
    n->expired.uid = k->uid;
    n->expired.epoch = k->epoch;
    return false;
}

/* Nobody confirmed that the epoch before this one is closed; W is over, so it has expired: observed once, as
 * the row was taken over. */
static void record_wait_over(struct session_core *c, struct session_conn *n)
{
    const struct session_claim *k = &n->claim;
    if (k->closed_epoch >= k->epoch - 1 || !n->taken_unreleased || base_mutant("expiry.observed"))
        return;
    struct session_audit *a = session_audit(c, SESSION_AUDIT_EXPIRY, true, "TakeoverWaitOver", NULL);
    contract_claim_name(a->object, &k->prefix);
    a->object_uid = k->uid;
    a->epoch = k->epoch - 1;
    a->correlation = n->req.correlation;
    (void)base_copy(a->old_holder, sizeof a->old_holder, k->before);
    (void)base_copy(a->new_holder, sizeof a->new_holder, c->cfg.node);
}

static void record_end(struct session_core *c, struct session_conn *n, struct session_reason why)
{
    /* an expiry is observed and recorded; any other end of authority that came from outside is evidence, too */
    if (is_expiry(&why) && expiry_recorded(n))
        return;
    struct session_audit *a = session_audit(c, is_expiry(&why) ? SESSION_AUDIT_EXPIRY : SESSION_AUDIT_REJECT,
                                            is_expiry(&why), why.name, NULL);
    contract_claim_name(a->object, &n->claim.prefix);
    a->object_uid = n->claim.uid;
    a->epoch = n->claim.epoch;
    a->lease_uuid = n->claim.lease_uuid;
    a->correlation = n->ses.flow != 0 ? n->ses.correlation : n->req.correlation;
    (void)base_copy(a->old_holder, sizeof a->old_holder, c->cfg.node);
    (void)base_copy(a->new_holder, sizeof a->new_holder, n->claim.mine ? "" : n->claim.holder);
    (void)base_copy(a->credential_id, sizeof a->credential_id, n->ses.credential_id);
    a->effect_possible = !base_mutant("audit.effect-possible");
}

static void remark(struct session_core *c, struct session_conn *n, const char *by, struct session_reason why)
{
    const char *s = session_conn_state_name(n->state);
    session_trace(c, "connector", n->b.name, s, s, by, why.name, n->claim.epoch, &n->ses.correlation, false);
}

/* The session has lost its authority: everything of it ends now. */
static enum conn_state end_session(struct session_core *c, struct session_conn *n, struct session_reason why)
{
    stop(c, n, true);
    n->ses.keep = false;
    if (session_admitting(c)) /* a drain is the process's own wish: its releases are recorded */
        record_end(c, n, why);
    remark(c, n, "authority", why);
    return CONN_STOPPING;
}

/* ---- handlers: each returns the next state */
static enum conn_state stay(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    (void)c;
    (void)in;
    return n->state;
}

/* Cannot come in this state: a result that nothing waits for is dropped before (session_conn_answer,
 * session_conn_audited, session_policy_told), and the end of a flow is told to the connector whose request or
 * session it is (flow_event), while session_conn_check asserts in which states there is one. */
static enum conn_state illegal(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    (void)c;
    (void)in;
    assert(!"event is illegal in this state of a connector");
    return n->state;
}

static enum conn_state request_idle(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    set_wait(c, n, in->request);
    n->loops = n->tries = 0;
    return session_begin(c, n);
}

/* The newest request of a connector is the one that counts. */
static enum conn_state request_join(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    session_refuse_wait(c, n, session_reason_of(WHY_SUPERSEDED), 0);
    set_wait(c, n, in->request);
    session_dirty(c, session_entity_conn(c, n));
    return n->state;
}

static enum conn_state request_third(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    struct session_reason why = session_reason_of(n->state == CONN_RETIRED ? WHY_RETIRED : WHY_HANDOFF);
    session_refuse(c, n, in->request->flow, why, 0, &in->request->correlation, in->request->credential_id);
    return n->state;
}

/* The request is authenticated (session_request); only now is the open session touched. */
static enum conn_state request_handoff(struct session_core *c, struct session_conn *n,
                                       const struct conn_in *in)
{
    stop(c, n, true);
    n->ses.keep = true;
    set_wait(c, n, in->request);
    return CONN_HANDOFF;
}

static enum conn_state request_stopping(struct session_core *c, struct session_conn *n,
                                        const struct conn_in *in)
{
    (void)c;
    set_wait(c, n, in->request);
    return CONN_HANDOFF;
}

static enum conn_state gone_early(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    (void)in;
    drop_wait(c, n);
    drop_asks(c, n);
    return CONN_IDLE;
}

static enum conn_state gone_late(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    (void)in;
    drop_wait(c, n); /* what was sent is seen through; the claim waits for the next request */
    return n->state == CONN_HANDOFF ? CONN_STOPPING : n->state;
}

static enum conn_state ended(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    (void)in;
    stop(c, n, false);
    n->ses.keep = true; /* a connector that is back within the barrier keeps its claim */
    return CONN_STOPPING;
}

static void forget_session(struct session_core *c, struct session_conn *n)
{
    session_flow_drop(&c->flows, n->ses.flow);
    session_report_closed(c, n);
    memset(&n->ses, 0, sizeof n->ses);
}

static enum conn_state after_stop(struct session_core *c, struct session_conn *n)
{
    bool keep = n->ses.keep;
    forget_session(c, n);
    n->stop_by = 0;
    if (keep && n->req.flow != 0 && session_admitting(c) && !session_claim_worth(c, n).name) {
        n->park_since = c->now;
        session_dirty(c, session_entity_conn(c, n));
        return CONN_WAITING;
    }
    session_release_claim(c, n,
                          keep                   ? "SessionEnded"
                          : session_admitting(c) ? "AuthorityEnded"
                                                 : session_reason_of(WHY_DRAINING).name);
    if (n->req.flow == 0)
        return CONN_IDLE;
    n->loops = n->tries = 0;
    return session_begin(c, n);
}

static enum conn_state stopped(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    (void)in;
    return after_stop(c, n);
}

static enum conn_state stopped_retired(struct session_core *c, struct session_conn *n,
                                       const struct conn_in *in)
{
    (void)in;
    forget_session(c, n);
    n->stop_by = 0;
    return CONN_IDLE;
}

/* The old session's I/O did not stop within Q: its route is given back, nobody is admitted until it has
 * stopped. */
static enum conn_state settle_stopping(struct session_core *c, struct session_conn *n,
                                       const struct conn_in *in)
{
    (void)in;
    if (c->now < n->stop_by)
        return n->state;
    session_refuse_wait(c, n, session_reason_of(WHY_NOT_STOPPED), 0);
    n->ses.keep = false;
    session_release_claim(c, n, "NotStopped");
    if (base_mutant("handoff.retire"))
        return after_stop(c, n);
    return CONN_RETIRED;
}

/* Common to all states before the claim: has what this rests on gone? */
static enum conn_state settle_early(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    (void)in;
    if (n->req.flow == 0) {
        drop_asks(c, n);
        return CONN_IDLE;
    }
    if (!session_admitting(c))
        return session_give_up(c, n, session_reason_of(WHY_DRAINING));
    if (!n->bound)
        return session_give_up(c, n, session_reason_auth(AUTHORITY_NO_BINDING));
    if (n->state == CONN_PENDING) {
        enum authority_reason r = authority_check_binding(&n->b, n->req.digest);
        if (r != AUTHORITY_OK)
            return session_give_up(c, n, session_reason_auth(r));
    }
    if (n->state == CONN_PENDING || n->claim.identity != c->inst.serial) {
        drop_asks(c, n);
        return session_begin(c, n);
    }
    if (n->state == CONN_RETRYING && c->now >= n->retry_at)
        return n->again ? session_begin(c, n) : session_check_again(c, n);
    return n->state;
}

static enum conn_state settle_claiming(struct session_core *c, struct session_conn *n,
                                       const struct conn_in *in)
{
    (void)in;
    if (n->claim.identity == c->inst.serial)
        return CONN_CLAIMING; /* what was sent is seen through */
    drop_asks(c, n);          /* it was sent in the name of an identity that has ended */
    memset(n->unknown, 0, sizeof n->unknown);
    memset(&n->attempt, 0, sizeof n->attempt);
    return n->req.flow != 0 ? session_begin(c, n) : CONN_IDLE;
}

static void forget_claim(struct session_conn *n)
{
    uint64_t identity = n->claim.identity;
    memset(&n->claim, 0, sizeof n->claim);
    n->claim.identity = identity;
    n->reread = false;
}

/* Nobody waits for the old row's end any more. It is released; whoever comes next finds it closed, or waits
 * again. */
static enum conn_state gone_closing(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    forget_claim(n);
    return gone_early(c, n, in);
}

static enum conn_state settle_closing(struct session_core *c, struct session_conn *n,
                                      const struct conn_in *in)
{
    (void)in;
    const struct session_claim *k = &n->claim;
    bool over = !k->mine || k->closed_epoch >= k->epoch;
    if (n->req.flow != 0 && k->identity == c->inst.serial && session_admitting(c) && n->bound && !over)
        return CONN_CLOSING;
    /* it is released already: whoever comes next finds it closed, or takes it over again */
    forget_claim(n);
    return n->req.flow != 0 ? session_begin(c, n) : CONN_IDLE;
}

static enum conn_state settle_waiting(struct session_core *c, struct session_conn *n,
                                      const struct conn_in *in)
{
    (void)in;
    struct session_reason why = session_claim_worth(c, n);
    if (!why.name && !session_admitting(c))
        why = session_reason_of(WHY_DRAINING);
    if (why.name) {
        if (!n->claim.mine || is_expiry(&why))
            record_end(c, n, why);
        session_release_claim(c, n, why.name);
        return session_give_up(c, n, why);
    }
    if (!n->reread && n->ask_binding == 0 && c->now >= n->retry_at) {
        session_binding_ask(c, n);
        n->ask_by = base_time_add(c->now, SESSION_READ_WAIT);
    }
    if (n->over_since == 0 && lease_earlier_over(n->claim.epoch, n->claim.closed_epoch, n->claim.max_lease_s,
                                                 n->claim.first_seen, c->now, &c->cfg.timing)) {
        n->over_since = c->now;
        record_wait_over(c, n);
    }
    if (n->req.flow == 0) {
        if (n->over_since == 0 ||
            c->now < base_time_add(base_time_max(n->over_since, n->park_since), SESSION_LINGER))
            return CONN_WAITING;
        session_release_claim(c, n, session_reason_of(WHY_NOBODY_CAME).name);
        drop_asks(c, n);
        return CONN_IDLE;
    }
    if (session_conditions(c, n, true).name)
        return CONN_WAITING;
    admit(c, n);
    return CONN_FORWARDING;
}

/* The second reading of the binding, after the claim landed and before the first packet (contract section 3,
 * step 4). */
static enum conn_state read_waiting(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    (void)in;
    if (n->read_failed != WHY_NONE) {
        n->read_failed = WHY_NONE;
        n->retry_at = base_time_add(c->now, session_backoff(c, n->tries++));
    } else if (n->bound && base_uuid_eq(&n->b.uid, &n->arb_uid)) {
        n->reread = true; /* another prefix is condition 1's business */
    } else if (n->bound) {
        struct session_reason why = session_reason_auth(AUTHORITY_BINDING_CHANGED);
        session_release_claim(c, n, why.name);
        return session_give_up(c, n, why);
    }
    session_dirty(c, session_entity_conn(c, n));
    return CONN_WAITING;
}

static enum conn_state settle_forwarding(struct session_core *c, struct session_conn *n,
                                         const struct conn_in *in)
{
    (void)in;
    struct session_reason why = session_conditions(c, n, false);
    if (!why.name && !session_admitting(c))
        why = session_reason_of(WHY_DRAINING);
    if (why.name)
        return end_session(c, n, why);
    session_policy_refresh(c, n);
    base_time deadline = session_fence(c, n);
    if (deadline != n->ses.deadline) {
        struct session_fx *fx = session_fx(c, SESSION_FX_FENCE);
        fx->u.fence.flow = n->ses.flow;
        fx->u.fence.deadline = n->ses.deadline = deadline;
    }
    return CONN_FORWARDING;
}

typedef enum conn_state (*conn_fn)(struct session_core *c, struct session_conn *n, const struct conn_in *in);
#define TO(s) (1U << CONN_##s)
/* wherever arbitration may lead */
#define ARBITRATE                                                                                            \
    (TO(IDLE) | TO(PENDING) | TO(READING) | TO(LISTING) | TO(RESERVING) | TO(CHECKING) | TO(AUDITING) |      \
     TO(RETRYING) | TO(CLOSING) | TO(WAITING) | TO(ASKING))
static const struct conn_cell {
    conn_fn fn;
    unsigned to; /* allowed next states besides the same one */
} table[CONN_STATE_N][CONN_EV_N] =
    {
        [CONN_IDLE] =
            {
                [CONN_EV_REQUEST] = {request_idle, TO(PENDING) | TO(READING)},
                [CONN_EV_GONE] = {illegal, 0},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {stay, 0},
            },
        [CONN_PENDING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_early, TO(IDLE)},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_early, TO(IDLE) | TO(READING)},
            },
        [CONN_READING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_early, TO(IDLE)},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {session_on_read, ARBITRATE},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_early, TO(IDLE) | TO(PENDING)},
            },
        [CONN_LISTING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_early, TO(IDLE)},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {session_on_list, ARBITRATE},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_early, TO(IDLE) | TO(PENDING) | TO(READING)},
            },
        [CONN_RESERVING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_early, TO(IDLE)},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {session_on_reserved, ARBITRATE},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_early, TO(IDLE) | TO(PENDING) | TO(READING)},
            },
        [CONN_CHECKING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_early, TO(IDLE)},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {session_on_row, ARBITRATE},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_early, TO(IDLE) | TO(PENDING) | TO(READING)},
            },
        [CONN_ASKING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_early, TO(IDLE)},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {session_on_told, TO(AUDITING) | TO(IDLE)},
                [CONN_EV_SETTLE] = {settle_early, TO(IDLE) | TO(PENDING) | TO(READING)},
            },
        [CONN_AUDITING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_early, TO(IDLE)},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {session_on_audited,
                                     TO(CLAIMING) | TO(ASKING) | TO(IDLE) | TO(PENDING) | TO(READING)},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_early, TO(IDLE) | TO(PENDING) | TO(READING)},
            },
        [CONN_CLAIMING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_late, 0},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {session_on_claimed,
                                   TO(WAITING) | TO(CLOSING) | TO(CHECKING) | TO(RETRYING) | TO(IDLE)},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_claiming, TO(IDLE) | TO(PENDING) | TO(READING)},
            },
        [CONN_CLOSING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_closing, TO(IDLE)},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_closing, TO(IDLE) | TO(PENDING) | TO(READING)},
            },
        [CONN_RETRYING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_early, TO(IDLE)},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_early, TO(IDLE) | TO(PENDING) | TO(READING) | TO(CHECKING)},
            },
        [CONN_WAITING] =
            {
                [CONN_EV_REQUEST] = {request_join, 0},
                [CONN_EV_GONE] = {gone_late, 0},
                [CONN_EV_ENDED] = {illegal, 0},
                [CONN_EV_STOPPED] = {illegal, 0},
                [CONN_EV_READ] = {read_waiting, TO(IDLE)},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_waiting, TO(FORWARDING) | TO(IDLE)},
            },
        [CONN_FORWARDING] =
            {
                [CONN_EV_REQUEST] = {request_handoff, TO(HANDOFF)},
                [CONN_EV_GONE] = {illegal, 0},
                [CONN_EV_ENDED] = {ended, TO(STOPPING)},
                [CONN_EV_STOPPED] = {stay, 0},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_forwarding, TO(STOPPING)},
            },
        [CONN_HANDOFF] =
            {
                [CONN_EV_REQUEST] = {request_third, 0},
                [CONN_EV_GONE] = {gone_late, TO(STOPPING)},
                [CONN_EV_ENDED] = {stay, 0}, /* the barrier still has to be heard of */
                [CONN_EV_STOPPED] = {stopped, TO(WAITING) | TO(IDLE) | TO(PENDING) | TO(READING)},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_stopping, TO(RETIRED) | TO(IDLE)},
            },
        [CONN_STOPPING] =
            {
                [CONN_EV_REQUEST] = {request_stopping, TO(HANDOFF)},
                [CONN_EV_GONE] = {illegal, 0},
                [CONN_EV_ENDED] = {stay, 0},
                [CONN_EV_STOPPED] = {stopped, TO(IDLE)},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {settle_stopping, TO(RETIRED) | TO(IDLE)},
            },
        [CONN_RETIRED] =
            {
                [CONN_EV_REQUEST] = {request_third, 0},
                [CONN_EV_GONE] = {illegal, 0},
                [CONN_EV_ENDED] = {stay, 0},
                [CONN_EV_STOPPED] = {stopped_retired, TO(IDLE)},
                [CONN_EV_READ] = {illegal, 0},
                [CONN_EV_WROTE] = {illegal, 0},
                [CONN_EV_AUDITED] = {illegal, 0},
                [CONN_EV_TOLD] = {illegal, 0},
                [CONN_EV_SETTLE] = {stay, 0},
            },
};

bool session_conn_cell(unsigned i, struct session_cell *ret)
{
    unsigned s = i / CONN_EV_N, e = i % CONN_EV_N;
    if (s >= CONN_STATE_N)
        return false;
    assert(table[s][e].fn);
    *ret = (struct session_cell){.machine = "connector",
                                 .state = session_conn_state_name((enum conn_state)s),
                                 .event = ev_name((enum conn_ev)e),
                                 .impossible = table[s][e].fn == illegal};
    return true;
}

void session_conn_event(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    enum conn_state from = n->state;
    const struct conn_cell *cell = &table[from][in->ev];
    session_cell_reached(c, SESSION_INST_CELLS + (unsigned)from * CONN_EV_N + (unsigned)in->ev);
    enum conn_state to = cell->fn(c, n, in);
    assert(to == from || (cell->to & (1U << to)) != 0);
    n->state = to;
    if (to != from) {
        if (from == CONN_IDLE)
            c->busy++;
        if (to == CONN_IDLE) {
            c->busy--;
            session_drop_attempts(c, n);
            session_dirty(c, ENTITY_DRAIN);
        }
        session_trace(c, "connector", n->b.name, session_conn_state_name(from), session_conn_state_name(to),
                      ev_name(in->ev), NULL, n->claim.epoch,
                      n->ses.flow ? &n->ses.correlation : &n->req.correlation, to == CONN_RETIRED);
        if (to == CONN_WAITING || to == CONN_FORWARDING || to == CONN_PENDING)
            session_dirty(c, session_entity_conn(c, n));
    }
    session_conn_wake(c, n);
}

static struct session_reason waits_for(struct session_core *c, struct session_conn *n)
{
    switch (n->state) {
    case CONN_PENDING:
        if (!session_inst_ready(c))
            return session_reason_of(session_inst_why(c));
        return session_reason_of(WHY_ATTACHMENT_NOT_READY);
    case CONN_WAITING: {
        struct session_reason why = session_conditions(c, n, true);
        return why.name ? why : session_reason_of(WHY_API_UNAVAILABLE);
    }
    case CONN_AUDITING:
        return session_reason_of(WHY_AUDIT_UNAVAILABLE);
    case CONN_ASKING:
        return session_reason_of(WHY_POLICY_UNAVAILABLE);
    case CONN_CLOSING:
        return session_reason_of(WHY_CLOSING);
    case CONN_RETRYING:
        return session_reason_of(n->again ? WHY_CLOSING : WHY_API_UNAVAILABLE);
    case CONN_READING:
        return session_reason_of(WHY_AUTHORITY_UNAVAILABLE);
    case CONN_HANDOFF:
        return session_reason_of(WHY_HANDOFF);
    case CONN_IDLE:
    case CONN_LISTING:
    case CONN_RESERVING:
    case CONN_CHECKING:
    case CONN_CLAIMING:
    case CONN_FORWARDING:
    case CONN_STOPPING:
    case CONN_RETIRED:
    case CONN_STATE_N:
        break;
    }
    return session_reason_of(WHY_API_UNAVAILABLE);
}

void session_conn_settle(struct session_core *c, struct session_conn *n)
{
    if (!n->used)
        return;
    if (n->req.flow != 0 && c->now >= base_time_add(n->req.since, SESSION_REQUEST_WAIT))
        session_refuse_wait(c, n, waits_for(c, n), wait_left(c, n));
    if ((n->ask != 0 || n->ask_binding != 0 || n->ask_service != 0) && c->now >= n->ask_by) {
        /* the answer is lost: a write may have landed, a read has failed, a record is not durable */
        struct session_answer lost = {.code = BASE_EUNKNOWN};
        if (n->state == CONN_AUDITING) {
            session_conn_audited(c, n, n->ask, false);
        } else if (n->state == CONN_CLAIMING || n->state == CONN_RESERVING) {
            lost.ask = n->ask;
            session_conn_answer(c, n, &lost);
        } else {
            n->ask = n->ask_binding = n->ask_service = 0;
            n->read_failed = WHY_AUTHORITY_UNAVAILABLE;
            session_conn_event(c, n, &(struct conn_in){.ev = CONN_EV_READ});
        }
    }
    if (n->policy.ask != 0 && c->now >= n->policy.by)
        session_policy_told(c, n, n->policy.ask, &(struct authority_answer){.verdict = AUTHORITY_UNAVAILABLE},
                            c->now);
    session_report_settle(c, n);
    session_conn_event(c, n, &(struct conn_in){.ev = CONN_EV_SETTLE}); /* and sets the timer, for all of it */
    session_conn_free_if_idle(c, n);
}

void session_conn_wake(struct session_core *c, struct session_conn *n)
{
    base_time at = session_report_wake(n);
    if (n->req.flow != 0)
        at = base_time_min(at, base_time_add(n->req.since, SESSION_REQUEST_WAIT));
    if (n->ask != 0 || n->ask_binding != 0 || n->ask_service != 0)
        at = base_time_min(at, n->ask_by);
    if (n->policy.ask != 0)
        at = base_time_min(at, n->policy.by);
    switch (n->state) {
    case CONN_RETRYING:
        at = base_time_min(at, n->retry_at);
        break;
    case CONN_WAITING: {
        if (n->over_since == 0)
            at = base_time_min(at, lease_wait_end(n->claim.max_lease_s, n->claim.first_seen, &c->cfg.timing));
        else if (n->req.flow == 0)
            at =
                base_time_min(at, base_time_add(base_time_max(n->over_since, n->park_since), SESSION_LINGER));
        if (!n->reread && n->ask_binding == 0)
            at = base_time_min(at, n->retry_at);
        const struct session_service *s = session_service_of(c, n);
        if (s)
            at = base_time_min(at, s->s.until);
        break;
    }
    case CONN_FORWARDING: {
        /* what stands in the fence is the deadline, or earlier; 0 in a gap */
        at = base_time_min(at, n->ses.deadline != 0 ? n->ses.deadline : session_deadline(c, n, NULL));
        if (n->policy.ask == 0)
            at = base_time_min(at, n->policy.at);
        break;
    }
    case CONN_HANDOFF:
    case CONN_STOPPING:
        at = base_time_min(at, n->stop_by);
        break;
    case CONN_IDLE:
    case CONN_PENDING:
    case CONN_READING:
    case CONN_LISTING:
    case CONN_RESERVING:
    case CONN_CHECKING:
    case CONN_ASKING:
    case CONN_AUDITING:
    case CONN_CLAIMING:
    case CONN_CLOSING:
    case CONN_RETIRED:
    case CONN_STATE_N:
        break;
    }
    session_timer_set(&c->timers, session_entity_conn(c, n), at);
}

void session_conn_check(const struct session_core *c, const struct session_conn *n)
{
    const struct session_claim *k = &n->claim;
    bool claim = !base_uuid_is_zero(&k->uid);
    assert(n->used);
    assert(n->state < CONN_STATE_N);
    assert((n->desk == -1) || (n->desk >= 0 && (unsigned)n->desk < c->n_desks));
    assert(n->policy.ask == 0 || n->state == CONN_ASKING || n->state == CONN_FORWARDING);
    if (n->ses.flow != 0)
        assert(n->report.counter == n->ses.generation && !n->report.closed);
    if (n->req.flow != 0)
        assert(session_flow_find(&c->flows, n->req.flow) == (uint32_t)(n - c->conn));
    if (n->ses.flow != 0)
        assert(session_flow_find(&c->flows, n->ses.flow) == (uint32_t)(n - c->conn));
    switch (n->state) {
    case CONN_IDLE:
        assert(n->req.flow == 0 && n->ses.flow == 0 && !claim);
        assert(n->ask == 0 && n->ask_binding == 0 && n->ask_service == 0 && n->desk == -1);
        break;
    case CONN_PENDING:
        assert(n->ses.flow == 0 && !claim && n->ask == 0);
        break;
    case CONN_READING:
        assert(n->ses.flow == 0 && !claim);
        assert(n->ask != 0 || n->ask_binding != 0 || n->ask_service != 0);
        break;
    case CONN_LISTING:
    case CONN_RESERVING:
    case CONN_CHECKING:
    case CONN_AUDITING:
        assert(n->bound || c->timers.q_n > 0);
        assert(!n->holder_asked || n->state != CONN_CHECKING || n->row == ROW_ON_DESK);
        /* fallthrough */
    case CONN_CLAIMING:
        assert(n->ses.flow == 0 && !claim && n->ask != 0);
        break;
    case CONN_ASKING:
        assert(n->ses.flow == 0 && !claim && n->ask == 0 && n->policy.ask != 0 && n->req.flow != 0);
        break;
    case CONN_RETRYING:
        assert(n->ses.flow == 0 && !claim && n->ask == 0);
        break;
    case CONN_CLOSING:
        assert(n->ses.flow == 0 && claim && n->ask == 0);
        break;
    case CONN_WAITING:
        assert(n->ses.flow == 0 && claim && k->epoch >= 1 && k->first_seen > 0);
        break;
    case CONN_FORWARDING:
        assert(n->ses.flow != 0 && n->req.flow == 0 && claim && n->ses.current && n->ses.generation > 0);
        assert(n->ses.generation <= c->generations);
        assert(n->policy.ask == 0 || n->policy.flow == n->ses.flow);
        break;
    case CONN_HANDOFF:
        assert(n->ses.flow != 0 && !n->ses.current && claim);
        break;
    case CONN_STOPPING:
        assert(n->ses.flow != 0 && n->req.flow == 0 && !n->ses.current && claim);
        break;
    case CONN_RETIRED:
        assert(n->ses.flow != 0 && n->req.flow == 0 && !n->ses.current && !claim);
        break;
    case CONN_STATE_N:
        assert(0);
    }
}
