/* SPDX-License-Identifier: Apache-2.0
 *
 * authority/prefix.h - which /96 of a pool a connector tries, in which order.
 *
 * Pure. Source: contract section 3, step 2: SHA-256 of "tenant/connector/vpc" modulo the pool, then the next
 * ones; index 0 is never given out (its ::1 is the tunnel's own address).
 */
#ifndef AUTHORITY_PREFIX_H
#define AUTHORITY_PREFIX_H

#include "base/id.h"

#define AUTHORITY_CANDIDATES 64 /* tried blindly; after that a LIST of the VPC's claims says what is free */

/* The i-th candidate. BASE_OK; BASE_EFULL: the pool has no i-th; BASE_EINVAL: longer than a /95; BASE_ENOMEM. */
int authority_candidate(struct base_prefix *ret, const char *tenant, const char *connector, const char *vpc,
                        const struct base_prefix *pool, uint64_t i);
/* The tunnel's own address: ::1 of the pool's index 0. */
struct base_ip6 authority_tunnel_ip(const struct base_prefix *pool);
/* A /96 of this pool that may be given out. */
bool authority_in_pool(const struct base_prefix *pool, const struct base_prefix *prefix);

#endif
