/* SPDX-License-Identifier: Apache-2.0
 *
 * session/core.h - the ownership core of one agent: events in, effects out.
 *
 * Pure: no clock, no I/O, no randomness of its own; time comes with each event, identities grow from the seed
 * in the configuration. One `struct session_core` holds everything that decides: the instance lease, the
 * attachments, what is known of bindings, services and claims, and one state machine per connector. It never
 * sees store, kube or loop: it says what to do (effects) and is told what came of it (events). The same code
 * runs in the agent and in the simulator.
 *
 * Rules of use
 *  - One thread. session_core_step() is called for each event, in the order in which things happened here.
 *  - The driver executes the effects of a step in order, before the next event. While ret_out->more is true
 * it calls session_core_step() with SESSION_EV_CONTINUE at once: the core had more to say than fits.
 *  - At ret_out->wake_at (CLOCK_BOOTTIME) it sends SESSION_EV_TICK. A late tick extends nothing: deadlines
 * are absolute and stand in the fence slots and gates.
 *  - An effect with an `ask` is answered by exactly one event that carries it, or never (lost): the core has
 * its own deadlines. Late answers are recognised by their ask.
 *  - All memory is taken in session_core_new(); a step allocates nothing.
 * Source: contract sections 1 to 7 and 11; every rule names its section where it is implemented.
 */
#ifndef SESSION_CORE_H
#define SESSION_CORE_H

#include "authority/standing.h"
#include "contract/contract.h"

#define SESSION_FX_MAX 48     /* effects of one step */
#define SESSION_OBJECTS_MAX 8 /* of them, those that carry an object */

struct session_core;

struct session_config { /* copied; const for the life of the core */
    char provider[CONTRACT_LABEL_SIZE];
    char node[CONTRACT_NODE_SIZE];
    struct base_uuid node_uid;
    struct base_uuid boot_id;
    uint8_t seed[32]; /* from the kernel's generator, never reused: process identity and lease UUIDs */
    struct contract_timing timing;
    enum session_policy {
        SESSION_POLICY_DENY = AUTHORITY_POLICY_DENY,
        SESSION_POLICY_KUBERNETES = AUTHORITY_POLICY_KUBERNETES,
        SESSION_POLICY_WEBHOOK = AUTHORITY_POLICY_WEBHOOK,
    } policy;
    uint32_t max_connectors; /* bindings known at once; beyond it: BASE_EFULL in the trace, 503 */
    uint32_t max_services, max_attachments;
    uint32_t max_guests; /* requests about which the policy is being asked at once; 0 = 512, the most */
};
int session_core_new(struct session_core **ret, const struct session_config *cfg, struct base_err *err);
struct session_core *session_core_free(struct session_core *c);

/* ---- events */
enum session_ev {
    SESSION_EV_UNSET = 0,
    SESSION_EV_START, /* once, after the first LISTED of every collection may still be missing */
    SESSION_EV_TICK,
    SESSION_EV_CONTINUE,
    SESSION_EV_REQUEST,   /* u.request: a connector asks for a session; its TLS identity is verified */
    SESSION_EV_ENDED,     /* u.flow: the flow is gone (client closed, idle, protocol error) */
    SESSION_EV_STOPPED,   /* u.flow: barrier: old I/O has stopped, its queues are empty */
    SESSION_EV_ANSWER,    /* u.answer: result of a GET, LIST or write */
    SESSION_EV_ROW,       /* u.row: a watch event of a collection */
    SESSION_EV_RELIST,    /* u.collection: a full list follows as ROW (ADDED) events */
    SESSION_EV_LISTED,    /* u.collection: rows not named since RELIST are gone */
    SESSION_EV_PROOF,     /* u.proof: result of SESSION_FX_PROVE */
    SESSION_EV_AUDIT,     /* u.audit: a record is durable, or could not be made so */
    SESSION_EV_AUTHORITY, /* u.authority: answer to SESSION_FX_AUTHORIZE */
    SESSION_EV_TUN,       /* u.tun: a device was opened or could not be */
    SESSION_EV_TUN_LOST,  /* u.tun: EBADFD, EIO: this instance has ended (contract section 1) */
    SESSION_EV_GAP,       /* u.gap: a data thread was stopped longer than the gap */
    SESSION_EV_REGRESSED, /* the API server went back (an etcd restore): everything told before is void, and
                             RELIST to LISTED of every collection follows. Watches are started over before
                             this is told; late answers may still come */
    SESSION_EV_DRAIN,     /* stop admitting, release everything, then SESSION_FX_DRAINED */
};
#define SESSION_EV_N (SESSION_EV_DRAIN + 1)

enum session_transport { SESSION_H3 = 1, SESSION_H2 };
enum session_identity {
    SESSION_ID_URI = 1, /* a verified client certificate with exactly one URI SAN */
    SESSION_ID_NONE,    /* a certificate without one */
    SESSION_ID_MANY,    /* … with several */
    SESSION_ID_BAD,     /* … with one that cannot be */
    SESSION_ID_TOKEN, /* a bearer token; the driver keeps it under the flow's number, the core never sees it */
    SESSION_ID_ABSENT,    /* neither certificate nor token */
    SESSION_ID_BAD_TOKEN, /* an Authorization header that is no bearer token */
};

