/* SPDX-License-Identifier: Apache-2.0 */
#include "session/fake_test.h"

#include "base/mem.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATENCY (4 * BASE_MS)

struct w_msg {
    struct w_msg *next;
    base_time at;
    uint64_t seq;
    int node;
    uint64_t serial; /* of the agent it is for */
    struct session_in in;
    size_t n;
    struct contract_object *objects;
};
static uint64_t serials[W_NODES];

/* The linker puts this in the place of base_sha256 (TLD_session in the Makefile). */
bool world_digest_fails;
int __real_base_sha256(uint8_t ret[BASE_SHA256_SIZE], const void *a, size_t an, const void *b, size_t bn);
int __wrap_base_sha256(uint8_t ret[BASE_SHA256_SIZE], const void *a, size_t an, const void *b, size_t bn);
int __wrap_base_sha256(uint8_t ret[BASE_SHA256_SIZE], const void *a, size_t an, const void *b, size_t bn)
{
    return world_digest_fails ? BASE_ENOMEM : __real_base_sha256(ret, a, an, b, bn);
}
static void start_over(struct world *w, int node);

/* ---- time and messages */
static struct w_msg *post(struct world *w, int node, base_time at, const struct session_in *in,
                          const struct contract_object *objects, size_t n)
{
    struct w_msg *m = calloc(1, sizeof *m);
    m->at = at;
    m->seq = ++w->seq;
    m->node = node;
    m->serial = serials[node];
    m->in = *in;
    m->n = n;
    if (n > 0) {
        m->objects = malloc(n * sizeof *objects);
        memcpy(m->objects, objects, n * sizeof *objects);
    }
    struct w_msg **p = &w->msgs;
    while (*p && ((*p)->at < at || ((*p)->at == at && (*p)->seq < m->seq)))
        p = &(*p)->next;
    m->next = *p;
    *p = m;
    return m;
}

static void drop(struct w_msg *m)
{
    free(m->objects);
    free(m);
}

struct base_uuid world_uuid(struct world *w)
{
    uint8_t b[16] = {0xaa};
    uint64_t n = ++w->uids;
    memcpy(b + 9, &n, 7); /* bits of b[8] say that it is a UUID */
    return base_uuid_v4(b);
}

/* ---- the store */
struct contract_object *world_get(struct world *w, const char *name)
{
    for (size_t i = 0; i < w->n_obj; i++)
        if (strcmp(w->obj[i].u.meta.name, name) == 0)
            return &w->obj[i];
    return NULL;
}

struct contract_claim *world_claim(struct world *w, const char *name)
{
    struct contract_object *o = world_get(w, name);
    return o ? &o->u.claim : NULL;
}

static bool selected(const struct w_node *n, const struct contract_object *o)
{
    switch (o->kind) {
    case CONTRACT_INSTANCE:
        return strcmp(o->u.instance.spec.node, n->name) == 0;
    case CONTRACT_ATTACHMENT:
        return strncmp(o->u.attachment.spec.instance.name, "masque.", 7) == 0 &&
               strcmp(o->u.attachment.spec.instance.name + 7, n->name) == 0;
    case CONTRACT_CLAIM:
        return strcmp(o->u.claim.spec.holder.node, n->name) == 0;
    case CONTRACT_SERVICE:
    case CONTRACT_BINDING:
        break;
    }
    return true;
}

static void notify(struct world *w, const struct contract_object *before, const struct contract_object *after)
{
    for (int i = 0; i < W_NODES; i++) {
        struct w_node *n = &w->node[i];
        const struct contract_object *o = after ? after : before;
        if (!n->used || !n->agent_alive || n->watch_silent[o->kind] || n->cut)
            continue;
        bool was = before && selected(n, before);
        bool is = after && selected(n, after);
        if (!was && !is)
            continue;
        struct session_in in = {.ev = SESSION_EV_ROW};
        struct contract_object c = is ? *after : *before;
        if (!is)
            base_fmt(c.u.meta.rv, sizeof c.u.meta.rv, "%llu", (unsigned long long)w->rv);
        in.u.row.kind = o->kind;
        in.u.row.deleted = !is;
        post(w, i, w->now + 2 * BASE_MS, &in, &c, 1);
    }
}

static void stamp(struct world *w, struct contract_object *o)
{
    base_fmt(o->u.meta.rv, sizeof o->u.meta.rv, "%llu", (unsigned long long)++w->rv);
}

void world_touch(struct world *w, struct contract_object *o)
{
    stamp(w, o);
    notify(w, o, o);
}

struct contract_object *world_put(struct world *w, const struct contract_object *o)
{
    cr_assert_lt(w->n_obj, W_OBJECTS);
    struct contract_object *p = &w->obj[w->n_obj++];
    *p = *o;
    if (base_uuid_is_zero(&p->u.meta.uid))
        p->u.meta.uid = world_uuid(w);
    p->u.meta.created = w->wall0 + w->now / BASE_US;
    stamp(w, p);
    notify(w, NULL, p);
    return p;
}

void world_delete(struct world *w, const char *name)
{
    struct contract_object *o = world_get(w, name);
    cr_assert_not_null(o, "%s", name);
    struct contract_object gone = *o;
    *o = w->obj[--w->n_obj];
    w->rv++;
    notify(w, &gone, NULL);
}

