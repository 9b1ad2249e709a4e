/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/capsule.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "masque/varint.h"

/* Feeds `n` bytes in pieces of `step`; notes the capsules that come out. */
struct seen {
    uint64_t type[16];
    size_t len[16], n;
    uint8_t first[16][32];
    int end; /* last result */
    struct base_err err;
};

static void feed(struct masque_capsule_parser *p, const uint8_t *data, size_t n, size_t step, struct seen *s)
{
    for (size_t at = 0; at < n; at += step) {
        const uint8_t *d = data + at;
        size_t left = n - at < step ? n - at : step;
        struct masque_capsule c;
        while ((s->end = masque_capsule_feed(p, &d, &left, &c, &s->err)) == 1) {
            cr_assert(s->n < 16);
            s->type[s->n] = c.type;
            s->len[s->n] = c.len;
            memcpy(s->first[s->n], c.value, c.len < 32 ? c.len : 32);
            s->n++;
        }
        if (s->end < 0)
            return;
        cr_assert_eq(left, 0, "not everything was taken");
    }
}

/* Bugs 1 and 2 of public reports: an unknown capsule must be skipped, alone or glued to others, in any
 * pieces. */
static const uint8_t grease_then_request[] = {
    0x41, 0x88, 0x03, 0x01, 0x02, 0x03, /* unknown type 392, 3 bytes */
    0x02, 0x13, 0x01, 0x06, 0,    0,    0, 0, 0, 0,    0,
    0,    0,    0,    0,    0,    0,    0, 0, 0, 0x60, /* ADDRESS_REQUEST ::/96 */
    0x00, 0x03, 0x00, 0x60, 0x61,                      /* DATAGRAM */
};

Test(masque_capsule, unknown_ones_are_skipped_in_any_pieces)
{
    for (size_t step = 1; step <= sizeof grease_then_request; step++) {
        struct masque_capsule_parser p = {0};
        struct seen s = {0};
        feed(&p, grease_then_request, sizeof grease_then_request, step, &s);
        cr_assert_eq(s.n, 2, "step %zu: %zu capsules", step, s.n);
        cr_assert_eq(s.type[0], MASQUE_CAPSULE_ADDRESS_REQUEST);
        cr_assert_eq(s.len[0], 19);
        cr_assert_eq(s.type[1], MASQUE_CAPSULE_DATAGRAM);
        cr_assert_eq(s.len[1], 3);
        cr_assert(masque_capsule_at_boundary(&p));
    }
}

Test(masque_capsule, long_varints_are_accepted)
{
    static const uint8_t in[] = {0xc0, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0}; /* empty ADDRESS_ASSIGN */
    struct masque_capsule_parser p = {0};
    struct seen s = {0};
    feed(&p, in, sizeof in, 1, &s);
    cr_assert_eq(s.n, 1);
    cr_assert_eq(s.type[0], MASQUE_CAPSULE_ADDRESS_ASSIGN);
    cr_assert_eq(s.len[0], 0);
}

Test(masque_capsule, boundary_is_only_between_capsules)
{
    struct masque_capsule_parser p = {0};
    struct seen s = {0};
    cr_assert(masque_capsule_at_boundary(&p));
    for (size_t n = 1; n < 6; n++) {
        memset(&p, 0, sizeof p);
        feed(&p, grease_then_request, n, 1, &s);
        cr_assert_not(masque_capsule_at_boundary(&p), "after %zu bytes", n);
    }
    memset(&p, 0, sizeof p);
    feed(&p, grease_then_request, 6, 1, &s);
    cr_assert(masque_capsule_at_boundary(&p));
}

Test(masque_capsule, a_control_capsule_beyond_the_limit_is_malformed)
{
    uint8_t in[16];
    for (uint64_t type = 1; type <= 3; type++) {
        struct masque_capsule_parser p = {0};
        struct seen s = {0};
        size_t n = masque_varint_put(in, 8, type);
        n += masque_varint_put(in + n, 8, MASQUE_CAPSULE_MAX + 1);
        feed(&p, in, n, n, &s);
        cr_assert_eq(s.end, BASE_EPROTO, "type %d", (int)type);
        cr_assert(strstr(s.err.msg, "4097"), "%s", s.err.msg);
        cr_assert_not(masque_capsule_at_boundary(&p));
        feed(&p, in, 1, 1, &s);
        cr_assert_eq(s.end, BASE_EPROTO, "a malformed stream stays malformed");
    }
}

