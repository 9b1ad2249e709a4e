/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/icmp6.h"

#include <criterion/criterion.h>

#include "base/err.h"
#include "base/mem.h"

static const struct base_ip6 tunnel = {{0xfd, 0x12, 0, 0, 0, 0, 0, 1, [15] = 1}};

struct pkt {
    uint8_t b[65575];
    size_t len;
    struct masque_packet info;
};
static struct pkt pkt;

static void addr(uint8_t *at, const char *text)
{
    struct base_ip6 a;

    cr_assert_eq(base_ip6_parse(&a, base_str_of(text)), BASE_OK, "%s", text);
    memcpy(at, a.b, 16);
}

/* A packet of `payload` bytes of a pattern, whose first bytes are `start`. */
static void make(const char *src, const char *dst, uint8_t next, size_t payload, const char *start)
{
    size_t n = strlen(start) / 2;

    pkt.len = 40 + payload;
    cr_assert(pkt.len <= sizeof pkt.b && n <= payload);
    memset(pkt.b, 0, 40);
    pkt.b[0] = 0x60;
    pkt.b[4] = (uint8_t)(payload >> 8);
    pkt.b[5] = (uint8_t)payload;
    pkt.b[6] = next;
    pkt.b[7] = 9;
    addr(pkt.b + 8, src);
    addr(pkt.b + 24, dst);
    for (size_t i = 0; i < payload; i++)
        pkt.b[40 + i] = (uint8_t)(i * 7 + 1);
    cr_assert_eq(base_unhex(pkt.b + 40, n, base_str_of(start)), BASE_OK);
    (void)masque_packet_parse(&pkt.info, pkt.b, pkt.len);
}

/* Whole, and its checksum right. */
static void check_message(const uint8_t *m, size_t n)
{
    cr_assert_geq(n, 48);
    cr_expect_eq(m[0], 0x60);
    cr_expect_eq((size_t)(m[4] << 8 | m[5]) + 40, n);
    cr_expect_eq(m[6], 58);
    cr_expect_eq(m[7], 64);
    cr_expect_arr_eq(m + 8, tunnel.b, 16);
    cr_expect_eq(masque_checksum_end(
                     masque_checksum_add(masque_checksum_pseudo(m, (uint32_t)(n - 40), 58), m + 40, n - 40)),
                 0, "checksum");
}

static const struct {
    const char *name;
    enum masque_icmp6 what;
    uint32_t mtu;
    uint8_t type, code;
    uint32_t word;
} errors[] = {
    {"no route", MASQUE_ICMP6_NO_ROUTE, 0, 1, 0, 0},
    {"prohibited", MASQUE_ICMP6_PROHIBITED, 0, 1, 1, 0},
    {"source policy", MASQUE_ICMP6_SOURCE_POLICY, 0, 1, 5, 0},
    {"too big", MASQUE_ICMP6_TOO_BIG, 1397, 2, 0, 1397},
    {"too big with a value over 16 bits", MASQUE_ICMP6_TOO_BIG, 70000, 2, 0, 70000},
    {"too big never below 1280", MASQUE_ICMP6_TOO_BIG, 600, 2, 0, 1280},
    {"time exceeded", MASQUE_ICMP6_TIME_EXCEEDED, 0, 3, 0, 0},
    {"no mtu in others", MASQUE_ICMP6_NO_ROUTE, 1500, 1, 0, 0},
};

Test(masque_icmp6, errors)
{
    uint8_t m[2000];

    make("fd12:0:0:1:0:7::5", "fd20::10", 17, 100, "1111222200640000");
    for (size_t i = 0; i < BASE_LEN(errors); i++) {
        size_t n = masque_icmp6_error(m, sizeof m, errors[i].what, errors[i].mtu, &tunnel, pkt.b, pkt.len,
                                      &pkt.info);

        cr_assert_eq(n, 48 + pkt.len, "%s: %zu", errors[i].name, n);
        check_message(m, n);
        cr_expect_eq(m[40], errors[i].type, "%s", errors[i].name);
        cr_expect_eq(m[41], errors[i].code, "%s", errors[i].name);
        cr_expect_eq((uint32_t)m[44] << 24 | (uint32_t)m[45] << 16 | (uint32_t)m[46] << 8 | m[47],
                     errors[i].word, "%s", errors[i].name);
        cr_expect_arr_eq(m + 24, pkt.b + 8, 16, "%s: goes to the source", errors[i].name);
        cr_expect_arr_eq(m + 48, pkt.b, pkt.len, "%s: quotes", errors[i].name);
    }
}

