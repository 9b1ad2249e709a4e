/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.h - one foundation per kernel: a lock held for life before any map, device or route is touched.
 */
#ifndef FOUNDATION_LOCK_H
#define FOUNDATION_LOCK_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

/* Takes the lock (flock, never given back) and writes this process's id into the file; the folder is made
 * when it is missing. BASE_OK; BASE_EAGAIN when another process holds it (its id is in the text); BASE_EIO.
 */
int lock_take(const char *path, struct base_err *err);
/* The process id in the file, when such a process is alive; else 0. */
pid_t lock_holder(const char *path);

#endif
