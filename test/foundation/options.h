/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - the command line of holdfast-foundation.
 */
#ifndef FOUNDATION_OPTIONS_H
#define FOUNDATION_OPTIONS_H

#include "base/err.h"
#include "base/id.h"
#include "loop/log.h"

struct options {
    const char *kubeconfig; /* NULL: as kubectl, or in-cluster */
    const char *ns;
    const char *node;
    struct base_uuid node_uid; /* zero: from the token */
    const char *provider;
    const char *bpffs;
    const char *lock;
    const char *tun;
    uint32_t tun_owner;
    int32_t mtu;
    uint32_t table;
    int32_t lease_seconds;
    const char *authority_kubeconfig; /* NULL: no authority role */
    bool json;
    enum loop_level level;
    uint32_t watchdog; /* run as the watchdog of that process; 0 = be a foundation */
    bool help, version;
};

/* Strings are borrowed from argv. BASE_OK, or BASE_EINVAL with the flag, its value and what is expected. */
int options_parse(struct options *ret, int argc, const char *const argv[], struct base_err *err);
const char *options_help(void);

#endif
