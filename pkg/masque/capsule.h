/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/capsule.h - capsules on a CONNECT-IP stream (RFC 9297 section 3, RFC 9484 section 4.7).
 *
 * Pure: bytes in, values out; no clock, no I/O, no heap. The parser takes a stream in pieces of any size,
 * keeps at most one control capsule of MASQUE_CAPSULE_MAX bytes and skips the rest by counting.
 */
#ifndef MASQUE_CAPSULE_H
#define MASQUE_CAPSULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"

enum masque_capsule_type {
    MASQUE_CAPSULE_DATAGRAM = 0,
    MASQUE_CAPSULE_ADDRESS_ASSIGN = 1,
    MASQUE_CAPSULE_ADDRESS_REQUEST = 2,
    MASQUE_CAPSULE_ROUTE_ADVERTISEMENT = 3,
};
enum {
    MASQUE_CAPSULE_MAX = 4096,             /* value of a capsule that is kept; a longer DATAGRAM is skipped */
    MASQUE_CAPSULE_ADDRESSES_MAX = 64,     /* entries of one ADDRESS_ASSIGN or ADDRESS_REQUEST */
    MASQUE_CAPSULE_SKIP_MAX = 1024 * 1024, /* bytes of unknown capsules on one stream */
};

struct masque_capsule {
    uint64_t type;        /* enum masque_capsule_type */
    const uint8_t *value; /* borrowed from the parser: valid until the next masque_capsule_feed */
    size_t len;
};

struct masque_capsule_parser { /* zero-initialised = ready */
    uint8_t head[16];          /* type and length as they come in */
    uint8_t n_head;
    bool in_value, skipping, failed;
    uint64_t type, left; /* left: bytes of the value that are still to come */
    uint64_t skipped;    /* bytes of unknown capsules, over the whole stream */
    uint32_t oversize;   /* DATAGRAM capsules that were too long to keep */
    size_t stored;
    uint8_t value[MASQUE_CAPSULE_MAX];
};

/* Takes bytes from *data (moving *data and *len) until a capsule is whole or the bytes are used up.
 * 1: *ret holds a capsule, call again; 0: more bytes are needed; BASE_EPROTO: the stream is malformed (a
 * known control capsule longer than MASQUE_CAPSULE_MAX, or too many unknown bytes) and no byte is taken any
 * more. */
int masque_capsule_feed(struct masque_capsule_parser *p, const uint8_t **data, size_t *len,
                        struct masque_capsule *ret, struct base_err *err);
/* True between capsules: only there may a stream end (RFC 9297 section 3.3). */
bool masque_capsule_at_boundary(const struct masque_capsule_parser *p);

/* One entry of ADDRESS_ASSIGN or ADDRESS_REQUEST. */
struct masque_address {
    uint64_t request_id;
    uint8_t version;  /* 4 or 6 */
    uint8_t addr[16]; /* the first 4 bytes for version 4 */
    uint8_t len;      /* prefix length */
};
/* Decodes the value of ADDRESS_ASSIGN (`request` false) or ADDRESS_REQUEST (true: at least one entry, no
 * Request ID 0, none twice). BASE_OK, or BASE_EPROTO with a text that says which entry is wrong and why. */
int masque_address_decode(const uint8_t *p, size_t n, bool request, struct masque_address *ret, size_t max,
                          size_t *ret_n, struct base_err *err);
/* Writes a whole capsule of `type`. Bytes written, or 0 when it does not fit into `size`. */
size_t masque_address_encode(uint8_t *dst, size_t size, enum masque_capsule_type type,
                             const struct masque_address *a, size_t n);
/* The refusal of one requested address: the same Request ID with ::/128 or 0.0.0.0/32. */
struct masque_address masque_address_refusal(const struct masque_address *asked);

/* One range of ROUTE_ADVERTISEMENT. */
struct masque_route {
    uint8_t version; /* 4 or 6 */
    uint8_t start[16], end[16];
    uint8_t ipproto; /* 0 = all */
};
/* Checks the whole value (start <= end; sorted by version, protocol, start; no overlap) and stores the first
 * `max` ranges; *ret_n is the number of all ranges. BASE_OK or BASE_EPROTO. */
int masque_route_decode(const uint8_t *p, size_t n, struct masque_route *ret, size_t max, size_t *ret_n,
                        struct base_err *err);
/* Writes a whole ROUTE_ADVERTISEMENT of the given ranges, which must be sorted and apart. Bytes written, or
 * 0. */
size_t masque_route_encode(uint8_t *dst, size_t size, const struct masque_route *r, size_t n);
/* Turns prefixes into sorted ranges, joining those that overlap or touch. Returns the number of ranges (<=
 * n); `ret` must hold n. */
size_t masque_route_from_prefixes(const struct base_prefix *p, size_t n, uint8_t ipproto,
                                  struct masque_route *ret);

#endif
