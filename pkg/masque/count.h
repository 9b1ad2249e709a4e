/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/count.h - how many connections there are, in all, under way and of each source address, for all data
 * threads together.
 *
 * Single words, changed with atomic operations, on the way of a new connection and of its end only; nobody
 * waits for anybody, and a thread that stands still holds nothing that others need. Sources stand in a table
 * of a fixed size by a keyed hash, so that nobody can make it grow, nor choose whose entry is met without the
 * key.
 *
 * Pure, but for what other threads do meanwhile.
 */
#ifndef MASQUE_COUNT_H
#define MASQUE_COUNT_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "masque/rate.h"

struct masque_sources; /* count.c */
struct masque_count {
    atomic_uint conns, handshakes;
    struct masque_sources *sources;
    struct masque_rates rates; /* of new connections, and of answers to strangers */
};
/* Room for `connections` at once (1 .. 2^20); `seed`: any secret number. BASE_OK, BASE_EINVAL or BASE_ENOMEM. */
int masque_count_init(struct masque_count *c, uint32_t connections, uint64_t seed);
void masque_count_fini(struct masque_count *c);

enum masque_full {
    MASQUE_ROOM = 0,
    MASQUE_FULL_CONNECTIONS,
    MASQUE_FULL_HANDSHAKES,
    MASQUE_FULL_SOURCE, /* of this address, or (one in some 10^10) of those that share its place */
};
struct masque_room {
    uint32_t connections, handshakes, per_source;
};
/* One more from `addr`, with its handshake before it. MASQUE_ROOM: counted, and it calls masque_count_leave
 * when it ends. Else nothing was counted. No count is ever above its limit; of two that come at once for the
 * last place both may be turned away. */
enum masque_full masque_count_enter(struct masque_count *c, const struct in6_addr *addr,
                                    const struct masque_room *room);
/* Its handshake is done. */
void masque_count_shaken(struct masque_count *c);
/* It has ended. */
void masque_count_leave(struct masque_count *c, const struct in6_addr *addr, bool shaken);

#endif
