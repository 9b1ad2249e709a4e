/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/packet.h"

#include <criterion/criterion.h>

#include "base/err.h"
#include "base/mem.h"

/* ---- packets from a short notation: "src>dst" addresses, then the bytes after the fixed header in hexadecimal */
struct sample {
    const char *name, *src, *dst;
    uint8_t next, hop;
    const char *rest;
    enum masque_verdict want;
};

static void ip(uint8_t *at, const char *text)
{
    struct base_ip6 a;

    cr_assert_eq(base_ip6_parse(&a, base_str_of(text)), BASE_OK, "address %s", text);
    memcpy(at, a.b, 16);
}

static size_t build(uint8_t *p, size_t cap, const char *src, const char *dst, uint8_t next, uint8_t hop,
                    const char *rest)
{
    size_t n = strlen(rest) / 2;

    cr_assert_leq(40 + n, cap);
    memset(p, 0, 40);
    p[0] = 0x60;
    p[4] = (uint8_t)(n >> 8);
    p[5] = (uint8_t)n;
    p[6] = next;
    p[7] = hop;
    ip(p + 8, src);
    ip(p + 24, dst);
    cr_assert_eq(base_unhex(p + 40, n, base_str_of(rest)), BASE_OK, "%s", rest);
    return 40 + n;
}

static struct base_prefix prefix(const char *text)
{
    struct base_prefix p;

    cr_assert_eq(base_prefix_parse(&p, base_str_of(text)), BASE_OK, "prefix %s", text);
    return p;
}

#define ME "fd12:0:0:1:0:7::5"
#define OTHER "fd12:0:0:1:0:8::5"
#define TUNNEL "fd12:0:0:1::1"
#define HOST "fd20::10"
#define UDP8 "1111222200080000"
#define PAD "0104000000000000" /* as the start of an extension header: next, then options */

static struct base_prefix dests[2];
static struct masque_rules rules(void)
{
    struct masque_rules r = {.prefix = prefix("fd12::1:0:7:0:0/96"),
                             .pool = prefix("fd12:0:0:1::/64"),
                             .destinations = dests,
                             .n_destinations = 2,
                             .ipproto = -1};

    dests[0] = prefix("fd20::/16");
    dests[1] = prefix("fd12::/32"); /* covers the pool: the pool rule must win */
    ip(r.tunnel_ip.b, TUNNEL);
    return r;
}

/* ---- form */
static const struct sample forms[] = {
    {"udp", ME, HOST, 17, 64, UDP8, MASQUE_PASS},
    {"no payload at all", ME, HOST, 59, 64, "", MASQUE_PASS},
    {"unknown protocol", ME, HOST, 253, 64, "00", MASQUE_PASS},
    {"hop-by-hop then udp", ME, HOST, 0, 64, "1100010400000000" UDP8, MASQUE_PASS},
    {"hop-by-hop of pad1 only", ME, HOST, 0, 64, "1100000000000000" UDP8, MASQUE_PASS},
    {"hop-by-hop option runs over the header", ME, HOST, 0, 64, "1100010500000000" UDP8,
     MASQUE_BAD_EXTENSIONS},
    {"hop-by-hop option without its length", ME, HOST, 0, 64, "1100000000000001" UDP8, MASQUE_BAD_EXTENSIONS},
    {"jumbo option", ME, HOST, 0, 64, "1100c20400010000" UDP8, MASQUE_BAD_EXTENSIONS},
    {"hop-by-hop after destination options", ME, HOST, 60, 64,
     "0000010400000000"
     "1100010400000000" UDP8,
     MASQUE_BAD_EXTENSIONS},
    {"two hop-by-hop", ME, HOST, 0, 64,
     "0000010400000000"
     "1100010400000000" UDP8,
     MASQUE_BAD_EXTENSIONS},
    {"destination options twice", ME, HOST, 60, 64,
     "3c00010400000000"
     "1100010400000000" UDP8,
     MASQUE_PASS},
    {"extension header cut off", ME, HOST, 60, 64, "11000104", MASQUE_BAD_EXTENSIONS},
    {"extension header longer than the packet", ME, HOST, 60, 64, "1101010400000000", MASQUE_BAD_EXTENSIONS},
    {"extension header claims 2 KiB", ME, HOST, 60, 64, "11ff010400000000", MASQUE_BAD_EXTENSIONS},
    {"extension header named, nothing there", ME, HOST, 60, 64, "", MASQUE_BAD_EXTENSIONS},
    {"routing header 0", ME, HOST, 43, 64,
     "1102000100000000"
     "fd200000000000000000000000000099" UDP8,
     MASQUE_BAD_ROUTING},
    {"routing header 0, used up", ME, HOST, 43, 64, "1100000000000000" UDP8, MASQUE_BAD_ROUTING},
    {"segment routing", ME, HOST, 43, 64, "1100040000000000" UDP8, MASQUE_BAD_ROUTING},
    {"routing header behind destination options", ME, HOST, 60, 64,
     "2b00010400000000"
     "1100000100000000" UDP8,
     MASQUE_BAD_ROUTING},
    {"authentication header", ME, HOST, 51, 64, "110400000000000000000000000000000000000000000000" UDP8,
     MASQUE_PASS},
    {"authentication header of length 0 is 8 bytes", ME, HOST, 51, 64, "1100000000000000" UDP8, MASQUE_PASS},
    {"esp hides the rest", ME, HOST, 50, 64, "ffffffff", MASQUE_PASS},
    {"atomic fragment", ME, HOST, 44, 64, "1100000000000001" UDP8, MASQUE_PASS},
    {"first fragment", ME, HOST, 44, 64, "1100000100000001" UDP8, MASQUE_PASS},
    {"later fragment", ME, HOST, 44, 64, "1100000900000001" UDP8, MASQUE_PASS},
    {"fragment in a fragment", ME, HOST, 44, 64,
     "2c00000100000001"
     "1100000100000001" UDP8,
     MASQUE_BAD_EXTENSIONS},
    {"fragment header cut off", ME, HOST, 44, 64, "11000009", MASQUE_BAD_EXTENSIONS},
};

