/* SPDX-License-Identifier: Apache-2.0
 *
 * Random plans. Each takes a random subset of the faults at random rates, so that one fault does not drown
 * what another would have shown (swarm testing); some are made of a pattern that random draws seldom hit.
 */
#include "plan.h"

#include "base/cleanup.h"
#include "base/id.h"
#include "contract/contract.h"

static struct base_prng g;

static uint64_t below(uint64_t n)
{
    return base_prng_below(&g, n);
}

static bool one_in(uint64_t n)
{
    return below(n) == 0;
}

static base_time between(base_time lo, base_time hi)
{
    return lo + (base_time)below((uint64_t)(hi - lo) + 1);
}

/* Spans are spread over orders of magnitude: what matters is on which side of a bound they fall. */
static base_time span(const struct sim_plan *p)
{
    static const base_time tops[] = {5 * BASE_MS, 100 * BASE_MS, BASE_SEC, 4 * BASE_SEC, 15 * BASE_SEC};
    unsigned k = (unsigned)below(BASE_LEN(tops) + 2);

    if (k < BASE_LEN(tops))
        return between(0, tops[k]);
    return between(p->lease_s[0] * BASE_SEC / 2, p->lease_s[0] * BASE_SEC * 2);
}

static struct sim_act *act(struct sim_plan *p, base_time at, enum sim_fault what)
{
    struct sim_act *a;

    if (p->n_acts == SIM_ACTIONS)
        return &p->act[SIM_ACTIONS - 1];
    a = &p->act[p->n_acts++];
    *a = (struct sim_act){.at = at, .what = what, .node = -1, .client = -1};
    return a;
}

static int32_t some_lease(void)
{
    static const int32_t leases[] = {10, 10, 10, 12, 15, 15, 20, 30};

    return leases[below(BASE_LEN(leases))];
}

/* What an action needs beside time and kind. */
static void fill(struct sim_plan *p, struct sim_act *a)
{
    int node = (int)below((uint64_t)p->nodes), client = (int)below((uint64_t)p->clients);

    a->span = span(p);
    switch ((int)a->what) {
    case SIM_F_CUT:
    case SIM_F_CUT_UP:
    case SIM_F_CUT_DOWN:
        a->node = node;
        a->target = 1 + (int)below(3);
        return;
    case SIM_F_LINK_SLOW:
        a->node = node;
        a->target = 1 + (int)below(3);
        a->arg = (int64_t)below(4000);
        return;
    case SIM_F_LAG:
        a->target = 1 + (int)below(5);
        a->arg = (int64_t)below(3) - 1;
        return;
    case SIM_F_SILENT:
        a->target = 1 + (int)below(5);
        a->node = one_in(3) ? -1 : node;
        return;
    case SIM_F_BREAK:
        a->node = one_in(3) ? -1 : node;
        a->arg = (int64_t)below(2);
        return;
    case SIM_F_GONE:
        a->node = one_in(2) ? -1 : node;
        return;
    case SIM_F_FRONT_DOWN:
        a->arg = (int64_t)below(2);
        return;
    case SIM_F_OLD_BESIDE:
        a->node = node;
        a->arg = (int64_t)below((uint64_t)(a->span / BASE_MS) + 1);
        return;
    case SIM_F_WALL_STEP:
        a->node = node;
        a->arg = (int64_t)below(4000001) - 2000000;
        return;
    case SIM_F_CLOCK_RATE:
        a->node = node;
        a->arg = (int64_t)below(2001) - 1000;
        return;
    case SIM_F_TWIN:
        a->node = node;
        a->arg = (int64_t)below(2);
        return;
    case SIM_F_LEASE_CHANGE:
        a->node = node;
        a->span = between(100 * BASE_MS, 3 * BASE_SEC);
        a->arg = some_lease();
        return;
    case SIM_F_FOREIGN_ROW:
        a->client = client;
        a->arg = (int64_t)below(3);
        return;
    case SIM_F_AGENT_DRAIN:
        a->node = node;
        a->span = between(BASE_SEC, 20 * BASE_SEC);
        return;
    case SIM_F_MOVE:
    case SIM_F_MOVE_QUIET:
        a->client = client;
        a->node = node;
        return;
    case SIM_F_RECONNECT:
    case SIM_F_SECOND:
    case SIM_F_TRANSPORT:
    case SIM_F_LEAVE:
        a->client = client;
        a->arg = (int64_t)below(2);
        return;
    case SIM_F_CLAIM_DELETE:
    case SIM_F_BINDING_DELETE:
    case SIM_F_BINDING_SUSPEND:
    case SIM_F_TAKEOVER_DENIED:
        a->client = client;
        return;
    case SIM_F_API_DOWN:
    case SIM_F_SERVICE_REVOKE:
    case SIM_F_POOL_MOVE:
    case SIM_F_AUTHORITY_OUT:
        return;
    default:
        a->node = node;
        return;
    }
}

