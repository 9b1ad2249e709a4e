/* SPDX-License-Identifier: Apache-2.0
 *
 * session/int.h - the inside of the ownership core: what is remembered of each thing, and who may touch it.
 *
 * Private to pkg/session. Everything hangs off one `struct session_core`; all tables are taken in
 * session_core_new and things refer to each other by index. During a step c->now, c->wall and c->out are set.
 *
 * Things ("entities") that own timers, questions and a place in the work queue are numbered:
 *   0 the instance; 1-3 the proofs; 4 the drain; then attachments, connectors, release jobs.
 * A question's number (ask) carries its entity in the low bits, so that an answer finds its asker at once;
 * the asker compares the whole number, so that a late answer is recognised.
 */
#ifndef SESSION_INT_H
#define SESSION_INT_H

#include "authority/index.h"
#include "authority/policy.h"
#include "authority/prefix.h"
#include "lease/deadline.h"
#include "lease/row.h"
#include "session/core.h"

#include <assert.h>

/* ---- bounds of this agent's own making (not of the contract) */
#define SESSION_REQUEST_WAIT (10 * BASE_SEC) /* a request's longest wait in here */
#define SESSION_LINGER (10 * BASE_SEC)       /* a claim without a request, once it could forward */
#define SESSION_READ_WAIT (6 * BASE_SEC)     /* an answer that does not come; the driver gives up after 5 s */
#define SESSION_WRITE_WAIT (6 * BASE_SEC)
#define SESSION_RENEW_WAIT (3 * BASE_SEC)
#define SESSION_AUDIT_WAIT (5 * BASE_SEC)
#define SESSION_POLICY_WAIT (4 * BASE_SEC) /* an answer of the policy's outside that does not come */
#define SESSION_POLICY_RETRY_MAX (2 * BASE_SEC)
#define SESSION_GUESTS 512   /* requests that the policy is being asked about, at most */
#define SESSION_GUEST_ASKS 6 /* questions for one of them */
#define SESSION_RETRY_MIN (100 * BASE_MS)
#define SESSION_RETRY_MAX (500 * BASE_MS)
#define SESSION_DRAIN_WAIT (15 * BASE_SEC)      /* then the process may go, whatever did not land */
#define SESSION_CLOSING_PATIENCE (4 * BASE_SEC) /* beyond W, for a foundation's writes */
#define SESSION_LOOPS_MAX 200 /* steps of arbitration for one request: two for each prefix that is taken */
#define SESSION_DESKS 64      /* rows between the read and the write that it decides, at most */
#define SESSION_PROOFS 4      /* of one collection, on their way at once */
#define SESSION_PROOF_AGAIN (4 * BASE_SEC)
#define SESSION_RENEWALS 1024 /* renewals sent and remembered, to tell a twin */

/* ---- reasons */
struct session_reason { /* by value; name NULL = none */
    const char *name, *text;
    int status;
    unsigned retry_after;
};
enum session_why {
    WHY_NONE = 0,
    WHY_STARTING,
    WHY_NOT_LISTED,
    WHY_API_UNAVAILABLE,
    WHY_AUDIT_UNAVAILABLE,
    WHY_INSTANCE_TAKEN,
    WHY_INSTANCE_REFUSED,
    WHY_INSTANCE_DELETING,
    WHY_INSTANCE_NOT_ACCEPTED,
    WHY_INSTANCE_LOST,
    WHY_LEASE_EXPIRED,
    WHY_DRAINING,
    WHY_RELEASED,
    WHY_TUN_LOST,
    WHY_ATTACHMENT_NOT_READY,
    WHY_AUTHORITY_UNAVAILABLE,
    WHY_POLICY_UNAVAILABLE,
    WHY_TOO_MANY_BINDINGS,
    WHY_POOL_EXHAUSTED,
    WHY_ARBITRATION_BUSY,
    WHY_RESERVATION_REFUSED,
    WHY_CLAIM_REFUSED,
    WHY_CLAIM_DELETING,
    WHY_CLAIM_LOST,
    WHY_CLAIM_DELETED,
    WHY_CLAIM_CLOSED,
    WHY_TAKEOVER_DENIED,
    WHY_EPOCH_EXHAUSTED,
    WHY_CONFLICT,
    WHY_CLOSING,
    WHY_BINDING_UNCONFIRMED,
    WHY_NOT_ACCEPTED,
    WHY_GATE_NOT_OPEN,
    WHY_TAKEOVER_WAIT,
    WHY_GAP,
    WHY_EPOCH_REGRESSED,
    WHY_GRANT_EXPIRED,
    WHY_CLAIM_PROOF_EXPIRED,
    WHY_SERVICE_EXPIRED,
    WHY_SUPERSEDED,
    WHY_HANDOFF,
    WHY_NOT_STOPPED,
    WHY_RETIRED,
    WHY_ENDED,
    WHY_NOBODY_CAME,
    WHY_BUSY,
    WHY_N,
};
struct session_reason session_reason_of(enum session_why w);
struct session_reason session_reason_auth(enum authority_reason r);

