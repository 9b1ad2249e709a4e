/* SPDX-License-Identifier: Apache-2.0
 *
 * session/core.c - the ownership core: memory, one step, what people may look at.
 *
 * A step hands its event to the thing that it is for; then whatever has become due or was touched ("dirty")
 * is looked at again, as long as there is room for its effects. Deadlines and wake times follow from the
 * state after the step.
 */
#include "session/int.h"

#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

/* the most that one thing adds when it is looked at */
#define ROOM_FX 12
#define ROOM_OBJECTS 2

/* ---- memory */
static int check_config(const struct session_config *cfg, struct base_err *err)
{
    int rc = contract_timing_check(&cfg->timing, err);
    if (rc != BASE_OK)
        return base_err_wrap(err, "timing");
    if (cfg->max_connectors == 0 || cfg->max_connectors > 100000)
        return base_err_set(err, BASE_EINVAL, "limits.connectors is %u; use 1 to 100000",
                            cfg->max_connectors);
    if (cfg->max_services == 0 || cfg->max_services > 4096 || cfg->max_attachments == 0 ||
        cfg->max_attachments > 4096)
        return base_err_set(err, BASE_EINVAL, "limits: services is %u, attachments is %u; use 1 to 4096",
                            cfg->max_services, cfg->max_attachments);
    if (base_uuid_is_zero(&cfg->node_uid) || base_uuid_is_zero(&cfg->boot_id))
        return base_err_set(err, BASE_EINVAL, "node UID or boot id is missing");
    if (cfg->max_guests > SESSION_GUESTS)
        return base_err_set(err, BASE_EINVAL, "limits: guests is %u; use 0 to %u", cfg->max_guests,
                            SESSION_GUESTS);
    return BASE_OK;
}

int session_core_new(struct session_core **ret, const struct session_config *cfg, struct base_err *err)
{
    int rc = check_config(cfg, err);
    if (rc != BASE_OK)
        return rc;
    struct session_core *c = base_calloc(1, sizeof *c);
    if (!c)
        return base_err_set(err, BASE_ENOMEM, "no memory for the session core");
    c->cfg = *cfg;
    if (c->cfg.max_guests == 0)
        c->cfg.max_guests = SESSION_GUESTS;
    c->n_desks = cfg->max_connectors < SESSION_DESKS ? cfg->max_connectors : SESSION_DESKS;
    memcpy(&c->prng.state, cfg->seed, sizeof c->prng.state);
    rc = contract_instance_name(c->inst.name, cfg->provider, cfg->node, err);
    if (rc != BASE_OK) {
        session_core_free(c);
        return rc;
    }
    struct lease_self *me = &c->inst.me;
    (void)base_copy(me->provider, sizeof me->provider, cfg->provider);
    (void)base_copy(me->node, sizeof me->node, cfg->node);
    (void)base_copy(me->instance, sizeof me->instance, c->inst.name);
    me->node_uid = cfg->node_uid;
    me->boot_id = cfg->boot_id;
    me->lease_seconds = (int32_t)(cfg->timing.lease / BASE_SEC);
    c->max_lease_s = me->lease_seconds;

    c->n_jobs = cfg->max_connectors + 64;
    uint32_t buckets = 16;
    while (buckets < cfg->max_connectors)
        buckets *= 2;
    c->name_mask = buckets - 1;
    c->att = base_calloc(cfg->max_attachments, sizeof *c->att);
    c->svc = base_calloc(cfg->max_services, sizeof *c->svc);
    c->conn = base_calloc(cfg->max_connectors, sizeof *c->conn);
    c->job = base_calloc(c->n_jobs, sizeof *c->job);
    c->desk = base_calloc(c->n_desks, sizeof *c->desk);
    c->name_bucket = base_calloc(buckets, sizeof *c->name_bucket);
    c->guest = base_calloc(c->cfg.max_guests, sizeof *c->guest);
    c->guest_free = UINT32_MAX;
    if (c->conn)
        c->identities = authority_index_new(cfg->max_connectors, c->conn->b.identities, sizeof *c->conn);
    rc = session_timers_init(&c->timers, ENTITY_FIXED + cfg->max_attachments + cfg->max_connectors +
                                             c->n_jobs + c->cfg.max_guests);
    if (!c->att || !c->svc || !c->conn || !c->job || !c->desk || !c->name_bucket || !c->guest ||
        !c->identities || rc != BASE_OK ||
        session_flows_init(&c->flows, cfg->max_connectors + c->cfg.max_guests) != BASE_OK) {
        session_core_free(c);
        return base_err_set(err, BASE_ENOMEM, "no memory for %u connectors", cfg->max_connectors);
    }
    /* Nothing of connectors and jobs is written before they are used: their pages cost nothing until then. */
    c->job_free = UINT32_MAX;
    for (unsigned i = 0; i < c->n_desks; i++)
        c->desk_free[c->n_desk_free++] = (int16_t)i;
    c->proof[PROOF_BINDINGS].kind = CONTRACT_BINDING;
    c->proof[PROOF_SERVICES].kind = CONTRACT_SERVICE;
    c->proof[PROOF_CLAIMS].kind = CONTRACT_CLAIM;
    c->cond_reason = "";
    *ret = c;
    return BASE_OK;
}

