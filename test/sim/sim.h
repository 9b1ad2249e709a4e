/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.h - the world of the simulator: nodes with agents and foundations (their own cores, unchanged), the API
 * server's twin, kernels, connectors and everything that can go wrong between them.
 *
 * Pure but for memory: time is virtual, randomness comes from the plan's seed, nothing here reads a clock.
 * One event queue ordered by (time, sequence); the same plan gives the same trace with every compiler. A
 * world is made for one run (sim_world_new, sim_world_run, sim_world_free).
 *
 * Time. `base_time` without further words is absolute virtual time, which no process can see. Each node has a
 * CLOCK_BOOTTIME of its own (sim_boot) that runs at its own rate, and a wall clock with its own offset.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "authority/prefix.h"
#include "session/core.h"
#include "store/store.h"
#include "test/foundation/core.h"

#include "plan.h"

#define SIM_AGENTS 16 /* agent processes, old ones beside new ones included */
#define SIM_FLOWS 128
#define SIM_GATES 24 /* per kernel */
#define SIM_RECORDS 96
#define SIM_DEVICES 16
#define SIM_ROUTES 24
#define SIM_EPOCHS 512 /* claim epochs of one run, remembered by the observer */
#define SIM_INBOX 4096
#define SIM_FRONTS 2 /* API servers */
#define SIM_COLLS 5  /* collections of one process */
#define SIM_PROCS (SIM_AGENTS + SIM_NODES)

struct sim_world;

/* ---- clocks */
struct sim_clock { /* boot = b0 + (t - t0) * (1 + ppm / 10^6) */
    base_time t0, b0;
    int64_t ppm;
    bool frozen;        /* paused without credit: outside the contract */
    base_wall wall_off; /* of the wall clock, us */
};
base_time sim_boot(const struct sim_clock *c, base_time t);
/* The first instant at which the clock shows at least `boot`. */
base_time sim_real(const struct sim_clock *c, base_time boot);

/* ---- events */
enum sim_ev {
    SIM_EV_TICK = 1, /* a process asked to be woken */
    SIM_EV_ARRIVE,   /* a request reaches the API server */
    SIM_EV_ANSWER,   /* its answer reaches the process */
    SIM_EV_TIMEOUT,  /* the driver gives up on it */
    SIM_EV_ROW,      /* one change of a watch */
    SIM_EV_BOOKMARK,
    SIM_EV_STREAM, /* a stream is opened again */
    SIM_EV_PROOF,  /* a proof's own timers */
    SIM_EV_AUDIT,  /* a record is durable, or is not */
    SIM_EV_TUN,    /* a device was opened */
    SIM_EV_TUN_LOST,
    SIM_EV_STOPPED, /* barrier */
    SIM_EV_GAP,
    SIM_EV_ENDED,     /* the flow is gone, seen by the agent */
    SIM_EV_LATER,     /* what the driver answers itself */
    SIM_EV_REQUEST,   /* a connector's request, at the agent */
    SIM_EV_REPLY,     /* its answer, at the connector */
    SIM_EV_LOST,      /* the connector notices that its session is gone */
    SIM_EV_CLIENT,    /* the connector tries again */
    SIM_EV_ACTION,    /* one action of the plan, or its end */
    SIM_EV_AUTHORITY, /* services are moved on */
    SIM_EV_WATCHDOG,
    SIM_EV_NEWS, /* the foundation hears of a device that is gone */
    SIM_EV_HEAL,
    SIM_EV_CHECK, /* liveness */
    SIM_EV_N,
};
struct sim_req;
struct sim_slot {          /* what the order of events is made of; the event itself does not move */
    unsigned __int128 key; /* time, sequence */
    uint32_t slot;
};
struct sim_event {
    base_time at;
    uint64_t seq;
    enum sim_ev kind;
    uint32_t proc;   /* index; what is for no process has 0 */
    uint32_t serial; /* of the process that it is for: another one never sees it */
    uint64_t a, b;
    struct sim_req *req;
    struct contract_object *object;
};

