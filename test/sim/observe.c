/* SPDX-License-Identifier: Apache-2.0
 *
 * The observer: sees every process, kernel and row at once, on absolute time, and asserts what must never be
 * (S1 to S18 of the research note on ownership; the numbers in the messages are its). What it knows of claim
 * epochs it learns from landed writes, as they land; nothing here asks a core what it believes.
 */
#include "sim.h"

#include <stdio.h>

#define RHO_PPM 1000
#define GRANT_MAX (30 * BASE_SEC)
#define SKEW (4 * BASE_SEC + 500 * BASE_MS) /* of a wall clock, at both ends of its step, and rounding */

struct sim_epoch *sim_epoch_find(struct sim_world *w, const struct base_uuid *uid, int64_t epoch)
{
    for (unsigned i = w->n_epochs; i-- > 0;)
        if (w->epoch[i].epoch == epoch && base_uuid_eq(&w->epoch[i].uid, uid))
            return &w->epoch[i];
    return NULL;
}

/* Both epochs are the same process's: a claim of its own that landed late. It has one session of a connector
 * at a time, with a deadline of its own, whichever of the two the gate is open for. */
static bool one_holder(struct sim_world *w, const struct sim_flow *f, const struct sim_gate *g)
{
    const struct sim_epoch *of_session = sim_epoch_find(w, &f->uid, f->epoch),
                           *of_gate = sim_epoch_find(w, &g->uid, g->epoch);

    return of_session && of_gate && base_uuid_eq(&of_session->process, &of_gate->process);
}

/* ---- S1 ---- */
/* Packets of one connector get through at most one fence and gate. */
static void sessions(struct sim_world *w)
{
    struct sim_flow *first[SIM_CLIENTS] = {0};

    for (unsigned i = 0; i < w->high_flow; i++) {
        struct sim_flow *f = &w->flow[i], *g;
        const struct sim_gate *gate;

        if (!f->flow || !f->admitted || !sim_passes(w, f))
            continue;
        (void)sim_gate_of(&w->node[w->proc[f->proc].node], f->device, &f->prefix, &gate);
        if (f->epoch && (gate->epoch != f->epoch || !base_uuid_eq(&gate->uid, &f->uid)) &&
            !one_holder(w, f, gate)) {
            sim_fail(w, "S2: a session passes the gate of another epoch",
                     "%s: session of epoch %lld, gate of %lld", w->client[f->client].connector,
                     (long long)f->epoch, (long long)gate->epoch);
            return;
        }
        g = first[f->client];
        if (g) {
            sim_fail(w, "S1: two sessions of one connector forward",
                     "%s: flow %llu on %s and flow %llu on %s", w->client[f->client].connector,
                     (unsigned long long)g->flow, w->node[w->proc[g->proc].node].name,
                     (unsigned long long)f->flow, w->node[w->proc[f->proc].node].name);
            return;
        }
        first[f->client] = f;
    }
}

/* For one prefix at most one gate is open in all kernels, whatever the fences say. */
static void gates(struct sim_world *w)
{
    const struct sim_gate *open[SIM_NODES * SIM_GATES];
    int node[SIM_NODES * SIM_GATES];
    unsigned n = 0;

    for (int a = 0; a < w->nodes; a++) {
        base_time now = sim_node_now(w, a);

        for (unsigned i = 0; i < SIM_GATES && !w->node[a].clock.frozen;
             i++) { /* a frozen machine passes nothing */
            const struct sim_gate *g = &w->node[a].gate[i];

            if (!g->used || g->deadline <= now)
                continue;
            for (unsigned k = 0; k < n; k++) {
                if (!base_prefix_eq(&open[k]->prefix, &g->prefix))
                    continue;
                sim_fail(w, "S1: two gates of one prefix are open",
                         "epoch %lld on %s (%d) and epoch %lld on %s (%d)", (long long)open[k]->epoch,
                         w->node[node[k]].name, node[k], (long long)g->epoch, w->node[a].name, a);
                return;
            }
            node[n] = a;
            open[n++] = g;
        }
    }
}

