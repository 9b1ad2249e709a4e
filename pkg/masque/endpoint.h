/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/endpoint.h - both transports as one: HTTP/3 on UDP and, when it is on, HTTP/2 on the same TCP port.
 *
 * Driving; one data thread owns it. One certificate source, one kind of events; a flow's number tells its
 * transport. The functions do what those of the same name in masque/h3.h say.
 */
#ifndef MASQUE_ENDPOINT_H
#define MASQUE_ENDPOINT_H

#include "masque/h2.h"
#include "masque/h3.h"

struct masque_endpoint;
struct masque_endpoint_config {
    struct masque_h3_config
        h3; /* address, certificates, bearer, dialects, events, threads and log are both transports' */
    bool http2;
    struct masque_h2_limits h2; /* its limits that HTTP/3 has, too, are taken from there */
};
/* Port 0: UDP and TCP get the same free one. BASE_OK, BASE_EINVAL, BASE_EIO, BASE_ENOMEM. */
int masque_endpoint_new(struct masque_endpoint **ret, const struct masque_endpoint_config *cfg,
                        struct base_err *err);
struct masque_endpoint *masque_endpoint_free(struct masque_endpoint *e);
enum { MASQUE_ENDPOINT_FDS = 2 };
/* Descriptor `i` to poll for reading, -1 = none. */
int masque_endpoint_fd(const struct masque_endpoint *e, unsigned i);
uint16_t masque_endpoint_port(const struct masque_endpoint *e);
/* Loads the certificate files again for new connections, for both transports or for none. */
int masque_endpoint_reload(struct masque_endpoint *e, struct base_err *err);
/* Takes connections, per_source, handshakes, queue_packets and queue_bytes for what comes from now on, on
 * both transports; the other limits stay. */
void masque_endpoint_set_limits(struct masque_endpoint *e, const struct masque_h3_limits *limits);

/* Descriptor `i` is readable. */
void masque_endpoint_read(struct masque_endpoint *e, unsigned i, base_time now);
/* As masque_h3_take. */
void masque_endpoint_take(struct masque_endpoint *e, base_time now, const struct masque_udp_in *in);
/* Takes in all that waits, whatever it is. */
void masque_endpoint_read_all(struct masque_endpoint *e, base_time now);
base_time masque_endpoint_expiry(const struct masque_endpoint *e);
void masque_endpoint_expire(struct masque_endpoint *e, base_time now);
void masque_endpoint_flush(struct masque_endpoint *e, base_time now, base_time (*clock)(void));

int masque_endpoint_accept(struct masque_endpoint *e, uint64_t flow, const struct base_prefix *prefix,
                           const struct base_prefix *routes, size_t n_routes, const struct fence_slot *slot);
int masque_endpoint_refuse(struct masque_endpoint *e, uint64_t flow, int status, const char *reason,
                           unsigned retry_after);
int masque_endpoint_send(struct masque_endpoint *e, uint64_t flow, const struct fence_pass *pass,
                         const uint8_t *pkt, size_t len);
size_t masque_endpoint_mtu(const struct masque_endpoint *e, uint64_t flow);
/* HTTP/3 only: over HTTP/2 TCP's window does it. */
void masque_endpoint_hold(struct masque_endpoint *e, uint64_t flow, base_time until);
void masque_endpoint_stop(struct masque_endpoint *e, uint64_t flow);
void masque_endpoint_close(struct masque_endpoint *e, uint64_t flow);
void masque_endpoint_discard(struct masque_endpoint *e);
void masque_endpoint_drain(struct masque_endpoint *e);
/* h2 is zero when HTTP/2 is off. */
void masque_endpoint_stats(const struct masque_endpoint *e, struct masque_h3_stats *h3,
                           struct masque_h2_stats *h2);

#endif
