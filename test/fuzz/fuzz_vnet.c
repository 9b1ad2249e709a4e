/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_vnet.c - the virtio header that the kernel puts before a packet of the TUN.
 *
 * Input: the header (10 bytes) and the packet. What is left to segmentation is refused, and cut when it can
 * be: then all payload comes out once, in order, in packets of the size asked for with right checksums, and
 * what comes out goes together again. Of what is accepted nothing changes but the two bytes of the checksum,
 * and those make the sum right.
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

struct cut {
    const uint8_t *payload; /* of the input, what is to come next */
    size_t left, mss;
    unsigned n;
};

static void on_packet(void *arg, uint8_t *pkt, size_t len)
{
    struct cut *c = arg;
    size_t n = c->left < c->mss ? c->left : c->mss;
    CHECK(n > 0 && len > n, "an empty packet");
    CHECK(memcmp(pkt + len - n, c->payload, n) == 0, "payload of packet %u", c->n);
    CHECK((size_t)(pkt[4] << 8 | pkt[5]) == len - 40, "length of packet %u", c->n);
    c->payload += n;
    c->left -= n;
    c->n++;
    memset(pkt - TUN_OFFLOAD_HEADER, 0xee, TUN_OFFLOAD_HEADER + len);
}

static void try_cut(const uint8_t *data, size_t size)
{
    struct virtio_net_hdr h;
    size_t n = size - TUN_OFFLOAD_HEADER;
    const uint8_t *pkt = data + TUN_OFFLOAD_HEADER;
    uint8_t *buf = malloc(size);
    if (!buf)
        abort();
    memcpy(buf, data, size);
    memcpy(&h, data, sizeof h);
    bool tcp = (h.gso_type & 0x7f) == VIRTIO_NET_HDR_GSO_TCPV6;
    size_t head =
        h.csum_start + (tcp && h.csum_start + 13u <= n ? (size_t)(pkt[h.csum_start + 12] >> 4) * 4 : 8u);
    struct cut c = {.payload = pkt + head, .left = n > head ? n - head : 0, .mss = h.gso_size};
    unsigned k = tun_offload_cut(buf, n, on_packet, &c);
    CHECK(k == c.n, "%u and %u packets", k, c.n);
    CHECK(k == 0 || c.left == 0, "%zu bytes are missing", c.left);
    free(buf);
}

/* Two packets of the input's bytes: what goes together comes apart again. */
static struct {
    const uint8_t *p[2];
    size_t len[2];
    unsigned n;
} pair;

static void on_half(void *arg, uint8_t *pkt, size_t len)
{
    CHECK(pair.n < 2 && len == pair.len[pair.n] && memcmp(pkt, pair.p[pair.n], len) == 0, "packet %u",
          pair.n);
    pair.n++;
}

static void try_run(const uint8_t *data, size_t size)
{
    static uint8_t space[TUN_OFFLOAD_HEADER + TUN_RUN_BYTES];
    struct tun_run r = {.pkt = space + TUN_OFFLOAD_HEADER};
    size_t at = size / 2;
    pair.p[0] = data;
    pair.p[1] = data + at;
    pair.len[0] = at;
    pair.len[1] = size - at;
    pair.n = 0;
    if (!tun_run_add(&r, data, at))
        return;
    bool both = tun_run_add(&r, data + at, size - at);
    tun_run_finish(&r);
    if (!both) {
        CHECK(r.n == 1 && r.len == at && memcmp(r.pkt, data, at) == 0, "one packet was changed");
        return;
    }
    CHECK(tun_offload_cut(space, r.len, on_half, NULL) == 2 && pair.n == 2, "%u packets", pair.n);
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
    try_cut(data, size);
    try_run(data, size);
    return 0;
}