void sim_observe(struct sim_world *w)
{
    w->look = false;
    gates(w);
    if (!w->stop)
        sessions(w);
}

/* One thing that a connector experienced. Epochs count, times do not. */
void sim_lived(struct sim_world *w, int client, enum sim_lived_what what, int64_t epoch)
{
    struct sim_lived *l;

    if (client < 0)
        return;
    l = &w->res.others[client];
    l->hash[what] =
        (l->hash[what] ^ (uint64_t)epoch ^ UINT64_C(0xcbf29ce484222325)) * UINT64_C(0x100000001b3);
    l->events++;
}

/* ---- rows, as they land ---- */
static int client_of(const struct sim_world *w, const char *connector)
{
    for (int i = 0; i < w->plan->clients; i++)
        if (strcmp(w->client[i].connector, connector) == 0)
            return i;
    return -1;
}

static struct sim_epoch *newest(struct sim_world *w, const char *name)
{
    for (unsigned i = w->n_epochs; i-- > 0;)
        if (!w->epoch[i].ended && strcmp(w->epoch[i].name, name) == 0)
            return &w->epoch[i];
    return NULL;
}

static bool gate_open(const struct sim_world *w, const struct base_uuid *uid, int64_t upto, int *ret_node)
{
    for (int a = 0; a < w->nodes; a++)
        for (unsigned i = 0; i < SIM_GATES && !w->node[a].clock.frozen; i++) {
            const struct sim_gate *g = &w->node[a].gate[i];

            if (g->used && g->epoch <= upto && base_uuid_eq(&g->uid, uid) &&
                g->deadline > sim_node_now(w, a)) {
                *ret_node = a;
                return true;
            }
        }
    return false;
}

static void new_epoch(struct sim_world *w, const struct sim_req *r, const struct contract_claim *c,
                      struct sim_epoch *old)
{
    struct sim_epoch *e;

    for (unsigned i = 0; i < w->n_epochs; i++)
        if (!w->epoch[i].undone && base_uuid_eq(&w->epoch[i].lease, &c->spec.lease_uuid)) {
            sim_fail(w, "S5: a leaseUUID was used twice", "%s epoch %lld", c->meta.name,
                     (long long)c->spec.epoch);
            return;
        }
    if (w->n_epochs == SIM_EPOCHS) {
        sim_fail(w, "L6: epochs go up without end", "%s epoch %lld", c->meta.name, (long long)c->spec.epoch);
        return;
    }
    if (old && base_uuid_eq(&old->uid, &c->meta.uid)) {
        if (c->spec.epoch != old->epoch + 1)
            sim_fail(w, "S5: an epoch did not go up by one", "%s %lld to %lld", c->meta.name,
                     (long long)old->epoch, (long long)c->spec.epoch);
        if (!old->released) {
            w->res.takeovers++;
            if (c->status.closed_epoch < c->spec.epoch - 2)
                w->res.doubles++;
        }
        if (!old->lost)
            old->lost = w->now;
    }
    if (r && r->type == SIM_AGENT && !base_uuid_eq(&r->process, &c->spec.holder.process_id))
        sim_fail(w, "S7: a claim was written for another process", "%s epoch %lld", c->meta.name,
                 (long long)c->spec.epoch);
    e = &w->epoch[w->n_epochs++];
    *e = (struct sim_epoch){.uid = c->meta.uid,
                            .lease = c->spec.lease_uuid,
                            .process = c->spec.holder.process_id,
                            .boot = c->spec.holder.boot_id,
                            .prefix = c->spec.prefix,
                            .client = client_of(w, c->spec.connector),
                            .epoch = c->spec.epoch,
                            .commit = w->now,
                            .lease_s = c->spec.lease_seconds,
                            .max_lease_s = c->spec.max_lease_seconds};
    (void)base_copy(e->name, sizeof e->name, c->meta.name);
    sim_lived(w, e->client, SIM_LIVED_EPOCH, e->epoch);
    if (c->spec.release_time) { /* a closing takeover */
        e->released = true;
        e->lost = w->now;
    }
}

