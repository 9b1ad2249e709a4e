/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/count.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

/* A source has a bucket of WAYS words, two of them in use on average when every connection comes from another
 * address. A word is 0 (free), or the upper bits of the address's keyed hash and its number of connections.
 * Two threads that meet a new source at once may make two words for it: its connections are the sum of both.
 */
enum { WAYS = 16, COUNT_BITS = 20, CONNECTIONS_MAX = 1 << 20 };
#define COUNT ((UINT64_C(1) << COUNT_BITS) - 1)

struct bucket {
    _Atomic uint64_t word[WAYS];
};
struct masque_sources {
    uint64_t seed;
    uint32_t mask; /* number of buckets - 1 */
    struct bucket *buckets;
};

int masque_count_init(struct masque_count *c, uint32_t connections, uint64_t seed)
{
    uint32_t buckets = 1;

    if (connections == 0 || connections > CONNECTIONS_MAX)
        return BASE_EINVAL;
    while (buckets < (connections + 1) / 2)
        buckets *= 2;
    c->sources = base_calloc(1, sizeof *c->sources);
    if (!c->sources)
        return BASE_ENOMEM;
    c->sources->seed = c->rates.seed = seed;
    c->sources->mask = buckets - 1;
    c->sources->buckets = base_calloc(buckets, sizeof *c->sources->buckets);
    if (c->sources->buckets)
        return BASE_OK;
    masque_count_fini(c);
    return BASE_ENOMEM;
}

void masque_count_fini(struct masque_count *c)
{
    if (c->sources)
        base_free(c->sources->buckets);
    c->sources = base_free(c->sources);
}

/* ---- sources ---- */
static _Atomic uint64_t *bucket_of(const struct masque_sources *s, const struct in6_addr *addr,
                                   uint64_t *ret_tag)
{
    uint64_t h = base_fnv1a(s->seed ^ BASE_FNV1A, addr->s6_addr, sizeof addr->s6_addr);

    h ^= h >> 29;
    *ret_tag = h & ~COUNT;
    return s->buckets[(h ^ h >> 32) & s->mask].word;
}

static bool same(uint64_t word, uint64_t tag)
{
    return word != 0 && (word & ~COUNT) == tag;
}

static uint64_t sum(const _Atomic uint64_t *w, uint64_t tag)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t word = atomic_load(&w[i]);

        n += same(word, tag) ? word & COUNT : 0;
    }
    return n;
}

/* False: no place is left in the bucket. */
static bool add(_Atomic uint64_t *w, uint64_t tag)
{
    for (unsigned i = 0; i < WAYS; i++)
        for (uint64_t word = atomic_load(&w[i]); same(word, tag) && (word & COUNT) < COUNT;)
            if (atomic_compare_exchange_strong(&w[i], &word, word + 1))
                return true;
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t none = 0;

        if (atomic_compare_exchange_strong(&w[i], &none, tag | 1))
            return true;
    }
    return false;
}

static void take_away(_Atomic uint64_t *w, uint64_t tag)
{
    for (unsigned i = 0; i < WAYS; i++)
        for (uint64_t word = atomic_load(&w[i]); same(word, tag);)
            if (atomic_compare_exchange_strong(&w[i], &word, (word & COUNT) == 1 ? 0 : word - 1))
                return;
}

static bool enter_source(struct masque_sources *s, const struct in6_addr *addr, uint32_t limit)
{
    uint64_t tag;
    _Atomic uint64_t *w = bucket_of(s, addr, &tag);

    if (sum(w, tag) >= limit || !add(w, tag))
        return false;
    if (sum(w, tag) <= limit)
        return true;
    take_away(w, tag); /* another thread came first */
    return false;
}

/* ---- connections ---- */
static bool enter(atomic_uint *n, uint32_t limit)
{
    unsigned is = atomic_load(n);

    while (is < limit)
        if (atomic_compare_exchange_weak(n, &is, is + 1))
            return true;
    return false;
}

enum masque_full masque_count_enter(struct masque_count *c, const struct in6_addr *addr,
                                    const struct masque_room *room)
{
    if (!enter(&c->conns, room->connections))
        return MASQUE_FULL_CONNECTIONS;
    if (!enter(&c->handshakes, room->handshakes)) {
        atomic_fetch_sub(&c->conns, 1);
        return MASQUE_FULL_HANDSHAKES;
    }
    if (enter_source(c->sources, addr, room->per_source))
        return MASQUE_ROOM;
    atomic_fetch_sub(&c->handshakes, 1);
    atomic_fetch_sub(&c->conns, 1);
    return MASQUE_FULL_SOURCE;
}

void masque_count_shaken(struct masque_count *c)
{
    atomic_fetch_sub(&c->handshakes, 1);
}

void masque_count_leave(struct masque_count *c, const struct in6_addr *addr, bool shaken)
{
    uint64_t tag;
    _Atomic uint64_t *w = bucket_of(c->sources, addr, &tag);

    take_away(w, tag);
    if (!shaken)
        atomic_fetch_sub(&c->handshakes, 1);
    atomic_fetch_sub(&c->conns, 1);
}
