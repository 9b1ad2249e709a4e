/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <stdlib.h>

struct base_uuid rig_uuid(unsigned n)
{
    uint8_t b[16] = {0};

    memcpy(b, &n, sizeof n);
    b[12] = 7;
    return base_uuid_v4(b);
}

static void bump(struct rig *r, struct contract_meta *m)
{
    base_fmt(m->rv, sizeof m->rv, "%llu", (unsigned long long)++r->rv);
}

static struct fnd_config config(const struct rig *r)
{
    struct fnd_config cfg = {.node = "edge1",
                             .node_uid = r->me_uid,
                             .boot_id = r->boot,
                             .timing = contract_timing_default(),
                             .seed = 1,
                             .mtu = 1400,
                             .max_claims = 4,
                             .max_instances = 2,
                             .max_attachments = 2,
                             .max_services = 2};
    return cfg;
}

static void queue(struct rig *r, const struct fnd_in *in, const void *obj, enum contract_kind kind,
                  size_t size)
{
    unsigned i = (r->q_head + r->q_len) % 256;

    cr_assert_lt(r->q_len, 256u);
    r->q_len++;
    r->queue[i] = *in;
    if (obj) {
        r->queue_obj[i].kind = kind;
        memcpy(&r->queue_obj[i].u, obj, size);
        r->queue[i].object = &r->queue_obj[i];
    }
}

/* ---- the watches ---- */
static void show(struct rig *r, enum fnd_coll coll, bool left, const void *obj, enum contract_kind kind,
                 size_t size)
{
    struct fnd_in in = {.ev = FND_EV_ROW, .coll = coll, .left = left};

    if (r->silent_all || (r->silent_held && coll == FND_HELD))
        return;
    queue(r, &in, obj, kind, size);
}

static bool at_node(const char *node)
{
    return strcmp(node, "edge1") == 0;
}

static void show_claim(struct rig *r, const struct contract_claim *was)
{
    const struct contract_claim *c = &r->claim;
    struct contract_claim last;

    for (int prev = 0; prev < 2; prev++) {
        enum fnd_coll coll = prev ? FND_PREVIOUS : FND_HELD;
        bool in = r->has_claim && at_node(prev ? c->spec.previous.node : c->spec.holder.node);
        bool before = was && at_node(prev ? was->spec.previous.node : was->spec.holder.node);

        if (in) {
            show(r, coll, false, c, CONTRACT_CLAIM, sizeof *c);
        } else if (before) {
            last = *was;
            memcpy(last.meta.rv, c->meta.rv, sizeof last.meta.rv);
            show(r, coll, true, &last, CONTRACT_CLAIM, sizeof last);
        }
    }
}

static struct contract_claim shown; /* what the watches showed last; one rig per test process */

void rig_claim_changed(struct rig *r)
{
    bump(r, &r->claim.meta);
    if (r->has_claim && r->claim.meta.deleting && r->claim.meta.n_finalizers == 0)
        r->has_claim = false;
    show_claim(r, &shown);
    shown = r->claim;
}

void rig_claim_gone(struct rig *r)
{
    r->has_claim = false;
    bump(r, &r->claim.meta);
    show_claim(r, &shown);
    rig_settle(r);
}

void rig_inst_changed(struct rig *r)
{
    bump(r, &r->inst.meta);
    show(r, FND_INSTANCES, false, &r->inst, CONTRACT_INSTANCE, sizeof r->inst);
}

void rig_inst_gone(struct rig *r)
{
    r->has_inst = false;
    bump(r, &r->inst.meta);
    show(r, FND_INSTANCES, true, &r->inst, CONTRACT_INSTANCE, sizeof r->inst);
}

void rig_att_changed(struct rig *r)
{
    bump(r, &r->att.meta);
    show(r, FND_ATTACHMENTS, false, &r->att, CONTRACT_ATTACHMENT, sizeof r->att);
}

