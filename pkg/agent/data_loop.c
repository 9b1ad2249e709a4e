/* SPDX-License-Identifier: Apache-2.0
 *
 * data_loop.c - the data thread: one iteration = poll, gap check, orders, TUNs, datagrams, timers, flush,
 * reports.
 *
 * It waits for nothing but its own descriptors. Timing by CLOCK_BOOTTIME; the poll time-out is at most the
 * heartbeat.
 */
#include "agent/data_int.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "fence/fence.h"

enum {
    TUN_BURST = 128, /* packets per TUN and iteration */
    /* in the poll set: the ring, the mail, the endpoint's, TUNs */
    MAIL = 1,
    FIRST_END = 2,
    FIRST_TUN = FIRST_END + MASQUE_ENDPOINT_FDS,
};

/* ---- the clock and the gap */
base_time agent_data_clock(struct agent_thread *d)
{
    base_time now = loop_clock();

    if (now - d->beat > d->gap && now > d->gap_at) {
        /* This thread was stopped. What it holds is from before; control may have lost its claims since. */
        d->gap_at = now;
        d->gap_pending = true;
        d->beat = now;
    }
    return now;
}

bool agent_data_held(const struct agent_thread *d)
{
    return d->gap_at > atomic_load_explicit(&d->gap_handled, memory_order_acquire);
}

/* ---- reports */
static bool push_waiting(struct agent_thread *d)
{
    while (d->n_waiting > 0) {
        if (!loop_ring_push(d->reports, &d->waiting[d->waiting_head]))
            return false;
        d->waiting_head = (d->waiting_head + 1) % d->max_waiting;
        d->n_waiting--;
    }
    return true;
}

/* Sends d->message. Control does its accounting by reports, so none is lost: while the ring is full they wait
 * here, no order is taken and no request is reported, which bounds their number. */
static void report(struct agent_thread *d)
{
    d->message.r.at = d->message.r.at ? d->message.r.at : d->beat;
    if (d->n_waiting == 0 && loop_ring_push(d->reports, &d->message))
        return;
    if (d->n_waiting ==
        d->max_waiting) /* not reachable by the bound above; then no report may be passed over either */
        abort();
    d->waiting[(d->waiting_head + d->n_waiting) % d->max_waiting] = d->message;
    d->n_waiting++;
}

static struct agent_report *fresh_report(struct agent_thread *d, enum agent_report_kind kind)
{
    memset(&d->message, 0, sizeof d->message);
    d->message.r.kind = kind;
    return &d->message.r;
}

/* ---- events of the endpoint */
/* Refuses what goes beyond its tenant's budget: control does not even hear of it. */
static bool tenant_may(struct agent_thread *d, const struct masque_request *rq, enum agent_tenant_verdict v)
{
    const char *why =
        "TenantSessions: this tenant has all the sessions that this node gives to one; end some, "
        "or try another node";
    unsigned after = 10;

    switch (v) {
    case AGENT_TENANT_PASS:
        return true;
    case AGENT_TENANT_SESSIONS:
        d->n.full_tenant_sessions++;
        break;
    case AGENT_TENANT_REQUESTS:
        d->n.full_tenant_requests++;
        why = "TenantRequests: this tenant asks more often than this node lets one; try again a little later";
        after = 1;
        break;
    }
    (void)base_secret_free(rq->token);
    (void)masque_endpoint_refuse(d->ends, rq->flow, 503, why, after);
    return false;
}

void agent_data_on_request(void *arg, const struct masque_request *rq)
{
    struct agent_thread *d = arg;
    struct agent_tenant *tenant =
        rq->identity == MASQUE_IDENTITY_URI ? agent_flows_tenant(d->flows, rq->uri) : NULL;
    struct agent_flow *f;

    if (!tenant_may(d, rq, agent_tenant_request(tenant, &d->tenant, d->beat)))
        return;
    f = d->n_waiting == 0 ? agent_flows_add(d->flows, rq->flow) : NULL;
    if (!f) {
        (void)base_secret_free(rq->token);
        (void)masque_endpoint_refuse(d->ends, rq->flow, 503, "Overloaded: the agent is behind with its work",
                                     1);
        return;
    }
    if (!agent_flow_belongs(f, tenant, d->tenant.sessions)) { /* another thread was faster */
        agent_flows_remove(d->flows, f);
        (void)tenant_may(d, rq, AGENT_TENANT_SESSIONS);
        return;
    }
    if (rq->target == MASQUE_TARGET_PREFIX)
        f->target = rq->prefix;
    f->ipproto = rq->ipproto;
    fresh_report(d, AGENT_REPORT_REQUEST)->flow = rq->flow;
    d->message.r.rq = *rq;
    report(d);
}

