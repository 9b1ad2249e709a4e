/* SPDX-License-Identifier: Apache-2.0
 *
 * One collection, kept up to date.
 *
 *            first page             whole                    MAIN opens
 *   LIST ---------------> RELIST -----------> LISTED ----------------------> events
 *    ^  ADDED ...                                |                              |
 *    |                                           +--- stream ends: MAIN again from `version`, with back-off
 *    +---- 410 (answer or ERROR event), a line that makes no sense, or step 4 of a proof
 *
 * `version` never goes back but by a new list: an event that is not above it was applied already (by the
 * other stream) and is dropped. A list below a version that was seen before it was asked for is a regression:
 * it is not applied, and every watch of the store starts over (kubestore_start_over).
 */
#include "kubestore/watch_int.h"

#define BACKOFF_BASE (250 * BASE_MS)
#define BACKOFF_MAX (10 * BASE_SEC)
#define LIST_TIMEOUT (60 * BASE_SEC)
#define HURRY_AGAIN (1 * BASE_SEC)

base_time kubestore_watch_backoff(struct kubestore_watch *w, unsigned failures)
{
    base_time d = BACKOFF_MAX;

    if (failures < 6)
        d = base_time_min(BACKOFF_MAX, BACKOFF_BASE << failures);
    return d - (base_time)base_prng_below(&w->prng, (uint64_t)d / 4);
}

void kubestore_watch_tell(struct kubestore_watch *w, struct kubestore_note *n)
{
    if (!w->dead)
        w->fn(w->arg, n);
}

bool kubestore_watch_row(struct kubestore_watch *w, enum store_event_type type, struct base_str object,
                         const char *name, const char *rv)
{
    struct kubestore_note n = {.what = KUBESTORE_EVENT, .ev = &w->ev, .version = rv};
    struct base_err err = {0};
    int rc = contract_decode(&w->ev.object, w->kind, object, &err);

    if (rc == BASE_ENOMEM)
        return false;
    if (rc == BASE_OK) {
        /* A write that is decided on this event then needs no read of its own. Bindings and services are
         * many, and written after a fresh read or never. */
        if (type != STORE_DELETED && w->kind != CONTRACT_BINDING && w->kind != CONTRACT_SERVICE)
            kubestore_raw_put(w->s->raw, &w->ev.object, object);
        w->ev.type = type;
        n.name = w->ev.object.u.meta.name;
    } else {
        n.what = KUBESTORE_BAD_OBJECT;
        n.ev = NULL;
        n.name = name;
        n.err = &err;
    }
    kubestore_watch_tell(w, &n);
    return true;
}

base_time kubestore_watch_moment(struct kubestore_watch *w)
{
    return 20 * BASE_MS + (base_time)base_prng_below(&w->prng, (uint64_t)(180 * BASE_MS));
}

void kubestore_watch_want_list(struct kubestore_watch *w, base_time delay, bool for_proof, const char *why)
{
    base_time at = base_time_add(loop_clock(), delay);

    if (!w->need_list) {
        w->need_list = true;
        w->for_proof = for_proof;
        w->list_at = at;
        loop_log(w->s->log, LOOP_INFO, "watch_relist", "the collection is listed again",
                 LOG_STR("collection", contract_kind_plural(w->kind)), LOG_STR("reason", why),
                 LOG_STR("version", w->version), LOG_END);
    }
    w->for_proof &= for_proof;
    w->list_at = base_time_min(w->list_at, at);
    kubestore_stream_close(&w->stream[WATCH_MAIN]);
    kubestore_stream_close(&w->stream[WATCH_PROBE]);
    if (for_proof)
        kube_lane_drop(w->s->client, w->lane);
}

void kubestore_watch_hurry(struct kubestore_watch *w)
{
    base_time now = loop_clock(), soon = base_time_add(now, kubestore_watch_moment(w));
    bool list = false, waits;

    /* a server that comes and goes is not met with a storm */
    if (w->dead || (w->back_at != 0 && now - w->back_at < HURRY_AGAIN))
        return;
    w->back_at = now;
    if (w->pager && now - w->list_heard >= HURRY_AGAIN) { /* asked during the outage: it may hang for long */
        w->pager = kubestore_pager_free(w->pager);
        kube_lane_drop(w->s->client, w->lane);
        w->list_at = BASE_TIME_NEVER;
    }
    waits = w->need_list ? !w->pager && w->list_at > soon : !w->stream[WATCH_MAIN].call && w->main_at > soon;
    for (size_t i = 0; i < WATCH_PROOFS_MAX; i++)
        if (w->proof[i].used && w->rows <= KUBESTORE_PAGE) {
            w->proof[i].give_up = base_time_min(w->proof[i].give_up, soon);
            list = true;
        }
    if (waits && w->need_list)
        w->list_at = soon;
    else if (waits)
        w->main_at = soon;
    if (waits || list)
        loop_timer_set(w->timer, soon);
}

static void leave_quietly(struct kubestore_watch *w)
{
    if (--w->busy == 0 && w->dead)
        base_free(w);
}

