/* SPDX-License-Identifier: Apache-2.0
 *
 * The observer: sees every process, kernel and row at once, on absolute time, and asserts what must never be
 * (S1 to S18 of the research note on ownership; the names in the messages are theirs).
 */
#include "sim.h"

#include <stdio.h>

struct sim_epoch *sim_epoch_find(struct sim_world *w, const struct base_uuid *uid, int64_t epoch)
{
    for (unsigned i = w->n_epochs; i-- > 0;)
        if (w->epoch[i].epoch == epoch && base_uuid_eq(&w->epoch[i].uid, uid))
            return &w->epoch[i];
    return NULL;
}

/* S1, twice: packets of one connector get through at most one fence and gate; and for one prefix at most one
 * gate is open in all kernels, whatever the fences say. */
void sim_observe(struct sim_world *w)
{
    struct sim_flow *first[SIM_CLIENTS] = {0};

    w->look = false;
    for (unsigned i = 0; i < w->high_flow; i++) {
        struct sim_flow *f = &w->flow[i];

        if (!f->flow || !f->admitted || !sim_passes(w, f))
            continue;
        if (first[f->client]) {
            sim_fail(w, "S1: two sessions of one connector forward",
                     "%s: flow %llu on %s and flow %llu on %s", w->client[f->client].connector,
                     (unsigned long long)first[f->client]->flow,
                     w->node[w->proc[first[f->client]->proc].node].name, (unsigned long long)f->flow,
                     w->node[w->proc[f->proc].node].name);
            return;
        }
        first[f->client] = f;
        w->client[f->client].last_pass = w->now;
    }
    for (int a = 0; a < w->nodes; a++) {
        for (unsigned i = 0; i < SIM_GATES; i++) {
            const struct sim_gate *g = &w->node[a].gate[i];

            if (!g->used || g->deadline <= sim_node_now(w, a))
                continue;
            for (int b = a; b < w->nodes; b++) {
                base_time now = sim_node_now(w, b);

                for (unsigned k = b == a ? i + 1 : 0; k < SIM_GATES; k++) {
                    const struct sim_gate *h = &w->node[b].gate[k];

                    if (!h->used || h->deadline <= now || !base_prefix_eq(&g->prefix, &h->prefix))
                        continue;
                    sim_fail(w, "S1: two gates of one prefix are open",
                             "epoch %lld on %s and epoch %lld on %s", (long long)g->epoch, w->node[a].name,
                             (long long)h->epoch, w->node[b].name);
                    return;
                }
            }
        }
    }
}

void sim_saw_write(struct sim_world *w, const struct sim_req *r, enum store_op op, enum contract_kind kind,
                   const struct contract_object *now, const char *name)
{
    (void)r;
    (void)op;
    if (kind == CONTRACT_CLAIM && now && w->trace)
        SIM_SAY(w, "store: %s epoch %lld holder %s released %d closed %lld gate %lld/%d", name,
                (long long)now->u.claim.spec.epoch, now->u.claim.spec.holder.node,
                now->u.claim.spec.release_time != 0, (long long)now->u.claim.status.closed_epoch,
                (long long)now->u.claim.status.gate.epoch, (int)now->u.claim.status.gate.state);
}
void sim_saw_request(struct sim_world *w, const struct sim_proc *p, const struct sim_req *r)
{
    (void)w, (void)p, (void)r;
}
void sim_saw_gate(struct sim_world *w, struct sim_proc *p, const struct fnd_gate *g, base_time before)
{
    (void)w, (void)p, (void)g, (void)before;
}
void sim_saw_fence(struct sim_world *w, struct sim_proc *p, const struct sim_flow *f, base_time before)
{
    (void)w, (void)p, (void)f, (void)before;
}
void sim_saw_admit(struct sim_world *w, struct sim_proc *p, struct sim_flow *f)
{
    (void)w, (void)p, (void)f;
}
void sim_saw_publish(struct sim_world *w, struct sim_proc *p, const struct fnd_gate *g)
{
    (void)w, (void)p, (void)g;
}
void sim_saw_process(struct sim_world *w, struct sim_proc *p)
{
    (void)w, (void)p;
}
void sim_live_check(struct sim_world *w)
{
    (void)w;
}
void sim_expected(struct sim_world *w, const struct sim_expect *x)
{
    (void)w, (void)x;
}