static void claim_gone(struct sim_world *w, const char *name)
{
    struct sim_epoch *e = newest(w, name);
    int node;

    if (!e)
        return;
    if (gate_open(w, &e->uid, INT64_MAX, &node))
        sim_fail(w, "S8: a claim is gone and its gate is open", "%s on %s", name, w->node[node].name);
    for (unsigned i = 0; i < w->n_epochs; i++)
        if (base_uuid_eq(&w->epoch[i].uid, &e->uid)) {
            w->epoch[i].ended = true;
            if (!w->epoch[i].lost)
                w->epoch[i].lost = w->now;
        }
}

static void claim_written(struct sim_world *w, const struct sim_req *r, const struct contract_claim *c)
{
    struct sim_epoch *e = newest(w, c->meta.name);
    int node;

    SIM_SAY(w, "store: %s epoch %lld of %s%s%s, closed %lld, gate %lld %s", c->meta.name,
            (long long)c->spec.epoch, c->spec.holder.node, c->spec.release_time ? ", released" : "",
            c->meta.deleting ? ", deleting" : "", (long long)c->status.closed_epoch,
            (long long)c->status.gate.epoch, c->status.gate.state == CONTRACT_GATE_OPEN ? "open" : "closed");
    if (r && r->type == SIM_AGENT) {
        struct sim_proc *p = sim_proc_of(w, r->proc, r->serial);

        if (p) /* its own landed write is as good as a read */
            p->proof_t0[CONTRACT_CLAIM] = base_time_max(p->proof_t0[CONTRACT_CLAIM], r->sent);
    }
    if (!e || !base_uuid_eq(&e->uid, &c->meta.uid) || e->epoch != c->spec.epoch) {
        new_epoch(w, r, c, e);
        e = newest(w, c->meta.name);
        if (w->stop || !e)
            return;
    } else if (!base_uuid_eq(&e->lease, &c->spec.lease_uuid)) {
        sim_fail(w, "S5: an epoch has two leaseUUIDs", "%s epoch %lld", c->meta.name,
                 (long long)c->spec.epoch);
        return;
    } else if (c->spec.release_time && !e->released) {
        if (r && r->type == SIM_AGENT && !base_uuid_eq(&r->process, &e->process))
            sim_fail(w, "S7: a release hit another process's claim", "%s epoch %lld", c->meta.name,
                     (long long)e->epoch);
        e->released = true;
        if (!e->lost)
            e->lost = w->now;
    }
    if (c->meta.deleting && !e->lost)
        e->lost = w->now;
    if (!e->opened && c->status.gate.state == CONTRACT_GATE_OPEN && c->status.gate.epoch == e->epoch &&
        c->status.accepted_epoch == e->epoch && base_uuid_eq(&c->status.accepted_lease_uuid, &e->lease))
        e->opened = w->now;
    if (c->status.closed_epoch > 0 && gate_open(w, &c->meta.uid, c->status.closed_epoch, &node)) {
        sim_fail(w, "S8: closedEpoch covers an epoch whose gate is open",
                 "%s closedEpoch %lld, gate on %s (%d)", c->meta.name, (long long)c->status.closed_epoch,
                 w->node[node].name, node);
        return;
    }
    for (unsigned i = w->n_epochs; i-- > 0;)
        if (base_uuid_eq(&w->epoch[i].uid, &c->meta.uid) && w->epoch[i].epoch <= c->status.closed_epoch)
            w->epoch[i].closed = true;
}

/* Contract section 4: only a fresh process takes a row at once; one that has held it before waits until
 * whoever has it now releases it, or is silent for its L. */
static void instance_taken(struct sim_world *w, struct sim_proc *p, struct sim_node *n,
                           const struct contract_instance *i)
{
    bool other = n->inst_epoch && base_uuid_eq(&n->inst_uid, &i->meta.uid) &&
                 i->spec.epoch == n->inst_epoch + 1 && n->inst_owner != p->serial;

    if (other && p->had_instance && !n->inst_released && !w->same_identity &&
        (w->now - n->inst_written) / 1000000 * (1000000 + RHO_PPM) <
            n->inst_lease_s * BASE_SEC - 10 * BASE_MS)
        sim_fail(w, "S15: a process took back an instance from one that renews",
                 "%s epoch %lld, renewed %.3f s before", i->meta.name, (long long)i->spec.epoch,
                 (double)(w->now - n->inst_written) / 1e9);
}