/* The five collections that the driver watches, each with its selector: services and bindings (authority
 * proof), own claims (claim proof), own instance, attachments of this node. */
struct session_row {
    enum contract_kind kind;
    bool deleted;                         /* the row left the selector or is gone */
    const struct contract_object *object; /* last content; borrowed for the step */
};
struct session_answer {
    uint64_t ask;
    int code; /* as store_resp.code: BASE_OK, ENOTFOUND, EEXIST, ECONFLICT, EINVAL, EDENIED, EAGAIN (did not
                 land), EUNKNOWN (may have landed), ETIMEDOUT/EIO (a read failed) */
    base_time sent;   /* CLOCK_BOOTTIME before the request was sent: t0 of a row proof */
    size_t n_objects; /* BASE_OK: 1, but a LIST has any number and a DELETE 0 or 1; without it, it was lost */
    const struct contract_object *objects; /* borrowed for the step */
};
struct session_request {
    uint64_t flow;
    enum session_transport transport;
    enum session_identity identity;
    char uri[AUTHORITY_IDENTITY_SIZE]; /* SESSION_ID_URI */
    char credential_id[65];            /* of a certificate: SHA-256, hex; "" = not known (yet) */
    bool any_target;
    struct base_prefix target;
    int ipproto;                         /* -1 = any */
    struct base_correlation correlation; /* never zero */
};
struct session_in {
    base_time now;  /* CLOCK_BOOTTIME */
    base_wall wall; /* CLOCK_REALTIME, for times in objects and for validUntil */
    enum session_ev ev;
    char version[CONTRACT_RV_SIZE]; /* RELIST: resourceVersion of the list; "" = not known */
    union {
        struct session_request request;
        uint64_t flow;
        struct session_answer answer;
        struct session_row row;
        enum contract_kind collection;
        struct {
            uint64_t ask;
            enum contract_kind collection;
            bool proved;
            base_time t0;
        } proof;
        struct {
            uint64_t ask;
            bool durable;
        } audit;
        struct {
            uint64_t ask;
            base_time t0; /* CLOCK_BOOTTIME before it was asked */
            struct authority_answer answer;
        } authority;
        struct {
            uint32_t tun_id;
            int code; /* BASE_OK, BASE_EDENIED (missing or other owner), BASE_EIO, … */
        } tun;
        base_time gap; /* when the late heartbeat came */
    } u;
};

