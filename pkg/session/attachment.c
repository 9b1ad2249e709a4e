/* SPDX-License-Identifier: Apache-2.0
 *
 * session/attachment.c - one HostAttachment for each VPC of this provider's services, and the foundation's
 * device in it.
 *
 * Level-triggered: session_att_settle looks at the row, the instance and the device and does the one thing
 * that is missing. NONE -> WRITING (create, or update to this instance epoch, or delete of another
 * instance's or a later epoch's) -> ACCEPTING (the foundation) -> OPENING (the device) -> READY; RETRY after
 * a failure. A device
 * belongs to one instance epoch: when the instance ends, the descriptor is closed and nothing of it is used
 * again.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

const char *session_att_state_name(enum att_state s)
{
    static const char *const names[ATT_STATE_N] = {"None",    "Writing", "Accepting",
                                                   "Opening", "Ready",   "Retry"};
    return names[s];
}

static void set_state(struct session_core *c, struct session_attachment *a, enum att_state to, const char *by,
                      const char *reason)
{
    if (a->state == to)
        return;
    bool was_ready = a->state == ATT_READY;
    session_trace(c, "attachment", a->name, session_att_state_name(a->state), session_att_state_name(to), by,
                  reason, c->inst.me.epoch, NULL, to == ATT_RETRY);
    a->state = to;
    if (was_ready || to == ATT_READY)
        session_all_dirty(c);
}

void session_att_wake(struct session_core *c, struct session_attachment *a)
{
    base_time at = BASE_TIME_NEVER;
    if (a->ask != 0)
        at = a->ask_by;
    else if (a->state == ATT_RETRY || a->state == ATT_ACCEPTING)
        at = a->retry_at;
    session_timer_set(&c->timers, session_entity_att(c, a), at);
}

void session_att_need(struct session_core *c)
{
    for (uint32_t k = 0; k < c->cfg.max_services; k++) {
        const struct session_service *s = &c->svc[k];
        if (!s->used || strcmp(s->s.provider, c->cfg.provider) != 0)
            continue;
        struct session_attachment *a = NULL;
        struct session_attachment *room = NULL;
        for (uint32_t i = 0; i < c->cfg.max_attachments; i++) {
            if (!c->att[i].used)
                room = room ? room : &c->att[i];
            else if (strcmp(c->att[i].vpc, s->s.vpc) == 0)
                a = &c->att[i];
        }
        if (a) {
            a->needed = true;
            session_dirty(c, session_entity_att(c, a));
            continue;
        }
        char name[CONTRACT_NAME_SIZE];
        if (!room ||
            contract_attachment_name(name, c->cfg.provider, c->cfg.node, s->s.vpc, NULL) != BASE_OK) {
            session_trace(c, "attachment", s->s.vpc, "None", "None", "service",
                          room ? "BadName" : "TooManyVPCs", 0, NULL, true);
            continue;
        }
        *room = (struct session_attachment){.used = true, .needed = true};
        (void)base_copy(room->vpc, sizeof room->vpc, s->s.vpc);
        (void)base_copy(room->name, sizeof room->name, name);
        session_dirty(c, session_entity_att(c, room));
    }
}

struct session_attachment *session_att_of(struct session_core *c, struct session_conn *n)
{
    if (n->att < c->cfg.max_attachments && strcmp(c->att[n->att].vpc, n->b.vpc) == 0)
        return &c->att[n->att];
    for (uint32_t i = 0; i < c->cfg.max_attachments; i++) {
        if (c->att[i].used && strcmp(c->att[i].vpc, n->b.vpc) == 0) {
            n->att = i;
            return &c->att[i];
        }
    }
    return NULL;
}

static bool row_ready(const struct session_core *c, const struct session_attachment *a)
{
    const struct contract_attachment *r = &a->row;
    return a->have_row && base_uuid_eq(&r->spec.instance.uid, &c->inst.me.instance_uid) &&
           r->spec.instance_epoch == c->inst.me.epoch &&
           r->status.accepted_instance_epoch == c->inst.me.epoch && c->inst.me.epoch > 0 &&
           (r->status.ready.status == CONTRACT_COND_TRUE || base_mutant("condition-6.ready")) &&
           r->meta.deleting == 0 && r->status.device[0] != '\0';
}

/* The foundation says that the device of this very epoch is gone for good. */
static bool device_lost(const struct session_core *c, const struct session_attachment *a)
{
    const struct contract_attachment *r = &a->row;
    return r->status.accepted_instance_epoch == c->inst.me.epoch &&
           r->status.ready.status == CONTRACT_COND_FALSE && strcmp(r->status.ready.reason, "DeviceLost") == 0;
}

