/* SPDX-License-Identifier: Apache-2.0
 *
 * session/conditions.c - when may a packet pass? Contract section 7, one function for each of the seven
 * conditions, and section 6, the session deadline.
 */
#include "session/int.h"

#include "base/mutant.h"

static const struct session_reason holds = {0};

/* 1: it is its connector's current session generation, and the claim's prefix is the binding's reservation. */
static struct session_reason current(struct session_core *c, struct session_conn *n, bool for_request)
{
    (void)c;
    if (base_mutant("condition-1"))
        return holds;
    if (!for_request && !n->ses.current)
        return session_reason_of(WHY_SUPERSEDED);
    if (!n->b.has_prefix || !base_prefix_eq(&n->b.prefix, &n->claim.prefix))
        return session_reason_auth(AUTHORITY_PREFIX_CHANGED);
    if (!n->reread && !base_mutant("binding-reread"))
        return session_reason_of(WHY_BINDING_UNCONFIRMED);
    return holds;
}

/* 2: the object says so: holder, epoch and leaseUUID are mine, no releaseTime, no deletionTimestamp. */
static struct session_reason object(struct session_core *c, struct session_conn *n)
{
    (void)c;
    const struct session_claim *k = &n->claim;
    if (base_mutant("condition-2"))
        return holds;
    if (base_uuid_is_zero(&k->uid) || !k->mine)
        return session_reason_of(WHY_CLAIM_LOST);
    if (k->released && !base_mutant("condition-2.release"))
        return session_reason_of(WHY_CLAIM_LOST);
    if (k->deleting && !base_mutant("condition-2.deleting"))
        return session_reason_of(WHY_CLAIM_DELETED);
    return holds;
}

/* 3: the foundation says so: acceptedEpoch, acceptedLeaseUUID and gate.epoch are mine, gate.state is Open. */
static struct session_reason foundation(struct session_core *c, struct session_conn *n)
{
    (void)c;
    const struct session_claim *k = &n->claim;
    if (base_mutant("condition-3"))
        return holds;
    if ((k->accepted_epoch != k->epoch && !base_mutant("condition-3.accepted-epoch")) ||
        (!base_uuid_eq(&k->accepted_lease, &k->lease_uuid) && !base_mutant("condition-3.accepted-lease")))
        return session_reason_of(WHY_NOT_ACCEPTED);
    if ((k->gate_epoch != k->epoch && !base_mutant("condition-3.gate-epoch")) ||
        (!k->gate_open && !base_mutant("condition-3.gate-state")))
        return session_reason_of(WHY_GATE_NOT_OPEN);
    return holds;
}

/* 4: earlier epochs are over, or W has passed since this process first saw this (uid, epoch, leaseUUID). */
static struct session_reason earlier(struct session_core *c, struct session_conn *n)
{
    const struct session_claim *k = &n->claim;
    if (base_mutant("condition-4"))
        return holds;
    if (!lease_earlier_over(k->epoch, k->closed_epoch, k->max_lease_s, k->first_seen, c->now, &c->cfg.timing))
        return session_reason_of(WHY_TAKEOVER_WAIT);
    return holds;
}

/* 5: its instance is live: acceptedEpoch and acceptedProcessID are mine. */
static struct session_reason instance(struct session_core *c, struct session_conn *n)
{
    if (base_mutant("condition-5"))
        return holds;
    if (n->claim.identity != c->inst.serial && !base_mutant("condition-5.identity"))
        return session_reason_of(WHY_INSTANCE_LOST);
    if (!session_inst_ready(c))
        return session_reason_of(session_inst_why(c));
    return holds;
}

/* 6: its attachment is accepted for this instance epoch and Ready (and its device is open here). */
static struct session_reason attachment(struct session_core *c, struct session_conn *n)
{
    if (base_mutant("condition-6"))
        return holds;
    const struct session_attachment *a = session_att_of(c, n);
    if (!a || !session_att_ready(c, a))
        return session_reason_of(WHY_ATTACHMENT_NOT_READY);
    if (!base_uuid_eq(&a->row.meta.uid, &n->claim.attachment_uid))
        return session_reason_of(WHY_ATTACHMENT_NOT_READY);
    return holds;
}

base_time session_deadline(struct session_core *c, struct session_conn *n, enum lease_part *ret_part)
{
    const struct session_service *s = session_service_of(c, n);
    struct lease_facts f = {
        .authority_t0 = session_authority_t0(c, n),
        .grant = authority_grant(&n->b, &c->cfg.timing),
        .renewed = c->inst.renewed,
        .claim_t0 = n->claim.t0,
        .service_until = s ? s->s.until : 0,
        .instance_lease_s = c->inst.me.lease_seconds,
        .row_lease_s = n->claim.lease_s,
        .guard = c->cfg.timing.guard,
    };
    const struct authority_standing *st = n->ses.flow != 0 ? &n->ses.standing : &n->req.standing;
    f.permit = true;
    f.permit_until = authority_until((enum authority_policy)c->cfg.policy, st, f.grant);
    return lease_session_deadline(&f, ret_part);
}

