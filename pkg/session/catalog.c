/* SPDX-License-Identifier: Apache-2.0
 *
 * session/catalog.c - what the watches and reads say of bindings, services and own claims.
 *
 * Nothing here extends anything: rows may start something or take authority away; what they are worth in time
 * is proof.c's and the reads' business. A row that is older than what was applied of it changes nothing
 * (section 5).
 */
#include "session/int.h"

#include "base/hash.h"
#include "base/mutant.h"

#include <string.h>

#define NO_HINT UINT32_MAX

/* Versions that cannot be compared ("" among them) are never older: they are taken as they come. */
bool session_version_below(const char *a, const char *b)
{
    int order = 0;
    return base_rv_cmp(a, b, &order) == BASE_OK && order < 0;
}

bool session_older(const char *a, const char *b)
{
    return session_version_below(a, b) && !base_mutant("row.older");
}

/* ---- connectors by name */
static uint32_t *bucket_of(struct session_core *c, const char *name)
{
    uint64_t h = base_fnv1a(BASE_FNV1A, name, strlen(name));
    return &c->name_bucket[(uint32_t)(h ^ h >> 32) & c->name_mask];
}

struct session_conn *session_conn_find(struct session_core *c, const char *name)
{
    for (uint32_t i = *bucket_of(c, name); i != 0; i = c->conn[i - 1].next)
        if (strcmp(c->conn[i - 1].b.name, name) == 0)
            return &c->conn[i - 1];
    return NULL;
}

struct session_conn *session_conn_make(struct session_core *c, const char *name)
{
    uint32_t i = c->conn_free;
    if (i != 0)
        c->conn_free = c->conn[i - 1].next;
    else if (c->conn_fresh < c->cfg.max_connectors)
        i = ++c->conn_fresh;
    else
        return NULL;
    struct session_conn *n = &c->conn[i - 1];
    memset(n, 0, sizeof *n);
    n->used = true;
    n->desk = -1;
    n->svc = n->att = NO_HINT;
    (void)base_copy(n->b.name, sizeof n->b.name, name);
    uint32_t *b = bucket_of(c, name);
    n->next = *b;
    *b = i;
    return n;
}

void session_conn_free_if_idle(struct session_core *c, struct session_conn *n)
{
    if (n->bound || n->state != CONN_IDLE) /* IDLE: neither request nor session */
        return;
    uint32_t i = (uint32_t)(n - c->conn) + 1;
    uint32_t *at = bucket_of(c, n->b.name);
    while (*at != i)
        at = &c->conn[*at - 1].next;
    *at = n->next;
    session_timer_set(&c->timers, session_entity_conn(c, n), BASE_TIME_NEVER);
    n->used = false;
    n->next = c->conn_free;
    c->conn_free = i;
}

void session_all_dirty(struct session_core *c)
{
    if (c->busy == 0)
        return;
    for (uint32_t i = 0; i < c->conn_fresh; i++)
        if (c->conn[i].used && c->conn[i].state != CONN_IDLE)
            session_dirty(c, session_entity_conn(c, &c->conn[i]));
}

/* ---- bindings */
static void touch(void *arg, uint32_t slot)
{
    struct session_core *c = arg;
    c->conn[slot].recheck = true;
    session_dirty(c, session_entity_conn(c, &c->conn[slot]));
}

/* With or without the binding's identities: whoever shares one of them is ambiguous now, or no longer. */
static void set_identities(struct session_core *c, struct session_conn *n, bool in)
{
    authority_index_set(c->identities, (uint32_t)(n - c->conn), in ? n->b.n_identities : 0);
    for (uint8_t i = 0; i < n->b.n_identities; i++)
        authority_index_each(c->identities, n->b.identities[i], touch, c);
    n->recheck = true;
    session_dirty(c, session_entity_conn(c, n));
}