/* ---- processes */
struct sim_proof {
    bool used;
    uint64_t id;
    base_time asked, deadline, give_up; /* node clock */
    uint64_t r;                         /* 0 = not known yet */
    base_time t0;
    unsigned failures;
    bool probed;
};
struct sim_coll { /* what pkg/kubestore does for one collection */
    enum contract_kind kind;
    struct store_selector sel;
    bool listing, partial, open;
    bool for_proof;
    bool over;         /* it starts over: nothing of the old streams and lists counts */
    uint64_t version;  /* applied up to */
    uint64_t sent;     /* on the way up to */
    uint64_t lists;    /* number of the last list */
    uint32_t stream;   /* number of the stream: what an older one brings is dropped */
    base_time next_at; /* order of delivery */
    base_time silent;  /* the stream is open and brings nothing until then */
    unsigned failures;
    struct sim_proof proof[4];
};
struct sim_link {                   /* one process to the API servers and back */
    base_time up_until, down_until; /* nothing passes in that direction */
    base_time slow_until, slow_by;  /* more delay */
};
enum sim_type { SIM_AGENT = 1, SIM_FOUNDATION };
struct sim_proc {
    bool alive;
    enum sim_type type;
    uint32_t index, serial;
    int node;
    int front;         /* which API server */
    base_time stopped; /* control (or the one thread of a foundation) stands still until then; 0 = runs */
    base_time data_stopped; /* agents: the data thread */
    base_time data_since;   /* when it was stopped */
    bool data_held;         /* after a gap, until control has heard of it */
    bool draining, drained;
    struct session_core *core;
    struct fnd_core *fnd;
    struct sim_coll coll[SIM_COLLS];
    uint64_t seen[CONTRACT_KIND_N]; /* highest version of the kind in this history */
    unsigned history;               /* goes up when the API server went back */
    struct sim_link link;
    base_time wake_real; /* of the tick that is in the queue */
    uint64_t wake_seq;
    bool tick_due; /* while stopped */
    struct sim_event *inbox;
    unsigned n_inbox, cap_inbox;
    /* effects that a stop in the middle of a step left undone */
    struct sim_half *half;
    bool half_wanted;
    bool half_may; /* what it works on is one event for its core: it can stop in the middle of that */
    bool late;     /* carries out what was decided before a stop */
    base_time half_until;
    uint64_t prng, draws;
    base_time audit_fails, audit_slow, tun_fails, barrier_late;
    /* for the observer */
    base_time started;
    base_time proof_t0[CONTRACT_KIND_N]; /* largest t0 that was ever handed to it */
    base_time gap_at, landed_renewal;
    bool had_instance;             /* it has held its row before */
    struct base_uuid audited[512]; /* ring: whose record is durable */
    struct sim_wait {
        uint64_t ask; /* 0 = free */
        struct base_uuid id;
    } audit_wait[128];
    unsigned n_audited;
    struct contract_timing timing;
    bool ready;
    char reason[SESSION_REASON_SIZE];
    uint8_t seed[32];
};

struct sim_gate {
    bool used;
    uint32_t device; /* incarnation */
    struct base_prefix prefix;
    base_time deadline;
    struct base_uuid uid;
    int64_t epoch;
    char name[CONTRACT_DEVICE_SIZE];
    bool final; /* the observer saw it closed for good */
    bool lost;  /* the pinned maps are gone: it works on its device, and nobody can reach it */
};
struct sim_device {
    uint32_t serial; /* incarnation; 0 = free */
    char name[CONTRACT_DEVICE_SIZE];
};
struct sim_route {
    bool used;
    struct base_prefix prefix;
    int64_t epoch;
    base_time until; /* node clock: the watchdog's limit */
    base_time since; /* since when it has stood without an open gate; 0 = it has one */
};
struct sim_node { /* one machine with its kernel */
    char name[16];
    struct base_uuid node_uid, boot_id;
    struct sim_clock clock;
    int32_t lease_s;
    struct sim_gate gate[SIM_GATES];
    struct fnd_record record[SIM_RECORDS];
    struct sim_device device[SIM_DEVICES];
    struct sim_route route[SIM_ROUTES];
    uint32_t agent;    /* index of the newest agent */
    uint32_t fnd;      /* index of the foundation */
    bool off;          /* powered off */
    bool is_twin;      /* another machine with the name of an earlier one */
    base_time renewed; /* CLOCK_BOOTTIME of the newest renewal of this boot that has landed */
    unsigned boots;
    /* the instance row of this node's name, as it really is (first machine of the name only) */
    struct base_uuid inst_uid;
    int64_t inst_epoch;
    uint32_t inst_owner; /* serial of the process that wrote it last */
    struct base_uuid inst_process;
    base_time inst_written;
    bool inst_released;
    int32_t inst_lease_s;
};

