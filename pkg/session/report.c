/* SPDX-License-Identifier: Apache-2.0
 *
 * session/report.c - binding.status.lastSession and the condition Ready: what people see of a connector. A
 * report, never an authority (contract section 2): written a little after the fact, given up after a few
 * conflicts, waited for by nobody.
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
    ret->status.has_prefix = n->b.has_prefix;
    ret->status.prefix = n->b.prefix;
    ret->status.keep_last = ret->status.keep_ready = ret->status.keep_assigned = true;
}

/* The message is a, b and c behind each other (NULL = none), ": " before c. */
static void say_ready(struct session_core *c, const struct session_conn *n, struct contract_binding *b,
                      bool ready, const char *reason, const char *m1, const char *m2, const char *m3)
{
    struct contract_cond *cond = &b->status.ready;
    b->status.keep_ready = false;
    cond->status = ready ? CONTRACT_COND_TRUE : CONTRACT_COND_FALSE;
    cond->observed_generation = n->b.generation; /* the spec that it was decided on */
    bool same = ready ? n->b.ready : n->b.unready[0] != '\0';
    cond->transition = same && n->b.ready_since != 0 ? n->b.ready_since : c->wall;
    (void)base_copy(cond->reason, sizeof cond->reason, reason);
    (void)base_cat(cond->message, sizeof cond->message, m1, m2, m3 ? ": " : NULL);
    if (m3)
        base_copy_cut(cond->message + strlen(cond->message), sizeof cond->message - strlen(cond->message),
                      m3);
}

/* ---- AmbiguousIdentity: an identity that another binding names, too, admits nobody, and both say so in
 * Ready (contract section 2). Every agent sees it at the same moment; each waits for a moment of its own, and
 * whoever is first is seen by the others. Whoever sees that it is over takes it back. */
#define SAY_WITHIN (4 * BASE_SEC)
static void look_for_others(struct session_core *c, struct session_conn *n)
{
    uint32_t slot;
    n->recheck = n->ambiguous = false;
    for (uint8_t i = 0; n->bound && i < n->b.n_identities; i++)
        n->ambiguous = n->ambiguous || authority_index_find(c->identities, n->b.identities[i], &slot) > 1;
}

static bool say_ambiguous(struct session_core *c, struct session_conn *n)
{
    if (n->recheck)
        look_for_others(c, n);
    bool said = strcmp(n->b.unready, authority_reason_name(AUTHORITY_AMBIGUOUS)) == 0;
    if (!n->bound || n->b.deleting || said == n->ambiguous || base_mutant("ambiguous.say")) {
        n->say_at = 0;
        return false;
    }
    if (n->say_at == 0)
        n->say_at = base_time_add(c->now, BASE_SEC / 2 + session_jitter(c, SAY_WITHIN));
    if (c->now < n->say_at || n->report.ask != 0)
        return false;
    n->say_at = base_time_add(c->now, SAY_WITHIN); /* unless the watch shows it by then */
    if (!c->listed[CONTRACT_BINDING] || !session_inst_ready(c))
        return false;
    struct contract_object *o;
    n->report.ask =
        session_write(c, session_entity_conn(c, n), SESSION_FX_STATUS, CONTRACT_BINDING, NULL, false, &o);
    n->report.ask_by = base_time_add(c->now, SESSION_WRITE_WAIT);
    n->saying = true;
    session_binding_object(n, &o->u.binding);
    if (n->ambiguous)
        say_ready(c, n, &o->u.binding, false, authority_reason_name(AUTHORITY_AMBIGUOUS),
                  authority_reason_text(AUTHORITY_AMBIGUOUS), "", NULL);
    else
        say_ready(c, n, &o->u.binding, true, "IdentityUnique",
                  "no other binding names one of its identities any more", "", NULL);
    return true;
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
    n->saying = false; /* the answer to what is on its way does not count */
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
    n->report.closed = n->report.session = true;
    n->report.until = c->wall;
    due(c, n, BASE_SEC);
}

