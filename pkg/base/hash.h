/* SPDX-License-Identifier: Apache-2.0
 *
 * base/hash.h - SHA-256 in pieces, with the algorithm looked up once; and FNV-1a for tables. Pure.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/cleanup.h"
#include "base/id.h"

/* FNV-1a, 64 bits, over n more bytes: for tables and for telling changes apart. It defends nothing unless its
 * start is a secret. */
#define BASE_FNV1A UINT64_C(0xcbf29ce484222325)
static inline uint64_t base_fnv1a(uint64_t h, const void *p, size_t n)
{
    for (const uint8_t *b = p; n > 0; n--)
        h = (h ^ *b++) * UINT64_C(0x100000001b3);
    return h;
}

struct base_hasher;
/* NULL when there is no memory. One per thread. */
struct base_hasher *base_hasher_new(void);
struct base_hasher *base_hasher_free(struct base_hasher *h);
BASE_DEFINE_CLEANUP(struct base_hasher *, base_hasher_free)
/* Digest of up to three pieces, one after the other (any may be empty). BASE_OK, or BASE_ENOMEM. */
int base_hasher_digest(struct base_hasher *h, uint8_t ret[BASE_SHA256_SIZE], struct base_str a,
                       struct base_str b, struct base_str c);

#endif
