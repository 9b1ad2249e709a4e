/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server goes back (contract section 5): who notices, and that every watch of the store starts over.
 */
#include <criterion/criterion.h>

#include "contract/test_samples.h"
#include "kubestore/fake.h"
#include "kubestore/kubestore_int.h"
#include "kubestore/watch_int.h"

#define LIST "?limit=500"
#define STEP1 "services?limit=1"
#define MAIN "timeoutSeconds=2"

struct seen {
    enum kubestore_notice what[64];
    char version[64][CONTRACT_RV_SIZE];
    unsigned n;
};
struct two {
    struct kubestore *s;
    struct kubestore_watch *w[2];
    struct seen seen[2];
    struct store_resp resp;
    unsigned answers;
};

static void on_note(void *arg, const struct kubestore_note *k)
{
    struct seen *s = arg;

    cr_assert_lt(s->n, 64u);
    s->what[s->n] = k->what;
    (void)base_copy(s->version[s->n++], CONTRACT_RV_SIZE, k->version ? k->version : "");
}

static unsigned count(const struct seen *s, enum kubestore_notice what)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n; i++)
        n += s->what[i] == what;
    return n;
}

static void list(const char *part, const char *rv)
{
    char page[256];

    (void)base_fmt(page, sizeof page, "{\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[]}", rv);
    fake_answer(fake_call(part), 200, "", page);
}

/* Services at version 100 and instances at 90, both watched. */
static struct two *running(void)
{
    static const enum contract_kind kinds[] = {CONTRACT_SERVICE, CONTRACT_INSTANCE};
    static struct two t;
    struct base_err err = {0};

    memset(&t, 0, sizeof t);
    fake_reset();
    cr_assert_eq(kubestore_new(&t.s, NULL, NULL, "hf", NULL, &err), BASE_OK);
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(kubestore_watch_new(&t.w[i], t.s, kinds[i], &(struct store_selector){.node = ""},
                                         on_note, &t.seen[i], &err),
                     BASE_OK, "%s", err.msg);
    fake_advance(0);
    list("services" LIST, "100");
    list("instances" LIST, "90");
    cr_assert_eq(fake_calls(MAIN), 2);
    t.seen[0].n = t.seen[1].n = 0;
    return &t;
}

static void finish(struct two *t)
{
    for (unsigned i = 0; i < 2; i++)
        kubestore_watch_free(t->w[i]);
    kubestore_free(t->s);
    cr_expect(fake_clean(), "something was left behind");
}

/* Both were told once and list again; what comes is taken, however low. */
static void started_over(struct two *t)
{
    fake_advance(0);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(count(&t->seen[i], KUBESTORE_REGRESSED), 1u, "watch %u", i);
        cr_assert_eq(count(&t->seen[i], KUBESTORE_RELIST), 0u);
        cr_assert(!kubestore_watch_synced(t->w[i]));
    }
    cr_assert_eq(fake_calls(MAIN), 0, "an old stream is still open");
    fake_advance(300);
    list("services" LIST, "7");
    list("instances" LIST, "7");
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(count(&t->seen[i], KUBESTORE_LISTED), 1u, "watch %u", i);
        cr_assert_eq(count(&t->seen[i], KUBESTORE_REGRESSED), 1u, "watch %u", i);
        cr_assert_str_eq(t->seen[i].version[t->seen[i].n - 1], "7");
    }
    cr_assert_eq(fake_calls("resourceVersion=7"), 2, "they go on from there");
    finish(t);
}

static void step1(const char *rv)
{
    list(STEP1, rv);
}

Test(kubestore_regress, r_of_a_proof_below_what_was_seen)
{
    struct two *t = running();

    kubestore_watch_prove(t->w[0], 1, 8 * BASE_SEC);
    kubestore_watch_prove(t->w[0], 2, 8 * BASE_SEC);
    fake_advance(0);
    step1("99");
    fake_advance(0);
    cr_assert_eq(count(&t->seen[0], KUBESTORE_NOT_PROVED), 2u, "both proofs are void");
    started_over(t);
}

Test(kubestore_regress, a_list_below_what_was_seen)
{
    struct two *t = running();

    fake_answer(fake_call("instances?watch"), 410, "Expired", "{}");
    fake_advance(300);
    list("instances" LIST, "89");
    cr_assert_eq(count(&t->seen[1], KUBESTORE_RELIST), 0u, "it is not applied");
    started_over(t);
}

/* ---- writes and lists of one's own ---- */
static void answered(void *arg, const struct store_resp *r)
{
    struct two *t = arg;

    t->resp.code = r->code;
    t->answers++;
}

static struct contract_object instance(const char *rv)
{
    struct contract_object o = sample_instance("edge1", sample_uuid(7));

    o.u.meta.uid = sample_uuid(8);
    (void)base_copy(o.u.meta.rv, sizeof o.u.meta.rv, rv);
    return o;
}

