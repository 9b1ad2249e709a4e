/* SPDX-License-Identifier: Apache-2.0
 *
 * journal/journal.h - the audit file: lines become durable, many with one fdatasync.
 *
 * Driving. A thread of its own appends and syncs; the thread that asks never waits. A line counts as durable
 * only after fdatasync returned 0; if that does not happen in time, or the disk refuses, the asker is told
 * `durable = false` and must not carry out what the record would have allowed (mission B5). Lines are written
 * whole: what a crash tore off is closed with a newline when the file is opened again, and a failed write is
 * cut back to the last whole line.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "base/err.h"
#include "base/time.h"

struct loop;
struct journal;

struct journal_config {
    const char *dir;    /* must exist and be writable; the file is <dir>/audit.jsonl, 0600 */
    size_t max_lines;   /* bound of the queue; 0 = 4096 */
    base_time deadline; /* longest wait for durability; 0 = 2 s */
};
/* Called on the loop's thread, once per line that was appended with ask != 0. */
typedef void (*journal_done)(void *arg, uint64_t ask, bool durable);

/* BASE_OK; BASE_EIO or BASE_EDENIED with path, errno and remedy; BASE_ENOMEM. */
int journal_new(struct journal **ret, struct loop *l, const struct journal_config *cfg, journal_done done,
                void *arg, struct base_err *err);
/* Waits for what is queued (at most the deadline), then ends the thread. NULL ok. */
struct journal *journal_free(struct journal *j);

/* Copies one line that ends in '\n'. BASE_OK; BASE_EFULL (the queue is full: the operation must be refused);
 * BASE_EINVAL. ask 0: nobody waits. */
int journal_append(struct journal *j, struct base_str line, uint64_t ask);

struct journal_stats {
    uint64_t appended, durable, failed, late, syncs; /* lines, lines, lines, lines, fdatasync calls */
    bool healthy;                                    /* the last write succeeded and none is overdue */
    char reason[160];                                /* why not */
};
void journal_stats(struct journal *j, struct journal_stats *ret);

#endif
