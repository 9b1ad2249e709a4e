/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/addr.h - "address:port" as a socket address. Pure.
 */
#ifndef AGENT_ADDR_H
#define AGENT_ADDR_H

#include <sys/socket.h>

#include "base/err.h"

/* "[v6]:port" or "v4:port", numeric. BASE_OK or BASE_EINVAL. */
int agent_addr_parse(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len,
                     struct base_err *err);

#endif
