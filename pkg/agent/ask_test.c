/* SPDX-License-Identifier: Apache-2.0
 *
 * The asker's parts that need no network: tokens by flow, files that are read again.
 */
#include "agent/ask_int.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/log.h"
#include "loop/loop.h"

static struct base_secret *token(unsigned i)
{
    char z[32];
    base_fmt(z, sizeof z, "token-%u", i);
    return base_secret_new(base_str_of(z));
}

Test(agent_ask, tokens_live_as_long_as_their_flow)
{
    struct ask_tokens *t = agent_ask_tokens_new(100);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 1; i <= 100; i++)
            agent_ask_tokens_put(t, i * 64 + round, token(i));
        cr_assert_eq(agent_ask_tokens_count(t), 100);
        agent_ask_tokens_put(t, 7, token(7)); /* one too many: overwritten, not kept */
        cr_assert_null(agent_ask_tokens_get(t, 7));
        agent_ask_tokens_put(t, 64 + round, token(99)); /* there already: the first one stays */
        cr_assert(base_str_eqz(base_secret_text(agent_ask_tokens_get(t, 64 + round)), "token-1"));
        for (unsigned i = 100; i >= 1; i--) {
            char z[32];
            base_fmt(z, sizeof z, "token-%u", i);
            cr_assert(base_str_eqz(base_secret_text(agent_ask_tokens_get(t, i * 64 + round)), z));
            agent_ask_tokens_drop(t, i * 64 + round);
            agent_ask_tokens_drop(t, i * 64 + round);
            cr_assert_null(agent_ask_tokens_get(t, i * 64 + round));
        }
        cr_assert_eq(agent_ask_tokens_count(t), 0);
    }
    agent_ask_tokens_put(t, 5, token(5));
    agent_ask_tokens_free(t); /* what is left is overwritten and freed */
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    cr_assert_geq(fputs(text, f), 0);
    cr_assert_eq(fclose(f), 0);
}

Test(agent_ask, files_are_read_again_when_they_change)
{
    char dir[] = "/tmp/holdfast-ask-XXXXXX", path[64], other[64];
    struct base_err err = {0};
    bool changed;
    cr_assert_not_null(mkdtemp(dir));
    base_fmt(path, sizeof path, "%s/key.pem", dir);
    base_fmt(other, sizeof other, "%s/new.pem", dir);
    struct ask_file f = {.what = "authority.webhookKeyFile"};
    base_copy(f.path, sizeof f.path, path);
    cr_assert_eq(agent_ask_file_read(&f, &changed, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "authority.webhookKeyFile") && strstr(err.msg, path), "%s", err.msg);
    put(path, "no pem");
    cr_assert_eq(agent_ask_file_read(&f, &changed, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "PEM") && !strstr(err.msg, "no pem"), "%s", err.msg);
    put(path, "");
    cr_assert_eq(agent_ask_file_read(&f, &changed, &err), BASE_EINVAL);
    put(path, "-----BEGIN A-----\n");
    cr_assert_eq(agent_ask_file_read(&f, &changed, &err), BASE_OK, "%s", err.msg);
    cr_assert(changed);
    cr_assert_eq(agent_ask_file_read(&f, &changed, &err), BASE_OK);
    cr_assert(!changed);
    put(other, "-----BEGIN B-----\n"); /* replaced as Kubernetes does it: by rename */
    cr_assert_eq(rename(other, path), 0);
    cr_assert_eq(agent_ask_file_read(&f, &changed, &err), BASE_OK);
    cr_assert(changed && memcmp(base_secret_text(f.text).ptr, "-----BEGIN B", 12) == 0);
    put(path, "broken"); /* the last good one stays */
    cr_assert_eq(agent_ask_file_read(&f, &changed, &err), BASE_EINVAL);
    cr_assert(!changed && memcmp(base_secret_text(f.text).ptr, "-----BEGIN B", 12) == 0);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_eq(agent_ask_file_read(&f, &changed, &err), BASE_EINVAL);
    cr_assert_eq(rmdir(path), 0);
    cr_assert_eq(rmdir(dir), 0);
    agent_ask_file_fini(&f);
}

struct seen {
    unsigned n;
    uint64_t ask;
    enum authority_verdict verdict;
};

static void on_answer(void *arg, uint64_t ask, base_time t0, const struct authority_answer *a)
{
    struct seen *s = arg;
    cr_assert_gt(t0, 0);
    s->n++;
    s->ask = ask;
    s->verdict = a->verdict;
}

Test(agent_ask, what_cannot_be_asked_is_unavailable_at_once)
{
    struct loop *l = NULL;
    struct agent_ask *a = NULL;
    struct base_err err = {0};
    struct seen s = {0};
    struct agent_ask_stats st;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct loop_log *log = loop_log_new(null, LOOP_DEBUG, true, "test");
    cr_assert_eq(loop_new(&l, &err), BASE_OK);
    struct agent_ask_config cfg = {.url = "", .timeout = BASE_SEC, .max_tokens = 4, .log = log};
    cr_assert_eq(agent_ask_new(&a, l, &cfg, on_answer, &s, &err), BASE_OK, "%s", err.msg);
    for (enum authority_question q = AUTHORITY_ASK_IDENTITY; q <= AUTHORITY_ASK_REFRESH; q++) {
        struct authority_ask ask = {.question = q};
        agent_ask_start(a, 40 + q, &ask);
        cr_assert_eq(s.ask, 40 + q);
        cr_assert_eq(s.verdict, AUTHORITY_UNAVAILABLE);
    }
    unsigned n = s.n;
    struct authority_ask retire = {.question = AUTHORITY_ASK_RETIRE};
    agent_ask_start(a, 0, &retire); /* nobody waits */
    cr_assert_eq(s.n, n);
    agent_ask_stats(a, &st);
    cr_assert_eq(st.n[0][AGENT_ASK_UNAVAILABLE], 1);
    cr_assert_eq(st.n[1][AGENT_ASK_UNAVAILABLE], 5);
    cr_assert_eq(st.waiting, 0);
    agent_ask_keep(a, 1, NULL);
    agent_ask_keep(a, 1, token(1));
    cr_assert_eq(agent_ask_kept(a), 1);
    agent_ask_forget(a, 1);
    agent_ask_forget(a, 1);
    cr_assert_eq(agent_ask_kept(a), 0);
    agent_ask_free(a);
    /* a webhook whose files are not there stops the start */
    cfg.url = "https://authority.test/";
    cfg.ca_file = cfg.cert_file = cfg.key_file = "/nowhere/x.pem";
    cr_assert_eq(agent_ask_new(&a, l, &cfg, on_answer, &s, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "authority.webhookCAFile") && strstr(err.msg, "/nowhere/x.pem"), "%s", err.msg);
    loop_free(l);
    loop_log_free(log);
    (void)close(null);
}
