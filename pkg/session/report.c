/* SPDX-License-Identifier: Apache-2.0
 *
 * session/report.c - binding.status.lastSession and the condition Ready: what people see of a connector (also
 * that a node refuses it because its audit trail cannot be written). A report, never an authority (contract
 * section 2): written a little after the fact, given up after a few conflicts, waited for by nobody.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

#define REPORT_TRIES 3

void session_binding_object(const struct session_conn *n, struct contract_binding *ret)
{
    /* A status write changes nothing but the status; the rest names the object, and the store keeps what it
     * is. */
    (void)base_copy(ret->meta.name, sizeof ret->meta.name, n->b.name);
    ret->meta.uid = n->b.uid;
    (void)base_copy(ret->meta.rv, sizeof ret->meta.rv, n->b.rv);
    (void)base_copy(ret->spec.tenant, sizeof ret->spec.tenant, n->b.tenant);
    (void)base_copy(ret->spec.connector, sizeof ret->spec.connector, n->b.connector);
    (void)base_copy(ret->spec.vpc, sizeof ret->spec.vpc, n->b.vpc);
    (void)base_copy(ret->spec.service, sizeof ret->spec.service, n->b.service);
    ret->spec.retention_seconds = -1;
    ret->status = n->b.status;
}

static void due(struct session_core *c, struct session_conn *n, base_time pause)
{
    n->report.due = true;
    n->report.tries = 0;
    n->report.at = session_admitting(c) ? base_time_add(c->now, session_jitter(c, pause)) : c->now;
    session_dirty(c, session_entity_conn(c, n));
}

void session_report_opened(struct session_core *c, struct session_conn *n)
{
    struct session_report *r = &n->report;
    *r = (struct session_report){.transport = n->ses.transport,
                                 .since = c->wall,
                                 .claim_uid = n->claim.uid,
                                 .epoch = n->claim.epoch,
                                 .counter = n->ses.generation,
                                 .session = true};
    due(c, n, BASE_SEC); /* after the burst in which many connectors come at once */
}

void session_report_closed(struct session_core *c, struct session_conn *n)
{
    if (n->ses.generation == 0 || n->report.counter != n->ses.generation || n->report.closed)
        return;
    n->report.closed = n->report.session = true;
    n->report.until = c->wall;
    due(c, n, BASE_SEC);
}

void session_report_refused(struct session_core *c, struct session_conn *n, struct session_reason why)
{
    const struct contract_cond *ready = &n->b.status.ready;
    /* of a node's own troubles the one that a client, which goes elsewhere, tells nobody about */
    if (why.name != session_reason_of(WHY_AUDIT_UNAVAILABLE).name)
        return;
    if (n->report.sick || (ready->status == CONTRACT_COND_FALSE && strcmp(ready->reason, why.name) == 0))
        return; /* said, or about to be: clients come again every 100 ms */
    n->report.sick = true;
    due(c, n, BASE_SEC);
}

static void generation_text(char *dst, size_t size, const struct session_report *r)
{
    char uid[BASE_UUID_SIZE];
    base_uuid_text(uid, &r->claim_uid);
    (void)base_fmt(dst, size, "%s/%lld/%llu", uid, (long long)r->epoch, (unsigned long long)r->counter);
}

static void condition(const struct session_core *c, struct contract_cond *cond,
                      enum contract_cond_status status, const char *reason, const char *message)
{
    if (cond->status != status)
        *cond = (struct contract_cond){.status = status, .transition = c->wall};
    (void)base_copy(cond->reason, sizeof cond->reason, reason);
    (void)base_fmt(cond->message, sizeof cond->message, "%s", message);
}

void session_report_settle(struct session_core *c, struct session_conn *n)
{
    struct session_report *r = &n->report;
    if (r->ask != 0 && c->now >= r->ask_by)
        r->ask = 0; /* lost: it was only a report */
    if (!r->due || r->ask != 0 || c->now < r->at)
        return;
    char generation[sizeof n->b.status.last.generation], message[sizeof n->b.status.ready.message];
    generation_text(generation, sizeof generation, r);
    bool mine = strcmp(n->b.status.last.node, c->cfg.node) == 0 &&
                strcmp(n->b.status.last.generation, generation) == 0;
    r->due = false;
    /* the end of a session that somebody else's report has followed is no news any more */
    if (r->closed && n->b.status.last.node[0] != '\0' && !mine)
        r->session = false;
    if (!n->bound || n->b.deleting || (!r->session && !r->sick))
        return;
    struct contract_object *o;
    r->ask =
        session_write(c, session_entity_conn(c, n), SESSION_FX_STATUS, CONTRACT_BINDING, NULL, false, &o);
    r->ask_by = base_time_add(c->now, SESSION_WRITE_WAIT);
    struct contract_binding *b = &o->u.binding;
    session_binding_object(n, b);
    if (r->session) {
        struct contract_last_session *l = &b->status.last;
        memset(l, 0, sizeof *l);
        (void)base_copy(l->node, sizeof l->node, c->cfg.node);
        (void)base_copy(l->generation, sizeof l->generation, generation);
        (void)base_copy(l->transport, sizeof l->transport, r->transport == SESSION_H2 ? "HTTP/2" : "HTTP/3");
        l->since = r->since;
        l->until = r->closed ? r->until : 0;
        (void)base_fmt(message, sizeof message, "%s on %s", r->closed ? "last session" : "session",
                       c->cfg.node);
        condition(c, &b->status.ready, CONTRACT_COND_TRUE, r->closed ? "SessionClosed" : "SessionOpen",
                  message);
    }
    if (r->sick) {
        struct session_reason why = session_reason_of(WHY_AUDIT_UNAVAILABLE);
        (void)base_fmt(message, sizeof message, "refused on %s: %s", c->cfg.node, why.text);
        condition(c, &b->status.ready, CONTRACT_COND_FALSE, why.name, message);
    }
    if (base_mutant("binding-report.uid"))
        b->meta.uid = (struct base_uuid){{0}};
    if (base_mutant("binding-report.rv"))
        b->meta.rv[0] = '\0';
}

void session_report_answer(struct session_core *c, struct session_conn *n, const struct session_answer *an)
{
    struct session_report *r = &n->report;
    r->ask = 0;
    if (an->code == BASE_OK && an->n_objects > 0)
        (void)session_binding_row(c, &an->objects[0].u.binding);
    if (an->code != BASE_ECONFLICT && !r->due) {
        r->session = false;
        r->sick = false;
    }
    if (an->code == BASE_ECONFLICT && !r->due && ++r->tries < REPORT_TRIES) {
        r->due = true; /* the binding moved on; the watch brings its new version */
        r->at = base_time_add(c->now, session_backoff(c, r->tries + 1));
    }
    session_conn_wake(c, n);
}

base_time session_report_wake(const struct session_conn *n)
{
    return n->report.ask != 0 ? n->report.ask_by : n->report.due ? n->report.at : BASE_TIME_NEVER;
}
