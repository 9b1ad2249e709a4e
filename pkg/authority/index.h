/* SPDX-License-Identifier: Apache-2.0
 *
 * authority/index.h - identity digest -> binding slots. One identity that matches two bindings admits nobody,
 * so the index counts.
 *
 * Pure. All memory is taken in authority_index_new; slots are numbers of the caller below `max_slots`.
 */
#ifndef AUTHORITY_INDEX_H
#define AUTHORITY_INDEX_H

#include "authority/policy.h"

#define AUTHORITY_NO_SLOT UINT32_MAX

struct authority_index;
/* NULL when there is no memory. Borrows the digests for its life: those of slot s begin at `digests` +
 * s * `stride`, CONTRACT_IDENTITIES_MAX of them. What the index names must not change: authority_index_set(0)
 * first. */
struct authority_index *authority_index_new(uint32_t max_slots, const void *digests, size_t stride);
struct authority_index *authority_index_free(struct authority_index *ix);
/* The slot's first n digests are its identities (n = 0 removes it). n <= CONTRACT_IDENTITIES_MAX. */
void authority_index_set(struct authority_index *ix, uint32_t slot, uint8_t n);
/* How many different slots name the digest; *ret_slot is one of them (AUTHORITY_NO_SLOT when none). */
unsigned authority_index_find(const struct authority_index *ix, const uint8_t digest[AUTHORITY_DIGEST_SIZE],
                              uint32_t *ret_slot);
/* Calls fn for each slot that names the digest. */
void authority_index_each(const struct authority_index *ix, const uint8_t digest[AUTHORITY_DIGEST_SIZE],
                          void (*fn)(void *arg, uint32_t slot), void *arg);

#endif
