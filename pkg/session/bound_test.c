/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds: configurations and events that are refused, memory that runs out at each place, steps that have
 * more to say than fits, tables of releases and guests that are full, and timers that nobody set.
 */
#include "session/fake_test.h"

#include "base/mem.h"

#include <criterion/criterion.h>
#include <string.h>

/* ---- configuration and memory */
Test(session_bound, configurations)
{
    struct world *w = world_new();
    struct session_config good = world_node(w, 0)->cfg;
    enum { CONNECTORS, NO_SERVICE, SERVICES, NO_ATTACHMENT, ATTACHMENTS, NODE, BOOT, GUESTS, GOOD, MANY, N };
    static const char *const says[N] = {
        [CONNECTORS] = "limits.connectors is 100001",
        [NO_SERVICE] = "services is 0",
        [SERVICES] = "services is 4097",
        [NO_ATTACHMENT] = "attachments is 0",
        [ATTACHMENTS] = "attachments is 4097",
        [NODE] = "node UID",
        [BOOT] = "boot id",
        [GUESTS] = "guests is 513",
    };
    for (int i = 0; i < N; i++) {
        struct session_config cfg = good;
        struct session_core *c = NULL;
        struct base_err err = {0};
        switch (i) {
        case CONNECTORS:
            cfg.max_connectors = 100001;
            break;
        case NO_SERVICE:
            cfg.max_services = 0;
            break;
        case SERVICES:
            cfg.max_services = 4097;
            break;
        case NO_ATTACHMENT:
            cfg.max_attachments = 0;
            break;
        case ATTACHMENTS:
            cfg.max_attachments = 4097;
            break;
        case NODE:
            cfg.node_uid = (struct base_uuid){{0}};
            break;
        case BOOT:
            cfg.boot_id = (struct base_uuid){{0}};
            break;
        case GUESTS:
            cfg.max_guests = SESSION_GUESTS + 1;
            break;
        case MANY:
            cfg.max_connectors = 1000;
            cfg.max_guests = SESSION_GUESTS;
            break;
        case GOOD:
            break;
        }
        int rc = session_core_new(&c, &cfg, &err);
        cr_assert_eq(rc, says[i] ? BASE_EINVAL : BASE_OK, "%d: %s", i, err.msg);
        if (says[i]) {
            cr_assert_null(c);
            cr_assert_not_null(strstr(err.msg, says[i]), "%s: %s", says[i], err.msg);
        } else {
            cr_assert_geq(c->name_mask + 1, cfg.max_connectors);
            cr_assert_eq(c->name_mask & (c->name_mask + 1), 0, "a power of two");
            session_core_check(c);
            session_core_free(c);
        }
    }
    world_free(w);
}

Test(session_bound, memory_runs_out_at_each_place)
{
    struct world *w = world_new();
    struct session_config cfg = world_node(w, 0)->cfg;
    struct session_core *c = NULL;
    struct base_err err = {0};
    base_mem_fail_after(0);
    cr_assert_eq(session_core_new(&c, &cfg, &err), BASE_OK);
    unsigned long places = base_mem_count();
    c = session_core_free(c);
    cr_assert_gt(places, 10);
    for (unsigned long i = 1; i <= places; i++) {
        base_mem_fail_after(i);
        int rc = session_core_new(&c, &cfg, &err);
        base_mem_fail_after(0);
        cr_assert_eq(rc, BASE_ENOMEM, "place %lu of %lu", i, places);
        cr_assert_null(c);
        cr_assert_not_null(strstr(err.msg, "no memory"), "%s", err.msg);
    }
    world_free(w);
}

/* ---- events */
Test(session_bound, events_that_no_driver_may_send)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct contract_object o = {.kind = CONTRACT_CLAIM};
    enum { KNOWN_FLOW, OTHER_KIND, NO_KIND, TOO_LARGE, N };
    for (int i = 0; i < N; i++) {
        struct session_in in = {.ev = SESSION_EV_ROW, .now = w->now, .wall = 1};
        in.u.row.object = &o;
        o.kind = CONTRACT_CLAIM;
        switch (i) {
        case KNOWN_FLOW:
            in.ev = SESSION_EV_REQUEST;
            in.u.request.flow = f->flow;
            in.u.request.correlation.b[0] = 1;
            break;
        case OTHER_KIND:
            in.u.row.kind = CONTRACT_BINDING;
            break;
        case NO_KIND:
            in.u.row.kind = o.kind = (enum contract_kind)0;
            break;
        case TOO_LARGE:
            in.u.row.kind = o.kind = (enum contract_kind)(CONTRACT_BINDING + 1);
            break;
        }
        cr_assert_eq(session_core_step(w->node[0].core, &in, &w->out), BASE_EINVAL, "%d", i);
    }
    cr_assert(world_passes(w, f));
    world_free(w);
}

