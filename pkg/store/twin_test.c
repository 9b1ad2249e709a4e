/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/mem.h"
#include "contract/test_samples.h"

#define WALL (SAMPLE_T0 + 500000) /* half past a second */

static const struct store_identity admin = {.role = STORE_ADMIN};
static struct store_identity on(enum store_role role, const char *node, unsigned uid)
{
    struct store_identity who = {.role = role};

    (void)base_copy(who.node, sizeof who.node, node);
    who.node_uid = sample_uuid(uid);
    return who;
}

static struct store_resp run(struct store_twin *t, const struct store_identity *who, enum store_op op,
                             const struct contract_object *o)
{
    struct store_req req = {.id = 7, .op = op, .kind = o->kind, .object = o};
    struct store_resp r;

    (void)base_copy(req.name, sizeof req.name, o->u.meta.name);
    req.uid = o->u.meta.uid;
    (void)base_copy(req.rv, sizeof req.rv, o->u.meta.rv);
    cr_assert_eq(store_twin_do(t, who, WALL, &req, &r), BASE_OK);
    cr_assert_eq(r.id, 7);
    return r;
}

/* Creates as nobody in particular, without policies, and returns what is stored. */
static struct contract_object made(struct store_twin *t, struct contract_object o)
{
    struct store_resp r = run(t, NULL, STORE_CREATE, &o);

    cr_assert_eq(r.http_status, 201, "%s", r.err.msg);
    return r.objects[0];
}

static void expect(const struct store_resp *r, int http, int code, const char *reason, const char *what)
{
    cr_expect(r->http_status == http && r->code == code && strcmp(r->reason, reason) == 0,
              "%s: %d %s '%s' (%s), wanted %d %s '%s'", what, r->http_status, base_code_name(r->code),
              r->reason, r->err.msg, http, base_code_name(code), reason);
}

Test(store_twin, create_makes_system_fields)
{
    struct store_twin *t = store_twin_new(1);
    struct contract_object o = sample_claim(1, "edge1", "s1", sample_uuid(3)), s;

    o.u.meta.uid = sample_uuid(99);
    o.u.claim.status.accepted_epoch = 1;
    o.u.meta.generation = 44;
    s = made(t, o);
    cr_expect(!base_uuid_eq(&s.u.meta.uid, &o.u.meta.uid) && !base_uuid_is_zero(&s.u.meta.uid));
    cr_expect_str_eq(s.u.meta.rv, "1001");
    cr_expect_eq(s.u.meta.generation, 1);
    cr_expect_eq(s.u.meta.created, SAMPLE_T0, "whole seconds");
    cr_expect_eq(s.u.claim.status.accepted_epoch, 0, "status of a creation is dropped");
    store_twin_free(t);
}

Test(store_twin, answers_of_a_create)
{
    struct store_twin *t = store_twin_new(1);
    struct contract_object o = sample_binding("c1"), bad = o;
    struct store_resp r;

    made(t, o);
    r = run(t, NULL, STORE_CREATE, &o);
    expect(&r, 409, BASE_EEXIST, "AlreadyExists", "again");
    bad.u.binding.spec.n_identities = 0;
    r = run(t, NULL, STORE_CREATE, &bad);
    expect(&r, 422, BASE_EINVAL, "Invalid", "invalid comes before exists");
    bad = sample_binding("c2");
    (void)base_copy(bad.u.meta.rv, sizeof bad.u.meta.rv, "5");
    r = run(t, NULL, STORE_CREATE, &bad);
    expect(&r, 500, BASE_EUNKNOWN, "", "resourceVersion set");
    bad = sample_binding("c2");
    bad.kind = CONTRACT_CLAIM;
    {
        struct store_req req = {.op = STORE_CREATE, .kind = CONTRACT_BINDING, .object = &bad};

        cr_assert_eq(store_twin_do(t, NULL, WALL, &req, &r), BASE_OK);
        expect(&r, 400, BASE_EINVAL, "BadRequest", "kinds differ");
    }
    store_twin_free(t);
}

