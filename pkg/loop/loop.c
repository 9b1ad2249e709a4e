/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include "loop_int.h"

void loop_obj_link(struct loop *l, struct loop_obj *o, void (*release)(struct loop_obj *))
{
    o->loop = l;
    o->release = release;
    o->next = &l->objs;
    o->prev = l->objs.prev;
    o->prev->next = o;
    l->objs.prev = o;
}

void loop_obj_unlink(struct loop_obj *o)
{
    o->prev->next = o->next;
    o->next->prev = o->prev;
    o->prev = o->next = o;
}

void loop_touch(struct loop *l)
{
    if (l->tick->fresh)
        return;
    l->tick->now = loop_clock();
    l->tick->fresh = true;
}

base_time loop_now(const struct loop *l)
{
    struct loop_tick *t = l->tick;

    if (!t->running)
        return loop_clock();
    if (!t->fresh) {
        t->now = loop_clock();
        t->fresh = true;
    }
    return t->now;
}

struct uv_loop_s *loop_uv(struct loop *l)
{
    return &l->uv;
}

/* Last thing before the loop sleeps: the timerfd gets the earliest deadline; what comes after the sleep is
 * new. */
static void on_prepare(uv_prepare_t *h)
{
    struct loop *l = h->data;

    loop_timers_arm(l);
    l->tick->fresh = false;
}

/* An active idle handle keeps the loop from sleeping; it is active exactly while deferred calls wait. */
static void on_idle(uv_idle_t *h)
{
    struct loop *l = h->data;
    struct loop_deferred *d = l->def_head;

    l->tick->fresh = false;
    loop_touch(l);
    l->def_head = NULL;
    l->def_tail = &l->def_head;
    uv_idle_stop(h);
    l->idle_on = false;
    while (d) {
        struct loop_deferred *next = d->next;

        d->fn(d->arg);
        base_free(d);
        d = next;
    }
}

int loop_defer(struct loop *l, loop_timer_fn fn, void *arg)
{
    struct loop_deferred *d = base_calloc(1, sizeof *d);

    if (!d)
        return BASE_ENOMEM;
    d->fn = fn;
    d->arg = arg;
    *l->def_tail = d;
    l->def_tail = &d->next;
    if (!l->idle_on) {
        uv_idle_start(&l->idle, on_idle);
        l->idle_on = true;
    }
    return BASE_OK;
}

int loop_new(struct loop **ret, struct base_err *err)
{
    struct loop *l = base_calloc(1, sizeof *l);
    int r;

    if (!l)
        return base_err_set(err, BASE_ENOMEM, "event loop: no memory");
    l->tick = base_calloc(1, sizeof *l->tick);
    if (!l->tick) {
        base_free(l);
        return base_err_set(err, BASE_ENOMEM, "event loop: no memory");
    }
    r = uv_loop_init(&l->uv);
    if (r < 0) {
        base_free(l->tick);
        base_free(l);
        return base_err_sys(err, BASE_EIO, -r, "event loop: cannot create it");
    }
    l->uv.data = l;
    l->objs.prev = l->objs.next = &l->objs;
    l->def_tail = &l->def_head;
    l->timer_fd = -1;
    uv_prepare_init(&l->uv, &l->prepare);
    l->prepare.data = l;
    uv_prepare_start(&l->prepare, on_prepare);
    uv_idle_init(&l->uv, &l->idle);
    l->idle.data = l;
    r = loop_timers_init(l, err);
    if (r != BASE_OK) {
        loop_free(l);
        return r;
    }
    *ret = l;
    return BASE_OK;
}

static void close_left(uv_handle_t *h, void *arg)
{
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

struct loop *loop_free(struct loop *l)
{
    if (!l)
        return NULL;
    while (l->objs.next != &l->objs)
        l->objs.next->release(l->objs.next);
    loop_timers_fini(l);
    while (l->def_head) {
        struct loop_deferred *d = l->def_head;

        l->def_head = d->next;
        base_free(d);
    }
    uv_walk(&l->uv, close_left, NULL);
    while (uv_loop_close(&l->uv) == UV_EBUSY)
        uv_run(&l->uv, UV_RUN_ONCE);
    base_free(l->heap);
    base_free(l->tick);
    base_free(l);
    return NULL;
}

int loop_run(struct loop *l, struct base_err *err)
{
    while (!l->stop) {
        l->tick->running = true;
        (void)uv_run(&l->uv, UV_RUN_DEFAULT);
        l->tick->running = false;
        if (!l->stop && !uv_loop_alive(&l->uv))
            return base_err_set(err, BASE_EIO, "event loop: ended although nobody stopped it");
    }
    l->stop = false;
    return BASE_OK;
}

void loop_step(struct loop *l, bool block)
{
    l->tick->running = true;
    (void)uv_run(&l->uv, block ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    l->tick->running = false;
}

void loop_stop(struct loop *l)
{
    l->stop = true;
    uv_stop(&l->uv);
}