/* One write as the API server does it. */
static int apply(struct world *w, enum session_fx_kind kind, const struct contract_object *o,
                 struct contract_object *ret)
{
    struct base_err err = {0};
    struct contract_object *old = world_get(w, o->u.meta.name);
    if (kind == SESSION_FX_CREATE) {
        if (old)
            return BASE_EEXIST;
        int rc = contract_validate(o, NULL, &err);
        cr_assert_eq(rc, BASE_OK, "create of %s: %s", o->u.meta.name, err.msg);
        *ret = *world_put(w, o);
        return BASE_OK;
    }
    if (!old)
        return BASE_ENOTFOUND;
    if (!base_uuid_is_zero(&o->u.meta.uid) && !base_uuid_eq(&o->u.meta.uid, &old->u.meta.uid))
        return BASE_ECONFLICT;
    if (o->u.meta.rv[0] != '\0' && strcmp(o->u.meta.rv, old->u.meta.rv) != 0)
        return BASE_ECONFLICT;
    if (kind == SESSION_FX_DELETE) {
        *ret = *old;
        world_delete(w, o->u.meta.name);
        return BASE_OK;
    }
    struct contract_object next = *old;
    if (kind == SESSION_FX_STATUS) {
        next.u.binding.status = o->u.binding.status;
        contract_fill_kept(&next, old);
    } else {
        switch (o->kind) {
        case CONTRACT_INSTANCE:
            next.u.instance.spec = o->u.instance.spec;
            break;
        case CONTRACT_ATTACHMENT:
            next.u.attachment.spec = o->u.attachment.spec;
            break;
        case CONTRACT_CLAIM:
            if (old->u.meta.deleting != 0 && o->u.claim.spec.epoch != old->u.claim.spec.epoch)
                return BASE_EDENIED;
            next.u.claim.spec = o->u.claim.spec;
            break;
        case CONTRACT_SERVICE:
        case CONTRACT_BINDING:
            return BASE_EDENIED;
        }
    }
    int rc = contract_validate(&next, old, &err);
    cr_assert_eq(rc, BASE_OK, "update of %s: %s", o->u.meta.name, err.msg);
    struct contract_object before = *old;
    *old = next;
    stamp(w, old);
    notify(w, &before, old);
    *ret = *old;
    return BASE_OK;
}

/* What every write must carry, whatever the store would let pass. */
static void check_write(struct world *w, struct w_node *n, enum session_fx_kind kind,
                        const struct contract_object *written)
{
    struct contract_object filled = *written;
    const struct contract_object *o = &filled;
    const struct contract_meta *m = &o->u.meta;
    struct contract_object *old = world_get(w, m->name);
    if (old)
        contract_fill_kept(&filled, old);
    cr_assert(m->name[0] != '\0');
    if (kind == SESSION_FX_CREATE) {
        cr_assert(base_uuid_is_zero(&m->uid), "a creation names no uid");
        if (o->kind == CONTRACT_CLAIM) {
            cr_assert(!base_uuid_is_zero(&o->u.claim.spec.lease_uuid), "claim create without nonce");
            cr_assert_eq(o->u.claim.spec.release_time, 0);
        }
        if (o->kind == CONTRACT_INSTANCE) {
            cr_assert(!base_uuid_is_zero(&o->u.instance.spec.process_id),
                      "instance create without process id");
            cr_assert_eq(o->u.instance.spec.renew.boot_time_us, w->now / BASE_US,
                         "instance create without boot time");
        }
        return;
    }
    cr_assert(!base_uuid_is_zero(&m->uid), "write of %s without uid", m->name);
    cr_assert(m->rv[0] != '\0', "write of %s without resourceVersion", m->name);
    if (!old || !base_uuid_eq(&old->u.meta.uid, &m->uid))
        return;
    if (o->kind == CONTRACT_CLAIM) {
        const struct contract_claim_spec *s = &o->u.claim.spec, *b = &old->u.claim.spec;
        bool same_version = strcmp(m->rv, old->u.meta.rv) == 0;
        if (same_version && s->epoch != b->epoch) {
            cr_assert(!base_uuid_eq(&s->lease_uuid, &b->lease_uuid), "change of holder without a new nonce");
            cr_assert(!base_uuid_is_zero(&s->lease_uuid));
            cr_assert_eq(s->previous.epoch, b->epoch);
            cr_assert_str_eq(s->previous.node, b->holder.node);
        } else if (same_version) {
            cr_assert_neq(s->release_time, 0, "within an epoch an agent only releases");
            cr_assert(base_uuid_eq(&s->lease_uuid, &b->lease_uuid));
        }
        cr_assert_eq(m->n_finalizers, old->u.meta.n_finalizers > 0 && same_version ? old->u.meta.n_finalizers
                                                                                   : m->n_finalizers);
    }
    if (o->kind == CONTRACT_BINDING && strcmp(m->rv, old->u.meta.rv) == 0) {
        const struct contract_binding_status *s = &o->u.binding.status, *b = &old->u.binding.status;
        if (s->has_prefix != b->has_prefix)
            cr_assert_eq(memcmp(&s->last, &b->last, sizeof s->last), 0,
                         "a reservation leaves the report alone");
        else
            cr_assert(base_prefix_eq(&s->prefix, &b->prefix), "a report leaves the reservation alone");
    }
    if (o->kind == CONTRACT_INSTANCE) {
        cr_assert(!base_uuid_is_zero(&o->u.instance.spec.process_id), "instance write without process id");
        cr_assert_eq(o->u.instance.spec.renew.boot_time_us, w->now / BASE_US,
                     "instance write without boot time");
        if (o->u.instance.spec.epoch != old->u.instance.spec.epoch && strcmp(m->rv, old->u.meta.rv) == 0)
            cr_assert(!base_uuid_eq(&o->u.instance.spec.process_id, &old->u.instance.spec.process_id),
                      "instance takeover without a new process id");
    }
    (void)n;
}

void world_land(struct world *w)
{
    struct contract_object ret;
    cr_assert(w->late);
    w->late = false;
    (void)apply(w, w->late_kind, &w->late_object, &ret);
}

/* ---- effects */
static void reply(struct world *w, struct w_node *n, uint64_t ask, int code,
                  const struct contract_object *objects, size_t count, base_time after)
{
    struct session_in in = {.ev = SESSION_EV_ANSWER};
    in.u.answer.ask = ask;
    in.u.answer.code = code;
    in.u.answer.sent = w->now;
    post(w, n->index, w->now + after, &in, objects, count);
}

