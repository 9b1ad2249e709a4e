/* SPDX-License-Identifier: Apache-2.0 */
#include "netlink.h"

#include "base/mem.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

struct netlink {
    int fd;
    uint32_t seq;
};

struct request {
    struct nlmsghdr h;
    union {
        struct ifinfomsg link;
        struct rtmsg route;
    } u;
    char attrs[256];
};

static int open_socket(unsigned groups, int flags, struct base_err *err)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = groups};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);

    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof sa)) {
        int e = errno;

        if (fd >= 0)
            close(fd);
        return base_err_sys(err, BASE_EIO, e, "netlink: cannot open a socket");
    }
    return fd;
}

int netlink_new(struct netlink **ret, struct base_err *err)
{
    struct timeval patience = {.tv_sec = 2};
    struct netlink *n;
    int fd = open_socket(0, 0, err);

    if (fd < 0)
        return fd;
    n = base_calloc(1, sizeof *n);
    if (!n) {
        close(fd);
        return base_err_set(err, BASE_ENOMEM, "netlink: no memory");
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    n->fd = fd;
    *ret = n;
    return BASE_OK;
}

struct netlink *netlink_free(struct netlink *n)
{
    if (!n)
        return NULL;
    close(n->fd);
    return base_free(n);
}

static struct rtattr *attr(struct request *q, unsigned short type, const void *data, size_t len)
{
    struct rtattr *a = (struct rtattr *)(void *)((char *)q + NLMSG_ALIGN(q->h.nlmsg_len));

    if (NLMSG_ALIGN(q->h.nlmsg_len) + RTA_SPACE(len) > sizeof *q)
        return NULL; /* requests of this file fit */
    a->rta_type = type;
    a->rta_len = (unsigned short)RTA_LENGTH(len);
    if (len)
        memcpy(RTA_DATA(a), data, len);
    q->h.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->h.nlmsg_len) + RTA_SPACE(len));
    return a;
}

/* Sends and waits for the acknowledgement: 0, or the kernel's errno (positive), or -1 with *err. */
static int talk(struct netlink *n, struct request *q, struct base_err *err)
{
    union {
        struct nlmsghdr h;
        char raw[4096];
    } in;
    ssize_t got;

    q->h.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    q->h.nlmsg_seq = ++n->seq;
    if (send(n->fd, q, q->h.nlmsg_len, 0) != (ssize_t)q->h.nlmsg_len) {
        base_err_sys(err, BASE_EIO, errno, "netlink: cannot send");
        return -1;
    }
    for (;;) {
        struct nlmsghdr *h = &in.h;

        do
            got = recv(n->fd, &in, sizeof in, 0);
        while (got < 0 && errno == EINTR);
        if (got <= 0) {
            base_err_sys(err, BASE_EIO, errno, "netlink: no answer");
            return -1;
        }
        for (size_t left = (size_t)got; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            struct nlmsgerr *e;

            if (h->nlmsg_seq != q->h.nlmsg_seq || h->nlmsg_type != NLMSG_ERROR)
                continue;
            e = NLMSG_DATA(h);
            return -e->error;
        }
    }
}

static int link_request(struct netlink *n, struct request *q, struct base_err *err, const char *what,
                        unsigned ifindex)
{
    int e = talk(n, q, err);

    if (e < 0)
        return BASE_EIO;
    if (e)
        return base_err_sys(err, e == ENODEV ? BASE_ENOTFOUND : BASE_EIO, e, "netlink: cannot %s link %u",
                            what, ifindex);
    return BASE_OK;
}

