/* SPDX-License-Identifier: Apache-2.0
 *
 * conformance/conf.h - the obligations of a CONNECT-IP server, one case each, on every transport.
 *
 *   client (conf_transport: HTTP/3, …) --loopback-- endpoint -- the agent's packet path -- TUN (tun.c,
 * memory)
 *
 * One thread, one process per case: conf_turn gives everybody one turn, time may be pushed. A case talks
 * through the functions below, which mean the same on each transport; what concerns one transport only asks
 * for its client (conf_h3). A check that does not hold ends the case's process.
 */
#ifndef CONFORMANCE_CONF_H
#define CONFORMANCE_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/data_int.h"
#include "fence/fence.h"
#include "masque/capsule.h"
#include "masque/endpoint.h"
#include "masque/testclient_test.h"
#include "masque/testpki_test.h"

/* ---- the table ---- */
enum { CONF_H3 = 1, CONF_H2 = 2, CONF_BOTH = 3 };
struct conf;
struct conf_case {
    const char *row;     /* of the checklist: "1b.3", or "bug 7" */
    const char *section; /* "RFC 9297 3.2", or where the bug was reported */
    const char *level;   /* MUST, SHOULD, MAY; a bug has none */
    const char *what;    /* the requirement, one line */
    const char *name;    /* of the case */
    unsigned on;         /* transports that it concerns */
    void (*run)(struct conf *t);
};
extern const struct conf_case conf_opening[], conf_capsules[], conf_datagrams[], conf_packets[], conf_bugs[];

/* ---- a transport ---- */
enum conf_end { CONF_OPEN = 0, CONF_ENDED, CONF_RESET };
enum conf_code { /* error codes by what they mean */
                 CONF_CODE_OTHER = 0,
                 CONF_CODE_MESSAGE,  /* H3_MESSAGE_ERROR; PROTOCOL_ERROR */
                 CONF_CODE_DATAGRAM, /* H3_DATAGRAM_ERROR; PROTOCOL_ERROR */
};
struct conf_options {       /* of a client; all zero = a good one */
    const char *cert, *key; /* files; NULL = the good ones */
    bool no_cert;
    const char *alpn;      /* NULL = the transport's */
    uint64_t frame_size;   /* max_datagram_frame_size; 0 = 65535, 1 = not sent (HTTP/3) */
    bool no_datagram, raw; /* no SETTINGS_H3_DATAGRAM; nothing of HTTP/3 at all (HTTP/3) */
    size_t path_mtu;       /* largest UDP payload that reaches the client; 0 = 1444 (HTTP/3) */
    bool no_window;        /* the server may send no DATA (HTTP/2) */
};
struct conf_client; /* one connection; belongs to the rig */
struct conf_transport {
    const char *name;
    unsigned id;
    void *(*open)(struct conf *t, const struct conf_options *o);
    void (*free)(void *c);
    void (*step)(void *c, base_time now);
    base_time (*expiry)(const void *c);
    int (*fd)(const void *c);
    bool (*ready)(const void *c); /* handshake done, SETTINGS seen */
    /* The connection has ended; *ret_code: the peer's error code. */
    bool (*closed)(const void *c, uint64_t *ret_code);
    size_t (*request)(void *c, const struct testclient_field *f, size_t n, bool fin);
    void (*write)(void *c, size_t stream, const void *p, size_t n, bool fin);
    void (*reset)(void *c, size_t stream);
    void (*hang_up)(void *c); /* ends the connection at once */
    /* A packet in the form that the transport has for it: context ID, then `p`. */
    void (*packet)(void *c, size_t stream, uint64_t context, const void *p, size_t n);
    int (*status)(const void *c, size_t stream);
    const char *(*fields)(const void *c, size_t stream); /* of the answer: "name: value\n" each */
    const uint8_t *(*body)(const void *c, size_t stream, size_t *n);
    enum conf_end (*end)(const void *c, size_t stream, uint64_t *ret_code);
    enum conf_code (*code)(uint64_t code);
    /* The i-th packet of context 0 that has come in; NULL = none. */
    const uint8_t *(*received)(void *c, size_t i, size_t *n);
};
extern const struct conf_transport conf_h3_transport, conf_h2_transport;

/* ---- the rig ---- */
enum conf_answer { CONF_ACCEPT = 0, CONF_HOLD, CONF_REFUSE };
enum { CONF_CLIENTS = 8, CONF_FLOWS = 32 };
struct conf_client {
    struct conf *t;
    void *impl;
    bool mute; /* gets no turns: it is gone, or slow */
};
struct conf {
    const struct conf_transport *tr;
    const char *dir; /* of the PKI */
    char cert[128], key[128];
    struct agent_thread *d; /* the data path's state; there is no thread */
    struct fence_table *fences;
    struct fence_slot *slot;
    enum conf_answer answer;
    bool second_prefix; /* the next tunnel gets conf_prefix(2) */
    uint64_t flow[CONF_FLOWS];
    struct masque_request rq[CONF_FLOWS];
    unsigned n_flow; /* requests that were reported */
    struct {
        uint64_t flow;
        enum masque_end why;
        char detail[200];
    } ended[CONF_FLOWS];
    unsigned n_ended;
    uint64_t n_taken; /* packets that came from clients, before any check */
    struct conf_client clients[CONF_CLIENTS];
    unsigned n_clients;
};

/* What a case's text says, and the process ends. */
void conf_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
#define CHECK(cond, ...)                                                                                     \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            conf_fail(__FILE__, __LINE__, "not so: " #cond ": " __VA_ARGS__);                                \
    } while (0)
