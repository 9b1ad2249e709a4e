/* SPDX-License-Identifier: Apache-2.0 */
#include "authority/index.h"

#include "base/mem.h"

#include <string.h>

/* Entry i belongs to slot i / CONTRACT_IDENTITIES_MAX; buckets are chains of entries. References are an
 * entry's number + 1, so that memory as it was taken is empty: pages of slots that nobody uses are never
 * written. */
#define END UINT32_MAX /* in `next`: the last of its chain; 0 there = not in any */
struct authority_index {
    uint32_t n_entries, n_buckets; /* n_buckets is a power of two */
    const uint8_t *digests;
    size_t stride;
    uint32_t *bucket, *next;
};

struct authority_index *authority_index_new(uint32_t max_slots, const void *digests, size_t stride)
{
    struct authority_index *ix = base_calloc(1, sizeof *ix);
    if (!ix)
        return NULL;
    ix->digests = digests;
    ix->stride = stride;
    ix->n_entries = max_slots * CONTRACT_IDENTITIES_MAX;
    ix->n_buckets = 16;
    while (ix->n_buckets < max_slots * 2 && ix->n_buckets < (1U << 30))
        ix->n_buckets *= 2;
    ix->bucket = base_calloc(ix->n_buckets, sizeof *ix->bucket);
    ix->next = base_calloc(ix->n_entries, sizeof *ix->next);
    return ix->bucket && ix->next ? ix : authority_index_free(ix);
}

struct authority_index *authority_index_free(struct authority_index *ix)
{
    if (ix) {
        base_free(ix->bucket);
        base_free(ix->next);
        base_free(ix);
    }
    return NULL;
}

static const uint8_t *digest_of(const struct authority_index *ix, uint32_t e)
{
    return ix->digests + (size_t)(e / CONTRACT_IDENTITIES_MAX) * ix->stride +
           (size_t)(e % CONTRACT_IDENTITIES_MAX) * AUTHORITY_DIGEST_SIZE;
}

static uint32_t *chain(const struct authority_index *ix, const uint8_t *digest)
{
    uint32_t h;
    memcpy(&h, digest, sizeof h); /* a digest is uniform already */
    return &ix->bucket[h & (ix->n_buckets - 1)];
}

static void drop(struct authority_index *ix, uint32_t e)
{
    uint32_t *at = chain(ix, digest_of(ix, e));
    while (*at != e + 1)
        at = &ix->next[*at - 1];
    *at = ix->next[e];
    if (*at == END && at == chain(ix, digest_of(ix, e)))
        *at = 0;
    ix->next[e] = 0;
}

void authority_index_set(struct authority_index *ix, uint32_t slot, uint8_t n)
{
    uint32_t first = slot * CONTRACT_IDENTITIES_MAX;
    for (uint32_t e = first; e < first + CONTRACT_IDENTITIES_MAX; e++)
        if (ix->next[e] != 0)
            drop(ix, e);
    for (uint8_t i = 0; i < n && i < CONTRACT_IDENTITIES_MAX; i++) {
        uint32_t *at = chain(ix, digest_of(ix, first + i));
        ix->next[first + i] = *at != 0 ? *at : END;
        *at = first + i + 1;
    }
}

void authority_index_each(const struct authority_index *ix, const uint8_t digest[AUTHORITY_DIGEST_SIZE],
                          void (*fn)(void *arg, uint32_t slot), void *arg)
{
    for (uint32_t e = *chain(ix, digest); e != 0 && e != END; e = ix->next[e - 1])
        if (memcmp(digest_of(ix, e - 1), digest, AUTHORITY_DIGEST_SIZE) == 0)
            fn(arg, (e - 1) / CONTRACT_IDENTITIES_MAX);
}

struct count {
    unsigned n;
    uint32_t slot;
};

static void count_slot(void *arg, uint32_t slot)
{
    struct count *c = arg;
    if (c->n > 0 && c->slot == slot)
        return; /* named twice by one binding (the CRD refuses it) */
    c->slot = slot;
    c->n++;
}

unsigned authority_index_find(const struct authority_index *ix, const uint8_t digest[AUTHORITY_DIGEST_SIZE],
                              uint32_t *ret_slot)
{
    struct count c = {.slot = AUTHORITY_NO_SLOT};
    authority_index_each(ix, digest, count_slot, &c);
    *ret_slot = c.slot;
    return c.n;
}
