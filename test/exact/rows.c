/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "exact.h"

static const struct base_uuid uuid_a = {{1}}, uuid_b = {{2}};

static struct lease_self self(void)
{
    struct lease_self me = {
        .boot_id = {{3}}, .process_id = {{4}}, .instance_uid = {{5}}, .epoch = 7, .lease_seconds = 30};

    (void)base_copy(me.provider, sizeof me.provider, "masque");
    (void)base_copy(me.node, sizeof me.node, "edge1");
    (void)base_copy(me.instance, sizeof me.instance, "masque.edge1");
    return me;
}

/* The table of contract section 4, one question after the other, from what was put into the row. */
const char *exact_decide(const struct exact_fns *f, uint64_t *n)
{
    static char text[160];
    struct lease_self me = self();
    struct contract_ref none = {0};
    struct lease_target target = {
        .tenant = "t", .connector = "c", .vpc = "v", .service = &none, .attachment = &none};

    target.prefix.len = 96;
    for (int op = LEASE_ACQUIRE; op <= LEASE_RELEASE; op++)
        for (uint32_t bits = 0; bits < 1u << 16; bits++, ++*n) {
#define BIT(i) ((bits >> (i)&1) != 0)
            bool absent = BIT(0), released = BIT(1), deleting = BIT(2), other_process = BIT(3),
                 other_instance = BIT(4);
            bool other_boot = BIT(5), other_connector = BIT(6), other_vpc = BIT(7), other_prefix = BIT(8),
                 other_epoch = BIT(9);
            bool other_lease = BIT(10), denied = BIT(11), live = BIT(12), closed = BIT(13), full = BIT(14),
                 other_node = BIT(15);
            bool mine = !other_process && !other_instance && !other_boot && !other_node;
            static struct contract_claim row;
            struct lease_ask ask = {.op = (enum lease_op)op,
                                    .me = &me,
                                    .target = &target,
                                    .lease_uuid = &uuid_a,
                                    .takeover_denied = denied,
                                    .holder_live = live};
            enum lease_reason got, want;

            memset(&row, 0, sizeof row);
            (void)base_copy(row.spec.provider, sizeof row.spec.provider, "masque");
            (void)base_copy(row.spec.tenant, sizeof row.spec.tenant, "t");
            (void)base_copy(row.spec.connector, sizeof row.spec.connector, other_connector ? "d" : "c");
            (void)base_copy(row.spec.vpc, sizeof row.spec.vpc, other_vpc ? "w" : "v");
            row.spec.prefix = target.prefix;
            row.spec.prefix.addr.b[11] = other_prefix;
            row.spec.epoch = full ? LEASE_EPOCH_MAX : 5;
            ask.epoch = row.spec.epoch - other_epoch;
            row.spec.lease_uuid = other_lease ? uuid_b : uuid_a;
            row.spec.release_time = released;
            row.meta.deleting = deleting;
            row.status.closed_epoch = row.spec.epoch - !closed;
            row.spec.holder.process_id = other_process ? uuid_b : me.process_id;
            row.spec.holder.instance_uid = me.instance_uid;
            row.spec.holder.instance_epoch = me.epoch + other_instance;
            row.spec.holder.boot_id = other_boot ? uuid_b : me.boot_id;
            (void)base_copy(row.spec.holder.node, sizeof row.spec.holder.node,
                            other_node ? "edge2" : "edge1");

            if (op == LEASE_ACQUIRE)
                want = absent ? LEASE_OK : released ? LEASE_RELEASED : LEASE_HELD;
            else if (absent)
                want = LEASE_ABSENT;
            else if (op == LEASE_RELEASE)
                want = !mine         ? LEASE_OTHER_HOLDER
                       : other_epoch ? LEASE_OTHER_EPOCH
                       : other_lease ? LEASE_OTHER_LEASE
                       : released    ? LEASE_RELEASED
                                     : LEASE_OK;
            else if (deleting)
                want = LEASE_DELETING;
            else if (other_connector)
                want = LEASE_OTHER_CONNECTOR;
            else if (other_epoch)
                want = LEASE_OTHER_EPOCH;
            else if (full)
                want = LEASE_EPOCH_FULL;
            else if (op == LEASE_CLOSING)
                want = LEASE_OK;
            else if (other_vpc || other_prefix)
                want = LEASE_OTHER_VPC;
            else
                want = denied && live && !released && !closed && other_process ? LEASE_DENIED : LEASE_OK;
            got = f->decide(&ask, absent ? NULL : &row);
            if (got != want) {
                snprintf(text, sizeof text, "decide %s, case %#x: %s, not %s", lease_op_name(ask.op), bits,
                         lease_reason_name(got), lease_reason_name(want));
                return text;
            }
        }
    return NULL;
}

