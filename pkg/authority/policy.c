/* SPDX-License-Identifier: Apache-2.0 */
#include "authority/policy.h"

#include "base/hash.h"
#include "base/mutant.h"

#include <string.h>

struct reason_row {
    const char *name, *text;
    int status;
    unsigned retry_after;
};

static const struct reason_row reasons[] = {
    [AUTHORITY_OK] = {"OK", "", 200, 0},
    [AUTHORITY_DENY] = {"PolicyDeny",
                        "this agent admits nobody: the operator has not set authority.policy (kubernetes)",
                        403, 0},
    [AUTHORITY_NO_IDENTITY] = {"NoIdentity", "the client certificate has no URI SAN; exactly one is needed",
                               403, 0},
    [AUTHORITY_MANY_IDENTITIES] = {"ManyIdentities",
                                   "the client certificate has more than one URI SAN; exactly one is needed",
                                   403, 0},
    [AUTHORITY_BAD_IDENTITY] =
        {"BadIdentity",
         "the identity must be printable ASCII of at most 512 bytes in its normal form: a URI with scheme "
         "and host in lower case, without percent-encoding, query or dot segments",
         403, 0},
    [AUTHORITY_NO_BINDING] = {"NoBinding", "no ConnectorBinding names this identity", 403, 0},
    [AUTHORITY_AMBIGUOUS] = {"AmbiguousIdentity",
                             "two ConnectorBindings name this identity; remove it from one of them", 403, 0},
    [AUTHORITY_SUSPENDED] = {"Suspended", "the ConnectorBinding is suspended", 403, 1},
    [AUTHORITY_BINDING_DELETING] = {"BindingDeleting", "the ConnectorBinding is being deleted", 403, 0},
    [AUTHORITY_NO_SERVICE] = {"NoService", "the ProviderService that the binding names does not exist", 503,
                              5},
    [AUTHORITY_SERVICE_REVOKED] = {"ServiceRevoked", "the ProviderService is revoked", 403, 0},
    [AUTHORITY_SERVICE_EXPIRED] = {"ServiceExpired", "the ProviderService's validUntil is past", 503, 1},
    [AUTHORITY_SERVICE_MISMATCH] =
        {"ServiceMismatch", "the ProviderService is of another provider, tenant or VPC than the binding", 403,
         0},
    [AUTHORITY_TARGET] = {"TargetNotAllowed", "the target is outside the service's destinations", 400, 0},
    [AUTHORITY_BINDING_CHANGED] = {"BindingChanged", "the ConnectorBinding was made again or changed", 503,
                                   1},
    [AUTHORITY_IDENTITY_REMOVED] = {"IdentityRemoved", "the ConnectorBinding no longer names this identity",
                                    403, 0},
    [AUTHORITY_PREFIX_CHANGED] = {"PrefixChanged", "the connector's reserved prefix changed", 503, 1},
    [AUTHORITY_SERVICE_CHANGED] = {"ServiceChanged", "the ProviderService was made again or changed", 503, 1},
    [AUTHORITY_NO_CREDENTIALS] = {"NoCredentials", "neither a client certificate nor a bearer token was sent",
                                  401, 0},
    [AUTHORITY_BAD_TOKEN] = {"BadToken",
                             "the Authorization header must be 'Bearer ' and one token of at most 7168 bytes",
                             401, 0},
    [AUTHORITY_UNAUTHENTICATED] = {"Unauthenticated",
                                   "the bearer token is not valid, or not for the audience "
                                   "holdfast.masque.galactic.datumapis.com",
                                   401, 0},
    [AUTHORITY_IDENTITY_CHANGED] = {"IdentityChanged", "the bearer token names another user than before", 403,
                                    0},
    [AUTHORITY_NOT_PERMITTED] = {"NotPermitted", "the operator's authorization service said no", 403, 0},
    [AUTHORITY_TAKEOVER_NOT_PERMITTED] = {"TakeoverNotPermitted",
                                          "the operator's authorization service did not permit this takeover",
                                          403, 0},
};

const char *authority_reason_name(enum authority_reason r)
{
    return reasons[r].name;
}

const char *authority_reason_text(enum authority_reason r)
{
    return reasons[r].text;
}

int authority_reason_status(enum authority_reason r, unsigned *ret_retry_after)
{
    if (ret_retry_after)
        *ret_retry_after = reasons[r].retry_after;
    return reasons[r].status;
}