void rig_svc_changed(struct rig *r)
{
    bump(r, &r->svc.meta);
    show(r, FND_SERVICES, false, &r->svc, CONTRACT_SERVICE, sizeof r->svc);
}

void rig_svc_gone(struct rig *r)
{
    r->has_svc = false;
    bump(r, &r->svc.meta);
    show(r, FND_SERVICES, true, &r->svc, CONTRACT_SERVICE, sizeof r->svc);
}

/* ---- the world ---- */
static void make_world(struct rig *r)
{
    r->has_inst = r->has_att = r->has_svc = true;
    base_copy(r->inst.meta.name, sizeof r->inst.meta.name, "masque.edge1");
    r->inst.meta.uid = rig_uuid(100);
    base_copy(r->inst.spec.provider, sizeof r->inst.spec.provider, "masque");
    base_copy(r->inst.spec.node, sizeof r->inst.spec.node, "edge1");
    r->inst.spec.node_uid = r->me_uid;
    r->inst.spec.process_id = r->process;
    r->inst.spec.epoch = 1;
    r->inst.spec.lease_seconds = RIG_L;
    r->inst.spec.renew.boot_id = r->boot;
    r->inst.spec.renew.boot_time_us = r->now / BASE_US;
    r->inst.spec.renew.time = r->wall;

    base_copy(r->att.meta.name, sizeof r->att.meta.name, "masque.edge1.vpc-a");
    r->att.meta.uid = rig_uuid(200);
    base_copy(r->att.spec.instance.name, sizeof r->att.spec.instance.name, "masque.edge1");
    r->att.spec.instance.uid = r->inst.meta.uid;
    r->att.spec.instance_epoch = 1;
    base_copy(r->att.spec.vpc, sizeof r->att.spec.vpc, "vpc-a");

    base_copy(r->svc.meta.name, sizeof r->svc.meta.name, "web");
    r->svc.meta.uid = rig_uuid(300);
    base_copy(r->svc.provider, sizeof r->svc.provider, "masque");
    base_copy(r->svc.tenant, sizeof r->svc.tenant, "acme");
    base_copy(r->svc.vpc, sizeof r->svc.vpc, "vpc-a");
    base_prefix_parse(&r->svc.pool, BASE_STR("fd12:0:0:1::/64"));
    r->svc.valid_until = r->wall + 300 * 1000000LL;
    bump(r, &r->inst.meta);
    bump(r, &r->att.meta);
    bump(r, &r->svc.meta);
}

void rig_init(struct rig *r)
{
    struct fnd_config cfg;
    struct base_err err;

    memset(r, 0, sizeof *r);
    memset(&shown, 0, sizeof shown);
    r->now = 1000 * BASE_SEC;
    r->wall = 1790000000LL * 1000000;
    r->me_uid = rig_uuid(1);
    r->boot = rig_uuid(2);
    r->other_boot = rig_uuid(3);
    r->process = rig_uuid(4);
    r->other_process = rig_uuid(5);
    r->out = calloc(1, sizeof *r->out);
    r->trace = calloc(RIG_TRACE, sizeof *r->trace);
    make_world(r);
    cfg = config(r);
    cr_assert_eq(fnd_core_new(&r->core, &cfg, &err), BASE_OK, "%s", err.msg);
}

void rig_fini(struct rig *r)
{
    fnd_core_free(r->core);
    free(r->out);
    free(r->trace);
}

/* Was the record of trace[i] dropped later? */
static bool forgotten(const struct rig *r, unsigned i)
{
    const struct base_uuid *uid = &r->trace[i].fx.record.uid;

    for (i++; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == FND_FX_FORGET && base_uuid_eq(&r->trace[i].fx.record.uid, uid))
            return true;
    return false;
}

