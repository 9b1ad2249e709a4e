/* SPDX-License-Identifier: Apache-2.0
 *
 * core_int.h - private to the core's files: rows, their kernel side, and the helpers that all of them use.
 */
#ifndef FOUNDATION_CORE_INT_H
#define FOUNDATION_CORE_INT_H

#include "core.h"

/* What row of one step an answer, an event or a deadline belongs to. */
enum fnd_ask { FND_ASK_NONE = 0, FND_ASK_GET, FND_ASK_STATUS, FND_ASK_FINALIZERS };
enum fnd_op { FND_OP_NONE = 0, FND_OP_OPEN, FND_OP_MOVE, FND_OP_SHUT, FND_OP_CLOSE };

/* Common to the rows of every kind: what is known of one object, and the one request that may be under way
 * for it. */
struct fnd_row {
    bool used;
    bool present;     /* it exists, and the content below is the newest known */
    bool left;        /* left its collection and was not read since: trust nothing */
    bool read;        /* read before the next write: unknown outcome, conflict, or left */
    uint8_t in;       /* bit per collection that shows it */
    uint8_t unlisted; /* bit per collection whose running relist has not named it yet */
    char name[CONTRACT_NAME_SIZE];
    char rv[CONTRACT_RV_SIZE];         /* newest version seen, of content or of a deletion */
    base_time rv_at;                   /* when that was */
    char content_rv[CONTRACT_RV_SIZE]; /* version of the content */
    uint32_t applied; /* counts changes of content, to tell a 404 that is older than an event */
    uint64_t seen_id; /* newest request id when the content was applied: later ids are of requests that began
                         after */
    base_time
        proof; /* newest t0 of a proof of this row as it stands (same uid, epoch, leaseUUID); 0 = none */
    enum fnd_ask ask;
    uint64_t ask_id;
    uint32_t ask_applied;
    uint64_t fresh_id; /* id of the last successful read (found or 404); 0 = none */
    base_time gone_at; /* when a read last said that it does not exist */
    base_time retry_at;
    unsigned failures;
};

enum fnd_reason {
    FND_R_NONE = 0,
    FND_R_OPENED,
    FND_R_GONE,
    FND_R_NOT_READ,
    FND_R_DELETED,
    FND_R_TAKEN_OVER,
    FND_R_OTHER_BOOT,
    FND_R_RELEASED,
    FND_R_REGRESSED,
    FND_R_CLOSED,
    FND_R_SERVICE_REVOKED,
    FND_R_SERVICE_GONE,
    FND_R_SERVICE_MISMATCH,
    FND_R_OUTSIDE_POOL,
    FND_R_SERVICE_EXPIRED,
    FND_R_INSTANCE_GONE,
    FND_R_INSTANCE_REPLACED,
    FND_R_INSTANCE_MISMATCH,
    FND_R_INSTANCE_RELEASED,
    FND_R_INSTANCE_NOT_ACCEPTED,
    FND_R_NO_RENEWAL,
    FND_R_LEASE_EXPIRED,
    FND_R_ATTACHMENT_GONE,
    FND_R_ATTACHMENT_NOT_READY,
    FND_R_NOT_ACCEPTED,
    FND_R_WAITING,
    FND_R_NO_FINALIZER,
    FND_R_ACCEPTED_NOW,
    FND_R_EXPIRED,
    FND_R_KERNEL,
    FND_R_RENEWAL_AHEAD,
    FND_R_BOOT_MISMATCH,
    FND_R_NODE_MISMATCH,
    FND_R_OLD_DEVICE,
    FND_R_DEVICE_LOST,
    FND_R_MAKING_DEVICE,
    FND_R_READY,
    FND_R_ADDED,
    FND_R_REMOVED,
    FND_R_MADE,
    FND_R_CONFIRMED,
    FND_R_WAITED,
    FND_R_WRITE_REFUSED,
};
const char *fnd_reason_text(enum fnd_reason r);

/* The kernel side of one prefix. `active` as long as a gate may be open or a route published, as far as is
 * known. */