struct sim_req { /* one request at the API server */
    unsigned refs;
    uint32_t proc, serial;
    int node;
    enum sim_type type;
    uint64_t id; /* ask of the core */
    enum store_op op;
    enum contract_kind kind;
    enum { SIM_FOR_CORE = 0, SIM_FOR_STEP1, SIM_FOR_LIST, SIM_FOR_SCAN } what;
    unsigned coll;
    uint64_t proof; /* or the list's number */
    uint64_t floor,
        based_on; /* highest version seen when it was sent; that of the object it was decided on */
    unsigned history;
    char name[CONTRACT_NAME_SIZE];
    struct store_selector sel;
    struct contract_object *object;
    struct base_uuid uid;
    char rv[CONTRACT_RV_SIZE];
    base_time sent;           /* node clock */
    uint64_t order;           /* of sending, to tell reordering */
    struct base_uuid process; /* in whose name it was sent */
    bool answered;            /* the driver has told the core */
    bool lost_answer;
    /* answer */
    int code;
    uint64_t list_rv;
    size_t n_objects;
    struct contract_object *objects;
};

struct sim_flow {
    uint64_t flow; /* 0 = free */
    uint32_t proc, serial;
    int client;
    enum session_transport transport;
    bool admitted, stopping, stopped, ended, told, closed;
    base_time deadline;      /* the fence slot: 0 shut, -1 dead */
    bool burst;              /* checked before its thread was stopped */
    uint32_t tun_id, device; /* incarnation of the device */
    char device_name[CONTRACT_DEVICE_SIZE];
    struct base_prefix prefix;
    uint64_t generation;
    int64_t epoch;
    struct base_uuid uid; /* of the claim */
    bool passing;         /* as of the last look */
};
struct sim_tun {
    uint32_t proc, serial, tun_id, device;
    char name[CONTRACT_DEVICE_SIZE];
};

enum sim_client_state { SIM_CLIENT_IDLE = 0, SIM_CLIENT_ASKING, SIM_CLIENT_OPEN };
struct sim_client {
    char binding[CONTRACT_NAME_SIZE], uri[64], connector[32];
    int node; /* where it wants to be */
    enum session_transport transport;
    bool wants, roams;
    enum sim_client_state state;
    uint64_t flow;
    uint64_t try_seq;
    unsigned refusals;
    base_time revoked; /* its binding was suspended or deleted then; 0 = it stands */
    uint64_t prng;
};

/* One claim epoch, as it really was. */
struct sim_epoch {
    char name[32]; /* of the claim */
    struct base_uuid uid, lease, process, boot;
    struct base_prefix prefix;
    int client, node;
    int64_t epoch;
    base_time commit;
    base_time lost; /* when the row stopped naming it: taken over, released, deleted; 0 = it still does */
    int32_t lease_s, max_lease_s;
    base_time opened; /* since when the row said that its gate is open */
    bool released;
    bool closed; /* closedEpoch covers it */
    bool ended;  /* its row is gone for good */
    bool undone; /* a restore took it back: it never was */
};

struct sim_identity { /* a process identity and the one instance epoch that it may hold */
    struct base_uuid process, uid;
    int64_t epoch;
};

struct sim_result {
    const char *violation; /* NULL = none; static text "S1: ..." */
    char detail[400];
    base_time at;
    uint64_t hash; /* of the trace */
    uint64_t events;
    base_time span;
    unsigned takeovers, doubles, admits, handoffs;
    uint32_t fired[SIM_FAULT_N];
    struct sim_lived {    /* what one connector experienced, without times */
        uint64_t hash[4]; /* by kind: machines race each other by milliseconds, each kind has its order */
        unsigned events, lost, ended;
    } others[SIM_CLIENTS];
    base_time recovery;                 /* longest time from heal to forwarding */
    uint64_t cells[SESSION_CELL_WORDS]; /* of the agents' state x event tables: where an event came */
};