int authority_digest(uint8_t ret[AUTHORITY_DIGEST_SIZE], enum contract_identity_kind kind, const char *value)
{
    const char *tag = kind == CONTRACT_IDENTITY_URI ? "uri\n" : "user\n";
    return base_sha256(ret, tag, strlen(tag), value, strlen(value));
}

uint64_t authority_last_mark(const char *node, const char *generation)
{
    uint64_t h = base_fnv1a(BASE_FNV1A, node, strlen(node));
    if (node[0] == '\0')
        return 0;
    h = base_fnv1a(h, "/", 1);
    return base_fnv1a(h, generation, strlen(generation)) | 1;
}

int authority_binding_of(struct authority_binding *ret, const struct contract_binding *b,
                         const struct authority_binding *old)
{
    uint8_t digests[CONTRACT_IDENTITIES_MAX][AUTHORITY_DIGEST_SIZE];
    uint8_t n =
        b->spec.n_identities < CONTRACT_IDENTITIES_MAX ? b->spec.n_identities : CONTRACT_IDENTITIES_MAX;
    bool same = old && b->meta.generation > 0 && b->meta.generation == old->generation &&
                base_uuid_eq(&b->meta.uid, &old->uid);
    memset(digests, 0, sizeof digests);
    if (same)
        memcpy(digests, old->identities, sizeof digests);
    for (uint8_t i = 0; i < n && !same; i++) {
        int rc = authority_digest(digests[i], b->spec.identities[i].kind, b->spec.identities[i].value);
        if (rc != BASE_OK)
            return rc;
    }
    memset(ret, 0, sizeof *ret);
    (void)base_copy(ret->name, sizeof ret->name, b->meta.name);
    ret->uid = b->meta.uid;
    (void)base_copy(ret->rv, sizeof ret->rv, b->meta.rv);
    (void)base_copy(ret->tenant, sizeof ret->tenant, b->spec.tenant);
    (void)base_copy(ret->connector, sizeof ret->connector, b->spec.connector);
    (void)base_copy(ret->vpc, sizeof ret->vpc, b->spec.vpc);
    (void)base_copy(ret->service, sizeof ret->service, b->spec.service);
    ret->generation = b->meta.generation;
    ret->n_identities = n;
    memcpy(ret->identities, digests, sizeof digests);
    ret->suspended = b->spec.suspended;
    ret->deleting = b->meta.deleting != 0;
    ret->takeover_denied = b->spec.takeover == CONTRACT_TAKEOVER_DENIED;
    ret->has_prefix = b->status.has_prefix;
    ret->prefix = b->status.prefix;
    ret->grant_seconds = b->spec.grant_seconds;
    ret->last_mark = authority_last_mark(b->status.last.node, b->status.last.generation);
    ret->ready = b->status.ready.status == CONTRACT_COND_TRUE;
    if (b->status.ready.status == CONTRACT_COND_FALSE)
        (void)base_copy(ret->unready, sizeof ret->unready, b->status.ready.reason);
    ret->ready_since = b->status.ready.transition;
    return BASE_OK;
}

static uint64_t mark_prefix(uint64_t h,
                            const struct base_prefix *p) /* FNV-1a: tells changes apart, defends nothing */
{
    return base_fnv1a(base_fnv1a(h, p->addr.b, sizeof p->addr.b), &p->len, 1);
}

static uint64_t mark_of(const struct authority_service *s)
{
    uint64_t h = mark_prefix(UINT64_C(0xcbf29ce484222325), &s->pool);
    for (uint8_t i = 0; i < s->n_destinations; i++)
        h = mark_prefix(h, &s->destinations[i]);
    return h;
}

void authority_service_of(struct authority_service *ret, const struct contract_service *s,
                          const struct authority_service *old, base_time read, base_wall wall)
{
    bool same = old && base_uuid_eq(&old->uid, &s->meta.uid) && old->valid_until == s->valid_until;
    base_time until = same && !base_mutant("service.convert-once") ? old->until : 0;
    if (until == 0) {
        base_wall left = s->valid_until > wall ? s->valid_until - wall : 0; /* us */
        base_time max = AUTHORITY_SERVICE_MAX;
        base_time span = left > max / BASE_US && !base_mutant("service.clamp") ? max : left * BASE_US;
        until = base_time_add(read, span);
    }
    memset(ret, 0, sizeof *ret);
    (void)base_copy(ret->name, sizeof ret->name, s->meta.name);
    ret->uid = s->meta.uid;
    (void)base_copy(ret->rv, sizeof ret->rv, s->meta.rv);
    (void)base_copy(ret->provider, sizeof ret->provider, s->provider);
    (void)base_copy(ret->tenant, sizeof ret->tenant, s->tenant);
    (void)base_copy(ret->vpc, sizeof ret->vpc, s->vpc);
    ret->pool = s->pool;
    ret->n_destinations = s->n_destinations;
    memcpy(ret->destinations, s->destinations, sizeof ret->destinations);
    ret->revoked = s->revoked;
    ret->deleting = s->meta.deleting != 0;
    ret->valid_until = s->valid_until;
    ret->until = until;
    ret->mark = mark_of(ret);
}