/* ---- instance */
enum inst_state {
    INST_INIT = 0,  /* before START */
    INST_READING,   /* GET of the row */
    INST_AUDITING,  /* create or takeover decided, its record on the way to the disk */
    INST_WRITING,   /* create or takeover sent */
    INST_RETRY,     /* pause before the next READING */
    INST_TAKEN,     /* lost to another process: waits until that is released or silent for its L */
    INST_HELD,      /* mine; renewals run */
    INST_RELEASING, /* every claim is released: releaseTime on its way */
    INST_RELEASED,  /* the end */
    INST_STATE_N,
};
enum inst_ev {
    INST_EV_START = 0,
    INST_EV_ANSWER, /* of the state's own question */
    INST_EV_AUDIT,
    INST_EV_ROW,  /* c->inst.row has changed */
    INST_EV_GONE, /* the row is gone */
    INST_EV_TIME,
    INST_EV_LOST,      /* a TUN descriptor says that this instance has ended */
    INST_EV_REGRESSED, /* what is known of the row is void (regress.c) */
    INST_EV_DRAINED,   /* nothing is left to release */
    INST_EV_N,
};
enum renew_state { RENEW_IDLE = 0, RENEW_AUDIT, RENEW_SENT, RENEW_READ };
struct session_instance {
    enum inst_state state;
    struct lease_self me;
    struct base_uuid before;    /* process identity before this one: its row may be taken over at once */
    struct base_uuid last_held; /* identity that held the row here last; zero = none yet */
    uint64_t serial;            /* number of this identity in this process; 0 = none yet */
    bool have_row;
    struct contract_instance row; /* newest that was applied */
    base_time row_at;             /* when that was */
    bool have_watched, in_cache, seen;
    struct contract_instance watched; /* newest that the watch has shown: it may be faster than an answer */
    char name[CONTRACT_NAME_SIZE];
    base_time renewed; /* boot time of the last confirmed renewal; 0 = none */
    uint64_t ask;
    base_time ask_by, retry_at;
    unsigned tries;
    enum session_why why; /* why it is not held */
    bool lost;            /* to another process: the next takeover has to wait */
    bool create;          /* AUDITING, WRITING: no row was there */
    struct lease_instance_attempt attempt;
    struct base_correlation correlation; /* of the last operation that took, lost or gave back the row */
    /* renewal */
    struct base_correlation renew_correlation;
    enum renew_state renew;
    uint64_t renew_ask;
    base_time renew_by, renew_at;
    unsigned renew_tries;
    struct lease_instance_attempt renewal;
    int64_t sent_us[SESSION_RENEWALS]; /* ring of the boot times that this identity has sent */
    unsigned n_sent;
    /* TAKEN: what was seen, and since when it has not changed */
    struct base_uuid taken_uid, taken_process;
    int64_t taken_epoch, taken_boot_us;
    int32_t taken_lease_s;
    base_time taken_since;
};

/* ---- proofs */
enum { PROOF_BINDINGS = 0, PROOF_SERVICES, PROOF_CLAIMS, PROOF_N };
struct session_proof {
    enum contract_kind kind;
    base_time t0;                 /* of the last one that held; 0 = never */
    uint64_t ask[SESSION_PROOFS]; /* not answered yet: an outage that ends is not waited out */
    unsigned asked;
    base_time next_at;
};

/* ---- attachments */
enum att_state { ATT_NONE = 0, ATT_WRITING, ATT_ACCEPTING, ATT_OPENING, ATT_READY, ATT_RETRY, ATT_STATE_N };
struct session_attachment {
    bool used, in_cache, seen, have_row;
    bool needed;       /* a service has this VPC */
    bool reread;       /* its device could not be opened: read the row before the next try */
    uint64_t identity; /* c->inst.serial that tun_id and ask belong to */
    enum att_state state;
    char vpc[CONTRACT_LABEL_SIZE];
    char name[CONTRACT_NAME_SIZE];
    struct contract_attachment row;
    base_time row_at; /* when that was applied */
    uint64_t ask;
    base_time ask_by, retry_at;
    unsigned tries;
    unsigned displaced; /* how often another instance's row was taken away for this identity */
    uint32_t tun_id;    /* 0 = no device open or being opened */
    bool tun_open;
    char device[CONTRACT_DEVICE_SIZE]; /* that tun_id stands for */
};

