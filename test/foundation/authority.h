/* SPDX-License-Identifier: Apache-2.0
 *
 * authority.h - the lab authority: keeps the services of one provider authorized. Never part of a real
 * foundation.
 */
#ifndef FOUNDATION_AUTHORITY_H
#define FOUNDATION_AUTHORITY_H

#include "base/err.h"

struct loop;
struct loop_log;
struct authority;
/* Every 60 s, and at once: validUntil := now + 5 min on each service of `provider` that is neither revoked
 * nor being deleted, with the identity of `kubeconfig`. Borrows loop, log and provider for its life. */
int authority_new(struct authority **ret, struct loop *l, const char *kubeconfig, const char *ns,
                  const char *provider, struct loop_log *log, struct base_err *err);
struct authority *authority_free(struct authority *a);

#endif