void agent_data_on_ended(void *arg, uint64_t flow, enum masque_end why, const char *detail)
{
    struct agent_thread *d = arg;
    struct agent_flow *f = agent_flows_find(d->flows, flow);
    struct agent_report *r;

    if (!f) /* control never heard of it */
        return;
    agent_flows_remove(d->flows, f);
    r = fresh_report(d, AGENT_REPORT_ENDED);
    r->flow = flow;
    r->end = why;
    (void)base_fmt(r->detail, sizeof r->detail, "%s", detail ? detail : "");
    report(d);
}

/* ---- orders */
static uint32_t find_tun(const struct agent_thread *d, uint32_t id)
{
    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++)
        if (d->tuns[i].t && d->tuns[i].id == id)
            return i;
    return UINT32_MAX;
}

static void do_tun_open(struct agent_thread *d, const struct agent_order *o)
{
    struct agent_report *r = fresh_report(d, AGENT_REPORT_TUN);
    uint32_t i = 0;

    r->tun_id = o->tun_id;
    r->code = o->code;
    (void)base_fmt(r->detail, sizeof r->detail, "%s", o->text);
    if (o->tun) {
        while (i < AGENT_TUNS_MAX && d->tuns[i].t)
            i++;
        if (i == AGENT_TUNS_MAX || find_tun(d, o->tun_id) != UINT32_MAX) {
            r->code = i == AGENT_TUNS_MAX ? BASE_EFULL : BASE_EEXIST;
            (void)base_fmt(r->detail, sizeof r->detail, "TUN device '%s': %s", tun_device(o->tun),
                           i == AGENT_TUNS_MAX ? "too many devices are open" : "its number is in use");
            d->message.close = o->tun;
        } else {
            d->tuns[i] = (struct agent_tun){.id = o->tun_id, .t = o->tun};
            agent_data_tun_empty(d, i);
        }
    }
    report(d);
}

/* Lets go of a TUN: its flows keep their state, without a way into the VPC. */
static void let_go(struct agent_thread *d, uint32_t i, enum agent_report_kind kind)
{
    struct agent_report *r = fresh_report(d, kind);

    r->tun_id = d->tuns[i].id;
    r->code = kind == AGENT_REPORT_TUN_LOST ? BASE_ECLOSED : BASE_OK;
    (void)base_fmt(r->detail, sizeof r->detail, "%s", d->tuns[i].why);
    d->message.close = d->tuns[i].t;
    agent_flows_drop_tun(d->flows, i);
    d->tuns[i] = (struct agent_tun){0};
    report(d);
}

static void do_tun_close(struct agent_thread *d, const struct agent_order *o)
{
    uint32_t i = find_tun(d, o->tun_id);

    if (i != UINT32_MAX) {
        let_go(d, i, AGENT_REPORT_TUN_CLOSED);
        return;
    }
    fresh_report(d, AGENT_REPORT_TUN_CLOSED)->tun_id = o->tun_id;
    report(d);
}

static void not_admitted(struct agent_thread *d, uint64_t flow, uint32_t tun_id, const char *why)
{
    struct agent_flow *f = agent_flows_find(d->flows, flow);

    if (f)
        agent_flows_stop(d->flows, f);
    loop_log(d->log, LOOP_WARN, "admit_failed", why, LOG_INT("flow", flow), LOG_INT("tunID", tun_id));
    (void)masque_endpoint_refuse(d->ends, flow, 503, why, 1);
}

static void do_admit(struct agent_thread *d, const struct agent_admit *a)
{
    struct agent_flow *f = agent_flows_find(d->flows, a->flow);
    uint32_t tun = find_tun(d, a->tun_id);
    const char *why = NULL;
    int rc;

    if (!f) /* has ended meanwhile: reported */
        return;
    if (tun == UINT32_MAX || d->tuns[tun].lost) {
        why = "NotReady: the VPC's device is gone";
    } else {
        /* What waits in the queue for this prefix passed the gate of an earlier generation: read it while
         * nobody owns the prefix. Others' packets go their way. */
        agent_data_tun_all(d, tun);
        rc = agent_flows_open(d->flows, f, a, tun);
        if (rc == BASE_EEXIST)
            why = "HandoffInProgress: the connector's earlier session has not ended";
        else if (rc < 0)
            why = "Internal: the session could not be set up";
        f->opened = loop_clock();
    }
    if (!why) {
        rc = masque_endpoint_accept(d->ends, a->flow, &a->prefix, f->destinations, f->rules.n_destinations,
                                    a->slot);
        if (rc == BASE_OK)
            return;
        why = "Overloaded: the answer could not be queued";
    }
    not_admitted(d, a->flow, a->tun_id, why);
}

