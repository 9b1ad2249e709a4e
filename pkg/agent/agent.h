/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/agent.h - one provider agent: everything wired together, from configuration to exit code.
 *
 * Driving. The control thread runs agent_run(); data and audit have threads of their own. SIGTERM and SIGINT
 * drain: no new requests, every route is released, then the instance, then 0. SIGHUP reads the TLS files
 * and the configuration again (reload.h).
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/config.h"

struct agent;
/* Starts what needs no API server (listeners, audit, TLS), so that bad input is reported at once. BASE_OK or
 * the code of what failed, with a text that names the option. */
int agent_new(struct agent **ret, const struct agent_config *cfg, struct base_err *err);
/* Runs until it was drained or something final happened. Returns the process's exit code: 0 = drained; 1 =
 * with the reason in the log. */
int agent_run(struct agent *a);
struct agent *agent_free(struct agent *a);

#endif
