/* SPDX-License-Identifier: Apache-2.0
 *
 * One run: the world is made from its plan, then one event after the other until the end or a violation. The
 * observer looks after every event that may have opened something.
 */
#include "sim.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define EVENTS_MAX 400000 /* a run that needs more does not come to rest */
#define STORY_MAX ((size_t)64 << 20)

/* ---- small things ---- */
void sim_say(struct sim_world *w, const char *fmt, ...)
{
    char line[512];
    va_list ap;

    va_start(ap, fmt);
    (void)base_vfmt(line, sizeof line, fmt, ap);
    va_end(ap);
    (void)base_buf_addf(&w->story, "%12.6f  %s\n", (double)w->now / 1e9, line);
}

void sim_fail(struct sim_world *w, const char *what, const char *fmt, ...)
{
    va_list ap;

    if (w->res.violation)
        return;
    w->res.violation = what;
    w->res.at = w->now;
    va_start(ap, fmt);
    (void)base_vfmt(w->res.detail, sizeof w->res.detail, fmt, ap);
    va_end(ap);
    SIM_SAY(w, "VIOLATION %s: %s", what, w->res.detail);
    w->stop = true;
}

void sim_fired(struct sim_world *w, enum sim_fault f)
{
    w->res.fired[f]++;
}

base_time sim_node_now(const struct sim_world *w, int node)
{
    return sim_boot(&w->node[node].clock, w->now);
}

base_wall sim_node_wall(const struct sim_world *w, int node)
{
    return w->wall0 + w->now / BASE_US + w->node[node].clock.wall_off;
}

/* A seed of its own for each user: no stream is another one's, a few steps on. */
uint64_t sim_mix(uint64_t seed, uint64_t user)
{
    struct base_prng g = {seed};

    g.state = base_prng_next(&g) ^ (user * UINT64_C(0xd6e8feb86659fd93));
    return base_prng_next(&g);
}

static uint64_t draw(struct sim_world *w)
{
    struct base_prng g = {w->prng};
    uint64_t v = base_prng_next(&g);

    w->prng = g.state;
    return v;
}

struct base_uuid sim_uuid(struct sim_world *w)
{
    uint8_t b[16];
    uint64_t x = draw(w), y = draw(w);

    memcpy(b, &x, 8);
    memcpy(b + 8, &y, 8);
    return base_uuid_v4(b);
}

void sim_seed(struct sim_world *w, uint8_t seed[32])
{
    for (unsigned i = 0; i < 32; i += 8) {
        uint64_t x = draw(w);

        memcpy(seed + i, &x, 8);
    }
}

