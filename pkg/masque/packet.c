/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/packet.h"

#include <string.h>

enum { /* header fields by offset */
       AT_PAYLOAD = 4,
       AT_NEXT = 6,
       AT_HOP = 7,
       AT_SRC = 8,
       AT_DST = 24,
};
enum {
    PROTO_MOBILITY = 135,
    PROTO_HIP = 139,
    PROTO_SHIM6 = 140,
    OPTION_PAD1 = 0,
    OPTION_JUMBO = 0xc2,
    INDEX_LEN = 96, /* one connector's prefix */
};

const char *masque_verdict_text(enum masque_verdict v)
{
    static const char *const text[MASQUE_VERDICT_N] = {
        [MASQUE_PASS] = "passes",
        [MASQUE_BAD_SHORT] = "shorter than an IPv6 header",
        [MASQUE_BAD_VERSION] = "not IPv6",
        [MASQUE_BAD_LENGTH] = "payload length does not agree with the size",
        [MASQUE_BAD_EXTENSIONS] = "extension headers malformed",
        [MASQUE_BAD_ROUTING] = "routing header",
        [MASQUE_SOURCE_SCOPE] = "source address of no unicast scope",
        [MASQUE_SOURCE_SPOOF] = "source outside the session's prefix",
        [MASQUE_DST_SCOPE] = "destination address of no unicast scope",
        [MASQUE_DST_LOCAL] = "destination is the tunnel itself",
        [MASQUE_DST_NO_ROUTE] = "destination outside the service's destinations",
        [MASQUE_DST_FORBIDDEN] = "destination is another connector",
        [MASQUE_PROTO_FORBIDDEN] = "protocol outside the session's scope",
        [MASQUE_LINK_NOISE] = "neighbour discovery or listener message",
        [MASQUE_HOP_LIMIT] = "hop limit used up",
    };

    return (unsigned)v < MASQUE_VERDICT_N ? text[v] : "unknown verdict";
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

/* Options of a hop-by-hop header: whole, and no jumbo payload. */
static bool options_ok(const uint8_t *p, size_t n)
{
    size_t at = 2;

    while (at < n) {
        if (p[at] == OPTION_PAD1) {
            at++;
            continue;
        }
        if (p[at] == OPTION_JUMBO || at + 2 > n)
            return false;
        at += 2 + (size_t)p[at + 1];
    }
    return at == n;
}

enum masque_verdict masque_packet_parse(struct masque_packet *ret, const uint8_t *pkt, size_t len)
{
    size_t at = MASQUE_PACKET_HEADER, size;
    unsigned n = 0;
    uint8_t next;
    bool routing = false;

    memset(ret, 0, sizeof *ret);
    ret->icmp_type = -1;
    if (len < MASQUE_PACKET_HEADER)
        return MASQUE_BAD_SHORT;
    if (pkt[0] >> 4 != 6)
        return MASQUE_BAD_VERSION;
    if ((size_t)get16(pkt + AT_PAYLOAD) + MASQUE_PACKET_HEADER != len)
        return MASQUE_BAD_LENGTH;

    for (next = pkt[AT_NEXT];; n++) {
        switch (next) {
        case MASQUE_PROTO_HOPOPTS:
        case MASQUE_PROTO_ROUTING:
        case MASQUE_PROTO_DSTOPTS:
        case MASQUE_PROTO_AH:
        case MASQUE_PROTO_FRAGMENT:
        case PROTO_MOBILITY:
        case PROTO_HIP:
        case PROTO_SHIM6:
            break;
        default:
            goto upper;
        }
        if (n == MASQUE_PACKET_EXT_MAX || len - at < 8)
            return MASQUE_BAD_EXTENSIONS;
        if (next == MASQUE_PROTO_FRAGMENT) {
            if (ret->fragment)
                return MASQUE_BAD_EXTENSIONS;
            ret->fragment = true;
            if (get16(pkt + at + 2) & 0xfff8) {
                ret->later_fragment = true;
                next = pkt[at];
                at += 8;
                goto upper;
            }
            size = 8;
        } else if (next == MASQUE_PROTO_AH) {
            size = ((size_t)pkt[at + 1] + 2) * 4;
        } else {
            size = ((size_t)pkt[at + 1] + 1) * 8;
        }
        if (size > len - at || size < 8 || at + size > MASQUE_PACKET_HEADER + MASQUE_PACKET_EXT_BYTES)
            return MASQUE_BAD_EXTENSIONS;
        /* RFC 8200 section 4.1: hop-by-hop options only right after the fixed header. */
        if (next == MASQUE_PROTO_HOPOPTS && (at != MASQUE_PACKET_HEADER || !options_ok(pkt + at, size)))
            return MASQUE_BAD_EXTENSIONS;
        routing = routing || next == MASQUE_PROTO_ROUTING;
        next = pkt[at];
        at += size;
    }
upper:
    ret->proto = next;
    ret->proto_at = (uint16_t)at;
    if (next == MASQUE_PROTO_ICMP6 && !ret->later_fragment && at < len)
        ret->icmp_type = pkt[at];
    return routing ? MASQUE_BAD_ROUTING : MASQUE_PASS;
}

static bool is_multicast(const uint8_t *a)
{
    return a[0] == 0xff;
}

bool masque_address_bad(const uint8_t addr[16])
{
    static const uint8_t zero[15];
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

    return is_multicast(addr) || (addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80) ||
           (memcmp(addr, zero, 15) == 0 && addr[15] <= 1) || memcmp(addr, mapped, 12) == 0;
}

static bool has(const struct base_prefix *p, const uint8_t *addr)
{
    struct base_ip6 ip;

    memcpy(ip.b, addr, 16);
    return base_prefix_has_ip(p, &ip);
}

/* Inside some connector's prefix, this session's own included, but not the tunnel's own address. */
static bool in_pool(const struct masque_rules *r, const uint8_t *addr)
{
    if (memcmp(addr, r->tunnel_ip.b, 16) == 0)
        return false;
    if (r->pool.len > 0)
        return has(&r->pool, addr);
    return has(&r->prefix, addr) || memcmp(addr, r->tunnel_ip.b, INDEX_LEN / 8) == 0;
}

/* Messages that mean something on one link only: multicast listener 130-132 and 143, neighbour discovery
 * 133-137 (with redirect), inverse discovery and the like up to 137. */
static bool is_link_noise(const struct masque_packet *p)
{
    return (p->icmp_type >= 130 && p->icmp_type <= 137) || p->icmp_type == 143;
}

static bool is_all_nodes(const uint8_t *a)
{
    static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};

    return memcmp(a, all_nodes, 16) == 0;
}

