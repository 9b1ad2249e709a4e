/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c - control's side of the data thread: its life, orders in, reports out.
 */
#include "agent/data_int.h"

#include <signal.h>

#include "base/mem.h"

/* ---- life
 * ---------------------------------------------------------------------------------------------------------
 */
static int start_thread(struct agent_data *d, struct base_err *err)
{
    sigset_t all, old;
    int rc;

    /* Signals are control's business. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&d->thread, NULL, agent_data_run, d);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return base_err_sys(err, BASE_EIO, rc, "data thread");
    d->started = true;
    (void)pthread_setname_np(d->thread, "hf-data");
    return BASE_OK;
}

static int set_up(struct agent_data *d, const struct agent_data_config *cfg, struct base_err *err)
{
    struct masque_endpoint_config ends = {.h3 = cfg->h3, .http2 = cfg->http2, .h2 = cfg->h2};
    struct masque_h3_config *h3 = &ends.h3;
    uint64_t seed;
    int rc;

    loop_random(&seed, sizeof seed);
    d->max_flows = h3->limits.connections ? h3->limits.connections : AGENT_CONNECTIONS_DEFAULT;
    d->max_flows *= cfg->http2 ? 2 : 1; /* the limit is per transport */
    /* Every flow that ends, every order's answer, a few of the thread's own: see report() in data_loop.c. */
    d->max_waiting = 2 * d->max_flows + 2 * AGENT_ORDERS_PER_TURN + 2 * AGENT_TUNS_MAX;
    d->flows = agent_flows_new(d->max_flows, seed);
    d->waiting = base_calloc(d->max_waiting, sizeof *d->waiting);
    if (!d->flows || !d->waiting)
        return base_err_set(err, BASE_ENOMEM, "no memory for %u connections: lower limits.connections",
                            (unsigned)d->max_flows);
    if ((rc = loop_ring_new(&d->orders, AGENT_ORDERS_MAX, sizeof(struct agent_order), err)) < 0 ||
        (rc = loop_ring_new(&d->reports, AGENT_REPORTS_MAX, sizeof(struct agent_message), err)) < 0)
        return rc;
    h3->events = (struct masque_events){
        .request = agent_data_on_request, .packet = agent_data_on_packet, .ended = agent_data_on_ended};
    h3->arg = d;
    h3->limits.stall = d->gap;
    if (!h3->log)
        h3->log = cfg->log;
    rc = masque_endpoint_new(&d->ends, &ends, err);
    if (rc < 0)
        return rc;
    d->port = masque_endpoint_port(d->ends);
    return start_thread(d, err);
}

int agent_data_new(struct agent_data **ret, const struct agent_data_config *cfg, agent_report_fn report,
                   void *arg, struct base_err *err)
{
    struct agent_data *d = base_calloc(1, sizeof *d);
    int rc;

    if (!d)
        return base_err_set(err, BASE_ENOMEM, "no memory for the data thread");
    d->gap = cfg->gap > 0 ? cfg->gap : AGENT_GAP_DEFAULT;
    d->rate = cfg->rate;
    d->tenant = cfg->tenant;
    d->tun_offload = !cfg->no_tun_offload;
    d->log = cfg->log;
    d->report = report;
    d->report_arg = arg;
    atomic_store(&d->heartbeat, loop_clock());
    rc = set_up(d, cfg, err);
    if (rc < 0) {
        agent_data_free(d);
        return rc;
    }
    *ret = d;
    return BASE_OK;
}

/* TUNs and tokens that are on their way between the threads. */
static void close_travellers(struct agent_data *d)
{
    while (d->orders && loop_ring_pop(d->orders, &d->order))
        tun_free(d->order.tun);
    while (d->reports && loop_ring_pop(d->reports, &d->message)) {
        tun_free(d->message.close);
        base_secret_free(d->message.r.rq.token);
    }
    for (; d->n_waiting > 0; d->n_waiting--) {
        tun_free(d->waiting[d->waiting_head].close);
        base_secret_free(d->waiting[d->waiting_head].r.rq.token);
        d->waiting_head = (d->waiting_head + 1) % d->max_waiting;
    }
}

