/* SPDX-License-Identifier: Apache-2.0
 *
 * kubestore/kubestore_int.h - shared by the files of this folder.
 */
#ifndef KUBESTORE_KUBESTORE_INT_H
#define KUBESTORE_KUBESTORE_INT_H

#include "base/mem.h"
#include "contract/json.h"
#include "kube/client.h"
#include "kubestore/kubestore.h"
#include "loop/log.h"
#include "loop/loop.h"

#define KUBESTORE_PATH_SIZE 2048
#define KUBESTORE_PAGE 500                /* rows of one page of a list */
#define KUBESTORE_TIMEOUT (10 * BASE_SEC) /* of a request that names none */
#define KUBESTORE_BODY_MAX ((size_t)1 << 20)

/* ---- rest.c: paths and outcome classes ---- */
/* Appends a query value percent-encoded. False when it does not fit. */
bool kubestore_escape(char *dst, size_t size, struct base_str s);
/* "/apis/<group>/v1alpha1/namespaces/<ns>/<plural>[/<name>[/status]]". */
bool kubestore_path(char *dst, size_t size, const char *ns, enum contract_kind kind, const char *name,
                    bool status);
/* Fills code, http_status, reason, sent and err of `ret`. code is BASE_OK for any 2xx. */
void kubestore_classify(struct store_resp *ret, bool write, const struct kube_resp *resp);

/* ---- raw.c: the JSON that objects were read as, for the PUT that follows ---- */
struct kubestore_raw;
struct kubestore_raw *kubestore_raw_new(void);
struct kubestore_raw *kubestore_raw_free(struct kubestore_raw *r);
/* Forgets silently when there is no memory: the next PUT reads again. */
void kubestore_raw_put(struct kubestore_raw *r, const struct contract_object *o, struct base_str text);
/* Borrowed until the next put; empty when this version of this object is not known. */
struct base_str kubestore_raw_get(const struct kubestore_raw *r, enum contract_kind kind, const char *name,
                                  const struct base_uuid *uid, const char *rv);

/* Every text is forgotten: versions may come again with another content. */
void kubestore_raw_clear(struct kubestore_raw *r);

/* ---- pager.c: one consistent list, page by page ---- */
struct kubestore_pager;
struct kubestore_pager_fns {
    /* The first page came: what was listed before is void. `rv` is the version of the list, `sent` its t0.
     * false ends the list (done is not called). */
    bool (*begin)(void *arg, const char *rv, base_time sent);
    /* One row, as it came. false ends the list (done is not called). */
    bool (*row)(void *arg, struct base_str text);
    /* code BASE_OK: whole. Else `resp` (may be NULL) and err say why. The pager is still there. */
    void (*done)(void *arg, int code, const struct kube_resp *resp, const struct base_err *err);
};
/* Lists `kind` with `selector` (query text, not encoded, "" = all) on `lane` until `deadline`. An expired
 * continue token starts the list again. Callbacks never come from within this call; a callback may free the
 * pager. */
int kubestore_pager_new(struct kubestore_pager **ret, struct kube_client *client, const char *ns,
                        enum contract_kind kind, const char *selector, int lane, base_time deadline,
                        const char *audit_id, const struct kubestore_pager_fns *fns, void *arg,
                        struct base_err *err);
struct kubestore_pager *kubestore_pager_free(struct kubestore_pager *p);

/* ---- kubestore.c ---- */
/* a < b, a == b, a > b as -1, 0, 1; 2 when they cannot be compared. "" is below everything. */
int kubestore_rv_cmp(const char *a, const char *b);
void kubestore_saw(struct kubestore *s, enum contract_kind kind, const char *rv);
/* `rv` came back from a request that was sent when `floor` had been seen: it went back. */
void kubestore_went_back(struct kubestore *s, enum contract_kind kind, const char *rv, const char *floor);
struct kubestore {
    struct loop *loop;
    struct kube_client *client;
    struct loop_log *log;
    char ns[64];
    struct kubestore_raw *raw;
    struct kubestore_op *ops; /* in flight */
    unsigned n_ops;
    bool unguarded;
    struct kubestore_watch *watches;
    char seen[CONTRACT_KIND_N][CONTRACT_RV_SIZE]; /* highest version seen of a kind, anywhere */
    unsigned history;                             /* counts how often the API server went back */
    unsigned failed_in_row; /* requests without an answer, or with 5xx, since the last good one */
};
/* What came of any request: NULL = the server has just opened a stream. When it answers again after an
 * outage, whatever waits out its back-off goes on within 200 ms, and what waits for a connection makes
 * another: an outage that ends is not waited out. A stream is no end of it: it may open from the server's
 * cache. */
void kubestore_heard(struct kubestore *s, const struct kube_resp *resp);

#endif
