/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/offload.h"

#include <linux/virtio_net.h>
#include <string.h>

_Static_assert(sizeof(struct virtio_net_hdr) == TUN_OFFLOAD_HEADER, "the short virtio header");

bool tun_offload_finish(uint8_t *buf, size_t len)
{
    struct virtio_net_hdr h;
    uint8_t *pkt = buf + TUN_OFFLOAD_HEADER;
    uint64_t sum = 0;
    size_t at;

    memcpy(&h, buf, sizeof h);
    if (h.gso_type != VIRTIO_NET_HDR_GSO_NONE)
        return false;
    if (!(h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
        return true;
    if (h.csum_start >= len || (size_t)h.csum_start + h.csum_offset + 2 > len)
        return false;
    /* The field holds the pseudo-header's sum already. */
    for (at = h.csum_start; at + 1 < len; at += 2)
        sum += (uint64_t)(pkt[at] << 8 | pkt[at + 1]);
    if (at < len)
        sum += (uint64_t)pkt[at] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    sum = ~sum & 0xffff;
    if (sum == 0)
        sum = 0xffff; /* UDP's "no checksum" is spelled otherwise; for the others both are zero */
    pkt[h.csum_start + h.csum_offset] = (uint8_t)(sum >> 8);
    pkt[h.csum_start + h.csum_offset + 1] = (uint8_t)sum;
    return true;
}
