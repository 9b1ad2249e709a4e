/* SPDX-License-Identifier: Apache-2.0
 *
 * Something goes wrong at every moment of a connect: each disturbance at each millisecond of a first connect,
 * of a reconnect and of a takeover from another node. Afterwards, with the cause gone, a request must be
 * admitted, and a drain must come to its end. The observer and session_core_check look on all the time.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

enum disturbance {
    CLIENT_GOES,
    CLIENT_COMES_AGAIN,
    SUSPENDED,
    BINDING_DELETED,
    BINDING_MADE_AGAIN,
    PREFIX_CLEARED,
    SERVICE_DELETED,
    SERVICE_REVOKED,
    INSTANCE_DELETED,
    INSTANCE_TAKEN,
    API_CUT,
    TUN_LOST,
    ATTACHMENT_DELETED,
    CLAIM_DELETED,
    NOT_DURABLE,
    NO_RECORD,
    WATCHES_SILENT,
    FOUNDATION_DOWN,
    AGENT_RESTARTED,
    RELISTED,
    GAP,
    STUCK,
    READS_FAIL,
    WRITES_CONFLICT,
    NO_ANSWERS,
    OPERATOR_DRAIN,
    DISTURBANCES
};
static const char *const names[DISTURBANCES] = {
    "client goes",
    "client comes again",
    "suspended",
    "binding deleted",
    "binding made again",
    "prefix cleared",
    "service deleted",
    "service revoked",
    "instance deleted",
    "instance taken",
    "API cut",
    "TUN lost",
    "attachment deleted",
    "claim deleted",
    "record not durable",
    "record never answered",
    "watches silent",
    "foundation down",
    "agent restarted",
    "relisted",
    "gap",
    "data thread stuck",
    "reads fail",
    "writes conflict",
    "answers lost",
    "operator's drain",
};

static void relist(struct world *w, struct w_node *n)
{
    for (enum contract_kind k = CONTRACT_INSTANCE; k <= CONTRACT_BINDING; k++) {
        struct session_in in = {.ev = SESSION_EV_RELIST};
        in.u.collection = k;
        world_event(w, n->index, &in);
        for (size_t i = 0; i < w->n_obj; i++) {
            struct session_in row = {.ev = SESSION_EV_ROW};
            row.u.row.kind = k;
            row.u.row.object = &w->obj[i];
            bool other = k == CONTRACT_CLAIM && strcmp(w->obj[i].u.claim.spec.holder.node, n->name) != 0;
            other = other || (k == CONTRACT_INSTANCE && strcmp(w->obj[i].u.instance.spec.node, n->name) != 0);
            if (w->obj[i].kind == k && !other)
                world_event(w, n->index, &row);
        }
        in.ev = SESSION_EV_LISTED;
        world_event(w, n->index, &in);
    }
}

static void disturb(struct world *w, int node, enum disturbance d, uint64_t flow)
{
    struct w_node *n = &w->node[node];
    struct contract_object *b = world_get(w, "acme.site1"), *s = world_get(w, "svc-a");
    struct contract_object *i = world_get(w, "masque.edge1"), *a = world_get(w, "masque.edge1.vpc-a"),
                           *k = NULL;
    for (size_t o = 0; o < w->n_obj; o++)
        if (w->obj[o].kind == CONTRACT_CLAIM)
            k = &w->obj[o];
    switch (d) {
    case CLIENT_GOES:
        world_end(w, flow);
        break;
    case CLIENT_COMES_AGAIN:
        (void)world_connect(w, node, W_URI);
        break;
    case SUSPENDED:
        b->u.binding.spec.suspended = true;
        world_touch(w, b);
        break;
    case BINDING_DELETED:
    case BINDING_MADE_AGAIN:
        world_delete(w, "acme.site1");
        if (d == BINDING_MADE_AGAIN)
            (void)world_binding(w, "acme", "site1", "svc-a", W_URI);
        break;
    case PREFIX_CLEARED:
        b->u.binding.status.has_prefix = false;
        world_touch(w, b);
        break;
    case SERVICE_DELETED:
        world_delete(w, "svc-a");
        break;
    case SERVICE_REVOKED:
        s->u.service.revoked = true;
        world_touch(w, s);
        break;
    case INSTANCE_DELETED:
        world_delete(w, "masque.edge1");
        break;
    case INSTANCE_TAKEN:
        world_take_instance(w);
        break;
    case API_CUT:
        n->cut = true;
        break;
    case TUN_LOST: {
        struct session_in in = {.ev = SESSION_EV_TUN_LOST};
        in.u.tun.tun_id = 1;
        world_event(w, node, &in);
        break;
    }
    case ATTACHMENT_DELETED:
        if (a)
            world_delete(w, "masque.edge1.vpc-a");
        break;
    case CLAIM_DELETED:
        if (k)
            world_delete(w, k->u.meta.name);
        break;
    case NOT_DURABLE:
        n->audit_fails = true;
        break;
    case NO_RECORD:
        n->audit_silent = true;
        break;
    case WATCHES_SILENT:
        memset(n->watch_silent, 1, sizeof n->watch_silent);
        break;
    case FOUNDATION_DOWN:
        n->foundation_down = true;
        break;
    case AGENT_RESTARTED:
        world_agent_kill(w, node);
        world_agent_start(w, node);
        break;
    case RELISTED:
        relist(w, n);
        break;
    case GAP: {
        struct session_in in = {.ev = SESSION_EV_GAP};
        in.u.gap = w->now;
        world_event(w, node, &in);
        break;
    }
    case STUCK:
        n->stuck = true;
        (void)world_connect(w, node, W_URI);
        break;
    case READS_FAIL:
        for (int x = CONTRACT_INSTANCE; x <= CONTRACT_BINDING; x++)
            n->read_fault[x] = W_DOWN;
        break;
    case WRITES_CONFLICT:
        for (int x = CONTRACT_INSTANCE; x <= CONTRACT_BINDING; x++)
            n->write_fault[x] = W_CONFLICT;
        break;
    case NO_ANSWERS:
        for (int x = CONTRACT_INSTANCE; x <= CONTRACT_BINDING; x++)
            n->read_fault[x] = n->write_fault[x] = W_NO_ANSWER;
        break;
    case OPERATOR_DRAIN:
        i->u.meta.drain = true;
        world_touch(w, i);
        break;
    case DISTURBANCES:
        break;
    }
}

static void heal(struct world *w, int node, enum disturbance d)
{
    struct w_node *n = &w->node[node];
    struct contract_object *b = world_get(w, "acme.site1"), *i = world_get(w, "masque.edge1");
    bool missed = n->cut || n->watch_silent[CONTRACT_CLAIM];
    n->cut = n->audit_fails = n->audit_silent = n->foundation_down = n->stuck = false;
    memset(n->watch_silent, 0, sizeof n->watch_silent);
    memset(n->read_fault, 0, sizeof n->read_fault);
    memset(n->write_fault, 0, sizeof n->write_fault);
    if (missed)
        relist(w, n); /* the watch comes back with a list */
    if (d == SUSPENDED) {
        b->u.binding.spec.suspended = false;
        world_touch(w, b);
    }
    if (d == BINDING_DELETED)
        (void)world_binding(w, "acme", "site1", "svc-a", W_URI);
    if (d == SERVICE_REVOKED)
        world_delete(w, "svc-a");
    if (d == SERVICE_REVOKED || d == SERVICE_DELETED)
        (void)world_service(w, "svc-a", "fd12:0:0:1::/64");
    if (d == INSTANCE_TAKEN && i) {
        i->u.instance.spec.release_time = 1;
        world_touch(w, i);
    }
    if (d == OPERATOR_DRAIN) {
        i->u.meta.drain = false;
        world_touch(w, i);
    }
    if (d == STUCK) /* the data thread goes on */
        for (size_t f = 0; f < w->n_flow; f++)
            if (w->flow[f].node == node && w->flow[f].stopped) {
                struct session_in in = {.ev = SESSION_EV_STOPPED};
                in.u.flow = w->flow[f].flow;
                world_event(w, node, &in);
            }
}

