/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/reviewer.h - asks the API server whether the sender of a bearer token may `get` a page: TokenReview,
 * then SubjectAccessReview, ten a second at most, so that nobody without a token makes us flood it.
 *
 * Driving, on the control loop, which never waits. The bytes are review.h's; the token is in no log and no
 * error text, and what held it is wiped.
 */
#ifndef AGENT_REVIEWER_H
#define AGENT_REVIEWER_H

#include "base/str.h"
#include "base/time.h"

struct kube_call;
struct kube_client;

struct agent_reviewer { /* one page's; const but for reviews_at */
    struct kube_client *client;
    const char *audience; /* NULL: the API server's own */
    const char *path;     /* the nonResourceURL */
    const char *remedy;   /* what to say to somebody who may not */
    base_time reviews_at; /* when the next one may begin; 0 at first */
};
/* status 0: the sender may; else the HTTP status (401, 403, 503) and why. */
typedef void (*agent_reviewed_fn)(void *arg, int status, const char *why);
struct agent_review { /* the caller's memory, zero at first; valid until the answer or agent_review_cancel */
    struct agent_reviewer *by;
    struct kube_call *call; /* NULL: nothing is under way */
    agent_reviewed_fn fn;
    void *arg;
    char user[256]; /* "" = not known yet */
};

/* May another one begin now? True = yes, and counted. */
bool agent_reviewer_take(struct agent_reviewer *by);
/* `fn` is called once, perhaps before this returns. */
void agent_review_begin(struct agent_review *r, struct agent_reviewer *by, struct base_str token,
                        agent_reviewed_fn fn, void *arg);
/* `fn` is not called any more. */
void agent_review_cancel(struct agent_review *r);

#endif
