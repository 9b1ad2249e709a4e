/* SPDX-License-Identifier: Apache-2.0
 *
 * tun/link.h - what the kernel says about a network device (rtnetlink, no capability needed). Driving; keeps
 * nothing. Private to tun: used to give an exact reason before TUNSETIFF answers EPERM to everything.
 */
#ifndef TUN_LINK_H
#define TUN_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct tun_link {
    int index;
    uint32_t mtu, queue_len;
    bool up;
    bool is_tun; /* kind "tun", type TUN (not TAP) */
    bool has_owner;
    uint32_t owner; /* uid */
    bool no_pi, vnet_hdr, multi_queue, persist;
};
/* BASE_OK; BASE_ENOTFOUND: no such device in this network namespace; BASE_EIO; BASE_EPROTO. */
int tun_link_get(struct tun_link *ret, const char *device, struct base_err *err);

#endif
