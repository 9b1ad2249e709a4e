/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/journal.h"

#include <pthread.h>
#include <time.h>

#include "base/mem.h"
#include "journal/file.h"
#include "loop/loop.h"

#define LINE_MAX_BYTES 4096
#define AGAIN BASE_SEC /* lines that were kept are tried again after so long, or with the next one */

struct entry { /* one line that somebody waits for */
    uint64_t ask;
    bool durable;
    size_t at, len; /* in the queue's bytes */
    struct entry *next;
};

struct journal {
    struct loop *loop;
    struct loop_wake *wake;
    struct loop_timer *timer;
    journal_done done;
    void *arg;
    base_time deadline;
    size_t max_lines;
    struct journal_file file; /* the writer's, once its thread runs */

    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* held for moments only, never across a system call on the file */
    pthread_cond_t more;
    /* under the lock */
    struct base_buf queue;
    struct entry *queued, **queued_tail;     /* in the queue */
    struct entry *finished, **finished_tail; /* written or refused by the disk; not yet reported */
    size_t n_queued_lines, n_busy_lines;
    size_t n_kept; /* of the queued, its first: the disk refused them, nobody waits for them */
    base_time again_at;
    bool stop;
    struct journal_stats stats;

    /* control thread only: asked and not yet answered, in order of their deadlines */
    struct waiting {
        uint64_t ask;
        base_time due;
    } * waiting;
    size_t n_waiting;
};

static void move_to_finished(struct journal *j, struct entry *list, bool durable)
{
    for (struct entry *e = list, *next; e; e = next) {
        next = e->next;
        e->next = NULL;
        e->durable = durable;
        *j->finished_tail = e;
        j->finished_tail = &e->next;
    }
}

static void from_file(struct journal *j)
{
    j->stats.seq = j->file.chain.seq;
    j->stats.checkpoints = j->file.checkpoints;
    j->stats.copied = j->file.copied;
    j->stats.missed = j->file.missed;
}

/* Under the lock, which is given up meanwhile. */
static void sign(struct journal *j, bool at_any_rate)
{
    int e;

    (void)pthread_mutex_unlock(&j->lock);
    e = journal_file_checkpoint(&j->file, loop_clock(), at_any_rate);
    (void)pthread_mutex_lock(&j->lock);
    if (e) {
        j->stats.healthy = false;
        (void)base_fmt(j->stats.reason, sizeof j->stats.reason, "%s: checkpoint: %s", j->file.path,
                       base_errno_name(e));
    }
    from_file(j);
}

static void wait_until(struct journal *j, base_time due)
{
    struct timespec until;
    base_time left = base_time_max(due - loop_clock(), BASE_MS);

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    left = base_time_min(left, 3600 * BASE_SEC);
    until.tv_sec += left / BASE_SEC;
    until.tv_nsec += left % BASE_SEC;
    if (until.tv_nsec >= BASE_SEC) {
        until.tv_sec++;
        until.tv_nsec -= BASE_SEC;
    }
    (void)pthread_cond_timedwait(&j->more, &j->lock, &until);
}

static size_t count_lines(const char *p, size_t n)
{
    size_t lines = 0;

    for (const char *end; n && (end = memchr(p, '\n', n)); lines++) {
        n -= (size_t)(end - p) + 1;
        p = end + 1;
    }
    return lines;
}

/* The disk refused `batch`. A line that somebody waits for is refused with its operation; one that only
 * reports what has happened (an expiry, the sum of refusals) stays at the head of the queue, of which such
 * lines may fill a half: the oldest are kept. Under the lock. Returns how many lines are given up. */
static size_t keep(struct journal *j, struct base_buf *batch, const struct entry *asked, size_t lines)
{
    size_t to = 0, from = 0, kept, shift;
    struct base_buf swap;

    for (const struct entry *e = asked; e; e = e->next) {
        memmove(batch->data + to, batch->data + from, e->at - from);
        to += e->at - from;
        from = e->at + e->len;
    }
    if (from < batch->len) {
        memmove(batch->data + to, batch->data + from, batch->len - from);
        to += batch->len - from;
    }
    kept = count_lines(batch->data, to);
    for (; kept > j->max_lines / 2 || (kept && to + j->queue.len > batch->max); kept--) {
        const char *end = memrchr(batch->data, '\n', to - 1);

        to = end ? (size_t)(end - batch->data) + 1 : 0;
    }
    if (j->stop || !kept)
        return lines;
    batch->len = shift = to;
    if (base_buf_add(batch, j->queue.data, j->queue.len))
        return lines; /* no memory */
    for (struct entry *e = j->queued; e; e = e->next)
        e->at += shift;
    swap = *batch;
    *batch = j->queue;
    j->queue = swap;
    j->n_queued_lines += kept;
    j->n_kept = kept;
    j->again_at = base_time_add(loop_clock(), AGAIN);
    return lines - kept;
}

