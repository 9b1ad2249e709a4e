/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/preflight.h - `holdfast-agent check`: would this configuration run here?
 *
 * Driving, and synchronous: it has a loop of its own and ends. Nothing is changed: no device is attached, no
 * object written (the one write is a dry run that has to be refused). Each check is one line: ok, FAILED with
 * what to do, or skipped with why. Secrets are in no line.
 */
#ifndef AGENT_PREFLIGHT_H
#define AGENT_PREFLIGHT_H

#include <stdio.h>

#include "agent/config.h"

/* `running`: the agent itself holds its ports (the command was started in its pod). Returns the process's
 * exit code: 0 = nothing failed, 1 = something did. */
int agent_preflight(const struct agent_config *cfg, bool running, FILE *out);

/* Pure pieces, for tests. */
/* What a permission is called in errors: "create routeclaims.edge…", with its subresource. */
struct agent_permission {
    const char *group, *resource, *subresource, *verb;
    enum { AGENT_PERMIT_ALWAYS = 1, AGENT_PERMIT_EVENTS, AGENT_PERMIT_REVIEWS } when;
};
extern const struct agent_permission agent_permissions[];
extern const size_t agent_permissions_n;
/* Difference of the API server's clock (creationTimestamp of a review) to ours, s; false when the answer has
 * none. `sent` and `got`: our clock before and after, microseconds. */
bool agent_preflight_skew(struct base_str review, base_wall sent, base_wall got, double *ret);
/* Was the dry run refused by our policy? BASE_OK; BASE_EINVAL: it was taken, or refused by something else. */
int agent_preflight_fence(int status, struct base_str body, struct base_err *err);

#endif