bool session_att_ready(const struct session_core *c, const struct session_attachment *a)
{
    return row_ready(c, a) && a->tun_open && strcmp(a->device, a->row.status.device) == 0;
}

bool session_att_has_tun(const struct session_core *c, uint32_t tun_id)
{
    for (uint32_t i = 0; i < c->cfg.max_attachments; i++)
        if (c->att[i].used && c->att[i].tun_id == tun_id && tun_id != 0 &&
            c->att[i].identity == c->inst.serial) /* else it is of an identity that has ended */
            return true;
    return false;
}

static void tun_close(struct session_core *c, struct session_attachment *a)
{
    if (a->tun_id != 0)
        session_fx(c, SESSION_FX_TUN_CLOSE)->u.tun.tun_id = a->tun_id;
    a->tun_id = 0;
    a->tun_open = false;
}

static void ask_row(struct session_core *c, struct session_attachment *a)
{
    a->ask = session_get(c, session_entity_att(c, a), CONTRACT_ATTACHMENT, a->name, NULL);
    a->ask_by = base_time_add(c->now, SESSION_READ_WAIT);
}

/* The row of another instance object: its uid is immutable, so the attachment has to go before this one's
 * comes. */
static bool of_another(const struct session_core *c, const struct session_attachment *a)
{
    return a->have_row && !base_uuid_eq(&a->row.spec.instance.uid, &c->inst.me.instance_uid);
}

/* For an epoch of this instance that is above this process's: a successor's, or one of a history that is gone (a
 * write that landed late after an etcd restore). The epoch in it never goes back, so that it has to go, too. */
static bool of_later_epoch(const struct session_core *c, const struct session_attachment *a)
{
    return a->have_row && !of_another(c, a) && a->row.spec.instance_epoch > c->inst.me.epoch &&
           !base_mutant("attachment.later-epoch");
}

/* A successor takes the instance first: a renewal that was sent after the row was seen, and landed, says that
 * there is none. */
static bool may_be_a_successors(const struct session_core *c, const struct session_attachment *a)
{
    return of_later_epoch(c, a) && c->inst.renewed <= a->row_at && !base_mutant("attachment.successor");
}

static void write_row(struct session_core *c, struct session_attachment *a)
{
    struct contract_object *o;
    uint32_t me = session_entity_att(c, a);
    if (of_another(c, a) || of_later_epoch(c, a)) {
        if (a->displaced == 0)
            a->displaced = 1;
        a->ask = session_write(c, me, SESSION_FX_DELETE, CONTRACT_ATTACHMENT, NULL, false, &o);
        o->u.attachment = a->row;
        (void)base_copy(c->out->fx[c->out->n_fx - 1].u.store.name, CONTRACT_NAME_SIZE, a->name);
        if (base_mutant("attachment-delete.uid"))
            o->u.meta.uid = (struct base_uuid){{0}};
        if (base_mutant("attachment-delete.rv"))
            o->u.meta.rv[0] = '\0';
    } else if (a->have_row) {
        a->ask = session_write(c, me, SESSION_FX_UPDATE, CONTRACT_ATTACHMENT, NULL, false, &o);
        o->u.attachment = a->row;
        o->u.attachment.spec.instance_epoch = c->inst.me.epoch;
        if (base_mutant("attachment-update.uid"))
            o->u.meta.uid = (struct base_uuid){{0}};
        if (base_mutant("attachment-update.rv"))
            o->u.meta.rv[0] = '\0';
    } else {
        a->ask = session_write(c, me, SESSION_FX_CREATE, CONTRACT_ATTACHMENT, NULL, false, &o);
        struct contract_attachment *r = &o->u.attachment;
        (void)base_copy(r->meta.name, sizeof r->meta.name, a->name);
        (void)base_copy(r->spec.instance.name, sizeof r->spec.instance.name, c->inst.name);
        r->spec.instance.uid = c->inst.me.instance_uid;
        r->spec.instance_epoch = c->inst.me.epoch;
        (void)base_copy(r->spec.vpc, sizeof r->spec.vpc, a->vpc);
    }
    a->ask_by = base_time_add(c->now, SESSION_WRITE_WAIT);
    set_state(c, a, ATT_WRITING, "settle", NULL);
}

/* The foundation's turn. Read again now and then: what is known may be an answer that came after the row was
 * deleted again, unseen by the watch. */
static void await_foundation(struct session_core *c, struct session_attachment *a, const char *reason)
{
    if (a->state == ATT_ACCEPTING && c->now >= a->retry_at && !base_mutant("attachment.reread"))
        ask_row(c, a);
    if (a->state != ATT_ACCEPTING || a->ask != 0)
        a->retry_at = base_time_add(c->now, SESSION_READ_WAIT);
    set_state(c, a, ATT_ACCEPTING, "settle", reason);
}