static void instance_written(struct sim_world *w, const struct sim_req *r, enum store_op op,
                             const struct contract_instance *i)
{
    struct sim_proc *p = r && r->type == SIM_AGENT ? sim_proc_of(w, r->proc, r->serial) : NULL;
    struct sim_node *first;

    if (!r || r->type != SIM_AGENT || op == STORE_DELETE)
        return;
    first = &w->node[r->node];
    for (int k = w->nodes; k-- > 0;) /* of several machines with one name the first one keeps the account */
        if (strcmp(w->node[k].name, first->name) == 0)
            first = &w->node[k];
    if (base_uuid_eq(&i->spec.renew.boot_id, &w->node[r->node].boot_id)) /* its writer may be dead by now */
        w->node[r->node].renewed =
            base_time_max(w->node[r->node].renewed, i->spec.renew.boot_time_us * BASE_US);
    if (p && base_uuid_eq(&r->process, &i->spec.process_id)) {
        p->landed_renewal = base_time_max(p->landed_renewal, i->spec.renew.boot_time_us * BASE_US);
        if (i->spec.epoch != first->inst_epoch || !base_uuid_eq(&i->meta.uid, &first->inst_uid))
            instance_taken(w, p, first, i);
        else if (first->inst_owner == p->serial)
            p->had_instance = true; /* a renewal: it knows that it held the row */
    }
    first->inst_uid = i->meta.uid;
    first->inst_epoch = i->spec.epoch;
    first->inst_written = w->now;
    first->inst_released = i->spec.release_time != 0;
    first->inst_lease_s = i->spec.lease_seconds;
    first->inst_owner = r->serial;
    first->inst_process = i->spec.process_id;
    for (unsigned k = 0; k < w->n_identities; k++) {
        const struct sim_identity *d = &w->identity[k];

        if (!base_uuid_eq(&d->process, &i->spec.process_id))
            continue;
        if ((!base_uuid_eq(&d->uid, &i->meta.uid) || d->epoch != i->spec.epoch) && !w->same_identity)
            sim_fail(w, "S9: a process identity holds a second instance epoch", "%s epoch %lld", i->meta.name,
                     (long long)i->spec.epoch);
        return;
    }
    if (w->n_identities < BASE_LEN(w->identity))
        w->identity[w->n_identities++] =
            (struct sim_identity){i->spec.process_id, i->meta.uid, i->spec.epoch};
}

static void binding_written(struct sim_world *w, const struct contract_binding *b, bool deleted)
{
    for (int i = 0; i < w->plan->clients; i++) {
        struct sim_client *c = &w->client[i];

        if (strcmp(c->binding, b->meta.name) != 0)
            continue;
        if (deleted || b->spec.suspended || b->meta.deleting)
            c->revoked = c->revoked ? c->revoked : w->now;
        else
            c->revoked = 0;
    }
}

/* A write has landed. `r` NULL: of an operator. `now` NULL: the object is gone. */
void sim_saw_write(struct sim_world *w, const struct sim_req *r, enum store_op op, enum contract_kind kind,
                   const struct contract_object *now, bool gone, const char *name)
{
    switch (kind) {
    case CONTRACT_CLAIM:
        if (gone)
            claim_gone(w, name);
        else if (now)
            claim_written(w, r, &now->u.claim);
        return;
    case CONTRACT_INSTANCE:
        if (now && !gone)
            instance_written(w, r, op, &now->u.instance);
        return;
    case CONTRACT_BINDING:
        if (gone) {
            struct contract_binding b;

            memset(&b.meta, 0, sizeof b.meta);
            (void)base_copy(b.meta.name, sizeof b.meta.name, name);
            binding_written(w, &b, true);
        } else if (now) {
            binding_written(w, &now->u.binding, false);
        }
        return;
    case CONTRACT_SERVICE:
        if (gone || (now && now->u.service.revoked))
            w->revoked = w->revoked ? w->revoked : w->now;
        else
            w->revoked = 0;
        if (now)
            w->valid_until =
                base_time_max(w->valid_until, (base_time)(now->u.service.valid_until - w->wall0) * BASE_US);
        return;
    case CONTRACT_ATTACHMENT:
        return;
    }
}