Test(masque_icmp6, quotes_as_much_as_fits_1280)
{
    static const size_t payload[] = {0, 1, 1191, 1192, 1193, 1460, 8960, 65535};
    static const size_t caps[] = {0, 40, 87, 88, 89, 1279, 1280, 1281, 4096};

    for (size_t i = 0; i < BASE_LEN(payload); i++) {
        make("fd12:0:0:1:0:7::5", "fd20::10", 59, payload[i], "");
        for (size_t c = 0; c < BASE_LEN(caps); c++) {
            size_t room = caps[c] < 1280 ? caps[c] : 1280;
            size_t want = room < 88 ? 0 : pkt.len + 48 < room ? pkt.len + 48 : room;
            uint8_t *m = base_calloc(1, caps[c]);
            size_t n =
                masque_icmp6_error(m, caps[c], MASQUE_ICMP6_NO_ROUTE, 0, &tunnel, pkt.b, pkt.len, &pkt.info);

            cr_expect_eq(n, want, "payload %zu in %zu: %zu", payload[i], caps[c], n);
            if (n)
                check_message(m, n);
            base_free(m);
        }
    }
}

Test(masque_icmp6, never_about_these)
{
    static const struct {
        const char *name, *src, *dst;
        uint8_t next;
        const char *start;
        bool plain, too_big; /* answered? */
    } t[] = {
        {"udp", "fd12::5", "fd20::10", 17, "11112222", true, true},
        {"echo request", "fd12::5", "fd20::10", 58, "80000000", true, true},
        {"echo reply", "fd12::5", "fd20::10", 58, "81000000", true, true},
        {"unreachable", "fd12::5", "fd20::10", 58, "01000000", false, false},
        {"too big", "fd12::5", "fd20::10", 58, "02000000", false, false},
        {"the last error type", "fd12::5", "fd20::10", 58, "7f000000", false, false},
        {"type 0", "fd12::5", "fd20::10", 58, "00000000", false, false},
        {"redirect", "fd12::5", "fd20::10", 58, "89000000", false, false},
        {"error behind destination options", "fd12::5", "fd20::10", 60, "3a0001040000000001000000", false,
         false},
        {"first fragment of an error", "fd12::5", "fd20::10", 44, "3a0000010000000101000000", false, false},
        {"first fragment of an echo", "fd12::5", "fd20::10", 44, "3a0000010000000180000000", true, true},
        {"later fragment of icmpv6", "fd12::5", "fd20::10", 44, "3a0000090000000180000000", false, false},
        {"later fragment of udp", "fd12::5", "fd20::10", 44, "110000090000000180000000", true, true},
        {"to multicast", "fd12::5", "ff0e::1", 17, "11112222", false, true},
        {"from nobody", "::", "fd20::10", 17, "11112222", false, false},
        {"from loopback", "::1", "fd20::10", 17, "11112222", false, false},
        {"from multicast", "ff02::1", "fd20::10", 17, "11112222", false, false},
        {"from an IPv4-mapped address", "::ffff:1.2.3.4", "fd20::10", 17, "11112222", false, false},
        {"from link-local", "fe80::1", "fd20::10", 17, "11112222", true, true},
    };
    uint8_t m[2000];

    for (size_t i = 0; i < BASE_LEN(t); i++) {
        make(t[i].src, t[i].dst, t[i].next, 40, t[i].start);
        for (int w = MASQUE_ICMP6_NO_ROUTE; w <= MASQUE_ICMP6_TIME_EXCEEDED; w++) {
            bool want = w == MASQUE_ICMP6_TOO_BIG ? t[i].too_big : t[i].plain;
            size_t n = masque_icmp6_error(m, sizeof m, (enum masque_icmp6)w, 1400, &tunnel, pkt.b, pkt.len,
                                          &pkt.info);

            cr_expect_eq(n != 0, want, "%s, error %d", t[i].name, w);
        }
    }
    make("fd12::5", "fd20::10", 58, 0, "");
    cr_expect_eq(
        masque_icmp6_error(m, sizeof m, MASQUE_ICMP6_NO_ROUTE, 0, &tunnel, pkt.b, pkt.len, &pkt.info), 0,
        "icmpv6 without a type");
    cr_expect_eq(masque_icmp6_error(m, sizeof m, MASQUE_ICMP6_NO_ROUTE, 0, &tunnel, pkt.b, 39, &pkt.info), 0,
                 "39 bytes");
}

/* Each verdict has its answer, or none. */
Test(masque_icmp6, verdicts)
{
    for (int v = 0; v < MASQUE_VERDICT_N; v++) {
        enum masque_icmp6 what = 0;
        bool any = masque_icmp6_for((enum masque_verdict)v, &what);
        int want = v == MASQUE_SOURCE_SPOOF                                   ? MASQUE_ICMP6_SOURCE_POLICY
                   : v == MASQUE_DST_NO_ROUTE                                 ? MASQUE_ICMP6_NO_ROUTE
                   : v == MASQUE_DST_FORBIDDEN || v == MASQUE_PROTO_FORBIDDEN ? MASQUE_ICMP6_PROHIBITED
                   : v == MASQUE_HOP_LIMIT                                    ? MASQUE_ICMP6_TIME_EXCEEDED
                                                                              : 0;

        cr_expect_eq(any, want != 0, "%s", masque_verdict_text((enum masque_verdict)v));
        cr_expect_eq((int)what, want, "%s", masque_verdict_text((enum masque_verdict)v));
    }
}

