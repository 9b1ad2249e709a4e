/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/data_shared.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/data.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tun/prefix.h"

/* A prefix has a bucket of WAYS words, two of them in use on average when the table is full. A word is 0
 * (free), or the upper 56 bits of the prefix's keyed hash and the thread's number + 1, with CLAIMING set until
 * it is known that no other thread claims it, too. One word holds it all, so that no reader ever sees half a
 * change. */
enum { WAYS = 16, PREFIX_LEN = 96, THREAD_BITS = 8, THREADS = 64, CLAIMING = 1 << 7, MAX_PREFIXES = 1 << 21 };

struct bucket {
    _Atomic uint64_t word[WAYS];
};
struct agent_tenant {
    _Atomic uint32_t flows;
    _Atomic base_time requests_at, packets_at; /* when what it has used is earned again */
};
struct agent_shared {
    uint64_t seed;
    uint32_t mask;          /* number of buckets - 1 */
    struct bucket *buckets; /* NULL = none */
    struct agent_tenant tenants[AGENT_TENANTS];
};

struct agent_shared *agent_shared_new(uint32_t max, uint64_t seed)
{
    struct agent_shared *s;
    uint32_t buckets = 1;

    if (max > MAX_PREFIXES)
        return NULL;
    while (buckets < (max + 1) / 2)
        buckets *= 2;
    s = base_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->seed = seed;
    s->mask = buckets - 1;
    if (max > 0 && !(s->buckets = base_calloc(buckets, sizeof *s->buckets)))
        return base_free(s);
    return s;
}

struct agent_shared *agent_shared_free(struct agent_shared *s)
{
    if (!s)
        return NULL;
    base_free(s->buckets);
    return base_free(s);
}

/* ---- prefixes ---- */
static _Atomic uint64_t *bucket_of(const struct agent_shared *s, uint64_t h)
{
    return s->buckets[(h >> 32) & s->mask].word;
}

static bool same(uint64_t word, uint64_t h)
{
    return word != 0 && word >> THREAD_BITS == h >> THREAD_BITS;
}

static unsigned count(const _Atomic uint64_t *w, uint64_t h)
{
    unsigned n = 0;

    for (unsigned i = 0; i < WAYS; i++)
        n += same(atomic_load(&w[i]), h);
    return n;
}

int agent_shared_claim(struct agent_shared *s, const struct base_prefix *p, unsigned thread)
{
    uint64_t h, word;
    _Atomic uint64_t *w;

    if (!s->buckets || p->len != PREFIX_LEN || thread >= THREADS)
        return BASE_EINVAL;
    h = tun_prefix_hash(p->addr.b, s->seed);
    word = (h >> THREAD_BITS << THREAD_BITS) | (thread + 1);
    w = bucket_of(s, h);
    if (count(w, h) > 0)
        return BASE_EEXIST;
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t none = 0;

        if (!atomic_compare_exchange_strong(&w[i], &none, word | CLAIMING))
            continue;
        /* Of two that claim at once, the later one to get here sees both words: they cannot both stay. */
        bool alone = count(w, h) == 1;
        atomic_store(&w[i], alone ? word : 0);
        return alone ? BASE_OK : BASE_EEXIST;
    }
    return BASE_EFULL;
}

void agent_shared_release(struct agent_shared *s, const struct base_prefix *p, unsigned thread)
{
    uint64_t h = tun_prefix_hash(p->addr.b, s->seed), word = (h >> THREAD_BITS << THREAD_BITS) | (thread + 1);
    _Atomic uint64_t *w;

    if (!s->buckets)
        return;
    w = bucket_of(s, h);
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t mine = word;

        if (atomic_compare_exchange_strong(&w[i], &mine, 0))
            return;
    }
}

unsigned agent_shared_owner(const struct agent_shared *s, const uint8_t addr[16])
{
    uint64_t h, word;
    const _Atomic uint64_t *w;

    if (!s->buckets)
        return AGENT_NOBODY;
    h = tun_prefix_hash(addr, s->seed);
    w = bucket_of(s, h);
    for (unsigned i = 0; i < WAYS; i++) {
        word = atomic_load_explicit(&w[i], memory_order_acquire);
        if (same(word, h) && !(word & CLAIMING)) /* one that claims may come to nothing, beside the owner's */
            return (unsigned)(word & ((1u << THREAD_BITS) - 1)) - 1;
    }
    return AGENT_NOBODY;
}

/* ---- tenants ---- */
base_time agent_spend(base_time at, uint64_t rate, uint64_t least, base_time now, uint64_t n)
{
    uint64_t burst = rate / 10 > least ? rate / 10 : least;
    base_time from = base_time_max(at, now);

    if (rate == 0)
        return now;
    if ((uint64_t)(from - now) / 1000 * rate / 1000000 + n > burst)
        return 0;
    return from + (base_time)(n * (uint64_t)BASE_SEC / rate);
}

static bool take(_Atomic base_time *at, uint64_t rate, uint64_t least, base_time now)
{
    base_time was = atomic_load_explicit(at, memory_order_relaxed), next;

    do {
        next = agent_spend(was, rate, least, now, 1);
        if (next == 0)
            return false;
    } while (
        !atomic_compare_exchange_weak_explicit(at, &was, next, memory_order_relaxed, memory_order_relaxed));
    return true;
}

struct agent_tenant *agent_shared_tenant(struct agent_shared *s, const char *uri)
{
    const char *host = strstr(uri, "://");
    uint64_t h;

    if (!host || host[3] == '\0' || host[3] == '/')
        return NULL;
    h = base_fnv1a(s->seed ^ BASE_FNV1A, uri, (size_t)(host - uri) + 3 + strcspn(host + 3, "/"));
    return &s->tenants[(h ^ h >> 32) % AGENT_TENANTS];
}

enum agent_tenant_verdict agent_tenant_request(struct agent_tenant *x, const struct agent_tenant_limits *l,
                                               base_time now)
{
    if (!x)
        return AGENT_TENANT_PASS;
    if (l->sessions > 0 && atomic_load_explicit(&x->flows, memory_order_relaxed) >= l->sessions)
        return AGENT_TENANT_SESSIONS;
    return take(&x->requests_at, l->requests, 16, now) ? AGENT_TENANT_PASS : AGENT_TENANT_REQUESTS;
}

bool agent_tenant_packet(struct agent_tenant *x, const struct agent_tenant_limits *l, base_time now)
{
    return !x || l->packets == 0 || take(&x->packets_at, l->packets, 64, now);
}

bool agent_tenant_add(struct agent_tenant *x, uint32_t limit)
{
    uint32_t n;

    if (!x)
        return true;
    n = atomic_load_explicit(&x->flows, memory_order_relaxed);
    do {
        if (limit > 0 && n >= limit)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&x->flows, &n, n + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void agent_tenant_sub(struct agent_tenant *x)
{
    if (x)
        atomic_fetch_sub_explicit(&x->flows, 1, memory_order_relaxed);
}
