/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/h3_int.h - what the files of the HTTP/3 endpoint share. Private to this folder.
 *
 *   masque_h3 ──owns──▶ masque_conn (one QUIC connection) ──owns──▶ masque_stream (one request)
 *       │                    │ ≤ 1 at a time
 *       └──finds by id──▶ masque_flow (one CONNECT-IP request that was reported or is about to be)
 *
 * Everything runs on the endpoint's one thread. Nothing is freed from within a library's callback: a
 * connection that has ended goes to `dying` and is freed at the end of the public call (masque_conn_reap); a
 * flow that has ended leaves the table at once and waits in `ended` for its report.
 */
#ifndef MASQUE_H3_INT_H
#define MASQUE_H3_INT_H

#include <netinet/in.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/time.h"
#include "loop/log.h"
#include "masque/capsule.h"
#include "masque/h3.h"
#include "masque/listen.h"
#include "masque/qtls.h"
#include "masque/queue.h"
#include "masque/request.h"
#include "masque/tunnel.h"
#include "masque/wake.h"

#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

enum {
    MASQUE_CID_LEN = 8,       /* of the IDs that we give out */
    MASQUE_STREAMS_MAX = 8,   /* request streams that a client may have open */
    MASQUE_GONE_MAX = 256,    /* IDs of connections that we closed a moment ago */
    MASQUE_MIN_MTU = 1280,    /* RFC 9484 section 7.2 */
    MASQUE_EARLY_PACKETS = 8, /* per connection, before its flow is accepted */
    MASQUE_EARLY_BYTES = 65536,
    MASQUE_OUT_MAX = 16384, /* bytes of capsules or of a refusal that wait for the client's acknowledgement */
    MASQUE_BURST_PACKETS = 52,  /* between two looks at the fence */
    MASQUE_BURST_BYTES = 64000, /* one UDP_SEGMENT send */
    MASQUE_UDP_MAX = 1444,      /* largest UDP payload that we send */
    MASQUE_DETAIL_MAX = 160,
};
#define MASQUE_MTU_PATIENCE (5 * BASE_SEC) /* how long a path may stay too small for 1280 bytes */
#define MASQUE_EARLY_AGE (1 * BASE_SEC)
#define MASQUE_KEEP_ALIVE (20 * BASE_SEC)
#define MASQUE_DGRAM_ERROR 0x33 /* H3_DATAGRAM_ERROR */

struct masque_conn;

/* ---- h3_index.c: tables with a fixed number of buckets, chained through their members ---- */
struct masque_cid {
    struct masque_cid *next;      /* in the bucket */
    struct masque_cid *conn_next; /* of the same connection */
    struct masque_conn *conn;
    ngtcp2_cid cid;
};
enum { MASQUE_BUCKETS = 4096 };
struct masque_index {
    uint64_t seed;
    struct masque_cid *cids[MASQUE_BUCKETS];
    struct masque_flow *flows[MASQUE_BUCKETS];
};
int masque_index_add_cid(struct masque_index *x, struct masque_conn *c, const ngtcp2_cid *cid);
void masque_index_del_cid(struct masque_index *x, const ngtcp2_cid *cid);
void masque_index_del_conn_cids(struct masque_index *x, struct masque_conn *c);
struct masque_conn *masque_index_conn(const struct masque_index *x, const uint8_t *cid, size_t len);
void masque_index_add_flow(struct masque_index *x, struct masque_flow *f);
void masque_index_del_flow(struct masque_index *x, struct masque_flow *f);
struct masque_flow *masque_index_flow(const struct masque_index *x, uint64_t id);

/* ---- h3_udp.c: the socket ---- */
struct masque_udp;
typedef void (*masque_udp_fn)(void *arg, const struct masque_udp_in *in);
/* Of several threads' sockets the first is opened as if it were alone, so that a second agent cannot have
 * the port; the last one makes the kernel choose among them. `offload`: UDP_SEGMENT and UDP_GRO, where the
 * kernel has them (a self-test says so). */
int masque_udp_open(struct masque_udp **ret, const char *listen, const struct masque_threads *t, bool offload,
                    struct base_err *err);
bool masque_udp_gso(const struct masque_udp *u); /* bursts are one send; false once one was refused */
struct masque_udp *masque_udp_close(struct masque_udp *u);
int masque_udp_fd(const struct masque_udp *u);
uint16_t masque_udp_port(const struct masque_udp *u);
/* Takes in datagrams until `max` or more have come or none is left. */
void masque_udp_read(struct masque_udp *u, unsigned max, masque_udp_fn fn, void *arg);
/* Sends `len` bytes as datagrams of `seg` bytes (the last may be shorter). Returns the number of datagrams
 * that the kernel did not take: they are lost, as on any network. */
