/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/journal.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/loop.h"

struct seen {
    unsigned n, durable;
    uint64_t last;
};

static void on_done(void *arg, uint64_t ask, bool durable)
{
    struct seen *s = arg;

    s->n++;
    s->durable += durable;
    s->last = ask;
}

static const char *temp_dir(char *dst)
{
    (void)base_fmt(dst, 64, "/tmp/holdfast-journal-XXXXXX");
    cr_assert_not_null(mkdtemp(dst));
    return dst;
}

static void read_file(const char *dir, char *dst, size_t size)
{
    char path[128];
    FILE *f;
    size_t n;

    (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
    f = fopen(path, "re");
    cr_assert_not_null(f);
    n = fread(dst, 1, size - 1, f);
    dst[n] = '\0';
    (void)fclose(f);
}

static void wait_for(struct loop *l, const struct seen *s, unsigned n)
{
    base_time until = loop_clock() + 10 * BASE_SEC;

    while (s->n < n && loop_clock() < until)
        loop_step(l, true);
    cr_assert_eq(s->n, n);
}

Test(journal, lines_are_durable_in_order_and_many_share_a_sync)
{
    char dir[64], text[32768], want[64];
    struct seen seen = {0};
    struct journal_stats stats;
    struct journal *j;
    struct loop *l;

    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &(struct journal_config){.dir = temp_dir(dir)}, on_done, &seen, NULL),
                 BASE_OK);
    for (unsigned i = 1; i <= 1000; i++) {
        char line[32];

        (void)base_fmt(line, sizeof line, "line %u\n", i);
        cr_assert_eq(journal_append(j, base_str_of(line), i), BASE_OK);
    }
    wait_for(l, &seen, 1000);
    cr_assert_eq(seen.durable, 1000);
    cr_assert_eq(seen.last, 1000);
    journal_stats(j, &stats);
    cr_assert_lt(stats.syncs, 1000, "no group commit: %llu syncs", (unsigned long long)stats.syncs);
    cr_assert(stats.healthy);
    read_file(dir, text, sizeof text);
    cr_assert(base_str_starts(base_str_of(text), "line 1\nline 2\n"));
    (void)base_fmt(want, sizeof want, "line 999\nline 1000\n");
    cr_assert_not_null(strstr(text, want));
    journal_free(j);
    loop_free(l);
}

Test(journal, a_torn_last_line_is_closed_when_the_file_is_opened_again)
{
    char dir[64], path[128], text[256];
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;
    int fd;

    temp_dir(dir);
    (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert_eq(write(fd, "whole\n{\"ts\":\"20", 15), 15);
    (void)close(fd);
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &(struct journal_config){.dir = dir}, on_done, &seen, NULL), BASE_OK);
    cr_assert_eq(journal_append(j, BASE_STR("next\n"), 1), BASE_OK);
    wait_for(l, &seen, 1);
    read_file(dir, text, sizeof text);
    cr_assert_str_eq(text, "whole\n{\"ts\":\"20\nnext\n");
    journal_free(j);
    loop_free(l);
}

/* The file-size limit stands in for a full disk: write(2) fails in the middle of a line. */
Test(journal, a_write_that_fails_is_refused_and_leaves_no_part_of_a_line)
{
    struct rlimit old, tight = {.rlim_cur = 10, .rlim_max = RLIM_INFINITY};
    char dir[64], text[256];
    struct seen seen = {0};
    struct journal_stats stats;
    struct journal *j;
    struct loop *l;

    (void)signal(SIGXFSZ, SIG_IGN);
    (void)getrlimit(RLIMIT_FSIZE, &old);
    tight.rlim_max = old.rlim_max;
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &(struct journal_config){.dir = temp_dir(dir)}, on_done, &seen, NULL),
                 BASE_OK);
    cr_assert_eq(journal_append(j, BASE_STR("first\n"), 1), BASE_OK);
    wait_for(l, &seen, 1);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    cr_assert_eq(journal_append(j, BASE_STR("second line that does not fit\n"), 2), BASE_OK);
    wait_for(l, &seen, 2);
    cr_assert_eq(seen.durable, 1);
    journal_stats(j, &stats);
    cr_assert_not(stats.healthy);
    cr_assert_not_null(strstr(stats.reason, "EFBIG"));
    read_file(dir, text, sizeof text);
    cr_assert_str_eq(text, "first\n");
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    cr_assert_eq(journal_append(j, BASE_STR("third\n"), 3), BASE_OK);
    wait_for(l, &seen, 3);
    cr_assert_eq(seen.durable, 2);
    journal_stats(j, &stats);
    cr_assert(stats.healthy);
    read_file(dir, text, sizeof text);
    cr_assert_str_eq(text, "first\nthird\n");
    journal_free(j);
    loop_free(l);
}

Test(journal, the_queue_is_bounded_and_a_line_must_be_whole)
{
    char dir[64];
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;
    unsigned ok = 0;
    int rc = BASE_OK;

    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &(struct journal_config){.dir = temp_dir(dir), .max_lines = 16}, on_done,
                             &seen, NULL),
                 BASE_OK);
    cr_assert_eq(journal_append(j, BASE_STR("no newline"), 1), BASE_EINVAL);
    cr_assert_eq(journal_append(j, BASE_STR(""), 1), BASE_EINVAL);
    for (uint64_t i = 1; i <= 17 && rc == BASE_OK; i++) {
        rc = journal_append(j, BASE_STR("x\n"), i);
        ok += rc == BASE_OK;
    }
    cr_assert_eq(rc, BASE_EFULL); /* nobody turned the loop: 16 are waiting */
    cr_assert_eq(ok, 16);
    wait_for(l, &seen, 16);
    journal_free(j);
    loop_free(l);
}

Test(journal, a_directory_that_is_missing_is_named)
{
    struct base_err err = {0};
    struct journal *j = NULL;
    struct loop *l;

    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(
        journal_new(&j, l, &(struct journal_config){.dir = "/nonexistent/audit"}, on_done, NULL, &err),
        BASE_EIO);
    cr_assert_not_null(strstr(err.msg, "/nonexistent/audit/audit.jsonl"));
    cr_assert_not_null(strstr(err.msg, "ENOENT"));
    loop_free(l);
}