static bool fault_now(struct w_node *n, enum w_fault *f, enum w_fault *ret)
{
    *ret = W_NO_FAULT;
    if (*f == W_NO_FAULT)
        return false;
    if (n->fault_skip > 0) {
        n->fault_skip--;
        return false;
    }
    *ret = *f;
    *f = W_NO_FAULT;
    return true;
}

/* A write of a lease carries the correlation of the record that stands for it. */
static void check_recorded(const struct w_node *n, const struct session_fx *fx)
{
    bool found = false;
    if (fx->kind == SESSION_FX_STATUS ||
        (fx->u.store.kind != CONTRACT_INSTANCE && fx->u.store.kind != CONTRACT_CLAIM))
        return;
    for (unsigned i = 0; i < 64 && i < n->n_recorded; i++)
        found |= memcmp(&n->recorded[i], &fx->u.store.correlation, sizeof n->recorded[i]) == 0;
    cr_assert(found, "a write of %s carries a correlation that no record has",
              fx->u.store.object->u.meta.name);
}

static void do_write(struct world *w, struct w_node *n, const struct session_fx *fx)
{
    const struct contract_object *o = fx->u.store.object;
    struct contract_object ret = {0};
    enum w_fault f;
    cr_assert_not_null(o);
    check_write(w, n, fx->kind, o);
    check_recorded(n, fx);
    n->writes[o->kind]++;
    if (n->cut) {
        reply(w, n, fx->u.store.ask, BASE_EUNKNOWN, NULL, 0, 100 * BASE_MS);
        return;
    }
    (void)fault_now(n, &n->write_fault[o->kind], &f);
    int code;
    switch (f) {
    case W_LOST:
    case W_DOWN:
        reply(w, n, fx->u.store.ask, BASE_EUNKNOWN, NULL, 0, LATENCY);
        return;
    case W_LANDED:
        (void)apply(w, fx->kind, o, &ret);
        reply(w, n, fx->u.store.ask, BASE_EUNKNOWN, NULL, 0, LATENCY);
        return;
    case W_NO_ANSWER:
        (void)apply(w, fx->kind, o, &ret);
        return;
    case W_LATE:
        w->late_object = *o;
        w->late_kind = fx->kind;
        w->late_node = n->index;
        w->late = true;
        reply(w, n, fx->u.store.ask, BASE_EUNKNOWN, NULL, 0, LATENCY);
        return;
    case W_DENIED:
        reply(w, n, fx->u.store.ask, BASE_EDENIED, NULL, 0, LATENCY);
        return;
    case W_INVALID:
        reply(w, n, fx->u.store.ask, BASE_EINVAL, NULL, 0, LATENCY);
        return;
    case W_TRY_LATER:
        reply(w, n, fx->u.store.ask, BASE_EAGAIN, NULL, 0, LATENCY);
        return;
    case W_CONFLICT:
        reply(w, n, fx->u.store.ask, BASE_ECONFLICT, NULL, 0, LATENCY);
        return;
    case W_SLOW:
    case W_NO_FAULT:
        break;
    }
    code = apply(w, fx->kind, o, &ret);
    reply(w, n, fx->u.store.ask, code, &ret, code == BASE_OK && fx->kind != SESSION_FX_DELETE, LATENCY);
}

static void do_read(struct world *w, struct w_node *n, const struct session_fx *fx)
{
    enum contract_kind kind = fx->u.store.kind;
    enum w_fault f;
    n->reads[kind]++;
    (void)fault_now(n, &n->read_fault[kind], &f);
    if (n->cut || f == W_DOWN) {
        reply(w, n, fx->u.store.ask, BASE_EIO, NULL, 0, n->cut ? 100 * BASE_MS : LATENCY);
        return;
    }
    if (f == W_NO_ANSWER)
        return;
    if (fx->kind == SESSION_FX_GET) {
        struct contract_object *o = world_get(w, fx->u.store.name);
        reply(w, n, fx->u.store.ask, o ? BASE_OK : BASE_ENOTFOUND, o, o ? 1 : 0,
              f == W_SLOW ? 500 * BASE_MS : LATENCY);
        return;
    }
    struct contract_object *found = calloc(W_OBJECTS, sizeof *found);
    size_t k = 0;
    for (size_t i = 0; i < w->n_obj; i++) {
        const struct contract_object *o = &w->obj[i];
        if (o->kind != CONTRACT_CLAIM)
            continue;
        if (fx->u.store.connector[0] ? strcmp(o->u.claim.spec.connector, fx->u.store.connector) == 0 &&
                                           strcmp(o->u.claim.spec.tenant, fx->u.store.tenant) == 0
                                     : strcmp(o->u.claim.spec.vpc, fx->u.store.vpc) == 0)
            found[k++] = *o;
    }
    reply(w, n, fx->u.store.ask, BASE_OK, found, k, LATENCY);
    free(found);
}

struct w_flow *world_flow(struct world *w, uint64_t flow)
{
    for (size_t i = 0; i < w->n_flow; i++)
        if (w->flow[i].flow == flow)
            return &w->flow[i];
    cr_assert_fail("flow %llu is unknown", (unsigned long long)flow);
    return NULL;
}

/* The policy's outside: TokenReview and the operator's service. */
static void authority(struct world *w, struct w_node *n, const struct session_fx *fx)
{
    const struct authority_ask *q = &fx->u.authorize.q;
    struct session_in in = {.ev = SESSION_EV_AUTHORITY};
    struct authority_answer *a = &in.u.authority.answer;
    n->authority.asked[q->question]++;
    n->authority.last[q->question] = *q;
    if (w->verbose)
        printf("%9.3f %s   ask %s %s epoch %lld\n", (double)w->now / 1e9, n->name,
               authority_question_name(q->question), q->identity, (long long)q->epoch);
    cr_assert_eq(fx->u.authorize.ask == 0, q->question == AUTHORITY_ASK_RETIRE);
    if (fx->u.authorize.ask == 0 || n->authority.silent)
        return;
    in.u.authority.ask = fx->u.authorize.ask;
    in.u.authority.t0 = w->now;
    a->verdict = n->authority.verdict[q->question] ? n->authority.verdict[q->question] : AUTHORITY_ALLOWED;
    a->grant = n->authority.grant ? n->authority.grant : 30 * BASE_SEC;
    if (q->question == AUTHORITY_ASK_IDENTITY) {
        base_copy(a->user, sizeof a->user,
                  n->authority.user[0] ? n->authority.user : world_flow(w, q->token)->uri);
        base_copy(a->credential_id, sizeof a->credential_id, "70ce");
    }
    post(w, n->index, w->now + LATENCY, &in, NULL, 0);
}

