/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server went back, as after an etcd restore (contract section 5, "Regression"): every gate is shut,
 * every route withdrawn, every device deleted, what was known of objects is void, and for W nothing is
 * accepted, opened, confirmed or written. By then no gate is open anywhere that only the lost history knows.
 * Then accept records and tombstones are dropped, and the rows as stored are the start.
 *
 * The wait outlives this process: it stands in the pinned map as a record of its own.
 */
#include "core_int.h"

static const struct base_uuid hold_uid = {{'r', 'e', 'g', 'r', 'e', 's', 's', 'e', 'd'}};

static base_time until(const struct fnd_core *c)
{
    return base_time_add(c->regressed_at, contract_wait(&c->cfg.timing, c->max_lease_s));
}

static void keep(struct fnd_core *c)
{
    struct fnd_record *r = fnd_record_get(c, &hold_uid, (enum contract_kind)FND_RECORD_REGRESSED);

    if (!r) /* it is held in memory, then */
        return;
    r->accepted = c->max_lease_s;
    r->deadline = c->regressed_at;
    fnd_record_emit(c, r, 0);
}

void fnd_regress_restore(struct fnd_core *c, const struct fnd_record *r)
{
    if (r->kind != FND_RECORD_REGRESSED)
        return;
    c->regressed_at = r->deadline;
    fnd_regress_lease(c, (int32_t)r->accepted);
}

void fnd_regress_lease(struct fnd_core *c, int32_t max_lease_s)
{
    if (max_lease_s <= c->max_lease_s)
        return;
    c->max_lease_s = max_lease_s < 300 ? max_lease_s : 300;
    if (c->regressed_at && c->out)
        keep(c);
}

static void forget(struct fnd_row *r)
{
    r->present = r->left = r->read = false;
    r->in = r->unlisted = 0;
    r->rv[0] = r->content_rv[0] = '\0';
    r->proof = r->rv_at = r->retry_at = 0;
    r->ask = FND_ASK_NONE; /* what was asked of another history is not waited for */
    r->ask_id = r->fresh_id = 0;
    r->failures = 0;
    r->applied++;
}

void fnd_regress(struct fnd_core *c)
{
    struct fnd_fx *fx = fnd_fx(c, FND_FX_LOG);

    if (fx) {
        fx->log = FND_LOG_REGRESSED;
        fx->reason = fnd_reason_text(FND_R_REGRESSED);
    }
    c->regress_due = false;
    c->regressed_at = c->now;
    keep(c);
    for (unsigned i = 0; i < c->cfg.max_claims; i++) {
        struct fnd_claim *cl = &c->claims[i];

        forget(&cl->row);
        cl->proved = false;
        cl->first_uid = cl->first_lease = cl->closed_uid = (struct base_uuid){{0}};
        cl->first_epoch = cl->closed_here = 0;
        cl->deleting_read = 0;
        cl->refuse = FND_R_NONE;
    }
    for (unsigned i = 0; i < c->cfg.max_instances; i++) {
        forget(&c->instances[i].row);
        c->instances[i].renew_uid = (struct base_uuid){{0}};
    }
    for (unsigned i = 0; i < c->cfg.max_attachments; i++) {
        forget(&c->attachments[i].row);
        c->attachments[i].tried_uid = (struct base_uuid){{0}};
    }
    for (unsigned i = 0; i < c->cfg.max_services; i++)
        forget(&c->services[i].row);
    for (unsigned i = 0; i < FND_COLL_N; i++)
        c->coll[i] = (struct fnd_coll_state){.listed = false};
    c->scan_running = false;
    c->scan_at = 0;
    fnd_touch_all(c);
}

/* Zero and withdrawn, every device gone, as the kernel has reported; and the rows as stored are known. */
static bool may_end(const struct fnd_core *c)
{
    for (unsigned i = 0; i < FND_COLL_N; i++)
        if (!c->coll[i].listed)
            return false;
    for (unsigned i = 0; i < c->cfg.max_claims; i++)
        if (c->claims[i].row.used && (c->claims[i].kern.active || c->claims[i].kern.op != FND_OP_NONE))
            return false;
    for (unsigned i = 0; i < c->n_devices; i++)
        if (c->devices[i].name[0])
            return false;
    return true;
}

void fnd_regress_drive(struct fnd_core *c, base_time *wake)
{
    if (c->now < until(c)) {
        fnd_wake(wake, until(c));
        return;
    }
    if (!may_end(c))
        return; /* what is missing comes as an event */
    for (unsigned i = 0; i < c->n_records; i++) {
        const struct fnd_record *r = &c->records[i];
        struct base_uuid uid = r->uid;

        /* what a service's validUntil was converted to stays: that is no accept */
        if (!c->record_key[i] || r->kind == CONTRACT_SERVICE || r->kind == FND_RECORD_REGRESSED)
            continue;
        if (c->out->n_fx + FND_FX_ROOM > FND_FX_MAX) {
            c->out->more = true;
            return;
        }
        fnd_record_drop(c, &uid);
    }
    fnd_record_drop(c, &hold_uid);
    c->regressed_at = 0;
    fnd_touch_all(c);
}

/* By name, whatever the UID: an object that was made again has a version above the one before it. */
void fnd_regress_listed(struct fnd_core *c, enum fnd_coll coll, const struct fnd_row *r, const char *rv)
{
    const char *list = c->list_rv[coll];
    int newer, covered;

    if (list[0] && r->rv[0] && base_rv_cmp(r->rv, rv, &newer) == BASE_OK && newer > 0 &&
        base_rv_cmp(r->rv, list, &covered) == BASE_OK && covered <= 0)
        c->regress_due = true;
}

void fnd_regress_answer(struct fnd_core *c, const struct fnd_row *r, const char *rv, base_time sent)
{
    int older;

    if (r->rv[0] && base_rv_cmp(rv, r->rv, &older) == BASE_OK && older < 0 && sent > r->rv_at)
        c->regress_due = true;
}
