/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/h2.h - the CONNECT-IP endpoint over HTTP/2 (RFC 9484, 9297, 8441, 9113) on TCP and TLS 1.3.
 *
 * Driving, used like masque/h3.h: one data thread owns it, polls its one descriptor, and passes the time.
 * Flows have MASQUE_FLOW_H2 in their numbers. Packets travel in DATAGRAM capsules on the request stream.
 *
 * What TCP has taken it keeps and sends again for as long as it likes. So little is handed over (a bounded
 * piece at a time, TCP_NOTSENT_LOWAT), each piece after a look at the flow's fence; and a connection whose
 * socket still holds packets when its flow's fence closes, or when the flow is stopped or ends, is reset.
 */
#ifndef MASQUE_H2_H
#define MASQUE_H2_H

#include "masque/flow.h"
#include "masque/threads.h"

struct fence_pass;
struct fence_slot;
struct loop_log;
struct masque_h2;

struct masque_h2_limits {                         /* 0 = default */
    uint32_t connections, per_source, handshakes; /* 4096, 64, 256 */
    uint32_t queue_packets, queue_bytes;          /* per flow towards the client: 512, 512 KiB */
    base_time queue_age;                          /* 50 ms */
    base_time stall;                              /* a flush that takes longer was stopped: 500 ms */
    base_time idle;                               /* without a tunnel: 60 s */
    base_time handshake;                          /* from accept to the end of TLS: 10 s */
    base_time preface;                            /* from there to the client's SETTINGS: 5 s */
    base_time headers;                            /* for a whole header block: 10 s */
    base_time answer;                             /* longest wait for accept/refuse: 60 s, then 503 */
    base_time ping, dead;                         /* silence before a PING, before the end: 15 s, 45 s */
    base_time blocked;                            /* how long the client may read nothing: 30 s */
    base_time capsule;                            /* from a capsule's first byte to its last: 30 s */
    uint32_t header_bytes;                        /* 8 KiB */
    uint32_t window, connection_window;           /* what a client may send ahead: 1 MiB, 4 MiB */
    uint32_t unsent;                              /* bytes in the socket that TCP has not sent yet: 16 KiB */
    uint32_t resets;                              /* streams reset, by either side, in a minute: 100 */
    uint32_t control; /* frames that are no data, a request counts as ten: 1000 at once, a tenth a second */
    uint32_t small;   /* DATA frames that complete no capsule: 4096 more than do */
};
struct masque_h2_config {
    const char *listen;                                /* as for HTTP/3; port 0 picks one */
    const char *cert_file, *key_file, *client_ca_file; /* PEM */
    bool bearer;                                       /* as for HTTP/3 */
    bool no_rfc, cloudflare;                           /* which requests are served: see masque/request.h */
    struct masque_h2_limits limits;
    struct masque_events events;
    void *arg;
    struct masque_threads threads; /* the kernel spreads connections over their listeners */
    struct loop_log *log;
};
/* Binds the socket and loads the certificates. BASE_OK, BASE_EINVAL (which file or address, why, remedy),
 * BASE_EIO (port in use, …), BASE_ENOMEM. */
int masque_h2_new(struct masque_h2 **ret, const struct masque_h2_config *cfg, struct base_err *err);
/* Ends every connection at once, reports nothing. NULL ok. */
struct masque_h2 *masque_h2_free(struct masque_h2 *h);
/* Readable when there is something to read, to accept, or to write again. */
int masque_h2_fd(const struct masque_h2 *h);
uint16_t masque_h2_port(const struct masque_h2 *h);
/* The certificate files again, for new connections: prepare reads them, commit (with what prepare gave)
 * puts them in place or, with `use` false, forgets them. */
struct masque_h2_tls;
int masque_h2_reload_prepare(struct masque_h2 *h, struct masque_h2_tls **ret, struct base_err *err);
void masque_h2_reload_commit(struct masque_h2 *h, struct masque_h2_tls *fresh, bool use);
/* Takes connections, per_source, handshakes, queue_packets and queue_bytes; the other limits stay. */
void masque_h2_set_limits(struct masque_h2 *h, const struct masque_h2_limits *limits);

/* Takes in what has come, at most `max` reads of up to 16 KiB per connection; calls events, queues answers. */
void masque_h2_read(struct masque_h2 *h, base_time now, unsigned max);
/* Earliest time at which masque_h2_expire must run. */
base_time masque_h2_expiry(const struct masque_h2 *h);
void masque_h2_expire(struct masque_h2 *h, base_time now);
/* Writes what is queued; `clock` gives a fresh CLOCK_BOOTTIME before each piece. */
void masque_h2_flush(struct masque_h2 *h, base_time now, base_time (*clock)(void));

/* As the functions of the same name in masque/h3.h. */
int masque_h2_accept(struct masque_h2 *h, uint64_t flow, const struct base_prefix *prefix,
                     const struct base_prefix *routes, size_t n_routes, const struct fence_slot *slot);
int masque_h2_refuse(struct masque_h2 *h, uint64_t flow, int status, const char *reason,
                     unsigned retry_after);
int masque_h2_send(struct masque_h2 *h, uint64_t flow, const struct fence_pass *pass, const uint8_t *pkt,
                   size_t len);
size_t masque_h2_mtu(const struct masque_h2 *h, uint64_t flow);
/* Like masque_h3_stop; when packets of the flow are still in the socket, its connection is reset here and
 * now. */
void masque_h2_stop(struct masque_h2 *h, uint64_t flow);
/* Ends the flow's stream and its connection. */
void masque_h2_close(struct masque_h2 *h, uint64_t flow);
/* Drops every packet that waits here; a connection that has begun to write some is reset. */
void masque_h2_discard(struct masque_h2 *h);
/* No new connections or requests; GOAWAY to those that are there. */
void masque_h2_drain(struct masque_h2 *h);

struct masque_h2_stats {
    uint64_t connections, handshakes_failed, requests, refused, packets_in, packets_out, drop_queue,
        drop_fence, drop_malformed, drop_early, bytes_in, bytes_out, resets_fence, floods;
    uint32_t open_connections, open_flows;
};
void masque_h2_stats(const struct masque_h2 *h, struct masque_h2_stats *ret);

#endif
