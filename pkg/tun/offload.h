/* SPDX-License-Identifier: Apache-2.0
 *
 * tun/offload.h - the virtio header that the kernel puts before each packet (IFF_VNET_HDR), and
 * super-packets: many packets of one TCP or UDP flow behind one header, cut apart on the way in and put
 * together on the way out.
 *
 * Pure: bytes in, bytes out. Private to this folder, its tests and the benchmarks.
 */
#ifndef TUN_OFFLOAD_H
#define TUN_OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TUN_OFFLOAD_HEADER = 10,  /* the short struct virtio_net_hdr */
    TUN_RUN_PACKETS = 52,     /* in one super-packet: as many as may stand between two looks at a fence */
    TUN_RUN_BYTES = 65535,    /* of one super-packet */
    TUN_SUPER_HEAD_MAX = 256, /* network and transport header of a super-packet that we cut */
};

/* `buf` holds the header and a packet of `len` bytes. Completes a checksum that the kernel left to be done;
 * false: it left segmentation, or a checksum that is not inside the packet, and nothing was changed. */
bool tun_offload_finish(uint8_t *buf, size_t len);

/* The kernel left segmentation to be done. */
bool tun_offload_is_super(const uint8_t *buf);
typedef void (*tun_offload_fn)(void *arg, uint8_t *pkt, size_t len);
/* Cuts an IPv6 TCP or UDP super-packet and calls `fn` for each packet, in order: whole, with its checksum; it
 * may be changed in place, and so may the TUN_OFFLOAD_HEADER bytes before it. Returns their number; 0: it is
 * something else, or its sizes do not fit together, and `fn` was not called. */
unsigned tun_offload_cut(uint8_t *buf, size_t len, tun_offload_fn fn, void *arg);

/* Packets that wait to be written as one. */
struct tun_run {
    uint8_t *pkt;     /* TUN_RUN_BYTES, and TUN_OFFLOAD_HEADER before them; the owner sets it once */
    unsigned n;       /* packets; 0 = empty */
    size_t len;       /* bytes */
    size_t head, mss; /* headers; payload of each packet but the last. head 0 = nothing can be added */
    bool checked;     /* the first packet's checksum has been looked at */
    bool full;        /* its last packet is a shorter one, or pushes */
};
/* Adds a packet (copied). True: it is in the run. False: it does not belong behind what is there (another
 * flow or size, a checksum that is wrong, the run is full), or it is longer than TUN_RUN_BYTES; the run is as
 * before. Any packet goes into an empty run; a run of one is written as it came. */
bool tun_run_add(struct tun_run *r, const uint8_t *pkt, size_t len);
/* Fills in the virtio header and, for more than one packet, lengths and the start of the checksum. */
void tun_run_finish(struct tun_run *r);

#endif
