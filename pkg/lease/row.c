/* SPDX-License-Identifier: Apache-2.0 */
#include "lease/row.h"

#include "base/mutant.h"

#include <string.h>

const char *lease_op_name(enum lease_op op)
{
    switch (op) {
    case LEASE_ACQUIRE:
        return "acquire";
    case LEASE_TAKEOVER:
        return "takeover";
    case LEASE_CLOSING:
        return "closing takeover";
    case LEASE_RELEASE:
        return "release";
    }
    return "none";
}

const char *lease_reason_name(enum lease_reason r)
{
    switch (r) {
    case LEASE_OK:
        return "OK";
    case LEASE_HELD:
        return "ClaimHeld";
    case LEASE_RELEASED:
        return "ClaimReleased";
    case LEASE_ABSENT:
        return "ClaimAbsent";
    case LEASE_DELETING:
        return "ClaimDeleting";
    case LEASE_OTHER_CONNECTOR:
        return "PrefixTaken";
    case LEASE_OTHER_VPC:
        return "OtherVPC";
    case LEASE_OTHER_HOLDER:
        return "OtherHolder";
    case LEASE_OTHER_EPOCH:
        return "OtherEpoch";
    case LEASE_OTHER_LEASE:
        return "OtherLease";
    case LEASE_DENIED:
        return "TakeoverDenied";
    case LEASE_EPOCH_FULL:
        return "EpochExhausted";
    }
    return "Unknown";
}

const char *lease_outcome_name(enum lease_outcome o)
{
    switch (o) {
    case LEASE_LANDED:
        return "landed";
    case LEASE_OVER:
        return "over";
    case LEASE_MAY_LAND:
        return "may land";
    }
    return "unknown";
}

bool lease_row_over(const struct contract_claim *row)
{
    return row->spec.release_time != 0 && row->status.closed_epoch >= row->spec.epoch;
}

bool lease_row_mine(const struct contract_claim *row, const struct lease_self *me)
{
    const struct contract_holder *h = &row->spec.holder;
    return base_uuid_eq(&h->process_id, &me->process_id) && !base_uuid_is_zero(&me->process_id) &&
           base_uuid_eq(&h->instance_uid, &me->instance_uid) && h->instance_epoch == me->epoch &&
           strcmp(h->node, me->node) == 0 && base_uuid_eq(&h->boot_id, &me->boot_id);
}

static enum lease_reason decide_release(const struct lease_ask *ask, const struct contract_claim *row)
{
    if (!lease_row_mine(row, ask->me) && !base_mutant("release.holder"))
        return LEASE_OTHER_HOLDER;
    if (row->spec.epoch != ask->epoch && !base_mutant("release.epoch"))
        return LEASE_OTHER_EPOCH;
    if (!base_uuid_eq(&row->spec.lease_uuid, ask->lease_uuid) && !base_mutant("release.lease"))
        return LEASE_OTHER_LEASE;
    return row->spec.release_time != 0 ? LEASE_RELEASED : LEASE_OK;
}

enum lease_reason lease_decide(const struct lease_ask *ask, const struct contract_claim *row)
{
    if (ask->op == LEASE_ACQUIRE) {
        if (!row || base_mutant("acquire.absent"))
            return LEASE_OK;
        return row->spec.release_time != 0 ? LEASE_RELEASED : LEASE_HELD;
    }
    if (!row)
        return LEASE_ABSENT;
    if (ask->op == LEASE_RELEASE)
        return decide_release(ask, row);

    /* takeover and closing takeover */
    const struct contract_claim_spec *s = &row->spec;
    if (row->meta.deleting != 0 && !base_mutant("takeover.deleting"))
        return LEASE_DELETING;
    if (ask->target &&
        (strcmp(s->provider, ask->me->provider) != 0 || strcmp(s->tenant, ask->target->tenant) != 0 ||
         strcmp(s->connector, ask->target->connector) != 0))
        return LEASE_OTHER_CONNECTOR;
    if (s->epoch != ask->epoch && !base_mutant("takeover.epoch"))
        return LEASE_OTHER_EPOCH;
    if (s->epoch >= LEASE_EPOCH_MAX)
        return LEASE_EPOCH_FULL;
    if (ask->op == LEASE_CLOSING)
        return LEASE_OK;
    if (strcmp(s->vpc, ask->target->vpc) != 0 || !base_prefix_eq(&s->prefix, &ask->target->prefix))
        return LEASE_OTHER_VPC;
    if (ask->takeover_denied && ask->holder_live && s->release_time == 0 &&
        row->status.closed_epoch < s->epoch && !base_uuid_eq(&s->holder.process_id, &ask->me->process_id) &&
        !base_mutant("takeover.denied"))
        return LEASE_DENIED;
    return LEASE_OK;
}

static void fill_holder(struct contract_holder *h, const struct lease_self *me)
{
    *h = (struct contract_holder){.instance_uid = me->instance_uid,
                                  .instance_epoch = me->epoch,
                                  .process_id = me->process_id,
                                  .boot_id = me->boot_id};
    (void)base_copy(h->instance, sizeof h->instance, me->instance);
    (void)base_copy(h->node, sizeof h->node, me->node);
}

