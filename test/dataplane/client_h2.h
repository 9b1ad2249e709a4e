/* SPDX-License-Identifier: Apache-2.0
 *
 * dataplane/client_h2.h - the client of client.h over HTTP/2; called by client.c only.
 */
#ifndef DATAPLANE_CLIENT_H2_H
#define DATAPLANE_CLIENT_H2_H

#include "client.h"

struct dp_h2;
struct dp_h2 *dp_h2_new(uint16_t port, const char *dir, const char *name, const char *path, dp_packet_fn fn,
                        void *arg);
struct dp_h2 *dp_h2_free(struct dp_h2 *c);
int dp_h2_fd(const struct dp_h2 *c);
void dp_h2_pump(struct dp_h2 *c);
int dp_h2_status(const struct dp_h2 *c);
bool dp_h2_ended(const struct dp_h2 *c);
const char *dp_h2_body(const struct dp_h2 *c);
bool dp_h2_send(struct dp_h2 *c, const uint8_t *pkt, size_t len);

#endif