static void execute(struct world *w, struct w_node *n, const struct session_fx *fx)
{
    struct session_in in = {.ev = SESSION_EV_UNSET};
    switch (fx->kind) {
    case SESSION_FX_GET:
    case SESSION_FX_LIST:
        do_read(w, n, fx);
        break;
    case SESSION_FX_CREATE:
    case SESSION_FX_UPDATE:
    case SESSION_FX_STATUS:
    case SESSION_FX_DELETE:
        do_write(w, n, fx);
        break;
    case SESSION_FX_PROVE:
        in.ev = SESSION_EV_PROOF;
        in.u.proof.ask = fx->u.prove.ask;
        in.u.proof.collection = fx->u.prove.collection;
        in.u.proof.proved = !n->cut && (n->prove_stale || !n->watch_silent[fx->u.prove.collection]);
        in.u.proof.t0 = w->now;
        post(w, n->index, w->now + (in.u.proof.proved ? 3 * LATENCY : fx->u.prove.timeout), &in, NULL, 0);
        break;
    case SESSION_FX_AUDIT:
        cr_assert(fx->u.audit.event >= SESSION_AUDIT_ACQUIRE && fx->u.audit.event <= SESSION_AUDIT_REJECT);
        cr_assert(fx->u.audit.reason[0] != '\0');
        cr_assert(!base_correlation_is_zero(&fx->u.audit.correlation), "%s", fx->u.audit.reason);
        n->recorded[n->n_recorded++ % 64] = fx->u.audit.correlation;
        n->audits[fx->u.audit.event]++;
        n->last_audit[fx->u.audit.event] = fx->u.audit;
        if (n->by_reason_n < 256)
            base_copy(n->by_reason[n->by_reason_n++], 48, fx->u.audit.reason);
        if (w->verbose)
            printf("%9.3f %s   audit %d %s %s epoch %lld\n", (double)w->now / 1e9, n->name, fx->u.audit.event,
                   fx->u.audit.reason, fx->u.audit.object, (long long)fx->u.audit.epoch);
        if (fx->u.audit.ask == 0 || n->audit_silent)
            break;
        in.ev = SESSION_EV_AUDIT;
        in.u.audit.ask = fx->u.audit.ask;
        in.u.audit.durable = !n->audit_fails;
        n->not_durable += n->audit_fails;
        post(w, n->index, w->now + BASE_MS + n->audit_delay, &in, NULL, 0);
        break;
    case SESSION_FX_TUN_OPEN:
        n->tun_opens++;
        in.ev = SESSION_EV_TUN;
        in.u.tun.tun_id = fx->u.tun.tun_id;
        in.u.tun.code = n->tun_fails ? BASE_EDENIED : BASE_OK;
        post(w, n->index, w->now + BASE_MS, &in, NULL, 0);
        break;
    case SESSION_FX_TUN_CLOSE:
        n->tun_closes++;
        break;
    case SESSION_FX_REFUSE: {
        struct w_flow *f = world_flow(w, fx->u.refuse.flow);
        cr_assert_eq(f->status, 0, "flow %llu is answered twice", (unsigned long long)f->flow);
        f->status = fx->u.refuse.status;
        f->retry_after = fx->u.refuse.retry_after;
        f->answered = w->now;
        base_copy(f->reason, sizeof f->reason, fx->u.refuse.reason);
        if (w->verbose)
            printf("%9.3f %s   refuse %llu %d %s (%u)\n", (double)w->now / 1e9, n->name,
                   (unsigned long long)f->flow, f->status, f->reason, f->retry_after);
        break;
    }
    case SESSION_FX_ADMIT: {
        struct w_flow *f = world_flow(w, fx->u.admit.flow);
        cr_assert_eq(f->status, 0, "flow %llu is answered twice", (unsigned long long)f->flow);
        f->status = 200;
        f->answered = w->now;
        f->deadline = fx->u.admit.deadline;
        f->admit = *fx;
        if (w->verbose)
            printf("%9.3f %s   admit %llu\n", (double)w->now / 1e9, n->name, (unsigned long long)f->flow);
        break;
    }
    case SESSION_FX_FENCE: {
        struct w_flow *f = world_flow(w, fx->u.fence.flow);
        cr_assert_eq(f->status, 200);
        if (f->deadline != -1)
            f->deadline = fx->u.fence.deadline;
        break;
    }
    case SESSION_FX_STOP: {
        struct w_flow *f = world_flow(w, fx->u.flow);
        f->deadline = -1;
        f->stopped = true;
        if (n->stuck)
            break;
        in.ev = SESSION_EV_STOPPED;
        in.u.flow = fx->u.flow;
        post(w, n->index, w->now + BASE_MS, &in, NULL, 0);
        break;
    }
    case SESSION_FX_CLOSE:
        world_flow(w, fx->u.flow)->closed = true;
        break;
    case SESSION_FX_TRACE:
        if (fx->u.trace.warning && strcmp(fx->u.trace.from, fx->u.trace.to) == 0)
            base_copy(n->warned, sizeof n->warned, fx->u.trace.reason);
        if (w->verbose)
            printf("%9.3f %s %s %s: %s -> %s by %s %s epoch %lld\n", (double)w->now / 1e9, n->name,
                   fx->u.trace.what, fx->u.trace.name, fx->u.trace.from, fx->u.trace.to, fx->u.trace.by,
                   fx->u.trace.reason, (long long)fx->u.trace.epoch);
        break;
    case SESSION_FX_CONDITION:
        n->ready = fx->u.condition.ready;
        base_copy(n->ready_reason, sizeof n->ready_reason, fx->u.condition.reason);
        if (w->verbose)
            printf("%9.3f %s ready=%d %s\n", (double)w->now / 1e9, n->name, n->ready,
                   fx->u.condition.message);
        break;
    case SESSION_FX_DRAINED:
        n->drained = true;
        break;
    case SESSION_FX_RELIST:
        start_over(w, n->index);
        break;
    case SESSION_FX_AUTHORIZE:
        authority(w, n, fx);
        break;
    case SESSION_FX_UNSET:
        cr_assert_fail("unexpected effect %d", fx->kind);
    }
}

