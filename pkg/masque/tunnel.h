/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/tunnel.h - one CONNECT-IP tunnel as its capsules see it, the same over HTTP/3 and HTTP/2: what came
 * on the stream, what is answered (RFC 9484 section 4.7, RFC 9297 section 3).
 *
 * Pure. The transport feeds the stream's bytes in, delivers the packets that come out, and writes the
 * replies.
 */
#ifndef MASQUE_TUNNEL_H
#define MASQUE_TUNNEL_H

#include "base/err.h"
#include "base/time.h"
#include "masque/capsule.h"
#include "masque/path.h"

enum {
    MASQUE_REQUESTS_BURST = 16,    /* ADDRESS_REQUEST capsules at once, then 10 a second */
    MASQUE_TUNNEL_SETUP_MAX = 8192 /* bytes of what masque_tunnel_open writes */
};

struct masque_tunnel {
    struct masque_path path;
    struct base_prefix prefix; /* once it is open */
    bool open;
    struct masque_capsule_parser parser;
    double request_tokens; /* ADDRESS_REQUEST rate */
    base_time request_at;
    struct masque_address asked[MASQUE_CAPSULE_ADDRESSES_MAX]; /* before it was open */
    size_t n_asked;
};

void masque_tunnel_init(struct masque_tunnel *t, const struct masque_path *path, base_time now);

enum masque_tunnel_next {
    MASQUE_TUNNEL_MORE = 0, /* the bytes are used up */
    MASQUE_TUNNEL_DATAGRAM, /* p, len: value of a DATAGRAM capsule, valid until the next call */
    MASQUE_TUNNEL_REPLY,    /* p, len: capsule to be written on the stream */
};
struct masque_tunnel_out {
    const uint8_t *p;
    size_t len;
    uint8_t reply[MASQUE_CAPSULE_MAX];
};
/* Takes bytes from *p (moving *p and *n) up to the next thing that the transport has to do. An enum
 * masque_tunnel_next, or BASE_EPROTO: the stream is malformed and must be aborted, err->msg says why. */
int masque_tunnel_feed(struct masque_tunnel *t, base_time now, const uint8_t **p, size_t *n,
                       struct masque_tunnel_out *ret, struct base_err *err);
/* True between capsules: only there may the stream end. */
bool masque_tunnel_at_boundary(const struct masque_tunnel *t);

/* The tunnel is admitted: writes ADDRESS_ASSIGN (also the answers to what was asked so far) and
 * ROUTE_ADVERTISEMENT. Bytes written, or 0 when they do not fit. n_routes <= MASQUE_ROUTES_MAX. */
size_t masque_tunnel_open(struct masque_tunnel *t, const struct base_prefix *prefix,
                          const struct base_prefix *routes, size_t n_routes, uint8_t *dst, size_t size);

#endif