bool session_binding_row(struct session_core *c, const struct contract_binding *b)
{
    struct session_conn *n = session_conn_find(c, b->meta.name);
    if (!n) {
        n = session_conn_make(c, b->meta.name);
        if (!n) {
            c->bindings_overflow = true;
            session_trace(c, "connector", b->meta.name, "None", "None", "binding", "TooManyBindings", 0, NULL,
                          true);
            return false;
        }
    }
    n->seen = true;
    if (session_older(b->meta.rv, n->b.rv))
        return false;
    struct authority_binding next;
    if (authority_binding_of(&next, b, n->bound ? &n->b : NULL) !=
        BASE_OK) { /* no memory for a digest: not known is not admitted */
        session_binding_gone(c, n);
        return false;
    }
    bool same_uid = n->bound && base_uuid_eq(&n->b.uid, &next.uid);
    bool same_ids = same_uid && n->b.n_identities == next.n_identities &&
                    memcmp(n->b.identities, next.identities, sizeof next.identities) == 0;
    if (!same_ids && n->bound)
        set_identities(c, n, false);
    if (!same_uid)
        n->b_t0 = 0;
    n->b = next;
    n->b_at = c->now;
    n->bound = true;
    if (!same_ids)
        set_identities(c, n, true);
    if (n->state != CONN_IDLE)
        session_proof_pace(c, n);
    session_dirty(c, session_entity_conn(c, n));
    return true;
}

void session_binding_gone(struct session_core *c, struct session_conn *n)
{
    if (n->bound)
        set_identities(c, n, false);
    n->bound = false;
    n->b_t0 = 0;
    session_dirty(c, session_entity_conn(c, n));
}

void session_binding_ask(struct session_core *c, struct session_conn *n)
{
    n->ask_binding =
        session_get(c, session_entity_conn(c, n), CONTRACT_BINDING, n->b.name, &n->req.correlation);
}

/* ---- services */
static struct session_service *service_find(struct session_core *c, const char *name)
{
    for (uint32_t i = 0; i < c->cfg.max_services; i++)
        if (c->svc[i].used && strcmp(c->svc[i].s.name, name) == 0)
            return &c->svc[i];
    return NULL;
}

struct session_service *session_service_of(struct session_core *c, struct session_conn *n)
{
    if (n->svc < c->cfg.max_services && c->svc[n->svc].used &&
        strcmp(c->svc[n->svc].s.name, n->b.service) == 0)
        return &c->svc[n->svc];
    struct session_service *s = service_find(c, n->b.service);
    n->svc = s ? (uint32_t)(s - c->svc) : NO_HINT;
    return s;
}

bool session_service_row(struct session_core *c, const struct contract_service *row)
{
    struct session_service *s = service_find(c, row->meta.name);
    for (uint32_t i = 0; !s && i < c->cfg.max_services; i++) {
        if (!c->svc[i].used) {
            s = &c->svc[i];
            memset(s, 0, sizeof *s);
        }
    }
    if (!s) {
        session_trace(c, "service", row->meta.name, "None", "None", "row", "TooManyServices", 0, NULL, true);
        return false;
    }
    s->seen = true;
    if (s->used && session_older(row->meta.rv, s->s.rv))
        return false;
    struct authority_service next;
    authority_service_of(&next, row, s->used ? &s->s : NULL, c->now, c->wall);
    if (s->used && !base_uuid_eq(&s->s.uid, &next.uid))
        s->t0 = 0;
    if (!s->used || strcmp(s->s.rv, next.rv) != 0)
        s->rv_at = c->now;
    s->s = next;
    s->used = true;
    session_att_need(c);
    session_all_dirty(c);
    return true;
}

static void service_gone(struct session_core *c, struct session_service *s)
{
    s->used = false;
    session_all_dirty(c);
}

/* ---- claims */
bool session_claim_apply(struct session_core *c, struct session_conn *n, const struct contract_claim *row)
{
    struct session_claim *k = &n->claim;
    if (!base_uuid_eq(&k->uid, &row->meta.uid) || session_older(row->meta.rv, k->rv))
        return false;
    (void)base_copy(k->rv, sizeof k->rv, row->meta.rv);
    session_claim_seen(c, n, row);
    bool mine = lease_row_mine(row, &c->inst.me) || base_mutant("claim.holder");
    mine = mine && (row->spec.epoch == k->epoch || base_mutant("claim.epoch"));
    mine = mine && (base_uuid_eq(&row->spec.lease_uuid, &k->lease_uuid) || base_mutant("claim.lease"));
    /* epochs never go back, and an epoch has one nonce: the API server did */
    if ((row->spec.epoch < k->epoch && !base_mutant("regress.claim-epoch")) ||
        (row->spec.epoch == k->epoch && !base_uuid_eq(&row->spec.lease_uuid, &k->lease_uuid) &&
         !base_mutant("regress.claim-lease")))
        c->regress_due = true;
    /* once lost, lost: an epoch never comes back (and what reads like it does is an older state) */
    k->mine = k->mine && mine;
    k->released = row->spec.release_time != 0;
    k->deleting = row->meta.deleting != 0;
    k->accepted_epoch = row->status.accepted_epoch;
    k->accepted_lease = row->status.accepted_lease_uuid;
    k->gate_epoch = row->status.gate.epoch;
    k->gate_open = row->status.gate.state == CONTRACT_GATE_OPEN;
    k->closed_epoch = row->status.closed_epoch;
    k->lease_s = row->spec.lease_seconds;
    (void)base_copy(k->holder, sizeof k->holder, row->spec.holder.node);
    session_dirty(c, session_entity_conn(c, n));
    return true;
}

