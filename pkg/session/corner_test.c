/* SPDX-License-Identifier: Apache-2.0
 *
 * Corners that stories do not pass: rows of another VPC, rows being deleted, epochs at their end, pools
 * searched by LIST, instance rows in odd states, full tables; the timer heap and the flow map against plain
 * ones.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

static void reserve(struct world *w, const char *prefix)
{
    struct contract_object *b = world_get(w, "acme.site1");
    b->u.binding.status.has_prefix = true;
    cr_assert_eq(base_prefix_parse(&b->u.binding.status.prefix, base_str_of(prefix)), BASE_OK);
    world_touch(w, b);
    world_run(w, 20 * W_MS);
}

Test(session_corner, row_of_another_vpc_is_treated_like_one_outside_the_pool)
{
    for (int reserved = 0; reserved < 2; reserved++) {
        for (int is_over = 0; is_over < 2; is_over++) {
            struct world *w = world_usual(1);
            struct contract_object *k =
                world_foreign(w, "acme", "site1", "vpc-b", world_prefix("fd12:0:0:1:5::/96"));
            char name[CONTRACT_NAME_SIZE];
            base_copy(name, sizeof name, k->u.meta.name);
            if (is_over)
                world_over(k);
            if (reserved)
                reserve(w, "fd12:0:0:1:5::/96");
            for (int i = 0; i < 5; i++) {
                (void)world_connect(w, 0, W_URI);
                world_run(w, 9 * W_SEC);
            }
            cr_assert_str_eq(world_state(w, 0), "Forwarding", "%d %d", reserved, is_over);
            cr_assert(lease_row_over(world_claim(w, name)), "%d %d", reserved, is_over);
            cr_assert_eq(world_claim(w, name)->spec.epoch, is_over ? 1 : 2);
            world_free(w);
        }
    }
}

Test(session_corner, rows_that_cannot_be_taken)
{
    enum { DELETING, DELETING_OUTSIDE, EPOCH, EPOCH_OUTSIDE, N };
    static const char *const want[N] = {"ClaimDeleting", "ClaimDeleting", "EpochExhausted", "EpochExhausted"};
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(1);
        const char *p = i == DELETING || i == EPOCH ? "fd12:0:0:1:5::/96" : "fd99::/96";
        struct contract_object *k = world_foreign(w, "acme", "site1", "vpc-a", world_prefix(p));
        if (i == DELETING || i == DELETING_OUTSIDE) {
            k->u.meta.deleting = 1;
        } else {
            k->u.claim.spec.epoch = LEASE_EPOCH_MAX;
            k->u.claim.spec.previous.epoch = LEASE_EPOCH_MAX - 1;
        }
        reserve(w, p);
        struct w_flow *f = world_session(w, 0);
        cr_assert(world_refused(f, 503, want[i]), "%d: %s", i, f->reason);
        cr_assert_eq(w->node[0].writes[CONTRACT_CLAIM], 0);
        world_free(w);
    }
}

Test(session_corner, after_64_candidates_a_list_tells_what_is_free)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/89"); /* 127 usable */
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_node(w, 0);
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    struct base_prefix pool = world_get(w, "svc-a")->u.service.pool, p, want;
    for (uint64_t i = 0; i < 70; i++) {
        char text[BASE_PREFIX_SIZE], name[16];
        cr_assert_eq(authority_candidate(&p, "acme", "site1", "vpc-a", &pool, i), BASE_OK);
        base_prefix_text(text, &p);
        base_fmt(name, sizeof name, "other%u", (unsigned)i);
        (void)world_foreign(w, "acme", name, "vpc-a", world_prefix(text));
    }
    (void)authority_candidate(&want, "acme", "site1", "vpc-a", &pool, 70);
    struct w_flow *f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    cr_assert(base_prefix_eq(&f->admit.u.admit.prefix, &want));
    world_free(w);
}

Test(session_corner, four_rows_and_no_reservation)
{
    struct world *w = world_usual(1);
    static const char *const prefixes[] = {"fd12:0:0:1:8::/96", "fd12:0:0:1:6::/96", "fd12:0:0:1:9::/96",
                                           "fd12:0:0:1:7::/96"};
    for (int i = 0; i < 4; i++)
        (void)world_foreign(w, "acme", "site1", "vpc-a", world_prefix(prefixes[i]));
    for (int i = 0; i < 20 && strcmp(world_state(w, 0), "Forwarding") != 0; i++) {
        (void)world_connect(w, 0, W_URI);
        world_run(w, 9 * W_SEC);
    }
    cr_assert_str_eq(world_state(w, 0), "Forwarding");
    unsigned open = 0;
    for (size_t i = 0; i < w->n_obj; i++) {
        if (w->obj[i].kind != CONTRACT_CLAIM || lease_row_over(&w->obj[i].u.claim))
            continue;
        open++;
        cr_assert_str_eq(w->obj[i].u.meta.name, "rc-fd1200000000000100060000", "the first by name stays");
    }
    cr_assert_eq(open, 1);
    world_free(w);
}

