/* SPDX-License-Identifier: Apache-2.0
 *
 * identity.h - who the API server takes us for: the node that our token is bound to.
 */
#ifndef FOUNDATION_IDENTITY_H
#define FOUNDATION_IDENTITY_H

#include "base/err.h"
#include "base/id.h"

struct kube_client;
struct loop;

struct identity {
    char username[256];
    char node[256]; /* "" when the credential is bound to no node */
    struct base_uuid node_uid;
};
typedef void (*identity_fn)(void *arg, int code, const struct identity *who, const struct base_err *err);
/* Asks with a SelfSubjectReview; `fn` is called once, unless the client is freed before. */
int identity_ask(struct kube_client *client, identity_fn fn, void *arg, struct base_err *err);
/* Takes the body of a SelfSubjectReview apart. BASE_OK, BASE_EPROTO. */
int identity_parse(struct identity *ret, struct base_str body, struct base_err *err);

#endif
