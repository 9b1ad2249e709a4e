/* SPDX-License-Identifier: Apache-2.0
 *
 * audit/parse.h - reads a line of the trail back, and says whether a question is about it.
 *
 * Pure. Only what the encoder and the chain write is taken: members in the order of the table, each at most
 * once, no blanks, no escapes. A line is read as it stands; whether it is the one that was written is the
 * verifier's business (audit/chain.h).
 */
#ifndef AUDIT_PARSE_H
#define AUDIT_PARSE_H

#include "audit/record.h"

enum audit_line_kind {
    AUDIT_LINE_RECORD = 1,
    AUDIT_LINE_START,      /* a file begins: node */
    AUDIT_LINE_TORN,       /* a crash tore off `bytes` */
    AUDIT_LINE_CHECKPOINT, /* a signature: node, key */
};
struct audit_line {
    enum audit_line_kind kind;
    base_wall ts;
    uint64_t seq; /* 0: the line is not sealed */
    struct audit_record record;
    char node[126];
    char key[17];
    uint64_t bytes;
};
/* `line` without its '\n'. BASE_OK or BASE_EINVAL. *ret is written whole or not at all. */
int audit_parse(struct base_str line, struct audit_line *ret);

/* The audience of tokens that may read a trail over the network: good for nothing else. */
#define AUDIT_PAGE_AUDIENCE "audit.holdfast.masque.galactic.datumapis.com"
#define AUDIT_QUERY_OBJECTS 16
struct audit_query { /* all that are given must hold; zero = no such condition */
    struct base_correlation correlation;
    uint32_t n_objects; /* any of them */
    char objects[AUDIT_QUERY_OBJECTS][254];
    char suffix[200];       /* or: object ends in "." and this (a connector, whatever its tenant) */
    base_wall since, until; /* since <= ts (of a sum: its last) < until */
    uint64_t after;         /* seq > after */
};
/* Only records match. */
bool audit_matches(const struct audit_query *q, const struct audit_line *l);
/* A cheap look at the text: false when the line certainly does not match. */
bool audit_may_match(const struct audit_query *q, struct base_str line);

#endif