Test(masque_capsule, a_datagram_too_long_to_use_is_skipped_and_counted)
{
    size_t big = 60000;
    uint8_t *in = calloc(1, big + 16);
    size_t n = masque_varint_put(in, 8, 0);
    n += masque_varint_put(in + n, 8, big);
    n += big;
    in[n++] = 0x01; /* an empty ADDRESS_ASSIGN behind it */
    in[n++] = 0x00;
    struct masque_capsule_parser p = {0};
    struct seen s = {0};
    feed(&p, in, n, 1000, &s);
    cr_assert_eq(s.end, 0);
    cr_assert_eq(s.n, 1);
    cr_assert_eq(s.type[0], MASQUE_CAPSULE_ADDRESS_ASSIGN);
    cr_assert_eq(p.oversize, 1);
    free(in);
}

Test(masque_capsule, unknown_bytes_are_bounded_over_the_whole_stream)
{
    uint8_t head[16], zeros[4096] = {0};
    struct masque_capsule_parser p = {0};
    struct seen s = {0};
    size_t n = masque_varint_put(head, 8, 0x188);
    n += masque_varint_put(head + n, 8, MASQUE_CAPSULE_SKIP_MAX / 2);
    for (int round = 0; round < 2; round++) {
        feed(&p, head, n, n, &s);
        for (size_t left = MASQUE_CAPSULE_SKIP_MAX / 2; left > 0; left -= sizeof zeros)
            feed(&p, zeros, sizeof zeros, sizeof zeros, &s);
        cr_assert_eq(s.end, 0, "round %d", round);
    }
    cr_assert_eq(p.skipped, MASQUE_CAPSULE_SKIP_MAX);
    static const uint8_t one_more[] = {0x41, 0x88, 0x01};
    feed(&p, one_more, sizeof one_more, 1, &s);
    cr_assert_eq(s.end, BASE_EPROTO);
    memset(&p, 0, sizeof p);
    n = masque_varint_put(head, 8, 0x188);
    n += masque_varint_put(head + n, 8, MASQUE_VARINT_MAX); /* must not wrap anything */
    feed(&p, head, n, 1, &s);
    cr_assert_eq(s.end, BASE_EPROTO);
}

/* Whatever comes in, in whatever pieces: no crash, no loop, and the same capsules as in one piece. */
Test(masque_capsule, random_bytes_in_random_pieces)
{
    struct base_prng rng = {1};
    for (int round = 0; round < 20000; round++) {
        uint8_t in[200];
        size_t n = (size_t)base_prng_below(&rng, sizeof in);
        for (size_t i = 0; i < n; i++)
            in[i] = (uint8_t)(base_prng_below(&rng, 3) ? base_prng_below(&rng, 8) : base_prng_next(&rng));
        struct masque_capsule_parser a = {0}, b = {0};
        struct masque_capsule ca, cb;
        const uint8_t *pa = in, *pb = in;
        size_t la = n, left = n;
        struct base_err err;
        for (int ra; (ra = masque_capsule_feed(&a, &pa, &la, &ca, &err)) != 0;) {
            int rb = 0;
            while (rb == 0 && left > 0) {
                size_t piece = 1 + (size_t)base_prng_below(&rng, left), rest = piece;
                rb = masque_capsule_feed(&b, &pb, &rest, &cb, &err);
                left -= piece - rest;
            }
            cr_assert_eq(ra, rb, "round %d", round);
            if (ra < 0)
                break;
            cr_assert_eq(ca.type, cb.type);
            cr_assert_eq(ca.len, cb.len);
            cr_assert_eq(memcmp(ca.value, cb.value, ca.len), 0);
            struct masque_address addr[MASQUE_CAPSULE_ADDRESSES_MAX];
            size_t k;
            (void)masque_address_decode(ca.value, ca.len, true, addr, MASQUE_CAPSULE_ADDRESSES_MAX, &k, &err);
            (void)masque_route_decode(ca.value, ca.len, NULL, 0, &k, &err);
        }
    }
}

/* ---- addresses ---- */

#define ANY16 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

