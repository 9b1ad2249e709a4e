/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/threads.h - several endpoints, one thread each, behind one port.
 *
 * Each has a UDP socket and a TCP listener of its own (SO_REUSEPORT). A QUIC packet belongs to the thread
 * that its destination connection ID names: the ID's first byte modulo the number of threads. The IDs that we
 * give out are made so, hence a connection stays where it began whatever address its client has; the ID that
 * a client makes up for its first packet picks a thread at random. That is a route, not a secret: who knows
 * an ID knows its thread (as in QUIC-LB, RFC 9000 section 5.1 leaves the form to us). A program in the kernel
 * (classic BPF, no capability needed) picks the socket by the same rule; what comes elsewhere all the same
 * (UDP_GRO joins datagrams of one client by address, not by ID) is handed over by the caller.
 *
 * Pure, but for the counts, which all threads change.
 */
#ifndef MASQUE_THREADS_H
#define MASQUE_THREADS_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "masque/count.h"

enum { MASQUE_THREADS_MAX = 64, MASQUE_FLOW_THREAD_SHIFT = 44 };

/* What the endpoints of all threads have together, so that the limits of connections, handshakes, sources and
 * new connections a second mean the process. The caller's: both are set up (masque_count_init) before the
 * first endpoint is opened, and outlive the last. */
struct masque_shared {
    struct masque_count h3, h2;
};
/* One endpoint's place; all zero = alone, and then none of this happens. */
struct masque_threads {
    unsigned index, count;
    uint16_t port; /* of index 0, which is opened first */
    struct masque_shared *shared;
};

/* The thread of a flow's number (0 .. 255). */
static inline unsigned masque_flow_thread(uint64_t flow)
{
    return (unsigned)(flow >> MASQUE_FLOW_THREAD_SHIFT) & 0xff;
}
/* The thread that a UDP datagram of `n` bytes belongs to: 0 .. count - 1. */
unsigned masque_thread_of(const uint8_t *p, size_t n, unsigned count);
/* Makes a connection ID of random bytes name a thread. */
void masque_thread_mark(uint8_t *cid, const struct masque_threads *t);
/* Lets the kernel pick the socket of the group of `fd` by that rule; sockets count in the order of their
 * binding. BASE_OK or BASE_EIO. */
int masque_thread_steer(int fd, unsigned count, struct base_err *err);

#endif
