/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/slots.h - which fence slot belongs to which admitted flow. Control thread only; bounded; no I/O.
 *
 * A flow is known from its admission until the data thread confirmed the barrier; only then its slot is given
 * back.
 */
#ifndef AGENT_SLOTS_H
#define AGENT_SLOTS_H

#include "fence/fence.h"

struct agent_slots;
struct agent_slot {
    uint64_t flow; /* 0 = unused */
    struct fence_slot *slot;
    bool stopping;  /* killed; the barrier was asked for */
    bool stop_sent; /* the order is in the data thread's ring */
};

struct agent_slots *agent_slots_new(uint32_t max);
struct agent_slots *agent_slots_free(struct agent_slots *s);
struct fence_table *agent_slots_table(struct agent_slots *s);
/* Takes a slot for a new flow; NULL when none is free or the flow is known already. */
struct agent_slot *agent_slots_add(struct agent_slots *s, uint64_t flow, uint64_t generation);
struct agent_slot *agent_slots_find(struct agent_slots *s, uint64_t flow);
/* After the barrier; the slot must be dead. */
void agent_slots_remove(struct agent_slots *s, struct agent_slot *e);
uint32_t agent_slots_used(const struct agent_slots *s);
/* The i-th entry that is in use, NULL after the last; adding or removing restarts the walk. */
struct agent_slot *agent_slots_at(struct agent_slots *s, uint32_t i);

#endif
