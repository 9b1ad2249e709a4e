/* SPDX-License-Identifier: Apache-2.0
 *
 * authority/ask.h - what a policy asks outside, as text and back: TokenReview (policy `kubernetes` with
 * bearer tokens) and the operator's webhook (policy `webhook`).
 *
 * Pure: builds requests, judges answers; sending them is the agent's work (agent/ask.c). An answer is worth
 * something only when it is whole, about this very question, and within the caps; anything else is
 * BASE_EPROTO: no verdict. That is never an allowance, and never a refusal either: a broken authority must
 * not end sessions faster than their deadlines do. Source: EXPECTATIONS.md A6, B2, B3, B9; the schema is in
 * OPERATIONS.md.
 */
#ifndef AUTHORITY_ASK_H
#define AUTHORITY_ASK_H

#include "authority/identity.h"
#include "authority/policy.h"
#include "base/mem.h"

#define AUTHORITY_API "holdfast.masque.galactic.datumapis.com/v1"
#define AUTHORITY_KIND "AuthorizationReview"
#define AUTHORITY_AUDIENCE "holdfast.masque.galactic.datumapis.com"
#define AUTHORITY_ANSWER_MAX ((size_t)65536) /* bytes of an answer that are looked at */

enum authority_question {
    AUTHORITY_ASK_NONE = 0,
    AUTHORITY_ASK_IDENTITY, /* who holds this bearer token? (TokenReview) */
    AUTHORITY_ASK_CONNECT,  /* may this connector have a session? */
    AUTHORITY_ASK_ACQUIRE,  /* may it get this /96, which nobody holds? */
    AUTHORITY_ASK_TAKEOVER, /* may it take this row over at this epoch? */
    AUTHORITY_ASK_REFRESH,  /* may its session go on? */
    AUTHORITY_ASK_RETIRE,   /* its session has ended; nobody waits for an answer */
};
const char *authority_question_name(enum authority_question q); /* "connect", … */

struct authority_ask { /* by value; no secret in it */
    enum authority_question question;
    uint64_t token; /* IDENTITY: handle of the bearer token (its flow), which only the asker can look up */
    struct base_uuid uid; /* of this question; the answer has to repeat it */
    enum contract_identity_kind identity_kind;
    char identity[AUTHORITY_IDENTITY_SIZE];
    char credential_id[65];
    char provider[CONTRACT_LABEL_SIZE];
    char node[CONTRACT_NODE_SIZE];
    char tenant[CONTRACT_LABEL_SIZE];
    char connector[CONTRACT_CONNECTOR_SIZE];
    char vpc[CONTRACT_LABEL_SIZE];
    char service[CONTRACT_NAME_SIZE];
    bool has_prefix;
    struct base_prefix prefix;
    int64_t epoch; /* TAKEOVER: the observed one; REFRESH, RETIRE: the session's; 0 = none */
    struct base_correlation correlation;
};

enum authority_verdict { AUTHORITY_ALLOWED = 1, AUTHORITY_DENIED, AUTHORITY_UNAVAILABLE };
struct authority_answer {
    enum authority_verdict verdict;
    base_time grant;                    /* allowed by the webhook: at most AUTHORITY_GRANT_MAX */
    char user[AUTHORITY_IDENTITY_SIZE]; /* allowed by a TokenReview: in normal form */
    char credential_id[65];             /* allowed by a TokenReview: SHA-256, hex */
    char reason[48];                    /* denied by the webhook: CamelCase, for the log; "" = none given */
};

/* The webhook's question. BASE_OK, BASE_EFULL, BASE_ENOMEM. */
int authority_webhook_request(struct base_buf *out, const struct authority_ask *ask);
/* Its answer to `ask`; `wall` is now, for validUntil. BASE_OK (verdict ALLOWED or DENIED), BASE_EPROTO with
 * the member and what is expected of it (never the value), BASE_ENOMEM. */
int authority_webhook_answer(struct authority_answer *ret, const struct authority_ask *ask,
                             struct base_str json, base_wall wall, struct base_err *err);

/* The body of a TokenReview; holds the token: to be wiped. BASE_OK, BASE_EINVAL (not a bearer token),
 * BASE_EFULL, BASE_ENOMEM. */
int authority_review_request(struct base_buf *out, struct base_str token);
/* Its answer. BASE_OK: ALLOWED (`user`, `credential_id`) or DENIED (not authenticated, or for another
 * audience); BASE_EPROTO, BASE_ENOMEM as above. */
int authority_review_answer(struct authority_answer *ret, struct base_str json, struct base_err *err);

#endif
