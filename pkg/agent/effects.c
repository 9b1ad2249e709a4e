/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/effects.c - carries out what the core says, and brings back what came of it.
 */
#include "agent/agent_int.h"

#include "audit/record.h"
#include "base/mutant.h"

#define STORE_TIMEOUT (5 * BASE_SEC)

struct agent_pending { /* one request at the API server */
    struct agent *agent;
    struct agent_pending *next, **link; /* in a->pending, until the store has answered */
    uint64_t ask;
    enum contract_kind kind;
    bool write;
};

static void later(struct agent *a, const struct session_in *in)
{
    if (a->n_later == AGENT_LATER_MAX) {
        /* The core has its own deadline for every ask: a lost answer is one that never comes. */
        a->n.orders_failed++;
        return;
    }
    a->later[a->n_later++] = *in;
}

/* ---- store */

static void count_store(struct agent *a, const struct agent_pending *p, int code)
{
    unsigned c = code == BASE_OK                                                         ? 0
                 : code == BASE_ECONFLICT || code == BASE_EEXIST                         ? 1
                 : code == BASE_EDENIED || code == BASE_EINVAL || code == BASE_ENOTFOUND ? 2
                 : code == BASE_EUNKNOWN                                                 ? 3
                                                                                         : 4;

    a->n.store[p->kind][p->write ? 1 : 0][c]++;
}

static struct agent_pending *pending_new(struct agent *a, const struct session_fx *fx)
{
    struct agent_pending *p = base_calloc(1, sizeof *p);

    if (!p)
        return NULL;
    *p = (struct agent_pending){.agent = a,
                                .next = a->pending,
                                .link = &a->pending,
                                .ask = fx->u.store.ask,
                                .kind = fx->u.store.kind,
                                .write = fx->kind != SESSION_FX_GET && fx->kind != SESSION_FX_LIST};
    if (p->next)
        p->next->link = &p->next;
    a->pending = p;
    return p;
}

static void pending_drop(struct agent_pending *p)
{
    *p->link = p->next;
    if (p->next)
        p->next->link = p->link;
    base_free(p);
}

void agent_forget_requests(struct agent *a)
{
    while (a->pending)
        pending_drop(a->pending);
}

static void on_store(void *arg, const struct store_resp *resp)
{
    struct agent_pending *p = arg;
    struct agent *a = p->agent;
    struct session_in in = {.ev = SESSION_EV_ANSWER,
                            .u.answer = {.ask = p->ask,
                                         .code = resp->code,
                                         .sent = resp->sent,
                                         .n_objects = resp->n_objects,
                                         .objects = resp->objects}};

    count_store(a, p, resp->code);
    if (resp->code != BASE_OK && resp->code != BASE_ENOTFOUND)
        loop_log(a->log, resp->code == BASE_EDENIED || resp->code == BASE_EINVAL ? LOOP_WARN : LOOP_DEBUG,
                 "store_answer", "the API server did not do it", LOG_STR("kind", contract_kind_name(p->kind)),
                 LOG_BOOL("write", p->write), LOG_STR("code", base_code_name(resp->code)),
                 LOG_INT("httpStatus", resp->http_status), LOG_STR("reason", resp->reason),
                 LOG_STR("err", resp->err.msg));
    pending_drop(p);
    agent_feed(a, &in);
}