struct session_core *session_core_free(struct session_core *c)
{
    if (c) {
        base_free(c->att);
        base_free(c->svc);
        base_free(c->conn);
        base_free(c->job);
        base_free(c->guest);
        base_free(c->desk);
        base_free(c->name_bucket);
        authority_index_free(c->identities);
        session_timers_fini(&c->timers);
        session_flows_fini(&c->flows);
        memset(c->cfg.seed, 0, sizeof c->cfg.seed);
        base_free(c);
    }
    return NULL;
}

/* ---- who an answer is for */
/* BASE_OK comes with the object, but for a LIST that found nothing and a DELETE. Without it, it says nothing:
 * like an answer that was lost, for which every asker has its own deadline. */
static bool whole(const struct session_core *c, uint32_t e, const struct session_answer *an)
{
    if (an->code != BASE_OK || an->n_objects > 0 || base_mutant("answer.whole"))
        return true;
    uint32_t conn = ENTITY_FIXED + c->cfg.max_attachments;
    if (e < conn)
        return e >= ENTITY_FIXED;
    if (e >= conn + c->cfg.max_connectors)
        return false;
    return c->conn[e - conn].state == CONN_LISTING && c->conn[e - conn].ask == an->ask;
}

static void answer(struct session_core *c, const struct session_in *in, uint64_t ask)
{
    uint32_t e = session_ask_entity(c, ask);
    bool audit = in->ev == SESSION_EV_AUDIT;
    struct session_instance *i = &c->inst;
    if (e == UINT32_MAX || (!audit && !whole(c, e, &in->u.answer)))
        return;
    if (e == ENTITY_INSTANCE) {
        bool renewal = i->state == INST_HELD;
        if (ask != (renewal ? i->renew_ask : i->ask))
            return; /* late */
        bool wants_audit = renewal ? i->renew == RENEW_AUDIT : i->state == INST_AUDITING;
        if (audit == wants_audit)
            session_inst_event(c, audit ? INST_EV_AUDIT : INST_EV_ANSWER, in);
        return;
    }
    if (e < ENTITY_FIXED)
        return;
    e -= ENTITY_FIXED;
    if (e < c->cfg.max_attachments) {
        if (!audit)
            session_att_answer(c, &c->att[e], &in->u.answer);
        return;
    }
    e -= c->cfg.max_attachments;
    if (e < c->cfg.max_connectors) {
        if (audit)
            session_conn_audited(c, &c->conn[e], ask, in->u.audit.durable);
        else
            session_conn_answer(c, &c->conn[e], &in->u.answer);
        return;
    }
    e -= c->cfg.max_connectors;
    if (e < c->n_jobs && !audit)
        session_job_answer(c, &c->job[e], &in->u.answer);
}

