/* SPDX-License-Identifier: Apache-2.0
 *
 * journal/trail.h - reads an audit trail from disk, line by line, in its order.
 *
 * Driving, blocking: for tools, and for a thread that may wait for the disk. Works beside the agent that
 * writes (and rotates, and deletes its oldest files): what is there at the beginning is read once and in
 * order.
 */
#ifndef JOURNAL_TRAIL_H
#define JOURNAL_TRAIL_H

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

struct journal_reader {
    void *arg;
    /* A file begins. `last_seq`: number of its last line by its name, 0 = the current file or a file of
     * another name; `mtime`: when it was last written. False: skip it. NULL: all. */
    bool (*file)(void *arg, const char *path, uint64_t last_seq, base_wall mtime);
    /* A line without its '\n'; `whole` is false for bytes at a file's end without one. A line beyond 64 KiB
     * comes cut. Non-zero ends the reading with that code. */
    int (*line)(void *arg, uint64_t number, struct base_str line, bool whole);
};
/* `path`: a file, or a directory (its audit-<number>.jsonl in order, then audit.jsonl). BASE_OK;
 * BASE_ENOTFOUND (nothing of that name, or no audit file in it), BASE_EDENIED, BASE_EIO with path and errno,
 * BASE_ENOMEM; what `line` returned. */
int journal_read(const char *path, const struct journal_reader *r, struct base_err *err);

#endif