static void fx_store(struct agent *a, const struct session_fx *fx)
{
    static const enum store_op ops[] = {[SESSION_FX_GET] = STORE_GET,
                                        [SESSION_FX_LIST] = STORE_LIST,
                                        [SESSION_FX_CREATE] = STORE_CREATE,
                                        [SESSION_FX_UPDATE] = STORE_UPDATE,
                                        [SESSION_FX_STATUS] = STORE_UPDATE_STATUS,
                                        [SESSION_FX_DELETE] = STORE_DELETE};
    struct store_req req = {.id = fx->u.store.ask,
                            .op = ops[fx->kind],
                            .kind = fx->u.store.kind,
                            .object = fx->u.store.object,
                            .correlation = fx->u.store.correlation,
                            .timeout = fx->u.store.renewal ? agent_renewal_timeout(&a->timing, STORE_TIMEOUT)
                                                           : STORE_TIMEOUT,
                            .renewal = fx->u.store.renewal};
    struct agent_pending *p = pending_new(a, fx);
    struct contract_object stamped;
    struct base_err err = {0};

    if (req.object && req.kind == CONTRACT_INSTANCE && fx->kind != SESSION_FX_DELETE) {
        contract_object_copy(&stamped,
                             req.object); /* which version it is, for people: the core does not know */
        (void)base_copy(stamped.u.instance.agent_version, sizeof stamped.u.instance.agent_version,
                        HOLDFAST_VERSION);
        req.object = &stamped;
    }
    (void)base_copy(req.name, sizeof req.name, fx->u.store.name);
    (void)base_copy(req.selector.tenant, sizeof req.selector.tenant, fx->u.store.tenant);
    (void)base_copy(req.selector.connector, sizeof req.selector.connector, fx->u.store.connector);
    (void)base_copy(req.selector.vpc, sizeof req.selector.vpc, fx->u.store.vpc);
    if (fx->kind == SESSION_FX_DELETE && fx->u.store.object) {
        req.uid = fx->u.store.object->u.meta.uid;
        (void)base_copy(req.rv, sizeof req.rv, fx->u.store.object->u.meta.rv);
        (void)base_copy(req.name, sizeof req.name, fx->u.store.object->u.meta.name);
    }
    if (p) {
        if (kubestore_submit(a->store, &req, on_store, p, &err) == BASE_OK)
            return;
        pending_drop(p);
    }
    a->n.orders_failed++;
    loop_log(a->log, LOOP_WARN, "store_refused", "a request could not be started", LOG_STR("err", err.msg));
    later(a, &(struct session_in){.ev = SESSION_EV_ANSWER,
                                  .u.answer = {.ask = fx->u.store.ask, .code = BASE_EAGAIN}});
}

static void fx_prove(struct agent *a, const struct session_fx *fx)
{
    struct kubestore_watch *w = a->watch[fx->u.prove.collection];

    if (w) {
        kubestore_watch_prove(w, fx->u.prove.ask, fx->u.prove.timeout);
        return;
    }
    later(a, &(struct session_in){.ev = SESSION_EV_PROOF,
                                  .u.proof = {.ask = fx->u.prove.ask, .collection = fx->u.prove.collection}});
}

/* ---- audit */

static int write_record(struct agent *a, const struct audit_record *r, uint64_t ask, struct base_err *err)
{
    int rc;

    base_buf_reset(&a->line);
    rc = audit_encode(&a->line, r, err);
    if (!rc)
        rc = journal_append(a->journal, (struct base_str){a->line.data, a->line.len}, ask);
    if (a->events && (!rc || !ask))
        agent_events_offer(a->events, r, ask);
    if (!rc)
        return rc;
    a->n.audit_failed++;
    loop_log(a->log, LOOP_ERROR, "audit_refused", "a record could not be queued; its operation is refused",
             LOG_STR("event", audit_event_name(r->event)), LOG_INT("count", r->count ? r->count : 1),
             LOG_STR("code", base_code_name(rc)), LOG_STR("err", err->msg));
    return rc;
}

void agent_audit_flush(struct agent *a, bool all)
{
    struct audit_record r;
    struct base_err err = {0};

    while (audit_sum_next(a->sum, loop_clock(), all, &r))
        (void)write_record(a, &r, 0, &err);
    loop_timer_set(a->sum_timer, audit_sum_wake(a->sum));
    a->sum_armed = audit_sum_wake(a->sum) != BASE_TIME_NEVER;
}

