/* SPDX-License-Identifier: Apache-2.0
 *
 * watchdog.h - a process beside the foundation that withdraws what it has not refreshed for L + 2 s.
 */
#ifndef FOUNDATION_WATCHDOG_H
#define FOUNDATION_WATCHDOG_H

#include "kernel.h"
#include "options.h"

/* Starts this program again as the watchdog. It outlives us. */
int watchdog_start(const struct options *o, struct base_err *err);
/* Is the watchdog. Ends when its foundation has gone and no route is left, or another foundation has its own. */
int watchdog_run(const struct options *o, struct loop_log *log, struct base_err *err);

#endif
