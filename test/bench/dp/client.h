/* SPDX-License-Identifier: Apache-2.0
 *
 * client.h - the benchmarks' client: one connection that sends and takes packets as fast as it can.
 *
 * Driving, one thread, nothing blocks. It speaks CONNECT-IP over HTTP/3 (BENCH_H3), or the bare loop's
 * protocol: QUIC datagrams of two zero bytes and a packet, no HTTP at all (BENCH_BARE), or the ideal loop's:
 * sealed.h (BENCH_IDEAL_H3). Over TCP: client_h2.h. Set-up errors end the program.
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_client;
enum bench_protocol { BENCH_H3 = 1, BENCH_BARE, BENCH_H2, BENCH_IDEAL_H2, BENCH_IDEAL_H3 };
typedef void (*bench_packet_fn)(void *arg, const uint8_t *pkt, size_t len);

/* Client certificate DIR/NAME.crt; the server at [::1]:port is not checked. */
struct bench_client *bench_client_new(uint16_t port, const char *dir, const char *name,
                                      enum bench_protocol protocol, bench_packet_fn fn, void *arg);
struct bench_client *bench_client_free(struct bench_client *c);
int bench_client_fd(const struct bench_client *c);
/* Packets may be sent. */
bool bench_client_open(const struct bench_client *c);
bool bench_client_ended(const struct bench_client *c);
/* Takes in what has come, runs timers, writes what is due. */
void bench_client_pump(struct bench_client *c);
/* Sends up to `n` copies of the packet: each by itself, or (gso) as runs of up to 44 in one call. Returns how
 * many left. */
unsigned bench_client_send(struct bench_client *c, const uint8_t *pkt, size_t len, unsigned n, bool gso);

#endif
