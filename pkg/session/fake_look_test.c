/* SPDX-License-Identifier: Apache-2.0
 *
 * session/fake_look_test.c - what tests ask of the small world, wait for, and put into it: see fake_test.h.
 */
#include "session/fake_test.h"

#include <criterion/criterion.h>
#include <string.h>

/* ---- conditions for world_until ---- */
bool world_answered(struct world *w, void *arg)
{
    return world_flow(w, *(uint64_t *)arg)->status != 0;
}

bool world_is_ready(struct world *w, void *arg)
{
    (void)arg;
    return w->node[0].ready;
}

bool world_drained(struct world *w, void *arg)
{
    (void)arg;
    return w->node[0].drained;
}

bool world_conn_is(struct world *w, void *arg)
{
    return strcmp(world_state(w, 0), arg) == 0;
}

bool world_inst_is(struct world *w, void *arg)
{
    return strcmp(world_inst_state(w), arg) == 0;
}

void world_until_conn(struct world *w, const char *state, base_time span)
{
    char text[24];
    base_copy(text, sizeof text, state);
    cr_assert_geq(world_until(w, span, world_conn_is, text), 0, "%s instead of %s", world_state(w, 0), state);
}

void world_until_inst(struct world *w, const char *state, base_time span)
{
    char text[24];
    base_copy(text, sizeof text, state);
    cr_assert_geq(world_until(w, span, world_inst_is, text), 0, "%s instead of %s", world_inst_state(w),
                  state);
}

/* ---- looking ---- */
const char *world_state(struct world *w, int node)
{
    static struct session_view v;
    return session_core_view(w->node[node].core, 0, &v) ? v.state : "Idle";
}

const char *world_inst_state(struct world *w)
{
    static struct session_summary s;
    session_core_summary(w->node[0].core, &s);
    return s.instance_state;
}

struct session_conn *world_conn(struct world *w, const char *name)
{
    struct session_conn *n = session_conn_find(w->node[0].core, name);
    cr_assert_not_null(n, "%s", name);
    return n;
}

bool world_refused(const struct w_flow *f, int status, const char *reason)
{
    size_t n = strlen(reason);
    return f->status == status && strncmp(f->reason, reason, n) == 0 && f->reason[n] == ':';
}

bool world_said(const struct w_node *n, const char *reason)
{
    for (unsigned i = 0; i < n->by_reason_n; i++)
        if (strcmp(n->by_reason[i], reason) == 0)
            return true;
    return false;
}

const char *world_claim_name(struct world *w)
{
    static char name[CONTRACT_NAME_SIZE];
    struct contract_object *b = world_get(w, "acme.site1");
    cr_assert(b && b->u.binding.status.has_prefix);
    contract_claim_name(name, &b->u.binding.status.prefix);
    return name;
}

static struct contract_object *first_claim(struct world *w)
{
    for (size_t i = 0; i < w->n_obj; i++)
        if (w->obj[i].kind == CONTRACT_CLAIM)
            return &w->obj[i];
    return NULL;
}

bool world_has_claim(struct world *w)
{
    return first_claim(w) != NULL;
}

struct contract_object *world_the_claim(struct world *w)
{
    struct contract_object *o = first_claim(w);
    cr_assert_not_null(o, "there is no claim");
    return o;
}

struct base_prefix world_candidate(struct world *w, uint64_t i)
{
    struct base_prefix p;
    struct contract_object *s = world_get(w, "svc-a");
    cr_assert_eq(authority_candidate(&p, "acme", "site1", "vpc-a", &s->u.service.pool, i), BASE_OK);
    return p;
}

/* ---- putting in ---- */
struct base_prefix world_prefix(const char *text)
{
    struct base_prefix p;
    cr_assert_eq(base_prefix_parse(&p, base_str_of(text)), BASE_OK);
    return p;
}

struct contract_object *world_foreign(struct world *w, const char *tenant, const char *connector,
                                      const char *vpc, struct base_prefix p)
{
    struct contract_object o = {.kind = CONTRACT_CLAIM};
    struct contract_claim_spec *s = &o.u.claim.spec;
    s->prefix = p;
    contract_claim_name(o.u.meta.name, &p);
    base_copy(s->provider, sizeof s->provider, "masque");
    base_copy(s->tenant, sizeof s->tenant, tenant);
    base_copy(s->vpc, sizeof s->vpc, vpc);
    base_copy(s->connector, sizeof s->connector, connector);
    base_copy(s->service.name, sizeof s->service.name, "svc-a");
    base_copy(s->attachment.name, sizeof s->attachment.name, "masque.edge9.vpc-a");
    s->service.uid = world_uuid(w);
    s->attachment.uid = world_uuid(w);
    s->lease_uuid = world_uuid(w);
    s->epoch = 1;
    base_copy(s->holder.instance, sizeof s->holder.instance, "masque.edge9");
    base_copy(s->holder.node, sizeof s->holder.node, "edge9");
    s->holder.instance_uid = world_uuid(w);
    s->holder.instance_epoch = 1;
    s->holder.process_id = world_uuid(w);
    s->holder.boot_id = world_uuid(w);
    s->acquire_time = 1;
    s->lease_seconds = s->max_lease_seconds = 30;
    s->correlation.b[0] = 1;
    return world_put(w, &o);
}

void world_take_instance(struct world *w)
{
    struct contract_object *o = world_get(w, "masque.edge1");
    o->u.instance.spec.epoch++;
    o->u.instance.spec.process_id = world_uuid(w);
    world_touch(w, o);
}

void world_second_identity(struct world *w, const char *uri)
{
    struct contract_object *o = world_get(w, "acme.site1");
    struct contract_binding_spec *s = &o->u.binding.spec;
    s->n_identities = 2;
    s->identities[1] = s->identities[0];
    base_copy(s->identities[1].value, sizeof s->identities[1].value, uri);
    world_touch(w, o);
}

void world_over(struct contract_object *o)
{
    o->u.claim.spec.release_time = 1;
    o->u.claim.status.closed_epoch = o->u.claim.spec.epoch;
    o->u.claim.status.closed_reason = CONTRACT_CLOSED_CONFIRMED;
}

void world_shown(struct world *w, const struct contract_object *o, bool deleted)
{
    struct session_in in = {.ev = SESSION_EV_ROW};
    in.u.row.kind = o->kind;
    in.u.row.deleted = deleted;
    in.u.row.object = o;
    world_event(w, 0, &in);
}