/* Is there something to write now? Kept lines alone wait for their time. Under the lock. */
static bool idle(const struct journal *j)
{
    return !j->n_queued_lines || (j->n_queued_lines == j->n_kept && loop_clock() < j->again_at);
}

static void *writer(void *arg)
{
    struct journal *j = arg;
    struct base_buf batch;

    base_buf_init(&batch, j->queue.max);
    (void)pthread_mutex_lock(&j->lock);
    for (;;) {
        struct base_buf swap;
        struct entry *mine;
        size_t lines;
        int e;

        while (idle(j) && !j->stop) {
            base_time due = journal_file_checkpoint_due(&j->file);

            if (due <= loop_clock())
                sign(j, false);
            else if (j->n_kept)
                wait_until(j, base_time_min(due, j->again_at));
            else if (due == BASE_TIME_NEVER)
                (void)pthread_cond_wait(&j->more, &j->lock);
            else
                wait_until(j, due);
        }
        if (!j->n_queued_lines) {
            sign(j, true);
            break;
        }
        swap = batch;
        batch = j->queue;
        j->queue = swap;
        base_buf_reset(&j->queue);
        mine = j->queued;
        j->queued = NULL;
        j->queued_tail = &j->queued;
        lines = j->n_queued_lines;
        j->n_busy_lines = lines;
        j->n_queued_lines = j->n_kept = 0;
        (void)pthread_mutex_unlock(&j->lock);

        e = journal_file_append(&j->file, (struct base_str){batch.data, batch.len});
        if (!e)
            (void)journal_file_rotate(&j->file,
                                      loop_clock()); /* a failure shows with the next batch, or never */

        (void)pthread_mutex_lock(&j->lock);
        j->n_busy_lines = 0;
        j->stats.syncs++;
        j->stats.healthy = e == 0;
        if (e) {
            j->stats.failed += keep(j, &batch, mine, lines);
            j->stats.kept = j->n_kept;
            (void)base_fmt(j->stats.reason, sizeof j->stats.reason, "%s: %s", j->file.path,
                           base_errno_name(e));
        } else {
            j->stats.durable += lines;
            j->stats.kept = 0;
            j->stats.rotations = j->file.rotations;
            j->stats.reason[0] = '\0';
            from_file(j);
        }
        move_to_finished(j, mine, e == 0);
        if (!j->stop)
            loop_wake(j->wake);
    }
    (void)pthread_mutex_unlock(&j->lock);
    base_buf_fini(&batch);
    return NULL;
}

static void arm(struct journal *j)
{
    loop_timer_set(j->timer, j->n_waiting ? j->waiting[0].due : BASE_TIME_NEVER);
}

static bool forget(struct journal *j, uint64_t ask)
{
    for (size_t i = 0; i < j->n_waiting; i++)
        if (j->waiting[i].ask == ask) {
            memmove(&j->waiting[i], &j->waiting[i + 1], (j->n_waiting - i - 1) * sizeof *j->waiting);
            j->n_waiting--;
            return true;
        }
    return false;
}

static void on_wake(void *arg)
{
    struct journal *j = arg;
    struct entry *list;

    (void)pthread_mutex_lock(&j->lock);
    list = j->finished;
    j->finished = NULL;
    j->finished_tail = &j->finished;
    (void)pthread_mutex_unlock(&j->lock);
    for (struct entry *e = list, *next; e; e = next) {
        next = e->next;
        if (forget(j, e->ask))
            j->done(j->arg, e->ask, e->durable);
        base_free(e);
    }
    arm(j);
}

static void on_timer(void *arg)
{
    struct journal *j = arg;

    while (j->n_waiting && j->waiting[0].due <= loop_clock()) {
        uint64_t ask = j->waiting[0].ask;

        (void)forget(j, ask);
        (void)pthread_mutex_lock(&j->lock);
        j->stats.late++;
        j->stats.healthy = false;
        (void)base_fmt(j->stats.reason, sizeof j->stats.reason, "%s: a record was not durable within %lld ms",
                       j->file.path, (long long)(j->deadline / BASE_MS));
        (void)pthread_mutex_unlock(&j->lock);
        j->done(j->arg, ask, false);
    }
    arm(j);
}

