/* SPDX-License-Identifier: Apache-2.0
 *
 * What freshness costs: one proof per interval for a collection of 1, 100, 1000 or 2500 rows, counted in
 * requests, while nothing happens and through what an API server can do: watches that break off, 410,
 * restarts, an etcd that stalls, and versions that go back after a restore. Beside fake.h there is a small
 * server here: it answers whatever is open.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "kubestore/fake.h"
#include "kubestore/kubestore_int.h"

#define LIST "?limit=500"
#define STEP1 "?limit=1"
#define MAIN "timeoutSeconds=2"
#define PROBE "timeoutSeconds=3&"
#define INTERVAL (10 * BASE_SEC)

enum mode {
    GOOD,
    DOWN,    /* connections are refused, those that were open are closed */
    STALLED, /* no quorum read is answered; watches open and are silent */
};
struct cost {
    struct kubestore *s;
    struct kubestore_watch *w;
    enum mode mode;
    unsigned rows, version;
    base_time main_opened; /* when the open one was sent; 0 = none */
    unsigned proved, not_proved, listed, asked;
    base_time proved_at, next_proof;
};
static const unsigned sizes[] = {1, 100, 1000, 2500};

static void on_note(void *arg, const struct kubestore_note *n)
{
    struct cost *c = arg;

    c->proved += n->what == KUBESTORE_PROVED;
    c->not_proved += n->what == KUBESTORE_NOT_PROVED;
    c->listed += n->what == KUBESTORE_LISTED;
    if (n->what == KUBESTORE_PROVED)
        c->proved_at = fake_now();
}

static void answer_page(struct cost *c, struct kube_call *call)
{
    static char page[512 * 1024];
    const char *at = strstr(call->path, "continue=");
    unsigned from = at ? (unsigned)strtoul(at + 9, NULL, 10) : 0,
             to = from + 500 < c->rows ? from + 500 : c->rows;
    struct base_buf b;

    base_buf_init(&b, sizeof page);
    (void)base_buf_addf(&b, "{\"metadata\":{\"resourceVersion\":\"%u\"", c->version);
    if (to < c->rows)
        (void)base_buf_addf(&b, ",\"continue\":\"%u\"", to);
    (void)base_buf_addf(&b, "},\"items\":[");
    for (unsigned i = from; i < to; i++)
        (void)base_buf_addf(
            &b,
            "%s{\"apiVersion\":\"masque.galactic.datumapis.com/v1alpha1\",\"kind\":\"ConnectorBinding\","
            "\"metadata\":{\"name\":\"t1.c%u\",\"uid\":\"00000000-0000-4000-8000-000000000001\","
            "\"resourceVersion\":\"%u\"},\"spec\":{\"tenant\":\"t1\",\"connector\":\"c%u\",\"vpc\":\"vpc-a\","
            "\"serviceName\":\"s1\",\"identities\":[{\"user\":\"u\"}]}}",
            i > from ? "," : "", i, 10 + i, i);
    (void)base_buf_addf(&b, "]}");
    cr_assert_lt(b.len, sizeof page);
    memcpy(page, b.data, b.len);
    page[b.len] = '\0';
    base_buf_fini(&b);
    fake_answer(call, 200, "", page);
}

static void lose_main(struct cost *c, int http)
{
    c->main_opened = 0;
    if (http)
        fake_answer(fake_call(MAIN), http, "Expired", "{}");
    else
        fake_fail(fake_call(MAIN), BASE_ECLOSED, true);
}

static void open_main(struct cost *c)
{
    if (fake_calls(MAIN) && fake_call(MAIN)->sent_at != c->main_opened) {
        c->main_opened = fake_call(MAIN)->sent_at;
        (void)fake_open(fake_call(MAIN));
    }
}

