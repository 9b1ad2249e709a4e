/* SPDX-License-Identifier: Apache-2.0 */
#include "core_int.h"

#include "base/mem.h"

/* ---- effects ---- */
struct fnd_fx *fnd_fx(struct fnd_core *c, enum fnd_fx_kind kind)
{
    struct fnd_fx *fx;

    if (c->out->n_fx >= FND_FX_MAX)
        return NULL; /* callers look at rows only while there is FND_FX_ROOM */
    fx = &c->out->fx[c->out->n_fx++];
    memset(fx, 0, sizeof *fx);
    fx->kind = kind;
    return fx;
}

static bool room(const struct fnd_core *c)
{
    return c->out->n_fx + FND_FX_ROOM <= FND_FX_MAX && c->out->n_objects + 2 <= FND_OBJ_MAX;
}

uint64_t fnd_id(struct fnd_core *c)
{
    return ++c->next_id;
}

base_time fnd_jitter(struct fnd_core *c, base_time t)
{
    if (t < 10)
        return t;
    return t - (base_time)base_prng_below(&c->prng, (uint64_t)(t / 10) + 1);
}

void fnd_wake(base_time *wake, base_time at)
{
    if (at < *wake)
        *wake = at;
}

void fnd_claim_touch(struct fnd_core *c, unsigned i)
{
    c->claim_dirty[i] = 1;
}

void fnd_touch_all(struct fnd_core *c)
{
    c->dirty = true;
    for (unsigned i = 0; i < c->cfg.max_claims; i++)
        if (c->claims[i].row.used)
            c->claim_dirty[i] = 1;
}

void fnd_cond_set(struct fnd_core *c, struct contract_cond *cond, bool value, const char *reason,
                  const char *message, int64_t generation, bool *changed)
{
    enum contract_cond_status want = value ? CONTRACT_COND_TRUE : CONTRACT_COND_FALSE;

    if (cond->status == want && strcmp(cond->reason, reason) == 0)
        return;
    if (cond->status != want)
        cond->transition = c->wall;
    cond->status = want;
    cond->observed_generation = generation;
    base_copy(cond->reason, sizeof cond->reason, reason);
    base_copy(cond->message, sizeof cond->message, message);
    *changed = true;
}

/* ---- records ---- */
static uint32_t uid_key(const struct base_uuid *u)
{
    uint32_t k;

    memcpy(&k, u->b, sizeof k);
    return k ? k : 1;
}

struct fnd_record *fnd_record_find(struct fnd_core *c, const struct base_uuid *uid)
{
    uint32_t k = uid_key(uid);

    for (unsigned i = 0; i < c->n_records; i++)
        if (c->record_key[i] == k && base_uuid_eq(&c->records[i].uid, uid))
            return &c->records[i];
    return NULL;
}

struct fnd_record *fnd_record_get(struct fnd_core *c, const struct base_uuid *uid, enum contract_kind kind)
{
    struct fnd_record *r = fnd_record_find(c, uid);

    for (unsigned i = 0; !r && i < c->n_records; i++) {
        if (c->record_key[i])
            continue;
        r = &c->records[i];
        memset(r, 0, sizeof *r);
        r->uid = *uid;
        r->kind = (int32_t)kind;
        c->record_key[i] = uid_key(uid);
    }
    if (r)
        c->record_at[r - c->records] = c->now;
    else if (!c->full_logged) {
        struct fnd_fx *fx = fnd_fx(c, FND_FX_LOG);

        if (fx) {
            fx->log = FND_LOG_FULL;
            fx->reason = "Records";
            c->full_logged = true;
        }
    }
    return r;
}

void fnd_record_emit(struct fnd_core *c, const struct fnd_record *r, uint64_t op)
{
    struct fnd_fx *fx = fnd_fx(c, FND_FX_RECORD);

    if (fx) {
        fx->op = op;
        fx->record = *r;
    }
}

void fnd_record_drop(struct fnd_core *c, const struct base_uuid *uid)
{
    struct fnd_record *r = fnd_record_find(c, uid);
    struct fnd_fx *fx;

    if (!r)
        return;
    fx = fnd_fx(c, FND_FX_FORGET);
    if (!fx)
        return;
    fx->record = *r;
    c->record_key[r - c->records] = 0;
    memset(r, 0, sizeof *r);
}

/* After a whole scan: claims that exist nowhere, and of which nothing is under way here, need no record any
 * more. */
