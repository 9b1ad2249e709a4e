/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "base/cleanup.h"

struct line {
    const char *event;
    const char *msg;
    enum loop_level level;
};

static const struct line lines[] = {
    [FND_LOG_ACCEPT] = {"foundation_accept", "claim accepted", LOOP_INFO},
    [FND_LOG_OPEN] = {"foundation_open", "gate open, route published", LOOP_INFO},
    [FND_LOG_SHUT] = {"foundation_shut", "gate shut, may come back", LOOP_INFO},
    [FND_LOG_CLOSE] = {"foundation_close", "gate closed for good", LOOP_INFO},
    [FND_LOG_WITHDRAW] = {"foundation_withdraw", "route withdrawn", LOOP_INFO},
    [FND_LOG_CLOSED_EPOCH] = {"foundation_closed_epoch", "closedEpoch is written", LOOP_INFO},
    [FND_LOG_REFUSE] = {"foundation_refuse", "not accepted", LOOP_WARN},
    [FND_LOG_INSTANCE] = {"foundation_instance", "instance accepted", LOOP_INFO},
    [FND_LOG_ATTACHMENT] = {"foundation_attachment", "attachment changed", LOOP_INFO},
    [FND_LOG_DEVICE] = {"foundation_device", "device changed", LOOP_INFO},
    [FND_LOG_FINALIZER] = {"foundation_finalizer", "finalizer changed", LOOP_INFO},
    [FND_LOG_RENEWAL] = {"foundation_renewal", "a renewal was refused", LOOP_WARN},
    [FND_LOG_REGRESSED] = {"foundation_regressed",
                           "the API server went back: everything is shut until W is over", LOOP_ERROR},
    [FND_LOG_FULL] = {"foundation_full", "a table is full", LOOP_ERROR},
    [FND_LOG_FAILED] = {"foundation_failed", "an operation failed, trying again", LOOP_WARN},
};

void driver_log(struct driver *d, const struct fnd_fx *fx)
{
    const struct line *l = &lines[fx->log];
    char prefix[BASE_PREFIX_SIZE] = "", uuid[BASE_UUID_SIZE] = "", correlation[BASE_CORRELATION_SIZE] = "";
    const char *reason = fx->reason ? fx->reason : "";

    if (fx->obj_kind == CONTRACT_CLAIM) {
        base_prefix_text(prefix, &fx->gate.prefix);
        base_uuid_text(uuid, &fx->lease);
        base_correlation_text(correlation, &fx->correlation);
        loop_log(d->log, l->level, l->event, l->msg, LOG_STR("node", d->opt->node), LOG_STR("prefix", prefix),
                 LOG_STR("connector", fx->connector), LOG_INT("epoch", fx->gate.epoch),
                 LOG_STR("leaseUUID", uuid), LOG_STR("correlationID", correlation), LOG_STR("reason", reason),
                 LOG_STR("device", fx->gate.device),
                 LOG_INT("deadlineMs",
                         fx->log == FND_LOG_OPEN ? (fx->gate.deadline - loop_clock()) / BASE_MS : 0));
        return;
    }
    base_uuid_text(uuid, &fx->lease);
    loop_log(d->log, l->level, l->event, l->msg, LOG_STR("node", d->opt->node), LOG_STR("name", fx->name),
             LOG_INT("epoch", fx->gate.epoch), LOG_STR("device", fx->gate.device), LOG_STR("reason", reason),
             LOG_STR("processID", fx->obj_kind == CONTRACT_INSTANCE ? uuid : ""));
}

void driver_log_failure(struct driver *d, const char *what, const struct fnd_gate *g,
                        const struct base_err *err)
{
    char prefix[BASE_PREFIX_SIZE] = "";

    if (g->prefix.len)
        base_prefix_text(prefix, &g->prefix);
    loop_log(d->log, LOOP_WARN, "foundation_kernel", err->msg, LOG_STR("what", what),
             LOG_STR("prefix", prefix), LOG_STR("device", g->device));
}
