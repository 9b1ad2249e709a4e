/* SPDX-License-Identifier: Apache-2.0
 *
 * authority/policy.h - who may have a session, for how long, and what a refresh may change.
 *
 * Pure: no clock, no I/O. Bindings and services are kept in a compact form (identities as SHA-256 digests),
 * by value; nothing here keeps a pointer. Functions that decide return an enum authority_reason; AUTHORITY_OK
 * = go on. Source: contract sections 2 (ConnectorBinding, ProviderService), 3 (prefixes) and 6; EXPECTATIONS.md A6,
 * B2, B3, B8.
 */
#ifndef AUTHORITY_POLICY_H
#define AUTHORITY_POLICY_H

#include "contract/contract.h"

#define AUTHORITY_DIGEST_SIZE BASE_SHA256_SIZE
/* A service's validUntil is at most this far from the read that showed it (5 min + 2 s of wall clock skew). */
#define AUTHORITY_SERVICE_MAX (302 * BASE_SEC)
#define AUTHORITY_GRANT_MAX (30 * BASE_SEC)

enum authority_reason {
    AUTHORITY_OK = 0,
    AUTHORITY_DENY,            /* policy `deny` */
    AUTHORITY_NO_IDENTITY,     /* certificate without a URI SAN */
    AUTHORITY_MANY_IDENTITIES, /* more than one URI SAN */
    AUTHORITY_BAD_IDENTITY,    /* empty, too long, or with a NUL */
    AUTHORITY_NO_BINDING,      /* nobody names this identity */
    AUTHORITY_AMBIGUOUS,       /* two bindings name it: admits nobody */
    AUTHORITY_SUSPENDED,
    AUTHORITY_BINDING_DELETING,
    AUTHORITY_NO_SERVICE,       /* the binding's service does not exist */
    AUTHORITY_SERVICE_REVOKED,  /* revoked (final) or being deleted */
    AUTHORITY_SERVICE_EXPIRED,  /* validUntil is past */
    AUTHORITY_SERVICE_MISMATCH, /* of another provider, tenant or VPC than the binding */
    AUTHORITY_TARGET,           /* the request's target is outside the service's destinations */
    /* what a refresh may not change */
    AUTHORITY_BINDING_CHANGED,  /* another UID, tenant, connector or VPC */
    AUTHORITY_IDENTITY_REMOVED, /* the session's identity is no longer the binding's */
    AUTHORITY_PREFIX_CHANGED,   /* the reservation is gone or another one */
    AUTHORITY_SERVICE_CHANGED,  /* another service, pool or destinations */
    /* what is asked outside (authority/standing.h) */
    AUTHORITY_NO_CREDENTIALS,         /* neither certificate nor bearer token */
    AUTHORITY_BAD_TOKEN,              /* an Authorization header that is no bearer token */
    AUTHORITY_UNAUTHENTICATED,        /* TokenReview: not authenticated, or for another audience */
    AUTHORITY_IDENTITY_CHANGED,       /* the token names another user than before */
    AUTHORITY_NOT_PERMITTED,          /* the webhook says no */
    AUTHORITY_TAKEOVER_NOT_PERMITTED, /* the webhook says no to this takeover at this epoch */
    AUTHORITY_REASON_N,
};
const char *authority_reason_name(enum authority_reason r);
/* For people: one sentence with what to do; never NULL. */
const char *authority_reason_text(enum authority_reason r);
/* HTTP status (400, 401, 403 or 503) and Retry-After in s (0 = none) of a refusal. */
int authority_reason_status(enum authority_reason r, unsigned *ret_retry_after);

