/* SPDX-License-Identifier: Apache-2.0
 *
 * Super-packets: what was put together comes out of the cut byte for byte; what does not belong together is
 * never put together.
 */
#include <criterion/criterion.h>
#include <linux/virtio_net.h>
#include <string.h>

#include "tun/offload.h"

enum { UDP = 17, TCP = 6, MANY = 60, ROOM = 2048 };
static uint8_t space[TUN_OFFLOAD_HEADER + TUN_RUN_BYTES];
static uint8_t in[MANY][ROOM];
static size_t in_len[MANY];

static uint16_t sum_of(const uint8_t *p, size_t len)
{
    uint32_t s = (uint32_t)len - 40 + p[6];
    for (size_t i = 8; i < len; i++)
        s += i & 1 ? p[i] : (uint32_t)p[i] << 8;
    while (s >> 16)
        s = (s & 0xffff) + (s >> 16);
    return (uint16_t)~s;
}

static void seal(uint8_t *p, size_t len)
{
    uint8_t *at = p + 40 + (p[6] == UDP ? 6 : 16);
    at[0] = at[1] = 0;
    uint16_t s = sum_of(p, len);
    at[0] = (uint8_t)(s >> 8);
    at[1] = (uint8_t)s;
}

/* Packet i of a flow: `n` bytes of payload; TCP with 12 bytes of options, `seq` its first byte. */
static void make(unsigned i, uint8_t proto, size_t n, uint32_t seq)
{
    uint8_t *p = in[i], *l4 = p + 40;
    size_t head = 40 + (proto == UDP ? 8u : 32u), len = head + n;
    memset(p, 0, ROOM);
    p[0] = 0x60;
    p[4] = (uint8_t)((len - 40) >> 8);
    p[5] = (uint8_t)(len - 40);
    p[6] = proto;
    p[7] = 63;
    for (size_t k = 8; k < 40; k++)
        p[k] = (uint8_t)(k * 3);
    l4[1] = 80;
    l4[3] = 90;
    if (proto == UDP) {
        memcpy(l4 + 4, p + 4, 2);
    } else {
        for (int k = 0; k < 4; k++)
            l4[4 + k] = (uint8_t)(seq >> (24 - 8 * k));
        l4[12] = 8 << 4;
        l4[13] = 16;
        l4[15] = 200;
        memset(l4 + 20, 1, 12);
    }
    for (size_t k = 0; k < n; k++)
        p[head + k] = (uint8_t)(k + i * 7);
    in_len[i] = len;
    seal(p, len);
}

struct out {
    unsigned n;
    bool same;
};
static void compare(void *arg, uint8_t *pkt, size_t len)
{
    struct out *o = arg;
    o->same = o->same && len == in_len[o->n] && memcmp(pkt, in[o->n], len) == 0;
    memset(pkt, 0xee, len); /* in place is allowed, and so is what stands before it */
    memset(pkt - TUN_OFFLOAD_HEADER, 0xee, TUN_OFFLOAD_HEADER);
    o->n++;
}

static struct tun_run run(void)
{
    memset(space, 0xaa, sizeof space);
    return (struct tun_run){.pkt = space + TUN_OFFLOAD_HEADER};
}

static void round_trip(const char *name, unsigned n)
{
    struct tun_run r = run();
    struct out o = {0, true};
    struct virtio_net_hdr h;
    for (unsigned i = 0; i < n; i++)
        cr_assert(tun_run_add(&r, in[i], in_len[i]), "%s: %u", name, i);
    cr_assert_eq(r.n, n, "%s", name);
    tun_run_finish(&r);
    memcpy(&h, space, sizeof h);
    cr_assert_eq(h.gso_size, in_len[0] - r.head, "%s", name);
    cr_assert(tun_offload_is_super(space), "%s", name);
    cr_assert_not(tun_offload_finish(space, r.len), "%s", name);
    cr_assert_eq(tun_offload_cut(space, r.len, compare, &o), n, "%s", name);
    cr_assert(o.same && o.n == n, "%s: what came out is not what went in", name);
}

