/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_vnet.c - the virtio header that the kernel puts before a packet of the TUN.
 *
 * Input: the header (10 bytes) and the packet. What is left to segmentation is refused; of what is accepted
 * nothing changes but the two bytes of the checksum, and those make the sum right.
 */
#include "fuzz.h"

#include <linux/virtio_net.h>

#include "tun/offload.h"

static uint32_t fold(const uint8_t *p, size_t n)
{
    uint64_t s = 0;
    for (size_t i = 0; i < n; i++)
        s += i & 1 ? p[i] : (unsigned)p[i] << 8;
    while (s >> 16)
        s = (s & 0xffff) + (s >> 16);
    return (uint32_t)s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct virtio_net_hdr h;
    if (size < TUN_OFFLOAD_HEADER)
        return 0;
    size_t n = size - TUN_OFFLOAD_HEADER;
    uint8_t *buf = malloc(size);
    if (!buf)
        abort();
    memcpy(buf, data, size);
    memcpy(&h, data, sizeof h);
    bool ok = tun_offload_finish(buf, n);
    const uint8_t *before = data + TUN_OFFLOAD_HEADER, *after = buf + TUN_OFFLOAD_HEADER;
    bool sum = h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
    size_t at = (size_t)h.csum_start + h.csum_offset;
    if (!ok) {
        CHECK(h.gso_type != 0 || (sum && (h.csum_start >= n || at + 2 > n)), "refused without a reason");
        CHECK(n == 0 || memcmp(before, after, n) == 0, "changed and refused");
    } else {
        CHECK(h.gso_type == 0, "what is to be cut passed");
        CHECK(!sum || (h.csum_start < n && at + 2 <= n), "a checksum outside the packet");
        for (size_t i = 0; i < n; i++)
            CHECK(before[i] == after[i] || (sum && (i == at || i == at + 1)), "byte %zu changed", i);
        if (sum) {
            uint32_t c = (uint32_t)(after[at] << 8 | after[at + 1]),
                     s = fold(before + h.csum_start, n - h.csum_start);
            CHECK(c != 0, "a checksum of 0 says that there is none");
            /* The field was summed where it stood; an odd offset turns its bytes round. */
            CHECK((c + s) % 0xffff == 0, "0x%x and 0x%x", c, s);
        }
    }
    free(buf);
    return 0;
}