/* Those that waited for the other threads. One that was stopped meanwhile is not touched any more: its slot
 * is control's again. */
static void admit_waiting(struct agent_thread *d)
{
    const struct agent_admit *a;

    while ((a = agent_data_admit_next(d, d->beat))) {
        const struct agent_flow *f = agent_flows_find(d->flows, a->flow);

        if (f && f->state == AGENT_FLOW_ASKED)
            do_admit(d, a);
    }
}

static void stop_flow(struct agent_thread *d, uint64_t flow)
{
    struct agent_flow *f = agent_flows_find(d->flows, flow);

    if (!f)
        return;
    agent_data_tun_flush(d);
    masque_endpoint_stop(d->ends, flow);
    agent_flows_stop(d->flows, f);
}

static void do_reload(struct agent_thread *d)
{
    struct base_err err = {0};

    if (masque_endpoint_reload(d->ends, &err) < 0)
        loop_log(d->log, LOOP_ERROR, "tls_reload_failed", err.msg,
                 LOG_STR("remedy", "the old certificate stays in use"));
    else
        loop_log(d->log, LOOP_INFO, "tls_reloaded",
                 "new connections use the certificate files as they are now");
}

static void take_order(struct agent_thread *d, const struct agent_order *o)
{
    switch (o->kind) {
    case AGENT_ORDER_TUN_OPEN:
        do_tun_open(d, o);
        return;
    case AGENT_ORDER_TUN_CLOSE:
        do_tun_close(d, o);
        return;
    case AGENT_ORDER_ADMIT:
        if (d->count < 2)
            do_admit(d, &o->admit);
        else if (!agent_data_admit_later(d, &o->admit))
            not_admitted(d, o->flow, o->admit.tun_id, "Overloaded: too many sessions are being set up");
        return;
    case AGENT_ORDER_REFUSE:
        (void)masque_endpoint_refuse(d->ends, o->flow, o->status, o->text, o->retry_after);
        return;
    case AGENT_ORDER_STOP:
        stop_flow(d, o->flow);
        fresh_report(d, AGENT_REPORT_STOPPED)->flow = o->flow;
        report(d);
        return;
    case AGENT_ORDER_CLOSE:
        stop_flow(d, o->flow);
        masque_endpoint_close(d->ends, o->flow);
        return;
    case AGENT_ORDER_DRAIN:
        d->draining = true;
        masque_endpoint_drain(d->ends);
        return;
    case AGENT_ORDER_RELOAD:
        do_reload(d);
        return;
    case AGENT_ORDER_LIMITS:
        masque_endpoint_set_limits(d->ends, &o->limits);
        return;
    case AGENT_ORDER_QUIT:
        return; /* the flag says it; this only wakes */
    }
}

static void take_orders(struct agent_thread *d)
{
    /* The ring wakes once, when it was empty: whoever leaves orders behind must come back by himself. */
    d->orders_left = true;
    loop_ring_drain_fd(d->orders);
    for (unsigned i = 0; push_waiting(d) && i < AGENT_ORDERS_PER_TURN; i++) {
        if (!loop_ring_pop(d->orders, &d->order)) {
            d->orders_left = false;
            return;
        }
        take_order(d, &d->order);
    }
}

/* ---- one iteration */
/* Empties what was filled before the gap, then tells control. What others have carried here is taken, and
 * dropped, in its turn of this iteration. */
static void after_gap(struct agent_thread *d)
{
    d->gap_pending = false;
    d->gap_due = true;
    d->n.gaps++;
    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++)
        agent_data_tun_empty(d, i);
    masque_endpoint_discard(d->ends);
    masque_endpoint_read_all(d->ends, d->beat); /* held: their packets are dropped */
}

/* Several gaps become one report while control does not listen: only the last one has to be answered. */
static void report_gap(struct agent_thread *d)
{
    if (!d->gap_due || d->n_waiting > 0)
        return;
    d->gap_due = false;
    fresh_report(d, AGENT_REPORT_GAP)->at = d->gap_at;
    report(d);
}

