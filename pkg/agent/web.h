/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/web.h - the small HTTP server behind /livez, /readyz and /metrics.
 *
 * Driving, on the control loop (so that /livez answers exactly when that loop turns). GET and HEAD only. At
 * most 32 clients; when more come, the longest quiet one has to go, so that nobody keeps the kubelet out.
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

/* ---- a page whose answer comes later */
struct agent_web_ask; /* one GET; lives until it is answered */
/* Must answer (agent_web_answer), now or later, on the loop's thread. */
typedef void (*agent_web_ask_fn)(void *arg, struct agent_web_ask *ask);
#define AGENT_WEB_LATER_MAX 4
/* At most AGENT_WEB_LATER_MAX such paths; `path` is borrowed; `fn` NULL takes the path away. Requests that
 * are open when the server is freed get 503. */
void agent_web_later(struct agent_web *w, const char *path, agent_web_ask_fn fn, void *arg);
/* The value of a header, or NULL. Borrowed for the life of the ask. */
const char *agent_web_header(struct agent_web_ask *ask, const char *name);
/* Every `key=value` of the query, in order; decoded; value NULL when there is no '='. False ends it. */
typedef bool (*agent_web_query_fn)(void *arg, const char *key, const char *value);
void agent_web_query(struct agent_web_ask *ask, agent_web_query_fn fn, void *arg);
/* Takes the bytes of `body` (NULL: none). `retry_after`: s, 0 = none. The ask is gone after it. */
void agent_web_answer(struct agent_web_ask *ask, int status, const char *content_type, struct base_buf *body,
                      unsigned retry_after);
/* The same with one line of plain text. */
void agent_web_say(struct agent_web_ask *ask, int status, unsigned retry_after, const char *text);
uint16_t agent_web_port(const struct agent_web *w);

#endif
