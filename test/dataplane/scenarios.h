/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATAPLANE_SCENARIOS_H
#define DATAPLANE_SCENARIOS_H

#include <stdbool.h>

#include "agent/data.h"

struct rig;
struct scenario {
    const char *name;
    void (*run)(struct rig *r);
    bool h3_only; /* over HTTP/2 it would be another story: the path's MTU, or a session that outlives its
                     fence */
    struct agent_tenant_limits tenant;
    bool threads2; /* with two data threads, too */
};
/* Each ends with a NULL name. */
extern const struct scenario dp_packets[], dp_authority[];
/* With two data threads only. */
extern const struct scenario dp_threads[];

#endif
