/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/rate.h"

#include "base/hash.h"

/* FNV-1a with a secret start, over what belongs to one owner. */
static unsigned bucket(const struct masque_rates *r, const struct in6_addr *addr)
{
    uint64_t h = base_fnv1a(r->seed ^ BASE_FNV1A, addr->s6_addr, IN6_IS_ADDR_V4MAPPED(addr) ? 16 : 8);
    return (unsigned)((h ^ h >> 32) % MASQUE_RATE_BUCKETS);
}

static bool left(base_time at, base_time now, uint32_t rate)
{
    base_time ahead = base_time_max(at, now) - now;
    return ahead <= BASE_SEC / rate * (rate + MASQUE_RATE_EXTRA - 1);
}

bool masque_rate_left(const struct masque_rates *r, const struct in6_addr *addr, base_time now, uint32_t all,
                      uint32_t network)
{
    return left(r->all, now, all) && left(r->network[bucket(r, addr)], now, network);
}

void masque_rate_take(struct masque_rates *r, const struct in6_addr *addr, base_time now, uint32_t all,
                      uint32_t network)
{
    base_time *n = &r->network[bucket(r, addr)];
    r->all = base_time_max(r->all, now) + BASE_SEC / all;
    *n = base_time_max(*n, now) + BASE_SEC / network;
}
