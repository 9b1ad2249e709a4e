/* SPDX-License-Identifier: Apache-2.0
 *
 * session/instance.c - the instance lease of this process (contract sections 1, 2 and 4).
 *
 *   INIT --start--> READING --row, 404--> AUDITING --durable--> WRITING --landed--> HELD --drained--> RELEASING
 *                    ^ ^ \                                                           |                  |
 *                    | |  \--another's row, after a loss--> TAKEN                    |              RELEASED
 *                    | +-- RETRY <--failed, conflict, unknown                        |
 *                    +-- TAKEN: released, or silent for its L                        |
 *                    +--lost, expired: a new identity--------------------------------+
 *
 * What holds: HELD <=> me.epoch and me.instance_uid name a row that was mine when it was last seen. A process
 * identity ends with its row; the next one starts over with all sessions ended and all devices closed.
 * Renewals run inside HELD as a machine of their own (renew): IDLE -> AUDIT -> SENT -> IDLE, or READ after a
 * conflict or a lost answer. Deadlines are anchored at the boot time that stands in the row, which was read
 * before the write was sent.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

const char *session_inst_state_name(enum inst_state s)
{
    static const char *const names[INST_STATE_N] = {"Init",  "Reading", "Auditing",  "Writing", "Retry",
                                                    "Taken", "Held",    "Releasing", "Released"};
    return names[s];
}

static const char *ev_name(enum inst_ev ev)
{
    static const char *const names[INST_EV_N] = {"start", "answer", "audit",     "row",    "gone",
                                                 "time",  "lost",   "regressed", "drained"};
    return names[ev];
}

bool session_inst_ready(const struct session_core *c)
{
    const struct session_instance *i = &c->inst;
    return i->state == INST_HELD && i->row.status.accepted_epoch == i->me.epoch &&
           base_uuid_eq(&i->row.status.accepted_process_id, &i->me.process_id);
}

enum session_why session_inst_why(const struct session_core *c)
{
    return c->inst.state == INST_HELD ? WHY_INSTANCE_NOT_ACCEPTED : c->inst.why;
}

static void remember_sent(struct session_instance *i, int64_t boot_us)
{
    i->sent_us[i->n_sent++ % SESSION_RENEWALS] = boot_us;
}

/* Every renewal that may still stand in the row is remembered: in an outage they fail at this pace until the
 * longest lease is over. */
_Static_assert(SESSION_RENEWALS *(SESSION_RETRY_MAX - SESSION_RETRY_MAX / 5) > 310 * BASE_SEC,
               "one that landed long ago must not look like another machine's");

static bool was_sent(const struct session_instance *i, int64_t boot_us)
{
    unsigned n = i->n_sent < SESSION_RENEWALS ? i->n_sent : SESSION_RENEWALS;
    if (i->renewed != 0 && boot_us * BASE_US == i->renewed)
        return true; /* the last one that is known to have landed, whatever was sent since */
    for (unsigned k = 0; k < n; k++)
        if (i->sent_us[k] == boot_us)
            return true;
    return false;
}

static void ask_row(struct session_core *c)
{
    c->inst.ask = session_get(c, ENTITY_INSTANCE, CONTRACT_INSTANCE, c->inst.name, &c->inst.correlation);
    c->inst.ask_by = base_time_add(c->now, SESSION_READ_WAIT);
}

/* A new process identity: nothing of the old one is kept. */
static void new_identity(struct session_core *c)
{
    struct session_instance *i = &c->inst;
    i->before = i->me.process_id;
    i->me.process_id = session_uuid(c);
    i->me.instance_uid = (struct base_uuid){{0}};
    i->me.epoch = 0;
    i->serial++;
    i->renewed = 0;
    i->n_sent = 0;
    i->renew = RENEW_IDLE;
    i->renew_ask = 0;
    i->renew_tries = 0;
    i->ask = 0;
    i->tries = 0;
    i->have_row = false;
    i->have_watched = i->have_watched && !base_uuid_eq(&i->watched.spec.process_id, &i->before);
}

static enum inst_state retry(struct session_core *c, enum session_why why, base_time pause)
{
    c->inst.why = why;
    c->inst.ask = 0;
    c->inst.retry_at = base_time_add(c->now, pause);
    return INST_RETRY;
}

/* Also of a row that was held: a longer lease than was known of makes the wait after a regression longer
 * again. */
static enum inst_state start_over(struct session_core *c)
{
    if (session_regressed(c)) /* nothing is taken before that wait is over */
        return retry(c, WHY_EPOCH_REGRESSED, session_regress_end(c) - c->now);
    ask_row(c);
    return INST_READING;
}

