/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/audit_page.h - GET /audit: the trail of this node, to who may read it.
 *
 * Driving, on the control loop, which never waits: the bearer token is reviewed at the API server
 * (TokenReview for AUDIT_PAGE_AUDIENCE, then SubjectAccessReview: verb get on the nonResourceURL /audit),
 * then a thread of its own, at low priority, reads the files. The token comes in Authorization, or in
 * Holdfast-Authorization where a proxy keeps the other for itself. It is kept for the review only.
 *
 *     /audit?correlationID=…&object=…&connector=…&since=…&until=…&after=SEQ&limit=N
 *
 * answers with the sealed lines as they stand in the files, oldest first, and one line more:
 * {"chain":"page","node":"edge1","next":SEQ}, where `next` (when it is there) is the `after` of the next
 * page. 400 names a parameter that is wrong; 401, 403; 429 when AUDIT_PAGE_OPEN requests are open or reviews
 * come too fast; 503 when the review could not be made. Bounds: 1000 lines, 4 MiB, 5 s of reading a page.
 */
#ifndef AGENT_AUDIT_PAGE_H
#define AGENT_AUDIT_PAGE_H

#include "base/err.h"

#define AGENT_AUDIT_PAGE_OPEN 4
#define AGENT_AUDIT_PAGE_LINES 1000
#define AGENT_AUDIT_PAGE_BYTES (4 * 1024 * 1024)

struct agent_audit_page;
struct agent_web;
struct kube_client;
struct loop;
struct loop_log;

/* Adds the page to `web`. `client`, `log` and `dir` must outlive it; it must be freed before `web` and
 * `client`. `node` is copied. */
int agent_audit_page_new(struct agent_audit_page **ret, struct loop *l, struct agent_web *web,
                         struct kube_client *client, const char *dir, const char *node, struct loop_log *log,
                         struct base_err *err);
struct agent_audit_page *agent_audit_page_free(struct agent_audit_page *p);

/* Pure pieces, for tests. */
struct audit_query;
/* One parameter. BASE_OK, or BASE_EINVAL with its name, value and remedy. */
int agent_audit_page_param(struct audit_query *q, unsigned *limit, const char *key, const char *value,
                           struct base_err *err);

#endif