Test(masque_packet, form)
{
    uint8_t p[256];
    struct masque_packet info;

    for (size_t i = 0; i < BASE_LEN(forms); i++) {
        const struct sample *s = &forms[i];
        size_t n = build(p, sizeof p, s->src, s->dst, s->next, s->hop, s->rest);

        cr_expect_eq(masque_packet_parse(&info, p, n), s->want, "%s: %s", s->name,
                     masque_verdict_text(masque_packet_parse(&info, p, n)));
    }
}

Test(masque_packet, upper_header_is_found)
{
    static const struct {
        const char *name;
        uint8_t next;
        const char *rest;
        uint8_t proto;
        uint16_t at;
        bool frag, later;
        int icmp;
    } t[] = {
        {"udp", 17, UDP8, 17, 40, false, false, -1},
        {"echo", 58, "80001234", 58, 40, false, false, 128},
        {"icmpv6 without a byte", 58, "", 58, 40, false, false, -1},
        {"echo behind hop-by-hop", 0,
         "3a00010400000000"
         "80001234",
         58, 48, false, false, 128},
        {"echo behind authentication", 51,
         "3a01000000000000"
         "00000000"
         "80001234",
         58, 52, false, false, 128},
        {"first fragment of echo", 44,
         "3a00000100000001"
         "80001234",
         58, 48, true, false, 128},
        {"later fragment that looks like echo", 44,
         "3a00000900000001"
         "80001234",
         58, 48, true, true, -1},
        {"later fragment of options", 44,
         "3c00000900000001"
         "2b001234",
         60, 48, true, true, -1},
    };
    uint8_t p[256];
    struct masque_packet info;

    for (size_t i = 0; i < BASE_LEN(t); i++) {
        size_t n = build(p, sizeof p, ME, HOST, t[i].next, 64, t[i].rest);

        cr_expect_eq(masque_packet_parse(&info, p, n), MASQUE_PASS, "%s", t[i].name);
        cr_expect_eq(info.proto, t[i].proto, "%s: protocol %d", t[i].name, info.proto);
        cr_expect_eq(info.proto_at, t[i].at, "%s: at %d", t[i].name, info.proto_at);
        cr_expect_eq(info.fragment, t[i].frag, "%s", t[i].name);
        cr_expect_eq(info.later_fragment, t[i].later, "%s", t[i].name);
        cr_expect_eq(info.icmp_type, t[i].icmp, "%s: type %d", t[i].name, info.icmp_type);
    }
}