enum masque_verdict masque_packet_from_client(struct masque_packet *ret, const struct masque_rules *r,
                                              const uint8_t *pkt, size_t len)
{
    enum masque_verdict v = masque_packet_parse(ret, pkt, len);
    const uint8_t *src, *dst;
    bool reachable = false;

    /* Kernels send listener reports and solicitations as soon as the device is up, from any source: not worth
     * a verdict of their own, whatever else is wrong with them. */
    if (v == MASQUE_PASS && is_link_noise(ret))
        return MASQUE_LINK_NOISE;
    if (v != MASQUE_PASS && v != MASQUE_BAD_ROUTING)
        return v;
    src = pkt + AT_SRC;
    dst = pkt + AT_DST;
    /* To ff02::1 a link-local source is in its right: RFC 9484 section 7.2 lets peers probe the MTU that way. */
    if (is_all_nodes(dst) && v == MASQUE_PASS) {
        if (has(&r->prefix, src) || (src[0] == 0xfe && (src[1] & 0xc0) == 0x80))
            return MASQUE_DST_LOCAL;
        return MASQUE_SOURCE_SCOPE;
    }
    if (masque_address_bad(src))
        return MASQUE_SOURCE_SCOPE;
    if (!has(&r->prefix, src))
        return MASQUE_SOURCE_SPOOF;
    if (v != MASQUE_PASS)
        return v;
    if (memcmp(dst, r->tunnel_ip.b, 16) == 0)
        return MASQUE_DST_LOCAL;
    if (masque_address_bad(dst))
        return MASQUE_DST_SCOPE;
    if (in_pool(r, dst))
        return MASQUE_DST_FORBIDDEN;
    for (size_t i = 0; i < r->n_destinations && !reachable; i++)
        reachable = has(&r->destinations[i], dst);
    if (!reachable)
        return MASQUE_DST_NO_ROUTE;
    if (r->ipproto >= 0 && ret->proto != r->ipproto && ret->proto != MASQUE_PROTO_ICMP6)
        return MASQUE_PROTO_FORBIDDEN;
    return pkt[AT_HOP] == 0 ? MASQUE_HOP_LIMIT : MASQUE_PASS;
}

enum masque_verdict masque_packet_to_client(struct masque_packet *ret, const struct masque_rules *r,
                                            const uint8_t *pkt, size_t len)
{
    enum masque_verdict v = masque_packet_parse(ret, pkt, len);
    const uint8_t *src, *dst;

    if (v == MASQUE_PASS && is_link_noise(ret))
        return MASQUE_LINK_NOISE;
    if (v != MASQUE_PASS)
        return v;
    src = pkt + AT_SRC;
    dst = pkt + AT_DST;
    if (masque_address_bad(src))
        return MASQUE_SOURCE_SCOPE;
    if (masque_address_bad(dst))
        return MASQUE_DST_SCOPE;
    if (!has(&r->prefix, dst))
        return MASQUE_DST_NO_ROUTE;
    if (in_pool(r, src))
        return MASQUE_SOURCE_SPOOF;
    if (r->ipproto >= 0 && ret->proto != r->ipproto && ret->proto != MASQUE_PROTO_ICMP6)
        return MASQUE_PROTO_FORBIDDEN;
    return pkt[AT_HOP] <= 1 ? MASQUE_HOP_LIMIT : MASQUE_PASS;
}

void masque_packet_hop(uint8_t *pkt)
{
    if (pkt[AT_HOP] > 0)
        pkt[AT_HOP]--;
}

uint32_t masque_checksum_add(uint32_t sum, const uint8_t *p, size_t n)
{
    uint64_t wide = sum;

    for (; n >= 2; n -= 2, p += 2)
        wide += get16(p);
    if (n)
        wide += (uint32_t)p[0] << 8;
    while (wide >> 16)
        wide = (wide & 0xffff) + (wide >> 16);
    return (uint32_t)wide;
}

uint32_t masque_checksum_pseudo(const uint8_t *pkt, uint32_t upper_len, uint8_t proto)
{
    uint8_t tail[8] = {(uint8_t)(upper_len >> 24),
                       (uint8_t)(upper_len >> 16),
                       (uint8_t)(upper_len >> 8),
                       (uint8_t)upper_len,
                       0,
                       0,
                       0,
                       proto};

    return masque_checksum_add(masque_checksum_add(0, pkt + AT_SRC, 32), tail, sizeof tail);
}

uint16_t masque_checksum_end(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}
