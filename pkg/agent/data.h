/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/data.h - the data threads (one, or several): join masque and tun, run to completion; orders and
 * reports over bounded rings.
 *
 * With several, each has its own sockets, its own queue of each TUN, and the sessions that began on it; the
 * kernel brings a session's datagrams to its thread (masque/threads.h), and packets of the VPC that come
 * elsewhere are carried there. What is said of "the data thread" below holds for each by itself: an order for
 * a flow goes to the flow's thread only, and so does its barrier; TUNs, the drain and heartbeats are told as
 * one.
 *
 * Control calls these functions from its own thread only. An order never waits: it is pushed to the ring
 * (BASE_EFULL when that is full, which the caller treats as a stalled data thread). Five orders are kept
 * then, and sent when there is room: close, the end of a TUN, drain, reload, limits; see agent_data_retry.
 * Reports come back through `report`, called on the control thread by agent_data_drain when agent_data_fd is
 * readable. Fence slots are written by control directly, without an order: a cutoff never waits for the data
 * thread.
 */
#ifndef AGENT_DATA_H
#define AGENT_DATA_H

#include "masque/endpoint.h"

struct agent_data;

/* AGENT_REPORT_GAP: the 100 ms heartbeat was late by more than the gap; everything queued was dropped. No
 * packet passes before the callback for this report has returned: by then control has shut every fence whose
 * claim proof is not younger than `at` (contract section 9). */
enum agent_report_kind {
    AGENT_REPORT_REQUEST = 1, /* rq */
    AGENT_REPORT_ENDED,       /* flow, end, detail */
    AGENT_REPORT_STOPPED,  /* flow: the barrier; no packet of it is in flight, its queues are empty, its slot
                              is free */
    AGENT_REPORT_TUN,      /* tun_id, code, detail: answer to agent_data_tun_open */
    AGENT_REPORT_TUN_LOST, /* tun_id, code, detail: EBADFD, EIO, EFAULT: the device is gone, its descriptor
                              closed */
    AGENT_REPORT_TUN_CLOSED, /* tun_id; its descriptor is closed */
    AGENT_REPORT_GAP,        /* at: see above */
    AGENT_REPORT_DRAINED,    /* no connection is left */
};
struct agent_report {
    enum agent_report_kind kind;
    uint64_t flow;
    uint32_t tun_id;
    int code;
    enum masque_end end;
    base_time at;
    struct masque_request rq; /* its token is the callback's */
    char detail[512];
};
typedef void (*agent_report_fn)(void *arg, const struct agent_report *r);

/* What one session may send into the VPC (RFC 9484 section 11), a second; 0 = no limit. A tenth of it may
 * come at once, and 64 packets or 64 KiB in any case. */
struct agent_rate {
    uint32_t packets;
    uint64_t bytes;
};
/* What all connectors of one tenant may have or do together; 0 = no limit. Tenants are told apart by their
 * certificates (see agent/data_flows.h); bearer tokens do not count. */
struct agent_tenant_limits {
    uint32_t sessions;
    uint32_t requests; /* a second; a tenth of it, and 16 in any case, at once */
    uint32_t packets;  /* a second, both directions; a tenth of it, and 64 in any case, at once */
};
struct agent_data_config {
    unsigned threads; /* 0 and 1: one; at most MASQUE_THREADS_MAX */
    struct masque_h3_config
        h3; /* its events and arg are overwritten; also what HTTP/2 has in common with it */
    bool http2;
    bool no_tun_offload; /* each packet by itself to and from the TUN */
    struct masque_h2_limits h2;
    base_time gap; /* 500 ms */
    struct agent_rate rate;
    struct agent_tenant_limits tenant;
    struct loop_log *log;
};
/* Binds, loads certificates and starts the thread (so that bad input is reported here, by code and text). */
int agent_data_new(struct agent_data **ret, const struct agent_data_config *cfg, agent_report_fn report,
                   void *arg, struct base_err *err);
/* Stops and joins the thread; ends every connection. NULL ok. */
struct agent_data *agent_data_free(struct agent_data *d);
int agent_data_fd(const struct agent_data *d);
/* Sends what is kept. True: there still was no room for all of it. agent_data_drain_reports does it, too, but
 * a thread that has read its orders need not have a report. */
bool agent_data_retry(struct agent_data *d);
void agent_data_drain_reports(struct agent_data *d);
uint16_t agent_data_port(const struct agent_data *d);
unsigned agent_data_threads(const struct agent_data *d);
/* CLOCK_BOOTTIME of the last heartbeat (every 100 ms), of the thread that is furthest behind. Any thread. */
base_time agent_data_heartbeat(const struct agent_data *d);

/* Opens the foundation's TUN `device` under the caller's number; never creates one. */
int agent_data_tun_open(struct agent_data *d, uint32_t tun_id, const char *device, int mtu);
/* Several threads: BASE_EFULL as for the orders that are kept. */
int agent_data_tun_close(struct agent_data *d, uint32_t tun_id);

#define AGENT_DESTINATIONS_MAX 64
struct agent_admit {
    uint64_t flow;
    uint32_t tun_id;
    struct base_prefix prefix; /* the connector's /96 */
    struct base_ip6 tunnel_ip; /* the tunnel's own address: ::1 of the pool's index 0 */
    struct base_prefix pool;   /* the service's pool: no connector reaches another one. len 0 = unknown, then
                                  only the   connector's own /96 and index 0 are out of reach */
    uint8_t n_destinations;
    struct base_prefix destinations[AGENT_DESTINATIONS_MAX];
    const struct fence_slot *slot;
};
int agent_data_admit(struct agent_data *d, const struct agent_admit *a);
int agent_data_refuse(struct agent_data *d, uint64_t flow, int status, const char *reason,
                      unsigned retry_after);
/* Barrier: the caller has killed the slot. Answer: AGENT_REPORT_STOPPED (also when the flow is unknown by
 * now). */
int agent_data_stop(struct agent_data *d, uint64_t flow);
/* Ends the flow's stream. BASE_EFULL here and below: kept, see above. */
int agent_data_close(struct agent_data *d, uint64_t flow);
int agent_data_drain(struct agent_data *d);
int agent_data_reload(struct agent_data *d);
/* New values of connections (at most those of the start), per_source, handshakes, queue_packets, queue_bytes.
 * Connections and packets beyond a lower limit stay; new ones do not come in. */
int agent_data_limits(struct agent_data *d, const struct masque_h3_limits *limits);

struct agent_data_stats {
    struct masque_h3_stats h3;
    struct masque_h2_stats h2;
    uint64_t tun_in, tun_out, tun_bytes_in, tun_bytes_out, drop_source, drop_destination, drop_malformed,
        drop_hop_limit, drop_no_session, drop_fence, drop_tun_full, drop_rate, drop_tenant,
        full_tenant_sessions, full_tenant_requests, icmp_sent, gaps, orders_refused, reports_refused;
    uint64_t carried, drop_carried; /* to other threads; lost because those were behind with their work */
};
/* A snapshot (relaxed atomics); any thread. */
void agent_data_stats(const struct agent_data *d, struct agent_data_stats *ret);

#endif