Test(masque_packet, sizes_and_versions)
{
    uint8_t p[256];
    struct masque_packet info;
    size_t n = build(p, sizeof p, ME, HOST, 17, 64, UDP8);

    for (size_t cut = 0; cut < n; cut++)
        cr_expect_eq(masque_packet_parse(&info, p, cut), cut < 40 ? MASQUE_BAD_SHORT : MASQUE_BAD_LENGTH,
                     "cut at %zu", cut);
    cr_expect_eq(masque_packet_parse(&info, p, n + 1), MASQUE_BAD_LENGTH, "one byte behind it");
    cr_expect_eq(masque_packet_parse(&info, NULL, 0), MASQUE_BAD_SHORT);
    for (unsigned v = 0; v < 16; v++) {
        p[0] = (uint8_t)(v << 4);
        cr_expect_eq(masque_packet_parse(&info, p, n), v == 6 ? MASQUE_PASS : MASQUE_BAD_VERSION,
                     "version %u", v);
    }
    /* Every payload length but the true one. */
    p[0] = 0x60;
    for (unsigned l = 0; l <= 0xffff; l++) {
        p[4] = (uint8_t)(l >> 8);
        p[5] = (uint8_t)l;
        cr_assert_eq(masque_packet_parse(&info, p, n), l == n - 40 ? MASQUE_PASS : MASQUE_BAD_LENGTH,
                     "length %u", l);
    }
}

Test(masque_packet, chain_is_bounded)
{
    uint8_t p[1024];
    struct masque_packet info;
    char rest[1200];

    for (unsigned n = 0; n < 20; n++) {
        rest[0] = '\0';
        for (unsigned i = 0; i < n; i++)
            (void)base_fmt(rest + 16 * i, sizeof rest - 16 * i,
                           i + 1 < n ? "3c00010400000000" : "1100010400000000");
        (void)base_fmt(rest + 16 * n, sizeof rest - 16 * n, UDP8);
        size_t len = build(p, sizeof p, ME, HOST, n ? 60 : 17, 64, rest);
        cr_expect_eq(masque_packet_parse(&info, p, len),
                     n <= MASQUE_PACKET_EXT_MAX ? MASQUE_PASS : MASQUE_BAD_EXTENSIONS, "%u headers", n);
    }
    /* One header of 8 * (l + 1) bytes. */
    for (unsigned l = 0; l < 100; l++) {
        size_t size = 8 * ((size_t)l + 1);

        memset(p + 40, 0, sizeof p - 40);
        p[4] = (uint8_t)((size + 8) >> 8);
        p[5] = (uint8_t)(size + 8);
        p[6] = 60;
        p[40] = 17;
        p[41] = (uint8_t)l;
        cr_expect_eq(masque_packet_parse(&info, p, 40 + size + 8),
                     size <= MASQUE_PACKET_EXT_BYTES ? MASQUE_PASS : MASQUE_BAD_EXTENSIONS, "%zu bytes",
                     size);
    }
}

/* All pairs of a next header and a first length byte, in every size from nothing to two headers, each in
 * memory of exactly that size: whatever is read beyond it stops a run under SAN=address. */
Test(masque_packet, every_small_packet_stays_in_bounds)
{
    struct masque_rules r = rules();
    struct masque_packet info;
    uint64_t passed = 0, refused = 0;

    for (size_t n = 0; n <= 20; n++) {
        uint8_t *p = base_calloc(1, 40 + n);

        cr_assert(p);
        (void)build(p, 40 + n, ME, HOST, 0, 64, "");
        p[5] = (uint8_t)n;
        for (unsigned next = 0; next < 256; next++) {
            for (unsigned second = 0; second < (n ? 256u : 1u); second++) {
                p[6] = (uint8_t)next;
                for (unsigned l = 0; l < 4; l++) {
                    if (n > 0)
                        p[40] = (uint8_t)second;
                    if (n > 1)
                        p[41] = (uint8_t)l;
                    if (masque_packet_from_client(&info, &r, p, 40 + n) == MASQUE_PASS)
                        passed++;
                    else
                        refused++;
                    cr_assert_leq(info.proto_at, 40 + n);
                    (void)masque_packet_to_client(&info, &r, p, 40 + n);
                    cr_assert_leq(info.proto_at, 40 + n);
                }
            }
        }
        base_free(p);
    }
    cr_expect_gt(passed, 0);
    cr_expect_gt(refused, 0);
}

