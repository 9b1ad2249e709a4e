/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_packet.c - inner packets: what passes, and the ICMPv6 that answers the rest.
 *
 * Input: three bytes of options, then a packet; an option puts a good fixed header before it, so that the
 * chain of extension headers is fuzzed and not the version. A second walker of the chain (below) agrees with
 * the parser. What passes has the source, the destination, the protocol and the hop limit that the rules
 * want, by arithmetic of this file. Every answer is a packet that parses, with a right checksum, that quotes
 * what provoked it and is never about an error.
 */
#include "fuzz.h"

#include "masque/icmp6.h"
#include "masque/packet.h"

static const uint8_t mine[16] = {0xfd, 0x12, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 5},
                     other[16] = {0xfd, 0x12, 0, 0, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 5},
                     tunnel[16] = {0xfd, 0x12, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1},
                     host[16] = {0xfd, 0x20, [15] = 0x10}, away[16] = {0xfd, 0x30, [15] = 1},
                     all[16] = {0xff, 2, [15] = 1}, many[16] = {0xff, 0x0e, [15] = 1},
                     local[16] = {0xfe, 0x80, [15] = 9}, none[16], self[16] = {[15] = 1},
                     mapped[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
static const uint8_t *const addrs[16] = {mine, other, tunnel, host, away, all,  many, local,
                                         none, self,  mapped, mine, mine, host, host, tunnel};

static bool prefix_has(const uint8_t *p, unsigned len, const uint8_t *a)
{
    for (unsigned bit = 0; bit < len; bit++)
        if ((p[bit / 8] ^ a[bit / 8]) & (0x80 >> bit % 8))
            return false;
    return true;
}

/* The walk again: 0 = whole, 1 = malformed; routing: there was such a header. */
static int walk(const uint8_t *p, size_t n, uint8_t *proto, size_t *at, bool *later, bool *routing)
{
    unsigned seen = 0;
    bool frag = false;
    *later = *routing = false;
    *at = 40;
    *proto = p[6];
    for (;;) {
        bool ext = *proto == 0 || *proto == 43 || *proto == 44 || *proto == 51 || *proto == 60 ||
                   *proto == 135 || *proto == 139 || *proto == 140;
        if (!ext)
            return 0;
        if (seen++ == 8 || n - *at < 8)
            return 1;
        const uint8_t *h = p + *at;
        size_t size = *proto == 44 ? 8 : *proto == 51 ? (h[1] + 2u) * 4 : (h[1] + 1u) * 8;
        if (*proto == 44) {
            if (frag)
                return 1;
            frag = true;
            if ((h[2] << 8 | h[3]) >> 3) {
                *later = true;
                *proto = h[0];
                *at += 8;
                return 0;
            }
        }
        if (size < 8 || size > n - *at || *at + size > 40 + 512)
            return 1;
        if (*proto == 0) {
            if (*at != 40)
                return 1;
            size_t o = 2;
            while (o < size) {
                if (h[o] == 0) {
                    o++;
                } else if (h[o] == 0xc2 || o + 1 >= size || o + 2 + h[o + 1] > size) {
                    return 1;
                } else {
                    o += 2u + h[o + 1];
                }
            }
        }
        *routing = *routing || *proto == 43;
        *proto = h[0];
        *at += size;
    }
}

static uint16_t checksum(const uint8_t *p, size_t n, size_t at)
{
    uint64_t s = 58 + (n - at);
    for (size_t i = 8; i < 40; i++)
        s += i & 1 ? p[i] : (unsigned)p[i] << 8;
    for (size_t i = at; i < n; i++)
        s += (i - at) & 1 ? p[i] : (unsigned)p[i] << 8;
    while (s >> 16)
        s = (s & 0xffff) + (s >> 16);
    return (uint16_t)~s;
}

/* Every message of ours is a whole packet of its own. */
static void well_formed(const uint8_t *m, size_t n, const uint8_t *from, const uint8_t *to)
{
    struct masque_packet info;
    CHECK(masque_packet_parse(&info, m, n) == MASQUE_PASS, "our own packet does not parse");
    CHECK(info.proto == 58 && info.proto_at == 40, "it is no ICMPv6");
    CHECK(memcmp(m + 8, from, 16) == 0 && memcmp(m + 24, to, 16) == 0, "addresses");
    CHECK(checksum(m, n, 40) == 0, "checksum");
    CHECK(m[7] == 64, "hop limit %u", m[7]);
}

static void answers(const uint8_t *p, size_t n, const struct masque_packet *info, uint8_t options)
{
    struct base_ip6 from;
    size_t cap = options & 0x80 ? MASQUE_ICMP6_MAX : 60u + (options & 0x7f) * 10u;
    uint8_t *m = malloc(cap);
    memcpy(from.b, tunnel, 16);
    if (!m)
        abort();
    for (int what = MASQUE_ICMP6_NO_ROUTE; what <= MASQUE_ICMP6_TIME_EXCEEDED; what++) {
        size_t k = masque_icmp6_error(m, cap, (enum masque_icmp6)what, options * 10u, &from, p, n, info);
        if (k == 0)
            continue;
        CHECK(k <= cap && k <= 1280, "%zu", k);
        well_formed(m, k, tunnel, p + 8);
        size_t room = cap < 1280 ? cap : 1280, quote = k - 48;
        CHECK(quote == (n < room - 48 ? n : room - 48), "%zu of %zu bytes are quoted", quote, n);
        CHECK(memcmp(m + 48, p, quote) == 0, "the quote is another packet");
        CHECK(m[40] >= 1 && m[40] <= 3, "type %u", m[40]);
        CHECK(p[24] != 0xff || m[40] == 2, "about a multicast packet");
        CHECK(p[8] != 0xff && memcmp(p + 8, none, 16) != 0 && memcmp(p + 8, self, 16) != 0, "to nobody");
        if (info->proto == 58 && !info->later_fragment && info->proto_at < n)
            CHECK(p[info->proto_at] >= 128 && p[info->proto_at] != 137, "about an ICMPv6 error");
        CHECK(info->proto != 58 || !info->later_fragment, "about a part of who knows what");
        if (m[40] == 2) {
            uint32_t mtu = (uint32_t)m[44] << 24 | (uint32_t)m[45] << 16 | (uint32_t)m[46] << 8 | m[47];
            CHECK(mtu >= 1280 && mtu == (options * 10u < 1280 ? 1280 : options * 10u), "MTU %u", mtu);
        }
    }
    free(m);
    m = malloc(n);
    if (!m)
        abort();
    size_t k = masque_icmp6_echo(m, n, &from, p, n, info);
    if (k > 0) {
        CHECK(p[info->proto_at] == 128 && !info->fragment, "no echo request");
        CHECK(checksum(p, n, info->proto_at) == 0, "a request with a wrong checksum");
        well_formed(m, k, tunnel, p + 8);
        CHECK(m[40] == 129 && k - 40 == n - info->proto_at, "the reply");
        CHECK(memcmp(m + 44, p + info->proto_at + 4, k - 44) == 0, "other data");
    }
    free(m);
}

static void rules(const uint8_t *p, size_t n, uint8_t options, bool up)
{
    struct base_prefix dst[2] = {{.len = 64}, {.len = 128}};
    struct masque_rules r = {.prefix = {.len = 96}, .destinations = dst, .n_destinations = 1 + (options & 1)};
    struct masque_packet info;
    memcpy(dst[0].addr.b, host, 8);
    memcpy(dst[1].addr.b, away, 16);
    memcpy(r.prefix.addr.b, mine, 12);
    memcpy(r.tunnel_ip.b, tunnel, 16);
    if (options & 2) {
        r.pool.len = 64;
        memcpy(r.pool.addr.b, mine, 8);
    }
    r.ipproto = options & 4 ? 17 : options & 8 ? 0 : -1;
    enum masque_verdict v =
        up ? masque_packet_from_client(&info, &r, p, n) : masque_packet_to_client(&info, &r, p, n);
    CHECK((unsigned)v < MASQUE_VERDICT_N && masque_verdict_text(v)[0], "verdict %d", (int)v);
    if (v != MASQUE_PASS)
        return;
    const uint8_t *src = p + 8, *to = p + 24, *inside = up ? src : to, *outside = up ? to : src;
    CHECK(prefix_has(mine, 96, inside), "an address outside the /96");
    if (up)
        CHECK(prefix_has(host, 64, to) || (r.n_destinations == 2 && memcmp(to, away, 16) == 0),
              "no destination");
    CHECK(!prefix_has(mine, 96, outside), "to or from itself");
    CHECK(!(options & 2) || memcmp(outside, tunnel, 16) == 0 || !prefix_has(mine, 64, outside),
          "another connector");
    CHECK(outside[0] != 0xff && !(outside[0] == 0xfe && (outside[1] & 0xc0) == 0x80), "scope");
    CHECK(r.ipproto < 0 || info.proto == r.ipproto || info.proto == 58, "protocol %u", info.proto);
    CHECK(p[7] > (up ? 0 : 1), "hop limit %u", p[7]);
    if (info.icmp_type >= 0)
        CHECK(!(info.icmp_type >= 130 && info.icmp_type <= 137) && info.icmp_type != 143, "link noise");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    uint8_t options = fuzz_byte(&in), head = fuzz_byte(&in), ends = fuzz_byte(&in);
    bool build = head & 1;
    size_t n = in.left + (build ? 40 : 0);
    if (n == 0 || n > 65535)
        return 0;
    uint8_t *p = malloc(n); /* exactly: a read behind its end is seen */
    if (!p)
        abort();
    if (in.left > 0)
        memcpy(p + (build ? 40 : 0), in.p, in.left);
    if (build) {
        memset(p, 0, 40);
        p[0] = 0x60;
        p[4] = (uint8_t)(in.left >> 8);
        p[5] = (uint8_t)in.left;
        static const uint8_t next[16] = {0, 43, 44, 51, 60, 58, 17, 6, 59, 50, 135, 0, 60, 44, 58, 58};
        p[6] = next[head >> 1 & 15];
        p[7] = head & 0x40 ? 1 : head & 0x20 ? 0 : 64;
        memcpy(p + 8, addrs[ends & 15], 16);
        memcpy(p + 24, addrs[ends >> 4], 16);
        if (head & 0x80 && p[6] == 58 && in.left >= 8) { /* a right checksum, which no fuzzer guesses */
            p[42] = p[43] = 0;
            uint16_t s = checksum(p, n, 40);
            p[42] = (uint8_t)(s >> 8);
            p[43] = (uint8_t)s;
        }
    }
    struct masque_packet info;
    enum masque_verdict v = masque_packet_parse(&info, p, n);
    bool fixed = n >= 40 && p[0] >> 4 == 6 && (size_t)(p[4] << 8 | p[5]) + 40 == n;
    CHECK(fixed || v == MASQUE_BAD_SHORT || v == MASQUE_BAD_VERSION || v == MASQUE_BAD_LENGTH, "%d", (int)v);
    if (fixed) {
        uint8_t proto;
        size_t at;
        bool later, routing;
        int bad = walk(p, n, &proto, &at, &later, &routing);
        CHECK((v == MASQUE_BAD_EXTENSIONS) == bad, "the two walkers do not agree: %d, %d", (int)v, bad);
        CHECK(bad || (v == MASQUE_BAD_ROUTING) == routing, "routing header");
        CHECK(bad || (proto == info.proto && at == info.proto_at && later == info.later_fragment),
              "protocol %u at %zu, %u at %u", proto, at, info.proto, info.proto_at);
        CHECK(bad || info.proto_at <= n, "outside");
        if (!bad)
            answers(p, n, &info, options);
    }
    rules(p, n, options, true);
    rules(p, n, options, false);
    free(p);
    return 0;
}