static void fx_audit(struct agent *a, const struct session_audit *s)
{
    static const enum audit_event events[] = {
        [SESSION_AUDIT_ACQUIRE] = AUDIT_ACQUIRE,   [SESSION_AUDIT_RENEW] = AUDIT_RENEW,
        [SESSION_AUDIT_TAKEOVER] = AUDIT_TAKEOVER, [SESSION_AUDIT_RELEASE] = AUDIT_RELEASE,
        [SESSION_AUDIT_EXPIRY] = AUDIT_EXPIRY,     [SESSION_AUDIT_REJECT] = AUDIT_REJECT};
    struct audit_record r = {.ts = loop_wall(),
                             .event = events[s->event],
                             .outcome = !s->allowed                        ? AUDIT_REFUSED
                                        : s->event == SESSION_AUDIT_EXPIRY ? AUDIT_OBSERVED
                                                                           : AUDIT_ALLOWED,
                             .correlation = s->correlation,
                             .trace = s->correlation,
                             .pod_uid = a->pod_uid,
                             .object_uid = s->object_uid,
                             .epoch = s->epoch,
                             .lease_uuid = s->lease_uuid,
                             .effect = s->effect_possible ? AUDIT_EFFECT_POSSIBLE
                                       : s->ask           ? AUDIT_EFFECT_INTENDED
                                                          : AUDIT_EFFECT_NONE};
    struct journal_stats js;
    struct base_err err = {0};
    bool counted;

    (void)base_copy(r.reason, sizeof r.reason, s->reason);
    (void)base_copy(r.node, sizeof r.node, a->booted.node);
    (void)base_copy(r.instance, sizeof r.instance, a->instance);
    (void)base_copy(r.object, sizeof r.object, s->object);
    (void)base_copy(r.old_holder, sizeof r.old_holder, s->old_holder);
    (void)base_copy(r.new_holder, sizeof r.new_holder, s->new_holder);
    (void)base_copy(r.credential_id, sizeof r.credential_id, s->credential_id);
    a->n.audit[s->event]++;
    journal_stats(a->journal, &js);
    counted = audit_sum_offer(a->sum, loop_clock(), &r, !js.healthy) == AUDIT_SUM_COUNTED;
    if (r.event != AUDIT_RENEW && r.event != AUDIT_REJECT)
        agent_audit_flush(a, false); /* what this one ends comes before it */
    else if (!a->sum_armed)
        agent_audit_flush(a, false);
    if (counted) { /* its kind is durable, and the disk was well when last asked */
        if (s->ask)
            later(a,
                  &(struct session_in){.ev = SESSION_EV_AUDIT, .u.audit = {.ask = s->ask, .durable = true}});
        return;
    }
    if (write_record(a, &r, s->ask, &err) == BASE_OK)
        return;
    audit_sum_failed(a->sum);
    if (s->ask)
        later(a, &(struct session_in){.ev = SESSION_EV_AUDIT, .u.audit = {.ask = s->ask, .durable = false}});
}

/* ---- data */

void agent_retry_later(struct agent *a)
{
    loop_timer_set(a->retry, base_time_add(loop_clock(), 20 * BASE_MS));
}

static void send_stop(struct agent *a, struct agent_slot *e)
{
    e->stop_sent = agent_data_stop(a->data, e->flow) == BASE_OK;
    if (!e->stop_sent) {
        a->n.orders_failed++;
        agent_retry_later(a);
    }
}

void agent_stop_flow(struct agent *a, uint64_t flow)
{
    struct agent_slot *e = agent_slots_find(a->slots, flow);

    if (!e || base_mutant("stop.barrier")) { /* nothing was ever admitted: the barrier holds */
        later(a, &(struct session_in){.ev = SESSION_EV_STOPPED, .u.flow = flow});
        return;
    }
    fence_kill(e->slot);
    if (e->stopping)
        return;
    e->stopping = true;
    send_stop(a, e);
}

bool agent_retry_stops(struct agent *a)
{
    bool waiting = false;
    struct agent_slot *e;

    for (uint32_t i = 0; (e = agent_slots_at(a->slots, i)); i++)
        if (e->stopping && !e->stop_sent) {
            send_stop(a, e);
            waiting |= !e->stop_sent;
        }
    return waiting;
}