struct fnd_kern {
    bool active;
    bool open;            /* the open group has been reported done */
    base_time deadline;   /* last value given to the kernel */
    struct base_uuid uid; /* of the claim that it was opened for */
    int64_t epoch;
    char device[CONTRACT_DEVICE_SIZE];
    enum fnd_op op;
    uint64_t op_id;
    int64_t op_tomb;         /* FND_OP_CLOSE: tombstone of this epoch ... */
    struct base_uuid op_uid; /* ... and uid */
    base_time retry_at;
    base_time shut_at; /* when it was last shut; a proof must be newer than this to open it again */
};

struct fnd_claim {
    struct fnd_row row;
    struct contract_claim obj;
    struct fnd_kern kern;
    bool proved; /* a collection proof has come since the gate was last moved: it may be extended */
    /* since when this process knows of this (uid, epoch, leaseUUID) */
    base_time first_seen;
    struct base_uuid first_uid, first_lease;
    int64_t first_epoch;
    /* closed here: zero, tombstone and withdrawal are done for this epoch and all older ones */
    struct base_uuid closed_uid;
    int64_t closed_here;
    base_time closed_at;
    base_time deleting_read; /* when a fresh read first showed the deletionTimestamp; 0 = not yet */
    enum fnd_reason refuse;
    base_time refuse_since;
    enum fnd_reason last; /* reason of the last verdict, for logs */
};

struct fnd_instance {
    struct fnd_row row;
    struct contract_instance obj;
    base_time renew; /* boot time of the last renewal that was not refused, of this (uid, epoch); 0 = none */
    struct base_uuid renew_uid;
    int64_t renew_epoch;
    enum fnd_reason renew_refused;
};

struct fnd_attachment {
    struct fnd_row row;
    struct contract_attachment obj;
    struct base_uuid tried_uid; /* this process asked to accept this epoch */
    int64_t tried_epoch;
    /* the device of one instance epoch: a digest that is looked at often */
    struct base_uuid device_uid;
    int64_t device_epoch; /* 0 = not made yet */
    char device[CONTRACT_DEVICE_SIZE];
};

struct fnd_service {
    struct fnd_row row;
    struct contract_service obj;
    base_time deadline; /* valid_until on CLOCK_BOOTTIME; 0 = not converted */
};

struct fnd_device {
    char name[CONTRACT_DEVICE_SIZE]; /* "" = free */
    bool present;
    uint64_t op_id; /* make or delete under way */
    bool op_make;
    struct base_uuid made_for; /* attachment */
    int64_t made_epoch;
    base_time retry_at;
};

struct fnd_coll_state {
    bool listed;
    bool running; /* a proof */
    bool soon;    /* somebody waits for a proof */
    uint64_t proof_id;
    base_time next_at;
    base_time not_before; /* after a failure */
    base_time give_up;    /* an answer that has not come by then never comes */
    base_time t0;         /* newest proof: what was written before it has been applied; 0 = none */
};

struct fnd_core {
    struct fnd_config cfg;
    char finalizer[CONTRACT_FINALIZER_SIZE];
    struct base_prng prng;
    uint64_t next_id;
    base_time now; /* of the running step */
    base_wall wall;
    struct fnd_out *out;
    struct fnd_coll_state coll[FND_COLL_N];
    base_time scan_at, scan_started;
    bool scan_running;

    struct fnd_claim *claims;
    uint8_t *claim_dirty;
    base_time *claim_wake;
    struct fnd_instance *instances;
    struct fnd_attachment *attachments;
    struct fnd_service *services;
    struct fnd_device *devices;
    unsigned n_devices;
    bool dirty; /* instances, attachments and devices */
    base_time wake;
    struct fnd_record *records;
    uint32_t *record_key;
    base_time *record_at; /* when it was last touched */
    uint8_t *record_seen; /* by the running scan */
    unsigned n_records;
    bool full_logged;

    base_time regressed_at; /* the API server went back, and W since then is not over; 0 = no */
    bool regress_due;       /* a row of this step shows it */
    int32_t max_lease_s;    /* the longest that a claim was seen with */
    char list_rv[FND_COLL_N][CONTRACT_RV_SIZE]; /* of the list that is running */
};