static void sweep_tuns(struct agent_thread *d)
{
    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++) {
        if (!d->tuns[i].t || !d->tuns[i].lost)
            continue;
        loop_log(d->log, LOOP_WARN, "tun_lost", d->tuns[i].why, LOG_INT("tunID", d->tuns[i].id));
        let_go(d, i, AGENT_REPORT_TUN_LOST);
    }
}

static void publish(struct agent_thread *d)
{
    uint64_t words[AGENT_STAT_WORDS];

    masque_endpoint_stats(d->ends, &d->n.h3, &d->n.h2);
    memcpy(words, &d->n, sizeof words);
    for (unsigned i = 0; i < AGENT_STAT_WORDS; i++)
        atomic_store_explicit(&d->published[i], words[i], memory_order_relaxed);
}

static void check_drained(struct agent_thread *d)
{
    if (!d->draining || d->n.h3.open_connections + d->n.h2.open_connections > 0)
        return;
    d->draining = false;
    (void)fresh_report(d, AGENT_REPORT_DRAINED);
    report(d);
}

struct polled {
    struct pollfd fd[FIRST_TUN + AGENT_TUNS_MAX];
    uint32_t tun[FIRST_TUN + AGENT_TUNS_MAX];
    nfds_t n;
};

static void wait_for_work(struct agent_thread *d, struct polled *p)
{
    base_time now = loop_clock(),
              until = base_time_min(masque_endpoint_expiry(d->ends), d->beat + AGENT_HEARTBEAT), left;
    struct timespec ts;

    p->fd[0] = (struct pollfd){.fd = loop_ring_fd(d->orders), .events = POLLIN};
    p->fd[MAIL] = (struct pollfd){.fd = d->mail_fd, .events = POLLIN};
    for (unsigned i = 0; i < MASQUE_ENDPOINT_FDS; i++)
        p->fd[FIRST_END + i] = (struct pollfd){.fd = masque_endpoint_fd(d->ends, i), .events = POLLIN};
    p->n = FIRST_TUN;
    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++) {
        if (!d->tuns[i].t)
            continue;
        p->tun[p->n] = i;
        p->fd[p->n++] = (struct pollfd){.fd = tun_fd(d->tuns[i].t), .events = POLLIN};
    }
    if (d->n_waiting > 0 || d->n_admits > 0)
        until = base_time_min(until, now + 10 * BASE_MS);
    if ((d->orders_left && d->n_waiting == 0) || d->mail_left)
        until = now;
    left = until > now ? until - now : 0;
    ts = (struct timespec){.tv_sec = left / BASE_SEC, .tv_nsec = left % BASE_SEC};
    if (ppoll(p->fd, p->n, &ts, NULL) < 0)
        for (nfds_t i = 0; i < p->n; i++)
            p->fd[i].revents = 0;
}

static void iterate(struct agent_thread *d, struct polled *p)
{
    base_time now;

    wait_for_work(d, p);
    now = agent_data_clock(d); /* before anything is taken in */
    d->beat = now;
    atomic_store_explicit(&d->heartbeat, now, memory_order_release);
    if (d->gap_pending)
        after_gap(d);
    if (p->fd[0].revents || d->orders_left)
        take_orders(d);
    if (d->count > 1) {
        agent_data_mail_take(d, p->fd[MAIL].revents != 0);
        admit_waiting(d);
    }
    for (nfds_t i = FIRST_TUN; i < p->n; i++)
        if (p->fd[i].revents)
            agent_data_tun_burst(d, p->tun[i], TUN_BURST);
    for (unsigned i = 0; i < MASQUE_ENDPOINT_FDS; i++)
        if (p->fd[FIRST_END + i].revents)
            masque_endpoint_read(d->ends, i, now);
    if (d->mail_put)
        agent_data_mail_post(d);
    masque_endpoint_expire(d->ends, now);
    agent_data_tun_flush(d);
    (void)agent_data_clock(d);
    if (d->gap_pending) /* stopped in the middle of this iteration */
        masque_endpoint_discard(d->ends);
    masque_endpoint_flush(d->ends, now, loop_clock);
    agent_data_tun_flush(d); /* packets that came before their flow was accepted */
    sweep_tuns(d);
    (void)push_waiting(d);
    report_gap(d);
    publish(d);
    check_drained(d);
}

void *agent_data_run(void *arg)
{
    struct agent_thread *d = arg;
    struct polled p;

    d->beat = loop_clock();
    while (!atomic_load_explicit(&d->quit, memory_order_acquire))
        iterate(d, &p);
    return NULL;
}
