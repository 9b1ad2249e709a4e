/* SPDX-License-Identifier: Apache-2.0
 *
 * base/time.h - time as a value. Pure: nobody here reads a clock.
 *
 * base_time is CLOCK_BOOTTIME in ns; base_wall is CLOCK_REALTIME in microseconds since 1970 and is for people
 * and for `validUntil` only.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stdint.h>

#include "base/str.h"

typedef int64_t base_time;
typedef int64_t base_wall;

#define BASE_NS ((base_time)1)
#define BASE_US ((base_time)1000)
#define BASE_MS ((base_time)1000000)
#define BASE_SEC ((base_time)1000000000)
/* Later than every deadline; earlier than nothing. */
#define BASE_TIME_NEVER INT64_MAX

/* a + b without wrapping: sticks at BASE_TIME_NEVER or INT64_MIN. */
base_time base_time_add(base_time a, base_time b);
static inline base_time base_time_min(base_time a, base_time b)
{
    return a < b ? a : b;
}
static inline base_time base_time_max(base_time a, base_time b)
{
    return a > b ? a : b;
}

/* RFC 3339 with microseconds, UTC ("2026-11-29T21:08:22.000000Z"); dst must hold BASE_RFC3339_SIZE. */
#define BASE_RFC3339_SIZE 32
void base_rfc3339(char *dst, base_wall t);
/* Any RFC 3339 date-time with an offset, years 1970..9999 (in UTC, too), fractions cut at microseconds.
 * BASE_OK or BASE_EINVAL. */
int base_rfc3339_parse(struct base_str s, base_wall *ret);

#endif