/* ---- core.c: effects, records, waking ---- */
struct fnd_fx *fnd_fx(struct fnd_core *c, enum fnd_fx_kind kind);
uint64_t fnd_id(struct fnd_core *c);
void fnd_claim_touch(struct fnd_core *c, unsigned i);
void fnd_touch_all(struct fnd_core *c);
void fnd_wake(base_time *wake, base_time at);
base_time fnd_jitter(struct fnd_core *c, base_time t); /* 0.9 t .. t */
/* The record of a uid; NULL when there is none. */
struct fnd_record *fnd_record_find(struct fnd_core *c, const struct base_uuid *uid);
/* The same, made when there is none; NULL when the table is full. */
struct fnd_record *fnd_record_get(struct fnd_core *c, const struct base_uuid *uid, enum contract_kind kind);
void fnd_record_emit(struct fnd_core *c, const struct fnd_record *r, uint64_t op);
void fnd_record_drop(struct fnd_core *c, const struct base_uuid *uid);
void fnd_cond_set(struct fnd_core *c, struct contract_cond *cond, bool value, const char *reason,
                  const char *message, int64_t generation, bool *changed);

/* ---- regress.c ---- */
void fnd_regress(struct fnd_core *c);
void fnd_regress_restore(struct fnd_core *c, const struct fnd_record *r);
void fnd_regress_lease(struct fnd_core *c, int32_t max_lease_s);
/* While regressed_at is set: the end of the wait. */
void fnd_regress_drive(struct fnd_core *c, base_time *wake);
/* A row of a list that was made after the version that is known of it, and is older. */
void fnd_regress_listed(struct fnd_core *c, enum fnd_coll coll, const struct fnd_row *r, const char *rv);
/* An answer that was asked for after the version that is known, and is older. */
void fnd_regress_answer(struct fnd_core *c, const struct fnd_row *r, const char *rv, base_time sent);

/* ---- row.c: what is newer, and requests ---- */
enum fnd_news { FND_NEWS_OLD, FND_NEWS_SAME, FND_NEWS_CONTENT };
/* What an object of version `rv` is to the row: FND_NEWS_CONTENT = apply it; SAME = it is what we have. */
enum fnd_news fnd_row_news(const struct fnd_row *r, const char *rv);
/* After the content was copied: `key_same` says that uid, epoch and leaseUUID are those of before. */
void fnd_row_applied(struct fnd_core *c, struct fnd_row *r, const char *rv, bool key_same);
/* It left a collection at version `rv` ("" = unknown). Returns true when the content may be out of date now. */
bool fnd_row_left(struct fnd_core *c, struct fnd_row *r, enum fnd_coll coll, const char *rv);
void fnd_row_get(struct fnd_core *c, struct fnd_row *r, enum contract_kind kind);
/* The object to be written, a copy of the row's, to be changed by the caller; NULL when the step has no room. */
struct contract_object *fnd_row_put(struct fnd_core *c, struct fnd_row *r, enum fnd_ask ask,
                                    enum contract_kind kind, const void *obj, size_t size);
/* An answer to the row's request, apart from its object. Returns true when the object in it is to be applied. */
bool fnd_row_answer(struct fnd_core *c, struct fnd_row *r, const struct fnd_in *in);
/* The object of an answer, of version `rv`: true = newer than what is known, apply it. What is older proves
 * nothing and changes nothing; it is read again, and may show that the API server went back. */
bool fnd_row_take(struct fnd_core *c, struct fnd_row *r, enum fnd_ask ask, const char *rv, base_time sent);
bool fnd_row_matches(const struct fnd_row *r, const struct fnd_in *in);
void fnd_row_proof(struct fnd_row *r, base_time t0);

/* ---- claim.c ---- */
struct fnd_claim *fnd_claim_find(struct fnd_core *c, const char *name);
struct fnd_claim *fnd_claim_get(struct fnd_core *c, const char *name);
void fnd_claim_row(struct fnd_core *c, const struct fnd_in *in);
bool fnd_claim_answer(struct fnd_core *c, const struct fnd_in *in);
void fnd_claim_listed(struct fnd_core *c, enum fnd_coll coll);
void fnd_claim_proved(struct fnd_core *c, enum fnd_coll coll, base_time t0);
void fnd_claim_scanned(struct fnd_core *c, const struct contract_claim *o);
void fnd_claim_eval(struct fnd_core *c, unsigned i);
bool fnd_is_me(const struct fnd_core *c, const struct contract_holder *h);
bool fnd_waited(const struct fnd_core *c, const struct fnd_claim *cl);
base_time fnd_wait_until(const struct fnd_core *c, const struct fnd_claim *cl);