static bool in_gap(const struct session_core *c, const struct session_conn *n)
{
    return c->gap_at != 0 && n->claim.t0 <= c->gap_at && !base_mutant("gap");
}

base_time session_fence(struct session_core *c, struct session_conn *n)
{
    return in_gap(c, n) ? 0 : session_deadline(c, n, NULL);
}

/* 7: now < session deadline. */
static struct session_reason deadline(struct session_core *c, struct session_conn *n)
{
    enum lease_part part;
    base_time until = session_deadline(c, n, &part);
    if (c->now < until || base_mutant("condition-7"))
        return holds;
    switch (part) {
    case LEASE_PART_AUTHORITY:
        return session_reason_of(WHY_GRANT_EXPIRED);
    case LEASE_PART_RENEWAL:
        return session_reason_of(WHY_LEASE_EXPIRED);
    case LEASE_PART_CLAIM:
        return session_reason_of(WHY_CLAIM_PROOF_EXPIRED);
    case LEASE_PART_SERVICE:
    case LEASE_PART_N:
        break;
    }
    return session_reason_of(WHY_SERVICE_EXPIRED);
}

/* The authority's word on this connector (contract section 6, EXPECTATIONS.md A6): not one of the seven, but what the
 * grant in the deadline rests on; it is looked at as soon as it changes, not when the grant ends. */
static struct session_reason authority(struct session_core *c, struct session_conn *n, bool for_request)
{
    const uint8_t *digest = for_request ? n->req.digest : n->ses.digest;
    bool somebody = !for_request || n->req.flow != 0;
    if (!n->bound)
        return session_reason_auth(AUTHORITY_NO_BINDING);
    if (!for_request && n->ses.refused != AUTHORITY_OK)
        return session_reason_auth(n->ses.refused);
    if (somebody) {
        enum authority_reason r = authority_check_binding(&n->b, digest);
        uint32_t slot;
        if (r == AUTHORITY_OK && authority_index_find(c->identities, digest, &slot) > 1 &&
            !base_mutant("session.ambiguous"))
            r = AUTHORITY_AMBIGUOUS;
        if (r != AUTHORITY_OK)
            return session_reason_auth(r);
    } else if (n->b.suspended || n->b.deleting) {
        return session_reason_auth(n->b.suspended ? AUTHORITY_SUSPENDED : AUTHORITY_BINDING_DELETING);
    }
    const struct session_service *s = session_service_of(c, n);
    enum authority_reason r = authority_check_service(s ? &s->s : NULL, &n->b, c->cfg.provider, c->now);
    if (r == AUTHORITY_OK && !base_uuid_eq(&s->s.uid, &n->claim.service_uid))
        r = AUTHORITY_SERVICE_CHANGED;
    if (r == AUTHORITY_OK && !for_request)
        r = authority_check_refresh(&n->pin, &n->b, &s->s);
    return r == AUTHORITY_OK ? holds : session_reason_auth(r);
}

/* Not one of the seven either: has the API server gone back, and is the wait after that not over? */
static struct session_reason trusted(struct session_core *c)
{
    return session_regressed(c) ? session_reason_of(WHY_EPOCH_REGRESSED) : holds;
}

struct session_reason session_claim_worth(struct session_core *c, struct session_conn *n)
{
    struct session_reason why = trusted(c);
    if (!why.name)
        why = object(c, n);
    if (!why.name)
        why = authority(c, n, true);
    /* closing is final: this epoch never opens, the way on is the next one (section 8) */
    if (!why.name && n->claim.closed_epoch >= n->claim.epoch && !base_mutant("worth.closed"))
        why = session_reason_of(WHY_CLAIM_CLOSED);
    if (!why.name && n->claim.identity != c->inst.serial)
        why = session_reason_of(WHY_INSTANCE_LOST);
    if (!why.name && (!n->b.has_prefix || !base_prefix_eq(&n->b.prefix, &n->claim.prefix)))
        why = session_reason_auth(AUTHORITY_PREFIX_CHANGED);
    /* attachmentRef changes only with the epoch: a claim that names an attachment before this one never opens */
    const struct session_attachment *a = session_att_of(c, n);
    if (!why.name && a && a->have_row && !base_uuid_eq(&a->row.meta.uid, &n->claim.attachment_uid) &&
        !base_mutant("worth.attachment"))
        why = session_reason_of(WHY_ATTACHMENT_NOT_READY);
    return why;
}

struct session_reason session_conditions(struct session_core *c, struct session_conn *n, bool for_request)
{
    struct session_reason why = trusted(c);
    if (!why.name)
        why = authority(c, n, for_request);
    if (!why.name)
        why = object(c, n);
    if (!why.name)
        why = current(c, n, for_request);
    if (!why.name)
        why = instance(c, n);
    if (!why.name)
        why = attachment(c, n);
    if (!why.name)
        why = earlier(c, n);
    if (!why.name)
        why = foundation(c, n);
    if (!why.name)
        why = deadline(c, n);
    if (!why.name && for_request && in_gap(c, n))
        why = session_reason_of(WHY_GAP);
    return why;
}
