/* SPDX-License-Identifier: Apache-2.0
 *
 * loop/loop.h - one event loop per thread (libuv), timers on CLOCK_BOOTTIME, wake-ups from other threads, signals.
 *
 * Driving. A loop belongs to the thread that runs it; only loop_wake may be called from elsewhere. Callbacks never
 * block and may stop or free any other object, and the one that called them: memory is released after the callback.
 * `now` is read once per iteration (loop_now); whoever needs a fresh value calls loop_clock().
 */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include "base/err.h"
#include "base/id.h"
#include "base/time.h"

/* The one clock: CLOCK_BOOTTIME, ns. */
base_time loop_clock(void);
/* CLOCK_REALTIME, microseconds. */
base_wall loop_wall(void);
/* 16 (or n) random bytes from the kernel; never fails once the system is up (aborts otherwise). */
void loop_random(void *dst, size_t n);
/* This kernel's boot id (/proc/sys/kernel/random/boot_id). */
int loop_boot_id(struct base_uuid *ret, struct base_err *err);
/* BASE_OK, or BASE_EINVAL when this process is in another time namespace than the initial one (contract section 9:
 * the offset of CLOCK_BOOTTIME must be 0). */
int loop_check_time_namespace(struct base_err *err);

struct loop;
struct uv_loop_s;
int loop_new(struct loop **ret, struct base_err *err);
struct loop *loop_free(struct loop *l); /* closes what is left; NULL ok */
/* Runs until loop_stop. */
int loop_run(struct loop *l, struct base_err *err);
/* Runs one iteration; `block` waits for the first event. For tests and for drivers with their own end. */
void loop_step(struct loop *l, bool block);
void loop_stop(struct loop *l);
base_time loop_now(const struct loop *l);
struct uv_loop_s *loop_uv(struct loop *l); /* for packages that bind a library to the loop */

/* One-shot timer on CLOCK_BOOTTIME (timerfd behind it; libuv's own timers do not count suspend). */
struct loop_timer;
typedef void (*loop_timer_fn)(void *arg);
int loop_timer_new(struct loop_timer **ret, struct loop *l, loop_timer_fn fn, void *arg,
                   struct base_err *err);
struct loop_timer *loop_timer_free(struct loop_timer *t);
/* Absolute, ns; replaces an earlier setting; a time in the past fires in the next iteration; BASE_TIME_NEVER disarms. */
void loop_timer_set(struct loop_timer *t, base_time at);

/* Readability and writability of a descriptor (which stays the caller's). */
enum { LOOP_READ = 1, LOOP_WRITE = 2 };
struct loop_poll;
typedef void (*loop_poll_fn)(void *arg, int events);
int loop_poll_new(struct loop_poll **ret, struct loop *l, int fd, int events, loop_poll_fn fn, void *arg,
                  struct base_err *err);
void loop_poll_set(struct loop_poll *p, int events);
struct loop_poll *loop_poll_free(struct loop_poll *p);

/* Wake-up: loop_wake may be called from any thread; several wakes may become one callback. */
struct loop_wake;
typedef void (*loop_wake_fn)(void *arg);
int loop_wake_new(struct loop_wake **ret, struct loop *l, loop_wake_fn fn, void *arg, struct base_err *err);
void loop_wake(struct loop_wake *w);
struct loop_wake *loop_wake_free(struct loop_wake *w);

struct loop_signal;
typedef void (*loop_signal_fn)(void *arg, int signum);
int loop_signal_new(struct loop_signal **ret, struct loop *l, int signum, loop_signal_fn fn, void *arg,
                    struct base_err *err);
struct loop_signal *loop_signal_free(struct loop_signal *s);

/* Queues fn(arg) for the next iteration (never from within the call). BASE_OK or BASE_ENOMEM. */
int loop_defer(struct loop *l, loop_timer_fn fn, void *arg);

#endif
