/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of a collection: lines, ends, errors.
 */
#include "kubestore/watch_int.h"

#define MAIN_SECONDS 240 /* and up to 60 more */
#define PROBE_SECONDS 3
#define MAIN_IDLE (75 * BASE_SEC) /* the server's bookmarks come every 60 s */
#define END_SLACK (5 * BASE_SEC)
#define SHORT_STREAM (1 * BASE_SEC) /* one that ends sooner, without a line, counts as failed */
#define STUCK_AFTER (500 * BASE_MS) /* MAIN may be that much behind PROBE */
#define ARENA_MAX ((size_t)1 << 20)

void kubestore_stream_close(struct watch_stream *st)
{
    if (st->call)
        kube_cancel(st->call);
    st->call = NULL;
    st->head = false;
}

/* MAIN could not go on: again after a while. */
static void main_failed(struct kubestore_watch *w, base_time retry_after, const struct base_err *err)
{
    base_time wait = kubestore_watch_backoff(w, w->main_failures++);

    if (retry_after > wait)
        wait = base_time_min(retry_after, 10 * BASE_SEC);
    w->main_at = base_time_add(loop_clock(), wait);
    if (err)
        w->last_err = *err;
    loop_log(w->s->log, LOOP_WARN, "watch_failed", "the watch broke off, trying again",
             LOG_STR("collection", contract_kind_plural(w->kind)), LOG_STR("err", err ? err->msg : ""),
             LOG_INT("retryMillis", wait / BASE_MS), LOG_END);
}

static void advance(struct kubestore_watch *w, struct watch_stream *st, const char *rv)
{
    memcpy(st->version, rv, sizeof st->version);
    kubestore_saw(w->s, w->kind, rv);
    if (kubestore_rv_cmp(rv, w->version) >= 1) {
        memcpy(w->version, rv, sizeof w->version);
        kubestore_proof_check(w);
    }
}

/* {"type":"ERROR","object":{"kind":"Status","code":410,...}} */
static void error_event(struct kubestore_watch *w, struct watch_stream *st,
                        const struct contract_json *status)
{
    const struct contract_json *c = contract_json_get(status, "code");
    struct base_str message = contract_json_str(status, "message");
    struct base_err err = {0};
    int64_t code = 0;
    enum watch_stream_no no = st->no;

    if (c)
        (void)contract_json_int(c, &code);
    (void)base_err_set(&err, code == 410 ? BASE_EGONE : BASE_EIO,
                       "%s: the server ended the watch with %lld: %.*s", contract_kind_plural(w->kind),
                       (long long)code, (int)(message.len < 200 ? message.len : 200), message.ptr);
    kubestore_stream_close(st);
    if (code == 410)
        kubestore_watch_want_list(w, kubestore_watch_moment(w), false, "version expired");
    else if (no == WATCH_MAIN)
        main_failed(w, 0, &err);
    else
        kubestore_proof_probe_ended(w);
}

static const struct {
    const char *name;
    enum store_event_type type;
} types[] = {{"ADDED", STORE_ADDED}, {"MODIFIED", STORE_MODIFIED}, {"DELETED", STORE_DELETED}};

/* False: the line makes no sense. */
static bool line(struct kubestore_watch *w, struct watch_stream *st, struct base_str text)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new(ARENA_MAX);
    const struct contract_json *root = NULL, *object, *meta;
    char rv[CONTRACT_RV_SIZE], name[CONTRACT_NAME_SIZE];
    struct base_str type;
    int order;

    if (!arena || contract_json_parse(&root, arena, text, 3, NULL))
        return false;
    type = contract_json_str(root, "type");
    object = contract_json_get(root, "object");
    if (base_str_eqz(type, "ERROR")) {
        error_event(w, st, object);
        return true;
    }
    meta = contract_json_get(object, "metadata");
    if (base_copy_str(rv, sizeof rv, contract_json_str(meta, "resourceVersion")) || !rv[0] ||
        base_copy_str(name, sizeof name, contract_json_str(meta, "name")))
        return false;
    st->lines = true;
    if (base_str_eqz(type, "BOOKMARK")) {
        advance(w, st, rv);
        return true;
    }
    for (size_t i = 0; i < BASE_LEN(types); i++) {
        if (!base_str_eqz(type, types[i].name))
            continue;
        order = kubestore_rv_cmp(rv, w->version);
        if (order >= 1) { /* else the other stream has brought it */
            memcpy(w->event, rv, sizeof w->event);
            w->event_at = loop_clock();
            if (!kubestore_watch_row(w, types[i].type, object->raw, name, rv))
                return false;
        }
        if (!w->dead)
            advance(w, st, rv);
        return true;
    }
    return false;
}

