/* SPDX-License-Identifier: Apache-2.0
 *
 * contract/json.h - a strict JSON reader that keeps the exact text of every value.
 *
 * Pure. Why not a DOM of doubles: 64-bit integers must survive, members that this program does not know must
 * be written back byte for byte, and a duplicate member or a NUL inside a name must be an error and not a
 * surprise.
 *
 * Refused: anything after the value, duplicate members (in the kept part), more than CONTRACT_JSON_MEMBERS
 * members in one object, deeper nesting than CONTRACT_JSON_DEPTH, raw control characters, invalid UTF-8,
 * numbers that RFC 8259 does not know. An unpaired \u surrogate reads as U+FFFD, as Go does.
 */
#ifndef CONTRACT_JSON_H
#define CONTRACT_JSON_H

#include "base/err.h"
#include "base/mem.h"

#define CONTRACT_JSON_DEPTH 64
#define CONTRACT_JSON_MEMBERS 1024

enum contract_json_type {
    CONTRACT_JSON_NULL = 1,
    CONTRACT_JSON_BOOL,
    CONTRACT_JSON_NUMBER,
    CONTRACT_JSON_STRING,
    CONTRACT_JSON_ARRAY,
    CONTRACT_JSON_OBJECT,
};
struct contract_json {
    enum contract_json_type type;
    bool boolean;
    struct base_str key; /* member name, decoded; empty outside an object */
    struct base_str raw; /* the value's text in the input */
    struct base_str str; /* STRING: the decoded text; may hold NUL bytes */
    const struct contract_json *child, *next;
};

/* Nodes live in `arena`; `raw` (and strings without escapes) borrow from `text`, which must outlive them.
 * Values nested deeper than `keep` levels below the root are checked but get no nodes, only the `raw` of
 * their parent; 0 = keep all. BASE_OK; BASE_EINVAL with the byte and what is wrong; BASE_ENOMEM when the
 * arena is used up. */
int contract_json_parse(const struct contract_json **ret, struct base_arena *arena, struct base_str text,
                        unsigned keep, struct base_err *err);
/* The member of that name, or NULL; also when `o` is NULL or no object. */
const struct contract_json *contract_json_get(const struct contract_json *o, const char *name);
/* The string of that member, or an empty one when it is absent or of another type. */
struct base_str contract_json_str(const struct contract_json *o, const char *name);
/* Exact integers only: "1.0", "1e0" and anything outside int64 are BASE_EINVAL. */
int contract_json_int(const struct contract_json *v, int64_t *ret);
const char *contract_json_type_name(enum contract_json_type t);

/* Appends `s` as a JSON string with its quotes. Errors are sticky in `out`. */
void contract_json_quote(struct base_buf *out, struct base_str s);

#endif
