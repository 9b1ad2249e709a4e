/* SPDX-License-Identifier: Apache-2.0
 *
 * authority/standing.h - the one policy interface: authorize, refresh, retire.
 *
 * Pure. A standing is what one request or session has from its policy: what still has to be asked, what the
 * answers are worth and until when. The caller asks (an effect) and tells the answers. Policies:
 *
 *   deny        admits nobody; nothing is asked.
 *   kubernetes  what a ConnectorBinding says, kept fresh by one collection proof per node. Nothing is asked
 * for a client certificate; a bearer token is reviewed at the door and again for as long as the session
 * lasts. webhook     the same, and the operator's service is asked: at the door, for each acquire and
 * takeover (with the /96 and the observed epoch), again for as long as the session lasts; and told at the
 * end.
 *
 * A policy can only be stricter than the rest: whatever it allows, bindings, services, proofs and leases
 * still apply. Unavailable changes nothing: what was given runs out on its own deadline. Source: EXPECTATIONS.md A6,
 * B2, B3, B6, B9.
 */
#ifndef AUTHORITY_STANDING_H
#define AUTHORITY_STANDING_H

#include "authority/ask.h"

enum authority_policy { AUTHORITY_POLICY_DENY = 0, AUTHORITY_POLICY_KUBERNETES, AUTHORITY_POLICY_WEBHOOK };
const char *authority_policy_name(enum authority_policy p);

struct authority_standing { /* zero = nothing asked, nothing given */
    bool token;             /* the identity is a bearer token's */
    bool retired;           /* for good */
    base_time identity_t0;  /* of the last review that named the identity: before it was sent; 0 = none */
    base_time permit_t0;    /* of the webhook's last permission; 0 = none */
    base_time permit;       /* how long that is good */
    int64_t claim_epoch;    /* the epoch for which a takeover (0: an acquire) was permitted … */
    bool claim_permitted;   /* … once */
    struct base_prefix claim_prefix;
};

/* What must be asked next before this request may be admitted; NONE = it may (as far as the policy goes). */
enum authority_question authority_authorize(enum authority_policy p, const struct authority_standing *s);
/* Before a row is written: `epoch` is the one observed, 0 for a row that is not there. NONE = permitted; else
 * ACQUIRE or TAKEOVER. A permission is for this prefix and epoch only. */
enum authority_question authority_claim(enum authority_policy p, const struct authority_standing *s,
                                        const struct base_prefix *prefix, int64_t epoch);
/* When a session has to ask again, and what; BASE_TIME_NEVER and NONE when it has not. `interval` is the
 * proof interval, `grant` as for authority_until; `draw` is a random number, so that many sessions spread
 * over the interval. */
base_time authority_refresh(enum authority_policy p, const struct authority_standing *s, base_time interval,
                            base_time grant, uint64_t draw, enum authority_question *ret);
/* Applies an answer to `q`. `t0` is CLOCK_BOOTTIME before it was asked. Grants are capped here too. Returns
 * AUTHORITY_OK, or why the session or request ends. UNAVAILABLE: AUTHORITY_OK, and nothing has changed. */
enum authority_reason authority_told(struct authority_standing *s, const struct authority_ask *asked,
                                     const struct authority_answer *answer, base_time t0);
/* The end of what the policy has given; BASE_TIME_NEVER when it gives no end of its own, 0 when it gave
 * nothing. `grant` is how long one proof is good for this connector (authority_grant). */
base_time authority_until(enum authority_policy p, const struct authority_standing *s, base_time grant);
/* Nothing is allowed to it any more. RETIRE when the policy wants to hear of it, else NONE. */
enum authority_question authority_retire(enum authority_policy p, struct authority_standing *s);

#endif
