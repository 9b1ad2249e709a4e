/* SPDX-License-Identifier: Apache-2.0
 *
 * store/twin_int.h - the rules of the twin: who may do what (RBAC), and what admission policies say of a
 * write that the schema has passed. Pure, private to pkg/store. Source: contract section 13, manifests/rbac
 * and manifests/admission.
 */
#ifndef STORE_TWIN_INT_H
#define STORE_TWIN_INT_H

#include "store/store.h"

/* One version of an object; never changed once others can see it. */
struct store_version {
    unsigned refs;
    struct contract_object o;
};
struct store_rows {
    struct store_version **v; /* sorted by name */
    size_t n, cap;
};

bool store_rbac_allows(const struct store_identity *who, enum store_op op, enum contract_kind kind);

struct store_write {
    const struct store_identity *who;
    enum store_op op; /* CREATE, UPDATE, UPDATE_STATUS, DELETE */
    base_wall wall;
    const struct contract_object *next; /* NULL for DELETE */
    const struct contract_object *old;  /* NULL for CREATE */
    const struct store_rows *services;
};
/* NULL when every policy passes, else the message of the first that does not: 403 Forbidden. */
const char *store_policy(const struct store_write *w);

#endif