Test(store_twin, preconditions_in_the_server_s_order)
{
    struct store_twin *t = store_twin_new(1);
    struct contract_object s = made(t, sample_binding("c1")), o = s;
    struct store_resp r;

    (void)base_copy(o.u.meta.name, sizeof o.u.meta.name, "t1.nobody");
    o.u.meta.rv[0] = '\0';
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 404, BASE_ENOTFOUND, "NotFound", "missing comes first");
    o = s;
    o.u.meta.uid = sample_uuid(9);
    o.u.meta.rv[0] = '\0';
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 409, BASE_ECONFLICT, "Conflict", "uid before resourceVersion");
    o.u.meta.uid = s.u.meta.uid;
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 422, BASE_EINVAL, "Invalid", "no resourceVersion");
    (void)base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "0");
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 422, BASE_EINVAL, "Invalid", "resourceVersion 0");
    (void)base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "abc");
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 500, BASE_EUNKNOWN, "", "resourceVersion abc");
    (void)base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "7");
    o.u.binding.spec.grant_seconds = 99;
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 409, BASE_ECONFLICT, "Conflict", "stale before invalid, even with the same content");
    o = s;
    o.u.meta.uid = (struct base_uuid){{0}};
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 200, BASE_OK, "", "an absent uid is not checked");
    cr_expect_str_eq(r.objects[0].u.meta.rv, s.u.meta.rv, "nothing changed: same resourceVersion");
    o.u.binding.spec.suspended = true;
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 200, BASE_OK, "", "change");
    cr_expect_str_neq(r.objects[0].u.meta.rv, s.u.meta.rv);
    cr_expect_eq(r.objects[0].u.meta.generation, 2);
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 409, BASE_ECONFLICT, "Conflict", "the same write again");
    store_twin_free(t);
}

Test(store_twin, spec_and_status_are_written_apart)
{
    struct store_twin *t = store_twin_new(1);
    struct contract_object s = made(t, sample_binding("c1")), o = s;
    struct store_resp r;

    o.u.binding.spec.suspended = true;
    o.u.binding.status.has_prefix = true;
    o.u.binding.status.prefix = sample_prefix("fd12::1:0:1:0:0/96");
    o.u.meta.drain = true;
    r = run(t, NULL, STORE_UPDATE_STATUS, &o);
    expect(&r, 200, BASE_OK, "", "status");
    cr_expect(r.objects[0].u.binding.status.has_prefix && !r.objects[0].u.binding.spec.suspended &&
              !r.objects[0].u.meta.drain);
    cr_expect_eq(r.objects[0].u.meta.generation, 1);
    o = r.objects[0];
    o.u.binding.spec.suspended = true;
    o.u.binding.status.has_prefix = false;
    r = run(t, NULL, STORE_UPDATE, &o);
    cr_expect(r.objects[0].u.binding.status.has_prefix && r.objects[0].u.binding.spec.suspended);
    cr_expect_eq(r.objects[0].u.meta.generation, 2);
    store_twin_free(t);
}

