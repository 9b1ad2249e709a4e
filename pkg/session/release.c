/* SPDX-License-Identifier: Apache-2.0
 *
 * session/release.c - giving routes back, each as a job of its own (contract sections 4 and 11).
 *
 * A job names the uid, epoch and leaseUUID that it means. It reads the row afresh, checks on the object that
 * it has just read that this process still holds exactly that, and writes releaseTime with the row's uid and
 * resourceVersion. After a conflict or a lost answer it starts with the read again, and so never follows a
 * successor. Releasing takes authority away: its record is made, but not waited for.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

static void read_row(struct session_core *c, struct session_job *j)
{
    char name[CONTRACT_NAME_SIZE];
    contract_claim_name(name, &j->prefix);
    j->ask = session_get(c, session_entity_job(c, j), CONTRACT_CLAIM, name, &j->correlation);
    j->ask_by = base_time_add(c->now, SESSION_READ_WAIT);
    j->state = JOB_READING;
}

void session_release(struct session_core *c, const struct base_prefix *prefix, const struct base_uuid *uid,
                     const struct base_uuid *lease_uuid, int64_t epoch, const char *reason,
                     const struct base_correlation *correlation)
{
    if (c->jobs_active > 0)
        for (uint32_t i = 0; i < c->job_fresh; i++)
            if (c->job[i].state != JOB_FREE && base_uuid_eq(&c->job[i].uid, uid) &&
                c->job[i].epoch == epoch && base_uuid_eq(&c->job[i].lease_uuid, lease_uuid))
                return; /* it is being released */
    if (c->job_free == UINT32_MAX && c->job_fresh == c->n_jobs) {
        session_trace(c, "connector", "", "None", "None", "release", "TooManyReleases", epoch, correlation,
                      true);
        return;
    }
    struct session_job *j = &c->job[c->job_free != UINT32_MAX ? c->job_free : c->job_fresh++];
    if (c->job_free != UINT32_MAX)
        c->job_free = j->next_free;
    c->jobs_active++;
    *j = (struct session_job){.prefix = *prefix,
                              .uid = *uid,
                              .lease_uuid = *lease_uuid,
                              .epoch = epoch,
                              .identity = c->inst.serial,
                              .reason = reason,
                              .correlation = *correlation,
                              .state = JOB_RETRY,
                              .retry_at = c->now};
    session_dirty(c, session_entity_job(c, j));
    session_job_wake(c, j);
}

void session_release_claim(struct session_core *c, struct session_conn *n, const char *reason)
{
    struct session_claim *k = &n->claim;
    if (k->identity == c->inst.serial && !k->released)
        session_release(c, &k->prefix, &k->uid, &k->lease_uuid, k->epoch, reason,
                        n->ses.flow != 0 ? &n->ses.correlation : &n->req.correlation);
    uint64_t identity = k->identity;
    memset(k, 0, sizeof *k);
    k->identity = identity;
    n->ask_binding = 0;
    n->reread = false;
}

static void finish(struct session_core *c, struct session_job *j)
{
    j->state = JOB_FREE;
    j->ask = 0;
    j->next_free = c->job_free;
    c->job_free = (uint32_t)(j - c->job);
    c->jobs_active--;
    session_dirty(c, ENTITY_DRAIN);
}

static struct session_audit *record(struct session_core *c, struct session_job *j, bool allowed,
                                    const char *reason)
{
    struct session_audit *a =
        session_audit(c, allowed ? SESSION_AUDIT_RELEASE : SESSION_AUDIT_REJECT, allowed, reason, NULL);
    contract_claim_name(a->object, &j->prefix);
    a->object_uid = j->uid;
    a->epoch = j->epoch;
    a->lease_uuid = j->lease_uuid;
    a->correlation = j->correlation;
    (void)base_copy(a->old_holder, sizeof a->old_holder, c->cfg.node);
    return a;
}

static void read_done(struct session_core *c, struct session_job *j, const struct session_answer *an)
{
    const struct contract_claim *row = an->code == BASE_OK ? &an->objects[0].u.claim : NULL;
    struct lease_ask ask = {
        .op = LEASE_RELEASE, .me = &c->inst.me, .epoch = j->epoch, .lease_uuid = &j->lease_uuid};
    if (!row || (!base_uuid_eq(&row->meta.uid, &j->uid) && !base_mutant("release.uid"))) {
        finish(c, j); /* gone: nothing of ours is left */
        return;
    }
    enum lease_reason r = lease_decide(&ask, row);
    if (r == LEASE_RELEASED) {
        finish(c, j);
        return;
    }
    if (r != LEASE_OK) { /* a late release names an older one: it changes nothing and is recorded */
        struct session_audit *a = record(c, j, false, lease_reason_name(r));
        (void)base_copy(a->new_holder, sizeof a->new_holder, row->spec.holder.node);
        finish(c, j);
        return;
    }
    struct contract_object *o;
    (void)record(c, j, true, j->reason);
    j->ask = session_write(c, session_entity_job(c, j), SESSION_FX_UPDATE, CONTRACT_CLAIM, &j->correlation,
                           false, &o);
    j->ask_by = base_time_add(c->now, SESSION_WRITE_WAIT);
    o->u.claim = *row;
    lease_build_release(&o->u.claim, c->wall, &j->correlation);
    j->state = JOB_WRITING;
}

void session_job_answer(struct session_core *c, struct session_job *j, const struct session_answer *an)
{
    if (j->state == JOB_FREE || an->ask != j->ask)
        return; /* late */
    j->ask = 0;
    bool answered = an->code == BASE_OK || an->code == BASE_ENOTFOUND;
    if (j->identity != c->inst.serial) {
        finish(c, j); /* that process has ended; the foundation closes what it held */
    } else if (answered && j->state == JOB_READING) {
        read_done(c, j, an);
    } else if (answered) {
        finish(c, j);
    } else if (an->code == BASE_ECONFLICT) {
        read_row(c, j);
    } else { /* unknown, refused or unanswered: what does the row say, a little later */
        j->state = JOB_RETRY;
        j->retry_at = base_time_add(c->now, session_backoff(c, j->tries++));
    }
    session_job_wake(c, j);
}

void session_job_settle(struct session_core *c, struct session_job *j)
{
    assert(j->state != JOB_FREE);
    if (j->identity != c->inst.serial || c->drain_gave_up)
        finish(c, j);
    else /* the pause is over, or the answer is lost */
        read_row(c, j);
    session_job_wake(c, j);
}

void session_job_wake(struct session_core *c, struct session_job *j)
{
    base_time at = j->state == JOB_FREE ? BASE_TIME_NEVER : j->state == JOB_RETRY ? j->retry_at : j->ask_by;
    session_timer_set(&c->timers, session_entity_job(c, j), at);
}