/* ---- the list ---- */
static bool on_begin(void *arg, const char *rv, base_time sent)
{
    struct kubestore_watch *w = arg;
    struct kubestore_note n = {.what = KUBESTORE_RELIST, .version = rv, .t0 = sent};

    kubestore_watch_enter(w);
    if (!w->start_over && kubestore_rv_cmp(rv, w->list_floor) == -1)
        kubestore_went_back(w->s, w->kind, rv, w->list_floor);
    if (w->start_over) {
        w->pager = kubestore_pager_free(w->pager);
        kubestore_watch_leave(w);
        return false;
    }
    w->list_sent = sent;
    w->list_heard = loop_clock();
    w->rows_counted = 0;
    (void)base_copy(w->list_rv, sizeof w->list_rv, rv);
    w->partial = true;
    kubestore_watch_tell(w, &n);
    /* leave() may release the watch: the pager then is dead and looks at nothing of it */
    kubestore_watch_leave(w);
    return true;
}

static bool on_row(void *arg, struct base_str text)
{
    struct kubestore_watch *w = arg;
    base_cleanup(base_arena_freep) struct base_arena *arena = NULL;
    const struct contract_json *root = NULL, *meta = NULL;
    char name[CONTRACT_NAME_SIZE] = "", rv[CONTRACT_RV_SIZE] = "";

    kubestore_watch_enter(w);
    if (w->start_over) {
        w->pager = kubestore_pager_free(w->pager);
        kubestore_watch_leave(w);
        return false;
    }
    w->rows_counted++;
    w->list_heard = loop_clock();
    arena = base_arena_new((size_t)1 << 16);
    if (arena && contract_json_parse(&root, arena, text, 2, NULL) == BASE_OK)
        meta = contract_json_get(root, "metadata");
    (void)base_copy_str(name, sizeof name, contract_json_str(meta, "name"));
    (void)base_copy_str(rv, sizeof rv, contract_json_str(meta, "resourceVersion"));
    if (!arena || !kubestore_watch_row(w, STORE_ADDED, text, name, rv)) {
        w->pager = kubestore_pager_free(w->pager); /* no memory: the list starts over later */
        w->list_at = base_time_add(loop_clock(), kubestore_watch_backoff(w, w->list_failures++));
        kubestore_watch_leave(w);
        return false;
    }
    leave_quietly(w);
    return true;
}

static void on_listed(void *arg, int code, const struct kube_resp *resp, const struct base_err *err)
{
    struct kubestore_watch *w = arg;
    struct kubestore_note n = {.what = KUBESTORE_LISTED, .version = w->list_rv, .t0 = w->list_sent};
    base_time now = loop_clock();

    kubestore_watch_enter(w);
    w->pager = kubestore_pager_free(w->pager);
    if (w->start_over) {
        kubestore_watch_leave(w);
        return;
    }
    if (resp)
        kubestore_heard(w->s, resp);
    if (code != BASE_OK) {
        base_time wait = kubestore_watch_backoff(w, w->list_failures++);

        if (resp && resp->retry_after > wait)
            wait = base_time_min(resp->retry_after, BACKOFF_MAX);
        w->list_at = base_time_add(now, wait);
        w->last_err = *err;
        loop_log(w->s->log, LOOP_WARN, "watch_list_failed", "listing failed, trying again",
                 LOG_STR("collection", contract_kind_plural(w->kind)), LOG_STR("err", err->msg),
                 LOG_INT("retryMillis", wait / BASE_MS), LOG_END);
        if (w->for_proof && !w->partial && w->version[0]) {
            w->need_list = false; /* no proof; the changes may still come */
            w->main_at = now;
        }
        kubestore_watch_leave(w);
        return;
    }
    w->rows = w->rows_counted;
    w->need_list = w->partial = false;
    w->list_failures = w->main_failures = 0;
    w->main_at = now;
    w->last_err.msg[0] = '\0';
    memcpy(w->version, w->list_rv, sizeof w->version);
    kubestore_saw(w->s, w->kind, w->version);
    kubestore_watch_tell(w, &n);
    if (!w->dead)
        kubestore_proof_listed(w, w->list_sent);
    if (!w->dead)
        kubestore_proof_check(w);
    kubestore_watch_leave(w);
}

static void start_list(struct kubestore_watch *w, base_time now)
{
    static const struct kubestore_pager_fns fns = {on_begin, on_row, on_listed};
    struct base_err err = {0};

    memcpy(w->list_floor, w->s->seen[w->kind], sizeof w->list_floor);
    w->list_heard = now;
    if (kubestore_pager_new(&w->pager, w->s->client, w->s->ns, w->kind, w->selector, w->lane,
                            base_time_add(now, LIST_TIMEOUT), NULL, &fns, w, &err) == BASE_OK)
        return;
    w->last_err = err;
    w->list_at = base_time_add(now, kubestore_watch_backoff(w, w->list_failures++));
}

