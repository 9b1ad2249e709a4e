/* SPDX-License-Identifier: Apache-2.0
 *
 * session/drain.c - the process is to go: no new requests, routes given back, then the instance; and whether
 * the agent is Ready, which says so.
 */
#include "session/int.h"

#include <string.h>

bool session_admitting(const struct session_core *c)
{
    return !c->draining && !(c->inst.state == INST_HELD && c->inst.row.meta.drain);
}

void session_drain(struct session_core *c)
{
    if (c->draining)
        return;
    c->draining = true;
    c->drain_by = base_time_add(c->now, SESSION_DRAIN_WAIT);
    session_timer_set(&c->timers, ENTITY_DRAIN, c->drain_by);
    if (c->inst.state == INST_HELD && c->inst.renew == RENEW_IDLE)
        c->inst.renew_at = c->now; /* `draining` goes into the row */
    session_inst_wake(c);
    session_all_dirty(c);
    for (uint32_t i = 0; i < c->guest_fresh; i++)
        if (c->guest[i].used)
            session_dirty(c, session_entity_guest(c, &c->guest[i]));
    session_dirty(c, ENTITY_DRAIN);
}

void session_drain_settle(struct session_core *c)
{
    if (!c->draining || c->drained)
        return;
    if (c->now >= c->drain_by && !c->drain_gave_up && c->inst.state != INST_RELEASED) {
        c->drain_gave_up = true; /* the process may go; what it held expires by itself */
        session_trace(c, "instance", c->inst.name, "Draining", "Draining", "time", "DrainTimeout",
                      c->inst.me.epoch, NULL, true);
        session_timer_set(&c->timers, ENTITY_DRAIN, BASE_TIME_NEVER);
        for (uint32_t i = 0; i < c->job_fresh; i++)
            if (c->job[i].state != JOB_FREE)
                session_dirty(c, session_entity_job(c, &c->job[i]));
        session_inst_event(c, INST_EV_TIME, NULL);
    }
    if (c->inst.state != INST_RELEASED && c->inst.state != INST_RELEASING) {
        uint32_t retired =
            0; /* they wait for a data thread that does not answer; their routes are given back */
        for (uint32_t i = 0; i < c->conn_fresh && c->busy > 0; i++)
            retired += c->conn[i].used && c->conn[i].state == CONN_RETIRED;
        if ((c->busy == retired && c->jobs_active == 0) || c->drain_gave_up)
            session_inst_event(c, INST_EV_DRAINED, NULL);
    }
    if (c->inst.state == INST_RELEASED) {
        c->drained = true;
        session_timer_set(&c->timers, ENTITY_DRAIN, BASE_TIME_NEVER);
        session_fx(c, SESSION_FX_DRAINED)->u.drained.all = !c->drain_gave_up;
    }
}

static bool all_listed(const struct session_core *c, const char **ret_missing)
{
    for (enum contract_kind k = CONTRACT_INSTANCE; k <= CONTRACT_BINDING; k++) {
        if (!c->listed[k]) {
            *ret_missing = contract_kind_plural(k);
            return false;
        }
    }
    return true;
}

void session_condition(struct session_core *c)
{
    struct session_reason why = session_reason_of(WHY_NONE);
    const char *missing = "", *name = "Ready", *text = "connectors are admitted";
    bool ready = true, need = false, have = false;
    for (uint32_t i = 0; i < c->cfg.max_attachments; i++) {
        need = need || (c->att[i].used && c->att[i].needed);
        have = have || (c->att[i].used && session_att_ready(c, &c->att[i]));
    }
    if (!c->started)
        why = session_reason_of(WHY_STARTING);
    else if (!session_admitting(c))
        why = session_reason_of(WHY_DRAINING);
    else if (!session_inst_ready(c))
        why = session_reason_of(session_inst_why(c));
    else if (!all_listed(c, &missing))
        why = session_reason_of(WHY_NOT_LISTED);
    else if (need && !have)
        why = session_reason_of(WHY_ATTACHMENT_NOT_READY);
    if (why.name) {
        ready = false;
        name = why.name;
        text = why.text;
    } else if (c->cfg.policy == SESSION_POLICY_DENY) { /* it works, and admits nobody: that is what it says */
        name = authority_reason_name(AUTHORITY_DENY);
        text = authority_reason_text(AUTHORITY_DENY);
    } else if (!need) {
        name = "NoService";
        text = "no ProviderService of this provider: nobody can be admitted yet";
    }
    if (c->cond_ready == ready && strcmp(c->cond_reason, name) == 0)
        return;
    c->cond_ready = ready;
    c->cond_reason = name;
    struct session_fx *fx = session_fx(c, SESSION_FX_CONDITION);
    fx->u.condition.ready = ready;
    (void)base_fmt(fx->u.condition.reason, sizeof fx->u.condition.reason, "%s", name);
    (void)base_fmt(fx->u.condition.message, sizeof fx->u.condition.message, "%s%s%s", text,
                   missing[0] ? ": " : "", missing);
}