/* ---- verdict.c: what an object allows ---- */
enum fnd_may { FND_MAY_UNKNOWN = 0, FND_MAY_NO, FND_MAY_YES };
struct fnd_verdict {
    enum fnd_may may;
    enum fnd_reason reason;
    bool cause;      /* this epoch is over for good: contract section 8 (a) */
    bool acceptable; /* everything that an accept needs holds */
    base_time hard;  /* min(last renewal + L, service): shortens at once */
    base_time full;  /* the gate deadline of section 6; 0 = a proof is missing */
    base_time proof; /* the older of the claim's and the service's */
    const char *device;
};
struct fnd_verdict fnd_verdict(struct fnd_core *c, struct fnd_claim *cl);

/* ---- gate.c: the kernel side of a claim ---- */
/* The epoch that has to be closed here (0 = none). */
int64_t fnd_gate_due(const struct fnd_core *c, const struct fnd_claim *cl, const struct fnd_verdict *v);
void fnd_gate_drive(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v, base_time *wake);
bool fnd_gate_done(struct fnd_core *c, uint64_t op, bool ok);
bool fnd_gate_closed_here(const struct fnd_claim *cl, int64_t epoch);
void fnd_gate_log(struct fnd_core *c, const struct fnd_claim *cl, enum fnd_log log, int64_t epoch,
                  enum fnd_reason reason);

/* ---- status.c, finalizer.c: what is written on a claim. True = a request was made. ---- */
bool fnd_status_drive(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v, base_time *wake);
bool fnd_finalizer_drive(struct fnd_core *c, struct fnd_claim *cl, const struct fnd_verdict *v,
                         base_time *wake);

/* ---- instance.c, attachment.c, service.c ---- */
struct fnd_instance *fnd_instance_find(const struct fnd_core *c, const char *name);
struct fnd_instance *fnd_instance_get(struct fnd_core *c, const char *name);
void fnd_instance_row(struct fnd_core *c, const struct fnd_in *in);
bool fnd_instance_answer(struct fnd_core *c, const struct fnd_in *in);
void fnd_instance_eval(struct fnd_core *c);
/* Accepted by us in this epoch: the object says so and so does the record. */
bool fnd_instance_live(struct fnd_core *c, const struct fnd_instance *in);
/* Does holder `h` belong to an instance epoch that is over for good, as a fresh read shows? Asks for the read
 * when it has to (then *ret_gone says that nothing of that instance is known). */
bool fnd_instance_over(struct fnd_core *c, const struct contract_holder *h, uint64_t claim_seen,
                       bool *ret_gone);

struct fnd_attachment *fnd_attachment_find(const struct fnd_core *c, const char *name);
void fnd_attachment_row(struct fnd_core *c, const struct fnd_in *in);
bool fnd_attachment_answer(struct fnd_core *c, const struct fnd_in *in);
void fnd_attachment_eval(struct fnd_core *c);
bool fnd_attachment_node_is(const char *instance_name, const char *node);

/* The name of this attachment's device in that instance epoch; borrowed until the next call. */
const char *fnd_device_of(struct fnd_attachment *a, int64_t instance_epoch);
void fnd_device_found(struct fnd_core *c, const char *name, bool present);
bool fnd_device_done(struct fnd_core *c, uint64_t op, bool ok);
void fnd_device_eval(struct fnd_core *c);
struct fnd_device *fnd_device_find(const struct fnd_core *c, const char *name);
bool fnd_device_wanted(struct fnd_core *c, const char *name);
/* No device of an older epoch is left, and no gate on one. */
bool fnd_device_old_gone(struct fnd_core *c);
void fnd_device_make(struct fnd_core *c, const struct fnd_attachment *a, const char *name);

struct fnd_service *fnd_service_find(const struct fnd_core *c, const char *name);
void fnd_service_row(struct fnd_core *c, const struct fnd_in *in);
void fnd_service_proved(struct fnd_core *c, base_time t0);

#define FND_BIT(coll) ((uint8_t)(1u << (unsigned)(coll)))
/* Room that the look at one row may need. */
#define FND_FX_ROOM 14

#endif