static const enum sim_fault kinds[] = {
    SIM_F_CUT,
    SIM_F_CUT_UP,
    SIM_F_CUT_DOWN,
    SIM_F_LINK_SLOW,
    SIM_F_LAG,
    SIM_F_SILENT,
    SIM_F_BREAK,
    SIM_F_GONE,
    SIM_F_FRONT_DOWN,
    SIM_F_API_DOWN,
    SIM_F_AGENT_CRASH,
    SIM_F_AGENT_DRAIN,
    SIM_F_STOP_CONTROL,
    SIM_F_STOP_DATA,
    SIM_F_STOP_AGENT,
    SIM_F_STOP_MIDSTEP,
    SIM_F_OLD_BESIDE,
    SIM_F_FND_CRASH,
    SIM_F_FND_STOP,
    SIM_F_FND_MIDSTEP,
    SIM_F_NODE_PAUSE,
    SIM_F_REBOOT,
    SIM_F_POWER_OFF,
    SIM_F_WALL_STEP,
    SIM_F_CLOCK_RATE,
    SIM_F_TWIN,
    SIM_F_CLAIM_DELETE,
    SIM_F_INSTANCE_DELETE,
    SIM_F_ATTACHMENT_DELETE,
    SIM_F_BINDING_DELETE,
    SIM_F_BINDING_SUSPEND,
    SIM_F_SERVICE_REVOKE,
    SIM_F_AUTHORITY_OUT,
    SIM_F_POOL_MOVE,
    SIM_F_OPERATOR_DRAIN,
    SIM_F_FOREIGN_ROW,
    SIM_F_LEASE_CHANGE,
    SIM_F_TAKEOVER_DENIED,
    SIM_F_RECONNECT,
    SIM_F_SECOND,
    SIM_F_TRANSPORT,
    SIM_F_LEAVE,
};

static void rates(struct sim_plan *p)
{
    static const uint32_t some[] = {1000, 5000, 20000, 60000, 150000};
    static const enum sim_fault rare[] = {SIM_F_BARRIER_LATE, SIM_F_TUN_FAIL, SIM_F_PROOF_FAIL};

    if (one_in(4))
        return;
    for (unsigned f = SIM_F_NONE + 1; f < SIM_F_RATES_END; f++)
        if (one_in(4))
            p->rate[f] = some[below(BASE_LEN(some))];
    p->rate[SIM_F_REORDER] = 0;                   /* follows from the others */
    for (unsigned i = 0; i < BASE_LEN(rare); i++) /* few chances in a run */
        if (p->rate[rare[i]])
            p->rate[rare[i]] = 50000 + 5 * p->rate[rare[i]];
    if (p->rate[SIM_F_NEVER] > 20000)
        p->rate[SIM_F_NEVER] = 20000;
}

/* A connector that is taken over, and again before the first takeover is settled. */
static void chase(struct sim_plan *p, base_time at)
{
    int client = (int)below((uint64_t)p->clients), node = p->first[client];
    unsigned n = 1 + (unsigned)below(3);

    if (one_in(2)) { /* nobody can confirm on the node that it leaves */
        base_time before = between(0, BASE_SEC);
        struct sim_act *a = act(p, at - before, one_in(2) ? SIM_F_FND_STOP : SIM_F_CUT);

        a->node = node;
        a->target = 2 + (int)below(2);
        a->span = between(BASE_SEC, p->lease_s[0] * BASE_SEC * 2);
    }
    for (unsigned i = 0; i < n; i++) {
        struct sim_act *a = act(p, at, one_in(3) ? SIM_F_MOVE : SIM_F_MOVE_QUIET);

        node = (node + 1 + (int)below((uint64_t)p->nodes - 1)) % p->nodes;
        a->client = client;
        a->node = node;
        at += one_in(2) ? between(0, 50 * BASE_MS) : between(0, 12 * BASE_SEC);
    }
}

