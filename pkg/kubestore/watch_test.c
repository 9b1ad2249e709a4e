/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "contract/test_samples.h"
#include "kubestore/fake.h"
#include "kubestore/kubestore_int.h"
#include "kubestore/watch_int.h"

#define LIST "?limit=500"
#define STEP1 "?limit=1"
#define MAIN "timeoutSeconds=2"   /* 240 to 299 */
#define PROBE "timeoutSeconds=3&" /* 3 */

/* The newest open call with exactly step 1's parameters (the list's "limit=500" does not end so). */
static unsigned step1s(void)
{
    return fake_calls(STEP1) - fake_calls("?limit=1&");
}

#define NOTES 128
struct rec {
    struct note {
        enum kubestore_notice what;
        enum store_event_type type;
        char name[64], rv[CONTRACT_RV_SIZE];
        uint64_t proof;
        base_time t0;
        bool suspended;
    } n[NOTES];
    unsigned count;
    struct kubestore *s;
    struct kubestore_watch *w;
    enum kubestore_notice free_at; /* frees the watch when this comes */
};

static void on_note(void *arg, const struct kubestore_note *k)
{
    struct rec *r = arg;
    struct note *n = &r->n[r->count++ % NOTES];

    *n = (struct note){.what = k->what, .proof = k->proof_id, .t0 = k->t0};
    (void)base_copy(n->name, sizeof n->name, k->name ? k->name : "");
    (void)base_copy(n->rv, sizeof n->rv, k->version ? k->version : "");
    if (k->ev) {
        n->type = k->ev->type;
        n->suspended = k->ev->object.u.binding.spec.suspended;
    }
    if (k->what == r->free_at)
        r->w = kubestore_watch_free(r->w);
}

static const char *object(const char *name, const char *rv, bool suspended)
{
    static char text[8][1024];
    static unsigned at;
    char *t = text[at++ % 8];

    (void)base_fmt(t, sizeof text[0],
                   "{\"apiVersion\":\"masque.galactic.datumapis.com/"
                   "v1alpha1\",\"kind\":\"ConnectorBinding\",\"metadata\":{\"name\":\"t1.%s\","
                   "\"uid\":\"00000000-0000-4000-8000-000000000001\",\"resourceVersion\":\"%s\"},\"spec\":{"
                   "\"tenant\":\"t1\",\"connector\":\"%s\","
                   "\"vpc\":\"vpc-a\",\"serviceName\":\"s1\",\"identities\":[{\"user\":\"u\"}]%s}}",
                   name, rv, name, suspended ? ",\"suspended\":true" : "");
    return t;
}

static void answer_list(const char *rv, const char *a, const char *b)
{
    char page[4096];

    (void)base_fmt(page, sizeof page, "{\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[%s%s%s]}", rv,
                   a ? a : "", b ? "," : "", b ? b : "");
    fake_answer(fake_call(LIST), 200, "", page);
}

static void answer_step1(const char *rv)
{
    char page[256];

    (void)base_fmt(page, sizeof page,
                   "{\"metadata\":{\"resourceVersion\":\"%s\",\"continue\":\"x\"},\"items\":[]}", rv);
    fake_answer(fake_call("?limit=1"), 200, "", page);
}

static bool event(struct kube_call *c, const char *type, const char *name, const char *rv, bool suspended)
{
    return fake_line(c, "{\"type\":\"%s\",\"object\":%s}", type, object(name, rv, suspended));
}

static bool bookmark(struct kube_call *c, const char *rv)
{
    return fake_line(c,
                     "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConnectorBinding\",\"metadata\":{"
                     "\"resourceVersion\":\"%s\"},\"spec\":{}}}",
                     rv);
}

static struct rec *start(void)
{
    static struct rec r;
    struct store_selector sel = {.tenant = "t1"};
    struct base_err err = {0};

    memset(&r, 0, sizeof r);
    fake_reset();
    cr_assert_eq(kubestore_new(&r.s, NULL, NULL, "hf", NULL, &err), BASE_OK);
    cr_assert_eq(kubestore_watch_new(&r.w, r.s, CONTRACT_BINDING, &sel, on_note, &r, &err), BASE_OK, "%s",
                 err.msg);
    cr_expect_eq(r.count, 0, "nothing from within the call");
    fake_advance(0);
    return &r;
}

/* Listed at version 100 with c1 and c2, MAIN open. */
static struct rec *running(void)
{
    struct rec *r = start();

    answer_list("100", object("c1", "90", false), object("c2", "95", false));
    cr_assert(fake_open(fake_call(MAIN)));
    r->count = 0;
    return r;
}

static void finish(struct rec *r)
{
    r->w = kubestore_watch_free(r->w);
    r->s = kubestore_free(r->s);
    cr_expect(fake_clean(), "something was left behind");
}