/* ---- instance */
Test(session_corner, instance_rows_in_odd_states)
{
    enum {
        BEING_DELETED,
        DELETED_WHILE_HELD_MARKED,
        RELEASED_BY_HAND,
        OTHER_EPOCH,
        GONE_WHILE_TAKEN,
        CLONE_AT_START,
        N
    };
    for (int i = 0; i < N; i++) {
        struct world *w = world_usual(1);
        struct contract_object *o = world_get(w, "masque.edge1");
        switch (i) {
        case BEING_DELETED: /* found so by a fresh process: it waits until it is gone */
            world_agent_kill(w, 0);
            o->u.meta.deleting = 1;
            world_agent_start(w, 0);
            world_run(w, 3 * W_SEC);
            cr_assert_not(w->node[0].ready);
            cr_assert_str_eq(w->node[0].ready_reason, "InstanceDeleting");
            world_delete(w, "masque.edge1");
            break;
        case DELETED_WHILE_HELD_MARKED:
            o->u.meta.deleting = 1;
            world_touch(w, o);
            world_run(w, 3 * W_SEC);
            cr_assert_not(w->node[0].ready);
            world_delete(w, "masque.edge1");
            break;
        case RELEASED_BY_HAND: /* somebody released it: that identity is over, the next one takes over */
            o->u.instance.spec.release_time = 1;
            world_touch(w, o);
            break;
        case OTHER_EPOCH:
            o->u.instance.spec.epoch++; /* my process id at an epoch that I never wrote: a twin */
            world_touch(w, o);
            world_run(w, W_SEC);
            cr_assert_str_eq(w->node[0].ready_reason, "InstanceTaken");
            world_run(w, 31 * W_SEC);
            break;
        case GONE_WHILE_TAKEN:
            world_take_instance(w);
            world_run(w, W_SEC);
            cr_assert_str_eq(w->node[0].ready_reason, "InstanceTaken");
            world_delete(w, "masque.edge1");
            break;
        case CLONE_AT_START:
            break;
        }
        world_run(w, 4 * W_SEC);
        cr_assert(w->node[0].ready, "%d: %s", i, w->node[0].ready_reason);
        struct w_flow *f = world_session(w, 0);
        cr_assert_eq(f->status, 200, "%d: %s", i, f->reason);
        world_free(w);
    }
}

Test(session_corner, instance_release_with_a_lost_answer)
{
    static const enum w_fault faults[] = {W_LOST,      W_LANDED, W_LATE,    W_NO_ANSWER,
                                          W_TRY_LATER, W_DENIED, W_CONFLICT};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct world *w = world_usual(1);
        (void)world_session(w, 0);
        w->node[0].write_fault[CONTRACT_INSTANCE] = faults[i];
        w->node[0].fault_skip = 1; /* the renewal that says `draining` */
        world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
        world_run(w, 8 * W_SEC);
        cr_assert(w->node[0].drained, "fault %d", faults[i]);
        cr_assert_neq(world_get(w, "masque.edge1")->u.instance.spec.release_time, 0, "fault %d", faults[i]);
        world_free(w);
    }
    /* deleted, or taken over, while it is being released */
    for (int i = 0; i < 2; i++) {
        struct world *w = world_usual(1);
        w->node[0].write_fault[CONTRACT_INSTANCE] = W_LOST;
        w->node[0].fault_skip = 1;
        world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
        world_run(w, 2 * W_MS);
        if (i == 0) {
            world_delete(w, "masque.edge1");
        } else {
            world_take_instance(w);
        }
        world_run(w, 3 * W_SEC);
        cr_assert(w->node[0].drained, "%d", i);
        world_free(w);
    }
}

/* ---- collections */
Test(session_corner, rows_that_a_list_does_not_name_are_gone)
{
    static const enum contract_kind kinds[] = {CONTRACT_INSTANCE, CONTRACT_ATTACHMENT, CONTRACT_SERVICE,
                                               CONTRACT_CLAIM, CONTRACT_BINDING};
    for (size_t i = 0; i < 5; i++) {
        struct world *w = world_usual(1);
        struct w_flow *f = world_session(w, 0);
        world_run(w, W_SEC);
        struct session_in in = {.ev = SESSION_EV_RELIST};
        in.u.collection = kinds[i];
        world_event(w, 0, &in);
        cr_assert_not(f->stopped, "a list that has begun says nothing");
        in.ev = SESSION_EV_LISTED;
        world_event(w, 0, &in);
        cr_assert(f->stopped, "%s", contract_kind_name(kinds[i]));
        world_run(w, W_SEC);
        world_free(w);
    }
}

