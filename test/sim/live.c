/* SPDX-License-Identifier: Apache-2.0
 *
 * After the faults: everything must come back within bounds and stay (L1 to L8 of the research note), and
 * what a scenario expects at a moment.
 */
#include "sim.h"

#include <stdio.h>

#define QUIET (15 * BASE_SEC) /* how long it has to stay as it is */

static int32_t longest_lease(const struct sim_world *w)
{
    int32_t l = 30;

    for (unsigned i = 0; i < w->n_epochs; i++)
        l = w->epoch[i].max_lease_s > l ? w->epoch[i].max_lease_s : l;
    for (int i = 0; i < w->nodes; i++)
        l = w->node[i].lease_s > l ? w->node[i].lease_s : l;
    return w->n_epochs || l > 30 ? l : 30;
}

/* From the end of the faults to forwarding: a lost instance row waits L, a deletion that a dead node's
 * finalizer holds up waits for the next scan (L) and W, a takeover waits W; each with a few requests. */
base_time sim_bound(const struct sim_world *w)
{
    struct contract_timing t = contract_timing_default();
    int32_t l = longest_lease(w);

    return 2 * contract_wait(&t, l) + 2 * l * BASE_SEC + 20 * BASE_SEC;
}

static struct sim_flow *passing(struct sim_world *w, int client, int node)
{
    for (unsigned i = 0; i < w->high_flow; i++) {
        struct sim_flow *f = &w->flow[i];

        if (f->flow && f->client == client && (node < 0 || w->proc[f->proc].node == node) && sim_passes(w, f))
            return f;
    }
    return NULL;
}

static const struct contract_claim *claim_of(struct sim_world *w, int client)
{
    char name[CONTRACT_NAME_SIZE];
    const struct contract_object *o;

    if (!sim_claim_name(w, client, name))
        return NULL;
    o = sim_api_get(w, CONTRACT_CLAIM, name);
    return o ? &o->u.claim : NULL;
}

/* A claim that is being deleted; NULL: none is. */
static const struct contract_claim *deleted(struct sim_world *w)
{
    for (unsigned i = 0; i < w->n_epochs; i++) {
        const struct sim_epoch *e = &w->epoch[i];
        const struct contract_object *o;

        if (e->ended || (i + 1 < w->n_epochs && strcmp(w->epoch[i + 1].name, e->name) == 0))
            continue;
        o = sim_api_get(w, CONTRACT_CLAIM, e->name);
        if (o && o->u.meta.deleting)
            return &o->u.claim;
    }
    return NULL;
}

/* What must be so once everything stands still. */
static void settled(struct sim_world *w)
{
    const struct contract_claim *c = deleted(w);

    if (c)
        sim_fail(w, "L3: a deleted claim does not go", "%s has %u finalizers", c->meta.name,
                 c->meta.n_finalizers);
    for (int a = 0; a < w->nodes; a++) {
        const struct sim_node *n = &w->node[a];
        base_time now = sim_node_now(w, a);

        for (unsigned i = 0; i < SIM_ROUTES && !n->off; i++) {
            bool open = false;

            for (unsigned k = 0; k < SIM_GATES; k++)
                open |= n->gate[k].used && n->gate[k].deadline > now &&
                        base_prefix_eq(&n->gate[k].prefix, &n->route[i].prefix);
            if (n->route[i].used && !open)
                sim_fail(w, "S12: a route stands without an open gate", "epoch %lld on %s",
                         (long long)n->route[i].epoch, n->name);
        }
    }
}

/* Once a second after the faults have stopped. */
void sim_live_check(struct sim_world *w)
{
    bool all = true;
    int missing = -1;
    base_time since = w->now - w->healed;
    unsigned epochs = w->n_epochs;

    for (int i = 0; i < w->plan->clients; i++) {
        if (!w->client[i].wants)
            continue;
        if (!passing(w, i, w->client[i].node)) {
            all = false;
            missing = i;
        }
    }
    if (all && w->all_since == 0) {
        w->all_since = w->now;
        w->quiet_epochs = epochs;
        w->res.recovery = base_time_max(w->res.recovery, since);
    }
    if (!all && w->all_since) {
        if (since > sim_bound(w))
            sim_fail(w, "L8: a session is lost again without a fault", "%s, %.1f s after the last fault",
                     w->client[missing].connector, (double)since / 1e9);
        w->all_since = 0;
    }
    if (!all && since > sim_bound(w))
        sim_fail(w, "L1: a connector is not back",
                 "%s on %s, %.1f s after the last fault (bound %.1f s); agent: %s",
                 w->client[missing].connector, w->node[w->client[missing].node].name, (double)since / 1e9,
                 (double)sim_bound(w) / 1e9,
                 sim_agent_of(w, w->client[missing].node) ? sim_agent_of(w, w->client[missing].node)->reason
                                                          : "none");
    if (all && w->quiet_epochs != epochs && since > sim_bound(w))
        sim_fail(w, "L6: epochs change without a fault", "%u to %u", w->quiet_epochs, epochs);
    if (all && w->now - w->all_since >= QUIET && since >= w->plan->settle &&
        (since > sim_bound(w) ||
         !deleted(w))) { /* a dead node's finalizer stays for W, whoever waits for it */
        settled(w);
        w->end = w->now;
        return;
    }
    if (!w->stop)
        sim_post(w, w->now + BASE_SEC, SIM_EV_CHECK, NULL);
}

/* ---- scenarios ---- */
void sim_expected(struct sim_world *w, const struct sim_expect *x)
{
    const struct contract_claim *c;
    int64_t found = 0;
    bool ok = false;

    switch (x->what) {
    case SIM_X_FORWARDING:
        ok = passing(w, x->client, x->node) != NULL;
        break;
    case SIM_X_STOPPED:
        ok = passing(w, x->client, x->node) == NULL;
        break;
    case SIM_X_EPOCH:
    case SIM_X_EPOCH_IS:
    case SIM_X_CLOSED:
        c = claim_of(w, x->client);
        found = !c ? 0 : x->what == SIM_X_CLOSED ? c->status.closed_epoch : c->spec.epoch;
        ok = x->what == SIM_X_EPOCH_IS ? found == x->arg : found >= x->arg;
        break;
    case SIM_X_GATES:
    case SIM_X_ROUTES:
        for (int a = 0; a < w->nodes; a++) {
            for (unsigned i = 0; i < SIM_GATES && x->what == SIM_X_GATES; i++)
                found += w->node[a].gate[i].used && w->node[a].gate[i].deadline > sim_node_now(w, a);
            for (unsigned i = 0; i < SIM_ROUTES && x->what == SIM_X_ROUTES; i++)
                found += w->node[a].route[i].used;
        }
        ok = found == x->arg;
        break;
    case SIM_X_READY:
        found = sim_agent_of(w, x->node) && sim_agent_of(w, x->node)->ready;
        ok = found == x->arg;
        break;
    case SIM_X_ROWS:
        for (unsigned i = 0; i < w->n_epochs; i++)
            found += !w->epoch[i].ended && w->epoch[i].epoch == 1;
        ok = found == x->arg;
        break;
    case SIM_X_REFUSALS:
        found = w->client[x->client].refusals;
        ok = found >= x->arg;
        break;
    }
    if (!ok)
        sim_fail(w, "scenario: an expectation does not hold", "line %u, at %.3f s: found %lld", x->line,
                 (double)x->at / 1e9, (long long)found);
}