static bool row_is(const struct fnd_row *row, const struct contract_meta *meta, const struct base_uuid *uid)
{
    return row->used && base_uuid_eq(&meta->uid, uid);
}

/* Is there anything left that this record could be about? Names are unique: an object whose name has another
 * uid by now, or nobody at all, is gone for good. */
static bool record_used(const struct fnd_core *c, const struct fnd_record *r)
{
    bool used = false;

    switch (r->kind) {
    case CONTRACT_CLAIM:
        for (unsigned i = 0; i < c->cfg.max_claims && !used; i++)
            used = row_is(&c->claims[i].row, &c->claims[i].obj.meta, &r->uid) ||
                   (c->claims[i].row.used && base_uuid_eq(&c->claims[i].kern.uid, &r->uid));
        return used;
    case CONTRACT_INSTANCE:
        for (unsigned i = 0; i < c->cfg.max_instances && !used; i++)
            used = row_is(&c->instances[i].row, &c->instances[i].obj.meta, &r->uid);
        return used || !c->coll[FND_INSTANCES].listed;
    case CONTRACT_ATTACHMENT:
        for (unsigned i = 0; i < c->cfg.max_attachments && !used; i++)
            used = row_is(&c->attachments[i].row, &c->attachments[i].obj.meta, &r->uid);
        return used || !c->coll[FND_ATTACHMENTS].listed;
    case CONTRACT_SERVICE:
        for (unsigned i = 0; i < c->cfg.max_services && !used; i++)
            used = row_is(&c->services[i].row, &c->services[i].obj.meta, &r->uid);
        return used || !c->coll[FND_SERVICES].listed;
    default: /* the wait after a regression */
        return true;
    }
}

static void scan_end(struct fnd_core *c, bool ok)
{
    bool dropped = false;

    c->scan_running = false;
    c->scan_at = base_time_add(c->now, ok ? fnd_jitter(c, c->cfg.timing.lease) : 5 * BASE_SEC);
    for (unsigned i = 0; ok && i < c->n_records; i++) {
        struct base_uuid uid = c->records[i].uid;

        if (!c->record_key[i] || c->record_seen[i] || c->record_at[i] >= c->scan_started)
            continue;
        if (!room(c) || record_used(c, &c->records[i]))
            continue;
        fnd_record_drop(c, &uid);
        dropped = true;
    }
    if (dropped) { /* whoever found the table full tries again */
        c->full_logged = false;
        fnd_touch_all(c);
    }
}

/* ---- proofs ---- */
static void proofs(struct fnd_core *c)
{
    static const enum fnd_coll which[] = {FND_HELD, FND_SERVICES};

    for (unsigned i = 0; i < BASE_LEN(which); i++) {
        struct fnd_coll_state *s = &c->coll[which[i]];
        struct fnd_fx *fx;

        if (s->running && c->now < s->give_up)
            fnd_wake(&c->wake, s->give_up);
        if (!s->listed || (s->running && c->now < s->give_up))
            continue;
        if (c->now < (s->soon ? s->not_before : s->next_at)) {
            fnd_wake(&c->wake, s->soon ? s->not_before : s->next_at);
            continue;
        }
        if (!room(c) || !(fx = fnd_fx(c, FND_FX_PROVE))) {
            c->out->more = true;
            return;
        }
        fx->coll = which[i];
        fx->id = s->proof_id = fnd_id(c);
        fx->timeout = c->cfg.timing.interval;
        s->running = true;
        s->give_up = base_time_add(c->now, 2 * c->cfg.timing.interval);
        s->soon = false;
        s->next_at = base_time_add(c->now, fnd_jitter(c, c->cfg.timing.interval));
    }
    if (c->coll[FND_HELD].listed && !c->scan_running) {
        if (c->now < c->scan_at) {
            fnd_wake(&c->wake, c->scan_at);
        } else if (fnd_fx(c, FND_FX_SCAN)) {
            c->scan_running = true;
            c->scan_started = c->now;
            memset(c->record_seen, 0, c->n_records);
        }
    }
}

static void proved(struct fnd_core *c, const struct fnd_in *in, bool yes)
{
    struct fnd_coll_state *s = &c->coll[in->coll];

    if (!s->running || s->proof_id != in->id)
        return; /* an answer to a question that nobody waits for */
    s->running = false;
    if (!yes) {
        s->not_before = s->next_at = base_time_add(c->now, fnd_jitter(c, 500 * BASE_MS));
        return;
    }
    s->t0 = base_time_max(s->t0, in->t0);
    if (in->coll == FND_HELD)
        fnd_claim_proved(c, in->coll, in->t0);
    if (in->coll == FND_SERVICES)
        fnd_service_proved(c, in->t0);
}

