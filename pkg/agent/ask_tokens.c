/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ask_int.h"

#include "base/mem.h"

struct entry {
    uint64_t flow; /* 0 = free */
    struct base_secret *token;
    uint32_t next; /* in its bucket, or free */
};
struct ask_tokens {
    struct entry *at;
    uint32_t *bucket;
    uint32_t mask, max, n, fresh, free_list;
};
#define NONE UINT32_MAX

struct ask_tokens *agent_ask_tokens_new(uint32_t max)
{
    struct ask_tokens *t = base_calloc(1, sizeof *t);
    uint32_t buckets = 16;

    if (!t)
        return NULL;
    while (buckets < max)
        buckets *= 2;
    t->max = max;
    t->mask = buckets - 1;
    t->free_list = NONE;
    t->at = base_calloc(max, sizeof *t->at);
    t->bucket = base_calloc(buckets, sizeof *t->bucket);
    if (!t->at || !t->bucket)
        return agent_ask_tokens_free(t);
    memset(t->bucket, 0xff, buckets * sizeof *t->bucket);
    return t;
}

struct ask_tokens *agent_ask_tokens_free(struct ask_tokens *t)
{
    if (!t)
        return NULL;
    for (uint32_t i = 0; i < t->fresh; i++)
        base_secret_free(t->at[i].token);
    base_free(t->at);
    base_free(t->bucket);
    return base_free(t);
}

/* Flows are counted upwards: their low bits spread well enough. */
static uint32_t *find(const struct ask_tokens *t, uint64_t flow)
{
    uint32_t *link = &t->bucket[flow & t->mask];

    while (*link != NONE && t->at[*link].flow != flow)
        link = &t->at[*link].next;
    return link;
}

void agent_ask_tokens_put(struct ask_tokens *t, uint64_t flow, struct base_secret *token)
{
    uint32_t i = NONE;

    if (*find(t, flow) == NONE) {
        i = t->free_list;
        if (i != NONE)
            t->free_list = t->at[i].next;
        else if (t->fresh < t->max)
            i = t->fresh++;
    }
    if (i == NONE) {
        base_secret_free(token);
        return;
    }
    t->at[i] = (struct entry){flow, token, t->bucket[flow & t->mask]};
    t->bucket[flow & t->mask] = i;
    t->n++;
}

const struct base_secret *agent_ask_tokens_get(const struct ask_tokens *t, uint64_t flow)
{
    uint32_t i = *find(t, flow);

    return i == NONE ? NULL : t->at[i].token;
}

void agent_ask_tokens_drop(struct ask_tokens *t, uint64_t flow)
{
    uint32_t *link = find(t, flow), i = *link;

    if (i == NONE)
        return;
    *link = t->at[i].next;
    t->at[i].token = base_secret_free(t->at[i].token);
    t->at[i].flow = 0;
    t->at[i].next = t->free_list;
    t->free_list = i;
    t->n--;
}

uint32_t agent_ask_tokens_count(const struct ask_tokens *t)
{
    return t->n;
}
