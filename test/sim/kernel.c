/* SPDX-License-Identifier: Apache-2.0
 *
 * One machine's kernel: the gate map (device and prefix to an absolute deadline on CLOCK_BOOTTIME), the
 * pinned records, the devices with their incarnations, the published routes and their watchdog. It is never
 * paused with the processes: a gate closes by itself.
 */
#include "sim.h"

base_time sim_boot(const struct sim_clock *c, base_time t)
{
    base_time d = t - c->t0;
    int64_t extra;

    if (c->frozen || d < 0)
        return c->b0;
    extra = d / 1000000 * c->ppm + d % 1000000 * c->ppm / 1000000;
    return c->b0 + d + extra;
}

base_time sim_real(const struct sim_clock *c, base_time boot)
{
    base_time d = boot - c->b0, t;
    int64_t rate = 1000000 + c->ppm;

    if (d <= 0)
        return c->t0;
    if (c->frozen)
        return BASE_TIME_NEVER;
    t = c->t0 + d / rate * 1000000 + d % rate * 1000000 / rate;
    while (sim_boot(c, t) < boot)
        t++;
    while (t > c->t0 && sim_boot(c, t - 1) >= boot)
        t--;
    return t;
}

base_time sim_gate_of(const struct sim_node *n, uint32_t device, const struct base_prefix *p,
                      const struct sim_gate **ret)
{
    for (unsigned i = 0; i < SIM_GATES; i++) {
        const struct sim_gate *g = &n->gate[i];

        if (g->used && g->device == device && base_prefix_eq(&g->prefix, p)) {
            if (ret)
                *ret = g;
            return g->deadline;
        }
    }
    if (ret)
        *ret = NULL;
    return 0;
}

static struct sim_device *device(struct sim_node *n, const char *name)
{
    for (unsigned i = 0; i < SIM_DEVICES; i++)
        if (n->device[i].serial && strcmp(n->device[i].name, name) == 0)
            return &n->device[i];
    return NULL;
}

static bool gate(struct sim_world *w, struct sim_proc *p, const struct fnd_gate *g)
{
    struct sim_node *n = &w->node[p->node];
    struct sim_gate *at = NULL;
    struct sim_device *d;
    base_time was = 0;

    if (g->deadline == 0) { /* shut on every device */
        for (unsigned i = 0; i < SIM_GATES; i++) {
            if (!n->gate[i].used || n->gate[i].lost || !base_prefix_eq(&n->gate[i].prefix, &g->prefix))
                continue;
            SIM_SAY(w, "%s gate shut, epoch %lld", n->name, (long long)n->gate[i].epoch);
            n->gate[i].used = false;
        }
        return true;
    }
    d = device(n, g->device);
    if (!d)
        return false;
    for (unsigned i = 0; i < SIM_GATES && !at; i++)
        if (n->gate[i].used && !n->gate[i].lost && n->gate[i].device == d->serial &&
            base_prefix_eq(&n->gate[i].prefix, &g->prefix))
            at = &n->gate[i];
    if (at && base_uuid_eq(&at->uid, &g->uid) && at->epoch == g->epoch)
        was = at->deadline;
    for (unsigned i = 0; i < SIM_GATES && !at; i++)
        if (!n->gate[i].used)
            at = &n->gate[i];
    if (!at) {
        sim_fail(w, "sim: too many gates", "%s", n->name);
        return false;
    }
    *at = (struct sim_gate){.used = true,
                            .device = d->serial,
                            .prefix = g->prefix,
                            .deadline = g->deadline,
                            .uid = g->uid,
                            .epoch = g->epoch};
    (void)base_copy(at->name, sizeof at->name, g->device);
    if (!was)
        SIM_SAY(w, "%s gate open, epoch %lld, until %.3f s from now", n->name, (long long)g->epoch,
                (double)(g->deadline - sim_node_now(w, p->node)) / 1e9);
    w->look = true;
    sim_saw_gate(w, p, g, was);
    return true;
}

static bool record(struct sim_world *w, struct sim_node *n, const struct fnd_record *r)
{
    struct fnd_record *at = NULL;

    for (unsigned i = 0; i < SIM_RECORDS; i++) {
        if (n->record[i].kind && base_uuid_eq(&n->record[i].uid, &r->uid)) {
            at = &n->record[i];
            break;
        }
        if (!n->record[i].kind && !at)
            at = &n->record[i];
    }
    if (!at) {
        sim_fail(w, "sim: too many records", "%s", n->name);
        return false;
    }
    *at = *r;
    return true;
}

static bool publish(struct sim_world *w, struct sim_proc *p, const struct fnd_gate *g, base_time until)
{
    struct sim_node *n = &w->node[p->node];
    struct sim_route *at = NULL;

    for (unsigned i = 0; i < SIM_ROUTES; i++) {
        if (n->route[i].used && base_prefix_eq(&n->route[i].prefix, &g->prefix)) {
            at = &n->route[i];
            break;
        }
        if (!n->route[i].used && !at)
            at = &n->route[i];
    }
    if (!at)
        return false;
    *at = (struct sim_route){.used = true, .prefix = g->prefix, .epoch = g->epoch, .until = until};
    sim_saw_publish(w, p, g);
    sim_post(w, sim_real(&n->clock, until), SIM_EV_WATCHDOG, NULL)->a = (uint64_t)p->node;
    return true;
}

