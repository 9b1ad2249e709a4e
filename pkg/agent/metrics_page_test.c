/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics_page.h"

#include <criterion/criterion.h>

#include "base/mem.h"

Test(agent_metrics_page, accept_decides_the_format)
{
    static const struct {
        const char *accept;
        bool open;
    } rows[] = {
        {NULL, false},
        {"", false},
        {"*/*", false},
        {"text/plain", false},
        {"application/openmetrics-text", true},
        {"application/openmetrics-text;version=1.0.0", true},
        /* what Prometheus sends */
        {"application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
         "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         true},
        {"text/plain;version=0.0.4;q=0.5, application/openmetrics-text; version=1.0.0; q=0.4", false},
        {"application/openmetrics-text;q=0", false},
        {"application/openmetrics-text;q=0,text/plain", false},
        {"application/openmetrics-text-of-mine", false},
        {"APPLICATION/OPENMETRICS-TEXT", true},
        {"application/openmetrics-text;q=", false},
        {",,,;;;", false},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++)
        cr_assert_eq(agent_metrics_wants_open(rows[i].accept), rows[i].open, "row %zu", i);
}

Test(agent_metrics_page, counters_lose_total_in_their_family_only)
{
    struct base_buf out;

    base_buf_init(&out, 4096);
    cr_assert_eq(agent_metrics_open(&out, BASE_STR("# HELP a_total Things.\n# TYPE a_total counter\n"
                                                   "a_total{x=\"_total\"} 1\n# HELP b B, not a_total.\n"
                                                   "# TYPE b gauge\nb 2\n")),
                 BASE_OK);
    cr_assert_str_eq(out.data, "# HELP a Things.\n# TYPE a counter\na_total{x=\"_total\"} 1\n"
                               "# HELP b B, not a_total.\n# TYPE b gauge\nb 2\n# EOF\n");
    base_buf_fini(&out);
}

Test(agent_metrics_page, what_does_not_fit_is_an_error)
{
    struct base_buf out;

    base_buf_init(&out, 8);
    cr_assert_neq(agent_metrics_open(&out, BASE_STR("a 1\n")), BASE_OK);
    base_buf_fini(&out);
}

Test(agent_metrics_page, this_process_is_described)
{
    struct base_buf out;

    base_buf_init(&out, 4096);
    agent_metrics_process(&out);
    cr_assert_not_null(out.data);
    cr_assert_not_null(strstr(out.data, "\nprocess_resident_memory_bytes "));
    cr_assert_not_null(strstr(out.data, "\nprocess_start_time_seconds 1"));
    cr_assert_not_null(strstr(out.data, "\nprocess_open_fds "));
    base_buf_fini(&out);
}
