/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/reload.h - what changes while the agent runs: TLS files that are replaced, and the configuration on
 * SIGHUP.
 *
 * Driving, on the control loop. A Secret that the kubelet swaps is noticed within AGENT_FILES_EVERY, without
 * a signal. Of the configuration only options that the table calls reloadable are applied; each change is
 * logged with what became of it, and a file that is wrong changes nothing.
 */
#ifndef AGENT_RELOAD_H
#define AGENT_RELOAD_H

#include "base/err.h"
#include "base/time.h"

#define AGENT_FILES_EVERY (10 * BASE_SEC)

struct agent;
struct agent_config;
struct agent_files;
struct agent_option;
struct loop;

/* Calls `fn` after one of `paths` was replaced or changed. The paths are borrowed; at most 8. */
int agent_files_new(struct agent_files **ret, struct loop *l, const char *const *paths, unsigned n,
                    void (*fn)(void *arg), void *arg, struct base_err *err);
struct agent_files *agent_files_free(struct agent_files *f);
/* What the timer does: looks once. */
void agent_files_look(struct agent_files *f);

/* End of the first certificate in a PEM file, Unix s; 0 when there is none. */
int64_t agent_tls_expiry(const char *cert_file);

/* Every option that differs, in the table's order, with both values as they would be written. Pure. */
typedef void (*agent_diff_fn)(void *arg, const struct agent_option *o, const char *from, const char *to);
void agent_config_diff(const struct agent_config *from, const struct agent_config *to, agent_diff_fn fn,
                       void *arg);

/* SIGHUP: TLS files, credentials of the API client, then the configuration (reload.c knows the agent's insides). */
void agent_reload(struct agent *a);

#endif