int netlink_link_set(struct netlink *n, unsigned ifindex, int mtu, uint32_t group, bool up,
                     struct base_err *err)
{
    struct request q = {
        .h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .nlmsg_type = RTM_NEWLINK}};
    uint32_t m = (uint32_t)mtu;
    uint8_t mode = IN6_ADDR_GEN_MODE_NONE;
    struct rtattr *spec, *inet6;
    int r;

    q.u.link.ifi_family = AF_UNSPEC;
    q.u.link.ifi_index = (int)ifindex;
    attr(&q, IFLA_MTU, &m, sizeof m);
    attr(&q, IFLA_GROUP, &group, sizeof group);
    spec = attr(&q, IFLA_AF_SPEC | NLA_F_NESTED, NULL, 0);
    inet6 = attr(&q, AF_INET6 | NLA_F_NESTED, NULL, 0);
    attr(&q, IFLA_INET6_ADDR_GEN_MODE, &mode, sizeof mode);
    if (!spec || !inet6)
        return base_err_set(err, BASE_EFULL, "netlink: request too long");
    inet6->rta_len = (unsigned short)((char *)&q + q.h.nlmsg_len - (char *)inet6);
    spec->rta_len = (unsigned short)((char *)&q + q.h.nlmsg_len - (char *)spec);
    r = link_request(n, &q, err, "set up", ifindex);
    if (r || !up)
        return r;
    /* Up in a request of its own: the address mode must stand before the first address would be made. */
    q = (struct request){
        .h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .nlmsg_type = RTM_NEWLINK}};
    q.u.link.ifi_index = (int)ifindex;
    q.u.link.ifi_flags = IFF_UP;
    q.u.link.ifi_change = IFF_UP;
    return link_request(n, &q, err, "start", ifindex);
}

int netlink_link_delete(struct netlink *n, unsigned ifindex, struct base_err *err)
{
    struct request q = {
        .h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .nlmsg_type = RTM_DELLINK}};
    int r;

    q.u.link.ifi_index = (int)ifindex;
    r = link_request(n, &q, err, "delete", ifindex);
    return r == BASE_ENOTFOUND ? BASE_OK : r;
}

static int route_request(struct netlink *n, const struct netlink_route *r, bool add, struct base_err *err)
{
    struct request q = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                              .nlmsg_type = add ? RTM_NEWROUTE : RTM_DELROUTE}};
    int e;

    if (add)
        q.h.nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
    q.u.route = (struct rtmsg){.rtm_family = AF_INET6,
                               .rtm_dst_len = r->prefix.len,
                               .rtm_table = RT_TABLE_UNSPEC,
                               .rtm_protocol = r->protocol,
                               .rtm_scope = RT_SCOPE_UNIVERSE,
                               .rtm_type = r->ifindex ? RTN_UNICAST : RTN_BLACKHOLE};
    attr(&q, RTA_DST, r->prefix.addr.b, sizeof r->prefix.addr.b);
    attr(&q, RTA_TABLE, &r->table, sizeof r->table);
    if (r->metric)
        attr(&q, RTA_PRIORITY, &r->metric, sizeof r->metric);
    if (r->ifindex) {
        uint32_t oif = r->ifindex;

        attr(&q, RTA_OIF, &oif, sizeof oif);
    }
    e = talk(n, &q, err);
    if (e < 0)
        return BASE_EIO;
    if (e == 0 || (add && e == EEXIST) || (!add && (e == ESRCH || e == ENODEV)))
        return BASE_OK;
    return base_err_sys(err, BASE_EIO, e, "netlink: cannot %s a route in table %u", add ? "add" : "delete",
                        r->table);
}

int netlink_route_add(struct netlink *n, const struct netlink_route *r, struct base_err *err)
{
    return route_request(n, r, true, err);
}

int netlink_route_delete(struct netlink *n, const struct netlink_route *r, struct base_err *err)
{
    return route_request(n, r, false, err);
}

/* Takes one route out of a dump; false when it is another table's or protocol's. */
static bool dumped(struct nlmsghdr *h, uint32_t table, uint8_t protocol, struct netlink_route *ret)
{
    struct rtmsg *m = NLMSG_DATA(h);
    size_t len = h->nlmsg_len - NLMSG_LENGTH(sizeof *m);
    struct netlink_route r = {
        .table = m->rtm_table, .protocol = m->rtm_protocol, .prefix.len = m->rtm_dst_len};

    for (struct rtattr *a = RTM_RTA(m); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
        if (a->rta_type == RTA_DST && RTA_PAYLOAD(a) == sizeof r.prefix.addr.b)
            memcpy(r.prefix.addr.b, RTA_DATA(a), sizeof r.prefix.addr.b);
        if (a->rta_type == RTA_TABLE)
            memcpy(&r.table, RTA_DATA(a), sizeof r.table);
        if (a->rta_type == RTA_PRIORITY)
            memcpy(&r.metric, RTA_DATA(a), sizeof r.metric);
        if (a->rta_type == RTA_OIF && m->rtm_type == RTN_UNICAST)
            memcpy(&r.ifindex, RTA_DATA(a), sizeof r.ifindex);
    }
    *ret = r;
    return r.table == table && r.protocol == protocol && m->rtm_family == AF_INET6;
}

