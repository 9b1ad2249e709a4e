/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/skew.h - which versions work together: OPERATIONS.md, "Versions that work together".
 *
 * Pure. Parts of one cluster may be one minor version apart, of the same major one; patches do not count.
 */
#ifndef CLI_SKEW_H
#define CLI_SKEW_H

#include <stdbool.h>

struct cli_version {
    unsigned major, minor;
};
/* "0.1.0", "v1.35.2+x": true when it begins with two numbers of at most 9,999 and a patch. */
bool cli_version_read(struct cli_version *ret, const char *text);

enum cli_skew { CLI_SKEW_UNKNOWN = 0, CLI_SKEW_NONE, CLI_SKEW_ALLOWED, CLI_SKEW_TOO_FAR };
/* Between two versions of Holdfast; UNKNOWN when one cannot be read. */
enum cli_skew cli_skew(const char *a, const char *b);
const char *cli_skew_word(enum cli_skew s);
/* Kubernetes' own, CLI_SERVER_MINOR of major 1 or newer. */
#define CLI_SERVER_MINOR 35
bool cli_server_new_enough(const char *version);

#endif