/* ---- services */
struct session_service {
    bool used, seen;
    base_time t0;    /* row proof */
    base_time rv_at; /* when its version was applied */
    struct authority_service s;
};

/* ---- connectors */
enum conn_state {
    CONN_IDLE = 0,
    CONN_PENDING,   /* a request waits for instance and attachment */
    CONN_READING,   /* binding, and what else must be fresh */
    CONN_LISTING,   /* no reservation: which rows does this connector have? */
    CONN_RESERVING, /* the reservation is being written or cleared */
    CONN_CHECKING,  /* GET of the claim, or of its holder's instance */
    CONN_ASKING,    /* policy webhook: a claim write is decided, its permission is asked for */
    CONN_AUDITING,  /* a claim write is decided, its record on the way to the disk */
    CONN_CLAIMING,  /* the claim write is on its way */
    CONN_CLOSING,   /* a closing takeover landed: waits until the foundation has closed it */
    CONN_RETRYING,  /* pause before CHECKING */
    CONN_WAITING,   /* the claim is mine: waits for the seven conditions */
    CONN_FORWARDING,
    CONN_HANDOFF,  /* the old session is being stopped, a new request waits */
    CONN_STOPPING, /* the old session is being stopped, nobody waits */
    CONN_RETIRED,  /* the old session did not stop in time: nobody is admitted until it has */
    CONN_STATE_N,
};
enum conn_ev {
    CONN_EV_REQUEST = 0, /* authenticated */
    CONN_EV_GONE,        /* the waiting request's flow has ended */
    CONN_EV_ENDED,       /* the session's flow has ended */
    CONN_EV_STOPPED,     /* the barrier of the old session */
    CONN_EV_READ,        /* every outstanding read is answered */
    CONN_EV_WROTE,       /* answer to a write */
    CONN_EV_AUDITED,
    CONN_EV_TOLD,   /* the policy's answer on a claim write */
    CONN_EV_SETTLE, /* time passed, or something that this rests on has changed */
    CONN_EV_N,
};
struct session_wait { /* a request that waits; flow 0 = none */
    uint64_t flow;
    enum session_transport transport;
    base_time since;
    bool any_target;
    struct base_prefix target;
    uint8_t digest[AUTHORITY_DIGEST_SIZE];
    char credential_id[65];
    struct base_correlation correlation;
    enum contract_identity_kind identity_kind;
    char identity[AUTHORITY_IDENTITY_SIZE]; /* "" = not known yet */
    struct authority_standing standing;
};
struct session_report { /* binding.status.lastSession: a report, never an authority; written when there is
                           time */
    bool due, closed;
    bool session; /* there is news of a session */
    bool sick;    /* this node refused the connector for want of a durable record */
    base_time at; /* when to write it */
    uint64_t ask;
    base_time ask_by;
    unsigned tries;
    enum session_transport transport;
    base_wall since, until;
    struct base_uuid claim_uid; /* the session's generation */
    int64_t epoch;
    uint64_t counter;
};
struct session_claim { /* the row that this connector holds or held here; uid zero = none */
    struct base_uuid uid;
    char rv[CONTRACT_RV_SIZE];
    base_wall created;
    struct base_prefix prefix;
    int64_t epoch;               /* mine */
    struct base_uuid lease_uuid; /* mine */
    uint64_t identity;           /* c->inst.serial under which it was written */
    struct base_uuid attachment_uid, service_uid;
    int32_t lease_s, max_lease_s;
    bool mine; /* the newest applied row: holder, epoch and leaseUUID are these */
    bool released, deleting;
    bool in_cache, seen; /* the watch has it */
    int64_t accepted_epoch, gate_epoch, closed_epoch;
    struct base_uuid accepted_lease;
    bool gate_open;
    base_time t0;                    /* last claim proof */
    base_time first_seen;            /* of (uid, epoch, leaseUUID) by this process */
    char holder[CONTRACT_NODE_SIZE]; /* of the newest applied row, for traces and audit */
    char before[CONTRACT_NODE_SIZE]; /* node of the epoch before this one */
};
struct session_conn {
    bool used;  /* the slot has a name */
    bool bound; /* the binding exists */
    bool seen;  /* during a relist */
    enum conn_state state;
    struct authority_binding b;
    base_time b_t0;    /* row proof of the binding */
    base_time b_at;    /* its newest row was applied then */
    uint32_t svc, att; /* hints; checked by name at each use */
    uint32_t next;     /* chain of the name map, or of the free list: index + 1, 0 = the end */

