/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/skew.h"

#include <criterion/criterion.h>

Test(cli_skew, one_minor_version_apart_and_no_more)
{
    static const struct {
        const char *a, *b;
        enum cli_skew want;
    } rows[] = {
        {"0.1.0", "0.1.0", CLI_SKEW_NONE},        {"0.1.0", "0.1.9", CLI_SKEW_NONE},
        {"0.1.0", "0.2.0", CLI_SKEW_ALLOWED},     {"0.2.0-rc.1", "0.1.0", CLI_SKEW_ALLOWED},
        {"0.1.0", "0.3.0", CLI_SKEW_TOO_FAR},     {"0.3.0", "0.1.0", CLI_SKEW_TOO_FAR},
        {"0.9.0", "1.0.0", CLI_SKEW_TOO_FAR},     {"1.2.0", "2.2.0", CLI_SKEW_TOO_FAR},
        {"0.1", "0.1.0", CLI_SKEW_UNKNOWN},       {"", "0.1.0", CLI_SKEW_UNKNOWN},
        {"0.1.0", "0.1.0x", CLI_SKEW_UNKNOWN},    {"0.1.0", "latest", CLI_SKEW_UNKNOWN},
        {"0.1.0", "0.99999.0", CLI_SKEW_UNKNOWN}, {"v0.1.0", "0.1.0+abc", CLI_SKEW_NONE},
    };

    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_eq(cli_skew(rows[i].a, rows[i].b), rows[i].want, "%s and %s: %s", rows[i].a, rows[i].b,
                     cli_skew_word(cli_skew(rows[i].a, rows[i].b)));
}

Test(cli_skew, the_api_servers_floor)
{
    cr_expect(cli_server_new_enough("v1.35.0"));
    cr_expect(cli_server_new_enough("v1.36.1+k3s1"));
    cr_expect(cli_server_new_enough("v2.0.0"));
    cr_expect_not(cli_server_new_enough("v1.34.9"));
    cr_expect_not(cli_server_new_enough("v0.40.0"));
    cr_expect_not(cli_server_new_enough("1.35"));
}
