/* SPDX-License-Identifier: Apache-2.0
 *
 * base/id.h - identities as values: UUIDs, correlation IDs, IPv6 addresses and prefixes, digests, a seeded
 * generator.
 *
 * Pure. Random bytes are always an argument.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include "base/str.h"

#define BASE_UUID_SIZE 37 /* text with its NUL */
struct base_uuid {
    uint8_t b[16];
};
/* Sets version 4 and the variant of RFC 9562 on 16 random bytes. */
struct base_uuid base_uuid_v4(const uint8_t random[16]);
/* Lower-case 8-4-4-4-12. */
void base_uuid_text(char dst[BASE_UUID_SIZE], const struct base_uuid *u);
/* Exactly that form (upper case is refused, as the CRDs do). BASE_OK or BASE_EINVAL. */
int base_uuid_parse(struct base_uuid *ret, struct base_str s);
bool base_uuid_eq(const struct base_uuid *a, const struct base_uuid *b);
bool base_uuid_is_zero(const struct base_uuid *u);

/* Correlation ID: 16 bytes, 32 lower-case hex digits, never all zero (trace-id of a W3C traceparent). */
#define BASE_CORRELATION_SIZE 33
struct base_correlation {
    uint8_t b[16];
};
void base_correlation_text(char dst[BASE_CORRELATION_SIZE], const struct base_correlation *c);
int base_correlation_parse(struct base_correlation *ret, struct base_str s);
/* Takes the trace-id out of "00-<32 hex>-<16 hex>-<2 hex>". BASE_OK or BASE_EINVAL. */
int base_traceparent_parse(struct base_correlation *ret, struct base_str s);
bool base_correlation_is_zero(const struct base_correlation *c);

struct base_ip6 {
    uint8_t b[16];
};
struct base_prefix {
    struct base_ip6 addr; /* host bits are zero */
    uint8_t len;          /* 0..128 */
};
#define BASE_IP6_SIZE 46
#define BASE_PREFIX_SIZE 50
/* RFC 5952 text. */
void base_ip6_text(char dst[BASE_IP6_SIZE], const struct base_ip6 *ip);
int base_ip6_parse(struct base_ip6 *ret, struct base_str s);
bool base_ip6_eq(const struct base_ip6 *a, const struct base_ip6 *b);
void base_prefix_text(char dst[BASE_PREFIX_SIZE], const struct base_prefix *p);
/* "addr/len" in canonical form with zero host bits. BASE_OK or BASE_EINVAL. */
int base_prefix_parse(struct base_prefix *ret, struct base_str s);
bool base_prefix_eq(const struct base_prefix *a, const struct base_prefix *b);
bool base_prefix_has_ip(const struct base_prefix *p, const struct base_ip6 *ip);
/* True when `inner` lies within `outer` (equal counts). */
bool base_prefix_covers(const struct base_prefix *outer, const struct base_prefix *inner);

#define BASE_SHA256_SIZE 32
/* One-shot digest of two pieces (either may be empty). Returns BASE_OK or BASE_ENOMEM. */
int base_sha256(uint8_t ret[BASE_SHA256_SIZE], const void *a, size_t an, const void *b, size_t bn);

/* A seeded generator for jitter and simulation (splitmix64); never for identities or secrets. */
struct base_prng {
    uint64_t state;
};
uint64_t base_prng_next(struct base_prng *p);
/* Uniform enough in [0, n); n > 0. */
uint64_t base_prng_below(struct base_prng *p, uint64_t n);

#endif
