/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to a webhook that hangs, is slow, or comes back: when they are sent again.
 */
#include "agent/ask_int.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "http/testserver.h"
#include "loop/log.h"
#include "loop/loop.h"

#define TIMEOUT (2 * BASE_SEC)
#define QUESTIONS 4

/* The service: question n (first byte of its uid) is answered with "no" unless it is held. Its first `lose`
 * requests are never answered. */
struct hook {
    struct ts s;
    struct ts_id ca, server, client;
    atomic_int seen[QUESTIONS], lose[QUESTIONS];
    atomic_bool hold[QUESTIONS];
    char dir[32], file[3][64];
    int null;
    struct loop *l;
    struct loop_log *log;
    struct agent_ask *a;
    unsigned n[QUESTIONS];
    enum authority_verdict verdict[QUESTIONS];
    base_time t0[QUESTIONS], at[QUESTIONS];
};

static void script(struct ts_conn *c)
{
    struct hook *h = c->srv->arg;

    while (ts_request(c)) {
        char body[512], uid[37] = "";
        const char *at = strstr(c->req, "\"uid\":\"");
        unsigned q, nth;

        if (!at || sscanf(at + 7, "%36[0-9a-f-]", uid) != 1 || sscanf(uid, "%2x", &q) != 1 || q >= QUESTIONS)
            abort();
        nth = (unsigned)atomic_fetch_add(&h->seen[q], 1);
        while (atomic_load(&h->hold[q]) || (int)nth < atomic_load(&h->lose[q])) {
            ts_stall(c, 5);
            if (!ts_wait(c, 0) || atomic_load(&h->lose[q]) < 0)
                return;
        }
        (void)base_fmt(body, sizeof body,
                       "{\"apiVersion\":\"holdfast.masque.galactic.datumapis.com/v1\",\"kind\":"
                       "\"AuthorizationReview\",\"response\":{\"uid\":\"%s\",\"allowed\":false,\"reason\":"
                       "\"NotOnShift\"}}",
                       uid);
        ts_answer(c, "200 OK", "Content-Type: application/json\r\n", body);
    }
}

static void on_answer(void *arg, uint64_t ask, base_time t0, const struct authority_answer *a)
{
    struct hook *h = arg;

    h->n[ask]++;
    h->verdict[ask] = a->verdict;
    h->t0[ask] = t0;
    h->at[ask] = loop_clock();
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    cr_assert_not_null(f);
    cr_assert_geq(fputs(text, f), 0);
    cr_assert_eq(fclose(f), 0);
}

static struct hook *hook_new(void)
{
    struct hook *h = calloc(1, sizeof *h);
    struct base_err err = {0};
    char url[64];
    struct agent_ask_config cfg = {.url = url, .timeout = TIMEOUT, .max_tokens = 4};

    h->ca = ts_issue("test root", NULL, NULL);
    h->server = ts_issue("server", "IP:127.0.0.1", &h->ca);
    h->client = ts_issue("client", NULL, &h->ca);
    h->s.alpn = "http/1.1"; /* a connection for each request that waits */
    h->s.script = script;
    h->s.arg = h;
    ts_start(&h->s, &h->server, "127.0.0.1");
    (void)base_copy(h->dir, sizeof h->dir, "/tmp/holdfast-hook-XXXXXX");
    cr_assert_not_null(mkdtemp(h->dir));
    for (int i = 0; i < 3; i++)
        (void)base_fmt(h->file[i], sizeof h->file[i], "%s/%d.pem", h->dir, i);
    put(h->file[0], h->ca.cert_pem);
    put(h->file[1], h->client.cert_pem);
    put(h->file[2], h->client.key_pem);
    (void)base_fmt(url, sizeof url, "https://127.0.0.1:%d/", h->s.port);
    cfg.ca_file = h->file[0];
    cfg.cert_file = h->file[1];
    cfg.key_file = h->file[2];
    h->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    cfg.log = h->log = loop_log_new(h->null, LOOP_DEBUG, true, "test");
    cr_assert_eq(loop_new(&h->l, &err), BASE_OK);
    cr_assert_eq(agent_ask_new(&h->a, h->l, &cfg, on_answer, h, &err), BASE_OK, "%s", err.msg);
    return h;
}

static void hook_free(struct hook *h)
{
    agent_ask_free(h->a);
    loop_free(h->l);
    ts_stop(&h->s);
    for (int i = 0; i < 3; i++)
        (void)unlink(h->file[i]);
    (void)rmdir(h->dir);
    loop_log_free(h->log);
    (void)close(h->null);
    ts_id_free(&h->ca);
    ts_id_free(&h->server);
    ts_id_free(&h->client);
    free(h);
}

