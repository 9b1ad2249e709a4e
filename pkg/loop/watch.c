/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.c - descriptors, wake-ups and signals.
 *
 * The memory of a uv handle goes in its close callback; the object is dead for its owner from _free on.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop_int.h"

struct loop_poll {
    struct loop_obj obj; /* first: loop_obj* and loop_poll* are the same address */
    uv_poll_t h;
    loop_poll_fn fn;
    void *arg;
    int events;
};

static int to_uv(int events)
{
    return (events & LOOP_READ ? UV_READABLE : 0) | (events & LOOP_WRITE ? UV_WRITABLE : 0);
}

static void on_closed(uv_handle_t *h)
{
    base_free(h->data);
}

static void on_poll(uv_poll_t *h, int status, int uv_events)
{
    struct loop_poll *p = h->data;
    int events;

    loop_touch(p->obj.loop);
    if (status < 0) {
        /* An error condition (POLLERR): libuv has stopped the handle. The owner finds the error by its own
         * read or write, so everything that was asked for is reported, and the handle goes on. */
        events = p->events;
        (void)uv_poll_start(&p->h, to_uv(p->events), on_poll);
    } else {
        events = (uv_events & UV_READABLE ? LOOP_READ : 0) | (uv_events & UV_WRITABLE ? LOOP_WRITE : 0);
    }
    events &= p->events;
    if (events)
        p->fn(p->arg, events); /* may free p */
}

static void poll_release(struct loop_obj *o)
{
    loop_poll_free((struct loop_poll *)o);
}

int loop_poll_new(struct loop_poll **ret, struct loop *l, int fd, int events, loop_poll_fn fn, void *arg,
                  struct base_err *err)
{
    struct loop_poll *p = base_calloc(1, sizeof *p);
    int r;

    if (!p)
        return base_err_set(err, BASE_ENOMEM, "poll: no memory");
    r = uv_poll_init(&l->uv, &p->h, fd);
    if (r < 0) {
        base_free(p);
        return base_err_sys(err, BASE_EIO, -r, "poll: descriptor %d cannot be watched", fd);
    }
    p->h.data = p;
    p->fn = fn;
    p->arg = arg;
    loop_obj_link(l, &p->obj, poll_release);
    p->events = events;
    r = events ? uv_poll_start(&p->h, to_uv(events), on_poll) : 0;
    if (r < 0) {
        loop_poll_free(p);
        return base_err_sys(err, BASE_EIO, -r, "poll: descriptor %d cannot be watched", fd);
    }
    *ret = p;
    return BASE_OK;
}

void loop_poll_set(struct loop_poll *p, int events)
{
    if (events == p->events)
        return;
    p->events = events;
    if (events)
        (void)uv_poll_start(&p->h, to_uv(events), on_poll);
    else
        (void)uv_poll_stop(&p->h);
}

struct loop_poll *loop_poll_free(struct loop_poll *p)
{
    if (!p)
        return NULL;
    loop_obj_unlink(&p->obj);
    uv_close((uv_handle_t *)&p->h, on_closed);
    return NULL;
}

/* ---- wake-ups: an eventfd, written once until the callback has taken notice */
struct loop_wake {
    struct loop_obj obj;
    struct loop_poll *poll;
    loop_wake_fn fn;
    void *arg;
    int fd;
    atomic_bool pending;
};

static void on_wake(void *arg, int events)
{
    struct loop_wake *w = arg;
    uint64_t n;
    ssize_t r;

    do
        r = read(w->fd, &n, sizeof n);
    while (r < 0 && errno == EINTR);
    /* A wake that comes from here on writes again. */
    if (atomic_exchange(&w->pending, false))
        w->fn(w->arg); /* may free w */
}

static void wake_release(struct loop_obj *o)
{
    loop_wake_free((struct loop_wake *)o);
}

int loop_wake_new(struct loop_wake **ret, struct loop *l, loop_wake_fn fn, void *arg, struct base_err *err)
{
    struct loop_wake *w = base_calloc(1, sizeof *w);
    int r;

    if (!w)
        return base_err_set(err, BASE_ENOMEM, "wake: no memory");
    w->fn = fn;
    w->arg = arg;
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->fd < 0) {
        r = base_err_sys(err, BASE_EIO, errno, "wake: eventfd");
        base_free(w);
        return r;
    }
    r = loop_poll_new(&w->poll, l, w->fd, LOOP_READ, on_wake, w, err);
    if (r != BASE_OK) {
        (void)close(w->fd);
        base_free(w);
        return r;
    }
    /* The poll object belongs to the wake object, not to the loop. */
    loop_obj_unlink(&w->poll->obj);
    loop_obj_link(l, &w->obj, wake_release);
    *ret = w;
    return BASE_OK;
}

void loop_wake(struct loop_wake *w)
{
    static const uint64_t one = 1;
    ssize_t r;

    if (atomic_exchange(&w->pending, true))
        return;
    do
        r = write(w->fd, &one, sizeof one);
    while (r < 0 && errno == EINTR);
}

struct loop_wake *loop_wake_free(struct loop_wake *w)
{
    if (!w)
        return NULL;
    loop_obj_unlink(&w->obj);
    loop_poll_free(w->poll);
    (void)close(w->fd);
    base_free(w);
    return NULL;
}

/* ---- signals */
struct loop_signal {
    struct loop_obj obj;
    uv_signal_t h;
    loop_signal_fn fn;
    void *arg;
};

static void on_signal(uv_signal_t *h, int signum)
{
    struct loop_signal *s = h->data;

    loop_touch(s->obj.loop);
    s->fn(s->arg, signum); /* may free s */
}

static void signal_release(struct loop_obj *o)
{
    loop_signal_free((struct loop_signal *)o);
}

int loop_signal_new(struct loop_signal **ret, struct loop *l, int signum, loop_signal_fn fn, void *arg,
                    struct base_err *err)
{
    struct loop_signal *s = base_calloc(1, sizeof *s);
    int r;

    if (!s)
        return base_err_set(err, BASE_ENOMEM, "signal: no memory");
    r = uv_signal_init(&l->uv, &s->h);
    if (r < 0) {
        base_free(s);
        return base_err_sys(err, BASE_EIO, -r, "signal %d", signum);
    }
    s->h.data = s;
    s->fn = fn;
    s->arg = arg;
    loop_obj_link(l, &s->obj, signal_release);
    r = uv_signal_start(&s->h, on_signal, signum);
    if (r < 0) {
        loop_signal_free(s);
        return base_err_sys(err, r == UV_EINVAL ? BASE_EINVAL : BASE_EIO, -r, "signal %d cannot be caught",
                            signum);
    }
    *ret = s;
    return BASE_OK;
}

struct loop_signal *loop_signal_free(struct loop_signal *s)
{
    if (!s)
        return NULL;
    loop_obj_unlink(&s->obj);
    uv_close((uv_handle_t *)&s->h, on_closed);
    return NULL;
}
