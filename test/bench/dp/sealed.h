/* SPDX-License-Identifier: Apache-2.0
 *
 * sealed.h - the least that a tunnel over UDP can do to a packet: eight bytes of counter, AES-128-GCM with a
 * key that everybody knows, sixteen bytes of tag. For the ideal loop and its client; it protects nothing.
 */
#ifndef BENCH_SEALED_H
#define BENCH_SEALED_H

#include <gnutls/crypto.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_SEALED_ROOM = 24 };
struct bench_sealed {
    gnutls_aead_cipher_hd_t key;
    uint64_t counter; /* of the next packet; the two sides' are told apart by the highest bit */
};
/* 0, or what GnuTLS says. */
int bench_sealed_init(struct bench_sealed *s, int server);
/* Writes len + BENCH_SEALED_ROOM bytes to `out`; returns that, 0 = failed. */
size_t bench_seal(struct bench_sealed *s, uint8_t *out, const uint8_t *pkt, size_t len);
/* The packet of a datagram of `len` bytes, at most `room`; 0: it is none. */
size_t bench_unseal(struct bench_sealed *s, uint8_t *pkt, size_t room, const uint8_t *in, size_t len);

#endif
