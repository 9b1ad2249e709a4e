/* SPDX-License-Identifier: Apache-2.0
 *
 * The observer after an etcd restore: rows are as they were when the backup was made, and what landed since
 * then never was. Its account of epochs, instances, bindings and services follows the rows as stored; what
 * gates and fences may do goes on being judged by it.
 */
#include "sim.h"

/* What the stored row says of an epoch of its object. */
static void as_stored(struct sim_world *w, struct sim_epoch *e, const struct contract_claim *c)
{
    bool current = e->epoch == c->spec.epoch;

    e->ended = false;
    e->closed = e->epoch <= c->status.closed_epoch;
    if (!current)
        return; /* lost before the backup, as it stands */
    e->released = c->spec.release_time != 0;
    if (!e->released && !c->meta.deleting)
        e->lost = 0;
    else if (!e->lost)
        e->lost = w->now;
    if (c->status.gate.state != CONTRACT_GATE_OPEN || c->status.gate.epoch != e->epoch)
        e->opened = 0;
}

/* Every API server was down for longer than W: no gate of it is open any more, and none may open again. */
static void undo(struct sim_world *w, struct sim_epoch *e)
{
    e->undone = e->ended = e->closed = true;
    if (!e->lost)
        e->lost = w->now;
}

static void epochs(struct sim_world *w)
{
    for (unsigned i = 0; i < w->n_epochs; i++) {
        struct sim_epoch *e = &w->epoch[i];
        const struct contract_object *o;

        if (e->undone)
            continue;
        o = sim_api_get(w, CONTRACT_CLAIM, e->name);
        if (!o || !base_uuid_eq(&o->u.meta.uid, &e->uid) || e->epoch > o->u.claim.spec.epoch)
            undo(w, e);
        else
            as_stored(w, e, &o->u.claim);
    }
}

static void instances(struct sim_world *w)
{
    for (int k = 0; k < w->nodes; k++) {
        struct sim_node *n = &w->node[k];
        char name[CONTRACT_NAME_SIZE];
        const struct contract_object *o;

        (void)contract_instance_name(name, "masque", n->name, NULL);
        o = sim_api_get(w, CONTRACT_INSTANCE, name);
        n->inst_epoch = o ? o->u.instance.spec.epoch : 0;
        /* of a process that was not the last one: nobody renews it */
        n->inst_released = !o || o->u.instance.spec.release_time != 0 ||
                           !base_uuid_eq(&o->u.instance.spec.process_id, &n->inst_process);
        if (o)
            n->inst_uid = o->u.meta.uid;
    }
    w->n_identities = 0; /* an identity may hold its epoch again, and no other */
}

void sim_saw_restore(struct sim_world *w)
{
    const struct contract_object *o;

    epochs(w);
    instances(w);
    for (int i = 0; i < w->plan->clients; i++) {
        o = sim_api_get(w, CONTRACT_BINDING, w->client[i].binding);
        if (o && !o->u.binding.spec.suspended && !o->u.meta.deleting)
            w->client[i].revoked = 0;
        else if (!w->client[i].revoked)
            w->client[i].revoked = w->now;
    }
    o = sim_api_get(w, CONTRACT_SERVICE, "svc-a");
    if (o && !o->u.service.revoked && !o->u.meta.deleting)
        w->revoked = 0;
    else if (!w->revoked)
        w->revoked = w->now;
    if (o) {
        struct base_prefix other;

        (void)base_prefix_parse(&other, BASE_STR("fd12:0:0:2::/64"));
        w->other_pool = base_prefix_eq(&o->u.service.pool, &other);
    }
}