/* This identity has ended: devices closed, sessions end (their condition 5 no longer holds), a new identity. */
static enum inst_state down(struct session_core *c, enum session_why why, bool lost)
{
    struct session_instance *i = &c->inst;
    struct session_reason r = session_reason_of(why);
    struct session_audit *a = session_audit(c, SESSION_AUDIT_EXPIRY, true, r.name, i->name);
    a->correlation = i->correlation = session_correlation(c);
    a->object_uid = i->me.instance_uid;
    a->epoch = i->me.epoch;
    a->lease_uuid = i->me.process_id;
    a->effect_possible = true;
    (void)base_copy(a->old_holder, sizeof a->old_holder, c->cfg.node);
    session_att_down(c);
    session_all_dirty(c);
    new_identity(c);
    i->why = why;
    i->lost = lost;
    if (lost && !base_mutant("instance.twin-wait"))
        i->before = (struct base_uuid){{0}}; /* whoever writes in that name now is a twin, not this process */
    return start_over(c);
}

/* ---- taking the row */
static void remember_taken(struct session_core *c, const struct contract_instance *row)
{
    struct session_instance *i = &c->inst;
    bool same = i->taken_since != 0 && base_uuid_eq(&i->taken_uid, &row->meta.uid) &&
                base_uuid_eq(&i->taken_process, &row->spec.process_id) && i->taken_epoch == row->spec.epoch &&
                i->taken_boot_us == row->spec.renew.boot_time_us;
    if (same)
        return;
    i->taken_uid = row->meta.uid;
    i->taken_process = row->spec.process_id;
    i->taken_epoch = row->spec.epoch;
    i->taken_boot_us = row->spec.renew.boot_time_us;
    i->taken_lease_s = row->spec.lease_seconds;
    i->taken_since = c->now;
}

static base_time taken_end(const struct session_instance *i)
{
    return base_time_add(i->taken_since, (base_time)i->taken_lease_s * BASE_SEC);
}

static enum inst_state decide(struct session_core *c, const struct contract_instance *row)
{
    struct session_instance *i = &c->inst;
    i->create = row == NULL;
    if (row) {
        bool held = !base_uuid_is_zero(&i->last_held);
        bool mine_before =
            (base_uuid_eq(&row->spec.process_id, &i->before) && !base_uuid_is_zero(&i->before)) ||
            (base_uuid_eq(&row->spec.process_id, &i->last_held) && held && !i->lost);
        if (held && !mine_before && !base_mutant("instance.lost-while-away"))
            i->lost = true; /* it expired here unseen, and somebody else has it by now */
        if (row->meta.deleting != 0)
            return retry(c, WHY_INSTANCE_DELETING, BASE_SEC);
        if (i->lost && !mine_before && row->spec.release_time == 0 && !base_mutant("instance.taken-wait")) {
            remember_taken(c, row);
            if (c->now < taken_end(i)) {
                i->why = WHY_INSTANCE_TAKEN;
                return INST_TAKEN;
            }
        }
        i->row = *row;
        i->have_row = true;
    }
    struct session_audit *a = session_audit(c, row ? SESSION_AUDIT_TAKEOVER : SESSION_AUDIT_ACQUIRE, true,
                                            row ? "InstanceTakeover" : "InstanceCreate", i->name);
    a->ask = i->ask = session_ask(c, ENTITY_INSTANCE);
    a->correlation = i->correlation = session_correlation(c);
    a->epoch = row ? row->spec.epoch + 1 : 1;
    a->lease_uuid = i->me.process_id;
    if (row) {
        a->object_uid = row->meta.uid;
        (void)base_copy(a->old_holder, sizeof a->old_holder, row->spec.node);
    }
    (void)base_copy(a->new_holder, sizeof a->new_holder, c->cfg.node);
    i->ask_by = base_time_add(c->now, SESSION_AUDIT_WAIT);
    return INST_AUDITING;
}

/* The row names this identity: it is held, since the send of the write that is seen in it. */
static enum inst_state held(struct session_core *c, const struct contract_instance *row)
{
    struct session_instance *i = &c->inst;
    i->row = *row;
    i->have_row = true;
    i->row_at = c->now;
    if (i->have_watched && base_uuid_eq(&i->watched.meta.uid, &row->meta.uid) &&
        session_version_below(row->meta.rv, i->watched.meta.rv)) {
        i->row =
            i->watched; /* the watch was faster than the answer; what it says is looked at right after this */
        session_dirty(c, ENTITY_INSTANCE);
    }
    i->ask = 0;
    i->tries = 0;
    i->lost = false;
    i->taken_since = 0;
    i->me.instance_uid = row->meta.uid;
    i->me.epoch = row->spec.epoch;
    i->last_held = i->me.process_id;
    i->renewed = row->spec.renew.boot_time_us * BASE_US;
    i->renew = RENEW_IDLE;
    i->renew_at = base_time_add(i->renewed, session_jitter(c, c->cfg.timing.interval));
    i->why = WHY_NONE;
    for (uint32_t k = 0; k < c->cfg.max_attachments; k++)
        if (c->att[k].used)
            session_dirty(c, session_entity_att(c, &c->att[k]));
    session_all_dirty(c);
    return INST_HELD;
}

