/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static struct loop *make(void)
{
    struct loop *l = NULL;
    struct base_err err = {0};

    cr_assert_eq(loop_new(&l, &err), BASE_OK, "%s", err.msg);
    return l;
}

struct rec {
    struct loop *l;
    char text[64];
    struct loop_timer *t[8];
    int left;
};

struct one {
    struct rec *r;
    char c;
};

static void note(void *arg)
{
    struct one *o = arg;
    size_t n = strlen(o->r->text);

    if (n + 1 < sizeof o->r->text)
        o->r->text[n] = o->c;
    if (--o->r->left == 0)
        loop_stop(o->r->l);
}

Test(loop_timer, fires_in_order_of_time_then_of_setting)
{
    struct rec r = {make(), "", {NULL}, 5};
    struct one o[5];
    base_time now = loop_clock(), at[5] = {30, 10, 20, 10, -5};

    for (int i = 0; i < 5; i++) {
        o[i] = (struct one){&r, (char)('a' + i)};
        cr_assert_eq(loop_timer_new(&r.t[i], r.l, note, &o[i], NULL), BASE_OK);
        loop_timer_set(r.t[i], now + at[i] * BASE_MS);
    }
    cr_assert_eq(loop_run(r.l, NULL), BASE_OK);
    cr_assert_str_eq(r.text, "ebdca");
    cr_assert_geq(loop_clock() - now, 30 * BASE_MS);
    loop_free(r.l);
}

static void set_in_the_past(void *arg)
{
    struct rec *r = arg;

    if (r->left-- > 0)
        loop_timer_set(r->t[0], 1);
}

Test(loop_timer, set_in_its_own_callback_fires_in_the_next_iteration)
{
    struct rec r = {make(), "", {NULL}, 3};

    cr_assert_eq(loop_timer_new(&r.t[0], r.l, set_in_the_past, &r, NULL), BASE_OK);
    loop_timer_set(r.t[0], 1);
    for (int want = 2; want >= 0; want--) {
        loop_step(r.l, true);
        cr_assert_eq(r.left, want, "one call per iteration: %d, not %d", r.left, want);
    }
    loop_free(r.l);
}

static void free_all(void *arg)
{
    struct rec *r = arg;

    for (int i = 0; i < 8; i++)
        r->t[i] = loop_timer_free(r->t[i]);
    r->left++;
}

Test(loop_timer, callback_may_free_itself_and_the_others)
{
    struct rec r = {make(), "", {NULL}, 0};

    for (int i = 0; i < 8; i++) {
        cr_assert_eq(loop_timer_new(&r.t[i], r.l, free_all, &r, NULL), BASE_OK);
        loop_timer_set(r.t[i], 1 + i);
    }
    for (int i = 0; i < 5; i++)
        loop_step(r.l, false);
    cr_assert_eq(r.left, 1);
    loop_free(r.l);
}

Test(loop_timer, never_disarms_and_an_earlier_setting_is_replaced)
{
    struct rec r = {make(), "", {NULL}, 2};
    struct one a = {&r, 'a'}, b = {&r, 'b'};
    base_time now = loop_clock();

    cr_assert_eq(loop_timer_new(&r.t[0], r.l, note, &a, NULL), BASE_OK);
    cr_assert_eq(loop_timer_new(&r.t[1], r.l, note, &b, NULL), BASE_OK);
    loop_timer_set(r.t[0], now + 5 * BASE_MS);
    loop_timer_set(r.t[1], now + 3600 * BASE_SEC);
    loop_timer_set(r.t[0], BASE_TIME_NEVER);
    loop_timer_set(r.t[1], now + 20 * BASE_MS);
    while (r.left == 2)
        loop_step(r.l, true);
    cr_assert_str_eq(r.text, "b");
    loop_free(r.l);
}

