/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/data_int.h - what the files of the data thread share. Private.
 *
 *   data.c         control's side: orders in, reports out, the threads' life
 *   data_book.c    which threads have which TUN; their answers as one
 *   data_loop.c    a thread: poll, heartbeat and gap, orders, flush
 *   data_path.c    one packet's way, in both directions
 *   data_carry.c   what comes to one thread and belongs to another
 *   data_mail.c    the way between two threads (pure)
 *   data_flows.c   the table of a thread's flows (pure)
 *   data_shared.c  what threads have in common: who has which prefix, tenants (pure)
 *
 * A thread owns its sockets, its queue of each TUN, its flows and their packets; no other thread, and not
 * control, touches them. A flow's number tells its thread (masque/threads.h).
 */
#ifndef AGENT_DATA_INT_H
#define AGENT_DATA_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/data.h"
#include "agent/data_flows.h"
#include "agent/data_mail.h"
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
    AGENT_ADMITS_MAX = 256,           /* that wait for the other threads */
    AGENT_MAIL_BYTES = 1 << 19,       /* from one thread to another: some 400 packets */
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

struct agent_thread {
    /* set before the thread starts, constant afterwards */
    base_time gap;
    struct agent_rate rate;
    struct agent_tenant_limits tenant;
    bool tun_offload;
    struct loop_log *log;
    struct loop_ring *orders, *reports;
    uint32_t max_flows;
    struct agent_data *all;
    unsigned index, count; /* of all threads */
    int mail_fd;           /* eventfd: something came by mail, or `sweep`; -1 = alone */

    /* both threads */
    atomic_bool quit;
    atomic_uint sweeps_asked, sweeps_done; /* see agent_data_admit_later */
    atomic_bool sweeps_awaited;            /* this thread waits for others' */
    _Atomic base_time heartbeat;
    _Atomic base_time
        gap_handled; /* control has handled the gap reported with this time, and all earlier ones */
    _Atomic uint64_t published[AGENT_STAT_WORDS];

    /* control only */
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
    bool mail_left;             /* more came while the last was read */
    uint64_t mail_put;          /* threads, as bits, that have letters that are not posted yet */
    struct agent_admit *admits; /* a ring of AGENT_ADMITS_MAX; NULL = alone */
    unsigned admits_head, n_admits, n_round;
    unsigned round[MASQUE_THREADS_MAX]; /* what sweeps_done of each other thread must reach for the first
                                           n_round of them */
    bool orders_left;                   /* the last turn did not empty the ring */
    struct agent_message *waiting;      /* reports that the ring had no room for, in order */
    uint32_t n_waiting, waiting_head, max_waiting;
    struct agent_message message; /* scratch: reports are large */
    struct agent_order order;
    uint8_t icmp[TUN_HEADROOM + TUN_PACKET_MAX];
};

/* ---- data_book.c: control only ---- */
struct agent_book_tun {
    uint32_t id;
    bool used, lost, closing; /* lost: told; closing: control wants it closed */
    uint64_t have, asked;     /* threads, as bits: have a queue, or may have; got the order to close it */
    unsigned answers;         /* still to come, to the order to take it */
    int code;
    char detail[512];
};
struct agent_book {
    struct agent_book_tun at[AGENT_TUNS_MAX];
};

/* Orders to all threads that each must get, sooner or later. */
enum agent_for_all { AGENT_FOR_ALL_DRAIN = 0, AGENT_FOR_ALL_RELOAD, AGENT_FOR_ALL_LIMITS, AGENT_FOR_ALL_N };

struct agent_data {
    unsigned n;
    struct agent_thread *at[MASQUE_THREADS_MAX];
    struct masque_shared counts;
    struct agent_shared *shared; /* NULL = one thread */
    struct agent_mail **mail;    /* n * n: from * n + to; NULL = one thread */
    bool tun_offload;

    /* control only */
    agent_report_fn report;
    void *report_arg;
    int poll;                       /* epoll: the threads' rings of reports; -1 = one thread */
    uint64_t drained;               /* threads, as bits, that have no connection left */
    uint64_t owed[AGENT_FOR_ALL_N]; /* threads, as bits, that had no room for this order */
    struct masque_h3_limits limits; /* of AGENT_FOR_ALL_LIMITS */
    uint64_t *closes;               /* flows whose threads had no room for the order to close them */
    uint32_t n_closes, max_closes;
    struct agent_book book;
};

/* An order to one thread: BASE_OK or BASE_EFULL. */
int agent_data_push(struct agent_thread *t, const struct agent_order *o);

int agent_book_open(struct agent_data *d, uint32_t tun_id, const char *device, int mtu);
int agent_book_close(struct agent_data *d, uint32_t tun_id);
/* A thread's report about a TUN. False: control need not hear of it (yet); else *r may have been changed. */
bool agent_book_report(struct agent_data *d, unsigned thread, struct agent_report *r);
/* Sends what did not fit into a thread's ring before. True: it still does not. */
bool agent_book_retry(struct agent_data *d);

/* ---- data_loop.c ---- */
void *agent_data_run(void *arg);
/* Fresh clock; notices a gap within an iteration. */
base_time agent_data_clock(struct agent_thread *d);
/* True while nothing may pass because of a gap. */
bool agent_data_held(const struct agent_thread *d);
/* Events of the endpoint. */
void agent_data_on_request(void *arg, const struct masque_request *rq);
void agent_data_on_ended(void *arg, uint64_t flow, enum masque_end why, const char *detail);

/* ---- data_path.c ---- */
void agent_data_on_packet(void *arg, uint64_t flow, uint8_t *pkt, size_t len);
/* Reads some `max` packets from the TUN; those for open flows go to their queues. */
void agent_data_tun_burst(struct agent_thread *d, uint32_t tun, unsigned max);
/* The same for all that the kernel held when it was called. */
void agent_data_tun_all(struct agent_thread *d, uint32_t tun);
/* Writes what waits for a TUN. Called before orders are looked at: a stopped flow has nothing in flight. */
void agent_data_tun_flush(struct agent_thread *d);
/* Reads and throws away what the kernel holds. */
void agent_data_tun_empty(struct agent_thread *d, uint32_t tun);
/* A packet that another thread's queue of the same TUN had. */
void agent_data_carried(struct agent_thread *d, const struct agent_letter *l, uint8_t *pkt);

/* ---- data_carry.c: with one thread none of it does anything ---- */
/* A packet for no flow of this thread. */
void agent_data_carry(struct agent_thread *d, uint32_t tun, const uint8_t *pkt, size_t len);
/* Event of the endpoint. */
void agent_data_on_stray(void *arg, unsigned thread, const struct masque_udp_in *in);
/* Takes what others have sent; while this thread is held, packets are dropped. */
void agent_data_mail_take(struct agent_thread *d, bool woken);
/* Sends what was put since; throws it away when this thread was stopped meanwhile. Called before the thread
 * waits, and before it looks at its orders again. */
void agent_data_mail_post(struct agent_thread *d);
/* What waits for a prefix in any queue of its TUN passed the gate of an earlier generation. An admission is
 * put off until all threads have read their queues while nobody has the prefix. A thread that has been
 * stopped for longer than the gap is not waited for: it throws away what it has before it does anything else.
 * False: too many wait. */
bool agent_data_admit_later(struct agent_thread *d, const struct agent_admit *a);
/* The next one whose time has come, or NULL; it is gone at the next call. */
const struct agent_admit *agent_data_admit_next(struct agent_thread *d, base_time now);

#endif