void world_event(struct world *w, int node, const struct session_in *event)
{
    struct w_node *n = &w->node[node];
    struct session_in in = *event;
    struct session_out *out = malloc(sizeof *out);
    for (unsigned round = 0;; round++) {
        cr_assert_lt(round, 1000, "the core never comes to rest");
        in.now = w->now;
        in.wall = w->wall0 + w->now / BASE_US;
        cr_assert_eq(session_core_step(n->core, &in, out), BASE_OK, "event %d was refused", in.ev);
        session_core_check(n->core);
        for (unsigned i = 0; i < out->n_fx; i++)
            execute(w, n, &out->fx[i]);
        n->wake_at = out->wake_at;
        if (!out->more)
            break;
        in.ev = SESSION_EV_CONTINUE;
    }
    free(out);
}

/* ---- the foundation: as much of contract section 8 as a story needs */
static struct w_gate *gate_of(struct w_node *n, const char *name)
{
    struct w_gate *room = NULL;
    for (size_t i = 0; i < sizeof n->gate / sizeof n->gate[0]; i++) {
        if (strcmp(n->gate[i].name, name) == 0)
            return &n->gate[i];
        if (n->gate[i].name[0] == '\0' && !room)
            room = &n->gate[i];
    }
    cr_assert_not_null(room);
    base_copy(room->name, sizeof room->name, name);
    return room;
}

static void found_instance(struct world *w, struct w_node *n, struct contract_object *o)
{
    struct contract_instance *i = &o->u.instance;
    if (strcmp(i->spec.node, n->name) != 0 || i->status.accepted_epoch == i->spec.epoch)
        return;
    for (size_t k = 0; k < sizeof n->gate / sizeof n->gate[0]; k++)
        n->gate[k].deadline = 0; /* old gates and devices go before a new epoch is accepted */
    i->status.accepted_epoch = i->spec.epoch;
    i->status.accepted_process_id = i->spec.process_id;
    world_touch(w, o);
}

static void found_attachment(struct world *w, struct w_node *n, struct contract_object *o)
{
    struct contract_attachment *a = &o->u.attachment;
    struct contract_object *io = world_get(w, a->spec.instance.name);
    if (n->attachments_wait || !selected(n, o) || !io ||
        !base_uuid_eq(&io->u.meta.uid, &a->spec.instance.uid) ||
        io->u.instance.status.accepted_epoch != a->spec.instance_epoch ||
        a->status.accepted_instance_epoch == a->spec.instance_epoch)
        return;
    a->status.accepted_instance_epoch = a->spec.instance_epoch;
    base_fmt(a->status.device, sizeof a->status.device, "hf%08llx", (unsigned long long)++n->devices);
    a->status.mtu = 1280;
    a->status.ready.status = a->status.accepted.status = CONTRACT_COND_TRUE;
    a->status.ready.transition = a->status.accepted.transition = w->wall0 + w->now / BASE_US;
    base_copy(a->status.ready.reason, sizeof a->status.ready.reason, "Ready");
    base_copy(a->status.accepted.reason, sizeof a->status.accepted.reason, "Accepted");
    world_touch(w, o);
}

static struct contract_object *service_ref(struct world *w, const struct contract_ref *r)
{
    struct contract_object *o = world_get(w, r->name);
    return o && base_uuid_eq(&o->u.meta.uid, &r->uid) ? o : NULL;
}