void rig_restart(struct rig *r)
{
    struct fnd_config cfg = config(r);
    struct fnd_in in;

    fnd_core_free(r->core);
    r->q_len = r->n_held = r->n_slow = 0;
    memset(r->open_proof, 0, sizeof r->open_proof);
    cr_assert_eq(fnd_core_new(&r->core, &cfg, NULL), BASE_OK);
    if (!base_uuid_is_zero(&r->record.uid)) {
        in = (struct fnd_in){.ev = FND_EV_RECORD, .record = &r->record};
        rig_feed(r, &in);
    }
    /* instance and attachment records */
    for (unsigned i = 0; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == FND_FX_RECORD && r->trace[i].fx.record.kind != CONTRACT_CLAIM &&
            !forgotten(r, i)) {
            in = (struct fnd_in){.ev = FND_EV_RECORD, .record = &r->trace[i].fx.record};
            rig_feed(r, &in);
        }
    for (unsigned i = 0; i < r->n_devices; i++) {
        in = (struct fnd_in){.ev = FND_EV_DEVICE, .device = r->devices[i], .ok = true};
        rig_feed(r, &in);
    }
    if (r->gate) {
        struct fnd_gate g = {.deadline = r->gate, .epoch = r->gate_epoch, .uid = r->record.uid};

        base_prefix_parse(&g.prefix, BASE_STR(RIG_PREFIX));
        base_copy(g.device, sizeof g.device, r->n_devices ? r->devices[0] : "");
        in = (struct fnd_in){.ev = FND_EV_GATE, .gate = &g};
        rig_feed(r, &in);
    }
}

/* ---- effects ---- */
static void kernel(struct rig *r, const struct fnd_fx *fx)
{
    switch (fx->kind) {
    case FND_FX_GATE:
        r->gate = fx->gate.deadline;
        r->gate_epoch = fx->gate.deadline ? fx->gate.epoch : 0;
        break;
    case FND_FX_RECORD:
        if (fx->record.kind == CONTRACT_CLAIM)
            r->record = fx->record;
        break;
    case FND_FX_PUBLISH:
        r->route_epoch = fx->gate.epoch;
        break;
    case FND_FX_WITHDRAW:
        r->route_epoch = 0;
        break;
    case FND_FX_DEVICE_MAKE:
        cr_assert_lt(r->n_devices, 8u);
        base_copy(r->devices[r->n_devices++], CONTRACT_DEVICE_SIZE, fx->gate.device);
        r->made++;
        break;
    case FND_FX_DEVICE_DELETE:
        for (unsigned i = 0; i < r->n_devices; i++)
            if (strcmp(r->devices[i], fx->gate.device) == 0)
                memcpy(r->devices[i], r->devices[--r->n_devices], CONTRACT_DEVICE_SIZE);
        r->deleted++;
        break;
    case FND_FX_GET:
    case FND_FX_STATUS:
    case FND_FX_FINALIZERS:
    case FND_FX_PROVE:
    case FND_FX_SCAN:
    case FND_FX_FORGET:
        if (base_uuid_eq(&r->record.uid, &fx->record.uid))
            memset(&r->record, 0, sizeof r->record);
        break;
    case FND_FX_RELIST:
    case FND_FX_LOG:
        break;
    }
}

static void answer(struct rig *r, uint64_t id, int code, const void *obj, enum contract_kind kind,
                   size_t size)
{
    struct fnd_in in = {.ev = FND_EV_ANSWER, .id = id, .code = code, .sent = r->now};

    queue(r, &in, code == BASE_OK ? obj : NULL, kind, size);
}

struct stored {
    void *obj;
    size_t size;
    bool there;
};

static struct stored stored(struct rig *r, enum contract_kind kind, const char *name)
{
    if (kind == CONTRACT_CLAIM)
        return (struct stored){&r->claim, sizeof r->claim,
                               r->has_claim && strcmp(name, r->claim.meta.name) == 0};
    if (kind == CONTRACT_INSTANCE)
        return (struct stored){&r->inst, sizeof r->inst, r->has_inst && strcmp(name, r->inst.meta.name) == 0};
    if (kind == CONTRACT_ATTACHMENT)
        return (struct stored){&r->att, sizeof r->att, r->has_att && strcmp(name, r->att.meta.name) == 0};
    return (struct stored){&r->svc, sizeof r->svc, r->has_svc && strcmp(name, r->svc.meta.name) == 0};
}

