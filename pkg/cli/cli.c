/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli_int.h"

#include <stdlib.h>
#include <unistd.h>

#include "loop/loop.h"

static bool wants_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return !(no && no[0]) && !(term && strcmp(term, "dumb") == 0) && isatty(fileno(out));
}

static int run(struct cli *c)
{
    switch (c->a.command) {
    case CLI_STATUS:
        return cli_status(c);
    case CLI_VERIFY:
        return cli_verify(c);
    case CLI_SHOW:
        return cli_show(c);
    case CLI_EXPLAIN:
        return cli_explain(c);
    case CLI_PRUNE:
        return cli_prune(c);
    case CLI_INSTANCES:
    case CLI_CLAIMS:
        return cli_status(c);
    case CLI_SESSIONS:
        return cli_sessions(c);
    case CLI_DRAIN:
    case CLI_UNDRAIN:
        return cli_drain(c);
    case CLI_EVENTS:
        return cli_events(c);
    case CLI_COMPLETION:
        cli_completion(c->out);
        return CLI_EXIT_OK;
    case CLI_VERSION:
        return cli_versions(c);
    case CLI_CHECK:
        return cli_check(c);
    case CLI_DUMP:
        return cli_dump(c);
    case CLI_HELP:
        cli_help(c->out, &c->a);
        return CLI_EXIT_OK;
    }
    return CLI_EXIT_USAGE;
}

int cli_main(int argc, char **argv, FILE *out, FILE *err)
{
    struct cli *c = base_calloc(1, sizeof *c);
    struct base_err e = {0};
    int code;

    if (!c) {
        (void)fputs("error: no memory\n", err);
        return CLI_EXIT_BLIND;
    }
    c->out = out;
    c->err = err;
    c->now = loop_wall();
    c->colour = wants_colour(out);
    if (cli_args_parse(&c->a, argc, argv, c->now, &e)) {
        code = cli_fail(c, CLI_EXIT_USAGE, "%s", e.msg);
    } else if (c->a.help) {
        cli_help(c->out, &c->a);
        code = CLI_EXIT_OK;
    } else {
        code = run(c);
    }
    cli_api_close(c);
    if (fflush(out) != 0 || ferror(out)) {
        (void)fputs("error: the output could not be written\n", err);
        code = code == CLI_EXIT_OK ? CLI_EXIT_BLIND : code;
    }
    base_free(c);
    return code;
}