struct sim_world {
    const struct sim_plan *plan;
    base_time now, end, healed; /* healed: 0 until the faults stop */
    uint64_t seq, serials, flows, orders, uids;
    struct store_twin *twin;
    uint64_t rv;
    base_wall wall0;
    struct sim_tun tun[SIM_AGENTS * 4];
    struct sim_client client[SIM_CLIENTS];
    unsigned n_epochs, high_flow;
    int nodes; /* with twins */
    uint32_t devices;
    uint64_t prng;
    base_time lag_until[SIM_FRONTS][CONTRACT_KIND_N]; /* a watch cache that stands still */
    base_time lag_by[SIM_FRONTS][CONTRACT_KIND_N];
    base_time front_down[SIM_FRONTS];
    base_time authority_out;
    base_time all_since; /* since when every connector forwards; 0 = not all do */
    unsigned quiet_epochs;
    struct store_twin *backup;
    uint64_t applied_order; /* largest order that was applied */
    unsigned n_identities;
    bool other_pool;
    bool same_identity;    /* two machines run with one: outside of S9 */
    base_time revoked;     /* the service */
    base_time valid_until; /* the latest end of the service that ever landed, on absolute time */
    bool look;             /* something may have opened */
    bool trace;            /* write the story */
    struct base_buf story;
    struct sim_result res;
    bool stop;
    /* queue */
    struct sim_slot *heap;
    struct sim_event *events; /* by slot */
    uint32_t *free_slots;     /* those above n_heap are in use */
    size_t n_heap, cap_heap;
    /* memory */
    struct sim_block *blocks;
    void *unused[CONTRACT_KIND_N + 1];
    struct session_out out;
    struct fnd_out fout;
    struct contract_object tmp;
    /* large, and emptied between runs only as far as it was used */
    struct sim_node node[SIM_NODES];    /* nodes */
    struct sim_proc proc[SIM_PROCS];    /* those with a serial */
    struct sim_flow flow[SIM_FLOWS];    /* high_flow */
    struct sim_epoch epoch[SIM_EPOCHS]; /* n_epochs: written whole */
    struct sim_identity identity[128];  /* n_identities: written whole */
};

