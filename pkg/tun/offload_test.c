/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/offload.h"

#include <criterion/criterion.h>
#include <linux/virtio_net.h>
#include <string.h>

enum { PACKET = 64 };
static uint8_t buf[TUN_OFFLOAD_HEADER + PACKET], *const pkt = buf + TUN_OFFLOAD_HEADER;

static void fill(uint8_t flags, uint8_t gso, uint16_t start, uint16_t offset)
{
    struct virtio_net_hdr h = {.flags = flags, .gso_type = gso, .csum_start = start, .csum_offset = offset};
    for (int i = 0; i < PACKET; i++)
        pkt[i] = (uint8_t)(i * 7);
    memcpy(buf, &h, sizeof h);
}

Test(tun_offload, checksums)
{
    static const struct {
        const char *name;
        uint16_t start, offset;
        size_t len;
        bool ok;
    } rows[] = {
        {"inside", 40, 6, 64, true},
        {"odd length", 40, 6, 63, true},
        {"the last two bytes", 40, 22, 64, true},
        {"one byte outside", 40, 23, 64, false},
        {"begins outside", 64, 0, 64, false},
        {"far outside", 65535, 65535, 64, false},
        {"nothing there", 0, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t before[PACKET];
        fill(VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_NONE, rows[i].start, rows[i].offset);
        memcpy(before, pkt, PACKET);
        cr_assert_eq(tun_offload_finish(buf, rows[i].len), rows[i].ok, "%s", rows[i].name);
        if (!rows[i].ok) {
            cr_assert_eq(memcmp(before, pkt, PACKET), 0, "%s: changed", rows[i].name);
            continue;
        }
        uint32_t s = 0;
        for (size_t k = rows[i].start; k < rows[i].len; k++)
            s += (k - rows[i].start) & 1 ? before[k] : (uint32_t)before[k] << 8;
        size_t at = (size_t)rows[i].start + rows[i].offset;
        s += (uint32_t)(pkt[at] << 8 | pkt[at + 1]);
        while (s >> 16)
            s = (s & 0xffff) + (s >> 16);
        cr_assert_eq(s, 0xffff, "%s: 0x%x", rows[i].name, s);
    }
}

Test(tun_offload, segmentation_is_refused_and_the_rest_left_alone)
{
    static const uint8_t types[] = {VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_UDP,
                                    VIRTIO_NET_HDR_GSO_TCPV6, 5, VIRTIO_NET_HDR_GSO_ECN};
    uint8_t before[PACKET];
    for (size_t i = 0; i < sizeof types; i++) {
        fill(0, types[i], 0, 0);
        cr_assert_not(tun_offload_finish(buf, PACKET), "type %u", types[i]);
    }
    fill(0, VIRTIO_NET_HDR_GSO_NONE, 40, 6);
    memcpy(before, pkt, PACKET);
    cr_assert(tun_offload_finish(buf, PACKET));
    cr_assert_eq(memcmp(before, pkt, PACKET), 0);
}

Test(tun_offload, a_sum_of_zero_is_written_as_ones)
{
    fill(VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_NONE, 40, 6);
    memset(pkt + 40, 0, 24);
    pkt[40] = pkt[41] = 0xff;
    cr_assert(tun_offload_finish(buf, PACKET));
    cr_assert(pkt[46] == 0xff && pkt[47] == 0xff, "%02x%02x", pkt[46], pkt[47]);
}