static void fx_admit(struct agent *a, const struct session_fx *fx)
{
    struct agent_slot *e = agent_slots_add(a->slots, fx->u.admit.flow, fx->u.admit.generation);
    struct agent_admit order = {.flow = fx->u.admit.flow,
                                .tun_id = fx->u.admit.tun_id,
                                .prefix = fx->u.admit.prefix,
                                .tunnel_ip = fx->u.admit.tunnel_ip,
                                .pool = fx->u.admit.pool,
                                .n_destinations = fx->u.admit.n_destinations};

    if (e) {
        memcpy(order.destinations, fx->u.admit.destinations, sizeof order.destinations);
        order.slot = e->slot;
        (void)fence_set(e->slot, fx->u.admit.deadline);
        if (agent_data_admit(a->data, &order) == BASE_OK) {
            a->n.admitted++;
            return;
        }
        fence_kill(e->slot);
        agent_slots_remove(a->slots, e);
    }
    a->n.orders_failed++;
    (void)agent_data_refuse(a->data, fx->u.admit.flow, 503, "Overloaded", 1);
    later(a, &(struct session_in){.ev = SESSION_EV_ENDED, .u.flow = fx->u.admit.flow});
}

static void fx_refuse(struct agent *a, const struct session_fx *fx)
{
    int s = fx->u.refuse.status;

    agent_ask_forget(a->ask, fx->u.refuse.flow);

    a->n.refused[s == 400 ? 0 : s == 401 ? 1 : s == 403 ? 2 : s == 409 ? 3 : s == 503 ? 4 : 5]++;
    if (agent_data_refuse(a->data, fx->u.refuse.flow, s, fx->u.refuse.reason, fx->u.refuse.retry_after))
        a->n.orders_failed++;
}

/* ---- traces */

static void fx_trace(struct agent *a, const struct session_fx *fx)
{
    char correlation[BASE_CORRELATION_SIZE] = "";

    if (!base_correlation_is_zero(&fx->u.trace.correlation))
        base_correlation_text(correlation, &fx->u.trace.correlation);
    loop_log(a->log, fx->u.trace.warning ? LOOP_WARN : LOOP_INFO, "session_state", "state changed",
             LOG_STR("what", fx->u.trace.what), LOG_STR("name", fx->u.trace.name),
             LOG_STR("from", fx->u.trace.from), LOG_STR("to", fx->u.trace.to), LOG_STR("by", fx->u.trace.by),
             LOG_STR("reason", fx->u.trace.reason), LOG_INT("epoch", fx->u.trace.epoch),
             LOG_STR("correlationID", correlation));
}

static void fx_condition(struct agent *a, const struct session_fx *fx)
{
    a->condition.ready = fx->u.condition.ready;
    (void)base_copy(a->condition.reason, sizeof a->condition.reason, fx->u.condition.reason);
    (void)base_copy(a->condition.message, sizeof a->condition.message, fx->u.condition.message);
    loop_log(a->log, LOOP_INFO, "ready_condition", a->condition.message,
             LOG_BOOL("ready", a->condition.ready), LOG_STR("reason", a->condition.reason));
}

