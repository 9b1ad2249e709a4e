/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c - control's side of the data threads: their life, orders in, reports out.
 */
#include "agent/data_int.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"

/* ---- life */
static int start_thread(struct agent_thread *d, struct base_err *err)
{
    sigset_t all, old;
    char name[16] = "hf-data";
    int rc;

    if (d->index > 0)
        (void)base_fmt(name, sizeof name, "hf-data%u", d->index);
    /* Signals are control's business. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&d->thread, NULL, agent_data_run, d);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return base_err_sys(err, BASE_EIO, rc,
                            "data thread %u of %u could not be started: raise the limit of tasks (pids.max, "
                            "RLIMIT_NPROC) or of memory, or lower data.threads",
                            d->index + 1, d->count);
    d->started = true;
    (void)pthread_setname_np(d->thread, name);
    return BASE_OK;
}

static int open_endpoint(struct agent_thread *d, const struct agent_data_config *cfg, struct base_err *err)
{
    struct masque_endpoint_config ends = {.h3 = cfg->h3, .http2 = cfg->http2, .h2 = cfg->h2};
    struct masque_h3_config *h3 = &ends.h3;

    h3->events = (struct masque_events){
        .request = agent_data_on_request, .packet = agent_data_on_packet, .ended = agent_data_on_ended};
    h3->stray = agent_data_on_stray;
    h3->arg = d;
    h3->limits.stall = d->gap;
    if (!h3->log)
        h3->log = cfg->log;
    if (d->count > 1)
        h3->threads = (struct masque_threads){.index = d->index,
                                              .count = d->count,
                                              .port = d->index > 0 ? agent_data_port(d->all) : 0,
                                              .shared = &d->all->counts};
    return masque_endpoint_new(&d->ends, &ends, err);
}

static uint32_t max_connections(const struct agent_data_config *cfg)
{
    return cfg->h3.limits.connections ? cfg->h3.limits.connections : AGENT_CONNECTIONS_DEFAULT;
}

/* Of all threads together: chance may give them all to one. */
static uint32_t max_flows(const struct agent_data_config *cfg)
{
    return max_connections(cfg) * (cfg->http2 ? 2 : 1); /* the limit is per transport */
}

static int set_up_thread(struct agent_thread *d, const struct agent_data_config *cfg, uint64_t seed,
                         struct base_err *err)
{
    int rc;

    d->max_flows = max_flows(cfg);
    /* Every flow that ends, every order's answer, a few of the thread's own: see report() in data_loop.c. */
    d->max_waiting = 2 * d->max_flows + 2 * AGENT_ORDERS_PER_TURN + 2 * AGENT_TUNS_MAX;
    d->flows = agent_flows_new(d->max_flows, seed);
    d->waiting = base_calloc(d->max_waiting, sizeof *d->waiting);
    if (!d->flows || !d->waiting)
        return base_err_set(err, BASE_ENOMEM, "no memory for %u connections: lower limits.connections",
                            (unsigned)d->max_flows);
    if (d->all->shared)
        agent_flows_join(d->flows, d->all->shared, d->index);
    if ((rc = loop_ring_new(&d->orders, AGENT_ORDERS_MAX, sizeof(struct agent_order), err)) < 0 ||
        (rc = loop_ring_new(&d->reports, AGENT_REPORTS_MAX, sizeof(struct agent_message), err)) < 0)
        return rc;
    if (d->count > 1 && !(d->admits = base_calloc(AGENT_ADMITS_MAX, sizeof *d->admits)))
        return base_err_set(err, BASE_ENOMEM, "no memory for data thread %u", d->index);
    if (d->count > 1 && (d->mail_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return base_err_sys(err, BASE_EIO, errno, "data thread %u: eventfd", d->index);
    return open_endpoint(d, cfg, err);
}

static int new_thread(struct agent_data *all, unsigned index, const struct agent_data_config *cfg)
{
    struct agent_thread *d = all->at[index] = base_calloc(1, sizeof *d);

    if (!d)
        return BASE_ENOMEM;
    d->all = all;
    d->index = index;
    d->count = all->n;
    d->mail_fd = -1;
    d->gap = cfg->gap > 0 ? cfg->gap : AGENT_GAP_DEFAULT;
    d->rate = cfg->rate;
    d->tenant = cfg->tenant;
    d->log = cfg->log;
    atomic_store(&d->heartbeat, loop_clock());
    return BASE_OK;
}

/* What several threads need together. */
static int set_up_several(struct agent_data *d, const struct agent_data_config *cfg, uint64_t seed,
                          struct base_err *err)
{
    d->poll = epoll_create1(EPOLL_CLOEXEC);
    if (d->poll < 0)
        return base_err_sys(err, BASE_EIO, errno, "data threads: epoll");
    d->shared = agent_shared_new(max_flows(cfg), seed);
    d->mail = base_calloc((size_t)d->n * d->n, sizeof(struct agent_mail *));
    if (!d->shared || !d->mail || masque_count_init(&d->counts.h3, max_connections(cfg), seed) != BASE_OK ||
        (cfg->http2 && masque_count_init(&d->counts.h2, max_connections(cfg), seed) != BASE_OK))
        return base_err_set(err, BASE_ENOMEM, "no memory for %u data threads", d->n);
    for (unsigned i = 0; i < d->n * d->n; i++)
        if (i / d->n != i % d->n && !(d->mail[i] = agent_mail_new(AGENT_MAIL_BYTES)))
            return base_err_set(err, BASE_ENOMEM, "no memory for %u data threads", d->n);
    return BASE_OK;
}

static int set_up(struct agent_data *d, const struct agent_data_config *cfg, struct base_err *err)
{
    uint64_t seed;
    int rc = BASE_OK;

    d->closes = base_calloc(d->max_closes, sizeof *d->closes);
    if (!d->closes)
        return base_err_set(err, BASE_ENOMEM, "no memory for %u connections: lower limits.connections",
                            (unsigned)d->max_closes);
    loop_random(&seed, sizeof seed);
    if (d->n > 1)
        rc = set_up_several(d, cfg, seed, err);
    for (unsigned i = 0; rc == BASE_OK && i < d->n; i++) {
        if (new_thread(d, i, cfg) != BASE_OK)
            return base_err_set(err, BASE_ENOMEM, "no memory for the data thread");
        rc = set_up_thread(d->at[i], cfg, seed, err);
        if (rc == BASE_OK && d->n > 1) {
            struct epoll_event ev = {.events = EPOLLIN};

            if (epoll_ctl(d->poll, EPOLL_CTL_ADD, loop_ring_fd(d->at[i]->reports), &ev) != 0)
                rc = base_err_sys(err, BASE_EIO, errno, "data threads: epoll");
        }
    }
    for (unsigned i = 0; rc == BASE_OK && i < d->n; i++)
        rc = start_thread(d->at[i], err);
    return rc;
}

int agent_data_new(struct agent_data **ret, const struct agent_data_config *cfg, agent_report_fn report,
                   void *arg, struct base_err *err)
{
    struct agent_data *d;
    int rc;

    if (cfg->threads > MASQUE_THREADS_MAX)
        return base_err_set(err, BASE_EINVAL, "%u data threads: at most %d", cfg->threads,
                            MASQUE_THREADS_MAX);
    d = base_calloc(1, sizeof *d);
    if (!d)
        return base_err_set(err, BASE_ENOMEM, "no memory for the data thread");
    d->n = cfg->threads > 0 ? cfg->threads : 1;
    d->max_closes = max_flows(cfg);
    d->poll = -1;
    d->tun_offload = !cfg->no_tun_offload;
    d->report = report;
    d->report_arg = arg;
    rc = set_up(d, cfg, err);
    if (rc < 0) {
        agent_data_free(d);
        return rc;
    }
    *ret = d;
    return BASE_OK;
}

/* TUNs and tokens that are on their way between the threads. */
static void close_travellers(struct agent_thread *d)
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

static void free_thread(struct agent_thread *d)
{
    close_travellers(d);
    for (uint32_t i = 0; i < AGENT_TUNS_MAX; i++)
        tun_free(d->tuns[i].t);
    masque_endpoint_free(d->ends);
    agent_flows_free(d->flows);
    loop_ring_free(d->orders);
    loop_ring_free(d->reports);
    if (d->mail_fd >= 0)
        (void)close(d->mail_fd);
    base_free(d->admits);
    base_free(d->waiting);
    base_free(d);
}

struct agent_data *agent_data_free(struct agent_data *d)
{
    struct agent_order quit = {.kind = AGENT_ORDER_QUIT};

    if (!d)
        return NULL;
    for (unsigned i = 0; i < d->n && d->at[i]; i++)
        if (d->at[i]->started) {
            atomic_store_explicit(&d->at[i]->quit, true, memory_order_release);
            (void)loop_ring_push(d->at[i]->orders, &quit); /* full: the heartbeat wakes the thread */
        }
    for (unsigned i = 0; i < d->n && d->at[i]; i++)
        if (d->at[i]->started)
            (void)pthread_join(d->at[i]->thread, NULL);
    for (unsigned i = 0; i < d->n && d->at[i]; i++)
        free_thread(d->at[i]); /* when all have ended: they look at each other */
    for (unsigned i = 0; d->mail && i < d->n * d->n; i++)
        agent_mail_free(d->mail[i]);
    base_free(d->mail);
    agent_shared_free(d->shared);
    masque_count_fini(&d->counts.h3);
    masque_count_fini(&d->counts.h2);
    base_free(d->closes);
    if (d->poll >= 0)
        (void)close(d->poll);
    return base_free(d);
}

/* ---- reports */
int agent_data_fd(const struct agent_data *d)
{
    return d->n > 1 ? d->poll : loop_ring_fd(d->at[0]->reports);
}

static uint64_t all_threads(const struct agent_data *d)
{
    return UINT64_MAX >> (64 - d->n);
}

/* Is it for the caller's ears? What threads do together is told once. */
static bool to_tell(struct agent_data *d, unsigned thread, struct agent_report *r)
{
    switch (r->kind) {
    case AGENT_REPORT_TUN:
    case AGENT_REPORT_TUN_LOST:
    case AGENT_REPORT_TUN_CLOSED:
        return agent_book_report(d, thread, r);
    case AGENT_REPORT_DRAINED:
        d->drained |= UINT64_C(1) << thread;
        return d->drained == all_threads(d);
    case AGENT_REPORT_REQUEST:
    case AGENT_REPORT_ENDED:
    case AGENT_REPORT_STOPPED:
    case AGENT_REPORT_GAP:
        return true;
    }
    return true;
}

static void drain_thread(struct agent_data *d, unsigned thread)
{
    struct agent_thread *t = d->at[thread];
    struct agent_message m;

    loop_ring_drain_fd(t->reports);
    while (loop_ring_pop(t->reports, &m)) {
        tun_free(m.close); /* before control hears that it is closed */
        if (to_tell(d, thread, &m.r))
            d->report(d->report_arg, &m.r);
        if (m.r.kind == AGENT_REPORT_GAP)
            atomic_store_explicit(&t->gap_handled, m.r.at, memory_order_release);
    }
}

void agent_data_drain_reports(struct agent_data *d)
{
    for (unsigned i = 0; i < d->n; i++)
        drain_thread(d, i);
    (void)agent_data_retry(d);
}

uint16_t agent_data_port(const struct agent_data *d)
{
    return masque_endpoint_port(d->at[0]->ends);
}

unsigned agent_data_threads(const struct agent_data *d)
{
    return d->n;
}

base_time agent_data_heartbeat(const struct agent_data *d)
{
    base_time beat = BASE_TIME_NEVER;

    for (unsigned i = 0; i < d->n; i++)
        beat = base_time_min(beat, atomic_load_explicit(&d->at[i]->heartbeat, memory_order_acquire));
    return beat;
}

void agent_data_stats(const struct agent_data *d, struct agent_data_stats *ret)
{
    uint64_t words[AGENT_STAT_WORDS] = {0}, orders = 0, reports = 0;

    /* Where two counts share a word (they are gauges of connections) the sums do not run into each other. */
    for (unsigned t = 0; t < d->n; t++) {
        for (unsigned i = 0; i < AGENT_STAT_WORDS; i++)
            words[i] += atomic_load_explicit(&d->at[t]->published[i], memory_order_relaxed);
        orders += loop_ring_refused(d->at[t]->orders);
        reports += loop_ring_refused(d->at[t]->reports);
    }
    memcpy(ret, words, sizeof *ret);
    ret->h3.gso = ret->h3.gso == d->n;
    ret->orders_refused = orders;
    ret->reports_refused = reports;
}

/* ---- orders */
int agent_data_push(struct agent_thread *t, const struct agent_order *o)
{
    return loop_ring_push(t->orders, o) ? BASE_OK : BASE_EFULL;
}

/* To the flow's thread. */
static int push(struct agent_data *d, const struct agent_order *o)
{
    return agent_data_push(d->at[masque_flow_thread(o->flow) % d->n], o);
}

/* ---- orders that must not be lost: who has no room for one gets it later ---- */
static int push_to_those(struct agent_data *d, enum agent_for_all what)
{
    static const enum agent_order_kind kinds[AGENT_FOR_ALL_N] = {
        [AGENT_FOR_ALL_DRAIN] = AGENT_ORDER_DRAIN,
        [AGENT_FOR_ALL_RELOAD] = AGENT_ORDER_RELOAD,
        [AGENT_FOR_ALL_LIMITS] = AGENT_ORDER_LIMITS,
    };
    struct agent_order o;

    if (d->owed[what] == 0)
        return BASE_OK;
    o = (struct agent_order){.kind = kinds[what]};
    if (what == AGENT_FOR_ALL_LIMITS)
        o.limits = d->limits; /* the last ones that were given */
    for (unsigned i = 0; i < d->n; i++) {
        uint64_t bit = UINT64_C(1) << i;

        if ((d->owed[what] & bit) && agent_data_push(d->at[i], &o) == BASE_OK)
            d->owed[what] &= ~bit;
    }
    return d->owed[what] ? BASE_EFULL : BASE_OK;
}

static int push_to_all(struct agent_data *d, enum agent_for_all what)
{
    d->owed[what] = all_threads(d);
    return push_to_those(d, what);
}

static int push_close(struct agent_data *d, uint64_t flow)
{
    return push(d, &(struct agent_order){.kind = AGENT_ORDER_CLOSE, .flow = flow});
}

bool agent_data_retry(struct agent_data *d)
{
    uint32_t left = 0;
    uint64_t full = 0; /* threads, as bits */
    bool owed = false;

    for (uint32_t i = 0; i < d->n_closes; i++) {
        uint64_t bit = UINT64_C(1) << masque_flow_thread(d->closes[i]) % d->n;

        if (!(full & bit) && push_close(d, d->closes[i]) == BASE_OK)
            continue;
        full |= bit;
        d->closes[left++] = d->closes[i];
    }
    d->n_closes = left;
    for (unsigned i = 0; i < AGENT_FOR_ALL_N; i++)
        owed |= push_to_those(d, (enum agent_for_all)i) != BASE_OK;
    owed |= agent_book_retry(d);
    return owed || left > 0;
}

int agent_data_tun_open(struct agent_data *d, uint32_t tun_id, const char *device, int mtu)
{
    return agent_book_open(d, tun_id, device, mtu);
}

int agent_data_tun_close(struct agent_data *d, uint32_t tun_id)
{
    return agent_book_close(d, tun_id);
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
    int rc = push_close(d, flow);

    if (rc != BASE_OK && d->n_closes < d->max_closes)
        d->closes[d->n_closes++] = flow;
    return rc;
}

int agent_data_drain(struct agent_data *d)
{
    return push_to_all(d, AGENT_FOR_ALL_DRAIN);
}

int agent_data_reload(struct agent_data *d)
{
    return push_to_all(d, AGENT_FOR_ALL_RELOAD);
}

int agent_data_limits(struct agent_data *d, const struct masque_h3_limits *limits)
{
    d->limits = *limits;
    return push_to_all(d, AGENT_FOR_ALL_LIMITS);
}