void session_report_refused(struct session_core *c, struct session_conn *n, struct session_reason why)
{
    /* of a node's own troubles the one that a client, which goes elsewhere, tells nobody about */
    if (why.name != session_reason_of(WHY_AUDIT_UNAVAILABLE).name)
        return;
    if (n->report.sick || strcmp(n->b.unready, why.name) == 0)
        return; /* said, or about to be: clients come again every 100 ms */
    n->report.sick = true;
    due(c, n, BASE_SEC);
}

/* UID of the claim, epoch, counter. */
static void generation_text(char *dst, const struct session_report *r)
{
    base_uuid_text(dst, &r->claim_uid);
    char *at = dst + BASE_UUID_SIZE - 1;
    *at++ = '/';
    base_u64_text(at, (uint64_t)r->epoch);
    at += strlen(at);
    *at++ = '/';
    base_u64_text(at, r->counter);
}
_Static_assert(sizeof((struct contract_last_session *)0)->generation >= BASE_UUID_SIZE + 2 * BASE_U64_SIZE,
               "a generation fits");

/* After a regression the row as stored is not known yet: a write without its version would hit anything. The
 * list brings it, and wakes the connector. */
static bool unknown(const struct session_conn *n)
{
    return n->bound && n->b.rv[0] == '\0' && !base_mutant("report.unknown");
}

void session_report_settle(struct session_core *c, struct session_conn *n)
{
    struct session_report *r = &n->report;
    if (r->ask != 0 && c->now >= r->ask_by) {
        r->ask = 0; /* lost: it was only a report */
        n->saying = false;
    }
    if (unknown(n) || say_ambiguous(c, n) || !r->due || r->ask != 0 || c->now < r->at)
        return;
    char generation[sizeof((struct contract_last_session *)0)->generation];
    generation_text(generation, r);
    bool mine = n->b.last_mark == authority_last_mark(c->cfg.node, generation);
    r->due = false;
    /* the end of a session that somebody else's report has followed is no news any more */
    if (r->closed && n->b.last_mark != 0 && !mine)
        r->session = false;
    if (!n->bound || n->b.deleting || (!r->session && !r->sick))
        return;
    struct contract_object *o;
    r->ask =
        session_write(c, session_entity_conn(c, n), SESSION_FX_STATUS, CONTRACT_BINDING, NULL, false, &o);
    r->ask_by = base_time_add(c->now, SESSION_WRITE_WAIT);
    struct contract_binding *b = &o->u.binding;
    session_binding_object(n, b);
    /* an ambiguous binding's Ready says so, and goes on saying it */
    bool says = !n->ambiguous || base_mutant("ambiguous.report");
    if (r->session) {
        struct contract_last_session *l = &b->status.last;
        b->status.keep_last = false;
        (void)base_copy(l->node, sizeof l->node, c->cfg.node);
        (void)base_copy(l->generation, sizeof l->generation, generation);
        (void)base_copy(l->transport, sizeof l->transport, r->transport == SESSION_H2 ? "HTTP/2" : "HTTP/3");
        l->since = r->since;
        l->until = r->closed ? r->until : 0;
    }
    if (r->session && says)
        say_ready(c, n, b, true, r->closed ? "SessionClosed" : "SessionOpen",
                  r->closed ? "last session on " : "session on ", c->cfg.node, NULL);
    if (r->sick && says) {
        struct session_reason why = session_reason_of(WHY_AUDIT_UNAVAILABLE);
        say_ready(c, n, b, false, why.name, "refused on ", c->cfg.node, why.text);
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
    if (an->code == BASE_OK)
        (void)session_binding_row(c, &an->objects[0].u.binding);
    if (n->saying) { /* say_at says when to look again */
        n->saying = false;
        session_dirty(c, session_entity_conn(c, n));
        return;
    }
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
    if (n->report.ask != 0)
        return n->report.ask_by;
    if (unknown(n))
        return BASE_TIME_NEVER;
    return base_time_min(n->report.due ? n->report.at : BASE_TIME_NEVER,
                         n->say_at != 0 ? n->say_at : BASE_TIME_NEVER);
}
