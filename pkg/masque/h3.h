/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/h3.h - the CONNECT-IP endpoint over HTTP/3 (RFC 9484, 9297, 9220, 9221).
 *
 * Driving, but without a loop of its own: one data thread owns the endpoint, polls its descriptor, and passes
 * the time. It knows flow ids, not connectors: a flow is one CONNECT-IP request from its arrival to its end,
 * numbered from 1 (of its thread: see masque/threads.h) and never reused. A request is reported once, after the TLS handshake has completed and the
 * client certificate (if there is one) was verified; it waits for masque_h3_accept or masque_h3_refuse. No
 * packet is sent without a `struct fence_pass`; each burst is checked against the flow's fence slot again
 * right before it is handed to the kernel.
 */
#ifndef MASQUE_H3_H
#define MASQUE_H3_H

#include <netinet/in.h>

#include "masque/flow.h"
#include "masque/threads.h"

struct fence_pass;
struct fence_slot;
struct loop_log;
struct masque_h3;

struct masque_h3_limits {                         /* 0 = default (masque.md section 6 figures) */
    uint32_t connections, per_source, handshakes; /* 4096, 64, 256 */
    uint32_t queue_packets, queue_bytes;          /* per flow towards the client: 512, 512 KiB */
    base_time queue_age;                          /* 50 ms */
    base_time stall;                              /* a flush that takes longer was stopped: 500 ms */
    base_time idle;                               /* 60 s */
    base_time handshake;                          /* 10 s */
    base_time answer;                             /* longest wait for accept/refuse: 60 s, then 503 */
    uint32_t header_bytes;                        /* 8 KiB */
    uint32_t rate;     /* new connections a second: 1000; of one network: per_source */
    uint32_t resets;   /* streams reset, by either side, in a minute: 100 */
    base_time headers; /* for a whole header block: 10 s */
    base_time capsule; /* from a capsule's first byte to its last: 30 s */
};
struct masque_udp_in { /* one UDP datagram */
    const uint8_t *data;
    size_t len;
    struct sockaddr_in6 remote, local;
    uint8_t ecn;
};
struct masque_h3_config {
    const char *listen; /* "[::]:4433", "0.0.0.0:4433"; port 0 picks one (masque_h3_port) */
    const char *cert_file, *key_file, *client_ca_file; /* PEM */
    bool bearer;     /* clients without a certificate may connect and send a bearer token; false: every client
                        needs a certificate, and Authorization headers mean nothing */
    bool no_offload; /* no UDP_SEGMENT, no UDP_GRO: one datagram a call */
    bool no_rfc, cloudflare; /* which requests are served: see masque/request.h */
    struct masque_h3_limits limits;
    struct masque_events events;
    /* Several threads only: a datagram that belongs to another one, for its masque_h3_take. Called from
     * _read. */
    void (*stray)(void *arg, unsigned thread, const struct masque_udp_in *in);
    void *arg;
    struct masque_threads threads;
    struct loop_log *log;
};
/* Binds the socket and loads the certificates. BASE_OK, BASE_EINVAL (which file or address, why, remedy),
 * BASE_EIO (port in use, …), BASE_ENOMEM. */
int masque_h3_new(struct masque_h3 **ret, const struct masque_h3_config *cfg, struct base_err *err);
/* Ends every connection at once (CONNECTION_CLOSE), reports nothing. NULL ok. */
struct masque_h3 *masque_h3_free(struct masque_h3 *h);
int masque_h3_fd(const struct masque_h3 *h);
uint16_t masque_h3_port(const struct masque_h3 *h);
/* Loads the certificate files again for new connections; on failure the old ones stay. */
int masque_h3_reload(struct masque_h3 *h, struct base_err *err);
/* Takes connections, per_source, handshakes, queue_packets and queue_bytes for what comes from now on; the
 * other limits stay. */
void masque_h3_set_limits(struct masque_h3 *h, const struct masque_h3_limits *limits);

