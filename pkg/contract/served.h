/* SPDX-License-Identifier: Apache-2.0
 *
 * contract/served.h - does an API server serve the kinds of the contract with every field that Holdfast
 * relies on?
 *
 * Pure. An API server drops fields that its CustomResourceDefinitions do not name: with older ones a guard
 * would be written and silently lost.
 */
#ifndef CONTRACT_SERVED_H
#define CONTRACT_SERVED_H

#include "base/err.h"
#include "base/str.h"

/* Looks for every field in the OpenAPI v3 document of `group`. BASE_OK, or BASE_EINVAL with the first missing
 * kind or field and what to apply. */
int contract_served(struct base_str openapi, const char *group, struct base_err *err);

#endif
