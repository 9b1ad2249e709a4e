/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/web.h - the small HTTP server behind /livez, /readyz and /metrics.
 *
 * Driving, on the control loop (so that /livez answers exactly when that loop turns). GET and HEAD only.
 */
#ifndef AGENT_WEB_H
#define AGENT_WEB_H

#include "base/err.h"
#include "base/mem.h"

struct loop;
struct agent_web;

/* Fills `body`, returns the HTTP status; 0 = no such path (404). `content_type` is preset to text/plain. */
typedef int (*agent_web_fn)(void *arg, const char *path, struct base_buf *body, const char **content_type);

/* `listen` is "[::]:9780"; `name` ("health.listen") stands in errors. BASE_OK, BASE_EINVAL, BASE_EIO (address
 * in use). */
int agent_web_new(struct agent_web **ret, struct loop *l, const char *name, const char *listen,
                  agent_web_fn fn, void *arg, struct base_err *err);
struct agent_web *agent_web_free(struct agent_web *w);
uint16_t agent_web_port(const struct agent_web *w);

#endif