/* The policy's outside has answered: for a request at the door, or for a connector. */
static void told(struct session_core *c, const struct session_in *in)
{
    uint64_t ask = in->u.authority.ask;
    uint32_t e = session_ask_entity(c, ask), first = ENTITY_FIXED + c->cfg.max_attachments;
    base_time t0 = base_time_min(in->u.authority.t0, c->now);
    if (e == UINT32_MAX || e < first)
        return;
    e -= first;
    if (e < c->cfg.max_connectors)
        session_policy_told(c, &c->conn[e], ask, &in->u.authority.answer, t0);
    else if (e >= c->cfg.max_connectors + c->n_jobs)
        session_guest_told(c, &c->guest[e - c->cfg.max_connectors - c->n_jobs], ask, &in->u.authority.answer,
                           t0);
}

void session_conn_audited(struct session_core *c, struct session_conn *n, uint64_t ask, bool durable)
{
    if (!n->used || n->state != CONN_AUDITING || n->ask != ask)
        return; /* late: the decision was dropped */
    n->ask = 0;
    session_conn_event(c, n, &(struct conn_in){.ev = CONN_EV_AUDITED, .durable = durable});
}

static void binding_read(struct session_core *c, struct session_conn *n, const struct session_answer *an)
{
    if (an->code == BASE_OK) {
        /* older than what the watch has shown: proves nothing and changes nothing, and the newer one is what
         * counts */
        session_regress_answer(c, n->b.rv, n->b_at, an->objects[0].u.meta.rv, an->sent);
        if (session_binding_row(c, &an->objects[0].u.binding))
            n->b_t0 = base_time_max(n->b_t0, an->sent);
    } else if (an->code == BASE_ENOTFOUND && n->b_at > an->sent && !base_mutant("binding.overtaken")) {
        /* An absent object has no version to compare: what the watch brought since the read was sent may be
         * newer, and the watch would not bring it again. Read again, within the same time. */
        session_binding_ask(c, n);
    } else if (an->code == BASE_ENOTFOUND) {
        session_binding_gone(c, n);
    } else {
        n->read_failed = WHY_AUTHORITY_UNAVAILABLE;
    }
}

static void service_read(struct session_core *c, struct session_conn *n, const struct session_answer *an)
{
    if (an->code == BASE_OK) {
        const struct session_service *known = session_service_of(c, n);
        if (known)
            session_regress_answer(c, known->s.rv, known->rv_at, an->objects[0].u.meta.rv, an->sent);
        if (session_service_row(c, &an->objects[0].u.service)) {
            struct session_service *s = session_service_of(c, n);
            if (s)
                s->t0 = base_time_max(s->t0, an->sent);
        }
    } else if (an->code != BASE_ENOTFOUND) {
        n->read_failed = WHY_AUTHORITY_UNAVAILABLE;
    }
}

static void row_read(struct session_core *c, struct session_conn *n, const struct session_answer *an)
{
    if (an->code == BASE_OK) {
        const struct contract_claim *row = &an->objects[0].u.claim;
        if (base_prefix_eq(&n->known.prefix, &row->spec.prefix))
            session_regress_answer(c, n->known.rv, n->known.at, row->meta.rv, an->sent);
        session_claim_seen(c, n, row);
        int16_t d = session_desk_take(c);
        if (d >= 0) {
            n->desk = d;
            n->row = ROW_ON_DESK;
            c->desk[d] = an->objects[0].u.claim;
        }
    } else if (an->code == BASE_ENOTFOUND) {
        n->row = ROW_ABSENT;
    } else {
        n->read_failed = WHY_API_UNAVAILABLE;
    }
}

