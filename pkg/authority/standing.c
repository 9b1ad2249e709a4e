/* SPDX-License-Identifier: Apache-2.0 */
#include "authority/standing.h"

#include "base/mutant.h"

const char *authority_policy_name(enum authority_policy p)
{
    switch (p) {
    case AUTHORITY_POLICY_DENY:
        break;
    case AUTHORITY_POLICY_KUBERNETES:
        return "kubernetes";
    case AUTHORITY_POLICY_WEBHOOK:
        return "webhook";
    }
    return "deny";
}

enum authority_question authority_authorize(enum authority_policy p, const struct authority_standing *s)
{
    if (s->token && s->identity_t0 == 0)
        return AUTHORITY_ASK_IDENTITY;
    if (p == AUTHORITY_POLICY_WEBHOOK && s->permit_t0 == 0 && !base_mutant("policy.connect"))
        return AUTHORITY_ASK_CONNECT;
    return AUTHORITY_ASK_NONE;
}

enum authority_question authority_claim(enum authority_policy p, const struct authority_standing *s,
                                        const struct base_prefix *prefix, int64_t epoch)
{
    if (p != AUTHORITY_POLICY_WEBHOOK || base_mutant("policy.claim"))
        return AUTHORITY_ASK_NONE;
    if (s->claim_permitted && (s->claim_epoch == epoch || base_mutant("policy.claim-epoch")) &&
        base_prefix_eq(&s->claim_prefix, prefix))
        return AUTHORITY_ASK_NONE;
    return epoch > 0 ? AUTHORITY_ASK_TAKEOVER : AUTHORITY_ASK_ACQUIRE;
}

/* Between 2/5 and the whole of `span` after t0: twice it still fits before the end. */
static base_time turn(base_time t0, base_time span, uint64_t draw)
{
    return base_time_add(t0, span * 2 / 5 + (base_time)(draw % (uint64_t)(span * 3 / 5 + 1)));
}

base_time authority_refresh(enum authority_policy p, const struct authority_standing *s, base_time interval,
                            base_time grant, uint64_t draw, enum authority_question *ret)
{
    base_time at = BASE_TIME_NEVER, t;

    *ret = AUTHORITY_ASK_NONE;
    if (s->retired)
        return at;
    if (s->token && !base_mutant("policy.review-again")) {
        at = turn(s->identity_t0, base_time_min(interval, grant / 3), draw);
        *ret = AUTHORITY_ASK_IDENTITY;
    }
    if (p == AUTHORITY_POLICY_WEBHOOK && !base_mutant("policy.refresh")) {
        t = turn(s->permit_t0, base_time_min(interval, base_time_min(grant, s->permit) / 3), draw >> 20);
        if (t < at)
            *ret = AUTHORITY_ASK_REFRESH;
        at = base_time_min(at, t);
    }
    return at;
}

enum authority_reason authority_told(struct authority_standing *s, const struct authority_ask *asked,
                                     const struct authority_answer *answer, base_time t0)
{
    enum authority_question q = asked->question;

    if (answer->verdict == AUTHORITY_DENIED && !base_mutant("policy.denied")) {
        s->retired = true;
        return q == AUTHORITY_ASK_IDENTITY   ? AUTHORITY_UNAUTHENTICATED
               : q == AUTHORITY_ASK_TAKEOVER ? AUTHORITY_TAKEOVER_NOT_PERMITTED
                                             : AUTHORITY_NOT_PERMITTED;
    }
    if (answer->verdict == AUTHORITY_UNAVAILABLE && !base_mutant("policy.unavailable"))
        return AUTHORITY_OK;
    switch (q) {
    case AUTHORITY_ASK_IDENTITY:
        if (asked->identity[0] != '\0' && strcmp(asked->identity, answer->user) != 0 &&
            !base_mutant("policy.same-user")) {
            s->retired = true;
            return AUTHORITY_IDENTITY_CHANGED;
        }
        s->identity_t0 = base_time_max(s->identity_t0, t0);
        break;
    case AUTHORITY_ASK_ACQUIRE:
    case AUTHORITY_ASK_TAKEOVER:
        s->claim_permitted = true;
        s->claim_epoch = asked->epoch;
        s->claim_prefix = asked->prefix;
        /* fallthrough */
    case AUTHORITY_ASK_CONNECT:
    case AUTHORITY_ASK_REFRESH:
        if (t0 < s->permit_t0) /* a late answer to an earlier question */
            break;
        s->permit_t0 = t0;
        s->permit = base_mutant("policy.grant-cap") ? answer->grant
                                                    : base_time_min(answer->grant, AUTHORITY_GRANT_MAX);
        break;
    case AUTHORITY_ASK_NONE:
    case AUTHORITY_ASK_RETIRE:
        break;
    }
    return AUTHORITY_OK;
}

base_time authority_until(enum authority_policy p, const struct authority_standing *s, base_time grant)
{
    base_time until = BASE_TIME_NEVER;

    if (s->retired)
        return 0;
    if (s->token && !base_mutant("policy.identity-until"))
        until = s->identity_t0 > 0 ? base_time_add(s->identity_t0, grant) : 0;
    if (p == AUTHORITY_POLICY_WEBHOOK && !base_mutant("policy.permit-until"))
        until = base_time_min(
            until, s->permit_t0 > 0 ? base_time_add(s->permit_t0, base_time_min(grant, s->permit)) : 0);
    return until;
}

enum authority_question authority_retire(enum authority_policy p, struct authority_standing *s)
{
    bool told = p == AUTHORITY_POLICY_WEBHOOK && s->permit_t0 > 0;

    if (s->retired && !told)
        return AUTHORITY_ASK_NONE;
    s->retired = true;
    s->permit_t0 = 0;
    return told ? AUTHORITY_ASK_RETIRE : AUTHORITY_ASK_NONE;
}
