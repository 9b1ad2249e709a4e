/* SPDX-License-Identifier: Apache-2.0
 *
 * client_h2.h - the benchmarks' client over TCP: TLS by OpenSSL, HTTP/2 frames by hand, so that it costs next
 * to nothing.
 *
 * Driving, one thread, nothing blocks. CONNECT-IP in the RFC's form, or (`ideal`) the ideal loop's protocol:
 * TLS, and then nothing but DATA frames of DATAGRAM capsules, without preface, settings, headers or windows.
 */
#ifndef BENCH_CLIENT_H2_H
#define BENCH_CLIENT_H2_H

#include "client.h"

struct bench_h2;
struct bench_h2 *bench_h2_new(uint16_t port, const char *dir, const char *name, bool ideal,
                              bench_packet_fn fn, void *arg);
struct bench_h2 *bench_h2_free(struct bench_h2 *c);
int bench_h2_fd(const struct bench_h2 *c);
bool bench_h2_open(const struct bench_h2 *c);
bool bench_h2_ended(const struct bench_h2 *c);
void bench_h2_pump(struct bench_h2 *c);
unsigned bench_h2_send(struct bench_h2 *c, const uint8_t *pkt, size_t len, unsigned n);

#endif