/* ---- effects */
enum session_fx_kind {
    SESSION_FX_UNSET = 0,
    SESSION_FX_GET, /* u.store: quorum read of kind/name */
    SESSION_FX_LIST, /* u.store: quorum LIST of the claims of tenant and connector (or of a vpc: connector "") */
    SESSION_FX_CREATE, /* u.store.object */
    SESSION_FX_UPDATE, /* u.store.object with uid and resourceVersion of the row it was decided on */
    SESSION_FX_STATUS, /* the same on the status subresource */
    SESSION_FX_DELETE, /* u.store: attachment, preconditions in object->u.meta */
    SESSION_FX_PROVE,  /* u.prove: collection proof */
    SESSION_FX_AUDIT,  /* u.audit: make the record durable, then SESSION_EV_AUDIT (ask 0: no answer wanted) */
    SESSION_FX_AUTHORIZE, /* u.authorize: ask the policy's outside (authority/standing.h); ask 0: nobody waits */
    SESSION_FX_TUN_OPEN,  /* u.tun */
    SESSION_FX_TUN_CLOSE, /* u.tun */
    SESSION_FX_REFUSE,    /* u.refuse: answer a waiting request with a status */
    SESSION_FX_ADMIT,     /* u.admit: 200; take a fence slot, set its deadline, tell the data thread */
    SESSION_FX_FENCE,     /* u.fence: move the deadline of an admitted flow (0 = shut for now) */
    SESSION_FX_STOP,      /* u.flow: kill the slot, then the barrier; answer SESSION_EV_STOPPED */
    SESSION_FX_CLOSE,     /* u.flow: end the flow's stream */
    SESSION_FX_TRACE,     /* u.trace: one log line: a transition, or a reason */
    SESSION_FX_CONDITION, /* u.condition: readiness of the instance changed (for /readyz) */
    SESSION_FX_RELIST,    /* a row went back: start every collection over, then SESSION_EV_REGRESSED */
    SESSION_FX_DRAINED,   /* u.drained: nothing is left to wait for: the process may exit 0 */
};
enum session_audit_event {
    SESSION_AUDIT_ACQUIRE = 1,
    SESSION_AUDIT_RENEW,
    SESSION_AUDIT_TAKEOVER,
    SESSION_AUDIT_RELEASE,
    SESSION_AUDIT_EXPIRY,
    SESSION_AUDIT_REJECT,
};
#define SESSION_REASON_SIZE 48
struct session_audit {
    uint64_t ask; /* 0: nobody waits */
    enum session_audit_event event;
    bool allowed;                     /* outcome */
    char reason[SESSION_REASON_SIZE]; /* CamelCase constant: "NoBinding", "Suspended", "ClaimLost", … */
    struct base_correlation correlation;
    char object[CONTRACT_NAME_SIZE];
    struct base_uuid object_uid;
    char old_holder[CONTRACT_NODE_SIZE]; /* node of the holder before and after; "" = none */
    char new_holder[CONTRACT_NODE_SIZE];
    int64_t epoch;
    struct base_uuid lease_uuid;
    char credential_id[65];
    bool effect_possible; /* an external effect may already have happened (EXPECTATIONS.md B11) */
};
struct session_fx {
    enum session_fx_kind kind;
    union {
        struct {
            uint64_t ask;
            enum contract_kind kind;
            char name[CONTRACT_NAME_SIZE];
            char tenant[CONTRACT_LABEL_SIZE];
            char connector[CONTRACT_CONNECTOR_SIZE];
            char vpc[CONTRACT_LABEL_SIZE];
            const struct contract_object *object; /* borrowed until the next step */
            struct base_correlation correlation;
            bool renewal; /* on the renewals' own connection */
        } store;
        struct {
            uint64_t ask;
            enum contract_kind collection;
            base_time timeout;
        } prove;
        struct session_audit audit;
        struct {
            uint64_t ask;
            struct authority_ask q;
        } authorize;
        struct {
            uint32_t tun_id;
            char device[CONTRACT_DEVICE_SIZE];
            int32_t mtu;
        } tun;
        struct {
            uint64_t flow;
            int status; /* 400, 401, 403, 409, 503 */
            char reason[160];
            unsigned retry_after; /* s; 0 = none */
        } refuse;
        struct {
            uint64_t flow;
            uint64_t generation; /* counter in this agent; unique per admitted session */
            uint32_t tun_id;
            struct base_prefix prefix;
            struct base_ip6 tunnel_ip; /* ::1 of the pool's index 0 */
            struct base_prefix pool;   /* the service's: no connector reaches another one */
            uint8_t n_destinations;
            struct base_prefix destinations[CONTRACT_DESTINATIONS_MAX];
            base_time deadline;
        } admit;
        struct {
            uint64_t flow;
            base_time deadline;
        } fence;
        uint64_t flow;
        struct {
            char what[24]; /* "connector", "instance", "attachment" */
            char name[CONTRACT_NAME_SIZE];
            char from[24], to[24], by[24]; /* states and event; from == to for a remark */
            char reason[SESSION_REASON_SIZE];
            int64_t epoch;
            struct base_correlation correlation;
            bool warning;
        } trace;
        struct {
            bool ready;
            char reason[SESSION_REASON_SIZE];
            char message[160];
        } condition;
        struct {
            bool all; /* false: time was up; what did not land ends with its lease */
        } drained;
    } u;
};
struct session_out {
    unsigned n_fx;
    bool more;
    base_time wake_at;
    struct session_fx fx[SESSION_FX_MAX];
    struct contract_object objects[SESSION_OBJECTS_MAX];
};
/* Returns BASE_OK, or BASE_EINVAL for an event that no driver may send (nothing was changed). *ret_out is
 * overwritten. */
int session_core_step(struct session_core *c, const struct session_in *in, struct session_out *ret_out);

/* Asserts every invariant of every state (aborts with the state's name in a test build). */
void session_core_check(const struct session_core *c);

/* ---- what people and tests may look at (never decide on it) */
struct session_view {
    char connector[CONTRACT_CONNECTOR_SIZE];
    char tenant[CONTRACT_LABEL_SIZE];
    char state[24];
    uint64_t flow;
    bool has_prefix;
    struct base_prefix prefix;
    struct base_uuid claim_uid; /* with epoch: which claim the session rests on */
    int64_t epoch;
    base_time deadline;
};
struct session_summary {
    struct base_uuid process_id;
    int64_t instance_epoch;
    char instance_state[24];
    bool ready;
    char reason[SESSION_REASON_SIZE];
    base_time instance_deadline; /* last confirmed renewal's boot time + L - g */
    uint32_t bindings, services, connectors_active, forwarding;
};
void session_core_summary(const struct session_core *c, struct session_summary *ret);
/* The i-th connector that has state; false after the last. */
bool session_core_view(const struct session_core *c, size_t i, struct session_view *ret);

/* The cells of the two state x event tables, numbered: those of the instance first, then the connector's. */
struct session_cell {
    const char *machine, *state, *event;
    bool impossible; /* its handler is an assertion */
};
#define SESSION_CELL_WORDS 4
bool session_core_cell(unsigned i, struct session_cell *ret); /* false after the last */
/* Bit i of the words: an event came in that state since session_core_new (`make cells`). Valid until
 * session_core_free. */
const uint64_t *session_core_cells(const struct session_core *c);

#endif
