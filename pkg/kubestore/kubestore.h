/* SPDX-License-Identifier: Apache-2.0
 *
 * kubestore/kubestore.h - the stores on a real API server: requests, watches and collection proofs.
 *
 * Driving; everything happens on the loop of the client, callbacks come from it and never from within the
 * call that asked. Writes carry UID, resourceVersion and fieldValidation=Strict; metadata that this code does
 * not understand is kept (contract section 4): the store remembers the raw metadata of the objects that it
 * read and, when it has none for the resourceVersion of a PUT, reads the object first; another
 * resourceVersion is then BASE_ECONFLICT.
 */
#ifndef KUBESTORE_KUBESTORE_H
#define KUBESTORE_KUBESTORE_H

#include "store/store.h"

struct kube_client; /* kube/client.h */
struct loop;
struct loop_log;

struct kubestore;
/* Borrows client and log for its life. `ns` is the namespace of all objects. */
int kubestore_new(struct kubestore **ret, struct loop *l, struct kube_client *client, const char *ns,
                  struct loop_log *log, struct base_err *err);
/* Pending requests end with BASE_ECLOSED (no callback after this returns). NULL ok. */
struct kubestore *kubestore_free(struct kubestore *s);

/* A write without UID or resourceVersion is refused by kubestore_submit: BASE_EINVAL, nothing is sent. This
 * switches that guard off, for test/twin only, which compares what the server says of such writes. */
void kubestore_unguarded(struct kubestore *s);

/* Every watch of the store starts over: KUBESTORE_REGRESSED, then a new list, in the next iteration; nothing
 * of the old streams is told any more. The store does it by itself when the version of a list, or of a write
 * that landed, is below one that was seen of that kind before it was sent; its owner may see it in a row.
 * Answers to requests that were sent before still come. */
void kubestore_start_over(struct kubestore *s, const char *why);

typedef void (*kubestore_done)(void *arg, const struct store_resp *resp);
/* What comes back besides the classes of store_resp: a 2xx answer to a write whose object cannot be read is
 * BASE_EUNKNOWN (it landed; read back), a read object or list row that cannot be read is BASE_EIO with its
 * name and the reason. `sent` is that of the request that counts: the PUT itself, the first page of a LIST.
 * Starts one request; `done` is called exactly once unless the store is freed before. BASE_OK, BASE_ENOMEM,
 * BASE_EFULL (too many in flight), BASE_EINVAL. On failure `done` is not called. */
int kubestore_submit(struct kubestore *s, const struct store_req *req, kubestore_done done, void *arg,
                     struct base_err *err);

/* ---- collections: a rolling watch and its proofs (contract section 5) */
struct kubestore_watch;
enum kubestore_notice {
    KUBESTORE_EVENT = 1, /* one object changed: ev->type and ev->object; `version` is its resourceVersion */
    KUBESTORE_RELIST, /* a full list follows: objects not named by an ADDED event before KUBESTORE_LISTED are
                         gone. May come again before LISTED: the list started over */
    KUBESTORE_LISTED, /* the list is whole; `version` is its resourceVersion, `t0` was read before it was
                         asked for */
    KUBESTORE_PROVED, /* proof `proof_id`: everything written before `t0` has been applied; `version` = R */
    KUBESTORE_NOT_PROVED, /* proof `proof_id` failed; deadlines run; ask again at the next interval */
    KUBESTORE_BAD_OBJECT, /* an object could not be decoded: `name` and err; it counts as absent */
    KUBESTORE_REGRESSED,  /* the API server went back, as after an etcd restore (contract section 5): what was
                             told is void, running proofs were told NOT_PROVED, RELIST to LISTED follows. Every
                             watch of the store is told, whichever noticed */
};
struct kubestore_note {
    enum kubestore_notice what;
    const struct store_event *ev; /* KUBESTORE_EVENT only; borrowed for the call */
    const char *name;
    const char *version;
    uint64_t proof_id;
    base_time t0;
    const struct base_err *err;
};
typedef void (*kubestore_note_fn)(void *arg, const struct kubestore_note *note);
/* Lists, then watches for ever with its own HTTP/2 connection (LIST of a proof and watch share it).
 * Reconnects and relists by itself with jittered back-off. */
int kubestore_watch_new(struct kubestore_watch **ret, struct kubestore *s, enum contract_kind kind,
                        const struct store_selector *sel, kubestore_note_fn fn, void *arg,
                        struct base_err *err);
struct kubestore_watch *kubestore_watch_free(struct kubestore_watch *w);
/* Starts a collection proof (steps 1 to 4); the answer is one PROVED or NOT_PROVED note with `proof_id`,
 * within `timeout`. A proof asked while one is running joins nothing: it gets its own t0. */
void kubestore_watch_prove(struct kubestore_watch *w, uint64_t proof_id, base_time timeout);
/* False while the collection has never been listed, or its stream is broken. */
bool kubestore_watch_synced(const struct kubestore_watch *w);

#endif
