/* SPDX-License-Identifier: Apache-2.0
 *
 * lease/row.h - decisions on one row: may it be acquired, taken over, released; what is written; did it land?
 *
 * Pure: no clock, no I/O, no logging; times are arguments. Nothing here keeps a pointer. Functions that
 * decide return an enum lease_reason (LEASE_OK = go on); functions that build write the whole next object
 * into memory of the caller. Source: contract sections 1, 2 (RouteClaim, ProviderInstance) and 4 (write
 * rules).
 */
#ifndef LEASE_ROW_H
#define LEASE_ROW_H

#include "contract/contract.h"

/* Largest epoch: integers stay exact in a JSON double. */
#define LEASE_EPOCH_MAX ((int64_t)9007199254740991)

/* The live process: what it writes into a row that it holds. */
struct lease_self {
    char provider[CONTRACT_LABEL_SIZE];
    char node[CONTRACT_NODE_SIZE];
    char instance[CONTRACT_CONNECTOR_SIZE]; /* <provider>.<node> */
    struct base_uuid node_uid;
    struct base_uuid boot_id;
    struct base_uuid process_id;
    struct base_uuid instance_uid; /* zero before the instance exists */
    int64_t epoch;                 /* of the instance; 0 before it is held */
    int32_t lease_seconds;
};

/* Whose claim it is to be. Borrowed strings. */
struct lease_target {
    const char *tenant, *connector, *vpc;
    struct base_prefix prefix;
    const struct contract_ref *service, *attachment;
};

enum lease_op { LEASE_ACQUIRE = 1, LEASE_TAKEOVER, LEASE_CLOSING, LEASE_RELEASE };
const char *lease_op_name(enum lease_op op);

enum lease_reason {
    LEASE_OK = 0,
    LEASE_HELD,            /* acquire: the row is held: the way is takeover with the observed epoch */
    LEASE_RELEASED,        /* acquire: the row is released: the same; release: it is released already */
    LEASE_ABSENT,          /* no such row */
    LEASE_DELETING,        /* nobody takes over a row that is being deleted */
    LEASE_OTHER_CONNECTOR, /* the prefix belongs to another provider, tenant or connector */
    LEASE_OTHER_VPC,       /* this connector's row, in another VPC */
    LEASE_OTHER_HOLDER,    /* release: another process holds it */
    LEASE_OTHER_EPOCH,     /* the row's epoch is not the observed one */
    LEASE_OTHER_LEASE,     /* release: same epoch, another leaseUUID */
    LEASE_DENIED,          /* the binding denies takeover while the holder lives */
    LEASE_EPOCH_FULL,      /* the epoch cannot go up any more */
};
const char *lease_reason_name(enum lease_reason r);

struct lease_ask {
    enum lease_op op;
    const struct lease_self *me;
    const struct lease_target *target; /* acquire, takeover */
    int64_t epoch; /* the epoch that was observed (takeover, closing) or is held (release) */
    const struct base_uuid *lease_uuid; /* release */
    bool takeover_denied;               /* the binding's `takeover: Denied` */
    bool holder_live; /* with takeover_denied: the holder's instance row, same process, was renewed
                         within W on this clock */
};
/* `row` is the fresh read, NULL when there is no object. */
enum lease_reason lease_decide(const struct lease_ask *ask, const struct contract_claim *row);

/* True when epoch and everything older is over: released and closed (contract section 3, step 1). */
bool lease_row_over(const struct contract_claim *row);
/* True when the row's holder is this very process. */
bool lease_row_mine(const struct contract_claim *row, const struct lease_self *me);

/* ---- building the next object */
void lease_build_acquire(struct contract_claim *ret, const struct lease_self *me,
                         const struct lease_target *target, const struct base_uuid *lease_uuid,
                         base_wall wall, const struct base_correlation *correlation);
/* *row is the fresh read and becomes what is written: its uid, resourceVersion, finalizers and status stay. */
void lease_build_takeover(struct contract_claim *row, const struct lease_self *me,
                          const struct lease_target *target, const struct base_uuid *lease_uuid,
                          base_wall wall, const struct base_correlation *correlation);
/* Takes over and releases in one write; serviceRef and attachmentRef stay. */
void lease_build_closing(struct contract_claim *row, const struct lease_self *me,
                         const struct base_uuid *lease_uuid, base_wall wall,
                         const struct base_correlation *correlation);
void lease_build_release(struct contract_claim *row, base_wall wall,
                         const struct base_correlation *correlation);

/* The instance row. `boot_us` is CLOCK_BOOTTIME in microseconds, read before the write is sent. */
void lease_build_instance(struct contract_instance *ret, const struct lease_self *me, int64_t boot_us,
                          base_wall wall);
/* *row is the fresh read; the new epoch is row's + 1. */
void lease_build_instance_takeover(struct contract_instance *row, const struct lease_self *me,
                                   int64_t boot_us, base_wall wall);
void lease_build_renewal(struct contract_instance *row, int64_t boot_us, base_wall wall, bool draining);
void lease_build_instance_release(struct contract_instance *row, int64_t boot_us, base_wall wall);

/* ---- outcome of a write whose answer was lost */
enum lease_outcome {
    LEASE_LANDED = 1, /* our nonce is there: with the deadline of that attempt's send */
    LEASE_OVER,       /* it did not land and cannot any more, or is over */
    LEASE_MAY_LAND, /* nothing has moved: a later write on the same resourceVersion (a new POST) settles it */
};
const char *lease_outcome_name(enum lease_outcome o);

struct lease_attempt { /* one write of a claim */
    enum lease_op op;
    struct base_uuid uid; /* the row it was decided on; zero for acquire */
    char rv[CONTRACT_RV_SIZE];
    struct base_uuid lease_uuid; /* the nonce; release: the lease that is released */
    int64_t epoch;               /* release: the epoch that is released; else the one that it was seen to have
                                    landed with, 0 = not seen */
    base_time sent;              /* CLOCK_BOOTTIME before it was sent */
};
/* `row` is what a read after the loss showed, NULL for 404. */
enum lease_outcome lease_outcome_of(const struct lease_attempt *a, const struct contract_claim *row);

struct lease_instance_attempt { /* create, takeover, renewal or release of an instance */
    struct base_uuid uid;       /* zero for a create */
    char rv[CONTRACT_RV_SIZE];
    struct base_uuid process_id; /* nonce: process id and boot time */
    int64_t boot_us;
};
enum lease_outcome lease_instance_outcome(const struct lease_instance_attempt *a,
                                          const struct contract_instance *row);

#endif
