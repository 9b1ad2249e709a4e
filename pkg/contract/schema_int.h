/* SPDX-License-Identifier: Apache-2.0
 *
 * contract/schema_int.h - the objects as tables: one row per field, read by decode, encode, validate and
 * equal.
 *
 * Pure, private to pkg/contract. The rows say what the CRDs under manifests/crds say; test/twin compares the
 * two on a real API server. Offsets are relative to the struct that the enclosing OBJECT row points at.
 */
#ifndef CONTRACT_SCHEMA_INT_H
#define CONTRACT_SCHEMA_INT_H

#include "contract/contract.h"
#include "contract/json.h"

enum contract_ft {
    FT_STR = 1, /* char[size]; "" = absent; lo..hi = length */
    FT_UUID,    /* struct base_uuid; zero = absent */
    FT_CORR,    /* struct base_correlation; zero = absent */
    FT_I64,     /* `absent` = absent; lo..hi = value */
    FT_I32,
    FT_TIME,       /* base_wall; 0 = absent */
    FT_BOOL,       /* false = absent */
    FT_ENUM,       /* enum; 0 = absent, `names` from 1 (names[0] may name the default) */
    FT_PREFIX,     /* struct base_prefix; ::/0 = absent; lo..hi = prefix length */
    FT_OPT_PREFIX, /* bool at `at`, struct base_prefix at `size` */
    FT_PREFIXES,   /* uint8_t count at `at`, struct base_prefix[CONTRACT_DESTINATIONS_MAX] at `size` */
    FT_IDENTITIES, /* uint8_t count at `at`, struct contract_identity[] at `size` */
    FT_CONDITIONS, /* `conds` */
    FT_OBJECT,     /* `sub`; absent when all of its members are */
};
enum contract_form {
    FORM_ANY = 0,
    FORM_LABEL,    /* [a-z0-9]([-a-z0-9]*[a-z0-9])? */
    FORM_NAME,     /* the same with dots */
    FORM_INSTANCE, /* label, dot, name */
    FORM_DEVICE,   /* hf and 8 hex digits */
    FORM_REASON,   /* [A-Z][A-Za-z0-9]* */
};
struct contract_cond_slot {
    const char *type;
    uint16_t at;
};
struct contract_field {
    const char *name; /* NULL ends a table */
    enum contract_ft type;
    bool required; /* when the enclosing object is there */
    bool always;   /* a number that has no absent value */
    enum contract_form form;
    uint16_t at, size;
    int64_t lo, hi, absent;
    const char *const *names;
    unsigned n_names;
    const struct contract_field *sub;
    const struct contract_cond_slot *conds; /* type NULL ends it */
};
/* Top level: "spec" and, unless the kind has none, "status". */
const struct contract_field *contract_schema(enum contract_kind k);
size_t contract_kind_size(enum contract_kind k);
const struct contract_field *contract_schema_status(enum contract_kind k); /* NULL when it has none */

#define CONTRACT_AT(base, f, T) ((T *)(void *)((char *)(base) + (f)->at))
#define CONTRACT_CAT(base, f, T) ((const T *)(const void *)((const char *)(base) + (f)->at))
#define CONTRACT_AT2(base, f, T) ((T *)(void *)((char *)(base) + (f)->size))
#define CONTRACT_CAT2(base, f, T) ((const T *)(const void *)((const char *)(base) + (f)->size))

bool contract_field_present(const struct contract_field *f, const void *base);
bool contract_field_equal(const struct contract_field *f, const void *a, const void *b);
bool contract_cond_equal(const struct contract_cond *a, const struct contract_cond *b);
/* Decodes one member (json->type is not NULL) into `base`; `path` names it in errors. */
int contract_decode_field(const struct contract_field *f, void *base, const struct contract_json *json,
                          const char *path, struct base_err *err);
int contract_decode_meta(struct contract_meta *m, const struct contract_json *meta, struct base_err *err);
/* The whole object from its root node. */
int contract_decode_node(struct contract_object *ret, enum contract_kind kind,
                         const struct contract_json *root, struct base_err *err);
/* The value of one field as JSON. */
void contract_print_field(struct base_buf *out, const struct contract_field *f, const void *base);
bool contract_form_ok(enum contract_form form, struct base_str s);

#endif
