/* SPDX-License-Identifier: Apache-2.0
 *
 * dataplane/rig.h - the data thread, or several, between a CONNECT-IP client and a VPC host, in a network
 * namespace of its own.
 *
 *   client --QUIC on ::1-- agent_data (thread) --TUN hf00000001-- kernel -- VPC host: UDP socket on fd20::10
 *
 * The main thread plays control, client and VPC host. A helper process that stays root deletes devices and
 * stops single threads (ptrace), as the foundation and the kernel's scheduler would. Every test packet
 * carries the CLOCK_BOOTTIME of its sending, read before it is sent: "a packet sent after the deadline never
 * passes" is then exact, however late any thread runs.
 */
#ifndef DATAPLANE_RIG_H
#define DATAPLANE_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/data.h"
#include "client.h"
#include "fence/fence.h"
#include "loop/loop.h"

#define RIG_DEV "hf00000001"
#define RIG_DEV2 "hf00000002"
#define RIG_HOST "fd20::10"   /* the VPC host, inside the destinations */
#define RIG_OUTSIDE "fd30::1" /* reachable for the kernel, outside the destinations */
#define RIG_TUNNEL "fd12:0:0:1::1"
#define RIG_TUN_MTU 1500
enum { RIG_PORT = 7001, RIG_CLIENT_PORT = 7000, RIG_FLOWS = 8, RIG_SEEN = 64, RIG_THREADS = 4 };

/* What one side has received. */
struct rig_rx {
    uint64_t n, bad;            /* test packets; with a wrong form */
    base_time last;             /* latest time of sending */
    base_time ban_from, ban_to; /* packets sent in [from, to) must not come */
    uint64_t banned;
    uint8_t hop_limit;        /* of the last one */
    size_t len;               /* of the last one, whole IP packet */
    int icmp_type, icmp_code; /* last ICMPv6 message, -1 = none */
    uint32_t icmp_word;
    uint64_t icmp_n;
    uint8_t icmp_from[16];
    size_t icmp_len;
    uint8_t icmp[2048];
};

struct rig_flow { /* one connector */
    struct dp_client *client;
    struct rig_rx rx; /* at the client */
    unsigned n;       /* its /96 is fd12::1:0:<n>:0:0 */
    struct fence_slot *slot;
};

struct rig {
    const char *dir; /* of the PKI */
    unsigned threads;
    struct agent_data *d;
    struct fence_table *slots;
    int vpc, helper;
    bool failed;
    bool deaf;                          /* control does not take reports */
    uint64_t n_stopped, last_stopped;   /* reports of the barrier, the last one's flow */
    struct rig_rx rx;                   /* at the VPC host */
    struct agent_report seen[RIG_SEEN]; /* reports, oldest first */
    unsigned n_seen;
    uint64_t n_settle, settled;
    void (*on_gap)(struct rig *r, const struct agent_report *gap); /* called within the report */
    struct rig_flow flows[RIG_FLOWS];
    const char *names[RIG_FLOWS]; /* certificates; NULL = site-1 to site-4 in turn */
};

#define CHECK(r, cond, ...)                                                                                  \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            (r)->failed = true;                                                                              \
            (void)printf("  %s:%d: not so: %s: ", __FILE__, __LINE__, #cond);                                \
            (void)printf(__VA_ARGS__);                                                                       \
            (void)printf("\n");                                                                              \
        }                                                                                                    \
    } while (0)
#define NEED(r, cond, ...)                                                                                   \
    do {                                                                                                     \
        bool need_ = (cond);                                                                                 \
        if (!need_) {                                                                                        \
            (r)->failed = true;                                                                              \
            (void)printf("  %s:%d: needed: %s: ", __FILE__, __LINE__, #cond);                                \
            (void)printf(__VA_ARGS__);                                                                       \
            (void)printf("\n");                                                                              \
            return;                                                                                          \
        }                                                                                                    \
    } while (0)

void rig_open(struct rig *r, const char *dir, unsigned threads, const struct agent_tenant_limits *tenant);
void rig_close(struct rig *r);
/* Plays every part for `d`. */
void rig_run(struct rig *r, base_time d);
/* Runs until a report of this kind (and flow or TUN, 0 = any) has come, takes it out and returns true; false
 * after 5 s. */
bool rig_wait(struct rig *r, enum agent_report_kind k, uint64_t id, struct agent_report *ret);
/* Lets the data thread take in and send whatever is there. */
void rig_settle(struct rig *r);
/* Asks the helper: "pause" (all data threads), "pause 1" (one), "resume" (what was paused), "delete NAME",
 * "make NAME" (with the route). */
void rig_helper(struct rig *r, const char *command);

/* The data thread stands still for `d` within an iteration, once: right after it has taken in the next packet
 * from a client (`up`) or from the VPC (stall.c). */
void rig_stall(bool up, base_time d);
bool rig_stalled(void);
/* Likewise, once: right before it posts the next letters for another thread; when it next looks whether
 * others are done, so that it may admit a session. */
void rig_stall_post(base_time d);
void rig_stall_admit(base_time d);
/* The n-th thread from now on cannot be started (0: all can). */
void rig_fail_thread(unsigned n);
/* Orders to this thread, which does not run, until it has no room for more. */
unsigned rig_fill_orders(struct rig *r, unsigned thread);
/* Packets for the VPC wait for others of their flow (the kernel takes super-packets). */
bool rig_tun_collects(void);
/* From now on the kernel refuses super-packets on a device, as one before Linux 6.2 does those of UDP. */
void rig_old_kernel(bool is);
unsigned rig_kernel_refused(void); /* so many */

bool rig_open_tun(struct rig *r, uint32_t id, const char *device);
/* Connects client i and waits for its request: the flow id, 0 = failed. */
uint64_t rig_request(struct rig *r, unsigned i, const char *path);
/* Fills an order for prefix n, with a fresh slot that is closed. */
struct agent_admit rig_order(struct rig *r, uint64_t flow, unsigned n, uint32_t tun_id);
/* Request, order, open fence, 200 at the client. Returns the flow id, 0 = failed. */
uint64_t rig_session(struct rig *r, unsigned i, unsigned n, uint32_t tun_id);

/* Fills an order like rig_order, and opens its fence. */
struct agent_admit rig_prepare(struct rig *r, unsigned i, uint64_t flow, unsigned n, uint32_t tun_id);
/* What rig_session does after the request. */
uint64_t rig_admit(struct rig *r, unsigned i, uint64_t flow, unsigned n, uint32_t tun_id);
/* The same on this data thread: connects until the kernel has chosen it. */
uint64_t rig_request_on(struct rig *r, unsigned thread, unsigned i);
uint64_t rig_session_on(struct rig *r, unsigned thread, unsigned i, unsigned n, uint32_t tun_id);

/* Test packets of `size` bytes (whole IP packet). True = sent. */
bool rig_up(struct rig *r, unsigned i, const char *src, const char *dst, uint8_t hop, size_t size);
bool rig_down(struct rig *r, const char *dst, size_t size);
/* From another port of the VPC host. */
bool rig_down_from(struct rig *r, const char *dst, size_t size, uint16_t port);
/* `n` packets as one, which the device gets cut or whole, as it asks for. */
bool rig_down_together(struct rig *r, const char *dst, size_t size, unsigned n);
/* "fd12::1:0:<n>:0:5" */
const char *rig_addr(unsigned n);
/* One packet each way arrives; says so when not. */
bool rig_flows(struct rig *r, unsigned i);
void rig_forget(struct rig_rx *rx);

#endif
