/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/listen.h - where to listen, as an address and as text. Pure. IPv4 is v4-mapped.
 */
#ifndef MASQUE_LISTEN_H
#define MASQUE_LISTEN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* "[addr%scope]:port" or "a.b.c.d:port". BASE_OK or BASE_EINVAL with what is wrong and an example. */
int masque_listen_parse(struct sockaddr_in6 *ret, const char *listen, struct base_err *err);
/* Why a bind to it failed, and what to do: ": another process has this …". "" when there is nothing to say. */
const char *masque_listen_remedy(int error);
/* :: or 0.0.0.0. */
bool masque_address_any(const struct in6_addr *a);
/* "[addr]:port" */
void masque_address_text(char *dst, size_t size, const struct sockaddr_in6 *a);

#endif