/* Section 4: our nonce is there; or the version has moved; or it may still land. */
const char *exact_outcome(const struct exact_fns *f, uint64_t *n)
{
    static char text[160];

    for (int op = LEASE_ACQUIRE; op <= LEASE_RELEASE; op++)
        for (uint32_t bits = 0; bits < 64; bits++, ++*n) {
            bool absent = BIT(0), other_uid = BIT(1), nonce = BIT(2), moved = BIT(3), epoch = BIT(4),
                 released = BIT(5);
            static struct contract_claim row;
            struct lease_attempt a = {
                .op = (enum lease_op)op, .uid = uuid_a, .lease_uuid = uuid_a, .epoch = 5};
            enum lease_outcome got, want;

            memset(&row, 0, sizeof row);
            (void)base_copy(a.rv, sizeof a.rv, "10");
            (void)base_copy(row.meta.rv, sizeof row.meta.rv, moved ? "11" : "10");
            row.meta.uid = other_uid ? uuid_b : uuid_a;
            row.spec.lease_uuid = nonce ? uuid_a : uuid_b;
            row.spec.epoch = epoch ? 5 : 6;
            row.spec.release_time = released;
            if (op == LEASE_ACQUIRE)
                want = absent ? LEASE_MAY_LAND : nonce ? LEASE_LANDED : LEASE_OVER;
            else if (absent || other_uid)
                want = LEASE_OVER;
            else if (op == LEASE_RELEASE ? nonce && epoch && released : nonce)
                want = LEASE_LANDED;
            else
                want = moved ? LEASE_OVER : LEASE_MAY_LAND;
            got = f->outcome(&a, absent ? NULL : &row);
            if (got != want) {
                snprintf(text, sizeof text, "outcome of %s, case %#x: %s, not %s", lease_op_name(a.op), bits,
                         lease_outcome_name(got), lease_outcome_name(want));
                return text;
            }
        }
    return NULL;
}

const char *exact_instance_outcome(const struct exact_fns *f, uint64_t *n)
{
    static char text[160];

    for (uint32_t bits = 0; bits < 64; bits++, ++*n) {
        bool absent = BIT(0), create = BIT(1), other_uid = BIT(2), other_process = BIT(3),
             other_boot = BIT(4), moved = BIT(5);
        static struct contract_instance row;
        struct lease_instance_attempt a = {.process_id = uuid_a, .boot_us = 1000};
        enum lease_outcome got, want;
        bool nonce = !other_process && !other_boot;

        memset(&row, 0, sizeof row);
        if (!create)
            a.uid = uuid_a;
        (void)base_copy(a.rv, sizeof a.rv, create ? "" : "10");
        (void)base_copy(row.meta.rv, sizeof row.meta.rv, moved ? "11" : "10");
        row.meta.uid = other_uid ? uuid_b : uuid_a;
        row.spec.process_id = other_process ? uuid_b : uuid_a;
        row.spec.renew.boot_time_us = 1000 + other_boot;
        if (create)
            want = absent ? LEASE_MAY_LAND : nonce ? LEASE_LANDED : LEASE_OVER;
        else if (absent || other_uid)
            want = LEASE_OVER;
        else
            want = nonce ? LEASE_LANDED : moved ? LEASE_OVER : LEASE_MAY_LAND;
        got = f->instance_outcome(&a, absent ? NULL : &row);
        if (got != want) {
            snprintf(text, sizeof text, "outcome of an instance write, case %#x: %s, not %s", bits,
                     lease_outcome_name(got), lease_outcome_name(want));
            return text;
        }
    }
    return NULL;
}
