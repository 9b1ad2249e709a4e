/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/review.h - may the sender of a bearer token read a page? The bytes of a TokenReview and of the
 * SubjectAccessReview that follows it.
 *
 * Pure: who asks the API server is reviewer.c. The token is in no error text.
 */
#ifndef AGENT_REVIEW_H
#define AGENT_REVIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

#define AGENT_REVIEW_TOKEN_MAX 8192

struct agent_web_ask;
struct base_buf;

/* The token of Holdfast-Authorization (where a proxy keeps the other for itself) or Authorization. False:
 * none, or one that is no bearer token. Borrowed for the life of the ask. */
bool agent_review_bearer(struct agent_web_ask *web, struct base_str *ret);
/* The TokenReview's request. `audience` NULL: the API server's own. BASE_OK, BASE_EINVAL (too long),
 * BASE_ENOMEM, BASE_EFULL. */
int agent_review_token(struct base_buf *out, struct base_str token, const char *audience);
/* Takes the TokenReview's answer; writes the SubjectAccessReview's request (verb get on the nonResourceURL
 * `path`) and the user's name. BASE_OK; BASE_EDENIED: not authenticated, or not for `audience` (NULL: any);
 * BASE_EPROTO: no such answer. */
int agent_review_access(struct base_buf *out, struct base_str review, const char *audience, const char *path,
                        char *user, size_t size, struct base_err *err);
/* Takes the SubjectAccessReview's answer. BASE_OK, BASE_EDENIED (with `remedy` as its text), BASE_EPROTO. */
int agent_review_allowed(struct base_str access, const char *remedy, struct base_err *err);

#endif
