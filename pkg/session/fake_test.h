/* SPDX-License-Identifier: Apache-2.0
 *
 * session/fake_test.h - a small world for stories: one store with the API server's preconditions, nodes with
 * an agent (the core and a driver for its effects) and a foundation, connectors, and an observer that sees
 * everything.
 *
 * Virtual time: world_run() moves it from event to event. After every step the core checks itself, every
 * write is checked for its preconditions, and the observer asserts that at most one session can pass packets
 * for a prefix.
 */
#ifndef SESSION_FAKE_TEST_H
#define SESSION_FAKE_TEST_H

#include "session/int.h"

#define W_NODES 3
#define W_OBJECTS 160
#define W_FLOWS 640
#define W_MS BASE_MS
#define W_SEC BASE_SEC

enum w_fault { /* what happens to the next write (or read) of a kind */
               W_NO_FAULT = 0,
               W_LOST,      /* EUNKNOWN, and it did not land */
               W_LANDED,    /* EUNKNOWN, but it landed */
               W_LATE,      /* EUNKNOWN, and it lands when the test says so (world_land) */
               W_DENIED,    /* 403 */
               W_INVALID,   /* 422 */
               W_TRY_LATER, /* 429 */
               W_NO_ANSWER, /* the answer never comes; it landed */
               W_DOWN,      /* reads: EIO */
               W_CONFLICT,  /* 409, whatever the versions are */
               W_SLOW,      /* a GET: the answer is read now and arrives half a second later */
};
struct w_flow {
    uint64_t flow;
    int node;
    char uri[64];
    int status; /* 0 = waiting, 200 = admitted, else refused with it */
    char reason[160];
    unsigned retry_after;
    base_time asked, answered;
    base_time deadline; /* fence slot; 0 = shut, -1 = dead */
    bool closed, stopped, ended;
    struct session_fx admit; /* copy of u.admit when admitted */
};
struct w_gate { /* a foundation's gate for one prefix */
    char name[CONTRACT_NAME_SIZE];
    struct base_uuid uid; /* of the object: another one starts from nothing */
    int64_t epoch;
    base_time first_seen;
    int64_t seen_epoch;
    base_time deadline; /* 0 = closed */
    int64_t tomb;       /* this epoch and older are closed for good here */
};
struct w_node {
    bool used, agent_alive;
    int index;
    char name[16];
    struct base_uuid node_uid, boot_id;
    struct session_core *core;
    struct session_config cfg;
    base_time wake_at;
    base_time foundation_holds; /* it does nothing until then: W after a restore */
    /* knobs */
    bool cut;                           /* no answer of the API server: reads EIO, writes W_LOST */
    bool watch_silent[CONTRACT_KIND_N]; /* no events, no proofs, and the list of it stays as it was */
    base_time audit_delay;              /* until a record is durable, besides 1 ms */
    bool audit_fails, audit_silent, stuck /* no barrier */, foundation_down, foundation_watch_silent,
        tun_fails;
    bool attachments_wait; /* the foundation does not accept them */
    bool prove_stale;      /* with watch_silent: a proof is claimed nevertheless (for the in-cache rule) */
    enum w_fault write_fault[CONTRACT_KIND_N], read_fault[CONTRACT_KIND_N];
    struct {
        enum authority_verdict verdict[8]; /* by question; 0 = allowed */
        bool silent;                       /* no answer */
        base_time grant;                   /* of the webhook; 0 = 30 s */
        unsigned asked[8];                 /* by question */
        struct authority_ask last[8];      /* by question */
        char user[64];                     /* whom a token names now; "" = the flow's */
    } authority;
    int fault_skip; /* so many matching requests pass before the fault */
    /* what was seen */
    bool ready, drained;
    char ready_reason[48];
    char warned[SESSION_REASON_SIZE]; /* reason of the last remark that warns */
    unsigned writes[CONTRACT_KIND_N], reads[CONTRACT_KIND_N], audits[8], tun_opens, tun_closes, not_durable;
    char by_reason[256][48]; /* reasons of the audit records, in order */
    unsigned by_reason_n;
    struct base_correlation recorded[64]; /* of the last audit records, a ring */
    unsigned n_recorded;
    struct session_audit last_audit[8]; /* by event */
    unsigned rounds; /* sequential store round trips of the agent since the last world_rounds */
    struct w_gate gate[W_OBJECTS];
    uint64_t devices;
};
struct world {
    base_time now;
    base_wall wall0;
    uint64_t rv, seq;
    struct contract_object obj[W_OBJECTS];
    size_t n_obj;
    struct w_node node[W_NODES];
    struct w_flow flow[W_FLOWS];
    size_t n_flow;
    struct w_msg *msgs; /* by time */
    struct contract_object late_object;
    enum session_fx_kind late_kind;
    int late_node;
    bool late;
    struct session_out out;
    unsigned overlaps;
    bool verbose;
    bool allow_overlap;
    uint64_t uids;
};

