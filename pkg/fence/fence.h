/* SPDX-License-Identifier: Apache-2.0
 *
 * fence/fence.h - the deadline of a session generation, and the only way to earn a pass.
 *
 * Pure; the time is an argument. One slot per session generation. Control is the only writer of a slot; data
 * threads read it with a fresh CLOCK_BOOTTIME value when they take a packet in and again right before each
 * flush. Nothing in masque or tun writes a packet without a `struct fence_pass`, and only this package can
 * make one (its body is in fence.c). Source: architecture, "Fence".
 */
#ifndef FENCE_FENCE_H
#define FENCE_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define FENCE_CLOSED ((base_time)0)
#define FENCE_DEAD ((base_time)-1)

struct fence_table; /* fixed number of slots */
struct fence_slot;  /* belongs to its table; handed to data threads as a borrowed pointer */
struct fence_pass;  /* proof that the slot was open at the time of the check; borrowed from the slot, valid
                       only until  the caller returns to its poll: it is taken anew for each burst */

/* NULL when there is no memory. */
struct fence_table *fence_table_new(uint32_t n_slots);
struct fence_table *fence_table_free(struct fence_table *t);

/* Takes a free slot for generation `gen` (> 0; the caller's number, for traces), closed. NULL when all are in
 * use. Control thread only. */
struct fence_slot *fence_slot_take(struct fence_table *t, uint64_t gen);
/* Gives a slot back after the barrier: the caller states that no data thread holds it any more. The slot must
 * be dead. */
void fence_slot_give(struct fence_table *t, struct fence_slot *s);
uint64_t fence_slot_gen(const struct fence_slot *s);

/* Moves the deadline (ns, CLOCK_BOOTTIME). Returns false and changes nothing when the slot is dead.
 * FENCE_CLOSED shuts it for now. Control thread only; visible to data threads at once (release/acquire). */
bool fence_set(struct fence_slot *s, base_time deadline);
/* Dead for ever: no later fence_set opens it. Control thread only. */
void fence_kill(struct fence_slot *s);
bool fence_is_dead(const struct fence_slot *s);
base_time fence_deadline(const struct fence_slot *s);

/* A pass when `now` < deadline, else NULL. Any thread. `now` must have been read after the packet was taken
 * in. */
const struct fence_pass *fence_check(const struct fence_slot *s, base_time now);
/* The same slot again, right before the write (NULL for NULL). The writers of tun call it themselves with a
 * fresh clock, so that no caller can be late by more than the system call. */
const struct fence_pass *fence_recheck(const struct fence_pass *p, base_time now);

#endif