/* ---- addresses */
static const struct sample from_client[] = {
    {"to the VPC host", ME, HOST, 17, 64, UDP8, MASQUE_PASS},
    {"first address of the prefix", "fd12:0:0:1:0:7::", HOST, 17, 64, UDP8, MASQUE_PASS},
    {"last address of the prefix", "fd12::1:0:7:ffff:ffff", HOST, 17, 64, UDP8, MASQUE_PASS},
    {"one below", "fd12::1:0:6:ffff:ffff", HOST, 17, 64, UDP8, MASQUE_SOURCE_SPOOF},
    {"one above", "fd12:0:0:1:0:8::", HOST, 17, 64, UDP8, MASQUE_SOURCE_SPOOF},
    {"source of another connector", OTHER, HOST, 17, 64, UDP8, MASQUE_SOURCE_SPOOF},
    {"source is the host", HOST, HOST, 17, 64, UDP8, MASQUE_SOURCE_SPOOF},
    {"source is the tunnel", TUNNEL, HOST, 17, 64, UDP8, MASQUE_SOURCE_SPOOF},
    {"source unspecified", "::", HOST, 17, 64, UDP8, MASQUE_SOURCE_SCOPE},
    {"source loopback", "::1", HOST, 17, 64, UDP8, MASQUE_SOURCE_SCOPE},
    {"source link-local", "fe80::1", HOST, 17, 64, UDP8, MASQUE_SOURCE_SCOPE},
    {"source at the end of link-local", "febf:ffff::1", HOST, 17, 64, UDP8, MASQUE_SOURCE_SCOPE},
    {"source multicast", "ff0e::1", HOST, 17, 64, UDP8, MASQUE_SOURCE_SCOPE},
    {"source IPv4-mapped", "::ffff:1.2.3.4", HOST, 17, 64, UDP8, MASQUE_SOURCE_SCOPE},
    {"spoofed with a routing header", OTHER, HOST, 43, 64, "1100000000000000" UDP8, MASQUE_SOURCE_SPOOF},
    {"routing header", ME, HOST, 43, 64, "1100000000000000" UDP8, MASQUE_BAD_ROUTING},
    {"outside the destinations", ME, "fd30::1", 17, 64, UDP8, MASQUE_DST_NO_ROUTE},
    {"in the second destination", ME, "fd12:0:5::1", 17, 64, UDP8, MASQUE_PASS},
    {"another connector", ME, OTHER, 17, 64, UDP8, MASQUE_DST_FORBIDDEN},
    {"itself through the tunnel", ME, ME, 17, 64, UDP8, MASQUE_DST_FORBIDDEN},
    {"the tunnel's own address", ME, TUNNEL, 17, 64, UDP8, MASQUE_DST_LOCAL},
    {"neighbour of the tunnel's address", ME, "fd12:0:0:1::2", 17, 64, UDP8, MASQUE_DST_FORBIDDEN},
    {"destination unspecified", ME, "::", 17, 64, UDP8, MASQUE_DST_SCOPE},
    {"destination loopback", ME, "::1", 17, 64, UDP8, MASQUE_DST_SCOPE},
    {"destination link-local", ME, "fe80::1", 17, 64, UDP8, MASQUE_DST_SCOPE},
    {"destination IPv4-mapped", ME, "::ffff:10.0.0.1", 17, 64, UDP8, MASQUE_DST_SCOPE},
    {"multicast beyond the link", ME, "ff0e::1", 17, 64, UDP8, MASQUE_DST_SCOPE},
    {"all routers", ME, "ff02::2", 17, 64, UDP8, MASQUE_DST_SCOPE},
    {"all nodes", ME, "ff02::1", 58, 1, "80001234", MASQUE_DST_LOCAL},
    {"all nodes from a link-local source", "fe80::9", "ff02::1", 58, 1, "80001234", MASQUE_DST_LOCAL},
    {"all nodes from a stranger", OTHER, "ff02::1", 58, 1, "80001234", MASQUE_SOURCE_SCOPE},
    {"all nodes from nobody", "::", "ff02::1", 58, 1, "80001234", MASQUE_SOURCE_SCOPE},
    {"router solicitation", "fe80::9", "ff02::2", 58, 255, "85000000", MASQUE_LINK_NOISE},
    {"listener report with hop-by-hop", "::", "ff02::16", 0, 1,
     "3a00050200000100"
     "8f000000",
     MASQUE_LINK_NOISE},
    {"neighbour solicitation to the host", ME, HOST, 58, 255, "87000000", MASQUE_LINK_NOISE},
    {"redirect to the host", ME, HOST, 58, 255, "89000000", MASQUE_LINK_NOISE},
    {"echo to the host", ME, HOST, 58, 64, "80001234", MASQUE_PASS},
    {"hop limit 0", ME, HOST, 17, 0, UDP8, MASQUE_HOP_LIMIT},
    {"hop limit 1 is the kernel's to judge", ME, HOST, 17, 1, UDP8, MASQUE_PASS},
    {"hop limit 255", ME, HOST, 17, 255, UDP8, MASQUE_PASS},
};

