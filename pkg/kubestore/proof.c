/* SPDX-License-Identifier: Apache-2.0
 *
 * Collection proofs (contract section 5).
 *
 *   1. R = version of a LIST with limit=1, no selector, no resourceVersion: a quorum read, sent after
 * `asked`.
 *   2. The probe: a watch with the collection's selector from `version` on, for 3 s, on the same connection.
 *   3. An event or a bookmark with a version >= R on either stream: everything up to R has been applied.
 *   4. None in time: a full list; one that was asked for after `asked` is itself a proof.
 *   No proof by the deadline: KUBESTORE_NOT_PROVED, and nothing else follows.
 *
 * Each stream began at a version up to which everything had been applied and brings its changes in order, so
 * a line of version v says that all changes up to v have come; the other stream's duplicates are dropped.
 */
#include "kubestore/watch_int.h"

#define STEP1_MAX (2 * BASE_SEC)
#define STEP1_MIN (250 * BASE_MS)
#define STEP1_TRIES 2
#define PROBE_WAIT (4 * BASE_SEC)
#define JUST_BACK (2 * BASE_SEC)

static void end(struct watch_proof *p)
{
    if (p->call)
        kube_cancel(p->call);
    p->call = NULL;
    p->used = false;
}

static void proved(struct watch_proof *p, base_time t0)
{
    struct kubestore_note n = {
        .what = KUBESTORE_PROVED, .version = p->w->version, .proof_id = p->id, .t0 = t0};

    end(p);
    kubestore_watch_tell(p->w, &n);
}

static void not_proved(struct watch_proof *p, struct base_err *err)
{
    struct kubestore_note n = {
        .what = KUBESTORE_NOT_PROVED, .version = p->w->version, .proof_id = p->id, .err = err};

    end(p);
    kubestore_watch_tell(p->w, &n);
}

void kubestore_proof_check(struct kubestore_watch *w)
{
    for (size_t i = 0; i < WATCH_PROOFS_MAX && !w->dead; i++) {
        struct watch_proof *p = &w->proof[i];
        int order;

        /* between RELIST and LISTED only part of the list has been applied */
        if (!p->used || !p->r[0] || w->partial || !w->version[0])
            continue;
        order = kubestore_rv_cmp(w->version, p->r);
        if (order == 0 || order == 1)
            proved(p, p->t0);
    }
}

void kubestore_proof_listed(struct kubestore_watch *w, base_time t0)
{
    for (size_t i = 0; i < WATCH_PROOFS_MAX && !w->dead; i++)
        if (w->proof[i].used && t0 >= w->proof[i].asked)
            proved(&w->proof[i], t0);
}

/* ---- step 1 ---- */
static void step1_failed(struct watch_proof *p, const struct base_err *err)
{
    struct kubestore_watch *w = p->w;
    base_time now = loop_clock();

    w->last_err = *err;
    p->retry_at = BASE_TIME_NEVER;
    if (++p->failures < STEP1_TRIES)
        p->retry_at = now + 100 * BASE_MS + (base_time)base_prng_below(&w->prng, (uint64_t)(300 * BASE_MS));
    else
        p->give_up = now; /* step 4 */
}

static void on_step1(void *arg, const struct kube_resp *resp)
{
    struct watch_proof *p = arg;
    struct kubestore_watch *w = p->w;
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new((size_t)1 << 20);
    const struct contract_json *root = NULL;
    struct store_resp r = {0};
    char rv[CONTRACT_RV_SIZE] = "";
    struct base_err err = {0};
    base_time now = loop_clock();

    p->call = NULL;
    kubestore_watch_enter(w);
    if (w->start_over) {
        kubestore_watch_leave(w);
        return;
    }
    kubestore_heard(w->s, resp);
    kubestore_classify(&r, false, resp);
    if (r.code == BASE_OK && arena && contract_json_parse(&root, arena, resp->body, 2, &err) == BASE_OK)
        (void)base_copy_str(rv, sizeof rv,
                            contract_json_str(contract_json_get(root, "metadata"), "resourceVersion"));
    if (r.code != BASE_OK || !rv[0]) {
        if (r.code == BASE_OK)
            (void)base_err_set(&r.err, BASE_EPROTO, "%s: a list without resourceVersion",
                               contract_kind_plural(w->kind));
        step1_failed(p, &r.err);
    } else if (kubestore_rv_cmp(rv, p->floor) == -1) {
        kubestore_went_back(w->s, w->kind, rv, p->floor); /* and this proof with everything else */
    } else {
        memcpy(p->r, rv, sizeof p->r);
        p->t0 = resp->sent_at;
        kubestore_saw(w->s, w->kind, rv);
        p->give_up = now; /* step 4, if no bookmark is waited for */
        if (!kubestore_proof_by_list(w, now))
            p->give_up = base_time_add(now, base_time_min(PROBE_WAIT, (p->deadline - now) / 2));
        kubestore_proof_check(w);
    }
    kubestore_watch_leave(w);
}