unsigned masque_udp_send(struct masque_udp *u, const struct sockaddr_in6 *remote,
                         const struct sockaddr_in6 *local, uint8_t ecn, const uint8_t *data, size_t len,
                         size_t seg);

/* ---- one request stream ---- */
struct masque_stream {
    struct masque_stream *next;
    struct masque_conn *conn;
    struct masque_flow *flow; /* NULL: never had one, or it has ended */
    int64_t id;
    bool answered, eof; /* eof: what is in `out` is all there will be */
    bool whole;         /* the request's header block is there */
    bool counted;       /* as reset */
    uint32_t excess;    /* header fields beyond the limit */
    base_time since;    /* its first byte */
    struct masque_headers headers;
    uint8_t *out; /* what is queued on the stream; the bytes stay until they are acknowledged */
    size_t n_out, n_sent, n_acked;
};

/* ---- a flow ---- */
enum masque_flow_state {
    MASQUE_FLOW_SETTINGS = 1, /* waits for the client's SETTINGS; not reported yet */
    MASQUE_FLOW_ASKED,        /* reported; waits for accept or refuse */
    MASQUE_FLOW_OPEN,
    MASQUE_FLOW_ENDED, /* waits for its report */
};
struct masque_flow {
    struct masque_flow *next; /* in the bucket, or in `ended` */
    uint64_t id;
    enum masque_flow_state state;
    struct masque_conn *conn;     /* NULL once ended */
    struct masque_stream *stream; /* NULL once ended */
    int64_t sid;
    base_time since; /* in this state */
    struct base_correlation correlation;
    enum masque_identity identity;
    struct base_secret *token; /* until it is reported */
    const struct fence_slot *slot;
    bool stopped, reported;
    struct masque_queue queue; /* towards the client */
    base_time mtu_low_since;   /* 0 = the path carries 1280 bytes */
    base_time capsule_since;   /* 0 = between capsules */
    struct masque_tunnel tunnel;
    enum masque_end end;
    char detail[MASQUE_DETAIL_MAX];
};

struct masque_early {
    uint8_t *data;
    size_t len;
    int64_t sid;
    base_time at;
};

/* ---- a connection ---- */
struct masque_conn {
    struct masque_h3 *h;
    struct masque_conn *next, *prev;
    struct masque_conn *dirty_next;
    struct masque_conn *dying_next;
    ngtcp2_conn *quic;
    nghttp3_conn *http;
    struct masque_qtls *tls;
    ngtcp2_crypto_conn_ref ref;
    ngtcp2_ccerr err;
    struct masque_cid *cids;
    struct in6_addr source; /* where it was counted */
    struct masque_stream *streams;
    struct masque_flow *flow; /* the one that has not ended */
    struct masque_early early[MASQUE_EARLY_PACKETS];
    unsigned n_early;
    size_t early_bytes;
    struct masque_wake wake;
    base_time lonely_since, close_at;
    base_time held_until; /* masque_h3_hold */
    base_time resets_since;
    base_time headers_since; /* the oldest header block that is not whole; 0 = none */
    uint32_t n_resets;
    int64_t highest_sid; /* of the request streams seen, -4 = none */
    uint64_t streams_granted;
    bool handshaken, settings_seen, peer_h3_datagram, dirty, dead, close_asked, goaway;
    bool early_ready; /* the flow was accepted: deliver `early` at the next flush */
    enum masque_identity identity;
    char uri[513], credential_id[65], peer[64];
};

/* An ID of a connection that we closed: what is still on its way here is met with silence, as RFC 9000
 * section 10.2 wants it, and not with a stateless reset that could overtake our CONNECTION_CLOSE in the
 * client. */
struct masque_gone {
    ngtcp2_cid cid;
    base_time until;
};

struct masque_h3 {
    char *cert_file, *key_file, *client_ca_file;
    bool bearer, no_rfc, cloudflare;
    struct masque_h3_limits limits;
    struct masque_events events;
    void (*stray)(void *arg, unsigned thread, const struct masque_udp_in *in);
    void *arg;
    struct masque_threads threads;
    struct masque_count *all, alone; /* of all threads' endpoints; `alone` when this is the only one */
    struct loop_log *log;
    struct masque_udp *udp;
    struct masque_qtls_ctx *tls;
    struct masque_index index;
    struct masque_conn *conns, *dirty, **dirty_tail, *dying;
    struct masque_flow *ended, **ended_tail;
    struct masque_heap heap;
    struct masque_pool pool;
    uint32_t n_conns, n_flows;
    uint64_t last_flow;
    uint8_t secret[32];
    base_time now;                            /* never goes back: ngtcp2 insists */
    base_time flush_began;                    /* as the caller's clock said */
    struct masque_gone gone[MASQUE_GONE_MAX]; /* a ring: the oldest is forgotten first */
    unsigned gone_next;
    bool draining;
    struct masque_h3_stats stats;
    uint8_t burst[MASQUE_BURST_BYTES + 2048];
    uint8_t packet[MASQUE_PACKET_ROOM + 65536]; /* one packet on its way to the caller */
};

