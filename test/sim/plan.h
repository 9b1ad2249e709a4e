/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - one run as data: its size, its rates of small faults, its actions in time order, what is expected.
 *
 * A plan is made from a seed (sim_plan_swarm) or read from a scenario file (sim_plan_read); the shrinker
 * takes things out of it. sim_plan_write gives the text form of either, so that a shrunk failure is a
 * scenario.
 */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"

#define SIM_NODES 4
#define SIM_CLIENTS 6
#define SIM_ACTIONS 64
#define SIM_EXPECTS 32

/* Everything that can go wrong. The first block happens at a rate, to requests and events; the others are
 * actions. */
enum sim_fault {
    SIM_F_NONE = 0,
    SIM_F_REQ_LOST,     /* never arrives; times out */
    SIM_F_ANS_LOST,     /* applied; times out */
    SIM_F_LATE_APPLY,   /* times out, applied later */
    SIM_F_NEVER,        /* no answer, not even a time-out */
    SIM_F_DUP_REQ,      /* arrives twice */
    SIM_F_ERR5_APPLIED, /* 5xx, applied */
    SIM_F_ERR5,         /* 5xx, not applied */
    SIM_F_ERR429,
    SIM_F_SLOW,       /* takes up to seconds */
    SIM_F_REORDER,    /* a later request of the same process was applied first */
    SIM_F_DUP_EVENT,  /* the core hears it twice */
    SIM_F_PROOF_FAIL, /* step 1 fails */
    SIM_F_AUDIT_FAIL,
    SIM_F_AUDIT_SLOW,
    SIM_F_TUN_FAIL,
    SIM_F_KERNEL_FAIL,
    SIM_F_BARRIER_LATE, /* beyond Q */
    SIM_F_RATES_END,

    SIM_F_CUT = SIM_F_RATES_END, /* no link to the API servers, both ways */
    SIM_F_CUT_UP,                /* requests do not arrive */
    SIM_F_CUT_DOWN,              /* answers and events do not */
    SIM_F_LINK_SLOW,
    SIM_F_LAG,         /* the watch cache of one API server and kind stands still */
    SIM_F_SILENT,      /* one process's streams of a kind are open and silent */
    SIM_F_BREAK,       /* streams end and start again */
    SIM_F_GONE,        /* compaction: 410, relist */
    SIM_F_FRONT_DOWN,  /* one API server restarts */
    SIM_F_API_DOWN,    /* all of them */
    SIM_F_RESTORE,     /* etcd is restored to the backup, as the contract asks for */
    SIM_F_AGENT_CRASH, /* and restarts after a while */
    SIM_F_AGENT_DRAIN, /* SIGTERM, then a new one */
    SIM_F_STOP_CONTROL,
    SIM_F_STOP_DATA,
    SIM_F_STOP_AGENT,   /* all of its threads */
    SIM_F_STOP_MIDSTEP, /* between a decision and its effects */
    SIM_F_OLD_BESIDE,   /* stopped, a new one started beside it, continued */
    SIM_F_FND_CRASH,
    SIM_F_FND_STOP,
    SIM_F_FND_MIDSTEP,
    SIM_F_FND_EMPTY,   /* restarts with an empty pinned map */
    SIM_F_NODE_PAUSE,  /* everything on it, the clock runs on */
    SIM_F_NODE_FREEZE, /* its clock stands still, too: outside the contract */
    SIM_F_REBOOT,
    SIM_F_POWER_OFF, /* until the heal phase */
    SIM_F_WALL_STEP,
    SIM_F_CLOCK_RATE,
    SIM_F_TWIN, /* a process with the same identity on another machine of that name */
    SIM_F_CLAIM_DELETE,
    SIM_F_INSTANCE_DELETE,
    SIM_F_ATTACHMENT_DELETE,
    SIM_F_BINDING_DELETE,  /* and made again */
    SIM_F_BINDING_SUSPEND, /* and resumed */
    SIM_F_SERVICE_REVOKE,  /* and a new one made */
    SIM_F_AUTHORITY_OUT,
    SIM_F_POOL_MOVE, /* the service's pool becomes another one, and the old one again */
    SIM_F_OPERATOR_DRAIN,
    SIM_F_FOREIGN_ROW,  /* somebody else's claim at the reserved prefix */
    SIM_F_LEASE_CHANGE, /* the agent restarts with another L: rolling upgrade */
    SIM_F_TAKEOVER_DENIED,
    SIM_F_MOVE,       /* a connector goes to another node */
    SIM_F_MOVE_QUIET, /* without closing its session */
    SIM_F_RECONNECT,
    SIM_F_SECOND, /* a second connection while the first is open */
    SIM_F_TRANSPORT,
    SIM_F_LEAVE, /* stays away for a while */
    SIM_FAULT_N,
};
const char *sim_fault_name(enum sim_fault f);
bool sim_fault_off(enum sim_fault f);
enum sim_fault sim_fault_of(struct base_str name); /* 0 = none */

struct sim_act {
    base_time at, span;
    enum sim_fault what;
    int node;   /* -1 = none */
    int client; /* -1 = none */
    int target; /* per action: which process (1 agent, 2 foundation, 3 both), which kind, which node */
    int64_t arg;
};

enum sim_expect_what {
    SIM_X_FORWARDING = 1, /* client forwards on node (-1: anywhere) */
    SIM_X_STOPPED,        /* client forwards nowhere */
    SIM_X_EPOCH,          /* newest epoch of the client's claim is at least arg */
    SIM_X_EPOCH_IS,
    SIM_X_GATES,  /* open gates in all kernels: arg */
    SIM_X_CLOSED, /* closedEpoch of the client's claim is at least arg */
    SIM_X_READY,  /* agent of node is ready (arg 1) or not (arg 0) */
    SIM_X_ROUTES,
    SIM_X_ROWS,     /* claims that exist: arg */
    SIM_X_REFUSALS, /* at least arg refusals of the client so far */
};
struct sim_expect {
    base_time at;
    enum sim_expect_what what;
    int node, client;
    int64_t arg;
    unsigned line;
};

struct sim_plan {
    uint64_t seed;
    int nodes, clients;
    int32_t lease_s[SIM_NODES]; /* L of each node's agents */
    int32_t grant_s, valid_s;   /* of bindings, of services */
    int64_t ppm[SIM_NODES];     /* clock rates */
    base_wall wall_off[SIM_NODES];
    uint32_t rate[SIM_F_RATES_END]; /* per million */
    int first[SIM_CLIENTS];         /* node where it starts */
    bool roams[SIM_CLIENTS];
    bool one_service;
    base_time faults_end; /* then everything heals */
    base_time end;
    base_time settle; /* the heal phase lasts at least that long */
    bool outside;     /* holds something that the contract does not cover */
    unsigned n_acts;
    struct sim_act act[SIM_ACTIONS];
    /* scenarios */
    char name[64], source[160];
    unsigned n_expects;
    struct sim_expect expect[SIM_EXPECTS];
    char violation[64]; /* expected violation: "" = none */
};
void sim_plan_swarm(struct sim_plan *ret, uint64_t seed);
int sim_plan_read(struct sim_plan *ret, struct base_str text, const char *name, struct base_err *err);
int sim_plan_write(struct base_buf *out, const struct sim_plan *p);

#endif
