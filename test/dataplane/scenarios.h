/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATAPLANE_SCENARIOS_H
#define DATAPLANE_SCENARIOS_H

struct rig;
struct scenario {
    const char *name;
    void (*run)(struct rig *r);
};
/* Each ends with a NULL name. */
extern const struct scenario dp_packets[], dp_authority[];

#endif
