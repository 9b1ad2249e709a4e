/* SPDX-License-Identifier: Apache-2.0
 *
 * timer.c - the timers of one loop: a heap and one timerfd on CLOCK_BOOTTIME.
 *
 * A timer that is set during the dispatch gets at least the dispatch's own time and a higher sequence number,
 * so it sorts behind everything that was due already and fires in the next iteration, never in this one.
 */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "loop_int.h"

struct loop_timer {
    struct loop_obj obj;
    loop_timer_fn fn;
    void *arg;
    base_time at;
    uint64_t seq;
    size_t pos; /* index in the heap + 1; 0 = not armed */
};

static bool before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void put(struct loop *l, size_t i, struct loop_timer *t)
{
    l->heap[i] = t;
    t->pos = i + 1;
}

static void sift(struct loop *l, size_t i, struct loop_timer *t)
{
    while (i > 0 && before(t, l->heap[(i - 1) / 2])) {
        put(l, i, l->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        size_t c = 2 * i + 1;

        if (c >= l->n_heap)
            break;
        if (c + 1 < l->n_heap && before(l->heap[c + 1], l->heap[c]))
            c++;
        if (before(t, l->heap[c]))
            break;
        put(l, i, l->heap[c]);
        i = c;
    }
    put(l, i, t);
}

static void heap_remove(struct loop *l, struct loop_timer *t)
{
    size_t i = t->pos - 1;
    struct loop_timer *last = l->heap[--l->n_heap];

    t->pos = 0;
    if (last != t)
        sift(l, i, last);
}

void loop_timers_arm(struct loop *l)
{
    base_time at = l->n_heap ? l->heap[0]->at : BASE_TIME_NEVER;
    struct itimerspec its = {{0, 0}, {0, 0}};

    if (at == l->armed)
        return;
    l->armed = at;
    if (at != BASE_TIME_NEVER) {
        if (at < 1)
            at = 1; /* 0 would disarm */
        its.it_value.tv_sec = at / BASE_SEC;
        its.it_value.tv_nsec = at % BASE_SEC;
    }
    (void)timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static void on_timerfd(void *arg, int events)
{
    struct loop *l = arg;
    uint64_t ticks, last = l->seq;
    ssize_t r;
    base_time now;

    do
        r = read(l->timer_fd, &ticks, sizeof ticks);
    while (r < 0 && errno == EINTR);
    l->armed = BASE_TIME_NEVER; /* it has fired; on_prepare arms it again */
    now = loop_now(l);
    while (l->n_heap && l->heap[0]->at <= now && l->heap[0]->seq < last) {
        struct loop_timer *t = l->heap[0];

        heap_remove(l, t);
        t->fn(t->arg); /* may free t */
    }
}

int loop_timers_init(struct loop *l, struct base_err *err)
{
    l->armed = BASE_TIME_NEVER;
    l->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->timer_fd < 0)
        return base_err_sys(err, BASE_EIO, errno, "event loop: timerfd_create(CLOCK_BOOTTIME)");
    return loop_poll_new(&l->timer_poll, l, l->timer_fd, LOOP_READ, on_timerfd, l, err);
}

void loop_timers_fini(struct loop *l)
{
    /* the poll object went with the others; only the descriptor is left */
    l->timer_poll = NULL;
    if (l->timer_fd >= 0)
        (void)close(l->timer_fd);
    l->timer_fd = -1;
}

static void timer_release(struct loop_obj *o)
{
    loop_timer_free((struct loop_timer *)o);
}

int loop_timer_new(struct loop_timer **ret, struct loop *l, loop_timer_fn fn, void *arg, struct base_err *err)
{
    struct loop_timer *t;

    /* The heap is sized here, so that arming a timer cannot fail. */
    if (l->n_timers == l->cap_heap) {
        size_t cap = l->cap_heap ? 2 * l->cap_heap : 16;
        struct loop_timer **h = base_realloc(l->heap, cap * sizeof *h);

        if (!h)
            return base_err_set(err, BASE_ENOMEM, "timer: no memory");
        l->heap = h;
        l->cap_heap = cap;
    }
    t = base_calloc(1, sizeof *t);
    if (!t)
        return base_err_set(err, BASE_ENOMEM, "timer: no memory");
    t->fn = fn;
    t->arg = arg;
    t->at = BASE_TIME_NEVER;
    l->n_timers++;
    loop_obj_link(l, &t->obj, timer_release);
    *ret = t;
    return BASE_OK;
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return NULL;
    if (t->pos)
        heap_remove(t->obj.loop, t);
    t->obj.loop->n_timers--;
    loop_obj_unlink(&t->obj);
    base_free(t);
    return NULL;
}

void loop_timer_set(struct loop_timer *t, base_time at)
{
    struct loop *l = t->obj.loop;

    if (t->pos)
        heap_remove(l, t);
    t->at = at;
    if (at == BASE_TIME_NEVER)
        return;
    if (l->tick->running && at < loop_now(l))
        t->at = loop_now(l);
    t->seq = l->seq++;
    l->n_heap++;
    sift(l, l->n_heap - 1, t);
}