static void serve(struct cost *c)
{
    static const char *const all[] = {STEP1, LIST, PROBE, MAIN};
    char text[256];

    if (c->mode == DOWN) {
        for (size_t i = 0; i < BASE_LEN(all); i++)
            while (fake_calls(all[i]))
                fake_fail(fake_call(all[i]), BASE_EIO, false);
        c->main_opened = 0;
        return;
    }
    open_main(c);
    if (c->mode == STALLED) {
        for (size_t i = 0; i < 2; i++)
            while (fake_calls(all[i]) &&
                   fake_now() - fake_call(all[i])->sent_at >= fake_call(all[i])->timeout)
                fake_fail(fake_call(all[i]), BASE_ETIMEDOUT, true);
        while (fake_calls(PROBE) && fake_now() - fake_call(PROBE)->sent_at >= 3 * BASE_SEC)
            fake_answer(fake_call(PROBE), 200, "", "");
        return;
    }
    while (fake_calls(LIST))
        answer_page(c, fake_call(LIST));
    while (fake_calls(STEP1)) { /* all but the lists' "limit=500" is gone */
        (void)base_fmt(text, sizeof text, "{\"metadata\":{\"resourceVersion\":\"%u\"},\"items\":[]}",
                       c->version);
        fake_answer(fake_call(STEP1), 200, "", text);
    }
    while (fake_calls(PROBE)) {
        (void)fake_open(fake_call(PROBE));
        (void)fake_line(fake_call(PROBE),
                        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConnectorBinding\",\"metadata\":{"
                        "\"resourceVersion\":\"%u\"},\"spec\":{}}}",
                        c->version);
        if (fake_calls(PROBE))
            fake_answer(fake_call(PROBE), 200, "", "");
    }
    open_main(c);
}

/* Time passes; a proof is asked for at each interval. Other collections move the version on. */
static void pass(struct cost *c, base_time by)
{
    for (base_time end = fake_now() + by; fake_now() < end;) {
        if (fake_now() >= c->next_proof) {
            c->next_proof = fake_now() + INTERVAL;
            c->version += 7;
            c->asked++;
            kubestore_watch_prove(c->w, c->asked, INTERVAL);
        }
        fake_advance(50);
        serve(c);
    }
}

static void begin(struct cost *c, unsigned rows)
{
    struct store_selector sel = {.tenant = "t1"};
    struct base_err err = {0};

    *c = (struct cost){.rows = rows, .version = 10000};
    fake_reset();
    c->next_proof = BASE_TIME_NEVER;
    cr_assert_eq(kubestore_new(&c->s, NULL, NULL, "hf", NULL, &err), BASE_OK);
    cr_assert_eq(kubestore_watch_new(&c->w, c->s, CONTRACT_BINDING, &sel, on_note, c, &err), BASE_OK);
    pass(c, BASE_SEC);
    cr_assert_eq(c->listed, 1);
    cr_assert_eq(fake_made(), (rows + 499) / 500 + 1, "%u rows: the list's pages, and the watch", rows);
    c->next_proof = fake_now();
}

static void finish(struct cost *c)
{
    kubestore_watch_free(c->w);
    kubestore_free(c->s);
    cr_expect(fake_clean());
}

Test(kubestore_cost, a_proof_is_a_list_of_one_row_and_one_watch)
{
    for (size_t i = 0; i < BASE_LEN(sizes); i++) {
        struct cost c;
        unsigned before;

        begin(&c, sizes[i]);
        before = fake_made();
        pass(&c, 10 * INTERVAL);
        cr_expect_eq(fake_made() - before, 20, "%u rows: %u requests for ten proofs", sizes[i],
                     fake_made() - before);
        cr_expect_eq(c.proved, 10);
        finish(&c);
    }
}

Test(kubestore_cost, a_gap_in_the_watch_costs_its_next_opening)
{
    for (size_t i = 0; i < BASE_LEN(sizes); i++) {
        struct cost c;
        unsigned before;

        begin(&c, sizes[i]);
        before = fake_made();
        for (int k = 0; k < 5; k++) {
            lose_main(&c, 0);
            pass(&c, 2 * INTERVAL);
        }
        cr_expect_eq(fake_made() - before, 20 + 5, "%u rows: %u", sizes[i], fake_made() - before);
        cr_expect_eq(c.proved, 10);
        cr_expect_eq(c.listed, 1, "nothing is listed again");
        finish(&c);
    }
}