static void step1(struct watch_proof *p, base_time now)
{
    struct kubestore_watch *w = p->w;
    char path[KUBESTORE_PATH_SIZE];
    struct kube_req req = {.method = "GET", .path = path, .lane = w->lane};
    struct base_err err = {0};
    size_t n;

    (void)kubestore_path(path, sizeof path, w->s->ns, w->kind, NULL, false);
    n = strlen(path);
    (void)base_fmt(path + n, sizeof path - n, "?limit=1");
    req.timeout = base_time_min(base_time_max((p->deadline - p->asked) / 4, STEP1_MIN), STEP1_MAX);
    p->retry_at = BASE_TIME_NEVER;
    memcpy(p->floor, w->s->seen[w->kind], sizeof p->floor);
    if (kube_request(w->s->client, &req, on_step1, p, &p->call, &err)) {
        p->call = NULL;
        step1_failed(p, &err);
    }
    (void)now;
}

/* ---- steps 2 to 4 ---- */
void kubestore_proof_probe_ended(struct kubestore_watch *w)
{
    for (size_t i = 0; i < WATCH_PROOFS_MAX; i++)
        if (w->proof[i].used && w->proof[i].probed)
            w->proof[i].give_up = loop_clock(); /* its bookmark is not coming any more */
}

void kubestore_proof_run(struct kubestore_watch *w, base_time now)
{
    struct base_err late = w->last_err;
    bool probe = false, list = false;

    while (w->n_refused && !w->dead) {
        struct base_err full = {.code = BASE_EFULL, .msg = "too many proofs of this collection are running"};
        struct kubestore_note n = {.what = KUBESTORE_NOT_PROVED, .version = w->version, .err = &full};

        n.proof_id = w->refused[--w->n_refused];
        kubestore_watch_tell(w, &n);
    }

    for (size_t i = 0; i < WATCH_PROOFS_MAX && !w->dead; i++) {
        struct watch_proof *p = &w->proof[i];

        if (!p->used)
            continue;
        if (now >= p->deadline) {
            if (!late.msg[0])
                (void)base_err_set(&late, BASE_ETIMEDOUT, "%s: no event, bookmark or list came in time",
                                   contract_kind_plural(w->kind));
            not_proved(p, &late);
            continue;
        }
        if (!p->call && now >= p->retry_at)
            step1(p, now);
        if (now >= p->give_up)
            list = true;
        else if (p->r[0] && !p->probed)
            probe = true;
    }
    if (w->dead || w->need_list)
        return;
    if (list) {
        for (size_t i = 0; i < WATCH_PROOFS_MAX; i++)
            if (w->proof[i].give_up <= now)
                w->proof[i].give_up = BASE_TIME_NEVER; /* once */
        kubestore_watch_want_list(
            w, 0, true, kubestore_proof_by_list(w, now) ? "an outage has ended" : "no bookmark in time");
        return;
    }
    if (probe && !w->stream[WATCH_PROBE].call) {
        for (size_t i = 0; i < WATCH_PROOFS_MAX; i++)
            if (w->proof[i].used && w->proof[i].r[0])
                w->proof[i].probed = true;
        kubestore_stream_open(w, WATCH_PROBE);
    }
}

base_time kubestore_proof_next(const struct kubestore_watch *w)
{
    base_time next = BASE_TIME_NEVER;

    for (size_t i = 0; i < WATCH_PROOFS_MAX; i++) {
        const struct watch_proof *p = &w->proof[i];

        if (!p->used)
            continue;
        next = base_time_min(next, p->deadline);
        if (!p->call)
            next = base_time_min(next, p->retry_at);
        if (!w->need_list)
            next = base_time_min(next, p->give_up);
    }
    return next;
}

void kubestore_proof_void(struct kubestore_watch *w, struct base_err *err)
{
    for (size_t i = 0; i < WATCH_PROOFS_MAX && !w->dead; i++)
        if (w->proof[i].used)
            not_proved(&w->proof[i], err);
}

void kubestore_proof_fini(struct kubestore_watch *w)
{
    for (size_t i = 0; i < WATCH_PROOFS_MAX; i++)
        if (w->proof[i].used)
            end(&w->proof[i]);
}

bool kubestore_proof_by_list(const struct kubestore_watch *w, base_time now)
{
    return w->back_at != 0 && now - w->back_at < JUST_BACK && w->rows <= KUBESTORE_PAGE;
}

void kubestore_watch_prove(struct kubestore_watch *w, uint64_t proof_id, base_time timeout)
{
    base_time now = loop_clock();
    struct watch_proof *p = NULL;

    for (size_t i = 0; i < WATCH_PROOFS_MAX && !p; i++)
        if (!w->proof[i].used)
            p = &w->proof[i];
    if (w->dead)
        return;
    if (!p) { /* each has its own t0, none may be joined: this one is refused, in the next iteration */
        if (w->n_refused < WATCH_PROOFS_MAX)
            w->refused[w->n_refused++] = proof_id;
        loop_timer_set(w->timer, now);
        return;
    }
    *p = (struct watch_proof){.w = w,
                              .used = true,
                              .id = proof_id,
                              .asked = now,
                              .deadline = base_time_add(now, timeout),
                              .retry_at = now,
                              .give_up = kubestore_proof_by_list(w, now) ? now : BASE_TIME_NEVER};
    loop_timer_set(w->timer, now); /* goes on in the next iteration */
}