bool authority_has_identity(const struct authority_binding *b, const uint8_t digest[AUTHORITY_DIGEST_SIZE])
{
    for (uint8_t i = 0; i < b->n_identities; i++)
        if (memcmp(b->identities[i], digest, AUTHORITY_DIGEST_SIZE) == 0)
            return true;
    return false;
}

enum authority_reason authority_check_binding(const struct authority_binding *b,
                                              const uint8_t digest[AUTHORITY_DIGEST_SIZE])
{
    if (b->deleting && !base_mutant("binding.deleting"))
        return AUTHORITY_BINDING_DELETING;
    if (!authority_has_identity(b, digest) && !base_mutant("binding.identity"))
        return AUTHORITY_IDENTITY_REMOVED;
    if (b->suspended && !base_mutant("binding.suspended"))
        return AUTHORITY_SUSPENDED;
    return AUTHORITY_OK;
}

enum authority_reason authority_check_service(const struct authority_service *s,
                                              const struct authority_binding *b, const char *provider,
                                              base_time now)
{
    if (!s)
        return AUTHORITY_NO_SERVICE;
    if ((strcmp(s->provider, provider) != 0 || strcmp(s->tenant, b->tenant) != 0 ||
         strcmp(s->vpc, b->vpc) != 0) &&
        !base_mutant("service.tenant"))
        return AUTHORITY_SERVICE_MISMATCH;
    if ((s->revoked || s->deleting) && !base_mutant("service.revoked"))
        return AUTHORITY_SERVICE_REVOKED;
    if (now >= s->until)
        return AUTHORITY_SERVICE_EXPIRED;
    return AUTHORITY_OK;
}

enum authority_reason authority_check_target(const struct authority_service *s, bool any,
                                             const struct base_prefix *target)
{
    if (any || base_mutant("request.target"))
        return AUTHORITY_OK;
    for (uint8_t i = 0; i < s->n_destinations; i++)
        if (base_prefix_covers(&s->destinations[i], target))
            return AUTHORITY_OK;
    return AUTHORITY_TARGET;
}

void authority_pin_of(struct authority_pin *ret, const struct authority_binding *b,
                      const struct authority_service *s, const uint8_t digest[AUTHORITY_DIGEST_SIZE],
                      const struct base_prefix *prefix)
{
    *ret = (struct authority_pin){
        .binding_uid = b->uid, .service_uid = s->uid, .prefix = *prefix, .mark = s->mark};
    memcpy(ret->digest, digest, sizeof ret->digest);
}

enum authority_reason authority_check_refresh(const struct authority_pin *pin,
                                              const struct authority_binding *b,
                                              const struct authority_service *s)
{
    /* tenant, connector, VPC and service name are immutable within a UID */
    if (!base_uuid_eq(&pin->binding_uid, &b->uid) && !base_mutant("refresh.binding"))
        return AUTHORITY_BINDING_CHANGED;
    if ((!b->has_prefix || !base_prefix_eq(&pin->prefix, &b->prefix)) && !base_mutant("refresh.prefix"))
        return AUTHORITY_PREFIX_CHANGED;
    if ((!base_uuid_eq(&pin->service_uid, &s->uid) || pin->mark != s->mark) &&
        !base_mutant("refresh.service"))
        return AUTHORITY_SERVICE_CHANGED;
    return AUTHORITY_OK;
}

base_time authority_grant(const struct authority_binding *b, const struct contract_timing *t)
{
    base_time grant = base_mutant("grant.cap") ? t->grant : base_time_min(t->grant, AUTHORITY_GRANT_MAX);
    if (b->grant_seconds > 0 && !base_mutant("grant.binding"))
        grant = base_time_min(grant, (base_time)b->grant_seconds * BASE_SEC);
    return grant;
}