void session_conn_answer(struct session_core *c, struct session_conn *n, const struct session_answer *an)
{
    if (!n->used)
        return;
    if (an->ask == n->report.ask) {
        session_report_answer(c, n, an);
        return;
    }
    if (an->ask == n->ask_binding) {
        n->ask_binding = 0;
        binding_read(c, n, an);
    } else if (an->ask == n->ask_service) {
        n->ask_service = 0;
        service_read(c, n, an);
    } else if (an->ask == n->ask && n->state != CONN_AUDITING) {
        n->ask = 0;
        if (n->state == CONN_CLAIMING || n->state == CONN_RESERVING) {
            session_conn_event(c, n, &(struct conn_in){.ev = CONN_EV_WROTE, .answer = an});
            return;
        }
        if (n->state == CONN_READING || (n->state == CONN_CHECKING && !n->holder_asked))
            row_read(c, n, an);
    } else {
        return; /* late */
    }
    if (n->ask == 0 && n->ask_binding == 0 && n->ask_service == 0)
        session_conn_event(c, n, &(struct conn_in){.ev = CONN_EV_READ, .answer = an});
    else
        session_conn_wake(c, n);
}

/* ---- flows */
static void flow_event(struct session_core *c, uint64_t flow, bool stopped)
{
    uint32_t k = session_flow_find(&c->flows, flow);
    if (k == UINT32_MAX)
        return; /* a late report of a flow that was answered or forgotten */
    if (k & SESSION_FLOW_GUEST) {
        if (!stopped)
            session_guest_gone(c, &c->guest[k & ~SESSION_FLOW_GUEST]);
        return;
    }
    struct session_conn *n = &c->conn[k];
    if (n->ses.flow == flow) {
        session_conn_event(c, n, &(struct conn_in){.ev = stopped ? CONN_EV_STOPPED : CONN_EV_ENDED});
    } else if (!stopped) { /* session_conn_check: of its request */
        session_conn_event(c, n, &(struct conn_in){.ev = CONN_EV_GONE});
    }
    session_dirty(c, session_entity_conn(c, n));
}

/* ---- one step */
static void look_at(struct session_core *c, uint32_t e)
{
    if (e == ENTITY_INSTANCE) {
        if (c->inst.state == INST_HELD)
            session_inst_event(c, INST_EV_ROW, NULL);
        session_inst_event(c, INST_EV_TIME, NULL);
    } else if (e < ENTITY_DRAIN) {
        session_proof_run(c, e - ENTITY_PROOF);
    } else if (e == ENTITY_DRAIN) {
        session_drain_settle(c);
    } else if ((e -= ENTITY_FIXED) < c->cfg.max_attachments) {
        session_att_settle(c, &c->att[e]);
    } else if ((e -= c->cfg.max_attachments) < c->cfg.max_connectors) {
        session_conn_settle(c, &c->conn[e]);
    } else if ((e -= c->cfg.max_connectors) < c->n_jobs) {
        session_job_settle(c, &c->job[e]);
    } else {
        session_guest_settle(c, &c->guest[e - c->n_jobs]);
    }
}

static void work(struct session_core *c)
{
    uint32_t e;
    while (session_room(c, ROOM_FX, ROOM_OBJECTS)) {
        if (c->regress_due) {
            session_regress(c);
            session_fx(c, SESSION_FX_RELIST);
            continue;
        }
        e = session_undirty(c);
        if (e == UINT32_MAX) {
            if (session_timer_first(&c->timers, &e) > c->now)
                return;
            base_time at = c->timers.at[e];
            look_at(c, e);
            if (c->timers.at[e] == at) /* nothing moved: it is not waited for any more */
                session_timer_set(&c->timers, e, BASE_TIME_NEVER);
            continue;
        }
        look_at(c, e);
    }
}

