/* SPDX-License-Identifier: Apache-2.0
 *
 * session/regress.c - the API server went back, as after an etcd restore (contract section 5, "Regression").
 *
 * What was known here may belong to a history that never was: versions, epochs, who holds what. So everything
 * closes (reason EpochRegressed), everything known is void, every collection is listed again, and for W
 * nothing is taken: a holder of the lost history, which no row names any more, cannot prove anything either,
 * and W after this moment its gate is shut. Then the rows as stored are the start, and the way on is
 * takeover.
 *
 * Who notices: the driver (SESSION_EV_REGRESSED: a version of a quorum answer below one seen before it was
 * asked for), or this core, when a row shows an epoch below one that was seen, or a seen epoch with another
 * owner, or a quorum answer a version below one of that object that was applied before the question was sent;
 * then SESSION_FX_RELIST asks the driver to start every collection over.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

base_time session_regress_end(const struct session_core *c)
{
    if (c->regressed_at == 0)
        return 0;
    return base_time_add(c->regressed_at, contract_wait(&c->cfg.timing, c->max_lease_s));
}

bool session_regressed(const struct session_core *c)
{
    return c->now < session_regress_end(c) && !base_mutant("regress.wait");
}

/* By name, whatever the UID: an object that was made again has a version above the one before it. */
void session_regress_listed(struct session_core *c, enum contract_kind kind, const char *known,
                            const char *rv)
{
    const char *list = c->list_rv[kind];
    bool covered = session_version_below(known, list) || strcmp(known, list) == 0;
    if (covered && session_version_below(rv, known) && !base_mutant("regress.listed"))
        c->regress_due = true;
}

void session_regress_answer(struct session_core *c, const char *known, base_time known_at, const char *rv,
                            base_time sent)
{
    if (sent <= known_at && !base_mutant("regress.read-before"))
        return; /* the newer one came while this was on its way */
    if (session_version_below(rv, known) && !base_mutant("regress.read"))
        c->regress_due = true;
}

/* A connector's row is remembered beyond its claim: it is read again for the next request. */
void session_claim_seen(struct session_core *c, struct session_conn *n, const struct contract_claim *row)
{
    if (base_prefix_eq(&n->known.prefix, &row->spec.prefix) &&
        (session_version_below(row->meta.rv, n->known.rv) || strcmp(row->meta.rv, n->known.rv) == 0))
        return;
    n->known.prefix = row->spec.prefix;
    (void)base_copy(n->known.rv, sizeof n->known.rv, row->meta.rv);
    n->known.at = c->now;
}

/* The longest lease that any claim was seen with: a gate of the lost history may be open as long. */
void session_regress_lease(struct session_core *c, const struct session_in *in)
{
    const struct contract_object *o = NULL;
    size_t n = 0;
    if (in->ev == SESSION_EV_ROW && !in->u.row.deleted) {
        o = in->u.row.object;
        n = 1;
    } else if (in->ev == SESSION_EV_ANSWER && in->u.answer.code == BASE_OK) {
        o = in->u.answer.objects;
        n = in->u.answer.n_objects;
    }
    for (size_t i = 0; i < n; i++) {
        if (o[i].kind != CONTRACT_CLAIM || base_mutant("regress.max-lease"))
            continue;
        int32_t l = o[i].u.claim.spec.max_lease_seconds;
        if (l > c->max_lease_s)
            c->max_lease_s = l < LEASE_SECONDS_MAX ? l : LEASE_SECONDS_MAX;
    }
}

static void forget_conn(struct session_conn *n)
{
    struct session_claim *k = &n->claim;
    n->b.rv[0] = '\0';
    n->b.generation = 0; /* it may come again, with another spec */
    n->b_t0 = 0;
    k->rv[0] = '\0';
    k->t0 = 0;
    k->in_cache = false;
    n->cached_uid = (struct base_uuid){{0}};
    n->cached_rv[0] = '\0';
    n->known.rv[0] = '\0';
    memset(&n->attempt, 0, sizeof n->attempt); /* another process has nothing to release */
    memset(n->unknown, 0, sizeof n->unknown);
    n->denied_process = (struct base_uuid){{0}};
    n->closing_since = 0;
    n->seen_epoch = 0;
    n->acquire_refused = false;
    n->report.ask = 0; /* it was only a report */
    n->saying = false;
}

void session_regress(struct session_core *c)
{
    c->regress_due = false;
    c->regressed_at = base_time_max(c->now, 1);
    session_trace(c, "instance", c->inst.name, "Known", "Unknown", "regress",
                  session_reason_of(WHY_EPOCH_REGRESSED).name, c->inst.me.epoch, NULL, true);
    if (!base_mutant("regress.forget")) {
        memset(c->listed, 0, sizeof c->listed);
        memset(c->list_rv, 0, sizeof c->list_rv);
        for (unsigned i = 0; i < PROOF_N; i++) {
            c->proof[i].t0 = 0;
            session_proof_forget(c, i); /* none that was asked before counts */
            session_proof_wake(c, i);
        }
        for (uint32_t i = 0; i < c->cfg.max_services; i++) {
            c->svc[i].s.rv[0] = '\0';
            c->svc[i].t0 = 0;
        }
        for (uint32_t i = 0; i < c->conn_fresh; i++)
            if (c->conn[i].used)
                forget_conn(&c->conn[i]);
        session_att_forget(c);
    }
    session_inst_event(c, INST_EV_REGRESSED, NULL); /* a new identity: nothing that was asked before counts */
    for (uint32_t i = 0; i < c->job_fresh; i++)
        if (c->job[i].state != JOB_FREE)
            session_dirty(c, session_entity_job(c, &c->job[i]));
    session_all_dirty(c);
}