static enum inst_state on_start(struct session_core *c, const struct session_in *in)
{
    (void)in;
    new_identity(c);
    c->inst.why = WHY_STARTING;
    return start_over(c);
}

/* A write in this identity's name may have landed and been overtaken: an identity holds one epoch at most. */
static enum inst_state decide_anew(struct session_core *c, const struct contract_instance *row)
{
    unsigned tries = c->inst.tries;
    if (c->inst.n_sent > 0 && !base_mutant("instance.fresh-identity")) {
        new_identity(c);
        c->inst.tries = tries;
    }
    return decide(c, row);
}

static enum inst_state on_read(struct session_core *c, const struct session_in *in)
{
    struct session_instance *i = &c->inst;
    const struct session_answer *an = &in->u.answer;
    if (an->code == BASE_ENOTFOUND)
        return decide_anew(c, NULL);
    if (an->code != BASE_OK)
        return retry(c, WHY_API_UNAVAILABLE, session_backoff(c, i->tries++));
    const struct contract_instance *row = &an->objects[0].u.instance;
    if (base_uuid_eq(&row->spec.process_id, &i->me.process_id)) {
        /* mine: a write of this identity whose answer was lost has landed, with the deadline of that
         * attempt's send */
        if (was_sent(i, row->spec.renew.boot_time_us) && row->meta.deleting == 0 &&
            row->spec.release_time == 0)
            return held(c, row);
        i->lost = true; /* a twin: a renewal that I never sent */
        new_identity(c);
        if (!base_mutant("instance.twin-wait"))
            i->before = (struct base_uuid){{0}};
    }
    return decide_anew(c, row);
}

static enum inst_state on_audited(struct session_core *c, const struct session_in *in)
{
    struct session_instance *i = &c->inst;
    if (!in->u.audit.durable && !base_mutant("audit.instance"))
        return retry(c, WHY_AUDIT_UNAVAILABLE, BASE_SEC);
    int64_t boot_us = c->now / BASE_US;
    struct contract_object *o;
    i->attempt = (struct lease_instance_attempt){.process_id = i->me.process_id, .boot_us = boot_us};
    i->ask = session_write(c, ENTITY_INSTANCE, i->create ? SESSION_FX_CREATE : SESSION_FX_UPDATE,
                           CONTRACT_INSTANCE, &i->correlation, true, &o);
    if (i->create) {
        lease_build_instance(&o->u.instance, &i->me, boot_us, c->wall);
    } else {
        i->attempt.uid = i->row.meta.uid;
        (void)base_copy(i->attempt.rv, sizeof i->attempt.rv, i->row.meta.rv);
        o->u.instance = i->row;
        lease_build_instance_takeover(&o->u.instance, &i->me, boot_us, c->wall);
    }
    remember_sent(i, boot_us);
    i->ask_by = base_time_add(c->now, SESSION_WRITE_WAIT);
    return INST_WRITING;
}

static enum inst_state on_written(struct session_core *c, const struct session_in *in)
{
    const struct session_answer *an = &in->u.answer;
    if (an->code == BASE_OK)
        return held(c, &an->objects[0].u.instance);
    if (an->code == BASE_EEXIST || an->code == BASE_ECONFLICT || an->code == BASE_ENOTFOUND)
        return retry(c, WHY_INSTANCE_NOT_ACCEPTED, session_backoff(c, 0));
    if (an->code == BASE_EDENIED || an->code == BASE_EINVAL)
        return retry(c, WHY_INSTANCE_REFUSED, 2 * BASE_SEC);
    /* unknown, or it did not land: reading back decides */
    return retry(c, WHY_API_UNAVAILABLE, session_backoff(c, c->inst.tries++));
}

static enum inst_state on_retry_time(struct session_core *c, const struct session_in *in)
{
    (void)in;
    return c->now >= c->inst.retry_at ? start_over(c) : INST_RETRY;
}

static enum inst_state on_reading_time(struct session_core *c, const struct session_in *in)
{
    (void)in;
    if (c->now < c->inst.ask_by)
        return c->inst.state;
    if (c->inst.state == INST_AUDITING)
        return retry(c, WHY_AUDIT_UNAVAILABLE, session_backoff(c, c->inst.tries++));
    return retry(c, WHY_API_UNAVAILABLE,
                 session_backoff(c, c->inst.tries++)); /* lost: READING reads (back) again */
}

static enum inst_state on_taken_row(struct session_core *c, const struct session_in *in)
{
    (void)in;
    remember_taken(c, &c->inst.row);
    return c->inst.row.spec.release_time != 0 ? start_over(c) : INST_TAKEN;
}

static enum inst_state on_taken_time(struct session_core *c, const struct session_in *in)
{
    (void)in;
    return c->now >= taken_end(&c->inst) ? start_over(c) : INST_TAKEN;
}

