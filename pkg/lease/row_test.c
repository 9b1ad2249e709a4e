/* SPDX-License-Identifier: Apache-2.0 */
#include "lease/row.h"

#include <criterion/criterion.h>
#include <string.h>

static struct base_uuid id(uint8_t n)
{
    uint8_t b[16] = {n};
    return base_uuid_v4(b);
}

static struct base_prefix prefix(const char *text)
{
    struct base_prefix p;
    cr_assert_eq(base_prefix_parse(&p, base_str_of(text)), BASE_OK);
    return p;
}

static struct lease_self self(uint8_t process)
{
    struct lease_self me = {.provider = "masque",
                            .node = "edge1",
                            .instance = "masque.edge1",
                            .node_uid = id(1),
                            .boot_id = id(2),
                            .process_id = id(process),
                            .instance_uid = id(4),
                            .epoch = 7,
                            .lease_seconds = 30};
    return me;
}

static const struct contract_ref service = {.name = "svc-a"}, attachment = {.name = "masque.edge1.vpc-a"};

static struct lease_target target(void)
{
    return (struct lease_target){.tenant = "acme",
                                 .connector = "site1",
                                 .vpc = "vpc-a",
                                 .prefix = prefix("fd12:0:0:1:1::/96"),
                                 .service = &service,
                                 .attachment = &attachment};
}

/* A row at epoch 3, held by process `p`, as it is read. */
static struct contract_claim row(uint8_t p)
{
    struct contract_claim r;
    struct lease_self me = self(p);
    struct lease_target t = target();
    struct base_uuid lease = id(50);
    struct base_correlation c = {{1}};
    lease_build_acquire(&r, &me, &t, &lease, 1000, &c);
    r.meta.uid = id(60);
    base_copy(r.meta.rv, sizeof r.meta.rv, "100");
    r.meta.n_finalizers = 1;
    base_copy(r.meta.finalizers[0], 128, "gate.edge.galactic.datumapis.com/x");
    r.spec.epoch = 3;
    r.spec.previous.epoch = 2;
    base_copy(r.spec.previous.node, 64, "edge9");
    return r;
}

