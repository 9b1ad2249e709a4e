/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/ask_int.h - between ask.c (questions and answers) and ask_tokens.c, ask_files.c.
 */
#ifndef AGENT_ASK_INT_H
#define AGENT_ASK_INT_H

#include <sys/types.h>

#include "agent/ask.h"
#include "base/secret.h"
#include "http/pool.h"

/* ---- ask_tokens.c: bearer tokens by flow */
struct ask_tokens;
struct ask_tokens *agent_ask_tokens_new(uint32_t max);
struct ask_tokens *agent_ask_tokens_free(struct ask_tokens *t);
/* Takes the token; one that does not fit or is there already is overwritten at once: its review finds
 * nothing. */
void agent_ask_tokens_put(struct ask_tokens *t, uint64_t flow, struct base_secret *token);
const struct base_secret *agent_ask_tokens_get(const struct ask_tokens *t, uint64_t flow);
void agent_ask_tokens_drop(struct ask_tokens *t, uint64_t flow);
uint32_t agent_ask_tokens_count(const struct ask_tokens *t);

/* ---- ask_files.c: the webhook's PEM files, read again when they change */
struct ask_file {
    const char *what; /* name of the option */
    char path[512];
    bool private_key;
    struct base_secret *text;
    dev_t dev;
    ino_t ino;
    int64_t mtime_ns;
    off_t size;
};
/* BASE_OK: `text` is what the file holds now (*ret_changed says whether it is new). Else nothing was changed. */
int agent_ask_file_read(struct ask_file *f, bool *ret_changed, struct base_err *err);
void agent_ask_file_fini(struct ask_file *f);

#endif
