/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <criterion/criterion.h>
#include <errno.h>

/* What somebody sent is quoted in errors: it cannot begin a line of its own in a log. */
Test(base_err, a_text_is_one_line)
{
    struct base_err err = {0};

    cr_assert_eq(base_err_set(&err, BASE_EINVAL, "name 'a\nb\x7f\x1b[31m'"), BASE_EINVAL);
    cr_assert_str_eq(err.msg, "name 'a?b??[31m'");
    cr_assert_eq(base_err_wrap(&err, "in\r%s", "\t"), BASE_EINVAL);
    cr_assert_str_eq(err.msg, "in??: name 'a?b??[31m'");
    cr_assert_eq(base_err_sys(&err, BASE_EIO, EIO, "a\n"), BASE_EIO);
    cr_assert_str_eq(err.msg, "a?: EIO (input/output error)");
    cr_assert_eq(base_err_set(&err, BASE_EINVAL, "gr\xc3\xbcn"), BASE_EINVAL);
    cr_assert_str_eq(err.msg, "gr\xc3\xbcn");
}