/* The socket is readable: takes in at most `max_datagrams` UDP datagrams, calls events, queues answers. */
void masque_h3_read(struct masque_h3 *h, base_time now, unsigned max_datagrams);
/* A datagram that another thread's socket had. Calls events like masque_h3_read. */
void masque_h3_take(struct masque_h3 *h, base_time now, const struct masque_udp_in *in);
/* Earliest time at which masque_h3_expire must run. */
base_time masque_h3_expiry(const struct masque_h3 *h);
void masque_h3_expire(struct masque_h3 *h, base_time now);
/* Writes what is queued; `clock` gives a fresh CLOCK_BOOTTIME before each burst. */
void masque_h3_flush(struct masque_h3 *h, base_time now, base_time (*clock)(void));

/* Answers 200 with Capsule-Protocol, then ADDRESS_ASSIGN of `prefix` and ROUTE_ADVERTISEMENT of `routes`
 * (sorted and merged by this function; protocol as asked for). `slot` stays the caller's and must live until
 * the flow has ended or was stopped. BASE_OK, BASE_ENOTFOUND (the flow has ended), BASE_EFULL. */
int masque_h3_accept(struct masque_h3 *h, uint64_t flow, const struct base_prefix *prefix,
                     const struct base_prefix *routes, size_t n_routes, const struct fence_slot *slot);
/* Answers `status` (400..599) with a text/plain body "reason: …\n"; retry_after in s, 0 = none; ends the
 * flow. */
int masque_h3_refuse(struct masque_h3 *h, uint64_t flow, int status, const char *reason,
                     unsigned retry_after);
/* Queues one IP packet towards the client. BASE_OK; BASE_EFULL (dropped, counted), BASE_ENOTFOUND, or
 * BASE_ERANGE when it is longer than masque_h3_mtu (the caller answers with Packet Too Big). The packet is
 * copied. */
int masque_h3_send(struct masque_h3 *h, uint64_t flow, const struct fence_pass *pass, const uint8_t *pkt,
                   size_t len);
/* Largest IP packet that the flow's path carries now (0 = unknown flow). */
size_t masque_h3_mtu(const struct masque_h3 *h, uint64_t flow);
/* Drops the flow's queued packets and stops delivering its packets; the stream stays open. After it returns
 * no packet of this flow is in flight here, and the slot is no longer used. */
void masque_h3_stop(struct masque_h3 *h, uint64_t flow);
/* Until then what comes on the flow's connection is thrown away unread, at next to no cost, for a client that
 * sends more than it may: QUIC takes it as the network's loss, sends what matters again, and slows down. Keep
 * it to milliseconds. */
void masque_h3_hold(struct masque_h3 *h, uint64_t flow, base_time until);
/* Ends the flow's stream and, when it was the last one, its connection. */
void masque_h3_close(struct masque_h3 *h, uint64_t flow, uint64_t h3_error);
/* Drops every packet that waits here, in both directions; flows go on. For a thread that was stopped for too
 * long. */
void masque_h3_discard(struct masque_h3 *h);
/* No new connections or requests; GOAWAY to those that are there. */
void masque_h3_drain(struct masque_h3 *h);

struct masque_h3_stats {
    uint64_t connections, handshakes_failed, requests, refused, datagrams_in, datagrams_out, packets_in,
        packets_out, drop_queue, drop_fence, drop_malformed, drop_early, held, bytes_in, bytes_out;
    /* connections that were turned away, by the limit that was reached; Retries; connections ended for resets */
    uint64_t full_connections, full_source, full_handshakes, full_rate, retries, floods;
    uint64_t strays; /* datagrams that belonged to another thread */
    uint64_t gso;    /* 1: bursts leave as one send; 0: switched off, or the kernel refused one */
    uint32_t open_connections, open_flows;
};
void masque_h3_stats(const struct masque_h3 *h, struct masque_h3_stats *ret);

#endif