    struct session_wait req; /* its identity is the session's while there is no request: a session is retired
                                at its policy before the next request takes the place */
    struct {                 /* flow 0 = none */
        uint64_t flow, generation;
        base_time deadline; /* in the fence slot */
        enum session_transport transport;
        uint8_t digest[AUTHORITY_DIGEST_SIZE];
        char credential_id[65];
        struct base_correlation correlation;
        struct authority_standing standing;
        enum authority_reason refused; /* what the policy said when it was asked again */
        bool keep;                     /* being stopped, but the claim may serve a successor */
        bool current;                  /* false as soon as a successor is chosen or it has ended */
    } ses;
    struct authority_pin pin;
    base_time stop_by;
    struct session_claim claim;
    base_time park_since; /* WAITING without a request since */
    base_time over_since; /* condition 4 has held since; 0 = not yet */
    struct {              /* the last epoch whose expiry was recorded */
        struct base_uuid uid;
        int64_t epoch;
    } expired;
    bool reread; /* the binding was read again after the claim landed */

    bool saying;             /* the write on its way says so, and is no report */
    bool recheck, ambiguous; /* another binding names one of its identities, too */
    base_time say_at;        /* when to write that, or that it is over; 0 = nothing to say */

    /* what is going on */
    uint64_t ask, ask_binding, ask_service;
    base_time ask_by, retry_at;
    struct { /* the policy's outside: ASKING for the request, FORWARDING for the session */
        uint64_t ask, flow;
        base_time by, at; /* lost after; FORWARDING: when to ask again */
        enum authority_question question;
        unsigned tries;
    } policy;
    enum session_why read_failed; /* of the reads outstanding */
    enum { ROW_NOT_READ = 0, ROW_ABSENT, ROW_ON_DESK } row;
    int16_t desk;                  /* -1 = none */
    bool fresh_prefix;             /* the reservation was made just now and no row was listed there */
    bool clearing;                 /* RESERVING: the reservation is being removed */
    bool holder_asked;             /* CHECKING: the question is the holder's instance */
    struct base_prefix want;       /* the prefix in question */
    char arb_rv[CONTRACT_RV_SIZE]; /* the binding's, as the fresh read showed it */
    struct base_uuid arb_uid;
    uint32_t candidate;
    unsigned loops, tries;
    enum lease_op op;
    struct base_uuid lease_uuid;
    int64_t op_epoch;
    struct base_correlation op_correlation; /* of its record and its write */
    int64_t seen_epoch;              /* of the row that the last decision was made on; 0 = there was none */
    bool acquire_refused;            /* somebody's row is there: the next read says at which epoch */
    bool taken_unreleased;           /* the row that was taken over had not been released */
    struct lease_attempt unknown[2]; /* writes whose outcome is not known; op 0 = none */
    struct lease_attempt attempt;
    /* a row that another process is closing: since when */
    struct base_uuid closing_uid, closing_lease;
    base_time closing_since; /* 0 = none */
    bool again;              /* RETRYING: from the start, not only the row */
    /* takeover: Denied: the holder's instance as it was seen, and since when */
    struct base_uuid denied_process;
    int64_t denied_boot_us;
    base_time denied_since;

    struct base_uuid
        cached_uid; /* a row of ours that the watch has shown before its write was known to have landed */
    char cached_rv[CONTRACT_RV_SIZE]; /* the newest version of it that the watch has shown */
    struct {                          /* the newest version of the row that was seen here last */
        struct base_prefix prefix;
        char rv[CONTRACT_RV_SIZE]; /* "" = none */
        base_time at;
    } known;
    struct session_report report;
};

/* ---- guests */
struct session_guest { /* a request at the door: nothing of its connector has been touched */
    bool used;
    struct session_wait w;
    uint64_t ask;
    base_time ask_by;
    enum authority_question question;
    /* what CONNECT was asked about */
    struct base_uuid binding_uid;
    bool has_prefix;
    struct base_prefix prefix;
    unsigned asks;
    uint32_t next_free;
};

