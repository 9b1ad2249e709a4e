/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/rate.h - how many new connections a second: of all together, and of one network; and how many
 * answers to strangers.
 *
 * Pure, and of a fixed size: networks (/64, or one IPv4 address) share 1,024 buckets by a keyed hash, so that
 * nobody can make the table grow, nor choose whose bucket is emptied without the key. Several threads may use
 * one, each with its own clock: single words, changed with atomic operations.
 */
#ifndef MASQUE_RATE_H
#define MASQUE_RATE_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum { MASQUE_RATE_BUCKETS = 1024, MASQUE_RATE_EXTRA = 16, MASQUE_ANSWERS_PER_SECOND = 500 };
struct masque_rates { /* zero-initialised = nobody has come yet */
    uint64_t seed;
    _Atomic base_time all, answers,
        network[MASQUE_RATE_BUCKETS]; /* when what was taken has been earned again */
};
/* May one more come from `addr` now? All together get `all` a second, a network gets `network` a second; as
 * many may come at once, and MASQUE_RATE_EXTRA more. Nothing is counted. */
bool masque_rate_left(const struct masque_rates *r, const struct in6_addr *addr, base_time now, uint32_t all,
                      uint32_t network);
/* One more has come. True: counted; false: there is none left (any more), and nothing was counted. */
bool masque_rate_take(struct masque_rates *r, const struct in6_addr *addr, base_time now, uint32_t all,
                      uint32_t network);
/* One answer to a packet that belongs to nobody: MASQUE_ANSWERS_PER_SECOND, and as many at once. True:
 * counted. */
bool masque_rate_answer(struct masque_rates *r, base_time now);

#endif