/* ---- the step ---- */
static void row_event(struct fnd_core *c, const struct fnd_in *in)
{
    switch (in->coll) {
    case FND_HELD:
    case FND_PREVIOUS:
        fnd_claim_row(c, in);
        break;
    case FND_INSTANCES:
        fnd_instance_row(c, in);
        break;
    case FND_ATTACHMENTS:
        fnd_attachment_row(c, in);
        break;
    case FND_SERVICES:
        fnd_service_row(c, in);
        break;
    }
}

static void each_row(struct fnd_core *c, enum fnd_coll coll,
                     void (*fn)(struct fnd_core *, struct fnd_row *, enum fnd_coll))
{
    switch (coll) {
    case FND_HELD:
    case FND_PREVIOUS:
        for (unsigned i = 0; i < c->cfg.max_claims; i++)
            fn(c, &c->claims[i].row, coll);
        break;
    case FND_INSTANCES:
        for (unsigned i = 0; i < c->cfg.max_instances; i++)
            fn(c, &c->instances[i].row, coll);
        break;
    case FND_ATTACHMENTS:
        for (unsigned i = 0; i < c->cfg.max_attachments; i++)
            fn(c, &c->attachments[i].row, coll);
        break;
    case FND_SERVICES:
        for (unsigned i = 0; i < c->cfg.max_services; i++)
            fn(c, &c->services[i].row, coll);
        break;
    }
}

static void mark_unlisted(struct fnd_core *c, struct fnd_row *r, enum fnd_coll coll)
{
    (void)c;
    if (r->used && (r->in & FND_BIT(coll)))
        r->unlisted |= FND_BIT(coll);
}

static void drop_unlisted(struct fnd_core *c, struct fnd_row *r, enum fnd_coll coll)
{
    if (!r->used || !(r->unlisted & FND_BIT(coll)))
        return;
    (void)fnd_row_left(c, r, coll, "");
    if (coll == FND_HELD || coll == FND_PREVIOUS)
        return; /* another node's claim now, or gone: reading tells */
    /* The selectors of these kinds are immutable fields: what a quorum list does not name is gone. */
    r->present = false;
    r->left = false;
    r->read = false;
}

static void listed(struct fnd_core *c, enum fnd_coll coll)
{
    each_row(c, coll, drop_unlisted);
    c->list_rv[coll][0] = '\0';
    c->coll[coll].listed = true;
    if (coll == FND_HELD || coll == FND_PREVIOUS)
        fnd_claim_listed(c, coll);
    fnd_touch_all(c);
}

static void answer(struct fnd_core *c, const struct fnd_in *in)
{
    if (fnd_claim_answer(c, in) || fnd_instance_answer(c, in) || fnd_attachment_answer(c, in))
        return;
}

static void event(struct fnd_core *c, const struct fnd_in *in)
{
    struct fnd_record *r;

    switch (in->ev) {
    case FND_EV_RECORD:
        r = fnd_record_get(c, &in->record->uid, (enum contract_kind)in->record->kind);
        if (r)
            *r = *in->record;
        fnd_regress_restore(c, in->record);
        break;
    case FND_EV_GATE: {
        char name[CONTRACT_NAME_SIZE];
        struct fnd_claim *cl;

        contract_claim_name(name, &in->gate->prefix);
        cl = fnd_claim_get(c, name);
        if (!cl)
            break;
        cl->obj.spec.prefix = in->gate->prefix;
        cl->kern.active = cl->kern.open = true;
        cl->kern.deadline = in->gate->deadline;
        cl->kern.uid = in->gate->uid;
        cl->kern.epoch = in->gate->epoch;
        base_copy(cl->kern.device, sizeof cl->kern.device, in->gate->device);
        break;
    }
    case FND_EV_DEVICE:
        fnd_device_found(c, in->device, in->ok);
        break;
    case FND_EV_ROW:
        row_event(c, in);
        break;
    case FND_EV_REGRESSED:
        fnd_regress(c);
        break;
    case FND_EV_RELIST:
        base_copy(c->list_rv[in->coll], CONTRACT_RV_SIZE, in->version ? in->version : "");
        each_row(c, in->coll, mark_unlisted);
        break;
    case FND_EV_LISTED:
        listed(c, in->coll);
        /* a full consistent list is itself a proof (contract section 5, step 4) */
        if (in->t0 > 0 && in->coll == FND_HELD)
            fnd_claim_proved(c, in->coll, in->t0);
        if (in->t0 > 0 && in->coll == FND_SERVICES)
            fnd_service_proved(c, in->t0);
        break;
    case FND_EV_PROVED:
        proved(c, in, true);
        break;
    case FND_EV_NOT_PROVED:
        proved(c, in, false);
        break;
    case FND_EV_ANSWER:
        answer(c, in);
        break;
    case FND_EV_DONE:
        if (!fnd_gate_done(c, in->id, in->ok))
            (void)fnd_device_done(c, in->id, in->ok);
        break;
    case FND_EV_SCANNED:
        r = fnd_record_find(c, &in->object->u.meta.uid);
        if (r)
            c->record_seen[r - c->records] = 1;
        if (in->object->kind == CONTRACT_CLAIM)
            fnd_claim_scanned(c, &in->object->u.claim);
        break;
    case FND_EV_SCAN_END:
        scan_end(c, in->ok);
        break;
    case FND_EV_TICK:
    case FND_EV_MORE:
        break;
    }
}