/* ---- releases */
enum job_state { JOB_FREE = 0, JOB_READING, JOB_WRITING, JOB_RETRY };
struct session_job { /* one route to give back: independent of sessions and their teardown */
    enum job_state state;
    struct base_prefix prefix;
    struct base_uuid uid, lease_uuid;
    int64_t epoch;
    uint64_t identity; /* c->inst.serial; another process has nothing to release */
    uint64_t ask;
    base_time ask_by, retry_at;
    unsigned tries;
    const char *reason;
    struct base_correlation correlation;
    uint32_t next_free;
};

/* ---- timers, work queue, maps */
struct session_timers {
    uint32_t n; /* entities */
    uint32_t n_heap;
    uint32_t *heap; /* entity numbers, least time first */
    uint32_t *pos;  /* entity -> place in the heap + 1, 0 = not in it */
    base_time *at;
    uint32_t *queue; /* ring of entities with work to do */
    uint8_t *queued;
    uint32_t q_head, q_n;
};
struct session_flows { /* flow -> connector; open addressing */
    uint32_t mask;
    struct session_flow {
        uint64_t flow; /* 0 = empty */
        uint32_t conn; /* its index; with SESSION_FLOW_GUEST a guest's */
    } * slot;
};

#define SESSION_FLOW_GUEST (UINT32_C(1) << 31)

enum { ENTITY_INSTANCE = 0, ENTITY_PROOF = 1, ENTITY_DRAIN = ENTITY_PROOF + PROOF_N, ENTITY_FIXED };
#define SESSION_ASK_BITS 24

struct session_core {
    struct session_config cfg;
    struct base_prng prng;
    uint64_t uuids; /* drawn so far */
    base_time now;
    base_wall wall;
    struct session_out *out;
    unsigned n_objects;
    uint64_t asks;

    bool started, draining, drained, drain_gave_up;
    base_time drain_by;
    bool listed[CONTRACT_KIND_N];
    char list_rv[CONTRACT_KIND_N][CONTRACT_RV_SIZE]; /* of the list that is running; "" = none */
    bool bindings_overflow;
    base_time gap_at; /* a data thread was stopped until then */

    base_time regressed_at; /* the API server went back; 0 = never */
    bool regress_due;       /* a row of this step showed it */
    int32_t max_lease_s;    /* the longest that a claim was seen with */

    struct session_instance inst;
    struct session_proof proof[PROOF_N];
    struct session_attachment *att;
    struct session_service *svc;
    struct session_conn *conn;
    struct session_job *job;
    uint32_t n_jobs, jobs_active, job_free;
    struct session_guest *guest;
    uint32_t guest_free, guest_fresh; /* from guest_fresh on they were never used */
    struct contract_claim *desk;
    int16_t desk_free[SESSION_DESKS];
    unsigned n_desks, n_desk_free;               /* a connector has one at most */
    uint32_t *name_bucket, name_mask, conn_free; /* index + 1, 0 = none */
    uint32_t conn_fresh, job_fresh;              /* from here on they were never used */
    struct authority_index *identities;
    struct session_timers timers;
    struct session_flows flows;
    uint32_t tun_ids;
    uint64_t generations;
    uint32_t busy; /* connectors that are not IDLE */

    bool cond_ready;
    const char *cond_reason;

    uint64_t cells[SESSION_CELL_WORDS]; /* of the state x event tables, where an event has come */
};

#define SESSION_INST_CELLS (INST_STATE_N * INST_EV_N)
_Static_assert(SESSION_INST_CELLS + CONN_STATE_N * CONN_EV_N <= 64 * SESSION_CELL_WORDS, "a bit for each");
static inline void session_cell_reached(struct session_core *c, unsigned i)
{
    c->cells[i / 64] |= UINT64_C(1) << i % 64;
}

static inline uint32_t session_entity_att(const struct session_core *c, const struct session_attachment *a)
{
    (void)c;
    return ENTITY_FIXED + (uint32_t)(a - c->att);
}
static inline uint32_t session_entity_conn(const struct session_core *c, const struct session_conn *n)
{
    return ENTITY_FIXED + c->cfg.max_attachments + (uint32_t)(n - c->conn);
}
static inline uint32_t session_entity_job(const struct session_core *c, const struct session_job *j)
{
    return ENTITY_FIXED + c->cfg.max_attachments + c->cfg.max_connectors + (uint32_t)(j - c->job);
}

static inline uint32_t session_entity_guest(const struct session_core *c, const struct session_guest *g)
{
    return ENTITY_FIXED + c->cfg.max_attachments + c->cfg.max_connectors + c->n_jobs +
           (uint32_t)(g - c->guest);
}

