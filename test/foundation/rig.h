/* SPDX-License-Identifier: Apache-2.0
 *
 * rig.h - one foundation core on node edge1 with a small world around it: an API server that holds one object
 * of each kind, and a kernel. Tests turn the knobs, edit objects as others would, and read the trace of
 * effects.
 */
#ifndef FOUNDATION_RIG_H
#define FOUNDATION_RIG_H

#include "core.h"

#include "base/cleanup.h"

#include <criterion/criterion.h>

#define RIG_TRACE 2048
#define RIG_L 30 /* seconds */
#define RIG_PREFIX "fd12::1:0:5:0:0/96"

enum rig_reply {
    RIG_OK = 0,      /* writes land, the watch shows them, the answer comes */
    RIG_HOLD,        /* nothing is executed and nothing answered: rig_release does both */
    RIG_CONFLICT,    /* 409, not landed */
    RIG_LANDED_LOST, /* landed, the watch is silent, the answer says "unknown" */
    RIG_LOST,        /* not landed, "unknown" */
};

struct rig_seen {
    struct fnd_fx fx;
    struct contract_object object;
    base_time at;
};

struct rig {
    struct fnd_core *core;
    struct fnd_out *out;
    base_time now;
    base_wall wall;
    uint64_t rv;
    struct base_uuid me_uid, boot, other_boot, process, other_process;
    /* the API server */
    struct contract_claim claim;
    struct contract_instance inst;
    struct contract_attachment att;
    struct contract_service svc;
    bool has_claim, has_inst, has_att, has_svc;
    bool silent_held, silent_all; /* watches bring nothing */
    enum rig_reply writes, reads;
    bool no_rules;   /* the API server stores what the CRDs would refuse */
    bool no_proofs;  /* proofs are left unanswered */
    bool bad_proofs; /* proofs fail */
    uint64_t open_proof[FND_COLL_N];
    base_time proof_t0[FND_COLL_N];
    /* the kernel */
    base_time gate;
    int64_t gate_epoch, route_epoch; /* route_epoch 0: withdrawn */
    char devices[8][CONTRACT_DEVICE_SIZE];
    unsigned n_devices, made, deleted, relists;
    struct fnd_record record;       /* of the claim's uid */
    bool kernel_fails, kernel_slow; /* slow: groups are not reported until rig_kernel_done */
    uint64_t slow_op[64];
    unsigned n_slow;
    /* what is to come */
    struct fnd_in queue[256];
    struct contract_object queue_obj[256];
    unsigned q_head, q_len;
    struct rig_seen held[16];
    unsigned n_held;
    /* what was seen */
    struct rig_seen *trace;
    unsigned n_trace;
};

/* Instance (epoch 1, renewed now), attachment, service: all there; no claim. Nothing fed yet. */
void rig_init(struct rig *r);
void rig_fini(struct rig *r);
/* A new core on the same world: what is pinned in the kernel is fed to it. */
void rig_restart(struct rig *r);
/* Lists every collection, then runs until nothing happens any more (time stands still). */
void rig_list(struct rig *r);
void rig_settle(struct rig *r);
/* The driver says that the API server went back, and lists again. */
void rig_regress(struct rig *r);
/* Moves time on in steps to the core's own wake-ups and proofs. The agent renews every 10 s when `renewing`. */
void rig_run(struct rig *r, base_time by, bool renewing);
/* rig_init, rig_list, and a claim of epoch 1 that is open. */
void rig_open(struct rig *r);

/* Edits by others: change the object, then call. Bumps its version and feeds the watches. */
void rig_claim_changed(struct rig *r);
void rig_claim_created(struct rig *r, int64_t epoch); /* a legal claim of this node's process at that epoch */
void rig_claim_gone(struct rig *r);
void rig_taken_over(struct rig *r, const char *node); /* epoch + 1, holder there; edge1 = this node again */
void rig_inst_changed(struct rig *r);
void rig_inst_gone(struct rig *r);
void rig_att_changed(struct rig *r);
void rig_svc_changed(struct rig *r);
void rig_svc_gone(struct rig *r);
void rig_renew(struct rig *r);
void rig_new_process(struct rig *r);               /* instance epoch + 1; the attachment is not changed yet */
void rig_proof(struct rig *r, enum fnd_coll coll); /* answers an open proof, or the next one at once */
void rig_feed(struct rig *r, struct fnd_in *in);
void rig_release(struct rig *r, enum rig_reply how); /* executes the oldest held request */
void rig_kernel_done(struct rig *r);

/* Trace. Index of the first effect of that kind at or after `from`, or -1. */
int rig_find(const struct rig *r, enum fnd_fx_kind kind, unsigned from);
unsigned rig_count(const struct rig *r, enum fnd_fx_kind kind, unsigned from);
int rig_status(const struct rig *r, unsigned from); /* first status write of the claim */
int rig_log(const struct rig *r, enum fnd_log log, unsigned from);
bool rig_is_open(const struct rig *r);
struct base_uuid rig_uuid(unsigned n);

#endif
