/* SPDX-License-Identifier: Apache-2.0
 *
 * dataplane/client.h - a small CONNECT-IP client for tests: one connection, one request, packets both ways.
 *
 * Obeys only dp_client_pump; sends whatever packet it is given, true or not. Keeps no queue: a packet that
 * the congestion window does not admit is refused at once, so that a sent packet's time of sending is known.
 */
#ifndef DATAPLANE_CLIENT_H
#define DATAPLANE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_client;
/* $DATAPLANE_TRANSPORT is h2: every client comes over HTTP/2. */
bool dp_over_h2(void);
typedef void (*dp_packet_fn)(void *arg, const uint8_t *pkt, size_t len);

/* Connects to [::1]:port with DIR/<name>.crt and .key (the server's certificate is not checked). Aborts on
 * set-up errors. */
struct dp_client *dp_client_new(uint16_t port, const char *dir, const char *name, const char *path,
                                dp_packet_fn fn, void *arg);
/* Says goodbye first. NULL ok. */
struct dp_client *dp_client_free(struct dp_client *c);
int dp_client_fd(const struct dp_client *c);
/* Takes in what has come, runs timers, writes what is due. Never blocks. */
void dp_client_pump(struct dp_client *c);
/* HTTP status of the answer, 0 = none yet. */
int dp_client_status(const struct dp_client *c);
/* The request stream or the connection has ended. */
bool dp_client_ended(const struct dp_client *c);
/* Body of a refusal. */
const char *dp_client_body(const struct dp_client *c);
/* False: not now (or never, when it is too long). */
bool dp_client_send(struct dp_client *c, const uint8_t *pkt, size_t len);

#endif
