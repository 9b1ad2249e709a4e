/* SPDX-License-Identifier: Apache-2.0
 *
 * kubestore/watch_int.h - one collection: its list, its two streams, its proofs. Shared by watch.c, stream.c,
 * proof.c.
 */
#ifndef KUBESTORE_WATCH_INT_H
#define KUBESTORE_WATCH_INT_H

#include "kubestore/kubestore_int.h"

#define WATCH_PROOFS_MAX 16

/* Two streams, both from `version` on, on the collection's own connection:
 * MAIN lives for minutes and gives changes at once. PROBE lives for 3 s and is opened for a proof: the server
 * sends its bookmark 2 s before a watch ends (seen: after 0.4-0.7 s and 1.5-1.8 s), MAIN's would come too
 * late. */
enum watch_stream_no { WATCH_MAIN = 0, WATCH_PROBE, WATCH_STREAM_N };
struct watch_stream {
    struct kubestore_watch *w;
    enum watch_stream_no no;
    struct kube_call *call; /* NULL: not open */
    base_time opened;
    bool head;                      /* the server has answered 200 */
    bool lines;                     /* something came */
    char version[CONTRACT_RV_SIZE]; /* of its last line */
};
struct watch_proof {
    struct kubestore_watch *w;
    bool used;
    uint64_t id;
    base_time asked, deadline;    /* asked: nothing sent before it counts */
    struct kube_call *call;       /* step 1 */
    unsigned failures;            /* of step 1 */
    base_time retry_at;           /* of step 1; BASE_TIME_NEVER = no retry due */
    char floor[CONTRACT_RV_SIZE]; /* highest version seen when step 1 was sent */
    base_time t0;                 /* of step 1 */
    char r[CONTRACT_RV_SIZE];     /* R; "" = not known yet */
    bool probed;                  /* a probe was opened after R was known */
    base_time give_up;            /* then step 4 */
};
struct kubestore_watch {
    struct kubestore *s;
    enum contract_kind kind;
    char selector[512];
    kubestore_note_fn fn;
    void *arg;
    struct kubestore_watch *next; /* of the store */
    int lane;
    struct loop_timer *timer;
    struct base_prng prng;
    unsigned busy; /* callbacks on the stack */
    bool dead;
    bool start_over; /* the API server went back: nothing is told until that is done */

    char version[CONTRACT_RV_SIZE]; /* everything up to it has been applied; "" = nothing has */
    char event[CONTRACT_RV_SIZE];   /* of the last change that a stream delivered */
    base_time event_at;
    struct store_event ev; /* the one being told */

    bool need_list, partial; /* partial: RELIST was told, LISTED was not */
    bool for_proof;          /* the list is step 4 only: if it fails, watching goes on from `version` */
    struct kubestore_pager *pager;
    base_time list_at;    /* not before */
    base_time list_sent;  /* t0 of the running list */
    base_time list_heard; /* it was started, or something of it came */
    char list_rv[CONTRACT_RV_SIZE], list_floor[CONTRACT_RV_SIZE];
    unsigned list_failures;
    uint32_t rows, rows_counted; /* of the last whole list; of the running one */
    base_time back_at;           /* the server began to answer again after an outage; 0 = never */

    struct watch_stream stream[WATCH_STREAM_N];
    base_time main_at; /* not before */
    unsigned main_failures;

    struct watch_proof proof[WATCH_PROOFS_MAX];
    uint64_t refused[WATCH_PROOFS_MAX]; /* asked for when all slots were in use */
    unsigned n_refused;
    struct base_err last_err; /* why nothing works at the moment */
};

/* ---- watch.c ---- */
/* Every callback from outside is bracketed by these; the watch may be gone after watch_leave. */
void kubestore_watch_enter(struct kubestore_watch *w);
void kubestore_watch_leave(struct kubestore_watch *w); /* does what is due, sets the timer */
/* Tells the owner; afterwards `dead` must be looked at. */
void kubestore_watch_tell(struct kubestore_watch *w, struct kubestore_note *n);
/* One row: told as an event, or as a bad object. False: there was no memory to read it, nothing was told. */
bool kubestore_watch_row(struct kubestore_watch *w, enum store_event_type type, struct base_str object,
                         const char *name, const char *rv);
/* A full list is due; the streams end. `for_proof`: as step 4 of a proof; what is open is not trusted then. */
void kubestore_watch_want_list(struct kubestore_watch *w, base_time delay, bool for_proof, const char *why);
/* The server answers again: no more back-off, and for a small collection no waiting for bookmarks. */
void kubestore_watch_hurry(struct kubestore_watch *w);
/* A moment, so that the watchers of a restarted server do not list all at once. */
base_time kubestore_watch_moment(struct kubestore_watch *w);
/* min(base * 2^n, max) with jitter of a quarter. */
base_time kubestore_watch_backoff(struct kubestore_watch *w, unsigned failures);

/* ---- stream.c ---- */
/* Opens it; a failure is treated as a stream that ended at once. */
void kubestore_stream_open(struct kubestore_watch *w, enum watch_stream_no no);
void kubestore_stream_close(struct watch_stream *st);

/* ---- proof.c ---- */
/* `version` moved on: proofs whose R is reached end. */
void kubestore_proof_check(struct kubestore_watch *w);
/* A full list with this t0 is whole. */
void kubestore_proof_listed(struct kubestore_watch *w, base_time t0);
void kubestore_proof_probe_ended(struct kubestore_watch *w);
/* A collection of one page whose proofs were out of reach until a moment ago: a full list proves at once. */
bool kubestore_proof_by_list(const struct kubestore_watch *w, base_time now);
/* What is due now: deadlines, retries of step 1, a probe, step 4. */
void kubestore_proof_run(struct kubestore_watch *w, base_time now);
base_time kubestore_proof_next(const struct kubestore_watch *w);
void kubestore_proof_fini(struct kubestore_watch *w);
/* None that is running can be proved. */
void kubestore_proof_void(struct kubestore_watch *w, struct base_err *err);

#endif