static bool legal(const struct session_core *c, const struct session_in *in)
{
    switch (in->ev) {
    case SESSION_EV_START:
        return !c->started;
    case SESSION_EV_REQUEST:
        return in->u.request.flow != 0 && session_flow_find(&c->flows, in->u.request.flow) == UINT32_MAX &&
               !base_correlation_is_zero(&in->u.request.correlation);
    case SESSION_EV_ROW:
        return in->u.row.object && in->u.row.object->kind == in->u.row.kind &&
               in->u.row.kind >= CONTRACT_INSTANCE && in->u.row.kind <= CONTRACT_BINDING;
    case SESSION_EV_RELIST:
    case SESSION_EV_LISTED:
        return in->u.collection >= CONTRACT_INSTANCE && in->u.collection <= CONTRACT_BINDING;
    case SESSION_EV_UNSET:
        return false;
    case SESSION_EV_TICK:
    case SESSION_EV_CONTINUE:
    case SESSION_EV_ENDED:
    case SESSION_EV_STOPPED:
    case SESSION_EV_ANSWER:
    case SESSION_EV_PROOF:
    case SESSION_EV_AUDIT:
    case SESSION_EV_AUTHORITY:
    case SESSION_EV_TUN:
    case SESSION_EV_TUN_LOST:
    case SESSION_EV_GAP:
    case SESSION_EV_REGRESSED:
    case SESSION_EV_DRAIN:
        return true;
    }
    return false;
}

static void dispatch(struct session_core *c, const struct session_in *in)
{
    switch (in->ev) {
    case SESSION_EV_START:
        c->started = true;
        session_inst_event(c, INST_EV_START, in);
        break;
    case SESSION_EV_REQUEST:
        (void)session_request(c, &in->u.request);
        break;
    case SESSION_EV_ENDED:
        flow_event(c, in->u.flow, false);
        break;
    case SESSION_EV_STOPPED:
        flow_event(c, in->u.flow, true);
        break;
    case SESSION_EV_ANSWER:
        answer(c, in, in->u.answer.ask);
        break;
    case SESSION_EV_AUDIT:
        answer(c, in, in->u.audit.ask);
        break;
    case SESSION_EV_ROW:
        session_catalog_row(c, &in->u.row);
        break;
    case SESSION_EV_RELIST:
        (void)base_copy(c->list_rv[in->u.collection], CONTRACT_RV_SIZE, in->version);
        session_catalog_relist(c, in->u.collection);
        break;
    case SESSION_EV_LISTED:
        session_catalog_listed(c, in->u.collection);
        break;
    case SESSION_EV_PROOF:
        session_proof_event(c, in);
        break;
    case SESSION_EV_TUN:
        session_att_tun(c, in->u.tun.tun_id, in->u.tun.code);
        break;
    case SESSION_EV_TUN_LOST:
        if (session_att_has_tun(c, in->u.tun.tun_id))
            session_inst_event(c, INST_EV_LOST, in);
        break;
    case SESSION_EV_GAP:
        c->gap_at = base_time_max(c->gap_at, in->u.gap);
        session_proof_forget(c, PROOF_CLAIMS); /* one that was sent before the gap does not count for it */
        session_proof_run(c, PROOF_CLAIMS);
        session_all_dirty(c);
        break;
    case SESSION_EV_DRAIN:
        session_drain(c);
        break;
    case SESSION_EV_AUTHORITY:
        told(c, in);
        break;
    case SESSION_EV_REGRESSED:
        session_regress(c);
        break;
    case SESSION_EV_TICK:
    case SESSION_EV_CONTINUE:
    case SESSION_EV_UNSET:
        break;
    }
}

int session_core_step(struct session_core *c, const struct session_in *in, struct session_out *ret_out)
{
    if (!legal(c, in) || in->now < c->now)
        return BASE_EINVAL;
    c->now = in->now;
    c->wall = in->wall;
    c->out = ret_out;
    c->n_objects = 0;
    ret_out->n_fx = 0;
    session_regress_lease(c, in);
    dispatch(c, in);
    work(c);
    if (session_room(c, 1, 0))
        session_condition(c);
    ret_out->more = c->regress_due || c->timers.q_n > 0 || session_timer_first(&c->timers, NULL) <= c->now;
    ret_out->wake_at = session_timer_first(&c->timers, NULL);
    c->out = NULL;
    return BASE_OK;
}