static void retry(struct session_core *c, struct session_attachment *a, const char *reason, base_time pause)
{
    a->retry_at = base_time_add(c->now, pause);
    set_state(c, a, ATT_RETRY, "answer", reason);
}

/* Another process of this node's name took the row away and made its own, again: until one of the two learns
 * that its instance is not its own any more, each would undo the other's as fast as the API server answers.
 */
static bool contested(const struct session_core *c, const struct session_attachment *a)
{
    return a->displaced > 0 && a->state != ATT_RETRY && of_another(c, a) &&
           !base_mutant("attachment.contested");
}

void session_att_settle(struct session_core *c, struct session_attachment *a)
{
    assert(a->used);
    if (a->ask != 0 && c->now >= a->ask_by)
        ask_row(c, a); /* lost: what does the row say? */
    if (a->identity != c->inst.serial) {
        tun_close(c, a); /* of an identity that has ended */
        a->ask = 0;
        a->displaced = 0;
        a->reread = false;
        a->identity = c->inst.serial;
    }
    if (c->inst.state != INST_HELD) {
        tun_close(c, a);
        a->ask = 0;
        set_state(c, a, ATT_NONE, "instance", session_reason_of(c->inst.why).name);
    } else if (a->ask != 0 || !c->listed[CONTRACT_ATTACHMENT]) {
        /* an answer is on its way */
    } else if (a->state == ATT_RETRY && c->now < a->retry_at) {
        /* pause */
    } else if (!a->have_row || of_another(c, a) || a->row.spec.instance_epoch != c->inst.me.epoch) {
        tun_close(c, a);
        if (!a->needed)
            set_state(c, a, ATT_NONE, "settle", "NoService");
        else if (a->have_row && a->row.meta.deleting != 0)
            await_foundation(c, a, "Deleting"); /* until it is gone */
        else if (contested(c, a))
            retry(c, a, "Contested", session_backoff(c, a->displaced++));
        else if (may_be_a_successors(c, a))
            retry(c, a, "LaterEpoch", SESSION_RETRY_MAX); /* until the next renewal has landed, or not */
        else
            write_row(c, a);
    } else if (device_lost(c, a)) {
        set_state(c, a, ATT_NONE, "settle", a->row.status.ready.reason);
        session_inst_event(c, INST_EV_LOST, NULL); /* an accepted epoch never gets a second device */
    } else if (a->reread) {
        /* A device that cannot be opened may be one that is gone, with its row, unseen by the watch: an
         * answer came after the deletion had been shown. */
        a->reread = false;
        ask_row(c, a);
    } else if (!row_ready(c, a)) {
        await_foundation(c, a, a->row.status.ready.reason);
    } else if (a->tun_id != 0 && strcmp(a->device, a->row.status.device) != 0) {
        tun_close(c, a);
        session_dirty(c, session_entity_att(c, a));
    } else if (a->tun_id == 0) {
        struct session_fx *fx = session_fx(c, SESSION_FX_TUN_OPEN);
        a->tun_id = fx->u.tun.tun_id = ++c->tun_ids;
        a->tun_open = false;
        (void)base_copy(a->device, sizeof a->device, a->row.status.device);
        (void)base_copy(fx->u.tun.device, sizeof fx->u.tun.device, a->device);
        fx->u.tun.mtu = a->row.status.mtu;
        set_state(c, a, ATT_OPENING, "settle", NULL);
    } else {
        set_state(c, a, a->tun_open ? ATT_READY : ATT_OPENING, "settle", NULL);
    }
    session_att_wake(c, a);
}

static void apply(struct session_core *c, struct session_attachment *a, const struct contract_attachment *row)
{
    if (a->have_row && base_uuid_eq(&a->row.meta.uid, &row->meta.uid) &&
        session_version_below(row->meta.rv, a->row.meta.rv))
        return;
    if (!a->have_row || strcmp(a->row.meta.rv, row->meta.rv) != 0)
        a->row_at = c->now;
    a->row = *row;
    a->have_row = true;
}

