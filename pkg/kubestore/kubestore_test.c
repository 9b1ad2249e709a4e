/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "contract/test_samples.h"
#include "kubestore/fake.h"
#include "kubestore/kubestore_int.h"

#define PATH "/apis/masque.galactic.datumapis.com/v1alpha1/namespaces/hf/connectorbindings"
#define UID "00000000-0000-4000-8000-000000000001"

static struct kubestore *store(void)
{
    struct kubestore *s = NULL;
    struct base_err err = {0};

    fake_reset();
    cr_assert_eq(kubestore_new(&s, NULL, NULL, "hf", NULL, &err), BASE_OK, "%s", err.msg);
    return s;
}

/* A binding as the server answers, with members that nobody here knows. */
static const char *binding_json(const char *name, const char *rv)
{
    static char text[4][2048];
    static unsigned at;
    char *t = text[at++ % 4];

    (void)base_fmt(t, sizeof text[0],
                   "{\"apiVersion\":\"masque.galactic.datumapis.com/"
                   "v1alpha1\",\"kind\":\"ConnectorBinding\",\"metadata\":{\"name\":\"t1.%s\","
                   "\"uid\":\"" UID "\",\"resourceVersion\":\"%s\",\"generation\":1,\"labels\":{\"mine\":"
                   "\"yes\"}},\"spec\":{\"tenant\":\"t1\","
                   "\"connector\":\"%s\",\"vpc\":\"vpc-a\",\"serviceName\":\"s1\",\"identities\":[{\"user\":"
                   "\"u\"}],\"later\":[1]}}",
                   name, rv, name);
    return t;
}

static struct contract_object binding(const char *rv)
{
    struct contract_object o;
    struct base_err err = {0};

    cr_assert_eq(contract_decode(&o, CONTRACT_BINDING, base_str_of(binding_json("c1", rv)), &err), BASE_OK,
                 "%s", err.msg);
    return o;
}

struct got {
    unsigned n;
    int code, http;
    uint64_t id;
    char reason[64], text[BASE_ERR_MSG_MAX], rv[CONTRACT_RV_SIZE], list_rv[CONTRACT_RV_SIZE];
    size_t n_objects;
    base_time sent;
    struct kubestore *free_me;
};

static void on_done(void *arg, const struct store_resp *r)
{
    struct got *g = arg;

    g->n++;
    g->code = r->code;
    g->http = r->http_status;
    g->id = r->id;
    g->sent = r->sent;
    g->n_objects = r->n_objects;
    (void)base_copy(g->reason, sizeof g->reason, r->reason);
    (void)base_copy(g->text, sizeof g->text, r->err.msg);
    (void)base_copy(g->list_rv, sizeof g->list_rv, r->list_rv);
    (void)base_copy(g->rv, sizeof g->rv, r->n_objects ? r->objects[0].u.meta.rv : "");
    kubestore_free(g->free_me);
}

static int submit(struct kubestore *s, enum store_op op, const struct contract_object *o, struct got *g)
{
    struct store_req req = {.id = 42, .op = op, .kind = CONTRACT_BINDING, .name = "t1.c1", .object = o};

    if (o) {
        req.uid = o->u.meta.uid;
        (void)base_copy(req.rv, sizeof req.rv, o->u.meta.rv);
    }
    req.correlation.b[0] = 0xab;
    return kubestore_submit(s, &req, on_done, g, NULL);
}

Test(kubestore, get_asks_the_quorum)
{
    struct kubestore *s = store();
    struct got g = {0};
    struct kube_call *c;

    cr_assert_eq(submit(s, STORE_GET, NULL, &g), BASE_OK);
    c = fake_call(PATH);
    cr_expect_str_eq(c->method, "GET");
    cr_expect_str_eq(c->path, PATH "/t1.c1", "no resourceVersion, no other parameter");
    cr_expect_str_eq(c->audit_id, "ab000000000000000000000000000000");
    cr_expect_eq(c->lane, KUBE_LANE_DEFAULT);
    fake_advance(30);
    fake_answer(c, 200, "", binding_json("c1", "7"));
    cr_expect(g.n == 1 && g.code == BASE_OK && g.id == 42 && g.n_objects == 1);
    cr_expect_str_eq(g.rv, "7");
    cr_expect_eq(g.sent, fake_now() - 30 * BASE_MS);
    kubestore_free(s);
    cr_expect(fake_clean());
}

