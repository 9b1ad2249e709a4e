/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate: on ingress and egress of a TUN a packet passes when the /96 of its source (ingress: from the
 * provider) or destination (egress: to the provider) has a deadline in the future. Everything else is
 * dropped. The deadline is absolute: no timer has to fire and no process has to run for the gate to close.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "gate_abi.h"

#define ETH_P_IPV6 0x86dd
#define SOURCE 8
#define DESTINATION 24

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, GATE_MAX);
    __type(key, struct gate_key);
    __type(value, struct gate_value);
} gate SEC(".maps");

/* Not read here: the foundation keeps it in the kernel, so that it outlives the process and ends with the
 * boot. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, GATE_MAX);
    __type(key, struct route_key);
    __type(value, struct route_value);
} route SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, RECORD_MAX);
    __uint(key_size, 16);
    __uint(value_size, 72);
} record SEC(".maps");

static __always_inline int open_for(struct __sk_buff *skb, int offset)
{
    struct gate_key k = {.ifindex = skb->ifindex};
    struct gate_value *v;

    if (skb->protocol != bpf_htons(ETH_P_IPV6) || bpf_skb_load_bytes(skb, offset, k.prefix, sizeof k.prefix))
        return 0;
    v = bpf_map_lookup_elem(&gate, &k);
    return v && bpf_ktime_get_boot_ns() < v->deadline;
}

SEC("tc")
int gate_ingress(struct __sk_buff *skb)
{
    if (!open_for(skb, SOURCE))
        return TC_ACT_SHOT;
    skb->mark = GATE_MARK;
    return TC_ACT_OK;
}

SEC("tc")
int gate_egress(struct __sk_buff *skb)
{
    return open_for(skb, DESTINATION) ? TC_ACT_OK : TC_ACT_SHOT;
}

char gate_license[] SEC("license") = "GPL";
