/* SPDX-License-Identifier: Apache-2.0
 *
 * tun/prefix.h - which session does this address belong to? A table from /96 prefixes to numbers.
 *
 * Pure; the seed is an argument. Fixed capacity, open addressing, no allocation after tun_prefixes_new. One
 * thread.
 */
#ifndef TUN_PREFIX_H
#define TUN_PREFIX_H

#include <string.h>

#include "base/cleanup.h"
#include "base/id.h"

#define TUN_PREFIX_NONE UINT32_MAX

/* Keyed hash of the /96 that holds `addr`, for tables: a secret seed keeps outsiders from choosing addresses
 * that collide. */
static inline uint64_t tun_prefix_hash(const uint8_t addr[16], uint64_t seed)
{
    uint64_t a;
    uint32_t b;

    memcpy(&a, addr, sizeof a);
    memcpy(&b, addr + sizeof a, sizeof b);
    a = (a ^ seed) * UINT64_C(0x9e3779b97f4a7c15);
    a ^= a >> 32;
    a = (a + b + (seed << 1 | 1)) * UINT64_C(0xd6e8feb86659fd93);
    a ^= a >> 32;
    a *= UINT64_C(0xd6e8feb86659fd93);
    return a ^ a >> 32;
}

struct tun_prefixes;
/* Room for `max` prefixes (1 .. 2^20). `seed` keeps outsiders from choosing names that collide. NULL: no
 * memory, or `max` out of range. */
struct tun_prefixes *tun_prefixes_new(uint32_t max, uint64_t seed);
struct tun_prefixes *tun_prefixes_free(struct tun_prefixes *t);
BASE_DEFINE_CLEANUP(struct tun_prefixes *, tun_prefixes_free)

/* BASE_OK; BASE_EEXIST (nothing changed); BASE_EFULL; BASE_EINVAL: not a /96, or the value is
 * TUN_PREFIX_NONE. */
int tun_prefixes_add(struct tun_prefixes *t, const struct base_prefix *p, uint32_t value);
/* BASE_OK or BASE_ENOTFOUND. */
int tun_prefixes_remove(struct tun_prefixes *t, const struct base_prefix *p);
/* The value of the /96 that holds `addr`, or TUN_PREFIX_NONE. */
uint32_t tun_prefixes_find(const struct tun_prefixes *t, const uint8_t addr[16]);
uint32_t tun_prefixes_count(const struct tun_prefixes *t);

#endif
