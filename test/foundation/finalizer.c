/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

static bool is_gate(const char *f)
{
    return base_str_starts(base_str_of(f), CONTRACT_GATE_FINALIZER);
}

static unsigned shown(const struct contract_meta *m)
{
    return m->n_finalizers < CONTRACT_FINALIZERS_MAX ? m->n_finalizers : CONTRACT_FINALIZERS_MAX;
}

static void take(struct contract_meta *m, unsigned i)
{
    unsigned n = shown(m);

    for (; i + 1 < n; i++)
        memcpy(m->finalizers[i], m->finalizers[i + 1], sizeof m->finalizers[i]);
    memset(m->finalizers[n - 1], 0, sizeof m->finalizers[n - 1]);
    m->n_finalizers--;
}

static bool put(struct fnd_core *c, struct fnd_claim *cl, const struct contract_claim *n,
                enum fnd_reason what)
{
    if (!fnd_row_put(c, &cl->row, FND_ASK_FINALIZERS, CONTRACT_CLAIM, n, sizeof *n))
        return false;
    fnd_gate_log(c, cl, FND_LOG_FINALIZER, cl->obj.spec.epoch, what);
    return true;
}

/* How long a row that was taken over is left alone: its new holder's foundation writes on it right now, and
 * each write of ours in between would cost it a conflict. Only a deletion waits for the finalizer, and that
 * is never deferred. */
#define PATIENCE (5 * BASE_SEC)

/* The new holder's epoch has come up, or is over. */
static bool settled(const struct contract_claim *o)
{
    return (o->status.gate.epoch == o->spec.epoch && o->status.gate.state == CONTRACT_GATE_OPEN) ||
           o->status.closed_epoch >= o->spec.epoch;
}

/* Own: put on right before the gate opens, while the row names this node and boot; taken off when every epoch
 * up to the row's is closed here, once it names another or is being deleted. */
static bool own(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v, base_time *wake)
{
    const struct contract_claim *o = &cl->obj;
    struct contract_claim n = *o;
    bool me = fnd_is_me(c, &o->spec.holder);

    if (!contract_has_finalizer(&o->meta, c->finalizer)) {
        /* The last thing before the opening: earlier it would only cross the previous node's closure. */
        if (!me || v->reason != FND_R_NO_FINALIZER || o->meta.n_finalizers >= CONTRACT_FINALIZERS_MAX)
            return false;
        base_copy(n.meta.finalizers[n.meta.n_finalizers++], sizeof n.meta.finalizers[0], c->finalizer);
        return put(c, cl, &n, FND_R_ADDED);
    }
    if (me && !o->meta.deleting)
        return false;
    if (!fnd_gate_closed_here(cl, o->meta.deleting ? o->spec.epoch : o->spec.epoch - 1) || cl->kern.active)
        return false;
    if (!o->meta.deleting && !settled(o) && c->now < base_time_add(cl->first_seen, PATIENCE)) {
        fnd_wake(wake, base_time_add(cl->first_seen, PATIENCE));
        return false;
    }
    for (unsigned i = shown(&n.meta); i-- > 0;)
        if (strcmp(n.meta.finalizers[i], c->finalizer) == 0)
            take(&n.meta, i);
    return put(c, cl, &n, FND_R_REMOVED);
}

/* Those of nodes that do not answer: W after a fresh read of the deletion anybody may take them off. The
 * deletion is a change of the row, so by then every gate has been without a proof for longer than any lease.
 */
static bool foreign(struct fnd_core *c, struct fnd_claim *cl, base_time *wake)
{
    struct contract_claim n = cl->obj;
    bool any = false;
    base_time at;

    if (!n.meta.deleting)
        return false;
    for (unsigned i = 0; i < shown(&n.meta); i++)
        any |= is_gate(n.meta.finalizers[i]) && strcmp(n.meta.finalizers[i], c->finalizer) != 0;
    if (!any)
        return false;
    if (!cl->deleting_read) {
        cl->row.read = true;
        fnd_row_get(c, &cl->row, CONTRACT_CLAIM);
        return true;
    }
    at = base_time_add(cl->deleting_read, contract_wait(&c->cfg.timing, n.spec.max_lease_seconds));
    if (c->now < at) {
        fnd_wake(wake, at);
        return false;
    }
    for (unsigned i = shown(&n.meta); i-- > 0;)
        if (is_gate(n.meta.finalizers[i]) && strcmp(n.meta.finalizers[i], c->finalizer) != 0)
            take(&n.meta, i);
    return put(c, cl, &n, FND_R_REMOVED);
}

bool fnd_finalizer_drive(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v,
                         base_time *wake)
{
    return own(c, cl, v, wake) || foreign(c, cl, wake);
}
