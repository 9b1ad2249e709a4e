/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/metrics_page.h - GET /metrics: in Prometheus' text format, or OpenMetrics when Accept asks for it; to
 * everybody, or to who may `get` the nonResourceURL /metrics.
 *
 * Driving, on the control loop, which never waits. With authentication the bearer token is reviewed at the
 * API server (TokenReview, then SubjectAccessReview); a good answer counts for AGENT_METRICS_CACHE (by the
 * token's hash; the token itself is not kept), so that a scraper costs two requests a minute. 401, 403; 429
 * when reviews come too fast; 503 when the review could not be made. Prometheus then keeps its last samples.
 */
#ifndef AGENT_METRICS_PAGE_H
#define AGENT_METRICS_PAGE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

#define AGENT_METRICS_CACHE (60 * BASE_SEC)

struct agent_metrics_page;
struct agent_web;
struct base_buf;
struct kube_client;
struct loop_log;

/* Writes the samples in Prometheus' text format. */
typedef void (*agent_metrics_fn)(void *arg, struct base_buf *b);

/* Adds the page to `web`. `client` NULL: no authentication. All must outlive it, and it is freed before `web`
 * and `client`. BASE_OK or BASE_ENOMEM. */
int agent_metrics_page_new(struct agent_metrics_page **ret, struct agent_web *web, struct kube_client *client,
                           agent_metrics_fn fn, void *arg, struct loop_log *log, struct base_err *err);
struct agent_metrics_page *agent_metrics_page_free(struct agent_metrics_page *p);

/* Pure pieces, for tests. */
/* Does this Accept header (NULL: none) prefer OpenMetrics 1.0 to the old text format? */
bool agent_metrics_wants_open(const char *accept);
/* The same samples as OpenMetrics: a counter's family has no `_total`, and `# EOF` stands at the end.
 * BASE_OK, BASE_EFULL, BASE_ENOMEM. */
int agent_metrics_open(struct base_buf *out, struct base_str text);
/* process_* of this process, read from /proc. */
void agent_metrics_process(struct base_buf *b);

#endif