Test(kubestore, put_keeps_what_was_read)
{
    struct kubestore *s = store();
    struct contract_object o;
    struct got g = {0};
    struct kube_call *c;

    cr_assert_eq(submit(s, STORE_GET, NULL, &g), BASE_OK);
    fake_answer(fake_call(PATH), 200, "", binding_json("c1", "7"));
    o = binding("7");
    o.u.binding.spec.suspended = true;
    cr_assert_eq(submit(s, STORE_UPDATE, &o, &g), BASE_OK);
    c = fake_call(PATH);
    cr_expect_str_eq(c->method, "PUT", "without reading again");
    cr_expect_str_eq(c->path, PATH "/t1.c1?fieldValidation=Strict");
    cr_expect(strstr(c->body, "\"labels\":{\"mine\":\"yes\"}") && strstr(c->body, "\"later\":[1]") &&
                  strstr(c->body, "\"suspended\":true") && strstr(c->body, "\"uid\":\"" UID "\"") &&
                  strstr(c->body, "\"resourceVersion\":\"7\""),
              "%s", c->body);
    fake_answer(c, 200, "", binding_json("c1", "8"));
    cr_expect(g.n == 2 && g.code == BASE_OK);
    o = binding("8");
    cr_assert_eq(submit(s, STORE_UPDATE_STATUS, &o, &g), BASE_OK);
    c = fake_call(PATH);
    cr_expect_str_eq(c->path, PATH "/t1.c1/status?fieldValidation=Strict",
                     "the answer of the PUT is known too");
    fake_answer(c, 200, "", binding_json("c1", "8"));
    kubestore_free(s);
}

Test(kubestore, put_of_an_unknown_version_reads_first)
{
    struct kubestore *s = store();
    struct contract_object o = binding("7");
    struct got g = {0};
    struct kube_call *c;

    o.u.binding.spec.suspended = true;
    cr_assert_eq(submit(s, STORE_UPDATE, &o, &g), BASE_OK);
    c = fake_call(PATH);
    cr_expect_str_eq(c->method, "GET");
    fake_answer(c, 200, "", binding_json("c1", "7"));
    c = fake_call(PATH);
    cr_expect_str_eq(c->method, "PUT");
    cr_expect(strstr(c->body, "\"labels\":{\"mine\":\"yes\"}"), "%s", c->body);
    fake_advance(5);
    fake_answer(c, 200, "", binding_json("c1", "8"));
    cr_expect(g.n == 1 && g.code == BASE_OK);
    cr_expect_eq(g.sent, fake_now() - 5 * BASE_MS, "t0 of the PUT, not of the GET");

    /* another version by now: a conflict, and no PUT */
    cr_assert_eq(submit(s, STORE_UPDATE, &o, &g), BASE_OK);
    fake_answer(fake_call(PATH), 200, "", binding_json("c1", "9"));
    cr_expect(g.n == 2 && g.code == BASE_ECONFLICT && g.http == 409 && strcmp(g.reason, "Conflict") == 0);
    cr_expect(strstr(g.text, "is 9, not 7"), "%s", g.text);
    cr_expect_eq(fake_calls(PATH), 0);

    /* reading failed: the PUT certainly did not land */
    cr_assert_eq(submit(s, STORE_UPDATE, &o, &g), BASE_OK);
    fake_fail(fake_call(PATH), BASE_ETIMEDOUT, true);
    cr_expect(g.n == 3 && g.code == BASE_EAGAIN);
    cr_assert_eq(submit(s, STORE_UPDATE, &o, &g), BASE_OK);
    fake_answer(fake_call(PATH), 404, "NotFound", "{}");
    cr_expect(g.n == 4 && g.code == BASE_ENOTFOUND);
    kubestore_free(s);
}

Test(kubestore, no_write_without_preconditions)
{
    struct kubestore *s = store();
    struct contract_object o = binding("7"), bare = o;
    struct got g = {0};
    struct base_err err = {0};
    struct store_req req = {.op = STORE_UPDATE, .kind = CONTRACT_BINDING, .object = &bare};

    bare.u.meta.rv[0] = '\0';
    cr_expect_eq(kubestore_submit(s, &req, on_done, &g, &err), BASE_EINVAL);
    cr_expect(strstr(err.msg, "resourceVersion"), "%s", err.msg);
    bare = o;
    bare.u.meta.uid = (struct base_uuid){{0}};
    cr_expect_eq(submit(s, STORE_UPDATE, &bare, &g), BASE_EINVAL);
    cr_expect_eq(submit(s, STORE_UPDATE_STATUS, &bare, &g), BASE_EINVAL);
    cr_expect_eq(submit(s, STORE_DELETE, &bare, &g), BASE_EINVAL);
    bare = o;
    bare.u.meta.rv[0] = '\0';
    cr_expect_eq(submit(s, STORE_DELETE, &bare, &g), BASE_EINVAL);
    (void)base_copy(o.u.meta.name, sizeof o.u.meta.name, "../secrets");
    cr_expect_eq(submit(s, STORE_UPDATE, &o, &g), BASE_EINVAL);
    cr_expect(g.n == 0 && fake_clean());
    kubestore_free(s);
}