enum start { FIRST, AGAIN, TAKEOVER, STARTS };

static void one(enum start start, enum disturbance d, int ms)
{
    struct world *w = world_usual(2);
    if (start != FIRST) {
        struct w_flow *f = world_session(w, start == AGAIN ? 0 : 1);
        cr_assert_eq(f->status, 200);
        if (start == AGAIN) {
            world_end(w, f->flow);
            world_run(w, 2 * W_SEC);
        }
    }
    uint64_t flow = world_connect(w, 0, W_URI);
    world_run(w, ms * W_MS);
    disturb(w, 0, d, flow);
    world_run(w, 1500 * W_MS);
    heal(w, 0, d);
    base_time end = w->now + 90 * W_SEC;
    struct w_flow *f;
    for (;;) {
        uint64_t again = world_connect(w, 0, W_URI);
        cr_assert_geq(world_until(w, 15 * W_SEC, world_answered, &again), 0,
                      "start %d, %s at %d ms: no answer", start, names[d], ms);
        f = world_flow(w, again);
        if (f->status == 200)
            break;
        cr_assert_lt(w->now, end, "start %d, %s at %d ms: %s", start, names[d], ms, f->reason);
        world_run(w, W_SEC);
    }
    world_run(w, W_SEC);
    cr_assert(world_passes(w, f), "start %d, %s at %d ms", start, names[d], ms);
    for (size_t i = 0; i < w->n_flow; i++)
        cr_assert(w->flow[i].status != 0 || w->flow[i].ended,
                  "start %d, %s at %d ms: flow %zu is not answered", start, names[d], ms, i + 1);
    world_event(w, 0, &(struct session_in){.ev = SESSION_EV_DRAIN});
    cr_assert_geq(world_until(w, 5 * W_SEC, world_drained, NULL), 0, "start %d, %s at %d ms: no drain", start,
                  names[d], ms);
    world_free(w);
}

/* Sanitizers are slow: every fifth moment, at another offset for each disturbance. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MS_STEP 5
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MS_STEP 5
#endif
#endif
#ifndef MS_STEP
#define MS_STEP 1
#endif

static void all_of(enum start start)
{
    for (int d = 0; d < DISTURBANCES; d++)
        for (int ms = d % MS_STEP; ms < 48; ms += d == NO_RECORD || d == NO_ANSWERS ? MS_STEP * 3 : MS_STEP)
            one(start, (enum disturbance)d, ms);
}

Test(session_disturb, first_connect)
{
    all_of(FIRST);
}

Test(session_disturb, reconnect)
{
    all_of(AGAIN);
}

Test(session_disturb, takeover)
{
    all_of(TAKEOVER);
}
