/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.h - what the benchmarks' client and the loops beside ours do with sockets and the device: runs of UDP
 * packets in one call (GSO, GRO), the TUN device as it is. Driving; nothing is checked twice.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same cipher on both sides, for all that are compared. */
#define BENCH_TLS "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:%DISABLE_TLS13_COMPAT_MODE"

enum { BENCH_RUN_BYTES = 64000 };
struct bench_run { /* packets of one size, the last may be shorter; the next one is written at data + len */
    size_t len, seg;
    unsigned n;
    uint8_t data[BENCH_RUN_BYTES + 2048];
};
/* The packet of `n` bytes at r->data + r->len belongs to it; sends what cannot wait (`most` are in one run). */
void bench_run_add(struct bench_run *r, int fd, const struct sockaddr_in6 *to, size_t n, unsigned most);
/* NULL `to`: the socket is connected. */
void bench_run_flush(struct bench_run *r, int fd, const struct sockaddr_in6 *to);
/* False: nothing there. *ret_seg: size of each packet but the last. */
bool bench_take_run(int fd, uint8_t *buf, size_t size, struct sockaddr_in6 *ret_from, size_t *ret_len,
                    size_t *ret_seg);

/* With a virtio header of 10 bytes. -1 with errno. */
int bench_tun_open(const char *device);

#endif