/* An object that nobody can read counts as absent, and all that is known of it is its name: whatever had that
 * name is gone. */
static bool names_it(const struct base_uuid *gone, const struct base_uuid *known)
{
    return base_uuid_eq(gone, known) || (base_uuid_is_zero(gone) && !base_mutant("row.unreadable"));
}

static struct session_conn *conn_by_claim(struct session_core *c, const char *claim)
{
    char name[CONTRACT_NAME_SIZE];
    for (uint32_t i = 0; i < c->conn_fresh; i++) {
        struct session_conn *n = &c->conn[i];
        if (!n->used || n->state == CONN_IDLE)
            continue;
        contract_claim_name(name, base_uuid_is_zero(&n->claim.uid) ? &n->want : &n->claim.prefix);
        if (strcmp(name, claim) == 0)
            return n;
    }
    return NULL;
}

static struct session_conn *claim_conn(struct session_core *c, const struct contract_claim *row)
{
    char name[CONTRACT_NAME_SIZE];
    if (base_uuid_is_zero(&row->meta.uid))
        return conn_by_claim(c, row->meta.name);
    if (contract_binding_name(name, row->spec.tenant, row->spec.connector, NULL) != BASE_OK)
        return NULL;
    return session_conn_find(c, name);
}

void session_claim_row(struct session_core *c, const struct contract_claim *row, bool deleted)
{
    struct session_conn *n = claim_conn(c, row);
    if (n && deleted && names_it(&row->meta.uid, &n->cached_uid))
        n->cached_uid = (struct base_uuid){{0}};
    if (n && names_it(&row->meta.uid, &n->claim.uid) && !base_uuid_is_zero(&n->claim.uid)) {
        if (deleted) {
            /* it left the selector, is gone or makes no sense: zero and stop at once; the release reads what
             * became of it */
            if (session_older(row->meta.rv, n->claim.rv))
                return;
            n->claim.in_cache = false;
            n->claim.mine = false;
            session_dirty(c, session_entity_conn(c, n));
            return;
        }
        n->claim.in_cache = n->claim.seen = true;
        session_regress_listed(c, CONTRACT_CLAIM, n->claim.rv, row->meta.rv);
        (void)session_claim_apply(c, n, row);
        return;
    }
    if (deleted || !lease_row_mine(row, &c->inst.me))
        return;
    struct lease_attempt *a = n ? session_attempt_of(n, &row->spec.lease_uuid) : NULL;
    if (a && !base_mutant("late.remembered")) {
        /* our nonce is there: it landed, with the deadline of that attempt's send; the row is known to the
         * watch */
        struct session_answer an = {.ask = n->ask, .code = BASE_OK, .sent = a->sent};
        n->cached_uid = row->meta.uid;
        (void)base_copy(n->cached_rv, sizeof n->cached_rv, row->meta.rv);
        a->epoch = row->spec.epoch;
        if (n->state == CONN_CLAIMING && a == &n->attempt && n->op != LEASE_CLOSING) {
            struct contract_object o = {.kind = CONTRACT_CLAIM};
            o.u.claim = *row;
            an.objects = &o;
            an.n_objects = 1;
            session_conn_event(c, n, &(struct conn_in){.ev = CONN_EV_WROTE, .answer = &an});
        }
        return; /* else: the read that is on its way, or comes next, finds it; or nobody waits any more, and
                   session_drop_attempts gives it back */
    }
    if (row->spec.release_time != 0 || row->meta.deleting != 0)
        return;
    /* Held by this process, and no session of it: a write that landed late. It is given back at once. */
    session_release(c, &row->spec.prefix, &row->meta.uid, &row->spec.lease_uuid, row->spec.epoch,
                    "LateLanding", &row->spec.correlation);
}

