/* SPDX-License-Identifier: Apache-2.0
 *
 * core.h - what the foundation decides (contract section 8), without doing any of it.
 *
 * Pure: no clock, no I/O, no logging, no memory after fnd_core_new; the same inputs give the same outputs.
 * Time comes in with each event (CLOCK_BOOTTIME, ns), wall time only for status fields and for `validUntil`.
 * The core is level triggered: an event changes what is known of a row, then every row that may be concerned
 * is looked at again and the effects say what to do next. At most one request per object is under way; gates
 * are shut without waiting for it.
 *
 * The driver's duties:
 * - executes the effects of a step in order; those with the same `op` are one group: the first that fails
 * ends the group, and the group's result comes back as one FND_EV_DONE;
 * - answers every FND_FX_GET, _STATUS and _FINALIZERS with one FND_EV_ANSWER, every _PROVE with _PROVED or
 * _NOT_PROVED, every _SCAN with _SCANNED for each claim and then one _SCAN_END;
 * - steps again with FND_EV_MORE while out->more is set, and with FND_EV_TICK at out->wake_at;
 * - before anything else, feeds what the kernel still holds: FND_EV_RECORD, _GATE, _DEVICE.
 */
#ifndef FOUNDATION_CORE_H
#define FOUNDATION_CORE_H

#include "contract/contract.h"

struct fnd_core;

struct fnd_config {
    char node[CONTRACT_NODE_SIZE];
    struct base_uuid node_uid;
    struct base_uuid boot_id;
    struct contract_timing timing;
    uint64_t seed; /* jitter */
    int32_t mtu;   /* of the devices */
    unsigned max_claims, max_instances, max_attachments, max_services;
};

/* Copies cfg. BASE_OK, BASE_ENOMEM, or BASE_EINVAL with the field's name. */
int fnd_core_new(struct fnd_core **ret, const struct fnd_config *cfg, struct base_err *err);
struct fnd_core *fnd_core_free(struct fnd_core *c);

enum fnd_coll {
    FND_HELD = 0,    /* claims whose spec.holder.node is this node */
    FND_PREVIOUS,    /* claims whose spec.previous.node is this node */
    FND_INSTANCES,   /* instances of this node */
    FND_ATTACHMENTS, /* all; those of other nodes are ignored */
    FND_SERVICES,    /* all */
};
#define FND_COLL_N 5

/* What the pinned map keeps per UID. Claims: accept record and tombstone. Instances: accept record.
 * Attachments: accept record and whether the device of that epoch was made. Services: when `valid_until` ends
 * on CLOCK_BOOTTIME. And one for the wait after the API server went back: `deadline` is its beginning,
 * `accepted` the longest lease. */
#define FND_RECORD_REGRESSED 100 /* a `kind` that no object has */
struct fnd_record {
    struct base_uuid uid;
    int32_t kind;           /* enum contract_kind; 0 = free */
    int32_t made;           /* attachments */
    int64_t accepted;       /* epoch; 0 = none */
    struct base_uuid nonce; /* leaseUUID or processID of that epoch */
    int64_t tomb;           /* claims: this epoch and all older ones never open again; 0 = none */
    int64_t valid_until;    /* services: the base_wall that was converted */
    int64_t deadline;       /* services: CLOCK_BOOTTIME */
};

/* What the pinned gate map holds for a prefix. */
struct fnd_gate {
    struct base_prefix prefix;
    char device[CONTRACT_DEVICE_SIZE];
    base_time deadline; /* 0 = shut */
    struct base_uuid uid;
    int64_t epoch;
};

enum fnd_ev {
    FND_EV_RECORD = 1, /* record: found in the pinned map at start */
    FND_EV_GATE,       /* gate: found in the pinned map at start */
    FND_EV_DEVICE,     /* device, ok: there is (start), or is no longer (any time) such an hf* interface */
    FND_EV_ROW,        /* coll, object; left: it left the collection, object has the version of that */
    FND_EV_RELIST,     /* coll, version (of the list): rows not named before LISTED have left */
    FND_EV_LISTED,     /* coll */
    FND_EV_PROVED,     /* coll, id, t0: everything written before t0 has been applied */
    FND_EV_NOT_PROVED, /* coll, id */
    FND_EV_ANSWER,     /* id, code, sent (t0), object on success: of a read or a write */
    FND_EV_DONE,       /* id (op), ok */
    FND_EV_SCANNED,    /* object: one claim of the scan */
    FND_EV_SCAN_END,   /* ok: every claim was named */
    FND_EV_REGRESSED,  /* the API server went back (an etcd restore): everything told before is void, and
                          RELIST  to LISTED of every collection follows; late answers may still come */
    FND_EV_TICK,
    FND_EV_MORE,
};

