/* SPDX-License-Identifier: Apache-2.0 */
#define OPENSSL_SUPPRESS_DEPRECATED /* SHA256_*, see base_sha256 */
#include "base/id.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/err.h"

struct base_uuid base_uuid_v4(const uint8_t random[16])
{
    struct base_uuid u;

    memcpy(u.b, random, 16);
    u.b[6] = (uint8_t)((u.b[6] & 0x0f) | 0x40);
    u.b[8] = (uint8_t)((u.b[8] & 0x3f) | 0x80);
    return u;
}

void base_uuid_text(char dst[BASE_UUID_SIZE], const struct base_uuid *u)
{
    static const uint8_t groups[] = {4, 2, 2, 2, 6};
    size_t at = 0, out = 0;

    for (size_t g = 0; g < sizeof groups; g++) {
        if (g)
            dst[out++] = '-';
        base_hex(dst + out, u->b + at, groups[g]);
        out += 2u * groups[g];
        at += groups[g];
    }
}

int base_uuid_parse(struct base_uuid *ret, struct base_str s)
{
    char hex[33];
    size_t n = 0;

    if (s.len != 36)
        return BASE_EINVAL;
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash != (s.ptr[i] == '-') || (s.ptr[i] >= 'A' && s.ptr[i] <= 'F'))
            return BASE_EINVAL;
        if (!dash)
            hex[n++] = s.ptr[i];
    }
    return base_unhex(ret->b, 16, (struct base_str){hex, 32});
}

bool base_uuid_eq(const struct base_uuid *a, const struct base_uuid *b)
{
    return memcmp(a->b, b->b, 16) == 0;
}

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

bool base_uuid_is_zero(const struct base_uuid *u)
{
    return all_zero(u->b, 16);
}

void base_correlation_text(char dst[BASE_CORRELATION_SIZE], const struct base_correlation *c)
{
    base_hex(dst, c->b, 16);
}

bool base_correlation_is_zero(const struct base_correlation *c)
{
    return all_zero(c->b, 16);
}

static bool lower_hex(struct base_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f')))
            return false;
    return true;
}

int base_correlation_parse(struct base_correlation *ret, struct base_str s)
{
    struct base_correlation c;

    if (!lower_hex(s) || base_unhex(c.b, 16, s) || base_correlation_is_zero(&c))
        return BASE_EINVAL;
    *ret = c;
    return BASE_OK;
}

int base_traceparent_parse(struct base_correlation *ret, struct base_str s)
{
    struct base_str parent, flags;

    if (s.len != 55 || s.ptr[0] != '0' || s.ptr[1] != '0' || s.ptr[2] != '-' || s.ptr[35] != '-' ||
        s.ptr[52] != '-')
        return BASE_EINVAL;
    parent = (struct base_str){s.ptr + 36, 16};
    flags = (struct base_str){s.ptr + 53, 2};
    if (!lower_hex(parent) || !lower_hex(flags))
        return BASE_EINVAL;
    return base_correlation_parse(ret, (struct base_str){s.ptr + 3, 32});
}

void base_ip6_text(char dst[BASE_IP6_SIZE], const struct base_ip6 *ip)
{
    dst[0] = '\0';
    (void)inet_ntop(AF_INET6, ip->b, dst, BASE_IP6_SIZE);
}

int base_ip6_parse(struct base_ip6 *ret, struct base_str s)
{
    char text[BASE_IP6_SIZE];

    if (base_copy_str(text, sizeof text, s) || inet_pton(AF_INET6, text, ret->b) != 1)
        return BASE_EINVAL;
    return BASE_OK;
}

bool base_ip6_eq(const struct base_ip6 *a, const struct base_ip6 *b)
{
    return memcmp(a->b, b->b, 16) == 0;
}

void base_prefix_text(char dst[BASE_PREFIX_SIZE], const struct base_prefix *p)
{
    char ip[BASE_IP6_SIZE];

    base_ip6_text(ip, &p->addr);
    (void)base_fmt(dst, BASE_PREFIX_SIZE, "%s/%u", ip, p->len);
}

static bool prefix_bits_match(const struct base_ip6 *a, const struct base_ip6 *b, unsigned len)
{
    unsigned bytes = len / 8, bits = len % 8;

    if (memcmp(a->b, b->b, bytes) != 0)
        return false;
    return bits == 0 || ((a->b[bytes] ^ b->b[bytes]) >> (8 - bits)) == 0;
}

int base_prefix_parse(struct base_prefix *ret, struct base_str s)
{
    const char *slash = s.len ? memchr(s.ptr, '/', s.len) : NULL;
    char canonical[BASE_PREFIX_SIZE];
    struct base_prefix p;
    uint64_t len;
    size_t n;

    if (!slash)
        return BASE_EINVAL;
    n = (size_t)(slash - s.ptr);
    if (base_ip6_parse(&p.addr, (struct base_str){s.ptr, n}) ||
        base_parse_u64((struct base_str){slash + 1, s.len - n - 1}, 128, &len))
        return BASE_EINVAL;
    p.len = (uint8_t)len;
    for (unsigned bit = p.len; bit < 128; bit++)
        if (p.addr.b[bit / 8] & (0x80u >> bit % 8))
            return BASE_EINVAL;
    base_prefix_text(canonical, &p);
    if (!base_str_eqz(s, canonical))
        return BASE_EINVAL;
    *ret = p;
    return BASE_OK;
}

bool base_prefix_eq(const struct base_prefix *a, const struct base_prefix *b)
{
    return a->len == b->len && base_ip6_eq(&a->addr, &b->addr);
}

bool base_prefix_has_ip(const struct base_prefix *p, const struct base_ip6 *ip)
{
    return prefix_bits_match(&p->addr, ip, p->len);
}

bool base_prefix_covers(const struct base_prefix *outer, const struct base_prefix *inner)
{
    return inner->len >= outer->len && prefix_bits_match(&outer->addr, &inner->addr, outer->len);
}

/* The one interface of libcrypto that takes no memory: every EVP digest does, and the core draws its identities
 * while sessions run. */
int base_sha256(uint8_t ret[BASE_SHA256_SIZE], const void *a, size_t an, const void *b, size_t bn)
{
    SHA256_CTX ctx;
    int ok = SHA256_Init(&ctx) == 1 && (!an || SHA256_Update(&ctx, a, an) == 1) &&
             (!bn || SHA256_Update(&ctx, b, bn) == 1) && SHA256_Final(ret, &ctx) == 1;

    OPENSSL_cleanse(&ctx, sizeof ctx);
    return ok ? BASE_OK : BASE_ENOMEM;
}

uint64_t base_prng_next(struct base_prng *p)
{
    uint64_t z = p->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t base_prng_below(struct base_prng *p, uint64_t n)
{
    return base_prng_next(p) % n;
}
