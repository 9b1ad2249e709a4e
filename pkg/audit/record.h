/* SPDX-License-Identifier: Apache-2.0
 *
 * audit/record.h - one audit record and its allow-list encoder.
 *
 * Pure. A record is metadata only: what can be encoded is the table in record.c and nothing else, each field
 * with an alphabet and a length. A value outside its alphabet is not cleaned up but refused (BASE_EINVAL
 * names the field, never the value), so that no token, payload or grant can slip in under the name of
 * something else. Source: EXPECTATIONS.md B4, B11.
 */
#ifndef AUDIT_RECORD_H
#define AUDIT_RECORD_H

#include "base/err.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/time.h"

enum audit_event { /* the six events of the trail */
                   AUDIT_ACQUIRE = 1,
                   AUDIT_RENEW,
                   AUDIT_TAKEOVER,
                   AUDIT_RELEASE,
                   AUDIT_EXPIRY,
                   AUDIT_REJECT,
};
#define AUDIT_EVENT_N 7
enum audit_outcome { AUDIT_ALLOWED = 1, AUDIT_REFUSED, AUDIT_OBSERVED };
enum audit_effect { /* EXPECTATIONS.md B11: no claim of exactly-once */
                    AUDIT_EFFECT_NONE = 1,
                    AUDIT_EFFECT_INTENDED, /* the record precedes the effect that it allows */
                    AUDIT_EFFECT_POSSIBLE, /* an external effect may already have happened */
};
const char *audit_event_name(enum audit_event e);
/* 0 when it is none of them. */
enum audit_event audit_event_of(struct base_str name);

struct audit_record { /* plain data; "" or zero = absent */
    base_wall ts;
    enum audit_event event;
    enum audit_outcome outcome;
    char reason[48]; /* CamelCase constant */
    struct base_correlation correlation, trace;
    char node[126];
    char instance[190];
    struct base_uuid pod_uid;
    char object[254];
    struct base_uuid object_uid;
    char old_holder[126], new_holder[126];
    int64_t epoch;
    struct base_uuid lease_uuid;
    char credential_id[65]; /* SHA-256 of the credential, hex */
    int64_t count;          /* of a sum (audit/sum.h): how many it stands for, and between when; 0 = one */
    base_wall first, last;
    enum audit_effect effect;
};

/* Appends one JSON line (with its '\n') to `out`. BASE_OK; BASE_EINVAL: a field that must be there is missing
 * or a value is outside its alphabet (nothing was appended); BASE_EFULL, BASE_ENOMEM. */
int audit_encode(struct base_buf *out, const struct audit_record *r, struct base_err *err);
/* The keys that can be encoded, in order; NULL-terminated. */
const char *const *audit_keys(void);
/* Reads a record's members back, for readers: the value of member `key` (its text without quotes) is put into
 * *r. BASE_OK; BASE_ENOTFOUND: no such key; BASE_EINVAL: not a value that audit_encode writes. *ret_index is
 * the key's place in the table. */
int audit_field(struct audit_record *r, struct base_str key, struct base_str value, bool quoted,
                size_t *ret_index);
/* Is everything there that must be? */
bool audit_complete(const struct audit_record *r);
/* Longest line that audit_encode makes. */
#define AUDIT_LINE_MAX 2048

#endif