static enum inst_state on_taken_gone(struct session_core *c, const struct session_in *in)
{
    (void)in;
    return start_over(c);
}

/* ---- holding it */
/* Does the newest row still say that this identity holds it? */
static enum session_why row_says(const struct session_core *c, const struct contract_instance *row,
                                 bool *ret_lost)
{
    const struct session_instance *i = &c->inst;
    *ret_lost = false;
    if (!base_uuid_eq(&row->meta.uid, &i->me.instance_uid))
        return WHY_INSTANCE_LOST;
    bool same_process = base_uuid_eq(&row->spec.process_id, &i->me.process_id);
    /* epochs never go back, and an epoch has one owner: the API server did */
    if (row->spec.epoch < i->me.epoch && !base_mutant("regress.instance-epoch"))
        return WHY_EPOCH_REGRESSED;
    if (row->spec.epoch == i->me.epoch && !same_process && !base_mutant("regress.instance-owner"))
        return WHY_EPOCH_REGRESSED;
    if (!same_process || row->spec.epoch != i->me.epoch) {
        *ret_lost = true;
        return WHY_INSTANCE_TAKEN;
    }
    if (!was_sent(i, row->spec.renew.boot_time_us) && !base_mutant("instance.twin")) {
        *ret_lost = true; /* a cloned machine */
        return WHY_INSTANCE_TAKEN;
    }
    if (row->spec.release_time != 0)
        return WHY_INSTANCE_LOST;
    if (row->meta.deleting != 0)
        return WHY_INSTANCE_DELETING;
    return WHY_NONE;
}

/* What the row says ends this identity; a row that went back ends more than that (regress.c, still in this
 * step). */
static enum inst_state not_mine(struct session_core *c, enum session_why why, bool lost)
{
    if (why != WHY_EPOCH_REGRESSED)
        return down(c, why, lost);
    c->regress_due = true;
    return INST_HELD;
}

static enum inst_state on_held_row(struct session_core *c, const struct session_in *in)
{
    (void)in;
    bool lost;
    enum session_why why = row_says(c, &c->inst.row, &lost);
    if (why != WHY_NONE)
        return not_mine(c, why, lost);
    if (c->inst.row.spec.draining == session_admitting(c) && c->inst.renew == RENEW_IDLE)
        c->inst.renew_at = c->now; /* an operator asked for a drain, or took it back: say so in the row */
    for (uint32_t k = 0; k < c->cfg.max_attachments; k++)
        if (c->att[k].used)
            session_dirty(c, session_entity_att(c, &c->att[k]));
    session_all_dirty(c); /* accepted, draining, … may have changed */
    return INST_HELD;
}

static enum inst_state on_held_gone(struct session_core *c, const struct session_in *in)
{
    (void)in;
    return down(c, WHY_INSTANCE_LOST, false);
}

/* What was known of the row is void. Whoever wrote it, it is taken as a fresh process takes it, once the wait
 * is over; a process that had lost it stays one that has. */
static enum inst_state on_regressed(struct session_core *c, const struct session_in *in)
{
    (void)in;
    struct session_instance *i = &c->inst;
    i->have_row = i->have_watched = i->in_cache = false;
    i->taken_since = 0;
    if (!i->lost)
        i->last_held = (struct base_uuid){{0}};
    if (i->state == INST_HELD)
        return down(c, WHY_EPOCH_REGRESSED, false);
    new_identity(c);
    return start_over(c);
}

static enum inst_state on_held_lost(struct session_core *c, const struct session_in *in)
{
    (void)in;
    return down(c, WHY_TUN_LOST, false);
}

static base_time
held_end(const struct session_core *c) /* L after the last confirmed renewal: the identity has ended */
{
    return lease_until(c->inst.renewed, c->inst.me.lease_seconds, 0);
}

static void renew_pause(struct session_core *c)
{
    struct session_instance *i = &c->inst;
    i->renew = RENEW_IDLE;
    i->renew_ask = 0;
    i->renew_at = base_time_add(c->now, session_backoff(c, i->renew_tries++));
}

static void renew_read(struct session_core *c)
{
    struct session_instance *i = &c->inst;
    i->renew = RENEW_READ;
    i->renew_ask = session_get(c, ENTITY_INSTANCE, CONTRACT_INSTANCE, i->name, &i->renew_correlation);
    c->out->fx[c->out->n_fx - 1].u.store.renewal = true;
    i->renew_by = base_time_add(c->now, SESSION_RENEW_WAIT);
}

static void renew_audit(struct session_core *c)
{
    struct session_instance *i = &c->inst;
    struct session_audit *a = session_audit(c, SESSION_AUDIT_RENEW, true, "Renew", i->name);
    a->ask = i->renew_ask = session_ask(c, ENTITY_INSTANCE);
    a->correlation = i->renew_correlation = session_correlation(c);
    a->object_uid = i->me.instance_uid;
    a->epoch = i->me.epoch;
    a->lease_uuid = i->me.process_id;
    (void)base_copy(a->old_holder, sizeof a->old_holder, c->cfg.node);
    (void)base_copy(a->new_holder, sizeof a->new_holder, c->cfg.node);
    i->renew = RENEW_AUDIT;
    i->renew_by = base_time_add(c->now, SESSION_AUDIT_WAIT);
}

