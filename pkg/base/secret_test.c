/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret.h"

#include <criterion/criterion.h>

#include "base/mem.h"

Test(base_secret, holds_a_copy_and_can_be_empty)
{
    char token[] = "header.payload.signature";
    struct base_secret *s = base_secret_new(base_str_of(token)), *e = base_secret_new(BASE_STR(""));

    memset(token, 'x', sizeof token - 1);
    cr_assert(base_str_eqz(base_secret_text(s), "header.payload.signature"));
    cr_assert_eq(base_secret_text(e).len, 0);
    cr_assert_null(base_secret_free(s));
    cr_assert_null(base_secret_free(e));
    cr_assert_null(base_secret_free(NULL));
}

Test(base_secret, wipe_overwrites_and_takes_nothing)
{
    char b[8] = "1234567";

    base_wipe(b + 2, 3);
    cr_assert_arr_eq(b,
                     "12\0\0\0"
                     "67",
                     8);
    base_wipe(NULL, 0);
}

Test(base_secret, no_memory_is_null)
{
    base_mem_fail_after(1);
    cr_assert_null(base_secret_new(BASE_STR("x")));
    base_mem_fail_after(0);
}
