/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/rate.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>

static struct in6_addr ip(const char *text)
{
    struct in6_addr a;
    cr_assert_eq(inet_pton(AF_INET6, text, &a), 1);
    return a;
}

/* How many get through in `n` tries at `now`. */
static unsigned tries(struct masque_rates *r, const char *addr, base_time now, unsigned n, uint32_t all,
                      uint32_t network)
{
    struct in6_addr a = ip(addr);
    unsigned got = 0;
    for (unsigned i = 0; i < n; i++) {
        bool may = masque_rate_left(r, &a, now, all, network);
        cr_assert_eq(masque_rate_take(r, &a, now, all, network), may);
        got += may;
    }
    return got;
}

Test(masque_rate, at_once_and_then_at_the_rate)
{
    static struct masque_rates r;
    base_time t = 1000 * BASE_SEC;
    cr_assert_eq(tries(&r, "2001:db8::1", t, 500, 1000, 64), 64 + MASQUE_RATE_EXTRA);
    cr_assert_eq(tries(&r, "2001:db8::1", t, 10, 1000, 64), 0);
    unsigned n = 0;
    for (int ms = 1; ms <= 10000; ms++)
        n += tries(&r, "2001:db8::1", t + ms * BASE_MS, 3, 1000, 64);
    cr_assert(n >= 639 && n <= 641, "%u in 10 s", n);
    cr_assert_eq(tries(&r, "2001:db8::1", t + 100 * BASE_SEC, 500, 1000, 64), 64 + MASQUE_RATE_EXTRA,
                 "no more than that is saved up");
}

Test(masque_rate, a_network_is_one_and_others_are_not_touched)
{
    static struct masque_rates r = {.seed = 42};
    base_time t = BASE_SEC;
    cr_assert_eq(tries(&r, "2001:db8::1", t, 100, 100000, 1), 1 + MASQUE_RATE_EXTRA);
    cr_assert_eq(tries(&r, "2001:db8::2", t, 100, 100000, 1), 0, "the same /64");
    cr_assert_eq(tries(&r, "2001:db8:0:1::1", t, 100, 100000, 1), 1 + MASQUE_RATE_EXTRA);
    cr_assert_eq(tries(&r, "::ffff:192.0.2.1", t, 100, 100000, 1), 1 + MASQUE_RATE_EXTRA);
    cr_assert_eq(tries(&r, "::ffff:192.0.2.2", t, 100, 100000, 1), 1 + MASQUE_RATE_EXTRA,
                 "IPv4: each address");
}

Test(masque_rate, all_together)
{
    static struct masque_rates r;
    unsigned n = 0;
    char addr[40];
    for (unsigned i = 0; i < 300; i++) {
        (void)snprintf(addr, sizeof addr, "2001:db8:0:%x::1", i);
        n += tries(&r, addr, BASE_SEC, 1, 100, 64);
    }
    cr_assert_eq(n, 100 + MASQUE_RATE_EXTRA);
}

/* A connection that finds no room in the rate of all takes nothing from its network's. */
Test(masque_rate, nothing_is_taken_from_a_network_in_vain)
{
    static struct masque_rates r;
    cr_assert_eq(tries(&r, "2001:db8::1", BASE_SEC, 500, 10, 1000), 10 + MASQUE_RATE_EXTRA);
    cr_assert_eq(tries(&r, "2001:db8:0:1::1", BASE_SEC, 500, 10, 1), 0);
    cr_assert_eq(tries(&r, "2001:db8:0:1::1", 4 * BASE_SEC, 500, 1000000, 1), 1 + MASQUE_RATE_EXTRA);
}

Test(masque_rate, answers_to_strangers)
{
    static struct masque_rates r;
    unsigned n = 0;
    for (unsigned i = 0; i < 2000; i++)
        n += masque_rate_answer(&r, BASE_SEC);
    cr_assert_eq(n, MASQUE_ANSWERS_PER_SECOND);
    for (unsigned i = 0; i < 2000; i++)
        n += masque_rate_answer(&r, BASE_SEC + 100 * BASE_MS);
    cr_assert_eq(n, MASQUE_ANSWERS_PER_SECOND + MASQUE_ANSWERS_PER_SECOND / 10);
}