static void mix(uint64_t *h, uint64_t v)
{
    *h = (*h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    *h ^= *h >> 32;
}

/* ---- the beginning ---- */
void sim_make_service(struct sim_world *w)
{
    struct contract_object *o = &w->tmp;
    struct contract_service *s = &o->u.service;

    memset(o, 0, sizeof *o);
    o->kind = CONTRACT_SERVICE;
    (void)base_copy(s->meta.name, sizeof s->meta.name, "svc-a");
    (void)base_copy(s->provider, sizeof s->provider, "masque");
    (void)base_copy(s->tenant, sizeof s->tenant, "acme");
    (void)base_copy(s->vpc, sizeof s->vpc, "vpc-a");
    (void)base_prefix_parse(&s->pool,
                            w->other_pool ? BASE_STR("fd12:0:0:2::/64") : BASE_STR("fd12:0:0:1::/64"));
    s->n_destinations = 1;
    (void)base_prefix_parse(&s->destinations[0], BASE_STR("fd20::/16"));
    s->valid_until = w->wall0 + w->now / BASE_US + w->plan->valid_s * INT64_C(1000000);
    if (sim_api_admin(w, STORE_CREATE, o, NULL))
        sim_fail(w, "sim: a service could not be made", "%s", s->meta.name);
}

void sim_make_binding(struct sim_world *w, int i)
{
    struct sim_client *c = &w->client[i];
    struct contract_object *o = &w->tmp;
    struct contract_binding *b = &o->u.binding;

    memset(o, 0, sizeof *o);
    o->kind = CONTRACT_BINDING;
    (void)base_copy(b->meta.name, sizeof b->meta.name, c->binding);
    (void)base_copy(b->spec.tenant, sizeof b->spec.tenant, "acme");
    (void)base_copy(b->spec.connector, sizeof b->spec.connector, c->connector);
    (void)base_copy(b->spec.vpc, sizeof b->spec.vpc, "vpc-a");
    (void)base_copy(b->spec.service, sizeof b->spec.service, "svc-a");
    b->spec.n_identities = 1;
    b->spec.identities[0].kind = CONTRACT_IDENTITY_URI;
    (void)base_copy(b->spec.identities[0].value, sizeof b->spec.identities[0].value, c->uri);
    b->spec.retention_seconds = -1;
    if (sim_api_admin(w, STORE_CREATE, o, NULL))
        sim_fail(w, "sim: a binding could not be made", "%s", c->binding);
}

static void begin(struct sim_world *w)
{
    const struct sim_plan *p = w->plan;

    w->now = 100 * BASE_SEC;
    w->wall0 = INT64_C(1764450000000000);
    w->prng = sim_mix(p->seed, 999);
    w->twin = store_twin_new(p->seed + 17);
    if (!w->twin)
        abort();
    w->end = w->now + p->end;
    sim_make_service(w);
    w->nodes = p->nodes;
    for (int i = 0; i < p->nodes; i++) {
        struct sim_node *n = &w->node[i];

        (void)base_fmt(n->name, sizeof n->name, "edge%d", i + 1);
        n->node_uid = sim_uuid(w);
        n->clock.ppm = p->ppm[i];
        n->clock.wall_off = p->wall_off[i];
        n->lease_s = p->lease_s[i];
        sim_kernel_boot(w, i);
    }
    for (int i = 0; i < p->clients; i++) {
        struct sim_client *c = &w->client[i];

        (void)base_fmt(c->connector, sizeof c->connector, "site%d", i + 1);
        (void)base_fmt(c->binding, sizeof c->binding, "acme.site%d", i + 1);
        (void)base_fmt(c->uri, sizeof c->uri, "spiffe://acme/site%d", i + 1);
        c->node = p->first[i];
        c->roams = p->roams[i];
        c->transport = SESSION_H3;
        c->prng = sim_mix(p->seed, 1000003 + (uint64_t)i);
        sim_make_binding(w, i);
    }
    for (int i = 0; i < p->nodes; i++) {
        sim_found_start(w, i);
        sim_agent_start(w, i, NULL);
    }
    for (int i = 0; i < p->clients; i++)
        sim_client_start(w, i);
    for (unsigned i = 0; i < p->n_acts; i++)
        sim_post(w, w->now + p->act[i].at, SIM_EV_ACTION, NULL)->a = i;
    for (unsigned i = 0; i < p->n_expects; i++)
        sim_post(w, w->now + p->expect[i].at, SIM_EV_CHECK, NULL)->a = i + 1;
    sim_post(w, w->now + p->valid_s * BASE_SEC / 4, SIM_EV_AUTHORITY, NULL);
    sim_post(w, w->now + p->faults_end, SIM_EV_HEAL, NULL);
}

/* ---- the end ---- */
static void finish(struct sim_world *w)
{
    sim_clear(w);
    for (unsigned i = 0; i < SIM_PROCS; i++)
        sim_proc_free(w, &w->proc[i]);
    w->twin = store_twin_free(w->twin);
    w->backup = store_twin_free(w->backup);
}

/* ---- events ---- */
static void dispatch(struct sim_world *w, struct sim_event *ev)
{
    switch (ev->kind) {
    case SIM_EV_ARRIVE:
        sim_api_arrive(w, ev);
        sim_req_drop(w, ev->req);
        return;
    case SIM_EV_REPLY:
        sim_client_reply(w, ev);
        return;
    case SIM_EV_LOST:
        sim_client_gone(w, ev);
        return;
    case SIM_EV_CLIENT:
        sim_client_try(w, ev);
        return;
    case SIM_EV_ACTION:
        sim_action(w, (unsigned)ev->a, (unsigned)ev->b);
        return;
    case SIM_EV_AUTHORITY:
        sim_authority(w);
        sim_post(w, w->now + w->plan->valid_s * BASE_SEC / 4, SIM_EV_AUTHORITY, NULL);
        return;
    case SIM_EV_WATCHDOG:
        sim_watchdog(w, (int)ev->a);
        return;
    case SIM_EV_HEAL:
        sim_heal(w);
        return;
    case SIM_EV_CHECK:
        if (ev->a)
            sim_expected(w, &w->plan->expect[ev->a - 1]);
        else
            sim_live_check(w);
        return;
    case SIM_EV_TICK:
    case SIM_EV_ANSWER:
    case SIM_EV_TIMEOUT:
    case SIM_EV_ROW:
    case SIM_EV_BOOKMARK:
    case SIM_EV_STREAM:
    case SIM_EV_PROOF:
    case SIM_EV_AUDIT:
    case SIM_EV_TUN:
    case SIM_EV_TUN_LOST:
    case SIM_EV_STOPPED:
    case SIM_EV_GAP:
    case SIM_EV_ENDED:
    case SIM_EV_LATER:
    case SIM_EV_REQUEST:
    case SIM_EV_NEWS:
        sim_proc_event(w, ev);
        return;
    case SIM_EV_N:
        return;
    }
}

/* An assertion of a core ends its run, not the program: the seed is what is wanted. */
static sigjmp_buf escape;
static volatile sig_atomic_t running;

static void on_abort(int sig)
{
    if (running) {
        running = 0;
        siglongjmp(escape, sig);
    }
    (void)signal(sig, SIG_DFL);
    (void)raise(sig);
}

struct sim_world *sim_world_new(void)
{
    struct sim_world *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    base_buf_init(&w->story, STORY_MAX);
    return w;
}

struct sim_world *sim_world_free(struct sim_world *w)
{
    if (w) {
        sim_memory_fini(w);
        base_buf_fini(&w->story);
        free(w);
    }
    return NULL;
}

static void reset(struct sim_world *w, const struct sim_plan *plan, bool trace)
{
    struct sim_slot *heap = w->heap;
    struct sim_event *events = w->events;
    uint32_t *free_slots = w->free_slots;
    struct sim_block *blocks = w->blocks;
    size_t cap = w->cap_heap;
    struct base_buf story = w->story;
    void *unused[CONTRACT_KIND_N + 1];

    memcpy(unused, w->unused, sizeof unused);
    memset(w->node, 0, (size_t)w->nodes * sizeof w->node[0]);
    memset(w->flow, 0, w->high_flow * sizeof w->flow[0]);
    for (unsigned i = 0; i < SIM_PROCS; i++)
        if (w->proc[i].serial)
            memset(&w->proc[i], 0, sizeof w->proc[i]);
    memset(w, 0, offsetof(struct sim_world, out));
    w->heap = heap;
    w->events = events;
    w->free_slots = free_slots;
    w->cap_heap = cap;
    w->blocks = blocks;
    w->story = story;
    memcpy(w->unused, unused, sizeof unused);
    base_buf_reset(&w->story);
    w->plan = plan;
    w->trace = trace;
    w->res.hash = UINT64_C(0xcbf29ce484222325);
}

static void loop(struct sim_world *w)
{
    struct sim_event ev;

    while (!w->stop && sim_next(w, &ev)) {
        if (ev.at > w->end) {
            sim_req_drop(w, ev.req);
            sim_object_free(w, ev.object);
            break;
        }
        w->now = ev.at;
        mix(&w->res.hash, (uint64_t)ev.at);
        mix(&w->res.hash, (uint64_t)ev.kind << 32 | ev.proc);
        mix(&w->res.hash, ev.a);
        w->res.events++;
        dispatch(w, &ev);
        if (w->look && !w->stop)
            sim_observe(w);
        if (w->res.events > EVENTS_MAX)
            sim_fail(w, "sim: too many events", "%llu", (unsigned long long)w->res.events);
    }
    w->res.span = w->now - 100 * BASE_SEC;
}

void sim_run(struct sim_world *w, const struct sim_plan *plan, bool trace, struct sim_result *ret)
{
    static const struct sigaction catcher = {.sa_handler = on_abort, .sa_flags = SA_NODEFER};

    reset(w, plan, trace);
    (void)sigaction(SIGABRT, &catcher, NULL);
    if (sigsetjmp(escape, 1) == 0) {
        running = 1;
        begin(w);
        loop(w);
        running = 0;
        finish(w);
    } else {
        /* what that run had in memory is given up with it: lists and queue may be in any state */
        sim_fail(w, "core: an assertion failed", "see the message above");
        w->res.span = w->now - 100 * BASE_SEC;
        w->blocks = NULL;
        w->heap = NULL;
        w->events = NULL;
        w->free_slots = NULL;
        w->cap_heap = 0;
        memset(w->unused, 0, sizeof w->unused);
    }
    *ret = w->res;
}