/* One dump; fills at most `max` routes. The number found, or -1. */
static int dump(struct netlink *n, uint32_t table, uint8_t protocol, struct netlink_route *out, int max,
                struct base_err *err)
{
    struct request q = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                              .nlmsg_type = RTM_GETROUTE,
                              .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    union {
        struct nlmsghdr h;
        char raw[16384];
    } in;
    int found = 0;

    q.u.route.rtm_family = AF_INET6;
    q.h.nlmsg_seq = ++n->seq;
    if (send(n->fd, &q, q.h.nlmsg_len, 0) != (ssize_t)q.h.nlmsg_len) {
        base_err_sys(err, BASE_EIO, errno, "netlink: cannot send");
        return -1;
    }
    for (;;) {
        ssize_t got = recv(n->fd, &in, sizeof in, 0);
        struct nlmsghdr *h = &in.h;

        if (got <= 0) {
            base_err_sys(err, BASE_EIO, errno, "netlink: no answer");
            return -1;
        }
        for (size_t left = (size_t)got; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            if (h->nlmsg_seq != q.h.nlmsg_seq)
                continue;
            if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
                return found;
            if (h->nlmsg_type == RTM_NEWROUTE && found < max && dumped(h, table, protocol, &out[found]))
                found++;
        }
    }
}

#define FLUSH_BATCH 64
int netlink_route_flush(struct netlink *n, uint32_t table, uint8_t protocol, struct base_err *err)
{
    struct netlink_route batch[FLUSH_BATCH];
    int found;

    while ((found = dump(n, table, protocol, batch, FLUSH_BATCH, err)) > 0)
        for (int i = 0; i < found; i++) {
            int r = netlink_route_delete(n, &batch[i], err);

            if (r)
                return r;
        }
    return found < 0 ? BASE_EIO : BASE_OK;
}

/* ---- links ---- */
static void report(struct nlmsghdr *h, const char *prefix, netlink_link_fn fn, void *arg)
{
    struct ifinfomsg *m = NLMSG_DATA(h);
    size_t len;
    char name[IF_NAMESIZE] = "";

    if ((h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK) ||
        h->nlmsg_len < NLMSG_LENGTH(sizeof *m))
        return;
    len = h->nlmsg_len - NLMSG_LENGTH(sizeof *m);
    for (struct rtattr *a = IFLA_RTA(m); RTA_OK(a, len); a = RTA_NEXT(a, len))
        if (a->rta_type == IFLA_IFNAME)
            (void)base_copy_str(name, sizeof name,
                                (struct base_str){RTA_DATA(a), strnlen(RTA_DATA(a), RTA_PAYLOAD(a))});
    if (strncmp(name, prefix, strlen(prefix)) == 0)
        fn(arg, name, (unsigned)m->ifi_index, h->nlmsg_type == RTM_DELLINK);
}

int netlink_link_list(struct netlink *n, const char *prefix, netlink_link_fn fn, void *arg,
                      struct base_err *err)
{
    struct if_nameindex *all = if_nameindex();

    (void)n;
    if (!all)
        return base_err_sys(err, BASE_EIO, errno, "cannot list the interfaces");
    for (struct if_nameindex *i = all; i->if_index; i++)
        if (strncmp(i->if_name, prefix, strlen(prefix)) == 0)
            fn(arg, i->if_name, i->if_index, false);
    if_freenameindex(all);
    return BASE_OK;
}

int netlink_monitor_new(int *ret_fd, struct base_err *err)
{
    int fd = open_socket(RTMGRP_LINK, SOCK_NONBLOCK, err);

    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return BASE_OK;
}

void netlink_monitor_read(int fd, const char *prefix, netlink_link_fn fn, void *arg)
{
    union {
        struct nlmsghdr h;
        char raw[16384];
    } in;
    ssize_t got;

    while ((got = recv(fd, &in, sizeof in, 0)) > 0 || (got < 0 && errno == ENOBUFS)) {
        struct nlmsghdr *h = &in.h;

        for (size_t left = got > 0 ? (size_t)got : 0; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
            report(h, prefix, fn, arg);
    }
}