static void renew_send(struct session_core *c)
{
    struct session_instance *i = &c->inst;
    struct contract_object *o;
    int64_t boot_us = c->now / BASE_US;
    i->renewal = (struct lease_instance_attempt){
        .uid = i->row.meta.uid, .process_id = i->me.process_id, .boot_us = boot_us};
    (void)base_copy(i->renewal.rv, sizeof i->renewal.rv, i->row.meta.rv);
    i->renew_ask = session_write(c, ENTITY_INSTANCE, SESSION_FX_UPDATE, CONTRACT_INSTANCE,
                                 &i->renew_correlation, true, &o);
    o->u.instance = i->row;
    lease_build_renewal(&o->u.instance, boot_us, c->wall, !session_admitting(c));
    remember_sent(i, boot_us);
    i->renew = RENEW_SENT;
    i->renew_by = base_time_add(c->now, SESSION_RENEW_WAIT);
}

/* A renewal of this identity that was sent at `boot_us` is known to have landed. */
static void renew_confirmed(struct session_core *c, int64_t boot_us)
{
    struct session_instance *i = &c->inst;
    base_time at = boot_us * BASE_US;
    if (base_mutant("renew.anchor"))
        at = c->now; /* not at the send but at the answer */
    i->renewed = base_time_max(i->renewed, at);
    i->renew = RENEW_IDLE;
    i->renew_ask = 0;
    i->renew_tries = 0;
    i->renew_at = base_time_add(i->renewed, session_jitter(c, c->cfg.timing.interval));
    session_all_dirty(c);
}

/* Applies a row unless something newer is known; false = older. */
static bool apply(struct session_core *c, const struct contract_instance *row)
{
    struct session_instance *i = &c->inst;
    if (i->have_row && base_uuid_eq(&i->row.meta.uid, &row->meta.uid) &&
        session_version_below(row->meta.rv, i->row.meta.rv))
        return false;
    i->row = *row;
    i->row_at = c->now;
    i->have_row = true;
    return true;
}

static enum inst_state on_held_answer(struct session_core *c, const struct session_in *in)
{
    struct session_instance *i = &c->inst;
    const struct session_answer *an = &in->u.answer;
    bool sent = i->renew == RENEW_SENT;
    if (an->code == BASE_ENOTFOUND)
        return down(c, WHY_INSTANCE_LOST, false);
    if (an->code == BASE_OK) {
        const struct contract_instance *row = &an->objects[0].u.instance;
        bool lost, older = !apply(c, row);
        enum session_why why = row_says(c, &i->row, &lost);
        /* an answer that was asked for after a newer version was seen */
        if (older && an->sent > i->row_at && !base_mutant("regress.answer"))
            why = WHY_EPOCH_REGRESSED;
        if (why != WHY_NONE)
            return not_mine(c, why, lost);
        if (sent || lease_instance_outcome(&i->renewal, row) == LEASE_LANDED) {
            renew_confirmed(c, i->renewal.boot_us);
            return INST_HELD;
        }
        renew_audit(c); /* it did not land, or may still: the next one on this version settles it */
        return INST_HELD;
    }
    if (sent && (an->code == BASE_ECONFLICT || an->code == BASE_EUNKNOWN))
        renew_read(c);
    else
        renew_pause(c);
    return INST_HELD;
}

static enum inst_state on_held_audit(struct session_core *c, const struct session_in *in)
{
    if (in->u.audit.durable || base_mutant("audit.renew"))
        renew_send(c);
    else
        renew_pause(c);
    return INST_HELD;
}

static enum inst_state on_held_time(struct session_core *c, const struct session_in *in)
{
    (void)in;
    struct session_instance *i = &c->inst;
    if (c->now >= held_end(c) && !base_mutant("instance.expiry"))
        return down(c, WHY_LEASE_EXPIRED, false);
    if (i->renew == RENEW_IDLE) {
        if (c->now >= i->renew_at)
            renew_audit(c);
    } else if (c->now >= i->renew_by) {
        if (i->renew == RENEW_AUDIT)
            renew_pause(c);
        else
            renew_read(c);
    }
    return INST_HELD;
}

/* ---- giving it back */
static void send_release(struct session_core *c)
{
    struct session_instance *i = &c->inst;
    struct contract_object *o;
    int64_t boot_us = c->now / BASE_US;
    i->ask =
        session_write(c, ENTITY_INSTANCE, SESSION_FX_UPDATE, CONTRACT_INSTANCE, &i->correlation, true, &o);
    o->u.instance = i->row;
    lease_build_instance_release(&o->u.instance, boot_us, c->wall);
    remember_sent(i, boot_us);
    i->ask_by = base_time_add(c->now, SESSION_RENEW_WAIT);
}

