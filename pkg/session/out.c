/* SPDX-License-Identifier: Apache-2.0
 *
 * session/out.c - effects, questions and identities of one step.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

bool session_room(const struct session_core *c, unsigned n_fx, unsigned n_objects)
{
    return c->out->n_fx + n_fx <= SESSION_FX_MAX && c->n_objects + n_objects <= SESSION_OBJECTS_MAX;
}

#define FX_OTHERS 728 /* bytes */
#define FX_FITS(member)                                                                                      \
    (offsetof(struct session_fx, u) + sizeof((struct session_fx *)0)->u.member <= FX_OTHERS)
_Static_assert(FX_FITS(store) && FX_FITS(prove) && FX_FITS(audit) && FX_FITS(tun) && FX_FITS(refuse) &&
                   FX_FITS(fence) && FX_FITS(trace) && FX_FITS(condition) && FX_FITS(drained),
               "every effect but the two largest");
struct session_fx *session_fx(struct session_core *c, enum session_fx_kind kind)
{
    assert(c->out->n_fx < SESSION_FX_MAX); /* session_room is asked before anything that adds many */
    struct session_fx *fx = &c->out->fx[c->out->n_fx++];
    bool large = kind == SESSION_FX_AUTHORIZE || kind == SESSION_FX_ADMIT;
    memset(fx, 0, large ? sizeof *fx : FX_OTHERS);
    fx->kind = kind;
    return fx;
}

uint64_t session_ask(struct session_core *c, uint32_t entity)
{
    return ++c->asks << SESSION_ASK_BITS | (entity + 1);
}

uint32_t session_ask_entity(const struct session_core *c, uint64_t ask)
{
    uint32_t low = (uint32_t)(ask & ((1U << SESSION_ASK_BITS) - 1));
    return low == 0 || low > c->timers.n ? UINT32_MAX : low - 1;
}

uint64_t session_get(struct session_core *c, uint32_t entity, enum contract_kind kind, const char *name,
                     const struct base_correlation *correlation)
{
    struct session_fx *fx = session_fx(c, SESSION_FX_GET);
    fx->u.store.ask = session_ask(c, entity);
    fx->u.store.kind = kind;
    (void)base_copy(fx->u.store.name, sizeof fx->u.store.name, name);
    if (correlation)
        fx->u.store.correlation = *correlation;
    return fx->u.store.ask;
}

uint64_t session_write(struct session_core *c, uint32_t entity, enum session_fx_kind fx_kind,
                       enum contract_kind kind, const struct base_correlation *correlation, bool renewal,
                       struct contract_object **ret_object)
{
    assert(c->n_objects < SESSION_OBJECTS_MAX);
    struct contract_object *o = &c->out->objects[c->n_objects++];
    if (kind == CONTRACT_BINDING) { /* identities are most of it, and none is ever written */
        size_t at = offsetof(struct contract_object, u.binding.spec.identities);
        size_t end = at + sizeof o->u.binding.spec.identities;
        memset(o, 0, at);
        memset((char *)o + end, 0, contract_object_size(kind) - end);
    } else {
        memset(o, 0, contract_object_size(kind));
    }
    o->kind = kind;
    struct session_fx *fx = session_fx(c, fx_kind);
    fx->u.store.ask = session_ask(c, entity);
    fx->u.store.kind = kind;
    fx->u.store.object = o;
    fx->u.store.renewal = renewal;
    if (correlation)
        fx->u.store.correlation = *correlation;
    *ret_object = o;
    return fx->u.store.ask;
}

void session_trace(struct session_core *c, const char *what, const char *name, const char *from,
                   const char *to, const char *by, const char *reason, int64_t epoch,
                   const struct base_correlation *correlation, bool warning)
{
    struct session_fx *fx = session_fx(c, SESSION_FX_TRACE);
    base_copy_cut(fx->u.trace.what, sizeof fx->u.trace.what, what);
    base_copy_cut(fx->u.trace.name, sizeof fx->u.trace.name, name);
    base_copy_cut(fx->u.trace.from, sizeof fx->u.trace.from, from);
    base_copy_cut(fx->u.trace.to, sizeof fx->u.trace.to, to);
    base_copy_cut(fx->u.trace.by, sizeof fx->u.trace.by, by);
    base_copy_cut(fx->u.trace.reason, sizeof fx->u.trace.reason, reason);
    fx->u.trace.epoch = epoch;
    if (correlation)
        fx->u.trace.correlation = *correlation;
    fx->u.trace.warning = warning;
}

struct session_audit *session_audit(struct session_core *c, enum session_audit_event event, bool allowed,
                                    const char *reason, const char *object)
{
    struct session_audit *a = &session_fx(c, SESSION_FX_AUDIT)->u.audit;
    a->event = event;
    a->allowed = allowed;
    base_copy_cut(a->reason, sizeof a->reason, reason);
    base_copy_cut(a->object, sizeof a->object, object);
    return a;
}

/* Identities: a stream made from the seed, which nobody else has. */
struct base_uuid session_uuid(struct session_core *c)
{
    uint8_t digest[BASE_SHA256_SIZE];
    uint64_t n = ++c->uuids;
    if (base_sha256(digest, c->cfg.seed, sizeof c->cfg.seed, &n, sizeof n) != BASE_OK) {
        /* No memory for a digest. An identity that repeats or can be guessed would be worse than a zero one,
         * which the API server refuses. */
        return (struct base_uuid){{0}};
    }
    return base_uuid_v4(digest);
}

struct base_correlation session_correlation(struct session_core *c)
{
    struct base_correlation id;
    struct base_uuid u = session_uuid(c);
    memcpy(id.b, u.b, sizeof id.b);
    return id;
}

base_time session_jitter(struct session_core *c, base_time t)
{
    return t - (base_time)base_prng_below(&c->prng, (uint64_t)t / 5 + 1);
}

base_time session_backoff(struct session_core *c, unsigned tries)
{
    base_time t = SESSION_RETRY_MIN;
    while (tries-- > 0 && t < SESSION_RETRY_MAX)
        t *= 2;
    return session_jitter(c, base_time_min(t, SESSION_RETRY_MAX));
}
