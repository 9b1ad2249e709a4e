/* SPDX-License-Identifier: Apache-2.0 */
#include "store/twin_int.h"

#define BIT(op) (1u << (op))
#define READ (BIT(STORE_GET) | BIT(STORE_LIST))
#define WRITE (READ | BIT(STORE_CREATE) | BIT(STORE_UPDATE))
#define ALL (WRITE | BIT(STORE_DELETE))
#define EVERY (ALL | BIT(STORE_UPDATE_STATUS))
#define STATUS BIT(STORE_UPDATE_STATUS)
#define N_ROLES (STORE_AUTHORITY + 1)
#define POOL_SLOP ((base_wall)303 * 1000000) /* 300 s, 2 s wall clock skew, 1 s for whole seconds */

/* manifests/rbac */
static const unsigned rbac[N_ROLES][CONTRACT_KIND_N] = {
    [STORE_ADMIN] = {[CONTRACT_INSTANCE] = EVERY,
                     [CONTRACT_ATTACHMENT] = EVERY,
                     [CONTRACT_SERVICE] = EVERY,
                     [CONTRACT_CLAIM] = EVERY,
                     [CONTRACT_BINDING] = EVERY},
    [STORE_AGENT] = {[CONTRACT_INSTANCE] = WRITE,
                     [CONTRACT_ATTACHMENT] = ALL,
                     [CONTRACT_SERVICE] = READ,
                     [CONTRACT_CLAIM] = WRITE,
                     [CONTRACT_BINDING] = READ | STATUS},
    [STORE_FOUNDATION] = {[CONTRACT_INSTANCE] = READ | STATUS,
                          [CONTRACT_ATTACHMENT] = READ | STATUS,
                          [CONTRACT_SERVICE] = READ,
                          [CONTRACT_CLAIM] = READ | BIT(STORE_UPDATE) | STATUS},
    [STORE_OPERATOR] = {[CONTRACT_INSTANCE] = READ | BIT(STORE_UPDATE) | BIT(STORE_DELETE),
                        [CONTRACT_ATTACHMENT] = READ,
                        [CONTRACT_SERVICE] = READ,
                        [CONTRACT_CLAIM] = READ | BIT(STORE_DELETE),
                        [CONTRACT_BINDING] = ALL},
    [STORE_AUTHORITY] = {[CONTRACT_SERVICE] = ALL},
};

bool store_rbac_allows(const struct store_identity *who, enum store_op op, enum contract_kind kind)
{
    return !who || ((unsigned)who->role < N_ROLES && (unsigned)kind < CONTRACT_KIND_N &&
                    (rbac[who->role][kind] & BIT(op)));
}

static int64_t epoch_of(const struct contract_object *o)
{
    return o->kind == CONTRACT_CLAIM      ? o->u.claim.spec.epoch
           : o->kind == CONTRACT_INSTANCE ? o->u.instance.spec.epoch
                                          : 0;
}

static const char *node_of(const struct contract_object *o)
{
    const char *dot;

    switch (o->kind) {
    case CONTRACT_INSTANCE:
        return o->u.instance.spec.node;
    case CONTRACT_ATTACHMENT:
        dot = strchr(o->u.attachment.spec.instance.name, '.');
        return dot ? dot + 1 : "";
    case CONTRACT_CLAIM:
        return o->u.claim.spec.holder.node;
    case CONTRACT_SERVICE:
    case CONTRACT_BINDING:
        break;
    }
    return "";
}

static unsigned slots(const struct contract_meta *m)
{
    return m->n_finalizers < CONTRACT_FINALIZERS_MAX ? m->n_finalizers : CONTRACT_FINALIZERS_MAX;
}

static bool finalizers_equal(const struct contract_meta *a, const struct contract_meta *b)
{
    if (a->n_finalizers != b->n_finalizers)
        return false;
    for (unsigned i = 0; i < slots(a); i++)
        if (strcmp(a->finalizers[i], b->finalizers[i]) != 0)
            return false;
    return true;
}

static bool has_node_claim(const struct store_identity *who)
{
    return who->node[0] && !base_uuid_is_zero(&who->node_uid);
}

/* ---- everybody ---- */
static const char *deleting_rows(const struct store_write *w)
{
    if (w->op == STORE_UPDATE && w->old->u.meta.deleting && epoch_of(w->next) != epoch_of(w->old))
        return "no takeover of a deleting object";
    return NULL;
}