/* A process of its own beside the foundation: withdraws what was not refreshed. */
void sim_watchdog(struct sim_world *w, int node)
{
    struct sim_node *n = &w->node[node];
    base_time now = sim_node_now(w, node);

    for (unsigned i = 0; i < SIM_ROUTES; i++)
        if (n->route[i].used && now >= n->route[i].until)
            n->route[i].used = false;
}

void sim_device_gone(struct sim_world *w, int node, uint32_t dev)
{
    struct sim_node *n = &w->node[node];

    for (unsigned i = 0; i < SIM_GATES; i++)
        if (n->gate[i].used && n->gate[i].device == dev)
            n->gate[i].used = false;
    for (unsigned i = 0; i < BASE_LEN(w->tun); i++) {
        struct sim_tun *t = &w->tun[i];
        struct sim_proc *p;

        if (!t->tun_id || t->device != dev)
            continue;
        p = sim_proc_of(w, t->proc, t->serial);
        if (p) /* its data thread sees EBADFD when it runs */
            sim_post(w, base_time_max(w->now + 1 + (base_time)sim_draw(p, 20 * BASE_MS), p->data_stopped),
                     SIM_EV_TUN_LOST, p)
                ->a = t->tun_id;
    }
}

/* What the foundation's driver does first when it finds its maps empty: gates that it cannot reach go with
 * their devices (kernel_new in test/foundation/kernel.c). */
void sim_kernel_start_over(struct sim_world *w, int node)
{
    struct sim_node *n = &w->node[node];
    bool any = false;

    for (unsigned i = 0; i < SIM_RECORDS && !any; i++)
        any = n->record[i].kind != 0;
    for (unsigned i = 0; i < SIM_GATES && !any; i++)
        any = n->gate[i].used && !n->gate[i].lost;
    if (any)
        return;
    for (unsigned i = 0; i < SIM_DEVICES; i++) {
        uint32_t serial = n->device[i].serial;

        if (!serial)
            continue;
        SIM_SAY(w, "%s device %s deleted: the maps are empty", n->name, n->device[i].name);
        n->device[i].serial = 0;
        sim_device_gone(w, node, serial);
    }
    memset(n->route, 0, sizeof n->route);
}

bool sim_kernel_effect(struct sim_world *w, struct sim_proc *p, const struct fnd_fx *fx)
{
    struct sim_node *n = &w->node[p->node];
    struct sim_device *d;
    uint32_t serial;

    if (!w->healed && sim_chance(p, w->plan->rate[SIM_F_KERNEL_FAIL]) && fx->op) {
        sim_fired(w, SIM_F_KERNEL_FAIL);
        SIM_SAY(w, "%s a kernel effect fails", n->name);
        return false;
    }
    switch (fx->kind) {
    case FND_FX_GATE:
        return gate(w, p, &fx->gate);
    case FND_FX_RECORD:
        return record(w, n, &fx->record);
    case FND_FX_FORGET:
        for (unsigned i = 0; i < SIM_RECORDS; i++)
            if (n->record[i].kind && base_uuid_eq(&n->record[i].uid, &fx->record.uid))
                n->record[i].kind = 0;
        return true;
    case FND_FX_PUBLISH:
        return publish(w, p, &fx->gate, fx->until);
    case FND_FX_WITHDRAW:
        for (unsigned i = 0; i < SIM_ROUTES; i++)
            if (n->route[i].used && base_prefix_eq(&n->route[i].prefix, &fx->gate.prefix))
                n->route[i].used = false;
        return true;
    case FND_FX_DEVICE_MAKE:
        if (device(n, fx->gate.device))
            return true;
        for (unsigned i = 0; i < SIM_DEVICES; i++) {
            if (n->device[i].serial)
                continue;
            n->device[i].serial = ++w->devices;
            (void)base_copy(n->device[i].name, sizeof n->device[i].name, fx->gate.device);
            SIM_SAY(w, "%s device %s made", n->name, fx->gate.device);
            return true;
        }
        return false;
    case FND_FX_DEVICE_DELETE:
        d = device(n, fx->gate.device);
        if (d) {
            serial = d->serial;
            d->serial = 0;
            SIM_SAY(w, "%s device %s deleted", n->name, fx->gate.device);
            sim_device_gone(w, p->node, serial);
        }
        return true;
    case FND_FX_GET:
    case FND_FX_STATUS:
    case FND_FX_FINALIZERS:
    case FND_FX_PROVE:
    case FND_FX_SCAN:
    case FND_FX_RELIST:
    case FND_FX_LOG:
        break;
    }
    return true;
}

/* A new boot: new boot id, a clock that starts again, nothing in the kernel. */
void sim_kernel_boot(struct sim_world *w, int node)
{
    struct sim_node *n = &w->node[node];

    n->boot_id = sim_uuid(w);
    n->boots++;
    n->clock.t0 = w->now;
    n->clock.b0 = n->boots == 1 ? 1000 * BASE_SEC + node * 77 * BASE_SEC : 8 * BASE_SEC;
    n->clock.frozen = false;
    n->renewed = 0;
    memset(n->gate, 0, sizeof n->gate);
    memset(n->record, 0, sizeof n->record);
    memset(n->device, 0, sizeof n->device);
    memset(n->route, 0, sizeof n->route);
}
