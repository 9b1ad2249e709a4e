/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/flow.h - what a CONNECT-IP request is to the caller of an endpoint, whatever transport it came by.
 *
 * Pure declarations. A flow is one request from its arrival to its end; its number is never reused, and tells
 * the transport (MASQUE_FLOW_H2). Each reported flow gets exactly one `ended`.
 */
#ifndef MASQUE_FLOW_H
#define MASQUE_FLOW_H

#include "base/err.h"
#include "base/id.h"
#include "base/secret.h"
#include "base/time.h"

#define MASQUE_FLOW_H2 (UINT64_C(1) << 52) /* set in the numbers of HTTP/2 flows; exact in a JSON number */

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
enum masque_transport { MASQUE_H3 = 1, MASQUE_H2 };
struct masque_request {
    uint64_t flow;
    enum masque_transport transport;
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
    MASQUE_END_LOCAL,      /* closed or refused by the caller, or the endpoint is being freed */
};
struct masque_events { /* called from within an endpoint's _read, _expire and _flush; they must not free it */
    void (*request)(void *arg, const struct masque_request *rq);
    /* One whole IP packet of context 0 from an accepted flow; not yet validated; may be changed in place; at
     * least MASQUE_PACKET_ROOM writable bytes stand before it (for a virtio header). Valid during the call.
     */
    void (*packet)(void *arg, uint64_t flow, uint8_t *pkt, size_t len);
    void (*ended)(void *arg, uint64_t flow, enum masque_end why, const char *detail);
};

#endif