static void changed(struct rig *r, enum contract_kind kind)
{
    if (kind == CONTRACT_CLAIM)
        rig_claim_changed(r);
    else if (kind == CONTRACT_INSTANCE)
        rig_inst_changed(r);
    else
        rig_att_changed(r);
}

/* The API server, with the rules that matter here: preconditions, and status apart from the rest. */
static void server(struct rig *r, const struct rig_seen *s, enum rig_reply how)
{
    struct stored o = stored(r, s->fx.obj_kind, s->fx.name);
    const struct contract_meta *m = &s->object.u.meta, *now = o.obj;
    bool quiet = r->silent_all;
    struct base_err err;
    struct contract_object old, next;

    if (s->fx.kind == FND_FX_GET) {
        if (how != RIG_OK)
            answer(r, s->fx.id, BASE_ETIMEDOUT, NULL, s->fx.obj_kind, 0);
        else
            answer(r, s->fx.id, o.there ? BASE_OK : BASE_ENOTFOUND, o.obj, s->fx.obj_kind, o.size);
        return;
    }
    if (how == RIG_LOST) {
        answer(r, s->fx.id, BASE_EUNKNOWN, NULL, s->fx.obj_kind, 0);
        return;
    }
    if (!o.there || how == RIG_CONFLICT || !base_uuid_eq(&m->uid, &now->uid) || strcmp(m->rv, now->rv) != 0) {
        answer(r, s->fx.id, o.there ? BASE_ECONFLICT : BASE_ENOTFOUND, NULL, s->fx.obj_kind, 0);
        return;
    }
    old.kind = s->fx.obj_kind;
    memcpy(&old.u, o.obj, o.size);
    next = s->object;
    cr_assert(r->no_rules || contract_validate(&next, &old, &err) == BASE_OK, "the API server refuses: %s",
              err.msg);
    if (s->fx.kind == FND_FX_STATUS && s->fx.obj_kind == CONTRACT_CLAIM)
        r->claim.status = s->object.u.claim.status;
    else if (s->fx.kind == FND_FX_STATUS && s->fx.obj_kind == CONTRACT_INSTANCE)
        r->inst.status = s->object.u.instance.status;
    else if (s->fx.kind == FND_FX_STATUS)
        r->att.status = s->object.u.attachment.status;
    else
        r->claim.meta = s->object.u.claim.meta;
    if (how == RIG_LANDED_LOST) {
        r->silent_all = true;
        changed(r, s->fx.obj_kind);
        r->silent_all = quiet;
        answer(r, s->fx.id, BASE_EUNKNOWN, NULL, s->fx.obj_kind, 0);
        return;
    }
    changed(r, s->fx.obj_kind);
    answer(r, s->fx.id, BASE_OK, stored(r, s->fx.obj_kind, s->fx.name).obj, s->fx.obj_kind, o.size);
}