/* ---- out.c: effects */
bool session_room(const struct session_core *c, unsigned n_fx, unsigned n_objects);
struct session_fx *session_fx(struct session_core *c, enum session_fx_kind kind);
uint64_t session_ask(struct session_core *c, uint32_t entity);
/* 0xffffffff when it cannot be one of ours */
uint32_t session_ask_entity(const struct session_core *c, uint64_t ask);
uint64_t session_get(struct session_core *c, uint32_t entity, enum contract_kind kind, const char *name,
                     const struct base_correlation *correlation);
/* A write; the caller fills *ret_object (zeroed, its kind set). */
uint64_t session_write(struct session_core *c, uint32_t entity, enum session_fx_kind fx,
                       enum contract_kind kind, const struct base_correlation *correlation, bool renewal,
                       struct contract_object **ret_object);
void session_trace(struct session_core *c, const char *what, const char *name, const char *from,
                   const char *to, const char *by, const char *reason, int64_t epoch,
                   const struct base_correlation *correlation, bool warning);
struct session_audit *session_audit(struct session_core *c, enum session_audit_event event, bool allowed,
                                    const char *reason, const char *object);
struct base_uuid session_uuid(struct session_core *c);
struct base_correlation session_correlation(struct session_core *c);
/* t shortened by up to a fifth. */
base_time session_jitter(struct session_core *c, base_time t);
base_time session_backoff(struct session_core *c, unsigned tries);

/* ---- timers.c */
int session_timers_init(struct session_timers *t, uint32_t n);
void session_timers_fini(struct session_timers *t);
void session_timer_set(struct session_timers *t, uint32_t entity, base_time at); /* BASE_TIME_NEVER removes */
base_time session_timer_first(const struct session_timers *t, uint32_t *ret_entity);
bool session_timers_ok(const struct session_timers *t);
void session_dirty(struct session_core *c, uint32_t entity);
uint32_t session_undirty(struct session_core *c); /* UINT32_MAX when there is nothing to do */
int session_flows_init(struct session_flows *f, uint32_t n);
void session_flows_fini(struct session_flows *f);
void session_flow_put(struct session_flows *f, uint64_t flow, uint32_t conn);
uint32_t session_flow_find(const struct session_flows *f, uint64_t flow); /* UINT32_MAX = unknown */
void session_flow_drop(struct session_flows *f, uint64_t flow);

/* ---- instance.c */
const char *session_inst_state_name(enum inst_state s);
void session_inst_event(struct session_core *c, enum inst_ev ev, const struct session_in *in);
void session_inst_row(struct session_core *c, const struct contract_instance *row, bool deleted,
                      const char *rv);
void session_inst_wake(struct session_core *c);
bool session_inst_ready(const struct session_core *c);
enum session_why session_inst_why(const struct session_core *c); /* why it is not ready */
void session_inst_check(const struct session_core *c);
void session_inst_cell(unsigned i, struct session_cell *ret);

/* ---- regress.c */
void session_regress(struct session_core *c);
/* W after the API server went back is not over: nothing is taken, nothing forwards. */
bool session_regressed(const struct session_core *c);
base_time session_regress_end(const struct session_core *c); /* 0 = it never did */
/* A row of the running list, and what is known of the same object: the list was made after that version, and
 * yet it shows an older one. */
void session_regress_listed(struct session_core *c, enum contract_kind kind, const char *known,
                            const char *rv);
/* The answer to a request that was sent after a newer version of the same object had been applied (at
 * `known_at`). */
void session_regress_answer(struct session_core *c, const char *known, base_time known_at, const char *rv,
                            base_time sent);
void session_claim_seen(struct session_core *c, struct session_conn *n, const struct contract_claim *row);
void session_regress_lease(struct session_core *c, const struct session_in *in);

/* ---- proof.c */
void session_proof_run(struct session_core *c, unsigned i);
void session_proof_forget(struct session_core *c,
                          unsigned i); /* what is on its way does not count any more */
void session_proof_event(struct session_core *c, const struct session_in *in);
void session_proof_wake(struct session_core *c, unsigned i);
base_time session_authority_t0(const struct session_core *c, const struct session_conn *n);
bool session_services_stale(const struct session_core *c, const struct session_conn *n,
                            const struct session_service *s);
/* A connector with a short grant is at work: the next authority proof may be due sooner. */
void session_proof_pace(struct session_core *c, const struct session_conn *n);

/* ---- attachment.c */
void session_att_need(struct session_core *c); /* one for each VPC of the services */
void session_att_settle(struct session_core *c, struct session_attachment *a);
void session_att_answer(struct session_core *c, struct session_attachment *a,
                        const struct session_answer *an);