Test(loop_timer, heap_keeps_order_under_random_changes)
{
    struct rec r = {make(), "", {NULL}, -1};
    struct base_prng rnd = {7};
    enum { N = 200 };
    static struct loop_timer *t[N];
    struct one o = {&r, 'x'};

    for (int i = 0; i < N; i++)
        cr_assert_eq(loop_timer_new(&t[i], r.l, note, &o, NULL), BASE_OK);
    for (int i = 0; i < 20000; i++) {
        int k = (int)base_prng_below(&rnd, N);

        switch (base_prng_below(&rnd, 3)) {
        case 0:
            loop_timer_set(t[k], BASE_TIME_NEVER);
            break;
        case 1:
            loop_timer_free(t[k]);
            cr_assert_eq(loop_timer_new(&t[k], r.l, note, &o, NULL), BASE_OK);
            break;
        default:
            loop_timer_set(t[k], loop_clock() + 3600 * BASE_SEC + (base_time)base_prng_below(&rnd, 1000));
        }
    }
    loop_step(r.l, false);
    cr_assert_eq(r.left, -1);
    for (int i = 0; i < N; i++)
        loop_timer_set(t[i], 1);
    for (int i = 0; i < 3; i++)
        loop_step(r.l, false);
    cr_assert_eq(r.left, -1 - N);
    loop_free(r.l);
}

static void defer_again(void *arg)
{
    struct rec *r = arg;

    r->left++;
    if (r->left < 3)
        cr_assert_eq(loop_defer(r->l, defer_again, r), BASE_OK);
}

Test(loop_defer, runs_in_the_next_iteration_without_sleeping_and_never_at_once)
{
    struct rec r = {make(), "", {NULL}, 0};

    cr_assert_eq(loop_defer(r.l, defer_again, &r), BASE_OK);
    cr_assert_eq(r.left, 0);
    for (int want = 1; want <= 3; want++) {
        loop_step(r.l, true);
        cr_assert_eq(r.left, want);
    }
    loop_free(r.l);
}

Test(loop_defer, what_is_left_is_released_with_the_loop)
{
    struct rec r = {make(), "", {NULL}, 0};

    cr_assert_eq(loop_defer(r.l, defer_again, &r), BASE_OK);
    cr_assert_null(loop_free(r.l));
    cr_assert_eq(r.left, 0);
    cr_assert_null(loop_free(NULL));
}

struct pollrec {
    struct loop_poll *p;
    int fd, calls, events;
    bool free_it;
};

static void on_poll(void *arg, int events)
{
    struct pollrec *r = arg;
    char c;

    r->calls++;
    r->events = events;
    if (events & LOOP_READ)
        (void)!read(r->fd, &c, 1);
    if (r->free_it)
        r->p = loop_poll_free(r->p);
}