/* ---- looking at it */
void session_core_check(const struct session_core *c)
{
    uint32_t busy = 0, jobs = 0, desks = 0;
    session_inst_check(c);
    assert(session_timers_ok(&c->timers));
    for (uint32_t i = 0; i < c->conn_fresh; i++) {
        const struct session_conn *n = &c->conn[i];
        if (!n->used)
            continue;
        session_conn_check(c, n);
        busy += n->state != CONN_IDLE;
        desks += n->desk >= 0;
        if (n->state == CONN_FORWARDING) {
            /* what stands in the fence slot never outlives the least of the four parts */
            enum lease_part part;
            struct session_core *m = (struct session_core *)(uintptr_t)c;
            base_time until = session_deadline(m, &m->conn[i], &part);
            assert(n->ses.deadline <= until || c->timers.q_n > 0);
        }
    }
    assert(busy == c->busy);
    assert(desks + c->n_desk_free == c->n_desks);
    for (uint32_t i = 0; i < c->guest_fresh; i++)
        session_guest_check(c, &c->guest[i]);
    for (uint32_t i = 0; i < c->job_fresh; i++)
        jobs += c->job[i].state != JOB_FREE;
    assert(jobs == c->jobs_active);
}

bool session_core_cell(unsigned i, struct session_cell *ret)
{
    if (i >= SESSION_INST_CELLS)
        return session_conn_cell(i - SESSION_INST_CELLS, ret);
    session_inst_cell(i, ret);
    return true;
}

const uint64_t *session_core_cells(const struct session_core *c)
{
    return c->cells;
}

void session_core_summary(const struct session_core *c, struct session_summary *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->process_id = c->inst.me.process_id;
    ret->instance_epoch = c->inst.me.epoch;
    (void)base_fmt(ret->instance_state, sizeof ret->instance_state, "%s",
                   session_inst_state_name(c->inst.state));
    ret->ready = c->cond_ready;
    (void)base_fmt(ret->reason, sizeof ret->reason, "%s", c->cond_reason);
    ret->instance_deadline = lease_until(c->inst.renewed, c->inst.me.lease_seconds, c->cfg.timing.guard);
    for (uint32_t i = 0; i < c->cfg.max_services; i++)
        ret->services += c->svc[i].used;
    for (uint32_t i = 0; i < c->conn_fresh; i++) {
        const struct session_conn *n = &c->conn[i];
        if (!n->used)
            continue;
        ret->bindings += n->bound;
        ret->connectors_active += n->state != CONN_IDLE;
        ret->forwarding += n->state == CONN_FORWARDING;
    }
}

bool session_core_view(const struct session_core *c, size_t i, struct session_view *ret)
{
    for (uint32_t k = 0; k < c->conn_fresh; k++) {
        const struct session_conn *n = &c->conn[k];
        if (!n->used || n->state == CONN_IDLE || i-- > 0)
            continue;
        memset(ret, 0, sizeof *ret);
        (void)base_copy(ret->connector, sizeof ret->connector, n->b.connector);
        (void)base_copy(ret->tenant, sizeof ret->tenant, n->b.tenant);
        (void)base_copy(ret->state, sizeof ret->state, session_conn_state_name(n->state));
        ret->flow = n->ses.flow ? n->ses.flow : n->req.flow;
        ret->has_prefix = n->b.has_prefix;
        ret->prefix = n->b.prefix;
        ret->claim_uid = n->claim.uid;
        ret->epoch = n->claim.epoch;
        ret->deadline = n->ses.deadline;
        return true;
    }
    return false;
}
