/* SPDX-License-Identifier: Apache-2.0
 *
 * journal/journal.h - the audit files: lines are chained, become durable (many with one fdatasync), and
 * rotate.
 *
 * Driving. A thread of its own seals, appends and syncs; the thread that asks never waits. A line counts as
 * durable only after fdatasync returned 0; if that does not happen in time, or the disk refuses, the asker is
 * told `durable = false` and must not carry out what the record would have allowed (EXPECTATIONS.md B5). A failed
 * write is cut back to the last whole line; lines that nobody waits for (an expiry, the sum of refusals) are
 * then kept, as many as half of the queue, and tried again with the next line or after a second. What a crash
 * tore off is cut away when the file is opened again, and a torn line says so (audit/chain.h). A file that
 * was deleted or moved away meanwhile is replaced by a new one that goes on with the chain.
 *
 * The current file is <dir>/audit.jsonl, 0600. When it has grown or aged beyond its bound it is renamed to
 * audit-<number of its last line, 20 digits>.jsonl and a new one continues its chain. The oldest files are
 * deleted beyond `max_files`: the chain of what is left still verifies.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "base/err.h"
#include "base/time.h"

struct base_key;
struct loop;
struct journal;

struct journal_config {
    const char *dir;         /* must exist and be writable */
    const char *node;        /* for the start line of each file; NULL or "" = "unnamed" */
    size_t max_lines;        /* bound of the queue; 0 = 4096 */
    base_time deadline;      /* longest wait for durability; 0 = 2 s */
    uint64_t max_file_bytes; /* rotate beyond it; 0 = 64 MiB */
    base_time max_age;       /* rotate a file that is older; 0 = never */
    unsigned max_files;      /* rotated files that are kept; 0 = 16 */
    /* Signed checkpoints (audit/chain.h): after so many lines, after so long (when there is something to
     * sign), and at the end. NULL: none. Must outlive the journal. */
    const struct base_key *key;
    uint64_t checkpoint_lines; /* 0 = 10000 */
    base_time checkpoint_age;  /* 0 = 10 min */
    /* A copy of every line that became durable, one write(2) each, to `copy_fd`, which stays the caller's.
     * What it does not take at once is left out, and counted in a line {"chain":"copy","missed":N}. */
    bool copy;
    int copy_fd;
};
/* Called on the loop's thread, once per line that was appended with ask != 0. */
typedef void (*journal_done)(void *arg, uint64_t ask, bool durable);

/* BASE_OK; BASE_EIO or BASE_EDENIED with path, errno and remedy; BASE_ENOMEM. */
int journal_new(struct journal **ret, struct loop *l, const struct journal_config *cfg, journal_done done,
                void *arg, struct base_err *err);
/* Waits for what is queued (at most the deadline), then ends the thread. NULL ok. */
struct journal *journal_free(struct journal *j);

/* Copies one line "{…}\n". BASE_OK; BASE_EFULL (the queue is full: the operation must be refused);
 * BASE_EINVAL. ask 0: nobody waits. */
int journal_append(struct journal *j, struct base_str line, uint64_t ask);

struct journal_stats {
    uint64_t appended, durable, failed, late, syncs; /* lines, lines, lines, lines, fdatasync calls */
    uint64_t kept;            /* lines that wait for the disk to take them, after it refused them */
    uint64_t rotations, torn; /* files that were closed, unfinished lines that were found */
    uint64_t seq;             /* number of the last durable line */
    uint64_t checkpoints;     /* signed */
    uint64_t copied, missed;  /* lines that were copied, and that could not be */
    bool healthy;             /* the last write succeeded and none is overdue */
    char reason[160];         /* why not */
};
void journal_stats(struct journal *j, struct journal_stats *ret);

#endif