Test(kubestore, create_and_delete)
{
    struct kubestore *s = store();
    struct contract_object o = sample_binding("c1");
    struct got g = {0};
    struct kube_call *c;

    cr_assert_eq(submit(s, STORE_CREATE, &o, &g), BASE_OK);
    c = fake_call(PATH);
    cr_expect_str_eq(c->method, "POST");
    cr_expect_str_eq(c->path, PATH "?fieldValidation=Strict");
    fake_answer(c, 409, "AlreadyExists", "{}");
    cr_expect_eq(g.code, BASE_EEXIST);
    o = binding("7");
    cr_assert_eq(submit(s, STORE_DELETE, &o, &g), BASE_OK);
    c = fake_call(PATH);
    cr_expect_str_eq(c->method, "DELETE");
    cr_expect(strstr(c->body, "\"preconditions\":{\"uid\":\"" UID "\",\"resourceVersion\":\"7\"}"), "%s",
              c->body);
    fake_answer(c, 200, "", "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\"}");
    cr_expect(g.code == BASE_OK && g.n_objects == 0);
    cr_assert_eq(submit(s, STORE_DELETE, &o, &g), BASE_OK);
    fake_answer(fake_call(PATH), 200, "", binding_json("c1", "9"));
    cr_expect(g.code == BASE_OK && g.n_objects == 1, "a finalizer keeps it");
    kubestore_free(s);
}

Test(kubestore, renewals_have_their_own_lane)
{
    struct kubestore *s = store();
    struct contract_object o = binding("7");
    struct store_req req = {
        .op = STORE_UPDATE, .kind = CONTRACT_BINDING, .object = &o, .renewal = true, .timeout = 3 * BASE_SEC};
    struct got g = {0};

    cr_assert_eq(kubestore_submit(s, &req, on_done, &g, NULL), BASE_OK);
    cr_expect_eq(fake_call(PATH)->lane, KUBE_LANE_RENEW);
    fake_advance(1000);
    fake_answer(fake_call(PATH), 200, "", binding_json("c1", "7"));
    cr_expect_eq(fake_call(PATH)->lane, KUBE_LANE_RENEW);
    cr_expect_eq(fake_call(PATH)->timeout, 2 * BASE_SEC, "one deadline for both");
    kubestore_free(s);
    cr_expect(fake_clean());
}

Test(kubestore, outcome_classes)
{
    static const struct {
        bool write;
        int code;
        bool sent;
        int http;
        const char *reason;
        int want;
    } rows[] = {
        {true, BASE_OK, true, 200, "", BASE_OK},
        {true, BASE_OK, true, 201, "", BASE_OK},
        {true, BASE_OK, true, 400, "BadRequest", BASE_EINVAL},
        {true, BASE_OK, true, 401, "Unauthorized", BASE_EDENIED},
        {true, BASE_OK, true, 403, "Forbidden", BASE_EDENIED},
        {true, BASE_OK, true, 404, "NotFound", BASE_ENOTFOUND},
        {true, BASE_OK, true, 409, "AlreadyExists", BASE_EEXIST},
        {true, BASE_OK, true, 409, "Conflict", BASE_ECONFLICT},
        {true, BASE_OK, true, 409, "", BASE_ECONFLICT},
        {true, BASE_OK, true, 410, "Expired", BASE_EGONE},
        {true, BASE_OK, true, 422, "Invalid", BASE_EINVAL},
        {true, BASE_OK, true, 429, "", BASE_EAGAIN},
        {true, BASE_OK, true, 500, "", BASE_EUNKNOWN},
        {true, BASE_OK, true, 502, "", BASE_EUNKNOWN},
        {true, BASE_OK, true, 503, "", BASE_EUNKNOWN},
        {true, BASE_OK, true, 504, "Timeout", BASE_EUNKNOWN},
        {true, BASE_OK, true, 302, "", BASE_EUNKNOWN},
        {true, BASE_ETIMEDOUT, true, 0, "", BASE_EUNKNOWN},
        {true, BASE_EIO, true, 0, "", BASE_EUNKNOWN},
        {true, BASE_ECLOSED, true, 200, "", BASE_EUNKNOWN},
        {true, BASE_EPROTO, true, 0, "", BASE_EUNKNOWN},
        {true, BASE_EIO, false, 0, "", BASE_EAGAIN},
        {true, BASE_ETIMEDOUT, false, 0, "", BASE_EAGAIN},
        {false, BASE_OK, true, 200, "", BASE_OK},
        {false, BASE_OK, true, 404, "NotFound", BASE_ENOTFOUND},
        {false, BASE_OK, true, 410, "Expired", BASE_EGONE},
        {false, BASE_OK, true, 429, "", BASE_EAGAIN},
        {false, BASE_OK, true, 500, "", BASE_EIO},
        {false, BASE_OK, true, 504, "Timeout", BASE_ETIMEDOUT},
        {false, BASE_ETIMEDOUT, true, 0, "", BASE_ETIMEDOUT},
        {false, BASE_EIO, false, 0, "", BASE_EIO},
        {false, BASE_ECLOSED, true, 200, "", BASE_EIO},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct kube_resp resp = {
            .code = rows[i].code, .sent = rows[i].sent, .http_status = rows[i].http, .sent_at = 5};
        struct store_resp r = {0};

        (void)base_copy(resp.reason, sizeof resp.reason, rows[i].reason);
        kubestore_classify(&r, rows[i].write, &resp);
        cr_expect_eq(r.code, rows[i].want, "row %zu: %s", i, base_code_name(r.code));
        cr_expect(r.code == BASE_OK || r.err.msg[0], "row %zu has no text", i);
        cr_expect_eq(r.sent, 5);
    }
}

