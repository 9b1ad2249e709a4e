/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/rate.h"

#include "base/hash.h"

/* FNV-1a with a secret start, over what belongs to one owner. */
static unsigned bucket(const struct masque_rates *r, const struct in6_addr *addr)
{
    uint64_t h = base_fnv1a(r->seed ^ BASE_FNV1A, addr->s6_addr, IN6_IS_ADDR_V4MAPPED(addr) ? 16 : 8);
    return (unsigned)((h ^ h >> 32) % MASQUE_RATE_BUCKETS);
}

/* With all that was taken up to `at`, is there one left of `rate` a second, `burst` of them at once? */
static bool left(base_time at, base_time now, uint32_t rate, uint32_t burst)
{
    base_time ahead = base_time_max(at, now) - now;
    return ahead <= BASE_SEC / rate * (burst - 1);
}

static bool take(_Atomic base_time *at, base_time now, uint32_t rate, uint32_t burst)
{
    base_time was = atomic_load_explicit(at, memory_order_relaxed);
    do {
        if (!left(was, now, rate, burst))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(at, &was, base_time_max(was, now) + BASE_SEC / rate,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool masque_rate_left(const struct masque_rates *r, const struct in6_addr *addr, base_time now, uint32_t all,
                      uint32_t network)
{
    return left(atomic_load_explicit(&r->all, memory_order_relaxed), now, all, all + MASQUE_RATE_EXTRA) &&
           left(atomic_load_explicit(&r->network[bucket(r, addr)], memory_order_relaxed), now, network,
                network + MASQUE_RATE_EXTRA);
}

bool masque_rate_take(struct masque_rates *r, const struct in6_addr *addr, base_time now, uint32_t all,
                      uint32_t network)
{
    _Atomic base_time *n = &r->network[bucket(r, addr)];
    if (!take(n, now, network, network + MASQUE_RATE_EXTRA))
        return false;
    if (take(&r->all, now, all, all + MASQUE_RATE_EXTRA))
        return true;
    atomic_fetch_sub_explicit(n, BASE_SEC / network, memory_order_relaxed);
    return false;
}

bool masque_rate_answer(struct masque_rates *r, base_time now)
{
    return take(&r->answers, now, MASQUE_ANSWERS_PER_SECOND, MASQUE_ANSWERS_PER_SECOND);
}
