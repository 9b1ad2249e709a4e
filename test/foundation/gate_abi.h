/* SPDX-License-Identifier: Apache-2.0
 *
 * gate_abi.h - what the eBPF program, the foundation and its watchdog agree on. Also compiled for the bpf
 * target.
 */
#ifndef FOUNDATION_GATE_ABI_H
#define FOUNDATION_GATE_ABI_H

#include <linux/types.h>

/* Set by the program on packets from a TUN that passed; nft drops the others and clears it. */
#define GATE_MARK 0x48464754u
/* Interface group of devices that have the program attached; nft lets packets go to no other hf* device. */
#define GATE_GROUP 18502

#define GATE_MAX 8192
#define RECORD_MAX 32768

struct gate_key {
    __u32 ifindex;
    __u8 prefix[12];
};
struct gate_value {
    __u64 deadline; /* ns, CLOCK_BOOTTIME; a packet passes before it */
    __s64 epoch;    /* for the foundation's restart */
    __u8 uid[16];
};
struct route_key {
    __u8 prefix[12];
};
struct route_value {
    __u64 until; /* ns, CLOCK_BOOTTIME; the watchdog withdraws after it */
    __u32 metric;
    __u32 ifindex;
};

#endif