Test(store_twin, deletion_waits_for_finalizers)
{
    struct store_twin *t = store_twin_new(1);
    struct contract_object o = sample_binding("c1"), s, d;
    struct store_resp r;

    (void)contract_finalizer_add(&o.u.meta, "x.y/z");
    s = made(t, o);
    o = s;
    o.u.meta.uid = sample_uuid(9);
    r = run(t, NULL, STORE_DELETE, &o);
    expect(&r, 409, BASE_ECONFLICT, "Conflict", "other uid");
    o = s;
    (void)base_copy(o.u.meta.rv, sizeof o.u.meta.rv, "3");
    r = run(t, NULL, STORE_DELETE, &o);
    expect(&r, 409, BASE_ECONFLICT, "Conflict", "other resourceVersion");
    r = run(t, NULL, STORE_DELETE, &s);
    expect(&r, 200, BASE_OK, "", "deleted, with finalizer");
    cr_assert_eq(r.n_objects, 1);
    d = r.objects[0];
    cr_expect_eq(d.u.meta.deleting, SAMPLE_T0);
    cr_expect_eq(d.u.meta.generation, 2);
    r = run(t, NULL, STORE_DELETE, &d);
    expect(&r, 200, BASE_OK, "", "again");
    cr_expect_str_eq(r.objects[0].u.meta.rv, d.u.meta.rv);
    o = d;
    (void)contract_finalizer_add(&o.u.meta, "x.y/new");
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 422, BASE_EINVAL, "Invalid", "new finalizer");
    o = d;
    (void)contract_finalizer_remove(&o.u.meta, "x.y/z");
    r = run(t, NULL, STORE_UPDATE, &o);
    expect(&r, 200, BASE_OK, "", "last finalizer off");
    r = run(t, NULL, STORE_GET, &o);
    expect(&r, 404, BASE_ENOTFOUND, "NotFound", "gone");
    s = made(t, sample_binding("c1"));
    r = run(t, NULL, STORE_DELETE, &s);
    expect(&r, 200, BASE_OK, "", "without finalizers");
    cr_expect_eq(r.n_objects, 0);
    r = run(t, NULL, STORE_DELETE, &s);
    expect(&r, 404, BASE_ENOTFOUND, "NotFound", "again");
    o = made(t, sample_binding("c1"));
    s.u.binding.spec.suspended = true;
    r = run(t, NULL, STORE_UPDATE, &s);
    expect(&r, 409, BASE_ECONFLICT, "Conflict", "name reused, old uid");
    store_twin_free(t);
}

Test(store_twin, rbac_then_schema_then_policy)
{
    struct store_twin *t = store_twin_new(1);
    struct contract_object svc = made(t, sample_service("s1", "t1", "fd12:0:0:1::/64", SAMPLE_T0));
    struct contract_object c = sample_claim(1, "edge1", "s1", svc.u.meta.uid), bad = c;
    struct store_identity a1 = on(STORE_AGENT, "edge1", 21), a2 = on(STORE_AGENT, "edge2", 22),
                          f1 = on(STORE_FOUNDATION, "edge1", 21), nopod = {.role = STORE_AGENT},
                          auth = {.role = STORE_AUTHORITY}, op = {.role = STORE_OPERATOR};
    struct store_resp r;

    bad.u.claim.spec.epoch = 3;
    r = run(t, &f1, STORE_CREATE, &bad);
    expect(&r, 403, BASE_EDENIED, "Forbidden", "RBAC before schema");
    r = run(t, &a2, STORE_CREATE, &bad);
    expect(&r, 422, BASE_EINVAL, "Invalid", "schema before policy");
    r = run(t, &a2, STORE_CREATE, &c);
    expect(&r, 403, BASE_EDENIED, "Forbidden", "holder of another node");
    r = run(t, &nopod, STORE_CREATE, &c);
    expect(&r, 403, BASE_EDENIED, "Forbidden", "no node claim");
    bad = c;
    bad.u.claim.spec.service.uid = sample_uuid(77);
    r = run(t, &a1, STORE_CREATE, &bad);
    expect(&r, 403, BASE_EDENIED, "Forbidden", "service of another uid");
    r = run(t, &a1, STORE_CREATE, &c);
    expect(&r, 201, BASE_OK, "", "own claim");
    r = run(t, &a2, STORE_CREATE, &c);
    expect(&r, 403, BASE_EDENIED, "Forbidden", "policy before AlreadyExists");
    r = run(t, &auth, STORE_GET, &c);
    expect(&r, 403, BASE_EDENIED, "Forbidden", "the authority reads no claims");
    r = run(t, &op, STORE_GET, &c);
    expect(&r, 200, BASE_OK, "", "the operator does");
    store_twin_free(t);
}