Test(masque_packet, from_client)
{
    struct masque_rules r = rules();
    struct masque_packet info;
    uint8_t p[256];

    for (size_t i = 0; i < BASE_LEN(from_client); i++) {
        const struct sample *s = &from_client[i];
        size_t n = build(p, sizeof p, s->src, s->dst, s->next, s->hop, s->rest);

        cr_expect_eq(masque_packet_from_client(&info, &r, p, n), s->want, "%s: %s", s->name,
                     masque_verdict_text(masque_packet_from_client(&info, &r, p, n)));
    }
}

Test(masque_packet, from_client_without_a_known_pool)
{
    struct masque_rules r = rules();
    struct masque_packet info;
    uint8_t p[256];

    r.pool.len = 0;
    size_t n = build(p, sizeof p, ME, "fd12::1:0:0:0:2", 17, 64, UDP8);
    cr_expect_eq(masque_packet_from_client(&info, &r, p, n), MASQUE_DST_FORBIDDEN, "index 0 is nobody's");
    n = build(p, sizeof p, ME, ME, 17, 64, UDP8);
    cr_expect_eq(masque_packet_from_client(&info, &r, p, n), MASQUE_DST_FORBIDDEN);
    n = build(p, sizeof p, ME, TUNNEL, 17, 64, UDP8);
    cr_expect_eq(masque_packet_from_client(&info, &r, p, n), MASQUE_DST_LOCAL);
    n = build(p, sizeof p, ME, HOST, 17, 64, UDP8);
    cr_expect_eq(masque_packet_from_client(&info, &r, p, n), MASQUE_PASS);
}

Test(masque_packet, no_destinations_means_nothing)
{
    struct masque_rules r = rules();
    struct masque_packet info;
    uint8_t p[256];
    size_t n = build(p, sizeof p, ME, HOST, 17, 64, UDP8);

    r.n_destinations = 0;
    cr_expect_eq(masque_packet_from_client(&info, &r, p, n), MASQUE_DST_NO_ROUTE);
}

static const struct sample to_client[] = {
    {"from the VPC host", HOST, ME, 17, 64, UDP8, MASQUE_PASS},
    {"from outside the destinations (answers, ICMP of routers)", "fd99::1", ME, 17, 64, UDP8, MASQUE_PASS},
    {"from the tunnel's own address", TUNNEL, ME, 58, 64, "01000000", MASQUE_PASS},
    {"from another connector", OTHER, ME, 17, 64, UDP8, MASQUE_SOURCE_SPOOF},
    {"from itself", ME, ME, 17, 64, UDP8, MASQUE_SOURCE_SPOOF},
    {"from link-local", "fe80::1", ME, 17, 64, UDP8, MASQUE_SOURCE_SCOPE},
    {"from nobody", "::", ME, 17, 64, UDP8, MASQUE_SOURCE_SCOPE},
    {"to another connector", HOST, OTHER, 17, 64, UDP8, MASQUE_DST_NO_ROUTE},
    {"to multicast", HOST, "ff02::1", 17, 64, UDP8, MASQUE_DST_SCOPE},
    {"router solicitation of the kernel", "fe80::1", "ff02::2", 58, 255, "85000000", MASQUE_LINK_NOISE},
    {"routing header", HOST, ME, 43, 64, "1100000000000000" UDP8, MASQUE_BAD_ROUTING},
    {"hop limit 2", HOST, ME, 17, 2, UDP8, MASQUE_PASS},
    {"hop limit 1", HOST, ME, 17, 1, UDP8, MASQUE_HOP_LIMIT},
    {"hop limit 0", HOST, ME, 17, 0, UDP8, MASQUE_HOP_LIMIT},
};

