/* SPDX-License-Identifier: Apache-2.0 */
#include "authority/prefix.h"

#include "base/err.h"
#include "base/mutant.h"

#include <string.h>

#define PREFIX_LEN 96
#define BYTES (PREFIX_LEN / 8)

static bool is_zero(const uint8_t idx[BYTES])
{
    for (unsigned i = 0; i < BYTES; i++)
        if (idx[i] != 0)
            return false;
    return true;
}

/* Keeps the low `bits` bits of a 96-bit big-endian number. */
static void mask(uint8_t idx[BYTES], unsigned bits)
{
    for (unsigned i = 0; i < BYTES; i++) {
        unsigned low = (BYTES - 1 - i) * 8; /* weight of this byte's lowest bit */
        if (low >= bits)
            idx[i] = 0;
        else if (bits - low < 8)
            idx[i] &= (uint8_t)((1U << (bits - low)) - 1);
    }
}

/* idx += add modulo 2^bits; true when it went round. */
static bool add(uint8_t idx[BYTES], uint64_t n, unsigned bits)
{
    uint8_t before[BYTES];
    memcpy(before, idx, BYTES);
    uint64_t carry = 0;
    for (int i = BYTES - 1; i >= 0; i--) {
        uint64_t sum = (uint64_t)idx[i] + (n & 0xff) + carry;
        idx[i] = (uint8_t)sum;
        carry = sum >> 8;
        n >>= 8;
    }
    mask(idx, bits);
    return memcmp(idx, before, BYTES) < 0;
}

int authority_candidate(struct base_prefix *ret, const char *tenant, const char *connector, const char *vpc,
                        const struct base_prefix *pool, uint64_t i)
{
    if (pool->len >= PREFIX_LEN)
        return BASE_EINVAL;
    unsigned bits = PREFIX_LEN - pool->len;
    if (bits < 63 && i >= (UINT64_C(1) << bits) - 1)
        return BASE_EFULL;

    char text[512];
    uint8_t digest[BASE_SHA256_SIZE];
    if (!base_fmt(text, sizeof text, "%s/%s/%s", tenant, connector, vpc))
        return BASE_EINVAL;
    int rc = base_sha256(digest, text, strlen(text), NULL, 0);
    if (rc != BASE_OK)
        return rc;

    uint8_t idx[BYTES];
    memcpy(idx, digest + sizeof digest - BYTES, BYTES);
    mask(idx, bits);
    bool from_zero = is_zero(idx);
    bool round = add(idx, i, bits);
    if ((from_zero || round) && !base_mutant("prefix.index-zero"))
        (void)add(idx, 1, bits); /* index 0 was passed: it does not count */

    *ret = (struct base_prefix){.addr = pool->addr, .len = PREFIX_LEN};
    for (unsigned b = 0; b < BYTES; b++)
        ret->addr.b[b] |= idx[b];
    return BASE_OK;
}

struct base_ip6 authority_tunnel_ip(const struct base_prefix *pool)
{
    struct base_ip6 ip = pool->addr;
    ip.b[15] = 1;
    return ip;
}

bool authority_in_pool(const struct base_prefix *pool, const struct base_prefix *prefix)
{
    return prefix->len == PREFIX_LEN && pool->len < PREFIX_LEN && base_prefix_covers(pool, prefix) &&
           !base_ip6_eq(&pool->addr, &prefix->addr);
}
