/* SPDX-License-Identifier: Apache-2.0
 *
 * twin DIR: DIR is a folder that test/apiserver/up.sh, install.sh and nodes.sh DIR edge1 edge2 have filled.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "twin.h"

int main(int argc, char **argv)
{
    struct rig *r = calloc(1, sizeof *r);
    struct base_err err = {0};

    if (!r || argc != 2) {
        (void)fprintf(stderr, "usage: twin DIR\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    if (rig_open(r, argv[1], &err)) {
        (void)fprintf(stderr, "twin: %s\n", err.msg);
        rig_close(r);
        return 2;
    }
    if (!getenv("TWIN_ONLY") || strstr(getenv("TWIN_ONLY"), "table"))
        table_run(r);
    if (!getenv("TWIN_ONLY") || strstr(getenv("TWIN_ONLY"), "collections"))
        collections_run(r);
    (void)printf("twin: %d passed, %d failed\n", r->passed, r->failed);
    argc = r->failed || !r->passed;
    rig_close(r);
    free(r);
    return argc;
}
