/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/prefix.h"

#include <criterion/criterion.h>

#include "base/err.h"
#include "base/mem.h"

static struct base_prefix nth(uint32_t n)
{
    struct base_prefix p = {.addr = {{0xfd, 0x12, 0, 0, 0, 0, 0, 1}}, .len = 96};

    p.addr.b[8] = (uint8_t)(n >> 24);
    p.addr.b[9] = (uint8_t)(n >> 16);
    p.addr.b[10] = (uint8_t)(n >> 8);
    p.addr.b[11] = (uint8_t)n;
    return p;
}

Test(tun_prefix, finds_every_address_of_the_96_and_no_other)
{
    base_cleanup(tun_prefixes_freep) struct tun_prefixes *t = tun_prefixes_new(4, 1);
    struct base_prefix p = nth(7);
    struct base_ip6 a = p.addr;

    cr_assert_eq(tun_prefixes_add(t, &p, 42), BASE_OK);
    cr_expect_eq(tun_prefixes_find(t, a.b), 42);
    memset(a.b + 12, 0xff, 4);
    cr_expect_eq(tun_prefixes_find(t, a.b), 42, "last address");
    for (int bit = 0; bit < 96; bit++) {
        a.b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
        cr_expect_eq(tun_prefixes_find(t, a.b), TUN_PREFIX_NONE, "bit %d flipped", bit);
        a.b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
    }
    cr_expect_eq(tun_prefixes_find(t, (const uint8_t[16]){0}), TUN_PREFIX_NONE,
                 "an empty entry is no match for ::");
}

Test(tun_prefix, refuses)
{
    base_cleanup(tun_prefixes_freep) struct tun_prefixes *t = tun_prefixes_new(2, 1);
    struct base_prefix a = nth(1), b = nth(2), c = nth(3);

    cr_expect_null(tun_prefixes_new(0, 1));
    cr_expect_null(tun_prefixes_new((1 << 20) + 1, 1));
    for (int len = 0; len <= 128; len++) {
        struct base_prefix p = {.addr = a.addr, .len = (uint8_t)len};

        if (len != 96) {
            cr_expect_eq(tun_prefixes_add(t, &p, 1), BASE_EINVAL, "/%d", len);
            cr_expect_eq(tun_prefixes_remove(t, &p), BASE_ENOTFOUND, "/%d", len);
        }
    }
    cr_expect_eq(tun_prefixes_add(t, &a, TUN_PREFIX_NONE), BASE_EINVAL);
    cr_expect_eq(tun_prefixes_add(t, &a, 1), BASE_OK);
    cr_expect_eq(tun_prefixes_add(t, &a, 2), BASE_EEXIST, "the first one stays");
    cr_expect_eq(tun_prefixes_find(t, a.addr.b), 1);
    cr_expect_eq(tun_prefixes_add(t, &b, 2), BASE_OK);
    cr_expect_eq(tun_prefixes_add(t, &c, 3), BASE_EFULL);
    cr_expect_eq(tun_prefixes_remove(t, &c), BASE_ENOTFOUND);
    cr_expect_eq(tun_prefixes_remove(t, &a), BASE_OK);
    cr_expect_eq(tun_prefixes_remove(t, &a), BASE_ENOTFOUND);
    cr_expect_eq(tun_prefixes_add(t, &c, 3), BASE_OK);
    cr_expect_eq(tun_prefixes_count(t), 2);
}

/* Random adds and removes in a full little table against an array, for many seeds: deletion must close every
 * gap. */
Test(tun_prefix, agrees_with_an_array)
{
    enum { N = 32 };

    for (uint64_t seed = 0; seed < 200; seed++) {
        base_cleanup(tun_prefixes_freep) struct tun_prefixes *t = tun_prefixes_new(N / 2, seed);
        struct base_prng g = {seed};
        uint32_t have[N], n = 0;

        memset(have, 0xff, sizeof have);
        for (unsigned step = 0; step < 2000; step++) {
            uint32_t k = (uint32_t)base_prng_below(&g, N);
            struct base_prefix p = nth(k);

            if (base_prng_below(&g, 2)) {
                int want = have[k] != TUN_PREFIX_NONE ? BASE_EEXIST : n == N / 2 ? BASE_EFULL : BASE_OK;

                cr_assert_eq(tun_prefixes_add(t, &p, step), want, "seed %lu step %u", (unsigned long)seed,
                             step);
                if (want == BASE_OK) {
                    have[k] = step;
                    n++;
                }
            } else {
                cr_assert_eq(tun_prefixes_remove(t, &p),
                             have[k] == TUN_PREFIX_NONE ? BASE_ENOTFOUND : BASE_OK);
                n -= have[k] != TUN_PREFIX_NONE;
                have[k] = TUN_PREFIX_NONE;
            }
            cr_assert_eq(tun_prefixes_count(t), n);
            for (uint32_t i = 0; i < N; i++)
                cr_assert_eq(tun_prefixes_find(t, nth(i).addr.b), have[i], "seed %lu step %u entry %u",
                             (unsigned long)seed, step, i);
        }
    }
}

Test(tun_prefix, ten_thousand)
{
    base_cleanup(tun_prefixes_freep) struct tun_prefixes *t = tun_prefixes_new(10000, 99);

    for (uint32_t i = 0; i < 10000; i++) {
        struct base_prefix p = nth(i * 2654435761u);

        cr_assert_eq(tun_prefixes_add(t, &p, i), BASE_OK);
    }
    for (uint32_t i = 0; i < 10000; i++)
        cr_assert_eq(tun_prefixes_find(t, nth(i * 2654435761u).addr.b), i);
}

Test(tun_prefix, no_memory)
{
    for (unsigned long i = 1; i <= 2; i++) {
        base_mem_fail_after(i);
        cr_assert_null(tun_prefixes_new(4, 1));
        base_mem_fail_after(0);
    }
    cr_assert_null(tun_prefixes_free(NULL));
}