Test(store_twin, policies_hold_for_the_administrator_too)
{
    struct store_twin *t = store_twin_new(1);
    struct contract_object o = sample_service("s1", "t1", "fd12:0:0:1::/64", SAMPLE_T0 + 303 * SAMPLE_S), c;
    struct store_resp r;

    c = sample_claim(9, "edge1", "s1", sample_uuid(5));
    r = run(t, &admin, STORE_CREATE, &c);
    expect(&r, 201, BASE_OK, "", "no service at all: the foundation accepts none");
    r = run(t, &admin, STORE_CREATE, &o);
    expect(&r, 201, BASE_OK, "", "303 s from the whole second");
    o = r.objects[0];
    o.u.service.valid_until += 1;
    r = run(t, &admin, STORE_UPDATE, &o);
    expect(&r, 403, BASE_EDENIED, "Forbidden", "more than that");
    c = sample_claim(1, "edge1", "s1", o.u.meta.uid);
    (void)contract_finalizer_add(&c.u.meta, "x.y/z");
    r = run(t, &admin, STORE_CREATE, &c);
    expect(&r, 201, BASE_OK, "", "claim");
    c = r.objects[0];
    r = run(t, &admin, STORE_DELETE, &c);
    c = r.objects[0];
    sample_takeover(&c, "edge2", 9);
    r = run(t, &admin, STORE_UPDATE, &c);
    expect(&r, 403, BASE_EDENIED, "Forbidden", "takeover of a deleting row");
    store_twin_free(t);
}

Test(store_twin, lists_by_selector_in_name_order)
{
    struct store_twin *t = store_twin_new(1);
    struct store_req req = {.op = STORE_LIST, .kind = CONTRACT_CLAIM};
    struct store_resp r;

    for (unsigned i = 9; i > 0; i--)
        made(t, sample_claim(i, i % 2 ? "edge1" : "edge2", "s1", sample_uuid(3)));
    (void)base_copy(req.selector.node, sizeof req.selector.node, "edge1");
    cr_assert_eq(store_twin_do(t, NULL, WALL, &req, &r), BASE_OK);
    cr_assert_eq(r.n_objects, 5);
    cr_expect_str_eq(r.list_rv, "1009");
    for (size_t i = 0; i < r.n_objects; i++)
        cr_expect_eq(r.objects[i].u.claim.spec.prefix.addr.b[11], 2 * i + 1);
    (void)base_copy(req.selector.connector, sizeof req.selector.connector, "c3");
    cr_assert_eq(store_twin_do(t, NULL, WALL, &req, &r), BASE_OK);
    cr_expect_eq(r.n_objects, 1);
    req.kind = CONTRACT_SERVICE;
    cr_assert_eq(store_twin_do(t, NULL, WALL, &req, &r), BASE_OK);
    expect(&r, 400, BASE_EINVAL, "BadRequest", "services have no node");
    store_twin_free(t);
}

static void next_is(struct store_twin *t, const struct store_selector *sel, char rv[CONTRACT_RV_SIZE],
                    enum store_event_type type, int64_t epoch, const char *what)
{
    struct store_event ev;
    int rc = store_twin_watch(t, CONTRACT_CLAIM, sel, rv, &ev, rv);

    cr_assert_eq(rc, BASE_OK, "%s: %d", what, rc);
    cr_expect_eq(ev.type, type, "%s: type %d", what, (int)ev.type);
    cr_expect_eq(ev.object.u.claim.spec.epoch, epoch, "%s: epoch %lld", what,
                 (long long)ev.object.u.claim.spec.epoch);
    cr_expect_str_eq(ev.object.u.meta.rv, rv, "%s: an event carries its own version", what);
}

