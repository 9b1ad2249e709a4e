/* SPDX-License-Identifier: Apache-2.0
 *
 * gatemap.h - the eBPF gate: programs on a device, and the three pinned maps.
 *
 * Driving. Not thread-safe: gate writes come from one thread. The maps are pinned in a folder on a bpf file
 * system and taken up again by the next process; the programs stay on their devices whatever happens to this
 * one.
 */
#ifndef FOUNDATION_GATEMAP_H
#define FOUNDATION_GATEMAP_H

#include "core.h"
#include "gate_abi.h"

struct gatemap;
/* BASE_OK; BASE_EINVAL when `dir` is on no bpf file system, or holds maps of another layout; BASE_EDENIED;
 * BASE_EIO. */
int gatemap_new(struct gatemap **ret, const char *dir, struct base_err *err);
struct gatemap *gatemap_free(struct gatemap *m);

/* Puts the programs on both directions of the interface (clsact). The device must not be up yet. */
int gatemap_attach(struct gatemap *m, unsigned ifindex, struct base_err *err);
/* BASE_OK when both programs are on it. */
int gatemap_attached(struct gatemap *m, unsigned ifindex, struct base_err *err);

/* Sets the deadline of a prefix on one device. */
int gatemap_set(struct gatemap *m, unsigned ifindex, const struct fnd_gate *g, struct base_err *err);
/* Takes the prefix out on one device; a prefix without an entry is shut. */
int gatemap_shut(struct gatemap *m, unsigned ifindex, const struct base_prefix *prefix, struct base_err *err);
/* Takes out everything of a device that is gone. */
int gatemap_purge(struct gatemap *m, unsigned ifindex, struct base_err *err);

/* Nothing was ever accepted under these maps: they are new. */
bool gatemap_empty(struct gatemap *m);
int gatemap_record(struct gatemap *m, const struct fnd_record *r, struct base_err *err);
int gatemap_forget(struct gatemap *m, const struct base_uuid *uid, struct base_err *err);

int gatemap_route_get(struct gatemap *m, const struct base_prefix *prefix, struct route_value *ret);
int gatemap_route_set(struct gatemap *m, const struct base_prefix *prefix, const struct route_value *v,
                      struct base_err *err);
int gatemap_route_drop(struct gatemap *m, const struct base_prefix *prefix);

/* Every entry; the callback may delete entries, and must not walk. */
typedef void (*gatemap_gate_fn)(void *arg, unsigned ifindex, const struct fnd_gate *g);
typedef void (*gatemap_record_fn)(void *arg, const struct fnd_record *r);
typedef void (*gatemap_route_fn)(void *arg, const struct base_prefix *prefix, const struct route_value *v);
void gatemap_each_gate(struct gatemap *m, gatemap_gate_fn fn, void *arg);
void gatemap_each_record(struct gatemap *m, gatemap_record_fn fn, void *arg);
void gatemap_each_route(struct gatemap *m, gatemap_route_fn fn, void *arg);

#endif