void session_att_row(struct session_core *c, const struct contract_attachment *row, bool deleted);
void session_att_relist(struct session_core *c);
void session_att_listed(struct session_core *c);
void session_att_tun(struct session_core *c, uint32_t tun_id, int code);
void session_att_down(struct session_core *c);
void session_att_forget(struct session_core *c); /* rows and answers of before are void */
bool session_att_has_tun(const struct session_core *c, uint32_t tun_id);
void session_att_wake(struct session_core *c, struct session_attachment *a);
struct session_attachment *session_att_of(struct session_core *c, struct session_conn *n);
bool session_att_ready(const struct session_core *c, const struct session_attachment *a);
const char *session_att_state_name(enum att_state s);

/* ---- catalog.c: what the watches say of bindings, services and claims */
struct session_conn *session_conn_find(struct session_core *c, const char *name);
struct session_conn *session_conn_make(struct session_core *c, const char *name); /* NULL when full */
void session_conn_free_if_idle(struct session_core *c, struct session_conn *n);
/* Applies a binding's content unless something newer is known; true when it counts as a row proof. */
bool session_binding_row(struct session_core *c, const struct contract_binding *b);
void session_binding_gone(struct session_core *c, struct session_conn *n);
/* A quorum read of it, for the request that waits. */
void session_binding_ask(struct session_core *c, struct session_conn *n);
bool session_service_row(struct session_core *c, const struct contract_service *s);
struct session_service *session_service_of(struct session_core *c, struct session_conn *n);
void session_claim_row(struct session_core *c, const struct contract_claim *row, bool deleted);
/* Is version a older than b? Unknown versions are not. */
bool session_version_below(const char *a, const char *b);
bool session_older(const char *a, const char *b);
/* Updates the view unless it is older; false = older: proves nothing and changes nothing. */
bool session_claim_apply(struct session_core *c, struct session_conn *n, const struct contract_claim *row);
void session_catalog_row(struct session_core *c, const struct session_row *row);
void session_catalog_relist(struct session_core *c, enum contract_kind kind);
void session_catalog_listed(struct session_core *c, enum contract_kind kind);
/* Every connector with a claim or a request is looked at again. */
void session_all_dirty(struct session_core *c);

/* ---- connector.c */
struct conn_in { /* with CONN_EV_READ and CONN_EV_WROTE: the answer; with REQUEST: the request */
    enum conn_ev ev;
    const struct session_answer *answer;
    const struct session_wait *request;
    const struct authority_answer *told; /* TOLD */
    base_time t0;
    bool durable;
};
const char *session_conn_state_name(enum conn_state s);
void session_conn_event(struct session_core *c, struct session_conn *n, const struct conn_in *in);
void session_conn_settle(struct session_core *c, struct session_conn *n);
void session_conn_answer(struct session_core *c, struct session_conn *n, const struct session_answer *an);
void session_conn_audited(struct session_core *c, struct session_conn *n, uint64_t ask, bool durable);
void session_conn_wake(struct session_core *c, struct session_conn *n);
void session_conn_check(const struct session_core *c, const struct session_conn *n);
bool session_conn_cell(unsigned i, struct session_cell *ret);

/* Refuses the waiting request (if any); the audit trail has it too. */
void session_refuse_wait(struct session_core *c, struct session_conn *n, struct session_reason why,
                         unsigned retry_after);
void session_refuse(struct session_core *c, struct session_conn *n, uint64_t flow, struct session_reason why,
                    unsigned retry_after, const struct base_correlation *correlation,
                    const char *credential_id);

/* ---- arbitrate.c: which prefix, which row, which write (contract sections 3 and 4) */
enum conn_state session_begin(struct session_core *c, struct session_conn *n);
enum conn_state session_give_up(struct session_core *c, struct session_conn *n, struct session_reason why);
enum conn_state session_on_read(struct session_core *c, struct session_conn *n, const struct conn_in *in);
enum conn_state session_on_list(struct session_core *c, struct session_conn *n, const struct conn_in *in);
enum conn_state session_on_reserved(struct session_core *c, struct session_conn *n, const struct conn_in *in);
enum conn_state session_on_row(struct session_core *c, struct session_conn *n, const struct conn_in *in);
enum conn_state session_check_again(struct session_core *c, struct session_conn *n);
void session_desk_free(struct session_core *c, struct session_conn *n);
int16_t session_desk_take(struct session_core *c);

