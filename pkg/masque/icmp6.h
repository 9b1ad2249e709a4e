/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/icmp6.h - builds the ICMPv6 messages that the tunnel itself sends, and limits their rate.
 *
 * Pure. The caller gives the buffer; a result of 0 means "send nothing": the message may not or cannot be
 * built. Hop limit 64, checksum filled in. Sources: RFC 4443 sections 2.4, 3.1-3.3, 4.2; RFC 9484
 * section 7.2.
 */
#ifndef MASQUE_ICMP6_H
#define MASQUE_ICMP6_H

#include "base/id.h"
#include "base/time.h"
#include "masque/packet.h"

enum { MASQUE_ICMP6_MAX = 1280 }; /* no error message is longer: the smallest MTU of IPv6 */

enum masque_icmp6 {
    MASQUE_ICMP6_NO_ROUTE = 1,  /* unreachable, code 0 */
    MASQUE_ICMP6_PROHIBITED,    /* unreachable, code 1 */
    MASQUE_ICMP6_SOURCE_POLICY, /* unreachable, code 5 */
    MASQUE_ICMP6_TOO_BIG,       /* packet too big; `mtu` */
    MASQUE_ICMP6_TIME_EXCEEDED, /* hop limit, code 0 */
};

/* The error that belongs to a verdict; false = this one is dropped in silence. */
bool masque_icmp6_for(enum masque_verdict v, enum masque_icmp6 *ret);

/* An error about `pkt[0..len)`, from `from` to its source, with as much of it as fits; `info` is what
 * masque_packet_parse said about it. Returns the length, at most MASQUE_ICMP6_MAX and `cap`, or 0: the packet
 * is an ICMPv6 error or redirect itself or might be one (a later fragment of ICMPv6), its destination is
 * multicast (Packet Too Big is excepted), its source is not one node (unspecified, multicast, loopback,
 * IPv4-mapped), it has no whole header, or `cap` is less than 88 bytes. An `mtu` below 1280 is written as
 * 1280. `dst` and `pkt` must not overlap. */
size_t masque_icmp6_error(uint8_t *dst, size_t cap, enum masque_icmp6 what, uint32_t mtu,
                          const struct base_ip6 *from, const uint8_t *pkt, size_t len,
                          const struct masque_packet *info);

/* The answer to an echo request `pkt[0..len)` (parsed as `info`), from `from`. Returns its length, or 0: no
 * echo request, a fragment, a wrong checksum, a source that is not one node, or longer than `cap`. */
size_t masque_icmp6_echo(uint8_t *dst, size_t cap, const struct base_ip6 *from, const uint8_t *pkt,
                         size_t len, const struct masque_packet *info);

/* Errors per session: MASQUE_ICMP6_RATE a second, MASQUE_ICMP6_BURST at once. All zero = full. */
enum { MASQUE_ICMP6_RATE = 10, MASQUE_ICMP6_BURST = 20 };
struct masque_icmp6_bucket {
    base_time full_at; /* the bucket is full from then on */
};
/* True = one may be sent now, and was counted. */
bool masque_icmp6_take(struct masque_icmp6_bucket *b, base_time now);

#endif
