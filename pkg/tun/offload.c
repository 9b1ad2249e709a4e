/* SPDX-License-Identifier: Apache-2.0 */
#include "tun/offload.h"

#include <linux/virtio_net.h>
#include <string.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 /* Linux 6.2; older headers do not have it */
#endif

enum {
    IP6 = 40,
    AT_LENGTH = 4,
    AT_NEXT = 6,
    AT_ADDRESSES = 8,
    TCP = 6,
    UDP = 17,
    UDP_HEAD = 8,
    UDP_SUM = 6,
    TCP_HEAD = 20,
    TCP_SEQ = 4,
    TCP_OFFSET = 12,
    TCP_FLAGS = 13,
    TCP_SUM = 16,
    TCP_FIN = 1,
    TCP_PSH = 8,
    TCP_ACK = 16,
    TCP_ECE = 64,
    TCP_CWR = 128,
};

_Static_assert(sizeof(struct virtio_net_hdr) == TUN_OFFLOAD_HEADER, "the short virtio header");

/* ---- checksums ---- */

/* Sum of 16-bit words as they stand in memory: RFC 1071 does not care for the order of their bytes. */
static uint64_t add_words(const uint8_t *p, size_t n)
{
    typedef uint32_t lanes __attribute__((vector_size(16)));
    lanes a = {0}, b = {0}, v;
    uint64_t sum = 0;
    uint16_t w;
    for (; n >= 32; n -= 32, p += 32) {
        memcpy(&v, p, sizeof v);
        a += (v & 0xffff) + (v >> 16);
        memcpy(&v, p + 16, sizeof v);
        b += (v & 0xffff) + (v >> 16);
    }
    for (int i = 0; i < 4; i++)
        sum += (uint64_t)a[i] + b[i];
    for (; n >= 2; n -= 2, p += 2) {
        memcpy(&w, p, sizeof w);
        sum += w;
    }
    if (n > 0) {
        w = 0;
        memcpy(&w, p, 1);
        sum += w;
    }
    return sum;
}