Test(masque_capsule, address_request_bad_inputs)
{
    static const struct {
        const char *name;
        uint8_t in[48];
        size_t n;
        const char *text;
    } rows[] = {
        {"empty", {0}, 0, "no entry"},
        {"request id 0", {0x00, 6, ANY16, 0x60}, 19, "Request ID is 0"},
        {"same id twice", {1, 6, ANY16, 0x60, 1, 6, ANY16, 0x60}, 38, "used before"},
        {"version 5", {1, 5, ANY16, 0x60}, 19, "neither 4 nor 6"},
        {"short", {1, 6, ANY16}, 18, "cut short"},
        {"only an id", {1}, 1, "cut short"},
        {"cut id", {0x40}, 1, "cut short"},
        {"trailing byte", {1, 4, 0, 0, 0, 0, 32, 9}, 8, "cut short"},
        {"prefix 129", {1, 6, ANY16, 129}, 19, "more than the address"},
        {"prefix 33", {1, 4, 0, 0, 0, 0, 33}, 7, "more than the address"},
        {"host bits", {1, 4, 10, 0, 0, 1, 24}, 7, "not zero"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct masque_address a[4];
        size_t n = 99;
        struct base_err err = {0};
        cr_assert_eq(masque_address_decode(rows[i].in, rows[i].n, true, a, 4, &n, &err), BASE_EPROTO, "%s",
                     rows[i].name);
        cr_assert(strstr(err.msg, rows[i].text), "%s: %s", rows[i].name, err.msg);
        cr_assert_eq(n, 99, "%s: the result was touched", rows[i].name);
    }
}

Test(masque_capsule, address_assign_may_be_empty_and_has_id_0)
{
    static const uint8_t in[] = {0, 6, ANY16, 0x60};
    struct masque_address a[4];
    size_t n = 99;
    cr_assert_eq(masque_address_decode(in, 0, false, a, 4, &n, NULL), BASE_OK);
    cr_assert_eq(n, 0);
    cr_assert_eq(masque_address_decode(in, sizeof in, false, a, 4, &n, NULL), BASE_OK);
    cr_assert_eq(n, 1);
    cr_assert_eq(a[0].len, 96);
}

Test(masque_capsule, too_many_addresses_are_refused)
{
    uint8_t in[7 * 5];
    for (size_t i = 0; i < 5; i++)
        memcpy(in + 7 * i, (uint8_t[]){(uint8_t)(i + 1), 4, 0, 0, 0, 0, 32}, 7);
    struct masque_address a[4];
    size_t n;
    struct base_err err = {0};
    cr_assert_eq(masque_address_decode(in, 7 * 4, true, a, 4, &n, &err), BASE_OK);
    cr_assert_eq(masque_address_decode(in, sizeof in, true, a, 4, &n, &err), BASE_EPROTO);
    cr_assert(strstr(err.msg, "more than 4"), "%s", err.msg);
}

Test(masque_capsule, addresses_survive_a_round_trip)
{
    struct masque_address in[3] = {{.request_id = 0, .version = 6, .addr = {0xfd, 0x12, 0, 1}, .len = 96},
                                   {.request_id = 70000, .version = 4, .addr = {10, 0, 0, 0}, .len = 8}},
                          out[4];
    in[2] = masque_address_refusal(&in[1]);
    uint8_t buf[128];
    size_t len = masque_address_encode(buf, sizeof buf, MASQUE_CAPSULE_ADDRESS_ASSIGN, in, 3), n = 0;
    cr_assert(len > 0);
    struct masque_capsule_parser p = {0};
    struct masque_capsule c;
    const uint8_t *d = buf;
    size_t left = len;
    cr_assert_eq(masque_capsule_feed(&p, &d, &left, &c, NULL), 1);
    cr_assert_eq(masque_address_decode(c.value, c.len, false, out, 4, &n, NULL), BASE_OK);
    cr_assert_eq(n, 3);
    cr_assert_eq(memcmp(in, out, 2 * sizeof in[0]), 0);
    cr_assert_eq(out[2].request_id, 70000);
    cr_assert_eq(out[2].len, 32);
    cr_assert_eq(masque_address_encode(buf, len - 1, MASQUE_CAPSULE_ADDRESS_ASSIGN, in, 3), 0, "no room");
}

/* ---- routes ---- */

static struct masque_route v6(uint8_t a, uint8_t b, uint8_t proto)
{
    struct masque_route r = {.version = 6, .ipproto = proto};
    r.start[0] = a;
    r.end[0] = b;
    return r;
}

Test(masque_capsule, route_advertisement_order)
{
    static const uint8_t both[] = {4, 10, 0, 0, 0, 10, 0, 0, 255, 0, 6, ANY16, ANY16, 0};
    size_t n = 0;
    cr_assert_eq(masque_route_decode(both, sizeof both, NULL, 0, &n, NULL), BASE_OK);
    cr_assert_eq(n, 2);
    const struct {
        const char *name;
        struct masque_route r[2];
        const char *text; /* NULL = fine */
    } rows[] = {
        {"apart", {v6(1, 2, 0), v6(3, 4, 0)}, NULL},
        {"overlap", {v6(1, 3, 0), v6(3, 4, 0)}, "overlaps"},
        {"same", {v6(1, 1, 0), v6(1, 1, 0)}, "overlaps"},
        {"backwards", {v6(3, 4, 0), v6(1, 2, 0)}, "overlaps"},
        {"protocol first", {v6(5, 6, 6), v6(1, 2, 17)}, NULL},
        {"protocol backwards", {v6(1, 2, 17), v6(3, 4, 6)}, "protocols"},
        {"start after end", {v6(2, 1, 0), v6(3, 4, 0)}, "start is after end"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t buf[128];
        struct base_err err = {0};
        size_t len = masque_route_encode(buf, sizeof buf, rows[i].r, 2);
        cr_assert(len > 0);
        int rv = masque_route_decode(buf + 3, len - 3, NULL, 0, &n, &err);
        cr_assert_eq(rv, rows[i].text ? BASE_EPROTO : BASE_OK, "%s: %s", rows[i].name, err.msg);
        if (rows[i].text)
            cr_assert(strstr(err.msg, rows[i].text), "%s: %s", rows[i].name, err.msg);
        cr_assert_eq(masque_route_decode(buf + 3, len - 4, NULL, 0, &n, &err), BASE_EPROTO, "%s cut",
                     rows[i].name);
    }
    static const uint8_t backwards[] = {6, ANY16, ANY16, 0, 4, 10, 0, 0, 0, 10, 0, 0, 255, 0}, odd[] = {9};
    cr_assert_eq(masque_route_decode(backwards, sizeof backwards, NULL, 0, &n, NULL), BASE_EPROTO);
    cr_assert_eq(masque_route_decode(odd, 1, NULL, 0, &n, NULL), BASE_EPROTO);
    cr_assert_eq(masque_route_decode(odd, 0, NULL, 0, &n, NULL), BASE_OK,
                 "an empty list withdraws everything");
}

static struct base_prefix prefix(const char *z)
{
    struct base_prefix p;
    cr_assert_eq(base_prefix_parse(&p, base_str_of(z)), BASE_OK, "%s", z);
    return p;
}

static void ip(const uint8_t *b, const char *z)
{
    struct base_ip6 a;
    char text[BASE_IP6_SIZE];
    memcpy(a.b, b, 16);
    base_ip6_text(text, &a);
    cr_assert_str_eq(text, z);
}

Test(masque_capsule, prefixes_are_sorted_and_joined)
{
    struct base_prefix p[] = {prefix("fd20::/65"),           prefix("fd12:0:0:1::/64"),
                              prefix("fd20::8000:0:0:0/65"), prefix("fd12:0:0:1::/96"),
                              prefix("fd20:0:0:2::/64"),     prefix("::/128")};
    struct masque_route r[6];
    cr_assert_eq(masque_route_from_prefixes(p, 6, 17, r), 4);
    ip(r[0].start, "::");
    ip(r[1].start, "fd12:0:0:1::");
    ip(r[1].end, "fd12::1:ffff:ffff:ffff:ffff");
    ip(r[2].start, "fd20::");
    ip(r[2].end, "fd20::ffff:ffff:ffff:ffff"); /* the two halves touch */
    ip(r[3].start, "fd20:0:0:2::");
    cr_assert_eq(r[3].ipproto, 17);
    uint8_t buf[512];
    size_t n, len = masque_route_encode(buf, sizeof buf, r, 4);
    cr_assert_eq(masque_route_decode(buf + 3, len - 3, NULL, 0, &n, NULL), BASE_OK);
    struct base_prefix all[] = {prefix("::/0"), prefix("fd20::/64")};
    cr_assert_eq(masque_route_from_prefixes(all, 2, 0, r), 1, "::/0 swallows everything and does not wrap");
    ip(r[0].end, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    cr_assert_eq(masque_route_from_prefixes(all, 0, 0, r), 0);
}