Test(loop_poll, reports_what_was_asked_for_and_stops_when_told)
{
    struct loop *l = make();
    struct pollrec r = {0};
    int s[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    r.fd = s[0];
    cr_assert_eq(loop_poll_new(&r.p, l, s[0], LOOP_READ, on_poll, &r, NULL), BASE_OK);
    loop_step(l, false);
    cr_assert_eq(r.calls, 0);
    cr_assert_eq(write(s[1], "ab", 2), 2);
    loop_step(l, true);
    cr_assert_eq(r.calls, 1);
    cr_assert_eq(r.events, LOOP_READ);
    loop_poll_set(r.p, LOOP_WRITE);
    loop_step(l, true);
    cr_assert_eq(r.events, LOOP_WRITE);
    loop_poll_set(r.p, 0);
    loop_step(l, false);
    cr_assert_eq(r.calls, 2);
    loop_poll_set(r.p, LOOP_READ | LOOP_WRITE);
    r.free_it = true;
    loop_step(l, true);
    cr_assert_eq(r.events, LOOP_READ | LOOP_WRITE);
    cr_assert_null(r.p);
    loop_step(l, false);
    cr_assert_eq(r.calls, 3);
    loop_free(l);
    close(s[0]);
    close(s[1]);
}

Test(loop_poll, goes_on_after_an_error_condition)
{
    struct loop *l = make();
    struct pollrec r = {0};
    int p[2];

    /* The write end of a pipe whose reader is gone is POLLERR for ever. */
    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    r.fd = p[1];
    cr_assert_eq(loop_poll_new(&r.p, l, p[1], LOOP_WRITE, on_poll, &r, NULL), BASE_OK);
    close(p[0]);
    loop_step(l, true);
    loop_step(l, true);
    cr_assert_geq(r.calls, 2);
    cr_assert_eq(r.events, LOOP_WRITE);
    loop_free(l);
    close(p[1]);
}

Test(loop_poll, refuses_a_descriptor_that_cannot_be_watched)
{
    struct loop *l = make();
    struct loop_poll *p = NULL;
    struct base_err err = {0};

    cr_assert_eq(loop_poll_new(&p, l, 987, LOOP_READ, on_poll, NULL, &err), BASE_EIO);
    cr_assert(strstr(err.msg, "987"), "%s", err.msg);
    cr_assert_null(p);
    loop_free(l);
}

struct wakerec {
    struct loop *l;
    struct loop_wake *w;
    long data, seen, calls; /* data is written by the other thread before each wake */
    int rounds;
};

static void *waker(void *arg)
{
    struct wakerec *r = arg;

    for (int i = 0; i < r->rounds; i++)
        loop_wake(r->w);
    r->data = 42;
    loop_wake(r->w);
    return NULL;
}

static void on_wake(void *arg)
{
    struct wakerec *r = arg;

    r->calls++;
}

Test(loop_wake, wakes_from_another_thread_and_many_may_become_one)
{
    struct wakerec r = {.l = make(), .rounds = 10000};
    pthread_t th;

    cr_assert_eq(loop_wake_new(&r.w, r.l, on_wake, &r, NULL), BASE_OK);
    cr_assert_eq(pthread_create(&th, NULL, waker, &r), 0);
    while (r.calls == 0)
        loop_step(r.l, true);
    cr_assert_eq(pthread_join(th, NULL), 0);
    loop_step(r.l, false);
    cr_assert_geq(r.calls, 1);
    cr_assert_leq(r.calls, 10001);
    cr_assert_eq(r.data, 42);
    r.calls = 0;
    loop_step(r.l, false);
    cr_assert_eq(r.calls, 0);
    loop_wake(r.w);
    loop_wake(r.w);
    loop_step(r.l, true);
    cr_assert_eq(r.calls, 1);
    loop_wake_free(r.w);
    loop_free(r.l);
}

static void on_signal(void *arg, int signum)
{
    struct wakerec *r = arg;

    r->seen = signum;
    loop_stop(r->l);
}

Test(loop_signal, is_delivered_on_the_loop)
{
    struct wakerec r = {.l = make()};
    struct loop_signal *s = NULL;

    cr_assert_eq(loop_signal_new(&s, r.l, SIGUSR1, on_signal, &r, NULL), BASE_OK);
    raise(SIGUSR1);
    cr_assert_eq(loop_run(r.l, NULL), BASE_OK);
    cr_assert_eq(r.seen, SIGUSR1);
    loop_signal_free(s);
    s = NULL;
    cr_assert_eq(loop_signal_new(&s, r.l, SIGKILL, on_signal, &r, NULL), BASE_EINVAL);
    cr_assert_null(s);
    loop_free(r.l);
}

static base_time seen_now[3];
static struct loop *seen_loop;
static void read_now(void *arg)
{
    seen_now[*(int *)arg] = loop_now(seen_loop);
    usleep(2000);
}

Test(loop_now, is_read_once_per_iteration)
{
    static int idx[3] = {0, 1, 2};

    seen_loop = make();
    cr_assert_eq(loop_defer(seen_loop, read_now, &idx[0]), BASE_OK);
    cr_assert_eq(loop_defer(seen_loop, read_now, &idx[1]), BASE_OK);
    loop_step(seen_loop, false);
    cr_assert_eq(loop_defer(seen_loop, read_now, &idx[2]), BASE_OK);
    loop_step(seen_loop, false);
    cr_assert_eq(seen_now[0], seen_now[1]);
    cr_assert_gt(seen_now[2], seen_now[1]);
    loop_free(seen_loop);
}

Test(loop_clock, boot_id_and_random_are_there)
{
    struct base_uuid a, b;
    unsigned char r[64] = {0}, z[64] = {0};
    struct base_err err = {0};

    cr_assert_eq(loop_boot_id(&a, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(loop_boot_id(&b, &err), BASE_OK);
    cr_assert(base_uuid_eq(&a, &b));
    loop_random(r, sizeof r);
    cr_assert_neq(memcmp(r, z, sizeof r), 0);
    cr_assert_gt(loop_wall(), 1700000000LL * 1000000);
}

/* Exit status of a process that a time namespace with this offset was made for: 0 = accepted, 1 = refused; 77
 * = no right to make one. The process in between is in one namespace and its children in another. */
static int in_time_ns(const char *offset, bool in_between)
{
    pid_t pid = fork();
    int st = 0;

    if (pid == 0) {
        struct base_err err = {0};
        int fd, r;

        if (unshare(CLONE_NEWTIME) != 0)
            _exit(77);
        if (in_between)
            _exit(loop_check_time_namespace(&err) == BASE_EINVAL && strstr(err.msg, "children") ? 1 : 0);
        fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, offset, strlen(offset)) < 0)
            _exit(78);
        pid = fork();
        if (pid == 0) {
            r = loop_check_time_namespace(&err);
            _exit(r == BASE_OK ? 0 : r == BASE_EINVAL && strstr(err.msg, "shifted") ? 1 : 79);
        }
        if (waitpid(pid, &st, 0) != pid)
            _exit(80);
        _exit(WEXITSTATUS(st));
    }
    cr_assert_eq(waitpid(pid, &st, 0), pid);
    return WIFEXITED(st) ? WEXITSTATUS(st) : 81;
}

Test(loop_clock, a_shifted_time_namespace_is_refused)
{
    struct base_err err = {0};
    int r = in_time_ns("boottime 100 0\n", false);

    cr_assert_eq(loop_check_time_namespace(&err), BASE_OK, "%s", err.msg);
    if (r == 77)
        cr_skip_test("making a time namespace needs root");
    cr_assert_eq(r, 1, "status %d", r);
    cr_assert_eq(in_time_ns("boottime -1 500000000\n", false), 1);
    cr_assert_eq(in_time_ns("boottime 0 1\n", false), 1);
    cr_assert_eq(in_time_ns("boottime 0 0\n", false), 0);
    cr_assert_eq(in_time_ns("monotonic 9 0\n", false), 0);
    cr_assert_eq(in_time_ns("", true), 1);
}

Test(loop_new, gives_back_everything_when_there_is_no_memory)
{
    struct loop *l = NULL;
    struct loop_wake *w = NULL;
    struct loop_timer *t = NULL;
    unsigned long n;
    int r;

    for (n = 1; n < 50; n++) {
        base_mem_fail_after(n);
        r = loop_new(&l, NULL);
        if (r == BASE_OK)
            r = loop_wake_new(&w, l, on_wake, NULL, NULL);
        if (r == BASE_OK)
            r = loop_timer_new(&t, l, note, NULL, NULL);
        base_mem_fail_after(0);
        l = loop_free(l);
        if (r == BASE_OK)
            break;
        cr_assert_eq(r, BASE_ENOMEM);
    }
    cr_assert_gt(n, 4);
    cr_assert_lt(n, 50);
}