struct authority_binding {
    char name[CONTRACT_NAME_SIZE];
    struct base_uuid uid;
    char rv[CONTRACT_RV_SIZE];
    char tenant[CONTRACT_LABEL_SIZE];
    char connector[CONTRACT_CONNECTOR_SIZE];
    char vpc[CONTRACT_LABEL_SIZE];
    char service[CONTRACT_NAME_SIZE];
    int64_t generation; /* of the spec: identities are those of this one */
    uint8_t n_identities;
    uint8_t identities[CONTRACT_IDENTITIES_MAX][AUTHORITY_DIGEST_SIZE];
    bool suspended, deleting, takeover_denied, has_prefix;
    struct base_prefix prefix;
    int32_t grant_seconds; /* 0 = the provider's own */
    /* of the status, as much as the next write of it needs */
    uint64_t last_mark;                     /* authority_last_mark of lastSession */
    bool ready;                             /* condition Ready is True */
    char unready[CONTRACT_REASON_SIZE / 2]; /* its reason when it is False ("" = longer than any of ours) */
    base_wall ready_since;
};
/* Tells one report of a session from another; 0 = none. */
uint64_t authority_last_mark(const char *node, const char *generation);
/* `old` (NULL = nothing) is what was known of it: the digests of the same UID and generation are taken over.
 * BASE_OK or BASE_ENOMEM (digest); *ret is whole or untouched. */
int authority_binding_of(struct authority_binding *ret, const struct contract_binding *b,
                         const struct authority_binding *old);

struct authority_service {
    char name[CONTRACT_NAME_SIZE];
    struct base_uuid uid;
    char rv[CONTRACT_RV_SIZE];
    char provider[CONTRACT_LABEL_SIZE];
    char tenant[CONTRACT_LABEL_SIZE];
    char vpc[CONTRACT_LABEL_SIZE];
    struct base_prefix pool;
    uint8_t n_destinations;
    struct base_prefix destinations[CONTRACT_DESTINATIONS_MAX];
    bool revoked, deleting;
    base_wall valid_until; /* the value that `until` was made from */
    base_time until;       /* on CLOCK_BOOTTIME, converted once per value */
    uint64_t mark;         /* changes when the pool or the destinations do */
};
/* `old` is what was known of it (NULL = nothing): the same UID and validUntil keep their conversion. `read`
 * is CLOCK_BOOTTIME when the value was seen, `wall` CLOCK_REALTIME of the same moment. */
void authority_service_of(struct authority_service *ret, const struct contract_service *s,
                          const struct authority_service *old, base_time read, base_wall wall);

/* Digest of one identity; the kind is part of it. BASE_OK or BASE_ENOMEM. */
int authority_digest(uint8_t ret[AUTHORITY_DIGEST_SIZE], enum contract_identity_kind kind, const char *value);
bool authority_has_identity(const struct authority_binding *b, const uint8_t digest[AUTHORITY_DIGEST_SIZE]);

/* May this binding have a session now? */
enum authority_reason authority_check_binding(const struct authority_binding *b,
                                              const uint8_t digest[AUTHORITY_DIGEST_SIZE]);
/* May this service carry it? `s` is NULL when there is no such service. */
enum authority_reason authority_check_service(const struct authority_service *s,
                                              const struct authority_binding *b, const char *provider,
                                              base_time now);
/* A target of `any`, or a prefix inside one of the destinations. */
enum authority_reason authority_check_target(const struct authority_service *s, bool any,
                                             const struct base_prefix *target);

/* What a session was admitted with. */
struct authority_pin {
    struct base_uuid binding_uid, service_uid;
    uint8_t digest[AUTHORITY_DIGEST_SIZE];
    struct base_prefix prefix;
    uint64_t mark; /* of the service */
};
void authority_pin_of(struct authority_pin *ret, const struct authority_binding *b,
                      const struct authority_service *s, const uint8_t digest[AUTHORITY_DIGEST_SIZE],
                      const struct base_prefix *prefix);
/* Is what is known now still the same connector, tenant, VPC, service and /96? */
enum authority_reason authority_check_refresh(const struct authority_pin *pin,
                                              const struct authority_binding *b,
                                              const struct authority_service *s);
/* How long one proof is good: the smallest of the provider's, the binding's and 30 s. */
base_time authority_grant(const struct authority_binding *b, const struct contract_timing *t);

#endif