static void queue_lists(struct rig *r);
static void effect(struct rig *r, const struct fnd_fx *fx)
{
    struct rig_seen *s = &r->trace[r->n_trace];
    enum rig_reply how;
    struct fnd_in in;

    cr_assert_lt(r->n_trace, (unsigned)RIG_TRACE);
    r->n_trace++;
    s->fx = *fx;
    s->at = r->now;
    if (fx->kind == FND_FX_STATUS || fx->kind == FND_FX_FINALIZERS)
        s->object = r->out->objects[fx->object];
    switch (fx->kind) {
    case FND_FX_GET:
    case FND_FX_STATUS:
    case FND_FX_FINALIZERS:
        how = fx->kind == FND_FX_GET ? r->reads : r->writes;
        if (how != RIG_HOLD) {
            server(r, s, how);
        } else {
            cr_assert_lt(r->n_held, 16u);
            r->held[r->n_held++] = *s;
        }
        break;
    case FND_FX_PROVE:
        r->open_proof[fx->coll] = fx->id;
        r->proof_t0[fx->coll] = r->now;
        if (!r->no_proofs)
            rig_proof(r, fx->coll);
        break;
    case FND_FX_SCAN:
        if (r->has_claim) {
            in = (struct fnd_in){.ev = FND_EV_SCANNED};
            queue(r, &in, &r->claim, CONTRACT_CLAIM, sizeof r->claim);
        }
        in = (struct fnd_in){.ev = FND_EV_SCAN_END, .ok = true};
        queue(r, &in, NULL, CONTRACT_CLAIM, 0);
        break;
    case FND_FX_GATE:
    case FND_FX_RECORD:
    case FND_FX_PUBLISH:
    case FND_FX_WITHDRAW:
    case FND_FX_DEVICE_MAKE:
    case FND_FX_DEVICE_DELETE:
    case FND_FX_FORGET:
        if (!r->kernel_fails)
            kernel(r, fx);
        break;
    case FND_FX_RELIST:
        r->relists++;
        in = (struct fnd_in){.ev = FND_EV_REGRESSED};
        queue(r, &in, NULL, CONTRACT_CLAIM, 0);
        queue_lists(r);
        break;
    case FND_FX_LOG:
        break;
    }
}

static void groups(struct rig *r)
{
    uint64_t op = 0;

    for (unsigned i = 0; i <= r->out->n_fx; i++) {
        uint64_t this = i < r->out->n_fx ? r->out->fx[i].op : 0;

        if (op && this != op) {
            if (r->kernel_slow) {
                cr_assert_lt(r->n_slow, 64u);
                r->slow_op[r->n_slow++] = op;
            } else {
                struct fnd_in in = {.ev = FND_EV_DONE, .id = op, .ok = !r->kernel_fails};

                queue(r, &in, NULL, CONTRACT_CLAIM, 0);
            }
        }
        op = this;
    }
}

void rig_kernel_done(struct rig *r)
{
    for (unsigned i = 0; i < r->n_slow; i++) {
        struct fnd_in in = {.ev = FND_EV_DONE, .id = r->slow_op[i], .ok = true};

        queue(r, &in, NULL, CONTRACT_CLAIM, 0);
    }
    r->n_slow = 0;
    rig_settle(r);
}

void rig_feed(struct rig *r, struct fnd_in *in)
{
    const char *wrong;

    do {
        in->now = r->now;
        in->wall = r->wall;
        fnd_core_step(r->core, in, r->out);
        for (unsigned i = 0; i < r->out->n_fx; i++)
            effect(r, &r->out->fx[i]);
        groups(r);
        in->ev = FND_EV_MORE;
    } while (r->out->more);
    wrong = fnd_core_check(r->core, r->now);
    cr_assert_null(wrong, "%s", wrong);
}

void rig_settle(struct rig *r)
{
    for (unsigned n = 0; r->q_len; n++) {
        struct fnd_in in = r->queue[r->q_head];

        cr_assert_lt(n, 4000u, "it never comes to rest");
        rig_feed(r, &in);
        r->q_head = (r->q_head + 1) % 256;
        r->q_len--;
    }
}

void rig_release(struct rig *r, enum rig_reply how)
{
    struct rig_seen s = r->held[0];

    cr_assert_gt(r->n_held, 0u, "nothing is held");
    memmove(&r->held[0], &r->held[1], --r->n_held * sizeof r->held[0]);
    server(r, &s, how);
    rig_settle(r);
}

void rig_proof(struct rig *r, enum fnd_coll coll)
{
    struct fnd_in in = {.ev = r->bad_proofs ? FND_EV_NOT_PROVED : FND_EV_PROVED,
                        .coll = coll,
                        .id = r->open_proof[coll],
                        .t0 = r->proof_t0[coll]};

    queue(r, &in, NULL, CONTRACT_CLAIM, 0);
}

