/* SPDX-License-Identifier: Apache-2.0
 *
 * twin.h - the comparison of the in-memory twin with a real API server, and the tests of collections on a
 * real one.
 */
#ifndef TWIN_TWIN_H
#define TWIN_TWIN_H

#include "kube/client.h"
#include "kubestore/kubestore.h"
#include "loop/log.h"
#include "loop/loop.h"

#define NAMESPACE "holdfast-system"

enum who { ADMIN = 0, AGENT1, AGENT2, FOUND1, FOUND2, OPERATOR, AUTHORITY, NOPOD, WHO_N };

/* An answer that outlives the store's. */
struct answer {
    int code, http;
    char reason[CONTRACT_REASON_SIZE];
    char text[BASE_ERR_MSG_MAX];
    char list_rv[CONTRACT_RV_SIZE];
    base_time sent;
    size_t n;
    struct contract_object *objects; /* owned */
};
void answer_clear(struct answer *a);

/* Uids that differ between the two servers, in the order in which the objects were made. */
#define UIDS_MAX 256
struct side {
    const char *name;
    struct base_uuid uid[UIDS_MAX];
    size_t n_uids;
};
struct rig {
    struct loop *loop;
    struct loop_log *log;
    struct kube_client *client[WHO_N];
    struct kubestore *store[WHO_N];
    struct store_identity identity[WHO_N];
    struct base_uuid node1, node2; /* the Node objects' uids */
    struct store_twin *twin;
    struct side real, mem;
    base_wall now; /* of the step: both sides see the same */
    const char *dir;
    int passed, failed;
};
void report(struct rig *r, bool ok, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- real.c ---- */
int rig_open(struct rig *r, const char *dir, struct base_err *err);
void rig_close(struct rig *r);
/* One request on the real server, waited for. */
void real_do(struct rig *r, enum who who, const struct store_req *req, struct answer *ret);
/* One raw JSON request; returns the HTTP status, 0 when there was no answer. */
int real_raw(struct rig *r, enum who who, const char *method, const char *path, const char *body);
/* Any request, waited for. */
int real_send(struct rig *r, enum who who, const struct kube_req *req);
/* Runs the loop until *done or `ms` have passed. */
bool rig_wait(struct rig *r, const bool *done, int64_t ms);
void rig_sleep(struct rig *r, int64_t ms);

/* ---- table.c, compare.c ---- */
struct step;
typedef void (*edit)(struct rig *r, struct side *s, struct contract_object *o);
enum { SETTLE = 1 /* ask with dryRun until the server's policies have seen what the step needs */ };
struct step {
    const char *name;
    enum who who;
    enum store_op op;
    enum contract_kind kind;
    const char *key; /* object name; "" for LIST, and for a creation (the edit makes the name) */
    edit edit;
    int http;
    const char *reason;
    unsigned flags;
    struct store_selector sel;
};
extern const struct step steps[];
extern const size_t n_steps;
void table_run(struct rig *r);
/* Uids as their numbers on that side, no version, times as yes or no. */
void normalize(struct side *s, struct contract_object *o);
/* What differs, or NULL. Both in normal form. */
const char *differs(const struct contract_object *a, const struct contract_object *b);

/* ---- history.c ---- */
struct history;
struct history *history_open(struct rig *r);
void history_close(struct rig *r, struct history *h);

/* ---- collections.c ---- */
void collections_run(struct rig *r);

#endif
