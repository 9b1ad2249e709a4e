/* SPDX-License-Identifier: Apache-2.0
 *
 * base/secret.h - bytes that must not outlive their use: a connector's bearer token, a request body that
 * holds one.
 *
 * Pure. A secret has one owner at a time, is passed by pointer and never copied by value; freeing it
 * overwrites it.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include "base/cleanup.h"
#include "base/str.h"

struct base_secret; /* opaque: its bytes are looked at only where they are used */

/* Overwrites, also where the compiler sees no later use. NULL ok when n is 0. */
void base_wipe(void *p, size_t n);
/* A copy of `s`, which stays the caller's; NULL when there is no memory. */
struct base_secret *base_secret_new(struct base_str s);
/* Overwrites and frees. NULL ok, returns NULL. */
struct base_secret *base_secret_free(struct base_secret *s);
BASE_DEFINE_CLEANUP(struct base_secret *, base_secret_free)
/* Borrowed until base_secret_free. */
struct base_str base_secret_text(const struct base_secret *s);

#endif
