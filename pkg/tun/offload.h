/* SPDX-License-Identifier: Apache-2.0
 *
 * tun/offload.h - the virtio header that the kernel puts before each packet (IFF_VNET_HDR).
 *
 * Pure: bytes in, bytes out. Private to this folder and its tests.
 */
#ifndef TUN_OFFLOAD_H
#define TUN_OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TUN_OFFLOAD_HEADER = 10 }; /* the short struct virtio_net_hdr */

/* `buf` holds the header and a packet of `len` bytes. Completes a checksum that the kernel left to be done;
 * false: it left segmentation, or a checksum that is not inside the packet, and nothing was changed. With
 * offloads off it leaves neither; a queue of another process can switch them on for the whole device. */
bool tun_offload_finish(uint8_t *buf, size_t len);

#endif