static enum inst_state on_drained(struct session_core *c, const struct session_in *in)
{
    (void)in;
    struct session_instance *i = &c->inst;
    struct session_audit *a = session_audit(c, SESSION_AUDIT_RELEASE, true, "InstanceRelease", i->name);
    a->correlation = i->correlation = session_correlation(c);
    a->object_uid = i->me.instance_uid;
    a->epoch = i->me.epoch;
    a->lease_uuid = i->me.process_id;
    (void)base_copy(a->old_holder, sizeof a->old_holder, c->cfg.node);
    i->renew = RENEW_IDLE;
    i->renew_ask = 0;
    send_release(c);
    return INST_RELEASING;
}

static enum inst_state released(struct session_core *c)
{
    c->inst.why = WHY_RELEASED;
    c->inst.ask = 0;
    session_att_down(c);
    session_dirty(c, ENTITY_DRAIN);
    return INST_RELEASED;
}

static enum inst_state on_nothing_held(struct session_core *c, const struct session_in *in)
{
    (void)in;
    return released(c);
}

static enum inst_state on_releasing_answer(struct session_core *c, const struct session_in *in)
{
    struct session_instance *i = &c->inst;
    const struct session_answer *an = &in->u.answer;
    i->ask = 0;
    if (an->code == BASE_OK) {
        const struct contract_instance *row = &an->objects[0].u.instance;
        bool lost;
        (void)apply(c, row);
        if (row->spec.release_time != 0 || row_says(c, row, &lost) != WHY_NONE)
            return released(c); /* landed, or not mine any more */
        send_release(c);        /* that was the read after a conflict */
    } else if (an->code == BASE_ENOTFOUND) {
        return released(c);
    } else if (an->code == BASE_ECONFLICT || an->code == BASE_EUNKNOWN) {
        ask_row(c);
    } else {
        i->retry_at = base_time_add(c->now, session_backoff(c, i->tries++));
    }
    return INST_RELEASING;
}

static enum inst_state on_releasing_time(struct session_core *c, const struct session_in *in)
{
    (void)in;
    struct session_instance *i = &c->inst;
    if (c->drain_gave_up || c->now >= held_end(c))
        return released(c);
    if (c->now >= (i->ask != 0 ? i->ask_by : i->retry_at))
        ask_row(c);
    return INST_RELEASING;
}

static enum inst_state on_releasing_gone(struct session_core *c, const struct session_in *in)
{
    (void)in;
    return released(c);
}

/* Nothing is left to give back that anybody would know of. */
static enum inst_state on_releasing_regressed(struct session_core *c, const struct session_in *in)
{
    (void)in;
    c->inst.have_row = false;
    return released(c);
}

static enum inst_state stay(struct session_core *c, const struct session_in *in)
{
    (void)in;
    return c->inst.state;
}

/* Cannot come in this state: START is refused after the first (session_core_step); an answer or a record has
 * to be of the question that the state has asked (answer, core.c); rows are compared in HELD, RELEASING and
 * TAKEN only (session_inst_row); a device is open while HELD or RELEASING (attachment.c); INIT and RELEASED
 * have no timer (session_inst_wake); DRAINED comes once (session_drain_settle). */
static enum inst_state illegal(struct session_core *c, const struct session_in *in)
{
    (void)in;
    assert(!"event is illegal in this state of the instance");
    return c->inst.state;
}