static void queue_lists(struct rig *r)
{
    for (unsigned i = 0; i < FND_COLL_N; i++) {
        struct fnd_in in = {.ev = FND_EV_RELIST, .coll = (enum fnd_coll)i};

        queue(r, &in, NULL, CONTRACT_CLAIM, 0);
        if (i == FND_HELD && r->has_claim && at_node(r->claim.spec.holder.node))
            show(r, FND_HELD, false, &r->claim, CONTRACT_CLAIM, sizeof r->claim);
        if (i == FND_PREVIOUS && r->has_claim && at_node(r->claim.spec.previous.node))
            show(r, FND_PREVIOUS, false, &r->claim, CONTRACT_CLAIM, sizeof r->claim);
        if (i == FND_INSTANCES && r->has_inst)
            show(r, FND_INSTANCES, false, &r->inst, CONTRACT_INSTANCE, sizeof r->inst);
        if (i == FND_ATTACHMENTS && r->has_att)
            show(r, FND_ATTACHMENTS, false, &r->att, CONTRACT_ATTACHMENT, sizeof r->att);
        if (i == FND_SERVICES && r->has_svc)
            show(r, FND_SERVICES, false, &r->svc, CONTRACT_SERVICE, sizeof r->svc);
        in.ev = FND_EV_LISTED;
        queue(r, &in, NULL, CONTRACT_CLAIM, 0);
    }
}

void rig_list(struct rig *r)
{
    queue_lists(r);
    rig_settle(r);
}

void rig_regress(struct rig *r)
{
    struct fnd_in in = {.ev = FND_EV_REGRESSED};

    queue(r, &in, NULL, CONTRACT_CLAIM, 0);
    rig_list(r);
}

void rig_run(struct rig *r, base_time by, bool renewing)
{
    base_time end = r->now + by, next_renew = r->now + 10 * BASE_SEC;

    rig_settle(r);
    while (r->now < end) {
        base_time to = base_time_min(end, base_time_max(r->out->wake_at, r->now + BASE_MS));
        struct fnd_in in = {.ev = FND_EV_TICK};

        if (renewing)
            to = base_time_min(to, next_renew);
        r->wall += (to - r->now) / BASE_US;
        r->now = to;
        if (renewing && r->now >= next_renew) {
            next_renew += 10 * BASE_SEC;
            rig_renew(r);
            r->svc.valid_until = r->wall + 300 * 1000000LL;
            rig_svc_changed(r);
        }
        rig_feed(r, &in);
        rig_settle(r);
    }
}

/* ---- others ---- */
void rig_claim_created(struct rig *r, int64_t epoch)
{
    struct contract_claim *c = &r->claim;

    memset(c, 0, sizeof *c);
    r->has_claim = true;
    cr_assert_eq(base_prefix_parse(&c->spec.prefix, BASE_STR(RIG_PREFIX)), BASE_OK);
    contract_claim_name(c->meta.name, &c->spec.prefix);
    c->meta.uid = rig_uuid(400);
    c->meta.created = r->wall;
    base_copy(c->spec.provider, sizeof c->spec.provider, "masque");
    base_copy(c->spec.tenant, sizeof c->spec.tenant, "acme");
    base_copy(c->spec.vpc, sizeof c->spec.vpc, "vpc-a");
    base_copy(c->spec.connector, sizeof c->spec.connector, "site-1");
    base_copy(c->spec.service.name, sizeof c->spec.service.name, "web");
    c->spec.service.uid = r->svc.meta.uid;
    base_copy(c->spec.attachment.name, sizeof c->spec.attachment.name, r->att.meta.name);
    c->spec.attachment.uid = r->att.meta.uid;
    c->spec.lease_uuid = rig_uuid(1000 + (unsigned)epoch);
    c->spec.epoch = epoch;
    base_copy(c->spec.holder.instance, sizeof c->spec.holder.instance, "masque.edge1");
    c->spec.holder.instance_uid = r->inst.meta.uid;
    c->spec.holder.instance_epoch = r->inst.spec.epoch;
    c->spec.holder.process_id = r->inst.spec.process_id;
    base_copy(c->spec.holder.node, sizeof c->spec.holder.node, "edge1");
    c->spec.holder.boot_id = r->boot;
    if (epoch > 1) {
        base_copy(c->spec.previous.node, sizeof c->spec.previous.node, "edge2");
        c->spec.previous.boot_id = r->boot;
        c->spec.previous.epoch = epoch - 1;
    }
    c->spec.acquire_time = r->wall;
    c->spec.lease_seconds = c->spec.max_lease_seconds = RIG_L;
    c->spec.correlation.b[0] = 1;
}

