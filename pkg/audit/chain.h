/* SPDX-License-Identifier: Apache-2.0
 *
 * audit/chain.h - the hash chain of the audit trail, and its verifier.
 *
 * Pure. A sealed line is the record with two more members at its end:
 *
 *     {"ts":…,"effect":"none","seq":12,"hash":"<64 hex>"}
 *
 * hash = SHA-256(hash of the line before, as 32 bytes || this line from '{' up to and not including
 * `,"hash":`). Each file begins with a start line that names the hash that it continues (zeros for the first
 * file of a node); sequence numbers go on across files and restarts. So an edited, missing, repeated,
 * reordered or foreign line is found, and so is a file that is left out. What a crash tore off is cut away
 * when the file is opened again, and a torn line says how many bytes it was. Records that were cut off at the
 * very end cannot be missed without a checkpoint (a signed line, or a copy elsewhere of the last hash).
 *
 * A checkpoint is a line of the chain's own that signs the line before it (Ed25519): node, number, hash and
 * time. Whoever holds the files but not the key can then change nothing up to the last checkpoint, not even
 * by computing every hash anew.
 */
#ifndef AUDIT_CHAIN_H
#define AUDIT_CHAIN_H

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sign.h"
#include "base/time.h"

struct audit_chain { /* the last sealed line; all zero = nothing yet */
    uint64_t seq;
    uint8_t hash[BASE_SHA256_SIZE];
};

/* Appends the sealed form of `line` ("{…}\n") to `out` and moves the chain on. BASE_OK; BASE_EINVAL (not such
 * a line), BASE_EFULL, BASE_ENOMEM: the chain is unchanged. */
int audit_chain_seal(struct audit_chain *c, struct base_hasher *h, struct base_buf *out,
                     struct base_str line);
/* The same for a line of the chain's own. `node` is a node name. */
int audit_chain_start(struct audit_chain *c, struct base_hasher *h, struct base_buf *out, base_wall ts,
                      const char *node);
int audit_chain_torn(struct audit_chain *c, struct base_hasher *h, struct base_buf *out, base_wall ts,
                     uint64_t bytes);

int audit_chain_checkpoint(struct audit_chain *c, struct base_hasher *h, struct base_buf *out, base_wall ts,
                           const char *node, const struct base_key *key);

/* Takes seq and hash out of a sealed line (without its '\n'). BASE_OK or BASE_EINVAL. It is not verified. */
int audit_chain_parse(struct base_str line, struct audit_chain *ret);

/* ---- verifier */
enum audit_flaw {
    AUDIT_FLAW_NONE = 0,
    AUDIT_FLAW_FORM, /* a line is no sealed record */
    AUDIT_FLAW_HASH, /* its hash does not fit: it, or the line before it, was changed, moved or taken away */
    AUDIT_FLAW_SEQUENCE,  /* its number is not the next one */
    AUDIT_FLAW_START,     /* a file begins without a start line, or continues another chain */
    AUDIT_FLAW_SIGNATURE, /* a checkpoint that none of the given keys signed, or of another line */
    AUDIT_FLAW_TORN, /* an unfinished line in the middle (at the very end of a file that is the last: allowed) */
};
const char *audit_flaw_name(enum audit_flaw f);
struct audit_verifier {
    struct audit_chain chain;
    bool begun;                                         /* a start line was seen */
    bool torn_end;                                      /* an unfinished line was seen: nothing may follow */
    uint64_t lines, records, torn, files, line_in_file; /* torn: torn lines, and an unfinished last one */
    char node[126];
    const struct base_key *const *keys; /* borrowed; none: signatures are not looked at */
    size_t n_keys;
    uint64_t checkpoints, signed_seq; /* lines up to this number are signed; with keys only */
    enum audit_flaw flaw;             /* the first one; verification stops there */
    uint64_t flaw_file, flaw_line;    /* counted from 1 */
};
void audit_verifier_init(struct audit_verifier *v);
/* A new file begins. */
void audit_verifier_file(struct audit_verifier *v);
/* One line, without its '\n'; `whole` is false for bytes at the end of the file without '\n'. Returns the
 * verifier's flaw. */
enum audit_flaw audit_verifier_line(struct audit_verifier *v, struct base_hasher *h, struct base_str line,
                                    bool whole);
/* The end of the last file: an unfinished last line is allowed, and counted in `torn`. */
enum audit_flaw audit_verifier_end(struct audit_verifier *v);

#endif