/* ---- claim.c: audit, write, outcome */
enum conn_state session_decide(struct session_core *c, struct session_conn *n, enum lease_op op);
enum conn_state session_on_audited(struct session_core *c, struct session_conn *n, const struct conn_in *in);
enum conn_state session_on_claimed(struct session_core *c, struct session_conn *n, const struct conn_in *in);
enum conn_state session_landed(struct session_core *c, struct session_conn *n,
                               const struct contract_claim *row, base_time sent);
void session_acquire_refused(struct session_core *c, struct session_conn *n,
                             const struct contract_claim *row);
struct lease_attempt *session_attempt_of(struct session_conn *n, const struct base_uuid *lease_uuid);
void session_drop_attempts(struct session_core *c, struct session_conn *n);

/* ---- conditions.c: contract section 7 */
/* The first of the seven that does not hold; name NULL = all hold. `for_request`: the generation that would
 * be admitted. */
struct session_reason session_conditions(struct session_core *c, struct session_conn *n, bool for_request);
/* What must hold for the claim to be worth keeping (conditions 1, 2 and 5, and the authority). */
struct session_reason session_claim_worth(struct session_core *c, struct session_conn *n);
base_time session_deadline(struct session_core *c, struct session_conn *n, enum lease_part *ret_part);
/* What goes into the fence slot: the deadline, or 0 while a gap is not yet proved over. */
base_time session_fence(struct session_core *c, struct session_conn *n);

/* ---- release.c */
void session_release(struct session_core *c, const struct base_prefix *prefix, const struct base_uuid *uid,
                     const struct base_uuid *lease_uuid, int64_t epoch, const char *reason,
                     const struct base_correlation *correlation);
/* Releases the connector's claim when it is still worth a write, and forgets it. */
void session_release_claim(struct session_core *c, struct session_conn *n, const char *reason);
void session_job_settle(struct session_core *c, struct session_job *j);
void session_job_answer(struct session_core *c, struct session_job *j, const struct session_answer *an);
void session_job_wake(struct session_core *c, struct session_job *j);

/* ---- guest.c: requests at the door */
void session_guest_settle(struct session_core *c, struct session_guest *g);
void session_guest_told(struct session_core *c, struct session_guest *g, uint64_t ask,
                        const struct authority_answer *a, base_time t0);
void session_guest_gone(struct session_core *c, struct session_guest *g);
void session_guest_wake(struct session_core *c, struct session_guest *g);
void session_guest_check(const struct session_core *c, const struct session_guest *g);
/* At the door: who is it, may it come in? Admits to the connector, refuses, or makes a guest of it. */
void session_door(struct session_core *c, const struct session_wait *w);

/* ---- policy.c: what the policy has to be asked for a connector */
uint64_t session_policy_ask(struct session_core *c, uint32_t entity, const struct authority_ask *q);
/* Question about the request or session with these fields, for connector `n` (NULL: not known yet). */
void session_policy_fill(struct session_core *c, struct authority_ask *q, enum authority_question question,
                         const struct session_wait *w, const struct session_conn *n);
/* Before a claim is written: NONE, or ASKING has begun. */
bool session_policy_claim(struct session_core *c, struct session_conn *n);
enum conn_state session_on_told(struct session_core *c, struct session_conn *n, const struct conn_in *in);
void session_policy_told(struct session_core *c, struct session_conn *n, uint64_t ask,
                         const struct authority_answer *a, base_time t0);
/* A session begins, goes on, ends. */
void session_policy_begin(struct session_core *c, struct session_conn *n);
void session_policy_refresh(struct session_core *c, struct session_conn *n);
void session_policy_retire(struct session_core *c, struct session_conn *n);

/* ---- report.c */
void session_report_opened(struct session_core *c, struct session_conn *n);
void session_report_closed(struct session_core *c, struct session_conn *n);
void session_report_refused(struct session_core *c, struct session_conn *n, struct session_reason why);
void session_report_settle(struct session_core *c, struct session_conn *n);
void session_report_answer(struct session_core *c, struct session_conn *n, const struct session_answer *an);
base_time session_report_wake(const struct session_conn *n);
/* The binding as a status write names it: everything that the write does not mean stays. */
void session_binding_object(const struct session_conn *n, struct contract_binding *ret);

/* ---- drain.c */
bool session_admitting(const struct session_core *c);
void session_drain(struct session_core *c);
void session_drain_settle(struct session_core *c);
void session_condition(struct session_core *c);

/* ---- request.c */
int session_request(struct session_core *c, const struct session_request *rq);
/* Policy, identity, binding, service, target, drain: may it be asked for at all? */
struct session_reason session_authenticate(struct session_core *c, const struct session_wait *w,
                                           struct session_conn **ret);

#endif