/* ---- what a process sends ---- */
static bool audited(const struct sim_proc *p, const struct base_uuid *id)
{
    unsigned n = p->n_audited < BASE_LEN(p->audited) ? p->n_audited : (unsigned)BASE_LEN(p->audited);

    for (unsigned i = 1; i <= n; i++)
        if (base_uuid_eq(&p->audited[(p->n_audited - i) % BASE_LEN(p->audited)], id))
            return true;
    return false;
}

void sim_saw_request(struct sim_world *w, const struct sim_proc *p, struct sim_req *r)
{
    const struct contract_claim_spec *s;
    const struct sim_epoch *e;
    base_time now = r->sent;

    if (r->op == STORE_GET || r->op == STORE_LIST)
        return;
    if (r->op == STORE_DELETE ? base_uuid_is_zero(&r->uid) || !r->rv[0]
                              : r->op != STORE_CREATE &&
                                    (base_uuid_is_zero(&r->object->u.meta.uid) || !r->object->u.meta.rv[0]))
        sim_fail(w, "S7: a write without its preconditions", "%s %s", contract_kind_name(r->kind), r->name);
    if (p->type != SIM_AGENT)
        return;
    if (r->kind == CONTRACT_INSTANCE) {
        r->process = r->object->u.instance.spec.process_id;
        if (!audited(p, &r->process) && !r->object->u.instance.spec.release_time)
            sim_fail(w, "B5: an instance was written before its record was durable", "%s", r->name);
        return;
    }
    if (r->kind != CONTRACT_CLAIM || !r->object)
        return;
    s = &r->object->u.claim.spec;
    r->process = s->holder.process_id;
    e = r->op == STORE_CREATE ? NULL : sim_epoch_find(w, &r->object->u.meta.uid, s->epoch);
    if (!e || !base_uuid_eq(&e->lease, &s->lease_uuid)) { /* acquire, takeover, closing takeover */
        if (!audited(p, &s->lease_uuid))
            sim_fail(w, "B5: a claim was written before its record was durable", "%s epoch %lld", r->name,
                     (long long)s->epoch);
        return;
    }
    for (unsigned i = 0; i < w->high_flow; i++) {
        const struct sim_flow *f = &w->flow[i];

        if (f->flow && f->proc == p->index && f->serial == p->serial && f->deadline > now &&
            f->epoch == s->epoch && base_uuid_eq(&f->uid, &r->object->u.meta.uid))
            sim_fail(w, "S11: a release was sent while its session is open", "%s epoch %lld flow %llu",
                     r->name, (long long)s->epoch, (unsigned long long)f->flow);
    }
}

/* ---- gates and fences ---- */
/* Are the epochs before it over, or has the wait passed since it was committed? */
static bool earlier_over(const struct sim_world *w, const struct sim_proc *p, const struct sim_epoch *e)
{
    bool over = true;

    for (unsigned i = 0; i < w->n_epochs && over; i++)
        over =
            !(base_uuid_eq(&w->epoch[i].uid, &e->uid) && w->epoch[i].epoch < e->epoch && !w->epoch[i].closed);
    return over || (w->now - e->commit) / 1000000 * (1000000 + RHO_PPM) >=
                       contract_wait(&p->timing, e->max_lease_s) - 10 * BASE_MS;
}

static int32_t lease_of(const struct sim_proc *p, const struct sim_epoch *e)
{
    int32_t own = (int32_t)(p->timing.lease / BASE_SEC);

    return e->lease_s < own ? e->lease_s : own;
}