/* ---- what is due ---- */
static void start_over(struct kubestore_watch *w)
{
    struct kubestore_note n = {.what = KUBESTORE_REGRESSED, .version = ""};
    struct base_err err = {0};

    w->start_over = false;
    w->pager = kubestore_pager_free(w->pager);
    kubestore_stream_close(&w->stream[WATCH_MAIN]);
    kubestore_stream_close(&w->stream[WATCH_PROBE]);
    kube_lane_drop(w->s->client, w->lane);
    w->version[0] = w->event[0] = '\0';
    w->need_list = true;
    w->partial = w->for_proof = false;
    w->list_at = base_time_add(loop_clock(), kubestore_watch_moment(w));
    (void)base_err_set(&err, BASE_EPROTO, "%s: the API server went back; was etcd restored?",
                       contract_kind_plural(w->kind));
    w->last_err = err;
    kubestore_proof_void(w, &err);
    kubestore_watch_tell(w, &n);
}

void kubestore_start_over(struct kubestore *s, const char *why)
{
    loop_log(s->log, LOOP_ERROR, "store_regressed",
             "the API server went back: all that was known is void, everything is listed again",
             LOG_STR("reason", why), LOG_END);
    s->history++;
    memset(s->seen, 0, sizeof s->seen);
    kubestore_raw_clear(s->raw);
    for (struct kubestore_watch *w = s->watches; w; w = w->next) {
        w->start_over = true;
        loop_timer_set(w->timer, loop_clock());
    }
}

static void run(struct kubestore_watch *w)
{
    base_time now = loop_clock(), next;

    if (w->start_over)
        start_over(w);
    if (w->dead)
        return;
    kubestore_proof_run(w, now);
    if (w->dead)
        return;
    if (w->need_list && !w->pager && now >= w->list_at)
        start_list(w, now);
    if (!w->need_list && !w->stream[WATCH_MAIN].call && now >= w->main_at)
        kubestore_stream_open(w, WATCH_MAIN);
    next = kubestore_proof_next(w);
    if (w->need_list && !w->pager)
        next = base_time_min(next, w->list_at);
    if (!w->need_list && !w->stream[WATCH_MAIN].call)
        next = base_time_min(next, w->main_at);
    loop_timer_set(w->timer, next);
}

void kubestore_watch_enter(struct kubestore_watch *w)
{
    w->busy++;
}

void kubestore_watch_leave(struct kubestore_watch *w)
{
    if (w->busy == 1 && !w->dead)
        run(w);
    leave_quietly(w);
}

static void on_timer(void *arg)
{
    struct kubestore_watch *w = arg;

    kubestore_watch_enter(w);
    kubestore_watch_leave(w);
}

/* ---- life ---- */
int kubestore_watch_new(struct kubestore_watch **ret, struct kubestore *s, enum contract_kind kind,
                        const struct store_selector *sel, kubestore_note_fn fn, void *arg,
                        struct base_err *err)
{
    struct kubestore_watch *w;
    char selector[sizeof w->selector];
    int rc = store_selector_query(selector, sizeof selector, kind, sel, err);

    if (rc)
        return rc;
    w = base_calloc(1, sizeof *w);
    if (!w)
        return base_err_set(err, BASE_ENOMEM, "%s: no memory for a watch", contract_kind_plural(kind));
    w->s = s;
    w->kind = kind;
    w->fn = fn;
    w->arg = arg;
    memcpy(w->selector, selector, sizeof w->selector);
    loop_random(&w->prng.state, sizeof w->prng.state);
    w->need_list = true;
    for (int i = 0; i < WATCH_STREAM_N; i++)
        w->stream[i] = (struct watch_stream){.w = w, .no = (enum watch_stream_no)i};
    w->lane = kube_lane_new(s->client);
    rc = w->lane < 0 ? base_err_set(err, w->lane, "%s: no connection of its own is to be had",
                                    contract_kind_plural(kind))
                     : loop_timer_new(&w->timer, s->loop, on_timer, w, err);
    if (rc) {
        base_free(w);
        return rc;
    }
    w->next = s->watches;
    s->watches = w;
    loop_timer_set(w->timer, loop_clock()); /* the first list starts in the next iteration */
    *ret = w;
    return BASE_OK;
}

struct kubestore_watch *kubestore_watch_free(struct kubestore_watch *w)
{
    if (!w || w->dead)
        return NULL;
    for (struct kubestore_watch **at = &w->s->watches; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    w->dead = true;
    w->pager = kubestore_pager_free(w->pager);
    kubestore_stream_close(&w->stream[WATCH_MAIN]);
    kubestore_stream_close(&w->stream[WATCH_PROBE]);
    kubestore_proof_fini(w);
    w->timer = loop_timer_free(w->timer);
    kube_lane_drop(w->s->client, w->lane);
    if (w->busy == 0)
        base_free(w);
    return NULL;
}

bool kubestore_watch_synced(const struct kubestore_watch *w)
{
    return !w->need_list && (w->stream[WATCH_MAIN].head || w->main_failures == 0);
}
