/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/data_mail.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { SIZE = 1 << 16 };

static bool put(struct agent_mail *m, uint32_t n, uint32_t len)
{
    static uint8_t data[SIZE];

    memset(data, (int)(n & 0xff), len);
    return agent_mail_put(m, &(struct agent_letter){.kind = AGENT_LETTER_PACKET, .len = len, .tun_id = n},
                          data);
}

static void is_whole(const struct agent_letter *l, const uint8_t *data, uint32_t n)
{
    cr_assert_eq(l->tun_id, n);
    cr_assert_eq(l->kind, AGENT_LETTER_PACKET);
    for (uint32_t i = 0; i < l->len; i++)
        cr_assert_eq(data[i], n & 0xff, "letter %u, byte %u", n, i);
}

Test(agent_data_mail, nobody_sees_what_is_not_posted)
{
    base_cleanup(agent_mail_freep) struct agent_mail *m = agent_mail_new(SIZE);
    struct agent_letter *l;
    uint8_t *data;

    cr_assert(put(m, 1, 100) && put(m, 2, 1));
    agent_mail_begin(m);
    cr_expect_null(agent_mail_take(m, &data));
    cr_expect_not(agent_mail_end(m));
    cr_expect(agent_mail_post(m), "the reader has seen everything: wake it");
    cr_assert(put(m, 3, 0));
    cr_expect_not(agent_mail_post(m), "it has something to read");
    cr_expect_not(agent_mail_post(m), "nothing new");
    agent_mail_begin(m);
    for (uint32_t n = 1; n <= 3; n++) {
        cr_assert((l = agent_mail_take(m, &data)));
        is_whole(l, data, n);
    }
    cr_expect_null(agent_mail_take(m, &data));
    cr_assert(put(m, 4, 10));
    (void)agent_mail_post(m);
    cr_expect_null(agent_mail_take(m, &data), "that came after the beginning");
    cr_expect(agent_mail_end(m), "nobody will wake the reader for it");
    agent_mail_begin(m);
    cr_assert((l = agent_mail_take(m, &data)));
    is_whole(l, data, 4);
    cr_expect_not(agent_mail_end(m));
}

Test(agent_data_mail, what_was_put_can_be_taken_back)
{
    base_cleanup(agent_mail_freep) struct agent_mail *m = agent_mail_new(SIZE);
    struct agent_letter *l;
    uint8_t *data;

    cr_assert(put(m, 1, 100));
    (void)agent_mail_post(m);
    cr_assert(put(m, 2, 100) && put(m, 3, 100));
    cr_expect_eq(agent_mail_discard(m), 2);
    cr_expect_eq(agent_mail_discard(m), 0);
    cr_assert(put(m, 4, 100));
    (void)agent_mail_post(m);
    agent_mail_begin(m);
    cr_assert((l = agent_mail_take(m, &data)));
    is_whole(l, data, 1);
    cr_assert((l = agent_mail_take(m, &data)));
    is_whole(l, data, 4);
    cr_expect_null(agent_mail_take(m, &data));
    (void)agent_mail_end(m);
}

Test(agent_data_mail, full_is_refused_and_room_comes_back)
{
    base_cleanup(agent_mail_freep) struct agent_mail *m = agent_mail_new(SIZE);
    uint32_t n = 0, got = 0;
    uint8_t *data;

    cr_expect_null(agent_mail_new(((size_t)1 << 30) + 1));
    cr_expect_not(put(m, 0, SIZE / 2), "longer than half of it");
    for (unsigned round = 0; round < 50; round++) {
        struct agent_letter *l;
        uint32_t from = n;

        while (put(m, n, (n * 37) % 1500))
            n++;
        cr_assert_geq(n - from, 30);
        (void)agent_mail_post(m);
        agent_mail_begin(m);
        while ((l = agent_mail_take(m, &data)))
            is_whole(l, data, got++);
        cr_expect_not(agent_mail_end(m));
        cr_assert_eq(got, n);
    }
}

/* Datagrams are strangers' as well: however many come, half of the room is for packets. */
Test(agent_data_mail, datagrams_get_half_of_the_room)
{
    base_cleanup(agent_mail_freep) struct agent_mail *m = agent_mail_new(SIZE);
    struct agent_letter in = {.kind = AGENT_LETTER_DATAGRAM, .len = 1200};
    static uint8_t data[1200];
    unsigned datagrams = 0, packets = 0;

    while (agent_mail_put(m, &in, data))
        datagrams++;
    in.kind = AGENT_LETTER_PACKET;
    while (agent_mail_put(m, &in, data))
        packets++;
    cr_expect(datagrams >= 20 && packets >= datagrams, "%u datagrams, %u packets", datagrams, packets);
    in.kind = AGENT_LETTER_DATAGRAM;
    cr_expect_not(agent_mail_put(m, &in, data));
}

/* What stands before the data is the receiver's, too. */
Test(agent_data_mail, a_letter_may_be_written_over)
{
    base_cleanup(agent_mail_freep) struct agent_mail *m = agent_mail_new(SIZE);
    uint8_t *data;

    cr_assert(put(m, 1, 40) && put(m, 2, 40));
    (void)agent_mail_post(m);
    agent_mail_begin(m);
    for (uint32_t n = 1; n <= 2; n++) {
        struct agent_letter *l = agent_mail_take(m, &data);

        cr_assert(l);
        is_whole(l, data, n);
        memset(data - 10, 0xff, 50);
    }
    cr_expect_null(agent_mail_take(m, &data));
    (void)agent_mail_end(m);
}

/* ---- two threads ---- */
enum { LETTERS = 60000 };
static struct agent_mail *between;
static atomic_uint wakes;

static void *writer(void *arg)
{
    for (uint32_t n = 0; n < LETTERS;) {
        bool in = put(between, n, n % 1400);

        n += in;
        if ((!in || n % 7 == 0 || n == LETTERS) && agent_mail_post(between))
            wakes++;
        if (!in)
            (void)sched_yield();
    }
    return arg;
}

/* The reader sleeps until it is woken, as a data thread does: a lost wake-up would leave it asleep for ever. */
Test(agent_data_mail, no_letter_and_no_wake_up_is_lost, .timeout = 60)
{
    pthread_t t;
    uint32_t got = 0;
    unsigned seen = 0;
    bool more = false;

    between = agent_mail_new(SIZE);
    cr_assert_eq(pthread_create(&t, NULL, writer, NULL), 0);
    while (got < LETTERS) {
        struct agent_letter *l;
        uint8_t *data;

        while (!more && wakes == seen)
            (void)sched_yield();
        seen = wakes;
        agent_mail_begin(between);
        while ((l = agent_mail_take(between, &data))) {
            cr_assert_eq(l->tun_id, got);
            cr_assert(l->len == 0 || (data[0] == (got & 0xff) && data[l->len - 1] == (got & 0xff)));
            got++;
        }
        more = agent_mail_end(between);
    }
    cr_assert_eq(pthread_join(t, NULL), 0);
    agent_mail_free(between);
}
