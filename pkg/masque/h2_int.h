/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/h2_int.h - what the files of the HTTP/2 endpoint share. Private to this folder.
 *
 *   masque_h2 ──owns──▶ masque_h2_conn (one TCP connection) ──owns──▶ masque_h2_stream (one request)
 *       │                    │ ≤ 1 at a time
 *       └──finds by id──▶ masque_h2_flow (one CONNECT-IP request that was reported)
 *
 * Everything runs on the endpoint's one thread. Nothing is freed from within a library's callback: a
 * connection that has ended has its descriptor closed at once and waits in `dying` for the end of the public
 * call; a flow that has ended leaves the table at once and waits in `ended` for its report.
 */
#ifndef MASQUE_H2_INT_H
#define MASQUE_H2_INT_H

#include <netinet/in.h>
#include <stdbool.h>

#include "base/mem.h"
#include "loop/log.h"
#include "masque/h2.h"
#include "masque/listen.h"
#include "masque/queue.h"
#include "masque/request.h"
#include "masque/tunnel.h"
#include "masque/wake.h"

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

enum {
    MASQUE_H2_STREAMS_MAX = 8, /* request streams that a client may have open */
    MASQUE_H2_READ = 16384,    /* one read: the largest TLS record */
    MASQUE_H2_PIECE = 16384,   /* plaintext that is framed before the next look at the fence, plus a frame */
    MASQUE_H2_OUT_MAX = 16384, /* capsules or a refusal that the client has not made room for */
    MASQUE_H2_TURN = 256 * 1024, /* bytes written for one connection in one turn */
    MASQUE_H2_MTU = 1500,
    MASQUE_H2_EARLY_PACKETS = 8,
    MASQUE_H2_EARLY_BYTES = 65536,
    MASQUE_H2_BUCKETS = 4096,
    MASQUE_H2_DETAIL_MAX = 160,
};
#define MASQUE_H2_LOOK (20 * BASE_MS)     /* between two looks at a fence while the socket holds packets */
#define MASQUE_H2_FAREWELL (1 * BASE_SEC) /* how long a connection that has said goodbye may stay */

struct masque_h2_conn;

struct masque_h2_stream {
    struct masque_h2_stream *next;
    struct masque_h2_conn *conn;
    struct masque_h2_flow *flow; /* NULL: never had one, or it has ended */
    int32_t id;
    bool complete; /* the request's header block is whole */
    bool answered, refused, eof, deferred;
    uint32_t excess;
    struct masque_headers headers;
    uint8_t *out;
    size_t n_out, n_sent;
};

enum masque_h2_flow_state {
    MASQUE_H2_ASKED = 1, /* reported; waits for accept or refuse */
    MASQUE_H2_OPEN,
    MASQUE_H2_ENDED, /* waits for its report */
};
struct masque_h2_flow {
    struct masque_h2_flow *next; /* in the bucket, or in `ended` */
    uint64_t id;
    enum masque_h2_flow_state state;
    struct masque_h2_conn *conn;     /* NULL once ended */
    struct masque_h2_stream *stream; /* NULL once ended */
    base_time since;                 /* in this state */
    struct base_correlation correlation;
    enum masque_identity identity;
    struct base_secret *token; /* until it is reported */
    const struct fence_slot *slot;
    bool stopped, bare; /* bare: DATAGRAM capsules without a context ID */
    struct masque_queue queue;
    struct masque_tunnel tunnel;
    base_time capsule_since; /* 0 = between capsules */
    struct {
        uint8_t *data;
        size_t len;
    } early[MASQUE_H2_EARLY_PACKETS]; /* before it was accepted */
    unsigned n_early;
    size_t early_bytes;
    bool early_ready;
    uint8_t cur[16 + MASQUE_PKT_MAX]; /* a capsule that was begun: the rest of it has to follow */
    size_t cur_at, cur_len;
    enum masque_end end;
    char detail[MASQUE_H2_DETAIL_MAX];
};

struct masque_h2_bucket { /* tokens; may be below 0 for a moment */
    double left;
    base_time at;
};

struct masque_h2_conn {
    struct masque_h2 *h;
    struct masque_h2_conn *next, *prev, *dirty_next, *dying_next;
    int fd; /* -1 once it is closed */
    SSL *ssl;
    BIO *wire;             /* ciphertext that the kernel has not taken; the SSL's */
    bool wire_inner;       /* there are packets in it */
    nghttp2_session *http; /* NULL until TLS is done */
    struct masque_h2_tls *tls;
    struct in6_addr source; /* where it was counted */
    struct masque_h2_stream *streams;
    struct masque_h2_flow *flow; /* the one that has not ended */
    struct masque_wake wake;
    base_time since, heard, pinged, lonely_since, headers_since, blocked_since, close_at;
    base_time look_at;  /* at the fence, while the kernel has packets */
    uint64_t written;   /* bytes that the kernel has taken */
    uint64_t inner_end; /* of them: behind the last one of a packet; 0 = none */
    struct masque_h2_bucket resets, control, small;
    uint32_t earned;   /* WINDOW_UPDATEs that the client may send for what it got */
    const char *flood; /* why the connection has to end; set inside callbacks */
    uint32_t events;
    bool more;        /* TLS has read more from the socket than was its turn */
    bool close_asked; /* by the caller */
    bool shaken, settings_seen, dirty, dead, goaway, saying_goodbye, shut;
    enum masque_identity identity;
    char uri[513], credential_id[65], peer[64];
};