static void expect(const struct rec *r, unsigned at, enum kubestore_notice what, const char *name,
                   const char *rv)
{
    cr_expect(r->count > at && r->n[at].what == what && strcmp(r->n[at].name, name) == 0 &&
                  strcmp(r->n[at].rv, rv) == 0,
              "note %u of %u: kind %d '%s' %s, wanted %d '%s' %s", at, r->count, (int)r->n[at].what,
              r->n[at].name, r->n[at].rv, (int)what, name, rv);
}

Test(kubestore_watch, lists_then_watches)
{
    struct rec *r = start();
    struct kube_call *c = fake_call(LIST);
    int lane = c->lane;

    cr_expect(strstr(c->path, "fieldSelector=spec.tenant%3Dt1"), "%s", c->path);
    cr_expect(!strstr(c->path, "resourceVersion"), "a consistent list: %s", c->path);
    cr_expect(!kubestore_watch_synced(r->w));
    fake_advance(10);
    answer_list("100", object("c1", "90", false), object("c2", "95", true));
    expect(r, 0, KUBESTORE_RELIST, "", "100");
    expect(r, 1, KUBESTORE_EVENT, "t1.c1", "90");
    expect(r, 2, KUBESTORE_EVENT, "t1.c2", "95");
    expect(r, 3, KUBESTORE_LISTED, "", "100");
    cr_expect(r->n[2].suspended && r->n[1].type == STORE_ADDED);
    cr_expect_eq(r->n[3].t0, fake_now() - 10 * BASE_MS);
    c = fake_call(MAIN);
    cr_expect(strstr(c->path, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=") &&
                  strstr(c->path, "&resourceVersion=100") &&
                  strstr(c->path, "&fieldSelector=spec.tenant%3Dt1"),
              "%s", c->path);
    cr_expect_eq(c->lane, lane, "on the collection's own connection");
    cr_expect_geq(lane, KUBE_LANE_PRIVATE);
    cr_expect_eq(c->idle, 75 * BASE_SEC);
    cr_assert(fake_open(c));
    cr_expect(kubestore_watch_synced(r->w));
    finish(r);
}

Test(kubestore_watch, tells_changes_and_drops_what_was_applied)
{
    struct rec *r = running();
    struct kube_call *c = fake_call(MAIN);

    event(c, "ADDED", "c3", "101", false);
    event(c, "MODIFIED", "c3", "103", true);
    event(c, "MODIFIED", "c1", "99", true);
    event(c, "MODIFIED", "c3", "103", false);
    bookmark(c, "110");
    event(c, "DELETED", "c3", "105", false);
    event(c, "DELETED", "c3", "111", true);
    cr_expect_eq(r->count, 3);
    expect(r, 0, KUBESTORE_EVENT, "t1.c3", "101");
    expect(r, 1, KUBESTORE_EVENT, "t1.c3", "103");
    expect(r, 2, KUBESTORE_EVENT, "t1.c3", "111");
    cr_expect(r->n[1].type == STORE_MODIFIED && r->n[1].suspended && r->n[2].type == STORE_DELETED);
    finish(r);
}

Test(kubestore_watch, goes_on_where_it_was)
{
    struct rec *r = running();

    bookmark(fake_call(MAIN), "120");
    fake_advance(240000);
    fake_answer(fake_call(MAIN), 200, "", "");
    cr_expect(strstr(fake_call(MAIN)->path, "&resourceVersion=120"), "after a good end at once: %s",
              fake_call(MAIN)->path);
    fake_fail(fake_call(MAIN), BASE_ECLOSED, true);
    cr_expect_eq(fake_calls(MAIN), 0, "after a loss not at once");
    cr_expect(!kubestore_watch_synced(r->w));
    fake_advance(300);
    cr_expect(strstr(fake_call(MAIN)->path, "&resourceVersion=120"));
    fake_answer(fake_call(MAIN), 200, "", "");
    cr_expect_eq(fake_calls(MAIN), 0, "one that ends at once is no good end");
    fake_advance(600);
    fake_retry_after(fake_call(MAIN), 429, 5 * BASE_SEC);
    fake_advance(4900);
    cr_expect_eq(fake_calls(MAIN), 0, "Retry-After is kept");
    fake_advance(200);
    cr_expect_eq(fake_calls(MAIN), 1);
    cr_expect_eq(fake_calls(LIST), 0, "nothing of this lists again");
    cr_expect_eq(r->count, 0);
    finish(r);
}

Test(kubestore_watch, back_off_grows_and_is_bounded)
{
    struct rec *r = running();
    base_time t = fake_now(), gap = 0;

    for (int i = 0; i < 12; i++) {
        fake_fail(fake_call(MAIN), BASE_EIO, false);
        t = fake_now();
        while (!fake_calls(MAIN))
            fake_advance(10);
        gap = fake_now() - t;
        cr_expect(gap <= 10100 * BASE_MS, "%lld ms", (long long)(gap / BASE_MS));
    }
    cr_expect_geq(gap, 7 * BASE_SEC);
    finish(r);
}

static void relisted(struct rec *r, const char *how)
{
    cr_expect(!kubestore_watch_synced(r->w), "%s", how);
    fake_advance(300);
    cr_assert_eq(fake_calls(LIST), 1, "%s: no list", how);
    cr_expect_eq(fake_calls(MAIN), 0, "%s", how);
    answer_list("200", object("c2", "150", true), NULL);
    expect(r, 0, KUBESTORE_RELIST, "", "200");
    expect(r, 1, KUBESTORE_EVENT, "t1.c2", "150");
    expect(r, 2, KUBESTORE_LISTED, "", "200");
    cr_expect(strstr(fake_call(MAIN)->path, "&resourceVersion=200"), "%s", how);
}

static void on_got(void *arg, const struct store_resp *resp)
{
    (void)resp;
    ++*(unsigned *)arg;
}

/* A request of another kind: answered with this status (0: no answer). */
static void other_request(struct rec *r, int http)
{
    struct store_req req = {.op = STORE_GET, .kind = CONTRACT_SERVICE, .name = "s1", .timeout = BASE_SEC};
    struct base_err err = {0};
    unsigned got = 0;

    cr_assert_eq(kubestore_submit(r->s, &req, on_got, &got, &err), BASE_OK, "%s", err.msg);
    if (http)
        fake_answer(fake_call("providerservices/s1"), http, http == 404 ? "NotFound" : "", "{}");
    else
        fake_fail(fake_call("providerservices/s1"), BASE_EIO, false);
    cr_assert_eq(got, 1);
}

Test(kubestore_watch, an_outage_that_ends_is_not_waited_out)
{
    static const int alive[] = {200, 404, 409, 403};

    for (size_t i = 0; i < sizeof alive / sizeof alive[0]; i++) {
        struct rec *r = running();

        for (int k = 0; k < 8; k++) { /* the back-off is long by now */
            fake_answer(fake_call(MAIN), 503, "ServiceUnavailable", "{}");
            if (k < 7)
                while (!fake_calls(MAIN))
                    fake_advance(50);
        }
        fake_advance(1000);
        cr_assert_eq(fake_calls(MAIN), 0, "it waits");
        cr_assert_eq(fake_agains(), 0);
        other_request(r, 503);
        fake_advance(500);
        cr_assert_eq(fake_calls(MAIN), 0, "503 is no sign of life");
        other_request(r, alive[i]);
        fake_advance(250);
        cr_assert_eq(fake_calls(MAIN), 1, "the server answers again (%d)", alive[i]);
        cr_assert_eq(fake_agains(), 1, "what waits for a connection gets another");
        other_request(r, alive[i]);
        cr_assert_eq(fake_agains(), 1, "once");
        finish(r);
    }
}

/* etcd stands still, and the API server serves watches from its cache. */
Test(kubestore_watch, a_watch_that_opens_is_no_end_of_an_outage)
{
    struct rec *r = running();

    for (int k = 0; k < 3; k++)
        other_request(r, 0);
    fake_answer(fake_call(MAIN), 200, "", NULL);
    fake_advance(300);
    cr_assert(fake_open(fake_call(MAIN)));
    fake_advance(2100);
    kubestore_watch_prove(r->w, 7, 10 * BASE_SEC);
    fake_advance(0);
    cr_assert_eq(fake_calls(LIST), 0);
    other_request(r, 200); /* now the store answers, too */
    fake_advance(250);
    cr_expect_eq(fake_calls(LIST), 1);
    finish(r);
}

Test(kubestore_watch, a_list_that_hangs_since_the_outage_is_asked_for_again)
{
    struct rec *r = running();
    base_time sent;

    fake_answer(fake_call(MAIN), 410, "Expired", "{}");
    fake_advance(300);
    sent = fake_call(LIST)->sent_at;
    for (int k = 0; k < 3; k++)
        other_request(r, 0);
    fake_advance(500);
    other_request(r, 200);
    fake_advance(250);
    cr_assert_eq(fake_call(LIST)->sent_at, sent, "it is young and may be answered");
    fake_advance(5000);
    for (int k = 0; k < 3; k++)
        other_request(r, 0);
    other_request(r, 200);
    fake_advance(250);
    cr_assert_eq(fake_calls(LIST), 1);
    cr_assert_gt(fake_call(LIST)->sent_at, sent);
    cr_assert_eq(fake_drops(), 1, "on another connection");
    relisted(r, "hanging list");
    finish(r);
}

Test(kubestore_watch, a_server_that_asks_for_patience_gets_it)
{
    struct rec *r = running();

    for (int k = 0; k < 8; k++) {
        fake_answer(fake_call(MAIN), 503, "ServiceUnavailable", "{}");
        if (k < 7)
            while (!fake_calls(MAIN))
                fake_advance(50);
    }
    fake_advance(1000);
    for (int k = 0; k < 3; k++) { /* 429 is not the end of the outage */
        other_request(r, 429);
        fake_advance(250);
        cr_assert_eq(fake_calls(MAIN), 0);
    }
    finish(r);
    r = running(); /* nor does a row of them make one */
    for (int k = 0; k < 4; k++)
        other_request(r, 429);
    kubestore_watch_prove(r->w, 7, 10 * BASE_SEC);
    other_request(r, 200);
    fake_advance(250);
    cr_assert_eq(fake_calls(LIST), 0);
    finish(r);
}

Test(kubestore_watch, a_server_that_comes_and_goes_is_not_met_with_a_storm)
{
    struct rec *r = running();
    unsigned tries = 0;

    for (int k = 0; k < 8; k++) {
        fake_answer(fake_call(MAIN), 503, "ServiceUnavailable", "{}");
        if (k < 7)
            while (!fake_calls(MAIN))
                fake_advance(50);
    }
    for (int k = 0; k < 50; k++) { /* 5 s: it answers every fourth request */
        for (int i = 0; i < 3; i++)
            other_request(r, 503);
        other_request(r, 200);
        fake_advance(100);
        if (fake_calls(MAIN)) {
            tries++;
            fake_answer(fake_call(MAIN), 503, "ServiceUnavailable", "{}");
        }
    }
    cr_expect(tries >= 3 && tries <= 6, "%u", tries);
    finish(r);
}

Test(kubestore_watch, trouble_of_one_collection_alone_keeps_its_back_off)
{
    struct rec *r = running();
    unsigned tries = 0;

    for (int k = 0; k < 6; k++) {
        fake_answer(fake_call(MAIN), 503, "ServiceUnavailable", "{}");
        other_request(r, 200);
        while (!fake_calls(MAIN))
            fake_advance(50);
    }
    fake_answer(fake_call(MAIN), 503, "ServiceUnavailable", "{}");
    for (int k = 0; k < 20; k++) { /* others are served all the time: no reason to hurry */
        other_request(r, 200);
        fake_advance(200);
        tries += fake_calls(MAIN);
    }
    cr_expect_eq(tries, 0, "%u", tries);
    finish(r);
}

Test(kubestore_watch, gone_as_a_status)
{
    struct rec *r = running();

    fake_answer(fake_call(MAIN), 410, "Expired", "{}");
    relisted(r, "HTTP 410");
    finish(r);
}

Test(kubestore_watch, gone_as_an_event)
{
    struct rec *r = running();

    cr_expect(!fake_line(fake_call(MAIN), "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                                          "\"reason\":\"Expired\",\"message\":\"too old\"}}"));
    relisted(r, "ERROR 410");
    finish(r);
}

Test(kubestore_watch, other_error_events_do_not_list)
{
    struct rec *r = running();

    cr_expect(
        !fake_line(fake_call(MAIN), "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500}}"));
    fake_advance(300);
    cr_expect(strstr(fake_call(MAIN)->path, "&resourceVersion=100"));
    cr_expect_eq(fake_calls(LIST), 0);
    finish(r);
}

Test(kubestore_watch, nonsense_on_the_stream_lists_again)
{
    static const char *const lines[] = {
        "{\"type\":\"ADDED\"", "[]",
        "{\"type\":\"FUTURE\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}", "{\"type\":\"BOOKMARK\",\"object\":{}}"};

    for (unsigned i = 0; i < BASE_LEN(lines); i++) {
        struct rec *r = running();

        cr_expect(!fake_line(fake_call(MAIN), "%s", lines[i]), "%s", lines[i]);
        relisted(r, lines[i]);
        finish(r);
    }
}

Test(kubestore_watch, an_object_that_cannot_be_read_is_passed_by)
{
    struct rec *r = running();

    fake_line(fake_call(MAIN), "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"t1.c1\","
                               "\"resourceVersion\":\"130\"},\"spec\":{}}}");
    expect(r, 0, KUBESTORE_BAD_OBJECT, "t1.c1", "130");
    event(fake_call(MAIN), "MODIFIED", "c2", "131", true);
    expect(r, 1, KUBESTORE_EVENT, "t1.c2", "131");
    fake_advance(240000);
    fake_answer(fake_call(MAIN), 200, "", "");
    cr_expect(strstr(fake_call(MAIN)->path, "&resourceVersion=131"), "it does not loop on it");
    finish(r);
}

Test(kubestore_watch, no_memory_is_no_bad_object)
{
    struct rec *r = running();
    unsigned seen = 0;

    for (unsigned long n = 1; n < 12 && !seen; n++) {
        base_mem_fail_after(n);
        event(fake_call(MAIN), "MODIFIED", "c1", "130", true);
        base_mem_fail_after(0);
        seen = r->count;
        if (seen)
            break;
        fake_advance(20000);
        base_mem_fail_after(n + 3); /* the page is read, a row is not */
        answer_list("120", object("c1", "90", false), object("c2", "95", false));
        base_mem_fail_after(0);
        for (unsigned i = 0; i < r->count; i++)
            cr_expect(r->n[i].what != KUBESTORE_BAD_OBJECT, "allocation %lu: note %u", n, i);
        fake_advance(20000);
        if (fake_calls(LIST))
            answer_list("120", object("c1", "90", false), object("c2", "95", false));
        cr_assert(fake_calls(MAIN) == 1, "allocation %lu: it does not go on", n);
        r->count = 0;
    }
    cr_expect(seen && r->n[0].what == KUBESTORE_EVENT, "the change is told in the end");
    finish(r);
}

Test(kubestore_watch, a_list_that_fails_is_tried_again)
{
    struct rec *r = start();

    fake_fail(fake_call(LIST), BASE_EIO, false);
    cr_expect_eq(fake_calls(LIST), 0);
    fake_advance(300);
    fake_answer(fake_call(LIST), 403, "Forbidden", "{}");
    fake_advance(600);
    answer_list("100", NULL, NULL);
    expect(r, 0, KUBESTORE_RELIST, "", "100");
    expect(r, 1, KUBESTORE_LISTED, "", "100");
    finish(r);
}

Test(kubestore_watch, an_expired_continue_tells_relist_again)
{
    struct rec *r = start();
    char page[4096];

    (void)base_fmt(page, sizeof page,
                   "{\"metadata\":{\"resourceVersion\":\"50\",\"continue\":\"x\"},\"items\":[%s]}",
                   object("c1", "40", false));
    fake_answer(fake_call(LIST), 200, "", page);
    fake_answer(fake_call("continue=x"), 410, "Expired", "{}");
    answer_list("60", object("c2", "55", false), NULL);
    expect(r, 0, KUBESTORE_RELIST, "", "50");
    expect(r, 1, KUBESTORE_EVENT, "t1.c1", "40");
    expect(r, 2, KUBESTORE_RELIST, "", "60");
    expect(r, 3, KUBESTORE_EVENT, "t1.c2", "55");
    expect(r, 4, KUBESTORE_LISTED, "", "60");
    finish(r);
}

/* ---- proofs ---- */
static void prove(struct rec *r, uint64_t id, int64_t ms)
{
    unsigned before = r->count;

    kubestore_watch_prove(r->w, id, ms * BASE_MS);
    cr_expect_eq(r->count, before, "nothing from within the call");
    fake_advance(0);
}

Test(kubestore_proof, by_a_bookmark_of_the_probe)
{
    struct rec *r = running();
    base_time t0;
    struct kube_call *c;

    fake_advance(50);
    prove(r, 1, 8000);
    t0 = fake_now();
    c = fake_call(STEP1);
    cr_expect_str_eq(c->path,
                     "/apis/masque.galactic.datumapis.com/v1alpha1/namespaces/hf/connectorbindings?limit=1",
                     "no selector, no resourceVersion");
    cr_expect_eq(c->lane, fake_call(MAIN)->lane, "on the connection of the watch");
    cr_expect_eq(fake_calls(PROBE), 0, "R comes first");
    fake_advance(20);
    answer_step1("150");
    c = fake_call(PROBE);
    cr_expect(strstr(c->path, "resourceVersion=100") && strstr(c->path, "allowWatchBookmarks=true") &&
                  strstr(c->path, "fieldSelector="),
              "%s", c->path);
    cr_expect_eq(c->lane, fake_call(MAIN)->lane);
    fake_open(c);
    bookmark(c, "149");
    cr_expect_eq(r->count, 0, "149 is below R");
    bookmark(c, "150");
    expect(r, 0, KUBESTORE_PROVED, "", "150");
    cr_expect(r->n[0].proof == 1 && r->n[0].t0 == t0, "t0 was read before step 1 was sent");
    fake_answer(c, 200, "", "");
    fake_advance(20000);
    cr_expect_eq(r->count, 1, "once");
    cr_expect_eq(fake_calls(LIST) + fake_drops(), 0);
    finish(r);
}

Test(kubestore_proof, what_was_written_before_is_told_before)
{
    struct rec *r = running();

    prove(r, 1, 8000);
    answer_step1("150");
    event(fake_call(PROBE), "MODIFIED", "c1", "140", true);
    cr_expect_eq(r->count, 1, "140 is below R");
    event(fake_call(MAIN), "MODIFIED", "c1", "140", true);
    cr_expect_eq(r->count, 1, "the other stream's copy");
    event(fake_call(PROBE), "MODIFIED", "c2", "150", true);
    expect(r, 0, KUBESTORE_EVENT, "t1.c1", "140");
    expect(r, 1, KUBESTORE_EVENT, "t1.c2", "150");
    expect(r, 2, KUBESTORE_PROVED, "", "150");
    cr_expect_eq(r->count, 3);
    finish(r);
}

Test(kubestore_proof, by_the_main_stream_too)
{
    struct rec *r = running();

    prove(r, 1, 8000);
    answer_step1("150");
    event(fake_call(MAIN), "MODIFIED", "c2", "151", true);
    expect(r, 1, KUBESTORE_PROVED, "", "151");
    finish(r);
}

Test(kubestore_proof, at_once_when_everything_is_known)
{
    struct rec *r = running();

    prove(r, 1, 8000);
    answer_step1("100");
    expect(r, 0, KUBESTORE_PROVED, "", "100");
    cr_expect_eq(fake_calls(PROBE), 0);
    finish(r);
}

Test(kubestore_proof, each_has_its_own_t0)
{
    struct rec *r = running();
    base_time first, second;

    prove(r, 1, 8000);
    first = fake_now();
    answer_step1("150");
    fake_advance(100);
    prove(r, 2, 8000);
    second = fake_now();
    bookmark(fake_call(PROBE), "155");
    expect(r, 0, KUBESTORE_PROVED, "", "155");
    cr_expect(r->n[0].proof == 1 && r->n[0].t0 == first);
    cr_expect_eq(r->count, 1, "the second has no R yet");
    answer_step1("160");
    bookmark(fake_call(PROBE), "160");
    cr_expect(r->count == 2 && r->n[1].proof == 2 && r->n[1].t0 == second);
    finish(r);
}

static void step4(struct rec *r, base_time asked)
{
    base_time t0;

    cr_assert_eq(fake_calls(LIST), 1, "step 4");
    cr_expect_eq(fake_calls(MAIN) + fake_calls(PROBE), 0, "what is open is not trusted");
    cr_expect_geq(fake_drops(), 1);
    t0 = fake_call(LIST)->sent_at;
    cr_expect_geq(t0, asked);
    fake_advance(30);
    answer_list("180", object("c1", "90", false), NULL);
    cr_expect_eq(r->count, 4);
    expect(r, 2, KUBESTORE_LISTED, "", "180");
    expect(r, 3, KUBESTORE_PROVED, "", "180");
    cr_expect(r->n[3].proof == 1 && r->n[3].t0 == t0, "t0 of the list");
}

Test(kubestore_proof, after_an_outage_a_small_collection_is_proved_by_a_list)
{
    struct rec *r = running();
    unsigned notes;

    for (int k = 0; k < 3; k++)
        other_request(r, 0);
    kubestore_watch_prove(r->w, 7, 10 * BASE_SEC);
    fake_advance(0);
    fake_fail(fake_call("?limit=1"), BASE_ETIMEDOUT, true);
    other_request(r, 200); /* it answers again */
    fake_advance(250);
    cr_assert_eq(fake_calls(LIST), 1, "no waiting for a bookmark");
    answer_list("120", object("c1", "90", false), NULL);
    notes = r->count;
    cr_assert_eq(r->n[notes - 1].what, KUBESTORE_PROVED);
    cr_expect_eq(r->n[notes - 1].proof, 7);
    cr_assert(fake_open(fake_call(MAIN)));
    kubestore_watch_prove(r->w, 8, 10 * BASE_SEC); /* and so is one that is asked for right after it */
    fake_advance(0);
    cr_assert_eq(fake_calls(LIST), 1);
    answer_list("121", object("c1", "90", false), NULL);
    cr_assert_eq(r->n[r->count - 1].what, KUBESTORE_PROVED);
    cr_assert(fake_open(fake_call(MAIN)));
    fake_advance(3000); /* later on the cheap way is taken again */
    kubestore_watch_prove(r->w, 9, 10 * BASE_SEC);
    fake_advance(0);
    cr_expect_eq(fake_calls(LIST), 0);
    cr_expect_eq(step1s(), 1);
    finish(r);
}

/* Step 1 was on its way when the outage ended, and its answer comes afterwards. */
Test(kubestore_proof, nor_is_a_bookmark_waited_for_when_its_version_comes_after_the_outage)
{
    struct rec *r = running();

    for (int k = 0; k < 3; k++)
        other_request(r, 0);
    kubestore_watch_prove(r->w, 7, 10 * BASE_SEC);
    fake_advance(0);
    other_request(r, 200);
    answer_step1("120");
    cr_expect_eq(fake_calls(PROBE), 0);
    cr_assert_eq(fake_calls(LIST), 1);
    answer_list("120", object("c1", "90", false), NULL);
    cr_assert_eq(r->n[r->count - 1].what, KUBESTORE_PROVED);
    cr_expect_eq(r->n[r->count - 1].proof, 7);
    finish(r);
}

Test(kubestore_proof, no_bookmark_full_list)
{
    struct rec *r = running();
    base_time asked = fake_now();

    prove(r, 1, 8000);
    answer_step1("150");
    bookmark(fake_call(PROBE), "120");
    fake_advance(3000);
    fake_answer(fake_call(PROBE), 200, "", "");
    step4(r, asked);
    finish(r);
}

Test(kubestore_proof, silence_full_list)
{
    struct rec *r = running();
    base_time asked = fake_now();

    prove(r, 1, 8000);
    answer_step1("150");
    fake_advance(3900);
    cr_expect_eq(fake_calls(LIST), 0);
    fake_advance(200);
    step4(r, asked);
    finish(r);
}

Test(kubestore_proof, no_r_full_list)
{
    struct rec *r = running();
    base_time asked = fake_now();

    prove(r, 1, 8000);
    cr_expect_eq(fake_call(STEP1)->timeout, 2 * BASE_SEC);
    fake_fail(fake_call(STEP1), BASE_ETIMEDOUT, true);
    cr_expect_eq(step1s(), 0);
    fake_advance(500);
    cr_expect_eq(step1s(), 1, "a second try");
    fake_answer(fake_call(STEP1), 200, "", "{\"items\":[]}");
    step4(r, asked);
    finish(r);
}

Test(kubestore_proof, nothing_works_not_proved)
{
    struct rec *r = running();

    prove(r, 1, 5000);
    fake_fail(fake_call(STEP1), BASE_EIO, true);
    fake_advance(500);
    fake_fail(fake_call(STEP1), BASE_EIO, true);
    fake_fail(fake_call(LIST), BASE_EIO, true);
    cr_expect_eq(r->count, 0);
    cr_expect_eq(fake_calls(MAIN), 1, "the changes may still come");
    cr_expect(strstr(fake_call(MAIN)->path, "resourceVersion=100"));
    fake_advance(4600);
    expect(r, 0, KUBESTORE_NOT_PROVED, "", "100");
    cr_expect(r->n[0].proof == 1);
    fake_advance(60000);
    cr_expect_eq(r->count, 1, "and nothing else follows");
    finish(r);
}

Test(kubestore_proof, a_hanging_step1_is_not_proved_in_time)
{
    struct rec *r = running();

    prove(r, 1, 1000);
    fake_advance(999);
    cr_expect_eq(r->count, 0);
    fake_advance(2);
    expect(r, 0, KUBESTORE_NOT_PROVED, "", "100");
    cr_expect_eq(step1s(), 0, "its request is given up");
    finish(r);
}

Test(kubestore_proof, a_list_that_began_before_the_asking_proves_nothing)
{
    struct rec *r = running();

    fake_answer(fake_call(MAIN), 410, "Expired", "{}");
    fake_advance(300);
    cr_assert_eq(fake_calls(LIST), 1);
    fake_advance(10);
    prove(r, 1, 8000);
    answer_list("200", NULL, NULL);
    cr_expect_eq(r->count, 2, "RELIST and LISTED only");
    answer_step1("201");
    bookmark(fake_call(PROBE), "201");
    expect(r, 2, KUBESTORE_PROVED, "", "201");
    finish(r);
}

Test(kubestore_proof, half_a_list_proves_nothing)
{
    struct rec *r = running();
    char page[4096];

    prove(r, 1, 8000);
    fake_answer(fake_call(MAIN), 410, "Expired", "{}");
    fake_advance(300);
    (void)base_fmt(page, sizeof page,
                   "{\"metadata\":{\"resourceVersion\":\"160\",\"continue\":\"x\"},\"items\":[%s]}",
                   object("c1", "40", false));
    fake_answer(fake_call(LIST), 200, "", page);
    answer_step1("100");
    cr_expect_eq(r->count, 2, "RELIST and one row; that 100 was applied before does not count now");
    fake_answer(fake_call("continue=x"), 200, "",
                "{\"metadata\":{\"resourceVersion\":\"160\"},\"items\":[]}");
    cr_expect(r->count == 4 && r->n[3].what == KUBESTORE_PROVED);
    finish(r);
}

Test(kubestore_proof, a_version_below_one_seen_only_after_it_was_asked_for_has_not_gone_back)
{
    struct rec *r = running();

    bookmark(fake_call(MAIN), "500");
    prove(r, 2, 8000);
    bookmark(fake_call(MAIN), "600");
    answer_step1("550");
    expect(r, 0, KUBESTORE_PROVED, "", "600");
    finish(r);
}

Test(kubestore_proof, sixteen_at_a_time)
{
    struct rec *r = running();
    unsigned refused = 0;

    for (uint64_t id = 1; id <= 20; id++)
        kubestore_watch_prove(r->w, id, 8 * BASE_SEC);
    cr_expect_eq(r->count, 0, "nothing from within the call");
    fake_advance(0);
    for (unsigned i = 0; i < r->count; i++)
        refused += r->n[i].what == KUBESTORE_NOT_PROVED && r->n[i].proof > 16;
    cr_expect(refused == 4 && r->count == 4);
    cr_expect_eq(step1s(), 16);
    finish(r);
}

Test(kubestore_watch, an_open_but_silent_main_stream_is_replaced)
{
    struct rec *r = running();

    fake_advance(100);
    prove(r, 1, 8000);
    answer_step1("150");
    event(fake_call(PROBE), "MODIFIED", "c1", "140", true);
    bookmark(fake_call(PROBE), "150");
    fake_advance(3000);
    fake_answer(fake_call(PROBE), 200, "", ""); /* MAIN never brought 140 */
    cr_expect_eq(fake_calls(MAIN), 0);
    fake_advance(300);
    cr_expect(strstr(fake_call(MAIN)->path, "resourceVersion=150"));
    finish(r);
}

Test(kubestore_watch, a_main_stream_that_keeps_up_stays)
{
    struct rec *r = running();
    struct kube_call *main = fake_call(MAIN);

    prove(r, 1, 8000);
    answer_step1("150");
    event(fake_call(PROBE), "MODIFIED", "c1", "140", true);
    event(main, "MODIFIED", "c1", "140", true);
    bookmark(fake_call(PROBE), "150");
    fake_advance(3000);
    fake_answer(fake_call(PROBE), 200, "", "");
    cr_expect_eq(fake_call(MAIN), main);
    finish(r);
}

Test(kubestore_watch, may_be_freed_by_every_callback)
{
    static const enum kubestore_notice at[] = {KUBESTORE_RELIST,   KUBESTORE_EVENT,      KUBESTORE_LISTED,
                                               KUBESTORE_PROVED,   KUBESTORE_NOT_PROVED, KUBESTORE_BAD_OBJECT,
                                               KUBESTORE_REGRESSED};

    for (unsigned i = 0; i < BASE_LEN(at); i++) {
        struct rec *r = start();

        r->free_at = at[i];
        answer_list("100", object("c1", "90", false), object("c2", "95", false));
        if (r->w) {
            prove(r, 1, 8000);
            prove(r, 2, 100);
            answer_step1("150");
            if (at[i] == KUBESTORE_PROVED)
                bookmark(fake_call(PROBE), "150");
            else if (at[i] == KUBESTORE_BAD_OBJECT)
                fake_line(fake_call(MAIN), "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\","
                                           "\"resourceVersion\":\"130\"}}}");
            else if (at[i] == KUBESTORE_REGRESSED)
                kubestore_start_over(r->s, "test"), fake_advance(0);
            else
                fake_advance(200);
        }
        cr_expect(!r->w, "kind %d never came", (int)at[i]);
        finish(r);
    }
}

Test(kubestore_watch, selectors_are_checked)
{
    struct store_selector sel = {.node = "edge1"};
    struct kubestore *s = NULL;
    struct kubestore_watch *w = NULL;
    struct base_err err = {0};

    fake_reset();
    cr_assert_eq(kubestore_new(&s, NULL, NULL, "hf", NULL, &err), BASE_OK);
    cr_expect_eq(kubestore_watch_new(&w, s, CONTRACT_BINDING, &sel, on_note, NULL, &err), BASE_EINVAL);
    cr_expect(strstr(err.msg, "node"), "%s", err.msg);
    kubestore_free(s);
    cr_expect(fake_clean());
}

/* A write that is decided on a watch event must not read again: the event's text is remembered, and an event
 * that was overtaken by a newer answer does not push that out. */
Test(kubestore_raw, an_event_is_remembered_and_the_newest_version_wins)
{
    struct kubestore_raw *r = kubestore_raw_new();
    struct contract_object o = {.kind = CONTRACT_CLAIM};
    struct base_str got;

    (void)base_copy(o.u.meta.name, sizeof o.u.meta.name, "rc-1");
    o.u.meta.uid.b[0] = 1;
    (void)base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "10");
    kubestore_raw_put(r, &o, BASE_STR("ten"));
    (void)base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "9");
    kubestore_raw_put(r, &o, BASE_STR("nine"));
    got = kubestore_raw_get(r, CONTRACT_CLAIM, "rc-1", &o.u.meta.uid, "10");
    cr_assert(base_str_eqz(got, "ten"));
    got = kubestore_raw_get(r, CONTRACT_CLAIM, "rc-1", &o.u.meta.uid, "9");
    cr_assert_eq(got.len, 0);
    o.u.meta.uid.b[0] = 2; /* made again: another object, whatever its version */
    kubestore_raw_put(r, &o, BASE_STR("again"));
    got = kubestore_raw_get(r, CONTRACT_CLAIM, "rc-1", &o.u.meta.uid, "9");
    cr_assert(base_str_eqz(got, "again"));
    kubestore_raw_free(r);
}