static void found_claim(struct world *w, struct w_node *n, struct contract_object *o)
{
    struct contract_claim *k = &o->u.claim;
    const struct contract_claim_spec *s = &k->spec;
    struct contract_claim_status *st = &k->status;
    struct w_gate *g = gate_of(n, k->meta.name);
    if (n->foundation_watch_silent)
        return;
    bool here = strcmp(s->holder.node, n->name) == 0;
    if (!base_uuid_eq(&g->uid, &k->meta.uid)) {
        g->uid = k->meta.uid;
        g->epoch = g->seen_epoch = g->tomb = 0;
        g->deadline = 0;
    }
    if (g->seen_epoch != s->epoch) {
        g->seen_epoch = s->epoch;
        g->first_seen = w->now;
    }
    if (!here || s->release_time != 0 || k->meta.deleting != 0 || g->epoch != s->epoch) {
        g->deadline = 0;
        g->epoch = here ? s->epoch : 0;
    }
    /* (b): the previous node confirms the epoch before this one */
    if (strcmp(s->previous.node, n->name) == 0 && base_uuid_eq(&s->previous.boot_id, &n->boot_id) &&
        s->previous.epoch == s->epoch - 1 && st->closed_epoch == s->epoch - 2) {
        g->tomb = s->previous.epoch;
        st->closed_epoch = s->previous.epoch;
        st->closed_reason = CONTRACT_CLOSED_CONFIRMED;
        world_touch(w, o);
        return;
    }
    if (!here)
        return;
    struct contract_object *io = world_get(w, s->holder.instance);
    bool mine = io && io->u.instance.status.accepted_epoch == s->holder.instance_epoch &&
                base_uuid_eq(&io->u.instance.spec.process_id, &s->holder.process_id) &&
                base_uuid_eq(&io->u.meta.uid, &s->holder.instance_uid);
    /* (a): released, or its instance epoch is over */
    bool over = s->release_time != 0 || !io || io->u.instance.spec.epoch > s->holder.instance_epoch;
    if (over && st->closed_epoch == s->epoch - 1 && base_uuid_eq(&s->holder.boot_id, &n->boot_id)) {
        g->deadline = 0;
        g->tomb = s->epoch;
        st->closed_epoch = s->epoch;
        st->closed_reason = CONTRACT_CLOSED_CONFIRMED;
        st->gate.state = CONTRACT_GATE_CLOSED;
        st->gate.epoch = s->epoch;
        base_copy(st->gate.reason, sizeof st->gate.reason, "Released");
        world_touch(w, o);
        return;
    }
    bool waited = w->now >= g->first_seen + contract_wait(&n->cfg.timing, s->max_lease_seconds);
    if (st->closed_epoch < s->epoch - 1 && waited) { /* (c) */
        st->closed_epoch = s->epoch - 1;
        st->closed_reason = CONTRACT_CLOSED_WAITED;
        world_touch(w, o);
        return;
    }
    struct contract_object *so = service_ref(w, &s->service);
    struct contract_object *ao = service_ref(w, &s->attachment);
    if (!mine || over || s->release_time != 0 || !so || so->u.service.revoked || !ao || k->meta.deleting != 0)
        return;
    if (st->accepted_epoch != s->epoch) {
        st->accepted_epoch = s->epoch;
        st->accepted_lease_uuid = s->lease_uuid;
        world_touch(w, o);
        return;
    }
    if (st->closed_epoch < s->epoch - 1 || g->tomb >= s->epoch)
        return;
    if (st->gate.epoch != s->epoch || st->gate.state != CONTRACT_GATE_OPEN) {
        if (g->epoch == s->epoch && st->gate.epoch == s->epoch && st->gate.state == CONTRACT_GATE_CLOSED)
            return; /* shut by the test */
        st->gate.epoch = s->epoch;
        st->gate.state = CONTRACT_GATE_OPEN;
        base_copy(st->gate.reason, sizeof st->gate.reason, "Open");
        st->published_epoch = s->epoch;
        g->epoch = s->epoch;
        world_touch(w, o);
    }
    g->epoch = s->epoch;
    g->deadline = w->now + (base_time)s->lease_seconds * BASE_SEC; /* its proof is now */
}

static void foundation(struct world *w, struct w_node *n)
{
    if (n->foundation_down || w->now < n->foundation_holds)
        return;
    for (size_t i = 0; i < w->n_obj; i++) {
        struct contract_object *o = &w->obj[i];
        if (o->kind == CONTRACT_INSTANCE)
            found_instance(w, n, o);
        else if (o->kind == CONTRACT_ATTACHMENT)
            found_attachment(w, n, o);
        else if (o->kind == CONTRACT_CLAIM)
            found_claim(w, n, o);
    }
}

/* ---- the observer */
bool world_passes(struct world *w, const struct w_flow *f)
{
    if (f->status != 200 || f->deadline <= w->now)
        return false;
    char name[CONTRACT_NAME_SIZE];
    contract_claim_name(name, &f->admit.u.admit.prefix);
    const struct w_gate *g = gate_of(&w->node[f->node], name);
    return g->deadline > w->now;
}

static void observe(struct world *w)
{
    for (size_t i = 0; i < w->n_flow; i++) {
        if (!world_passes(w, &w->flow[i]))
            continue;
        for (size_t k = i + 1; k < w->n_flow; k++) {
            if (strcmp(w->flow[i].uri, w->flow[k].uri) != 0 || !world_passes(w, &w->flow[k]))
                continue;
            w->overlaps++;
            cr_assert(w->allow_overlap,
                      "two sessions forward for %s at %.3f: flow %llu on %s and flow %llu on %s",
                      w->flow[i].uri, (double)w->now / 1e9, (unsigned long long)w->flow[i].flow,
                      w->node[w->flow[i].node].name, (unsigned long long)w->flow[k].flow,
                      w->node[w->flow[k].node].name);
        }
    }
}

/* ---- running */
static void deliver(struct world *w, struct w_msg *m)
{
    struct w_node *n = &w->node[m->node];
    if (n->agent_alive && m->serial == serials[m->node]) {
        if (m->in.ev == SESSION_EV_ROW)
            m->in.u.row.object = m->objects;
        if (m->in.ev == SESSION_EV_ANSWER) {
            m->in.u.answer.objects = m->objects;
            m->in.u.answer.n_objects = m->n;
        }
        world_event(w, m->node, &m->in);
    }
    drop(m);
}

static void run_to(struct world *w, base_time end, bool (*cond)(struct world *w, void *arg), void *arg,
                   bool *met)
{
    for (unsigned steps = 0; steps < 2000000; steps++) {
        if (cond && cond(w, arg)) {
            *met = true;
            return;
        }
        base_time next = end,
                  beat = (w->now / (10 * BASE_MS) + 1) * 10 * BASE_MS; /* foundations look every 10 ms */
        int waker = -1;
        if (beat < next)
            next = beat;
        for (int i = 0; i < W_NODES; i++) {
            if (w->node[i].used && w->node[i].agent_alive && w->node[i].wake_at < next) {
                next = w->node[i].wake_at;
                waker = i;
            }
        }
        if (w->msgs && w->msgs->at <= next) {
            struct w_msg *m = w->msgs;
            w->msgs = m->next;
            w->now = base_time_max(w->now, m->at);
            observe(w);
            deliver(w, m);
        } else if (waker >= 0) {
            w->now = base_time_max(w->now, next);
            struct session_in tick = {.ev = SESSION_EV_TICK};
            observe(w);
            world_event(w, waker, &tick);
            cr_assert(w->node[waker].wake_at > w->now, "the core asks to be woken in the past: %s at %.6f",
                      w->node[waker].name, (double)w->now / 1e9);
        } else {
            w->now = next;
            if (w->now >= end)
                return;
            for (int i = 0; i < W_NODES; i++)
                if (w->node[i].used)
                    foundation(w, &w->node[i]);
        }
        observe(w);
    }
    cr_assert_fail("the world does not come to an end");
}

