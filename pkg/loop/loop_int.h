/* SPDX-License-Identifier: Apache-2.0
 *
 * loop_int.h - inside of struct loop, for the files of this folder.
 */
#ifndef LOOP_INT_H
#define LOOP_INT_H

#include <uv.h>

#include "base/mem.h"
#include "loop/loop.h"

/* Head of every object that belongs to a loop, so that loop_free can release what is left. */
struct loop_obj {
    struct loop_obj *prev, *next;
    struct loop *loop;
    void (*release)(struct loop_obj *o);
};

struct loop_deferred {
    struct loop_deferred *next;
    loop_timer_fn fn;
    void *arg;
};

/* Apart from struct loop because loop_now takes a const loop and may still have to read the clock. */
struct loop_tick {
    base_time now;
    bool fresh;   /* `now` was read in this iteration */
    bool running; /* within uv_run */
};

struct loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    uv_idle_t idle;
    struct loop_tick *tick;
    struct loop_obj objs; /* ring */
    /* deferred calls, in order */
    struct loop_deferred *def_head, **def_tail;
    bool idle_on, stop;
    /* timers: a binary heap on (at, seq); one timerfd serves all of them */
    struct loop_poll *timer_poll;
    int timer_fd;
    base_time armed;
    struct loop_timer **heap;
    size_t n_heap, cap_heap, n_timers;
    uint64_t seq;
};

void loop_obj_link(struct loop *l, struct loop_obj *o, void (*release)(struct loop_obj *));
void loop_obj_unlink(struct loop_obj *o);
/* Every callback of the loop passes here first: reads the clock once per iteration. */
void loop_touch(struct loop *l);
/* timer.c */
int loop_timers_init(struct loop *l, struct base_err *err);
void loop_timers_fini(struct loop *l);
void loop_timers_arm(struct loop *l);

#endif