Test(kubestore, a_landed_write_that_cannot_be_read_is_unknown)
{
    struct kubestore *s = store();
    struct contract_object o = sample_binding("c1");
    struct got g = {0};

    cr_assert_eq(submit(s, STORE_CREATE, &o, &g), BASE_OK);
    fake_answer(fake_call(PATH), 201, "", "{\"kind\":");
    cr_expect_eq(g.code, BASE_EUNKNOWN);
    cr_assert_eq(submit(s, STORE_GET, NULL, &g), BASE_OK);
    fake_answer(fake_call(PATH), 200, "", "<html>");
    cr_expect_eq(g.code, BASE_EIO);
    kubestore_free(s);
}

Test(kubestore, lists_page_by_page)
{
    struct kubestore *s = store();
    struct store_req req = {
        .id = 9, .op = STORE_LIST, .kind = CONTRACT_BINDING, .selector = {.tenant = "t1", .connector = "c1"}};
    struct got g = {0};
    struct kube_call *c;
    char page[8192];

    cr_assert_eq(kubestore_submit(s, &req, on_done, &g, NULL), BASE_OK);
    c = fake_call(PATH);
    cr_expect_str_eq(c->path, PATH "?limit=500&fieldSelector=spec.tenant%3Dt1%2Cspec.connector%3Dc1");
    (void)base_fmt(page, sizeof page,
                   "{\"metadata\":{\"resourceVersion\":\"50\",\"continue\":\"a b+/=\"},\"items\":[%s]}",
                   binding_json("c1", "7"));
    fake_answer(c, 200, "", page);
    c = fake_call("continue=a%20b%2B%2F%3D");
    (void)base_fmt(page, sizeof page, "{\"metadata\":{\"resourceVersion\":\"50\"},\"items\":[%s,%s]}",
                   binding_json("c2", "8"), binding_json("c3", "9"));
    fake_answer(c, 200, "", page);
    cr_expect(g.n == 1 && g.code == BASE_OK && g.n_objects == 3 && g.id == 9);
    cr_expect_str_eq(g.list_rv, "50");
    kubestore_free(s);
    cr_expect(fake_clean());
}

