/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/prefix.h"

#include "base/err.h"
#include "base/mem.h"

enum { KEY = 12, PREFIX_LEN = 96, MAX_ENTRIES = 1 << 20 };

struct entry {
    uint8_t key[KEY];
    uint32_t value; /* TUN_PREFIX_NONE = empty */
};
struct tun_prefixes {
    struct entry *at;
    uint32_t mask; /* number of entries - 1; at least twice `max` entries */
    uint32_t max, n;
    uint64_t seed;
};

static uint32_t home(const struct tun_prefixes *t, const uint8_t *key)
{
    return (uint32_t)(tun_prefix_hash(key, t->seed) >> 32) & t->mask;
}

struct tun_prefixes *tun_prefixes_new(uint32_t max, uint64_t seed)
{
    struct tun_prefixes *t;
    uint32_t size = 4;

    if (max == 0 || max > MAX_ENTRIES)
        return NULL;
    while (size < 2 * max)
        size *= 2;
    t = base_calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->at = base_calloc(size, sizeof *t->at);
    if (!t->at)
        return base_free(t);
    for (uint32_t i = 0; i < size; i++)
        t->at[i].value = TUN_PREFIX_NONE;
    t->mask = size - 1;
    t->max = max;
    t->seed = seed;
    return t;
}

struct tun_prefixes *tun_prefixes_free(struct tun_prefixes *t)
{
    if (!t)
        return NULL;
    base_free(t->at);
    return base_free(t);
}

/* The entry with this key, or the empty one where it would go: there always is one, the table is at most half
 * full. */
static uint32_t locate(const struct tun_prefixes *t, const uint8_t *key)
{
    uint32_t i = home(t, key);

    while (t->at[i].value != TUN_PREFIX_NONE && memcmp(t->at[i].key, key, KEY) != 0)
        i = (i + 1) & t->mask;
    return i;
}

int tun_prefixes_add(struct tun_prefixes *t, const struct base_prefix *p, uint32_t value)
{
    uint32_t i;

    if (p->len != PREFIX_LEN || value == TUN_PREFIX_NONE)
        return BASE_EINVAL;
    i = locate(t, p->addr.b);
    if (t->at[i].value != TUN_PREFIX_NONE)
        return BASE_EEXIST;
    if (t->n == t->max)
        return BASE_EFULL;
    memcpy(t->at[i].key, p->addr.b, KEY);
    t->at[i].value = value;
    t->n++;
    return BASE_OK;
}

int tun_prefixes_remove(struct tun_prefixes *t, const struct base_prefix *p)
{
    uint32_t hole, i;

    if (p->len != PREFIX_LEN)
        return BASE_ENOTFOUND;
    hole = locate(t, p->addr.b);
    if (t->at[hole].value == TUN_PREFIX_NONE)
        return BASE_ENOTFOUND;
    /* Close the gap: move up whoever would no longer be found behind an empty entry. */
    for (i = (hole + 1) & t->mask; t->at[i].value != TUN_PREFIX_NONE; i = (i + 1) & t->mask) {
        uint32_t want = home(t, t->at[i].key);

        if (((i - want) & t->mask) >= ((i - hole) & t->mask)) {
            t->at[hole] = t->at[i];
            hole = i;
        }
    }
    t->at[hole].value = TUN_PREFIX_NONE;
    t->n--;
    return BASE_OK;
}

uint32_t tun_prefixes_find(const struct tun_prefixes *t, const uint8_t addr[16])
{
    return t->at[locate(t, addr)].value;
}

uint32_t tun_prefixes_count(const struct tun_prefixes *t)
{
    return t->n;
}
