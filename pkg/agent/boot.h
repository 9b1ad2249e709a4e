/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/boot.h - what must be true before the agent may start: who the API server thinks we are, and that the
 * kinds of the contract are served with every field that this agent relies on.
 *
 * Driving. An API server that is away is waited for (with jittered back-off), and said so; so are missing
 * CRDs or fields, which an operator can mend while the agent runs. A token of another node is final.
 */
#ifndef AGENT_BOOT_H
#define AGENT_BOOT_H

#include "contract/contract.h"

struct agent_boot;
struct kube_client;
struct loop;
struct loop_log;

enum agent_boot_state { AGENT_BOOT_WAITING = 1, AGENT_BOOT_DONE, AGENT_BOOT_FATAL };
struct agent_boot_result {
    enum agent_boot_state state;
    char node[CONTRACT_NODE_SIZE];
    struct base_uuid node_uid;
    char api[160];  /* "" when the API server answers, else why not */
    char crds[320]; /* "" when every field is served, else what is missing */
};
/* Called when the state or a text changes; after DONE or FATAL never again. */
typedef void (*agent_boot_fn)(void *arg, const struct agent_boot_result *r);

/* `node` is the configured name, "" = take the token's. */
int agent_boot_new(struct agent_boot **ret, struct loop *l, struct kube_client *client, const char *node,
                   struct loop_log *log, agent_boot_fn fn, void *arg, struct base_err *err);
struct agent_boot *agent_boot_free(struct agent_boot *b);

/* Pure pieces, for tests. */
/* Takes node name and UID from a SelfSubjectReview. BASE_EINVAL with remedy when the token has no node claim
 * or names another node than `node`. */
int agent_boot_identity(struct base_str json, const char *node, char ret_node[CONTRACT_NODE_SIZE],
                        struct base_uuid *ret_uid, struct base_err *err);

#endif