Test(tun_run, what_is_put_together_comes_out_as_it_was)
{
    static const size_t sizes[] = {1, 7, 8, 31, 32, 33, 100, 1152, 1153};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        size_t s = sizes[k];
        for (unsigned i = 0; i < 20; i++)
            make(i, UDP, s, 0);
        round_trip("UDP", 20);
        make(19, UDP, s > 1 ? s - 1 : 1, 0);
        round_trip("UDP, the last one shorter", 20);
        for (unsigned i = 0; i < 20; i++)
            make(i, TCP, s, 0xfffffff0u + i * (uint32_t)s);
        round_trip("TCP, over the end of the sequence numbers", 20);
        in[19][53] |= 8;
        seal(in[19], in_len[19]);
        round_trip("TCP, the last one pushes", 20);
    }
}

Test(tun_run, one_packet_goes_out_as_it_came)
{
    struct tun_run r = run();
    struct virtio_net_hdr h;
    make(0, UDP, 100, 0);
    in[0][46] ^= 1; /* wrong checksum and all */
    cr_assert(tun_run_add(&r, in[0], in_len[0]));
    tun_run_finish(&r);
    memcpy(&h, space, sizeof h);
    cr_assert(h.flags == 0 && h.gso_type == 0 && r.len == in_len[0]);
    cr_assert_eq(memcmp(r.pkt, in[0], in_len[0]), 0);
    r.n = 0;
    cr_assert_not(tun_run_add(&r, in[0], 0));
    cr_assert_not(tun_run_add(&r, in[0], TUN_RUN_BYTES + 1));
    cr_assert(tun_run_add(&r, in[0], 3), "whatever it is");
    cr_assert_not(tun_run_add(&r, in[0], in_len[0]), "nothing comes behind it");
}

Test(tun_run, what_does_not_belong_together_stays_apart)
{
    static const struct {
        const char *name;
        int proto, at, bits;
        bool sealed; /* with a right checksum all the same */
    } rows[] = {
        {"traffic class", UDP, 1, 0x10, true},
        {"flow label", UDP, 3, 1, true},
        {"hop limit", UDP, 7, 1, true},
        {"source", UDP, 23, 1, true},
        {"destination", UDP, 39, 1, true},
        {"source port", UDP, 41, 1, true},
        {"destination port", UDP, 43, 1, true},
        {"UDP length", UDP, 45, 1, true},
        {"payload, checksum wrong", UDP, 60, 1, false},
        {"next header", UDP, 6, 1, true},
        {"payload length", UDP, 5, 1, true},
        {"version", UDP, 0, 0x10, true},
        {"TCP: sequence", TCP, 47, 1, true},
        {"TCP: acknowledgement", TCP, 51, 1, true},
        {"TCP: data offset", TCP, 52, 0x10, true},
        {"TCP: FIN", TCP, 53, 1, true},
        {"TCP: SYN", TCP, 53, 2, true},
        {"TCP: RST", TCP, 53, 4, true},
        {"TCP: no ACK", TCP, 53, 16, true},
        {"TCP: URG", TCP, 53, 32, true},
        {"TCP: ECE", TCP, 53, 64, true},
        {"TCP: CWR", TCP, 53, 128, true},
        {"TCP: window", TCP, 55, 1, true},
        {"TCP: urgent pointer", TCP, 59, 1, true},
        {"TCP: an option", TCP, 63, 1, true},
        {"TCP: payload, checksum wrong", TCP, 80, 1, false},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        uint8_t before[ROOM];
        struct tun_run r = run();
        for (unsigned i = 0; i < 3; i++)
            make(i, (uint8_t)rows[k].proto, 200, 1000 + 200 * i);
        cr_assert(tun_run_add(&r, in[0], in_len[0]) && tun_run_add(&r, in[1], in_len[1]));
        memcpy(before, r.pkt, 400);
        in[2][rows[k].at] ^= (uint8_t)rows[k].bits;
        if (rows[k].sealed)
            seal(in[2], in_len[2]);
        cr_expect_not(tun_run_add(&r, in[2], in_len[2]), "%s", rows[k].name);
        cr_expect(r.n == 2 && memcmp(before, r.pkt, 400) == 0, "%s", rows[k].name);
    }
}