Test(kubestore_watch, an_instance_seen_by_the_watch_needs_no_read_before_its_write)
{
    struct kubestore_watch *w;
    struct contract_object o;
    struct rec r = {0};
    struct base_err err = {0};
    struct base_buf json;

    fake_reset();
    cr_assert_eq(kubestore_new(&r.s, NULL, NULL, "hf", NULL, &err), BASE_OK);
    cr_assert_eq(kubestore_watch_new(&w, r.s, CONTRACT_INSTANCE, &(struct store_selector){.node = "edge1"},
                                     on_note, &r, &err),
                 BASE_OK);
    o = sample_instance("edge1", sample_uuid(7));
    o.u.meta.uid = sample_uuid(8);
    (void)base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "10");
    base_buf_init(&json, 65536);
    cr_assert_eq(contract_encode(&json, &o, BASE_STR(""), &err), BASE_OK, "%s", err.msg);
    cr_assert(kubestore_watch_row(w, STORE_MODIFIED, (struct base_str){json.data, json.len}, o.u.meta.name,
                                  o.u.meta.rv));
    cr_assert_eq(
        kubestore_raw_get(r.s->raw, CONTRACT_INSTANCE, o.u.meta.name, &o.u.meta.uid, o.u.meta.rv).len,
        json.len);
    base_buf_fini(&json);
    kubestore_watch_free(w);
    kubestore_free(r.s);
}
