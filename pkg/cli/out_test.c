/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli_int.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(cli_out, no_control_character_reaches_the_terminal)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"plain text, \xc3\xa4 and \xe2\x86\x92", "plain text, \xc3\xa4 and \xe2\x86\x92"},
        {"\x1b[2J\x1b]0;gone\x07", "?[2J?]0;gone?"},
        {"two\nlines\r", "two?lines?"},
        {"\xc2\x9b"
         "31m", /* C1: CSI */
         "??"
         "31m"},
        {"\xc2\xa0", "\xc2\xa0"},
        {"\x7f", "?"},
        {"\xc2", "\xc2"},
        {"", ""},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        char text[64];

        (void)base_copy(text, sizeof text, rows[i].in);
        cli_tame(text);
        cr_assert_str_eq(text, rows[i].out, "row %zu", i);
    }
}

/* Everything that is shown goes through it. */
Test(cli_out, what_others_wrote_is_tamed_wherever_it_is_shown)
{
    static const char *const head[] = {"A"};
    struct cli *c = calloc(1, sizeof *c);
    struct cli_trail *t = calloc(1, sizeof *t);
    struct cli_table table;
    char *text = NULL;
    size_t n = 0;

    cr_assert(c && t);
    c->out = c->err = open_memstream(&text, &n);
    cr_assert_not_null(c->out);
    cli_table_init(&table, head, 1, 0);
    cli_cell(&table, cli_table_row(&table), 0, CLI_PLAIN, "%s", "cell\x1b[5m");
    cli_table_print(c, &table, "");
    cli_warn(c, "%s", "warn\x1b[5m");
    (void)cli_fail(c, 1, "%s", "fail\x1b[5m");
    cli_trail_init(t, 10);
    cli_trail_blind(t, "%s", "blind\x1b[5m");
    cr_assert_str_eq(t->blind[0], "blind?[5m");
    (void)fclose(c->out);
    cr_assert_not_null(strstr(text, "cell?[5m"));
    cr_assert_not_null(strstr(text, "warn?[5m"));
    cr_assert_not_null(strstr(text, "fail?[5m"));
    cr_assert_null(strchr(text, '\x1b'));
    cli_trail_fini(t);
    free(text);
    free(t);
    free(c);
}