static void ask(struct hook *h, unsigned q)
{
    struct authority_ask a = {.question = AUTHORITY_ASK_REFRESH, .uid.b[0] = (uint8_t)q};

    agent_ask_start(h->a, q, &a);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Until `what` has become non-zero (NULL: never), at most so long. */
static void run(struct hook *h, base_time by, const unsigned *answered, atomic_int *seen, int n)
{
    base_time end = base_time_add(loop_clock(), by);
    struct loop_timer *t = NULL;

    cr_assert_eq(loop_timer_new(&t, h->l, nothing, NULL, NULL), BASE_OK);
    while (loop_clock() < end && !(answered && *answered) && !(seen && atomic_load(seen) >= n)) {
        loop_timer_set(t, base_time_add(loop_clock(), 5 * BASE_MS));
        loop_step(h->l, true);
    }
    loop_timer_free(t);
}

Test(agent_ask_hook, a_question_that_an_outage_swallowed_is_sent_again)
{
    struct hook *h = hook_new();
    base_time began = loop_clock();

    atomic_store(&h->lose[1], 1);
    ask(h, 1);
    run(h, 2 * TIMEOUT, &h->n[1], NULL, 0);
    cr_assert_eq(h->n[1], 1);
    cr_assert_eq(h->verdict[1], AUTHORITY_DENIED, "an answer, not a time-out");
    cr_expect_eq(atomic_load(&h->seen[1]), 2);
    cr_expect_geq(h->t0[1], began + TIMEOUT / 4, "what was answered is the second one: it proves no more");
    cr_expect_leq(h->t0[1], h->at[1]);
    run(h, TIMEOUT, NULL, NULL, 0);
    cr_expect_eq(h->n[1], 1, "once");
    cr_expect_eq(atomic_load(&h->seen[1]), 2);
    hook_free(h);
}

Test(agent_ask_hook, a_service_that_hangs_is_asked_four_times_at_most)
{
    struct hook *h = hook_new();
    base_time began = loop_clock();

    atomic_store(&h->lose[1], 100);
    ask(h, 1);
    run(h, 3 * TIMEOUT, &h->n[1], NULL, 0);
    cr_assert_eq(h->n[1], 1);
    cr_expect_eq(h->verdict[1], AUTHORITY_UNAVAILABLE);
    cr_expect_geq(h->at[1], began + TIMEOUT);
    cr_expect(atomic_load(&h->seen[1]) >= 2 && atomic_load(&h->seen[1]) <= 4, "%d", atomic_load(&h->seen[1]));
    atomic_store(&h->lose[1], -1);
    hook_free(h);
}

Test(agent_ask_hook, a_service_that_is_only_slow_is_not_asked_twice)
{
    struct hook *h = hook_new();

    atomic_store(&h->hold[1], true);
    atomic_store(&h->hold[2], true);
    ask(h, 1);
    run(h, TIMEOUT, NULL, &h->seen[1], 1);
    ask(h, 2);
    run(h, TIMEOUT, NULL, &h->seen[2], 1);
    atomic_store(&h->hold[1], false); /* it works, one after the other */
    run(h, TIMEOUT / 2, &h->n[1], NULL, 0);
    cr_assert_eq(h->n[1], 1);
    run(h, TIMEOUT * 5 / 8, NULL, NULL, 0);
    cr_expect_eq(atomic_load(&h->seen[2]), 1, "%d", atomic_load(&h->seen[2]));
    atomic_store(&h->hold[2], false);
    run(h, TIMEOUT, &h->n[2], NULL, 0);
    cr_expect_eq(h->verdict[2], AUTHORITY_DENIED);
    hook_free(h);
}

Test(agent_ask_hook, one_that_a_later_one_overtook_is_sent_again)
{
    struct hook *h = hook_new();

    atomic_store(&h->lose[1], 1);
    ask(h, 1);
    run(h, TIMEOUT, NULL, &h->seen[1], 1);
    ask(h, 2);
    run(h, TIMEOUT / 2, &h->n[2], NULL, 0);
    cr_assert_eq(h->n[2], 1);
    cr_assert_eq(h->n[1], 0);
    run(h, 2 * TIMEOUT, &h->n[1], NULL, 0);
    cr_expect_eq(h->verdict[1], AUTHORITY_DENIED, "an answer, not a time-out");
    cr_expect_eq(atomic_load(&h->seen[1]), 2);
    hook_free(h);
}
