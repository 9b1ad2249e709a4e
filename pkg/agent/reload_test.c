/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/reload.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/config.h"
#include "base/mem.h"
#include "loop/loop.h"

static void note(void *arg, const struct agent_option *o, const char *from, const char *to)
{
    (void)base_buf_addf(arg, "%s %s>%s;", o->path, from, to);
}

Test(agent_reload, each_difference_is_named_with_both_values)
{
    struct agent_config a, b;
    struct base_err err = {0};
    struct base_buf out;

    base_buf_init(&out, 4096);
    cr_assert_eq(agent_config_parse(&a, BASE_STR("log: {level: warn}\n"), "a", NULL, &err), BASE_OK);
    cr_assert_eq(agent_config_parse(&b,
                                    BASE_STR("provider: other\nauthority: {policy: kubernetes}\n"
                                             "limits: {queuePackets: 99}\n"),
                                    "b", NULL, &err),
                 BASE_OK);
    agent_config_diff(&a, &a, note, &out);
    cr_assert_eq(out.len, 0);
    agent_config_diff(&a, &b, note, &out);
    cr_assert_str_eq(out.data, "provider masque>other;authority.policy deny>kubernetes;"
                               "limits.queuePackets 512>99;log.level warn>info;");
    base_buf_fini(&out);
}

static void count(void *arg)
{
    ++*(int *)arg;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    cr_assert_not_null(f);
    cr_assert(fputs(text, f) >= 0);
    cr_assert_eq(fclose(f), 0);
}

/* As a kubelet does: the name stays, a link leads to another file. */
Test(agent_reload, a_replaced_file_is_noticed_once)
{
    char dir[] = "/tmp/holdfast-reload.XXXXXX", path[64], one[64], two[64];
    struct agent_files *f = NULL;
    struct base_err err = {0};
    struct loop *l = NULL;
    const char *paths[1] = {path};
    int n = 0;

    cr_assert_not_null(mkdtemp(dir));
    (void)base_fmt(path, sizeof path, "%s/tls.crt", dir);
    (void)base_fmt(one, sizeof one, "%s/one", dir);
    (void)base_fmt(two, sizeof two, "%s/two", dir);
    put(one, "1");
    put(two, "2");
    cr_assert_eq(symlink(one, path), 0);
    cr_assert_eq(loop_new(&l, &err), BASE_OK);
    cr_assert_eq(agent_files_new(&f, l, paths, 1, count, &n, &err), BASE_OK);
    agent_files_look(f);
    cr_assert_eq(n, 0);
    cr_assert_eq(unlink(path), 0);
    agent_files_look(f);
    cr_assert_eq(n, 0, "a file that is gone is no news");
    cr_assert_eq(symlink(two, path), 0);
    agent_files_look(f);
    agent_files_look(f);
    cr_assert_eq(n, 1);
    agent_files_free(f);
    loop_free(l);
    (void)unlink(path);
    (void)unlink(one);
    (void)unlink(two);
    (void)rmdir(dir);
}

Test(agent_reload, no_certificate_has_no_end)
{
    cr_assert_eq(agent_tls_expiry("/nonexistent"), 0);
    cr_assert_eq(agent_tls_expiry("/dev/null"), 0);
}