Test(session_bound, requests_before_the_start_and_of_no_kind)
{
    struct world *w = world_usual(1);
    struct session_in in = {.ev = SESSION_EV_REQUEST, .now = w->now, .wall = 1};
    in.u.request.flow = 70;
    in.u.request.identity = (enum session_identity)99;
    in.u.request.correlation.b[0] = 1;
    cr_assert_eq(session_core_step(w->node[0].core, &in, &w->out), BASE_OK);
    bool told = false;
    for (unsigned i = 0; i < w->out.n_fx; i++)
        if (w->out.fx[i].kind == SESSION_FX_REFUSE) {
            told = true;
            cr_assert_eq(w->out.fx[i].u.refuse.status, 403);
            cr_assert_eq(strncmp(w->out.fx[i].u.refuse.reason, "BadIdentity:", 12), 0);
        }
    cr_assert(told);
    world_free(w);

    w = world_new();
    struct w_node *n = world_node(w, 0);
    n->used = false; /* nothing is woken */
    cr_assert_eq(session_core_new(&n->core, &n->cfg, NULL), BASE_OK);
    for (enum contract_kind k = CONTRACT_INSTANCE; k <= CONTRACT_BINDING; k++) {
        in = (struct session_in){.ev = SESSION_EV_LISTED};
        in.u.collection = k;
        world_event(w, 0, &in);
    }
    struct w_flow *f = world_flow(w, world_connect(w, 0, W_URI));
    cr_assert(world_refused(f, 503, "NotListed"), "%s", f->reason);
    world_free(w);
}

/* The barrier of a flow that has no session yet is no barrier. */
Test(session_bound, barriers_that_nobody_asked_for)
{
    struct world *w = world_webhook(1);
    struct session_in in = {.ev = SESSION_EV_STOPPED};
    w->node[0].authority.silent = true;
    uint64_t guest = world_connect(w, 0, W_URI);
    in.u.flow = guest;
    world_event(w, 0, &in);
    cr_assert_eq(world_flow(w, guest)->status, 0);
    world_run(w, 5 * W_SEC);
    cr_assert(world_refused(world_flow(w, guest), 503, "AuthorizationUnavailable"));
    w->node[0].authority.silent = false;
    w->node[0].foundation_down = true;
    uint64_t waits = world_connect(w, 0, W_URI);
    world_run(w, W_SEC);
    cr_assert_str_eq(world_state(w, 0), "Waiting");
    in.u.flow = waits;
    world_event(w, 0, &in);
    cr_assert_eq(world_flow(w, waits)->status, 0);
    w->node[0].foundation_down = false;
    world_run(w, W_SEC);
    cr_assert_eq(world_flow(w, waits)->status, 200, "%s", world_flow(w, waits)->reason);
    world_free(w);
}

/* A request in the moment in which the service ends, before the tick that ends the session: it is refused,
 * and does not touch the open one, which has its own end. */
Test(session_bound, a_request_in_the_moment_in_which_the_service_ends)
{
    struct world *w = world_usual(1);
    struct w_flow *f = world_session(w, 0);
    struct contract_object *s = world_get(w, "svc-a");
    s->u.service.valid_until = w->wall0 + w->now / BASE_US + 1000000;
    world_touch(w, s);
    world_run(w, 100 * W_MS);
    base_time until = session_service_of(w->node[0].core, world_conn(w, "acme.site1"))->s.until;
    world_run(w, until - w->now - 1);
    cr_assert(world_passes(w, f));
    w->now = until;
    struct w_flow *g = world_flow(w, world_connect(w, 0, W_URI));
    cr_assert(world_refused(g, 503, "ServiceExpired"), "%s", g->reason);
    cr_assert(f->stopped);
    cr_assert_str_eq(w->node[0].last_audit[SESSION_AUDIT_EXPIRY].reason, "ServiceExpired");
    world_free(w);
}