Test(store_twin, watch_sees_rows_enter_and_leave_its_selector)
{
    struct store_twin *t = store_twin_new(1);
    struct store_selector sel = {.node = "edge1"};
    char rv[CONTRACT_RV_SIZE], start[CONTRACT_RV_SIZE], now[CONTRACT_RV_SIZE];
    struct contract_object s;
    struct store_event ev;
    struct store_resp r;

    store_twin_rv(t, rv);
    memcpy(start, rv, sizeof start);
    s = made(t, sample_claim(1, "edge1", "s1", sample_uuid(3)));
    made(t, sample_claim(2, "edge2", "s1", sample_uuid(3)));
    s.u.claim.spec.correlation.b[1] = 1;
    s = run(t, NULL, STORE_UPDATE, &s).objects[0];
    sample_takeover(&s, "edge2", 9);
    s = run(t, NULL, STORE_UPDATE, &s).objects[0];
    sample_takeover(&s, "edge1", 10);
    s = run(t, NULL, STORE_UPDATE, &s).objects[0];
    r = run(t, NULL, STORE_DELETE, &s);
    cr_assert_eq(r.code, BASE_OK);
    made(t, sample_binding("c1"));
    next_is(t, &sel, rv, STORE_ADDED, 1, "created");
    next_is(t, &sel, rv, STORE_MODIFIED, 1, "changed");
    next_is(t, &sel, rv, STORE_DELETED, 1, "left: the old content with the new version");
    next_is(t, &sel, rv, STORE_ADDED, 3, "came back");
    next_is(t, &sel, rv, STORE_DELETED, 3, "deleted");
    cr_expect_eq(store_twin_watch(t, CONTRACT_CLAIM, &sel, rv, &ev, rv), BASE_EAGAIN);
    store_twin_rv(t, now);
    cr_expect_str_eq(rv, now, "a bookmark of the present, past the binding's version");
    cr_expect_eq(store_twin_watch(t, CONTRACT_CLAIM, &sel, "99999", &ev, rv), BASE_EAGAIN);
    cr_expect_str_eq(rv, "99999", "a future version is silence");
    cr_expect_eq(store_twin_watch(t, CONTRACT_CLAIM, &sel, "nonsense", &ev, rv), BASE_EGONE);
    store_twin_compact(t);
    cr_expect_eq(store_twin_watch(t, CONTRACT_CLAIM, &sel, start, &ev, rv), BASE_EGONE);
    cr_expect_eq(store_twin_watch(t, CONTRACT_CLAIM, &sel, now, &ev, rv), BASE_EAGAIN);
    store_twin_free(t);
}

Test(store_twin, history_is_bounded)
{
    struct store_twin *t = store_twin_new(1);
    struct contract_object s = made(t, sample_instance("edge1", sample_uuid(3)));
    char start[CONTRACT_RV_SIZE], rv[CONTRACT_RV_SIZE];
    struct store_event ev;

    store_twin_rv(t, start);
    for (int i = 0; i < 5000; i++) {
        s.u.instance.spec.renew.boot_time_us++;
        s = run(t, NULL, STORE_UPDATE, &s).objects[0];
    }
    cr_expect_eq(store_twin_watch(t, CONTRACT_INSTANCE, NULL, start, &ev, rv), BASE_EGONE);
    store_twin_free(t);
}

