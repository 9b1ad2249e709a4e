/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/retire.h - may this claim's row be deleted?
 *
 * Pure. Source: contract section 3, end: rows past their retention that are released, or that no binding
 * reserves; nothing else.
 */
#ifndef CLI_RETIRE_H
#define CLI_RETIRE_H

#include "contract/contract.h"

struct cli_retire_facts {
    base_wall now;
    const struct contract_claim *claim;
    const struct contract_binding *binding; /* <tenant>.<connector>; NULL = there is none */
    const char *other; /* another binding that reserves the row's /96; NULL = there is none */
    const struct contract_instance *instance; /* the one that the holder names; NULL = there is none */
    int64_t default_retention_s;              /* when the binding says none */
};
struct cli_retirement {
    bool go;
    char why[320];
};
struct cli_retirement cli_retire(const struct cli_retire_facts *f);

#endif