typedef enum inst_state (*inst_fn)(struct session_core *c, const struct session_in *in);
#define TO(s) (1U << INST_##s)
static const struct inst_cell {
    inst_fn fn;
    unsigned to; /* allowed next states besides the same one */
} table[INST_STATE_N][INST_EV_N] =
    {
        [INST_INIT] =
            {
                [INST_EV_START] = {on_start, TO(READING) | TO(RETRY)},
                [INST_EV_ANSWER] = {illegal, 0},
                [INST_EV_AUDIT] = {illegal, 0},
                [INST_EV_ROW] = {illegal, 0},
                [INST_EV_GONE] = {stay, 0},
                [INST_EV_TIME] = {illegal, 0},
                [INST_EV_LOST] = {illegal, 0},
                [INST_EV_REGRESSED] = {stay, 0},
                [INST_EV_DRAINED] = {on_nothing_held, TO(RELEASED)},
            },
        [INST_READING] =
            {
                [INST_EV_START] = {illegal, 0},
                [INST_EV_ANSWER] = {on_read, TO(AUDITING) | TO(HELD) | TO(TAKEN) | TO(RETRY)},
                [INST_EV_AUDIT] = {illegal, 0},
                [INST_EV_ROW] = {illegal, 0},
                [INST_EV_GONE] = {stay, 0},
                [INST_EV_TIME] = {on_reading_time, TO(RETRY)},
                [INST_EV_LOST] = {illegal, 0},
                [INST_EV_REGRESSED] = {on_regressed, TO(RETRY) | TO(READING)},
                [INST_EV_DRAINED] = {on_nothing_held, TO(RELEASED)},
            },
        [INST_AUDITING] =
            {
                [INST_EV_START] = {illegal, 0},
                [INST_EV_ANSWER] = {illegal, 0},
                [INST_EV_AUDIT] = {on_audited, TO(WRITING) | TO(RETRY)},
                [INST_EV_ROW] = {illegal, 0},
                [INST_EV_GONE] = {stay, 0},
                [INST_EV_TIME] = {on_reading_time, TO(RETRY)},
                [INST_EV_LOST] = {illegal, 0},
                [INST_EV_REGRESSED] = {on_regressed, TO(RETRY) | TO(READING)},
                [INST_EV_DRAINED] = {on_nothing_held, TO(RELEASED)},
            },
        [INST_WRITING] =
            {
                [INST_EV_START] = {illegal, 0},
                [INST_EV_ANSWER] = {on_written, TO(HELD) | TO(RETRY)},
                [INST_EV_AUDIT] = {illegal, 0},
                [INST_EV_ROW] = {illegal, 0},
                [INST_EV_GONE] = {stay, 0},
                [INST_EV_TIME] = {on_reading_time, TO(RETRY)},
                [INST_EV_LOST] = {illegal, 0},
                [INST_EV_REGRESSED] = {on_regressed, TO(RETRY) | TO(READING)},
                [INST_EV_DRAINED] = {on_nothing_held, TO(RELEASED)},
            },
        [INST_RETRY] =
            {
                [INST_EV_START] = {illegal, 0},
                [INST_EV_ANSWER] = {illegal, 0},
                [INST_EV_AUDIT] = {illegal, 0},
                [INST_EV_ROW] = {illegal, 0},
                [INST_EV_GONE] = {stay, 0},
                [INST_EV_TIME] = {on_retry_time, TO(READING)},
                [INST_EV_LOST] = {illegal, 0},
                [INST_EV_REGRESSED] = {on_regressed, TO(READING)},
                [INST_EV_DRAINED] = {on_nothing_held, TO(RELEASED)},
            },
        [INST_TAKEN] =
            {
                [INST_EV_START] = {illegal, 0},
                [INST_EV_ANSWER] = {stay, 0},
                [INST_EV_AUDIT] = {illegal, 0},
                [INST_EV_ROW] = {on_taken_row, TO(READING)},
                [INST_EV_GONE] = {on_taken_gone, TO(READING)},
                [INST_EV_TIME] = {on_taken_time, TO(READING)},
                [INST_EV_LOST] = {illegal, 0},
                [INST_EV_REGRESSED] = {on_regressed, TO(RETRY) | TO(READING)},
                [INST_EV_DRAINED] = {on_nothing_held, TO(RELEASED)},
            },
        [INST_HELD] =
            {
                [INST_EV_START] = {illegal, 0},
                [INST_EV_ANSWER] = {on_held_answer, TO(READING) | TO(RETRY)},
                [INST_EV_AUDIT] = {on_held_audit, 0},
                [INST_EV_ROW] = {on_held_row, TO(READING) | TO(RETRY)},
                [INST_EV_GONE] = {on_held_gone, TO(READING) | TO(RETRY)},
                [INST_EV_TIME] = {on_held_time, TO(READING) | TO(RETRY)},
                [INST_EV_LOST] = {on_held_lost, TO(READING) | TO(RETRY)},
                [INST_EV_REGRESSED] = {on_regressed, TO(RETRY) | TO(READING)},
                [INST_EV_DRAINED] = {on_drained, TO(RELEASING)},
            },
        [INST_RELEASING] =
            {
                [INST_EV_START] = {illegal, 0},
                [INST_EV_ANSWER] = {on_releasing_answer, TO(RELEASED)},
                [INST_EV_AUDIT] = {illegal, 0},
                [INST_EV_ROW] = {stay, 0},
                [INST_EV_GONE] = {on_releasing_gone, TO(RELEASED)},
                [INST_EV_TIME] = {on_releasing_time, TO(RELEASED)},
                [INST_EV_LOST] = {stay, 0},
                [INST_EV_REGRESSED] = {on_releasing_regressed, TO(RELEASED)},
                [INST_EV_DRAINED] = {illegal, 0},
            },
        [INST_RELEASED] =
            {
                [INST_EV_START] = {stay, 0},
                [INST_EV_ANSWER] = {illegal, 0},
                [INST_EV_AUDIT] = {illegal, 0},
                [INST_EV_ROW] = {illegal, 0},
                [INST_EV_GONE] = {stay, 0},
                [INST_EV_TIME] = {illegal, 0},
                [INST_EV_LOST] = {illegal, 0},
                [INST_EV_REGRESSED] = {stay, 0},
                [INST_EV_DRAINED] = {illegal, 0},
            },
};