/* While it is set no digest can be made (base_sha256 says BASE_ENOMEM). */
extern bool world_digest_fails;

struct world *world_new(void);
void world_free(struct world *w);
/* A node with its agent; `policy` kubernetes. */
struct w_node *world_node(struct world *w, int i);
void world_agent_start(struct world *w, int i);
void world_agent_kill(struct world *w, int i); /* at once; what it sent is on its way */
void world_run(struct world *w, base_time span);
/* Runs until cond(w, arg) or `span` is over; returns the time it took, or -1. */
base_time world_until(struct world *w, base_time span, bool (*cond)(struct world *w, void *arg), void *arg);

/* objects */
struct contract_object *world_get(struct world *w, const char *name);
struct contract_claim *world_claim(struct world *w, const char *name);
/* Puts an object as it is (uid, rv made); the watches see it. */
struct contract_object *world_put(struct world *w, const struct contract_object *o);
void world_touch(struct world *w, struct contract_object *o); /* after a change in place */
void world_delete(struct world *w, const char *name);
struct contract_object *world_service(struct world *w, const char *name, const char *pool);
struct contract_object *world_binding(struct world *w, const char *tenant, const char *connector,
                                      const char *service, const char *uri);
void world_land(struct world *w); /* a W_LATE write arrives now */
/* etcd is backed up and restored: objects, and the version unless `bump` (then it goes far ahead, objects
 * keep theirs). Each agent is told at once unless `bump`; its collections are listed again in any case. The
 * foundations shut their gates and wait. */
struct w_snapshot {
    struct contract_object obj[W_OBJECTS];
    size_t n_obj;
    uint64_t rv;
};
struct w_snapshot *world_snapshot(const struct world *w); /* free() it */
void world_restore(struct world *w, const struct w_snapshot *s, bool bump);
void world_relist(struct world *w, int node);
struct base_uuid world_uuid(struct world *w);

/* connectors */
uint64_t world_connect(struct world *w, int node, const char *uri);
uint64_t world_connect_to(struct world *w, int node, const char *uri, const char *target);
/* With a bearer token of that user. */
uint64_t world_connect_token(struct world *w, int node, const char *user);
struct w_flow *world_flow(struct world *w, uint64_t flow);
void world_end(struct world *w, uint64_t flow);             /* the client goes away */
bool world_passes(struct world *w, const struct w_flow *f); /* could a packet of it pass now? */
void world_event(struct world *w, int node, const struct session_in *in);

/* most stories begin like this: node 0 (and 1) ready, service svc-a, binding acme.site1 for
 * spiffe://acme/site1 */
struct world *world_usual(int nodes);
/* The same under policy webhook; the binding names the user W_USER, too. */
struct world *world_webhook(int nodes);
#define W_USER "system:serviceaccount:acme:site1"
#define W_URI "spiffe://acme/site1"
/* Connects and runs until the answer. */
struct w_flow *world_session(struct world *w, int node);

/* fake_look_test.c. Conditions for world_until, node 0; arg: */
bool world_answered(struct world *w, void *flow); /* uint64_t * */
bool world_is_ready(struct world *w, void *arg);  /* NULL */
bool world_drained(struct world *w, void *arg);   /* NULL */
bool world_conn_is(struct world *w, void *state); /* char *, of the first connector */
bool world_inst_is(struct world *w, void *state); /* char * */
/* Fail the test when it is not so within `span`. */
void world_until_conn(struct world *w, const char *state, base_time span);
void world_until_inst(struct world *w, const char *state, base_time span);
const char *world_state(struct world *w, int node); /* of the first connector */
const char *world_inst_state(struct world *w);
struct session_conn *world_conn(struct world *w, const char *name); /* on node 0; not there: the test fails */
/* Refused with that status, and a text that begins with "REASON:". */
bool world_refused(const struct w_flow *f, int status, const char *reason);
bool world_said(const struct w_node *n, const char *reason); /* in an audit record */
const char *world_claim_name(struct world *w);               /* of acme.site1, by its reserved prefix */
bool world_has_claim(struct world *w);
struct contract_object *world_the_claim(struct world *w);        /* the first; none: the test fails */
struct base_prefix world_candidate(struct world *w, uint64_t i); /* of acme.site1 in svc-a's pool */
struct base_prefix world_prefix(const char *text);
/* A claim that is held on a node that nobody knows. */
struct contract_object *world_foreign(struct world *w, const char *tenant, const char *connector,
                                      const char *vpc, struct base_prefix p);
void world_take_instance(struct world *w);                    /* another process takes masque.edge1 over */
void world_second_identity(struct world *w, const char *uri); /* acme.site1 gets it, beside its own */
void world_over(struct contract_object *claim);               /* released and confirmed; without a touch */
/* As if the watch had shown it, on node 0. */
void world_shown(struct world *w, const struct contract_object *o, bool deleted);

#endif