static bool service_allows(const struct contract_object *service, const struct contract_claim_spec *c)
{
    const struct contract_service *s = &service->u.service;

    if (strcmp(s->meta.name, c->service.name) != 0)
        return true;
    return base_uuid_eq(&s->meta.uid, &c->service.uid) && strcmp(s->provider, c->provider) == 0 &&
           strcmp(s->tenant, c->tenant) == 0 && strcmp(s->vpc, c->vpc) == 0 && !s->revoked &&
           !s->meta.deleting && base_prefix_covers(&s->pool, &c->prefix);
}

static const char *claim_pool(const struct store_write *w)
{
    const struct contract_claim_spec *c;

    if (!w->next || w->next->kind != CONTRACT_CLAIM || (w->op != STORE_CREATE && w->op != STORE_UPDATE))
        return NULL;
    c = &w->next->u.claim.spec;
    if (w->op == STORE_UPDATE && (c->epoch == w->old->u.claim.spec.epoch || c->release_time))
        return NULL;
    for (size_t i = 0; i < w->services->n; i++)
        if (!service_allows(&w->services->v[i]->o, c))
            return "the service does not allow this prefix";
    return NULL; /* an unknown name passes here; the foundation accepts none */
}

static const char *valid_until(const struct store_write *w)
{
    base_wall second = w->wall - w->wall % 1000000;

    if (!w->next || w->next->kind != CONTRACT_SERVICE || (w->op != STORE_CREATE && w->op != STORE_UPDATE))
        return NULL;
    if (w->op == STORE_UPDATE && w->next->u.service.valid_until == w->old->u.service.valid_until)
        return NULL;
    return w->next->u.service.valid_until - second > POOL_SLOP ? "validUntil is more than 5 minutes ahead"
                                                               : NULL;
}

/* ---- roles ---- */
static const char *agent_binding(const struct store_write *w)
{
    const struct contract_last_session *now, *was;

    if (w->op != STORE_UPDATE_STATUS)
        return "an agent writes only the status of a binding";
    now = &w->next->u.binding.status.last;
    was = &w->old->u.binding.status.last;
    if (strcmp(now->node, was->node) == 0 && strcmp(now->generation, was->generation) == 0 &&
        strcmp(now->transport, was->transport) == 0 && now->since == was->since && now->until == was->until)
        return NULL;
    return strcmp(now->node[0] ? now->node : was->node, w->who->node) == 0
               ? NULL
               : "lastSession stays as it is or names the agent's own node";
}

static const char *agent(const struct store_write *w)
{
    const struct contract_object *target = w->next ? w->next : w->old;

    if (!has_node_claim(w->who))
        return "no node claim in the token: use a token bound to a scheduled pod";
    if (target->kind == CONTRACT_BINDING)
        return agent_binding(w);
    if (w->op == STORE_UPDATE_STATUS)
        return "an agent never writes status here";
    if (target->kind == CONTRACT_SERVICE)
        return "an agent never writes ProviderService";
    if (w->op == STORE_DELETE && target->kind != CONTRACT_ATTACHMENT)
        return "claims and instances are evidence: not deleted by an agent";
    if (strcmp(node_of(target), w->who->node) != 0)
        return "an agent may not write objects of another node";
    if (target->kind == CONTRACT_INSTANCE && w->next &&
        !base_uuid_eq(&w->next->u.instance.spec.node_uid, &w->who->node_uid) &&
        !(w->op == STORE_UPDATE && epoch_of(w->next) == epoch_of(w->old)))
        return "nodeUID must be the node UID of the token";
    if (w->op == STORE_UPDATE && !finalizers_equal(&w->next->u.meta, &w->old->u.meta))
        return "an agent leaves finalizers, labels and owner references as they are";
    if (w->op == STORE_CREATE && w->next->u.meta.n_finalizers)
        return "an agent creates no finalizers and no owner references";
    return NULL;
}

static const char *foundation_finalizers(const struct store_write *w)
{
    const struct contract_meta *now = &w->next->u.meta, *was = &w->old->u.meta;
    char own[CONTRACT_FINALIZER_SIZE], uid[BASE_UUID_SIZE];
    size_t own_len;

    base_uuid_text(uid, &w->who->node_uid);
    (void)base_fmt(own, sizeof own, "%s%s.", CONTRACT_GATE_FINALIZER, uid);
    own_len = strlen(own);
    for (unsigned i = 0; i < slots(now); i++) {
        const char *f = now->finalizers[i];
        uint8_t boot[8];

        if (contract_has_finalizer(was, f))
            continue;
        if (strncmp(f, own, own_len) != 0 || base_unhex(boot, 8, base_str_of(f + own_len)))
            return "only the own finalizer (node UID of the token, boot id) may be added";
    }
    for (unsigned i = 0; i < slots(was); i++) {
        const char *f = was->finalizers[i];

        if (!contract_has_finalizer(now, f) && strncmp(f, own, own_len) != 0 &&
            !(was->deleting && strncmp(f, CONTRACT_GATE_FINALIZER, strlen(CONTRACT_GATE_FINALIZER)) == 0))
            return "only the own finalizer may be removed, any other gate finalizer only from a deleting "
                   "object";
    }
    return NULL;
}