/* A main stream that has not brought what a younger probe brought is stuck, though it is open. */
static void check_main(struct kubestore_watch *w)
{
    struct watch_stream *m = &w->stream[WATCH_MAIN];
    struct base_err err = {0};

    if (!m->call || m->opened >= w->stream[WATCH_PROBE].opened ||
        kubestore_rv_cmp(m->version, w->event) != -1 || loop_clock() - w->event_at < STUCK_AFTER)
        return;
    (void)base_err_set(&err, BASE_EIO, "%s: the watch is open but silent; a newer one brought version %s",
                       contract_kind_plural(w->kind), w->event);
    kubestore_stream_close(m);
    main_failed(w, 0, &err);
}

static void ended(struct kubestore_watch *w, struct watch_stream *st, const struct kube_resp *end)
{
    bool good = end->code == BASE_OK && end->http_status == 200,
         lived = st->lines || loop_clock() - st->opened >= SHORT_STREAM;
    struct store_resp r = {0};

    if (!st->head)
        kubestore_heard(w->s, end);
    st->call = NULL;
    st->head = false;
    kubestore_classify(&r, false, end);
    if (end->code == BASE_OK && end->http_status == 410) {
        kubestore_watch_want_list(w, kubestore_watch_moment(w), false, "version expired");
        return;
    }
    if (st->no == WATCH_PROBE) {
        check_main(w);
        kubestore_proof_probe_ended(w);
        return;
    }
    if (good && lived) {
        w->main_failures = 0;
        w->main_at = loop_clock();
        return;
    }
    if (good)
        (void)base_err_set(&r.err, BASE_EIO, "%s: the server ended the watch at once",
                           contract_kind_plural(w->kind));
    main_failed(w, end->retry_after, &r.err);
}

static void on_stream(void *arg, enum kube_stream_what what, struct base_str text,
                      const struct kube_resp *end)
{
    struct watch_stream *st = arg;
    struct kubestore_watch *w = st->w;

    kubestore_watch_enter(w);
    if (w->start_over) { /* of a history that is void */
        if (what == KUBE_STREAM_END)
            st->call = NULL;
        kubestore_watch_leave(w);
        return;
    }
    switch (what) {
    case KUBE_STREAM_OPEN:
        st->head = true;
        kubestore_heard(w->s, NULL);
        break;
    case KUBE_STREAM_LINE:
        if (text.len && !line(w, st, text) && !w->dead) {
            loop_log(w->s->log, LOOP_ERROR, "watch_line_refused", "a line of a watch could not be read",
                     LOG_STR("collection", contract_kind_plural(w->kind)), LOG_INT("bytes", text.len),
                     LOG_END);
            kubestore_watch_want_list(w, kubestore_watch_backoff(w, w->list_failures++), false,
                                      "a line that could not be read");
        }
        break;
    case KUBE_STREAM_END:
        ended(w, st, end);
        break;
    }
    kubestore_watch_leave(w);
}

void kubestore_stream_open(struct kubestore_watch *w, enum watch_stream_no no)
{
    struct watch_stream *st = &w->stream[no];
    char path[KUBESTORE_PATH_SIZE + 2048];
    struct kube_req req = {.method = "GET", .path = path, .lane = w->lane};
    unsigned seconds =
        no == WATCH_PROBE ? PROBE_SECONDS : MAIN_SECONDS + (unsigned)base_prng_below(&w->prng, 60);
    struct base_err err = {0};
    size_t n;
    int rc = BASE_OK;

    (void)kubestore_path(path, sizeof path, w->s->ns, w->kind, NULL, false);
    n = strlen(path);
    (void)base_fmt(path + n, sizeof path - n,
                   "?watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", seconds);
    (void)kubestore_escape(path, sizeof path, base_str_of(w->version));
    n = strlen(path);
    if (w->selector[0] && (!base_fmt(path + n, sizeof path - n, "&fieldSelector=") ||
                           !kubestore_escape(path, sizeof path, base_str_of(w->selector))))
        rc = base_err_set(&err, BASE_EINVAL, "%s: the selector is too long", contract_kind_plural(w->kind));
    req.timeout = (base_time)seconds * BASE_SEC + END_SLACK;
    st->opened = loop_clock();
    st->head = st->lines = false;
    memcpy(st->version, w->version, sizeof st->version);
    if (!rc)
        rc =
            kube_stream(w->s->client, &req, no == WATCH_MAIN ? MAIN_IDLE : 0, on_stream, st, &st->call, &err);
    if (!rc)
        return;
    st->call = NULL;
    if (no == WATCH_MAIN)
        main_failed(w, 0, &err);
    else
        kubestore_proof_probe_ended(w);
}