struct fnd_in {
    enum fnd_ev ev;
    base_time now;
    base_wall wall;
    enum fnd_coll coll;
    bool left, ok;
    uint64_t id;
    int code; /* enum base_code, as store_resp.code */
    base_time t0;
    base_time sent;
    const struct contract_object *object; /* borrowed for the call */
    const struct fnd_record *record;
    const struct fnd_gate *gate;
    const char *device;
    const char *version; /* NULL = not known */
};

enum fnd_fx_kind {
    FND_FX_GET = 1,    /* id, obj_kind, name: quorum read */
    FND_FX_STATUS,     /* id, object: PUT of the status subresource with uid and resourceVersion */
    FND_FX_FINALIZERS, /* id, object: PUT of the main resource, only metadata.finalizers differ */
    FND_FX_PROVE,      /* id, coll, timeout */
    FND_FX_SCAN,       /* list all claims */
    FND_FX_GATE,       /* op, gate: deadline 0 shuts the prefix on every device */
    FND_FX_RECORD,     /* op (0: no report wanted), record */
    FND_FX_FORGET,     /* record.uid */
    FND_FX_PUBLISH,  /* op, gate.prefix, gate.device, gate.epoch (MED 2^32-1-epoch), until: watchdog's limit;
                        repeated  for the same epoch it only moves `until` */
    FND_FX_WITHDRAW, /* op, gate.prefix */
    FND_FX_DEVICE_MAKE,   /* op, gate.device, mtu; the driver may take an existing, matching device for a
                             success */
    FND_FX_DEVICE_DELETE, /* op, gate.device; a missing one is a success */
    FND_FX_RELIST,        /* a row went back: start every collection over, then FND_EV_REGRESSED */
    FND_FX_LOG,           /* log, gate.*, text fields: one transition */
};

enum fnd_log {
    FND_LOG_ACCEPT = 1, /* a claim's accept has landed */
    FND_LOG_OPEN,       /* gate open and route published in the kernel */
    FND_LOG_SHUT,       /* gate zero, route withdrawn; may come back */
    FND_LOG_CLOSE,      /* gate zero, tombstone, route withdrawn: final */
    FND_LOG_WITHDRAW,
    FND_LOG_CLOSED_EPOCH, /* closedEpoch has landed */
    FND_LOG_REFUSE,       /* a claim, instance or attachment is not accepted, and why */
    FND_LOG_INSTANCE,     /* an instance epoch was accepted */
    FND_LOG_ATTACHMENT,   /* attachment accepted, ready, or not any more */
    FND_LOG_DEVICE,       /* made, deleted, lost */
    FND_LOG_FINALIZER,    /* put on or taken off */
    FND_LOG_RENEWAL,      /* a renewal was refused */
    FND_LOG_REGRESSED,    /* an object went back */
    FND_LOG_FULL,         /* a table is full */
    FND_LOG_FAILED,       /* a write was refused for good, or a kernel effect failed */
};

struct fnd_fx {
    enum fnd_fx_kind kind;
    uint64_t id;
    uint64_t op;
    enum contract_kind obj_kind;
    char name[CONTRACT_NAME_SIZE];
    enum fnd_coll coll;
    base_time timeout;
    base_time until;
    int32_t mtu;
    struct fnd_record record;
    struct fnd_gate gate;
    struct base_correlation correlation; /* of the claim; zero = none */
    enum fnd_log log;
    char connector[CONTRACT_CONNECTOR_SIZE];
    struct base_uuid lease;
    const char *reason; /* static text, CamelCase */
    unsigned object;    /* index into out->objects: STATUS, FINALIZERS */
};

#define FND_FX_MAX 96
#define FND_OBJ_MAX 24
struct fnd_out {
    unsigned n_fx, n_objects;
    bool more;
    base_time wake_at;
    struct fnd_fx fx[FND_FX_MAX];
    struct contract_object objects[FND_OBJ_MAX];
};

/* One event in, effects out. *out is overwritten. Never fails: what does not fit a table is logged and
 * refused. */
void fnd_core_step(struct fnd_core *c, const struct fnd_in *in, struct fnd_out *out);

/* Invariants, for tests and simulators: NULL, or what is wrong. */
const char *fnd_core_check(const struct fnd_core *c, base_time now);

/* What the core believes the kernel's gate of this prefix to be: deadline (0 = shut), and for which epoch. */
base_time fnd_core_gate(const struct fnd_core *c, const struct base_prefix *prefix, int64_t *ret_epoch);

/* "hf" + 8 hex digits of SHA-256 over the attachment's UID and the instance epoch. */
void fnd_device_name(char dst[CONTRACT_DEVICE_SIZE], const struct base_uuid *attachment_uid,
                     int64_t instance_epoch);

#endif