Test(masque_packet, to_client)
{
    struct masque_rules r = rules();
    struct masque_packet info;
    uint8_t p[256];

    for (size_t i = 0; i < BASE_LEN(to_client); i++) {
        const struct sample *s = &to_client[i];
        size_t n = build(p, sizeof p, s->src, s->dst, s->next, s->hop, s->rest);

        cr_expect_eq(masque_packet_to_client(&info, &r, p, n), s->want, "%s: %s", s->name,
                     masque_verdict_text(masque_packet_to_client(&info, &r, p, n)));
    }
}

/* connect-ip-go issues 13 and 22: the protocol behind extension headers counts, ICMPv6 is never scoped away. */
Test(masque_packet, protocol_scope)
{
    static const struct {
        const char *name;
        int scope;
        uint8_t next;
        const char *rest;
        enum masque_verdict want;
    } t[] = {
        {"udp in udp", 17, 17, UDP8, MASQUE_PASS},
        {"udp in tcp", 6, 17, UDP8, MASQUE_PROTO_FORBIDDEN},
        {"hop-by-hop udp in udp", 17, 0, "1100010400000000" UDP8, MASQUE_PASS},
        {"hop-by-hop tcp in udp", 17, 0, "0600010400000000" UDP8, MASQUE_PROTO_FORBIDDEN},
        {"hop-by-hop header in scope 0", 0, 0, "1100010400000000" UDP8, MASQUE_PROTO_FORBIDDEN},
        {"echo in tcp", 6, 58, "80001234", MASQUE_PASS},
        {"too big in tcp", 6, 58, "02001234", MASQUE_PASS},
        {"later fragment of udp in udp", 17, 44, "1100000900000001" UDP8, MASQUE_PASS},
        {"later fragment of tcp in udp", 17, 44, "0600000900000001" UDP8, MASQUE_PROTO_FORBIDDEN},
        {"no next header in udp", 17, 59, "", MASQUE_PROTO_FORBIDDEN},
    };
    struct masque_rules r = rules();
    struct masque_packet info;
    uint8_t p[256];

    for (size_t i = 0; i < BASE_LEN(t); i++) {
        r.ipproto = t[i].scope;
        size_t n = build(p, sizeof p, ME, HOST, t[i].next, 64, t[i].rest);
        cr_expect_eq(masque_packet_from_client(&info, &r, p, n), t[i].want, "%s", t[i].name);
        n = build(p, sizeof p, HOST, ME, t[i].next, 64, t[i].rest);
        cr_expect_eq(masque_packet_to_client(&info, &r, p, n), t[i].want, "%s, back", t[i].name);
    }
}

Test(masque_packet, hop_limit_counts_down_once_and_stays_at_zero)
{
    uint8_t p[64], q[64];
    size_t n = build(p, sizeof p, HOST, ME, 17, 2, UDP8);

    memcpy(q, p, n);
    masque_packet_hop(p);
    cr_expect_eq(p[7], 1);
    q[7] = 1;
    cr_expect_arr_eq(p, q, n, "another byte changed");
    masque_packet_hop(p);
    masque_packet_hop(p);
    cr_expect_eq(p[7], 0);
}

Test(masque_packet, checksum)
{
    /* RFC 1071 section 3: 0001 f203 f4f5 f6f7 sums to ddf2 with carries folded. */
    static const uint8_t rfc[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    uint8_t big[65536];

    cr_expect_eq(masque_checksum_end(masque_checksum_add(0, rfc, sizeof rfc)), (uint16_t)~0xddf2);
    cr_expect_eq(masque_checksum_end(masque_checksum_add(masque_checksum_add(0, rfc, 4), rfc + 4, 4)),
                 (uint16_t)~0xddf2);
    cr_expect_eq(masque_checksum_end(masque_checksum_add(0, rfc, 3)), (uint16_t) ~(0x0001 + 0xf200));
    cr_expect_eq(masque_checksum_end(0), 0xffff);
    memset(big, 0xff, sizeof big);
    cr_expect_eq(masque_checksum_end(masque_checksum_add(0xffff, big, sizeof big)), 0);
}

Test(masque_packet, every_verdict_has_a_text)
{
    for (int i = 0; i < MASQUE_VERDICT_N; i++)
        cr_expect(masque_verdict_text((enum masque_verdict)i), "%d", i);
    cr_expect_str_eq(masque_verdict_text((enum masque_verdict)99), "unknown verdict");
}