static void create(struct two *t, enum store_op op, const char *rv)
{
    struct contract_object o = instance(rv);
    struct store_req req = {.op = op, .kind = CONTRACT_INSTANCE, .object = &o};
    struct base_err err = {0};

    if (op == STORE_CREATE) {
        o.u.meta.uid = (struct base_uuid){{0}};
        o.u.meta.rv[0] = '\0';
    }
    if (op == STORE_LIST)
        req.object = NULL;
    if (op == STORE_UPDATE) { /* its text is known: no read before the PUT */
        struct base_buf json;
        base_buf_init(&json, 65536);
        cr_assert_eq(contract_encode(&json, &o, BASE_STR(""), &err), BASE_OK);
        kubestore_raw_put(t->s->raw, &o, (struct base_str){json.data, json.len});
        base_buf_fini(&json);
    }
    cr_assert_eq(kubestore_submit(t->s, &req, answered, t, &err), BASE_OK, "%s", err.msg);
}

static void answer(const char *part, const char *rv)
{
    struct contract_object o = instance(rv);
    struct base_err err = {0};
    struct base_buf json;
    char text[8192];

    base_buf_init(&json, sizeof text - 1);
    cr_assert_eq(contract_encode(&json, &o, BASE_STR(""), &err), BASE_OK, "%s", err.msg);
    memcpy(text, json.data, json.len);
    text[json.len] = '\0';
    base_buf_fini(&json);
    fake_answer(fake_call(part), 200, "", text);
}
#define WRITE "fieldValidation=Strict"

Test(kubestore_regress, a_write_that_landed_at_or_below_what_was_seen)
{
    static const char *const at[] = {"90", "60"};

    for (unsigned i = 0; i < 2; i++) {
        struct two *t = running();

        create(t, STORE_CREATE, "");
        answer(WRITE, at[i]);
        cr_assert(t->answers == 1 && t->resp.code == BASE_OK, "it did land");
        started_over(t);
    }
}

Test(kubestore_regress, an_update_that_landed_below_what_was_seen)
{
    struct two *t = running();

    create(t, STORE_UPDATE, "50");
    answer(WRITE, "60");
    started_over(t);
}

Test(kubestore_regress, a_list_of_ones_own_below_what_was_seen)
{
    struct two *t = running();

    create(t, STORE_LIST, "");
    list("instances" LIST, "60");
    started_over(t);
}

static void goes_on(struct two *t)
{
    fake_advance(300);
    cr_assert_eq(count(&t->seen[0], KUBESTORE_REGRESSED) + count(&t->seen[1], KUBESTORE_REGRESSED), 0u);
    cr_assert_eq(fake_calls(MAIN), 2);
    finish(t);
}

/* A PUT that changes nothing makes no version; and a version seen only after the write was sent is no
 * measure. */
Test(kubestore_regress, what_has_not_gone_back)
{
    struct two *t = running();

    create(t, STORE_UPDATE, "50");
    answer(WRITE, "50");
    goes_on(t);
    t = running();
    create(t, STORE_CREATE, "");
    kubestore_saw(t->s, CONTRACT_INSTANCE, "200");
    answer(WRITE, "150");
    goes_on(t);
}

/* ---- what is on its way ---- */
/* An answer of the lost history: its version is no measure for the new one, its text no base for a write. */
Test(kubestore_regress, an_answer_to_what_was_sent_before)
{
    struct two *t = running();
    struct contract_object o = instance("5000");

    create(t, STORE_CREATE, "");
    kubestore_start_over(t->s, "test");
    answer(WRITE, "5000");
    cr_assert_eq(t->answers, 1u, "it comes");
    cr_assert_eq(kubestore_raw_get(t->s->raw, CONTRACT_INSTANCE, o.u.meta.name, &o.u.meta.uid, "5000").len,
                 0u);
    started_over(t);
}

/* Between the notice and the new list nothing of an old stream or list is told. */
Test(kubestore_regress, nothing_of_the_old_streams_is_told)
{
    struct two *t = running();

    fake_answer(fake_call("instances?watch"), 410, "Expired", "{}");
    fake_advance(300);
    cr_assert_eq(fake_calls("instances" LIST), 1);
    kubestore_start_over(t->s, "test");
    (void)fake_line(fake_call("services?watch"),
                    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"name\":\"x\",\"resourceVersion\":"
                    "\"9000\"}}}");
    list("instances" LIST, "9000");
    started_over(t);
}

Test(kubestore_regress, a_raw_text_is_void)
{
    struct two *t = running();
    struct contract_object o = instance("50");

    kubestore_raw_put(t->s->raw, &o, BASE_STR("{}"));
    kubestore_start_over(t->s, "test");
    cr_assert_eq(kubestore_raw_get(t->s->raw, CONTRACT_INSTANCE, o.u.meta.name, &o.u.meta.uid, "50").len, 0u);
    started_over(t);
}
