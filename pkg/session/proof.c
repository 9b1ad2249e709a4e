/* SPDX-License-Identifier: Apache-2.0
 *
 * session/proof.c - collection proofs (contract section 5): bindings and services make the authority proof,
 * own claims the claim proof. One of each per interval, whatever the number of connectors.
 */
#include "session/int.h"

#include "base/mutant.h"

void session_proof_wake(struct session_core *c, unsigned i)
{
    const struct session_proof *p = &c->proof[i];
    base_time at = !c->listed[p->kind] ? BASE_TIME_NEVER : p->ask != 0 ? p->ask_by : p->next_at;
    session_timer_set(&c->timers, ENTITY_PROOF + i, at);
}

static void failed(struct session_core *c, struct session_proof *p)
{
    p->ask = 0;
    p->next_at = base_time_add(c->now, session_jitter(c, BASE_SEC)); /* deadlines run; nothing else follows */
}

void session_proof_run(struct session_core *c, unsigned i)
{
    struct session_proof *p = &c->proof[i];
    if (c->listed[p->kind]) {
        if (p->ask != 0 && c->now >= p->ask_by)
            failed(c, p); /* lost */
        if (p->ask == 0 && c->now >= p->next_at) {
            struct session_fx *fx = session_fx(c, SESSION_FX_PROVE);
            p->ask = fx->u.prove.ask = session_ask(c, ENTITY_PROOF + i);
            fx->u.prove.collection = p->kind;
            fx->u.prove.timeout = c->cfg.timing.interval;
            p->ask_by = base_time_add(c->now, c->cfg.timing.interval + 2 * BASE_SEC);
        }
    }
    session_proof_wake(c, i);
}

/* A proof counts for a row only if the row is in it, as mine. */
static void claims_proved(struct session_core *c, base_time t0)
{
    for (uint32_t k = 0; k < c->cfg.max_connectors; k++) {
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
    for (unsigned i = 0; i < PROOF_N; i++) {
        struct session_proof *p = &c->proof[i];
        if (p->ask == 0 || p->ask != in->u.proof.ask)
            continue;
        if (!in->u.proof.proved || in->u.proof.t0 <= 0 || in->u.proof.t0 > c->now) {
            failed(c, p);
        } else {
            base_time t0 = base_mutant("proof.anchor") ? c->now : in->u.proof.t0;
            p->ask = 0;
            p->t0 = base_time_max(p->t0, t0);
            p->next_at = base_time_add(t0, session_jitter(c, c->cfg.timing.interval));
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

bool session_services_stale(const struct session_core *c, const struct session_service *s)
{
    base_time t0 = c->proof[PROOF_SERVICES].t0;
    if (s)
        t0 = base_time_max(t0, s->t0);
    return !s || c->now >= s->s.until || t0 == 0 ||
           c->now > base_time_add(t0, c->cfg.timing.interval * 3 / 2);
}