/* world.c */
struct sim_world *sim_world_new(void);
struct sim_world *sim_world_free(struct sim_world *w);
/* Runs one plan from a fresh world. `trace`: w->story is the story of it (until the next run). */
void sim_run(struct sim_world *w, const struct sim_plan *plan, bool trace, struct sim_result *ret);
void sim_fail(struct sim_world *w, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void sim_say(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define SIM_SAY(w, ...)                                                                                      \
    do {                                                                                                     \
        if ((w)->trace)                                                                                      \
            sim_say((w), __VA_ARGS__);                                                                       \
    } while (0)
void sim_fired(struct sim_world *w, enum sim_fault f);
base_time sim_node_now(const struct sim_world *w, int node);
base_wall sim_node_wall(const struct sim_world *w, int node);
uint64_t sim_mix(uint64_t seed, uint64_t user);
struct base_uuid sim_uuid(struct sim_world *w);
void sim_seed(struct sim_world *w, uint8_t seed[32]);

/* queue.c */
struct sim_event *sim_post(struct sim_world *w, base_time at, enum sim_ev kind, const struct sim_proc *to);
bool sim_next(struct sim_world *w, struct sim_event *ret);
void sim_clear(struct sim_world *w);
/* Objects and requests: from lists of the world, by kind. */
struct contract_object *sim_object(struct sim_world *w, const struct contract_object *src);
void sim_object_free(struct sim_world *w, struct contract_object *o);
struct sim_req *sim_req_new(struct sim_world *w);
void sim_req_drop(struct sim_world *w, struct sim_req *r);
void sim_memory_fini(struct sim_world *w);

/* api.c: requests, front ends, watches */
void sim_api_send(struct sim_world *w, struct sim_proc *p, struct sim_req *r, base_time timeout);
void sim_api_arrive(struct sim_world *w, struct sim_event *ev);
/* Somebody who is no process writes. Returns the answer's code. */
int sim_api_admin(struct sim_world *w, enum store_op op, const struct contract_object *o, const char *name);
const struct contract_object *sim_api_get(struct sim_world *w, enum contract_kind kind, const char *name);
void sim_api_changed(struct sim_world *w, enum contract_kind kind);
bool sim_link_up(const struct sim_world *w, const struct sim_proc *p);
base_time sim_delay(struct sim_world *w, struct sim_proc *p);
uint64_t sim_draw(struct sim_proc *p, uint64_t n);
bool sim_chance(struct sim_proc *p, uint32_t per_million);

/* coll.c: what kubestore does */
void sim_coll_start(struct sim_world *w, struct sim_proc *p);
/* The API server went back, as far as this process can tell: everything is listed again, in a moment. */
void sim_coll_start_over(struct sim_world *w, struct sim_proc *p);
/* An answer to a request of the core's own: its version may show that the API server went back. */
void sim_coll_look(struct sim_world *w, struct sim_proc *p, const struct sim_req *r);
void sim_coll_prove(struct sim_world *w, struct sim_proc *p, unsigned coll, uint64_t id, base_time timeout);
void sim_coll_answer(struct sim_world *w, struct sim_proc *p, struct sim_req *r);
void sim_coll_row(struct sim_world *w, struct sim_proc *p, struct sim_event *ev);
void sim_coll_bookmark(struct sim_world *w, struct sim_proc *p, struct sim_event *ev);
void sim_coll_stream(struct sim_world *w, struct sim_proc *p, struct sim_event *ev);
void sim_coll_recheck(struct sim_world *w, struct sim_proc *p);
void sim_coll_timer(struct sim_world *w, struct sim_proc *p, unsigned coll);
void sim_coll_pump(struct sim_world *w, struct sim_proc *p, unsigned coll);
void sim_coll_break(struct sim_world *w, struct sim_proc *p, unsigned coll, bool relist);

/* agent.c, found.c: drivers */
struct sim_proc *sim_agent_start(struct sim_world *w, int node, const uint8_t seed[32]);
void sim_agent_feed(struct sim_world *w, struct sim_proc *p, struct session_in *in);
void sim_agent_event(struct sim_world *w, struct sim_proc *p, struct sim_event *ev);
void sim_agent_die(struct sim_world *w, struct sim_proc *p);
void sim_agent_note(struct sim_world *w, struct sim_proc *p, unsigned coll, enum session_ev ev, bool deleted,
                    struct contract_object *o, uint64_t id, bool proved, base_time t0);
struct sim_proc *sim_found_start(struct sim_world *w, int node);
void sim_found_feed(struct sim_world *w, struct sim_proc *p, struct fnd_in *in);
void sim_found_event(struct sim_world *w, struct sim_proc *p, struct sim_event *ev);
void sim_found_die(struct sim_world *w, struct sim_proc *p);
void sim_found_note(struct sim_world *w, struct sim_proc *p, unsigned coll, enum fnd_ev ev, bool left,
                    struct contract_object *o, uint64_t id, base_time t0);
void sim_proc_event(struct sim_world *w, struct sim_event *ev);
void sim_proc_stop(struct sim_world *w, struct sim_proc *p, base_time until);
void sim_proc_resume(struct sim_world *w, struct sim_proc *p);
void sim_proc_free(struct sim_world *w, struct sim_proc *p);
void sim_wake(struct sim_world *w, struct sim_proc *p, base_time wake_at);
struct sim_proc *sim_proc_of(struct sim_world *w, uint32_t index, uint32_t serial);

/* kernel.c, data.c: gates and devices; the data thread */
void sim_kernel_boot(struct sim_world *w, int node);
void sim_kernel_start_over(struct sim_world *w, int node);
bool sim_kernel_effect(struct sim_world *w, struct sim_proc *p, const struct fnd_fx *fx);
base_time sim_gate_of(const struct sim_node *n, uint32_t device, const struct base_prefix *p,
                      const struct sim_gate **ret);
void sim_watchdog(struct sim_world *w, int node);
void sim_data_admit(struct sim_world *w, struct sim_proc *p, const struct session_fx *fx);
void sim_data_fence(struct sim_world *w, struct sim_proc *p, uint64_t flow, base_time deadline);
void sim_data_stop(struct sim_world *w, struct sim_proc *p, uint64_t flow);
void sim_data_close(struct sim_world *w, struct sim_proc *p, uint64_t flow);
void sim_data_tun_open(struct sim_world *w, struct sim_proc *p, const struct session_fx *fx);
void sim_data_tun_close(struct sim_world *w, struct sim_proc *p, uint32_t tun_id);
void sim_data_pause(struct sim_world *w, struct sim_proc *p, base_time until);
void sim_data_resume(struct sim_world *w, struct sim_proc *p);
void sim_device_gone(struct sim_world *w, int node, uint32_t device);
struct sim_flow *sim_flow_find(struct sim_world *w, uint64_t flow);
bool sim_passes(const struct sim_world *w, const struct sim_flow *f);

/* client.c */
void sim_client_start(struct sim_world *w, int i);
void sim_client_try(struct sim_world *w, struct sim_event *ev);
void sim_client_gone(struct sim_world *w, struct sim_event *ev);
void sim_client_reply(struct sim_world *w, struct sim_event *ev);
void sim_client_lost(struct sim_world *w, uint64_t flow);
void sim_client_move(struct sim_world *w, int i, int node, bool quietly, enum session_transport t);
void sim_client_again(struct sim_world *w, int i); /* a second connection while the first is open */
void sim_refuse(struct sim_world *w, struct sim_proc *p, uint64_t flow, int status, unsigned retry_after,
                const char *why);

/* action.c */
void sim_action(struct sim_world *w, unsigned index, unsigned phase);
struct sim_proc *sim_agent_of(struct sim_world *w, int node);
bool sim_claim_name(struct sim_world *w, int client, char name[CONTRACT_NAME_SIZE]);
void sim_make_service(struct sim_world *w);
void sim_heal(struct sim_world *w);
void sim_authority(struct sim_world *w);

/* pairs.c: S10; returns the number of differences */
unsigned sim_pairs(struct sim_world *a, struct sim_world *b, uint64_t count, uint64_t from);
enum sim_lived_what { SIM_LIVED_ADMIT = 0, SIM_LIVED_GATE, SIM_LIVED_EPOCH, SIM_LIVED_STOP };
void sim_lived(struct sim_world *w, int client, enum sim_lived_what what, int64_t epoch);

/* shrink.c: makes *plan as small as it gets; returns how many runs that took */
unsigned sim_shrink(struct sim_world *w, struct sim_plan *plan, const char *violation);

/* undone.c: what the observer knows after a restore */
void sim_saw_restore(struct sim_world *w);

/* cells.c: which cells of the agents' state x event tables were reached */
int sim_cells_note(
    const uint64_t cells[SESSION_CELL_WORDS]); /* adds them to the file $HOLDFAST_CELLS, if set */
int sim_cells_report(const char *path);

/* observe.c */
void sim_observe(struct sim_world *w);
void sim_saw_write(struct sim_world *w, const struct sim_req *r, enum store_op op, enum contract_kind kind,
                   const struct contract_object *now, bool gone, const char *name);
void sim_saw_request(struct sim_world *w, const struct sim_proc *p, struct sim_req *r);
void sim_saw_gate(struct sim_world *w, struct sim_proc *p, const struct fnd_gate *g, base_time before);
void sim_saw_fence(struct sim_world *w, struct sim_proc *p, const struct sim_flow *f, base_time before);
void sim_saw_admit(struct sim_world *w, struct sim_proc *p, struct sim_flow *f);
void sim_saw_publish(struct sim_world *w, struct sim_proc *p, const struct fnd_gate *g);
void sim_live_check(struct sim_world *w);
base_time sim_bound(const struct sim_world *w);
void sim_expected(struct sim_world *w, const struct sim_expect *x);
void sim_make_binding(struct sim_world *w, int i);
struct sim_epoch *sim_epoch_find(struct sim_world *w, const struct base_uuid *uid, int64_t epoch);

#endif
