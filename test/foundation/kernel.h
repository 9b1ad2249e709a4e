/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.h - executes the core's kernel effects: gates, records, routes and devices of this network
 * namespace.
 *
 * Driving, synchronous, one thread. Needs the lock (lock.h) held: nothing here checks for a second
 * foundation.
 */
#ifndef FOUNDATION_KERNEL_H
#define FOUNDATION_KERNEL_H

#include "core.h"

#define KERNEL_PROTOCOL 199

struct kernel_config {
    const char *bpffs;
    const char *tun; /* "/dev/net/tun" */
    uint32_t tun_owner;
    uint32_t table; /* that BIRD reads */
};

struct kernel;
/* Default drop first, then the maps; takes up devices that are there. The texts name the flag and the remedy. */
int kernel_new(struct kernel **ret, const struct kernel_config *cfg, struct base_err *err);
/* Leaves everything in the kernel as it is. */
struct kernel *kernel_free(struct kernel *k);

/* What the kernel still holds, for the core's start. */
typedef void (*kernel_record_fn)(void *arg, const struct fnd_record *r);
typedef void (*kernel_gate_fn)(void *arg, const struct fnd_gate *g);
typedef void (*kernel_device_fn)(void *arg, const char *name, bool present);
void kernel_restore(struct kernel *k, kernel_record_fn record, kernel_gate_fn gate, kernel_device_fn device,
                    void *arg);

int kernel_gate(struct kernel *k, const struct fnd_gate *g,
                struct base_err *err); /* deadline 0: on every device */
int kernel_record(struct kernel *k, const struct fnd_record *r, struct base_err *err);
int kernel_forget(struct kernel *k, const struct base_uuid *uid, struct base_err *err);
int kernel_publish(struct kernel *k, const struct fnd_gate *g, base_time until, struct base_err *err);
int kernel_withdraw(struct kernel *k, const struct base_prefix *prefix, struct base_err *err);
int kernel_device_make(struct kernel *k, const char *name, int mtu, struct base_err *err);
int kernel_device_delete(struct kernel *k, const char *name, struct base_err *err);

/* Readable when interfaces changed; kernel_news then reports hf* devices that are gone. */
int kernel_monitor_fd(const struct kernel *k);
void kernel_news(struct kernel *k, kernel_device_fn device, void *arg);

/* Withdraws every route whose limit is past at `now`; returns how many are left. For the watchdog, which has
 * its own struct kernel_watch (maps and netlink only). */
struct kernel_watch;
int kernel_watch_new(struct kernel_watch **ret, const struct kernel_config *cfg, struct base_err *err);
struct kernel_watch *kernel_watch_free(struct kernel_watch *w);
unsigned kernel_watch_pass(struct kernel_watch *w, base_time now, unsigned *ret_withdrawn);

#endif