Test(lease_row, decisions)
{
    static const struct {
        const char *what;
        enum lease_op op;
        uint8_t holder; /* process; 0 = no row */
        bool released, deleting, denied, live;
        int64_t closed, epoch;
        uint8_t lease; /* of a release */
        const char *connector, *vpc;
        enum lease_reason want;
    } rows[] = {
        {"acquire: no row", LEASE_ACQUIRE, 0, 0, 0, 0, 0, 0, 0, 0, "site1", "vpc-a", LEASE_OK},
        {"acquire: held", LEASE_ACQUIRE, 9, 0, 0, 0, 0, 0, 0, 0, "site1", "vpc-a", LEASE_HELD},
        {"acquire: released", LEASE_ACQUIRE, 9, 1, 0, 0, 0, 3, 0, 0, "site1", "vpc-a", LEASE_RELEASED},
        {"acquire: mine", LEASE_ACQUIRE, 3, 0, 0, 0, 0, 0, 0, 0, "site1", "vpc-a", LEASE_HELD},
        {"takeover: no row", LEASE_TAKEOVER, 0, 0, 0, 0, 0, 0, 3, 0, "site1", "vpc-a", LEASE_ABSENT},
        {"takeover: held", LEASE_TAKEOVER, 9, 0, 0, 0, 0, 0, 3, 0, "site1", "vpc-a", LEASE_OK},
        {"takeover: released", LEASE_TAKEOVER, 9, 1, 0, 0, 0, 3, 3, 0, "site1", "vpc-a", LEASE_OK},
        {"takeover: mine", LEASE_TAKEOVER, 3, 0, 0, 0, 0, 0, 3, 0, "site1", "vpc-a", LEASE_OK},
        {"takeover: other epoch", LEASE_TAKEOVER, 9, 0, 0, 0, 0, 0, 2, 0, "site1", "vpc-a",
         LEASE_OTHER_EPOCH},
        {"takeover: deleting", LEASE_TAKEOVER, 9, 0, 1, 0, 0, 0, 3, 0, "site1", "vpc-a", LEASE_DELETING},
        {"takeover: another's", LEASE_TAKEOVER, 9, 0, 0, 0, 0, 0, 3, 0, "site2", "vpc-a",
         LEASE_OTHER_CONNECTOR},
        {"takeover: another VPC", LEASE_TAKEOVER, 9, 0, 0, 0, 0, 0, 3, 0, "site1", "vpc-b", LEASE_OTHER_VPC},
        {"denied, live", LEASE_TAKEOVER, 9, 0, 0, 1, 1, 0, 3, 0, "site1", "vpc-a", LEASE_DENIED},
        {"denied, silent", LEASE_TAKEOVER, 9, 0, 0, 1, 0, 0, 3, 0, "site1", "vpc-a", LEASE_OK},
        {"denied, released", LEASE_TAKEOVER, 9, 1, 0, 1, 1, 0, 3, 0, "site1", "vpc-a", LEASE_OK},
        {"denied, closed", LEASE_TAKEOVER, 9, 0, 0, 1, 1, 3, 3, 0, "site1", "vpc-a", LEASE_OK},
        {"denied, mine", LEASE_TAKEOVER, 3, 0, 0, 1, 1, 0, 3, 0, "site1", "vpc-a", LEASE_OK},
        {"closing: any", LEASE_CLOSING, 9, 0, 0, 1, 1, 0, 3, 0, "site1", "vpc-b", LEASE_OK},
        {"closing: deleting", LEASE_CLOSING, 9, 0, 1, 0, 0, 0, 3, 0, "site1", "vpc-a", LEASE_DELETING},
        {"closing: other epoch", LEASE_CLOSING, 9, 0, 0, 0, 0, 0, 4, 0, "site1", "vpc-a", LEASE_OTHER_EPOCH},
        {"release: mine", LEASE_RELEASE, 3, 0, 0, 0, 0, 0, 3, 50, "site1", "vpc-a", LEASE_OK},
        {"release: deleting", LEASE_RELEASE, 3, 0, 1, 0, 0, 0, 3, 50, "site1", "vpc-a", LEASE_OK},
        {"release: gone", LEASE_RELEASE, 0, 0, 0, 0, 0, 0, 3, 50, "site1", "vpc-a", LEASE_ABSENT},
        {"release: again", LEASE_RELEASE, 3, 1, 0, 0, 0, 0, 3, 50, "site1", "vpc-a", LEASE_RELEASED},
        {"release: other holder", LEASE_RELEASE, 9, 0, 0, 0, 0, 0, 3, 50, "site1", "vpc-a",
         LEASE_OTHER_HOLDER},
        {"release: other epoch", LEASE_RELEASE, 3, 0, 0, 0, 0, 0, 2, 50, "site1", "vpc-a", LEASE_OTHER_EPOCH},
        {"release: other lease", LEASE_RELEASE, 3, 0, 0, 0, 0, 0, 3, 51, "site1", "vpc-a", LEASE_OTHER_LEASE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lease_self me = self(3);
        struct lease_target t = target();
        struct contract_claim r = row(rows[i].holder);
        struct base_uuid lease = id(rows[i].lease);
        t.connector = rows[i].connector;
        t.vpc = rows[i].vpc;
        r.spec.release_time = rows[i].released ? 5 : 0;
        r.meta.deleting = rows[i].deleting ? 5 : 0;
        r.status.closed_epoch = rows[i].closed;
        struct lease_ask ask = {.op = rows[i].op,
                                .me = &me,
                                .target = rows[i].op == LEASE_CLOSING ? NULL : &t,
                                .epoch = rows[i].epoch,
                                .lease_uuid = &lease,
                                .takeover_denied = rows[i].denied,
                                .holder_live = rows[i].live};
        enum lease_reason got = lease_decide(&ask, rows[i].holder ? &r : NULL);
        cr_assert_eq(got, rows[i].want, "%s: %s", rows[i].what, lease_reason_name(got));
    }
}

Test(lease_row, other_parts_of_the_holder)
{
    struct lease_self me = self(3);
    struct contract_claim r = row(3);
    cr_assert(lease_row_mine(&r, &me));
    for (int i = 0; i < 4; i++) {
        struct contract_claim x = r;
        if (i == 0)
            x.spec.holder.instance_uid = id(99);
        if (i == 1)
            x.spec.holder.instance_epoch++;
        if (i == 2)
            x.spec.holder.boot_id = id(99);
        if (i == 3)
            base_copy(x.spec.holder.node, 64, "edge2");
        cr_assert_not(lease_row_mine(&x, &me), "%d", i);
    }
    me.process_id = (struct base_uuid){{0}};
    r.spec.holder.process_id = me.process_id;
    cr_assert_not(lease_row_mine(&r, &me), "no process has no identity");
}

Test(lease_row, epoch_at_its_end)
{
    struct lease_self me = self(3);
    struct lease_target t = target();
    struct contract_claim r = row(9);
    r.spec.epoch = LEASE_EPOCH_MAX;
    struct lease_ask ask = {.op = LEASE_TAKEOVER, .me = &me, .target = &t, .epoch = LEASE_EPOCH_MAX};
    cr_assert_eq(lease_decide(&ask, &r), LEASE_EPOCH_FULL);
    r.spec.epoch = ask.epoch = LEASE_EPOCH_MAX - 1;
    cr_assert_eq(lease_decide(&ask, &r), LEASE_OK);
}

Test(lease_row, what_an_acquire_writes)
{
    struct contract_claim r = row(3);
    cr_assert_str_eq(r.meta.name, "rc-fd1200000000000100010000");
    cr_assert_str_eq(r.spec.holder.instance, "masque.edge1");
    cr_assert_eq(r.spec.holder.instance_epoch, 7);
    cr_assert_eq(r.spec.lease_seconds, 30);
    cr_assert_eq(r.spec.max_lease_seconds, 30);
    cr_assert_eq(r.spec.acquire_time, 1000);
    cr_assert_str_eq(r.spec.service.name, "svc-a");
    cr_assert_str_eq(r.spec.attachment.name, "masque.edge1.vpc-a");
}

Test(lease_row, what_a_takeover_writes)
{
    static const struct {
        int64_t closed;
        int32_t old_lease, old_max, mine, want_max;
    } rows[] = {
        {0, 30, 30, 30, 30}, {0, 60, 60, 30, 60},   {0, 30, 300, 30, 300}, {2, 60, 60, 30, 60},
        {3, 60, 60, 30, 30}, {0, 30, 30, 120, 120}, {3, 30, 300, 60, 60},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lease_self me = self(3);
        struct lease_target t = target();
        struct contract_claim r = row(9), old;
        struct base_uuid lease = id(77);
        struct base_correlation c = {{9}};
        base_copy(r.spec.holder.node, 64, "edge2");
        r.spec.holder.boot_id = id(88);
        r.spec.release_time = 7;
        r.spec.lease_seconds = rows[i].old_lease;
        r.spec.max_lease_seconds = rows[i].old_max;
        r.status.closed_epoch = rows[i].closed;
        me.lease_seconds = rows[i].mine;
        old = r;
        lease_build_takeover(&r, &me, &t, &lease, 2000, &c);
        cr_assert_eq(r.spec.max_lease_seconds, rows[i].want_max, "%zu: %d", i, r.spec.max_lease_seconds);
        cr_assert_eq(r.spec.lease_seconds, rows[i].mine);
        cr_assert_eq(r.spec.epoch, 4);
        cr_assert(base_uuid_eq(&r.spec.lease_uuid, &lease));
        cr_assert_eq(r.spec.previous.epoch, 3);
        cr_assert_str_eq(r.spec.previous.node, "edge2");
        cr_assert(base_uuid_eq(&r.spec.previous.boot_id, &old.spec.holder.boot_id));
        cr_assert_eq(r.spec.release_time, 0);
        cr_assert_eq(r.spec.acquire_time, 2000);
        cr_assert(lease_row_mine(&r, &me));
        /* the preconditions and what it does not mean */
        cr_assert(base_uuid_eq(&r.meta.uid, &old.meta.uid));
        cr_assert_str_eq(r.meta.rv, old.meta.rv);
        cr_assert_eq(memcmp(&r.meta, &old.meta, sizeof r.meta), 0);
        cr_assert_eq(memcmp(&r.status, &old.status, sizeof r.status), 0);
    }
}

Test(lease_row, what_a_closing_takeover_and_a_release_write)
{
    struct lease_self me = self(3);
    struct contract_claim r = row(9), old = r;
    struct base_uuid lease = id(77);
    struct base_correlation c = {{9}};
    r.spec.service.uid = old.spec.service.uid = id(31);
    r.spec.attachment.uid = old.spec.attachment.uid = id(32);
    lease_build_closing(&r, &me, &lease, 3000, &c);
    cr_assert_eq(r.spec.epoch, 4);
    cr_assert_eq(r.spec.release_time, 3000);
    cr_assert(base_uuid_eq(&r.spec.lease_uuid, &lease));
    cr_assert(base_uuid_eq(&r.spec.service.uid, &old.spec.service.uid));
    cr_assert(base_uuid_eq(&r.spec.attachment.uid, &old.spec.attachment.uid));
    cr_assert(base_uuid_eq(&r.meta.uid, &old.meta.uid));
    cr_assert_str_eq(r.meta.rv, "100");

    r = row(3);
    old = r;
    lease_build_release(&r, 4000, &c);
    cr_assert_eq(r.spec.release_time, 4000);
    cr_assert_eq(r.spec.epoch, 3);
    cr_assert(base_uuid_eq(&r.spec.lease_uuid, &old.spec.lease_uuid));
    cr_assert(base_uuid_eq(&r.meta.uid, &old.meta.uid));
    cr_assert_str_eq(r.meta.rv, "100");
    r.spec.release_time = 0;
    r.spec.correlation = old.spec.correlation;
    cr_assert_eq(memcmp(&r, &old, sizeof r), 0, "nothing else");
}

Test(lease_row, rows_that_are_over)
{
    struct contract_claim r = row(3);
    cr_assert_not(lease_row_over(&r));
    r.status.closed_epoch = 3;
    cr_assert_not(lease_row_over(&r), "closed, not released");
    r.spec.release_time = 1;
    cr_assert(lease_row_over(&r));
    r.status.closed_epoch = 2;
    cr_assert_not(lease_row_over(&r), "released, not closed");
}

Test(lease_row, outcome_of_a_claim_write)
{
    enum { NONE, SAME, NONCE, MOVED, OTHER_UID, OTHER_UID_NONCE, RELEASED, OTHER_EPOCH_RELEASED };
    static const struct {
        enum lease_op op;
        int row;
        enum lease_outcome want;
    } rows[] = {
        {LEASE_ACQUIRE, NONE, LEASE_MAY_LAND},
        {LEASE_ACQUIRE, NONCE, LEASE_LANDED},
        {LEASE_ACQUIRE, MOVED, LEASE_OVER},
        {LEASE_TAKEOVER, NONE, LEASE_OVER},
        {LEASE_TAKEOVER, SAME, LEASE_MAY_LAND},
        {LEASE_TAKEOVER, NONCE, LEASE_LANDED},
        {LEASE_TAKEOVER, MOVED, LEASE_OVER},
        {LEASE_TAKEOVER, OTHER_UID, LEASE_OVER},
        {LEASE_TAKEOVER, OTHER_UID_NONCE, LEASE_OVER},
        {LEASE_CLOSING, SAME, LEASE_MAY_LAND},
        {LEASE_CLOSING, NONCE, LEASE_LANDED},
        {LEASE_RELEASE, SAME, LEASE_MAY_LAND},
        {LEASE_RELEASE, RELEASED, LEASE_LANDED},
        {LEASE_RELEASE, MOVED, LEASE_OVER},
        {LEASE_RELEASE, NONE, LEASE_OVER},
        {LEASE_RELEASE, OTHER_EPOCH_RELEASED, LEASE_OVER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct contract_claim r = row(9);
        struct lease_attempt a = {.op = rows[i].op, .uid = r.meta.uid, .lease_uuid = id(77), .epoch = 3};
        base_copy(a.rv, sizeof a.rv, "100");
        if (rows[i].op == LEASE_ACQUIRE)
            a.uid = (struct base_uuid){{0}};
        if (rows[i].op == LEASE_RELEASE)
            a.lease_uuid = r.spec.lease_uuid;
        switch (rows[i].row) {
        case NONCE:
        case OTHER_UID_NONCE:
            r.spec.lease_uuid = id(77);
            base_copy(r.meta.rv, sizeof r.meta.rv, "101");
            break;
        case MOVED:
            base_copy(r.meta.rv, sizeof r.meta.rv, "101");
            break;
        case RELEASED:
        case OTHER_EPOCH_RELEASED:
            r.spec.release_time = 1;
            base_copy(r.meta.rv, sizeof r.meta.rv, "101");
            break;
        default:
            break;
        }
        if (rows[i].row == OTHER_UID || rows[i].row == OTHER_UID_NONCE)
            r.meta.uid = id(61);
        if (rows[i].row == OTHER_EPOCH_RELEASED)
            r.spec.epoch = 4;
        enum lease_outcome got = lease_outcome_of(&a, rows[i].row == NONE ? NULL : &r);
        cr_assert_eq(got, rows[i].want, "row %zu: %s", i, lease_outcome_name(got));
    }
}

Test(lease_instance, what_is_written)
{
    struct lease_self me = self(3);
    struct contract_instance i, old;
    lease_build_instance(&i, &me, 123, 456);
    cr_assert_str_eq(i.meta.name, "masque.edge1");
    cr_assert_eq(i.spec.epoch, 1);
    cr_assert_eq(i.spec.renew.boot_time_us, 123);
    cr_assert_eq(i.spec.renew.time, 456);
    cr_assert(base_uuid_eq(&i.spec.process_id, &me.process_id));
    cr_assert(base_uuid_eq(&i.spec.renew.boot_id, &me.boot_id));
    cr_assert(base_uuid_eq(&i.spec.node_uid, &me.node_uid));
    i.meta.uid = id(4);
    base_copy(i.meta.rv, sizeof i.meta.rv, "7");

    old = i;
    lease_build_renewal(&i, 200, 500, true);
    cr_assert_eq(i.spec.renew.boot_time_us, 200);
    cr_assert_eq(i.spec.epoch, 1);
    cr_assert(i.spec.draining);
    cr_assert(base_uuid_eq(&i.spec.process_id, &old.spec.process_id));
    cr_assert(base_uuid_eq(&i.meta.uid, &old.meta.uid));
    cr_assert_str_eq(i.meta.rv, "7");

    i.spec.release_time = 1;
    me = self(5);
    lease_build_instance_takeover(&i, &me, 300, 600);
    cr_assert_eq(i.spec.epoch, 2);
    cr_assert(base_uuid_eq(&i.spec.process_id, &me.process_id));
    cr_assert_eq(i.spec.renew.boot_time_us, 300);
    cr_assert_eq(i.spec.release_time, 0);
    cr_assert_not(i.spec.draining);
    cr_assert(base_uuid_eq(&i.meta.uid, &old.meta.uid));
    cr_assert_str_eq(i.meta.rv, "7");

    lease_build_instance_release(&i, 400, 700);
    cr_assert_eq(i.spec.release_time, 700);
    cr_assert_eq(i.spec.renew.boot_time_us, 400);
    cr_assert_eq(i.spec.epoch, 2);
    cr_assert(base_uuid_eq(&i.meta.uid, &old.meta.uid));
    cr_assert_str_eq(i.meta.rv, "7");
}

Test(lease_instance, outcome)
{
    enum { NONE, SAME, NONCE, OTHER_BOOT, OTHER_PROCESS, OTHER_UID };
    static const struct {
        bool create;
        int row;
        enum lease_outcome want;
    } rows[] = {
        {true, NONE, LEASE_MAY_LAND},      {true, NONCE, LEASE_LANDED},
        {true, OTHER_PROCESS, LEASE_OVER}, {false, NONE, LEASE_OVER},
        {false, SAME, LEASE_MAY_LAND},     {false, NONCE, LEASE_LANDED},
        {false, OTHER_BOOT, LEASE_OVER},   {false, OTHER_PROCESS, LEASE_OVER},
        {false, OTHER_UID, LEASE_OVER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lease_self me = self(3);
        struct contract_instance r;
        lease_build_instance(&r, &me, 100, 1);
        r.meta.uid = id(4);
        base_copy(r.meta.rv, sizeof r.meta.rv, rows[i].row == SAME ? "7" : "8");
        struct lease_instance_attempt a = {.process_id = me.process_id, .boot_us = 200};
        base_copy(a.rv, sizeof a.rv, "7");
        if (!rows[i].create)
            a.uid = id(4);
        if (rows[i].row == NONCE || rows[i].row == OTHER_UID || rows[i].row == OTHER_PROCESS)
            r.spec.renew.boot_time_us = 200;
        if (rows[i].row == OTHER_UID)
            r.meta.uid = id(5);
        if (rows[i].row == OTHER_PROCESS)
            r.spec.process_id = id(9);
        enum lease_outcome got = lease_instance_outcome(&a, rows[i].row == NONE ? NULL : &r);
        cr_assert_eq(got, rows[i].want, "row %zu: %s", i, lease_outcome_name(got));
    }
}
