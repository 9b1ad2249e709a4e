/* SPDX-License-Identifier: Apache-2.0 */
#include "authority/index.h"

#include "base/mem.h"

#include <string.h>

#define NONE UINT32_MAX

/* Entry i belongs to slot i / CONTRACT_IDENTITIES_MAX; buckets are chains of entries. */
struct entry {
    uint8_t digest[AUTHORITY_DIGEST_SIZE];
    uint32_t next;
    bool used;
};
struct authority_index {
    uint32_t max_slots, n_buckets; /* n_buckets is a power of two */
    uint32_t *bucket;
    struct entry *entry;
};

struct authority_index *authority_index_new(uint32_t max_slots)
{
    struct authority_index *ix = base_calloc(1, sizeof *ix);
    if (!ix)
        return NULL;
    ix->max_slots = max_slots;
    ix->n_buckets = 16;
    while (ix->n_buckets < max_slots * 2 && ix->n_buckets < (1U << 30))
        ix->n_buckets *= 2;
    ix->bucket = base_calloc(ix->n_buckets, sizeof *ix->bucket);
    ix->entry = base_calloc((size_t)max_slots * CONTRACT_IDENTITIES_MAX, sizeof *ix->entry);
    if (!ix->bucket || !ix->entry)
        return authority_index_free(ix);
    for (uint32_t i = 0; i < ix->n_buckets; i++)
        ix->bucket[i] = NONE;
    return ix;
}

struct authority_index *authority_index_free(struct authority_index *ix)
{
    if (ix) {
        base_free(ix->bucket);
        base_free(ix->entry);
        base_free(ix);
    }
    return NULL;
}

static uint32_t *chain(const struct authority_index *ix, const uint8_t *digest)
{
    uint32_t h;
    memcpy(&h, digest, sizeof h); /* a digest is uniform already */
    return &ix->bucket[h & (ix->n_buckets - 1)];
}

static void drop(struct authority_index *ix, uint32_t e)
{
    uint32_t *at = chain(ix, ix->entry[e].digest);
    while (*at != e)
        at = &ix->entry[*at].next;
    *at = ix->entry[e].next;
    ix->entry[e].used = false;
}

void authority_index_set(struct authority_index *ix, uint32_t slot, uint8_t n,
                         const uint8_t digests[][AUTHORITY_DIGEST_SIZE])
{
    uint32_t first = slot * CONTRACT_IDENTITIES_MAX;
    for (uint32_t e = first; e < first + CONTRACT_IDENTITIES_MAX; e++)
        if (ix->entry[e].used)
            drop(ix, e);
    for (uint8_t i = 0; i < n && i < CONTRACT_IDENTITIES_MAX; i++) {
        struct entry *e = &ix->entry[first + i];
        uint32_t *at = chain(ix, digests[i]);
        memcpy(e->digest, digests[i], sizeof e->digest);
        e->next = *at;
        e->used = true;
        *at = first + i;
    }
}

void authority_index_each(const struct authority_index *ix, const uint8_t digest[AUTHORITY_DIGEST_SIZE],
                          void (*fn)(void *arg, uint32_t slot), void *arg)
{
    for (uint32_t e = *chain(ix, digest); e != NONE; e = ix->entry[e].next)
        if (memcmp(ix->entry[e].digest, digest, AUTHORITY_DIGEST_SIZE) == 0)
            fn(arg, e / CONTRACT_IDENTITIES_MAX);
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
