/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/data_flows.h"

#include "agent/data.h"
#include "base/err.h"
#include "base/mem.h"
#include "tun/prefix.h"

enum { MAX_FLOWS = 1 << 20 };
#define NONE UINT32_MAX

_Static_assert(BASE_LEN(((struct agent_flow *)NULL)->destinations) == AGENT_DESTINATIONS_MAX,
               "as in agent/data.h");

struct agent_flows {
    struct agent_flow *at; /* untouched memory until it is used: the table may be large */
    uint32_t *bucket;
    uint32_t mask, max, n, fresh, free_list; /* fresh: entries from here on were never used */
    struct tun_prefixes *prefixes;
    uint64_t seed;
    struct agent_shared *shared, *own; /* `own`: this table is alone */
    unsigned thread;
};

struct agent_flows *agent_flows_new(uint32_t max, uint64_t seed)
{
    base_cleanup(agent_flows_freep) struct agent_flows *t = NULL;
    uint32_t buckets = 16;

    if (max == 0 || max > MAX_FLOWS)
        return NULL;
    while (buckets < max)
        buckets *= 2;
    t = base_calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->max = max;
    t->seed = seed;
    t->mask = buckets - 1;
    t->free_list = NONE;
    t->at = base_calloc(max, sizeof *t->at);
    t->bucket = base_calloc(buckets, sizeof *t->bucket);
    t->prefixes = tun_prefixes_new(max, seed);
    t->shared = t->own = agent_shared_new(0, seed);
    if (!t->at || !t->bucket || !t->prefixes || !t->own)
        return NULL;
    memset(t->bucket, 0xff, buckets * sizeof *t->bucket);
    return BASE_TAKE(t);
}

struct agent_flows *agent_flows_free(struct agent_flows *t)
{
    if (!t)
        return NULL;
    agent_shared_free(t->own);
    tun_prefixes_free(t->prefixes);
    base_free(t->bucket);
    base_free(t->at);
    return base_free(t);
}

void agent_flows_join(struct agent_flows *t, struct agent_shared *s, unsigned thread)
{
    t->own = agent_shared_free(t->own);
    t->shared = s;
    t->thread = thread;
}

/* Ids are counted upwards: their low bits spread well enough. */
static uint32_t *head_of(struct agent_flows *t, uint64_t id)
{
    return &t->bucket[id & t->mask];
}

struct agent_flow *agent_flows_find(struct agent_flows *t, uint64_t id)
{
    for (uint32_t i = *head_of(t, id); i != NONE; i = t->at[i].next)
        if (t->at[i].id == id)
            return &t->at[i];
    return NULL;
}

struct agent_flow *agent_flows_add(struct agent_flows *t, uint64_t id)
{
    struct agent_flow *f;
    uint32_t i;

    if (id == 0 || agent_flows_find(t, id))
        return NULL;
    if (t->free_list != NONE) {
        i = t->free_list;
        t->free_list = t->at[i].next;
    } else if (t->fresh < t->max) {
        i = t->fresh++;
    } else {
        return NULL;
    }
    f = &t->at[i];
    memset(f, 0, sizeof *f);
    f->id = id;
    f->state = AGENT_FLOW_ASKED;
    f->tun = NONE;
    f->ipproto = -1;
    f->next = *head_of(t, id);
    *head_of(t, id) = i;
    t->n++;
    return f;
}

struct agent_flow *agent_flows_by_address(struct agent_flows *t, const uint8_t addr[16])
{
    uint32_t i = tun_prefixes_find(t->prefixes, addr);

    return i == TUN_PREFIX_NONE ? NULL : &t->at[i];
}

/* The part of `d` that the request asked for; false = none of it. */
static bool narrow(struct base_prefix *d, const struct base_prefix *target)
{
    if (target->len == 0 || base_prefix_covers(target, d))
        return true;
    if (!base_prefix_covers(d, target))
        return false;
    *d = *target;
    return true;
}

int agent_flows_open(struct agent_flows *t, struct agent_flow *f, const struct agent_admit *a, uint32_t tun)
{
    uint8_t n = 0;
    int rc;

    if (f->state != AGENT_FLOW_ASKED || !a->slot || a->n_destinations > AGENT_DESTINATIONS_MAX)
        return BASE_EINVAL;
    rc = tun_prefixes_add(t->prefixes, &a->prefix, (uint32_t)(f - t->at));
    if (rc < 0)
        return rc;
    rc = t->own ? BASE_OK : agent_shared_claim(t->shared, &a->prefix, t->thread);
    if (rc < 0) {
        (void)tun_prefixes_remove(t->prefixes, &a->prefix);
        return rc;
    }
    for (uint8_t i = 0; i < a->n_destinations; i++) {
        f->destinations[n] = a->destinations[i];
        n += narrow(&f->destinations[n], &f->target);
    }
    f->rules = (struct masque_rules){.prefix = a->prefix,
                                     .tunnel_ip = a->tunnel_ip,
                                     .pool = a->pool,
                                     .destinations = f->destinations,
                                     .n_destinations = n,
                                     .ipproto = f->ipproto};
    f->slot = a->slot;
    f->tun = tun;
    f->bucket = (struct masque_icmp6_bucket){0};
    f->state = AGENT_FLOW_OPEN;
    return BASE_OK;
}

void agent_flows_stop(struct agent_flows *t, struct agent_flow *f)
{
    if (f->state == AGENT_FLOW_OPEN) {
        (void)tun_prefixes_remove(t->prefixes, &f->rules.prefix);
        if (!t->own)
            agent_shared_release(t->shared, &f->rules.prefix, t->thread);
    }
    f->state = AGENT_FLOW_STOPPED;
    f->slot = NULL;
    f->tun = NONE;
}

void agent_flows_remove(struct agent_flows *t, struct agent_flow *f)
{
    uint32_t i = (uint32_t)(f - t->at), *link = head_of(t, f->id);

    agent_flows_stop(t, f);
    agent_tenant_sub(f->tenant);
    f->tenant = NULL;
    while (*link != i)
        link = &t->at[*link].next;
    *link = f->next;
    f->id = 0;
    f->next = t->free_list;
    t->free_list = i;
    t->n--;
}

void agent_flows_drop_tun(struct agent_flows *t, uint32_t tun)
{
    for (uint32_t i = 0; i < t->fresh; i++)
        if (t->at[i].id != 0 && t->at[i].tun == tun)
            t->at[i].tun = NONE;
}

bool agent_flow_rate(struct agent_flow *f, const struct agent_rate *r, base_time now, size_t len)
{
    base_time packets = agent_spend(f->packets_at, r->packets, 64, now, 1);
    base_time bytes = agent_spend(f->bytes_at, r->bytes, 65536, now, len);

    if (packets == 0 || bytes == 0)
        return false;
    f->packets_at = packets;
    f->bytes_at = bytes;
    return true;
}

struct agent_tenant *agent_flows_tenant(struct agent_flows *t, const char *uri)
{
    return agent_shared_tenant(t->shared, uri);
}

bool agent_flow_belongs(struct agent_flow *f, struct agent_tenant *x, uint32_t limit)
{
    if (!agent_tenant_add(x, limit))
        return false;
    f->tenant = x;
    return true;
}

uint32_t agent_flows_count(const struct agent_flows *t)
{
    return t->n;
}
