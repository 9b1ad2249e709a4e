/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/packet.h - may this IP packet pass? Checks on one IPv6 packet, in both directions.
 *
 * Pure: bytes in, verdict out; nothing is kept, nothing is allocated. Bytes beyond `len` are never read. The
 * only function that writes is masque_packet_hop (one byte, the hop limit). Sources: RFC 9484
 * sections 4.8, 7.2, 11; RFC 8200; RFC 5095 (routing header 0).
 */
#ifndef MASQUE_PACKET_H
#define MASQUE_PACKET_H

#include "base/id.h"

enum {
    MASQUE_PACKET_HEADER = 40,     /* fixed IPv6 header */
    MASQUE_PACKET_EXT_MAX = 8,     /* extension headers in one packet */
    MASQUE_PACKET_EXT_BYTES = 512, /* all of them together */
};
enum { /* next header values (IANA protocol numbers) that somebody here looks at */
       MASQUE_PROTO_HOPOPTS = 0,
       MASQUE_PROTO_TCP = 6,
       MASQUE_PROTO_UDP = 17,
       MASQUE_PROTO_ROUTING = 43,
       MASQUE_PROTO_FRAGMENT = 44,
       MASQUE_PROTO_ESP = 50,
       MASQUE_PROTO_AH = 51,
       MASQUE_PROTO_ICMP6 = 58,
       MASQUE_PROTO_NONE = 59,
       MASQUE_PROTO_DSTOPTS = 60,
};

enum masque_verdict {
    MASQUE_PASS = 0,
    /* Malformed: dropped in silence (nothing in such a packet can be trusted, so it is not quoted to
       anybody). */
    MASQUE_BAD_SHORT,      /* fewer than 40 bytes */
    MASQUE_BAD_VERSION,    /* not IPv6 */
    MASQUE_BAD_LENGTH,     /* payload length + 40 is not the size; jumbograms end here as well */
    MASQUE_BAD_EXTENSIONS, /* chain cut off, too long, or a header where none may be */
    MASQUE_BAD_ROUTING,    /* any routing header: nobody steers packets inside the VPC */
    /* The source. */
    MASQUE_SOURCE_SCOPE, /* link-local, multicast, unspecified, loopback, IPv4-mapped: silence */
    MASQUE_SOURCE_SPOOF, /* outside the session's prefix: unreachable, code 5 */
    /* The destination. */
    MASQUE_DST_SCOPE,     /* multicast, link-local, unspecified, loopback, IPv4-mapped: silence */
    MASQUE_DST_LOCAL,     /* the tunnel's own address, or ff02::1: the caller answers echo requests, drops the
                             rest */
    MASQUE_DST_NO_ROUTE,  /* outside the destinations: unreachable, code 0 */
    MASQUE_DST_FORBIDDEN, /* inside the tunnel pool, connector to connector: unreachable, code 1 */
    MASQUE_PROTO_FORBIDDEN, /* another protocol than the session asked for: unreachable, code 1 */
    MASQUE_LINK_NOISE,      /* neighbour discovery or multicast listener messages: silence */
    MASQUE_HOP_LIMIT,       /* used up: time exceeded */
    MASQUE_VERDICT_N
};
/* "source outside the session's prefix" and so on; never NULL. */
const char *masque_verdict_text(enum masque_verdict v);

/* What the extension headers say. */
struct masque_packet {
    uint8_t
        proto; /* first header that is no extension header; of a later fragment the fragment's next header */
    uint16_t proto_at;   /* its offset; == len when nothing of it is there */
    bool fragment;       /* a fragment header stands before it (atomic fragments included) */
    bool later_fragment; /* fragment offset > 0: `proto_at` is payload, not a header */
    int icmp_type;       /* of an ICMPv6 message whose first byte is there, else -1 */
};

/* Whether `pkt[0..len)` is one whole IPv6 packet; fills *ret (also for the routing verdict, not for others).
 * MASQUE_PASS or one of MASQUE_BAD_*. */
enum masque_verdict masque_packet_parse(struct masque_packet *ret, const uint8_t *pkt, size_t len);

/* An address that no packet between networks may carry as source (destination: the same set). */
bool masque_address_bad(const uint8_t addr[16]);

/* What one session may do. Pointers are borrowed for the call. */
struct masque_rules {
    struct base_prefix prefix; /* the session's /96: the only sources */
    struct base_ip6 tunnel_ip; /* the tunnel's own address */
    struct base_prefix
        pool; /* all sessions' prefixes; len 0 = unknown, then only `prefix` and the /96 of tunnel_ip */
    const struct base_prefix *destinations;
    size_t n_destinations; /* 0 = nothing may be reached */
    int ipproto;           /* 0..255, or -1 for any; ICMPv6 always passes (RFC 9484 section 4.6) */
};
/* A packet that the client sent. Checked in this order: form, source, own address, destination, protocol, hop
 * limit (only 0 is refused: the kernel that forwards it next counts down). *ret as in masque_packet_parse. */
enum masque_verdict masque_packet_from_client(struct masque_packet *ret, const struct masque_rules *r,
                                              const uint8_t *pkt, size_t len);
/* A packet that is to go to the client whose /96 holds its destination. A hop limit of 0 or 1 is refused; the
 * caller counts down with masque_packet_hop when it passes (encapsulation counts, RFC 9484 section 7.2). */
enum masque_verdict masque_packet_to_client(struct masque_packet *ret, const struct masque_rules *r,
                                            const uint8_t *pkt, size_t len);
/* Counts the hop limit down by one; call it for packets that passed masque_packet_to_client. */
void masque_packet_hop(uint8_t *pkt);

/* One's complement sum of RFC 1071 over `n` bytes, added to `sum` (start with 0; an odd `n` only in the last
 * piece). */
uint32_t masque_checksum_add(uint32_t sum, const uint8_t *p, size_t n);
/* The IPv6 pseudo-header's part: addresses of `pkt`, upper-layer length, next header. */
uint32_t masque_checksum_pseudo(const uint8_t *pkt, uint32_t upper_len, uint8_t proto);
/* Folds and complements. */
uint16_t masque_checksum_end(uint32_t sum);

#endif