/* ---- collections */
static void binding_deleted(struct session_core *c, const struct contract_binding *b)
{
    struct session_conn *n = session_conn_find(c, b->meta.name);
    if (!n || !n->bound || !names_it(&b->meta.uid, &n->b.uid) || session_older(b->meta.rv, n->b.rv))
        return;
    session_binding_gone(c, n);
}

static void service_deleted(struct session_core *c, const struct contract_service *row)
{
    struct session_service *s = service_find(c, row->meta.name);
    if (s && names_it(&row->meta.uid, &s->s.uid) && !session_older(row->meta.rv, s->s.rv))
        service_gone(c, s);
}

void session_catalog_row(struct session_core *c, const struct session_row *row)
{
    const struct contract_object *o = row->object;
    const struct session_service *s;
    const struct session_conn *n;
    switch (row->kind) {
    case CONTRACT_INSTANCE:
        session_inst_row(c, &o->u.instance, row->deleted, o->u.meta.rv);
        break;
    case CONTRACT_ATTACHMENT:
        session_att_row(c, &o->u.attachment, row->deleted);
        break;
    case CONTRACT_SERVICE:
        s = service_find(c, o->u.meta.name);
        if (s && !row->deleted)
            session_regress_listed(c, row->kind, s->s.rv, o->u.meta.rv);
        if (row->deleted)
            service_deleted(c, &o->u.service);
        else
            (void)session_service_row(c, &o->u.service);
        break;
    case CONTRACT_CLAIM:
        session_claim_row(c, &o->u.claim, row->deleted);
        break;
    case CONTRACT_BINDING:
        n = session_conn_find(c, o->u.meta.name);
        if (n && !row->deleted)
            session_regress_listed(c, row->kind, n->b.rv, o->u.meta.rv);
        if (row->deleted)
            binding_deleted(c, &o->u.binding);
        else
            (void)session_binding_row(c, &o->u.binding);
        break;
    }
}

void session_catalog_relist(struct session_core *c, enum contract_kind kind)
{
    switch (kind) {
    case CONTRACT_INSTANCE:
        c->inst.seen = false;
        break;
    case CONTRACT_ATTACHMENT:
        session_att_relist(c);
        break;
    case CONTRACT_SERVICE:
        for (uint32_t i = 0; i < c->cfg.max_services; i++)
            c->svc[i].seen = false;
        break;
    case CONTRACT_CLAIM:
        for (uint32_t i = 0; i < c->conn_fresh; i++)
            c->conn[i].claim.seen = false;
        break;
    case CONTRACT_BINDING:
        for (uint32_t i = 0; i < c->conn_fresh; i++)
            c->conn[i].seen = false;
        c->bindings_overflow = false;
        break;
    }
}

void session_catalog_listed(struct session_core *c, enum contract_kind kind)
{
    c->listed[kind] = true;
    c->list_rv[kind][0] = '\0';
    switch (kind) {
    case CONTRACT_INSTANCE:
        if (c->inst.in_cache && !c->inst.seen && c->inst.state == INST_HELD)
            session_inst_event(c, INST_EV_GONE, NULL);
        break;
    case CONTRACT_ATTACHMENT:
        session_att_listed(c);
        break;
    case CONTRACT_SERVICE:
        for (uint32_t i = 0; i < c->cfg.max_services; i++)
            if (c->svc[i].used && !c->svc[i].seen)
                service_gone(c, &c->svc[i]);
        break;
    case CONTRACT_CLAIM:
        for (uint32_t i = 0; i < c->conn_fresh; i++) {
            struct session_conn *n = &c->conn[i];
            if (n->used && n->claim.in_cache && !n->claim.seen) {
                n->claim.in_cache = false;
                n->claim.mine = false;
                session_dirty(c, session_entity_conn(c, n));
            }
        }
        break;
    case CONTRACT_BINDING:
        for (uint32_t i = 0; i < c->conn_fresh; i++)
            if (c->conn[i].used && c->conn[i].bound && !c->conn[i].seen)
                session_binding_gone(c, &c->conn[i]);
        break;
    }
    for (unsigned i = 0; i < PROOF_N; i++)
        if (c->proof[i].kind == kind)
            session_proof_run(c, i);
}