/* A row shows it: the driver has to list everything again, too. */
static void relist(struct fnd_core *c)
{
    struct fnd_fx *fx = fnd_fx(c, FND_FX_RELIST);

    if (fx)
        fx->reason = "a row shows an epoch or a version from before one that was seen";
}

void fnd_core_step(struct fnd_core *c, const struct fnd_in *in, struct fnd_out *out)
{
    base_time wake = BASE_TIME_NEVER;

    out->n_fx = 0;
    out->n_objects = 0;
    out->more = false;
    c->out = out;
    c->now = in->now;
    c->wall = in->wall;
    event(c, in);
    if (c->regress_due) {
        fnd_regress(c);
        relist(c);
    }
    if (c->regressed_at)
        fnd_regress_drive(c, &wake);

    /* Claims first: gates are shut before devices go, and devices go before an instance is accepted. Twice,
     * because what the second part learns (an instance, a device) may concern a claim. */
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < c->cfg.max_claims; i++) {
            if (!c->claim_dirty[i] && c->now < c->claim_wake[i])
                continue;
            if (!room(c)) {
                out->more = true;
                break;
            }
            c->claim_dirty[i] = 0;
            fnd_claim_eval(c, i);
        }
        if (!c->dirty && c->now < c->wake)
            break;
        if (!room(c)) {
            out->more = true;
            break;
        }
        c->dirty = false;
        c->wake = BASE_TIME_NEVER;
        fnd_device_eval(c);
        fnd_instance_eval(c);
        fnd_attachment_eval(c);
    }
    proofs(c);
    for (unsigned i = 0; i < c->cfg.max_claims; i++) {
        if (c->claim_dirty[i])
            out->more = true;
        fnd_wake(&wake, c->claim_wake[i]);
    }
    if (c->dirty)
        out->more = true;
    fnd_wake(&wake, c->wake);
    out->wake_at = wake;
    c->out = NULL;
}

/* ---- life ---- */
static int config_check(const struct fnd_config *cfg, struct base_err *err)
{
    if (!base_is_subdomain(base_str_of(cfg->node), CONTRACT_NODE_SIZE - 1))
        return base_err_set(err, BASE_EINVAL, "node: '%s' is no node name of 1 to 125 characters", cfg->node);
    if (base_uuid_is_zero(&cfg->node_uid))
        return base_err_set(err, BASE_EINVAL, "node UID: missing; give the UID of the Node object");
    if (base_uuid_is_zero(&cfg->boot_id))
        return base_err_set(err, BASE_EINVAL, "boot id: missing");
    if (cfg->mtu < 1280 || cfg->mtu > 9000)
        return base_err_set(err, BASE_EINVAL, "mtu: %d is outside 1280 to 9000", cfg->mtu);
    if (!cfg->max_claims || !cfg->max_instances || !cfg->max_attachments || !cfg->max_services)
        return base_err_set(err, BASE_EINVAL,
                            "limits: each of claims, instances, attachments, services must be above 0");
    return contract_timing_check(&cfg->timing, err);
}

