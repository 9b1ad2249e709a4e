/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/path.h - the request path /.well-known/masque/ip/{target}/{ipproto}/ (RFC 9484 sections 3 and 4.6).
 *
 * Pure. Error texts name the part, its value (printable, cut) and what would be right; they go to the client
 * and to the log.
 */
#ifndef MASQUE_PATH_H
#define MASQUE_PATH_H

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "masque/flow.h"

struct masque_path {
    enum masque_target target;
    struct base_prefix prefix; /* MASQUE_TARGET_PREFIX; a bare address is a /128 */
    int ipproto;               /* 0..255, or -1 for `*` */
};

/* BASE_OK, or BASE_EINVAL with *ret untouched. */
int masque_path_parse(struct masque_path *ret, struct base_str path, struct base_err *err);

#endif