void lease_build_acquire(struct contract_claim *ret, const struct lease_self *me,
                         const struct lease_target *target, const struct base_uuid *lease_uuid,
                         base_wall wall, const struct base_correlation *correlation)
{
    memset(ret, 0, sizeof *ret);
    contract_claim_name(ret->meta.name, &target->prefix);
    struct contract_claim_spec *s = &ret->spec;
    (void)base_copy(s->provider, sizeof s->provider, me->provider);
    (void)base_copy(s->tenant, sizeof s->tenant, target->tenant);
    (void)base_copy(s->vpc, sizeof s->vpc, target->vpc);
    (void)base_copy(s->connector, sizeof s->connector, target->connector);
    s->prefix = target->prefix;
    s->service = *target->service;
    s->attachment = *target->attachment;
    s->epoch = 1;
    if (!base_mutant("claim-create.nonce"))
        s->lease_uuid = *lease_uuid;
    fill_holder(&s->holder, me);
    s->acquire_time = wall;
    s->lease_seconds = me->lease_seconds;
    s->max_lease_seconds = me->lease_seconds;
    s->correlation = *correlation;
}

/* What a change of holder does to any row. */
static void next_epoch(struct contract_claim *row, const struct lease_self *me,
                       const struct base_uuid *lease_uuid, base_wall wall,
                       const struct base_correlation *correlation)
{
    struct contract_claim_spec *s = &row->spec;
    struct contract_previous before = {.boot_id = s->holder.boot_id, .epoch = s->epoch};
    (void)base_copy(before.node, sizeof before.node, s->holder.node);
    bool closed = row->status.closed_epoch >= s->epoch;
    s->max_lease_seconds =
        closed || s->max_lease_seconds < me->lease_seconds || base_mutant("takeover.max-lease")
            ? me->lease_seconds
            : s->max_lease_seconds;
    s->previous = before;
    s->epoch++;
    s->lease_uuid = *lease_uuid;
    fill_holder(&s->holder, me);
    s->acquire_time = wall;
    s->release_time = 0;
    s->lease_seconds = me->lease_seconds;
    s->correlation = *correlation;
}

void lease_build_takeover(struct contract_claim *row, const struct lease_self *me,
                          const struct lease_target *target, const struct base_uuid *lease_uuid,
                          base_wall wall, const struct base_correlation *correlation)
{
    struct base_uuid old = row->spec.lease_uuid;
    next_epoch(row, me, lease_uuid, wall, correlation);
    row->spec.service = *target->service;
    row->spec.attachment = *target->attachment;
    if (base_mutant("claim-takeover.nonce"))
        row->spec.lease_uuid = old;
    if (base_mutant("claim-takeover.uid"))
        row->meta.uid = (struct base_uuid){{0}};
    if (base_mutant("claim-takeover.rv"))
        row->meta.rv[0] = '\0';
}

void lease_build_closing(struct contract_claim *row, const struct lease_self *me,
                         const struct base_uuid *lease_uuid, base_wall wall,
                         const struct base_correlation *correlation)
{
    struct base_uuid old = row->spec.lease_uuid;
    next_epoch(row, me, lease_uuid, wall, correlation);
    row->spec.release_time = wall;
    if (base_mutant("claim-closing.nonce"))
        row->spec.lease_uuid = old;
    if (base_mutant("claim-closing.uid"))
        row->meta.uid = (struct base_uuid){{0}};
    if (base_mutant("claim-closing.rv"))
        row->meta.rv[0] = '\0';
}

void lease_build_release(struct contract_claim *row, base_wall wall,
                         const struct base_correlation *correlation)
{
    row->spec.release_time = wall;
    row->spec.correlation = *correlation;
    if (base_mutant("claim-release.uid"))
        row->meta.uid = (struct base_uuid){{0}};
    if (base_mutant("claim-release.rv"))
        row->meta.rv[0] = '\0';
}

enum lease_outcome lease_outcome_of(const struct lease_attempt *a, const struct contract_claim *row)
{
    if (!row) /* a create is never settled by a 404; anything else died with the UID that it names */
        return a->op == LEASE_ACQUIRE ? LEASE_MAY_LAND : LEASE_OVER;
    bool nonce = base_uuid_eq(&row->spec.lease_uuid, &a->lease_uuid);
    if (a->op == LEASE_ACQUIRE)
        return nonce ? LEASE_LANDED : LEASE_OVER;
    if (!base_uuid_eq(&row->meta.uid, &a->uid) && !base_mutant("outcome.uid"))
        return LEASE_OVER;
    if (a->op == LEASE_RELEASE) {
        if (nonce && row->spec.epoch == a->epoch && row->spec.release_time != 0)
            return LEASE_LANDED;
    } else if (nonce && !base_mutant("outcome.nonce")) {
        return LEASE_LANDED;
    }
    return strcmp(row->meta.rv, a->rv) == 0 ? LEASE_MAY_LAND : LEASE_OVER;
}