static uint16_t fold(uint64_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

static uint16_t swap_if_little(uint16_t v)
{
    const uint8_t b[2] = {(uint8_t)(v >> 8), (uint8_t)v};
    uint16_t w;
    memcpy(&w, b, sizeof w);
    return w;
}

/* Of the pseudo-header of `len` bytes from `l4` on: addresses, length, protocol. */
static uint64_t pseudo(const uint8_t *pkt, size_t len, uint8_t proto)
{
    return add_words(pkt + AT_ADDRESSES, 32) + swap_if_little((uint16_t)len) + swap_if_little(proto);
}

bool tun_offload_finish(uint8_t *buf, size_t len)
{
    struct virtio_net_hdr h;
    uint8_t *pkt = buf + TUN_OFFLOAD_HEADER;

    memcpy(&h, buf, sizeof h);
    if (h.gso_type != VIRTIO_NET_HDR_GSO_NONE)
        return false;
    if (!(h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
        return true;
    if (h.csum_start >= len || (size_t)h.csum_start + h.csum_offset + 2 > len)
        return false;
    /* The field holds the pseudo-header's sum already. */
    uint16_t sum = (uint16_t)~fold(add_words(pkt + h.csum_start, len - h.csum_start));
    if (sum == 0)
        sum = 0xffff; /* UDP's "no checksum" is spelled otherwise; for the others both are zero */
    memcpy(pkt + h.csum_start + h.csum_offset, &sum, sizeof sum);
    return true;
}

static void put16(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v & 0xffff);
}

/* ---- on the way in ---- */

bool tun_offload_is_super(const uint8_t *buf)
{
    struct virtio_net_hdr h;
    memcpy(&h, buf, sizeof h);
    return h.gso_type != VIRTIO_NET_HDR_GSO_NONE;
}

struct cut {
    uint8_t proto;
    size_t l4, head, mss, sum; /* where the transport header begins, where it ends; its checksum, in it */
};

static bool measure(const uint8_t *buf, size_t len, struct cut *ret)
{
    const uint8_t *pkt = buf + TUN_OFFLOAD_HEADER;
    struct virtio_net_hdr h;
    memcpy(&h, buf, sizeof h);
    uint8_t type = h.gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
    *ret = (struct cut){.proto = type == VIRTIO_NET_HDR_GSO_UDP_L4 ? UDP : TCP, .l4 = h.csum_start};
    if ((type != VIRTIO_NET_HDR_GSO_UDP_L4 && type != VIRTIO_NET_HDR_GSO_TCPV6) ||
        !(h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || h.gso_size == 0 || ret->l4 < IP6 ||
        ret->l4 + (ret->proto == UDP ? UDP_HEAD : TCP_HEAD) > len || pkt[0] >> 4 != 6)
        return false;
    ret->sum = ret->proto == UDP ? UDP_SUM : TCP_SUM;
    ret->head = ret->l4 + (ret->proto == UDP ? UDP_HEAD : (size_t)(pkt[ret->l4 + TCP_OFFSET] >> 4) * 4);
    ret->mss = h.gso_size;
    /* A packet is as long as what it has to give way to: the headers of the next one are put over its end. */
    return h.csum_offset == ret->sum && ret->head >= ret->l4 + (ret->proto == UDP ? UDP_HEAD : TCP_HEAD) &&
           ret->head <= TUN_SUPER_HEAD_MAX && ret->head < len;
}

unsigned tun_offload_cut(uint8_t *buf, size_t len, tun_offload_fn fn, void *arg)
{
    uint8_t head[TUN_SUPER_HEAD_MAX];
    struct cut c;
    unsigned n = 0;
    if (!measure(buf, len, &c))
        return 0;
    memcpy(head, buf + TUN_OFFLOAD_HEADER, c.head);
    for (size_t at = c.head; at < len; at += c.mss, n++) {
        size_t payload = len - at < c.mss ? len - at : c.mss;
        bool last = at + payload == len;
        /* In place: the headers go right before the payload, over what the packet before has left. */
        uint8_t *p = buf + TUN_OFFLOAD_HEADER + at - c.head, *l4 = p + c.l4;
        size_t l4_len = c.head - c.l4 + payload;
        memcpy(p, head, c.head);
        put16(p + AT_LENGTH, c.head - IP6 + payload);
        if (c.proto == UDP) {
            put16(l4 + 4, l4_len);
        } else {
            put32(l4 + TCP_SEQ, get32(l4 + TCP_SEQ) + (uint32_t)(at - c.head));
            if (!last)
                l4[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
            if (at > c.head)
                l4[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
        }
        memset(l4 + c.sum, 0, 2);
        uint16_t sum = (uint16_t)~fold(pseudo(p, l4_len, c.proto) + add_words(l4, l4_len));
        if (sum == 0 && c.proto == UDP)
            sum = 0xffff;
        memcpy(l4 + c.sum, &sum, sizeof sum);
        fn(arg, p, c.head + payload);
    }
    return n;
}

/* ---- on the way out ---- */

/* Length of the headers of a packet that may be one of many, 0 = it may not. */
static size_t head_of(const uint8_t *pkt, size_t len)
{
    const uint8_t *l4 = pkt + IP6;
    if (len <= IP6 + UDP_HEAD || pkt[0] >> 4 != 6 ||
        ((size_t)pkt[AT_LENGTH] << 8 | pkt[AT_LENGTH + 1]) != len - IP6)
        return 0;
    if (pkt[AT_NEXT] == UDP)
        return ((size_t)l4[4] << 8 | l4[5]) == len - IP6 && (l4[UDP_SUM] || l4[UDP_SUM + 1]) ? IP6 + UDP_HEAD
                                                                                             : 0;
    if (pkt[AT_NEXT] != TCP || len <= IP6 + TCP_HEAD)
        return 0;
    size_t head = IP6 + (size_t)(l4[TCP_OFFSET] >> 4) * 4;
    /* Nothing but data, acknowledgement, push, echo of congestion. */
    return head >= IP6 + TCP_HEAD && head < len && (l4[TCP_FLAGS] & ~(TCP_PSH | TCP_ECE)) == TCP_ACK ? head
                                                                                                     : 0;
}

static bool sum_right(const uint8_t *pkt, size_t len)
{
    return fold(pseudo(pkt, len - IP6, pkt[AT_NEXT]) + add_words(pkt + IP6, len - IP6)) == 0xffff;
}

/* `pkt` is the next packet of the run's flow: only what segmentation writes anew may differ. */
static bool next_of(const struct tun_run *r, const uint8_t *pkt)
{
    const uint8_t *first = r->pkt, *a = first + IP6, *b = pkt + IP6;
    if (memcmp(first, pkt, AT_LENGTH) != 0 || memcmp(first + AT_NEXT, pkt + AT_NEXT, IP6 - AT_NEXT) != 0 ||
        memcmp(a, b, 4) != 0)
        return false;
    if (first[AT_NEXT] == UDP)
        return true;
    return get32(b + TCP_SEQ) == get32(a + TCP_SEQ) + (uint32_t)(r->len - r->head) &&
           memcmp(a + 8, b + 8, 5) == 0 && ((a[TCP_FLAGS] ^ b[TCP_FLAGS]) & ~TCP_PSH) == 0 &&
           !(a[TCP_FLAGS] & TCP_PSH) && memcmp(a + 14, b + 14, 2) == 0 &&
           memcmp(a + 18, b + 18, r->head - IP6 - 18) == 0;
}

bool tun_run_add(struct tun_run *r, const uint8_t *pkt, size_t len)
{
    if (r->n == 0) {
        if (len == 0 || len > TUN_RUN_BYTES)
            return false;
        memcpy(r->pkt, pkt, len);
        r->head = head_of(pkt, len);
        r->mss = len - r->head;
        r->len = len;
        r->n = 1;
        r->checked = r->full = false;
        return true;
    }
    if (r->head == 0 || r->full || r->n >= TUN_RUN_PACKETS || head_of(pkt, len) != r->head ||
        len - r->head > r->mss || r->len + len - r->head > TUN_RUN_BYTES || !next_of(r, pkt))
        return false;
    if (!r->checked && !sum_right(r->pkt, r->len)) {
        r->head = 0; /* it goes out as it came, by itself */
        return false;
    }
    r->checked = true;
    if (!sum_right(pkt, len))
        return false;
    memcpy(r->pkt + r->len, pkt + r->head, len - r->head);
    r->len += len - r->head;
    r->n++;
    if (r->pkt[AT_NEXT] == TCP)
        r->pkt[IP6 + TCP_FLAGS] |= pkt[IP6 + TCP_FLAGS];
    /* Nothing comes behind a shorter one, or a push. */
    r->full = len - r->head < r->mss || (r->pkt[AT_NEXT] == TCP && pkt[IP6 + TCP_FLAGS] & TCP_PSH);
    return true;
}

void tun_run_finish(struct tun_run *r)
{
    struct virtio_net_hdr h = {0};
    uint8_t *p = r->pkt, *l4 = p + IP6;
    if (r->n > 1) {
        bool udp = p[AT_NEXT] == UDP;
        size_t at = udp ? UDP_SUM : TCP_SUM;
        h.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        h.gso_type = udp ? VIRTIO_NET_HDR_GSO_UDP_L4 : VIRTIO_NET_HDR_GSO_TCPV6;
        h.hdr_len = (uint16_t)r->head;
        h.gso_size = (uint16_t)r->mss;
        h.csum_start = IP6;
        h.csum_offset = (uint16_t)at;
        put16(p + AT_LENGTH, r->len - IP6);
        if (udp)
            put16(l4 + 4, r->len - IP6);
        uint16_t sum = fold(pseudo(p, r->len - IP6, p[AT_NEXT]));
        memcpy(l4 + at, &sum, sizeof sum);
    }
    memcpy(p - TUN_OFFLOAD_HEADER, &h, sizeof h);
}
