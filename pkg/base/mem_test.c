/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <criterion/criterion.h>

#include "base/err.h"

Test(base_mem, the_nth_allocation_and_all_after_it_fail)
{
    void *a, *b, *c;

    base_mem_fail_after(2);
    a = base_calloc(1, 8);
    b = base_calloc(1, 8);
    c = base_calloc(1, 8);
    base_mem_fail_after(0);
    cr_assert_not_null(a);
    cr_assert_null(b);
    cr_assert_null(c);
    base_free(a);
}

Test(base_arena, is_bounded_zeroed_and_aligned)
{
    struct base_arena *a = base_arena_new(100000);
    char *p = base_arena_alloc(a, 3), *q = base_arena_alloc(a, 5000);

    cr_assert_not_null(p);
    cr_assert_not_null(q);
    cr_assert_eq((size_t)p % 16, 0);
    cr_assert_eq((size_t)q % 16, 0);
    for (int i = 0; i < 5000; i++)
        cr_assert_eq(q[i], 0);
    cr_assert_null(base_arena_alloc(a, 100000));
    cr_assert_null(base_arena_alloc(a, SIZE_MAX - 4));
    cr_assert_str_eq(base_arena_strdup(a, (struct base_str){"hello", 4}), "hell");
    base_arena_free(a);
    cr_assert_null(base_arena_free(NULL));
}

Test(base_buf, a_failed_add_changes_nothing)
{
    struct base_buf b;

    base_buf_init(&b, 8);
    cr_assert_eq(base_buf_addz(&b, "12345"), BASE_OK);
    cr_assert_eq(base_buf_addz(&b, "6789"), BASE_EFULL);
    cr_assert_eq(base_buf_addf(&b, "%d", 6789), BASE_EFULL);
    cr_assert_str_eq(b.data, "12345");
    cr_assert_eq(b.failed, BASE_EFULL);
    base_buf_reset(&b);
    cr_assert_eq(b.failed, 0);
    cr_assert_eq(base_buf_addf(&b, "%s", "12345678"), BASE_OK);
    base_buf_consume(&b, 3);
    cr_assert_str_eq(b.data, "45678");
    base_buf_consume(&b, 99);
    cr_assert_eq(b.len, 0);
    base_buf_fini(&b);
}

Test(base_buf, survives_every_failing_allocation)
{
    for (unsigned long n = 1; n < 8; n++) {
        struct base_buf b;

        base_buf_init(&b, 100000);
        base_mem_fail_after(n);
        for (int i = 0; i < 5000; i++)
            if (base_buf_addz(&b, "0123456789"))
                break;
        base_mem_fail_after(0);
        cr_assert(b.failed == 0 || b.failed == BASE_ENOMEM);
        cr_assert_eq(b.len % 10, 0);
        base_buf_fini(&b);
    }
}