Test(tun_run, its_bounds)
{
    struct tun_run r = run();
    make(0, UDP, 200, 0);
    for (unsigned i = 0; i < TUN_RUN_PACKETS; i++)
        cr_assert(tun_run_add(&r, in[0], in_len[0]));
    cr_assert_not(tun_run_add(&r, in[0], in_len[0]), "more packets than between two looks at the fence");
    r = run();
    make(0, UDP, 1900, 0);
    unsigned n = 0;
    while (tun_run_add(&r, in[0], in_len[0]))
        n++;
    cr_assert(n == (TUN_RUN_BYTES - 48) / 1900 && r.len <= TUN_RUN_BYTES, "%u", n);
    r = run();
    make(1, UDP, 1899, 0);
    cr_assert(tun_run_add(&r, in[0], in_len[0]) && tun_run_add(&r, in[1], in_len[1]));
    cr_assert_not(tun_run_add(&r, in[1], in_len[1]), "behind a shorter one");
    r = run();
    cr_assert(tun_run_add(&r, in[1], in_len[1]));
    cr_assert_not(tun_run_add(&r, in[0], in_len[0]), "a longer one");
    r = run();
    in[0][46] = in[0][47] = 0;
    cr_assert(tun_run_add(&r, in[0], in_len[0]));
    cr_assert_not(tun_run_add(&r, in[0], in_len[0]), "without a checksum");
    r = run();
    make(0, UDP, 200, 0);
    in[0][100] ^= 1;
    make(1, UDP, 200, 0);
    cr_assert(tun_run_add(&r, in[0], in_len[0]));
    cr_assert_not(tun_run_add(&r, in[1], in_len[1]), "the first one's checksum is wrong");
    make(0, TCP, 200, 0);
    in[0][53] |= 8;
    seal(in[0], in_len[0]);
    make(1, TCP, 200, 200);
    r = run();
    cr_assert(tun_run_add(&r, in[0], in_len[0]));
    cr_assert_not(tun_run_add(&r, in[1], in_len[1]), "behind a push");
}

Test(tun_run, super_packets_that_do_not_fit_together_are_not_cut)
{
    static const struct {
        const char *name;
        struct virtio_net_hdr h;
        size_t len;
        int at, value;
    } rows[] = {
        {"no size", {1, 5, 48, 0, 40, 6}, 400, 0, 0x60},
        {"no checksum asked for", {0, 5, 48, 100, 40, 6}, 400, 0, 0x60},
        {"IPv4", {1, VIRTIO_NET_HDR_GSO_TCPV4, 48, 100, 40, 16}, 400, 0, 0x60},
        {"fragmentation", {1, VIRTIO_NET_HDR_GSO_UDP, 48, 100, 40, 6}, 400, 0, 0x60},
        {"version 4", {1, 5, 48, 100, 40, 6}, 400, 0, 0x40},
        {"transport inside the network header", {1, 5, 48, 100, 39, 6}, 400, 0, 0x60},
        {"transport outside", {1, 5, 48, 100, 393, 6}, 400, 0, 0x60},
        {"nothing but headers", {1, 5, 48, 100, 40, 6}, 48, 0, 0x60},
        {"headers too long", {1, 5, 48, 100, 300, 6}, 400, 0, 0x60},
        {"checksum elsewhere", {1, 5, 48, 100, 40, 7}, 400, 0, 0x60},
        {"TCP header too short", {1, VIRTIO_NET_HDR_GSO_TCPV6, 60, 100, 40, 16}, 400, 52, 4 << 4},
        {"TCP header outside", {1, VIRTIO_NET_HDR_GSO_TCPV6, 60, 100, 40, 16}, 80, 52, 15 << 4},
        {"empty", {1, 5, 48, 100, 40, 6}, 0, 0, 0x60},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct out o = {0, true};
        memset(space, 0, sizeof space);
        memcpy(space, &rows[k].h, sizeof rows[k].h);
        space[TUN_OFFLOAD_HEADER] = 0x60;
        space[TUN_OFFLOAD_HEADER + rows[k].at] = (uint8_t)rows[k].value;
        cr_expect(tun_offload_cut(space, rows[k].len, compare, &o) == 0 && o.n == 0, "%s", rows[k].name);
    }
}
