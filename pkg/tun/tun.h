/* SPDX-License-Identifier: Apache-2.0
 *
 * tun/tun.h - one queue of the foundation's TUN device: opened, never created.
 *
 * Driving. The device is made by the foundation (persistent, owner = this uid,
 * IFF_TUN|IFF_NO_PI|IFF_VNET_HDR| IFF_MULTI_QUEUE, up, named hf*); this process needs no capability. A struct
 * tun belongs to one thread at a time; opening and closing take the kernel's network lock (up to 70 ms while
 * a device is being deleted), so the data thread does neither. Offloads are off until tun_offload: each read
 * and write is one whole IPv6 packet then. Nothing is written without a `struct fence_pass`, which is checked
 * again with a fresh clock right before the write. Source: architecture "Fence", contract sections 1 and 2
 * (HostAttachment).
 */
#ifndef TUN_TUN_H
#define TUN_TUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct fence_pass;
struct tun;

enum {
    TUN_HEADROOM = 10,      /* virtio_net_hdr: writable bytes that must stand before each packet */
    TUN_PACKET_MAX = 65575, /* the largest IPv6 packet without jumbo payload */
    TUN_MTU_MIN = 1280,
};

/* Attaches a queue to `device`. `mtu` is what the foundation says; it must be the device's own.
 *   BASE_EDENIED  there is no such device here, or another user owns it, or it has no owner at all
 *   BASE_EINVAL   the name, MTU, kind or flags are not what the foundation makes
 *   BASE_EIO      no /dev/net/tun, no access to it, the device is down, or was replaced meanwhile
 *   BASE_ENOMEM
 * The text says what to check. Nothing is left behind on failure; no device is ever created. */
int tun_open(struct tun **ret, const char *device, int mtu, struct base_err *err);
/* Detaches the queue. NULL ok. */
struct tun *tun_free(struct tun *t);
BASE_DEFINE_CLEANUP(struct tun *, tun_free)

/* From now on the kernel may hand over many packets of one flow as one (tun_read cuts them), and tun_put puts
 * such packets together. False: the kernel has no such thing, all stays as it is. */
bool tun_offload(struct tun *t);

int tun_fd(const struct tun *t); /* for poll; owned by t */
const char *tun_device(const struct tun *t);
int tun_mtu(const struct tun *t);
/* Packets that the kernel may hold for this queue: whoever has read that many has read all that waited
 * before. */
unsigned tun_queue_len(const struct tun *t);

/* One packet out of the queue; may be changed in place, TUN_HEADROOM writable bytes stand before it; gone
 * when the function returns. */
typedef void (*tun_packet_fn)(void *arg, uint8_t *pkt, size_t len);
/* Reads up to `max` times and calls `fn` for each packet (NULL = throw away); with offload a read may bring
 * up to 64 KiB of packets. Returns BASE_OK: `max` were read, there may be more; BASE_EAGAIN: none is left;
 * BASE_ECLOSED: the device is gone (EBADFD, EIO, EFAULT; *err says which). */
int tun_read(struct tun *t, unsigned max, tun_packet_fn fn, void *arg, struct base_err *err);

/* Writes one packet towards the VPC; the TUN_HEADROOM bytes before it are overwritten.
 *   BASE_EDENIED  no pass, or it does not hold any more: nothing was written
 *   BASE_EFULL    the kernel has no room now: dropped
 *   BASE_EINVAL   the kernel refuses the packet: dropped
 *   BASE_ECLOSED  the device is gone; *err (may be NULL) says which error */
int tun_write(struct tun *t, const struct fence_pass *pass, uint8_t *pkt, size_t len, struct base_err *err);

/* The same for a packet that may wait for others of its flow until the caller calls tun_flush, which it does
 * before it looks for orders again and before it waits. Without offload it is tun_write. Besides its codes:
 *   BASE_EAGAIN   it does not go with what waits: call tun_flush, then this again
 * BASE_OK does not mean that it was written. */
int tun_put(struct tun *t, const struct fence_pass *pass, uint8_t *pkt, size_t len, struct base_err *err);
struct tun_flushed {
    unsigned sent, lost; /* packets, since the last call */
    size_t bytes;        /* of those that were sent */
};
/* Writes what waits, at most 52 packets under one pass, which is checked again with a fresh clock right
 * before the write. Codes as of tun_write; BASE_OK also when nothing waits. */
int tun_flush(struct tun *t, struct tun_flushed *ret, struct base_err *err);
/* Throws away what waits; returns the number of packets. */
unsigned tun_discard(struct tun *t);

#endif