/* ---- more than fits into one step */
static unsigned drive(struct world *w, struct session_in in, unsigned *ret_steps, unsigned kinds[64])
{
    unsigned all = 0;
    *ret_steps = 0;
    memset(kinds, 0, 64 * sizeof kinds[0]);
    in.now = w->now;
    in.wall = w->wall0 + w->now / BASE_US;
    do {
        cr_assert_lt(*ret_steps, 100);
        cr_assert_eq(session_core_step(w->node[0].core, &in, &w->out), BASE_OK);
        session_core_check(w->node[0].core);
        cr_assert_leq(w->out.n_fx, SESSION_FX_MAX);
        unsigned objects = 0;
        for (unsigned i = 0; i < w->out.n_fx; i++) {
            kinds[w->out.fx[i].kind]++;
            objects += w->out.fx[i].kind >= SESSION_FX_CREATE && w->out.fx[i].kind <= SESSION_FX_DELETE;
        }
        cr_assert_leq(objects, SESSION_OBJECTS_MAX);
        all += w->out.n_fx;
        ++*ret_steps;
        in.ev = SESSION_EV_CONTINUE;
    } while (w->out.more);
    return all;
}

static struct world *many(unsigned n)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    for (unsigned i = 0; i < n; i++) {
        char name[16], uri[40];
        base_fmt(name, sizeof name, "m%u", i);
        base_fmt(uri, sizeof uri, "spiffe://acme/m%u", i);
        world_binding(w, "acme", name, "svc-a", uri);
    }
    world_node(w, 0);
    world_agent_start(w, 0);
    world_run(w, W_SEC);
    for (unsigned i = 0; i < n; i++)
        (void)world_connect(w, 0, w->obj[i + 1].u.binding.spec.identities[0].value);
    world_run(w, 3 * W_SEC);
    for (unsigned i = 0; i < n; i++)
        cr_assert_eq(w->flow[i].status, 200, "%s", w->flow[i].reason);
    return w;
}

Test(session_bound, many_sessions_that_end_at_once)
{
    enum { N = 15 };
    struct world *w = many(N);
    unsigned steps, kinds[64];
    struct contract_object s = *world_get(w, "svc-a");
    s.u.service.revoked = true;
    base_fmt(s.u.meta.rv, sizeof s.u.meta.rv, "%llu", (unsigned long long)++w->rv);
    struct session_in in = {.ev = SESSION_EV_ROW};
    in.u.row.kind = CONTRACT_SERVICE;
    in.u.row.object = &s;
    cr_assert_gt(drive(w, in, &steps, kinds), SESSION_FX_MAX);
    cr_assert_gt(steps, 1);
    cr_assert_eq(kinds[SESSION_FX_STOP], N, "each once");
    cr_assert_eq(kinds[SESSION_FX_CLOSE], N);
    world_free(w);
}

Test(session_bound, many_reports_at_once)
{
    enum { N = 15 };
    struct world *w = many(N);
    struct session_core *c = w->node[0].core;
    unsigned steps, kinds[64];
    for (uint32_t i = 0; i < c->conn_fresh; i++) {
        c->conn[i].report.due = c->conn[i].report.session = true;
        c->conn[i].report.at = w->now;
        session_dirty(c, session_entity_conn(c, &c->conn[i]));
    }
    (void)drive(w, (struct session_in){.ev = SESSION_EV_TICK}, &steps, kinds);
    cr_assert_gt(steps, 1);
    cr_assert_eq(kinds[SESSION_FX_STATUS], N, "each once");
    world_free(w);
}

/* A time that nobody waits for (any more) is not met again and again. */
Test(session_bound, a_timer_that_nobody_wants)
{
    struct world *w = world_usual(1);
    struct session_core *c = w->node[0].core;
    struct session_in in = {.ev = SESSION_EV_TICK, .now = w->now, .wall = 1};
    session_timer_set(&c->timers, ENTITY_DRAIN, w->now); /* nothing is being drained */
    cr_assert_eq(session_core_step(c, &in, &w->out), BASE_OK);
    cr_assert_not(w->out.more);
    cr_assert_gt(w->out.wake_at, w->now);
    cr_assert_eq(c->timers.pos[ENTITY_DRAIN], 0);
    world_free(w);
}