Test(store_twin, restore_goes_back_and_makes_new_uids)
{
    struct store_twin *t = store_twin_new(1), *backup;
    struct contract_object before = made(t, sample_binding("c1")), after, again;
    char rv[CONTRACT_RV_SIZE], then[CONTRACT_RV_SIZE];
    struct store_event ev;
    struct store_resp r;

    store_twin_rv(t, then);
    backup = store_twin_snapshot(t);
    cr_assert(backup);
    after = made(t, sample_binding("c2"));
    before.u.binding.spec.suspended = true;
    (void)run(t, NULL, STORE_UPDATE, &before);
    cr_assert_eq(store_twin_restore(t, backup), BASE_OK);
    store_twin_rv(t, rv);
    cr_expect_str_eq(rv, then);
    r = run(t, NULL, STORE_GET, &before);
    cr_expect(!r.objects[0].u.binding.spec.suspended);
    r = run(t, NULL, STORE_GET, &after);
    expect(&r, 404, BASE_ENOTFOUND, "NotFound", "made after the backup");
    cr_expect_eq(store_twin_watch(t, CONTRACT_BINDING, NULL, "1000", &ev, rv), BASE_EGONE);
    again = made(t, sample_binding("c2"));
    cr_expect(!base_uuid_eq(&again.u.meta.uid, &after.u.meta.uid));
    cr_assert_eq(store_twin_restore(t, backup), BASE_OK, "a backup can be used again");
    store_twin_bump(t, 5000);
    r = run(t, NULL, STORE_GET, &before);
    cr_expect_str_eq(r.objects[0].u.meta.rv, before.u.meta.rv, "objects keep their versions");
    cr_expect_eq(store_twin_watch(t, CONTRACT_BINDING, NULL, "5000", &ev, rv), BASE_EGONE);
    after = made(t, sample_binding("c2"));
    cr_expect_str_eq(after.u.meta.rv, "5002", "and what is written goes on above");
    store_twin_free(t);
    r = run(backup, NULL, STORE_GET, &before);
    expect(&r, 200, BASE_OK, "", "a backup outlives its source");
    store_twin_free(backup);
}

Test(store_twin, same_seed_same_uids)
{
    struct store_twin *a = store_twin_new(5), *b = store_twin_new(5), *c = store_twin_new(6);
    struct contract_object x = made(a, sample_binding("c1")), y = made(b, sample_binding("c1")),
                           z = made(c, sample_binding("c1"));

    cr_expect(base_uuid_eq(&x.u.meta.uid, &y.u.meta.uid));
    cr_expect(!base_uuid_eq(&x.u.meta.uid, &z.u.meta.uid));
    store_twin_free(a);
    store_twin_free(b);
    store_twin_free(c);
}

Test(store_twin, without_memory_nothing_changes)
{
    struct contract_object o = sample_binding("c1");
    struct store_req req = {.op = STORE_CREATE, .kind = CONTRACT_BINDING, .object = &o};
    struct store_resp r;
    int rc = BASE_ENOMEM;

    for (unsigned long n = 1; n < 50 && rc != BASE_OK; n++) {
        struct store_twin *t = store_twin_new(1);
        char rv[CONTRACT_RV_SIZE];

        base_mem_fail_after(n);
        rc = store_twin_do(t, NULL, WALL, &req, &r);
        base_mem_fail_after(0);
        store_twin_rv(t, rv);
        cr_expect(rc == BASE_OK || (rc == BASE_ENOMEM && strcmp(rv, "1000") == 0),
                  "allocation %lu: %d, version %s", n, rc, rv);
        (void)run(t, NULL, STORE_GET, &o);
        store_twin_free(t);
    }
    cr_expect_eq(rc, BASE_OK);
}

Test(store_selector, query)
{
    struct store_selector sel = {.tenant = "t1", .connector = "c1"};
    struct contract_object c = sample_claim(1, "edge1", "s1", sample_uuid(3));
    char q[256];
    struct base_err err = {0};

    cr_expect_eq(store_selector_query(q, sizeof q, CONTRACT_CLAIM, &sel, &err), BASE_OK);
    cr_expect_str_eq(q, "spec.tenant=t1,spec.connector=c1");
    cr_expect(store_selector_match(&sel, &c));
    cr_expect_eq(store_selector_query(q, sizeof q, CONTRACT_INSTANCE, &sel, &err), BASE_EINVAL);
    cr_expect(strstr(err.msg, "tenant"), "%s", err.msg);
    cr_expect_eq(store_selector_query(q, 10, CONTRACT_CLAIM, &sel, &err), BASE_EFULL);
    cr_expect_eq(store_selector_query(q, sizeof q, CONTRACT_CLAIM, NULL, &err), BASE_OK);
    cr_expect_str_eq(q, "");
    (void)base_copy(sel.previous_node, sizeof sel.previous_node, "edge1");
    cr_expect(!store_selector_match(&sel, &c), "an absent previous matches no node");
}
