/* SPDX-License-Identifier: Apache-2.0
 *
 * netlink.h - the few rtnetlink requests that the foundation needs: links, routes, and news of links that
 * went.
 *
 * Driving. Each request waits for the kernel's acknowledgement. Not thread-safe.
 */
#ifndef FOUNDATION_NETLINK_H
#define FOUNDATION_NETLINK_H

#include "base/err.h"
#include "base/id.h"

struct netlink;
int netlink_new(struct netlink **ret, struct base_err *err);
struct netlink *netlink_free(struct netlink *n);

/* MTU, interface group and "no link-local address of its own"; then, when `up`, up. */
int netlink_link_set(struct netlink *n, unsigned ifindex, int mtu, uint32_t group, bool up,
                     struct base_err *err);
/* BASE_OK also when it is gone already. */
int netlink_link_delete(struct netlink *n, unsigned ifindex, struct base_err *err);

struct netlink_route {
    struct base_prefix prefix;
    uint32_t table;
    uint32_t metric; /* 0 only in a deletion: any */
    uint8_t protocol;
    unsigned ifindex; /* 0: blackhole */
};
/* Adding what is there, and deleting what is not, are successes. */
int netlink_route_add(struct netlink *n, const struct netlink_route *r, struct base_err *err);
int netlink_route_delete(struct netlink *n, const struct netlink_route *r, struct base_err *err);

/* Deletes every route of that protocol number in that table (IPv6). */
int netlink_route_flush(struct netlink *n, uint32_t table, uint8_t protocol, struct base_err *err);

/* Names of the interfaces that begin with `prefix`. */
typedef void (*netlink_link_fn)(void *arg, const char *name, unsigned ifindex, bool gone);
int netlink_link_list(struct netlink *n, const char *prefix, netlink_link_fn fn, void *arg,
                      struct base_err *err);

/* A descriptor that is readable when links changed; netlink_monitor_read reports those that came or went. */
int netlink_monitor_new(int *ret_fd, struct base_err *err);
void netlink_monitor_read(int fd, const char *prefix, netlink_link_fn fn, void *arg);

#endif
