/* SPDX-License-Identifier: Apache-2.0
 *
 * store/store.h - the stores of the contract as requests and answers, and the in-memory twin of the API server.
 *
 * Pure. InstanceStore, ClaimStore and BindingStore are one shape: a `struct store_req` names an operation on one kind,
 * a `struct store_resp` is what the API server answers. pkg/kubestore executes the same requests on a real API server;
 * test/twin runs one table of cases against both and compares code, reason and object.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "contract/contract.h"

enum store_op {
    STORE_GET = 1,       /* quorum read of one object: no resourceVersion */
    STORE_LIST,          /* quorum list of one kind, with the selector below */
    STORE_CREATE,        /* POST */
    STORE_UPDATE,        /* PUT of the main resource, preconditions uid and resourceVersion */
    STORE_UPDATE_STATUS, /* PUT of the status subresource, same preconditions */
    STORE_DELETE,        /* DELETE with preconditions uid and resourceVersion */
};

/* Field selector of a LIST or watch; empty members do not select. Only fields that the CRD makes selectable. */
struct store_selector {
    char node[CONTRACT_NODE_SIZE];           /* claims: spec.holder.node; instances: spec.nodeName */
    char previous_node[CONTRACT_NODE_SIZE];  /* claims: spec.previous.node */
    char tenant[CONTRACT_LABEL_SIZE];        /* claims, bindings, services */
    char connector[CONTRACT_CONNECTOR_SIZE]; /* claims, bindings */
    char vpc[CONTRACT_LABEL_SIZE];           /* claims, attachments */
    char provider[CONTRACT_LABEL_SIZE];
};

/* Does the object match? Members that its kind cannot select by do not match unless empty. */
bool store_selector_match(const struct store_selector *sel, const struct contract_object *o);
/* The fieldSelector parameter, "spec.tenant=t1,spec.connector=c1" ("" when nothing is selected), not percent-encoded.
 * BASE_OK; BASE_EINVAL: the CRD of that kind does not make such a field selectable; BASE_EFULL. */
int store_selector_query(char *dst, size_t size, enum contract_kind kind, const struct store_selector *sel,
                         struct base_err *err);

struct store_req {
    uint64_t id; /* chosen by the asker, comes back in the answer */
    enum store_op op;
    enum contract_kind kind;
    char name[CONTRACT_NAME_SIZE];  /* GET and DELETE */
    struct store_selector selector; /* LIST */
    const struct contract_object
        *object;          /* CREATE, UPDATE, UPDATE_STATUS: borrowed for the call; meta.uid and meta.rv
                                             are the preconditions and must be set for updates */
    struct base_uuid uid; /* DELETE preconditions */
    char rv[CONTRACT_RV_SIZE];
    struct base_correlation correlation; /* Audit-ID header; zero = none */
    base_time timeout;                   /* ns; 0 = the store's default */
    bool renewal;                        /* goes over the renewals' own connection */
};

/* Outcome classes (contract section 4): everything else follows from them. */
struct store_resp {
    uint64_t id;
    int code; /* BASE_OK; BASE_ENOTFOUND 404; BASE_EEXIST 409 AlreadyExists; BASE_ECONFLICT 409; BASE_EINVAL 400, 422;
                        BASE_EDENIED 401, 403; BASE_EGONE 410; BASE_EAGAIN 429 or refused before it was sent (did not
                        land); BASE_EUNKNOWN: a write that may have landed (time-out, connection lost, 5xx, 504);
                        BASE_ETIMEDOUT / BASE_EIO: a read that failed */
    int http_status;                   /* 0 = no answer */
    char reason[CONTRACT_REASON_SIZE]; /* Status.reason: "AlreadyExists", "Conflict", "Invalid", … */
    base_time sent;                 /* CLOCK_BOOTTIME read before the request was sent (t0 of a row proof) */
    char list_rv[CONTRACT_RV_SIZE]; /* LIST: metadata.resourceVersion of the list */
    size_t n_objects; /* GET, CREATE, UPDATE: 1 on success; LIST: all; DELETE: 1 when finalizers keep
                                          the object, which is then being deleted, else 0 */
    const struct contract_object *objects; /* borrowed until the callback or the next twin call returns */
    struct base_err err;                   /* text for people */
};

/* ---- the twin ------------------------------------------------------------------------------------------------ */
/* An API server in memory: same codes, reasons, defaulting, resourceVersions, uids, generations, finalizers and
 * deletion as the real one for the kinds of the contract. Not thread-safe. RBAC and admission policy are on when an
 * identity is given. */
struct store_twin;
enum store_role { STORE_ADMIN = 0, STORE_AGENT, STORE_FOUNDATION, STORE_OPERATOR, STORE_AUTHORITY };
struct store_identity {
    enum store_role role;
    char node[CONTRACT_NODE_SIZE]; /* node claim of the token; "" = none */
    struct base_uuid node_uid;
};
/* `seed` makes uids. NULL when there is no memory. */
struct store_twin *store_twin_new(uint64_t seed);
struct store_twin *store_twin_free(struct store_twin *t);
/* `who` NULL: RBAC and admission policies are off (unit tests of other things).
 * Executes one request at wall time `wall`; *ret_resp borrows from the twin until its next call. ret_resp->sent is 0.
 * Returns BASE_OK, or BASE_ENOMEM (nothing was changed). The outcome of the request is ret_resp->code. */
int store_twin_do(struct store_twin *t, const struct store_identity *who, base_wall wall,
                  const struct store_req *req, struct store_resp *ret_resp);

enum store_event_type { STORE_ADDED = 1, STORE_MODIFIED, STORE_DELETED };
struct store_event {
    enum store_event_type
        type; /* as a watch with the selector sees it: an object that leaves it is DELETED */
    struct contract_object object; /* DELETED: last content, with the resourceVersion of the deletion */
};
/* The next watch event of `kind` after `rv` for a watcher with `sel`. BASE_OK; BASE_EAGAIN: none yet, *ret_rv is how far
 * the watcher may move on (a bookmark); BASE_EGONE: `rv` is older than the kept history (410). */
int store_twin_watch(struct store_twin *t, enum contract_kind kind, const struct store_selector *sel,
                     const char *rv, struct store_event *ret_event, char ret_rv[CONTRACT_RV_SIZE]);
/* The same without a copy, for many watchers: *version moves on; the object is borrowed until the twin's next call, and
 * with STORE_DELETED its resourceVersion is that of its last content (the deletion's is *version). */
int store_twin_change(struct store_twin *t, enum contract_kind kind, const struct store_selector *sel,
                      uint64_t *version, enum store_event_type *ret_type,
                      const struct contract_object **ret_object);
/* Current resourceVersion (of a LIST). */
void store_twin_rv(const struct store_twin *t, char ret[CONTRACT_RV_SIZE]);
/* Forgets watch history up to now (later watches from older versions get 410). */
void store_twin_compact(struct store_twin *t);
/* Snapshot and restore of everything, as an etcd backup (resourceVersion goes back too; watch history is empty after
 * it; uids made after the snapshot are never made again). The snapshot is the caller's:
 * store_twin_free. restore returns BASE_OK or BASE_ENOMEM (unchanged). */
struct store_twin *store_twin_snapshot(const struct store_twin *t);
/* What `etcdutl snapshot restore --bump-revision --mark-compacted` does after store_twin_restore: versions go on above
 * `floor` (those of the objects stay as they are), and every watch from before gets 410. */
void store_twin_bump(struct store_twin *t, uint64_t floor);
int store_twin_restore(struct store_twin *t, const struct store_twin *snapshot);

#endif
