/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/h3.h - the CONNECT-IP endpoint over HTTP/3 (RFC 9484, 9297, 9220, 9221).
 *
 * Driving, but without a loop of its own: one data thread owns the endpoint, polls its descriptor, and passes
 * the time. It knows flow ids, not connectors: a flow is one CONNECT-IP request from its arrival to its end,
 * numbered from 1 and never reused. A request is reported once, after the TLS handshake has completed and the
 * client certificate (if there is one) was verified; it waits for masque_h3_accept or masque_h3_refuse. No
 * packet is sent without a `struct fence_pass`; each burst is checked against the flow's fence slot again
 * right before it is handed to the kernel.
 */
#ifndef MASQUE_H3_H
#define MASQUE_H3_H

#include "base/err.h"
#include "base/id.h"
#include "base/secret.h"
#include "base/time.h"

struct fence_pass;
struct fence_slot;
struct loop_log;
struct masque_h3;

#define MASQUE_PACKET_ROOM 64 /* bytes before a delivered packet that the receiver may use */
#define MASQUE_ROUTES_MAX 128

enum masque_target { MASQUE_TARGET_ANY = 0, MASQUE_TARGET_PREFIX };
enum masque_identity {                          /* what the verified leaf certificate says */
                       MASQUE_IDENTITY_URI = 1, /* exactly one URI SAN */
                       MASQUE_IDENTITY_NONE,    /* no URI SAN */
                       MASQUE_IDENTITY_MANY,    /* more than one */
                       MASQUE_IDENTITY_BAD,     /* empty, too long, or with a NUL */
                       /* bearer tokens are taken, and the client has no certificate: */
                       MASQUE_IDENTITY_TOKEN,     /* `token` is there */
                       MASQUE_IDENTITY_ABSENT,    /* no Authorization header either */
                       MASQUE_IDENTITY_BAD_TOKEN, /* one that is no bearer token */
};
struct masque_request {
    uint64_t flow;
    enum masque_identity identity;
    char uri[513];
    char credential_id[65];    /* SHA-256 of the leaf certificate, hex; "" without one */
    struct base_secret *token; /* given to the callee, who frees it; NULL = none */
    char peer[64];             /* "[addr]:port" */
    enum masque_target target;
    struct base_prefix prefix;           /* MASQUE_TARGET_PREFIX */
    int ipproto;                         /* 0..255, or -1 for `*` */
    struct base_correlation correlation; /* from traceparent; zero when there was none */
};
enum masque_end {
    MASQUE_END_CLIENT = 1, /* stream or connection closed by the peer */
    MASQUE_END_IDLE,       /* idle or handshake time-out */
    MASQUE_END_PROTOCOL,   /* malformed capsule, datagram or stream; `detail` says what */
    MASQUE_END_MTU,        /* the path cannot carry 1280 bytes */
    MASQUE_END_LOCAL,      /* masque_h3_close, refuse, or the endpoint is being freed */
};
struct masque_h3_events { /* called from within masque_h3_read / _expire / _flush; they must not free the
                             endpoint */
    void (*request)(void *arg, const struct masque_request *rq);
    /* One whole IP packet of context 0 from an accepted flow; not yet validated; may be changed in place; at
     * least MASQUE_PACKET_ROOM writable bytes stand before it (for a virtio header). Valid during the call.
     */
    void (*packet)(void *arg, uint64_t flow, uint8_t *pkt, size_t len);
    void (*ended)(void *arg, uint64_t flow, enum masque_end why, const char *detail);
};
struct masque_h3_limits {                         /* 0 = default (masque.md section 6 figures) */
    uint32_t connections, per_source, handshakes; /* 4096, 64, 256 */
    uint32_t queue_packets, queue_bytes;          /* per flow towards the client: 512, 512 KiB */
    base_time queue_age;                          /* 50 ms */
    base_time stall;                              /* a flush that takes longer was stopped: 500 ms */
    base_time idle;                               /* 60 s */
    base_time handshake;                          /* 10 s */
    base_time answer;                             /* longest wait for accept/refuse: 60 s, then 503 */
    uint32_t header_bytes;                        /* 8 KiB */
};
struct masque_h3_config {
    const char *listen; /* "[::]:4433", "0.0.0.0:4433"; port 0 picks one (masque_h3_port) */
    const char *cert_file, *key_file, *client_ca_file; /* PEM */
    bool bearer; /* clients without a certificate may connect and send a bearer token; false: every client
                    needs a certificate, and Authorization headers mean nothing */
    struct masque_h3_limits limits;
    struct masque_h3_events events;
    void *arg;
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

/* The socket is readable: takes in at most `max_datagrams` UDP datagrams, calls events, queues answers. */
void masque_h3_read(struct masque_h3 *h, base_time now, unsigned max_datagrams);
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
/* Ends the flow's stream and, when it was the last one, its connection. */
void masque_h3_close(struct masque_h3 *h, uint64_t flow, uint64_t h3_error);
/* Drops every packet that waits here, in both directions; flows go on. For a thread that was stopped for too
 * long. */
void masque_h3_discard(struct masque_h3 *h);
/* No new connections or requests; GOAWAY to those that are there. */
void masque_h3_drain(struct masque_h3 *h);

struct masque_h3_stats {
    uint64_t connections, handshakes_failed, requests, refused, datagrams_in, datagrams_out, packets_in,
        packets_out, drop_queue, drop_fence, drop_malformed, drop_early, bytes_in, bytes_out;
    uint32_t open_connections, open_flows;
};
void masque_h3_stats(const struct masque_h3 *h, struct masque_h3_stats *ret);

#endif
