/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/ring.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>

#include "base/err.h"

static bool readable(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, 0) == 1;
}

Test(loop_ring, keeps_order_refuses_when_full_and_counts)
{
    struct loop_ring *r = NULL;
    int v;

    cr_assert_eq(loop_ring_new(&r, 5, sizeof v, NULL), BASE_OK);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 8; i++) {
            v = round * 8 + i;
            cr_assert(loop_ring_push(r, &v));
        }
        cr_assert_not(loop_ring_push(r, &v));
        for (int i = 0; i < 8; i++) {
            cr_assert(loop_ring_pop(r, &v));
            cr_assert_eq(v, round * 8 + i);
        }
        cr_assert_not(loop_ring_pop(r, &v));
    }
    cr_assert_eq(loop_ring_refused(r), 100);
    loop_ring_free(r);
    cr_assert_null(loop_ring_free(NULL));
}

Test(loop_ring, wakes_only_when_it_was_empty)
{
    struct loop_ring *r = NULL;
    int v = 1;

    cr_assert_eq(loop_ring_new(&r, 8, sizeof v, NULL), BASE_OK);
    cr_assert_not(readable(loop_ring_fd(r)));
    cr_assert(loop_ring_push(r, &v));
    cr_assert(readable(loop_ring_fd(r)));
    loop_ring_drain_fd(r);
    cr_assert(loop_ring_push(r, &v)); /* not empty: no new wake */
    cr_assert_not(readable(loop_ring_fd(r)));
    cr_assert(loop_ring_pop(r, &v));
    cr_assert(loop_ring_pop(r, &v));
    loop_ring_drain_fd(r); /* nothing there: returns at once */
    cr_assert(loop_ring_push(r, &v));
    cr_assert(readable(loop_ring_fd(r)));
    loop_ring_free(r);
}

Test(loop_ring, refuses_sizes_that_make_no_sense)
{
    struct loop_ring *r = NULL;
    struct base_err err = {0};

    cr_assert_eq(loop_ring_new(&r, 0, 8, &err), BASE_EINVAL);
    cr_assert_eq(loop_ring_new(&r, 8, 0, &err), BASE_EINVAL);
    cr_assert_eq(loop_ring_new(&r, (size_t)1 << 40, 8, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "slots"));
    cr_assert_null(r);
}

struct msg {
    uint64_t seq;
    unsigned char fill[56];
};
enum { N_MSG = 300000 };

static void *producer(void *arg)
{
    struct loop_ring *r = arg;
    struct msg m;

    for (uint64_t i = 0; i < N_MSG;) {
        m.seq = i;
        memset(m.fill, (int)(i & 0xff), sizeof m.fill);
        if (loop_ring_push(r, &m))
            i++;
    }
    return NULL;
}

/* A lost wake-up would show as a poll that never returns. */
Test(loop_ring, two_threads_lose_nothing_and_no_wake, .timeout = 60)
{
    struct loop_ring *r = NULL;
    struct msg m;
    pthread_t th;
    uint64_t next = 0;

    cr_assert_eq(loop_ring_new(&r, 4, sizeof m, NULL), BASE_OK);
    cr_assert_eq(pthread_create(&th, NULL, producer, r), 0);
    while (next < N_MSG) {
        struct pollfd p = {loop_ring_fd(r), POLLIN, 0};

        cr_assert_eq(poll(&p, 1, 20000), 1, "no wake after message %llu", (unsigned long long)next);
        loop_ring_drain_fd(r);
        while (loop_ring_pop(r, &m)) {
            cr_assert_eq(m.seq, next);
            cr_assert_eq(m.fill[0], (unsigned char)next);
            cr_assert_eq(m.fill[55], (unsigned char)next);
            next++;
        }
    }
    cr_assert_eq(pthread_join(th, NULL), 0);
    loop_ring_free(r);
}
