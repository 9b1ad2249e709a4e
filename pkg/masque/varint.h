/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/varint.h - QUIC variable-length integers (RFC 9000 section 16), minimal or not.
 *
 * Pure: bytes are arguments, nothing is kept.
 */
#ifndef MASQUE_VARINT_H
#define MASQUE_VARINT_H

#include <stddef.h>
#include <stdint.h>

#define MASQUE_VARINT_MAX ((UINT64_C(1) << 62) - 1)

/* Number of bytes used, or 0 when `n` bytes do not hold a whole integer (*ret is then untouched). */
size_t masque_varint_get(const uint8_t *p, size_t n, uint64_t *ret);
/* Length of the shortest form: 1, 2, 4 or 8; 0 when v > MASQUE_VARINT_MAX. */
size_t masque_varint_len(uint64_t v);
/* Writes the shortest form. Number of bytes written, or 0 when it does not fit into `size` or v is too large. */
size_t masque_varint_put(uint8_t *dst, size_t size, uint64_t v);

#endif