struct agent_data *agent_data_free(struct agent_data *d)
{
    if (!d)
        return NULL;
    if (d->started) {
        struct agent_order quit = {.kind = AGENT_ORDER_QUIT};

        atomic_store_explicit(&d->quit, true, memory_order_release);
        (void)loop_ring_push(d->orders, &quit); /* when it is full, the heartbeat wakes the thread */
        (void)pthread_join(d->thread, NULL);
    }
    close_travellers(d);
    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++)
        tun_free(d->tuns[i].t);
    masque_endpoint_free(d->ends);
    agent_flows_free(d->flows);
    loop_ring_free(d->orders);
    loop_ring_free(d->reports);
    base_free(d->waiting);
    return base_free(d);
}

/* ---- reports
 * ------------------------------------------------------------------------------------------------------ */
int agent_data_fd(const struct agent_data *d)
{
    return loop_ring_fd(d->reports);
}

void agent_data_drain_reports(struct agent_data *d)
{
    struct agent_message m;

    loop_ring_drain_fd(d->reports);
    while (loop_ring_pop(d->reports, &m)) {
        tun_free(m.close); /* before control hears that it is closed */
        d->report(d->report_arg, &m.r);
        if (m.r.kind == AGENT_REPORT_GAP)
            atomic_store_explicit(&d->gap_handled, m.r.at, memory_order_release);
    }
}

uint16_t agent_data_port(const struct agent_data *d)
{
    return d->port;
}

base_time agent_data_heartbeat(const struct agent_data *d)
{
    return atomic_load_explicit(&d->heartbeat, memory_order_acquire);
}

void agent_data_stats(const struct agent_data *d, struct agent_data_stats *ret)
{
    uint64_t words[AGENT_STAT_WORDS];

    for (unsigned i = 0; i < AGENT_STAT_WORDS; i++)
        words[i] = atomic_load_explicit(&d->published[i], memory_order_relaxed);
    memcpy(ret, words, sizeof *ret);
    ret->orders_refused = loop_ring_refused(d->orders);
    ret->reports_refused = loop_ring_refused(d->reports);
}

/* ---- orders
 * ------------------------------------------------------------------------------------------------------- */
static int push(struct agent_data *d, const struct agent_order *o)
{
    return loop_ring_push(d->orders, o) ? BASE_OK : BASE_EFULL;
}

int agent_data_tun_open(struct agent_data *d, uint32_t tun_id, const char *device, int mtu)
{
    struct agent_order o = {.kind = AGENT_ORDER_TUN_OPEN, .tun_id = tun_id};
    struct base_err err = {0};
    int rc;

    /* Here, not in the data thread: attaching waits for the kernel's network lock. */
    o.code = tun_open(&o.tun, device, mtu, &err);
    if (o.code < 0)
        (void)base_fmt(o.text, sizeof o.text, "%s", err.msg);
    else if (d->tun_offload)
        (void)tun_offload(o.tun);
    rc = push(d, &o);
    if (rc < 0)
        tun_free(o.tun);
    return rc;
}

int agent_data_tun_close(struct agent_data *d, uint32_t tun_id)
{
    return push(d, &(struct agent_order){.kind = AGENT_ORDER_TUN_CLOSE, .tun_id = tun_id});
}

int agent_data_admit(struct agent_data *d, const struct agent_admit *a)
{
    return push(d, &(struct agent_order){.kind = AGENT_ORDER_ADMIT, .flow = a->flow, .admit = *a});
}

int agent_data_refuse(struct agent_data *d, uint64_t flow, int status, const char *reason,
                      unsigned retry_after)
{
    struct agent_order o = {
        .kind = AGENT_ORDER_REFUSE, .flow = flow, .status = status, .retry_after = retry_after};

    (void)base_fmt(o.text, sizeof o.text, "%s", reason);
    return push(d, &o);
}

int agent_data_stop(struct agent_data *d, uint64_t flow)
{
    return push(d, &(struct agent_order){.kind = AGENT_ORDER_STOP, .flow = flow});
}

int agent_data_close(struct agent_data *d, uint64_t flow)
{
    return push(d, &(struct agent_order){.kind = AGENT_ORDER_CLOSE, .flow = flow});
}

int agent_data_drain(struct agent_data *d)
{
    return push(d, &(struct agent_order){.kind = AGENT_ORDER_DRAIN});
}

int agent_data_reload(struct agent_data *d)
{
    return push(d, &(struct agent_order){.kind = AGENT_ORDER_RELOAD});
}

int agent_data_limits(struct agent_data *d, const struct masque_h3_limits *limits)
{
    return push(d, &(struct agent_order){.kind = AGENT_ORDER_LIMITS, .limits = *limits});
}
