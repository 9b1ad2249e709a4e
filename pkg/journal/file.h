/* SPDX-License-Identifier: Apache-2.0
 *
 * journal/file.h - the audit files on disk: open and recover, append, rotate, retain. Used by the journal's
 * thread only.
 */
#ifndef JOURNAL_FILE_H
#define JOURNAL_FILE_H

#include "audit/chain.h"
#include "journal/journal.h"

struct journal_file {
    int fd, lock; /* lock: the directory, held while the file is open */
    char dir[448], path[512], node[126];
    struct audit_chain chain; /* last durable line */
    struct base_hasher *hasher;
    struct base_buf sealed; /* one batch */
    uint64_t size, max_bytes;
    base_time opened, max_age;
    unsigned max_files;
    uint64_t rotations, torn;
    const struct base_key *key;
    uint64_t checkpoint_lines, unsigned_lines; /* since the last checkpoint */
    base_time checkpoint_age, checkpoint_at;   /* when the last one was made */
    uint64_t checkpoints;
    bool copy;
    int copy_fd;
    uint64_t copied, missed, missed_now; /* missed_now: since the last line that said so */
};

/* Opens <dir>/audit.jsonl, cuts off a torn end, finds where the chain stands (in this file or the newest
 * rotated one) and writes the start line of a new file. BASE_OK, BASE_EDENIED, BASE_EIO, BASE_EINVAL,
 * BASE_ENOMEM with path and remedy. */
int journal_file_open(struct journal_file *f, const struct journal_config *cfg, struct base_err *err);
void journal_file_close(struct journal_file *f);
/* Seals and appends every line of `batch`, then fdatasync. 0, or an errno: nothing of the batch is in the
 * file then, and the chain is where it was. */
int journal_file_append(struct journal_file *f, struct base_str batch);
/* Signs what is there when a bound is reached, or `now_at_any_rate`. 0 or an errno. */
int journal_file_checkpoint(struct journal_file *f, base_time now, bool now_at_any_rate);
/* When the next checkpoint is due; BASE_TIME_NEVER: there is nothing to sign. */
base_time journal_file_checkpoint_due(const struct journal_file *f);
/* Rotates when a bound is reached. 0 or an errno (the current file is kept). */
int journal_file_rotate(struct journal_file *f, base_time now);
/* Is `name` that of a rotated file? *ret: number of its last line. */
bool journal_rotated_number(const char *name, uint64_t *ret);

#endif