void world_run(struct world *w, base_time span)
{
    run_to(w, w->now + span, NULL, NULL, NULL);
}

base_time world_until(struct world *w, base_time span, bool (*cond)(struct world *w, void *arg), void *arg)
{
    base_time from = w->now;
    bool met = false;
    run_to(w, w->now + span, cond, arg, &met);
    return met ? w->now - from : -1;
}

/* ---- making things */
struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);
    w->now = 1000 * BASE_SEC;
    w->wall0 = INT64_C(1764450000000000) - w->now / BASE_US;
    w->rv = 100;
    w->verbose = getenv("VERBOSE") != NULL;
    return w;
}

/* For `make cells`: which cells of the state x event tables the core was in. */
static void note_cells(const struct session_core *c)
{
    const char *path = getenv("HOLDFAST_CELLS");
    FILE *f = c && path ? fopen(path, "ae") : NULL;
    if (!f)
        return;
    const uint64_t *x = session_core_cells(c);
    (void)fprintf(f, "test %016llx %016llx %016llx %016llx\n", (unsigned long long)x[0],
                  (unsigned long long)x[1], (unsigned long long)x[2],
                  (unsigned long long)x[3]); /* one write: O_APPEND */
    (void)fclose(f);
}

void world_free(struct world *w)
{
    while (w->msgs) {
        struct w_msg *m = w->msgs;
        w->msgs = m->next;
        drop(m);
    }
    for (int i = 0; i < W_NODES; i++) {
        note_cells(w->node[i].core);
        session_core_free(w->node[i].core);
    }
    free(w);
}

struct w_node *world_node(struct world *w, int i)
{
    struct w_node *n = &w->node[i];
    n->used = true;
    n->index = i;
    base_fmt(n->name, sizeof n->name, "edge%d", i + 1);
    n->node_uid = world_uuid(w);
    n->boot_id = world_uuid(w);
    n->cfg = (struct session_config){.node_uid = n->node_uid,
                                     .boot_id = n->boot_id,
                                     .timing = contract_timing_default(),
                                     .policy = SESSION_POLICY_KUBERNETES,
                                     .max_connectors = 16,
                                     .max_services = 8,
                                     .max_attachments = 8};
    base_copy(n->cfg.provider, sizeof n->cfg.provider, "masque");
    base_copy(n->cfg.node, sizeof n->cfg.node, n->name);
    return n;
}

void world_agent_start(struct world *w, int i)
{
    struct w_node *n = &w->node[i];
    struct base_err err = {0};
    serials[i]++;
    w->seq++;
    memset(n->cfg.seed, 0, sizeof n->cfg.seed);
    memcpy(n->cfg.seed, &w->seq, sizeof w->seq);
    n->cfg.seed[31] = (uint8_t)(i + 1);
    note_cells(n->core);
    session_core_free(n->core);
    n->core = NULL;
    cr_assert_eq(session_core_new(&n->core, &n->cfg, &err), BASE_OK, "%s", err.msg);
    n->agent_alive = true;
    n->drained = false;
    world_event(w, i, &(struct session_in){.ev = SESSION_EV_START});
    world_relist(w, i);
}

struct w_snapshot *world_snapshot(const struct world *w)
{
    struct w_snapshot *s = malloc(sizeof *s);
    memcpy(s->obj, w->obj, sizeof s->obj);
    s->n_obj = w->n_obj;
    s->rv = w->rv;
    return s;
}

/* What a watch has on its way is never told once it was started over; answers still come. */
static void drop_watches(struct world *w, int node)
{
    for (struct w_msg **p = &w->msgs; *p;) {
        struct w_msg *m = *p;
        bool watch = m->in.ev == SESSION_EV_ROW || m->in.ev == SESSION_EV_RELIST ||
                     m->in.ev == SESSION_EV_LISTED || m->in.ev == SESSION_EV_PROOF;
        if (m->node == node && watch) {
            *p = m->next;
            drop(m);
        } else {
            p = &m->next;
        }
    }
}

static void start_over(struct world *w, int node)
{
    struct session_in in = {.ev = SESSION_EV_REGRESSED};
    drop_watches(w, node);
    post(w, node, w->now, &in, NULL, 0);
    world_relist(w, node);
}

void world_restore(struct world *w, const struct w_snapshot *s, bool bump)
{
    memcpy(w->obj, s->obj, sizeof w->obj);
    w->n_obj = s->n_obj;
    w->rv = bump ? w->rv + 1000000 : s->rv;
    for (int i = 0; i < W_NODES; i++) {
        struct w_node *n = &w->node[i];
        if (!n->used)
            continue;
        memset(n->gate, 0, sizeof n->gate);
        n->foundation_holds = w->now + contract_wait(&n->cfg.timing, 30);
        if (!n->agent_alive)
            continue;
        if (!bump) {
            start_over(w, i);
        } else { /* the watches' versions are compacted: they list again */
            drop_watches(w, i);
            world_relist(w, i);
        }
    }
}

void world_relist(struct world *w, int i)
{
    struct w_node *n = &w->node[i];
    for (enum contract_kind k = CONTRACT_INSTANCE; k <= CONTRACT_BINDING; k++) {
        struct session_in in = {.ev = SESSION_EV_RELIST};
        in.u.collection = k;
        base_fmt(in.version, sizeof in.version, "%llu", (unsigned long long)w->rv);
        post(w, i, w->now + LATENCY, &in, NULL, 0);
        for (size_t o = 0; o < w->n_obj; o++) {
            if (w->obj[o].kind != k || !selected(n, &w->obj[o]))
                continue;
            struct session_in row = {.ev = SESSION_EV_ROW};
            row.u.row.kind = k;
            post(w, i, w->now + LATENCY, &row, &w->obj[o], 1);
        }
        in.ev = SESSION_EV_LISTED;
        post(w, i, w->now + LATENCY, &in, NULL, 0);
    }
}