void sim_saw_gate(struct sim_world *w, struct sim_proc *p, const struct fnd_gate *g, base_time before)
{
    const struct sim_node *n = &w->node[p->node];
    const struct sim_epoch *e = sim_epoch_find(w, &g->uid, g->epoch);
    base_time now = sim_node_now(w, p->node), l;

    if (!e) {
        sim_fail(w, "S13: a gate was opened for an epoch that never landed", "epoch %lld on %s",
                 (long long)g->epoch, n->name);
        return;
    }
    l = e->lease_s * BASE_SEC;
    if (g->deadline <= now) /* decided before a stop, carried out after it: it opens nothing */
        return;
    if (!before) {
        sim_lived(w, e->client, SIM_LIVED_GATE, e->epoch);
        if (!base_uuid_eq(&e->boot, &n->boot_id))
            sim_fail(w, "S6: a gate was opened for a holder of another boot", "epoch %lld on %s",
                     (long long)e->epoch, n->name);
        if (e->closed)
            sim_fail(w, "S8: a closed epoch was opened again", "epoch %lld on %s", (long long)e->epoch,
                     n->name);
        if (!earlier_over(w, p, e))
            sim_fail(w, "S6: a gate was opened before earlier epochs were over",
                     "epoch %lld on %s, %.3f s after it was written", (long long)e->epoch, n->name,
                     (double)(w->now - e->commit) / 1e9);
    }
    if (g->deadline <= before)
        return;
    if (g->deadline > now + l)
        sim_fail(w, "S18: a gate's deadline is beyond L", "epoch %lld on %s: %.3f s ahead",
                 (long long)e->epoch, n->name, (double)(g->deadline - now) / 1e9);
    if (e->lost && g->deadline > sim_boot(&n->clock, e->lost) + l)
        sim_fail(w, "S4: a gate outlives L after its row was lost", "epoch %lld on %s by %.3f s",
                 (long long)e->epoch, n->name,
                 (double)(g->deadline - sim_boot(&n->clock, e->lost) - l) / 1e9);
    if (g->deadline > n->renewed + l)
        sim_fail(w, "S4: a gate outlives L after the last renewal", "epoch %lld on %s by %.3f s",
                 (long long)e->epoch, n->name, (double)(g->deadline - n->renewed - l) / 1e9);
    if (sim_real(&n->clock, g->deadline) > w->valid_until + SKEW)
        sim_fail(w, "S4: a gate outlives its service", "epoch %lld on %s", (long long)e->epoch, n->name);
    if (w->revoked && g->deadline > sim_boot(&n->clock, w->revoked) + l)
        sim_fail(w, "S4: a gate outlives L after its service was revoked", "epoch %lld on %s",
                 (long long)e->epoch, n->name);
    if (g->deadline > p->proof_t0[CONTRACT_CLAIM] + l)
        sim_fail(w, "S13: a gate was extended without a proof of this process", "epoch %lld on %s by %.3f s",
                 (long long)e->epoch, n->name, (double)(g->deadline - p->proof_t0[CONTRACT_CLAIM] - l) / 1e9);
}

void sim_saw_admit(struct sim_world *w, struct sim_proc *p, struct sim_flow *f)
{
    char name[CONTRACT_NAME_SIZE];
    struct session_view v;
    const struct sim_epoch *e = NULL;

    contract_claim_name(name, &f->prefix);
    for (size_t i = 0; session_core_view(p->core, i, &v); i++)
        if (v.flow == f->flow)
            break;
    if (v.flow != f->flow)
        v = (struct session_view){.epoch = 0};
    e = sim_epoch_find(w, &v.claim_uid, v.epoch);
    if (!e) {
        sim_fail(w, "S13: a session was admitted for an epoch that never landed", "%s epoch %lld", name,
                 (long long)v.epoch);
        return;
    }
    f->epoch = e->epoch;
    f->uid = e->uid;
    sim_lived(w, f->client, SIM_LIVED_ADMIT, e->epoch);
    if (!e->opened)
        sim_fail(w, "S3: a session was admitted before the foundation said that its gate is open",
                 "%s epoch %lld", name, (long long)e->epoch);
    if (f->tun_id == 0)
        sim_fail(w, "S3: a session was admitted without a device", "%s epoch %lld", name,
                 (long long)e->epoch);
    if (w->res.admits > 1)
        for (unsigned i = 0; i < w->high_flow; i++)
            if (w->flow[i].flow && &w->flow[i] != f && w->flow[i].client == f->client &&
                w->flow[i].proc == f->proc && w->flow[i].serial == f->serial && w->flow[i].stopping &&
                w->flow[i].admitted)
                w->res.handoffs++;
    if (!earlier_over(w, p, e))
        sim_fail(w, "S6: a session was admitted before earlier epochs were over",
                 "%s epoch %lld, %.3f s after it was written", name, (long long)e->epoch,
                 (double)(w->now - e->commit) / 1e9);
}