static void seal(void)
{
    size_t at = pkt.info.proto_at, n = pkt.len - at;

    pkt.b[at + 2] = pkt.b[at + 3] = 0;
    uint16_t c = masque_checksum_end(
        masque_checksum_add(masque_checksum_pseudo(pkt.b, (uint32_t)n, 58), pkt.b + at, n));
    pkt.b[at + 2] = (uint8_t)(c >> 8);
    pkt.b[at + 3] = (uint8_t)c;
}

Test(masque_icmp6, echo)
{
    static const size_t sizes[] = {8, 9, 64, 1240, 1400};
    uint8_t m[1600];

    for (size_t i = 0; i < BASE_LEN(sizes); i++) {
        make("fd12:0:0:1:0:7::5", "ff02::1", 58, sizes[i], "8000");
        seal();
        size_t n = masque_icmp6_echo(m, sizeof m, &tunnel, pkt.b, pkt.len, &pkt.info);
        cr_assert_eq(n, 40 + sizes[i]);
        check_message(m, n);
        cr_expect_eq(m[40], 129);
        cr_expect_arr_eq(m + 24, pkt.b + 8, 16);
        cr_expect_arr_eq(m + 44, pkt.b + 44, sizes[i] - 4, "identifier, number and data come back");
        cr_expect_eq(masque_icmp6_echo(m, n - 1, &tunnel, pkt.b, pkt.len, &pkt.info), 0, "does not fit");
    }
    /* Behind destination options, whose bytes do not come back. */
    make("fd12:0:0:1:0:7::5", "fd12:0:0:1::1", 60, 24, "3a000104000000008000");
    seal();
    cr_assert_eq(masque_icmp6_echo(m, sizeof m, &tunnel, pkt.b, pkt.len, &pkt.info), 40 + 16);
    check_message(m, 56);
}

Test(masque_icmp6, no_echo_for)
{
    uint8_t m[1600];

    make("fd12::5", "fd20::10", 58, 16, "8000");
    seal();
    cr_assert_neq(masque_icmp6_echo(m, sizeof m, &tunnel, pkt.b, pkt.len, &pkt.info), 0);
    pkt.b[50] ^= 1;
    cr_expect_eq(masque_icmp6_echo(m, sizeof m, &tunnel, pkt.b, pkt.len, &pkt.info), 0, "wrong checksum");
    static const char *const bad[] = {"8100", "0100", "8700"};
    for (size_t i = 0; i < BASE_LEN(bad); i++) {
        make("fd12::5", "fd20::10", 58, 16, bad[i]);
        seal();
        cr_expect_eq(masque_icmp6_echo(m, sizeof m, &tunnel, pkt.b, pkt.len, &pkt.info), 0, "type %s",
                     bad[i]);
    }
    make("fd12::5", "fd20::10", 58, 7, "8000");
    seal();
    cr_expect_eq(masque_icmp6_echo(m, sizeof m, &tunnel, pkt.b, pkt.len, &pkt.info), 0, "seven bytes");
    make("fd12::5", "fd20::10", 44, 24, "3a000001000000018000");
    seal();
    cr_expect_eq(masque_icmp6_echo(m, sizeof m, &tunnel, pkt.b, pkt.len, &pkt.info), 0, "fragment");
    make("::", "ff02::1", 58, 16, "8000");
    seal();
    cr_expect_eq(masque_icmp6_echo(m, sizeof m, &tunnel, pkt.b, pkt.len, &pkt.info), 0, "from nobody");
    make("fd12::5", "fd20::10", 17, 16, "8000");
    cr_expect_eq(masque_icmp6_echo(m, sizeof m, &tunnel, pkt.b, pkt.len, &pkt.info), 0, "udp");
}

/* Against the definition: at most 20 + 10 t in every window that starts full, and a full bucket after 2 s of
 * silence. */
Test(masque_icmp6, bucket)
{
    struct masque_icmp6_bucket b = {0};
    base_time now = 5 * BASE_SEC;
    unsigned n = 0;

    while (masque_icmp6_take(&b, now))
        cr_assert_lt(n++, 100);
    cr_expect_eq(n, MASQUE_ICMP6_BURST);
    cr_expect_not(masque_icmp6_take(&b, now + 100 * BASE_MS - 1));
    cr_expect(masque_icmp6_take(&b, now + 100 * BASE_MS));
    cr_expect_not(masque_icmp6_take(&b, now + 100 * BASE_MS));
    n = 0;
    for (base_time t = now + 200 * BASE_MS; t < now + 10200 * BASE_MS; t += BASE_MS)
        n += masque_icmp6_take(&b, t);
    cr_expect_eq(n, 100, "%u in 10 s", n);
    now += 100 * BASE_SEC;
    for (n = 0; masque_icmp6_take(&b, now);)
        cr_assert_lt(n++, 100);
    cr_expect_eq(n, MASQUE_ICMP6_BURST, "full again, and not fuller");
}
