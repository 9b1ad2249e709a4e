/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/preflight_int.h - shared by preflight.c and preflight_facts.c.
 */
#ifndef AGENT_PREFLIGHT_INT_H
#define AGENT_PREFLIGHT_INT_H

#include "agent/config.h"

/* Certificate, key and client CA: readable, PEM, belonging together, valid now. BASE_OK, or BASE_EINVAL with
 * option, file and remedy. */
int agent_preflight_tls(const struct agent_config *cfg, struct base_err *err);

#endif