Test(kubestore_cost, a_version_that_expired_costs_one_list)
{
    for (size_t i = 0; i < BASE_LEN(sizes); i++) {
        struct cost c;
        unsigned before, pages = (sizes[i] + 499) / 500;

        begin(&c, sizes[i]);
        pass(&c, INTERVAL / 2);
        before = fake_made();
        lose_main(&c, 410);
        pass(&c, 10 * INTERVAL);
        cr_expect_eq(fake_made() - before, 20 + pages + 1, "%u rows: %u", sizes[i], fake_made() - before);
        cr_expect_eq(c.not_proved, 0);
        cr_expect_eq(c.listed, 2);
        finish(&c);
    }
}

Test(kubestore_cost, a_server_that_restarts_is_not_asked_more_for_more_rows)
{
    unsigned first = 0;

    for (size_t i = 0; i < BASE_LEN(sizes); i++) {
        struct cost c;
        unsigned before, during;

        begin(&c, sizes[i]);
        pass(&c, INTERVAL / 2);
        before = fake_made();
        c.mode = DOWN;
        pass(&c, 6 * INTERVAL);
        during = fake_made() - before;
        first = first ? first : during;
        /* each proof: step 1 twice, a list; beside it the watch, after a back-off of up to 10 s */
        cr_expect(during <= 6 * 3 + 16, "%u rows: %u requests in 60 s", sizes[i], during);
        cr_expect(during <= first + 2 && first <= during + 2, "%u rows: %u, one row: %u", sizes[i], during,
                  first);
        c.mode = GOOD;
        c.proved = 0;
        pass(&c, 2 * INTERVAL); /* it comes to rest */
        cr_expect_geq(c.proved, 2, "%u rows", sizes[i]);
        before = fake_made();
        pass(&c, 5 * INTERVAL);
        cr_expect_eq(fake_made() - before, 10, "%u rows: %u afterwards", sizes[i], fake_made() - before);
        finish(&c);
    }
}

Test(kubestore_cost, a_stalled_etcd_proves_nothing_and_is_not_hammered)
{
    for (size_t i = 0; i < BASE_LEN(sizes); i++) {
        struct cost c;
        unsigned before;

        begin(&c, sizes[i]);
        pass(&c, INTERVAL / 2);
        before = fake_made();
        c.proved = 0;
        c.mode = STALLED;
        pass(&c, 6 * INTERVAL);
        cr_expect_eq(c.proved, 0, "%u rows", sizes[i]);
        cr_expect_geq(c.not_proved, 5, "%u rows: %u", sizes[i], c.not_proved);
        cr_expect(fake_made() - before <= 6 * 4, "%u rows: %u requests in 60 s", sizes[i],
                  fake_made() - before);
        c.mode = GOOD;
        pass(&c, 2 * INTERVAL);
        cr_expect_geq(c.proved, 1, "%u rows: it goes on", sizes[i]);
        before = fake_made();
        pass(&c, 5 * INTERVAL);
        cr_expect_eq(fake_made() - before, 10, "%u rows: %u afterwards", sizes[i], fake_made() - before);
        finish(&c);
    }
}

Test(kubestore_cost, versions_that_went_back_cost_one_list)
{
    for (size_t i = 0; i < BASE_LEN(sizes); i++) {
        struct cost c;
        unsigned before, pages = (sizes[i] + 499) / 500;

        begin(&c, sizes[i]);
        pass(&c, INTERVAL / 2);
        before = fake_made();
        c.proved = 0;
        c.version = 500;
        pass(&c, 6 * INTERVAL);
        cr_expect_eq(c.not_proved, 1, "%u rows: R tells", sizes[i]);
        cr_expect_eq(c.proved, 5, "%u rows: %u", sizes[i], c.proved);
        cr_expect_eq(c.listed, 2);
        cr_expect_eq(fake_made() - before, 1 + pages + 1 + 5 * 2, "%u rows: %u", sizes[i],
                     fake_made() - before);
        finish(&c);
    }
}
