/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/ask.h - carries out what the policy asks outside: TokenReviews at the API server, the operator's
 * webhook; and keeps the connectors' bearer tokens, which nobody else sees.
 *
 * Driving, on the control thread's loop. Each question is answered once, with a verdict or with
 * "unavailable"; also from within agent_ask_start when it could not be sent. Tokens are kept under their
 * flow's number from the request until the flow has ended, because they are reviewed again; then they are
 * overwritten. They appear in no log, error text, metric, audit record or effect of the core. Source: mission
 * A6, B4, B8; the webhook's schema is in OPERATIONS.md.
 */
#ifndef AGENT_ASK_H
#define AGENT_ASK_H

#include "authority/ask.h"
#include "base/secret.h"

struct loop;
struct loop_log;
struct kube_client;
struct agent_ask;

struct agent_ask_config {
    struct kube_client *client; /* for TokenReviews; NULL = none */
    const char *url;            /* of the webhook, https; "" = none */
    const char *ca_file, *cert_file, *key_file;
    base_time timeout;   /* of one question */
    uint32_t max_tokens; /* flows at a time */
    struct loop_log *log;
};
typedef void (*agent_ask_fn)(void *arg, uint64_t ask, base_time t0, const struct authority_answer *answer);

/* BASE_OK, BASE_EINVAL (a file that cannot be used: which, why, remedy), BASE_ENOMEM, BASE_EIO. */
int agent_ask_new(struct agent_ask **ret, struct loop *l, const struct agent_ask_config *cfg, agent_ask_fn fn,
                  void *arg, struct base_err *err);
/* No callback after it; overwrites every token. NULL ok. */
struct agent_ask *agent_ask_free(struct agent_ask *a);

/* Takes `token` (NULL: nothing happens). */
void agent_ask_keep(struct agent_ask *a, uint64_t flow, struct base_secret *token);
/* The flow has ended or was refused. */
void agent_ask_forget(struct agent_ask *a, uint64_t flow);
uint32_t agent_ask_kept(const struct agent_ask *a);

/* `ask` 0: nobody waits, no callback. */
void agent_ask_start(struct agent_ask *a, uint64_t ask, const struct authority_ask *q);

enum agent_ask_result {
    AGENT_ASK_ALLOWED = 0,
    AGENT_ASK_DENIED,
    AGENT_ASK_UNAVAILABLE,
    AGENT_ASK_INVALID,
    AGENT_ASK_RESULTS
};
struct agent_ask_stats {
    uint64_t n[2][AGENT_ASK_RESULTS]; /* TokenReview, webhook */
    uint32_t waiting;
};
void agent_ask_stats(const struct agent_ask *a, struct agent_ask_stats *ret);

#endif