void session_inst_cell(unsigned i, struct session_cell *ret)
{
    unsigned s = i / INST_EV_N, e = i % INST_EV_N;
    assert(i < SESSION_INST_CELLS);
    assert(table[s][e].fn);
    *ret = (struct session_cell){.machine = "instance",
                                 .state = session_inst_state_name((enum inst_state)s),
                                 .event = ev_name((enum inst_ev)e),
                                 .impossible = table[s][e].fn == illegal};
}

void session_inst_wake(struct session_core *c)
{
    const struct session_instance *i = &c->inst;
    base_time at = BASE_TIME_NEVER;
    switch (i->state) {
    case INST_READING:
    case INST_AUDITING:
    case INST_WRITING:
        at = i->ask_by;
        break;
    case INST_RETRY:
        at = i->retry_at;
        break;
    case INST_TAKEN:
        at = taken_end(i);
        break;
    case INST_HELD:
        at = base_time_min(held_end(c), i->renew == RENEW_IDLE ? i->renew_at : i->renew_by);
        break;
    case INST_RELEASING:
        at = base_time_min(held_end(c), i->ask != 0 ? i->ask_by : i->retry_at);
        break;
    case INST_INIT:
    case INST_RELEASED:
    case INST_STATE_N:
        break;
    }
    session_timer_set(&c->timers, ENTITY_INSTANCE, at);
}

void session_inst_event(struct session_core *c, enum inst_ev ev, const struct session_in *in)
{
    struct session_instance *i = &c->inst;
    enum inst_state from = i->state;
    const struct inst_cell *cell = &table[from][ev];
    session_cell_reached(c, (unsigned)from * INST_EV_N + (unsigned)ev);
    enum inst_state to = cell->fn(c, in);
    assert(to == from || (cell->to & (1U << to)) != 0);
    i->state = to;
    if (to != from) {
        session_trace(c, "instance", i->name, session_inst_state_name(from), session_inst_state_name(to),
                      ev_name(ev), session_reason_of(i->why).name, i->me.epoch, &i->correlation,
                      to == INST_TAKEN || to == INST_RETRY);
        session_dirty(c, ENTITY_DRAIN);
    }
    session_inst_wake(c);
}

void session_inst_row(struct session_core *c, const struct contract_instance *row, bool deleted,
                      const char *rv)
{
    struct session_instance *i = &c->inst;
    if (strcmp(row->meta.name, i->name) != 0)
        return; /* another provider's, or of another name */
    i->in_cache = i->seen = !deleted;
    if (deleted) {
        /* no uid: all that is known is that the object of this name makes no sense, and counts as absent */
        bool any = base_uuid_is_zero(&row->meta.uid) && !base_mutant("row.unreadable");
        if (i->have_watched && (any || base_uuid_eq(&i->watched.meta.uid, &row->meta.uid)))
            i->have_watched = false;
        if (i->have_row && ((!any && !base_uuid_eq(&i->row.meta.uid, &row->meta.uid)) ||
                            session_version_below(rv, i->row.meta.rv)))
            return; /* of an object before this one */
        session_inst_event(c, INST_EV_GONE, NULL);
        return;
    }
    if (i->have_row)
        session_regress_listed(c, CONTRACT_INSTANCE, i->row.meta.rv, row->meta.rv);
    if (!i->have_watched || !base_uuid_eq(&i->watched.meta.uid, &row->meta.uid) ||
        session_version_below(i->watched.meta.rv, row->meta.rv)) {
        i->watched = *row;
        i->have_watched = true;
    }
    /* A row is compared with what this identity holds only once it holds one: before that, decisions rest on
     * reads. */
    if (i->state == INST_HELD || i->state == INST_RELEASING || i->state == INST_TAKEN) {
        if (apply(c, row))
            session_inst_event(c, INST_EV_ROW, NULL);
    }
}

void session_inst_check(const struct session_core *c)
{
    const struct session_instance *i = &c->inst;
    assert(i->state < INST_STATE_N);
    if (i->state == INST_HELD || i->state == INST_RELEASING) {
        assert(i->have_row);
        assert(i->me.epoch >= 1);
        assert(!base_uuid_is_zero(&i->me.instance_uid));
        assert(i->renewed > 0);
        assert(i->serial > 0);
    } else if (i->state != INST_RELEASED) {
        assert(i->why != WHY_NONE || i->state == INST_INIT); /* who is not ready says why */
        assert(i->me.epoch == 0); /* nothing may be written in the name of an instance that is not held */
        assert(i->renewed == 0);
        assert(i->renew == RENEW_IDLE);
    }
    if (i->state == INST_READING || i->state == INST_AUDITING || i->state == INST_WRITING)
        assert(i->ask != 0);
    if (i->renew != RENEW_IDLE)
        assert(i->renew_ask != 0);
}