void session_att_answer(struct session_core *c, struct session_attachment *a, const struct session_answer *an)
{
    if (an->ask != a->ask)
        return; /* late */
    a->ask = 0;
    if (an->code == BASE_OK && an->n_objects > 0) {
        a->tries = 0;
        if (a->have_row)
            session_regress_answer(c, a->row.meta.rv, a->row_at, an->objects[0].u.meta.rv, an->sent);
        apply(c, a, &an->objects[0].u.attachment);
    } else if (an->code == BASE_OK || an->code == BASE_ENOTFOUND) { /* deleted */
        a->have_row = false;
    } else if (an->code == BASE_EDENIED || an->code == BASE_EINVAL) {
        retry(c, a, "Refused", 2 * BASE_SEC);
    } else if (an->code == BASE_EEXIST || an->code == BASE_ECONFLICT || an->code == BASE_EUNKNOWN) {
        ask_row(c, a);
    } else {
        retry(c, a, "APIUnavailable", session_backoff(c, a->tries++));
    }
    session_dirty(c, session_entity_att(c, a));
    session_att_wake(c, a);
}

static struct session_attachment *by_name(struct session_core *c, const char *name)
{
    for (uint32_t i = 0; i < c->cfg.max_attachments; i++)
        if (c->att[i].used && strcmp(c->att[i].name, name) == 0)
            return &c->att[i];
    return NULL;
}

void session_att_row(struct session_core *c, const struct contract_attachment *row, bool deleted)
{
    struct session_attachment *a = by_name(c, row->meta.name);
    if (!a) {
        /* Rows may be listed before the services that need them: remembered under their VPC. */
        struct session_attachment *room = NULL;
        char name[CONTRACT_NAME_SIZE];
        if (deleted ||
            contract_attachment_name(name, c->cfg.provider, c->cfg.node, row->spec.vpc, NULL) != BASE_OK ||
            strcmp(name, row->meta.name) != 0)
            return;
        for (uint32_t i = 0; i < c->cfg.max_attachments && !room; i++)
            if (!c->att[i].used)
                room = &c->att[i];
        if (!room)
            return;
        *room = (struct session_attachment){.used = true};
        (void)base_copy(room->vpc, sizeof room->vpc, row->spec.vpc);
        (void)base_copy(room->name, sizeof room->name, name);
        a = room;
    }
    a->seen = a->in_cache = !deleted;
    if (deleted) {
        bool any = base_uuid_is_zero(&row->meta.uid) && !base_mutant("row.unreadable"); /* as in catalog.c */
        if (!a->have_row || (!any && !base_uuid_eq(&a->row.meta.uid, &row->meta.uid)) ||
            session_version_below(row->meta.rv, a->row.meta.rv))
            return;
        a->have_row = false;
    } else {
        if (a->have_row)
            session_regress_listed(c, CONTRACT_ATTACHMENT, a->row.meta.rv, row->meta.rv);
        apply(c, a, row);
    }
    session_all_dirty(c);
    session_dirty(c, session_entity_att(c, a));
}

void session_att_relist(struct session_core *c)
{
    for (uint32_t i = 0; i < c->cfg.max_attachments; i++)
        c->att[i].seen = false;
}

void session_att_listed(struct session_core *c)
{
    for (uint32_t i = 0; i < c->cfg.max_attachments; i++) {
        struct session_attachment *a = &c->att[i];
        if (a->used && a->in_cache && !a->seen)
            a->have_row = a->in_cache = false;
        if (a->used)
            session_dirty(c, session_entity_att(c, a));
    }
    session_all_dirty(c);
}

void session_att_tun(struct session_core *c, uint32_t tun_id, int code)
{
    for (uint32_t i = 0; i < c->cfg.max_attachments; i++) {
        struct session_attachment *a = &c->att[i];
        if (!a->used || a->tun_id == 0 || a->tun_id != tun_id)
            continue;
        if (code == BASE_OK) {
            a->tun_open = true;
            a->tries = 0;
        } else {
            a->tun_id = 0;
            a->tun_open = false;
            retry(c, a, code == BASE_EDENIED ? "TunDenied" : "TunUnavailable",
                  session_backoff(c, a->tries++));
            a->reread = !base_mutant("attachment.reread-tun");
        }
        session_dirty(c, session_entity_att(c, a));
        session_att_wake(c, a);
        return;
    }
    /* a device that was given up meanwhile: its TUN_CLOSE is behind it in the same order */
}

void session_att_forget(struct session_core *c)
{
    for (uint32_t i = 0; i < c->cfg.max_attachments; i++) {
        struct session_attachment *a = &c->att[i];
        a->have_row = a->in_cache = false;
        a->ask = 0; /* what is on its way was asked of another history */
        if (a->used)
            session_dirty(c, session_entity_att(c, a));
    }
}

void session_att_down(struct session_core *c)
{
    for (uint32_t i = 0; i < c->cfg.max_attachments; i++)
        if (c->att[i].used)
            session_dirty(c, session_entity_att(
                                 c, &c->att[i])); /* the instance is not held: settle closes the device */
}
