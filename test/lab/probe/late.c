/* SPDX-License-Identifier: Apache-2.0
 * late.c - how late this machine lets a process run that has nothing to do but to wake up on time: what every
 * time measured beside it may owe to the machine. */
#include "probe.h"
#include <inttypes.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#define EVERY 1000000       /* ns */
#define WORTH_A_LINE 500000 /* ns late */

int probe_late(const struct probe_opts *o)
{
    int64_t next = probe_now();

    probe_open_log(o->log);
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    while (!probe_stopped()) {
        struct timespec ts;
        int64_t now;

        next += EVERY;
        ts = (struct timespec){next / 1000000000, next % 1000000000};
        (void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &ts, NULL);
        now = probe_now();
        if (now - next >= WORTH_A_LINE)
            printf("%" PRId64 ",%" PRId64 "\n", next, now);
        if (now > next)
            next = now;
    }
    return 0;
}