int journal_new(struct journal **ret, struct loop *l, const struct journal_config *cfg, journal_done done,
                void *arg, struct base_err *err)
{
    struct journal *j = base_calloc(1, sizeof *j);
    pthread_condattr_t attr;
    int rc;

    if (!j)
        return base_err_set(err, BASE_ENOMEM, "audit journal: no memory");
    j->loop = l;
    j->done = done;
    j->arg = arg;
    j->file.fd = j->file.lock = -1;
    j->deadline = cfg->deadline ? cfg->deadline : 2 * BASE_SEC;
    j->max_lines = cfg->max_lines ? cfg->max_lines : 4096;
    j->queued_tail = &j->queued;
    j->finished_tail = &j->finished;
    j->stats.healthy = true;
    base_buf_init(&j->queue, j->max_lines * 1024);
    (void)pthread_mutex_init(&j->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&j->more, &attr);
    (void)pthread_condattr_destroy(&attr);
    j->waiting = base_calloc(j->max_lines, sizeof *j->waiting);
    rc = j->waiting ? journal_file_open(&j->file, cfg, err)
                    : base_err_set(err, BASE_ENOMEM, "audit journal: no memory");
    j->stats.torn = j->file.torn;
    from_file(j);
    if (!rc)
        rc = loop_wake_new(&j->wake, l, on_wake, j, err);
    if (!rc)
        rc = loop_timer_new(&j->timer, l, on_timer, j, err);
    if (!rc) {
        int e = pthread_create(&j->thread, NULL, writer, j);

        if (e)
            rc = base_err_sys(err, BASE_EIO, e, "audit journal: cannot start its thread");
        else
            j->started = true;
    }
    if (rc) {
        journal_free(j);
        return rc;
    }
    *ret = j;
    return BASE_OK;
}

static void free_entries(struct entry *list)
{
    for (struct entry *e = list, *next; e; e = next) {
        next = e->next;
        base_free(e);
    }
}

struct journal *journal_free(struct journal *j)
{
    if (!j)
        return NULL;
    if (j->started) {
        struct timespec until;

        (void)pthread_mutex_lock(&j->lock);
        j->stop = true;
        (void)pthread_cond_signal(&j->more);
        (void)pthread_mutex_unlock(&j->lock);
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += j->deadline / BASE_SEC + 1;
        if (pthread_timedjoin_np(j->thread, NULL, &until) != 0) {
            /* The disk holds the thread: it keeps what it uses, the process is about to end. */
            j->wake = loop_wake_free(j->wake);
            j->timer = loop_timer_free(j->timer);
            return NULL;
        }
    }
    loop_wake_free(j->wake);
    loop_timer_free(j->timer);
    free_entries(j->queued);
    free_entries(j->finished);
    base_buf_fini(&j->queue);
    base_free(j->waiting);
    journal_file_close(&j->file);
    (void)pthread_cond_destroy(&j->more);
    (void)pthread_mutex_destroy(&j->lock);
    return base_free(j);
}

int journal_append(struct journal *j, struct base_str line, uint64_t ask)
{
    struct entry *e = NULL;
    int rc = BASE_OK;

    if (line.len < 4 || line.len > LINE_MAX_BYTES || line.ptr[0] != '{' ||
        memcmp(line.ptr + line.len - 2, "}\n", 2) != 0 || memchr(line.ptr, '\n', line.len - 1))
        return BASE_EINVAL;
    if (ask) {
        if (j->n_waiting == j->max_lines)
            return BASE_EFULL;
        e = base_calloc(1, sizeof *e);
        if (!e)
            return BASE_ENOMEM;
        e->ask = ask;
        e->len = line.len;
    }
    (void)pthread_mutex_lock(&j->lock);
    if (e)
        e->at = j->queue.len;
    if (j->n_queued_lines + j->n_busy_lines >= j->max_lines)
        rc = BASE_EFULL;
    else
        rc = base_buf_add(&j->queue, line.ptr, line.len);
    if (!rc) {
        j->stats.appended++;
        j->n_queued_lines++;
        if (e) {
            *j->queued_tail = e;
            j->queued_tail = &e->next;
        }
        (void)pthread_cond_signal(&j->more);
    }
    (void)pthread_mutex_unlock(&j->lock);
    if (rc) {
        base_free(e);
        return rc;
    }
    if (e) {
        j->waiting[j->n_waiting++] = (struct waiting){ask, base_time_add(loop_clock(), j->deadline)};
        if (j->n_waiting == 1)
            arm(j);
    }
    return BASE_OK;
}

void journal_stats(struct journal *j, struct journal_stats *ret)
{
    (void)pthread_mutex_lock(&j->lock);
    *ret = j->stats;
    (void)pthread_mutex_unlock(&j->lock);
}
