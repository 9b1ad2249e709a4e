/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/slots.h"

#include <string.h>

#include "base/mem.h"

struct agent_slots {
    struct fence_table *table;
    uint32_t used, max, mask;
    struct agent_slot *entries; /* in use: [0, used) */
    uint32_t *index;            /* hash of the flow -> position + 1; 0 = empty */
};

struct agent_slots *agent_slots_new(uint32_t max)
{
    struct agent_slots *s = base_calloc(1, sizeof *s);
    uint32_t size = 16;

    if (!s)
        return NULL;
    while (size < max * 2)
        size *= 2;
    s->max = max;
    s->mask = size - 1;
    s->table = fence_table_new(max);
    s->entries = base_calloc(max, sizeof *s->entries);
    s->index = base_calloc(size, sizeof *s->index);
    return s->table && s->entries && s->index ? s : agent_slots_free(s);
}

struct agent_slots *agent_slots_free(struct agent_slots *s)
{
    if (!s)
        return NULL;
    fence_table_free(s->table);
    base_free(s->entries);
    base_free(s->index);
    return base_free(s);
}

struct fence_table *agent_slots_table(struct agent_slots *s)
{
    return s->table;
}

static uint32_t home(const struct agent_slots *s, uint64_t flow)
{
    return (uint32_t)((flow * 0x9e3779b97f4a7c15u) >> 32) & s->mask;
}

/* Position in the index that holds the flow, or the empty one where it would stand. */
static uint32_t probe(const struct agent_slots *s, uint64_t flow)
{
    uint32_t i = home(s, flow);

    while (s->index[i] && s->entries[s->index[i] - 1].flow != flow)
        i = (i + 1) & s->mask;
    return i;
}

struct agent_slot *agent_slots_find(struct agent_slots *s, uint64_t flow)
{
    uint32_t i = probe(s, flow);

    return flow && s->index[i] ? &s->entries[s->index[i] - 1] : NULL;
}

struct agent_slot *agent_slots_add(struct agent_slots *s, uint64_t flow, uint64_t generation)
{
    uint32_t i = probe(s, flow);
    struct fence_slot *slot;
    struct agent_slot *e;

    if (!flow || s->index[i] || s->used == s->max)
        return NULL;
    slot = fence_slot_take(s->table, generation);
    if (!slot)
        return NULL;
    e = &s->entries[s->used++];
    *e = (struct agent_slot){.flow = flow, .slot = slot};
    s->index[i] = s->used;
    return e;
}

static void unlink_index(struct agent_slots *s, uint32_t hole)
{
    s->index[hole] = 0;
    for (uint32_t i = (hole + 1) & s->mask; s->index[i]; i = (i + 1) & s->mask) {
        uint32_t want = home(s, s->entries[s->index[i] - 1].flow);

        if (((i - want) & s->mask) >= ((i - hole) & s->mask)) {
            s->index[hole] = s->index[i];
            s->index[i] = 0;
            hole = i;
        }
    }
}

void agent_slots_remove(struct agent_slots *s, struct agent_slot *e)
{
    uint32_t at = (uint32_t)(e - s->entries), last = s->used - 1;

    fence_slot_give(s->table, e->slot);
    unlink_index(s, probe(s, e->flow));
    if (at != last) {
        uint32_t i = probe(s, s->entries[last].flow);

        *e = s->entries[last];
        s->index[i] = at + 1;
    }
    memset(&s->entries[last], 0, sizeof s->entries[last]);
    s->used--;
}

uint32_t agent_slots_used(const struct agent_slots *s)
{
    return s->used;
}

struct agent_slot *agent_slots_at(struct agent_slots *s, uint32_t i)
{
    return i < s->used ? &s->entries[i] : NULL;
}
