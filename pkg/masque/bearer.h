/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/bearer.h - the token of an Authorization header (RFC 6750 section 2.1, RFC 9110 section 11.4).
 *
 * Pure. Only the form is looked at; whose token it is, is not known here.
 */
#ifndef MASQUE_BEARER_H
#define MASQUE_BEARER_H

#include "base/str.h"

#define MASQUE_TOKEN_MAX 7168 /* bytes; the whole header block has 8 KiB */

/* `Bearer` (in any case), one space, one token of [A-Za-z0-9-._~+/] and then `=`: true, *ret borrowed from
 * `value`. */
bool masque_bearer_parse(struct base_str *ret, struct base_str value);
/* Does this header field name ask to speak for a tenant? `tenant` as a word of the name: tenant, x-tenant-id,
 * … */
bool masque_names_tenant(struct base_str name);

#endif
