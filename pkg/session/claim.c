/* SPDX-License-Identifier: Apache-2.0
 *
 * session/claim.c - acquire, takeover and closing takeover: record, write, outcome (contract section 4). The
 * record of a decision is durable before the write that it allows; a write whose outcome is unknown gives no
 * authority, and reading back decides.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

struct lease_attempt *session_attempt_of(struct session_conn *n, const struct base_uuid *lease_uuid)
{
    if (n->attempt.op != 0 && base_uuid_eq(&n->attempt.lease_uuid, lease_uuid))
        return &n->attempt;
    for (unsigned i = 0; i < 2; i++)
        if (n->unknown[i].op != 0 && base_uuid_eq(&n->unknown[i].lease_uuid, lease_uuid))
            return &n->unknown[i];
    return NULL;
}

/* Nobody waits for them any more. One that the watch has shown meanwhile is held by this process with no
 * session of it: it is given back; one that lands later is when the watch shows it (catalog.c). */
void session_drop_attempts(struct session_core *c, struct session_conn *n)
{
    struct lease_attempt *all[] = {&n->attempt, &n->unknown[0], &n->unknown[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct lease_attempt *a = all[i];
        if (a->op != 0 && a->op != LEASE_CLOSING && a->epoch != 0 && !base_mutant("late.release"))
            session_release(c, &n->want, &n->cached_uid, &a->lease_uuid, a->epoch, "LateLanding",
                            &n->req.correlation);
        a->op = (enum lease_op)0;
    }
}

/* The row (if any) is on the desk. */
enum conn_state session_decide(struct session_core *c, struct session_conn *n, enum lease_op op)
{
    const struct contract_claim *row = n->desk >= 0 ? &c->desk[n->desk] : NULL;
    n->op = op;
    if (session_policy_claim(c, n))
        return CONN_ASKING;
    struct session_audit *a =
        session_audit(c, op == LEASE_ACQUIRE ? SESSION_AUDIT_ACQUIRE : SESSION_AUDIT_TAKEOVER, true,
                      op == LEASE_CLOSING   ? "ClosingTakeover"
                      : op == LEASE_ACQUIRE ? "Acquire"
                                            : "Takeover",
                      NULL);
    n->op_epoch = row ? row->spec.epoch + 1 : 1;
    n->taken_unreleased = row && row->spec.release_time == 0 && row->status.closed_epoch < row->spec.epoch;
    n->lease_uuid = session_uuid(c); /* one for every attempt: it is also the nonce */
    n->ask = a->ask = session_ask(c, session_entity_conn(c, n));
    n->ask_by = base_time_add(c->now, SESSION_AUDIT_WAIT);
    contract_claim_name(a->object, &n->want);
    a->correlation = n->op_correlation = n->req.correlation; /* the write's, too, whoever joins meanwhile */
    a->epoch = n->op_epoch;
    a->lease_uuid = n->lease_uuid;
    (void)base_copy(a->new_holder, sizeof a->new_holder, c->cfg.node);
    (void)base_copy(a->credential_id, sizeof a->credential_id, n->req.credential_id);
    if (row) {
        a->object_uid = row->meta.uid;
        (void)base_copy(a->old_holder, sizeof a->old_holder, row->spec.holder.node);
    }
    return CONN_AUDITING;
}

enum conn_state session_on_audited(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    if (!in->durable && !base_mutant("audit.claim"))
        return session_give_up(c, n, session_reason_of(WHY_AUDIT_UNAVAILABLE));
    const struct session_attachment *at = session_att_of(c, n);
    const struct session_service *s = session_service_of(c, n);
    if (!session_inst_ready(c) || !at || !session_att_ready(c, at)) {
        session_desk_free(c, n);
        return session_begin(c, n);
    }
    if (!s)
        return session_give_up(c, n, session_reason_auth(AUTHORITY_NO_SERVICE));
    enum authority_reason r = authority_check_binding(&n->b, n->req.digest);
    if (!n->bound || r != AUTHORITY_OK) /* it changed while the record was on its way */
        return session_give_up(c, n, session_reason_auth(n->bound ? r : AUTHORITY_NO_BINDING));
    /* a newer request took the place of the one that was permitted: it is asked about, and recorded, too */
    if (!base_mutant("policy.claim-joined") && session_policy_claim(c, n))
        return CONN_ASKING;

    struct contract_ref service = {.uid = s->s.uid}, attachment = {.uid = at->row.meta.uid};
    (void)base_copy(service.name, sizeof service.name, s->s.name);
    (void)base_copy(attachment.name, sizeof attachment.name, at->name);
    struct lease_target t = {.tenant = n->b.tenant,
                             .connector = n->b.connector,
                             .vpc = n->b.vpc,
                             .prefix = n->want,
                             .service = &service,
                             .attachment = &attachment};
    struct contract_object *o;
    n->attempt = (struct lease_attempt){.op = n->op, .lease_uuid = n->lease_uuid, .sent = c->now};
    bool create = n->op == LEASE_ACQUIRE;
    n->ask = session_write(c, session_entity_conn(c, n), create ? SESSION_FX_CREATE : SESSION_FX_UPDATE,
                           CONTRACT_CLAIM, &n->op_correlation, false, &o);
    n->ask_by = base_time_add(c->now, SESSION_WRITE_WAIT);
    if (create) {
        lease_build_acquire(&o->u.claim, &c->inst.me, &t, &n->lease_uuid, c->wall, &n->op_correlation);
    } else {
        const struct contract_claim *row = &c->desk[n->desk];
        n->attempt.uid = row->meta.uid;
        (void)base_copy(n->attempt.rv, sizeof n->attempt.rv, row->meta.rv);
        o->u.claim = *row;
        if (n->op == LEASE_TAKEOVER)
            lease_build_takeover(&o->u.claim, &c->inst.me, &t, &n->lease_uuid, c->wall, &n->op_correlation);
        else
            lease_build_closing(&o->u.claim, &c->inst.me, &n->lease_uuid, c->wall, &n->op_correlation);
    }
    session_desk_free(c, n);
    return CONN_CLAIMING;
}

/* The row is mine since `sent`, the send of the write that is seen in it. */
enum conn_state session_landed(struct session_core *c, struct session_conn *n,
                               const struct contract_claim *row, base_time sent)
{
    struct session_claim *k = &n->claim;
    bool closing = row->spec.release_time != 0;
    /* The watch has shown a newer version of this row: an older answer changes nothing, and what the newer
     * one said would never be told again. */
    if (base_uuid_eq(&n->cached_uid, &row->meta.uid) && session_older(row->meta.rv, n->cached_rv) &&
        !base_mutant("landed.overtaken")) {
        if (n->bound)
            return session_check_again(c, n);
        n->attempt.epoch = row->spec.epoch; /* known to have landed: given back */
        return session_give_up(c, n, session_reason_auth(AUTHORITY_NO_BINDING));
    }
    memset(k, 0, sizeof *k);
    k->uid = row->meta.uid;
    k->created = row->meta.created;
    k->prefix = row->spec.prefix;
    k->epoch = row->spec.epoch;
    k->lease_uuid = row->spec.lease_uuid;
    k->identity = c->inst.serial;
    k->attachment_uid = row->spec.attachment.uid;
    k->service_uid = row->spec.service.uid;
    k->max_lease_s = row->spec.max_lease_seconds;
    (void)base_copy(k->before, sizeof k->before, row->spec.previous.node);
    k->mine = true;
    k->t0 = sent;
    k->first_seen = c->now; /* after the commit: that is what the wait is counted from */
    /* An older version says nothing of this one: a list, which names nobody who is not in it, may have come
     * after it, without this row. */
    k->in_cache = k->seen = base_uuid_eq(&n->cached_uid, &row->meta.uid) &&
                            (!session_older(n->cached_rv, row->meta.rv) || base_mutant("landed.cached"));
    n->candidate = 0;
    (void)session_claim_apply(c, n, row);
    session_desk_free(c, n);
    n->unknown[0].op = n->unknown[1].op = n->attempt.op = (enum lease_op)0;
    n->ask = 0;
    n->tries = 0;
    n->seen_epoch = 0;
    n->acquire_refused = false;
    n->park_since = c->now;
    n->over_since = 0;
    n->reread = false;
    if (closing)
        return CONN_CLOSING;
    /* beside the foundation's accept: the binding again (contract section 3, step 4) */
    n->read_failed = WHY_NONE;
    n->retry_at = 0;
    session_binding_ask(c, n);
    n->ask_by = base_time_add(c->now, SESSION_READ_WAIT);
    return CONN_WAITING;
}

static void not_landed(struct session_core *c, struct session_conn *n, const char *reason, bool possible)
{
    struct session_audit *a = session_audit(c, SESSION_AUDIT_REJECT, false, reason, NULL);
    contract_claim_name(a->object, &n->want);
    a->object_uid = n->attempt.uid;
    a->epoch = n->op_epoch;
    a->lease_uuid = n->lease_uuid;
    a->correlation = n->op_correlation;
    a->effect_possible = possible && !base_mutant("audit.outcome-unknown");
}

/* An ordinary acquire met a row, held, released or expired: refused with the epoch that was observed. The way
 * on is takeover with that epoch. */
void session_acquire_refused(struct session_core *c, struct session_conn *n, const struct contract_claim *row)
{
    if (!n->acquire_refused)
        return;
    n->acquire_refused = false;
    struct lease_ask ask = {.op = LEASE_ACQUIRE, .me = &c->inst.me};
    enum lease_reason r = row ? lease_decide(&ask, row) : LEASE_ABSENT;
    struct session_audit *a =
        session_audit(c, SESSION_AUDIT_REJECT, false, row ? lease_reason_name(r) : "Conflict", NULL);
    contract_claim_name(a->object, &n->want);
    a->lease_uuid = n->lease_uuid;
    a->correlation = n->req.correlation;
    (void)base_copy(a->credential_id, sizeof a->credential_id, n->req.credential_id);
    if (!row)
        return;
    a->object_uid = row->meta.uid;
    a->epoch = row->spec.epoch;
    (void)base_copy(a->old_holder, sizeof a->old_holder, row->spec.holder.node);
}

enum conn_state session_on_claimed(struct session_core *c, struct session_conn *n, const struct conn_in *in)
{
    const struct session_answer *an = in->answer;
    if (an->code == BASE_OK)
        return session_landed(c, n, &an->objects[0].u.claim,
                              base_time_min(base_time_max(an->sent, n->attempt.sent), c->now));
    if (an->code == BASE_EUNKNOWN) {
        /* no authority for us, possibly some for everyone else; remembered until a read tells */
        not_landed(c, n, "OutcomeUnknown", true);
        n->unknown[1] = n->unknown[0];
        n->unknown[0] = n->attempt;
    } else if (n->op == LEASE_ACQUIRE && an->code == BASE_EEXIST && n->req.flow != 0) {
        n->acquire_refused = true; /* recorded with the epoch that the next read observes */
    } else {
        not_landed(c, n, an->code == BASE_EDENIED || an->code == BASE_EINVAL ? "ClaimRefused" : "Conflict",
                   false);
    }
    n->attempt.op = (enum lease_op)0;
    if (n->req.flow == 0) /* nobody waits; if it lands late after all, it is given back (catalog.c) */
        return CONN_IDLE;
    if (!n->bound && !base_mutant("claimed.unbound")) /* it went while the write was on its way */
        return session_give_up(c, n, session_reason_auth(AUTHORITY_NO_BINDING));
    if (an->code == BASE_EDENIED || an->code == BASE_EINVAL)
        return session_give_up(c, n, session_reason_of(WHY_CLAIM_REFUSED));
    if (++n->loops > SESSION_LOOPS_MAX)
        return session_give_up(c, n, session_reason_of(WHY_ARBITRATION_BUSY));
    if (an->code == BASE_EEXIST || an->code == BASE_ECONFLICT || an->code == BASE_ENOTFOUND)
        return session_check_again(c, n);
    n->retry_at = base_time_add(c->now, session_backoff(c, n->tries++));
    return CONN_RETRYING;
}