Test(session_bound, a_heap_out_of_order_is_noticed)
{
    struct session_timers t = {0};
    cr_assert_eq(session_timers_init(&t, 8), BASE_OK);
    for (uint32_t e = 0; e < 8; e++)
        session_timer_set(&t, e, 100 + (base_time)e);
    cr_assert(session_timers_ok(&t));
    t.pos[t.heap[3]]++;
    cr_assert_not(session_timers_ok(&t), "a place that is not its own");
    t.pos[t.heap[3]]--;
    t.at[t.heap[5]] = 1;
    cr_assert_not(session_timers_ok(&t), "before its parent");
    session_timers_fini(&t);
}

/* ---- releases */
/* A claim of this very process that no connector knows of: it landed late. */
static void late_row(struct world *w, unsigned i)
{
    struct contract_object o = {.kind = CONTRACT_CLAIM};
    struct contract_claim_spec *s = &o.u.claim.spec;
    const struct lease_self *me = &w->node[0].core->inst.me;
    char text[64];
    base_fmt(text, sizeof text, "fd12:0:0:1:%x::/96", i + 1);
    cr_assert_eq(base_prefix_parse(&s->prefix, base_str_of(text)), BASE_OK);
    contract_claim_name(o.u.meta.name, &s->prefix);
    o.u.meta.uid = world_uuid(w);
    base_fmt(o.u.meta.rv, sizeof o.u.meta.rv, "%llu", (unsigned long long)++w->rv);
    base_copy(s->provider, sizeof s->provider, "masque");
    base_copy(s->tenant, sizeof s->tenant, "acme");
    base_copy(s->connector, sizeof s->connector, "site1");
    base_copy(s->holder.node, sizeof s->holder.node, me->node);
    s->holder.instance_uid = me->instance_uid;
    s->holder.instance_epoch = me->epoch;
    s->holder.process_id = me->process_id;
    s->holder.boot_id = me->boot_id;
    s->lease_uuid = world_uuid(w);
    s->epoch = 1;
    s->correlation.b[0] = 1;
    world_shown(w, &o, false);
}

Test(session_bound, more_releases_than_there_is_room_for)
{
    struct world *w = world_usual(1);
    struct session_core *c = w->node[0].core;
    w->node[0].cut = true; /* none of them gets anywhere */
    for (unsigned i = 0; i < c->n_jobs; i++)
        late_row(w, i);
    cr_assert_eq(c->jobs_active, c->n_jobs);
    cr_assert_str_eq(w->node[0].warned, "");
    late_row(w, c->n_jobs);
    cr_assert_eq(c->jobs_active, c->n_jobs);
    cr_assert_str_eq(w->node[0].warned, "TooManyReleases", "it is not silent");
    w->node[0].cut = false;
    world_run(w, 3 * W_SEC);
    cr_assert_eq(c->jobs_active, 0, "no such rows");
    late_row(w, 0);
    cr_assert_eq(c->jobs_active, 1, "and there is room again");
    world_free(w);
}

/* The same release twice is one; of another lease of the same epoch (the API server went back) it is another. */
Test(session_bound, releases_are_told_apart)
{
    struct world *w = world_usual(1);
    struct session_core *c = w->node[0].core;
    struct base_prefix p;
    struct base_uuid uid = world_uuid(w), a = world_uuid(w), b = world_uuid(w);
    struct base_correlation id = {{1}};
    cr_assert_eq(base_prefix_parse(&p, BASE_STR("fd12:0:0:1:5::/96")), BASE_OK);
    session_release(c, &p, &uid, &a, 1, "Test", &id);
    session_release(c, &p, &uid, &a, 1, "Test", &id);
    cr_assert_eq(c->jobs_active, 1);
    session_release(c, &p, &uid, &b, 1, "Test", &id);
    cr_assert_eq(c->jobs_active, 2);
    session_release(c, &p, &uid, &b, 2, "Test", &id);
    cr_assert_eq(c->jobs_active, 3);
    world_run(w, W_SEC);
    cr_assert_eq(c->jobs_active, 0);
    world_free(w);
}

