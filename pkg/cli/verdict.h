/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/verdict.h - what is authoritative for a connector, why, and what to do next: from objects to words.
 *
 * Pure: no I/O, no clock. The seven conditions are those of the contract's section 7, as far as objects show
 * them; a session's own deadline is known to its agent only.
 */
#ifndef CLI_VERDICT_H
#define CLI_VERDICT_H

#include "contract/contract.h"

#define CLI_SKEW_US 2000000 /* what the wall clocks of two machines may differ by */

/* "True", "False", "Unknown", "Expired" (not renewed in time), "Released". */
const char *cli_ready_word(const struct contract_instance *i, base_wall now);
/* CamelCase, why it is not "True". */
const char *cli_ready_reason(const struct contract_instance *i, base_wall now);
/* Of the claim's own epoch: "Open", "Closed", "-". */
const char *cli_gate_word(const struct contract_claim *r);

enum cli_sight { CLI_UNSEEN = 0, CLI_ABSENT, CLI_SEEN };
struct cli_facts {
    base_wall now;
    const char *who; /* "acme.site-1" */
    enum cli_sight binding_sight, claim_sight, service_sight, attachment_sight, instance_sight;
    const struct contract_binding *binding;
    const struct contract_claim *claim;
    const struct contract_service *service;
    const struct contract_attachment *attachment;
    const struct contract_instance *instance; /* the row that the claim's holder names */
};

enum cli_answer { CLI_ANSWER_UNSEEN = 0, CLI_NO, CLI_YES };
enum cli_why {
    CLI_WHY_FORWARDING = 0, /* all conditions hold */
    CLI_WHY_UNSEEN,         /* no condition is known to fail, but one could not be seen */
    CLI_WHY_NO_BINDING,
    CLI_WHY_BINDING_DELETING,
    CLI_WHY_SUSPENDED,
    CLI_WHY_AMBIGUOUS,
    CLI_WHY_AUDIT,
    CLI_WHY_NO_CLAIM,
    CLI_WHY_DELETING,
    CLI_WHY_RELEASED,
    CLI_WHY_HOLDER_GONE, /* its instance is gone, or another process has its row */
    CLI_WHY_HOLDER_RELEASED,
    CLI_WHY_HOLDER_SILENT, /* not renewed for L */
    CLI_WHY_SERVICE_GONE,
    CLI_WHY_SERVICE_REVOKED,
    CLI_WHY_SERVICE_EXPIRED,
    CLI_WHY_NOT_RESERVED,
    CLI_WHY_EARLIER_OPEN, /* an earlier epoch is not known to be closed */
    CLI_WHY_NOT_ACCEPTED,
    CLI_WHY_GATE_CLOSED,
    CLI_WHY_INSTANCE_NOT_ACCEPTED,
    CLI_WHY_ATTACHMENT,
};
#define CLI_WHY_N (CLI_WHY_ATTACHMENT + 1)
const char *cli_why_name(enum cli_why w);

#define CLI_CONDITIONS 7
#define CLI_NEXT_MAX 4
struct cli_verdict {
    struct cli_condition {
        const char *what;
        enum cli_answer answer;
        char evidence[300];
    } c[CLI_CONDITIONS];
    enum cli_why why;
    char statement[600]; /* what is authoritative */
    char because[600];
    char next[CLI_NEXT_MAX][400];
    unsigned n_next;
    bool opened; /* a gate of some epoch has been open: packets may have passed */
};
void cli_judge(const struct cli_facts *f, struct cli_verdict *ret);

#endif
