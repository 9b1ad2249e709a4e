/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/icmp6.h"

#include <string.h>

enum {
    TYPE_UNREACHABLE = 1,
    TYPE_TOO_BIG = 2,
    TYPE_TIME_EXCEEDED = 3,
    TYPE_ECHO_REQUEST = 128,
    TYPE_ECHO_REPLY = 129,
    TYPE_REDIRECT = 137,
    ICMP_HEADER = 8,
    QUOTE_AT = MASQUE_PACKET_HEADER + ICMP_HEADER,
    HOP_LIMIT = 64,
    MTU_MIN = 1280,
};

bool masque_icmp6_for(enum masque_verdict v, enum masque_icmp6 *ret)
{
    switch (v) {
    case MASQUE_SOURCE_SPOOF:
        *ret = MASQUE_ICMP6_SOURCE_POLICY;
        return true;
    case MASQUE_DST_NO_ROUTE:
        *ret = MASQUE_ICMP6_NO_ROUTE;
        return true;
    case MASQUE_DST_FORBIDDEN:
    case MASQUE_PROTO_FORBIDDEN:
        *ret = MASQUE_ICMP6_PROHIBITED;
        return true;
    case MASQUE_HOP_LIMIT:
        *ret = MASQUE_ICMP6_TIME_EXCEEDED;
        return true;
    case MASQUE_PASS:
    case MASQUE_BAD_SHORT:
    case MASQUE_BAD_VERSION:
    case MASQUE_BAD_LENGTH:
    case MASQUE_BAD_EXTENSIONS:
    case MASQUE_BAD_ROUTING:
    case MASQUE_SOURCE_SCOPE:
    case MASQUE_DST_SCOPE:
    case MASQUE_DST_LOCAL:
    case MASQUE_LINK_NOISE:
    case MASQUE_VERDICT_N:
        break;
    }
    return false;
}

static bool one_node(const uint8_t *addr)
{
    bool link_local = addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80;

    return link_local || !masque_address_bad(addr);
}

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* Fixed header and checksum around a message of `n` bytes that stands at dst + 40 already. */
static size_t finish(uint8_t *dst, size_t n, const uint8_t *from, const uint8_t *to)
{
    memset(dst, 0, 8);
    dst[0] = 0x60;
    put16(dst + 4, (uint32_t)n);
    dst[6] = MASQUE_PROTO_ICMP6;
    dst[7] = HOP_LIMIT;
    memcpy(dst + 8, from, 16);
    memcpy(dst + 24, to, 16);
    put16(dst + MASQUE_PACKET_HEADER + 2, 0);
    put16(dst + MASQUE_PACKET_HEADER + 2,
          masque_checksum_end(masque_checksum_add(
              masque_checksum_pseudo(dst, (uint32_t)n, MASQUE_PROTO_ICMP6), dst + MASQUE_PACKET_HEADER, n)));
    return MASQUE_PACKET_HEADER + n;
}

/* RFC 4443 section 2.4 (e). */
static bool may_answer(enum masque_icmp6 what, const uint8_t *pkt, const struct masque_packet *info)
{
    if (info->proto == MASQUE_PROTO_ICMP6) {
        /* A later fragment, or one cut before its type: it might be an error. */
        if (info->icmp_type < TYPE_ECHO_REQUEST || info->icmp_type == TYPE_REDIRECT)
            return false;
    }
    if (pkt[24] == 0xff && what != MASQUE_ICMP6_TOO_BIG)
        return false;
    return one_node(pkt + 8);
}

size_t masque_icmp6_error(uint8_t *dst, size_t cap, enum masque_icmp6 what, uint32_t mtu,
                          const struct base_ip6 *from, const uint8_t *pkt, size_t len,
                          const struct masque_packet *info)
{
    uint8_t type = TYPE_UNREACHABLE, code = 0;
    size_t room = cap < MASQUE_ICMP6_MAX ? cap : MASQUE_ICMP6_MAX;
    size_t quote;

    if (len < MASQUE_PACKET_HEADER || room < QUOTE_AT + MASQUE_PACKET_HEADER || !may_answer(what, pkt, info))
        return 0;
    switch (what) {
    case MASQUE_ICMP6_NO_ROUTE:
        break;
    case MASQUE_ICMP6_PROHIBITED:
        code = 1;
        break;
    case MASQUE_ICMP6_SOURCE_POLICY:
        code = 5;
        break;
    case MASQUE_ICMP6_TOO_BIG:
        type = TYPE_TOO_BIG;
        break;
    case MASQUE_ICMP6_TIME_EXCEEDED:
        type = TYPE_TIME_EXCEEDED;
        break;
    }
    quote = len < room - QUOTE_AT ? len : room - QUOTE_AT;
    memset(dst + MASQUE_PACKET_HEADER, 0, ICMP_HEADER);
    dst[MASQUE_PACKET_HEADER] = type;
    dst[MASQUE_PACKET_HEADER + 1] = code;
    if (what == MASQUE_ICMP6_TOO_BIG) {
        uint32_t v = mtu < MTU_MIN ? MTU_MIN : mtu;

        put16(dst + MASQUE_PACKET_HEADER + 4, v >> 16);
        put16(dst + MASQUE_PACKET_HEADER + 6, v & 0xffff);
    }
    memcpy(dst + QUOTE_AT, pkt, quote);
    return finish(dst, ICMP_HEADER + quote, from->b, pkt + 8);
}

size_t masque_icmp6_echo(uint8_t *dst, size_t cap, const struct base_ip6 *from, const uint8_t *pkt,
                         size_t len, const struct masque_packet *info)
{
    size_t n;
    uint32_t sum;

    if (info->icmp_type != TYPE_ECHO_REQUEST || info->fragment || !one_node(pkt + 8))
        return 0;
    n = len - info->proto_at;
    if (n < ICMP_HEADER || n + MASQUE_PACKET_HEADER > cap)
        return 0;
    sum = masque_checksum_pseudo(pkt, (uint32_t)n, MASQUE_PROTO_ICMP6);
    if (masque_checksum_end(masque_checksum_add(sum, pkt + info->proto_at, n)) != 0)
        return 0;
    memcpy(dst + MASQUE_PACKET_HEADER, pkt + info->proto_at, n);
    dst[MASQUE_PACKET_HEADER] = TYPE_ECHO_REPLY;
    return finish(dst, n, from->b, pkt + 8);
}

bool masque_icmp6_take(struct masque_icmp6_bucket *b, base_time now)
{
    const base_time each = BASE_SEC / MASQUE_ICMP6_RATE;
    base_time from = base_time_max(b->full_at, now);

    if (from - now > (MASQUE_ICMP6_BURST - 1) * each)
        return false;
    b->full_at = from + each;
    return true;
}
