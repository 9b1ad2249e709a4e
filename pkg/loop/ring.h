/* SPDX-License-Identifier: Apache-2.0
 *
 * loop/ring.h - bounded ring of fixed-size messages from one thread to another (one producer, one consumer).
 *
 * Neither side ever waits: a full ring refuses. The consumer is woken by an eventfd that it polls; a wake is written
 * only when the ring was empty before. Memory order: release on push, acquire on pop.
 */
#ifndef LOOP_RING_H
#define LOOP_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct base_err;
struct loop_ring;
/* `slots` is rounded up to a power of two. Returns BASE_OK, BASE_ENOMEM or BASE_EIO (no eventfd). */
int loop_ring_new(struct loop_ring **ret, size_t slots, size_t msg_size, struct base_err *err);
/* Both threads must have stopped using it. NULL ok. */
struct loop_ring *loop_ring_free(struct loop_ring *r);
/* Copies one message in; false when the ring is full (counted). Producer only. */
bool loop_ring_push(struct loop_ring *r, const void *msg);
/* Copies one message out; false when it is empty. Consumer only. */
bool loop_ring_pop(struct loop_ring *r, void *msg);
/* Descriptor that is readable when messages wait; loop_ring_drain_fd before popping until empty. */
int loop_ring_fd(const struct loop_ring *r);
void loop_ring_drain_fd(struct loop_ring *r);
uint64_t loop_ring_refused(const struct loop_ring *r);

#endif
