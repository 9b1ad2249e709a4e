/* SPDX-License-Identifier: Apache-2.0
 *
 * authority/identity.h - the one allowed form of an identity, and the tenant rule for requests.
 *
 * Pure. Identities are compared byte by byte, so two texts that mean the same to somebody must not both be
 * allowed: whatever is not in normal form is refused, never repaired. Printable ASCII only, so nothing looks
 * like something else. Source: EXPECTATIONS.md B8.
 */
#ifndef AUTHORITY_IDENTITY_H
#define AUTHORITY_IDENTITY_H

#include "contract/contract.h"

#define AUTHORITY_IDENTITY_MAX 512
#define AUTHORITY_IDENTITY_SIZE (AUTHORITY_IDENTITY_MAX + 1)

/* BASE_OK, or BASE_EINVAL with what is wrong and how to write it (the value is not repeated).
 *
 * URI (a certificate's URI SAN): `scheme:rest`; scheme and host in lower case, no user, no percent-encoding,
 * no query or fragment, no empty, `.` or `..` path segment but the last, no punycode label in the host. USER
 * (a TokenReview's username): printable ASCII without spaces; not the names that Kubernetes gives to nobody.
 */
int authority_identity_check(enum contract_identity_kind kind, struct base_str value, struct base_err *err);

#endif
