/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/skew.h"

#include <stddef.h>

static bool number(const char **z, unsigned *ret)
{
    unsigned v = 0, digits = 0;

    for (; **z >= '0' && **z <= '9' && digits < 5; ++*z, digits++)
        v = v * 10 + (unsigned)(**z - '0');
    *ret = v;
    return digits > 0 && digits < 5;
}

bool cli_version_read(struct cli_version *ret, const char *text)
{
    unsigned patch;

    text += *text == 'v';
    return number(&text, &ret->major) && *text++ == '.' && number(&text, &ret->minor) && *text++ == '.' &&
           number(&text, &patch) && (*text == '\0' || *text == '-' || *text == '+');
}

enum cli_skew cli_skew(const char *a, const char *b)
{
    struct cli_version x, y;
    unsigned far;

    if (!cli_version_read(&x, a) || !cli_version_read(&y, b))
        return CLI_SKEW_UNKNOWN;
    far = x.minor > y.minor ? x.minor - y.minor : y.minor - x.minor;
    if (x.major != y.major || far > 1)
        return CLI_SKEW_TOO_FAR;
    return far ? CLI_SKEW_ALLOWED : CLI_SKEW_NONE;
}

const char *cli_skew_word(enum cli_skew s)
{
    static const char *const words[] = {"Unknown", "None", "Allowed", "TooFar"};

    return words[s];
}

bool cli_server_new_enough(const char *version)
{
    struct cli_version v;

    return cli_version_read(&v, version) && (v.major > 1 || (v.major == 1 && v.minor >= CLI_SERVER_MINOR));
}