void rig_taken_over(struct rig *r, const char *node)
{
    struct contract_claim_spec *s = &r->claim.spec;

    base_copy(s->previous.node, sizeof s->previous.node, s->holder.node);
    s->previous.boot_id = s->holder.boot_id;
    s->previous.epoch = s->epoch;
    s->epoch++;
    s->lease_uuid = rig_uuid(1000 + (unsigned)s->epoch);
    s->release_time = 0;
    base_copy(s->holder.node, sizeof s->holder.node, node);
    base_fmt(s->holder.instance, sizeof s->holder.instance, "masque.%s", node);
    if (at_node(node)) {
        s->holder.instance_uid = r->inst.meta.uid;
        s->holder.instance_epoch = r->inst.spec.epoch;
        s->holder.process_id = r->inst.spec.process_id;
        s->attachment.uid = r->att.meta.uid;
    } else {
        s->holder.instance_uid = rig_uuid(700);
        s->holder.instance_epoch = 1;
        s->holder.process_id = r->other_process;
    }
    s->holder.boot_id = r->boot;
    rig_claim_changed(r);
}

void rig_renew(struct rig *r)
{
    r->inst.spec.renew.boot_time_us = r->now / BASE_US;
    r->inst.spec.renew.time = r->wall;
    rig_inst_changed(r);
}

void rig_new_process(struct rig *r)
{
    r->inst.spec.epoch++;
    r->inst.spec.process_id = rig_uuid(50 + (unsigned)r->inst.spec.epoch);
    r->inst.spec.renew.boot_time_us = r->now / BASE_US;
    r->inst.spec.renew.time = r->wall;
    rig_inst_changed(r);
}

void rig_open(struct rig *r)
{
    rig_init(r);
    rig_list(r);
    rig_claim_created(r, 1);
    rig_claim_changed(r);
    rig_settle(r);
    cr_assert(rig_is_open(r), "the claim did not open");
}

/* ---- trace ---- */
int rig_find(const struct rig *r, enum fnd_fx_kind kind, unsigned from)
{
    for (unsigned i = from; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == kind)
            return (int)i;
    return -1;
}

unsigned rig_count(const struct rig *r, enum fnd_fx_kind kind, unsigned from)
{
    unsigned n = 0;

    for (unsigned i = from; i < r->n_trace; i++)
        n += r->trace[i].fx.kind == kind;
    return n;
}

int rig_status(const struct rig *r, unsigned from)
{
    for (unsigned i = from; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == FND_FX_STATUS && r->trace[i].fx.obj_kind == CONTRACT_CLAIM)
            return (int)i;
    return -1;
}

int rig_log(const struct rig *r, enum fnd_log log, unsigned from)
{
    for (unsigned i = from; i < r->n_trace; i++)
        if (r->trace[i].fx.kind == FND_FX_LOG && r->trace[i].fx.log == log)
            return (int)i;
    return -1;
}

bool rig_is_open(const struct rig *r)
{
    return r->gate > r->now && r->gate_epoch == r->claim.spec.epoch && r->route_epoch == r->claim.spec.epoch;
}
