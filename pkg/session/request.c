/* SPDX-License-Identifier: Apache-2.0
 *
 * session/request.c - who a request is from, and whether it may come in, before anything is touched.
 */
#include "session/int.h"

#include "base/mutant.h"

#include <string.h>

static enum authority_reason identity_reason(enum session_identity id)
{
    switch (id) {
    case SESSION_ID_URI:
    case SESSION_ID_TOKEN:
        return AUTHORITY_OK;
    case SESSION_ID_NONE:
        return AUTHORITY_NO_IDENTITY;
    case SESSION_ID_MANY:
        return AUTHORITY_MANY_IDENTITIES;
    case SESSION_ID_ABSENT:
        return AUTHORITY_NO_CREDENTIALS;
    case SESSION_ID_BAD_TOKEN:
        return AUTHORITY_BAD_TOKEN;
    case SESSION_ID_BAD:
        break;
    }
    return AUTHORITY_BAD_IDENTITY;
}

struct session_reason session_authenticate(struct session_core *c, const struct session_wait *w,
                                           struct session_conn **ret)
{
    *ret = NULL;
    uint32_t slot;
    unsigned found = authority_index_find(c->identities, w->digest, &slot);
    if (found == 0)
        return c->bindings_overflow ? session_reason_of(WHY_TOO_MANY_BINDINGS)
                                    : session_reason_auth(AUTHORITY_NO_BINDING);
    if (found > 1 && !base_mutant("identity.ambiguous"))
        return session_reason_auth(AUTHORITY_AMBIGUOUS);
    struct session_conn *n = &c->conn[slot];
    *ret = n;
    enum authority_reason r = authority_check_binding(&n->b, w->digest);
    if (r != AUTHORITY_OK)
        return session_reason_auth(r);
    const struct session_service *s = session_service_of(c, n);
    r = authority_check_service(s ? &s->s : NULL, &n->b, c->cfg.provider, c->now);
    bool open = n->state == CONN_FORWARDING;
    if (r != AUTHORITY_OK && (open || (r != AUTHORITY_NO_SERVICE && r != AUTHORITY_SERVICE_EXPIRED)))
        return session_reason_auth(r); /* the other two may have changed: READING asks again */
    if (s && authority_check_target(&s->s, w->any_target, &w->target) != AUTHORITY_OK)
        return session_reason_auth(AUTHORITY_TARGET);
    if (!session_admitting(c))
        return session_reason_of(WHY_DRAINING);
    return session_reason_of(WHY_NONE);
}

/* What can be said of a request before anybody is asked who it is. */
static struct session_reason first_look(struct session_core *c, const struct session_request *rq,
                                        struct session_wait *w)
{
    if (c->cfg.policy == SESSION_POLICY_DENY && !base_mutant("policy.deny"))
        return session_reason_auth(AUTHORITY_DENY);
    enum authority_reason r = identity_reason(rq->identity);
    if (r == AUTHORITY_OK && rq->identity == SESSION_ID_URI &&
        authority_identity_check(CONTRACT_IDENTITY_URI, base_str_of(rq->uri), NULL) != BASE_OK &&
        !base_mutant("identity.normal"))
        r = AUTHORITY_BAD_IDENTITY;
    if (r != AUTHORITY_OK)
        return session_reason_auth(r);
    if (!c->started || !c->listed[CONTRACT_BINDING])
        return session_reason_of(WHY_NOT_LISTED);
    if (rq->identity == SESSION_ID_TOKEN) {
        w->identity_kind = CONTRACT_IDENTITY_USER;
        w->standing.token = true;
        return session_reason_of(WHY_NONE);
    }
    w->identity_kind = CONTRACT_IDENTITY_URI;
    (void)base_copy(w->identity, sizeof w->identity, rq->uri);
    return session_reason_of(
        authority_digest(w->digest, CONTRACT_IDENTITY_URI, rq->uri) == BASE_OK ? WHY_NONE : WHY_BUSY);
}

int session_request(struct session_core *c, const struct session_request *rq)
{
    struct session_wait w = {.flow = rq->flow,
                             .since = c->now,
                             .transport = rq->transport,
                             .any_target = rq->any_target,
                             .target = rq->target,
                             .correlation = rq->correlation};
    (void)base_copy(w.credential_id, sizeof w.credential_id, rq->credential_id);
    struct session_reason why = first_look(c, rq, &w);
    if (why.name)
        session_refuse(c, NULL, w.flow, why, 0, &w.correlation, w.credential_id);
    else
        session_door(c, &w);
    return BASE_OK;
}