/* One of two is done when the API server goes back, or the drain's time is up: only the other one is dropped. */
Test(session_bound, releases_that_are_dropped)
{
    for (int drain = 0; drain < 2; drain++) {
        struct world *w = world_usual(1);
        struct session_core *c = w->node[0].core;
        (void)world_binding(w, "acme", "gone", "svc-a", "spiffe://acme/gone");
        world_run(w, 20 * W_MS);
        world_delete(w, "acme.gone"); /* its place is free */
        late_row(w, 0);
        world_run(w, 100 * W_MS);
        late_row(w, 1);
        world_run(w, 100 * W_MS);
        cr_assert_eq(c->jobs_active, 0);
        w->node[0].cut = true;
        late_row(w, 2); /* in the place of the first; now one more */
        late_row(w, 3);
        cr_assert_eq(c->jobs_active, 2);
        struct session_in in = {.ev = SESSION_EV_ANSWER};
        in.u.answer.code = BASE_ENOTFOUND;
        in.u.answer.ask = c->job[0].ask + (UINT64_C(1000) << SESSION_ASK_BITS); /* late */
        world_event(w, 0, &in);
        cr_assert_eq(c->jobs_active, 2);
        in.u.answer.ask = c->job[0].ask;
        world_event(w, 0, &in);
        cr_assert_eq(c->jobs_active, 1);
        if (drain) {
            world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
            world_run(w, SESSION_DRAIN_WAIT + W_SEC);
            cr_assert(w->node[0].drained);
        } else {
            world_event(w, 0, &(struct session_in){.ev = SESSION_EV_REGRESSED});
        }
        cr_assert_eq(c->jobs_active, 0);
        cr_assert_eq(c->job[0].state, JOB_FREE);
        cr_assert_eq(c->job[1].state, JOB_FREE);
        world_free(w);
    }
}

/* ---- guests */
Test(session_bound, a_guest_whose_binding_changes_is_asked_about_again_but_not_for_ever)
{
    enum { RESERVED, MOVED, AGAIN_AND_AGAIN, N };
    for (int i = 0; i < N; i++) {
        struct world *w = world_webhook(1);
        struct w_node *n = &w->node[0];
        struct contract_object *b = world_get(w, "acme.site1");
        struct contract_binding_status *st = &b->u.binding.status;
        if (i != RESERVED) {
            st->has_prefix = true;
            cr_assert_eq(base_prefix_parse(&st->prefix, BASE_STR("fd12:0:0:1:5::/96")), BASE_OK);
            world_touch(w, b);
            world_run(w, 20 * W_MS);
        }
        uint64_t flow = world_connect(w, 0, W_URI);
        struct w_flow *f = world_flow(w, flow);
        for (int k = 0; k < (i == AGAIN_AND_AGAIN ? 100 : 1) && f->status == 0; k++) {
            st->has_prefix = true;
            cr_assert_eq(base_prefix_parse(&st->prefix, BASE_STR("fd12:0:0:1:6::/96")), BASE_OK);
            st->prefix.addr.b[11] = (uint8_t)(k + 1);
            world_touch(w, b);
            world_run(w, 3 * W_MS);
        }
        world_run(w, W_SEC);
        if (i == AGAIN_AND_AGAIN) {
            cr_assert(world_refused(f, 503, "Overloaded"), "%s", f->reason);
            cr_assert_eq(n->authority.asked[AUTHORITY_ASK_CONNECT], SESSION_GUEST_ASKS);
        } else {
            cr_assert_eq(f->status, 200, "%s", f->reason);
            cr_assert_eq(n->authority.asked[AUTHORITY_ASK_CONNECT], 2);
            cr_assert(n->authority.last[AUTHORITY_ASK_CONNECT].has_prefix);
            cr_assert(
                base_prefix_eq(&n->authority.last[AUTHORITY_ASK_CONNECT].prefix, &f->admit.u.admit.prefix));
        }
        world_free(w);
    }
}

/* A place at the door that is free again when the drain begins. */
Test(session_bound, a_drain_with_one_guest_left)
{
    struct world *w = world_webhook(1);
    w->node[0].authority.silent = true;
    uint64_t a = world_connect(w, 0, W_URI), b = world_connect(w, 0, W_URI);
    world_end(w, a);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    cr_assert_eq(world_flow(w, a)->status, 0, "nobody is there to be told");
    cr_assert(world_refused(world_flow(w, b), 503, "Draining"), "%s", world_flow(w, b)->reason);
    world_run(w, 5 * W_SEC);
    cr_assert(w->node[0].drained);
    world_free(w);
}