struct masque_h2 {
    char *cert_file, *key_file, *client_ca_file;
    bool bearer, no_rfc, cloudflare;
    struct masque_h2_limits limits;
    struct masque_events events;
    void *arg;
    struct masque_threads threads;
    struct masque_count *all, alone; /* of all threads' endpoints; `alone` when this is the only one */
    struct loop_log *log;
    struct masque_h2_tls *tls;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    int listener, poll;
    bool listening; /* the listener is in the poll set */
    base_time listen_again;
    uint16_t port;
    struct masque_heap heap;
    struct masque_pool pool;
    struct masque_h2_flow *flows[MASQUE_H2_BUCKETS];
    struct masque_h2_conn *conns, *dirty, **dirty_tail, *dying;
    struct masque_h2_flow *ended, **ended_tail;
    uint32_t n_conns, n_flows;
    uint64_t last_flow;
    base_time now, flush_began;
    bool draining, more;
    bool framed_inner; /* what nghttp2 has framed since the last look holds packets */
    struct masque_h2_stats stats;
    uint8_t in[MASQUE_H2_READ];
    uint8_t piece[2 * MASQUE_H2_PIECE + 1024];
    struct masque_tunnel_out out;
    uint8_t packet[MASQUE_PACKET_ROOM + 65536]; /* one packet on its way to the caller */
};

/* ---- h2_tls.c ---- */
struct masque_h2_tls_config {
    const char *cert_file, *key_file, *client_ca_file;
    bool optional; /* a client may come without a certificate; one that it sends is verified */
};
int masque_h2_tls_new(struct masque_h2_tls **ret, const struct masque_h2_tls_config *cfg,
                      struct base_err *err);
struct masque_h2_tls *masque_h2_tls_ref(struct masque_h2_tls *t);
struct masque_h2_tls *masque_h2_tls_unref(struct masque_h2_tls *t); /* NULL ok, returns NULL */
/* A session that reads from `fd` and writes into *ret_wire (memory). NULL = no memory. */
SSL *masque_h2_tls_session(struct masque_h2_tls *t, int fd, BIO **ret_wire);
/* After the handshake: who it is. BASE_OK (also for a client without a certificate, where that is allowed),
 * or BASE_EDENIED. */
int masque_h2_tls_identity(const struct masque_h2_tls *t, SSL *ssl, enum masque_identity *ret, char uri[513],
                           char credential_id[65]);
/* Why the handshake failed, for the log. Clears the thread's error queue. */
void masque_h2_tls_describe(SSL *ssl, char *buf, size_t size);

/* ---- h2_conn.c ---- */
void masque_h2_conn_accept(struct masque_h2 *h);
void masque_h2_conn_input(struct masque_h2_conn *c, unsigned max);
void masque_h2_conn_expire(struct masque_h2_conn *c);
void masque_h2_conn_reschedule(struct masque_h2_conn *c);
void masque_h2_conn_dirty(struct masque_h2_conn *c);
/* True while packets are on their way to the kernel or in its socket, unacknowledged. */
bool masque_h2_conn_holds_packets(const struct masque_h2_conn *c);
/* Ends it at once, by RST; ends its flow. */
void masque_h2_conn_abort(struct masque_h2_conn *c, enum masque_end why, const char *detail);
/* Says GOAWAY with this code, ends the flow, closes when it is written. */
void masque_h2_conn_close(struct masque_h2_conn *c, uint32_t code, enum masque_end why, const char *detail);
void masque_h2_conn_reap(struct masque_h2 *h);
/* Takes `n` tokens; false = none left. `max` at once, `rate` a second. */
bool masque_h2_take(struct masque_h2_bucket *b, base_time now, double n, double max, double rate);

/* ---- h2_http.c ---- */
int masque_h2_http_setup(struct masque_h2 *h, struct base_err *err);
int masque_h2_http_open(struct masque_h2_conn *c); /* BASE_OK or BASE_ENOMEM */
void masque_h2_http_goaway(struct masque_h2_conn *c);
int masque_h2_stream_refuse(struct masque_h2_stream *s, int status, const char *reason, unsigned retry_after);
int masque_h2_stream_accept(struct masque_h2_stream *s);
/* Queues bytes. BASE_OK, BASE_EFULL or BASE_ENOMEM. */
int masque_h2_stream_write(struct masque_h2_stream *s, const uint8_t *p, size_t n);
void masque_h2_stream_abort(struct masque_h2_stream *s, uint32_t code);
/* Ends our side after what is queued. */
void masque_h2_stream_finish(struct masque_h2_stream *s);
/* There is something to send on it. */
void masque_h2_stream_wake(struct masque_h2_stream *s);
void masque_h2_stream_free_all(struct masque_h2_conn *c);

/* ---- h2_flow.c ---- */
int masque_h2_flow_begin(struct masque_h2_stream *s, const struct masque_path *path,
                         const struct base_correlation *corr);
void masque_h2_flow_data(struct masque_h2_flow *f, const uint8_t *p, size_t n);
void masque_h2_flow_fin(struct masque_h2_flow *f);
void masque_h2_flow_deliver_early(struct masque_h2_flow *f);
void masque_h2_flow_end(struct masque_h2_flow *f, enum masque_end why, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void masque_h2_flow_report(struct masque_h2 *h);
/* Fills `dst` with capsules of packets: bytes written. */
size_t masque_h2_flow_fill(struct masque_h2_flow *f, uint8_t *dst, size_t size);
bool masque_h2_flow_fence_open(const struct masque_h2_flow *f, base_time now);
struct masque_h2_flow *masque_h2_flow_find(const struct masque_h2 *h, uint64_t id);

/* ---- h2_write.c ---- */
void masque_h2_write(struct masque_h2_conn *c, base_time (*clock)(void));

#endif