static void execute(struct agent *a, const struct session_fx *fx)
{
    struct agent_slot *e;

    switch (fx->kind) {
    case SESSION_FX_GET:
    case SESSION_FX_LIST:
    case SESSION_FX_CREATE:
    case SESSION_FX_UPDATE:
    case SESSION_FX_STATUS:
    case SESSION_FX_DELETE:
        fx_store(a, fx);
        return;
    case SESSION_FX_PROVE:
        fx_prove(a, fx);
        return;
    case SESSION_FX_AUDIT:
        fx_audit(a, &fx->u.audit);
        return;
    case SESSION_FX_RELIST:
        kubestore_start_over(a->store, "a row shows an epoch or a version from before one that was seen");
        return;
    case SESSION_FX_AUTHORIZE:
        agent_ask_start(a->ask, fx->u.authorize.ask, &fx->u.authorize.q);
        return;
    case SESSION_FX_TUN_OPEN:
        if (agent_data_tun_open(a->data, fx->u.tun.tun_id, fx->u.tun.device, fx->u.tun.mtu))
            later(a, &(struct session_in){.ev = SESSION_EV_TUN, .u.tun = {fx->u.tun.tun_id, BASE_EFULL}});
        return;
    case SESSION_FX_TUN_CLOSE:
        if (agent_data_tun_close(a->data, fx->u.tun.tun_id)) {
            a->n.orders_failed++;
            agent_retry_later(a);
        }
        return;
    case SESSION_FX_REFUSE:
        fx_refuse(a, fx);
        return;
    case SESSION_FX_ADMIT:
        fx_admit(a, fx);
        return;
    case SESSION_FX_FENCE:
        e = agent_slots_find(a->slots, fx->u.fence.flow);
        if (e)
            (void)fence_set(e->slot, fx->u.fence.deadline);
        return;
    case SESSION_FX_STOP:
        agent_stop_flow(a, fx->u.flow);
        return;
    case SESSION_FX_CLOSE:
        agent_ask_forget(a->ask, fx->u.flow);
        if (agent_data_close(a->data, fx->u.flow)) {
            a->n.orders_failed++;
            agent_retry_later(a);
        }
        return;
    case SESSION_FX_TRACE:
        fx_trace(a, fx);
        return;
    case SESSION_FX_CONDITION:
        fx_condition(a, fx);
        return;
    case SESSION_FX_DRAINED:
        a->exit_code = 0;
        loop_log(a->log, fx->u.drained.all ? LOOP_INFO : LOOP_WARN, "drained",
                 fx->u.drained.all ? "everything is released"
                                   : "time is up: what could not be released ends with its lease",
                 LOG_END);
        loop_stop(a->loop);
        return;
    case SESSION_FX_UNSET:
        return;
    }
}

/* Cutoffs first: nothing that an earlier effect of the same step does may delay a fence. */
static void cut(struct agent *a, const struct session_out *out)
{
    for (unsigned i = 0; i < out->n_fx; i++) {
        const struct session_fx *fx = &out->fx[i];
        struct agent_slot *e;

        if (fx->kind == SESSION_FX_STOP && (e = agent_slots_find(a->slots, fx->u.flow)))
            fence_kill(e->slot);
        else if (fx->kind == SESSION_FX_FENCE && fx->u.fence.deadline == FENCE_CLOSED &&
                 (e = agent_slots_find(a->slots, fx->u.fence.flow)))
            (void)fence_set(e->slot, FENCE_CLOSED);
    }
}

static void step(struct agent *a, struct session_in *in)
{
    do {
        in->now = loop_clock();
        in->wall = loop_wall();
        a->n.steps++;
        if (session_core_step(a->core, in, a->out)) {
            loop_log(a->log, LOOP_ERROR, "core_refused", "the core refused an event",
                     LOG_INT("event", in->ev));
            return;
        }
        cut(a, a->out);
        for (unsigned i = 0; i < a->out->n_fx; i++)
            execute(a, &a->out->fx[i]);
        in->ev = SESSION_EV_CONTINUE;
    } while (a->out->more);
    loop_timer_set(a->tick, a->out->wake_at);
}

void agent_feed(struct agent *a, struct session_in *in)
{
    if (!a->core)
        return;
    if (a->stepping) { /* something answered from within an order: after this step */
        later(a, in);
        return;
    }
    a->stepping = true;
    step(a, in);
    while (a->n_later) {
        struct session_in first = a->later[0];

        a->n_later--;
        memmove(&a->later[0], &a->later[1], a->n_later * sizeof a->later[0]);
        step(a, &first);
    }
    a->stepping = false;
}