Test(kubestore, an_expired_continue_starts_again)
{
    struct kubestore *s = store();
    struct store_req req = {.op = STORE_LIST, .kind = CONTRACT_BINDING};
    struct got g = {0};
    char page[8192];

    cr_assert_eq(kubestore_submit(s, &req, on_done, &g, NULL), BASE_OK);
    (void)base_fmt(page, sizeof page,
                   "{\"metadata\":{\"resourceVersion\":\"50\",\"continue\":\"x\"},\"items\":[%s]}",
                   binding_json("c1", "7"));
    fake_answer(fake_call(PATH), 200, "", page);
    fake_advance(100);
    fake_answer(fake_call("continue=x"), 410, "Expired", "{\"metadata\":{\"continue\":\"inconsistent\"}}");
    cr_expect_eq(fake_calls("continue"), 0,
                 "the token of the answer is not used: its list would be inconsistent");
    (void)base_fmt(page, sizeof page, "{\"metadata\":{\"resourceVersion\":\"60\"},\"items\":[%s]}",
                   binding_json("c2", "55"));
    fake_answer(fake_call(PATH), 200, "", page);
    cr_expect(g.n == 1 && g.code == BASE_OK && g.n_objects == 1, "rows of the first attempt are gone: %zu",
              g.n_objects);
    cr_expect_str_eq(g.list_rv, "60");
    cr_expect_eq(g.sent, fake_now(), "t0 of the attempt that counts");
    cr_assert_eq(kubestore_submit(s, &req, on_done, &g, NULL), BASE_OK);
    for (int i = 0; i < 6 && g.n == 1; i++) {
        (void)base_fmt(page, sizeof page,
                       "{\"metadata\":{\"resourceVersion\":\"50\",\"continue\":\"x\"},\"items\":[]}");
        fake_answer(fake_call(PATH), 200, "", page);
        fake_answer(fake_call("continue=x"), 410, "Expired", "{}");
    }
    cr_expect(g.n == 2 && g.code == BASE_EGONE, "not for ever");
    kubestore_free(s);
    cr_expect(fake_clean());
}

Test(kubestore, a_list_with_nonsense_is_no_list)
{
    static const char *const bad[] = {"{}",
                                      "[]",
                                      "{\"metadata\":{}}",
                                      "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"spec\":1}]}",
                                      "{\"metadata\":",
                                      "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[7]}"};
    struct kubestore *s = store();
    struct store_req req = {.op = STORE_LIST, .kind = CONTRACT_BINDING};
    struct got g = {0};

    for (unsigned i = 0; i < BASE_LEN(bad); i++) {
        cr_assert_eq(kubestore_submit(s, &req, on_done, &g, NULL), BASE_OK);
        fake_answer(fake_call(PATH), 200, "", bad[i]);
        cr_expect(g.n == i + 1 && g.code == BASE_EIO, "%s: %s", bad[i], base_code_name(g.code));
    }
    req.kind = CONTRACT_SERVICE;
    (void)base_copy(req.selector.node, sizeof req.selector.node, "edge1");
    cr_expect_eq(kubestore_submit(s, &req, on_done, &g, NULL), BASE_EINVAL,
                 "a selector that the kind does not have");
    kubestore_free(s);
    cr_expect(fake_clean());
}

Test(kubestore, freed_with_requests_in_flight)
{
    struct kubestore *s = store();
    struct store_req req = {.op = STORE_LIST, .kind = CONTRACT_BINDING};
    struct got g = {0};

    cr_assert_eq(submit(s, STORE_GET, NULL, &g), BASE_OK);
    cr_assert_eq(submit(s, STORE_GET, NULL, &g), BASE_OK);
    cr_assert_eq(kubestore_submit(s, &req, on_done, &g, NULL), BASE_OK);
    kubestore_free(s);
    cr_expect(g.n == 0 && fake_clean());
}

Test(kubestore, freed_by_its_own_callback)
{
    struct got g = {0};
    struct store_req req = {.op = STORE_LIST, .kind = CONTRACT_BINDING};

    g.free_me = store();
    cr_assert_eq(submit(g.free_me, STORE_GET, NULL, &g), BASE_OK);
    cr_assert_eq(submit(g.free_me, STORE_GET, NULL, &g), BASE_OK);
    fake_answer(fake_call(PATH), 200, "", binding_json("c1", "7"));
    cr_expect(g.n == 1 && fake_clean());
    g.free_me = store();
    cr_assert_eq(kubestore_submit(g.free_me, &req, on_done, &g, NULL), BASE_OK);
    fake_answer(fake_call(PATH), 200, "", "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[7]}");
    cr_expect(g.n == 2 && fake_clean());
}

Test(kubestore, requests_are_bounded)
{
    struct kubestore *s = store();
    struct got g = {0};

    for (int i = 0; i < 1024; i++)
        cr_assert_eq(submit(s, STORE_GET, NULL, &g), BASE_OK);
    cr_expect_eq(submit(s, STORE_GET, NULL, &g), BASE_EFULL);
    fake_answer(fake_call(PATH), 404, "NotFound", "{}");
    cr_expect_eq(submit(s, STORE_GET, NULL, &g), BASE_OK);
    kubestore_free(s);
}

Test(kubestore, namespace_must_be_one)
{
    struct kubestore *s = NULL;
    struct base_err err = {0};

    cr_expect_eq(kubestore_new(&s, NULL, NULL, "../kube-system", NULL, &err), BASE_EINVAL);
    cr_expect(strstr(err.msg, "DNS label"), "%s", err.msg);
}