void world_agent_kill(struct world *w, int i)
{
    w->node[i].agent_alive = false;
    serials[i]++;
    for (size_t k = 0; k < w->n_flow; k++)
        if (w->flow[k].node == i) {
            w->flow[k].deadline = -1;
            w->flow[k].ended = true;
        }
}

struct contract_object *world_service(struct world *w, const char *name, const char *pool)
{
    struct contract_object o = {.kind = CONTRACT_SERVICE};
    struct contract_service *s = &o.u.service;
    base_copy(s->meta.name, sizeof s->meta.name, name);
    base_copy(s->provider, sizeof s->provider, "masque");
    base_copy(s->tenant, sizeof s->tenant, "acme");
    base_copy(s->vpc, sizeof s->vpc, "vpc-a");
    cr_assert_eq(base_prefix_parse(&s->pool, base_str_of(pool)), BASE_OK);
    s->n_destinations = 1;
    cr_assert_eq(base_prefix_parse(&s->destinations[0], BASE_STR("fd20::/16")), BASE_OK);
    s->valid_until = w->wall0 + w->now / BASE_US + INT64_C(290000000);
    return world_put(w, &o);
}

struct contract_object *world_binding(struct world *w, const char *tenant, const char *connector,
                                      const char *service, const char *uri)
{
    struct contract_object o = {.kind = CONTRACT_BINDING};
    struct contract_binding *b = &o.u.binding;
    cr_assert_eq(contract_binding_name(b->meta.name, tenant, connector, NULL), BASE_OK);
    base_copy(b->spec.tenant, sizeof b->spec.tenant, tenant);
    base_copy(b->spec.connector, sizeof b->spec.connector, connector);
    base_copy(b->spec.vpc, sizeof b->spec.vpc, "vpc-a");
    base_copy(b->spec.service, sizeof b->spec.service, service);
    b->spec.n_identities = 1;
    b->spec.identities[0].kind = CONTRACT_IDENTITY_URI;
    base_copy(b->spec.identities[0].value, sizeof b->spec.identities[0].value, uri);
    b->spec.retention_seconds = -1;
    return world_put(w, &o);
}

static uint64_t connect_with(struct world *w, int node, enum session_identity identity, const char *uri,
                             const char *target)
{
    cr_assert_lt(w->n_flow, W_FLOWS);
    struct w_flow *f = &w->flow[w->n_flow++];
    *f = (struct w_flow){.flow = w->n_flow, .node = node, .asked = w->now};
    base_copy(f->uri, sizeof f->uri, uri);
    struct session_in in = {.ev = SESSION_EV_REQUEST};
    in.u.request.flow = f->flow;
    in.u.request.transport = SESSION_H3;
    in.u.request.identity = identity;
    if (identity == SESSION_ID_URI) {
        base_copy(in.u.request.uri, sizeof in.u.request.uri, uri);
        base_copy(in.u.request.credential_id, sizeof in.u.request.credential_id, "c0ffee");
    }
    in.u.request.any_target = target == NULL;
    if (target)
        cr_assert_eq(base_prefix_parse(&in.u.request.target, base_str_of(target)), BASE_OK);
    in.u.request.ipproto = -1;
    in.u.request.correlation.b[0] = 1;
    in.u.request.correlation.b[15] = (uint8_t)f->flow;
    world_event(w, node, &in);
    return f->flow;
}

uint64_t world_connect_to(struct world *w, int node, const char *uri, const char *target)
{
    return connect_with(w, node, SESSION_ID_URI, uri, target);
}

uint64_t world_connect_token(struct world *w, int node, const char *user)
{
    return connect_with(w, node, SESSION_ID_TOKEN, user, NULL);
}

uint64_t world_connect(struct world *w, int node, const char *uri)
{
    return world_connect_to(w, node, uri, NULL);
}

void world_end(struct world *w, uint64_t flow)
{
    struct w_flow *f = world_flow(w, flow);
    struct session_in in = {.ev = SESSION_EV_ENDED};
    in.u.flow = flow;
    f->ended = true;
    world_event(w, f->node, &in);
}

static bool all_ready(struct world *w, void *arg)
{
    (void)arg;
    for (int i = 0; i < W_NODES; i++)
        if (w->node[i].used && !w->node[i].ready)
            return false;
    return true;
}

struct world *world_usual(int nodes)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    world_binding(w, "acme", "site1", "svc-a", W_URI);
    for (int i = 0; i < nodes; i++) {
        world_node(w, i);
        world_agent_start(w, i);
    }
    cr_assert_geq(world_until(w, 5 * BASE_SEC, all_ready, NULL), 0, "not ready: %s", w->node[0].ready_reason);
    return w;
}

struct world *world_webhook(int nodes)
{
    struct world *w = world_new();
    world_service(w, "svc-a", "fd12:0:0:1::/64");
    struct contract_binding *b = &world_binding(w, "acme", "site1", "svc-a", W_URI)->u.binding;
    b->spec.n_identities = 2;
    b->spec.identities[1].kind = CONTRACT_IDENTITY_USER;
    base_copy(b->spec.identities[1].value, sizeof b->spec.identities[1].value, W_USER);
    for (int i = 0; i < nodes; i++) {
        world_node(w, i)->cfg.policy = SESSION_POLICY_WEBHOOK;
        world_agent_start(w, i);
    }
    cr_assert_geq(world_until(w, 5 * BASE_SEC, all_ready, NULL), 0, "not ready: %s", w->node[0].ready_reason);
    return w;
}

struct w_flow *world_session(struct world *w, int node)
{
    uint64_t flow = world_connect(w, node, W_URI);
    cr_assert_geq(world_until(w, 15 * BASE_SEC, world_answered, &flow), 0, "no answer");
    return world_flow(w, flow);
}
