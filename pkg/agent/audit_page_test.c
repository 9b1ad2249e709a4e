/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/audit_page.h"

#include <criterion/criterion.h>

#include "audit/parse.h"
#include "base/mem.h"

Test(agent_audit_page, parameters)
{
    static const struct {
        const char *key, *value;
        int code;
    } rows[] = {{"correlationID", "0123456789abcdef0123456789abcdef", BASE_OK},
                {"correlationID", "0123456789ABCDEF0123456789abcdef", BASE_EINVAL},
                {"correlationID", "", BASE_EINVAL},
                {"correlationID", NULL, BASE_EINVAL},
                {"object", "rc-fd12", BASE_OK},
                {"object", "../x", BASE_EINVAL},
                {"connector", "site-1", BASE_OK},
                {"connector", "Site", BASE_EINVAL},
                {"since", "2026-11-29T21:08:22Z", BASE_OK},
                {"since", "10m", BASE_EINVAL},
                {"until", "2026-11-29T21:08:22+02:00", BASE_OK},
                {"after", "18446744073709551615", BASE_OK},
                {"after", "18446744073709551616", BASE_EINVAL},
                {"after", "-1", BASE_EINVAL},
                {"limit", "1000", BASE_OK},
                {"limit", "1001", BASE_EINVAL},
                {"limit", "0", BASE_EINVAL},
                {"Limit", "1", BASE_EINVAL},
                {"", "1", BASE_EINVAL}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct audit_query q = {.after = 0};
        struct base_err err = {0};
        unsigned limit = 5;

        cr_assert_eq(agent_audit_page_param(&q, &limit, rows[i].key, rows[i].value, &err), rows[i].code,
                     "row %zu: %s", i, err.msg);
        if (rows[i].code)
            cr_assert_not_null(strstr(err.msg, rows[i].key), "row %zu", i);
    }
}
