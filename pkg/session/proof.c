/* SPDX-License-Identifier: Apache-2.0
 *
 * session/proof.c - collection proofs (contract section 5): bindings and services make the authority proof,
 * own claims the claim proof. One of each per interval, whatever the number of connectors.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

/* A third of the smallest grant in use is how often the authority proofs have to come; the claim proof goes
 * by the lease (contract section 9). */
static base_time pace_of(const struct session_core *c, const struct session_conn *n)
{
    return base_mutant("proof.pace")
               ? c->cfg.timing.interval
               : base_time_min(c->cfg.timing.interval, authority_grant(&n->b, &c->cfg.timing) / 3);
}

static base_time interval(const struct session_core *c, unsigned i)
{
    base_time t = c->cfg.timing.interval;
    for (uint32_t k = 0; i != PROOF_CLAIMS && c->busy > 0 && k < c->conn_fresh; k++)
        if (c->conn[k].used && c->conn[k].bound && c->conn[k].state != CONN_IDLE)
            t = base_time_min(t, pace_of(c, &c->conn[k]));
    return t;
}

void session_proof_pace(struct session_core *c, const struct session_conn *n)
{
    for (unsigned i = 0; i < PROOF_N; i++) {
        struct session_proof *p = &c->proof[i];
        bool asked = false;
        for (unsigned k = 0; k < SESSION_PROOFS; k++)
            asked = asked || p->ask[k] != 0;
        if (i == PROOF_CLAIMS || asked)
            continue;
        p->next_at = base_time_min(p->next_at, base_time_add(p->t0, pace_of(c, n)));
        session_proof_wake(c, i);
    }
}

void session_proof_wake(struct session_core *c, unsigned i)
{
    const struct session_proof *p = &c->proof[i];
    session_timer_set(&c->timers, ENTITY_PROOF + i, c->listed[p->kind] ? p->next_at : BASE_TIME_NEVER);
}

void session_proof_run(struct session_core *c, unsigned i)
{
    struct session_proof *p = &c->proof[i];
    if (c->listed[p->kind] && c->now >= p->next_at) {
        struct session_fx *fx = session_fx(c, SESSION_FX_PROVE);
        fx->u.prove.ask = session_ask(c, ENTITY_PROOF + i);
        fx->u.prove.collection = p->kind;
        fx->u.prove.timeout = base_time_min(c->cfg.timing.interval, 2 * SESSION_PROOF_AGAIN);
        p->ask[p->asked++ % SESSION_PROOFS] = fx->u.prove.ask;
        p->next_at = base_time_add(c->now, SESSION_PROOF_AGAIN); /* each has its own t0 */
    }
    session_proof_wake(c, i);
}

void session_proof_forget(struct session_core *c, unsigned i)
{
    memset(c->proof[i].ask, 0, sizeof c->proof[i].ask);
    c->proof[i].next_at = c->now;
}

/* A proof counts for a row only if the row is in it, as mine. */
static void claims_proved(struct session_core *c, base_time t0)
{
    for (uint32_t k = 0; k < c->conn_fresh; k++) {
        struct session_conn *n = &c->conn[k];
        struct session_claim *r = &n->claim;
        if (n->state == CONN_IDLE || base_uuid_is_zero(&r->uid))
            continue;
        bool in = (r->in_cache || base_mutant("proof.in-cache")) && r->mine && !r->released && !r->deleting;
        if (in || base_mutant("proof.row"))
            r->t0 = base_time_max(r->t0, t0);
        else if (r->first_seen <= t0)
            r->mine = false; /* written before t0 and not in the collection: it is not mine any more */
        session_dirty(c, session_entity_conn(c, n));
    }
}

void session_proof_event(struct session_core *c, const struct session_in *in)
{
    base_time t0 = in->u.proof.t0;
    for (unsigned i = 0; i < PROOF_N; i++) {
        struct session_proof *p = &c->proof[i];
        unsigned k = 0;
        while (k < SESSION_PROOFS && (p->ask[k] == 0 || p->ask[k] != in->u.proof.ask))
            k++;
        if (k == SESSION_PROOFS)
            continue;
        p->ask[k] = 0;
        if (!in->u.proof.proved || t0 <= 0 || t0 > c->now) {
            /* deadlines run, it is asked again soon; nothing else follows */
            p->next_at = base_time_min(p->next_at, base_time_add(c->now, session_jitter(c, BASE_SEC)));
        } else {
            if (base_mutant("proof.anchor"))
                t0 = c->now;
            p->t0 = base_time_max(p->t0, t0);
            memset(p->ask, 0, sizeof p->ask);
            p->next_at = base_time_add(t0, session_jitter(c, interval(c, i)));
            if (i == PROOF_CLAIMS)
                claims_proved(c, t0);
            else
                session_all_dirty(c);
        }
        session_proof_wake(c, i);
        return;
    }
    /* a late answer: the question was given up; nothing follows */
}

base_time session_authority_t0(const struct session_core *c, const struct session_conn *n)
{
    base_time binding = base_time_max(c->proof[PROOF_BINDINGS].t0, n->b_t0);
    base_time service = c->proof[PROOF_SERVICES].t0;
    if (n->svc < c->cfg.max_services)
        service = base_time_max(service, c->svc[n->svc].t0);
    if (base_mutant("authority.binding-proof"))
        binding = c->now;
    if (base_mutant("authority.service-proof"))
        service = c->now;
    return base_time_min(binding, service);
}

bool session_services_stale(const struct session_core *c, const struct session_conn *n,
                            const struct session_service *s)
{
    base_time t0 = c->proof[PROOF_SERVICES].t0;
    if (s)
        t0 = base_time_max(t0, s->t0);
    return !s || c->now >= s->s.until || t0 == 0 || c->now > base_time_add(t0, pace_of(c, n) * 3 / 2);
}