/* ---- h3_conn.c ---- */
struct masque_new_conn {
    const struct masque_udp_in *in;
    const ngtcp2_pkt_hd *hd;
    const ngtcp2_cid *odcid; /* original DCID when the client came back after a Retry, else NULL */
};
struct masque_conn *masque_conn_new(struct masque_h3 *h, const struct masque_new_conn *n);
void masque_conn_input(struct masque_conn *c, const struct masque_udp_in *in);
void masque_conn_expire(struct masque_conn *c);
/* A library call failed with `rv`: says goodbye where that is possible, ends the flow, and marks the
 * connection dead. */
void masque_conn_fail(struct masque_conn *c, int rv);
/* Ends the connection with an application error. */
void masque_conn_close(struct masque_conn *c, uint64_t h3_error, enum masque_end why, const char *detail);
void masque_conn_dirty(struct masque_conn *c);
/* Computes the next wake-up from the state. */
void masque_conn_reschedule(struct masque_conn *c);
/* A stream was reset, by either side: too many in a minute end the connection. `s`: NULL = not known (any
 * more). */
void masque_conn_count_reset(struct masque_conn *c, struct masque_stream *s);
void masque_conn_goaway(struct masque_conn *c);
void masque_conn_reap(struct masque_h3 *h);

/* ---- h3_accept.c: packets of no connection ---- */
void masque_accept_input(struct masque_h3 *h, const struct masque_udp_in *in);
/* We have just sent CONNECTION_CLOSE: late packets to the connection's IDs are ignored for a second. */
void masque_accept_goodbye(struct masque_h3 *h, const struct masque_conn *c);

/* ---- h3_write.c ---- */
void masque_write_conn(struct masque_conn *c, base_time (*clock)(void));
/* Sends one control packet (no inner packet in it) at once. */
void masque_write_control(struct masque_conn *c, const uint8_t *p, size_t n, const ngtcp2_path *path);

/* ---- h3_http.c ---- */
int masque_http_open(struct masque_conn *c); /* 0 or NGTCP2_ERR_CALLBACK_FAILURE */
struct masque_stream *masque_stream_find(struct masque_conn *c, int64_t id);
/* Answers with a body "reason: ...\n". BASE_OK or BASE_ENOMEM. */
int masque_stream_refuse(struct masque_stream *s, int status, const char *reason, unsigned retry_after);
/* Answers 200; capsules follow. */
int masque_stream_accept(struct masque_stream *s);
/* Queues bytes. BASE_OK, BASE_EFULL or BASE_ENOMEM. */
int masque_stream_write(struct masque_stream *s, const uint8_t *p, size_t n);
/* Resets both directions. */
void masque_stream_abort(struct masque_stream *s, uint64_t h3_error);
/* Ends our side after what is queued. */
void masque_stream_finish(struct masque_stream *s);
/* Ends the streams whose header blocks take too long. */
void masque_stream_late(struct masque_conn *c);
void masque_stream_free_all(struct masque_conn *c);

/* ---- h3_flow.c ---- */
/* A valid CONNECT-IP request has come in on `s`. Takes the token of its headers. */
int masque_flow_begin(struct masque_stream *s, const struct masque_path *path,
                      const struct base_correlation *corr);
/* The client's SETTINGS are known now. */
void masque_flow_settings(struct masque_conn *c);
void masque_flow_data(struct masque_flow *f, const uint8_t *p, size_t n);
/* The client ended its side of the stream. */
void masque_flow_fin(struct masque_flow *f);
int masque_flow_datagram(struct masque_conn *c, const uint8_t *p,
                         size_t n); /* 0 or NGTCP2_ERR_CALLBACK_FAILURE */
void masque_flow_deliver_early(struct masque_conn *c);
void masque_flow_drop_early(struct masque_conn *c);
/* Ends it: leaves the table, drops its queue, forgets the slot. NULL ok. */
void masque_flow_end(struct masque_flow *f, enum masque_end why, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void masque_flow_drop_queue(struct masque_flow *f, uint64_t *counter);
void masque_flow_report(struct masque_h3 *h);
/* Bytes that QUIC, DATAGRAM frame and context put around one packet. */
size_t masque_flow_overhead(const struct masque_flow *f);
/* Largest packet that fits the path as it is now. */
size_t masque_flow_live_mtu(const struct masque_flow *f);
/* Quarter Stream ID and context 0. */
size_t masque_flow_prefix(const struct masque_flow *f, uint8_t dst[9]);

#endif