/* Turns until `expr` holds; 5 s at most. */
#define WAIT(t, expr)                                                                                        \
    do {                                                                                                     \
        base_time until_ = loop_clock() + 5 * BASE_SEC;                                                      \
        while (!(expr)) {                                                                                    \
            if (loop_clock() > until_)                                                                       \
                conf_fail(__FILE__, __LINE__, "not seen in time: " #expr);                                   \
            conf_turn(t);                                                                                    \
        }                                                                                                    \
    } while (0)

/* Certificates for all cases, in `dir`. */
void conf_pki(const char *dir);
void conf_open(struct conf *t, const struct conf_transport *tr, const char *dir,
               const struct masque_h3_limits *limits);
/* Another endpoint, with these limits. Only before there is a client. */
void conf_limits(struct conf *t, const struct masque_h3_limits *limits);
void conf_close(struct conf *t);
base_time conf_clock(void);
void conf_push(base_time d); /* moves the time forward */
void conf_turn(struct conf *t);
void conf_settle(struct conf *t, unsigned ms); /* for what must not happen */
struct masque_h3_stats conf_stats(const struct conf *t);
uint64_t conf_drop_queue(const struct conf *t); /* of the transport in question */
/* Answers a request that is held: CONF_ACCEPT or CONF_REFUSE. */
void conf_decide(struct conf *t, uint64_t flow, enum conf_answer a);

struct conf_client *conf_client_with(struct conf *t, const struct conf_options *o); /* not yet ready */
struct conf_client *conf_client(struct conf *t);                                    /* ready */
struct testclient *conf_h3(struct conf_client *c);
/* HTTP/2: the server's value of a setting (after `ready`). */
uint32_t conf_h2_setting(struct conf_client *c, int id);
void conf_h2_send_setting(struct conf_client *c, int id, uint32_t value); /* the client's */
/* A good request with this path (NULL = `*` and `*`) and one more field (NULL = none). */
size_t conf_request(struct conf_client *c, const char *path, const char *name, const char *value);
/* A client with a tunnel: 200 and both first capsules are there. Its stream is 0, its /96 conf_prefix(1). */
struct conf_client *conf_tunnel(struct conf *t);
struct conf_client *conf_tunnel_for(struct conf *t, const char *path);
void conf_write(struct conf_client *c, size_t stream, const void *p, size_t n);
int conf_status(const struct conf_client *c, size_t stream);
bool conf_has_field(const struct conf_client *c, size_t stream, const char *line); /* "name: value" */
bool conf_body_says(const struct conf_client *c, size_t stream, const char *text);
bool conf_ended(const struct conf_client *c, size_t stream);
/* Reset, with a code of this meaning. */
bool conf_reset_with(const struct conf_client *c, size_t stream, enum conf_code code);
bool conf_closed(const struct conf_client *c);
/* Capsules on the stream so far; *ret: those of `type`, the last one decoded. */
struct conf_capsules {
    size_t n, assigns, routes, datagrams;
    struct masque_address addr[64];
    size_t n_addr;
    struct masque_route route[64];
    size_t n_route;
};
void conf_read_capsules(const struct conf_client *c, size_t stream, struct conf_capsules *ret);
/* The stream is a tunnel that works: a packet goes in both directions. */
void conf_alive(struct conf_client *c, size_t stream);

/* ---- packets ---- */
#define CONF_HOST "fd20::10"          /* in the VPC, inside the destinations */
#define CONF_OUTSIDE "fd30::1"        /* outside of them */
#define CONF_TUNNEL "fd12::1:0:0:0:1" /* the tunnel's own address */
enum { CONF_PKT = 1500 };
struct conf_pkt {
    uint8_t b[2048];
    size_t n;
};
/* "fd12::1:0:<n>:0:5": an address in connector n's /96. */
const char *conf_addr(unsigned n);
/* UDP of `size` bytes in all, its first data byte `mark`. */
struct conf_pkt conf_udp(const char *src, const char *dst, size_t size, uint8_t mark);
struct conf_pkt conf_echo(const char *src, const char *dst, size_t data);
/* An IPv6 packet with any chain: `next` is its first header, `p` what follows the fixed header. */
struct conf_pkt conf_raw(const char *src, const char *dst, uint8_t next, const void *p, size_t n);
void conf_hop(struct conf_pkt *p, uint8_t hop);
/* Sends it up the tunnel and waits until it was taken in. */
void conf_up(struct conf_client *c, size_t stream, const struct conf_pkt *p);
/* Puts it into the TUN, from the VPC. */
void conf_down(struct conf *t, const struct conf_pkt *p);
/* Packets that reached the VPC (the TUN): number, and the last one; from which errors are told apart. */
size_t conf_vpc_n(void);
const struct conf_pkt *conf_vpc(size_t i); /* NULL = none */
/* Packets that reached the client. */
size_t conf_got_n(struct conf_client *c);
struct conf_pkt conf_got(struct conf_client *c, size_t i);
/* It is ICMPv6 of this type and code from `from` to `to`, its checksum is right, and it quotes `about` (NULL
 * = quotes nothing). */
void conf_check_icmp(const struct conf_pkt *p, int type, int code, const char *from, const char *to,
                     const struct conf_pkt *about);

/* ---- tun.c ---- */
void conf_tun_reset(void);
struct tun *conf_tun(void);
void conf_tun_put(const uint8_t *p, size_t n); /* from the VPC */
extern uint64_t conf_tun_denied;               /* writes without a valid pass */

#endif