int fnd_core_new(struct fnd_core **ret, const struct fnd_config *cfg, struct base_err *err)
{
    struct fnd_core *c;
    int r = config_check(cfg, err);

    if (r)
        return r;
    c = base_calloc(1, sizeof *c);
    if (!c)
        return base_err_set(err, BASE_ENOMEM, "no memory for the foundation's tables");
    c->cfg = *cfg;
    c->prng.state = cfg->seed;
    c->n_devices = 2 * cfg->max_attachments + 16;
    c->max_lease_s = (int32_t)(cfg->timing.lease / BASE_SEC);
    c->n_records =
        1 + 2 * cfg->max_claims + cfg->max_instances + 2 * cfg->max_attachments + cfg->max_services;
    c->claims = base_calloc(cfg->max_claims, sizeof *c->claims);
    c->claim_dirty = base_calloc(cfg->max_claims, sizeof *c->claim_dirty);
    c->claim_wake = base_calloc(cfg->max_claims, sizeof *c->claim_wake);
    c->instances = base_calloc(cfg->max_instances, sizeof *c->instances);
    c->attachments = base_calloc(cfg->max_attachments, sizeof *c->attachments);
    c->services = base_calloc(cfg->max_services, sizeof *c->services);
    c->devices = base_calloc(c->n_devices, sizeof *c->devices);
    c->records = base_calloc(c->n_records, sizeof *c->records);
    c->record_key = base_calloc(c->n_records, sizeof *c->record_key);
    c->record_at = base_calloc(c->n_records, sizeof *c->record_at);
    c->record_seen = base_calloc(c->n_records, sizeof *c->record_seen);
    if (!c->claims || !c->claim_dirty || !c->claim_wake || !c->instances || !c->attachments || !c->services ||
        !c->devices || !c->records || !c->record_key || !c->record_at || !c->record_seen) {
        fnd_core_free(c);
        return base_err_set(err, BASE_ENOMEM, "no memory for the foundation's tables");
    }
    for (unsigned i = 0; i < cfg->max_claims; i++)
        c->claim_wake[i] = BASE_TIME_NEVER;
    c->wake = BASE_TIME_NEVER;
    contract_finalizer(c->finalizer, &cfg->node_uid, &cfg->boot_id);
    *ret = c;
    return BASE_OK;
}

struct fnd_core *fnd_core_free(struct fnd_core *c)
{
    if (!c)
        return NULL;
    base_free(c->claims);
    base_free(c->claim_dirty);
    base_free(c->claim_wake);
    base_free(c->instances);
    base_free(c->attachments);
    base_free(c->services);
    base_free(c->devices);
    base_free(c->records);
    base_free(c->record_key);
    base_free(c->record_at);
    base_free(c->record_seen);
    return base_free(c);
}

base_time fnd_core_gate(const struct fnd_core *c, const struct base_prefix *prefix, int64_t *ret_epoch)
{
    for (unsigned i = 0; i < c->cfg.max_claims; i++) {
        const struct fnd_claim *cl = &c->claims[i];

        if (!cl->row.used || !cl->kern.active || !base_prefix_eq(&cl->obj.spec.prefix, prefix))
            continue;
        if (ret_epoch)
            *ret_epoch = cl->kern.epoch;
        return cl->kern.deadline;
    }
    return 0;
}

const char *fnd_core_check(const struct fnd_core *c, base_time now)
{
    unsigned used = 0;

    for (unsigned i = 0; i < c->cfg.max_claims; i++)
        used += c->claims[i].row.used;
    for (unsigned i = 0; i < c->cfg.max_claims && used > 0; i++) {
        const struct fnd_claim *cl = &c->claims[i];
        const struct fnd_kern *k = &cl->kern;
        unsigned others;

        if (!cl->row.used)
            continue;
        others = --used;
        if (c->regressed_at && k->active && k->deadline > now)
            return "a gate is open though the API server went back";
        if (k->op == FND_OP_NONE && k->active && k->epoch <= 0)
            return "a gate is open for no epoch";
        for (unsigned j = 0; j < c->n_records && k->active && k->op == FND_OP_NONE && k->deadline > now; j++)
            if (c->record_key[j] && base_uuid_eq(&c->records[j].uid, &k->uid) &&
                c->records[j].tomb >= k->epoch)
                return "a gate is open at or below a tombstone";
        for (unsigned j = i + 1; others > 0; j++) {
            others -= c->claims[j].row.used;
            if (c->claims[j].row.used && strcmp(c->claims[j].row.name, cl->row.name) == 0)
                return "two rows have one name";
        }
        if (k->active && k->deadline > now + 302 * BASE_SEC)
            return "a gate's deadline is further ahead than any lease";
    }
    return NULL;
}