void sim_saw_fence(struct sim_world *w, struct sim_proc *p, const struct sim_flow *f, base_time before)
{
    const struct sim_clock *c = &w->node[p->node].clock;
    const struct sim_client *client = &w->client[f->client];
    const struct sim_epoch *e = sim_epoch_find(w, &f->uid, f->epoch);
    base_time now = sim_node_now(w, p->node), d = f->deadline, l;

    (void)before;
    if (!e || d <= 0)
        return;
    l = lease_of(p, e) * BASE_SEC - p->timing.guard;
    if (d > now + GRANT_MAX || d > now + p->timing.grant)
        sim_fail(w, "S18: a fence is further ahead than a grant", "flow %llu: %.3f s",
                 (unsigned long long)f->flow, (double)(d - now) / 1e9);
    if (e->lost && d > sim_boot(c, e->lost) + l)
        sim_fail(w, "S4: a fence outlives L-g after its row was lost", "%s epoch %lld by %.3f s",
                 client->connector, (long long)e->epoch, (double)(d - sim_boot(c, e->lost) - l) / 1e9);
    if (sim_real(c, d) > w->valid_until + SKEW)
        sim_fail(w, "S4: a fence outlives its service", "%s", client->connector);
    if (d > p->landed_renewal + l)
        sim_fail(w, "S17: a fence rests on a renewal that did not land", "%s by %.3f s", client->connector,
                 (double)(d - p->landed_renewal - l) / 1e9);
    if (d > p->proof_t0[CONTRACT_CLAIM] + l)
        sim_fail(w, "S13: a fence was extended without a claim proof", "%s by %.3f s", client->connector,
                 (double)(d - p->proof_t0[CONTRACT_CLAIM] - l) / 1e9);
    if (client->revoked && d > sim_boot(c, client->revoked) + p->timing.grant)
        sim_fail(w, "A7: a fence outlives the grant after its binding was revoked", "%s by %.3f s",
                 client->connector, (double)(d - sim_boot(c, client->revoked) - p->timing.grant) / 1e9);
    if (w->revoked && d > sim_boot(c, w->revoked) + p->timing.grant)
        sim_fail(w, "A7: a fence outlives the grant after its service was revoked", "%s", client->connector);
    if (p->gap_at && p->proof_t0[CONTRACT_CLAIM] <= p->gap_at)
        sim_fail(w, "S14: a fence was opened after a gap without a new claim proof", "%s", client->connector);
}

void sim_saw_publish(struct sim_world *w, struct sim_proc *p, const struct fnd_gate *g)
{
    const struct sim_node *n = &w->node[p->node];
    base_time now = sim_node_now(w, p->node);

    if (p->late) /* decided before a stop: it is withdrawn as soon as the foundation looks again */
        return;
    for (unsigned i = 0; i < SIM_GATES; i++)
        if (n->gate[i].used && n->gate[i].deadline > now && n->gate[i].epoch == g->epoch &&
            base_prefix_eq(&n->gate[i].prefix, &g->prefix))
            return;
    sim_fail(w, "S12: a route was published without an open gate", "epoch %lld on %s", (long long)g->epoch,
             n->name);
}
