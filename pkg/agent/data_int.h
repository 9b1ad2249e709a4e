/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/data_int.h - what the files of the data thread share. Private.
 *
 *   data.c        control's side: orders in, reports out, the thread's life
 *   data_loop.c   the thread: poll, heartbeat and gap, orders, flush
 *   data_path.c   one packet's way, in both directions
 *   data_flows.c  the table of flows (pure)
 */
#ifndef AGENT_DATA_INT_H
#define AGENT_DATA_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/data.h"
#include "agent/data_flows.h"
#include "loop/log.h"
#include "loop/loop.h"
#include "loop/ring.h"
#include "tun/tun.h"

enum {
    AGENT_TUNS_MAX = 64,
    AGENT_ORDERS_MAX = 1024,
    AGENT_REPORTS_MAX = 1024,
    AGENT_ORDERS_PER_TURN = 64,
    AGENT_CONNECTIONS_DEFAULT = 4096, /* as masque_h3_limits says for 0 */
};
#define AGENT_HEARTBEAT (100 * BASE_MS)
#define AGENT_GAP_DEFAULT (500 * BASE_MS)

enum agent_order_kind {
    AGENT_ORDER_TUN_OPEN = 1, /* tun_id, tun (opened by control), or code and text: why it could not be */
    AGENT_ORDER_TUN_CLOSE,
    AGENT_ORDER_ADMIT,
    AGENT_ORDER_REFUSE,
    AGENT_ORDER_STOP,
    AGENT_ORDER_CLOSE,
    AGENT_ORDER_DRAIN,
    AGENT_ORDER_RELOAD,
    AGENT_ORDER_LIMITS,
    AGENT_ORDER_QUIT,
};
struct agent_order {
    enum agent_order_kind kind;
    uint64_t flow;
    uint32_t tun_id;
    int code, status;
    unsigned retry_after;
    struct tun *tun;
    struct masque_h3_limits limits;
    char text[512];
    struct agent_admit admit;
};
struct agent_message { /* data to control */
    struct agent_report r;
    struct tun *close; /* control closes it: that takes the kernel's network lock, the data thread must not
                          wait there */
};

struct agent_tun {
    uint32_t id;
    struct tun *t; /* NULL = free */
    bool lost;     /* seen; reported at the end of the iteration */
    char why[256];
};

/* Counters are plain in the data thread and published as words once per iteration. */
enum { AGENT_STAT_WORDS = sizeof(struct agent_data_stats) / sizeof(uint64_t) };
_Static_assert(sizeof(struct agent_data_stats) % sizeof(uint64_t) == 0, "published word by word");

struct agent_data {
    /* set before the thread starts, constant afterwards */
    base_time gap;
    struct agent_rate rate;
    struct agent_tenant_limits tenant;
    bool tun_offload;
    struct loop_log *log;
    struct loop_ring *orders, *reports;
    uint16_t port;
    uint32_t max_flows;

    /* both threads */
    atomic_bool quit;
    _Atomic base_time heartbeat;
    _Atomic base_time
        gap_handled; /* control has handled the gap reported with this time, and all earlier ones */
    _Atomic uint64_t published[AGENT_STAT_WORDS];

    /* control only */
    agent_report_fn report;
    void *report_arg;
    pthread_t thread;
    bool started;

    /* data thread only (before it starts and after it has ended: control) */
    struct masque_endpoint *ends;
    struct agent_flows *flows;
    struct agent_tun tuns[AGENT_TUNS_MAX];
    bool tun_filled; /* packets wait in `filled`, for more of their flow */
    uint32_t filled;
    struct agent_data_stats n;
    base_time beat;   /* when this iteration began */
    base_time gap_at; /* the last gap; nothing passes while gap_handled is before it */
    bool gap_pending; /* queues are still to be emptied */
    bool gap_due;     /* control is still to be told */
    bool draining;
    bool orders_left;              /* the last turn did not empty the ring */
    struct agent_message *waiting; /* reports that the ring had no room for, in order */
    uint32_t n_waiting, waiting_head, max_waiting;
    struct agent_message message; /* scratch: reports are large */
    struct agent_order order;
    uint8_t icmp[TUN_HEADROOM + TUN_PACKET_MAX];
};

/* ---- data_loop.c ---- */
void *agent_data_run(void *arg);
/* Fresh clock; notices a gap within an iteration. */
base_time agent_data_clock(struct agent_data *d);
/* True while nothing may pass because of a gap. */
bool agent_data_held(const struct agent_data *d);
/* Events of the endpoint. */
void agent_data_on_request(void *arg, const struct masque_request *rq);
void agent_data_on_ended(void *arg, uint64_t flow, enum masque_end why, const char *detail);

/* ---- data_path.c ---- */
void agent_data_on_packet(void *arg, uint64_t flow, uint8_t *pkt, size_t len);
/* Reads some `max` packets from the TUN; those for open flows go to their queues. */
void agent_data_tun_burst(struct agent_data *d, uint32_t tun, unsigned max);
/* The same for all that the kernel held when it was called. */
void agent_data_tun_all(struct agent_data *d, uint32_t tun);
/* Writes what waits for a TUN. Called before orders are looked at: a stopped flow has nothing in flight. */
void agent_data_tun_flush(struct agent_data *d);
/* Reads and throws away what the kernel holds. */
void agent_data_tun_empty(struct agent_data *d, uint32_t tun);

#endif