static bool cond_equal(const struct contract_cond *a, const struct contract_cond *b)
{
    return a->status == b->status && a->transition == b->transition &&
           a->observed_generation == b->observed_generation && strcmp(a->reason, b->reason) == 0 &&
           strcmp(a->message, b->message) == 0;
}

static bool holder_fields_equal(const struct contract_claim_status *a, const struct contract_claim_status *b)
{
    return a->accepted_epoch == b->accepted_epoch &&
           base_uuid_eq(&a->accepted_lease_uuid, &b->accepted_lease_uuid) && a->gate.epoch == b->gate.epoch &&
           a->gate.state == b->gate.state && a->gate.since == b->gate.since &&
           strcmp(a->gate.reason, b->gate.reason) == 0 && a->published_epoch == b->published_epoch &&
           a->published_time == b->published_time && cond_equal(&a->accepted, &b->accepted) &&
           cond_equal(&a->gate_open, &b->gate_open) && cond_equal(&a->published, &b->published);
}

static const char *foundation_claim_status(const struct store_write *w)
{
    const struct contract_claim_spec *c = &w->next->u.claim.spec;
    const struct contract_claim_status *now = &w->next->u.claim.status, *was = &w->old->u.claim.status;
    bool holder = strcmp(c->holder.node, w->who->node) == 0;
    bool previous = c->previous.epoch && strcmp(c->previous.node, w->who->node) == 0;
    bool confirmed = now->closed_reason == CONTRACT_CLOSED_CONFIRMED,
         waited = now->closed_reason == CONTRACT_CLOSED_WAITED;

    if (!holder && !holder_fields_equal(now, was))
        return "accepted, gate, published and conditions belong to the foundation of holder.node";
    if ((now->closed_epoch != was->closed_epoch || now->closed_reason != was->closed_reason ||
         now->closed_time != was->closed_time) &&
        !(holder && confirmed && now->closed_epoch == c->epoch) &&
        !(previous && confirmed && now->closed_epoch == c->previous.epoch) &&
        !(holder && waited && now->closed_epoch == c->epoch - 1))
        return "closedEpoch: spec.epoch (Confirmed) or spec.epoch-1 (Waited) by holder.node, previous.epoch "
               "(Confirmed) by "
               "previous.node, nothing else";
    if ((now->withdrawn_epoch != was->withdrawn_epoch || now->withdrawn_time != was->withdrawn_time) &&
        !holder && !(previous && now->withdrawn_epoch == c->previous.epoch))
        return "withdrawnEpoch: by holder.node, or previous.epoch by previous.node";
    return NULL;
}

static const char *foundation(const struct store_write *w)
{
    if (!has_node_claim(w->who))
        return "no node claim in the token: use a token bound to a scheduled pod";
    if (w->op == STORE_UPDATE_STATUS && w->next->kind == CONTRACT_CLAIM)
        return foundation_claim_status(w);
    if (w->op == STORE_UPDATE_STATUS)
        return strcmp(node_of(w->next), w->who->node) == 0 ? NULL : "instance or attachment of another node";
    if (w->op != STORE_UPDATE || w->next->kind != CONTRACT_CLAIM)
        return "the foundation writes status, and finalizers of claims, only";
    if (!contract_spec_equal(w->next, w->old))
        return "the foundation leaves spec, labels and owner references as they are";
    return foundation_finalizers(w);
}

static const char *operator_drain(const struct store_write *w)
{
    if (w->op != STORE_UPDATE || w->next->kind != CONTRACT_INSTANCE)
        return NULL;
    return contract_spec_equal(w->next, w->old) && finalizers_equal(&w->next->u.meta, &w->old->u.meta)
               ? NULL
               : "operators change only the drain annotation of an instance";
}

const char *store_policy(const struct store_write *w)
{
    const char *no;

    if (!w->who)
        return NULL;
    no = deleting_rows(w);
    if (!no)
        no = claim_pool(w);
    if (!no)
        no = valid_until(w);
    if (no)
        return no;
    switch (w->who->role) {
    case STORE_AGENT:
        return agent(w);
    case STORE_FOUNDATION:
        return foundation(w);
    case STORE_OPERATOR:
        return operator_drain(w);
    case STORE_ADMIN:
    case STORE_AUTHORITY:
        break;
    }
    return NULL;
}