Test(session_corner, what_was_only_written_is_not_missed_in_an_older_list)
{
    /* the lists were taken before our own rows were made; they arrive after the answers */
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    struct w_node *n = world_node(w, 0);
    memset(n->watch_silent, 1, sizeof n->watch_silent);
    world_agent_start(w, 0);
    world_run(w, 10 * W_MS); /* instance created */
    struct session_in in = {.ev = SESSION_EV_LISTED};
    in.u.collection = CONTRACT_INSTANCE;
    world_event(w, 0, &in);
    in.u.collection = CONTRACT_ATTACHMENT;
    world_event(w, 0, &in);
    world_run(w, W_SEC);
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 1, "it did not start over");
    world_free(w);
}

Test(session_corner, full_tables)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    struct contract_object *s = world_service(w, "svc-b", "fd12:0:0:2::/64");
    base_copy(s->u.service.vpc, 64, "vpc-b");
    (void)world_service(w, "svc-c", "fd12:0:0:3::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    world_binding(w, "acme", "site2", "svc-c", "spiffe://acme/site2");
    struct w_node *n = world_node(w, 0);
    n->cfg.max_services = 2;
    n->cfg.max_attachments = 1;
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    cr_assert_eq(world_session(w, 0)->status, 200, "what fits works");
    uint64_t f = world_connect(w, 0, "spiffe://acme/site2");
    world_run(w, W_SEC);
    cr_assert(world_refused(world_flow(w, f), 503, "NoService"), "%s", world_flow(w, f)->reason);
    world_free(w);
}

Test(session_corner, attachment_that_is_being_deleted_and_another_device)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct contract_object *a = world_get(w, "masque.edge1.vpc-a");
    base_copy(a->u.attachment.status.device, 16, "hf0000beef");
    world_touch(w, a);
    world_run(w, 10 * W_MS);
    cr_assert(f->stopped, "another device than the one that is open");
    world_run(w, W_SEC);
    cr_assert_eq(w->node[0].tun_closes, 1);
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    a = world_get(w, "masque.edge1.vpc-a");
    a->u.attachment.status.ready.status = CONTRACT_COND_FALSE;
    base_copy(a->u.attachment.status.ready.reason, 64, "DeviceLost");
    world_touch(w, a);
    world_run(w, 2 * W_SEC);
    cr_assert_eq(world_get(w, "masque.edge1")->u.instance.spec.epoch, 2,
                 "a lost device ends the instance epoch");
    f = world_session(w, 0);
    cr_assert_eq(f->status, 200, "%s", f->reason);
    world_free(w);
}

Test(session_corner, no_service_at_all_is_ready_and_says_so)
{
    struct world *w = world_new();
    world_node(w, 0);
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    cr_assert(w->node[0].ready);
    cr_assert_str_eq(w->node[0].ready_reason, "NoService");
    cr_assert_null(world_get(w, "masque.edge1.vpc-a"));
    world_free(w);
}

/* ---- timers and flows */
Test(session_corner, timer_heap_against_a_plain_scan)
{
    enum { N = 64 };
    struct session_timers t = {0};
    base_time at[N];
    struct base_prng r = {.state = 3};
    cr_assert_eq(session_timers_init(&t, N), BASE_OK);
    for (int i = 0; i < N; i++)
        at[i] = BASE_TIME_NEVER;
    cr_assert_eq(session_timer_first(&t, NULL), BASE_TIME_NEVER);
    for (int step = 0; step < 50000; step++) {
        uint32_t e = (uint32_t)base_prng_below(&r, N), first;
        at[e] = base_prng_below(&r, 4) == 0 ? BASE_TIME_NEVER : (base_time)base_prng_below(&r, 1000);
        session_timer_set(&t, e, at[e]);
        base_time least = BASE_TIME_NEVER;
        for (int i = 0; i < N; i++)
            least = base_time_min(least, at[i]);
        cr_assert_eq(session_timer_first(&t, &first), least);
        if (least != BASE_TIME_NEVER)
            cr_assert_eq(at[first], least);
        cr_assert(session_timers_ok(&t));
    }
    session_timers_fini(&t);
}

Test(session_corner, flow_map_against_a_plain_one)
{
    enum { N = 64, FLOWS = 2000 };
    struct session_flows f = {0};
    uint32_t have[FLOWS];
    unsigned n = 0;
    struct base_prng r = {.state = 5};
    memset(have, 255, sizeof have);
    cr_assert_eq(session_flows_init(&f, N), BASE_OK);
    for (int step = 0; step < 100000; step++) {
        uint64_t flow = base_prng_below(&r, FLOWS - 1) + 1;
        if (have[flow] != UINT32_MAX) {
            session_flow_drop(&f, flow);
            have[flow] = UINT32_MAX;
            n--;
        } else if (n < 2 * N) {
            have[flow] = (uint32_t)base_prng_below(&r, N);
            session_flow_put(&f, flow, have[flow]);
            n++;
        } else {
            session_flow_drop(&f, flow); /* not there */
        }
        uint64_t q = base_prng_below(&r, FLOWS - 1) + 1;
        cr_assert_eq(session_flow_find(&f, q), have[q]);
    }
    session_flows_fini(&f);
}