/* A backup, some more life, every API server down for W of the longest lease, and the backup put back. */
static void restore(struct sim_plan *p)
{
    struct contract_timing t = contract_timing_default();
    struct sim_act *a = act(p, between(3 * BASE_SEC, p->faults_end), SIM_F_RESTORE);
    int32_t longest = 0;
    base_time live = between(0, 20 * BASE_SEC), until;

    for (int i = 0; i < SIM_NODES; i++)
        longest = p->lease_s[i] > longest ? p->lease_s[i] : longest;
    for (unsigned i = 0; i < p->n_acts; i++)
        if (p->act[i].what == SIM_F_LEASE_CHANGE && p->act[i].arg > longest)
            longest = (int32_t)p->act[i].arg;
    a->arg = live / BASE_MS;
    a->span = a->arg * BASE_MS + contract_wait(&t, longest) + between(BASE_SEC, 6 * BASE_SEC);
    until = a->at + a->span + between(BASE_SEC, 20 * BASE_SEC);
    p->faults_end = base_time_max(p->faults_end, until);
}

static int by_time(const struct sim_act *a, const struct sim_act *b)
{
    return a->at < b->at ? -1 : a->at > b->at;
}

static void sort(struct sim_plan *p)
{
    for (unsigned i = 1; i < p->n_acts; i++) {
        struct sim_act a = p->act[i];
        unsigned k = i;

        for (; k > 0 && by_time(&a, &p->act[k - 1]) < 0; k--)
            p->act[k] = p->act[k - 1];
        p->act[k] = a;
    }
}

void sim_plan_swarm(struct sim_plan *p, uint64_t seed)
{
    enum sim_fault mine[BASE_LEN(kinds)];
    unsigned n_mine = 0, n;

    memset(p, 0, sizeof *p);
    g.state = seed ^ UINT64_C(0x5851f42d4c957f2d);
    g.state = base_prng_next(&g); /* seeds next to each other have nothing in common */
    p->seed = seed;
    p->nodes = one_in(3) ? 3 : 2;
    p->clients = one_in(2) ? 1 : one_in(2) ? 2 : 3;
    p->lease_s[0] = some_lease();
    for (int i = 1; i < SIM_NODES; i++)
        p->lease_s[i] = p->lease_s[0];
    if (one_in(6))
        for (int i = 0; i < SIM_NODES; i++)
            p->lease_s[i] = some_lease();
    p->grant_s = one_in(3) ? 6 + (int32_t)below(25) : 30;
    p->valid_s = one_in(3) ? 60 : one_in(2) ? 120 : 300;
    for (int i = 0; i < p->nodes; i++) {
        p->ppm[i] = one_in(2) ? (one_in(2) ? 1000 : -1000) : one_in(2) ? 0 : (int64_t)below(2001) - 1000;
        p->wall_off[i] = one_in(2) ? 0 : (base_wall)below(2000001) - 1000000;
    }
    for (int i = 0; i < p->clients; i++) {
        p->first[i] = (int)below((uint64_t)p->nodes);
        p->roams[i] = one_in(5);
    }
    rates(p);
    for (unsigned i = 0; i < BASE_LEN(kinds); i++)
        if (one_in(4))
            mine[n_mine++] = kinds[i];
    n = (unsigned)below(12);
    p->faults_end = between(15 * BASE_SEC, 50 * BASE_SEC);
    for (unsigned i = 0; i < n && n_mine; i++) { /* one draw a statement: arguments have no order */
        base_time at = one_in(8) ? 0 : 2 * BASE_SEC;
        enum sim_fault what = mine[below(n_mine)];

        at = between(at, p->faults_end - BASE_SEC);
        fill(p, act(p, at, what));
    }
    n = one_in(3) ? 0 : 1 + (unsigned)below(2);
    for (unsigned i = 0; i < n; i++)
        chase(p, between(3 * BASE_SEC, p->faults_end - 2 * BASE_SEC));
    if (one_in(30))
        restore(p);
    if (one_in(30)) {
        base_time at = between(2 * BASE_SEC, p->faults_end - BASE_SEC);

        fill(p, act(p, at, SIM_F_FND_EMPTY));
    }
    sort(p);
    p->settle = one_in(20) ? 60 * BASE_SEC : 10 * BASE_SEC;
    p->end = 1000 * BASE_SEC; /* the heal phase ends it */
}
